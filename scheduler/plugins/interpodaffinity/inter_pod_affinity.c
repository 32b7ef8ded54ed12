/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/interpodaffinity/inter_pod_affinity.c - pods that seek or avoid other pods
 *
 * Upstream:   pkg/scheduler/framework/plugins/interpodaffinity; differences: hints wake more
 *             (hints.c).
 */
#include "scheduler/plugins/interpodaffinity/affinity.h"
#include "scheduler/plugins/registry.h"

BH_STATUS_SHARED(bh_ipa_affinity_rules, BH_UNSCHEDULABLE_AND_UNRESOLVABLE, "InterPodAffinity",
                 "node(s) didn't match pod affinity rules");
BH_STATUS_SHARED(bh_ipa_anti_affinity_rules, BH_UNSCHEDULABLE, "InterPodAffinity",
                 "node(s) didn't match pod anti-affinity rules");
BH_STATUS_SHARED(bh_ipa_existing_rules, BH_UNSCHEDULABLE, "InterPodAffinity",
                 "node(s) didn't satisfy existing pods anti-affinity rules");

/* Filter is configured without PreFilter. */
BH_STATUS_CONST(no_state, BH_ERROR, "InterPodAffinity",
                "error reading \"PreFilterInterPodAffinity\" from cycleState: not found");

struct state {
    struct bh_terms *terms;                      /* shared by all clones */
    struct bh_pair_view map[BH_IPA_FILTER_MAPS]; /* (key, value) -> matches */
    bool first_of_group;                         /* the pod matches all its own affinity terms */
};

/* ---- terms that do not parse ---- */

const char *bh_ipa_list_error(const struct bh_symtab *tab, const struct bh_shape_rec *s,
                              struct bh_slice list)
{
    const struct bh_pod_term *t = bh_rec_at(s, list, struct bh_pod_term);

    for (uint32_t i = 0; i < list.n; i++) {
        if (t[i].selector.flags & BH_SELECTOR_INVALID)
            return bh_sym_text(tab, t[i].selector.error);
        if (t[i].namespace_selector.flags & BH_SELECTOR_INVALID)
            return bh_sym_text(tab, t[i].namespace_selector.error);
    }
    return NULL;
}

const struct bh_status *bh_ipa_parse_error(struct bh_call *c)
{
    const struct bh_shape_rec *s = c->pod->shape;
    const struct {
        const char *name;
        struct bh_slice list;
    } lists[] = {{"requiredAffinityTerms", s->affinity},
                 {"requiredAntiAffinityTerms", s->anti_affinity},
                 {"preferredAffinityTerms", s->preferred_affinity},
                 {"preferredAntiAffinityTerms", s->preferred_anti_affinity}};
    const char *text = NULL;
    unsigned n = 0;

    for (unsigned i = 0; i < BH_ARRAY_LEN(lists); i++) {
        const char *e = bh_ipa_list_error(c->tab, s, lists[i].list);
        if (!e)
            continue;
        text = n++ ? bh_arena_printf(c->arena, "%s, %s: %s", text, lists[i].name, e)
                   : bh_arena_printf(c->arena, "%s: %s", lists[i].name, e);
    }
    if (!n)
        return NULL;
    return bh_status_new(c->arena, BH_UNSCHEDULABLE_AND_UNRESOLVABLE, "InterPodAffinity",
                         n > 1 ? "parsing pod: [%s]" : "parsing pod: %s", text);
}

/* ---- PreFilter ---- */

void bh_ipa_fill_filter(struct bh_ipa_scan *s, const struct bh_shape_rec *pod)
{
    const struct bh_shape_rec *own = s->incoming;
    const struct bh_pod_term *t = bh_rec_at(pod, pod->anti_affinity, struct bh_pod_term);

    for (uint32_t i = 0; i < pod->anti_affinity.n; i++)
        if (bh_other_term_matches(s->terms, pod, &t[i], own))
            bh_ipa_push(s, BH_IPA_EXISTING, t[i].topology_key, 1);
    t = bh_rec_at(own, own->affinity, struct bh_pod_term);
    if (bh_own_terms_match(s->terms, own, own->affinity, pod))
        for (uint32_t i = 0; i < own->affinity.n; i++)
            bh_ipa_push(s, BH_IPA_AFFINITY, t[i].topology_key, 1);
    t = bh_rec_at(own, own->anti_affinity, struct bh_pod_term);
    for (uint32_t i = 0; i < own->anti_affinity.n; i++)
        if (bh_own_term_matches(s->terms, own, &t[i], pod))
            bh_ipa_push(s, BH_IPA_ANTI_AFFINITY, t[i].topology_key, 1);
}

