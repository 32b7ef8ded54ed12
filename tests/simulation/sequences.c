/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/simulation/sequences.c - what chance does not come by: in peace, on a node of its own
 *
 * Some defects show only when nothing else happens behind them: any pod that ends wakes all that wait
 * for room, any other attempt says anew why a pod waits. So some seeds, when there is peace, go
 * through a few steps on a node that nobody else can use, and nothing follows.
 */
#include "common/base/trusted_file.h"
#include "scheduler/daemon/inflight.h"
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
    load_bind_apart(first, "apart");
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

/* ---- a refusal behind a request that may bind yet -------------------------------------------- */

#define LONGEST_TRY (1800 * MS) /* of a try whose client has given it up: LATENCY_MAX of plan.c */

static void add_wide(void)
{
    load_add_pod_apart(slow, "low", 4000, false);
}

static void add_rival(void)
{
    load_add_pod_apart(second, "high", 3000, false);
}

static void refuse_binds(void)
{
    server_faults("bind-404-every=1");
}

static void accept_binds(void)
{
    server_faults("");
}

static bool an_order_is_met(void)
{
    return api_ordered_sender();
}

static uint64_t refused_before;

static bool one_more_is_refused(void)
{
    return world.reached[R_bind_refused] > refused_before;
}

/* The server falsely refuses the next binding, but not the one that the network delays. The capacity stays
 * reserved for the pod: else a rival has it when the delayed binding arrives. */
static bool rival_comes(uint64_t within_ns)
{
    const bool refused = comes(one_more_is_refused, within_ns);

    in_server(accept_binds);
    in_server(add_rival);
    pass(6 * SECOND, 8 * SECOND);
    return refused;
}

static unsigned count_binders(const struct host *h)
{
    unsigned n = 0;

    for (unsigned i = 1; i < n_processes; i++)
        n += works_for(&processes[i], h);
    return n;
}

/* The binder's connection is cut, as the scheduler learns from what it has to write next: another binder,
 * or the same one, sends the binding again. */
static void refused_behind_a_try(void)
{
    if (!comes(somebody_leads, READY_NS))
        return;
    in_server(add_open);
    pass(SECOND, 2 * SECOND);
    api_delay_binding(first, draw_between(DRAW_SEQUENCE, 2 * SECOND, 4 * SECOND), false);
    in_server(add_first);
    if (!comes(an_order_is_met, STEP_NS))
        return;
    refused_before = world.reached[R_bind_refused];
    in_server(refuse_binds);
    bus_cut_one(api_ordered_sender());
    in_server(add_wide);
    if (rival_comes(1500 * MS))
        reach(refused_behind_a_try);
}

/* The binder loses the answer and has to end before it tries again: it reports an unknown outcome. */
static void refused_behind_an_unknown(void)
{
    if (!comes(somebody_leads, READY_NS) || count_binders(world.leader) < 2)
        return;
    in_server(add_open);
    pass(SECOND, 2 * SECOND);
    api_delay_binding(first, LONGEST_TRY, true);
    in_server(add_first);
    if (!comes(an_order_is_met, STEP_NS))
        return;
    refused_before = world.reached[R_bind_refused];
    in_server(refuse_binds);
    process_term(api_ordered_sender());
    if (rival_comes(SECOND))
        reach(refused_behind_an_unknown);
}

/* No connection for a minute: the scheduler repeats the item twice. The third time the request leaves, and
 * the scheduler is killed: the next one has to count from the last time, not from the first. */
static void refused_behind_repeats(void)
{
    if (!comes(somebody_leads, READY_NS))
        return;
    struct host *h = world.leader;
    in_server(add_open);
    pass(SECOND, 2 * SECOND);
    api_refuse_writes(first);
    in_server(add_first);
    pass(62 * SECOND, 70 * SECOND);
    api_delay_binding(first, draw_between(DRAW_SEQUENCE, 5 * SECOND, 7 * SECOND), false);
    if (!comes(an_order_is_met, STEP_NS) || world.leader != h)
        return;
    refused_before = world.reached[R_bind_refused];
    in_server(refuse_binds);
    process_kill(find_process(P_SCHEDULER, h, 0));
    process_start(find_process(P_SCHEDULER, h, 0), 20 * MS);
    if (rival_comes(4 * SECOND))
        reach(refused_behind_repeats);
}

/* ---- a damaged record ------------------------------------------------------------------------ */

