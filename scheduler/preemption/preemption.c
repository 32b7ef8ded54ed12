/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/preemption/preemption.c - eligibility, candidates, choice
 *
 * Runs in:  the engine's thread.
 * Upstream: pkg/scheduler/framework/preemption/preemption.go,
 *           plugins/defaultpreemption/default_preemption.go; differences: none.
 */
#include "scheduler/preemption/preemption.h"

const struct bh_status bh_preemption_not_helpful = {
    .code = BH_UNSCHEDULABLE_AND_UNRESOLVABLE,
    .n_reasons = 1,
    .reasons = (const char *const[]){"Preemption is not helpful for scheduling"}};
BH_STATUS_CONST(no_candidate, BH_UNSCHEDULABLE, NULL, "no candidate node for preemption");
BH_STATUS_CONST(never, BH_UNSCHEDULABLE, NULL, "not eligible due to preemptionPolicy=Never.");
BH_STATUS_CONST(by_group, BH_UNSCHEDULABLE, NULL,
                "not eligible due to workload aware preemption enabled");
BH_STATUS_CONST(terminating, BH_UNSCHEDULABLE, NULL,
                "not eligible due to a terminating pod on the nominated node.");

/* ---- eligibility ---- */

static bh_sym nominated_node(struct bh_call *c)
{
    const struct bh_pod_rec *r = c->pod->rec;
    bh_sym node = bh_cache_nominated_node(c->cache, bh_rec_text(r, r->uid));

    return node != BH_SYM_NONE ? node : r->nominated_node;
}

static bool waits_for(const struct bh_call *c, const struct bh_victim_rules *rules,
                      const struct bh_pod_info *pod)
{
    const uint32_t by_scheduler = BH_POD_TERMINATING | BH_POD_PREEMPTED_BY_SCHEDULER;

    if (rules)
        return pod->rec->flags & BH_POD_TERMINATING && rules->waits_for(rules->arg, pod);
    return pod->shape->priority < c->pod->shape->priority &&
           (pod->rec->flags & by_scheduler) == by_scheduler;
}

/* A pod whose victims are still terminating waits for them instead of choosing more. */
static const struct bh_status *ineligible(struct bh_call *c, const struct bh_preemption_args *args,
                                          const struct bh_victim_rules *rules,
                                          const struct bh_diagnosis *d)
{
    const struct bh_node_info *ni = bh_cache_node(c->cache, nominated_node(c));

    if (args->by_group && c->pod->rec->group != BH_SYM_NONE)
        return &by_group;
    if (c->pod->shape->flags & BH_SHAPE_NEVER_PREEMPT)
        return &never;
    if (!ni)
        return NULL;
    const struct bh_status *s = d->by_row[ni->row] ? d->by_row[ni->row] : d->absent;
    if (bh_status_code(s) == BH_UNSCHEDULABLE_AND_UNRESOLVABLE)
        return NULL;
    for (uint32_t i = 0; i < ni->n_pods; i++)
        if (waits_for(c, rules, ni->pods[i]))
            return &terminating;
    return NULL;
}

/* ---- all nodes ---- */

static uint32_t potential_rows(struct bh_call *c, const struct bh_diagnosis *d, uint32_t *rows)
{
    bool absent_counts = bh_status_code(d->absent) == BH_UNSCHEDULABLE;
    uint32_t n = 0;

    for (uint32_t row = 0; row < d->n_rows; row++) {
        if (!bh_row_bit(&c->cache->cols, BH_ROW_LIVE, row))
            continue;
        if (d->by_row[row] ? d->by_row[row]->code == BH_UNSCHEDULABLE : absent_counts)
            rows[n++] = row;
    }
    return n;
}

static const struct bh_status *keep_status(struct bh_arena *a, const struct bh_status *s)
{
    struct bh_status *k = bh_arena_memdup(a, s, sizeof *s);
    const char **reasons = bh_arena_new_array(a, const char *, s->n_reasons ? s->n_reasons : 1);

    for (uint32_t i = 0; i < s->n_reasons; i++)
        reasons[i] = bh_arena_strdup(a, s->reasons[i]);
    k->reasons = reasons;
    return k;
}

