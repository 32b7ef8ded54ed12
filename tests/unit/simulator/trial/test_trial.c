/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/cli/test_simulate.c - files, admission, workloads, and what a trial comes to
 */
#include "simulator/trial/trial.h"
#include "tests/unit/harness.h"

#include <errno.h>
#include <zlib.h>

#define CONTAINERS(requests)                                                                       \
    "containers: [{name: c, image: i, resources: {requests: {" requests "}}}]"
#define NODE(name, more)                                                                           \
    "---\napiVersion: v1\nkind: Node\nmetadata: {name: " name                                      \
    ", labels: {kubernetes.io/hostname: " name "}}\nstatus: {allocatable: {cpu: \"4\", memory: "   \
    "8Gi, pods: \"10\"}}\n" more
#define POD(name, spec)                                                                            \
    "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " name ", labels: {app: " name               \
    "}}\nspec:\n  " CONTAINERS("cpu: 100m") "\n" spec
#define BIG_POD(name, cpu, spec)                                                                   \
    "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " name ", labels: {app: " name               \
    "}}\nspec:\n  " CONTAINERS("cpu: " cpu) "\n" spec

static struct bh_err error;

static const char *file(const char *name, const char *text)
{
    static char path[512];

    snprintf(path, sizeof(path), "%s/%s", bh_test_tmpdir(), name);
    CU_ASSERT_FATAL(bh_write_file(path, text, strlen(text), 0600) == 0);
    return path;
}

static struct bh_trial *load_with(const struct bh_trial_options *o, const char *name,
                                  const char *text)
{
    const char *path = file(name, text);
    struct bh_trial *t;

    error = (struct bh_err){{0}};
    CU_ASSERT_FATAL(bh_trial_new(o, &t, &error) == 0);
    if (bh_trial_load(t, &path, 1, &error) == 0)
        return t;
    bh_trial_free(t);
    return NULL;
}

static const struct bh_trial_options plain = {
    .tie_break = BH_TIE_FIRST, .verify = true, .now_ns = INT64_C(1893456000000000000)};

static struct bh_trial *run(const char *text)
{
    struct bh_trial *t = load_with(&plain, "t.yaml", text);

    if (!t)
        printf("# %s\n", error.msg);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    bh_trial_run(t);
    return t;
}

/* "node", or the result and the message in brackets. */
static const char *outcome(const struct bh_trial *t, const char *name)
{
    static char text[1024];

    for (size_t i = 0; i < t->n_list; i++) {
        const struct bh_trial_pod *p = t->list[i];
        if (!bh_streq(bh_trial_pod_name(p), name))
            continue;
        if (p->result == BH_TRIAL_SCHEDULED)
            return bh_sym_text(bh_engine_symtab(t->w.engine), p->node);
        snprintf(text, sizeof text, "%s[%.900s]",
                 p->result == BH_TRIAL_PREEMPTED       ? "preempted"
                 : p->result == BH_TRIAL_GATED         ? "gated"
                 : p->result == BH_TRIAL_UNSCHEDULABLE ? "unschedulable"
                                                       : "error",
                 p->message ? p->message : "");
        return text;
    }
    return "(no such pod)";
}

static bool begins(const char *text, const char *with)
{
    if (strncmp(text, with, strlen(with)) == 0)
        return true;
    printf("# wanted: %s\n# got:    %s\n", with, text);
    return false;
}

/* text does not load, for this reason. */
static bool refused(const char *name, const char *text, const char *why)
{
    struct bh_trial *t = load_with(&plain, name, text);

    bh_trial_free(t);
    if (!t && strstr(error.msg, why))
        return true;
    printf("# wanted: %s\n# got:    %s\n", why, t ? "(no error)" : error.msg);
    return false;
}

static uint32_t scheduled(const struct bh_trial *t)
{
    return bh_trial_summarize(t).scheduled;
}

/* ---- files ----------------------------------------------------------------------------------- */

static void test_forms_of_files(void)
{
    static const struct {
        const char *name, *text;
        size_t items;
    } cases[] = {
        {"docs.yaml", "# first\n---\n" POD("a", "") POD("b", "") "---\n# nothing\n", 3},
        {"directive.yaml", "%YAML 1.1\n---\n" POD("a", ""), 2},
        {"bom.yaml", "\xEF\xBB\xBF" POD("a", ""), 2},
        {"list.yaml",
         "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: {name: "
         "first}\n"
         "- apiVersion: v1\n  kind: List\n  items:\n  - apiVersion: v1\n    kind: Node\n    "
         "metadata: {name: m}\n",
         2},
        {"typed.json",
         "{\"items\":[{\"metadata\":{\"name\":\"n\"}},{\"metadata\":{\"name\":\"m\"}}],"
         "\"apiVersion\":\"v1\",\"kind\":\"NodeList\"}",
         2},
        {"two.json",
         "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}}\n"
         "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"m\"}}",
         2},
        {"empty-list.yaml", NODE("node", "---\napiVersion: v1\nkind: PodList\nitems: []\n"), 1},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        struct bh_trial *t = load_with(&plain, cases[i].name, cases[i].text);
        if (!t)
            printf("# %s: %s\n", cases[i].name, error.msg);
        CU_ASSERT_PTR_NOT_NULL_FATAL(t);
        CU_ASSERT_EQUAL(t->n_items, cases[i].items);
        bh_trial_free(t);
    }
}

