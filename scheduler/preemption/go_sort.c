/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/preemption/go_sort.c - sort.Slice as Go does it, comparison by comparison
 *
 * Ranges are [a, b).
 * Runs in: the engine's thread.
 */
#include "scheduler/preemption/go_sort.h"

#define MAX_INSERTION    12
#define SHORTEST_NINTHER 50
#define SHORTEST_SHIFT   50
#define MAX_STEPS        5
#define MAX_SWAPS        (4 * 3)

enum hint { UNKNOWN, INCREASING, DECREASING };

static bool less(const struct bh_go_sort *s, int32_t i, int32_t j)
{
    return s->less(s->arg, i, j);
}

static void swap(const struct bh_go_sort *s, int32_t i, int32_t j)
{
    s->swap(s->arg, i, j);
}

static int bit_length(uint32_t n)
{
    return n ? 32 - __builtin_clz(n) : 0;
}

/* ---- heap sort, when too many pivots were bad ---- */

static void sift_down(const struct bh_go_sort *s, int32_t root, int32_t n, int32_t first)
{
    for (int32_t child = 2 * root + 1; child < n; child = 2 * root + 1) {
        if (child + 1 < n && less(s, first + child, first + child + 1))
            child++;
        if (!less(s, first + root, first + child))
            return;
        swap(s, first + root, first + child);
        root = child;
    }
}

static void heap_sort(const struct bh_go_sort *s, int32_t a, int32_t b)
{
    int32_t n = b - a;

    for (int32_t i = (n - 1) / 2; i >= 0; i--)
        sift_down(s, i, n, a);
    for (int32_t i = n - 1; i >= 0; i--) {
        swap(s, a, a + i);
        sift_down(s, 0, i, a);
    }
}

/* ---- pivots ---- */

static void order(const struct bh_go_sort *s, int32_t *x, int32_t *y, int *swaps)
{
    int32_t t = *x;

    if (!less(s, *y, *x))
        return;
    ++*swaps;
    *x = *y;
    *y = t;
}

static int32_t median(const struct bh_go_sort *s, int32_t x, int32_t y, int32_t z, int *swaps)
{
    order(s, &x, &y, swaps);
    order(s, &y, &z, swaps);
    order(s, &x, &y, swaps);
    return y;
}

static int32_t choose_pivot(const struct bh_go_sort *s, int32_t a, int32_t b, enum hint *hint)
{
    int32_t n = b - a, i = a + n / 4 * 1, j = a + n / 4 * 2, k = a + n / 4 * 3;
    int swaps = 0;

    if (n >= SHORTEST_NINTHER) {
        i = median(s, i - 1, i, i + 1, &swaps);
        j = median(s, j - 1, j, j + 1, &swaps);
        k = median(s, k - 1, k, k + 1, &swaps);
    }
    if (n >= 8)
        j = median(s, i, j, k, &swaps);
    *hint = swaps == 0 ? INCREASING : swaps == MAX_SWAPS ? DECREASING : UNKNOWN;
    return j;
}

/* Swaps three elements with others at pseudo-random places, the same for every range of a
 * length. */
static void break_patterns(const struct bh_go_sort *s, int32_t a, int32_t b)
{
    int32_t n = b - a, at = a + n / 4 * 2 - 1;
    uint64_t r = (uint64_t)n, mask = ((uint64_t)1 << bit_length((uint32_t)n)) - 1;

    if (n < 8)
        return;
    for (int32_t i = 0; i < 3; i++) {
        r ^= r << 13;
        r ^= r >> 7;
        r ^= r << 17;
        int32_t other = (int32_t)(r & mask);
        swap(s, at - 1 + i, a + (other >= n ? other - n : other));
    }
}

/* ---- partitions ---- */

/* Smaller elements before the pivot, the others behind it; returns its place. *ret_sorted: nothing
 * had to move. */
static int32_t partition(const struct bh_go_sort *s, int32_t a, int32_t b, int32_t pivot,
                         bool *ret_sorted)
{
    int32_t i = a + 1, j = b - 1;

    swap(s, a, pivot);
    for (*ret_sorted = true;; *ret_sorted = false) {
        while (i <= j && less(s, i, a))
            i++;
        while (i <= j && !less(s, j, a))
            j--;
        if (i > j)
            break;
        swap(s, i++, j--);
    }
    swap(s, j, a);
    return j;
}

/* No element is smaller than the pivot: equal ones first; returns where the others begin. */
static int32_t partition_equal(const struct bh_go_sort *s, int32_t a, int32_t b, int32_t pivot)
{
    int32_t i = a + 1, j = b - 1;

    swap(s, a, pivot);
    for (;;) {
        while (i <= j && !less(s, a, i))
            i++;
        while (i <= j && less(s, a, j))
            j--;
        if (i > j)
            return i;
        swap(s, i++, j--);
    }
}

/* Repairs a few elements of a range that looks sorted; true when it is sorted then. */
static bool repair(const struct bh_go_sort *s, int32_t a, int32_t b)
{
    int32_t i = a + 1;

    for (int step = 0; step < MAX_STEPS; step++) {
        while (i < b && !less(s, i, i - 1))
            i++;
        if (i == b)
            return true;
        if (b - a < SHORTEST_SHIFT)
            return false;
        swap(s, i, i - 1);
        if (i - a >= 2)
            for (int32_t j = i - 1; j >= 1 && less(s, j, j - 1); j--)
                swap(s, j, j - 1);
        if (b - i >= 2)
            for (int32_t j = i + 1; j < b && less(s, j, j - 1); j++)
                swap(s, j, j - 1);
    }
    return false;
}

struct range {
    int32_t a, b;
    int limit; /* bad pivots that are still tolerated */
};

/* The recursion goes into the smaller half, so its depth is at most 32. */
static void sort_range(const struct bh_go_sort *s, struct range r)
{
    bool balanced = true, partitioned = true;

    while (r.b - r.a > MAX_INSERTION && r.limit) {
        int32_t n = r.b - r.a;
        enum hint hint;
        if (!balanced) {
            break_patterns(s, r.a, r.b);
            r.limit--;
        }
        int32_t pivot = choose_pivot(s, r.a, r.b, &hint);
        if (hint == DECREASING) {
            for (int32_t i = r.a, j = r.b - 1; i < j; i++, j--)
                swap(s, i, j);
            pivot = r.b - 1 - (pivot - r.a);
            hint = INCREASING;
        }
        if (balanced && partitioned && hint == INCREASING && repair(s, r.a, r.b))
            return;
        if (r.a > 0 && !less(s, r.a - 1, pivot)) {
            r.a = partition_equal(s, r.a, r.b, pivot);
            continue;
        }
        int32_t mid = partition(s, r.a, r.b, pivot, &partitioned);
        bool left = mid - r.a < r.b - mid;
        balanced = (left ? mid - r.a : r.b - mid) >= n / 8;
        if (left) {
            sort_range(s, (struct range){r.a, mid, r.limit});
            r.a = mid + 1;
        } else {
            sort_range(s, (struct range){mid + 1, r.b, r.limit});
            r.b = mid;
        }
    }
    if (r.b - r.a <= MAX_INSERTION) {
        for (int32_t i = r.a + 1; i < r.b; i++)
            for (int32_t j = i; j > r.a && less(s, j, j - 1); j--)
                swap(s, j, j - 1);
    } else {
        heap_sort(s, r.a, r.b);
    }
}

void bh_go_sort(const struct bh_go_sort *s, int32_t n)
{
    sort_range(s, (struct range){0, n, bit_length((uint32_t)n)});
}