/* Candidates without budget violation first, then the others; returns how many. At most `want` of
 * either kind: further ones are forgotten. */
static uint32_t find_candidates(struct bh_attempt *at, const uint32_t *rows, uint32_t m,
                                uint32_t want, uint32_t offset, struct bh_candidate *ret)
{
    struct bh_arena *a = at->c->arena;
    struct bh_candidate *violating = bh_arena_new_array(a, struct bh_candidate, want ? want : 1);
    uint32_t n = 0, n_violating = 0;

    for (uint32_t i = 0; i < m && !(n && n + n_violating >= want); i++) {
        uint32_t row = rows[(offset + i) % m];
        struct bh_candidate cand = {.row = row};
        const struct bh_status *s = bh_dry_run(at, at->c->cache->rows[row], &cand);
        if (s) {
            at->status[row] = s == &bh_no_victims ? s : keep_status(a, s);
            if (s->code == BH_ERROR)
                bh_field_error(&at->errors, "%s", bh_status_message(a, s));
        } else if ((cand.violating ? n_violating : n) < want) {
            cand.victims = bh_arena_memdup(a, cand.victims, cand.n_victims * sizeof *cand.victims);
            if (cand.violating)
                violating[n_violating++] = cand;
            else
                ret[n++] = cand;
        }
        bh_arena_reset(at->cy->scratch);
    }
    if (n_violating)
        memcpy(ret + n, violating, n_violating * sizeof *violating);
    return n + n_violating;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static struct bh_str keep_text(struct bh_arena *a, const struct bh_pod_rec *r, struct bh_slice s)
{
    struct bh_str t = bh_rec_text(r, s);
    return (struct bh_str){bh_arena_strndup(a, t.p, t.n), t.n};
}

struct bh_victim bh_describe_victim(struct bh_arena *a, const struct bh_pod_info *pod)
{
    const struct bh_pod_rec *r = pod->rec;

    return (struct bh_victim){.namespace_ = keep_text(a, r, r->namespace_),
                              .name = keep_text(a, r, r->name),
                              .uid = keep_text(a, r, r->uid),
                              .priority = pod->shape->priority,
                              .terminating = r->flags & BH_POD_TERMINATING,
                              .resource_version = r->resource_version,
                              .generation = r->generation};
}

static struct bh_preemption describe(struct bh_call *c, const struct bh_candidate *cand)
{
    struct bh_victim *v = bh_arena_new_array(c->arena, struct bh_victim, cand->n_victims);

    for (uint32_t i = 0; i < cand->n_victims; i++)
        v[i] = bh_describe_victim(c->arena, cand->victims[i]);
    return (struct bh_preemption){
        .node = c->cache->rows[cand->row]->name, .victims = v, .n_victims = cand->n_victims};
}

void bh_preemption_fill(struct bh_call *c, const struct bh_candidate *cand, uint32_t n,
                        struct bh_post_filter_result *ret)
{
    uint32_t best = bh_pick_candidate(cand, n, c->now_ns), n_ties = 1;
    bool wanted_all = c->cycle->notes != NULL;
    struct bh_preemption *ties =
        bh_arena_new_array(c->arena, struct bh_preemption, wanted_all ? n : 1);

    ties[0] = describe(c, &cand[best]);
    for (uint32_t i = 0; i < n && wanted_all; i++)
        if (i != best && bh_compare_candidates(&cand[i], &cand[best], c->now_ns) == 0)
            ties[n_ties++] = describe(c, &cand[i]);
    *ret = (struct bh_post_filter_result){.override_nomination = true,
                                          .node = ties[0].node,
                                          .victims = ties[0].victims,
                                          .n_victims = ties[0].n_victims,
                                          .violating = (uint32_t)BH_MAX(cand[best].violating, 0),
                                          .ties = ties,
                                          .n_ties = n_ties};
}

/* Its statuses go into the scratch arena, as those of a copy made for one node do. */
static struct bh_cycle *new_sketcher(struct bh_cycle *cy)
{
    struct bh_cycle *copy = bh_arena_new(cy->arena, struct bh_cycle);

    bh_cycle_clone(copy, cy, cy->arena);
    copy->arena = cy->scratch;
    for (uint32_t i = 0; i < cy->fw->n_plugins; i++)
        copy->calls[i].arena = cy->scratch;
    return copy;
}

static const struct bh_status *choose(struct bh_attempt *at, struct bh_candidate *cand, uint32_t n,
                                      struct bh_post_filter_result *ret)
{
    const struct bh_status *s = bh_extend_candidates(at->c, &cand, &n);

    if (s)
        return s;
    if (!n)
        return &no_candidate;
    bh_preemption_fill(at->c, cand, n, ret);
    return NULL;
}

const struct bh_status *bh_preempt(struct bh_call *c, const struct bh_preemption_args *args,
                                   const struct bh_diagnosis *d, struct bh_post_filter_result *ret)
{
    return bh_preempt_by(c, args, NULL, d, ret);
}

const struct bh_status *bh_preempt_by(struct bh_call *c, const struct bh_preemption_args *args,
                                      const struct bh_victim_rules *rules,
                                      const struct bh_diagnosis *d,
                                      struct bh_post_filter_result *ret)
{
    struct bh_attempt at = {.c = c, .cy = c->cycle, .rules = rules, .errors = {.a = c->arena}};
    const struct bh_status *s = ineligible(c, args, rules, d);
    uint32_t *rows = NULL, m;

    if (s)
        return s;
    if (d->kept) {
        m = d->kept->n_unschedulable;
    } else {
        rows = bh_arena_new_array(c->arena, uint32_t, d->n_rows ? d->n_rows : 1);
        m = potential_rows(c, d, rows);
    }
    int64_t enough =
        BH_MAX((int64_t)m * args->min_candidates_percentage / 100, args->min_candidates_absolute);
    uint32_t want = (uint32_t)BH_MIN(enough, (int64_t)m);
    uint32_t offset = at.cy->rand && m ? (uint32_t)bh_rand_below(at.cy->rand, m) : 0;
    if (bh_cycle_sketches(at.cy) && m)
        at.sketcher = new_sketcher(at.cy);
    bh_budgets_list(&at.budgets, c->objects, c->arena);
    if (d->kept && !rules && bh_preempt_kept(&at, d, want, offset, &s, ret))
        return s;
    if (!rows) {
        rows = bh_arena_new_array(c->arena, uint32_t, m ? m : 1);
        m = potential_rows(c, d, rows);
    }
    if (!at.cy->rand)
        bh_cache_sort_by_name(c->cache, rows, m);
    at.status = bh_arena_new_array(c->arena, const struct bh_status *, d->n_rows ? d->n_rows : 1);
    struct bh_candidate *cand = bh_arena_new_array(c->arena, struct bh_candidate, m ? m : 1);
    uint32_t n = find_candidates(&at, rows, m, want, offset, cand);
    if (n)
        return choose(&at, cand, n, ret);
    if (at.errors.n) {
        /* Upstream's dry runs are parallel, so its list of errors has no order. Ours must not
         * depend on the rows that the nodes happen to have. */
        qsort(at.errors.v, at.errors.n, sizeof *at.errors.v, by_text);
        return bh_status_new(c->arena, BH_ERROR, NULL, "%s", bh_field_errors_text(&at.errors));
    }
    *ret = (struct bh_post_filter_result){.override_nomination = true};
    return bh_status_new(c->arena, BH_UNSCHEDULABLE, NULL, "%s",
                         bh_fit_error(c->arena, c->cache->n_nodes, at.status, d->n_rows,
                                      &bh_preemption_not_helpful, NULL));
}
