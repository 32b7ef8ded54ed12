/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/simulation/simulation.h - hosts, API server and network in one thread and made-up time
 *
 * Every process is a coroutine that runs its program's own loop: libuv's, with the clock and the
 * wait for events replaced (world.c). It goes on until it waits for something, or comes to a step:
 * a look at the clock, a message, a request, a store of the snapshot's writer. At a step it may be
 * killed (it is never resumed: what it had in memory is gone, what is in shared memory and in files
 * stays as it is) or stopped for a while. Everything that is random comes from the seed.
 *
 *   world.c    time, events, coroutines, descriptors, shared memory
 *   bus.c      bus.h: messages between processes
 *   api.c      client.h and the API server's HTTP: requests, answers, streams
 *   hosts.c    the processes: watcher, scheduler, binders, API server
 *   load.c     what happens in the cluster
 *   plan.c     what goes wrong
 *   sequences.c  what chance does not come by
 *   plugin.c   a plugin that writes
 *   main.c     seeds, judging
 *
 * One seed is one run of this process (main.c forks): nothing is freed that was a process's.
 */
#ifndef BH_SIMULATION_H
#define BH_SIMULATION_H

#include <setjmp.h>
#include <sys/queue.h>
#include <ucontext.h>
#include <uv.h>

#include "common/api/kubeconfig.h"
#include "common/base/base.h"

#define MS                UINT64_C(1000000)
#define SECOND            UINT64_C(1000000000)
#define MAX_HOSTS         3
#define MAX_BINDERS       3
#define MAX_STEPS         400 /* a fault falls on one of so many steps */
#define FOREVER           UINT64_MAX
#define DOUBT_NS          (48 * SECOND) /* so long a bind counts as on the wire whose binder is silent */
#define STOPPED_LEADER_NS (90 * SECOND)
#define SHM_NAMES         "shared-memory" /* files in world.dir; this one: names, each with its host */
#define HISTORY           "history.jsonl"
/* Places that seeds must reach. The second kind: lines that the product's log has of them. */
#define REACHED_LIST                                                                               \
    X(restart_watcher)                                                                             \
    X(restart_scheduler)                                                                           \
    X(restart_binder)                                                                              \
    X(killed_in_publication)                                                                       \
    X(stopped_in_publication)                                                                      \
    X(killed_while_binding)                                                                        \
    X(stopped_past_lease)                                                                          \
    X(stopped_in_a_step)                                                                           \
    X(told_to_end)                                                                                 \
    X(connection_lost_with_messages)                                                               \
    X(bus_peer_unknown)                                                                            \
    X(request_lost)                                                                                \
    X(answer_lost_after_effect)                                                                    \
    X(half_an_answer)                                                                              \
    X(answer_never_comes)                                                                          \
    X(watch_cut)                                                                                   \
    X(watch_expired)                                                                               \
    X(server_refuses)                                                                              \
    X(fence_held_a_request)                                                                        \
    X(effect_after_the_process_died)                                                               \
    X(host_cut_off)                                                                                \
    X(wall_clock_jumped)                                                                           \
    X(binder_left)                                                                                 \
    X(segment_moved)                                                                               \
    X(segment_moved_in_mid_copy)                                                                   \
    X(leader_unaware_of_next)                                                                      \
    X(stale_work_not_written)                                                                      \
    X(shared_memory_full)                                                                          \
    X(disk_full)                                                                                   \
    X(configuration_reloaded)                                                                      \
    X(server_restarted)                                                                            \
    X(struck_behind_a_binding)                                                                     \
    X(stopped_leader_in_peace)                                                                     \
    X(gang_bound)                                                                                  \
    X(gang_stays_unbound)                                                                          \
    X(coscheduled)                                                                                 \
    X(coscheduling_waits)                                                                          \
    X(binder_of_another_host_wrote)                                                                \
    X(host_told_to_end)                                                                            \
    X(promise_ended)                                                                               \
    X(watcher_told_to_end_alone)                                                                   \
    X(term_ended_unwritten)                                                                        \
    X(nominated_when_bound)                                                                        \
    X(bound_by_another_hand)                                                                       \
    X(gone_unseen)                                                                                 \
    X(write_after_its_grant)                                                                       \
    X(last_word_lost)                                                                              \
    X(cut_off_while_stopped)                                                                       \
    X(status_of_before)                                                                            \
    X(refused_behind_a_try)                                                                        \
    X(refused_behind_an_unknown)                                                                   \
    X(refused_behind_repeats)                                                                      \
    X(adopted_before_its_claim)                                                                    \
    X(group_waits_for_victims)                                                                     \
    X(machine_restarted)                                                                           \
    X(files_of_another_boot)                                                                       \
    X(record_damaged)                                                                              \
    X(plugin_marked)                                                                               \
    X(plugin_tended)
