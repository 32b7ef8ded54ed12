/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/scenario/result.c - what came of the runs, as JSON (docs/scenarios.md)
 *
 * Numbers that were divided are rounded, so that the text does not hang on the last bit. Nothing of
 * the machine or of the real time goes in, unless `times` was asked for.
 */
#include <stdio.h>

#include "simulator/scenario/scenario_int.h"

#define DIFFERENT_MOST 100000
#define LINE_MEMBERS   12

/* ---- writing --------------------------------------------------------------------------------- */

static bool is_leaf(const struct bh_json *v)
{
    return v->type != BH_JSON_ARRAY && v->type != BH_JSON_OBJECT;
}

/* Fits on a line: plain values, and in an object lists of them. */
static bool is_line(const struct bh_json *v)
{
    if (v->type == BH_JSON_OBJECT && v->c.n > LINE_MEMBERS)
        return false;
    bh_json_each(c, v) {
        if (is_leaf(c))
            continue;
        if (v->type == BH_JSON_ARRAY)
            return false;
        bh_json_each(g, c)
            if (!is_leaf(g))
                return false;
    }
    return true;
}

static void write_value(struct bh_buf *out, const struct bh_json *v, unsigned depth)
{
    bool object = v->type == BH_JSON_OBJECT;

    if (is_leaf(v) || !v->c.n || (depth > 1 && is_line(v))) {
        bh_json_write(out, v);
        return;
    }
    bh_buf_adds(out, object ? "{\n" : "[\n");
    bh_json_each(c, v) {
        bh_buf_addf(out, "%*s", (int)(2 * depth + 2), "");
        if (object) {
            bh_buf_add_json_str(out, c->key.p, c->key.n);
            bh_buf_adds(out, ": ");
        }
        write_value(out, c, depth + 1);
        bh_buf_adds(out, c->next ? ",\n" : "\n");
    }
    bh_buf_addf(out, "%*s%c", (int)(2 * depth), "", object ? '}' : ']');
}

/* ---- numbers --------------------------------------------------------------------------------- */

static struct bh_json *number(struct bh_arena *a, double x, unsigned digits)
{
    struct bh_json *v = bh_json_new(a, BH_JSON_NUMBER);
    char text[64];
    int n = snprintf(text, sizeof text, "%.*f", (int)digits, x);

    while (n > 1 && strchr(text, '.') && (text[n - 1] == '0' || text[n - 1] == '.')) {
        bool dot = text[n - 1] == '.';
        text[--n] = '\0';
        if (dot)
            break;
    }
    if (bh_streq(text, "-0"))
        n = snprintf(text, sizeof text, "0");
    v->s = (struct bh_str){bh_arena_strndup(a, text, (size_t)n), (size_t)n};
    return v;
}

static int cmp_i64(const void *x, const void *y)
{
    return BH_CMP(*(const int64_t *)x, *(const int64_t *)y);
}

/* Smallest value that q percent are not above. v is sorted. */
static int64_t percentile(const int64_t *v, size_t n, unsigned q)
{
    size_t at = (n * q + 99) / 100;

    return n ? v[at ? at - 1 : 0] : 0;
}

/* What is told over time: of a resource, but for PENDING. */
enum series { SHARE, STRANDED, SKEW, PENDING };

static double sampled(const struct bh_run_sample *s, enum series what, uint32_t i)
{
    return what == PENDING    ? s->pending
           : what == SHARE    ? (double)s->share[i]
           : what == STRANDED ? (double)s->stranded[i]
                              : (double)s->skew[i];
}

/* Mean of a series over time: a sample holds until the next one. */
static double mean_of(const struct bh_run *r, enum series what, uint32_t i)
{
    double sum = 0, time = 0;

    for (size_t k = 0; k + 1 < r->n_samples; k++) {
        double dt = (double)(r->sample[k + 1].at_ns - r->sample[k].at_ns);
        sum += sampled(&r->sample[k], what, i) * dt;
        time += dt;
    }
    return time > 0 ? sum / time : 0;
}

/* ---- summary --------------------------------------------------------------------------------- */

