/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine/fast/fast.c - the reference path's answer without visiting every node for every pod
 *
 * A shape that is seen for the first time is evaluated over the columns and forgotten. From the
 * second time on its results are kept: feasible or not, raw scores, totals and an index over them,
 * brought up to date from the cache's change log by evaluating only the rows that changed. A row
 * with nominated pods is asked through the per-node filters.
 *
 * Kept numbers: kept.c. Plugins that are not node local and keep track (plugin.h) are left out of
 * all that; their part comes on top of it for each pod anew (track.c). So do those that look at the
 * pod's volumes and claims (overlay.c): what is kept is kept for the shape without these. A
 * promised node is tried first and taken if it fits; when the kept results alone say that nothing
 * fits, fail.c knows why. Gives up (false, the caller takes the reference path): sampling, a plugin
 * takes part that is neither node local nor keeps track nor is an overlay, a promise is worthless
 * and plugins that keep track or are overlays take part, PreFilter rejects, nothing fits, a plugin
 * fails.
 * Runs in: the engine's thread. Steady state: no malloc.
 */
#include "common/base/pages.h"
#include "scheduler/engine/fast/fast.h"

#define BUDGET_ROW_BYTES 1024u
#define MANY_ROWS        65536u
#define PREFETCH         8u
#define STAMPS           4u /* a row's stamp: how old, and enum bh_row_change */

bool bh_fast_eligible(const struct bh_framework *fw)
{
    const enum bh_point points[] = {BH_POINT_PRE_FILTER, BH_POINT_FILTER, BH_POINT_PRE_SCORE,
                                    BH_POINT_SCORE};
    uint32_t n_norm = 0, n_epoch = 0, n_track = 0;

    for (unsigned k = 0; k < BH_ARRAY_LEN(points); k++) {
        for (uint32_t i = 0; i < fw->n_point[points[k]]; i++) {
            const struct bh_plugin_instance *in = &fw->plugins[fw->point[points[k]][i]];
            const struct bh_plugin *p = in->plugin;
            if (in->no_pre_filter || in->no_pre_score)
                return false; /* errors may come of it, which batch forms cannot tell */
            bh_assert(p->idle || !(p->flags & BH_PLUGIN_OVERLAY));
            if (p->idle)
                continue; /* asked for each pod */
            if (!(p->flags & BH_PLUGIN_NODE_LOCAL) || (p->normalize && p->normal == BH_NORMAL_NONE))
                return false;
            n_norm += points[k] == BH_POINT_SCORE && p->normal != BH_NORMAL_NONE;
        }
    }
    for (uint32_t i = 0; i < fw->n_plugins; i++) {
        n_epoch += fw->plugins[i].plugin->epoch != NULL;
        n_track += fw->plugins[i].plugin->track != NULL;
    }
    return !fw->sampling && n_norm <= BH_NORMALIZED_MAX && n_epoch <= BH_EPOCHS_MAX &&
           n_track <= BH_TRACKERS_MAX;
}

static void reserve_scratch(struct bh_engine *e)
{
    uint32_t n = e->cache.cols.cap_rows;

    if (n <= e->n_scratch_rows)
        return;
    e->rows = bh_reallocarray(e->rows, n, sizeof *e->rows);
    e->rows2 = bh_reallocarray(e->rows2, n, sizeof *e->rows2);
    e->rows3 = bh_reallocarray(e->rows3, n, sizeof *e->rows3);
    e->values = bh_reallocarray(e->values, n, sizeof *e->values);
    e->values2 = bh_reallocarray(e->values2, n, sizeof *e->values2);
    e->values3 = bh_reallocarray(e->values3, n, sizeof *e->values3);
    bh_pages_free(e->stamp, e->n_scratch_rows * sizeof *e->stamp);
    e->stamp = bh_pages_new(n * sizeof *e->stamp);
    e->stamp_now = 0;
    e->n_scratch_rows = n;
}

uint32_t bh_live_rows(const struct bh_cache *c, uint32_t *rows)
{
    uint32_t n = 0;

    for (uint32_t w = 0; w < (c->cols.n_rows + 63) / 64; w++)
        for (uint64_t bits = c->cols.bits[BH_ROW_LIVE][w]; bits; bits &= bits - 1)
            rows[n++] = w * 64 + (uint32_t)__builtin_ctzll(bits);
    return n;
}

