/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/nodename/node_name.c - a pod that names its node fits there only
 *
 * Upstream: pkg/scheduler/framework/plugins/nodename/node_name.go; differences: none.
 */
#include "scheduler/framework/plugin.h"
#include "scheduler/plugins/registry.h"

BH_STATUS_CONST(other_node, BH_UNSCHEDULABLE_AND_UNRESOLVABLE, "NodeName",
                "node(s) didn't match the requested node name");

static const struct bh_status *filter(struct bh_call *c, const struct bh_node_info *node)
{
    bh_sym want = c->pod->rec->node;
    return want == BH_SYM_NONE || want == node->name ? NULL : &other_node;
}

static uint32_t filter_rows(struct bh_call *c, uint32_t *rows, uint32_t n)
{
    bh_sym want = c->pod->rec->node;
    uint32_t m = 0;

    if (want == BH_SYM_NONE)
        return n;
    for (uint32_t i = 0; i < n; i++)
        if (c->cache->rows[rows[i]]->name == want)
            rows[m++] = rows[i];
    return m;
}

/* The wish is part of the pod, not of its shape. */
static uint64_t epoch(struct bh_call *c)
{
    return c->pod->rec->node;
}

static const struct bh_event_reg events[] = {
    {.on = BH_ON_NODE, .actions = BH_EV_ADD},
    {.actions = 0},
};

const struct bh_plugin bh_plugin_node_name = {
    BH_PLUGIN_HEAD("NodeName"),
    .flags = BH_PLUGIN_NODE_LOCAL | BH_PLUGIN_HINTS_BY_ESSENCE | BH_PLUGIN_READS_SUMS |
             BH_PLUGIN_READS_NODE,
    .events = events,
    .filter = filter,
    .filter_rows = filter_rows,
    .epoch = epoch,
};
