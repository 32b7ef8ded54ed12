/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/selectors.c - label selectors, node selectors and affinity terms
 *
 * Upstream: apimachinery/pkg/apis/meta/v1/validation/validation.go,
 * pkg/apis/core/validation/validation.go (v1.36); differences: values of node selector expressions
 * are not checked against label syntax.
 */
#include "simulator/admission/admission.h"

#define REQUIRED  "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"

static bool op_is(const struct bh_json *e, const char *a, const char *b)
{
    return bh_tree_is(e, "operator", a) || bh_tree_is(e, "operator", b);
}

/* What label and node selectors have in common: how many values an operator takes, and the key. */
static void expression(struct bh_sim_write *w, const char *at, const struct bh_json *e,
                       bool of_node)
{
    size_t n = bh_tree_len(bh_tree_arr(e, "values"));

    if (op_is(e, "In", "NotIn")) {
        if (!n)
            bh_adm_required(w, at, "values",
                            "must be specified when `operator` is 'In' or 'NotIn'");
    } else if (op_is(e, "Exists", "DoesNotExist")) {
        if (n)
            bh_adm_forbidden(w, at, "values",
                             "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    } else if (of_node && op_is(e, "Gt", "Lt")) {
        if (n != 1)
            bh_adm_required(w, at, "values",
                            "must be specified single value when `operator` is 'Lt' or 'Gt'");
    } else {
        bh_adm_invalid(w, at, e, "operator", "not a valid selector operator");
    }
    bh_adm_label_key(w, bh_adm_member(w, at, "key"), bh_tree_str(e, "key"));
}

static void label_requirement(struct bh_sim_write *w, const char *at, const struct bh_json *e)
{
    expression(w, at, e, false);
    bh_adm_each(w, at, e, "values", bh_adm_label_value);
}

void bh_adm_label_selector(struct bh_sim_write *w, const char *at, const struct bh_json *holder,
                           const char *member)
{
    const struct bh_json *sel = bh_tree_obj(holder, member);

    if (!sel)
        return;
    at = bh_adm_member(w, at, member);
    bh_adm_label_map(w, bh_adm_member(w, at, "matchLabels"), bh_tree_obj(sel, "matchLabels"));
    bh_adm_each(w, at, sel, "matchExpressions", label_requirement);
}

static void node_expression(struct bh_sim_write *w, const char *at, const struct bh_json *e)
{
    expression(w, at, e, true);
}

static void node_field(struct bh_sim_write *w, const char *at, const struct bh_json *e)
{
    size_t n = bh_tree_len(bh_tree_arr(e, "values"));

    if (!op_is(e, "In", "NotIn"))
        bh_adm_invalid(w, at, e, "operator", "not a valid selector operator");
    else if (n != 1)
        bh_adm_required(w, at, "values",
                        "must be only one value when `operator` is 'In' or 'NotIn' for node field "
                        "selector");
    if (!bh_tree_is(e, "key", "metadata.name"))
        bh_adm_invalid(w, at, e, "key", "not a valid field selector key");
}

static void node_term(struct bh_sim_write *w, const char *at, const struct bh_json *term)
{
    bh_adm_each(w, at, term, "matchExpressions", node_expression);
    bh_adm_each(w, at, term, "matchFields", node_field);
}

void bh_adm_node_selector(struct bh_sim_write *w, const char *at, const struct bh_json *holder,
                          const char *member)
{
    const struct bh_json *sel = bh_tree_obj(holder, member);

    if (!sel)
        return;
    at = bh_adm_member(w, at, member);
    if (!bh_tree_len(bh_tree_arr(sel, "nodeSelectorTerms")))
        bh_adm_required(w, at, "nodeSelectorTerms", "must have at least one node selector term");
    bh_adm_each(w, at, sel, "nodeSelectorTerms", node_term);
}

static void weight(struct bh_sim_write *w, const char *at, const struct bh_json *term)
{
    int64_t n = bh_tree_i64(term, "weight", 0);

    if (n < 1 || n > 100)
        bh_sim_field_error(w->error, bh_adm_member(w, at, "weight"), "Invalid value",
                           bh_adm_path(w, "%lld", (long long)n), "must be in the range 1-100");
}

static void node_preference(struct bh_sim_write *w, const char *at, const struct bh_json *p)
{
    weight(w, at, p);
    node_term(w, bh_adm_member(w, at, "preference"), bh_tree_obj(p, "preference"));
}

static void pod_term(struct bh_sim_write *w, const char *at, const struct bh_json *term)
{
    bh_adm_label_selector(w, at, term, "labelSelector");
    bh_adm_label_selector(w, at, term, "namespaceSelector");
    bh_adm_topology_key(w, at, term);
}

static void pod_preference(struct bh_sim_write *w, const char *at, const struct bh_json *p)
{
    weight(w, at, p);
    pod_term(w, bh_adm_member(w, at, "podAffinityTerm"), bh_tree_obj(p, "podAffinityTerm"));
}

static void pod_affinity(struct bh_sim_write *w, const char *at, const struct bh_json *affinity,
                         const char *member)
{
    const struct bh_json *pa = bh_tree_obj(affinity, member);

    at = bh_adm_member(w, at, member);
    bh_adm_each(w, at, pa, REQUIRED, pod_term);
    bh_adm_each(w, at, pa, PREFERRED, pod_preference);
}

void bh_adm_affinity(struct bh_sim_write *w, const char *at, const struct bh_json *affinity)
{
    const char *node = bh_adm_member(w, at, "nodeAffinity");

    if (!affinity)
        return;
    bh_adm_node_selector(w, node, bh_tree_obj(affinity, "nodeAffinity"), REQUIRED);
    bh_adm_each(w, node, bh_tree_obj(affinity, "nodeAffinity"), PREFERRED, node_preference);
    pod_affinity(w, at, affinity, "podAffinity");
    pod_affinity(w, at, affinity, "podAntiAffinity");
}
