/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/daemon/test_daemon.c - feed, cycle and results together: crashes, restarts,
 * races
 */
#include "tests/unit/scheduler/daemon/fixture.h"

#define BIND    BERTH__WORK_KIND__WORK_BIND
#define PATCH   BERTH__WORK_KIND__WORK_PATCH_STATUS
#define DELETE  BERTH__WORK_KIND__WORK_DELETE
#define EVENT   BERTH__WORK_KIND__WORK_EVENT
#define DONE    BERTH__OUTCOME__OUTCOME_DONE
#define UNKNOWN BERTH__OUTCOME__OUTCOME_UNKNOWN
#define BOUND   BERTH__CHANGE_OP__CHANGE_BOUND
#define DELETED BERTH__CHANGE_OP__CHANGE_DELETED
#define NO_FIT                                                                                     \
    "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 "   \
    "nodes "                                                                                       \
    "are available: 1 Preemption is not helpful for scheduling."

static void test_nothing_is_decided_before_snapshot_and_feed_are_complete(void)
{
    struct fixture f;

    setup(&f);
    snap_node(&f, "n1", "4");
    SPIN(&f, f.known);
    feed_begin(&f);
    add_pod(&f, "p", "1");
    settle(&f);
    CU_ASSERT(place(&f, "p") == BH_Q_ACTIVE); /* no synced snapshot, the list is not complete */
    SPIN(&f, bh_engine_node_count(f.d.engine) == 1); /* but what there is of it is known */
    CU_ASSERT(!f.d.in.snapshot_ready && f.d.in.rebuilding);
    bh_snap_set_synced(f.snap, true);
    settle(&f);
    CU_ASSERT(f.d.in.snapshot_ready && !f.d.in.rebuilding);
    CU_ASSERT(place(&f, "p") == BH_Q_ACTIVE);
    feed_batch(&f, NULL, true);
    CU_ASSERT_STRING_EQUAL(await(&f, &f.b[0], BIND, "p")->node, "n1");
    teardown(&f);
}

static void test_a_pod_is_bound_and_confirmed_whichever_news_is_first(void)
{
    struct fixture f;
    struct item *i;

    setup(&f);
    snap_node(&f, "n1", "4");
    go(&f);
    add_pod(&f, "answer-first", "1");
    i = await(&f, &f.b[0], BIND, "answer-first");
    CU_ASSERT_STRING_EQUAL(i->event, "Scheduled");
    CU_ASSERT_STRING_EQUAL(i->note, "Successfully assigned ns/answer-first to n1");
    CU_ASSERT(is_assumed(&f, "answer-first"));
    answer(&f.b[0], i, DONE, NULL);
    SPIN(&f, bh_ledger_binds(f.d.ledger) == 0);
    CU_ASSERT(is_assumed(&f, "answer-first"));
    CU_ASSERT(place(&f, "answer-first") == BH_Q_BINDING); /* until the watch tells */
    snap_pod(&f, "answer-first", "1", "n1", "");
    end_pod(&f, "answer-first", BOUND);
    SPIN(&f, place(&f, "answer-first") == BH_Q_NONE);
    CU_ASSERT(!is_assumed(&f, "answer-first"));

    add_pod(&f, "watch-first", "1");
    i = await(&f, &f.b[0], BIND, "watch-first");
    snap_pod(&f, "watch-first", "1", "n1", "");
    end_pod(&f, "watch-first", BOUND);
    SPIN(&f, !is_assumed(&f, "watch-first"));
    settle(&f);
    CU_ASSERT(place(&f, "watch-first") == BH_Q_BINDING); /* until the answer */
    answer(&f.b[0], i, DONE, NULL);
    SPIN(&f, place(&f, "watch-first") == BH_Q_NONE);
    CU_ASSERT(bh_engine_pod_count(f.d.engine) == 2);
    CU_ASSERT(bh_engine_assumed_count(f.d.engine) == 0);
    CU_ASSERT(f.d.pods->by_uid.len == 0); /* nothing of them is left in any hand */
    teardown(&f);
}

static void test_a_dead_binders_bind_goes_to_another_and_counts_once(void)
{
    struct fixture f;
    struct item *i;
    uint64_t id;

    setup(&f);
    snap_node(&f, "n1", "4");
    go(&f);
    add_pod(&f, "p", "1");
    id = await(&f, &f.b[0], BIND, "p")->id;
    bh_ledger_patience(f.d.ledger, 150000000, BH_BINDER_ANSWER_NS);
    f.b[0].mute = true; /* stopped, not dead: its connection stays */
    f.b[1].mute = false;
    i = await(&f, &f.b[1], BIND, "p");
    CU_ASSERT(i->id == id);
    CU_ASSERT(i->attempt >= 1);
    CU_ASSERT_STRING_EQUAL(i->node, "n1");
    answer(&f.b[1], i, DONE, NULL);
    SPIN(&f, bh_ledger_binds(f.d.ledger) == 0);
    f.b[0].mute = false; /* it was only slow */
    answer(&f.b[0], find_item(&f.b[0], BIND, "p"), BERTH__OUTCOME__OUTCOME_REJECTED, "late");
    settle(&f);
    CU_ASSERT(is_assumed(&f, "p"));
    CU_ASSERT(place(&f, "p") == BH_Q_BINDING);
    CU_ASSERT(count_items(&f.b[0], EVENT, "p") + count_items(&f.b[1], EVENT, "p") == 0);
    teardown(&f);
}

static void test_unknown_counts_only_from_the_binder_that_holds_the_item(void)
{
    struct fixture f;
    struct item *i;

    setup(&f);
    snap_node(&f, "n1", "4");
    go(&f);
    add_pod(&f, "p", "1");
    i = await(&f, &f.b[0], BIND, "p");
    answer(&f.b[0], i, UNKNOWN, NULL);
    SPIN(&f, count_items(&f.b[0], BIND, "p") == 2); /* the same node again */
    i = find_item(&f.b[0], BIND, "p");
    CU_ASSERT(i->attempt == 1);
    f.b[1].mute = false;
    SPIN(&f, f.b[1].epoch == f.d.epoch);
    answer(&f.b[1], i, UNKNOWN, NULL); /* from somebody who does not hold it */
    i->answered = false;
    settle(&f);
    CU_ASSERT(count_items(&f.b[0], BIND, "p") + count_items(&f.b[1], BIND, "p") == 2);
    teardown(&f);
}

static void test_an_answer_that_got_lost_is_asked_for_again(void)
{
    struct fixture f;

    setup(&f);
    snap_node(&f, "n1", "4");
    go(&f);
    add_pod(&f, "p", "1");
    (void)await(&f, &f.b[0], BIND, "p");
    bh_ledger_patience(f.d.ledger, BH_BINDER_SILENCE_NS, 100000000);
    SPIN(&f, count_items(&f.b[0], BIND, "p") >= 2); /* the binder lives and says nothing of it */
    teardown(&f);
}

static void test_a_restarted_scheduler_sends_the_pod_where_it_was_sent(void)
{
    struct fixture f;
    struct item *i;
    uint64_t old_epoch;

    setup(&f);
    snap_node(&f, "n1", "4");
    snap_node(&f, "n2", "4");
    go(&f);
    add_pod(&f, "p", "1");
    i = await(&f, &f.b[0], BIND, "p");
    CU_ASSERT_STRING_EQUAL(i->node, "n1");
    old_epoch = f.d.epoch;
    f.b[0].wire[0] = *i;
    COPY(f.b[0].wire[0].node, "n2"); /* not what would be decided anew */
    f.b[0].n_wire = 1;
    f.b[0].n = 0;
    scheduler_stop(&f);
    CU_ASSERT(unlink(bh_arena_printf(&f.a, "%s/scheduler/" BH_INFLIGHT_FILE, f.dir)) ==
              0); /* binders know */
    f.hellos = 0;
    scheduler_start(&f);
    CU_ASSERT(f.d.epoch > old_epoch);
    SPIN(&f, f.hellos > 0 && f.d.adopt.n_binds == 1);
    feed_begin(&f);
    add_pod(&f, "p", "1");
    feed_batch(&f, NULL, true);
    i = await(&f, &f.b[0], BIND, "p");
    CU_ASSERT_STRING_EQUAL(i->node, "n2");
    CU_ASSERT(i->epoch == f.d.epoch);
    CU_ASSERT(f.d.adopt.n_binds == 0);
    teardown(&f);
}