#define LOGGED_LIST                                                                                \
    L(bind_adopted, "Binds of the scheduler before count on their nodes and are asked for again")  \
    L(binders_heard_first, "A scheduler was here before, hearing its binders first")               \
    L(former_binder_silent,                                                                        \
      "A binder of the scheduler before does not answer: what it had counts as on the wire")       \
    L(term_ended, "The lease is gone, standing by")                                                \
    L(lease_taken_away, "The lease was taken away")                                                \
    L(lease_released, "Released the lease")                                                        \
    L(bind_refused, "Binding failed")                                                              \
    L(feed_gap, "Gap in the watcher's feed, asking for everything again")                          \
    L(listed_again, "Listed again")                                                                \
    L(assumed_forgotten, "Forgot assumed pods that are gone")                                      \
    L(not_renewed, "Not renewing the lease")                                                       \
    L(snapshot_hidden, "Shared memory was refused: readers wait, trying again every second")       \
    L(configuration_refused, "SIGHUP: the configuration stays as it is")
/* Told by the judge, of the history. */
#define JUDGED_LIST                                                                                \
    X(judged_binds)                                                                                \
    X(judged_preemptions)                                                                          \
    X(judged_takeovers)                                                                            \
    X(judged_excused)

enum reached {
#define X(name)       R_##name,
#define L(name, text) R_##name,
    REACHED_LIST LOGGED_LIST JUDGED_LIST
#undef X
#undef L
        R_COUNT
};

enum stream { /* of random numbers: a draw in one does not shift the others */
              DRAW_PLAN,
              DRAW_LOAD,
              DRAW_NET,
              DRAW_ORDER,
              DRAW_ENTROPY,
              DRAW_FAULT, /* begins anew with each fault */
              DRAW_RESTART,
              DRAW_BINDING, /* all that belongs to strikes behind a binding */
              DRAW_GANGS,
              DRAW_DRAIN,
              DRAW_SEQUENCE,
              DRAW_OTHERS, /* clients that are none of ours */
              DRAW_BOOT,   /* clocks, and machines that start again */
              DRAW_PLUGIN,
              DRAW_PREEMPTORS, /* groups */
              DRAW_COUNT
};

/* ---- world.c --------------------------------------------------------------------------------- */

struct process;
struct source { /* wakes a process's loop, and is then called from it */
    LIST_ENTRY(source) link;
    struct process *of;
    uv_poll_t poll;
    bool set, closing;
    void (*fn)(void *arg);
    void *arg;
};
struct host {
    int n;
    char name[8], dir[96];
    int64_t wall_off_ns, boot_off_ns, boot_ppm; /* of its clocks */
    unsigned boots;
    uint64_t up_ns; /* no process starts before */
    bool cut_off;   /* from the API server */
    bool leads;     /* as far as its watcher knows */
    bool decides;   /* its scheduler, as that says */
    bool shm_full, disk_full;
    uint64_t log_entries; /* of its snapshot */
};
struct process {
    char name[24];
    struct host *host; /* NULL: the API server */
    int kind, index;   /* enum kind (hosts.c) */
    unsigned life;     /* rises with every start */
    bool alive, wanted, stopped, may_wake, killed;
    ucontext_t context; /* where it begins */
    jmp_buf inside;     /* where it waits */
    bool begun;
    void *stack;
    uint64_t resume_ns, serial;
    void (*main)(struct process *p);
    LIST_HEAD(, source) sources;
    LIST_HEAD(, held) held; /* descriptors with locks */
    struct source *on_term, *on_hup;
    /* the next fault of its own */
    uint64_t steps_left, stop_ns; /* 0 = none; stop_ns 0 = it is killed */
    bool in_publication, publication_only;
    bool in_request, request_only; /* in_request: one that writes is about to leave */
    bool copying;                  /* out of the snapshot */
};
enum gangs { NO_GANGS, OF_SCHEDULING, OF_COSCHEDULING }; /* whose PodGroups are watched, and made */
struct world {
    uint64_t now_ns, seed;
    struct bh_rand draw[DRAW_COUNT];
    struct process *running;
    struct host host[MAX_HOSTS];
    unsigned n_hosts, n_binders, history_events;
    enum gangs gangs;
    bool groups_preempt; /* gate WorkloadAwarePreemption */
    bool marks;          /* plugin.c is in the configuration */
    bool tcp;            /* the last binder of each host works for the scheduler of the next one */
    bool peace, verbose;
    bool slow_copies;    /* copying out of a snapshot takes long */
    uint64_t peace_ns;   /* since then */
    struct host *leader; /* who took the lease last */
    bool down;           /* everything ends */
    uint64_t reached[R_COUNT], n_steps, n_events, trace;
    uint64_t binder_wrote_ns;   /* a request of a binder's that writes came in last */
    uint64_t doubt_until_ns;    /* something is waited for that nobody sees */
    char dir[64], prepared[64]; /* of this seed; of the API server that it begins with */
    char failure[512];
};
extern struct world world;

