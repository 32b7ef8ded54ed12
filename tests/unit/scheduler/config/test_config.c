/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "common/data/yaml.h"
#include "scheduler/config/config.h"
#include "scheduler/config/field.h"
#include "tests/unit/harness.h"

#include <stdio.h>

#define HEAD "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
#define ARGS HEAD "profiles:\n- pluginConfig:\n"

static int load(const char *yaml, struct bh_sched_config **ret, struct bh_err *err)
{
    struct bh_arena a;
    struct bh_json *tree;

    bh_arena_init(&a, 0);
    int rc = bh_yaml_parse(&a, yaml, strlen(yaml), BH_JSON_STRICT, &tree, err);
    if (rc >= 0)
        rc = bh_sched_config_new(tree, ret, err);
    bh_arena_fini(&a);
    return rc;
}

static const char *list(struct bh_arena *a, const struct bh_profile_config *p, enum bh_point pt)
{
    const char *text = "";

    for (uint32_t i = 0; i < p->n_points[pt]; i++) {
        const struct bh_plugin_ref *r = &p->points[pt][i];
        text = bh_arena_printf(a, "%s%s%s", text, i ? " " : "", r->name);
        if (pt == BH_POINT_SCORE)
            text = bh_arena_printf(a, "%s:%d", text, r->weight);
    }
    return text;
}

static void expect_list(const char *yaml, unsigned profile, enum bh_point pt, const char *want)
{
    struct bh_sched_config *c = NULL;
    struct bh_err err = {{0}};
    struct bh_arena a;

    bh_arena_init(&a, 0);
    int rc = yaml ? load(yaml, &c, &err) : bh_sched_config_new(NULL, &c, &err);
    if (rc < 0)
        fprintf(stderr, "  %s\n", err.msg);
    CU_ASSERT_FATAL(rc == 0);
    const char *have = list(&a, &c->profiles[profile], pt);
    if (!bh_streq(have, want))
        fprintf(stderr, "  have %s\n  want %s\n", have, want);
    CU_ASSERT(bh_streq(have, want));
    bh_arena_fini(&a);
    bh_sched_config_free(c);
}

static void test_defaults(void)
{
    const char *score = "TaintToleration:3 NodeAffinity:2 NodeResourcesFit:1 VolumeBinding:1 "
                        "PodTopologySpread:2 InterPodAffinity:2 DynamicResources:2 "
                        "NodeResourcesBalancedAllocation:1 ImageLocality:1";
    struct bh_sched_config *c = NULL;
    struct bh_err err;

    expect_list(NULL, 0, BH_POINT_SCORE, score);
    expect_list(HEAD, 0, BH_POINT_SCORE, score);
    expect_list(NULL, 0, BH_POINT_PRE_ENQUEUE,
                "SchedulingGates DynamicResources DefaultPreemption");
    expect_list(
        NULL, 0, BH_POINT_PRE_FILTER,
        "NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding "
        "VolumeZone PodTopologySpread InterPodAffinity DynamicResources NodeDeclaredFeatures");
    expect_list(
        NULL, 0, BH_POINT_FILTER,
        "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit "
        "VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread "
        "InterPodAffinity DynamicResources NodeDeclaredFeatures");
    expect_list(NULL, 0, BH_POINT_POST_FILTER, "DynamicResources DefaultPreemption");
    expect_list(NULL, 0, BH_POINT_PRE_SCORE,
                "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread "
                "InterPodAffinity NodeResourcesBalancedAllocation");
    expect_list(NULL, 0, BH_POINT_RESERVE, "VolumeBinding DynamicResources");
    expect_list(NULL, 0, BH_POINT_PRE_BIND, "VolumeBinding DynamicResources");
    expect_list(NULL, 0, BH_POINT_BIND, "DefaultBinder");
    expect_list(NULL, 0, BH_POINT_PERMIT, "");
    expect_list(NULL, 0, BH_POINT_POST_BIND, "");
    expect_list(NULL, 0, BH_POINT_QUEUE_SORT, "PrioritySort");
    CU_ASSERT_FATAL(bh_sched_config_new(NULL, &c, &err) == 0);
    CU_ASSERT(c->parallelism == 16 && c->percentage_of_nodes_to_score == 0);
    CU_ASSERT(c->pod_initial_backoff_ns == 1000000000 && c->pod_max_backoff_ns == 10000000000);
    CU_ASSERT(c->n_profiles == 1 && !c->profiles[0].has_percentage);
    CU_ASSERT_STRING_EQUAL(c->profiles[0].scheduler_name, "default-scheduler");
    bh_sched_config_free(c);
}

