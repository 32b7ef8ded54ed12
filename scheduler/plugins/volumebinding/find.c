/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/volumebinding/find.c - one node: do the claims' volumes reach it
 *
 * Upstream: pkg/scheduler/framework/plugins/volumebinding/binder.go (FindPodVolumes).
 */
#include "scheduler/plugins/volumebinding/binder.h"

enum { CONFLICT = 1, NO_VOLUME = 2, NO_SPACE = 4, MISSING = 8, ALL_REASONS = 15 };
#define R_CONFLICT  "node(s) didn't match PersistentVolume's node affinity"
#define R_NO_VOLUME "node(s) didn't find available persistent volumes to bind"
#define R_NO_SPACE  "node(s) did not have enough free storage"
#define R_MISSING   "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

/* A status for each combination; reasons in upstream's order. */
#define REASONS(set, count, ...)                                                                   \
    [set] = {.code = BH_UNSCHEDULABLE_AND_UNRESOLVABLE,                                            \
             .n_reasons = (count),                                                                 \
             .reasons = (const char *const[]){__VA_ARGS__},                                        \
             .plugin = "VolumeBinding"}
static const struct bh_status by_reasons[ALL_REASONS + 1] = {
    REASONS(CONFLICT, 1, R_CONFLICT),
    REASONS(NO_VOLUME, 1, R_NO_VOLUME),
    REASONS(NO_SPACE, 1, R_NO_SPACE),
    REASONS(MISSING, 1, R_MISSING),
    REASONS(CONFLICT | NO_VOLUME, 2, R_CONFLICT, R_NO_VOLUME),
    REASONS(CONFLICT | NO_SPACE, 2, R_CONFLICT, R_NO_SPACE),
    REASONS(NO_VOLUME | MISSING, 2, R_NO_VOLUME, R_MISSING),
    REASONS(NO_SPACE | MISSING, 2, R_NO_SPACE, R_MISSING),
};

struct search {
    struct bh_call *c;
    const struct bh_pod_claims *p;
    const struct bh_node_rec *node;
    const struct bh_status *error;
    const struct bh_offer **match; /* by waiting claim; NULL: is to be provisioned. One volume
                                      serves one claim of the pod */
};

static void fail(struct search *s, const char *text)
{
    s->error = bh_status_new(s->c->arena, BH_ERROR, "VolumeBinding", "%s", text);
}

static bool reaches(const struct search *s, const struct bh_terms *t)
{
    return bh_terms_match_node(t, s->c->tab, s->node);
}

bool bh_bound_reaches(struct bh_call *c, const struct bh_bound_claim *b,
                      const struct bh_node_rec *node, const char **ret_error)
{
    bool migrated =
        b->in_tree != BH_IN_TREE_NONE &&
        bh_migrated_on(bh_find_csi_node(c->objects, bh_sym_text(c->tab, node->name)), b->in_tree);

    *ret_error = NULL;
    if (migrated && b->csi_error) {
        *ret_error = bh_arena_printf(c->arena, "could not translate pv: %s", b->csi_error);
        return false;
    }
    return bh_terms_match_node(migrated ? &b->csi_affinity : &b->affinity, c->tab, node);
}

static unsigned check_bound(struct search *s)
{
    const char *error;

    for (uint32_t i = 0; i < s->p->n_bound; i++) {
        if (s->p->bound[i].missing)
            return MISSING;
        if (bh_bound_reaches(s->c, &s->p->bound[i], s->node, &error))
            continue;
        if (!error)
            return CONFLICT;
        fail(s, error);
        return 0;
    }
    return 0;
}

static bool is_chosen(const struct search *s, const K8s__PersistentVolume *v)
{
    for (uint32_t i = 0; i < s->p->n_waiting; i++)
        if (s->match[i] && s->match[i]->volume == v)
            return true;
    return false;
}

static bool is_open(const struct search *s, const struct bh_offer *o)
{
    return !is_chosen(s, o->volume) && reaches(s, &o->affinity);
}

