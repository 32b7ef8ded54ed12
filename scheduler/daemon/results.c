/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/results.c - what binders answer
 *
 * An answer counts once: its item leaves the ledger, and a second answer for the same id (from a
 * binder that was thought dead) finds nothing. An unknown outcome is repeated for the same node,
 * never decided anew. What was given out anew is refused by who has it now alone, and of a status,
 * or what else undoes later writes, only that one's answer counts.
 *
 * What becomes of a pod after its bind the watch says, never an answer: one that was refused for
 * whatever reason (404 too) goes back to the queue as long as the watcher shows it as pending, as
 * upstream's failure handler asks its cache; one that is bound stays assumed until the watch shows
 * it, and is looked at when that takes too long.
 */
#include "common/base/log.h"
#include "common/base/probe.h"
#include "scheduler/daemon/daemon.h"

#define LATE_MAX_NS    UINT64_C(1000000000) /* of an answer that waited for company */
#define GREET_EVERY_NS UINT64_C(100000000)
#define CROWD_LOG_NS   UINT64_C(60000000000)

/* ---- answers --------------------------------------------------------------------------------- */

void bh_sched_post_bind(struct bh_sched_daemon *d, struct bh_work *w)
{
    const struct bh_queued_pod *p = w->pod->queued;

    if (!p || w->told_bound)
        return;
    w->told_bound = true;
    if (!bh_engine_post_bind(d->engine, &p->pending, w->item.node))
        bh_sched_saw(d, w->item.event->reporting_controller, BH_SEEN_POST_BIND, BH_SUCCESS, 0);
}

/* The queue's entry stays until the watch shows the pod on its node, whichever comes first. */
void bh_sched_bound(struct bh_sched_daemon *d, struct bh_work *w)
{
    const struct bh_queued_pod *p = w->pod->queued;
    const bool assumed = bh_engine_is_assumed(d->engine, bh_pod_uid(w->pod));

    if (!w->item.look)
        bh_sched_record_outcome(d, w->decision, BH_OUTCOME_BOUND, "");
    if (p && !w->item.look) {
        bh_sched_count_bound(d, p, w->item.event->reporting_controller,
                             bh_sched_now(d) - (int64_t)w->late_ns,
                             (double)(bh_mono_ns() - w->queued_ns - w->late_ns) / 1e9);
        bh_sched_log_bound(p, w->item.node);
    }
    bh_sched_post_bind(d, w);
    if (p && assumed && !w->bound_seen) {
        bh_ledger_keep(d->ledger, w, bh_mono_ns() + d->timing.unseen_ns);
        return;
    }
    d->sweep_due |= assumed; /* no later message ends the assumption */
    bh_queue_done(d->queue, w->pod);
    bh_ledger_finish(d->ledger, w);
}

void bh_sched_bind_refused(struct bh_sched_daemon *d, struct bh_work *w, enum bh_over how,
                           const char *message)
{
    const struct bh_queued_pod *p = w->pod->queued;
    const uint64_t now = bh_boot_ns();

    if (p && !w->bound_seen && how != BH_OVER_ELSEWHERE && now < w->doubt_boot_ns) {
        bh_ledger_keep(d->ledger, w, bh_mono_ns() + (w->doubt_boot_ns - now));
        return; /* an earlier request may still bind it: it counts until that is over */
    }
    if (w->bound_seen) {
        if (p && how == BH_OVER_ELSEWHERE)
            bh_engine_unreserve(d->engine, &p->pending, bh_sym_internc(d->symtab, w->item.node));
        bh_sched_pod_gone(d, w->pod);
    } else {
        bh_sched_bind_failed(d, w, how, message);
    }
    bh_ledger_finish(d->ledger, w);
}

static void bind_result(struct bh_sched_daemon *d, struct bh_work *w, const Berth__WorkResult *r)
{
    BH_CLEANUP(bh_freep) char *text = NULL;
    uint64_t took;

    switch (r->outcome) {
    case BERTH__OUTCOME__OUTCOME_DONE:
        took = bh_mono_ns() - w->sent_ns;
        w->late_ns = BH_MIN(took - BH_MIN(r->latency_ns, took), LATE_MAX_NS);
        bh_sched_bound(d, w);
        break;
    case BERTH__OUTCOME__OUTCOME_BOUND_ELSEWHERE: /* the watch will tell */
        bh_log_info("The pod is on another node", bh_kv_s("namespace", w->item.namespace_),
                    bh_kv_s("pod", w->item.name), bh_kv_s("node", r->message));
        bh_sched_bind_refused(d, w, BH_OVER_ELSEWHERE, "");
        break;
    default:
        text = bh_asprintf("running Bind plugin \"%s\": %s", w->plugin ? w->plugin : "",
                           r->message ? r->message : "binding failed");
        bh_log_error("Binding failed", bh_kv_s("namespace", w->item.namespace_),
                     bh_kv_s("pod", w->item.name), bh_kv_s("node", w->item.node),
                     bh_kv_i("code", r->code), bh_kv_s("reason", r->reason),
                     bh_kv_s("message", r->message));
        bh_sched_bind_refused(d, w, BH_OVER_ERROR, text);
        break;
    }
}

