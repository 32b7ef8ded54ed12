/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/bus/test_validate.c - the rules that every message on the bus obeys
 */
#include "common/bus/bus_int.h"
#include "common/k8s/kinds.h"
#include "tests/unit/harness.h"

static char text[] = "text";
static char empty[] = "";
static char huge[70000];

static bool valid(const Berth__Envelope *e)
{
    return bh_bus_validate(e) == NULL;
}

static void test_one_payload(void)
{
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    Berth__Heartbeat h = BERTH__HEARTBEAT__INIT;
    Berth__SchedulerHello s = BERTH__SCHEDULER_HELLO__INIT;
    CU_ASSERT(!valid(&e));
    e.heartbeat = &h;
    CU_ASSERT(!valid(&e));
    h.has_progress = 1;
    CU_ASSERT(valid(&e));
    s.has_epoch = 1;
    e.scheduler_hello = &s;
    CU_ASSERT(!valid(&e));
    e.heartbeat = NULL;
    CU_ASSERT(valid(&e));
    s.has_epoch = 0;
    CU_ASSERT(!valid(&e));
}

static void test_feed_control(void)
{
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    Berth__FeedHello h = BERTH__FEED_HELLO__INIT;
    Berth__FeedAck a = BERTH__FEED_ACK__INIT;
    Berth__FeedBegin b = BERTH__FEED_BEGIN__INIT;
    e.feed_hello = &h;
    h.has_epoch = 1;
    CU_ASSERT(!valid(&e)); /* credit 0: it could never be sent anything */
    h.has_credit = 1;
    h.credit = 8;
    CU_ASSERT(valid(&e));
    h.credit = UINT32_MAX;
    CU_ASSERT(!valid(&e));
    h.credit = 8;
    h.raw = 4;
    CU_ASSERT(!valid(&e)); /* bytes of a kind that we do not know */
    h.raw = h.has_epoch = 0;
    CU_ASSERT(!valid(&e));
    e.feed_hello = NULL;

    e.feed_ack = &a;
    CU_ASSERT(!valid(&e));
    a.has_seq = 1;
    CU_ASSERT(valid(&e));
    a.credit = UINT32_MAX;
    CU_ASSERT(!valid(&e));
    e.feed_ack = NULL;

    e.feed_begin = &b;
    CU_ASSERT(!valid(&e));
    b.has_incarnation = 1;
    CU_ASSERT(valid(&e));
}

static void test_changes(void)
{
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    Berth__FeedBatch b = BERTH__FEED_BATCH__INIT;
    Berth__ObjectChange c = BERTH__OBJECT_CHANGE__INIT;
    static Berth__ObjectChange *list[BH_BUS_BATCH_ITEMS + 1];
    for (size_t i = 0; i < BH_ARRAY_LEN(list); i++)
        list[i] = &c;
    e.feed_batch = &b;
    CU_ASSERT(!valid(&e));
    b.has_seq = 1;
    CU_ASSERT(valid(&e)); /* empty: carries `synced` */

    b.change = list;
    b.n_change = 1;
    c.has_op = 1;
    c.op = BERTH__CHANGE_OP__CHANGE_DELETED;
    c.has_kind = 1;
    c.kind = BH_KIND_POD;
    c.name = text;
    CU_ASSERT(valid(&e));
    c.name = NULL;
    CU_ASSERT(!valid(&e));
    c.name = empty;
    CU_ASSERT(!valid(&e));
    c.name = huge;
    CU_ASSERT(!valid(&e));
    c.name = text;
    c.kind = BH_KIND_ALL;
    CU_ASSERT(!valid(&e));
    c.kind = BH_KIND_POD;
    c.op = (Berth__ChangeOp)99;
    CU_ASSERT(!valid(&e));
    c.op = BERTH__CHANGE_OP__CHANGE_ADDED;
    CU_ASSERT(!valid(&e)); /* no object */
    c.has_object = 1;
    c.object = (ProtobufCBinaryData){4, (uint8_t *)text};
    CU_ASSERT(valid(&e));
    c.op = BERTH__CHANGE_OP__CHANGE_BOUND;
    CU_ASSERT(!valid(&e)); /* where is it? */
    c.has_log_pos = 1;
    CU_ASSERT(valid(&e));
    b.n_change = BH_BUS_BATCH_ITEMS;
    CU_ASSERT(valid(&e));
    b.n_change = BH_BUS_BATCH_ITEMS + 1;
    CU_ASSERT(!valid(&e));
}

