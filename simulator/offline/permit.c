/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/offline/permit.c - pods that a Permit plugin makes wait: they keep their room until it lets
 * them go, or gives them up
 *
 * What becomes of them is the daemon's (scheduler/daemon/prebind.c, bh_sched_binding_over).
 * Upstream: pkg/scheduler/schedule_one.go (WaitOnPermit)
 */
#include "scheduler/framework/waiting.h"
#include "simulator/offline/offline_int.h"

#define PLUGINS_MAX 8u

struct bh_offline_waiter {
    struct bh_pod_rec *pod; /* our copy */
    bh_shape_id shape;      /* one reference */
    bh_sym node;
    struct bh_waiting_pod *waiting; /* the engine's */
    uint64_t took_ns;               /* until it began to wait */
};

static struct bh_str uid_of(const struct bh_offline_waiter *x)
{
    return bh_rec_text(x->pod, x->pod->uid);
}

static struct bh_pending pending_of(const struct bh_offline_waiter *x)
{
    return (struct bh_pending){.pod = x->pod, .shape = x->shape};
}

/* Where nothing happens for the mere passing of time, no plugin gives up for it either. */
static int64_t moment(const struct bh_offline *w)
{
    return w->o.events_only ? w->o.now_ns : w->now_ns;
}

/* ---- who waits ------------------------------------------------------------------------------- */

static void tell_waits(struct bh_offline *w, const struct bh_offline_waiter *x,
                       const struct bh_pending *p)
{
    const char *plugins[PLUGINS_MAX];
    BH_CLEANUP(bh_buf_fini) struct bh_buf names = {0};
    int64_t until_ns;
    uint32_t n;

    if (!w->o.hooks.waits)
        return;
    n = bh_waiting_for(x->waiting, plugins, PLUGINS_MAX, &until_ns);
    for (uint32_t i = 0; i < n; i++)
        bh_buf_addf(&names, "%s%s", i ? ", " : "", plugins[i]);
    w->o.hooks.waits(w->o.hooks.arg, p, x->node, bh_buf_str(&names));
}

void bh_offline_wait(struct bh_offline *w, const struct bh_pending *p, bh_sym node, bh_sym promised,
                     uint64_t began)
{
    struct bh_offline_waiter *x = bh_calloc(1, sizeof *x);
    const struct bh_shape_rec *shape = bh_engine_shape_rec(w->engine, p->shape);
    const char *plugin, *text;

    *x = (struct bh_offline_waiter){
        .pod = bh_memdup(p->pod, p->pod->h.size),
        .shape = bh_engine_shape(w->engine, shape),
        .node = node,
        .waiting = bh_engine_waiting(w->engine, bh_rec_text(p->pod, p->pod->uid)),
        .took_ns = w->o.timer() - began};
    BH_GROW(w->waiting, w->n_waiting, w->cap_waiting);
    w->waiting[w->n_waiting++] = x;
    bh_engine_unnominate(w->engine, uid_of(x));
    if (promised != BH_SYM_NONE && promised != node)
        bh_offline_promise_over(w, p, promised);
    bh_queue_waiting(w->queue, bh_queue_pod(w->queue, uid_of(x)));
    /* the timers begin */
    (void)bh_engine_permit_verdict(w->engine, x->waiting, moment(w), &plugin, &text);
    tell_waits(w, x, p);
}

static struct bh_offline_waiter *take(struct bh_offline *w, uint32_t i)
{
    struct bh_offline_waiter *x = w->waiting[i];

    bh_engine_permit_over(w->engine, bh_take_ptr(x->waiting));
    w->n_waiting--;
    memmove(&w->waiting[i], &w->waiting[i + 1], (w->n_waiting - i) * sizeof(*w->waiting));
    return x;
}

static void drop(struct bh_offline *w, struct bh_offline_waiter *x)
{
    bh_engine_shape_unref(w->engine, x->shape);
    free(x->pod);
    free(x);
}

static struct bh_offline_waiter *take_uid(struct bh_offline *w, struct bh_str uid)
{
    for (uint32_t i = 0; i < w->n_waiting; i++) {
        const struct bh_str it = uid_of(w->waiting[i]);
        if (it.n == uid.n && memcmp(it.p, uid.p, uid.n) == 0)
            return take(w, i);
    }
    return NULL;
}

void bh_offline_wait_over(struct bh_offline *w, struct bh_str uid)
{
    struct bh_offline_waiter *x = take_uid(w, uid);

    if (x)
        drop(w, x);
}

