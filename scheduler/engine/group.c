/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine/group.c - pods that go together: is there room for enough of them?
 *
 * Member after member is decided as any pod, and stays assumed while the others are tried: the cache
 * itself is the layer that members are laid on, and what was assumed is the undo log. So a member of
 * a known shape costs what any pod of it costs: the rows that the members before it touched.
 *
 * Upstream: pkg/scheduler/schedule_one_podgroup.go; differences: members that fit stay where they are
 *           when the group does (upstream takes all of them back and assumes and reserves them anew).
 */
#include <errno.h>

#include "scheduler/engine/state.h"

/* Members tried between two looks at what else there is: 0.2 to 3 ms of known shapes. */
#define LOOK_UP_EVERY 256u

static const char unschedulable[] = "pod group is unschedulable";

void bh_engine_waits(struct bh_engine *e, const struct bh_pending *p, bool waits)
{
    if (bh_likely(!e->cache.groups.on && !e->cache.labelled.on))
        return;
    const struct bh_shape_rec *s = bh_shapes_rec(&e->cache.shapes, p->shape);
    bh_groups_wait(&e->cache.groups, p->pod, s, waits);
    bh_groups_wait(&e->cache.labelled, p->pod, s, waits);
}

struct bh_group *bh_engine_group_of(const struct bh_engine *e, const struct bh_pending *p)
{
    if (bh_likely(!e->cache.groups.on) || p->pod->group == BH_SYM_NONE)
        return NULL;
    return bh_groups_find(&e->cache.groups, bh_shapes_rec(&e->cache.shapes, p->shape)->namespace_,
                          p->pod->group);
}

struct bh_group *bh_engine_labelled_group_of(const struct bh_engine *e, const struct bh_pending *p)
{
    const struct bh_groups *g = &e->cache.labelled;
    const struct bh_shape_rec *s = bh_shapes_rec(&e->cache.shapes, p->shape);
    const bh_sym name = g->on ? bh_groups_name(g, p->pod, s) : BH_SYM_NONE;

    return name != BH_SYM_NONE ? bh_groups_find(g, s->namespace_, name) : NULL;
}

void bh_decide_refused(struct bh_arena *a, const struct bh_status *s, struct bh_decision *ret)
{
    *ret = (struct bh_decision){.kind = BH_DECISION_ERROR, .clear_nomination = true};
    if (!bh_status_rejected(s)) {
        ret->reason = "SchedulerError";
        ret->message = bh_arena_strdup(a, bh_status_message(a, s));
        return;
    }
    const char **plugin = bh_arena_new_array(a, const char *, 1);
    *plugin = bh_arena_strdup(a, s->plugin ? s->plugin : "");
    ret->reason = "Unschedulable";
    ret->message = bh_arena_printf(a, "0/1 nodes are available: 1 %s.", bh_status_message(a, s));
    ret->unschedulable_plugins = ret->pending_plugins = plugin;
    ret->n_unschedulable_plugins = 1;
    ret->n_pending_plugins = s->code == BH_PENDING;
}

/* A decision that outlives the next one of the group. Victims and writes point into the cycle's arena:
 * theirs is not rewound. */
static bool keep(struct bh_arena *a, const struct bh_decision *d, struct bh_decision *ret)
{
    *ret = *d;
    if (d->n_victims || d->n_writes)
        return false;
    ret->message = d->message ? bh_arena_strdup(a, d->message) : "";
    ret->fit_message = ret->post_filter_message = ret->message;
    ret->unschedulable_plugins = bh_arena_memdup(
        a, d->unschedulable_plugins, d->n_unschedulable_plugins * sizeof *d->unschedulable_plugins);
    ret->pending_plugins =
        bh_arena_memdup(a, d->pending_plugins, d->n_pending_plugins * sizeof *d->pending_plugins);
    return true;
}

static void take_back(struct bh_engine *e, struct bh_group_try *m)
{
    bh_engine_unreserve(e, &m->pod, m->node);
    bh_cache_take_back(&e->cache, bh_rec_text(m->pod.pod, m->pod.pod->uid));
    if (m->was_nominated != BH_SYM_NONE)
        bh_engine_nominate(e, &m->pod, m->was_nominated);
    m->assumed = false;
}

/* On its node, or on the one that was promised to it, as the others shall see it. */
void bh_group_lay(struct bh_engine *e, struct bh_group_try *m)
{
    struct bh_arena *a = &e->group_arena;
    static const char *const reason = "pod is in the cache, so can't be assumed";
    static const struct bh_status failed = {.code = BH_ERROR, .n_reasons = 1, .reasons = &reason};
    const struct bh_str uid = bh_rec_text(m->pod.pod, m->pod.pod->uid);
    int64_t timeout_ns;

    m->was_nominated = bh_cache_nominated_node(&e->cache, uid);
    m->assumed = bh_engine_assume(e, &m->pod, m->node) == 0;
    const struct bh_status *s = m->assumed ? bh_engine_reserve(e, &m->pod, m->node) : &failed;
    if (!s)
        s = bh_engine_permit(e, &m->pod, m->node, &timeout_ns);
    if (!s || bh_status_code(s) == BH_WAIT) {
        m->permitted = !s;
        m->permit_message = s ? bh_arena_strdup(a, bh_status_message(a, s)) : "";
        bh_engine_permit_over(e, bh_engine_waiting(e, uid)); /* nobody waits yet */
        return;
    }
    bh_decide_refused(a, s, &m->decision);
    if (m->assumed)
        take_back(e, m);
    m->node = BH_SYM_NONE;
    m->preempts = false;
}

