/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/metrics.h - counters, gauges, histograms and their Prometheus text (0.0.4)
 *
 * A family is registered once (name, help, label names, buckets); a cell is one combination of
 * label values, created on first use and kept. Cells are plain doubles updated by the one loop
 * thread that also serves the scrape: no locks.
 * Label values never contain text of API objects: cardinality stays bounded.
 */
#ifndef BH_METRICS_H
#define BH_METRICS_H

#include "common/base/buf.h"

struct bh_metrics;
struct bh_metric; /* family */
struct bh_cell;
enum bh_metric_kind { BH_COUNTER, BH_GAUGE, BH_HISTOGRAM };

struct bh_metrics *bh_metrics_new(void);
void bh_metrics_free(struct bh_metrics *m);
/* labels: comma separated names or "" ; buckets: ascending upper bounds without +Inf (histograms).
 * name, help, labels must outlive m (literals). */
struct bh_metric *bh_metric_new(struct bh_metrics *m, enum bh_metric_kind kind, const char *name,
                                const char *help, const char *labels, const double *buckets,
                                size_t n_buckets);
/* values: as many strings as labels, copied. */
struct bh_cell *bh_metric_cell(struct bh_metric *f,
                               ...); /* const char * values, exactly n labels */
/* Every cell that the family has; fn makes none. */
void bh_metric_each(struct bh_metric *f, void (*fn)(void *arg, struct bh_cell *c), void *arg);
/* The family of this name, NULL: there is none yet. For what is made by several parts of one
 * process that share it. */
struct bh_metric *bh_metric_find(const struct bh_metrics *m, const char *name);
void bh_cell_add(struct bh_cell *c, double v); /* counter, gauge */
void bh_cell_set(struct bh_cell *c, double v); /* gauge */
/* counter that is counted elsewhere (by the kernel, a library): never goes back */
void bh_cell_advance(struct bh_cell *c, double v);
void bh_cell_observe(struct bh_cell *c, double v); /* histogram */
void bh_cell_observe_n(struct bh_cell *c, double v, uint64_t n);
double bh_cell_value(const struct bh_cell *c); /* counter, gauge; histogram: count */
/* Called before each render, to fill gauges from live state. At most 16. */
void bh_metrics_on_scrape(struct bh_metrics *m, void (*fn)(void *), void *arg);
/* p is free()d with m: the argument of a hook, for example. At most 16. */
void bh_metrics_own(struct bh_metrics *m, void *p);
/* How many families there are whose help begins with the text ("" = all). */
size_t bh_metrics_count(const struct bh_metrics *m, const char *help_prefix);
/* process_* (cpu seconds, memory, file descriptors, start time) as client_golang's, threads,
 * registered_metrics_total and berth_build_info. program must outlive m. */
void bh_metrics_add_process(struct bh_metrics *m, const char *program);
/* process_network_*: of the network namespace, so one process of a host says it, not all. */
void bh_metrics_add_network(struct bh_metrics *m);
/* Families by name, cells by label text; a family without cells is left out. */
void bh_metrics_render(struct bh_metrics *m, struct bh_buf *out);
/* start, start*factor, ... n bounds into out */
void bh_buckets_exponential(double start, double factor, size_t n, double *out);
#endif
