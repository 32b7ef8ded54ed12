/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/intake.c - what a watcher tells, into an engine
 *
 * Upstream: pkg/scheduler/eventhandlers.go; differences: see intake.h.
 */
#include "scheduler/daemon/intake.h"

#include <errno.h>

#include "common/base/log.h"
#include "common/base/probe.h"
#include "common/k8s/codec.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

#define OBJECT_MAX_BYTES (64u << 20) /* one decoded object */
#define FOLLOW_EVENTS    4096u       /* at a time, on the way to an object's position */

/* ---- snapshot -------------------------------------------------------------------------------- */

static void tell(struct bh_intake *in, struct bh_cluster_event *ev, const uint32_t *bits,
                 unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        ev->action = bits[i];
        in->cb.event(in->cb.arg, ev);
    }
}

/* Single changes are not reported while everything is delivered anew. */
static bool quiet(const struct bh_intake *in)
{
    return in->rebuilding || !in->cb.event;
}

void bh_intake_put_node(struct bh_intake *in, const struct bh_node_rec *n)
{
    const struct bh_node_rec *known = bh_engine_find_node(in->engine, n->name);
    BH_CLEANUP(bh_freep) struct bh_node_rec *old = NULL;
    struct bh_cluster_event ev = {.resource = BH_EV_NODE, .new_node = n};
    uint32_t bits[8] = {BH_EV_ADD};
    unsigned count = 1;

    if (quiet(in)) {
        bh_engine_put_node(in->engine, n);
        return;
    }
    if (known) {
        ev.old_node = old = bh_memdup(known, known->h.size);
        count = bh_node_diff(old, n, bits);
    }
    bh_engine_put_node(in->engine, n);
    tell(in, &ev, bits, count);
}

void bh_intake_del_node(struct bh_intake *in, const struct bh_node_rec *n)
{
    struct bh_cluster_event ev = {.resource = BH_EV_NODE, .old_node = n};
    const uint32_t bit = BH_EV_DELETE;

    /* queue first, cache second: as upstream */
    if (!quiet(in))
        tell(in, &ev, &bit, 1);
    bh_engine_del_node(in->engine, n->name);
}

/* Another hand bound it than the one that assumed it, to another node. */
static void tell_room(struct bh_intake *in, const struct bh_pod_rec *assumed,
                      const struct bh_shape_rec *shape)
{
    struct bh_cluster_event ev = {.resource = BH_EV_POD_ASSIGNED,
                                  .old_pod = assumed,
                                  .old_shape = shape,
                                  .was_assumed = true};
    const uint32_t bit = BH_EV_DELETE;

    tell(in, &ev, &bit, 1);
}

void bh_intake_put_pod(struct bh_intake *in, const struct bh_pod_rec *pod,
                       const struct bh_shape_rec *shape)
{
    struct bh_str uid = bh_rec_text(pod, pod->uid);
    struct bh_cluster_event ev = {
        .resource = BH_EV_POD_ASSIGNED, .new_pod = pod, .new_shape = shape};
    const struct bh_known_pod known =
        quiet(in) ? (struct bh_known_pod){.rec = NULL} : bh_engine_known_pod(in->engine, uid);
    BH_CLEANUP(bh_freep) struct bh_pod_rec *old = NULL;
    BH_CLEANUP(bh_freep) struct bh_shape_rec *old_rec = NULL;
    uint32_t bits[8] = {BH_EV_ADD};
    unsigned count = 1;

    const bool moved = known.rec && known.assumed && known.rec->node != pod->node;
    if (known.rec && (!known.assumed || moved)) {
        const struct bh_shape_rec *rec = bh_engine_shape_rec(in->engine, known.shape);
        old = bh_memdup(known.rec, known.rec->h.size);
        old_rec = bh_memdup(rec, rec->h.size);
    }
    /* An assumed pod becoming visible is an add, as upstream's handler sees it. */
    if (known.rec && !known.assumed) {
        ev.old_pod = old;
        ev.old_shape = old_rec;
        count = bh_pod_diff(old, old_rec, pod, shape, bits);
    } else if (known.rec) {
        bh_probe_pod(confirmed, uid, pod->node);
    }
    bh_shape_id id = bh_engine_shape(in->engine, shape);
    bh_engine_put_pod(in->engine, pod, id);
    bh_engine_shape_unref(in->engine, id);
    if (in->cb.assigned)
        in->cb.assigned(in->cb.arg, pod, shape);
    if (quiet(in))
        return;
    if (moved)
        tell_room(in, old, old_rec);
    tell(in, &ev, bits, count);
}

