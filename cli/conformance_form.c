/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/conformance_form.c - decisions in the recorded form, and comparing two of them
 */
#include "cli/conformance.h"

#define COMPACT_BEST 40u

static struct bh_json *status_json(struct bh_arena *a, const struct bh_status *s)
{
    struct bh_json *o =
        bh_json_make(a, "plugin: %s, code: %s, reasons: []", s->plugin, bh_code_name(s->code));

    for (uint32_t i = 0; i < s->n_reasons; i++)
        bh_json_push(bh_json_get(o, "reasons"), bh_json_new_cstr(a, s->reasons[i]));
    return o;
}

/* No decision: nothing is feasible. */
static struct bh_json *nothing(struct bh_arena *a, enum bh_json_type feasible, const char *error,
                               bool compact, struct bh_json *o)
{
    bh_json_set(a, o, "feasible", bh_json_new(a, feasible));
    bh_json_set_str(a, o, "error", error);
    if (compact)
        bh_json_set_i64(a, o, "feasibleCount", 0);
    return o;
}

struct bh_json *bh_error_json(struct bh_arena *a, const char *error, bool compact)
{
    return nothing(a, BH_JSON_NULL, error, compact, bh_json_new(a, BH_JSON_OBJECT));
}

struct bh_json *bh_gated_json(struct bh_arena *a, const struct bh_status *s, bool compact)
{
    struct bh_json *o = bh_json_new(a, BH_JSON_OBJECT);

    bh_json_set(a, o, "preFilter", status_json(a, s));
    return nothing(a, compact ? BH_JSON_NULL : BH_JSON_ARRAY, "gated", compact, o);
}

static void add_pre_filter(struct bh_arena *a, const struct bh_symtab *tab,
                           const struct bh_decision *d, struct bh_json *o)
{
    if (d->pre_filter) {
        bh_json_set(a, o, "preFilter", status_json(a, d->pre_filter));
        return;
    }
    if (!d->n_pre_filter_nodes)
        return;
    struct bh_json *names = bh_json_new(a, BH_JSON_ARRAY);
    for (uint32_t i = 0; i < d->n_pre_filter_nodes; i++)
        bh_json_push(names, bh_json_new_cstr(a, bh_sym_text(tab, d->pre_filter_nodes[i])));
    bh_json_add(a, o, "preFilter: {plugin: %s, code: NodeSubset, reasons: %p}",
                d->n_pre_filter_plugins ? d->pre_filter_plugins[0] : "", names);
}

static int by_plugin(const void *x, const void *y)
{
    return strcmp(((const struct bh_plugin_score *)x)->plugin,
                  ((const struct bh_plugin_score *)y)->plugin);
}

static void add_scores(struct bh_arena *a, const struct bh_symtab *tab, const struct bh_decision *d,
                       struct bh_json *o)
{
    struct bh_json *scores = bh_json_new(a, BH_JSON_OBJECT),
                   *total = bh_json_new(a, BH_JSON_OBJECT);
    uint32_t n = d->n_score_plugins;

    if (!d->scored)
        return;
    for (uint32_t i = 0; i < d->n_scores; i++) {
        const char *node = bh_sym_text(tab, d->scores[i].node);
        struct bh_json *per = bh_json_new(a, BH_JSON_OBJECT);
        struct bh_plugin_score *ps =
            n ? bh_arena_memdup(a, d->scores[i].plugins, n * sizeof *ps) : NULL;
        if (n > 1)
            qsort(ps, n, sizeof *ps, by_plugin);
        for (uint32_t k = 0; k < n; k++)
            bh_json_set_i64(a, per, ps[k].plugin, ps[k].weighted);
        bh_json_set(a, scores, node, per);
        bh_json_set_i64(a, total, node, d->scores[i].total);
    }
    bh_json_add(a, o, "scores: %p, total: %p", scores, total);
}

static struct bh_json *preemption_json(struct bh_arena *a, const struct bh_symtab *tab,
                                       const struct bh_preemption *p)
{
    struct bh_json *one = bh_json_make(a, "node: %s, victims: []", bh_sym_text(tab, p->node));
    const char **names = bh_arena_new_array(a, const char *, p->n_victims);

    for (uint32_t i = 0; i < p->n_victims; i++)
        names[i] = bh_arena_printf(a, "%s/%s", p->victims[i].namespace_.p, p->victims[i].name.p);
    qsort(names, p->n_victims, sizeof *names, bh_by_text);
    for (uint32_t i = 0; i < p->n_victims; i++)
        bh_json_push(bh_json_get(one, "victims"), bh_json_new_cstr(a, names[i]));
    return one;
}

static void add_failure(struct bh_arena *a, const struct bh_symtab *tab,
                        const struct bh_decision *d, struct bh_json *o)
{
    struct bh_json *all = bh_json_new(a, BH_JSON_ARRAY);

    if (d->kind == BH_DECISION_ERROR)
        bh_json_set_str(a, o, "error", d->message);
    if (d->kind != BH_NO_FIT)
        return;
    bh_json_set_str(a, o, "message", d->fit_message);
    for (uint32_t i = 0; i < d->n_preemptions; i++)
        bh_json_push(all, preemption_json(a, tab, &d->preemptions[i]));
    if (d->n_preemptions)
        bh_json_set(a, o, "preempt", all);
    else if (*d->post_filter_message)
        bh_json_set_str(a, o, "preemptMessage", d->post_filter_message);
}

