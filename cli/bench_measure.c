/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/bench_measure.c - what a window holds, as upstream's data items and as a table
 *
 * Rates are pods by the engine's own time, not by the wall clock; their percentiles are of a
 * hundred runs of equally many pods. Memory is the process's resident set, API server's stand-in
 * included. Upstream: test/integration/scheduler_perf/util.go,
 * component-base/metrics/testutil/metrics.go.
 */
#include "cli/bench.h"

#include <math.h>
#include <time.h>

#define RUNS          100u
#define ATTEMPT_BINS  15u /* of scheduler_scheduling_attempt_duration_seconds */
#define ATTEMPT_FIRST 0.001

static const struct {
    unsigned q;
    const char *name;
} quantiles[] = {{50, "Perc50"}, {90, "Perc90"}, {95, "Perc95"}, {99, "Perc99"}};
static const char *const result_names[BH_BENCH_RESULTS] = {"scheduled", "unschedulable", "error"};

void bh_bench_report_init(struct bh_bench_report *r)
{
    *r = (struct bh_bench_report){0};
    bh_arena_init(&r->arena, 0);
}

void bh_bench_report_fini(struct bh_bench_report *r)
{
    free(r->items);
    free(r->rows);
    free(r->notes);
    bh_arena_fini(&r->arena);
}

void bh_bench_note(struct bh_bench_report *r, const char *workload, const char *fmt, ...)
{
    BH_CLEANUP(bh_freep) char *text = NULL;
    struct bh_buf b = {0};
    va_list ap;

    va_start(ap, fmt);
    bh_buf_vaddf(&b, fmt, ap);
    va_end(ap);
    text = bh_buf_take(&b);
    for (size_t i = 0; i < r->n_notes; i++) {
        if (bh_streq(r->notes[i].text, text)) {
            r->notes[i].n++;
            return;
        }
    }
    r->notes = bh_reallocarray(r->notes, r->n_notes + 1, sizeof *r->notes);
    r->notes[r->n_notes++] = (struct bh_bench_note){bh_arena_strdup(&r->arena, text),
                                                    bh_arena_strdup(&r->arena, workload), 1};
}

/* ---- numbers -----------------------------------------------------------------------------------
 */

double bh_bench_percentile(const double *v, size_t n, unsigned q)
{
    return v[(n * q + 99) / 100 - 1];
}

static int by_value(const void *pa, const void *pb)
{
    double a = *(const double *)pa, b = *(const double *)pb;

    return (a > b) - (a < b);
}

static struct bh_bench_item *add_item(struct bh_bench_report *r, const char *metric,
                                      const char *unit, const char *name)
{
    if (r->n_items == r->cap_items) {
        r->cap_items = BH_MAX(2 * r->cap_items, (size_t)32);
        r->items = bh_reallocarray(r->items, r->cap_items, sizeof *r->items);
    }
    struct bh_bench_item *it = &r->items[r->n_items++];
    *it = (struct bh_bench_item){.metric = metric, .unit = unit, .name = name};
    return it;
}

static void put(struct bh_bench_item *it, const char *bucket, double v)
{
    unsigned i = 0;

    while (it->bucket[i])
        i++;
    bh_assert(i + 1 < BH_ARRAY_LEN(it->bucket));
    it->bucket[i] = bucket;
    it->value[i] = v;
}

static double get(const struct bh_bench_item *it, const char *bucket, bool *ret_found)
{
    for (unsigned i = 0; it->bucket[i]; i++) {
        if (bh_streq(it->bucket[i], bucket)) {
            *ret_found = true;
            return it->value[i];
        }
    }
    *ret_found = false;
    return 0;
}

/* v is sorted. */
static void put_quantiles(struct bh_bench_item *it, double average, const double *v, size_t n)
{
    put(it, "Average", average);
    for (size_t i = 0; i < BH_ARRAY_LEN(quantiles); i++)
        put(it, quantiles[i].name, bh_bench_percentile(v, n, quantiles[i].q));
}

/* ---- items of a window -------------------------------------------------------------------------
 */