static void test_a_refusal_for_the_old_scheduler_is_decided_anew(void)
{
    struct fixture f;
    struct item old = {.kind = BIND, .name = "p", .uid = "u-p", .node = "n2", .epoch = 1, .id = 7};
    struct item gone = {.kind = BIND, .name = "q", .uid = "u-q", .node = "n2", .epoch = 1, .id = 8};

    setup(&f);
    f.b[0].wire[0] = old;
    f.b[0].wire[1] = gone;
    f.b[0].n_wire = 2;
    snap_node(&f, "n1", "4");
    snap_node(&f, "n2", "4");
    bh_snap_set_synced(f.snap, true);
    SPIN(&f, f.known && f.d.adopt.n_binds == 2);
    answer(&f.b[0], &old, DONE, NULL);
    answer(&f.b[0], &gone, BERTH__OUTCOME__OUTCOME_REJECTED, "no");
    SPIN(&f, f.d.adopt.n_binds == 1);
    feed_begin(&f);
    add_pod(&f, "p", "1");
    add_pod(&f, "q", "1");
    feed_batch(&f, NULL, true);
    CU_ASSERT_STRING_EQUAL(await(&f, &f.b[0], BIND, "q")->node, "n1"); /* decided anew */
    CU_ASSERT_STRING_EQUAL(await(&f, &f.b[0], BIND, "p")->node, "n2"); /* the API server knows */
    answer(&f.b[0], find_item(&f.b[0], BIND, "p"), DONE, NULL);
    CU_ASSERT(is_assumed(&f, "p")); /* counts on its node until the watch shows it */
    snap_pod(&f, "p", "1", "n2", "");
    end_pod(&f, "p", BOUND);
    SPIN(&f, place(&f, "p") == BH_Q_NONE);
    CU_ASSERT(!is_assumed(&f, "p"));
    teardown(&f);
}

static void test_reports_about_pods_that_are_not_pending_are_forgotten(void)
{
    struct fixture f;

    setup(&f);
    f.b[0].wire[0] = (struct item){.kind = BIND, .name = "x", .uid = "u-x", .node = "n1", .id = 3};
    f.b[0].n_wire = 1;
    snap_node(&f, "n1", "4");
    SPIN(&f, f.known && f.d.adopt.n_binds == 1);
    go(&f);
    CU_ASSERT(f.d.adopt.n_binds == 0);
    teardown(&f);
}

/* Where none died nobody is waited for; after one that died, its binders are, until they
 * answered. */
static void test_waits_for_binders_of_one_that_died(void)
{
    struct fixture f;

    setup(&f);
    f.d.timing.binder_grace_ns = UINT64_MAX;
    CU_ASSERT_FALSE(bh_sched_binders_awaited(&f.d));
    SPIN(&f, f.d.adopt.n_binders == 1 && f.d.adopt.binder[0].heard);
    scheduler_stop(&f);
    scheduler_start(&f);
    CU_ASSERT_FALSE(bh_sched_binders_awaited(&f.d)); /* its time is over */
    f.d.timing.binder_grace_ns = UINT64_MAX;
    CU_ASSERT_TRUE(bh_sched_binders_awaited(&f.d));
    bh_sched_adopt_left(&f.d); /* stopped in peace, but before it heard that binder */
    scheduler_stop(&f);
    scheduler_start(&f);
    f.d.timing.binder_grace_ns = UINT64_MAX;
    CU_ASSERT_TRUE(bh_sched_binders_awaited(&f.d));
    CU_ASSERT_EQUAL(f.d.adopt.n_silent, 0);
    f.d.timing.binder_grace_ns = 0; /* it says nothing, and the wait is over */
    f.b[0].mute = true;
    settle(&f);
    CU_ASSERT_EQUAL(f.d.adopt.n_silent, 1);
    f.b[0].mute = false;
    f.d.timing.binder_grace_ns = UINT64_MAX;
    SPIN(&f, !bh_sched_binders_awaited(&f.d));
    CU_ASSERT_EQUAL(f.b[0].epoch, f.d.epoch);
    bh_sched_adopt_left(&f.d);
    scheduler_stop(&f);
    CU_ASSERT(access(bh_arena_printf(&f.a, "%s/scheduler/" BH_INFLIGHT_FILE, f.dir), F_OK) < 0);
    scheduler_start(&f);
    f.d.timing.binder_grace_ns = UINT64_MAX;
    CU_ASSERT_FALSE(bh_sched_binders_awaited(&f.d));
    teardown(&f);
}

/* ---- what was on the wire when the scheduler died -------------------------------------------- */

/* Room for one pod, and p, which has it, is on its way when the scheduler is killed. */
static void die_with_a_bind_out(struct fixture *f)
{
    struct item *i;

    setup(f);
    snap_node(f, "n1", "1");
    go(f);
    add_pod(f, "p", "1");
    i = await(f, &f->b[0], BIND, "p");
    f->b[0].wire[0] = *i;
    f->b[0].n_wire = 1;
    f->b[0].n = 0;
    scheduler_stop(f);
    f->known = false;
}

/* The next one is told of a pod of higher priority first. */
static void start_with_an_important_pod(struct fixture *f)
{
    scheduler_start(f);
    SPIN(f, f->known);
    feed_begin(f);
    feed_pod(f, BERTH__CHANGE_OP__CHANGE_ADDED,
             pod(f, "q", "1", "\"priority\":1000,\"preemptionPolicy\":\"Never\",", ""));
    add_pod(f, "p", "1");
    feed_batch(f, NULL, true);
}

static void expect_no_double_booking(struct fixture *f, struct binder *b)
{
    struct item *i = await(f, b, BIND, "p");

    CU_ASSERT_STRING_EQUAL(i->node, "n1");
    CU_ASSERT(i->epoch == f->d.epoch);
    SPIN(f, place(f, "q") == BH_Q_UNSCHEDULABLE);
    CU_ASSERT(is_assumed(f, "p") && !is_assumed(f, "q"));
    CU_ASSERT(count_items(b, BIND, "q") == 0);
    answer(b, i, DONE, NULL);
    snap_pod(f, "p", "1", "n1", "");
    end_pod(f, "p", BOUND);
    SPIN(f, place(f, "p") == BH_Q_NONE);
    CU_ASSERT(bh_inflight_count(f->d.adopt.record) == 0);
}

static void test_a_bind_on_the_wire_counts_before_the_first_decision(void)
{
    struct fixture f;

    die_with_a_bind_out(&f);
    start_with_an_important_pod(&f);
    expect_no_double_booking(&f, &f.b[0]);
    teardown(&f);
}

/* Nobody can report it: it stands in the record. */
static void test_a_bind_of_a_dead_binder_counts_too(void)
{
    struct fixture f;

    die_with_a_bind_out(&f);
    f.b[0].mute = true;
    f.b[1].mute = false;
    start_with_an_important_pod(&f);
    expect_no_double_booking(&f, &f.b[1]);
    teardown(&f);
}

/* The next one dies before anything came of it. */
static void test_a_death_while_adopting_loses_nothing(void)
{
    struct fixture f;

    die_with_a_bind_out(&f);
    f.b[0].mute = true;
    scheduler_start(&f);
    CU_ASSERT(f.d.adopt.n_binds == 1);
    scheduler_stop(&f);
    start_with_an_important_pod(&f);
    SPIN(&f, is_assumed(&f, "p") && f.d.adopt.n_binds == 0); /* asked for again, by no binder yet */
    scheduler_stop(&f);
    f.known = false;
    f.b[1].mute = false;
    start_with_an_important_pod(&f);
    expect_no_double_booking(&f, &f.b[1]);
    teardown(&f);
}

/* It was answered, and the watch had not shown it. */
static void test_a_bind_that_is_done_and_not_shown_counts(void)
{
    struct fixture f;
    struct item *i;

    setup(&f);
    snap_node(&f, "n1", "1");
    go(&f);
    add_pod(&f, "p", "1");
    i = await(&f, &f.b[0], BIND, "p");
    answer(&f.b[0], i, DONE, NULL);
    SPIN(&f, bh_ledger_binds(f.d.ledger) == 0);
    CU_ASSERT(place(&f, "p") == BH_Q_BINDING);
    f.b[0].n = 0;
    scheduler_stop(&f);
    f.known = false;
    start_with_an_important_pod(&f);
    expect_no_double_booking(&f, &f.b[0]);
    teardown(&f);
}

