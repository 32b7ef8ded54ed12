/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/feed.c - what the watcher tells: the snapshot's change log and the feed of
 * objects
 *
 * Two channels, one order: an object of the feed carries the log position it belongs to, and the
 * log is followed up to there before the object is acted on. So a pod that got bound is on its node
 * in the cache before its queue entry goes, and never counts nowhere. Upstream:
 * pkg/scheduler/eventhandlers.go; differences: a rebuild (new watcher) wakes every rejected pod
 * instead of replaying single events.
 */
#include "common/base/log.h"
#include "common/k8s/codec.h"
#include "common/k8s/compile.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/daemon/daemon.h"
#include <errno.h>

#define HELLO_AGAIN_NS UINT64_C(1000000000)
#define ACK_EVERY_NS   UINT64_C(500000000)
#define FEED_CREDIT    64u

/* ---- snapshot ----------------------------------------------------------------------------------
 */

static void send_event(struct bh_sched_daemon *d, struct bh_cluster_event *ev, const uint32_t *bits,
                       unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        ev->action = bits[i];
        bh_queue_event(d->queue, ev, bh_sched_now(d));
    }
}

static void node_put(struct bh_sched_daemon *d, const struct bh_node_rec *n)
{
    const struct bh_node_rec *known = bh_engine_find_node(d->engine, n->name);
    BH_CLEANUP(bh_freep) struct bh_node_rec *old = known ? bh_memdup(known, known->h.size) : NULL;
    struct bh_cluster_event ev = {.resource = BH_EV_NODE, .old_node = old, .new_node = n};
    uint32_t bits[8] = {BH_EV_ADD};
    unsigned count = old ? bh_node_diff(old, n, bits) : 1;

    bh_engine_put_node(d->engine, n);
    if (!d->rebuilding)
        send_event(d, &ev, bits, count);
}

static void node_del(struct bh_sched_daemon *d, const struct bh_node_rec *n)
{
    struct bh_cluster_event ev = {.resource = BH_EV_NODE, .old_node = n};
    const uint32_t bit = BH_EV_DELETE;

    /* queue first, cache second: as upstream */
    if (!d->rebuilding)
        send_event(d, &ev, &bit, 1);
    bh_engine_del_node(d->engine, n->name);
}

static void pod_put(struct bh_sched_daemon *d, const struct bh_pod_rec *pod,
                    const struct bh_shape_rec *shape)
{
    struct bh_str uid = bh_rec_text(pod, pod->uid);
    struct bh_cluster_event ev = {
        .resource = BH_EV_POD_ASSIGNED, .new_pod = pod, .new_shape = shape};
    bh_shape_id old_shape = 0, id;
    const struct bh_pod_rec *known = bh_engine_find_pod(d->engine, uid, &old_shape);
    BH_CLEANUP(bh_freep) struct bh_pod_rec *old = NULL;
    BH_CLEANUP(bh_freep) struct bh_shape_rec *old_rec = NULL;
    uint32_t bits[8] = {BH_EV_ADD};
    unsigned count = 1;

    /* An assumed pod becoming visible is an add, as upstream's handler sees it. */
    if (known && !bh_engine_is_assumed(d->engine, uid)) {
        const struct bh_shape_rec *rec = bh_engine_shape_rec(d->engine, old_shape);
        old = bh_memdup(known, known->h.size);
        old_rec = bh_memdup(rec, rec->h.size);
        ev.old_pod = old;
        ev.old_shape = old_rec;
        count = bh_pod_diff(old, old_rec, pod, shape, bits);
    }
    id = bh_engine_shape(d->engine, shape);
    bh_engine_put_pod(d->engine, pod, id);
    bh_engine_shape_unref(d->engine, id);
    if (!d->rebuilding)
        send_event(d, &ev, bits, count);
}

