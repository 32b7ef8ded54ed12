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
    e.feed_hello = NULL;

    e.feed_ack = &a;
    CU_ASSERT(!valid(&e));
    a.has_seq = 1;
    CU_ASSERT(valid(&e));
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
    c.kind = BH_KIND_COUNT;
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
    g.has_lease_term = 0;
    CU_ASSERT(!valid(&e));
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

int main(int argc, char **argv)
{
    static const struct bh_test tests[] = {
        {"exactly one payload with its required fields", test_one_payload},
        {"hello, ack and begin carry what they are for", test_feed_control},
        {"changes name a known kind, a known op and an object", test_changes},
        {"grants", test_grant},
        {"work items carry what their kind needs", test_work},
        {"writes name their object and say what it shall be", test_object_writes},
        {"patches name their object and have a body", test_patches},
        {"results and binder hellos are complete", test_binder_side},
        {"questions ask for something that fits into an answer", test_control},
        {"answers hold pods that are somewhere, and not too many", test_control_reply},
        {"no field has the number 0, at any depth", test_field_number_0},
    };
    memset(huge, 'a', sizeof(huge) - 1);
    return bh_test_main("common/bus/validate", tests, BH_ARRAY_LEN(tests), argc, argv);
}
