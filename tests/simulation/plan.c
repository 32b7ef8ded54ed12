/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/simulation/plan.c - what goes wrong, and when
 *
 * Each seed first draws which kinds of faults there are and how hard they come, so that quiet and
 * violent runs both happen; then their times. --without leaves kinds out of a run, and shifts
 * nothing else: that is how a failure is made small.
 */
#include "tests/simulation/simulation.h"

#include <stdio.h>

#define FAULT_GAP_MIN (200 * MS)
/* What the network holds for longer than this breaks what the lease is built on: a write comes in
 * before somebody else can hold it (BH_BUS_GRANT_TAIL_NS). A server may take longer. */
#define LATENCY_MAX (1900 * MS)
#define STOP_MAX    (10 * SECOND)

enum fault { /* bits of --without; order is --help's */
             F_KILL,
             F_STOP,
             F_NET,
             F_SERVER,
             F_BUS,
             F_CUT_OFF,
             F_CLOCK,
             F_TERM,
             F_BINDERS,
             F_FULL,
             F_RELOAD,
             F_RESTART,
             F_LEASE,
             F_COUNT,
             F_BINDING = F_COUNT, /* has times of its own */
             F_GANGS,             /* no faults: parts of the load, and of the hosts */
             F_TCP,
             F_DRAIN,     /* has times of its own */
             F_SEQUENCES, /* when there is peace */
             F_BOOT,      /* has times of its own */
             F_PLUGIN,    /* no fault: a part of the configuration */
             F_PREEMPT    /* neither: a gate */
};
unsigned plan_skip;
uint64_t plan_seconds, plan_first, plan_last = UINT64_MAX;
static struct {
    bool on[F_COUNT];
    uint64_t end_ns, gap_ns, load_gap_ns, n_faults;
    bool binding, strike; /* strike: as soon as a binding is on the wire */
    bool drains, drain;   /* drain: the same, and the host is told to end */
    bool restarts;        /* of machines */
} plan;

static struct process *somebody(void)
{
    return &processes[1 + draw(DRAW_FAULT, n_processes - 1)]; /* all but the API server */
}

/* At once, or at one of its next steps. */
static void strike(struct process *p, uint64_t stop_ns)
{
    p->stop_ns = stop_ns;
    p->publication_only = p->kind == P_WATCHER && chance(DRAW_FAULT, 40);
    p->request_only = p->kind == P_BINDER && chance(DRAW_FAULT, 50);
    p->steps_left = 1 + draw(DRAW_FAULT, p->publication_only ? 40
                                         : p->request_only   ? 4
                                                             : MAX_STEPS);
}

static void do_kill(void)
{
    const uint64_t how = draw(DRAW_FAULT, 10);
    struct process *p = somebody();

    if (how == 0) { /* all of a host */
        for (unsigned i = 1; i < n_processes; i++)
            if (processes[i].host == p->host)
                process_kill(&processes[i]);
    } else if (how < 3) {
        process_kill(p);
    } else {
        strike(p, 0);
        if (how < 5)
            strike(somebody(), 0);
    }
}

static void do_stop(void)
{
    const uint64_t ns = chance(DRAW_FAULT, 25) ? draw_between(DRAW_FAULT, 5 * SECOND, 25 * SECOND)
                                               : draw_between(DRAW_FAULT, 10 * MS, 3 * SECOND);
    struct process *p = somebody();

    if (chance(DRAW_FAULT, 20)) {
        for (unsigned i = 1; i < n_processes; i++)
            if (processes[i].host == p->host)
                process_stop(&processes[i], ns);
    } else if (chance(DRAW_FAULT, 30)) {
        process_stop(p, ns);
    } else {
        strike(p, ns);
    }
}

static void do_net(void)
{
    struct net *n = &net;

    *n = (struct net){.latency_ns = 2 * MS};
    if (chance(DRAW_FAULT, 30))
        return;
    n->lost = (unsigned)draw(DRAW_FAULT, 10);
    n->answer_lost = (unsigned)draw(DRAW_FAULT, 10);
    n->half = (unsigned)draw(DRAW_FAULT, 5);
    n->never = (unsigned)draw(DRAW_FAULT, 3);
    if (chance(DRAW_FAULT, 40)) /* bindings that take their time */
        n->latency_ns = draw_between(DRAW_FAULT, 20 * MS, LATENCY_MAX);
    if (chance(DRAW_FAULT, 40))
        api_cut_watches();
}

