/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/compile_pod_terms.c - inter-pod affinity terms and topology spread constraints
 *
 * Upstream gives up a whole list of affinity terms when one of them does not parse; such a list is
 * compiled into that one term, which matches nothing and carries the error.
 * Affinity terms keep nothing of matchLabelKeys and mismatchLabelKeys: the API server folds them
 * into the selector when the pod is created, the scheduler never reads them. Those of spread
 * constraints are the scheduler's business and are folded in here.
 * Upstream: apimachinery/pkg/apis/meta/v1/helpers.go (LabelSelectorAsSelector),
 * pkg/scheduler/framework/types.go, plugins/podtopologyspread/common.go.
 */
#include "common/k8s/compile_priv.h"
#include "common/k8s/syntax.h"

/* ---- label selectors ---- */
enum { N_OPERATORS = BH_REQ_NOT_EXISTS + 1 };

/* The first requirement that does not parse ends it. */
static void selector_why(struct bh_why *w, const K8s__LabelSelector *s)
{
    for (size_t i = 0; i < s->n_matchlabels && !w->n; i++) {
        const char *value = s->matchlabels[i]->value;
        bh_why_requirement(w, "", s->matchlabels[i]->key, BH_REQ_IN, &value, 1);
    }
    for (size_t i = 0; i < s->n_matchexpressions && !w->n; i++) {
        const K8s__LabelSelectorRequirement *r = s->matchexpressions[i];
        int op = bh_req_op_of(r->operator_, N_OPERATORS);
        if (op >= 0) {
            bh_why_requirement(w, "", r->key, (enum bh_req_op)op, (const char *const *)r->values,
                               r->n_values);
        } else {
            w->n++;
            bh_buf_add_json_str(&w->text, r->operator_, strnlen(r->operator_, 256));
            bh_buf_adds(&w->text, " is not a valid label selector operator");
        }
    }
}

bool bh_label_selector_parses(const K8s__LabelSelector *s)
{
    struct bh_why w = {0};

    selector_why(&w, s);
    bh_buf_fini(&w.text);
    return !w.n;
}

/* Everything but the requirements. */
static struct bh_label_selector selector_head(struct bh_compiler *c, const K8s__LabelSelector *s)
{
    struct bh_label_selector out = {.flags = s ? 0 : BH_SELECTOR_NIL};
    struct bh_why w = {0};

    if (s)
        selector_why(&w, s);
    bh_why_finish(&w);
    if (w.n)
        out.flags = BH_SELECTOR_INVALID;
    out.error = bh_compile_sym(c, bh_buf_str(&w.text));
    bh_buf_fini(&w.text);
    return out;
}

static void put_requirement(struct bh_compiler *c, struct bh_slice list, size_t at, const char *key,
                            int op, char *const *values, size_t n)
{
    struct bh_slice s = bh_compile_syms(c, values, n);

    if (c->b.failed)
        return;
    ((struct bh_requirement *)(c->b.p + list.off))[at] =
        (struct bh_requirement){.key = bh_compile_sym(c, key), .op = (uint32_t)op, .values = s};
}

/* Equalities first, then the selector. */
static struct bh_slice put_requirements(struct bh_compiler *c, K8s__StringEntry *const *equal,
                                        size_t n_equal, const K8s__LabelSelector *s)
{
    struct bh_slice list;
    size_t at = 0;

    bh_rec_room(&c->b, n_equal + s->n_matchlabels + s->n_matchexpressions,
                sizeof(struct bh_requirement), &list);
    for (size_t i = 0; i < n_equal; i++)
        put_requirement(c, list, at++, equal[i]->key, BH_REQ_IN, &equal[i]->value, 1);
    for (size_t i = 0; i < s->n_matchlabels; i++)
        put_requirement(c, list, at++, s->matchlabels[i]->key, BH_REQ_IN, &s->matchlabels[i]->value,
                        1);
    for (size_t i = 0; i < s->n_matchexpressions; i++) {
        const K8s__LabelSelectorRequirement *r = s->matchexpressions[i];
        put_requirement(c, list, at++, r->key, bh_req_op_of(r->operator_, N_OPERATORS), r->values,
                        r->n_values);
    }
    return list;
}

