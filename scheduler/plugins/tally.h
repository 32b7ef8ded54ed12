/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/tally.h - counts by (topology key, topology value)
 *
 * A tally is built once a cycle over all nodes. A view is what one evaluation sees of it: the tally
 * and a few changes of its own (pods put on or taken off one node), so that a dry run costs no
 * copy.
 *
 * Owns:       nothing; everything lives in the arena given.
 * Invariants: an entry stays when its count returns to 0; nonzero counts the others.
 *             A tally does not change while views of it are in use.
 * Runs in:    the engine's thread.
 */
#ifndef BH_TALLY_H
#define BH_TALLY_H

#include "common/base/arena.h"
#include "common/base/symtab.h"

struct bh_pair_count {
    bh_sym key, value;
    int64_t n;
    bool taken;
};
struct bh_tally {
    struct bh_arena *a;
    struct bh_pair_count *slot; /* open addressing */
    uint32_t cap, used, nonzero;
};
static inline struct bh_tally bh_tally(struct bh_arena *a)
{
    return (struct bh_tally){.a = a};
}
void bh_tally_add(struct bh_tally *t, bh_sym key, bh_sym value, int64_t n);
/* NULL: no such entry. The count may be changed through it as long as nonzero does not matter. */
int64_t *bh_tally_find(const struct bh_tally *t, bh_sym key, bh_sym value);

struct bh_tally_view {
    const struct bh_tally *base;
    struct bh_pair_count *change; /* differences; few, because they come from one node */
    uint32_t n, cap;
    int64_t nonzero; /* entries whose count is not 0 */
};
static inline struct bh_tally_view bh_tally_view(const struct bh_tally *t)
{
    return (struct bh_tally_view){.base = t, .nonzero = t->nonzero};
}
void bh_tally_view_add(struct bh_tally_view *v, struct bh_arena *a, bh_sym key, bh_sym value,
                       int64_t n);
int64_t bh_tally_view_get(const struct bh_tally_view *v, bh_sym key, bh_sym value);
/* A view that changes independently of v. */
struct bh_tally_view bh_tally_view_clone(const struct bh_tally_view *v, struct bh_arena *a);
#endif
