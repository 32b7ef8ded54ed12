/* SPDX-License-Identifier: Apache-2.0
 *
 * Scenarios: what is refused and how, what steps do, virtual time, repeatability, the report.
 */
#include "simulator/scenario/scenario.h"

#include <pthread.h>
#include <stdio.h>

#include "simulator/scenario/openb.h"
#include "tests/unit/harness.h"

#define HEAD "apiVersion: sim.berth.dev/v1alpha1\nkind: Scenario\n"

/* ---- reading --------------------------------------------------------------------------------- */

static const struct {
    const char *text, *field, *message;
    unsigned document, line;
} refusals[] = {
    {"a: [", "", "line", 0, 0},
    {"kind: Pod\napiVersion: v1\nmetadata: {name: x}\n", "", "no document has apiVersion", 0, 0},
    {HEAD "timline: []\n", "timline", "unknown field (did you mean timeline?); known are: seed, ",
     1, 3},
    {HEAD "spec:\n  seed: -1\n", "spec.seed", "a whole number from 0 on, found \"-1\"", 1, 4},
    {HEAD "featureGates: {GangScheduling: 1}\n", "featureGates",
     "GangScheduling: expected true or false", 1, 3},
    {HEAD "featureGates: {Gangs: true}\n", "featureGates", "unrecognized feature gate: Gangs", 1,
     3},
    {HEAD "featureGates: {GangScheduling: true}\n", "featureGates",
     "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]", 1,
     3},
    {HEAD "tieBreak: last\n", "tieBreak", "expected random/first, found \"last\"", 1, 3},
    {HEAD "timeline:\n- {at: 3, done: {}}\n", "timeline[0].at", "a duration such as", 1, 4},
    {HEAD "timeline:\n- {at: 3s}\n", "timeline[0]", "exactly one action is needed", 1, 4},
    {HEAD "timeline:\n- {done: {}, cordon: {count: 1}}\n", "timeline[0]", "exactly one action", 1,
     4},
    {HEAD "timeline:\n- generate: {kind: Wombat}\n", "timeline[0].generate.kind",
     "a kind that the simulator serves", 1, 4},
    {HEAD "timeline:\n- generate: {count: 3}\n", "timeline[0].generate.kind", "is missing", 1, 4},
    {HEAD "timeline:\n- generate: {kind: Pod, count: 1000001}\n", "timeline[0].generate.count",
     "from 1 to 1000000", 1, 4},
    {HEAD "timeline:\n- generate: {kind: Pod, labels: {a: {cycle: []}}}\n",
     "timeline[0].generate.labels.a", "expected a text, or {cycle: [texts]}", 1, 4},
    {HEAD "timeline:\n- cordon: {}\n", "timeline[0].cordon", "one of name, selector, count", 1, 4},
    {HEAD "timeline:\n- patch: {kind: Node, name: big}\n", "timeline[0].patch",
     "exactly one of merge, strategic, json", 1, 4},
    {HEAD "timeline:\n- delete: {kind: Pod, selector: 'a in'}\n", "timeline[0].delete.selector",
     "unable to parse requirement", 1, 4},
    {HEAD "timeline:\n- delete: {kind: Pod, apiVersion: v2, name: a}\n",
     "timeline[0].delete.apiVersion", "Pod of v2 is not served by the simulator", 1, 4},
    {HEAD "timeline:\n- scale: {kind: Deployment, apiVersion: v1, name: a, replicas: 1}\n",
     "timeline[0].scale.apiVersion", "Deployment of v1 is not served", 1, 4},
    {HEAD "timeline:\n- delete: {kind: Wombat, apiVersion: x.io/v1, name: a}\n",
     "timeline[0].delete.apiVersion",
     "Wombat of x.io/v1 is not served by the simulator, and no plugin of the schedulers reads it",
     1, 4},
    {HEAD
     "timeline:\n- create: |\n    apiVersion: x.io/v1\n    kind: Wombat\n    metadata: {name: a}\n",
     "timeline[0].create[0].kind", "Wombat of x.io/v1 is not served", 1, 6},
    {HEAD "---\napiVersion: x.io/v1\nkind: Wombat\nmetadata: {name: a}\n", "kind",
     "no plugin of the schedulers reads it", 2, 5},
    {HEAD "timeline:\n- churn: {delete: 101%, every: 1s, for: 1m}\n", "timeline[0].churn.delete",
     "a whole number, or a share", 1, 4},
    {HEAD "timeline:\n- files: x.yaml\n", "timeline[0].files", "files cannot be read here", 1, 4},
    {HEAD "timeline:\n- create: {kind: Pod}\n", "timeline[0].create.apiVersion", "is missing", 1,
     4},
    {HEAD "timeline:\n- create: |\n    kind: [\n", "timeline[0].create", "line", 1, 4},
    {HEAD "timeline:\n- {at: 1s, done: {}}\n- {step: 2, done: {}}\n", "timeline[1].step",
     "either times or step numbers", 1, 5},
    {HEAD "timeline:\n- until: 5s\n- done: {}\n", "timeline[0].until", "as the last step", 1, 4},
    {HEAD "setup:\n- {at: 5s, done: {}}\n", "setup[0].at", "have no time", 1, 4},
    {HEAD "expect:\n- {pods: a=b}\n", "expect[0]", "one of count, scheduled", 1, 4},
    {HEAD "expect:\n- {metric: x, utilisation: cpu, atLeast: 1}\n", "expect[0]",
     "exactly one of pods, utilisation, metric", 1, 4},
    {HEAD "schedulers:\n- {name: a}\n- {name: a}\n", "schedulers[1].config",
     "there is a scheduler \"a\" already", 1, 0},
    {HEAD "schedulers:\n- {name: a, config: {kind: Wombat}}\n", "schedulers[0].config", "", 1, 4},
    {HEAD "---\napiVersion: v1\nkind: Pod\nmetadata: {}\n", "metadata.name", "is missing", 2, 6},
    {HEAD "---\n" HEAD, "kind", "second scenario", 2, 4},
    {HEAD "spec: {operations: [{step: 1}]}\n", "spec.operations[0]",
     "exactly one of createOperation", 1, 3},
    {HEAD "spec: {operations: [{step: 1, deleteOperation: {typeMeta: {kind: Pod}}}]}\n",
     "spec.operations[0].deleteOperation.objectMeta.name", "is missing", 1, 3},
};

