/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/selector.c - selectors over strings: storage, matching, LabelSelector objects
 *
 * Owns: a selector owns one arena with all its text.
 * Upstream: apimachinery/pkg/labels/selector.go, apimachinery/pkg/apis/meta/v1/helpers.go.
 */
#include "common/k8s/selector.h"

#include <errno.h>

#include "common/k8s/selector_priv.h"
#include "common/k8s/syntax.h"

struct bh_selector *bh_selector_new(void)
{
    struct bh_selector *s = bh_calloc(1, sizeof(*s));
    bh_arena_init(&s->a, 0); /* input of a request line or an object, bounded there */
    return s;
}

void bh_selector_free(struct bh_selector *s)
{
    if (!s)
        return;
    bh_arena_fini(&s->a);
    free(s->r);
    free(s);
}

void bh_selector_add(struct bh_selector *s, struct bh_sel_req r)
{
    BH_GROW(s->r, s->n, s->cap);
    r.order = s->n;
    s->r[s->n++] = r;
}

int bh_selector_add_label(struct bh_selector *s, struct bh_sel_req r, struct bh_err *err)
{
    struct bh_why w = {0};
    int rc = 0;

    bh_why_requirement(&w, "", r.key, r.op, r.values, r.n_values);
    if (w.n) {
        bh_why_finish(&w);
        rc = bh_err_set(err, -EINVAL, "%s", bh_buf_str(&w.text));
    } else {
        if (r.op == BH_REQ_GT || r.op == BH_REQ_LT)
            bh_parse_int64(r.values[0], strlen(r.values[0]), &r.number);
        bh_selector_add(s, r);
    }
    bh_buf_fini(&w.text);
    return rc;
}

static int by_key(const void *pa, const void *pb)
{
    const struct bh_sel_req *a = pa, *b = pb;
    int c = strcmp(a->key, b->key);
    return c ? c : a->order < b->order ? -1 : 1;
}

int bh_selector_finish(struct bh_selector *s, int rc, struct bh_selector **ret)
{
    if (rc) {
        bh_selector_free(s);
        return rc;
    }
    if (s->n > 1)
        qsort(s->r, s->n, sizeof(*s->r), by_key);
    *ret = s;
    return 0;
}

static bool has_value(const struct bh_sel_req *r, const char *value)
{
    for (size_t i = 0; i < r->n_values; i++)
        if (bh_streq(r->values[i], value))
            return true;
    return false;
}

static bool requirement_match(const struct bh_sel_req *r, const char *value)
{
    int64_t v;

    switch (r->op) {
    case BH_REQ_IN:
        return value && has_value(r, value);
    case BH_REQ_NOT_IN:
        return !value || !has_value(r, value);
    case BH_REQ_EXISTS:
        return value != NULL;
    case BH_REQ_NOT_EXISTS:
        return !value;
    case BH_REQ_GT:
    case BH_REQ_LT:
        if (!value || !bh_parse_int64(value, strlen(value), &v))
            return false;
        return r->op == BH_REQ_GT ? v > r->number : v < r->number;
    }
    return false;
}

bool bh_selector_match(const struct bh_selector *s, const char *(*get)(void *arg, const char *key),
                       void *arg)
{
    if (s->nothing)
        return false;
    for (size_t i = 0; i < s->n; i++)
        if (!requirement_match(&s->r[i], get(arg, s->r[i].key)))
            return false;
    return true;
}

static const char *get_json(void *labels, const char *key)
{
    return bh_json_get_str(labels, key);
}

bool bh_selector_match_json(const struct bh_selector *s, const struct bh_json *labels)
{
    return bh_selector_match(s, get_json, (void *)labels);
}

struct record_labels {
    const struct bh_kv *v;
    uint32_t n;
    const struct bh_symtab *tab;
};

static const char *get_symbol(void *arg, const char *key)
{
    const struct record_labels *l = arg;
    bh_sym k = bh_sym_find(l->tab, key, strlen(key)), v;

    return k != BH_SYM_NONE && bh_labels_get(l->v, l->n, k, &v) ? bh_sym_text(l->tab, v) : NULL;
}

