/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/interpodaffinity/terms.c - does an affinity term mean a pod?
 */
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/plugins/interpodaffinity/terms.h"

/* A label value that no selector can name. */
#define SYM_UNHEARD_OF ((bh_sym)UINT32_MAX)

void bh_terms_init(struct bh_terms *m, const struct bh_symtab *tab,
                   const struct bh_objects *objects, struct bh_arena *a)
{
    *m = (struct bh_terms){.tab = tab, .objects = objects, .a = a, .seen = bh_pair_counts(a)};
}

static bh_sym find_symbol(const struct bh_terms *m, const char *s)
{
    bh_sym v = bh_sym_find(m->tab, s, strlen(s));
    return v == BH_SYM_NONE && *s ? SYM_UNHEARD_OF : v;
}

static struct bh_ns_labels labels_of(struct bh_terms *m, bh_sym namespace_)
{
    const int64_t *at = bh_pair_counts_find(&m->seen, namespace_, BH_SYM_NONE);

    if (at)
        return m->ns[*at];
    const K8s__Namespace *ns = (const K8s__Namespace *)(const void *)bh_objects_get(
        m->objects, BH_KIND_NAMESPACE, "", bh_sym_text(m->tab, namespace_));
    size_t n = ns && ns->metadata ? ns->metadata->n_labels : 0;
    struct bh_kv *kv = bh_arena_new_array(m->a, struct bh_kv, n ? n : 1);
    for (size_t i = 0; i < n; i++)
        kv[i] = (struct bh_kv){find_symbol(m, ns->metadata->labels[i]->key),
                               find_symbol(m, ns->metadata->labels[i]->value)};
    BH_ARENA_GROW(m->a, m->ns, m->n_ns, m->cap_ns);
    m->ns[m->n_ns] = (struct bh_ns_labels){.known = ns != NULL, .labels = kv, .n = (uint32_t)n};
    bh_pair_counts_add(&m->seen, namespace_, BH_SYM_NONE, m->n_ns);
    return m->ns[m->n_ns++];
}

static bool listed(const struct bh_shape_rec *s, const struct bh_pod_term *t, bh_sym namespace_)
{
    const bh_sym *v = bh_rec_at(s, t->namespaces, bh_sym);

    for (uint32_t i = 0; i < t->namespaces.n; i++)
        if (v[i] == namespace_)
            return true;
    return false;
}

static bool labels_match(const struct bh_terms *m, const struct bh_shape_rec *s,
                         const struct bh_pod_term *t, const struct bh_shape_rec *pod)
{
    return bh_selector_matches(s, &t->selector, bh_rec_at(pod, pod->labels, struct bh_kv),
                               pod->labels.n, m->tab);
}

bool bh_own_term_matches(struct bh_terms *m, const struct bh_shape_rec *own,
                         const struct bh_pod_term *t, const struct bh_shape_rec *pod)
{
    const struct bh_label_selector *sel = &t->namespace_selector;

    if (!labels_match(m, own, t, pod))
        return false;
    if (listed(own, t, pod->namespace_) || bh_selector_matches(own, sel, NULL, 0, m->tab))
        return true;
    if (sel->flags)
        return false;
    struct bh_ns_labels l = labels_of(m, pod->namespace_);
    return l.known && bh_selector_matches(own, sel, l.labels, l.n, m->tab);
}

bool bh_own_terms_match(struct bh_terms *m, const struct bh_shape_rec *own, struct bh_slice list,
                        const struct bh_shape_rec *pod)
{
    const struct bh_pod_term *t = bh_rec_at(own, list, struct bh_pod_term);

    for (uint32_t i = 0; i < list.n; i++)
        if (!bh_own_term_matches(m, own, &t[i], pod))
            return false;
    return list.n > 0;
}

bool bh_other_term_matches(struct bh_terms *m, const struct bh_shape_rec *other,
                           const struct bh_pod_term *t, const struct bh_shape_rec *incoming)
{
    if (!labels_match(m, other, t, incoming))
        return false;
    if (listed(other, t, incoming->namespace_))
        return true;
    if (t->namespace_selector.flags)
        return false;
    struct bh_ns_labels l = labels_of(m, incoming->namespace_);
    return bh_selector_matches(other, &t->namespace_selector, l.labels, l.n, m->tab);
}

bool bh_any_other_term_matches(struct bh_terms *m, const struct bh_shape_rec *other,
                               struct bh_slice list, const struct bh_shape_rec *incoming)
{
    const struct bh_pod_term *t = bh_rec_at(other, list, struct bh_pod_term);

    for (uint32_t i = 0; i < list.n; i++)
        if (bh_other_term_matches(m, other, &t[i], incoming))
            return true;
    return false;
}
