/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/defaults.c - what holds when the file does not say: plugins by version, values
 *
 * The beta versions' lists are those of their last release, without what this build does not have,
 * and with what pods need today: SchedulingGates, DynamicResources, NodeDeclaredFeatures, and the
 * preparing points of plugins that got them later.
 *
 * Upstream: pkg/scheduler/apis/config/{v1,v1beta3,v1beta2}/{default_plugins,defaults}.go.
 */
#include "common/data/yaml.h"
#include "scheduler/config/config_int.h"

const struct bh_point_name bh_point_names[BH_POINT_KEYS] = {
    [BH_POINT_PRE_ENQUEUE] = {"preEnqueue", "PreEnqueuePlugin"},
    [BH_POINT_QUEUE_SORT] = {"queueSort", "QueueSortPlugin"},
    [BH_POINT_PRE_FILTER] = {"preFilter", "PreFilterPlugin"},
    [BH_POINT_FILTER] = {"filter", "FilterPlugin"},
    [BH_POINT_POST_FILTER] = {"postFilter", "PostFilterPlugin"},
    [BH_POINT_PRE_SCORE] = {"preScore", "PreScorePlugin"},
    [BH_POINT_SCORE] = {"score", "ScorePlugin"},
    [BH_POINT_RESERVE] = {"reserve", "ReservePlugin"},
    [BH_POINT_PERMIT] = {"permit", "PermitPlugin"},
    [BH_POINT_PRE_BIND] = {"preBind", "PreBindPlugin"},
    [BH_POINT_BIND] = {"bind", "BindPlugin"},
    [BH_POINT_POST_BIND] = {"postBind", "PostBindPlugin"},
    [BH_POINT_PLACEMENT_GENERATE] = {"placementGenerate", "PlacementGeneratePlugin"},
    [BH_POINT_PLACEMENT_SCORE] = {"placementScore", "PlacementScorePlugin"},
    [BH_POINT_MULTI] = {"multiPoint", ""},
};

/* ---- plugins ---------------------------------------------------------------------------------
 * Sets as texts: names in order, with their weights, of one digit.
 */
#define MULTI_BEGINS                                                                               \
    "SchedulingGates PrioritySort NodeUnschedulable NodeName TaintToleration=3 NodeAffinity=2 "    \
    "NodePorts NodeResourcesFit=1 VolumeRestrictions "
#define MULTI_ENDS                                                                                 \
    " VolumeBinding VolumeZone PodTopologySpread=2 InterPodAffinity=2 DynamicResources=2 "         \
    "DefaultPreemption NodeResourcesBalancedAllocation=1 ImageLocality=1 DefaultBinder "           \
    "NodeDeclaredFeatures"
static const char multi_v1[] = MULTI_BEGINS "NodeVolumeLimits" MULTI_ENDS;
static const char multi_v1beta3[] =
    MULTI_BEGINS "EBSLimits GCEPDLimits NodeVolumeLimits AzureDiskLimits" MULTI_ENDS;

static const char *const beta2[BH_POINT_KEYS] = {
    /* it had no multiPoint */
    [BH_POINT_PRE_ENQUEUE] = "SchedulingGates DynamicResources DefaultPreemption",
    [BH_POINT_QUEUE_SORT] = "PrioritySort",
    [BH_POINT_PRE_FILTER] =
        "NodeResourcesFit NodePorts VolumeRestrictions PodTopologySpread InterPodAffinity "
        "VolumeBinding VolumeZone NodeAffinity NodeVolumeLimits DynamicResources "
        "NodeDeclaredFeatures",
    [BH_POINT_FILTER] =
        "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit "
        "VolumeRestrictions EBSLimits GCEPDLimits NodeVolumeLimits AzureDiskLimits VolumeBinding "
        "VolumeZone PodTopologySpread InterPodAffinity DynamicResources NodeDeclaredFeatures",
    [BH_POINT_POST_FILTER] = "DynamicResources DefaultPreemption",
    [BH_POINT_PRE_SCORE] = "InterPodAffinity PodTopologySpread TaintToleration NodeAffinity "
                           "NodeResourcesFit NodeResourcesBalancedAllocation",
    [BH_POINT_SCORE] = "NodeResourcesBalancedAllocation=1 ImageLocality=1 InterPodAffinity=1 "
                       "NodeResourcesFit=1 NodeAffinity=1 PodTopologySpread=2 TaintToleration=1 "
                       "DynamicResources=2",
    [BH_POINT_RESERVE] = "VolumeBinding DynamicResources",
    [BH_POINT_PRE_BIND] = "VolumeBinding DynamicResources",
    [BH_POINT_BIND] = "DefaultBinder",
};

