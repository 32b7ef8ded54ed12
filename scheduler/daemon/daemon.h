/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/daemon.h - the scheduler as a process: the owner object and its duty cycle
 *
 * One turn: follow the snapshot's change log -> drain the watcher's feed -> drain binders' answers
 * -> timers -> take decisions (at most BH_TURN_CYCLES) -> flush work to binders. A turn never
 * blocks; when it found nothing to do the loop sleeps until a socket wakes it, at most BH_IDLE_MS
 * (the snapshot has no descriptor to wait on).
 *
 * The process holds no API credentials. All its state can be lost: it re-attaches to the snapshot,
 * asks the watcher for the pending pods and binders for what they have on the wire (ledger.h).
 *
 * Files: daemon.c owner, start and stop; feed.c snapshot and watcher; cycle.c decisions and
 * failures; results.c binders; daemon_metrics.c metrics and probes. Threads: one.
 */
#ifndef BH_SCHED_DAEMON_H
#define BH_SCHED_DAEMON_H

#include "common/base/loop.h"
#include "common/bus/bus.h"
#include "common/http/probes.h"
#include "common/snapshot/snapshot.h"
#include "scheduler/daemon/ledger.h"
#include "scheduler/queue/queue.h"

#define BH_TURN_CYCLES       64u
#define BH_TURN_MESSAGES     64u
#define BH_TURN_LOG_EVENTS   4096u
#define BH_IDLE_MS           5u
#define BH_SNAPSHOT_STALE_NS UINT64_C(5000000000) /* no heartbeat for this long: stop deciding */
#define BH_BINDER_GRACE_NS                                                                         \
    UINT64_C(1000000000) /* at start: wait for binders' in-flight reports                          \
                          */

/* Invariants:
 * - A pod is assumed in the engine only while the queue has its entry (place BINDING) or the ledger
 * its bind. The entry goes when the watcher says BOUND and the bind is answered, whichever is last.
 * What breaks this (a watcher that restarted, a pod deleted while nobody looked) is found by
 *   bh_sched_sweep() once feed and snapshot are both complete.
 * - A pod that has a bind in the ledger, or that an earlier scheduler's binder reported, goes to
 * that node and no other until the outcome is definite.
 */
struct bh_sched_metrics;
struct bh_sched_daemon_options {
    const char *runtime_dir;
    const char *metrics_address;
    const struct bh_sched_config *config;
    enum bh_tie_break tie_break;
    bool verify;
    uint64_t seed;
};
struct bh_sched_timing { /* set from the constants above; tests change it after init */
    uint64_t snapshot_stale_ns, binder_grace_ns;
};
struct bh_adopted { /* a bind of the scheduler before us */
    char *node;
    bool done; /* the API server has it: nothing to write, the watch will tell */
};
struct bh_sched_daemon {
    struct bh_sched_daemon_options o;
    struct bh_sched_timing timing;
    uv_loop_t *loop;
    uint64_t epoch; /* start of this process: rises with every start (boot clock) */

    struct bh_engine *engine;
    struct bh_queue *queue;
    struct bh_ledger *ledger;
    struct bh_symtab *symtab;     /* the engine's */
    struct bh_arena object_arena; /* one decoded object at a time */

    struct bh_snap_reader *reader;
    bool snapshot_ready;   /* attached, and what was delivered is consistent */
    bool snapshot_current; /* the last follow reached the head of the log */
    bool rebuilding;
    bool sweep_due;    /* see bh_sched_sweep */
    uint64_t followed; /* changes delivered since the start */
    char snapshot_trouble[160];

    struct bh_bus *feed;
    struct bh_zpoll *feed_poll;
    bool feed_begun, feed_synced, leading;
    uint64_t feed_seq, feed_incarnation, hello_sent_ns, ack_sent_ns, lease_term;

    struct bh_bus *binders;
    struct bh_zpoll *binders_poll;
    struct bh_arena bus_arena;
    uint64_t started_ns;
    struct bh_map
        adopted; /* uid -> struct bh_adopted; pods that are pending, or may turn out to be */
    uint64_t crowd_logged_ns; /* when "too many binders" was said */

    uv_timer_t idle;
    bool stopping;
    struct bh_metrics *metrics;
    struct bh_sched_metrics *m;
    struct bh_probes *probes;
    struct bh_keepalive *keepalive;
    int64_t wall_base_ns; /* wall clock at start; durations come from the monotonic clock */
    uint64_t mono_base_ns;
};

int bh_sched_daemon_run(const struct bh_sched_daemon_options *o, struct bh_err *err);
/* The parts of it, for tests: the caller owns the loop, runs it between turns and drains it after
 * fini. fini also cleans up after an init that failed. */
int bh_sched_daemon_init(struct bh_sched_daemon *d, const struct bh_sched_daemon_options *o,
                         uv_loop_t *loop, struct bh_err *err);
unsigned bh_sched_daemon_turn(struct bh_sched_daemon *d); /* amount of work done, 0 = may sleep */
void bh_sched_daemon_fini(struct bh_sched_daemon *d);

/* Unix time that never steps: wall clock at start plus monotonic time since. */
int64_t bh_sched_now(const struct bh_sched_daemon *d);

/* feed.c */
unsigned bh_sched_follow(struct bh_sched_daemon *d); /* 0 = nothing new */
bool bh_sched_snapshot_fresh(const struct bh_sched_daemon *d);
unsigned bh_sched_drain_feed(struct bh_sched_daemon *d);
void bh_sched_feed_tick(struct bh_sched_daemon *d);
bool bh_sched_may_decide(const struct bh_sched_daemon *d);
/* cycle.c */
unsigned bh_sched_cycles(struct bh_sched_daemon *d, unsigned max);
/* Fingerprint of a PodScheduled condition, never 0: the same is not patched twice. */
uint64_t bh_sched_condition_hash(const char *reason, const char *message);
/* A bind that did not happen: forget, tell the waiting pods, send the pod back. */
void bh_sched_bind_failed(struct bh_sched_daemon *d, struct bh_work *w, const char *message);
/* A pending pod, new or changed; one that was gone or whose nomination ended leaves room for
 * others. */
void bh_sched_pod_update(struct bh_sched_daemon *d, const struct bh_pod_rec *pod,
                         const struct bh_shape_rec *shape, const char *resource_version);
void bh_sched_pod_gone(struct bh_sched_daemon *d, struct bh_str uid);
/* Forgets assumed pods that neither queue nor ledger knows, when that is due and the snapshot and
 * the feed are complete: such a pod was deleted without anybody telling us. */
void bh_sched_sweep(struct bh_sched_daemon *d);
/* results.c */
unsigned bh_sched_drain_binders(struct bh_sched_daemon *d);
void bh_sched_unadopt(struct bh_sched_daemon *d, struct bh_str uid);
/* Drops adopted binds of pods that are not pending (any more). */
void bh_sched_review_adopted(struct bh_sched_daemon *d);
/* daemon_metrics.c */
void bh_sched_metrics_init(struct bh_sched_daemon *d);
void bh_sched_metrics_free(struct bh_sched_daemon *d);
void bh_sched_count_attempt(struct bh_sched_daemon *d, const char *result, const char *profile,
                            double algorithm_s);
void bh_sched_count_bound(struct bh_sched_daemon *d, const struct bh_queued_pod *p,
                          const char *profile, double attempt_s);
void bh_sched_count_preemption(struct bh_sched_daemon *d, uint32_t victims);
void bh_sched_count_outcome(struct bh_sched_daemon *d, Berth__Outcome o);
#endif
