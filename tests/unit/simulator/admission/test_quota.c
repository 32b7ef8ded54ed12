/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/admission/test_quota.c - quotas, runtime classes, pods/resize
 */
#include "tests/unit/simulator/admission/admission_test.h"

#define SIZED(name, cpu)                                                                           \
    "metadata: {name: " name "}\nspec: {containers: [{name: c, image: i, resources: {requests: "   \
    "{cpu: " cpu "}}}]}"

static const char *used(struct fixture *f)
{
    return field(f, get(f, "resourcequotas", "default", "q"), "status.used");
}

static void test_quota(void)
{
    struct fixture f;

    fixture_init(&f, NULL, false);
    CU_ASSERT_PTR_NOT_NULL(make(&f, "Pod", "default", SIZED("old", "300m")));
    CU_ASSERT_PTR_NOT_NULL(make(&f, "ResourceQuota", "default",
                                "metadata: {name: q}\nspec: {hard: {cpu: 1, pods: 3, "
                                "count/deployments.apps: 0}}"));
    EQ(used(&f), "{\"cpu\":\"300m\",\"pods\":\"1\",\"count/deployments.apps\":\"0\"}");
    CU_ASSERT_PTR_NOT_NULL(make(&f, "Pod", "default", SIZED("a", "500m")));
    EQ(used(&f), "{\"cpu\":\"800m\",\"pods\":\"2\",\"count/deployments.apps\":\"0\"}");
    CU_ASSERT_PTR_NULL(make(&f, "Pod", "default", SIZED("b", "201m")));
    EQ(f.e.message, "pods \"b\" is forbidden: exceeded quota: q, requested: cpu=201m, used: "
                    "cpu=800m, limited: cpu=1");
    CU_ASSERT_PTR_NULL(make(&f, "Pod", "default",
                            "metadata: {name: c}\nspec: {containers: [{name: x, image: i}]}"));
    EQ(f.e.message, "pods \"c\" is forbidden: failed quota: q: must specify cpu for: x");
    /* A refusal takes nothing. */
    CU_ASSERT_PTR_NOT_NULL(make(&f, "Pod", "default", SIZED("d", "200m")));
    EQ(used(&f), "{\"cpu\":\"1\",\"pods\":\"3\",\"count/deployments.apps\":\"0\"}");
    CU_ASSERT_PTR_NULL(
        make(&f, "Deployment", "default",
             "metadata: {name: d}\nspec: {selector: {matchLabels: {a: b}}, template: "
             "{metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: "
             "i}]}}}"));
    CU_ASSERT_EQUAL(f.e.code, 403);
    /* Other namespaces are free. */
    CU_ASSERT_PTR_NOT_NULL(make(&f, "Pod", "kube-system", SIZED("z", "9")));
    fixture_fini(&f);
}

static void test_limit_range(void)
{
    struct fixture f;
    struct bh_sim_obj *o;

    fixture_init(&f, NULL, false);
    CU_ASSERT_PTR_NOT_NULL(make(&f, "LimitRange", "default",
                                "metadata: {name: l}\nspec: {limits: [{type: Container, default: "
                                "{cpu: 500m}, defaultRequest: {cpu: 250m}, maxLimitRequestRatio: "
                                "{cpu: 4}}, {type: Pod, max: {cpu: 1}}]}"));
    o = make(&f, "Pod", "default", POD(""));
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, bh_sim_get(f.s, o->type, "default", "p"), "status.qosClass"), "Burstable");
    CU_ASSERT_PTR_NOT_NULL(strstr(o->json, "\"requests\":{\"cpu\":\"250m\"}"));
    CU_ASSERT_PTR_NULL(make(&f, "Pod", "default", SIZED("a", "100m")));
    EQ(f.e.message, "pods \"a\" is forbidden: cpu max limit to request ratio per Container is 4, "
                    "but provided ratio is 5.000000");
    CU_ASSERT_PTR_NULL(make(&f, "Pod", "default",
                            "metadata: {name: b}\nspec: {containers: [{name: c, image: i}, {name: "
                            "d, image: i}, {name: e, image: i}]}"));
    EQ(f.e.message, "pods \"b\" is forbidden: maximum cpu usage per Pod is 1, but limit is 1500m");
    fixture_fini(&f);
}

#define APART(name, more)                                                                          \
    "metadata: {name: " name "}\nspec: {containers: [{name: c, image: i, resources: {requests: "   \
    "{cpu: 1}}}], affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "  \
    "[{weight: 1, podAffinityTerm: {topologyKey: zone, labelSelector: {}" more "}}]}}}"

