/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/base/test_map.c - hash tables against a plain model
 */
#include "common/base/map.h"
#include "tests/unit/harness.h"

static void test_zeroed_table_is_empty(void)
{
    struct bh_map m = {0};
    size_t it = 0;
    CU_ASSERT_PTR_NULL(bh_map_get(&m, "a", 1));
    CU_ASSERT_PTR_NULL(bh_map_del(&m, "a", 1));
    CU_ASSERT_PTR_NULL(bh_map_next(&m, &it));
    bh_map_clear(&m);
    bh_map_fini(&m);
}

static void test_put_get_replace_delete(void)
{
    struct bh_map m = {0};
    int a, b;
    char key[] = "key";
    CU_ASSERT_PTR_NULL(bh_map_put(&m, key, 3, &a));
    key[0] = 'x'; /* the map has its own copy */
    CU_ASSERT_PTR_EQUAL(bh_map_get(&m, "key", 3), &a);
    CU_ASSERT_PTR_NULL(bh_map_get(&m, "ke", 2));
    CU_ASSERT_PTR_NULL(bh_map_get(&m, "key\0", 4));
    CU_ASSERT_PTR_EQUAL(bh_map_put(&m, "key", 3, &b), &a);
    CU_ASSERT_EQUAL(m.len, 1);
    CU_ASSERT_PTR_EQUAL(bh_map_del(&m, "key", 3), &b);
    CU_ASSERT_PTR_NULL(bh_map_del(&m, "key", 3));
    CU_ASSERT_EQUAL(m.len, 0);
    CU_ASSERT_PTR_NULL(bh_map_put(&m, "", 0, &a)); /* the empty key is a key */
    CU_ASSERT_PTR_EQUAL(bh_map_get(&m, "", 0), &a);
    CU_ASSERT_PTR_NULL(bh_map_put(&m, "a\0b", 3, &b));
    CU_ASSERT_PTR_EQUAL(bh_map_get(&m, "a\0b", 3), &b);
    CU_ASSERT_PTR_NULL(bh_map_get(&m, "a\0c", 3));
    bh_map_fini(&m);
}

enum { KEYS = 700 };

static void test_random_operations_match_a_model(void)
{
    struct bh_map m = {0};
    static void *model[KEYS];
    static char values[1000];
    struct bh_rand r;
    size_t live = 0;
    bh_rand_seed(&r, 11);
    memset(model, 0, sizeof(model));
    for (int i = 0; i < 200000; i++) {
        size_t k = bh_rand_below(&r, KEYS);
        char key[32];
        size_t n = (size_t)snprintf(key, sizeof(key), "k%zu", k);
        void *v = &values[bh_rand_below(&r, sizeof(values))];
        switch (bh_rand_below(&r, 3)) {
        case 0:
            live += !model[k];
            CU_ASSERT_PTR_EQUAL_FATAL(bh_map_put(&m, key, n, v), model[k]);
            model[k] = v;
            break;
        case 1:
            live -= !!model[k];
            CU_ASSERT_PTR_EQUAL_FATAL(bh_map_del(&m, key, n), model[k]);
            model[k] = NULL;
            break;
        default:
            CU_ASSERT_PTR_EQUAL_FATAL(bh_map_get(&m, key, n), model[k]);
        }
        CU_ASSERT_EQUAL_FATAL(m.len, live);
    }
    size_t seen = 0;
    struct bh_map_entry *e;
    for (size_t it = 0; (e = bh_map_next(&m, &it));) {
        CU_ASSERT_PTR_EQUAL(e->value, model[strtoul(e->key + 1, NULL, 10)]);
        seen++;
    }
    CU_ASSERT_EQUAL(seen, live);
    CU_ASSERT(m.cap <= 4 * KEYS); /* deleted slots are reused, not collected */
    bh_map_fini(&m);
}

