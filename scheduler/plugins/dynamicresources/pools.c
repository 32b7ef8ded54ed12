/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/pools.c - the pools that a node may take devices from
 *
 * Upstream: k8s.io/dynamic-resource-allocation/structured/internal/incubating (GatherPools);
 *           differences: none known. A pool that is complete by its slices for the node counts as
 *           such even when slices for other nodes say otherwise.
 */
#include <errno.h>

#include "scheduler/plugins/dynamicresources/devices.h"

struct gather {
    struct bh_dra *d;
    struct bh_arena *a;
    const struct bh_node_rec *node; /* NULL: one that no slice is for */
    struct bh_err *err;
};

/* 1: the slice is for the node, 0: it is not. */
static int is_for_node(struct gather *g, const struct bh_dra_slice *s)
{
    if (s->spec->n_sharedcounters || !g->node)
        return s->spec->n_sharedcounters > 0;
    if (s->where.error)
        return bh_err_set(g->err, -EINVAL,
                          "gather pool information: failed to perform node selection for slice %s: "
                          "%s",
                          s->name, bh_dra_where_error(g->a, &s->where, s->spec->nodeselector));
    if (s->where.kind != BH_DRA_NOWHERE)
        return bh_dra_matches_node(g->d, &s->where, g->node);
    for (uint32_t k = 0; s->per_device && k < s->n; k++) {
        const struct bh_dra_device *dev = &g->d->devices[s->first + k];
        if (dev->where.error)
            return bh_err_set(g->err, -EINVAL,
                              "gather pool information: failed to perform node selection for "
                              "device %s in slice %s: %s",
                              dev->msg->name, s->name,
                              bh_dra_where_error(g->a, &dev->where, dev->msg->nodeselector));
        if (bh_dra_matches_node(g->d, &dev->where, g->node))
            return 1;
    }
    return 0;
}

/* ---- validity ---- */

static bool same_device_twice(struct bh_dra *d, const struct bh_dra_view *v)
{
    d->stamp_now++;
    for (uint32_t i = 0; i < v->n; i++) {
        const struct bh_dra_slice *s = &d->slices[v->slices[i]];
        for (uint32_t k = 0; bh_dra_has_devices(s) && k < s->n; k++) {
            uint32_t *stamp = &d->stamp[d->devices[s->first + k].id];
            if (*stamp == d->stamp_now)
                return true;
            *stamp = d->stamp_now;
        }
    }
    return false;
}

static const K8s__CounterSet *find_set(const struct bh_dra *d, const struct bh_dra_view *v,
                                       const char *name, uint32_t *ret_times)
{
    const K8s__CounterSet *found = NULL;

    *ret_times = 0;
    for (uint32_t i = 0; i < v->n; i++) {
        const K8s__ResourceSliceSpec *s = d->slices[v->slices[i]].spec;
        for (size_t k = 0; k < s->n_sharedcounters; k++) {
            if (!bh_streq(s->sharedcounters[k]->name, name))
                continue;
            found = s->sharedcounters[k];
            ++*ret_times;
        }
    }
    return found;
}

static bool has_counters(const K8s__CounterSet *set, const K8s__DeviceCounterConsumption *c)
{
    for (size_t i = 0; i < c->n_counters; i++) {
        size_t k = 0;
        while (k < set->n_counters && !bh_streq(set->counters[k]->key, c->counters[i]->key))
            k++;
        if (k == set->n_counters)
            return false;
    }
    return true;
}

static bool consumes_unknown(const struct bh_dra *d, const struct bh_dra_view *v,
                             const struct bh_dra_slice *s)
{
    uint32_t times;

    for (uint32_t k = 0; k < s->n; k++) {
        const K8s__Device *m = d->devices[s->first + k].msg;
        for (size_t c = 0; c < m->n_consumescounters; c++) {
            const K8s__CounterSet *set = find_set(d, v, m->consumescounters[c]->counterset, &times);
            if (!set || !has_counters(set, m->consumescounters[c]))
                return true;
        }
    }
    return false;
}

/* Devices for other nodes are looked at as well: what they consume counts. */
static bool counters_are_broken(const struct bh_dra *d, const struct bh_dra_view *v)
{
    const struct bh_dra_pool *p = v->pool;
    uint32_t times;

    for (uint32_t i = 0; i < v->n; i++) {
        const struct bh_dra_slice *s = &d->slices[v->slices[i]];
        for (size_t k = 0; k < s->spec->n_sharedcounters; k++) {
            (void)find_set(d, v, s->spec->sharedcounters[k]->name, &times);
            if (times > 1)
                return true;
        }
        if (consumes_unknown(d, v, s))
            return true;
    }
    for (uint32_t i = p->first; v->others && i < p->first + p->n; i++)
        if (d->slices[i].generation == v->generation && consumes_unknown(d, v, &d->slices[i]))
            return true;
    return false;
}

/* ---- completeness ---- */

/* false: a newer generation exists somewhere, so nothing of this pool may be used. */
static bool judge_anew(struct bh_dra *d, struct bh_dra_view *v)
{
    const struct bh_dra_pool *p = v->pool;
    int64_t count = d->slices[v->slices[0]].count;
    uint32_t n = 0;

    if ((int64_t)v->n != count) {
        for (uint32_t i = p->first; i < p->first + p->n; i++) {
            if (d->slices[i].generation > v->generation)
                return false;
            n += d->slices[i].generation == v->generation;
        }
        v->incomplete = (int64_t)n != count;
        v->others = n != v->n;
    }
    v->invalid = !v->incomplete && (same_device_twice(d, v) || counters_are_broken(d, v));
    return true;
}

