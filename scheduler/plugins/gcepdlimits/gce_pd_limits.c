/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/gcepdlimits/gce_pd_limits.c - how many GCE persistent disks a node can attach
 *
 * Upstream: pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go of v1.31; see disklimits.
 */
#include "scheduler/plugins/disklimits/disk_limits.h"
#include "scheduler/plugins/registry.h"

static const struct bh_disk_kind kind = {.plugin = "GCEPDLimits",
                                         .in_tree = BH_IN_TREE_GCE_PD,
                                         .limit_key = "attachable-volumes-gce-pd",
                                         .limit = 16};

BH_DISK_LIMITS(bh_plugin_gce_pd_limits, "GCEPDLimits", &kind);
