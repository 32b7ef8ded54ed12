/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/framework/event.h - what happened in the cluster, as queueing hints see it
 *
 * Upstream: k8s.io/kube-scheduler/framework/events.go.
 */
#ifndef BH_EVENT_H
#define BH_EVENT_H

#include "common/k8s/kinds.h"
#include "common/k8s/record.h"

enum bh_event_resource {
    BH_EV_POD_ASSIGNED,
    BH_EV_POD_UNSCHEDULED,
    BH_EV_NODE,
    BH_EV_OBJECT,
    BH_EV_PLUGIN /* nothing in the cluster: the plugin says that its rejections may be over */
};
enum bh_event_action { /* upstream's bits */
                       BH_EV_ADD = 1,
                       BH_EV_DELETE = 2,
                       BH_EV_NODE_ALLOCATABLE = 4,
                       BH_EV_NODE_LABEL = 8,
                       BH_EV_NODE_TAINT = 16,
                       BH_EV_NODE_CONDITION = 32,
                       BH_EV_NODE_ANNOTATION = 64,
                       BH_EV_NODE_FEATURE = 128,
                       BH_EV_POD_LABEL = 256,
                       BH_EV_POD_SCALE_DOWN = 512,
                       BH_EV_POD_TOLERATION = 1024,
                       BH_EV_POD_GATES_ELIMINATED = 2048,
                       BH_EV_POD_CLAIM = 4096,
                       BH_EV_UPDATE = 8188,
                       BH_EV_ALL = 8191
};
struct bh_cluster_event {
    enum bh_event_resource resource;
    enum bh_kind kind; /* BH_EV_OBJECT */
    uint32_t action;   /* one bit, or BH_EV_UPDATE for a general update */
    const struct bh_node_rec *old_node, *new_node; /* NODE; NULL = absent */
    const struct bh_pod_rec *old_pod, *new_pod;    /* POD_* */
    const struct bh_shape_rec *old_shape, *new_shape;
    bool was_assumed; /* POD_ASSIGNED, deleted: it was only assumed; what Reserve took is free again
                       */
    /* OBJECT: which one, and what about it matters to hints; name BH_SYM_NONE = not known. Filled
     * by bh_engine_put_object_event. */
    bh_sym object_namespace, object_name;
    bh_sym object_driver;    /* VolumeAttachment: spec.attacher */
    bh_sym object_resource;  /* DeviceClass: spec.extendedResourceName */
    uint32_t object_changes; /* enum bh_object_change */
    const char *plugin;      /* PLUGIN: its name; lives as long as the engine */
};
enum bh_object_change {
    BH_CLASS_WAITS = 1,           /* StorageClass: its mode is WaitForFirstConsumer */
    BH_CLASS_TOPOLOGIES = 2,      /* StorageClass: other allowedTopologies */
    BH_CSI_NODE_MIGRATION = 4,    /* CSINode: other migrated plugins */
    BH_CSI_NODE_LIMIT_GREW = 8,   /* CSINode: some driver may attach more */
    BH_CSI_DRIVER_UNCHECKED = 16, /* CSIDriver: capacity is no longer looked at */
    BH_CAPACITY_GREW = 32,        /* CSIStorageCapacity */
    BH_VOLUME_ZONES = 64,         /* PersistentVolume: other zone or region labels */
    BH_CLAIM_DEALLOCATED = 128,   /* ResourceClaim: its devices are free again */
    BH_CLAIM_STATUS = 256,        /* ResourceClaim: other status */
    BH_NAMESPACE_LABELS = 512,    /* Namespace: other labels */
    BH_CLASS_RESOURCE = 1024      /* DeviceClass: another extendedResourceName */
};
enum bh_hint { BH_QUEUE_SKIP, BH_QUEUE };
/* Node and pod diffs as upstream's (scheduler-core.md 1.5): fills at most 8 action bits in
 * order. */
unsigned bh_node_diff(const struct bh_node_rec *old, const struct bh_node_rec *neu,
                      uint32_t out[8]);
unsigned bh_pod_diff(const struct bh_pod_rec *old, const struct bh_shape_rec *old_shape,
                     const struct bh_pod_rec *neu, const struct bh_shape_rec *new_shape,
                     uint32_t out[8]);
#endif
