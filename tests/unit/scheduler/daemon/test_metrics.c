/* SPDX-License-Identifier: Apache-2.0
 *
 * The scheduler's metrics: what exists from the start, what a scheduled and a rejected pod leave
 * behind, upstream's names and labels.
 */
#include <unistd.h>

#include "scheduler/daemon/metrics_int.h"
#include "scheduler/native/native_int.h"
#include "tests/unit/scheduler/daemon/fixture.h"

static char *scrape(struct fixture *f)
{
    struct bh_buf out = {0};

    bh_metrics_render(f->d.metrics, &out);
    return bh_buf_take(&out);
}

/* The value of a series, -1 when it does not exist. */
static double value(struct fixture *f, const char *series)
{
    char *text = scrape(f), *line = text;
    size_t n = strlen(series);
    double v = -1;

    for (; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, series, n) == 0 && line[n] == ' ')
            v = strtod(line + n, NULL);
    }
    free(text);
    return v;
}

#define P "profile=\"default-scheduler\""
#define VALUE(series, want)                                                                        \
    do {                                                                                           \
        double v_ = value(&f, series);                                                             \
        if (v_ != (want))                                                                          \
            fprintf(stderr, "%s is %g\n", series, v_);                                             \
        CU_ASSERT(v_ == (want));                                                                   \
    } while (0)

static void test_from_the_start(void)
{
    struct fixture f;

    setup(&f);
    VALUE("scheduler_pending_pods{queue=\"active\"}", 0);
    VALUE("scheduler_pending_pods{queue=\"backoff\"}", 0);
    VALUE("scheduler_pending_pods{queue=\"unschedulable\"}", 0);
    VALUE("scheduler_pending_pods{queue=\"gated\"}", 0);
    VALUE("scheduler_plugin_evaluation_total{extension_point=\"Filter\",plugin=\"NodeName\"," P "}",
          0);
    VALUE("scheduler_plugin_evaluation_total{extension_point=\"Filter\",plugin=\"ImageLocality\"," P
          "}",
          -1); /* not enabled there */
    VALUE("scheduler_schedule_attempts_total{" P ",result=\"scheduled\"}", -1);
    VALUE("scheduler_preemption_attempts_total", 0);
    VALUE("kubernetes_feature_enabled{name=\"SchedulerQueueingHints\",stage=\"\"}", 1);
    VALUE(
        "version_info{binary=\"1.36.2\",component=\"kube\",emulation=\"1.36\",min_compat=\"1.35\"}",
        1);
    teardown(&f);
}

static void bind_one(struct fixture *f)
{
    struct item *i = await(f, &f->b[0], BERTH__WORK_KIND__WORK_BIND, "fits");

    CU_ASSERT_FATAL(i != NULL);
    answer(&f->b[0], i, BERTH__OUTCOME__OUTCOME_DONE, NULL);
    settle(f);
}