static struct bh_label_selector put_selector(struct bh_compiler *c, const K8s__LabelSelector *s,
                                             K8s__StringEntry *const *equal, size_t n_equal)
{
    struct bh_label_selector out = selector_head(c, s);

    if (!out.flags)
        out.requirements = put_requirements(c, equal, n_equal, s);
    return out;
}

/* ---- inter-pod affinity ---- */
struct term { /* a term with its weight, whichever list it is from */
    const K8s__PodAffinityTerm *t;
    int32_t weight;
};

static struct bh_slice put_namespaces(struct bh_compiler *c, const K8s__PodAffinityTerm *t,
                                      const char *own)
{
    if (t->n_namespaces || t->namespaceselector)
        return bh_compile_syms(c, t->namespaces, t->n_namespaces);
    bh_sym ns = bh_compile_sym(c, own);
    return bh_rec_put(&c->b, &ns, 1, sizeof(ns));
}

static bool parses(struct bh_compiler *c, const K8s__PodAffinityTerm *t)
{
    return !(
        (selector_head(c, t->labelselector).flags | selector_head(c, t->namespaceselector).flags) &
        BH_SELECTOR_INVALID);
}

static struct bh_slice put_terms(struct bh_compiler *c, const struct term *list, size_t n,
                                 const char *ns)
{
    struct bh_slice s;
    const struct term *bad = NULL;

    for (size_t i = 0; i < n && !bad; i++)
        bad = parses(c, list[i].t) ? NULL : &list[i];
    if (bad) {
        list = bad;
        n = 1;
    }
    bh_rec_room(&c->b, n, sizeof(struct bh_pod_term), &s);
    for (size_t i = 0; i < s.n; i++) {
        struct bh_pod_term v = {.weight = list[i].weight,
                                .topology_key = bh_compile_sym(c, list[i].t->topologykey)};
        v.selector = put_selector(c, list[i].t->labelselector, NULL, 0);
        v.namespace_selector = put_selector(c, list[i].t->namespaceselector, NULL, 0);
        v.namespaces = put_namespaces(c, list[i].t, ns);
        if (!c->b.failed)
            ((struct bh_pod_term *)(c->b.p + s.off))[i] = v;
    }
    return s;
}

static struct bh_slice put_required(struct bh_compiler *c, K8s__PodAffinityTerm *const *list,
                                    size_t n, const char *ns)
{
    struct term *v = bh_arena_new_array(c->a, struct term, n + 1);

    c->b.failed |= !v;
    for (size_t i = 0; v && i < n; i++)
        v[i].t = list[i];
    return v ? put_terms(c, v, n, ns) : (struct bh_slice){0, 0};
}

static struct bh_slice put_preferred(struct bh_compiler *c,
                                     K8s__WeightedPodAffinityTerm *const *list, size_t n,
                                     const char *ns)
{
    static const K8s__PodAffinityTerm nothing = K8S__POD_AFFINITY_TERM__INIT;
    struct term *v = bh_arena_new_array(c->a, struct term, n + 1);

    c->b.failed |= !v;
    for (size_t i = 0; v && i < n; i++)
        v[i] = (struct term){list[i]->podaffinityterm ? list[i]->podaffinityterm : &nothing,
                             list[i]->weight};
    return v ? put_terms(c, v, n, ns) : (struct bh_slice){0, 0};
}

/* ---- topology spread ---- */
struct label {
    K8s__StringEntry *entry;
    size_t order;
};

static int by_key(const void *pa, const void *pb)
{
    const struct label *a = pa, *b = pb;
    int c = strcmp(a->entry->key, b->entry->key);

    return c ? c : a->order < b->order ? -1 : 1;
}

/* Sorted, because how many labels and keys there are is the sender's choice. NULL: no memory. */
static struct label *sorted_labels(struct bh_compiler *c, const K8s__ObjectMeta *m)
{
    struct label *v = bh_arena_new_array(c->a, struct label, m->n_labels + 1);

    for (size_t i = 0; v && i < m->n_labels; i++)
        v[i] = (struct label){m->labels[i], i};
    if (v && m->n_labels > 1)
        qsort(v, m->n_labels, sizeof(*v), by_key);
    return v;
}

