/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/compile_terms.c - node selector terms
 *
 * A term that upstream cannot parse keeps the requirements that have a known operator: the
 * candidate-node narrowing of NodeAffinity reads `metadata.name In` of such terms too. A preferred
 * term of weight 0 is marked EMPTY, because upstream skips it before parsing.
 * Upstream: component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go.
 */
#include <errno.h>
#include <stdio.h>

#include "common/k8s/compile_priv.h"
#include "common/k8s/syntax.h"

/* Of a field's path in an error: of the list of terms, of a requirement, of a field of that. */
#define LIST_MAX        384
#define REQUIREMENT_MAX (LIST_MAX + 64)
#define FIELD_MAX       (REQUIREMENT_MAX + 16)

enum { N_OPERATORS = BH_REQ_LT + 1 };

static void operator_why(struct bh_why *w, const char *path, const char *op, size_t n_supported)
{
    char full[FIELD_MAX];

    snprintf(full, sizeof(full), "%s.operator", path);
    if (!bh_why_begin(w, full))
        return;
    bh_buf_adds(&w->text, "Unsupported value: ");
    bh_buf_add_json_str(&w->text, op, strnlen(op, 256));
    bh_buf_adds(&w->text, ": supported values: ");
    for (size_t i = 0; i < n_supported; i++)
        bh_buf_addf(&w->text, "%s\"%s\"", i ? ", " : "", bh_req_op_names[i]);
}

static void field_why(struct bh_why *w, const char *path, const K8s__NodeSelectorRequirement *r)
{
    int op = bh_req_op_of(r->operator_, N_OPERATORS);
    char full[FIELD_MAX];

    if (op != BH_REQ_IN && op != BH_REQ_NOT_IN) {
        operator_why(w, path, r->operator_, 2);
        return;
    }
    if (r->n_values == 1)
        return;
    snprintf(full, sizeof(full), "%s.values", path);
    if (!bh_why_begin(w, full))
        return;
    bh_buf_adds(&w->text, "Invalid value: ");
    bh_why_values(w, (const char *const *)r->values, r->n_values);
    bh_buf_adds(&w->text, ": must have one element");
}

static void term_why(struct bh_why *w, const char *path, const K8s__NodeSelectorTerm *t)
{
    char at[REQUIREMENT_MAX];

    for (size_t i = 0; i < t->n_matchexpressions; i++) {
        snprintf(at, sizeof(at), "%s.matchExpressions[%zu]", path, i);
        int op = bh_req_op_of(t->matchexpressions[i]->operator_, N_OPERATORS);
        if (op < 0)
            operator_why(w, at, t->matchexpressions[i]->operator_, N_OPERATORS);
        else
            bh_why_requirement(w, at, t->matchexpressions[i]->key, (enum bh_req_op)op,
                               (const char *const *)t->matchexpressions[i]->values,
                               t->matchexpressions[i]->n_values);
    }
    for (size_t i = 0; i < t->n_matchfields; i++) {
        snprintf(at, sizeof(at), "%s.matchFields[%zu]", path, i);
        field_why(w, at, t->matchfields[i]);
    }
}

static struct bh_slice put_requirements(struct bh_compiler *c,
                                        K8s__NodeSelectorRequirement *const *list, size_t n)
{
    struct bh_slice s;
    size_t known = 0;

    for (size_t i = 0; i < n; i++)
        known += bh_req_op_of(list[i]->operator_, N_OPERATORS) >= 0;
    bh_rec_room(&c->b, known, sizeof(struct bh_requirement), &s);
    for (size_t i = 0, at = 0; i < n && s.n; i++) {
        const K8s__NodeSelectorRequirement *r = list[i];
        int op = bh_req_op_of(r->operator_, N_OPERATORS);
        int64_t number = 0;
        if (op < 0)
            continue;
        if ((op == BH_REQ_GT || op == BH_REQ_LT) && r->n_values == 1 &&
            !bh_parse_int64(r->values[0], strlen(r->values[0]), &number))
            number = 0;
        struct bh_slice values = bh_compile_syms(c, r->values, r->n_values);
        if (c->b.failed)
            break;
        struct bh_requirement *out = (struct bh_requirement *)(c->b.p + s.off) + at++;
        *out = (struct bh_requirement){.key = bh_compile_sym(c, r->key),
                                       .op = (uint32_t)op,
                                       .number = number,
                                       .values = values};
    }
    return s;
}