static void do_server(void)
{
    static const char *const specs[] = {
        "",
        "429-every=7",
        "500-every=9",
        "503-every=5",
        "410-every=2",
        "drop-watch-every=30",
        "truncate-every=11",
        "lose-every=6",
        "bind-late-ms=700",
        "bind-answer-ms=900",
        "bind-409-every=4",
        "bind-404-every=5",
        "429-every=11,410-every=3,lose-every=9",
    };
    const size_t i = draw(DRAW_FAULT, BH_ARRAY_LEN(specs));

    if (strstr(specs[i], "410"))
        reach(watch_expired);
    say("server: %s", specs[i]);
    server_faults(specs[i]);
}

static void on_reach_again(void *arg)
{
    struct host *h = arg;

    if (!h->cut_off)
        return;
    h->cut_off = false;
    say("%s reaches the server again", h->name);
    api_host_cut(h);
}

static void do_cut_off(void)
{
    struct host *h = &world.host[draw(DRAW_FAULT, world.n_hosts)];

    if (h->cut_off)
        return;
    reach(host_cut_off);
    h->cut_off = true;
    say("%s is cut off", h->name);
    at(world.now_ns + draw_between(DRAW_FAULT, 100 * MS, 25 * SECOND), on_reach_again, h);
}

static void do_clock(void)
{
    struct host *h = &world.host[draw(DRAW_FAULT, world.n_hosts)];
    const int64_t by = (int64_t)draw_between(DRAW_FAULT, 0, 7200) - 3600;

    reach(wall_clock_jumped);
    h->wall_off_ns = by * (int64_t)SECOND;
    say("the clock of %s is %lld s off", h->name, (long long)by);
}

static void do_binders(void)
{
    int i = (int)draw(DRAW_FAULT, world.n_binders);
    struct process *p = find_process(P_BINDER, &world.host[draw(DRAW_FAULT, world.n_hosts)], i);

    if (p->wanted && world.n_binders > 1 && p->index > 0) {
        p->wanted = false;
        reach(binder_left);
        if (chance(DRAW_FAULT, 50))
            process_term(p);
        else
            process_kill(p);
    } else if (!p->wanted) {
        p->wanted = true;
        process_start(p, 0);
    }
}

static void do_term(void)
{
    process_term(somebody());
}

static void on_room_again(void *arg)
{
    struct host *h = arg;

    h->shm_full = h->disk_full = false;
}

static void do_full(void)
{
    struct host *h = &world.host[draw(DRAW_FAULT, world.n_hosts)];
    const uint64_t which = 1 + draw(DRAW_FAULT, 3);

    h->shm_full = which & 1;
    h->disk_full = which & 2;
    say("%s has no room for %s", h->name,
        which == 1   ? "shared memory"
        : which == 2 ? "files"
                     : "anything");
    at(world.now_ns + draw_between(DRAW_FAULT, 100 * MS, 12 * SECOND), on_room_again, h);
}

static void do_reload(void)
{
    struct host *h = &world.host[draw(DRAW_FAULT, world.n_hosts)];

    hosts_configure(h, (unsigned)draw(DRAW_FAULT, 16));
    process_hup(find_process(P_SCHEDULER, h, 0));
}

/* Its objects are in the history that it begins with; its past is not. */
static void do_restart(void)
{
    process_kill(&processes[0]);
}

static void do_bus(void)
{
    bus_cut_one(NULL);
}

static void do_fault(void)
{
    static void (*const doers[])(void) = {
        do_kill, do_stop,    do_net,  do_server, do_bus,     do_cut_off,     do_clock,
        do_term, do_binders, do_full, do_reload, do_restart, load_take_lease};
    const uint64_t nth = ++plan.n_faults;

    draw_for(DRAW_FAULT, nth);
    const enum fault f = (enum fault)draw(DRAW_FAULT, F_COUNT);

    if (plan.on[f] && !(plan_skip >> f & 1) && nth >= plan_first && nth <= plan_last)
        doers[f]();
}

static void on_fault(void *arg)
{
    (void)arg;
    if (world.now_ns >= plan.end_ns)
        return;
    in_server(do_fault);
    at(world.now_ns + draw_between(DRAW_PLAN, FAULT_GAP_MIN, plan.gap_ns), on_fault, NULL);
}

/* ---- behind a binding ------------------------------------------------------------------------ */

static void on_strike(void *arg)
{
    (void)arg;
    if (world.now_ns >= plan.end_ns)
        return;
    plan.strike = true;
    at(world.now_ns + draw_between(DRAW_BINDING, SECOND, 5 * SECOND), on_strike, NULL);
}

