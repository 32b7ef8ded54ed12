/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/offline/rebalance.h - which pods to move so that nodes become free, or so that pods that
 * wait have room
 *
 * A move is an eviction: the pod's controller makes another one, which the scheduler places. Where it
 * would go is what the engine says with the world's configuration, one pod after the other, while
 * the nodes that are to be free are closed (cordoned). So a plan holds as long as nothing else changes
 * and those nodes stay closed.
 *
 * Moved are pods that kubectl drain would evict: made by a controller, no DaemonSet's, no mirror
 * pods, and within their disruption budgets. Not moved are members of a pod group (half a gang would
 * be left), pods with resource claims (whether the device can be had elsewhere is not known before
 * it is free), and pods that another scheduler places. Pods that are being deleted are ignored.
 *
 *   {apiVersion: berth/v1, kind: RebalancePlan, nodes: int, waves: int,
 *    empty[]: names of nodes that have no such pods (they have to stay closed, too),
 *    free[]: names of the nodes that become free, in order,
 *    place[]: {namespace, name, node}: the pods that wait and get a place (bh_offline_make_room),
 *    moves[]: {wave, namespace, name, uid, from, to, budget?}, in order,
 *    kept[]: {node, reason}: nodes that were looked at and keep their pods}
 *
 * wave: moves of one wave are within all budgets at once; the next begins when the pods of the one
 * before run again.
 *
 * Owns:       nothing; the tree lives in the arena given. The world is afterwards as the plan would
 *             leave it, so it is good for nothing else.
 * Threads:    the world's.
 * Same world, same options: same plan.
 */
#ifndef BH_OFFLINE_REBALANCE_H
#define BH_OFFLINE_REBALANCE_H

#include "common/data/json.h"
#include "simulator/offline/offline.h"

struct bh_rebalance_options {
    const struct bh_selector *nodes;                        /* may be freed; NULL = all */
    uint32_t max_nodes, max_moves;                          /* 0 = no limit */
    void (*progress)(void *arg, size_t done, size_t total); /* nodes; may be NULL */
    void *arg;
};
/* As many nodes free as can be, the emptiest first. */
struct bh_json *bh_offline_free_nodes(struct bh_offline *w, struct bh_arena *a,
                                      const struct bh_rebalance_options *o);
/* Room for all of these pods, which wait; preemption would evict others for them, this moves them.
 * NULL and err: -ENOSPC, there is no way. */
struct bh_json *bh_offline_make_room(struct bh_offline *w, struct bh_arena *a,
                                     const struct bh_rebalance_options *o,
                                     const struct bh_pending *pods, size_t n, struct bh_err *err);
#endif
