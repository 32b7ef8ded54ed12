/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/simulation/sequences.c - what chance does not come by: in peace, on a node of its own
 *
 * Some defects show only when nothing else happens behind them: any pod that ends wakes all that wait
 * for room, any other attempt says anew why a pod waits. So some seeds, when there is peace, go
 * through a few steps on a node that nobody else can use, and nothing follows.
 */
#include "tests/simulation/simulation.h"

#define READY_NS (100 * SECOND) /* until somebody leads and decides */
#define STEP_NS  (30 * SECOND)  /* a decision, and its write; longer than any backoff */
/* Binders are away until every term has ended: the longest lease, and more. */
#define AWAY_MIN (20 * SECOND)
#define AWAY_MAX (30 * SECOND)

static const char slow[] = "apart-slow", first[] = "apart-first", second[] = "apart-second";

static bool comes(bool (*is)(void), uint64_t within_ns)
{
    run_until(world.now_ns + within_ns, is);
    return !world.failure[0] && is();
}

static void pass(uint64_t min_ns, uint64_t max_ns)
{
    run_until(world.now_ns + draw_between(DRAW_SEQUENCE, min_ns, max_ns), NULL);
}

/* And hears at once of what happens, and acts on it: after the unrest a watch may have to wait for its next
 * try, and a scheduler for what the one before could not write down. */
static bool somebody_leads(void)
{
    return world.leader && world.leader->leads && world.leader->decides && api_watches_stand();
}

/* ---- a promise that ends --------------------------------------------------------------------- */

static bool slow_is_bound(void)
{
    return load_pod(slow) == POD_BOUND;
}

static bool first_is_bound(void)
{
    return load_pod(first) == POD_BOUND;
}

static bool first_is_promised(void)
{
    return load_pod(first) == POD_PROMISED;
}

static bool second_is_refused(void)
{
    return load_pod(second) == POD_REFUSED;
}

static bool second_is_bound(void)
{
    return load_pod(second) == POD_BOUND;
}

static void add_slow(void)
{
    load_add_apart(false);
    load_add_pod_apart(slow, "low", 2000, true);
}

static void add_first(void)
{
    load_add_pod_apart(first, "high", 3000, false);
}

static void add_second(void)
{
    load_add_pod_apart(second, "low", 1000, false);
}

static void remove_first(void)
{
    load_remove_pod(first);
}

/* A pod waits for the room of another that takes its time to end. */
static bool is_promised(void)
{
    in_server(add_slow);
    if (!comes(slow_is_bound, READY_NS))
        return false;
    pass(SECOND, 2 * SECOND); /* it runs: else it would end at once */
    in_server(add_first);
    return comes(first_is_promised, STEP_NS);
}

/* A third one would fit beside the other, and waits because of the promise. When the first goes, the
 * third has to have a node: nothing else will ever wake it. */
static void promise(void)
{
    if (!is_promised())
        return;
    in_server(add_second);
    if (!comes(second_is_refused, STEP_NS))
        return;
    if (chance(DRAW_SEQUENCE, 30) && world.leader) { /* the next one knows of it from the object */
        process_kill(find_process(P_SCHEDULER, world.leader, 0));
        pass(READY_NS, READY_NS);
    }
    pass(0, 3 * SECOND);
    reach(promise_ended);
    in_server(remove_first);
    if (!comes(second_is_bound, STEP_NS))
        fail("not woken %d s after the end of a promise: pod %s", (int)(STEP_NS / SECOND), second);
}

static void bind_first(void)
{
    load_remove_pod(slow);
    load_bind_apart(first);
}

/* Another hand binds the pod that waits, when the other ends. The scheduler, woken by that, reads of
 * it in the snapshot before the feed tells it. With that the promise is kept: who fits beside the pod
 * has to have a node. */