/* ---- filters and scores over rows ------------------------------------------------------------ */

uint32_t bh_filter_one_by_one(struct bh_call *call, const struct bh_plugin *p, uint32_t *rows,
                              uint32_t n)
{
    uint32_t m = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t row = rows[i];
        const struct bh_status *s = p->filter(call, call->cache->rows[row]);
        if (!s)
            rows[m++] = row;
        else if (!bh_status_rejected(s))
            call->cycle->filter_failed = true;
    }
    return m;
}

static uint32_t run_filters(struct bh_cycle *cy, uint32_t *rows, uint32_t n)
{
    const struct bh_framework *fw = cy->fw;

    for (uint32_t k = 0; k < fw->n_point[BH_POINT_FILTER] && n; k++) {
        unsigned i = fw->point[BH_POINT_FILTER][k];
        const struct bh_plugin *p = fw->plugins[i].plugin;
        if (cy->skip_filter >> i & 1)
            continue;
        uint64_t t = bh_sample_begin(cy);
        fw->evaluations[i].filter += n;
        n = p->filter_rows ? p->filter_rows(&cy->calls[i], rows, n)
                           : bh_filter_one_by_one(&cy->calls[i], p, rows, n);
        bh_sample_end(cy, i, BH_SEEN_FILTER, BH_SUCCESS, t);
    }
    return n;
}

uint32_t bh_fast_filter(struct bh_cycle *cy, uint32_t *rows, uint32_t n, uint32_t *other)
{
    const struct bh_cache *c = cy->calls[0].cache;
    uint32_t m = 0, at = 0, out = 0;
    int by;

    if (!c->nominated.len)
        return run_filters(cy, rows, n);
    for (uint32_t i = 0; i < n; i++)
        if (!bh_row_bit(&c->cols, BH_ROW_NOMINATED, rows[i]))
            other[m++] = rows[i];
    m = run_filters(cy, other, m);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t row = rows[i];
        if (at < m && other[at] == row) {
            rows[out++] = row;
            at++;
        } else if (bh_row_bit(&c->cols, BH_ROW_NOMINATED, row)) {
            const struct bh_status *s = bh_run_filter_nominated(cy, c->rows[row], &by);
            if (!s)
                rows[out++] = row;
            else if (!bh_status_rejected(s))
                cy->filter_failed = true;
        }
    }
    return out;
}

bool bh_fast_scores(struct bh_cycle *cy, unsigned i, const uint32_t *rows, uint32_t n, int64_t *ret)
{
    const struct bh_plugin *p = cy->fw->plugins[i].plugin;
    struct bh_call *call = &cy->calls[i];
    uint64_t t = bh_sample_begin(cy);

    cy->fw->evaluations[i].score += n;
    if (bh_unlikely(cy->fw->soon >> i & 1)) {
        t -= t ? cy->fw->soon_ns[i] : 0;
        cy->fw->soon_ns[i] = 0;
    }
    if (p->score_rows) {
        p->score_rows(call, rows, n, ret);
        if (cy->score_failed) {
            cy->score_failed = false;
            return false;
        }
    } else {
        for (uint32_t k = 0; k < n; k++)
            if (p->score(call, call->cache->rows[rows[k]], &ret[k]))
                return false;
    }
    bh_sample_end(cy, i, BH_SEEN_SCORE, BH_SUCCESS, t);
    if (p->normalize && p->normal == BH_NORMAL_NONE) /* an overlay: rows are all feasible ones */
        p->normalize(call, ret, n);
    for (uint32_t k = 0; p->normal == BH_NORMAL_NONE && k < n; k++)
        if (ret[k] < 0 || ret[k] > 100)
            return false; /* the reference path says which plugin */
    return true;
}

/* Of these plugins those that have others work for them are told first, so that it is done beside what the
 * others do here. */
