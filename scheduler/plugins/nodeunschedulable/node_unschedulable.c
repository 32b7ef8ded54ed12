/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/nodeunschedulable/node_unschedulable.c - cordoned nodes take tolerant pods only
 *
 * Upstream:   pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go; differences:
 *             none.
 */
#include "scheduler/framework/plugin.h"
#include "scheduler/plugins/registry.h"

BH_STATUS_CONST(unschedulable, BH_UNSCHEDULABLE_AND_UNRESOLVABLE, "NodeUnschedulable",
                "node(s) were unschedulable");

/* spec.unschedulable counts as this taint, whether or not the node carries it. */
static bool tolerates_cordon(const struct bh_shape_rec *s, bh_sym key)
{
    const struct bh_toleration *t = bh_rec_at(s, s->tolerations, struct bh_toleration);
    const struct bh_taint cordon = {.key = key, .effect = BH_NO_SCHEDULE};

    for (uint32_t i = 0; i < s->tolerations.n; i++)
        if (bh_toleration_tolerates(&t[i], &cordon))
            return true;
    return false;
}

static const struct bh_status *filter(struct bh_call *c, const struct bh_node_info *node)
{
    if (!(node->rec->flags & BH_NODE_UNSCHEDULABLE) ||
        tolerates_cordon(c->pod->shape, c->cache->sym.unschedulable))
        return NULL;
    return &unschedulable;
}

static uint32_t filter_rows(struct bh_call *c, uint32_t *rows, uint32_t n)
{
    const struct bh_columns *cols = &c->cache->cols;
    uint32_t m = 0;

    if (tolerates_cordon(c->pod->shape, c->cache->sym.unschedulable))
        return n;
    for (uint32_t i = 0; i < n; i++) {
        rows[m] = rows[i];
        m += !bh_row_bit(cols, BH_ROW_UNSCHEDULABLE, rows[i]);
    }
    return m;
}

static enum bh_hint on_node(const struct bh_hint_call *c)
{
    const struct bh_node_rec *old = c->ev->old_node, *neu = c->ev->new_node;

    if (neu->flags & BH_NODE_UNSCHEDULABLE)
        return BH_QUEUE_SKIP;
    return bh_hint_if(!old || old->flags & BH_NODE_UNSCHEDULABLE);
}

static enum bh_hint on_toleration(const struct bh_hint_call *c)
{
    return bh_hint_if(bh_hint_is_self(c, c->ev->new_pod) &&
                      tolerates_cordon(c->ev->new_shape, c->sym->unschedulable));
}

static const struct bh_event_reg events[] = {
    {.on = BH_ON_NODE, .actions = BH_EV_ADD | BH_EV_NODE_TAINT, .hint = on_node},
    {.on = BH_ON_POD, .actions = BH_EV_POD_TOLERATION, .hint = on_toleration},
    {.actions = 0},
};

const struct bh_plugin bh_plugin_node_unschedulable = {
    BH_PLUGIN_HEAD("NodeUnschedulable"),
    .flags = BH_PLUGIN_NODE_LOCAL | BH_PLUGIN_HINTS_BY_ESSENCE | BH_PLUGIN_READS_SUMS |
             BH_PLUGIN_READS_NODE,
    .events = events,
    .filter = filter,
    .filter_rows = filter_rows,
};
