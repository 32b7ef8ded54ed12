/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/daemon/test_adopt.c - binds that the scheduler before left on the wire, where
 * nothing is decided: on a host that stands by, and of records that say a pod twice
 *
 * Who leads adopts them and finds out; here they have to go by what the watch and binders say.
 */
#include <unistd.h>

#include "scheduler/daemon/inflight.h"
#include "scheduler/framework/plugin.h"
#include "tests/unit/scheduler/daemon/fixture.h"

#define BIND     BERTH__WORK_KIND__WORK_BIND
#define PATCH    BERTH__WORK_KIND__WORK_PATCH_STATUS
#define DONE     BERTH__OUTCOME__OUTCOME_DONE
#define REJECTED BERTH__OUTCOME__OUTCOME_REJECTED
#define BOUND    BERTH__CHANGE_OP__CHANGE_BOUND
#define DELETED  BERTH__CHANGE_OP__CHANGE_DELETED
#define SECOND   UINT64_C(1000000000)

const struct bh_plugin *const bh_plugins_extra[] = {NULL};

static void record(struct bh_inflight *r, uint64_t id, const char *uid, const char *node)
{
    const struct bh_inflight_item it = {.kind = BIND,
                                        .id = id,
                                        .term = 1,
                                        .until_boot_ns = bh_boot_ns() + 3600 * SECOND,
                                        .uid = uid,
                                        .node = node};

    CU_ASSERT_FATAL(bh_inflight_put(r, &it) != 0);
}

/* A scheduler with this on the wire died; the next one runs, and has two nodes. binder: one that it
 * knew, or NULL. */
static void setup_heir(struct fixture *f, const char *const (*binds)[2], unsigned n,
                       const char *binder)
{
    struct bh_inflight *r = NULL;
    struct bh_err err = {0};

    setup(f);
    scheduler_stop(f);
    f->known = false;
    CU_ASSERT_FATAL(bh_inflight_open(f->dir, &r, &err) == 0);
    for (unsigned i = 0; i < n; i++)
        record(r, 100 + i, binds[i][0], binds[i][1]);
    if (binder)
        bh_inflight_add_binder(r, binder);
    bh_inflight_close(r);
    snap_node(f, "n1", "4");
    snap_node(f, "n2", "4");
    scheduler_start(f);
}

static void setup_after(struct fixture *f, const char *const (*binds)[2], unsigned n)
{
    setup_heir(f, binds, n, NULL);
}

static uint32_t on_record(struct fixture *f)
{
    return bh_inflight_count(f->d.adopt.record);
}

/* The later one is what was asked last. */
static void test_a_pod_that_is_recorded_twice_counts_once(void)
{
    static const char *const binds[][2] = {{"u-p", "n1"}, {"u-q", "n1"}, {"u-p", "n2"}};
    struct fixture f;

    setup_after(&f, binds, 3);
    CU_ASSERT_EQUAL(f.d.adopt.n_binds, 2);
    CU_ASSERT_EQUAL(on_record(&f), 2);
    bh_snap_set_synced(f.snap, true);
    SPIN(&f, f.known);
    feed_begin(&f);
    add_pod(&f, "p", "1");
    add_pod(&f, "q", "1");
    feed_batch(&f, NULL, true);
    struct item *i = await(&f, &f.b[0], BIND, "p");
    CU_ASSERT_STRING_EQUAL(i->node, "n2");
    CU_ASSERT_STRING_EQUAL(await(&f, &f.b[0], BIND, "q")->node, "n1");
    CU_ASSERT_EQUAL(count_items(&f.b[0], BIND, "p"), 1);
    CU_ASSERT(f.d.adopt.n_binds == 0 && f.d.adopt.n_counted == 2);
    teardown(&f);
}