static void pod_del(struct bh_sched_daemon *d, const struct bh_pod_rec *pod,
                    const struct bh_shape_rec *shape)
{
    struct bh_cluster_event ev = {
        .resource = BH_EV_POD_ASSIGNED, .old_pod = pod, .old_shape = shape};
    const uint32_t bit = BH_EV_DELETE;

    bh_engine_del_pod(d->engine, bh_rec_text(pod, pod->uid));
    if (!d->rebuilding)
        send_event(d, &ev, &bit, 1);
}

static void on_snapshot(void *arg, const struct bh_snap_event *ev)
{
    struct bh_sched_daemon *d = arg;

    d->followed++;
    switch (ev->op) {
    case BH_SNAP_NODE_PUT:
        node_put(d, ev->node);
        break;
    case BH_SNAP_NODE_DEL:
        node_del(d, ev->node);
        break;
    case BH_SNAP_POD_PUT:
        pod_put(d, ev->pod, ev->shape);
        break;
    case BH_SNAP_POD_DEL:
        pod_del(d, ev->pod, ev->shape);
        break;
    case BH_SNAP_SHAPE_PUT: /* shapes come with their pods; the engine interns them itself */
    case BH_SNAP_SHAPE_DEL:
        break;
    case BH_SNAP_BEGIN:
        d->rebuilding = true;
        bh_engine_rebuild_begin(d->engine);
        break;
    case BH_SNAP_END:
        bh_engine_rebuild_end(d->engine);
        d->rebuilding = false;
        bh_queue_wake_all(d->queue, bh_sched_now(d));
        bh_log_info("Snapshot attached", bh_kv_u("nodes", bh_engine_node_count(d->engine)),
                    bh_kv_u("pods", bh_engine_pod_count(d->engine)));
        break;
    }
}

static void trouble(struct bh_sched_daemon *d, const char *text)
{
    if (bh_streq(d->snapshot_trouble, text))
        return;
    snprintf(d->snapshot_trouble, sizeof(d->snapshot_trouble), "%s", text);
    if (*text)
        bh_log_warn("Waiting for the snapshot", bh_kv_s("why", text));
}

bool bh_sched_snapshot_fresh(const struct bh_sched_daemon *d)
{
    struct bh_snap_stats s;
    uint64_t now = bh_boot_ns();

    return bh_snap_reader_info(d->reader, &s) &&
           now - BH_MIN(s.heartbeat_boot_ns, now) < d->timing.snapshot_stale_ns;
}

unsigned bh_sched_follow(struct bh_sched_daemon *d)
{
    uint64_t before = d->followed;
    enum bh_snap_outcome o = bh_snap_follow(d->reader, BH_TURN_LOG_EVENTS, on_snapshot, d);

    d->snapshot_ready = o == BH_SNAP_OK || o == BH_SNAP_MORE;
    d->snapshot_current = o == BH_SNAP_OK;
    switch (o) {
    case BH_SNAP_OK:
    case BH_SNAP_MORE:
        trouble(d, bh_sched_snapshot_fresh(d) ? ""
                                              : "its heartbeat stopped: is berth-watcher running?");
        break;
    case BH_SNAP_NOT_READY:
        trouble(d, "no synced snapshot yet: is berth-watcher running?");
        break;
    case BH_SNAP_NEW_INCARNATION: /* the next turn attaches again and rebuilds */
    case BH_SNAP_OVERRUN:
        return 1;
    case BH_SNAP_VERSION:
    case BH_SNAP_CORRUPT:
        trouble(d, bh_snap_reader_error(d->reader));
        break;
    }
    return (unsigned)(d->followed - before);
}

static bool one_incarnation(const struct bh_sched_daemon *d)
{
    struct bh_snap_stats s;

    return bh_snap_reader_info(d->reader, &s) && s.incarnation == d->feed_incarnation;
}

/* Up to the log position an object belongs to. The writer publishes before it sends, so this ends
 * unless the segment was replaced meanwhile; then a rebuild covers what is missing. */
static void follow_to(struct bh_sched_daemon *d, uint64_t pos)
{
    for (unsigned i = 0; i < 64 && bh_snap_reader_pos(d->reader) < pos; i++)
        if (bh_sched_follow(d) == 0)
            break;
}

