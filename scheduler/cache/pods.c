/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/pods.c - pods on nodes: added, updated, assumed, forgotten
 *
 * Upstream:   pkg/scheduler/backend/cache/cache.go (AddPod, AssumePod, ForgetPod ...); differences:
 *             a pod that moves between nodes is moved, an update of an unknown pod adds it.
 */
#include <errno.h>

#include "common/base/pages.h"
#include "scheduler/cache/cache_int.h"

/* Which shapes with inter-pod affinity terms have pods somewhere. */
static void count_affinity_shape(struct bh_cache *c, uint32_t shape, bool add)
{
    struct bh_shape_entry *e = &c->shapes.e[shape];

    if (!(e->rec->flags & BH_SHAPE_USES_POD_AFFINITY))
        return;
    if (add && e->placed++ == 0) {
        BH_GROW(c->affinity_shapes, c->n_affinity_shapes, c->cap_affinity_shapes);
        e->placed_at = c->n_affinity_shapes;
        c->affinity_shapes[c->n_affinity_shapes++] = shape;
    } else if (!add && --e->placed == 0) {
        uint32_t last = c->affinity_shapes[--c->n_affinity_shapes];
        c->affinity_shapes[e->placed_at] = last;
        c->shapes.e[last].placed_at = e->placed_at;
    }
}

/* What is counted of the pods on nodes, after it came to its node or left it. */
static void count(struct bh_cache *c, struct bh_cache_pod *p, bool add, enum bh_row_change what)
{
    if (p->node->row != BH_ROW_NONE) {
        if (p->info.shape->flags & BH_SHAPE_USES_POD_AFFINITY)
            c->n_affinity_pods += add ? 1u : -1u;
        bh_claims_count(c, p->info.shape, add);
    }
    count_affinity_shape(c, p->info.shape_id, add);
    bh_cache_touch(c, p->node, what);
}

static void place(struct bh_cache *c, struct bh_cache_pod *p, bh_sym node, enum bh_row_change what)
{
    p->node = bh_cache_get_info(c, node);
    bh_node_info_add_pod(p->node, &p->info);
    count(c, p, true, what);
}

static void displace(struct bh_cache *c, struct bh_cache_pod *p, enum bh_row_change what)
{
    struct bh_node_info *ni = p->node;

    if (c->rebuilt)
        bh_node_info_leave_out_pod(ni, &p->info);
    else
        bh_node_info_remove_pod(ni, &p->info);
    count(c, p, false, what);
    p->node = NULL;
    bh_cache_drop_ghost(c, ni);
}

static uint64_t uid_hash(struct bh_str uid)
{
    return bh_hash(uid.p, uid.n, 0x62657274685f7569u);
}

struct bh_cache_pod *bh_cache_pod(const struct bh_cache *c, struct bh_str uid)
{
    uint64_t h = uid_hash(uid);

    if (!c->n_pod_buckets)
        return NULL;
    for (struct bh_cache_pod *p = c->pod_bucket[h & (c->n_pod_buckets - 1)]; p; p = p->next)
        if (p->hash == h && bh_str_eq(bh_rec_text(p->info.rec, p->info.rec->uid), uid))
            return p;
    return NULL;
}

static void grow_pod_buckets(struct bh_cache *c)
{
    uint32_t n = c->n_pod_buckets ? c->n_pod_buckets * 2 : 256;
    struct bh_cache_pod **b = bh_pages_new(n * sizeof *b);

    for (uint32_t i = 0; i < c->n_pod_buckets; i++) {
        for (struct bh_cache_pod *p = c->pod_bucket[i], *next; p; p = next) {
            next = p->next;
            p->next = b[p->hash & (n - 1)];
            b[p->hash & (n - 1)] = p;
        }
    }
    bh_pages_free(c->pod_bucket, c->n_pod_buckets * sizeof *b);
    c->pod_bucket = b;
    c->n_pod_buckets = n;
}

void bh_cache_hold(struct bh_cache *c, struct bh_pod_info *info, const struct bh_pod_rec *rec,
                   uint32_t shape, bh_sym node)
{
    struct bh_pod_rec *copy = bh_pool_memdup(&c->pool, rec, rec->h.size);

    copy->node = node;
    copy->shape = shape;
    bh_shapes_ref(&c->shapes, shape);
    info->rec = copy;
    info->shape = bh_shapes_rec(&c->shapes, shape);
    info->shape_id = shape;
}

void bh_cache_let_go(struct bh_cache *c, struct bh_pod_info *info)
{
    bh_shapes_unref(&c->shapes, info->shape_id);
    bh_pool_free(&c->pool, (void *)(uintptr_t)info->rec, info->rec->h.size);
}

static struct bh_cache_pod *new_pod(struct bh_cache *c, const struct bh_pod_rec *rec,
                                    uint32_t shape, bh_sym node)
{
    struct bh_cache_pod *p = bh_pool_alloc(&c->pool, sizeof *p);

    if (c->n_pods >= c->n_pod_buckets)
        grow_pod_buckets(c);
    memset(p, 0, sizeof *p);
    bh_cache_hold(c, &p->info, rec, shape, node);
    p->hash = uid_hash(bh_rec_text(rec, rec->uid));
    p->mark = c->rebuild_mark;
    struct bh_cache_pod **head = &c->pod_bucket[p->hash & (c->n_pod_buckets - 1)];
    p->next = *head;
    *head = p;
    c->n_pods++;
    place(c, p, node, BH_ROW_PODS);
    return p;
}