static void test_scheduled_and_rejected(void)
{
    struct fixture f;

    setup(&f);
    snap_node(&f, "n1", "4");
    go(&f);
    add_pod(&f, "fits", "1");
    bind_one(&f);
    add_pod(&f, "large", "64");
    settle(&f);
    VALUE("scheduler_schedule_attempts_total{" P ",result=\"scheduled\"}", 1);
    VALUE("scheduler_schedule_attempts_total{" P ",result=\"unschedulable\"}", 1);
    VALUE("scheduler_scheduling_attempt_duration_seconds_count{" P ",result=\"scheduled\"}", 1);
    VALUE("scheduler_pod_scheduling_attempts_count", 1);
    VALUE("scheduler_pod_scheduling_sli_duration_seconds_count{attempts=\"1\"}", 1);
    VALUE("scheduler_unschedulable_pods{plugin=\"NodeResourcesFit\"," P "}", 1);
    VALUE("scheduler_preemption_attempts_total", 1);
    VALUE("scheduler_inflight_events{event=\"PodPopped\"}", -1);
    for (unsigned i = 0; i < 2; i++) { /* both pods passed these */
        static const char *const points[] = {"PreFilter", "Filter"};
        char *s = bh_asprintf("scheduler_framework_extension_point_duration_seconds_count{"
                              "extension_point=\"%s\"," P ",status=\"Success\"}",
                              points[i]);
        VALUE(s, 2);
        free(s);
    }
    VALUE("scheduler_framework_extension_point_duration_seconds_count{extension_point=\"Bind\"," P
          ",status=\"Success\"}",
          1);
    VALUE("scheduler_queue_incoming_pods_total{event=\"UnschedulablePodAdd\",queue=\"active\"}", 2);
    VALUE("scheduler_event_handling_duration_seconds_count{event=\"UnschedulablePodAdd\"}", 2);
    VALUE("berth_queue_limit{queue=\"scheduler_binds\"}", BH_LEDGER_MAX_BINDS);
    VALUE("berth_scheduler_ledger{what=\"queued\"}", 0);
    /* an event that does not help it, and the time that it waits at most */
    snap_node(&f, "n2", "2");
    settle(&f);
    VALUE("scheduler_queueing_hint_execution_duration_seconds_count{event=\"NodeAdd\",hint="
          "\"QueueSkip\",plugin=\"NodeResourcesFit\"}",
          1);
    VALUE("scheduler_event_handling_duration_seconds_count{event=\"NodeAdd\"}", 1);
    (void)bh_queue_tick(f.d.queue, bh_sched_now(&f.d) + INT64_C(400000000000));
    VALUE("scheduler_queue_incoming_pods_total{event=\"UnschedulableTimeout\",queue=\"active\"}",
          1);
    settle(&f);
    VALUE("scheduler_schedule_attempts_total{" P ",result=\"unschedulable\"}", 2);
    VALUE("scheduler_pod_scheduled_after_flush_total", 0);
    VALUE("scheduler_unschedulable_pods{plugin=\"NodeResourcesFit\"," P "}", 1);
    /* the rejected pod goes: nobody is held back any more */
    end_pod(&f, "large", BERTH__CHANGE_OP__CHANGE_DELETED);
    settle(&f);
    VALUE("scheduler_unschedulable_pods{plugin=\"NodeResourcesFit\"," P "}", 0);
    VALUE("scheduler_event_handling_duration_seconds_count{event=\"UnschedulablePodDelete\"}", 1);
    teardown(&f);
}

/* An extender that cannot be reached, and may not be left out: no verdict on the pod. */
static void test_an_attempt_that_failed(void)
{
    struct fixture f;

    setup_with(&f, "extenders:\n- {urlPrefix: \"http://127.0.0.1:1/x\", nodeCacheCapable: true, "
                   "filterVerb: filter}\n");
    go(&f);
    add_pod(&f, "p", "1");
    SPIN(&f, value(&f, "scheduler_schedule_attempts_total{" P ",result=\"error\"}") >= 1);
    CU_ASSERT_STRING_EQUAL(pod_of(&f, "u-p")->queued->last_reason, "SchedulerError");
    VALUE("scheduler_schedule_attempts_total{" P ",result=\"unschedulable\"}", -1);
    VALUE("scheduler_schedule_attempts_total{" P ",result=\"scheduled\"}", -1);
    teardown(&f);
}

static void feed_named(struct fixture *f, enum bh_kind kind, const char *json)
{
    Berth__ObjectChange c = BERTH__OBJECT_CHANGE__INIT;
    struct bh_buf bytes = {0};
    char name[] = "x";

    bh_pb_pack(&bytes, decode(f, bh_kinds[kind].desc, json));
    c.has_op = c.has_kind = c.has_log_pos = c.has_object = true;
    c.op = BERTH__CHANGE_OP__CHANGE_ADDED;
    c.kind = kind;
    c.name = name;
    c.log_pos = bh_snap_head(f->snap);
    c.object = (ProtobufCBinaryData){bytes.n, (uint8_t *)bytes.p};
    feed_batch(f, &c, false);
    bh_buf_fini(&bytes);
}