/* ---- pending pods ------------------------------------------------------------------------------
 */

/* Fingerprint of the condition that the pod carries already (ours, from before a restart), 0 =
 * none. */
static uint64_t condition_of(const K8s__Pod *p)
{
    for (size_t i = 0; p->status && i < p->status->n_conditions; i++) {
        const K8s__PodCondition *c = p->status->conditions[i];
        if (c->type && bh_streq(c->type, "PodScheduled") && c->status &&
            bh_streq(c->status, "False") && c->reason && c->message)
            return bh_sched_condition_hash(c->reason, c->message);
    }
    return 0;
}

/* The names outside and inside of an object are the same, and short enough for every message they
 * go into: the feed is checked, not trusted. */
static bool names_match(const Berth__ObjectChange *c, const struct bh_pod_rec *pod)
{
    struct bh_str ns = bh_rec_text(pod, pod->namespace_);

    return ns.n && bh_str_eqc(ns, c->namespace_) &&
           bh_str_eqc(bh_rec_text(pod, pod->name), c->name) &&
           bh_str_eqc(bh_rec_text(pod, pod->uid), c->uid);
}

static int compile(struct bh_sched_daemon *d, const Berth__ObjectChange *c, K8s__Pod **ret_p,
                   struct bh_shape_rec **ret_shape, struct bh_pod_rec **ret_pod, struct bh_err *err)
{
    struct bh_interner in = bh_symtab_interner(d->symtab);
    ProtobufCMessage *m = NULL;
    int rc = bh_pb_unpack(&d->object_arena, &k8s__pod__descriptor, c->object.data, c->object.len,
                          &m, err);

    *ret_p = (K8s__Pod *)m;
    if (rc == 0)
        rc = bh_compile_shape(&d->object_arena, *ret_p, &in, ret_shape, err);
    if (rc == 0)
        rc = bh_compile_pod(&d->object_arena, *ret_p, &in, ret_pod, err);
    if (rc == 0 && !names_match(c, *ret_pod))
        rc = bh_err_set(err, -EINVAL, "the pod inside has another name or uid");
    return rc;
}

static void pod_changed(struct bh_sched_daemon *d, const Berth__ObjectChange *c)
{
    struct bh_err err = {0};
    K8s__Pod *p = NULL;
    struct bh_shape_rec *shape = NULL;
    struct bh_pod_rec *pod = NULL;
    struct bh_str uid;
    uint64_t condition;

    if (compile(d, c, &p, &shape, &pod, &err) < 0) {
        bh_log_error("Skipping a pod that cannot be read", bh_kv_s("namespace", c->namespace_),
                     bh_kv_s("pod", c->name), bh_kv_s("err", err.msg));
        return;
    }
    uid = bh_rec_text(pod, pod->uid);
    if (!bh_engine_responsible(d->engine, bh_sym_text(d->symtab, shape->scheduler_name)))
        return;
    if (bh_engine_is_assumed(d->engine, uid)) {
        if (pod->flags & BH_POD_TERMINATING) {
            bh_sched_pod_gone(d, uid);
            return;
        }
        /* else the entry gets the new object, in case the bind fails */
    } else if (bh_engine_find_pod(d->engine, uid, NULL)) {
        return; /* on its node in the cache: the log was ahead, BOUND follows */
    }
    bh_sched_pod_update(d, pod, shape, c->resource_version);
    condition = condition_of(p);
    if (condition)
        bh_queue_told(d->queue, uid, condition, pod->nominated_node);
}

static void pod_deleted(struct bh_sched_daemon *d, const Berth__ObjectChange *c)
{
    struct bh_str uid = bh_str_c(c->uid);

    bh_sched_unadopt(d, uid);
    bh_sched_pod_gone(d, uid);
}

