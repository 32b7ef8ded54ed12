/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/scenario/expect.c - is it as the scenario says it shall be?
 */
#include <stdio.h>

#include "simulator/scenario/scenario_int.h"

struct count {
    int64_t all, scheduled, pending,
        elsewhere;  /* elsewhere: bound, but not to the node asked for */
    int64_t reason; /* pending, and the message says so */
};

/* Pods that exist now and match. */
static struct bh_sim_objs pods_of(struct bh_run *r, const struct bh_json *e)
{
    struct bh_sim_objs l = bh_sim_listed(r->w.sim, bh_sim_type_find("", "v1", "pods"),
                                         bh_json_get_str(e, "namespace"));

    bh_run_select(&l, bh_json_get_str(e, "pods"));
    return l;
}

static struct count count_pods(struct bh_run *r, const struct bh_json *e, const char *node,
                               const char *reason)
{
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = pods_of(r, e);
    struct count n = {.all = (int64_t)l.n};

    for (size_t i = 0; i < l.n; i++) {
        const struct bh_sim_obj *pod = l.v[i];
        const struct bh_run_pod *p = bh_run_pod_of(r, pod->uid);
        if (*pod->node_name) {
            n.scheduled++;
            n.elsewhere += node && !bh_streq(node, pod->node_name);
        } else if (!bh_world_finished(pod)) {
            n.pending++;
            n.reason += reason && p && p->message && strstr(p->message, reason);
        }
    }
    return n;
}

/* ---- skew ------------------------------------------------------------------------------------ */

