/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/sights.c - what nodes see of all devices
 *
 * A sight is a few runs of neighbouring devices. Devices behind a node selector are seen by many
 * nodes, and a search for the same claims among the same devices ends alike: nodes with one sight
 * have one number.
 *
 * Invariants: of_row[row] is current as far as log_pos (cache) and index (generation of the index).
 */
#include "scheduler/plugins/dynamicresources/asked.h"

#define SIGHTS_MAX ((size_t)64 << 20) /* bytes; more are not kept */

enum { UNKNOWN, NOT_KEPT, FIRST }; /* of_row; groups are numbered from FIRST */

/* A sight whose devices with binding conditions are set apart: parts can be put together. */
struct part {
    struct bh_dra_run *runs;
    uint32_t n_runs, n_early; /* runs */
    bool invalid, incomplete, per_device;
};
struct group {
    struct bh_dra_sight sight;
    uint32_t next; /* of the same hash, 0 ends */
};
/* What nodes that match the same selectors see of the pools that are not of one node. */
struct shared {
    struct part part;
    uint8_t *matches; /* by selector */
    uint32_t next;    /* of the same hash + 1 */
};
struct bh_dra_sights {
    uint64_t index, log_pos;
    struct shared *shared;
    uint32_t n_shared, cap_shared;
    struct bh_umap by_matches; /* hash -> shared + 1 */
    struct bh_buf matches;
    uint32_t *of_row, n_rows;
    struct group *group; /* by number - FIRST */
    uint32_t n_groups, cap_groups;
    size_t bytes;
    struct bh_umap by_hash; /* of the sight -> group */
};

/* ---- one sight ---- */

static void add_run(struct bh_dra_sight *v, struct bh_dra_run *runs, uint32_t first, uint32_t n)
{
    struct bh_dra_run *last = v->n_runs ? &runs[v->n_runs - 1] : NULL;

    if (last && last->first + last->n == first)
        last->n += n;
    else
        runs[v->n_runs++] = (struct bh_dra_run){first, n, v->n_devices};
    v->n_devices += n;
}

/* The devices of one class of views. */
static uint32_t add_views(const struct bh_dra *d, const struct bh_dra_view *v, uint32_t n,
                          struct bh_dra_run *runs)
{
    struct bh_dra_sight some = {0};

    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < v[i].n && !v[i].invalid && !v[i].incomplete; k++) {
            const struct bh_dra_slice *s = &d->slices[v[i].slices[k]];
            if (bh_dra_has_devices(s) && s->n)
                add_run(&some, runs, s->first, s->n);
        }
    return some.n_runs;
}

static struct part part_from(const struct bh_dra *d, struct bh_arena *a,
                             const struct bh_dra_views *views)
{
    struct part p = {0};
    uint32_t n = 0;

    for (uint32_t i = 0; i < views->n; i++) {
        const struct bh_dra_view *v = &views->v[i];
        n += v->n;
        p.invalid |= v->invalid;
        p.incomplete |= v->incomplete;
        for (uint32_t k = 0; k < v->n; k++)
            p.per_device |= d->slices[v->slices[k]].per_device;
    }
    p.runs = bh_arena_new_array(a, struct bh_dra_run, n + 1);
    p.n_early = add_views(d, views->v, views->n_early, p.runs);
    p.n_runs = p.n_early + add_views(d, views->v + views->n_early, views->n - views->n_early,
                                     p.runs + p.n_early);
    return p;
}

/* Runs of both by their devices, which are in order of pools and slices. */
static void merge(struct bh_dra_sight *v, struct bh_dra_run *runs, const struct bh_dra_run *a,
                  uint32_t n_a, const struct bh_dra_run *b, uint32_t n_b)
{
    while (n_a || n_b) {
        bool from_a = n_a && (!n_b || a->first < b->first);
        const struct bh_dra_run *r = from_a ? a++ : b++;
        n_a -= from_a;
        n_b -= !from_a;
        add_run(v, runs, r->first, r->n);
    }
}

static struct bh_dra_sight together(struct bh_arena *mem, const struct part *a,
                                    const struct part *b)
{
    struct bh_dra_sight v = {.invalid = a->invalid || b->invalid,
                             .incomplete = a->incomplete || b->incomplete,
                             .per_device = a->per_device || b->per_device};
    struct bh_dra_run *runs = bh_arena_new_array(mem, struct bh_dra_run, a->n_runs + b->n_runs + 1);

    merge(&v, runs, a->runs, a->n_early, b->runs, b->n_early);
    merge(&v, runs, a->runs + a->n_early, a->n_runs - a->n_early, b->runs + b->n_early,
          b->n_runs - b->n_early);
    v.runs = runs;
    return v;
}

