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
 * Upstream:   the same numbers as filtering.go and scoring.go count for every pod.
 */
#include "scheduler/plugins/domains.h"
#include "scheduler/plugins/interpodaffinity/affinity.h"

/* Keys with more domains: rows are told apart by the sums of their domains, not by the domain. */
#define BY_DOMAIN 64u

struct key {
    struct bh_domains d;
    bool by_sum;
};
struct lane {
    uint32_t map;
    struct key *key;
    struct bh_domains *at; /* the key's */
    int64_t *share;        /* by row */
    int64_t *sum;          /* by domain */
    uint32_t *noted;       /* by domain: the update that noted its sum */
    uint32_t cap_domains, nonzero;
};
struct meaning {   /* of a shape of pods on nodes: its shares */
    uint64_t born; /* of the shape id, see shapes.h */
    uint32_t first, n;
};
#define SHARES_MAX 65536u /* with those of shapes that gave their slot to others */
struct track {
    struct lane *lane;
    uint32_t n_lanes, cap_lanes;
    struct key **key; /* each on its own: lanes point at them */
    uint32_t n_keys, cap_keys;
    struct meaning *meaning; /* by shape id modulo n_meanings, a power of two */
    uint32_t n_meanings;
    struct bh_ipa_share *share;
    uint32_t n_shares, cap_shares;
    struct bh_moved moved;
    uint32_t cap_rows;
    uint64_t namespaces; /* version of their labels */
    bool own, own_score, first_of_group, counts_likes;
};

/* ---- making ---- */

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
        free(t->lane[i].noted);
    }
    for (uint32_t i = 0; i < t->n_keys; i++) {
        bh_domains_fini(&t->key[i]->d);
        free(t->key[i]);
    }
    free(t->lane);
    free(t->key);
    free(t->meaning);
    free(t->share);
    bh_moved_fini(&t->moved);
    free(t);
}

static size_t bytes(const void *p)
{
    const struct track *t = p;
    size_t n = sizeof *t + t->n_meanings * sizeof *t->meaning + t->cap_shares * sizeof *t->share;

    for (uint32_t i = 0; i < t->n_lanes; i++)
        n += sizeof t->lane[i] + (t->cap_rows + t->lane[i].cap_domains) * sizeof(int64_t) +
             t->lane[i].cap_domains * sizeof(uint32_t);
    for (uint32_t i = 0; i < t->n_keys; i++)
        n += sizeof *t->key[i] + bh_domains_bytes(&t->key[i]->d);
    return n;
}

static bool current(struct bh_call *c, void *p)
{
    const struct track *t = p;

    for (uint32_t i = 0; i < t->n_keys; i++)
        if (bh_domains_crowded(&t->key[i]->d))
            return false;
    return t->namespaces == c->objects->version[BH_KIND_NAMESPACE];
}

/* ---- lanes ---- */

static struct key *key_of(struct bh_call *c, struct track *t, bh_sym key)
{
    for (uint32_t i = 0; i < t->n_keys; i++)
        if (t->key[i]->d.key == key)
            return t->key[i];
    BH_GROW(t->key, t->n_keys, t->cap_keys);
    struct key *k = t->key[t->n_keys++] = bh_calloc(1, sizeof *k);
    t->moved.anew = true;
    bh_domains_init(&k->d, key);
    bh_domains_reserve(&k->d, t->cap_rows);
    for (uint32_t row = 0; row < c->cache->cols.n_rows; row++)
        bh_domains_set(&k->d, row,
                       bh_row_bit(&c->cache->cols, BH_ROW_LIVE, row) ? c->cache->rows[row]->rec
                                                                     : NULL);
    return k;
}

static struct lane *find_lane(const struct track *t, uint32_t map, bh_sym key)
{
    for (uint32_t i = 0; i < t->n_lanes; i++)
        if (t->lane[i].map == map && t->lane[i].at->key == key)
            return &t->lane[i];
    return NULL;
}

static struct lane *lane_of(struct bh_call *c, struct track *t, uint32_t map, bh_sym key)
{
    struct lane *l = find_lane(t, map, key);

