/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/admission/test_pod_group.c - PodGroups, Workloads, and pods that name a group
 */
#include "common/flags/feature_gates.h"
#include "tests/unit/simulator/admission/admission_test.h"

#define GANG "metadata: {name: g}\nspec:\n  schedulingPolicy: {gang: {minCount: 3}}\n"

/* A server with these gates, comma separated. */
static void with_gates(struct fixture *f, const char *gates)
{
    const char *one[8];
    char text[400];
    struct bh_opt_list list = {.v = one}, none = {0};
    static struct bh_feature_gates g;
    struct bh_err err = {""};

    snprintf(text, sizeof(text), "%s", gates);
    for (char *p = text, *next; p; p = next) {
        next = strchr(p, ',');
        if (next)
            *next++ = '\0';
        one[list.n++] = p;
    }
    bh_feature_gates_init(&g);
    CU_ASSERT_EQUAL_FATAL(bh_feature_gates_set(&g, &list, &none, &none, &err), 0);
    const struct bh_sim_options o = {.no_controllers = true, .first_revision = 100, .features = &g};
    fixture_init(f, &o, false);
}

#define ALL                                                                                        \
    "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true,"               \
    "WorkloadAwarePreemption=true,DRAWorkloadResourceClaims=true"

static void test_a_group_is_born(void)
{
    struct fixture f;
    const struct bh_sim_obj *o;

    with_gates(&f, ALL);
    make(&f, "PriorityClass", "", "metadata: {name: high}\nvalue: 500");
    o = make(&f, "PodGroup", "default",
             GANG "  priorityClassName: high\n"
                  "status: {conditions: [{type: PodGroupScheduled, status: \"True\"}]}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "spec.disruptionMode"), "Pod");
    EQ(field(&f, o, "spec.priority"), "500");
    EQ(field(&f, o, "status.conditions"), ""); /* it was not scheduled yet */
    EQ(field(&f, o, "metadata.finalizers"), "[\"scheduling.k8s.io/podgroup-protection\"]");
    EQ(field(&f, o, "metadata.generation"), ""); /* as in v1.36 */
    CU_ASSERT_PTR_NULL(make(&f, "PodGroup", "default",
                            "metadata: {name: h}\nspec: {schedulingPolicy: {basic: {}}, "
                            "priorityClassName: high, priority: 4}"));
    EQ(f.e.message, "podgroups.scheduling.k8s.io \"h\" is forbidden: priority set in the pod group "
                    "(4) must match the priority computed (500) based on the priority class set in "
                    "the spec");
    fixture_fini(&f);
}

/* Without their gates fields are as if they had not been sent. */
static void test_gated_fields_are_dropped(void)
{
    struct fixture f;
    const struct bh_sim_obj *o;

    with_gates(&f, "GenericWorkload=true");
    o = make(&f, "PodGroup", "default",
             GANG "  priorityClassName: nobody\n  priority: 7\n  disruptionMode: PodGroup\n"
                  "  schedulingConstraints: {topology: [{key: rack}]}\n"
                  "  resourceClaims: [{name: a, resourceClaimName: b}]\n");
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "spec"), "{\"schedulingPolicy\":{\"gang\":{\"minCount\":3}}}");
    fixture_fini(&f);
}

static void test_a_group_is_refused(void)
{
    static const struct {
        const char *spec, *why;
    } bad[] = {
        {"{}", "spec.schedulingPolicy: Invalid value: \"\": must specify one of: `basic`, `gang`"},
        {"{schedulingPolicy: {basic: {}, gang: {minCount: 1}}}",
         "spec.schedulingPolicy: Invalid value: \"{`basic`, `gang`}\": exactly one of `basic`, "
         "`gang` is required, but multiple fields are set"},
        {"{schedulingPolicy: {gang: {}}}", "spec.schedulingPolicy.gang.minCount: Required value"},
        {"{schedulingPolicy: {gang: {minCount: -1}}}",
         "spec.schedulingPolicy.gang.minCount: Invalid value: -1: must be greater than or equal to "
         "1"},
        {"{schedulingPolicy: {basic: {}}, schedulingConstraints: {topology: [{key: a}, {key: b}]}}",
         "spec.schedulingConstraints.topology: Too many: 2: must have at most 1 item"},
        {"{schedulingPolicy: {basic: {}}, schedulingConstraints: {topology: [{}]}}",
         "spec.schedulingConstraints.topology[0].key: Required value"},
        {"{schedulingPolicy: {basic: {}}, disruptionMode: All}",
         "spec.disruptionMode: Unsupported value: \"All\": supported values: \"Pod\", "
         "\"PodGroup\""},
        {"{schedulingPolicy: {basic: {}}, podGroupTemplateRef: {}}",
         "spec.podGroupTemplateRef: Invalid value: \"\": must specify one of: `workload`"},
        {"{schedulingPolicy: {basic: {}}, podGroupTemplateRef: {workload: {workloadName: w}}}",
         "spec.podGroupTemplateRef.workload.podGroupTemplateName: Required value"},
        {"{schedulingPolicy: {basic: {}}, resourceClaims: [{name: a}]}",
         "spec.resourceClaims[0]: Invalid value: \"\": must specify one of: `resourceClaimName`, "
         "`resourceClaimTemplateName`"},
    };
    struct fixture f;

    with_gates(&f, ALL);
    for (size_t i = 0; i < BH_ARRAY_LEN(bad); i++) {
        CU_ASSERT_PTR_NULL(
            make(&f, "PodGroup", "default",
                 bh_arena_printf(&f.a, "metadata: {name: g}\nspec: %s", bad[i].spec)));
        EQ(causes(&f), bad[i].why);
    }
    fixture_fini(&f);
}