static __attribute__((noinline, cold)) void score_soon(struct bh_cycle *cy, uint64_t plugins,
                                                       const uint32_t *rows, uint32_t n)
{
    const struct bh_framework *fw = cy->fw;

    for (uint64_t left = fw->soon & plugins & ~cy->skip_score; left && n; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        uint64_t t = bh_sample_begin(cy);
        fw->plugins[i].plugin->score_soon(&cy->calls[i], rows, n);
        fw->soon_ns[i] = t ? fw->observer->now_ns() - t : 0;
    }
}

/* ---- once: evaluate, answer, forget ---------------------------------------------------------- */

void bh_fast_add_scores(enum bh_normal how, int64_t weight, const int64_t *raw, uint32_t n,
                        int64_t *total)
{
    int64_t max = 0;

    for (uint32_t r = 0; r < n && how != BH_NORMAL_NONE; r++)
        max = BH_MAX(max, raw[r]);
    if (max == 0 && how == BH_NORMAL_MAX_REVERSE) {
        for (uint32_t r = 0; r < n; r++)
            total[r] += 100 * weight;
    } else {
        for (uint32_t r = 0; r < n; r++)
            total[r] += weight * bh_normalized(how, raw[r], max);
    }
}

static bool total_once(struct bh_engine *e, struct bh_cycle *cy, const uint32_t *rows, uint32_t n,
                       int64_t *total)
{
    const struct bh_framework *fw = cy->fw;

    for (uint32_t r = 0; r < n; r++)
        total[r] = 0;
    if (fw->n_point[BH_POINT_SCORE] && bh_run_pre_score(cy, rows, n))
        return false;
    if (fw->soon)
        score_soon(cy, UINT64_MAX, rows, n);
    bh_each_plugin(i, fw, BH_POINT_SCORE) {
        if (cy->skip_score >> i & 1)
            continue;
        if (!bh_fast_scores(cy, i, rows, n, e->values2))
            return false;
        bh_fast_add_scores(fw->plugins[i].plugin->normal, fw->plugins[i].weight, e->values2, n,
                           total);
    }
    return true;
}

uint32_t bh_fast_best(const int64_t *totals, uint32_t n)
{
    int64_t max = totals[0];
    uint32_t n_best = 1;

    for (uint32_t i = 1; i < n; i++) {
        n_best = totals[i] > max ? 1 : n_best + (totals[i] == max);
        max = BH_MAX(max, totals[i]);
    }
    return n_best;
}

uint32_t bh_fast_narrowed(const struct bh_cache *c, const struct bh_node_set *set, uint32_t *rows)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < set->n; i++) {
        const struct bh_node_info *ni = bh_cache_node(c, set->names[i]);
        if (ni)
            rows[n++] = ni->row;
    }
    return n;
}

static bool run_once(struct bh_engine *e, struct bh_cycle *cy, const struct bh_node_set *nodes,
                     struct bh_fast *ret)
{
    uint32_t n =
        nodes->all ? bh_live_rows(&e->cache, e->rows) : bh_fast_narrowed(&e->cache, nodes, e->rows);

    n = bh_keep_within(e, e->rows, n);
    *ret = (struct bh_fast){.rows = e->rows, .evaluated = n};
    bh_watch_rows(e, n);
    bh_watch_phase(e, BH_WATCH_FILTER);
    n = bh_fast_filter(cy, e->rows, n, e->rows2);
    bh_watch_phase(e, BH_WATCH_SCORE);
    ret->n_feasible = n;
    if (n == 0 || cy->filter_failed)
        return false;
    ret->n_best = 1;
    if (n == 1)
        return true;
    if (!total_once(e, cy, e->rows, n, e->values))
        return false;
    ret->totals = e->values;
    ret->n_best = bh_fast_best(e->values, n);
    return true;
}

/* ---- kept results ---------------------------------------------------------------------------- */

static void unlink_cache(struct bh_engine *e, struct bh_shape_cache *sc)
{
    *(sc->newer ? &sc->newer->older : &e->newest) = sc->older;
    *(sc->older ? &sc->older->newer : &e->oldest) = sc->newer;
    sc->newer = sc->older = NULL;
}

static void link_newest(struct bh_engine *e, struct bh_shape_cache *sc)
{
    sc->older = e->newest;
    *(e->newest ? &e->newest->newer : &e->oldest) = sc;
    e->newest = sc;
}

