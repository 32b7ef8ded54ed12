/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/offline/fixes_labels.c - labels that the pod requires and no suitable node has
 *
 * Either a node gets them: the one where the pod would go if labels did not matter, so that nothing
 * else rejects it there. Or the pod asks for what nodes do have: a value or key that differs in a
 * letter or two (`disktype: sdd`, 3 nodes have disktype=ssd).
 */
#include "simulator/offline/fixes_int.h"

#define REQUIRED   "requiredDuringSchedulingIgnoredDuringExecution"
#define NODES      3u /* that are considered for labels */
#define TERMS      2u /* of a required node affinity: they are alternatives */
#define NEAR_EDITS 2u

static const struct bh_json *required_terms(const struct bh_json *pod)
{
    return bh_json_path(pod, "spec.affinity.nodeAffinity." REQUIRED ".nodeSelectorTerms");
}

/* ---- a node gets the labels ------------------------------------------------------------------ */

/* Labels that state a fact about the machine: no advice changes them. */
static bool states_fact(const char *key)
{
    return strncmp(key, "topology.kubernetes.io/", 23) == 0 ||
           bh_word_at("kubernetes.io/hostname kubernetes.io/arch kubernetes.io/os "
                      "node.kubernetes.io/instance-type",
                      key) >= 0;
}

static bool set_wanted(struct bh_fixes *f, struct bh_json *wanted, const struct bh_json *have,
                       const char *key, const struct bh_json *value)
{
    const struct bh_json *old = bh_json_get(have, key);

    if (old && bh_json_equal(old, value))
        return true;
    if (states_fact(key))
        return false;
    bh_json_set(f->a, wanted, key, bh_json_clone(f->a, value));
    return true;
}

static bool has_value(const struct bh_json *values, const char *text)
{
    bh_json_each(v, values)
        if (bh_json_cstr(v) && bh_streq(bh_json_cstr(v), text))
            return true;
    return false;
}

/* What one expression requires of a node with these labels; null takes a label away. */
static bool set_expression(struct bh_fixes *f, struct bh_json *wanted, const struct bh_json *have,
                           const struct bh_json *expression)
{
    const char *key = bh_json_get_text(expression, "key");
    const char *op = bh_json_get_text(expression, "operator");
    const struct bh_json *values = bh_json_get_list(expression, "values");
    const struct bh_json *old = bh_json_get(have, key);
    const bool listed = old && bh_json_cstr(old) && has_value(values, bh_json_cstr(old));

    if (bh_streq(op, "In"))
        return listed ||
               (bh_json_first(values) && set_wanted(f, wanted, have, key, bh_json_first(values)));
    if (bh_streq(op, "Exists"))
        return old || set_wanted(f, wanted, have, key, bh_json_new_cstr(f->a, "true"));
    if (bh_streq(op, "DoesNotExist") || bh_streq(op, "NotIn"))
        return (bh_streq(op, "NotIn") ? !listed : !old) ||
               set_wanted(f, wanted, have, key, bh_json_new(f->a, BH_JSON_NULL));
    return false; /* Gt, Lt */
}

/* Labels that the node lacks for the selector and the term (NULL: none); NULL: it cannot have them. */
static struct bh_json *lacking(struct bh_fixes *f, const char *node, const struct bh_json *term)
{
    const struct bh_json *have = bh_json_path(bh_fixes_node(f, node), "metadata.labels");
    struct bh_json *wanted = bh_json_new(f->a, BH_JSON_OBJECT);

    bh_json_each(s, bh_json_path(f->pod, "spec.nodeSelector"))
        if (!set_wanted(f, wanted, have, s->key.p, s))
            return NULL;
    bh_json_each(e, bh_json_get_list(term, "matchExpressions"))
        if (!set_expression(f, wanted, have, e))
            return NULL;
    return bh_json_get(term, "matchFields") || !bh_json_first(wanted) ? NULL : wanted;
}

static bool add_label_fix(struct bh_fixes *f, const char *node, const struct bh_json *term)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
    struct bh_json *labels = lacking(f, node, term);

    if (!labels)
        return false;
    bh_buf_addf(&b, "label %s", node);
    bh_json_each(l, labels) {
        if (l->type == BH_JSON_NULL)
            bh_buf_addf(&b, " %s-", l->key.p);
        else
            bh_buf_addf(&b, " %s=%s", l->key.p, bh_json_cstr(l));
    }
    bh_buf_adds(&b, ", as the pod requires");
    struct bh_fix *x = bh_fixes_add(f, "node", bh_arena_strdup(f->a, bh_buf_str(&b)));
    x->node_name = node;
    x->node = bh_json_make(f->a, "metadata: {labels: %p}", labels);
    return true;
}

/* Nodes where the pod would go if it required no labels, best first; without any, those that reject
 * it for its labels alone, so far as the explanation shows. */
static uint32_t suitable_nodes(struct bh_fixes *f, const char *node[NODES])
{
    const struct bh_json *patch = bh_json_make(
        f->a, "spec: {nodeSelector: null, affinity: {nodeAffinity: {" REQUIRED ": null}}}");
    const struct bh_json *free = bh_fixes_decide(f, bh_fixes_patched(f, "Pod", f->pod, patch));
    const char *nominated = bh_json_get_text(bh_json_get(free, "preemption"), "nominatedNode");
    uint32_t n = 0;

    bh_json_each(v, bh_json_get_list(free, "ranking"))
        if (n < NODES)
            node[n++] = bh_json_get_text(v, "node");
    if (n)
        return n;
    if (*nominated)
        node[n++] = nominated;
    bh_json_each(v, bh_json_get_list(free, "rejected"))
        if (n < NODES && !bh_streq(bh_json_get_text(v, "node"), nominated) &&
            bh_streq(bh_json_get_text(v, "code"), "Unschedulable"))
            node[n++] = bh_json_get_text(v, "node");
    return n;
}

