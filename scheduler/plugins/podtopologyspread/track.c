/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/podtopologyspread/track.c - the counts of one shape, kept from cycle to cycle
 *
 * Per constraint: how many pods it counts on each node and in each domain. A node that changed
 * takes its old share out of its old domain and puts the new one into the new; the fewest pods of
 * any domain follow, and are looked for again only when the last domain that had so few is gone.
 *
 * Invariants: a domain's pods and nodes are the sums over the rows with counts[row];
 *             n_least > 0: `least` is the fewest pods of any domain with nodes, and n_least domains
 *             have so few; n_least == 0: not known, but no domain with nodes has `least` pods or
 *             fewer.
 * Upstream:   the same numbers as filtering.go and scoring.go count for every pod.
 */
#include "scheduler/plugins/domains.h"
#include "scheduler/plugins/podtopologyspread/spread.h"

#define NO_DOMAIN INT32_MAX

/* Domains that are told apart by name: a hard constraint looks at the count alone, so beyond a few
 * the rows are told apart by that; a soft one counts the domains. */
#define HARD_BY_DOMAIN 64u
#define SOFT_BY_DOMAIN 512u

struct domain {
    int64_t pods;
    uint32_t nodes;
    uint32_t noted; /* the update that noted its count */
};
/* What of a constraint tells rows apart. */
enum kind_by { KIND_BY_NODE, KIND_BY_DOMAIN, KIND_BY_COUNT, KIND_NONE };
struct meaning {          /* of a shape of pods on nodes */
    uint64_t born;        /* of the shape id, see shapes.h */
    uint64_t constraints; /* those that count such a pod, by bit */
};
#define CONSTRAINTS_MAX 64u
struct counted { /* one constraint */
    struct bh_constraint k;
    struct bh_domains *at;
    bool hard, self;
    enum kind_by by;
    bool *counts;    /* by row: the node counts in its domain */
    int64_t *on_row; /* by row: pods on the node that the constraint means */
    struct domain *domain;
    uint32_t cap_domains, n_domains; /* room; domains with nodes */
    int64_t least;
    uint32_t n_least;
};
struct track {
    struct bh_constraints hard, soft;
    struct counted *v; /* the hard ones first */
    uint32_t n;
    struct bh_domains *keys;
    uint32_t n_keys;
    bool *has_hard, *has_soft; /* by row: the node has all keys */
    uint32_t cap_rows;
    bool require_all;
    struct bh_label_selector
        *defaults; /* what default constraints select; NULL = own constraints */
    size_t defaults_size;
    struct meaning *meaning; /* by shape id modulo n_meanings, a power of two */
    uint32_t n_meanings;
    struct bh_moved moved;
};

/* ---- making ---- */

static struct bh_domains *domains_of(struct track *t, bh_sym key)
{
    for (uint32_t i = 0; i < t->n_keys; i++)
        if (t->keys[i].key == key)
            return &t->keys[i];
    bh_domains_init(&t->keys[t->n_keys], key);
    return &t->keys[t->n_keys++];
}

static void add_constraints(struct bh_call *c, struct track *t, struct bh_constraints *k, bool hard)
{
    for (uint32_t i = 0; i < k->n; i++) {
        struct counted *o = &t->v[t->n++];
        if (t->defaults) { /* bh_spread_constraints() left it in the cycle's arena */
            k->v[i].rec = t->defaults;
            k->v[i].sel = t->defaults;
        }
        *o = (struct counted){.k = k->v[i], .at = domains_of(t, k->v[i].key), .hard = hard};
        o->self = bh_constraint_matches(&o->k, c->pod->shape, c->tab);
    }
}

static void drop(void *p)
{
    struct track *t = p;

    for (uint32_t i = 0; i < t->n; i++) {
        free(t->v[i].counts);
        free(t->v[i].on_row);
        free(t->v[i].domain);
    }
    for (uint32_t i = 0; i < t->n_keys; i++)
        bh_domains_fini(&t->keys[i]);
    free(t->hard.v);
    free(t->soft.v);
    free(t->v);
    free(t->keys);
    free(t->has_hard);
    free(t->has_soft);
    free(t->defaults);
    free(t->meaning);
    bh_moved_fini(&t->moved);
    free(t);
}

