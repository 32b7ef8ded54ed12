/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/queue/queue.h - pods that wait: active, backoff, unschedulable; pods in flight
 *
 * Owns the entries of all pending pods of our profiles (record copy, shape reference, counters). A
 * pod is in exactly one place: active heap (priority desc, then time of entry), backoff heap
 * (rejected), error-backoff heap, the unschedulable pool (gated pods included), or in flight
 * (popped, cycle running or bind under way). Wall-clock seconds and truncation as upstream's
 * (scheduler-core.md 2.3); durations themselves come in as now_ns arguments: nothing here looks at
 * a clock. Events that arrive while a pod is in flight are recorded and replayed when it returns
 * (2.7, 2.10). Cost: the pool is indexed by rejecting plugin and shape, so an event asks once for
 * each kind of pod that it could help (pool.c).
 * Upstream: pkg/scheduler/backend/queue; differences: Berth wakes a superset only where upstream's
 * hint is known to be wrong.
 */
#ifndef BH_QUEUE_H
#define BH_QUEUE_H

#include "scheduler/engine/engine.h"
#include "scheduler/queue/pods.h"

struct bh_queue;
struct bh_queue_options {
    int64_t initial_backoff_ns, max_backoff_ns;
    int64_t max_in_unschedulable_ns; /* 5 min */
    /* Ask for each pod too where one answer is taken for many, and abort on a difference. */
    bool verify;
    bool
        keep_backoff; /* nothing is popped before its backoff ends (SchedulerPopFromBackoffQ off) */
};
struct bh_queued_pod {        /* one entry; read-only outside the queue */
    struct bh_pod_state *pod; /* its handle: found through it, and by it (pods.h) */
    struct bh_pending pending;
    int64_t timestamp_ns, initial_attempt_ns;
    uint32_t attempts, unschedulable_count, consecutive_errors;
    int64_t popped_ns;            /* when the attempt under way began */
    uint32_t evaluated, feasible; /* nodes of the last decision, for the log */
    uint16_t trigger;             /* what brought it back to the queue: bh_queue_trigger */
    uint64_t decision;            /* the attempt's number in the record, 0 = none */
    bool flushed; /* it was moved because it had waited too long, and was not rejected since */
    char *resource_version; /* of the API object (event's regarding.resourceVersion) */
    /* What the API server was last told, or said itself: see bh_queue_told. */
    uint64_t told_condition;          /* fingerprint of the PodScheduled condition, 0 = none */
    bh_sym told_nomination;           /* status.nominatedNodeName */
    char *last_reason, *last_message; /* of the last failed attempt (bh_queue_say), or NULL */
};

struct bh_queue *bh_queue_new(struct bh_engine *e, const struct bh_queue_options *o);
void bh_queue_free(struct bh_queue *q);
/* The handles of all pods, for callers that hang more on them; the queue's own are among them. */
struct bh_pods *bh_queue_pods(struct bh_queue *q);
struct bh_pod_state *bh_queue_pod(const struct bh_queue *q, struct bh_str uid); /* or NULL */
/* A function that is given a pod without an entry here, or NULL, does nothing.
 *
 * Pod objects from the watcher: the record is copied; the shape reference is taken over. */
/* A new pod, or a change of one; of one whose bind is under way only the object is replaced. s: its
 * handle, NULL: it is looked up. */
void bh_queue_update(struct bh_queue *q, struct bh_pod_state *s, const struct bh_pod_rec *pod,
                     bh_shape_id shape, const char *resource_version, int64_t now_ns);
void bh_queue_told(struct bh_pod_state *s, uint64_t condition, bh_sym nomination);
void bh_queue_delete(struct bh_queue *q, struct bh_pod_state *s);
/* Next pod to try, NULL when there is none; it is in flight until done or return. Pops a rejected
 * pod before its backoff ends when nothing is active (upstream's PopFromBackoffQ). */
struct bh_queued_pod *bh_queue_pop(struct bh_queue *q, int64_t now_ns);
/* The same for one pod that waits, in whatever place; NULL: it does not. */
struct bh_queued_pod *bh_queue_take(struct bh_queue *q, struct bh_pod_state *s, int64_t now_ns);
/* The same for a pod whose group is tried: it is activated first. NULL also if it is gated. */
struct bh_queued_pod *bh_queue_take_member(struct bh_queue *q, struct bh_pod_state *s,
                                           int64_t now_ns);
/* The cycle ended well and the write is on its way: events are no longer recorded for the pod,
 * which stays known until done (bound) or return (the write failed: error backoff, counters kept).
 */
void bh_queue_binding(struct bh_queue *q, struct bh_pod_state *s);
/* The cycle ended well but for Permit, where the pod waits: events go on being recorded for it.
 * Then binding, done or return. */
void bh_queue_waiting(struct bh_queue *q, struct bh_pod_state *s);
void bh_queue_done(struct bh_queue *q, struct bh_pod_state *s); /* bound or gone */
/* The attempt failed: d tells the rejecting plugins (none = error backoff). */
void bh_queue_return(struct bh_queue *q, struct bh_pod_state *s, const char *const *plugins,
                     uint32_t n_plugins, const char *const *pending_plugins, uint32_t n_pending,
                     int64_t now_ns);
