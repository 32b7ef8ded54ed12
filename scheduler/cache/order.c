/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/order.c - upstream's node order: zones in turn, one node of each; order by name
 *
 * Only sampling (an explicit percentageOfNodesToScore) and preemption by groups depend on it. Zones
 * stand in order of first appearance, nodes in order of arrival; a zone that empties is forgotten. The
 * list is made anew when a node came or went, not when a label moved a node to another zone: upstream
 * does the same.
 *
 * Upstream: pkg/scheduler/backend/cache/node_tree.go, component-helpers/node/topology.
 */
#include "scheduler/cache/cache_int.h"

void bh_cache_zone(const struct bh_cache *c, const struct bh_node_rec *n, bh_sym *region,
                   bh_sym *zone)
{
    const struct bh_kv *l = bh_rec_at(n, n->labels, struct bh_kv);

    *region = *zone = BH_SYM_NONE;
    if (!bh_labels_get(l, n->labels.n, c->sym.region_beta, region))
        bh_labels_get(l, n->labels.n, c->sym.region, region);
    if (!bh_labels_get(l, n->labels.n, c->sym.zone_beta, zone))
        bh_labels_get(l, n->labels.n, c->sym.zone, zone);
}

static void remove_row(struct bh_cache *c, uint32_t row, bh_sym region, bh_sym zone)
{
    for (uint32_t i = 0; i < c->n_zones; i++) {
        struct bh_zone *z = &c->zones[i];
        uint32_t k = 0;
        if (z->region != region || z->zone != zone)
            continue;
        while (z->rows[k] != row)
            k++;
        memmove(z->rows + k, z->rows + k + 1, (z->n - k - 1) * sizeof *z->rows);
        if (--z->n == 0) {
            free(z->rows);
            memmove(z, z + 1, (c->n_zones - i - 1) * sizeof *z);
            c->n_zones--;
        }
        return;
    }
}

void bh_order_update(struct bh_cache *c, uint32_t row, const struct bh_node_rec *old,
                     const struct bh_node_rec *neu)
{
    bh_sym r0 = BH_SYM_NONE, z0 = BH_SYM_NONE, r1 = BH_SYM_NONE, z1 = BH_SYM_NONE;

    if (old)
        bh_cache_zone(c, old, &r0, &z0);
    if (neu)
        bh_cache_zone(c, neu, &r1, &z1);
    if (old && neu && r0 == r1 && z0 == z1)
        return;
    if (old)
        remove_row(c, row, r0, z0);
    if (neu) {
        struct bh_zone *z = NULL;
        for (uint32_t i = 0; i < c->n_zones && !z; i++)
            if (c->zones[i].region == r1 && c->zones[i].zone == z1)
                z = &c->zones[i];
        if (!z) {
            BH_GROW(c->zones, c->n_zones, c->cap_zones);
            z = &c->zones[c->n_zones++];
            *z = (struct bh_zone){.region = r1, .zone = z1};
        }
        BH_GROW(z->rows, z->n, z->cap);
        z->rows[z->n++] = row;
    }
}

const uint32_t *bh_cache_order(struct bh_cache *c, uint32_t *ret_n)
{
    bh_assert(c->keep_order);
    if (c->order_membership != c->membership) {
        c->order = bh_reallocarray(c->order, c->n_nodes ? c->n_nodes : 1, sizeof *c->order);
        c->n_order = 0;
        for (uint32_t turn = 0; c->n_order < c->n_nodes; turn++)
            for (uint32_t z = 0; z < c->n_zones; z++)
                if (turn < c->zones[z].n)
                    c->order[c->n_order++] = c->zones[z].rows[turn];
        c->order_membership = c->membership;
    }
    *ret_n = c->n_order;
    return c->order;
}

void bh_order_fini(struct bh_cache *c)
{
    for (uint32_t i = 0; i < c->n_zones; i++)
        free(c->zones[i].rows);
    free(c->zones);
    free(c->order);
}

static int by_name(const void *a, const void *b, void *arg)
{
    return bh_row_name_cmp(arg, *(const uint32_t *)a, *(const uint32_t *)b);
}

void bh_cache_sort_by_name(const struct bh_cache *c, uint32_t *rows, uint32_t n)
{
    if (n > 1)
        qsort_r(rows, n, sizeof *rows, by_name, (void *)(uintptr_t)c);
}
