/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/bench/test_perf.c - scheduler_perf files: reading, plans, templates, filters,
 * thresholds, percentiles, data items
 */
#include "bench/perf/pipeline.h"
#include "tests/unit/harness.h"

#include <errno.h>
#include <math.h>

static int load(const char *text, struct bh_bench_file **ret, struct bh_err *err)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/performance-config.yaml", bh_test_tmpdir());
    CU_ASSERT_FATAL(bh_write_file(path, text, strlen(text), 0600) == 0);
    return bh_bench_load(path, ret, err);
}

#define CASE(ops, workloads)                                                                       \
    "- name: C\n  labels: [short]\n  workloadTemplate:\n" ops                                      \
    "  - opcode: stopCollectingMetrics\n  workloads:\n" workloads
#define W(more) "  - name: W\n" more

/* ---- files ----------------------------------------------------------------------------------- */

static void test_names_in_any_case_and_sets_taken_apart(void)
{
    struct bh_bench_file *f;
    struct bh_bench_step *s;
    struct bh_err err = {0};
    struct bh_arena a;
    uint32_t n;

    bh_arena_init(&a, 0);
    CU_ASSERT_FATAL(
        load(CASE("  - OpCode: createPodSets\n    COUNTPARAM: $sets\n    namespacePrefix: p\n"
                  "    createPodsOp: {opcode: createPods, countParam: $pods, "
                  "SkipWaitToCompletion: true}\n"
                  "  - opcode: sleep\n    durationParam: $pause\n",
                  W("    params: {sets: 2.9, pods: 7, pause: 1m30s}\n")),
             &f, &err) == 0);
    CU_ASSERT_FATAL(bh_bench_plan(&a, f, &f->cases[0], &f->cases[0].workloads[0], &s, &n, &err) ==
                    0);
    CU_ASSERT_FATAL(n == 4);
    CU_ASSERT_STRING_EQUAL(s[1].op->name, "createPods");
    CU_ASSERT_STRING_EQUAL(s[1].namespace_, "p-1");
    CU_ASSERT(s[1].count == 7 && s[1].skip_wait && s[1].index == 1);
    CU_ASSERT(s[2].duration_ns == INT64_C(90000000000));
    bh_bench_file_free(f);
    bh_arena_fini(&a);
}

/* what load, or the plan of the first workload, says about a text */
static const char *complaint(const char *text)
{
    static struct bh_err err;
    struct bh_bench_file *f;
    struct bh_bench_step *s;
    struct bh_arena a;
    uint32_t n;

    err = (struct bh_err){0};
    if (load(text, &f, &err) < 0)
        return err.msg;
    bh_arena_init(&a, 0);
    if (bh_bench_plan(&a, f, &f->cases[0], &f->cases[0].workloads[0], &s, &n, &err) == 0)
        snprintf(err.msg, sizeof err.msg, "nothing");
    bh_bench_file_free(f);
    bh_arena_fini(&a);
    return err.msg;
}

