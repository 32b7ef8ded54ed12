/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/scenario/html.c - the report of a result: one file, no scripts, nothing loaded
 *
 * Everything that comes out of objects goes through bh_html_text(). Long lists are cut, and say so:
 * the JSON has all of it.
 */
#include <errno.h>
#include <math.h>

#include "simulator/scenario/result.h"

#define SCHEDULERS_MOST 8
#define PODS_SHOWN      300
#define REASONS_SHOWN   20
#define STEPS_SHOWN     100
#define HISTOGRAMS      2 /* cpu and memory; and one extended resource */

const char bh_html_style[] =
#include "simulator/scenario/report.css.h"
    ;

struct report {
    const struct bh_json *v, *list, *comparison;
    unsigned n;
    struct bh_arena *a;
    struct bh_buf *out;
};

static void cell(struct bh_buf *out, const char *class, const char *text)
{
    bh_buf_addf(out, "<td%s%s%s>", class ? " class=\"" : "", class ? class : "", class ? "\"" : "");
    bh_html_text(out, text);
    bh_buf_adds(out, "</td>");
}

static void seconds(struct bh_buf *out, double s)
{
    if (s < 1)
        bh_buf_addf(out, "%.4g ms", s * 1000);
    else if (s < 120)
        bh_buf_addf(out, "%.4g s", s);
    else if (s < 7200)
        bh_buf_addf(out, "%.4g min", s / 60);
    else if (s < 172800)
        bh_buf_addf(out, "%.4g h", s / 3600);
    else
        bh_buf_addf(out, "%.4g days", s / 86400);
}

/* ---- head ------------------------------------------------------------------------------------ */

static void head(const struct report *r)
{
    const struct bh_json *sc = bh_json_get(r->v, "scenario");
    bool expects = bh_json_first(bh_json_get(bh_json_first(r->list), "expectations"));
    bool passed = bh_json_get_bool(r->v, "passed", false);
    const char *name = bh_json_get_text(sc, "name");
    double end = 0;

    bh_buf_adds(r->out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
                        "<meta name=\"referrer\" content=\"no-referrer\"><title>");
    bh_html_text(r->out, name);
    bh_buf_addf(r->out, " - scenario report</title><style>%s</style></head><body><main>\n<h1>",
                bh_html_style);
    bh_html_text(r->out, name);
    if (expects)
        bh_buf_addf(r->out, "<span class=\"badge %s\">%s</span>", passed ? "good" : "bad",
                    passed ? "as expected" : "not as expected");
    bh_json_each(s, r->list)
        end = BH_MAX(end, bh_result_number(s, "end_ns") / 1e9);
    bh_buf_adds(r->out, "</h1>\n<p class=\"dim\">");
    seconds(r->out, end);
    bh_buf_addf(r->out, " of virtual time from ");
    bh_html_text(r->out, bh_json_get_text(sc, "begin"));
    bh_buf_addf(r->out, " on &middot; seed %.0f &middot; ties ", bh_result_number(sc, "seed"));
    bh_html_text(r->out, bh_json_get_text(sc, "tieBreak"));
    bh_buf_adds(r->out, " &middot; Berth ");
    bh_html_text(r->out, bh_json_get_text(r->v, "version"));
    bh_buf_adds(r->out, "</p>\n");
    unsigned i = 0;
    bh_buf_adds(r->out, "<div class=\"legend\">");
    bh_json_each(s, r->list) {
        bh_buf_addf(r->out,
                    "<span><svg width=\"34\" height=\"10\" aria-hidden=\"true\"><path "
                    "class=\"line c%u\" d=\"M0 5H34\"%s/></svg>",
                    i % 8, i % 2 ? " stroke-dasharray=\"6 3\"" : "");
        bh_html_text(r->out, bh_json_get_text(s, "name"));
        bh_buf_adds(r->out, "</span>");
        if (++i == SCHEDULERS_MOST)
            break;
    }
    bh_buf_adds(r->out, "</div>\n");
}

/* ---- summary --------------------------------------------------------------------------------- */

