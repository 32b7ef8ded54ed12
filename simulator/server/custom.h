/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/custom.h - types that CustomResourceDefinitions make, seen from the store
 *
 * Threads: the loop.
 */
#ifndef BH_SIM_CUSTOM_H
#define BH_SIM_CUSTOM_H

#include "simulator/server/sim_int.h"

/* All stores: the table's and the definitions'. */
size_t bh_sim_bucket_count(const struct bh_sim *s);
struct bh_sim_bucket *bh_sim_bucket_at(const struct bh_sim *s, size_t i);
/* A definition was written, or (gone) has left the store. */
void bh_sim_custom_commit(struct bh_sim *s, const struct bh_sim_obj *obj, bool gone);
/* An object of a file whose version is not the one that its definition's store goes by any more:
 * the same in that version, in the server's arena, and its type. *ret_t stays when obj is of no
 * definition. */
const struct bh_json *bh_sim_custom_adopt(struct bh_sim *s, const struct bh_json *obj,
                                          const struct bh_sim_type **ret_t);
/* A definition is about to leave: whatever objects it still has go first, finalizers or not, so
 * that watchers and files hear of each. Only when a client took the definition's own finalizer off.
 */
void bh_sim_custom_empty(struct bh_sim *s, const struct bh_sim_obj *obj);
void bh_sim_customs_fini(struct bh_sim *s); /* after the store's objects */

#endif
