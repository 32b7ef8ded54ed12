/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/totals.h - sums over all pods and nodes, kept from commit to commit
 *
 * The first question, past.c's after a second, has what is in the store read in portions;
 * every later commit of a pod or node is followed by a listener. So the numbers are
 * those of revision bh_console_totals_revision(), which lags the store by a turn of the loop.
 * Threads: the loop's.
 */
#ifndef BH_CONSOLE_TOTALS_H
#define BH_CONSOLE_TOTALS_H

#include "simulator/console/console.h"
#include "simulator/console/rows.h"

struct bh_console_counts {
    struct {
        int64_t total, ready, unschedulable;
    } nodes;
    /* pending: no node yet, gated ones among them; scheduled: has a node and is not finished */
    struct {
        int64_t total, pending, scheduled, running, succeeded, failed, gated, terminating;
    } pods;
    struct bh_console_amounts allocatable, requested;
};
/* NULL while the store is being read for the first time: ask again some milliseconds later. */
const struct bh_console_counts *bh_console_totals(struct bh_console *c);
uint64_t bh_console_totals_revision(const struct bh_console *c);
/* What the pods of a node ask for. */
void bh_console_totals_requested(const struct bh_console *c, const char *node,
                                 struct bh_console_amounts *out);
/* Nodes whose sums changed after revision *cursor, the oldest change first, at most max; moves
 * *cursor to the revision up to which all are told. */
void bh_console_totals_changed(const struct bh_console *c, uint64_t *cursor, size_t max,
                               void (*fn)(void *arg, const char *node), void *arg);
/* Why pods wait: calls fn for each distinct message of a PodScheduled condition. */
void bh_console_totals_waiting(const struct bh_console *c,
                               void (*fn)(void *arg, const char *message, int64_t pods), void *arg);
#endif
