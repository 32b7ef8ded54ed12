/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/preemption/group.c - which pods would have to go from all nodes, so that a group fits
 *
 * Runs in:  the engine's thread. Takes pods off their nodes in the cache, and puts all of them back.
 * Upstream: pkg/scheduler/framework/preemption/podgrouppreemption.go; differences: what ties by all of
 *           its rules goes by name, upstream's order is random. Pods that terminate are not spared:
 *           their resources are free soon whatever else is evicted.
 */
#include "scheduler/preemption/preemption.h"

/* What is evicted or spared as one. */
struct unit {
    struct bh_pod_info **pods;
    uint32_t n, cap;
    int32_t priority;
    int64_t start_ns;               /* of the pod that was met first */
    bool violating, victim, leaves; /* leaves: all of it terminates */
};
struct search {
    const struct bh_group_preemption *g;
    struct unit **v; /* pointers: their places are in by_group */
    uint32_t n, cap;
    struct bh_umap
        by_group; /* (namespace, name) -> its unit; 0 = its pods are evicted one by one */
    struct bh_pod_info ***order; /* by row: its pods as they stood; NULL: none was taken off */
    int64_t n_met;
    struct bh_arena a;
};

/* ---- candidates ------------------------------------------------------------------------------ */

/* One that has not started does now: the clock is read for each, so who is met first is the earlier. */
static int64_t start_of(struct search *s, const struct bh_pod_info *pod)
{
    return bh_pod_start_ns(pod, s->g->now_ns + s->n_met++);
}

/* Of the pods' group, made when it is met first; NULL: it is not disrupted as a whole. */
static struct unit *unit_of_group(struct search *s, const struct bh_pod_info *pod)
{
    const struct bh_group_preemption *g = s->g;
    const uint64_t key = (uint64_t)pod->shape->namespace_ << 32 | pod->rec->group;
    struct bh_group_policy p;
    uint64_t v;

    if (bh_umap_get(&s->by_group, key, &v))
        return (struct unit *)(uintptr_t)v;
    struct unit *u = NULL;
    if (bh_group_policy(g->objects, bh_sym_text(g->tab, pod->shape->namespace_),
                        bh_sym_text(g->tab, pod->rec->group), &p) &&
        p.whole) {
        u = bh_arena_new(&s->a, struct unit);
        *u = (struct unit){.priority = p.priority, .start_ns = start_of(s, pod), .leaves = true};
    }
    bh_umap_put(&s->by_group, key, (uint64_t)(uintptr_t)u);
    return u;
}

static void add_pod(struct search *s, struct bh_pod_info *pod)
{
    struct unit *u = pod->rec->group != BH_SYM_NONE ? unit_of_group(s, pod) : NULL;

    if (!u) {
        u = bh_arena_new(&s->a, struct unit);
        *u = (struct unit){
            .priority = pod->shape->priority, .start_ns = start_of(s, pod), .leaves = true};
    }
    if (u->priority >= s->g->priority)
        return;
    if (!u->n) {
        BH_GROW(s->v, s->n, s->cap);
        s->v[s->n++] = u;
    }
    if (u->n == u->cap) {
        struct bh_pod_info **more =
            bh_arena_new_array(&s->a, struct bh_pod_info *, u->cap ? u->cap * 2 : 1);
        if (u->n)
            memcpy(more, u->pods, u->n * sizeof *more);
        u->cap = u->cap ? u->cap * 2 : 1;
        u->pods = more;
    }
    u->pods[u->n++] = pod;
    u->leaves &= (pod->rec->flags & BH_POD_TERMINATING) != 0;
}

/* In upstream's order of nodes: who is met first counts. */
static void find_units(struct search *s)
{
    struct bh_cache *c = s->g->cache;
    uint32_t n;
    const uint32_t *row = bh_cache_order(c, &n);

    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < c->rows[row[k]]->n_pods; i++)
            add_pod(s, c->rows[row[k]]->pods[i]);
}

static int by_name(const struct bh_pod_info *p, const struct bh_pod_info *q)
{
    int by = strcmp(bh_rec_text(p->rec, p->rec->namespace_).p,
                    bh_rec_text(q->rec, q->rec->namespace_).p);

    return by ? by
              : strcmp(bh_rec_text(p->rec, p->rec->name).p, bh_rec_text(q->rec, q->rec->name).p);
}

