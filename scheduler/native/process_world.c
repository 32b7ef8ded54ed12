/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/process_world.c - the cluster as a plugin's process knows it
 *
 * Real types of the cache, filled by hand: so that host.c's accessors answer from them as they do in the
 * scheduler. Rows and symbols have the scheduler's numbers, because it tells them in its order.
 *
 * Owns:    a copy of every node's record; of pods on nodes those that were asked for, until the node
 *          changes.
 * Runs in: the host's main thread.
 */
#include "scheduler/native/process.h"

#define FEED_END UINT64_MAX

enum { FEED_SYMBOLS = 1, FEED_ROW, FEED_CLUSTER, FEED_OBJECTS, FEED_OBJECT };

struct own {
    struct bh_node_info ni;
    void *rec;
    struct bh_arena pods;
};
struct bh_px_world {
    struct bh_native *in;
    struct bh_symtab *tab;
    struct bh_cache cache;
    struct bh_objects objects;
    struct own **own;
    uint32_t cap_own;
};

struct bh_px_world *bh_px_world_new(struct bh_native *in)
{
    struct bh_px_world *w = bh_calloc(1, sizeof *w);

    w->in = in;
    w->tab = bh_symtab_new();
    w->cache.tab = w->tab; /* nothing is interned here: numbers come with the feed */
    bh_columns_reserve(&w->cache.cols, 64);
    return w;
}

static void free_own(struct own *o)
{
    if (!o)
        return;
    bh_arena_fini(&o->pods);
    free(o->ni.scalars);
    free(o->rec);
    free(o);
}

static void drop_kind(struct bh_objects *all, enum bh_kind k)
{
    for (struct bh_object *ob = all->first[k], *next; ob; ob = next) {
        next = ob->next;
        bh_object_free(ob);
    }
    all->first[k] = NULL;
    bh_map_clear(&all->by_name[k]);
}

void bh_px_world_free(struct bh_px_world *w)
{
    for (uint32_t i = 0; i < w->cap_own; i++)
        free_own(w->own[i]);
    free(w->own);
    for (uint32_t i = 0; i < w->in->of->p.n_kinds; i++) {
        drop_kind(&w->objects, w->in->of->kind[i]);
        bh_map_fini(&w->objects.by_name[w->in->of->kind[i]]);
    }
    bh_umap_fini(&w->cache.by_name);
    bh_columns_fini(&w->cache.cols);
    free(w->cache.rows);
    free(w->cache.log);
    free(w->cache.log_what);
    bh_symtab_free(w->tab);
    free(w);
}

