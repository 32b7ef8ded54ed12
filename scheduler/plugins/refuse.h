/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/refuse.h - plugins whose subject this release does not decide yet
 *
 * They are registered, take their args and skip for every pod that does not need them. A pod that
 * does is refused with a clear reason: a wrong place would be worse than none. See
 * plugins/README.md.
 */
#ifndef BH_REFUSE_H
#define BH_REFUSE_H

#include "scheduler/framework/plugin.h"

#define BH_REFUSAL(id, name)                                                                       \
    BH_STATUS_CONST(id, BH_UNSCHEDULABLE_AND_UNRESOLVABLE, name,                                   \
                    "berth: " name " is not supported in this release")

/* Callbacks of plugins that always skip. */
static inline const struct bh_status *bh_never_filter(struct bh_call *c,
                                                      const struct bh_node_info *node)
{
    (void)c;
    (void)node;
    return NULL;
}
static inline const struct bh_status *bh_skip_score(struct bh_call *c, const uint32_t *rows,
                                                    uint32_t n)
{
    (void)c;
    (void)rows;
    (void)n;
    return &bh_status_skip;
}
static inline const struct bh_status *bh_zero_score(struct bh_call *c,
                                                    const struct bh_node_info *node, int64_t *ret)
{
    (void)c;
    (void)node;
    *ret = 0;
    return NULL;
}
static inline void bh_zero_rows(struct bh_call *c, const uint32_t *rows, uint32_t n, int64_t *ret)
{
    (void)c;
    (void)rows;
    memset(ret, 0, n * sizeof *ret);
}
#endif