/* Somebody else may have led meanwhile: nothing is written for the same node again. */
static void test_a_bind_of_another_term_counts_and_is_looked_at(void)
{
    struct fixture f;
    struct item *i;
    struct bh_work *w;

    setup(&f);
    bh_snap_set_lease(f.snap, 7, bh_boot_ns() + UINT64_C(100000000000));
    snap_node(&f, "n1", "1");
    go(&f);
    add_pod(&f, "p", "1");
    (void)await(&f, &f.b[0], BIND, "p");
    f.b[0].n = 0;
    scheduler_stop(&f);
    f.known = false;
    bh_snap_set_lease(f.snap, 8, bh_boot_ns() + UINT64_C(100000000000));
    start_with_an_important_pod(&f);
    SPIN(&f, place(&f, "q") == BH_Q_UNSCHEDULABLE);
    CU_ASSERT(is_assumed(&f, "p"));
    CU_ASSERT(count_items(&f.b[0], BIND, "p") == 0);
    w = bind_of(&f, "u-p");
    CU_ASSERT_FATAL(w && w->kept);
    w->due_ns = 0; /* its time is over */
    i = await(&f, &f.b[0], BIND, "p");
    CU_ASSERT(i->look);
    w->doubt_boot_ns = 0;
    answer(&f.b[0], i, BERTH__OUTCOME__OUTCOME_REJECTED, "it is on no node");
    SPIN(&f, place(&f, "q") == BH_Q_BINDING); /* its room is free */
    teardown(&f);
}

static void test_more_than_can_be_recorded_is_waited_for(void)
{
    struct fixture f;
    struct bh_inflight_item it = {.kind = BIND, .uid = "u", .node = ""};
    char longer[BH_INFLIGHT_TEXT + 1];

    setup(&f);
    snap_node(&f, "n1", "1");
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    it.node = longer;
    it.until_boot_ns = bh_boot_ns() + UINT64_C(300000000);
    CU_ASSERT(bh_inflight_put(f.d.adopt.record, &it) == 0);
    scheduler_stop(&f);
    scheduler_start(&f);
    bh_snap_set_synced(f.snap, true);
    SPIN(&f, f.known);
    feed_begin(&f);
    add_pod(&f, "p", "1");
    feed_batch(&f, NULL, true);
    SPIN(&f, bh_sched_ready(&f.d));
    CU_ASSERT(!bh_sched_may_decide(&f.d) || bh_boot_ns() >= it.until_boot_ns);
    (void)await(&f, &f.b[0], BIND, "p");
    CU_ASSERT(bh_boot_ns() >= it.until_boot_ns);
    teardown(&f);
}

/* ---- what the watch shows counts, not what a write was answered ------------------------------ */

static void test_a_pod_that_is_still_pending_is_tried_again_whatever_its_bind_was_answered(void)
{
    static const Berth__Outcome bad[] = {BERTH__OUTCOME__OUTCOME_GONE,
                                         BERTH__OUTCOME__OUTCOME_REJECTED,
                                         BERTH__OUTCOME__OUTCOME_BOUND_ELSEWHERE};

    for (size_t k = 0; k < BH_ARRAY_LEN(bad); k++) {
        struct fixture f;
        setup(&f);
        snap_node(&f, "n1", "1");
        go(&f);
        add_pod(&f, "p", "1");
        answer(&f.b[0], await(&f, &f.b[0], BIND, "p"), bad[k], "no");
        SPIN(&f, count_items(&f.b[0], BIND, "p") == 2);
        CU_ASSERT(count_items(&f.b[0], EVENT, "p") ==
                  (bad[k] == BERTH__OUTCOME__OUTCOME_BOUND_ELSEWHERE ? 0 : 1));
        end_pod(&f, "p", DELETED);
        SPIN(&f, place(&f, "p") == BH_Q_NONE);
        teardown(&f);
    }
}

static void test_a_pod_that_is_gone_for_the_watch_stays_gone(void)
{
    struct fixture f;
    struct item *i;

    setup(&f);
    snap_node(&f, "n1", "2");
    go(&f);
    add_pod(&f, "deleted", "1");
    i = await(&f, &f.b[0], BIND, "deleted");
    end_pod(&f, "deleted", DELETED);
    SPIN(&f, place(&f, "deleted") == BH_Q_NONE);
    answer(&f.b[0], i, BERTH__OUTCOME__OUTCOME_GONE, "not found");
    add_pod(&f, "bound", "1");
    i = await(&f, &f.b[0], BIND, "bound"); /* by us, shown and deleted before the answer comes */
    snap_pod(&f, "bound", "1", "n1", "");
    end_pod(&f, "bound", BOUND);
    SPIN(&f, !is_assumed(&f, "bound"));
    bh_snap_del_pod(f.snap, "u-bound", 7);
    SPIN(&f, bh_engine_pod_count(f.d.engine) == 0);
    answer(&f.b[0], i, BERTH__OUTCOME__OUTCOME_GONE, "not found");
    SPIN(&f, bind_of(&f, "u-bound") == NULL);
    CU_ASSERT(place(&f, "bound") == BH_Q_NONE && place(&f, "deleted") == BH_Q_NONE);
    teardown(&f);
}

/* Shown as bound, gone since, and the answer never came: with the end of the term it is over. */
static void test_a_shown_bind_that_is_taken_back_leaves_nothing(void)
{
    struct fixture f;

    setup(&f);
    bh_snap_set_lease(f.snap, 7, bh_boot_ns() + UINT64_C(100000000000));
    snap_node(&f, "n1", "1");
    go(&f);
    add_pod(&f, "p", "1");
    (void)await(&f, &f.b[0], BIND, "p");
    snap_pod(&f, "p", "1", "n1", "");
    end_pod(&f, "p", BOUND);
    SPIN(&f, !is_assumed(&f, "p"));
    bh_ledger_patience(f.d.ledger, 100000000, BH_BINDER_ANSWER_NS);
    f.b[0].mute = true;
    SPIN(&f, bind_of(&f, "u-p")->binder == NULL);
    bh_snap_del_pod(f.snap, "u-p", 3);
    SPIN(&f, bh_engine_pod_count(f.d.engine) == 0);
    bh_snap_set_lease(f.snap, 7, 0);
    SPIN(&f, bind_of(&f, "u-p") == NULL);
    CU_ASSERT(place(&f, "p") == BH_Q_NONE);
    teardown(&f);
}

static void test_a_bind_that_the_watch_never_shows_is_looked_at(void)
{
    struct fixture f;
    struct item *i;

    setup(&f);
    f.d.timing.unseen_ns = 50000000;
    snap_node(&f, "n1", "1");
    go(&f);
    add_pod(&f, "p", "1");
    answer(&f.b[0], await(&f, &f.b[0], BIND, "p"), DONE, NULL);
    i = await(&f, &f.b[0], BIND, "p");
    CU_ASSERT(i->look);
    CU_ASSERT_STRING_EQUAL(i->node, "n1");
    answer(&f.b[0], i, DONE, NULL); /* it is there: the watch is late */
    i = await(&f, &f.b[0], BIND, "p");
    CU_ASSERT(i->look);
    CU_ASSERT(place(&f, "p") == BH_Q_BINDING && is_assumed(&f, "p"));
    answer(&f.b[0], i, BERTH__OUTCOME__OUTCOME_REJECTED, "the pod is on no node");
    i = await(&f, &f.b[0], BIND, "p"); /* decided anew */
    CU_ASSERT(!i->look);
    teardown(&f);
}