static void test_multi_point(void)
{
    /* A default that is named again keeps its place and loses its weight. */
    expect_list(
        HEAD "profiles:\n- plugins:\n    multiPoint:\n      enabled: [{name: TaintToleration}]\n",
        0, BH_POINT_PRE_SCORE,
        "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread "
        "InterPodAffinity NodeResourcesBalancedAllocation");
    /* Disabled and enabled: goes to the end. */
    expect_list(
        HEAD "profiles:\n- plugins:\n    multiPoint:\n      disabled: [{name: TaintToleration}]\n"
             "      enabled: [{name: TaintToleration, weight: 9}]\n",
        0, BH_POINT_SCORE,
        "NodeAffinity:2 NodeResourcesFit:1 VolumeBinding:1 PodTopologySpread:2 InterPodAffinity:2 "
        "DynamicResources:2 NodeResourcesBalancedAllocation:1 ImageLocality:1 TaintToleration:9");
    /* Explicit entries come first in their own order, those unknown to multiPoint last. */
    expect_list(
        HEAD "profiles:\n- plugins:\n    multiPoint:\n      disabled: [{name: NodeName}]\n"
             "    filter:\n      disabled: [{name: NodePorts}]\n"
             "      enabled: [{name: NodeName}, {name: NodeAffinity}]\n",
        0, BH_POINT_FILTER,
        "NodeAffinity NodeUnschedulable TaintToleration NodeResourcesFit VolumeRestrictions "
        "NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity "
        "DynamicResources NodeDeclaredFeatures NodeName");
    expect_list(HEAD "profiles:\n- plugins:\n    score:\n      disabled: [{name: '*'}]\n"
                     "      enabled: [{name: ImageLocality, weight: 4}, {name: NodeAffinity}]\n",
                0, BH_POINT_SCORE, "ImageLocality:4 NodeAffinity:1");
    expect_list(HEAD "profiles:\n- plugins:\n    score: {disabled: [{name: '*'}]}\n", 0,
                BH_POINT_SCORE, "");
    expect_list(HEAD "profiles:\n- plugins:\n    multiPoint:\n      disabled: [{name: '*'}]\n"
                     "      enabled: [{name: DefaultBinder}, {name: PrioritySort}]\n",
                0, BH_POINT_FILTER, "");
    expect_list(
        HEAD "profiles:\n- schedulerName: a\n- schedulerName: b\n  plugins:\n    score:\n      "
             "disabled: [{name: Unknown}, {name: ImageLocality}]\n",
        1, BH_POINT_SCORE,
        "TaintToleration:3 NodeAffinity:2 NodeResourcesFit:1 VolumeBinding:1 PodTopologySpread:2 "
        "InterPodAffinity:2 DynamicResources:2 NodeResourcesBalancedAllocation:1");
}

struct bad {
    const char *yaml, *message;
};

static void expect_errors(const struct bad *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct bh_sched_config *c = NULL;
        struct bh_err err = {{0}};
        int rc = load(cases[i].yaml, &c, &err);
        if (rc == 0 || !bh_streq(err.msg, cases[i].message))
            fprintf(stderr, "  case %zu: have \"%s\"\n           want \"%s\"\n", i,
                    rc == 0 ? "(accepted)" : err.msg, cases[i].message);
        CU_ASSERT(rc < 0 && bh_streq(err.msg, cases[i].message));
        if (rc == 0)
            bh_sched_config_free(c);
    }
}