static void test_errors_name_the_place(void)
{
    CU_ASSERT_TRUE(refused("trunc.yaml", NODE("node", "---\napiVersion: {"),
                           "trunc.yaml: document 2: counted from line 6 of the file: line "));
    CU_ASSERT_TRUE(refused("trunc.json", "{\"apiVersion\":\"v1\",", "cut short"));
    CU_ASSERT_TRUE(refused("dup.yaml", "kind: Pod\nkind: Pod\n", "duplicate field \"kind\""));
    CU_ASSERT_TRUE(refused("scalar.yaml", "hello\n", "document 1 (line 1): expected an object"));
    CU_ASSERT_TRUE(
        refused("nokind.yaml", "apiVersion: v1\nmetadata: {name: x}\n", "kind: expected text"));
    CU_ASSERT_TRUE(refused("nometa.yaml", "apiVersion: v1\nkind: Pod\n", "metadata: expected"));
    CU_ASSERT_TRUE(refused("noname.yaml", "apiVersion: v1\nkind: Node\nmetadata: {}\n",
                           "metadata.name: Required value"));
    CU_ASSERT_TRUE(refused("norway.yaml", "apiVersion: v1\nkind: Node\nmetadata: {name: no}\n",
                           "Node : metadata.name: expected text; in YAML y, n,"));
    CU_ASSERT_TRUE(refused("items.yaml", "apiVersion: v1\nkind: List\nitems: {a: b}\n",
                           "items: expected a list"));
    CU_ASSERT_TRUE(refused("item.json",
                           "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[{\"apiVersion\":"
                           "\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"uid\":\"u\"},"
                           "\"spec\":{\"containers\":7}}]}",
                           "item.json: document 1, item 1 (line 1): Pod default/p: Pod: "
                           "spec.containers: must be a list"));
    CU_ASSERT_TRUE(refused("slip.yaml",
                           "# a comment\nkind: List\napiVersion: v1\nitems:\n- apiVersion: v1\n"
                           "  kind: Pod\n  metadata: {name: p}\n  spec:\n    nodeSelecter: {}\n",
                           "slip.yaml: document 1, item 1: Pod p: line 9: unknown field "
                           "\"spec.nodeSelecter\" (did you mean nodeSelector?)"));
    CU_ASSERT_TRUE(
        refused("slip.json",
                "\n{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[{\"apiVersion\":"
                "\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"n\"}},\n"
                "{\"apiVersion\":\"v1\",\n\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"},"
                "\"nodeSelector\":{}}]}",
                "slip.json: document 1, item 2: Pod p: line 4: unknown field "
                "\"nodeSelector\" (did you mean spec.nodeSelector?)"));
    CU_ASSERT_TRUE(refused("empty.yaml", "\n# nothing\n", "no object in the files"));
    CU_ASSERT_TRUE(refused("cycle.yaml", "a: &a [*a]\n", "contains itself"));
    CU_ASSERT_TRUE(refused("none.yaml", NODE("node", "") "---\n[1, 2]\n",
                           "document 2 (line 7): expected an object"));
}

static void test_hostile_values(void)
{
    BH_CLEANUP(bh_freep) char *name = bh_calloc(1, 300001);
    BH_CLEANUP(bh_freep) char *text = NULL;

    memset(name, 'a', 300000);
    text = bh_asprintf("apiVersion: v1\nkind: Node\nmetadata: {uid: u, name: %s}\n", name);
    CU_ASSERT_TRUE(refused("name.yaml", text, "must be no more than 253 characters"));
    CU_ASSERT_TRUE(refused("neg.yaml", BIG_POD("p", "\"-1\"", ""),
                           "spec.containers[0].resources.requests[cpu]: Invalid value: \"-1\""));
    CU_ASSERT_TRUE(refused("neg2.yaml",
                           "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u}\nspec: "
                           "{" CONTAINERS("cpu: -1") "}\n",
                           "resources.requests.cpu: Invalid value: -1: must be greater"));
    CU_ASSERT_TRUE(refused("neg3.yaml",
                           "apiVersion: v1\nkind: Node\nmetadata: {name: node, uid: u}\nstatus: "
                           "{allocatable: {pods: \"-5\"}}\n",
                           "status.allocatable.pods: Invalid value: -5"));
    CU_ASSERT_TRUE(refused(
        "twins.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u}\nspec: "
        "{nodeName: a, " CONTAINERS(
            "cpu: 1") "}\n---\napiVersion: v1\nkind: "
                      "Pod\nmetadata: {name: q, uid: u}\nspec: {" CONTAINERS("cpu: 1") "}\n",
        "Pod default/q: metadata.uid: Duplicate value"));
    CU_ASSERT_TRUE(refused("bad.yaml", BIG_POD("p", "1x", ""), "quantity does not parse"));
    struct bh_trial *t = run(NODE("node", "") BIG_POD("p", "1e400", ""));
    CU_ASSERT_TRUE(
        begins(outcome(t, "p"), "unschedulable[0/1 nodes are available: 1 Insufficient cpu."));
    bh_trial_free(t);
}

static void test_kinds_that_do_not_matter(void)
{
    static const char text[] =
        NODE("node",
             "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
             "---\napiVersion: example.com/v1\nkind: Foo\nmetadata: {name: f}\n"
             "---\napiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: b}\n");
    struct bh_trial_options strict = plain;
    struct bh_trial *t = run(text);

    CU_ASSERT_EQUAL(t->n_items, 1);
    CU_ASSERT_EQUAL_FATAL(t->n_warnings, 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(t->warnings[0], "document 3 (line 11): Foo f: kind Foo in "
                                                  "example.com/v1 is not known, left out"));
    CU_ASSERT_PTR_NOT_NULL(strstr(t->warnings[1], "only the kind's v1 is read"));
    bh_trial_free(t);
    strict.strict = true;
    CU_ASSERT_PTR_NULL(load_with(&strict, "strict.yaml", text));
    CU_ASSERT_PTR_NOT_NULL(strstr(error.msg, "kind Foo in example.com/v1 is not known"));
}

