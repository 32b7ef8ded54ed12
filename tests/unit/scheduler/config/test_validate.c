/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/opt.h"
#include "tests/unit/scheduler/config/fixture.h"

/* ---- the top level --------------------------------------------------------------------------- */

static void test_top_level(void)
{
    static const struct fx_bad cases[] = {
        {HEAD "parallelism: 0\n",
         "parallelism: Invalid value: 0: should be an integer value greater than zero", 3},
        {HEAD "percentageOfNodesToScore: 101\n",
         "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]", 3},
        {HEAD "percentageOfNodesToScore: -1\n",
         "percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]", 3},
        {HEAD "podInitialBackoffSeconds: 0\n",
         "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0", 3},
        {HEAD "podInitialBackoffSeconds: 5\npodMaxBackoffSeconds: 4\n",
         "podMaxBackoffSeconds: Invalid value: 4: must be greater than or equal to "
         "PodInitialBackoffSeconds",
         4},
        {HEAD "clientConnection: {burst: -1}\n",
         "clientConnection.burst: Invalid value: -1: must be non-negative", 3},
    };

    fx_refused(cases, BH_ARRAY_LEN(cases));
}

static void test_leader_election(void)
{
#define LE "leaderElection."
    static const struct fx_bad cases[] = {
        {HEAD "leaderElection:\n  leaseDuration: -1s\n  renewDeadline: -2m\n  retryPeriod: -3ms\n",
         "[" LE "leaseDuration: Invalid value: \"-1s\": must be greater than zero, " LE
         "renewDeadline: Invalid value: \"-2m0s\": must be greater than zero, " LE
         "retryPeriod: Invalid value: \"-3ms\": must be greater than zero]",
         4},
        {HEAD "leaderElection: {leaseDuration: 5s}\n",
         LE "leaseDuration: Invalid value: \"10s\": must be greater than `RenewDeadline`", 3},
        {HEAD "leaderElection: {leaseDuration: 90s, renewDeadline: 1m30s}\n",
         LE "leaseDuration: Invalid value: \"1m30s\": must be greater than `RenewDeadline`", 3},
        {HEAD "leaderElection: {resourceLock: endpoints}\n",
         LE "resourceLock: Invalid value: \"endpoints\": resourceLock value must be \"leases\"", 3},
    };
    struct fx_read f;

    fx_refused(cases, BH_ARRAY_LEN(cases));
    /* Off: nothing else is looked at. Zero and "" are absent. */
    f = fx_good(HEAD "leaderElection: {leaderElect: false, leaseDuration: -1s, resourceLock: x}\n");
    CU_ASSERT(!f.c->leader_election.leader_elect);
    fx_done(&f);
    f = fx_good(HEAD "leaderElection: {leaseDuration: 0s, resourceLock: '', resourceName: ''}\n");
    CU_ASSERT(f.c->leader_election.lease_duration_ns == 15000000000);
    CU_ASSERT_STRING_EQUAL(f.c->leader_election.resource_lock, "leases");
    CU_ASSERT_STRING_EQUAL(f.c->leader_election.resource_name, "kube-scheduler");
    fx_done(&f);
}

