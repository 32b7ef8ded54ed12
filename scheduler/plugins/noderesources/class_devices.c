/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/noderesources/class_devices.c - counting devices for the scores
 *
 * Runs in: the engine's thread.
 */
#include "scheduler/plugins/dynamicresources/device_class.h"
#include "scheduler/plugins/noderesources/class_devices.h"

struct bh_class_devices *bh_class_devices_new(const struct bh_plugin_env *env)
{
    struct bh_class_devices *d = bh_calloc(1, sizeof *d);

    d->tab = env->tab;
    d->reserved = env->reserved ? env->reserved : &d->none;
    return d;
}

void bh_class_devices_free(struct bh_class_devices *d)
{
    if (!d)
        return;
    if (d->ready)
        bh_dra_fini(&d->dra);
    bh_reservations_fini(&d->none);
    free(d);
}

static void find_classes(struct bh_class_devices *d, const struct bh_res_list *l,
                         const struct bh_objects *o)
{
    d->any = false;
    for (uint32_t i = 0; i < l->n; i++) {
        d->of[i] = l->v[i].kind == BH_RES_OTHER
                       ? bh_device_class_of(o, bh_sym_text(d->tab, l->v[i].name))
                       : NULL;
        d->any |= d->of[i] != NULL;
    }
    d->classes_version = o->version[BH_KIND_DEVICECLASS];
}

/* Does a class provide any of the resources? */
static bool in_play(struct bh_class_devices *d, const struct bh_res_list *l,
                    const struct bh_objects *o)
{
    if (d->classes_version != o->version[BH_KIND_DEVICECLASS])
        find_classes(d, l, o);
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

/* ---- counting
 * ------------------------------------------------------------------------------------- */

struct count {
    struct bh_dra *d;
    const K8s__DeviceClass *class;
    const struct bh_node_rec *node;
    int64_t all, allocated;
    bool failed;
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
        c->all++;
        c->allocated += c->d->allocated[dev->id] || c->d->shared[dev->id];
    }
}

static void count_pool(struct count *c, uint32_t pool, bool of_one_node)
{
    const struct bh_dra_pool *p = &c->d->pools[pool];

    for (uint32_t i = p->first; i < p->first + p->n && !c->failed; i++)
        if ((c->d->slices[i].where.kind == BH_DRA_ON_NODE) == of_one_node)
            count_slice(c, &c->d->slices[i]);
}

void bh_class_devices_count(struct bh_class_devices *d, uint32_t i, const struct bh_node_rec *node,
                            int64_t *ret_all, int64_t *ret_allocated)
{
    struct count c = {.d = &d->dra, .class = d->of[i], .node = node};
    uint64_t at = 0;

    *ret_all = *ret_allocated = 0;
    if (!c.class)
        return;
    for (uint32_t k = 0; k < c.d->n_everywhere; k++)
        count_pool(&c, c.d->everywhere[k], false);
    (void)bh_umap_get(&c.d->by_node, node->name, &at);
    for (; at; at = c.d->node_pools[at - 1].next)
        count_pool(&c, c.d->node_pools[at - 1].pool, true);
    if (c.failed)
        return;
    *ret_all = c.all;
    *ret_allocated = c.allocated;
}
