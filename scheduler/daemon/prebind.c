/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/prebind.c - pods between Reserve and Bind
 */
#include <errno.h>

#include "common/base/log.h"
#include "common/k8s/codec.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/daemon/daemon.h"
#include "scheduler/native/native.h"

#define LOOK_EVERY_NS  UINT64_C(20000000)   /* when objects change, and at Permit */
#define CHECK_EVERY_NS UINT64_C(1000000000) /* as upstream: without a change too */
#define LOOKS_MAX      512u                 /* pods in one turn */

enum phase { PERMIT, WRITES, CHECKS, UNDO };
struct bh_prebind {
    TAILQ_ENTRY(bh_prebind) link;
    struct bh_pod_state *state; /* held */
    struct bh_pod_rec *pod;     /* a copy */
    bh_shape_id shape;
    bh_sym node; /* NONE: PostFilter's writes */
    enum phase phase;
    uint32_t next;    /* of the reservation's writes, or of undo */
    uint64_t work_id; /* in the ledger; 0 = none */
    int64_t since_ns; /* PERMIT: it waits; CHECKS: the last write was done */
    int64_t began_ns; /* the first write; 0 = not yet */
    uint64_t looked_ns;
    bool told_wait;    /* that devices are not ready yet */
    enum bh_over over; /* 0: goes on */
    char *plugin, *text;
    struct bh_work **undo; /* not in the ledger yet from next on */
    uint32_t n_undo;
};

static struct bh_str uid_of(const struct bh_prebind *b)
{
    return bh_pod_uid(b->state);
}

static struct bh_pending pending_of(const struct bh_prebind *b)
{
    return (struct bh_pending){.pod = b->pod, .shape = b->shape};
}

bh_sym bh_sched_prebind_node(const struct bh_pod_state *s)
{
    return s->prebind ? s->prebind->node : BH_SYM_NONE;
}

/* ---- life ------------------------------------------------------------------------------------ */

static struct bh_prebind *enter(struct bh_sched_daemon *d, const struct bh_queued_pod *p,
                                bh_sym node, enum phase phase)
{
    struct bh_prebind *b = bh_calloc(1, sizeof(*b));

    bh_assert(!p->pod->prebind);
    b->state = bh_pod_hold(p->pod);
    b->state->prebind = b;
    b->pod = bh_memdup(p->pending.pod, p->pending.pod->h.size);
    b->shape = bh_engine_shape(d->engine, bh_engine_shape_rec(d->engine, p->pending.shape));
    b->node = node;
    b->phase = phase;
    b->since_ns = bh_sched_now(d);
    d->prebinds.n++;
    TAILQ_INSERT_TAIL(&d->prebinds.list, b, link);
    return b;
}

static void leave(struct bh_sched_daemon *d, struct bh_prebind *b)
{
    bh_engine_permit_over(d->engine, bh_take_ptr(b->state->waiting));
    b->state->prebind = NULL;
    bh_pod_drop(b->state);
    d->prebinds.n--;
    TAILQ_REMOVE(&d->prebinds.list, b, link);
    bh_engine_shape_unref(d->engine, b->shape);
    for (uint32_t i = b->next; b->phase == UNDO && i < b->n_undo; i++)
        bh_work_free(b->undo[i]);
    free(b->undo);
    free(b->plugin);
    free(b->text);
    free(b->pod);
    free(b);
}

void bh_sched_prebind_fini(struct bh_sched_daemon *d)
{
    while (d->engine && !TAILQ_EMPTY(&d->prebinds.list))
        leave(d, TAILQ_FIRST(&d->prebinds.list));
}

/* ---- one write ------------------------------------------------------------------------------- */

static struct bh_work *item_of(const struct bh_prebind *b, const struct bh_write *w)
{
    const struct bh_pod_rec *pod = b->pod;
    Berth__WorkKind kind =
        (Berth__WorkKind)((int)BERTH__WORK_KIND__WORK_VOLUME_CLAIM + (int)w->what);
    struct bh_work *item =
        bh_work_for(kind, bh_rec_text(pod, pod->namespace_), bh_rec_text(pod, pod->name), b->state);

    bh_work_write(item, w);
    return item;
}