/* No definite answer, or refused unseen. Only the binder that holds the item now can say so: for
 * any other it is out elsewhere already. */
static void on_unknown(struct bh_sched_daemon *d, struct bh_binder *b, struct bh_work *w,
                       Berth__Outcome o)
{
    if (w->binder != b)
        return;
    if (o == BERTH__OUTCOME__OUTCOME_STALE)
        b->window = 0; /* until its next hello: it knows a newer scheduler or term */
    if (w->item.kind == BERTH__WORK_KIND__WORK_EVENT) {
        bh_ledger_finish(d->ledger, w); /* events are the first thing to give up */
        return;
    }
    if (o == BERTH__OUTCOME__OUTCOME_UNKNOWN)
        bh_work_doubt(w, BH_INFLIGHT_REQUEST_NS);
    bh_ledger_retry(d->ledger, w);
}

struct bh_leaving {
    LIST_ENTRY(bh_leaving) link;
    char *victim; /* uid */
    struct bh_pod_state *preemptor;
    bool terminating; /* it is seen to: only a group waits on */
};

static void leaving_free(struct bh_leaving *l)
{
    LIST_REMOVE(l, link);
    free(l->victim);
    --*(l->terminating ? &l->preemptor->terminating : &l->preemptor->leaving);
    bh_pod_drop(l->preemptor);
    free(l);
}

/* Of a member that waits in the queue. */
static const struct bh_group *group_of(const struct bh_sched_daemon *d,
                                       const struct bh_pod_state *s)
{
    return s->queued ? bh_engine_group_of(d->engine, &s->queued->pending) : NULL;
}

static bool has_victims(const struct bh_pod_state *s)
{
    return s->terminating || bh_pod_evicts(s);
}

/* The last victim of a group is gone: it does not wait for its backoff, in which others would take the
 * freed resources and be evicted in turn. One member pulls in the others. */
static void retry_group(struct bh_sched_daemon *d, struct bh_pod_state *preemptor)
{
    const struct bh_group *g = group_of(d, preemptor);
    const struct bh_member *m;

    if (!g || has_victims(preemptor))
        return;
    TAILQ_FOREACH(m, &g->at[BH_MEMBER_UNSCHEDULED], link) {
        const struct bh_pod_state *s = bh_pods_find(d->pods, bh_member_uid(m));
        if (s && has_victims(s))
            return;
    }
    bh_queue_activate(d->queue, preemptor, bh_sched_now(d));
}

void bh_sched_eviction_over(struct bh_sched_daemon *d, struct bh_pod_state *preemptor)
{
    if (bh_pod_evicts(preemptor))
        return;
    bh_queue_release(d->queue, preemptor, bh_sched_now(d));
    for (struct bh_pod_state *s; (s = LIST_FIRST(&preemptor->followers));) {
        BH_CLEANUP(bh_pod_dropp) struct bh_pod_state *member = bh_pod_hold(s);
        bh_pod_follow(member, NULL);
        if (!bh_pod_evicts(member))
            bh_queue_release(d->queue, member, bh_sched_now(d));
    }
    retry_group(d, preemptor);
}

/* The victim terminates, or is gone. */
static void see_victim(struct bh_sched_daemon *d, struct bh_leaving *l)
{
    BH_CLEANUP(bh_pod_dropp) struct bh_pod_state *preemptor = bh_pod_hold(l->preemptor);

    if (bh_engine_find_pod(d->engine, bh_str_c(l->victim), NULL) && group_of(d, preemptor)) {
        l->terminating = true;
        preemptor->leaving--;
        preemptor->terminating++;
    } else {
        leaving_free(l);
    }
    bh_sched_eviction_over(d, preemptor);
}

void bh_sched_see_victims_off(struct bh_sched_daemon *d)
{
    for (struct bh_leaving *l = LIST_FIRST(&d->leaving), *next; l; l = next) {
        next = LIST_NEXT(l, link);
        if (l->terminating ? !bh_engine_find_pod(d->engine, bh_str_c(l->victim), NULL)
                           : !bh_engine_pod_stays(d->engine, bh_str_c(l->victim)))
            see_victim(d, l);
    }
}

void bh_sched_drop_leaving(struct bh_sched_daemon *d)
{
    for (struct bh_leaving *l = LIST_FIRST(&d->leaving), *next; l; l = next) {
        next = LIST_NEXT(l, link);
        leaving_free(l);
    }
}

