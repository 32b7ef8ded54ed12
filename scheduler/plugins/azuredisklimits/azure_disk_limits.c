/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/azuredisklimits/azure_disk_limits.c - how many Azure disks a node can attach
 *
 * Upstream: pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go of v1.31; see disklimits.
 */
#include "scheduler/plugins/disklimits/disk_limits.h"
#include "scheduler/plugins/registry.h"

static const struct bh_disk_kind kind = {.plugin = "AzureDiskLimits",
                                         .in_tree = BH_IN_TREE_AZURE_DISK,
                                         .limit_key = "attachable-volumes-azure-disk",
                                         .limit = 16};

BH_DISK_LIMITS(bh_plugin_azure_disk_limits, "AzureDiskLimits", &kind);