void bh_intake_del_pod(struct bh_intake *in, const struct bh_pod_rec *pod,
                       const struct bh_shape_rec *shape)
{
    struct bh_cluster_event ev = {
        .resource = BH_EV_POD_ASSIGNED, .old_pod = pod, .old_shape = shape};
    const uint32_t bit = BH_EV_DELETE;

    bh_engine_del_pod(in->engine, bh_rec_text(pod, pod->uid));
    if (!quiet(in))
        tell(in, &ev, &bit, 1);
}

static void on_snapshot(void *arg, const struct bh_snap_event *ev)
{
    struct bh_intake *in = arg;

    in->followed++;
    switch (ev->op) {
    case BH_SNAP_NODE_PUT:
        bh_intake_put_node(in, ev->node);
        break;
    case BH_SNAP_NODE_DEL:
        bh_intake_del_node(in, ev->node);
        break;
    case BH_SNAP_POD_PUT:
        bh_intake_put_pod(in, ev->pod, ev->shape);
        break;
    case BH_SNAP_POD_DEL:
        bh_intake_del_pod(in, ev->pod, ev->shape);
        break;
    case BH_SNAP_SHAPE_PUT: /* shapes come with their pods; the engine interns them itself */
    case BH_SNAP_SHAPE_DEL:
        break;
    case BH_SNAP_BEGIN:
        in->rebuilding = true;
        bh_engine_rebuild_begin(in->engine);
        break;
    case BH_SNAP_END:
        bh_engine_rebuild_end(in->engine);
        in->rebuilding = false;
        if (in->cb.rebuilt)
            in->cb.rebuilt(in->cb.arg);
        break;
    }
}

static void trouble(struct bh_intake *in, const char *text)
{
    if (bh_streq(in->snapshot_trouble, text))
        return;
    snprintf(in->snapshot_trouble, sizeof(in->snapshot_trouble), "%s", text);
    if (*text && !in->feed.o.observer)
        bh_log_warn("Waiting for the snapshot", bh_kv_s("why", text));
}

bool bh_intake_fresh(const struct bh_intake *in, uint64_t max_age_ns)
{
    struct bh_snap_stats s;
    uint64_t now = bh_boot_ns();

    return bh_snap_reader_info(in->reader, &s) &&
           now - BH_MIN(s.heartbeat_boot_ns, now) < max_age_ns;
}

static void look_at_lease(struct bh_intake *in)
{
    uint64_t term, until;

    if (bh_snap_reader_lease(in->reader, &term, &until)) {
        if (term || until) {
            in->lease_term = term;
            in->lease_until_ns = until;
        } else if (in->lease_until_ns == BH_SNAP_NO_ELECTION) {
            in->lease_until_ns = 0; /* there is an election now, and nothing is known of it yet */
        }
    }
    in->leading = bh_boot_ns() < in->lease_until_ns;
}

unsigned bh_intake_follow(struct bh_intake *in, unsigned max_events)
{
    uint64_t before = in->followed;
    enum bh_snap_outcome o = bh_snap_follow(in->reader, max_events, on_snapshot, in);

    look_at_lease(in);
    in->snapshot_ready = o == BH_SNAP_OK || o == BH_SNAP_MORE;
    in->snapshot_current = o == BH_SNAP_OK;
    switch (o) {
    case BH_SNAP_OK:
    case BH_SNAP_MORE:
        trouble(in, bh_intake_fresh(in, BH_SNAPSHOT_STALE_NS)
                        ? ""
                        : "its heartbeat stopped: is berth-watcher running?");
        break;
    case BH_SNAP_NOT_READY:
        trouble(in, in->followed && bh_intake_fresh(in, BH_SNAPSHOT_STALE_NS)
                        ? "berth-watcher has not listed everything yet"
                        : bh_snap_reader_error(in->reader));
        break;
    case BH_SNAP_NEW_INCARNATION: /* the next turn attaches again and rebuilds */
    case BH_SNAP_OVERRUN:
        return 1;
    case BH_SNAP_VERSION:
    case BH_SNAP_CORRUPT:
        trouble(in, bh_snap_reader_error(in->reader));
        break;
    }
    return (unsigned)(in->followed - before);
}

bool bh_intake_one_incarnation(const struct bh_intake *in)
{
    struct bh_snap_stats s;

    return bh_snap_reader_info(in->reader, &s) && s.incarnation == in->feed.incarnation;
}