static void drop(struct bh_engine *e, struct bh_shape_cache *sc)
{
    unlink_cache(e, sc);
    e->profile[sc->profile].slot[sc->shape].cache = NULL;
    e->cache_bytes -= sc->bytes;
    bh_kept_fini(sc);
    bh_track_drop_all(sc);
    bh_cells_fini(&sc->cells);
    bh_fail_free(sc);
    bh_arena_fini(&sc->arena);
    free(sc);
}

void bh_fast_drop_all(struct bh_engine *e)
{
    for (struct bh_shape_cache *sc = e->newest, *older; sc; sc = older) {
        older = sc->older;
        drop(e, sc);
    }
}

static void read_epochs(const struct bh_engine *e, struct bh_cycle *cy, uint64_t *epoch)
{
    uint32_t n = 0;

    for (uint64_t left = cy->fw->dated; left; left &= left - 1) {
        const unsigned i = (unsigned)__builtin_ctzll(left);
        cy->calls[i].now_ns = e->now_ns;
        epoch[n++] = cy->fw->plugins[i].plugin->epoch(&cy->calls[i]);
    }
}

/* Scores by these plugins: raw ones that are normalised go into the kept ones, the others,
 * weighted, are added to base. */
static bool score_by(struct bh_engine *e, struct bh_shape_cache *sc, uint64_t plugins,
                     const uint32_t *rows, uint32_t n, int64_t *base)
{
    const struct bh_framework *fw = sc->cy.fw;
    uint32_t norm = 0;

    if (fw->soon)
        score_soon(&sc->cy, plugins, rows, n);
    for (uint32_t k = 0; k < fw->n_point[BH_POINT_SCORE] && n; k++) {
        unsigned i = fw->point[BH_POINT_SCORE][k];
        bool none = fw->plugins[i].plugin->normal == BH_NORMAL_NONE;
        if (sc->cy.skip_score >> i & 1)
            continue;
        if (!(plugins >> i & 1)) {
            norm += !none;
            continue;
        }
        if (!bh_fast_scores(&sc->cy, i, rows, n, e->values))
            return false;
        for (uint32_t r = 0; r < n && none; r++)
            base[r] += fw->plugins[i].weight * e->values[r];
        for (uint32_t r = 0; r < n && !none; r++)
            bh_packed_set(&sc->norm[norm].raw, rows[r], e->values[r]);
        norm += !none;
    }
    return true;
}

/* What depends on the node's object alone, for rows whose object is new: floor, and raw scores.
 * Those that pass stay in rows. */
static bool fix_rows(struct bh_engine *e, struct bh_shape_cache *sc, uint32_t *rows, uint32_t *n)
{
    uint64_t skip = sc->cy.skip_filter;

    sc->cy.skip_filter |= ~sc->fixed;
    *n = run_filters(&sc->cy, rows, *n);
    sc->cy.skip_filter = skip;
    for (uint32_t r = 0; r < *n; r++)
        e->values2[r] = 1;
    if (sc->cy.filter_failed || !score_by(e, sc, sc->fixed, rows, *n, e->values2))
        return false;
    for (uint32_t r = 0; r < *n; r++)
        bh_packed_set(&sc->floor, rows[r], e->values2[r]);
    return true;
}

/* What depends on the pods on the node as well, on top of it. Keeps the rows that pass, their
 * totals without normalised scores in base. */
static bool weigh_rows(struct bh_engine *e, struct bh_shape_cache *sc, uint32_t *rows, uint32_t *n,
                       int64_t *base)
{
    uint64_t skip = sc->cy.skip_filter;

    sc->cy.skip_filter |= sc->fixed;
    *n = bh_fast_filter(&sc->cy, rows, *n, e->rows3);
    sc->cy.skip_filter = skip;
    bh_watch_phase(e, BH_WATCH_SCORE);
    for (uint32_t r = 0; r < *n; r++)
        base[r] = bh_packed_get(&sc->floor, rows[r]) - 1;
    return !sc->cy.filter_failed && score_by(e, sc, ~sc->fixed, rows, *n, base);
}

