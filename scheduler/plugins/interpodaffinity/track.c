/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/interpodaffinity/track.c - the tallies of one shape, kept from cycle to cycle
 *
 * A lane holds one topology key of one tally (what existing pods refuse, what the pod seeks, what
 * it avoids, how much it is liked): the share of each node, and the sums of the key's domains.
 * Lanes appear as pods with such terms do. A node that changed takes its old shares out of its old
 * domains and puts the new ones into the new.
 *
 * Invariants: a domain's sum is that of share[row] over the rows in it; share is 0 where the node
 *             lacks the key; nonzero counts the domains whose sum is not 0.
 * Runs in:    the engine's thread.
 * Upstream:   the same numbers as filtering.go and scoring.go count for every pod.
 */
#include "scheduler/plugins/domains.h"
#include "scheduler/plugins/interpodaffinity/affinity.h"

struct lane {
    uint32_t map;
    struct bh_domains *at;
    int64_t *share; /* by row */
    int64_t *sum;   /* by domain */
    uint32_t cap_domains, nonzero;
};
struct track {
    struct lane *lane;
    uint32_t n_lanes, cap_lanes;
    struct bh_domains **key; /* each on its own: lanes point at them */
    uint32_t n_keys, cap_keys;
    uint32_t cap_rows;
    uint64_t namespaces; /* version of their labels */
    bool own, own_score, first_of_group, counts_likes;
};

/* ---- making -----------------------------------------------------------------------------------
 */

static void *make(struct bh_call *c)
{
    const struct bh_ipa_args *args = c->args;
    const struct bh_shape_rec *s = c->pod->shape;
    struct bh_terms terms;

    if (s->flags & BH_SHAPE_USES_POD_AFFINITY && bh_ipa_parse_error(c))
        return NULL;
    struct track *t = bh_calloc(1, sizeof *t);
    bh_terms_init(&terms, c->tab, c->objects, c->arena);
    t->namespaces = c->objects->version[BH_KIND_NAMESPACE];
    t->own = s->affinity.n || s->anti_affinity.n;
    t->own_score = s->preferred_affinity.n || s->preferred_anti_affinity.n;
    t->counts_likes = t->own_score || !args->ignore_preferred;
    t->first_of_group = bh_own_terms_match(&terms, s, s->affinity, s);
    return t;
}

static void drop(void *p)
{
    struct track *t = p;

    for (uint32_t i = 0; i < t->n_lanes; i++) {
        free(t->lane[i].share);
        free(t->lane[i].sum);
    }
    for (uint32_t i = 0; i < t->n_keys; i++) {
        bh_domains_fini(t->key[i]);
        free(t->key[i]);
    }
    free(t->lane);
    free(t->key);
    free(t);
}

static size_t bytes(const void *p)
{
    const struct track *t = p;
    size_t n = sizeof *t;

    for (uint32_t i = 0; i < t->n_lanes; i++)
        n += sizeof t->lane[i] + (t->cap_rows + t->lane[i].cap_domains) * sizeof(int64_t);
    for (uint32_t i = 0; i < t->n_keys; i++)
        n += sizeof *t->key[i] + bh_domains_bytes(t->key[i]);
    return n;
}

static bool current(struct bh_call *c, void *p)
{
    const struct track *t = p;

    for (uint32_t i = 0; i < t->n_keys; i++)
        if (bh_domains_crowded(t->key[i]))
            return false;
    return t->namespaces == c->objects->version[BH_KIND_NAMESPACE];
}

/* ---- lanes ------------------------------------------------------------------------------------
 */

static struct bh_domains *key_of(struct bh_call *c, struct track *t, bh_sym key)
{
    for (uint32_t i = 0; i < t->n_keys; i++)
        if (t->key[i]->key == key)
            return t->key[i];
    if (t->n_keys == t->cap_keys) {
        t->cap_keys = t->cap_keys ? t->cap_keys * 2 : 4;
        t->key = bh_reallocarray(t->key, t->cap_keys, sizeof *t->key);
    }
    struct bh_domains *d = t->key[t->n_keys++] = bh_calloc(1, sizeof *d);
    bh_domains_init(d, key);
    bh_domains_reserve(d, t->cap_rows);
    for (uint32_t row = 0; row < c->cache->cols.n_rows; row++)
        bh_domains_set(d, row,
                       bh_row_bit(&c->cache->cols, BH_ROW_LIVE, row) ? c->cache->rows[row]->rec
                                                                     : NULL);
    return d;
}

