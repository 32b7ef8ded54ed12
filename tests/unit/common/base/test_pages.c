/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/base/test_pages.c - large arrays: contents, boundaries, nothing shared
 */
#include "common/base/pages.h"

#include <pthread.h>

#include "tests/unit/harness.h"

#define BLOCKS 40u
#define STEPS  4000u

struct block {
    unsigned char *p;
    size_t n;
    unsigned char mark;
};

static size_t any_size(struct bh_rand *r)
{
    static const size_t around[] = {1,
                                    64,
                                    BH_PAGES_MIN - 64,
                                    BH_PAGES_MIN,
                                    BH_PAGES_MIN + 1,
                                    5 * BH_PAGES_UNIT,
                                    BH_PAGES_LARGE / 2,
                                    BH_PAGES_LARGE - BH_PAGES_UNIT - 7,
                                    BH_PAGES_LARGE,
                                    BH_PAGES_LARGE + 3};

    return around[bh_rand_below(r, BH_ARRAY_LEN(around))] + bh_rand_below(r, 40);
}

/* Both ends and a place in between: pages of a block that nobody touches stay untouched. */
static bool is(const struct block *b, size_t n, unsigned char x)
{
    return b->p[0] == x && b->p[n / 2] == x && b->p[n - 1] == x;
}

static void mark(struct block *b, unsigned char x)
{
    b->mark = x;
    b->p[0] = b->p[b->n / 2] = b->p[b->n - 1] = x;
}

static bool all_zero(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

/* false: something was not as it should be. */
static bool use(uint64_t seed)
{
    struct block v[BLOCKS] = {0};
    struct bh_rand r;
    bool ok = true;

    bh_rand_seed(&r, seed);
    for (unsigned step = 0; step < STEPS && ok; step++) {
        struct block *b = &v[bh_rand_below(&r, BLOCKS)];
        if (b->p) {
            ok = is(b, b->n, b->mark);
            bh_pages_free(b->p, b->n);
            b->p = NULL;
        } else {
            b->n = any_size(&r);
            b->p = bh_pages_new(b->n);
            ok = (uintptr_t)b->p % 64 == 0 && is(b, b->n, 0) &&
                 (b->n < BH_PAGES_LARGE || (uintptr_t)b->p % BH_PAGES_LARGE == 0);
            mark(b, (unsigned char)(1 + step % 250));
        }
    }
    for (unsigned i = 0; i < BLOCKS; i++)
        bh_pages_free(v[i].p, v[i].n);
    return ok;
}

static void test_blocks_are_apart(void)
{
    CU_ASSERT(use(1));
}

static void *in_thread(void *arg)
{
    return use((uint64_t)(uintptr_t)arg) ? arg : NULL;
}

static void test_threads(void)
{
    pthread_t t[3];

    for (uintptr_t i = 0; i < BH_ARRAY_LEN(t); i++)
        CU_ASSERT_FATAL(pthread_create(&t[i], NULL, in_thread, (void *)(i + 2)) == 0);
    for (uintptr_t i = 0; i < BH_ARRAY_LEN(t); i++) {
        void *ret = NULL;
        CU_ASSERT(pthread_join(t[i], &ret) == 0 && ret);
    }
}

static void test_resize_keeps_what_fits(void)
{
    static const size_t sizes[] = {
        0, 100, BH_PAGES_MIN, 4 * BH_PAGES_LARGE + 100, BH_PAGES_LARGE, 3 * BH_PAGES_UNIT, 1};
    unsigned char *p = NULL;

    for (unsigned i = 1; i < BH_ARRAY_LEN(sizes); i++) {
        size_t old = sizes[i - 1], n = sizes[i];
        p = bh_pages_resize(p, old, n);
        for (size_t k = 0; k < BH_MIN(old, n); k++)
            CU_ASSERT_FATAL(p[k] == (unsigned char)(k * 7 + 1));
        CU_ASSERT_FATAL(n <= old || all_zero(p + old, n - old));
        for (size_t k = 0; k < n; k++)
            p[k] = (unsigned char)(k * 7 + 1);
    }
    bh_pages_free(p, 1);
    bh_pages_free(NULL, 0);
    bh_pages_free(NULL, BH_PAGES_LARGE);
}

/* A freed block goes to the next one who asks: without what the former one left in it. */
static void test_used_memory_is_zero_again(void)
{
    size_t n = 2 * BH_PAGES_MIN;
    unsigned char *keep = bh_pages_new(n), *p = bh_pages_new(n);

    for (unsigned round = 0; round < 3; round++) {
        CU_ASSERT(all_zero(p, n));
        memset(p, 0xff, n);
        bh_pages_free(p, n);
        p = bh_pages_new(n);
    }
    bh_pages_free(p, n);
    bh_pages_free(keep, n);
}

BH_TESTS("common/base/pages", {"blocks are apart, on their boundaries", test_blocks_are_apart},
         {"three threads at once", test_threads},
         {"resizing keeps what fits", test_resize_keeps_what_fits},
         {"used memory is zero again", test_used_memory_is_zero_again})
