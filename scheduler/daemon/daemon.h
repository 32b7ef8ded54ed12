/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/daemon.h - the scheduler as a process: the owner object and its duty cycle
 *
 * One turn: follow the snapshot's change log -> drain the watcher's feed -> drain binders' answers
 * -> timers -> take decisions (at most BH_TURN_CYCLES) -> flush work to binders -> answer at most
 * one question (control.h). A turn never blocks; when it found nothing to do the loop sleeps until
 * a socket wakes it, at most BH_IDLE_MS (the snapshot has no descriptor to wait on), or BH_REST_MS
 * when no pod waits for what it may say, and while the watcher fills it.
 *
 * The process holds no API credentials. All its state can be lost: it re-attaches to the snapshot,
 * asks the watcher for the pending pods and binders for what they have on the wire (ledger.h).
 *
 * Files: daemon.c owner, start and stop; intake.c snapshot and watcher; feed.c what follows from
 * what they say; lease.c whether it may decide and write; adopt.c what the scheduler before us left;
 * audit.c that no pod is lost; cycle.c decisions and failures; prebind.c what comes between Reserve
 * and Bind; group.c pods that go together; results.c binders; daemon_metrics.c and daemon_observe.c metrics.
 * Threads: one.
 */
#ifndef BH_SCHED_DAEMON_H
#define BH_SCHED_DAEMON_H

#include <sys/queue.h>

#include "common/base/loop.h"
#include "common/bus/bus.h"
#include "common/http/probes.h"
#include "scheduler/daemon/control.h"
#include "scheduler/daemon/intake.h"
#include "scheduler/daemon/ledger.h"
#include "scheduler/daemon/prebind.h"
#include "scheduler/decisions/recorder.h"
#include "scheduler/queue/queue.h"

#define BH_TURN_CYCLES     64u
#define BH_TURN_MESSAGES   64u
#define BH_TURN_LOG_EVENTS 4096u
#define BH_IDLE_MS         5u
/* While this one leads and no pod waits for anything in the cluster: whatever it has to act on
 * comes over a socket. */
#define BH_REST_MS     50u
#define BH_LETTERS_MAX 4096u
/* What was written is shown by the watch so long after it at most. */
#define BH_WATCH_LAG_NS UINT64_C(1000000000)
/* With extenders, or recorded in full, a decision may take long: after this time the turn goes on
 * with other things. */
#define BH_TURN_DECIDING_NS UINT64_C(20000000)
/* At start, after one that died: for binders' in-flight reports. */
#define BH_BINDER_GRACE_NS UINT64_C(1000000000)
/* A pod that is bound, by the API server's word, and that the watch does not show on its node for so
 * long: its own object is looked at. */
#define BH_BOUND_UNSEEN_NS UINT64_C(30000000000)
#define BH_AUDIT_NS        UINT64_C(1000000000)

/* Invariants:
 * - A pod that the watcher shows as pending and that is ours is in the queue, and one that the queue
 * has as BINDING or WAITING is in the ledger or in prebinds (audit.c looks, repairs and counts).
 * - A pod is assumed in the engine only while the queue has its entry (place BINDING or WAITING) or
 * the ledger its bind, or while it is undone (prebind.h). The entry goes when the watcher says
 * BOUND and the bind is answered, whichever is last. What breaks this (a watcher that restarted, a
 * pod deleted while no watcher ran) is found by bh_sched_sweep() once feed and snapshot are both
 * complete.
 * - A pod that has a bind in the ledger, or that an earlier scheduler handed to a binder, goes to
 * that node and no other until the outcome is definite, and counts there before anything is decided.
 */
