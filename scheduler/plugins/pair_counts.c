/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/pair_counts.c - counts by (topology key, topology value)
 */
#include "scheduler/plugins/pair_counts.h"

#define FIRST_CAP 32u

/* Where the pair is, or the free slot where it belongs. */
static struct bh_pair_count *probe(struct bh_pair_count *slot, uint32_t cap, bh_sym key,
                                   bh_sym value)
{
    uint64_t h = ((uint64_t)key << 32 | value) * 0x9e3779b97f4a7c15u;
    uint32_t i = (uint32_t)(h >> 32) & (cap - 1);

    while (slot[i].taken && (slot[i].key != key || slot[i].value != value))
        i = (i + 1) & (cap - 1);
    return &slot[i];
}

void bh_pair_counts_add(struct bh_pair_counts *t, bh_sym key, bh_sym value, int64_t n)
{
    if (t->used >= t->cap - t->cap / 4) {
        uint32_t cap = t->cap ? t->cap * 2 : FIRST_CAP;
        struct bh_pair_count *slot = bh_arena_new_array(t->a, struct bh_pair_count, cap);
        for (uint32_t i = 0; i < t->cap; i++)
            if (t->slot[i].taken)
                *probe(slot, cap, t->slot[i].key, t->slot[i].value) = t->slot[i];
        t->slot = slot;
        t->cap = cap;
    }
    struct bh_pair_count *p = probe(t->slot, t->cap, key, value);
    if (!p->taken) {
        *p = (struct bh_pair_count){.key = key, .value = value, .taken = true};
        t->used++;
    }
    t->nonzero -= p->n != 0;
    p->n += n;
    t->nonzero += p->n != 0;
}

int64_t *bh_pair_counts_find(const struct bh_pair_counts *t, bh_sym key, bh_sym value)
{
    struct bh_pair_count *p = t->used ? probe(t->slot, t->cap, key, value) : NULL;

    return p && p->taken ? &p->n : NULL;
}

static struct bh_pair_count *find_change(const struct bh_pair_view *v, bh_sym key, bh_sym value)
{
    for (uint32_t i = 0; i < v->n; i++)
        if (v->change[i].key == key && v->change[i].value == value)
            return &v->change[i];
    return NULL;
}

int64_t bh_pair_view_get(const struct bh_pair_view *v, bh_sym key, bh_sym value)
{
    const int64_t *n = bh_pair_counts_find(v->base, key, value);
    const struct bh_pair_count *c = v->n ? find_change(v, key, value) : NULL;

    return (n ? *n : 0) + (c ? c->n : 0);
}

void bh_pair_view_add(struct bh_pair_view *v, struct bh_arena *a, bh_sym key, bh_sym value,
                      int64_t n)
{
    int64_t before = bh_pair_view_get(v, key, value);
    struct bh_pair_count *c = find_change(v, key, value);

    if (!c) {
        BH_ARENA_GROW(a, v->change, v->n, v->cap);
        c = &v->change[v->n++];
        *c = (struct bh_pair_count){.key = key, .value = value, .taken = true};
    }
    c->n += n;
    v->nonzero += (before + n != 0) - (before != 0);
}

struct bh_pair_view bh_pair_view_clone(const struct bh_pair_view *v, struct bh_arena *a)
{
    struct bh_pair_view w = *v;

    w.change = v->n ? bh_arena_memdup(a, v->change, v->n * sizeof *v->change) : NULL;
    w.cap = v->n;
    return w;
}
