/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine_track.c - topology spread and inter-pod affinity on the fast path
 *
 * The kept results of a shape say which nodes pass the node-local plugins and what these think of
 * them. Plugins that look at other nodes' pods keep counts (struct bh_track_ops), which follow the
 * same changes, and answer for all nodes at once. Both are put together for each pod: the extremes
 * that scores are normalised by are those of the nodes that pass everything.
 *
 * Invariants: a tracker has seen every change before its shape cache's log_pos.
 * Runs in:    the engine's thread.
 */
#include "scheduler/engine_int.h"

static const struct bh_track_ops *ops_of(const struct bh_shape_cache *sc,
                                         const struct bh_tracker *t)
{
    return sc->cy.fw->plugins[t->plugin].plugin->track;
}

static struct bh_tracker *tracker_of(struct bh_shape_cache *sc, unsigned plugin)
{
    for (uint32_t i = 0; i < sc->n_trackers; i++)
        if (sc->tracker[i].plugin == plugin)
            return &sc->tracker[i];
    return NULL;
}

void bh_track_update(struct bh_shape_cache *sc, const uint32_t *rows, uint32_t n)
{
    for (uint32_t i = 0; i < sc->n_trackers && n; i++)
        ops_of(sc, &sc->tracker[i])
            ->update(&sc->cy.calls[sc->tracker[i].plugin], sc->tracker[i].t, rows, n);
}

void bh_track_drop_all(struct bh_shape_cache *sc)
{
    while (sc->n_trackers) {
        struct bh_tracker *t = &sc->tracker[--sc->n_trackers];
        ops_of(sc, t)->drop(t->t);
    }
}

static size_t bytes_of(const struct bh_shape_cache *sc)
{
    size_t n = 0;

    for (uint32_t i = 0; i < sc->n_trackers; i++)
        n += ops_of(sc, &sc->tracker[i])->bytes(sc->tracker[i].t);
    return n;
}

static bool make(struct bh_engine *e, struct bh_shape_cache *sc, unsigned plugin)
{
    const struct bh_track_ops *ops = sc->cy.fw->plugins[plugin].plugin->track;
    struct bh_call *call = &sc->cy.calls[plugin];
    uint32_t n = 0;
    void *t = ops->make(call);

    if (!t)
        return false;
    for (uint32_t row = 0; row < e->cache.cols.n_rows; row++)
        if (bh_row_bit(&e->cache.cols, BH_ROW_LIVE, row))
            e->rows[n++] = row;
    ops->update(call, t, e->rows, n);
    sc->tracker[sc->n_trackers++] = (struct bh_tracker){(uint8_t)plugin, t};
    return true;
}

bool bh_track_ensure(struct bh_engine *e, struct bh_shape_cache *sc, uint64_t plugins)
{
    size_t before = bytes_of(sc);
    bool all = true;

    for (uint64_t bits = plugins; bits && all; bits &= bits - 1) {
        unsigned plugin = (unsigned)__builtin_ctzll(bits);
        struct bh_tracker *t = tracker_of(sc, plugin);
        if (t && ops_of(sc, t)->current(&sc->cy.calls[plugin], t->t))
            continue;
        if (t) {
            ops_of(sc, t)->drop(t->t);
            *t = sc->tracker[--sc->n_trackers];
        }
        all = make(e, sc, plugin);
    }
    sc->bytes += bytes_of(sc) - before;
    e->cache_bytes += bytes_of(sc) - before;
    return all;
}

/* ---- the answer -------------------------------------------------------------------------------
 */

static uint32_t kept_rows(const struct bh_shape_cache *sc, uint32_t n_rows, uint32_t *rows)
{
    uint32_t n = 0;

    for (uint32_t row = 0; row < n_rows; row++) {
        rows[n] = row;
        n += bh_index_total(&sc->index, row) >= 0;
    }
    return n;
}

static uint32_t run_filters(struct bh_shape_cache *sc, uint64_t plugins, uint32_t *rows, uint32_t n)
{
    const struct bh_framework *fw = sc->cy.fw;

    for (uint32_t k = 0; k < fw->n_point[BH_POINT_FILTER] && n; k++) {
        unsigned i = fw->point[BH_POINT_FILTER][k];
        if (!(plugins >> i & 1))
            continue;
        const struct bh_tracker *t = tracker_of(sc, i);
        uint64_t began = bh_sample_begin(&sc->cy);
        fw->evaluations[i].filter += n;
        n = ops_of(sc, t)->filter(&sc->cy.calls[i], t->t, rows, n);
        bh_sample_end(&sc->cy, i, BH_SEEN_FILTER, BH_SUCCESS, began);
    }
    return n;
}

static void add_normalized(const struct bh_normalized_score *nm, const uint32_t *rows, uint32_t n,
                           int64_t *total)
{
    int64_t max = 0;

    for (uint32_t r = 0; r < n; r++)
        max = BH_MAX(max, nm->raw[rows[r]]);
    if (max == 0 && nm->how == BH_NORMAL_MAX_REVERSE) {
        for (uint32_t r = 0; r < n; r++)
            total[r] += 100 * nm->weight;
        return;
    }
    for (uint32_t r = 0; r < n; r++)
        total[r] += nm->weight * bh_normalized(nm->how, nm->raw[rows[r]], max);
}

static void run_scores(struct bh_engine *e, struct bh_shape_cache *sc, uint64_t plugins,
                       const uint32_t *rows, uint32_t n, int64_t *total)
{
    const struct bh_framework *fw = sc->cy.fw;

    for (uint32_t r = 0; r < n; r++)
        total[r] = sc->base[rows[r]];
    for (uint32_t k = 0; k < sc->n_norm; k++)
        add_normalized(&sc->norm[k], rows, n, total);
    for (uint32_t k = 0; k < fw->n_point[BH_POINT_SCORE]; k++) {
        unsigned i = fw->point[BH_POINT_SCORE][k];
        if (!(plugins >> i & 1))
            continue;
        const struct bh_tracker *t = tracker_of(sc, i);
        uint64_t began = bh_sample_begin(&sc->cy);
        bool scored = ops_of(sc, t)->score(&sc->cy.calls[i], t->t, rows, n, e->values2);
        bh_sample_end(&sc->cy, i, BH_SEEN_SCORE, BH_SUCCESS, began);
        fw->evaluations[i].score += scored ? n : 0;
        for (uint32_t r = 0; scored && r < n; r++)
            total[r] += fw->plugins[i].weight * e->values2[r];
    }
}

bool bh_track_run(struct bh_engine *e, struct bh_shape_cache *sc, uint64_t plugins,
                  struct bh_fast *ret)
{
    uint32_t n = kept_rows(sc, e->cache.cols.n_rows, e->rows);

    n = run_filters(sc, plugins, e->rows, n);
    bh_watch_phase(e, BH_WATCH_SCORE);
    *ret = (struct bh_fast){
        .n_feasible = n, .evaluated = e->cache.n_nodes, .n_best = 1, .rows = e->rows};
    if (n > 1) {
        run_scores(e, sc, plugins, e->rows, n, e->values);
        ret->totals = e->values;
        ret->n_best = bh_fast_best(e->values, n);
    }
    return n > 0;
}
