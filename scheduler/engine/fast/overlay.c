/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine/fast/overlay.c - pods with volumes and claims on the fast path
 *
 * Claims make most pods unlike all others, but only a few plugins look at them. Everything else is
 * kept under the shape without volumes and claims (bh_shapes_kept), and these plugins' verdict is
 * laid over it for each pod (struct bh_overlay_ops). Mostly they say at once that every node
 * passes: then the kept index holds the answer. Otherwise the kept feasible rows are filtered, and
 * totals are made for those that are left: the extremes that scores are normalised by are theirs.
 *
 * Invariants: no result of an overlay plugin outlives the cycle here.
 * Gives up    (false, the caller takes the reference path): an overlay's PreFilter rejects, one
 *             says that it may fail, nothing fits, a Filter or a Score fails.
 * Runs in:    the engine's thread. Steady state: no malloc.
 */
#include "scheduler/engine/fast/fast.h"

struct overlay {
    struct bh_cycle cy; /* of the pod as it is; all plugins but the overlays are skipped */
    struct bh_pre_filter_result pf;
    uint64_t certain;      /* their filter passes every node */
    uint64_t always;       /* ... whatever is on it */
    uint64_t scorers;      /* they may score */
    bool asks, restricted; /* some filter has to be asked; and only about rows3[0..n_restricted) */
    bool nominated;        /* rows with nominated pods have to be asked */
    uint32_t n_restricted;
};

/* What can be said without asking every row. false: some filter may fail. */
static bool ask(struct overlay *o, struct bh_engine *e)
{
    const struct bh_framework *fw = o->cy.fw;

    bh_each_plugin(i, fw, BH_POINT_FILTER) {
        const struct bh_overlay_ops *ops = fw->plugins[i].plugin->overlay;
        if (o->cy.skip_filter >> i & 1)
            continue;
        uint32_t n = 0;
        switch (ops && ops->ask ? ops->ask(&o->cy.calls[i], o->restricted ? e->rows2 : e->rows3, &n)
                                : BH_OVERLAY_SOME) {
        case BH_OVERLAY_ALWAYS:
            o->always |= (uint64_t)1 << i;
            o->certain |= (uint64_t)1 << i;
            continue;
        case BH_OVERLAY_ALL:
            o->certain |= (uint64_t)1 << i;
            o->nominated |= e->cache.nominations.len > 0;
            continue;
        case BH_OVERLAY_SOME:
            break;
        case BH_OVERLAY_ONLY: /* of a second one nothing but the filter is used */
            if (!o->restricted)
                o->n_restricted = n;
            o->restricted = true;
            break;
        case BH_OVERLAY_FAILS:
            return false;
        }
        o->asks = true;
        o->nominated |= e->cache.nominations.len > 0;
    }
    return true;
}

/* Which of them may have something to say about scores. */
static bool ask_scores(struct overlay *o)
{
    const struct bh_framework *fw = o->cy.fw;
    uint64_t pre_scored = 0;

    for (uint32_t k = 0; k < fw->n_point[BH_POINT_PRE_SCORE]; k++)
        pre_scored |= (uint64_t)1 << fw->point[BH_POINT_PRE_SCORE][k];
    bh_each_plugin(i, fw, BH_POINT_SCORE) {
        const struct bh_plugin *p = fw->plugins[i].plugin;
        bool scores = true;
        if (o->cy.skip_score >> i & 1)
            continue;
        if (p->overlay && p->overlay->scores) {
            scores = p->overlay->scores(&o->cy.calls[i]);
        } else if (pre_scored >> i & 1) {
            enum bh_code code = bh_status_code(p->pre_score(&o->cy.calls[i], NULL, 0));
            if (code != BH_SUCCESS && code != BH_SKIP)
                return false;
            scores = code == BH_SUCCESS;
        }
        if (scores)
            o->scorers |= (uint64_t)1 << i;
    }
    return true;
}

/* Rows that everything but the overlays finds feasible, in order of visit. */
static uint32_t candidates(const struct overlay *o, const struct bh_engine *e,
                           const struct bh_shape_cache *sc, uint32_t *ret_evaluated)
{
    const uint32_t *from = e->rows3;
    uint32_t n = o->n_restricted, m = 0;

    *ret_evaluated = e->cache.n_nodes;
    if (!o->pf.nodes.all) {
        n = *ret_evaluated = bh_fast_narrowed(&e->cache, &o->pf.nodes, e->rows);
        from = e->rows;
    } else if (!o->restricted) {
        return bh_kept_rows(sc, e->cache.cols.n_rows, e->rows);
    }
    for (uint32_t i = 0; i < n; i++)
        if (bh_index_total(&sc->index, from[i]) >= 0)
            e->rows[m++] = from[i];
    return m;
}

static bool add_scores(struct overlay *o, struct bh_engine *e, const uint32_t *rows, uint32_t n)
{
    const struct bh_framework *fw = o->cy.fw;

    o->cy.skip_score |= ~o->scorers;
    o->cy.left_out |= ~o->scorers;
    if (!o->scorers)
        return true;
    if (bh_run_pre_score(&o->cy, rows, n))
        return false;
    bh_each_plugin(i, fw, BH_POINT_SCORE) {
        if (o->cy.skip_score >> i & 1)
            continue;
        if (!bh_fast_scores(&o->cy, i, rows, n, e->values2))
            return false;
        bh_assert(fw->plugins[i].plugin->normal == BH_NORMAL_NONE);
        for (uint32_t r = 0; r < n; r++)
            e->values[r] += fw->plugins[i].weight * e->values2[r];
    }
    return true;
}

bool bh_overlay_run(struct bh_engine *e, struct bh_shape_cache *sc, const struct bh_pod_info *pod,
                    uint64_t plugins, uint64_t tracked, int64_t now_ns, struct bh_fast *ret)
{
    struct overlay o = {0};
    uint32_t evaluated;

    bh_cycle_init(&o.cy, sc->cy.fw, &e->cache, &e->objects, pod, &e->arena, now_ns);
    o.cy.left_out = o.cy.skip_filter = o.cy.skip_score = ~plugins;
    o.cy.samples = e->watch.samples;
    bh_run_pre_filter(&o.cy, &o.pf);
    if (o.pf.status || !ask(&o, e) || !ask_scores(&o))
        return false;
    if (!o.asks && !o.scorers && o.pf.nodes.all && !o.nominated) {
        sc->always = o.always;
        return tracked ? bh_track_run(e, sc, tracked, ret) : bh_fast_indexed(e, sc, ret);
    }
    uint32_t n = candidates(&o, e, sc, &evaluated);
    if (o.asks || o.nominated) {
        /* Rows with nominated pods are asked by all, the others by those that are not certain. */
        o.cy.skip_filter |= o.nominated ? o.always : o.certain;
        n = bh_fast_filter(&o.cy, e->rows, n, e->rows2);
        n = o.cy.filter_failed ? 0 : n;
    }
    n = bh_track_filter(sc, tracked, e->rows, n);
    bh_watch_phase(e, BH_WATCH_SCORE);
    *ret = (struct bh_fast){.n_feasible = n, .evaluated = evaluated, .n_best = 1, .rows = e->rows};
    if (n > 1) {
        bh_track_totals(e, sc, tracked, e->rows, n, e->values);
        if (!add_scores(&o, e, e->rows, n))
            return false;
        ret->totals = e->values;
        ret->n_best = bh_fast_best(e->values, n);
    }
    ret->refused = n == 0 && !o.cy.filter_failed;
    return n > 0;
}