/* The tree follows the totals of the touched rows, whose former totals are in values3. One by one:
 * the others have to be as the tree knows them meanwhile. */
static void move_rows(struct bh_engine *e, struct bh_index *x, const uint32_t *touched, uint32_t n)
{
    int64_t *total = e->values3;
    uint32_t *moved = e->rows3, m = 0;

    for (uint32_t r = 0; r < n; r++) {
        int64_t before = total[r], now = bh_index_total(x, touched[r]);
        if (now == before && !x->first)
            continue;
        bh_index_prefetch(x, touched[r]);
        bh_index_set_leaf(x, touched[r], before);
        total[m] = now;
        moved[m++] = touched[r];
    }
    for (uint32_t r = 0; r < m; r++)
        bh_index_move(x, &e->cache, moved[r], total[r]);
}

/* Evaluates the rows anew; whatever they were before is forgotten. touched: n of them, in any
 * order, dead ones too; of the first n_nodes more than pods has changed. */
static bool reevaluate(struct bh_engine *e, struct bh_shape_cache *sc, const uint32_t *touched,
                       uint32_t n_nodes, uint32_t n)
{
    bool few = n < e->cache.cols.n_rows / 16;
    uint32_t *live = e->rows2, m = 0;
    size_t bytes = bh_kept_bytes(sc);

    for (uint32_t r = 0; r < n; r++) {
        if (r + PREFETCH < n)
            bh_kept_prefetch(sc, touched[r + PREFETCH]);
        int64_t before = bh_kept_leave(sc, touched[r]);
        if (few)
            e->values3[r] = before;
    }
    for (uint32_t r = 0; r < n_nodes; r++) {
        bh_packed_set(&sc->floor, touched[r], 0);
        if (bh_row_bit(&e->cache.cols, BH_ROW_LIVE, touched[r]))
            live[m++] = touched[r];
    }
    e->stats.nodes_rescored += m + n - n_nodes;
    bh_watch_rows(e, m + n - n_nodes);
    bh_watch_phase(e, BH_WATCH_FILTER);
    if (!fix_rows(e, sc, live, &m))
        return false;
    for (uint32_t r = n_nodes; r < n; r++)
        if (bh_packed_get(&sc->floor, touched[r]))
            live[m++] = touched[r];
    if (!weigh_rows(e, sc, live, &m, e->values2))
        return false;
    if (bh_kept_settle(sc, live, e->values2, m) || !few)
        bh_index_rebuild(&sc->index, &e->cache);
    else
        move_rows(e, &sc->index, touched, n);
    bh_kept_count(e, sc, bh_kept_bytes(sc), bytes); /* arrays may have become wider */
    return true;
}

static struct bh_shape_cache *new_cache(struct bh_engine *e, struct bh_profile *p,
                                        const struct bh_pod_info *pod)
{
    struct bh_shape_cache *sc = bh_calloc(1, sizeof *sc);

    sc->profile = (uint32_t)(p - e->profile);
    sc->shape = pod->shape_id;
    sc->born = e->cache.shapes.e[pod->shape_id].born;
    sc->pod = *pod;
    bh_arena_init(&sc->arena, 0);
    bh_cycle_init(&sc->cy, p->fw, &e->cache, &e->objects, &sc->pod, &sc->arena, e->now_ns);
    sc->cy.left_out = sc->cy.skip_filter = sc->cy.skip_score = p->tracked | p->overlay;
    sc->cy.samples = e->watch.samples;
    sc->cy.for_shape = sc->cy.sketch = true;
    link_newest(e, sc);
    p->slot[sc->shape].cache = sc;
    return sc;
}

