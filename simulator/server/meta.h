/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/meta.h - the rules of metadata, the same for every kind
 */
#ifndef BH_SIM_META_H
#define BH_SIM_META_H

#include "simulator/server/sim.h"

/* Checks that obj is an object with sane metadata for namespace ns, fills apiVersion, kind and
 * namespace. Returns metadata, or NULL with e filled (400). */
struct bh_json *bh_sim_meta_begin(const struct bh_sim_type *t, const char *ns, struct bh_arena *a,
                                  struct bh_json *obj, struct bh_sim_error *e);
/* Update: what clients cannot change is taken from the old metadata. */
void bh_sim_meta_keep(struct bh_arena *a, struct bh_json *meta, const struct bh_json *old,
                      enum bh_sim_sub sub);
/* Gives members of obj that are equal to old's the old value and order, so that a write that only
 * reorders or reformats is seen as no change. */
void bh_sim_meta_reorder(struct bh_arena *a, struct bh_json *obj, const struct bh_json *old);

#endif
