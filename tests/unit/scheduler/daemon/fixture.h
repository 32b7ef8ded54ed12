/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/daemon/fixture.h - the scheduler's daemon with a snapshot, a watcher and two
 * binders that the test plays itself
 *
 * Everything is real but the other processes: shared memory under the runtime directory's name,
 * the bus over Unix sockets. Nothing sleeps for a fixed time: spin() turns all sides until a
 * condition holds or 20 s are over.
 */
#ifndef BH_TEST_DAEMON_FIXTURE_H
#define BH_TEST_DAEMON_FIXTURE_H

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>

#include "common/k8s/codec.h"
#include "common/k8s/compile.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/daemon/daemon.h"
#include "tests/unit/harness.h"

#define SPIN_NS        UINT64_C(120000000000)
#define MAX_ITEMS      64u
#define HELLO_EVERY_NS UINT64_C(20000000)

struct item { /* a copy of what a binder was sent */
    uint64_t id, epoch;
    uint32_t attempt;
    Berth__WorkKind kind;
    char name[64], uid[64], node[64], reason[64], nominated[64];
    char message[512], note[512], event[64], related[128];
    bool transition, set_nominated, answered, look;
    char object[64], object_uid[64], version[32], resource[64]; /* what a write is about */
    uint8_t bytes[2048]; /* as it shall be; of a patch its body */
    size_t n_bytes;
};
struct binder {
    struct bh_bus *bus;
    uint64_t young_ns; /* how old its process is, 0: older than anything of before */
    bool mute;         /* says and reads nothing */
    uint32_t window;   /* items it is willing to hold */
    bool forgetful;    /* knows the epoch, but reports nothing of the old one */
    uint64_t epoch, hello_ns;
    uint64_t latency_ns; /* that its answers tell */
    unsigned greeted;    /* hellos of the scheduler: also signs of life where no lease is granted */
    struct item items[MAX_ITEMS];
    unsigned n;
    struct item wire[4]; /* what it says is on the wire when a new scheduler greets it */
    unsigned n_wire;
    uint64_t term; /* of the last work */
    /* the last grant; acknowledged with the next hello unless deaf */
    uint64_t grant_term, grant_serial, valid_ns, grant_stamp;
    uint32_t on_wire;
    bool deaf;
    bool leaving;
};
struct fixture {
    char dir[108];
    uv_loop_t loop;
    struct bh_sched_config *config;
    struct bh_sched_daemon d;
    bool running;
    /* the watcher */
    struct bh_snap_writer *snap;
    struct bh_bus *feed;
    struct bh_peer peer;
    bool known, dead; /* dead: no heartbeat, no answers */
    uint64_t seq, incarnation;
    unsigned hellos, acks;
    bool ready, leaving; /* of the last acknowledgement */
    uint64_t quiet_term, binder_progress;
    struct binder b[2];
    struct bh_arena a, msg;
    uint64_t lost;                     /* pods that the test loses on purpose */
    bool no_beat;                      /* the watcher is stopped */
    struct bh_recorder_options record; /* of the scheduler started next */
};

/* ---- life ------------------------------------------------------------------------------------ */

static inline void scheduler_start(struct fixture *f)
{
    const struct bh_sched_daemon_options o = {.runtime_dir = f->dir,
                                              .metrics_address = "0",
                                              .config = f->config,
                                              .tie_break = BH_TIE_FIRST,
                                              .verify = true,
                                              .record = f->record};
    struct bh_err err = {0};

    CU_ASSERT_FATAL(bh_sched_daemon_init(&f->d, &o, &f->loop, &err) == 0);
    f->d.timing.binder_grace_ns = 0;
    f->running = true;
}

static inline void scheduler_stop(struct fixture *f)
{
    if (f->running) {
        CU_ASSERT(f->d.audit.lost == f->lost);
        bh_sched_daemon_fini(&f->d);
    }
    f->running = false;
    uv_run(&f->loop, UV_RUN_NOWAIT);
}

