/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/tables/custom.c - custom resources: the columns that their definition names
 *
 * Upstream: apiextensions-apiserver/pkg/registry/customresource/tableconvertor.
 */
#include "simulator/crd/crd.h"
#include "simulator/tables/table.h"

void bh_table_custom_columns(const struct bh_json *columns, struct bh_buf *out)
{
    bh_table_column(out, "Name", "string", "name", "name of the object", 0);
    if (!bh_json_first(columns))
        bh_table_column(out, "Age", "date", "", "time since creation", 0);
    bh_json_each(c, columns)
        bh_table_column(out, bh_json_get_text(c, "name"), bh_json_get_text(c, "type"),
                        bh_json_get_text(c, "format"), bh_json_get_text(c, "description"),
                        bh_json_get_i64(c, "priority", 0));
}

void bh_table_custom_cells(const struct bh_json *columns, const struct bh_json *obj,
                           struct bh_table_row *r)
{
    bh_cell_name(r, obj);
    if (!bh_json_first(columns))
        bh_cell_age(r, obj);
    bh_json_each(c, columns) {
        const struct bh_json *v = bh_crd_path(obj, bh_json_get_text(c, "jsonPath"));
        const char *type = bh_json_get_text(c, "type");
        struct bh_buf b = {0};
        int64_t n;
        if (!v || v->type == BH_JSON_NULL) {
            bh_tree_comma(r->out);
            bh_buf_adds(r->out, "null");
        } else if (bh_streq(type, "date")) {
            bh_cell_since(r, bh_json_cstr(v));
        } else if (bh_streq(type, "integer") && bh_json_i64(v, &n)) {
            bh_cell_i64(r, n);
        } else if (bh_streq(type, "boolean") && v->type == BH_JSON_BOOL) {
            bh_cell_bool(r, v->b);
        } else {
            if (!bh_tree_scalar(&b, v))
                bh_json_write(&b, v);
            bh_cell_buf(r, &b, "");
        }
    }
}
