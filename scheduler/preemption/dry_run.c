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
    const struct bh_victim_rules *rules;
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

static bool less_important(void *arg, int32_t i, int32_t j)
{
    return !more_important(arg, i, j);
}

static void swap_pods(void *arg, int32_t i, int32_t j)
{
    struct ranking *r = arg;
    struct bh_pod_info *t = r->pods[i];

    r->pods[i] = r->pods[j];
    r->pods[j] = t;
}

static void sort_pods(struct bh_pod_info **pods, uint32_t n, int64_t now_ns, bool ascending)
{
    struct ranking r = {.pods = pods, .now_ns = now_ns};

    bh_go_sort(&(struct bh_go_sort){ascending ? less_important : more_important, swap_pods, &r},
               (int32_t)n);
}

/* Puts the pod on the node, or takes it off. */
static const struct bh_status *move_pod(struct dry *d, struct bh_pod_info *pod, bool on)
{
    if (d->rules)
        d->rules->moved(d->rules->arg, pod, on ? 1 : -1);
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

static void new_dry(struct bh_attempt *at, const struct bh_node_info *node, struct bh_cycle *copy,
                    struct dry *ret)
{
    if (at->sketcher) {
        *ret =
            (struct dry){at->sketcher, bh_node_info_sketch(node, at->cy->scratch), true, at->rules};
        return;
    }
    bh_cycle_clone(copy, at->cy, at->cy->scratch);
    *ret = (struct dry){copy, bh_node_info_fork(node, at->cy->scratch), false, at->rules};
}

/* Those that the rules give, off the node one after the other. Most nodes may have none: the copies are
 * made for the first. */
static const struct bh_status *take_off(struct bh_attempt *at, struct bh_cycle *copy, struct dry *d,
                                        const struct bh_node_info *node, struct bh_pod_info ***ret,
                                        uint32_t *ret_n)
{
    struct bh_pod_info **all = bh_arena_alloc(at->cy->scratch, (node->n_pods + 1) * sizeof *all);
    const struct bh_victim_rules *rules = at->rules;
    uint32_t n = 0;

    if (node->n_pods)
        memcpy(all, node->pods, node->n_pods * sizeof *all);
    if (rules->ascending)
        sort_pods(all, node->n_pods, at->c->now_ns, true);
    for (uint32_t i = 0; i < node->n_pods; i++) {
        if (!rules->may_evict(rules->arg, all[i]))
            continue;
        if (!n)
            new_dry(at, node, copy, d);
        const struct bh_status *s = move_pod(d, all[i], false);
        if (s)
            return s;
        all[n++] = all[i];
    }
    *ret = all;
    *ret_n = n;
    return NULL;
}

/* What the rules say of a pod that is back on the node. NULL, or an error. */
static const struct bh_status *judge(struct bh_attempt *at, struct dry *d,
                                     const struct bh_node_info *node, struct bh_pod_info *pod,
                                     bool fits, bool *ret_victim)
{
    const struct bh_status *s = d->rules->check(
        d->rules->arg, node, fits ? BH_VICTIMS_FIT : BH_VICTIMS_NO_LONGER, at->cy->scratch);

    *ret_victim = !fits || s;
    if (!s || s->code == BH_ERROR || !fits)
        return s && s->code == BH_ERROR ? s : NULL;
    return move_pod(d, pod, false);
}

/* Two rounds over the pool: pods that break a budget are spared first. */
static const struct bh_status *spare(struct bh_attempt *at, struct dry *d,
                                     const struct bh_node_info *node, struct bh_pod_info **pool,
                                     uint32_t n, struct bh_candidate *out)
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
            bool victim = unfit != NULL;
            if (!s && d->rules)
                s = judge(at, d, node, pool[i], !unfit, &victim);
            if (s)
                return s;
            if (victim)
                out->victims[out->n_victims++] = pool[i];
            out->violating += unfit && violating[i];
        }
    }
    if (n_violating && n_violating < n)
        sort_pods(out->victims, out->n_victims, at->c->now_ns, false);
    return NULL;
}

/* Does the pod fit now that they are off? If so, as many as possible are put back. */
static const struct bh_status *without(struct bh_attempt *at, struct dry *d,
                                       const struct bh_node_info *node, struct bh_pod_info **pool,
                                       uint32_t n, struct bh_candidate *out)
{
    int by;
    const struct bh_status *s = bh_run_filter_nominated(d->cy, d->ni, &by);

    if (!s && d->rules)
        s = d->rules->check(d->rules->arg, node, BH_VICTIMS_OFF, at->cy->scratch);
    if (s)
        return s;
    sort_pods(pool, n, at->c->now_ns, false);
    s = spare(at, d, node, pool, n, out);
    if (!s && !out->n_victims)
        s = bh_status_new(at->cy->scratch, BH_ERROR, NULL,
                          "expected at least one victim pod on node \"%s\"",
                          bh_sym_text(at->c->tab, node->name));
    return s;
}

static const struct bh_status *
dry_run_by_rules(struct bh_attempt *at, const struct bh_node_info *node, struct bh_candidate *out)
{
    const struct bh_victim_rules *rules = at->rules;
    struct bh_pod_info **pool;
    struct bh_cycle copy;
    struct dry d;
    uint32_t n;

    rules->begin(rules->arg, node);
    const struct bh_status *s = take_off(at, &copy, &d, node, &pool, &n);
    if (s)
        return s;
    if (n)
        return without(at, &d, node, pool, n, out);
    s = rules->check(rules->arg, node, BH_VICTIMS_NONE, at->cy->scratch);
    return s ? s : &bh_no_victims;
}

const struct bh_status *bh_dry_run(struct bh_attempt *at, const struct bh_node_info *node,
                                   struct bh_candidate *out)
{
    struct bh_cycle copy;
    struct dry d;
    uint32_t n;

    if (at->rules)
        return dry_run_by_rules(at, node, out);
    struct bh_pod_info **pool = lower_pods(node, at->c->pod->shape->priority, at->cy->scratch, &n);
    if (!n)
        return &bh_no_victims;
    /* Some have started, others not: how they rank may change with the time. */
    for (uint32_t i = 1; i < n && !out->mixed; i++)
        out->mixed = !pool[i]->rec->start_ns != !pool[0]->rec->start_ns;
    new_dry(at, node, &copy, &d);
    for (uint32_t i = 0; i < n; i++) {
        const struct bh_status *s = move_pod(&d, pool[i], false);
        if (s)
            return s;
    }
    return without(at, &d, node, pool, n, out);
}