/* The record of a scheduler that is gone: it ends early, or one bit of what is in use is another. */
static void damage_record(const struct host *h)
{
    char path[sizeof(h->dir) + sizeof(BH_SCHEDULER_DIR "/" BH_INFLIGHT_FILE) + 1], *text = NULL;
    size_t n = 0, at, used = 0;

    snprintf(path, sizeof(path), "%s/" BH_SCHEDULER_DIR "/" BH_INFLIGHT_FILE, h->dir);
    if (bh_read_file(path, (size_t)1 << 26, &text, &n) < 0 || !n) {
        fail("a scheduler with a binding in flight has no record");
        free(text);
        return;
    }
    for (size_t i = 0; i < n; i++)
        used += text[i] != 0;
    if (chance(DRAW_SEQUENCE, 50)) {
        n = draw(DRAW_SEQUENCE, (uint32_t)n);
    } else { /* zeros are of no use to a record that is not full, so one of the other bytes */
        used = draw(DRAW_SEQUENCE, (uint32_t)used);
        for (at = 0; text[at] == 0 || used--; at++)
            ;
        text[at] ^= (char)(1 << draw(DRAW_SEQUENCE, 8));
    }
    if (bh_write_file(path, text, n, 0600) < 0)
        fail("cannot write %s", path);
    free(text);
}

/* The next scheduler cannot know what is in flight, not even from the binders when they are gone, too. */
static void damaged_record(void)
{
    if (!comes(somebody_leads, READY_NS))
        return;
    struct host *h = world.leader;
    in_server(add_open);
    pass(SECOND, 2 * SECOND);
    api_delay_binding(first, draw_between(DRAW_SEQUENCE, 3 * SECOND, 5 * SECOND), false);
    in_server(add_first);
    if (!comes(an_order_is_met, STEP_NS) || world.leader != h)
        return;
    reach(record_damaged);
    process_kill(find_process(P_SCHEDULER, h, 0));
    const bool with_binders = chance(DRAW_SEQUENCE, 50);
    for (unsigned i = 0; with_binders && i < world.n_binders; i++) {
        struct process *binder = find_process(P_BINDER, h, (int)i);
        process_kill(binder);
        process_start(binder, draw_between(DRAW_SEQUENCE, 20 * MS, 200 * MS));
    }
    damage_record(h);
    process_start(find_process(P_SCHEDULER, h, 0), draw_between(DRAW_SEQUENCE, 20 * MS, 200 * MS));
    in_server(add_rival);
    pass(8 * SECOND, 9 * SECOND);
}

/* ---- claims that are written and not seen ---------------------------------------------------- */

static void add_claimants(void)
{
    load_add_apart(true);
    load_add_device_apart(false);
    load_add_claimant_apart(first, "high");
    load_add_claimant_apart(second, "high");
}

static void add_device(void)
{
    load_add_device_apart(true);
}

/* The scheduler is killed when the binding leaves. The next one sees the claim without its device, and a
 * device that is tried before that one. It may neither take that one for the claim's nor give the claim's
 * away. */
static void unseen_claim(void)
{
    if (!comes(somebody_leads, READY_NS))
        return;
    struct host *h = world.leader;
    in_server(add_claimants);
    pass(2 * SECOND, 3 * SECOND);
    if (world.leader != h)
        return;
    api_delay_watch(h, "/resourceclaims", draw_between(DRAW_SEQUENCE, 7 * SECOND, 9 * SECOND));
    api_delay_binding(first, draw_between(DRAW_SEQUENCE, 3 * SECOND, 5 * SECOND), false);
    in_server(open_node);
    if (!comes(an_order_is_met, STEP_NS) || world.leader != h)
        return;
    reach(adopted_before_its_claim);
    process_kill(find_process(P_SCHEDULER, h, 0));
    process_start(find_process(P_SCHEDULER, h, 0), draw_between(DRAW_SEQUENCE, 20 * MS, 200 * MS));
    in_server(add_device);
    pass(10 * SECOND, 12 * SECOND);
}

/* ---- a group that waits for its victims ------------------------------------------------------ */

/* Nothing evicts the victims for a while, and what would be chosen now is another pod. Members that do not
 * wait evict that one, too. */
static void group_waits(void)
{
    if (!comes(somebody_leads, READY_NS))
        return;
    in_server(add_open);
    in_server(load_fill_apart);
    pass(4 * SECOND, 5 * SECOND); /* they run: else they would end at once */
    api_refuse_writes(slow);
    in_server(load_add_group_apart);
    if (comes(an_order_is_met, STEP_NS)) {
        reach(group_waits_for_victims);
        in_server(load_add_cheap_apart);
        pass(5 * SECOND, 7 * SECOND); /* behind their backoff */
        if (load_is_cheap_chosen())
            fail("evicted twice: a group does not wait for the victims that were chosen for it");
    }
    api_refuse_writes(NULL);
    pass(3 * SECOND, 4 * SECOND);
    in_server(load_clear_apart);
    if (!comes(load_is_group_bound, STEP_NS))
        fail("not bound %d s after the end of its victims: a group", (int)(STEP_NS / SECOND));
}

void sequences_run(void)
{
    const uint64_t which = draw(DRAW_SEQUENCE, 100);

    if (world.failure[0] || !plan_sequences())
        return;
    say("sequence %u", (unsigned)which);
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
    else if (world.groups_preempt)
        group_waits();
    else if (which < 49)
        refused_behind_a_try();
    else if (which < 54)
        refused_behind_an_unknown();
    else if (which < 59)
        refused_behind_repeats();
    else if (which < 64)
        unseen_claim();
    else if (which < 68)
        damaged_record();
}
