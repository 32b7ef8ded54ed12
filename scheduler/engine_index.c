/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine_index.c - the best node of one shape, kept current row by row
 *
 * Rows stand in blocks; a tournament tree has one leaf a block. A block's best is found by a scan
 * of its totals, a cache line or two: so the tree, the larger part of the memory when each row had
 * a leaf, is gone, and a change climbs six levels less.
 *
 * Invariants: node[i].best = max(node[2i].best, node[2i+1].best); leaves of no rows are -1.
 * Runs in:    the engine's thread.
 */
#include "scheduler/engine_int.h"

#define INFEASIBLE   ((int64_t)-1)
#define SHIFT        6 /* the scan looks at all BH_NARROW_PAD totals at once */
#define SHIFT_NAMED  2 /* smallest name: equals within a block are compared one by one */
#define TOTALS_WIDTH 2 /* the default profile's totals are at most 1200 */
_Static_assert(1u << SHIFT == BH_NARROW_PAD, "a block is what bh_narrow pads to");

void bh_index_init(struct bh_index *x, uint32_t rows, bool first)
{
    x->rows = rows;
    x->first = first;
    x->shift = first ? SHIFT_NAMED : SHIFT;
    for (x->cap = 2; (uint64_t)x->cap << x->shift < rows;)
        x->cap *= 2;
    bh_narrow_init(&x->total, rows, TOTALS_WIDTH);
    x->node = bh_malloc(2 * (size_t)x->cap * sizeof *x->node);
    for (uint32_t i = 0; i < 2 * x->cap; i++)
        x->node[i] = (struct bh_best){.best = INFEASIBLE};
}

void bh_index_fini(struct bh_index *x)
{
    bh_narrow_fini(&x->total);
    free(x->node);
    memset(x, 0, sizeof *x);
}

size_t bh_index_bytes(const struct bh_index *x)
{
    return bh_narrow_bytes(&x->total) + 2 * (size_t)x->cap * sizeof *x->node;
}

/* A row may have died whose leaf is still to be raised: any answer does until then. */
static bool name_less(const struct bh_cache *c, uint32_t a, uint32_t b)
{
    if (!c->rows[a] || !c->rows[b])
        return false;
    return strcmp(bh_sym_text(c->tab, c->rows[a]->name), bh_sym_text(c->tab, c->rows[b]->name)) < 0;
}

/* ---- blocks ------------------------------------------------------------------------------------
 */

static void scan_named(struct bh_index *x, const struct bh_cache *c, uint32_t block)
{
    uint32_t row = block << x->shift, end = BH_MIN(row + (1u << x->shift), x->rows), win = row;
    int64_t best = INFEASIBLE;

    for (; row < end; row++) {
        int64_t t = bh_index_total(x, row);
        if (t > best || (t == best && t != INFEASIBLE && name_less(c, row, win)))
            win = row;
        best = BH_MAX(best, t);
    }
    x->node[x->cap + block].best = best;
    x->node[x->cap + block].aux = win;
}

/* Of constant length, so that the compiler makes vector instructions of it. */
#define SCAN(type)                                                                                 \
    do {                                                                                           \
        const type *v = (const type *)x->total.v + ((size_t)block << SHIFT);                       \
        type m = 0, n = 0;                                                                         \
        for (unsigned i = 0; i < 1u << SHIFT; i++)                                                 \
            m = v[i] > m ? v[i] : m;                                                               \
        for (unsigned i = 0; i < 1u << SHIFT; i++)                                                 \
            n = (type)(n + (v[i] == m));                                                           \
        best = (int64_t)m;                                                                         \
        count = (uint32_t)n;                                                                       \
    } while (0)

static void scan_block(struct bh_index *x, uint32_t block)
{
    int64_t best;
    uint32_t count;

    if (x->total.width == 2)
        SCAN(uint16_t);
    else if (x->total.width == 4)
        SCAN(uint32_t);
    else
        SCAN(int64_t);
    x->node[x->cap + block].best = best - 1; /* as they are stored, see bh_index_total */
    x->node[x->cap + block].aux = best ? count : 0;
}

static void refresh(struct bh_index *x, const struct bh_cache *c, uint32_t block)
{
    if (x->first)
        scan_named(x, c, block);
    else
        scan_block(x, block);
}

/* ---- tree --------------------------------------------------------------------------------------
 */

static void combine(struct bh_index *x, const struct bh_cache *c, uint32_t i)
{
    uint32_t l = 2 * i, r = l + 1, win = x->node[r].best > x->node[l].best ? r : l;

    x->node[i].best = x->node[win].best;
    if (x->node[l].best != x->node[r].best)
        x->node[i].aux = x->node[win].aux;
    else if (!x->first)
        x->node[i].aux = x->node[l].aux + x->node[r].aux;
    else if (x->node[l].best == INFEASIBLE)
        x->node[i].aux = x->node[l].aux;
    else
        x->node[i].aux =
            name_less(c, x->node[r].aux, x->node[l].aux) ? x->node[r].aux : x->node[l].aux;
}

/* Whatever is above a node that stays as it was stays as well. But for names: the row may have got
 * another node. */
void bh_index_raise(struct bh_index *x, const struct bh_cache *c, uint32_t row)
{
    uint32_t i = x->cap + (row >> x->shift);
    int64_t best = x->node[i].best;
    uint32_t aux = x->node[i].aux;

    for (refresh(x, c, row >> x->shift);
         x->first || x->node[i].best != best || x->node[i].aux != aux;) {
        i /= 2;
        if (i == 0)
            break;
        best = x->node[i].best;
        aux = x->node[i].aux;
        combine(x, c, i);
    }
}

void bh_index_rebuild(struct bh_index *x, const struct bh_cache *c)
{
    for (uint32_t b = 0; (uint64_t)b << x->shift < x->rows; b++)
        refresh(x, c, b);
    for (uint32_t i = x->cap - 1; i > 0; i--)
        combine(x, c, i);
}

/* ---- answers -----------------------------------------------------------------------------------
 */

uint32_t bh_index_count(const struct bh_index *x)
{
    return x->node[1].best == INFEASIBLE ? 0 : x->first ? 1 : x->node[1].aux;
}

uint32_t bh_index_pick(const struct bh_index *x, uint32_t k)
{
    uint32_t i = 1;

    bh_assert(x->node[1].best != INFEASIBLE);
    if (x->first)
        return x->node[1].aux;
    while (i < x->cap) {
        uint32_t l = 2 * i;
        uint32_t left = x->node[l].best == x->node[i].best ? x->node[l].aux : 0;
        if (k < left) {
            i = l;
        } else {
            k -= left;
            i = l + 1;
        }
    }
    uint32_t row = (i - x->cap) << x->shift;
    while (bh_index_total(x, row) != x->node[1].best || k-- > 0)
        row++;
    return row;
}
