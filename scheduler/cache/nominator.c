/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/nominator.c - pods that preemption promised a node
 *
 * A nomination changes what the filters say about its node, so its row counts as changed.
 *
 * Upstream:   pkg/scheduler/backend/queue/nominator.go; differences: the nomination keeps the pod
 *             itself, so there are no stubs for pods that left the queue.
 */
#include "scheduler/cache/cache_int.h"

static struct bh_nomination *nomination_of(uint64_t v)
{
    return (struct bh_nomination *)(uintptr_t)v;
}

const struct bh_nomination *bh_cache_nominations(const struct bh_cache *c, bh_sym node)
{
    uint64_t v;
    return bh_umap_get(&c->nominated, node, &v) ? nomination_of(v) : NULL;
}

bh_sym bh_cache_nominated_node(const struct bh_cache *c, struct bh_str uid)
{
    const struct bh_nomination *n = bh_map_get(&c->nominations, uid.p, uid.n);
    return n ? n->node : BH_SYM_NONE;
}

void bh_cache_count_nominations(struct bh_cache *c, struct bh_node_info *ni)
{
    const struct bh_nomination *n = bh_cache_nominations(c, ni->name);

    ni->n_nominated = 0;
    for (; n; n = n->next_on_node)
        ni->n_nominated++;
    bh_row_bit_set(&c->cols, BH_ROW_NOMINATED, ni->row, ni->n_nominated > 0);
}

static void mark_row(struct bh_cache *c, bh_sym node)
{
    uint64_t v;

    if (!bh_umap_get(&c->by_name, node, &v))
        return;
    struct bh_node_info *ni = (struct bh_node_info *)(uintptr_t)v;
    if (ni->row == BH_ROW_NONE)
        return;
    bh_cache_count_nominations(c, ni);
    bh_cache_touch_row(c, ni->row, BH_ROW_NODE);
}

void bh_cache_nominate(struct bh_cache *c, const struct bh_pod_rec *rec, uint32_t shape,
                       bh_sym node, struct bh_nomination **at)
{
    struct bh_str uid = bh_rec_text(rec, rec->uid);
    struct bh_nomination *n = bh_calloc(1, sizeof *n), *last;
    uint64_t v;

    bh_cache_unnominate(c, uid);
    bh_cache_hold(c, &n->info, rec, shape, rec->node);
    n->node = node;
    n->at = at;
    if (at)
        *at = n;
    if (bh_umap_get(&c->nominated, node, &v)) {
        for (last = nomination_of(v); last->next_on_node;)
            last = last->next_on_node;
        last->next_on_node = n;
    } else {
        bh_umap_put(&c->nominated, node, (uint64_t)(uintptr_t)n);
    }
    bh_map_put(&c->nominations, uid.p, uid.n, n);
    mark_row(c, node);
}

void bh_cache_unnominate(struct bh_cache *c, struct bh_str uid)
{
    struct bh_nomination *n = bh_map_del(&c->nominations, uid.p, uid.n);
    uint64_t v = 0;

    if (!n)
        return;
    bh_umap_get(&c->nominated, n->node, &v);
    struct bh_nomination *head = nomination_of(v), **at = &head;
    while (*at != n)
        at = &(*at)->next_on_node;
    *at = n->next_on_node;
    if (head)
        bh_umap_put(&c->nominated, n->node, (uint64_t)(uintptr_t)head);
    else
        bh_umap_del(&c->nominated, n->node);
    mark_row(c, n->node);
    if (n->at)
        *n->at = NULL;
    bh_cache_let_go(c, &n->info);
    free(n);
}

void bh_cache_keep_nomination(struct bh_cache *c, struct bh_str uid)
{
    struct bh_nomination *n = bh_map_get(&c->nominations, uid.p, uid.n);

    if (n)
        n->kept = true;
}

bh_sym bh_cache_end_kept(struct bh_cache *c, struct bh_str uid)
{
    const struct bh_nomination *n =
        c->nominations.len ? bh_map_get(&c->nominations, uid.p, uid.n) : NULL;
    const bh_sym node = n && n->kept ? n->node : BH_SYM_NONE;

    if (node != BH_SYM_NONE)
        bh_cache_unnominate(c, uid);
    return node;
}

void bh_nominator_fini(struct bh_cache *c)
{
    size_t it = 0;
    struct bh_map_entry *m;

    while ((m = bh_map_next(&c->nominations, &it))) {
        struct bh_nomination *n = m->value;
        bh_cache_let_go(c, &n->info);
        free(n);
    }
    bh_map_fini(&c->nominations);
    bh_umap_fini(&c->nominated);
}
