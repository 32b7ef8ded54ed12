/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/daemon/test_group.c - what becomes of a group's members and of its PodGroup:
 * the table of outcomes, row by row, with binders and a watcher that the test plays
 */
#include "tests/unit/scheduler/daemon/fixture.h"

#define BIND   BERTH__WORK_KIND__WORK_BIND
#define PATCH  BERTH__WORK_KIND__WORK_PATCH_STATUS
#define DELETE BERTH__WORK_KIND__WORK_DELETE
#define STATUS BERTH__WORK_KIND__WORK_GROUP_STATUS
#define ASKED  "one or more plugins asked to wait and no plugin rejected pod"
#define WAITS  "waiting for minCount pods from a gang to be scheduled, " ASKED

struct gangs {
    struct fixture f;
    struct bh_kube_flags flags;
};

static void setup_gates(struct gangs *g, const char *gates)
{
    static const char two[] =
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: default-scheduler}, {schedulerName: second}]";
    static const struct bh_opt_usage usage = {.program = "prog"};
    struct bh_config_report report;
    char *argv[] = {(char[]){"prog"}, (char *)(uintptr_t)gates, NULL};
    struct bh_err err = {0};

    setup(&g->f);
    scheduler_stop(&g->f);
    bh_sched_config_free(g->f.config);
    bh_config_report_init(&report);
    CU_ASSERT_FATAL(bh_sched_config_read(two, sizeof two - 1, &g->f.config, &report) == 0);
    bh_config_report_fini(&report);
    CU_ASSERT_EQUAL_FATAL(bh_kube_flags_parse(&g->flags, NULL, &usage, 2, argv, &err), 0);
    bh_sched_config_apply_flags(g->f.config, &g->flags);
    g->f.config->pod_initial_backoff_ns = INT64_C(3600) * 1000000000; /* one attempt is enough */
    g->f.config->pod_max_backoff_ns = INT64_C(3600) * 1000000000;
    scheduler_start(&g->f);
}

static void setup_gangs(struct gangs *g)
{
    setup_gates(g, "--feature-gates=GenericWorkload=true,GangScheduling=true");
}

static void teardown_gangs(struct gangs *g)
{
    teardown(&g->f);
    bh_kube_flags_free(&g->flags);
}

static void feed_group(struct fixture *f, Berth__ChangeOp op, const char *json)
{
    static char ns[] = "ns", name[] = "g";
    Berth__ObjectChange c = BERTH__OBJECT_CHANGE__INIT;
    struct bh_buf bytes = {0};

    c.has_op = c.has_kind = c.has_log_pos = true;
    c.op = op;
    c.kind = BH_KIND_PODGROUP;
    c.namespace_ = ns;
    c.name = name;
    c.log_pos = bh_snap_head(f->snap);
    if (json) {
        bh_pb_pack(&bytes, decode(f, &k8s__pod_group__descriptor, json));
        c.has_object = true;
        c.object = (ProtobufCBinaryData){bytes.n, (uint8_t *)bytes.p};
    }
    feed_batch(f, &c, false);
    bh_buf_fini(&bytes);
}

/* status: of the object, "" = none yet. */
static void feed_gang(struct fixture *f, const char *policy, const char *status)
{
    feed_group(f, BERTH__CHANGE_OP__CHANGE_ADDED,
               bh_arena_printf(&f->a,
                               "{\"metadata\":{\"name\":\"g\",\"namespace\":\"ns\",\"uid\":\"u-g\","
                               "\"generation\":7,\"resourceVersion\":\"5\"},\"spec\":"
                               "{\"schedulingPolicy\":{%s}},\"status\":{%s}}",
                               policy, status));
}

static void gang_of(struct fixture *f, unsigned min)
{
    feed_gang(f, bh_arena_printf(&f->a, "\"gang\":{\"minCount\":%u}", min), "");
}