struct bh_sched_metrics;
struct bh_sched_daemon_options {
    const char *runtime_dir;
    /* Binders on other hosts: where they connect, NULL = nowhere (common/bus/curve.h). */
    const char *binder_listen, *binder_keys, *key_file;
    const char *metrics_address;
    const struct bh_bus_users *users; /* of this host: who is spoken to; NULL = our own */
    const struct bh_sched_config *config;
    const struct bh_feature_gates *gates; /* told in the metrics; NULL = all at their defaults */
    int64_t max_in_unschedulable_ns;      /* 0 = 5 minutes */
    const char *config_path;              /* where it came from, NULL = defaults (control.h) */
    const char *config_text; /* what the file came to, before flags; NULL = not known */
    enum bh_tie_break tie_break;
    bool group_stays; /* bh_engine_options */
    bool verify;
    bool observe; /* decides nothing: another scheduler does, this one looks on */
    uint64_t seed;
    struct bh_recorder_options record; /* mode OFF: nothing is kept */
};
struct bh_sched_timing { /* set from the constants above; tests change it after init */
    uint64_t snapshot_stale_ns, binder_grace_ns, claim_ns, unseen_ns;
};
struct bh_former_binder {
    char name[64];
    bool heard; /* it knows us, and has said what it had */
};
struct bh_sched_adoption { /* adopt.c: what the scheduler before us left on the wire */
    struct bh_inflight *record;
    struct bh_former_binder *binder; /* that got work in this directory, or may have */
    unsigned n_binders, n_silent;
    uint64_t heard_all_ns; /* 0: not yet */
    uint64_t settled_ns;   /* boot clock: from then on nothing of binders that died comes in */
    bool told_silent;
    LIST_HEAD(, bh_adopted) binds; /* of pods that are pending, or may turn out to be */
    unsigned n_binds;
    struct bh_map claims; /* "uid/id" -> struct bh_adopted_claim * */
    uint64_t n_counted;   /* pods adopted since the start */
    bool inherited;       /* it had binders, or something on the wire */
};
struct bh_sched_audit {  /* audit.c */
    uint64_t n_shown;    /* pods of ours that the watcher shows as pending */
    uint64_t generation; /* of the feed: rises with each */
    uint64_t turn_ns, looked_ns, walked_ns, asked_ns;
    uint64_t lost;    /* berth_pods_lost_total */
    unsigned n_named; /* since the last walk, in the log */
    bool stalled; /* the watcher, or this process, was stopped for a while since the last walk */
};
struct bh_sched_lease { /* lease.c; the lease itself is in the intake */
    bool held;          /* at the last look: decisions are taken, binders may write */
    bool leaving;       /* the process stops */
    bool stood_by;      /* was here, attached, before the term began */
    uint64_t term;      /* led last under this one; 0 = no election, or never */
    uint64_t serial;    /* of the grants: rises when held changes */
    uint64_t strays;    /* lost binders, as counted by the ledger */
    uint64_t progress;  /* signs of life of binders */
    /* Boot clock: the latest until which a binder may write; ... of those that were lost. */
    uint64_t granted_until_ns, strays_until_ns;
    uint64_t
        settled_ns; /* ... from which what was taken back on the wire has come in, and is seen */
    uint64_t unseen_term; /* had ended when we came, and a scheduler was here before; 0 = none */
};
struct bh_sched_daemon {
    struct bh_sched_daemon_options o;
    struct bh_sched_timing timing;
    uv_loop_t *loop;
    uint64_t epoch; /* start of this process: rises with every start (boot clock) */

    struct bh_engine *engine;
    struct bh_engine_observer observer; /* daemon_observe.c */
    struct bh_queue *queue;
    struct bh_pods *pods; /* the queue's table: the handle of a uid that a message names */
    struct bh_ledger *ledger;
    struct bh_prebinds prebinds;  /* between Reserve and Bind */
    struct bh_recorder *recorder; /* of decisions; NULL: they are not kept */
    unsigned decide_flags;        /* of bh_engine_schedule, for attempts that are kept in full */
    struct bh_symtab *symtab;     /* the engine's */
    struct bh_arena text_arena;   /* of one failed commit */

