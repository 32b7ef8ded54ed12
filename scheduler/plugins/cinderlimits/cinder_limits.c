/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/cinderlimits/cinder_limits.c - how many Cinder volumes a node can attach
 *
 * Upstream: pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go of v1.31; see disklimits.
 */
#include "scheduler/plugins/disklimits/disk_limits.h"
#include "scheduler/plugins/registry.h"

static const struct bh_disk_kind kind = {.plugin = "CinderLimits",
                                         .in_tree = BH_IN_TREE_CINDER,
                                         .limit_key = "attachable-volumes-cinder",
                                         .limit = 256};

BH_DISK_LIMITS(bh_plugin_cinder_limits, "CinderLimits", &kind);
