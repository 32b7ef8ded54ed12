/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/queue/pool.c - rejected and gated pods, grouped by what an event's answer depends on
 *
 * Owns:       the groups; entries are the queue's.
 * Invariants: a group has at least one entry, unless it is being walked (busy); it is linked in the
 *             list of each plugin of its set. The shape of a group lives as long as its entries.
 */
#include "scheduler/queue/queue_int.h"

static struct pool_group *group_new(struct bh_queue *q)
{
    struct pool_key key;
    memcpy(&key, q->key.p, sizeof(key));
    uint64_t set = key.rejectors | key.pendings;
    uint32_t n = BH_MAX((uint32_t)__builtin_popcountll(set), 1u), k = 0;
    struct pool_group *g = bh_calloc(1, sizeof(*g) + n * sizeof(g->links[0]));

    TAILQ_INIT(&g->entries);
    g->key = key;
    g->n_links = n;
    do {
        uint32_t list = set ? (uint32_t)__builtin_ctzll(set) : BH_QUEUE_MAX_PLUGINS;
        struct pool_link *l = &g->links[k++];
        l->group = g;
        TAILQ_INSERT_TAIL(&q->pool[list], l, link);
        set &= set - 1;
    } while (k < n);
    g->key_n = (uint32_t)q->key.n;
    g->whole_key = bh_memdup(q->key.p, q->key.n);
    (void)bh_map_put(&q->groups, q->key.p, q->key.n, g);
    return g;
}

static void drop_if_empty(struct bh_queue *q, struct pool_group *g)
{
    uint64_t set = g->key.rejectors | g->key.pendings;

    if (!TAILQ_EMPTY(&g->entries) || g->busy)
        return;
    for (uint32_t i = 0; i < g->n_links; i++, set &= set - 1)
        TAILQ_REMOVE(&q->pool[set ? (uint32_t)__builtin_ctzll(set) : BH_QUEUE_MAX_PLUGINS],
                     &g->links[i], link);
    (void)bh_map_del(&q->groups, g->whole_key, g->key_n);
    free(g->whole_key);
    free(g);
}

void bh_queue_pool_link(struct bh_queue *q, struct entry *e)
{
    const bool by_essence = !((e->rejectors | e->pendings) & ~q->by_essence);
    const struct pool_key head = {.rejectors = e->rejectors,
                                  .pendings = e->pendings,
                                  .gating_plugin = e->gating_plugin,
                                  .shape = by_essence ? UINT32_MAX : e->pub.pending.shape};

    bh_assert(!e->group);
    bh_buf_reset(&q->key);
    bh_buf_add(&q->key, &head, sizeof(head));
    if (by_essence) /* no plugin of the set looks at more */
        bh_shape_essence(bh_engine_shape_rec(q->engine, e->pub.pending.shape), &q->key);
    struct pool_group *g = bh_map_get(&q->groups, q->key.p, q->key.n);
    if (!g)
        g = group_new(q);
    e->group = g;
    TAILQ_INSERT_TAIL(&g->entries, e, pool_link);
}

void bh_queue_pool_unlink(struct bh_queue *q, struct entry *e)
{
    struct pool_group *g = e->group;

    if (!g)
        return;
    TAILQ_REMOVE(&g->entries, e, pool_link);
    e->group = NULL;
    drop_if_empty(q, g);
}

void bh_queue_pool_hold(struct pool_group *g)
{
    g->busy++;
}

void bh_queue_pool_release(struct bh_queue *q, struct pool_group *g)
{
    g->busy--;
    drop_if_empty(q, g);
}
