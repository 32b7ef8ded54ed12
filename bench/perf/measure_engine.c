/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/perf/measure_engine.c - what an engine mode's window comes to
 *
 * Rates are pods by the engine's own time, not by the wall clock; their percentiles are of a
 * hundred runs of equally many pods. Memory is the process's resident set, API server's stand-in
 * included.
 */
#include "bench/perf/engine.h"

#define RUNS          100u
#define ATTEMPT_BINS  15u /* of scheduler_scheduling_attempt_duration_seconds */
#define ATTEMPT_FIRST 0.001

static const char *const result_names[BH_BENCH_RESULTS] = {"scheduled", "unschedulable", "error"};

static void throughput(struct bh_bench_report *r, const struct bh_bench_window *x,
                       uint64_t engine_ns, const char *name, struct bh_bench_row *row)
{
    size_t runs = BH_MIN(x->n_bound, (size_t)RUNS), done = 0, n = 0;
    double rates[RUNS];
    uint64_t at = 0;

    if (!x->n_bound || !engine_ns) {
        (void)bh_bench_item(r, "", "pods/s", name); /* as upstream: nothing was measured */
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
    row->pods_per_s = (double)x->n_bound * 1e9 / (double)engine_ns;
    struct bh_bench_item *it = bh_bench_item(r, "SchedulingThroughput", "pods/s", name);
    if (n)
        bh_bench_put_quantiles(it, row->pods_per_s, rates, n);
    else
        bh_bench_put(it, "Average", row->pods_per_s);
}

static void histogram(struct bh_bench_report *r, const struct bh_bench_engine *e, const char *name,
                      enum bh_bench_result result)
{
    double bounds[ATTEMPT_BINS], bins[ATTEMPT_BINS + 1] = {0}, sum = 0;
    uint64_t n = 0;

    for (unsigned i = 0; i < ATTEMPT_BINS; i++)
        bounds[i] = i ? 2 * bounds[i - 1] : ATTEMPT_FIRST;
    for (size_t i = 0; i < e->n_attempts; i++) {
        double s = (double)e->tries[i].ns / 1e9;
        unsigned bin = 0;
        if (e->tries[i].result != result)
            continue;
        while (bin < ATTEMPT_BINS && s > bounds[bin])
            bin++;
        bins[bin]++;
        sum += s;
        n++;
    }
    if (!n)
        return;
    struct bh_bench_item *it =
        bh_bench_item(r, "scheduler_scheduling_attempt_duration_seconds", "ms", name);
    bh_bench_item_label(r, it, "result", result_names[result]);
    bh_bench_put_histogram(it, bounds, bins, ATTEMPT_BINS, sum);
}

void bh_bench_collect_engine(struct bh_bench_world *w, const char *name, struct bh_bench_row *row)
{
    struct bh_bench_engine *e = w->d;
    const struct bh_offline *off = &e->cluster.offline;
    struct bh_bench_report *r = w->report;
    uint64_t engine_ns = off->decide_ns + off->intake_ns - e->began_engine_ns;
    struct bh_engine_stats now;

    bh_bench_see_memory(&e->memory, bh_bench_rss_mb(0));
    bh_engine_stats(off->engine, &now);
    row->attempts = e->n_attempts;
    row->fast = now.fast_cycles - e->began.fast_cycles;
    row->reference = now.reference_cycles - e->began.reference_cycles;
    row->engine_s = (double)engine_ns / 1e9;
    row->cpu_s = (double)(bh_bench_cpu_ns() - e->began_cpu_ns) / 1e9;
    throughput(r, &w->window, engine_ns, name, row);
    size_t n = e->n_attempts;
    double *us = bh_calloc(n + 1, sizeof *us), sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += us[i] = (double)e->tries[i].ns / 1e3;
    if (n) {
        struct bh_bench_item *it = bh_bench_item(r, "berth_attempt_duration", "us", name);
        bh_bench_put_quantiles(it, sum / (double)n, us, n);
        bh_bench_put(it, "Max", us[n - 1]);
        row->p50_us = bh_bench_percentile(us, n, 50);
        row->p99_us = bh_bench_percentile(us, n, 99);
        row->max_us = us[n - 1];
    }
    free(us);
    for (unsigned i = 0; i < BH_BENCH_RESULTS; i++)
        histogram(r, e, name, (enum bh_bench_result)i);
    bh_bench_put_memory(r, name, &e->memory,
                        (double)(bh_mono_ns() - w->window.began_wall_ns) / 1e9);
    struct bh_bench_item *it = bh_bench_item(r, "berth_time", "s", name);
    bh_bench_put(it, "Engine", row->engine_s);
    bh_bench_put(it, "ProcessCPU", row->cpu_s);
    it = bh_bench_item(r, "berth_allocations", "1", name); /* of the whole workload */
    bh_bench_put(it, "PerDecision",
                 (double)off->decide_allocations / (double)BH_MAX(off->decisions, 1u));
    bh_bench_put(it, "PerChange",
                 (double)off->change_allocations / (double)BH_MAX(off->changes, 1u));
    if (!w->failed) {
        const struct bh_json *metrics = bh_json_get(w->target->test_case->collectors, "metrics");
        bh_json_each(m, metrics && metrics->type == BH_JSON_OBJECT ? metrics : NULL) {
            if (!bh_streq(m->key.p, "scheduler_scheduling_attempt_duration_seconds"))
                bh_bench_note(w->report, w->target->name,
                              "metricsCollectorConfig: %s: not measured in engine mode", m->key.p);
        }
    }
}
