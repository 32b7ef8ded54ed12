/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/disklimits/disk_limits.h - how many in-tree cloud disks a node can attach
 *
 * One implementation behind four plugins that upstream had before CSI: EBSLimits, GCEPDLimits,
 * AzureDiskLimits, CinderLimits. They are off by default; a node with a CSINode is left to
 * NodeVolumeLimits, which counts these disks for the drivers that took them over.
 *
 * The limit: the node's allocatable, else KUBE_MAX_PD_VOLS of the environment (read once, when the
 * profile is made), else the cloud's.
 *
 * Runs in:  the engine's thread.
 * Upstream: pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go of v1.31, the last one;
 *           differences: of two instance type labels the stable one counts (upstream: either).
 */
#ifndef BH_DISK_LIMITS_H
#define BH_DISK_LIMITS_H

#include "scheduler/plugins/volumebinding/translate.h"

struct bh_disk_kind {
    const char *plugin; /* its name */
    enum bh_in_tree in_tree;
    const char *limit_key;                            /* in the node's allocatable */
    int64_t limit;                                    /* the cloud's */
    int64_t (*limit_of_type)(const char *node_label); /* instead, "" without such a label */
};
int bh_disk_limits_new(const struct bh_plugin_env *env, const struct bh_disk_kind *kind,
                       void **ret);
const struct bh_status *bh_disk_limits_pre_filter(struct bh_call *c, struct bh_node_set *ret_nodes);
const struct bh_status *bh_disk_limits_filter(struct bh_call *c, const struct bh_node_info *node);
extern const struct bh_event_reg bh_disk_limits_events[];
extern const struct bh_overlay_ops bh_disk_limits_overlay;

/* The whole plugin of one kind: a static struct bh_disk_kind. */
#define BH_DISK_LIMITS(symbol, name_, kind_)                                                       \
    static int args_new(const struct bh_plugin_env *env, const struct bh_json *args, void **ret,   \
                        struct bh_err *err)                                                        \
    {                                                                                              \
        (void)args;                                                                                \
        (void)err;                                                                                 \
        return bh_disk_limits_new(env, (kind_), ret);                                              \
    }                                                                                              \
    const struct bh_plugin symbol = {                                                              \
        BH_PLUGIN_HEAD((name_)),                                                                   \
        .flags = BH_PLUGIN_OVERLAY | BH_PLUGIN_HINTS_BY_ESSENCE,                                   \
        .args_new = args_new,                                                                      \
        .events = bh_disk_limits_events,                                                           \
        .pre_filter = bh_disk_limits_pre_filter,                                                   \
        .filter = bh_disk_limits_filter,                                                           \
        .idle = bh_volumes_idle,                                                                   \
        .overlay = &bh_disk_limits_overlay,                                                        \
    }
#endif