struct bh_dra_sight bh_dra_sight_from(const struct bh_dra *d, struct bh_arena *a,
                                      const struct bh_dra_views *views)
{
    static struct bh_dra_run none;
    const struct part all = part_from(d, a, views), nothing = {.runs = &none};

    return together(a, &all, &nothing);
}

bool bh_dra_begin_alike(const struct bh_dra_sight *a, const struct bh_dra_sight *b, uint32_t n)
{
    if (a->per_device || b->per_device || n > a->n_devices || n > b->n_devices)
        return false;
    for (uint32_t i = 0; n; i++) {
        uint32_t here = BH_MIN(a->runs[i].n, n);
        n -= here;
        if (a->runs[i].first != b->runs[i].first || b->runs[i].n < here ||
            (n && b->runs[i].n > here))
            return false;
    }
    return true;
}

/* ---- all of them ---- */

static void forget_all(struct bh_dra *d, struct bh_dra_sights *k)
{
    d->sights_generation++;
    for (uint32_t i = 0; i < k->n_groups; i++)
        free((void *)(uintptr_t)k->group[i].sight.runs);
    for (uint32_t i = 0; i < k->n_shared; i++) {
        free(k->shared[i].part.runs);
        free(k->shared[i].matches);
    }
    k->n_groups = k->n_shared = 0;
    k->bytes = 0;
    bh_umap_clear(&k->by_matches);
    bh_umap_clear(&k->by_hash);
    memset(k->of_row, 0, k->n_rows * sizeof *k->of_row);
}

void bh_dra_sights_fini(struct bh_dra *d)
{
    struct bh_dra_sights *k = d->sights;

    if (!k)
        return;
    k->n_rows = 0;
    forget_all(d, k);
    free(k->of_row);
    free(k->group);
    bh_umap_fini(&k->by_hash);
    free(k->shared);
    bh_umap_fini(&k->by_matches);
    bh_buf_fini(&k->matches);
    free(k);
    d->sights = NULL;
}

static bool same(const struct bh_dra_sight *a, const struct bh_dra_sight *b)
{
    return a->n_runs == b->n_runs && a->invalid == b->invalid && a->incomplete == b->incomplete &&
           a->per_device == b->per_device &&
           (!a->n_runs || memcmp(a->runs, b->runs, a->n_runs * sizeof *a->runs) == 0);
}

static uint32_t group_of(struct bh_dra_sights *k, const struct bh_dra_sight *v)
{
    size_t bytes = v->n_runs * sizeof *v->runs;
    uint64_t hash = bh_hash(v->runs, bytes, 0), first = 0;

    (void)bh_umap_get(&k->by_hash, hash, &first);
    for (uint32_t g = (uint32_t)first; g; g = k->group[g - FIRST].next)
        if (same(&k->group[g - FIRST].sight, v))
            return g;
    if (k->bytes + bytes > SIGHTS_MAX)
        return NOT_KEPT;
    BH_GROW(k->group, k->n_groups, k->cap_groups);
    struct group *g = &k->group[k->n_groups];
    *g = (struct group){.sight = *v, .next = (uint32_t)first};
    g->sight.runs = bytes ? bh_memdup(v->runs, bytes) : NULL;
    k->bytes += bytes + sizeof *g;
    bh_umap_put(&k->by_hash, hash, k->n_groups + FIRST);
    return FIRST + k->n_groups++;
}

static const struct part *find_shared(const struct bh_dra_sights *k, uint64_t hash,
                                      uint32_t *ret_first)
{
    uint64_t first = 0;

    (void)bh_umap_get(&k->by_matches, hash, &first);
    *ret_first = (uint32_t)first;
    for (uint32_t i = (uint32_t)first; i; i = k->shared[i - 1].next)
        if (memcmp(k->shared[i - 1].matches, k->matches.p, k->matches.n) == 0)
            return &k->shared[i - 1].part;
    return NULL;
}

/* 0 or an error; only with by_selector. */
static int shared_part(struct bh_dra *d, struct bh_dra_sights *k, const struct bh_node_rec *node,
                       struct part *ret)
{
    struct bh_dra_views views;
    uint32_t first;

