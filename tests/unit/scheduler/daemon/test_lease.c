/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/daemon/test_lease.c - standing by, taking over, and the end of a term
 */
#include "tests/unit/scheduler/daemon/fixture.h"

#define BIND    BERTH__WORK_KIND__WORK_BIND
#define PATCH   BERTH__WORK_KIND__WORK_PATCH_STATUS
#define DONE    BERTH__OUTCOME__OUTCOME_DONE
#define STALE   BERTH__OUTCOME__OUTCOME_STALE
#define UNKNOWN BERTH__OUTCOME__OUTCOME_UNKNOWN
#define BOUND   BERTH__CHANGE_OP__CHANGE_BOUND
#define S       UINT64_C(1000000000)
#define HELD    (600 * S) /* longer than any machine needs for a test */

static void hold(struct fixture *f, uint64_t term, uint64_t for_ns)
{
    bh_snap_set_lease(f->snap, term, bh_boot_ns() + for_ns);
}

static void give_up(struct fixture *f, uint64_t term)
{
    bh_snap_set_lease(f->snap, term, 0);
}

static bool all_idle(struct fixture *f)
{
    struct bh_binder *b;

    for (size_t it = 0; (b = bh_ledger_next_binder(f->d.ledger, &it));)
        if (!b->idle)
            return false;
    return true;
}

/* A stand-by host with one node, everything known. */
static void stand_by(struct fixture *f, const char *cpu)
{
    setup(f);
    bh_snap_set_lease(f->snap, 0, 0);
    snap_node(f, "n1", cpu);
    bh_snap_set_synced(f->snap, true);
    SPIN(f, f->known);
    feed_begin(f);
    feed_batch(f, NULL, true);
    SPIN(f, f->ready);
}

static void test_a_stand_by_host_is_ready_and_decides_nothing(void)
{
    struct fixture f;

    stand_by(&f, "4");
    add_pod(&f, "p", "1");
    settle(&f);
    CU_ASSERT(place(&f, "p") == BH_Q_ACTIVE);
    CU_ASSERT(!bh_sched_may_decide(&f.d) && bh_sched_ready(&f.d));
    uint64_t progress = f.binder_progress;
    SPIN(&f, f.binder_progress > progress); /* the watcher hears that somebody could write */
    CU_ASSERT(f.b[0].valid_ns == 0);

    hold(&f, 7, HELD);
    (void)await(&f, &f.b[0], BIND, "p");
    CU_ASSERT_EQUAL(f.b[0].term, 7);
    CU_ASSERT(f.b[0].grant_term == 7 && f.b[0].valid_ns > 0 && f.b[0].valid_ns <= HELD);
    CU_ASSERT(f.b[0].grant_stamp > 0 && f.b[0].grant_stamp <= bh_boot_ns()); /* the binder's */
    CU_ASSERT_EQUAL(f.quiet_term, 0);
    teardown(&f);
}

static void test_without_election_nothing_is_granted(void)
{
    struct fixture f;

    setup(&f);
    snap_node(&f, "n1", "4");
    go(&f);
    add_pod(&f, "p", "1");
    (void)await(&f, &f.b[0], BIND, "p");
    CU_ASSERT(f.b[0].term == 0 && f.b[0].grant_serial == 0);
    unsigned greeted = f.b[0].greeted;
    binder_hello(&f.b[0], 0);
    SPIN(&f, f.b[0].greeted > greeted); /* it hears that somebody is there all the same */
    teardown(&f);
}

/* Which binders an earlier scheduler of this term had, and until when they may write, nobody can
 * tell who was not there: until no grant of that time holds any more, it is not quiet. */
static void test_a_start_in_the_middle_of_a_term(void)
{
    struct fixture f;

    setup(&f);
    bh_snap_set_lease(f.snap, 0, 0);
    for (int i = 0; i < 20; i++)
        one_turn(&f); /* that it did not know anything is not to have stood by */
    hold(&f, 7, HELD);
    snap_node(&f, "n1", "4");
    go(&f);
    SPIN(&f, f.b[0].grant_term == 7);
    CU_ASSERT_EQUAL(f.d.lease.strays_until_ns, f.d.in.lease_until_ns + BH_BUS_GRANT_TAIL_NS);
    uint64_t first = f.d.in.lease_until_ns;
    hold(&f, 8, 2 * HELD); /* it never stood by */
    SPIN(&f, f.b[0].grant_term == 8);
    CU_ASSERT(f.d.in.lease_until_ns > first);
    CU_ASSERT_EQUAL(f.d.lease.strays_until_ns, f.d.in.lease_until_ns + BH_BUS_GRANT_TAIL_NS);
    teardown(&f);
}

