/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/registry.c - every plugin this scheduler knows
 *
 * Upstream: pkg/scheduler/framework/plugins/registry.go.
 */
#include "scheduler/plugins/registry.h"

const struct bh_plugin *const bh_plugins[] = {
    &bh_plugin_scheduling_gates,
    &bh_plugin_priority_sort,
    &bh_plugin_node_unschedulable,
    &bh_plugin_node_name,
    &bh_plugin_taint_toleration,
    &bh_plugin_node_affinity,
    &bh_plugin_node_ports,
    &bh_plugin_fit,
    &bh_plugin_volume_restrictions,
    &bh_plugin_node_volume_limits,
    &bh_plugin_volume_binding,
    &bh_plugin_volume_zone,
    &bh_plugin_pod_topology_spread,
    &bh_plugin_inter_pod_affinity,
    &bh_plugin_dynamic_resources,
    &bh_plugin_default_preemption,
    &bh_plugin_balanced_allocation,
    &bh_plugin_image_locality,
    &bh_plugin_default_binder,
    &bh_plugin_node_declared_features,
    &bh_plugin_ebs_limits,
    &bh_plugin_gce_pd_limits,
    &bh_plugin_azure_disk_limits,
    &bh_plugin_cinder_limits,
    &bh_plugin_selector_spread,
    &bh_plugin_gang_scheduling,
    &bh_plugin_topology_placement_generator,
    &bh_plugin_pod_group_pods_count,
    &bh_plugin_coscheduling,
    NULL,
};

#define MEMO 8u

const struct bh_plugin *(*bh_plugin_find_more)(const char *name);
const char *(*bh_plugin_places)(void);
int (*bh_plugin_declare_guest)(const char *name, const struct bh_json *args, struct bh_err *err);

static const struct bh_plugin *look_up(const char *name)
{
    const struct bh_plugin *const *lists[] = {bh_plugins_extra, bh_plugins};

    for (unsigned i = 0; i < BH_ARRAY_LEN(lists); i++)
        for (const struct bh_plugin *const *p = lists[i]; p && *p; p++)
            if (bh_streq((*p)->name, name))
                return *p;
    return bh_plugin_find_more ? bh_plugin_find_more(name) : NULL;
}

/* Every waiting pod is asked for by the names of the few that rejected it: these are looked at
 * first, from the one found last on. */
const struct bh_plugin *bh_plugin_find(const char *name)
{
    static _Thread_local const struct bh_plugin *memo[MEMO];
    static _Thread_local unsigned at;

    for (unsigned i = 0; i < MEMO; i++) {
        unsigned k = (at + i) % MEMO;
        if (memo[k] && bh_streq(memo[k]->name, name)) {
            at = k;
            return memo[k];
        }
    }
    const struct bh_plugin *p = look_up(name);
    if (p) {
        at = (at + MEMO - 1) % MEMO;
        memo[at] = p;
    }
    return p;
}

uint32_t bh_plugin_points(const struct bh_plugin *p)
{
    const bool has[BH_POINT_COUNT] = {[BH_POINT_PRE_ENQUEUE] = p->pre_enqueue,
                                      [BH_POINT_QUEUE_SORT] = p->less,
                                      [BH_POINT_PRE_FILTER] = p->pre_filter,
                                      [BH_POINT_FILTER] = p->filter,
                                      [BH_POINT_POST_FILTER] = p->post_filter,
                                      [BH_POINT_PRE_SCORE] = p->pre_score,
                                      [BH_POINT_SCORE] = p->score,
                                      [BH_POINT_RESERVE] = p->reserve,
                                      [BH_POINT_PERMIT] = p->permit,
                                      [BH_POINT_PRE_BIND] = p->pre_bind,
                                      [BH_POINT_BIND] = p->bind,
                                      [BH_POINT_POST_BIND] = p->post_bind,
                                      [BH_POINT_PLACEMENT_GENERATE] = p->placement_generate,
                                      [BH_POINT_PLACEMENT_SCORE] = p->placement_score};
    uint32_t bits = 0;

    for (unsigned i = 0; i < BH_POINT_COUNT; i++)
        bits |= has[i] ? BH_POINT_BIT(i) : 0;
    return bits;
}
