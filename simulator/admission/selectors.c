/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/selectors.c - label selectors, node selectors and affinity terms
 *
 * Upstream: apimachinery/pkg/apis/meta/v1/validation/validation.go,
 * pkg/apis/core/validation/validation.go (v1.36); differences: values of node selector expressions
 * are not checked against label syntax.
 */
#include "simulator/admission/admission.h"

static bool op_is(const struct bh_json *e, const char *a, const char *b)
{
    return bh_tree_is(e, "operator", a) || bh_tree_is(e, "operator", b);
}

static void label_requirement(struct bh_sim_write *w, const char *field, const struct bh_json *e)
{
    const struct bh_json *values = bh_tree_arr(e, "values");
    size_t i = 0;

    if (op_is(e, "In", "NotIn")) {
        if (!bh_tree_len(values))
            bh_adm_required(w, bh_adm_path(w, "%s.values", field),
                            "must be specified when `operator` is 'In' or 'NotIn'");
    } else if (op_is(e, "Exists", "DoesNotExist")) {
        if (bh_tree_len(values))
            bh_adm_forbidden(w, bh_adm_path(w, "%s.values", field),
                             "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    } else {
        bh_adm_invalid(w, bh_adm_path(w, "%s.operator", field), bh_json_get(e, "operator"),
                       "not a valid selector operator");
    }
    bh_adm_label_key(w, bh_adm_path(w, "%s.key", field), bh_tree_str(e, "key"));
    bh_json_each(v, values)
        bh_adm_label_value(w, bh_adm_path(w, "%s.values[%zu]", field, i++), v);
}

void bh_adm_label_selector(struct bh_sim_write *w, const char *field, const struct bh_json *sel)
{
    size_t i = 0;

    if (!sel)
        return;
    bh_adm_label_map(w, bh_adm_path(w, "%s.matchLabels", field), bh_tree_obj(sel, "matchLabels"));
    bh_json_each(e, bh_tree_arr(sel, "matchExpressions"))
        label_requirement(w, bh_adm_path(w, "%s.matchExpressions[%zu]", field, i++), e);
}

static void node_expression(struct bh_sim_write *w, const char *field, const struct bh_json *e)
{
    size_t n = bh_tree_len(bh_tree_arr(e, "values"));
    const char *values = bh_adm_path(w, "%s.values", field);

    if (op_is(e, "In", "NotIn")) {
        if (!n)
            bh_adm_required(w, values, "must be specified when `operator` is 'In' or 'NotIn'");
    } else if (op_is(e, "Exists", "DoesNotExist")) {
        if (n)
            bh_adm_forbidden(w, values,
                             "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    } else if (op_is(e, "Gt", "Lt")) {
        if (n != 1)
            bh_adm_required(w, values,
                            "must be specified single value when `operator` is 'Lt' or 'Gt'");
    } else {
        bh_adm_invalid(w, bh_adm_path(w, "%s.operator", field), bh_json_get(e, "operator"),
                       "not a valid selector operator");
    }
    bh_adm_label_key(w, bh_adm_path(w, "%s.key", field), bh_tree_str(e, "key"));
}

static void node_field(struct bh_sim_write *w, const char *field, const struct bh_json *e)
{
    size_t n = bh_tree_len(bh_tree_arr(e, "values"));

    if (!op_is(e, "In", "NotIn"))
        bh_adm_invalid(w, bh_adm_path(w, "%s.operator", field), bh_json_get(e, "operator"),
                       "not a valid selector operator");
    else if (n != 1)
        bh_adm_required(w, bh_adm_path(w, "%s.values", field),
                        "must be only one value when `operator` is 'In' or 'NotIn' for node field "
                        "selector");
    if (!bh_tree_is(e, "key", "metadata.name"))
        bh_adm_invalid(w, bh_adm_path(w, "%s.key", field), bh_json_get(e, "key"),
                       "not a valid field selector key");
}

static void node_term(struct bh_sim_write *w, const char *field, const struct bh_json *term)
{
    size_t i = 0;

    bh_json_each(e, bh_tree_arr(term, "matchExpressions"))
        node_expression(w, bh_adm_path(w, "%s.matchExpressions[%zu]", field, i++), e);
    i = 0;
    bh_json_each(e, bh_tree_arr(term, "matchFields"))
        node_field(w, bh_adm_path(w, "%s.matchFields[%zu]", field, i++), e);
}

void bh_adm_node_selector(struct bh_sim_write *w, const char *field, const struct bh_json *sel)
{
    const struct bh_json *terms = bh_tree_arr(sel, "nodeSelectorTerms");
    size_t i = 0;

    if (!sel)
        return;
    if (!bh_tree_len(terms))
        bh_adm_required(w, bh_adm_path(w, "%s.nodeSelectorTerms", field),
                        "must have at least one node selector term");
    bh_json_each(t, terms)
        node_term(w, bh_adm_path(w, "%s.nodeSelectorTerms[%zu]", field, i++), t);
}

static void weight(struct bh_sim_write *w, const char *field, const struct bh_json *term)
{
    int64_t n = bh_tree_i64(term, "weight", 0);

    if (n < 1 || n > 100)
        bh_sim_field_error(w->error, bh_adm_path(w, "%s.weight", field), "Invalid value",
                           bh_adm_path(w, "%lld", (long long)n), "must be in the range 1-100");
}

static void node_affinity(struct bh_sim_write *w, const char *field, const struct bh_json *na)
{
    size_t i = 0;

    if (!na)
        return;
    bh_adm_node_selector(w,
                         bh_adm_path(w, "%s.requiredDuringSchedulingIgnoredDuringExecution", field),
                         bh_tree_obj(na, "requiredDuringSchedulingIgnoredDuringExecution"));
    bh_json_each(p, bh_tree_arr(na, "preferredDuringSchedulingIgnoredDuringExecution")) {
        const char *f =
            bh_adm_path(w, "%s.preferredDuringSchedulingIgnoredDuringExecution[%zu]", field, i++);
        weight(w, f, p);
        node_term(w, bh_adm_path(w, "%s.preference", f), bh_tree_obj(p, "preference"));
    }
}

static void pod_term(struct bh_sim_write *w, const char *field, const struct bh_json *term)
{
    const char *key = bh_tree_str(term, "topologyKey");

    bh_adm_label_selector(w, bh_adm_path(w, "%s.labelSelector", field),
                          bh_tree_obj(term, "labelSelector"));
    bh_adm_label_selector(w, bh_adm_path(w, "%s.namespaceSelector", field),
                          bh_tree_obj(term, "namespaceSelector"));
    if (!key || !*key)
        bh_adm_required(w, bh_adm_path(w, "%s.topologyKey", field), "can not be empty");
    else
        bh_adm_label_key(w, bh_adm_path(w, "%s.topologyKey", field), key);
}

static void pod_affinity(struct bh_sim_write *w, const char *field, const struct bh_json *pa)
{
    size_t i = 0;

    bh_json_each(t, bh_tree_arr(pa, "requiredDuringSchedulingIgnoredDuringExecution"))
        pod_term(
            w, bh_adm_path(w, "%s.requiredDuringSchedulingIgnoredDuringExecution[%zu]", field, i++),
            t);
    i = 0;
    bh_json_each(p, bh_tree_arr(pa, "preferredDuringSchedulingIgnoredDuringExecution")) {
        const char *f =
            bh_adm_path(w, "%s.preferredDuringSchedulingIgnoredDuringExecution[%zu]", field, i++);
        weight(w, f, p);
        pod_term(w, bh_adm_path(w, "%s.podAffinityTerm", f), bh_tree_obj(p, "podAffinityTerm"));
    }
}

void bh_adm_affinity(struct bh_sim_write *w, const char *field, const struct bh_json *affinity)
{
    if (!affinity)
        return;
    node_affinity(w, bh_adm_path(w, "%s.nodeAffinity", field),
                  bh_tree_obj(affinity, "nodeAffinity"));
    pod_affinity(w, bh_adm_path(w, "%s.podAffinity", field), bh_tree_obj(affinity, "podAffinity"));
    pod_affinity(w, bh_adm_path(w, "%s.podAntiAffinity", field),
                 bh_tree_obj(affinity, "podAntiAffinity"));
}
