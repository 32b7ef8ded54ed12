/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/cache.c - nodes, and what a sync does with the changed ones
 *
 * Upstream: pkg/scheduler/backend/cache/cache.go (nodes, UpdateSnapshot).
 */
#include "common/base/pages.h"
#include "scheduler/cache/cache_int.h"

void bh_cache_init(struct bh_cache *c, struct bh_symtab *tab, bool keep_order)
{
    memset(c, 0, sizeof *c);
    c->tab = tab;
    c->keep_order = keep_order;
    c->sym = (struct bh_known_syms){
        .any_ip = bh_sym_internc(tab, "0.0.0.0"),
        .metadata_name = bh_sym_internc(tab, "metadata.name"),
        .unschedulable = bh_sym_internc(tab, "node.kubernetes.io/unschedulable"),
        .region = bh_sym_internc(tab, "topology.kubernetes.io/region"),
        .region_beta = bh_sym_internc(tab, "failure-domain.beta.kubernetes.io/region"),
        .zone = bh_sym_internc(tab, "topology.kubernetes.io/zone"),
        .zone_beta = bh_sym_internc(tab, "failure-domain.beta.kubernetes.io/zone"),
    };
    bh_shapes_init(&c->shapes);
    bh_columns_reserve(&c->cols, 64);
}

static struct bh_node_info *info_of(uint64_t v)
{
    return (struct bh_node_info *)(uintptr_t)v;
}

static void free_rec(struct bh_cache *c, const struct bh_node_rec *rec)
{
    bh_pool_free(&c->pool, (void *)(uintptr_t)rec, rec->h.size);
}

static void free_info(struct bh_cache *c, struct bh_node_info *ni)
{
    bh_node_info_fini(ni);
    bh_pool_free(&c->pool, ni, sizeof *ni);
}

static void free_log(struct bh_cache *c)
{
    bh_pages_free(c->log, c->log_cap * sizeof *c->log);
    bh_pages_free(c->log_what, c->log_cap * sizeof *c->log_what);
}

void bh_cache_fini(struct bh_cache *c)
{
    size_t it = 0;
    uint64_t k, v;

    bh_cache_free_pods(c);
    bh_annotations_fini(&c->annotations);
    while (bh_umap_next(&c->by_name, &it, &k, &v)) {
        if (info_of(v)->rec)
            free_rec(c, info_of(v)->rec);
        free_info(c, info_of(v));
    }
    for (it = 0; bh_umap_next(&c->images, &it, &k, &v);)
        free((void *)(uintptr_t)v);
    bh_umap_fini(&c->by_name);
    bh_umap_fini(&c->images);
    bh_umap_fini(&c->claim_users);
    bh_nominator_fini(c);
    bh_groups_fini(&c->groups);
    bh_groups_fini(&c->labelled);
    bh_order_fini(c);
    bh_pages_free(c->rows, c->cap_rows * sizeof *c->rows);
    bh_pages_free(c->row_changed, c->cap_rows);
    free(c->free_rows);
    free(c->changed);
    free(c->affinity_shapes);
    free_log(c);
    bh_columns_fini(&c->cols);
    bh_shapes_fini(&c->shapes);
    bh_pool_fini(&c->pool);
}

static void push(uint32_t **v, uint32_t *n, uint32_t *cap, uint32_t x)
{
    BH_GROW(*v, *n, *cap);
    (*v)[(*n)++] = x;
}

void bh_cache_touch_row(struct bh_cache *c, uint32_t row, enum bh_row_change what)
{
    if (!c->row_changed[row])
        push(&c->changed, &c->n_changed, &c->cap_changed, row);
    c->row_changed[row] = (uint8_t)BH_MAX(c->row_changed[row], what);
}

void bh_cache_touch(struct bh_cache *c, struct bh_node_info *ni, enum bh_row_change what)
{
    if (ni->row != BH_ROW_NONE)
        bh_cache_touch_row(c, ni->row, what);
}

static struct bh_node_info *find_info(const struct bh_cache *c, bh_sym name)
{
    uint64_t v;
    return bh_umap_get(&c->by_name, name, &v) ? info_of(v) : NULL;
}

const struct bh_node_info *bh_cache_node(const struct bh_cache *c, bh_sym name)
{
    struct bh_node_info *ni = find_info(c, name);
    return ni && ni->rec ? ni : NULL;
}

static void take_row(struct bh_cache *c, struct bh_node_info *ni)
{
    if (c->n_free) {
        ni->row = c->free_rows[--c->n_free];
    } else {
        ni->row = c->n_nodes; /* no free row: rows 0 .. n_nodes-1 are all taken */
        if (ni->row == c->cap_rows) {
            /* Columns have room for as many rows from the start, and readers walk all of them:
             * rows that never held a node read as empty. */
            uint32_t old = c->cap_rows;
            c->cap_rows = old ? old * 2 : 64;
            c->rows =
                bh_pages_resize(c->rows, old * sizeof *c->rows, c->cap_rows * sizeof *c->rows);
            c->row_changed = bh_pages_resize(c->row_changed, old, c->cap_rows);
        }
        bh_columns_reserve(&c->cols, ni->row + 1);
    }
    c->rows[ni->row] = ni;
    c->n_nodes++;
    c->membership++;
    c->n_affinity_pods += ni->n_affinity_pods;
    bh_claims_count_node(c, ni, true);
    bh_cache_count_nominations(c, ni);
}

