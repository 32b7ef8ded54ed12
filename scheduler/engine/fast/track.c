/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine/fast/track.c - topology spread and inter-pod affinity on the fast path
 *
 * The kept results of a shape say which nodes pass the node-local plugins and what these think of
 * them. Plugins that look at other nodes' pods keep counts (struct bh_track_ops), which follow the
 * same changes, and answer for all nodes at once, or for one of each kind (cells.c). Both
 * are put together for each pod: the extremes that scores are normalised by are those of the nodes
 * that pass everything.
 *
 * Invariants: a tracker has seen every change before its shape cache's log_pos.
 */
#include "scheduler/engine/fast/fast.h"

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

void bh_track_update(struct bh_shape_cache *sc, const uint32_t *rows, uint32_t n_nodes, uint32_t n)
{
    for (uint32_t i = 0; i < sc->n_trackers && n; i++)
        ops_of(sc, &sc->tracker[i])
            ->update(&sc->cy.calls[sc->tracker[i].plugin], sc->tracker[i].t, rows, n_nodes, n);
}

void bh_track_drop_all(struct bh_shape_cache *sc)
{
    while (sc->n_trackers) {
        struct bh_tracker *t = &sc->tracker[--sc->n_trackers];
        ops_of(sc, t)->drop(t->t);
    }
}

size_t bh_track_bytes(const struct bh_shape_cache *sc)
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
    void *t = ops->make(call);

    if (!t)
        return false;
    uint32_t n = bh_live_rows(&e->cache, e->rows);
    ops->update(call, t, e->rows, n, n);
    sc->tracker[sc->n_trackers++] = (struct bh_tracker){(uint8_t)plugin, t};
    sc->cells.built = false;
    return true;
}

bool bh_track_ensure(struct bh_engine *e, struct bh_shape_cache *sc, uint64_t plugins)
{
    size_t before = bh_track_bytes(sc);
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
    bh_kept_count(e, sc, bh_track_bytes(sc), before);
    return all;
}

/* ---- the answer ------------------------------------------------------------------------------ */

uint32_t bh_kept_rows(const struct bh_shape_cache *sc, uint32_t n_rows, uint32_t *rows)
{
    uint32_t n = 0;

    for (uint32_t row = 0; row < n_rows; row++) {
        rows[n] = row;
        n += bh_index_total(&sc->index, row) >= 0;
    }
    return n;
}

/* The pods nominated to the row's node, if any, that count for this pod; in the cycle's arena. */
static uint32_t nominated_pods(const struct bh_cycle *cy, uint32_t row,
                               const struct bh_pod_info ***ret)
{
    const struct bh_cache *c = cy->calls[0].cache;
    uint32_t n = 0;

    *ret = NULL;
    if (!bh_row_bit(&c->cols, BH_ROW_NOMINATED, row))
        return 0;
    const struct bh_nomination *first = bh_cache_nominations(c, c->rows[row]->name);
    for (const struct bh_nomination *nom = first; nom; nom = nom->next_on_node)
        n += bh_nominated_counts(cy, cy->calls[0].pod, &nom->info);
    *ret = n ? bh_arena_new_array(cy->arena, const struct bh_pod_info *, n) : NULL;
    n = 0;
    for (const struct bh_nomination *nom = first; nom && *ret; nom = nom->next_on_node)
        if (bh_nominated_counts(cy, cy->calls[0].pod, &nom->info))
            (*ret)[n++] = &nom->info;
    return n;
}

static const struct bh_status *why_by(const struct bh_shape_cache *sc, const struct bh_tracker *t,
                                      uint32_t row, const struct bh_pod_info *const *pods,
                                      uint32_t n)
{
    return ops_of(sc, t)->why(&sc->cy.calls[t->plugin], t->t, row, pods, n);
}

/* Upstream asks the filters twice for a node with nominated pods: with them and without. */
static uint32_t filter_nominated(struct bh_shape_cache *sc, const struct bh_tracker *t,
                                 uint32_t *rows, uint32_t n)
{
    const struct bh_pod_info **pods;
    uint32_t m = 0;

    for (uint32_t r = 0; r < n; r++) {
        uint32_t k = nominated_pods(&sc->cy, rows[r], &pods);
        if (!k || !why_by(sc, t, rows[r], pods, k))
            rows[m++] = rows[r];
    }
    return m;
}

const struct bh_status *bh_track_why(struct bh_shape_cache *sc, uint64_t plugins, uint32_t row,
                                     int *ret_by)
{
    const struct bh_framework *fw = sc->cy.fw;
    const struct bh_pod_info **pods;
    uint32_t n = nominated_pods(&sc->cy, row, &pods);

    for (unsigned with = n ? 2 : 1; with-- > 0; n = 0) { /* with them, then without */
        bh_each_plugin(i, fw, BH_POINT_FILTER) {
            const struct bh_status *s =
                plugins >> i & 1 ? why_by(sc, tracker_of(sc, i), row, pods, n) : NULL;
            *ret_by = (int)i;
            if (s)
                return s;
        }
    }
    return NULL;
}