    struct bh_intake in; /* snapshot and watcher */
    struct bh_bus_poll *feed_poll;
    bool feed_news, binders_news; /* their sockets have something */
    bool sweep_due;               /* see bh_sched_sweep */
    struct bh_sched_lease lease;
    struct bh_sched_adoption adopt;

    struct bh_bus *binders;
    struct bh_bus_poll *binders_poll;
    uint64_t told_turned_away, told_turned_away_ns;
    struct bh_arena bus_arena;
    uint64_t started_ns;
    TAILQ_HEAD(, bh_letter) letters; /* of binders, that came while a decision waited */
    unsigned n_letters;
    unsigned n_tended;                 /* writes of plugins, for no pod, that are not answered */
    uint64_t tended_ns, tend_every_ns; /* when plugins were asked last, and when they are next */
    bool tend_refused;                 /* one of what they wanted then */
    /* Victims that are deleted and still seem to stay; a group's until they are gone. */
    LIST_HEAD(, bh_leaving) leaving;
    uv_poll_t extenders; /* wakes the loop; only with extenders */
    /* When the engine had all objects last, or it was said that it has not. */
    uint64_t raw_missed_ns;
    struct bh_sched_audit audit;
    uint64_t crowd_logged_ns; /* when "too many binders" was said */

    struct bh_control *control;
    uv_timer_t idle;
    bool stopping, reloading;
    struct bh_metrics *metrics;
    struct bh_sched_metrics *m;
    struct bh_probes *probes;
    struct bh_keepalive *keepalive;
    int64_t wall_base_ns; /* wall clock at start; durations come from the monotonic clock */
    uint64_t mono_base_ns;
    uint64_t group_refusals; /* of PodGroups' conditions: what is not seen is told again */
};

/* Until it is told to stop. 0; BH_SCHED_RELOAD: the caller executes the program again, with the
 * same arguments: the file of the configuration has changed and is valid. The other processes were
 * told nothing: to them it is as if this one had been killed. Or -errno. */
#define BH_SCHED_RELOAD 1
int bh_sched_daemon_run(const struct bh_sched_daemon_options *o, struct bh_err *err);
/* Reads the configuration's file. 1: it is another one than the one in force, and valid: the daemon
 * stops with BH_SCHED_RELOAD; 0: it is the same; -errno with what is wrong with it. */
int bh_sched_reload(struct bh_sched_daemon *d, struct bh_err *err);
/* The parts of it, for tests: the caller owns the loop, runs it between turns and drains it after
 * fini. fini also cleans up after an init that failed. */
int bh_sched_daemon_init(struct bh_sched_daemon *d, const struct bh_sched_daemon_options *o,
                         uv_loop_t *loop, struct bh_err *err);
unsigned bh_sched_daemon_turn(struct bh_sched_daemon *d); /* amount of work done, 0 = may sleep */
void bh_sched_daemon_fini(struct bh_sched_daemon *d);

/* Unix time that never steps: wall clock at start plus monotonic time since. */
int64_t bh_sched_now(const struct bh_sched_daemon *d);