static void test_decode_errors(void)
{
    static const struct bad cases[] = {
        {HEAD "foo: 1\n", "strict decoding error: unknown field \"foo\""},
        {HEAD "Parallelism: 1\n", "strict decoding error: unknown field \"Parallelism\""},
        {HEAD "profiles: [{foo: 1}]\n", "strict decoding error: unknown field \"profiles[0].foo\""},
        {HEAD "a: 1\nb: 2\n", "strict decoding error: unknown field \"a\", unknown field \"b\""},
        {HEAD "parallelism: many\n", "json: cannot unmarshal string into Go struct field "
                                     "KubeSchedulerConfiguration.parallelism of type int32"},
        {HEAD "parallelism: 3.5\n", "json: cannot unmarshal number 3.5 into Go struct field "
                                    "KubeSchedulerConfiguration.parallelism of type int32"},
        {HEAD "leaderElection: {leaseDuration: 15}\n",
         "json: cannot unmarshal number into Go struct field "
         "LeaderElectionConfiguration.leaderElection.leaseDuration of type string"},
        {HEAD "leaderElection: {leaseDuration: 15x}\n",
         "time: unknown unit \"x\" in duration \"15x\""},
        {"apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n",
         "no kind \"KubeSchedulerConfiguration\" is registered for version "
         "\"kubescheduler.config.k8s.io/v1beta3\" in scheme "
         "\"pkg/scheduler/apis/config/scheme/scheme.go:29\""},
        {"apiVersion: kubescheduler.config.k8s.io/v1\nkind: DefaultPreemptionArgs\n",
         "couldn't decode as KubeSchedulerConfiguration, got kubescheduler.config.k8s.io/v1, "
         "Kind=DefaultPreemptionArgs: "},
        {"apiVersion: kubescheduler.config.k8s.io/v1\n",
         "Object 'Kind' is missing in '{\"apiVersion\":\"kubescheduler.config.k8s.io/v1\"}'"},
        {"", "Object 'Kind' is missing in ''"},
        {ARGS "  - name: InterPodAffinity\n    args: {x: 1}\n",
         "strict decoding error: decoding .profiles[0].pluginConfig[0]: strict decoding error: "
         "decoding "
         "args for plugin InterPodAffinity: strict decoding error: unknown field \"x\""},
        {ARGS "  - name: InterPodAffinity\n    args: {kind: NodeAffinityArgs}\n",
         "decoding .profiles[0].pluginConfig[0]: args for plugin InterPodAffinity were not of type "
         "InterPodAffinityArgs.kubescheduler.config.k8s.io, got "
         "NodeAffinityArgs.kubescheduler.config.k8s.io"},
    };

    expect_errors(cases, BH_ARRAY_LEN(cases));
}

static void test_top_level_validation(void)
{
    static const struct bad cases[] = {
        {HEAD "parallelism: 0\n",
         "parallelism: Invalid value: 0: should be an integer value greater than zero"},
        {HEAD "percentageOfNodesToScore: 101\n",
         "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"},
        {HEAD "podInitialBackoffSeconds: 0\n",
         "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"},
        {HEAD "podInitialBackoffSeconds: 5\npodMaxBackoffSeconds: 4\n",
         "podMaxBackoffSeconds: Invalid value: 4: must be greater than or equal to "
         "PodInitialBackoffSeconds"},
        {HEAD "clientConnection: {burst: -1}\n",
         "clientConnection.burst: Invalid value: -1: must be non-negative"},
        {HEAD "leaderElection: {leaseDuration: 5s}\n",
         "leaderElection.leaseDuration: Invalid value: \"10s\": must be greater than "
         "`RenewDeadline`"},
        {HEAD "leaderElection: {resourceLock: endpoints}\n",
         "leaderElection.resourceLock: Invalid value: \"endpoints\": resourceLock value must be "
         "\"leases\""},
        {HEAD "parallelism: -1\npercentageOfNodesToScore: -2\n",
         "[parallelism: Invalid value: -1: should be an integer value greater than zero, "
         "percentageOfNodesToScore: Invalid value: -2: not in valid range [0-100]]"},
        {HEAD "extenders: [{urlPrefix: 'http://x'}]\n",
         "extenders: Forbidden: extenders are not supported in this release"},
    };

    expect_errors(cases, BH_ARRAY_LEN(cases));
}

