/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/rows.h - what the page shows of pods and nodes: short rows
 *
 * Shapes: docs/simulator-api.md section 2. Pure functions on parsed objects; any thread.
 */
#ifndef BH_CONSOLE_ROWS_H
#define BH_CONSOLE_ROWS_H

#include "simulator/server/sim.h"

/* Amounts of resources; names are borrowed from where they were read. */
#define BH_CONSOLE_RESOURCES 32 /* further names are left out */
struct bh_console_amount {
    const char *name;
    int64_t value;
};
struct bh_console_amounts {
    int64_t cpu_milli, memory_bytes, pods;
    unsigned n;
    struct bh_console_amount more[BH_CONSOLE_RESOURCES];
};
void bh_console_amount_add(struct bh_console_amounts *x, const char *name, int64_t value);
/* x += sign * y; names new to x are borrowed from y. Amounts of zero go. */
void bh_console_amounts_add(struct bh_console_amounts *x, const struct bh_console_amounts *y,
                            int sign);
/* What the scheduler counts for a pod: containers, init containers, pod-level requests, overhead.
 * Upstream: component-helpers/resource/helpers.go (PodRequests). pods = 1. */
void bh_console_requests(const struct bh_json *pod, struct bh_console_amounts *out);
void bh_console_allocatable(const struct bh_json *node, struct bh_console_amounts *out);

/* The PodScheduled condition, NULL when there is none. */
const struct bh_json *bh_console_condition(const struct bh_json *obj, const char *type);
bool bh_console_gated(const struct bh_json *pod);
/* obj: o's tree. */
struct bh_json *bh_console_pod_row(struct bh_arena *a, const struct bh_sim_obj *o,
                                   const struct bh_json *obj);
struct bh_json *bh_console_node_row(struct bh_arena *a, const struct bh_sim_obj *o,
                                    const struct bh_json *obj,
                                    const struct bh_console_amounts *requested);
#endif
