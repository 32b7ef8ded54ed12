/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine/placement.c - which nodes for a group as a whole?
 *
 * The whole group is tried in one placement after the other and taken back each time; of those in
 * which it fits the scores choose, and there its members are laid once more. A placement is a set of
 * rows: those of the others are no candidates, whatever path a member's decision takes.
 *
 * Upstream: pkg/scheduler/schedule_one_podgroup.go (podGroupSchedulingPlacementAlgorithm); differences:
 *           README.md.
 */
#include <inttypes.h>

#include "scheduler/engine/state.h"

struct trial {
    const struct bh_placement *at;
    struct bh_placement_try *told;
    struct bh_group_try *v; /* the members' results there */
    struct bh_group_result r;
    int64_t total;
};
struct place { /* one run of the algorithm */
    struct bh_engine *e;
    struct bh_pod_info pod;
    struct bh_cycle cy;
    struct bh_placement *placement;
    struct bh_placement_try *told; /* by placement */
    uint32_t n_placements;
    struct trial *fit; /* those in which the group fits, or waits for victims */
    uint32_t n_fit;
    uint64_t *bits; /* by row, all 0 between trials */
};

static const struct bh_status *failed(struct place *p, const char *what, const char *plugin,
                                      const struct bh_status *s)
{
    return bh_status_new(&p->e->group_arena, BH_ERROR, plugin,
                         "running %s plugins: plugin \"%s\" failed with: %s", what, plugin,
                         bh_status_message(&p->e->group_arena, s));
}

/* A cycle of the first member's for plugins that look at the group; what they say lives as long as the
 * group's results. */
static bool begin_cycle(struct place *p, const struct bh_group_try *first)
{
    if (!bh_aside_cycle(p->e, &first->pod, &p->pod, &p->cy))
        return false;
    for (uint32_t i = 0; i < p->cy.fw->n_plugins; i++)
        p->cy.calls[i].arena = &p->e->group_arena;
    return true;
}

/* Of a plugin's call: all of them are told, as upstream's. */
static const struct bh_status *told(const struct place *p, const char *plugin,
                                    enum bh_seen_point at, const struct bh_status *s,
                                    uint64_t since)
{
    const struct bh_engine_observer *o = p->e->opt.observer;

    if (o)
        o->plugin(o->arg, plugin, at, bh_status_code(s), o->now_ns() - since);
    return s;
}

static uint64_t now_ns(const struct place *p)
{
    return p->e->opt.observer ? p->e->opt.observer->now_ns() : 0;
}

static const struct bh_status *generate(struct place *p)
{
    struct bh_arena *a = &p->e->group_arena;
    uint32_t n = 0;

    bh_each_plugin(i, p->cy.fw, BH_POINT_PLACEMENT_GENERATE) {
        const struct bh_plugin *pl = p->cy.fw->plugins[i].plugin;
        const uint64_t since = now_ns(p);
        return told(p, pl->name, BH_SEEN_PLACEMENT_GENERATE,
                    pl->placement_generate(&p->cy.calls[i], &p->placement, &p->n_placements),
                    since);
    }
    uint32_t *rows = bh_arena_new_array(a, uint32_t, p->e->cache.n_nodes + 1);
    for (uint32_t row = 0; row < p->e->cache.cols.n_rows; row++)
        if (bh_row_bit(&p->e->cache.cols, BH_ROW_LIVE, row))
            rows[n++] = row;
    p->placement = bh_arena_new(a, struct bh_placement);
    *p->placement = (struct bh_placement){.name = "", .rows = rows, .n = n};
    p->n_placements = 1;
    return NULL;
}

/* on: the rows are the only candidates; else every node is one again. */
static void restrict_to(struct place *p, const struct bh_placement *at, bool on)
{
    struct bh_engine *e = p->e;

    if (at->n == e->cache.n_nodes)
        return;
    for (uint32_t i = 0; i < at->n; i++)
        p->bits[at->rows[i] >> 6] = 0;
    for (uint32_t i = 0; on && i < at->n; i++)
        p->bits[at->rows[i] >> 6] |= (uint64_t)1 << (at->rows[i] & 63);
    e->within = on ? p->bits : NULL;
    e->n_within = at->n;
}

static void tell(struct bh_placement_try *t, const struct trial *x, uint32_t n)
{
    *t = (struct bh_placement_try){.name = x->at->name,
                                   .nodes = x->at->n,
                                   .fits = x->r.code == BH_SUCCESS,
                                   .waiting = x->r.waiting,
                                   .lack = ""};
    for (uint32_t i = 0; i < n; i++) {
        t->placed += x->v[i].node != BH_SYM_NONE;
        if (x->v[i].node == BH_SYM_NONE && !*t->lack && x->v[i].decided)
            t->lack = x->v[i].decision.message;
    }
}

