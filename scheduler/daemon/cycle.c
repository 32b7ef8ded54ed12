/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/cycle.c - take a pod, decide, hand the write to a binder; and what a failure
 * does
 *
 * Upstream: pkg/scheduler/schedule_one.go (ScheduleOne, schedulingCycle, handleSchedulingFailure,
 * handleBindingCycleError); differences: the binding cycle is a work item of the ledger, and its
 * result a message.
 */
#include <inttypes.h>

#include "common/base/log.h"
#include "common/base/probe.h"
#include "scheduler/daemon/daemon.h"

#define NOTE_MAX 1024u /* bytes of an event's note, " ..." included */
#define CONDITION_MAX                                                                              \
    (32u << 10) /* bytes of a condition's message; the bus carries no more than 64 Ki */

uint64_t bh_sched_condition_hash(const char *reason, const char *message)
{
    uint64_t h = bh_hash(message, strlen(message), bh_hash(reason, strlen(reason), 0));

    return h ? h : 1;
}

static const char *profile_of(struct bh_sched_daemon *d, const struct bh_pending *p)
{
    return bh_sym_text(d->symtab, bh_engine_shape_rec(d->engine, p->shape)->scheduler_name);
}

static struct bh_work *work_for(Berth__WorkKind kind, const struct bh_queued_pod *p)
{
    const struct bh_pod_rec *rec = p->pending.pod;

    return bh_work_for(kind, bh_rec_text(rec, rec->namespace_), bh_rec_text(rec, rec->name),
                       p->pod);
}

static char *cut(const char *text, size_t max)
{
    return strlen(text) <= max ? bh_strdup(text) : bh_asprintf("%.*s ...", (int)(max - 4), text);
}

char *bh_sched_cut_condition(const char *message)
{
    return cut(message, CONDITION_MAX);
}

static void send_event(struct bh_sched_daemon *d, const struct bh_queued_pod *p, const char *type,
                       const char *reason, const char *note)
{
    struct bh_work *w = work_for(BERTH__WORK_KIND__WORK_EVENT, p);

    bh_work_event(w, type, reason, "Scheduling", cut(note, NOTE_MAX), profile_of(d, &p->pending),
                  p->resource_version);
    (void)bh_ledger_add(d->ledger, w);
}

static void failed_scheduling_event(struct bh_sched_daemon *d, const struct bh_queued_pod *p,
                                    const char *note)
{
    send_event(d, p, "Warning", "FailedScheduling", note);
}

/* A promise, or BH_SYM_NONE: the end of it. */
static void patch_nomination(struct bh_sched_daemon *d, const struct bh_queued_pod *p, bh_sym node)
{
    struct bh_work *w = work_for(BERTH__WORK_KIND__WORK_PATCH_STATUS, p);

    bh_work_nominate(w, bh_sym_text(d->symtab, node));
    bh_queue_told(p->pod, p->told_condition, node);
    (void)bh_ledger_add(d->ledger, w);
}

/* PodScheduled=False, and the nomination where it changes. The same text again is an event, no
 * patch. */
static void patch_condition(struct bh_sched_daemon *d, const struct bh_queued_pod *p,
                            const char *reason, const char *message, bool set_nominated,
                            bh_sym nominated)
{
    uint64_t told = p->told_condition, now = bh_sched_condition_hash(reason, message);

    set_nominated = set_nominated && nominated != p->told_nomination;
    if (told == now && !set_nominated)
        return;
    struct bh_work *w = work_for(BERTH__WORK_KIND__WORK_PATCH_STATUS, p);
    bh_sched_log_condition(p, reason);
    bh_work_condition(w, "PodScheduled", "False", reason, cut(message, CONDITION_MAX),
                      p->pending.pod->generation, !told);
    if (set_nominated)
        bh_work_nominate(w, bh_sym_text(d->symtab, nominated));
    bh_queue_told(p->pod, now, set_nominated ? nominated : p->told_nomination);
    (void)bh_ledger_add(d->ledger, w);
}

/* For whom: a pod, or a group of which this is one. */
struct preemptor {
    const struct bh_queued_pod *p;
    const char *kind; /* as conditions and notes say it */
    const char *node;
    const struct bh_object_ref *object;
};

