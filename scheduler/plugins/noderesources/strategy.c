/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/noderesources/strategy.c - how a node is scored by its fill level
 *
 * Upstream:   pkg/scheduler/framework/plugins/noderesources/least_allocated.go, most_allocated.go,
 *             requested_to_capacity_ratio.go, plugins/helper/shape_score.go; differences: none.
 */
#include <math.h>

#include "scheduler/plugins/noderesources/fit.h"

int64_t bh_broken_line(const struct bh_fit_point *p, uint32_t n, int64_t x)
{
    for (uint32_t i = 0; i < n; i++) {
        if (x > p[i].utilization)
            continue;
        if (i == 0)
            return p[0].score;
        return p[i - 1].score + (p[i].score - p[i - 1].score) * (x - p[i - 1].utilization) /
                                    (p[i].utilization - p[i - 1].utilization);
    }
    return p[n - 1].score;
}

static int64_t weighted(const struct bh_res_view *v, bool most)
{
    int64_t sum = 0, weights = 0;

    for (uint32_t i = 0; i < v->n; i++) {
        int64_t alloc = v->v[i].alloc, req = v->v[i].requested, s;
        if (most)
            s = bh_percent(BH_MIN(req, alloc), alloc);
        else
            s = req > alloc ? 0 : bh_percent(alloc - req, alloc);
        sum += s * v->v[i].weight;
        weights += v->v[i].weight;
    }
    return weights ? sum / weights : 0;
}

int64_t bh_fit_score(const struct bh_fit_args *a, const struct bh_res_view *v)
{
    switch (a->strategy) {
    case BH_FIT_LEAST:
        return weighted(v, false);
    case BH_FIT_MOST:
        return weighted(v, true);
    case BH_FIT_RATIO:
        break;
    }
    /* A resource that scores 0 leaves the average altogether. */
    int64_t sum = 0, weights = 0;
    for (uint32_t i = 0; i < v->n; i++) {
        int64_t alloc = v->v[i].alloc, req = v->v[i].requested;
        int64_t fill = req > alloc ? 100 : bh_percent(req, alloc);
        int64_t s = bh_broken_line(a->shape, a->n_shape, fill);
        if (s <= 0)
            continue;
        sum += s * v->v[i].weight;
        weights += v->v[i].weight;
    }
    return weights ? (int64_t)round((double)sum / (double)weights) : 0;
}
