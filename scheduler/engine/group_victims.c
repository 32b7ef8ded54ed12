/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine/group_victims.c - a group does not fit: whom to evict for it, wherever they are
 *
 * Upstream: pkg/scheduler/schedule_one_podgroup.go (runWorkloadAwarePreemption) of v1.36; with
 *           options.group_stays framework/preemption of 1.37.
 */
#include "scheduler/engine/state.h"
#include "scheduler/preemption/preemption.h"

#define PREEMPTION "DefaultPreemption"

struct trial {
    struct bh_engine *e;
    struct bh_group_try *of;
    struct bh_group_try *v;
    uint32_t n;
    int64_t now_ns;
    struct bh_group_result r; /* of the first: with everybody gone who may go */
    bool scattered;           /* what comes to one node may keep a member from another */
};

static void try_anew(struct trial *t, struct bh_group_result *ret)
{
    for (uint32_t i = 0; i < t->n; i++)
        t->v[i] = (struct bh_group_try){.pod = t->of[i].pod};
    bh_group_try_all(t->e, t->v, t->n, BH_NO_PREEMPTION, t->now_ns, ret);
}

static bool fits_first(struct trial *t)
{
    try_anew(t, &t->r);
    return t->r.code == BH_SUCCESS;
}

/* As v1.36: all of them anew. */
static bool fits_anew(void *arg, struct bh_pod_info *const *pods BH_UNUSED, uint32_t n)
{
    struct trial *t = arg;
    const struct bh_arena_mark mark = bh_arena_mark(&t->e->group_arena);
    struct bh_group_result r;
    bool fits;

    if (n) {
        try_anew(t, &r);
        fits = r.code == BH_SUCCESS;
        bh_arena_rewind(&t->e->group_arena, mark);
    } else {
        fits = fits_first(t);
    }
    bh_group_take_back(t->e, t->v, t->n, true);
    return fits;
}

/* Without itself, as it was when it was placed. */
static bool may_stay(struct trial *t, const struct bh_group_try *m)
{
    struct bh_cache *c = &t->e->cache;
    struct bh_cache_pod *p = bh_cache_pod(c, bh_rec_text(m->pod.pod, m->pod.pod->uid));
    const uint32_t row = p->node->row;

    bh_cache_lift(c, &p->info);
    const bool stays = bh_reference_fits(t->e, &m->pod, row, t->now_ns);
    bh_cache_lay(c, &p->info);
    return stays;
}

/* As 1.37: may they stay where they are? */
static bool fits_in_place(void *arg, struct bh_pod_info *const *pods, uint32_t n)
{
    struct trial *t = arg;
    bool fits = bh_group_goes_on(t->e);

    if (!n)
        return fits_first(t);
    for (uint32_t i = 0; i < t->n && fits; i++) {
        const struct bh_group_try *m = &t->v[i];
        bool near = t->scattered;
        for (uint32_t k = 0; k < n && !near && m->assumed; k++)
            near = pods[k]->rec->node == m->node;
        fits = !m->assumed || !near || may_stay(t, m);
    }
    return fits;
}

/* A member that has capacity now is nominated there: one like it takes its other place. */
static void exchange_place(struct trial *t, struct bh_group_try *m)
{
    for (uint32_t i = 0; i < t->n && m->kept != m->node; i++) {
        struct bh_group_try *o = &t->of[i];
        if (o->node != BH_SYM_NONE || o->kept != m->node || o->pod.shape != m->pod.shape)
            continue;
        o->kept = m->kept;
        m->kept = m->node;
    }
}

/* The victims are off their nodes: where the members are then is kept for them. */
static void keep_places(void *arg)
{
    struct trial *t = arg;
    struct bh_group_result r;

    if (!t->e->opt.group_stays)
        try_anew(t, &r);
    for (uint32_t i = 0; i < t->n; i++)
        t->of[i].kept = t->v[i].assumed ? t->v[i].node : BH_SYM_NONE;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->of[i].node != BH_SYM_NONE && t->of[i].kept != BH_SYM_NONE)
            exchange_place(t, &t->of[i]);
    bh_group_take_back(t->e, t->v, t->n, true);
}

