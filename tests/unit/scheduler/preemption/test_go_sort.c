/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/preemption/test_go_sort.c - the same comparisons, swaps and result as Go's
 */
#include <string.h>

#include "scheduler/preemption/go_sort.h"
#include "tests/unit/harness.h"

struct list {
    int kind;
    int32_t n, v[1000];
    int64_t compared, swapped;
};

/* What element i of n is sorted by. */
static uint32_t key(int kind, uint32_t n, uint32_t i)
{
    switch (kind) {
    case 0:
        return i * 7919 % 101; /* many equal ones */
    case 1:
        return n - i;
    case 2:
        return i % 37 ? i : 0; /* nearly sorted */
    case 3:
        return i * 2654435761u >> 7;
    case 4:
        return i < n / 2 ? i : n - i;
    default:
        return i % 2;
    }
}

static bool less(void *arg, int32_t i, int32_t j)
{
    struct list *l = arg;

    CU_ASSERT_FATAL(i >= 0 && i < l->n && j >= 0 && j < l->n);
    l->compared++;
    int32_t a = l->v[i], b = l->v[j];
    if (l->kind == 6) /* no order at all */
        return (a * a + 3 * b) % 7 < 3;
    if (l->kind == 7)
        return true;
    return key(l->kind, (uint32_t)l->n, (uint32_t)a) < key(l->kind, (uint32_t)l->n, (uint32_t)b);
}

static void swap(void *arg, int32_t i, int32_t j)
{
    struct list *l = arg;
    int32_t t = l->v[i];

    CU_ASSERT_FATAL(i >= 0 && i < l->n && j >= 0 && j < l->n);
    l->swapped++;
    l->v[i] = l->v[j];
    l->v[j] = t;
}

static void sort(struct list *l, int kind, int32_t n)
{
    *l = (struct list){.kind = kind, .n = n};
    for (int32_t i = 0; i < n; i++)
        l->v[i] = i;
    bh_go_sort(&(struct bh_go_sort){.less = less, .swap = swap, .arg = l}, n);
}

static uint64_t hash(const struct list *l)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (int32_t i = 0; i < l->n; i++)
        h = (h ^ (uint64_t)l->v[i]) * 0x100000001b3u;
    return h;
}

/* From a second implementation of the algorithm, made from its description. */
static void test_same_steps(void)
{
    static const struct {
        int kind;
        int32_t n;
        int64_t compared, swapped;
        uint64_t order;
    } rows[] = {
        {0, 5, 7, 3, 0x0d6830c027672909u},          {0, 13, 41, 18, 0x7be1ff31016db8d7u},
        {0, 49, 265, 129, 0xa6440301c61e4635u},     {0, 50, 280, 133, 0x91b66ecd5ab28b40u},
        {0, 200, 1493, 538, 0x2c4b65e98a299ae7u},   {0, 1000, 8314, 1812, 0xd6e5c5fef92c18e5u},
        {1, 5, 10, 10, 0xe3671b16371fea8fu},        {1, 13, 33, 18, 0x1d2fa5645d0dec3fu},
        {1, 49, 187, 72, 0x33bb9373b5503e3fu},      {1, 50, 61, 25, 0x03420ad05be53744u},
        {1, 200, 211, 100, 0x816c8d99fa876835u},    {1, 1000, 1011, 500, 0xa84907c59e63feb5u},
        {2, 5, 4, 0, 0x3378e3d0c52edfafu},          {2, 13, 15, 0, 0xb96137ea2d10008fu},
        {2, 49, 237, 39, 0x05a2811fc7fec531u},      {2, 50, 213, 41, 0x91e66900d5e8bf00u},
        {2, 200, 1167, 542, 0xfdd221be95963431u},   {2, 1000, 13830, 6243, 0x9fa5995839595a97u},
        {3, 5, 7, 3, 0x821da8c8651d9771u},          {3, 13, 50, 33, 0x1664a8cb8b61e591u},
        {3, 49, 293, 137, 0x7ebc8661c3abd9f7u},     {3, 50, 286, 131, 0xaaf3064aa6e12518u},
        {3, 200, 1537, 567, 0xea8652ca2bec0415u},   {3, 1000, 10352, 3494, 0x3ec542a2a82672adu},
        {4, 5, 7, 3, 0x676427d0e29340dbu},          {4, 13, 34, 15, 0x505d57419aa7370bu},
        {4, 49, 235, 107, 0x91e08c84ab670455u},     {4, 50, 251, 116, 0xe9d35320d0db7cd2u},
        {4, 200, 1420, 545, 0x1d37e69ac3c4f19du},   {4, 1000, 9691, 3331, 0x70937dfce68fe959u},
        {5, 5, 7, 3, 0x821da8c8651d9771u},          {5, 13, 25, 5, 0x1f0d202245984cb5u},
        {5, 49, 157, 21, 0x9fdab57a575572ffu},      {5, 50, 142, 20, 0x2f2ad6874d53c686u},
        {5, 200, 545, 57, 0xd55687935cb72da9u},     {5, 1000, 2545, 257, 0x8732934d0d808459u},
        {6, 13, 29, 10, 0x67733cbc74ae7b9fu},       {6, 200, 1418, 349, 0x40300d41bc30670bu},
        {6, 1000, 9029, 4263, 0xc544e2ea706746bfu}, {7, 12, 66, 66, 0xa033525a4dc863f9u},
        {7, 13, 81, 68, 0x0ec4dfd77930fdbbu},       {7, 100, 2207, 1437, 0xc232aab5fa5fa7d7u},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct list l;
        sort(&l, rows[i].kind, rows[i].n);
        CU_ASSERT_EQUAL(l.compared, rows[i].compared);
        CU_ASSERT_EQUAL(l.swapped, rows[i].swapped);
        CU_ASSERT_EQUAL(hash(&l), rows[i].order);
    }
}

static void test_sorts(void)
{
    struct list l;
    bool seen[1000];

    for (int kind = 0; kind < 8; kind++) {
        for (int32_t n = 0; n <= 1000; n += n < 70 ? 1 : 93) {
            sort(&l, kind, n);
            memset(seen, 0, sizeof seen);
            for (int32_t i = 0; i < n; i++)
                seen[l.v[i]] = true;
            for (int32_t i = 0; i < n; i++)
                CU_ASSERT_FATAL(seen[i]); /* nothing is lost, whatever less() says */
            for (int32_t i = 1; i < n && kind < 6; i++)
                CU_ASSERT_FATAL(!less(&l, i, i - 1));
        }
    }
}

BH_TESTS("scheduler/preemption/go_sort", {"comparisons, swaps and result", test_same_steps},
         {"every length and pattern", test_sorts})