static void test_delete_during_iteration(void)
{
    struct bh_map m = {0};
    int x;
    for (int i = 0; i < 1000; i++) {
        char key[16];
        bh_map_put(&m, key, (size_t)snprintf(key, sizeof(key), "%d", i), &x);
    }
    struct bh_map_entry *e;
    size_t seen = 0;
    for (size_t it = 0; (e = bh_map_next(&m, &it)); seen++)
        if (seen % 2)
            bh_map_del(&m, e->key, e->key_len);
    CU_ASSERT_EQUAL(seen, 1000);
    CU_ASSERT_EQUAL(m.len, 500);
    bh_map_clear(&m);
    CU_ASSERT_EQUAL(m.len, 0);
    CU_ASSERT_PTR_NULL(bh_map_get(&m, "1", 1));
    bh_map_put(&m, "1", 1, &x);
    CU_ASSERT_PTR_EQUAL(bh_map_get(&m, "1", 1), &x);
    bh_map_fini(&m);
}

static void test_tables_have_different_seeds(void)
{
    struct bh_map a = {0}, b = {0};
    int x;
    bh_map_put(&a, "k", 1, &x), bh_map_put(&b, "k", 1, &x);
    CU_ASSERT_NOT_EQUAL(a.seed, b.seed);
    bh_map_fini(&a), bh_map_fini(&b);
}

static void test_umap_random_operations_match_a_model(void)
{
    struct bh_umap m = {0};
    static uint64_t model[KEYS];
    static bool present[KEYS];
    struct bh_rand r;
    size_t live = 0;
    bh_rand_seed(&r, 12);
    memset(present, 0, sizeof(present));
    for (int i = 0; i < 200000; i++) {
        size_t at = bh_rand_below(&r, KEYS);
        uint64_t k = at << 40 | (at == 5 ? UINT64_MAX >> 24 : 0), v = bh_rand_u64(&r), got = 77;
        switch (bh_rand_below(&r, 3)) {
        case 0:
            live += !present[at];
            bh_umap_put(&m, k, v);
            model[at] = v;
            present[at] = true;
            break;
        case 1:
            live -= present[at];
            CU_ASSERT_EQUAL_FATAL(bh_umap_del(&m, k), present[at]);
            present[at] = false;
            break;
        default:
            CU_ASSERT_EQUAL_FATAL(bh_umap_get(&m, k, &got), present[at]);
            CU_ASSERT_EQUAL_FATAL(got, present[at] ? model[at] : 77);
        }
        CU_ASSERT_EQUAL_FATAL(m.len, live);
    }
    size_t seen = 0;
    uint64_t k, v;
    for (size_t it = 0; bh_umap_next(&m, &it, &k, &v); seen++)
        CU_ASSERT(present[k >> 40] && model[k >> 40] == v);
    CU_ASSERT_EQUAL(seen, live);
    CU_ASSERT(m.cap <= 4 * KEYS);
    bh_umap_clear(&m);
    CU_ASSERT(!bh_umap_get(&m, 0, NULL));
    bh_umap_put(&m, 0, 0); /* zero is a key and a value like any other */
    CU_ASSERT(bh_umap_get(&m, 0, &v) && v == 0);
    bh_umap_fini(&m);
}

static void test_umap_regular_keys_do_not_pile_up(void)
{
    /* Multiples of a power of two would share a slot without mixing, and this would take
     * minutes. */
    struct bh_umap m = {0};
    for (uint64_t i = 0; i < 200000; i++)
        bh_umap_put(&m, i << 32, i);
    uint64_t v;
    for (uint64_t i = 0; i < 200000; i++)
        CU_ASSERT_FATAL(bh_umap_get(&m, i << 32, &v) && v == i);
    bh_umap_fini(&m);
}

BH_TESTS("common/base/map", {"a zeroed table is empty", test_zeroed_table_is_empty},
         {"put, get, replace, delete", test_put_get_replace_delete},
         {"random operations match a model", test_random_operations_match_a_model},
         {"deleting during iteration", test_delete_during_iteration},
         {"tables have different seeds", test_tables_have_different_seeds},
         {"umap: random operations match a model", test_umap_random_operations_match_a_model},
         {"umap: regular keys do not pile up", test_umap_regular_keys_do_not_pile_up})
