/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/networkaware/sort.c - TopologicalSort: pods of an AppGroup in the order of their workloads
 *
 * Upstream:   pkg/networkaware/topologicalsort/topologicalsort.go.
 * Difference: upstream says of two pods with one place in the order that each comes before the other; here
 *             priority and time decide.
 */
#include "networkaware.h"

/* PrioritySort's. */
static int32_t by_priority(struct berth_call *c, const struct berth_queued *a,
                           const struct berth_queued *b)
{
    int32_t x = nw_host->pods->priority(c, a->pod), y = nw_host->pods->priority(c, b->pod);

    return x != y ? x > y : a->timestamp < b->timestamp;
}

static void tell(struct nw_instance *in, struct nw_group *g)
{
    nw_tell(in, &g->told, "AppGroup", nw_host->base->text(in->home, g->name),
            !g->exists     ? "is in none of the namespaces: its pods go by priority and time"
            : nw_circle(g) ? "has dependencies that go round in a circle: no order can be right"
            : !g->n_ranks  ? "has neither status.topologyOrder nor dependencies: its pods go by "
                             "priority and time"
                           : NULL);
}

int32_t nw_less(void *self, struct berth_call *c, const struct berth_queued *a,
                const struct berth_queued *b)
{
    struct nw_instance *in = self;
    const struct berth_host_pods *h = nw_host->pods;
    berth_sym group = h->label(c, a->pod, in->group_label);

    if (group == BERTH_SYM_ABSENT || group == 0 || group != h->label(c, b->pod, in->group_label))
        return by_priority(c, a, b);
    struct nw_group *g = nw_group(in, c, group);
    if (!g)
        return by_priority(c, a, b);
    if (!g->looked && g->version) {
        tell(in, g);
        g->looked = 1;
    }
    berth_sym x = h->label(c, a->pod, in->workload_label),
              y = h->label(c, b->pod, in->workload_label);
    int32_t i = nw_rank(g, x == BERTH_SYM_ABSENT ? 0 : x),
            k = nw_rank(g, y == BERTH_SYM_ABSENT ? 0 : y);
    return i != k ? i < k : by_priority(c, a, b);
}
