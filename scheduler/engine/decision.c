/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine/decision.c - from a reference cycle to a decision: PostFilter, texts, lists
 *
 * Upstream: pkg/scheduler/schedule_one.go (schedulingCycle), framework/types.go (FitError).
 */
#include "scheduler/engine/state.h"

static const char *const *plugin_names(struct bh_engine *e, const struct bh_framework *fw,
                                       uint64_t set, const char *more, uint32_t *ret_n)
{
    const char **names = bh_arena_new_array(&e->arena, const char *, fw->n_plugins + 1);
    uint32_t n = 0;

    for (uint32_t i = 0; i < fw->n_plugins; i++)
        if (set >> i & 1)
            names[n++] = fw->plugins[i].plugin->name;
    if (more)
        names[n++] = more;
    *ret_n = n;
    return names;
}

/* ---- lists for explain ----------------------------------------------------------------------- */

static int by_name(const void *a, const void *b, void *arg)
{
    const struct bh_symtab *tab = arg;
    return strcmp(bh_sym_text(tab, *(const bh_sym *)a), bh_sym_text(tab, *(const bh_sym *)b));
}

/* Works for every list whose elements begin with the node's name. */
static void sort_by_name(struct bh_engine *e, void *v, uint32_t n, size_t size)
{
    _Static_assert(offsetof(struct bh_node_verdict, node) == 0, "sorted by its first member");
    _Static_assert(offsetof(struct bh_node_score, node) == 0, "sorted by its first member");
    if (n > 1)
        qsort_r(v, n, size, by_name, e->tab);
}

static const struct bh_plugin_score *
plugin_scores(struct bh_engine *e, const struct bh_reference *r, uint32_t at, uint32_t *ret_n)
{
    const struct bh_framework *fw = r->cy.fw;
    uint32_t n_score = fw->n_point[BH_POINT_SCORE], n = 0;
    struct bh_plugin_score *s =
        bh_arena_new_array(&e->arena, struct bh_plugin_score, n_score + r->n_ext_scores + 1);

    for (uint32_t k = 0; k < n_score; k++) {
        unsigned i = fw->point[BH_POINT_SCORE][k];
        size_t idx = (size_t)k * r->n_feasible + at;
        if (!(r->cy.skip_score >> i & 1))
            s[n++] =
                (struct bh_plugin_score){.plugin = fw->plugins[i].plugin->name,
                                         .raw = r->raw[idx],
                                         .normalized = r->weighted[idx] / fw->plugins[i].weight,
                                         .weighted = r->weighted[idx],
                                         .weight = fw->plugins[i].weight};
    }
    n += bh_extend_explain(r, at, s + n);
    *ret_n = n;
    return s;
}

static void list_scores(struct bh_engine *e, const struct bh_reference *r, bool sorted,
                        struct bh_decision *d)
{
    struct bh_node_score *v =
        bh_arena_new_array(&e->arena, struct bh_node_score, r->n_feasible + 1);

    for (uint32_t i = 0; i < r->n_feasible; i++) {
        v[i].node = e->cache.rows[r->feasible[i]]->name;
        v[i].total = r->scored ? r->total[i] : 0;
        if (r->scored && r->raw)
            v[i].plugins = plugin_scores(e, r, i, &d->n_score_plugins);
    }
    if (sorted)
        sort_by_name(e, v, r->n_feasible, sizeof *v);
    d->scores = v;
    d->n_scores = r->n_feasible;
    d->scored = r->scored;
}

