/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine/fast/cells.c - topology spread and inter-pod affinity without a look at every node
 *
 * Trackers cannot tell most nodes apart: with spreading over three zones there are three kinds,
 * with anti-affinity by host name those with such a pod and those without. So the feasible rows of
 * a shape are kept in cells, one for each kind, and a decision asks the trackers for one row of
 * each; the best row of a cell is the best by what the node-local plugins say, which is kept by
 * blocks of rows. A row that changed is put where it belongs now, and two blocks are looked at
 * again.
 *
 * A row with nominated pods is a kind of its own: what these mean is asked for it alone.
 *
 * Invariants: while built, of_row and base are right for every row as of the shape cache's log_pos;
 *             best and n_best of each cell and block follow from them.
 * Runs in:    the engine's thread. Steady state: no malloc.
 */
#include "scheduler/engine/fast/fast.h"

#define WORDS_MAX  (BH_TRACKERS_MAX * BH_KIND_WORDS + BH_NORMALIZED_MAX + 1)
#define SLOTS      (4 * BH_CELLS_MAX)
#define BLOCKS_MAX (2u << 20) /* of all cells: 12 MiB */
#define REST       4096u

/* ---- kinds ----------------------------------------------------------------------------------- */

/* Words that the trackers of these plugins, the normalised scores and nominations tell of a row; 0:
 * there are no kinds. */
static uint32_t kind_of(struct bh_shape_cache *sc, const struct bh_cache *c, uint32_t row,
                        uint32_t *ret)
{
    uint32_t n = 0;

    ret[n++] = bh_row_bit(&c->cols, BH_ROW_NOMINATED, row) ? row + 1 : 0;
    for (uint32_t k = 0; k < sc->n_norm; k++) {
        int64_t raw = bh_kept_raw(&sc->norm[k], row);
        ret[n++] = (uint32_t)raw;
        if (raw < 0 || raw > UINT32_MAX)
            return 0;
    }
    for (uint32_t i = 0; i < sc->n_trackers; i++) {
        const struct bh_tracker *t = &sc->tracker[i];
        if (!(sc->cells.plugins >> t->plugin & 1))
            continue;
        uint32_t words = sc->cy.fw->plugins[t->plugin].plugin->track->kind(&sc->cy.calls[t->plugin],
                                                                           t->t, row, ret + n);
        if (!words)
            return 0;
        n += words;
    }
    return n;
}

/* The slot of the kind: that of its cell, or the free one where it belongs. */
static uint16_t *slot_of(const struct bh_cells *x, const uint32_t *words)
{
    uint64_t h = 0;

    for (uint32_t i = 0; i < x->n_words; i++)
        h = (h ^ words[i]) * 0x9e3779b97f4a7c15u;
    for (uint32_t i = (uint32_t)(h >> 40) % SLOTS;; i = (i + 1) % SLOTS) {
        uint16_t *s = &x->slot[i];
        if (*s == BH_CELL_NONE ||
            memcmp(&x->words[(size_t)*s * x->n_words], words, x->n_words * sizeof *words) == 0)
            return s;
    }
}

static void reserve_words(struct bh_cells *x, uint32_t cells)
{
    size_t need = cells * (size_t)x->n_words;

    if (need <= x->cap_words)
        return;
    x->words = bh_reallocarray(x->words, need, sizeof *x->words);
    x->cap_words = need;
}

static bool more_cells(struct bh_cells *x)
{
    uint32_t cap = BH_MIN(x->cap ? x->cap * 2 : 16, x->max);
    size_t blocks = x->n_blocks;

    if (cap <= x->n)
        return false;
    x->cell = bh_reallocarray(x->cell, cap, sizeof *x->cell);
    x->winner = bh_reallocarray(x->winner, cap, sizeof *x->winner);
    reserve_words(x, cap);
    x->best = bh_reallocarray(x->best, cap * blocks, sizeof *x->best);
    x->n_best = bh_reallocarray(x->n_best, cap * blocks, sizeof *x->n_best);
    x->cap = cap;
    return true;
}