static const char *set_text(enum bh_config_version v, unsigned point)
{
    if (v == BH_CONFIG_V1BETA2)
        return beta2[point] ? beta2[point] : "";
    if (point != BH_POINT_MULTI || v == BH_CONFIG_POLICY)
        return "";
    return v == BH_CONFIG_V1BETA3 ? multi_v1beta3 : multi_v1;
}

const struct bh_plugin_ref *bh_config_defaults(struct bh_arena *a, enum bh_config_version v,
                                               unsigned point)
{
    char *text = bh_arena_strdup(a, set_text(v, point)), *save;
    struct bh_plugin_ref *list = bh_arena_new_array(a, struct bh_plugin_ref, BH_DEFAULTS_MAX + 1);
    unsigned n = 0;

    for (char *s = strtok_r(text, " ", &save); s; s = strtok_r(NULL, " ", &save)) {
        char *weight = strchr(s, '=');
        bh_assert(n < BH_DEFAULTS_MAX);
        list[n++] = (struct bh_plugin_ref){s, weight ? weight[1] - '0' : 0};
        s[strcspn(s, "=")] = '\0';
    }
    return list;
}

/* ---- values ---------------------------------------------------------------------------------- */

static const char values[] =
    "clientConnection: {kubeconfig: '', acceptContentTypes: '', qps: 50, burst: 100,\n"
    "  contentType: application/vnd.kubernetes.protobuf}\n"
    "leaderElection: {leaderElect: true, leaseDuration: 15s, renewDeadline: 10s, retryPeriod: 2s,\n"
    "  resourceLock: leases, resourceName: kube-scheduler, resourceNamespace: kube-system}\n"
    "enableProfiling: true\n"
    "enableContentionProfiling: true\n"
    "parallelism: 16\n"
    "percentageOfNodesToScore: 0\n"
    "podInitialBackoffSeconds: 1\n"
    "podMaxBackoffSeconds: 10\n"
    "extenders: [{urlPrefix: '', httpTimeout: 5s, managedResources: [{name: ''}]}]\n"
    "args:\n"
    "  DefaultPreemption: {minCandidateNodesPercentage: 10, minCandidateNodesAbsolute: 100}\n"
    "  DynamicResources: {filterTimeout: 10s, bindingTimeout: 10m0s}\n"
    "  InterPodAffinity: {hardPodAffinityWeight: 1, ignorePreferredTermsOfExistingPods: false}\n"
    "  NodeResourcesFit: {scoringStrategy: {type: LeastAllocated}}\n"
    "  PodTopologySpread: {defaultingType: System}\n"
    "  VolumeBinding: {bindTimeoutSeconds: 600}\n";

struct bh_json *bh_config_default_values(struct bh_arena *a)
{
    struct bh_json *tree = NULL;
    int rc = bh_yaml_parse(a, values, sizeof values - 1, 0, &tree, NULL);

    bh_assert(rc == 0);
    return tree;
}

const char *bh_sched_point_name(enum bh_point p)
{
    return bh_point_names[p].key;
}

bool bh_config_is_legacy(const char *plugin)
{
    static const char *const legacy[] = {"AzureDiskLimits", "CinderLimits", "EBSLimits",
                                         "GCEPDLimits"};

    for (unsigned i = 0; i < BH_ARRAY_LEN(legacy); i++)
        if (bh_streq(plugin, legacy[i]))
            return true;
    return false;
}
