/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/record_build.c - builds a record in an arena
 */
#include "common/k8s/record_layout.h"

#define FIRST_CAP 1024

__attribute__((noinline)) static bool grow(struct bh_rec_builder *b, size_t need)
{
    size_t cap = b->cap ? b->cap : FIRST_CAP;

    if (need > BH_REC_MAX_BYTES)
        return false;
    while (cap < need)
        cap *= 2;
    char *p = bh_arena_zalloc(b->a, cap);
    if (!p)
        return false;
    if (b->n)
        memcpy(p, b->p, b->n);
    b->p = p;
    b->cap = cap;
    return true;
}

void bh_rec_begin(struct bh_rec_builder *b, struct bh_arena *a, enum bh_rec_type t, size_t head)
{
    struct bh_slice s;

    *b = (struct bh_rec_builder){.a = a};
    struct bh_rec_head *h = bh_rec_room(b, 1, head, &s);
    if (h)
        *h = (struct bh_rec_head){.type = (uint16_t)t, .layout = BH_REC_LAYOUT};
}

void *bh_rec_room(struct bh_rec_builder *b, size_t n, size_t size, struct bh_slice *ret)
{
    *ret = (struct bh_slice){0, 0};
    if (n == 0)
        return NULL;
    b->failed |= n > BH_REC_MAX_BYTES / size;
    size_t need = b->failed ? 0 : b->n + BH_REC_ALIGN(n * size);
    if (b->failed || (need > b->cap && !grow(b, need))) {
        b->failed = true;
        return NULL;
    }
    *ret = (struct bh_slice){(uint32_t)b->n, (uint32_t)n};
    b->n = need;
    return b->p + ret->off;
}

struct bh_slice bh_rec_put(struct bh_rec_builder *b, const void *items, size_t n, size_t size)
{
    struct bh_slice s;
    void *p = bh_rec_room(b, n, size, &s);

    if (p)
        memcpy(p, items, n * size);
    return s;
}

struct bh_slice bh_rec_put_text(struct bh_rec_builder *b, const char *s)
{
    struct bh_slice slice = bh_rec_put(b, s, strlen(s) + 1, 1);

    slice.n -= slice.n ? 1 : 0;
    return slice;
}

void *bh_rec_finish(struct bh_rec_builder *b)
{
    if (b->failed)
        return NULL;
    ((struct bh_rec_head *)b->p)->size = (uint32_t)b->n;
    return b->p;
}

void bh_rec_sort(void *v, size_t n, size_t size, int (*order)(const void *, const void *))
{
    const char *p = v;

    for (size_t i = 1; i < n; i++, p += size) {
        if (order(p, p + size) > 0) {
            qsort(v, n, size, order);
            return;
        }
    }
}

int bh_rec_by_name(const void *pa, const void *pb)
{
    const struct bh_res *a = pa, *b = pb;

    if (a->name != b->name)
        return a->name < b->name ? -1 : 1;
    return a->value < b->value ? -1 : a->value > b->value;
}