static void throughput(struct bh_bench_report *r, const struct bh_bench_window *x,
                       uint64_t engine_ns, const char *name, struct bh_bench_row *row)
{
    size_t runs = BH_MIN(x->n_bound, (size_t)RUNS), done = 0, n = 0;
    double rates[RUNS];
    uint64_t at = 0;

    if (!x->n_bound || !engine_ns) {
        (void)add_item(r, "", "pods/s", name); /* as upstream: nothing was measured */
        return;
    }
    for (size_t i = 0; i < runs; i++) {
        size_t end = (i + 1) * x->n_bound / runs;
        uint64_t took = x->bound_ns[end - 1] - at;
        if (took)
            rates[n++] = (double)(end - done) * 1e9 / (double)took;
        at = x->bound_ns[end - 1];
        done = end;
    }
    qsort(rates, n, sizeof *rates, by_value);
    row->pods_per_s = (double)x->n_bound * 1e9 / (double)engine_ns;
    struct bh_bench_item *it = add_item(r, "SchedulingThroughput", "pods/s", name);
    if (n)
        put_quantiles(it, row->pods_per_s, rates, n);
    else
        put(it, "Average", row->pods_per_s);
}

static void latencies(struct bh_bench_report *r, const struct bh_bench_window *x, const char *name,
                      struct bh_bench_row *row)
{
    double *us = bh_calloc(x->n_attempts + 1, sizeof *us), sum = 0;

    for (size_t i = 0; i < x->n_attempts; i++)
        sum += us[i] = (double)x->attempts[i].ns / 1e3;
    if (x->n_attempts) {
        qsort(us, x->n_attempts, sizeof *us, by_value);
        struct bh_bench_item *it = add_item(r, "berth_attempt_duration", "us", name);
        put_quantiles(it, sum / (double)x->n_attempts, us, x->n_attempts);
        put(it, "Max", us[x->n_attempts - 1]);
        row->p50_us = bh_bench_percentile(us, x->n_attempts, 50);
        row->p99_us = bh_bench_percentile(us, x->n_attempts, 99);
        row->max_us = us[x->n_attempts - 1];
    }
    free(us);
}

/* Upstream's estimate: linear inside the bin that reaches the rank. */
static double estimate(const uint64_t *bins, uint64_t total, double q)
{
    double rank = q * (double)total, below = 0, upper = ATTEMPT_FIRST, lower = 0;

    for (unsigned i = 0; i < ATTEMPT_BINS; i++, lower = upper, upper *= 2) {
        if (bins[i] && below + (double)bins[i] >= rank)
            return lower + (upper - lower) * (rank - below) / (double)bins[i];
        below += (double)bins[i];
    }
    return lower;
}

static void histogram(struct bh_bench_report *r, const struct bh_bench_window *x, const char *name,
                      enum bh_bench_result result)
{
    uint64_t bins[ATTEMPT_BINS + 1] = {0}, n = 0;
    double sum = 0;

    for (size_t i = 0; i < x->n_attempts; i++) {
        double s = (double)x->attempts[i].ns / 1e9, upper = ATTEMPT_FIRST;
        unsigned bin = 0;
        if (x->attempts[i].result != result)
            continue;
        for (; bin < ATTEMPT_BINS && s > upper; bin++)
            upper *= 2;
        bins[bin]++;
        sum += s;
        n++;
    }
    if (!n)
        return;
    struct bh_bench_item *it =
        add_item(r, "scheduler_scheduling_attempt_duration_seconds", "ms", name);
    it->labels[0][0] = "result";
    it->labels[0][1] = result_names[result];
    put(it, "Average", sum / (double)n * 1000);
    for (size_t i = 0; i < BH_ARRAY_LEN(quantiles); i++)
        put(it, quantiles[i].name, estimate(bins, n, quantiles[i].q / 100.0) * 1000);
}