static inline void watcher_start(struct fixture *f)
{
    const struct bh_snap_options so = {.initial_bytes = 1u << 20, .log_entries = 1u << 10};
    struct bh_snap_stats s;
    struct bh_err err = {0};
    char endpoint[128];

    CU_ASSERT_FATAL(bh_snap_writer_new(f->dir, &so, &f->snap, &err) == 0);
    bh_snap_writer_stats(f->snap, &s);
    f->incarnation = s.incarnation;
    bh_snap_set_lease(f->snap, 0, BH_SNAP_NO_ELECTION);
    bh_snap_open(f->snap); /* as the watcher: it is followed before it is synced */
    CU_ASSERT_FATAL(bh_bus_endpoint(f->dir, "watcher", endpoint, &err) == 0);
    CU_ASSERT_FATAL(bh_bus_open(BH_BUS_ROUTER_BIND, endpoint, NULL, &f->feed, &err) == 0);
    f->known = false;
}

/* As if killed: the segments stay. */
static inline void watcher_stop(struct fixture *f)
{
    bh_snap_writer_free(f->snap);
    bh_bus_close(f->feed);
    f->snap = NULL;
    f->feed = NULL;
    f->known = false;
}

static inline void setup(struct fixture *f)
{
    static unsigned n;
    struct bh_err err = {0};
    char endpoint[128];

    *f = (struct fixture){.running = false};
    snprintf(f->dir, sizeof(f->dir), "%s/d%u", bh_test_tmpdir(), n++);
    CU_ASSERT_FATAL(mkdir(f->dir, 0750) == 0);
    uv_loop_init(&f->loop);
    bh_arena_init(&f->a, 0);
    bh_arena_init(&f->msg, 64u << 20);
    CU_ASSERT_FATAL(bh_sched_config_load(NULL, &f->config, &err) == 0);
    f->config->pod_max_backoff_ns = 0; /* no backoff: a test need not wait for it */
    watcher_start(f);
    scheduler_start(f);
    CU_ASSERT_FATAL(bh_bus_endpoint(f->dir, "scheduler", endpoint, &err) == 0);
    for (int i = 0; i < 2; i++)
        CU_ASSERT_FATAL(
            bh_bus_open(BH_BUS_DEALER_CONNECT, endpoint, i ? "b1" : "b0", &f->b[i].bus, &err) == 0);
    f->b[0].window = f->b[1].window = 32;
    f->b[1].mute = true; /* most tests need one */
}

static inline void teardown(struct fixture *f)
{
    scheduler_stop(f);
    for (int i = 0; i < 2; i++)
        bh_bus_close(f->b[i].bus);
    watcher_stop(f);
    bh_loop_drain_close(&f->loop);
    bh_sched_config_free(f->config);
    bh_arena_fini(&f->a);
    bh_arena_fini(&f->msg);
}

/* ---- the watcher's side ---------------------------------------------------------------------- */

static inline bool tell(struct fixture *f, const Berth__Envelope *e)
{
    return f->known && bh_bus_send(f->feed, &f->peer, e) == BH_BUS_OK;
}

static inline void feed_begin(struct fixture *f)
{
    Berth__FeedBegin b = BERTH__FEED_BEGIN__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;

    b.has_incarnation = true;
    b.incarnation = f->incarnation;
    e.feed_begin = &b;
    f->seq = 0;
    CU_ASSERT_FATAL(tell(f, &e));
}

static inline void feed_batch(struct fixture *f, Berth__ObjectChange *c, bool synced)
{
    Berth__FeedBatch b = BERTH__FEED_BATCH__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;

    b.n_change = c ? 1 : 0;
    b.change = &c;
    b.has_seq = b.has_synced = true;
    b.seq = ++f->seq;
    b.synced = synced;
    e.feed_batch = &b;
    CU_ASSERT_FATAL(tell(f, &e));
}