static void test_errors_name_case_op_and_field(void)
{
    static const struct {
        const char *text, *says;
    } all[] = {
        {"", "a list of test cases is expected"},
        {"- name: C\n", "test case C: workloadTemplate: missing"},
        {"- nam: C\n", "unknown field \"nam\""},
        {"- name: C\n  workloadTemplate:\n  - opcode: sleep\n    duration: 1s\n  workloads:\n" W(
             ""),
         "no operation collects metrics"},
        {CASE("  - opcode: createPod\n", W("")), "test case C: op 0: opcode: unknown opcode "},
        {CASE("  - count: 1\n", W("")), "op 0: opcode: missing"},
        {CASE("  - opcode: createNodes\n    pods: 1\n", W("")),
         "op 0: (createNodes): unknown field \"pods\""},
        {CASE("  - opcode: createNodes\n    count: many\n", W("")),
         "(createNodes): count: must be a number"},
        {CASE("  - opcode: createNodes\n    countParam: size\n", W("")),
         "countParam: must be the name"},
        {CASE("  - opcode: createNodes\n    countParam: $size\n", W("")),
         "C/W: op 0: (createNodes): countParam: parameter $size is not defined"},
        {CASE("  - opcode: createNodes\n    countParam: $size\n", W("    params: {size: x}\n")),
         "countParam: must be a number"},
        {CASE("  - opcode: createNodes\n    count: -1\n", W("")), "-1: must be a number from 0"},
        {CASE("  - opcode: createNodes\n    count: 1\n", W("    params: {a: 1, b: 2}\n")),
         "C/W: the parameters [a b] are defined, but unused"},
        {CASE("  - opcode: churn\n    mode: recreate\n    templatePaths: [a]\n", W("")),
         "number: must be > 0 with mode recreate"},
        {CASE("  - opcode: createPods\n    skipWaitToCompletion: true\n    collectMetrics: true\n",
              W("")),
         "skipWaitToCompletion: excludes collectMetrics"},
        {CASE("  - opcode: sleep\n    duration: soon\n", W("")),
         "duration: \"soon\" is no duration"},
        {CASE("  - opcode: barrier\n    stageRequirement: Bound\n", W("")),
         "stageRequirement: must be Scheduled or Attempted"},
        {CASE("  - opcode: createPodSets\n    count: 1\n    createPodsOp: {opcode: sleep}\n",
              W("")),
         "createPodsOp: opcode: must be createPods"},
        {CASE("  - opcode: sleep\n    duration: 1s\n", W("") W("")), "workload W: Duplicate value"},
        {CASE("  - opcode: sleep\n    duration: 1s\n", W("    threshold: -3\n")),
         "workload W: threshold: must be a number >= 0"},
        {CASE("  - opcode: sleep\n    duration: 1s\n", W("    featureGates: {A: 1}\n")),
         "featureGates: A: must be true or false"},
        {CASE("  - opcode: sleep\n    duration: 1s\n", W("")), "nothing"},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(all); i++) {
        const char *got = complaint(all[i].text);
        if (!strstr(got, all[i].says))
            printf("# %zu: %s\n", i, got);
        CU_ASSERT(strstr(got, all[i].says) != NULL);
    }
}

/* ---- filters, thresholds --------------------------------------------------------------------- */

static void test_label_filters(void)
{
    struct bh_bench_file *f;
    struct bh_err err = {0};

    CU_ASSERT_FATAL(
        load(
            CASE("  - opcode: sleep\n    duration: 1s\n",
                 W("    labels: [performance]\n    threshold: {misc: 5, dra: 7}\n") "  - name: V\n "
                                                                                    "   threshold: "
                                                                                    "3\n"),
            &f, &err) == 0);
    const struct bh_bench_case *c = &f->cases[0];
    const struct bh_bench_workload *w = &c->workloads[0], *v = &c->workloads[1];
    CU_ASSERT(bh_bench_labels_match("", c, w));
    CU_ASSERT(bh_bench_labels_match("performance", c, w) &&
              !bh_bench_labels_match("performance", c, v));
    CU_ASSERT(bh_bench_labels_match("short,,+performance", c, w)); /* the case's and its own */
    CU_ASSERT(!bh_bench_labels_match("short,-performance", c, w) &&
              bh_bench_labels_match("short,-performance", c, v));
    CU_ASSERT(!bh_bench_labels_match("perf", c, w)); /* no prefixes */
    CU_ASSERT(bh_bench_threshold(w, "dra") == 7 && bh_bench_threshold(w, "volumes") == 0);
    CU_ASSERT(bh_bench_threshold(v, "volumes") == 3);
    bh_bench_file_free(f);
}

/* ---- templates ------------------------------------------------------------------------------- */

static const char *render(const char *text, int64_t index, int64_t count)
{
    static char out[600];
    struct bh_buf b = {0};
    struct bh_err err = {0};
    int rc = bh_bench_render(&b, text, index, count, &err);

    snprintf(out, sizeof out, "%s", rc < 0 ? err.msg : bh_buf_str(&b));
    bh_buf_fini(&b);
    return out;
}