static void test_refusals(void)
{
    for (size_t i = 0; i < BH_ARRAY_LEN(refusals); i++) {
        const struct bh_scenario_source src = {.text = refusals[i].text,
                                               .n = strlen(refusals[i].text)};
        struct bh_scenario_error e = {0};
        struct bh_err err = {0};
        struct bh_scenario *s = NULL;
        int rc = bh_scenario_read(&src, &s, &e, &err);
        bool good = rc < 0 && bh_streq(e.field, refusals[i].field) &&
                    strstr(e.message, refusals[i].message) && e.line == refusals[i].line &&
                    (!refusals[i].document || e.document == refusals[i].document);
        CU_ASSERT(good);
        if (!good)
            printf("# %zu: rc %d, document %u, line %u, field \"%s\": %s\n", i, rc, e.document,
                   e.line, e.field, e.message);
        bh_scenario_free(s);
    }
}

/* ---- running --------------------------------------------------------------------------------- */

struct outcome {
    int rc;
    bool passed;
    struct bh_buf json;
    struct bh_arena a;
    struct bh_json *v, *first; /* result, its first scheduler */
    struct bh_err err;
};

static void play(struct outcome *o, const char *text, const struct bh_scenario_options *opt)
{
    static const struct bh_scenario_options plain = {.verify = true};
    const struct bh_scenario_source src = {.text = text, .n = strlen(text)};
    struct bh_scenario *s = NULL;

    *o = (struct outcome){0};
    bh_arena_init(&o->a, 0);
    o->rc = bh_scenario_read(&src, &s, NULL, &o->err);
    if (o->rc >= 0)
        o->rc = bh_scenario_run(s, opt ? opt : &plain, &o->json, &o->passed, &o->err);
    if (o->rc < 0)
        printf("# %s\n", o->err.msg);
    else if (bh_json_parse(&o->a, o->json.p, o->json.n, BH_JSON_STRICT, &o->v, &o->err) == 0)
        o->first = bh_json_first(bh_json_get(o->v, "schedulers"));
    bh_scenario_free(s);
}

static void outcome_fini(struct outcome *o)
{
    bh_buf_fini(&o->json);
    bh_arena_fini(&o->a);
}

static int64_t metric(const struct outcome *o, const char *name)
{
    return bh_json_get_i64(bh_json_get(o->first, "summary"), name, -1);
}

