/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/networkaware/overhead.c - NetworkOverhead: near to the pods that a pod talks to
 *
 * Upstream: pkg/networkaware/networkoverhead/networkoverhead.go, which compares each node with each pod of the
 * AppGroup. What comes of that depends on regions and zones alone, but for pods on the node itself: so the
 * group's pods are counted by region and zone, nodes of one region and zone have one answer, and it is
 * corrected by the node's own pods.
 *
 * Costs add up as upstream's do, beyond what 64 bits hold, too.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "networkaware.h"

#define UNKNOWN_COST 100u /* upstream's MaxCost */
#define NEAR_COST    1u   /* another node of the same zone; the same node costs nothing */

const struct berth_host *nw_host;

struct spot { /* a region and a zone that nodes have */
    berth_sym region, zone;
    uint64_t *placed; /* pods there that the pod's i-th dependency is about; of the first ones */
    int answered;
    uint64_t satisfied, violated, cost; /* of a node there without such pods */
};
struct state { /* of the pod at hand: from PreFilter on */
    int all_alike;
    const struct nw_topology *topology;
    uint32_t n_dependencies, n_rows;
    struct nw_dependency *dependencies;
    uint64_t *here;                        /* by row: pairs of a pod there and a dependency */
    uint32_t n_spots, cap_spots, n_placed; /* the first n_placed have pods of the group */
    struct spot *spots;
    uint32_t *index; /* twice as many places by hash: number of a spot + 1; 0: free */
};

static int32_t failed(struct berth_why *why, struct berth_str reason)
{
    why->reason = reason;
    return BERTH_ERROR;
}