/* The stream begins anew, with what belongs to the nth of something: without the others it draws
 * the same. */
void draw_for(enum stream s, uint64_t nth);
uint64_t draw(enum stream s, uint64_t below);
uint64_t draw_between(enum stream s, uint64_t from, uint64_t to);
bool chance(enum stream s, unsigned percent);
#define reach(name) (world.reached[R_##name]++)
/* fn runs at that time, outside of every process. */
void at(uint64_t when_ns, void (*fn)(void *arg), void *arg);
void run_until(uint64_t when_ns, bool (*done)(void));
#define FOLDER "/dev/shm/berth-simulation-"
void say(const char *fmt, ...) BH_PRINTF(1, 2); /* a line with time and process, when verbose */
/* In all that is told and done, so that two runs of a seed can be compared. */
void note(const void *p, size_t n);
void fail(const char *fmt, ...) BH_PRINTF(1, 2); /* the first one counts */

void step(void);
uint64_t boot_ns(void); /* the running process's boot clock: not a step, and takes no time */
/* A source of the running process. fn is called from its loop, some time after source_set. */
/* What the run in dir made of shared memory is removed; of that host alone, unless NULL. */
void shared_memory_gone(const char *dir, const struct host *h);
struct source *source_new(uv_loop_t *loop, void (*fn)(void *arg), void *arg);
void source_set(struct source *s);
void source_close(struct source *s);

void process_start(struct process *p, uint64_t delay_ns);
void process_wait(uint64_t ns); /* the running one: others go on */
void process_kill(struct process *p);
void process_stop(struct process *p, uint64_t ns); /* as SIGSTOP, and SIGCONT after ns */
void process_term(struct process *p);              /* as SIGTERM */
void process_hup(struct process *p);               /* as SIGHUP */

/* ---- bus.c, api.c: when a process ends ------------------------------------------------------- */
void bus_process_gone(struct process *p);
void bus_cut_one(const struct process *p);   /* one connection of its own, or of all: drawn */
void bus_lose_next(const struct process *p); /* told to it, and the connection with that */
void bus_hold(const struct process *p, uint64_t ns); /* what it is told next arrives so late */
void api_process_gone(struct process *p);
void api_host_cut(struct host *h);
bool api_watches_stand(void); /* as many on each host as there ever were */
void api_server_gone(void);
void api_no_silence(void); /* what nobody answers breaks now */
/* Until the next order: each write of pods whose names begin so finds no connection. NULL: none. */
void api_refuse_writes(const char *pods);
/* The network delays the next binding of the pod. cut: its client loses the connection at once. */
void api_delay_binding(const char *pod, uint64_t ns, bool cut);
/* The process whose request was refused, delayed, or delayed and cut; NULL: there was none. */
struct process *api_ordered_sender(void);
/* What the open watches of the host bring from now on arrives so late. */
void api_delay_watch(const struct host *h, const char *plural, uint64_t ns);
struct net { /* how the network of the API server behaves: percent of requests */
    unsigned lost, answer_lost, half, never, cut_watch;
    uint64_t latency_ns; /* at most */
};
extern struct net net;
void api_cut_watches(void);