enum better { NEITHER, LESS, MORE };
static const struct {
    const char *name, *text;
    char form; /* n: number, %: share, s: seconds */
    enum better better;
} rows[] = {
    {"pods.created", "Pods created", 'n', NEITHER},
    {"bindings", "Bindings", 'n', NEITHER},
    {"pods.bound", "Pods bound at the end", 'n', NEITHER},
    {"pods.completed", "Pods completed", 'n', NEITHER},
    {"pods.unschedulable", "Pods unschedulable at the end", 'n', LESS},
    {"pods.waiting", "Pods never tried", 'n', LESS},
    {"pods.error", "Pods with errors", 'n', LESS},
    {"pods.preempted", "Pods preempted", 'n', LESS},
    {"attempts", "Attempts", 'n', LESS},
    {"attempts.failed", "Attempts that failed", 'n', LESS},
    {"latency.p50", "From creation to binding, p50", 's', LESS},
    {"latency.p90", "From creation to binding, p90", 's', LESS},
    {"latency.p99", "From creation to binding, p99", 's', LESS},
    {"pending.mean", "Pods pending, mean over time", 'n', LESS},
    {"pending.max", "Pods pending, most", 'n', LESS},
    {"nodes.used", "Nodes in use at the end", 'n', NEITHER},
    {"skew.mean.cpu", "Spread of nodes' cpu (standard deviation)", '%', NEITHER},
};

static void number_cell(const struct report *r, double x, char form, bool best)
{
    bh_buf_addf(r->out, "<td class=\"n%s\">", best ? " best" : "");
    if (form == '%')
        bh_buf_addf(r->out, "%.1f %%", x * 100);
    else if (form == 's')
        seconds(r->out, x);
    else
        bh_buf_addf(r->out, x == floor(x) ? "%.0f" : "%.2f", x);
    bh_buf_adds(r->out, "</td>");
}

static void summary_row(const struct report *r, const char *name, const char *text, char form,
                        enum better better)
{
    double least = INFINITY, most = -INFINITY;

    if (!bh_json_get(bh_json_get(bh_json_first(r->list), "summary"), name))
        return;
    bh_json_each(s, r->list) {
        double x = bh_result_number(bh_json_get(s, "summary"), name);
        least = BH_MIN(least, x);
        most = BH_MAX(most, x);
    }
    if (most <= 0 && form == 'n')
        return; /* nothing of the kind happened anywhere */
    bh_buf_adds(r->out, "<tr>");
    cell(r->out, NULL, text);
    bh_json_each(s, r->list) {
        double x = bh_result_number(bh_json_get(s, "summary"), name);
        number_cell(r, x, form,
                    most > least &&
                        ((better == LESS && x <= least) || (better == MORE && x >= most)));
    }
    bh_buf_adds(r->out, "</tr>\n");
}

/* With its heading, and a column for each scheduler behind the others. */
static void open_table(const struct report *r, const char *above, const char *columns,
                       bool schedulers)
{
    bh_buf_addf(r->out, "%s<div class=\"scroll\"><table><tr>%s", above, columns);
    bh_json_each(s, schedulers ? r->list : NULL) {
        bh_buf_adds(r->out, "<th class=\"n\">");
        bh_html_text(r->out, bh_json_get_text(s, "name"));
        bh_buf_adds(r->out, "</th>");
    }
    bh_buf_adds(r->out, "</tr>\n");
}

static void close_table(const struct report *r)
{
    bh_buf_adds(r->out, "</table></div>\n");
}

static void summary(const struct report *r)
{
    static const struct {
        const char *name, *text;
    } shares[] = {{"utilisation.mean", "mean utilisation"},
                  {"utilisation.end", "utilisation at the end"},
                  {"stranded.mean", "free, but in pieces smaller than the mean request"}};

    open_table(r, "<h2>Summary</h2>\n", "<th></th>", true);
    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++)
        summary_row(r, rows[i].name, rows[i].text, rows[i].form, rows[i].better);
    bh_json_each(res, bh_json_get(bh_json_first(r->list), "resources")) {
        for (size_t k = 0; k < BH_ARRAY_LEN(shares) && bh_json_cstr(res); k++)
            summary_row(r, bh_arena_printf(r->a, "%s.%s", shares[k].name, res->s.p),
                        bh_arena_printf(r->a, "%s: %s", res->s.p, shares[k].text), '%', NEITHER);
    }
    close_table(r);
}

