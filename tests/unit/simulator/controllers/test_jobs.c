/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/controllers/test_jobs.c - jobs, cron jobs and autoscalers under a manual
 * clock
 */
#include "tests/unit/simulator/controllers/controllers_test.h"

#include "common/flags/feature_gates.h"
#include "common/k8s/quantity.h"
#include "simulator/admission/cron.h"

#define JOB_POD(annotations)                                                                       \
    "  template: {metadata: {annotations: {" annotations "}}, spec: {restartPolicy: Never, "       \
    "containers: [{name: c, image: i}]}}\n"
#define RUNS(t)  "sim.berth.dev/run-time: " t
#define FAILS(t) RUNS(t) ", sim.berth.dev/exit-code: \"3\""

static void start(struct world *w)
{
    world_manual(w, (struct bh_sim_options){0});
    make(&w->f, "Node", "", NODE("n1"));
    pass(w, 0);
}

static const char *job_condition(struct world *w, const char *name, const char *type,
                                 const char *key)
{
    const struct bh_sim_obj *o = get(&w->f, "jobs", "default", name);
    const struct bh_json *c = o ? bh_tree_condition(bh_sim_obj_tree(&w->f.a, o), type) : NULL;
    const char *v = bh_tree_str(c, key);

    return v ? v : "";
}

/* ---- run time -------------------------------------------------------------------------------- */

static void test_run_time(void)
{
    struct world w;

    start(&w);
    make(&w.f, "Job", "default",
         "metadata: {name: j}\nspec:\n  completions: 4\n  parallelism: 2\n" JOB_POD(RUNS("1m30s")));
    pass(&w, 89);
    CU_ASSERT_EQUAL(count_pods(&w, "Running"), 2);
    CU_ASSERT_EQUAL(count_pods(&w, "Succeeded"), 0);
    pass(&w, 1);
    CU_ASSERT_EQUAL(count_pods(&w, "Running"), 2);
    CU_ASSERT_EQUAL(count_pods(&w, "Succeeded"), 2);
    pass(&w, 90);
    CU_ASSERT_EQUAL(count_pods(&w, "Succeeded"), 4);
    CU_ASSERT_STRING_EQUAL(job_condition(&w, "j", "Complete", "status"), "True");
    CU_ASSERT_EQUAL(bh_sim_next_ns(w.f.s), INT64_MAX); /* nothing is left to happen */
    world_fini(&w);
}

static void test_run_time_of_other_pods(void)
{
    struct world w;

    start(&w);
    make(&w.f, "Pod", "default",
         "metadata: {name: a, annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 5s}}\n"
         "spec: {containers: [{name: c, image: i}]}");
    make(&w.f, "Pod", "default",
         "metadata: {name: b, annotations: {" FAILS(
             "7s") "}}\n"
                   "spec: {containers: [{name: c, image: i}]}");
    make(&w.f, "Pod", "default",
         "metadata: {name: bad, annotations: {sim.berth.dev/run-time: soon}}\n"
         "spec: {containers: [{name: c, image: i}]}");
    pass(&w, 4.5);
    CU_ASSERT_EQUAL(count_pods(&w, "Running"), 3);
    pass(&w, 0.5);
    CU_ASSERT_STRING_EQUAL(get(&w.f, "pods", "default", "a")->phase, "Succeeded");
    pass(&w, 2);
    CU_ASSERT_STRING_EQUAL(get(&w.f, "pods", "default", "b")->phase, "Failed");
    CU_ASSERT_PTR_NOT_NULL(strstr(get(&w.f, "pods", "default", "b")->json, "\"exitCode\":3"));
    pass(&w, 1000);
    CU_ASSERT_EQUAL(count_pods(&w, "Running"), 1);
    world_fini(&w);
}

static void test_back_off(void)
{
    struct world w;

    start(&w);
    make(&w.f, "Job", "default",
         "metadata: {name: j}\nspec:\n  backoffLimit: 3\n" JOB_POD(FAILS("1s")));
    pass(&w, 1);
    CU_ASSERT_EQUAL(count_pods(&w, "Failed"), 1);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 1);
    pass(&w, 10); /* the second began, and ends with this second */
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 2);
    pass(&w, 1 + 20);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 3);
    pass(&w, 1 + 40 + 1);
    CU_ASSERT_EQUAL(count_pods(&w, "Failed"), 4);
    CU_ASSERT_STRING_EQUAL(job_condition(&w, "j", "Failed", "reason"), "BackoffLimitExceeded");
    pass(&w, 10000);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 4);
    world_fini(&w);
}

static void test_deadline(void)
{
    struct world w;

    start(&w);
    make(&w.f, "Job", "default",
         "metadata: {name: j}\nspec:\n  activeDeadlineSeconds: 30\n  ttlSecondsAfterFinished: 60\n"
         "  parallelism: 3\n  completions: 9\n" JOB_POD(RUNS("20s")));
    pass(&w, 29);
    CU_ASSERT_EQUAL(count_pods(&w, "Running"), 3);
    pass(&w, 1);
    CU_ASSERT_EQUAL(count_pods(&w, "Running"), 0);
    CU_ASSERT_STRING_EQUAL(job_condition(&w, "j", "Failed", "reason"), "DeadlineExceeded");
    CU_ASSERT_STRING_EQUAL(job_condition(&w, "j", "Failed", "message"),
                           "Job was active longer than specified deadline");
    pass(&w, 59);
    CU_ASSERT_PTR_NOT_NULL(get(&w.f, "jobs", "default", "j"));
    pass(&w, 1);
    CU_ASSERT_PTR_NULL(get(&w.f, "jobs", "default", "j"));
    pass(&w, 0);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 0);
    world_fini(&w);
}