static void kill_for_a_moment(struct process *p)
{
    process_kill(p);
    process_start(p, draw_between(DRAW_BINDING, 20 * MS, 200 * MS));
}

/* Who decided does not know any more, or has to ask again, while the binding is on the wire. Who
 * takes the room, if nobody knows of the binding? */
static void on_binding_out(void *arg)
{
    struct host *h = arg;
    struct process *scheduler = find_process(P_SCHEDULER, h, 0);
    const uint64_t how = draw(DRAW_BINDING, 5);

    if (world.peace)
        return;
    reach(struck_behind_a_binding);
    in_server(load_rivals);
    if (how == 3)
        kill_for_a_moment(find_process(P_WATCHER, h, 0));
    else if (how == 4)
        bus_lose_next(scheduler);
    else
        kill_for_a_moment(scheduler);
    for (unsigned i = 0; how == 0 && i < world.n_binders; i++)
        process_kill(find_process(P_BINDER, h, (int)i));
}

struct drain {
    struct host *h;
    enum kind kind; /* who is to end now */
    uint64_t since_ns;
};

static bool is_drained(const struct drain *d, const struct process *p)
{
    return p->host == d->h && p->kind == (int)d->kind;
}

static void tell_to_end(const struct drain *d)
{
    for (unsigned i = 1; i < n_processes; i++) {
        if (!is_drained(d, &processes[i]))
            continue;
        processes[i].wanted = false;
        process_term(&processes[i]);
    }
}

/* A service manager ends a host's units in the order opposite to the one that it starts them in: each
 * kind when the one before is gone. Who takes too long is killed. */
static void on_drain_step(void *arg)
{
    struct drain *d = arg;
    bool alive = false;

    if (world.peace) { /* which starts everything again */
        free(d);
        return;
    }
    for (unsigned i = 1; i < n_processes; i++) {
        if (is_drained(d, &processes[i]) && world.now_ns - d->since_ns > STOP_MAX)
            process_kill(&processes[i]);
        alive |= is_drained(d, &processes[i]) && processes[i].alive;
    }
    if (!alive && d->kind != P_WATCHER) {
        d->kind--;
        d->since_ns = world.now_ns;
        tell_to_end(d);
    } else if (!alive) {
        for (unsigned i = 1; i < n_processes; i++)
            if (processes[i].host == d->h && !processes[i].wanted) {
                processes[i].wanted = true;
                process_start(&processes[i], draw(DRAW_DRAIN, 2 * SECOND));
            }
        free(d);
        return;
    }
    at(world.now_ns + draw(DRAW_DRAIN, 30 * MS), on_drain_step, d);
}

static void drain(struct host *h)
{
    struct drain *d = bh_malloc(sizeof(*d));

    *d = (struct drain){h, P_BINDER, world.now_ns};
    reach(host_told_to_end);
    tell_to_end(d);
    on_drain_step(d);
}

/* The watcher is told to end, and the scheduler that it asks what is on the wire has just begun. */
static void end_watcher(struct host *h)
{
    struct process *scheduler = find_process(P_SCHEDULER, h, 0);

    reach(watcher_told_to_end_alone);
    process_kill(scheduler);
    process_start(scheduler, draw_between(DRAW_DRAIN, 20 * MS, 200 * MS));
    process_term(find_process(P_WATCHER, h, 0));
}

static void on_drain_out(void *arg)
{
    if (world.peace)
        return;
    if (chance(DRAW_DRAIN, 50))
        end_watcher(arg);
    else
        drain(arg);
}

static void on_drain(void *arg)
{
    (void)arg;
    if (world.now_ns >= plan.end_ns)
        return;
    plan.drain = true;
    at(world.now_ns + draw_between(DRAW_DRAIN, 3 * SECOND, 9 * SECOND), on_drain, NULL);
}

static void on_machine(void *arg)
{
    (void)arg;
    if (world.now_ns >= plan.end_ns)
        return;
    const bool keeps_files = chance(DRAW_BOOT, 50); /* compilers differ in the order of arguments */
    hosts_restart(&world.host[draw(DRAW_BOOT, world.n_hosts)], keeps_files);
    at(world.now_ns + draw_between(DRAW_BOOT, 8 * SECOND, 16 * SECOND), on_machine, NULL);
}