static void *make(struct bh_call *c)
{
    const struct bh_spread_args *args = c->args;
    struct bh_constraints hard = bh_spread_constraints(c, BH_SPREAD_HARD);
    struct bh_constraints soft = bh_spread_constraints(c, BH_SPREAD_SOFT);
    struct track *t;

    if (hard.error || soft.error || hard.n + soft.n > CONSTRAINTS_MAX)
        return NULL;
    t = bh_calloc(1, sizeof *t);
    t->require_all = c->pod->shape->spread.n || !args->system;
    if (!c->pod->shape->spread.n && args->n) {
        const struct bh_label_selector *s = bh_selector_memo_get(args->memo, c, &t->defaults_size);
        t->defaults = bh_memdup(s, t->defaults_size);
    }
    t->v = bh_calloc(hard.n + soft.n + 1, sizeof *t->v);
    t->keys = bh_calloc(hard.n + soft.n + 1, sizeof *t->keys);
    t->hard = hard;
    t->soft = soft;
    t->hard.v = hard.n ? bh_memdup(hard.v, hard.n * sizeof *hard.v) : NULL;
    t->soft.v = soft.n ? bh_memdup(soft.v, soft.n * sizeof *soft.v) : NULL;
    add_constraints(c, t, &t->hard, true);
    add_constraints(c, t, &t->soft, false);
    return t;
}

static size_t bytes(const void *p)
{
    const struct track *t = p;
    size_t n = sizeof *t + t->cap_rows * 2 + t->n_meanings * sizeof *t->meaning;

    for (uint32_t i = 0; i < t->n; i++)
        n += sizeof t->v[i] + t->cap_rows * (sizeof(int64_t) + 1) +
             t->v[i].cap_domains * sizeof(struct domain);
    for (uint32_t i = 0; i < t->n_keys; i++)
        n += bh_domains_bytes(&t->keys[i]);
    return n;
}

/* Own constraints are part of the shape. The selector of default ones follows the services. */
static bool current(struct bh_call *c, void *p)
{
    const struct bh_spread_args *args = c->args;
    struct track *t = p;
    size_t size;

    for (uint32_t i = 0; i < t->n_keys; i++)
        if (bh_domains_crowded(&t->keys[i]))
            return false;
    if (!t->defaults)
        return true;
    const struct bh_label_selector *s = bh_selector_memo_get(args->memo, c, &size);
    return size == t->defaults_size && memcmp(s, t->defaults, size) == 0;
}

/* ---- following the nodes ---- */

static void reserve(struct track *t, const struct bh_cache *c)
{
    uint32_t rows = c->cols.cap_rows, meanings = bh_meanings_for(c->shapes.cap);

    if (meanings > t->n_meanings) {
        free(t->meaning);
        t->meaning = bh_calloc(meanings, sizeof *t->meaning);
        t->n_meanings = meanings;
    }
    if (rows <= t->cap_rows)
        return;
    t->has_hard = bh_regrown(t->has_hard, t->cap_rows, rows, sizeof *t->has_hard);
    t->has_soft = bh_regrown(t->has_soft, t->cap_rows, rows, sizeof *t->has_soft);
    for (uint32_t i = 0; i < t->n; i++) {
        struct counted *o = &t->v[i];
        o->counts = bh_regrown(o->counts, t->cap_rows, rows, sizeof *o->counts);
        o->on_row = bh_regrown(o->on_row, t->cap_rows, rows, sizeof *o->on_row);
    }
    for (uint32_t i = 0; i < t->n_keys; i++)
        bh_domains_reserve(&t->keys[i], rows);
    t->cap_rows = rows;
}

/* Pods and nodes come into the row's domain, or leave it. */
static void shift(struct track *t, struct counted *o, uint32_t row, int64_t pods, int nodes)
{
    uint32_t id = o->at->of_row[row];
    struct domain *d = &o->domain[id];
    bool was = d->nodes > 0;

    if (o->by == KIND_BY_COUNT) /* rows are another kind when the count is another in the end */
        bh_moved_note(&t->moved, &d->noted, (uint32_t)(o - t->v), id, d->pods);

    if (was && d->pods == o->least)
        o->n_least -= o->n_least > 0;
    d->pods += pods;
    d->nodes += (uint32_t)nodes;
    o->n_domains += (d->nodes > 0) - (unsigned)was;
    if (!d->nodes)
        return;
    if (d->pods < o->least || o->n_domains == 1) {
        o->least = d->pods;
        o->n_least = 1;
    } else if (d->pods == o->least) {
        o->n_least++;
    }
}