static void add_member(struct fixture *f, const char *name, const char *cpu, const char *extra)
{
    feed_pod(f, BERTH__CHANGE_OP__CHANGE_ADDED,
             pod(f, name, cpu,
                 bh_arena_printf(&f->a, "\"schedulingGroup\":{\"podGroupName\":\"g\"},%s", extra),
                 ""));
}

static struct item *condition(struct gangs *g, const char *name)
{
    return await(&g->f, &g->f.b[0], PATCH, name);
}

static struct item *told(struct gangs *g)
{
    return await(&g->f, &g->f.b[0], STATUS, "g");
}

#define IS(have, want)                                                                             \
    do {                                                                                           \
        if (!bh_streq(have, want))                                                                 \
            fprintf(stderr, "  line %d: have \"%s\"\n           want \"%s\"\n", __LINE__, have,    \
                    want);                                                                         \
        CU_ASSERT_STRING_EQUAL(have, want);                                                        \
    } while (0)

/* Success | Success */
static void test_all_go(void)
{
    struct gangs g;

    setup_gangs(&g);
    snap_node(&g.f, "n1", "3");
    go(&g.f);
    gang_of(&g.f, 3);
    for (unsigned i = 0; i < 3; i++)
        add_member(&g.f, bh_arena_printf(&g.f.a, "m%u", i), "1", "");
    for (unsigned i = 0; i < 3; i++)
        (void)await(&g.f, &g.f.b[0], BIND, bh_arena_printf(&g.f.a, "m%u", i));
    struct item *t = told(&g);
    IS(t->reason, "Scheduled");
    IS(t->message, "");
    CU_ASSERT(t->transition);
    for (unsigned i = 0; i < g.f.b[0].n; i++) /* nobody is told a node that he waits for */
        CU_ASSERT(g.f.b[0].items[i].kind != PATCH);
    teardown_gangs(&g);
}

/* Large enough for the process to look up while its members are tried. */
static void test_large_group(void)
{
    struct gangs g;

    setup_gangs(&g);
    for (unsigned i = 0; i < 30; i++)
        snap_node(&g.f, bh_arena_printf(&g.f.a, "n%u", i), "10");
    go(&g.f);
    gang_of(&g.f, 300);
    for (unsigned i = 0; i < 300; i++)
        add_member(&g.f, bh_arena_printf(&g.f.a, "m%u", i), "1", "");
    SPIN(&g.f, bh_ledger_binds(g.f.d.ledger) == 300);
    teardown_gangs(&g);
}

/* rejected, not waiting | Success, and | failed otherwise */
static void test_too_few(void)
{
    struct gangs g;

    setup_gangs(&g);
    snap_node(&g.f, "n1", "2");
    go(&g.f);
    gang_of(&g.f, 3);
    for (unsigned i = 0; i < 3; i++)
        add_member(&g.f, bh_arena_printf(&g.f.a, "m%u", i), "1", "");
    IS(condition(&g, "m0")->reason, "Unschedulable");
    IS(condition(&g, "m0")->message, "pod group is unschedulable, " WAITS);
    IS(condition(&g, "m1")->message, "pod group is unschedulable, " WAITS);
    CU_ASSERT(strncmp(condition(&g, "m2")->message, "0/1 nodes are available: 1 Insufficient cpu.",
                      44) == 0);
    struct item *t = told(&g);
    IS(t->reason, "Unschedulable");
    IS(t->message, "pod group is unschedulable");
    for (unsigned i = 0; i < 3; i++) {
        CU_ASSERT(place(&g.f, bh_arena_printf(&g.f.a, "m%u", i)) == BH_Q_ERROR_BACKOFF);
        CU_ASSERT_EQUAL(count_items(&g.f.b[0], BIND, bh_arena_printf(&g.f.a, "m%u", i)), 0);
    }
    teardown_gangs(&g);
}

