/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/defaults.c - which plugins run when the file does not say, by version
 *
 * The beta versions' lists are those of their last release, without what this build does not have,
 * and with what pods need today: SchedulingGates, DynamicResources, NodeDeclaredFeatures, and the
 * preparing points of plugins that got them later.
 *
 * Upstream: pkg/scheduler/apis/config/{v1,v1beta3,v1beta2}/default_plugins.go.
 */
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

#define END                                                                                        \
    {                                                                                              \
        NULL, 0                                                                                    \
    }
static const struct bh_plugin_ref none[] = {END};
static const struct bh_plugin_ref multi_v1[] = {
    {"SchedulingGates", 0},
    {"PrioritySort", 0},
    {"NodeUnschedulable", 0},
    {"NodeName", 0},
    {"TaintToleration", 3},
    {"NodeAffinity", 2},
    {"NodePorts", 0},
    {"NodeResourcesFit", 1},
    {"VolumeRestrictions", 0},
    {"NodeVolumeLimits", 0},
    {"VolumeBinding", 0},
    {"VolumeZone", 0},
    {"PodTopologySpread", 2},
    {"InterPodAffinity", 2},
    {"DynamicResources", 2},
    {"DefaultPreemption", 0},
    {"NodeResourcesBalancedAllocation", 1},
    {"ImageLocality", 1},
    {"DefaultBinder", 0},
    {"NodeDeclaredFeatures", 0},
    END,
};
static const struct bh_plugin_ref multi_v1beta3[] = {
    {"SchedulingGates", 0},
    {"PrioritySort", 0},
    {"NodeUnschedulable", 0},
    {"NodeName", 0},
    {"TaintToleration", 3},
    {"NodeAffinity", 2},
    {"NodePorts", 0},
    {"NodeResourcesFit", 1},
    {"VolumeRestrictions", 0},
    {"EBSLimits", 0},
    {"GCEPDLimits", 0},
    {"NodeVolumeLimits", 0},
    {"AzureDiskLimits", 0},
    {"VolumeBinding", 0},
    {"VolumeZone", 0},
    {"PodTopologySpread", 2},
    {"InterPodAffinity", 2},
    {"DynamicResources", 2},
    {"DefaultPreemption", 0},
    {"NodeResourcesBalancedAllocation", 1},
    {"ImageLocality", 1},
    {"DefaultBinder", 0},
    {"NodeDeclaredFeatures", 0},
    END,
};

/* v1beta2 had no multiPoint. */
static const struct bh_plugin_ref beta2_pre_enqueue[] = {
    {"SchedulingGates", 0}, {"DynamicResources", 0}, {"DefaultPreemption", 0}, END};
static const struct bh_plugin_ref beta2_queue_sort[] = {{"PrioritySort", 0}, END};
static const struct bh_plugin_ref beta2_pre_filter[] = {
    {"NodeResourcesFit", 0},     {"NodePorts", 0},
    {"VolumeRestrictions", 0},   {"PodTopologySpread", 0},
    {"InterPodAffinity", 0},     {"VolumeBinding", 0},
    {"VolumeZone", 0},           {"NodeAffinity", 0},
    {"NodeVolumeLimits", 0},     {"DynamicResources", 0},
    {"NodeDeclaredFeatures", 0}, END,
};
static const struct bh_plugin_ref beta2_filter[] = {
    {"NodeUnschedulable", 0},
    {"NodeName", 0},
    {"TaintToleration", 0},
    {"NodeAffinity", 0},
    {"NodePorts", 0},
    {"NodeResourcesFit", 0},
    {"VolumeRestrictions", 0},
    {"EBSLimits", 0},
    {"GCEPDLimits", 0},
    {"NodeVolumeLimits", 0},
    {"AzureDiskLimits", 0},
    {"VolumeBinding", 0},
    {"VolumeZone", 0},
    {"PodTopologySpread", 0},
    {"InterPodAffinity", 0},
    {"DynamicResources", 0},
    {"NodeDeclaredFeatures", 0},
    END,
};
static const struct bh_plugin_ref beta2_post_filter[] = {
    {"DynamicResources", 0}, {"DefaultPreemption", 0}, END};
static const struct bh_plugin_ref beta2_pre_score[] = {
    {"InterPodAffinity", 0},
    {"PodTopologySpread", 0},
    {"TaintToleration", 0},
    {"NodeAffinity", 0},
    {"NodeResourcesFit", 0},
    {"NodeResourcesBalancedAllocation", 0},
    END,
};
static const struct bh_plugin_ref beta2_score[] = {
    {"NodeResourcesBalancedAllocation", 1},
    {"ImageLocality", 1},
    {"InterPodAffinity", 1},
    {"NodeResourcesFit", 1},
    {"NodeAffinity", 1},
    {"PodTopologySpread", 2},
    {"TaintToleration", 1},
    {"DynamicResources", 2},
    END,
};
static const struct bh_plugin_ref beta2_volumes[] = {
    {"VolumeBinding", 0}, {"DynamicResources", 0}, END};
static const struct bh_plugin_ref beta2_bind[] = {{"DefaultBinder", 0}, END};
static const struct bh_plugin_ref *const beta2[BH_POINT_KEYS] = {
    [BH_POINT_PRE_ENQUEUE] = beta2_pre_enqueue,
    [BH_POINT_QUEUE_SORT] = beta2_queue_sort,
    [BH_POINT_PRE_FILTER] = beta2_pre_filter,
    [BH_POINT_FILTER] = beta2_filter,
    [BH_POINT_POST_FILTER] = beta2_post_filter,
    [BH_POINT_PRE_SCORE] = beta2_pre_score,
    [BH_POINT_SCORE] = beta2_score,
    [BH_POINT_RESERVE] = beta2_volumes,
    [BH_POINT_PRE_BIND] = beta2_volumes,
    [BH_POINT_BIND] = beta2_bind,
};

const struct bh_plugin_ref *bh_config_defaults(enum bh_config_version v, unsigned point)
{
    if (v == BH_CONFIG_V1BETA2)
        return beta2[point] ? beta2[point] : none;
    if (point != BH_POINT_MULTI || v == BH_CONFIG_POLICY)
        return none;
    return v == BH_CONFIG_V1BETA3 ? multi_v1beta3 : multi_v1;
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
