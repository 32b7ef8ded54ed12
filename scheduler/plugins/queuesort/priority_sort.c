/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/queuesort/priority_sort.c - higher priority first, then the earlier one
 *
 * Upstream: pkg/scheduler/framework/plugins/queuesort/priority_sort.go; differences: none.
 */
#include "scheduler/framework/plugin.h"
#include "scheduler/plugins/registry.h"

/* The queue has the same of its own, without a call for each comparison: this is for the list. */
static bool less(struct bh_call *c BH_UNUSED, const struct bh_queue_key *a,
                 const struct bh_queue_key *b)
{
    return a->shape->priority > b->shape->priority ||
           (a->shape->priority == b->shape->priority && a->timestamp_ns < b->timestamp_ns);
}

const struct bh_plugin bh_plugin_priority_sort = {
    BH_PLUGIN_HEAD("PrioritySort"),
    .flags = BH_PLUGIN_NODE_LOCAL,
    .less = less,
};
