/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/noderesources/class_devices.h - counting devices for the scores
 *
 * An extended resource that a DeviceClass provides has no amount in a node's allocatable. The
 * scorers count devices instead: those of the slices for the node that the class selects, and how
 * many of them are allocated to a claim, in flight or not. Pools, their generations, taints and
 * shared counters do not matter here, as upstream.
 *
 * Owns:     an index of the slices, made when a configured resource is first found to be provided
 *           by a class; for each node asked about which of its own devices a class selects.
 * Runs in:  the engine's thread.
 * Upstream: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go
 *           (calculateDRAResourceTotals); differences: what matched once is looked up again after a
 *           slice or node changed (upstream keeps it for ever); NodeResourcesBalancedAllocation
 *           evaluates selectors (upstream crashes); selectors see allowMultipleAllocations.
 */
#ifndef BH_CLASS_DEVICES_H
#define BH_CLASS_DEVICES_H

#include "scheduler/cache/reservations.h"
#include "scheduler/plugins/dynamicresources/devices.h"
#include "scheduler/plugins/noderesources/resources.h"

struct bh_class_devices {
    struct bh_symtab *tab;
    struct bh_reservations *reserved, none;
    bool ready; /* dra is initialised */
    struct bh_dra dra;
    uint64_t classes_version;               /* that the following are of */
    const K8s__DeviceClass *of[BH_RES_MAX]; /* by index of the configured resource; NULL = none */
    bool any;
    /* What a class selects of the slices for one node, by name and resource: struct kept. Of the
     * slices and classes as of these; which of it is allocated is looked at each time. */
    struct bh_umap kept;
    struct bh_arena kept_arena;
    uint64_t kept_index, kept_classes;
    uint32_t *found; /* while one is made */
    size_t cap_found;
};
struct bh_class_devices *bh_class_devices_new(const struct bh_plugin_env *env);
void bh_class_devices_free(struct bh_class_devices *d);
/* NULL when no class provides any of the resources; else current for counting. */
struct bh_class_devices *bh_class_devices_get(struct bh_class_devices *d,
                                              const struct bh_res_list *l,
                                              const struct bh_objects *o);
/* What a scorer asks each node with: found out in PreScore, once for all of them. It stays true as
 * long as the epoch. */
struct bh_res_wanted {
    const int64_t *requests; /* of the pod, by resource */
    struct bh_class_devices *devices;
};
/* For resource i of the list; 0 and 0 where the class has none or a selector fails. */
void bh_class_devices_count(struct bh_class_devices *d, uint32_t i, const struct bh_node_rec *node,
                            int64_t *ret_all, int64_t *ret_allocated);
/* Changes with everything the counts depend on beside the node. */
uint64_t bh_class_devices_epoch(struct bh_class_devices *d, const struct bh_res_list *l,
                                const struct bh_objects *o);
#endif