/* A cluster event: moves the pods it can help. */
void bh_queue_event(struct bh_queue *q, const struct bh_cluster_event *ev, int64_t now_ns);
/* The same for pods of no higher priority: room that was only promised to another kept no others
 * out. */
void bh_queue_event_up_to(struct bh_queue *q, const struct bh_cluster_event *ev,
                          int32_t max_priority, int64_t now_ns);
/* Every rejected pod gets another try after its backoff, and every gated one asks its gates again:
 * after a rebuild of the cluster's state, when the single events in between are not known. (A claim
 * that came after its pod, for one.) So does one in flight, or at Permit, that is rejected then. */
void bh_queue_wake_all(struct bh_queue *q, int64_t now_ns);
void bh_queue_activate(struct bh_queue *q, struct bh_pod_state *s, int64_t now_ns);
/* DefaultPreemption's PreEnqueue: a pod that is about to move stays, gated, as long as its victims
 * are being evicted (bh_pod_evicts), and events pass it by. That is over: it is moved now, if it
 * was kept. To be called whenever bh_pod_evicts() becomes false. */
void bh_queue_release(struct bh_queue *q, struct bh_pod_state *s, int64_t now_ns);
/* Backoff expiries and the 30 s / 5 min flush; returns when it wants to be called again (ns from
 * now, INT64_MAX = only after a change). */
int64_t bh_queue_tick(struct bh_queue *q, int64_t now_ns);
/* Why the last attempt failed; for people only, the queue does not look at it. */
void bh_queue_say(struct bh_pod_state *s, const char *reason, const char *message);

/* ---- looking from outside (view.c) ----------------------------------------------------------- */
struct bh_queue_view {
    enum bh_queue_place place;
    int64_t backoff_until_ns; /* BACKOFF, ERROR_BACKOFF; else 0 */
    /* GATED: the one that gates it; else what rejected the last attempt. Names as in decisions. */
    const char *plugins[64];
    uint32_t n_plugins;
};
void bh_queue_view(const struct bh_queue *q, const struct bh_queued_pod *p,
                   struct bh_queue_view *ret);
enum bh_queue_walk {
    BH_QUEUE_WALK_END,
    BH_QUEUE_WALK_MORE, /* go on with *cursor */
    BH_QUEUE_WALK_MOVED /* pods moved in memory: nothing was visited, begin again with 0 */
};
/* Visits pods from *cursor (0 = the start) on, until fn says false (that pod comes again) or budget
 * slots of the table were looked at. A pod that comes or goes during the walk may be missed, one
 * that stays is visited. */
enum bh_queue_walk bh_queue_walk(const struct bh_queue *q, uint64_t *cursor, unsigned budget,
                                 bool (*fn)(void *arg, const struct bh_queued_pod *p,
                                            enum bh_queue_place place),
                                 void *arg);
struct bh_queue_stats {
    uint64_t active, backoff, unschedulable, gated, in_flight;
    uint64_t pods;    /* known, in whatever place */
    uint64_t popped;  /* of in_flight: their cycle runs */
    uint64_t binding; /* BINDING and WAITING */
    uint64_t hints;   /* asked since the start */
};
void bh_queue_stats(const struct bh_queue *q, struct bh_queue_stats *ret);
/* queue_incoming_pods_total{queue,event}: called with upstream's labels. */
void bh_queue_on_incoming(struct bh_queue *q,
                          void (*fn)(void *arg, const char *queue, const char *event), void *arg);
/* How long single queueing hints took, by clock_ns: told of the first BH_HINT_SAMPLES of a second
 * (upstream: what fits into a buffer of that size, flushed each second). fn may not use the queue.
 */
#define BH_HINT_SAMPLES 1000u
typedef void bh_queue_hint_fn(void *arg, const char *plugin, const struct bh_cluster_event *ev,
                              enum bh_hint hint, uint64_t ns);
void bh_queue_on_hint(struct bh_queue *q, uint64_t (*clock_ns)(void), bh_queue_hint_fn *fn,
                      void *arg);
/* unschedulable_pods: how many pods a plugin holds back, from its rejection or its gate to the next
 * attempt; 0 for pairs that were once above it. */
void bh_queue_each_rejector(const struct bh_queue *q,
                            void (*fn)(void *arg, const char *plugin, bh_sym profile, uint64_t n),
                            void *arg);
/* inflight_events: the label of every event that is kept while pods are in flight, "PodPopped" for
 * the pods themselves. */
void bh_queue_each_in_flight(const struct bh_queue *q, void (*fn)(void *arg, const char *label),
                             void *arg);
/* "NodeUpdateNodeTaint": upstream's name of an event, written to out. */
const char *bh_queue_event_label(const struct bh_cluster_event *ev, char out[static 96]);
/* What brought the pod to its attempt, upstream's name of an event ("PodAdd", "AssignedPodDelete",
 * "ScheduleAttemptFailure" after an error); the wait for a backoff's end does not count. */
const char *bh_queue_trigger(const struct bh_queue *q, const struct bh_queued_pod *p);
/* Start of a new feed from the watcher: entries not added again before sync_end are deleted. */
void bh_queue_sync_begin(struct bh_queue *q);
void bh_queue_sync_end(struct bh_queue *q);
#endif
