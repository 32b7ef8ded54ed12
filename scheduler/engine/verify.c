/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine/verify.c - the two paths side by side
 *
 * A difference is a bug of ours: the process says where and aborts, because every later decision
 * could be wrong as well.
 *
 * Runs in: the engine's thread, under verify only.
 */
#include <inttypes.h>
#include <stdio.h>

#include "scheduler/engine/fast/fast.h"

BH_NORETURN static void differ(struct bh_engine *e, const struct bh_reference *r, const char *what,
                               const char *field, uint32_t row, int64_t ref, int64_t fast)
{
    const struct bh_pod_info *pod = r->cy.calls[0].pod;
    struct bh_str ns = bh_rec_text(pod->rec, pod->rec->namespace_);
    struct bh_str name = bh_rec_text(pod->rec, pod->rec->name);

    fprintf(stderr,
            "verify: %s differs from the reference path\n"
            "  cycle %" PRIu64 ", pod %.*s/%.*s, shape %u, %u nodes\n"
            "  %s: reference %" PRId64 ", fast %" PRId64 "\n",
            what, e->stats.cycles, (int)ns.n, ns.p, (int)name.n, name.p, pod->shape_id,
            e->cache.n_nodes, field, ref, fast);
    const struct bh_node_info *ni = row != BH_ROW_NONE ? e->cache.rows[row] : NULL;
    if (row != BH_ROW_NONE)
        fprintf(stderr, "  node %s (row %u): %s\n",
                ni ? bh_sym_text(e->tab, ni->name) : "(no node)", row,
                r->by_row[row] ? bh_status_message(&e->arena, r->by_row[row]) : "feasible");
    abort();
}

/* Totals by row, -1 = infeasible, 0 = feasible but not scored. */
static int64_t *totals_of(struct bh_engine *e, const struct bh_fast *f)
{
    uint32_t n = e->cache.cols.n_rows;
    int64_t *t = bh_arena_new_array(&e->arena, int64_t, n + 1);

    for (uint32_t row = 0; row < n; row++)
        t[row] = f->index   ? bh_index_total(f->index, row)
                 : f->cells ? bh_cells_total(f->cells, row)
                            : -1;
    for (uint32_t i = 0; !f->index && !f->cells && i < f->n_feasible; i++)
        t[f->rows[i]] = f->totals ? f->totals[i] : 0;
    return t;
}

static void compare(struct bh_engine *e, const struct bh_reference *r, const struct bh_fast *f,
                    const char *what)
{
    const int64_t *fast = totals_of(e, f);
    int64_t *ref = bh_arena_new_array(&e->arena, int64_t, r->n_rows + 1);

    if (r->error)
        differ(e, r, what, "error, feasible nodes", BH_ROW_NONE, -1, f->n_feasible);
    for (uint32_t row = 0; row < r->n_rows; row++)
        ref[row] = -1;
    for (uint32_t i = 0; i < r->n_feasible; i++)
        ref[r->feasible[i]] = r->scored ? r->total[i] : 0;
    for (uint32_t row = 0; row < r->n_rows; row++)
        if (r->scored ? ref[row] != fast[row] : (ref[row] == -1) != (fast[row] == -1))
            differ(e, r, what, "total (-1 = infeasible)", row, ref[row], fast[row]);
    if (f->n_feasible != r->n_feasible)
        differ(e, r, what, "feasible nodes", BH_ROW_NONE, r->n_feasible, f->n_feasible);
    if (f->evaluated != r->evaluated)
        differ(e, r, what, "evaluated nodes", BH_ROW_NONE, r->evaluated, f->evaluated);
    if (e->opt.tie_break == BH_TIE_RANDOM && f->n_best != r->n_best)
        differ(e, r, what, "best nodes", BH_ROW_NONE, r->n_best, f->n_best);
}

static void compare_other_shape(struct bh_engine *e, const struct bh_reference *r,
                                const struct bh_pod_info *pod, int64_t now_ns)
{
    /* The shape whose results were not used for the longest time has the most changes to catch
     * up with. A pod stands in for it, so it has to be of the pod's namespace: plugins look
     * claims up by it. */
    struct bh_str ns = bh_rec_text(pod->rec, pod->rec->namespace_);
    struct bh_shape_cache *sc = e->oldest;
    while (sc &&
           (sc->born != e->cache.shapes.e[sc->shape].born ||
            !bh_str_eqc(
                ns, bh_sym_text(e->tab, bh_shapes_rec(&e->cache.shapes, sc->shape)->namespace_))))
        sc = sc->newer;
    struct bh_pod_info other = *pod;
    struct bh_fast once, kept;

    if (!sc || e->within || bh_promised_row(e, pod) != BH_ROW_NONE)
        return;
    struct bh_profile *p = &e->profile[sc->profile];
    other.shape_id = sc->shape;
    other.shape = bh_shapes_rec(&e->cache.shapes, sc->shape);
    if (!bh_fast_run(e, p, &other, BH_FAST_ONCE, now_ns, &once) &&
        !bh_fast_run(e, p, &other, BH_FAST_SCAN, now_ns, &once)) {
        if (!bh_fast_run(e, p, &other, BH_FAST_KEEP, now_ns, &kept) && kept.kept)
            bh_fail_verify(e, kept.kept, &other, NULL);
        return;
    }
    const int64_t *want = totals_of(e, &once);
    uint32_t n = once.n_feasible;
    bool ran = bh_fast_run(e, p, &other, BH_FAST_KEEP, now_ns, &kept);
    if (!ran && kept.overlaid) /* once may go where a filter of theirs can fail */
        return;
    if (!ran)
        differ(e, r, "another shape's kept results", "feasible nodes", BH_ROW_NONE, n, 0);
    const int64_t *have = totals_of(e, &kept);
    for (uint32_t row = 0; row < r->n_rows && n > 1; row++)
        if (want[row] != have[row])
            differ(e, r, "another shape's kept results", "total (-1 = infeasible)", row, want[row],
                   have[row]);
}

