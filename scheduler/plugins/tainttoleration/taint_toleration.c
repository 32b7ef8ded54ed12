/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/tainttoleration/taint_toleration.c - taints reject or discourage, tolerations
 * forgive
 *
 * Upstream: pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go; differences: none.
 */
#include "scheduler/framework/framework.h"
#include "scheduler/plugins/registry.h"

BH_STATUS_CONST(untolerated, BH_UNSCHEDULABLE_AND_UNRESOLVABLE, "TaintToleration",
                "node(s) had untolerated taint(s)");
BH_STATUS_CONST(no_state, BH_ERROR, "TaintToleration",
                "failed to read \"PreScoreTaintToleration\" from cycleState: not found");

static const struct bh_status *filter(struct bh_call *c, const struct bh_node_info *node)
{
    return bh_taints_tolerated(c->pod->shape, node->rec) ? NULL : &untolerated;
}

static uint32_t filter_rows(struct bh_call *c, uint32_t *rows, uint32_t n)
{
    const struct bh_columns *cols = &c->cache->cols;
    uint32_t m = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t row = rows[i];
        if (!bh_row_bit(cols, BH_ROW_HARD_TAINT, row) ||
            bh_taints_tolerated(c->pod->shape, c->cache->rows[row]->rec))
            rows[m++] = row;
    }
    return m;
}

/* Upstream keeps the tolerations with effect "" or PreferNoSchedule here; a toleration of another
 * effect never matches a PreferNoSchedule taint, so asking all of them gives the same counts. */
static const struct bh_status *pre_score(struct bh_call *c BH_UNUSED,
                                         const uint32_t *rows BH_UNUSED, uint32_t n BH_UNUSED)
{
    return NULL;
}

static int64_t intolerable(const struct bh_shape_rec *s, const struct bh_node_rec *n)
{
    const struct bh_taint *t = bh_rec_at(n, n->taints, struct bh_taint);
    int64_t count = 0;

    for (uint32_t i = 0; i < n->taints.n; i++)
        count += t[i].effect == BH_PREFER_NO_SCHEDULE && !bh_tolerated(s, &t[i]);
    return count;
}

static const struct bh_status *score(struct bh_call *c, const struct bh_node_info *ni, int64_t *ret)
{
    *ret = intolerable(c->pod->shape, ni->rec);
    return NULL;
}

static void score_rows(struct bh_call *c, const uint32_t *rows, uint32_t n, int64_t *ret)
{
    const struct bh_columns *cols = &c->cache->cols;

    for (uint32_t i = 0; i < n; i++)
        ret[i] = bh_row_bit(cols, BH_ROW_SOFT_TAINT, rows[i])
                     ? intolerable(c->pod->shape, c->cache->rows[rows[i]]->rec)
                     : 0;
}

static enum bh_hint on_node(const struct bh_hint_call *c)
{
    const struct bh_shape_rec *s = c->shape;
    bool was = c->ev->old_node && bh_taints_tolerated(s, c->ev->old_node);

    return bh_hint_if(!was && bh_taints_tolerated(s, c->ev->new_node));
}

static enum bh_hint on_toleration(const struct bh_hint_call *c)
{
    return bh_hint_if(bh_hint_is_self(c, c->ev->new_pod));
}

static const struct bh_event_reg events[] = {
    {.on = BH_ON_NODE, .actions = BH_EV_ADD | BH_EV_NODE_TAINT, .hint = on_node},
    {.on = BH_ON_POD, .actions = BH_EV_POD_TOLERATION, .hint = on_toleration},
    {.actions = 0},
};

const struct bh_plugin bh_plugin_taint_toleration = {
    BH_PLUGIN_HEAD("TaintToleration"),
    .flags = BH_PLUGIN_NODE_LOCAL | BH_PLUGIN_HINTS_BY_ESSENCE | BH_PLUGIN_READS_SUMS |
             BH_PLUGIN_READS_NODE,
    .events = events,
    .filter = filter,
    .filter_rows = filter_rows,
    .pre_score = pre_score,
    .score = score,
    .without_pre_score = &no_state,
    .score_rows = score_rows,
    .normal = BH_NORMAL_MAX_REVERSE,
};
