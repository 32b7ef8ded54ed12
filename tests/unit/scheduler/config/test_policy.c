/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/scheduler/config/fixture.h"

#define POLICY "kind: Policy\napiVersion: v1\n"

static const struct bh_json *args_of(const struct fx_read *f, const char *plugin)
{
    const struct bh_profile_config *p = &f->c->profiles[0];

    for (uint32_t i = 0; i < p->n_args; i++)
        if (bh_streq(p->args[i].name, plugin))
            return p->args[i].args;
    return NULL;
}

static void test_defaults(void)
{
    struct fx_read f = fx_good("{\"kind\": \"Policy\", \"apiVersion\": \"v1\"}");

    fx_expect_plugins(f.c, 0, BH_POINT_FILTER,
                      "NodeUnschedulable NodeResourcesFit NodeName NodePorts NodeAffinity "
                      "VolumeRestrictions TaintToleration NodeVolumeLimits VolumeBinding "
                      "VolumeZone PodTopologySpread InterPodAffinity DynamicResources "
                      "NodeDeclaredFeatures");
    fx_expect_plugins(f.c, 0, BH_POINT_SCORE,
                      "NodeResourcesBalancedAllocation:1 PodTopologySpread:2 ImageLocality:1 "
                      "InterPodAffinity:1 NodeResourcesFit:1 NodeAffinity:1 TaintToleration:1 "
                      "DynamicResources:2");
    fx_expect_plugins(f.c, 0, BH_POINT_QUEUE_SORT, "PrioritySort");
    fx_expect_plugins(f.c, 0, BH_POINT_BIND, "DefaultBinder");
    fx_expect_plugins(f.c, 0, BH_POINT_POST_FILTER, "DynamicResources DefaultPreemption");
    fx_expect_plugins(f.c, 0, BH_POINT_PRE_BIND, "VolumeBinding DynamicResources");
    CU_ASSERT_STRING_EQUAL(f.c->profiles[0].scheduler_name, "default-scheduler");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(args_of(&f, "PodTopologySpread"), "defaultingType"),
                           "System");
    CU_ASSERT(fx_warned(&f, 0, "there is no list of predicates"));
    CU_ASSERT(fx_warned(&f, 1, "Policy files were removed from kube-scheduler in 1.23"));
    fx_done(&f);
}

