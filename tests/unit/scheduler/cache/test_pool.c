/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/cache/test_pool.c - blocks of many sizes, in small slabs and in large pages
 */
#include "scheduler/cache/pool.h"
#include "tests/unit/harness.h"

#define BLOCKS 20000u /* 1.5 times what the small slabs hold */

struct block {
    unsigned char *p;
    size_t n;
};

static size_t size_of(unsigned i)
{
    return 8 + i * 37u % 1200;
}

static void fill(struct block *b, unsigned i)
{
    b->p[0] = (unsigned char)i;
    b->p[b->n - 1] = (unsigned char)(i >> 8);
}

static bool is_filled(const struct block *b, unsigned i)
{
    return b->p[0] == (unsigned char)i && b->p[b->n - 1] == (unsigned char)(i >> 8);
}

static void test_blocks_are_apart_and_come_back(void)
{
    struct block *v = bh_calloc(BLOCKS, sizeof *v);
    struct bh_pool pool = {0};

    for (unsigned i = 0; i < BLOCKS; i++) {
        v[i] = (struct block){bh_pool_alloc(&pool, size_of(i)), size_of(i)};
        CU_ASSERT_FATAL((uintptr_t)v[i].p % BH_POOL_STEP == 0);
        fill(&v[i], i);
    }
    CU_ASSERT(pool.n_slabs > BH_POOL_SMALL_SLABS);
    for (unsigned i = 0; i < BLOCKS; i++)
        CU_ASSERT_FATAL(is_filled(&v[i], i));
    uint32_t slabs = pool.n_slabs;
    char *cur = pool.cur;
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = round; i < BLOCKS; i += 2)
            bh_pool_free(&pool, v[i].p, v[i].n);
        for (unsigned i = round; i < BLOCKS; i += 2) {
            v[i].p = bh_pool_alloc(&pool, v[i].n);
            fill(&v[i], i);
        }
        for (unsigned i = 0; i < BLOCKS; i++)
            CU_ASSERT_FATAL(is_filled(&v[i], i));
    }
    CU_ASSERT(pool.n_slabs == slabs && pool.cur == cur); /* a steady state takes nothing new */
    bh_pool_fini(&pool);
    CU_ASSERT(pool.slabs == NULL && pool.n_slabs == 0);
    free(v);
}

static void test_large_blocks_and_copies(void)
{
    static const char text[] = "a record";
    struct bh_pool pool = {0};
    unsigned char *large = bh_pool_alloc(&pool, BH_POOL_MAX_BYTES + 1);
    char *copy = bh_pool_memdup(&pool, text, sizeof text), *empty = bh_pool_memdup(&pool, text, 0);

    large[BH_POOL_MAX_BYTES] = 1;
    CU_ASSERT_STRING_EQUAL(copy, text);
    CU_ASSERT(empty && empty != copy);
    bh_pool_free(&pool, large, BH_POOL_MAX_BYTES + 1);
    bh_pool_free(&pool, NULL, 10);
    bh_pool_free(&pool, copy, sizeof text);
    CU_ASSERT(bh_pool_alloc(&pool, sizeof text) == copy);
    bh_pool_fini(&pool);
}

BH_TESTS("scheduler/cache/pool",
         {"blocks are apart, and come back", test_blocks_are_apart_and_come_back},
         {"large blocks, copies", test_large_blocks_and_copies})