static void test_profile_validation(void)
{
    static const struct bad cases[] = {
        {HEAD "profiles: [{schedulerName: ''}]\n", "profiles[0].schedulerName: Required value"},
        {HEAD "profiles: [{schedulerName: a}, {}]\n", "profiles[1].schedulerName: Required value"},
        {HEAD "profiles: [{schedulerName: a}, {schedulerName: a}]\n",
         "profiles[1].schedulerName: Duplicate value: {}"},
        {HEAD "profiles: [{percentageOfNodesToScore: 200}]\n",
         "profiles[0].percentageOfNodesToScore: Invalid value: 200: not in valid range [0-100]"},
        {ARGS "  - name: Foo\n  - name: Foo\n",
         "profiles[0].pluginConfig[1]: Duplicate value: \"Foo\""},
        {HEAD "profiles: [{plugins: {filter: {enabled: [{name: EBSLimits}]}}}]\n",
         "profiles[0].plugins.filter.enabled[0]: Invalid value: \"EBSLimits\": was invalid in "
         "version "
         "\"v1\" (KubeSchedulerConfiguration is version \"kubescheduler.config.k8s.io/v1\")"},
        {HEAD "profiles:\n- schedulerName: a\n- schedulerName: b\n  plugins: {queueSort: {enabled: "
              "[{name: "
              "PrioritySort}]}}\n",
         "profiles[1].plugins.queueSort: Invalid value: "
         "{\"Enabled\":[{\"Name\":\"PrioritySort\",\"Weight\":0}],\"Disabled\":null}: must be the "
         "same "
         "for all profiles"},
    };

    expect_errors(cases, BH_ARRAY_LEN(cases));
}

#define CREATING "initializing profiles: creating profile for scheduler name default-scheduler: "

static void test_expansion_errors(void)
{
    static const struct bad cases[] = {
        {HEAD "profiles: [{plugins: {score: {enabled: [{name: Foo}]}}}]\n",
         CREATING "ScorePlugin \"Foo\" does not exist"},
        {HEAD "profiles: [{plugins: {multiPoint: {enabled: [{name: Foo}]}}}]\n",
         CREATING "PreFilterPlugin \"Foo\" does not exist"},
        {HEAD "profiles: [{plugins: {score: {enabled: [{name: NodePorts}]}}}]\n",
         CREATING "plugin \"NodePorts\" does not extend ScorePlugin plugin"},
        {HEAD "profiles: [{plugins: {score: {enabled: [{name: ImageLocality}, {name: "
              "ImageLocality}]}}}]\n",
         CREATING "plugin \"ImageLocality\" already registered as \"ScorePlugin\""},
        {HEAD "profiles: [{plugins: {bind: {disabled: [{name: '*'}]}}}]\n",
         CREATING "at least one bind plugin is needed for profile with scheduler name "
                  "\"default-scheduler\""},
        {HEAD "profiles: [{plugins: {queueSort: {disabled: [{name: '*'}]}}}]\n",
         CREATING "only one queue sort plugin required for profile with scheduler name "
                  "\"default-scheduler\", but got 0"},
        {HEAD "profiles: [{plugins: {score: {enabled: [{name: ImageLocality, weight: -5}]}}}]\n",
         CREATING "score plugins: total score of Score plugins could overflow"},
    };

    expect_errors(cases, BH_ARRAY_LEN(cases));
}

#define AT0 "profiles[0].pluginConfig[0].args."
#define FIT CREATING "initializing plugin \"NodeResourcesFit\": "