/* Each line of the two tables. */
static void test_tables(void)
{
    static const struct {
        const char *name, *filters;
    } predicates[] = {
        {"GeneralPredicates", "NodeResourcesFit NodeName NodePorts NodeAffinity "},
        {"PodFitsResources", "NodeResourcesFit "},
        {"HostName", "NodeName "},
        {"PodFitsHostPorts", "NodePorts "},
        {"PodFitsPorts", "NodePorts "},
        {"MatchNodeSelector", "NodeAffinity "},
        {"NoDiskConflict", "VolumeRestrictions "},
        {"NoVolumeZoneConflict", "VolumeZone "},
        {"MaxCSIVolumeCountPred", "NodeVolumeLimits "},
        {"MaxEBSVolumeCount", "NodeVolumeLimits "},
        {"MaxGCEPDVolumeCount", "NodeVolumeLimits "},
        {"MaxAzureDiskVolumeCount", "NodeVolumeLimits "},
        {"MaxCinderVolumeCount", "NodeVolumeLimits "},
        {"CheckVolumeBinding", "VolumeBinding "},
        {"MatchInterPodAffinity", "InterPodAffinity "},
        {"EvenPodsSpread", "PodTopologySpread "},
        {"PodToleratesNodeTaints", ""},
        {"CheckNodeUnschedulable", ""},
    };
    static const struct {
        const char *name, *score;
    } priorities[] = {
        {"LeastRequestedPriority", "NodeResourcesFit:7"},
        {"MostRequestedPriority", "NodeResourcesFit:7"},
        {"BalancedResourceAllocation", "NodeResourcesBalancedAllocation:7"},
        {"ImageLocalityPriority", "ImageLocality:7"},
        {"InterPodAffinityPriority", "InterPodAffinity:7"},
        {"NodeAffinityPriority", "NodeAffinity:7"},
        {"TaintTolerationPriority", "TaintToleration:7"},
        {"SelectorSpreadPriority", "PodTopologySpread:7"},
        {"ServiceSpreadingPriority", "PodTopologySpread:7"},
        {"EvenPodsSpreadPriority", "PodTopologySpread:7"},
    };
    struct bh_arena a;

    bh_arena_init(&a, 0);
    for (size_t i = 0; i < BH_ARRAY_LEN(predicates); i++) {
        const char *name = predicates[i].name, *own = predicates[i].filters;
        /* Tolerations are checked before the volumes' limits and after the plain ones. */
        bool early = strstr("NodeResourcesFit NodeName NodePorts NodeAffinity VolumeRestrictions",
                            bh_arena_printf(&a, "%.*s", (int)strcspn(own, " "), own));
        struct fx_read f =
            fx_good(bh_arena_printf(&a, POLICY "priorities: []\npredicates:\n- name: %s\n", name));
        fx_expect_plugins(f.c, 0, BH_POINT_FILTER,
                          bh_arena_printf(&a,
                                          "NodeUnschedulable %sTaintToleration %sDynamicResources "
                                          "NodeDeclaredFeatures",
                                          early ? own : "", early ? "" : own));
        CU_ASSERT(fx_warned(&f, 5, bh_arena_printf(&a, "predicate %s became ", name)));
        fx_done(&f);
    }
    for (size_t i = 0; i < BH_ARRAY_LEN(priorities); i++) {
        const char *name = priorities[i].name;
        struct fx_read f = fx_good(bh_arena_printf(
            &a, POLICY "predicates: []\npriorities:\n- {name: %s, weight: 7}\n", name));
        fx_expect_plugins(f.c, 0, BH_POINT_SCORE,
                          bh_arena_printf(&a, "%s DynamicResources:2", priorities[i].score));
        CU_ASSERT(fx_warned(&f, 5, bh_arena_printf(&a, "priority %s became ", name)));
        fx_done(&f);
    }
    bh_arena_fini(&a);
}

static void test_strategies(void)
{
    struct fx_read f = fx_good(POLICY "priorities: [{name: MostRequestedPriority, weight: 1}]\n");

    CU_ASSERT_STRING_EQUAL(
        bh_json_get_text(bh_json_get(args_of(&f, "NodeResourcesFit"), "scoringStrategy"), "type"),
        "MostAllocated");
    fx_done(&f);
    f = fx_good(POLICY
                "priorities:\n- name: Mine\n  weight: 4\n  argument:\n"
                "    requestedToCapacityRatioArguments:\n      shape: [{utilization: 0, "
                "score: 0}, {utilization: 100, score: 10}]\n      resources: [{name: x.com/g, "
                "weight: 3}]\n");
    const struct bh_json *s = bh_json_get(args_of(&f, "NodeResourcesFit"), "scoringStrategy");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(s, "type"), "RequestedToCapacityRatio");
    CU_ASSERT(bh_json_get(bh_json_get(s, "requestedToCapacityRatio"), "shape")->c.n == 2);
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(bh_json_get(s, "resources")->c.first, "name"),
                           "x.com/g");
    fx_expect_plugins(f.c, 0, BH_POINT_SCORE, "NodeResourcesFit:4 DynamicResources:2");
    CU_ASSERT(fx_warned(&f, 4,
                        "priority Mine became NodeResourcesFit with the strategy "
                        "RequestedToCapacityRatio, weight 4"));
    fx_done(&f);
    /* System spreading only where somebody asked for it. */
    f = fx_good(POLICY "priorities: [{name: EvenPodsSpreadPriority, weight: 1}]\n");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(args_of(&f, "PodTopologySpread"), "defaultingType"),
                           "List");
    fx_done(&f);
}