static struct lane *lane_of(struct bh_call *c, struct track *t, uint32_t map, bh_sym key)
{
    for (uint32_t i = 0; i < t->n_lanes; i++)
        if (t->lane[i].map == map && t->lane[i].at->key == key)
            return &t->lane[i];
    if (t->n_lanes == t->cap_lanes) {
        t->cap_lanes = t->cap_lanes ? t->cap_lanes * 2 : 4;
        t->lane = bh_reallocarray(t->lane, t->cap_lanes, sizeof *t->lane);
    }
    struct lane *l = &t->lane[t->n_lanes++];
    *l = (struct lane){
        .map = map, .at = key_of(c, t, key), .share = bh_calloc(t->cap_rows, sizeof(int64_t))};
    return l;
}

static void shift(struct lane *l, uint32_t id, int64_t n)
{
    if (!n)
        return;
    if (id >= l->cap_domains) {
        uint32_t cap = BH_MAX(BH_MAX(16u, l->cap_domains * 2), l->at->n);
        l->sum = bh_reallocarray(l->sum, cap, sizeof *l->sum);
        memset(l->sum + l->cap_domains, 0, (cap - l->cap_domains) * sizeof *l->sum);
        l->cap_domains = cap;
    }
    l->nonzero -= l->sum[id] != 0;
    l->sum[id] += n;
    l->nonzero += l->sum[id] != 0;
}

static int64_t sum_at(const struct lane *l, uint32_t row)
{
    uint32_t id = l->at->of_row[row];
    return l->at->has[row] && id < l->cap_domains ? l->sum[id] : 0;
}

/* ---- following the nodes ----------------------------------------------------------------------
 */

static void reserve(struct track *t, uint32_t rows)
{
    if (rows <= t->cap_rows)
        return;
    for (uint32_t i = 0; i < t->n_lanes; i++) {
        struct lane *l = &t->lane[i];
        l->share = bh_reallocarray(l->share, rows, sizeof *l->share);
        memset(l->share + t->cap_rows, 0, (rows - t->cap_rows) * sizeof *l->share);
    }
    for (uint32_t i = 0; i < t->n_keys; i++)
        bh_domains_reserve(t->key[i], rows);
    t->cap_rows = rows;
}

/* Takes the row's shares out and reads the node's labels anew. */
static void leave(struct bh_call *c, struct track *t, uint32_t row)
{
    bool live = bh_row_bit(&c->cache->cols, BH_ROW_LIVE, row);

    for (uint32_t i = 0; i < t->n_lanes; i++) {
        shift(&t->lane[i], t->lane[i].at->of_row[row], -t->lane[i].share[row]);
        t->lane[i].share[row] = 0;
    }
    for (uint32_t i = 0; i < t->n_keys; i++)
        bh_domains_set(t->key[i], row, live ? c->cache->rows[row]->rec : NULL);
}

/* What one pod brings, as bh_ipa_scan would add it to the tallies of PreFilter and PreScore. */
static void enter(struct bh_call *c, struct track *t, struct bh_ipa_scan *s, uint32_t row,
                  const struct bh_pod_info *pod)
{
    const struct bh_ipa_share *list = bh_ipa_shares(s, pod);

    for (uint32_t k = 1; k <= list->map; k++) {
        struct lane *l = lane_of(c, t, list[k].map, list[k].key);
        if (!l->at->has[row])
            continue;
        l->share[row] += list[k].n;
        shift(l, l->at->of_row[row], list[k].n);
    }
}

static void fill_both(struct bh_ipa_scan *s, const struct bh_shape_rec *pod)
{
    bh_ipa_fill_filter(s, pod);
    bh_ipa_fill_score(s, pod);
}