struct bh_cache *bh_px_world_cache(struct bh_px_world *w)
{
    return &w->cache;
}
struct bh_objects *bh_px_world_objects(struct bh_px_world *w)
{
    return &w->objects;
}
struct bh_symtab *bh_px_world_symbols(struct bh_px_world *w)
{
    return w->tab;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void log_row(struct bh_cache *c, uint32_t row, bool node)
{
    const uint32_t i = c->log_end++ & (c->log_cap - 1);

    c->log[i] = row;
    c->log_what[i] = node ? BH_ROW_NODE : BH_ROW_PODS;
    if (c->log_end - c->log_begin > c->log_cap)
        c->log_begin = c->log_end - c->log_cap;
}

static void make_room(struct bh_px_world *w, uint32_t n_rows)
{
    struct bh_cache *c = &w->cache;
    uint32_t cap = 64;

    bh_columns_reserve(&c->cols, n_rows);
    c->cols.n_rows = n_rows;
    while (cap < n_rows)
        cap *= 2;
    if (cap <= w->cap_own)
        return;
    w->own = bh_reallocarray(w->own, cap, sizeof *w->own);
    c->rows = bh_reallocarray(c->rows, cap, sizeof(struct bh_node_info *));
    memset(w->own + w->cap_own, 0, (cap - w->cap_own) * sizeof *w->own);
    memset(c->rows + c->cap_rows, 0, (cap - c->cap_rows) * sizeof(struct bh_node_info *));
    c->cap_rows = w->cap_own = cap;
    free(c->log);
    free(c->log_what);
    c->log_cap = 2 * cap;
    c->log = bh_calloc(c->log_cap, sizeof *c->log);
    c->log_what = bh_calloc(c->log_cap, 1);
    c->log_begin = ++c->log_end; /* who follows begins anew */
}

static void get_sums(struct bh_px_in *m, struct bh_node_info *ni, struct bh_arena *a)
{
    bh_sum sums[5] = {0};
    const void *p = bh_px_get(m, sizeof sums);

    if (p)
        memcpy(sums, p, sizeof sums);
    ni->used_cpu_milli = sums[0];
    ni->used_memory_bytes = sums[1];
    ni->used_ephemeral_bytes = sums[2];
    ni->nonzero_cpu_milli = sums[3];
    ni->nonzero_memory_bytes = sums[4];
    ni->n_pods = (uint32_t)bh_px_get_u64(m);
    ni->n_terminating = (uint32_t)bh_px_get_u64(m);
    ni->n_nominated = (uint32_t)bh_px_get_u64(m);
    const uint32_t n = (uint32_t)bh_px_get_u64(m);
    if (n > ni->cap_scalars) {
        ni->scalars = a ? bh_arena_new_array(a, struct bh_scalar_sum, n)
                        : bh_reallocarray(ni->scalars, n, sizeof *ni->scalars);
        ni->cap_scalars = n;
    }
    ni->n_scalars = 0;
    for (uint32_t i = 0; i < n && !m->bad; i++) {
        ni->scalars[i].name = (bh_sym)bh_px_get_u64(m);
        const void *used = bh_px_get(m, sizeof(bh_sum));
        if (used)
            memcpy(&ni->scalars[ni->n_scalars++].used, used, sizeof(bh_sum));
    }
}

/* A record as it stands in the message; NULL: damaged. */
static const void *get_record(struct bh_px_in *m, enum bh_rec_type type)
{
    const struct bh_rec_head *h = (const struct bh_rec_head *)(const void *)m->p;

    if (m->bad || (size_t)(m->end - m->p) < sizeof *h || h->type != type || h->size < sizeof *h)
        m->bad = true;
    return m->bad ? NULL : bh_px_get(m, h->size);
}

static void drop_row(struct bh_px_world *w, uint32_t row)
{
    struct own *o = w->own[row];

    if (!o)
        return;
    uint64_t at = 0;
    if (bh_umap_get(&w->cache.by_name, o->ni.name, &at) && at == (uintptr_t)&o->ni)
        bh_umap_del(&w->cache.by_name, o->ni.name);
    free_own(o);
    w->own[row] = NULL;
    w->cache.rows[row] = NULL;
}

static void take_row(struct bh_px_world *w, struct bh_px_in *m)
{
    const uint64_t row = bh_px_get_u64(m), what = bh_px_get_u64(m);

    if (row >= w->cap_own) {
        m->bad = true;
        return;
    }
    struct own *o = w->own[row];
    if (!what) {
        drop_row(w, (uint32_t)row);
        bh_columns_refresh(&w->cache.cols, (uint32_t)row, NULL);
        log_row(&w->cache, (uint32_t)row, true);
        return;
    }
    if (!o) {
        o = w->own[row] = bh_calloc(1, sizeof *o);
        o->ni.row = (uint32_t)row;
    }
    if (what == 2) {
        const struct bh_node_rec *rec = get_record(m, BH_REC_NODE);
        if (!rec)
            return;
        o->rec = bh_reallocarray(o->rec, 1, rec->h.size);
        memcpy(o->rec, rec, rec->h.size);
        o->ni.rec = o->rec;
    }
    o->ni.name = (bh_sym)bh_px_get_u64(m);
    get_sums(m, &o->ni, NULL);
    bh_arena_fini(&o->pods);
    o->ni.pods = NULL;
    if (!o->ni.rec || m->bad)
        return;
    bh_umap_put(&w->cache.by_name, o->ni.name, (uintptr_t)&o->ni);
    w->cache.rows[row] = &o->ni;
    bh_columns_refresh(&w->cache.cols, (uint32_t)row, &o->ni);
    log_row(&w->cache, (uint32_t)row, what == 2);
}

/* ---- objects --------------------------------------------------------------------------------- */

static void take_object(struct bh_px_world *w, struct bh_px_in *m)
{
    const uint64_t i = bh_px_get_u64(m);
    struct berth_str ns = bh_px_get_str(m), name = bh_px_get_str(m), text = bh_px_get_str(m);
    struct bh_json *v = NULL;
    struct bh_err err;

    if (m->bad || i >= w->in->of->p.n_kinds)
        return;
    const enum bh_kind k = w->in->of->kind[i];
    struct bh_object *ob = bh_calloc(1, sizeof *ob);
    if (bh_json_parse(&ob->arena, text.p, text.n, BH_JSON_NUL, &v, &err) < 0) {
        m->bad = true;
        bh_object_free(ob);
        return;
    }
    ob->json = v;
    ob->ns = bh_strndup(ns.p, ns.n);
    ob->name = bh_strndup(name.p, name.n);
    BH_CLEANUP(bh_freep) char *key = bh_asprintf("%s/%s", ob->ns, ob->name);
    (void)bh_map_put(&w->objects.by_name[k], key, strlen(key), ob);
    /* In the order in which they are told: first() and next() go the same way in both places. */
    struct bh_object **end = &w->objects.first[k];
    if (*end) {
        struct bh_object *last = (*end)->prev;
        ob->prev = last;
        last->next = ob;
        (*end)->prev = ob;
    } else {
        ob->prev = ob;
        *end = ob;
    }
}

/* ---- the feed -------------------------------------------------------------------------------- */

static void take_objects(struct bh_px_world *w, struct bh_px_in *m)
{
    const uint64_t i = bh_px_get_u64(m), version = bh_px_get_u64(m);

    if (m->bad || i >= w->in->of->p.n_kinds)
        return;
    drop_kind(&w->objects, w->in->of->kind[i]);
    w->objects.version[w->in->of->kind[i]] = version;
}

void bh_px_world_take(struct bh_px_world *w, struct bh_px_in *m)
{
    for (uint64_t tag; !m->bad && (tag = bh_px_get_u64(m)) != FEED_END;)
        if (tag == FEED_SYMBOLS) {
            struct berth_str s = bh_px_get_str(m);
            (void)bh_sym_intern(w->tab, s.p, s.n);
        } else if (tag == FEED_CLUSTER) {
            make_room(w, (uint32_t)bh_px_get_u64(m));
            w->cache.n_nodes = (uint32_t)bh_px_get_u64(m);
            w->cache.membership = bh_px_get_u64(m);
        } else if (tag == FEED_ROW) {
            take_row(w, m);
        } else if (tag == FEED_OBJECTS) {
            take_objects(w, m);
        } else if (tag == FEED_OBJECT) {
            take_object(w, m);
        } else {
            m->bad = true;
        }
}

/* ---- handles --------------------------------------------------------------------------------- */

struct bh_pod_info *bh_px_world_pod(struct bh_px_in *m, struct bh_arena *a)
{
    if (!bh_px_get_u64(m))
        return NULL;
    struct bh_pod_info *p = bh_arena_new(a, struct bh_pod_info);
    p->shape_id = (uint32_t)bh_px_get_u64(m);
    p->rec = get_record(m, BH_REC_POD);
    p->shape = get_record(m, BH_REC_SHAPE);
    return m->bad ? NULL : p;
}

const struct bh_node_info *bh_px_world_node(struct bh_px_world *w, struct bh_px_in *m,
                                            struct bh_arena *a)
{
    const uint64_t what = bh_px_get_u64(m);
    const uint64_t row = what ? bh_px_get_u64(m) : 0;

