/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/registry.h - the descriptors of the built-in plugins
 */
#ifndef BH_REGISTRY_H
#define BH_REGISTRY_H

#include "scheduler/framework/plugin.h"

extern const struct bh_plugin bh_plugin_scheduling_gates, bh_plugin_priority_sort,
    bh_plugin_node_unschedulable, bh_plugin_node_name, bh_plugin_taint_toleration,
    bh_plugin_node_affinity, bh_plugin_node_ports, bh_plugin_fit, bh_plugin_volume_restrictions,
    bh_plugin_node_volume_limits, bh_plugin_volume_binding, bh_plugin_volume_zone,
    bh_plugin_pod_topology_spread, bh_plugin_inter_pod_affinity, bh_plugin_dynamic_resources,
    bh_plugin_default_preemption, bh_plugin_balanced_allocation, bh_plugin_image_locality,
    bh_plugin_default_binder, bh_plugin_node_declared_features;
/* With their gates (scheduler/config/flags.c). */
extern const struct bh_plugin bh_plugin_gang_scheduling, bh_plugin_topology_placement_generator,
    bh_plugin_pod_group_pods_count;
/* Off by default: what upstream had and dropped. */
extern const struct bh_plugin bh_plugin_ebs_limits, bh_plugin_gce_pd_limits,
    bh_plugin_azure_disk_limits, bh_plugin_cinder_limits, bh_plugin_selector_spread;
/* Off by default: the community's. */
extern const struct bh_plugin bh_plugin_coscheduling;
#endif