_Static_assert((int)BH_WRITE_SELECTED_NODE == BERTH__WORK_KIND__WORK_SELECTED_NODE - 4 &&
                   (int)BH_WRITE_ALLOCATION == BERTH__WORK_KIND__WORK_ALLOCATION - 4 &&
                   (int)BH_WRITE_RESERVATION == BERTH__WORK_KIND__WORK_RESERVATION - 4 &&
                   (int)BH_WRITE_NEW_CLAIM == BERTH__WORK_KIND__WORK_NEW_CLAIM - 4 &&
                   (int)BH_WRITE_DEALLOCATION == BERTH__WORK_KIND__WORK_DEALLOCATION - 4 &&
                   (int)BH_WRITE_DELETE_CLAIM == BERTH__WORK_KIND__WORK_DELETE_CLAIM - 4 &&
                   (int)BH_WRITE_UNRESERVATION == BERTH__WORK_KIND__WORK_UNRESERVATION - 4 &&
                   (int)BH_WRITE_PATCH == BERTH__WORK_KIND__WORK_PATCH - 4,
               "writes have the same numbers on the bus, from 4 on");

static void send_out(struct bh_sched_daemon *d, struct bh_prebind *b, struct bh_work *item)
{
    (void)bh_ledger_add(d->ledger, item);
    b->work_id = item->item.id;
}

/* ---- undo ------------------------------------------------------------------------------------ */

/* Another client bound the pod: no pod goes from a node that would tell of what is free again. */
static void give_back(struct bh_sched_daemon *d, const struct bh_prebind *b)
{
    const struct bh_pending p = pending_of(b);
    BH_CLEANUP(bh_freep) struct bh_pod_rec *pod = bh_memdup(b->pod, b->pod->h.size);

    pod->node = b->node;
    bh_engine_unreserve(d->engine, &p, b->node);
    bh_sched_tell_room(d, pod, b->shape, true);
}

/* Everything is undone at the API server: Unreserve, and the pod comes back by upstream's rules. */
static void conclude(struct bh_sched_daemon *d, struct bh_prebind *b)
{
    const struct bh_pending p = pending_of(b);
    BH_CLEANUP(bh_pod_dropp) struct bh_pod_state *s = bh_pod_hold(b->state);
    BH_CLEANUP(bh_freep) char *plugin = bh_take_ptr(b->plugin);
    BH_CLEANUP(bh_freep) char *text = bh_take_ptr(b->text);
    enum bh_over over = b->over;
    bool aside = b->node == BH_SYM_NONE;

    if (over == BH_OVER_ELSEWHERE)
        give_back(d, b);
    else if (!aside)
        bh_engine_unreserve(d->engine, &p, b->node);
    leave(d, b);
    if (!aside)
        bh_sched_binding_over(d, s, over, plugin ? plugin : "", text ? text : "");
}

static void undo_next(struct bh_sched_daemon *d, struct bh_prebind *b)
{
    while (b->next < b->n_undo) {
        struct bh_work *item = b->undo[b->next++];
        if (!bh_work_unfit(item)) {
            send_out(d, b, item);
            return;
        }
        bh_work_free(item); /* it was not written either */
    }
    conclude(d, b);
}

static void list_undo(struct bh_prebind *b, const struct bh_write *v, uint32_t n)
{
    b->phase = UNDO;
    b->next = 0;
    b->n_undo = n;
    b->undo = bh_calloc(n ? n : 1, sizeof(struct bh_work *));
    for (uint32_t i = 0; i < n; i++)
        b->undo[i] = item_of(b, &v[i]);
}

static void undo(struct bh_sched_daemon *d, struct bh_prebind *b)
{
    const struct bh_pending p = pending_of(b);
    const struct bh_write *v = NULL;
    uint32_t n = 0;

    if (b->over != BH_OVER_RECALLED && b->over != BH_OVER_ELSEWHERE)
        v = bh_engine_undo_work(d->engine, &p, &n);
    list_undo(b, v, v ? n : 0);
    undo_next(d, b);
}

/* The first reason counts, but a pod that is gone does not come back. */
static void end(struct bh_sched_daemon *d, struct bh_prebind *b, enum bh_over how,
                const char *plugin, const char *text)
{
    struct bh_work *w = b->work_id ? bh_ledger_find(d->ledger, b->work_id) : NULL;

    if (b->phase == PERMIT)
        bh_sched_count_permit(
            d, how == BH_OVER_REJECTED || how == BH_OVER_GONE ? "Unschedulable" : "Error",
            bh_sched_now(d) - b->since_ns);
    if (how == BH_OVER_GONE || how == BH_OVER_RECALLED || !b->over) {
        b->over = b->over == BH_OVER_GONE ? BH_OVER_GONE : how;
        free(b->plugin);
        free(b->text);
        b->plugin = bh_strdup(plugin);
        b->text = bh_strdup(text);
    }
    if (b->phase == UNDO)
        return;
    if (w && !w->binder && !w->item.attempt) { /* no binder has seen it */
        bh_ledger_finish(d->ledger, w);
        b->work_id = 0;
    }
    if (!b->work_id)
        undo(d, b);
}