/* The truncated slot may have named p, or a bind to the node that p fits on. */
static void test_with_a_damaged_record_nothing_is_decided_before_its_binds_may_be_over(void)
{
    struct bh_inflight *r = NULL;
    struct bh_err err = {0};
    struct fixture f;

    setup(&f);
    scheduler_stop(&f);
    f.known = false;
    CU_ASSERT_FATAL(bh_inflight_open(f.dir, &r, &err) == 0);
    record(r, 100, "u-p", "n1");
    bh_inflight_close(r);
    CU_ASSERT_EQUAL_FATAL(
        truncate(bh_arena_printf(&f.a, "%s/scheduler/" BH_INFLIGHT_FILE, f.dir), 16384), 0);
    snap_node(&f, "n1", "4");
    scheduler_start(&f);
    bh_snap_set_synced(f.snap, true);
    SPIN(&f, f.known);
    feed_begin(&f);
    add_pod(&f, "p", "1");
    feed_batch(&f, NULL, true);
    settle(&f);
    SPIN(&f, !bh_sched_binders_awaited(&f.d)); /* binders are not waited for any more */
    settle(&f);
    CU_ASSERT(bh_sched_ready(&f.d) && bh_sched_leads(&f.d));
    CU_ASSERT(!bh_sched_adopted(&f.d) && !bh_sched_may_decide(&f.d));
    CU_ASSERT_EQUAL(count_items(&f.b[0], BIND, "p"), 0);
    teardown(&f);
}

/* Only the one in its place is heard, and knows nothing of what it had sent. */
static void test_what_a_binder_had_that_died_comes_in_first(void)
{
    for (unsigned young = 0; young < 2; young++) {
        struct fixture f;

        setup_heir(&f, NULL, 0, "host/x");
        f.d.timing.binder_grace_ns = 60 * SECOND;
        f.b[0].young_ns = young ? BH_BUS_GRANT_TAIL_NS - SECOND / 2 : 0;
        bh_snap_set_synced(f.snap, true);
        SPIN(&f, f.known);
        feed_begin(&f);
        add_pod(&f, "p", "1");
        feed_batch(&f, NULL, true);
        (void)await(&f, &f.b[0], BIND, "p");
        CU_ASSERT_EQUAL(f.d.adopt.settled_ns != 0, young);
        CU_ASSERT(bh_boot_ns() >= f.d.adopt.settled_ns);
        teardown(&f);
    }
}

/* Somebody else leads: nothing is decided here, and the feed is complete. */
static void stand_by(struct fixture *f, const char *const *pending)
{
    bh_snap_set_lease(f->snap, 7, 0);
    bh_snap_set_synced(f->snap, true);
    SPIN(f, f->known);
    feed_begin(f);
    for (; *pending; pending++)
        add_pod(f, *pending, "1");
    feed_batch(f, NULL, true);
    settle(f);
    CU_ASSERT(!bh_sched_may_decide(&f->d));
}

static void test_what_is_not_pending_any_more_is_forgotten_by_who_stands_by(void)
{
    static const char *const binds[][2] = {{"u-gone", "n1"}, {"u-p", "n2"}};
    static const char *const pending[] = {"p", NULL};
    struct fixture f;

    setup_after(&f, binds, 2);
    CU_ASSERT_EQUAL(f.d.adopt.n_binds, 2);
    stand_by(&f, pending);
    CU_ASSERT_EQUAL(f.d.adopt.n_binds, 1);
    CU_ASSERT(pod_of(&f, "u-p")->adopted && !pod_of(&f, "u-gone"));
    CU_ASSERT_EQUAL(on_record(&f), 1);
    teardown(&f);
}

static void test_the_watch_ends_what_who_stands_by_had_to_adopt(void)
{
    static const char *const binds[][2] = {{"u-bound", "n1"}, {"u-deleted", "n2"}, {"u-p", "n2"}};
    static const char *const pending[] = {"bound", "deleted", "p", NULL};
    struct fixture f;

    setup_after(&f, binds, 3);
    stand_by(&f, pending);
    CU_ASSERT(f.d.adopt.n_binds == 3 && on_record(&f) == 3);
    snap_pod(&f, "bound", "1", "n1", "");
    end_pod(&f, "bound", BOUND);
    settle(&f);
    CU_ASSERT(f.d.adopt.n_binds == 2 && on_record(&f) == 2);
    end_pod(&f, "deleted", DELETED);
    settle(&f);
    CU_ASSERT(f.d.adopt.n_binds == 1 && on_record(&f) == 1);
    CU_ASSERT(pod_of(&f, "u-p")->adopted != NULL);
    teardown(&f);
}