static void test_suspend(void)
{
    struct world w;

    start(&w);
    make(&w.f, "Job", "default",
         "metadata: {name: j}\nspec:\n  suspend: true\n  activeDeadlineSeconds: 30\n" JOB_POD(
             RUNS("20s")));
    pass(&w, 100);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 0);
    CU_ASSERT_EQUAL(change(&w.f, "Job", "default", "j", BH_SIM_MAIN, "spec.suspend", "false"), 0);
    pass(&w, 10);
    CU_ASSERT_EQUAL(count_pods(&w, "Running"), 1);
    CU_ASSERT_EQUAL(change(&w.f, "Job", "default", "j", BH_SIM_MAIN, "spec.suspend", "true"), 0);
    pass(&w, 100); /* no deadline while it is suspended */
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 0);
    CU_ASSERT_EQUAL(change(&w.f, "Job", "default", "j", BH_SIM_MAIN, "spec.suspend", "false"), 0);
    pass(&w, 20);
    CU_ASSERT_STRING_EQUAL(job_condition(&w, "j", "Complete", "status"), "True");
    world_fini(&w);
}

/* ---- policies -------------------------------------------------------------------------------- */

#define EXITS(code)                                                                                \
    "  template: {spec: {restartPolicy: Never, containers: [{name: c, image: i, command: [sh, "    \
    "-c, exit " code "]}]}}\n"
#define ON_EXIT(action)                                                                            \
    "  podFailurePolicy: {rules: [{action: " action ", onExitCodes: {containerName: c, operator: " \
    "In, values: [42]}}]}\n"

static const char *text_at(struct world *w, const char *plural, const char *name, const char *path)
{
    const struct bh_sim_obj *o = get(&w->f, plural, "default", name);
    const char *v = o ? bh_tree_str(bh_sim_obj_tree(&w->f.a, o), path) : NULL;

    return v ? v : "";
}

static void test_exit_code_fails_the_job(void)
{
    struct world w;

    start(&w);
    make(&w.f, "Job", "default",
         "metadata: {name: j}\nspec:\n  backoffLimit: 6\n" ON_EXIT("FailJob") EXITS("42"));
    make(&w.f, "Job", "default",
         "metadata: {name: other}\nspec:\n  backoffLimit: 1\n" ON_EXIT("FailJob") EXITS("41"));
    pass(&w, 1);
    CU_ASSERT_STRING_EQUAL(job_condition(&w, "j", "FailureTarget", "reason"), "PodFailurePolicy");
    CU_ASSERT_STRING_EQUAL(job_condition(&w, "j", "Failed", "reason"), "PodFailurePolicy");
    CU_ASSERT_PTR_NOT_NULL(strstr(job_condition(&w, "j", "Failed", "message"),
                                  "failed with exit code 42 matching FailJob rule at index 0"));
    CU_ASSERT_EQUAL(num(&w, "jobs", "j", "status.failed"), 1);
    CU_ASSERT_STRING_EQUAL(job_condition(&w, "other", "Failed", "status"), "");
    pass(&w, 20);
    CU_ASSERT_STRING_EQUAL(job_condition(&w, "other", "Failed", "reason"), "BackoffLimitExceeded");
    CU_ASSERT_EQUAL(num(&w, "jobs", "other", "status.failed"), 2);
    world_fini(&w);
}

static void test_ignored_failures(void)
{
    struct world w;

    start(&w);
    make(&w.f, "Job", "default",
         "metadata: {name: j}\nspec:\n  backoffLimit: 0\n" ON_EXIT("Ignore") EXITS("42"));
    pass(&w, 10000);
    CU_ASSERT(count_pods(&w, "Failed") > 5);
    CU_ASSERT_EQUAL(num(&w, "jobs", "j", "status.failed"), 0);
    CU_ASSERT_STRING_EQUAL(job_condition(&w, "j", "Failed", "status"), "");
    world_fini(&w);
}

/* A pod that is gone counts once: as failed, or not at all where its eviction is ignored. */
static void evict(struct world *w)
{
    struct bh_sim_objs l;

    bh_sim_list(w->f.s, type_of("pods"), "default", &l);
    for (size_t i = 0; i < l.n; i++) {
        CU_ASSERT_EQUAL(change(&w->f, "Pod", "default", l.v[i]->name, BH_SIM_STATUS,
                               "status.conditions", "[{type: DisruptionTarget, status: \"True\"}]"),
                        0);
        CU_ASSERT_EQUAL(
            bh_sim_delete(w->f.s, type_of("pods"), "default", l.v[i]->name, NULL, &w->f.e), 0);
    }
    bh_sim_objs_fini(&l);
}

