/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/admission/test_kinds.c - defaults and refusals of everything but pods
 */
#include "tests/unit/simulator/admission/admission_test.h"

#define TEMPLATE                                                                                   \
    "  template: {metadata: {labels: {app: x}, creationTimestamp: null}, spec: {containers: "      \
    "[{name: c, image: i}]}}\n"
#define WORKLOAD(extra)                                                                            \
    "metadata: {name: d}\nspec:\n  selector: {matchLabels: {app: x}}\n" TEMPLATE extra

static void test_node(void)
{
    struct fixture f;
    struct bh_sim_obj *o;

    fixture_init(&f, NULL, false);
    o = make(&f, "Node", "",
             "metadata: {name: a}\nstatus: {capacity: {cpu: 2, memory: 2048Mi}, conditions: "
             "[{type: Ready, status: \"True\"}]}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "status.allocatable"), "{\"cpu\":\"2\",\"memory\":\"2Gi\"}");
    EQ(field(&f, o, "spec"), "{}");
    o = make(&f, "Node", "", "metadata: {name: b}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "spec.taints"),
       "[{\"key\":\"node.kubernetes.io/not-ready\",\"effect\":\"NoSchedule\"}]");
    fixture_fini(&f);
}

static void test_node_taints(void)
{
    struct fixture f;

    fixture_init(&f, NULL, false);
    make(&f, "Node", "", "metadata: {name: n1}\nspec: {taints: [{key: k, effect: NoExecute}]}");
    /* A status write changes taints in the same commit. */
    CU_ASSERT_EQUAL(change(&f, "Node", "", "n1", BH_SIM_STATUS, "status.conditions",
                           "[{type: Ready, status: \"True\"}]"),
                    0);
    EQ(field(&f, get(&f, "nodes", "", "n1"), "spec.taints"),
       "[{\"key\":\"k\",\"effect\":\"NoExecute\"}]");
    CU_ASSERT_EQUAL(change(&f, "Node", "", "n1", BH_SIM_MAIN, "spec.unschedulable", "true"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(field(&f, get(&f, "nodes", "", "n1"), "spec.taints"),
                                  "{\"key\":\"node.kubernetes.io/unschedulable\",\"effect\":"
                                  "\"NoSchedule\"}"));
    CU_ASSERT_EQUAL(change(&f, "Node", "", "n1", BH_SIM_MAIN, "spec.unschedulable", NULL), 0);
    CU_ASSERT_EQUAL(change(&f, "Node", "", "n1", BH_SIM_STATUS, "status.conditions",
                           "[{type: Ready, status: Unknown}, {type: DiskPressure, status: "
                           "\"True\"}]"),
                    0);
    EQ(field(&f, get(&f, "nodes", "", "n1"), "spec.taints"),
       "[{\"key\":\"k\",\"effect\":\"NoExecute\"},{\"key\":\"node.kubernetes.io/unreachable\","
       "\"effect\":\"NoSchedule\"},{\"key\":\"node.kubernetes.io/disk-pressure\",\"effect\":"
       "\"NoSchedule\"}]");
    CU_ASSERT_EQUAL(change(&f, "Node", "", "n1", BH_SIM_MAIN, "spec.taints",
                           "[{key: k, effect: Foo}, {key: k, effect: Foo}]"),
                    422);
    CU_ASSERT_PTR_NOT_NULL(strstr(causes(&f), "metadata.taints[1]: Duplicate value: "));
    CU_ASSERT_PTR_NOT_NULL(strstr(causes(&f), "taints must be unique by key and effect pair"));
    fixture_fini(&f);
}

/* kubectl get events --sort-by=.lastTimestamp prints nothing when no event has the member. */
static void test_event_without_times_has_null_times(void)
{
    struct fixture f;
    struct bh_sim_obj *o;

    fixture_init(&f, NULL, false);
    o = make(&f, "Event", "default",
             "metadata: {name: e}\ninvolvedObject: {kind: Pod, name: p, namespace: default}\n"
             "eventTime: \"2026-01-01T00:00:00.000000Z\"\nreportingComponent: s\n");
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "firstTimestamp"), "null");
    EQ(field(&f, o, "lastTimestamp"), "null");
    EQ(field(&f, o, "eventTime"), "2026-01-01T00:00:00.000000Z");
    EQ(field(&f, o, "source"), "{}");
    EQ(field(&f, o, "reportingComponent"), "s");
    fixture_fini(&f);
}

