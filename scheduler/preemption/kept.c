/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/preemption/kept.c - dry runs that need not be repeated
 *
 * A node whose pods did not change since the last pod of the shape was refused would lose the same
 * victims again. Of each dry run what the choice looks at is kept; the victims themselves are found
 * once more on the node that is chosen.
 *
 * Invariants: room[row] is what bh_dry_run finds for every pod of the shape (but for one that is
 *             nominated to the row's node) or unknown. Not kept: what depends on the time, errors;
 *             where pods elsewhere have a say, all but that a node has no victims.
 * Runs in:    the engine's thread. Steady state: no malloc.
 */
#include <stdio.h>

#include "scheduler/preemption/preemption.h"

enum { UNKNOWN, CANDIDATE, FAILED /* + index of the status */ };

struct room {
    int64_t sum;     /* of the victims' priorities, as select.c has it */
    int64_t started; /* the earliest start of the most important ones, INT64_MAX: none has one */
    int32_t top;     /* the highest priority */
    uint32_t n_victims, violating;
    uint16_t state;
    bool waiting; /* some most important victim has not started */
};
struct bh_dry_runs {
    uint32_t n_rows;
    uint64_t budgets; /* version of the kind */
    struct bh_status_set why;
    struct room room[];
};

struct bh_dry_runs *bh_dry_runs_new(uint32_t n_rows)
{
    struct bh_dry_runs *d = bh_calloc(1, sizeof *d + n_rows * sizeof *d->room);

    d->n_rows = n_rows;
    bh_status_set_init(&d->why);
    return d;
}

void bh_dry_runs_free(struct bh_dry_runs *d)
{
    if (!d)
        return;
    bh_status_set_fini(&d->why);
    free(d);
}

size_t bh_dry_runs_bytes(const struct bh_dry_runs *d)
{
    return sizeof *d + d->n_rows * sizeof *d->room;
}

void bh_dry_runs_forget(struct bh_dry_runs *d, uint32_t row)
{
    d->room[row].state = UNKNOWN;
}

static void forget_all(struct bh_dry_runs *d)
{
    memset(d->room, 0, d->n_rows * sizeof *d->room);
    bh_status_set_clear(&d->why);
}

/* ---- one node ---- */

static struct room room_of(const struct bh_candidate *c)
{
    struct room r = {.state = CANDIDATE,
                     .n_victims = c->n_victims,
                     .violating = (uint32_t)c->violating,
                     .top = c->victims[0]->shape->priority,
                     .started = INT64_MAX};

    for (uint32_t i = 0; i < c->n_victims; i++) {
        int64_t start = c->victims[i]->rec->start_ns;
        r.sum += (int64_t)c->victims[i]->shape->priority + 2147483648;
        if (c->victims[i]->shape->priority != r.top)
            continue;
        if (start)
            r.started = BH_MIN(r.started, start);
        else
            r.waiting = true;
    }
    return r;
}

static int64_t earliest(const struct room *r, int64_t now_ns)
{
    return r->waiting ? BH_MIN(r->started, now_ns) : r->started;
}

/* As bh_compare_candidates. */
static bool is_better(const struct room *a, const struct room *b, int64_t now_ns)
{
    if (a->violating != b->violating)
        return a->violating < b->violating;
    if (a->top != b->top)
        return a->top < b->top;
    if (a->sum != b->sum)
        return a->sum < b->sum;
    if (a->n_victims != b->n_victims)
        return a->n_victims < b->n_victims;
    return earliest(a, now_ns) > earliest(b, now_ns);
}

enum outcome { SEEN, ERROR, FULL /* of reasons that can be kept */ };

/* *ret_keep: until the node changes. */
static enum outcome look(struct bh_attempt *at, const struct bh_kept_diagnosis *k, uint32_t row,
                         struct room *ret, bool *ret_keep)
{
    struct bh_candidate cand = {.row = row};
    const struct bh_status *s = bh_dry_run(at, at->c->cache->rows[row], &cand);
    uint32_t i = 0;

    if (!s) {
        *ret = room_of(&cand);
    } else if (s->code != BH_ERROR) {
        i = bh_status_set_find(&k->dry_runs->why, s, 0);
        *ret = (struct room){.state = (uint16_t)(FAILED + i)};
    }
    *ret_keep = !cand.mixed && (!k->elsewhere || s == &bh_no_victims);
    enum outcome o = s && s->code == BH_ERROR ? ERROR : i == BH_STATUS_SET_NONE ? FULL : SEEN;
    bh_arena_reset(at->cy->scratch);
    return o;
}

/* The whole way, with copies of the node and the cycle. */
static void verify(struct bh_attempt *at, const struct bh_kept_diagnosis *k, uint32_t row,
                   const struct room *have)
{
    struct bh_attempt whole = *at;
    struct bh_cycle cy;
    struct room want = {0};
    bool keep;

    bh_cycle_clone(&cy, at->cy, at->cy->arena);
    cy.sketch = false;
    whole.cy = &cy;
    whole.sketcher = NULL;
    enum outcome o = look(&whole, k, row, &want, &keep);
    if (o == FULL) /* no place for the reason in the set, so no kept verdict has it */
        want.state = UINT16_MAX;
    if (want.state == have->state &&
        (want.state != CANDIDATE ||
         (want.n_victims == have->n_victims && want.violating == have->violating &&
          want.sum == have->sum && want.top == have->top && want.waiting == have->waiting &&
          want.started == have->started)))
        return;
    fprintf(stderr,
            "verify: a kept dry run differs: node %s, shape %u: state %u, %u victims; now %u, %u\n",
            bh_sym_text(at->c->tab, at->c->cache->rows[row]->name), at->c->pod->shape_id,
            have->state, have->n_victims, want.state, want.n_victims);
    abort();
}

static bool ask(struct bh_attempt *at, const struct bh_kept_diagnosis *k, uint32_t row,
                struct room *ret)
{
    struct bh_dry_runs *d = k->dry_runs;
    struct room *kept = &d->room[row];
    bool keep;

    if (kept->state != UNKNOWN && row != k->own_row) {
        *ret = *kept;
    } else {
        if (look(at, k, row, ret, &keep) != SEEN)
            return false;
        if (keep && row != k->own_row)
            *kept = *ret;
    }
    if (bh_unlikely(k->verify))
        verify(at, k, row, ret);
    return true;
}

/* ---- all nodes ---- */

/* Potential nodes in the order of visit, round and round. */
struct walk {
    const struct bh_kept_diagnosis *k;
    uint32_t n_words, at; /* at: a word, or a place in by_name */
    uint64_t rest;        /* of the word */
};

static struct walk walk_from(const struct bh_kept_diagnosis *k, uint32_t n_rows, uint32_t offset)
{
    struct walk w = {.k = k, .n_words = (n_rows + 63) / 64};
    uint32_t n = 0;

    if (k->by_name)
        return w;
    for (;; w.at++) {
        w.rest = k->unschedulable[w.at];
        n = (uint32_t)__builtin_popcountll(w.rest);
        if (offset < n)
            break;
        offset -= n;
    }
    while (offset--)
        w.rest &= w.rest - 1;
    return w;
}

static uint32_t walk_next(struct walk *w)
{
    if (w->k->by_name) {
        for (;;) {
            uint32_t row = w->k->by_name[w->at++];
            if (w->k->unschedulable[row / 64] >> (row % 64) & 1)
                return row;
        }
    }
    while (!w->rest) {
        w->at = w->at + 1 == w->n_words ? 0 : w->at + 1;
        w->rest = w->k->unschedulable[w->at];
    }
    uint32_t row = w->at * 64 + (uint32_t)__builtin_ctzll(w->rest);
    w->rest &= w->rest - 1;
    return row;
}

struct found {
    uint32_t n, n_violating; /* candidates; at most as many as are wanted of either kind */
    uint32_t row;            /* of the best of them, the first of equals */
    struct room best;
    uint32_t failed[BH_STATUS_SET_MAX]; /* by status */
};

static bool find_kept_candidates(struct bh_attempt *at, const struct bh_diagnosis *d, uint32_t want,
                                 uint32_t offset, struct found *f)
{
    const struct bh_kept_diagnosis *k = d->kept;
    uint32_t m = k->n_unschedulable;

    if (!m)
        return true;
    struct walk w = walk_from(k, d->n_rows, offset);
    for (uint32_t i = 0; i < m && !(f->n && f->n + f->n_violating >= want); i++) {
        uint32_t row = walk_next(&w);
        struct room r;
        if (!ask(at, k, row, &r))
            return false;
        if (r.state >= FAILED) {
            f->failed[r.state - FAILED]++;
            continue;
        }
        uint32_t *n = r.violating ? &f->n_violating : &f->n;
        if (*n >= want)
            continue;
        if (f->n + f->n_violating == 0 || is_better(&r, &f->best, at->c->now_ns)) {
            f->best = r;
            f->row = row;
        }
        ++*n;
    }
    return true;
}

bool bh_preempt_kept(struct bh_attempt *at, const struct bh_diagnosis *d, uint32_t want,
                     uint32_t offset, const struct bh_status **ret_status,
                     struct bh_post_filter_result *ret)
{
    struct bh_dry_runs *runs = d->kept->dry_runs;
    uint64_t budgets = at->c->objects->version[BH_KIND_PODDISRUPTIONBUDGET];
    struct found f = {0};

    if (at->cy->ext)
        return false;
    if (runs && runs->budgets != budgets) {
        forget_all(runs);
        runs->budgets = budgets;
    }
    if (!find_kept_candidates(at, d, want, offset, &f)) {
        forget_all(runs);
        return false;
    }
    if (f.n + f.n_violating) {
        struct bh_candidate cand = {.row = f.row};
        const struct bh_status *s = bh_dry_run(at, at->c->cache->rows[f.row], &cand);
        bh_assert(!s && cand.n_victims == f.best.n_victims);
        bh_preemption_fill(at->c, &cand, 1, ret);
        bh_arena_reset(at->cy->scratch);
        *ret_status = NULL;
        return true;
    }
    *ret = (struct bh_post_filter_result){.override_nomination = true};
    static const struct bh_status_set none;
    *ret_status = bh_status_new(at->c->arena, BH_UNSCHEDULABLE, NULL, "%s",
                                bh_fit_error_counted(at->c->arena, at->c->cache->n_nodes,
                                                     runs ? &runs->why : &none, f.failed,
                                                     &bh_preemption_not_helpful));
    return true;
}
