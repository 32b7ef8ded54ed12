/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/volumebinding/terms.c - conditions on labels, compiled once and asked per node
 */
#include "common/k8s/codec.h"
#include "common/k8s/compile.h"
#include "common/k8s/selector.h"
#include "scheduler/plugins/volumebinding/terms.h"

static struct bh_terms compile(struct bh_arena *a, struct bh_symtab *tab, K8s__NodeSelector *sel)
{
    K8s__NodeAffinity na = K8S__NODE_AFFINITY__INIT;
    struct bh_interner in = bh_symtab_interner(tab);
    struct bh_shape_rec *rec;

    na.requiredduringschedulingignoredduringexecution = sel;
    if (bh_compile_node_affinity(a, &na, &in, &rec, NULL) < 0)
        return (struct bh_terms){.kind = BH_TERMS_NONE}; /* absurdly large */
    return (struct bh_terms){.kind = BH_TERMS_SOME, .rec = rec};
}

struct bh_terms bh_terms_of_affinity(struct bh_arena *a, struct bh_symtab *tab,
                                     const K8s__VolumeNodeAffinity *na)
{
    if (!na || !na->required)
        return (struct bh_terms){.kind = BH_TERMS_ALL};
    return compile(a, tab, na->required);
}

static void add_expression(struct bh_arena *a, K8s__NodeSelectorTerm *t, const char *key,
                           const char *op, char **values, size_t n)
{
    K8s__NodeSelectorRequirement *r = bh_pb_new(a, &k8s__node_selector_requirement__descriptor);

    r->key = (char *)(uintptr_t)key; /* only read */
    r->operator_ = (char *)(uintptr_t)op;
    r->values = values;
    r->n_values = n;
    t->matchexpressions[t->n_matchexpressions++] = r;
}

/* A term with room for n expressions. */
static K8s__NodeSelectorTerm *new_term(struct bh_arena *a, size_t n)
{
    K8s__NodeSelectorTerm *t = bh_pb_new(a, &k8s__node_selector_term__descriptor);

    t->matchexpressions = bh_arena_new_array(a, K8s__NodeSelectorRequirement *, n + 1);
    return t;
}

struct bh_terms bh_terms_of_topologies(struct bh_arena *a, struct bh_symtab *tab,
                                       K8s__TopologySelectorTerm *const *terms, size_t n)
{
    K8s__NodeSelector sel = K8S__NODE_SELECTOR__INIT;

    if (!n)
        return (struct bh_terms){.kind = BH_TERMS_ALL};
    sel.nodeselectorterms = bh_arena_new_array(a, K8s__NodeSelectorTerm *, n);
    for (size_t i = 0; i < n; i++) {
        const K8s__TopologySelectorTerm *from = terms[i];
        K8s__NodeSelectorTerm *t = new_term(a, from->n_matchlabelexpressions);
        for (size_t k = 0; k < from->n_matchlabelexpressions; k++) {
            const K8s__TopologySelectorLabelRequirement *r = from->matchlabelexpressions[k];
            add_expression(a, t, r->key, "In", r->values, r->n_values);
        }
        sel.nodeselectorterms[sel.n_nodeselectorterms++] = t;
    }
    return compile(a, tab, &sel);
}

struct bh_terms bh_terms_of_selector(struct bh_arena *a, struct bh_symtab *tab,
                                     const K8s__LabelSelector *s, const char **ret_error)
{
    K8s__NodeSelector sel = K8S__NODE_SELECTOR__INIT;
    struct bh_selector *parsed = NULL;
    struct bh_err err = {{0}};

    *ret_error = NULL; /* said by the selector parser */
    if (s && bh_selector_from_json(bh_pb_to_json(a, &s->base), &parsed, &err) < 0)
        *ret_error = bh_arena_strdup(a, err.msg);
    if (!s || *ret_error)
        return (struct bh_terms){.kind = BH_TERMS_NONE};
    bh_selector_free(parsed);
    if (s->n_matchlabels + s->n_matchexpressions == 0)
        return (struct bh_terms){.kind = BH_TERMS_ALL};
    K8s__NodeSelectorTerm *t = new_term(a, s->n_matchlabels + s->n_matchexpressions);
    for (size_t i = 0; i < s->n_matchlabels; i++)
        add_expression(a, t, s->matchlabels[i]->key, "In", &s->matchlabels[i]->value, 1);
    for (size_t i = 0; i < s->n_matchexpressions; i++) {
        const K8s__LabelSelectorRequirement *r = s->matchexpressions[i];
        add_expression(a, t, r->key, r->operator_, r->values, r->n_values);
    }
    sel.nodeselectorterms = &t;
    sel.n_nodeselectorterms = 1;
    return compile(a, tab, &sel);
}

/* Fields are left out: upstream asks a node that has labels but no name. */

bool bh_terms_match(const struct bh_terms *t, const struct bh_symtab *tab,
                    const struct bh_kv *labels, uint32_t n)
{
    if (t->kind != BH_TERMS_SOME)
        return t->kind == BH_TERMS_ALL;
    const struct bh_node_term *term =
        bh_rec_at(t->rec, t->rec->required_terms, struct bh_node_term);
    bool match = false;
    for (uint32_t i = 0; i < t->rec->required_terms.n && !match; i++) {
        const struct bh_slice *s = &term[i].expressions;
        const struct bh_requirement *r = bh_rec_at(t->rec, *s, struct bh_requirement);
        match = !(term[i].flags & (BH_TERM_EMPTY | BH_TERM_INVALID));
        for (uint32_t k = 0; k < s->n && match; k++)
            match = bh_requirement_match(t->rec, &r[k], labels, n, tab);
    }
    return match;
}