static void update(struct bh_call *c, void *p, const uint32_t *rows, uint32_t n)
{
    struct track *t = p;
    struct bh_terms terms;
    struct bh_ipa_scan s = {.a = c->arena,
                            .incoming = c->pod->shape,
                            .terms = &terms,
                            .args = c->args,
                            .fill = t->counts_likes ? fill_both : bh_ipa_fill_filter};
    const bool all = t->own || t->own_score;

    reserve(t, c->cache->cols.cap_rows);
    bh_terms_init(&terms, c->tab, c->objects, c->arena);
    bh_ipa_scan_begin(&s, c->cache, n > 32);
    for (uint32_t r = 0; r < n; r++) {
        const struct bh_node_info *ni = c->cache->rows[rows[r]];
        leave(c, t, rows[r]);
        if (!bh_row_bit(&c->cache->cols, BH_ROW_LIVE, rows[r]) || (!all && !ni->n_affinity_pods))
            continue;
        for (uint32_t i = 0; i < ni->n_pods; i++)
            if (all || ni->pods[i]->shape->flags & BH_SHAPE_USES_POD_AFFINITY)
                enter(c, t, &s, rows[r], ni->pods[i]);
    }
}

/* ---- Filter -----------------------------------------------------------------------------------
 */

static const struct lane *find_lane(const struct track *t, uint32_t map, bh_sym key)
{
    for (uint32_t i = 0; i < t->n_lanes; i++)
        if (t->lane[i].map == map && t->lane[i].at->key == key)
            return &t->lane[i];
    return NULL;
}

static bool anything(const struct track *t, uint32_t map)
{
    for (uint32_t i = 0; i < t->n_lanes; i++)
        if (t->lane[i].map == map && t->lane[i].nonzero)
            return true;
    return false;
}

/* Rows where the lane's sum is above 0 (wanted), or not. */
static uint32_t keep(const struct lane *l, bool wanted, uint32_t *rows, uint32_t n)
{
    uint32_t m = 0;

    for (uint32_t r = 0; r < n; r++)
        if ((sum_at(l, rows[r]) > 0) == wanted)
            rows[m++] = rows[r];
    return m;
}

/* Nobody in the whole cluster to be near to: the first of a group may begin wherever the keys are.
 */
static uint32_t keep_with_keys(struct bh_call *c, struct track *t, uint32_t *rows, uint32_t n)
{
    const struct bh_shape_rec *s = c->pod->shape;
    const struct bh_pod_term *term = bh_rec_at(s, s->affinity, struct bh_pod_term);

    for (uint32_t i = 0; i < s->affinity.n; i++) {
        const struct bh_domains *d = key_of(c, t, term[i].topology_key);
        uint32_t m = 0;
        for (uint32_t r = 0; r < n; r++)
            if (d->has[rows[r]])
                rows[m++] = rows[r];
        n = m;
    }
    return n;
}

static uint32_t filter(struct bh_call *c, void *p, uint32_t *rows, uint32_t n)
{
    struct track *t = p;
    const struct bh_shape_rec *s = c->pod->shape;
    const struct bh_pod_term *term = bh_rec_at(s, s->affinity, struct bh_pod_term);

    if (s->affinity.n && !anything(t, BH_IPA_AFFINITY))
        n = t->first_of_group ? keep_with_keys(c, t, rows, n) : 0;
    else
        for (uint32_t i = 0; i < s->affinity.n; i++) {
            const struct lane *l = find_lane(t, BH_IPA_AFFINITY, term[i].topology_key);
            n = l ? keep(l, true, rows, n) : 0;
        }
    for (uint32_t i = 0; i < t->n_lanes; i++)
        if (t->lane[i].nonzero &&
            (t->lane[i].map == BH_IPA_EXISTING || t->lane[i].map == BH_IPA_ANTI_AFFINITY))
            n = keep(&t->lane[i], false, rows, n);
    return n;
}

/* ---- Score ------------------------------------------------------------------------------------
 */

static bool score(struct bh_call *c, void *p, const uint32_t *rows, uint32_t n, int64_t *ret)
{
    const struct track *t = p;

    if (!t->counts_likes || !anything(t, BH_IPA_LIKES))
        return false;
    for (uint32_t r = 0; r < n; r++)
        ret[r] = 0;
    for (uint32_t i = 0; i < t->n_lanes; i++)
        for (uint32_t r = 0; t->lane[i].map == BH_IPA_LIKES && r < n; r++)
            ret[r] += sum_at(&t->lane[i], rows[r]);
    bh_ipa_normalize(c, ret, n);
    return true;
}

const struct bh_track_ops bh_ipa_track = {
    .make = make,
    .drop = drop,
    .bytes = bytes,
    .current = current,
    .update = update,
    .filter = filter,
    .score = score,
};
