/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/podtopologyspread/pod_topology_spread.c - pods of one kind spread over zones
 * and nodes
 *
 * Upstream:   pkg/scheduler/framework/plugins/podtopologyspread/filtering.go; differences: the
 *             exact minimum instead of two "critical paths" (equal, because a dry run changes one
 *             node only); hints wake more (hints.c).
 */
#include "scheduler/plugins/podtopologyspread/spread.h"
#include "scheduler/plugins/registry.h"
#include "scheduler/plugins/pair_counts.h"

BH_STATUS_SHARED(bh_spread_no_label, BH_UNSCHEDULABLE_AND_UNRESOLVABLE, "PodTopologySpread",
                 "node(s) didn't match pod topology spread constraints (missing required label)");
BH_STATUS_SHARED(bh_spread_too_skewed, BH_UNSCHEDULABLE, "PodTopologySpread",
                 "node(s) didn't match pod topology spread constraints");

/* Filter is configured without PreFilter. */
BH_STATUS_CONST(no_state, BH_ERROR, "PodTopologySpread",
                "reading \"PreFilterPodTopologySpread\" from cycleState: not found");

/* Minimum of no domain at all; min_domains >= 1 makes it 0. */
#define NO_DOMAIN INT32_MAX

struct hard {                      /* one constraint with its domains */
    struct bh_pair_counts domains; /* (-, topology value) -> pods */
    bh_sym lowest;                 /* a value with the fewest pods */
    int64_t min, min_others;       /* its pods, and the fewest in all other domains */
    bool self;                     /* the selector means the incoming pod, too */
};
struct state {
    struct bh_constraints k;
    const struct hard *hard;    /* shared by all clones, as are the constraints */
    struct bh_pair_view *count; /* by constraint */
};

/* ---- PreFilter ---- */

static void find_minima(struct hard *h)
{
    h->min = h->min_others = NO_DOMAIN;
    for (uint32_t i = 0; i < h->domains.cap; i++) {
        const struct bh_pair_count *p = &h->domains.slot[i];
        if (!p->taken)
            continue;
        if (p->n < h->min) {
            h->min_others = h->min;
            h->min = p->n;
            h->lowest = p->value;
        } else if (p->n < h->min_others) {
            h->min_others = p->n;
        }
    }
}

static const struct bh_status *pre_filter(struct bh_call *c, struct bh_node_set *ret BH_UNUSED)
{
    struct bh_constraints k = bh_spread_constraints(c, BH_SPREAD_HARD);

    if (k.error)
        return bh_status_new(c->arena, BH_ERROR, "PodTopologySpread",
                             "get constraints from pod: %s", k.error);
    if (!k.n)
        return &bh_status_skip;
    struct state *st = bh_arena_new(c->arena, struct state);
    st->k = k;
    struct hard *hard = bh_arena_new_array(c->arena, struct hard, k.n);
    uint32_t *rows = bh_arena_new_array(c->arena, uint32_t, c->cache->cols.n_rows + 1);
    uint8_t *inclusion = bh_arena_new_array(c->arena, uint8_t, c->cache->cols.n_rows + 1);
    /* Nodes that have every key, with what they satisfy of the inclusion policies. */
    uint32_t n = 0;
    for (uint32_t row = 0; row < c->cache->cols.n_rows; row++) {
        if (!bh_row_bit(&c->cache->cols, BH_ROW_LIVE, row) ||
            !bh_has_all_keys(c->cache->rows[row]->rec, &k))
            continue;
        inclusion[n] = (uint8_t)bh_node_inclusion(c, c->cache->rows[row]->rec);
        rows[n++] = row;
    }
    struct bh_pod_counter counter;
    bh_sym value;
    bh_pod_counter_init(&counter, c);
    for (uint32_t i = 0; i < k.n; i++) {
        hard[i].domains = bh_pair_counts(c->arena);
        hard[i].self = bh_constraint_matches(&k.v[i], c->pod->shape, c->tab);
        bh_pod_counter_begin(&counter, &k.v[i]);
        for (uint32_t r = 0; r < n; r++) {
            const struct bh_node_info *ni = c->cache->rows[rows[r]];
            if (!bh_counts_node(&k.v[i], inclusion[r]))
                continue;
            bh_topology_value(ni->rec, k.v[i].key, &value);
            bh_pair_counts_add(&hard[i].domains, BH_SYM_NONE, value, bh_count_pods(&counter, ni));
        }
        find_minima(&hard[i]);
    }
    st->hard = hard;
    st->count = bh_arena_new_array(c->arena, struct bh_pair_view, k.n);
    for (uint32_t i = 0; i < k.n; i++)
        st->count[i] = bh_pair_view(&st->hard[i].domains);
    c->pre_filter_state = st;
    return NULL;
}