static void add_label_fixes(struct bh_fixes *f)
{
    const struct bh_json *terms = required_terms(f->pod);
    const char *node[NODES];
    const uint32_t n = suitable_nodes(f, node);
    const struct bh_json *term = bh_json_first(terms);
    uint32_t i = 0;

    for (uint32_t t = 0; t < TERMS && (term || !t); t++, term = term ? term->next : NULL)
        for (i = 0; i < n && !add_label_fix(f, node[i], term);)
            i++;
}

/* ---- the pod asks for what nodes have -------------------------------------------------------- */

struct near { /* the label of some node that is nearest to key=value */
    struct bh_fixes *f;
    const char *key, *value;
    const char *near_key, *near_value;
    unsigned edits, n; /* n: nodes that have it */
};

static void compare_label(struct near *l, const char *key, const char *value)
{
    const bool same_key = bh_streq(key, l->key);
    unsigned edits;

    if (!same_key && !bh_streq(value, l->value))
        return;
    edits = same_key ? bh_edits(value, l->value) : bh_edits(key, l->key);
    if (edits < l->edits) {
        l->edits = edits;
        l->near_key = key;
        l->near_value = value;
        l->n = 0;
    }
    l->n += l->near_key && bh_streq(key, l->near_key) && bh_streq(value, l->near_value);
}

static void compare_node(void *arg, bh_sym node)
{
    struct near *l = arg;
    const struct bh_symtab *tab = bh_engine_symtab(l->f->w->engine);
    const struct bh_node_rec *rec = bh_engine_find_node(l->f->w->engine, node);
    const struct bh_kv *label = rec ? bh_rec_at(rec, rec->labels, struct bh_kv) : NULL;

    for (uint32_t i = 0; rec && i < rec->labels.n; i++)
        compare_label(l, bh_sym_text(tab, label[i].key), bh_sym_text(tab, label[i].value));
}

/* false: some node has the label, or none has a similar one. */
static bool find_near(struct near *l)
{
    const size_t shorter = BH_MIN(strlen(l->key), strlen(l->value));

    l->edits = shorter > 3 ? NEAR_EDITS + 1 : shorter > 1 ? 2 : 1;
    bh_engine_each_node(l->f->w->engine, compare_node, l);
    return l->near_key && l->edits > 0;
}

static const char *near_text(const struct near *l)
{
    return bh_arena_printf(l->f->a, "%s=%s instead of %s=%s (%u %s it)", l->near_key, l->near_value,
                           l->key, l->value, l->n, l->n == 1 ? "node has" : "nodes have");
}

static void add_near_selectors(struct bh_fixes *f)
{
    bh_json_each(s, bh_json_path(f->pod, "spec.nodeSelector")) {
        struct near l = {.f = f, .key = s->key.p, .value = bh_json_cstr(s)};
        if (!l.value || !find_near(&l))
            continue;
        struct bh_json *selector = bh_json_new(f->a, BH_JSON_OBJECT);
        bh_json_set(f->a, selector, l.key, bh_json_new(f->a, BH_JSON_NULL));
        bh_json_set_str(f->a, selector, l.near_key, l.near_value);
        bh_fixes_add(f, "selector", bh_arena_printf(f->a, "node selector %s", near_text(&l)))->pod =
            bh_json_make(f->a, "spec: {nodeSelector: %p}", selector);
    }
}

/* The list of terms is replaced as a whole by a patch. */
static void add_near_expression(struct bh_fixes *f, struct bh_json *terms, struct bh_json *e,
                                const struct near *l)
{
    struct bh_json *values = bh_json_new(f->a, BH_JSON_ARRAY);
    struct bh_json *old_values = bh_json_clone(f->a, bh_json_get(e, "values"));

    bh_json_push(values, bh_json_new_cstr(f->a, l->near_value));
    bh_json_set_str(f->a, e, "key", l->near_key);
    bh_json_set(f->a, e, "values", values);
    bh_fixes_add(f, "nodeAffinity", bh_arena_printf(f->a, "node affinity %s", near_text(l)))->pod =
        bh_json_make(f->a,
                     "spec: {affinity: {nodeAffinity: {" REQUIRED ": {nodeSelectorTerms: %p}}}}",
                     bh_json_clone(f->a, terms));
    bh_json_set_str(f->a, e, "key", l->key);
    bh_json_set(f->a, e, "values", old_values);
}

static void add_near_affinities(struct bh_fixes *f)
{
    struct bh_json *terms = bh_json_clone(f->a, required_terms(f->pod));

    bh_json_each(t, terms) {
        bh_json_each(e, bh_json_get_list(t, "matchExpressions")) {
            const char *key = bh_arena_strdup(f->a, bh_json_get_text(e, "key"));
            const struct bh_json *value = bh_json_first(bh_json_get_list(e, "values"));
            struct near l = {.f = f, .key = key, .value = value ? bh_json_cstr(value) : NULL};
            if (l.value && bh_streq(bh_json_get_text(e, "operator"), "In") && !value->next &&
                find_near(&l))
                add_near_expression(f, terms, e, &l);
        }
    }
}

void bh_fixes_labels(struct bh_fixes *f)
{
    add_near_selectors(f);
    add_near_affinities(f);
    add_label_fixes(f);
}