void bh_verify(struct bh_engine *e, struct bh_profile *p, const struct bh_pod_info *pod,
               const struct bh_reference *r, int64_t now_ns)
{
    struct bh_fast f;

    if (bh_fast_run(e, p, pod, BH_FAST_ONCE, now_ns, &f))
        compare(e, r, &f, "evaluation over columns");
    if (bh_fast_run(e, p, pod, BH_FAST_KEEP, now_ns, &f)) {
        compare(e, r, &f, "kept results");
        if (f.cells && bh_fast_run(e, p, pod, BH_FAST_SCAN, now_ns, &f))
            compare(e, r, &f, "kept results without cells");
    } else if (f.kept && !r->error) {
        if (r->n_feasible)
            differ(e, r, "kept results", "feasible nodes", BH_ROW_NONE, r->n_feasible, 0);
        bh_fail_verify(e, f.kept, pod, r);
    } else if (f.refused && !r->error && r->n_feasible) {
        differ(e, r, "kept results with overlays", "feasible nodes", BH_ROW_NONE, r->n_feasible, 0);
    }
    compare_other_shape(e, r, pod, now_ns);
    /* What was used last has its size right, so that the budget means what it says. */
    const struct bh_shape_cache *sc = e->newest;
    bh_assert(!sc || sc->bytes == sizeof *sc + bh_kept_bytes(sc) + bh_track_bytes(sc) +
                                      bh_cells_bytes(&sc->cells) + bh_fail_bytes(sc));
    e->stats.verified++;
}

/* ---- nothing fits ---------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
    return a && b ? bh_streq(a, b) : a == b;
}

static bool same_names(const char *const *a, uint32_t n_a, const char *const *b, uint32_t n_b)
{
    for (uint32_t i = 0; n_a == n_b && i < n_a; i++)
        if (!bh_streq(a[i], b[i]))
            return false;
    return n_a == n_b;
}

static bool same_victims(const struct bh_decision *a, const struct bh_decision *b)
{
    for (uint32_t i = 0; a->n_victims == b->n_victims && i < a->n_victims; i++)
        if (!bh_str_eq(a->victims[i].uid, b->victims[i].uid))
            return false;
    return a->n_victims == b->n_victims && a->victims_violating == b->victims_violating;
}

static void compare_failures(struct bh_engine *e, const struct bh_reference *r,
                             const struct bh_decision *want, const struct bh_decision *have)
{
    const char *what = NULL;

    if (want->kind != have->kind || want->evaluated != have->evaluated)
        what = "kind or evaluated nodes";
    else if (!same_text(want->fit_message, have->fit_message))
        what = "the fit error";
    else if (!same_text(want->post_filter_message, have->post_filter_message) ||
             !same_text(want->message, have->message))
        what = "PostFilter's message";
    else if (!same_names(want->unschedulable_plugins, want->n_unschedulable_plugins,
                         have->unschedulable_plugins, have->n_unschedulable_plugins) ||
             !same_names(want->pending_plugins, want->n_pending_plugins, have->pending_plugins,
                         have->n_pending_plugins))
        what = "rejecting plugins";
    else if (want->nominated_node != have->nominated_node ||
             want->clear_nomination != have->clear_nomination)
        what = "the nominated node";
    else if (!same_victims(want, have))
        what = "victims";
    if (!what)
        return;
    fprintf(stderr, "verify: reference: %s, %u victims on %s\n", want->message, want->n_victims,
            bh_sym_text(e->tab, want->nominated_node));
    fprintf(stderr, "verify: kept:      %s, %u victims on %s\n", have->message, have->n_victims,
            bh_sym_text(e->tab, have->nominated_node));
    differ(e, r, "kept failure", what, BH_ROW_NONE, want->kind, have->kind);
}

/* Both draw the same random numbers. */
const struct bh_decision *bh_verify_decide(struct bh_engine *e, struct bh_profile *p,
                                           const struct bh_pod_info *pod, struct bh_reference *r,
                                           uint32_t chosen, unsigned flags, int64_t now_ns)
{
    struct bh_rand rand = e->rand;
    struct bh_watch watch = e->watch;
    struct bh_decision have = {0};
    const struct bh_decision *d = NULL;
    struct bh_fast f;

    e->watch.on = false;
    if (chosen == BH_ROW_NONE && !r->error && !r->extended &&
        !bh_fast_run(e, p, pod, BH_FAST_KEEP, now_ns, &f) && f.kept)
        d = bh_fail_decide(e, p, pod, f.kept, flags & BH_NO_PREEMPTION, now_ns);
    if (d)
        have = *d;
    e->rand = rand;
    e->watch = watch;
    const struct bh_decision *want = bh_decide(e, r, chosen, flags);
    if (d)
        compare_failures(e, r, want, &have);
    return want;
}