bool bh_selector_match_labels(const struct bh_selector *s, const struct bh_kv *labels, uint32_t n,
                              const struct bh_symtab *tab)
{
    return bh_selector_match(s, get_symbol, &(struct record_labels){labels, n, tab});
}

void bh_selector_each(const struct bh_selector *s,
                      void (*fn)(void *arg, const char *key, enum bh_req_op op, size_t n_values,
                                 const char *const *values),
                      void *arg)
{
    for (size_t i = 0; i < s->n; i++)
        fn(arg, s->r[i].key, s->r[i].op, s->r[i].n_values, s->r[i].values);
}

/* ---- metav1.LabelSelector ---- */
static int add_match_labels(struct bh_selector *s, const struct bh_json *labels, struct bh_err *err)
{
    if (labels && labels->type != BH_JSON_OBJECT)
        return bh_err_set(err, -EINVAL, "matchLabels: must be an object");
    bh_json_each(l, labels) {
        const char **value = bh_arena_new_array(&s->a, const char *, 1);
        if (l->type != BH_JSON_STRING)
            return bh_err_set(err, -EINVAL, "matchLabels.%s: must be a string", l->key.p);
        *value = bh_arena_strdup(&s->a, bh_json_cstr(l));
        struct bh_sel_req r = {.key = bh_arena_strdup(&s->a, l->key.p),
                               .op = BH_REQ_IN,
                               .values = value,
                               .n_values = 1};
        int rc = bh_selector_add_label(s, r, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int add_expression(struct bh_selector *s, const struct bh_json *e, struct bh_err *err)
{
    const char *key = bh_json_get_str(e, "key"), *op = bh_json_get_str(e, "operator");
    const struct bh_json *values = bh_json_get(e, "values");
    struct bh_sel_req r = {.key = bh_arena_strdup(&s->a, key ? key : "")};
    int found = op ? bh_req_op_of(op, BH_REQ_NOT_EXISTS + 1) : -1;
    size_t n = 0;

    if (found < 0)
        return bh_err_set(err, -EINVAL, "\"%.64s\" is not a valid label selector operator",
                          op ? op : "");
    r.op = (enum bh_req_op)found;
    if (values && values->type == BH_JSON_NULL)
        values = NULL;
    if (values && values->type != BH_JSON_ARRAY)
        return bh_err_set(err, -EINVAL, "matchExpressions[].values: must be a list");
    const char **texts = bh_arena_new_array(&s->a, const char *, (values ? values->c.n : 0) + 1);
    bh_json_each(v, values) {
        if (v->type != BH_JSON_STRING)
            return bh_err_set(err, -EINVAL, "matchExpressions[].values: must be strings");
        texts[n++] = bh_arena_strdup(&s->a, bh_json_cstr(v));
    }
    r.values = texts;
    r.n_values = n;
    return bh_selector_add_label(s, r, err);
}

int bh_selector_from_json(const struct bh_json *v, struct bh_selector **ret, struct bh_err *err)
{
    struct bh_selector *s = bh_selector_new();
    int rc = 0;

    if (!v || v->type == BH_JSON_NULL) {
        s->nothing = true;
    } else if (v->type != BH_JSON_OBJECT) {
        rc = bh_err_set(err, -EINVAL, "label selector: must be an object");
    } else {
        const struct bh_json *labels = bh_json_get(v, "matchLabels");
        const struct bh_json *exprs = bh_json_get(v, "matchExpressions");
        rc = add_match_labels(s, labels && labels->type != BH_JSON_NULL ? labels : NULL, err);
        if (rc == 0 && exprs && exprs->type != BH_JSON_NULL && exprs->type != BH_JSON_ARRAY)
            rc = bh_err_set(err, -EINVAL, "matchExpressions: must be a list");
        for (const struct bh_json *e = bh_json_first(exprs); rc == 0 && e; e = e->next)
            rc = add_expression(s, e, err);
    }
    return bh_selector_finish(s, rc, ret);
}
