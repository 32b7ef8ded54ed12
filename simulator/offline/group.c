/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/offline/group.c - pods that go together: from the queue to their nodes, or back
 *
 * The order is the daemon's (scheduler/daemon/group.c). Members that Permit makes wait are bound at
 * once with those that it lets go, and what it said when the group was tried counts.
 * Upstream: pkg/scheduler/schedule_one_podgroup.go
 */
#include "simulator/offline/offline_int.h"

struct cycle {
    struct bh_offline *w;
    const char *ns, *name;
    struct bh_queued_pod **v;
    struct bh_group_try *try;
    uint32_t n, cap;
    struct bh_group_result r;
    struct bh_arena arena;    /* what outlives the engine's results */
    uint64_t began, share_ns; /* of the time that the group took, each member's */
};

/* ---- who takes part -------------------------------------------------------------------------- */

static struct bh_str name_of(const struct bh_queued_pod *p)
{
    return bh_rec_text(p->pending.pod, p->pending.pod->name);
}

static void add(struct cycle *c, struct bh_queued_pod *p)
{
    if (p->pending.pod->flags & BH_POD_TERMINATING) { /* as upstream: skipped */
        bh_queue_done(c->w->queue, p->pod);
        return;
    }
    BH_GROW(c->v, c->n, c->cap);
    c->v[c->n++] = p;
}

static void collect(struct cycle *c, struct bh_queued_pod *first, const struct bh_group *g)
{
    struct bh_queue *queue = c->w->queue;
    const struct bh_member *m;

    TAILQ_FOREACH(m, &g->at[BH_MEMBER_UNSCHEDULED], link) {
        struct bh_pod_state *s = bh_queue_pod(queue, bh_member_uid(m));
        if (!s || !s->queued || s->queued == first)
            continue;
        struct bh_queued_pod *p = bh_queue_take_member(queue, s, c->w->now_ns);
        if (!p)
            continue;
        BH_GROW(c->v, c->n, c->cap);
        c->v[c->n++] = p;
    }
    /* Those that are skipped leave the group: only now that nobody walks over it. */
    const uint32_t taken = c->n;
    c->n = 0;
    for (uint32_t i = 0; i < taken; i++)
        add(c, c->v[i]);
    add(c, first);
}

static const struct bh_shape_rec *shape_of(const struct cycle *c, const struct bh_queued_pod *p)
{
    return bh_engine_shape_rec(c->w->engine, p->pending.shape);
}

/* Equals in an order that does not depend on who was popped. */
static int by_turn(const void *pa, const void *pb, void *arg)
{
    const struct bh_queued_pod *p = *(struct bh_queued_pod *const *)pa,
                               *q = *(struct bh_queued_pod *const *)pb;
    int cmp = BH_CMP(shape_of(arg, q)->priority, shape_of(arg, p)->priority);

    cmp = cmp ? cmp : BH_CMP(p->initial_attempt_ns, q->initial_attempt_ns);
    cmp = cmp ? cmp : BH_CMP(p->pending.pod->creation_ns, q->pending.pod->creation_ns);
    return cmp ? cmp : strcmp(name_of(p).p, name_of(q).p);
}

static const char *profile_of(const struct cycle *c, uint32_t i)
{
    return bh_sym_text(bh_engine_symtab(c->w->engine), shape_of(c, c->v[i])->scheduler_name);
}

/* All of them have to be one profile's. */
static bool one_profile(struct cycle *c)
{
    uint32_t other = 1;

    while (other < c->n && bh_streq(profile_of(c, other), profile_of(c, 0)))
        other++;
    if (other >= c->n)
        return true;
    c->r = (struct bh_group_result){
        .code = BH_ERROR,
        .message = bh_arena_printf(&c->arena,
                                   "all pods in a single pod group should have the same "
                                   ".spec.schedulerName set, got: \"%s\" and \"%s\"",
                                   profile_of(c, other), profile_of(c, 0))};
    return false;
}

/* ---- how it went ----------------------------------------------------------------------------- */

static bool is_error(const struct bh_decision *d)
{
    return d->kind == BH_DECISION_ERROR && !bh_streq(d->reason, "Unschedulable");
}

/* Held back by its group. Nobody rejected it: it waits as after an error. */
static struct bh_decision held(const char *reason, const char *message, bh_sym nominated)
{
    return (struct bh_decision){.kind = BH_DECISION_ERROR,
                                .reason = reason,
                                .message = message,
                                .nominated_node = nominated,
                                .clear_nomination = nominated == BH_SYM_NONE};
}

/* Of a member that does not go now. */
static struct bh_decision failure_of(struct cycle *c, const struct bh_group_try *t)
{
    const bool has_room = t->node != BH_SYM_NONE && !t->preempts;

    if (c->r.code == BH_ERROR && !(t->decided && is_error(&t->decision)))
        return held("SchedulerError", c->r.message, BH_SYM_NONE);
    if (c->r.code == BH_ERROR)
        return t->decision;
    if (has_room && c->r.waiting)
        return held("Unschedulable", c->r.message, t->node);
    if (has_room || (t->preempts && !c->r.waiting)) /* its victims are spared */
        return held("Unschedulable",
                    bh_arena_printf(&c->arena, "pod group is unschedulable, %s", t->permit_message),
                    BH_SYM_NONE);
    return t->decision;
}

/* All that is said of the members is copied before anything follows: what the engine said goes with
 * its next call. The group's own victims leave when the last member is back in the queue. */