static void elsewhere(void)
{
    if (!is_promised())
        return;
    pass(4 * SECOND, 8 * SECOND); /* behind its backoff */
    if (!comes(somebody_leads, READY_NS))
        return;
    pass(SECOND, SECOND); /* what it decides first is written by then */
    if (!world.leader)
        return;
    reach(bound_by_another_hand);
    bus_hold(find_process(P_SCHEDULER, world.leader, 0),
             draw_between(DRAW_SEQUENCE, 100 * MS, 400 * MS));
    in_server(bind_first);
    pass(SECOND, 2 * SECOND);
    in_server(add_second);
    if (!comes(second_is_bound, STEP_NS))
        fail("no node %d s after a promise was kept: pod %s", (int)(STEP_NS / SECOND), second);
}

/* ---- gone before it was seen ----------------------------------------------------------------- */

static void add_open(void)
{
    load_add_apart(false);
}

static void add_large(void)
{
    load_add_pod_apart(second, "low", 2000, false);
}

/* Until the log of the snapshot has come round. */
static void come_round(const struct host *h)
{
    for (uint64_t n = 0; n < h->log_entries + TOUCHES; n += TOUCHES) {
        in_server(load_touch_apart);
        pass(3 * MS, 3 * MS);
    }
}

/* The scheduler hears from a binder that a pod is bound. Before it sees that in the snapshot the pod is
 * gone, and so is what the log had of it: what is read anew has no trace. Its room has to be free. */
static void unseen(void)
{
    if (!comes(somebody_leads, READY_NS))
        return;
    struct host *h = world.leader;
    in_server(add_open);
    pass(SECOND, 2 * SECOND);
    in_server(add_first);
    if (!comes(first_is_bound, STEP_NS) || world.leader != h)
        return;
    reach(gone_unseen);
    process_stop(find_process(P_WATCHER, h, 0), 400 * MS);
    pass(200 * MS, 350 * MS); /* the answer may wait for others */
    in_server(remove_first);
    process_stop(find_process(P_SCHEDULER, h, 0), 800 * MS);
    if (chance(DRAW_SEQUENCE, 50)) /* what the feed has to say of that comes behind all this */
        bus_hold(find_process(P_SCHEDULER, h, 0), 1500 * MS);
    pass(350 * MS, 400 * MS);
    world.slow_copies = true;
    come_round(h);
    pass(200 * MS, 200 * MS);
    come_round(h); /* what it copies moves */
    world.slow_copies = false;
    pass(2 * SECOND, 3 * SECOND);
    in_server(add_large);
    if (!comes(second_is_bound, STEP_NS))
        fail("no node %d s after its room was free: pod %s", (int)(STEP_NS / SECOND), second);
}

/* ---- a term that ends with nothing written --------------------------------------------------- */

static void add_cordoned(void)
{
    load_add_apart(true);
}

static void open_node(void)
{
    load_cordon_apart(false);
}

static void close_node(void)
{
    load_cordon_apart(true);
}

static void set_binders(bool wanted)
{
    for (unsigned i = 1; i < n_processes; i++) {
        struct process *p = &processes[i];
        if (p->kind != P_BINDER)
            continue;
        p->wanted = wanted;
        if (wanted)
            process_start(p, draw(DRAW_SEQUENCE, 2 * SECOND));
        else
            process_kill(p);
    }
}

/* Nobody is there to write: what is said of a pod, and the binding that overtook it, are taken back
 * with the term. By then its node is closed as at first: it has to be said again. */
static void unwritten(void)
{
    if (!comes(somebody_leads, READY_NS))
        return;
    in_server(add_cordoned);
    pass(SECOND, 3 * SECOND);
    set_binders(false);
    in_server(add_first);
    pass(200 * MS, 1500 * MS);
    in_server(open_node);
    pass(200 * MS, 2 * SECOND);
    in_server(close_node);
    reach(term_ended_unwritten);
    pass(AWAY_MIN, AWAY_MAX);
    set_binders(true);
}

/* ---- binders that are stopped with a request in hand ----------------------------------------- */

static bool works_for(const struct process *p, const struct host *h)
{
    return p->kind == P_BINDER && host_served(p) == h;
}