/* A victim that is not bound yet is not deleted: it goes back to the queue. */
static void evict(struct bh_sched_daemon *d, const struct preemptor *by, const struct bh_victim *v,
                  bool last)
{
    bool memory = bh_sched_prebind_preempt(d, v->uid);
    struct bh_work *w =
        bh_work_new(memory ? BERTH__WORK_KIND__WORK_EVENT : BERTH__WORK_KIND__WORK_DELETE,
                    v->namespace_, v->name, v->uid);
    const char *profile = profile_of(d, &by->p->pending);
    char version[24] = "";

    w->item.node = bh_strdup(by->node);
    if (!memory) {
        bh_work_condition(
            w, "DisruptionTarget", "True", "PreemptionByScheduler",
            bh_asprintf("%s: preempting to accommodate a higher priority %s", profile, by->kind),
            v->generation, true);
        w->on_behalf = bh_pod_hold(by->p->pod);
        w->last = last;
    }
    if (v->resource_version)
        snprintf(version, sizeof(version), "%" PRIu64, v->resource_version);
    bh_work_event(w, "Normal", "Preempted", "Preempting",
                  bh_asprintf("Preempted by %s %.*s on node %s%s", by->kind, (int)by->object->uid.n,
                              by->object->uid.p, by->node,
                              memory ? " (in kube-scheduler memory)." : ""),
                  profile, v->resource_version ? version : NULL);
    bh_work_related(w, by->object);
    (void)bh_ledger_add(d->ledger, w);
}

struct nominated_below {
    struct bh_sched_daemon *d;
    int32_t priority;
};

static void withdraw(void *arg, const struct bh_nominated *n)
{
    const struct nominated_below *below = arg;
    const struct bh_queued_pod *p = n->at ? bh_pod_of(n->at)->queued : NULL;

    if (p && n->priority < below->priority && p->told_nomination != BH_SYM_NONE)
        patch_nomination(below->d, p, BH_SYM_NONE);
}

static uint32_t staying(const struct bh_victim *v, uint32_t n)
{
    uint32_t stay = 0;

    for (uint32_t i = 0; i < n; i++)
        stay += !v[i].terminating;
    return stay;
}

/* Victims that are terminating already are left alone; when there are no others, nothing is done at
 * all. The last one is deleted when all others were, and not if one of them could not be: the
 * preemptor then looks again. */
static void evict_all(struct bh_sched_daemon *d, const struct preemptor *by,
                      const struct bh_victim *v, uint32_t n)
{
    uint32_t left = staying(v, n);

    if (!left)
        return;
    for (uint32_t i = 0; i < n; i++)
        if (!v[i].terminating)
            evict(d, by, &v[i], --left == 0);
    bh_sched_count_preemption(d, n);
}

/* Pods of lower priority that were promised the node may look for another one. */
static void make_room(struct bh_sched_daemon *d, const struct bh_queued_pod *p,
                      const struct bh_decision *dec)
{
    struct nominated_below below = {d, bh_engine_shape_rec(d->engine, p->pending.shape)->priority};
    const struct bh_pod_rec *rec = p->pending.pod;
    const struct bh_object_ref object = {.kind = "Pod",
                                         .api_version = "v1",
                                         .resource_version = p->resource_version,
                                         .namespace_ = bh_rec_text(rec, rec->namespace_),
                                         .name = bh_rec_text(rec, rec->name),
                                         .uid = bh_pod_uid(p->pod)};
    const struct preemptor by = {p, "pod", bh_sym_text(d->symtab, dec->nominated_node), &object};

    if (staying(dec->victims, dec->n_victims))
        bh_engine_each_nominated(d->engine, dec->nominated_node, withdraw, &below);
    evict_all(d, &by, dec->victims, dec->n_victims);
}

void bh_sched_evict_for_group(struct bh_sched_daemon *d, const struct bh_queued_pod *lead,
                              const struct bh_object_ref *group, const struct bh_victim *v,
                              uint32_t n)
{
    /* They are on any nodes; upstream's events and conditions say this. */
    evict_all(d, &(struct preemptor){lead, "podgroup", "cluster", group}, v, n);
}

/* The records are copies: the queue may free what they were copied from. */
void bh_sched_tell_room(struct bh_sched_daemon *d, const struct bh_pod_rec *pod, bh_shape_id shape,
                        bool forget)
{
    const struct bh_shape_rec *rec = bh_engine_shape_rec(d->engine, shape);
    BH_CLEANUP(bh_freep) struct bh_pod_rec *old = bh_memdup(pod, pod->h.size);
    BH_CLEANUP(bh_freep) struct bh_shape_rec *old_shape = bh_memdup(rec, rec->h.size);
    const struct bh_cluster_event ev = {.resource = BH_EV_POD_ASSIGNED,
                                        .action = BH_EV_DELETE,
                                        .old_pod = old,
                                        .old_shape = old_shape,
                                        .was_assumed = forget};

    if (forget)
        (void)bh_engine_forget(d->engine, bh_rec_text(old, old->uid));
    bh_queue_event_up_to(d->queue, &ev, forget ? INT32_MAX : old_shape->priority, bh_sched_now(d));
}

