/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/preemption/select.c - the one candidate that hurts least
 *
 * Runs in:    the engine's thread.
 * Upstream:   pkg/scheduler/framework/preemption/preemption.go (pickOneNodeForPreemption);
 *             differences: none.
 */
#include "scheduler/preemption/preemption.h"

int64_t bh_pod_start_ns(const struct bh_pod_info *p, int64_t now_ns)
{
    return p->rec->start_ns ? p->rec->start_ns : now_ns;
}

/* How bad the candidate is in one respect; the least bad ones stay. */
static bh_sum badness(const struct bh_candidate *c, unsigned respect, int64_t now_ns)
{
    bh_sum sum = 0;
    int64_t start;

    switch (respect) {
    case 0:
        return c->violating;
    case 1:
        return c->victims[0]->shape->priority;
    case 2: /* shifted, so that more low-priority victims never look cheaper than fewer */
        for (uint32_t i = 0; i < c->n_victims; i++)
            sum += (bh_sum)c->victims[i]->shape->priority + 2147483648;
        return sum;
    case 3:
        return c->n_victims;
    default: /* the earliest start among the victims of the highest priority */
        start = bh_pod_start_ns(c->victims[0], now_ns);
        for (uint32_t i = 1; i < c->n_victims; i++)
            if (c->victims[i]->shape->priority == c->victims[0]->shape->priority)
                start = BH_MIN(start, bh_pod_start_ns(c->victims[i], now_ns));
        return -(bh_sum)start;
    }
}

int bh_compare_candidates(const struct bh_candidate *a, const struct bh_candidate *b,
                          int64_t now_ns)
{
    for (unsigned r = 0; r < 5; r++) {
        bh_sum x = badness(a, r, now_ns), y = badness(b, r, now_ns);
        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

/* Lexicographic comparison is the same as keeping the minima respect by respect; the first of
 * equals stays. */
uint32_t bh_pick_candidate(const struct bh_candidate *v, uint32_t n, int64_t now_ns)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < n; i++)
        if (bh_compare_candidates(&v[i], &v[best], now_ns) < 0)
            best = i;
    return best;
}