/* The binding is visible: the cache has the pod through the log already. */
static void pod_bound(struct bh_sched_daemon *d, const Berth__ObjectChange *c)
{
    struct bh_str uid = bh_str_c(c->uid);
    struct bh_work *w = bh_ledger_bind_of(d->ledger, c->uid);

    bh_sched_unadopt(d, uid);
    if (w)
        w->bound_seen = true; /* its answer ends the entry */
    else
        bh_queue_delete(d->queue, uid);
}

static void apply_pod(struct bh_sched_daemon *d, const Berth__ObjectChange *c)
{
    if (!c->uid || !*c->uid)
        bh_log_error("Skipping a pod without uid", bh_kv_s("namespace", c->namespace_),
                     bh_kv_s("pod", c->name));
    else if (c->op == BERTH__CHANGE_OP__CHANGE_BOUND)
        pod_bound(d, c);
    else if (c->op == BERTH__CHANGE_OP__CHANGE_DELETED)
        pod_deleted(d, c);
    else
        pod_changed(d, c);
}

static void apply_object(struct bh_sched_daemon *d, const Berth__ObjectChange *c)
{
    bool gone = c->op == BERTH__CHANGE_OP__CHANGE_DELETED;
    bool added = c->op == BERTH__CHANGE_OP__CHANGE_ADDED;
    struct bh_err err = {0};
    struct bh_cluster_event ev = {.resource = BH_EV_OBJECT,
                                  .kind = (enum bh_kind)c->kind,
                                  .action = gone    ? BH_EV_DELETE
                                            : added ? BH_EV_ADD
                                                    : BH_EV_UPDATE};

    if (c->op == BERTH__CHANGE_OP__CHANGE_BOUND)
        return; /* only pods are bound */
    if (bh_engine_put_object_event(d->engine, &ev, c->namespace_, c->name,
                                   gone ? NULL : c->object.data, c->object.len, &err) < 0)
        bh_log_error("Skipping an object that cannot be read",
                     bh_kv_s("kind", bh_kinds[c->kind].kind_name), bh_kv_s("name", c->name),
                     bh_kv_s("err", err.msg));
    else if (!c->in_list)
        bh_queue_event(d->queue, &ev, bh_sched_now(d));
}

static void apply(struct bh_sched_daemon *d, const Berth__ObjectChange *c)
{
    follow_to(d, c->log_pos);
    if (c->kind == BH_KIND_POD)
        apply_pod(d, c);
    else
        apply_object(d, c);
    bh_arena_reset(&d->object_arena);
}

/* ---- feed --------------------------------------------------------------------------------------
 */

static void send_hello(struct bh_sched_daemon *d)
{
    Berth__FeedHello h = BERTH__FEED_HELLO__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;

    h.has_epoch = h.has_credit = true;
    h.epoch = d->epoch;
    h.credit = FEED_CREDIT;
    e.feed_hello = &h;
    d->feed_begun = d->feed_synced = false;
    d->hello_sent_ns = bh_mono_ns();
    (void)bh_bus_send(d->feed, NULL, &e);
}

static void send_ack(struct bh_sched_daemon *d)
{
    Berth__FeedAck a = BERTH__FEED_ACK__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;

    a.has_seq = a.has_credit = true;
    a.seq = d->feed_seq;
    a.credit = FEED_CREDIT;
    e.feed_ack = &a;
    d->ack_sent_ns = bh_mono_ns();
    (void)bh_bus_send(d->feed, NULL, &e);
}

static void on_begin(struct bh_sched_daemon *d, const Berth__FeedBegin *b)
{
    d->feed_begun = true;
    d->feed_synced = false;
    d->feed_seq = 0;
    d->feed_incarnation = b->incarnation;
    d->lease_term = b->lease_term;
    bh_queue_sync_begin(d->queue);
    bh_engine_objects_begin(d->engine);
}

/* The initial state is complete: what was not named is gone, and events in between are not known.
 */
