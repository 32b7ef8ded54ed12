/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/umap.c - hash table from uint64 to uint64
 *
 * Invariants: cap is 0 or a power of two; at least a quarter of the slots is empty, so probing
 *             ends.
 */
#include "common/base/map.h"

#include "common/base/hash_seed.h"
#include "common/base/pages.h"

enum { SLOT_EMPTY, SLOT_USED, SLOT_DELETED };
#define CAP_MIN 8

static void slots_free(struct bh_umap *m)
{
    bh_pages_free(m->k, m->cap * sizeof(*m->k));
    bh_pages_free(m->v, m->cap * sizeof(*m->v));
    bh_pages_free(m->state, m->cap);
}

void bh_umap_fini(struct bh_umap *m)
{
    slots_free(m);
    *m = (struct bh_umap){0};
}

void bh_umap_clear(struct bh_umap *m)
{
    if (m->cap)
        memset(m->state, SLOT_EMPTY, m->cap);
    m->len = m->tombs = 0;
}

/* Both halves of a 64x64 product: every bit of the key reaches the low bits that choose the
 * slot. */
static size_t mix(const struct bh_umap *m, uint64_t k)
{
    unsigned __int128 x = (unsigned __int128)(k ^ m->seed) * 0x9e3779b97f4a7c15u;
    return (size_t)((uint64_t)x ^ (uint64_t)(x >> 64));
}

static bool slot_find(const struct bh_umap *m, uint64_t k, size_t *ret_slot, size_t *ret_free)
{
    size_t mask = m->cap - 1, free_slot = SIZE_MAX;

    for (size_t i = mix(m, k) & mask;; i = (i + 1) & mask) {
        if (m->state[i] == SLOT_USED) {
            if (m->k[i] == k) {
                *ret_slot = i;
                return true;
            }
            continue;
        }
        if (free_slot == SIZE_MAX)
            free_slot = i;
        if (m->state[i] == SLOT_EMPTY)
            break;
    }
    if (ret_free)
        *ret_free = free_slot;
    return false;
}

static void rehash(struct bh_umap *m, size_t cap)
{
    struct bh_umap old = *m;

    m->k = bh_pages_new(cap * sizeof(*m->k));
    m->v = bh_pages_new(cap * sizeof(*m->v));
    m->state = bh_pages_new(cap);
    m->cap = cap;
    m->tombs = 0;
    for (size_t i = 0; i < old.cap; i++) {
        if (old.state[i] != SLOT_USED)
            continue;
        size_t at = mix(m, old.k[i]) & (cap - 1);
        while (m->state[at] == SLOT_USED)
            at = (at + 1) & (cap - 1);
        m->k[at] = old.k[i];
        m->v[at] = old.v[i];
        m->state[at] = SLOT_USED;
    }
    slots_free(&old);
}

bool bh_umap_get(const struct bh_umap *m, uint64_t k, uint64_t *ret_v)
{
    size_t at;
    if (!m->len || !slot_find(m, k, &at, NULL))
        return false;
    if (ret_v)
        *ret_v = m->v[at];
    return true;
}

void bh_umap_put(struct bh_umap *m, uint64_t k, uint64_t v)
{
    if (!m->cap) {
        m->seed = bh_hash_seed();
        rehash(m, CAP_MIN);
    } else if ((m->len + m->tombs + 1) * 4 > m->cap * 3) {
        /* Mostly deleted entries: the same size again without them. */
        rehash(m, m->len * 2 >= m->cap ? m->cap * 2 : m->cap);
    }
    size_t at, free_slot;
    if (slot_find(m, k, &at, &free_slot)) {
        m->v[at] = v;
        return;
    }
    if (m->state[free_slot] == SLOT_DELETED)
        m->tombs--;
    m->k[free_slot] = k;
    m->v[free_slot] = v;
    m->state[free_slot] = SLOT_USED;
    m->len++;
}

bool bh_umap_del(struct bh_umap *m, uint64_t k)
{
    size_t at;
    if (!m->len || !slot_find(m, k, &at, NULL))
        return false;
    m->state[at] = SLOT_DELETED;
    m->len--;
    m->tombs++;
    return true;
}

bool bh_umap_next(const struct bh_umap *m, size_t *it, uint64_t *k, uint64_t *v)
{
    while (*it < m->cap) {
        size_t i = (*it)++;
        if (m->state[i] != SLOT_USED)
            continue;
        if (k)
            *k = m->k[i];
        if (v)
            *v = m->v[i];
        return true;
    }
    return false;
}