void bh_offline_waiting_fini(struct bh_offline *w)
{
    while (w->n_waiting)
        drop(w, take(w, w->n_waiting - 1));
    free(w->waiting);
    bh_map_fini(&w->gave_back);
}

/* ---- and how it ends ------------------------------------------------------------------------- */

static void go_on(struct bh_offline *w, struct bh_offline_waiter *x)
{
    const struct bh_pending p = pending_of(x);

    bh_queue_binding(w->queue, bh_queue_pod(w->queue, uid_of(x)));
    bh_offline_placed(w, &p, x->node, BH_SYM_NONE, w->o.timer() - x->took_ns);
    drop(w, x);
}

/* With events_only time passes for pods that are held back when something has happened. Two groups that
 * take each other's room would make things happen for ever: what a pod gives back counts once. */
static void give_room(struct bh_offline *w, const struct bh_offline_waiter *x)
{
    const struct bh_str uid = uid_of(x);
    const uint64_t before = w->events;

    x->pod->node = x->node;
    bh_offline_tell_room(w, x->pod, bh_engine_shape_rec(w->engine, x->shape), true);
    if (!w->o.events_only)
        return;
    if (!w->held)
        w->held_events = before;
    w->held = true;
    if (bh_map_get(&w->gave_back, uid.p, uid.n))
        w->held_events += w->events - before;
    (void)bh_map_put(&w->gave_back, uid.p, uid.n, w);
}

/* plugin NULL: a pod of higher priority has taken its room, which is no plugin's rejection. */
static void reject(struct bh_offline *w, struct bh_offline_waiter *x, const char *plugin,
                   const char *text)
{
    const struct bh_pending p = pending_of(x);
    const struct bh_decision d = {.kind = plugin ? BH_NO_FIT : BH_DECISION_ERROR,
                                  .reason = "Unschedulable",
                                  .message = text,
                                  .unschedulable_plugins = &plugin,
                                  .n_unschedulable_plugins = plugin != NULL,
                                  .clear_nomination = true};

    bh_offline_give_back(w, &p, x->node);
    bh_offline_rejected(w, &p, &d, w->o.timer() - x->took_ns);
    give_room(w, x);
    drop(w, x);
}

bool bh_offline_preempt_waiting(struct bh_offline *w, struct bh_str uid)
{
    struct bh_offline_waiter *x = take_uid(w, uid);

    if (x)
        reject(w, x, NULL, "waiting on permit for pod: preempted");
    return x;
}

/* The text is copied before the pod waits no more. */
static void rejected(struct bh_offline *w, uint32_t i, const char *plugin, const char *text)
{
    BH_CLEANUP(bh_freep) char *by = bh_strdup(plugin);
    BH_CLEANUP(bh_freep)
    char *message = bh_asprintf("0/1 nodes are available: 1 %s.", text);

    reject(w, take(w, i), by, message);
}

/* Which is no plugin's rejection. */
static void fail(struct bh_offline *w, uint32_t i, const char *text)
{
    BH_CLEANUP(bh_freep) char *message = bh_strdup(text);

    reject(w, take(w, i), NULL, message);
}

bool bh_offline_look_at_waiting(struct bh_offline *w)
{
    const char *plugin, *text;
    bool any = false;

    for (uint32_t i = 0; i < w->n_waiting;) {
        switch (bh_engine_permit_verdict(w->engine, w->waiting[i]->waiting, moment(w), &plugin,
                                         &text)) {
        case BH_PERMIT_WAITS:
            i++;
            continue;
        case BH_PERMIT_REJECTED:
            rejected(w, i, plugin, text);
            break;
        case BH_PERMIT_FAILED:
            fail(w, i, text);
            break;
        case BH_PERMIT_ALLOWED:
            go_on(w, take(w, i));
            break;
        }
        any = true; /* others may have gone with it, or follow from it */
        i = 0;
    }
    return any;
}

int64_t bh_offline_waiting_due(const struct bh_offline *w)
{
    int64_t due = INT64_MAX, until_ns;
    const char *plugin;

    for (uint32_t i = 0; i < w->n_waiting; i++) {
        (void)bh_waiting_for(w->waiting[i]->waiting, &plugin, 1, &until_ns);
        due = BH_MIN(due, until_ns ? until_ns : w->now_ns);
    }
    return due;
}