    bh_buf_reset(&k->matches);
    bh_buf_addc(&k->matches, ':'); /* never empty */
    for (uint32_t i = 0; i < d->n_selectors; i++)
        bh_buf_addc(&k->matches, bh_dra_matches_node(d, &d->selectors[i], node) ? '1' : '0');
    uint64_t hash = bh_hash(k->matches.p, k->matches.n, 0);
    const struct part *known = find_shared(k, hash, &first);
    if (known) {
        *ret = *known;
        return 0;
    }
    int rc = bh_dra_views_among(d, &d->scratch, node, d->everywhere, d->n_everywhere, &views, NULL);
    if (rc < 0)
        return rc;
    *ret = part_from(d, &d->scratch, &views);
    size_t bytes = ret->n_runs * sizeof *ret->runs + k->matches.n;
    if (k->bytes + bytes > SIGHTS_MAX)
        return 0;
    BH_GROW(k->shared, k->n_shared, k->cap_shared);
    struct shared *s = &k->shared[k->n_shared++];
    ret->runs = bh_memdup(ret->runs, (ret->n_runs + 1) * sizeof *ret->runs);
    *s = (struct shared){
        .part = *ret, .matches = bh_memdup(k->matches.p, k->matches.n), .next = first};
    k->bytes += bytes + sizeof *s;
    bh_umap_put(&k->by_matches, hash, k->n_shared);
    return 0;
}

static int see(struct bh_dra *d, struct bh_dra_sights *k, const struct bh_node_rec *node,
               struct bh_dra_sight *ret)
{
    struct bh_dra_views views;
    struct part shared;
    uint32_t n;
    int rc;

    if (!d->by_selector) {
        rc = bh_dra_views(d, &d->scratch, node, &views, NULL);
        if (rc == 0)
            *ret = bh_dra_sight_from(d, &d->scratch, &views);
        return rc;
    }
    rc = shared_part(d, k, node, &shared);
    const uint32_t *pools = bh_dra_own_pools(d, &d->scratch, node->name, &n);
    if (rc == 0)
        rc = bh_dra_views_among(d, &d->scratch, node, pools, n, &views, NULL);
    if (rc < 0)
        return rc;
    const struct part own = part_from(d, &d->scratch, &views);
    *ret = together(&d->scratch, &shared, &own);
    return 0;
}

const struct bh_dra_sight *bh_dra_sight_of(struct bh_dra *d, const struct bh_cache *c,
                                           const struct bh_node_info *node, uint32_t *ret_group)
{
    struct bh_dra_sights *k = d->sights;

    if (!k)
        k = d->sights = bh_calloc(1, sizeof *k);
    if (k->n_rows < c->cols.cap_rows) {
        k->n_rows = c->cols.cap_rows;
        k->of_row = bh_reallocarray(k->of_row, k->n_rows, sizeof *k->of_row);
        k->index = 0;
    }
    /* Most groups may be of nodes that have changed since. Nothing is forgotten while nothing
     * changes: sights are in use. */
    bool crowded = k->log_pos < c->log_end && k->n_groups > 2 * k->n_rows;
    if (k->index != d->index_generation || k->log_pos < c->log_begin || crowded) {
        forget_all(d, k);
        k->log_pos = c->log_end;
    }
    for (; k->log_pos < c->log_end; k->log_pos++)
        if (c->log_what[k->log_pos & (c->log_cap - 1)] == BH_ROW_NODE)
            k->of_row[c->log[k->log_pos & (c->log_cap - 1)]] = UNKNOWN;
    k->index = d->index_generation;
    /* The node's object as it is in its row, and nothing that the log does not tell yet. */
    bool known = node->row < c->cols.n_rows && c->rows[node->row] &&
                 c->rows[node->row]->rec == node->rec && c->row_changed[node->row] < BH_ROW_NODE;
    uint32_t *g = known ? &k->of_row[node->row] : NULL;
    if (g && *g == UNKNOWN) {
        struct bh_arena_mark mark = bh_arena_mark(&d->scratch);
        struct bh_dra_sight v;
        /* NOT_KEPT also when there is an error: the search finds it again. */
        *g = see(d, k, node->rec, &v) == 0 ? group_of(k, &v) : NOT_KEPT;
        bh_arena_rewind(&d->scratch, mark);
    }
    if (!g || *g < FIRST)
        return NULL;
    if (ret_group)
        *ret_group = *g;
    return &k->group[*g - FIRST].sight;
}
