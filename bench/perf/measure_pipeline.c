/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/perf/measure_pipeline.c - what a pipeline mode's window comes to
 *
 * PODS/S is pods by the real time from the window's begin (before the first creation) to the last
 * pod that got a node. SchedulingThroughput samples as upstream does, with one difference: the tick
 * is a twentieth of that time, at most upstream's 1 s, as a run of one second has no sample
 * otherwise (so the last tick is at its end; with ticks of 1 s what comes after the last whole one
 * is in no sample, as at upstream); pods that come in one moment count with PODS/S. CPU time is
 * user and system time of each process inside of the window; memory is resident, that of the
 * scheduler under upstream's names (the Go heap there).
 */
#include "bench/perf/pipeline.h"

#include <errno.h>

#define ATTEMPTS     "scheduler_schedule_attempts_total"
#define ATTEMPT_ENDS "scheduler_scheduling_attempt_duration_seconds_count"
#define SCHEDULED    "result=\"scheduled\""
#define READS        100u /* 10 ms apart */
#define SECOND_NS    UINT64_C(1000000000)
#define TICK_MIN_NS  UINT64_C(100000)
#define TICKS        20u
#define MEMORY_NS    UINT64_C(500000000)

/* ---- processes ------------------------------------------------------------------------------- */

static enum bh_bench_process process_of(const struct bh_bench_pipeline *p, unsigned i)
{
    static const struct {
        const char *name;
        enum bh_bench_process process;
    } names[] = {{"scheduler", BH_BENCH_SCHEDULER},
                 {"watcher", BH_BENCH_WATCHER},
                 {"simulator", BH_BENCH_SERVER}};

    if (i == p->up->n)
        return BH_BENCH_CLIENT;
    for (size_t k = 0; k < BH_ARRAY_LEN(names); k++)
        if (bh_streq(p->up->child[i].name, names[k].name))
            return names[k].process;
    return BH_BENCH_BINDERS;
}

/* The last one is this process. */
static pid_t pid_of(const struct bh_bench_pipeline *p, unsigned i)
{
    return i < p->up->n ? p->up->child[i].pid : 0;
}

static bool runs(const struct bh_bench_pipeline *p, unsigned i)
{
    return i == p->up->n || p->up->child[i].pid;
}

static void see_memory(struct bh_bench_pipeline *p)
{
    p->memory_ns = bh_mono_ns();
    for (unsigned i = 0; i <= p->up->n; i++)
        if (runs(p, i))
            bh_bench_see_memory(&p->memory[i], bh_bench_rss_mb(pid_of(p, i)));
}

void bh_bench_look_at_memory(struct bh_bench_world *w)
{
    struct bh_bench_pipeline *p = w->d;

    if (w->window.on && bh_mono_ns() - p->memory_ns >= MEMORY_NS)
        see_memory(p);
}

/* The scheduler's metrics. It hears of a binding after the watch does, and counts it a moment
 * later: it gets that moment, lest one window's attempts are another's. */
static bool read_metrics(struct bh_bench_world *w, struct bh_buf *text)
{
    struct bh_bench_pipeline *p = w->d;
    int code, rc = -1;

    for (unsigned i = 0; i < READS; i++) {
        rc = bh_bench_ask_scheduler(p, "/metrics", &code, text, NULL);
        if (rc < 0 || (bh_bench_sum(bh_buf_str(text), ATTEMPTS, SCHEDULED) >= (double)w->bound &&
                       bh_bench_sum(bh_buf_str(text), ATTEMPT_ENDS, SCHEDULED) >= (double)w->bound))
            break;
        (void)bh_up_pump(p->up);
    }
    return rc >= 0;
}

void bh_bench_begin_pipeline(struct bh_bench_world *w)
{
    struct bh_bench_pipeline *p = w->d;

    if (!read_metrics(w, &p->before))
        bh_buf_reset(&p->before);
    memset(p->memory, 0, sizeof p->memory);
    see_memory(p);
    for (unsigned i = 0; i <= p->up->n; i++)
        if (runs(p, i))
            p->cpu_ns[i] = bh_bench_cpu_ns_of(pid_of(p, i));
}

static void put_process(struct bh_bench_world *w, const char *name, unsigned i, double pods,
                        struct bh_bench_row *row)
{
    struct bh_bench_pipeline *p = w->d;
    struct bh_bench_report *r = w->report;
    const char *who = i < p->up->n ? p->up->child[i].name : "client";
    enum bh_bench_process kind = process_of(p, i);
    double us = (double)(bh_bench_cpu_ns_of(pid_of(p, i)) - p->cpu_ns[i]) / 1e3;

