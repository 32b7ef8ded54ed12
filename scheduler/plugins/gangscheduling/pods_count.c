/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/gangscheduling/pods_count.c - PodGroupPodsCount: the placement that takes more of
 * the group is better
 *
 * Upstream: pkg/scheduler/framework/plugins/podgrouppodscount; differences: none.
 */
#include "scheduler/framework/framework.h"
#include "scheduler/plugins/registry.h"

#define NAME "PodGroupPodsCount"

BH_STATUS_CONST(nobody, BH_ERROR, NAME,
                "no pods from pod group are assigned to any of the candidate placements");

static const struct bh_status *score(struct bh_call *c, const struct bh_placement *p, int64_t *ret)
{
    const struct bh_group *g =
        bh_groups_find(&c->cache->groups, c->pod->shape->namespace_, c->pod->rec->group);

    *ret = (int64_t)p->n_proposed + (g ? bh_group_scheduled(g) : 0);
    return NULL;
}

static const struct bh_status *normalize(struct bh_call *c BH_UNUSED, int64_t *scores, uint32_t n)
{
    int64_t max = 0;

    for (uint32_t i = 0; i < n; i++)
        max = BH_MAX(max, scores[i]);
    if (!max)
        return &nobody;
    for (uint32_t i = 0; i < n; i++)
        scores[i] = scores[i] * 100 / max;
    return NULL;
}

const struct bh_plugin bh_plugin_pod_group_pods_count = {
    BH_PLUGIN_HEAD(NAME),
    .flags = BH_PLUGIN_NODE_LOCAL | BH_PLUGIN_HINTS_BY_ESSENCE,
    .events = bh_no_events,
    .placement_score = score,
    .placement_normalize = normalize,
};
