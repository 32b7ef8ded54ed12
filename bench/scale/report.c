/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/scale/report.c - results of `berth bench scale` as tables, JSON and plots
 */
#include "bench/scale/scale.h"

#include <inttypes.h>
#include <math.h>

#include "scheduler/explain/grid.h"
#include "simulator/scenario/result.h"

/* ---- tables ---------------------------------------------------------------------------------- */

/* Numbers with so many decimals each. */
static void cells(struct bh_grid *g, const char *decimals, const double *v)
{
    for (; *decimals; decimals++)
        bh_grid_cell(g, BH_CELL_RIGHT, "%.*f", *decimals - '0', *v++);
}

static void decisions_table(const struct bh_scale_result *r, uint32_t n, struct bh_buf *out)
{
    struct bh_grid g BH_CLEANUP(bh_grid_fini) = {0};

    bh_grid_heading(&g, 0, ">NODES", "TEMPLATES", ">DECISIONS", ">P50(us)", ">P90(us)", ">P99(us)",
                    ">P99.9(us)", ">MAX(us)", ">PER SECOND", NULL);
    for (uint32_t i = 0; i < n; i++) {
        for (int k = -1; k < (int)BH_SCALE_KINDS; k++) {
            const struct bh_scale_latency *l = k < 0 ? &r[i].s.all : &r[i].s.kind[k];
            if (!l->n)
                continue;
            bh_grid_cell(&g, BH_CELL_RIGHT, "%" PRIu32, r[i].nodes);
            bh_grid_cell(&g, 0, "%s", k < 0 ? "all" : bh_scale_kind_names[k]);
            bh_grid_cell(&g, BH_CELL_RIGHT, "%" PRIu32, l->n);
            const double v[] = {l->p50, l->p90, l->p99, l->p999, l->max};
            for (unsigned m = 0; m < BH_ARRAY_LEN(v); m++)
                cells(&g, v[m] < 100 ? "1" : "0", &v[m]);
            if (k < 0)
                bh_grid_cell(&g, BH_CELL_RIGHT, "%.0f", r[i].s.per_s);
            bh_grid_row(&g);
        }
    }
    bh_grid_print(&g, out, 0, false);
}

static void memory_table(const struct bh_scale_result *r, uint32_t n, struct bh_buf *out)
{
    struct bh_grid g BH_CLEANUP(bh_grid_fini) = {0};

    bh_grid_heading(&g, 0, ">NODES", ">PODS", ">SNAPSHOT(MB)", ">WATCHER(MB)", ">B/NODE", ">B/POD",
                    ">SCHEDULER(MB)", ">B/NODE", ">B/POD", ">AT THE END(MB)", NULL);
    for (uint32_t i = 0; i < n; i++) {
        const struct bh_scale_watcher *w = &r[i].w;
        const struct bh_scale_scheduler *s = &r[i].s;
        const double v[] = {r[i].nodes,    (double)w->pods, w->snapshot_mb, w->rss_mb,
                            w->node_bytes, w->pod_bytes,    s->rss_mb,      s->node_bytes,
                            s->pod_bytes,  s->rss_end_mb};
        cells(&g, "0011001001", v);
        bh_grid_row(&g);
    }
    bh_grid_print(&g, out, 0, false);
}

static void starts_table(const struct bh_scale_result *r, uint32_t n, struct bh_buf *out)
{
    struct bh_grid g BH_CLEANUP(bh_grid_fini) = {0};

    bh_grid_heading(&g, 0, ">NODES", ">WATCHER BUILDS(s)", ">CPU(s)", ">LONGEST MOVE(ms)",
                    ">SCHEDULER ATTACHES(s)", ">CPU(s)", ">FIRST DECISION(ms)", ">NEW TEMPLATE(ms)",
                    ">ROWS/DECISION", ">REBUILT", ">FAST", NULL);
    for (uint32_t i = 0; i < n; i++) {
        const struct bh_scale_watcher *w = &r[i].w;
        const struct bh_scale_scheduler *s = &r[i].s;
        double decisions = s->all.n;
        const double v[] = {r[i].nodes,       w->build_s,     w->build_cpu_s,
                            w->longest_ms,    s->attach_s,    s->attach_cpu_s,
                            s->first_ms,      s->template_ms, (double)s->rescored / decisions,
                            (double)s->misses};
        cells(&g, "0221222210", v);
        bh_grid_cell(&g, BH_CELL_RIGHT, "%.1f%%", 100 * (double)s->fast / decisions);
        bh_grid_row(&g);
    }
    bh_grid_print(&g, out, 0, false);
}