/* ---- hosts.c --------------------------------------------------------------------------------- */
enum kind { P_SERVER, P_WATCHER, P_SCHEDULER, P_BINDER };
struct bh_sim;
extern struct bh_api_config api_config[MAX_HOSTS];
extern struct process processes[];
extern unsigned n_processes;
extern struct bh_sim *server;
void hosts_prepare(void);
void hosts_init(void);
void hosts_start(void);
void hosts_restart(struct host *h, bool keeps_files); /* the machine: all of its processes end */
void hosts_configure(struct host *h, unsigned which); /* writes one of some configurations */
void process_over(struct process *p);                 /* main has returned, or it was killed */
void binder_main(struct process *p); /* binders.c: its structs have a scheduler's names */
/* In the API server's loop, as what changes the store must be. */
void in_server(void (*fn)(void));
void server_faults(const char *spec);
struct process *find_process(enum kind kind, struct host *h, int index);
/* Of a binder: the host whose scheduler it works for. */
const struct host *host_served(const struct process *p);

/* ---- load.c ---------------------------------------------------------------------------------- */
void load_build(void);
void load_step(void);
void load_rivals_about(const char *node); /* the first of the next rivals wants its room */
void load_rivals(void);                   /* some pods that go first */
void load_take_lease(void);               /* by somebody who has nothing to do with us */
/* A text for what is not decided yet; NULL = everything is. */
const char *load_undecided(void);
/* A text for a pod that is being deleted, or will be: its room is still to come. NULL = there is none. */
const char *load_leaving(void);
void load_count_gangs(void); /* at the end */
/* A node that only its own pods tolerate, and these pods: they fit nowhere else. One that is slow
 * takes longer to end than anybody waits. */
enum pod_state { POD_GONE, POD_SILENT, POD_REFUSED, POD_PROMISED, POD_BOUND };
void load_add_apart(bool cordoned);
void load_cordon_apart(bool cordoned);
void load_add_pod_apart(const char *name, const char *priority, unsigned milli, bool is_slow);
void load_remove_pod(const char *name);
void load_bind_apart(const char *name, const char *node); /* by another client */
void load_touch_apart(void);                              /* some changes, and it is as before */
#define TOUCHES 16u                                       /* so many */
enum pod_state load_pod(const char *name);
/* On a node apart that has devices; the first of them is listed later. */
void load_add_device_apart(bool all);
void load_add_claimant_apart(const char *name, const char *priority);
/* Some slow pods of low priority fill the node apart; members of a group come, of which one is enough; so
 * does another node apart, filled by a pod of no priority. */
void load_fill_apart(void);
void load_add_group_apart(void);
void load_add_cheap_apart(void);
void load_clear_apart(void);     /* without the group */
bool load_is_cheap_chosen(void); /* it is to go, or there is a member of the group with a node */
bool load_is_group_bound(void);

/* ---- plugin.c -------------------------------------------------------------------------------- */
#define PLUGIN "Marks"
#define MARK   "example.com/node"               /* annotation of a pod */
#define TENDED "tended"                         /* a ConfigMap */
bool plugin_is_tended(const struct process *p); /* this scheduler requested all of its writes */
/* A text for a pod that is bound to another node than its mark names; NULL: there is none. */
const char *load_wrong_mark(void);

/* ---- plan.c ---------------------------------------------------------------------------------- */
void plan_draw(void);
void plan_run(void); /* events for the time of unrest */
void plan_peace(void);
bool plan_sequences(void);
bool plan_clocks(void); /* each machine has its own */
bool plan_binds(void);  /* are there strikes behind bindings, and what goes with them? */
/* A leader's scheduler is stopped: the next one has to decide. */
void plan_stop_leader(void);
/* A binding to the node leaves: 0, or for how long the network holds it at least. */
uint64_t plan_binding(struct host *h, const char *node);
uint64_t plan_faults(void);            /* how many there were */
extern unsigned plan_skip;             /* bits of faults that are left out */
extern uint64_t plan_first, plan_last; /* of the others only those, by number */
extern uint64_t plan_seconds;
extern int plan_pods; /* -1 = drawn */

/* ---- sequences.c ----------------------------------------------------------------------------- */
void sequences_run(void); /* in peace, in some seeds */
#endif