static void test_deployment(void)
{
    struct fixture f;
    struct bh_sim_obj *o;

    fixture_init(&f, NULL, false);
    o = make(&f, "Deployment", "default", WORKLOAD(""));
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "spec.replicas"), "1");
    EQ(field(&f, o, "spec.strategy"), "{\"type\":\"RollingUpdate\",\"rollingUpdate\":"
                                      "{\"maxUnavailable\":\"25%\",\"maxSurge\":\"25%\"}}");
    EQ(field(&f, o, "spec.revisionHistoryLimit"), "10");
    EQ(field(&f, o, "spec.progressDeadlineSeconds"), "600");
    EQ(field(&f, o, "spec.template.spec.schedulerName"), "default-scheduler");
    EQ(field(&f, o, "spec.template.metadata"), "{\"labels\":{\"app\":\"x\"}}");
    /* What only pods get stays out of templates. */
    EQ(field(&f, o, "spec.template.spec.tolerations"), "");
    EQ(field(&f, o, "spec.template.spec.enableServiceLinks"), "");
    fixture_fini(&f);
}

static void test_deployment_refused(void)
{
    struct fixture f;

    fixture_init(&f, NULL, false);
    CU_ASSERT_PTR_NULL(make(&f, "Deployment", "default", "metadata: {name: d}\nspec:\n" TEMPLATE));
    EQ(causes(&f), "spec.selector: Required value\nspec.template.metadata.labels: Invalid value: "
                   "{\"app\":\"x\"}: `selector` does not match template `labels`");
    CU_ASSERT_PTR_NULL(
        make(&f, "Deployment", "default", "metadata: {name: d}\nspec:\n  selector: {}\n" TEMPLATE));
    EQ(causes(&f), "spec.selector: Invalid value: {}: empty selector is invalid for deployment");
    CU_ASSERT_PTR_NULL(make(&f, "Deployment", "default",
                            "metadata: {name: d}\nspec:\n  selector: {matchLabels: {app: "
                            "z}}\n" TEMPLATE));
    EQ(causes(&f), "spec.template.metadata.labels: Invalid value: {\"app\":\"x\"}: `selector` does "
                   "not match template `labels`");
    CU_ASSERT_PTR_NULL(
        make(&f, "Deployment", "default",
             WORKLOAD("  replicas: -1\n  strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: "
                      "0%}}\n  progressDeadlineSeconds: 5\n  minReadySeconds: 5\n")));
    EQ(causes(&f),
       "spec.replicas: Invalid value: -1: must be greater than or equal to 0\n"
       "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"0%\": may not be 0 when "
       "`maxSurge` is 0\n"
       "spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds");
    CU_ASSERT_PTR_NULL(make(&f, "Deployment", "default",
                            WORKLOAD("  strategy: {type: Recreate, rollingUpdate: {maxSurge: "
                                     "1}}\n")));
    EQ(causes(&f), "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy "
                   "`type` is 'Recreate'");
    CU_ASSERT_PTR_NOT_NULL(make(&f, "Deployment", "default", WORKLOAD("")));
    CU_ASSERT_EQUAL(change(&f, "Deployment", "default", "d", BH_SIM_MAIN,
                           "spec.template.spec.restartPolicy", "Never"),
                    422);
    EQ(causes(&f), "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported "
                   "values: \"Always\"");
    CU_ASSERT_EQUAL(change(&f, "Deployment", "default", "d", BH_SIM_MAIN, "spec.selector",
                           "{matchExpressions: [{key: app, operator: Exists}]}"),
                    422);
    CU_ASSERT_PTR_NOT_NULL(strstr(causes(&f), "field is immutable"));
    fixture_fini(&f);
}

