/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/ebslimits/ebs_limits.c - how many EBS volumes a node can attach
 *
 * Upstream: pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go of v1.31; see disklimits.
 */
#include "scheduler/plugins/disklimits/disk_limits.h"
#include "scheduler/plugins/registry.h"

/* Instance types on Nitro: upstream's pattern is ^[cmr]5.*|t3|z1d, and nothing ties its second and
 * third part to the beginning. */
static int64_t limit_of_type(const char *instance_type)
{
    bool nitro = (*instance_type && strchr("cmr", *instance_type) && instance_type[1] == '5') ||
                 strstr(instance_type, "t3") || strstr(instance_type, "z1d");

    return nitro ? 25 : 39;
}

static const struct bh_disk_kind kind = {.plugin = "EBSLimits",
                                         .in_tree = BH_IN_TREE_EBS,
                                         .limit_key = "attachable-volumes-aws-ebs",
                                         .limit_of_type = limit_of_type};

BH_DISK_LIMITS(bh_plugin_ebs_limits, "EBSLimits", &kind);