/* The first request may still take effect: until then the refusal of the second proves nothing. */
static void test_a_refusal_does_not_end_a_bind_in_doubt(void)
{
    struct fixture f;
    struct item *i;
    struct bh_work *w;

    setup(&f);
    snap_node(&f, "n1", "1");
    go(&f);
    add_pod(&f, "p", "1");
    answer(&f.b[0], await(&f, &f.b[0], BIND, "p"), UNKNOWN, "no answer");
    i = await(&f, &f.b[0], BIND, "p");
    answer(&f.b[0], i, BERTH__OUTCOME__OUTCOME_REJECTED, "no");
    SPIN(&f, (w = bind_of(&f, "u-p")) && w->kept);
    CU_ASSERT(is_assumed(&f, "p") && place(&f, "p") == BH_Q_BINDING);
    w->doubt_boot_ns = w->due_ns = 0; /* that time is over */
    i = await(&f, &f.b[0], BIND, "p");
    CU_ASSERT(i->look);
    answer(&f.b[0], i, BERTH__OUTCOME__OUTCOME_GONE, "no such pod");
    SPIN(&f, count_items(&f.b[0], BIND, "p") == 4);

    answer(&f.b[0], find_item(&f.b[0], BIND, "p"), UNKNOWN, "no answer");
    SPIN(&f, count_items(&f.b[0], BIND, "p") == 5);
    end_pod(&f, "p", DELETED); /* then there is nothing to doubt */
    SPIN(&f, place(&f, "p") == BH_Q_NONE);
    answer(&f.b[0], find_item(&f.b[0], BIND, "p"), BERTH__OUTCOME__OUTCOME_GONE, "no such pod");
    SPIN(&f, bind_of(&f, "u-p") == NULL);
    CU_ASSERT(bh_inflight_count(f.d.adopt.record) == 0);
    teardown(&f);
}

static void test_a_lost_pod_is_found(void)
{
    struct fixture f;

    setup(&f);
    snap_node(&f, "n1", "1");
    go(&f);
    add_pod(&f, "big", "2");
    SPIN(&f, place(&f, "big") == BH_Q_UNSCHEDULABLE);
    f.hellos = 0;
    bh_queue_delete(f.d.queue, pod_of(&f, "u-big")); /* a defect */
    /* missed once: its BOUND may be on the way, and the pod gone from its node again */
    SPIN(&f, pod_of(&f, "u-big")->missed && f.d.audit.lost == 0);
    /* the scheduler is stopped just there: what it was told meanwhile it has not read */
    f.d.audit.turn_ns -= BH_AUDIT_NS;
    f.d.audit.looked_ns -= BH_AUDIT_NS;
    one_turn(&f);
    CU_ASSERT(f.d.audit.lost == 0 && pod_of(&f, "u-big")->missed);
    /* the watcher is stopped just there: it counts as missed for as long */
    f.no_beat = true;
    f.d.audit.looked_ns = bh_mono_ns();
    SPIN(&f, f.d.audit.stalled);
    CU_ASSERT(f.d.audit.lost == 0 && f.hellos == 0);
    f.no_beat = false;
    SPIN(&f, f.hellos == 1);        /* the watcher is asked for everything */
    CU_ASSERT(f.d.audit.lost == 0); /* what it told may have been lost: its BOUND */
    feed_begin(&f);
    add_pod(&f, "big", "2");
    feed_batch(&f, NULL, true);
    SPIN(&f, place(&f, "big") == BH_Q_UNSCHEDULABLE);
    CU_ASSERT(f.d.audit.lost == 1); /* no: it is pending */

    add_pod(&f, "p", "1");
    (void)await(&f, &f.b[0], BIND, "p");
    bh_ledger_finish(f.d.ledger, bind_of(&f, "u-p")); /* another one */
    f.d.audit.asked_ns = 0;
    f.lost = 2;
    SPIN(&f, f.d.audit.lost == 2 && count_items(&f.b[0], BIND, "p") == 2);
    teardown(&f);
}

/* It was bound and deleted, as the snapshot told, and what the feed had of that broke with its
 * connection. */
static void test_a_bound_that_was_lost_is_no_lost_pod(void)
{
    struct fixture f;

    setup(&f);
    snap_node(&f, "n1", "1");
    go(&f);
    add_pod(&f, "p", "1");
    add_pod(&f, "big", "2");
    (void)await(&f, &f.b[0], BIND, "p");
    SPIN(&f, place(&f, "big") == BH_Q_UNSCHEDULABLE);
    snap_pod(&f, "p", "1", "n1", "");
    SPIN(&f, !is_assumed(&f, "p"));
    bh_ledger_finish(f.d.ledger, bind_of(&f, "u-p")); /* as at the end of a term */
    bh_queue_delete(f.d.queue, pod_of(&f, "u-p"));
    CU_ASSERT_FATAL(bh_snap_del_pod(f.snap, "u-p", 3) == 0);
    f.hellos = 0;
    SPIN(&f, f.hellos == 1);
    feed_begin(&f);
    add_pod(&f, "big", "2");
    feed_batch(&f, NULL, true);
    SPIN(&f, f.d.in.feed.synced && pod_of(&f, "u-p") == NULL);
    CU_ASSERT(f.d.audit.lost == 0 && place(&f, "big") == BH_Q_UNSCHEDULABLE);
    teardown(&f);
}

static void test_work_goes_only_to_binders_that_know_the_epoch(void)
{
    struct fixture f;
    struct bh_ledger_stats s;

    setup(&f);
    snap_node(&f, "n1", "4");
    f.b[0].mute = true;
    go(&f);
    add_pod(&f, "p", "1");
    SPIN(&f, bh_ledger_binds(f.d.ledger) == 1);
    binder_hello(&f.b[0], 0); /* epoch 0, a window, and then silence */
    settle(&f);
    bh_ledger_stats(f.d.ledger, &s);
    CU_ASSERT(s.binders == 1 && s.out == 0 && s.queued == 1);
    f.b[0].mute = false;
    (void)await(&f, &f.b[0], BIND, "p");
    teardown(&f);
}

static void test_an_unschedulable_pod_is_told_once_and_woken_by_a_node(void)
{
    struct fixture f;
    struct item *i;

    setup(&f);
    snap_node(&f, "n1", "1");
    go(&f);
    add_pod(&f, "big", "2");
    i = await(&f, &f.b[0], EVENT, "big");
    CU_ASSERT_STRING_EQUAL(i->event, "FailedScheduling");
    CU_ASSERT_STRING_EQUAL(i->note, NO_FIT);
    i = await(&f, &f.b[0], PATCH, "big");
    CU_ASSERT_STRING_EQUAL(i->reason, "Unschedulable");
    CU_ASSERT_STRING_EQUAL(i->message, NO_FIT);
    CU_ASSERT(i->transition);
    CU_ASSERT(place(&f, "big") == BH_Q_UNSCHEDULABLE);
    answer(&f.b[0], i, DONE, NULL);
    /* another try with the same outcome: an event, no second patch */
    bh_queue_activate(f.d.queue, pod_of(&f, "u-big"), bh_sched_now(&f.d));
    SPIN(&f, count_items(&f.b[0], EVENT, "big") == 2);
    settle(&f);
    CU_ASSERT(count_items(&f.b[0], PATCH, "big") == 1);
    snap_node(&f, "n2", "4");
    CU_ASSERT_STRING_EQUAL(await(&f, &f.b[0], BIND, "big")->node, "n2");
    teardown(&f);
}

static void test_a_condition_from_before_the_restart_is_not_written_again(void)
{
    struct fixture f;
    K8s__Pod *p;
    const char *json;

    setup(&f);
    snap_node(&f, "n1", "1");
    go(&f);
    json =
        "{\"metadata\":{\"name\":\"big\",\"namespace\":\"ns\",\"uid\":\"u-big\"},\"spec\":{"
        "\"schedulerName\":\"default-scheduler\",\"containers\":[{\"name\":\"c\",\"resources\":{"
        "\"requests\":{\"cpu\":\"2\"}}}]},\"status\":{\"conditions\":[{\"type\":\"PodScheduled\","
        "\"status\":\"False\",\"reason\":\"Unschedulable\",\"message\":\"" NO_FIT "\"}]}}";
    p = (K8s__Pod *)decode(&f, &k8s__pod__descriptor, json);
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, p);
    (void)await(&f, &f.b[0], EVENT, "big");
    settle(&f);
    CU_ASSERT(count_items(&f.b[0], PATCH, "big") == 0);
    teardown(&f);
}

