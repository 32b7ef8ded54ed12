/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine/fast/fail.c - pods that fit nowhere, and pods that were promised a node
 *
 * A shape whose pods find no node is asked about again and again. Why each node rejects it is kept
 * beside the shape's results, with counts per reason; rows that changed are asked anew, through the
 * per-node filters, when the next pod fails. So a decision's text, the plugins to wake it and what
 * PostFilter wants to know are there without a visit to every node.
 *
 * Of a tracked shape that goes for the rows which the node-local plugins reject. What the plugins
 * that keep track say of the others is asked for one row of each cell (cells.c); rows are
 * visited only when the answer for their cell is another than the last time.
 *
 * Invariants (struct bh_fail, when nothing is touched): by_row[row] is what the reference path
 * would say of the row for any pod of the shape that is not nominated to it; NULL where no node is;
 *             n[i] rows have status i of the set; a bit in unschedulable for each of exactly that
 *             code. A row in touched has changed since, or is in another cell. of_cell is what the
 *             rows of a cell have that are not touched.
 * Gives up    (NULL, the caller takes the reference path): a filter fails, more different statuses
 * than the set holds, extenders; and of tracked shapes: no cells, a node is rejected by a plugin
 * that comes after one that keeps track.
 * Runs in:    the engine's thread. Steady state: no malloc.
 */
#include <stdio.h>

#include "scheduler/engine/fast/fast.h"
#include "scheduler/preemption/preemption.h"

struct bh_fail {
    uint32_t n_rows, n_unschedulable;
    uint8_t *id; /* by row: index of the status + 1, 0 = no node */
    const struct bh_status **by_row;
    uint64_t *unschedulable, *touched; /* bits by row */
    struct bh_status_set set;
    uint32_t n[BH_STATUS_SET_MAX];
    struct bh_dry_runs *dry_runs; /* NULL until a pod preempts */
    char *text;                   /* of the FitError */
    size_t text_cap;
    uint32_t text_nodes;
    bool text_right;
    /* ---- of tracked shapes ---- */
    uint64_t tracked;              /* the plugins that have a say in it */
    uint64_t builds;               /* of the cells */
    uint8_t of_cell[BH_CELLS_MAX]; /* by cell: as id, 0 = never asked */
    uint64_t *lower;               /* bits by row: some pod on the node has a lower priority */
};

static size_t words(uint32_t rows)
{
    return (rows + 63) / 64;
}

static size_t bytes_of(const struct bh_fail *f)
{
    return sizeof *f + f->n_rows * (sizeof *f->id + sizeof *f->by_row) +
           3 * words(f->n_rows) * sizeof(uint64_t) +
           (f->dry_runs ? bh_dry_runs_bytes(f->dry_runs) : 0);
}

size_t bh_fail_bytes(const struct bh_shape_cache *sc)
{
    return sc->fail ? bytes_of(sc->fail) : 0;
}

void bh_fail_free(struct bh_shape_cache *sc)
{
    struct bh_fail *f = sc->fail;

    if (!f)
        return;
    bh_dry_runs_free(f->dry_runs);
    bh_status_set_fini(&f->set);
    free(f->id);
    free(f->by_row);
    free(f->unschedulable);
    free(f->touched);
    free(f->lower);
    free(f->text);
    free(f);
    sc->fail = NULL;
}