/* The pod's labels that matchLabelKeys names; of duplicates on the wire the last. */
static size_t matched_labels(const K8s__TopologySpreadConstraint *t, const struct label *labels,
                             size_t n_labels, K8s__StringEntry **out)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n_matchlabelkeys; i++) {
        size_t lo = 0, hi = n_labels;
        while (lo < hi) {
            size_t mid = lo + (hi - lo) / 2;
            if (strcmp(labels[mid].entry->key, t->matchlabelkeys[i]) <= 0)
                lo = mid + 1;
            else
                hi = mid;
        }
        if (lo && bh_streq(labels[lo - 1].entry->key, t->matchlabelkeys[i]))
            out[n++] = labels[lo - 1].entry;
    }
    return n;
}

static uint32_t spread_flags(const K8s__TopologySpreadConstraint *t)
{
    uint32_t f = bh_streq(t->whenunsatisfiable, "DoNotSchedule")    ? BH_SPREAD_HARD
                 : bh_streq(t->whenunsatisfiable, "ScheduleAnyway") ? BH_SPREAD_SOFT
                                                                    : 0;

    if (!t->nodeaffinitypolicy || bh_streq(t->nodeaffinitypolicy, "Honor"))
        f |= BH_SPREAD_HONOR_AFFINITY;
    if (t->nodetaintspolicy && bh_streq(t->nodetaintspolicy, "Honor"))
        f |= BH_SPREAD_HONOR_TAINTS;
    return f;
}

void bh_compile_pod_terms(struct bh_compiler *c, const K8s__Pod *p)
{
    struct bh_shape_rec out = {.flags = 0};

    const K8s__Affinity *a = p->spec->affinity;
    const char *ns = p->metadata->namespace_;
    const K8s__PodAffinity *in = a ? a->podaffinity : NULL;
    const K8s__PodAntiAffinity *anti = a ? a->podantiaffinity : NULL;
    if (in)
        out.affinity = put_required(c, in->requiredduringschedulingignoredduringexecution,
                                    in->n_requiredduringschedulingignoredduringexecution, ns);
    if (anti)
        out.anti_affinity =
            put_required(c, anti->requiredduringschedulingignoredduringexecution,
                         anti->n_requiredduringschedulingignoredduringexecution, ns);
    if (in)
        out.preferred_affinity =
            put_preferred(c, in->preferredduringschedulingignoredduringexecution,
                          in->n_preferredduringschedulingignoredduringexecution, ns);
    if (anti)
        out.preferred_anti_affinity =
            put_preferred(c, anti->preferredduringschedulingignoredduringexecution,
                          anti->n_preferredduringschedulingignoredduringexecution, ns);
    const K8s__PodSpec *spec = p->spec;
    struct label *labels = NULL;
    struct bh_slice s;
    bh_rec_room(&c->b, spec->n_topologyspreadconstraints, sizeof(struct bh_spread), &s);
    for (size_t i = 0; i < s.n; i++) {
        const K8s__TopologySpreadConstraint *t = spec->topologyspreadconstraints[i];
        K8s__StringEntry **equal =
            bh_arena_new_array(c->a, K8s__StringEntry *, t->n_matchlabelkeys + 1);
        struct bh_spread v = {.max_skew = t->maxskew,
                              .min_domains = t->has_mindomains ? t->mindomains : 1,
                              .topology_key = bh_compile_sym(c, t->topologykey),
                              .flags = spread_flags(t)};
        if (t->n_matchlabelkeys && !labels)
            labels = sorted_labels(c, p->metadata);
        c->b.failed |= !equal || (t->n_matchlabelkeys && !labels);
        if (!c->b.failed)
            v.selector = put_selector(c, t->labelselector, equal,
                                      matched_labels(t, labels, p->metadata->n_labels, equal));
        if (!c->b.failed)
            ((struct bh_spread *)(c->b.p + s.off))[i] = v;
    }
    out.spread = s;
    if (c->b.failed)
        return; /* bh_compile_end reports it */
    struct bh_shape_rec *r = bh_shape_of(c);
    r->affinity = out.affinity;
    r->anti_affinity = out.anti_affinity;
    r->preferred_affinity = out.preferred_affinity;
    r->preferred_anti_affinity = out.preferred_anti_affinity;
    r->spread = out.spread;
}
