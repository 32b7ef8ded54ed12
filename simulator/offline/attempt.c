/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/offline/attempt.c - from the queue to a node, or back
 *
 * The order is the daemon's (scheduler/daemon/cycle.c).
 * Upstream: pkg/scheduler/schedule_one.go
 */
#include "simulator/offline/offline_int.h"

/* ---- back to the queue ----------------------------------------------------------------------- */

static void ended(struct bh_offline *w, const struct bh_offline_try *t, uint64_t began)
{
    struct bh_offline_try told = *t;

    told.took_ns = w->o.timer() - began;
    w->decide_ns += told.took_ns;
    if (w->o.hooks.tried)
        w->o.hooks.tried(w->o.hooks.arg, &told);
}

/* With the hook, a victim that is being deleted already is left to its deleter. */
static void evict(struct bh_offline *w, const struct bh_victim *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (w->n_waiting && bh_offline_preempt_waiting(w, v[i].uid))
            continue;
        if (!w->o.hooks.evict)
            bh_offline_evict(w, v[i].uid);
        else if (!v[i].terminating)
            w->o.hooks.evict(w->o.hooks.arg, v[i].namespace_.p, v[i].name.p);
    }
}

/* Victims that terminate leave time for the attempts of all other active pods, and then the preemptor
 * is the first of those that wait. Where they are gone at once nothing else may come in between: the
 * place may be one that no nomination keeps (a claim for one pod). */
static void retry_preemptor(struct bh_offline *w, struct bh_str uid, const struct bh_victim *v,
                            uint32_t n)
{
    struct bh_pod_state *s = bh_queue_pod(w->queue, uid);

    for (uint32_t i = 0; i < n && s; i++)
        if (bh_engine_find_pod(w->engine, v[i].uid, NULL))
            s = NULL;
    if (s && n)
        bh_queue_activate(w->queue, s, w->now_ns);
}

struct lower { /* the first pod that is found */
    int32_t priority;
    struct bh_nominated found;
};

static void find_lower(void *arg, const struct bh_nominated *n)
{
    struct lower *l = arg;

    if (n->priority < l->priority && !l->found.uid.p)
        l->found = *n;
}

static void post_filter_writes(struct bh_offline *w, const struct bh_decision *d)
{
    for (uint32_t i = 0; i < d->n_writes; i++) {
        if (w->o.hooks.write)
            w->o.hooks.write(w->o.hooks.arg, &d->writes[i]);
        else
            bh_offline_write(w, &d->writes[i]);
    }
}

struct bh_victim *bh_offline_keep_victims(struct bh_arena *a, const struct bh_victim *v, uint32_t n)
{
    struct bh_victim *kept = bh_arena_new_array(a, struct bh_victim, n + 1);

    for (uint32_t i = 0; i < n; i++) {
        kept[i] = v[i];
        kept[i].namespace_.p = bh_arena_strndup(a, v[i].namespace_.p, v[i].namespace_.n);
        kept[i].name.p = bh_arena_strndup(a, v[i].name.p, v[i].name.n);
        kept[i].uid.p = bh_arena_strndup(a, v[i].uid.p, v[i].uid.n);
    }
    return kept;
}

/* No plugin told of the error: the same again would be the same again. Members of a group that are
 * held back by it are no such error. */
static bool is_hopeless(const struct bh_decision *d)
{
    return d->kind == BH_DECISION_ERROR && !d->n_unschedulable_plugins &&
           !bh_streq(d->reason, "Unschedulable");
}