/* The promise may be newer than the object. */
void bh_sched_tell_nominated_room(struct bh_sched_daemon *d, const struct bh_queued_pod *p,
                                  bh_sym node)
{
    BH_CLEANUP(bh_freep)
    struct bh_pod_rec *pod = bh_memdup(p->pending.pod, p->pending.pod->h.size);

    pod->nominated_node = node;
    bh_sched_tell_room(d, pod, p->pending.shape, false);
}

/* The pod did not get a node: back to the queue, told to users (scheduler-core.md 5.5). */
void bh_sched_failed(struct bh_sched_daemon *d, struct bh_queued_pod *p,
                     const struct bh_decision *dec)
{
    bool set_nominated = dec->clear_nomination || dec->nominated_node != BH_SYM_NONE;
    const bh_sym had = bh_engine_nominated_node(d->engine, bh_pod_uid(p->pod));

    bh_queue_say(p->pod, dec->reason, dec->message);
    failed_scheduling_event(d, p, dec->message);
    patch_condition(d, p, dec->reason, dec->message, set_nominated, dec->nominated_node);
    make_room(d, p, dec);
    if (dec->n_writes)
        bh_sched_prebind_aside(d, p, dec->writes, dec->n_writes);
    bh_queue_return(d->queue, p->pod, dec->unschedulable_plugins, dec->n_unschedulable_plugins,
                    dec->pending_plugins, dec->n_pending_plugins, bh_sched_now(d));
    if (!set_nominated)
        return;
    bh_engine_nominate(d->engine, &p->pending, dec->nominated_node);
    /* Where the API server never heard of it no update of the object tells of its end. */
    if (had != BH_SYM_NONE && had != dec->nominated_node && had != p->pending.pod->nominated_node)
        bh_sched_tell_nominated_room(d, p, had);
}

void bh_sched_say_waits(struct bh_sched_daemon *d, const struct bh_queued_pod *p, bh_sym node)
{
    BH_CLEANUP(bh_freep)
    char *note = bh_asprintf("waiting for binding conditions for device on node %s",
                             bh_sym_text(d->symtab, node));

    send_event(d, p, "Normal", "BindingConditionsPending", note);
}

void bh_sched_tell_node(struct bh_sched_daemon *d, const struct bh_queued_pod *p, bh_sym node)
{
    if (p->told_nomination != node &&
        bh_sched_config_gate(d->o.config, "NominatedNodeNameForExpectation"))
        patch_nomination(d, p, node);
}

/* Bind plugins have their say about w. false: none of them binds it; *ret_text is the caller's. */
static bool ask_bind(struct bh_sched_daemon *d, const struct bh_queued_pod *p, bh_sym node,
                     struct bh_work *w, enum bh_over *ret_how, char **ret_text)
{
    struct bh_bind_order order;
    const struct bh_status *s = bh_engine_bind(d->engine, &p->pending, node, &order);

    w->plugin = order.plugin;
    if (!s && !order.write)
        return true;
    if (!s) {
        bh_work_write(w, order.write);
        const char *why = bh_work_unfit(w);
        if (!why)
            return true;
        berth__object_write__free_unpacked(bh_take_ptr(w->item.write), NULL);
        *ret_how = BH_OVER_ERROR;
        *ret_text =
            bh_asprintf("running Bind plugin \"%s\": what it wants written cannot be sent: %s",
                        order.plugin, why);
        return false;
    }
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    *ret_how = bh_status_code(s) == BH_SKIP ? BH_OVER_SKIPPED
               : bh_status_rejected(s)      ? BH_OVER_REFUSED
                                            : BH_OVER_ERROR;
    *ret_text = bh_strdup(bh_status_message(&a, s));
    return false;
}