static void put_term(struct bh_compiler *c, const K8s__NodeSelectorTerm *t, int32_t weight,
                     bool weighted, const char *path, size_t off)
{
    struct bh_node_term v = {.weight = weight};

    if ((weighted && weight == 0) || t->n_matchexpressions + t->n_matchfields == 0) {
        v.flags = BH_TERM_EMPTY;
    } else {
        struct bh_why w = {0};
        term_why(&w, path, t);
        bh_why_finish(&w);
        v.error = bh_compile_sym(c, bh_buf_str(&w.text));
        v.flags = v.error != BH_SYM_NONE ? BH_TERM_INVALID : 0;
        bh_buf_fini(&w.text);
    }
    v.expressions = put_requirements(c, t->matchexpressions, t->n_matchexpressions);
    v.fields = put_requirements(c, t->matchfields, t->n_matchfields);
    if (!c->b.failed)
        *(struct bh_node_term *)(c->b.p + off) = v;
}

void bh_compile_affinity(struct bh_compiler *c, const K8s__NodeAffinity *na)
{
    struct bh_slice required = {0, 0}, preferred = {0, 0};
    uint32_t flags = 0;
    char path[64];

    if (!na)
        return;
    if (na->requiredduringschedulingignoredduringexecution) {
        flags |= BH_SHAPE_HAS_REQUIRED_AFFINITY;
        const K8s__NodeSelector *ns = na->requiredduringschedulingignoredduringexecution;
        bh_rec_room(&c->b, ns->n_nodeselectorterms, sizeof(struct bh_node_term), &required);
        for (size_t i = 0; i < required.n; i++) {
            snprintf(path, sizeof(path), "nodeSelectorTerms[%zu]", i);
            put_term(c, ns->nodeselectorterms[i], 0, false, path,
                     required.off + i * sizeof(struct bh_node_term));
        }
    }
    /* Empty but present: the decoder keeps a pointer (json_to_pb.c); protobuf cannot express it. */
    if (na->preferredduringschedulingignoredduringexecution)
        flags |= BH_SHAPE_HAS_PREFERRED_LIST;
    static const K8s__NodeSelectorTerm nothing = K8S__NODE_SELECTOR_TERM__INIT;
    size_t n = na->n_preferredduringschedulingignoredduringexecution;
    bh_rec_room(&c->b, n, sizeof(struct bh_node_term), &preferred);
    for (size_t i = 0; i < preferred.n; i++) {
        const K8s__PreferredSchedulingTerm *t =
            na->preferredduringschedulingignoredduringexecution[i];
        snprintf(path, sizeof(path), "[%zu]", i);
        put_term(c, t->preference ? t->preference : &nothing, t->weight, true, path,
                 preferred.off + i * sizeof(struct bh_node_term));
    }
    if (!c->b.failed) {
        bh_shape_of(c)->flags |= flags;
        bh_shape_of(c)->required_terms = required;
        bh_shape_of(c)->preferred_terms = preferred;
    }
}

static void hand_out(struct bh_why *w, void (*fn)(void *arg, struct bh_str error), void *arg)
{
    for (unsigned i = 0; i < w->n; i++) {
        size_t end = i + 1 < w->n ? w->start[i + 1] - strlen(", ") : w->text.n;
        fn(arg, (struct bh_str){bh_buf_str(&w->text) + w->start[i], end - w->start[i]});
    }
    bh_buf_fini(&w->text);
    *w = (struct bh_why){0};
}

void bh_node_affinity_errors(const K8s__NodeAffinity *na, const char *path,
                             void (*fn)(void *arg, struct bh_str error), void *arg)
{
    const K8s__NodeSelector *ns = na->requiredduringschedulingignoredduringexecution;
    struct bh_why w = {0};
    char at[LIST_MAX];

    for (size_t i = 0; ns && i < ns->n_nodeselectorterms; i++) {
        snprintf(at, sizeof(at),
                 "%s.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[%zu]", path,
                 i);
        term_why(&w, at, ns->nodeselectorterms[i]);
        hand_out(&w, fn, arg);
    }
    for (size_t i = 0; i < na->n_preferredduringschedulingignoredduringexecution; i++) {
        const K8s__PreferredSchedulingTerm *t =
            na->preferredduringschedulingignoredduringexecution[i];
        if (!t->weight || !t->preference)
            continue; /* skipped before it is parsed */
        snprintf(at, sizeof(at), "%s.preferredDuringSchedulingIgnoredDuringExecution[%zu]", path,
                 i);
        term_why(&w, at, t->preference);
        hand_out(&w, fn, arg);
    }
}

int bh_compile_node_affinity(struct bh_arena *a, const K8s__NodeAffinity *na,
                             const struct bh_interner *in, struct bh_shape_rec **ret,
                             struct bh_err *err)
{
    struct bh_compiler c = {.a = a, .in = in, .err = err};

    bh_rec_begin(&c.b, a, BH_REC_SHAPE, sizeof(struct bh_shape_rec));
    bh_compile_affinity(&c, na);
    return bh_compile_end(&c, "node affinity", NULL, 0, ret);
}
