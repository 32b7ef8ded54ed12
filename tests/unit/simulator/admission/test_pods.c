/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/admission/test_pods.c - what pods are given, refused and allowed to change
 */
#include "simulator/admission/admission.h"
#include "tests/unit/simulator/admission/admission_test.h"

static void test_defaults(void)
{
    struct fixture f;
    struct bh_sim_obj *o;
    struct bh_json *c;

    fixture_init(&f, NULL, false);
    o = make(&f, "Pod", "default",
             "metadata: {name: p}\n"
             "spec:\n"
             "  containers:\n"
             "  - name: c\n    image: reg:5000/i\n    ports: [{containerPort: 80}]\n"
             "    readinessProbe: {httpGet: {port: 80}}\n"
             "  - {name: d, image: 'i:1.2'}\n"
             "  - {name: e, image: 'i:latest'}\n"
             "  - {name: g, image: 'i@sha256:0123'}\n"
             "  volumes: [{name: v}, {name: s, secret: {secretName: x}}]\n"
             "status: {phase: Running, podIP: 1.2.3.4}\n");
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "spec.restartPolicy"), "Always");
    EQ(field(&f, o, "spec.dnsPolicy"), "ClusterFirst");
    EQ(field(&f, o, "spec.schedulerName"), "default-scheduler");
    EQ(field(&f, o, "spec.terminationGracePeriodSeconds"), "30");
    EQ(field(&f, o, "spec.enableServiceLinks"), "true");
    EQ(field(&f, o, "spec.serviceAccountName"), "default");
    EQ(field(&f, o, "spec.priority"), "0");
    EQ(field(&f, o, "spec.preemptionPolicy"), "PreemptLowerPriority");
    EQ(field(&f, o, "status"), "{\"phase\":\"Pending\",\"qosClass\":\"BestEffort\"}");
    EQ(field(&f, o, "spec.volumes"), "[{\"name\":\"v\",\"emptyDir\":{}},{\"name\":\"s\",\"secret\":"
                                     "{\"secretName\":\"x\",\"defaultMode\":420}}]");
    c = bh_json_at(bh_json_path(bh_sim_obj_tree(&f.a, o), "spec.containers"), 0);
    EQ(bh_json_get_str(c, "imagePullPolicy"), "Always");
    EQ(bh_json_get_str(c, "terminationMessagePath"), "/dev/termination-log");
    EQ(bh_json_get_str(bh_json_at(bh_json_get(c, "ports"), 0), "protocol"), "TCP");
    EQ(bh_json_get_str(bh_json_path(c, "readinessProbe.httpGet"), "scheme"), "HTTP");
    CU_ASSERT_EQUAL(bh_json_get_i64(bh_json_get(c, "readinessProbe"), "failureThreshold", 0), 3);
    c = c->next;
    EQ(bh_json_get_str(c, "imagePullPolicy"), "IfNotPresent");
    c = c->next;
    EQ(bh_json_get_str(c, "imagePullPolicy"), "Always");
    c = c->next;
    EQ(bh_json_get_str(c, "imagePullPolicy"), "IfNotPresent");
    fixture_fini(&f);
}