/* What the owner does with the writes is not counted. */
void bh_offline_rejected(struct bh_offline *w, const struct bh_pending *p,
                         const struct bh_decision *d, uint64_t began)
{
    BH_CLEANUP(bh_freep) struct bh_pod_rec *pod = bh_memdup(p->pod, p->pod->h.size);
    struct bh_str uid = bh_rec_text(pod, pod->uid);
    const struct bh_offline_try t = {.pod = pod, .shape = p->shape, .failed = d};
    uint32_t n_victims = d->n_victims;
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};

    /* Copies: what the engine gave lives until its next call. */
    struct bh_victim *v = bh_offline_keep_victims(&a, d->victims, d->n_victims);
    if (n_victims) {
        /* Pods of lower priority that were promised the preemptor's node may look for another. */
        bh_sym node = d->nominated_node;
        struct lower l = {.priority = bh_engine_shape_rec(w->engine, p->shape)->priority};
        while (bh_engine_each_nominated(w->engine, node, find_lower, &l), l.found.uid.p) {
            if (l.found.at)
                bh_offline_promise_over(w, &bh_pod_of(l.found.at)->queued->pending, node);
            else
                bh_engine_unnominate(w->engine, l.found.uid);
            l.found.uid.p = NULL;
        }
    }
    post_filter_writes(w, d);
    if (w->o.events_only && is_hopeless(d))
        bh_queue_delete(w->queue, bh_queue_pod(w->queue, uid));
    else
        bh_queue_return(w->queue, bh_queue_pod(w->queue, uid), d->unschedulable_plugins,
                        d->n_unschedulable_plugins, d->pending_plugins, d->n_pending_plugins,
                        w->now_ns);
    if (d->nominated_node != BH_SYM_NONE)
        bh_engine_nominate(w->engine, p, d->nominated_node);
    else if (d->clear_nomination)
        bh_engine_unnominate(w->engine, uid);
    ended(w, &t, began);
    evict(w, v, n_victims);
    retry_preemptor(w, uid, v, n_victims);
}

/* Reserve or Permit said no: rejected by that plugin. The texts are copied before all is undone. */
static void refused(struct bh_offline *w, const struct bh_pending *p, bh_sym node,
                    const struct bh_status *s, uint64_t began)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    struct bh_decision d;

    bh_decide_refused(&a, s, &d);
    if (bh_status_rejected(s))
        d.kind = BH_NO_FIT;
    bh_offline_give_back(w, p, node);
    bh_offline_rejected(w, p, &d, began);
}

/* ---- to a node ------------------------------------------------------------------------------- */

void bh_offline_give_back(struct bh_offline *w, const struct bh_pending *p, bh_sym node)
{
    bh_engine_unreserve(w->engine, p, node);
    (void)bh_engine_forget(w->engine, bh_rec_text(p->pod, p->pod->uid));
}

/* Not inlined: bench/count.sh counts what happens in here. */
__attribute__((noinline)) const struct bh_decision *
bh_offline_decide(struct bh_offline *w, const struct bh_pending *p, bh_sym *ret_node,
                  const struct bh_status **ret_refused)
{
    const struct bh_decision *d = bh_engine_schedule(w->engine, p, w->o.flags, w->now_ns);
    int64_t timeout_ns;

    if (w->o.hooks.decided)
        w->o.hooks.decided(w->o.hooks.arg, p, d);
    if (d->kind != BH_DECIDED)
        return d;
    *ret_node = d->node;
    int rc = bh_engine_assume(w->engine, p, *ret_node);
    bh_assert(rc == 0); /* a pending pod is on no node */
    *ret_refused = bh_engine_reserve(w->engine, p, *ret_node);
    if (!*ret_refused)
        *ret_refused = bh_engine_permit(w->engine, p, *ret_node, &timeout_ns);
    return d;
}

void bh_offline_placed(struct bh_offline *w, const struct bh_pending *p, bh_sym node,
                       bh_sym promised, uint64_t began)
{
    const struct bh_offline_try t = {.pod = p->pod, .shape = p->shape, .node = node};

    bh_engine_unnominate(w->engine, bh_rec_text(p->pod, p->pod->uid));
    if (promised != BH_SYM_NONE && promised != node)
        bh_offline_promise_over(w, p, promised);
    if (w->o.hooks.bind) {
        /* What Reserve chose is written, then the binding. */
        struct bh_str uid = bh_rec_text(p->pod, p->pod->uid);
        uint32_t n = 0;
        const struct bh_write *x = bh_engine_prebind_work(w->engine, uid, &n);
        for (uint32_t i = 0; w->o.hooks.write && i < n; i++)
            w->o.hooks.write(w->o.hooks.arg, &x[i]);
        bh_engine_prebind_commit(w->engine, uid);
        bh_queue_binding(w->queue, bh_queue_pod(w->queue, uid));
    }
    ended(w, &t, began);
    if (w->o.hooks.bind)
        w->o.hooks.bind(w->o.hooks.arg, p, node);
    else
        bh_offline_bind(w, p, node);
}

