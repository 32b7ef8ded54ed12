/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/tables/table.h - what the per-kind files of this folder share
 *
 * The folder's door is bh_sim_table_columns() and bh_sim_table_cells() in simulator/server/sim.h: one
 * descriptor per kind (columns, and a function that fills the cells of one row); kinds without one
 * of their own get Name and Age. Cells are written straight into the reply's buffer: a list of
 * 100,000 pods builds no second tree.
 * Objects come from the store, whose status parts any client may have written: every look-up is
 * type-checked and a field of the wrong type counts as absent.
 * Runs in: the simulator's loop; pure functions without state.
 * Upstream: pkg/printers/internalversion/printers.go, apimachinery/pkg/util/duration (v1.36);
 * differences: column descriptions are our own; kinds that the simulator does not serve are left
 * out.
 */
#ifndef BH_SIM_TABLE_H
#define BH_SIM_TABLE_H

#include "simulator/server/tree.h"

struct bh_table_col {
    const char *name;
    const char *type;   /* "string", "integer", "boolean" */
    const char *format; /* "name" for the name column, else "" */
    int priority;       /* 1 = only with -o wide */
    const char *description;
};

struct bh_table_row {
    struct bh_buf *out;
    int64_t now_s; /* wall clock, for ages */
    bool any_cell;
};

struct bh_table_kind {
    const char *group, *kind;
    const struct bh_table_col *cols;
    size_t n_cols;
    void (*cells)(struct bh_table_row *r, const struct bh_json *obj);
};

/* The per-kind tables, one array per file. */
struct bh_table_set {
    const struct bh_table_kind *kinds;
    size_t n;
};
extern const struct bh_table_set bh_table_set_pods, bh_table_set_core, bh_table_set_apps,
    bh_table_set_storage, bh_table_set_net, bh_table_set_misc;

#define BH_COL_NAME                                                                                \
    {                                                                                              \
        "Name", "string", "name", 0, "name of the object"                                          \
    }
#define BH_COL_AGE                                                                                 \
    {                                                                                              \
        "Age", "string", "", 0, "time since creation"                                              \
    }
#define BH_COL_S(n, d)                                                                             \
    {                                                                                              \
        n, "string", "", 0, d                                                                      \
    }
#define BH_COL_I(n, d)                                                                             \
    {                                                                                              \
        n, "integer", "", 0, d                                                                     \
    }
#define BH_COL_B(n, d)                                                                             \
    {                                                                                              \
        n, "boolean", "", 0, d                                                                     \
    }
#define BH_COL_WIDE(n, d)                                                                          \
    {                                                                                              \
        n, "string", "", 1, d                                                                      \
    }

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
void bh_cell_time(struct bh_table_row *r, const char *time_text); /* the text itself */
/* Containers and Images of a pod template's (or pod's) spec: two cells. */
void bh_cell_containers(struct bh_table_row *r, const struct bh_json *pod_spec);
/* metav1.LabelSelector as text ("<none>" when empty), and a plain label map likewise. */
void bh_cell_label_selector(struct bh_table_row *r, const struct bh_json *sel);
void bh_cell_label_map(struct bh_table_row *r, const struct bh_json *labels);

/* Columns of `kubectl get`: Name, and those of additionalPrinterColumns (NULL: Age). */
void bh_table_custom_columns(const struct bh_json *columns, struct bh_buf *out);
void bh_table_custom_cells(const struct bh_json *columns, const struct bh_json *obj, int64_t now_ns,
                           struct bh_buf *out);

/* Appends s, with sep between it and what stands there already; NULL and "" are skipped. */
void bh_cell_join(struct bh_buf *b, const char *sep, const char *s);
#endif
