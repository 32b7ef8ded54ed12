/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/perf/measure.c - what a window holds, as upstream's data items; thresholds
 *
 * Upstream: test/integration/scheduler_perf/util.go,
 * component-base/metrics/testutil/metrics.go.
 */
#include "bench/perf/perf.h"

#include <math.h>
#include <time.h>
#include <unistd.h>

static const struct {
    unsigned q;
    const char *name;
} quantiles[] = {{50, "Perc50"}, {90, "Perc90"}, {95, "Perc95"}, {99, "Perc99"}};

void bh_bench_report_fini(struct bh_bench_report *r)
{
    free(r->items);
    free(r->rows);
    free(r->notes);
    bh_arena_fini(&r->arena);
}

void bh_bench_note(struct bh_bench_report *r, const char *workload, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    const char *text = bh_arena_vprintf(&r->arena, fmt, ap);
    va_end(ap);
    for (size_t i = 0; i < r->n_notes; i++) {
        if (bh_streq(r->notes[i].text, text)) {
            r->notes[i].n++;
            return;
        }
    }
    r->notes = bh_reallocarray(r->notes, r->n_notes + 1, sizeof *r->notes);
    r->notes[r->n_notes++] = (struct bh_bench_note){text, bh_arena_strdup(&r->arena, workload), 1};
}

/* ---- numbers --------------------------------------------------------------------------------- */

double bh_bench_percentile(const double *v, size_t n, unsigned q)
{
    return v[(n * q + 99) / 100 - 1];
}

static int by_value(const void *pa, const void *pb)
{
    double a = *(const double *)pa, b = *(const double *)pb;

    return (a > b) - (a < b);
}

struct bh_bench_item *bh_bench_item(struct bh_bench_report *r, const char *metric, const char *unit,
                                    const char *name)
{
    r->items = bh_reallocarray(r->items, r->n_items + 1, sizeof *r->items);
    struct bh_bench_item *it = &r->items[r->n_items++];
    *it = (struct bh_bench_item){.metric = metric, .unit = unit, .name = name};
    return it;
}

void bh_bench_item_label(struct bh_bench_report *r, struct bh_bench_item *it, const char *key,
                         const char *value)
{
    for (size_t i = 0; i < BH_ARRAY_LEN(it->labels); i++) {
        if (it->labels[i][0])
            continue;
        it->labels[i][0] = bh_arena_strdup(&r->arena, key);
        it->labels[i][1] = bh_arena_strdup(&r->arena, value);
        return;
    }
}

void bh_bench_put(struct bh_bench_item *it, const char *bucket, double v)
{
    unsigned i = 0;

    while (it->bucket[i])
        i++;
    bh_assert(i + 1 < BH_ARRAY_LEN(it->bucket));
    it->bucket[i] = bucket;
    it->value[i] = v;
}

const double *bh_bench_value(const struct bh_bench_item *it, const char *bucket)
{
    for (unsigned i = 0; it->bucket[i]; i++)
        if (bh_streq(it->bucket[i], bucket))
            return &it->value[i];
    return NULL;
}

void bh_bench_put_quantiles(struct bh_bench_item *it, double average, double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_value);
    bh_bench_put(it, "Average", average);
    for (size_t i = 0; i < BH_ARRAY_LEN(quantiles); i++)
        bh_bench_put(it, quantiles[i].name, bh_bench_percentile(v, n, quantiles[i].q));
}

/* Linear inside the bin that reaches the rank. */
static double estimate(const double *bounds, const double *bins, size_t n, double total, double q)
{
    double rank = q * total, below = 0, lower = 0;

    for (size_t i = 0; i < n; i++) {
        if (bins[i] > 0 && below + bins[i] >= rank)
            return lower + (bounds[i] - lower) * (rank - below) / bins[i];
        below += bins[i];
        lower = bounds[i];
    }
    return lower;
}

void bh_bench_put_histogram(struct bh_bench_item *it, const double *bounds, const double *bins,
                            size_t n, double sum_s)
{
    double total = 0;

    for (size_t i = 0; i <= n; i++)
        total += bins[i];
    bh_bench_put(it, "Average", sum_s / total * 1000);
    for (size_t i = 0; i < BH_ARRAY_LEN(quantiles); i++)
        bh_bench_put(it, quantiles[i].name,
                     estimate(bounds, bins, n, total, quantiles[i].q / 100.0) * 1000);
}

/* ---- processes ------------------------------------------------------------------------------- */

