/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/work.c - one item of the ledger: made, put on the wire, and freed
 */
#include "scheduler/daemon/work.h"

struct bh_work *bh_work_new(Berth__WorkKind kind, struct bh_str ns, struct bh_str name,
                            struct bh_str uid)
{
    struct bh_work *w = bh_calloc(1, sizeof(*w));

    w->kind = kind;
    w->namespace_ = bh_strndup(ns.p, ns.n);
    w->name = bh_strndup(name.p, name.n);
    w->uid = bh_strndup(uid.p, uid.n);
    return w;
}

struct bh_work *bh_work_for(Berth__WorkKind kind, struct bh_str ns, struct bh_str name,
                            struct bh_pod_state *s)
{
    struct bh_work *w = bh_work_new(kind, ns, name, bh_pod_uid(s));

    w->pod = bh_pod_hold(s);
    return w;
}

/* Copies up to n bytes and a NUL; returns what follows. */
static char *put(char *at, char **slot, const char *s, size_t n)
{
    *slot = at;
    memcpy(at, s, n);
    at[n] = '\0';
    return at + n + 1;
}

static char *extend(char *at, const char *s, size_t n)
{
    memcpy(at - 1, s, n);
    at[n - 1] = '\0';
    return at + n;
}

struct bh_work *bh_work_bind(const struct bh_bind_texts *t, size_t note_max)
{
    static char type[] = "Normal", reason[] = "Scheduled", action[] = "Binding";
    static const char assigned[] = "Successfully assigned ", to[] = " to ", cut[] = " ...";
    const size_t n_node = strlen(t->node), n_by = strlen(t->controller),
                 n_rv = strlen(t->resource_version);
    const size_t n_note = sizeof(assigned) - 1 + t->ns.n + 1 + t->name.n + sizeof(to) - 1 + n_node;
    struct bh_work *w =
        bh_malloc(sizeof(*w) + t->ns.n + t->name.n + n_node + n_by + n_rv + n_note + 6);
    char *at = w->text;

    *w = (struct bh_work){.kind = BERTH__WORK_KIND__WORK_BIND,
                          .pod = bh_pod_hold(t->pod),
                          .uid = t->pod->uid,
                          .packed = true};
    at = put(at, &w->namespace_, t->ns.p, t->ns.n);
    at = put(at, &w->name, t->name.p, t->name.n);
    at = put(at, &w->node, t->node, n_node);
    at = put(at, &w->event_controller, t->controller, n_by);
    at = put(at, &w->event_rv, t->resource_version, n_rv);
    at = put(at, &w->event_note, assigned, sizeof(assigned) - 1);
    at = extend(at, t->ns.p, t->ns.n);
    at = extend(at, "/", 1);
    at = extend(at, t->name.p, t->name.n);
    at = extend(at, to, sizeof(to) - 1);
    (void)extend(at, t->node, n_node);
    if (n_note > note_max)
        memcpy(w->event_note + note_max - (sizeof(cut) - 1), cut, sizeof(cut));
    w->event_type = type;
    w->event_reason = reason;
    w->event_action = action;
    return w;
}

static void write_free(struct bh_object_write *o)
{
    if (!o)
        return;
    free(o->namespace_);
    free(o->name);
    free(o->uid);
    free(o->resource_version);
    bh_buf_fini(&o->object);
    bh_buf_fini(&o->pod_status);
    free(o);
}

void bh_work_free(struct bh_work *w)
{
    char *strings[] = {w->namespace_,       w->name,         w->uid,          w->node,
                       w->event_type,       w->event_reason, w->event_action, w->event_note,
                       w->event_controller, w->event_rv,     w->cond_type,    w->cond_status,
                       w->cond_reason,      w->cond_message, w->nominated};

    for (size_t i = 0; i < BH_ARRAY_LEN(strings) && !w->packed; i++)
        free(strings[i]);
    write_free(w->write);
    bh_pod_dropp(&w->pod);
    bh_pod_dropp(&w->on_behalf);
    free(w);
}

bool bh_work_takes_effect(const struct bh_work *w)
{
    return (w->kind == BERTH__WORK_KIND__WORK_BIND && !w->look) ||
           w->kind == BERTH__WORK_KIND__WORK_ALLOCATION ||
           w->kind == BERTH__WORK_KIND__WORK_RESERVATION ||
           w->kind == BERTH__WORK_KIND__WORK_NEW_CLAIM;
}

void bh_work_doubt(struct bh_work *w, uint64_t ns)
{
    if (bh_work_takes_effect(w))
        w->doubt_boot_ns = BH_MAX(w->doubt_boot_ns, bh_boot_ns() + ns);
}

/* ---- the wire ------------------------------------------------------------ */

static ProtobufCBinaryData bytes_of(const struct bh_buf *b)
{
    return (ProtobufCBinaryData){b->n, (uint8_t *)b->p};
}

static void write_to_wire(const struct bh_object_write *w, Berth__ObjectWrite *o)
{
    berth__object_write__init(o);
    o->namespace_ = w->namespace_;
    o->name = w->name;
    o->uid = w->uid;
    o->resource_version = w->resource_version;
    o->has_object = true;
    o->object = bytes_of(&w->object);
    o->has_pod_status = w->pod_status.n > 0;
    o->pod_status = bytes_of(&w->pod_status);
}

void bh_work_to_wire(const struct bh_work *w, struct bh_work_wire *o)
{
    berth__work_item__init(&o->item);
    o->item.has_id = o->item.has_kind = o->item.has_attempt = true;
    o->item.id = w->id;
    o->item.kind = w->kind;
    o->item.attempt = w->attempt;
    o->item.namespace_ = w->namespace_;
    o->item.name = w->name;
    o->item.uid = w->uid;
    o->item.node = w->node;
    if (w->event_reason) {
        berth__event_text__init(&o->event);
        o->event.type = w->event_type;
        o->event.reason = w->event_reason;
        o->event.action = w->event_action;
        o->event.note = w->event_note;
        o->event.reporting_controller = w->event_controller;
        o->event.regarding_resource_version = w->event_rv;
        o->item.event = &o->event;
    }
    if (w->cond_type) {
        berth__condition__init(&o->cond);
        o->cond.type = w->cond_type;
        o->cond.status = w->cond_status;
        o->cond.reason = w->cond_reason;
        o->cond.message = w->cond_message;
        o->cond.has_observed_generation = true;
        o->cond.observed_generation = w->cond_generation;
        o->cond.has_transition = true;
        o->cond.transition = w->cond_transition;
        o->item.condition = &o->cond;
    }
    if (w->write) {
        write_to_wire(w->write, &o->write);
        o->item.write = &o->write;
    }
    o->item.has_look = o->item.look = w->look;
    if (w->set_nominated) {
        o->item.has_set_nominated_node = o->item.set_nominated_node = true;
        o->item.nominated_node = w->nominated ? w->nominated : (char *)(uintptr_t) "";
    }
}

bool bh_work_fits(const struct bh_work *w)
{
    Berth__WorkBatch batch = BERTH__WORK_BATCH__INIT;
    Berth__Envelope env = BERTH__ENVELOPE__INIT;
    struct bh_work_wire wire;
    Berth__WorkItem *item = &wire.item;

    bh_work_to_wire(w, &wire);
    batch.has_epoch = true;
    batch.n_item = 1;
    batch.item = &item;
    env.work = &batch;
    return berth__envelope__get_packed_size(&env) < BH_BUS_MAX_BYTES / 2 && !bh_bus_validate(&env);
}
