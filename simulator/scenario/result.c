/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/scenario/result.c - what came of the runs, as JSON (docs/scenarios.md)
 *
 * Numbers that were divided are rounded, so that the text does not hang on the last bit. Nothing of
 * the machine or of the real time goes in, unless `times` was asked for.
 */
#include <math.h>
#include <stdio.h>

#include "simulator/scenario/scenario_int.h"

#define DIFFERENT_MOST 100000
#define LINE_MEMBERS   12

/* ---- writing -----------------------------------------------------------------------------------
 */

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
        bh_json_each(g, c) {
            if (!is_leaf(g))
                return false;
        }
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

/* ---- numbers -----------------------------------------------------------------------------------
 */

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
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;

    return (a > b) - (a < b);
}

/* Smallest value that q percent are not above. v is sorted. */
static int64_t percentile(const int64_t *v, size_t n, unsigned q)
{
    size_t at = (n * q + 99) / 100;

    return n ? v[at ? at - 1 : 0] : 0;
}

struct latency {
    int64_t p50, p90, p99, max;
    size_t n;
};

static struct latency latency_of(const struct bh_run *r)
{
    int64_t *v = bh_calloc(r->n_pods + 1, sizeof *v);
    struct latency l = {0};

    for (size_t i = 0; i < r->n_pods; i++)
        if (r->pod[i]->bound_ns >= 0 && r->pod[i]->attempts)
            v[l.n++] = r->pod[i]->bound_ns - r->pod[i]->created_ns;
    qsort(v, l.n, sizeof *v, cmp_i64);
    l.p50 = percentile(v, l.n, 50);
    l.p90 = percentile(v, l.n, 90);
    l.p99 = percentile(v, l.n, 99);
    l.max = l.n ? v[l.n - 1] : 0;
    free(v);
    return l;
}

/* Mean of a series over time: a sample holds until the next one. */
static double mean_of(const struct bh_run *r, double (*get)(const struct bh_run_sample *, uint32_t),
                      uint32_t i)
{
    double sum = 0, time = 0;

    for (size_t k = 0; k + 1 < r->n_samples; k++) {
        double dt = (double)(r->sample[k + 1].at_ns - r->sample[k].at_ns);
        sum += get(&r->sample[k], i) * dt;
        time += dt;
    }
    return time > 0 ? sum / time : 0;
}

static double get_share(const struct bh_run_sample *s, uint32_t i)
{
    return (double)s->share[i];
}

static double get_pending(const struct bh_run_sample *s, uint32_t i)
{
    (void)i;
    return s->pending;
}

static double get_stranded(const struct bh_run_sample *s, uint32_t i)
{
    return (double)s->stranded[i];
}

static double get_skew(const struct bh_run_sample *s, uint32_t i)
{
    return (double)s->skew[i];
}

/* ---- summary -----------------------------------------------------------------------------------
 */

struct metric {
    const char *name;
    double value;
    unsigned digits;
};
#define METRICS_MOST (24 + 5 * BH_RUN_RESOURCES)

static size_t nodes_used(const struct bh_run *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n_nodes; i++)
        n += r->node[i]->alive && r->node[i]->pods;
    return n;
}

static size_t count_state(const struct bh_run *r, enum bh_run_state state)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n_pods; i++)
        n += r->pod[i]->state == state;
    return n;
}

static size_t add_resource_metrics(const struct bh_run *r, struct bh_arena *a, struct metric *m)
{
    size_t n = 0;

    for (uint32_t i = 0; i < r->n_resources && r->n_samples; i++) {
        const struct bh_run_sample *last = &r->sample[r->n_samples - 1];
        const char *name = r->resource_name[i];
        m[n++] = (struct metric){bh_arena_printf(a, "utilisation.mean.%s", name),
                                 mean_of(r, get_share, i), 4};
        m[n++] = (struct metric){bh_arena_printf(a, "utilisation.end.%s", name),
                                 (double)last->share[i], 4};
        m[n++] = (struct metric){bh_arena_printf(a, "stranded.mean.%s", name),
                                 mean_of(r, get_stranded, i), 4};
        if (i < 2)
            m[n++] = (struct metric){bh_arena_printf(a, "skew.mean.%s", name),
                                     mean_of(r, get_skew, i), 4};
    }
    return n;
}