static void test_who_stood_by_knows_all_binders(void)
{
    struct fixture f;

    stand_by(&f, "4");
    hold(&f, 7, HELD);
    SPIN(&f, f.b[0].grant_term == 7);
    CU_ASSERT_EQUAL(f.d.lease.strays_until_ns, 0);
    teardown(&f);
}

/* After a scheduler_stop(); nothing is pending. */
static void start_again(struct fixture *f)
{
    f->hellos = 0;
    f->quiet_term = 0;
    scheduler_start(f);
    SPIN(f, f->hellos > 0);
    feed_begin(f);
    feed_batch(f, NULL, true);
}

/* The term is over when it comes, and the binding of the scheduler before may be on the wire. */
static void test_a_start_after_a_term(void)
{
    struct fixture f;

    stand_by(&f, "4");
    hold(&f, 7, HELD);
    add_pod(&f, "p", "1");
    (void)await(&f, &f.b[0], BIND, "p");
    scheduler_stop(&f);
    give_up(&f, 7);
    start_again(&f);
    uint64_t progress = f.binder_progress;
    SPIN(&f, bh_sched_ready(&f.d) && f.d.lease.stood_by && all_idle(&f));
    SPIN(&f, f.binder_progress > progress); /* what the watcher hears is of now */
    CU_ASSERT_EQUAL(f.d.lease.unseen_term, 7);
    CU_ASSERT(f.quiet_term == 0 && f.d.in.feed.life.quiet_term == 0);
    hold(&f, 8, HELD); /* the next one it has seen */
    SPIN(&f, f.b[0].grant_term == 8 && f.b[0].valid_ns > 0);
    give_up(&f, 8);
    SPIN(&f, f.quiet_term == 8);
    teardown(&f);
}

/* The same, while there is a lease to be seen and no snapshot yet. */
static void test_a_start_after_a_term_without_a_snapshot(void)
{
    const struct bh_snap_options so = {.initial_bytes = 1u << 20, .log_entries = 1u << 10};
    struct bh_err err = {0};
    struct fixture f;

    stand_by(&f, "4");
    hold(&f, 7, HELD);
    add_pod(&f, "p", "1");
    (void)await(&f, &f.b[0], BIND, "p");
    scheduler_stop(&f);
    f.b[0].mute = true; /* it may be writing yet */
    bh_snap_writer_free(f.snap);
    CU_ASSERT_FATAL(bh_snap_writer_new(f.dir, &so, &f.snap, &err) == 0);
    give_up(&f, 7);
    start_again(&f);
    SPIN(&f, f.d.in.lease_term == 7);
    settle(&f);
    CU_ASSERT(!f.d.in.snapshot_ready);
    CU_ASSERT(f.quiet_term == 0 && f.d.in.feed.life.quiet_term == 0);
    teardown(&f);
}

/* The host leads again before the request can have come in: the pod's room would be another's. */
static void test_what_may_come_in_yet_is_waited_for(void)
{
    struct fixture f;

    stand_by(&f, "4");
    hold(&f, 7, HELD);
    add_pod(&f, "p", "1");
    struct item *bind = await(&f, &f.b[0], BIND, "p");
    give_up(&f, 7);
    SPIN(&f, !f.d.lease.held);
    answer(&f.b[0], bind, BERTH__OUTCOME__OUTCOME_UNKNOWN, NULL);
    SPIN(&f, !is_assumed(&f, "p"));
    hold(&f, 7, HELD);
    SPIN(&f, f.d.lease.held);
    settle(&f);
    CU_ASSERT(bh_sched_ready(&f.d) && !bh_sched_may_decide(&f.d));
    CU_ASSERT(f.d.lease.settled_ns > f.d.lease.granted_until_ns - HELD / 2);
    f.d.lease.settled_ns = bh_boot_ns();
    SPIN(&f, count_items(&f.b[0], BIND, "p") == 2);
    teardown(&f);
}