bool bh_sched_send_bind(struct bh_sched_daemon *d, const struct bh_queued_pod *p, bh_sym node,
                        bool adopted)
{
    BH_CLEANUP(bh_freep) char *text = NULL;
    enum bh_over how;
    bool asked = true;
    const struct bh_pod_rec *pod = p->pending.pod;
    const struct bh_bind_texts texts = {.pod = p->pod,
                                        .ns = bh_rec_text(pod, pod->namespace_),
                                        .name = bh_rec_text(pod, pod->name),
                                        .node = bh_sym_text(d->symtab, node),
                                        .controller = profile_of(d, &p->pending),
                                        .resource_version = p->resource_version};
    struct bh_work *w = bh_work_bind(&texts, NOTE_MAX);

    w->outside = bh_engine_extender_binds(d->engine, &p->pending);
    w->decision = p->decision;
    if (!w->outside)
        asked = ask_bind(d, p, node, w, &how, &text);
    if (asked || adopted) {
        (void)bh_ledger_add(d->ledger, w);
        return asked;
    }
    bh_work_free(w);
    bh_sched_unwind(d, p, node, how, "", text);
    return false;
}

void bh_sched_bind_inside(struct bh_sched_daemon *d, struct bh_work *w)
{
    const struct bh_queued_pod *p = w->pod->queued;
    BH_CLEANUP(bh_freep) char *text = NULL;
    enum bh_over how;

    if (!p || ask_bind(d, p, bh_sym_internc(d->symtab, w->item.node), w, &how, &text))
        bh_ledger_inside(d->ledger, w);
    else
        bh_sched_bind_refused(d, w, how, text);
}

static const struct bh_status *assume(struct bh_sched_daemon *d, const struct bh_pending *p,
                                      bh_sym node)
{
    static const char *const reason = "pod is in the cache, so can't be assumed";
    static const struct bh_status failed = {.code = BH_ERROR, .n_reasons = 1, .reasons = &reason};

    if (bh_engine_assume(d->engine, p, node) < 0)
        return &failed;
    bh_probe_pod(assume, bh_rec_text(p->pod, p->pod->uid), node);
    return NULL;
}

/* ---- what is kept of decisions (--record-decisions) ------------------------------------------- */

static void record_begin(struct bh_sched_daemon *d, struct bh_queued_pod *p,
                         const struct bh_decision *dec)
{
    const struct bh_pod_rec *rec = p->pending.pod;
    const struct bh_shape_rec *shape = bh_engine_shape_rec(d->engine, p->pending.shape);
    const struct bh_recorder_pod pod = {
        .namespace_ = bh_rec_text(rec, rec->namespace_),
        .name = bh_rec_text(rec, rec->name),
        .uid = bh_rec_text(rec, rec->uid),
        .profile = bh_sym_text(d->symtab, shape->scheduler_name),
        .trigger = bh_queue_trigger(d->queue, p),
        .attempt = p->attempts,
        .priority = shape->priority,
        .time_ns = p->popped_ns,
    };

    p->decision =
        bh_recorder_begin(d->recorder, d->engine, &pod, dec, bh_engine_took_ns(d->engine));
}

unsigned bh_sched_record_next(struct bh_sched_daemon *d, const struct bh_queued_pod *p)
{
    if (bh_likely(!d->recorder))
        return 0;
    bh_recorder_clear(d->recorder);
    return bh_recorder_next(d->recorder, p->attempts > 1) ? d->decide_flags : 0;
}

void bh_sched_record_whole(struct bh_sched_daemon *d, struct bh_queued_pod *p,
                           const struct bh_decision *dec)
{
    if (bh_likely(!d->recorder))
        return;
    record_begin(d, p, dec);
    bh_recorder_end(d->recorder, &(struct bh_record_after){0}, NULL);
    bh_recorder_clear(d->recorder);
}

/* What each plugin of a point said: all were asked up to the one whose status s is. */
static uint32_t steps_at(struct bh_sched_daemon *d, const struct bh_pending *p, enum bh_point at,
                         const struct bh_status *s, int64_t timeout_ns, struct bh_arena *a,
                         struct bh_record_step *ret)
{
    const char *names[BH_RECORD_STEPS];
    uint32_t n = bh_engine_plugins_at(d->engine, p, at, names, BH_RECORD_STEPS);

    for (uint32_t i = 0; i < n; i++) {
        bool said = s && s->plugin && bh_streq(s->plugin, names[i]);
        ret[i] = (struct bh_record_step){.plugin = names[i], .message = "success"};
        if (!said)
            continue;
        if (s->code == BH_WAIT) {
            ret[i].message = "wait";
            ret[i].timeout_ns = timeout_ns;
        } else {
            ret[i].message = bh_status_message(a, s);
            return i + 1;
        }
    }
    return n;
}