/* First place at or after (key, value). */
static uint32_t first_place(const struct bh_offer_index *x, bh_sym key, bh_sym value)
{
    uint32_t lo = 0, hi = x->n_places;

    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        const struct bh_offer_place *p = &x->places[mid];
        if (p->key < key || (p->key == key && p->value < value))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* A volume that was made for the claim ends the search, even when it cannot reach the node. */
static const struct bh_offer *match(const struct search *s, const struct bh_waiting_claim *w)
{
    for (uint32_t i = 0; i < w->n_reserved; i++)
        if (!is_chosen(s, w->reserved[i].volume))
            return reaches(s, &w->reserved[i].affinity) ? &w->reserved[i] : NULL;
    /* The first offer that reaches the node: by the node's labels, then among those without a
     * place. */
    const struct bh_kv *labels = bh_rec_at(s->node, s->node->labels, struct bh_kv);
    const struct bh_offer_index *x = &w->index;
    uint32_t best = w->n_offers;
    for (uint32_t k = 0; k < x->n_keys; k++) {
        bh_sym value;
        if (!bh_labels_get(labels, s->node->labels.n, x->keys[k], &value))
            continue;
        for (uint32_t i = first_place(x, x->keys[k], value);
             i < x->n_places && x->places[i].key == x->keys[k] && x->places[i].value == value &&
             x->places[i].at < best;
             i++)
            if (is_open(s, &w->offers[x->places[i].at]))
                best = x->places[i].at;
    }
    for (uint32_t i = 0; i < x->n_anywhere && x->anywhere[i] < best; i++)
        if (is_open(s, &w->offers[x->anywhere[i]]))
            best = x->anywhere[i];
    return best < w->n_offers ? &w->offers[best] : NULL;
}

static unsigned check_provision(const struct search *s, const struct bh_waiting_claim *w)
{
    if (!w->can_provision || !reaches(s, &w->topologies))
        return NO_VOLUME;
    for (uint32_t i = 0; w->needs_capacity && i < w->n_capacities; i++)
        if (reaches(s, &w->capacities[i]))
            return 0;
    return w->needs_capacity ? NO_SPACE : 0;
}

static unsigned check_waiting(struct search *s)
{
    const struct bh_pod_claims *p = s->p;
    const char *node = bh_sym_text(s->c->tab, s->node->name);
    unsigned why = 0;

    for (uint32_t i = 0; i < p->n_selected; i++)
        if (!bh_streq(p->waiting[i].selected_node, node))
            return NO_VOLUME;
    s->match = bh_arena_new_array(s->c->arena, const struct bh_offer *, p->n_waiting);
    for (uint32_t i = p->n_selected; i < p->n_waiting; i++) {
        const struct bh_waiting_claim *w = &p->waiting[i];
        if (w->match_error) {
            fail(s, w->match_error);
            return 0;
        }
        s->match[i] = match(s, w);
    }
    for (uint32_t i = 0; i < p->n_waiting && !why; i++)
        if (!s->match[i])
            why = check_provision(s, &p->waiting[i]);
    return why;
}

static const struct bh_status *find_volumes(struct search *s)
{
    unsigned why = check_bound(s);

    if (!s->error && s->p->n_waiting)
        why |= check_waiting(s);
    return s->error ? s->error : why ? &by_reasons[why] : NULL;
}

const struct bh_status *bh_claims_filter(struct bh_call *c, const struct bh_pod_claims *p,
                                         const struct bh_node_rec *node)
{
    struct search s = {.c = c, .p = p, .node = node};
    struct bh_arena_mark mark = bh_arena_mark(c->arena);
    const struct bh_status *status = find_volumes(&s);

    if (!s.error)
        bh_arena_rewind(c->arena, mark);
    return status;
}

const struct bh_status *bh_claims_choose(struct bh_call *c, const struct bh_pod_claims *p,
                                         const struct bh_node_rec *node,
                                         const struct bh_offer *const **ret)
{
    struct search s = {.c = c, .p = p, .node = node};
    const struct bh_status *status = find_volumes(&s);

    *ret = s.match;
    return status;
}

/* ---- all nodes ---- */

static bool reaches_all(const struct bh_bound_claim *b)
{
    return !b->missing && b->affinity.kind == BH_TERMS_ALL &&
           (b->in_tree == BH_IN_TREE_NONE || b->csi_affinity.kind == BH_TERMS_ALL);
}

/* No volume has to be found for it, and every node will do. */
static bool provisioned_anywhere(const struct bh_waiting_claim *w)
{
    return !w->selected_node && !w->n_reserved && !w->n_offers && w->can_provision &&
           w->topologies.kind == BH_TERMS_ALL && !w->needs_capacity;
}

enum bh_overlay_answer bh_claims_ask(struct bh_call *c, uint32_t *rows BH_UNUSED,
                                     uint32_t *n BH_UNUSED)
{
    const struct bh_pod_claims *p = c->pre_filter_state;
    bool all = true;

    for (uint32_t i = 0; i < p->n_bound; i++) {
        if (p->bound[i].csi_error)
            return BH_OVERLAY_FAILS;
        all &= reaches_all(&p->bound[i]);
    }
    for (uint32_t i = 0; i < p->n_waiting; i++) {
        if (p->waiting[i].match_error)
            return BH_OVERLAY_FAILS;
        all &= provisioned_anywhere(&p->waiting[i]);
    }
    return all ? BH_OVERLAY_ALWAYS : BH_OVERLAY_SOME;
}

/* The affinity that holds on every node, migrated or not; NULL: it depends on the node. */
static const struct bh_terms *same_everywhere(const struct bh_bound_claim *b)
{
    const struct bh_terms *x = &b->affinity, *y = &b->csi_affinity;

    if (b->in_tree == BH_IN_TREE_NONE)
        return x;
    if (x->kind != y->kind || b->csi_error)
        return NULL;
    return x->kind != BH_TERMS_SOME ||
                   (x->rec->h.size == y->rec->h.size && !memcmp(x->rec, y->rec, x->rec->h.size))
               ? x
               : NULL;
}

/* One term that only lists values of labels: what most volumes have. */
static const struct bh_node_term *only_values(const struct bh_terms *t)
{
    if (!t || t->kind != BH_TERMS_SOME || t->rec->required_terms.n != 1)
        return NULL;
    const struct bh_node_term *term =
        bh_rec_at(t->rec, t->rec->required_terms, struct bh_node_term);
    const struct bh_requirement *r = bh_rec_at(t->rec, term->expressions, struct bh_requirement);
    for (uint32_t i = 0; i < term->expressions.n; i++)
        if (r[i].op != BH_REQ_IN)
            return NULL;
    return term->flags & (BH_TERM_EMPTY | BH_TERM_INVALID) ? NULL : term;
}

static uint32_t terms_rows(struct bh_call *c, const struct bh_terms *t, uint32_t *rows, uint32_t n)
{
    const struct bh_node_term *term = only_values(t);
    uint32_t m = 0;

    if (t->kind == BH_TERMS_ALL)
        return n;
    if (term) {
        const struct bh_requirement *r =
            bh_rec_at(t->rec, term->expressions, struct bh_requirement);
        for (uint32_t i = 0; i < term->expressions.n; i++) {
            const bh_sym *column =
                bh_label_column(((const struct bh_binder *)c->args)->labels, c->cache, r[i].key);
            const bh_sym *values = bh_rec_at(t->rec, r[i].values, bh_sym);
            m = 0;
            for (uint32_t j = 0; j < n; j++) {
                uint32_t k = 0;
                while (k < r[i].values.n && values[k] != column[rows[j]])
                    k++;
                if (k < r[i].values.n)
                    rows[m++] = rows[j];
            }
            n = m;
        }
        return n;
    }
    for (uint32_t i = 0; i < n; i++)
        if (bh_terms_match_node(t, c->tab, c->cache->rows[rows[i]]->rec))
            rows[m++] = rows[i];
    return m;
}

static uint32_t bound_rows(struct bh_call *c, const struct bh_bound_claim *b, uint32_t *rows,
                           uint32_t n)
{
    const struct bh_terms *t = same_everywhere(b);
    const char *error;
    uint32_t m = 0;

    if (b->missing)
        return 0;
    if (t)
        return terms_rows(c, t, rows, n);
    for (uint32_t i = 0; i < n; i++)
        if (bh_bound_reaches(c, b, c->cache->rows[rows[i]]->rec, &error))
            rows[m++] = rows[i];
    return m;
}

/* A claim that has to be provisioned wherever it goes. */
static uint32_t provisioned_rows(struct bh_call *c, const struct bh_waiting_claim *w,
                                 uint32_t *rows, uint32_t n)
{
    uint32_t m = 0;

    if (!w->can_provision)
        return 0;
    n = terms_rows(c, &w->topologies, rows, n);
    for (uint32_t i = 0; w->needs_capacity && i < n; i++) {
        const struct bh_node_rec *node = c->cache->rows[rows[i]]->rec;
        uint32_t k = 0;
        while (k < w->n_capacities && !bh_terms_match_node(&w->capacities[k], c->tab, node))
            k++;
        if (k < w->n_capacities)
            rows[m++] = rows[i];
    }
    return w->needs_capacity ? m : n;
}

bool bh_claims_can_rows(const struct bh_pod_claims *p)
{
    bool can = true;

    for (uint32_t i = 0; i < p->n_bound; i++)
        can &= !p->bound[i].csi_error;
    for (uint32_t i = 0; i < p->n_waiting; i++)
        can &= !p->waiting[i].match_error && !p->waiting[i].selected_node &&
               !p->waiting[i].n_reserved && !p->waiting[i].n_offers;
    return can;
}

uint32_t bh_claims_rows(struct bh_call *c, const struct bh_pod_claims *p, uint32_t *rows,
                        uint32_t n)
{
    for (uint32_t i = 0; i < p->n_bound && n; i++)
        if (!reaches_all(&p->bound[i]))
            n = bound_rows(c, &p->bound[i], rows, n);
    for (uint32_t i = 0; i < p->n_waiting && n; i++)
        n = provisioned_rows(c, &p->waiting[i], rows, n);
    return n;
}