bool bh_intake_complete(const struct bh_intake *in)
{
    return in->snapshot_current && !in->rebuilding && in->feed.synced &&
           bh_intake_one_incarnation(in);
}

/* ---- objects --------------------------------------------------------------------------------- */

static void pod_changed(struct bh_intake *in, const Berth__ObjectChange *c)
{
    struct bh_interner interner = bh_symtab_interner(in->symtab);
    struct bh_err err = {0};
    ProtobufCMessage *m = NULL;
    struct bh_shape_rec *shape = NULL;
    struct bh_pod_rec *pod = NULL;
    int rc = bh_pb_unpack(&in->object_arena, &k8s__pod__descriptor, c->object.data, c->object.len,
                          &m, &err);
    K8s__Pod *p = (K8s__Pod *)m;

    if (rc == 0)
        rc = bh_compile_shape(&in->object_arena, p, &interner, &shape, &err);
    if (rc == 0)
        rc = bh_compile_pod(&in->object_arena, p, &interner, &pod, &err);
    /* The names outside and inside of an object are the same, and short enough for every message
     * they go into: the feed is checked, not trusted. */
    if (rc == 0 && (!bh_rec_text(pod, pod->namespace_).n ||
                    !bh_str_eqc(bh_rec_text(pod, pod->namespace_), c->namespace_) ||
                    !bh_str_eqc(bh_rec_text(pod, pod->name), c->name) ||
                    !bh_str_eqc(bh_rec_text(pod, pod->uid), c->uid)))
        rc = bh_err_set(&err, -EINVAL, "the pod inside has another name or uid");
    if (rc != 0) {
        bh_log_error("Skipping a pod that cannot be read", bh_kv_s("namespace", c->namespace_),
                     bh_kv_s("pod", c->name), bh_kv_s("err", err.msg));
        return;
    }
    if (bh_engine_responsible(in->engine, bh_sym_text(in->symtab, shape->scheduler_name)))
        bh_engine_put_raw(in->engine, BH_KIND_POD, c->uid, c->object.data, c->object.len);
    in->cb.pending(in->cb.arg, &(struct bh_intake_pod){
                                   pod, shape, p, c->resource_version ? c->resource_version : ""});
}

static void pod_left(struct bh_intake *in, const Berth__ObjectChange *c, bool bound)
{
    if (!bound || !(bh_engine_raw_needs(in->engine) & BH_EXT_NEED_ASSIGNED))
        bh_engine_put_raw(in->engine, BH_KIND_POD, c->uid, NULL, 0);
}

static void apply_object(struct bh_intake *in, const Berth__ObjectChange *c)
{
    bool gone = c->op == BERTH__CHANGE_OP__CHANGE_DELETED;
    bool added = c->op == BERTH__CHANGE_OP__CHANGE_ADDED;
    struct bh_err err = {0};
    struct bh_cluster_event ev = {.resource = BH_EV_OBJECT,
                                  .kind = (enum bh_kind)c->kind,
                                  .action = gone    ? BH_EV_DELETE
                                            : added ? BH_EV_ADD
                                                    : BH_EV_UPDATE};

    if (c->op == BERTH__CHANGE_OP__CHANGE_BOUND || !bh_kind_of(c->kind))
        return; /* only pods are bound; nobody here asked for the kind */
    if (bh_engine_put_object_event(in->engine, &ev, c->namespace_, c->name,
                                   gone ? NULL : c->object.data, c->object.len, &err) < 0)
        bh_log_error("Skipping an object that cannot be read",
                     bh_kv_s("kind", bh_kind_of(c->kind)->kind_name), bh_kv_s("name", c->name),
                     bh_kv_s("err", err.msg));
    else if (!c->in_list && in->cb.event)
        in->cb.event(in->cb.arg, &ev);
}

/* The record told of it before they were here: pods that were tried in between get another try. */
static void annotations_changed(struct bh_intake *in, const char *node)
{
    const struct bh_node_rec *n =
        bh_engine_find_node(in->engine, bh_sym_find(in->symtab, node, strlen(node)));
    struct bh_cluster_event ev = {.resource = BH_EV_NODE, .old_node = n, .new_node = n};
    const uint32_t bit = BH_EV_NODE_ANNOTATION;

    if (n && !quiet(in))
        tell(in, &ev, &bit, 1);
}