static struct trial try_in(struct place *p, uint32_t k, const struct bh_group_try *v, uint32_t n,
                           unsigned flags, int64_t now_ns)
{
    struct bh_engine *e = p->e;
    struct trial x = {.at = &p->placement[k],
                      .told = &p->told[k],
                      .v = bh_arena_memdup(&e->group_arena, v, n * sizeof *v)};

    /* What is told is the decision that counts, not each trial's. */
    for (uint32_t i = 0; i < n && p->n_placements > 1; i++)
        x.v[i].tried = NULL;
    restrict_to(p, x.at, true);
    bh_group_run(e, x.v, n, flags, now_ns, &x.r);
    restrict_to(p, x.at, false);
    bh_group_take_back(e, x.v, n, true);
    tell(x.told, &x, n);
    return x;
}

/* Of a trial in vain only what is told stays: there may be thousands of them. */
static void forget(struct place *p, const struct trial *x, struct bh_arena_mark mark)
{
    struct bh_arena *a = &p->e->group_arena;
    BH_CLEANUP(bh_freep) char *lack = bh_strdup(x->told->lack);

    bh_arena_rewind(a, mark);
    x->told->lack = bh_arena_strdup(a, lack);
}

static void propose(struct place *p, struct trial *x, uint32_t n)
{
    struct bh_pod_info *v = bh_arena_new_array(&p->e->group_arena, struct bh_pod_info, n);
    struct bh_placement *at = &p->placement[x->at - p->placement];

    for (uint32_t i = 0; i < n; i++)
        if (x->v[i].node != BH_SYM_NONE)
            v[at->n_proposed++] =
                (struct bh_pod_info){.rec = x->v[i].pod.pod,
                                     .shape = bh_shapes_rec(&p->e->cache.shapes, x->v[i].pod.shape),
                                     .shape_id = x->v[i].pod.shape};
    at->proposed = v;
}

static const struct bh_status *score_by(struct place *p, uint32_t at, int64_t *scores)
{
    const struct bh_framework *fw = p->cy.fw;
    const uint32_t i = fw->point[BH_POINT_PLACEMENT_SCORE][at];
    const int32_t weight = fw->config->points[BH_POINT_PLACEMENT_SCORE][at].weight;
    const struct bh_plugin *pl = fw->plugins[i].plugin;
    struct bh_call *c = &p->cy.calls[i];
    const struct bh_status *s = NULL;

    uint64_t since = now_ns(p);
    for (uint32_t k = 0; k < p->n_fit && !s; k++)
        s = pl->placement_score(c, p->fit[k].at, &scores[k]);
    (void)told(p, pl->name, BH_SEEN_PLACEMENT_SCORE, s, since);
    if (s)
        return failed(p, "PlacementScore", pl->name, s);
    since = now_ns(p);
    if (pl->placement_normalize)
        s = told(p, pl->name, BH_SEEN_PLACEMENT_NORMALIZE,
                 pl->placement_normalize(c, scores, p->n_fit), since);
    if (s)
        return failed(p, "NormalizePlacementScore on PlacementScore", pl->name, s);
    for (uint32_t k = 0; k < p->n_fit; k++) {
        if (scores[k] < 0 || scores[k] > 100)
            return bh_status_new(&p->e->group_arena, BH_ERROR, pl->name,
                                 "applying score defaultWeights on PlacementScore plugins: plugin "
                                 "\"%s\" returns an invalid score %" PRId64
                                 ", it should in the range of [0, 100] after normalizing",
                                 pl->name, scores[k]);
        p->fit[k].total += scores[k] * weight;
    }
    return NULL;
}

/* The best by score; of equals one by lot, or the first by name. */
static const struct bh_status *choose(struct place *p, uint32_t n, struct trial **ret)
{
    int64_t *scores = bh_arena_new_array(&p->e->group_arena, int64_t, p->n_fit);
    uint32_t equal = 0;

    *ret = p->fit;
    if (p->n_fit == 1)
        return NULL;
    bh_cache_sync(&p->e->cache); /* the trials were taken back */
    for (uint32_t k = 0; k < p->n_fit; k++)
        propose(p, &p->fit[k], n);
    for (uint32_t at = 0; at < p->cy.fw->n_point[BH_POINT_PLACEMENT_SCORE]; at++) {
        const struct bh_status *s = score_by(p, at, scores);
        if (s)
            return s;
    }
    for (uint32_t k = 0; k < p->n_fit; k++) {
        struct trial *x = &p->fit[k];
        x->told->score = x->total;
        if (x->total > (*ret)->total)
            equal = 0;
        const bool best = x->total >= (*ret)->total;
        equal += best;
        if (best && (equal == 1 ||
                     (p->e->opt.tie_break == BH_TIE_RANDOM && !bh_rand_below(&p->e->rand, equal))))
            *ret = x;
    }
    return NULL;
}