static inline ProtobufCMessage *decode(struct fixture *f, const ProtobufCMessageDescriptor *d,
                                       const char *json)
{
    ProtobufCMessage *m = NULL;
    struct bh_err err = {0};

    CU_ASSERT_FATAL(bh_decode_object(&f->a, d, json, strlen(json), &m, &err) == 0);
    return m;
}

/* extra: members of spec, each followed by a comma; meta: of metadata, each preceded by one. */
static inline K8s__Pod *pod(struct fixture *f, const char *name, const char *cpu, const char *extra,
                            const char *meta)
{
    static unsigned rv = 1;
    const char *json = bh_arena_printf(
        &f->a,
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"u-%s\",\"resourceVersion\":"
        "\"%u\"%s},\"spec\":{\"schedulerName\":\"default-scheduler\",%s\"containers\":[{\"name\":"
        "\"c\","
        "\"resources\":{\"requests\":{\"cpu\":\"%s\"}}}]}}",
        name, name, rv++, meta, extra, cpu);

    return (K8s__Pod *)decode(f, &k8s__pod__descriptor, json);
}

static inline void feed_pod(struct fixture *f, Berth__ChangeOp op, const K8s__Pod *p)
{
    Berth__ObjectChange c = BERTH__OBJECT_CHANGE__INIT;
    struct bh_buf bytes = {0};

    c.has_op = c.has_kind = c.has_log_pos = true;
    c.op = op;
    c.kind = BH_KIND_POD;
    c.namespace_ = p->metadata->namespace_;
    c.name = p->metadata->name;
    c.uid = p->metadata->uid;
    c.resource_version = p->metadata->resourceversion;
    c.log_pos = bh_snap_head(f->snap);
    if (op == BERTH__CHANGE_OP__CHANGE_ADDED || op == BERTH__CHANGE_OP__CHANGE_MODIFIED) {
        bh_pb_pack(&bytes, &p->base);
        c.has_object = true;
        c.object = (ProtobufCBinaryData){bytes.n, (uint8_t *)bytes.p};
    }
    feed_batch(f, &c, false);
    bh_buf_fini(&bytes);
}

static inline void add_pod(struct fixture *f, const char *name, const char *cpu)
{
    feed_pod(f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(f, name, cpu, "", ""));
}

static inline void end_pod(struct fixture *f, const char *name, Berth__ChangeOp how)
{
    feed_pod(f, how, pod(f, name, "1", "", ""));
}

static inline void snap_node(struct fixture *f, const char *name, const char *cpu)
{
    struct bh_interner in = bh_snap_interner(f->snap);
    struct bh_node_rec *rec;
    struct bh_err err = {0};
    const char *json = bh_arena_printf(
        &f->a,
        "{\"metadata\":{\"name\":\"%s\"},\"status\":{\"allocatable\":{\"cpu\":\"%s\",\"memory\":"
        "\"8Gi\",\"pods\":\"10\"}}}",
        name, cpu);
    const K8s__Node *n = (const K8s__Node *)decode(f, &k8s__node__descriptor, json);

    CU_ASSERT_FATAL(bh_compile_node(&f->a, n, &in, &rec, &err) == 0);
    CU_ASSERT_FATAL(bh_snap_put_node(f->snap, rec) == 0);
}

/* A pod on its node, as the API server has it. extra as in pod(). */
static inline void snap_pod(struct fixture *f, const char *name, const char *cpu, const char *node,
                            const char *extra)
{
    struct bh_interner in = bh_snap_interner(f->snap);
    const K8s__Pod *p =
        pod(f, name, cpu, bh_arena_printf(&f->a, "\"nodeName\":\"%s\",%s", node, extra), "");
    struct bh_shape_rec *shape;
    struct bh_pod_rec *rec;
    struct bh_err err = {0};

    CU_ASSERT_FATAL(bh_compile_shape(&f->a, p, &in, &shape, &err) == 0);
    CU_ASSERT_FATAL(bh_compile_pod(&f->a, p, &in, &rec, &err) == 0);
    CU_ASSERT_FATAL(bh_snap_put_pod(f->snap, rec, shape) == 0);
}