void bh_scale_table(const struct bh_scale_options *o, const struct bh_scale_result *r, uint32_t n,
                    struct bh_buf *out)
{
    uint64_t nowhere = 0;

    decisions_table(r, n, out);
    bh_buf_addc(out, '\n');
    memory_table(r, n, out);
    bh_buf_addc(out, '\n');
    starts_table(r, n, out);
    for (uint32_t i = 0; i < n; i++)
        nowhere += r[i].s.nowhere;
    if (nowhere)
        bh_buf_addf(out, "\n%" PRIu64 " pods fit nowhere: the cluster is too small for them.\n",
                    nowhere);
    if (o->cpu)
        bh_buf_adds(out, "\nDecisions are timed by CPU time of the thread.\n");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Whole, or to a thousandth; never with an exponent. */
static struct bh_json *number(struct bh_arena *a, double v)
{
    struct bh_json *n = bh_json_new(a, BH_JSON_NUMBER);

    n->s = bh_str_c(bh_arena_printf(a, "%.*f", v == floor(v) ? 0 : v < 1 ? 6 : 3, v));
    return n;
}

static void set(struct bh_arena *a, struct bh_json *o, const char *key, double v)
{
    bh_json_set(a, o, key, number(a, v));
}

static void set_latency(struct bh_arena *a, struct bh_json *list, const char *name,
                        const struct bh_scale_latency *l)
{
    struct bh_json *o = bh_json_new(a, BH_JSON_OBJECT);

    if (!l->n)
        return;
    bh_json_set_str(a, o, "templates", name);
    set(a, o, "decisions", l->n);
    set(a, o, "p50", l->p50);
    set(a, o, "p90", l->p90);
    set(a, o, "p99", l->p99);
    set(a, o, "p99.9", l->p999);
    set(a, o, "max", l->max);
    bh_json_push(list, o);
}

static struct bh_json *watcher_json(struct bh_arena *a, const struct bh_scale_watcher *w)
{
    struct bh_json *o = bh_json_new(a, BH_JSON_OBJECT);

    set(a, o, "buildSeconds", w->build_s);
    set(a, o, "buildCPUSeconds", w->build_cpu_s);
    set(a, o, "longestPublicationMs", w->longest_ms);
    set(a, o, "snapshotMB", w->snapshot_mb);
    set(a, o, "privateMB", w->rss_mb);
    set(a, o, "bytesPerNode", w->node_bytes);
    set(a, o, "bytesPerPod", w->pod_bytes);
    set(a, o, "shapes", (double)w->shapes);
    set(a, o, "symbols", (double)w->symbols);
    return o;
}

static struct bh_json *scheduler_json(struct bh_arena *a, const struct bh_scale_scheduler *s)
{
    struct bh_json *o = bh_json_new(a, BH_JSON_OBJECT);

    set(a, o, "attachSeconds", s->attach_s);
    set(a, o, "attachCPUSeconds", s->attach_cpu_s);
    set(a, o, "firstDecisionMs", s->first_ms);
    set(a, o, "newTemplateMs", s->template_ms);
    set(a, o, "privateMB", s->rss_mb);
    set(a, o, "privateMBAtTheEnd", s->rss_end_mb);
    set(a, o, "bytesPerNode", s->node_bytes);
    set(a, o, "bytesPerPod", s->pod_bytes);
    set(a, o, "decisionsPerSecond", s->per_s);
    set(a, o, "deciding", s->decide_s);
    set(a, o, "following", s->follow_s);
    set(a, o, "fitNowhere", (double)s->nowhere);
    set(a, o, "fastPath", (double)s->fast);
    set(a, o, "rowsEvaluated", (double)s->rescored);
    set(a, o, "shapesRebuilt", (double)s->misses);
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);
    set_latency(a, list, "all", &s->all);
    for (unsigned k = 0; k < BH_SCALE_KINDS; k++)
        set_latency(a, list, bh_scale_kind_names[k], &s->kind[k]);
    bh_json_set(a, o, "latencyMicroseconds", list);
    return o;
}