    if (!what)
        return NULL;
    if (what == 1)
        return row < w->cache.cols.n_rows ? w->cache.rows[row] : NULL;
    struct bh_node_info *ni = bh_arena_new(a, struct bh_node_info);
    ni->row = (uint32_t)row;
    ni->name = (bh_sym)bh_px_get_u64(m);
    ni->rec = get_record(m, BH_REC_NODE);
    get_sums(m, ni, a);
    return m->bad ? NULL : ni;
}

bool bh_px_world_has_pods(const struct bh_node_info *ni)
{
    return ni->pods || !ni->n_pods;
}

void bh_px_world_put_pods(struct bh_px_world *w, const struct bh_node_info *ni, struct bh_px_in *m,
                          struct bh_arena *a)
{
    const uint32_t n = (uint32_t)bh_px_get_u64(m);
    const bool own = ni->row < w->cache.cols.n_rows && w->cache.rows[ni->row] == ni;
    struct bh_arena *to = own ? &w->own[ni->row]->pods : a;

    if (m->bad || n > BH_PX_SIDE_BYTES / sizeof(struct bh_pod_rec))
        return;
    struct bh_pod_info **pods = bh_arena_new_array(to, struct bh_pod_info *, n + 1);
    uint32_t have = 0;
    for (; have < n && (pods[have] = bh_px_world_pod(m, to)); have++) {
        pods[have]->rec = bh_arena_memdup(to, pods[have]->rec, pods[have]->rec->h.size);
        pods[have]->shape = bh_arena_memdup(to, pods[have]->shape, pods[have]->shape->h.size);
    }
    struct bh_node_info *mine = (struct bh_node_info *)(uintptr_t)ni;
    mine->pods = pods;
    mine->n_pods = have;
}