static void test_a_group_does_not_change(void)
{
    struct fixture f;

    with_gates(&f, ALL);
    make(&f, "PodGroup", "default", GANG);
    CU_ASSERT_EQUAL(change(&f, "PodGroup", "default", "g", BH_SIM_MAIN,
                           "spec.schedulingPolicy.gang.minCount", "4"),
                    422);
    EQ(causes(&f), "spec.schedulingPolicy: Invalid value: null: field is immutable");
    CU_ASSERT_EQUAL(
        change(&f, "PodGroup", "default", "g", BH_SIM_MAIN, "spec.disruptionMode", "PodGroup"),
        422);
    CU_ASSERT_EQUAL(
        change(&f, "PodGroup", "default", "g", BH_SIM_MAIN, "metadata.labels", "{a: b}"), 0);
    fixture_fini(&f);
}

static void test_conditions(void)
{
    static const struct {
        const char *conditions, *why;
    } rows[] = {
        {"[{type: PodGroupScheduled, status: \"True\", reason: Scheduled, message: \"\", "
         "lastTransitionTime: 2026-01-01T00:00:00Z}]",
         ""},
        {"[{type: A, status: \"Yes\", message: \"\"}]",
         "status.conditions[0].reason: Required value: must be set\n"
         "status.conditions[0].status: Unsupported value: \"Yes\": supported values: \"False\", "
         "\"True\", \"Unknown\"\n"
         "status.conditions[0].lastTransitionTime: Required value: must be set"},
    };
    struct fixture f;

    with_gates(&f, ALL);
    make(&f, "PodGroup", "default", GANG);
    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        CU_ASSERT_EQUAL(change(&f, "PodGroup", "default", "g", BH_SIM_STATUS, "status.conditions",
                               rows[i].conditions),
                        *rows[i].why ? 422 : 0);
        EQ(causes(&f), rows[i].why);
    }
    CU_ASSERT_EQUAL(change(&f, "PodGroup", "default", "g", BH_SIM_STATUS,
                           "status.resourceClaimStatuses", "[{name: x, resourceClaimName: y}]"),
                    422);
    EQ(causes(&f),
       "status.resourceClaimStatuses[0].name: Invalid value: \"x\": must match the name "
       "of an entry in `spec.resourceClaims`");
    fixture_fini(&f);
}

#define FROM(workload, template)                                                                   \
    "metadata: {name: g}\nspec: {schedulingPolicy: {basic: {}}, podGroupTemplateRef: {workload: "  \
    "{workloadName: " workload ", podGroupTemplateName: " template "}}}"
#define REFUSED "podgroups.scheduling.k8s.io \"g\" is forbidden: PodGroup rejected: "

static void test_its_workload_exists(void)
{
    struct fixture f;

    with_gates(&f, ALL);
    CU_ASSERT_PTR_NULL(make(&f, "PodGroup", "default", FROM("w", "t")));
    EQ(f.e.message, REFUSED "Workload \"w\" not found");
    CU_ASSERT_PTR_NOT_NULL_FATAL(make(
        &f, "Workload", "default",
        "metadata: {name: w, finalizers: [a/b]}\nspec: {controllerRef: {apiGroup: batch, kind: "
        "Job, name: j}, podGroupTemplates: [{name: t, schedulingPolicy: {basic: {}}}]}"));
    CU_ASSERT_PTR_NULL(make(&f, "PodGroup", "default", FROM("w", "u")));
    EQ(f.e.message, REFUSED "PodGroupTemplate \"u\" not found in Workload \"w\"");
    CU_ASSERT_PTR_NOT_NULL(make(&f, "PodGroup", "default", FROM("w", "t")));
    CU_ASSERT_EQUAL(bh_sim_delete(f.s, type_of("workloads"), "default", "w", NULL, NULL), 0);
    CU_ASSERT_EQUAL(bh_sim_delete(f.s, type_of("podgroups"), "default", "g", NULL, NULL), 0);
    CU_ASSERT_EQUAL(
        change(&f, "PodGroup", "default", "g", BH_SIM_MAIN, "metadata.finalizers", NULL),
        0); /* it goes */
    CU_ASSERT_PTR_NULL(make(&f, "PodGroup", "default", FROM("w", "t")));
    EQ(f.e.message, REFUSED "Workload \"w\" is being deleted");
    fixture_fini(&f);
}

