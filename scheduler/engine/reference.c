/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine/reference.c - one scheduling cycle, node by node
 *
 * Upstream:   pkg/scheduler/schedule_one.go (schedulePod, findNodesThatFitPod, prioritizeNodes);
 *             differences: every node is looked at unless a percentage is configured; sampling
 *             visits the nodes one after the other (parallelism 1); ties: see engine.h.
 */
#include "scheduler/engine/fast/fast.h"

struct search {
    struct bh_engine *e;
    struct bh_reference *r;
    const uint32_t *rows; /* candidates in order of visit */
    uint32_t n;
};

/* true: the node is feasible. Records the status otherwise. */
static bool visit(struct search *s, uint32_t row)
{
    struct bh_reference *r = s->r;
    int by = -1;
    const struct bh_status *st = bh_run_filter_nominated(&r->cy, s->e->cache.rows[row], &by);

    if (!st)
        return true;
    r->by_row[row] = st;
    if (!bh_status_rejected(st)) {
        if (!r->error)
            r->error = st;
    } else if (by >= 0) {
        r->rejectors |= (uint64_t)1 << by;
        if (st->code == BH_PENDING)
            r->pending |= (uint64_t)1 << by;
    }
    return false;
}

uint32_t bh_promised_row(const struct bh_engine *e, const struct bh_pod_info *pod)
{
    bh_sym name = BH_SYM_NONE;

    if (e->cache.nominations.len)
        name = bh_cache_nominated_node(&e->cache, bh_rec_text(pod->rec, pod->rec->uid));
    if (name == BH_SYM_NONE)
        name = pod->rec->nominated_node;
    const struct bh_node_info *ni = name ? bh_cache_node(&e->cache, name) : NULL;
    return ni && bh_is_within(e, ni->row) ? ni->row : BH_ROW_NONE;
}

/* The promised node first: if it fits it is taken as it is. An error there is not the cycle's. */
static bool try_nominated(struct search *s, const struct bh_pod_info *pod, unsigned flags)
{
    struct bh_reference *r = s->r;
    uint32_t row = bh_promised_row(s->e, pod);

    if (row == BH_ROW_NONE)
        return false;
    uint64_t t = bh_watch_now(s->e);
    bool fits = visit(s, row);
    bh_watch_point(s->e, r->cy.fw, BH_SEEN_FILTER, r->error ? BH_ERROR : BH_SUCCESS, &t);
    if (r->error) {
        r->by_row[row] = NULL;
        r->error = NULL;
    }
    if (!fits)
        return false;
    r->feasible[r->n_feasible++] = row;
    if (r->extended && !bh_extend_nominated(s->e, r))
        return false;
    r->evaluated = 1;
    /* The decision is made; an explanation tells of the other nodes as well. */
    for (uint32_t i = 0; flags & BH_EXPLAIN && i < s->n; i++)
        if (s->rows[i] != row)
            visit(s, s->rows[i]);
    r->error = NULL;
    return true;
}

static uint32_t *candidate_rows(struct bh_engine *e, const struct bh_reference *r, bool ordered,
                                uint32_t *ret_n)
{
    uint32_t *rows = bh_arena_new_array(&e->arena, uint32_t, e->cache.n_nodes + 1);
    uint32_t n = 0, n_order = 0;
    const uint32_t *order = ordered ? bh_cache_order(&e->cache, &n_order) : NULL;

    if (!r->pf.nodes.all) {
        n = bh_fast_narrowed(&e->cache, &r->pf.nodes, rows);
    } else if (ordered) {
        memcpy(rows, order, n_order * sizeof *rows);
        n = n_order;
    } else {
        n = bh_live_rows(&e->cache, rows);
    }
    *ret_n = bh_keep_within(e, rows, n);
    return rows;
}

