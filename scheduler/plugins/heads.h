/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/heads.h - lists whose elements live in an array: where the list of a key begins
 *
 * The map holds the index of the first element; how elements are linked is their owner's business.
 *
 * Runs in: the engine's thread.
 */
#ifndef BH_HEADS_H
#define BH_HEADS_H

#include "common/base/map.h"

#define BH_HEADS_END UINT32_MAX

/* BH_HEADS_END: the list is empty. */
static inline uint32_t bh_heads_get(const struct bh_umap *m, uint64_t key)
{
    uint64_t i;

    return bh_umap_get(m, key, &i) ? (uint32_t)i : BH_HEADS_END;
}
static inline void bh_heads_set(struct bh_umap *m, uint64_t key, uint32_t i)
{
    if (i != BH_HEADS_END)
        bh_umap_put(m, key, i);
    else
        (void)bh_umap_del(m, key);
}
#endif