/* A stranger's acknowledgement is answered with number 0, which is a gap for it. */
static inline void refuse_ack(struct fixture *f, const struct bh_peer *id)
{
    Berth__FeedBatch b = BERTH__FEED_BATCH__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;

    b.has_seq = true;
    e.feed_batch = &b;
    (void)bh_bus_send(f->feed, id, &e);
}

static inline void watcher_listen(struct fixture *f)
{
    struct bh_peer id;
    Berth__Envelope *e;

    if (!f->no_beat)
        bh_snap_writer_tick(f->snap);
    bh_arena_reset(&f->msg);
    while (bh_bus_recv(f->feed, &f->msg, &id, &e) == BH_BUS_OK) {
        if (e->feed_hello) {
            f->peer = id;
            f->known = true;
            f->hellos++;
        }
        f->acks += e->feed_ack != NULL;
        if (e->feed_ack) {
            f->ready = e->feed_ack->ready;
            f->leaving = e->feed_ack->leaving;
            f->quiet_term = e->feed_ack->quiet_term;
            f->binder_progress = e->feed_ack->binder_progress;
        }
        if (e->feed_ack && !f->known)
            refuse_ack(f, &id);
    }
}

/* The scheduler anew, with this configuration: profiles and what else. */
static inline void restart_with(struct fixture *f, const char *yaml)
{
    struct bh_err err = {0};
    char path[160];
    FILE *file;

    scheduler_stop(f);
    snprintf(path, sizeof(path), "%s/config.yaml", f->dir);
    file = fopen(path, "w");
    CU_ASSERT_FATAL(file != NULL);
    fprintf(file,
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n%s",
            yaml);
    fclose(file);
    bh_sched_config_free(f->config);
    CU_ASSERT_FATAL(bh_sched_config_load(path, &f->config, &err) == 0);
    f->config->pod_max_backoff_ns = 0;
    scheduler_start(f);
}

/* ... and a node. */
static inline void setup_with(struct fixture *f, const char *yaml)
{
    setup(f);
    restart_with(f, yaml);
    snap_node(f, "n1", "4");
}

/* ---- a binder's side ------------------------------------------------------------------------- */

static inline void binder_hello(struct binder *b, unsigned n_wire)
{
    Berth__BinderHello h = BERTH__BINDER_HELLO__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    Berth__WorkItem items[4], *list[4];
    char name[] = "host/x", ns[] = "ns";

    h.binder = name;
    h.has_epoch_seen = h.has_window = true;
    h.epoch_seen = b->epoch;
    h.window = b->leaving ? 0 : b->window;
    h.has_stamp_boot_ns = h.has_grant_seen = h.has_on_wire = h.has_leaving = true;
    h.leaving = b->leaving;
    h.stamp_boot_ns = bh_boot_ns();
    h.grant_seen = b->deaf ? 0 : b->grant_serial;
    h.on_wire = b->on_wire;
    h.has_age_ns = b->young_ns;
    h.age_ns = b->young_ns;
    for (unsigned i = 0; i < n_wire; i++) {
        berth__work_item__init(&items[i]);
        items[i].has_id = items[i].has_kind = true;
        items[i].id = b->wire[i].id;
        items[i].kind = b->wire[i].kind;
        items[i].namespace_ = ns;
        items[i].name = b->wire[i].name;
        items[i].uid = b->wire[i].uid;
        items[i].node = b->wire[i].node;
        list[i] = &items[i];
    }
    h.n_in_flight = n_wire;
    h.in_flight = list;
    e.binder_hello = &h;
    (void)bh_bus_send(b->bus, NULL, &e);
    b->hello_ns = bh_mono_ns();
}