    if (l)
        return l;
    BH_GROW(t->lane, t->n_lanes, t->cap_lanes);
    l = &t->lane[t->n_lanes++];
    *l = (struct lane){
        .map = map, .key = key_of(c, t, key), .share = bh_calloc(t->cap_rows, sizeof(int64_t))};
    l->at = &l->key->d;
    return l;
}

static void shift(struct track *t, struct lane *l, uint32_t id, int64_t n)
{
    if (!n)
        return;
    if (id >= l->cap_domains) {
        uint32_t cap = BH_MAX(BH_MAX(16u, l->cap_domains * 2), l->at->n);
        l->sum = bh_regrown(l->sum, l->cap_domains, cap, sizeof *l->sum);
        l->noted = bh_regrown(l->noted, l->cap_domains, cap, sizeof *l->noted);
        l->cap_domains = cap;
    }
    if (l->key->by_sum) /* rows are another kind when the sum is another in the end */
        bh_moved_note(&t->moved, &l->noted[id], (uint32_t)(l - t->lane), id, l->sum[id]);
    l->nonzero -= l->sum[id] != 0;
    l->sum[id] += n;
    l->nonzero += l->sum[id] != 0;
}

static int64_t sum_at(const struct lane *l, uint32_t row)
{
    uint32_t id = l->at->of_row[row];
    return l->at->has[row] && id < l->cap_domains ? l->sum[id] : 0;
}

/* ---- following the nodes ---- */

static void reserve(struct track *t, uint32_t rows)
{
    if (rows <= t->cap_rows)
        return;
    for (uint32_t i = 0; i < t->n_lanes; i++) {
        struct lane *l = &t->lane[i];
        l->share = bh_regrown(l->share, t->cap_rows, rows, sizeof *l->share);
    }
    for (uint32_t i = 0; i < t->n_keys; i++)
        bh_domains_reserve(&t->key[i]->d, rows);
    t->cap_rows = rows;
}

/* Takes the row's shares out and reads the labels of a new node. */
static void leave(struct bh_call *c, struct track *t, uint32_t row, bool node)
{
    bool live = bh_row_bit(&c->cache->cols, BH_ROW_LIVE, row);

    for (uint32_t i = 0; i < t->n_lanes; i++) {
        struct lane *l = &t->lane[i];
        if (!l->share[row])
            continue;
        shift(t, l, l->at->of_row[row], -l->share[row]);
        l->share[row] = 0;
    }
    if (!node)
        return;
    for (uint32_t i = 0; i < t->n_keys; i++)
        bh_domains_set(&t->key[i]->d, row, live ? c->cache->rows[row]->rec : NULL);
}

static void forget_meanings(struct track *t, uint32_t shapes)
{
    uint32_t n = BH_MAX(bh_meanings_for(shapes), t->n_meanings);

    if (n > t->n_meanings) {
        free(t->meaning);
        t->meaning = bh_calloc(n, sizeof *t->meaning);
        t->n_meanings = n;
    } else {
        memset(t->meaning, 0, n * sizeof *t->meaning);
    }
    t->n_shares = 0;
}

/* What a pod of the shape brings, as bh_ipa_scan would add it to the tallies of PreFilter and
 * PreScore. */
static const struct meaning *meaning_of(struct bh_call *c, struct track *t, struct bh_ipa_scan *s,
                                        const struct bh_pod_info *pod)
{
    struct meaning *m = &t->meaning[pod->shape_id & (t->n_meanings - 1)];
    uint64_t born = c->cache->shapes.e[pod->shape_id].born;

    if (m->born == born)
        return m;
    const struct bh_ipa_share *list = bh_ipa_shares(s, pod);
    if (t->n_shares + list->map > t->cap_shares) {
        t->cap_shares = BH_MAX(t->cap_shares * 2, t->n_shares + list->map);
        t->share = bh_reallocarray(t->share, t->cap_shares, sizeof *t->share);
    }
    *m = (struct meaning){.born = born, .first = t->n_shares, .n = list->map};
    if (m->n)
        memcpy(&t->share[m->first], list + 1, m->n * sizeof *list);
    t->n_shares += m->n;
    return m;
}

