/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/nodeports/node_ports.c - host ports are taken once per node
 *
 * Upstream: pkg/scheduler/framework/plugins/nodeports/node_ports.go; differences: none.
 */
#include "scheduler/framework/plugin.h"
#include "scheduler/plugins/registry.h"

BH_STATUS_CONST(no_ports, BH_UNSCHEDULABLE, "NodePorts",
                "node(s) didn't have free ports for the requested pod ports");
BH_STATUS_CONST(no_state, BH_ERROR, "NodePorts",
                "reading \"PreFilterNodePorts\" from cycleState: not found");

static const struct bh_status *pre_filter(struct bh_call *c, struct bh_node_set *ret BH_UNUSED)
{
    return c->pod->shape->host_ports.n ? NULL : &bh_status_skip;
}

static bool conflict(struct bh_call *c, const struct bh_node_info *node)
{
    const struct bh_shape_rec *s = c->pod->shape;

    return bh_ports_conflict(node->ports, node->n_ports,
                             bh_rec_at(s, s->host_ports, struct bh_host_port), s->host_ports.n,
                             c->cache->sym.any_ip);
}

static const struct bh_status *filter(struct bh_call *c, const struct bh_node_info *node)
{
    return conflict(c, node) ? &no_ports : NULL;
}

static uint32_t filter_rows(struct bh_call *c, uint32_t *rows, uint32_t n)
{
    const struct bh_columns *cols = &c->cache->cols;
    uint32_t m = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t row = rows[i];
        if (!bh_row_bit(cols, BH_ROW_PORTS, row) || !conflict(c, c->cache->rows[row]))
            rows[m++] = row;
    }
    return m;
}

static enum bh_hint on_pod_deleted(const struct bh_hint_call *c)
{
    const struct bh_shape_rec *s = c->shape, *gone = c->ev->old_shape;

    if (!bh_had_node(c->ev->old_pod) || !gone->host_ports.n)
        return BH_QUEUE_SKIP;
    return bh_hint_if(bh_ports_conflict(
        bh_rec_at(gone, gone->host_ports, struct bh_host_port), gone->host_ports.n,
        bh_rec_at(s, s->host_ports, struct bh_host_port), s->host_ports.n, c->sym->any_ip));
}

static const struct bh_event_reg events[] = {
    {.on = BH_ON_POD, .actions = BH_EV_DELETE, .hint = on_pod_deleted},
    {.on = BH_ON_NODE, .actions = BH_EV_ADD},
    {.actions = 0},
};

const struct bh_plugin bh_plugin_node_ports = {
    BH_PLUGIN_HEAD("NodePorts"),
    .flags = BH_PLUGIN_NODE_LOCAL | BH_PLUGIN_HINTS_BY_ESSENCE,
    .events = events,
    .pre_filter = pre_filter,
    .filter = filter,
    .without_pre_filter = &no_state,
    .filter_rows = filter_rows,
};
