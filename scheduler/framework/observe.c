/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/framework/observe.c - names of points, and single plugin calls
 *
 * Upstream: pkg/scheduler/metrics/metrics.go.
 */
#include "scheduler/framework/framework.h"

const char *bh_seen_point_name(enum bh_seen_point at)
{
    static const char *const names[BH_SEEN_COUNT] = {
        [BH_SEEN_PRE_ENQUEUE] = "PreEnqueue",
        [BH_SEEN_PRE_FILTER] = "PreFilter",
        [BH_SEEN_FILTER] = "Filter",
        [BH_SEEN_ADD_POD] = "PreFilterExtensionAddPod",
        [BH_SEEN_REMOVE_POD] = "PreFilterExtensionRemovePod",
        [BH_SEEN_POST_FILTER] = "PostFilter",
        [BH_SEEN_PRE_SCORE] = "PreScore",
        [BH_SEEN_SCORE] = "Score",
        [BH_SEEN_NORMALIZE] = "ScoreExtensionNormalize",
        [BH_SEEN_RESERVE] = "Reserve",
        [BH_SEEN_UNRESERVE] = "Unreserve",
        [BH_SEEN_PERMIT] = "Permit",
        [BH_SEEN_PRE_BIND] = "PreBind",
        [BH_SEEN_PRE_FLIGHT] = "PreBindPreFlight",
        [BH_SEEN_BIND] = "Bind",
        [BH_SEEN_POST_BIND] = "PostBind",
        [BH_SEEN_PLACEMENT_GENERATE] = "PlacementGenerate",
        [BH_SEEN_PLACEMENT_SCORE] = "PlacementScore",
        [BH_SEEN_PLACEMENT_NORMALIZE] = "PlacementScoreExtensionNormalize",
    };
    return names[at];
}

void bh_sample_report(struct bh_cycle *cy, unsigned plugin, enum bh_seen_point at,
                      enum bh_code code, uint64_t began_ns)
{
    const struct bh_engine_observer *o = cy->fw->observer;

    cy->samples--;
    o->plugin(o->arg, cy->fw->plugins[plugin].plugin->name, at, code, o->now_ns() - began_ns);
}