static void test_idempotent(void)
{
    struct fixture f;
    struct bh_sim_obj *o;
    uint64_t rv;

    fixture_init(&f, NULL, false);
    o = make(&f, "Pod", "default",
             POD("  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
                 "[{topologyKey: z, labelSelector: {}, matchLabelKeys: [rev]}]}}\n"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    rv = o->rv;
    CU_ASSERT_EQUAL(change(&f, "Pod", "default", "p", BH_SIM_MAIN, "metadata.labels.app", "x"), 0);
    CU_ASSERT_EQUAL(get(&f, "pods", "default", "p")->rv, rv);
    /* A replacement that leaves out what admission filled in is the same pod. */
    CU_ASSERT_EQUAL(change(&f, "Pod", "default", "p", BH_SIM_MAIN, "spec.priority", NULL), 0);
    CU_ASSERT_EQUAL(get(&f, "pods", "default", "p")->rv, rv);
    fixture_fini(&f);
}

static const char *request(struct fixture *f, const struct bh_sim_obj *o, const char *list,
                           size_t i)
{
    const struct bh_json *c = bh_json_at(bh_json_path(bh_sim_obj_tree(&f->a, o), list), i);
    struct bh_buf b = {0};
    const char *s;

    bh_json_write(&b, bh_json_path(c, "resources.requests"));
    s = bh_arena_strdup(&f->a, bh_buf_str(&b));
    bh_buf_fini(&b);
    return s;
}

static void test_requests(void)
{
    struct fixture f;
    struct bh_sim_obj *o;

    fixture_init(&f, NULL, false);
    o = make(&f, "Pod", "default",
             "metadata: {name: p}\n"
             "spec:\n"
             "  initContainers: [{name: i, image: i, resources: {limits: {memory: 1Gi}}}]\n"
             "  containers:\n"
             "  - {name: c, image: i, resources: {limits: {cpu: 1.5, memory: 1024Mi}, "
             "requests: {cpu: 1000m}}}\n"
             "  - {name: d, image: i}\n");
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(request(&f, o, "spec.containers", 0), "{\"cpu\":\"1\",\"memory\":\"1Gi\"}");
    EQ(request(&f, o, "spec.initContainers", 0), "{\"memory\":\"1Gi\"}");
    EQ(field(&f, o, "status.qosClass"), "Burstable");
    o = make(
        &f, "Pod", "default",
        "metadata: {name: q}\n"
        "spec: {containers: [{name: c, image: i, resources: {limits: {cpu: 1, memory: 1Gi}}}]}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "status.qosClass"), "Guaranteed");
    /* Pod level: filled from the containers where they say something, else from the limit. */
    o = make(&f, "Pod", "default",
             "metadata: {name: r}\n"
             "spec:\n  resources: {limits: {cpu: 4, memory: 4Gi, hugepages-2Mi: 4Mi}}\n"
             "  containers: [{name: c, image: i, resources: {requests: {cpu: 300m}}}, "
             "{name: d, image: i, resources: {requests: {cpu: 700m}}}]\n"
             "  initContainers: [{name: s, image: i, restartPolicy: Always, resources: {requests: "
             "{cpu: 1}}}]\n");
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "spec.resources.requests"),
       "{\"cpu\":\"2\",\"memory\":\"4Gi\",\"hugepages-2Mi\":\"4Mi\"}");
    CU_ASSERT_PTR_NULL(make(&f, "Pod", "default",
                            "metadata: {name: s}\nspec: {containers: [{name: c, image: i, "
                            "resources: {requests: {cpu: many}}}]}"));
    CU_ASSERT_EQUAL(f.e.code, 400);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.e.message, "quantities must match the regular expression"));
    fixture_fini(&f);
}

/* What decisions depend on is the same whether a server took the object or only a decision. */
static void test_unseen(void)
{
    static const char text[] =
        "kind: Pod\nmetadata: {name: p}\n"
        "spec:\n  hostNetwork: true\n  resources: {limits: {cpu: \"4\", memory: 4Gi}}\n"
        "  initContainers: [{name: i, image: i, resources: {limits: {memory: 1Gi}}}]\n"
        "  containers: [{name: c, image: i, ports: [{containerPort: 80}], resources: "
        "{limits: {cpu: \"3\"}}}]\n";
    static const char *const same[] = {"spec.containers", "spec.initContainers"};
    struct bh_buf b = {0};
    struct fixture f;

    fixture_init(&f, NULL, false);
    struct bh_json *pod = yaml(&f, text), *node;
    bh_api_defaults(&f.a, pod);
    struct bh_sim_obj *o = make(&f, "Pod", "default", text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    for (size_t i = 0; i < BH_ARRAY_LEN(same); i++) {
        const struct bh_json *c = bh_json_at(bh_json_path(pod, same[i]), 0);
        bh_buf_reset(&b);
        bh_json_write(&b, bh_json_path(c, "resources.requests"));
        EQ(request(&f, o, same[i], 0), bh_buf_str(&b));
    }
    bh_buf_reset(&b);
    bh_json_write(&b, bh_json_path(pod, "spec.resources.requests"));
    EQ(bh_buf_str(&b), "{\"cpu\":\"3\",\"memory\":\"1Gi\"}");
    EQ(field(&f, o, "spec.resources.requests"), bh_buf_str(&b));
    bh_buf_fini(&b);
    const struct bh_json *port =
        bh_json_at(bh_json_path(bh_json_at(bh_json_path(pod, "spec.containers"), 0), "ports"), 0);
    CU_ASSERT_EQUAL(bh_json_get_i64(port, "hostPort", 0), 80);
    EQ(bh_tree_str(pod, "spec.schedulerName"), "default-scheduler");
    node = yaml(&f, "kind: Node\nmetadata: {name: n}\nstatus: {capacity: {cpu: 4}}");
    bh_api_defaults(&f.a, node);
    CU_ASSERT_EQUAL(bh_tree_i64(node, "status.allocatable.cpu", 0), 4);
    fixture_fini(&f);
}

static void test_host_network(void)
{
    struct fixture f;
    struct bh_sim_obj *o;

    fixture_init(&f, NULL, false);
    o = make(&f, "Pod", "default",
             "metadata: {name: p}\nspec: {hostNetwork: true, containers: [{name: c, image: i, "
             "ports: [{containerPort: 80}, {containerPort: 81, hostPort: 81}]}]}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    CU_ASSERT_PTR_NOT_NULL(strstr(o->json, "\"containerPort\":80,\"protocol\":\"TCP\","
                                           "\"hostPort\":80"));
    fixture_fini(&f);
}