/* PreFilter narrowed the nodes: such pods (one per node, mostly) are not worth keeping. */
static bool build(struct bh_engine *e, struct bh_shape_cache *sc, bool *narrowed)
{
    struct bh_pre_filter_result pf;

    bh_run_pre_filter(&sc->cy, &pf);
    *narrowed = !pf.status && !pf.nodes.all;
    if (pf.status || *narrowed)
        return false;
    if (sc->cy.fw->n_point[BH_POINT_SCORE] && bh_run_pre_score(&sc->cy, NULL, 0))
        return false;
    bh_kept_init(e, sc);
    sc->bytes = sizeof *sc + bh_kept_bytes(sc);
    e->cache_bytes += sc->bytes;
    /* What plugins allocate from here on is gone after the cycle. */
    sc->cy.arena = &e->arena;
    for (uint32_t i = 0; i < sc->cy.fw->n_plugins; i++)
        sc->cy.calls[i].arena = &e->arena;
    read_epochs(e, &sc->cy, sc->epoch);
    sc->log_pos = e->cache.log_end;
    uint32_t n = bh_live_rows(&e->cache, e->rows);
    return reevaluate(e, sc, e->rows, n, n);
}

/* A hundred shapes and more have room, however many rows there are: making one anew costs a visit
 * to each of them. */
static size_t budget(const struct bh_engine *e)
{
    return BH_MAX(e->cache_bytes_max, (size_t)e->cache.cols.cap_rows * BUDGET_ROW_BYTES);
}

void bh_fast_keep_within_budget(struct bh_engine *e)
{
    size_t max = budget(e);

    for (struct bh_shape_cache *sc = e->oldest, *newer; e->cache_bytes > max && sc != e->newest;
         sc = newer) {
        newer = sc->newer;
        drop(e, sc);
    }
}

struct changes {    /* the first so many of e->rows */
    uint32_t nodes; /* more than pods */
    uint32_t pods;  /* and those where pods came or went */
    uint32_t all;   /* and those with a pod's new record, which is as good as the old one */
};

/* Rows from there on to which this has happened come first; returns where they end. */
static uint32_t put_first(struct bh_engine *e, uint32_t from, uint32_t n, uint32_t what)
{
    for (uint32_t i = from; i < n; i++) {
        uint32_t row = e->rows[i];
        if (e->stamp[row] - e->stamp_now != what)
            continue;
        e->rows[i] = e->rows[from];
        e->rows[from++] = row;
    }
    return from;
}

/* Rows logged since the last time, each once. A row's stamp is stamp_now and what has happened to
 * it. false: too many, build anew. */
static bool changed_rows(struct bh_engine *e, const struct bh_shape_cache *sc, struct changes *ret)
{
    const struct bh_cache *c = &e->cache;
    uint32_t n = 0;

    if (sc->log_pos < c->log_begin || c->cols.cap_rows > sc->index.rows ||
        c->log_end - sc->log_pos > c->cols.n_rows + c->cols.n_rows / 2)
        return false;
    if (e->stamp_now >= UINT32_MAX - 2 * STAMPS) {
        memset(e->stamp, 0, e->n_scratch_rows * sizeof *e->stamp);
        e->stamp_now = 0;
    }
    e->stamp_now += STAMPS;
    for (uint64_t pos = sc->log_pos; pos < c->log_end; pos++) {
        uint32_t row = c->log[pos & (c->log_cap - 1)];
        uint32_t stamp = e->stamp_now + c->log_what[pos & (c->log_cap - 1)];
        if (e->stamp[row] < e->stamp_now)
            e->rows[n++] = row;
        e->stamp[row] = BH_MAX(e->stamp[row], stamp);
    }
    ret->nodes = put_first(e, 0, n, BH_ROW_NODE);
    ret->pods = put_first(e, ret->nodes, n, BH_ROW_PODS);
    ret->all = n;
    return true;
}

static bool is_current(struct bh_engine *e, struct bh_shape_cache *sc)
{
    uint64_t now[BH_EPOCHS_MAX] = {0};
    struct changes n;

    read_epochs(e, &sc->cy, now);
    if (memcmp(now, sc->epoch, sizeof now) != 0 || !changed_rows(e, sc, &n))
        return false;
    size_t bytes = bh_track_bytes(sc) + bh_cells_bytes(&sc->cells);
    sc->log_pos = e->cache.log_end;
    bh_track_update(sc, e->rows, n.nodes, n.pods);
    bh_fail_touch(sc, e->rows, n.all);
    if (!n.pods) {
        bh_watch_phase(e, BH_WATCH_FILTER);
        e->watch.at[BH_WATCH_SCORE] = e->watch.at[BH_WATCH_FILTER]; /* nothing changed */
        return true;
    }
    if (!reevaluate(e, sc, e->rows, n.nodes, n.pods))
        return false;
    bh_cells_update(sc, &e->cache, e->rows, n.pods);
    bh_kept_count(e, sc, bh_track_bytes(sc) + bh_cells_bytes(&sc->cells), bytes);
    return true;
}