static const struct bh_status *pre_filter(struct bh_call *c, struct bh_node_set *ret BH_UNUSED)
{
    const struct bh_shape_rec *shape = c->pod->shape;
    bool own = shape->affinity.n || shape->anti_affinity.n;

    const struct bh_status *bad =
        shape->flags & BH_SHAPE_USES_POD_AFFINITY ? bh_ipa_parse_error(c) : NULL;
    if (bad)
        return bad;
    if (!own && !c->cache->n_affinity_pods)
        return &bh_status_skip;
    struct bh_pair_counts *tally =
        bh_arena_new_array(c->arena, struct bh_pair_counts, BH_IPA_FILTER_MAPS);
    struct state *st = bh_arena_new(c->arena, struct state);
    st->terms = bh_arena_new(c->arena, struct bh_terms);
    bh_terms_init(st->terms, c->tab, c->objects, c->arena);
    struct bh_ipa_scan s = {.a = c->arena,
                            .incoming = shape,
                            .terms = st->terms,
                            .args = c->args,
                            .fill = bh_ipa_fill_filter};
    for (unsigned i = 0; i < BH_IPA_FILTER_MAPS; i++)
        tally[i] = bh_pair_counts(c->arena);
    bh_ipa_scan_nodes(&s, c->cache, own, tally);
    for (unsigned i = 0; i < BH_IPA_FILTER_MAPS; i++)
        st->map[i] = bh_pair_view(&tally[i]);
    st->first_of_group = bh_own_terms_match(st->terms, shape, shape->affinity, shape);
    c->pre_filter_state = st;
    return own || tally[BH_IPA_EXISTING].used ? NULL : &bh_status_skip;
}

static void *clone_state(struct bh_call *c)
{
    const struct state *st = c->pre_filter_state;
    struct state *copy = bh_arena_memdup(c->arena, st, sizeof *st);

    for (unsigned i = 0; i < BH_IPA_FILTER_MAPS; i++)
        copy->map[i] = bh_pair_view_clone(&st->map[i], c->arena);
    return copy;
}

static const struct bh_status *change_pod(struct bh_call *c, const struct bh_pod_info *pod,
                                          const struct bh_node_info *node, int by)
{
    struct state *st = c->pre_filter_state;
    struct bh_terms terms = *st->terms; /* what it looks up anew may not outlive this arena */
    struct bh_ipa_scan s = {
        .a = c->arena, .incoming = c->pod->shape, .terms = &terms, .args = c->args};
    bh_sym value;

    if (!node->rec)
        return NULL;
    terms.a = c->arena;
    terms.seen = bh_pair_counts(c->arena);
    terms.n_ns = terms.cap_ns = 0;
    bh_ipa_fill_filter(&s, pod->shape);
    const struct bh_kv *labels = bh_rec_at(node->rec, node->rec->labels, struct bh_kv);
    for (uint32_t i = 0; i < s.n; i++)
        if (bh_labels_get(labels, node->rec->labels.n, s.v[i].key, &value))
            bh_pair_view_add(&st->map[s.v[i].map], c->arena, s.v[i].key, value, by * s.v[i].n);
    return NULL;
}

/* ---- Filter ---- */

static bool affinity_holds(const struct state *st, const struct bh_shape_rec *s,
                           const struct bh_node_rec *n)
{
    const struct bh_pod_term *t = bh_rec_at(s, s->affinity, struct bh_pod_term);
    const struct bh_kv *labels = bh_rec_at(n, n->labels, struct bh_kv);
    bool found = true;

    for (uint32_t i = 0; i < s->affinity.n; i++) {
        bh_sym value;
        if (!bh_labels_get(labels, n->labels.n, t[i].topology_key, &value))
            return false;
        found &= bh_pair_view_get(&st->map[BH_IPA_AFFINITY], t[i].topology_key, value) > 0;
    }
    /* No pod in the whole cluster to be near to: the first of a group may begin anywhere. */
    return found || (st->map[BH_IPA_AFFINITY].nonzero == 0 && st->first_of_group);
}