static void explain(struct bh_engine *e, const struct bh_reference *r, bool sorted,
                    struct bh_decision *d)
{
    d->n_nodes = bh_candidates(e);
    d->absent = r->pf.nodes.all || r->pf.status ? NULL : r->absent;
    d->pre_filter = r->pf.status;
    if (d->absent) {
        bh_sym *v = bh_arena_memdup(&e->arena, r->pf.nodes.names, r->pf.nodes.n * sizeof *v);
        sort_by_name(e, v, r->pf.nodes.n, sizeof *v);
        d->pre_filter_nodes = v;
        d->n_pre_filter_nodes = r->pf.nodes.n;
        d->pre_filter_plugins =
            plugin_names(e, r->cy.fw, r->pf.narrowed_by, NULL, &d->n_pre_filter_plugins);
    }
    struct bh_node_verdict *v =
        bh_arena_new_array(&e->arena, struct bh_node_verdict, e->cache.n_nodes + 1);
    uint32_t n = 0;
    for (uint32_t row = 0; row < r->n_rows; row++)
        if (r->by_row[row])
            v[n++] = (struct bh_node_verdict){e->cache.rows[row]->name, r->by_row[row]};
    if (sorted)
        sort_by_name(e, v, n, sizeof *v);
    d->rejected = v;
    d->n_rejected = n;
    list_scores(e, r, sorted, d);
    bh_sym *best = bh_arena_new_array(&e->arena, bh_sym, r->n_best + 1);
    for (uint32_t i = 0; i < r->n_best; i++)
        best[i] = e->cache.rows[r->best[i]]->name;
    if (sorted)
        sort_by_name(e, best, r->n_best, sizeof *best);
    d->best = best;
    d->n_best = r->n_best;
    const struct bh_framework *fw = r->cy.fw;
    const struct bh_cycle_notes *notes = r->cy.notes;
    const char **filters = bh_arena_new_array(&e->arena, const char *, fw->n_plugins + 1);
    n = 0;
    bh_each_plugin(i, fw, BH_POINT_FILTER) {
        if (!(r->cy.skip_filter >> i & 1))
            filters[n++] = fw->plugins[i].plugin->name;
    }
    d->filter_plugins = filters;
    d->n_filter_plugins = n;
    d->pre_filters = notes->pre_filter;
    d->n_pre_filters = notes->n_pre_filter;
    d->pre_scores = notes->pre_score;
    d->n_pre_scores = notes->n_pre_score;
    d->post_filters = notes->post_filter;
    d->n_post_filters = notes->n_post_filter;
}

/* ---- no node --------------------------------------------------------------------------------- */

static void run_post_filter(struct bh_engine *e, struct bh_reference *r, struct bh_decision *d)
{
    struct bh_diagnosis diag = {.by_row = r->by_row,
                                .absent = r->absent,
                                .pre_filter = r->pf.status,
                                .n_rows = r->n_rows,
                                .kept = r->kept};
    struct bh_post_filter_result res;
    uint64_t t = bh_watch_now(e);
    const struct bh_status *s = bh_run_post_filter(&r->cy, &diag, &res);

    bh_watch_point(e, r->cy.fw, BH_SEEN_POST_FILTER, bh_status_code(s), &t);

    d->post_filter_message = bh_status_message(&e->arena, s);
    d->clear_nomination = res.override_nomination && res.node == BH_SYM_NONE;
    d->nominated_node = res.node;
    d->victims = res.victims;
    d->n_victims = res.n_victims;
    d->victims_violating = res.violating;
    d->preemptions = res.ties;
    d->n_preemptions = res.n_ties;
    d->writes = res.writes;
    d->n_writes = res.n_writes;
}

static const char *fit_message(struct bh_engine *e, const struct bh_reference *r)
{
    const char *pre = r->pf.status ? bh_status_message(&e->arena, r->pf.status) : NULL;
    uint32_t n;

    if (r->fit_message)
        return r->fit_message;
    const struct bh_status *const *statuses = bh_extend_statuses(e, r, &n);
    return bh_fit_error(&e->arena, bh_candidates(e), statuses, n, r->absent, pre);
}

const struct bh_decision *bh_decide(struct bh_engine *e, struct bh_reference *r, uint32_t chosen,
                                    unsigned flags)
{
    struct bh_decision *d = &e->decision;

    memset(d, 0, sizeof *d);
    d->feasible = r->n_feasible;
    d->evaluated = r->evaluated;
    if (r->error) {
        d->kind = BH_DECISION_ERROR;
        d->reason = "SchedulerError";
        d->message = bh_status_message(&e->arena, r->error);
        d->clear_nomination = true;
    } else if (chosen != BH_ROW_NONE) {
        d->kind = BH_DECIDED;
        d->node = e->cache.rows[chosen]->name;
    } else {
        d->kind = BH_NO_FIT;
        d->reason = "Unschedulable";
        d->unschedulable_plugins = plugin_names(e, r->cy.fw, r->rejectors, bh_extend_rejector(r),
                                                &d->n_unschedulable_plugins);
        d->pending_plugins = plugin_names(e, r->cy.fw, r->pending, NULL, &d->n_pending_plugins);
        d->fit_message = fit_message(e, r);
        d->post_filter_message = "";
        if (!r->cy.fw->n_point[BH_POINT_POST_FILTER])
            d->clear_nomination = true;
        else if (!(flags & BH_NO_PREEMPTION))
            run_post_filter(e, r, d);
        d->message = d->fit_message;
        if (*d->post_filter_message)
            d->message =
                bh_arena_printf(&e->arena, "%s %s", d->fit_message, d->post_filter_message);
    }
    if (flags & BH_EXPLAIN)
        explain(e, r, !(flags & BH_RECORD), d);
    return d;
}
