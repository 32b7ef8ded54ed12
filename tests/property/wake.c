/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/property/wake.c - no lost wake-up: what waits in the queue could not be scheduled
 *
 * The real queue hears every event. After each change every pod that it hands out is decided, and
 * goes back with the plugins that rejected it (or, when it fits, as after an error, so that it
 * comes out again). Then whoever is left in the pool must really not fit, and whoever is gated be
 * gated.
 */
#include "common/base/buf.h"
#include "scheduler/queue/queue.h"
#include "tests/property/property.h"

#define STEP_NS INT64_C(30000000000) /* longer than any backoff */

/* Who rejected the pod last, for findings. */
static void remember(struct world *w, struct bh_str uid, const struct bh_decision *d)
{
    struct bh_buf b = {0};

    for (uint32_t i = 0; i < d->n_unschedulable_plugins; i++)
        bh_buf_addf(&b, "%s%s", i ? "," : "", d->unschedulable_plugins[i]);
    free(bh_map_put(&w->rejectors, uid.p, uid.n, bh_buf_take(&b)));
}

static const char *rejectors_of(const struct world *w, struct bh_str uid)
{
    const char *s = bh_map_get(&w->rejectors, uid.p, uid.n);
    return s ? s : "";
}

static const struct bh_decision *decide_queued(struct world *w, const struct bh_queued_pod *p)
{
    struct bh_str ns = bh_rec_text(p->pending.pod, p->pending.pod->namespace_);
    struct bh_str name = bh_rec_text(p->pending.pod, p->pending.pod->name);
    BH_CLEANUP(bh_freep) char *key = bh_asprintf("%s/%s", ns.p, name.p);
    const struct thing *t = find_pod(w, key);

    if (t && t->place == POD_PENDING)
        return decide(w, t, BH_NO_PREEMPTION);
    fail(w, "queue", "%s is in the queue and not pending", key);
    return bh_engine_schedule(w->w[MAIN].engine, &p->pending, BH_NO_PREEMPTION, w->w[MAIN].now_ns);
}

static void try_popped(struct world *w, struct bh_queued_pod *p)
{
    struct bh_str uid = bh_rec_text(p->pending.pod, p->pending.pod->uid);
    const struct bh_decision *d = decide_queued(w, p);

    w->n->woken++;
    remember(w, uid, d);
    if (d->kind == BH_NO_FIT)
        bh_queue_return(w->w[MAIN].queue, bh_queue_pod(w->w[MAIN].queue, uid),
                        d->unschedulable_plugins, d->n_unschedulable_plugins, d->pending_plugins,
                        d->n_pending_plugins, w->w[MAIN].now_ns);
    else
        bh_queue_return(w->w[MAIN].queue, bh_queue_pod(w->w[MAIN].queue, uid), NULL, 0, NULL, 0,
                        w->w[MAIN].now_ns);
}

struct sleeper {
    const struct bh_queued_pod *p;
    enum bh_queue_place place;
};
struct sleepers {
    struct sleeper v[1024];
    size_t n;
};

static bool collect(void *arg, const struct bh_queued_pod *p, enum bh_queue_place place)
{
    struct sleepers *s = arg;

    if ((place == BH_Q_UNSCHEDULABLE || place == BH_Q_GATED) && s->n < BH_ARRAY_LEN(s->v))
        s->v[s->n++] = (struct sleeper){p, place};
    return true;
}

static void check_sleeper(struct world *w, const struct sleeper *s)
{
    const struct bh_pending *p = &s->p->pending;
    struct bh_str name = bh_rec_text(p->pod, p->pod->name);
    const char *by = rejectors_of(w, bh_rec_text(p->pod, p->pod->uid));
    char kind[96];

    w->n->slept++;
    if (s->place == BH_Q_GATED) {
        if (!bh_engine_pre_enqueue(w->w[MAIN].engine, p))
            fail(w, "lost wake-up of a gated pod", "%.*s waits for nothing", (int)name.n, name.p);
        return;
    }
    const struct bh_decision *d = decide_queued(w, s->p);
    /* An assumed pod counts already, and whoever it helps hears of it when its binding is seen. */
    if (d->kind != BH_DECIDED || has_assumed(w))
        return;
    const char *node = bh_sym_text(bh_engine_symtab(w->w[MAIN].engine), d->node);
    snprintf(kind, sizeof kind, "lost wake-up by %s", by);
    fail(w, kind, "%.*s would fit on %s and was not woken; rejected by %s", (int)name.n, name.p,
         node, by);
}

bool wake_off;

void wake_check(struct world *w)
{
    struct sleepers *s = bh_calloc(1, sizeof *s);
    struct bh_queued_pod *p;
    uint64_t cursor = 0;

    w->w[MAIN].now_ns += STEP_NS;
    (void)bh_queue_tick(w->w[MAIN].queue, w->w[MAIN].now_ns);
    for (unsigned i = 0; i < 2000 && (p = bh_queue_pop(w->w[MAIN].queue, w->w[MAIN].now_ns)); i++)
        try_popped(w, p);
    if (!wake_off)
        (void)bh_queue_walk(w->w[MAIN].queue, &cursor, UINT32_MAX, collect, s);
    for (size_t i = 0; i < s->n && !failed(w); i++)
        check_sleeper(w, &s->v[i]);
    free(s);
}
