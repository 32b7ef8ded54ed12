/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/policy_tables.c - the Policy file's fields, predicates and priorities
 *
 * Upstream: pkg/scheduler/framework/plugins/legacy_registry.go,
 *           kube-scheduler/config/v1/types_legacy.go, all until 1.22.
 */
#include "scheduler/config/config_int.h"
#include "scheduler/config/policy_tables.h"

#define LIMITS "NodeVolumeLimits, which counts volumes by their CSI driver"

const struct bh_predicate bh_predicates[BH_PREDICATES] = {
    {"CheckNodeUnschedulable", {"NodeUnschedulable"}, "NodeUnschedulable", true, true, false},
    {"GeneralPredicates",
     {"NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"},
     "NodeResourcesFit, NodeName, NodePorts and NodeAffinity",
     true,
     false,
     false},
    {"HostName", {"NodeName"}, "NodeName", false, false, false},
    {"PodFitsHostPorts", {"NodePorts"}, "NodePorts", false, false, false},
    {"MatchNodeSelector", {"NodeAffinity"}, "NodeAffinity", false, false, false},
    {"PodFitsResources", {"NodeResourcesFit"}, "NodeResourcesFit", false, false, false},
    {"NoDiskConflict", {"VolumeRestrictions"}, "VolumeRestrictions", true, false, false},
    {"PodToleratesNodeTaints", {"TaintToleration"}, "TaintToleration", true, true, false},
    {"CheckNodeLabelPresence", {NULL}, NULL, false, false, true},
    {"CheckServiceAffinity", {NULL}, NULL, false, false, true},
    {"MaxEBSVolumeCount", {"NodeVolumeLimits"}, LIMITS, true, false, false},
    {"MaxGCEPDVolumeCount", {"NodeVolumeLimits"}, LIMITS, true, false, false},
    {"MaxCSIVolumeCountPred", {"NodeVolumeLimits"}, "NodeVolumeLimits", true, false, false},
    {"MaxAzureDiskVolumeCount", {"NodeVolumeLimits"}, LIMITS, true, false, false},
    {"MaxCinderVolumeCount", {"NodeVolumeLimits"}, LIMITS, false, false, false},
    {"CheckVolumeBinding",
     {"VolumeBinding"},
     "VolumeBinding at preFilter, filter, reserve and preBind",
     true,
     false,
     false},
    {"NoVolumeZoneConflict", {"VolumeZone"}, "VolumeZone", true, false, false},
    {"EvenPodsSpread", {"PodTopologySpread"}, "PodTopologySpread", true, false, false},
    {"MatchInterPodAffinity", {"InterPodAffinity"}, "InterPodAffinity", true, false, false},
};

#define FIT(strategy) "NodeResourcesFit", "NodeResourcesFit with the strategy " strategy, strategy
const struct bh_priority bh_priorities[BH_PRIORITIES] = {
    {"BalancedResourceAllocation", "NodeResourcesBalancedAllocation",
     "NodeResourcesBalancedAllocation", NULL, 1},
    {"EvenPodsSpreadPriority", "PodTopologySpread", "PodTopologySpread", NULL, 2},
    {"ImageLocalityPriority", "ImageLocality", "ImageLocality", NULL, 1},
    {"InterPodAffinityPriority", "InterPodAffinity", "InterPodAffinity", NULL, 1},
    {"LeastRequestedPriority", FIT("LeastAllocated"), 1},
    {"MostRequestedPriority", FIT("MostAllocated"), 0},
    {"NodeAffinityPriority", "NodeAffinity", "NodeAffinity", NULL, 1},
    {"NodePreferAvoidPodsPriority", "", NULL, NULL, 0},
    {"RequestedToCapacityRatioPriority", FIT("RequestedToCapacityRatio"), 0},
    {"SelectorSpreadPriority", "PodTopologySpread",
     "PodTopologySpread with the system's default constraints (plugin SelectorSpread can be "
     "enabled "
     "instead)",
     NULL, 1},
    {"TaintTolerationPriority", "TaintToleration", "TaintToleration", NULL, 1},
};

/* ---- fields ---------------------------------------------------------------------------------- */

static const struct bh_field service_affinity[] = {
    {"labels", BH_FIELD_STRINGS, NULL, NULL},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field labels_presence[] = {
    {"labels", BH_FIELD_STRINGS, NULL, NULL},
    {"presence", BH_FIELD_BOOL, NULL, NULL},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field predicate_argument[] = {
    {"serviceAffinity", BH_FIELD_OBJECT, service_affinity, "ServiceAffinity"},
    {"labelsPresence", BH_FIELD_OBJECT, labels_presence, "LabelsPresence"},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field predicate_schema[] = {
    {"name", BH_FIELD_STRING, NULL, NULL},
    {"argument", BH_FIELD_OBJECT, predicate_argument, "PredicateArgument"},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field anti_affinity[] = {
    {"label", BH_FIELD_STRING, NULL, NULL},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field label_preference[] = {
    {"label", BH_FIELD_STRING, NULL, NULL},
    {"presence", BH_FIELD_BOOL, NULL, NULL},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field resource_spec[] = {
    {"name", BH_FIELD_STRING, NULL, NULL},
    {"weight", BH_FIELD_INT64, NULL, NULL},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field ratio_arguments[] = {
    {"shape", BH_FIELD_OBJECTS, bh_field_shape_point, "UtilizationShapePoint"},
    {"resources", BH_FIELD_OBJECTS, resource_spec, "ResourceSpec"},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field priority_argument[] = {
    {"serviceAntiAffinity", BH_FIELD_OBJECT, anti_affinity, "ServiceAntiAffinity"},
    {"labelPreference", BH_FIELD_OBJECT, label_preference, "LabelPreference"},
    {"requestedToCapacityRatioArguments", BH_FIELD_OBJECT, ratio_arguments,
     "RequestedToCapacityRatioArguments"},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field priority_schema[] = {
    {"name", BH_FIELD_STRING, NULL, NULL},
    {"weight", BH_FIELD_INT64, NULL, NULL},
    {"argument", BH_FIELD_OBJECT, priority_argument, "PriorityArgument"},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field extender_schema[] = {
    {"enableHttps", BH_FIELD_BOOL, NULL, NULL},
    {"httpTimeout", BH_FIELD_RAW, NULL, NULL}, /* nanoseconds, or a duration */
    BH_EXTENDER_FIELDS,
};
const struct bh_field bh_policy_schema[] = {
    {"apiVersion", BH_FIELD_STRING, NULL, NULL},
    {"kind", BH_FIELD_STRING, NULL, NULL},
    {"predicates", BH_FIELD_OBJECTS, predicate_schema, "PredicatePolicy"},
    {"priorities", BH_FIELD_OBJECTS, priority_schema, "PriorityPolicy"},
    {"extenders", BH_FIELD_OBJECTS, extender_schema, "LegacyExtender"},
    {"hardPodAffinitySymmetricWeight", BH_FIELD_INT32, NULL, NULL},
    {"alwaysCheckAllPredicates", BH_FIELD_BOOL, NULL, NULL},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