struct metric {
    const char *name;
    double value;
    unsigned digits;
};
#define METRICS_MOST (24 + 5 * BH_RUN_RESOURCES)

static size_t add_resource_metrics(const struct bh_run *r, struct bh_arena *a, struct metric *m)
{
    size_t n = 0;

    for (uint32_t i = 0; i < r->n_resources && r->n_samples; i++) {
        const struct bh_run_sample *last = &r->sample[r->n_samples - 1];
        const char *name = r->resource_name[i];
        m[n++] = (struct metric){bh_arena_printf(a, "utilisation.mean.%s", name),
                                 mean_of(r, SHARE, i), 4};
        m[n++] = (struct metric){bh_arena_printf(a, "utilisation.end.%s", name),
                                 (double)last->share[i], 4};
        m[n++] = (struct metric){bh_arena_printf(a, "stranded.mean.%s", name),
                                 mean_of(r, STRANDED, i), 4};
        if (i < 2)
            m[n++] =
                (struct metric){bh_arena_printf(a, "skew.mean.%s", name), mean_of(r, SKEW, i), 4};
    }
    return n;
}

static size_t metrics_of(const struct bh_run *r, struct bh_arena *a, struct metric *m)
{
    static const char *const counts[BH_RUN_STATES] = {
        "pods.waiting",   "pods.unschedulable", "pods.error",  "pods.bound",
        "pods.completed", "pods.preempted",     "pods.deleted"};
    static const struct {
        const char *name;
        unsigned percent;
    } ranks[] = {
        {"latency.p50", 50}, {"latency.p90", 90}, {"latency.p99", 99}, {"latency.max", 100}};
    int64_t *latency = bh_arena_new_array(a, int64_t, r->n_pods + 1); /* creation to binding */
    size_t n = 0, n_bound = 0, in_state[BH_RUN_STATES] = {0}, used = 0;
    uint32_t most = 0;

    for (size_t i = 0; i < r->n_pods; i++) {
        in_state[r->pod[i]->state]++;
        if (r->pod[i]->bound_ns >= 0 && r->pod[i]->attempts)
            latency[n_bound++] = r->pod[i]->bound_ns - r->pod[i]->created_ns;
    }
    for (size_t i = 0; i < r->n_nodes; i++)
        used += r->node[i]->alive && r->node[i]->pods;
    qsort(latency, n_bound, sizeof *latency, cmp_i64);
    for (size_t i = 0; i < r->n_samples; i++)
        most = BH_MAX(most, r->sample[i].pending);
    m[n++] = (struct metric){"pods.created", (double)r->n_pods, 0};
    for (unsigned i = 0; i < BH_RUN_STATES; i++)
        m[n++] = (struct metric){counts[i], (double)in_state[i], 0};
    m[n++] = (struct metric){"attempts", (double)r->attempts, 0};
    m[n++] = (struct metric){"attempts.failed", (double)r->failed_attempts, 0};
    m[n++] = (struct metric){"bindings", (double)r->bound, 0};
    m[n++] = (struct metric){"preemptions", (double)r->preemptions, 0};
    for (size_t i = 0; i < BH_ARRAY_LEN(ranks); i++)
        m[n++] = (struct metric){ranks[i].name,
                                 (double)percentile(latency, n_bound, ranks[i].percent) / 1e9, 6};
    m[n++] = (struct metric){"pending.mean", mean_of(r, PENDING, 0), 3};
    m[n++] = (struct metric){"pending.max", most, 0};
    m[n++] = (struct metric){"nodes.used", (double)used, 0};
    m[n++] = (struct metric){"duration", (double)bh_run_at(r) / 1e9, 6};
    return n + add_resource_metrics(r, a, m + n);
}

bool bh_run_metric(const struct bh_run *r, const char *name, double *ret)
{
    struct metric m[METRICS_MOST];
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    bool found = false;

    for (size_t i = 0, n = metrics_of(r, &a, m); i < n && !found; i++) {
        found = bh_streq(m[i].name, name);
        *ret = found ? m[i].value : *ret;
    }
    return found;
}

