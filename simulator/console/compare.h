/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/compare.h - what another scheduler chose, and what Berth would have chosen
 *
 * An engine of its own follows the server's commits in their order. When a pod that was pending gets
 * a node, Berth decides about the pod as it was, in the cluster as it was just before; then the
 * binding counts. A node with the same score is agreement: among those the choice is free.
 *
 * Bindings become visible in another order than that in which the pods were decided: a scheduler
 * counts its own decisions at once and writes them side by side. So bindings that follow each other
 * closely are compared together, in the order in which the scheduling queue gives its pods out
 * (priority, then age). Before a node changes, or a pod leaves one, all are compared that came
 * before.
 *
 * Owns:    the engine, counts, the last differences. Threads: the loop's.
 */
#ifndef BH_CONSOLE_COMPARE_H
#define BH_CONSOLE_COMPARE_H

#include "simulator/server/sim.h"

#define BH_COMPARISON_LISTED 200 /* differences that are told one by one */

struct bh_sched_config;
struct bh_comparison;
/* config: borrowed. It sees the store as it is, and from then on what bh_comparison_commit tells. */
int bh_comparison_new(struct bh_sim *s, const struct bh_sched_config *config,
                      struct bh_comparison **ret, struct bh_err *err);
void bh_comparison_free(struct bh_comparison *c); /* NULL allowed */
/* As a bh_sim_listener. count: bindings are compared; before the copy is complete they cannot be. */
void bh_comparison_commit(struct bh_comparison *c, enum bh_sim_change change,
                          struct bh_sim_obj *old, struct bh_sim_obj *obj, bool count);
/* Adds compared, agreed, same, tie, different{...}, others, differences[] to doc:
 * docs/simulator-api.md. */
void bh_comparison_tell(const struct bh_comparison *c, struct bh_arena *a, struct bh_json *doc);
#endif