static void test_the_later_object_counts(void)
{
    struct bh_trial *t = run(NODE("node", "") POD("p", "  nodeName: gone\n") POD("p", ""));

    CU_ASSERT_STRING_EQUAL(outcome(t, "p"), "node");
    CU_ASSERT_EQUAL_FATAL(t->n_warnings, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(t->warnings[0], "document 3 (line 14) replaces"));
    bh_trial_free(t);
}

/* ---- admission ------------------------------------------------------------------------------- */

static void test_manifests_are_admitted(void)
{
    struct bh_trial *t = run(NODE(
        "node",
        "") "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: "
            "high}\nvalue: "
            "1000\n---\napiVersion: v1\nkind: LimitRange\nmetadata: {name: l, namespace: "
            "small}\nspec: "
            "{limits: [{type: Container, defaultRequest: {cpu: 3}}]}\n"
            "---\napiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: vm}\nhandler: "
            "vm\n"
            "overhead: {podFixed: {cpu: 5}}\n"
            "---\napiVersion: v1\nkind: Pod\nmetadata: {name: limited, namespace: small}\nspec: "
            "{containers: [{name: c, image: i}], priorityClassName: high}\n"
            "---\napiVersion: v1\nkind: Pod\nmetadata: {name: other, namespace: small}\nspec: "
            "{containers: [{name: c, image: i}]}\n" POD("vm", "  runtimeClassName: vm\n")
                                 POD("given", "  priority: 5000\n"));

    CU_ASSERT_STRING_EQUAL(outcome(t, "limited"), "node");
    CU_ASSERT_TRUE(begins(outcome(t, "other"), "unschedulable[0/1 nodes are available: 1 "
                                               "Insufficient cpu."));
    CU_ASSERT_TRUE(begins(outcome(t, "vm"), "unschedulable["));
    for (size_t i = 0; i < t->n_list; i++) {
        const char *name = bh_trial_pod_name(t->list[i]);
        int32_t p = bh_engine_shape_rec(t->w.engine, t->list[i]->shape)->priority;
        CU_ASSERT_EQUAL(p, bh_streq(name, "limited") ? 1000 : bh_streq(name, "given") ? 5000 : 0);
    }
    bh_trial_free(t);
    CU_ASSERT_TRUE(refused("class.yaml", POD("p", "  priorityClassName: none\n"),
                           "no PriorityClass with name none was found"));
    CU_ASSERT_TRUE(refused("vm.yaml", POD("p", "  runtimeClassName: none\n"),
                           "RuntimeClass \"none\" not found"));
    CU_ASSERT_TRUE(refused("containers.yaml",
                           "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {}\n",
                           "Pod \"p\" is invalid: spec.containers: Required value"));
}

/* What an API server gave out is not admitted again. */
static void test_objects_with_a_uid_are_taken_as_they_are(void)
{
    struct bh_trial *t = run(
        "apiVersion: v1\nkind: List\nitems:\n"
        "- apiVersion: v1\n  kind: Node\n  metadata: {name: node, uid: n, resourceVersion: \"1\"}\n"
        "  spec: {taints: [{key: node.kubernetes.io/not-ready, effect: NoExecute}]}\n"
        "  status: {capacity: {cpu: 4, pods: 10}}\n"
        "- apiVersion: v1\n  kind: Pod\n  metadata: {name: p, namespace: a, uid: p, "
        "managedFields: [{manager: m}]}\n  spec: {" CONTAINERS(
            "cpu: 1") ", priority: 7, "
                      "priorityClassName: not-exported, schedulerName: default-scheduler}\n"
                      "  status: {phase: Pending}\n"
                      "- apiVersion: v1\n  kind: Pod\n  metadata: {name: done, namespace: a, uid: "
                      "d}\n"
                      "  spec: {" CONTAINERS(
                          "cpu: 4") ", nodeName: node}\n  status: {phase: Succeeded}\n"
                                    "- apiVersion: v1\n  kind: Pod\n  metadata: {name: going, "
                                    "namespace: a, uid: g, "
                                    "deletionTimestamp: \"2026-01-01T00:00:00Z\"}\n  spec: "
                                    "{" CONTAINERS(
                                        "cpu: 4") "}\n"
                                                  "- apiVersion: v1\n  kind: Pod\n  metadata: "
                                                  "{name: theirs, namespace: a, uid: t}\n"
                                                  "  spec: {" CONTAINERS(
                                                      "cpu: 4") ", schedulerName: somebody}\n");

    /* no default tolerations were added, no finished pod counts */
    CU_ASSERT_TRUE(begins(outcome(t, "p"),
                          "unschedulable[0/1 nodes are available: 1 node(s) had untolerated"));
    CU_ASSERT_EQUAL(t->n_list, 1);
    CU_ASSERT_EQUAL(t->n_finished, 1);
    CU_ASSERT_EQUAL(t->n_terminating, 1);
    CU_ASSERT_EQUAL(t->n_foreign, 1);
    CU_ASSERT_EQUAL(t->n_placed_before, 0);
    bh_trial_free(t);
}