static void record_commit(struct bh_sched_daemon *d, const struct bh_pending *p, enum bh_point at,
                          const struct bh_status *s, int64_t timeout_ns,
                          const struct bh_decision *dec)
{
    struct bh_record_after after = {.overruled = dec != NULL};
    struct bh_arena a;

    if (bh_recorder_mode(d->recorder) != BH_RECORD_FULL) {
        bh_recorder_end(d->recorder, &after, dec);
        return;
    }
    bh_arena_init(&a, 0);
    after.n_reserve =
        steps_at(d, p, BH_POINT_RESERVE, at == BH_POINT_RESERVE ? s : NULL, 0, &a, after.reserve);
    if (at == BH_POINT_PERMIT)
        after.n_permit = steps_at(d, p, BH_POINT_PERMIT, s, timeout_ns, &a, after.permit);
    if (!dec) {
        after.n_pre_bind =
            bh_engine_plugins_at(d->engine, p, BH_POINT_PRE_BIND, after.pre_bind, BH_RECORD_STEPS);
        after.n_bind = bh_engine_plugins_at(d->engine, p, BH_POINT_BIND, after.bind, 1);
    }
    bh_recorder_end(d->recorder, &after, dec);
    bh_arena_fini(&a);
}

/* ---- one pod --------------------------------------------------------------------------------- */

/* What a pod got from Permit, or from what comes before it, and is assumed by then: the write is on its
 * way, or what has to come before it; or it is undone and failed. Returns the attempt's result for
 * metrics. */
static const char *after_permit(struct bh_sched_daemon *d, struct bh_queued_pod *p, bh_sym node,
                                enum bh_point at, const struct bh_status *s, int64_t timeout_ns,
                                bool assumed)
{
    struct bh_str uid = bh_pod_uid(p->pod);
    const char *profile = profile_of(d, &p->pending);
    bool waits = bh_status_code(s) == BH_WAIT;
    struct bh_decision dec;

    if (!s || waits) {
        if (bh_unlikely(p->decision))
            record_commit(d, &p->pending, at, s, timeout_ns, NULL);
        if (p->told_nomination != BH_SYM_NONE && p->told_nomination != node)
            bh_sched_tell_nominated_room(d, p,
                                         p->told_nomination); /* it was nominated to another */
        waits = bh_sched_prebind_begin(d, p, node, waits);
        bh_sched_saw(d, profile, BH_SEEN_PRE_FLIGHT, waits ? BH_SUCCESS : BH_SKIP, 0);
        if (waits)
            return "scheduled";
        bh_sched_saw(d, profile, BH_SEEN_PRE_BIND, BH_SUCCESS, 0); /* nothing to do */
        bh_queue_binding(d->queue, p->pod);
        return bh_sched_send_bind(d, p, node, false) ? "scheduled" : "error";
    }
    /* The texts are copied before anything is undone: undoing runs plugins, which reuse the memory the
     * status lives in. */
    bh_decide_refused(&d->text_arena, s, &dec);
    if (bh_unlikely(p->decision))
        record_commit(d, &p->pending, at, s, timeout_ns, &dec);
    if (assumed) {
        bh_engine_unreserve(d->engine, &p->pending, node);
        (void)bh_engine_forget(d->engine, uid);
    }
    bh_sched_failed(d, p, &dec);
    bh_arena_reset(&d->text_arena);
    return dec.n_unschedulable_plugins ? "unschedulable" : "error";
}

const char *bh_sched_go_on(struct bh_sched_daemon *d, struct bh_queued_pod *p, bh_sym node,
                           const struct bh_status *permit, int64_t timeout_ns)
{
    return after_permit(d, p, node, BH_POINT_PERMIT, permit, timeout_ns, true);
}

/* Assume, reserve, permit. */
static const char *commit(struct bh_sched_daemon *d, struct bh_queued_pod *p, bh_sym node)
{
    const struct bh_status *s = assume(d, &p->pending, node);
    bool assumed = !s;
    int64_t timeout_ns = 0;
    enum bh_point at = BH_POINT_RESERVE;

    if (!s)
        s = bh_engine_reserve(d->engine, &p->pending, node);
    if (!s) {
        at = BH_POINT_PERMIT;
        s = bh_engine_permit(d->engine, &p->pending, node, &timeout_ns);
    }
    return after_permit(d, p, node, at, s, timeout_ns, assumed);
}

/* Pods that need no decision (upstream's skipPodSchedule): being deleted, or on their node
 * already. */