/* All errors at once, in upstream's order; lines one by one; no text twice. */
static void test_order(void)
{
    static const char text[] = HEAD "extenders: [{prioritizeVerb: p}]\n"
                                    "podMaxBackoffSeconds: 0\n"
                                    "podInitialBackoffSeconds: 0\n"
                                    "percentageOfNodesToScore: 200\n"
                                    "profiles: [{schedulerName: a, percentageOfNodesToScore: -1}]\n"
                                    "parallelism: -1\n"
                                    "leaderElection: {leaseDuration: 1s}\n"
                                    "clientConnection: {burst: -3}\n";
    static const uint32_t lines[] = {10, 9, 8, 7, 6, 5, 3};
    struct fx_read f;

    CU_ASSERT(fx_text(&f, text) == -EINVAL);
    CU_ASSERT_STRING_EQUAL(
        f.r.summary,
        "[clientConnection.burst: Invalid value: -3: must be non-negative, "
        "leaderElection.leaseDuration: Invalid value: \"10s\": must be greater than "
        "`RenewDeadline`, parallelism: Invalid value: -1: should be an integer value greater than "
        "zero, profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range "
        "[0-100], percentageOfNodesToScore: Invalid value: 200: not in valid range [0-100], "
        "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0, "
        "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it]");
    CU_ASSERT_FATAL(f.r.errors.n == BH_ARRAY_LEN(lines));
    for (uint32_t i = 0; i < f.r.errors.n; i++)
        CU_ASSERT(f.r.errors.v[i].line == lines[i]);
    CU_ASSERT_STRING_EQUAL(bh_config_report_line(&f.r, NULL), f.r.summary);
    const char *told = bh_config_report_line(&f.r, "/x.yaml");
    CU_ASSERT(strstr(told, "] (/x.yaml: lines 10, 9, 8, 7, 6, 5, 3)") != NULL);
    fx_done(&f);
}

/* ---- profiles -------------------------------------------------------------------------------- */

static void test_profiles(void)
{
    static const struct fx_bad cases[] = {
        {HEAD "profiles:\n- schedulerName: ''\n", "profiles[0].schedulerName: Required value", 4},
        {HEAD "profiles:\n- schedulerName: a\n- {}\n", "profiles[1].schedulerName: Required value",
         5},
        {HEAD "profiles:\n- schedulerName: a\n- schedulerName: a\n",
         "profiles[1].schedulerName: Duplicate value: {}", 5},
        {HEAD "profiles:\n- schedulerName: b\n  percentageOfNodesToScore: 200\n",
         "profiles[0].percentageOfNodesToScore: Invalid value: 200: not in valid range [0-100]", 5},
        {ARGS "  - name: Foo\n  - name: Foo\n",
         "profiles[0].pluginConfig[1]: Duplicate value: \"Foo\"", 6},
    };
    struct bh_buf b = {0};
    struct fx_read f;

    fx_refused(cases, BH_ARRAY_LEN(cases));
    bh_buf_adds(&b, HEAD "profiles:\n");
    for (unsigned i = 0; i < 1001; i++)
        bh_buf_addf(&b, "- schedulerName: s%u\n", i);
    CU_ASSERT(fx_text(&f, bh_buf_str(&b)) == -EINVAL);
    CU_ASSERT_STRING_EQUAL(f.r.summary, "profiles: Too many: 1001: must have at most 1000 items");
    fx_done(&f);
    bh_buf_fini(&b);
}

static void test_removed_plugins(void)
{
#define GONE(name)                                                                                 \
    "Invalid value: \"" name "\": was invalid in version \"v1\" (KubeSchedulerConfiguration is "   \
    "version \"kubescheduler.config.k8s.io/v1\")"
    static const struct fx_bad cases[] = {
        {HEAD "profiles: [{plugins: {filter: {enabled: [{name: EBSLimits}]}}}]\n",
         "profiles[0].plugins.filter.enabled[0]: " GONE("EBSLimits"), 3},
        {HEAD "profiles:\n- plugins:\n    preFilter:\n      enabled:\n      - name: NodePorts\n"
              "      - name: AzureDiskLimits\n",
         "profiles[0].plugins.preFilter.enabled[1]: " GONE("AzureDiskLimits"), 8},
        {ARGS "  - name: CinderLimits\n", "profiles[0].pluginConfig[0]: " GONE("CinderLimits"), 5},
        {HEAD "profiles: [{plugins: {filter: {enabled: [{name: GCEPDLimits}]}}, pluginConfig: "
              "[{name: GCEPDLimits}]}]\n",
         "[profiles[0].plugins.filter.enabled[0]: " GONE(
             "GCEPDLimits") ", profiles[0].pluginConfig[0]: " GONE("GCEPDLimits") "]",
         3},
    };
    struct fx_read f;

    fx_refused(cases, BH_ARRAY_LEN(cases));
    /* In multiPoint and among the disabled they may stand. */
    f = fx_good(HEAD "profiles: [{plugins: {filter: {disabled: [{name: EBSLimits}]}}}]\n");
    CU_ASSERT(f.r.warnings.n == 0);
    fx_done(&f);
}