static void test_scopes(void)
{
    struct fixture f;

    fixture_init(&f, NULL, false);
    CU_ASSERT_PTR_NOT_NULL(make(&f, "ResourceQuota", "default",
                                "metadata: {name: q}\nspec: {hard: {pods: 0}, scopes: "
                                "[BestEffort]}"));
    CU_ASSERT_PTR_NOT_NULL(make(&f, "Pod", "default", SIZED("a", "1")));
    CU_ASSERT_PTR_NULL(make(&f, "Pod", "default", POD("")));
    CU_ASSERT_PTR_NOT_NULL(strstr(f.e.message, "exceeded quota: q"));
    CU_ASSERT_PTR_NOT_NULL(
        make(&f, "ResourceQuota", "default",
             "metadata: {name: x}\nspec: {hard: {pods: 0}, scopeSelector: {matchExpressions: "
             "[{scopeName: CrossNamespacePodAffinity, operator: Exists}]}}"));
    CU_ASSERT_PTR_NOT_NULL(make(&f, "Pod", "default", APART("b", "")));
    CU_ASSERT_PTR_NULL(make(&f, "Pod", "default", APART("c", ", namespaceSelector: {}")));
    CU_ASSERT_PTR_NOT_NULL(strstr(f.e.message, "exceeded quota: x"));
    CU_ASSERT_PTR_NOT_NULL(make(&f, "ResourceQuota", "default",
                                "metadata: {name: t}\nspec: {hard: {pods: 1}, scopes: "
                                "[Terminating]}"));
    /* A pod that comes into a scope by an update is charged there and then. */
    CU_ASSERT_EQUAL(
        change(&f, "Pod", "default", "a", BH_SIM_MAIN, "spec.activeDeadlineSeconds", "100"), 0);
    CU_ASSERT_EQUAL(
        change(&f, "Pod", "default", "a", BH_SIM_MAIN, "spec.activeDeadlineSeconds", "50"), 0);
    CU_ASSERT_EQUAL(
        change(&f, "Pod", "default", "b", BH_SIM_MAIN, "spec.activeDeadlineSeconds", "100"), 403);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.e.message, "exceeded quota: t"));
    fixture_fini(&f);
}

static void test_runtime_class(void)
{
    struct fixture f;
    struct bh_sim_obj *o;

    fixture_init(&f, NULL, false);
    CU_ASSERT_PTR_NOT_NULL(make(&f, "RuntimeClass", "",
                                "metadata: {name: gv}\nhandler: h\noverhead: {podFixed: {cpu: "
                                "0.25}}\nscheduling: {nodeSelector: {r: gv}, tolerations: [{key: "
                                "gv, operator: Exists}]}"));
    o = make(&f, "Pod", "default", POD("  runtimeClassName: gv\n  nodeSelector: {a: b}\n"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "spec.overhead"), "{\"cpu\":\"250m\"}");
    EQ(field(&f, o, "spec.nodeSelector"), "{\"a\":\"b\",\"r\":\"gv\"}");
    CU_ASSERT_PTR_NOT_NULL(strstr(field(&f, o, "spec.tolerations"), "\"key\":\"gv\""));
    CU_ASSERT_PTR_NULL(make(&f, "Pod", "default",
                            "metadata: {name: m}\nspec: {runtimeClassName: gv, nodeSelector: {r: "
                            "other}, containers: [{name: c, image: i}]}"));
    CU_ASSERT_EQUAL(f.e.code, 403);
    fixture_fini(&f);
}

static int resize(struct fixture *f, const char *what, const char *value)
{
    return change(f, "Pod", "default", "a", BH_SIM_RESIZE, what, value);
}

static void test_resize(void)
{
    struct fixture f;
    static const char list[] = "spec.containers";

    fixture_init(&f, NULL, false);
    CU_ASSERT_PTR_NOT_NULL(make(&f, "Pod", "default", SIZED("a", "500m")));
#define C(res) "[{name: c, image: i, imagePullPolicy: Always, resources: {" res "}}]"
    CU_ASSERT_EQUAL(change(&f, "Pod", "default", "a", BH_SIM_MAIN, list, C("requests: {cpu: 1}")),
                    422);
    /* Everything that defaulting gave the container has to be there as well. */
    const char *c =
        bh_arena_strdup(&f.a, field(&f, get(&f, "pods", "default", "a"), "spec.containers"));
    const char *at = strstr(c, "500m");
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    const char *more = bh_arena_printf(&f.a, "%.*s750m%s", (int)(at - c), c, at + 4);
    CU_ASSERT_EQUAL(resize(&f, list, more), 0);
    EQ(field(&f, get(&f, "pods", "default", "a"), "metadata.generation"), "2");
    CU_ASSERT_EQUAL(resize(&f, "spec.priority", "7"), 422);
    CU_ASSERT_EQUAL(resize(&f, list, C("")), 422);
    CU_ASSERT_PTR_NOT_NULL(strstr(causes(&f), "resource requests cannot be removed"));
    CU_ASSERT_EQUAL(
        resize(&f, list,
               bh_arena_printf(&f.a, "%.*s750m\",\"x.y/gpu\":\"1%s", (int)(at - c), c, at + 4)),
        422);
    CU_ASSERT_PTR_NOT_NULL(strstr(causes(&f), "only cpu and memory resources are mutable"));
    fixture_fini(&f);
}

BH_TESTS("simulator/admission/quota", {"a quota counts, and refuses what is too much", test_quota},
         {"a limit range gives, and bounds containers and pods", test_limit_range},
         {"a quota of a scope leaves others alone", test_scopes},
         {"a runtime class brings overhead and a place", test_runtime_class},
         {"a resize changes cpu and memory and nothing else", test_resize})