static void test_deleted_pods_count(void)
{
    struct world w;

    start(&w);
    make(&w.f, "Job", "default",
         "metadata: {name: j}\nspec:\n  backoffLimit: 1\n" JOB_POD(RUNS("100s")));
    pass(&w, 1);
    evict(&w);
    pass(&w, 1);
    CU_ASSERT_EQUAL(num(&w, "jobs", "j", "status.failed"), 1);
    CU_ASSERT_EQUAL(count_pods(&w, "Running"), 1);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 1);
    evict(&w);
    pass(&w, 1);
    CU_ASSERT_STRING_EQUAL(job_condition(&w, "j", "Failed", "reason"), "BackoffLimitExceeded");
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 0);
    make(&w.f, "Job", "default",
         "metadata: {name: k}\nspec:\n  backoffLimit: 0\n  podFailurePolicy: {rules: [{action: "
         "Ignore, onPodConditions: [{type: DisruptionTarget, status: \"True\"}]}]}\n" JOB_POD(
             RUNS("100s")));
    pass(&w, 1);
    evict(&w);
    pass(&w, 1 + 10 + 100);
    CU_ASSERT_STRING_EQUAL(job_condition(&w, "k", "Complete", "status"), "True");
    CU_ASSERT_EQUAL(num(&w, "jobs", "k", "status.failed"), 0);
    world_fini(&w);
}

/* podReplacementPolicy Failed: not before the pod has ended, here after its hook. */
static void test_replacement(void)
{
    struct world w;
    struct bh_sim_objs l;

    start(&w);
    make(&w.f, "Job", "default",
         "metadata: {name: j}\nspec:\n  backoffLimit: 1\n  podReplacementPolicy: Failed\n"
         "  template: {spec: {restartPolicy: Never, terminationGracePeriodSeconds: 30, containers: "
         "[{name: c, image: i, command: [sleep, infinity], lifecycle: {preStop: {sleep: {seconds: "
         "5}}}}]}}\n");
    pass(&w, 1);
    CU_ASSERT_EQUAL(num(&w, "jobs", "j", "status.active"), 1);
    bh_sim_list(w.f.s, type_of("pods"), "default", &l);
    CU_ASSERT_EQUAL(bh_sim_delete(w.f.s, type_of("pods"), "default", l.v[0]->name, NULL, &w.f.e),
                    0);
    bh_sim_objs_fini(&l);
    pass(&w, 4);
    CU_ASSERT_EQUAL(num(&w, "jobs", "j", "status.active"), 0);
    CU_ASSERT_EQUAL(num(&w, "jobs", "j", "status.terminating"), 1);
    CU_ASSERT_EQUAL(num(&w, "jobs", "j", "status.failed"), 0);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 1);
    pass(&w, 12);
    CU_ASSERT_EQUAL(num(&w, "jobs", "j", "status.active"), 1);
    CU_ASSERT_EQUAL(num(&w, "jobs", "j", "status.terminating"), 0);
    CU_ASSERT_EQUAL(num(&w, "jobs", "j", "status.failed"), 1);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 1);
    world_fini(&w);
}

#define INDEXES(n, more)                                                                           \
    "metadata: {name: j}\nspec:\n  completionMode: Indexed\n  parallelism: " n "\n"                \
    "  completions: " n "\n" more

static void test_backoff_per_index(void)
{
    struct world w;
    struct bh_sim_objs l;
    size_t n[3] = {0};

    start(&w);
    make(&w.f, "Job", "default", INDEXES("2", "  backoffLimitPerIndex: 2\n") EXITS("1"));
    CU_ASSERT_EQUAL(num(&w, "jobs", "j", "spec.backoffLimit"), INT32_MAX);
    pass(&w, 9);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 2);
    pass(&w, 12);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 4);
    CU_ASSERT_STRING_EQUAL(job_condition(&w, "j", "Failed", "status"), "");
    pass(&w, 25);
    CU_ASSERT_STRING_EQUAL(job_condition(&w, "j", "Failed", "reason"), "FailedIndexes");
    CU_ASSERT_STRING_EQUAL(text_at(&w, "jobs", "j", "status.failedIndexes"), "0,1");
    CU_ASSERT_EQUAL(num(&w, "jobs", "j", "status.failed"), 6);
    bh_sim_list(w.f.s, type_of("pods"), "default", &l);
    for (size_t i = 0; i < l.n; i++) {
        const struct bh_json *pod = bh_sim_obj_tree(&w.f.a, l.v[i]);
        const char *v = bh_tree_annotation(pod, "batch.kubernetes.io/job-index-failure-count");
        CU_ASSERT_PTR_NOT_NULL_FATAL(v);
        n[*v - '0']++;
        CU_ASSERT_EQUAL(bh_tree_len(bh_tree_arr(pod, "metadata.finalizers")), 0);
        CU_ASSERT_PTR_NOT_NULL(strstr(l.v[i]->json, "JOB_COMPLETION_INDEX"));
    }
    bh_sim_objs_fini(&l);
    CU_ASSERT(n[0] == 2 && n[1] == 2 && n[2] == 2);
    world_fini(&w);
}