static void test_events_of_each_kind(void)
{
    struct fixture f;

    setup(&f);
    go(&f);
    feed_named(&f, BH_KIND_STORAGECLASS, "{\"metadata\":{\"name\":\"x\"},\"provisioner\":\"p\"}");
    feed_named(&f, BH_KIND_CSINODE, "{\"metadata\":{\"name\":\"x\"},\"spec\":{}}");
    settle(&f);
    VALUE(
        "scheduler_event_handling_duration_seconds_count{event=\"storage.k8s.io/StorageClassAdd\"}",
        1);
    VALUE("scheduler_event_handling_duration_seconds_count{event=\"storage.k8s.io/CSINodeAdd\"}",
          1);
    teardown(&f);
}

/* What was only counted since the scrape before, no more. */
static void test_quiet_cycles_count_once(void)
{
    static const struct bh_profile_stats first = {.quiet_reserve = 10,
                                                  .quiet_permit = 9,
                                                  .quiet_fast = 8,
                                                  .quiet_fast_ns = {8000, 16000, 24000}},
                                         second = {.quiet_reserve = 11,
                                                   .quiet_permit = 11,
                                                   .quiet_fast = 11,
                                                   .quiet_fast_ns = {9000, 18000, 27000}};
    struct fixture f;

    setup(&f);
    bh_sched_count_quiet(f.d.m, 0, &first);
    bh_sched_count_quiet(f.d.m, 0, &second);
    bh_sched_count_quiet(f.d.m, 0, &second);
    f.d.m->profiles[0].told = (struct bh_profile_stats){.name = NULL}; /* the engine's, again */
#define POINT(point, what)                                                                         \
    "scheduler_framework_extension_point_duration_seconds_" what "{extension_point=\"" point       \
    "\"," P ",status=\"Success\"}"
    VALUE(POINT("Reserve", "count"), 11);
    VALUE(POINT("Permit", "count"), 11);
    VALUE(POINT("PreFilter", "count"), 11);
    VALUE(POINT("Score", "count"), 11);
    CU_ASSERT_DOUBLE_EQUAL(value(&f, POINT("PreFilter", "sum")), 9e-6, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(value(&f, POINT("Filter", "sum")), 18e-6, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(value(&f, POINT("Score", "sum")), 27e-6, 1e-9);
    teardown(&f);
}

/* ---- what is kept of decisions ----------------------------------------------------------------- */

static void test_what_is_recorded_is_counted(void)
{
    char path[160];
    struct fixture f;

    setup(&f);
    CU_ASSERT_EQUAL(value(&f, "berth_decisions_recorded_total"), -1); /* nothing is kept */
    scheduler_stop(&f);
    snprintf(path, sizeof(path), "%s/decisions.db", f.dir);
    f.record = (struct bh_recorder_options){.mode = BH_RECORD_FULL, .path = path};
    scheduler_start(&f);
    snap_node(&f, "n1", "4");
    go(&f);
    add_pod(&f, "fits", "1");
    bind_one(&f);
    add_pod(&f, "large", "64");
    SPIN(&f, value(&f, "berth_decisions_attempts") == 2); /* they are in the file */
    VALUE("berth_decisions_recorded_total", 2);
    VALUE("berth_decisions_full_total", 2);
    VALUE("berth_decisions_dropped_total", 0);
    CU_ASSERT(value(&f, "berth_decisions_bytes") > 0);
    teardown(&f);
}

/* ---- plugins out of files ---------------------------------------------------------------------- */

/* One that measures, as if its code ran in a process of its own. For the life of the process, as all. */
static struct bh_native_plugin *loaded(struct fixture *f, const struct bh_native_file *file)
{
    static const double bounds[] = {1, 10};
    const struct berth_plugin p = {.size = sizeof p, .name = BERTH_STR("Apart")};
    const struct berth_host_metrics *t = &bh_native_metrics_table;
    struct bh_native_plugin *np = NULL;
    struct bh_err err = {0};

    CU_ASSERT_FATAL(bh_native_guard(f->dir, "10s", &err) == 0);
    CU_ASSERT_FATAL(bh_native_adopt(&p, &np, &err) == 0);
    np->process = (struct bh_px *)(void *)np; /* only whether it has one is asked */
    bh_native_guarded(file, false, np);
    struct bh_native in = {.of = np, .hook = BH_HOOK_CREATE};
    struct berth_home *home = (struct berth_home *)(void *)&in;
    bh_native_inside = &in;
    CU_ASSERT(t->define(home, BERTH_COUNTER, BERTH_STR("seen_total"), BERTH_STR("Pods"), NULL, 0) ==
              1);
    CU_ASSERT(t->define(home, BERTH_GAUGE, BERTH_STR("load"), BERTH_STR("Now"), NULL, 0) == 2);
    CU_ASSERT(t->define(home, BERTH_HISTOGRAM, BERTH_STR("took"), BERTH_STR("Time"), bounds, 2) ==
              3);
    bh_native_inside = NULL;
    t->add(home, 1, 3);
    t->set(home, 2, -0.5);
    t->observe(home, 3, 0.5);
    t->observe(home, 3, 2);
    t->observe(home, 3, 4);
    t->observe(home, 3, 100);
    return np;
}

/* It is put aside while the scheduler goes on: metrics and an event about this host say it. */
static void test_plugins_out_of_files(void)
{
    static const struct bh_native_file file = {
        .file = "/a.so", .version = "1", .license = "MIT", .major = 1, .sha256 = "ab"};
    char host[256] = "";
    struct fixture f;

    setup(&f);
    scheduler_stop(&f);
    struct bh_native_plugin *np = loaded(&f, &file);
    np->calls = 7;
    np->starts = 2;
    bh_native_measured(np, bh_wall_ns() - INT64_C(90000000000), 12);
    scheduler_start(&f);
    snap_node(&f, "n1", "4");
    go(&f);
#define STATE(state) "berth_scheduler_plugin_state{plugin=\"Apart\",state=\"" state "\"}"
    VALUE(STATE("Active"), 1);
    VALUE(STATE("PutAside"), -1);
    VALUE("berth_scheduler_plugin_process_calls_total{plugin=\"Apart\"}", 7);
    VALUE("berth_scheduler_plugin_process_starts_total{plugin=\"Apart\"}", 2);
    VALUE("berth_scheduler_plugin_measured_nodes{plugin=\"Apart\"}", 12);
    CU_ASSERT(value(&f, "berth_scheduler_plugin_measured_age_seconds{plugin=\"Apart\"}") >= 90);
    VALUE("berth_plugin_Apart_seen_total", 3);
    VALUE("berth_plugin_Apart_load", -0.5);
    VALUE("berth_plugin_Apart_took_bucket{le=\"1\"}", 1);
    VALUE("berth_plugin_Apart_took_bucket{le=\"10\"}", 3);
    VALUE("berth_plugin_Apart_took_bucket{le=\"+Inf\"}", 4); /* once, however often it is asked */
    VALUE("berth_plugin_Apart_took_sum", 106.5);

    for (unsigned i = 0; i < 3; i++)
        bh_native_crashed(np, &file, BH_HOOK_FILTER);
    CU_ASSERT_FATAL(gethostname(host, sizeof host - 1) == 0);
    const struct item *e = await(&f, &f.b[0], BERTH__WORK_KIND__WORK_EVENT, host);
    CU_ASSERT_STRING_EQUAL(e->event, "PluginPutAside");
    CU_ASSERT_STRING_EQUAL(e->note,
                           "Plugin \"Apart\": it is put aside: it ended its process three times "
                           "within ten minutes. Pods of profiles that use it are not scheduled");
    CU_ASSERT_STRING_EQUAL(e->node, host);
    VALUE(STATE("Active"), 0);
    VALUE(STATE("PutAside"), 1);
    np->process = NULL;
    teardown(&f);
}

BH_TESTS("scheduler/daemon/metrics", {"series that exist from the start", test_from_the_start},
         {"a scheduled and a rejected pod", test_scheduled_and_rejected},
         {"an attempt that failed", test_an_attempt_that_failed},
         {"events of each kind", test_events_of_each_kind},
         {"what is recorded is counted", test_what_is_recorded_is_counted},
         {"quiet cycles count once", test_quiet_cycles_count_once},
         {"plugins out of files", test_plugins_out_of_files})
