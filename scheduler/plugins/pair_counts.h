/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/pair_counts.h - counts by (topology key, topology value)
 *
 * Such counts are built once a cycle over all nodes. A view is what one evaluation sees of them: the counts
 * and a few changes of its own (pods put on or taken off one node), so that a dry run costs no
 * copy.
 *
 * Owns:       nothing; everything lives in the arena given.
 * Invariants: an entry stays when its count returns to 0; nonzero counts the others.
 *             They do not change while views of them are in use.
 * Runs in:    the engine's thread.
 */
#ifndef BH_PAIR_COUNTS_H
#define BH_PAIR_COUNTS_H

#include "common/base/arena.h"
#include "common/base/symtab.h"

struct bh_pair_count {
    bh_sym key, value;
    int64_t n;
    bool taken;
};
struct bh_pair_counts {
    struct bh_arena *a;
    struct bh_pair_count *slot; /* open addressing */
    uint32_t cap, used, nonzero;
};
static inline struct bh_pair_counts bh_pair_counts(struct bh_arena *a)
{
    return (struct bh_pair_counts){.a = a};
}
void bh_pair_counts_add(struct bh_pair_counts *t, bh_sym key, bh_sym value, int64_t n);
/* NULL: no such entry. The count may be changed through it as long as nonzero does not matter. */
int64_t *bh_pair_counts_find(const struct bh_pair_counts *t, bh_sym key, bh_sym value);

struct bh_pair_view {
    const struct bh_pair_counts *base;
    struct bh_pair_count *change; /* differences; few, because they come from one node */
    uint32_t n, cap;
    int64_t nonzero; /* entries whose count is not 0 */
};
static inline struct bh_pair_view bh_pair_view(const struct bh_pair_counts *t)
{
    return (struct bh_pair_view){.base = t, .nonzero = t->nonzero};
}
void bh_pair_view_add(struct bh_pair_view *v, struct bh_arena *a, bh_sym key, bh_sym value,
                      int64_t n);
int64_t bh_pair_view_get(const struct bh_pair_view *v, bh_sym key, bh_sym value);
/* A view that changes independently of v. */
struct bh_pair_view bh_pair_view_clone(const struct bh_pair_view *v, struct bh_arena *a);
#endif