/* Most important first. A single pod of a group counts as a group of one. */
static int by_importance(const void *pa, const void *pb)
{
    const struct unit *a = *(struct unit *const *)pa, *b = *(struct unit *const *)pb;
    const bool a_grouped = a->pods[0]->rec->group != BH_SYM_NONE,
               b_grouped = b->pods[0]->rec->group != BH_SYM_NONE;

    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    if (a_grouped != b_grouped)
        return a_grouped ? -1 : 1;
    if (a_grouped && a->n != b->n)
        return a->n > b->n ? -1 : 1;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return by_name(a->pods[0], b->pods[0]);
}

/* The loop over a unit's pods ends at the first that breaks a budget, as upstream's. */
static void find_violations(struct search *s)
{
    struct bh_budgets b;

    bh_budgets_list(&b, s->g->objects, &s->a);
    int64_t *left = bh_budgets_left(&b, &s->a);
    for (uint32_t i = 0; i < s->n && b.n; i++)
        for (uint32_t k = 0; k < s->v[i]->n && !s->v[i]->violating; k++)
            s->v[i]->violating = bh_budgets_pay(&b, left, s->g->tab, s->v[i]->pods[k]);
}

/* ---- off their nodes, and back --------------------------------------------------------------- */

static void move(struct search *s, const struct unit *u, bool off)
{
    for (uint32_t k = 0; k < u->n; k++)
        (off ? bh_cache_lift : bh_cache_lay)(s->g->cache, u->pods[k]);
}

static void take_all_off(struct search *s)
{
    const struct bh_cache *c = s->g->cache;

    s->order = bh_arena_new_array(&s->a, struct bh_pod_info **, c->cols.n_rows);
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = 0; k < s->v[i]->n; k++) {
            const struct bh_node_info *ni = bh_cache_node(c, s->v[i]->pods[k]->rec->node);
            if (!s->order[ni->row])
                s->order[ni->row] = bh_arena_memdup(&s->a, ni->pods, ni->n_pods * sizeof *ni->pods);
        }
    for (uint32_t i = 0; i < s->n; i++)
        move(s, s->v[i], true);
}

/* All of them, or those that are off: the victims. */
static void put_back(struct search *s, bool all)
{
    const struct bh_cache *c = s->g->cache;

    for (uint32_t i = 0; i < s->n; i++)
        if (all || s->v[i]->victim || s->v[i]->leaves)
            move(s, s->v[i], false);
    for (uint32_t row = 0; row < c->cols.n_rows; row++)
        if (s->order[row])
            bh_node_info_reorder(c->rows[row], s->order[row]);
}

/* Those that break a budget are spared first. Returns the number of pods that go. */
static uint32_t spare(struct search *s)
{
    uint32_t n = 0;

    for (unsigned violating = 2; violating-- > 0;)
        for (uint32_t i = 0; i < s->n; i++) {
            struct unit *u = s->v[i];
            if (u->violating != violating || u->leaves)
                continue;
            move(s, u, false);
            u->victim = !s->g->fits(s->g->arg, u->pods, u->n);
            if (!u->victim)
                continue;
            move(s, u, true);
            n += u->n;
        }
    return n;
}

static struct bh_victim *victims(const struct search *s, uint32_t n)
{
    struct bh_victim *v = bh_arena_new_array(s->g->arena, struct bh_victim, n ? n : 1);
    uint32_t m = 0;

    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = 0; s->v[i]->victim && k < s->v[i]->n; k++)
            v[m++] = bh_describe_victim(s->g->arena, s->v[i]->pods[k]);
    return v;
}

bool bh_preempt_for_group(const struct bh_group_preemption *g, struct bh_victim **ret_victims,
                          uint32_t *ret_n, bool *ret_any)
{
    struct search s = {.g = g};
    bool fits = false;

    find_units(&s);
    *ret_any = s.n > 0;
    if (s.n) {
        qsort(s.v, s.n, sizeof *s.v, by_importance);
        find_violations(&s);
        take_all_off(&s);
        fits = g->fits(g->arg, NULL, 0);
        if (fits) {
            *ret_n = spare(&s);
            *ret_victims = victims(&s, *ret_n);
        }
        if (fits)
            g->done(g->arg);
        put_back(&s, !fits);
    }
    bh_umap_fini(&s.by_group);
    free(s.v);
    bh_arena_fini(&s.a);
    return fits;
}