/* ---- forward --------------------------------------------------------------------------------- */

static void count(struct bh_sched_daemon *d, const struct bh_prebind *b, bool failed,
                  const char *text)
{
    const struct bh_pending p = pending_of(b);
    int64_t now = bh_sched_now(d);

    bh_sched_count_prebind(d, &p, failed, text, now - b->began_ns,
                           b->phase == CHECKS ? now - b->since_ns : -1);
}

static void write_next(struct bh_sched_daemon *d, struct bh_prebind *b);

/* A PreBind plugin wants something written that Reserve did not know of. */
static bool has_more(const struct bh_sched_daemon *d, const struct bh_prebind *b)
{
    uint32_t n;

    (void)bh_engine_prebind_work(d->engine, uid_of(b), &n);
    return b->next < n;
}

static void check(struct bh_sched_daemon *d, struct bh_prebind *b)
{
    const struct bh_pending p = pending_of(b);
    const struct bh_queued_pod *queued = b->state->queued;
    const char *text;

    b->looked_ns = bh_mono_ns();
    const enum bh_prebind_state said =
        bh_engine_prebind_check(d->engine, &p, b->node, b->since_ns, bh_sched_now(d), &text);
    switch (said) {
    case BH_PREBIND_WAITS:
        if (has_more(d, b)) {
            b->phase = WRITES;
            write_next(d, b);
            return;
        }
        if (queued && !b->told_wait && bh_streq(text, "DynamicResources"))
            bh_sched_say_waits(d, queued, b->node);
        b->told_wait |= bh_streq(text, "DynamicResources");
        return;
    case BH_PREBIND_FAILED:
    case BH_PREBIND_REFUSED:
        count(d, b, true, text);
        end(d, b, said == BH_PREBIND_FAILED ? BH_OVER_ERROR : BH_OVER_REFUSED, "", text);
        return;
    case BH_PREBIND_READY:
        count(d, b, false, "");
        break;
    }
    const bh_sym node = b->node;
    if (!queued)
        bh_engine_unreserve(d->engine, &p, node);
    leave(d, b);
    if (queued)
        (void)bh_sched_send_bind(d, queued, node, false);
}

static void write_next(struct bh_sched_daemon *d, struct bh_prebind *b)
{
    uint32_t n;
    const struct bh_write *v = bh_engine_prebind_work(d->engine, uid_of(b), &n);

    if (!b->began_ns)
        b->began_ns = bh_sched_now(d);
    if (v && b->next < n) {
        struct bh_work *item = item_of(b, &v[b->next]);
        const char *why = bh_work_unfit(item), *plugin = v[b->next].plugin;
        if (!why) {
            send_out(d, b, item);
            return;
        }
        bh_work_free(item);
        BH_CLEANUP(bh_freep)
        char *text = plugin ? bh_asprintf("running PreBind plugin \"%s\": what it wants written "
                                          "cannot be sent: %s",
                                          plugin, why)
                            : bh_strdup("an object that the pod needs is too large to be written");
        end(d, b, BH_OVER_ERROR, "", text);
        return;
    }
    b->phase = CHECKS;
    b->since_ns = bh_sched_now(d);
    check(d, b);
}

static void look_at_permit(struct bh_sched_daemon *d, struct bh_prebind *b)
{
    int64_t now = bh_sched_now(d);
    const char *plugin, *text;

    b->looked_ns = bh_mono_ns();
    switch (bh_engine_permit_verdict(d->engine, b->state->waiting, now, &plugin, &text)) {
    case BH_PERMIT_WAITS:
        break;
    case BH_PERMIT_REJECTED:
        end(d, b, BH_OVER_REJECTED, plugin, text);
        break;
    case BH_PERMIT_FAILED:
        end(d, b, BH_OVER_ERROR, "", text);
        break;
    case BH_PERMIT_ALLOWED:
        bh_sched_count_permit(d, "Success", now - b->since_ns);
        bh_queue_binding(d->queue, b->state);
        b->phase = WRITES;
        write_next(d, b);
        break;
    }
}

bool bh_sched_prebind_begin(struct bh_sched_daemon *d, const struct bh_queued_pod *p, bh_sym node,
                            bool waits)
{
    uint32_t n;

    (void)bh_engine_prebind_work(d->engine, bh_pod_uid(p->pod), &n);
    if (!waits && !n && !bh_engine_prebind_due(d->engine, &p->pending))
        return false;
    struct bh_prebind *b = enter(d, p, node, waits ? PERMIT : WRITES);
    bh_sched_tell_node(d, p, node);
    if (waits) {
        p->pod->waiting = bh_engine_waiting(d->engine, uid_of(b));
        bh_queue_waiting(d->queue, p->pod);
        look_at_permit(d, b); /* starts the timers */
    } else {
        bh_queue_binding(d->queue, p->pod);
        write_next(d, b);
    }
    return true;
}