static void test_args_validation(void)
{
    static const struct bad cases[] = {
        {ARGS "  - name: InterPodAffinity\n    args: {hardPodAffinityWeight: 101}\n",
         AT0 "hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"},
        {ARGS "  - name: DefaultPreemption\n    args: {minCandidateNodesPercentage: 0, "
              "minCandidateNodesAbsolute: 0}\n",
         "[" AT0
         "minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as "
         "minCandidateNodesAbsolute, " AT0
         "minCandidateNodesAbsolute: Invalid value: 0: cannot be zero "
         "at the same time as minCandidateNodesPercentage]"},
        {ARGS "  - name: DefaultPreemption\n    args: {minCandidateNodesAbsolute: -1}\n",
         AT0 "minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)"},
        {ARGS "  - name: PodTopologySpread\n    args: {defaultConstraints: [{maxSkew: 1, "
              "topologyKey: a, "
              "whenUnsatisfiable: ScheduleAnyway}]}\n",
         AT0 "defaultingType: Invalid value: \"System\": when .defaultConstraints are not empty"},
        {ARGS "  - name: PodTopologySpread\n    args: {defaultingType: Foo}\n",
         AT0 "defaultingType: Unsupported value: \"Foo\": supported values: \"System\", \"List\""},
        {ARGS "  - name: PodTopologySpread\n    args: {defaultingType: List, defaultConstraints: "
              "[{maxSkew: "
              "0, topologyKey: '', whenUnsatisfiable: ScheduleAnyway}]}\n",
         "[" AT0
         "defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf), " AT0
         "defaultConstraints[0].topologyKey: Required value: can not be empty]"},
        {ARGS "  - name: PodTopologySpread\n    args: {defaultingType: List, defaultConstraints: "
              "[{maxSkew: "
              "1, topologyKey: a, whenUnsatisfiable: Foo}]}\n",
         AT0
         "defaultConstraints[0].whenUnsatisfiable: Unsupported value: \"Foo\": supported values: "
         "\"DoNotSchedule\", \"ScheduleAnyway\""},
        {ARGS "  - name: PodTopologySpread\n    args: {defaultingType: List, defaultConstraints: "
              "[{maxSkew: "
              "1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}, {maxSkew: 2, topologyKey: a, "
              "whenUnsatisfiable: ScheduleAnyway, labelSelector: {}}]}\n",
         "[" AT0 "defaultConstraints[1].labelSelector: Forbidden: constraint must not define a "
                 "selector, as "
         "they deduced for each pod, " AT0
         "defaultConstraints[1]: Duplicate value: \"{a, ScheduleAnyway}\"]"},
        {ARGS "  - name: NodeResourcesBalancedAllocation\n    args: {resources: [{name: cpu, "
              "weight: 2}, "
              "{name: cpu}]}\n",
         "[" AT0 "resources[0].weight: Invalid value: 2: must be 1, " AT0
         "resources[1].name: Duplicate value: \"cpu\"]"},
        {ARGS "  - name: VolumeBinding\n    args: {bindTimeoutSeconds: -1}\n",
         AT0 "bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a "
             "negative "
             "value"},
        {ARGS
         "  - name: NodeAffinity\n    args: {addedAffinity: "
         "{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: "
         "[{key: a, operator: Bar}]}]}}}\n",
         AT0 "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]."
             "matchExpressions[0].operator: Unsupported value: \"Bar\": supported values: \"In\", "
             "\"NotIn\", \"Exists\", \"DoesNotExist\", \"Gt\", \"Lt\""},
        {ARGS "  - name: NodeResourcesFit\n    args: {scoringStrategy: {}}\n",
         FIT "scoringStrategy.type: Unsupported value: \"\": supported values: \"LeastAllocated\", "
             "\"MostAllocated\", \"RequestedToCapacityRatio\""},
        {ARGS "  - name: NodeResourcesFit\n    args: {scoringStrategy: {type: LeastAllocated, "
              "resources: "
              "[{name: cpu, weight: 101}]}}\n",
         FIT "scoringStrategy.resources[0].weight: Invalid value: 101: resource weight of cpu not "
             "in valid "
             "range (0, 100]"},
        {ARGS "  - name: NodeResourcesFit\n    args: {scoringStrategy: {type: "
              "RequestedToCapacityRatio}}\n",
         FIT
         "scoringStrategy.requestedToCapacityRatio: Required value: must be specified when type is "
         "RequestedToCapacityRatio"},
        {ARGS
         "  - name: NodeResourcesFit\n    args: {scoringStrategy: {type: RequestedToCapacityRatio, "
         "requestedToCapacityRatio: {shape: [{utilization: 50, score: 11}, {utilization: 50, "
         "score: "
         "1}]}}}\n",
         FIT "[scoringStrategy.requestedToCapacityRatio.shape[1].utilization: Invalid value: 50: "
             "values "
             "must be sorted in increasing order, "
             "scoringStrategy.requestedToCapacityRatio.shape[0].score: "
             "Invalid value: 11: not in valid range [0, 10]]"},
        {ARGS "  - name: NodeResourcesFit\n    args: {ignoredResourceGroups: [a/b]}\n", FIT
         "ignoredResourceGroups[0]: Invalid value: \"a/b\": resource group name can't contain '/'"},
    };

    expect_errors(cases, BH_ARRAY_LEN(cases));
}

