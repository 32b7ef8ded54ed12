/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/columns.c - arrays derived from the node infos
 */
#include "scheduler/cache/columns.h"

#include "common/base/pages.h"

static int64_t **column(struct bh_columns *c, unsigned i)
{
    int64_t **all[] = {&c->alloc_cpu_milli,   &c->alloc_memory_bytes,   &c->alloc_ephemeral_bytes,
                       &c->used_cpu_milli,    &c->used_memory_bytes,    &c->used_ephemeral_bytes,
                       &c->nonzero_cpu_milli, &c->nonzero_memory_bytes, &c->pods_free};
    return i < BH_ARRAY_LEN(all) ? all[i] : NULL;
}

void bh_columns_fini(struct bh_columns *c)
{
    for (unsigned i = 0; column(c, i); i++)
        bh_pages_free(*column(c, i), c->cap_rows * sizeof(int64_t));
    for (unsigned i = 0; i < BH_ROW_BITS; i++)
        bh_pages_free(c->bits[i], c->cap_rows / 8);
    for (unsigned i = 0; i < c->n_scalars; i++) {
        bh_pages_free(c->scalar[i].alloc, c->cap_rows * sizeof(int64_t));
        bh_pages_free(c->scalar[i].used, c->cap_rows * sizeof(int64_t));
    }
    memset(c, 0, sizeof *c);
}

static int64_t *grow(int64_t *p, uint32_t from, uint32_t to)
{
    return bh_pages_resize(p, from * sizeof *p, to * sizeof *p);
}

void bh_columns_reserve(struct bh_columns *c, uint32_t rows)
{
    if (rows > c->cap_rows) {
        uint32_t cap = c->cap_rows ? c->cap_rows : 64;
        while (cap < rows)
            cap *= 2;
        for (unsigned i = 0; column(c, i); i++)
            *column(c, i) = grow(*column(c, i), c->cap_rows, cap);
        for (unsigned i = 0; i < c->n_scalars; i++) {
            c->scalar[i].alloc = grow(c->scalar[i].alloc, c->cap_rows, cap);
            c->scalar[i].used = grow(c->scalar[i].used, c->cap_rows, cap);
        }
        for (unsigned i = 0; i < BH_ROW_BITS; i++)
            c->bits[i] = bh_pages_resize(c->bits[i], c->cap_rows / 8, cap / 8);
        c->cap_rows = cap;
    }
    c->n_rows = BH_MAX(c->n_rows, rows);
}

const struct bh_scalar_column *bh_columns_scalar(const struct bh_columns *c, bh_sym name)
{
    for (uint32_t i = 0; i < c->n_scalars; i++)
        if (c->scalar[i].name == name)
            return &c->scalar[i];
    return NULL;
}

static struct bh_scalar_column *scalar_column(struct bh_columns *c, bh_sym name)
{
    struct bh_scalar_column *s = (struct bh_scalar_column *)(uintptr_t)bh_columns_scalar(c, name);

    if (s || c->n_scalars == BH_COLUMNS_SCALARS)
        return s;
    s = &c->scalar[c->n_scalars++];
    s->name = name;
    s->alloc = grow(NULL, 0, c->cap_rows);
    s->used = grow(NULL, 0, c->cap_rows);
    return s;
}

void bh_columns_refresh(struct bh_columns *c, uint32_t row, const struct bh_node_info *ni)
{
    bh_assert(row < c->n_rows);
    const struct bh_taint *t = ni ? bh_rec_at(ni->rec, ni->rec->taints, struct bh_taint) : NULL;
    bool hard = false, soft = false;
    for (uint32_t i = 0; ni && i < ni->rec->taints.n; i++) {
        hard |= t[i].effect == BH_NO_SCHEDULE || t[i].effect == BH_NO_EXECUTE;
        soft |= t[i].effect == BH_PREFER_NO_SCHEDULE;
    }
    bh_row_bit_set(c, BH_ROW_LIVE, row, ni != NULL);
    bh_row_bit_set(c, BH_ROW_UNSCHEDULABLE, row, ni && ni->rec->flags & BH_NODE_UNSCHEDULABLE);
    bh_row_bit_set(c, BH_ROW_HARD_TAINT, row, hard);
    bh_row_bit_set(c, BH_ROW_SOFT_TAINT, row, soft);
    bh_row_bit_set(c, BH_ROW_PORTS, row, ni && ni->n_ports > 0);
    bh_row_bit_set(c, BH_ROW_IMAGES, row, ni && ni->n_images > 0);
    const struct bh_res *r = ni ? bh_rec_at(ni->rec, ni->rec->scalars, struct bh_res) : NULL;
    for (uint32_t i = 0; i < c->n_scalars; i++)
        c->scalar[i].alloc[row] = c->scalar[i].used[row] = 0;
    for (uint32_t i = 0; ni && i < ni->rec->scalars.n; i++) {
        struct bh_scalar_column *s = scalar_column(c, r[i].name);
        if (s)
            s->alloc[row] = r[i].value;
    }
    for (uint32_t i = 0; ni && i < ni->n_scalars; i++) {
        struct bh_scalar_column *s = scalar_column(c, ni->scalars[i].name);
        if (s)
            s->used[row] = bh_sum_i64(ni->scalars[i].used);
    }
    if (!ni)
        return;
    c->alloc_cpu_milli[row] = ni->rec->alloc_cpu_milli;
    c->alloc_memory_bytes[row] = ni->rec->alloc_memory_bytes;
    c->alloc_ephemeral_bytes[row] = ni->rec->alloc_ephemeral_bytes;
    c->used_cpu_milli[row] = bh_sum_i64(ni->used_cpu_milli);
    c->used_memory_bytes[row] = bh_sum_i64(ni->used_memory_bytes);
    c->used_ephemeral_bytes[row] = bh_sum_i64(ni->used_ephemeral_bytes);
    c->nonzero_cpu_milli[row] = bh_sum_i64(ni->nonzero_cpu_milli);
    c->nonzero_memory_bytes[row] = bh_sum_i64(ni->nonzero_memory_bytes);
    c->pods_free[row] = bh_sum_i64((bh_sum)ni->rec->alloc_pods - ni->n_pods);
}
