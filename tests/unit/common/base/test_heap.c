/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/base/test_heap.c - the indexed heap against a plain model
 */
#include "common/base/heap.h"
#include "tests/unit/harness.h"

struct item {
    int key;
    uint32_t index;
};

static bool less(const void *a, const void *b)
{
    return ((const struct item *)a)->key < ((const struct item *)b)->key;
}

static void test_pops_in_order(void)
{
    struct item items[500];
    struct bh_heap h;
    struct bh_rand r;
    int last = -1;

    bh_rand_seed(&r, 7);
    bh_heap_init(&h, offsetof(struct item, index), less);
    for (size_t i = 0; i < 500; i++) {
        items[i] = (struct item){(int)bh_rand_below(&r, 100), BH_HEAP_NONE};
        bh_heap_push(&h, &items[i]);
    }
    for (size_t i = 0; i < 500; i++) {
        struct item *it = bh_heap_peek(&h);
        bh_heap_remove(&h, it);
        CU_ASSERT_FATAL(it != NULL);
        CU_ASSERT(it->key >= last);
        CU_ASSERT(it->index == BH_HEAP_NONE);
        last = it->key;
    }
    CU_ASSERT(bh_heap_peek(&h) == NULL);
    bh_heap_fini(&h);
}

static void test_random_operations_match_a_model(void)
{
    struct item items[64];
    bool in[64] = {0};
    struct bh_heap h;
    struct bh_rand r;

    bh_rand_seed(&r, 11);
    bh_heap_init(&h, offsetof(struct item, index), less);
    for (size_t i = 0; i < 64; i++)
        items[i].index = BH_HEAP_NONE;
    for (int step = 0; step < 20000; step++) {
        size_t i = bh_rand_below(&r, 64);
        int min = INT32_MAX;
        if (!in[i]) {
            items[i].key = (int)bh_rand_below(&r, 1000);
            bh_heap_push(&h, &items[i]);
            in[i] = true;
        } else if (bh_rand_below(&r, 2)) {
            items[i].key = (int)bh_rand_below(&r, 1000);
            bh_heap_fix(&h, &items[i]);
        } else {
            bh_heap_remove(&h, &items[i]);
            in[i] = false;
        }
        for (size_t k = 0; k < 64; k++)
            if (in[k])
                min = BH_MIN(min, items[k].key);
        if (h.n)
            CU_ASSERT(((struct item *)bh_heap_peek(&h))->key == min);
        for (size_t k = 0; k < 64; k++)
            CU_ASSERT(in[k] ? h.items[items[k].index] == &items[k]
                            : items[k].index == BH_HEAP_NONE);
    }
    bh_heap_fini(&h);
}

BH_TESTS("common/base/heap", {"pops in order", test_pops_in_order},
         {"random operations match a model", test_random_operations_match_a_model})