static void test_grant(void)
{
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    Berth__Grant g = BERTH__GRANT__INIT;
    e.grant = &g;
    CU_ASSERT(!valid(&e));
    g.has_epoch = g.has_lease_term = g.has_serial = g.has_stamp_boot_ns = 1;
    CU_ASSERT(!valid(&e)); /* for how long? */
    g.has_valid_ns = 1;
    CU_ASSERT(valid(&e));
    protobuf_c_boolean *const needed[] = {&g.has_epoch, &g.has_lease_term, &g.has_serial,
                                          &g.has_stamp_boot_ns};
    for (size_t i = 0; i < BH_ARRAY_LEN(needed); i++) {
        *needed[i] = 0;
        CU_ASSERT(!valid(&e));
        *needed[i] = 1;
    }
}

static void test_work(void)
{
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    Berth__WorkBatch b = BERTH__WORK_BATCH__INIT;
    Berth__WorkItem w = BERTH__WORK_ITEM__INIT, *list[] = {&w};
    Berth__Condition cond = BERTH__CONDITION__INIT;
    Berth__EventText event = BERTH__EVENT_TEXT__INIT;
    e.work = &b;
    b.has_epoch = 1;
    CU_ASSERT(!valid(&e)); /* nothing to do */
    b.item = list;
    b.n_item = 1;
    w.has_id = w.has_kind = 1;
    w.name = w.namespace_ = w.uid = w.node = text;
    CU_ASSERT(valid(&e));
    w.node = empty;
    CU_ASSERT(!valid(&e));
    w.node = text;
    w.uid = NULL;
    CU_ASSERT(!valid(&e)); /* a bind without uid could hit the next pod of that name */
    w.uid = text;

    w.kind = BERTH__WORK_KIND__WORK_PATCH_STATUS;
    CU_ASSERT(!valid(&e));
    w.has_set_nominated_node = w.set_nominated_node = 1;
    CU_ASSERT(valid(&e));
    w.condition = &cond;
    CU_ASSERT(!valid(&e));
    cond.type = cond.status = text;
    CU_ASSERT(valid(&e));
    cond.message = huge;
    CU_ASSERT(!valid(&e));
    w.condition = NULL;

    w.kind = BERTH__WORK_KIND__WORK_EVENT;
    CU_ASSERT(!valid(&e));
    w.event = &event;
    CU_ASSERT(!valid(&e));
    event.type = event.reason = text;
    CU_ASSERT(valid(&e));
    w.kind = BERTH__WORK_KIND__WORK_DELETE;
    CU_ASSERT(valid(&e));
    w.event = NULL;
    w.kind = BERTH__WORK_KIND__WORK_GROUP_STATUS;
    w.api_version = text;
    CU_ASSERT(!valid(&e)); /* nothing to write */
    w.condition = &cond;
    cond.message = NULL;
    CU_ASSERT(valid(&e));
    w.api_version = empty;
    CU_ASSERT(!valid(&e));
    w.kind = (Berth__WorkKind)17;
    CU_ASSERT(!valid(&e));
}

static void test_object_writes(void)
{
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    Berth__WorkBatch b = BERTH__WORK_BATCH__INIT;
    Berth__WorkItem w = BERTH__WORK_ITEM__INIT, *list[] = {&w};
    Berth__ObjectWrite o = BERTH__OBJECT_WRITE__INIT;
    ProtobufCBinaryData bytes = {4, (uint8_t *)text};

    e.work = &b;
    b.has_epoch = 1;
    b.item = list;
    b.n_item = 1;
    w.has_id = w.has_kind = 1;
    w.name = w.namespace_ = w.uid = text;
    w.kind = BERTH__WORK_KIND__WORK_ALLOCATION;
    CU_ASSERT(!valid(&e)); /* nothing to write */
    w.write = &o;
    o.namespace_ = o.name = o.uid = text;
    CU_ASSERT(!valid(&e));
    o.has_object = 1;
    o.object = bytes;
    CU_ASSERT(valid(&e));
    o.uid = empty;
    CU_ASSERT(!valid(&e)); /* it could hit the next object of that name */
    o.uid = text;
    o.namespace_ = NULL;
    CU_ASSERT(!valid(&e));
    w.kind = BERTH__WORK_KIND__WORK_VOLUME_CLAIM;
    CU_ASSERT(valid(&e));
    o.namespace_ = text;
    CU_ASSERT(!valid(&e)); /* volumes have none */
    w.kind = BERTH__WORK_KIND__WORK_NEW_CLAIM;
    CU_ASSERT(!valid(&e));
    o.has_pod_status = 1;
    o.pod_status = bytes;
    CU_ASSERT(valid(&e));
    o.name = o.uid = NULL;
    CU_ASSERT(valid(&e)); /* it has none yet */
    o.resource_version = huge;
    CU_ASSERT(!valid(&e));
    o.resource_version = NULL;
    w.kind = BERTH__WORK_KIND__WORK_DELETE;
    CU_ASSERT(!valid(&e)); /* a pod's deletion writes no claim */
}