static bool looks_around(const struct bh_engine *e, const struct bh_group_try *v, uint32_t n)
{
    const uint32_t around = BH_SHAPE_USES_POD_AFFINITY | BH_SHAPE_USES_SPREAD |
                            BH_SHAPE_USES_VOLUMES | BH_SHAPE_USES_CLAIMS;

    for (uint32_t i = 0; i < n; i++)
        if (bh_engine_shape_rec(e, v[i].pod.shape)->flags & around)
            return true;
    for (uint32_t i = 0; i < e->n_profiles; i++)
        if (!e->profile[i].fast)
            return true;
    return e->cache.n_affinity_pods;
}

/* As upstream: the plugin has to be in the profile, wherever. Disabled at PostFilter it still is. */
static bool has_preemption(struct bh_engine *e, const struct bh_group_try *m)
{
    static const enum bh_point points[] = {BH_POINT_PRE_ENQUEUE, BH_POINT_POST_FILTER};
    const char *names[64];

    for (unsigned k = 0; k < BH_ARRAY_LEN(points); k++) {
        const uint32_t n = bh_engine_plugins_at(e, &m->pod, points[k], names, BH_ARRAY_LEN(names));
        for (uint32_t i = 0; i < n; i++)
            if (bh_streq(names[i], PREEMPTION))
                return true;
    }
    return false;
}

/* Why it is not tried at all; NULL: it is. */
static const char *why_not(struct bh_engine *e, const struct bh_group_try *v, uint32_t n,
                           const struct bh_group_policy *p)
{
    if (p->topology_key)
        return "workload aware preemption is not supported for pod groups with scheduling "
               "constraints";
    for (uint32_t i = 0; i < n; i++)
        if (bh_engine_shape_rec(e, v[i].pod.shape)->flags & BH_SHAPE_NEVER_PREEMPT)
            return "not eligible due to preemptionPolicy=Never.";
    return NULL;
}

static void add_reason(struct bh_engine *e, struct bh_group_result *ret, const char *reason)
{
    ret->message = bh_arena_printf(&e->group_arena, "%s, %s", ret->message, reason);
}

static void choose(struct trial *t, int32_t priority, struct bh_group_result *ret)
{
    struct bh_engine *e = t->e;
    const bool in_place = e->opt.group_stays;
    const struct bh_group_preemption g = {.cache = &e->cache,
                                          .objects = &e->objects,
                                          .tab = e->tab,
                                          .arena = &e->group_arena,
                                          .now_ns = t->now_ns,
                                          .priority = priority,
                                          .fits = in_place ? fits_in_place : fits_anew,
                                          .done = keep_places,
                                          .arg = t};
    struct bh_victim *victims;
    bool any;

    const bool found = bh_preempt_for_group(&g, &victims, &ret->n_victims, &any);
    if (e->group_given_up) {
        ret->n_victims = 0;
    } else if (found) {
        ret->waiting = true;
        ret->victims = victims;
    } else if (!any) {
        add_reason(e, ret, "No preemption victims found for incoming preemptor");
    } else if (t->r.code == BH_ERROR) {
        *ret = t->r;
    } else {
        /* A group that may be tried here has one placement: all nodes. */
        add_reason(e, ret,
                   bh_arena_printf(&e->group_arena, "%s%s",
                                   e->placements ? "0/1 placements are available, first "
                                                   "placement status: "
                                                 : "",
                                   t->r.message));
    }
}

void bh_group_preempt(struct bh_engine *e, struct bh_group_try *v, uint32_t n, int64_t now_ns,
                      struct bh_group_result *ret)
{
    const struct bh_group *g = bh_engine_group_of(e, &v[0].pod);
    struct trial t = {.e = e, .of = v, .n = n, .now_ns = now_ns};
    struct bh_group_policy p;

    if (!has_preemption(e, &v[0])) {
        add_reason(e, ret,
                   "default preemption plugin is not registered, workload aware preemption is "
                   "disabled");
        return;
    }
    if (!bh_group_policy(&e->objects, bh_sym_text(e->tab, g->namespace_),
                         bh_sym_text(e->tab, g->name), &p)) {
        *ret = (struct bh_group_result){
            .code = BH_ERROR,
            .message = bh_arena_printf(&e->group_arena,
                                       "failed to get pod group object: "
                                       "podgroup.scheduling.k8s.io \"%s\" not found",
                                       bh_sym_text(e->tab, g->name))};
        return;
    }
    const char *why = why_not(e, v, n, &p);
    if (why) {
        add_reason(e, ret, why);
        return;
    }
    t.v = bh_calloc(n, sizeof *t.v);
    t.scattered = looks_around(e, v, n);
    choose(&t, p.priority, ret);
    free(t.v);
}