static void test_hostile_input(void)
{
    struct bh_sched_config *c = NULL;
    struct bh_err err = {{0}};
    struct bh_buf b = {0};

    bh_buf_adds(&b, HEAD "profiles: [{plugins: {score: {enabled: [");
    for (unsigned i = 0; i < 20000; i++)
        bh_buf_addf(&b, "{name: x%u},", i);
    bh_buf_adds(&b, "]}}}]\n");
    CU_ASSERT(load(bh_buf_str(&b), &c, &err) == -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg, CREATING "ScorePlugin \"x0\" does not exist");
    bh_buf_reset(&b);
    bh_buf_adds(&b, HEAD);
    for (unsigned i = 0; i < 1000; i++)
        bh_buf_addf(&b, "unknown-%u: 1\n", i);
    CU_ASSERT(load(bh_buf_str(&b), &c, &err) == -EINVAL); /* the message is cut, not the process */
    CU_ASSERT(load("profiles: 1\n", &c, &err) == -EINVAL);
    CU_ASSERT(load("[]\n", &c, &err) == -EINVAL);
    CU_ASSERT(load(HEAD "profiles: [1]\n", &c, &err) == -EINVAL);
    CU_ASSERT(load(HEAD "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: 7}]}]\n", &c,
                   &err) == -EINVAL);
    bh_buf_fini(&b);
}

static void test_file(void)
{
    struct bh_sched_config *c = NULL;
    struct bh_err err = {{0}};
    char path[256];
    const char *text =
        HEAD "percentageOfNodesToScore: 40\nprofiles: [{schedulerName: x, "
             "percentageOfNodesToScore: 0, pluginConfig: [{name: NodeAffinity, args: {}}]}]\n";

    snprintf(path, sizeof path, "%s/config.yaml", bh_test_tmpdir());
    CU_ASSERT(bh_write_file(path, text, strlen(text), 0600) == 0);
    CU_ASSERT_FATAL(bh_sched_config_load(path, &c, &err) == 0);
    CU_ASSERT(c->percentage_of_nodes_to_score == 40);
    CU_ASSERT(c->profiles[0].has_percentage && c->profiles[0].percentage_of_nodes_to_score == 0);
    CU_ASSERT(c->profiles[0].n_args == 1);
    bh_sched_config_free(c);
    CU_ASSERT(bh_sched_config_load("/nonexistent/x", &c, &err) == -ENOENT);
    CU_ASSERT_STRING_EQUAL(err.msg, "open /nonexistent/x: No such file or directory");
}

BH_TESTS("scheduler/config", {"the default profile expands as upstream's", test_defaults},
         {"multiPoint is merged, ordered and weighted", test_multi_point},
         {"decode errors read as upstream's", test_decode_errors},
         {"top-level values are validated", test_top_level_validation},
         {"profiles are validated", test_profile_validation},
         {"expansion errors name point and plugin", test_expansion_errors},
         {"plugin args are validated", test_args_validation},
         {"hostile input gives an error", test_hostile_input}, {"a file is loaded", test_file})
