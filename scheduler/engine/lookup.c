/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine/lookup.c - what the daemon asks of the engine beside decisions: what is known,
 * what a new feed left out, which plugins an event concerns
 */
#include "scheduler/engine/state.h"

const struct bh_node_rec *bh_engine_find_node(const struct bh_engine *e, bh_sym name)
{
    const struct bh_node_info *n = bh_cache_node(&e->cache, name);

    return n ? n->rec : NULL;
}

const struct bh_node_info *bh_engine_node_info(const struct bh_engine *e, bh_sym name)
{
    return bh_cache_node(&e->cache, name);
}

const struct bh_pod_rec *bh_engine_find_pod(const struct bh_engine *e, struct bh_str uid,
                                            bh_shape_id *ret_shape)
{
    const struct bh_cache_pod *p = bh_cache_pod(&e->cache, uid);

    if (!p)
        return NULL;
    if (ret_shape)
        *ret_shape = p->info.shape_id;
    return p->info.rec;
}

struct bh_known_pod bh_engine_known_pod(const struct bh_engine *e, struct bh_str uid)
{
    const struct bh_cache_pod *p = bh_cache_pod(&e->cache, uid);

    return p ? (struct bh_known_pod){p->info.rec, p->info.shape_id, p->assumed}
             : (struct bh_known_pod){.rec = NULL};
}

void bh_engine_each_assumed(const struct bh_engine *e, void (*fn)(void *arg, struct bh_str uid),
                            void *arg)
{
    const struct bh_cache *c = &e->cache;

    if (!c->n_assumed)
        return;
    for (uint32_t b = 0; b < c->n_pod_buckets; b++)
        for (const struct bh_cache_pod *p = c->pod_bucket[b]; p; p = p->next)
            if (p->assumed)
                fn(arg, bh_rec_text(p->info.rec, p->info.rec->uid));
}

bool bh_engine_plugin_interested(struct bh_engine *e, const char *plugin,
                                 const struct bh_cluster_event *ev)
{
    const struct bh_plugin *p = bh_plugin_find(plugin);

    if (ev->resource == BH_EV_PLUGIN)
        return bh_streq(plugin, ev->plugin);
    if (!p && e->ext && bh_streq(plugin, BH_EXTENDER_PLUGIN))
        return bh_extenders_wake(ev);
    return !p || bh_plugin_interested(p, ev);
}

void bh_engine_objects_begin(struct bh_engine *e)
{
    e->objects.feed++;
    e->cache.annotations.feed++;
    if (e->ext)
        bh_ext_objects_begin(e->ext);
}

void bh_engine_objects_end(struct bh_engine *e)
{
    bh_objects_sweep(&e->objects);
    bh_annotations_sweep(&e->cache.annotations);
    if (e->ext)
        bh_ext_objects_end(e->ext);
    e->raw_changed = true;
}

const ProtobufCMessage *bh_engine_get_object(const struct bh_engine *e, enum bh_kind kind,
                                             const char *ns, const char *name)
{
    return bh_objects_get(&e->objects, kind, ns, name);
}

void bh_engine_each_object(const struct bh_engine *e, enum bh_kind kind,
                           void (*fn)(void *arg, const ProtobufCMessage *m), void *arg)
{
    bh_objects_each(o, &e->objects, kind)
        fn(arg, o->msg);
}

void bh_engine_each_node(const struct bh_engine *e, void (*fn)(void *arg, bh_sym name), void *arg)
{
    const struct bh_cache *c = &e->cache;

    for (uint32_t row = 0; row < c->n_nodes + c->n_free;
         row++) /* columns follow with the next sync */
        if (c->rows[row])
            fn(arg, c->rows[row]->name);
}

uint32_t bh_engine_plugins_at(const struct bh_engine *e, const struct bh_pending *p,
                              enum bh_point at, const char *names[], uint32_t max)
{
    const struct bh_shape_rec *s = bh_engine_shape_rec(e, p->shape);

    for (uint32_t i = 0; i < e->n_profiles; i++) {
        const struct bh_framework *fw = e->profile[i].fw;
        uint32_t n = BH_MIN(fw->n_point[at], max);
        if (e->profile[i].name != s->scheduler_name)
            continue;
        for (uint32_t k = 0; k < n; k++)
            names[k] = fw->plugins[fw->point[at][k]].plugin->name;
        return n;
    }
    return 0;
}