static void test_a_refused_patch_is_written_again(void)
{
    struct fixture f;

    setup(&f);
    snap_node(&f, "n1", "1");
    go(&f);
    add_pod(&f, "big", "2");
    answer(&f.b[0], await(&f, &f.b[0], PATCH, "big"), BERTH__OUTCOME__OUTCOME_REJECTED, "422");
    SPIN(&f, pod_of(&f, "u-big")->queued->told_condition == 0);
    bh_queue_activate(f.d.queue, pod_of(&f, "u-big"), bh_sched_now(&f.d));
    (void)await(&f, &f.b[0], PATCH, "big");
    teardown(&f);
}

static void test_a_preemptor_evicts_and_is_nominated(void)
{
    struct fixture f;
    struct item *i;

    setup(&f);
    snap_node(&f, "n1", "1");
    snap_pod(&f, "victim", "1", "n1", "\"priority\":0,");
    go(&f);
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "vip", "1", "\"priority\":100,", ""));
    i = await(&f, &f.b[0], DELETE, "victim");
    CU_ASSERT_STRING_EQUAL(i->uid, "u-victim");
    CU_ASSERT_STRING_EQUAL(i->reason, "PreemptionByScheduler");
    CU_ASSERT_STRING_EQUAL(i->message,
                           "default-scheduler: preempting to accommodate a higher priority pod");
    CU_ASSERT_STRING_EQUAL(i->event, "Preempted");
    CU_ASSERT_STRING_EQUAL(i->note, "Preempted by pod u-vip on node n1");
    CU_ASSERT_PTR_EQUAL(strstr(i->related, "v1 Pod ns/vip u-vip @7"), i->related);
    answer(&f.b[0], i, DONE, NULL);
    i = await(&f, &f.b[0], PATCH, "vip");
    CU_ASSERT(i->set_nominated);
    CU_ASSERT_STRING_EQUAL(i->nominated, "n1");
    answer(&f.b[0], i, DONE, NULL);
    CU_ASSERT_FATAL(bh_snap_del_pod(f.snap, "u-victim", 8) == 0);
    CU_ASSERT_STRING_EQUAL(await(&f, &f.b[0], BIND, "vip")->node, "n1");
    teardown(&f);
}

/* What was said about the room that comes free must not start another round of evictions. */
static void test_a_preemptor_waits_for_its_evictions(void)
{
    struct fixture f;
    struct item *one, *two;

    setup(&f);
    snap_node(&f, "n1", "2");
    snap_pod(&f, "v1", "1", "n1", "\"priority\":0,");
    snap_pod(&f, "v2", "1", "n1", "\"priority\":0,");
    go(&f);
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "vip", "2", "\"priority\":100,", ""));
    one = await(&f, &f.b[0], DELETE, "v2");
    CU_ASSERT_FATAL(bh_snap_del_pod(f.snap, "u-v2", 4) == 0);
    SPIN(&f, place(&f, "vip") == BH_Q_GATED);
    settle(&f);
    CU_ASSERT(count_items(&f.b[0], EVENT, "vip") == 1);
    CU_ASSERT(count_items(&f.b[0], DELETE, "v1") == 0); /* the last one when all others are gone */
    answer(&f.b[0], one, DONE, NULL);
    two = await(&f, &f.b[0], DELETE, "v1");
    settle(&f);
    CU_ASSERT(place(&f, "vip") == BH_Q_GATED);
    answer(&f.b[0], two, DONE, NULL); /* answered, but the watch has not shown it */
    settle(&f);
    CU_ASSERT(place(&f, "vip") == BH_Q_GATED);
    CU_ASSERT(count_items(&f.b[0], DELETE, "v1") == 1);
    CU_ASSERT_FATAL(bh_snap_del_pod(f.snap, "u-v1", 4) == 0);
    answer(&f.b[0], await(&f, &f.b[0], PATCH, "vip"), DONE, NULL);
    CU_ASSERT_STRING_EQUAL(await(&f, &f.b[0], BIND, "vip")->node, "n1");
    teardown(&f);
}

static void test_a_preemptor_that_was_refused_an_eviction_tries_again(void)
{
    struct fixture f;

    setup(&f);
    snap_node(&f, "n1", "1");
    snap_pod(&f, "v1", "1", "n1", "\"priority\":0,");
    go(&f);
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "vip", "1", "\"priority\":100,", ""));
    answer(&f.b[0], await(&f, &f.b[0], DELETE, "v1"), BERTH__OUTCOME__OUTCOME_REJECTED, "403");
    SPIN(&f, count_items(&f.b[0], DELETE, "v1") == 2);
    teardown(&f);
}

static void test_the_last_victim_is_spared_when_another_one_stays(void)
{
    struct fixture f;

    setup(&f);
    snap_node(&f, "n1", "2");
    snap_pod(&f, "v1", "1", "n1", "\"priority\":0,");
    snap_pod(&f, "v2", "1", "n1", "\"priority\":0,");
    go(&f);
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "vip", "2", "\"priority\":100,", ""));
    answer(&f.b[0], await(&f, &f.b[0], DELETE, "v2"), BERTH__OUTCOME__OUTCOME_REJECTED, "403");
    SPIN(&f, count_items(&f.b[0], DELETE, "v2") == 2); /* another try */
    CU_ASSERT(count_items(&f.b[0], DELETE, "v1") == 0);
    teardown(&f);
}

static void test_victims_that_go_already_are_left_alone(void)
{
    struct fixture f;
    struct bh_interner in;
    struct bh_shape_rec *shape;
    struct bh_pod_rec *rec;
    struct bh_err err = {0};
    K8s__Pod *p;

    setup(&f);
    in = bh_snap_interner(f.snap);
    snap_node(&f, "n1", "2");
    snap_pod(&f, "v1", "1", "n1", "\"priority\":0,");
    p = pod(&f, "v2", "1", "\"nodeName\":\"n1\",\"priority\":0,",
            ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"");
    CU_ASSERT_FATAL(bh_compile_shape(&f.a, p, &in, &shape, &err) == 0);
    CU_ASSERT_FATAL(bh_compile_pod(&f.a, p, &in, &rec, &err) == 0);
    CU_ASSERT_FATAL(bh_snap_put_pod(f.snap, rec, shape) == 0);
    go(&f);
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "vip", "2", "\"priority\":100,", ""));
    (void)await(&f, &f.b[0], DELETE, "v1");
    settle(&f);
    CU_ASSERT(count_items(&f.b[0], DELETE, "v2") == 0);
    teardown(&f);
}

static void test_a_lower_nomination_is_withdrawn(void)
{
    struct fixture f;
    struct item *i;

    setup(&f);
    snap_node(&f, "n1", "1");
    snap_pod(&f, "v1", "1", "n1", "\"priority\":0,");
    go(&f);
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "mid", "1", "\"priority\":50,", ""));
    i = await(&f, &f.b[0], PATCH, "mid");
    CU_ASSERT_STRING_EQUAL(i->nominated, "n1");
    answer(&f.b[0], i, DONE, NULL);
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "vip", "1", "\"priority\":100,", ""));
    SPIN(&f, count_items(&f.b[0], PATCH, "mid") == 2);
    i = await(&f, &f.b[0], PATCH, "mid");
    CU_ASSERT(i->set_nominated);
    CU_ASSERT_STRING_EQUAL(i->nominated, "");
    CU_ASSERT_STRING_EQUAL(i->message, "");
    teardown(&f);
}

/* The API server never heard of the promise: no update of the pod tells that it is over. */
static void test_a_promise_that_ends_unwritten_leaves_room(void)
{
    struct fixture f;

    setup(&f);
    snap_node(&f, "n1", "1");
    snap_pod(&f, "v", "1", "n1", "\"priority\":0,");
    go(&f);
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "vip", "1", "\"priority\":100,", ""));
    struct item *eviction = await(&f, &f.b[0], DELETE, "v");
    CU_ASSERT_STRING_EQUAL(await(&f, &f.b[0], PATCH, "vip")->nominated,
                           "n1"); /* nothing comes of it */
    add_pod(&f, "low", "500m");
    (void)await(&f, &f.b[0], PATCH, "low");
    snap_node(&f, "n1", "500m"); /* too small by now */
    CU_ASSERT_FATAL(bh_snap_del_pod(f.snap, "u-v", 3) == 0);
    SPIN(&f, pod_of(&f, "u-low")->queued->attempts == 2); /* the room is promised */
    settle(&f);
    CU_ASSERT(place(&f, "low") != BH_Q_BINDING);
    answer(&f.b[0], eviction, DONE, NULL);
    SPIN(&f, place(&f, "low") == BH_Q_BINDING); /* parked behind the condition that is out */
    CU_ASSERT_STRING_EQUAL(bind_of(&f, "u-low")->item.node, "n1");
    teardown(&f);
}