/* ---- series ---------------------------------------------------------------------------------- */

static void add_shares(const struct bh_run *r, struct bh_arena *a, struct bh_json *series,
                       const char *name, enum series what)
{
    struct bh_json *o = bh_json_obj_at(a, series, name);

    for (uint32_t i = 0; i < r->n_resources; i++) {
        struct bh_json *l = bh_json_list_at(a, o, r->resource_name[i]);
        for (size_t k = 0; k < r->n_samples; k++)
            bh_json_push(l, number(a, sampled(&r->sample[k], what, i), 4));
    }
}

static void add_series(const struct bh_run *r, struct bh_arena *a, struct bh_json *out)
{
    static const char *const names[] = {"at_ns",   "nodes",    "pods",
                                        "pending", "bindings", "attempts"};
    static const struct bh_run_sample none;
    struct bh_json *s = bh_json_obj_at(a, out, "series");
    const struct bh_run_sample *before = &none;

    for (size_t i = 0; i < BH_ARRAY_LEN(names); i++)
        bh_json_list_at(a, s, names[i]);
    for (size_t k = 0; k < r->n_samples; k++) {
        const struct bh_run_sample *x = &r->sample[k];
        const int64_t values[BH_ARRAY_LEN(names)] = {
            x->at_ns,
            x->nodes,
            x->pods,
            x->pending,
            (int64_t)(x->bound - before->bound),
            (int64_t)(x->attempts - before->attempts),
        };
        for (size_t i = 0; i < BH_ARRAY_LEN(names); i++)
            bh_json_push(bh_json_get(s, names[i]), bh_json_new_i64(a, values[i]));
        before = x;
    }
    add_shares(r, a, s, "utilisation", SHARE);
    add_shares(r, a, s, "stranded", STRANDED);
    add_shares(r, a, s, "skew", SKEW);
}

/* ---- objects --------------------------------------------------------------------------------- */

static void add_timeline(const struct bh_run *r, struct bh_arena *a, struct bh_json *out)
{
    struct bh_json *list = bh_json_list_at(a, out, "timeline");

    for (size_t i = 0; i < r->n_events; i++) {
        const struct bh_run_event *e = &r->event[i];
        bh_json_append(a, list,
                       "at_ns: %ld, what: %s, kind?: %s, namespace?: %s, name?: %s, node?: %s, "
                       "detail?: %s",
                       e->at_ns, e->what, e->kind, e->ns, e->name, e->node, e->detail);
    }
    bh_json_set_i64(a, out, "timelineLeftOut", (int64_t)r->events_left_out);
}

static void add_pods(const struct bh_run *r, struct bh_arena *a, struct bh_json *out)
{
    struct bh_json *list = bh_json_list_at(a, out, "pods");

    for (size_t i = 0; i < r->n_pods; i++) {
        const struct bh_run_pod *p = r->pod[i];
        struct bh_json *o = bh_json_append(
            a, list, "namespace: %s, name: %s, result: %s, node?: %s, created_ns: %ld", p->ns,
            p->name, bh_run_state_names[p->state], p->node ? p->node->name : NULL, p->created_ns);
        if (p->bound_ns >= 0)
            bh_json_set_i64(a, o, "bound_ns", p->bound_ns);
        if (p->gone_ns >= 0)
            bh_json_set_i64(a, o, "gone_ns", p->gone_ns);
        bh_json_add(a, o, "attempts: %u, preemptedBy?: %s", p->attempts, p->preemptor);
    }
}

static void add_nodes(const struct bh_run *r, struct bh_arena *a, struct bh_json *out)
{
    struct bh_json *list = bh_json_list_at(a, out, "nodes");

    for (size_t i = 0; i < r->n_nodes; i++) {
        const struct bh_run_node *n = r->node[i];
        if (!n->alive)
            continue;
        struct bh_json *o =
            bh_json_append(a, list, "name: %s, pods: %u, unschedulable?: %i, utilisation: {}",
                           n->name, n->pods, n->unschedulable);
        for (uint32_t k = 0; k < r->n_resources; k++)
            if (n->alloc[k] > 0)
                bh_json_set(a, bh_json_get(o, "utilisation"), r->resource_name[k],
                            number(a, (double)n->used[k] / (double)n->alloc[k], 4));
    }
}