void bh_sched_prebind_aside(struct bh_sched_daemon *d, const struct bh_queued_pod *p,
                            const struct bh_write *v, uint32_t n)
{
    struct bh_prebind *b = enter(d, p, BH_SYM_NONE, UNDO);

    list_undo(b, v, n);
    undo_next(d, b);
}

void bh_sched_prebind_turn(struct bh_sched_daemon *d)
{
    struct bh_prebinds *all = &d->prebinds;
    uint64_t now = bh_mono_ns();
    struct bh_prebind *b, *next, *last = TAILQ_LAST(&all->list, bh_prebind_list);
    unsigned looks = 0;

    if (!last || now - all->looked_ns < LOOK_EVERY_NS || !bh_sched_may_decide(d))
        return;
    uint64_t version = bh_engine_claims_version(d->engine);
    all->looked_ns = now;
    bh_native_check_processes(); /* pods that wait for one that ended fail */
    for (b = TAILQ_FIRST(&all->list); b && looks < LOOKS_MAX; b = next, looks++) {
        bool was_last = b == last;
        next = TAILQ_NEXT(b, link);
        TAILQ_REMOVE(&all->list, b, link);
        TAILQ_INSERT_TAIL(&all->list, b, link);
        if (b->phase == PERMIT)
            look_at_permit(d, b);
        else if (b->phase == CHECKS && !b->over &&
                 (version != all->version || now - b->looked_ns >= CHECK_EVERY_NS))
            check(d, b);
        if (was_last) {
            all->version = version; /* every one has seen it */
            break;
        }
    }
}

/* ---- from outside ---------------------------------------------------------------------------- */

void bh_sched_unwind(struct bh_sched_daemon *d, const struct bh_queued_pod *p, bh_sym node,
                     enum bh_over how, const char *plugin, const char *text)
{
    struct bh_prebind *b = p->pod->prebind;

    if (!b)
        b = enter(d, p, node, CHECKS);
    end(d, b, how, plugin, text);
}

bool bh_sched_prebind_gone(struct bh_sched_daemon *d, struct bh_pod_state *s)
{
    struct bh_prebind *b = s->prebind;

    if (!b || b->node == BH_SYM_NONE)
        return false;
    end(d, b, BH_OVER_GONE, "", "");
    return true;
}

bool bh_sched_prebind_preempt(struct bh_sched_daemon *d, struct bh_str uid)
{
    const struct bh_pod_state *s = bh_pods_find(d->pods, uid);
    struct bh_prebind *b = s ? s->prebind : NULL;

    if (!b || b->node == BH_SYM_NONE || b->over == BH_OVER_ELSEWHERE)
        return false;
    end(d, b, BH_OVER_ERROR, "",
        b->phase == PERMIT ? "waiting on permit for pod: preempted"
                           : "preempted by DefaultPreemption");
    return true;
}

void bh_sched_prebind_drop(struct bh_sched_daemon *d, struct bh_pod_state *s)
{
    struct bh_prebind *b = s->prebind;

    if (!b)
        return;
    if (b->phase == WRITES && b->work_id) { /* what it reserved may be written in this moment */
        b->over = 0;
        end(d, b, BH_OVER_ELSEWHERE, "", "");
        return;
    }
    if (b->node != BH_SYM_NONE)
        give_back(d, b);
    leave(d, b);
}