static K8s__Pod *promised(struct fixture *f, unsigned version, const char *node)
{
    const char *json = bh_arena_printf(
        &f->a,
        "{\"metadata\":{\"name\":\"mid\",\"namespace\":\"ns\",\"uid\":\"u-mid\","
        "\"resourceVersion\":\"%u\"},\"spec\":{\"schedulerName\":\"default-scheduler\","
        "\"priority\":50,\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":"
        "\"1\"}}}]},\"status\":{\"nominatedNodeName\":\"%s\"}}",
        version, node);

    return (K8s__Pod *)decode(f, &k8s__pod__descriptor, json);
}

/* Room that was promised keeps those of lower or equal priority out, and nobody else. */
static void test_the_end_of_a_promise_wakes_whom_it_kept_out(void)
{
    struct fixture f;

    setup(&f);
    snap_node(&f, "n1", "1");
    snap_pod(&f, "stays", "1", "n1", "\"priority\":200,");
    go(&f);
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, promised(&f, 1001, "n1"));
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "low", "1", "\"priority\":1,", ""));
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "same", "1", "\"priority\":50,", ""));
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "high", "1", "\"priority\":100,", ""));
    SPIN(&f, count_items(&f.b[0], EVENT, "low") == 1 && count_items(&f.b[0], EVENT, "same") == 1 &&
                 count_items(&f.b[0], EVENT, "high") == 1);
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_MODIFIED, promised(&f, 1002, ""));
    SPIN(&f, count_items(&f.b[0], EVENT, "low") == 2 && count_items(&f.b[0], EVENT, "same") == 2);
    settle(&f);
    CU_ASSERT(count_items(&f.b[0], EVENT, "high") == 1);
    teardown(&f);
}

/* By another hand, after a change of the lease for one: nobody else would say that its room is free. */
static void test_room_of_a_pod_that_is_bound_elsewhere(void)
{
    struct fixture f;

    setup(&f);
    snap_node(&f, "n1", "1");
    snap_node(&f, "n2", "1");
    snap_pod(&f, "stays", "1", "n2", "");
    go(&f);
    add_pod(&f, "p", "1");
    CU_ASSERT_STRING_EQUAL(await(&f, &f.b[0], BIND, "p")->node, "n1");
    add_pod(&f, "q", "1");
    SPIN(&f, place(&f, "q") == BH_Q_UNSCHEDULABLE);
    snap_pod(&f, "p", "1", "n2", "");
    end_pod(&f, "p", BERTH__CHANGE_OP__CHANGE_BOUND);
    SPIN(&f, place(&f, "q") == BH_Q_BINDING); /* parked behind the condition that is out */
    CU_ASSERT_STRING_EQUAL(bind_of(&f, "u-q")->item.node, "n1");
    teardown(&f);
}

static void test_a_refused_bind_returns_the_pod_with_its_newest_object(void)
{
    struct fixture f;
    struct item *i;

    setup(&f);
    snap_node(&f, "n1", "4");
    go(&f);
    add_pod(&f, "p", "1");
    i = await(&f, &f.b[0], BIND, "p");
    /* it changes while the bind is out: the assumed copy stays, the entry gets the new object */
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_MODIFIED,
             pod(&f, "p", "1", "", ",\"labels\":{\"a\":\"b\"}"));
    settle(&f);
    CU_ASSERT(is_assumed(&f, "p"));
    CU_ASSERT(place(&f, "p") == BH_Q_BINDING);
    CU_ASSERT(count_items(&f.b[0], BIND, "p") == 1);
    answer(&f.b[0], i, BERTH__OUTCOME__OUTCOME_REJECTED, "pod is gated");
    i = await(&f, &f.b[0], EVENT, "p");
    CU_ASSERT_STRING_EQUAL(i->event, "FailedScheduling");
    CU_ASSERT_STRING_EQUAL(i->note, "running Bind plugin \"DefaultBinder\": pod is gated");
    /* no backoff here: the next bind made the status patch moot before it was sent */
    SPIN(&f, count_items(&f.b[0], BIND, "p") == 2);
    CU_ASSERT(count_items(&f.b[0], PATCH, "p") == 0);
    CU_ASSERT(pod_of(&f, "u-p")->queued->attempts == 2);
    teardown(&f);
}

static void test_a_bind_waits_for_the_status_patch_that_is_out(void)
{
    struct fixture f;
    struct item *patch;

    setup(&f);
    snap_node(&f, "n1", "1");
    go(&f);
    add_pod(&f, "big", "2");
    patch = await(&f, &f.b[0], PATCH, "big");
    snap_node(&f, "n2", "4");
    SPIN(&f, bind_of(&f, "u-big") != NULL);
    settle(&f);
    CU_ASSERT(count_items(&f.b[0], BIND, "big") == 0); /* else PodScheduled=False could be last */
    answer(&f.b[0], patch, DONE, NULL);
    (void)await(&f, &f.b[0], BIND, "big");
    teardown(&f);
}

/* No binder had room for the condition before the bind took its place: it is the pod's first yet. */
static void test_the_condition_after_a_failed_bind_is_the_first_that_is_written(void)
{
    struct fixture f;
    struct item *i;

    setup(&f);
    snap_node(&f, "n1", "1");
    f.b[0].window = 0;
    go(&f);
    add_pod(&f, "big", "2");
    SPIN(&f, place(&f, "big") == BH_Q_UNSCHEDULABLE);
    snap_node(&f, "n2", "4");
    SPIN(&f, bind_of(&f, "u-big") != NULL);
    f.b[0].window = 32;
    i = await(&f, &f.b[0], BIND, "big");
    CU_ASSERT_EQUAL(count_items(&f.b[0], PATCH, "big"), 0);
    bh_snap_del_node(f.snap, "n2", 2); /* it cannot go there again at once */
    settle(&f);
    answer(&f.b[0], i, BERTH__OUTCOME__OUTCOME_REJECTED, "no");
    CU_ASSERT(await(&f, &f.b[0], PATCH, "big")->transition);
    teardown(&f);
}

static void test_a_pod_deleted_while_its_bind_is_out_leaves_room_at_once(void)
{
    struct fixture f;
    struct item *i;

    setup(&f);
    snap_node(&f, "n1", "1");
    go(&f);
    add_pod(&f, "p", "1");
    i = await(&f, &f.b[0], BIND, "p");
    add_pod(&f, "waits", "1");
    (void)await(&f, &f.b[0], EVENT, "waits");
    end_pod(&f, "p", DELETED);
    answer(&f.b[0], await(&f, &f.b[0], PATCH, "waits"), DONE, NULL);
    (void)await(&f, &f.b[0], BIND, "waits"); /* the room was announced */
    CU_ASSERT(place(&f, "p") == BH_Q_NONE);
    answer(&f.b[0], i, BERTH__OUTCOME__OUTCOME_GONE, NULL);
    SPIN(&f, bind_of(&f, "u-p") == NULL);
    CU_ASSERT(bh_engine_assumed_count(f.d.engine) == 1);
    teardown(&f);
}

static void test_a_pod_that_came_back_waits_for_the_bind_that_is_out(void)
{
    struct fixture f;
    struct item *i;

    setup(&f);
    snap_node(&f, "n1", "4");
    go(&f);
    add_pod(&f, "p", "1");
    i = await(&f, &f.b[0], BIND, "p");
    end_pod(&f, "p", DELETED); /* of a store that was restored from a backup */
    add_pod(&f, "p", "1");
    settle(&f);
    CU_ASSERT(place(&f, "p") == BH_Q_BINDING);
    CU_ASSERT(is_assumed(&f, "p"));
    CU_ASSERT(count_items(&f.b[0], BIND, "p") == 1);
    answer(&f.b[0], i, BERTH__OUTCOME__OUTCOME_REJECTED, "no");
    (void)await(&f, &f.b[0], EVENT, "p");
    CU_ASSERT(place(&f, "p") != BH_Q_NONE); /* and is tried again */
    teardown(&f);
}