void bh_fail_touch(struct bh_shape_cache *sc, const uint32_t *rows, uint32_t n)
{
    for (uint32_t i = 0; sc->fail && i < n; i++)
        sc->fail->touched[rows[i] / 64] |= (uint64_t)1 << (rows[i] % 64);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* id: 0 = no node. */
static void set_row(struct bh_fail *f, uint32_t row, uint32_t id)
{
    uint64_t bit = (uint64_t)1 << (row % 64), *word = &f->unschedulable[row / 64];

    if (f->id[row] == id)
        return;
    f->text_right = false;
    if (f->id[row])
        f->n[f->id[row] - 1]--;
    f->n_unschedulable -= (*word & bit) != 0;
    *word &= ~bit;
    f->id[row] = (uint8_t)id;
    f->by_row[row] = id ? &f->set.v[id - 1].status : NULL;
    if (!id)
        return;
    f->n[id - 1]++;
    if (f->by_row[row]->code == BH_UNSCHEDULABLE) {
        *word |= bit;
        f->n_unschedulable++;
    }
}

static uint32_t id_of(struct bh_fail *f, const struct bh_status *s, int by)
{
    if (!s || !bh_status_rejected(s))
        return 0;
    return bh_status_set_find(&f->set, s, by) + 1; /* NONE becomes 0 */
}

/* Some of these plugins' filters come before the one of plugin `by`. */
static bool some_before(const struct bh_framework *fw, uint64_t plugins, int by)
{
    bh_each_plugin(i, fw, BH_POINT_FILTER) {
        if ((int)i == by)
            return false;
        if (plugins >> i & 1)
            return true;
    }
    return false;
}

/* What the filters say of a row as an id; 0: it passes, or that cannot be kept. */
static uint32_t ask(struct bh_fail *f, struct bh_cycle *cy, uint32_t row)
{
    const struct bh_node_info *ni = cy->calls[0].cache->rows[row];
    const struct bh_status *s = NULL;
    bool any = false;
    int by = -1;

    if (!f->tracked) {
        s = bh_run_filter_nominated(cy, ni, &by);
        return id_of(f, s, by);
    }
    /* Between the two rounds the plugins that keep track have a say as well. */
    if (bh_row_bit(&cy->calls[0].cache->cols, BH_ROW_NOMINATED, row))
        s = bh_run_filter_with(cy, ni, &by, &any);
    if (!any)
        s = bh_run_filter(cy, ni, &by);
    return some_before(cy->fw, f->tracked, by) ? 0 : id_of(f, s, by);
}

static bool is_lower(const struct bh_engine *e, const struct bh_shape_cache *sc, uint32_t row)
{
    const struct bh_node_info *ni = e->cache.rows[row];

    for (uint32_t i = 0; i < ni->n_pods; i++)
        if (ni->pods[i]->shape->priority < sc->pod.shape->priority)
            return true;
    return false;
}

static bool settle_row(struct bh_engine *e, struct bh_shape_cache *sc, uint32_t row)
{
    struct bh_fail *f = sc->fail;
    struct bh_arena_mark mark = bh_arena_mark(&e->arena);
    bool live = bh_row_bit(&e->cache.cols, BH_ROW_LIVE, row);
    uint16_t cell = f->tracked && live ? sc->cells.of_row[row] : BH_CELL_NONE;
    uint32_t id = cell != BH_CELL_NONE ? f->of_cell[cell] : live ? ask(f, &sc->cy, row) : 0;

    bh_arena_rewind(&e->arena, mark);
    if (live && !id)
        return false;
    set_row(f, row, id);
    if (f->tracked && live) {
        uint64_t bit = (uint64_t)1 << (row % 64), *word = &f->lower[row / 64];
        *word = is_lower(e, sc, row) ? *word | bit : *word & ~bit;
    }
    if (f->dry_runs)
        bh_dry_runs_forget(f->dry_runs, row);
    return true;
}

/* One row of each cell is asked. */
static bool settle_cells(struct bh_engine *e, struct bh_shape_cache *sc)
{
    const struct bh_cells *x = &sc->cells;
    struct bh_fail *f = sc->fail;
    bool changed[BH_CELLS_MAX] = {false}, any = false;

    if (f->tracked != sc->tracked || f->builds != x->builds) {
        /* Other plugins have a say, or cells have other rows: none is what it was. */
        f->tracked = sc->tracked;
        f->builds = sc->cells.builds;
        memset(f->of_cell, 0, sizeof f->of_cell);
        for (size_t w = 0; w < words(e->cache.cols.n_rows); w++)
            f->touched[w] |= e->cache.cols.bits[BH_ROW_LIVE][w];
    }
    for (uint32_t i = 0; f->tracked && i < x->n; i++) {
        struct bh_arena_mark mark = bh_arena_mark(&e->arena);
        int by = -1;
        if (!x->cell[i].n)
            continue;
        const struct bh_status *s = bh_track_why(sc, f->tracked, x->cell[i].row, &by);
        bh_assert(s); /* the cells' filter said so */
        uint32_t id = id_of(f, s, by);
        bh_arena_rewind(&e->arena, mark);
        if (!id)
            return false;
        changed[i] = f->of_cell[i] && f->of_cell[i] != id;
        any |= changed[i];
        f->of_cell[i] = (uint8_t)id;
    }
    if (any) {
        uint32_t n_rows = e->cache.cols.n_rows;
        for (uint32_t row = 0; row < n_rows; row++)
            if (x->of_row[row] != BH_CELL_NONE && changed[x->of_row[row]])
                set_row(f, row, f->of_cell[x->of_row[row]]);
    }
    return true;
}

static bool settle(struct bh_engine *e, struct bh_shape_cache *sc)
{
    struct bh_fail *f = sc->fail;
    uint32_t n = 0;

    if (!settle_cells(e, sc))
        return false;
    for (size_t w = 0; w < words(f->n_rows); w++) {
        for (; f->touched[w]; f->touched[w] &= f->touched[w] - 1, n++)
            if (!settle_row(e, sc, (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(f->touched[w])))
                return false;
    }
    bh_watch_rows(e, n);
    return true;
}

/* Everything right, or nothing kept. */
static struct bh_fail *current(struct bh_engine *e, struct bh_shape_cache *sc)
{
    bool fresh = !sc->fail;

    if (sc->fail_never || (sc->tracked && (!sc->cells.built || sc->cells.plugins != sc->tracked)))
        return NULL;
    if (fresh) {
        struct bh_fail *f = bh_calloc(1, sizeof *f);
        f->n_rows = sc->index.rows;
        f->id = bh_calloc(f->n_rows, sizeof *f->id);
        f->by_row = bh_calloc(f->n_rows, sizeof *f->by_row);
        f->unschedulable = bh_calloc(words(f->n_rows), sizeof *f->unschedulable);
        f->touched =
            bh_memdup(e->cache.cols.bits[BH_ROW_LIVE], words(f->n_rows) * sizeof *f->touched);
        f->lower = bh_calloc(words(f->n_rows), sizeof *f->lower);
        bh_status_set_init(&f->set);
        bh_kept_count(e, sc, bytes_of(f), 0);
        sc->fail = f;
    }
    if (settle(e, sc)) {
        if (fresh)
            bh_fast_keep_within_budget(e);
        return sc->fail;
    }
    bh_kept_count(e, sc, 0, bytes_of(sc->fail));
    bh_fail_free(sc);
    /* Else too many statuses may have come together in the course of time, or a filter behind a
     * tracking one rejects some node just now. */
    sc->fail_never = fresh && !sc->tracked;
    return NULL;
}

/* ---- the decision ---------------------------------------------------------------------------- */

static void fill_reference(struct bh_engine *e, struct bh_fail *f, struct bh_reference *r)
{
    static const struct bh_status unspecified = {.code = BH_UNSCHEDULABLE_AND_UNRESOLVABLE};

    r->by_row = f->by_row;
    r->n_rows = e->cache.cols.n_rows;
    r->absent = &unspecified;
    r->evaluated = e->cache.n_nodes;
    for (uint32_t i = 0; i < f->set.n; i++) {
        const struct bh_status_entry *s = &f->set.v[i];
        if (!f->n[i] || s->by < 0)
            continue;
        r->rejectors |= (uint64_t)1 << s->by;
        if (s->status.code == BH_PENDING)
            r->pending |= (uint64_t)1 << s->by;
    }
    if (!f->text_right || f->text_nodes != e->cache.n_nodes) {
        const char *text = bh_fit_error_counted(&e->arena, e->cache.n_nodes, &f->set, f->n, NULL);
        size_t n = strlen(text) + 1;
        if (n > f->text_cap)
            f->text = bh_realloc(f->text, f->text_cap = 2 * n);
        memcpy(f->text, text, n);
        f->text_nodes = e->cache.n_nodes;
        f->text_right = true;
    }
    r->fit_message = bh_arena_strdup(&e->arena, f->text);
}

static const struct bh_kept_diagnosis *diagnosis(struct bh_engine *e, struct bh_shape_cache *sc,
                                                 uint32_t own_row)
{
    struct bh_fail *f = sc->fail;
    struct bh_kept_diagnosis *k = bh_arena_new(&e->arena, struct bh_kept_diagnosis);

    if (f->n_unschedulable && !f->dry_runs) {
        f->dry_runs = bh_dry_runs_new(f->n_rows);
        bh_kept_count(e, sc, bh_dry_runs_bytes(f->dry_runs), 0);
        bh_fast_keep_within_budget(e);
    }
    if (e->opt.tie_break == BH_TIE_FIRST) {
        if (e->by_name_membership != e->cache.membership) {
            e->by_name = bh_reallocarray(e->by_name, e->cache.n_nodes + 1, sizeof *e->by_name);
            bh_cache_sort_by_name(&e->cache, e->by_name, bh_live_rows(&e->cache, e->by_name));
            e->by_name_membership = e->cache.membership;
        }
        k->by_name = e->by_name;
    }
    k->unschedulable = f->unschedulable;
    k->n_unschedulable = f->n_unschedulable;
    k->dry_runs = f->dry_runs;
    k->own_row = own_row;
    k->elsewhere = f->tracked != 0;
    k->verify = e->opt.verify;
    return k;
}

/* PostFilter gets a cycle of the pod's own, as its plugins may look at the pod. Plugins that keep
 * track count every pod of the cluster for it, so only if some dry run is going to ask them. */
static bool begin(struct bh_engine *e, struct bh_profile *p, const struct bh_pod_info *pod,
                  const struct bh_shape_cache *sc, int64_t now_ns, struct bh_reference *r)
{
    memset(r, 0, sizeof *r);
    bh_cycle_init(&r->cy, p->fw, &e->cache, &e->objects, pod, &e->arena, now_ns);
    r->cy.scratch = &e->scratch;
    r->cy.samples = e->watch.samples;
    r->cy.rand = e->opt.tie_break == BH_TIE_RANDOM ? &e->rand : NULL;
    r->cy.sketch = true;
    r->cy.left_out = sc->idle;
    for (uint32_t k = 0; k < p->fw->n_point[BH_POINT_POST_FILTER]; k++)
        r->cy.left_out &= ~((uint64_t)1 << p->fw->point[BH_POINT_POST_FILTER][k]);
    bool may_preempt = false; /* some dry run will ask what a node is without lower pods, or any */
    for (uint32_t k = 0; k < p->fw->n_point[BH_POINT_POST_FILTER]; k++)
        may_preempt |= p->fw->plugins[p->fw->point[BH_POINT_POST_FILTER][k]].plugin->flags &
                       BH_PLUGIN_EVICTS_ANY;
    for (size_t w = 0; sc->tracked && !may_preempt && w < words(sc->fail->n_rows); w++)
        may_preempt = sc->fail->unschedulable[w] & sc->fail->lower[w];
    if (sc->tracked && !may_preempt)
        r->cy.left_out |= sc->tracked;
    r->cy.skip_filter = r->cy.left_out;
    bh_run_pre_filter(&r->cy, &r->pf);
    r->cy.skip_filter |= sc->always;
    return !r->pf.status && r->pf.nodes.all &&
           !((r->cy.skip_filter ^ sc->cy.skip_filter) & (p->fw->looking | p->fw->extending) &
             ~sc->tracked);
}

static uint32_t own_row(const struct bh_engine *e, const struct bh_pod_info *pod)
{
    const struct bh_node_info *ni = bh_cache_node(
        &e->cache, bh_cache_nominated_node(&e->cache, bh_rec_text(pod->rec, pod->rec->uid)));

    return ni ? ni->row : BH_ROW_NONE;
}

const struct bh_decision *bh_fail_decide(struct bh_engine *e, struct bh_profile *p,
                                         const struct bh_pod_info *pod, struct bh_shape_cache *sc,
                                         unsigned flags, int64_t now_ns)
{
    uint32_t own = e->cache.nominations.len ? own_row(e, pod) : BH_ROW_NONE, was = 0;
    struct bh_reference r;
    struct bh_fail *f = e->ext ? NULL : current(e, sc);
    uint64_t filtered = bh_watch_now(e), t = filtered;

    if (!f || (own != BH_ROW_NONE && f->tracked) || !begin(e, p, pod, sc, now_ns, &r))
        return NULL;
    if (own != BH_ROW_NONE) { /* its own promise does not stand in its way there */
        uint32_t id = ask(f, &r.cy, own);
        if (!id)
            return NULL;
        was = f->id[own];
        set_row(f, own, id);
    }
    fill_reference(e, f, &r);
    r.kept = diagnosis(e, sc, own);
    bh_watch_point(e, p->fw, BH_SEEN_PRE_FILTER, BH_SUCCESS, &t);
    t -= filtered - e->watch.at[BH_WATCH_START]; /* that was Filter's part, and came first */
    bh_watch_point(e, p->fw, BH_SEEN_FILTER, BH_SUCCESS, &t);
    const struct bh_decision *d = bh_decide(e, &r, BH_ROW_NONE, flags);
    if (own != BH_ROW_NONE)
        set_row(f, own, was);
    return d;
}

void bh_fail_verify(struct bh_engine *e, struct bh_shape_cache *sc, const struct bh_pod_info *pod,
                    const struct bh_reference *r)
{
    struct bh_fail *f = e->ext ? NULL : current(e, sc);
    uint32_t own = own_row(e, pod), n[BH_STATUS_SET_MAX] = {0}, n_unschedulable = 0;
    struct bh_cycle cy;
    int by;

    if (!f)
        return;
    if (!r) {
        /* As for any pod of the shape; the plugins that keep track start from nothing. */
        struct bh_pre_filter_result pf;
        bh_cycle_init(&cy, sc->cy.fw, &e->cache, &e->objects, &sc->pod, &e->arena, e->now_ns);
        cy.left_out = cy.skip_filter = sc->cy.left_out & ~sc->tracked;
        cy.for_shape = true;
        bh_run_pre_filter(&cy, &pf);
    }
    for (uint32_t row = 0; row < f->n_rows; row++) {
        const struct bh_status *want = NULL, *have = f->by_row[row];
        if (bh_row_bit(&e->cache.cols, BH_ROW_LIVE, row)) {
            want = r ? r->by_row[row] : bh_run_filter_nominated(&cy, e->cache.rows[row], &by);
            bh_assert(!f->tracked ||
                      is_lower(e, sc, row) == (f->lower[row / 64] >> (row % 64) & 1));
        }
        if (row != own && !(want && have ? bh_status_equal(want, have) : want == have)) {
            fprintf(stderr,
                    "verify: why a node is not feasible differs, row %u, shape %u:\n %s\n %s\n",
                    row, sc->shape, bh_status_message(&e->arena, want),
                    bh_status_message(&e->arena, have));
            abort();
        }
        if (have)
            n[f->id[row] - 1]++;
        n_unschedulable += have && have->code == BH_UNSCHEDULABLE;
        bh_assert((f->unschedulable[row / 64] >> (row % 64) & 1) ==
                  (have && have->code == BH_UNSCHEDULABLE));
    }
    bh_assert(n_unschedulable == f->n_unschedulable && !memcmp(n, f->n, sizeof n));
}

/* ---- a promised node ------------------------------------------------------------------------- */

bool bh_promised_run(struct bh_engine *e, struct bh_profile *p, const struct bh_pod_info *pod,
                     uint32_t row, uint64_t idle, int64_t now_ns, struct bh_fast *ret)
{
    struct bh_pre_filter_result pf;
    struct bh_cycle cy;
    int by;

    bh_cycle_init(&cy, p->fw, &e->cache, &e->objects, pod, &e->arena, now_ns);
    cy.left_out = cy.skip_filter = idle;
    cy.samples = e->watch.samples;
    cy.sketch = true;
    bh_run_pre_filter(&cy, &pf);
    bh_watch_phase(e, BH_WATCH_FILTER);
    if (pf.status || bh_run_filter_nominated(&cy, e->cache.rows[row], &by))
        return false;
    bh_watch_phase(e, BH_WATCH_SCORE);
    *ret = (struct bh_fast){.n_feasible = 1,
                            .evaluated = 1,
                            .n_best = 1,
                            .rows = bh_arena_memdup(&e->arena, &row, sizeof row)};
    return true;
}