static void leave(struct track *t, struct counted *o, uint32_t row)
{
    if (o->counts[row])
        shift(t, o, row, -o->on_row[row], -1);
    o->counts[row] = false;
    o->on_row[row] = 0;
}

/* The same for all pods of a shape. A selector that means every pod counts none, as in
 * bh_count_pods(). */
static uint64_t meaning_of(const struct bh_call *c, const struct track *t,
                           const struct bh_shape_rec *pod)
{
    uint64_t bits = 0;

    if (pod->namespace_ != c->pod->shape->namespace_)
        return 0;
    for (uint32_t i = 0; i < t->n; i++)
        if (!bh_selector_is_everything(t->v[i].k.sel) &&
            bh_constraint_matches(&t->v[i].k, pod, c->tab))
            bits |= (uint64_t)1 << i;
    return bits;
}

/* For each constraint the pods on the node that it means. */
static void count_pods(struct bh_call *c, struct track *t, uint32_t row, int64_t *ret)
{
    const struct bh_shape_table *shapes = &c->cache->shapes;
    const struct bh_node_info *ni = c->cache->rows[row];

    memset(ret, 0, t->n * sizeof *ret);
    for (uint32_t i = 0; i < ni->n_pods; i++) {
        const struct bh_pod_info *pod = ni->pods[i];
        struct meaning *m = &t->meaning[pod->shape_id & (t->n_meanings - 1)];
        if (m->born != shapes->e[pod->shape_id].born)
            *m = (struct meaning){shapes->e[pod->shape_id].born, meaning_of(c, t, pod->shape)};
        if (!m->constraints || pod->rec->flags & BH_POD_TERMINATING)
            continue;
        for (uint64_t bits = m->constraints; bits; bits &= bits - 1)
            ret[__builtin_ctzll(bits)]++;
    }
}

static void enter(struct track *t, uint32_t row, uint32_t inclusion, struct counted *o,
                  int64_t pods)
{
    bool all = o->hard ? t->has_hard[row] : !t->require_all || t->has_soft[row];

    if (o->at->n > o->cap_domains) {
        uint32_t cap = BH_MAX(BH_MAX(16u, o->cap_domains * 2), o->at->n);
        o->domain = bh_regrown(o->domain, o->cap_domains, cap, sizeof *o->domain);
        o->cap_domains = cap;
    }
    o->on_row[row] = pods;
    o->counts[row] = all && bh_counts_node(&o->k, inclusion);
    if (o->counts[row])
        shift(t, o, row, pods, 1);
}

/* The node itself is what it was. */
static void recount(struct bh_call *c, struct track *t, uint32_t row)
{
    int64_t pods[CONSTRAINTS_MAX];

    count_pods(c, t, row, pods);
    for (uint32_t i = 0; i < t->n; i++) {
        struct counted *o = &t->v[i];
        int64_t more = pods[i] - o->on_row[row];
        o->on_row[row] = pods[i];
        if (more && o->counts[row])
            shift(t, o, row, more, 0);
    }
}

static void update(struct bh_call *c, void *p, const uint32_t *rows, uint32_t n_nodes, uint32_t n)
{
    struct track *t = p;
    uint8_t *inclusion = bh_arena_new_array(c->arena, uint8_t, n_nodes + 1);
    int64_t pods[CONSTRAINTS_MAX];

    bh_moved_begin(&t->moved, n, c->cache->cols.n_rows);
    reserve(t, c->cache);
    for (uint32_t r = 0; r < n_nodes; r++) {
        bool live = bh_row_bit(&c->cache->cols, BH_ROW_LIVE, rows[r]);
        const struct bh_node_rec *rec = live ? c->cache->rows[rows[r]]->rec : NULL;
        for (uint32_t i = 0; i < t->n; i++)
            leave(t, &t->v[i], rows[r]);
        for (uint32_t i = 0; i < t->n_keys; i++)
            bh_domains_set(&t->keys[i], rows[r], rec);
        t->has_hard[rows[r]] = rec && bh_has_all_keys(rec, &t->hard);
        t->has_soft[rows[r]] = rec && bh_has_all_keys(rec, &t->soft);
        inclusion[r] = rec ? (uint8_t)bh_node_inclusion(c, rec) : 0;
    }
    for (uint32_t r = 0; r < n_nodes; r++) {
        if (!bh_row_bit(&c->cache->cols, BH_ROW_LIVE, rows[r]))
            continue;
        count_pods(c, t, rows[r], pods);
        for (uint32_t i = 0; i < t->n; i++)
            enter(t, rows[r], inclusion[r], &t->v[i], pods[i]);
    }
    for (uint32_t r = n_nodes; r < n; r++)
        recount(c, t, rows[r]);
    /* With more and more domains another way to tell rows apart may be better. */
    const struct bh_spread_args *args = c->args;
    for (uint32_t i = 0; i < t->n; i++) {
        struct counted *o = &t->v[i];
        enum kind_by by = o->at->n <= (o->hard ? HARD_BY_DOMAIN : SOFT_BY_DOMAIN) ? KIND_BY_DOMAIN
                          : o->hard                                               ? KIND_BY_COUNT
                                                                                  : KIND_NONE;
        if (!o->hard && o->k.key == args->hostname)
            by = KIND_BY_NODE;
        t->moved.anew |= by != o->by;
        o->by = by;
        if (by == KIND_BY_COUNT)
            bh_domains_link(o->at);
    }
    for (uint32_t i = 0; i < t->moved.n_notes; i++) {
        const struct bh_note *k = &t->moved.note[i];
        const struct counted *o = &t->v[k->of];
        if (o->domain[k->id].pods != k->was)
            bh_moved_add(&t->moved, o->at, k->id);
    }
}