/* The end of a term: what no binder has is taken back, what one has ends with its answer. */
static void test_the_end_of_a_term(Berth__Outcome outcome)
{
    struct fixture f;
    struct item *i;

    stand_by(&f, "4");
    hold(&f, 7, HELD);
    SPIN(&f, f.b[0].valid_ns > 0);
    f.b[0].on_wire = 1;
    add_pod(&f, "out", "1");
    i = await(&f, &f.b[0], BIND, "out");
    bh_ledger_patience(f.d.ledger, 600 * S, 600 * S); /* it stays, however slow the test is */
    f.b[0].mute = true;
    SPIN(&f, f.d.lease.progress > 0);
    struct bh_binder *b;
    size_t it = 0;
    b = bh_ledger_next_binder(f.d.ledger, &it);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    f.b[0].window = 1; /* has "out", takes no more */
    binder_hello(&f.b[0], 0);
    SPIN(&f, b->window == 1);
    CU_ASSERT_EQUAL(b->out, 1);
    add_pod(&f, "unsent", "1");
    SPIN(&f, is_assumed(&f, "unsent"));

    give_up(&f, 7);
    SPIN(&f, !is_assumed(&f, "unsent"));
    CU_ASSERT(place(&f, "unsent") != BH_Q_BINDING && place(&f, "unsent") != BH_Q_NONE);
    CU_ASSERT(bind_of(&f, "u-unsent") == NULL);
    CU_ASSERT(is_assumed(&f, "out")); /* nobody knows yet */
    f.b[0].window = 32;
    f.b[0].mute = false;
    SPIN(&f, f.b[0].valid_ns == 0 && f.b[0].grant_serial > 0);
    settle(&f);
    CU_ASSERT_EQUAL(f.quiet_term, 0); /* it has one on the wire */
    f.b[0].on_wire = 0;
    answer(&f.b[0], i, outcome, "x");
    SPIN(&f, bh_ledger_binds(f.d.ledger) == 0);
    CU_ASSERT_EQUAL(is_assumed(&f, "out"), outcome == DONE);
    SPIN(&f, f.quiet_term == 7);
    CU_ASSERT(count_items(&f.b[0], BIND, "unsent") == 0);
    CU_ASSERT(count_items(&f.b[0], BIND, "out") == 1); /* not repeated */
    CU_ASSERT(count_items(&f.b[0], PATCH, "unsent") == 0);

    hold(&f, 9, HELD); /* and again, from the beginning */
    (void)await(&f, &f.b[0], BIND, "unsent");
    CU_ASSERT_EQUAL(f.b[0].term, 9);
    SPIN(&f, f.quiet_term == 0);
    if (outcome != DONE)
        (void)await(&f, &f.b[0], BIND, "out");
    teardown(&f);
}

static void test_the_end_when_it_was_done(void)
{
    test_the_end_of_a_term(DONE);
}

static void test_the_end_when_it_was_refused(void)
{
    test_the_end_of_a_term(STALE);
}

static void test_the_end_when_nobody_knows(void)
{
    test_the_end_of_a_term(UNKNOWN);
}

/* Its condition was not written, because its bind was to come; then that was not written either. */
static void test_a_condition_that_a_recalled_bind_made_moot_is_written(void)
{
    struct fixture f;
    size_t it = 0;

    stand_by(&f, "1");
    hold(&f, 7, HELD);
    SPIN(&f, f.b[0].valid_ns > 0);
    struct bh_binder *b = bh_ledger_next_binder(f.d.ledger, &it);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    f.b[0].window = 0; /* takes nothing for now */
    binder_hello(&f.b[0], 0);
    SPIN(&f, b->window == 0);
    add_pod(&f, "big", "2");
    SPIN(&f, place(&f, "big") == BH_Q_UNSCHEDULABLE);
    CU_ASSERT(pod_of(&f, "u-big")->queued->told_condition != 0);
    snap_node(&f, "n2", "4");
    SPIN(&f, is_assumed(&f, "big"));
    give_up(&f, 7);
    SPIN(&f, !is_assumed(&f, "big"));
    CU_ASSERT(pod_of(&f, "u-big")->queued->told_condition == 0);
    teardown(&f);
}

