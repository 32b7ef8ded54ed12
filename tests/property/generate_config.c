/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/property/generate_config.c - KubeSchedulerConfigurations: profiles, plugins, weights, args
 */
#include "tests/property/generate.h"

static const char *plugins(struct gen *g)
{
    switch (below(g, 7)) {
    case 0:
        return T(g, ",'plugins':{'score':{'disabled':[{'name':'%s'}]}}",
                 ONE(g, "NodeResourcesFit", "ImageLocality", "TaintToleration", "PodTopologySpread",
                     "NodeResourcesBalancedAllocation", "DynamicResources"));
    case 1:
        return T(
            g,
            ",'plugins':{'score':{'disabled':[{'name':'*'}],'enabled':[{'name':'%s','weight':%u"
            "},{'name':'TaintToleration','weight':%u}]}}",
            ONE(g, "NodeAffinity", "NodeResourcesFit", "PodTopologySpread", "InterPodAffinity"),
            1 + below(g, 20), 1 + below(g, 20));
    case 2:
        return ",'plugins':{'preScore':{'disabled':[{'name':'*'}]},'score':{'disabled':[{'name':'*'"
               "}"
               "]}}";
    case 3:
        return T(g, ",'plugins':{'multiPoint':{'disabled':[{'name':'%s'}]}}",
                 ONE(g, "PodTopologySpread", "InterPodAffinity", "NodeResourcesFit", "NodePorts",
                     "DefaultPreemption", "NodeUnschedulable", "TaintToleration", "VolumeBinding",
                     "DynamicResources", "VolumeRestrictions"));
    case 4:
        return T(g,
                 ",'plugins':{'multiPoint':{'disabled':[{'name':'TaintToleration'}],'enabled':[{"
                 "'name':'TaintToleration','weight':%u}]},'filter':{'disabled':[{'name':'%s'}]}}",
                 1 + below(g, 9), ONE(g, "NodePorts", "NodeName"));
    default:
        return "";
    }
}

static const char *fit_args(struct gen *g)
{
    if (chance(g, 25))
        return "{'name':'NodeResourcesFit','args':{'ignoredResources':['example.com/gpu']}}";
    if (chance(g, 40))
        return "{'name':'NodeResourcesFit','args':{'scoringStrategy':{'type':"
               "'RequestedToCapacityRatio','resources':[{'name':'cpu','weight':3},{'name':"
               "'example.com/"
               "gpu','weight':5}],'requestedToCapacityRatio':{'shape':[{'utilization':0"
               ",'score':0},{'utilization':70,'score':10},{'utilization':100,'score':3}]}}}}";
    return T(
        g,
        "{'name':'NodeResourcesFit','args':{'scoringStrategy':{'type':'%s','resources':[{'name'"
        ":'cpu','weight':%u},{'name':'%s','weight':1}]}}}",
        ONE(g, "LeastAllocated", "MostAllocated"), 1 + below(g, 9),
        ONE(g, "memory", "example.com/gpu", "ephemeral-storage", "hugepages-2Mi"));
}

static const char *plugin_config(struct gen *g)
{
    switch (below(g, 9)) {
    case 0:
        return T(g, ",'pluginConfig':[%s]", fit_args(g));
    case 1:
        return T(g,
                 ",'pluginConfig':[{'name':'NodeAffinity','args':{'addedAffinity':{"
                 "'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{"
                 "'matchExpressions':[%s]}]},'preferredDuringSchedulingIgnoredDuringExecution':[{"
                 "'weight':7,'preference':{'matchExpressions':[%s]}}]}}}]",
                 node_requirement(g), node_requirement(g));
    case 2:
        return T(
            g,
            ",'pluginConfig':[{'name':'PodTopologySpread','args':{'defaultingType':'List',"
            "'defaultConstraints':[{'maxSkew':%u,'topologyKey':'%s','whenUnsatisfiable':'%s'}]}"
            "},%s]",
            1 + below(g, 3), ONE(g, "kubernetes.io/hostname", "topology.kubernetes.io/zone"),
            ONE(g, "ScheduleAnyway", "DoNotSchedule"), fit_args(g));
    case 3:
        return T(g,
                 ",'pluginConfig':[{'name':'InterPodAffinity','args':{'hardPodAffinityWeight':%u,"
                 "'ignorePreferredTermsOfExistingPods':%s}}]",
                 below(g, 101), ONE(g, "true", "false"));
    case 4:
        return T(
            g,
            ",'pluginConfig':[{'name':'NodeResourcesBalancedAllocation','args':{'resources':[{"
            "'name':'cpu','weight':1},{'name':'memory','weight':1},{'name':'%s','weight':1}]}}]",
            ONE(g, "example.com/gpu", "ephemeral-storage"));
    case 5:
        return T(
            g,
            ",'pluginConfig':[{'name':'DefaultPreemption','args':{'minCandidateNodesPercentage'"
            ":%u,'minCandidateNodesAbsolute':%u}}]",
            1 + below(g, 100), 1 + below(g, 100));
    default:
        return "";
    }
}

static const char *profile(struct gen *g, const char *name)
{
    const char *sampling =
        has(g, F_SAMPLING) ? T(g, ",'percentageOfNodesToScore':%u", 1 + below(g, 100)) : "";

    /* Sampling without scores stops at the first node that fits, and where it starts depends on all
     * decisions before: engines that decided for other pods in between differ. */
    return T(g, "{'schedulerName':'%s'%s%s%s}", name, *sampling ? "" : plugins(g), plugin_config(g),
             sampling);
}

const char *config_text(struct gen *g)
{
    const char *profiles = profile(g, "default-scheduler");

    if (!has(g, F_PROFILES) && !has(g, F_SAMPLING))
        return NULL;
    if (g->n_profiles > 1)
        profiles = T(g, "%s,%s", profiles, profile(g, "other"));
    if (g->n_profiles > 2)
        profiles = T(g, "%s,%s", profiles, profile(g, "third"));
    return T(g,
             "{'apiVersion':'kubescheduler.config.k8s.io/v1','kind':'KubeSchedulerConfiguration',"
             "'profiles':[%s]}",
             profiles);
}