static void test_failed_indexes_end_a_job(void)
{
    struct world w;

    start(&w);
    make(&w.f, "Job", "default",
         "metadata: {name: j}\nspec:\n  completionMode: Indexed\n  completions: 4\n"
         "  backoffLimitPerIndex: 0\n  maxFailedIndexes: 0\n" EXITS("1"));
    pass(&w, 100);
    CU_ASSERT_STRING_EQUAL(job_condition(&w, "j", "Failed", "reason"), "MaxFailedIndexesExceeded");
    CU_ASSERT_STRING_EQUAL(text_at(&w, "jobs", "j", "status.failedIndexes"), "0");
    CU_ASSERT_EQUAL(num(&w, "jobs", "j", "status.failed"), 1);
    world_fini(&w);
    start(&w);
    make(&w.f, "Job", "default",
         INDEXES("2", "  backoffLimitPerIndex: 5\n") ON_EXIT("FailIndex") EXITS("42"));
    pass(&w, 1);
    CU_ASSERT_STRING_EQUAL(job_condition(&w, "j", "Failed", "reason"), "FailedIndexes");
    CU_ASSERT_STRING_EQUAL(text_at(&w, "jobs", "j", "status.failedIndexes"), "0,1");
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 2);
    world_fini(&w);
}

static void test_success_policy(void)
{
    struct world w;

    start(&w);
    make(&w.f, "Job", "default",
         "metadata: {name: j}\nspec:\n  completionMode: Indexed\n  parallelism: 2\n  completions: "
         "5\n  successPolicy: {rules: [{succeededIndexes: \"0,4\"}, {succeededIndexes: 1-3, "
         "succeededCount: 1}]}\n" JOB_POD(RUNS("10s")));
    pass(&w, 10);
    CU_ASSERT_STRING_EQUAL(job_condition(&w, "j", "SuccessCriteriaMet", "reason"), "SuccessPolicy");
    CU_ASSERT_STRING_EQUAL(job_condition(&w, "j", "Complete", "message"),
                           "Matched rules at index 1");
    CU_ASSERT_STRING_EQUAL(text_at(&w, "jobs", "j", "status.completedIndexes"), "0,1");
    CU_ASSERT_EQUAL(num(&w, "jobs", "j", "status.active"), 0);
    CU_ASSERT_EQUAL(num(&w, "jobs", "j", "status.failed"), 0);
    pass(&w, 100);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 2); /* those that ran, and none after them */
    world_fini(&w);
}

static void test_another_controller(void)
{
    struct world w;

    start(&w);
    make(&w.f, "Job", "default",
         "metadata: {name: j}\nspec:\n  managedBy: example.com/mine\n" JOB_POD(RUNS("1s")));
    pass(&w, 10);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 0);
    CU_ASSERT_STRING_EQUAL(text_at(&w, "jobs", "j", "status.startTime"), "");
    world_fini(&w);
}

/* Its pods do not stay behind with a finalizer that nobody takes off. */
static void test_pods_of_a_deleted_job_go(void)
{
    struct world w;
    const struct bh_sim_delete_options orphan = {.grace_s = -1, .propagation = "Orphan"};

    start(&w);
    make(&w.f, "Job", "default", "metadata: {name: j}\nspec:\n" JOB_POD(RUNS("100s")));
    pass(&w, 1);
    CU_ASSERT_EQUAL(bh_sim_delete(w.f.s, type_of("jobs"), "default", "j", &orphan, &w.f.e), 0);
    pass(&w, 1);
    CU_ASSERT_PTR_NULL(get(&w.f, "jobs", "default", "j"));
    CU_ASSERT_EQUAL(count_pods(&w, "Running"), 1);
    evict(&w);
    pass(&w, 1);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 0);
    make(&w.f, "Job", "default", "metadata: {name: k}\nspec:\n" JOB_POD(RUNS("100s")));
    pass(&w, 1);
    CU_ASSERT_EQUAL(bh_sim_delete(w.f.s, type_of("jobs"), "default", "k", NULL, &w.f.e), 0);
    pass(&w, 1);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 0);
    world_fini(&w);
}

static void test_policies_that_cannot_be(void)
{
    static const char *const bad[][2] = {
        {"  backoffLimitPerIndex: 1\n", "requires indexed completion mode"},
        {"  maxFailedIndexes: 1\n  completionMode: Indexed\n  completions: 2\n",
         "spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified"},
        {"  successPolicy: {rules: [{}]}\n  completionMode: Indexed\n  completions: 2\n",
         "at least one of succeededCount or succeededIndexes must be specified"},
        {"  completionMode: Indexed\n  completions: 10000001\n",
         "spec.completions: Invalid value: 10000001: must be less than or equal to 10000000"},
        {"  podFailurePolicy: {rules: [{action: Ignore}]}\n",
         "specifying one of OnExitCodes and OnPodConditions is required"},
        {"  podReplacementPolicy: TerminatingOrFailed\n" ON_EXIT("Ignore"),
         "spec.podReplacementPolicy: Unsupported value"},
        {ON_EXIT("FailIndex"), "requires the backoffLimitPerIndex to be set"}};
    struct world w;
    char text[1000];

    start(&w);
    for (size_t i = 0; i < BH_ARRAY_LEN(bad); i++) {
        snprintf(text, sizeof(text), "metadata: {name: j}\nspec:\n%s" EXITS("1"), bad[i][0]);
        CU_ASSERT_PTR_NULL(make(&w.f, "Job", "default", text));
        if (!strstr(w.f.e.message, bad[i][1]))
            fprintf(stderr, "%s: %s, want %s\n", bad[i][0], w.f.e.message, bad[i][1]);
        CU_ASSERT_PTR_NOT_NULL(strstr(w.f.e.message, bad[i][1]));
    }
    world_fini(&w);
}