struct reason {
    const char *message;
    uint32_t n;
};

static int cmp_reason(const void *x, const void *y)
{
    const struct reason *a = x, *b = y;

    return a->n != b->n ? BH_CMP(b->n, a->n) : strcmp(a->message, b->message);
}

static bool still_pending(const struct bh_run_pod *p)
{
    return p->gone_ns < 0 && p->state <= BH_RUN_ERROR;
}

/* How many pods are pending for each message, most first. */
static void add_pending(const struct bh_run *r, struct bh_arena *a, struct bh_json *out)
{
    struct reason *v = bh_calloc(r->n_pods + 1, sizeof *v);
    struct bh_json *list = bh_json_list_at(a, out, "pendingReasons");
    struct bh_map known = {0}; /* message -> index + 1 */
    size_t n = 0;

    for (size_t i = 0; i < r->n_pods; i++) {
        const struct bh_run_pod *p = r->pod[i];
        const char *m = p->message ? p->message : "never tried";
        if (!still_pending(p))
            continue;
        uintptr_t at = (uintptr_t)bh_map_get(&known, m, strlen(m));
        if (!at) {
            v[n] = (struct reason){m, 0};
            at = ++n;
            bh_map_put(&known, m, strlen(m), (void *)at);
        }
        v[at - 1].n++;
    }
    qsort(v, n, sizeof *v, cmp_reason);
    for (size_t i = 0; i < n; i++)
        bh_json_append(a, list, "count: %u, message: %s", v[i].n, v[i].message);
    bh_map_fini(&known);
    free(v);
}

static void add_unschedulable(const struct bh_run *r, struct bh_arena *a, struct bh_json *out)
{
    struct bh_json *list = bh_json_list_at(a, out, "unschedulable");

    for (size_t i = 0; i < r->n_pods; i++) {
        const struct bh_run_pod *p = r->pod[i];
        if (still_pending(p))
            bh_json_append(a, list,
                           "namespace: %s, name: %s, attempts: %u, reason?: %s, message?: %s",
                           p->ns, p->name, p->attempts, p->reason, p->message);
    }
}

static bool add_expectations(const struct bh_run *r, struct bh_arena *a, struct bh_json *out)
{
    struct bh_json *list = bh_json_list_at(a, out, "expectations");
    bool passed = true;

    for (size_t i = 0; i < r->n_verdicts; i++) {
        const struct bh_run_verdict *v = &r->verdict[i];
        bh_json_append(a, list, "passed: %i, at_ns: %ld, expected: %s, found: %s, line?: %u",
                       v->passed, v->at_ns, v->text, v->actual, v->line);
        passed &= v->passed;
    }
    return passed;
}

static void add_result(const struct bh_run *r, struct bh_arena *a, struct bh_json *list,
                       bool *passed)
{
    struct bh_json *o =
        bh_json_append(a, list, "name: %s, end_ns: %ld", r->scheduler->name, r->end_ns);

    struct bh_json *s = bh_json_obj_at(a, o, "summary");
    struct metric m[METRICS_MOST];
    for (size_t i = 0, n = metrics_of(r, a, m); i < n; i++)
        bh_json_set(a, s, m[i].name, number(a, m[i].value, m[i].digits));
    if (r->o->times) {
        int64_t *v = bh_arena_new_array(a, int64_t, r->attempts + 1);
        for (uint64_t i = 0; i < r->attempts; i++)
            v[i] = (int64_t)r->took_ns[i];
        qsort(v, r->attempts, sizeof *v, cmp_i64);
        bh_json_add(a, o,
                    "times: {decision_p50_ns: %ld, decision_p99_ns: %ld, deciding_ns: %lu, "
                    "takingIn_ns: %lu}",
                    percentile(v, r->attempts, 50), percentile(v, r->attempts, 99),
                    r->w.offline.decide_ns, r->w.offline.intake_ns);
    }
    for (uint32_t i = 0; i < r->n_resources; i++)
        bh_json_push(bh_json_list_at(a, o, "resources"), bh_json_new_cstr(a, r->resource_name[i]));
    *passed &= add_expectations(r, a, o);
    add_pending(r, a, o);
    add_unschedulable(r, a, o);
    add_series(r, a, o);
    add_nodes(r, a, o);
    add_pods(r, a, o);
    add_timeline(r, a, o);
}