/* Largest minus smallest number of pods in a domain; empty domains count. */
static int64_t skew_of(struct bh_run *r, const struct bh_json *e)
{
    const struct bh_sim_type *node_type = bh_sim_type_find("", "v1", "nodes");
    const char *key = bh_json_get_str(e, "topologyKey");
    BH_CLEANUP(bh_map_fini) struct bh_map domains = {0}; /* value -> pods + 1 */
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs pods = pods_of(r, e);
    BH_CLEANUP(bh_sim_objs_fini)
    struct bh_sim_objs nodes = bh_sim_listed(r->w.sim, node_type, NULL);
    struct bh_map_entry *x;
    int64_t most = 0, least = INT64_MAX;

    for (size_t i = 0; i < nodes.n; i++) {
        const char *d = bh_sim_obj_label(nodes.v[i], key);
        if (d)
            bh_map_put(&domains, d, strlen(d), (void *)(uintptr_t)1);
    }
    for (size_t i = 0; i < pods.n; i++) {
        const struct bh_sim_obj *node = bh_sim_get(r->w.sim, node_type, "", pods.v[i]->node_name);
        const char *d = node ? bh_sim_obj_label(node, key) : NULL;
        if (d && !bh_world_finished(pods.v[i]))
            bh_map_put(
                &domains, d, strlen(d),
                (void *)((uintptr_t)bh_map_get(&domains, d, strlen(d)) + 1)); /* all are there */
    }
    for (size_t it = 0; (x = bh_map_next(&domains, &it));) {
        most = BH_MAX(most, (int64_t)(uintptr_t)x->value - 1);
        least = BH_MIN(least, (int64_t)(uintptr_t)x->value - 1);
    }
    return least == INT64_MAX ? 0 : most - least;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

struct verdict {
    struct bh_buf text, actual;
    bool passed;
};

/* What is said next goes there. */
static struct bh_buf *next(struct bh_buf *b)
{
    if (b->n)
        bh_buf_adds(b, ", ");
    return b;
}

/* N: so many; N%: at least that share. */
static void amount(struct verdict *v, const struct bh_json *want, const char *what, int64_t n,
                   int64_t all)
{
    bool share = want->type == BH_JSON_STRING;
    int64_t wanted = bh_field_amount(want, all);

    bh_buf_addf(next(&v->text), "%s%.20s %s", share ? "at least " : "", want->s.p, what);
    bh_buf_addf(next(&v->actual), "%lld of %lld %s", (long long)n, (long long)all, what);
    v->passed &= share ? n >= wanted : n == wanted;
}

static void about_pods(struct bh_run *r, const struct bh_json *e, struct verdict *v)
{
    const char *node = bh_json_get_str(e, "node"), *reason = bh_json_get_str(e, "reason");
    const char *sel = bh_json_get_str(e, "pods"), *ns = bh_json_get_str(e, "namespace");
    const struct count n = count_pods(r, e, node, reason);
    const struct {
        const char *field, *what;
        int64_t n;
    } amounts[] = {{"count", "pods", n.all},
                   {"scheduled", "scheduled", n.scheduled},
                   {"pending", "pending", n.pending}};
    const struct bh_json *x;

    bh_buf_addf(&v->text, "pods %.200s%s%.100s", sel && *sel ? sel : "of any label",
                ns ? " in " : "", ns ? ns : "");
    bh_buf_addf(&v->actual, "%lld pods", (long long)n.all);
    for (size_t i = 0; i < BH_ARRAY_LEN(amounts); i++)
        if ((x = bh_json_get(e, amounts[i].field)))
            amount(v, x, amounts[i].what, amounts[i].n, n.all);
    if (reason) {
        bh_buf_addf(next(&v->text), "pending because of \"%.200s\"", reason);
        bh_buf_addf(next(&v->actual), "%lld of %lld pending so", (long long)n.reason,
                    (long long)n.pending);
        v->passed &= n.reason && n.reason == n.pending;
    }
    if (node) {
        bh_buf_addf(next(&v->text), "all on node %.253s", node);
        bh_buf_addf(next(&v->actual), "%lld elsewhere", (long long)(n.elsewhere + n.pending));
        v->passed &= n.all && !n.elsewhere && !n.pending;
    }
    if ((x = bh_json_get(e, "maxSkew"))) {
        int64_t skew = skew_of(r, e);
        bh_buf_addf(next(&v->text), "skew over %.200s at most %s",
                    bh_json_get_text(e, "topologyKey"), x->s.p);
        bh_buf_addf(next(&v->actual), "skew %lld", (long long)skew);
        v->passed &= skew <= bh_json_get_i64(e, "maxSkew", 0);
    }
}

static void about_number(const struct bh_json *e, struct verdict *v, const char *what, double x,
                         bool known)
{
    const struct bh_json *least = bh_json_get(e, "atLeast"), *most = bh_json_get(e, "atMost");

    bh_buf_addf(&v->text, "%.80s%s%.20s%s%.20s", what, least ? " at least " : "",
                least ? least->s.p : "", most ? " at most " : "", most ? most->s.p : "");
    if (known)
        bh_buf_addf(&v->actual, "%.6g", x);
    else
        bh_buf_addf(&v->actual, "there is no %.80s", what);
    v->passed = known && (!least || x >= strtod(least->s.p, NULL)) &&
                (!most || x <= strtod(most->s.p, NULL));
}

static void about_utilisation(struct bh_run *r, const struct bh_json *e, struct verdict *v)
{
    const char *name = bh_json_get_str(e, "utilisation");
    double alloc = 0, used = 0;
    uint32_t i = 0;
    char what[120];

    while (i < r->n_resources && !bh_streq(r->resource_name[i], name))
        i++;
    for (size_t k = 0; i < r->n_resources && k < r->n_nodes; k++) {
        alloc += r->node[k]->alive ? (double)r->node[k]->alloc[i] : 0;
        used += r->node[k]->alive ? (double)r->node[k]->used[i] : 0;
    }
    snprintf(what, sizeof what, "utilisation of %.80s", name);
    about_number(e, v, what, alloc > 0 ? used / alloc : 0, i < r->n_resources);
}

void bh_run_expect(struct bh_run *r, void *expectation)
{
    const struct bh_json *e = expectation;
    const char *only = bh_json_get_str(e, "scheduler"), *metric = bh_json_get_str(e, "metric");
    const char *name = bh_json_get_str(e, "name");
    struct verdict v = {.passed = true};
    double x = 0;

    if (only && !bh_streq(only, r->scheduler->name))
        return;
    if (metric) {
        bool known = bh_run_metric(r, metric, &x);
        about_number(e, &v, metric, x, known);
    } else if (bh_json_get(e, "utilisation")) {
        about_utilisation(r, e, &v);
    } else {
        about_pods(r, e, &v);
    }
    r->verdict = bh_reallocarray(r->verdict, r->n_verdicts + 1, sizeof *r->verdict);
    r->verdict[r->n_verdicts++] =
        (struct bh_run_verdict){.text = bh_arena_printf(&r->keep, "%s%s%s", name ? name : "",
                                                        name ? ": " : "", bh_buf_str(&v.text)),
                                .actual = bh_arena_strdup(&r->keep, bh_buf_str(&v.actual)),
                                .passed = v.passed,
                                .at_ns = bh_run_at(r),
                                .line = e->line};
    bh_buf_fini(&v.text);
    bh_buf_fini(&v.actual);
}
