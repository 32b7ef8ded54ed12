/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/columns.h - what the batch forms scan: one array per quantity, one bit per fact
 *
 * Index domain of everything here: row of a node (node_info.h). Columns are derived from the node
 * infos and are as fresh as the last bh_cache_sync().
 *
 *   column        | unit    | meaning                                          | valid when
 *   alloc_*       | see rec | status.allocatable                               | live bit set
 *   used_*        |   "     | Requested, clamped into int64                    | live bit set
 *   nonzero_*     |   "     | NonZeroRequested, clamped                        | live bit set
 *   pods_free     | pods    | allocatable.pods - pods on the node              | live bit set
 *   scalar[i].*   | 1       | the same two for one scalar resource             | live bit set
 *
 * A scalar resource beyond BH_COLUMNS_SCALARS has no column: batch forms then ask the node infos.
 */
#ifndef BH_COLUMNS_H
#define BH_COLUMNS_H

#include "scheduler/cache/node_info.h"

#define BH_COLUMNS_SCALARS 64u

struct bh_scalar_column {
    bh_sym name;
    int64_t *alloc, *used;
};
enum bh_row_bit {
    BH_ROW_LIVE,          /* the row holds a node */
    BH_ROW_UNSCHEDULABLE, /* spec.unschedulable */
    BH_ROW_HARD_TAINT,    /* some NoSchedule or NoExecute taint */
    BH_ROW_SOFT_TAINT,    /* some PreferNoSchedule taint */
    BH_ROW_PORTS,         /* some host port is in use */
    BH_ROW_IMAGES,        /* reports images */
    BH_ROW_NOMINATED,     /* some pod is nominated to it */
    BH_ROW_BITS
};
struct bh_columns {
    uint32_t n_rows, cap_rows; /* rows 0 .. n_rows-1 may be live */
    int64_t *alloc_cpu_milli, *alloc_memory_bytes, *alloc_ephemeral_bytes;
    int64_t *used_cpu_milli, *used_memory_bytes, *used_ephemeral_bytes;
    int64_t *nonzero_cpu_milli, *nonzero_memory_bytes;
    int64_t *pods_free;
    uint64_t *bits[BH_ROW_BITS];
    struct bh_scalar_column scalar[BH_COLUMNS_SCALARS];
    uint32_t n_scalars;
};
void bh_columns_fini(struct bh_columns *c);
void bh_columns_reserve(struct bh_columns *c, uint32_t rows); /* n_rows = max(n_rows, rows) */
/* ni NULL: the row is empty now. Leaves BH_ROW_NOMINATED alone. */
void bh_columns_refresh(struct bh_columns *c, uint32_t row, const struct bh_node_info *ni);
/* NULL when the resource has no column. */
const struct bh_scalar_column *bh_columns_scalar(const struct bh_columns *c, bh_sym name);

static inline bool bh_row_bit(const struct bh_columns *c, enum bh_row_bit b, uint32_t row)
{
    return c->bits[b][row >> 6] >> (row & 63) & 1;
}
static inline void bh_row_bit_set(struct bh_columns *c, enum bh_row_bit b, uint32_t row, bool v)
{
    uint64_t m = (uint64_t)1 << (row & 63);
    if (v)
        c->bits[b][row >> 6] |= m;
    else
        c->bits[b][row >> 6] &= ~m;
}
#endif
