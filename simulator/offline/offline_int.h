/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/offline/offline_int.h - what the attempts of pods and of groups share
 */
#ifndef BH_OFFLINE_INT_H
#define BH_OFFLINE_INT_H

#include "simulator/offline/offline.h"

/* ---- attempt.c ---- */
/* Copies that outlive whatever is evicted. */
struct bh_victim *bh_offline_keep_victims(struct bh_arena *a, const struct bh_victim *v,
                                          uint32_t n);
/* The pod got no node: back to the queue, nominated, its victims leave. began: of the attempt. */
void bh_offline_rejected(struct bh_offline *w, const struct bh_pending *p,
                         const struct bh_decision *d, uint64_t began);
/* Assumed, reserved, permitted: it is bound. promised: where it was nominated to. */
void bh_offline_placed(struct bh_offline *w, const struct bh_pending *p, bh_sym node,
                       bh_sym promised, uint64_t began);

/* ---- offline.c ---- */
/* Room that the pod had, assumed or promised, is free: pods that wait for room hear of it. */
void bh_offline_tell_room(struct bh_offline *w, const struct bh_pod_rec *pod,
                          const struct bh_shape_rec *shape, bool assumed);

/* ---- permit.c ---- */
/* Permit said Wait: the pod keeps its room, and waits. promised: where it was nominated to. */
void bh_offline_wait(struct bh_offline *w, const struct bh_pending *p, bh_sym node, bh_sym promised,
                     uint64_t began);
/* Goes on with those that are allowed, or rejected. false: there is none. */
bool bh_offline_look_at_waiting(struct bh_offline *w);
/* When the first plugin gives up; INT64_MAX = none waits. */
int64_t bh_offline_waiting_due(const struct bh_offline *w);
/* It is gone, or has a node by another hand: it is not looked at any more. */
void bh_offline_wait_over(struct bh_offline *w, struct bh_str uid);
/* A victim that waits is not deleted, it goes back to the queue. false: it does not wait. */
bool bh_offline_preempt_waiting(struct bh_offline *w, struct bh_str uid);
void bh_offline_waiting_fini(struct bh_offline *w);

/* ---- group.c ---- */
/* The pod was popped. false: it belongs to no group that is scheduled as one. */
bool bh_offline_group_cycle(struct bh_offline *w, struct bh_queued_pod *first, uint64_t began);
#endif