static void enter(struct bh_call *c, struct track *t, struct bh_ipa_scan *s, uint32_t row,
                  const struct bh_pod_info *pod)
{
    const struct meaning *m = meaning_of(c, t, s, pod);

    for (uint32_t k = m->first; k < m->first + m->n; k++) {
        struct lane *l = lane_of(c, t, t->share[k].map, t->share[k].key);
        if (!l->at->has[row])
            continue;
        l->share[row] += t->share[k].n;
        shift(t, l, l->at->of_row[row], t->share[k].n);
    }
}

static void fill_both(struct bh_ipa_scan *s, const struct bh_shape_rec *pod)
{
    bh_ipa_fill_filter(s, pod);
    bh_ipa_fill_score(s, pod);
}

static void update(struct bh_call *c, void *p, const uint32_t *rows, uint32_t n_nodes, uint32_t n)
{
    struct track *t = p;
    const struct bh_shape_rec *own = c->pod->shape;
    const struct bh_pod_term *term = bh_rec_at(own, own->affinity, struct bh_pod_term);
    struct bh_terms terms;
    struct bh_ipa_scan s = {.a = c->arena,
                            .incoming = own,
                            .terms = &terms,
                            .args = c->args,
                            .fill = t->counts_likes ? fill_both : bh_ipa_fill_filter};
    const bool all = t->own || t->own_score;

    bh_moved_begin(&t->moved, n, c->cache->cols.n_rows);
    reserve(t, c->cache->cols.cap_rows);
    /* Whether a node has the pod's keys matters also while there is no pod to be near to. */
    for (uint32_t i = 0; i < own->affinity.n; i++)
        key_of(c, t, term[i].topology_key);
    bh_terms_init(&terms, c->tab, c->objects, c->arena);
    if (bh_meanings_for(c->cache->shapes.cap) > t->n_meanings || t->n_shares > SHARES_MAX)
        forget_meanings(t, c->cache->shapes.cap);
    for (uint32_t r = 0; r < n; r++) {
        const struct bh_node_info *ni = c->cache->rows[rows[r]];
        leave(c, t, rows[r], r < n_nodes);
        if (!bh_row_bit(&c->cache->cols, BH_ROW_LIVE, rows[r]) || (!all && !ni->n_affinity_pods))
            continue;
        for (uint32_t i = 0; i < ni->n_pods; i++)
            if (all || ni->pods[i]->shape->flags & BH_SHAPE_USES_POD_AFFINITY)
                enter(c, t, &s, rows[r], ni->pods[i]);
    }
    /* A key with more and more domains is looked at in the other way. */
    for (uint32_t i = 0; i < t->n_keys; i++) {
        struct key *k = t->key[i];
        if (k->by_sum || k->d.n <= BY_DOMAIN)
            continue;
        k->by_sum = t->moved.anew = true;
        bh_domains_link(&k->d);
    }
    for (uint32_t i = 0; i < t->moved.n_notes; i++) {
        const struct bh_note *k = &t->moved.note[i];
        const struct lane *l = &t->lane[k->of];
        int64_t is = l->sum[k->id];
        if (l->map == BH_IPA_LIKES ? k->was != is : (k->was > 0) != (is > 0))
            bh_moved_add(&t->moved, l->at, k->id);
    }
}

static uint32_t kind(struct bh_call *c BH_UNUSED, void *p, uint32_t row, uint32_t *ret)
{
    const struct track *t = p;
    int64_t likes = 0;
    uint32_t n = 0;

    if (t->n_keys + 2 > BH_KIND_WORDS)
        return 0;
    for (uint32_t i = 0; i < t->n_keys; i++)
        ret[n++] = (t->key[i]->by_sum ? 0 : t->key[i]->d.of_row[row] << 1) | t->key[i]->d.has[row];
    for (uint32_t i = 0; i < t->n_lanes; i++) {
        const struct lane *l = &t->lane[i];
        uint32_t at = 0;
        if (!l->key->by_sum)
            continue;
        while (t->key[at] != l->key)
            at++;
        if (l->map == BH_IPA_LIKES)
            likes += sum_at(l, row);
        else
            ret[at] |= (unsigned)(sum_at(l, row) > 0) << (1 + l->map);
    }
    ret[n++] = (uint32_t)likes;
    ret[n++] = (uint32_t)((uint64_t)likes >> 32);
    return n;
}

