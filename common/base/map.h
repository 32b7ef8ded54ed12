/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/map.h - hash tables
 *
 * bh_map: byte-string key -> void*. Keys are copied. Values are the caller's.
 * bh_umap: uint64 key -> uint64 value.
 * Open addressing, seeded hash, a random seed per table (keys come from outside: hash flooding).
 * Iteration order is unspecified; deleting the current entry during iteration is allowed, inserting
 * is not. Zero-initialised ({0}) is a valid empty table.
 */
#ifndef BH_MAP_H
#define BH_MAP_H

#include "common/base/base.h"

struct bh_map_entry {
    char *key; /* NUL-terminated copy, owned by the map */
    uint32_t key_len, hash;
    void *value;
};
struct bh_map {
    struct bh_map_entry *e;
    size_t cap, len, tombs;
    uint64_t seed;
};
void bh_map_fini(struct bh_map *m);
void bh_map_fini_values(struct bh_map *m); /* free()s the values, too */
void bh_map_clear(struct bh_map *m);       /* keeps the memory of the table */
void *bh_map_get(const struct bh_map *m, const char *key, size_t n); /* NULL when absent */
/* Inserts or replaces; returns the former value or NULL. value must not be NULL. */
void *bh_map_put(struct bh_map *m, const char *key, size_t n, void *value);
void *bh_map_del(struct bh_map *m, const char *key, size_t n); /* former value or NULL */
/* for (size_t it = 0; (e = bh_map_next(m, &it));) */
struct bh_map_entry *bh_map_next(const struct bh_map *m, size_t *it);

struct bh_umap {
    uint64_t *k, *v;
    uint8_t *state;
    size_t cap, len, tombs;
    uint64_t seed;
};
void bh_umap_fini(struct bh_umap *m);
void bh_umap_clear(struct bh_umap *m);
bool bh_umap_get(const struct bh_umap *m, uint64_t k, uint64_t *ret_v); /* ret_v may be NULL */
void bh_umap_put(struct bh_umap *m, uint64_t k, uint64_t v);
bool bh_umap_del(struct bh_umap *m, uint64_t k);
bool bh_umap_next(const struct bh_umap *m, size_t *it, uint64_t *k, uint64_t *v);
#endif