static void test_templates(void)
{
    CU_ASSERT_STRING_EQUAL(render("a{{.Index}}b{{ .Count }}", 3, 10), "a3b10");
    CU_ASSERT_STRING_EQUAL(render("{{DivideInt .Index 5}}", 14, 0), "2");
    CU_ASSERT_STRING_EQUAL(render("{{ DivideInt 30000 .Count }}Mi", 0, 7), "4285Mi");
    CU_ASSERT_STRING_EQUAL(render("{{Mod .Index 12}} {{Mod -7 3}}", 25, 0), "1 -1");
    CU_ASSERT_STRING_EQUAL(render("{{AddInt 1.6 1.6 \"2\"}} {{AddInt}}", 0, 0), "5 0");
    CU_ASSERT_STRING_EQUAL(render("{{DivideFloat 1 4}} {{MultiplyFloat 0.5 3}}", 0, 0), "0.25 1.5");
    CU_ASSERT_STRING_EQUAL(render("{{SubtractInt .Count 1}}", 0, 9), "8");
    CU_ASSERT(strstr(render("x\ny {{ if .Index }}", 0, 0), "line 2: template: \"if\"") != NULL);
    CU_ASSERT(strstr(render("{{ .Index | AddInt 1 }}", 0, 0), "\"|\" after \".Index\"") != NULL);
    CU_ASSERT(strstr(render("{{ Mod 1 0.5 }}", 0, 0), "division by zero") != NULL);
    CU_ASSERT(strstr(render("{{ .Index", 0, 0), "is not closed") != NULL);
    CU_ASSERT(strstr(render("{{ }}", 0, 0), "an action is empty") != NULL);
    CU_ASSERT(strstr(render("{{ Mod 1 }}", 0, 0), "at least 2 operands") != NULL);
    CU_ASSERT(strstr(render("{{ DivideInt 1 2 3 }}", 0, 0), "at most 2 operands") != NULL);
}

static void test_spelling_follows_the_schema(void)
{
    static const char text[] =
        "{\"Spec\":{\"topologySpreadConstraints\":[{\"NodeAffinityPolicy\":\"Honor\"}]},"
        "\"metadata\":{\"labels\":{\"Value\":\"x\"}}}";
    struct bh_json *v;
    struct bh_arena a;

    bh_arena_init(&a, 0);
    CU_ASSERT_FATAL(bh_json_parse(&a, text, strlen(text), 0, &v, NULL) == 0);
    bh_bench_spell(v, bh_kind_find("v1", "Pod")->desc);
    const struct bh_json *c = bh_json_at(bh_json_path(v, "spec.topologySpreadConstraints"), 0);
    CU_ASSERT(bh_json_get_str(c, "nodeAffinityPolicy") != NULL);
    CU_ASSERT(bh_json_get_str(bh_json_path(v, "metadata.labels"), "Value") != NULL);
    bh_arena_fini(&a);
}

static int add_claim(void *arg, struct bh_arena *a, struct bh_json *obj, struct bh_err *err)
{
    (void)arg;
    (void)err;
    bh_json_set_str(a, bh_json_obj_at(a, obj, "spec"), "nodeName", "n-{{.Index}}");
    return 0;
}

static void test_a_template_is_read_once(void)
{
    static const char text[] =
        "kind: Pod\napiVersion: v1 # {{.Count}}\nMetadata: {name: 'p-{{ .Index }}'}\n"
        "spec:\n  containers:\n  - ports: [{containerPort: 8{{Mod .Index 12}}}]\n";
    struct bh_bench_template t;
    struct bh_buf b = {0};
    struct bh_err err = {0};

    CU_ASSERT_FATAL(bh_bench_template_init(&t, "pod.yaml", text, false, add_claim, NULL, &err) ==
                    0);
    CU_ASSERT_STRING_EQUAL(t.type->plural, "pods");
    CU_ASSERT(bh_bench_render(&b, t.json, 13, 20, &err) == 0);
    CU_ASSERT_STRING_EQUAL(
        bh_buf_str(&b), "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"p-13\"},"
                        "\"spec\":{\"containers\":[{\"ports\":[{\"containerPort\":81}]}],"
                        "\"nodeName\":\"n-13\"}}");
    bh_bench_template_fini(&t);
    bh_buf_fini(&b);
    CU_ASSERT(bh_bench_template_init(&t, "pod.yaml", "kind: Pod\nspec: {{.Pods}}\n", false, NULL,
                                     NULL, &err) == -EINVAL);
    CU_ASSERT(strstr(err.msg, "pod.yaml: line 2: template: \".Pods\"") != NULL);
    bh_bench_template_fini(&t);
    /* what looks like our marks stands in the text already */
    CU_ASSERT(bh_bench_template_init(&t, "x", "kind: Pod\na: 910000000\nb: {{.Index}}\n", false,
                                     NULL, NULL, &err) == 0);
    CU_ASSERT(strstr(t.json, "\"a\":910000000,\"b\":{{.Index}}") != NULL);
    bh_bench_template_fini(&t);
    CU_ASSERT(bh_bench_template_init(&t, "x", "- kind: Pod\n", true, NULL, NULL, &err) == -EINVAL);
    bh_bench_template_fini(&t);
}