static void test_a_workload_is_refused(void)
{
    struct fixture f;

    with_gates(&f, ALL);
    CU_ASSERT_PTR_NULL(make(&f, "Workload", "default",
                            "metadata: {name: w}\nspec: {controllerRef: {kind: a/b, name: .}}"));
    EQ(causes(&f), "spec.controllerRef.kind: Invalid value: \"a/b\": may not contain '/'\n"
                   "spec.controllerRef.name: Invalid value: \".\": may not be '.'\n"
                   "spec.podGroupTemplates: Required value");
    CU_ASSERT_PTR_NULL(
        make(&f, "Workload", "default",
             "metadata: {name: w}\nspec: {podGroupTemplates: [{name: t, schedulingPolicy: {basic: "
             "{}}}, {name: t, schedulingPolicy: {gang: {minCount: -1}}}]}"));
    EQ(causes(&f), "spec.podGroupTemplates[1]: Duplicate value: \"t\"\n"
                   "spec.podGroupTemplates[1].schedulingPolicy.gang.minCount: Invalid value: -1: "
                   "must be greater than or equal to 1");
    fixture_fini(&f);
}

static void test_a_pod_names_its_group(void)
{
    struct fixture f;
    const struct bh_sim_obj *o;

    with_gates(&f, ALL);
    o = make(&f, "Pod", "default", POD("  schedulingGroup: {podGroupName: g}"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "spec.schedulingGroup.podGroupName"), "g");
    CU_ASSERT_EQUAL(
        change(&f, "Pod", "default", "p", BH_SIM_MAIN, "spec.schedulingGroup.podGroupName", "h"),
        422);
    CU_ASSERT_EQUAL(bh_sim_delete(f.s, type_of("pods"), "default", "p",
                                  &(struct bh_sim_delete_options){.grace_s = 0}, NULL),
                    0);
    CU_ASSERT_PTR_NULL(make(&f, "Pod", "default", POD("  schedulingGroup: {}")));
    EQ(causes(&f), "spec.schedulingGroup.podGroupName: Invalid value: null: must specify one of: "
                   "`podGroupName`");
    fixture_fini(&f);

    fixture_init(&f, NULL, false); /* the gate is off */
    o = make(&f, "Pod", "default", POD("  schedulingGroup: {podGroupName: g}"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(field(&f, o, "spec.schedulingGroup"), "");
    fixture_fini(&f);
}

static void test_what_is_served(void)
{
    const char *one[] = {"scheduling.k8s.io/v1beta1=true"}, *wrong[] = {"scheduling.k8s.io/v9"};
    const struct bh_opt_list config = {one, 1}, bad = {wrong, 1};
    struct bh_sim_options o = {.no_controllers = true, .runtime_config = &config};
    struct bh_sim *s = NULL;
    struct bh_err err = {""};
    struct fixture f;

    fixture_init(&f, &o, false); /* asked for, but the gate is off */
    CU_ASSERT_PTR_NULL(bh_sim_find_type(f.s, "scheduling.k8s.io", "v1beta1", "podgroups"));
    CU_ASSERT_PTR_NOT_NULL(bh_sim_find_type(f.s, "scheduling.k8s.io", "v1", "priorityclasses"));
    o.runtime_config = &bad;
    CU_ASSERT(bh_sim_new_bare(&f.loop, &o, &s, &err) < 0);
    EQ(err.msg,
       "runtime-config \"scheduling.k8s.io/v9\": want GROUP/VERSION=true of an API of this "
       "server, or api/all, api/alpha, api/beta");
    fixture_fini(&f);
}

BH_TESTS("simulator/admission/pod_group", {"a group is born", test_a_group_is_born},
         {"gated fields are dropped", test_gated_fields_are_dropped},
         {"a group is refused", test_a_group_is_refused},
         {"a group does not change", test_a_group_does_not_change},
         {"conditions are looked at", test_conditions},
         {"its workload exists", test_its_workload_exists},
         {"a workload is refused", test_a_workload_is_refused},
         {"a pod names its group", test_a_pod_names_its_group},
         {"what is served", test_what_is_served})
