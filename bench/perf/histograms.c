/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/perf/histograms.c - the scheduler's histograms as upstream's data items
 *
 * Two texts of /metrics, before and after: what each series grew by. Upstream means to do the same
 * (it resets its metrics when a window opens), but its reset acts on a copy, so its numbers hold
 * the set-up as well; ours do not.
 * Upstream: component-base/metrics/testutil/metrics.go, scheduler_perf/util.go.
 */
#include "bench/perf/pipeline.h"

#define BOUNDS_MAX 64u
#define LABELS_MAX 2u

struct wanted { /* a metric and the labels that its items tell apart */
    const char *metric;
    const char *labels[LABELS_MAX];
    const struct bh_json *values[LABELS_MAX]; /* of each label; NULL = all */
};
static const struct wanted defaults[] = {
    {"scheduler_framework_extension_point_duration_seconds", {"extension_point"}, {0}},
    {"scheduler_scheduling_attempt_duration_seconds", {"result"}, {0}},
    {"scheduler_pod_scheduling_duration_seconds", {0}, {0}},
    {"scheduler_plugin_execution_duration_seconds", {"plugin", "extension_point"}, {0}},
    {"scheduler_queueing_hint_execution_duration_seconds", {"plugin", "event"}, {0}},
    {"scheduler_event_handling_duration_seconds", {"event"}, {0}},
};

struct group { /* one item */
    struct group *next;
    char *labels[LABELS_MAX];
    double bounds[BOUNDS_MAX], grown[BOUNDS_MAX + 1]; /* grown: cumulated, as the text has it */
    size_t n;
    double sum, count;
};
struct reading {
    const char *before, *after; /* texts of /metrics */
    struct bh_arena arena;
    const struct wanted *wanted;
    struct group *groups;
};

/* ---- lines ----------------------------------------------------------------------------------- */

/* Splits "name{labels} value"; false: a comment, or something else. */
static bool split_line(const char *line, size_t n, struct bh_str *ret_key, double *ret_v)
{
    const char *space = n && *line != '#' ? memrchr(line, ' ', n) : NULL;
    char text[64];

    if (!space || (size_t)(line + n - space - 1) >= sizeof text)
        return false;
    snprintf(text, sizeof text, "%.*s", (int)(line + n - space - 1), space + 1);
    *ret_key = (struct bh_str){line, (size_t)(space - line)};
    *ret_v = strtod(text, NULL);
    return true;
}

/* The value of a label inside "name{...}". */
static bool label_in(struct bh_str key, const char *label, struct bh_str *ret)
{
    size_t n = strlen(label);
    const char *end = key.p + key.n, *p = memchr(key.p, '{', key.n);

    while (p && p < end && *p != '}') {
        const char *name = p + 1, *eq = memchr(name, '=', (size_t)(end - name)), *close;
        if (!eq || eq + 1 >= end || eq[1] != '"')
            return false;
        for (close = eq + 2; close < end && *close != '"'; close++)
            close += *close == '\\';
        if ((size_t)(eq - name) == n && memcmp(name, label, n) == 0) {
            *ret = (struct bh_str){eq + 2, (size_t)(BH_MIN(close, end) - eq - 2)};
            return true;
        }
        p = close + 1;
    }
    return false;
}