static bool skip(struct bh_sched_daemon *d, const struct bh_queued_pod *p)
{
    if (p->pending.pod->flags & BH_POD_TERMINATING) {
        struct bh_str ns = bh_rec_text(p->pending.pod, p->pending.pod->namespace_);
        struct bh_str name = bh_rec_text(p->pending.pod, p->pending.pod->name);
        BH_CLEANUP(bh_freep)
        char *note = bh_asprintf("skip schedule deleting pod: %.*s/%.*s", (int)ns.n, ns.p,
                                 (int)name.n, name.p);
        failed_scheduling_event(d, p, note);
        bh_queue_done(d->queue, p->pod);
        return true;
    }
    const struct bh_known_pod on_node = bh_engine_known_pod(d->engine, bh_pod_uid(p->pod));
    if (!on_node.rec)
        return false;
    if (on_node.assumed)
        bh_queue_binding(d->queue, p->pod); /* the entry goes with its bind */
    else
        bh_queue_done(d->queue, p->pod);
    return true;
}

/* The pod came back while a bind of it is out, whose outcome is not known yet: the pod waits for
 * that on the same node. */
static bool rejoin(struct bh_sched_daemon *d, const struct bh_queued_pod *p)
{
    const struct bh_work *w = p->pod->bind;

    if (!w)
        return false;
    (void)bh_engine_assume(d->engine, &p->pending, bh_sym_internc(d->symtab, w->item.node));
    bh_queue_binding(d->queue, p->pod);
    return true;
}

bool bh_sched_skips(struct bh_sched_daemon *d, struct bh_queued_pod *p)
{
    return skip(d, p) || bh_sched_prebind_rejoin(d, p) || rejoin(d, p);
}

static void activate(void *arg, struct bh_str uid)
{
    struct bh_sched_daemon *d = arg;
    struct bh_pod_state *s = bh_pods_find(d->pods, uid);

    if (s)
        bh_queue_activate(d->queue, s, bh_sched_now(d));
}

unsigned bh_sched_activate(struct bh_sched_daemon *d)
{
    return bh_engine_activations(d->engine, activate, d);
}

static void one_cycle(struct bh_sched_daemon *d, struct bh_queued_pod *p)
{
    const char *profile = profile_of(d, &p->pending);
    const char *result = "error";

    if (bh_unlikely(p->pending.pod->group != BH_SYM_NONE) && bh_sched_group_cycle(d, p))
        return;
    p->decision = 0;
    if (bh_sched_skips(d, p))
        return;
    bh_sched_log_attempt(p);
    const unsigned flags = bh_sched_record_next(d, p);
    const struct bh_decision *dec =
        bh_engine_schedule(d->engine, &p->pending, flags, bh_sched_now(d));
    if (d->stopping) /* it was cut short: nothing it says is true */
        return;
    p->evaluated = dec->evaluated;
    p->feasible = dec->feasible;
    bh_probe_pod(decide, bh_rec_text(p->pending.pod, p->pending.pod->uid), dec->feasible);
    double took_s = (double)bh_engine_took_ns(d->engine) / 1e9;
    if (bh_unlikely(d->recorder))
        record_begin(d, p, dec);
    if (dec->kind == BH_DECIDED) {
        result = commit(d, p, dec->node);
        /* They are next, as upstream; after a failure, which may be repeated like that, the others of
         * the turn are. */
        if (bh_streq(result, "scheduled"))
            (void)bh_sched_activate(d);
    } else {
        if (dec->kind == BH_NO_FIT || bh_streq(dec->reason, "Unschedulable"))
            result = "unschedulable";
        bh_sched_log_no_fit(d, p, dec);
        if (bh_unlikely(d->recorder))
            bh_recorder_end(d->recorder, &(struct bh_record_after){0}, NULL);
        bh_sched_failed(d, p, dec);
    }
    bh_sched_count_attempt(d, result, profile, took_s);
}

unsigned bh_sched_cycles(struct bh_sched_daemon *d, unsigned max)
{
    bool slow = bh_engine_raw_needs(d->engine) != 0 || d->decide_flags;
    uint64_t until = slow ? bh_mono_ns() + BH_TURN_DECIDING_NS : 0;
    unsigned n = 0;

    if (!bh_sched_may_decide(d))
        return 0;
    for (; n < max && bh_ledger_binds(d->ledger) + d->prebinds.n < BH_LEDGER_MAX_BINDS; n++) {
        if (d->stopping || (slow && n && bh_mono_ns() > until))
            break;
        struct bh_queued_pod *p = bh_queue_pop(d->queue, bh_sched_now(d));
        if (!p)
            break;
        bh_probe_pod(pop, bh_rec_text(p->pending.pod, p->pending.pod->uid), p->attempts);
        one_cycle(d, p);
    }
    return n;
}