uint32_t bh_track_filter(struct bh_shape_cache *sc, uint64_t plugins, uint32_t *rows, uint32_t n)
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
        if (sc->cy.calls[i].cache->nominations.len)
            n = filter_nominated(sc, t, rows, n);
        bh_sample_end(&sc->cy, i, BH_SEEN_FILTER, BH_SUCCESS, began);
    }
    return n;
}

static void add_normalized(struct bh_engine *e, const struct bh_shape_cache *sc,
                           const uint32_t *rows, uint32_t n, int64_t *total)
{
    for (uint32_t k = 0; k < sc->n_norm; k++) {
        for (uint32_t r = 0; r < n; r++)
            e->values2[r] = bh_kept_raw(&sc->norm[k], rows[r]);
        bh_fast_add_scores(sc->norm[k].how, sc->norm[k].weight, e->values2, n, total);
    }
}

static void add_tracked(struct bh_engine *e, struct bh_shape_cache *sc, uint64_t plugins,
                        const uint32_t *rows, const uint32_t *stands_for, uint32_t n,
                        int64_t *total)
{
    const struct bh_framework *fw = sc->cy.fw;

    bh_each_plugin(i, fw, BH_POINT_SCORE) {
        if (!(plugins >> i & 1))
            continue;
        const struct bh_tracker *t = tracker_of(sc, i);
        uint64_t began = bh_sample_begin(&sc->cy);
        bool scored = ops_of(sc, t)->score(&sc->cy.calls[i], t->t, rows, stands_for, n, e->values2);
        bh_sample_end(&sc->cy, i, BH_SEEN_SCORE, BH_SUCCESS, began);
        fw->evaluations[i].score += scored ? n : 0;
        for (uint32_t r = 0; scored && r < n; r++)
            total[r] += fw->plugins[i].weight * e->values2[r];
    }
}

void bh_track_score(struct bh_engine *e, struct bh_shape_cache *sc, uint64_t plugins,
                    const uint32_t *rows, const uint32_t *stands_for, uint32_t n, int64_t *total)
{
    add_normalized(e, sc, rows, n, total);
    add_tracked(e, sc, plugins, rows, stands_for, n, total);
}

void bh_track_totals(struct bh_engine *e, struct bh_shape_cache *sc, uint64_t plugins,
                     const uint32_t *rows, uint32_t n, int64_t *total)
{
    bool extremes = false; /* where all maxima are 0, so are those of any of the rows */

    for (uint32_t k = 0; k < sc->n_norm; k++)
        extremes |= sc->norm[k].max != 0;
    for (uint32_t r = 0; r < n; r++)
        total[r] = extremes ? bh_kept_base(sc, rows[r]) : bh_index_total(&sc->index, rows[r]);
    if (extremes)
        add_normalized(e, sc, rows, n, total);
    add_tracked(e, sc, plugins, rows, NULL, n, total);
}

static uint32_t kept_within(const struct bh_engine *e, const struct bh_shape_cache *sc,
                            uint32_t *rows)
{
    uint32_t n = 0;

    for (uint32_t w = 0; w < (e->cache.cols.n_rows + 63) / 64; w++)
        for (uint64_t bits = e->within[w]; bits; bits &= bits - 1) {
            const uint32_t row = w * 64 + (uint32_t)__builtin_ctzll(bits);
            if (bh_index_total(&sc->index, row) >= 0)
                rows[n++] = row;
        }
    return n;
}

bool bh_track_run(struct bh_engine *e, struct bh_shape_cache *sc, uint64_t plugins,
                  struct bh_fast *ret)
{
    size_t before = bh_cells_bytes(&sc->cells);
    bool cells = !e->no_cells && !e->within && bh_cells_ensure(sc, &e->cache, plugins);

    bh_kept_count(e, sc, bh_cells_bytes(&sc->cells), before);
    if (cells && bh_cells_run(e, sc, plugins, ret))
        return true;
    if (cells) {
        ret->kept = sc; /* and its cells say why */
        return false;
    }
    bh_watch_rows(e, bh_candidates(e));
    uint32_t n =
        e->within ? kept_within(e, sc, e->rows) : bh_kept_rows(sc, e->cache.cols.n_rows, e->rows);
    n = bh_track_filter(sc, plugins, e->rows, n);
    bh_watch_phase(e, BH_WATCH_SCORE);
    *ret = (struct bh_fast){
        .n_feasible = n, .evaluated = bh_candidates(e), .n_best = 1, .rows = e->rows};
    if (n > 1) {
        bh_track_totals(e, sc, plugins, e->rows, n, e->values);
        ret->totals = e->values;
        ret->n_best = bh_fast_best(e->values, n);
    }
    return n > 0;
}