static size_t metrics_of(const struct bh_run *r, struct bh_arena *a, struct metric *m)
{
    static const char *const counts[BH_RUN_STATES] = {
        "pods.waiting",   "pods.unschedulable", "pods.error",  "pods.bound",
        "pods.completed", "pods.preempted",     "pods.deleted"};
    struct latency l = latency_of(r);
    uint32_t most = 0;
    size_t n = 0;

    for (size_t i = 0; i < r->n_samples; i++)
        most = BH_MAX(most, r->sample[i].pending);
    m[n++] = (struct metric){"pods.created", (double)r->n_pods, 0};
    for (unsigned i = 0; i < BH_RUN_STATES; i++)
        m[n++] = (struct metric){counts[i], (double)count_state(r, i), 0};
    m[n++] = (struct metric){"attempts", (double)r->attempts, 0};
    m[n++] = (struct metric){"attempts.failed", (double)r->failed_attempts, 0};
    m[n++] = (struct metric){"bindings", (double)r->bound, 0};
    m[n++] = (struct metric){"preemptions", (double)r->preemptions, 0};
    m[n++] = (struct metric){"latency.p50", (double)l.p50 / 1e9, 6};
    m[n++] = (struct metric){"latency.p90", (double)l.p90 / 1e9, 6};
    m[n++] = (struct metric){"latency.p99", (double)l.p99 / 1e9, 6};
    m[n++] = (struct metric){"latency.max", (double)l.max / 1e9, 6};
    m[n++] = (struct metric){"pending.mean", mean_of(r, get_pending, 0), 3};
    m[n++] = (struct metric){"pending.max", most, 0};
    m[n++] = (struct metric){"nodes.used", (double)nodes_used(r), 0};
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

static void add_summary(const struct bh_run *r, struct bh_arena *a, struct bh_json *out)
{
    struct bh_json *s = bh_json_obj_at(a, out, "summary");
    struct metric m[METRICS_MOST];

    for (size_t i = 0, n = metrics_of(r, a, m); i < n; i++)
        bh_json_set(a, s, m[i].name, number(a, m[i].value, m[i].digits));
}

/* ---- series ------------------------------------------------------------------------------------
 */

static struct bh_json *list_at(struct bh_arena *a, struct bh_json *obj, const char *key)
{
    return bh_json_set(a, obj, key, bh_json_new(a, BH_JSON_ARRAY));
}

static void add_shares(const struct bh_run *r, struct bh_arena *a, struct bh_json *series,
                       const char *name, double (*get)(const struct bh_run_sample *, uint32_t))
{
    struct bh_json *o = bh_json_obj_at(a, series, name);

    for (uint32_t i = 0; i < r->n_resources; i++) {
        struct bh_json *l = list_at(a, o, r->resource_name[i]);
        for (size_t k = 0; k < r->n_samples; k++)
            bh_json_push(l, number(a, get(&r->sample[k], i), 4));
    }
}

static void add_series(const struct bh_run *r, struct bh_arena *a, struct bh_json *out)
{
    struct bh_json *s = bh_json_obj_at(a, out, "series"), *at = list_at(a, s, "at_ns");
    struct bh_json *nodes = list_at(a, s, "nodes"), *pods = list_at(a, s, "pods");
    struct bh_json *pending = list_at(a, s, "pending"), *bindings = list_at(a, s, "bindings");
    struct bh_json *attempts = list_at(a, s, "attempts");
    uint64_t bound = 0, tried = 0;

    for (size_t k = 0; k < r->n_samples; k++) {
        const struct bh_run_sample *x = &r->sample[k];
        bh_json_push(at, bh_json_new_i64(a, x->at_ns));
        bh_json_push(nodes, bh_json_new_i64(a, x->nodes));
        bh_json_push(pods, bh_json_new_i64(a, x->pods));
        bh_json_push(pending, bh_json_new_i64(a, x->pending));
        bh_json_push(bindings, bh_json_new_i64(a, (int64_t)(x->bound - bound)));
        bh_json_push(attempts, bh_json_new_i64(a, (int64_t)(x->attempts - tried)));
        bound = x->bound;
        tried = x->attempts;
    }
    add_shares(r, a, s, "utilisation", get_share);
    add_shares(r, a, s, "stranded", get_stranded);
    add_shares(r, a, s, "skew", get_skew);
}

/* ---- objects -----------------------------------------------------------------------------------
 */

static void add_timeline(const struct bh_run *r, struct bh_arena *a, struct bh_json *out)
{
    struct bh_json *list = list_at(a, out, "timeline");

    for (size_t i = 0; i < r->n_events; i++) {
        const struct bh_run_event *e = &r->event[i];
        struct bh_json *o = bh_json_new(a, BH_JSON_OBJECT);
        bh_json_set_i64(a, o, "at_ns", e->at_ns);
        bh_json_set_str(a, o, "what", e->what);
        bh_json_set_text(a, o, "kind", e->kind);
        bh_json_set_text(a, o, "namespace", e->ns);
        bh_json_set_text(a, o, "name", e->name);
        bh_json_set_text(a, o, "node", e->node);
        bh_json_set_text(a, o, "detail", e->detail);
        bh_json_push(list, o);
    }
    bh_json_set_i64(a, out, "timelineLeftOut", (int64_t)r->events_left_out);
}

static void add_pods(const struct bh_run *r, struct bh_arena *a, struct bh_json *out)
{
    struct bh_json *list = list_at(a, out, "pods");

    for (size_t i = 0; i < r->n_pods; i++) {
        const struct bh_run_pod *p = r->pod[i];
        struct bh_json *o = bh_json_new(a, BH_JSON_OBJECT);
        bh_json_set_str(a, o, "namespace", p->ns);
        bh_json_set_str(a, o, "name", p->name);
        bh_json_set_str(a, o, "result", bh_run_state_names[p->state]);
        if (p->node)
            bh_json_set_str(a, o, "node", p->node->name);
        bh_json_set_i64(a, o, "created_ns", p->created_ns);
        if (p->bound_ns >= 0)
            bh_json_set_i64(a, o, "bound_ns", p->bound_ns);
        if (p->gone_ns >= 0)
            bh_json_set_i64(a, o, "gone_ns", p->gone_ns);
        bh_json_set_i64(a, o, "attempts", p->attempts);
        bh_json_set_text(a, o, "preemptedBy", p->preemptor);
        bh_json_push(list, o);
    }
}

static void add_nodes(const struct bh_run *r, struct bh_arena *a, struct bh_json *out)
{
    struct bh_json *list = list_at(a, out, "nodes");

    for (size_t i = 0; i < r->n_nodes; i++) {
        const struct bh_run_node *n = r->node[i];
        if (!n->alive)
            continue;
        struct bh_json *o = bh_json_new(a, BH_JSON_OBJECT);
        bh_json_set_str(a, o, "name", n->name);
        bh_json_set_i64(a, o, "pods", n->pods);
        if (n->unschedulable)
            bh_json_set_bool(a, o, "unschedulable", true);
        struct bh_json *u = bh_json_obj_at(a, o, "utilisation");
        for (uint32_t k = 0; k < r->n_resources; k++)
            if (n->alloc[k] > 0)
                bh_json_set(a, u, r->resource_name[k],
                            number(a, (double)n->used[k] / (double)n->alloc[k], 4));
        bh_json_push(list, o);
    }
}

struct reason {
    const char *message;
    uint32_t n;
};

static int cmp_reason(const void *x, const void *y)
{
    const struct reason *a = x, *b = y;

    return a->n != b->n ? (a->n < b->n) - (a->n > b->n) : strcmp(a->message, b->message);
}

static bool still_pending(const struct bh_run_pod *p)
{
    return p->gone_ns < 0 && p->state <= BH_RUN_ERROR;
}

/* How many pods are pending for each message, most first. */
static void add_pending(const struct bh_run *r, struct bh_arena *a, struct bh_json *out)
{
    struct reason *v = bh_calloc(r->n_pods + 1, sizeof *v);
    struct bh_json *list = list_at(a, out, "pendingReasons");
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
    for (size_t i = 0; i < n; i++) {
        struct bh_json *o = bh_json_new(a, BH_JSON_OBJECT);
        bh_json_set_i64(a, o, "count", v[i].n);
        bh_json_set_str(a, o, "message", v[i].message);
        bh_json_push(list, o);
    }
    bh_map_fini(&known);
    free(v);
}

static void add_unschedulable(const struct bh_run *r, struct bh_arena *a, struct bh_json *out)
{
    struct bh_json *list = list_at(a, out, "unschedulable");

    for (size_t i = 0; i < r->n_pods; i++) {
        const struct bh_run_pod *p = r->pod[i];
        if (!still_pending(p))
            continue;
        struct bh_json *o = bh_json_new(a, BH_JSON_OBJECT);
        bh_json_set_str(a, o, "namespace", p->ns);
        bh_json_set_str(a, o, "name", p->name);
        bh_json_set_i64(a, o, "attempts", p->attempts);
        bh_json_set_text(a, o, "reason", p->reason);
        bh_json_set_text(a, o, "message", p->message);
        bh_json_push(list, o);
    }
}

static bool add_expectations(const struct bh_run *r, struct bh_arena *a, struct bh_json *out)
{
    struct bh_json *list = list_at(a, out, "expectations");
    bool passed = true;

    for (size_t i = 0; i < r->n_verdicts; i++) {
        const struct bh_run_verdict *v = &r->verdict[i];
        struct bh_json *o = bh_json_new(a, BH_JSON_OBJECT);
        bh_json_set_bool(a, o, "passed", v->passed);
        bh_json_set_i64(a, o, "at_ns", v->at_ns);
        bh_json_set_str(a, o, "expected", v->text);
        bh_json_set_str(a, o, "found", v->actual);
        if (v->line)
            bh_json_set_i64(a, o, "line", v->line);
        bh_json_push(list, o);
        passed &= v->passed;
    }
    return passed;
}

static void add_times(const struct bh_run *r, struct bh_arena *a, struct bh_json *out)
{
    struct bh_json *t = bh_json_obj_at(a, out, "times");
    int64_t *v = bh_calloc(r->attempts + 1, sizeof *v);

    for (uint64_t i = 0; i < r->attempts; i++)
        v[i] = (int64_t)r->took_ns[i];
    qsort(v, r->attempts, sizeof *v, cmp_i64);
    bh_json_set_i64(a, t, "decision_p50_ns", percentile(v, r->attempts, 50));
    bh_json_set_i64(a, t, "decision_p99_ns", percentile(v, r->attempts, 99));
    bh_json_set_i64(a, t, "deciding_ns", (int64_t)r->w.offline.decide_ns);
    bh_json_set_i64(a, t, "takingIn_ns", (int64_t)r->w.offline.intake_ns);
    free(v);
}

static struct bh_json *scheduler_result(const struct bh_run *r, struct bh_arena *a, bool *passed)
{
    struct bh_json *o = bh_json_new(a, BH_JSON_OBJECT), *names;

    bh_json_set_str(a, o, "name", r->scheduler->name);
    bh_json_set_i64(a, o, "end_ns", r->end_ns);
    add_summary(r, a, o);
    if (r->o->times)
        add_times(r, a, o);
    names = list_at(a, o, "resources");
    for (uint32_t i = 0; i < r->n_resources; i++)
        bh_json_push(names, bh_json_new_cstr(a, r->resource_name[i]));
    *passed &= add_expectations(r, a, o);
    add_pending(r, a, o);
    add_unschedulable(r, a, o);
    add_series(r, a, o);
    add_nodes(r, a, o);
    add_pods(r, a, o);
    add_timeline(r, a, o);
    return o;
}

/* ---- comparison --------------------------------------------------------------------------------
 */

static const struct bh_run_pod *other_of(const struct bh_map *keys, const struct bh_run_pod *p)
{
    return bh_map_get(keys, p->key, strlen(p->key));
}

static void keys_of(const struct bh_run *r, struct bh_map *keys)
{
    for (size_t i = 0; i < r->n_pods; i++)
        bh_map_put(keys, r->pod[i]->key, strlen(r->pod[i]->key), r->pod[i]);
}

static struct bh_json *node_name(struct bh_arena *a, const struct bh_run_pod *p)
{
    return p && p->node ? bh_json_new_cstr(a, p->node->name) : bh_json_new(a, BH_JSON_NULL);
}

/* One pod in all runs; true when they agree about its node. */
static bool compare_pod(const struct bh_run_pod *p, const struct bh_map *keys, uint32_t n,
                        struct bh_arena *a, struct bh_json *list)
{
    const char *first = p->node ? p->node->name : "";
    bool same = true;

    for (uint32_t i = 1; i < n && same; i++) {
        const struct bh_run_pod *o = other_of(&keys[i], p);
        same = o && bh_streq(first, o->node ? o->node->name : "");
    }
    if (same || list->c.n >= DIFFERENT_MOST)
        return same;
    struct bh_json *o = bh_json_new(a, BH_JSON_OBJECT), *nodes;
    bh_json_set_str(a, o, "namespace", p->ns);
    bh_json_set_str(a, o, "name", p->name);
    nodes = list_at(a, o, "nodes");
    bh_json_push(nodes, node_name(a, p));
    for (uint32_t i = 1; i < n; i++)
        bh_json_push(nodes, node_name(a, other_of(&keys[i], p)));
    bh_json_push(list, o);
    return false;
}

static struct bh_json *comparison(const struct bh_run *runs, uint32_t n, struct bh_arena *a)
{
    struct bh_json *out = bh_json_new(a, BH_JSON_OBJECT), *names = list_at(a, out, "schedulers");
    struct bh_json *pods = bh_json_obj_at(a, out, "pods");
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);
    struct bh_map *keys = bh_calloc(n, sizeof *keys);
    int64_t same = 0;

    for (uint32_t i = 0; i < n; i++) {
        bh_json_push(names, bh_json_new_cstr(a, runs[i].scheduler->name));
        if (i)
            keys_of(&runs[i], &keys[i]);
    }
    for (size_t k = 0; k < runs[0].n_pods; k++)
        same += compare_pod(runs[0].pod[k], keys, n, a, list);
    bh_json_set_i64(a, pods, "same", same);
    bh_json_set_i64(a, pods, "different", (int64_t)runs[0].n_pods - same);
    bh_json_set(a, out, "different", list);
    for (uint32_t i = 0; i < n; i++)
        bh_map_fini(&keys[i]);
    free(keys);
    return out;
}