/* ---- pods that come, change and go ----------------------------------------------------------- */

/* The assumed pod leaves its node (upstream: handleBindingCycleError, handleAssumedPodDeletion). */
static bool unassume(struct bh_sched_daemon *d, struct bh_str uid)
{
    const struct bh_known_pod p = bh_engine_known_pod(d->engine, uid);

    if (!p.rec || !p.assumed)
        return false;
    bh_sched_tell_room(d, p.rec, p.shape, true);
    return true;
}

/* A Permit plugin said no: a rejection like one in the cycle, and only then the move event. Without
 * plugin: PreBind or Bind did, which no event of the cluster makes good. */
static void rejected(struct bh_sched_daemon *d, struct bh_queued_pod *p, const char *plugin,
                     const char *text)
{
    bh_shape_id shape = 0;
    const struct bh_pod_rec *rec = bh_engine_find_pod(d->engine, bh_pod_uid(p->pod), &shape);
    BH_CLEANUP(bh_freep) struct bh_pod_rec *old = bh_memdup(rec, rec->h.size);
    BH_CLEANUP(bh_freep)
    char *message = plugin ? bh_asprintf("0/1 nodes are available: 1 %s.", text) : bh_strdup(text);
    const struct bh_decision dec = {.kind = BH_NO_FIT,
                                    .reason = "Unschedulable",
                                    .message = message,
                                    .unschedulable_plugins = &plugin,
                                    .n_unschedulable_plugins = plugin != NULL,
                                    .clear_nomination = true};

    shape = bh_engine_shape(d->engine, bh_engine_shape_rec(d->engine, shape));
    (void)bh_engine_forget(d->engine, bh_pod_uid(p->pod));
    bh_sched_failed(d, p, &dec);
    bh_sched_tell_room(d, old, shape, true);
    bh_engine_shape_unref(d->engine, shape);
}

static const char *what_ended(enum bh_over how, const char *message)
{
    return how == BH_OVER_GONE        ? "the pod was deleted"
           : how == BH_OVER_RECALLED  ? "the lease ended before it was written"
           : how == BH_OVER_ELSEWHERE ? "the pod was bound to another node"
           : how == BH_OVER_SKIPPED   ? "every Bind plugin skipped the pod"
                                      : message;
}

void bh_sched_binding_over(struct bh_sched_daemon *d, struct bh_pod_state *s, enum bh_over how,
                           const char *plugin, const char *message)
{
    const struct bh_str uid = bh_pod_uid(s);
    struct bh_queued_pod *p = s->queued;
    const bool ours = bh_pod_has_node(s);

    if (ours)
        bh_sched_record_outcome(d, p->decision, BH_OUTCOME_FAILED, what_ended(how, message));
    if ((how == BH_OVER_REJECTED || how == BH_OVER_REFUSED) && ours &&
        bh_engine_is_assumed(d->engine, uid)) {
        rejected(d, p, how == BH_OVER_REJECTED ? plugin : NULL, message);
        return;
    }
    (void)unassume(d, uid); /* the move event before the pod returns: an error is not a rejection */
    if (!ours || how == BH_OVER_GONE)
        return;
    if (bh_engine_find_pod(d->engine, uid, NULL)) {
        bh_queue_done(d->queue, s); /* bound after all, by another try or another hand */
        return;
    }
    if (how != BH_OVER_RECALLED && how != BH_OVER_ELSEWHERE && how != BH_OVER_SKIPPED) {
        bh_queue_say(s, "SchedulerError", message);
        failed_scheduling_event(d, p, message);
        patch_condition(d, p, "SchedulerError", message, true, BH_SYM_NONE);
    }
    bh_queue_return(d->queue, s, NULL, 0, NULL, 0, bh_sched_now(d));
}

void bh_sched_bind_failed(struct bh_sched_daemon *d, struct bh_work *w, enum bh_over how,
                          const char *message)
{
    const struct bh_queued_pod *p = w->pod->queued;

    if (p && w->transition) /* a condition gave way to it, the first one, and was never written */
        bh_queue_told(w->pod, 0, p->told_nomination);
    if (p) {
        bh_sched_unwind(d, p, bh_sym_internc(d->symtab, w->item.node), how, "", message);
        return;
    }
    (void)unassume(d, bh_pod_uid(w->pod));
    bh_sched_record_outcome(d, w->decision, BH_OUTCOME_FAILED, message);
}