static void expectations(const struct report *r)
{
    if (!bh_json_first(bh_json_get(bh_json_first(r->list), "expectations")))
        return;
    open_table(r, "<h2>Expectations</h2>\n",
               "<th></th><th>Configuration</th><th class=\"n\">At</th><th>Expected</th>"
               "<th>Found</th>",
               false);
    bh_json_each(s, r->list) {
        bh_json_each(e, bh_json_get(s, "expectations")) {
            bool passed = bh_json_get_bool(e, "passed", false);
            bh_buf_addf(r->out, "<tr><td class=\"%s best\">%s</td>", passed ? "good" : "bad",
                        passed ? "&#10003; passed" : "&#10007; failed");
            cell(r->out, NULL, bh_json_get_text(s, "name"));
            number_cell(r, bh_result_number(e, "at_ns") / 1e9, 's', false);
            cell(r->out, "m", bh_json_get_text(e, "expected"));
            cell(r->out, "m", bh_json_get_text(e, "found"));
            bh_buf_adds(r->out, "</tr>\n");
        }
    }
    close_table(r);
}

/* ---- plots ----------------------------------------------------------------------------------- */

static void series_plot(const struct report *r, const char *title, const char *unit,
                        const char *group, const char *name)
{
    struct bh_plot_line lines[SCHEDULERS_MOST];
    struct bh_plot p = {.title = title, .unit = unit, .lines = lines, .steps = true};

    bh_json_each(s, r->list) {
        const struct bh_json *series = bh_json_get(s, "series");
        const struct bh_json *in = group ? bh_json_get(series, group) : series;
        if (p.n_lines == SCHEDULERS_MOST)
            break;
        lines[p.n_lines] =
            (struct bh_plot_line){bh_json_get_text(s, "name"), bh_json_get_list(in, name),
                                  bh_json_get_list(series, "at_ns"), p.n_lines};
        p.n_lines++;
    }
    bh_plot_lines(r->out, &p);
}

static void histogram(const struct report *r, const char *resource)
{
    struct bh_plot_bars bars[SCHEDULERS_MOST] = {0};
    unsigned n = 0;

    bh_json_each(s, r->list) {
        if (n == SCHEDULERS_MOST)
            break;
        bars[n].name = bh_json_get_text(s, "name");
        bars[n].colour = n;
        bh_json_each(node, bh_json_get(s, "nodes")) {
            const struct bh_json *u = bh_json_get(node, "utilisation");
            double x = bh_result_number(u, resource);
            if (bh_json_get(u, resource))
                bars[n].count[(unsigned)BH_MIN(BH_MAX(x, 0) * 10, 9)]++;
        }
        n++;
    }
    bh_plot_histogram(r->out, bh_arena_printf(r->a, "Nodes by %s utilisation at the end", resource),
                      bars, n);
}