/* Stops at the first feasible node beyond the wanted number; the next pod starts there. */
static void search_sampled(struct search *s)
{
    struct bh_engine *e = s->e;
    struct bh_reference *r = s->r;
    uint32_t want = bh_num_to_find(r->cy.fw, s->n), processed = 0;

    for (uint32_t i = 0; i < s->n && !r->error; i++) {
        uint32_t row = s->rows[(e->next_start + i) % s->n];
        if (!visit(s, row))
            continue;
        if (r->n_feasible == want)
            break;
        r->feasible[r->n_feasible++] = row;
    }
    /* The promised node's rejection counts as well, wherever it stands. */
    for (uint32_t row = 0; row < r->n_rows; row++)
        processed += r->by_row[row] && bh_status_rejected(r->by_row[row]);
    e->next_start = (e->next_start + r->n_feasible + processed) % bh_candidates(e);
}

/* Feasible nodes into r; false when PreFilter ended it. */
static bool find_feasible(struct bh_engine *e, const struct bh_pod_info *pod, unsigned flags,
                          struct bh_reference *r)
{
    static const struct bh_status unspecified = {.code = BH_UNSCHEDULABLE_AND_UNRESOLVABLE};
    struct search s = {.e = e, .r = r};
    uint64_t t = bh_watch_now(e);

    r->absent = &unspecified;
    bh_run_pre_filter(&r->cy, &r->pf);
    bh_watch_point(e, r->cy.fw, BH_SEEN_PRE_FILTER, bh_status_code(r->pf.status), &t);
    r->rejectors |= r->pf.narrowed_by;
    if (r->pf.status) {
        r->absent = r->pf.status;
        if (!bh_status_rejected(r->pf.status))
            r->error = r->pf.status;
        if (r->pf.rejected_by >= 0)
            r->rejectors |= (uint64_t)1 << r->pf.rejected_by;
        return false;
    }
    if (!r->pf.nodes.all)
        r->absent = bh_status_new(&e->arena, BH_UNSCHEDULABLE_AND_UNRESOLVABLE, NULL,
                                  "node(s) didn't satisfy plugin(s) [%s]",
                                  bh_plugin_names(r->cy.fw, &e->arena, r->pf.narrowed_by));
    s.rows = candidate_rows(e, r, r->cy.fw->sampling, &s.n);
    if (try_nominated(&s, pod, flags))
        return true;
    t = bh_watch_now(e);
    if (r->cy.fw->sampling && s.n)
        search_sampled(&s);
    else /* an error ends the cycle at once, except when every node is to be explained */
        for (uint32_t i = 0; i < s.n && (!r->error || flags & BH_EXPLAIN); i++)
            if (visit(&s, s.rows[i]))
                r->feasible[r->n_feasible++] = s.rows[i];
    bh_watch_point(e, r->cy.fw, BH_SEEN_FILTER, r->error ? BH_ERROR : BH_SUCCESS, &t);
    if (r->extended && !r->error) {
        uint32_t before = r->n_feasible;
        bh_extend_filter(e, r);
        r->ext_removed = r->n_feasible != before;
        r->evaluated += (uint32_t)e->ext_strangers.len;
    }
    for (uint32_t row = 0; row < r->n_rows; row++)
        r->evaluated += r->by_row[row] != NULL;
    r->evaluated += r->n_feasible;
    return true;
}

