/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/base/test_arena.c - memory that is freed all at once
 */
#include "common/base/arena.h"
#include "common/base/poison.h"
#include "tests/unit/harness.h"

#include <malloc.h>

static void test_allocations_are_aligned_and_apart(void)
{
    struct bh_arena a;
    char *last = NULL;
    size_t last_n = 0;
    bh_arena_init(&a, 0);
    for (size_t n = 0; n < 300; n++) {
        char *p = bh_arena_alloc(&a, n);
        CU_ASSERT_EQUAL_FATAL((uintptr_t)p % 16, 0);
        memset(p, (int)n, n);
        if (last && last_n)
            CU_ASSERT_EQUAL((unsigned char)last[last_n - 1], (unsigned char)last_n);
        last = p, last_n = n;
    }
    bh_arena_fini(&a);
}

static void test_everything_survives_growth(void)
{
    struct bh_arena a;
    enum { N = 5000 };
    char *p[N];
    bh_arena_init(&a, 0);
    for (int i = 0; i < N; i++)
        p[i] = bh_arena_printf(&a, "item %d %*s", i, i % 97, "");
    for (int i = 0; i < N; i++) {
        char *want = bh_asprintf("item %d %*s", i, i % 97, "");
        CU_ASSERT_STRING_EQUAL(p[i], want);
        free(want);
    }
    bh_arena_fini(&a);
}

static void test_large_blocks_stand_aside(void)
{
    struct bh_arena a;
    bh_arena_init(&a, 0);
    char *small = bh_arena_alloc(&a, 16);
    char *large = bh_arena_alloc(&a, 1 << 20);
    char *next = bh_arena_alloc(&a, 16);
    memset(large, 1, 1 << 20);
    CU_ASSERT(next > small && next < small + 4096); /* the chunk is still in use */
    bh_arena_reset(&a);
    bh_arena_fini(&a);
}

