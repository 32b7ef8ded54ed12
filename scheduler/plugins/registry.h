/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/registry.h - the descriptors of the built-in plugins
 */
#ifndef BH_REGISTRY_H
#define BH_REGISTRY_H

#include "scheduler/framework/plugin.h"

extern const struct bh_plugin bh_plugin_scheduling_gates;
extern const struct bh_plugin bh_plugin_priority_sort;
extern const struct bh_plugin bh_plugin_node_unschedulable;
extern const struct bh_plugin bh_plugin_node_name;
extern const struct bh_plugin bh_plugin_taint_toleration;
extern const struct bh_plugin bh_plugin_node_affinity;
extern const struct bh_plugin bh_plugin_node_ports;
extern const struct bh_plugin bh_plugin_fit;
extern const struct bh_plugin bh_plugin_volume_restrictions;
extern const struct bh_plugin bh_plugin_node_volume_limits;
extern const struct bh_plugin bh_plugin_volume_binding;
extern const struct bh_plugin bh_plugin_volume_zone;
extern const struct bh_plugin bh_plugin_pod_topology_spread;
extern const struct bh_plugin bh_plugin_inter_pod_affinity;
extern const struct bh_plugin bh_plugin_dynamic_resources;
extern const struct bh_plugin bh_plugin_default_preemption;
extern const struct bh_plugin bh_plugin_balanced_allocation;
extern const struct bh_plugin bh_plugin_image_locality;
extern const struct bh_plugin bh_plugin_default_binder;
extern const struct bh_plugin bh_plugin_node_declared_features;
/* Off by default: what upstream had and dropped. */
extern const struct bh_plugin bh_plugin_ebs_limits;
extern const struct bh_plugin bh_plugin_gce_pd_limits;
extern const struct bh_plugin bh_plugin_azure_disk_limits;
extern const struct bh_plugin bh_plugin_cinder_limits;
extern const struct bh_plugin bh_plugin_selector_spread;
#endif
