/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/work.c - one item of the ledger: made, put on the wire, and freed
 */
#include "scheduler/daemon/work.h"
#include "common/k8s/codec.h"
#include "scheduler/engine/engine.h"

struct bh_work *bh_work_new(Berth__WorkKind kind, struct bh_str ns, struct bh_str name,
                            struct bh_str uid)
{
    struct bh_work *w = bh_calloc(1, sizeof(*w));

    berth__work_item__init(&w->item);
    w->item.has_id = w->item.has_kind = w->item.has_attempt = true;
    w->item.kind = kind;
    w->item.namespace_ = bh_strndup(ns.p, ns.n);
    w->item.name = bh_strndup(name.p, name.n);
    w->item.uid = bh_strndup(uid.p, uid.n);
    return w;
}

struct bh_work *bh_work_for(Berth__WorkKind kind, struct bh_str ns, struct bh_str name,
                            struct bh_pod_state *s)
{
    struct bh_work *w = bh_work_new(kind, ns, name, bh_pod_uid(s));

    w->pod = bh_pod_hold(s);
    return w;
}

struct bh_work *bh_work_group(struct bh_str ns, struct bh_str name, struct bh_str uid,
                              const char *api_version)
{
    struct bh_work *w = bh_work_new(BERTH__WORK_KIND__WORK_GROUP_STATUS, ns, name, uid);

    w->item.api_version = bh_strdup(api_version);
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

    *w = (struct bh_work){.item = BERTH__WORK_ITEM__INIT,
                          .event = BERTH__EVENT_TEXT__INIT,
                          .pod = bh_pod_hold(t->pod),
                          .packed = true};
    w->item.has_id = w->item.has_kind = w->item.has_attempt = true;
    w->item.kind = BERTH__WORK_KIND__WORK_BIND;
    w->item.uid = t->pod->uid;
    w->item.event = &w->event;
    at = put(at, &w->item.namespace_, t->ns.p, t->ns.n);
    at = put(at, &w->item.name, t->name.p, t->name.n);
    at = put(at, &w->item.node, t->node, n_node);
    at = put(at, &w->event.reporting_controller, t->controller, n_by);
    at = put(at, &w->event.regarding_resource_version, t->resource_version, n_rv);
    at = put(at, &w->event.note, assigned, sizeof(assigned) - 1);
    at = extend(at, t->ns.p, t->ns.n);
    at = extend(at, "/", 1);
    at = extend(at, t->name.p, t->name.n);
    at = extend(at, to, sizeof(to) - 1);
    (void)extend(at, t->node, n_node);
    if (n_note > note_max)
        memcpy(w->event.note + note_max - (sizeof(cut) - 1), cut, sizeof(cut));
    w->event.type = type;
    w->event.reason = reason;
    w->event.action = action;
    return w;
}

void bh_work_event(struct bh_work *w, const char *type, const char *reason, const char *action,
                   char *note, const char *controller, const char *resource_version)
{
    Berth__EventText *e = w->item.event = bh_malloc(sizeof(*e));

    berth__event_text__init(e);
    e->type = bh_strdup(type);
    e->reason = bh_strdup(reason);
    e->action = bh_strdup(action);
    e->note = note;
    e->reporting_controller = bh_strdup(controller);
    e->regarding_resource_version = resource_version ? bh_strdup(resource_version) : NULL;
}

void bh_work_related(struct bh_work *w, const struct bh_object_ref *r)
{
    Berth__ObjectReference *o = w->item.event->related = bh_malloc(sizeof(*o));

    berth__object_reference__init(o);
    o->kind = bh_strdup(r->kind);
    o->api_version = bh_strdup(r->api_version);
    o->namespace_ = bh_strndup(r->namespace_.p, r->namespace_.n);
    o->name = bh_strndup(r->name.p, r->name.n);
    o->uid = bh_strndup(r->uid.p, r->uid.n);
    o->resource_version = r->resource_version ? bh_strdup(r->resource_version) : NULL;
}