static berth_sym present(berth_sym label)
{
    return label == BERTH_SYM_ABSENT ? 0 : label;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Where it is in the index, or belongs. */
static uint32_t *place_of(const struct state *s, berth_sym region, berth_sym zone)
{
    uint64_t mask = 2 * (uint64_t)s->cap_spots - 1;
    uint64_t i = (((uint64_t)region << 32 | zone) * UINT64_C(0x9e3779b97f4a7c15)) >> 32;

    for (; s->index[i & mask]; i++) {
        const struct spot *at = &s->spots[s->index[i & mask] - 1];
        if (at->region == region && at->zone == zone)
            break;
    }
    return &s->index[i & mask];
}

/* Room for as many again. 0: no memory. */
static int grow(struct state *s, struct berth_call *c)
{
    const struct spot *was = s->spots;

    s->cap_spots = s->cap_spots ? 2 * s->cap_spots : 32;
    s->spots = nw_host->base->alloc(c, s->cap_spots * sizeof *s->spots);
    s->index = nw_host->base->alloc(c, 2 * (uint64_t)s->cap_spots * sizeof *s->index);
    if (!s->spots || !s->index)
        return 0;
    for (uint32_t i = 0; i < s->n_spots; i++) {
        s->spots[i] = was[i];
        *place_of(s, was[i].region, was[i].zone) = i + 1;
    }
    return 1;
}

/* NULL: no memory. Valid until the next call. */
static struct spot *spot_of(struct state *s, struct berth_call *c, berth_sym region, berth_sym zone)
{
    if (s->n_spots == s->cap_spots && !grow(s, c))
        return NULL;
    uint32_t *at = place_of(s, region, zone);
    if (!*at) {
        *at = ++s->n_spots;
        s->spots[*at - 1].region = region;
        s->spots[*at - 1].zone = zone;
    }
    return &s->spots[*at - 1];
}

/* ---- what upstream says of two nodes --------------------------------------------------------- */

/* n pods at `to`, for one dependency, seen from a node at `from` that is not theirs. */
static void count(const struct state *s, struct spot *from, const struct spot *to, int64_t max_cost,
                  uint64_t n)
{
    int same_region = from->region == to->region;
    int64_t cost;

    if (!to->region && !to->zone) {
        from->violated += n;
        from->cost += n * UNKNOWN_COST;
    } else if (same_region && from->zone == to->zone) {
        from->satisfied += n;
        from->cost += n * NEAR_COST;
    } else if (nw_between(s->topology, from->region, from->zone,
                          same_region ? from->zone : from->region,
                          same_region ? to->zone : to->region, &cost)) {
        *(cost <= max_cost ? &from->satisfied : &from->violated) += n;
        from->cost += n * (uint64_t)cost;
    } else { /* neither satisfied nor violated */
        from->cost += n * UNKNOWN_COST;
    }
}

static void answer(const struct state *s, struct spot *from)
{
    from->answered = 1;
    for (uint32_t i = 0; i < s->n_placed; i++)
        for (uint32_t k = 0; k < s->n_dependencies; k++)
            if (s->spots[i].placed[k])
                count(s, from, &s->spots[i], s->dependencies[k].max_cost, s->spots[i].placed[k]);
}

/* What is said of one node. 0: no memory. */
static int answer_of(struct state *s, struct berth_call *c, uint32_t row, berth_sym region,
                     berth_sym zone, struct spot *ret)
{
    struct spot *at = spot_of(s, c, region, zone);
    uint64_t own = row < s->n_rows ? s->here[row] : 0;

    if (!at)
        return 0;
    if (!at->answered)
        answer(s, at);
    *ret = *at;
    if (!region && !zone) { /* counted as violated above */
        ret->violated -= own;
        ret->satisfied += own;
        ret->cost -= own * UNKNOWN_COST;
    } else {
        ret->cost -= own * NEAR_COST;
    }
    return 1;
}

static int answer_of_node(struct nw_instance *in, struct berth_call *c,
                          const struct berth_node *node, struct spot *ret)
{
    const struct berth_host_nodes *h = nw_host->nodes;

    return answer_of(*nw_host->base->filter_state(c), c, h->row(c, node),
                     present(h->label(c, node, in->region_label)),
                     present(h->label(c, node, in->zone_label)), ret);
}

/* ---- PreFilter ------------------------------------------------------------------------------- */

static berth_sym group_of(const struct nw_instance *in, struct berth_call *c,
                          const struct berth_pod *pod)
{
    return present(nw_host->pods->label(c, pod, in->group_label));
}

int32_t nw_idle(void *self, struct berth_call *c)
{
    return !group_of(self, c, nw_host->pods->current(c));
}

/* The dependencies of the pod's workload. 0: no memory. */
static int take_dependencies(struct state *s, struct berth_call *c, const struct nw_group *g,
                             berth_sym workload)
{
    for (uint64_t i = 0; i < g->n_dependencies; i++)
        s->n_dependencies += g->dependencies[i].workload == workload;
    s->dependencies = nw_host->base->alloc(c, s->n_dependencies * sizeof *s->dependencies);
    if (!s->dependencies)
        return 0;
    for (uint64_t i = 0, n = 0; i < g->n_dependencies; i++)
        if (g->dependencies[i].workload == workload)
            s->dependencies[n++] = g->dependencies[i];
    return 1;
}

/* A pod of the group, on a node: is it one that the pod talks to? 0: no memory. */
static int count_placed(struct state *s, struct berth_call *c, struct nw_instance *in, uint32_t row,
                        const struct berth_node *node, berth_sym workload)
{
    const struct berth_host_nodes *h = nw_host->nodes;
    struct spot *at = NULL;

    for (uint32_t k = 0; k < s->n_dependencies; k++) {
        if (s->dependencies[k].on != workload)
            continue;
        if (!at)
            at = spot_of(s, c, present(h->label(c, node, in->region_label)),
                         present(h->label(c, node, in->zone_label)));
        if (at && !at->placed)
            at->placed = nw_host->base->alloc(c, s->n_dependencies * sizeof *at->placed);
        if (!at || !at->placed)
            return 0;
        at->placed[k]++;
        s->here[row]++;
        s->all_alike = 0;
    }
    return 1;
}

/* All pods of the group that have a node. 0: no memory. */
static int find_placed(struct state *s, struct berth_call *c, struct nw_instance *in,
                       berth_sym group)
{
    const struct berth_host_pods *h = nw_host->pods;

    s->n_rows = nw_host->columns->n_rows(c);
    s->here = nw_host->base->alloc(c, s->n_rows * sizeof *s->here);
    if (!s->here)
        return 0;
    for (uint32_t row = 0; row < s->n_rows; row++) {
        const struct berth_node *node = nw_host->columns->node(c, row);
        for (uint32_t i = node ? nw_host->nodes->n_pods(c, node) : 0; i-- > 0;) {
            const struct berth_pod *pod = nw_host->nodes->pod_at(c, node, i);
            if (h->label(c, pod, in->group_label) == group &&
                !count_placed(s, c, in, row, node, present(h->label(c, pod, in->workload_label))))
                return 0;
        }
    }
    s->n_placed = s->n_spots;
    return 1;
}

static void tell(struct nw_instance *in, struct nw_group *g, struct nw_topology *t)
{
    nw_tell(in, &g->told, "AppGroup", nw_host->base->text(in->home, g->name),
            g->exists ? NULL : "is in none of the namespaces: for its pods all nodes are alike");
    nw_tell(in, &t->told, "NetworkTopology", in->topology_name,
            !t->exists       ? "is in none of the namespaces: all nodes are alike"
            : t->has_weights ? NULL
                             : "has no weights of the name weightsName: what it costs between "
                               "regions and zones is unknown");
}

int32_t nw_pre_filter(void *self, struct berth_call *c, const berth_sym **names, uint64_t *n,
                      struct berth_why *why)
{
    struct nw_instance *in = self;
    const struct berth_pod *pod = nw_host->pods->current(c);
    struct state *s = nw_host->base->alloc(c, sizeof *s);
    struct nw_group *g = nw_group(in, c, group_of(in, c, pod));
    struct nw_topology *t = nw_topology(in, c);
    berth_sym workload = present(nw_host->pods->label(c, pod, in->workload_label));

    (void)names, (void)n;
    if (!s || !g)
        return failed(why, BERTH_STR("out of memory"));
    *nw_host->base->filter_state(c) = s;
    s->all_alike = 1;
    s->topology = t;
    tell(in, g, t);
    if (!g->exists || !t->exists)
        return BERTH_SUCCESS;
    if (!take_dependencies(s, c, g, workload) ||
        (s->n_dependencies && !find_placed(s, c, in, g->name)))
        return failed(why, BERTH_STR("out of memory"));
    return BERTH_SUCCESS;
}

/* ---- Filter ---------------------------------------------------------------------------------- */

/* PreFilter's; NULL: it is disabled there. */
static const struct state *state_of(struct berth_call *c)
{
    return *nw_host->base->filter_state(c);
}

int32_t nw_filter(void *self, struct berth_call *c, const struct berth_node *node,
                  struct berth_why *why)
{
    struct nw_instance *in = self;
    const struct state *s = state_of(c);
    struct spot a;

    if (!s)
        return failed(why, BERTH_STR("not eligible due to failed to read from cycleState"));
    if (s->all_alike)
        return BERTH_SUCCESS;
    if (!answer_of_node(in, c, node, &a))
        return failed(why, BERTH_STR("out of memory"));
    if (a.violated <= a.satisfied)
        return BERTH_SUCCESS;
    struct berth_str name = nw_host->base->text(in->home, nw_host->nodes->name(c, node));
    snprintf(in->reason, sizeof in->reason,
             "Node %.*s does not meet several network requirements from Workload dependencies: "
             "Satisfied: %" PRIu64 " Violated: %" PRIu64,
             (int)(name.n < 253 ? name.n : 253), name.p, a.satisfied, a.violated);
    why->reason = (struct berth_str){in->reason, strlen(in->reason)};
    return BERTH_UNSCHEDULABLE;
}

/* One row's answer, by the columns of labels; 0: no memory, or there are no such columns. */
static int answer_of_row(struct nw_instance *in, struct berth_call *c, uint32_t row,
                         struct spot *ret)
{
    const berth_sym *regions = nw_host->columns->label(c, in->region_label),
                    *zones = nw_host->columns->label(c, in->zone_label);

    return regions && zones &&
           answer_of(*nw_host->base->filter_state(c), c, row, present(regions[row]),
                     present(zones[row]), ret);
}

int32_t nw_filter_rows(void *self, struct berth_call *c, const uint32_t *rows, uint64_t n,
                       uint64_t *keep, struct berth_why *why)
{
    const struct state *s = state_of(c);
    struct spot a = {.answered = 0};

    for (uint64_t i = 0; i < n; i++) {
        if (!s || (!s->all_alike && !answer_of_row(self, c, rows[i], &a)))
            return failed(why, BERTH_STR("out of memory")); /* filter() says which */
        if (s->all_alike || a.violated <= a.satisfied)
            keep[i / 64] |= UINT64_C(1) << i % 64;
    }
    return BERTH_SUCCESS;
}

/* ---- Score ----------------------------------------------------------------------------------- */

int32_t nw_score(void *self, struct berth_call *c, const struct berth_node *node, int64_t *ret,
                 struct berth_why *why)
{
    const struct state *s = state_of(c);
    struct spot a = {.cost = 0};

    if (!s)
        return failed(why, BERTH_STR("not eligible due to failed to read from cycleState, return "
                                     "min score"));
    if (!s->all_alike && !answer_of_node(self, c, node, &a))
        return failed(why, BERTH_STR("out of memory"));
    *ret = (int64_t)a.cost;
    return BERTH_SUCCESS;
}

int32_t nw_score_rows(void *self, struct berth_call *c, const uint32_t *rows, uint64_t n,
                      int64_t *ret, struct berth_why *why)
{
    const struct state *s = state_of(c);
    struct spot a = {.cost = 0};

    for (uint64_t i = 0; i < n; i++) {
        if (!s || (!s->all_alike && !answer_of_row(self, c, rows[i], &a)))
            return failed(why, BERTH_STR("out of memory")); /* score() says which */
        ret[i] = (int64_t)a.cost;
    }
    return BERTH_SUCCESS;
}

/* As Go converts on amd64. */
static uint64_t whole(double v)
{
    return v >= -0x1p63 && v < 0x1p63 ? (uint64_t)(int64_t)v : UINT64_C(1) << 63;
}

int32_t nw_normalize(void *self, struct berth_call *c, int64_t *scores, uint64_t n,
                     struct berth_why *why)
{
    int64_t min = INT64_MAX, max = INT64_MIN;

    (void)self, (void)c, (void)why;
    for (uint64_t i = 0; i < n; i++) {
        min = scores[i] < min ? scores[i] : min;
        max = scores[i] > max ? scores[i] : max;
    }
    if (min == 0 && max == 0)
        return BERTH_SUCCESS;
    double range = (double)(int64_t)((uint64_t)max - (uint64_t)min);
    for (uint64_t i = 0; i < n; i++) {
        double above = (double)(int64_t)((uint64_t)scores[i] - (uint64_t)min);
        scores[i] = (int64_t)(100 - whole(max != min ? 100.0 * above / range : above));
    }
    return BERTH_SUCCESS;
}

/* ---- which changes matter -------------------------------------------------------------------- */

/* Upstream has every change try the pod again; these are those that can change what Filter says. */
int32_t nw_hint(void *self, struct berth_call *c, const struct berth_change *change)
{
    struct nw_instance *in = self;
    berth_sym own = group_of(in, c, nw_host->pods->current(c));
    struct berth_str name = change->object_name;

    if (change->on == BERTH_ON_POD)
        return (change->old_pod && group_of(in, c, change->old_pod) == own) ||
               (change->new_pod && group_of(in, c, change->new_pod) == own);
    if (change->on == BERTH_ON_NODE)
        return 1;
    struct berth_str mine = change->on == BERTH_ON_KIND(NW_GROUPS)
                                ? nw_host->base->text(in->home, own)
                                : in->topology_name;
    return berth_str_equal(name, mine);
}