static void test_patches(void)
{
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    Berth__WorkBatch b = BERTH__WORK_BATCH__INIT;
    Berth__WorkItem w = BERTH__WORK_ITEM__INIT, *list[] = {&w};
    Berth__ObjectWrite o = BERTH__OBJECT_WRITE__INIT;
    Berth__ObjectPatch p = BERTH__OBJECT_PATCH__INIT;
    char **const needed[] = {&o.name, &p.api_version, &p.resource, &p.body};

    e.work = &b;
    b.has_epoch = 1;
    b.item = list;
    b.n_item = 1;
    w.has_id = w.has_kind = 1;
    w.name = w.namespace_ = w.uid = w.node = text;
    w.write = &o;
    o.name = p.api_version = p.resource = p.body = text;
    for (unsigned i = 0; i < 2; i++) {
        w.kind = i ? BERTH__WORK_KIND__WORK_BIND : BERTH__WORK_KIND__WORK_PATCH;
        o.patch = NULL;
        CU_ASSERT(!valid(&e));
        o.patch = &p;
        CU_ASSERT(valid(&e)); /* the object's namespace and uid are the binder's to miss */
        o.uid = o.namespace_ = text;
        CU_ASSERT(valid(&e));
        for (unsigned k = 0; k < BH_ARRAY_LEN(needed); k++) {
            *needed[k] = empty;
            CU_ASSERT(!valid(&e));
            *needed[k] = huge;
            CU_ASSERT(!valid(&e));
            *needed[k] = text;
        }
        o.has_object = 1;
        CU_ASSERT(!valid(&e));
        o.has_object = 0;
        o.uid = huge;
        CU_ASSERT(!valid(&e));
        o.uid = o.namespace_ = NULL;
    }
}

static void test_binder_side(void)
{
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    Berth__ResultBatch b = BERTH__RESULT_BATCH__INIT;
    Berth__WorkResult r = BERTH__WORK_RESULT__INIT, *list[] = {&r};
    Berth__BinderHello h = BERTH__BINDER_HELLO__INIT;
    e.results = &b;
    CU_ASSERT(valid(&e)); /* credit only */
    b.result = list;
    b.n_result = 1;
    CU_ASSERT(!valid(&e));
    r.has_id = r.has_epoch = r.has_outcome = 1;
    CU_ASSERT(valid(&e));
    r.outcome = (Berth__Outcome)6;
    CU_ASSERT(!valid(&e));
    r.outcome = BERTH__OUTCOME__OUTCOME_UNKNOWN;
    CU_ASSERT(valid(&e));
    r.message = huge;
    CU_ASSERT(!valid(&e));
    e.results = NULL;

    e.binder_hello = &h;
    CU_ASSERT(!valid(&e));
    h.binder = text;
    CU_ASSERT(valid(&e));
}

