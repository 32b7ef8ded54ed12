/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/property/generate_groups.c - PodGroups and who belongs to them
 */
#include "tests/property/generate.h"

#define GROUPS 4

const char *some_group(struct gen *g)
{
    return has(g, F_GROUPS) && chance(g, 60) ? T(g, "g%u", below(g, GROUPS)) : NULL;
}

static const char *group_text(struct gen *g, unsigned i)
{
    const char *policy =
        chance(g, 70) ? T(g, "'gang':{'minCount':%u}", 1 + below(g, 4)) : "'basic':{}";
    const char *topology = chance(g, 40)
                               ? T(g, ",'schedulingConstraints':{'topology':[{'key':'%s'}]}",
                                   ONE(g, "topology.kubernetes.io/zone", "kubernetes.io/hostname"))
                               : "";
    const char *whole = chance(g, 40) ? ",'disruptionMode':'PodGroup'" : "";
    const char *priority = chance(g, 60) ? T(g, ",'priority':%u", below(g, 4) * 50) : "";

    g->serial++;
    return T(
        g,
        "{'apiVersion':'scheduling.k8s.io/v1alpha2','kind':'PodGroup','metadata':{'name':'g%u',"
        "'namespace':'default','uid':'u-g%u-%u','resourceVersion':'%u'},"
        "'spec':{'schedulingPolicy':{%s}%s%s%s}}",
        i, i, g->serial, g->serial, policy, topology, whole, priority);
}

void change_groups(struct gen *g)
{
    unsigned i = below(g, GROUPS);

    if (chance(g, 85))
        other_op(g, group_text(g, i));
    else
        add_op(g, T(g, "{'op':'delete','kind':'PodGroup','namespace':'default','name':'g%u'}", i));
}

const char *gates_text(struct gen *g)
{
    const bool gang = chance(g, 80);

    return T(g, "GenericWorkload=true,GangScheduling=%s%s%s", gang ? "true" : "false",
             chance(g, 50) ? ",TopologyAwareWorkloadScheduling=true" : "",
             gang && chance(g, 30) ? ",WorkloadAwarePreemption=true" : "");
}
