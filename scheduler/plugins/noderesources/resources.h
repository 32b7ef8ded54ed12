/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/noderesources/resources.h - the configured resource lists of the two scorers
 *
 * Both scorers compare, per configured resource, what the node has, what its pods use and what the
 * incoming pod adds. They differ in which sums they take (NonZeroRequested or Requested) and in the
 * formula. Per-node and batch form share everything from bh_res_view on.
 *
 * Runs in:  the engine's thread.
 * Upstream: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go.
 */
#ifndef BH_NODERESOURCES_H
#define BH_NODERESOURCES_H

#include "scheduler/framework/plugin.h"

#define BH_RES_MAX 32u /* configured resources; more are refused */

enum bh_res_kind { BH_RES_CPU, BH_RES_MEMORY, BH_RES_EPHEMERAL, BH_RES_OTHER };
struct bh_res_spec {
    enum bh_res_kind kind;
    bool scalar; /* OTHER that nodes and pods track */
    bh_sym name;
    int64_t weight;
};
struct bh_res_list {
    struct bh_res_spec v[BH_RES_MAX];
    uint32_t n;
};
/* From args ([{name, weight}]); absent or empty: cpu 1, memory 1. Weight 0 becomes 1. */
void bh_res_list_new(struct bh_res_list *l, const struct bh_json *resources, struct bh_symtab *tab);
/* Of the pod, by resource; q: of its shape. */
const int64_t *bh_res_requests(struct bh_call *c, const struct bh_res_list *l,
                               const struct bh_requests *q);
extern const struct bh_field bh_res_schema[];

/* One node's figures for the resources that count (alloc > 0, asked for or not scalar). */
struct bh_res_view {
    uint32_t n;
    struct bh_res_figures {
        int64_t alloc, used, requested; /* requested = used + the pod's */
        int64_t weight;
    } v[BH_RES_MAX];
};
/* nonzero: cpu and memory sums with defaults for containers that request nothing. devices: counts
 * for resources the node has nothing of; NULL = no class provides any. */
struct bh_class_devices;
void bh_res_view_node(struct bh_res_view *out, const struct bh_res_list *l, const int64_t *requests,
                      const struct bh_node_info *ni, bool nonzero,
                      struct bh_class_devices *devices);

/* The same from the columns: resolve once per batch, then one cheap call per row. */
struct bh_res_columns {
    uint32_t n;
    bool complete; /* false: some resource has no column or devices count, use bh_res_view_node */
    struct bh_res_column {
        const int64_t *alloc, *used;
        int64_t request, weight;
    } v[BH_RES_MAX];
};
void bh_res_columns_resolve(struct bh_res_columns *out, const struct bh_res_list *l,
                            const int64_t *requests, const struct bh_columns *cols, bool nonzero,
                            const struct bh_class_devices *devices);
static inline void bh_res_view_row(struct bh_res_view *out, const struct bh_res_columns *c,
                                   uint32_t row)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->n; i++) {
        int64_t alloc = c->v[i].alloc[row];
        if (alloc == 0)
            continue;
        out->v[n].alloc = alloc;
        out->v[n].used = c->v[i].used[row];
        out->v[n].requested = bh_add_sat(out->v[n].used, c->v[i].request);
        out->v[n].weight = c->v[i].weight;
        n++;
    }
    out->n = n;
}

/* part * 100 / whole, truncated; whole > 0. Exact for all int64. The double quotient of integers
 * below 2^46 is never rounded up to the next integer: the distance of a fraction to it is at least
 * 1/whole, the rounding error of a quotient up to 100 at most 2^-47. */
static inline int64_t bh_percent(int64_t part, int64_t whole)
{
    const int64_t exact = (int64_t)1 << 46;

    if (bh_likely(part >= 0 && part <= whole && whole < exact))
        return (int64_t)((double)(part * 100) / (double)whole);
    return (int64_t)((bh_sum)part * 100 / whole);
}
#endif