static void test_queue_sort(void)
{
#define TWO                                                                                        \
    HEAD "profiles:\n- schedulerName: a\n  plugins: {queueSort: {enabled: [{name: "                \
         "PrioritySort}]}}\n- schedulerName: b\n"
    static const struct fx_bad cases[] = {
        {HEAD "profiles:\n- schedulerName: a\n- schedulerName: b\n  plugins: {queueSort: {enabled: "
              "[{name: PrioritySort}]}}\n",
         "profiles[1].plugins.queueSort: Invalid value: "
         "{\"Enabled\":[{\"Name\":\"PrioritySort\",\"Weight\":0}],\"Disabled\":null}: must be the "
         "same for all profiles",
         6},
        {TWO "  plugins: {queueSort: {disabled: [{name: '*'}]}}\n",
         "profiles[1].plugins.queueSort: Invalid value: "
         "{\"Enabled\":null,\"Disabled\":[{\"Name\":\"*\",\"Weight\":0}]}: must be the same for "
         "all profiles",
         7},
        {HEAD "profiles: [{plugins: {queueSort: {enabled: [{name: A}, {name: B}]}}}]\n",
         "profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort plugin can "
         "be enabled",
         3},
        {TWO "  plugins: {queueSort: {enabled: [{name: PrioritySort}]}}\n  pluginConfig:\n  - "
             "name: PrioritySort\n    args: {a: 1}\n",
         "profiles[1].pluginConfig.args: Invalid value: {\"a\":1}: queueSort must be the same for "
         "all profiles",
         8},
        /* args of no plugin are those of no queueSort */
        {HEAD
         "profiles:\n- schedulerName: a\n- schedulerName: b\n  pluginConfig: [{args: {a: 1}}]\n",
         "profiles[1].pluginConfig.args: Invalid value: {\"a\":1}: queueSort must be the same for "
         "all profiles",
         6},
    };

    fx_refused(cases, BH_ARRAY_LEN(cases));
}

/* ---- args ------------------------------------------------------------------------------------ */

#define AT0      "profiles[0].pluginConfig[0].args."
#define CREATING "initializing profiles: creating profile for scheduler name default-scheduler: "
#define FIT      CREATING "initializing plugin \"NodeResourcesFit\": "

static void test_args(void)
{
    static const struct fx_bad cases[] = {
        {ARGS "  - name: InterPodAffinity\n    args:\n      hardPodAffinityWeight: 101\n",
         AT0 "hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]", 7},
        {ARGS "  - name: DefaultPreemption\n    args: {minCandidateNodesPercentage: 0, "
              "minCandidateNodesAbsolute: 0}\n",
         "[" AT0
         "minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as "
         "minCandidateNodesAbsolute, " AT0
         "minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as "
         "minCandidateNodesPercentage]",
         6},
        {ARGS "  - name: DefaultPreemption\n    args: {minCandidateNodesPercentage: 101, "
              "minCandidateNodesAbsolute: -1}\n",
         "[" AT0
         "minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100], " AT0
         "minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)]",
         6},
        {ARGS "  - name: NodeResourcesBalancedAllocation\n    args:\n      resources:\n"
              "      - {name: cpu, weight: 2}\n      - {name: cpu}\n",
         "[" AT0 "resources[0].weight: Invalid value: 2: must be 1, " AT0
         "resources[1].name: Duplicate value: \"cpu\"]",
         8},
        {ARGS
         "  - name: NodeAffinity\n    args: {addedAffinity: "
         "{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: "
         "[{key: a, operator: Bar}]}]}}}\n",
         AT0 "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]."
             "matchExpressions[0].operator: Unsupported value: \"Bar\": supported values: \"In\", "
             "\"NotIn\", \"Exists\", \"DoesNotExist\", \"Gt\", \"Lt\"",
         6},
        {ARGS "  - name: VolumeBinding\n    args: {bindTimeoutSeconds: -1}\n",
         AT0 "bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a "
             "negative value",
         6},
        {ARGS "  - name: VolumeBinding\n    args: {shape: [{utilization: 0, score: 0}, {score: "
              "5}]}\n",
         AT0 "shape: Invalid value: [{\"Utilization\":0,\"Score\":0},{\"Utilization\":0,\"Score\":"
             "5}]: unexpected field `shape`, remove it or turn on the feature gate "
             "StorageCapacityScoring",
         6},
        {ARGS "  - name: VolumeBinding\n    args: {shape: []}\n",
         AT0 "shape: Invalid value: []: unexpected field `shape`, remove it or turn on the feature "
             "gate StorageCapacityScoring",
         6},
        {ARGS "  - name: DynamicResources\n    args: {filterTimeout: -1000ms, bindingTimeout: "
              "'0'}\n",
         "[" AT0 "filterTimeout: Invalid value: \"-1s\": must be zero or positive, " AT0
         "bindingTimeout: Invalid value: \"0s\": must be at least 1 second]",
         6},
    };

    fx_refused(cases, BH_ARRAY_LEN(cases));
}