static const struct bh_json *pod(const struct outcome *o, const char *name)
{
    bh_json_each(p, bh_json_get(o->first, "pods")) {
        if (bh_streq(bh_json_get_text(p, "name"), name))
            return p;
    }
    return NULL;
}

#define NODES(n) "setup: [{generate: {kind: Node, count: " #n ", resources: {cpu: 4}}}]\n"
#define PODS(name, n, cpu, more)                                                                   \
    "{generate: {kind: Pod, name: " name ", count: " #n ", resources: {cpu: " #cpu "}" more "}}"

static void test_no_room(void)
{
    struct outcome o;

    play(&o, HEAD NODES(2) "timeline:\n- " PODS("p", 3, 3, ""), NULL);
    CU_ASSERT_EQUAL(o.rc, 0);
    CU_ASSERT_EQUAL(metric(&o, "pods.bound"), 2);
    CU_ASSERT_EQUAL(metric(&o, "pods.unschedulable"), 1);
    const struct bh_json *u = bh_json_first(bh_json_get(o.first, "unschedulable"));
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(u, "name"), "p-2");
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_json_get_text(u, "message"), "2 Insufficient cpu"));
    outcome_fini(&o);
}

/* The third pod gets its node when the first ends: ten seconds after that began to run, a second
 * after its binding. */
static void test_run_time(void)
{
    struct outcome o;

    play(&o, HEAD NODES(2) "timeline:\n- " PODS("p", 3, 3, ", runTime: 10s"), NULL);
    CU_ASSERT_EQUAL(o.rc, 0);
    CU_ASSERT_EQUAL(metric(&o, "pods.completed"), 3);
    int64_t bound = bh_json_get_i64(pod(&o, "p-2"), "bound_ns", 0);
    CU_ASSERT(bound >= INT64_C(11000000000) && bound < INT64_C(12000000000));
    CU_ASSERT_EQUAL(bh_json_get_i64(pod(&o, "p-2"), "gone_ns", 0), bound + INT64_C(11000000000));
    outcome_fini(&o);
}

static void test_preemption(void)
{
    struct outcome o;

    play(
        &o,
        HEAD NODES(
            1) "timeline:\n"
               "- create: {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, "
               "metadata: {name: high}, value: 1000}\n"
               "- " PODS("low", 1, 3,
                         "") "\n- at: 5s\n  create:\n"
                             "    apiVersion: v1\n    kind: Pod\n    metadata: {name: vip}\n"
                             "    spec: {priorityClassName: high, containers: [{name: c, image: i, "
                             "resources: {requests: {cpu: 3}}}]}\n",
        NULL);
    CU_ASSERT_EQUAL(o.rc, 0);
    CU_ASSERT_EQUAL(metric(&o, "preemptions"), 1);
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(pod(&o, "low"), "result"), "");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(pod(&o, "low-0"), "result"), "Preempted");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(pod(&o, "low-0"), "preemptedBy"), "default/vip");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(pod(&o, "vip"), "result"), "Bound");
    outcome_fini(&o);
}

static void test_edits(void)
{
    struct outcome o;

    play(&o,
         HEAD NODES(3) "timeline:\n"
                       "- {generate: {kind: Deployment, name: web, replicas: 3}}\n"
                       "- {at: 10s, cordon: {name: node-0}}\n"
                       "- {at: 11s, drain: {name: node-1}}\n"
                       "- {at: 20s, scale: {kind: Deployment, name: web, replicas: 6}}\n"
                       "- {at: 30s, patch: {kind: Node, name: node-2, merge: {metadata: {labels: "
                       "{tier: gold}}}}}\n"
                       "- {at: 40s, delete: {kind: Node, selector: tier=gold}}\n"
                       "- {at: 50s, churn: {delete: 1, of: app=web, every: 1s, for: 2s}}\n"
                       "- {until: 1m}\n"
                       "expect:\n"
                       "- {at: 9s, pods: app=web, count: 3, scheduled: 3}\n"
                       "- {at: 15s, pods: app=web, count: 3, scheduled: 100%}\n"
                       "- {at: 35s, pods: app=web, count: 6, scheduled: 6, topologyKey: "
                       "kubernetes.io/hostname, maxSkew: 6}\n"
                       "- {pods: app=web, count: 6}\n",
         NULL);
    CU_ASSERT_EQUAL(o.rc, 0);
    CU_ASSERT_TRUE(o.passed);
    CU_ASSERT_EQUAL(bh_json_get_i64(o.first, "end_ns", 0), INT64_C(60000000000));
    outcome_fini(&o);
}

