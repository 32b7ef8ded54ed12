/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine_index.c - the best node of one shape, kept current row by row
 *
 * Invariants: best[i] = max(best[2i], best[2i+1]); unused leaves are -1.
 * Runs in:    the engine's thread.
 */
#include "scheduler/engine_int.h"

#define INFEASIBLE ((int64_t)-1)

static uint32_t leaves(uint32_t rows)
{
    uint32_t cap = 2;
    while (cap < rows)
        cap *= 2;
    return cap;
}

size_t bh_index_bytes(uint32_t rows)
{
    return 2 * (size_t)leaves(rows) * (sizeof(int64_t) + sizeof(uint32_t));
}

void bh_index_init(struct bh_index *x, uint32_t rows, bool first)
{
    x->cap = leaves(rows);
    x->first = first;
    x->best = bh_malloc(2 * (size_t)x->cap * sizeof *x->best);
    x->aux = bh_calloc(2 * (size_t)x->cap, sizeof *x->aux);
    for (uint32_t i = 0; i < 2 * x->cap; i++)
        x->best[i] = INFEASIBLE;
    for (uint32_t i = 0; i < x->cap; i++)
        x->aux[x->cap + i] = first ? i : 0;
}

void bh_index_fini(struct bh_index *x)
{
    free(x->best);
    free(x->aux);
    memset(x, 0, sizeof *x);
}

void bh_index_set_leaf(struct bh_index *x, uint32_t row, int64_t total)
{
    x->best[x->cap + row] = total;
    if (!x->first)
        x->aux[x->cap + row] = total != INFEASIBLE;
}

/* A row may have died whose leaf is still to be raised: any answer does until then. */
static bool name_less(const struct bh_cache *c, uint32_t a, uint32_t b)
{
    if (!c->rows[a] || !c->rows[b])
        return false;
    return strcmp(bh_sym_text(c->tab, c->rows[a]->name), bh_sym_text(c->tab, c->rows[b]->name)) < 0;
}

static void combine(struct bh_index *x, const struct bh_cache *c, uint32_t i)
{
    uint32_t l = 2 * i, r = l + 1, win = x->best[r] > x->best[l] ? r : l;

    x->best[i] = x->best[win];
    if (x->best[l] != x->best[r])
        x->aux[i] = x->aux[win];
    else if (!x->first)
        x->aux[i] = x->aux[l] + x->aux[r];
    else if (x->best[l] == INFEASIBLE)
        x->aux[i] = x->aux[l];
    else
        x->aux[i] = name_less(c, x->aux[r], x->aux[l]) ? x->aux[r] : x->aux[l];
}

void bh_index_raise(struct bh_index *x, const struct bh_cache *c, uint32_t row)
{
    for (uint32_t i = (x->cap + row) / 2; i > 0; i /= 2)
        combine(x, c, i);
}

void bh_index_rebuild(struct bh_index *x, const struct bh_cache *c)
{
    for (uint32_t i = x->cap - 1; i > 0; i--)
        combine(x, c, i);
}

uint32_t bh_index_count(const struct bh_index *x)
{
    return x->best[1] == INFEASIBLE ? 0 : x->first ? 1 : x->aux[1];
}

uint32_t bh_index_pick(const struct bh_index *x, uint32_t k)
{
    uint32_t i = 1;

    bh_assert(x->best[1] != INFEASIBLE);
    if (x->first)
        return x->aux[1];
    while (i < x->cap) {
        uint32_t l = 2 * i;
        uint32_t left = x->best[l] == x->best[i] ? x->aux[l] : 0;
        if (k < left) {
            i = l;
        } else {
            k -= left;
            i = l + 1;
        }
    }
    return i - x->cap;
}
