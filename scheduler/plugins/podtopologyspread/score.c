/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/podtopologyspread/score.c - nodes where few of the pod's kind run already
 *
 * The sum of one node is made of the constraints in their order: floating point sums depend on it.
 * So PreScore works constraint by constraint and keeps one sum a node; Score only rounds.
 *
 * Upstream: pkg/scheduler/framework/plugins/podtopologyspread/scoring.go.
 */
#include <math.h>

#include "scheduler/plugins/podtopologyspread/spread.h"
#include "scheduler/plugins/pair_counts.h"

/* Score is configured without PreScore. */
BH_STATUS_CONST(no_state, BH_ERROR, "PodTopologySpread",
                "error reading \"PreScorePodTopologySpread\" from cycleState: not found");

struct score_state {
    const bool *ignored; /* by index into the scored rows: lacks a key that is required */
    const double *sum;   /* by row */
};
struct pre_score {
    struct bh_call *c;
    const struct bh_constraints *k;
    bool require_all;
    const uint32_t *rows; /* to be scored */
    uint32_t n;
    bool *ignored;
    uint32_t n_ignored;
    uint8_t *inclusion; /* by row: bits of bh_node_inclusion; NOT_ELIGIBLE = not counted at all */
    struct bh_pod_counter counter;
    double *sum;
};
#define NOT_ELIGIBLE 0xffu

/* NULL: the row is empty. */
static const struct bh_node_rec *node_at(const struct pre_score *p, uint32_t row)
{
    const struct bh_cache *c = p->c->cache;
    return bh_row_bit(&c->cols, BH_ROW_LIVE, row) ? c->rows[row]->rec : NULL;
}

static void look_at_nodes(struct pre_score *p)
{
    uint32_t n_rows = p->c->cache->cols.n_rows;

    p->ignored = bh_arena_new_array(p->c->arena, bool, p->n ? p->n : 1);
    for (uint32_t i = 0; i < p->n; i++) {
        p->ignored[i] = p->require_all && !bh_has_all_keys(node_at(p, p->rows[i]), p->k);
        p->n_ignored += p->ignored[i];
    }
    p->inclusion = bh_arena_new_array(p->c->arena, uint8_t, n_rows + 1);
    for (uint32_t row = 0; row < n_rows; row++) {
        const struct bh_node_rec *n = node_at(p, row);
        p->inclusion[row] = !n || (p->require_all && !bh_has_all_keys(n, p->k))
                                ? NOT_ELIGIBLE
                                : (uint8_t)bh_node_inclusion(p->c, n);
    }
    p->sum = bh_arena_new_array(p->c->arena, double, n_rows + 1);
    bh_pod_counter_init(&p->counter, p->c);
}

/* Pods by value of the key, for the values that some node to be scored has. Counted are all
 * nodes. */
static void count_domains(struct pre_score *p, const struct bh_constraint *k,
                          struct bh_pair_counts *domains)
{
    bh_sym value;

    for (uint32_t i = 0; i < p->n; i++) {
        if (p->ignored[i])
            continue;
        bh_topology_value(node_at(p, p->rows[i]), k->key, &value);
        bh_pair_counts_add(domains, BH_SYM_NONE, value, 0);
    }
    for (uint32_t row = 0; row < p->c->cache->cols.n_rows; row++) {
        if (p->inclusion[row] == NOT_ELIGIBLE || !bh_counts_node(k, p->inclusion[row]))
            continue;
        bh_topology_value(node_at(p, row), k->key, &value);
        int64_t *n = bh_pair_counts_find(domains, BH_SYM_NONE, value);
        if (n)
            *n += bh_count_pods(&p->counter, p->c->cache->rows[row]);
    }
}

static void add_constraint(struct pre_score *p, const struct bh_constraint *k)
{
    const struct bh_spread_args *args = p->c->args;
    bool by_node = k->key == args->hostname;
    struct bh_pair_counts domains = bh_pair_counts(p->c->arena);
    uint32_t size = p->n - p->n_ignored;
    bh_sym value;

    bh_pod_counter_begin(&p->counter, k);
    if (!by_node) {
        count_domains(p, k, &domains);
        size = domains.used;
    }
    double weight = bh_go_log((double)size + 2);
    for (uint32_t i = 0; i < p->n; i++) {
        const struct bh_node_info *ni = p->c->cache->rows[p->rows[i]];
        if (p->ignored[i] || !bh_topology_value(ni->rec, k->key, &value))
            continue;
        int64_t n = by_node ? bh_count_pods(&p->counter, ni)
                            : *bh_pair_counts_find(&domains, BH_SYM_NONE, value);
        p->sum[p->rows[i]] += (double)n * weight + (double)(k->max_skew - 1);
    }
}

const struct bh_status *bh_spread_pre_score(struct bh_call *c, const uint32_t *rows, uint32_t n)
{
    const struct bh_spread_args *args = c->args;

    if (!c->cache->n_nodes)
        return &bh_status_skip;
    struct bh_constraints k = bh_spread_constraints(c, BH_SPREAD_SOFT);
    if (k.error)
        return bh_status_new(c->arena, BH_ERROR, "PodTopologySpread",
                             "calculating preScoreState: %s", k.error);
    if (!k.n)
        return &bh_status_skip;
    struct pre_score p = {.c = c,
                          .k = &k,
                          .require_all = c->pod->shape->spread.n || !args->system,
                          .rows = rows,
                          .n = n};
    look_at_nodes(&p);
    for (uint32_t i = 0; i < k.n; i++)
        add_constraint(&p, &k.v[i]);
    struct score_state *st = bh_arena_new(c->arena, struct score_state);
    *st = (struct score_state){.ignored = p.ignored, .sum = p.sum};
    c->pre_score_state = st;
    return NULL;
}

const struct bh_status *bh_spread_score(struct bh_call *c, const struct bh_node_info *node,
                                        int64_t *ret)
{
    const struct score_state *st = c->pre_score_state;

    if (!st)
        return &no_state;
    *ret = (int64_t)round(st->sum[node->row]); /* ignored nodes: 0 */
    return NULL;
}

void bh_spread_normalize(struct bh_call *c, int64_t *scores, uint32_t n)
{
    const struct score_state *st = c->pre_score_state;
    int64_t min = INT64_MAX, max = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (st->ignored[i])
            continue;
        min = BH_MIN(min, scores[i]);
        max = BH_MAX(max, scores[i]);
    }
    for (uint32_t i = 0; i < n; i++)
        scores[i] = st->ignored[i] ? 0 : max == 0 ? 100 : 100 * (max + min - scores[i]) / max;
}
