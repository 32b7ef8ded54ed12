/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/noderesources/class_devices.c - counting devices for the scores
 */
#include "scheduler/plugins/dynamicresources/device_class.h"
#include "scheduler/plugins/noderesources/class_devices.h"

struct bh_class_devices *bh_class_devices_new(const struct bh_plugin_env *env)
{
    struct bh_class_devices *d = bh_calloc(1, sizeof *d);

    d->tab = env->tab;
    d->reserved = env->reserved ? env->reserved : &d->none;
    bh_arena_init(&d->kept_arena, 0);
    return d;
}

void bh_class_devices_free(struct bh_class_devices *d)
{
    if (!d)
        return;
    if (d->ready)
        bh_dra_fini(&d->dra);
    bh_reservations_fini(&d->none);
    bh_umap_fini(&d->kept);
    bh_arena_fini(&d->kept_arena);
    free(d->found);
    free(d);
}

/* Does a class provide any of the resources? */
static bool in_play(struct bh_class_devices *d, const struct bh_res_list *l,
                    const struct bh_objects *o)
{
    if (d->classes_version != o->version[BH_KIND_DEVICECLASS]) {
        d->any = false;
        for (uint32_t i = 0; i < l->n; i++) {
            d->of[i] = l->v[i].kind == BH_RES_OTHER
                           ? bh_device_class_of(o, bh_sym_text(d->tab, l->v[i].name))
                           : NULL;
            d->any |= d->of[i] != NULL;
        }
        d->classes_version = o->version[BH_KIND_DEVICECLASS];
    }
    return d->any;
}

struct bh_class_devices *bh_class_devices_get(struct bh_class_devices *d,
                                              const struct bh_res_list *l,
                                              const struct bh_objects *o)
{
    if (!in_play(d, l, o))
        return NULL;
    if (!d->ready) {
        bh_dra_init(&d->dra, d->tab);
        d->dra.reserved = d->reserved;
        d->ready = true;
    }
    bh_dra_sync(&d->dra, o);
    return d;
}

uint64_t bh_class_devices_epoch(struct bh_class_devices *d, const struct bh_res_list *l,
                                const struct bh_objects *o)
{
    uint64_t classes = o->version[BH_KIND_DEVICECLASS];

    /* Complemented: never the same as a number of class changes alone. */
    return in_play(d, l, o) ? ~(classes + o->version[BH_KIND_RESOURCESLICE] +
                                o->version[BH_KIND_RESOURCECLAIM] + d->reserved->version)
                            : classes;
}

/* ---- counting ---- */

struct count {
    struct bh_class_devices *of;
    struct bh_dra *d;
    const K8s__DeviceClass *class;
    const struct bh_node_rec *node;
    uint32_t n; /* devices in of->found, by id */
    bool failed;
};
struct kept {
    bool failed; /* a selector or a slice */
    uint32_t n, ids[];
};

static bool is_for_node(struct count *c, const struct bh_dra_where *w)
{
    c->failed |= w->error != NULL;
    return !w->error && bh_dra_matches_node(c->d, w, c->node);
}

static bool selected(struct count *c, uint32_t device)
{
    const K8s__DeviceClassSpec *s = c->class->spec;

    for (size_t i = 0; s && i < s->n_selectors; i++) {
        bool matches = true;
        if (!s->selectors[i]->cel)
            continue;
        if (bh_dra_selector_match(c->d, s->selectors[i]->cel->expression, device, &matches, NULL) <
            0)
            c->failed = true;
        if (c->failed || !matches)
            return false;
    }
    return true;
}

static void count_slice(struct count *c, const struct bh_dra_slice *s)
{
    /* A slice that says nothing about nodes counts for all of them. */
    bool for_all = !s->per_device && (s->where.kind == BH_DRA_NOWHERE || is_for_node(c, &s->where));

    if (!for_all && !s->per_device)
        return;
    for (uint32_t i = s->first; i < s->first + s->n && !c->failed; i++) {
        const struct bh_dra_device *dev = &c->d->devices[i];
        if ((s->per_device && !is_for_node(c, &dev->where)) || !selected(c, i))
            continue;
        uint32_t id = dev->id;
        struct bh_class_devices *d = c->of;
        BH_GROW(d->found, c->n, d->cap_found);
        d->found[c->n++] = id;
    }
}

static void count_pool(struct count *c, uint32_t pool, bool of_one_node)
{
    const struct bh_dra_pool *p = &c->d->pools[pool];

    for (uint32_t i = p->first; i < p->first + p->n && !c->failed; i++)
        if ((c->d->slices[i].where.kind == BH_DRA_ON_NODE) == of_one_node)
            count_slice(c, &c->d->slices[i]);
}

/* Of slices that name this node: nothing else of it matters. */
static const struct kept *kept_of(struct bh_class_devices *d, uint32_t i,
                                  const struct bh_node_rec *node)
{
    struct count c = {.of = d, .d = &d->dra, .class = d->of[i], .node = node};
    uint64_t key = (uint64_t)node->name * BH_RES_MAX + i, at = 0;

    if (d->kept_index != d->dra.index_generation || d->kept_classes != d->classes_version) {
        bh_umap_clear(&d->kept);
        bh_arena_reset(&d->kept_arena);
        d->kept_index = d->dra.index_generation;
        d->kept_classes = d->classes_version;
    }
    if (bh_umap_get(&d->kept, key, &at))
        return (const void *)(uintptr_t)at;
    (void)bh_umap_get(&c.d->by_node, node->name, &at);
    for (; at; at = c.d->node_pools[at - 1].next)
        count_pool(&c, c.d->node_pools[at - 1].pool, true);
    struct kept *k = bh_arena_alloc(&d->kept_arena, sizeof *k + c.n * sizeof *k->ids);
    *k = (struct kept){.failed = c.failed, .n = c.n};
    if (c.n)
        memcpy(k->ids, d->found, c.n * sizeof *k->ids);
    bh_umap_put(&d->kept, key, (uintptr_t)k);
    return k;
}

static int64_t allocated(const struct bh_dra *d, const uint32_t *ids, uint32_t n)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += d->allocated[ids[i]] || d->shared[ids[i]];
    return sum;
}

void bh_class_devices_count(struct bh_class_devices *d, uint32_t i, const struct bh_node_rec *node,
                            int64_t *ret_all, int64_t *ret_allocated)
{
    struct count c = {.of = d, .d = &d->dra, .class = d->of[i], .node = node};

    *ret_all = *ret_allocated = 0;
    if (!c.class)
        return;
    const struct kept *k = kept_of(d, i, node);
    for (uint32_t p = 0; p < c.d->n_everywhere; p++)
        count_pool(&c, c.d->everywhere[p], false);
    if (c.failed || k->failed)
        return;
    *ret_all = (int64_t)c.n + k->n;
    *ret_allocated = allocated(c.d, d->found, c.n) + allocated(c.d, k->ids, k->n);
}