static bool among(const struct bh_json *values, struct bh_str v)
{
    bh_json_each(e, values) {
        if (e->type == BH_JSON_STRING && bh_str_eqc(v, e->s.p))
            return true;
    }
    return !values;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static struct group *group_of(struct reading *x, struct bh_str key)
{
    struct bh_str v[LABELS_MAX] = {{0}};
    struct group *g;

    for (size_t i = 0; i < LABELS_MAX && x->wanted->labels[i]; i++)
        if (!label_in(key, x->wanted->labels[i], &v[i]) || !among(x->wanted->values[i], v[i]))
            return NULL;
    for (g = x->groups; g; g = g->next) {
        bool same = true;
        for (size_t i = 0; i < LABELS_MAX && x->wanted->labels[i]; i++)
            same &= bh_str_eqc(v[i], g->labels[i]);
        if (same)
            return g;
    }
    g = bh_arena_new(&x->arena, struct group);
    *g = (struct group){.next = x->groups};
    for (size_t i = 0; i < LABELS_MAX && x->wanted->labels[i]; i++)
        g->labels[i] = bh_arena_printf(&x->arena, "%.*s", (int)v[i].n, v[i].p);
    return x->groups = g;
}

static void add_bucket(struct group *g, struct bh_str le, double grown)
{
    char text[32];
    size_t i = 0;

    snprintf(text, sizeof text, "%.*s", (int)BH_MIN(le.n, sizeof text - 1), le.p);
    double bound = strtod(text, NULL);
    if (bh_str_eqc(le, "+Inf"))
        return; /* is the count */
    while (i < g->n && g->bounds[i] != bound)
        i++;
    if (i == BOUNDS_MAX)
        return;
    if (i == g->n)
        g->bounds[g->n++] = bound;
    g->grown[i] += grown;
}

static void take_line(struct reading *x, struct bh_str key, double grown)
{
    size_t n = strlen(x->wanted->metric);
    struct bh_str le;

    if (key.n <= n || memcmp(key.p, x->wanted->metric, n) != 0 || key.p[n] != '_')
        return;
    const char *suffix = key.p + n;
    size_t room = key.n - n;
    struct group *g = group_of(x, key);
    if (!g)
        return;
    if (room > 7 && memcmp(suffix, "_bucket", 7) == 0 && label_in(key, "le", &le))
        add_bucket(g, le, grown);
    else if (room >= 4 && memcmp(suffix, "_sum", 4) == 0)
        g->sum += grown;
    else if (room >= 6 && memcmp(suffix, "_count", 6) == 0)
        g->count += grown;
}

/* ---- items ----------------------------------------------------------------------------------- */

static void put_group(struct bh_bench_report *r, const struct wanted *wanted, struct group *g,
                      const char *name)
{
    double bins[BOUNDS_MAX + 1];

    if (g->count <= 0 || g->sum <= 0) /* upstream's rule */
        return;
    for (size_t i = 0; i < g->n; i++)
        bins[i] = g->grown[i] - (i ? g->grown[i - 1] : 0);
    bins[g->n] = g->count - (g->n ? g->grown[g->n - 1] : 0);
    struct bh_bench_item *it =
        bh_bench_item(r, bh_arena_strdup(&r->arena, wanted->metric), "ms", name);
    for (size_t i = 0; i < LABELS_MAX && wanted->labels[i]; i++)
        bh_bench_item_label(r, it, wanted->labels[i], g->labels[i]);
    bh_bench_put_histogram(it, g->bounds, bins, g->n, g->sum);
}

/* sign -1: what was there before. */
static void take_text(struct reading *x, const char *text, double sign)
{
    struct bh_str key;
    double v;

    for (const char *p = text, *end; *p; p = *end ? end + 1 : end) {
        end = strchrnul(p, '\n');
        if (split_line(p, (size_t)(end - p), &key, &v))
            take_line(x, key, sign * v);
    }
}

static void put_metric(struct bh_bench_report *r, struct reading *x, const struct wanted *wanted,
                       const char *name)
{
    x->wanted = wanted;
    x->groups = NULL;
    take_text(x, x->before, -1);
    take_text(x, x->after, 1);
    for (struct group *g = x->groups; g; g = g->next)
        put_group(r, wanted, g, name);
}

void bh_bench_put_histograms(struct bh_bench_report *r, const struct bh_json *collectors,
                             const char *before, const char *after, const char *name)
{
    const struct bh_json *metrics = bh_json_get(collectors, "metrics");
    struct reading x = {.before = before, .after = after};

    if (metrics && metrics->type == BH_JSON_OBJECT) {
        /* metrics: {NAME: null, or [{label, values}, ...]} */
        bh_json_each(m, metrics) {
            struct wanted wanted = {.metric = m->key.p};
            size_t n = 0;
            bh_json_each(f, m->type == BH_JSON_ARRAY ? m : NULL) {
                if (n == LABELS_MAX)
                    break;
                wanted.labels[n] = bh_json_get_str(f, "label");
                wanted.values[n] = bh_json_get_list(f, "values");
                n += wanted.labels[n] != NULL;
            }
            put_metric(r, &x, &wanted, name);
        }
    }
    for (size_t i = 0; !metrics && i < BH_ARRAY_LEN(defaults); i++)
        put_metric(r, &x, &defaults[i], name);
    bh_arena_fini(&x.arena);
}

double bh_bench_sum(const char *text, const char *counter, const char *label)
{
    size_t n = strlen(counter), n_label = strlen(label);
    struct bh_str key;
    double v, sum = 0;

    for (const char *p = text, *end; *p; p = *end ? end + 1 : end) {
        end = strchrnul(p, '\n');
        if (split_line(p, (size_t)(end - p), &key, &v) && key.n >= n &&
            memcmp(key.p, counter, n) == 0 && (key.n == n || key.p[n] == '{') &&
            memmem(key.p, key.n, label, n_label))
            sum += v;
    }
    return sum;
}
