/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/heap.c - binary heap of pointers that know their own index
 */
#include "common/base/heap.h"

static uint32_t *slot(const struct bh_heap *h, const void *item)
{
    return (uint32_t *)((char *)(uintptr_t)item + h->index_offset);
}

static void place(struct bh_heap *h, uint32_t i, void *item)
{
    h->items[i] = item;
    *slot(h, item) = i;
}

static uint32_t sift_up(struct bh_heap *h, uint32_t i)
{
    void *item = h->items[i];

    while (i > 0) {
        uint32_t parent = (i - 1) / 2;
        if (!h->less(item, h->items[parent]))
            break;
        place(h, i, h->items[parent]);
        i = parent;
    }
    place(h, i, item);
    return i;
}

static void sift_down(struct bh_heap *h, uint32_t i)
{
    void *item = h->items[i];

    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= h->n)
            break;
        if (child + 1 < h->n && h->less(h->items[child + 1], h->items[child]))
            child++;
        if (!h->less(h->items[child], item))
            break;
        place(h, i, h->items[child]);
        i = child;
    }
    place(h, i, item);
}

void bh_heap_init(struct bh_heap *h, size_t index_offset,
                  bool (*less)(const void *a, const void *b))
{
    *h = (struct bh_heap){.index_offset = index_offset, .less = less};
}

void bh_heap_fini(struct bh_heap *h)
{
    free(h->items);
    h->items = NULL;
    h->n = h->cap = 0;
}

void bh_heap_push(struct bh_heap *h, void *item)
{
    bh_assert(*slot(h, item) == BH_HEAP_NONE);
    BH_GROW(h->items, h->n, h->cap);
    h->items[h->n++] = item;
    sift_up(h, h->n - 1);
}

void bh_heap_remove(struct bh_heap *h, void *item)
{
    uint32_t i = *slot(h, item);

    bh_assert(i < h->n && h->items[i] == item);
    *slot(h, item) = BH_HEAP_NONE;
    h->n--;
    if (i == h->n)
        return;
    h->items[i] = h->items[h->n];
    if (sift_up(h, i) == i)
        sift_down(h, i);
}

void bh_heap_fix(struct bh_heap *h, void *item)
{
    uint32_t i = *slot(h, item);

    bh_assert(i < h->n && h->items[i] == item);
    if (sift_up(h, i) == i)
        sift_down(h, i);
}