static void test_priority(void)
{
    struct fixture f;
    struct bh_sim_obj *o;

    fixture_init(&f, NULL, false);
    CU_ASSERT_PTR_NOT_NULL(make(&f, "PriorityClass", "",
                                "{metadata: {name: high}, value: 1000, preemptionPolicy: Never}"));
    o = make(&f, "Pod", "default", POD("  priorityClassName: high\n"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "spec.priority"), "1000");
    EQ(field(&f, o, "spec.preemptionPolicy"), "Never");
    bh_sim_delete(f.s, type_of("pods"), "default", "p", NULL, NULL);
    CU_ASSERT_PTR_NULL(make(&f, "Pod", "default", POD("  priorityClassName: none\n")));
    CU_ASSERT_EQUAL(f.e.code, 403);
    EQ(f.e.message, "pods \"p\" is forbidden: no PriorityClass with name none was found");
    CU_ASSERT_PTR_NULL(make(&f, "Pod", "default", POD("  priority: 7\n")));
    EQ(f.e.message, "pods \"p\" is forbidden: the integer value of priority (7) must not be "
                    "provided in pod spec; priority admission controller computed 0 from the given "
                    "PriorityClass name");
    CU_ASSERT_PTR_NULL(make(&f, "Pod", "default",
                            POD("  priorityClassName: high\n  preemptionPolicy: "
                                "PreemptLowerPriority\n")));
    EQ(f.e.message, "pods \"p\" is forbidden: the string value of PreemptionPolicy "
                    "(PreemptLowerPriority) must not be provided in pod spec; priority admission "
                    "controller computed Never from the given PriorityClass name");
    fixture_fini(&f);
}

static void test_global_default(void)
{
    struct fixture f;
    struct bh_sim_obj *o;

    fixture_init(&f, NULL, false);
    make(&f, "PriorityClass", "", "{metadata: {name: b}, value: 20, globalDefault: true}");
    make(&f, "PriorityClass", "", "{metadata: {name: a}, value: 30, globalDefault: true}");
    o = make(&f, "Pod", "default", POD(""));
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "spec.priority"), "20");
    EQ(field(&f, o, "spec.priorityClassName"), "b");
    /* Never recomputed: the pod keeps what it was born with. */
    bh_sim_delete(f.s, type_of("priorityclasses"), "", "b", NULL, NULL);
    CU_ASSERT_EQUAL(change(&f, "Pod", "default", "p", BH_SIM_MAIN, "metadata.labels.n", "m"), 0);
    EQ(field(&f, get(&f, "pods", "default", "p"), "spec.priority"), "20");
    fixture_fini(&f);
}

static void test_tolerations(void)
{
    struct fixture f;
    struct bh_sim_obj *o;

    fixture_init(&f, NULL, false);
    o = make(&f, "Pod", "default",
             POD("  tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists}]\n"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "spec.tolerations"),
       "[{\"key\":\"node.kubernetes.io/not-ready\",\"operator\":\"Exists\"},{\"key\":"
       "\"node.kubernetes.io/unreachable\",\"operator\":\"Exists\",\"effect\":\"NoExecute\","
       "\"tolerationSeconds\":300}]");
    fixture_fini(&f);
}

