/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/pool.c - memory for records that come and go
 */
#include "scheduler/cache/pool.h"

#include "common/base/pages.h"

struct bh_pool_slab {
    struct bh_pool_slab *older;
    void *memory; /* of the heap; NULL: the slab is of large pages */
};
_Static_assert(sizeof(struct bh_pool_slab) <= BH_POOL_STEP, "stands in front of the blocks");

static size_t class_of(size_t n)
{
    return (n + BH_POOL_STEP - 1) / BH_POOL_STEP;
}

void bh_pool_fini(struct bh_pool *p)
{
    while (p->slabs) {
        struct bh_pool_slab *older = p->slabs->older;
        if (p->slabs->memory)
            free(p->slabs->memory);
        else
            bh_pages_free(p->slabs, BH_PAGES_LARGE);
        p->slabs = older;
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
        /* Large pages when there is enough to fill them. */
        bool small = p->n_slabs++ < BH_POOL_SMALL_SLABS;
        char *memory = small ? bh_malloc(BH_POOL_SLAB_BYTES + BH_POOL_STEP) : NULL;
        char *at = small ? memory + (-(uintptr_t)memory & (BH_POOL_STEP - 1))
                         : bh_pages_new(BH_PAGES_LARGE);
        struct bh_pool_slab *s = (struct bh_pool_slab *)(void *)at;
        *s = (struct bh_pool_slab){.older = p->slabs, .memory = memory};
        p->slabs = s;
        p->cur = at + BH_POOL_STEP;
        p->end = at + (small ? BH_POOL_SLAB_BYTES : BH_PAGES_LARGE);
    }
    void *b = p->cur;
    p->cur += c * BH_POOL_STEP;
    return b;
}

void *bh_pool_memdup(struct bh_pool *p, const void *from, size_t n)
{
    return n ? memcpy(bh_pool_alloc(p, n), from, n) : bh_pool_alloc(p, n);
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
