/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/map.c - hash table with byte-string keys
 *
 * Invariants: cap is 0 or a power of two; at least three of eight slots are empty, so probing ends
 *             soon. A slot is empty (key and value NULL), deleted (key NULL, value DELETED) or
 *             used. None that is deleted has an empty one behind it: no look-up would go past that.
 */
#include "common/base/map.h"

#include "common/base/hash_seed.h"

static char deleted_mark;
#define DELETED ((void *)&deleted_mark)
#define CAP_MIN 8

static void slots_free(struct bh_map *m)
{
    for (size_t i = 0; i < m->cap; i++)
        free(m->e[i].key);
}

void bh_map_fini(struct bh_map *m)
{
    slots_free(m);
    free(m->e);
    *m = (struct bh_map){0};
}

void bh_map_fini_values(struct bh_map *m)
{
    struct bh_map_entry *e;

    for (size_t it = 0; (e = bh_map_next(m, &it));)
        free(e->value);
    bh_map_fini(m);
}

void bh_map_clear(struct bh_map *m)
{
    slots_free(m);
    if (m->cap)
        memset(m->e, 0, m->cap * sizeof(*m->e));
    m->len = m->tombs = 0;
}

/* The slot of key, or NULL. *ret_free (may be NULL): where it would go. */
static struct bh_map_entry *slot_find(const struct bh_map *m, uint32_t hash, const char *key,
                                      size_t n, struct bh_map_entry **ret_free)
{
    size_t mask = m->cap - 1;
    struct bh_map_entry *free_slot = NULL;

    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        struct bh_map_entry *e = &m->e[i];
        if (e->key) {
            if (e->hash == hash && e->key_len == n && (n == 0 || memcmp(e->key, key, n) == 0))
                return e;
            continue;
        }
        if (!free_slot)
            free_slot = e;
        if (!e->value)
            break;
    }
    if (ret_free)
        *ret_free = free_slot;
    return NULL;
}

static void rehash(struct bh_map *m, size_t cap)
{
    struct bh_map_entry *old = m->e;
    size_t old_cap = m->cap;

    m->e = bh_calloc(cap, sizeof(*m->e));
    m->cap = cap;
    m->tombs = 0;
    for (size_t i = 0; i < old_cap; i++) {
        if (!old[i].key)
            continue;
        size_t at = old[i].hash & (cap - 1);
        while (m->e[at].key)
            at = (at + 1) & (cap - 1);
        m->e[at] = old[i];
    }
    free(old);
}

void *bh_map_get(const struct bh_map *m, const char *key, size_t n)
{
    if (!m->len)
        return NULL;
    struct bh_map_entry *e = slot_find(m, (uint32_t)bh_hash(key, n, m->seed), key, n, NULL);
    return e ? e->value : NULL;
}

void *bh_map_put(struct bh_map *m, const char *key, size_t n, void *value)
{
    bh_assert(value && n < UINT32_MAX);
    if (!m->cap) {
        m->seed = bh_hash_seed();
        rehash(m, CAP_MIN);
    } else if ((m->len + m->tombs + 1) * 8 > m->cap * 5) {
        /* Mostly deleted entries: the same size again without them. */
        rehash(m, m->len * 2 >= m->cap ? m->cap * 2 : m->cap);
    }
    uint32_t hash = (uint32_t)bh_hash(key, n, m->seed);
    struct bh_map_entry *at;
    struct bh_map_entry *e = slot_find(m, hash, key, n, &at);
    if (e) {
        void *former = e->value;
        e->value = value;
        return former;
    }
    if (at->value)
        m->tombs--;
    char *copy = bh_malloc(n + 1);
    if (n)
        memcpy(copy, key, n);
    copy[n] = '\0';
    *at = (struct bh_map_entry){.key = copy, .key_len = (uint32_t)n, .hash = hash, .value = value};
    m->len++;
    return NULL;
}

void *bh_map_del(struct bh_map *m, const char *key, size_t n)
{
    if (!m->len)
        return NULL;
    struct bh_map_entry *e = slot_find(m, (uint32_t)bh_hash(key, n, m->seed), key, n, NULL);
    if (!e)
        return NULL;
    void *former = e->value;
    free(e->key);
    *e = (struct bh_map_entry){.value = DELETED};
    m->len--;
    m->tombs++;
    /* Deleted slots in front of an empty one are empty, too. */
    const size_t mask = m->cap - 1;
    size_t at = (size_t)(e - m->e);
    bool empty_behind = !m->e[(at + 1) & mask].key && !m->e[(at + 1) & mask].value;
    for (; empty_behind && !m->e[at].key && m->e[at].value == DELETED; at = (at - 1) & mask) {
        m->e[at].value = NULL;
        m->tombs--;
    }
    return former;
}

struct bh_map_entry *bh_map_next(const struct bh_map *m, size_t *it)
{
    while (*it < m->cap) {
        struct bh_map_entry *e = &m->e[(*it)++];
        if (e->key)
            return e;
    }
    return NULL;
}
