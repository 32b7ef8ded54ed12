/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/prebind.h - pods between Reserve and Bind: at Permit, while their volumes and
 * devices are written and become ready, and while that is undone
 *
 *   PERMIT -> WRITES -> CHECKS -> bind (ledger.h)
 *      \         \         \
 *       +---------+---------+--> UNDO -> Unreserve, Forget, back to the queue
 *
 * A pod's writes go out one after the other, as items of the ledger, at most one at a time: which
 * of them were made when one fails is the same as with upstream. A pod that is to be undone waits
 * for the answer to the write that is out: until then no other pod may have its devices. Its
 * reservation ends after everything was undone at the API server, and only then it may be tried
 * anew.
 *
 * Owns:       a copy of each such pod (its entry in the queue may go earlier), the writes not yet
 *             in the ledger.
 * Invariants: a pod in here is assumed and reserved, and has no bind in the ledger. Exception:
 *             PostFilter's writes; their pod is back in the queue, but is not decided before they
 *             are answered. Restarts: everything can be lost: what was written is found at the API
 *             server, and writes that may be on the wire for the scheduler before us are waited for
 *             (adopt.c).
 * Runs in:    the duty cycle.
 * Upstream:   pkg/scheduler/schedule_one.go (bindingCycle), waiting pods.
 */
#ifndef BH_SCHED_PREBIND_H
#define BH_SCHED_PREBIND_H

#include <sys/queue.h>

#include "scheduler/daemon/ledger.h"
#include "scheduler/queue/queue.h"

struct bh_sched_daemon;
struct bh_prebind;
struct bh_prebinds {
    uint64_t n;
    TAILQ_HEAD(bh_prebind_list, bh_prebind) list; /* looked at longest ago first */
    uint64_t looked_ns, version; /* when and at what version of the objects all were looked at */
};
enum bh_over { /* how a binding cycle ended other than well */
               BH_OVER_ERROR = 1,
               BH_OVER_REJECTED, /* by a Permit plugin */
               BH_OVER_REFUSED,  /* by a PreBind or Bind plugin that did not fail */
               BH_OVER_SKIPPED,  /* by all Bind plugins: tried again, and nobody is told */
               BH_OVER_GONE,     /* the pod */
               BH_OVER_RECALLED, /* the lease ended: no event, no condition */
               BH_OVER_ELSEWHERE /* another client bound it: neither, and nothing is undone */
};

void bh_sched_prebind_fini(struct bh_sched_daemon *d);
/* Reserved and permitted, or waits at Permit. false: nothing to wait for, it can be bound. */
bool bh_sched_prebind_begin(struct bh_sched_daemon *d, const struct bh_queued_pod *p, bh_sym node,
                            bool waits);
/* Writes that PostFilter wants. */
void bh_sched_prebind_aside(struct bh_sched_daemon *d, const struct bh_queued_pod *p,
                            const struct bh_write *v, uint32_t n);
void bh_sched_prebind_turn(struct bh_sched_daemon *d);
/* The node it is on its way to; BH_SYM_NONE: it is not in here. */
bh_sym bh_sched_prebind_node(const struct bh_pod_state *s);

/* The binding cycle of an assumed pod failed: undo, Unreserve, Forget, requeue. text is copied. */
void bh_sched_unwind(struct bh_sched_daemon *d, const struct bh_queued_pod *p, bh_sym node,
                     enum bh_over how, const char *plugin, const char *text);
/* The same for a pod in here that was deleted; false: it is not. */
bool bh_sched_prebind_gone(struct bh_sched_daemon *d, struct bh_pod_state *s);
/* It is to make room (upstream: preemption in memory); false: it is not in here. */
bool bh_sched_prebind_preempt(struct bh_sched_daemon *d, struct bh_str uid);
/* Another client bound the pod: Unreserve, once the write that is out is answered, and nothing else. */
void bh_sched_prebind_drop(struct bh_sched_daemon *d, struct bh_pod_state *s);
/* It came back to the queue and was popped while it is in here. false: it is not. */
bool bh_sched_prebind_rejoin(struct bh_sched_daemon *d, const struct bh_queued_pod *p);

/* A definite answer to a write; w is still in the ledger. */
void bh_sched_prebind_answered(struct bh_sched_daemon *d, struct bh_work *w,
                               const Berth__WorkResult *r);
/* The item leaves the ledger unwritten. */
void bh_sched_prebind_recalled(struct bh_sched_daemon *d, struct bh_work *w);
void bh_sched_prebind_end_term(struct bh_sched_daemon *d);
#endif