/* Success | failed otherwise */
static void test_one_stays_behind(void)
{
    struct gangs g;

    setup_gangs(&g);
    snap_node(&g.f, "n1", "2");
    go(&g.f);
    gang_of(&g.f, 2);
    add_member(&g.f, "large", "4", "\"priority\":5,");
    add_member(&g.f, "m0", "1", "");
    answer(&g.f.b[0], condition(&g, "m0"), BERTH__OUTCOME__OUTCOME_DONE, NULL); /* too few */
    feed_pod(&g.f, BERTH__CHANGE_OP__CHANGE_DELETED, pod(&g.f, "large", "4", "", ""));
    add_member(&g.f, "large2", "4", "\"priority\":5,");
    add_member(&g.f, "m1", "1", "");
    (void)await(&g.f, &g.f.b[0], BIND, "m0");
    (void)await(&g.f, &g.f.b[0], BIND, "m1");
    SPIN(&g.f, place(&g.f, "large2") == BH_Q_ERROR_BACKOFF);
    CU_ASSERT_EQUAL(count_items(&g.f.b[0], BIND, "large2"), 0);
    teardown_gangs(&g);
}

static void occupy(struct gangs *g, const char *name, const char *node)
{
    snap_pod(&g->f, name, "1", node, "\"priority\":1,");
}

/* rejected, waiting | Success: nominated to its host; | requiresPreemption: its victims go */
static void test_waiting_for_victims(void)
{
    struct gangs g;

    setup_gangs(&g);
    snap_node(&g.f, "n1", "1");
    snap_node(&g.f, "n2", "1");
    occupy(&g, "low", "n2");
    go(&g.f);
    gang_of(&g.f, 2);
    add_member(&g.f, "a", "1", "\"priority\":9,");
    add_member(&g.f, "b", "1", "\"priority\":9,");
    IS(condition(&g, "a")->message,
       "pod group is unschedulable, pod group is waiting for preemption to complete");
    IS(condition(&g, "a")->nominated, "n1");
    IS(condition(&g, "b")->nominated, "n2");
    (void)await(&g.f, &g.f.b[0], DELETE, "low");
    IS(told(&g)->message,
       "pod group is unschedulable, pod group is waiting for preemption to complete");
    teardown_gangs(&g);
}

/* any non-error | requiresPreemption, group not waiting: its victims are spared */
static void test_victims_are_spared(void)
{
    struct gangs g;

    setup_gangs(&g);
    snap_node(&g.f, "n1", "1");
    occupy(&g, "low", "n1");
    go(&g.f);
    gang_of(&g.f, 2);
    add_member(&g.f, "a", "1", "\"priority\":9,");
    add_member(&g.f, "b", "1", "\"priority\":9,");
    IS(condition(&g, "a")->message, "pod group is unschedulable, " WAITS);
    IS(condition(&g, "a")->nominated, "");
    IS(told(&g)->message, "pod group is unschedulable");
    settle(&g.f);
    CU_ASSERT_EQUAL(count_items(&g.f.b[0], DELETE, "low"), 0);
    teardown_gangs(&g);
}

/* Preemption by group: its victims go in its name, and its members wait for them together. */
static void test_victims_of_the_group(void)
{
    struct gangs g;

    setup_gates(&g, "--feature-gates=GenericWorkload=true,GangScheduling=true,"
                    "WorkloadAwarePreemption=true");
    snap_node(&g.f, "n1", "1");
    snap_node(&g.f, "n2", "1");
    occupy(&g, "low", "n2");
    go(&g.f);
    feed_gang(&g.f,
              "\"gang\":{\"minCount\":2}},\"priority\":9,\"disruptionMode\":\"Pod\","
              "\"schedulingConstraints\":{",
              "");
    add_member(&g.f, "a", "1", "\"priority\":9,");
    add_member(&g.f, "b", "1", "\"priority\":9,");
    IS(condition(&g, "a")->message, "pod group is unschedulable");
    IS(condition(&g, "a")->nominated, "n1");
    IS(condition(&g, "b")->nominated, "");
    struct item *gone = await(&g.f, &g.f.b[0], DELETE, "low");
    IS(gone->message, "default-scheduler: preempting to accommodate a higher priority podgroup");
    IS(gone->related, "scheduling.k8s.io/v1alpha2 PodGroup ns/g u-g @5");
    IS(told(&g)->message, "pod group is unschedulable");
    const struct bh_pod_state *a = pod_of(&g.f, "u-a"), *b = pod_of(&g.f, "u-b");
    CU_ASSERT_FATAL(a && b);
    CU_ASSERT(bh_pod_evicts(a) && bh_pod_evicts(b));
    answer(&g.f.b[0], gone, BERTH__OUTCOME__OUTCOME_DONE, NULL);
    CU_ASSERT_FATAL(bh_snap_del_pod(g.f.snap, "u-low", 5) == 0);
    SPIN(&g.f, !bh_pod_evicts(a) && !bh_pod_evicts(b));
    teardown_gangs(&g);
}

