/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/label_columns.c - the nodes' values of a few label keys, by row
 */
#include "scheduler/cache/label_columns.h"

void bh_label_columns_fini(struct bh_label_columns *l)
{
    for (unsigned i = 0; i < BH_LABEL_COLUMNS; i++)
        free(l->column[i].value);
    memset(l, 0, sizeof *l);
}

static void read_row(struct bh_label_column *k, const struct bh_cache *c, uint32_t row)
{
    const struct bh_node_info *ni = c->rows[row];

    k->value[row] = BH_LABEL_ABSENT;
    if (ni)
        (void)bh_labels_get(bh_rec_at(ni->rec, ni->rec->labels, struct bh_kv), ni->rec->labels.n,
                            k->key, &k->value[row]);
}

const bh_sym *bh_label_column(struct bh_label_columns *l, const struct bh_cache *c, bh_sym key)
{
    struct bh_label_column *k = &l->column[0], *x = k;

    /* The key's column; of others that of the least recently used key. */
    for (; x < l->column + BH_LABEL_COLUMNS && !(x->value && x->key == key); x++)
        k = x->used < k->used ? x : k;
    k = x < l->column + BH_LABEL_COLUMNS ? x : k;
    bool anew = !k->value || k->key != key || k->log_pos < c->log_begin ||
                k->cap < c->cols.cap_rows || c->log_end - k->log_pos > c->cols.n_rows;

    k->key = key;
    k->used = ++l->clock;
    if (anew) {
        if (k->cap < c->cols.cap_rows) {
            k->cap = c->cols.cap_rows;
            free(k->value);
            k->value = bh_reallocarray(NULL, k->cap, sizeof *k->value);
        }
        for (uint32_t row = 0; row < c->cols.n_rows; row++)
            read_row(k, c, row);
        k->log_pos = c->log_end;
    }
    for (; k->log_pos < c->log_end; k->log_pos++) {
        uint32_t i = k->log_pos & (c->log_cap - 1);
        if (c->log_what[i] == BH_ROW_NODE)
            read_row(k, c, c->log[i]);
    }
    return k->value;
}
