/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/heap.h - binary heap of pointers that know their own index
 *
 * Invariants: items[i]'s index slot holds i; an item outside any heap holds BH_HEAP_NONE.
 * The index lives inside the element (at a fixed offset), so fix and remove need no look-up.
 * Ties under less() are resolved by heap shape, as upstream's heap does.
 */
#ifndef BH_HEAP_H
#define BH_HEAP_H

#include "common/base/base.h"

#define BH_HEAP_NONE UINT32_MAX

struct bh_heap {
    void **items;
    uint32_t n, cap;
    size_t index_offset; /* of a uint32_t inside the element */
    bool (*less)(const void *a, const void *b);
};
void bh_heap_init(struct bh_heap *h, size_t index_offset,
                  bool (*less)(const void *a, const void *b));
void bh_heap_fini(struct bh_heap *h);
void bh_heap_push(struct bh_heap *h, void *item);
static inline void *bh_heap_peek(const struct bh_heap *h) /* NULL when empty */
{
    return h->n ? h->items[0] : NULL;
}
void bh_heap_fix(struct bh_heap *h, void *item); /* after its key changed */
void bh_heap_remove(struct bh_heap *h, void *item);
#endif