static void memory_and_time(struct bh_bench_report *r, const struct bh_bench_window *x,
                            const struct bh_bench_row *row, const char *name)
{
    double minutes = (double)(bh_mono_ns() - x->began_wall_ns) / 6e10;
    struct bh_bench_item *it = add_item(r, "heap_memory_usage", "MB", name);

    put(it, "Average", x->rss_n ? x->rss_sum / x->rss_n : 0);
    put(it, "Max", x->rss_mb[2]);
    it = add_item(r, "memory_growth_rate", "MB/min", name);
    put(it, "GrowthRate", minutes > 0 ? (x->rss_mb[1] - x->rss_mb[0]) / minutes : 0);
    it = add_item(r, "SchedulingDuration", "s", name);
    put(it, "Duration", minutes * 60);
    it = add_item(r, "berth_time", "s", name);
    put(it, "Engine", row->engine_s);
    put(it, "ProcessCPU", row->cpu_s);
}

/* Of the whole workload, not only the window. */
static void allocations(struct bh_bench_report *r, const struct bh_world *w, const char *name)
{
    struct bh_bench_item *it = add_item(r, "berth_allocations", "1", name);

    put(it, "PerDecision", (double)w->decide_allocations / (double)BH_MAX(w->decisions, 1u));
    put(it, "PerChange", (double)w->change_allocations / (double)BH_MAX(w->changes, 1u));
}

static bool carries(const struct bh_bench_item *it, const struct bh_json *labels)
{
    bh_json_each (m, labels && labels->type == BH_JSON_OBJECT ? labels : NULL) {
        bool found = false;
        for (size_t i = 0; i < BH_ARRAY_LEN(it->labels); i++)
            found |= it->labels[i][0] && m->type == BH_JSON_STRING &&
                     bh_streq(it->labels[i][0], m->key.p) && bh_streq(it->labels[i][1], m->s.p);
        if (!found)
            return false;
    }
    return true;
}

/* Strict, as upstream. */
static void judge(struct bh_bench_report *r, const struct bh_bench_target *t, size_t from,
                  struct bh_bench_row *row)
{
    const struct bh_bench_selector *s = &t->workload->selector;
    const char *metric = s->name ? s->name : "SchedulingThroughput";
    const char *bucket = s->bucket ? s->bucket : "Average";
    double want = bh_bench_threshold(t->workload, t->file->topic);
    unsigned compared = 0;

    row->threshold = want;
    for (size_t i = from; want > 0 && i < r->n_items; i++) {
        struct bh_bench_item *it = &r->items[i];
        bool found = false;
        double v = get(it, bucket, &found);
        if (!bh_streq(it->metric, metric) || !carries(it, s->labels) || !found)
            continue;
        compared++;
        put(it, bh_arena_printf(&r->arena, "%sThreshold", bucket), want);
        if (s->expect_lower ? v < want : v > want)
            continue;
        row->missed = true;
        r->n_missed++;
        fprintf(stderr, "%s: expected \"%s\" \"%s\" to be %s: got %f, want %f\n", it->name, metric,
                bucket, s->expect_lower ? "lower" : "higher", v, want);
    }
    if (want > 0 && !compared)
        bh_bench_note(r, t->name, "threshold of %s %s: the engine mode has no such number", metric,
                      bucket);
}

static struct bh_bench_row *add_row(struct bh_bench_report *r, const char *name)
{
    if (r->n_rows == r->cap_rows) {
        r->cap_rows = BH_MAX(2 * r->cap_rows, (size_t)64);
        r->rows = bh_reallocarray(r->rows, r->cap_rows, sizeof *r->rows);
    }
    struct bh_bench_row *row = &r->rows[r->n_rows++];
    *row = (struct bh_bench_row){.name = bh_arena_strdup(&r->arena, name)};
    return row;
}

static void note_collectors(struct bh_bench_report *r, const struct bh_bench_target *t)
{
    const struct bh_json *metrics = bh_json_get(t->test_case->collectors, "metrics");

    bh_json_each (m, metrics && metrics->type == BH_JSON_OBJECT ? metrics : NULL) {
        if (!bh_streq(m->key.p, "scheduler_scheduling_attempt_duration_seconds"))
            bh_bench_note(r, t->name, "metricsCollectorConfig: %s: not measured in engine mode",
                          m->key.p);
    }
}