#define COPY(to, from) snprintf((to), sizeof(to), "%s", (from) ? (from) : "")

static inline void binder_keep(struct binder *b, uint64_t epoch, const Berth__WorkItem *w)
{
    struct item *i;

    CU_ASSERT_FATAL(b->n < MAX_ITEMS);
    i = &b->items[b->n++];
    *i = (struct item){.id = w->id, .epoch = epoch, .kind = w->kind, .attempt = w->attempt};
    COPY(i->name, w->name);
    COPY(i->uid, w->uid);
    COPY(i->node, w->node);
    COPY(i->nominated, w->nominated_node);
    i->set_nominated = w->set_nominated_node;
    i->look = w->look;
    if (w->condition) {
        COPY(i->reason, w->condition->reason);
        COPY(i->message, w->condition->message);
        i->transition = w->condition->transition;
    }
    if (w->event) {
        COPY(i->event, w->event->reason);
        COPY(i->note, w->event->note);
        const Berth__ObjectReference *r = w->event->related;
        if (r)
            snprintf(i->related, sizeof(i->related), "%s %s %s/%s %s @%s", r->api_version, r->kind,
                     r->namespace_, r->name, r->uid, r->resource_version);
    }
    if (w->write) {
        COPY(i->object, w->write->name);
        COPY(i->object_uid, w->write->uid);
        COPY(i->version, w->write->resource_version);
        const Berth__ObjectPatch *p = w->write->patch;
        COPY(i->resource, p ? p->resource : "");
        i->n_bytes = BH_MIN(p ? strlen(p->body) : w->write->object.len, sizeof(i->bytes));
        memcpy(i->bytes, p ? (uint8_t *)p->body : w->write->object.data, i->n_bytes);
    }
}

static inline void binder_listen(struct fixture *f, struct binder *b)
{
    Berth__Envelope *e;

    if (b->mute)
        return;
    if (bh_mono_ns() - b->hello_ns > HELLO_EVERY_NS)
        binder_hello(b, 0);
    bh_arena_reset(&f->msg);
    while (bh_bus_recv(b->bus, &f->msg, NULL, &e) == BH_BUS_OK) {
        for (size_t i = 0; e->work && i < e->work->n_item; i++)
            binder_keep(b, e->work->epoch, e->work->item[i]);
        if (e->work)
            b->term = e->work->lease_term;
        if (e->grant) {
            b->grant_term = e->grant->lease_term;
            b->grant_serial = e->grant->serial;
            b->valid_ns = e->grant->valid_ns;
            b->grant_stamp = e->grant->stamp_boot_ns;
        }
        b->greeted += e->scheduler_hello != NULL;
        if (e->scheduler_hello && e->scheduler_hello->epoch != b->epoch) {
            if (b->n_wire && !b->forgetful)
                binder_hello(b, b->n_wire);
            b->epoch = e->scheduler_hello->epoch;
            binder_hello(b, 0);
        }
    }
}

static inline void answer_object(struct binder *b, struct item *i, Berth__Outcome o,
                                 const char *message, const struct bh_buf *object)
{
    Berth__WorkResult r = BERTH__WORK_RESULT__INIT, *list = &r;
    Berth__ResultBatch batch = BERTH__RESULT_BATCH__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;

    r.has_id = r.has_epoch = r.has_outcome = r.has_latency_ns = true;
    r.id = i->id;
    r.epoch = i->epoch;
    r.outcome = o;
    r.latency_ns = b->latency_ns;
    r.uid = i->uid;
    r.message = (char *)(uintptr_t)message;
    r.has_object = object != NULL;
    if (object)
        r.object = (ProtobufCBinaryData){object->n, (uint8_t *)object->p};
    batch.n_result = 1;
    batch.result = &list;
    batch.has_window = true;
    batch.window = b->window;
    e.results = &batch;
    i->answered = true;
    CU_ASSERT(bh_bus_send(b->bus, NULL, &e) == BH_BUS_OK);
}

