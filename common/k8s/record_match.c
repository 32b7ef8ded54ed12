/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/record_match.c - the shared meaning of selectors, terms and tolerations over symbols
 *
 * Upstream: apimachinery/pkg/labels/selector.go, component-helpers/scheduling/corev1
 * (nodeaffinity.go, helpers.go).
 */
#include "common/k8s/record.h"
#include "common/k8s/syntax.h"

/* Linear: labels are few, and the scan touches one or two cache lines. */
bool bh_labels_get(const struct bh_kv *labels, uint32_t n, bh_sym key, bh_sym *ret_value)
{
    for (uint32_t i = 0; i < n; i++) {
        if (labels[i].key == key) {
            *ret_value = labels[i].value;
            return true;
        }
    }
    return false;
}

static bool has_value(const void *rec, const struct bh_requirement *r, bh_sym value)
{
    const bh_sym *v = bh_rec_at(rec, r->values, bh_sym);

    for (uint32_t i = 0; i < r->values.n; i++)
        if (v[i] == value)
            return true;
    return false;
}

bool bh_requirement_match(const void *rec, const struct bh_requirement *r,
                          const struct bh_kv *labels, uint32_t n, const struct bh_symtab *tab)
{
    bh_sym value = BH_SYM_NONE;
    bool present = bh_labels_get(labels, n, r->key, &value);

    switch ((enum bh_req_op)r->op) {
    case BH_REQ_IN:
        return present && has_value(rec, r, value);
    case BH_REQ_NOT_IN:
        return !present || !has_value(rec, r, value);
    case BH_REQ_EXISTS:
        return present;
    case BH_REQ_NOT_EXISTS:
        return !present;
    case BH_REQ_GT:
    case BH_REQ_LT: {
        struct bh_str text = bh_sym_str(tab, value);
        int64_t v;
        if (!present || !bh_parse_int64(text.p, text.n, &v))
            return false;
        return r->op == BH_REQ_GT ? v > r->number : v < r->number;
    }
    }
    return false;
}

bool bh_node_term_match(const void *rec, const struct bh_node_term *t,
                        const struct bh_node_rec *node, const struct bh_symtab *tab,
                        bh_sym sym_metadata_name)
{
    const struct bh_kv *labels = bh_rec_at(node, node->labels, struct bh_kv);
    const struct bh_requirement *r = bh_rec_at(rec, t->expressions, struct bh_requirement);

    if (t->flags & (BH_TERM_EMPTY | BH_TERM_INVALID))
        return false;
    for (uint32_t i = 0; i < t->expressions.n; i++)
        if (!bh_requirement_match(rec, &r[i], labels, node->labels.n, tab))
            return false;
    if (node->name == BH_SYM_NONE)
        return true;
    r = bh_rec_at(rec, t->fields, struct bh_requirement);
    for (uint32_t i = 0; i < t->fields.n; i++) {
        /* A field that Berth does not know reads as the empty string. */
        bool in = has_value(rec, &r[i], r[i].key == sym_metadata_name ? node->name : BH_SYM_NONE);
        if (!(r[i].op == BH_REQ_IN ? in : r[i].op == BH_REQ_NOT_IN && !in))
            return false;
    }
    return true;
}

bool bh_any_node_term_match(const void *rec, struct bh_slice terms, const struct bh_node_rec *node,
                            const struct bh_symtab *tab, bh_sym sym_metadata_name)
{
    const struct bh_node_term *t = bh_rec_at(rec, terms, struct bh_node_term);

    for (uint32_t i = 0; i < terms.n; i++)
        if (bh_node_term_match(rec, &t[i], node, tab, sym_metadata_name))
            return true;
    return false;
}

bool bh_selector_matches(const void *rec, const struct bh_label_selector *s,
                         const struct bh_kv *labels, uint32_t n, const struct bh_symtab *tab)
{
    const struct bh_requirement *r = bh_rec_at(rec, s->requirements, struct bh_requirement);

    if (s->flags)
        return false;
    for (uint32_t i = 0; i < s->requirements.n; i++)
        if (!bh_requirement_match(rec, &r[i], labels, n, tab))
            return false;
    return true;
}

bool bh_required_node_match(const struct bh_shape_rec *s, const struct bh_node_rec *node,
                            const struct bh_symtab *tab, bh_sym sym_metadata_name)
{
    const struct bh_kv *want = bh_rec_at(s, s->node_selector, struct bh_kv);
    const struct bh_kv *labels = bh_rec_at(node, node->labels, struct bh_kv);

    for (uint32_t i = 0; i < s->node_selector.n; i++) {
        bh_sym v;
        if (!bh_labels_get(labels, node->labels.n, want[i].key, &v) || v != want[i].value)
            return false;
    }
    return !(s->flags & BH_SHAPE_HAS_REQUIRED_AFFINITY) ||
           bh_any_node_term_match(s, s->required_terms, node, tab, sym_metadata_name);
}

bool bh_toleration_tolerates(const struct bh_toleration *t, const struct bh_taint *taint)
{
    /* Two effects outside the known three are never compared: no plugin looks at such taints. */
    if (t->effect != BH_EFFECT_NONE && (t->effect != taint->effect || t->effect == BH_EFFECT_OTHER))
        return false;
    if (t->key != BH_SYM_NONE && t->key != taint->key)
        return false;
    switch ((enum bh_toleration_op)t->op) {
    case BH_TOL_EQUAL:
        return t->value == taint->value;
    case BH_TOL_EXISTS:
        return true;
    case BH_TOL_LT: /* gate TaintTolerationComparisonOperators is off */
    case BH_TOL_GT:
    case BH_TOL_OTHER:
        return false;
    }
    return false;
}

bool bh_tolerated(const struct bh_shape_rec *s, const struct bh_taint *taint)
{
    const struct bh_toleration *t = bh_rec_at(s, s->tolerations, struct bh_toleration);

    for (uint32_t i = 0; i < s->tolerations.n; i++)
        if (bh_toleration_tolerates(&t[i], taint))
            return true;
    return false;
}

bool bh_taints_tolerated(const struct bh_shape_rec *s, const struct bh_node_rec *n)
{
    const struct bh_taint *t = bh_rec_at(n, n->taints, struct bh_taint);

    for (uint32_t i = 0; i < n->taints.n; i++)
        if ((t[i].effect == BH_NO_SCHEDULE || t[i].effect == BH_NO_EXECUTE) &&
            !bh_tolerated(s, &t[i]))
            return false;
    return true;
}

int64_t bh_res_get(const void *rec, struct bh_slice list, bh_sym name, int64_t absent)
{
    const struct bh_res *r = bh_rec_at(rec, list, struct bh_res);

    for (uint32_t i = 0; i < list.n; i++)
        if (r[i].name == name)
            return r[i].value;
    return absent;
}

void bh_shape_essence(const struct bh_shape_rec *s, struct bh_buf *out)
{
    struct bh_shape_rec head = *s;
    uint32_t end = s->labels.n ? s->labels.off : s->images.n ? s->images.off : s->h.size;

    head.h.size = 0;
    head.labels = head.images = (struct bh_slice){0, 0};
    head.image_containers = head.priority = 0;
    head.owner_kind = head.owner = 0;
    const size_t at = out->n;
    bh_buf_add(out, &head, sizeof(head));
    bh_buf_add(out, (const char *)s + sizeof(head), end - sizeof(head));
    for (uint32_t i = 0; i < s->containers.n; i++)
        memset(out->p + at + s->containers.off + i * sizeof(struct bh_container) +
                   offsetof(struct bh_container, name),
               0, sizeof(bh_sym));
}