static double cpu_s_since(uint64_t began_ns)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9 - (double)began_ns / 1e9;
}

void bh_bench_collect(struct bh_bench_report *r, const struct bh_bench_target *t,
                      struct bh_bench_world *w)
{
    const struct bh_bench_window *x = &w->window;
    uint64_t engine_ns = bh_bench_engine_ns(w) - x->began_engine_ns;
    const char *name =
        bh_arena_printf(&r->arena, "BenchmarkPerfScheduling/%s/%s", t->name, x->name);
    struct bh_bench_row *row = add_row(r, t->name);
    struct bh_engine_stats now;
    size_t from = r->n_items;

    bh_engine_stats(w->cluster.engine, &now);
    row->measured = true;
    row->pods = x->n_bound;
    row->attempts = x->n_attempts;
    row->fast = now.fast_cycles - x->began.fast_cycles;
    row->reference = now.reference_cycles - x->began.reference_cycles;
    for (size_t i = 0; i < x->n_attempts; i++)
        row->failures += x->attempts[i].result != BH_BENCH_SCHEDULED;
    row->engine_s = (double)engine_ns / 1e9;
    row->cpu_s = cpu_s_since(x->began_cpu_ns);
    throughput(r, x, engine_ns, name, row);
    latencies(r, x, name, row);
    for (unsigned i = 0; i < BH_BENCH_RESULTS; i++)
        histogram(r, x, name, (enum bh_bench_result)i);
    memory_and_time(r, x, row, name);
    allocations(r, &w->cluster, name);
    if (w->cluster.trouble_rc < 0) {
        r->n_items = from; /* half a window is for people's eyes only */
        return;
    }
    judge(r, t, from, row);
    note_collectors(r, t);
}

void bh_bench_failed(struct bh_bench_report *r, const struct bh_bench_target *t, const char *why,
                     struct bh_bench_world *w)
{
    struct bh_bench_row *row;

    if (w && w->window.on && w->cluster.trouble_rc < 0)
        bh_bench_window_end(w);
    else
        (void)add_row(r, t->name);
    row = &r->rows[r->n_rows - 1];
    row->failed = bh_arena_strdup(&r->arena, why);
    r->n_failed++;
    fprintf(stderr, "%s: %s\n", t->name, why);
}

/* ---- JSON --------------------------------------------------------------------------------------
 */

static int by_text(const void *pa, const void *pb)
{
    return strcmp(*(const char *const *)pa, *(const char *const *)pb);
}

/* Every key that any item has, sorted, as Go prints maps. */
static size_t label_keys(const struct bh_bench_report *r, struct bh_arena *a, const char ***ret)
{
    const char **keys = bh_arena_new_array(a, const char *, 2 * r->n_items + 6);
    size_t n = 0, out = 0;

    keys[n++] = "Metric";
    keys[n++] = "Name";
    keys[n++] = "event"; /* these four stand in every file of upstream's */
    keys[n++] = "extension_point";
    keys[n++] = "plugin";
    keys[n++] = "result";
    for (size_t i = 0; i < r->n_items; i++)
        for (size_t k = 0; k < BH_ARRAY_LEN(r->items[i].labels); k++)
            if (r->items[i].labels[k][0])
                keys[n++] = r->items[i].labels[k][0];
    qsort(keys, n, sizeof *keys, by_text);
    for (size_t i = 0; i < n; i++)
        if (!out || !bh_streq(keys[out - 1], keys[i]))
            keys[out++] = keys[i];
    *ret = keys;
    return out;
}

static const char *label_of(const struct bh_bench_item *it, const char *key)
{
    const char *v = "not applicable";

    if (bh_streq(key, "Metric"))
        return *it->metric ? it->metric : v;
    if (bh_streq(key, "Name"))
        return it->name;
    for (size_t i = 0; i < BH_ARRAY_LEN(it->labels); i++)
        if (it->labels[i][0] && bh_streq(it->labels[i][0], key))
            v = it->labels[i][1];
    return v;
}

static struct bh_json *number(struct bh_arena *a, double v)
{
    struct bh_json *n = bh_json_new(a, BH_JSON_NUMBER);
    struct bh_buf b = {0};