static void test_control(void)
{
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    Berth__ControlRequest q = BERTH__CONTROL_REQUEST__INIT;
    e.control = &q;
    CU_ASSERT(!valid(&e));
    q.has_id = 1;
    CU_ASSERT(!valid(&e)); /* asks nothing */
    q.has_what = 1;
    q.what = BERTH__CONTROL_WHAT__CONTROL_STATUS;
    CU_ASSERT(valid(&e));
    q.what = (Berth__ControlWhat)(BERTH__CONTROL_WHAT__CONTROL_RELOAD + 1);
    CU_ASSERT(!valid(&e));
    q.what = (Berth__ControlWhat)-1;
    CU_ASSERT(!valid(&e));
    q.what = BERTH__CONTROL_WHAT__CONTROL_POD;
    CU_ASSERT(!valid(&e)); /* which? */
    q.uid = empty;
    CU_ASSERT(!valid(&e));
    q.uid = huge;
    CU_ASSERT(!valid(&e));
    q.uid = text;
    CU_ASSERT(valid(&e));
    q.what = BERTH__CONTROL_WHAT__CONTROL_QUEUE;
    CU_ASSERT(!valid(&e)); /* limit 0: an answer could hold nothing */
    q.limit = BH_BUS_CONTROL_PODS;
    CU_ASSERT(valid(&e));
    q.limit++;
    CU_ASSERT(!valid(&e));
    q.limit = 1;
    q.namespace_ = huge;
    CU_ASSERT(!valid(&e));
}

static void test_control_reply(void)
{
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    Berth__ControlReply r = BERTH__CONTROL_REPLY__INIT;
    Berth__QueuePod p = BERTH__QUEUE_POD__INIT;
    static Berth__QueuePod *list[BH_BUS_CONTROL_PODS + 1];
    char *plugins[] = {text};
    for (size_t i = 0; i < BH_ARRAY_LEN(list); i++)
        list[i] = &p;
    e.control_reply = &r;
    CU_ASSERT(!valid(&e));
    r.has_id = 1;
    CU_ASSERT(valid(&e));
    r.error = huge;
    CU_ASSERT(!valid(&e));
    r.error = NULL;
    r.pod = list;
    r.n_pod = 1;
    CU_ASSERT(!valid(&e));
    p.namespace_ = p.name = p.uid = text;
    CU_ASSERT(!valid(&e)); /* where is it? */
    p.has_place = 1;
    CU_ASSERT(valid(&e));
    p.place = (Berth__QueuePlace)99;
    CU_ASSERT(!valid(&e));
    p.place = BERTH__QUEUE_PLACE__QUEUE_ACTIVE;
    p.plugin = plugins;
    p.n_plugin = 1;
    CU_ASSERT(valid(&e));
    plugins[0] = huge;
    CU_ASSERT(!valid(&e));
    plugins[0] = text;
    p.message = huge;
    CU_ASSERT(!valid(&e));
    p.message = NULL;
    r.n_pod = BH_BUS_CONTROL_PODS;
    CU_ASSERT(valid(&e));
    r.n_pod = BH_BUS_CONTROL_PODS + 1;
    CU_ASSERT(!valid(&e));
}

/* A text of a message: too long is refused everywhere, and nothing where the message needs it. */
struct text_of {
    char **at;
    bool needed;
};

static void each_text(const Berth__Envelope *e, const struct text_of *texts, size_t n)
{
    CU_ASSERT(valid(e));
    for (size_t i = 0; i < n; i++) {
        char *was = *texts[i].at;

        *texts[i].at = huge;
        CU_ASSERT(!valid(e));
        *texts[i].at = NULL;
        CU_ASSERT(valid(e) != texts[i].needed);
        *texts[i].at = empty;
        CU_ASSERT(valid(e) != texts[i].needed);
        *texts[i].at = was;
    }
    CU_ASSERT(valid(e));
}
#define EACH_TEXT(e, ...)                                                                          \
    each_text(e, (const struct text_of[]){__VA_ARGS__},                                            \
              BH_ARRAY_LEN(((const struct text_of[]){__VA_ARGS__})))

static void test_texts_of_the_feed(void)
{
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    Berth__FeedBatch b = BERTH__FEED_BATCH__INIT;
    Berth__ObjectChange c = BERTH__OBJECT_CHANGE__INIT, *list[] = {&c};
    Berth__FeedBegin begin = BERTH__FEED_BEGIN__INIT;

    e.feed_batch = &b;
    b.has_seq = c.has_op = c.has_kind = 1;
    b.change = list;
    b.n_change = 1;
    c.op = BERTH__CHANGE_OP__CHANGE_DELETED;
    c.kind = BH_KIND_POD;
    c.name = text;
    EACH_TEXT(&e, {&c.name, true}, {&c.namespace_, false}, {&c.uid, false},
              {&c.resource_version, false});
    c.op = (Berth__ChangeOp)-1;
    CU_ASSERT(!valid(&e));
    c.has_op = 0;
    CU_ASSERT(!valid(&e));
    c.has_op = c.has_object = 1;
    c.op = BERTH__CHANGE_OP__CHANGE_MODIFIED;
    CU_ASSERT(!valid(&e)); /* an object without a byte */
    c.object = (ProtobufCBinaryData){4, (uint8_t *)text};
    CU_ASSERT(valid(&e));
    c.has_kind = 0;
    CU_ASSERT(!valid(&e));
    e.feed_batch = NULL;

    e.feed_begin = &begin;
    begin.has_incarnation = 1;
    EACH_TEXT(&e, {&begin.refused, false});
}