static void test_arguments(void)
{
    struct fx_read f = fx_good(
        POLICY "hardPodAffinitySymmetricWeight: 10\nalwaysCheckAllPredicates: true\npredicates:\n"
               "- name: MatchInterPodAffinity\n- name: Zone\n  argument: {labelsPresence: {labels: "
               "[zone, rack], presence: true}}\n- name: Old\n  argument: {labelsPresence: {labels: "
               "[retired], presence: false}}\n- name: Same\n  argument: {serviceAffinity: {labels: "
               "[region]}}\n- name: CheckNodeLabelPresence\npriorities:\n- {name: "
               "NodePreferAvoidPodsPriority, weight: 10000}\n- {name: EqualPriority, weight: 1}\n"
               "- {name: Spread, weight: 1, argument: {serviceAntiAffinity: {label: zone}}}\n"
               "- {name: Prefer, weight: 1, argument: {labelPreference: {label: ssd, presence: "
               "true}}}\n");
    const struct bh_json *terms = bh_json_path(
        args_of(&f, "NodeAffinity"),
        "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms");
    const struct bh_json *e = bh_json_get(bh_json_at(terms, 0), "matchExpressions");

    CU_ASSERT_FATAL(terms != NULL && terms->c.n == 1 && e != NULL && e->c.n == 3);
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(bh_json_at(e, 0), "key"), "zone");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(bh_json_at(e, 1), "operator"), "Exists");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(bh_json_at(e, 2), "key"), "retired");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(bh_json_at(e, 2), "operator"), "DoesNotExist");
    CU_ASSERT(bh_json_get_i64(args_of(&f, "InterPodAffinity"), "hardPodAffinityWeight", 0) == 10);
    fx_expect_plugins(f.c, 0, BH_POINT_SCORE, "DynamicResources:2");
    CU_ASSERT(fx_warned(&f, 3, "hardPodAffinitySymmetricWeight became hardPodAffinityWeight"));
    CU_ASSERT(fx_warned(&f, 4, "alwaysCheckAllPredicates has no counterpart"));
    CU_ASSERT(fx_warned(&f, 7, "predicate Zone (LabelsPresence) became NodeAffinity's"));
    CU_ASSERT(fx_warned(&f, 11, "predicate Same is no longer there"));
    CU_ASSERT(fx_warned(&f, 13, "predicate CheckNodeLabelPresence is no longer there"));
    CU_ASSERT(fx_warned(&f, 15, "priority NodePreferAvoidPodsPriority is no longer there"));
    CU_ASSERT(fx_warned(&f, 16, "EqualPriority gave every node the same"));
    CU_ASSERT(fx_warned(&f, 17, "priority Spread is no longer there"));
    CU_ASSERT(fx_warned(&f, 18, "priority Prefer is no longer there"));
    fx_done(&f);
}

static void test_extenders(void)
{
    struct fx_read f = fx_good(
        "{\"kind\": \"Policy\", \"apiVersion\": \"v1\", \"extenders\": [{\"urlPrefix\": "
        "\"http://a\", \"filterVerb\": \"f\", \"enableHttps\": true, \"httpTimeout\": 100000000, "
        "\"ignorable\": true}, {\"urlPrefix\": \"http://b\", \"enableHTTPS\": true, "
        "\"httpTimeout\": \"2s\", \"managedResources\": [{\"name\": \"x.com/a\", "
        "\"ignoredByScheduler\": true}]}]}");

    CU_ASSERT_FATAL(f.c->n_extenders == 2);
    CU_ASSERT_STRING_EQUAL(f.c->extenders[1].url_prefix, "http://a");
    CU_ASSERT(f.c->extenders[1].http_timeout_ns == 100000000 && f.c->extenders[1].enable_https);
    CU_ASSERT(f.c->extenders[0].http_timeout_ns == 2000000000 && f.c->extenders[0].enable_https);
    CU_ASSERT(bh_json_get(args_of(&f, "NodeResourcesFit"), "ignoredResources")->c.n == 1);
    fx_done(&f);
}

