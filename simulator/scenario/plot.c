/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/scenario/plot.c - line plots and histograms as SVG
 *
 * Colours come from the report's style sheet by class (c0 ... c7), so that they follow light and
 * dark; everything else is presentation attributes.
 */
#include <math.h>

#include "simulator/scenario/result.h"

#define WIDTH        580.0
#define HEIGHT       240.0
#define LEFT         52.0
#define RIGHT        14.0
#define TOP          14.0
#define BOTTOM       30.0
#define INNER_WIDTH  (WIDTH - LEFT - RIGHT)
#define INNER_HEIGHT (HEIGHT - TOP - BOTTOM)

void bh_html_text(struct bh_buf *out, const char *s)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '&')
            bh_buf_adds(out, "&amp;");
        else if (c == '<')
            bh_buf_adds(out, "&lt;");
        else if (c == '>')
            bh_buf_adds(out, "&gt;");
        else if (c == '"')
            bh_buf_adds(out, "&quot;");
        else if (c == '\'')
            bh_buf_adds(out, "&#39;");
        else if (c < 0x20 || c == 0x7f)
            bh_buf_addc(out, ' ');
        else
            bh_buf_addc(out, (char)c);
    }
}

/* ---- axes ------------------------------------------------------------------------------------ */

/* 1, 2 or 5 times a power of ten, so that there are at most n steps. */
static double nice_step(double most, unsigned n)
{
    double step = pow(10, floor(log10(BH_MAX(most, 1e-12) / n)));

    for (unsigned i = 0; step * n < most * 0.9999; i++)
        step *= i % 3 == 1 ? 2.5 : 2;
    return step;
}

static double nice_time_step(double s, unsigned n)
{
    static const double steps[] = {1,       2,       5,       10,     15,     30,     60,
                                   120,     300,     600,     900,    1800,   3600,   7200,
                                   10800,   21600,   43200,   86400,  172800, 432000, 864000,
                                   1728000, 2592000, 5184000, 8640000};

    if (s < n)
        return nice_step(s, n);
    for (size_t i = 0; i < BH_ARRAY_LEN(steps); i++)
        if (steps[i] * n >= s)
            return steps[i];
    return nice_step(s, n);
}

static void text_at(struct bh_buf *out, double x, double y, const char *anchor)
{
    bh_buf_addf(out, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y,
                anchor);
}

static void grid_line(struct bh_buf *out, double x1, double y1, double x2, double y2)
{
    bh_buf_addf(out, "<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", x1,
                y1, x2, y2);
}

static void y_axis(struct bh_buf *out, double most, double step, const char *unit)
{
    for (double y = 0; y <= most * 1.0001; y += step) {
        double at = TOP + INNER_HEIGHT * (1 - y / most);
        grid_line(out, LEFT, at, WIDTH - RIGHT, at);
        text_at(out, LEFT - 6, at + 4, "end");
        if (bh_streq(unit, "%"))
            bh_buf_addf(out, "%.4g %%", y * 100);
        else if (y >= 10000)
            bh_buf_addf(out, "%.4gk", y / 1000);
        else
            bh_buf_addf(out, "%.4g", y);
        bh_buf_adds(out, "</text>");
    }
}

static void x_axis_time(struct bh_buf *out, double most)
{
    double step = nice_time_step(most, 6);

    for (double x = 0; x <= most * 1.0001; x += step) {
        double at = LEFT + INNER_WIDTH * x / most;
        if (x > 0)
            grid_line(out, at, TOP + INNER_HEIGHT, at, TOP + INNER_HEIGHT + 4);
        text_at(out, at, HEIGHT - 10, x > most * 0.95 ? "end" : "middle");
        long t = lround(x);
        if (x < 10 && fabs(x - round(x)) > 1e-9)
            bh_buf_addf(out, "%.3g s", x);
        else if (t < 120)
            bh_buf_addf(out, "%ld s", t);
        else if (t < 7200)
            bh_buf_addf(out, t % 60 ? "%ld:%02ld min" : "%ld min", t / 60, t % 60);
        else if (t < 172800)
            bh_buf_addf(out, t % 3600 ? "%ld:%02ld h" : "%ld h", t / 3600, t % 3600 / 60);
        else
            bh_buf_addf(out, "%.4g d", x / 86400);
        bh_buf_adds(out, "</text>");
    }
}