static void test_spread_args(void)
{
#define DC AT0 "defaultConstraints"
#define LIST(constraints)                                                                          \
    ARGS "  - name: PodTopologySpread\n    args:\n      defaultingType: List\n      "              \
         "defaultConstraints:\n" constraints
    static const struct fx_bad cases[] = {
        {ARGS "  - name: PodTopologySpread\n    args: {defaultConstraints: [{maxSkew: 1, "
              "topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]}\n",
         AT0 "defaultingType: Invalid value: \"System\": when .defaultConstraints are not empty",
         6},
        {ARGS "  - name: PodTopologySpread\n    args: {defaultingType: Foo}\n",
         AT0 "defaultingType: Unsupported value: \"Foo\": supported values: \"System\", \"List\"",
         6},
        {LIST("      - {maxSkew: 0, topologyKey: '', whenUnsatisfiable: ''}\n"),
         "[" DC "[0].maxSkew: Invalid value: 0: not in valid range (0, inf), " DC
         "[0].topologyKey: Required value: can not be empty, " DC
         "[0].whenUnsatisfiable: Required value: can not be empty]",
         9},
        {LIST("      - {maxSkew: 1, topologyKey: a b, whenUnsatisfiable: Foo}\n"),
         "[" DC "[0].topologyKey: Invalid value: \"a b\": name part must consist of alphanumeric "
         "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
         "'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
         "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'), " DC
         "[0].whenUnsatisfiable: Unsupported value: \"Foo\": supported values: \"DoNotSchedule\", "
         "\"ScheduleAnyway\"]",
         9},
        {LIST("      - {maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}\n      - "
              "{maxSkew: 2, topologyKey: a, whenUnsatisfiable: ScheduleAnyway, labelSelector: "
              "{}}\n"),
         "[" DC "[1].labelSelector: Forbidden: constraint must not define a selector, as they "
         "deduced for each pod, " DC "[1]: Duplicate value: \"{a, ScheduleAnyway}\"]",
         10},
    };

    fx_refused(cases, BH_ARRAY_LEN(cases));
}

