/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/tables/table.h - what the files of this folder share
 *
 * The folder's door is bh_sim_table_columns() and bh_sim_table_cells() in simulator/server/sim.h.
 * columns.data says which columns a kind has and what fills each: a look-up by path or a function
 * of this folder. Cells are written straight into the reply's buffer: a list of 100,000 pods builds
 * no second tree.
 * Objects come from the store, whose status parts any client may have written: every look-up is
 * type-checked and a field of the wrong type counts as absent.
 * Runs in: the simulator's loop; the columns are read once and never change.
 * Upstream: pkg/printers/internalversion/printers.go, apimachinery/pkg/util/duration (v1.36);
 * differences: column descriptions are our own; kinds that the simulator does not serve are left
 * out.
 */
#ifndef BH_SIM_TABLE_H
#define BH_SIM_TABLE_H

#include "simulator/server/tree.h"

struct bh_table_row {
    struct bh_buf *out;
    int64_t now_s;                /* wall clock, for ages */
    const char *path, *if_absent; /* what columns.data says of the present cell; NULL = nothing */
};

/* A word of columns.data that fills cells. */
struct bh_table_cell {
    const char *word;
    void (*fill)(struct bh_table_row *r, const struct bh_json *obj);
};
/* One array a file; the last one's word is NULL. */
extern const struct bh_table_cell bh_table_cells_any[], bh_table_cells_pod[], bh_table_cells_kind[];

/* Cells, in column order. A NULL string is written as "". */
void bh_cell_str(struct bh_table_row *r, const char *s);
void bh_cell_or(struct bh_table_row *r, const char *s, const char *if_empty);
void bh_cell_fmt(struct bh_table_row *r, const char *fmt, ...) BH_PRINTF(2, 3);
void bh_cell_buf(struct bh_table_row *r, struct bh_buf *b, const char *if_empty); /* frees b */
void bh_cell_i64(struct bh_table_row *r, int64_t v);
void bh_cell_bool(struct bh_table_row *r, bool v);
void bh_cell_name(struct bh_table_row *r, const struct bh_json *obj);
void bh_cell_age(struct bh_table_row *r, const struct bh_json *obj);
/* Time since an RFC 3339 text; "<unknown>" when it is absent or not a time. */
void bh_cell_since(struct bh_table_row *r, const char *time_text);

/* Appends s, with sep between it and what stands there already; NULL and "" are skipped. */
void bh_cell_join(struct bh_buf *b, const char *sep, const char *s);
/* Appends s in lower case. */
void bh_cell_lower(struct bh_buf *b, const char *s);

/* One element of columnDefinitions. */
void bh_table_column(struct bh_buf *out, const char *name, const char *type, const char *format,
                     const char *words, int64_t priority);
/* Columns of `kubectl get`: Name, and those of additionalPrinterColumns (NULL: Age). */
void bh_table_custom_columns(const struct bh_json *columns, struct bh_buf *out);
void bh_table_custom_cells(const struct bh_json *columns, const struct bh_json *obj,
                           struct bh_table_row *r);
#endif
