/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/explain/grid.c - text in columns
 */
#include <stdio.h>

#include "scheduler/explain/grid.h"

void bh_grid_fini(struct bh_grid *g)
{
    bh_buf_fini(&g->text);
    free(g->cell);
    *g = (struct bh_grid){0};
}

void bh_grid_cell(struct bh_grid *g, unsigned look, const char *fmt, ...)
{
    size_t off = g->text.n;
    va_list ap;

    va_start(ap, fmt);
    bh_buf_vaddf(&g->text, fmt, ap);
    va_end(ap);
    BH_GROW(g->cell, g->n_cells, g->cap);
    g->cell[g->n_cells++] = (struct bh_grid_cell){
        .off = off, .n = (uint32_t)(g->text.n - off), .look = look, .column = g->column++};
}

void bh_grid_row(struct bh_grid *g)
{
    g->column = 0;
}

void bh_grid_members(struct bh_grid *g, unsigned look, const struct bh_json *obj,
                     const char *members)
{
    for (const char *p = members, *end; *p; p = end + (*end == ' ')) {
        char path[128];
        struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
        int decimals = -1, right = *p == '>' ? BH_CELL_RIGHT : 0;
        end = strchrnul(p, ' ');
        (void)sscanf(p + (right != 0), "%127[^ :]:%d", path, &decimals);
        const struct bh_json *v = bh_json_path(obj, path);
        if (v && v->type == BH_JSON_ARRAY)
            bh_text_join(&b, v, ", ");
        else if (v && v->type == BH_JSON_NUMBER && decimals >= 0)
            bh_buf_addf(&b, "%.*f", decimals, strtod(v->s.p, NULL));
        else if (v && (v->type == BH_JSON_NUMBER || v->type == BH_JSON_STRING) && v->s.n)
            bh_buf_add(&b, v->s.p, v->s.n);
        else
            bh_buf_addc(&b, '-');
        bh_grid_cell(g, look | (unsigned)right, "%s", bh_buf_str(&b));
    }
}

void bh_grid_line(struct bh_grid *g, const char *name, unsigned look, const char *fmt, ...)
{
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
    va_list ap;

    va_start(ap, fmt);
    bh_buf_vaddf(&b, fmt, ap);
    va_end(ap);
    if (!b.n)
        return;
    bh_grid_cell(g, BH_CELL_BOLD, "%s", name);
    bh_grid_cell(g, look, "%s", bh_buf_str(&b));
    bh_grid_row(g);
}

void bh_grid_heading(struct bh_grid *g, unsigned look, ...)
{
    va_list ap;

    va_start(ap, look);
    for (const char *s; (s = va_arg(ap, const char *));)
        bh_grid_cell(g, look | BH_CELL_BOLD | (*s == '>' ? BH_CELL_RIGHT : 0), "%s",
                     s + (*s == '>'));
    va_end(ap);
    bh_grid_row(g);
}

static size_t width_of(const char *p, size_t n)
{
    size_t w = 0;

    for (size_t i = 0; i < n; i++)
        w += !(((unsigned char)p[i] & 0xC0) == 0x80);
    return w;
}

static void add_looking(struct bh_buf *out, unsigned look, bool colour, const char *p, size_t n)
{
    const char *on = look & BH_CELL_GOOD   ? "\x1b[32m"
                     : look & BH_CELL_BAD  ? "\x1b[31m"
                     : look & BH_CELL_DIM  ? "\x1b[2m"
                     : look & BH_CELL_BOLD ? "\x1b[1m"
                                           : NULL;

    if (colour && on)
        bh_buf_adds(out, on);
    /* C1 controls are two bytes in UTF-8, 0xC2 0x80 to 0xC2 0x9F. */
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)p[i];
        bool c1 = c == 0xC2 && i + 1 < n && (unsigned char)p[i + 1] < 0xA0;
        if (c < 0x20 || c == 0x7F || c1)
            bh_buf_addc(out, '?');
        else
            bh_buf_addc(out, (char)c);
        i += c1;
    }
    if (colour && on)
        bh_buf_adds(out, "\x1b[0m");
}

void bh_text_join(struct bh_buf *out, const struct bh_json *list, const char *between)
{
    const char *before = "";

    bh_json_each(e, list) {
        if (!bh_json_cstr(e))
            continue;
        bh_buf_addf(out, "%s%s", before, e->s.p);
        before = between;
    }
}

void bh_text_add(struct bh_buf *out, unsigned look, bool colour, const char *s)
{
    add_looking(out, look, colour, s, strlen(s));
}

void bh_grid_print(struct bh_grid *g, struct bh_buf *out, unsigned indent, bool colour)
{
    uint32_t n_columns = 0;
    size_t gap = 0; /* spaces owed before the next text, so that no line ends in blanks */

    for (size_t i = 0; i < g->n_cells; i++)
        n_columns = BH_MAX(n_columns, g->cell[i].column + 1);
    size_t *width = bh_calloc(n_columns + 1, sizeof *width);
    for (size_t i = 0; i < g->n_cells; i++) {
        const struct bh_grid_cell *c = &g->cell[i];
        width[c->column] = BH_MAX(width[c->column], width_of(bh_buf_str(&g->text) + c->off, c->n));
    }
    for (size_t i = 0; i < g->n_cells; i++) {
        const struct bh_grid_cell *c = &g->cell[i];
        const char *p = bh_buf_str(&g->text) + c->off;
        size_t own = width_of(p, c->n), pad = BH_MAX(width[c->column], own) - own;
        if (c->column == 0)
            gap = indent;
        if (c->look & BH_CELL_RIGHT)
            gap += pad;
        if (c->n) {
            bh_buf_addf(out, "%*s", (int)gap, "");
            add_looking(out, c->look, colour, p, c->n);
            gap = 0;
        }
        gap += (c->look & BH_CELL_RIGHT ? 0 : pad) + 2;
        if (i + 1 == g->n_cells || g->cell[i + 1].column == 0)
            bh_buf_addc(out, '\n');
    }
    free(width);
    bh_buf_reset(&g->text);
    g->n_cells = 0;
    g->column = 0;
}