static void open_plot(struct bh_buf *out, const char *title)
{
    bh_buf_adds(out, "<figure><figcaption>");
    bh_html_text(out, title);
    bh_buf_addf(out,
                "</figcaption><svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" width=\"100%%\" "
                "aria-label=\"",
                WIDTH, HEIGHT);
    bh_html_text(out, title);
    bh_buf_adds(out, "\">");
}

/* ---- lines ----------------------------------------------------------------------------------- */

static double value_of(const struct bh_json *v)
{
    return v->type == BH_JSON_NUMBER ? strtod(v->s.p, NULL) : 0;
}

static double largest(const struct bh_json *list)
{
    double most = 0;

    bh_json_each(v, list)
        most = BH_MAX(most, value_of(v));
    return most;
}

/* What the edges of the plot stand for. */
struct frame {
    double x_least, x_most, y_least, y_most;
    bool growth;
};

static double share(double v, double least, double most, bool growth)
{
    return growth ? log(v / least) / log(most / least) : (v - least) / (most - least);
}

static double place_x(const struct frame *f, double x)
{
    return LEFT + INNER_WIDTH * share(x, f->x_least, f->x_most, f->growth);
}

static double place_y(const struct frame *f, double y)
{
    return TOP + INNER_HEIGHT * (1 - share(y, f->y_least, f->y_most, f->growth));
}

static void one_line(struct bh_buf *out, const struct bh_plot_line *l, const struct frame *f,
                     bool steps)
{
    const struct bh_json *y = bh_json_first(l->y);
    double last = 0;
    bool first = true;

    bh_buf_addf(out, "<path class=\"line c%u\" fill=\"none\"%s d=\"", l->colour % 8,
                l->colour % 2 ? " stroke-dasharray=\"6 3\"" : "");
    bh_json_each(x, l->x) {
        if (!y)
            break;
        double value = value_of(y), px = place_x(f, value_of(x) / (f->growth ? 1 : 1e9));
        double py = place_y(f, value);
        y = y->next;
        if (f->growth && !(value > 0))
            continue;
        if (first)
            bh_buf_addf(out, "M%.1f %.1f", px, py);
        else if (steps && fabs(py - last) > 0.05)
            bh_buf_addf(out, "H%.1fV%.1f", px, py);
        else if (steps)
            bh_buf_addf(out, "H%.1f", px);
        else
            bh_buf_addf(out, "L%.1f %.1f", px, py);
        last = py;
        first = false;
    }
    bh_buf_adds(out, "\"><title>");
    bh_html_text(out, l->name);
    bh_buf_adds(out, "</title></path>");
}

/* ---- growth ---------------------------------------------------------------------------------- */

static void widen_range(const struct bh_json *list, double *least, double *most)
{
    bh_json_each(v, list) {
        if (!(value_of(v) > 0))
            continue;
        *least = BH_MIN(*least, value_of(v));
        *most = BH_MAX(*most, value_of(v));
    }
}

/* To whole decades, at least one. */
static void round_range(double *least, double *most)
{
    if (*most <= 0)
        *least = *most = 1;
    *least = pow(10, floor(log10(*least) + 1e-9));
    *most = BH_MAX(pow(10, ceil(log10(*most) - 1e-9)), *least * 10);
}

static void decade_text(struct bh_buf *out, double v)
{
    static const char *const units[] = {"", "k", "M", "G"};
    unsigned u = 0;

    for (; v >= 999 && u + 1 < BH_ARRAY_LEN(units); u++)
        v /= 1000;
    bh_buf_addf(out, "%.4g%s", v, units[u]);
}

static void draw_growth(struct bh_buf *out, const struct bh_plot *p)
{
    struct frame f = {HUGE_VAL, 0, HUGE_VAL, 0, true};

    for (unsigned i = 0; i < p->n_lines; i++) {
        widen_range(p->lines[i].x, &f.x_least, &f.x_most);
        widen_range(p->lines[i].y, &f.y_least, &f.y_most);
    }
    round_range(&f.x_least, &f.x_most);
    round_range(&f.y_least, &f.y_most);
    for (double y = f.y_least; y <= f.y_most * 1.001; y *= 10) {
        grid_line(out, LEFT, place_y(&f, y), WIDTH - RIGHT, place_y(&f, y));
        text_at(out, LEFT - 6, place_y(&f, y) + 4, "end");
        decade_text(out, y);
        bh_buf_adds(out, "</text>");
    }
    for (double x = f.x_least; x <= f.x_most * 1.001; x *= 10) {
        grid_line(out, place_x(&f, x), TOP + INNER_HEIGHT, place_x(&f, x), TOP + INNER_HEIGHT + 4);
        text_at(out, place_x(&f, x), HEIGHT - 10, x > f.x_most * 0.9 ? "end" : "middle");
        decade_text(out, x);
        bh_buf_adds(out, "</text>");
    }
    for (unsigned i = 0; i < p->n_lines; i++) {
        double y = TOP + 12 + 14 * i;
        one_line(out, &p->lines[i], &f, p->steps);
        if (p->n_lines == 1)
            break; /* the title says it */
        bh_buf_addf(out, "<path class=\"line c%u\"%s d=\"M%.1f %.1fh22\"/>", p->lines[i].colour % 8,
                    p->lines[i].colour % 2 ? " stroke-dasharray=\"6 3\"" : "", LEFT + 8, y - 4);
        text_at(out, LEFT + 36, y, "start");
        bh_html_text(out, p->lines[i].name);
        bh_buf_adds(out, "</text>");
    }
}