/* Upstream checks these when it makes the plugin: another prefix, no path, and only if enabled. */
static void test_fit_args(void)
{
#define ST "scoringStrategy."
#define RATIO(shape)                                                                               \
    ARGS "  - name: NodeResourcesFit\n    args:\n      scoringStrategy:\n        type: "           \
         "RequestedToCapacityRatio\n        requestedToCapacityRatio:\n          shape: " shape
    static const struct fx_bad cases[] = {
        {ARGS "  - name: NodeResourcesFit\n    args: {scoringStrategy: {}}\n",
         FIT ST "type: Unsupported value: \"\": supported values: \"LeastAllocated\", "
                "\"MostAllocated\", \"RequestedToCapacityRatio\"",
         6},
        {ARGS "  - name: NodeResourcesFit\n    args:\n      scoringStrategy:\n        type: "
              "LeastAllocated\n        resources:\n        - {name: cpu, weight: 101}\n        - "
              "{name: memory, weight: -1}\n",
         FIT "[" ST "resources[0].weight: Invalid value: 101: resource weight of cpu not in valid "
             "range (0, 100], " ST "resources[1].weight: Invalid value: -1: resource weight of "
             "memory not in valid range (0, 100]]",
         10},
        {ARGS "  - name: NodeResourcesFit\n    args: {scoringStrategy: {type: "
              "RequestedToCapacityRatio}}\n",
         FIT ST "requestedToCapacityRatio: Required value: must be specified when type is "
                "RequestedToCapacityRatio",
         6},
        {ARGS "  - name: NodeResourcesFit\n    args: {scoringStrategy: {type: MostAllocated, "
              "requestedToCapacityRatio: {}}}\n",
         FIT ST "requestedToCapacityRatio: Forbidden: must be nil when type is not "
                "RequestedToCapacityRatio",
         6},
        {RATIO("[]\n"),
         FIT ST "requestedToCapacityRatio.shape: Required value: at least one point must be "
                "specified",
         10},
        {RATIO("[{utilization: 50, score: 11}, {utilization: 50, score: 1}, {utilization: 101}]\n"),
         FIT "[" ST "requestedToCapacityRatio.shape[1].utilization: Invalid value: 50: values must "
             "be sorted in increasing order, " ST
             "requestedToCapacityRatio.shape[0].score: Invalid value: 11: not in valid range [0, "
             "10], " ST "requestedToCapacityRatio.shape[2].utilization: Invalid value: 101: not in "
             "valid range [0, 100]]",
         10},
        {ARGS "  - name: NodeResourcesFit\n    args: {ignoredResourceGroups: [a/b]}\n",
         FIT "ignoredResourceGroups[0]: Invalid value: \"a/b\": resource group name can't contain "
             "'/'",
         6},
        {ARGS "  - name: NodeResourcesFit\n    args:\n      ignoredResources:\n      - a.b/c\n"
              "      - -x\n",
         FIT "ignoredResources[1]: Invalid value: \"-x\": name part must consist of alphanumeric "
             "characters, '-', '_' or '.', and must start and end with an alphanumeric character "
             "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
             "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
         9},
        /* Made before the lists of plugins are looked at. */
        {HEAD "profiles: [{schedulerName: default-scheduler, plugins: {score: {enabled: [{name: "
              "Foo}]}}, pluginConfig: [{name: NodeResourcesFit, args: {ignoredResourceGroups: "
              "[a/b]}}]}]\n",
         FIT "ignoredResourceGroups[0]: Invalid value: \"a/b\": resource group name can't contain "
             "'/'",
         3},
    };
    struct fx_read f;

    fx_refused(cases, BH_ARRAY_LEN(cases));
    f = fx_good(HEAD "profiles: [{plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}, "
                     "pluginConfig: [{name: NodeResourcesFit, args: {ignoredResourceGroups: "
                     "[a/b]}}]}]\n");
    CU_ASSERT(fx_warned(&f, 3, "plugin \"NodeResourcesFit\" is not enabled"));
    fx_done(&f);
}

/* ---- extenders ------------------------------------------------------------------------------- */

