/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/validate.c - what a message must hold before it is acted on
 *
 * Runs in: the thread that owns the socket; no state.
 * Both sides use it: a receiver against foreign bytes, a sender against its own mistakes.
 */
#include "common/bus/bus_int.h"
#include "common/k8s/kinds.h"

#include <stdio.h>

/* Names, uids, versions; Kubernetes' longest name is 253. */
#define ID_MAX 512u
/* Messages and notes: written by us, cut long before. */
#define TEXT_MAX   (64u << 10)
#define CREDIT_MAX (1u << 20)

static bool id_ok(const char *s, bool required)
{
    return s ? strnlen(s, ID_MAX + 1) <= ID_MAX && (!required || *s) : !required;
}

static bool text_ok(const char *s)
{
    return !s || strnlen(s, TEXT_MAX + 1) <= TEXT_MAX;
}

static const char *check_change(const Berth__ObjectChange *c)
{
    if (!c->has_op || (int)c->op < BERTH__CHANGE_OP__CHANGE_ADDED ||
        (int)c->op > BERTH__CHANGE_OP__CHANGE_BOUND)
        return "feed_batch: change without a known op";
    if (!c->has_kind || c->kind >= BH_KIND_ALL)
        return "feed_batch: change of an unknown kind";
    if (!id_ok(c->name, true) || !id_ok(c->namespace_, false) || !id_ok(c->uid, false) ||
        !id_ok(c->resource_version, false))
        return "feed_batch: change without name, or with an oversized name";
    bool wants_object =
        c->op == BERTH__CHANGE_OP__CHANGE_ADDED || c->op == BERTH__CHANGE_OP__CHANGE_MODIFIED;
    if (wants_object && !(c->has_object && c->object.len))
        return "feed_batch: ADDED or MODIFIED without an object";
    if (c->op == BERTH__CHANGE_OP__CHANGE_BOUND && !c->has_log_pos)
        return "feed_batch: BOUND without log_pos";
    return NULL;
}

/* A plugin's: what it holds is the binder's to judge. */
static const char *check_patch(const Berth__ObjectWrite *o)
{
    const Berth__ObjectPatch *p = o->patch;

    if (!p)
        return "work: a write that is no patch";
    if (o->has_object || o->has_pod_status)
        return "work: patch with an object";
    if (!id_ok(o->namespace_, false) || !id_ok(o->name, true) || !id_ok(o->uid, false) ||
        !id_ok(o->resource_version, false))
        return "work: patch without the object's name, or with one that is too long";
    if (!id_ok(p->api_version, true) || !id_ok(p->resource, true) || !id_ok(p->subresource, false))
        return "work: patch without apiVersion or resource, or with one that is too long";
    if (!p->body || !*p->body || !text_ok(p->body))
        return "work: patch without a body, or with one of more than 64 Ki bytes";
    return NULL;
}

static const char *check_write(const Berth__WorkItem *w)
{
    bool create = w->kind == BERTH__WORK_KIND__WORK_NEW_CLAIM;
    bool global = w->kind == BERTH__WORK_KIND__WORK_VOLUME_CLAIM;
    const Berth__ObjectWrite *o = w->write;

    if (o && w->kind == BERTH__WORK_KIND__WORK_PATCH)
        return check_patch(o);
    if (!o || !o->has_object || !o->object.len)
        return "work: write without an object";
    if (!id_ok(o->namespace_, !global) || (global && o->namespace_ && *o->namespace_))
        return "work: write without the object's namespace, or with one it cannot have";
    if (!id_ok(o->resource_version, false) || !id_ok(o->uid, !create) || !id_ok(o->name, !create))
        return "work: write without the object's name or uid, or oversized";
    if (create && (!o->has_pod_status || !o->pod_status.len))
        return "work: NEW_CLAIM without the pod's status";
    return NULL;
}

static const char *check_identity(const Berth__WorkItem *w)
{
    if (!w->has_id)
        return "work: item without id";
    if (!id_ok(w->name, true) || !id_ok(w->namespace_, true) || !id_ok(w->uid, true) ||
        !id_ok(w->node, false) || !id_ok(w->nominated_node, false))
        return "work: item without namespace, name or uid, or oversized";
    return w->has_kind ? NULL : "work: item without kind";
}

static bool is_write(const Berth__WorkItem *w)
{
    return (int)w->kind >= BERTH__WORK_KIND__WORK_VOLUME_CLAIM &&
           (int)w->kind <= BERTH__WORK_KIND__WORK_PATCH;
}

static bool is_status(const Berth__WorkItem *w)
{
    return w->kind == BERTH__WORK_KIND__WORK_PATCH_STATUS ||
           w->kind == BERTH__WORK_KIND__WORK_GROUP_STATUS;
}

static bool event_ok(const Berth__EventText *e)
{
    const Berth__ObjectReference *r = e->related;

    return id_ok(e->type, true) && id_ok(e->reason, true) && id_ok(e->action, false) &&
           id_ok(e->reporting_controller, false) && id_ok(e->regarding_resource_version, false) &&
           text_ok(e->note) &&
           (!r ||
            (id_ok(r->kind, true) && id_ok(r->api_version, true) && id_ok(r->namespace_, false) &&
             id_ok(r->name, true) && id_ok(r->uid, true) && id_ok(r->resource_version, false)));
}