static const struct bh_status *filter(struct bh_call *c, const struct bh_node_info *node)
{
    const struct state *st = c->pre_filter_state;
    const struct bh_shape_rec *s = c->pod->shape;
    const struct bh_node_rec *n = node->rec;
    const struct bh_pod_term *avoid = bh_rec_at(s, s->anti_affinity, struct bh_pod_term);
    const struct bh_kv *labels = bh_rec_at(n, n->labels, struct bh_kv);
    bh_sym value;

    if (!st)
        return &no_state;
    if (!affinity_holds(st, s, n))
        return &bh_ipa_affinity_rules;
    for (uint32_t i = 0; i < s->anti_affinity.n; i++)
        if (bh_labels_get(labels, n->labels.n, avoid[i].topology_key, &value) &&
            bh_pair_view_get(&st->map[BH_IPA_ANTI_AFFINITY], avoid[i].topology_key, value) > 0)
            return &bh_ipa_anti_affinity_rules;
    for (uint32_t i = 0; st->map[BH_IPA_EXISTING].nonzero && i < n->labels.n; i++)
        if (bh_pair_view_get(&st->map[BH_IPA_EXISTING], labels[i].key, labels[i].value) > 0)
            return &bh_ipa_existing_rules;
    return NULL;
}

/* ---- fast path ---- */

/* No terms of its own, and no term of any shape that runs somewhere means this pod. */
static bool idle(struct bh_call *c)
{
    const struct bh_ipa_args *args = c->args;
    const struct bh_shape_rec *own = c->pod->shape;
    struct bh_terms m;

    if (own->flags & BH_SHAPE_USES_POD_AFFINITY)
        return false;
    bh_terms_init(&m, c->tab, c->objects, c->arena);
    for (uint32_t i = 0; c->cache->n_affinity_pods && i < c->cache->n_affinity_shapes; i++) {
        const struct bh_shape_rec *s =
            bh_shapes_rec(&c->cache->shapes, c->cache->affinity_shapes[i]);
        if (bh_any_other_term_matches(&m, s, s->anti_affinity, own))
            return false;
        if (args->ignore_preferred)
            continue;
        if ((args->hard_weight > 0 && bh_any_other_term_matches(&m, s, s->affinity, own)) ||
            bh_any_other_term_matches(&m, s, s->preferred_affinity, own) ||
            bh_any_other_term_matches(&m, s, s->preferred_anti_affinity, own))
            return false;
    }
    return true;
}

/* ---- args ---- */

static void args_check(const struct bh_plugin *self BH_UNUSED, const struct bh_json *args,
                       const char *path, struct bh_field_errors *errs)
{
    int64_t w = bh_json_get_i64(args, "hardPodAffinityWeight", 1);

    if (w < 0 || w > 100)
        bh_field_error(errs,
                       "%s.hardPodAffinityWeight: Invalid value: %lld: not in valid range [0, 100]",
                       path, (long long)w);
}

static int args_new(const struct bh_plugin_env *env, const struct bh_json *args, void **ret,
                    struct bh_err *err BH_UNUSED)
{
    struct bh_ipa_args *a = bh_arena_new(env->arena, struct bh_ipa_args);

    a->hard_weight = bh_json_get_i64(args, "hardPodAffinityWeight", 1);
    a->ignore_preferred = bh_json_get_bool(args, "ignorePreferredTermsOfExistingPods", false);
    *ret = a;
    return 0;
}

static const struct bh_field schema[] = {
    {"hardPodAffinityWeight", BH_FIELD_INT32, NULL, NULL},
    {"ignorePreferredTermsOfExistingPods", BH_FIELD_BOOL, NULL, NULL},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};

const struct bh_plugin bh_plugin_inter_pod_affinity = {
    BH_PLUGIN_HEAD("InterPodAffinity"),
    .args_schema = schema,
    .args_check = args_check,
    .args_new = args_new,
    .events = bh_ipa_events,
    .pre_filter = pre_filter,
    .change_pod = change_pod,
    .clone_state = clone_state,
    .filter = filter,
    .pre_score = bh_ipa_pre_score,
    .score = bh_ipa_score,
    .normalize = bh_ipa_normalize,
    .idle = idle,
    .track = &bh_ipa_track,
};
