/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/framework/status_set.h - a few statuses that outlive their cycle, each once
 *
 * Thousands of nodes reject a pod for a handful of reasons. The set holds a copy of each status
 * (arena of its own); verdicts by row are indexes into it.
 *
 * Invariants: an index stays valid and its status in place until the set is cleared; entries with
 *             count 0 stay.
 * Runs in:    the engine's thread. No malloc for a status that is in the set already.
 */
#ifndef BH_STATUS_SET_H
#define BH_STATUS_SET_H

#include "scheduler/framework/status.h"

#define BH_STATUS_SET_MAX  64u
#define BH_STATUS_SET_NONE UINT32_MAX

struct bh_status_entry {
    struct bh_status status; /* a copy */
    int by;                  /* index of the plugin, as bh_run_filter gives it */
};
struct bh_status_set {
    struct bh_arena arena;
    struct bh_status_entry v[BH_STATUS_SET_MAX];
    uint32_t n, last; /* last: found last */
};
void bh_status_set_init(struct bh_status_set *set);
void bh_status_set_clear(struct bh_status_set *set);
void bh_status_set_fini(struct bh_status_set *set);
/* Index of the status, which is added if need be; BH_STATUS_SET_NONE when the set is full. */
uint32_t bh_status_set_find(struct bh_status_set *set, const struct bh_status *s, int by);
#endif