static void test_label_keys(void)
{
    struct fixture f;
    struct bh_sim_obj *o;

    fixture_init(&f, NULL, false);
    o = make(
        &f, "Pod", "default",
        POD("  topologySpreadConstraints:\n"
            "  - {maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule, "
            "labelSelector: {matchLabels: {app: x}}, matchLabelKeys: [rev, none]}\n"
            "  affinity:\n"
            "    podAffinity:\n"
            "      preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, "
            "podAffinityTerm: {topologyKey: z, labelSelector: {}, mismatchLabelKeys: [app]}}]\n"
            "    podAntiAffinity:\n"
            "      requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: z, "
            "labelSelector: {}, matchLabelKeys: [none]}]\n"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    CU_ASSERT_PTR_NOT_NULL(strstr(o->json, "\"matchLabels\":{\"app\":\"x\"},\"matchExpressions\":"
                                           "[{\"key\":\"rev\",\"operator\":\"In\",\"values\":"
                                           "[\"1\"]}]}"));
    CU_ASSERT_PTR_NOT_NULL(strstr(o->json, "\"labelSelector\":{\"matchExpressions\":[{\"key\":"
                                           "\"app\",\"operator\":\"NotIn\",\"values\":[\"x\"]}]}"));
    /* A key that the pod does not have adds nothing. */
    EQ(field(&f, o, "spec.affinity.podAntiAffinity"),
       "{\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"topologyKey\":\"z\","
       "\"labelSelector\":{},\"matchLabelKeys\":[\"none\"]}]}");
    fixture_fini(&f);
}

static void test_gates(void)
{
    struct fixture f;
    struct bh_sim_obj *o;

    fixture_init(&f, NULL, false);
    o = make(&f, "Pod", "default", POD("  schedulingGates: [{name: a}, {name: b}]\n"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    CU_ASSERT_PTR_NOT_NULL(strstr(o->json, "\"reason\":\"SchedulingGated\",\"message\":"
                                           "\"Scheduling is blocked due to non-empty scheduling "
                                           "gates\""));
    CU_ASSERT_EQUAL(
        change(&f, "Pod", "default", "p", BH_SIM_MAIN, "spec.schedulingGates", "[{name: c}]"), 422);
    EQ(causes(&f),
       "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new "
       "scheduling gate 'c'");
    /* While it is gated its node selector may grow. */
    CU_ASSERT_EQUAL(change(&f, "Pod", "default", "p", BH_SIM_MAIN, "spec.nodeSelector", "{a: b}"),
                    0);
    CU_ASSERT_EQUAL(change(&f, "Pod", "default", "p", BH_SIM_MAIN, "spec.nodeSelector", "{a: c}"),
                    422);
    CU_ASSERT_EQUAL(change(&f, "Pod", "default", "p", BH_SIM_MAIN, "spec.schedulingGates", "[]"),
                    0);
    CU_ASSERT_EQUAL(
        change(&f, "Pod", "default", "p", BH_SIM_MAIN, "spec.nodeSelector", "{a: b, d: e}"), 422);
    CU_ASSERT_PTR_NULL(make(&f, "Pod", "default",
                            "metadata: {name: q}\nspec: {containers: [{name: c, image: i}], "
                            "nodeName: n1, schedulingGates: [{name: a}, {name: a}]}"));
    EQ(causes(&f), "spec.schedulingGates[1]: Duplicate value: \"a\"\n"
                   "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been "
                   "cleared");
    fixture_fini(&f);
}

static void refused(struct fixture *f, const char *spec, const char *want)
{
    char text[1000];

    snprintf(text, sizeof(text), "metadata: {name: p}\nspec: %s", spec);
    CU_ASSERT_PTR_NULL(make(f, "Pod", "default", text));
    CU_ASSERT_EQUAL(f->e.code, 422);
    EQ(causes(f), want);
}
#define C "containers: [{name: c, image: i}]"

static void test_validation(void)
{
    struct fixture f;

    fixture_init(&f, NULL, false);
    refused(&f, "{}", "spec.containers: Required value");
    refused(&f, "{containers: [{}]}",
            "spec.containers[0].name: Required value\n"
            "spec.containers[0].image: Required value");
    refused(&f, "{containers: [{name: c, image: i}, {name: c, image: i}]}",
            "spec.containers[1].name: Duplicate value: \"c\"");
    refused(&f, "{containers: [{name: c, image: i, imagePullPolicy: Foo}]}",
            "spec.containers[0].imagePullPolicy: Unsupported value: \"Foo\": supported values: "
            "\"Always\", \"IfNotPresent\", \"Never\"");
    refused(&f, "{containers: [{name: c, image: i, ports: [{containerPort: 70000}]}]}",
            "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 "
            "and 65535, inclusive");
    refused(&f, "{containers: [{name: c, image: i, resources: {requests: {cpu: -1}}}]}",
            "spec.containers[0].resources.requests[cpu]: Invalid value: \"-1\": must be greater "
            "than or equal to 0");
    refused(
        &f,
        "{containers: [{name: c, image: i, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}]}",
        "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or "
        "equal to cpu limit of 1");
    refused(&f, "{containers: [{name: c, image: i, resources: {requests: {a.b/gpu: 1}}}]}",
            "spec.containers[0].resources.limits: Required value: Limit must be set for non "
            "overcommitable resources");
    refused(&f, "{" C ", restartPolicy: x, terminationGracePeriodSeconds: -1}",
            "spec.restartPolicy: Unsupported value: \"x\": supported values: \"Always\", "
            "\"OnFailure\", \"Never\"");
    refused(&f, "{containers: [{name: c, image: i, volumeMounts: [{name: v}]}]}",
            "spec.containers[0].volumeMounts[0].name: Not found: \"v\"\n"
            "spec.containers[0].volumeMounts[0].mountPath: Required value");
    fixture_fini(&f);
}

static void test_scheduling_validation(void)
{
    struct fixture f;

    fixture_init(&f, NULL, false);
    refused(&f,
            "{" C ", tolerations: [{operator: Equal, key: a, effect: NoSchedule, "
            "tolerationSeconds: 1}]}",
            "spec.tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' "
            "when `tolerationSeconds` is set");
    refused(&f, "{" C ", tolerations: [{key: a, operator: Exists, value: b}]}",
            "spec.tolerations[0].operator: Invalid value: \"b\": value must be empty when "
            "`operator` is 'Exists'");
    refused(&f, "{" C ", topologySpreadConstraints: [{maxSkew: 0, whenUnsatisfiable: x}]}",
            "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than "
            "zero\n"
            "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty\n"
            "spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: \"x\": "
            "supported values: \"DoNotSchedule\", \"ScheduleAnyway\"");
    refused(&f,
            "{" C ", affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
            "{nodeSelectorTerms: []}}}}",
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
            "nodeSelectorTerms: Required value: must have at least one node selector term");
    refused(&f,
            "{" C ", affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "
            "[{weight: 200, preference: {matchExpressions: [{key: a, operator: In}]}}]}}}",
            "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: "
            "Invalid value: 200: must be in the range 1-100\n"
            "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]."
            "preference.matchExpressions[0].values: Required value: must be specified when "
            "`operator` is 'In' or 'NotIn'");
    refused(
        &f,
        "{" C ", affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
        "[{labelSelector: {matchExpressions: [{key: a, operator: Foo}]}}]}}}",
        "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]."
        "labelSelector.matchExpressions[0].operator: Invalid value: \"Foo\": not a valid "
        "selector operator\n"
        "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]."
        "topologyKey: Required value: can not be empty\n"
        "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]."
        "topologyKey: Invalid value: \"\": name part must be non-empty\n"
        "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]."
        "topologyKey: Invalid value: \"\": name part must consist of alphanumeric characters, "
        "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  "
        "or 'my.name',  or '123-abc', regex used for validation is "
        "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')");
    fixture_fini(&f);
}

/* Containers for debugging come by a way of their own, and by no other. */
static void test_debugging(void)
{
#define DEBUG(value)                                                                               \
    change(&f, "Pod", "default", "p", BH_SIM_EPHEMERAL, "spec.ephemeralContainers", value)
    struct fixture f;

    fixture_init(&f, NULL, false);
    CU_ASSERT_PTR_NULL(
        make(&f, "Pod", "default", POD("  ephemeralContainers: [{name: d, image: i}]\n")));
    EQ(causes(&f), "spec.ephemeralContainers: Forbidden: cannot be set on create");
    make(&f, "Pod", "default", POD(""));
    CU_ASSERT_EQUAL(DEBUG("[{name: d, image: i, targetContainerName: c}]"), 0);
    CU_ASSERT_EQUAL(change(&f, "Pod", "default", "p", BH_SIM_MAIN, "spec.ephemeralContainers",
                           "[{name: x, image: i}]"),
                    422);
    CU_ASSERT_EQUAL(DEBUG("[]"), 422);
    EQ(causes(&f), "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"d\" may "
                   "not be removed\n");
    CU_ASSERT_EQUAL(DEBUG("[{name: d, image: other}, {name: c, image: i, ports: [{containerPort: "
                          "1}]}, {name: e, image: i, targetContainerName: none}]"),
                    422);
    EQ(causes(&f), "spec.ephemeralContainers[1].name: Duplicate value: \"c\"\n"
                   "spec.ephemeralContainers[1].ports: Forbidden: cannot be set for an Ephemeral "
                   "Container\n"
                   "spec.ephemeralContainers[2].targetContainerName: Not found: \"none\"\n"
                   "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"d\" may "
                   "not be changed\n");
    /* Whatever else stands there is not looked at. */
    CU_ASSERT_EQUAL(change(&f, "Pod", "default", "p", BH_SIM_EPHEMERAL, "spec.containers",
                           "[{name: z, image: z}]"),
                    0);
    CU_ASSERT_PTR_NOT_NULL(strstr(get(&f, "pods", "default", "p")->json, "\"name\":\"c\""));
    fixture_fini(&f);
}

static void test_update(void)
{
    struct fixture f;

    fixture_init(&f, NULL, false);
    make(&f, "Pod", "default", POD("  tolerations: [{key: a, operator: Exists}]\n"));
    CU_ASSERT_EQUAL(change(&f, "Pod", "default", "p", BH_SIM_MAIN, "spec.containers",
                           "[{name: c, image: other}]"),
                    0);
    EQ(bh_json_get_str(
           bh_json_at(bh_json_path(bh_sim_obj_tree(&f.a, get(&f, "pods", "default", "p")),
                                   "spec.containers"),
                      0),
           "image"),
       "other");
    CU_ASSERT_EQUAL(change(&f, "Pod", "default", "p", BH_SIM_MAIN, "spec.nodeName", "n1"), 422);
    CU_ASSERT_PTR_NOT_NULL(strstr(causes(&f), "spec: Forbidden: pod updates may not change fields "
                                              "other than `spec.containers[*].image`,"));
    CU_ASSERT_EQUAL(change(&f, "Pod", "default", "p", BH_SIM_MAIN, "spec.containers",
                           "[{name: c, image: i}, {name: d, image: i}]"),
                    422);
    EQ(causes(&f), "spec.containers: Forbidden: pod updates may not add or remove containers");
    CU_ASSERT_EQUAL(change(&f, "Pod", "default", "p", BH_SIM_MAIN, "spec.tolerations",
                           "[{key: b, operator: Exists}]"),
                    422);
    CU_ASSERT_PTR_NOT_NULL(strstr(causes(&f), "existing toleration can not be modified except its "
                                              "tolerationSeconds"));
    CU_ASSERT_EQUAL(
        change(&f, "Pod", "default", "p", BH_SIM_MAIN, "spec.activeDeadlineSeconds", "9"), 0);
    CU_ASSERT_EQUAL(
        change(&f, "Pod", "default", "p", BH_SIM_MAIN, "spec.activeDeadlineSeconds", "10"), 422);
    fixture_fini(&f);
}

static void test_limit_range(void)
{
    struct fixture f;
    struct bh_sim_obj *o;

    fixture_init(&f, NULL, false);
    CU_ASSERT_PTR_NOT_NULL(make(&f, "LimitRange", "default",
                                "metadata: {name: l}\nspec: {limits: [{type: Container, default: "
                                "{cpu: 500m}, min: {memory: 1Mi}, max: {cpu: 1}}]}"));
    o = make(&f, "Pod", "default", POD(""));
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(request(&f, o, "spec.containers", 0), "{\"cpu\":\"500m\",\"memory\":\"1Mi\"}");
    CU_ASSERT_PTR_NULL(make(&f, "Pod", "default",
                            "metadata: {name: q}\nspec: {containers: [{name: c, image: i, "
                            "resources: {limits: {cpu: 2}}}]}"));
    EQ(f.e.message,
       "pods \"q\" is forbidden: maximum cpu usage per Container is 1, but limit is 2");
    fixture_fini(&f);
}

static void test_binding(void)
{
    struct fixture f;

    fixture_init(&f, NULL, false);
    make(&f, "Node", "",
         "metadata: {name: n1, labels: {topology.kubernetes.io/zone: z1, other: o}}");
    make(&f, "Pod", "default", POD(""));
    CU_ASSERT_EQUAL(bh_sim_bind(f.s, "default", "p", NULL, "n1", NULL, NULL, &f.e), 0);
    EQ(field(&f, get(&f, "pods", "default", "p"), "metadata.labels"),
       "{\"app\":\"x\",\"rev\":\"1\",\"topology.kubernetes.io/zone\":\"z1\"}");
    fixture_fini(&f);
}

/* A patch may be held up on its way and come in after the binding. */
static void test_late_nomination(void)
{
    struct fixture f;

    fixture_init(&f, NULL, false);
    make(&f, "Pod", "default", POD(""));
    CU_ASSERT_EQUAL(
        change(&f, "Pod", "default", "p", BH_SIM_STATUS, "status.nominatedNodeName", "n1"), 0);
    CU_ASSERT_EQUAL(bh_sim_bind(f.s, "default", "p", NULL, "n1", NULL, NULL, &f.e), 0);
    EQ(field(&f, get(&f, "pods", "default", "p"), "status.nominatedNodeName"), "");
    CU_ASSERT_EQUAL(
        change(&f, "Pod", "default", "p", BH_SIM_STATUS, "status.nominatedNodeName", "n1"), 422);
    EQ(causes(&f), "status.nominatedNodeName: Forbidden: may not be set on pods that are already "
                   "bound to a node");
    CU_ASSERT_EQUAL(
        change(&f, "Pod", "default", "p", BH_SIM_STATUS, "status.nominatedNodeName", "\"\""), 0);
    CU_ASSERT_EQUAL(change(&f, "Pod", "default", "p", BH_SIM_STATUS, "status.phase", "Running"), 0);
    fixture_fini(&f);
}

/* Any shape of tree must come out as stored or refused, never crash. */
static void test_hostile(void)
{
    static const char *const specs[] = {
        "7",
        "[]",
        "{containers: 3}",
        "{containers: [1, null, [], x]}",
        "{containers: [{name: 3, image: [], resources: [], ports: [1, {}], env: [2]}]}",
        "{containers: [{name: c, image: i, resources: {limits: [1], requests: {cpu: []}}}]}",
        "{" C ", tolerations: {a: b}, affinity: [], topologySpreadConstraints: [3]}",
        "{" C ", tolerations: [3], affinity: {nodeAffinity: [], podAffinity: "
        "{requiredDuringSchedulingIgnoredDuringExecution: [1, {labelSelector: [], "
        "matchLabelKeys: [1]}]}}}",
        "{" C ", volumes: [1, {}, {name: {}}], schedulingGates: [1], initContainers: x}",
        "{" C ", overhead: [], resources: 3, nodeSelector: {a: 3}, priority: x}",
    };
    static const char *const kinds[] = {"Pod"};
    struct fixture f;
    char text[600];

    fixture_init(&f, NULL, false);
    for (size_t i = 0; i < BH_ARRAY_LEN(specs); i++) {
        snprintf(text, sizeof(text), "metadata: {name: h%zu, labels: {a: b}}\nspec: %s", i,
                 specs[i]);
        if (!make(&f, kinds[0], "default", text))
            CU_ASSERT(f.e.code >= 400);
    }
    fixture_fini(&f);
}

BH_TESTS("simulator/admission/pods", {"a pod is given upstream's defaults", test_defaults},
         {"containers for debugging are added to a pod that is there", test_debugging},
         {"defaults of defaults change nothing", test_idempotent},
         {"requests follow from limits, and the quality of service from both", test_requests},
         {"decisions see the same defaults in what no server has seen", test_unseen},
         {"host network gives host ports", test_host_network},
         {"priority comes from the class and only from it", test_priority},
         {"the lowest global default applies, once", test_global_default},
         {"not-ready and unreachable are tolerated for a while", test_tolerations},
         {"label keys become requirements at creation", test_label_keys},
         {"gates block scheduling and can only be taken away", test_gates},
         {"mistakes in a spec are named as upstream names them", test_validation},
         {"mistakes in scheduling fields too", test_scheduling_validation},
         {"an update changes images and adds tolerations, nothing else", test_update},
         {"a limit range fills in and refuses", test_limit_range},
         {"a bound pod carries its node's zone", test_binding},
         {"a nomination that comes after the binding is refused", test_late_nomination},
         {"odd shapes are stored or refused, never fatal", test_hostile})