static void on_change(void *arg, const Berth__ObjectChange *c)
{
    struct bh_intake *in = arg;

    /* Up to the log position an object belongs to. The writer publishes before it sends, so this
     * ends unless the segment was replaced meanwhile; then a rebuild covers what is missing. */
    for (unsigned i = 0; i < 64 && bh_snap_reader_pos(in->reader) < c->log_pos; i++)
        if (bh_intake_follow(in, FOLLOW_EVENTS) == 0)
            break;
    if (c->raw) {
        /* For extenders' eyes; what it means is in the snapshot. A pod that was pending keeps its
         * object until the one with the node comes, if that does come. */
        bool gone = c->op == BERTH__CHANGE_OP__CHANGE_DELETED;
        const char *key = c->kind == BH_KIND_NODE ? c->name : c->uid;
        if (key && *key &&
            bh_engine_put_raw(in->engine, (enum bh_kind)c->kind, key, gone ? NULL : c->object.data,
                              c->object.len) &&
            c->kind == BH_KIND_NODE && !gone && !c->in_list)
            annotations_changed(in, key);
    } else if (c->kind == BH_KIND_POD) {
        if (!c->uid || !*c->uid) {
            bh_log_error("Skipping a pod without uid", bh_kv_s("namespace", c->namespace_),
                         bh_kv_s("pod", c->name));
        } else if (c->op == BERTH__CHANGE_OP__CHANGE_BOUND) {
            pod_left(in, c, true);
            if (in->cb.bound)
                in->cb.bound(in->cb.arg, c->uid);
        } else if (c->op == BERTH__CHANGE_OP__CHANGE_DELETED) {
            pod_left(in, c, false);
            if (in->cb.deleted)
                in->cb.deleted(in->cb.arg, c->uid);
        } else if (in->cb.pending) {
            pod_changed(in, c);
        }
    } else {
        apply_object(in, c);
    }
    bh_arena_reset(&in->object_arena);
}

/* ---- feed ------------------------------------------------------------------------------------ */

static void on_begin(void *arg)
{
    struct bh_intake *in = arg;

    if (in->cb.begin)
        in->cb.begin(in->cb.arg);
    bh_engine_objects_begin(in->engine);
}

static void on_state(void *arg, const Berth__WatchState *s)
{
    struct bh_intake *in = arg;

    bh_engine_kind_state(in->engine, (enum bh_kind)s->kind, s->usable, s->trouble);
    if (in->cb.kind_known && s->usable)
        in->cb.kind_known(in->cb.arg);
}

static void on_complete(void *arg)
{
    struct bh_intake *in = arg;

    bh_engine_objects_end(in->engine);
    if (in->cb.complete)
        in->cb.complete(in->cb.arg);
}

void bh_intake_tick(struct bh_intake *in)
{
    look_at_lease(in); /* a decision may take long */
    bh_feed_tick(&in->feed);
}

/* ---- life ------------------------------------------------------------------------------------ */

static bool is_watcher(const void *users, uid_t uid)
{
    return bh_bus_users_allow(users, BH_BUS_WATCHER, uid);
}

int bh_intake_init(struct bh_intake *in, const struct bh_intake_options *o, struct bh_err *err)
{
    const unsigned needs = bh_engine_raw_needs(o->engine);

    memset(in, 0, sizeof(*in));
    const struct bh_feed_options feed = {
        .runtime_dir = o->runtime_dir,
        .users = o->users,
        .epoch = o->epoch,
        .observer = o->observer,
        .name = o->observer ? 'o' : 's',
        .raw = (needs & BH_EXT_NEED_NODES ? 1u << BERTH__RAW_KIND__RAW_NODES : 0) |
               (needs & BH_EXT_NEED_ASSIGNED ? 1u << BERTH__RAW_KIND__RAW_ASSIGNED_PODS : 0),
        .begin = on_begin,
        .change = on_change,
        .watch = in->kinds,
        .n_watch = bh_engine_kinds(o->engine, in->kinds),
        .state = on_state,
        .complete = on_complete,
        .arg = in};

    in->engine = o->engine;
    in->symtab = bh_engine_symtab(o->engine);
    in->cb = o->cb;
    for (size_t i = 0; i < feed.n_watch; i++)
        bh_engine_kind_state(o->engine, in->kinds[i]->kind, false, NULL);
    bh_arena_init(&in->object_arena, OBJECT_MAX_BYTES);
    in->reader = bh_snap_reader_new(o->runtime_dir, in->symtab);
    if (o->users)
        bh_snap_reader_believe(in->reader, is_watcher, o->users);
    return bh_feed_open(&in->feed, &feed, err);
}

void bh_intake_fini(struct bh_intake *in)
{
    bh_feed_close(&in->feed);
    bh_snap_reader_free(in->reader);
    bh_arena_fini(&in->object_arena);
}
