/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/alike.c - nodes that see the same slices
 *
 * Devices behind a node selector are seen by many nodes, and a search for the same claims among the
 * same slices ends alike: it is made once for all of these nodes.
 *
 * Invariants: of_row[row] is current as far as log_pos (cache) and index (generation of the index).
 * Runs in:    the engine's thread.
 */
#include "scheduler/plugins/dynamicresources/asked.h"

enum { UNKNOWN, ALONE, FIRST }; /* of_row; groups are numbered from FIRST */

struct bh_dra_group {
    uint32_t *slices, n, next; /* next: of the same hash, 0 ends */
};
struct bh_dra_alike {
    uint64_t index, log_pos;
    uint32_t *of_row, n_rows;
    struct bh_dra_group *group; /* by number - FIRST */
    uint32_t n_groups, cap_groups;
    struct bh_umap by_hash; /* of the slices -> group */
    struct bh_buf seen;
};

static void forget_groups(struct bh_dra_alike *k)
{
    for (uint32_t i = 0; i < k->n_groups; i++)
        free(k->group[i].slices);
    k->n_groups = 0;
    bh_umap_clear(&k->by_hash);
}

void bh_dra_alike_fini(struct bh_dra *d)
{
    struct bh_dra_alike *k = d->alike;

    if (!k)
        return;
    forget_groups(k);
    free(k->of_row);
    free(k->group);
    bh_umap_fini(&k->by_hash);
    bh_buf_fini(&k->seen);
    free(k);
}

static void follow(struct bh_dra_alike *k, const struct bh_cache *c, const struct bh_dra *d)
{
    if (k->index != d->index_generation || k->n_rows < c->cols.cap_rows ||
        k->log_pos < c->log_begin) {
        forget_groups(k);
        k->n_rows = c->cols.cap_rows;
        k->of_row = bh_reallocarray(k->of_row, k->n_rows, sizeof *k->of_row);
        memset(k->of_row, 0, k->n_rows * sizeof *k->of_row);
        k->log_pos = c->log_end;
    }
    for (; k->log_pos < c->log_end; k->log_pos++)
        if (c->log_what[k->log_pos & (c->log_cap - 1)] == BH_ROW_NODE)
            k->of_row[c->log[k->log_pos & (c->log_cap - 1)]] = UNKNOWN;
    k->index = d->index_generation;
}

/* false: its verdict is its own. */
static bool look(struct bh_dra *d, struct bh_dra_alike *k, const struct bh_node_rec *node)
{
    struct bh_dra_views views;

    bh_buf_reset(&k->seen);
    bh_arena_reset(&d->scratch);
    if (bh_dra_views(d, &d->scratch, node, &views, NULL) < 0)
        return false;
    for (uint32_t i = 0; i < views.n; i++) {
        const struct bh_dra_view *v = &views.v[i];
        for (uint32_t s = 0; s < v->n; s++)
            if (d->slices[v->slices[s]].per_device)
                return false;
        bh_buf_add(&k->seen, v->slices, v->n * sizeof *v->slices);
    }
    return true;
}

static uint32_t group_of(struct bh_dra_alike *k)
{
    uint64_t hash = bh_hash(k->seen.p, k->seen.n, 0), first = 0;

    (void)bh_umap_get(&k->by_hash, hash, &first);
    for (uint32_t g = (uint32_t)first; g; g = k->group[g - FIRST].next)
        if (k->group[g - FIRST].n == k->seen.n &&
            memcmp(k->group[g - FIRST].slices, k->seen.p, k->seen.n) == 0)
            return g;
    if (k->n_groups == k->cap_groups) {
        k->cap_groups = k->cap_groups ? 2 * k->cap_groups : 64;
        k->group = bh_reallocarray(k->group, k->cap_groups, sizeof *k->group);
    }
    k->group[k->n_groups] = (struct bh_dra_group){.slices = bh_memdup(k->seen.p, k->seen.n),
                                                  .n = (uint32_t)k->seen.n,
                                                  .next = (uint32_t)first};
    bh_umap_put(&k->by_hash, hash, k->n_groups + FIRST);
    return FIRST + k->n_groups++;
}

uint32_t bh_dra_alike(struct bh_dra *d, const struct bh_cache *c, const struct bh_node_info *node)
{
    struct bh_dra_alike *k = d->alike;

    if (!d->n_everywhere) /* every node has slices of its own */
        return 0;
    if (!k)
        k = d->alike = bh_calloc(1, sizeof *k);
    follow(k, c, d);
    uint32_t *g = &k->of_row[node->row];
    if (*g == UNKNOWN)
        *g = look(d, k, node->rec) && k->seen.n ? group_of(k) : ALONE;
    return *g == ALONE ? 0 : *g;
}