struct bh_json *bh_decision_json(struct bh_arena *a, const struct bh_symtab *tab,
                                 const struct bh_decision *d, bool compact)
{
    struct bh_json *o = bh_json_new(a, BH_JSON_OBJECT);

    add_pre_filter(a, tab, d, o);
    if (compact) {
        bh_json_set(a, o, "feasible", bh_json_new(a, BH_JSON_NULL));
    } else {
        struct bh_json *feasible = bh_json_new(a, BH_JSON_ARRAY);
        struct bh_json *filtered = bh_json_new(a, BH_JSON_OBJECT);
        for (uint32_t i = 0; i < d->n_scores; i++)
            bh_json_push(feasible, bh_json_new_cstr(a, bh_sym_text(tab, d->scores[i].node)));
        for (uint32_t i = 0; i < d->n_rejected; i++)
            bh_json_set(a, filtered, bh_sym_text(tab, d->rejected[i].node),
                        status_json(a, d->rejected[i].status));
        bh_json_add(a, o, "feasible: %p, filtered?: %p", feasible, d->n_rejected ? filtered : NULL);
        add_scores(a, tab, d, o);
    }
    if (d->kind == BH_DECIDED) {
        struct bh_json *best = bh_json_new(a, BH_JSON_ARRAY);
        for (uint32_t i = 0; i < d->n_best && !(compact && i >= COMPACT_BEST); i++)
            bh_json_push(best, bh_json_new_cstr(a, bh_sym_text(tab, d->best[i])));
        bh_json_add(a, o, "best: %p, chosen: %s", best, bh_sym_text(tab, d->node));
    }
    add_failure(a, tab, d, o);
    if (compact)
        bh_json_add(a, o, "feasibleCount: %u", d->feasible);
    if (compact && d->scored) {
        int64_t best = d->n_scores ? d->scores[0].total : 0, sum = 0;
        for (uint32_t i = 0; i < d->n_scores; i++) {
            best = BH_MAX(best, d->scores[i].total);
            sum += d->scores[i].total;
        }
        bh_json_add(a, o, "bestTotal: %ld, totalSum: %ld", best, sum);
    }
    return o;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static bool same_set(struct bh_arena *a, const struct bh_json *x, const struct bh_json *y)
{
    if (!x || !y || x->type != BH_JSON_ARRAY || y->type != BH_JSON_ARRAY || x->c.n != y->c.n)
        return false;
    const char **v = bh_arena_new_array(a, const char *, 2 * x->c.n + 1), **w = v + x->c.n;
    size_t n = 0, m = 0;
    bh_json_each(e, x)
        v[n++] = e->type == BH_JSON_STRING ? e->s.p : "";
    bh_json_each(e, y)
        w[m++] = e->type == BH_JSON_STRING ? e->s.p : "";
    qsort(v, n, sizeof *v, bh_by_text);
    qsort(w, m, sizeof *w, bh_by_text);
    for (size_t i = 0; i < n; i++)
        if (!bh_streq(v[i], w[i]))
            return false;
    return true;
}

void bh_only_first_preemption(struct bh_json *got)
{
    struct bh_json *all = bh_json_get(got, "preempt");

    while (all && all->c.n > 1)
        bh_json_remove(all, all->c.last);
}

/* The original looks at nodes in parallel and reports the error of any one of them. */
static bool some_node_failed_so(const struct bh_json *filtered, const struct bh_json *error)
{
    bh_json_each(v, filtered) {
        const char *code = bh_json_get_str(v, "code");
        if (code && bh_streq(code, "Error") &&
            bh_json_equal(bh_json_at(bh_json_get(v, "reasons"), 0), error))
            return true;
    }
    return false;
}

static bool same_field(struct bh_arena *a, const char *key, const struct bh_json *expect,
                       const struct bh_json *want, const struct bh_json *have)
{
    if (!want || !have)
        return want == have;
    if (bh_streq(key, "error"))
        return bh_json_equal(want, have) ||
               some_node_failed_so(bh_json_get(expect, "filtered"), have);
    if (bh_streq(key, "filtered")) {
        if (!want || !have || want->type != BH_JSON_OBJECT || have->type != BH_JSON_OBJECT ||
            want->c.n != have->c.n)
            return false;
        bh_json_each(e, want) {
            const struct bh_json *o = bh_json_get(have, e->key.p);
            if (!o || !bh_json_equal(bh_json_get(e, "plugin"), bh_json_get(o, "plugin")) ||
                !bh_json_equal(bh_json_get(e, "code"), bh_json_get(o, "code")) ||
                !same_set(a, bh_json_get(e, "reasons"), bh_json_get(o, "reasons")))
                return false;
        }
        return true;
    }
    if (bh_streq(key, "preempt")) {
        /* Of candidates that tie the original takes any: the recorded ones are those that
         * came up in some runs, ours are all of them. */
        bh_json_each(w, want) {
            bh_json_each(h, have) {
                if (bh_json_equal(bh_json_get(w, "node"), bh_json_get(h, "node")) &&
                    same_set(a, bh_json_get(w, "victims"), bh_json_get(h, "victims")))
                    return true;
            }
        }
        return false;
    }
    return bh_json_equal(want, have);
}

const char *bh_expect_diff(struct bh_arena *a, const struct bh_json *expect,
                           const struct bh_json *got, const struct bh_json **ret_want,
                           const struct bh_json **ret_have)
{
    const struct bh_json *sides[] = {expect, got};

    for (unsigned s = 0; s < 2; s++) {
        bh_json_each(m, sides[s]) {
            const struct bh_json *want = bh_json_get(expect, m->key.p);
            const struct bh_json *have = bh_json_get(got, m->key.p);
            if (same_field(a, m->key.p, expect, want, have))
                continue;
            *ret_want = want;
            *ret_have = have;
            return m->key.p;
        }
    }
    return NULL;
}
