/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/preemption/dry_run.c - which pods would have to go from one node
 *
 * Runs in:  the engine's thread. Works in the cycle's scratch arena.
 * Upstream: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go
 *           (SelectVictimsOnNode); differences: none.
 */
#include "scheduler/preemption/go_sort.h"
#include "scheduler/preemption/preemption.h"

const struct bh_status bh_no_victims = {
    .code = BH_UNSCHEDULABLE_AND_UNRESOLVABLE,
    .n_reasons = 1,
    .reasons = (const char *const[]){"No preemption victims found for incoming pod"}};

/* A copy of the node and of the cycle, which may be changed. */
struct dry {
    struct bh_cycle *cy;
    struct bh_node_info *ni;
    bool sketch; /* ni is one, and cy need not be a copy */
};

struct ranking {
    struct bh_pod_info **pods;
    int64_t now_ns;
};

/* Pods that have not started yet: upstream reads the clock for each at every comparison, so
 * whichever is asked first is the earlier one. Mirrored, because evictions depend on it. */
static bool more_important(void *arg, int32_t i, int32_t j)
{
    const struct ranking *r = arg;
    const struct bh_pod_info *x = r->pods[i], *y = r->pods[j];

    if (x->shape->priority != y->shape->priority)
        return x->shape->priority > y->shape->priority;
    if (!x->rec->start_ns && !y->rec->start_ns)
        return true;
    return bh_pod_start_ns(x, r->now_ns) < bh_pod_start_ns(y, r->now_ns);
}

static void swap_pods(void *arg, int32_t i, int32_t j)
{
    struct ranking *r = arg;
    struct bh_pod_info *t = r->pods[i];

    r->pods[i] = r->pods[j];
    r->pods[j] = t;
}

static void sort_pods(struct bh_pod_info **pods, uint32_t n, int64_t now_ns)
{
    struct ranking r = {.pods = pods, .now_ns = now_ns};

    bh_go_sort(&(struct bh_go_sort){more_important, swap_pods, &r}, (int32_t)n);
}

/* Puts the pod on the node, or takes it off. */
static const struct bh_status *move_pod(struct dry *d, struct bh_pod_info *pod, bool on)
{
    if (d->sketch) {
        bh_node_info_sketch_pod(d->ni, pod->shape, on);
        return NULL;
    }
    if (on) {
        bh_node_info_add_pod(d->ni, pod);
        return bh_run_change_pod(d->cy, pod, d->ni, 1);
    }
    bh_node_info_remove_pod(d->ni, pod);
    return bh_run_change_pod(d->cy, pod, d->ni, -1);
}

static struct bh_pod_info **lower_pods(const struct bh_node_info *ni, int32_t priority,
                                       struct bh_arena *a, uint32_t *ret_n)
{
    struct bh_pod_info **v = bh_arena_alloc(a, (ni->n_pods + 1) * sizeof *v);
    uint32_t n = 0;

    /* Pods are all over the memory: their lines come together rather than one by one. */
    for (uint32_t i = 0; i < ni->n_pods; i++)
        __builtin_prefetch(ni->pods[i]);
    for (uint32_t i = 0; i < ni->n_pods; i++) {
        if (ni->pods[i]->shape->priority >= priority)
            continue;
        v[n++] = ni->pods[i];
        __builtin_prefetch(&v[n - 1]->rec->start_ns);
    }
    *ret_n = n;
    return v;
}

/* Two rounds over the pool: pods that break a budget are spared first. */
static const struct bh_status *spare(struct bh_attempt *at, struct dry *d,
                                     struct bh_pod_info **pool, uint32_t n,
                                     struct bh_candidate *out)
{
    struct bh_arena *a = at->cy->scratch;
    bool *violating = bh_arena_new_array(a, bool, n);
    uint32_t n_violating = 0;

    if (at->budgets.n)
        bh_budgets_split(&at->budgets, a, at->c->tab, pool, n, violating);
    out->victims = bh_arena_alloc(a, n * sizeof(struct bh_pod_info *));
    for (unsigned round = at->budgets.n ? 0 : 1; round < 2; round++) {
        for (uint32_t i = 0; i < n; i++) {
            int by;
            if (violating[i] != (round == 0))
                continue;
            n_violating += violating[i];
            /* Back on the node if the incoming pod then still fits. */
            const struct bh_status *s = move_pod(d, pool[i], true), *unfit = NULL;
            if (!s)
                unfit = bh_run_filter_nominated(d->cy, d->ni, &by);
            if (unfit)
                s = move_pod(d, pool[i], false);
            if (s)
                return s;
            if (unfit) {
                out->victims[out->n_victims++] = pool[i];
                out->violating += violating[i];
            }
        }
    }
    if (n_violating && n_violating < n)
        sort_pods(out->victims, out->n_victims, at->c->now_ns);
    return NULL;
}

const struct bh_status *bh_dry_run(struct bh_attempt *at, const struct bh_node_info *node,
                                   struct bh_candidate *out)
{
    struct bh_cycle copy;
    struct dry d;
    uint32_t n;
    int by;

    struct bh_pod_info **pool = lower_pods(node, at->c->pod->shape->priority, at->cy->scratch, &n);
    if (!n)
        return &bh_no_victims;
    /* Some have started, others not: how they rank may change with the time. */
    for (uint32_t i = 1; i < n && !out->mixed; i++)
        out->mixed = !pool[i]->rec->start_ns != !pool[0]->rec->start_ns;
    if (at->sketcher) {
        d = (struct dry){at->sketcher, bh_node_info_sketch(node, at->cy->scratch), true};
    } else {
        bh_cycle_clone(&copy, at->cy, at->cy->scratch);
        d = (struct dry){&copy, bh_node_info_fork(node, at->cy->scratch), false};
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct bh_status *s = move_pod(&d, pool[i], false);
        if (s)
            return s;
    }
    const struct bh_status *s = bh_run_filter_nominated(d.cy, d.ni, &by);
    if (s)
        return s;
    sort_pods(pool, n, at->c->now_ns);
    s = spare(at, &d, pool, n, out);
    if (!s && !out->n_victims)
        s = bh_status_new(at->cy->scratch, BH_ERROR, NULL,
                          "expected at least one victim pod on node \"%s\"",
                          bh_sym_text(at->c->tab, node->name));
    return s;
}