bool bh_sched_prebind_rejoin(struct bh_sched_daemon *d, const struct bh_queued_pod *p)
{
    const struct bh_prebind *b = p->pod->prebind;

    if (!b)
        return false;
    if (b->node == BH_SYM_NONE || b->over == BH_OVER_GONE) {
        bh_queue_return(d->queue, p->pod, NULL, 0, NULL, 0, bh_sched_now(d));
        return true;
    }
    (void)bh_engine_assume(d->engine, &p->pending, b->node);
    if (b->phase == PERMIT)
        bh_queue_waiting(d->queue, p->pod);
    else
        bh_queue_binding(d->queue, p->pod);
    return true;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void log_refusal(const struct bh_work *w, const Berth__WorkResult *r)
{
    bh_log_warn("Write was refused", bh_kv_i("kind", w->item.kind),
                bh_kv_s("namespace", w->item.namespace_), bh_kv_s("pod", w->item.name),
                bh_kv_s("object", w->item.write->name), bh_kv_i("code", r->code),
                bh_kv_s("message", r->message));
}

static const char *writer(const struct bh_sched_daemon *d, const struct bh_prebind *b,
                          const struct bh_work *w)
{
    uint32_t n;
    const struct bh_write *v = bh_engine_prebind_work(d->engine, uid_of(b), &n);

    if (w->item.kind == BERTH__WORK_KIND__WORK_PATCH)
        return v && b->next < n && v[b->next].plugin ? v[b->next].plugin : "";
    return w->item.kind == BERTH__WORK_KIND__WORK_VOLUME_CLAIM ||
                   w->item.kind == BERTH__WORK_KIND__WORK_SELECTED_NODE
               ? "VolumeBinding"
               : "DynamicResources";
}

/* An object comes with a failure too, when some of the steps were done. */
static void written(struct bh_sched_daemon *d, struct bh_prebind *b, const struct bh_work *w,
                    const Berth__WorkResult *r)
{
    const bool patch = w->item.kind == BERTH__WORK_KIND__WORK_PATCH;
    bool done = r->outcome == BERTH__OUTCOME__OUTCOME_DONE;
    const char *why = r->message && *r->message ? r->message : "the write failed";
    struct bh_err err = {0};
    int rc = 0;

    if (w->item.kind == BERTH__WORK_KIND__WORK_NEW_CLAIM)
        bh_sched_count_claim_made(d, done || r->has_object);
    if (r->has_object && !patch)
        rc = bh_engine_prebind_written(d->engine, uid_of(b), b->next, r->object.data, r->object.len,
                                       &err);
    else if (done && !patch)
        rc = bh_err_set(&err, -EINVAL, "the binder did not say what it wrote");
    if (b->over) {
        undo(d, b);
    } else if (!done || rc < 0) {
        BH_CLEANUP(bh_freep)
        char *text =
            bh_asprintf("running PreBind plugin \"%s\": %s", writer(d, b, w), done ? err.msg : why);
        log_refusal(w, r);
        count(d, b, true, text);
        end(d, b, BH_OVER_ERROR, "", text);
    } else {
        b->next++;
        write_next(d, b);
    }
}

void bh_sched_prebind_answered(struct bh_sched_daemon *d, struct bh_work *w,
                               const Berth__WorkResult *r)
{
    struct bh_prebind *b = w->pod->prebind;
    struct bh_cluster_event ev = {.object_changes = 0};

    if (!b || b->work_id != w->item.id) { /* bound by another hand meanwhile */
        if (r->outcome == BERTH__OUTCOME__OUTCOME_REJECTED)
            log_refusal(w, r);
        return;
    }
    b->work_id = 0;
    if (b->phase != UNDO) {
        written(d, b, w, r);
        return;
    }
    if (r->outcome != BERTH__OUTCOME__OUTCOME_DONE)
        log_refusal(w, r);
    else if (r->has_object && w->item.kind != BERTH__WORK_KIND__WORK_DELETE_CLAIM &&
             w->item.kind != BERTH__WORK_KIND__WORK_PATCH)
        (void)bh_engine_learn(d->engine, BH_KIND_RESOURCECLAIM, r->object.data, r->object.len,
                              false, &ev, NULL);
    undo_next(d, b);
    if (ev.object_changes)
        bh_queue_event(d->queue, &ev, bh_sched_now(d));
}

/* ---- the lease ------------------------------------------------------------------------------- */

static void recall(struct bh_sched_daemon *d, struct bh_prebind *b)
{
    b->work_id = 0;
    if (b->phase != UNDO) {
        end(d, b, BH_OVER_RECALLED, "", "");
        return;
    }
    b->over = b->over == BH_OVER_GONE ? BH_OVER_GONE : BH_OVER_RECALLED;
    for (; b->next < b->n_undo; b->next++)
        bh_work_free(b->undo[b->next]);
    conclude(d, b);
}

void bh_sched_prebind_recalled(struct bh_sched_daemon *d, struct bh_work *w)
{
    struct bh_prebind *b = w->pod->prebind;

    if (b && b->work_id == w->item.id)
        recall(d, b);
}

void bh_sched_prebind_end_term(struct bh_sched_daemon *d)
{
    struct bh_prebind *next;

    for (struct bh_prebind *b = TAILQ_FIRST(&d->prebinds.list); b; b = next) {
        next = TAILQ_NEXT(b, link);
        if (!b->work_id) /* the others end with their item */
            recall(d, b);
        else if (!b->over)
            b->over = BH_OVER_RECALLED;
    }
}