/* The pod was tried in the new term when nobody knew that yet. */
static void test_a_condition_that_was_not_written_in_its_term_is_written_in_the_next(void)
{
    struct fixture f;
    struct item *i;

    stand_by(&f, "1");
    hold(&f, 7, HELD);
    add_pod(&f, "big", "2");
    i = await(&f, &f.b[0], PATCH, "big");
    give_up(&f, 7);
    SPIN(&f, !f.d.lease.held);
    hold(&f, 9, HELD);
    SPIN(&f, f.d.lease.held && f.b[0].grant_term == 9);
    settle(&f);
    CU_ASSERT(pod_of(&f, "u-big")->queued->told_condition != 0);
    CU_ASSERT_EQUAL(count_items(&f.b[0], PATCH, "big"), 1);
    answer(&f.b[0], i, UNKNOWN, "x");
    SPIN(&f, count_items(&f.b[0], PATCH, "big") == 2);
    CU_ASSERT_EQUAL(f.b[0].term, 9);
    teardown(&f);
}

static void test_a_deadline_ends_a_term_without_a_word(void)
{
    struct fixture f;

    stand_by(&f, "4");
    hold(&f, 3, S / 5);
    SPIN(&f, f.b[0].valid_ns > 0);
    f.dead = true; /* a watcher that was stopped */
    SPIN(&f, !bh_sched_leads(&f.d) && !f.d.lease.held);
    SPIN(&f, f.b[0].valid_ns == 0);
    teardown(&f);
}

static void test_a_new_term_takes_back_what_the_old_one_left(void)
{
    struct fixture f;
    struct item *i;

    stand_by(&f, "4");
    hold(&f, 7, HELD);
    add_pod(&f, "p", "1");
    i = await(&f, &f.b[0], BIND, "p");
    hold(&f, 8, HELD); /* lost and got again between two turns */
    SPIN(&f, f.b[0].grant_term == 8);
    answer(&f.b[0], i, UNKNOWN, "x");
    SPIN(&f, count_items(&f.b[0], BIND, "p") == 2);
    CU_ASSERT_EQUAL(f.b[0].term, 8);
    CU_ASSERT(f.b[0].items[f.b[0].n - 1].id != i->id); /* decided anew */
    teardown(&f);
}

static void test_a_preemptor_outlives_the_term_of_its_evictions(void)
{
    struct fixture f;
    struct item *i;

    stand_by(&f, "1");
    snap_pod(&f, "v1", "1", "n1", "\"priority\":0,");
    hold(&f, 7, HELD);
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "vip", "1", "\"priority\":100,", ""));
    i = await(&f, &f.b[0], BERTH__WORK_KIND__WORK_DELETE, "v1");
    SPIN(&f, place(&f, "vip") == BH_Q_UNSCHEDULABLE);
    hold(&f, 8, HELD); /* everybody is woken; it is held back */
    SPIN(&f, f.b[0].grant_term == 8 && place(&f, "vip") == BH_Q_GATED);
    answer(&f.b[0], i, UNKNOWN, "x"); /* of a term that is over: not repeated, taken back */
    SPIN(&f, count_items(&f.b[0], BERTH__WORK_KIND__WORK_DELETE, "v1") == 2);
    CU_ASSERT(f.b[0].items[f.b[0].n - 1].id != i->id);
    teardown(&f);
}

static void test_the_other_leaders_binds_are_followed(void)
{
    struct fixture f;

    stand_by(&f, "2");
    add_pod(&f, "a", "1");
    add_pod(&f, "b", "1");
    settle(&f);
    snap_pod(&f, "a", "1", "n1", "");
    end_pod(&f, "a", BOUND);
    settle(&f);
    CU_ASSERT(place(&f, "a") == BH_Q_NONE);
    snap_pod(&f, "c", "1", "n1", ""); /* never pending here */
    hold(&f, 2, HELD);
    (void)await(&f, &f.b[0], PATCH, "b"); /* no room: it knew at once */
    CU_ASSERT(count_items(&f.b[0], BIND, "a") == 0 && count_items(&f.b[0], BIND, "b") == 0);
    teardown(&f);
}

/* While it may write. It is stopped, for all we know. */
static void lose_a_binder(struct fixture *f)
{
    stand_by(f, "4");
    hold(f, 7, HELD);
    SPIN(f, f->b[0].valid_ns > 0);
    bh_ledger_patience(f->d.ledger, S / 10, 60 * S);
    f->b[0].mute = true;
    SPIN(f, f->d.lease.strays == 1);
}