/* ---- schedules ------------------------------------------------------------------------------- */

static void check_next_in(const char *place, const char *schedule, const char *after,
                          const char *want)
{
    struct bh_cron c;
    struct bh_zone zone;
    struct bh_err err = {{0}};
    char got[32];

    CU_ASSERT_EQUAL_FATAL(bh_zone_load(&zone, place, &err), 0);

    CU_ASSERT_EQUAL(bh_cron_parse(schedule, &c, &err), 0);
    int64_t from_ns, t;
    CU_ASSERT_EQUAL(bh_time_parse_ns(after, &from_ns), 0);
    t = bh_cron_next(&c, &zone, from_ns / SECOND);
    bh_zone_fini(&zone);
    if (t == INT64_MAX)
        snprintf(got, sizeof(got), "never");
    else
        bh_time_format_ns(got, t * SECOND);
    if (!bh_streq(got, want))
        fprintf(stderr, "%s after %s: %s, want %s\n", schedule, after, got, want);
    CU_ASSERT_STRING_EQUAL(got, want);
}

static void check_next(const char *schedule, const char *after, const char *want)
{
    check_next_in("", schedule, after, want);
}

static void test_schedules(void)
{
    static const char *const bad[] = {"",           "* * * *",      "* * * * * *", "60 * * * *",
                                      "* 24 * * *", "* * 0 * *",    "* * * 13 *",  "* * * * 7",
                                      "a * * * *",  "*/0 * * * *",  "5-1 * * * *", "1,,2 * * * *",
                                      "@often",     "@every never", "1 2 3 4 mo5", "-1 * * * *"};
    check_next("* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z");
    check_next("* * * * *", "2026-01-01T00:00:59Z", "2026-01-01T00:01:00Z");
    check_next("*/15 * * * *", "2026-01-01T00:50:00Z", "2026-01-01T01:00:00Z");
    check_next("5,10-12,50/5 3 * * ?", "2026-01-01T03:12:00Z", "2026-01-01T03:50:00Z");
    check_next("0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z");
    check_next("0 0 31 4 *", "2026-01-01T00:00:00Z", "never");
    check_next("0 12 * * MON-fri", "2026-01-02T12:00:00Z", "2026-01-05T12:00:00Z");
    check_next("0 0 13 * fri", "2026-01-03T00:00:00Z", "2026-01-09T00:00:00Z"); /* either */
    check_next("0 0 13 dec *", "2026-12-31T23:59:00Z", "2027-12-13T00:00:00Z");
    check_next("@hourly", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z");
    check_next("@weekly", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z");
    check_next("@yearly", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
    check_next("@every 90s", "2026-01-01T00:00:10Z", "2026-01-01T00:01:40Z");
    for (size_t i = 0; i < BH_ARRAY_LEN(bad); i++) {
        struct bh_cron c;
        struct bh_err err = {{0}};
        CU_ASSERT(bh_cron_parse(bad[i], &c, &err) < 0 && err.msg[0]);
    }
}

static void test_schedules_in_zones(void)
{
    static const char berlin[] = "Europe/Berlin";

    check_next_in(berlin, "0 8 * * *", "2026-01-01T00:00:00Z", "2026-01-01T07:00:00Z");
    check_next_in(berlin, "0 8 * * *", "2026-07-01T06:30:00Z", "2026-07-02T06:00:00Z");
    check_next_in(berlin, "0 0 1 * *", "2026-03-15T00:00:00Z", "2026-03-31T22:00:00Z");
    /* 29 March: clocks go from 2:00 to 3:00, and 25 October from 3:00 back to 2:00. */
    check_next_in(berlin, "30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z");
    check_next_in(berlin, "30 2 * * *", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z");
    check_next_in(berlin, "30 2 * * *", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z");
    check_next_in(berlin, "30 2 * * *", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z");
    check_next_in("Asia/Kolkata", "0 9 * * *", "2026-01-01T00:00:00Z", "2026-01-01T03:30:00Z");
    /* There is no midnight when summer time begins. */
    check_next_in("Africa/Cairo", "0 * 24 apr *", "2026-04-23T20:30:00Z", "2026-04-23T22:00:00Z");
    check_next_in("America/New_York", "0 0 * * mon", "2026-01-01T00:00:00Z",
                  "2026-01-05T05:00:00Z");
}

/* ---- cron jobs ------------------------------------------------------------------------------- */

static void make_cron(struct world *w, const char *more, const char *run)
{
    char text[1000];

    snprintf(text, sizeof(text),
             "metadata: {name: c}\nspec:\n  schedule: \"*/5 * * * *\"\n%s  jobTemplate:\n    "
             "spec:\n      template: {metadata: {annotations: {sim.berth.dev/run-time: %s}}, spec: "
             "{restartPolicy: Never, containers: [{name: c, image: i}]}}\n",
             more, run);
    CU_ASSERT_PTR_NOT_NULL(make(&w->f, "CronJob", "default", text));
    bh_arena_reset(&w->f.a);
}

static size_t n_jobs(struct world *w)
{
    return bh_sim_count(w->f.s, type_of("jobs"));
}

static void test_cron_runs(void)
{
    struct world w;

    start(&w); /* at 2026-01-01T00:00:00Z */
    make_cron(&w, "", "60s");
    pass(&w, 299);
    CU_ASSERT_EQUAL(n_jobs(&w), 0);
    pass(&w, 1);
    CU_ASSERT_EQUAL(n_jobs(&w), 1);
    CU_ASSERT_PTR_NOT_NULL(get(&w.f, "jobs", "default", "c-29453765")); /* minutes since 1970 */
    const struct bh_sim_obj *c = get(&w.f, "cronjobs", "default", "c");
    CU_ASSERT_STRING_EQUAL(field(&w.f, c, "status.lastScheduleTime"), "2026-01-01T00:05:00Z");
    CU_ASSERT_PTR_NOT_NULL(strstr(field(&w.f, c, "status.active"), "c-29453765"));
    pass(&w, 60);
    c = get(&w.f, "cronjobs", "default", "c");
    CU_ASSERT_STRING_EQUAL(field(&w.f, c, "status.lastSuccessfulTime"), "2026-01-01T00:06:00Z");
    CU_ASSERT_STRING_EQUAL(field(&w.f, c, "status.active"), "");
    pass(&w, 3600); /* three finished ones are kept */
    CU_ASSERT_EQUAL(n_jobs(&w), 3);
    c = get(&w.f, "cronjobs", "default", "c");
    CU_ASSERT_STRING_EQUAL(field(&w.f, c, "status.lastScheduleTime"), "2026-01-01T01:05:00Z");
    CU_ASSERT_EQUAL(bh_sim_delete(w.f.s, type_of("cronjobs"), "default", "c", NULL, &w.f.e), 0);
    pass(&w, 10);
    CU_ASSERT_EQUAL(n_jobs(&w), 0);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 0);
    world_fini(&w);
}

static void test_cron_policies(void)
{
    struct world w;

    start(&w);
    make_cron(&w, "  concurrencyPolicy: Forbid\n", "12m");
    pass(&w, 16 * 60);
    CU_ASSERT_EQUAL(n_jobs(&w), 1); /* 00:05 runs until 00:17 */
    pass(&w, 5 * 60);
    CU_ASSERT_EQUAL(n_jobs(&w), 2); /* 00:20 */
    world_fini(&w);
    start(&w);
    make_cron(&w, "  concurrencyPolicy: Replace\n", "12m");
    pass(&w, 16 * 60);
    CU_ASSERT_EQUAL(n_jobs(&w), 1);
    CU_ASSERT_PTR_NOT_NULL(get(&w.f, "jobs", "default", "c-29453775"));
    world_fini(&w);
    start(&w);
    make_cron(&w, "", "12m");
    pass(&w, 16 * 60);
    CU_ASSERT_EQUAL(n_jobs(&w), 3);
    world_fini(&w);
}

/* What was missed while it was suspended is not made up for, except the last, within the
 * deadline. */
static void test_cron_suspended(void)
{
    struct world w;

    start(&w);
    make_cron(&w, "  suspend: true\n  startingDeadlineSeconds: 90\n", "1s");
    pass(&w, 3600 * 24 * 400 + 120); /* two minutes past */
    CU_ASSERT_EQUAL(n_jobs(&w), 0);
    CU_ASSERT_EQUAL(change(&w.f, "CronJob", "default", "c", BH_SIM_MAIN, "spec.suspend", "false"),
                    0);
    pass(&w, 0);
    CU_ASSERT_EQUAL(n_jobs(&w), 0);
    pass(&w, 180);
    CU_ASSERT_EQUAL(n_jobs(&w), 1);
    world_fini(&w);
    start(&w);
    make_cron(&w, "  suspend: true\n", "1s");
    pass(&w, 3600 * 24 * 400 + 120);
    CU_ASSERT_EQUAL(change(&w.f, "CronJob", "default", "c", BH_SIM_MAIN, "spec.suspend", "false"),
                    0);
    pass(&w, 0);
    CU_ASSERT_EQUAL(n_jobs(&w), 1);
    world_fini(&w);
}

static void test_cron_in_a_zone(void)
{
    struct world w;

    start(&w); /* at 2026-01-01T00:00:00Z, 9 o'clock in Tokyo */
    CU_ASSERT_PTR_NOT_NULL(
        make(&w.f, "CronJob", "default",
             "metadata: {name: c}\nspec: {schedule: 0 10 * * *, timeZone: Asia/Tokyo, jobTemplate: "
             "{spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: "
             "i}]}}}}}"));
    bh_arena_reset(&w.f.a);
    pass(&w, 3599);
    CU_ASSERT_EQUAL(n_jobs(&w), 0);
    pass(&w, 1);
    CU_ASSERT_EQUAL(n_jobs(&w), 1);
    world_fini(&w);
}

static void test_cron_missing_job(void)
{
    struct world w;
    struct bh_sim_objs l;
    bool told = false;

    start(&w);
    make_cron(&w, "", "600s");
    pass(&w, 301);
    CU_ASSERT_EQUAL(bh_sim_delete(w.f.s, type_of("jobs"), "default", "c-29453765", NULL, &w.f.e),
                    0);
    pass(&w, 10);
    bh_sim_list(w.f.s, type_of("events"), "default", &l);
    for (size_t i = 0; i < l.n; i++)
        told = told || strstr(l.v[i]->json, "Active job went missing: c-29453765");
    CU_ASSERT(told);
    bh_sim_objs_fini(&l);
    const struct bh_sim_obj *c = get(&w.f, "cronjobs", "default", "c");
    CU_ASSERT_STRING_EQUAL(field(&w.f, c, "status.active"), "");
    world_fini(&w);
}

static void check_refused(struct world *w, const char *times, const char *why)
{
    char text[600];

    snprintf(
        text, sizeof(text),
        "metadata: {name: c}\nspec: {%s, jobTemplate: {spec: {template: {spec: {restartPolicy: "
        "Never, containers: [{name: c, image: i}]}}}}}",
        times);
    CU_ASSERT_PTR_NULL(make(&w->f, "CronJob", "default", text));
    if (!strstr(w->f.e.message, why))
        fprintf(stderr, "%s: %s, want %s\n", times, w->f.e.message, why);
    CU_ASSERT_PTR_NOT_NULL(strstr(w->f.e.message, why));
    bh_arena_reset(&w->f.a);
}

static void test_cron_unreadable(void)
{
    struct world w;

    start(&w);
    check_refused(
        &w, "schedule: 0 0 *",
        "spec.schedule: Invalid value: \"0 0 *\": expected exactly 5 fields, found 3: [0 0 *]");
    check_refused(&w, "schedule: CRON_TZ=UTC 0 0 * * *",
                  "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
    check_refused(&w, "schedule: TZ=UTC 0 0 * * *, timeZone: UTC",
                  "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
    check_refused(&w, "schedule: 0 0 * * *, timeZone: ''",
                  "timeZone must be nil or non-empty string");
    check_refused(&w, "schedule: 0 0 * * *, timeZone: local",
                  "timeZone must be an explicit time zone");
    check_refused(
        &w, "schedule: 0 0 * * *, timeZone: Europe/Berlim",
        "spec.timeZone: Invalid value: \"Europe/Berlim\": unknown time zone Europe/Berlim");
    check_refused(&w, "schedule: 0 0 * * *, timeZone: ../passwd", "unknown time zone ../passwd");
    CU_ASSERT_EQUAL(bh_sim_count(w.f.s, type_of("cronjobs")), 0);
    world_fini(&w);
}

/* ---- autoscalers ----------------------------------------------------------------------------- */

static void test_autoscaler(void)
{
    struct world w;

    start(&w);
    make(&w.f, "Deployment", "default", "metadata: {name: d}\nspec:\n  replicas: 1\n" TEMPLATE);
    make(&w.f, "HorizontalPodAutoscaler", "default",
         "metadata: {name: h}\nspec: {minReplicas: 2, maxReplicas: 4, scaleTargetRef: {apiVersion: "
         "apps/v1, kind: Deployment, name: d}}");
    pass(&w, 0);
    CU_ASSERT_EQUAL(count_pods(&w, "Running"), 2);
    CU_ASSERT_EQUAL(change(&w.f, "Deployment", "default", "d", BH_SIM_MAIN, "spec.replicas", "9"),
                    0);
    pass(&w, 0);
    CU_ASSERT_EQUAL(count_pods(&w, "Running"), 4);
    CU_ASSERT_EQUAL(num(&w, "horizontalpodautoscalers", "h", "status.currentReplicas"), 4);
    CU_ASSERT_PTR_NOT_NULL(strstr(get(&w.f, "horizontalpodautoscalers", "default", "h")->json,
                                  "FailedGetResourceMetric"));
    CU_ASSERT_EQUAL(change(&w.f, "Deployment", "default", "d", BH_SIM_MAIN, "spec.replicas", "0"),
                    0);
    pass(&w, 0);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 0);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(get(&w.f, "horizontalpodautoscalers", "default", "h")->json, "ScalingDisabled"));
    world_fini(&w);
}

/* ---- groups ---------------------------------------------------------------------------------- */

static void start_with_groups(struct world *w)
{
    const char *one[] = {"GenericWorkload=true", "WorkloadWithJob=true"};
    const struct bh_opt_list gates = {one, 2}, none = {0};
    static struct bh_feature_gates g;
    struct bh_err err = {""};

    bh_feature_gates_init(&g);
    CU_ASSERT_EQUAL_FATAL(bh_feature_gates_set(&g, &gates, &none, &none, &err), 0);
    world_manual(w, (struct bh_sim_options){.features = &g});
    make(&w->f, "Node", "", NODE("n1"));
    pass(w, 0);
}

#define INDEXED(name, parallelism)                                                                 \
    "metadata: {name: " name "}\nspec:\n  completions: 3\n  parallelism: " parallelism             \
    "\n  completionMode: Indexed\n" JOB_POD(RUNS("30s"))

/* An indexed job all of whose pods run at once is a gang. */
static void test_a_job_makes_its_group(void)
{
    struct world w;
    struct bh_sim_objs l = {0}, pods = {0};

    start_with_groups(&w);
    make(&w.f, "Job", "default", INDEXED("gang", "3"));
    make(&w.f, "Job", "default", INDEXED("two", "2"));
    pass(&w, 1);
    bh_sim_list(w.f.s, type_of("podgroups"), "default", &l);
    CU_ASSERT_EQUAL_FATAL(l.n, 1); /* none for the other job */
    const struct bh_sim_obj *job = get(&w.f, "jobs", "default", "gang");
    CU_ASSERT_STRING_EQUAL(l.v[0]->owner_uid, job->uid);
    CU_ASSERT_EQUAL(l.v[0]->n_owners, 2);
    CU_ASSERT_STRING_EQUAL(field(&w.f, l.v[0], "spec.schedulingPolicy.gang.minCount"), "3");
    CU_ASSERT_STRING_EQUAL(
        field(&w.f, l.v[0], "spec.podGroupTemplateRef.workload.podGroupTemplateName"),
        "gang-pgt-0");
    bh_sim_list(w.f.s, type_of("pods"), "default", &pods);
    CU_ASSERT_EQUAL(pods.n, 5);
    for (size_t i = 0; i < pods.n; i++)
        CU_ASSERT_STRING_EQUAL(field(&w.f, pods.v[i], "spec.schedulingGroup.podGroupName"),
                               bh_streq(pods.v[i]->owner_uid, job->uid) ? l.v[0]->name : "");
    bh_sim_objs_fini(&pods);
    CU_ASSERT_EQUAL(change(&w.f, "Job", "default", "gang", BH_SIM_MAIN, "spec.parallelism", "2"),
                    403);
    CU_ASSERT_PTR_NOT_NULL(strstr(w.f.e.message, "cannot change parallelism for a Job referencing "
                                                 "gang-scheduled PodGroup \""));
    CU_ASSERT_EQUAL(change(&w.f, "Job", "default", "two", BH_SIM_MAIN, "spec.parallelism", "1"), 0);
    bh_sim_objs_fini(&l);
    world_fini(&w);
}

/* A group that is deleted stays while one of its pods runs. */
static void test_a_group_with_pods_is_protected(void)
{
    struct world w;

    start_with_groups(&w);
    make(&w.f, "PodGroup", "default",
         "metadata: {name: g}\nspec: {schedulingPolicy: {gang: {minCount: 1}}}");
    make(&w.f, "Pod", "default",
         "metadata: {name: p, annotations: {" RUNS(
             "30s") "}}\nspec: {restartPolicy: Never, "
                    "schedulingGroup: {podGroupName: g}, containers: [{name: c, image: i}]}");
    pass(&w, 1);
    CU_ASSERT_EQUAL(bh_sim_delete(w.f.s, type_of("podgroups"), "default", "g", NULL, NULL), 0);
    pass(&w, 10);
    CU_ASSERT_PTR_NOT_NULL_FATAL(get(&w.f, "podgroups", "default", "g"));
    CU_ASSERT(get(&w.f, "podgroups", "default", "g")->deleting);
    pass(&w, 30); /* the pod has finished, and is still there */
    CU_ASSERT_EQUAL(count_pods(&w, "Succeeded"), 1);
    CU_ASSERT_PTR_NULL(get(&w.f, "podgroups", "default", "g"));
    world_fini(&w);
}

BH_TESTS("simulator/controllers/jobs", {"jobs run as long as they are told", test_run_time},
         {"other pods too", test_run_time_of_other_pods},
         {"failed pods are replaced later and later", test_back_off},
         {"a deadline ends a job, its ttl removes it", test_deadline},
         {"a suspended job", test_suspend}, {"schedules", test_schedules},
         {"schedules by the clocks of a place", test_schedules_in_zones},
         {"a cron job in a time zone", test_cron_in_a_zone},
         {"an active job that is gone", test_cron_missing_job},
         {"a cron job makes jobs", test_cron_runs}, {"jobs that overlap", test_cron_policies},
         {"a suspended cron job", test_cron_suspended},
         {"a schedule that cannot be read", test_cron_unreadable},
         {"an autoscaler keeps the bounds", test_autoscaler},
         {"a job makes its group", test_a_job_makes_its_group},
         {"a group with pods is protected", test_a_group_with_pods_is_protected},
         {"an exit code fails the job", test_exit_code_fails_the_job},
         {"failures that are ignored", test_ignored_failures},
         {"pods that were deleted count", test_deleted_pods_count},
         {"only ended pods are replaced", test_replacement},
         {"back-off of each index", test_backoff_per_index},
         {"failed indexes end a job", test_failed_indexes_end_a_job},
         {"some indexes are enough", test_success_policy},
         {"a job of another controller", test_another_controller},
         {"pods of a job that is deleted", test_pods_of_a_deleted_job_go},
         {"policies that cannot be", test_policies_that_cannot_be})
