/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/scheduler/config/fixture.h"

static void expect_list(const char *yaml, unsigned profile, enum bh_point pt, const char *want)
{
    struct bh_sched_config *c = NULL;
    struct fx_read f;

    if (yaml) {
        f = fx_good(yaml);
        fx_expect_plugins(f.c, profile, pt, want);
        fx_done(&f);
        return;
    }
    CU_ASSERT_FATAL(bh_sched_config_new(NULL, &c, NULL) == 0);
    fx_expect_plugins(c, profile, pt, want);
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

#define CREATING "initializing profiles: creating profile for scheduler name default-scheduler: "

static void test_expansion_errors(void)
{
#define SET(point, entries) HEAD "profiles: [{plugins: {" point ": {enabled: [" entries "]}}}]\n"
    static const struct fx_bad cases[] = {
        {HEAD "profiles:\n- plugins:\n    score:\n      enabled:\n      - name: Foo\n",
         CREATING "ScorePlugin \"Foo\" does not exist", 7},
        {HEAD "profiles:\n- plugins:\n    multiPoint:\n      enabled: [{name: Foo}]\n",
         CREATING "PreFilterPlugin \"Foo\" does not exist", 6},
        {SET("score", "{name: NodePorts}"),
         CREATING "plugin \"NodePorts\" does not extend ScorePlugin plugin", 3},
        {SET("score", "{name: ImageLocality}, {name: ImageLocality}"),
         CREATING "plugin \"ImageLocality\" already registered as \"ScorePlugin\"", 3},
        {SET("multiPoint", "{name: ImageLocality}, {name: ImageLocality}"),
         CREATING "plugin \"ImageLocality\" already registered as \"ScorePlugin\"", 3},
        {SET("placementGenerate", "{name: NodePorts}"),
         CREATING "plugin \"NodePorts\" does not extend PlacementGeneratePlugin plugin", 3},
        {SET("placementGenerate",
             "{name: TopologyPlacementGenerator}, {name: TopologyPlacementGenerator}"),
         CREATING "plugin \"TopologyPlacementGenerator\" already registered as "
                  "\"PlacementGeneratePlugin\"",
         3},
        {SET("placementScore", "{name: Foo}"),
         CREATING "PlacementScorePlugin \"Foo\" does not exist", 3},
        {HEAD "profiles: [{plugins: {bind: {disabled: [{name: '*'}]}}}]\n",
         CREATING "at least one bind plugin is needed for profile with scheduler name "
                  "\"default-scheduler\"",
         3},
        {HEAD "profiles: [{plugins: {queueSort: {disabled: [{name: '*'}]}}}]\n",
         CREATING "only one queue sort plugin required for profile with scheduler name "
                  "\"default-scheduler\", but got 0",
         3},
        {SET("score", "{name: ImageLocality, weight: -5}"),
         CREATING "score plugins: total score of Score plugins could overflow", 3},
        /* Counts although the point does not run it. */
        {HEAD "profiles: [{plugins: {multiPoint: {enabled: [{name: TaintToleration, weight: "
              "-5}]}, score: {disabled: [{name: TaintToleration}]}}}]\n",
         CREATING "score plugins: total score of Score plugins could overflow", 3},
    };
    struct fx_read f;

    fx_refused(cases, BH_ARRAY_LEN(cases));
    f = fx_good(SET("score", "{name: ImageLocality, weight: 2147483647}"));
    fx_done(&f);
    f = fx_good(SET("placementScore", "{name: NodeResourcesFit, weight: 3}"));
    fx_done(&f);
}

static void test_defaulted_values(void)
{
    struct fx_read f = fx_good(
        HEAD "parallelism: 3\nclientConnection: {qps: -1, burst: 7, kubeconfig: /k, "
             "acceptContentTypes: a, contentType: application/json}\nleaderElection: "
             "{leaseDuration: 1m, renewDeadline: 40s, retryPeriod: 5s, resourceName: nn, "
             "resourceNamespace: ns}\nenableContentionProfiling: false\npodMaxBackoffSeconds: 60\n"
             "delayCacheUntilActive: true\n");
    struct bh_sched_config *c = f.c;

    CU_ASSERT(c->parallelism == 3 && c->client_connection.qps < 0 &&
              c->client_connection.burst == 7);
    CU_ASSERT_STRING_EQUAL(c->client_connection.kubeconfig, "/k");
    CU_ASSERT_STRING_EQUAL(c->client_connection.accept_content_types, "a");
    CU_ASSERT_STRING_EQUAL(c->client_connection.content_type, "application/json");
    CU_ASSERT(c->leader_election.lease_duration_ns == 60000000000);
    CU_ASSERT(c->leader_election.renew_deadline_ns == 40000000000);
    CU_ASSERT(c->leader_election.retry_period_ns == 5000000000);
    CU_ASSERT_STRING_EQUAL(c->leader_election.resource_name, "nn");
    CU_ASSERT_STRING_EQUAL(c->leader_election.resource_namespace, "ns");
    CU_ASSERT(c->enable_profiling && !c->enable_contention_profiling);
    CU_ASSERT(c->pod_max_backoff_ns == 60000000000 && c->delay_cache_until_active);
    fx_done(&f);
    f = fx_good(HEAD "enableProfiling: false\nclientConnection: {qps: 0, burst: 0}\n");
    CU_ASSERT(!f.c->enable_profiling && !f.c->enable_contention_profiling);
    CU_ASSERT(f.c->client_connection.qps == -1 && f.c->client_connection.burst == 100);
    CU_ASSERT(f.c->leader_election.leader_elect && f.c->n_extenders == 0);
    fx_done(&f);
}

static void test_warnings(void)
{
    struct fx_read f = fx_good(HEAD "profiles:\n- plugins:\n    multiPoint:\n      enabled:\n"
                                    "      - name: TaintToleration\n    score:\n      disabled:\n"
                                    "      - name: NodeResourceFit\n");

    CU_ASSERT(f.r.warnings.n == 2 && f.c->n_warnings == 2);
    CU_ASSERT(fx_warned(&f, 7, "\"TaintToleration\" is listed again without a weight"));
    CU_ASSERT(fx_warned(&f, 10, "there is no plugin \"NodeResourceFit\""));
    CU_ASSERT(strncmp(f.c->warnings[0], "line 10: ", 9) == 0);
    fx_done(&f);
}

/* ---- hostile input --------------------------------------------------------------------------- */

static void many(struct bh_buf *b, const char *before, const char *fmt, unsigned n,
                 const char *after)
{
    bh_buf_reset(b);
    bh_buf_adds(b, before);
    for (unsigned i = 0; i < n; i++)
        bh_buf_addf(b, fmt, i);
    bh_buf_adds(b, after);
}

static int refused(const struct bh_buf *b, const char *part)
{
    struct fx_read f;
    int rc = fx_text(&f, bh_buf_str(b));
    bool hit = rc < 0 && strstr(f.r.summary, part) && f.r.errors.n > 0;

    if (!hit)
        fprintf(stderr, "  %.200s\n", rc < 0 ? f.r.summary : "(accepted)");
    fx_done(&f);
    return hit;
}

static void test_long_lists(void)
{
    struct bh_buf b = {0};
    struct fx_read f;

    many(&b, HEAD "profiles: [{plugins: {score: {enabled: [", "{name: x%u},", 20000, "]}}}]\n");
    CU_ASSERT(refused(&b, CREATING "ScorePlugin \"x0\" does not exist"));
    many(&b, HEAD, "unknown-%u: 1\n", 20000, "");
    CU_ASSERT(refused(&b, "unknown field \"unknown-0\", unknown field"));
    many(&b, HEAD, "k%u: {a: 1, a: 2}\n", 5000, "");
    CU_ASSERT(refused(&b, "key \"a\" already set in map"));
    /* Lists whose pairs must not be compared one by one. */
    many(&b, HEAD "profiles: [{pluginConfig: [", "{name: x%u},", 50000, "{name: x7}]}]\n");
    CU_ASSERT(refused(&b, "pluginConfig[50000]: Duplicate value: \"x7\""));
    many(&b, HEAD "extenders: [{managedResources: [", "{name: x.com/a%u},", 50000, "{name: b}]}]");
    CU_ASSERT(refused(&b, "managedResources[50000].name: Invalid value: \"b\""));
    many(&b, HEAD "profiles: [{plugins: {filter: {disabled: [", "{name: x%u},", 50000,
         "]}, multiPoint: {disabled: [{name: NodeName}], enabled: [{name: NodeName}]}}}]\n");
    f = fx_good(bh_buf_str(&b));
    CU_ASSERT(f.r.warnings.n == 1000);
    fx_done(&f);
    many(&b,
         ARGS "  - name: PodTopologySpread\n    args: {defaultingType: List, "
              "defaultConstraints: [",
         "{maxSkew: 1, topologyKey: k%u, whenUnsatisfiable: ScheduleAnyway},", 20000,
         "{maxSkew: 1, topologyKey: k9, whenUnsatisfiable: ScheduleAnyway}]}\n");
    CU_ASSERT(refused(&b, "[20000]: Duplicate value: \"{k9, ScheduleAnyway}\""));
    bh_buf_fini(&b);
}

static void test_depth_and_bombs(void)
{
    struct bh_buf b = {0};

    many(&b, "", "[", 100000, "");
    CU_ASSERT(refused(&b, ""));
    many(&b, HEAD "profiles: ", "{a: ", 1000, "");
    CU_ASSERT(refused(&b, ""));
    many(&b, "{\"kind\": ", "[", 1000, "");
    CU_ASSERT(refused(&b, "nested too deeply"));
    bh_buf_reset(&b);
    bh_buf_adds(&b, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for (unsigned i = 1; i < 12; i++) {
        bh_buf_addf(&b, "a%u: &a%u [", i, i);
        for (unsigned k = 0; k < 10; k++)
            bh_buf_addf(&b, "*a%u,", i - 1);
        bh_buf_adds(&b, "]\n");
    }
    CU_ASSERT(refused(&b, "document contains excessive aliasing"));
    bh_buf_fini(&b);
}

static void test_sizes(void)
{
    struct bh_sched_config *c = NULL;
    struct bh_err err = {{0}};
    struct bh_buf b = {0};
    struct fx_read f;
    char path[256];

    many(&b, HEAD "profiles: [{schedulerName: ", "x%07u", 250000, "}]\n");
    f = fx_good(bh_buf_str(&b));
    CU_ASSERT(strlen(f.c->profiles[0].scheduler_name) == 2000000);
    fx_done(&f);
    many(&b, HEAD "profiles: [{plugins: {filter: {enabled: [{name: ", "x%07u", 250000, "}]}}}]\n");
    CU_ASSERT(refused(&b, "\" does not exist"));
    /* 10 MB of a name: the file is not even read. */
    many(&b, HEAD "profiles: [{schedulerName: ", "x%07u", 1250000, "}]\n");
    snprintf(path, sizeof path, "%s/big.yaml", bh_test_tmpdir());
    CU_ASSERT_FATAL(bh_write_file(path, b.p, b.n, 0600) == 0);
    CU_ASSERT(bh_sched_config_load(path, &c, &err) == -EFBIG && c == NULL);
    CU_ASSERT(strstr(err.msg, "big.yaml: file too large") != NULL);
    bh_buf_fini(&b);
}

/* Every prefix of a valid file is read without harm. */
static void test_truncated(void)
{
    static const char text[] =
        HEAD "profiles:\n- schedulerName: a\n  plugins:\n    score: {enabled: [{name: "
             "ImageLocality, weight: 2}]}\n  pluginConfig:\n  - name: NodeAffinity\n    args: "
             "{addedAffinity: null}\nextenders: [{urlPrefix: \"http://x\", tlsConfig: {caData: "
             "QUI=}}]\n";
    unsigned good = 0;

    for (size_t n = 0; n < sizeof text; n++) {
        struct bh_sched_config *c = NULL;
        struct bh_config_report r;
        bh_config_report_init(&r);
        int rc = bh_sched_config_read(text, n, &c, &r);
        CU_ASSERT((rc == 0) == (c != NULL) && (rc == 0 || (*r.summary && r.errors.n)));
        good += rc == 0;
        bh_sched_config_free(c);
        bh_config_report_fini(&r);
    }
    CU_ASSERT(good > 1 && good < sizeof text);
}

static void test_file(void)
{
    struct bh_sched_config *c = NULL;
    struct bh_err err = {{0}};
    char path[256], want[512];
    const char *text =
        HEAD "percentageOfNodesToScore: 40\nprofiles: [{schedulerName: x, "
             "percentageOfNodesToScore: 0, pluginConfig: [{name: NodeAffinity, args: {}}]}]\n";

    snprintf(path, sizeof path, "%s/config.yaml", bh_test_tmpdir());
    CU_ASSERT(bh_write_file(path, text, strlen(text), 0600) == 0);
    CU_ASSERT_FATAL(bh_sched_config_load(path, &c, &err) == 0);
    CU_ASSERT(c->percentage_of_nodes_to_score == 40);
    CU_ASSERT(c->profiles[0].has_percentage && c->profiles[0].percentage_of_nodes_to_score == 0);
    bh_sched_config_free(c);
    c = NULL;
    text = HEAD "\nparallelism: 0\n";
    CU_ASSERT(bh_write_file(path, text, strlen(text), 0600) == 0);
    CU_ASSERT(bh_sched_config_load(path, &c, &err) == -EINVAL && c == NULL);
    snprintf(want, sizeof want,
             "parallelism: Invalid value: 0: should be an integer value greater than zero (%s: "
             "line 4)",
             path);
    CU_ASSERT_STRING_EQUAL(err.msg, want);
    CU_ASSERT(bh_sched_config_load("/nonexistent/x", &c, &err) == -ENOENT);
    CU_ASSERT_STRING_EQUAL(err.msg, "open /nonexistent/x: no such file or directory");
    CU_ASSERT(bh_sched_config_load("/", &c, &err) < 0 && err.msg[0]);
}

BH_TESTS("scheduler/config", {"the default profile expands as upstream's", test_defaults},
         {"multiPoint is merged, ordered and weighted", test_multi_point},
         {"expansion errors name point and plugin", test_expansion_errors},
         {"values and defaults", test_defaulted_values}, {"slips are warned about", test_warnings},
         {"long lists", test_long_lists}, {"depth and alias bombs", test_depth_and_bombs},
         {"sizes", test_sizes}, {"truncated files", test_truncated},
         {"a file is loaded", test_file})