/* A member that comes while the group's victims leave waits with it: alone it would evict others. */
static void test_one_that_comes_meanwhile(void)
{
    struct gangs g;

    setup_gates(&g, "--feature-gates=GenericWorkload=true,GangScheduling=true,"
                    "WorkloadAwarePreemption=true");
    snap_node(&g.f, "n1", "1");
    snap_node(&g.f, "n2", "1");
    occupy(&g, "low1", "n1");
    occupy(&g, "low2", "n2");
    go(&g.f);
    feed_gang(&g.f, "\"gang\":{\"minCount\":1}},\"priority\":9,\"schedulingConstraints\":{", "");
    add_member(&g.f, "a", "1", "\"priority\":9,");
    struct item *gone = await(&g.f, &g.f.b[0], DELETE, "low2");
    add_member(&g.f, "b", "1", "\"priority\":9,");
    SPIN(&g.f, pod_of(&g.f, "u-b"));
    settle(&g.f);
    CU_ASSERT(place(&g.f, "a") == BH_Q_GATED && place(&g.f, "b") == BH_Q_GATED);
    CU_ASSERT_EQUAL(count_items(&g.f.b[0], DELETE, "low1"), 0);
    answer(&g.f.b[0], gone, BERTH__OUTCOME__OUTCOME_DONE, NULL);
    CU_ASSERT_FATAL(bh_snap_del_pod(g.f.snap, "u-low2", 6) == 0);
    SPIN(&g.f, place(&g.f, "a") == BH_Q_BINDING); /* parked behind the condition that is out */
    CU_ASSERT(place(&g.f, "b") != BH_Q_GATED);    /* tried together */
    teardown_gangs(&g);
}

/* A group that waits for two victims, with a pod of lower priority that waits, too. */
static void begin_wait(struct gangs *g)
{
    setup_gates(g, "--feature-gates=GenericWorkload=true,GangScheduling=true,"
                   "WorkloadAwarePreemption=true");
    snap_node(&g->f, "n1", "1");
    snap_node(&g->f, "n2", "1");
    occupy(g, "low1", "n1");
    occupy(g, "low2", "n2");
    go(&g->f);
    feed_pod(&g->f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&g->f, "w", "1", "\"priority\":1,", ""));
    (void)condition(g, "w");
    feed_gang(&g->f, "\"gang\":{\"minCount\":2}},\"priority\":9,\"schedulingConstraints\":{", "");
    add_member(&g->f, "a", "1", "\"priority\":9,");
    add_member(&g->f, "b", "1", "\"priority\":9,");
}

/* One victim is gone before the other: the freed node is kept, and the group goes as soon as both are,
 * although its backoff is an hour. */