/* The shape's kept results, current; NULL: reference path, or *once: evaluate without keeping. */
static struct bh_shape_cache *kept(struct bh_engine *e, struct bh_profile *p,
                                   const struct bh_pod_info *pod, enum bh_fast_mode mode,
                                   bool *once)
{
    uint32_t shape = pod->shape_id;
    if (shape >= p->n_slots) {
        uint32_t n = BH_MAX(64u, e->cache.shapes.cap);
        p->slot = bh_reallocarray(p->slot, n, sizeof *p->slot);
        memset(p->slot + p->n_slots, 0, (n - p->n_slots) * sizeof *p->slot);
        p->n_slots = n;
    }
    struct bh_shape_slot *s = &p->slot[shape];
    uint64_t born = e->cache.shapes.e[pod->shape_id].born;
    bool narrowed = false;

    if (s->cache && s->cache->born != born)
        drop(e, s->cache);
    /* At the first sight kept when another visit to all rows would cost more than the memory. */
    if (!s->cache && s->seen != born && mode == BH_FAST_AUTO &&
        (e->cache.cols.n_rows < MANY_ROWS || e->cache_bytes >= budget(e) / 2)) {
        s->seen = born;
        *once = true;
        return NULL;
    }
    if (s->cache) {
        s->cache->pod = *pod; /* NOLINT(clang-analyzer-unix.Malloc): drop() has emptied the slot */
        s->cache->cy.samples = e->watch.samples;
        if (is_current(e, s->cache)) {
            e->stats.shape_hits++;
            if (s->cache != e->newest) {
                unlink_cache(e, s->cache);
                link_newest(e, s->cache);
            }
            return s->cache;
        }
        drop(e, s->cache);
    }
    e->stats.shape_misses++;
    struct bh_shape_cache *sc = new_cache(e, p, pod);
    if (!build(e, sc, &narrowed)) {
        drop(e, sc);
        *once = narrowed;
        return NULL;
    }
    bh_fast_keep_within_budget(e);
    return sc;
}

/* ---- entry ----------------------------------------------------------------------------------- */

static bool run_once_for(struct bh_engine *e, struct bh_profile *p, const struct bh_pod_info *pod,
                         uint64_t idle, int64_t now_ns, struct bh_fast *ret)
{
    struct bh_pre_filter_result pf;
    struct bh_cycle cy;

    bh_cycle_init(&cy, p->fw, &e->cache, &e->objects, pod, &e->arena, now_ns);
    cy.left_out = cy.skip_filter = cy.skip_score = idle;
    cy.samples = e->watch.samples;
    cy.sketch = true;
    bh_run_pre_filter(&cy, &pf);
    if (!pf.nodes.all && bh_promised_row(e, pod) != BH_ROW_NONE)
        return false; /* that node was looked at and counts, though it is not one of these */
    return !pf.status && run_once(e, &cy, &pf.nodes, ret);
}

struct takers { /* bits of plugins */
    uint64_t tracked, overlay;
    uint64_t idle; /* would skip */
    bool others;
};

/* Plugins whose results are not node local must have no part in the cycle, or keep track of it, or
 * lay their verdict over the kept results. They are asked every time, so results kept from an
 * earlier cycle never contain theirs. */
static struct takers takers_of(struct bh_engine *e, const struct bh_profile *p,
                               const struct bh_pod_info *pod, int64_t now_ns)
{
    struct takers t = {0};
    struct bh_call call = {.cache = &e->cache,
                           .tab = e->tab,
                           .objects = &e->objects,
                           .pod = pod,
                           .arena = &e->arena,
                           .now_ns = now_ns};

    for (uint64_t left = p->fw->idlers; left; left &= left - 1) {
        const unsigned i = (unsigned)__builtin_ctzll(left);
        const struct bh_plugin *plugin = p->fw->plugins[i].plugin;
        uint64_t bit = (uint64_t)1 << i;
        call.args = p->fw->plugins[i].args;
        if (plugin->idle(&call))
            t.idle |= bit;
        else if (plugin->flags & BH_PLUGIN_OVERLAY)
            t.overlay |= bit;
        else if (plugin->track)
            t.tracked |= bit;
        else
            t.others = true;
    }
    return t;
}