static void test_extenders(void)
{
    static const struct fx_bad cases[] = {
        {HEAD "extenders:\n- prioritizeVerb: p\n  weight: 0\n",
         "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it", 5},
        {HEAD "extenders:\n- bindVerb: a\n- bindVerb: b\n",
         "extenders: Invalid value: \"found 2 extenders implementing bind\": only one extender can "
         "implement bind",
         3},
        {HEAD "extenders:\n- managedResources:\n  - name: cpu\n",
         "extenders[0].managedResources[0].name: Invalid value: \"cpu\": is an invalid extended "
         "resource name",
         5},
        {HEAD "extenders:\n- managedResources: [{name: x.com/a}]\n- managedResources:\n  - name: "
              "x.com/b\n  - name: x.com/a\n",
         "extenders[1].managedResources[1].name: Invalid value: \"x.com/a\": duplicate extender "
         "managed resource name",
         7},
        {HEAD "extenders: [{managedResources: [{name: requests.x.com/a}]}]\n",
         "extenders[0].managedResources[0].name: Invalid value: \"requests.x.com/a\": is an "
         "invalid extended resource name",
         3},
        {HEAD "extenders: [{managedResources: [{name: ''}]}]\n",
         "[extenders[0].managedResources[0].name: Invalid value: \"\": name part must be "
         "non-empty, extenders[0].managedResources[0].name: Invalid value: \"\": name part must "
         "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
         "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
         "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')]",
         3},
        {HEAD "extenders:\n- {}\n- tlsConfig: {insecure: true, caFile: /etc/hosts}\n",
         "couldn't build extenders: specifying a root certificates file with the insecure flag is "
         "not allowed",
         5},
        {HEAD "extenders: [{tlsConfig: {caFile: /nope}}]\n",
         "couldn't build extenders: open /nope: no such file or directory", 3},
        {HEAD "extenders: [{tlsConfig: {serverName: x, certFile: /nope}}]\n",
         "couldn't build extenders: open /nope: no such file or directory", 3},
        {HEAD "extenders: [{managedResources: [{name: x.com/a, ignoredByScheduler: true}]}]\n"
              "profiles:\n- plugins:\n    multiPoint:\n      disabled: [{name: "
              "NodeResourcesFit}]\n",
         "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config", 5},
    };

    fx_refused(cases, BH_ARRAY_LEN(cases));
}

static void test_extender_values(void)
{
    struct fx_read f = fx_good(
        HEAD "extenders:\n- {urlPrefix: 'http://a', ignorable: true}\n"
             "- {urlPrefix: 'http://b', filterVerb: f, prioritizeVerb: p, preemptVerb: e, "
             "bindVerb: b, weight: 3, enableHTTPS: true, httpTimeout: 250ms, nodeCacheCapable: "
             "true, managedResources: [{name: x.com/a}, {name: x.com/b, ignoredByScheduler: "
             "true}]}\n"
             "- {urlPrefix: 'http://c', ignorable: true, httpTimeout: 0s}\n"
             "- {urlPrefix: 'http://d', httpTimeout: -1s, tlsConfig: {serverName: s, caData: "
             "\"QUJD\\nRA==\"}}\n");
    const struct bh_extender_config *e = f.c->extenders;

    CU_ASSERT_FATAL(f.c->n_extenders == 4);
    CU_ASSERT_STRING_EQUAL(e[0].url_prefix, "http://b"); /* ignorable ones last */
    CU_ASSERT_STRING_EQUAL(e[1].url_prefix, "http://d");
    CU_ASSERT_STRING_EQUAL(e[2].url_prefix, "http://a");
    CU_ASSERT_STRING_EQUAL(e[3].url_prefix, "http://c");
    CU_ASSERT_STRING_EQUAL(e[0].filter_verb, "f");
    CU_ASSERT_STRING_EQUAL(e[0].prioritize_verb, "p");
    CU_ASSERT_STRING_EQUAL(e[0].preempt_verb, "e");
    CU_ASSERT_STRING_EQUAL(e[0].bind_verb, "b");
    CU_ASSERT(e[0].weight == 3 && e[0].enable_https && e[0].node_cache_capable && !e[0].ignorable);
    CU_ASSERT(e[0].http_timeout_ns == 250000000 && e[0].n_managed == 2);
    CU_ASSERT(!e[0].managed[0].ignored_by_scheduler && e[0].managed[1].ignored_by_scheduler);
    CU_ASSERT(!e[0].tls.present && e[1].tls.present && !e[1].tls.insecure);
    CU_ASSERT(e[1].http_timeout_ns > 365 * 86400 * (int64_t)1000000000); /* none */
    CU_ASSERT_STRING_EQUAL(e[1].tls.server_name, "s");
    CU_ASSERT(bh_str_eqc(e[1].tls.ca_data, "ABCD") && e[1].tls.cert_data.n == 0);
    CU_ASSERT(e[2].http_timeout_ns == 5000000000 && e[3].http_timeout_ns == 5000000000);
    CU_ASSERT_STRING_EQUAL(e[2].bind_verb, "");
    fx_done(&f);
}

