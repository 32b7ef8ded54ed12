/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/tables/table.c - columns and cells of any kind
 *
 * Runs in: the simulator's loop; no state.
 * Upstream: pkg/printers/storage/storage.go, pkg/printers/internalversion/printers.go (v1.36);
 * differences: rows carry no conditions, kubectl reads none.
 */
#include "simulator/tables/table.h"

#include "simulator/server/sim.h"

static const struct bh_table_col default_cols[] = {BH_COL_NAME, BH_COL_AGE};
static void default_cells(struct bh_table_row *r, const struct bh_json *obj)
{
    bh_cell_name(r, obj);
    bh_cell_age(r, obj);
}
static const struct bh_table_kind default_kind = {"", "", default_cols, BH_ARRAY_LEN(default_cols),
                                                  default_cells};

static const struct bh_table_kind *find_kind(const struct bh_sim_type *t)
{
    static const struct bh_table_set *const sets[] = {&bh_table_set_pods,    &bh_table_set_core,
                                                      &bh_table_set_apps,    &bh_table_set_net,
                                                      &bh_table_set_storage, &bh_table_set_misc};

    for (size_t s = 0; s < BH_ARRAY_LEN(sets); s++) {
        for (size_t i = 0; i < sets[s]->n; i++) {
            const struct bh_table_kind *k = &sets[s]->kinds[i];
            if (bh_streq(k->kind, t->kind) && bh_streq(k->group, t->group))
                return k;
        }
    }
    return &default_kind;
}

static void write_column(struct bh_buf *b, const struct bh_table_col *c)
{
    bh_buf_adds(b, "{\"name\":");
    bh_buf_add_json_str(b, c->name, strlen(c->name));
    bh_buf_addf(b, ",\"type\":\"%s\",\"format\":\"%s\",\"description\":", c->type, c->format);
    bh_buf_add_json_str(b, c->description, strlen(c->description));
    bh_buf_addf(b, ",\"priority\":%d}", c->priority);
}

void bh_sim_table_columns(const struct bh_sim_type *t, struct bh_buf *out)
{
    const struct bh_table_kind *k = find_kind(t);

    if (t->custom) {
        bh_table_custom_columns(t->custom->columns, out);
        return;
    }
    bh_buf_addc(out, '[');
    for (size_t i = 0; i < k->n_cols; i++) {
        if (i)
            bh_buf_addc(out, ',');
        write_column(out, &k->cols[i]);
    }
    bh_buf_addc(out, ']');
}

void bh_sim_table_cells(const struct bh_sim_type *t, const struct bh_json *obj, int64_t now_ns,
                        struct bh_buf *out)
{
    struct bh_table_row r = {.out = out, .now_s = now_ns / 1000000000};

    if (t->custom) {
        bh_table_custom_cells(t->custom->columns, obj, now_ns, out);
        return;
    }
    bh_buf_addc(out, '[');
    find_kind(t)->cells(&r, obj);
    bh_buf_addc(out, ']');
}
