/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/framework/status_set.c - statuses, each once
 */
#include "scheduler/framework/status_set.h"

void bh_status_set_init(struct bh_status_set *set)
{
    bh_arena_init(&set->arena, 0);
    set->n = set->last = 0;
}

void bh_status_set_clear(struct bh_status_set *set)
{
    bh_arena_reset(&set->arena);
    set->n = set->last = 0;
}

void bh_status_set_fini(struct bh_status_set *set)
{
    bh_arena_fini(&set->arena);
    set->n = set->last = 0;
}

static bool same(const struct bh_status_entry *e, const struct bh_status *s, int by)
{
    return e->by == by && bh_status_equal(&e->status, s);
}

uint32_t bh_status_set_find(struct bh_status_set *set, const struct bh_status *s, int by)
{
    uint32_t i = 0;

    /* Neighbours are mostly rejected for the same reason. */
    if (set->last < set->n && same(&set->v[set->last], s, by))
        return set->last;
    while (i < set->n && !same(&set->v[i], s, by))
        i++;
    if (i == BH_STATUS_SET_MAX)
        return BH_STATUS_SET_NONE;
    if (i == set->n) {
        const char **reasons = bh_arena_new_array(&set->arena, const char *, s->n_reasons + 1);
        for (uint32_t k = 0; k < s->n_reasons; k++)
            reasons[k] = bh_arena_strdup(&set->arena, s->reasons[k]);
        set->v[set->n] = (struct bh_status_entry){.status = *s, .by = by};
        set->v[set->n++].status.reasons = reasons;
    }
    return set->last = i;
}
