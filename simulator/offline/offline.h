/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/offline/offline.h - deciding without servers: an engine, its queue and a clock
 *
 * The one way in which anything but the daemon lets the scheduler decide: trials, scenarios,
 * `berth bench perf`, conformance cases, the property test; `berth explain` reads and puts its
 * objects with it. API objects become records and events (offline.c); an attempt goes from the queue
 * to a node or back, in the order in which the daemon's does (attempt.c), pods that go together
 * together (group.c).
 *
 * What a binder would do is done at once in the engine (effects.c), unless the owner has a place
 * where such things are written (struct bh_offline_hooks; world.h: a store with controllers): a
 * decided pod is on its node and has its claims; victims are gone, their devices free.
 *
 * A pod that Permit makes wait keeps its room until it is allowed, or rejected (permit.c); with
 * events_only nobody gives up for the mere passing of time.
 *
 * Differences from the daemon: a member of a PodGroup of scheduling.k8s.io that Permit makes wait is
 * bound at once with the others, extenders are asked in the engine but bind nothing, no condition is
 * written.
 * Clock:      the owner's; it moves now_ns. Nothing here looks at the machine's clock but to
 *             measure (timer), so a run repeats from its inputs and its seed.
 * Threads:    one owner. Worlds share nothing, any number may live in a process.
 */
#ifndef BH_OFFLINE_H
#define BH_OFFLINE_H

#include "scheduler/daemon/intake.h"
#include "scheduler/engine/engine.h"
#include "scheduler/queue/queue.h"

/* ---- objects --------------------------------------------------------------------------------- */

struct bh_offline_object { /* everything lives in the arena it was read into */
    const struct bh_kind_info *kind;
    const ProtobufCMessage *message;
    const char *ns, *name;      /* ns "" for kinds without */
    struct bh_node_rec *node;   /* Node */
    struct bh_pod_rec *pod;     /* Pod; pod->shape is 0 */
    struct bh_shape_rec *shape; /* Pod */
    bool finished;              /* Pod that Succeeded or Failed: it counts nowhere */
    uint32_t action;            /* of an owner that knows: BH_EV_ADD or BH_EV_UPDATE; 0 = look */
};
/* From an object's tree; records have the engine's symbols. -EINVAL, -E2BIG with the field. */
int bh_offline_read(struct bh_engine *e, struct bh_arena *a, const struct bh_kind_info *k,
                    const struct bh_json *tree, struct bh_offline_object *ret, struct bh_err *err);
/* The message of it alone. */
int bh_offline_message(struct bh_arena *a, const struct bh_kind_info *k, const struct bh_json *tree,
                       ProtobufCMessage **ret, struct bh_err *err);
/* The same from a message, which must live as long as the arena. */
int bh_offline_compile(struct bh_engine *e, struct bh_arena *a, const struct bh_kind_info *k,
                       const ProtobufCMessage *m, struct bh_offline_object *ret,
                       struct bh_err *err);

/* ---- the world ------------------------------------------------------------------------------- */

struct bh_offline_group { /* a group whose turn ended; valid during the call */
    const char *ns, *name;
    const struct bh_group_result *result;
    uint32_t members; /* that were tried */
};
struct bh_offline_try { /* an attempt that ended; valid during the call */
    const struct bh_pod_rec *pod;
    bh_shape_id shape;
    const struct bh_decision *failed; /* NULL: the pod goes to node */
    bh_sym node;
    uint64_t took_ns; /* time in the scheduler's library, by the options' timer */
};
/* Each may be NULL. None may call the world, but bind, evict and write may lead to
 * bh_offline_put() and bh_offline_del(). */