static void test_expectations_fail(void)
{
    struct outcome o;

    play(&o,
         HEAD NODES(1) "timeline:\n- " PODS(
             "p", 2, 3,
             "") "\nexpect:\n"
                 "- {pods: '', pending: 1, reason: Insufficient cpu}\n"
                 "- {pods: '', pending: 0}\n- {utilisation: cpu, atLeast: 0.75}\n"
                 "- {utilisation: memory, atLeast: 0.5}\n- {metric: nonsense, atMost: 1}\n",
         NULL);
    CU_ASSERT_EQUAL(o.rc, 0);
    CU_ASSERT_FALSE(o.passed);
    const bool want[] = {true, false, true, false, false};
    size_t i = 0;
    bh_json_each(e, bh_json_get(o.first, "expectations")) {
        CU_ASSERT_EQUAL(bh_json_get_bool(e, "passed", false), want[i]);
        i++;
    }
    CU_ASSERT_EQUAL(i, BH_ARRAY_LEN(want));
    outcome_fini(&o);
}

static void test_step_fails(void)
{
    struct outcome o;

    play(&o,
         HEAD NODES(1) "timeline:\n- {at: 5s, scale: {kind: Deployment, name: none, replicas: 3}}\n"
                       "- {at: 9s, generate: {kind: Pod}}\n",
         NULL);
    CU_ASSERT(o.rc < 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(o.err.msg, "after 5.000 s: scale Deployment none to 3 (line 5)"));
    outcome_fini(&o);
}

static void test_kep(void)
{
    struct outcome o;

    play(
        &o,
        "apiVersion: simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1\nkind: Scenario\n"
        "metadata: {name: kep}\nspec:\n  operations:\n"
        "  - {id: a, step: 1, createOperation: {object: {apiVersion: v1, kind: Node, metadata: "
        "{name: big}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}}}}\n"
        "  - {id: b, step: 2, createOperation: {object: {apiVersion: v1, kind: Pod, metadata: "
        "{name: p}, spec: {containers: [{name: c, image: i}]}}}}\n"
        "  - {id: c, step: 3, patchOperation: {typeMeta: {kind: Node, apiVersion: v1}, objectMeta: "
        "{name: big}, patch: '{\"spec\":{\"unschedulable\":true}}', patchType: "
        "application/merge-patch+json}}\n"
        "  - {id: d, step: 4, deleteOperation: {typeMeta: {kind: Pod}, objectMeta: {name: p, "
        "namespace: default}}}\n"
        "  - {id: e, step: 5, doneOperation: {}}\n"
        "  - {id: f, step: 6, deleteOperation: {typeMeta: {kind: Pod}, objectMeta: {name: "
        "none}}}\n",
        NULL);
    CU_ASSERT_EQUAL(o.rc, 0); /* step 6 would fail: done comes before it */
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(pod(&o, "p"), "node"), "big");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(pod(&o, "p"), "result"), "Deleted");
    outcome_fini(&o);
}

/* ---- the same again -------------------------------------------------------------------------- */

static const char busy[] =
    HEAD "metadata: {name: busy}\n"
         "spec:\n  seed: 11\n"
         "  setup:\n  - {generate: {kind: Node, count: 20, labels: {zone: {cycle: [a, b, c]}}}}\n"
         "  schedulers:\n  - {name: one}\n  - {name: two}\n"
         "  timeline:\n"
         "  - {generate: {kind: Deployment, name: web, replicas: 60, resources: {cpu: 2}}}\n"
         "  - {generate: {kind: StatefulSet, name: db, replicas: 9, resources: {cpu: 4}}}\n"
         "  - {at: 5s, generate: {kind: Pod, name: batch, count: 80, every: 500ms, runTime: 20s, "
         "resources: {cpu: 3}}}\n"
         "  - {at: 20s, nodeFailure: {count: 2, for: 1m}}\n"
         "  - {at: 30s, drain: {selector: zone=b}}\n"
         "  - {at: 60s, uncordon: {selector: zone=b}}\n"
         "  - {at: 70s, churn: {delete: 10%, of: app=web, every: 5s, for: 30s}}\n";