static void test_a_binder_that_was_lost_may_write_until_its_grant_ends(void)
{
    struct fixture f;

    lose_a_binder(&f);
    give_up(&f, 7);
    SPIN(&f, !f.d.lease.held);
    settle(&f);
    CU_ASSERT_EQUAL(f.quiet_term, 0);
    f.d.lease.strays_until_ns = bh_boot_ns(); /* as if that time had come */
    SPIN(&f, f.quiet_term == 7);
    teardown(&f);
}

/* Else it would go on with statuses that others have meanwhile. */
static void test_a_binder_that_was_lost_is_greeted_anew(void)
{
    struct fixture f;

    lose_a_binder(&f);
    const unsigned greeted = f.b[0].greeted;
    bh_ledger_patience(f.d.ledger, BH_BINDER_SILENCE_NS, 60 * S);
    f.b[0].mute = false;
    SPIN(&f, f.b[0].greeted > greeted);
    teardown(&f);
}

/* Whoever has it now may write it yet: what the pod was told would come behind its binding. */
static void test_a_status_that_was_given_out_anew_ends_with_its_own_answer(void)
{
    struct item *first, *second;
    struct fixture f;

    stand_by(&f, "1");
    hold(&f, 7, HELD);
    add_pod(&f, "p", "2");
    first = await(&f, &f.b[0], PATCH, "p");
    bh_ledger_patience(f.d.ledger, S / 10, 600 * S);
    f.b[0].mute = true;
    SPIN(&f, f.d.lease.strays == 1);
    bh_ledger_patience(f.d.ledger, 600 * S, 600 * S);
    f.b[1].mute = false;
    second = await(&f, &f.b[1], PATCH, "p");
    CU_ASSERT_EQUAL(second->id, first->id);
    snap_node(&f, "n2", "4");
    SPIN(&f, place(&f, "p") == BH_Q_BINDING);
    f.b[0].mute = false;
    answer(&f.b[0], first, DONE, NULL);
    settle(&f);
    f.b[1].latency_ns = 10 * S; /* of a time when it had it before */
    answer(&f.b[1], second, DONE, NULL);
    settle(&f);
    CU_ASSERT(count_items(&f.b[0], BIND, "p") + count_items(&f.b[1], BIND, "p") == 0);
    f.b[1].latency_ns = 0;
    answer(&f.b[1], second, DONE, NULL);
    SPIN(&f, count_items(&f.b[0], BIND, "p") + count_items(&f.b[1], BIND, "p") == 1);
    teardown(&f);
}

static void test_a_restarted_watcher_changes_nothing_until_it_knows(void)
{
    struct fixture f;

    stand_by(&f, "4");
    hold(&f, 7, HELD);
    SPIN(&f, f.d.lease.held);
    watcher_stop(&f);
    watcher_start(&f);
    bh_snap_set_lease(f.snap, 0, 0);
    snap_node(&f, "n1", "4");
    bh_snap_set_synced(f.snap, true);
    SPIN(&f, f.known);
    feed_begin(&f);
    feed_batch(&f, NULL, true);
    SPIN(&f, f.d.in.feed.synced && f.d.in.snapshot_ready);
    settle(&f);
    CU_ASSERT(f.d.lease.held && bh_sched_leads(&f.d)); /* what was allowed holds */
    hold(&f, 7, HELD);
    settle(&f);
    CU_ASSERT(f.d.lease.held && f.d.lease.term == 7);
    give_up(&f, 7);
    SPIN(&f, !f.d.lease.held);
    teardown(&f);
}

static void test_election_that_begins_ends_always(void)
{
    struct fixture f;

    setup(&f);
    snap_node(&f, "n1", "4");
    go(&f);
    watcher_stop(&f);
    watcher_start(&f);
    bh_snap_set_lease(f.snap, 0, 0); /* started with --leader-elect this time */
    bh_snap_set_synced(f.snap, true);
    SPIN(&f, f.known);
    feed_begin(&f);
    feed_batch(&f, NULL, true);
    SPIN(&f, f.ready);
    CU_ASSERT(!bh_sched_leads(&f.d));
    teardown(&f);
}