void bh_scale_json(const struct bh_scale_options *o, const struct bh_scale_result *r, uint32_t n,
                   struct bh_buf *out)
{
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};

    struct bh_json *doc = bh_json_new(&a, BH_JSON_OBJECT), *list = bh_json_new(&a, BH_JSON_ARRAY);
    bh_json_set_str(&a, doc, "clock", o->cpu ? "cpu" : "wall");
    set(&a, doc, "templates", o->templates);
    set(&a, doc, "zones", o->zones);
    for (uint32_t i = 0; i < n; i++) {
        struct bh_json *size = bh_json_new(&a, BH_JSON_OBJECT);
        set(&a, size, "nodes", r[i].nodes);
        set(&a, size, "pods", (double)r[i].w.pods);
        bh_json_set(&a, size, "watcher", watcher_json(&a, &r[i].w));
        bh_json_set(&a, size, "scheduler", scheduler_json(&a, &r[i].s));
        bh_json_push(list, size);
    }
    bh_json_set(&a, doc, "sizes", list);
    bh_json_write_pretty(out, doc);
    if (out->n && out->p[out->n - 1] != '\n')
        bh_buf_addc(out, '\n');
}

/* ---- plots ----------------------------------------------------------------------------------- */

/* One curve: which number of a result. */
struct curve {
    unsigned plot;
    const char *name;
    size_t off; /* of a double in struct bh_scale_result */
};
#define AT(member) offsetof(struct bh_scale_result, member)
static const struct curve curves[] = {
    {0, "p50", AT(s.all.p50)},
    {0, "p90", AT(s.all.p90)},
    {0, "p99", AT(s.all.p99)},
    {0, "p99.9", AT(s.all.p999)},
    {0, "max", AT(s.all.max)},
    {1, "decisions a second", AT(s.per_s)},
    {2, "snapshot, shared", AT(w.snapshot_mb)},
    {2, "watcher", AT(w.rss_mb)},
    {2, "scheduler, attached", AT(s.rss_mb)},
    {2, "scheduler, at the end", AT(s.rss_end_mb)},
    {3, "watcher builds the snapshot", AT(w.build_s)},
    {3, "scheduler attaches", AT(s.attach_s)},
};
static const char *const titles[] = {"Decision, microseconds", "Decisions a second", "Memory, MB",
                                     "Starts, seconds"};
#define PLOTS BH_ARRAY_LEN(titles)

static struct bh_json *values(struct bh_arena *a, const struct bh_scale_result *r, uint32_t n,
                              const struct curve *c)
{
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);

    for (uint32_t i = 0; i < n; i++) {
        double v = r[i].nodes;
        if (c)
            memcpy(&v, (const char *)&r[i] + c->off, sizeof(v));
        bh_json_push(list, number(a, v));
    }
    return list;
}

void bh_scale_plots(const struct bh_scale_options *o, const struct bh_scale_result *r, uint32_t n,
                    bool html, struct bh_buf *out)
{
    struct bh_plot_line lines[BH_ARRAY_LEN(curves)];
    struct bh_plot plots[PLOTS];
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};

    for (unsigned i = 0; i < PLOTS; i++)
        plots[i] = (struct bh_plot){.title = titles[i], .unit = "", .growth = true};
    for (unsigned i = 0; i < BH_ARRAY_LEN(curves); i++) {
        struct bh_plot *p = &plots[curves[i].plot];
        lines[i] = (struct bh_plot_line){.name = curves[i].name,
                                         .x = values(&a, r, n, NULL),
                                         .y = values(&a, r, n, &curves[i]),
                                         .colour = p->n_lines};
        if (!p->n_lines++)
            p->lines = &lines[i];
    }
    if (html) {
        struct bh_buf table BH_CLEANUP(bh_buf_fini) = {0};
        bh_scale_table(o, r, n, &table);
        bh_buf_addf(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>berth "
            "bench scale</title><style>%s</style></head><body><main>\n<h1>berth bench "
            "scale</h1>\n<p class=\"dim\">by number of nodes; %u pods a node run already, %u "
            "templates</p>\n<div class=\"plots\">\n",
            bh_html_style, o->pods_per_node, o->templates);
        for (unsigned i = 0; i < PLOTS; i++)
            bh_plot_lines(out, &plots[i]);
        bh_buf_adds(out, "</div>\n<div class=\"scroll\"><pre>");
        bh_buf_add(out, table.p, table.n); /* nothing in it needs escaping */
        bh_buf_adds(out, "</pre></div>\n</main></body></html>\n");
    } else
        bh_plot_sheet(out, plots, PLOTS);
}