/* feed.c */
struct bh_intake_callbacks bh_sched_feed_callbacks(struct bh_sched_daemon *d);
bool bh_sched_snapshot_fresh(const struct bh_sched_daemon *d);
bool bh_sched_ready(const struct bh_sched_daemon *d); /* could decide, if it leads */
bool bh_sched_may_decide(const struct bh_sched_daemon *d);
/* adopt.c */
int bh_sched_adopt_start(struct bh_sched_daemon *d, struct bh_err *err);
void bh_sched_adopt_fini(struct bh_sched_daemon *d);
void bh_sched_adopt_turn(struct bh_sched_daemon *d);    /* before decisions */
bool bh_sched_adopted(const struct bh_sched_daemon *d); /* nothing keeps decisions back */
/* What a binder has on the wire for an earlier scheduler, and what became of it. */
void bh_sched_adopt_reported(struct bh_sched_daemon *d, const Berth__BinderHello *h);
void bh_sched_adopt_answered(struct bh_sched_daemon *d, const Berth__WorkResult *r);
void bh_sched_adopt_end_term(struct bh_sched_daemon *d);
void bh_sched_unadopt(struct bh_sched_daemon *d, struct bh_pod_state *s);
/* Drops adopted binds of pods that are not pending (any more). */
void bh_sched_review_adopted(struct bh_sched_daemon *d);
/* Before its first work. age_ns: of its process. */
void bh_sched_binder_heard(struct bh_sched_daemon *d, const char *name, uint64_t age_ns);
bool bh_sched_binders_awaited(const struct bh_sched_daemon *d);
unsigned bh_sched_binders_unheard(const struct bh_sched_daemon *d);
/* Nothing of ours is out: the next one need not wait, unless for one that we never heard. */
void bh_sched_adopt_left(struct bh_sched_daemon *d);
/* audit.c */
void bh_sched_audit_shown(struct bh_sched_daemon *d, struct bh_pod_state *s);
/* Bound, gone, leaving. */
void bh_sched_audit_hidden(struct bh_sched_daemon *d, struct bh_pod_state *s);
void bh_sched_audit_complete(struct bh_sched_daemon *d); /* pods not named are hidden */
void bh_sched_audit_turn(struct bh_sched_daemon *d);
void bh_sched_audit_fini(struct bh_sched_daemon *d);
/* lease.c */
bool bh_sched_leads(const struct bh_sched_daemon *d); /* right now */
void bh_sched_lease_turn(struct bh_sched_daemon *d);
/* A binder said hello under our epoch. */
void bh_sched_binder_lives(struct bh_sched_daemon *d, struct bh_binder *b,
                           const Berth__BinderHello *h);
/* The process stops: from now on nothing is decided or granted. True when nothing can be written
 * any more. */
bool bh_sched_lease_left(struct bh_sched_daemon *d);
/* cycle.c */
unsigned bh_sched_cycles(struct bh_sched_daemon *d, unsigned max);
unsigned bh_sched_activate(struct bh_sched_daemon *d); /* pods that plugins want tried next */
/* Room on a node that a pod had: pods that wait for room hear of it. forget: it was assumed, and is no
 * more; else only promised, and those hear whom a promise to this one kept out. */
void bh_sched_tell_room(struct bh_sched_daemon *d, const struct bh_pod_rec *pod, bh_shape_id shape,
                        bool forget);
/* A nomination of the pod to the node has ended, which may be newer than the object. */
void bh_sched_tell_nominated_room(struct bh_sched_daemon *d, const struct bh_queued_pod *p,
                                  bh_sym node);
/* The pod did not get a node: back to the queue, told to users (scheduler-core.md 5.5). */
void bh_sched_failed(struct bh_sched_daemon *d, struct bh_queued_pod *p,
                     const struct bh_decision *dec);
/* Victims leave for the group of this pod; the pod waits for them. */
void bh_sched_evict_for_group(struct bh_sched_daemon *d, const struct bh_queued_pod *lead,
                              const struct bh_object_ref *group, const struct bh_victim *v,
                              uint32_t n);
/* Permit's word on a pod that is assumed and reserved: on its way, or undone and failed. Returns the
 * attempt's result for metrics. */
const char *bh_sched_go_on(struct bh_sched_daemon *d, struct bh_queued_pod *p, bh_sym node,
                           const struct bh_status *permit, int64_t timeout_ns);
/* It needs no decision (deleted, on its node, or its bind is out), and was seen to. */
bool bh_sched_skips(struct bh_sched_daemon *d, struct bh_queued_pod *p);
/* An attempt of the pod is to be recorded: flags for its decision. Then either begin and end, or all of
 * it at once, before what comes after the decision is known. */
unsigned bh_sched_record_next(struct bh_sched_daemon *d, const struct bh_queued_pod *p);
void bh_sched_record_whole(struct bh_sched_daemon *d, struct bh_queued_pod *p,
                           const struct bh_decision *dec);
