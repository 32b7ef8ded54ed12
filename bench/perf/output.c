/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/perf/output.c - results as upstream's data items (JSON) and as a table
 */
#include "bench/perf/perf.h"

#include <math.h>

/* ---- JSON ------------------------------------------------------------------------------------ */

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
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};

    bh_buf_addf64(&b, isfinite(v) ? v : 0);
    n->s = bh_str_c(bh_arena_strdup(a, bh_buf_str(&b)));
    return n;
}

static struct bh_json *item_json(struct bh_arena *a, const struct bh_bench_item *it,
                                 const char *const *keys, size_t n_keys)
{
    struct bh_json *data = bh_json_new(a, BH_JSON_OBJECT);
    struct bh_json *labels = bh_json_new(a, BH_JSON_OBJECT);
    const char *names[BH_ARRAY_LEN(it->bucket)];
    size_t n = 0;

    for (; it->bucket[n]; n++)
        names[n] = it->bucket[n];
    qsort(names, n, sizeof *names, bh_by_text);
    for (size_t i = 0; i < n; i++)
        bh_json_set(a, data, names[i], number(a, *bh_bench_value(it, names[i])));
    for (size_t i = 0; i < n_keys; i++)
        bh_json_set_str(a, labels, keys[i], label_of(it, keys[i]));
    return bh_json_make(a, "data: %p, unit: %s, labels: %p", data, it->unit, labels);
}

void bh_bench_write_json(const struct bh_bench_report *r, struct bh_buf *out)
{
    /* the last four stand in every file of upstream's */
    static const char *const usual[] = {"Metric",          "Name",   "event",
                                        "extension_point", "plugin", "result"};
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};
    struct bh_json *list = bh_json_new(&a, BH_JSON_ARRAY);
    size_t n = BH_ARRAY_LEN(usual);
    const char **keys = bh_arena_new_array(&a, const char *, 2 * r->n_items + n);

    memcpy(keys, usual, sizeof usual);
    for (size_t i = 0; i < r->n_items; i++)
        for (size_t k = 0; k < BH_ARRAY_LEN(r->items[i].labels); k++)
            if (r->items[i].labels[k][0])
                keys[n++] = r->items[i].labels[k][0];
    /* every key that any item has, sorted, as Go prints maps */
    n = bh_sort_unique(keys, n, sizeof *keys, bh_by_text);
    for (size_t i = 0; i < r->n_items; i++)
        bh_json_push(list, item_json(&a, &r->items[i], keys, n));
    bh_json_write_pretty(out, bh_json_make(&a, "version: v1, dataItems: %p", list));
    if (out->n && out->p[out->n - 1] != '\n')
        bh_buf_addc(out, '\n');
}

/* ---- table ----------------------------------------------------------------------------------- */

static const char *const processes[BH_BENCH_PROCESSES] = {"SCHED", "WATCH", "BIND", "SERVER",
                                                          "CLIENT"};

static void pipeline_row(const struct bh_bench_row *x, bool wide, struct bh_buf *out)
{
    double us = 0, mb = 0;

    bh_buf_addf(out, "%7llu %8llu %7.2f %8.0f %8.0f ", (unsigned long long)x->pods,
                (unsigned long long)x->attempts, x->seconds, x->pods_per_s, x->sampled);
    for (unsigned i = 0; i < BH_BENCH_PROCESSES; us += x->cpu_us[i++])
        bh_buf_addf(out, "%6.1f ", x->cpu_us[i]);
    bh_buf_addf(out, "%6.1f ", us);
    for (unsigned i = 0; wide && i < BH_BENCH_PROCESSES; mb += x->rss_mb[i++])
        bh_buf_addf(out, "%6.0f ", x->rss_mb[i]);
    if (wide)
        bh_buf_addf(out, "%6.0f ", mb);
}

void bh_bench_write_table(const struct bh_bench_report *r, bool pipeline, bool wide,
                          struct bh_buf *out)
{
    size_t width = 8;

    for (size_t i = 0; i < r->n_rows; i++)
        width = BH_MAX(width, strlen(r->rows[i].name));
    bh_buf_addf(out, "%-*s ", (int)width, "WORKLOAD");
    if (pipeline) {
        bh_buf_addf(out, "%7s %8s %7s %8s %8s ", "PODS", "ATTEMPTS", "SECONDS", "PODS/S",
                    "SAMPLED");
        for (unsigned i = 0; i < BH_BENCH_PROCESSES; i++)
            bh_buf_addf(out, "%6s ", processes[i]);
        bh_buf_addf(out, "%6s ", "us/POD");
        for (unsigned i = 0; wide && i < BH_BENCH_PROCESSES; i++)
            bh_buf_addf(out, "%6s ", processes[i]);
        if (wide)
            bh_buf_addf(out, "%6s ", "MiB");
    } else {
        bh_buf_addf(out, "%7s %8s %9s %8s %9s %9s %9s %8s %7s ", "PODS", "ATTEMPTS", "PODS/S",
                    "P50(us)", "P99(us)", "MAX(us)", "ENGINE(s)", "CPU(s)", "FAST");
    }
    bh_buf_adds(out, "THRESHOLD\n");
    for (size_t i = 0; i < r->n_rows; i++) {
        const struct bh_bench_row *x = &r->rows[i];
        bh_buf_addf(out, "%-*s ", (int)width, x->name);
        if (x->failed && !x->measured) {
            bh_buf_addf(out, "failed: %s\n", x->failed);
            continue;
        }
        if (pipeline) {
            pipeline_row(x, wide, out);
        } else {
            bh_buf_addf(out, "%7llu %8llu %9.0f %8.1f %9.1f %9.1f %9.3f %8.2f ",
                        (unsigned long long)x->pods, (unsigned long long)x->attempts, x->pods_per_s,
                        x->p50_us, x->p99_us, x->max_us, x->engine_s, x->cpu_s);
            if (x->fast + x->reference)
                bh_buf_addf(out, "%6.1f%% ",
                            100.0 * (double)x->fast / (double)(x->fast + x->reference));
            else
                bh_buf_addf(out, "%7s ", "-");
        }
        bh_buf_addf(out, "%s%s\n", x->failed ? "so far; failed: " : "",
                    x->failed          ? x->failed
                    : x->missed        ? "MISSED"
                    : x->compared      ? "ok"
                    : x->threshold > 0 ? "not compared"
                                       : "-");
    }
}
