/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/index.c - open addressing with backward-shift deletion
 */
#include "common/snapshot/index.h"

static uint64_t usable(uint64_t hash)
{
    return hash ? hash : 1;
}

void bh_snap_index_fini(struct bh_snap_index *ix)
{
    free(ix->hash);
    free(ix->id);
    *ix = (struct bh_snap_index){0};
}

static void place(struct bh_snap_index *ix, uint64_t hash, uint32_t id)
{
    size_t i = hash & (ix->cap - 1);
    while (ix->hash[i])
        i = (i + 1) & (ix->cap - 1);
    ix->hash[i] = hash;
    ix->id[i] = id;
}

uint32_t bh_snap_index_find(const struct bh_snap_index *ix, uint64_t hash, bh_snap_index_eq eq,
                            const void *owner, const void *key)
{
    if (!ix->cap)
        return BH_SNAP_NO_ID;
    hash = usable(hash);
    for (size_t i = hash & (ix->cap - 1); ix->hash[i]; i = (i + 1) & (ix->cap - 1))
        if (ix->hash[i] == hash && eq(owner, ix->id[i], key))
            return ix->id[i];
    return BH_SNAP_NO_ID;
}

void bh_snap_index_add(struct bh_snap_index *ix, uint64_t hash, uint32_t id)
{
    bh_assert(id != BH_SNAP_NO_ID);
    if ((ix->len + 1) * 4 > ix->cap * 3) {
        struct bh_snap_index old = *ix;
        ix->cap = old.cap ? old.cap * 2 : 1024;
        ix->hash = bh_calloc(ix->cap, sizeof(*ix->hash));
        ix->id = bh_calloc(ix->cap, sizeof(*ix->id));
        for (size_t i = 0; i < old.cap; i++)
            if (old.hash[i])
                place(ix, old.hash[i], old.id[i]);
        free(old.hash);
        free(old.id);
    }
    place(ix, usable(hash), id);
    ix->len++;
}

void bh_snap_index_del(struct bh_snap_index *ix, uint64_t hash, uint32_t id)
{
    size_t mask = ix->cap - 1;
    hash = usable(hash);
    bh_assert(ix->len > 0);
    size_t i = hash & mask;
    while (ix->hash[i] != hash || ix->id[i] != id) {
        bh_assert(ix->hash[i]); /* the caller deletes only what it added */
        i = (i + 1) & mask;
    }
    /* Every entry after the hole moves into it, unless that would put it before its home slot. */
    for (size_t j = (i + 1) & mask; ix->hash[j]; j = (j + 1) & mask) {
        size_t home = ix->hash[j] & mask;
        if (((j - home) & mask) >= ((j - i) & mask)) {
            ix->hash[i] = ix->hash[j];
            ix->id[i] = ix->id[j];
            i = j;
        }
    }
    ix->hash[i] = 0;
    ix->len--;
}
