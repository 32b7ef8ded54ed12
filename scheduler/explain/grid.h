/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/explain/grid.h - text in columns, as kubectl prints: two spaces between them
 *
 * Cells are added row by row; columns become as wide as their widest cell, the last one is not
 * padded. Control characters, which could steer a terminal, are printed as '?'. Widths count
 * characters of UTF-8, not bytes. Zero-initialised ({0}) is a valid empty grid.
 * Threads: none.
 */
#ifndef BH_GRID_H
#define BH_GRID_H

#include "common/data/json.h"

enum bh_cell_look {
    BH_CELL_PLAIN = 0,
    BH_CELL_RIGHT = 1, /* to the right: numbers */
    BH_CELL_BOLD = 2,
    BH_CELL_GOOD = 4, /* green */
    BH_CELL_BAD = 8,  /* red */
    BH_CELL_DIM = 16
};
struct bh_grid {
    struct bh_buf text; /* all cells, one after the other */
    struct bh_grid_cell {
        size_t off;
        uint32_t n;
        uint32_t look;
        uint32_t column;
    } * cell;
    size_t n_cells, cap;
    uint32_t column; /* of the next cell */
};
void bh_grid_fini(struct bh_grid *g);
void bh_grid_cell(struct bh_grid *g, unsigned look, const char *fmt, ...) BH_PRINTF(3, 4);
void bh_grid_row(struct bh_grid *g); /* ends the row */
/* Cells of an object's members, by their paths with blanks between: ">rank node >score.raw:2". '>':
 * to the right; ":2": a number with so many decimals. Lists of texts are joined with ", "; "-" stands
 * for what is not there, and for an empty text. */
void bh_grid_members(struct bh_grid *g, unsigned look, const struct bh_json *obj,
                     const char *members);
/* A row of a name, bold, and a text; none when the text is empty. */
void bh_grid_line(struct bh_grid *g, const char *name, unsigned look, const char *fmt, ...)
    BH_PRINTF(4, 5);
/* A heading: texts up to NULL, bold, then the row's end. A leading '>' means to the right. */
void bh_grid_heading(struct bh_grid *g, unsigned look, ...) __attribute__((sentinel));
/* Adds all rows to out and empties the grid. indent: spaces before each row. */
void bh_grid_print(struct bh_grid *g, struct bh_buf *out, unsigned indent, bool colour);
/* The texts of a list. */
void bh_text_join(struct bh_buf *out, const struct bh_json *list, const char *between);
/* Text as a cell would show it: without control characters. */
void bh_text_add(struct bh_buf *out, unsigned look, bool colour, const char *s);
#endif