static void test_sets(void)
{
    struct fixture f;
    struct bh_sim_obj *o;

    fixture_init(&f, NULL, false);
    o = make(&f, "StatefulSet", "default", WORKLOAD(""));
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "spec.podManagementPolicy"), "OrderedReady");
    EQ(field(&f, o, "spec.updateStrategy"),
       "{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"partition\":0}}");
    CU_ASSERT_EQUAL(
        change(&f, "StatefulSet", "default", "d", BH_SIM_MAIN, "spec.serviceName", "other"), 422);
    CU_ASSERT_PTR_NOT_NULL(strstr(causes(&f), "spec: Forbidden: updates to statefulset spec for "
                                              "fields other than 'replicas'"));
    CU_ASSERT_PTR_NOT_NULL(make(
        &f, "StatefulSet", "default",
        "metadata: {name: claims}\nspec: {selector: {matchLabels: {app: x}}, template: {metadata: "
        "{labels: {app: x}}, spec: {containers: [{name: c, image: i, volumeMounts: [{name: data, "
        "mountPath: /d}]}]}}, volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: "
        "[ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}"));
    o = make(&f, "DaemonSet", "default", WORKLOAD(""));
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "spec.updateStrategy"),
       "{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"maxUnavailable\":1,\"maxSurge\":0}}");
    o = make(&f, "ReplicationController", "default", "metadata: {name: d}\nspec:\n" TEMPLATE);
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "spec.selector"), "{\"app\":\"x\"}");
    EQ(field(&f, o, "metadata.labels"), "{\"app\":\"x\"}");
    fixture_fini(&f);
}

#define JOB(extra)                                                                                 \
    "metadata: {name: j}\nspec:\n  template: {spec: {restartPolicy: Never, containers: "           \
    "[{name: c, image: i}]}}\n" extra