static uint32_t kind(struct bh_call *c BH_UNUSED, void *p, uint32_t row, uint32_t *ret)
{
    const struct track *t = p;
    uint32_t n = 0;

    if (t->n + 1 > BH_KIND_WORDS)
        return 0;
    ret[n++] = t->has_hard[row] | (unsigned)t->has_soft[row] << 1;
    for (uint32_t i = 0; i < t->n; i++) {
        const struct counted *o = &t->v[i];
        const struct bh_domains *at = o->at;
        switch (o->by) {
        case KIND_BY_NODE:
            ret[n++] = (uint32_t)o->on_row[row] << 1 | at->has[row];
            break;
        case KIND_BY_DOMAIN:
            ret[n++] = at->of_row[row] << 1 | at->has[row];
            break;
        case KIND_BY_COUNT:
            ret[n++] = (uint32_t)o->domain[at->of_row[row]].pods;
            break;
        default:
            return 0;
        }
    }
    return n;
}

static uint32_t moved(const void *p, const uint32_t **ret)
{
    return bh_moved_told(&((const struct track *)p)->moved, ret);
}

/* ---- Filter ---- */

static int64_t fewest(struct counted *o)
{
    if (!o->n_domains)
        return o->k.min_domains > 0 ? 0 : NO_DOMAIN;
    if (!o->n_least) {
        o->least = INT64_MAX;
        for (uint32_t i = 0; i < o->cap_domains; i++) {
            if (!o->domain[i].nodes || o->domain[i].pods > o->least)
                continue;
            o->n_least = o->domain[i].pods < o->least ? 1 : o->n_least + 1;
            o->least = o->domain[i].pods;
        }
    }
    return o->n_domains < (int64_t)o->k.min_domains ? 0 : o->least;
}

static uint32_t filter(struct bh_call *c BH_UNUSED, void *p, uint32_t *rows, uint32_t n)
{
    struct track *t = p;
    uint32_t m = 0;

    for (uint32_t r = 0; r < n && t->hard.n; r++)
        if (t->has_hard[rows[r]])
            rows[m++] = rows[r];
    n = t->hard.n ? m : n;
    for (uint32_t i = 0; i < t->hard.n; i++) {
        struct counted *o = &t->v[i];
        int64_t most = o->k.max_skew - o->self + fewest(o);
        m = 0;
        for (uint32_t r = 0; r < n; r++)
            if (o->domain[o->at->of_row[rows[r]]].pods <= most)
                rows[m++] = rows[r];
        n = m;
    }
    return n;
}

/* The fewest pods of any domain but this one, which has nodes. */
static int64_t fewest_elsewhere(const struct counted *o, uint32_t id)
{
    int64_t least = INT64_MAX;

    if (o->domain[id].pods > o->least || o->n_least > 1)
        return o->least;
    for (uint32_t i = 0; i < o->cap_domains; i++)
        if (i != id && o->domain[i].nodes)
            least = BH_MIN(least, o->domain[i].pods);
    return least;
}