static void draw(struct bh_buf *out, const struct bh_plot *p)
{
    if (p->growth)
        draw_growth(out, p);
    else {
        struct frame f = {.x_most = 1e-6};
        double y_most = 0;
        for (unsigned i = 0; i < p->n_lines; i++) {
            f.x_most = BH_MAX(f.x_most, largest(p->lines[i].x) / 1e9);
            y_most = BH_MAX(y_most, largest(p->lines[i].y));
        }
        double step = nice_step(y_most > 0 ? y_most : 1, 5);
        f.y_most = step * ceil((y_most > 0 ? y_most : 1) / step - 1e-9);
        y_axis(out, f.y_most, step, p->unit);
        x_axis_time(out, f.x_most);
        for (unsigned i = 0; i < p->n_lines; i++)
            one_line(out, &p->lines[i], &f, p->steps);
    }
}

void bh_plot_lines(struct bh_buf *out, const struct bh_plot *p)
{
    open_plot(out, p->title);
    draw(out, p);
    bh_buf_adds(out, "</svg></figure>\n");
}

void bh_plot_sheet(struct bh_buf *out, const struct bh_plot *p, unsigned n)
{
    const double title = 26, tall = HEIGHT + title;

    bh_buf_addf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\"><style>%s"
                "text{fill:var(--ink);font:600 14px system-ui,sans-serif}</style>"
                "<rect width=\"100%%\" height=\"100%%\" style=\"fill:var(--card)\"/>\n",
                2 * WIDTH, tall * ((n + 1) / 2), bh_html_style);
    for (unsigned i = 0; i < n; i++) {
        bh_buf_addf(out, "<g transform=\"translate(%.0f %.0f)\"><text x=\"%.0f\" y=\"18\">",
                    i % 2 * WIDTH, i / 2 * tall, LEFT);
        bh_html_text(out, p[i].title);
        bh_buf_addf(out, "</text><g transform=\"translate(0 %.0f)\">", title);
        draw(out, &p[i]);
        bh_buf_adds(out, "</g></g>\n");
    }
    bh_buf_adds(out, "</svg>\n");
}

/* ---- histogram ------------------------------------------------------------------------------- */

void bh_plot_histogram(struct bh_buf *out, const char *title, const struct bh_plot_bars *b,
                       unsigned n)
{
    double most = 1, slot = INNER_WIDTH / 10, width = slot * 0.8 / BH_MAX(n, 1u);

    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < 10; k++)
            most = BH_MAX(most, b[i].count[k]);
    double step = BH_MAX(nice_step(most, 5), 1);
    most = step * ceil(most / step - 1e-9);
    open_plot(out, title);
    y_axis(out, most, step, "");
    for (unsigned k = 0; k < 10; k++) {
        for (unsigned i = 0; i < n; i++) {
            double h = INNER_HEIGHT * b[i].count[k] / most;
            bh_buf_addf(out,
                        "<rect class=\"bar c%u\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                        "height=\"%.1f\"><title>",
                        b[i].colour % 8, LEFT + slot * (k + 0.1) + width * i,
                        TOP + INNER_HEIGHT - h, width, h);
            bh_html_text(out, b[i].name);
            bh_buf_addf(out, ": %u nodes at %u to %u %%</title></rect>", b[i].count[k], 10 * k,
                        10 * k + 10);
        }
        text_at(out, LEFT + slot * (k + 0.5), HEIGHT - 10, "middle");
        bh_buf_addf(out, "%u-%u%s</text>", 10 * k, 10 * k + 10, k == 9 ? " %" : "");
    }
    bh_buf_adds(out, "</svg></figure>\n");
}
