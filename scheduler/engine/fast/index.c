/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine/fast/index.c - the best node of one shape, kept current row by row
 *
 * Rows stand in blocks; a tournament tree has one leaf a block. A block's best is found by a scan
 * of its totals, but few changes need one: a row that was not the best and does not become it
 * changes nothing, equals are counted. So blocks may be large, and the more rows there are the
 * larger they are: a tree that is in no cache costs more than a scan now and then.
 *
 * Invariants: node[i].best = max(node[2i].best, node[2i+1].best); leaves of no rows are -1.
 */
#include "common/base/pages.h"
#include "scheduler/engine/fast/fast.h"

#define INFEASIBLE   ((int64_t)-1)
#define SHIFT        6 /* a scan looks at BH_PACKED_PAD totals at once */
#define SHIFT_MANY   8
#define MANY_ROWS    65536u
#define SHIFT_NAMED  2 /* smallest name: equals within a block are compared one by one */
#define TOTALS_WIDTH 2 /* the default profile's totals are at most 1200 */
_Static_assert(1u << SHIFT == BH_PACKED_PAD, "a block is what bh_packed pads to");

static size_t tree_bytes(const struct bh_index *x)
{
    return 2 * (size_t)x->cap * sizeof *x->node;
}

void bh_index_init(struct bh_index *x, uint32_t rows, bool first)
{
    x->rows = rows;
    x->first = first;
    x->shift = rows >= MANY_ROWS && rows % (1u << SHIFT_MANY) == 0 ? SHIFT_MANY : SHIFT;
    if (first)
        x->shift = SHIFT_NAMED;
    for (x->cap = 2; (uint64_t)x->cap << x->shift < rows;)
        x->cap *= 2;
    bh_packed_init(&x->total, rows, TOTALS_WIDTH);
    x->node = bh_pages_new(tree_bytes(x));
    for (uint32_t i = 0; i < 2 * x->cap; i++)
        x->node[i] = (struct bh_best){.best = INFEASIBLE};
}

void bh_index_fini(struct bh_index *x)
{
    bh_packed_fini(&x->total);
    bh_pages_free(x->node, tree_bytes(x));
    memset(x, 0, sizeof *x);
}

size_t bh_index_bytes(const struct bh_index *x)
{
    return bh_packed_bytes(&x->total) + tree_bytes(x);
}

/* A row may have died whose leaf is still to be raised: any answer does until then. */
static bool name_less(const struct bh_cache *c, uint32_t a, uint32_t b)
{
    return c->rows[a] && c->rows[b] && bh_row_name_cmp(c, a, b) < 0;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

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
        const type *v = (const type *)x->total.v + from;                                           \
        type m = 0, n = 0;                                                                         \
        for (unsigned i = 0; i < BH_PACKED_PAD; i++)                                               \
            m = v[i] > m ? v[i] : m;                                                               \
        for (unsigned i = 0; i < BH_PACKED_PAD; i++)                                               \
            n = (type)(n + (v[i] == m));                                                           \
        best = (int64_t)m;                                                                         \
        count = (uint32_t)n;                                                                       \
    } while (0)

static void scan_block(struct bh_index *x, uint32_t block)
{
    size_t from = (size_t)block << x->shift, end = from + ((size_t)1 << x->shift);
    struct bh_best win = {0};

    for (; from < end; from += BH_PACKED_PAD) {
        /* BH_PACKED_PAD rows; their best as it is stored, see bh_index_total. */
        int64_t best;
        uint32_t count;
        if (x->total.width == 2)
            SCAN(uint16_t);
        else if (x->total.width == 4)
            SCAN(uint32_t);
        else
            SCAN(int64_t);
        struct bh_best b = (struct bh_best){.best = best, .aux = count};
        if (b.best > win.best)
            win = b;
        else if (b.best == win.best)
            win.aux += b.aux;
    }
    x->node[x->cap + block].best = win.best - 1;
    x->node[x->cap + block].aux = win.best ? win.aux : 0;
}

/* ---- tree ------------------------------------------------------------------------------------ */

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
void bh_index_move(struct bh_index *x, const struct bh_cache *c, uint32_t row, int64_t total)
{
    uint32_t i = x->cap + (row >> x->shift);
    int64_t best = x->node[i].best, before = bh_index_total(x, row);
    uint32_t aux = x->node[i].aux;

    bh_index_set_leaf(x, row, total);
    if (x->first)
        scan_named(x, c, row >> x->shift);
    else {
        /* The leaf of a row that had another total before. Few changes concern the block's best,
         * and of these only the last one at it that goes makes a scan of the block necessary. */
        struct bh_best *leaf = &x->node[x->cap + (row >> x->shift)];
        if (total > leaf->best)
            *leaf = (struct bh_best){.best = total, .aux = 1};
        else if (total == leaf->best)
            leaf->aux += total != INFEASIBLE && before != total;
        else if (before == leaf->best && --leaf->aux == 0)
            scan_block(x, row >> x->shift);
    }
    while (x->first || x->node[i].best != best || x->node[i].aux != aux) {
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
    for (uint32_t b = 0; (uint64_t)b << x->shift < x->rows; b++) {
        if (x->first)
            scan_named(x, c, b);
        else
            scan_block(x, b);
    }
    for (uint32_t i = x->cap - 1; i > 0; i--)
        combine(x, c, i);
}

/* ---- answers --------------------------------------------------------------------------------- */

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