static void test_repeats(void)
{
    struct outcome a, b;

    play(&a, busy, NULL);
    play(&b, busy, NULL);
    CU_ASSERT_EQUAL(a.rc, 0);
    CU_ASSERT(a.json.n == b.json.n && memcmp(a.json.p, b.json.p, a.json.n) == 0);
    /* the same configuration twice: not one pod differs */
    CU_ASSERT_EQUAL(bh_json_get_i64(bh_json_path(a.v, "comparison.pods"), "different", -1), 0);
    CU_ASSERT(metric(&a, "pods.created") > 100);
    outcome_fini(&a);
    outcome_fini(&b);
}

static void *play_busy(void *arg)
{
    play(arg, busy, NULL);
    return NULL;
}

/* Scenarios share nothing: two at a time come to what one alone comes to. */
static void test_threads(void)
{
    struct outcome o[3];
    pthread_t t[2];

    for (size_t i = 0; i < BH_ARRAY_LEN(t); i++)
        pthread_create(&t[i], NULL, play_busy, &o[i]);
    for (size_t i = 0; i < BH_ARRAY_LEN(t); i++)
        pthread_join(t[i], NULL);
    play(&o[2], busy, NULL);
    for (size_t i = 0; i < BH_ARRAY_LEN(t); i++)
        CU_ASSERT(o[i].json.n == o[2].json.n && memcmp(o[i].json.p, o[2].json.p, o[2].json.n) == 0);
    for (size_t i = 0; i < BH_ARRAY_LEN(o); i++)
        outcome_fini(&o[i]);
}

static void cancel_it(void *arg)
{
    struct bh_scenario_progress *p = arg;

    atomic_store(&p->cancel, true);
}

static void test_cancel(void)
{
    struct bh_scenario_progress p = {0};
    const struct bh_scenario_options opt = {.progress = &p, .tick = cancel_it, .arg = &p};
    struct outcome o;

    play(&o, busy, &opt);
    CU_ASSERT_EQUAL(o.rc, -ECANCELED);
    outcome_fini(&o);
}

static void test_start_cluster(void)
{
    const struct bh_scenario_options opt = {
        .cluster = "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[{\"apiVersion\":\"v1\","
                   "\"kind\":\"Namespace\",\"metadata\":{\"name\":\"default\",\"uid\":\"u\"}},"
                   "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\",\"uid\":"
                   "\"x\",\"resourceVersion\":\"7\"},\"status\":{\"allocatable\":{\"cpu\":\"4\","
                   "\"memory\":\"8Gi\",\"pods\":\"9\"}}},{\"apiVersion\":\"v1\",\"kind\":\"Pod\","
                   "\"metadata\":{\"name\":\"old\",\"namespace\":\"default\",\"ownerReferences\":["
                   "{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"r\",\"uid\":"
                   "\"gone\",\"controller\":true}]},\"spec\":{\"nodeName\":\"n\",\"containers\":[{"
                   "\"name\":\"c\",\"image\":\"i\",\"resources\":{\"requests\":{\"cpu\":\"3\"}}}]}"
                   "}]}"};
    struct outcome o;

    play(&o, HEAD "start: cluster\ntimeline:\n- " PODS("p", 1, 2, "") "\n", &opt);
    CU_ASSERT_EQUAL(o.rc, 0);
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(pod(&o, "old"), "result"), "Bound");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(pod(&o, "p-0"), "result"), "Unschedulable");
    outcome_fini(&o);
    play(&o, HEAD "start: cluster\n", NULL);
    CU_ASSERT(o.rc < 0);
    outcome_fini(&o);
}

/* ---- report ---------------------------------------------------------------------------------- */

#define EVIL "<script>alert(1)</script>\\\" onload=x '&"