/* group.c: the pod was popped. false: it belongs to no group that is scheduled as one. */
bool bh_sched_group_cycle(struct bh_sched_daemon *d, struct bh_queued_pod *first);
struct bh_group_names {
    const char *namespace_, *name;
};
char *bh_sched_cut_condition(const char *message); /* a copy, as long as the bus carries */
/* Fingerprint of a PodScheduled condition, never 0: the same is not patched twice. */
uint64_t bh_sched_condition_hash(const char *reason, const char *message);
/* A pod that is written for before its bind, or waits: its status says where it goes. */
void bh_sched_tell_node(struct bh_sched_daemon *d, const struct bh_queued_pod *p, bh_sym node);
/* Asks the Bind plugins, and a binder or an extender. false: the plugins do not bind it, so it is not
 * asked for, and the pod is on its way back; but of one that the scheduler before us sent (adopted) the
 * item is in the ledger all the same, to be kept: it must not go out. */
bool bh_sched_send_bind(struct bh_sched_daemon *d, const struct bh_queued_pod *p, bh_sym node,
                        bool adopted);
void bh_sched_bind_inside(struct bh_sched_daemon *d, struct bh_work *w); /* no extender binds it */
/* An event: drivers have to make its devices ready first. */
void bh_sched_say_waits(struct bh_sched_daemon *d, const struct bh_queued_pod *p, bh_sym node);
/* Unreserve is done: Forget, the move event, and the pod back to the queue (prebind.h). */
void bh_sched_binding_over(struct bh_sched_daemon *d, struct bh_pod_state *s, enum bh_over how,
                           const char *plugin, const char *message);
/* A bind that did not happen: forget, tell the waiting pods, send the pod back. */
void bh_sched_bind_failed(struct bh_sched_daemon *d, struct bh_work *w, enum bh_over how,
                          const char *message);
/* Writes that are not made after all: the lease ended. No event and no condition tells of it. */
void bh_sched_bind_recalled(struct bh_sched_daemon *d, struct bh_work *w);
void bh_sched_patch_recalled(struct bh_sched_daemon *d, struct bh_work *w);
/* A pending pod, new or changed; one that was gone or whose nomination ended leaves room for
 * others. */
void bh_sched_pod_update(struct bh_sched_daemon *d, struct bh_pod_state *s,
                         const struct bh_pod_rec *pod, const struct bh_shape_rec *shape,
                         const char *resource_version);
void bh_sched_pod_gone(struct bh_sched_daemon *d, struct bh_pod_state *s);
/* Forgets assumed pods that neither queue nor ledger knows, when that is due and the snapshot and
 * the feed are complete: such a pod was deleted without the watcher telling us. */
void bh_sched_sweep(struct bh_sched_daemon *d);
/* asked.c: what plugins asked for since the last turn */
unsigned bh_sched_asked_turn(struct bh_sched_daemon *d);
/* A write that a plugin wanted for no pod is answered, or is not to be any more (r NULL). */
void bh_sched_tended(struct bh_sched_daemon *d, const struct bh_work *w,
                     const Berth__WorkResult *r);
/* extend.c */
bool bh_sched_waiting(void *daemon); /* engine options: waiting */
void bh_sched_extenders_turn(struct bh_sched_daemon *d);
void bh_sched_extenders_start(struct bh_sched_daemon *d);
void bh_sched_extenders_stop(struct bh_sched_daemon *d);
/* daemon_log.c: log lines about single pods and nodes, when --v asks for them */
void bh_sched_log_attempt(const struct bh_queued_pod *p);
void bh_sched_log_no_fit(const struct bh_sched_daemon *d, const struct bh_queued_pod *p,
                         const struct bh_decision *dec);
void bh_sched_log_group(const struct bh_group_names *g, const struct bh_group_result *r,
                        uint32_t scheduled, uint32_t unschedulable);
