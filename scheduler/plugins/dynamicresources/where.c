/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/where.c - which nodes a slice, a device or an allocation is
 * for
 *
 * Upstream: k8s.io/dynamic-resource-allocation/structured/internal/incubating (NodeMatches),
 *           k8s.io/component-helpers/scheduling/corev1/nodeaffinity (NewNodeSelector).
 */
#include "common/k8s/compile.h"
#include "scheduler/plugins/dynamicresources/devices.h"

/* The texts of all terms that do not parse, as upstream's aggregate; each may be a list itself. */
static const char *errors_of(struct bh_arena *a, const struct bh_symtab *tab,
                             const struct bh_shape_rec *rec)
{
    const struct bh_node_term *t = bh_rec_at(rec, rec->required_terms, struct bh_node_term);
    const char *all = NULL;
    bool several = false;

    for (uint32_t i = 0; i < rec->required_terms.n; i++) {
        if (!(t[i].flags & BH_TERM_INVALID))
            continue;
        const char *text = bh_sym_text(tab, t[i].error);
        size_t n = strlen(text);
        bool is_list = n > 1 && text[0] == '[' && text[n - 1] == ']';
        several |= is_list || all;
        text = is_list ? bh_arena_strndup(a, text + 1, n - 2) : text;
        all = all ? bh_arena_printf(a, "%s, %s", all, text) : text;
    }
    return several ? bh_arena_printf(a, "[%s]", all) : all;
}

struct bh_dra_where bh_dra_where_of(struct bh_arena *a, struct bh_symtab *tab, const char *node,
                                    bool all, const K8s__NodeSelector *selector)
{
    struct bh_dra_where w = {.kind = BH_DRA_ON_SELECTED};
    struct bh_interner in = bh_symtab_interner(tab);
    K8s__NodeAffinity na = K8S__NODE_AFFINITY__INIT;
    struct bh_shape_rec *rec;

    if (node && *node)
        return (struct bh_dra_where){.kind = BH_DRA_ON_NODE, .node = bh_sym_internc(tab, node)};
    if (all || !selector)
        return (struct bh_dra_where){.kind = all ? BH_DRA_ON_ALL : BH_DRA_NOWHERE};
    na.requiredduringschedulingignoredduringexecution =
        (K8s__NodeSelector *)(uintptr_t)selector; /* only read */
    if (bh_compile_node_affinity(a, &na, &in, &rec, NULL) < 0) {
        w.error = "too large";
        return w;
    }
    w.selector = rec;
    w.error = errors_of(a, tab, rec);
    return w;
}

bool bh_dra_matches_node(const struct bh_dra *d, const struct bh_dra_where *w,
                         const struct bh_node_rec *node)
{
    if (w->kind == BH_DRA_ON_NODE)
        return w->node == node->name;
    if (w->kind != BH_DRA_ON_SELECTED || !w->selector)
        return w->kind == BH_DRA_ON_ALL;
    return bh_any_node_term_match(w->selector, w->selector->required_terms, node, d->tab,
                                  d->metadata_name);
}

/* ---- errors: upstream prints the selector with its Go type's String ---- */

static void add_requirements(struct bh_buf *b, const char *field,
                             K8s__NodeSelectorRequirement *const *v, size_t n)
{
    bh_buf_addf(b, "%s:[]NodeSelectorRequirement{", field);
    for (size_t i = 0; i < n; i++) {
        bh_buf_addf(b, "NodeSelectorRequirement{Key:%s,Operator:%s,Values:[", v[i]->key,
                    v[i]->operator_);
        for (size_t k = 0; k < v[i]->n_values; k++)
            bh_buf_addf(b, "%s%s", k ? " " : "", v[i]->values[k]);
        bh_buf_adds(b, "],},");
    }
    bh_buf_adds(b, "},");
}

const char *bh_dra_where_error(struct bh_arena *a, const struct bh_dra_where *w,
                               const K8s__NodeSelector *selector)
{
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};

    bh_buf_adds(&b, "failed to parse node selector &NodeSelector{NodeSelectorTerms:"
                    "[]NodeSelectorTerm{");
    for (size_t i = 0; selector && i < selector->n_nodeselectorterms; i++) {
        const K8s__NodeSelectorTerm *t = selector->nodeselectorterms[i];
        bh_buf_adds(&b, "NodeSelectorTerm{");
        add_requirements(&b, "MatchExpressions", t->matchexpressions, t->n_matchexpressions);
        add_requirements(&b, "MatchFields", t->matchfields, t->n_matchfields);
        bh_buf_adds(&b, "},");
    }
    bh_buf_addf(&b, "},}: %s", w->error);
    return bh_arena_strdup(a, bh_buf_str(&b));
}
