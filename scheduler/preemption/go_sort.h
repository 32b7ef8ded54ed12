/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/preemption/go_sort.h - sort.Slice as Go does it, comparison by comparison
 *
 * Upstream sorts victims with a sort that is not stable, by a comparison that reads the clock for
 * pods that have not started: which pods are evicted depends on the algorithm. So this is Go's,
 * exactly, and less() need not be consistent (every less() returns, whatever it says).
 *
 * Upstream: Go's sort.Slice (pattern-defeating quicksort, since Go 1.19). The algorithm is theirs,
 * step by step: Copyright The Go Authors, BSD-3-Clause.
 */
#ifndef BH_GO_SORT_H
#define BH_GO_SORT_H

#include <stdbool.h>
#include <stdint.h>

struct bh_go_sort {
    bool (*less)(void *arg, int32_t i, int32_t j); /* element i comes before element j */
    void (*swap)(void *arg, int32_t i, int32_t j);
    void *arg;
};
/* Elements 0 .. n-1. */
void bh_go_sort(const struct bh_go_sort *s, int32_t n);
#endif