static uint32_t moved(const void *p, const uint32_t **ret)
{
    return bh_moved_told(&((const struct track *)p)->moved, ret);
}

/* ---- Filter ---- */

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

/* No pod in the cluster to be near to: the first of a group may begin wherever the keys are. */
static uint32_t keep_with_keys(struct bh_call *c, struct track *t, uint32_t *rows, uint32_t n)
{
    const struct bh_shape_rec *s = c->pod->shape;
    const struct bh_pod_term *term = bh_rec_at(s, s->affinity, struct bh_pod_term);

    for (uint32_t i = 0; i < s->affinity.n; i++) {
        const struct bh_domains *d = &key_of(c, t, term[i].topology_key)->d;
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

/* A node with pods added that all bring shares of the scan. */
struct with {
    const struct track *t;
    const struct bh_node_rec *node;
    uint32_t row;
    const struct bh_ipa_scan *s;
};

/* The node has the key. */
static int64_t sum_with(const struct with *w, uint32_t map, bh_sym key)
{
    const struct lane *l = find_lane(w->t, map, key);
    int64_t n = l ? sum_at(l, w->row) : 0;

    for (uint32_t i = 0; i < w->s->n; i++)
        if (w->s->v[i].map == map && w->s->v[i].key == key)
            n += w->s->v[i].n;
    return n;
}

/* A pod that is sought brings a share for each of the terms, whose keys the node has: if it is one
 * of those added, all are found. */
static bool near_enough(const struct with *w, const struct bh_shape_rec *own)
{
    const struct bh_pod_term *term = bh_rec_at(own, own->affinity, struct bh_pod_term);
    const struct bh_kv *labels = bh_rec_at(w->node, w->node->labels, struct bh_kv);
    bool found = true;
    bh_sym value;

    for (uint32_t i = 0; i < own->affinity.n; i++) {
        if (!bh_labels_get(labels, w->node->labels.n, term[i].topology_key, &value))
            return false;
        found &= sum_with(w, BH_IPA_AFFINITY, term[i].topology_key) > 0;
    }
    return found || (w->t->first_of_group && !anything(w->t, BH_IPA_AFFINITY));
}

static const struct bh_status *why(struct bh_call *c, void *p, uint32_t row,
                                   const struct bh_pod_info *const *pods, uint32_t n)
{
    const struct track *t = p;
    const struct bh_shape_rec *own = c->pod->shape;
    struct bh_terms terms;
    struct bh_ipa_scan s = {.a = c->arena, .incoming = own, .terms = &terms, .args = c->args};
    const struct with w = {.t = t, .node = c->cache->rows[row]->rec, .row = row, .s = &s};
    const struct bh_kv *labels = bh_rec_at(w.node, w.node->labels, struct bh_kv);
    const struct bh_pod_term *avoid = bh_rec_at(own, own->anti_affinity, struct bh_pod_term);
    bh_sym value;

    if (!t->own && !anything(t, BH_IPA_EXISTING))
        return NULL; /* PreFilter skips: AddPod is not called */
    if (n)
        bh_terms_init(&terms, c->tab, c->objects, c->arena);
    for (uint32_t i = 0; i < n; i++)
        bh_ipa_fill_filter(&s, pods[i]->shape);
    if (!near_enough(&w, own))
        return &bh_ipa_affinity_rules;
    for (uint32_t i = 0; i < own->anti_affinity.n; i++)
        if (bh_labels_get(labels, w.node->labels.n, avoid[i].topology_key, &value) &&
            sum_with(&w, BH_IPA_ANTI_AFFINITY, avoid[i].topology_key) > 0)
            return &bh_ipa_anti_affinity_rules;
    for (uint32_t i = 0; i < w.node->labels.n; i++)
        if (sum_with(&w, BH_IPA_EXISTING, labels[i].key) > 0)
            return &bh_ipa_existing_rules;
    return NULL;
}

/* ---- Score ---- */

static bool score(struct bh_call *c, void *p, const uint32_t *rows, const uint32_t *stands_for,
                  uint32_t n, int64_t *ret)
{
    const struct track *t = p;

    (void)stands_for; /* the extremes are the same */
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
    .why = why,
    .score = score,
    .kind = kind,
    .moved = moved,
};