static const char *check_item(const Berth__WorkItem *w)
{
    const char *why = check_identity(w);

    if (why)
        return why;
    if (is_write(w))
        why = check_write(w);
    else if (w->write && w->kind == BERTH__WORK_KIND__WORK_BIND)
        why = check_patch(w->write);
    else if (w->write)
        why = "work: an item of this kind writes no other object";
    if (!why && w->look && w->kind != BERTH__WORK_KIND__WORK_BIND)
        why = "work: look at something else than a BIND";
    if (why)
        return why;
    switch (w->kind) {
    case BERTH__WORK_KIND__WORK_BIND:
        if (!id_ok(w->node, true))
            return "work: BIND without node";
        break;
    case BERTH__WORK_KIND__WORK_PATCH_STATUS:
        if (!w->condition && !(w->has_set_nominated_node && w->set_nominated_node))
            return "work: PATCH_STATUS with nothing to write";
        break;
    case BERTH__WORK_KIND__WORK_GROUP_STATUS:
        if (!w->condition || !id_ok(w->api_version, true))
            return "work: GROUP_STATUS without condition or API version";
        break;
    case BERTH__WORK_KIND__WORK_DELETE:
        break;
    case BERTH__WORK_KIND__WORK_EVENT:
        if (!w->event)
            return "work: EVENT without event";
        break;
    default:
        if (!is_write(w))
            return "work: item of an unknown kind";
    }
    const Berth__Condition *c = w->condition;
    const Berth__EventText *e = w->event;
    if (c && (!id_ok(c->type, true) || !id_ok(c->status, true) || !id_ok(c->reason, false) ||
              !text_ok(c->message)))
        return "work: condition without type or status, or oversized";
    if (e && !event_ok(e))
        return "work: event without type or reason, related to something without kind, name or "
               "uid, or oversized";
    return NULL;
}

static const char *check_work(const Berth__WorkBatch *b)
{
    if (!b->has_epoch)
        return "work: no epoch";
    if (b->n_item == 0 || b->n_item > BH_BUS_BATCH_ITEMS)
        return "work: no items or too many";
    for (size_t i = 0; i < b->n_item; i++) {
        const char *why = check_item(b->item[i]);
        if (why)
            return why;
    }
    return NULL;
}

static const char *check_hello(const Berth__BinderHello *h)
{
    if (!id_ok(h->binder, true))
        return "binder_hello: no binder";
    if (h->window > CREDIT_MAX)
        return "binder_hello: window out of range";
    if (h->n_in_flight > BH_BUS_BATCH_ITEMS)
        return "binder_hello: too many items in flight";
    for (size_t i = 0; i < h->n_in_flight; i++) {
        const Berth__WorkItem *w = h->in_flight[i];
        const char *why = is_write(w) || is_status(w) ? check_identity(w) : check_item(w);
        if (why)
            return why;
    }
    return NULL;
}

static const char *check_results(const Berth__ResultBatch *b)
{
    if (b->n_result > BH_BUS_BATCH_ITEMS)
        return "results: too many";
    if (b->window > CREDIT_MAX)
        return "results: window out of range";
    for (size_t i = 0; i < b->n_result; i++) {
        const Berth__WorkResult *r = b->result[i];
        if (!r->has_id || !r->has_epoch)
            return "results: result without id or epoch";
        if (!r->has_outcome || (int)r->outcome < BERTH__OUTCOME__OUTCOME_DONE ||
            (int)r->outcome > BERTH__OUTCOME__OUTCOME_UNKNOWN)
            return "results: result without a known outcome";
        if (!id_ok(r->reason, false) || !text_ok(r->message))
            return "results: oversized text";
    }
    return NULL;
}

static const char *check_watch(Berth__WatchKind *const *w, size_t n)
{
    uint64_t seen = 0;

    for (size_t i = 0; i < n; i++) {
        if (w[i]->kind < BH_KIND_CUSTOM || w[i]->kind >= BH_KIND_ALL || seen >> w[i]->kind & 1)
            return "feed_hello: watch with a number that is none, or comes twice";
        if (!id_ok(w[i]->group, false) || !id_ok(w[i]->version, true) ||
            !id_ok(w[i]->resource, true) ||
            bh_kind_custom_why(w[i]->group ? w[i]->group : "", w[i]->version, w[i]->resource))
            return "feed_hello: watch of something that is no kind";
        seen |= UINT64_C(1) << w[i]->kind;
    }
    return NULL;
}

static const char *check_watch_state(const Berth__WatchState *s)
{
    if (!bh_kind_is_plugins((enum bh_kind)s->kind) || s->kind >= BH_KIND_ALL)
        return "feed_batch: state of an unknown kind";
    return text_ok(s->trouble) ? NULL : "feed_batch: oversized text";
}

