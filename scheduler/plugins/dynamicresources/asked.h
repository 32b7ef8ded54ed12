/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/asked.h - what pods ask for, and which nodes have it
 *
 * Pods whose claims come from one template ask the same of every node. The verdict on a node stands
 * until the node's object, a slice or a class changes, or until a device that the node may see
 * changes hands; only these nodes are searched again.
 *
 * Owns:       the last BH_DRA_ASKED questions with a byte a row each.
 * Runs in:    the engine's thread, after bh_dra_sync.
 */
#ifndef BH_DRA_ASKED_H
#define BH_DRA_ASKED_H

#include "scheduler/plugins/dynamicresources/cycle.h"

/* Filter's verdict on every live row. NULL: a search fails on some node, some claim is allocated,
 * or verdicts depend on the order of asking (shared counters): ask every node in turn. Valid in
 * this cycle. filter: the plugin's. */
const struct bh_dra_question *
bh_dra_ask(struct bh_call *c, struct bh_dra_cycle *st,
           const struct bh_status *(*filter)(struct bh_call *c, const struct bh_node_info *node));
bool bh_dra_answer(const struct bh_dra_question *q, uint32_t row);
uint32_t bh_dra_n_yes(const struct bh_dra_question *q);
/* The rows that pass, ascending. */
uint32_t bh_dra_yes_rows(const struct bh_dra_question *q, uint32_t *rows);
#endif