/* ---- results --------------------------------------------------------------------------------- */

static void test_percentiles_use_upstreams_index(void)
{
    const double v[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

    CU_ASSERT(bh_bench_percentile(v, 11, 50) == 6);
    CU_ASSERT(bh_bench_percentile(v, 10, 50) == 5);
    CU_ASSERT(bh_bench_percentile(v, 11, 99) == 11);
    CU_ASSERT(bh_bench_percentile(v, 1, 50) == 1);
}

/* n pods, one each step_ns; the samples' mean, and how many there were */
static double mean_of(size_t n, uint64_t step_ns, size_t *ret_samples)
{
    struct bh_bench_window x = {.bound_ns = bh_calloc(n, sizeof *x.bound_ns), .n_bound = n};
    double *out, sum = 0;

    for (size_t i = 0; i < n; i++)
        x.bound_ns[i] = (i + 1) * step_ns;
    out = bh_calloc(bh_bench_ticks(&x) + 1, sizeof *out);
    *ret_samples = bh_bench_sample(&x, out);
    CU_ASSERT(*ret_samples <= bh_bench_ticks(&x));
    for (size_t i = 0; i < *ret_samples; i++)
        sum += out[i];
    free(out);
    free(x.bound_ns);
    return *ret_samples ? sum / (double)*ret_samples : 0;
}

/* A steady rate is the mean whatever the window's length is divided by. */
static void test_samples_of_a_steady_rate(void)
{
    static const struct {
        size_t n;
        uint64_t step_ns;
        size_t samples;
    } all[] = {
        {1000, 1000000, 19}, /* 1 s in twenty ticks, the first of which starts the clock */
        {10007, 39989, 19},  /* primes: a twentieth is no whole number */
        {9973, 40009, 19},   {100000, 210011, 20}, /* 21.0011 s: ticks of a second */
        {30, 100003, 19},                          /* 3 ms */
        {10, 50000, 4},                            /* half a millisecond: ticks of a tenth of one */
    };
    size_t samples;

    for (size_t i = 0; i < BH_ARRAY_LEN(all); i++) {
        double rate = 1e9 / (double)all[i].step_ns,
               mean = mean_of(all[i].n, all[i].step_ns, &samples);
        if (samples != all[i].samples || fabs(mean / rate - 1) > 0.003)
            printf("# %zu: %zu samples, %f of %f\n", i, samples, mean, rate);
        CU_ASSERT(samples == all[i].samples);
        CU_ASSERT_DOUBLE_EQUAL(mean / rate, 1, all[i].n < 100 ? 0.05 : 0.003);
    }
    CU_ASSERT(mean_of(0, 1, &samples) == 0 && samples == 0);
    CU_ASSERT(mean_of(3, 1, &samples) == 0 && samples == 0); /* in one moment */
}

static void test_a_pause_repeats_the_next_rate(void)
{
    /* twenty ticks of 1 ms: pods in the first, the fourth, the last */
    uint64_t at[] = {900000, 3500000, 20000000};
    const struct bh_bench_window x = {.bound_ns = at, .n_bound = BH_ARRAY_LEN(at)};
    double out[20];

    CU_ASSERT_FATAL(bh_bench_ticks(&x) == 20);
    CU_ASSERT_FATAL(bh_bench_sample(&x, out) == 19);
    CU_ASSERT_DOUBLE_EQUAL(out[0], 1e3 / 3, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(out[2], 1e3 / 3, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(out[3], 1e3 / 16, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(out[18], 1e3 / 16, 1e-6);
}

static void test_items_carry_every_label(void)
{
    struct bh_bench_item items[] = {{.metric = "A",
                                     .unit = "s",
                                     .name = "n",
                                     .labels = {{"zone", "z"}},
                                     .bucket = {"Max", "Average"},
                                     .value = {2, 0.5}},
                                    {.metric = "", .unit = "s", .name = "m"}};
    struct bh_bench_report r = {.items = items, .n_items = 2};
    struct bh_buf out = {0};
    struct bh_json *v;
    struct bh_arena a;

    bh_arena_init(&a, 0);
    bh_bench_write_json(&r, &out);
    CU_ASSERT_FATAL(bh_json_parse(&a, out.p, out.n, BH_JSON_STRICT, &v, NULL) == 0);
    const struct bh_json *list = bh_json_get(v, "dataItems");
    const struct bh_json *first = bh_json_at(list, 0), *second = bh_json_at(list, 1);
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(v, "version"), "v1");
    CU_ASSERT_STRING_EQUAL(bh_json_first(bh_json_get(first, "data"))->key.p, "Average");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(bh_json_get(first, "labels"), "zone"), "z");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(bh_json_get(first, "labels"), "plugin"),
                           "not applicable");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(bh_json_get(second, "labels"), "zone"),
                           "not applicable");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(bh_json_get(second, "labels"), "Metric"),
                           "not applicable");
    bh_buf_fini(&out);
    bh_arena_fini(&a);
}