static void *clone_state(struct bh_call *c)
{
    const struct state *st = c->pre_filter_state;
    struct state *copy = bh_arena_memdup(c->arena, st, sizeof *st);

    copy->count = bh_arena_new_array(c->arena, struct bh_pair_view, st->k.n);
    for (uint32_t i = 0; i < st->k.n; i++)
        copy->count[i] = bh_pair_view_clone(&st->count[i], c->arena);
    return copy;
}

/* Terminating pods and selectors that mean every pod are not left out here, as upstream. */
static const struct bh_status *change_pod(struct bh_call *c, const struct bh_pod_info *pod,
                                          const struct bh_node_info *node, int by)
{
    struct state *st = c->pre_filter_state;
    bh_sym value;

    if (pod->shape->namespace_ != c->pod->shape->namespace_ || !node->rec ||
        !bh_has_all_keys(node->rec, &st->k))
        return NULL;
    uint32_t inclusion = bh_node_inclusion(c, node->rec);
    for (uint32_t i = 0; i < st->k.n; i++) {
        const struct bh_constraint *k = &st->k.v[i];
        if (!bh_constraint_matches(k, pod->shape, c->tab) || !bh_counts_node(k, inclusion))
            continue;
        bh_topology_value(node->rec, k->key, &value);
        bh_pair_view_add(&st->count[i], c->arena, BH_SYM_NONE, value, by);
    }
    return NULL;
}

/* ---- Filter ---- */

/* Several domains changed, or one that was not counted before. */
static int64_t scan_for_min(const struct hard *h, const struct bh_pair_view *v,
                            uint32_t *ret_domains)
{
    int64_t min = NO_DOMAIN;

    for (uint32_t i = 0; i < h->domains.cap; i++)
        if (h->domains.slot[i].taken)
            min = BH_MIN(min, bh_pair_view_get(v, BH_SYM_NONE, h->domains.slot[i].value));
    for (uint32_t i = 0; i < v->n; i++) {
        if (bh_pair_counts_find(&h->domains, BH_SYM_NONE, v->change[i].value))
            continue;
        min = BH_MIN(min, v->change[i].n);
        ++*ret_domains;
    }
    return min;
}

static int64_t global_min(const struct hard *h, const struct bh_pair_view *v, int32_t min_domains)
{
    uint32_t domains = h->domains.used;
    int64_t min = h->min;

    if (v->n == 1 && bh_pair_counts_find(&h->domains, BH_SYM_NONE, v->change[0].value)) {
        bh_sym value = v->change[0].value;
        min = BH_MIN(value == h->lowest ? h->min_others : h->min,
                     bh_pair_view_get(v, BH_SYM_NONE, value));
    } else if (v->n) {
        min = scan_for_min(h, v, &domains);
    }
    return domains < (int64_t)min_domains ? 0 : min;
}

static const struct bh_status *filter(struct bh_call *c, const struct bh_node_info *node)
{
    const struct state *st = c->pre_filter_state;

    if (!st)
        return &no_state;
    for (uint32_t i = 0; i < st->k.n; i++) {
        const struct bh_constraint *k = &st->k.v[i];
        const struct hard *h = &st->hard[i];
        bh_sym value;
        if (!bh_topology_value(node->rec, k->key, &value))
            return &bh_spread_no_label;
        int64_t skew = bh_pair_view_get(&st->count[i], BH_SYM_NONE, value) + h->self -
                       global_min(h, &st->count[i], k->min_domains);
        if (skew > k->max_skew)
            return &bh_spread_too_skewed;
    }
    return NULL;
}

/* ---- fast path ---- */

static bool idle(struct bh_call *c)
{
    const struct bh_spread_args *args = c->args;
    size_t size;

    return !c->pod->shape->spread.n &&
           (!args->n || bh_selector_is_everything(bh_selector_memo_get(args->memo, c, &size)));
}

const struct bh_plugin bh_plugin_pod_topology_spread = {
    BH_PLUGIN_HEAD("PodTopologySpread"),
    .args_schema = bh_spread_schema,
    .args_check = bh_spread_args_check,
    .args_new = bh_spread_args_new,
    .args_free = bh_spread_args_free,
    .events = bh_spread_events,
    .pre_filter = pre_filter,
    .change_pod = change_pod,
    .clone_state = clone_state,
    .filter = filter,
    .pre_score = bh_spread_pre_score,
    .score = bh_spread_score,
    .normalize = bh_spread_normalize,
    .idle = idle,
    .track = &bh_spread_track,
};