/* ---- workloads ------------------------------------------------------------------------------- */

#define TEMPLATE "{metadata: {labels: {app: w}}, spec: {" CONTAINERS("cpu: 100m") "}}"
#define SELECTOR "selector: {matchLabels: {app: w}}"

static void test_workloads_become_pods(void)
{
    struct bh_trial *t = run(NODE("n1", "") NODE(
        "n2",
        "spec: {taints: [{key: k, effect: NoSchedule}]}\n") "---\napiVersion: apps/v1\nkind: "
                                                            "Deployment\nmetadata: {name: "
                                                            "dep}\nspec: {replicas: 3, " SELECTOR
                                                            ", template: " TEMPLATE "}\n"
                                                            "---\napiVersion: apps/v1\nkind: "
                                                            "StatefulSet\nmetadata: {name: "
                                                            "db}\nspec: {replicas: 2, "
                                                            "serviceName: s, " SELECTOR
                                                            ", template: " TEMPLATE "}\n"
                                                            "---\napiVersion: apps/v1\nkind: "
                                                            "DaemonSet\nmetadata: {name: "
                                                            "ds}\nspec: {" SELECTOR
                                                            ", template: " TEMPLATE "}\n"
                                                            "---\napiVersion: batch/v1\nkind: "
                                                            "Job\nmetadata: {name: job}\nspec: "
                                                            "{parallelism: 2, "
                                                            "completions: 5, template: {spec: "
                                                            "{restartPolicy: Never, " CONTAINERS(
                                                                "cpu: 100m") "}}}\n");

    CU_ASSERT_EQUAL(t->n_list, 3 + 2 + 1 + 2);
    CU_ASSERT_EQUAL(scheduled(t), 8);
    CU_ASSERT_STRING_EQUAL(outcome(t, "db-0"), "n1");
    CU_ASSERT_STRING_EQUAL(outcome(t, "db-1"), "n1");
    bh_trial_free(t);
}

static void test_names_repeat(void)
{
    static const char text[] =
        NODE("node", "") "---\napiVersion: apps/v1\nkind: ReplicaSet\nmetadata: "
                         "{name: rs}\nspec: {replicas: 4, " SELECTOR ", template: " TEMPLATE "}\n";
    struct bh_trial *a = run(text), *b = run(text);

    CU_ASSERT_EQUAL_FATAL(a->n_list, 4);
    CU_ASSERT_EQUAL_FATAL(b->n_list, 4);
    for (size_t i = 0; i < 4; i++) {
        CU_ASSERT_STRING_EQUAL(bh_trial_pod_name(a->list[i]), bh_trial_pod_name(b->list[i]));
        CU_ASSERT_TRUE(bh_str_eq(bh_trial_uid(a->list[i]), bh_trial_uid(b->list[i])));
    }
    bh_trial_free(a);
    bh_trial_free(b);
}

/* An exported workload comes with pods: only what is missing is made. */
static void test_exported_workloads_are_completed(void)
{
    struct bh_trial *t = run(NODE(
        "node",
        "") "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: dep, uid: d}\nspec: "
            "{replicas: "
            "3, " SELECTOR ", template: " TEMPLATE "}\n"
            "---\napiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: dep-1, uid: r, "
            "ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: dep, uid: d, "
            "controller: "
            "true}]}\nspec: {replicas: 3, " SELECTOR ", template: " TEMPLATE "}\n"
            "---\napiVersion: v1\nkind: Pod\nmetadata: {name: dep-1-a, uid: p1, labels: {app: w}, "
            "ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: dep-1, uid: r, "
            "controller: "
            "true}]}\nspec: {nodeName: node, " CONTAINERS(
                "cpu: 1") "}\n"
                          "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db, uid: "
                          "s}\nspec: {replicas: "
                          "2, serviceName: s, " SELECTOR ", template: " TEMPLATE "}\n"
                          "---\napiVersion: v1\nkind: Pod\nmetadata: {name: db-1, uid: p2, labels: "
                          "{app: w}, "
                          "ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, "
                          "uid: s, controller: "
                          "true}]}\nspec: {nodeName: node, " CONTAINERS(
                              "cpu: 1") "}\n"
                                        "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: "
                                        "{name: ds, uid: e}\nspec: {" SELECTOR
                                        ", template: " TEMPLATE "}\n"
                                        "---\napiVersion: v1\nkind: Pod\nmetadata: {name: ds-x, "
                                        "uid: p3, labels: {app: w}, "
                                        "ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, "
                                        "name: ds, uid: e, controller: "
                                        "true}]}\nspec: {nodeName: node, " CONTAINERS(
                                            "cpu: 100m") "}\n"
                                                         "---\napiVersion: batch/v1\nkind: "
                                                         "Job\nmetadata: {name: over, uid: "
                                                         "o}\nspec: {template: "
                                                         "{spec: {restartPolicy: "
                                                         "Never, " CONTAINERS(
                                                             "cpu: 1") "}}}\nstatus: {conditions: "
                                                                       "[{type: "
                                                                       "Complete, status: "
                                                                       "\"True\"}]}\n");

    CU_ASSERT_EQUAL(t->n_placed_before, 3);
    CU_ASSERT_EQUAL(t->n_list, 3); /* two of dep-1, db-0 */
    CU_ASSERT_STRING_EQUAL(outcome(t, "db-0"), "node");
    CU_ASSERT_EQUAL(scheduled(t), 3);
    bh_trial_free(t);
}

