/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/space.c - size classes, free lists, retirement queue
 */
#include "common/snapshot/space.h"

#define SMALL_STEP    16u
#define SMALL_MAX     1024u
#define SMALL_CLASSES (SMALL_MAX / SMALL_STEP)

/* Class of n bytes and the bytes a block of it has. Classes 0..63: 16, 32 .. 1024; then quarters of
 * the doublings: 1280, 1536, 1792, 2048, 2560 .. */
static unsigned class_of(uint64_t n, uint64_t *ret_bytes)
{
    bh_assert(n > 0);
    if (n <= SMALL_MAX) {
        unsigned c = (unsigned)((n - 1) / SMALL_STEP);
        *ret_bytes = (uint64_t)(c + 1) * SMALL_STEP;
        return c;
    }
    unsigned top = 63u - (unsigned)__builtin_clzll(n - 1); /* 2^top <= n-1 */
    uint64_t quarter = 1ull << (top - 2);
    uint64_t q = (n - (1ull << top) + quarter - 1) / quarter; /* 1..4 */
    unsigned c = SMALL_CLASSES + (top - 10) * 4 + (unsigned)(q - 1);
    bh_assert(c < BH_SNAP_CLASSES);
    *ret_bytes = (1ull << top) + q * quarter;
    return c;
}

void bh_snap_space_reset(struct bh_snap_space *s, uint64_t begin, uint64_t end)
{
    bh_assert(begin % 16 == 0 && begin <= end);
    for (unsigned c = 0; c < BH_SNAP_CLASSES; c++)
        s->free_list[c].n = 0;
    s->fresh = begin;
    s->end = end;
    s->retired_first = s->retired_n = 0;
    s->live_bytes = s->retired_bytes = 0;
}

void bh_snap_space_fini(struct bh_snap_space *s)
{
    for (unsigned c = 0; c < BH_SNAP_CLASSES; c++)
        free(s->free_list[c].p);
    free(s->retired);
    memset(s, 0, sizeof(*s));
}

uint64_t bh_snap_space_round(uint64_t n)
{
    uint64_t bytes;
    class_of(n, &bytes);
    return bytes;
}

uint64_t bh_snap_space_take(struct bh_snap_space *s, uint64_t n)
{
    uint64_t bytes, off;
    struct bh_snap_offsets *list = &s->free_list[class_of(n, &bytes)];
    if (list->n) {
        off = list->p[--list->n];
    } else if (s->end - s->fresh >= bytes) {
        off = s->fresh;
        s->fresh += bytes;
    } else {
        return 0;
    }
    s->live_bytes += bytes;
    return off;
}

static void push_free(struct bh_snap_space *s, uint64_t off, uint64_t n)
{
    uint64_t bytes;
    struct bh_snap_offsets *list = &s->free_list[class_of(n, &bytes)];
    BH_GROW(list->p, list->n, list->cap);
    list->p[list->n++] = off;
}

void bh_snap_space_give_back(struct bh_snap_space *s, uint64_t off, uint64_t n)
{
    s->live_bytes -= bh_snap_space_round(n);
    push_free(s, off, n);
}

void bh_snap_space_retire(struct bh_snap_space *s, uint64_t off, uint64_t n, uint64_t pos)
{
    uint64_t bytes = bh_snap_space_round(n);
    bh_assert(bytes <= UINT32_MAX && pos >= bh_snap_space_last_retired(s));
    if (s->retired_n == s->retired_cap) {
        size_t cap = s->retired_cap ? s->retired_cap * 2 : 1024;
        struct bh_snap_retired *p = bh_reallocarray(NULL, cap, sizeof(*p));
        for (size_t i = 0; i < s->retired_n; i++)
            p[i] = s->retired[(s->retired_first + i) & (s->retired_cap - 1)];
        free(s->retired);
        s->retired = p;
        s->retired_cap = cap;
        s->retired_first = 0;
    }
    s->retired[(s->retired_first + s->retired_n++) & (s->retired_cap - 1)] =
        (struct bh_snap_retired){.pos = pos, .off = off, .bytes = (uint32_t)bytes};
    s->live_bytes -= bytes;
    s->retired_bytes += bytes;
}

uint64_t bh_snap_space_last_retired(const struct bh_snap_space *s)
{
    if (!s->retired_n)
        return 0;
    return s->retired[(s->retired_first + s->retired_n - 1) & (s->retired_cap - 1)].pos;
}

void bh_snap_space_recycle(struct bh_snap_space *s, uint64_t pos)
{
    while (s->retired_n) {
        const struct bh_snap_retired *r = &s->retired[s->retired_first];
        if (r->pos > pos)
            break;
        push_free(s, r->off, r->bytes);
        s->retired_bytes -= r->bytes;
        s->retired_first = (s->retired_first + 1) & (s->retired_cap - 1);
        s->retired_n--;
    }
}