static void test_texts_of_work(void)
{
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    Berth__WorkBatch b = BERTH__WORK_BATCH__INIT;
    Berth__WorkItem w = BERTH__WORK_ITEM__INIT, *list[] = {&w};
    Berth__Condition c = BERTH__CONDITION__INIT;
    Berth__EventText v = BERTH__EVENT_TEXT__INIT;
    Berth__ObjectReference r = BERTH__OBJECT_REFERENCE__INIT;

    e.work = &b;
    b.item = list;
    b.n_item = 1;
    w.has_id = w.has_kind = 1;
    w.name = w.namespace_ = w.uid = w.node = text;
    CU_ASSERT(!valid(&e)); /* of which epoch? */
    b.has_epoch = 1;
    EACH_TEXT(&e, {&w.name, true}, {&w.namespace_, true}, {&w.uid, true}, {&w.node, true},
              {&w.nominated_node, false});
    w.look = 1;
    CU_ASSERT(valid(&e));
    w.kind = BERTH__WORK_KIND__WORK_DELETE;
    CU_ASSERT(!valid(&e)); /* only a binding is looked at */
    w.look = 0;
    w.condition = &c;
    c.type = c.status = text;
    EACH_TEXT(&e, {&c.type, true}, {&c.status, true}, {&c.reason, false}, {&c.message, false});
    w.condition = NULL;
    w.event = &v;
    v.type = v.reason = text;
    EACH_TEXT(&e, {&v.type, true}, {&v.reason, true}, {&v.action, false},
              {&v.reporting_controller, false}, {&v.regarding_resource_version, false},
              {&v.note, false});
    v.related = &r;
    r.kind = r.api_version = r.name = r.uid = text;
    EACH_TEXT(&e, {&r.kind, true}, {&r.api_version, true}, {&r.namespace_, false}, {&r.name, true},
              {&r.uid, true}, {&r.resource_version, false});
    w.kind = BERTH__WORK_KIND__WORK_PATCH_STATUS;
    w.has_set_nominated_node = 1;
    CU_ASSERT(!valid(&e)); /* it does not say that the node is to be set */
    w.kind = BERTH__WORK_KIND__WORK_DELETE;
    w.has_id = 0;
    CU_ASSERT(!valid(&e));
    w.has_id = 1;
    w.has_kind = 0;
    CU_ASSERT(!valid(&e));
    w.has_kind = 1;
    b.n_item = BH_BUS_BATCH_ITEMS + 1;
    CU_ASSERT(!valid(&e));
}

static void test_texts_of_patches(void)
{
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    Berth__WorkBatch b = BERTH__WORK_BATCH__INIT;
    Berth__WorkItem w = BERTH__WORK_ITEM__INIT, *list[] = {&w};
    Berth__ObjectWrite o = BERTH__OBJECT_WRITE__INIT;
    Berth__ObjectPatch p = BERTH__OBJECT_PATCH__INIT;

    e.work = &b;
    b.has_epoch = 1;
    b.item = list;
    b.n_item = 1;
    w.has_id = w.has_kind = 1;
    w.name = w.namespace_ = w.uid = text;
    w.kind = BERTH__WORK_KIND__WORK_PATCH;
    w.write = &o;
    o.patch = &p;
    o.name = p.api_version = p.resource = p.body = text;
    EACH_TEXT(&e, {&o.name, true}, {&o.namespace_, false}, {&o.uid, false},
              {&o.resource_version, false}, {&p.api_version, true}, {&p.resource, true},
              {&p.subresource, false}, {&p.body, true});
    o.has_pod_status = 1;
    CU_ASSERT(!valid(&e)); /* a patch is all that it writes */
}