static struct bh_decision *failures(struct cycle *c)
{
    struct bh_decision *v = bh_arena_new_array(&c->arena, struct bh_decision, c->n + 1),
                       *last = NULL;

    for (uint32_t i = 0; i < c->n; i++) {
        if (c->try[i].assumed)
            continue;
        struct bh_decision *d = last = &v[i];
        *d = failure_of(c, &c->try[i]);
        d->message = bh_arena_strdup(&c->arena, d->message ? d->message : "");
        d->unschedulable_plugins =
            bh_arena_memdup(&c->arena, d->unschedulable_plugins,
                            d->n_unschedulable_plugins * sizeof *d->unschedulable_plugins);
        d->pending_plugins = bh_arena_memdup(&c->arena, d->pending_plugins,
                                             d->n_pending_plugins * sizeof *d->pending_plugins);
        d->victims = bh_offline_keep_victims(&c->arena, d->victims, d->n_victims);
    }
    if (last && c->r.n_victims) {
        last->victims = bh_offline_keep_victims(&c->arena, c->r.victims, c->r.n_victims);
        last->n_victims = c->r.n_victims;
    }
    return v;
}

/* As scheduler/daemon/group.c: what victims free is kept for the members. */
static void keep_node(struct cycle *c, uint32_t i)
{
    const struct bh_group_try *t = &c->try[i];
    struct bh_offline *w = c->w;
    const struct bh_pending *p = &c->v[i]->pending;
    const struct bh_str uid = bh_rec_text(p->pod, p->pod->uid);
    const bool keeps = !t->assumed && t->kept != BH_SYM_NONE &&
                       bh_engine_nominated_node(w->engine, uid) == BH_SYM_NONE;

    if (keeps)
        bh_engine_keep_node(w->engine, p, t->kept);
    if (t->was_kept == BH_SYM_NONE ||
        t->was_kept == (t->assumed ? t->node : bh_engine_nominated_node(w->engine, uid)))
        return;
    BH_CLEANUP(bh_freep) struct bh_pod_rec *pod = bh_memdup(p->pod, p->pod->h.size);
    const struct bh_shape_rec *rec = shape_of(c, c->v[i]);
    BH_CLEANUP(bh_freep) struct bh_shape_rec *shape = bh_memdup(rec, rec->h.size);
    pod->nominated_node = t->was_kept;
    bh_offline_tell_room(w, pod, shape, false);
}

static void keep_nodes(struct cycle *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->try[i].kept != BH_SYM_NONE || c->try[i].was_kept != BH_SYM_NONE)
            keep_node(c, i);
}

static uint64_t began(const struct cycle *c)
{
    return c->w->o.timer() - c->share_ns;
}

static void submit(struct cycle *c)
{
    const struct bh_decision *failed = failures(c);
    struct bh_offline *w = c->w;

    c->r.message = bh_arena_strdup(&c->arena, c->r.message);
    if (w->o.hooks.grouped)
        w->o.hooks.grouped(w->o.hooks.arg,
                           &(struct bh_offline_group){
                               .ns = c->ns, .name = c->name, .result = &c->r, .members = c->n});
    if (w->o.events_only && c->r.code != BH_SUCCESS && !w->held) {
        w->held = true;
        w->held_events = w->events;
    }
    if (c->r.code == BH_ERROR) /* its members may leave the queue */
        keep_nodes(c);
    for (uint32_t i = 0; i < c->n; i++)
        if (!c->try[i].assumed)
            bh_offline_rejected(w, &c->v[i]->pending, &failed[i], began(c));
    if (c->r.code != BH_ERROR)
        keep_nodes(c);
    for (uint32_t i = 0; i < c->n; i++)
        if (c->try[i].assumed)
            bh_offline_placed(w, &c->v[i]->pending, c->try[i].node, c->try[i].was_nominated,
                              began(c));
}

/* ---- the cycle ------------------------------------------------------------------------------- */

static void on_tried(void *arg, struct bh_group_try *t, const struct bh_decision *d)
{
    struct bh_offline *w = arg;

    if (w->o.hooks.decided)
        w->o.hooks.decided(w->o.hooks.arg, &t->pod, d);
}

static void try_all(struct cycle *c)
{
    struct bh_offline *w = c->w;
    const uint64_t allocated = bh_allocations;

    for (uint32_t i = 0; i < c->n; i++)
        c->try[i] = (struct bh_group_try){.pod = c->v[i]->pending, .tried = on_tried, .arg = c->w};
    bh_engine_schedule_group(w->engine, c->try, c->n, w->o.flags, w->now_ns, &c->r);
    w->decisions += c->n;
    w->decide_allocations += bh_allocations - allocated;
}

bool bh_offline_group_cycle(struct bh_offline *w, struct bh_queued_pod *first, uint64_t began)
{
    const struct bh_group *g = bh_engine_group_of(w->engine, &first->pending);
    struct bh_symtab *tab = bh_engine_symtab(w->engine);
    struct cycle c = {.w = w, .began = began};

    if (!g)
        return false;
    c.ns = bh_sym_text(tab, g->namespace_);
    c.name = bh_sym_text(tab, g->name);
    collect(&c, first, g);
    if (c.n > 1)
        qsort_r(c.v, c.n, sizeof(*c.v), by_turn, &c);
    c.try = bh_arena_new_array(&c.arena, struct bh_group_try, c.n + 1);
    if (c.n && one_profile(&c))
        try_all(&c);
    if (c.n) {
        c.share_ns = (w->o.timer() - c.began) / c.n;
        submit(&c);
    }
    free(c.v);
    bh_arena_fini(&c.arena);
    return true;
}
