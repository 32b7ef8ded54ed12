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

/* ---- group.c ---- */
/* The pod was popped. false: it belongs to no group that is scheduled as one. */
bool bh_offline_group_cycle(struct bh_offline *w, struct bh_queued_pod *first, uint64_t began);
#endif