static void test_who_leaves_says_so_when_nothing_is_out(void)
{
    struct fixture f;

    stand_by(&f, "4");
    hold(&f, 7, HELD);
    SPIN(&f, f.b[0].valid_ns > 0);
    f.b[0].deaf = true;
    CU_ASSERT(!bh_sched_lease_left(&f.d));
    for (int i = 0; i < 50; i++)
        one_turn(&f);
    CU_ASSERT(!bh_sched_lease_left(&f.d)); /* the binder has not heard of it */
    CU_ASSERT(!bh_sched_may_decide(&f.d));
    f.b[0].deaf = false;
    SPIN(&f, bh_sched_lease_left(&f.d));
    SPIN(&f, f.quiet_term == 7);
    teardown(&f);
}

/* Its socket is closed when the scheduler reads the first of its last words, and answers that. */
static void test_a_binder_that_leaves_in_haste(void)
{
    struct fixture f;

    stand_by(&f, "4");
    hold(&f, 7, 600 * S);
    SPIN(&f, f.b[0].valid_ns > 0);
    binder_hello(&f.b[0], 0);
    f.b[0].leaving = true;
    binder_hello(&f.b[0], 0);
    bh_bus_close(bh_take_ptr(f.b[0].bus));
    f.b[0].mute = true;
    SPIN(&f, bh_sched_lease_left(&f.d));
    SPIN(&f, f.quiet_term == 7);
    teardown(&f);
}

/* The watcher's last word is the one that the scheduler leaves on: time alone can make it quiet. */
static void test_quiet_as_of_the_last_look(void)
{
    struct fixture f;

    stand_by(&f, "4");
    hold(&f, 7, 600 * S);
    SPIN(&f, f.b[0].valid_ns > 0);
    f.d.lease.strays_until_ns = UINT64_MAX;
    give_up(&f, 7);
    SPIN(&f, !f.d.lease.held && all_idle(&f));
    CU_ASSERT(!bh_sched_lease_left(&f.d));
    f.d.lease.strays_until_ns = 0;
    CU_ASSERT(bh_sched_lease_left(&f.d));
    CU_ASSERT_EQUAL(f.d.in.feed.life.quiet_term, 7);
    teardown(&f);
}

BH_TESTS("scheduler/daemon/lease",
         {"a stand-by host is ready and decides nothing",
          test_a_stand_by_host_is_ready_and_decides_nothing},
         {"without election nothing is granted", test_without_election_nothing_is_granted},
         {"a start in the middle of a term", test_a_start_in_the_middle_of_a_term},
         {"a start after a term", test_a_start_after_a_term},
         {"a start after a term without a snapshot", test_a_start_after_a_term_without_a_snapshot},
         {"what may come in yet is waited for", test_what_may_come_in_yet_is_waited_for},
         {"who stood by knows all binders", test_who_stood_by_knows_all_binders},
         {"the end of a term: a bind that was done", test_the_end_when_it_was_done},
         {"the end of a term: a bind that was refused", test_the_end_when_it_was_refused},
         {"the end of a term: a bind nobody knows about", test_the_end_when_nobody_knows},
         {"a condition that a recalled bind made moot is written",
          test_a_condition_that_a_recalled_bind_made_moot_is_written},
         {"a condition that was not written in its term is written in the next",
          test_a_condition_that_was_not_written_in_its_term_is_written_in_the_next},
         {"a deadline ends a term without a word", test_a_deadline_ends_a_term_without_a_word},
         {"a new term takes back what the old one left",
          test_a_new_term_takes_back_what_the_old_one_left},
         {"a preemptor outlives the term of its evictions",
          test_a_preemptor_outlives_the_term_of_its_evictions},
         {"the other leader's binds are followed", test_the_other_leaders_binds_are_followed},
         {"a binder that was lost may write until its grant ends",
          test_a_binder_that_was_lost_may_write_until_its_grant_ends},
         {"a binder that was lost is greeted anew", test_a_binder_that_was_lost_is_greeted_anew},
         {"a status that was given out anew ends with its own answer",
          test_a_status_that_was_given_out_anew_ends_with_its_own_answer},
         {"a restarted watcher changes nothing until it knows",
          test_a_restarted_watcher_changes_nothing_until_it_knows},
         {"election that begins ends \"always\"", test_election_that_begins_ends_always},
         {"who leaves says so when nothing is out", test_who_leaves_says_so_when_nothing_is_out},
         {"a binder that leaves in haste", test_a_binder_that_leaves_in_haste},
         {"quiet as of the last look", test_quiet_as_of_the_last_look})