/* All nodes that see every slice of a pool see the same: it is judged once for them. */
static bool judge(struct bh_dra *d, struct bh_dra_view *v)
{
    struct bh_dra_pool *p = &d->pools[v->pool - d->pools];

    if (v->n != p->n)
        return judge_anew(d, v);
    if (!p->judged) {
        p->usable = judge_anew(d, v);
        p->incomplete = v->incomplete;
        p->invalid = v->invalid;
        p->judged = true;
    }
    v->incomplete = p->incomplete;
    v->invalid = p->invalid;
    return p->usable; /* v->others: there are none */
}

/* 1: the pool has something for the node. */
static int view_pool(struct gather *g, uint32_t pool, struct bh_dra_view *ret)
{
    struct bh_dra *d = g->d;
    const struct bh_dra_pool *p = &d->pools[pool];
    uint32_t *kept = bh_arena_new_array(g->a, uint32_t, p->n);
    uint32_t n = 0, m = 0;
    int64_t newest = INT64_MIN;

    for (uint32_t i = p->first; i < p->first + p->n; i++) {
        int rc = is_for_node(g, &d->slices[i]);
        if (rc < 0)
            return rc;
        if (!rc)
            continue;
        kept[n++] = i;
        newest = BH_MAX(newest, d->slices[i].generation);
    }
    for (uint32_t i = 0; i < n; i++)
        if (d->slices[kept[i]].generation == newest)
            kept[m++] = kept[i];
    if (!m)
        return 0;
    *ret = (struct bh_dra_view){.pool = p, .generation = newest, .slices = kept, .n = m};
    return judge(d, ret);
}

bool bh_dra_seen_by_others(struct bh_dra *d, uint32_t pool)
{
    struct gather g = {.d = d, .a = &d->scratch};
    struct bh_dra_view v;

    bh_arena_reset(&d->scratch);
    return view_pool(&g, pool, &v) > 0 && (v.incomplete || v.invalid);
}

static bool binds_later(const struct bh_dra *d, const struct bh_dra_view *v)
{
    for (uint32_t i = 0; !v->incomplete && !v->invalid && i < v->n; i++) {
        const struct bh_dra_slice *s = &d->slices[v->slices[i]];
        for (uint32_t k = 0; bh_dra_has_devices(s) && k < s->n; k++)
            if (d->devices[s->first + k].flags & BH_DRA_BINDING)
                return true;
    }
    return false;
}

uint32_t *bh_dra_own_pools(const struct bh_dra *d, struct bh_arena *a, bh_sym node, uint32_t *ret_n)
{
    uint64_t head = 0;
    uint32_t n = 0;

    (void)bh_umap_get(&d->by_node, node, &head);
    for (uint64_t at = head; at; at = d->node_pools[at - 1].next)
        n++;
    uint32_t *own = bh_arena_new_array(a, uint32_t, n + 1);
    *ret_n = n;
    for (uint64_t at = head; at; at = d->node_pools[at - 1].next)
        own[--n] = d->node_pools[at - 1].pool;
    return own;
}

int bh_dra_views_among(struct bh_dra *d, struct bh_arena *a, const struct bh_node_rec *node,
                       const uint32_t *pools, uint32_t n, struct bh_dra_views *ret,
                       struct bh_err *err)
{
    struct gather g = {.d = d, .a = a, .node = node, .err = err};

    *ret = (struct bh_dra_views){.v = bh_arena_new_array(a, struct bh_dra_view, n + 1)};
    for (uint32_t i = 0; i < n; i++) {
        int rc = view_pool(&g, pools[i], &ret->v[ret->n]);
        if (rc < 0)
            return rc;
        ret->n += (uint32_t)rc;
    }
    /* Usable pools with a device that has binding conditions come last; the order stays else. */
    struct bh_dra_view *late = bh_arena_new_array(a, struct bh_dra_view, ret->n + 1);
    uint32_t n_late = 0;
    for (uint32_t i = 0; i < ret->n; i++) {
        if (binds_later(d, &ret->v[i]))
            late[n_late++] = ret->v[i];
        else
            ret->v[ret->n_early++] = ret->v[i];
    }
    if (n_late)
        memcpy(ret->v + ret->n_early, late, n_late * sizeof *late);
    return 0;
}

int bh_dra_views(struct bh_dra *d, struct bh_arena *a, const struct bh_node_rec *node,
                 struct bh_dra_views *ret, struct bh_err *err)
{
    uint32_t n_own, at = 0, n = 0;
    uint32_t *own = bh_dra_own_pools(d, a, node->name, &n_own);
    uint32_t *pools = bh_arena_new_array(a, uint32_t, n_own + d->n_everywhere + 1);

    for (uint32_t i = 0; at < n_own || i < d->n_everywhere;) {
        if (i < d->n_everywhere && (at == n_own || d->everywhere[i] <= own[at])) {
            pools[n] = d->everywhere[i++];
            at += at < n_own && own[at] == pools[n];
            n++;
        } else {
            pools[n++] = own[at++];
        }
    }
    return bh_dra_views_among(d, a, node, pools, n, ret, err);
}