double bh_bench_rss_mb(pid_t pid)
{
    BH_CLEANUP(bh_freep) char *text = NULL;
    char path[64];
    unsigned long pages = 0;
    size_t n;

    snprintf(path, sizeof path, "/proc/%ld/statm", (long)(pid ? pid : getpid()));
    if (bh_read_file(path, 1u << 16, &text, &n) < 0 || sscanf(text, "%*u %lu", &pages) != 1)
        return 0;
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1048576;
}

uint64_t bh_bench_cpu_ns_of(pid_t pid)
{
    struct timespec t;
    clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;

    if ((pid && clock_getcpuclockid(pid, &clock) != 0) || clock_gettime(clock, &t) != 0)
        return 0;
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

void bh_bench_see_memory(struct bh_bench_memory *m, double mb)
{
    if (mb <= 0)
        return;
    if (!m->n++)
        m->first = mb;
    m->last = mb;
    m->most = BH_MAX(m->most, mb);
    m->sum += mb;
}

void bh_bench_put_memory(struct bh_bench_report *r, const char *name,
                         const struct bh_bench_memory *m, double seconds)
{
    struct bh_bench_item *it = bh_bench_item(r, "heap_memory_usage", "MB", name);

    bh_bench_put(it, "Average", m->n ? m->sum / m->n : 0);
    bh_bench_put(it, "Max", m->most);
    it = bh_bench_item(r, "memory_growth_rate", "MB/min", name);
    bh_bench_put(it, "GrowthRate", seconds > 0 ? (m->last - m->first) * 60 / seconds : 0);
    it = bh_bench_item(r, "SchedulingDuration", "s", name);
    bh_bench_put(it, "Duration", seconds);
}

/* ---- thresholds ------------------------------------------------------------------------------ */

static bool carries(const struct bh_bench_item *it, const struct bh_json *labels)
{
    bh_json_each(m, labels && labels->type == BH_JSON_OBJECT ? labels : NULL) {
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

    row->threshold = want;
    for (size_t i = from; want > 0 && i < r->n_items; i++) {
        struct bh_bench_item *it = &r->items[i];
        const double *v = bh_bench_value(it, bucket);
        if (!bh_streq(it->metric, metric) || !carries(it, s->labels) || !v)
            continue;
        row->compared = true;
        bh_bench_put(it, bh_arena_printf(&r->arena, "%sThreshold", bucket), want);
        if (s->expect_lower ? *v < want : *v > want)
            continue;
        row->missed = true;
        r->n_missed++;
        fprintf(stderr, "%s: expected \"%s\" \"%s\" to be %s: got %f, want %f\n", it->name, metric,
                bucket, s->expect_lower ? "lower" : "higher", *v, want);
    }
    if (want > 0 && !row->compared)
        bh_bench_note(r, t->name, "threshold of %s %s: not compared, the window has no such number",
                      metric, bucket);
}

static struct bh_bench_row *add_row(struct bh_bench_report *r, const char *name)
{
    r->rows = bh_reallocarray(r->rows, r->n_rows + 1, sizeof *r->rows);
    struct bh_bench_row *row = &r->rows[r->n_rows++];
    *row = (struct bh_bench_row){.name = bh_arena_strdup(&r->arena, name)};
    return row;
}

void bh_bench_collect(struct bh_bench_world *w)
{
    const struct bh_bench_window *x = &w->window;
    struct bh_bench_report *r = w->report;
    const char *name =
        bh_arena_printf(&r->arena, "BenchmarkPerfScheduling/%s/%s", w->target->name, x->name);
    struct bh_bench_row *row = add_row(r, w->target->name);
    size_t from = r->n_items;

    row->measured = true;
    row->pods = x->n_bound;
    w->driver->collect(w, name, row);
    if (w->failed)
        r->n_items = from;  /* half a window is for people's eyes only */
    else if (!w->o->verify) /* then it is no speed */
        judge(r, w->target, from, row);
}

void bh_bench_failed(struct bh_bench_report *r, const struct bh_bench_target *t, const char *why,
                     struct bh_bench_world *w)
{
    if (w)
        w->failed = true;
    if (w && w->window.on)
        bh_bench_window_end(w);
    else
        (void)add_row(r, t->name);
    r->rows[r->n_rows - 1].failed = bh_arena_strdup(&r->arena, why);
    r->n_failed++;
    fprintf(stderr, "%s: %s\n", t->name, why);
}