/* false: it failed in a way that says nothing about room. */
static bool try_member(struct bh_engine *e, struct bh_group_try *m, unsigned flags, int64_t now_ns)
{
    const struct bh_arena_mark mark = bh_arena_mark(&e->arena);
    const struct bh_decision *d = bh_engine_schedule(e, &m->pod, flags, now_ns);

    if (m->tried)
        m->tried(m->arg, m, d);
    m->decided = true;
    m->preempts = d->kind == BH_NO_FIT && d->nominated_node != BH_SYM_NONE;
    m->node = d->kind == BH_DECIDED ? d->node : m->preempts ? d->nominated_node : BH_SYM_NONE;
    if (keep(&e->group_arena, d, &m->decision))
        bh_arena_rewind(&e->arena, mark);
    if (m->node != BH_SYM_NONE)
        bh_group_lay(e, m);
    return m->node != BH_SYM_NONE || bh_streq(m->decision.reason, "Unschedulable");
}

void bh_group_take_back(struct bh_engine *e, struct bh_group_try *v, uint32_t n, bool all)
{
    for (uint32_t i = n; i-- > 0;)
        if (v[i].assumed && (all || v[i].preempts))
            take_back(e, &v[i]);
}

bool bh_group_goes_on(struct bh_engine *e)
{
    const struct bh_engine_options *o = &e->opt;

    if (o->waiting && !e->group_given_up && ++e->group_tried % LOOK_UP_EVERY == 0)
        e->group_given_up = !o->waiting(o->waiting_arg);
    return !e->group_given_up;
}

void bh_group_run(struct bh_engine *e, struct bh_group_try *v, uint32_t n, unsigned flags,
                  int64_t now_ns, struct bh_group_result *ret)
{
    bool preempts = false;
    uint32_t i;

    *ret = (struct bh_group_result){.code = BH_UNSCHEDULABLE, .message = unschedulable};
    for (i = 0; i < n && bh_group_goes_on(e) && try_member(e, &v[i], flags, now_ns); i++) {
        preempts |= v[i].preempts;
        if (!v[i].permitted)
            continue;
        /* Once is enough, whatever is said of those after it; but one that preempts holds back all. */
        ret->waiting = preempts;
        ret->code = preempts ? BH_UNSCHEDULABLE : BH_SUCCESS;
        ret->message = preempts ? "pod group is unschedulable, pod group is waiting for preemption "
                                  "to complete"
                                : "";
    }
    if (i < n)
        *ret = (struct bh_group_result){
            .code = BH_ERROR,
            .message = e->group_given_up
                           ? "given up"
                           : bh_arena_printf(&e->group_arena,
                                             "failed to schedule other pod from a pod group: %s",
                                             v[i].decision.message)};
}

void bh_group_try_all(struct bh_engine *e, struct bh_group_try *v, uint32_t n, unsigned flags,
                      int64_t now_ns, struct bh_group_result *ret)
{
    bh_group_run(e, v, n, flags, now_ns, ret);
    bh_group_take_back(e, v, n, ret->code != BH_SUCCESS);
}

void bh_engine_schedule_group(struct bh_engine *e, struct bh_group_try *v, uint32_t n,
                              unsigned flags, int64_t now_ns, struct bh_group_result *ret)
{
    bh_arena_reset(&e->arena);
    bh_arena_reset(&e->group_arena);
    e->in_group = true;
    e->reserved.group_id = e->reserved.serial + 1;
    e->group_tried = 0;
    e->group_given_up = false;
    for (uint32_t i = 0; i < n; i++)
        v[i].was_kept = bh_cache_end_kept(&e->cache, bh_rec_text(v[i].pod.pod, v[i].pod.pod->uid));
    if (!e->placements || !bh_group_place(e, v, n, flags, now_ns, ret))
        bh_group_try_all(e, v, n, flags, now_ns, ret);
    if (ret->code == BH_UNSCHEDULABLE && !(flags & BH_NO_PREEMPTION) &&
        bh_sched_config_gate(e->opt.config, "WorkloadAwarePreemption"))
        bh_group_preempt(e, v, n, now_ns, ret);
    for (uint32_t i = 0; ret->code == BH_UNSCHEDULABLE && i < n; i++)
        if (!v[i].decided) /* nobody was tried: each says what the group says */
            v[i].decision.message = ret->message;
    e->in_group = false;
    e->reserved.group_id = 0;
}