/* One answer less to wait for. When something went wrong the preemptor tries again at once, as
 * upstream's does. */
static void eviction_answered(struct bh_sched_daemon *d, const char *victim,
                              struct bh_pod_state *preemptor, Berth__Outcome o)
{
    if (o == BERTH__OUTCOME__OUTCOME_DONE && bh_engine_pod_stays(d->engine, bh_str_c(victim))) {
        struct bh_leaving *l = bh_calloc(1, sizeof(*l));
        l->victim = bh_strdup(victim);
        l->preemptor = bh_pod_hold(preemptor);
        preemptor->leaving++;
        LIST_INSERT_HEAD(&d->leaving, l, link);
    }
    bh_sched_eviction_over(d, preemptor);
    if (o == BERTH__OUTCOME__OUTCOME_REJECTED)
        bh_queue_activate(d->queue, preemptor, bh_sched_now(d));
}

/* What was given out anew is refused by its own answer alone: who has it now may do it yet. What undoes
 * later writes, as a status, is done by that alone, too: until then it may be written over what waits
 * for its end; all other writes are safe to repeat, and done whoever did them. An earlier one was taken
 * long before this one was sent. */
static bool is_of_an_earlier(const struct bh_binder *b, const struct bh_work *w,
                             const Berth__WorkResult *r)
{
    if (!w->binder || !w->binder->used)
        return false;
    if (r->outcome == BERTH__OUTCOME__OUTCOME_DONE && !bh_work_undoes(w->item.kind))
        return false;
    return w->binder != b || r->latency_ns > bh_mono_ns() - w->sent_ns + LATE_MAX_NS;
}

static void on_result(struct bh_sched_daemon *d, struct bh_binder *b, const Berth__WorkResult *r)
{
    struct bh_work *w = r->epoch == d->epoch ? bh_ledger_find(d->ledger, r->id) : NULL;

    bh_sched_count_outcome(d, r->outcome);
    if (r->epoch != d->epoch) {
        bh_sched_adopt_answered(d, r);
        return;
    }
    if (!w || w->outside || is_of_an_earlier(b, w, r)) /* outside: no binder was given it */
        return;
    bh_probe_pod(written, bh_str_c(w->item.uid), r->outcome);
    if (r->outcome == BERTH__OUTCOME__OUTCOME_UNKNOWN ||
        r->outcome == BERTH__OUTCOME__OUTCOME_STALE) {
        on_unknown(d, b, w, r->outcome);
        return;
    }
    if (w->item.kind == BERTH__WORK_KIND__WORK_BIND) {
        bind_result(d, w, r);
        return;
    }
    if (w->item.write && !w->pod)
        bh_sched_tended(d, w, r);
    else if (w->item.write)
        bh_sched_prebind_answered(d, w, r);
    else if (r->outcome == BERTH__OUTCOME__OUTCOME_REJECTED) {
        bh_log_warn("Write was refused", bh_kv_i("kind", w->item.kind),
                    bh_kv_s("namespace", w->item.namespace_), bh_kv_s("pod", w->item.name),
                    bh_kv_i("code", r->code), bh_kv_s("message", r->message));
        if (w->item.kind == BERTH__WORK_KIND__WORK_PATCH_STATUS && w->pod->queued) /* tries again */
            bh_queue_told(w->pod, 0, w->pod->queued->pending.pod->nominated_node);
        d->group_refusals += w->item.kind == BERTH__WORK_KIND__WORK_GROUP_STATUS;
    }
    if (!w->on_behalf) {
        bh_ledger_finish(d->ledger, w);
        return;
    }
    BH_CLEANUP(bh_pod_dropp) struct bh_pod_state *preemptor = bh_pod_hold(w->on_behalf);
    BH_CLEANUP(bh_freep) char *victim = bh_strdup(w->item.uid);
    if (r->outcome == BERTH__OUTCOME__OUTCOME_REJECTED)
        bh_ledger_spare(d->ledger, preemptor);
    bh_ledger_finish(d->ledger, w);
    eviction_answered(d, victim, preemptor, r->outcome);
}

/* ---- binders --------------------------------------------------------------------------------- */

bool bh_sched_hello(struct bh_sched_daemon *d, const struct bh_binder *b)
{
    Berth__SchedulerHello h = BERTH__SCHEDULER_HELLO__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;

    h.has_epoch = true;
    h.epoch = d->epoch;
    e.scheduler_hello = &h;
    return bh_bus_send(d->binders, &b->peer, &e) == BH_BUS_OK;
}

/* Asks a binder for what it has on the wire; it gets work once it answered with our epoch. */
static void greet(struct bh_sched_daemon *d, struct bh_binder *b)
{
    uint64_t now = bh_mono_ns();

    if ((!b->hello_sent_ns || now - b->hello_sent_ns >= GREET_EVERY_NS) && bh_sched_hello(d, b))
        b->hello_sent_ns = now;
}