void bh_work_condition(struct bh_work *w, const char *type, const char *status, const char *reason,
                       char *message, int64_t generation, bool transition)
{
    Berth__Condition *c = w->item.condition = bh_malloc(sizeof(*c));

    berth__condition__init(c);
    c->type = bh_strdup(type);
    c->status = bh_strdup(status);
    c->reason = bh_strdup(reason);
    c->message = message;
    c->has_observed_generation = c->has_transition = true;
    c->observed_generation = generation;
    c->transition = w->transition = transition;
}

void bh_work_nominate(struct bh_work *w, const char *node)
{
    w->item.has_set_nominated_node = w->item.set_nominated_node = true;
    w->item.nominated_node = bh_strdup(node);
}

void bh_work_free(struct bh_work *w)
{
    Berth__WorkItem *i = &w->item;
    char *texts[] = {i->namespace_, i->name, i->uid, i->node, i->nominated_node, i->api_version};

    for (size_t k = 0; k < BH_ARRAY_LEN(texts) && !w->packed; k++)
        free(texts[k]);
    if (!w->packed)
        berth__event_text__free_unpacked(i->event, NULL);
    berth__condition__free_unpacked(i->condition, NULL);
    berth__object_write__free_unpacked(i->write, NULL);
    bh_pod_dropp(&w->pod);
    bh_pod_dropp(&w->on_behalf);
    free(w);
}

bool bh_work_takes_effect(const struct bh_work *w)
{
    return (w->item.kind == BERTH__WORK_KIND__WORK_BIND && !w->item.look) ||
           w->item.kind == BERTH__WORK_KIND__WORK_ALLOCATION ||
           w->item.kind == BERTH__WORK_KIND__WORK_RESERVATION ||
           w->item.kind == BERTH__WORK_KIND__WORK_NEW_CLAIM ||
           (w->item.kind == BERTH__WORK_KIND__WORK_PATCH && w->pod);
}

void bh_work_doubt(struct bh_work *w, uint64_t ns)
{
    if (bh_work_takes_effect(w))
        w->doubt_boot_ns = BH_MAX(w->doubt_boot_ns, bh_boot_ns() + ns);
}

static ProtobufCBinaryData packed(const ProtobufCMessage *m)
{
    struct bh_buf b = {0};

    bh_pb_pack(&b, m);
    return (ProtobufCBinaryData){b.n, (uint8_t *)bh_buf_take(&b)};
}

static char *text_of(const char *s)
{
    return bh_strdup(s ? s : "");
}

static Berth__ObjectPatch *patch_of(const struct bh_patch *x)
{
    Berth__ObjectPatch *p = bh_malloc(sizeof(*p));

    berth__object_patch__init(p);
    p->api_version = text_of(x->api_version);
    p->resource = text_of(x->resource);
    p->subresource = text_of(x->subresource);
    p->has_json = true;
    p->json = x->json;
    p->body = text_of(x->body);
    return p;
}

void bh_work_write(struct bh_work *w, const struct bh_write *x)
{
    Berth__ObjectWrite *o = w->item.write = bh_malloc(sizeof(*o));

    berth__object_write__init(o);
    o->namespace_ = text_of(x->namespace_);
    o->name = text_of(x->name);
    o->uid = text_of(x->uid);
    o->resource_version = text_of(x->resource_version);
    if (x->what == BH_WRITE_PATCH) {
        o->patch = patch_of(x->patch);
        return;
    }
    o->has_object = true;
    o->object = packed(x->object);
    o->has_pod_status = x->pod_status != NULL;
    if (x->pod_status)
        o->pod_status = packed(&x->pod_status->base);
}

const char *bh_work_unfit(const struct bh_work *w)
{
    Berth__WorkBatch batch = BERTH__WORK_BATCH__INIT;
    Berth__Envelope env = BERTH__ENVELOPE__INIT;
    Berth__WorkItem *item = (Berth__WorkItem *)(uintptr_t)&w->item;

    batch.has_epoch = true;
    batch.n_item = 1;
    batch.item = &item;
    env.work = &batch;
    return berth__envelope__get_packed_size(&env) < BH_BUS_MAX_BYTES / 2 ? bh_bus_validate(&env)
                                                                         : "it is too large";
}