/* BH_CELL_NONE: there are too many. */
static uint16_t cell_of(struct bh_cells *x, const uint32_t *words)
{
    uint16_t *s = slot_of(x, words);

    if (*s != BH_CELL_NONE)
        return *s;
    if (x->n == x->cap && !more_cells(x))
        return BH_CELL_NONE;
    uint16_t id = *s = (uint16_t)x->n++;
    x->cell[id] = (struct bh_cell){.row = BH_ROW_NONE, .stale = true};
    memcpy(&x->words[(size_t)id * x->n_words], words, x->n_words * sizeof *words);
    for (uint32_t b = 0; b < x->n_blocks; b++)
        x->best[(size_t)id * x->n_blocks + b] = INT32_MIN;
    memset(&x->n_best[(size_t)id * x->n_blocks], 0, x->n_blocks * sizeof *x->n_best);
    return id;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static uint32_t block_end(const struct bh_cells *x, uint32_t block)
{
    return BH_MIN((block + 1) << x->shift, x->cap_rows);
}

static void look_at_block(struct bh_cells *x, uint16_t id, uint32_t block)
{
    size_t at = (size_t)id * x->n_blocks + block;
    int32_t best = INT32_MIN;
    uint16_t n = 0;

    for (uint32_t row = block << x->shift, end = block_end(x, block); row < end; row++) {
        int32_t v = x->of_row[row] == id ? x->base[row] : INT32_MIN;
        n = v > best ? 1 : (uint16_t)(n + (v == best));
        best = BH_MAX(best, v);
    }
    x->best[at] = best;
    x->n_best[at] = best == INT32_MIN ? 0 : n;
    x->cell[id].stale = true;
}

/* A row with its base joins the cell. */
static void join(struct bh_cells *x, uint16_t id, uint32_t row)
{
    size_t at = (size_t)id * x->n_blocks + (row >> x->shift);

    if (x->base[row] > x->best[at]) {
        x->best[at] = x->base[row];
        x->n_best[at] = 0;
    }
    x->n_best[at] = (uint16_t)(x->n_best[at] + (x->base[row] == x->best[at]));
    x->cell[id].n++;
    x->cell[id].row = row;
    x->cell[id].stale = true;
}

static void look_at_cell(struct bh_cells *x, uint32_t id)
{
    const int32_t *best = &x->best[(size_t)id * x->n_blocks];
    const uint16_t *n_best = &x->n_best[(size_t)id * x->n_blocks];
    int32_t max = INT32_MIN;
    uint32_t n = 0;

    for (uint32_t b = 0; b < x->n_blocks; b++)
        max = BH_MAX(max, best[b]);
    for (uint32_t b = 0; b < x->n_blocks; b++)
        n += best[b] == max ? n_best[b] : 0;
    x->cell[id].best = max;
    x->cell[id].n_best = n;
    x->cell[id].stale = false;
}

/* Some row of a cell that has rows. */
static uint32_t any_row(const struct bh_cells *x, uint32_t id)
{
    const uint16_t *n_best = &x->n_best[(size_t)id * x->n_blocks];
    uint32_t b = 0;

    while (!n_best[b])
        b++;
    for (uint32_t row = b << x->shift;; row++)
        if (x->of_row[row] == id)
            return row;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The cell where the row belongs; false: no room for its kind. */
static bool find_cell(struct bh_shape_cache *sc, const struct bh_cache *c, uint32_t row,
                      uint16_t *ret_id, int32_t *ret_base)
{
    struct bh_cells *x = &sc->cells;
    uint32_t words[WORDS_MAX];

    *ret_id = BH_CELL_NONE;
    *ret_base = 0;
    if (bh_index_total(&sc->index, row) < 0)
        return true;
    int64_t base = bh_kept_base(sc, row);
    if (kind_of(sc, c, row, words) != x->n_words || base < 0 || base > INT32_MAX)
        return false;
    *ret_base = (int32_t)base;
    *ret_id = cell_of(x, words);
    return *ret_id != BH_CELL_NONE;
}

static bool place(struct bh_shape_cache *sc, const struct bh_cache *c, uint32_t row)
{
    struct bh_cells *x = &sc->cells;
    uint16_t old = x->of_row[row], id;
    int32_t base;

    if (!find_cell(sc, c, row, &id, &base))
        return false;
    if (old == id && x->base[row] == base)
        return true;
    x->of_row[row] = BH_CELL_NONE;
    if (old != BH_CELL_NONE) {
        struct bh_cell *cell = &x->cell[old];
        cell->n--;
        if (cell->row == row)
            cell->row = BH_ROW_NONE;
        size_t at = (size_t)old * x->n_blocks + (row >> x->shift);
        if (x->base[row] == x->best[at] && --x->n_best[at] == 0)
            look_at_block(x, old, row >> x->shift);
        cell->stale = true;
    }
    x->of_row[row] = id;
    x->base[row] = base;
    if (id != BH_CELL_NONE)
        join(x, id, row);
    return true;
}

/* ---- making, following ----------------------------------------------------------------------- */

void bh_cells_fini(struct bh_cells *x)
{
    free(x->of_row);
    free(x->base);
    free(x->cell);
    free(x->winner);
    free(x->words);
    free(x->slot);
    free(x->best);
    free(x->n_best);
    *x = (struct bh_cells){0};
}

size_t bh_cells_bytes(const struct bh_cells *x)
{
    return x->cap_rows * (sizeof *x->of_row + sizeof *x->base) +
           (x->slot ? SLOTS * sizeof *x->slot : 0) + x->cap_words * sizeof *x->words +
           x->cap * (sizeof *x->cell + sizeof *x->winner +
                     x->n_blocks * (sizeof *x->best + sizeof *x->n_best));
}

void bh_cells_update(struct bh_shape_cache *sc, const struct bh_cache *c, const uint32_t *rows,
                     uint32_t n)
{
    struct bh_cells *x = &sc->cells;
    const uint32_t *moved;

    for (uint32_t r = 0; r < n && x->built; r++)
        x->built = place(sc, c, rows[r]);
    for (uint32_t i = 0; i < sc->n_trackers && x->built; i++) {
        const struct bh_tracker *t = &sc->tracker[i];
        if (!(x->plugins >> t->plugin & 1))
            continue;
        uint32_t more = sc->cy.fw->plugins[t->plugin].plugin->track->moved(t->t, &moved);
        x->built = more != BH_KINDS_ANEW;
        if (x->built)
            bh_fail_touch(sc, moved, more);
        for (uint32_t r = 0; r < more && x->built; r++)
            x->built = (n == 1 && moved[r] == rows[0]) || place(sc, c, moved[r]);
    }
}

static bool build(struct bh_shape_cache *sc, const struct bh_cache *c)
{
    struct bh_cells *x = &sc->cells;
    uint32_t rows = c->cols.cap_rows, words[WORDS_MAX];
    if (rows > x->cap_rows) {
        uint64_t plugins = x->plugins, builds = x->builds;
        bh_cells_fini(x);
        x->plugins = plugins;
        x->builds = builds;
        x->cap_rows = rows;
        x->shift = rows > 100000 ? 8 : 6;
        x->n_blocks = (rows + (1u << x->shift) - 1) >> x->shift;
        x->max = BH_MIN(BH_CELLS_MAX, BH_MAX(16u, BLOCKS_MAX / x->n_blocks));
        x->of_row = bh_reallocarray(NULL, rows, sizeof *x->of_row);
        x->base = bh_reallocarray(NULL, rows, sizeof *x->base);
        x->slot = bh_reallocarray(NULL, SLOTS, sizeof *x->slot);
    }
    uint32_t n_words = kind_of(sc, c, 0, words);
    if (!n_words)
        return false;
    x->n_words = n_words;
    reserve_words(x, x->cap);
    x->builds++;
    x->n = 0;
    memset(x->of_row, 0xff, x->cap_rows * sizeof *x->of_row);
    memset(x->base, 0, x->cap_rows * sizeof *x->base);
    memset(x->slot, 0xff, SLOTS * sizeof *x->slot);
    for (uint32_t row = 0; row < c->cols.n_rows; row++) {
        uint16_t id;
        if (!find_cell(sc, c, row, &id, &x->base[row]))
            return false;
        x->of_row[row] = id;
        if (id != BH_CELL_NONE)
            join(x, id, row);
    }
    return true;
}

bool bh_cells_ensure(struct bh_shape_cache *sc, const struct bh_cache *c, uint64_t plugins)
{
    struct bh_cells *x = &sc->cells;

    if (x->built && x->plugins == plugins)
        return true;
    if (x->rest) {
        x->rest--;
        return false;
    }
    x->plugins = plugins;
    x->built = build(sc, c);
    if (!x->built)
        x->rest = REST;
    return x->built;
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* One row of each cell that has any. */
static uint32_t one_of_each(struct bh_cells *x, uint32_t *rows)
{
    uint32_t n = 0;

    for (uint32_t id = 0; id < x->n; id++) {
        struct bh_cell *c = &x->cell[id];
        c->feasible = c->wins = false;
        if (!c->n)
            continue;
        if (c->row == BH_ROW_NONE)
            c->row = any_row(x, id);
        rows[n++] = c->row;
    }
    return n;
}

bool bh_cells_run(struct bh_engine *e, struct bh_shape_cache *sc, uint64_t plugins,
                  struct bh_fast *ret)
{
    struct bh_cells *x = &sc->cells;
    uint32_t *rows = e->rows, *stands_for = e->rows2, feasible = 0;
    uint32_t n = bh_track_filter(sc, plugins, rows, one_of_each(x, rows));

    bh_watch_phase(e, BH_WATCH_SCORE);
    for (uint32_t i = 0; i < n; i++) {
        struct bh_cell *c = &x->cell[x->of_row[rows[i]]];
        c->feasible = true;
        stands_for[i] = c->n;
        feasible += c->n;
    }
    *ret = (struct bh_fast){
        .n_feasible = feasible, .evaluated = e->cache.n_nodes, .n_best = 1, .rows = rows};
    if (feasible > 1) {
        memset(e->values, 0, n * sizeof *e->values);
        bh_track_score(e, sc, plugins, rows, stands_for, n, e->values);
        ret->cells = x;
        int64_t max = INT64_MIN;
        for (uint32_t i = 0; i < n; i++) {
            struct bh_cell *c = &x->cell[x->of_row[rows[i]]];
            if (c->stale)
                look_at_cell(x, x->of_row[rows[i]]);
            c->score = e->values[i];
            if (c->score + c->best > max) {
                max = c->score + c->best;
                ret->n_best = 0;
            }
            ret->n_best += c->score + c->best == max ? c->n_best : 0;
        }
        x->n_winners = 0;
        for (uint32_t i = 0; i < n; i++) {
            struct bh_cell *c = &x->cell[x->of_row[rows[i]]];
            c->wins = c->score + c->best == max;
            if (c->wins)
                x->winner[x->n_winners++] = x->of_row[rows[i]];
        }
    }
    return feasible > 0;
}

static bool wins(const struct bh_cells *x, uint32_t row)
{
    const struct bh_cell *c = x->of_row[row] != BH_CELL_NONE ? &x->cell[x->of_row[row]] : NULL;
    return c && c->wins && x->base[row] == c->best;
}

uint32_t bh_cells_pick(const struct bh_cells *x, const struct bh_cache *c, bool first, uint32_t k)
{
    uint32_t found = BH_ROW_NONE;

    for (uint32_t b = 0; b < x->n_blocks; b++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < x->n_winners; i++) {
            size_t at = (size_t)x->winner[i] * x->n_blocks + b;
            n += x->best[at] == x->cell[x->winner[i]].best ? x->n_best[at] : 0;
        }
        if (!n || (!first && k >= n)) {
            k -= first ? 0 : n;
            continue;
        }
        for (uint32_t row = b << x->shift, end = block_end(x, b); row < end; row++) {
            if (!wins(x, row))
                continue;
            if (!first && k-- == 0)
                return row;
            if (first && (found == BH_ROW_NONE || bh_row_name_cmp(c, row, found) < 0))
                found = row;
        }
    }
    return found;
}