    row->cpu_us[kind] += pods > 0 ? us / pods : 0;
    row->rss_mb[kind] += p->memory[i].most;
    struct bh_bench_item *it = bh_bench_item(r, "berth_cpu_per_pod", "us", name);
    bh_bench_item_label(r, it, "process", who);
    bh_bench_put(it, "Average", pods > 0 ? us / pods : 0);
    it = bh_bench_item(r, "berth_memory", "MB", name);
    bh_bench_item_label(r, it, "process", who);
    bh_bench_put(it, "Average", p->memory[i].n ? p->memory[i].sum / p->memory[i].n : 0);
    bh_bench_put(it, "Max", p->memory[i].most);
}

/* ---- rates ----------------------------------------------------------------------------------- */

static uint64_t end_of(const struct bh_bench_window *x)
{
    return x->n_bound ? x->bound_ns[x->n_bound - 1] : 0;
}

size_t bh_bench_ticks(const struct bh_bench_window *x)
{
    uint64_t end = end_of(x);

    if (end >= TICKS * SECOND_NS)
        return (size_t)(end / SECOND_NS);
    return (size_t)BH_MIN(end / TICK_MIN_NS, (uint64_t)TICKS);
}

size_t bh_bench_sample(const struct bh_bench_window *x, double *out)
{
    uint64_t end = end_of(x), last_ns = 0;
    size_t seen = 0, last = 0, skipped = 0, n = 0, ticks = bh_bench_ticks(x);

    for (size_t k = 1; k <= ticks; k++) {
        /* not k times a rounded tick: the last one would come before the last pod */
        uint64_t at = end < TICKS * SECOND_NS ? end * k / ticks : k * SECOND_NS;
        while (seen < x->n_bound && x->bound_ns[seen] <= at)
            seen++;
        if (!seen)
            continue;
        if (last && seen == last) {
            skipped++;
            continue;
        }
        for (size_t i = 0; last && i <= skipped; i++)
            out[n++] = (double)(seen - last) * 1e9 / (double)(at - last_ns);
        last = seen;
        last_ns = at;
        skipped = 0;
    }
    return n;
}

static void throughput(struct bh_bench_report *r, const struct bh_bench_window *x, const char *name,
                       struct bh_bench_row *row)
{
    uint64_t end = end_of(x);
    double *rates = bh_calloc(bh_bench_ticks(x) + 1, sizeof *rates), sum = 0;
    size_t n = bh_bench_sample(x, rates);

    for (size_t i = 0; i < n; i++)
        sum += rates[i];
    row->seconds = (double)end / 1e9;
    if (end)
        row->pods_per_s = (double)x->n_bound * 1e9 / (double)end;
    row->sampled = n ? sum / (double)n : row->pods_per_s;
    struct bh_bench_item *it =
        bh_bench_item(r, end ? "SchedulingThroughput" : "", "pods/s", name); /* as upstream */
    if (n)
        bh_bench_put_quantiles(it, row->sampled, rates, n);
    else if (end)
        bh_bench_put(it, "Average", row->sampled);
    if (end)
        bh_bench_put(bh_bench_item(r, "berth_throughput", "pods/s", name), "Average",
                     row->pods_per_s);
    free(rates);
}

void bh_bench_collect_pipeline(struct bh_bench_world *w, const char *name, struct bh_bench_row *row)
{
    struct bh_bench_pipeline *p = w->d;
    struct bh_bench_report *r = w->report;
    double seconds = (double)(bh_mono_ns() - w->window.began_wall_ns) / 1e9;
    double pods = (double)w->window.n_bound, us = 0;
    struct bh_buf after BH_CLEANUP(bh_buf_fini) = {0};

    see_memory(p);
    throughput(r, &w->window, name, row);
    for (unsigned i = 0; i <= p->up->n; i++)
        if (runs(p, i))
            put_process(w, name, i, pods, row);
    for (unsigned i = 0; i < BH_BENCH_PROCESSES; i++)
        us += row->cpu_us[i];
    struct bh_bench_item *it = bh_bench_item(r, "berth_cpu_per_pod", "us", name);
    bh_bench_item_label(r, it, "process", "all");
    bh_bench_put(it, "Average", us);
    if (!p->up->stopping && p->trouble_rc != -ECHILD && read_metrics(w, &after)) {
        const char *before = bh_buf_str(&p->before), *now = bh_buf_str(&after);
        bh_bench_put_histograms(r, w->target->test_case->collectors, before, now, name);
        double attempts = bh_bench_sum(now, ATTEMPTS, "") - bh_bench_sum(before, ATTEMPTS, "");
        row->attempts = (uint64_t)BH_MAX(attempts, 0);
    }
    for (unsigned i = 0; i < p->up->n; i++)
        if (process_of(p, i) == BH_BENCH_SCHEDULER)
            bh_bench_put_memory(r, name, &p->memory[i], seconds);
}