/* What extenders look after replaces ignoredResources in every profile. */
static void test_ignored_resources(void)
{
    struct fx_read f = fx_good(
        HEAD "extenders:\n- managedResources: [{name: x.com/a, ignoredByScheduler: true}, {name: "
             "x.com/b}]\n- managedResources: [{name: x.com/c, ignoredByScheduler: true}]\n"
             "profiles:\n- schedulerName: a\n- schedulerName: b\n  pluginConfig:\n  - name: "
             "NodeResourcesFit\n    args: {ignoredResources: [y.com/z]}\n");

    for (uint32_t i = 0; i < 2; i++) {
        const struct bh_profile_config *p = &f.c->profiles[i];
        const struct bh_json *names = NULL;
        for (uint32_t k = 0; k < p->n_args; k++)
            if (bh_streq(p->args[k].name, "NodeResourcesFit"))
                names = bh_json_get(p->args[k].args, "ignoredResources");
        CU_ASSERT_FATAL(names != NULL && names->c.n == 2);
        CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_at(names, 0)), "x.com/a");
        CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_at(names, 1)), "x.com/c");
    }
    CU_ASSERT(fx_warned(&f, 11, "ignoredResources of NodeResourcesFit are replaced"));
    fx_done(&f);
}

/* ---- long lists ------------------------------------------------------------------------------ */

static void test_long_lists(void)
{
    struct bh_buf b = {0};
    struct bh_sched_config *c = NULL;
    struct bh_err err = {{0}};
    struct bh_json *tree;
    struct bh_arena a;
    struct fx_read f;

    bh_buf_adds(&b, HEAD "extenders:\n");
    for (unsigned i = 0; i < 3000; i++)
        bh_buf_adds(&b, "- {prioritizeVerb: p}\n");
    CU_ASSERT(fx_text(&f, bh_buf_str(&b)) == -EINVAL);
    CU_ASSERT(f.r.errors.n == 1001); /* and one that counts the others */
    CU_ASSERT_STRING_EQUAL(f.r.errors.v[1000].text, "... and 2000 more");
    CU_ASSERT(strlen(f.r.summary) > 80000 && strstr(f.r.summary, "extenders[999].weight") != NULL);
    CU_ASSERT(f.r.errors.v[999].line == 1003);
    fx_done(&f);
    /* The short form is cut, no more. */
    bh_arena_init(&a, 0);
    CU_ASSERT_FATAL(bh_yaml_parse(&a, bh_buf_str(&b), b.n, 0, &tree, &err) == 0);
    CU_ASSERT(bh_sched_config_new(tree, &c, &err) == -EINVAL && c == NULL);
    CU_ASSERT(strncmp(err.msg, "[extenders[0].weight: Invalid", 29) == 0);
    bh_arena_fini(&a);
    bh_buf_fini(&b);
}

BH_TESTS("scheduler/config/validate", {"top-level values", test_top_level},
         {"leader election", test_leader_election}, {"all errors, in upstream's order", test_order},
         {"profiles", test_profiles}, {"plugins that v1 does not know", test_removed_plugins},
         {"one queue sort for all profiles", test_queue_sort}, {"args", test_args},
         {"args of PodTopologySpread", test_spread_args},
         {"args of NodeResourcesFit", test_fit_args}, {"extenders are checked", test_extenders},
         {"extenders are read", test_extender_values},
         {"resources of extenders are ignored", test_ignored_resources},
         {"long lists of errors", test_long_lists})