/* ---- the whole ---------------------------------------------------------------------------------
 */

static void add_scenario(const struct bh_scenario *s, struct bh_arena *a, struct bh_json *out)
{
    struct bh_json *o = bh_json_obj_at(a, out, "scenario");
    char begin[32];

    bh_time_format_ns(begin, s->begin_ns);
    bh_json_set_str(a, o, "name", s->name);
    bh_json_set_i64(a, o, "seed", (int64_t)s->seed);
    bh_json_set_str(a, o, "tieBreak", s->ties_random ? "random" : "first");
    bh_json_set_str(a, o, "begin", begin);
    bh_json_set_i64(a, o, "decision_ns", s->decision_ns);
    bh_json_set_i64(a, o, "kubeletDelay_ns", s->kubelet_ns);
}

void bh_result(const struct bh_scenario *s, const struct bh_run *runs, uint32_t n,
               struct bh_buf *ret_json, bool *ret_passed)
{
    struct bh_json *out, *list;
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};

    out = bh_json_new(&a, BH_JSON_OBJECT);
    bh_json_set_str(&a, out, "apiVersion", BH_SCENARIO_API);
    bh_json_set_str(&a, out, "kind", "ScenarioResult");
    bh_json_set_str(&a, out, "version", BH_VERSION);
    *ret_passed = true;
    struct bh_json *passed = bh_json_set_bool(&a, out, "passed", true);
    add_scenario(s, &a, out);
    if (n > 1)
        bh_json_set(&a, out, "comparison", comparison(runs, n, &a));
    list = list_at(&a, out, "schedulers");
    for (uint32_t i = 0; i < n; i++)
        bh_json_push(list, scheduler_result(&runs[i], &a, ret_passed));
    passed->b = *ret_passed;
    write_value(ret_json, out, 0);
    bh_buf_addc(ret_json, '\n');
}
