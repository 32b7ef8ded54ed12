/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/shapes.c - pod shapes interned by content
 */
#include "scheduler/cache/shapes.h"

#define NONE UINT32_MAX

void bh_shapes_init(struct bh_shape_table *t)
{
    memset(t, 0, sizeof *t);
    t->free_head = NONE;
}

void bh_shapes_fini(struct bh_shape_table *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        free(t->e[i].rec);
    free(t->e);
    free(t->bucket);
    bh_shapes_init(t);
}

static void wipe(struct bh_shape_rec *r, struct bh_slice s, size_t size)
{
    memset((char *)r + s.off, 0, s.n * size);
}

static uint32_t intern(struct bh_shape_table *t, const struct bh_shape_rec *s)
{
    uint64_t hash = bh_rec_hash(s);

    if (t->used >= t->n_buckets) {
        uint32_t n = t->n_buckets ? t->n_buckets * 2 : 64;
        free(t->bucket);
        t->bucket = bh_malloc(n * sizeof *t->bucket);
        t->n_buckets = n;
        memset(t->bucket, 0xff, n * sizeof *t->bucket);
        for (uint32_t i = 0; i < t->n; i++) {
            if (!t->e[i].rec)
                continue;
            uint32_t b = (uint32_t)t->e[i].hash & (n - 1);
            t->e[i].next = t->bucket[b];
            t->bucket[b] = i;
        }
    }
    uint32_t *head = &t->bucket[(uint32_t)hash & (t->n_buckets - 1)];
    for (uint32_t i = *head; i != NONE; i = t->e[i].next) {
        if (t->e[i].hash == hash && t->e[i].rec->h.size == s->h.size &&
            memcmp(t->e[i].rec, s, s->h.size) == 0) {
            bh_shapes_ref(t, i);
            return i;
        }
    }
    uint32_t id = t->free_head;
    if (id != NONE) {
        t->free_head = t->e[id].next;
    } else {
        BH_GROW(t->e, t->n, t->cap);
        id = t->n++;
    }
    t->e[id] = (struct bh_shape_entry){
        .rec = bh_memdup(s, s->h.size),
        .hash = hash,
        .born = ++t->born,
        .refs = 1,
        .next = *head,
        .kept = id,
    };
    *head = id;
    t->used++;
    return id;
}

uint32_t bh_shapes_intern(struct bh_shape_table *t, const struct bh_shape_rec *s)
{
    uint64_t born = t->born;
    uint32_t id = intern(t, s);

    if (t->born != born && (s->volumes.n || s->claims.n)) {
        /* Volumes and claims are wiped where they stand, so that equal rests stay equal; shapes
         * with different numbers of them remain apart. */
        const struct bh_volume *v = bh_rec_at(s, s->volumes, struct bh_volume);
        struct bh_shape_rec *r = bh_memdup(s, s->h.size);
        for (uint32_t i = 0; i < s->volumes.n; i++)
            wipe(r, v[i].monitors, sizeof(bh_sym));
        wipe(r, s->volumes, sizeof(struct bh_volume));
        wipe(r, s->claims, sizeof(struct bh_pod_claim));
        r->volumes = r->claims = (struct bh_slice){0, 0};
        r->flags &= ~(uint32_t)(BH_SHAPE_USES_VOLUMES | BH_SHAPE_USES_CLAIMS);
        uint32_t kept = intern(t, r); /* t->e may move */
        t->e[id].kept = kept;
        free(r);
    }
    return id;
}

void bh_shapes_ref(struct bh_shape_table *t, uint32_t id)
{
    bh_assert(id < t->n && t->e[id].rec);
    t->e[id].refs++;
    t->e[id].idle_since = 0;
}

static void drop(struct bh_shape_table *t, uint32_t id)
{
    struct bh_shape_entry *e = &t->e[id];
    uint32_t *p = &t->bucket[(uint32_t)e->hash & (t->n_buckets - 1)], kept = e->kept;

    while (*p != id)
        p = &t->e[*p].next;
    *p = e->next;
    free(e->rec);
    *e = (struct bh_shape_entry){.next = t->free_head};
    t->free_head = id;
    t->used--;
    if (kept != id)
        bh_shapes_unref(t, kept);
}

void bh_shapes_unref(struct bh_shape_table *t, uint32_t id)
{
    bh_assert(id < t->n && t->e[id].rec && t->e[id].refs > 0);
    if (--t->e[id].refs > 0)
        return;
    /* The new idle shape takes the slot of the one that became idle BH_SHAPES_IDLE shapes ago. */
    uint64_t ticket = ++t->idle_ticket;
    uint32_t *slot = &t->idle_ring[ticket % BH_SHAPES_IDLE];
    if (ticket > BH_SHAPES_IDLE && t->e[*slot].rec &&
        t->e[*slot].idle_since == ticket - BH_SHAPES_IDLE)
        drop(t, *slot);
    *slot = id;
    t->e[id].idle_since = ticket;
}