static void test_group_goes_when_its_last_victim_is_gone(void)
{
    struct gangs g;

    begin_wait(&g);
    const char *first = "low1", *last = "low2";
    struct item *gone;
    SPIN(&g.f, count_items(&g.f.b[0], DELETE, "low1") || count_items(&g.f.b[0], DELETE, "low2"));
    if (!count_items(&g.f.b[0], DELETE, "low1"))
        first = "low2", last = "low1";
    gone = await(&g.f, &g.f.b[0], DELETE, first);
    answer(&g.f.b[0], gone, BERTH__OUTCOME__OUTCOME_DONE, NULL);
    CU_ASSERT_FATAL(bh_snap_del_pod(g.f.snap, bh_arena_printf(&g.f.a, "u-%s", first), 6) == 0);
    gone = await(&g.f, &g.f.b[0], DELETE, last);
    settle(&g.f);
    CU_ASSERT_EQUAL(count_items(&g.f.b[0], BIND, "w"), 0); /* the node is kept for the group */
    answer(&g.f.b[0], gone, BERTH__OUTCOME__OUTCOME_DONE, NULL);
    CU_ASSERT_FATAL(bh_snap_del_pod(g.f.snap, bh_arena_printf(&g.f.a, "u-%s", last), 6) == 0);
    SPIN(&g.f, place(&g.f, "a") == BH_Q_BINDING && place(&g.f, "b") == BH_Q_BINDING);
    CU_ASSERT_EQUAL(count_items(&g.f.b[0], BIND, "w"), 0);
    CU_ASSERT_EQUAL(count_items(&g.f.b[0], DELETE, "low1"), 1);
    CU_ASSERT_EQUAL(count_items(&g.f.b[0], DELETE, "low2"), 1);
    teardown_gangs(&g);
}

/* Error | own Error, and | else: the group's; without an object there is no condition */
static void test_error(void)
{
    struct gangs g;

    setup_gangs(&g);
    snap_node(&g.f, "n1", "8");
    bh_snap_set_synced(g.f.snap, true);
    SPIN(&g.f, g.f.known);
    feed_begin(&g.f);
    gang_of(&g.f, 2);
    add_member(&g.f, "a", "1", "");
    add_member(&g.f, "b", "1", "");
    SPIN(&g.f, place(&g.f, "a") == BH_Q_ACTIVE && place(&g.f, "b") == BH_Q_ACTIVE);
    feed_group(&g.f, BERTH__CHANGE_OP__CHANGE_DELETED, NULL);
    feed_batch(&g.f, NULL, true);
    const char *own = "running Permit plugin \"GangScheduling\": failed to get podGroup ns/g: "
                      "podgroup.scheduling.k8s.io \"g\" not found";
    IS(condition(&g, "a")->message, own);
    IS(condition(&g, "b")->message,
       bh_arena_printf(&g.f.a, "failed to schedule other pod from a pod group: %s", own));
    IS(condition(&g, "b")->reason, "SchedulerError");
    CU_ASSERT(place(&g.f, "a") == BH_Q_GATED && place(&g.f, "b") == BH_Q_GATED);
    settle(&g.f);
    CU_ASSERT_EQUAL(count_items(&g.f.b[0], STATUS, "g"), 0);
    teardown_gangs(&g);
}

static void test_two_schedulers(void)
{
    static char second[] = "second";
    struct gangs g;

    setup_gangs(&g);
    snap_node(&g.f, "n1", "8");
    go(&g.f);
    gang_of(&g.f, 2);
    add_member(&g.f, "a", "1", "\"priority\":1,");
    K8s__Pod *b = pod(&g.f, "b", "1", "\"schedulingGroup\":{\"podGroupName\":\"g\"},", "");
    b->spec->schedulername = second;
    feed_pod(&g.f, BERTH__CHANGE_OP__CHANGE_ADDED, b);
    const char *text = "all pods in a single pod group should have the same .spec.schedulerName "
                       "set, got: \"second\" and \"default-scheduler\"";
    IS(condition(&g, "a")->message, text);
    IS(condition(&g, "b")->message, text);
    IS(told(&g)->reason, "SchedulerError"); /* upstream says nothing */
    IS(told(&g)->message, text);
    teardown_gangs(&g);
}