static void test_texts_of_the_binder(void)
{
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    Berth__BinderHello h = BERTH__BINDER_HELLO__INIT;
    Berth__ResultBatch b = BERTH__RESULT_BATCH__INIT;
    Berth__WorkResult r = BERTH__WORK_RESULT__INIT, *results[] = {&r};
    Berth__WorkItem bind = BERTH__WORK_ITEM__INIT, write = BERTH__WORK_ITEM__INIT;
    Berth__WorkItem *in_flight[] = {&bind, &write};

    e.binder_hello = &h;
    h.binder = text;
    h.in_flight = in_flight;
    h.n_in_flight = 2;
    bind.has_id = bind.has_kind = write.has_id = write.has_kind = 1;
    write.kind = BERTH__WORK_KIND__WORK_ALLOCATION; /* that something is written is enough here */
    bind.name = bind.namespace_ = bind.uid = bind.node = text;
    write.name = write.namespace_ = write.uid = text;
    EACH_TEXT(&e, {&h.binder, true}, {&bind.node, true}, {&bind.uid, true}, {&write.uid, true});
    write.kind = BERTH__WORK_KIND__WORK_PATCH_STATUS;
    EACH_TEXT(&e, {&write.uid, true});
    h.window = UINT32_MAX;
    CU_ASSERT(!valid(&e));
    h.window = 0;
    h.n_in_flight = BH_BUS_BATCH_ITEMS + 1;
    CU_ASSERT(!valid(&e));
    e.binder_hello = NULL;

    e.results = &b;
    b.result = results;
    b.n_result = 1;
    r.has_id = r.has_epoch = r.has_outcome = 1;
    EACH_TEXT(&e, {&r.reason, false}, {&r.message, false});
    protobuf_c_boolean *const needed[] = {&r.has_id, &r.has_epoch, &r.has_outcome};
    for (size_t i = 0; i < BH_ARRAY_LEN(needed); i++) {
        *needed[i] = 0;
        CU_ASSERT(!valid(&e));
        *needed[i] = 1;
    }
    r.outcome = (Berth__Outcome)-1;
    CU_ASSERT(!valid(&e));
    r.outcome = BERTH__OUTCOME__OUTCOME_DONE;
    b.window = UINT32_MAX;
    CU_ASSERT(!valid(&e));
    b.window = 0;
    b.n_result = BH_BUS_BATCH_ITEMS + 1;
    CU_ASSERT(!valid(&e));
}

static void test_texts_of_control(void)
{
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    Berth__ControlReply r = BERTH__CONTROL_REPLY__INIT;
    Berth__QueuePod p = BERTH__QUEUE_POD__INIT, *list[] = {&p};
    Berth__ControlRequest q = BERTH__CONTROL_REQUEST__INIT;

    e.control_reply = &r;
    r.has_id = p.has_place = 1;
    r.pod = list;
    r.n_pod = 1;
    p.namespace_ = p.name = p.uid = text;
    EACH_TEXT(&e, {&r.error, false}, {&p.namespace_, true}, {&p.name, true}, {&p.uid, true},
              {&p.profile, false}, {&p.nominated_node, false}, {&p.node, false}, {&p.binder, false},
              {&p.reason, false}, {&p.message, false});
    p.place = (Berth__QueuePlace)-1;
    CU_ASSERT(!valid(&e));
    e.control_reply = NULL;

    e.control = &q;
    q.has_id = q.has_what = 1;
    q.what = BERTH__CONTROL_WHAT__CONTROL_STATUS;
    EACH_TEXT(&e, {&q.namespace_, false}, {&q.uid, false});
}

static bool decodes(const uint8_t *p, size_t n)
{
    struct bh_arena a;
    bh_arena_init(&a, 0);
    bool yes = bh_bus_decode(&a, p, n) != NULL;
    bh_arena_fini(&a);
    return yes;
}

/* Field number 0 written in two bytes, which protobuf-c takes, at each depth: nothing that is
 * accepted may be refused when it is sent on. */
