/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/pool.c - memory for records that come and go
 *
 * Runs in: the engine's thread.
 */
#include "scheduler/cache/pool.h"

static size_t class_of(size_t n)
{
    return (n + BH_POOL_STEP - 1) / BH_POOL_STEP;
}

void bh_pool_fini(struct bh_pool *p)
{
    while (p->slabs) {
        void *next = *(void **)p->slabs;
        free(p->slabs);
        p->slabs = next;
    }
    memset(p, 0, sizeof *p);
}

void *bh_pool_alloc(struct bh_pool *p, size_t n)
{
    size_t c = class_of(n ? n : 1);

    if (c * BH_POOL_STEP > BH_POOL_MAX_BYTES)
        return bh_malloc(n);
    if (p->free[c]) {
        void *b = p->free[c];
        p->free[c] = *(void **)b;
        return b;
    }
    if ((size_t)(p->end - p->cur) < c * BH_POOL_STEP) {
        char *slab = bh_malloc(BH_POOL_SLAB_BYTES);
        *(void **)(void *)slab = p->slabs;
        p->slabs = slab;
        p->cur = slab + 16;
        p->end = slab + BH_POOL_SLAB_BYTES;
    }
    void *b = p->cur;
    p->cur += c * BH_POOL_STEP;
    return b;
}

void bh_pool_free(struct bh_pool *p, void *block, size_t n)
{
    size_t c = class_of(n ? n : 1);

    if (!block)
        return;
    if (c * BH_POOL_STEP > BH_POOL_MAX_BYTES) {
        free(block);
        return;
    }
    *(void **)block = p->free[c];
    p->free[c] = block;
}
