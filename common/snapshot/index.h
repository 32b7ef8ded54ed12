/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/index.h - 64-bit hash -> 32-bit id, private to the writer
 *
 * The keys themselves are not stored: the caller compares the object behind the id, which is in the
 * segment anyway. So a million pods cost 12 bytes a table slot and no allocation each.
 * Open addressing, linear probing, at most 3/4 full; deletion shifts back, so there are no tombs
 * and a steady churn never rehashes. The hash must be seeded where its input comes from outside.
 */
#ifndef BH_SNAPSHOT_INDEX_H
#define BH_SNAPSHOT_INDEX_H

#include "common/base/base.h"

#define BH_SNAP_NO_ID UINT32_MAX

struct bh_snap_index {
    uint64_t *hash; /* 0 = empty slot */
    uint32_t *id;
    size_t cap, len;
};
/* Is the object behind id the one looked for? */
typedef bool (*bh_snap_index_eq)(const void *owner, uint32_t id, const void *key);

void bh_snap_index_fini(struct bh_snap_index *ix);
/* BH_SNAP_NO_ID when absent. */
uint32_t bh_snap_index_find(const struct bh_snap_index *ix, uint64_t hash, bh_snap_index_eq eq,
                            const void *owner, const void *key);
/* The caller knows that the key is absent. */
void bh_snap_index_add(struct bh_snap_index *ix, uint64_t hash, uint32_t id);
void bh_snap_index_del(struct bh_snap_index *ix, uint64_t hash, uint32_t id);
#endif
