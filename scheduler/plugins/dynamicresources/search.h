/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/search.h - one search for devices, between the allocator's
 * files
 *
 * A search goes through devices in a fixed order and most of them cannot be had, whichever claim
 * asks and whatever else was taken: they are allocated, or no selector wants them. A wish remembers
 * that for one kind of request, and the search steps over them; what they cost of filterTimeout is
 * counted as if it had looked. `plain` searches do without wishes, kept counters and numbered
 * attributes: verify compares the two.
 *
 * Invariants: a device that is not open in a wish is one that take() refuses, without an error and
 *             without a trace, in every search for such a request, until it is told as freed
 *             (taken.c): taking more of anything never makes it good again.
 * Runs in:    the engine's thread.
 */
#ifndef BH_DRA_SEARCH_H
#define BH_DRA_SEARCH_H

#include "scheduler/plugins/dynamicresources/allocator.h"

struct bh_dra_wanted { /* a claim as it is searched for */
    const struct bh_dra_claim *in;
    struct bh_dra_slot *slots;
    uint32_t n_slots;
    struct bh_dra_constraint *constraints;
    uint32_t n_constraints;
};
struct bh_dra_search {
    struct bh_dra_pod *p;
    struct bh_dra *d;
    struct bh_arena *a;
    const struct bh_node_rec *node;
    bool plain;
    const struct bh_dra_sight *sight;
    const struct bh_dra_views *views; /* NULL: not needed yet */
    uint32_t run;                     /* of the sight: where the last device was found */
    uint32_t reach;                   /* devices before this one decided what was found */
    struct bh_dra_wanted *claims;
    uint32_t n_claims;
    struct bh_dra_allocation *out; /* by claim */
    int64_t steps_left;            /* INT64_MAX: no limit */
    bool timed_out;
    struct bh_err *err;
};
static inline const struct bh_dra_device *bh_dra_device(const struct bh_dra_search *s, uint32_t i)
{
    return &s->d->devices[i];
}

/* ---- prepare.c: requests as they are searched for; 0 or -EINVAL ---- */
int bh_dra_prepare(struct bh_dra_search *s, const struct bh_dra_claim *in);

/* ---- suits.c: may the device be used for the request ---- */
/* Selectors and, where devices say so themselves, the node. -EINVAL */
int bh_dra_selectable(struct bh_dra_search *s, const struct bh_dra_wanted *c,
                      const struct bh_dra_request *r, uint32_t device, bool *ret);
/* alone: as if this attempt had taken nothing yet. */
bool bh_dra_has_capacity(const struct bh_dra_search *s, const struct bh_dra_request *r,
                         uint32_t device, bool alone);
/* No share of this attempt takes any of the device's capacity. */
bool bh_dra_nothing_taken(const struct bh_dra_search *s, const struct bh_dra_device *dev);
bool bh_dra_tolerates(const struct bh_dra_request *r, const K8s__Device *dev);

/* ---- wishes.c ---- */
struct bh_dra_wish {
    struct bh_dra_named named; /* everything of the request that the following depends on */
    uint64_t index, classes, freed_pos;
    size_t words;
    uint64_t *open;   /* a bit by device: may be had */
    uint64_t *chosen; /* ... the selectors want it */
};
/* For a prepared request, current; NULL: the pod has too many requests. */
struct bh_dra_wish *bh_dra_wish_for(struct bh_dra_pod *p, const struct bh_dra_request *r);
static inline void bh_dra_close(const struct bh_dra_request *r, uint32_t device)
{
    if (r->wish)
        r->wish->open[device / 64] &= ~((uint64_t)1 << device % 64);
}
static inline bool bh_dra_is_chosen(const struct bh_dra_request *r, uint32_t device)
{
    return r->wish && r->wish->chosen[device / 64] >> device % 64 & 1;
}
/* The first open device from `from` on, `end` when there is none before it. */
uint32_t bh_dra_next_open(const struct bh_dra_wish *w, uint32_t from, uint32_t end);

/* ---- values.c: attributes as numbers ---- */
struct bh_dra_column {
    char *attribute;
    uint64_t index;  /* generation of the index */
    uint32_t *value; /* by device: ABSENT, or a number that only equal values share */
    bool odd;        /* some value has no type, or several: values themselves are compared */
};
enum { BH_DRA_VALUE_NONE, BH_DRA_VALUE_ABSENT, BH_DRA_VALUE_FIRST };
/* NULL: it is odd, or too many attributes are asked about. */
const struct bh_dra_column *bh_dra_column_of(struct bh_dra *d, const char *attribute);
static inline bool bh_dra_concerned(const struct bh_dra_constraint *c, uint32_t request,
                                    int32_t sub)
{
    return c->concerned[request * c->stride + (uint32_t)(sub + 1)];
}
/* As bh_dra_constraint_add and _remove, of a constraint with a column. */
bool bh_dra_number_add(struct bh_dra_constraint *c, uint32_t request, int32_t sub, uint32_t device);
void bh_dra_number_remove(struct bh_dra_constraint *c, uint32_t request, int32_t sub);
#endif
