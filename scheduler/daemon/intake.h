/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/intake.h - what a watcher tells, into an engine: the snapshot's change log and
 * the feed of objects
 *
 * Two channels, one order: an object of the feed carries the log position it belongs to, and the
 * log is followed up to there before the object is acted on. So a pod that got bound is on its node
 * in the engine before BOUND is passed on, and never counts nowhere.
 *
 * Used by: the scheduler's daemon, and observers (`berth explain`), which read everything as a
 * scheduler does, decide nothing, and count for nothing at the watcher.
 * Threads: one owner. Fails with: negative errno at open. Later trouble is a state
 * (snapshot_trouble, and of the feed): the next calls try again.
 */
#ifndef BH_SCHED_INTAKE_H
#define BH_SCHED_INTAKE_H

#include "common/feed/feed.h"
#include "common/snapshot/snapshot.h"
#include "scheduler/engine/engine.h"

#define BH_SNAPSHOT_STALE_NS UINT64_C(5000000000) /* no heartbeat for this long: stop deciding */

struct K8s__Pod;
struct bh_intake_pod { /* a pending pod; valid during the call */
    const struct bh_pod_rec *pod;
    const struct bh_shape_rec *shape;
    const struct K8s__Pod *object;
    const char *resource_version;
};
/* What the owner wants to hear; any of them may be NULL. None may call back into the intake. */
struct bh_intake_callbacks {
    /* Something changed that plugins may care about; the engine has it already (a node's deletion:
     * not yet, as upstream). Silent for what a rebuild or the feed's initial state delivers. */
    void (*event)(void *arg, const struct bh_cluster_event *ev);
    void (*rebuilt)(void *arg);    /* the snapshot is complete (again) */
    void (*begin)(void *arg);      /* a new feed: its initial state follows */
    void (*kind_known)(void *arg); /* a kind that plugins read may be decided by (again) */
    void (*complete)(void *arg);   /* the initial state is complete: what was not named is gone */
    void (*assigned)(void *arg, const struct bh_pod_rec *pod, const struct bh_shape_rec *shape);
    void (*pending)(void *arg, const struct bh_intake_pod *p); /* new or changed */
    void (*deleted)(void *arg, const char *uid);               /* a pending pod is gone */
    void (*bound)(void *arg, const char *uid);                 /* ... is on its node */
    void *arg;
};
struct bh_intake {
    struct bh_engine *engine;
    struct bh_symtab *symtab; /* the engine's */
    struct bh_intake_callbacks cb;
    struct bh_feed feed;
    const struct bh_kind_info *kinds[BH_CUSTOM_KINDS]; /* that plugins read */
    struct bh_arena object_arena;                      /* one decoded object at a time */

    struct bh_snap_reader *reader;
    bool snapshot_ready;   /* attached, and what was delivered is consistent */
    bool snapshot_current; /* the last follow reached the head of the log */
    bool rebuilding;
    uint64_t followed; /* changes delivered since the start */
    char snapshot_trouble[160];

    /* The leader lease as of the last follow. A watcher that is gone, or has just started, says
     * nothing: what was allowed before holds until its time. */
    uint64_t lease_term, lease_until_ns; /* bh_snap_set_lease */
    bool leading;                        /* lease_until_ns was in the future */
};
struct bh_intake_options {
    const char *runtime_dir;
    /* Whose feed and snapshot are believed; NULL = any user's, for observers. */
    const struct bh_bus_users *users;
    struct bh_engine *engine; /* borrowed */
    uint64_t epoch;           /* start of this process: rises with every start */
    bool observer;
    struct bh_intake_callbacks cb;
};
/* Neither the watcher nor its snapshot need to be there yet. fini also after a failed init. */
int bh_intake_init(struct bh_intake *in, const struct bh_intake_options *o, struct bh_err *err);
void bh_intake_fini(struct bh_intake *in);
/* Follows the change log, at most max_events changes. Returns how many were delivered, 0 = nothing
 * new. */
unsigned bh_intake_follow(struct bh_intake *in, unsigned max_events);
/* bh_feed_tick, and what the lease says now; call it every turn. The rest of the feed is its own. */
void bh_intake_tick(struct bh_intake *in);
/* The snapshot's writer was alive within max_age_ns. */
bool bh_intake_fresh(const struct bh_intake *in, uint64_t max_age_ns);
/* Snapshot and feed are of the same start of the watcher. */
bool bh_intake_one_incarnation(const struct bh_intake *in);
/* Everything there is has been delivered, and both channels agree. */
bool bh_intake_complete(const struct bh_intake *in);

/* One change of a node or of a pod on a node: into the engine, and what it means to the event
 * callback. For owners whose objects come another way than through a snapshot: engine, symtab and
 * cb are all they have to set. */
void bh_intake_put_node(struct bh_intake *in, const struct bh_node_rec *n);
void bh_intake_del_node(struct bh_intake *in, const struct bh_node_rec *n);
void bh_intake_put_pod(struct bh_intake *in, const struct bh_pod_rec *pod,
                       const struct bh_shape_rec *shape);
void bh_intake_del_pod(struct bh_intake *in, const struct bh_pod_rec *pod,
                       const struct bh_shape_rec *shape);
#endif