static inline void answer(struct binder *b, struct item *i, Berth__Outcome o, const char *message)
{
    answer_object(b, i, o, message, NULL);
}

static inline struct item *find_item(struct binder *b, Berth__WorkKind kind, const char *name)
{
    for (unsigned i = b->n; i-- > 0;) /* the newest */
        if (b->items[i].kind == kind && bh_streq(b->items[i].name, name) && !b->items[i].answered)
            return &b->items[i];
    return NULL;
}

static inline unsigned count_items(const struct binder *b, Berth__WorkKind kind, const char *name)
{
    unsigned n = 0;

    for (unsigned i = 0; i < b->n; i++)
        n += b->items[i].kind == kind && bh_streq(b->items[i].name, name);
    return n;
}

static inline bool has_event(const struct binder *b, const char *reason, const char *note)
{
    for (unsigned i = 0; i < b->n; i++)
        if (b->items[i].kind == BERTH__WORK_KIND__WORK_EVENT &&
            bh_streq(b->items[i].event, reason) && bh_streq(b->items[i].note, note))
            return true;
    return false;
}

/* ---- time ------------------------------------------------------------------------------------ */

static inline void one_turn(struct fixture *f)
{
    unsigned work = f->running ? bh_sched_daemon_turn(&f->d) : 0;

    uv_run(&f->loop, UV_RUN_NOWAIT);
    if (f->feed && !f->dead)
        watcher_listen(f);
    for (int i = 0; i < 2; i++)
        binder_listen(f, &f->b[i]);
    if (!work)
        poll(NULL, 0, 1);
}

/* Turns everything until the expression holds. */
#define SPIN(f, expr)                                                                              \
    do {                                                                                           \
        uint64_t end_ = bh_mono_ns() + SPIN_NS;                                                    \
        bool held_ = false;                                                                        \
        while (!(held_ = (expr)) && bh_mono_ns() < end_)                                           \
            one_turn(f);                                                                           \
        CU_ASSERT_FATAL(held_);                                                                    \
    } while (0)

/* Everything that was sent has been seen by the scheduler: it acknowledged the newest batch, and
 * after that took a few more turns. */
static inline void settle(struct fixture *f)
{
    SPIN(f, f->d.in.feed.seq == f->seq);
    for (int i = 0; i < 20; i++)
        one_turn(f);
}

/* A synced snapshot with the nodes put so far, a complete feed without pods. */
static inline void go(struct fixture *f)
{
    bh_snap_set_synced(f->snap, true);
    SPIN(f, f->known);
    feed_begin(f);
    feed_batch(f, NULL, true);
    SPIN(f, bh_sched_may_decide(&f->d));
}

/* NULL: nothing hangs on it. */
static inline struct bh_pod_state *pod_of(struct fixture *f, const char *uid)
{
    return bh_pods_find(f->d.pods, bh_str_c(uid));
}

static inline struct bh_work *bind_of(struct fixture *f, const char *uid)
{
    return pod_of(f, uid) ? pod_of(f, uid)->bind : NULL;
}

static inline enum bh_queue_place place(struct fixture *f, const char *name)
{
    const struct bh_pod_state *s = pod_of(f, bh_arena_printf(&f->a, "u-%s", name));

    return s ? s->place : BH_Q_NONE;
}

static inline bool is_assumed(struct fixture *f, const char *name)
{
    return bh_engine_is_assumed(f->d.engine, bh_str_c(bh_arena_printf(&f->a, "u-%s", name)));
}

static inline struct item *await(struct fixture *f, struct binder *b, Berth__WorkKind kind,
                                 const char *name)
{
    SPIN(f, find_item(b, kind, name) != NULL);
    return find_item(b, kind, name);
}
#endif