/* A PodGroup that was scheduled once says so for ever; and what is there is not written again. */
static void test_condition_is_final(void)
{
    struct gangs g;

    setup_gangs(&g);
    snap_node(&g.f, "n1", "1");
    go(&g.f);
    feed_gang(&g.f, "\"gang\":{\"minCount\":2}",
              "\"conditions\":[{\"type\":\"PodGroupScheduled\",\"status\":\"True\",\"reason\":"
              "\"Scheduled\",\"message\":\"\",\"observedGeneration\":7}]");
    add_member(&g.f, "a", "1", "");
    add_member(&g.f, "b", "1", "");
    (void)condition(&g, "b");
    settle(&g.f);
    CU_ASSERT_EQUAL(count_items(&g.f.b[0], STATUS, "g"), 0);
    teardown_gangs(&g);
}

static void test_condition_is_not_repeated(void)
{
    struct gangs g;

    setup_gangs(&g);
    snap_node(&g.f, "n1", "1");
    go(&g.f);
    gang_of(&g.f, 2);
    add_member(&g.f, "a", "1", "");
    add_member(&g.f, "b", "1", "");
    (void)condition(&g, "b");
    (void)told(&g);
    SPIN(&g.f, place(&g.f, "a") == BH_Q_ERROR_BACKOFF);
    bh_queue_activate(g.f.d.queue, pod_of(&g.f, "u-a"), bh_sched_now(&g.f.d));
    SPIN(&g.f, pod_of(&g.f, "u-b")->queued->attempts == 2);
    settle(&g.f);
    CU_ASSERT_EQUAL(count_items(&g.f.b[0], STATUS, "g"), 1);
    answer(&g.f.b[0], told(&g), BERTH__OUTCOME__OUTCOME_REJECTED, "not allowed"); /* yet */
    settle(&g.f);
    bh_queue_activate(g.f.d.queue, pod_of(&g.f, "u-a"), bh_sched_now(&g.f.d));
    (void)told(&g);
    CU_ASSERT_EQUAL(count_items(&g.f.b[0], STATUS, "g"), 2);
    teardown_gangs(&g);
}

/* Members in the order of priority; one that was deleted takes no part. */
static void test_deleted_member(void)
{
    struct gangs g;

    setup_gangs(&g);
    snap_node(&g.f, "n1", "2");
    go(&g.f);
    gang_of(&g.f, 3);
    add_member(&g.f, "a", "1", "");
    add_member(&g.f, "b", "1", "");
    settle(&g.f);
    CU_ASSERT(place(&g.f, "a") == BH_Q_GATED && place(&g.f, "b") == BH_Q_GATED);
    feed_pod(&g.f, BERTH__CHANGE_OP__CHANGE_ADDED,
             pod(&g.f, "c", "1", "\"schedulingGroup\":{\"podGroupName\":\"g\"},",
                 ",\"deletionTimestamp\":\"2030-01-01T00:00:00Z\""));
    IS(condition(&g, "a")->message, "pod group is unschedulable, " WAITS);
    CU_ASSERT(place(&g.f, "c") == BH_Q_NONE);
    CU_ASSERT(place(&g.f, "a") == BH_Q_GATED && place(&g.f, "b") == BH_Q_GATED);
    teardown_gangs(&g);
}

BH_TESTS(
    "scheduler/daemon/group", {"success: all go", test_all_go}, {"a large group", test_large_group},
    {"too few: nobody goes", test_too_few}, {"success: one stays behind", test_one_stays_behind},
    {"waiting: nominated, victims go", test_waiting_for_victims},
    {"not waiting: victims are spared", test_victims_are_spared},
    {"victims of the group as a whole", test_victims_of_the_group},
    {"victims of the group: one that comes meanwhile", test_one_that_comes_meanwhile},
    {"a group goes when its last victim is gone", test_group_goes_when_its_last_victim_is_gone},
    {"an error: everybody hears of it", test_error},
    {"two schedulers' pods in a group", test_two_schedulers},
    {"the condition never goes back", test_condition_is_final},
    {"the condition is written once, or until it is not refused", test_condition_is_not_repeated},
    {"deleted members take no part", test_deleted_member})