struct bh_offline_hooks {
    /* How the pod comes out, before anything follows from it; of a group's, the decision that
     * counts, with the lists of BH_EXPLAIN only where it was tried in one placement. */
    void (*decided)(void *arg, const struct bh_pending *p, const struct bh_decision *d);
    /* After an attempt, before its victims are evicted. */
    void (*tried)(void *arg, const struct bh_offline_try *t);
    /* Instead of doing it in the engine: write the binding, delete a victim (one not yet being
     * deleted), write what Reserve or PostFilter left to write. The engine hears of it by put and
     * del. */
    void (*bind)(void *arg, const struct bh_pending *p, bh_sym node);
    void (*evict)(void *arg, const char *ns, const char *name);
    void (*write)(void *arg, const struct bh_write *w);
    void *arg;
    /* How a group comes out, before anything follows from it; `tried` tells of its members then. */
    void (*grouped)(void *arg, const struct bh_offline_group *g);
    /* The pod has room on the node and waits at Permit, for these plugins ("A, B"); `tried` tells how
     * that ends. */
    void (*waits)(void *arg, const struct bh_pending *p, bh_sym node, const char *plugins);
};
struct bh_offline_options {
    const struct bh_sched_config *config; /* borrowed; NULL = defaults, only with no_queue */
    enum bh_tie_break tie_break;
    uint64_t seed;
    bool verify;
    bool rebuilt_snapshot; /* bh_engine_options */
    bool no_queue;         /* objects only; pending pods are the owner's */
    /* No pod comes back for the mere passing of time: no flush after five minutes, and a pod whose
     * attempt ended in an error that no plugin told leaves the queue. */
    bool events_only;
    unsigned flags;          /* of attempts: BH_EXPLAIN, BH_NO_PREEMPTION */
    int64_t now_ns;          /* unix time */
    uint64_t (*timer)(void); /* what the scheduler's library is timed by; NULL = bh_mono_ns */
    struct bh_offline_hooks hooks;
    const struct bh_engine_observer *observer; /* bh_engine_options; NULL: nobody */
};
struct bh_offline {
    struct bh_offline_options o;
    struct bh_engine *engine;
    struct bh_queue *queue;  /* NULL with no_queue */
    struct bh_intake intake; /* only what turns records into events */
    int64_t now_ns;
    int64_t arrived_ns; /* of the last pod that entered the queue */
    /* Time spent in the scheduler's library, by the options' timer: deciding (from the pop to
     * Permit, and putting back what was rejected), and taking in changes (records, shapes, cache,
     * queue, hints). */
    uint64_t decide_ns, intake_ns;
    /* How often, and the allocations that it took: from the pod to its node (without the queue),
     * and per change. */
    uint64_t decisions, decide_allocations, changes, change_allocations;
    uint64_t events; /* the queue was told of */
    /* With events_only: a group was held back when there had been so many events. More of them, and
     * it is tried again when nothing else can be. */
    bool held;
    uint64_t held_events;
    /* At Permit, in the order of their coming (permit.c). */
    struct bh_offline_waiter **waiting;
    uint32_t n_waiting, cap_waiting;
    struct bh_map gave_back; /* events_only: uids of those that were rejected there */
};
/* fini also after a failed init, and of a zeroed one. */
int bh_offline_init(struct bh_offline *w, const struct bh_offline_options *o, struct bh_err *err);
void bh_offline_fini(struct bh_offline *w);

/* New or changed, as a watch tells it: a pod without a node waits in the queue (when a profile is
 * its scheduler's), one that finished is gone, one with a node counts there; the queue hears what
 * changed. */
int bh_offline_put(struct bh_offline *w, const struct bh_offline_object *x, struct bh_err *err);
/* It goes from engine and queue; an unknown one is no error. key: the name, of a pod the uid. */
void bh_offline_del(struct bh_offline *w, enum bh_kind kind, const char *ns, const char *key);
/* Reads and puts. */
int bh_offline_put_tree(struct bh_offline *w, struct bh_arena *a, const struct bh_kind_info *k,
                        const struct bh_json *tree, struct bh_err *err);
/* A pending pod, into the queue, after those that came before. Also part of put. */
void bh_offline_pend(struct bh_offline *w, const struct bh_pod_rec *pod,
                     const struct bh_shape_rec *shape);
/* A waiting pod has no claim to the node that it was nominated to: others hear of the room. */
void bh_offline_promise_over(struct bh_offline *w, const struct bh_pending *p, bh_sym node);
/* To the queue, when there is one. */
void bh_offline_event(struct bh_offline *w, const struct bh_cluster_event *ev);

/* ---- deciding -------------------------------------------------------------------------------- */

/* From the pod to its node, taken: schedule, assume, Reserve, Permit. *ret_node and *ret_refused
 * only for BH_DECIDED: refused is NULL, WAIT, or the refusal (then bh_offline_give_back). */
const struct bh_decision *bh_offline_decide(struct bh_offline *w, const struct bh_pending *p,
                                            bh_sym *ret_node, const struct bh_status **ret_refused);
/* Unreserve and forget. */
void bh_offline_give_back(struct bh_offline *w, const struct bh_pending *p, bh_sym node);
/* The queue's next pod, with its group. false: none can be tried now. */
bool bh_offline_attempt(struct bh_offline *w);
/* When the queue, who waits at Permit, or a plugin (wake_at) wants to be looked at again; INT64_MAX =
 * only after a change. */
int64_t bh_offline_due(struct bh_offline *w);

/* ---- explaining (explain.c) ------------------------------------------------------------------ */

/* How a decision about the pod comes out now (scheduler/explain/explain.h); nothing changes. */
struct bh_json *bh_offline_explain(struct bh_offline *w, const struct bh_pending *p,
                                   struct bh_arena *a);
/* {result: {before, after}, nodes[]: {node, before, after}, unchanged} of two of them. */
struct bh_json *bh_explain_difference(struct bh_arena *a, const struct bh_json *before,
                                      const struct bh_json *after);

/* ---- what a binder would do, in the engine alone --------------------------------------------- */

/* An assumed pod is on its node, has its claims, and waits nowhere any more. */
void bh_offline_bind(struct bh_offline *w, const struct bh_pending *p, bh_sym node);
/* The pod is gone, and its devices are free when no other pod has them reserved. */
void bh_offline_evict(struct bh_offline *w, struct bh_str uid);
void bh_offline_write(struct bh_offline *w, const struct bh_write *x);
#endif
