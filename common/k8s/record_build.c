/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/record_build.c - builds a record in an arena
 */
#include "common/k8s/record_layout.h"

#define FIRST_CAP 1024

static bool grow(struct bh_rec_builder *b, size_t need)
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

static char *reserve(struct bh_rec_builder *b, size_t bytes, uint32_t *ret_off)
{
    size_t need = b->n + BH_REC_ALIGN(bytes);

    if (b->failed || bytes > BH_REC_MAX_BYTES || (need > b->cap && !grow(b, need))) {
        b->failed = true;
        return NULL;
    }
    *ret_off = (uint32_t)b->n;
    b->n = need;
    return b->p + *ret_off;
}

void bh_rec_begin(struct bh_rec_builder *b, struct bh_arena *a, enum bh_rec_type t, size_t head)
{
    uint32_t off;

    *b = (struct bh_rec_builder){.a = a};
    struct bh_rec_head *h = (struct bh_rec_head *)reserve(b, head, &off);
    if (h)
        *h = (struct bh_rec_head){.type = (uint16_t)t, .layout = BH_REC_LAYOUT};
}

void *bh_rec_room(struct bh_rec_builder *b, size_t n, size_t size, struct bh_slice *ret)
{
    uint32_t off = 0;

    *ret = (struct bh_slice){0, 0};
    if (n == 0)
        return NULL;
    if (n > BH_REC_MAX_BYTES / size) {
        b->failed = true;
        return NULL;
    }
    void *p = reserve(b, n * size, &off);
    if (p)
        *ret = (struct bh_slice){off, (uint32_t)n};
    return p;
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