/* Nothing was tried, or nothing of it counts: each member says what the group says. It is no plugin's
 * word about the pod, and takes back no promise. */
static void all_say(struct bh_group_try *v, uint32_t n, enum bh_code code, const char *message,
                    struct bh_group_result *ret)
{
    for (uint32_t i = 0; i < n; i++) {
        v[i].node = BH_SYM_NONE;
        v[i].decision =
            (struct bh_decision){.kind = BH_DECISION_ERROR,
                                 .reason = code == BH_ERROR ? "SchedulerError" : "Unschedulable",
                                 .message = message,
                                 .clear_nomination = code == BH_ERROR};
    }
    ret->code = code;
    ret->message = message;
}

/* The members' results are the chosen trial's, and those that go are where it had them. */
static void settle(struct place *p, struct bh_group_try *v, uint32_t n, const struct trial *x,
                   struct bh_group_result *ret)
{
    for (uint32_t i = 0; i < n; i++) {
        x->v[i].tried = v[i].tried;
        v[i] = x->v[i];
        if (v[i].tried && p->n_placements > 1 && v[i].decided)
            v[i].tried(v[i].arg, &v[i], &v[i].decision);
    }
    *ret = x->r;
    if (ret->code != BH_SUCCESS)
        return;
    for (uint32_t i = 0; i < n; i++)
        if (v[i].node != BH_SYM_NONE && !v[i].preempts)
            bh_group_lay(p->e, &v[i]);
}

static void place(struct place *p, struct bh_group_try *v, uint32_t n, unsigned flags,
                  int64_t now_ns, struct bh_group_result *ret)
{
    struct bh_arena *a = &p->e->group_arena;
    uint64_t since = bh_aside_watch(p->e, p->cy.fw, BH_POINT_PLACEMENT_GENERATE);
    const struct bh_status *s = generate(p);
    struct trial first = {0}, *best;

    bh_aside_point(p->e, p->cy.fw, BH_SEEN_PLACEMENT_GENERATE, bh_status_code(s), since);
    if (s || !p->n_placements) {
        all_say(v, n, s ? BH_ERROR : BH_UNSCHEDULABLE,
                s ? bh_status_message(a, s) : "no feasible placements found", ret);
        return;
    }
    p->told = bh_arena_new_array(a, struct bh_placement_try, p->n_placements);
    p->fit = bh_arena_new_array(a, struct trial, p->n_placements);
    p->bits = bh_arena_new_array(a, uint64_t, p->e->cache.cols.n_rows / 64 + 1);
    if (p->n_placements > 1)
        flags &= ~(unsigned)(BH_EXPLAIN | BH_RECORD);
    for (uint32_t k = 0; k < p->n_placements; k++) {
        const struct bh_arena_mark mark = bh_arena_mark(a);
        const struct trial x = try_in(p, k, v, n, flags, now_ns);
        if (x.r.code == BH_ERROR) {
            settle(p, v, n, &x, ret);
            return;
        }
        if (!k)
            first = x;
        if (x.r.code == BH_SUCCESS || x.r.waiting)
            p->fit[p->n_fit++] = x;
        else if (k)
            forget(p, &x, mark);
    }
    if (!p->n_fit) {
        first.r.message =
            bh_arena_printf(a, "0/%u placements are available, first placement status: %s",
                            p->n_placements, first.r.message);
        settle(p, v, n, &first, ret);
        return;
    }
    (void)begin_cycle(p, v); /* the trials were cycles as well */
    since = bh_aside_watch(p->e, p->cy.fw, BH_POINT_PLACEMENT_SCORE);
    s = choose(p, n, &best);
    if (p->n_fit > 1) /* else nobody was asked */
        bh_aside_point(p->e, p->cy.fw, BH_SEEN_PLACEMENT_SCORE, bh_status_code(s), since);
    if (s) {
        all_say(v, n, BH_ERROR, bh_status_message(a, s), ret);
        return;
    }
    best->told->chosen = true;
    settle(p, v, n, best, ret);
}

bool bh_group_place(struct bh_engine *e, struct bh_group_try *v, uint32_t n, unsigned flags,
                    int64_t now_ns, struct bh_group_result *ret)
{
    struct place p = {.e = e};

    *ret = (struct bh_group_result){.message = ""};
    bh_cache_sync(&e->cache);
    if (!n || !begin_cycle(&p, v))
        return false;
    place(&p, v, n, flags, now_ns, ret);
    ret->placements = p.told;
    ret->n_placements = p.told ? p.n_placements : 0;
    return true;
}