static void note_group(struct bh_cache *c, const struct bh_cache_pod *p, enum bh_member_place at)
{
    if (bh_unlikely(c->groups.on))
        bh_groups_place(&c->groups, p->info.rec, p->info.shape, at);
    if (bh_unlikely(c->labelled.on))
        bh_groups_place(&c->labelled, p->info.rec, p->info.shape, at);
}

static void remove_pod(struct bh_cache *c, struct bh_cache_pod *p)
{
    struct bh_cache_pod **at = &c->pod_bucket[p->hash & (c->n_pod_buckets - 1)];

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    c->n_pods--;
    c->n_assumed -= p->assumed;
    note_group(c, p, BH_MEMBER_NOWHERE);
    displace(c, p, BH_ROW_PODS);
    bh_cache_let_go(c, &p->info);
    bh_pool_free(&c->pool, p, sizeof *p);
}

void bh_cache_put_pod(struct bh_cache *c, const struct bh_pod_rec *rec, uint32_t shape)
{
    struct bh_cache_pod *p = bh_cache_pod(c, bh_rec_text(rec, rec->uid));

    if (!p) {
        note_group(c, new_pod(c, rec, shape, rec->node), BH_MEMBER_ASSIGNED);
        return;
    }
    /* As upstream: an update is a removal and an addition, so the node counts as changed and the
     * pod goes to the end of its node's list. */
    struct bh_pod_info old = p->info;
    /* Ports are a set: the addition may bring back what another pod's removal took out of it. */
    bool same = old.shape_id == shape && old.rec->node == rec->node &&
                old.rec->flags == rec->flags &&
                !(c->starts_count && old.rec->start_ns != rec->start_ns) &&
                !bh_shapes_rec(&c->shapes, shape)->host_ports.n;
    enum bh_row_change what = same ? BH_ROW_SAME_PODS : BH_ROW_PODS;
    displace(c, p, what);
    bh_cache_hold(c, &p->info, rec, shape, rec->node);
    bh_cache_let_go(c, &old);
    place(c, p, rec->node, what);
    p->mark = c->rebuild_mark;
    c->n_assumed -= p->assumed;
    p->assumed = false;
    note_group(c, p, BH_MEMBER_ASSIGNED);
}

int bh_cache_assume(struct bh_cache *c, const struct bh_pod_rec *rec, uint32_t shape, bh_sym node)
{
    if (bh_cache_pod(c, bh_rec_text(rec, rec->uid)))
        return -EEXIST;
    struct bh_cache_pod *p = new_pod(c, rec, shape, node);
    p->assumed = true;
    c->n_assumed++;
    note_group(c, p, BH_MEMBER_ASSUMED);
    return 0;
}

int bh_cache_forget(struct bh_cache *c, struct bh_str uid)
{
    struct bh_cache_pod *p = bh_cache_pod(c, uid);

    if (!p || !p->assumed)
        return -ENOENT;
    remove_pod(c, p);
    return 0;
}

void bh_cache_take_back(struct bh_cache *c, struct bh_str uid)
{
    const bool rebuilt = c->rebuilt;

    /* Ports are a set: a port that the pod shared with one that is to make room stays used. */
    c->rebuilt = true;
    (void)bh_cache_forget(c, uid);
    c->rebuilt = rebuilt;
}

void bh_cache_del_pod(struct bh_cache *c, struct bh_str uid)
{
    struct bh_cache_pod *p = bh_cache_pod(c, uid);
    if (p)
        remove_pod(c, p);
}

/* What stands in a node's list is part of the cache's entry. */
static struct bh_cache_pod *entry_of(struct bh_pod_info *pod)
{
    _Static_assert(offsetof(struct bh_cache_pod, info) == 0, "an info begins its entry");
    return (struct bh_cache_pod *)(void *)pod;
}

void bh_cache_lift(struct bh_cache *c, struct bh_pod_info *pod)
{
    displace(c, entry_of(pod), BH_ROW_PODS);
}

void bh_cache_lay(struct bh_cache *c, struct bh_pod_info *pod)
{
    place(c, entry_of(pod), pod->rec->node, BH_ROW_PODS);
}

void bh_cache_free_pods(struct bh_cache *c)
{
    for (uint32_t b = 0; b < c->n_pod_buckets; b++)
        for (struct bh_cache_pod *p = c->pod_bucket[b]; p; p = p->next)
            bh_pool_free(&c->pool, (void *)(uintptr_t)p->info.rec, p->info.rec->h.size);
    bh_pages_free(c->pod_bucket, c->n_pod_buckets * sizeof *c->pod_bucket);
}

void bh_cache_drop_unseen_pods(struct bh_cache *c)
{
    for (uint32_t b = 0; b < c->n_pod_buckets; b++) {
        for (struct bh_cache_pod *p = c->pod_bucket[b], *next; p; p = next) {
            next = p->next;
            if (p->mark != c->rebuild_mark && !p->assumed)
                remove_pod(c, p);
        }
    }
}