static void test_refused_pods_of_workloads(void)
{
    CU_ASSERT_TRUE(refused(
        "lr.yaml",
        "apiVersion: v1\nkind: LimitRange\nmetadata: {name: l}\nspec: {limits: [{type: Container, "
        "max: {cpu: 1m}}]}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: dep}\n"
        "spec: {replicas: 2, " SELECTOR ", template: " TEMPLATE "}\n",
        "lr.yaml: document 2 (line 6): Deployment default/dep: ReplicaSet default/dep-"));
    CU_ASSERT_TRUE(refused("many.yaml",
                           "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: r}\nspec: "
                           "{replicas: 2000000000, " SELECTOR ", template: " TEMPLATE "}\n",
                           "more than 100000 pods are asked for"));
}

/* ---- runs ------------------------------------------------------------------------------------ */

static void test_each_pod_counts_for_the_next(void)
{
    struct bh_trial *t = run(NODE("a", "") NODE("b", "") BIG_POD("p1", "3", "")
                                 BIG_POD("p2", "3", "") BIG_POD("p3", "3", ""));

    CU_ASSERT_STRING_EQUAL(outcome(t, "p1"), "a");
    CU_ASSERT_STRING_EQUAL(outcome(t, "p2"), "b");
    CU_ASSERT_TRUE(
        begins(outcome(t, "p3"), "unschedulable[0/2 nodes are available: 2 Insufficient cpu."));
    bh_trial_free(t);
}

/* What cannot go yet is tried again when somebody it waits for is there. */
static void test_waiting_for_a_later_pod(void)
{
    struct bh_trial *t = run(NODE("a", "") POD(
        "first", "  affinity: {podAffinity: "
                 "{requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "
                 "kubernetes.io/hostname, labelSelector: {matchLabels: {app: "
                 "second}}}]}}\n") POD("second", ""));

    CU_ASSERT_STRING_EQUAL(outcome(t, "first"), "a");
    CU_ASSERT_EQUAL(t->list[0]->attempts, 2);
    bh_trial_free(t);
}

static void test_preemption_and_budgets(void)
{
    static const char cluster[] = NODE("n1", "") NODE(
        "n2",
        "") "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b}\nspec: "
            "{minAvailable: 1, selector: {matchLabels: {app: guarded}}}\n" BIG_POD(
                "guarded", "3", "  nodeName: n1\n") BIG_POD("free", "3", "  nodeName: n2\n")
                POD("gated", "  schedulingGates: [{name: g}]\n")
                    BIG_POD("vip", "2", "  priority: 10\n");
    struct bh_trial_options o = plain;
    struct bh_trial *t = run(cluster);

    CU_ASSERT_STRING_EQUAL(outcome(t, "vip"), "n2");
    CU_ASSERT_TRUE(begins(outcome(t, "free"), "preempted["));
    CU_ASSERT_TRUE(begins(outcome(t, "gated"), "gated[waiting for scheduling gates: [g]]"));
    const struct bh_trial_summary s = bh_trial_summarize(t);
    CU_ASSERT_EQUAL(s.scheduled, 1);
    CU_ASSERT_EQUAL(s.preempted, 1);
    CU_ASSERT_EQUAL(s.gated, 1);
    bh_trial_free(t);

    o.no_preemption = true;
    t = load_with(&o, "no.yaml", cluster);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    bh_trial_run(t);
    CU_ASSERT_TRUE(begins(outcome(t, "vip"), "unschedulable[0/2 nodes"));
    bh_trial_free(t);
}

/* A budget allows as many as it has healthy pods to spare, and fewer after each. */
static void test_budgets_follow_the_pods(void)
{
    struct bh_trial *t = run(NODE("n1", "") NODE(
        "n2",
        "") "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b}\nspec: "
            "{maxUnavailable: 1, selector: {matchLabels: {app: g}}}\n"
            "---\napiVersion: v1\nkind: Pod\nmetadata: {name: g1, labels: {app: g}}\nspec: "
            "{nodeName: "
            "n1, " CONTAINERS("cpu: 3") "}\n"
                                        "---\napiVersion: v1\nkind: Pod\nmetadata: {name: g2, "
                                        "labels: {app: g}}\nspec: {nodeName: "
                                        "n2, " CONTAINERS("cpu: 3") "}\n" BIG_POD(
                                            "v1", "3", "  priority: 10\n")
                                            BIG_POD("v2", "3", "  priority: 10\n"));
    const struct bh_json *pdb;
    struct bh_arena a;

    CU_ASSERT_EQUAL(scheduled(t), 2);
    bh_arena_init(&a, 0);
    pdb = bh_pb_to_json(
        &a, bh_engine_get_object(t->w.engine, BH_KIND_PODDISRUPTIONBUDGET, "default", "b"));
    CU_ASSERT_EQUAL(bh_json_get_i64(bh_json_get(pdb, "status"), "expectedPods", -1), 2);
    CU_ASSERT_EQUAL(bh_json_get_i64(bh_json_get(pdb, "status"), "desiredHealthy", -1), 1);
    CU_ASSERT_EQUAL(bh_json_get_i64(bh_json_get(pdb, "status"), "disruptionsAllowed", -1), 0);
    bh_arena_fini(&a);
    bh_trial_free(t);
}

