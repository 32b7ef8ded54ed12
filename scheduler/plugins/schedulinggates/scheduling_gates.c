/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/schedulinggates/scheduling_gates.c - pods with gates do not enter the active
 * queue
 *
 * Upstream: pkg/scheduler/framework/plugins/schedulinggates/scheduling_gates.go; differences: none.
 */
#include "common/base/buf.h"
#include "scheduler/framework/plugin.h"
#include "scheduler/plugins/registry.h"

static const struct bh_status *pre_enqueue(struct bh_call *c)
{
    const struct bh_shape_rec *s = c->pod->shape;
    const bh_sym *gates = bh_rec_at(s, s->gates, bh_sym);
    struct bh_buf names BH_CLEANUP(bh_buf_fini) = {0};

    if (!s->gates.n)
        return NULL;
    for (uint32_t i = 0; i < s->gates.n; i++) {
        if (i)
            bh_buf_addc(&names, ' ');
        bh_buf_adds(&names, bh_sym_text(c->tab, gates[i]));
    }
    return bh_status_new(c->arena, BH_UNSCHEDULABLE_AND_UNRESOLVABLE, "SchedulingGates",
                         "waiting for scheduling gates: [%s]", bh_buf_str(&names));
}

static enum bh_hint on_gates_gone(const struct bh_hint_call *c)
{
    return bh_hint_if(bh_hint_is_self(c, c->ev->new_pod));
}

static const struct bh_event_reg events[] = {
    {.on = BH_ON_POD, .actions = BH_EV_POD_GATES_ELIMINATED, .hint = on_gates_gone},
    {.actions = 0},
};

const struct bh_plugin bh_plugin_scheduling_gates = {
    BH_PLUGIN_HEAD("SchedulingGates"),
    .flags = BH_PLUGIN_NODE_LOCAL | BH_PLUGIN_HINTS_BY_ESSENCE,
    .events = events,
    .pre_enqueue = pre_enqueue,
};