static void test_a_terminating_pod_is_skipped(void)
{
    struct fixture f;
    struct item *i;

    setup(&f);
    snap_node(&f, "n1", "4");
    go(&f);
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED,
             pod(&f, "p", "1", "", ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\""));
    i = await(&f, &f.b[0], EVENT, "p");
    CU_ASSERT_STRING_EQUAL(i->note, "skip schedule deleting pod: ns/p");
    CU_ASSERT(place(&f, "p") == BH_Q_NONE);
    CU_ASSERT(count_items(&f.b[0], BIND, "p") == 0);
    teardown(&f);
}

static void test_a_node_deleted_while_a_pod_is_bound_to_it(void)
{
    struct fixture f;
    struct item *i;

    setup(&f);
    snap_node(&f, "n1", "4");
    go(&f);
    add_pod(&f, "p", "1");
    i = await(&f, &f.b[0], BIND, "p");
    CU_ASSERT_FATAL(bh_snap_del_node(f.snap, "n1", 2) == 0);
    settle(&f);
    CU_ASSERT(is_assumed(&f, "p"));
    answer(&f.b[0], i, UNKNOWN, NULL);
    i = await(&f, &f.b[0], BIND, "p");
    CU_ASSERT_STRING_EQUAL(i->node, "n1"); /* the first try may have happened */
    answer(&f.b[0], i, DONE, NULL);
    snap_pod(&f, "p", "1", "n1", "");
    end_pod(&f, "p", BOUND);
    SPIN(&f, place(&f, "p") == BH_Q_NONE);
    teardown(&f);
}

static void test_a_pod_bound_by_another_hand_is_not_decided(void)
{
    struct fixture f;
    struct item *i;

    setup(&f);
    snap_node(&f, "n1", "4");
    go(&f);
    snap_pod(&f, "p", "1", "n1", ""); /* the log is ahead of the feed */
    add_pod(&f, "p", "1");
    settle(&f);
    CU_ASSERT(place(&f, "p") == BH_Q_NONE);
    add_pod(&f, "q", "1");
    i = await(&f, &f.b[0], BIND, "q");
    answer(&f.b[0], i, BERTH__OUTCOME__OUTCOME_BOUND_ELSEWHERE, "n7");
    SPIN(&f, count_items(&f.b[0], BIND, "q") == 2); /* the watch does not show that yet */
    answer(&f.b[0], find_item(&f.b[0], BIND, "q"), BERTH__OUTCOME__OUTCOME_BOUND_ELSEWHERE, "n7");
    snap_pod(&f, "q", "1", "n7", "");
    end_pod(&f, "q", BOUND);
    SPIN(&f, place(&f, "q") == BH_Q_NONE);
    CU_ASSERT(!is_assumed(&f, "q"));
    CU_ASSERT(count_items(&f.b[0], EVENT, "p") + count_items(&f.b[0], EVENT, "q") == 0);
    teardown(&f);
}

static void test_a_watcher_that_stopped_stops_decisions(void)
{
    struct fixture f;

    setup(&f);
    snap_node(&f, "n1", "4");
    go(&f);
    f.d.timing.snapshot_stale_ns = 100000000;
    f.dead = true;
    SPIN(&f, !bh_sched_may_decide(&f.d));
    add_pod(&f, "p", "1");
    settle(&f);
    CU_ASSERT(place(&f, "p") == BH_Q_ACTIVE);
    f.d.timing.snapshot_stale_ns = BH_SNAPSHOT_STALE_NS;
    f.dead = false;
    (void)await(&f, &f.b[0], BIND, "p");
    teardown(&f);
}

static void test_a_gap_in_the_feed_asks_for_everything_again(void)
{
    struct fixture f;
    unsigned hellos;

    setup(&f);
    snap_node(&f, "n1", "1");
    go(&f);
    add_pod(&f, "stays", "2");
    add_pod(&f, "goes", "2");
    (void)await(&f, &f.b[0], EVENT, "goes");
    hellos = f.hellos;
    f.seq++; /* one is lost */
    end_pod(&f, "goes", DELETED);
    SPIN(&f, f.hellos > hellos);
    CU_ASSERT(!bh_sched_may_decide(&f.d));
    feed_begin(&f);
    add_pod(&f, "stays", "2");
    feed_batch(&f, NULL, true);
    SPIN(&f, bh_sched_may_decide(&f.d));
    CU_ASSERT(place(&f, "goes") == BH_Q_NONE);
    CU_ASSERT(place(&f, "stays") != BH_Q_NONE);
    /* number 0: the watcher does not know us */
    hellos = f.hellos;
    f.seq = UINT64_MAX;
    feed_batch(&f, NULL, false);
    SPIN(&f, f.hellos > hellos);
    teardown(&f);
}

static void test_a_batch_that_is_not_the_first_is_a_gap_too(void)
{
    struct fixture f;
    unsigned hellos;

    setup(&f);
    SPIN(&f, f.known);
    hellos = f.hellos;
    feed_begin(&f);
    f.seq = 6;
    feed_batch(&f, NULL, true);
    SPIN(&f, f.hellos > hellos);
    CU_ASSERT(!f.d.in.feed.synced);
    teardown(&f);
}

static void test_a_new_watcher_confirms_keeps_and_forgets_assumed_pods(void)
{
    struct fixture f;
    struct item *kept;

    setup(&f);
    snap_node(&f, "n1", "8");
    go(&f);
    add_pod(&f, "bound", "1");
    add_pod(&f, "deleted", "1");
    add_pod(&f, "pending", "1");
    add_pod(&f, "on-the-wire", "1");
    kept = await(&f, &f.b[0], BIND, "on-the-wire");
    answer(&f.b[0], await(&f, &f.b[0], BIND, "bound"), DONE, NULL);
    answer(&f.b[0], await(&f, &f.b[0], BIND, "deleted"), DONE, NULL);
    answer(&f.b[0], await(&f, &f.b[0], BIND, "pending"), DONE, NULL);
    SPIN(&f, bh_ledger_binds(f.d.ledger) == 1);
    watcher_stop(&f);
    f.hellos = 0;
    watcher_start(&f);
    /* what the new watcher lists: one got its node, one was deleted meanwhile, two it saw as
     * pending */
    snap_node(&f, "n1", "8");
    snap_pod(&f, "bound", "1", "n1", "");
    SPIN(&f, f.known);
    feed_begin(&f);
    add_pod(&f, "pending", "1");
    add_pod(&f, "on-the-wire", "1");
    feed_batch(&f, NULL, true);
    settle(&f);
    CU_ASSERT(!bh_sched_may_decide(&f.d));
    CU_ASSERT(is_assumed(&f, "deleted")); /* the snapshot is not there yet: nothing is known */
    bh_snap_set_synced(f.snap, true);
    SPIN(&f, bh_sched_may_decide(&f.d) && !f.d.sweep_due);
    CU_ASSERT(!is_assumed(&f, "bound"));
    CU_ASSERT(!is_assumed(&f, "deleted"));
    CU_ASSERT(is_assumed(&f, "pending"));
    CU_ASSERT(is_assumed(&f, "on-the-wire"));
    CU_ASSERT(bh_engine_pod_count(f.d.engine) == 3);
    /* the entry survived: a bind that fails now still returns the pod */
    answer(&f.b[0], kept, BERTH__OUTCOME__OUTCOME_REJECTED, "no");
    (void)await(&f, &f.b[0], EVENT, "on-the-wire");
    CU_ASSERT(place(&f, "on-the-wire") != BH_Q_NONE);
    teardown(&f);
}

/* Shared memory was full for a while, or the scheduler did not run: the log of the time between is
 * lost, and the watch tells of the binding only, before the snapshot is read anew or after. */