bool bh_fast_indexed(const struct bh_engine *e, struct bh_shape_cache *sc, struct bh_fast *ret)
{
    *ret = (struct bh_fast){.n_feasible = sc->n_feasible,
                            .evaluated = e->cache.n_nodes,
                            .n_best = bh_index_count(&sc->index),
                            .index = &sc->index,
                            .kept = sc};
    return sc->n_feasible > 0;
}

bool bh_fast_run(struct bh_engine *e, struct bh_profile *p, const struct bh_pod_info *pod,
                 enum bh_fast_mode mode, int64_t now_ns, struct bh_fast *ret)
{
    struct bh_shape_cache *sc = NULL;
    struct bh_pod_info shared = *pod; /* as the kept results know it */
    bool once = mode == BH_FAST_ONCE;

    *ret = (struct bh_fast){0};
    e->now_ns = now_ns;
    if (!p->fast)
        return false;
    const struct takers by = takers_of(e, p, pod, now_ns);
    const uint64_t tracked = by.tracked, overlay = by.overlay;
    uint32_t promised = bh_promised_row(e, pod);
    if (promised != BH_ROW_NONE && bh_promised_run(e, p, pod, promised, by.idle, now_ns, ret))
        return true;
    if (by.others || (promised != BH_ROW_NONE && (tracked | overlay)))
        return false;
    shared.shape_id = bh_shapes_kept(&e->cache.shapes, pod->shape_id);
    shared.shape = bh_shapes_rec(&e->cache.shapes, shared.shape_id);
    reserve_scratch(e);
    if (e->within && (overlay || promised != BH_ROW_NONE))
        return !tracked && run_once_for(e, p, pod, by.idle, now_ns, ret);
    e->no_cells = mode == BH_FAST_SCAN;
    if (tracked && mode == BH_FAST_AUTO)
        mode = BH_FAST_KEEP; /* counting once costs no less than beginning to keep counts */
    if (!once)
        sc = kept(e, p, &shared, mode, &once);
    if (!sc) /* counting once is what the reference path does */
        return once && !tracked && run_once_for(e, p, pod, by.idle, now_ns, ret);
    if (tracked && !bh_track_ensure(e, sc, tracked))
        return false;
    sc->always = 0;
    sc->tracked = tracked;
    sc->idle = by.idle;
    if (overlay) {
        bool any = bh_overlay_run(e, sc, pod, overlay, tracked, now_ns, ret);
        ret->overlaid = overlay;
        return any;
    }
    if (tracked || e->within) /* what is kept is normalised over all nodes */
        return bh_track_run(e, sc, tracked, ret);
    if (promised != BH_ROW_NONE && bh_index_total(&sc->index, promised) >= 0)
        return false; /* it is for others only */
    return bh_fast_indexed(e, sc, ret);
}

uint32_t bh_fast_pick(const struct bh_engine *e, const struct bh_fast *f, uint32_t k)
{
    uint32_t best = BH_ROW_NONE;
    int64_t max = -1;

    if (f->index)
        return bh_index_pick(f->index, k);
    if (f->cells)
        return bh_cells_pick(f->cells, &e->cache, e->opt.tie_break == BH_TIE_FIRST, k);
    if (!f->totals)
        return f->rows[0];
    for (uint32_t i = 0; i < f->n_feasible; i++)
        max = BH_MAX(max, f->totals[i]);
    for (uint32_t i = 0; i < f->n_feasible; i++) {
        if (f->totals[i] != max)
            continue;
        if (e->opt.tie_break == BH_TIE_RANDOM) {
            if (k-- == 0)
                return f->rows[i];
            continue;
        }
        if (best == BH_ROW_NONE || bh_row_name_cmp(&e->cache, f->rows[i], best) < 0)
            best = f->rows[i];
    }
    return best;
}