static void test_only_one_pod(void)
{
    struct bh_trial_options o = plain;

    o.only = "default/p2";
    struct bh_trial *t =
        load_with(&o, "only.yaml", NODE("a", "") BIG_POD("p1", "3", "") BIG_POD("p2", "3", ""));
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    bh_trial_run(t);
    CU_ASSERT_EQUAL(t->n_list, 1);
    CU_ASSERT_STRING_EQUAL(outcome(t, "p2"), "a");
    bh_trial_free(t);
}

static void test_no_nodes(void)
{
    struct bh_trial *t = run(POD("p", ""));

    CU_ASSERT_TRUE(begins(outcome(t, "p"), "unschedulable[no nodes available to schedule pods]"));
    CU_ASSERT_EQUAL(t->n_warnings, 1);
    bh_trial_free(t);
}

/* ---- volumes and devices --------------------------------------------------------------------- */

static void test_volumes_are_taken(void)
{
    struct bh_trial *t = run(NODE("n1", "") NODE(
        "n2",
        "") "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: local}\n"
            "provisioner: kubernetes.io/no-provisioner\nvolumeBindingMode: WaitForFirstConsumer\n"
            "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: now, "
            "annotations: "
            "{storageclass.kubernetes.io/is-default-class: \"true\"}}\nprovisioner: "
            "csi.example.com\n"
            "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: pv}\nspec: {capacity: "
            "{storage: 5Gi}, accessModes: [ReadWriteOnce], storageClassName: local, local: {path: "
            "/x}, "
            "nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: "
            "kubernetes.io/hostname, operator: In, values: [n2]}]}]}}}\n"
            "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec: {replicas: "
            "2, "
            "serviceName: s, " SELECTOR ", template: " TEMPLATE
            ", volumeClaimTemplates: [{metadata: "
            "{name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: local, "
            "resources: "
            "{requests: {storage: 1Gi}}}}]}\n"
            "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: now}\nspec: "
            "{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n" POD(
                "uses", "  volumes: [{name: v, persistentVolumeClaim: {claimName: now}}]\n")
                                 POD("own", "  volumes: [{name: v, ephemeral: "
                                            "{volumeClaimTemplate: {spec: {accessModes: "
                                            "[ReadWriteOnce], resources: {requests: {storage: "
                                            "1Gi}}}}}}]\n")
                                     POD("lost", "  volumes: [{name: v, persistentVolumeClaim: "
                                                 "{claimName: none}}]\n"));

    CU_ASSERT_STRING_EQUAL(outcome(t, "db-0"), "n2");
    CU_ASSERT_TRUE(begins(outcome(t, "db-1"), "unschedulable[0/2 nodes are available: 2 node(s) "
                                              "didn't find available persistent volumes to bind."));
    CU_ASSERT_TRUE(begins(outcome(t, "uses"), "n"));
    CU_ASSERT_TRUE(begins(outcome(t, "own"), "n"));
    CU_ASSERT_TRUE(begins(outcome(t, "lost"), "unschedulable[0/2 nodes are available: "
                                              "persistentvolumeclaim \"none\" not found."));
    bh_trial_free(t);
}

static void test_devices_are_taken(void)
{
    struct bh_trial *t = run(NODE(
        "n1",
        "") "---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\nspec: "
            "{selectors: [{cel: {expression: 'device.driver == \"d\"'}}]}\n"
            "---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\nspec: "
            "{driver: d, nodeName: n1, pool: {name: n1, generation: 1, resourceSliceCount: 1}, "
            "devices: "
            "[{name: g0}, {name: g1}]}\n"
            "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: "
            "one}\n"
            "spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}\n"
            "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: "
            "shared}\nspec: "
            "{devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}\n" POD(
                "s1", "  resourceClaims: [{name: g, resourceClaimName: shared}]\n")
                                 POD("s2",
                                     "  resourceClaims: [{name: g, resourceClaimName: shared}]\n")
                                     POD("t1", "  resourceClaims: [{name: g, "
                                               "resourceClaimTemplateName: one}]\n")
                                         POD("t2", "  resourceClaims: [{name: g, "
                                                   "resourceClaimTemplateName: one}]\n")
                                             POD("none", "  resourceClaims: [{name: g, "
                                                         "resourceClaimTemplateName: none}]\n"));

    CU_ASSERT_STRING_EQUAL(outcome(t, "s1"), "n1");
    CU_ASSERT_STRING_EQUAL(outcome(t, "s2"), "n1");
    CU_ASSERT_STRING_EQUAL(outcome(t, "t1"), "n1");
    CU_ASSERT_TRUE(begins(outcome(t, "t2"),
                          "unschedulable[0/1 nodes are available: 1 cannot allocate all claims."));
    CU_ASSERT_TRUE(
        begins(outcome(t, "none"), "gated[pod \"default/none\": ResourceClaim not created"));
    bh_trial_free(t);
}

/* ---- counting -------------------------------------------------------------------------------- */

static struct bh_json *count(struct bh_arena *a, const char *text, int64_t max)
{
    struct bh_trial_options o = plain;
    struct bh_buf out = {0};
    struct bh_json *v = NULL;