static void test_an_assumed_pod_that_the_snapshot_read_anew_lacks_is_forgotten(void)
{
    for (unsigned late = 0; late < 2; late++) {
        struct fixture f;

        setup(&f);
        snap_node(&f, "n1", "1");
        go(&f);
        add_pod(&f, "gone", "1");
        answer(&f.b[0], await(&f, &f.b[0], BIND, "gone"), DONE, NULL);
        SPIN(&f, bind_of(&f, "u-gone")->kept);
        if (!late)
            end_pod(&f, "gone", BOUND);
        for (int i = 0; i < 4000; i++) {
            snap_pod(&f, "busy", "1m", "n1", "");
            bh_snap_del_pod(f.snap, "u-busy", strlen("u-busy"));
        }
        settle(&f);
        CU_ASSERT_EQUAL(is_assumed(&f, "gone"), late);
        if (late)
            end_pod(&f, "gone", BOUND);
        SPIN(&f, place(&f, "gone") == BH_Q_NONE && !is_assumed(&f, "gone"));
        add_pod(&f, "next", "1");
        (void)await(&f, &f.b[0], BIND, "next");
        teardown(&f);
    }
}

static void test_hostile_changes_are_skipped(void)
{
    struct fixture f;
    Berth__ObjectChange c = BERTH__OBJECT_CHANGE__INIT;
    uint8_t garbage[] = {0xff, 0xff, 0xff};
    char name[] = "x", uid[] = "u-x";
    struct bh_buf bytes = {0};

    setup(&f);
    snap_node(&f, "n1", "4");
    go(&f);
    c.has_op = c.has_kind = c.has_object = c.has_log_pos = true;
    c.name = name;
    c.object = (ProtobufCBinaryData){sizeof(garbage), garbage};
    for (uint32_t kind = 0; kind < BH_KIND_COUNT; kind++) {
        c.kind = kind;
        for (int op = BERTH__CHANGE_OP__CHANGE_ADDED; op <= BERTH__CHANGE_OP__CHANGE_BOUND; op++) {
            c.op = (Berth__ChangeOp)op;
            c.uid = NULL; /* no uid, no namespace, no version */
            feed_batch(&f, &c, false);
            c.uid = uid;
            feed_batch(&f, &c, false);
        }
    }
    bh_pb_pack(&bytes, &pod(&f, "inside", "1", "", "")->base); /* says another name inside */
    c.kind = BH_KIND_POD;
    c.op = BERTH__CHANGE_OP__CHANGE_ADDED;
    c.object = (ProtobufCBinaryData){bytes.n, (uint8_t *)bytes.p};
    feed_batch(&f, &c, false);
    bh_buf_fini(&bytes);
    settle(&f);
    CU_ASSERT(f.d.in.feed.synced);
    CU_ASSERT(place(&f, "inside") == BH_Q_NONE && place(&f, "x") == BH_Q_NONE);
    add_pod(&f, "p", "1");
    (void)await(&f, &f.b[0], BIND, "p");
    teardown(&f);
}

BH_TESTS(
    "scheduler/daemon",
    {"nothing is decided before snapshot and feed are complete",
     test_nothing_is_decided_before_snapshot_and_feed_are_complete},
    {"a pod is bound and confirmed whichever news is first",
     test_a_pod_is_bound_and_confirmed_whichever_news_is_first},
    {"a dead binder's bind goes to another and counts once",
     test_a_dead_binders_bind_goes_to_another_and_counts_once},
    {"unknown counts only from the binder that holds the item",
     test_unknown_counts_only_from_the_binder_that_holds_the_item},
    {"an answer that got lost is asked for again", test_an_answer_that_got_lost_is_asked_for_again},
    {"a restarted scheduler sends the pod where it was sent",
     test_a_restarted_scheduler_sends_the_pod_where_it_was_sent},
    {"a refusal for the old scheduler is decided anew",
     test_a_refusal_for_the_old_scheduler_is_decided_anew},
    {"reports about pods that are not pending are forgotten",
     test_reports_about_pods_that_are_not_pending_are_forgotten},
    {"a start waits for the binders of one that died", test_waits_for_binders_of_one_that_died},
    {"a bind on the wire counts before the first decision",
     test_a_bind_on_the_wire_counts_before_the_first_decision},
    {"a bind of a dead binder counts too", test_a_bind_of_a_dead_binder_counts_too},
    {"a death while adopting loses nothing", test_a_death_while_adopting_loses_nothing},
    {"a bind that is done and not shown counts", test_a_bind_that_is_done_and_not_shown_counts},
    {"a bind of another term counts and is looked at",
     test_a_bind_of_another_term_counts_and_is_looked_at},
    {"more than can be recorded is waited for", test_more_than_can_be_recorded_is_waited_for},
    {"a pod that is still pending is tried again whatever its bind was answered",
     test_a_pod_that_is_still_pending_is_tried_again_whatever_its_bind_was_answered},
    {"a pod that is gone for the watch stays gone",
     test_a_pod_that_is_gone_for_the_watch_stays_gone},
    {"a shown bind that is taken back leaves nothing",
     test_a_shown_bind_that_is_taken_back_leaves_nothing},
    {"a bind that the watch never shows is looked at",
     test_a_bind_that_the_watch_never_shows_is_looked_at},
    {"a refusal does not end a bind in doubt", test_a_refusal_does_not_end_a_bind_in_doubt},
    {"a lost pod is found", test_a_lost_pod_is_found},
    {"a BOUND that was lost is no lost pod", test_a_bound_that_was_lost_is_no_lost_pod},
    {"work goes only to binders that know the epoch",
     test_work_goes_only_to_binders_that_know_the_epoch},
    {"an unschedulable pod is told once and woken by a node",
     test_an_unschedulable_pod_is_told_once_and_woken_by_a_node},
    {"a condition from before the restart is not written again",
     test_a_condition_from_before_the_restart_is_not_written_again},
    {"a refused patch is written again", test_a_refused_patch_is_written_again},
    {"a preemptor evicts and is nominated", test_a_preemptor_evicts_and_is_nominated},
    {"a preemptor waits for its evictions", test_a_preemptor_waits_for_its_evictions},
    {"the last victim is spared when another one stays",
     test_the_last_victim_is_spared_when_another_one_stays},
    {"a preemptor that was refused an eviction tries again",
     test_a_preemptor_that_was_refused_an_eviction_tries_again},
    {"victims that go already are left alone", test_victims_that_go_already_are_left_alone},
    {"a lower nomination is withdrawn", test_a_lower_nomination_is_withdrawn},
    {"room of a pod that is bound elsewhere", test_room_of_a_pod_that_is_bound_elsewhere},
    {"the end of a promise wakes whom it kept out",
     test_the_end_of_a_promise_wakes_whom_it_kept_out},
    {"a promise that ends unwritten leaves room", test_a_promise_that_ends_unwritten_leaves_room},
    {"a refused bind returns the pod with its newest object",
     test_a_refused_bind_returns_the_pod_with_its_newest_object},
    {"a bind waits for the status patch that is out",
     test_a_bind_waits_for_the_status_patch_that_is_out},
    {"the condition after a failed bind is the first that is written",
     test_the_condition_after_a_failed_bind_is_the_first_that_is_written},
    {"a pod deleted while its bind is out leaves room at once",
     test_a_pod_deleted_while_its_bind_is_out_leaves_room_at_once},
    {"a pod that came back waits for the bind that is out",
     test_a_pod_that_came_back_waits_for_the_bind_that_is_out},
    {"a terminating pod is skipped", test_a_terminating_pod_is_skipped},
    {"a node deleted while a pod is bound to it", test_a_node_deleted_while_a_pod_is_bound_to_it},
    {"a pod bound by another hand is not decided", test_a_pod_bound_by_another_hand_is_not_decided},
    {"a watcher that stopped stops decisions", test_a_watcher_that_stopped_stops_decisions},
    {"a gap in the feed asks for everything again",
     test_a_gap_in_the_feed_asks_for_everything_again},
    {"a batch that is not the first is a gap too", test_a_batch_that_is_not_the_first_is_a_gap_too},
    {"a new watcher confirms, keeps and forgets assumed pods",
     test_a_new_watcher_confirms_keeps_and_forgets_assumed_pods},
    {"an assumed pod that the snapshot, read anew, lacks is forgotten",
     test_an_assumed_pod_that_the_snapshot_read_anew_lacks_is_forgotten},
    {"hostile changes are skipped", test_hostile_changes_are_skipped})