static void plots(const struct report *r)
{
    const struct bh_json *first = bh_json_first(r->list);
    const struct bh_json *at = bh_json_path(first, "series.at_ns");
    size_t n = bh_json_first(at) ? at->c.n : 0;
    unsigned i = 0;

    if (!n)
        return;
    bh_buf_adds(r->out, "<h2>Over time</h2>\n<div class=\"plots\">\n");
    bh_json_each(res, bh_json_get(first, "resources")) {
        if (bh_json_cstr(res))
            series_plot(r, bh_arena_printf(r->a, "Utilisation: %s requested", res->s.p), "%",
                        "utilisation", res->s.p);
    }
    series_plot(r, "Pods pending", "", NULL, "pending");
    series_plot(r, "Pods on nodes", "", NULL, "pods");
    series_plot(r, "Bindings in each interval", "", NULL, "bindings");
    series_plot(r, "Attempts in each interval", "", NULL, "attempts");
    series_plot(r, "Spread: standard deviation of nodes' cpu utilisation", "%", "skew", "cpu");
    series_plot(r, "Free cpu on nodes with less than the mean request", "%", "stranded", "cpu");
    bh_buf_adds(r->out, "</div>\n<h2>At the end</h2>\n<div class=\"plots\">\n");
    bh_json_each(res, bh_json_get(first, "resources"))
        if (bh_json_cstr(res) && i++ <= HISTOGRAMS)
            histogram(r, res->s.p);
    bh_buf_adds(r->out, "</div>\n");
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void more(const struct report *r, size_t shown, size_t all)
{
    if (all > shown)
        bh_buf_addf(r->out, "<p class=\"dim\">and %zu more: the JSON result has them all</p>\n",
                    all - shown);
}

static void pending(const struct report *r)
{
    bool any = false;

    bh_json_each(s, r->list)
        any |= bh_json_first(bh_json_get(s, "pendingReasons")) != NULL;
    if (!any)
        return;
    open_table(r, "<h2>Pending at the end</h2>\n",
               "<th>Configuration</th><th class=\"n\">Pods</th><th>Why</th>", false);
    bh_json_each(s, r->list) {
        unsigned n = 0;
        bh_json_each(p, bh_json_get(s, "pendingReasons")) {
            if (n++ == REASONS_SHOWN)
                break;
            bh_buf_adds(r->out, "<tr>");
            cell(r->out, NULL, bh_json_get_text(s, "name"));
            number_cell(r, bh_result_number(p, "count"), 'n', false);
            cell(r->out, "m", bh_json_get_text(p, "message"));
            bh_buf_adds(r->out, "</tr>\n");
        }
    }
    close_table(r);
}

static void different(const struct report *r)
{
    const struct bh_json *list = bh_json_get_list(r->comparison, "different");
    const struct bh_json *pods = bh_json_get(r->comparison, "pods");
    size_t n = 0;

    if (!r->comparison)
        return;
    bh_buf_addf(r->out,
                "<h2>Pods on different nodes</h2>\n<p>%.0f of %.0f pods ended on different nodes, "
                "%.0f on the same.</p>\n",
                bh_result_number(pods, "different"),
                bh_result_number(pods, "different") + bh_result_number(pods, "same"),
                bh_result_number(pods, "same"));
    if (!bh_json_first(list))
        return;
    open_table(r, "", "<th>Pod</th>", true);
    bh_json_each(p, list) {
        if (n++ == PODS_SHOWN)
            break;
        bh_buf_adds(r->out, "<tr>");
        cell(r->out, NULL,
             bh_arena_printf(r->a, "%s/%s", bh_json_get_text(p, "namespace"),
                             bh_json_get_text(p, "name")));
        bh_json_each(node, bh_json_get(p, "nodes"))
            cell(r->out, "n", node->type == BH_JSON_STRING ? node->s.p : "\xe2\x80\x93");
        bh_buf_adds(r->out, "</tr>\n");
    }
    close_table(r);
    more(r, PODS_SHOWN, list->c.n);
}

static void steps(const struct report *r)
{
    size_t n = 0;

    open_table(r, "<h2>Steps</h2>\n", "<th class=\"n\">At</th><th>What</th>", false);
    bh_json_each(e, bh_json_get(bh_json_first(r->list), "timeline")) {
        if (!bh_streq(bh_json_get_text(e, "what"), "step") || n++ >= STEPS_SHOWN)
            continue;
        bh_buf_adds(r->out, "<tr>");
        number_cell(r, bh_result_number(e, "at_ns") / 1e9, 's', false);
        cell(r->out, "m", bh_json_get_text(e, "detail"));
        bh_buf_adds(r->out, "</tr>\n");
    }
    close_table(r);
    more(r, STEPS_SHOWN, n);
}

int bh_scenario_html(const char *json, size_t n, struct bh_buf *out, struct bh_err *err)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {.limit_bytes = (size_t)4 << 30};
    struct report r = {.a = &a, .out = out};

    r.v = bh_result_parse(&a, json, n, err);
    if (!r.v)
        return -EINVAL;
    r.list = bh_json_get(r.v, "schedulers");
    r.comparison = bh_json_get(r.v, "comparison");
    head(&r);
    summary(&r);
    expectations(&r);
    plots(&r);
    pending(&r);
    different(&r);
    steps(&r);
    bh_buf_adds(out, "</main></body></html>\n");
    return 0;
}