/* Each binder of the host, when a request of its own that writes is about to leave. */
static void stop_binders_of(const struct host *h, uint64_t min_ns, uint64_t max_ns)
{
    for (unsigned i = 1; i < n_processes; i++)
        if (works_for(&processes[i], h)) {
            processes[i].request_only = true;
            processes[i].stop_ns = draw_between(DRAW_SEQUENCE, min_ns, max_ns);
            processes[i].steps_left = 1;
        }
}

static void stop_no_more(void)
{
    for (unsigned i = 1; i < n_processes; i++)
        processes[i].steps_left = 0;
}

/* They go on when nothing of that term may be written any more. */
static void held(void)
{
    if (!comes(somebody_leads, READY_NS))
        return;
    const struct host *h = world.leader;
    in_server(add_open);
    pass(SECOND, 2 * SECOND);
    reach(write_after_its_grant);
    stop_binders_of(h, AWAY_MIN, AWAY_MAX);
    in_server(add_first);
    (void)comes(first_is_bound, READY_NS);
    stop_no_more();
}

static struct process *stopped_binder(void)
{
    for (unsigned i = 1; i < n_processes; i++)
        if (processes[i].stopped && works_for(&processes[i], world.leader))
            return &processes[i];
    return NULL;
}

static bool one_is_stopped(void)
{
    return stopped_binder();
}

static void open_for_two(void)
{
    load_cordon_apart(false);
    load_add_pod_apart(second, "low", 1000, false);
}

static bool one_is_stopped_with_a_status(uint64_t min_ns, uint64_t max_ns)
{
    if (!comes(somebody_leads, READY_NS))
        return false;
    in_server(add_cordoned);
    pass(SECOND, 2 * SECOND);
    stop_binders_of(world.leader, min_ns, max_ns);
    in_server(add_first);
    (void)comes(one_is_stopped, STEP_NS);
    stop_no_more();
    pass(1200 * MS, 1400 * MS); /* behind the pod's backoff */
    return one_is_stopped();
}

/* Not for so long that it would not write it any more, and its connection is cut, as the scheduler
 * learns by the second pod. What comes after the status has to wait: else it would be written behind
 * that. */
static void cut_off(void)
{
    if (!one_is_stopped_with_a_status(2200 * MS, 2400 * MS))
        return;
    reach(cut_off_while_stopped);
    bus_cut_one(stopped_binder());
    in_server(open_for_two);
    (void)comes(first_is_bound, READY_NS);
}

/* For so long that another one has bound the pod: when it goes on, what it has is of before. */
static void outdated(void)
{
    if (!one_is_stopped_with_a_status(AWAY_MIN, AWAY_MAX))
        return;
    reach(status_of_before);
    in_server(open_for_two);
    (void)comes(first_is_bound, READY_NS);
}

/* ---- a last word ----------------------------------------------------------------------------- */

/* What the feed says of a pod is lost with its connection, and nothing comes after it that would show
 * the gap. */
static void last_word(void)
{
    if (!comes(somebody_leads, READY_NS))
        return;
    in_server(add_open);
    pass(2 * SECOND, 3 * SECOND);
    reach(last_word_lost);
    bus_lose_next(find_process(P_SCHEDULER, world.leader, 0));
    in_server(add_first);
    if (!comes(first_is_bound, STEP_NS))
        fail("no node %d s after the feed's last word was lost: pod %s", (int)(STEP_NS / SECOND),
             first);
}

void sequences_run(void)
{
    const uint64_t which = draw(DRAW_SEQUENCE, 100);

    if (world.failure[0] || !plan_sequences())
        return;
    if (which < 8)
        promise();
    else if (which < 16)
        unwritten();
    else if (which < 22)
        elsewhere();
    else if (which < 28)
        unseen();
    else if (which < 32)
        held();
    else if (which < 36)
        last_word();
    else if (which < 40)
        cut_off();
    else if (which < 44)
        outdated();
}
