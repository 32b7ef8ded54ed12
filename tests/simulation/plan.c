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
             F_COUNT
};
unsigned plan_skip;
uint64_t plan_seconds;
static struct {
    bool on[F_COUNT];
    uint64_t start_ns, end_ns, gap_ns, load_gap_ns;
} plan;

static struct process *somebody(void)
{
    return &processes[1 + draw(DRAW_PLAN, n_processes - 1)]; /* all but the API server */
}

/* At once, or at one of its next steps. */
static void strike(struct process *p, uint64_t stop_ns)
{
    p->stop_ns = stop_ns;
    p->publication_only = p->kind == P_WATCHER && chance(DRAW_PLAN, 40);
    p->steps_left = p->publication_only ? 1 + draw(DRAW_PLAN, 40) : 1 + draw(DRAW_PLAN, MAX_STEPS);
}

static void do_kill(void)
{
    const uint64_t how = draw(DRAW_PLAN, 10);
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
    const uint64_t ns = chance(DRAW_PLAN, 25) ? draw_between(DRAW_PLAN, 5 * SECOND, 25 * SECOND)
                                              : draw_between(DRAW_PLAN, 10 * MS, 3 * SECOND);
    struct process *p = somebody();

    if (chance(DRAW_PLAN, 20)) {
        for (unsigned i = 1; i < n_processes; i++)
            if (processes[i].host == p->host)
                process_stop(&processes[i], ns);
    } else if (chance(DRAW_PLAN, 30)) {
        process_stop(p, ns);
    } else {
        strike(p, ns);
    }
}

static void do_net(void)
{
    struct net *n = &net;

    *n = (struct net){.latency_ns = 2 * MS};
    if (chance(DRAW_PLAN, 30))
        return;
    n->lost = (unsigned)draw(DRAW_PLAN, 10);
    n->answer_lost = (unsigned)draw(DRAW_PLAN, 10);
    n->half = (unsigned)draw(DRAW_PLAN, 5);
    n->never = (unsigned)draw(DRAW_PLAN, 3);
    if (chance(DRAW_PLAN, 40)) /* bindings that take their time */
        n->latency_ns = draw_between(DRAW_PLAN, 20 * MS, 3 * SECOND);
    if (chance(DRAW_PLAN, 40))
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
    const size_t i = draw(DRAW_PLAN, BH_ARRAY_LEN(specs));

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
    struct host *h = &world.host[draw(DRAW_PLAN, world.n_hosts)];

    if (h->cut_off)
        return;
    reach(host_cut_off);
    h->cut_off = true;
    say("%s is cut off", h->name);
    at(world.now_ns + draw_between(DRAW_PLAN, 100 * MS, 25 * SECOND), on_reach_again, h);
}

static void do_clock(void)
{
    struct host *h = &world.host[draw(DRAW_PLAN, world.n_hosts)];
    const int64_t by = (int64_t)draw_between(DRAW_PLAN, 0, 7200) - 3600;

    reach(wall_clock_jumped);
    h->wall_off_ns = by * (int64_t)SECOND;
    say("the clock of %s is %lld s off", h->name, (long long)by);
}

static void do_binders(void)
{
    struct process *p = find_process(P_BINDER, &world.host[draw(DRAW_PLAN, world.n_hosts)],
                                     (int)draw(DRAW_PLAN, world.n_binders));

    if (p->wanted && world.n_binders > 1 && p->index > 0) {
        p->wanted = false;
        reach(binder_left);
        if (chance(DRAW_PLAN, 50))
            process_term(p);
        else
            process_kill(p);
    } else if (!p->wanted) {
        p->wanted = true;
        process_start(p, 0);
    }
}

static void do_fault(void)
{
    static void (*const doers[])(void) = {do_kill,    do_stop,  do_net, do_server, bus_cut_one,
                                          do_cut_off, do_clock, NULL,   do_binders};
    const enum fault f = (enum fault)draw(DRAW_PLAN, F_COUNT);

    if (!plan.on[f] || plan_skip >> f & 1)
        return;
    if (f == F_TERM)
        process_term(somebody());
    else
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

static void on_load(void *arg)
{
    (void)arg;
    if (world.now_ns >= plan.end_ns)
        return;
    in_server(load_step);
    at(world.now_ns + draw_between(DRAW_LOAD, MS, plan.load_gap_ns), on_load, NULL);
}

void plan_draw(void)
{
    for (int f = 0; f < F_COUNT; f++)
        plan.on[f] = chance(DRAW_PLAN, f == F_KILL || f == F_STOP ? 60 : 40);
    plan.gap_ns = draw_between(DRAW_PLAN, SECOND, 6 * SECOND);
    plan.load_gap_ns = draw_between(DRAW_PLAN, 100 * MS, 900 * MS);
}

void plan_run(void)
{
    const uint64_t seconds = draw_between(DRAW_PLAN, 15, 45);

    plan.start_ns = world.now_ns;
    plan.end_ns = world.now_ns + (plan_seconds ? plan_seconds : seconds) * SECOND;
    at(world.now_ns + draw(DRAW_PLAN, 4 * SECOND), on_fault, NULL);
    on_load(NULL);
    run_until(plan.end_ns, NULL);
}

void plan_peace(void)
{
    say("peace");
    world.peace = true;
    net = (struct net){.latency_ns = MS};
    server_faults("");
    for (unsigned i = 0; i < world.n_hosts; i++)
        on_reach_again(&world.host[i]);
    for (unsigned i = 1; i < n_processes; i++) {
        processes[i].steps_left = 0;
        if (!processes[i].wanted) {
            processes[i].wanted = true;
            process_start(&processes[i], 0);
        }
    }
}