/* ---- attempts -------------------------------------------------------------------------------- */

/* Groups come back when their back-off ends, and time stands still here: it passes when something has
 * changed since they were tried, and nothing else is to be done. */
static void let_groups_try_again(struct bh_offline *w)
{
    struct bh_queue_stats q;

    w->held = false;
    for (bh_queue_stats(w->queue, &q); q.backoff; bh_queue_stats(w->queue, &q))
        w->now_ns += bh_queue_tick(w->queue, w->now_ns);
}

static struct bh_queued_pod *next(struct bh_offline *w)
{
    struct bh_queued_pod *q = bh_queue_pop(w->queue, w->now_ns);

    if (q || !w->held || w->held_events == w->events)
        return q;
    let_groups_try_again(w);
    return bh_queue_pop(w->queue, w->now_ns);
}

/* Where time stands still those in back-off were tried a moment ago: members that fetch each other, with
 * room for some of them, would do so for ever. */
static void activate(void *arg, struct bh_str uid)
{
    const struct bh_offline *w = arg;
    struct bh_pod_state *s = bh_queue_pod(w->queue, uid);

    if (!s || (w->o.events_only && (s->place == BH_Q_BACKOFF || s->place == BH_Q_ERROR_BACKOFF)))
        return;
    bh_queue_activate(w->queue, s, w->now_ns);
}

bool bh_offline_attempt(struct bh_offline *w)
{
    if (w->n_waiting && bh_offline_look_at_waiting(w))
        return true;
    (void)bh_engine_activations(w->engine, activate, w);
    uint64_t began = w->o.timer();
    struct bh_queued_pod *q = next(w);

    if (q && q->pending.pod->group != BH_SYM_NONE && bh_offline_group_cycle(w, q, began))
        return true;
    if (q && !(q->pending.pod->flags & BH_POD_TERMINATING)) {
        const struct bh_pending *p = &q->pending;
        bh_sym promised = bh_engine_nominated_node(w->engine, bh_rec_text(p->pod, p->pod->uid));
        uint64_t allocated = bh_allocations;
        const struct bh_status *s = NULL;
        bh_sym node = BH_SYM_NONE;
        const struct bh_decision *d = bh_offline_decide(w, p, &node, &s);
        w->decisions++;
        w->decide_allocations += bh_allocations - allocated;
        if (d->kind != BH_DECIDED)
            bh_offline_rejected(w, p, d, began);
        else if (s && s->code == BH_WAIT)
            bh_offline_wait(w, p, node, promised, began);
        else if (s)
            refused(w, p, node, s, began);
        else
            bh_offline_placed(w, p, node, promised, began);
        return true;
    }
    if (q) /* as upstream: skipped */
        bh_queue_done(w->queue, q->pod);
    w->decide_ns += w->o.timer() - began;
    return q;
}

static void plugin_wakes(void *arg, const char *plugin)
{
    const struct bh_cluster_event ev = {
        .resource = BH_EV_PLUGIN, .action = BH_EV_UPDATE, .plugin = plugin};

    bh_offline_event(arg, &ev);
}

int64_t bh_offline_due(struct bh_offline *w)
{
    uint64_t began = w->o.timer();
    (void)bh_engine_wakes(w->engine, w->now_ns, plugin_wakes, w);
    int64_t wait = bh_queue_tick(w->queue, w->now_ns);
    struct bh_queue_stats q;

    w->intake_ns += w->o.timer() - began;
    bh_queue_stats(w->queue, &q);
    if (q.active) /* their back-off was over */
        return w->now_ns;
    const int64_t again = wait < INT64_MAX - w->now_ns ? w->now_ns + BH_MAX(wait, 1) : INT64_MAX;
    return BH_MIN(BH_MIN(again, bh_engine_wakes_next(w->engine)), bh_offline_waiting_due(w));
}