static void test_a_refusal_ends_what_who_stands_by_had_to_adopt(void)
{
    static const char *const binds[][2] = {{"u-p", "n2"}};
    static const char *const pending[] = {"p", NULL};
    struct item old = {
        .kind = BIND, .name = "p", .uid = "u-p", .node = "n2", .epoch = 1, .id = 100};
    struct fixture f;

    setup_after(&f, binds, 1);
    stand_by(&f, pending);
    SPIN(&f, f.b[0].epoch == f.d.epoch);
    answer(&f.b[0], &old, DONE, NULL); /* asked for again, once this host leads */
    settle(&f);
    CU_ASSERT_EQUAL(f.d.adopt.n_binds, 1);
    answer(&f.b[0], &old, REJECTED, "no");
    SPIN(&f, f.d.adopt.n_binds == 0);
    CU_ASSERT_EQUAL(on_record(&f), 0);
    bh_snap_set_lease(f.snap, 8, BH_SNAP_NO_ELECTION);
    CU_ASSERT_STRING_EQUAL(await(&f, &f.b[0], BIND, "p")->node, "n1"); /* decided anew */
    teardown(&f);
}

static void start_with_a_status(struct fixture *f)
{
    setup_heir(f, NULL, 0, "host/x");
    f->d.timing.binder_grace_ns = 3600 * SECOND;
    f->b[0].wire[0] =
        (struct item){.kind = PATCH, .name = "p", .uid = "u-p", .epoch = 1, .id = 100};
    f->b[0].n_wire = 1;
    bh_snap_set_synced(f->snap, true);
    SPIN(f, f->known);
    feed_begin(f);
    add_pod(f, "p", "1");
    add_pod(f, "q", "1");
    feed_batch(f, NULL, true);
    (void)await(f, &f->b[0], BIND, "q"); /* which is nothing to others */
    SPIN(f, place(f, "p") == BH_Q_BINDING);
    settle(f);
    CU_ASSERT_EQUAL(count_items(&f->b[0], BIND, "p"), 0);
}

/* It would say that the pod has no node behind the pod's binding. */
static void test_a_status_of_the_scheduler_before_is_waited_for(void)
{
    Berth__WorkResult of_no_pod = BERTH__WORK_RESULT__INIT;
    struct fixture f;

    of_no_pod.id = 100;
    start_with_a_status(&f);
    bh_sched_adopt_answered(&f.d, &of_no_pod);
    answer(&f.b[0], &f.b[0].wire[0], DONE, NULL);
    (void)await(&f, &f.b[0], BIND, "p");
    teardown(&f);
}

static void test_a_status_of_the_scheduler_before_that_is_never_answered_ends(void)
{
    struct fixture f;

    start_with_a_status(&f);
    answer(&f.b[0], &f.b[0].wire[0], BERTH__OUTCOME__OUTCOME_UNKNOWN, NULL); /* that is none */
    settle(&f);
    CU_ASSERT_EQUAL(count_items(&f.b[0], BIND, "p"), 0);
    (void)bh_ledger_expire(f.d.ledger, bh_mono_ns() + f.d.timing.claim_ns);
    (void)await(&f, &f.b[0], BIND, "p");
    CU_ASSERT_EQUAL(count_items(&f.b[0], PATCH, "p"), 0);
    teardown(&f);
}

/* A write of the pod's claim, say, that a binder was slow to answer, and another had made long before. */
static void test_a_refusal_of_something_else_ends_no_adopted_bind(void)
{
    static const char *const binds[][2] = {{"u-p", "n2"}};
    static const char *const pending[] = {"p", NULL};
    struct item old = {.name = "p", .uid = "u-p", .epoch = 1, .id = 99};
    struct fixture f;

    setup_after(&f, binds, 1);
    stand_by(&f, pending);
    SPIN(&f, f.b[0].epoch == f.d.epoch);
    answer(&f.b[0], &old, REJECTED, "no");
    settle(&f);
    CU_ASSERT(f.d.adopt.n_binds == 1 && on_record(&f) == 1);
    bh_snap_set_lease(f.snap, 8, BH_SNAP_NO_ELECTION);
    SPIN(&f, place(&f, "p") == BH_Q_BINDING);
    CU_ASSERT_STRING_EQUAL(bind_of(&f, "u-p")->item.node, "n2");
    teardown(&f);
}