static void on_message(struct bh_sched_daemon *d, struct bh_binder *b, const Berth__Envelope *e)
{
    const Berth__BinderHello *h = e->binder_hello;

    if (h) {
        snprintf(b->name, sizeof(b->name), "%s", h->binder);
        if (h->epoch_seen != d->epoch) {
            bh_sched_adopt_reported(d, h);
            greet(d, b);
            return;
        }
        if (!b->greeted &&
            !bh_sched_hello(d, b)) /* what it has of us, it may have lost to another */
            return;                /* with its next hello */
        if (!b->greeted) {
            bh_log_info("Binder is here", bh_kv_s("binder", b->name), bh_kv_u("window", h->window));
            bh_sched_binder_heard(d, b->name, h->has_age_ns ? h->age_ns : UINT64_MAX);
        }
        b->greeted = true;
        b->window = h->window;
        bh_sched_binder_lives(d, b, h);
        return;
    }
    if (e->results) {
        for (size_t i = 0; i < e->results->n_result; i++)
            on_result(d, b, e->results->result[i]);
        if (e->results->has_window)
            b->window = e->results->window;
    }
    if (!b->greeted)
        greet(d, b);
}

/* ---- while a decision waits ------------------------------------------------------------------ */

/* A message that may change the engine and has to wait for the end of a decision. */
struct bh_letter {
    TAILQ_ENTRY(bh_letter) link;
    struct bh_arena arena;
    struct bh_peer peer;
    Berth__Envelope *e;
};

static void letter_free(struct bh_letter *l)
{
    bh_arena_fini(&l->arena);
    free(l);
}

/* False: nothing came. */
static bool receive_one(struct bh_sched_daemon *d)
{
    struct bh_letter *l = bh_calloc(1, sizeof(*l));
    struct bh_binder *b = NULL;

    bh_arena_init(&l->arena, 4u * BH_BUS_MAX_BYTES);
    enum bh_bus_outcome o = bh_bus_recv(d->binders, &l->arena, &l->peer, &l->e);
    if (o == BH_BUS_OK)
        b = bh_ledger_binder(d->ledger, &l->peer,
                             l->e->binder_hello ? l->e->binder_hello->binder : NULL, bh_mono_ns());
    const Berth__BinderHello *h = b ? l->e->binder_hello : NULL;
    if (b && !(h && h->epoch_seen == d->epoch && d->lease.term == d->in.lease_term)) {
        TAILQ_INSERT_TAIL(&d->letters, l, link);
        d->n_letters++;
        return true;
    }
    if (b) /* a sign of life: changes nothing but the ledger's list of binders */
        on_message(d, b, l->e);
    letter_free(l);
    return o != BH_BUS_EMPTY;
}

void bh_sched_receive_binders(struct bh_sched_daemon *d)
{
    while (d->n_letters < BH_LETTERS_MAX && receive_one(d))
        ;
}

void bh_sched_drop_letters(struct bh_sched_daemon *d)
{
    struct bh_letter *l;

    while ((l = TAILQ_FIRST(&d->letters))) {
        TAILQ_REMOVE(&d->letters, l, link);
        letter_free(l);
    }
}

unsigned bh_sched_drain_binders(struct bh_sched_daemon *d)
{
    unsigned n = 0;
    Berth__Envelope *e;

    for (struct bh_letter *l; (l = TAILQ_FIRST(&d->letters)); n++) {
        struct bh_binder *b = bh_ledger_binder(d->ledger, &l->peer, NULL, bh_mono_ns());
        TAILQ_REMOVE(&d->letters, l, link);
        d->n_letters--;
        if (b)
            on_message(d, b, l->e);
        letter_free(l);
    }
    for (; n < BH_TURN_MESSAGES; n++) {
        struct bh_peer peer;
        bh_arena_reset(&d->bus_arena);
        enum bh_bus_outcome o = bh_bus_recv(d->binders, &d->bus_arena, &peer, &e);
        if (o == BH_BUS_EMPTY)
            break;
        if (o != BH_BUS_OK)
            continue;
        struct bh_binder *b = bh_ledger_binder(
            d->ledger, &peer, e->binder_hello ? e->binder_hello->binder : NULL, bh_mono_ns());
        if (b) {
            on_message(d, b, e);
        } else if (!d->crowd_logged_ns || bh_mono_ns() - d->crowd_logged_ns >= CROWD_LOG_NS) {
            d->crowd_logged_ns = bh_mono_ns();
            bh_log_warn("Too many binders, ignoring one", bh_kv_u("max", BH_LEDGER_MAX_BINDERS));
        }
    }
    return n;
}
