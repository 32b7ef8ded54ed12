/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/validate.c - what a message must hold before anybody acts on it
 *
 * Runs in: whoever owns the socket; no state.
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
    if (!c->has_kind || c->kind >= BH_KIND_COUNT)
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

static const char *check_batch(const Berth__FeedBatch *b)
{
    if (!b->has_seq)
        return "feed_batch: no seq";
    if (b->n_change > BH_BUS_BATCH_ITEMS)
        return "feed_batch: too many changes";
    for (size_t i = 0; i < b->n_change; i++) {
        const char *why = check_change(b->change[i]);
        if (why)
            return why;
    }
    return NULL;
}

static const char *check_item_parts(const Berth__WorkItem *w)
{
    const Berth__Condition *c = w->condition;
    const Berth__EventText *e = w->event;
    if (c && (!id_ok(c->type, true) || !id_ok(c->status, true) || !id_ok(c->reason, false) ||
              !text_ok(c->message)))
        return "work: condition without type or status, or oversized";
    if (e && (!id_ok(e->type, true) || !id_ok(e->reason, true) || !id_ok(e->action, false) ||
              !id_ok(e->reporting_controller, false) ||
              !id_ok(e->regarding_resource_version, false) || !text_ok(e->note)))
        return "work: event without type or reason, or oversized";
    return NULL;
}

static const char *check_item(const Berth__WorkItem *w)
{
    if (!w->has_id)
        return "work: item without id";
    if (!id_ok(w->name, true) || !id_ok(w->namespace_, true) || !id_ok(w->uid, true) ||
        !id_ok(w->node, false) || !id_ok(w->nominated_node, false))
        return "work: item without namespace, name or uid, or oversized";
    if (!w->has_kind)
        return "work: item without kind";
    switch (w->kind) {
    case BERTH__WORK_KIND__WORK_BIND:
        if (!id_ok(w->node, true))
            return "work: BIND without node";
        break;
    case BERTH__WORK_KIND__WORK_PATCH_STATUS:
        if (!w->condition && !(w->has_set_nominated_node && w->set_nominated_node))
            return "work: PATCH_STATUS with nothing to write";
        break;
    case BERTH__WORK_KIND__WORK_DELETE:
        break;
    case BERTH__WORK_KIND__WORK_EVENT:
        if (!w->event)
            return "work: EVENT without event";
        break;
    default:
        return "work: item of an unknown kind";
    }
    return check_item_parts(w);
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
        const char *why = check_item(h->in_flight[i]);
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

static const char *check_feed_hello(const Berth__FeedHello *h)
{
    if (!h->has_epoch)
        return "feed_hello: no epoch";
    return h->credit == 0 || h->credit > CREDIT_MAX ? "feed_hello: credit out of range" : NULL;
}

static const char *check_feed_ack(const Berth__FeedAck *a)
{
    if (!a->has_seq)
        return "feed_ack: no seq";
    return a->credit > CREDIT_MAX ? "feed_ack: credit out of range" : NULL;
}

const char *bh_bus_validate(const Berth__Envelope *e)
{
    unsigned payloads = !!e->feed_hello + !!e->feed_ack + !!e->feed_begin + !!e->feed_batch +
                        !!e->binder_hello + !!e->scheduler_hello + !!e->work + !!e->results +
                        !!e->heartbeat;
    if (payloads != 1)
        return "not exactly one payload";
    if (e->feed_batch)
        return check_batch(e->feed_batch);
    if (e->work)
        return check_work(e->work);
    if (e->results)
        return check_results(e->results);
    if (e->feed_hello)
        return check_feed_hello(e->feed_hello);
    if (e->feed_ack)
        return check_feed_ack(e->feed_ack);
    if (e->feed_begin)
        return e->feed_begin->has_incarnation ? NULL : "feed_begin: no incarnation";
    if (e->binder_hello)
        return check_hello(e->binder_hello);
    if (e->scheduler_hello)
        return e->scheduler_hello->has_epoch ? NULL : "scheduler_hello: no epoch";
    return e->heartbeat->has_progress ? NULL : "heartbeat: no progress";
}