uint64_t plan_binding(struct host *h, const char *node)
{
    if (!plan.strike && plan.drain) {
        plan.drain = false;
        at(world.now_ns + draw(DRAW_DRAIN, 10 * MS), on_drain_out, h);
        return draw_between(DRAW_DRAIN, 200 * MS, LATENCY_MAX);
    }
    if (!plan.strike)
        return 0;
    plan.strike = false;
    load_rivals_about(node);
    at(world.now_ns + draw(DRAW_BINDING, 10 * MS), on_binding_out, h);
    return draw_between(DRAW_BINDING, 200 * MS, LATENCY_MAX);
}

bool plan_sequences(void)
{
    return !(plan_skip >> F_SEQUENCES & 1);
}

bool plan_clocks(void)
{
    return !(plan_skip >> F_BOOT & 1);
}

bool plan_binds(void)
{
    return plan.binding;
}

/* ---- the plan -------------------------------------------------------------------------------- */

static void on_load(void *arg)
{
    (void)arg;
    if (world.now_ns >= plan.end_ns)
        return;
    in_server(load_step);
    at(world.now_ns + draw_between(DRAW_PLAN, MS, plan.load_gap_ns), on_load, NULL);
}

void plan_draw(void)
{
    for (int f = 0; f < F_COUNT; f++)
        plan.on[f] = chance(DRAW_PLAN, f == F_KILL || f == F_STOP ? 60 : 40);
    plan.binding = !(plan_skip >> F_BINDING & 1) && chance(DRAW_BINDING, 50);
    plan.drains = !(plan_skip >> F_DRAIN & 1) && chance(DRAW_DRAIN, 20);
    plan.restarts = chance(DRAW_BOOT, 15) && !(plan_skip >> F_BOOT & 1);
    const uint64_t gangs = draw(DRAW_GANGS, 100);
    world.gangs = plan_skip >> F_GANGS & 1 ? NO_GANGS
                  : gangs < 25             ? OF_SCHEDULING
                  : gangs < 40             ? OF_COSCHEDULING
                                           : NO_GANGS;
    world.marks = chance(DRAW_PLUGIN, 20) && !world.gangs && !(plan_skip >> F_PLUGIN & 1);
    world.groups_preempt =
        world.gangs == OF_SCHEDULING && gangs % 3 == 0 && !(plan_skip >> F_PREEMPT & 1);
    world.tcp = !(plan_skip >> F_TCP & 1) && chance(DRAW_GANGS, 25);
    plan.gap_ns = draw_between(DRAW_PLAN, SECOND / 2, 3 * SECOND);
    plan.load_gap_ns = draw_between(DRAW_PLAN, 60 * MS, 500 * MS);
}

void plan_run(void)
{
    /* Most find what they find within a few seconds; leases and binders that are awaited need more. */
    const uint64_t drawn = draw_between(DRAW_PLAN, 6, 22), seconds = drawn > 16 ? drawn : drawn / 2;

    plan.end_ns = world.now_ns + (plan_seconds ? plan_seconds : seconds) * SECOND;
    at(world.now_ns + draw(DRAW_PLAN, 4 * SECOND), on_fault, NULL);
    on_load(NULL);
    if (plan.binding)
        at(world.now_ns + draw(DRAW_BINDING, 4 * SECOND), on_strike, NULL);
    if (plan.drains)
        at(world.now_ns + draw(DRAW_DRAIN, 5 * SECOND), on_drain, NULL);
    if (plan.restarts)
        at(world.now_ns + draw(DRAW_BOOT, 6 * SECOND), on_machine, NULL);
    run_until(plan.end_ns, NULL);
}

uint64_t plan_faults(void)
{
    return plan.n_faults;
}

void plan_stop_leader(void)
{
    struct process *p = world.leader ? find_process(P_SCHEDULER, world.leader, 0) : NULL;

    if (!p || !p->alive || p->stopped)
        return;
    reach(stopped_leader_in_peace);
    process_stop(p, STOPPED_LEADER_NS);
    in_server(load_rivals);
}

void plan_peace(void)
{
    say("peace");
    world.peace = true;
    world.peace_ns = world.now_ns;
    net = (struct net){.latency_ns = MS};
    server_faults("");
    for (unsigned i = 0; i < world.n_hosts; i++) {
        on_reach_again(&world.host[i]);
        on_room_again(&world.host[i]);
        hosts_configure(&world.host[i], 0); /* one that a scheduler starts with */
    }
    api_no_silence();
    for (unsigned i = 1; i < n_processes; i++) {
        processes[i].steps_left = 0;
        if (!processes[i].wanted) {
            processes[i].wanted = true;
            process_start(&processes[i], 0);
        }
    }
}