static void prioritize(struct bh_engine *e, struct bh_reference *r, unsigned flags)
{
    uint32_t n = r->n_feasible, n_score = r->cy.fw->n_point[BH_POINT_SCORE];
    int64_t max = INT64_MIN;
    uint64_t t = bh_watch_now(e);

    if (n_score) {
        r->error = bh_run_pre_score(&r->cy, r->feasible, n);
        bh_watch_point(e, r->cy.fw, BH_SEEN_PRE_SCORE, bh_status_code(r->error), &t);
    }
    if (r->error)
        return;
    r->total = bh_arena_new_array(&e->arena, int64_t, n);
    if (flags & BH_EXPLAIN) {
        r->raw = bh_arena_new_array(&e->arena, int64_t, (size_t)n * n_score + 1);
        r->weighted = bh_arena_new_array(&e->arena, int64_t, (size_t)n * n_score + 1);
    }
    r->error = bh_run_score(&r->cy, r->feasible, n, r->total, r->raw, r->weighted);
    bh_watch_point(e, r->cy.fw, BH_SEEN_SCORE, bh_status_code(r->error), &t);
    if (r->error)
        return;
    if (r->extended)
        bh_extend_scores(e, r, flags);
    r->scored = true;
    for (uint32_t i = 0; i < n; i++)
        max = BH_MAX(max, r->total[i]);
    for (uint32_t i = 0; i < n; i++)
        if (r->total[i] == max)
            r->best[r->n_best++] = r->feasible[i];
    if (r->extended)
        bh_extend_best(r);
}

bool bh_reference_fits(struct bh_engine *e, const struct bh_pending *p, uint32_t row,
                       int64_t now_ns)
{
    const struct bh_arena_mark mark = bh_arena_mark(&e->arena);
    const bh_sym name = e->cache.rows[row]->name;
    struct bh_pre_filter_result pf;
    struct bh_pod_info pod;
    struct bh_cycle cy;
    int by;

    if (!bh_aside_cycle(e, p, &pod, &cy))
        return false;
    bh_cycle_init(&cy, cy.fw, &e->cache, &e->objects, &pod, &e->arena, now_ns);
    cy.scratch = &e->scratch;
    bh_cache_sync(&e->cache);
    bh_run_pre_filter(&cy, &pf);
    bool in = pf.nodes.all;
    for (uint32_t i = 0; !in && i < pf.nodes.n; i++)
        in = pf.nodes.names[i] == name;
    in = in && !pf.status && !bh_run_filter_nominated(&cy, e->cache.rows[row], &by);
    bh_arena_rewind(&e->arena, mark);
    return in;
}

void bh_reference_run(struct bh_engine *e, struct bh_profile *p, const struct bh_pod_info *pod,
                      unsigned flags, int64_t now_ns, struct bh_reference *r)
{
    uint32_t n = e->cache.cols.n_rows;

    memset(r, 0, sizeof *r);
    bh_cycle_init(&r->cy, p->fw, &e->cache, &e->objects, pod, &e->arena, now_ns);
    r->cy.scratch = &e->scratch;
    r->cy.samples = e->watch.samples;
    r->cy.sketch = !e->opt.reference && !e->opt.verify; /* what is compared with goes all the way */
    r->cy.rand = e->opt.tie_break == BH_TIE_RANDOM ? &e->rand : NULL;
    r->n_rows = n;
    r->by_row = bh_arena_new_array(&e->arena, const struct bh_status *, n + 1);
    r->feasible = bh_arena_new_array(&e->arena, uint32_t, e->cache.n_nodes + 1);
    r->best = bh_arena_new_array(&e->arena, uint32_t, e->cache.n_nodes + 1);
    e->stats.reference_cycles++;
    if (flags & BH_EXPLAIN) {
        uint32_t most = p->fw->n_plugins + 1;
        struct bh_cycle_notes *notes = bh_arena_new(&e->arena, struct bh_cycle_notes);
        notes->pre_filter = bh_arena_new_array(&e->arena, struct bh_plugin_note, most);
        notes->pre_score = bh_arena_new_array(&e->arena, struct bh_plugin_note, most);
        notes->post_filter = bh_arena_new_array(&e->arena, struct bh_plugin_note, most);
        r->cy.notes = notes;
    }
    if (e->ext && !(flags & BH_WITHOUT_EXTENDERS))
        bh_extend_begin(e, pod, r);
    if (!find_feasible(e, pod, flags, r) || r->error || !r->n_feasible)
        return;
    if (r->n_feasible == 1) {
        r->best[r->n_best++] = r->feasible[0];
        return;
    }
    prioritize(e, r, flags);
}
