/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/scenario/result.h - reading a result back: for its account and its report
 *
 * Threads: none of its own, no state.
 */
#ifndef BH_SIM_SCENARIO_RESULT_H
#define BH_SIM_SCENARIO_RESULT_H

#include "common/data/json.h"
#include "simulator/scenario/scenario.h"

/* NULL with err: not a result. */
struct bh_json *bh_result_parse(struct bh_arena *a, const char *json, size_t n, struct bh_err *err);
double bh_result_number(const struct bh_json *obj, const char *key); /* 0 when absent */

/* ---- plots (plot.c) ----------------------------------------------------------------------------
 * SVG with presentation attributes and the report's classes; text is escaped. */
struct bh_plot_line {
    const char *name;        /* of the configuration */
    const struct bh_json *y; /* numbers, as many as x has */
    const struct bh_json *x; /* ns */
    unsigned colour;         /* 0 ... 7 */
};
struct bh_plot {
    const char *title, *unit; /* unit "%": y is a share, drawn as percent */
    const struct bh_plot_line *lines;
    unsigned n_lines;
    bool steps; /* a value holds until the next one */
    /* Growth: both axes are logarithmic, x is a number of things, and the lines' names stand in the
     * plot. Points that are not above 0 are left out. */
    bool growth;
};
void bh_plot_lines(struct bh_buf *out, const struct bh_plot *p); /* a figure for a page */
/* A whole SVG document, two plots side by side. */
void bh_plot_sheet(struct bh_buf *out, const struct bh_plot *p, unsigned n);
extern const char bh_html_style[]; /* the report's, which colours the plots */
/* How many nodes have which share: bars for each configuration, ten classes. */
struct bh_plot_bars {
    const char *name;
    unsigned colour;
    unsigned count[10];
};
void bh_plot_histogram(struct bh_buf *out, const char *title, const struct bh_plot_bars *b,
                       unsigned n);
void bh_html_text(struct bh_buf *out, const char *s); /* & < > " ' escaped, no control characters */
#endif