struct bh_node_info *bh_cache_get_info(struct bh_cache *c, bh_sym name)
{
    struct bh_node_info *ni = find_info(c, name);

    if (!ni) {
        ni = bh_pool_alloc(&c->pool, sizeof *ni);
        *ni = (struct bh_node_info){.name = name, .row = BH_ROW_NONE, .pool = &c->pool};
        bh_umap_put(&c->by_name, name, (uint64_t)(uintptr_t)ni);
    }
    return ni;
}

void bh_cache_drop_ghost(struct bh_cache *c, struct bh_node_info *ni)
{
    if (ni->rec || ni->n_pods)
        return;
    bh_umap_del(&c->by_name, ni->name);
    free_info(c, ni);
}

void bh_cache_put_node(struct bh_cache *c, const struct bh_node_rec *n)
{
    struct bh_node_info *ni = bh_cache_get_info(c, n->name);
    const struct bh_node_rec *old = ni->rec;
    struct bh_node_rec *neu = bh_pool_memdup(&c->pool, n, n->h.size);

    bh_images_swap(c, old, neu);
    ni->rec = neu;
    ni->mark = c->rebuild_mark;
    ni->images_seen = 0;
    if (!old)
        take_row(c, ni);
    if (c->keep_order)
        bh_order_update(c, ni->row, old, neu);
    if (old)
        free_rec(c, old);
    bh_cache_touch(c, ni, BH_ROW_NODE);
}

bool bh_cache_put_annotations(struct bh_cache *c, enum bh_annotations_of of, struct bh_str key,
                              const struct K8s__ObjectMeta *meta)
{
    bool changed = bh_annotations_put(&c->annotations, of, key, meta);
    struct bh_node_info *ni = NULL;

    if (changed && of == BH_ANNOTATIONS_NODES)
        ni = find_info(c, bh_sym_find(c->tab, key.p, key.n));
    if (ni)
        bh_cache_touch(c, ni, BH_ROW_NODE);
    return changed;
}

void bh_cache_del_node(struct bh_cache *c, bh_sym name)
{
    struct bh_node_info *ni = find_info(c, name);

    if (!ni || !ni->rec)
        return;
    bh_images_swap(c, ni->rec, NULL);
    if (c->keep_order)
        bh_order_update(c, ni->row, ni->rec, NULL);
    bh_cache_touch_row(c, ni->row, BH_ROW_NODE);
    c->rows[ni->row] = NULL;
    push(&c->free_rows, &c->n_free, &c->cap_free, ni->row);
    bh_row_bit_set(&c->cols, BH_ROW_NOMINATED, ni->row, false);
    c->n_nodes--;
    c->membership++;
    c->n_affinity_pods -= ni->n_affinity_pods;
    bh_claims_count_node(c, ni, false);
    ni->row = BH_ROW_NONE;
    free_rec(c, ni->rec);
    ni->rec = NULL;
    bh_node_info_forget_images(ni);
    bh_cache_drop_ghost(c, ni);
}

/* ---- rebuild ---- */

void bh_cache_rebuild_begin(struct bh_cache *c)
{
    c->rebuild_mark++;
}

void bh_cache_rebuild_end(struct bh_cache *c)
{
    bh_cache_drop_unseen_pods(c);
    for (uint32_t row = 0; row < c->n_nodes + c->n_free; row++) {
        struct bh_node_info *ni = c->rows[row];
        if (ni && ni->mark != c->rebuild_mark)
            bh_cache_del_node(c, ni->name);
    }
}

/* ---- sync ---- */

void bh_cache_sync(struct bh_cache *c)
{
    if (c->log_cap < 2 * c->cols.cap_rows) {
        /* The ring holds at least twice as many entries as there are rows: a reader that is
         * further behind would re-evaluate everything anyway. */
        uint32_t cap = c->log_cap ? c->log_cap : 256;
        while (cap < 2 * c->cols.cap_rows)
            cap *= 2;
        if (cap != c->log_cap) {
            /* Positions stay, contents do not: every reader further back than this rebuilds. */
            free_log(c);
            c->log = bh_pages_new(cap * sizeof *c->log);
            c->log_what = bh_pages_new(cap * sizeof *c->log_what);
            c->log_cap = cap;
            c->log_begin = c->log_end;
        }
    }
    if (c->rebuilt && c->images_synced != c->images_version)
        bh_images_touch(c);
    for (uint32_t i = 0; i < c->n_changed; i++) {
        uint32_t row = c->changed[i];
        struct bh_node_info *ni = c->rows[row];
        uint8_t what = c->row_changed[row];
        c->row_changed[row] = 0;
        if (ni && bh_images_freeze(c, ni))
            what = BH_ROW_NODE;
        if (what != BH_ROW_SAME_PODS)
            bh_columns_refresh(&c->cols, row, ni);
        c->log_what[c->log_end & (c->log_cap - 1)] = what;
        c->log[c->log_end++ & (c->log_cap - 1)] = row;
    }
    c->n_changed = 0;
    if (c->log_end - c->log_begin > c->log_cap)
        c->log_begin = c->log_end - c->log_cap;
}

void bh_cache_node_differs(struct bh_cache *c, bh_sym node)
{
    struct bh_node_info *ni = find_info(c, node);

    if (ni)
        bh_cache_touch(c, ni, BH_ROW_NODE);
}