    o.form = BH_FORM_JSON;
    struct bh_trial *t = load_with(&o, "count.yaml", text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    if (bh_trial_count(t, max, &out, &error) == 0)
        CU_ASSERT_EQUAL(bh_json_parse(a, bh_buf_str(&out), out.n, BH_JSON_STRICT, &v, &error), 0);
    bh_buf_fini(&out);
    bh_trial_free(t);
    return v;
}

static void test_counting(void)
{
    static const char text[] =
        NODE("a", "") NODE("b", "") BIG_POD("big", "3", "  nodeName: b\n") BIG_POD("p", "500m", "");
    struct bh_arena a;

    bh_arena_init(&a, 0);
    const struct bh_json *v = count(&a, text, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    CU_ASSERT_EQUAL(bh_json_get_i64(v, "total", -1), 10);
    CU_ASSERT_STRING_EQUAL(bh_json_get_str(v, "stopped"), "Unschedulable");
    const struct bh_json *nodes = bh_json_get(v, "nodes");
    CU_ASSERT_EQUAL_FATAL(nodes->c.n, 2);
    CU_ASSERT_STRING_EQUAL(bh_json_get_str(bh_json_at(nodes, 0), "node"), "a");
    CU_ASSERT_EQUAL(bh_json_get_i64(bh_json_at(nodes, 0), "count", -1), 8);
    CU_ASSERT_TRUE(
        begins(bh_json_get_str(v, "message"), "0/2 nodes are available: 2 Insufficient cpu."));
    CU_ASSERT_EQUAL(bh_json_get(v, "rejectedGroups")->c.n, 1);
    v = count(&a, text, 3);
    CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    CU_ASSERT_EQUAL(bh_json_get_i64(v, "total", -1), 3);
    CU_ASSERT_STRING_EQUAL(bh_json_get_str(v, "stopped"), "Limit");
    CU_ASSERT_PTR_NULL(count(&a, NODE("a", "") POD("p", "") POD("q", ""), 0));
    CU_ASSERT_PTR_NOT_NULL(strstr(error.msg, "2 are pending: say which with --pod"));
    CU_ASSERT_PTR_NULL(count(&a, NODE("a", ""), 0));
    bh_arena_fini(&a);
}

/* Each copy has claims of its own. */
static void test_counting_devices(void)
{
    struct bh_arena a;

    bh_arena_init(&a, 0);
    const struct bh_json *v = count(
        &a,
        NODE("n1", "") "---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: "
                       "gpu}\nspec: {}\n"
                       "---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: "
                       "s}\nspec: "
                       "{driver: d, nodeName: n1, pool: {name: n1, generation: 1, "
                       "resourceSliceCount: 1}, devices: "
                       "[{name: g0}, {name: g1}, {name: g2}]}\n"
                       "---\napiVersion: resource.k8s.io/v1\nkind: "
                       "ResourceClaimTemplate\nmetadata: {name: one}\n"
                       "spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: "
                       "gpu}}]}}}\n" POD(
                           "t", "  resourceClaims: [{name: g, resourceClaimTemplateName: one}]\n"),
        0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    CU_ASSERT_EQUAL(bh_json_get_i64(v, "total", -1), 3);
    bh_arena_fini(&a);
}

/* ---- recorded decisions ---------------------------------------------------------------------- */

/* As an export: everything has a uid. */
static void add_uid(struct bh_arena *a, struct bh_json *obj)
{
    struct bh_json *meta = bh_json_obj_at(a, obj, "metadata");
    const char *ns = bh_json_get_str(meta, "namespace");

    if (!bh_json_get(meta, "uid"))
        bh_json_set_str(a, meta, "uid",
                        bh_arena_printf(a, "%s-%s", ns ? ns : "", bh_json_get_str(meta, "name")));
}

static bool same_victims(const struct bh_json *want, const struct bh_json *have)
{
    size_t n = 0;

    bh_json_each(v, have) {
        BH_CLEANUP(bh_freep)
        char *key =
            bh_asprintf("%s/%s", bh_json_get_str(v, "namespace"), bh_json_get_str(v, "name"));
        bh_json_each(w, want) {
            n += bh_streq(bh_json_cstr(w), key);
        }
    }
    return want && have && want->c.n == have->c.n && n == want->c.n;
}

/* Does the explanation of the first attempt say what was recorded? */
static bool agrees(const struct bh_json *expect, const struct bh_json *e)
{
    const char *chosen = bh_json_get_str(expect, "chosen"), *node = bh_json_get_str(e, "nodeName");
    const char *message = bh_json_get_str(expect, "message");
    const struct bh_json *pre = bh_json_get(e, "preemption"),
                         *outcomes = bh_json_get(expect, "preempt");
    bool found = !outcomes;

    if (chosen) {
        bh_json_each(r, bh_json_get(e, "ranking")) {
            const struct bh_json *want =
                bh_json_get(bh_json_get(expect, "total"), bh_json_get_str(r, "node"));
            if (want && !bh_json_equal(want, bh_json_get(r, "total")))
                return false;
            bh_json_each(s, bh_json_get(r, "plugins")) {
                if (bh_json_get_i64(s, "normalized", -1) * bh_json_get_i64(s, "weight", -1) !=
                    bh_json_get_i64(s, "weighted", -2))
                    return false;
            }
        }
        return node && bh_streq(chosen, node);
    }
    bh_json_each(o, outcomes) {
        found |= pre && bh_json_equal(bh_json_get(o, "node"), bh_json_get(pre, "nominatedNode")) &&
                 same_victims(bh_json_get(o, "victims"), bh_json_get(pre, "victims"));
    }
    return found && message && bh_json_get_str(e, "fitMessage") &&
           bh_streq(message, bh_json_get_str(e, "fitMessage"));
}

/* The case's objects, the pods that its steps have placed so far, and the pod of this step. */
static bool replay_step(struct bh_arena *a, const struct bh_json *cas, const struct bh_json *step)
{
    struct bh_trial_options o = plain;
    struct bh_json *list = bh_json_new(a, BH_JSON_OBJECT), *report = NULL;
    struct bh_json *items = bh_json_set(a, list, "items", bh_json_new(a, BH_JSON_ARRAY));
    struct bh_json *pod = bh_json_clone(a, bh_json_get(step, "object"));
    struct bh_buf text = {0}, out = {0};
    char only[512];

    bh_json_set_str(a, list, "apiVersion", "v1");
    bh_json_set_str(a, list, "kind", "List");
    add_uid(a, pod);
    bh_json_push(items, pod);
    bh_json_each(obj, bh_json_get(cas, "objects")) {
        struct bh_json *copy = bh_json_clone(a, obj);
        add_uid(a, copy);
        bh_json_push(items, copy);
    }
    bh_json_write(&text, list);
    const char *ns = bh_json_cstr(bh_json_path(pod, "metadata.namespace"));
    snprintf(only, sizeof only, "%s/%s", ns ? ns : "default",
             bh_json_cstr(bh_json_path(pod, "metadata.name")));
    o.only = only;
    o.explain = true;
    o.form = BH_FORM_JSON;
    struct bh_trial *t = load_with(&o, "case.json", bh_buf_str(&text));
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    bh_trial_run(t);
    bh_trial_report(t, &out);
    CU_ASSERT_EQUAL_FATAL(bh_json_parse(a, bh_buf_str(&out), out.n, 0, &report, &error), 0);
    bh_trial_free(t);
    const struct bh_json *p = bh_json_at(bh_json_get(report, "pods"), 0);
    bool ok = agrees(bh_json_get(step, "expect"), bh_json_at(bh_json_get(p, "explanations"), 0));
    if (!ok)
        printf("# %s, pod %s\n", bh_json_get_str(cas, "name"), only);
    bh_buf_fini(&text);
    bh_buf_fini(&out);
    return ok;
}

/* Up to the first step that is no plain decision. */
static unsigned replay_case(struct bh_arena *a, struct bh_json *cas)
{
    unsigned n = 0;

    bh_json_each(s, bh_json_get(cas, "steps")) {
        const struct bh_json *expect = bh_json_get(s, "expect");
        const char *chosen = bh_json_get_str(expect, "chosen");
        if (!bh_streq(bh_json_get_str(s, "op"), "schedule") || bh_json_get(expect, "error"))
            break;
        CU_ASSERT_TRUE(replay_step(a, cas, s));
        n++;
        if (!chosen)
            break;
        struct bh_json *placed = bh_json_clone(a, bh_json_get(s, "object"));
        bh_json_set_str(a, bh_json_obj_at(a, placed, "spec"), "nodeName", chosen);
        bh_json_push(bh_json_get(cas, "objects"), placed);
    }
    return n;
}

static void test_recorded_decisions(void)
{
    static const char *const files[] = {"resources",   "taints", "node_affinity",
                                        "ports_names", "images", "preemption"};
    char *line = bh_malloc(8 << 20);
    unsigned n = 0;

    for (size_t i = 0; i < BH_ARRAY_LEN(files); i++) {
        BH_CLEANUP(bh_freep) char *path = bh_asprintf("tests/conformance/%s.jsonl.gz", files[i]);
        gzFile f = gzopen(path, "rb");
        CU_ASSERT_PTR_NOT_NULL_FATAL(f);
        for (int k = 0; k < 8 && gzgets(f, line, 8 << 20); k++) {
            struct bh_json *cas;
            struct bh_arena a;
            bh_arena_init(&a, 0);
            CU_ASSERT_EQUAL_FATAL(bh_json_parse(&a, line, strlen(line), 0, &cas, &error), 0);
            const struct bh_json *config = bh_json_get(cas, "config");
            if (!config || config->type == BH_JSON_NULL)
                n += replay_case(&a, cas);
            bh_arena_fini(&a);
        }
        gzclose(f);
    }
    free(line);
    printf("# %u decisions\n", n);
    CU_ASSERT_TRUE(n > 100);
}

BH_TESTS("simulator/trial", {"YAML, JSON, lists and typed lists", test_forms_of_files},
         {"errors name file, document, object and field", test_errors_name_the_place},
         {"hostile values are refused or harmless", test_hostile_values},
         {"kinds that do not matter, and kinds nobody knows", test_kinds_that_do_not_matter},
         {"of two objects of one name the later counts", test_the_later_object_counts},
         {"manifests are defaulted, admitted and validated", test_manifests_are_admitted},
         {"objects with a uid are taken as they are",
          test_objects_with_a_uid_are_taken_as_they_are},
         {"workloads become pods", test_workloads_become_pods},
         {"names and uids repeat from run to run", test_names_repeat},
         {"exported workloads are completed", test_exported_workloads_are_completed},
         {"refused pods of workloads are errors", test_refused_pods_of_workloads},
         {"each pod counts for the next", test_each_pod_counts_for_the_next},
         {"a pod that waits for a later one is tried again", test_waiting_for_a_later_pod},
         {"preemption respects budgets", test_preemption_and_budgets},
         {"budgets follow the pods", test_budgets_follow_the_pods},
         {"--pod leaves the others out", test_only_one_pod}, {"no nodes", test_no_nodes},
         {"volumes are taken", test_volumes_are_taken},
         {"devices are taken", test_devices_are_taken}, {"counting what fits", test_counting},
         {"counting gives each copy its own claims", test_counting_devices},
         {"recorded decisions come out the same", test_recorded_decisions})