static void test_job(void)
{
    struct fixture f;
    struct bh_sim_obj *o;

    fixture_init(&f, NULL, false);
    o = make(&f, "Job", "default", JOB(""));
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "spec.completions"), "1");
    EQ(field(&f, o, "spec.parallelism"), "1");
    EQ(field(&f, o, "spec.backoffLimit"), "6");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(field(&f, o, "spec.selector"), "\"batch.kubernetes.io/controller-uid\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(field(&f, o, "spec.selector"), o->uid));
    CU_ASSERT_PTR_NOT_NULL(strstr(field(&f, o, "spec.template.metadata.labels"),
                                  "\"batch.kubernetes.io/job-name\":\"j\""));
    CU_ASSERT_EQUAL(change(&f, "Job", "default", "j", BH_SIM_MAIN, "spec.completions", "2"), 422);
    EQ(causes(&f), "spec.completions: Invalid value: 2: field is immutable");
    CU_ASSERT_EQUAL(change(&f, "Job", "default", "j", BH_SIM_MAIN, "spec.parallelism", "2"), 0);
    CU_ASSERT_PTR_NULL(make(&f, "Job", "default",
                            "metadata: {name: k}\nspec: {template: {spec: {containers: [{name: c, "
                            "image: i}]}}}"));
    EQ(causes(&f), "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", "
                   "\"Never\"");
    o = make(&f, "Job", "default",
             "metadata: {name: l}\nspec: {parallelism: 3, template: {spec: {restartPolicy: Never, "
             "containers: [{name: c, image: i}]}}}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "spec.completions"), "");
    fixture_fini(&f);
}

static void test_service(void)
{
    struct fixture f;
    struct bh_sim_obj *o;

    fixture_init(&f, NULL, false);
    o = make(&f, "Service", "default",
             "metadata: {name: a}\nspec: {selector: {a: b}, ports: [{port: 80}]}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "spec.clusterIP"), "10.96.0.10");
    EQ(field(&f, o, "spec.clusterIPs"), "[\"10.96.0.10\"]");
    EQ(field(&f, o, "spec.type"), "ClusterIP");
    EQ(field(&f, o, "spec.sessionAffinity"), "None");
    EQ(field(&f, o, "spec.ports"), "[{\"port\":80,\"protocol\":\"TCP\",\"targetPort\":80}]");
    o = make(&f, "Service", "default",
             "metadata: {name: b}\nspec: {type: NodePort, ports: [{port: 80}]}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "spec.clusterIP"), "10.96.0.11");
    CU_ASSERT_PTR_NOT_NULL(strstr(o->json, "\"nodePort\":30000"));
    o = make(&f, "Service", "default", "metadata: {name: c}\nspec: {clusterIP: None}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "spec.clusterIPs"), "[\"None\"]");
    CU_ASSERT_PTR_NULL(make(&f, "Service", "default", "metadata: {name: d}"));
    EQ(causes(&f), "spec.ports: Required value");
    CU_ASSERT_PTR_NULL(make(&f, "Service", "default",
                            "metadata: {name: d}\nspec: {clusterIP: 10.96.0.10, ports: "
                            "[{port: 1}, {port: 0}]}"));
    EQ(causes(&f),
       "spec.ports[0].name: Required value\nspec.ports[1].name: Required value\n"
       "spec.ports[1].port: Invalid value: 0: must be between 1 and 65535, inclusive\n"
       "spec.ports[1].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive");
    CU_ASSERT_PTR_NULL(make(&f, "Service", "default",
                            "metadata: {name: d}\nspec: {clusterIP: 10.96.0.10, ports: "
                            "[{port: 1}]}"));
    EQ(causes(&f),
       "spec.clusterIPs: Invalid value: [\"10.96.0.10\"]: failed to allocate IP 10.96.0.10: "
       "provided IP is "
       "already allocated");
    /* A freed address is given out again; a replacement without one keeps it. */
    CU_ASSERT_EQUAL(change(&f, "Service", "default", "a", BH_SIM_MAIN, "spec.clusterIP", NULL), 0);
    EQ(field(&f, get(&f, "services", "default", "a"), "spec.clusterIP"), "10.96.0.10");
    bh_sim_delete(f.s, type_of("services"), "default", "a", NULL, NULL);
    o = make(&f, "Service", "default", "metadata: {name: e}\nspec: {ports: [{port: 80}]}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "spec.clusterIP"), "10.96.0.10");
    fixture_fini(&f);
}

static void test_namespace(void)
{
    struct fixture f;
    struct bh_sim_obj *o;

    fixture_init(&f, NULL, false);
    o = make(&f, "Namespace", "", "metadata: {name: n1}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "spec.finalizers"), "[\"kubernetes\"]");
    EQ(field(&f, o, "status.phase"), "Active");
    EQ(bh_sim_obj_label(o, "kubernetes.io/metadata.name"), "n1");
    fixture_fini(&f);
}

static void test_storage(void)
{
    struct fixture f;
    struct bh_sim_obj *o;

    fixture_init(&f, NULL, false);
    o = make(&f, "PersistentVolume", "",
             "metadata: {name: v}\nspec: {capacity: {storage: 1024Mi}, accessModes: "
             "[ReadWriteOnce], hostPath: {path: /x}}\nstatus: {phase: Bound}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "spec.persistentVolumeReclaimPolicy"), "Retain");
    EQ(field(&f, o, "spec.capacity.storage"), "1Gi");
    EQ(field(&f, o, "status.phase"), "Pending");
    o = make(&f, "PersistentVolumeClaim", "default",
             "metadata: {name: c}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: "
             "{storage: 1Gi}}}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "spec.storageClassName"), "");
    make(&f, "StorageClass", "",
         "metadata: {name: fast, annotations: {storageclass.kubernetes.io/is-default-class: "
         "\"true\"}}\nprovisioner: p");
    o = make(&f, "PersistentVolumeClaim", "default",
             "metadata: {name: d}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: "
             "{storage: 1Gi}}}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "spec.storageClassName"), "fast");
    EQ(field(&f, o, "spec.volumeMode"), "Filesystem");
    EQ(field(&f, o, "status.phase"), "Pending");
    EQ(field(&f, get(&f, "storageclasses", "", "fast"), "volumeBindingMode"), "Immediate");
    CU_ASSERT_EQUAL(change(&f, "StorageClass", "", "fast", BH_SIM_MAIN, "provisioner", "q"), 422);
    EQ(causes(&f), "provisioner: Invalid value: \"q\": field is immutable");
    CU_ASSERT_PTR_NULL(make(&f, "PersistentVolumeClaim", "default", "metadata: {name: e}"));
    EQ(causes(&f), "spec.accessModes: Required value: at least 1 access mode is required\n"
                   "spec.resources[storage]: Required value");
    CU_ASSERT_EQUAL(change(&f, "PersistentVolumeClaim", "default", "d", BH_SIM_MAIN,
                           "spec.accessModes", "[ReadWriteMany]"),
                    422);
    /* The scheduler and the binder of volumes write this one. */
    CU_ASSERT_EQUAL(
        change(&f, "PersistentVolumeClaim", "default", "d", BH_SIM_MAIN, "spec.volumeName", "v"),
        0);
    fixture_fini(&f);
}

static void test_priority_class(void)
{
    struct fixture f;
    struct bh_sim_obj *o;

    fixture_init(&f, NULL, false);
    o = make(&f, "PriorityClass", "", "{metadata: {name: a}, value: 5}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "preemptionPolicy"), "PreemptLowerPriority");
    CU_ASSERT_EQUAL(change(&f, "PriorityClass", "", "a", BH_SIM_MAIN, "value", "6"), 422);
    EQ(causes(&f), "value: Forbidden: may not be changed in an update.");
    CU_ASSERT_PTR_NULL(make(&f, "PriorityClass", "", "{metadata: {name: b}, value: 1000000001}"));
    EQ(causes(&f), "value: Forbidden: maximum allowed value of a user defined priority is "
                   "1000000000");
    CU_ASSERT_PTR_NULL(make(&f, "PriorityClass", "", "{metadata: {name: system-x}, value: 1}"));
    CU_ASSERT_PTR_NOT_NULL(strstr(causes(&f), "reserved for system use only"));
    fixture_fini(&f);
}

static void test_budget(void)
{
    struct fixture f;
    struct bh_sim_obj *o;

    fixture_init(&f, NULL, false);
    o = make(&f, "PodDisruptionBudget", "default", "metadata: {name: a}\nspec: {minAvailable: 1}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "status.disruptionsAllowed"), "0");
    CU_ASSERT_PTR_NULL(make(&f, "PodDisruptionBudget", "default",
                            "metadata: {name: b}\nspec: {minAvailable: -1}"));
    EQ(causes(&f), "spec.minAvailable: Invalid value: -1: must be greater than or equal to 0");
    CU_ASSERT_PTR_NULL(make(&f, "PodDisruptionBudget", "default",
                            "metadata: {name: b}\nspec: {minAvailable: 1, maxUnavailable: 1x}"));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(causes(&f), "minAvailable and maxUnavailable cannot be both set"));
    CU_ASSERT_PTR_NOT_NULL(strstr(causes(&f), "a valid percent string must be a numeric string"));
    fixture_fini(&f);
}

static void test_data(void)
{
    struct fixture f;
    struct bh_sim_obj *o;

    fixture_init(&f, NULL, false);
    o = make(&f, "Secret", "default",
             "metadata: {name: s}\nstringData: {a: hello, b: ab, c: abc, d: \"\"}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "type"), "Opaque");
    EQ(field(&f, o, "data"), "{\"a\":\"aGVsbG8=\",\"b\":\"YWI=\",\"c\":\"YWJj\",\"d\":\"\"}");
    EQ(field(&f, o, "stringData"), "");
    CU_ASSERT_PTR_NULL(make(&f, "ConfigMap", "default", "metadata: {name: c}\ndata: {a b: x}"));
    CU_ASSERT_PTR_NOT_NULL(strstr(causes(&f), "data[a b]: Invalid value: \"a b\": a valid config "
                                              "key must consist of"));
    make(&f, "ConfigMap", "default", "metadata: {name: c}\nimmutable: true\ndata: {a: x}");
    CU_ASSERT_EQUAL(change(&f, "ConfigMap", "default", "c", BH_SIM_MAIN, "data.a", "y"), 422);
    EQ(causes(&f), "data: Forbidden: field is immutable when `immutable` is set");
    fixture_fini(&f);
}

/* All values together may take 1 MiB; base64 counts as what it stands for. */
static void test_data_bytes(void)
{
    static const struct {
        const char *kind, *member, *refusal;
        size_t fits; /* characters of the value */
    } table[] = {
        {"ConfigMap", "data", "[]: Too long: may not be more than 1048576 bytes", 1048575},
        {"ConfigMap", "binaryData", "[]: Too long: may not be more than 1048576 bytes", 1398100},
        {"Secret", "data", "data: Too long: may not be more than 1048576 bytes", 1398100},
        {"Secret", "stringData", "data: Too long: may not be more than 1048576 bytes", 1048575},
    };
    struct fixture f;
    struct bh_buf b = {0};

    fixture_init(&f, NULL, false);
    for (size_t i = 0; i < BH_ARRAY_LEN(table); i++) {
        for (int over = 0; over < 2; over++) {
            bool base64 = table[i].fits > 1048576;
            bh_buf_reset(&b);
            bh_buf_addf(&b, "metadata: {name: d%zu-%d}\n%s: {b: %s, a: ", i, over, table[i].member,
                        base64 ? "QQ==" : "A");
            for (size_t n = table[i].fits + (over ? (base64 ? 4 : 1) : 0); n; n--)
                bh_buf_addc(&b, 'A');
            bh_buf_addc(&b, '}');
            bool made = make(&f, table[i].kind, "default", bh_buf_str(&b)) != NULL;
            CU_ASSERT_EQUAL(made, !over);
            EQ(causes(&f), over ? table[i].refusal : "");
        }
    }
    bh_buf_fini(&b);
    fixture_fini(&f);
}

/* Nothing of a wrong shape may crash any kind. */
static void test_hostile(void)
{
    static const char *const bodies[] = {
        "{spec: 3, status: 4, data: 5, value: []}",
        "{spec: [], status: [], template: x}",
        "{spec: {template: 3, selector: 4, replicas: x, strategy: [], ports: [1, {}], taints: [1], "
        "capacity: [], finalizers: {}, limits: [1, {type: Container, max: 3}], jobTemplate: []}}",
        "{spec: {template: {spec: {containers: [[]]}}, selector: {matchLabels: [], "
        "matchExpressions: {}}, updateStrategy: 3, clusterIP: 7, accessModes: x}}",
        "{spec: {devices: {requests: [1, {exactly: [], firstAvailable: [1]}]}}, stringData: "
        "{a: 1}, status: {capacity: {cpu: {}}, conditions: [1, {type: 3}]}}",
    };
    struct fixture f;
    char text[700];

    fixture_init(&f, NULL, false);
    for (size_t t = 0; t < bh_sim_n_types; t++) {
        const struct bh_sim_type *type = &bh_sim_types[t];
        if ((type->flags & BH_SIM_REVIEW) || type->stored_as)
            continue;
        for (size_t i = 0; i < BH_ARRAY_LEN(bodies); i++) {
            snprintf(text, sizeof(text), "{metadata: {name: h%zu}, %s", i, bodies[i] + 1);
            f.e = (struct bh_sim_error){0};
            if (bh_sim_create(f.s, type, "default", &f.a, yaml(&f, text), NULL, &f.e))
                CU_ASSERT(f.e.code >= 400 && f.e.code < 500);
        }
    }
    fixture_fini(&f);
}

BH_TESTS("simulator/admission/kinds", {"a node's allocatable is its capacity", test_node},
         {"a node's taints follow from its state", test_node_taints},
         {"an event without times has null times", test_event_without_times_has_null_times},
         {"a deployment is given upstream's defaults", test_deployment},
         {"a deployment's mistakes are named", test_deployment_refused},
         {"stateful, daemon and old replication sets", test_sets},
         {"a job ties its pods to itself", test_job},
         {"a service gets addresses and ports", test_service},
         {"a namespace is born active", test_namespace},
         {"volumes, claims and classes", test_storage},
         {"priority classes have bounds", test_priority_class}, {"budgets", test_budget},
         {"config maps and secrets", test_data}, {"their bytes", test_data_bytes},
         {"odd shapes are stored or refused, never fatal", test_hostile})
