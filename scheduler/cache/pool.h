/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/pool.h - memory for records that come and go: size classes over slabs
 *
 * Owns:       slabs: the first BH_POOL_SMALL_SLABS of BH_POOL_SLAB_BYTES, the others large pages
 *             (common/base/pages.h); they are returned when the pool ends, not before.
 * Invariants: a freed block goes to the free list of its class and serves the next request of that
 *             class, so a steady state of assume and forget calls malloc zero times.
 *             Requests above BH_POOL_MAX_BYTES go to the heap.
 * Runs in:    the engine's thread.
 */
#ifndef BH_POOL_H
#define BH_POOL_H

#include "common/base/base.h"

#define BH_POOL_STEP        32u
#define BH_POOL_MAX_BYTES   4096u
#define BH_POOL_SLAB_BYTES  (256u << 10)
#define BH_POOL_SMALL_SLABS 32u /* 8 MiB */

struct bh_pool_slab;
struct bh_pool {
    void *free[BH_POOL_MAX_BYTES / BH_POOL_STEP + 1]; /* by class, linked through the first word */
    struct bh_pool_slab *slabs;                       /* newest first */
    uint32_t n_slabs;
    char *cur, *end;
};
void bh_pool_fini(struct bh_pool *p);
void *bh_pool_alloc(struct bh_pool *p, size_t n); /* 32-byte aligned, uninitialised */
void *bh_pool_memdup(struct bh_pool *p, const void *from, size_t n);
void bh_pool_free(struct bh_pool *p, void *block, size_t n); /* n as allocated; NULL allowed */
#endif
