/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/shapes.h - pod shapes interned by content: equal content, equal id
 *
 * The id is the signature under which the fast path keeps its results, so ids are small and dense.
 * A shape without a reference is kept for a while (the last BH_SHAPES_IDLE of them): a job that
 * creates one pod after the other finds its results again.
 *
 * Most pods with volumes or claims are unlike all others only in these, so every shape knows the
 * one that it is without them: results of plugins that look at neither are kept under that one's
 * id.
 *
 * Owns:       a copy of every record; a shape holds a reference to the one it is without volumes.
 * Invariants: entry[id].rec is NULL iff the id is free; a free id's results must be dropped before
 *             the id is given out again, which `born` tells: it differs for every use of an id.
 * Runs in:    the engine's thread.
 */
#ifndef BH_SHAPES_H
#define BH_SHAPES_H

#include "common/base/map.h"
#include "common/k8s/record.h"

#define BH_SHAPES_IDLE 1024u

struct bh_shape_entry {
    struct bh_shape_rec *rec;
    uint64_t hash;
    uint64_t born;       /* counts every interning of a new content */
    uint64_t idle_since; /* ticket in the idle ring, 0 = in use */
    uint32_t refs;
    uint32_t placed;    /* pods on nodes; kept for shapes with inter-pod affinity terms only */
    uint32_t placed_at; /* index in the cache's affinity_shapes while placed > 0 */
    uint32_t next;      /* same bucket, or next free id; UINT32_MAX ends */
    uint32_t kept;      /* the same without volumes and claims; its own id when it has none */
};
struct bh_shape_table {
    struct bh_shape_entry *e;
    uint32_t n, cap, free_head;
    uint32_t *bucket;
    uint32_t n_buckets, used;
    uint32_t idle_ring[BH_SHAPES_IDLE];
    uint64_t idle_ticket, born;
};
void bh_shapes_init(struct bh_shape_table *t);
void bh_shapes_fini(struct bh_shape_table *t);
uint32_t bh_shapes_intern(struct bh_shape_table *t,
                          const struct bh_shape_rec *s); /* +1 reference */
void bh_shapes_ref(struct bh_shape_table *t, uint32_t id);
void bh_shapes_unref(struct bh_shape_table *t, uint32_t id);
/* The id of the same shape without volumes and claims, as long as id is referenced. Its record has
 * none of either, nor the flags that say so; all else is as in id's. */
static inline uint32_t bh_shapes_kept(const struct bh_shape_table *t, uint32_t id)
{
    return t->e[id].kept;
}
static inline const struct bh_shape_rec *bh_shapes_rec(const struct bh_shape_table *t, uint32_t id)
{
    return id < t->n ? t->e[id].rec : NULL;
}
#endif