void bh_sched_bind_recalled(struct bh_sched_daemon *d, struct bh_work *w)
{
    const struct bh_queued_pod *p = w->pod->queued;

    if (p) /* a patch that was not out yet gave way to this bind, and was never written */
        bh_queue_told(w->pod, 0, p->told_nomination);
    if (w->bound_seen) /* only its answer was missing */
        bh_sched_pod_gone(d, w->pod);
    else if (p)
        bh_sched_unwind(d, p, bh_sym_internc(d->symtab, w->item.node), BH_OVER_RECALLED, "", "");
    else
        (void)unassume(d, bh_pod_uid(w->pod));
}

void bh_sched_patch_recalled(struct bh_sched_daemon *d, struct bh_work *w)
{
    const struct bh_queued_pod *p = w->pod->queued;

    if (!p)
        return;
    bh_queue_told(w->pod, 0, p->pending.pod->nominated_node);
    if (w->item.set_nominated_node && p->pending.pod->nominated_node == BH_SYM_NONE)
        bh_engine_nominate(d->engine, &p->pending, BH_SYM_NONE);
    if (d->lease.held) /* tried in this term already, when it seemed to be told */
        bh_queue_activate(d->queue, w->pod, bh_sched_now(d));
}

/* A member that comes while victims of its group leave waits for them with the others: tried alone it
 * would evict once more. */
static void join_wait(struct bh_sched_daemon *d, struct bh_pod_state *s, const struct bh_pending *p)
{
    const struct bh_group *g = bh_engine_group_of(d->engine, p);
    const struct bh_member *m;

    /* All others took part in the cycle that chose the victims. */
    if (bh_likely(!g) || (s->place != BH_Q_NONE && s->place != BH_Q_GATED) || bh_pod_evicts(s) ||
        !bh_sched_config_gate(d->o.config, "WorkloadAwarePreemption"))
        return;
    TAILQ_FOREACH(m, &g->at[BH_MEMBER_UNSCHEDULED], link) {
        struct bh_pod_state *other = bh_pods_find(d->pods, bh_member_uid(m));
        if (!other || !bh_pod_evicts(other))
            continue;
        bh_pod_follow(s, other->evictions || other->leaving ? other : other->lead);
        return;
    }
}

void bh_sched_pod_update(struct bh_sched_daemon *d, struct bh_pod_state *s,
                         const struct bh_pod_rec *pod, const struct bh_shape_rec *shape,
                         const char *resource_version)
{
    const struct bh_queued_pod *p = s->queued;
    bh_shape_id id = bh_engine_shape(d->engine, shape);

    join_wait(d, s, &(struct bh_pending){.pod = pod, .shape = id});
    if (p && p->pending.pod->nominated_node != BH_SYM_NONE &&
        p->pending.pod->nominated_node != pod->nominated_node &&
        !bh_engine_is_assumed(d->engine, bh_pod_uid(s))) {
        bh_shape_id old_id = p->pending.shape;
        BH_CLEANUP(bh_freep)
        struct bh_pod_rec *old = bh_memdup(p->pending.pod, p->pending.pod->h.size);
        bh_shape_id kept = bh_engine_shape(d->engine, bh_engine_shape_rec(d->engine, old_id));
        bh_queue_update(d->queue, s, pod, id, resource_version, bh_sched_now(d));
        bh_sched_tell_room(d, old, kept, false);
        bh_engine_shape_unref(d->engine, kept);
        return;
    }
    bh_queue_update(d->queue, s, pod, id, resource_version, bh_sched_now(d));
}

void bh_sched_pod_gone(struct bh_sched_daemon *d, struct bh_pod_state *s)
{
    const struct bh_str uid = bh_pod_uid(s);
    const struct bh_queued_pod *p = s->queued;

    if (p && bh_pod_has_node(s))
        bh_sched_record_outcome(d, p->decision, BH_OUTCOME_FAILED, what_ended(BH_OVER_GONE, ""));
    if (!bh_sched_prebind_gone(d, s)) {
        const struct bh_known_pod on_node = bh_engine_known_pod(d->engine, uid);
        if (p && on_node.rec && on_node.assumed) /* its bind may have been done */
            bh_engine_unreserve(d->engine, &p->pending, on_node.rec->node);
        const bh_sym nominated = p && p->told_nomination != BH_SYM_NONE
                                     ? p->told_nomination
                                     : bh_engine_nominated_node(d->engine, uid);
        if (!unassume(d, uid) && p && nominated != BH_SYM_NONE)
            bh_sched_tell_nominated_room(d, p, nominated);
    }
    bh_queue_delete(d->queue, s);
}