static const char *check_feed_hello(const Berth__FeedHello *h)
{
    const char *why = check_watch(h->watch, h->n_watch);

    if (why)
        return why;
    if (!h->has_epoch)
        return "feed_hello: no epoch";
    if (h->raw >> 2)
        return "feed_hello: raw of an unknown kind";
    return h->credit == 0 || h->credit > CREDIT_MAX ? "feed_hello: credit out of range" : NULL;
}

static const char *check_control(const Berth__ControlRequest *c)
{
    if (!c->has_id)
        return "control: no id";
    if (!c->has_what || (int)c->what < BERTH__CONTROL_WHAT__CONTROL_STATUS ||
        (int)c->what > BERTH__CONTROL_WHAT__CONTROL_RELOAD)
        return "control: not a known question";
    if (!id_ok(c->namespace_, false) || !id_ok(c->uid, false))
        return "control: oversized namespace or uid";
    if (c->what == BERTH__CONTROL_WHAT__CONTROL_POD && !id_ok(c->uid, true))
        return "control: POD without uid";
    if (c->what == BERTH__CONTROL_WHAT__CONTROL_QUEUE &&
        (c->limit == 0 || c->limit > BH_BUS_CONTROL_PODS))
        return "control: limit out of range";
    return NULL;
}

static const char *check_queue_pod(const Berth__QueuePod *p)
{
    if (!id_ok(p->namespace_, true) || !id_ok(p->name, true) || !id_ok(p->uid, true) ||
        !id_ok(p->profile, false) || !id_ok(p->nominated_node, false) || !id_ok(p->node, false) ||
        !id_ok(p->binder, false) || (p->group && !id_ok(p->group->name, true)))
        return "control_reply: pod without namespace, name or uid, or oversized";
    if (!p->has_place || (int)p->place < BERTH__QUEUE_PLACE__QUEUE_NONE ||
        (int)p->place > BERTH__QUEUE_PLACE__QUEUE_WAITING)
        return "control_reply: pod in no known place";
    for (size_t i = 0; i < p->n_plugin; i++)
        if (!id_ok(p->plugin[i], false))
            return "control_reply: oversized plugin name";
    return id_ok(p->reason, false) && text_ok(p->message) ? NULL : "control_reply: oversized text";
}

static const char *check_control_reply(const Berth__ControlReply *r)
{
    if (!r->has_id)
        return "control_reply: no id";
    if (!text_ok(r->error))
        return "control_reply: oversized error";
    if (r->n_pod > BH_BUS_CONTROL_PODS)
        return "control_reply: too many pods";
    for (size_t i = 0; i < r->n_pod; i++) {
        const char *why = check_queue_pod(r->pod[i]);
        if (why)
            return why;
    }
    return NULL;
}

const char *bh_bus_validate(const Berth__Envelope *e)
{
    unsigned payloads = !!e->feed_hello + !!e->feed_ack + !!e->feed_begin + !!e->feed_batch +
                        !!e->binder_hello + !!e->scheduler_hello + !!e->work + !!e->results +
                        !!e->heartbeat + !!e->control + !!e->control_reply + !!e->grant;
    if (payloads != 1)
        return "not exactly one payload";
    if (e->feed_batch) {
        const Berth__FeedBatch *b = e->feed_batch;
        if (!b->has_seq)
            return "feed_batch: no seq";
        if (b->n_change > BH_BUS_BATCH_ITEMS)
            return "feed_batch: too many changes";
        if (b->n_watch > BH_PLUGIN_KINDS)
            return "feed_batch: too many states of kinds";
        for (size_t i = 0; i < b->n_watch; i++) {
            const char *why = check_watch_state(b->watch[i]);
            if (why)
                return why;
        }
        for (size_t i = 0; i < b->n_change; i++) {
            const char *why = check_change(b->change[i]);
            if (why)
                return why;
        }
        return NULL;
    }
    if (e->work)
        return check_work(e->work);
    if (e->results)
        return check_results(e->results);
    if (e->feed_hello)
        return check_feed_hello(e->feed_hello);
    if (e->feed_ack) {
        if (!e->feed_ack->has_seq)
            return "feed_ack: no seq";
        return e->feed_ack->credit > CREDIT_MAX ? "feed_ack: credit out of range" : NULL;
    }
    if (e->feed_begin) {
        if (!e->feed_begin->has_incarnation)
            return "feed_begin: no incarnation";
        return id_ok(e->feed_begin->refused, false) ? NULL : "feed_begin: oversized text";
    }
    if (e->control)
        return check_control(e->control);
    if (e->control_reply)
        return check_control_reply(e->control_reply);
    if (e->binder_hello)
        return check_hello(e->binder_hello);
    if (e->grant) {
        if (!e->grant->has_epoch || !e->grant->has_lease_term || !e->grant->has_serial)
            return "grant: no epoch, term or serial";
        return e->grant->has_stamp_boot_ns && e->grant->has_valid_ns ? NULL
                                                                     : "grant: no stamp or time";
    }
    if (e->scheduler_hello)
        return e->scheduler_hello->has_epoch ? NULL : "scheduler_hello: no epoch";
    return e->heartbeat->has_progress ? NULL : "heartbeat: no progress";
}