/* The scheduler between that one and this had asked for it again, under a number of its own. */
static void test_a_refusal_by_the_number_that_a_binder_reported_ends_it(void)
{
    static const char *const binds[][2] = {{"u-p", "n2"}};
    static const char *const pending[] = {"p", NULL};
    struct item old = {.kind = BIND, .name = "p", .uid = "u-p", .node = "n2", .epoch = 1, .id = 7};
    struct fixture f;

    setup_after(&f, binds, 1);
    f.b[0].wire[0] = old;
    f.b[0].n_wire = 1;
    stand_by(&f, pending);
    SPIN(&f, f.b[0].epoch == f.d.epoch);
    answer(&f.b[0], &old, REJECTED, "no");
    SPIN(&f, f.d.adopt.n_binds == 0);
    teardown(&f);
}

/* Its pod went before the snapshot could show it: no later message ends the assumption. */
static void test_a_bind_of_a_pod_that_was_bound_and_deleted_unseen_keeps_no_room(void)
{
    struct fixture f;
    struct item *i;

    setup(&f);
    snap_node(&f, "n1", "1");
    go(&f);
    add_pod(&f, "p", "1");
    i = await(&f, &f.b[0], BIND, "p");
    end_pod(&f, "p", BOUND);
    settle(&f);
    CU_ASSERT(is_assumed(&f, "p") && !f.d.sweep_due);
    answer(&f.b[0], i, DONE, NULL);
    SPIN(&f, !is_assumed(&f, "p"));
    add_pod(&f, "q", "1"); /* as large as the node */
    (void)await(&f, &f.b[0], BIND, "q");
    teardown(&f);
}

/* Where no disk has room for the record: only the next scheduler has to wait. */
static void test_a_bind_that_is_not_recorded_holds_nobody_up(void)
{
    struct fixture f;

    setup(&f);
    snap_node(&f, "n1", "1");
    go(&f);
    bh_inflight_extend(f.d.adopt.record, 0, bh_boot_ns() + 3600 * SECOND);
    CU_ASSERT_FATAL(bh_sched_may_decide(&f.d));
    add_pod(&f, "p", "1");
    (void)await(&f, &f.b[0], BIND, "p");
    teardown(&f);
}

BH_TESTS("scheduler/daemon/adopt",
         {"with a damaged record nothing is decided before its binds may be over",
          test_with_a_damaged_record_nothing_is_decided_before_its_binds_may_be_over},
         {"a pod that is recorded twice counts once",
          test_a_pod_that_is_recorded_twice_counts_once},
         {"what a binder had that died comes in first",
          test_what_a_binder_had_that_died_comes_in_first},
         {"what is not pending any more is forgotten by who stands by",
          test_what_is_not_pending_any_more_is_forgotten_by_who_stands_by},
         {"the watch ends what who stands by had to adopt",
          test_the_watch_ends_what_who_stands_by_had_to_adopt},
         {"a refusal ends what who stands by had to adopt",
          test_a_refusal_ends_what_who_stands_by_had_to_adopt},
         {"a status of the scheduler before is waited for",
          test_a_status_of_the_scheduler_before_is_waited_for},
         {"a status of the scheduler before that is never answered ends",
          test_a_status_of_the_scheduler_before_that_is_never_answered_ends},
         {"a refusal of something else ends no adopted bind",
          test_a_refusal_of_something_else_ends_no_adopted_bind},
         {"a refusal by the number that a binder reported ends it",
          test_a_refusal_by_the_number_that_a_binder_reported_ends_it},
         {"a bind of a pod that was bound and deleted unseen keeps no room",
          test_a_bind_of_a_pod_that_was_bound_and_deleted_unseen_keeps_no_room},
         {"a bind that is not recorded holds nobody up",
          test_a_bind_that_is_not_recorded_holds_nobody_up})
