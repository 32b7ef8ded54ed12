/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/ledger.h - what binders were asked to do and have not answered yet
 *
 * Owns:       every work item from the decision to its definite outcome, and the list of binders.
 * Invariants: an item is queued (one of four priorities), out with exactly one binder, or parked
 *             behind the item that is out for the same pod: binds and status patches of one pod go
 *             one after the other, so that an older state is never written last. A pod uid has at
 *             most one BIND item. A binder that is silent for `silence_ns` loses its items, and so
 *             does one that left an item unanswered for `answer_ns` (the answer was lost): they go
 *             back to the front of the queue under the SAME id and node, since the first write may
 *             have happened (every write is safe to repeat; the second answer is ignored). One whose
 *             connection is gone loses them at once, but for what undoes later writes (work.h) of
 *             a term: that waits, and what is parked behind it, until it would not write it any
 *             more. A bind whose answer was good, or was bad while an earlier request of it may
 *             still take effect, is kept until the watch shows the pod on its node or gone, and
 *             looked after when that takes too long. Work goes only to binders that were greeted:
 *             they know our epoch and have told what they had on the wire before it. Bounds: events
 *             above BH_LEDGER_MAX_EVENTS are dropped and counted, first of all work; status
 *             patches are coalesced per pod (newest wins), and a bind makes a queued one moot; binds and
 *             deletes are never dropped, they are bounded by the decisions the daemon allows in
 *             flight (BH_LEDGER_MAX_BINDS).
 * Runs in:    the scheduler's duty cycle. No locks.
 * Upstream:   none; kube-scheduler binds from goroutines of its own process.
 */
#ifndef BH_LEDGER_H
#define BH_LEDGER_H

#include "common/base/map.h"
#include "common/bus/bus.h"
#include "scheduler/daemon/inflight.h"
#include "scheduler/daemon/work.h"

#define BH_LEDGER_MAX_BINDS   20000u
#define BH_LEDGER_MAX_EVENTS  20000u
#define BH_LEDGER_MAX_BINDERS 64u
#define BH_BINDER_SILENCE_NS  BH_BUS_SILENCE_NS
#define BH_BINDER_ANSWER_NS   UINT64_C(45000000000) /* a binder gives up after 30 s */

struct bh_binder {
    struct bh_peer peer;
    char name[64];
    bool used, greeted;   /* greeted: it said hello with our epoch */
    uint32_t window, out; /* items it is willing to hold; items it holds */
    uint64_t last_seen_ns, hello_sent_ns;
    uint64_t stamp_boot_ns; /* its clock, of its last hello */
    uint64_t passed;        /* the flush in which nothing was for it */
    bool idle;              /* it has said that it may write nothing, and that nothing is out */
    struct bh_works list;   /* items it holds */
};
struct bh_ledger;
struct bh_ledger *bh_ledger_new(uint64_t epoch);
/* Where binds and claims are written down before they go out; borrowed. */
void bh_ledger_record(struct bh_ledger *l, struct bh_inflight *f);
/* Other bounds than BH_BINDER_SILENCE_NS and BH_BINDER_ANSWER_NS. */
void bh_ledger_patience(struct bh_ledger *l, uint64_t silence_ns, uint64_t answer_ns);
void bh_ledger_free(struct bh_ledger *l);
/* Takes w over (fields but id filled in by the caller with bh_strdup; BIND and PATCH_STATUS have
 * their pod). Frees it at once when the
 * bound for events is reached, and a status patch when a bind of the pod is parked already (returns
 * false). */
bool bh_ledger_add(struct bh_ledger *l, struct bh_work *w);
void bh_ledger_bound_seen(struct bh_ledger *l, struct bh_work *w); /* sets it */
/* An answered BIND of which the watch has shown nothing yet: it stays, with its slot of the record,
 * until the owner ends it. From due_ns (bh_mono_ns) on bh_ledger_overdue makes it a look. What was
 * parked behind it is queued. */
void bh_ledger_keep(struct bh_ledger *l, struct bh_work *w, uint64_t due_ns);
/* Kept items that are due are queued again, as looks under another id. Returns how many. */
unsigned bh_ledger_overdue(struct bh_ledger *l, uint64_t now_ns);
/* A status that a binder may be writing for the scheduler before us (w->former_id): what we want of that
 * pod or group waits for it, until due_ns (bh_mono_ns) at most. Not where something of ours was first. */
void bh_ledger_adopt(struct bh_ledger *l, struct bh_work *w, uint64_t due_ns);
/* It is answered: done, or never to be. */
void bh_ledger_end_adopted(struct bh_ledger *l, struct bh_str uid, uint64_t former_id);
/* Ends the kept items that fn says so of. */
void bh_ledger_end_kept(struct bh_ledger *l, bool (*fn)(void *arg, const struct bh_work *w),
                        void *arg);
/* The victim that waits for the others of this preemptor (bh_work.last) is left alone. */
void bh_ledger_spare(struct bh_ledger *l, struct bh_pod_state *preemptor);
/* The next BIND whose turn it is and that is written outside, by an extender: it is out from now
 * on, until bh_ledger_finish, or bh_ledger_inside: a binder shall write it after all. */
struct bh_work *bh_ledger_next_outside(struct bh_ledger *l);
void bh_ledger_inside(struct bh_ledger *l, struct bh_work *w);
struct bh_work *bh_ledger_find(struct bh_ledger *l, uint64_t id);
/* Ends an item; what was parked behind it is queued. */
void bh_ledger_finish(struct bh_ledger *l, struct bh_work *w);
/* Puts an item back to the front of its lane (outcome unknown): same id, attempt + 1. A status
 * patch with something newer behind it is not worth that: it ends instead. */
void bh_ledger_retry(struct bh_ledger *l, struct bh_work *w);

/* Any message of a binder. New: neither greeted nor any work. NULL when the table is full. */
struct bh_binder *bh_ledger_binder(struct bh_ledger *l, const struct bh_peer *peer,
                                   const char *name, uint64_t now_ns);
void bh_ledger_drop_binder(struct bh_ledger *l,
                           struct bh_binder *b); /* its items are queued again */
/* Drops silent binders and takes back what was never answered; returns how many binders. */
unsigned bh_ledger_expire(struct bh_ledger *l, uint64_t now_ns);
/* Hands queued work to greeted binders with room in their window. Returns the number of items
 * sent. */
unsigned bh_ledger_flush(struct bh_ledger *l, struct bh_bus *bus, uint64_t now_ns);
/* Term of the lease under which everything added from now on was decided; 0 = no election. */
void bh_ledger_begin_term(struct bh_ledger *l, uint64_t term);
/* Ends the items that no binder has: all of them, or those of another term than today's. fn hears
 * of each before it is gone. Returns how many. Cheap when there are none. */
unsigned bh_ledger_recall(struct bh_ledger *l, bool all, void (*fn)(void *arg, struct bh_work *w),
                          void *arg);
struct bh_binder *bh_ledger_next_binder(struct bh_ledger *l, size_t *it); /* from 0; NULL = end */
struct bh_ledger_stats {
    uint64_t queued, out, binds, binders, dropped_events, refused, reissued, sent;
    uint64_t kept;   /* not counted in binds */
    uint64_t seen;   /* binds that the watch has shown and no binder answered */
    uint64_t strays; /* binders that were lost while not idle */
};
uint64_t bh_ledger_binds(const struct bh_ledger *l); /* kept ones excepted */
void bh_ledger_stats(const struct bh_ledger *l, struct bh_ledger_stats *ret);
#endif