static void test_field_number_0(void)
{
#define BATCH(extra_n, zero_1, zero_2, zero_3)                                                     \
    {                                                                                              \
        8, BH_BUS_VERSION, 5 << 3 | 2, 2 + 2 + 7 + extra_n, 8, 1, 2 << 3 | 2, 7 + extra_n, 8,      \
            BERTH__CHANGE_OP__CHANGE_DELETED, 16, BH_KIND_NODE, 4 << 3 | 2, 1, 'n', zero_1,        \
            zero_2, zero_3                                                                         \
    }
    static const uint8_t change[] = BATCH(3, 0x80, 0, 5), other[] = BATCH(3, 0xf8, 7, 5);
    uint8_t batch[] = BATCH(0, 0x80, 0, 5), envelope[] = BATCH(0, 0x80, 0, 5);
    CU_ASSERT(decodes(envelope, sizeof(envelope) - 3));
    CU_ASSERT(!decodes(envelope, sizeof(envelope)));
    batch[3] += 3;
    CU_ASSERT(!decodes(batch, sizeof(batch)));
    CU_ASSERT(!decodes(change, sizeof(change)));
    CU_ASSERT(decodes(other, sizeof(other))); /* of a later version, for all we know */
}

/* A name that would be cut where it is read is refused, in the usual order of fields and in another. */
static void test_text_with_nul_is_refused(void)
{
    uint8_t frame[] = {8,          BH_BUS_VERSION,
                       5 << 3 | 2, 13,
                       8,          1,
                       2 << 3 | 2, 9,
                       8,          BERTH__CHANGE_OP__CHANGE_DELETED,
                       16,         BH_KIND_NODE,
                       4 << 3 | 2, 3,
                       'n',        '-',
                       'x'};
    uint8_t twice[sizeof frame + 2];

    for (unsigned with = 0; with < 2; with++) {
        frame[15] = with ? '\0' : '-';
        memcpy(twice, frame, sizeof frame);
        memcpy(twice + sizeof frame, (uint8_t[]){5 << 3 | 2, 0}, 2);
        CU_ASSERT_EQUAL(decodes(frame, sizeof frame), !with);
        CU_ASSERT_EQUAL(decodes(twice, sizeof twice), !with);
    }
}

static void test_watched_kinds(void)
{
    Berth__FeedHello h = BERTH__FEED_HELLO__INIT;
    Berth__WatchKind a = BERTH__WATCH_KIND__INIT, b = BERTH__WATCH_KIND__INIT, *list[] = {&a, &b};
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    char version[] = "v1", good[] = "others", bad[] = "Others", group[] = "x.io", dots[] = "x..io";

    e.feed_hello = &h;
    h.has_epoch = h.has_credit = 1;
    h.credit = 4;
    h.watch = list;
    h.n_watch = 2;
    a.kind = BH_KIND_CUSTOM;
    b.kind = BH_KIND_ALL - 1;
    a.version = b.version = version;
    a.resource = b.resource = good;
    a.group = group;
    CU_ASSERT(valid(&e)); /* b: of the core group */
    a.group = dots;
    CU_ASSERT(!valid(&e));
    a.group = group;
    b.resource = bad;
    CU_ASSERT(!valid(&e));
    b.resource = NULL;
    CU_ASSERT(!valid(&e));
    b.resource = good;
    b.kind = BH_KIND_ALL;
    CU_ASSERT(!valid(&e));
    b.kind = BH_KIND_CUSTOM; /* twice */
    CU_ASSERT(!valid(&e));
    b.kind = BH_KIND_POD;
    CU_ASSERT(!valid(&e));
}

int main(int argc, char **argv)
{
    static const struct bh_test tests[] = {
        {"exactly one payload with its required fields", test_one_payload},
        {"hello, ack and begin carry what they are for", test_feed_control},
        {"changes name a known kind, a known op and an object", test_changes},
        {"grants", test_grant},
        {"kinds that plugins read", test_watched_kinds},
        {"work items carry what their kind needs", test_work},
        {"writes name their object and say what it shall be", test_object_writes},
        {"patches name their object and have a body", test_patches},
        {"results and binder hellos are complete", test_binder_side},
        {"questions ask for something that fits into an answer", test_control},
        {"answers hold pods that are somewhere, and not too many", test_control_reply},
        {"texts of the feed: there where needed, and not too long", test_texts_of_the_feed},
        {"texts of work", test_texts_of_work},
        {"texts of patches", test_texts_of_patches},
        {"texts of the binder's side", test_texts_of_the_binder},
        {"texts of questions and answers", test_texts_of_control},
        {"no field has the number 0, at any depth", test_field_number_0},
        {"a text with NUL is refused", test_text_with_nul_is_refused},
    };
    memset(huge, 'a', sizeof(huge) - 1);
    return bh_test_main("common/bus/validate", tests, BH_ARRAY_LEN(tests), argc, argv);
}