/* As AddPod would count them in, terminating ones too. */
static const struct bh_status *why(struct bh_call *c, void *p, uint32_t row,
                                   const struct bh_pod_info *const *pods, uint32_t n)
{
    struct track *t = p;

    for (uint32_t i = 0; i < t->hard.n; i++) {
        struct counted *o = &t->v[i];
        uint32_t id = o->at->of_row[row];
        if (!o->at->has[row])
            return &bh_spread_no_label;
        int64_t least = fewest(o), more = 0, count = o->domain[id].pods;
        for (uint32_t k = 0; k < n && o->counts[row]; k++)
            more += pods[k]->shape->namespace_ == c->pod->shape->namespace_ &&
                    bh_constraint_matches(&o->k, pods[k]->shape, c->tab);
        if (more && o->n_domains >= (int64_t)o->k.min_domains)
            least = BH_MIN(fewest_elsewhere(o, id), count + more);
        if (count + more + o->self - least > o->k.max_skew)
            return &bh_spread_too_skewed;
    }
    return NULL;
}

/* ---- Score ---- */

struct scoring {
    struct bh_call *c;
    const struct track *t;
    const uint32_t *rows;
    uint32_t n, n_scored; /* rows given; nodes they stand for that are not ignored */
    double *sum;          /* by index into rows */
};

static bool ignored(const struct scoring *s, uint32_t i)
{
    return s->t->require_all && !s->t->has_soft[s->rows[i]];
}

/* A sum is made of the constraints in their order, see score.c. */
static void add_nodes(const struct scoring *s, const struct counted *o)
{
    double weight = bh_go_log((double)s->n_scored + 2);

    for (uint32_t i = 0; i < s->n; i++)
        if (o->at->has[s->rows[i]] && !ignored(s, i))
            s->sum[i] += (double)o->on_row[s->rows[i]] * weight + (double)(o->k.max_skew - 1);
}

static void add_domains(const struct scoring *s, const struct counted *o)
{
    bool *seen = bh_arena_new_array(s->c->arena, bool, o->cap_domains);
    uint32_t size = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t id = o->at->of_row[s->rows[i]];
        size += !seen[id] && !ignored(s, i);
        seen[id] |= !ignored(s, i);
    }
    double weight = bh_go_log((double)size + 2);
    for (uint32_t i = 0; i < s->n; i++)
        if (o->at->has[s->rows[i]] && !ignored(s, i))
            s->sum[i] += (double)o->domain[o->at->of_row[s->rows[i]]].pods * weight +
                         (double)(o->k.max_skew - 1);
}

/* Truncated, as between integers: the quotient is at most 200, so the double next to it is on the
 * same side of every integer as long as b is below 2^40. */
static int64_t quotient(int64_t a, int64_t b)
{
    return b < (int64_t)1 << 40 ? (int64_t)((double)a / (double)b) : a / b;
}

static bool score(struct bh_call *c, void *p, const uint32_t *rows, const uint32_t *stands_for,
                  uint32_t n, int64_t *ret)
{
    const struct bh_spread_args *args = c->args;
    struct scoring s = {.c = c, .t = p, .rows = rows, .n = n};

    if (!s.t->soft.n)
        return false;
    s.sum = bh_arena_new_array(c->arena, double, n);
    for (uint32_t i = 0; i < n; i++)
        if (!ignored(&s, i))
            s.n_scored += stands_for ? stands_for[i] : 1;
    for (uint32_t i = s.t->hard.n; i < s.t->n; i++) {
        const struct counted *o = &s.t->v[i];
        if (o->k.key == args->hostname)
            add_nodes(&s, o);
        else
            add_domains(&s, o);
    }
    int64_t min = INT64_MAX, max = 0;
    for (uint32_t i = 0; i < s.n; i++) {
        /* round() for what is not negative and far below 2^52. */
        int64_t whole = (int64_t)s.sum[i];
        ret[i] = whole + (s.sum[i] - (double)whole >= 0.5);
        if (ignored(&s, i))
            continue;
        min = BH_MIN(min, ret[i]);
        max = BH_MAX(max, ret[i]);
    }
    for (uint32_t i = 0; i < s.n; i++)
        ret[i] = ignored(&s, i) ? 0 : max == 0 ? 100 : quotient(100 * (max + min - ret[i]), max);
    return true;
}

const struct bh_track_ops bh_spread_track = {
    .make = make,
    .drop = drop,
    .bytes = bytes,
    .current = current,
    .update = update,
    .filter = filter,
    .why = why,
    .score = score,
    .kind = kind,
    .moved = moved,
};