void bh_sched_log_bound(const struct bh_queued_pod *p, const char *node);
void bh_sched_log_condition(const struct bh_queued_pod *p, const char *reason);
void bh_sched_log_pending(const struct bh_pod_rec *pod, enum bh_event_action action);
void bh_sched_log_event(const struct bh_sched_daemon *d, const struct bh_cluster_event *ev);
/* What became of a bind; nothing without a recorder. */
static inline void bh_sched_record_outcome(struct bh_sched_daemon *d, uint64_t decision,
                                           enum bh_record_outcome o, const char *message)
{
    if (bh_unlikely(d->recorder) && decision)
        bh_recorder_outcome(d->recorder, decision, o, message);
}
/* results.c */
bool bh_sched_hello(struct bh_sched_daemon *d, const struct bh_binder *b); /* false: not sent */
unsigned bh_sched_drain_binders(struct bh_sched_daemon *d);
void bh_sched_receive_binders(struct bh_sched_daemon *d); /* while a decision waits */
void bh_sched_drop_letters(struct bh_sched_daemon *d);
/* One of the preemptor's evictions ended, in whatever way. A preemptor stays out of the queue, and
 * cluster events pass it by, until all are answered and the answers are visible: a decision in
 * between would evict twice. With the last one it is let go; a group is active again as soon as the last
 * victim of its members is gone. */
void bh_sched_eviction_over(struct bh_sched_daemon *d, struct bh_pod_state *preemptor);
void bh_sched_see_victims_off(struct bh_sched_daemon *d); /* after the snapshot has moved */
void bh_sched_drop_leaving(struct bh_sched_daemon *d);
/* A bind is answered; w is kept or freed. Bound: the API server says so. Refused: for good. */
void bh_sched_bound(struct bh_sched_daemon *d, struct bh_work *w);
void bh_sched_bind_refused(struct bh_sched_daemon *d, struct bh_work *w, enum bh_over how,
                           const char *message);
void bh_sched_post_bind(struct bh_sched_daemon *d, struct bh_work *w); /* once; the pod is there */
/* daemon_metrics.c, daemon_observe.c */
void bh_sched_metrics_init(struct bh_sched_daemon *d);
void bh_sched_metrics_free(struct bh_sched_daemon *d);
void bh_sched_count_attempt(struct bh_sched_daemon *d, const char *result, const char *profile,
                            double algorithm_s);
/* now: when the answer was given; bind_s: from the bind's entry into the ledger to then. */
void bh_sched_count_bound(struct bh_sched_daemon *d, const struct bh_queued_pod *p,
                          const char *profile, int64_t now, double bind_s);
struct bh_engine_observer bh_sched_observer(struct bh_sched_daemon *d);
/* A point that the engine does not see. */
void bh_sched_saw(struct bh_sched_daemon *d, const char *profile, enum bh_seen_point at,
                  enum bh_code code, int64_t ns);
/* An event was handled, which began at began_ns (bh_sched_now). */
void bh_sched_count_event(struct bh_sched_daemon *d, const struct bh_cluster_event *ev,
                          int64_t began_ns);
void bh_sched_count_pod_event(struct bh_sched_daemon *d, enum bh_event_action action,
                              int64_t began_ns); /* of a pending pod */
void bh_sched_count_claim_made(struct bh_sched_daemon *d, bool done);
/* Writes and checks before the bind are over; waited_ns: for drivers, -1 = not at all. */
void bh_sched_count_prebind(struct bh_sched_daemon *d, const struct bh_pending *p, bool failed,
                            const char *text, int64_t took_ns, int64_t waited_ns);
void bh_sched_count_permit(struct bh_sched_daemon *d, const char *result, int64_t waited_ns);
void bh_sched_count_group_algorithm(struct bh_sched_daemon *d, double took_s);
void bh_sched_count_group(struct bh_sched_daemon *d, const struct bh_group_result *r,
                          const char *profile, double took_s);
void bh_sched_count_preemption(struct bh_sched_daemon *d, uint32_t victims);
void bh_sched_count_outcome(struct bh_sched_daemon *d, Berth__Outcome o);
#endif