static void test_errors(void)
{
    static const struct fx_bad cases[] = {
        {POLICY "predicates:\n- name: Foo\n",
         "Invalid configuration: Predicate type not found for Foo", 4},
        {POLICY "priorities:\n- {name: Bar, weight: 1}\n",
         "Invalid configuration: Priority type not found for Bar", 4},
        {POLICY "priorities:\n- {name: RequestedToCapacityRatioPriority, weight: 1}\n",
         "Invalid configuration: Priority type not found for RequestedToCapacityRatioPriority", 4},
        {POLICY "priorities:\n- {name: Bar, weight: 1}\npredicates:\n- name: Foo\n- name: Baz\n",
         "[Invalid configuration: Predicate type not found for Foo, Invalid configuration: "
         "Predicate type not found for Baz, Invalid configuration: Priority type not found for "
         "Bar]",
         6},
        {POLICY "priorities:\n- name: ImageLocalityPriority\n",
         "priority ImageLocalityPriority should have a positive weight applied to it or it has "
         "overflown",
         4},
        {POLICY "priorities: [{name: ImageLocalityPriority, weight: 92233720368547758}]\n",
         "priority ImageLocalityPriority should have a positive weight applied to it or it has "
         "overflown",
         3},
        {POLICY "priorities: [{name: LeastRequestedPriority, weight: 1}, {name: "
                "MostRequestedPriority, weight: 1}]\n",
         "priorities LeastRequestedPriority and MostRequestedPriority cannot be translated "
         "together: NodeResourcesFit has one scoring strategy",
         3},
        {POLICY "predicates: [{name: A, argument: {}}]\n",
         "exactly 1 predicate argument is required, numArgs: 0, predicate: A", 3},
        {POLICY "priorities: [{name: A, weight: 1, argument: {labelPreference: {}, "
                "serviceAntiAffinity: {}}}]\n",
         "exactly 1 priority argument is required, numArgs: 2, priority: A", 3},
        {POLICY "hardPodAffinitySymmetricWeight: 101\n",
         "hardPodAffinitySymmetricWeight: Invalid value: 101: not in valid range [0-100]", 3},
        {POLICY "extenders: [{bindVerb: a}, {bindVerb: b}]\n",
         "extenders: Invalid value: \"found 2 extenders implementing bind\": only one extender can "
         "implement bind",
         3},
        {POLICY "extenders: [{httpTimeout: soon}]\n",
         "json: cannot unmarshal string into Go struct field LegacyExtender.extenders.httpTimeout "
         "of type time.Duration",
         3},
        {POLICY "predicate: []\n", "strict decoding error: unknown field \"predicate\"", 3},
        {POLICY "predicates: [{name: A, argument: {x: 1}}]\n",
         "strict decoding error: unknown field \"predicates[0].argument.x\"", 3},
        {POLICY "priorities: [{name: A, weight: 1.5}]\n",
         "json: cannot unmarshal number 1.5 into Go struct field PriorityPolicy.priorities.weight "
         "of type int64",
         3},
        {POLICY "priorities: []\npriorities: []\n",
         "strict decoding error: yaml: unmarshal errors:\n  line 4: key \"priorities\" already set "
         "in map",
         4},
        {POLICY "priorities: [{name: A, weight: 1, argument: "
                "{requestedToCapacityRatioArguments: {}}}]\n",
         "initializing profiles: creating profile for scheduler name default-scheduler: "
         "initializing plugin \"NodeResourcesFit\": "
         "scoringStrategy.requestedToCapacityRatio.shape: "
         "Required value: at least one point must be specified",
         3},
    };

    fx_refused(cases, BH_ARRAY_LEN(cases));
}

BH_TESTS("scheduler/config/policy", {"an empty Policy means the defaults", test_defaults},
         {"every predicate and priority", test_tables},
         {"NodeResourcesFit's strategies", test_strategies},
         {"arguments and what is gone", test_arguments}, {"extenders", test_extenders},
         {"errors", test_errors})