static void feed_complete(struct bh_sched_daemon *d)
{
    struct bh_queue_stats s;

    d->feed_synced = true;
    bh_queue_sync_end(d->queue);
    bh_engine_objects_end(d->engine);
    bh_sched_review_adopted(d);
    bh_queue_wake_all(d->queue, bh_sched_now(d));
    d->sweep_due = true;
    bh_queue_stats(d->queue, &s);
    bh_log_info("Watcher's feed is complete",
                bh_kv_u("pending", s.active + s.backoff + s.unschedulable + s.gated));
}

static void on_batch(struct bh_sched_daemon *d, const Berth__FeedBatch *b)
{
    if (!d->feed_begun)
        return;
    if (b->seq != d->feed_seq + 1) {
        bh_log_warn("Gap in the watcher's feed, asking for everything again",
                    bh_kv_u("expected", d->feed_seq + 1), bh_kv_u("got", b->seq));
        send_hello(d);
        return;
    }
    for (size_t i = 0; i < b->n_change; i++)
        apply(d, b->change[i]);
    d->feed_seq = b->seq;
    d->lease_term = b->lease_term;
    d->leading = b->leading;
    if (b->synced && !d->feed_synced)
        feed_complete(d);
    send_ack(d);
}

unsigned bh_sched_drain_feed(struct bh_sched_daemon *d)
{
    unsigned n = 0;
    Berth__Envelope *e;

    for (; n < BH_TURN_MESSAGES; n++) {
        enum bh_bus_outcome o;
        bh_arena_reset(&d->bus_arena);
        o = bh_bus_recv(d->feed, &d->bus_arena, NULL, &e);
        if (o == BH_BUS_EMPTY)
            break;
        if (o != BH_BUS_OK)
            continue;
        if (e->feed_begin)
            on_begin(d, e->feed_begin);
        else if (e->feed_batch)
            on_batch(d, e->feed_batch);
    }
    return n;
}

/* Says hello until the watcher answers; then acknowledges now and then, also without news: a
 * watcher that does not know us (it restarted, or dropped us) answers with a gap. */
void bh_sched_feed_tick(struct bh_sched_daemon *d)
{
    uint64_t now = bh_mono_ns();

    if (!d->feed_begun && now - d->hello_sent_ns > HELLO_AGAIN_NS)
        send_hello(d);
    else if (d->feed_begun && now - d->ack_sent_ns > ACK_EVERY_NS)
        send_ack(d);
}

bool bh_sched_may_decide(const struct bh_sched_daemon *d)
{
    return d->snapshot_ready && !d->rebuilding && d->feed_synced && d->leading &&
           one_incarnation(d) && bh_mono_ns() - d->started_ns >= d->timing.binder_grace_ns &&
           bh_sched_snapshot_fresh(d);
}

/* ---- sweep -------------------------------------------------------------------------------------
 */

struct lost {
    struct bh_sched_daemon *d;
    char **uid;
    size_t n;
};

static void look_for_lost(void *arg, struct bh_str uid)
{
    struct lost *l = arg;
    char *copy;

    if (bh_queue_find(l->d->queue, uid, NULL))
        return;
    copy = bh_strndup(uid.p, uid.n);
    if (bh_ledger_bind_of(l->d->ledger, copy)) {
        free(copy);
        return;
    }
    l->uid = bh_reallocarray(l->uid, l->n + 1, sizeof(*l->uid));
    l->uid[l->n++] = copy;
}

void bh_sched_sweep(struct bh_sched_daemon *d)
{
    struct lost l = {.d = d};

    if (!d->sweep_due || !d->snapshot_current || d->rebuilding || !d->feed_synced ||
        !one_incarnation(d))
        return;
    d->sweep_due = false;
    bh_engine_each_assumed(d->engine, look_for_lost, &l);
    for (size_t i = 0; i < l.n; i++) {
        bh_sched_pod_gone(d, bh_str_c(l.uid[i]));
        free(l.uid[i]);
    }
    if (l.n)
        bh_log_info("Forgot assumed pods that are gone", bh_kv_u("pods", l.n));
    free(l.uid);
}
