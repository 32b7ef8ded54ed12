/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/process_feed.c - what a plugin's process is told of the cluster
 *
 * By the cache's log: a node that did not change is not told again. Rows and symbols have the numbers
 * that they have here. What is told: of nodes the record and the sums; all objects of the plugin's kinds
 * when one changed. Not told until somebody asks: pods on nodes, annotations.
 *
 * Runs in: the engine's thread.
 */
#include "scheduler/native/process.h"

#define FEED_END UINT64_MAX

enum { FEED_SYMBOLS = 1, FEED_ROW, FEED_CLUSTER, FEED_OBJECTS, FEED_OBJECT };

static bool fits(const struct bh_px_out *o, size_t n)
{
    return o->n + n + 256 < BH_PX_FEED_BYTES;
}

static bool feed_symbols(struct bh_px_fed *f, const struct bh_symtab *tab, struct bh_px_out *o)
{
    const uint32_t n = bh_symtab_count(tab);

    for (; f->symbols < n; f->symbols++) {
        struct bh_str s = bh_sym_str(tab, f->symbols);
        if (!fits(o, s.n))
            return false;
        bh_px_put_u64(o, FEED_SYMBOLS);
        bh_px_put_str(o, s.p, s.n);
    }
    return true;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void put_sums(struct bh_px_out *o, const struct bh_node_info *ni)
{
    const bh_sum sums[] = {ni->used_cpu_milli, ni->used_memory_bytes, ni->used_ephemeral_bytes,
                           ni->nonzero_cpu_milli, ni->nonzero_memory_bytes};

    bh_px_put(o, sums, sizeof sums);
    bh_px_put_u64(o, ni->n_pods);
    bh_px_put_u64(o, ni->n_terminating);
    bh_px_put_u64(o, ni->n_nominated);
    bh_px_put_u64(o, ni->n_scalars);
    for (uint32_t i = 0; i < ni->n_scalars; i++) {
        bh_px_put_u64(o, ni->scalars[i].name);
        bh_px_put(o, &ni->scalars[i].used, sizeof ni->scalars[i].used);
    }
}

static size_t room_of(const struct bh_node_info *ni)
{
    return ni ? ni->rec->h.size + 256 + (size_t)ni->n_scalars * 24 : 64;
}

/* record: it may be another one than the host has. */
static bool feed_row(const struct bh_cache *c, uint32_t row, bool record, struct bh_px_out *o)
{
    const struct bh_node_info *ni = c->rows[row];

    if (!fits(o, room_of(ni)))
        return false;
    bh_px_put_u64(o, FEED_ROW);
    bh_px_put_u64(o, row);
    bh_px_put_u64(o, ni ? (record ? 2 : 1) : 0);
    if (!ni)
        return true;
    if (record)
        bh_px_put(o, ni->rec, ni->rec->h.size);
    bh_px_put_u64(o, ni->name);
    put_sums(o, ni);
    return true;
}

static bool feed_all_rows(struct bh_px_fed *f, const struct bh_cache *c, struct bh_px_out *o)
{
    for (; f->next_row < c->cols.n_rows; f->next_row++)
        if (!feed_row(c, f->next_row, true, o))
            return false;
    f->full = false;
    f->next_row = 0;
    return true;
}

static bool feed_changes(struct bh_px_fed *f, const struct bh_cache *c, struct bh_px_out *o)
{
    for (; f->log_pos < c->log_end; f->log_pos++) {
        const uint32_t i = f->log_pos & (c->log_cap - 1);
        if (!feed_row(c, c->log[i], c->log_what[i] == BH_ROW_NODE, o))
            return false;
    }
    /* Since the columns were made: told again with them. */
    for (; f->next_changed < c->n_changed; f->next_changed++) {
        const uint32_t row = c->changed[f->next_changed];
        if (!feed_row(c, row, c->row_changed[row] == BH_ROW_NODE, o))
            return false;
    }
    f->next_changed = 0;
    return true;
}

static bool feed_nodes(struct bh_px_fed *f, const struct bh_cache *c, struct bh_px_out *o)
{
    if (!f->full && (!f->rows || f->log_pos < c->log_begin)) {
        f->full = f->rows = true;
        f->next_row = 0;
        f->log_pos = c->log_end;
    }
    if (!f->full && f->log_pos == c->log_end && !c->n_changed && f->membership == c->membership &&
        f->n_rows == c->cols.n_rows)
        return true;
    bh_px_put_u64(o, FEED_CLUSTER);
    bh_px_put_u64(o, c->cols.n_rows);
    bh_px_put_u64(o, c->n_nodes);
    bh_px_put_u64(o, c->membership);
    f->n_rows = c->cols.n_rows;
    f->membership = c->membership;
    return (!f->full || feed_all_rows(f, c, o)) && feed_changes(f, c, o);
}

/* ---- objects --------------------------------------------------------------------------------- */

static bool feed_kind(uint32_t index, enum bh_kind k, const struct bh_objects *all,
                      struct bh_px_out *o)
{
    struct bh_buf text BH_CLEANUP(bh_buf_fini) = {0};

    bh_px_put_u64(o, FEED_OBJECTS);
    bh_px_put_u64(o, index);
    bh_px_put_u64(o, all->version[k]);
    bh_objects_each(ob, all, k) {
        bh_buf_reset(&text);
        bh_json_write(&text, ob->json);
        bh_px_put_u64(o, FEED_OBJECT);
        bh_px_put_u64(o, index);
        bh_px_put_str(o, ob->ns, strlen(ob->ns));
        bh_px_put_str(o, ob->name, strlen(ob->name));
        bh_px_put_str(o, text.p, text.n);
    }
    return !o->full;
}

static bool feed_objects(struct bh_px_fed *f, const struct bh_native *in, struct bh_px_out *o)
{
    const struct bh_objects *all = in->call ? in->call->objects : NULL;

    for (uint32_t i = 0; all && i < in->of->p.n_kinds; i++) {
        const enum bh_kind k = in->of->kind[i];
        if (f->objects[i] && f->versions[i] == all->version[k])
            continue;
        if (!feed_kind(i, k, all, o))
            return false;
        f->objects[i] = true;
        f->versions[i] = all->version[k];
    }
    return true;
}

bool bh_px_feed(struct bh_px_fed *f, const struct bh_native *in, struct bh_px_out *o)
{
    const struct bh_cache *c = in->call ? in->call->cache : NULL;
    const struct bh_px_fed was = *f;
    bool all = feed_symbols(f, in->tab, o) && (!c || feed_nodes(f, c, o)) && feed_objects(f, in, o);

    bh_px_put_u64(o, FEED_END);
    if (o->full)
        *f = was;
    return all && !o->full;
}

/* ---- handles --------------------------------------------------------------------------------- */

void bh_px_put_pod(struct bh_px_out *o, const struct bh_pod_info *pod)
{
    const bool is = pod && pod->shape && pod->rec;

    bh_px_put_u64(o, is);
    if (!is)
        return;
    bh_px_put_u64(o, pod->shape_id);
    bh_px_put(o, pod->rec, pod->rec->h.size);
    bh_px_put(o, pod->shape, pod->shape->h.size);
}

void bh_px_put_node(struct bh_px_out *o, const struct bh_cache *cache,
                    const struct bh_node_info *ni)
{
    const bool is = ni && ni->rec, known = is && ni->row != BH_ROW_NONE && cache &&
                                           ni->row < cache->cols.n_rows &&
                                           cache->rows[ni->row] == ni;

    bh_px_put_u64(o, !is ? 0 : known ? 1 : 2);
    if (!is)
        return;
    bh_px_put_u64(o, ni->row);
    if (known)
        return;
    bh_px_put_u64(o, ni->name);
    bh_px_put(o, ni->rec, ni->rec->h.size);
    put_sums(o, ni);
}

void bh_px_put_pods(struct bh_px_out *o, const struct bh_node_info *ni)
{
    const uint32_t n = ni && ni->pods ? ni->n_pods : 0; /* a sketch has sums only */

    bh_px_put_u64(o, n);
    for (uint32_t i = 0; i < n; i++)
        bh_px_put_pod(o, ni->pods[i]);
}