/* ---- comparison ------------------------------------------------------------------------------ */

/* One pod in all runs; true when they agree about its node. */
static bool compare_pod(const struct bh_run_pod *p, const struct bh_map *keys, uint32_t n,
                        struct bh_arena *a, struct bh_json *list)
{
    const char *first = p->node ? p->node->name : "";
    bool same = true;

    for (uint32_t i = 1; i < n && same; i++) {
        const struct bh_run_pod *o = bh_map_get(&keys[i], p->key, strlen(p->key));
        same = o && bh_streq(first, o->node ? o->node->name : "");
    }
    if (same || list->c.n >= DIFFERENT_MOST)
        return same;
    struct bh_json *o =
        bh_json_append(a, list, "namespace: %s, name: %s, nodes: []", p->ns, p->name);
    for (uint32_t i = 0; i < n; i++) {
        const struct bh_run_pod *x = bh_map_get(&keys[i], p->key, strlen(p->key));
        bh_json_push(bh_json_get(o, "nodes"), x && x->node ? bh_json_new_cstr(a, x->node->name)
                                                           : bh_json_new(a, BH_JSON_NULL));
    }
    return false;
}

static struct bh_json *comparison(const struct bh_run *runs, uint32_t n, struct bh_arena *a)
{
    struct bh_json *out = bh_json_make(a, "schedulers: [], pods: {}, different: []");
    struct bh_map *keys = bh_calloc(n, sizeof *keys);
    int64_t same = 0;

    for (uint32_t i = 0; i < n; i++) {
        bh_json_push(bh_json_get(out, "schedulers"), bh_json_new_cstr(a, runs[i].scheduler->name));
        for (size_t k = 0; k < runs[i].n_pods; k++)
            bh_map_put(&keys[i], runs[i].pod[k]->key, strlen(runs[i].pod[k]->key), runs[i].pod[k]);
    }
    for (size_t k = 0; k < runs[0].n_pods; k++)
        same += compare_pod(runs[0].pod[k], keys, n, a, bh_json_get(out, "different"));
    bh_json_add(a, out, "pods: {same: %ld, different: %ld}", same, (int64_t)runs[0].n_pods - same);
    for (uint32_t i = 0; i < n; i++)
        bh_map_fini(&keys[i]);
    free(keys);
    return out;
}

/* ---- the whole ------------------------------------------------------------------------------- */

void bh_result(const struct bh_scenario *s, const struct bh_run *runs, uint32_t n,
               struct bh_buf *ret_json, bool *ret_passed)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    struct bh_json *out;
    char begin[32];

    bh_time_format_ns(begin, s->begin_ns);
    out =
        bh_json_make(&a,
                     "apiVersion: " BH_SCENARIO_API ", kind: ScenarioResult, version: %s, "
                     "passed: true, scenario: {name: %s, seed: %ld, tieBreak: %s, begin: %s, "
                     "decision_ns: %ld, kubeletDelay_ns: %ld}, comparison?: %p",
                     BH_VERSION, s->name, (int64_t)s->seed, s->ties_random ? "random" : "first",
                     begin, s->decision_ns, s->kubelet_ns, n > 1 ? comparison(runs, n, &a) : NULL);
    struct bh_json *list = bh_json_list_at(&a, out, "schedulers");
    *ret_passed = true;
    for (uint32_t i = 0; i < n; i++)
        add_result(&runs[i], &a, list, ret_passed);
    bh_json_get(out, "passed")->b = *ret_passed;
    write_value(ret_json, out, 0);
    bh_buf_addc(ret_json, '\n');
}
