/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine/fast/kept.c - the numbers that are kept for one shape, row by row
 *
 * A total is what the scores that need no extremes add up to, and for each normalised score its
 * share at the current maximum. Only the total and the raw scores are kept: the rest follows.
 *
 * Invariants: between two changes index's total of a row is the one the reference path would give,
 *             or -1 where a filter rejects; norm[k].max is the largest raw score of feasible rows,
 *             at least 0, and made_with the one the totals are made with; floor and the raw scores
 *             of fixed plugins are right for every row whose floor is not 0, feasible or not.
 * Runs in:    the engine's thread. Steady state: no malloc.
 */
#include "scheduler/engine/fast/fast.h"

#define INFEASIBLE ((int64_t)-1)

void bh_kept_init(struct bh_engine *e, struct bh_shape_cache *sc)
{
    const struct bh_framework *fw = sc->cy.fw;
    uint32_t rows = e->cache.cols.cap_rows;

    bh_index_init(&sc->index, rows, e->opt.tie_break == BH_TIE_FIRST);
    bh_packed_init(&sc->floor, rows, 1);
    for (uint32_t i = 0; i < fw->n_plugins; i++)
        sc->fixed |= (uint64_t)((fw->plugins[i].plugin->flags & BH_PLUGIN_READS_NODE) != 0) << i;
    bh_each_plugin(i, fw, BH_POINT_SCORE) {
        enum bh_normal how = fw->plugins[i].plugin->normal;
        if (sc->cy.skip_score >> i & 1 || how == BH_NORMAL_NONE)
            continue;
        struct bh_normalized_score *nm = &sc->norm[sc->n_norm++];
        *nm = (struct bh_normalized_score){
            .plugin = (uint8_t)i, .how = how, .weight = fw->plugins[i].weight};
        bh_packed_init(&nm->raw, rows, 0);
    }
}

void bh_kept_fini(struct bh_shape_cache *sc)
{
    bh_index_fini(&sc->index);
    bh_packed_fini(&sc->floor);
    for (uint32_t k = 0; k < sc->n_norm; k++)
        bh_packed_fini(&sc->norm[k].raw);
}

size_t bh_kept_bytes(const struct bh_shape_cache *sc)
{
    size_t n = bh_index_bytes(&sc->index) + bh_packed_bytes(&sc->floor);

    for (uint32_t k = 0; k < sc->n_norm; k++)
        n += bh_packed_bytes(&sc->norm[k].raw);
    return n;
}

static int64_t share(const struct bh_normalized_score *nm, int64_t raw, int64_t max)
{
    return nm->weight * bh_normalized(nm->how, raw, max);
}

int64_t bh_kept_base(const struct bh_shape_cache *sc, uint32_t row)
{
    int64_t t = bh_index_total(&sc->index, row);

    for (uint32_t k = 0; k < sc->n_norm; k++)
        t -= share(&sc->norm[k], bh_kept_raw(&sc->norm[k], row), sc->norm[k].made_with);
    return t;
}

int64_t bh_kept_leave(struct bh_shape_cache *sc, uint32_t row)
{
    int64_t total = bh_index_total(&sc->index, row);

    if (total == INFEASIBLE)
        return total;
    sc->n_feasible--;
    for (uint32_t k = 0; k < sc->n_norm; k++) {
        struct bh_normalized_score *nm = &sc->norm[k];
        nm->n_max -= nm->max > 0 && bh_kept_raw(nm, row) == nm->max;
    }
    bh_index_set_leaf(&sc->index, row, INFEASIBLE);
    return total;
}

/* ---- another maximum ------------------------------------------------------------------------- */

static void count_max(struct bh_normalized_score *nm, int64_t raw)
{
    if (raw > nm->max) {
        nm->max = raw;
        nm->n_max = 1;
    } else {
        nm->n_max += nm->max > 0 && raw == nm->max;
    }
}

#define DELTAS 256u /* of raw scores below that: no division for each row */

/* Rows whose raw score is 0 have the same share whatever the maximum is, and most of them are such:
 * blocks of nothing else are passed over. The rows that are about to come in have no total yet. */
static void make_anew(struct bh_shape_cache *sc, struct bh_normalized_score *nm)
{
    int64_t delta[DELTAS], from = nm->made_with, to = nm->max;
    const struct bh_packed *raw = &nm->raw;

    for (uint32_t r = 0; r < DELTAS; r++)
        delta[r] = share(nm, r, to) - share(nm, r, from);
    for (uint32_t block = 0; block < raw->n; block += BH_PACKED_PAD) {
        if (!bh_packed_any(raw, block))
            continue;
        for (uint32_t row = block; row < BH_MIN(block + BH_PACKED_PAD, raw->n); row++) {
            int64_t x = bh_packed_get(raw, row), t = bh_index_total(&sc->index, row);
            if (x == 0 || t == INFEASIBLE)
                continue;
            t += x > 0 && x < DELTAS ? delta[x] : share(nm, x, to) - share(nm, x, from);
            bh_index_set_leaf(&sc->index, row, t);
        }
    }
    nm->made_with = to;
}

/* rows come in, without totals yet. The totals of all others follow the maxima. */
static bool settle_maxima(struct bh_shape_cache *sc, const uint32_t *rows, uint32_t n)
{
    bool moved = false;

    for (uint32_t k = 0; k < sc->n_norm; k++) {
        struct bh_normalized_score *nm = &sc->norm[k];
        for (uint32_t r = 0; r < n && nm->raw.width; r++)
            count_max(nm, bh_kept_raw(nm, rows[r]));
        if (nm->max > 0 && nm->n_max == 0) {
            /* The last row at the maximum went: find the next one among those that have a total. */
            const struct bh_packed *raw = &nm->raw;
            nm->max = nm->n_max = 0;
            for (uint32_t block = 0; block < raw->n; block += BH_PACKED_PAD) {
                if (!bh_packed_any(raw, block))
                    continue;
                for (uint32_t row = block; row < BH_MIN(block + BH_PACKED_PAD, raw->n); row++)
                    if (bh_index_total(&sc->index, row) != INFEASIBLE)
                        count_max(nm, bh_packed_get(raw, row));
            }
            for (uint32_t r = 0; r < n; r++)
                count_max(nm, bh_kept_raw(nm, rows[r]));
        }
        if (nm->max == nm->made_with)
            continue;
        make_anew(sc, nm);
        moved = true;
    }
    return moved;
}

bool bh_kept_settle(struct bh_shape_cache *sc, const uint32_t *rows, const int64_t *base,
                    uint32_t n)
{
    bool moved = settle_maxima(sc, rows, n);

    for (uint32_t r = 0; r < n; r++) {
        int64_t t = base[r];
        for (uint32_t k = 0; k < sc->n_norm; k++)
            t += share(&sc->norm[k], bh_kept_raw(&sc->norm[k], rows[r]), sc->norm[k].max);
        bh_index_set_leaf(&sc->index, rows[r], t);
    }
    sc->n_feasible += n;
    return moved;
}