/* Allocations that happened, as glibc counts bytes in use before and after. */
static size_t heap_bytes(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static void cycle(struct bh_arena *a)
{
    for (int i = 0; i < 1000; i++)
        memset(bh_arena_alloc(a, 100), 1, 100);
    memset(bh_arena_alloc(a, 200000), 2, 200000);
}

static void test_a_steady_cycle_allocates_nothing(void)
{
    struct bh_arena a;
    bh_arena_init(&a, 0);
    cycle(&a), bh_arena_reset(&a); /* learns the size */
    cycle(&a), bh_arena_reset(&a);
    struct bh_arena_chunk *chunk = a.head;
    CU_ASSERT_PTR_NOT_NULL(chunk);
    for (int i = 0; i < 20; i++) {
        size_t before = heap_bytes();
        cycle(&a);
        CU_ASSERT_EQUAL(heap_bytes(), before);
        CU_ASSERT_PTR_EQUAL(a.head, chunk);
        CU_ASSERT_PTR_NULL(a.large);
        bh_arena_reset(&a);
    }
    CU_ASSERT_EQUAL(a.used_bytes, 0);
    bh_arena_fini(&a);
}

static void test_a_peak_is_not_kept_for_ever(void)
{
    struct bh_arena a;
    bh_arena_init(&a, 0);
    bh_arena_alloc(&a, 8 * BH_ARENA_KEEP_MAX);
    bh_arena_reset(&a);
    CU_ASSERT_PTR_NULL(a.head);
    bh_arena_alloc(&a, 1);
    CU_ASSERT((size_t)(a.end - a.cur) <= BH_ARENA_KEEP_MAX);
    bh_arena_fini(&a);
}

static void test_the_limit_refuses_and_stays_refusing_until_reset(void)
{
    struct bh_arena a;
    bh_arena_init(&a, 1000);
    CU_ASSERT_PTR_NOT_NULL(bh_arena_alloc(&a, 900));
    CU_ASSERT(!a.failed);
    CU_ASSERT_PTR_NULL(bh_arena_alloc(&a, 200));
    CU_ASSERT(a.failed);
    CU_ASSERT_PTR_NOT_NULL(bh_arena_alloc(&a, 80)); /* still fits */
    CU_ASSERT(a.failed);
    bh_arena_reset(&a);
    CU_ASSERT(!a.failed);
    CU_ASSERT_PTR_NOT_NULL(bh_arena_alloc(&a, 992));
    CU_ASSERT_PTR_NULL(bh_arena_strdup(&a, "x"));
    bh_arena_fini(&a);
}

static void test_sizes_that_overflow_fail_like_the_limit(void)
{
    struct bh_arena a;
    volatile size_t most = SIZE_MAX;
    bh_arena_init(&a, 1 << 20);
    CU_ASSERT_PTR_NULL(bh_arena_alloc(&a, most));
    CU_ASSERT_PTR_NULL(bh_arena_alloc(&a, most - 20));
    CU_ASSERT_PTR_NULL(bh_arena_array(&a, most / 2, 8));
    CU_ASSERT_PTR_NULL(bh_arena_array(&a, 8, most / 2));
    CU_ASSERT_PTR_NULL(bh_arena_zalloc(&a, most));
    CU_ASSERT_PTR_NULL(bh_arena_memdup(&a, "x", most));
    CU_ASSERT(a.failed);
    CU_ASSERT_EQUAL(a.used_bytes, 0);
    bh_arena_fini(&a);
}

static void test_rewind_frees_what_came_after(void)
{
    struct bh_arena a;
    bh_arena_init(&a, 0);
    char *kept = bh_arena_strdup(&a, "kept");
    struct bh_arena_mark m = bh_arena_mark(&a);
    size_t used = a.used_bytes;
    for (int round = 0; round < 10; round++) {
        char *first = bh_arena_alloc(&a, 32);
        for (int i = 0; i < 2000; i++)
            memset(bh_arena_alloc(&a, 64), 3, 64);
        memset(bh_arena_alloc(&a, 3 << 20), 4, 3 << 20);
        bh_arena_rewind(&a, m);
        CU_ASSERT_EQUAL(a.used_bytes, used);
        CU_ASSERT_PTR_NULL(a.large);
        CU_ASSERT_PTR_EQUAL(bh_arena_alloc(&a, 32), first);
        bh_arena_rewind(&a, m);
    }
    CU_ASSERT_STRING_EQUAL(kept, "kept");
    bh_arena_fini(&a);
}

static void test_marks_nest_and_start_empty(void)
{
    struct bh_arena a;
    bh_arena_init(&a, 0);
    struct bh_arena_mark empty = bh_arena_mark(&a);
    char *one = bh_arena_strdup(&a, "one");
    bh_arena_alloc(&a, 100000);
    struct bh_arena_mark inner = bh_arena_mark(&a);
    bh_arena_alloc(&a, 100000);
    bh_arena_rewind(&a, inner);
    CU_ASSERT_STRING_EQUAL(one, "one");
    CU_ASSERT_PTR_NOT_NULL(a.large);
    bh_arena_rewind(&a, empty);
    CU_ASSERT_EQUAL(a.used_bytes, 0);
    CU_ASSERT_PTR_NULL(a.large);
    CU_ASSERT_STRING_EQUAL(bh_arena_strdup(&a, "two"), "two");
    bh_arena_fini(&a);
}

static void test_strings(void)
{
    struct bh_arena a;
    bh_arena_init(&a, 0);
    CU_ASSERT_STRING_EQUAL(bh_arena_strndup(&a, "abcdef", 3), "abc");
    CU_ASSERT_STRING_EQUAL(bh_arena_strndup(&a, "ab", 30), "ab");
    CU_ASSERT_STRING_EQUAL(bh_arena_strndup(&a, NULL, 0), "");
    CU_ASSERT_STRING_EQUAL(bh_arena_printf(&a, "%s=%d", "k", 5), "k=5");
    int *z = bh_arena_new_array(&a, int, 1000);
    for (int i = 0; i < 1000; i++)
        CU_ASSERT_EQUAL(z[i], 0);
    bh_arena_fini(&a);
    CU_ASSERT_STRING_EQUAL(bh_arena_strdup(&a, "usable again"), "usable again");
    bh_arena_fini(&a);
}

static void test_the_free_part_is_poisoned(void)
{
#if BH_POISONS
    struct bh_arena a;
    bh_arena_init(&a, 0);
    char *p = bh_arena_alloc(&a, 30), *q = bh_arena_alloc(&a, 32);
    CU_ASSERT(!__asan_address_is_poisoned(p) && !__asan_address_is_poisoned(p + 29));
    CU_ASSERT(__asan_address_is_poisoned(p + 30));
    CU_ASSERT(!__asan_address_is_poisoned(q + 31));
    CU_ASSERT(__asan_address_is_poisoned(q + 32));
    bh_arena_reset(&a);
    CU_ASSERT(__asan_address_is_poisoned(p));
    bh_arena_fini(&a);
#else
    bh_test_skip("needs SANITIZE=address");
#endif
}

BH_TESTS("common/base/arena",
         {"allocations are aligned and apart", test_allocations_are_aligned_and_apart},
         {"everything survives growth", test_everything_survives_growth},
         {"large blocks stand aside", test_large_blocks_stand_aside},
         {"a steady cycle allocates nothing", test_a_steady_cycle_allocates_nothing},
         {"a peak is not kept for ever", test_a_peak_is_not_kept_for_ever},
         {"the limit refuses until reset", test_the_limit_refuses_and_stays_refusing_until_reset},
         {"sizes that overflow fail like the limit", test_sizes_that_overflow_fail_like_the_limit},
         {"rewind frees what came after", test_rewind_frees_what_came_after},
         {"marks nest and may be of the empty arena", test_marks_nest_and_start_empty},
         {"strings are copied and terminated", test_strings},
         {"the free part is poisoned", test_the_free_part_is_poisoned})
