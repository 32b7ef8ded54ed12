/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/label_columns.h - the nodes' values of a few label keys, by row
 *
 * For overlays (struct bh_overlay_ops) whose conditions on nodes differ from pod to pod: a column
 * is scanned in a fraction of the time that looking labels up takes.
 *
 * Owns:       the columns of the keys that were used last.
 * Invariants: a column that bh_label_column() returns holds for every live row.
 * Memory:     the heap.
 * Runs in:    the engine's thread. No malloc unless keys or rows grew.
 */
#ifndef BH_LABEL_COLUMNS_H
#define BH_LABEL_COLUMNS_H

#include "scheduler/cache/cache.h"

#define BH_LABEL_COLUMNS 8u
#define BH_LABEL_ABSENT  UINT32_MAX /* the node does not have the label; no symbol */

struct bh_label_columns {
    struct bh_label_column {
        bh_sym key;
        bh_sym *value; /* by row; NULL: the column is not in use */
        uint32_t cap;
        uint64_t log_pos; /* changes before this are in */
        uint64_t used;
    } column[BH_LABEL_COLUMNS];
    uint64_t clock;
};
void bh_label_columns_fini(struct bh_label_columns *l);
/* The values of the key, valid until the next call for BH_LABEL_COLUMNS other keys. */
const bh_sym *bh_label_column(struct bh_label_columns *l, const struct bh_cache *c, bh_sym key);
#endif