static void test_histograms_are_what_grew(void)
{
    static const char before[] = "# HELP m x\nm_bucket{result=\"a\",le=\"0.001\"} 5\n"
                                 "m_bucket{result=\"a\",le=\"0.002\"} 5\n"
                                 "m_bucket{result=\"a\",le=\"+Inf\"} 5\nm_sum{result=\"a\"} 1\n"
                                 "m_count{result=\"a\"} 5\n";
    static const char after[] = "m_bucket{result=\"a\",le=\"0.001\"} 5\n"
                                "m_bucket{result=\"a\",le=\"0.002\"} 9\n"
                                "m_bucket{result=\"a\",le=\"+Inf\"} 9\nm_sum{result=\"a\"} 1.006\n"
                                "m_count{result=\"a\"} 9\nm_bucket{result=\"b\",le=\"0.001\"} 0\n"
                                "m_sum{result=\"b\"} 0\nm_count{result=\"b\"} 0\n"
                                "m_bucket{result=\"c\",le=\"0.001\"} 3\nm_sum{result=\"c\"} 3\n"
                                "m_count{result=\"c\"} 3\nmm_count{result=\"a\"} 7\n";
    static const char config[] =
        "{\"metrics\":{\"m\":[{\"label\":\"result\",\"values\":[\"a\",\"b\"]}]}}";
    struct bh_bench_report r = {0};
    struct bh_json *collectors;
    struct bh_arena a;

    bh_arena_init(&a, 0);
    CU_ASSERT_FATAL(bh_json_parse(&a, config, strlen(config), 0, &collectors, NULL) == 0);
    bh_bench_put_histograms(&r, collectors, before, after, "N");
    CU_ASSERT_FATAL(r.n_items == 1); /* b has none, c is not asked for */
    CU_ASSERT_STRING_EQUAL(r.items[0].labels[0][1], "a");
    CU_ASSERT_DOUBLE_EQUAL(r.items[0].value[0], 1.5, 1e-6); /* Average, ms */
    CU_ASSERT_DOUBLE_EQUAL(r.items[0].value[1], 1.5, 1e-6); /* Perc50: half of the second bin */
    CU_ASSERT(bh_bench_sum(after, "m_count", "") == 12);
    CU_ASSERT(bh_bench_sum(after, "m_count", "result=\"a\"") == 9);
    CU_ASSERT(bh_bench_sum("", "m_count", "") == 0);
    bh_bench_report_fini(&r);
    bh_arena_fini(&a);
}

static void test_notes_are_told_once(void)
{
    struct bh_bench_report r = {0};

    bh_bench_note(&r, "a", "gate %s", "X");
    bh_bench_note(&r, "b", "gate X");
    bh_bench_note(&r, "b", "gate Y");
    CU_ASSERT(r.n_notes == 2 && r.notes[0].n == 2);
    CU_ASSERT_STRING_EQUAL(r.notes[0].first, "a");
    bh_bench_report_fini(&r);
}

BH_TESTS("bench/perf",
         {"names in any case, sets taken apart", test_names_in_any_case_and_sets_taken_apart},
         {"errors name test case, op and field", test_errors_name_case_op_and_field},
         {"label filters and thresholds", test_label_filters}, {"templates", test_templates},
         {"spelling follows the schema", test_spelling_follows_the_schema},
         {"a template is read once", test_a_template_is_read_once},
         {"percentiles use upstream's index", test_percentiles_use_upstreams_index},
         {"samples of a steady rate", test_samples_of_a_steady_rate},
         {"a pause repeats the next rate", test_a_pause_repeats_the_next_rate},
         {"items carry every label", test_items_carry_every_label},
         {"histograms are what grew", test_histograms_are_what_grew},
         {"notes are told once", test_notes_are_told_once})
