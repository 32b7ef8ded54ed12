/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/perf/measure.h - how items of a window are made; private to bench/perf
 */
#ifndef BH_BENCH_MEASURE_H
#define BH_BENCH_MEASURE_H

#include "bench/perf/perf.h"

/* name: the label Name. Valid until the next one is added. */
struct bh_bench_item *bh_bench_item(struct bh_bench_report *r, const char *metric, const char *unit,
                                    const char *name);
void bh_bench_item_label(struct bh_bench_report *r, struct bh_bench_item *it, const char *key,
                         const char *value);
void bh_bench_put(struct bh_bench_item *it, const char *bucket, double v);
/* Average and upstream's percentiles; v gets sorted, n > 0. */
void bh_bench_put_quantiles(struct bh_bench_item *it, double average, double *v, size_t n);
/* Upstream's estimates from a histogram, in ms: bins[i] holds what is above bounds[i - 1] and at
 * most bounds[i]; bins[n] the rest. */
void bh_bench_put_histogram(struct bh_bench_item *it, const double *bounds, const double *bins,
                            size_t n, double sum_s);

struct bh_bench_memory { /* resident, MiB */
    double first, last, most, sum;
    uint32_t n;
};
void bh_bench_see_memory(struct bh_bench_memory *m, double mb);
/* of a process, 0 = this one; 0 when it is gone */
double bh_bench_rss_mb(pid_t pid);
/* User and system time of a process and of its threads that ended, 0 = this one. */
uint64_t bh_bench_cpu_ns_of(pid_t pid);
static inline uint64_t bh_bench_cpu_ns(void)
{
    return bh_bench_cpu_ns_of(0);
}
/* heap_memory_usage, memory_growth_rate, SchedulingDuration. */
void bh_bench_put_memory(struct bh_bench_report *r, const char *name,
                         const struct bh_bench_memory *m, double seconds);
#endif