static void test_report_escapes(void)
{
    static const char result[] =
        "{\"kind\":\"ScenarioResult\",\"version\":\"" EVIL "\",\"scenario\":{\"name\":\"" EVIL
        "\",\"begin\":\"" EVIL "\",\"tieBreak\":\"" EVIL "\"},\"comparison\":{\"pods\":{\"same\":1,"
        "\"different\":1},\"different\":[{\"namespace\":\"" EVIL "\",\"name\":\"" EVIL
        "\",\"nodes\":[\"" EVIL "\",null]}]},\"schedulers\":[{\"name\":\"" EVIL
        "\",\"summary\":{\"bindings\":3,\"utilisation.mean." EVIL "\":0.5},\"resources\":[\"" EVIL
        "\",7],\"expectations\":[{\"expected\":\"" EVIL "\",\"found\":\"" EVIL
        "\"}],\"pendingReasons\":[{\"count\":1,\"message\":\"" EVIL
        "\"}],\"series\":{\"at_ns\":[0,1e9,\"" EVIL "\"],\"pending\":[1,2],\"utilisation\":{\"" EVIL
        "\":[0.5,0.7]}},\"nodes\":[{\"name\":\"" EVIL "\",\"utilisation\":{\"" EVIL
        "\":99}},7],\"timeline\":[{\"what\":\"step\",\"at_ns\":1,\"detail\":\"" EVIL "\"}]}]}";
    struct bh_buf out = {0};
    struct bh_err err = {0};

    CU_ASSERT_EQUAL(bh_scenario_html(result, strlen(result), &out, &err), 0);
    CU_ASSERT_PTR_NULL(strstr(bh_buf_str(&out), "<script"));
    CU_ASSERT_PTR_NULL(strstr(bh_buf_str(&out), "\" onload"));
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&out), "&lt;script&gt;alert(1)&lt;/script&gt;"));
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&out), "</html>"));
    bh_buf_reset(&out);
    CU_ASSERT_EQUAL(bh_scenario_text(result, strlen(result), false, &out, &err), 0);
    bh_buf_reset(&out);
    CU_ASSERT(bh_scenario_html("{}", 2, &out, &err) < 0);
    CU_ASSERT(bh_scenario_html("[1", 2, &out, &err) < 0);
    bh_buf_fini(&out);
}

static void test_report_of_a_run(void)
{
    struct bh_buf out = {0};
    struct outcome o;

    play(&o, busy, NULL);
    CU_ASSERT_EQUAL(bh_scenario_html(o.json.p, o.json.n, &out, &o.err), 0);
    static const char *const parts[] = {"<svg ",
                                        "Utilisation: cpu requested",
                                        "Pods pending",
                                        "Nodes by cpu utilisation at the end",
                                        "Pods on different nodes",
                                        "prefers-color-scheme:dark"};
    for (size_t i = 0; i < BH_ARRAY_LEN(parts); i++)
        CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&out), parts[i]));
    CU_ASSERT_PTR_NULL(strstr(bh_buf_str(&out), "nan"));
    CU_ASSERT_PTR_NULL(strstr(bh_buf_str(&out), "style=\""));
    bh_buf_fini(&out);
    outcome_fini(&o);
}

/* ---- trace ----------------------------------------------------------------------------------- */

static int keep_row(void *arg, struct bh_openb_row *row, struct bh_err *err)
{
    int64_t *v = arg;

    (void)err;
    v[0]++;
    v[1] += row->created_s;
    v[2] += row->deleted_s;
    return bh_streq(row->name, "bad") ? -EINVAL : 0;
}

static void test_openb(void)
{
    static const char csv[] = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,"
                              "deletion_time\np1,1000,1024,0,0,10,20\np2,1,1,1,500,30,\n";
    int64_t v[3] = {0};
    struct bh_err err = {0};
    char path[300];

    snprintf(path, sizeof path, "%s/pods.csv", bh_test_tmpdir());
    CU_ASSERT_EQUAL(bh_write_file(path, csv, strlen(csv), 0600), 0);
    CU_ASSERT_EQUAL(bh_openb_read(path, true, keep_row, v, &err), 0);
    CU_ASSERT_EQUAL(v[0], 2);
    CU_ASSERT_EQUAL(v[1], 40);
    CU_ASSERT_EQUAL(v[2], 19);
    CU_ASSERT(bh_openb_read(path, false, keep_row, v, &err) < 0); /* no column sn */
}

BH_TESTS("simulator/scenario", {"what is refused, and how", test_refusals},
         {"a pod that has no room stays", test_no_room}, {"run times free room", test_run_time},
         {"preemption", test_preemption},
         {"edits, drain, churn, expectations at times", test_edits},
         {"expectations that fail", test_expectations_fail},
         {"a step that cannot be carried out", test_step_fails},
         {"operations of KEP-140", test_kep},
         {"the same file and seed, the same bytes", test_repeats}, {"two at a time", test_threads},
         {"cancelled", test_cancel}, {"started from a cluster", test_start_cluster},
         {"the report escapes everything", test_report_escapes},
         {"the report of a run", test_report_of_a_run}, {"the openb trace", test_openb})