    bh_buf_addf64(&b, isfinite(v) ? v : 0);
    n->s = bh_str_c(bh_arena_strdup(a, bh_buf_str(&b)));
    bh_buf_fini(&b);
    return n;
}

static struct bh_json *item_json(struct bh_arena *a, const struct bh_bench_item *it,
                                 const char *const *keys, size_t n_keys)
{
    struct bh_json *o = bh_json_new(a, BH_JSON_OBJECT);
    struct bh_json *data = bh_json_obj_at(a, o, "data");
    const char *names[BH_ARRAY_LEN(it->bucket)];
    size_t n = 0;
    bool found;

    while (it->bucket[n]) {
        names[n] = it->bucket[n];
        n++;
    }
    qsort(names, n, sizeof *names, by_text);
    for (size_t i = 0; i < n; i++)
        bh_json_set(a, data, names[i], number(a, get(it, names[i], &found)));
    bh_json_set_str(a, o, "unit", it->unit);
    struct bh_json *labels = bh_json_obj_at(a, o, "labels");
    for (size_t i = 0; i < n_keys; i++)
        bh_json_set_str(a, labels, keys[i], label_of(it, keys[i]));
    return o;
}

void bh_bench_write_json(const struct bh_bench_report *r, struct bh_buf *out)
{
    struct bh_arena a;
    const char **keys;

    bh_arena_init(&a, 0);
    size_t n_keys = label_keys(r, &a, &keys);
    struct bh_json *doc = bh_json_new(&a, BH_JSON_OBJECT);
    bh_json_set_str(&a, doc, "version", "v1");
    struct bh_json *list = bh_json_new(&a, BH_JSON_ARRAY);
    for (size_t i = 0; i < r->n_items; i++)
        bh_json_push(list, item_json(&a, &r->items[i], keys, n_keys));
    bh_json_set(&a, doc, "dataItems", list);
    bh_json_write_pretty(out, doc);
    if (out->n && out->p[out->n - 1] != '\n')
        bh_buf_addc(out, '\n');
    bh_arena_fini(&a);
}

/* ---- table -------------------------------------------------------------------------------------
 */

static const char *verdict(const struct bh_bench_row *row)
{
    return row->missed ? "MISSED" : row->threshold > 0 ? "ok" : "-";
}

static double percent(uint64_t part, uint64_t all)
{
    return all ? 100.0 * (double)part / (double)all : 0;
}

void bh_bench_write_table(const struct bh_bench_report *r, struct bh_buf *out)
{
    size_t width = 8;

    for (size_t i = 0; i < r->n_rows; i++)
        width = BH_MAX(width, strlen(r->rows[i].name));
    bh_buf_addf(out, "%-*s %7s %8s %9s %8s %9s %9s %8s %7s %6s %s\n", (int)width, "WORKLOAD",
                "PODS", "ATTEMPTS", "PODS/S", "P50(us)", "P99(us)", "MAX(us)", "ENGINE(s)",
                "CPU(s)", "FAST", "THRESHOLD");
    for (size_t i = 0; i < r->n_rows; i++) {
        const struct bh_bench_row *x = &r->rows[i];
        bh_buf_addf(out, "%-*s ", (int)width, x->name);
        if (x->failed && !x->measured) {
            bh_buf_addf(out, "failed: %s\n", x->failed);
            continue;
        }
        bh_buf_addf(out, "%7llu %8llu %9.0f %8.1f %9.1f %9.1f %9.3f %7.2f ",
                    (unsigned long long)x->pods, (unsigned long long)x->attempts, x->pods_per_s,
                    x->p50_us, x->p99_us, x->max_us, x->engine_s, x->cpu_s);
        if (x->fast + x->reference)
            bh_buf_addf(out, "%5.1f%% ", percent(x->fast, x->fast + x->reference));
        else
            bh_buf_addf(out, "%6s ", "-");
        bh_buf_addf(out, "%s%s\n", x->failed ? "so far; failed: " : "",
                    x->failed ? x->failed : verdict(x));
    }
}
