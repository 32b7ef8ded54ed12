/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/offline/offline.c - objects into the engine and the queue
 */
#include "simulator/offline/offline_int.h"

#include <errno.h>

#include "common/k8s/codec.h"
#include "common/k8s/compile.h"
#include "common/k8s/pod_group.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

#define FLUSH_AFTER_NS INT64_C(300000000000)

/* ---- reading --------------------------------------------------------------------------------- */

/* Of a kind that a plugin reads only the object tells. */
static bool may_have_namespace(const struct bh_kind_info *k)
{
    return k->namespaced || k->kind >= BH_KIND_CUSTOM;
}

int bh_offline_compile(struct bh_engine *e, struct bh_arena *a, const struct bh_kind_info *k,
                       const ProtobufCMessage *m, struct bh_offline_object *ret, struct bh_err *err)
{
    const struct bh_interner in = bh_symtab_interner(bh_engine_symtab(e));
    const struct K8s__ObjectMeta *meta = bh_object_meta(m);
    const struct K8s__Pod *pod = (const void *)m;

    if (!meta)
        return bh_err_set(err, -EINVAL, "no metadata");
    if (k->kind == BH_KIND_PODGROUP) { /* whatever version it has */
        m = (const ProtobufCMessage *)bh_pod_group_of(a, k, m);
        if (!m)
            return bh_err_set(err, -E2BIG, "the object is too large");
    }
    *ret = (struct bh_offline_object){
        .kind = k,
        .message = m,
        .ns = may_have_namespace(k) && meta->namespace_ ? meta->namespace_ : "",
        .name = meta->name ? meta->name : ""};
    if (k->kind == BH_KIND_NODE)
        return bh_compile_node(a, (const void *)m, &in, &ret->node, err);
    if (k->kind != BH_KIND_POD)
        return 0;
    const char *phase = pod->status && pod->status->phase ? pod->status->phase : "";
    ret->finished = bh_streq(phase, "Succeeded") || bh_streq(phase, "Failed");
    int rc = bh_compile_shape(a, pod, &in, &ret->shape, err);
    return rc < 0 ? rc : bh_compile_pod(a, pod, &in, &ret->pod, err);
}

int bh_offline_message(struct bh_arena *a, const struct bh_kind_info *k, const struct bh_json *tree,
                       ProtobufCMessage **ret, struct bh_err *err)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf text = {0};

    if (k->kind < BH_KIND_CUSTOM)
        return bh_json_to_pb(a, k->desc, tree, ret, NULL, err);
    bh_json_write(&text, tree);
    return bh_decode_custom(a, text.p, text.n, ret, err);
}

int bh_offline_read(struct bh_engine *e, struct bh_arena *a, const struct bh_kind_info *k,
                    const struct bh_json *tree, struct bh_offline_object *ret, struct bh_err *err)
{
    ProtobufCMessage *m = NULL;
    int rc = bh_offline_message(a, k, tree, &m, err);

    return rc < 0 ? rc : bh_offline_compile(e, a, k, m, ret, err);
}

/* ---- new or changed -------------------------------------------------------------------------- */

static void tell(struct bh_offline *w, const struct bh_cluster_event *ev, int32_t max_priority)
{
    if (!w->queue)
        return;
    w->events++;
    bh_queue_event_up_to(w->queue, ev, max_priority, w->now_ns);
}

void bh_offline_event(struct bh_offline *w, const struct bh_cluster_event *ev)
{
    tell(w, ev, INT32_MAX);
}

static void on_event(void *arg, const struct bh_cluster_event *ev)
{
    bh_offline_event(arg, ev);
}

void bh_offline_tell_room(struct bh_offline *w, const struct bh_pod_rec *pod,
                          const struct bh_shape_rec *shape, bool assumed)
{
    const struct bh_cluster_event ev = {.resource = BH_EV_POD_ASSIGNED,
                                        .action = BH_EV_DELETE,
                                        .old_pod = pod,
                                        .old_shape = shape,
                                        .was_assumed = assumed};

    tell(w, &ev, assumed ? INT32_MAX : shape->priority);
}

/* Pods of one moment stay in the order in which they came. The object may end a promise. */
void bh_offline_pend(struct bh_offline *w, const struct bh_pod_rec *pod,
                     const struct bh_shape_rec *shape)
{
    struct bh_pod_state *s = bh_queue_pod(w->queue, bh_rec_text(pod, pod->uid));
    const struct bh_queued_pod *q = s ? s->queued : NULL;
    bh_sym promised = q ? q->pending.pod->nominated_node : BH_SYM_NONE;
    BH_CLEANUP(bh_freep) struct bh_pod_rec *old = NULL;
    BH_CLEANUP(bh_freep) struct bh_shape_rec *old_shape = NULL;

    if (promised != BH_SYM_NONE && promised != pod->nominated_node) {
        const struct bh_shape_rec *rec = bh_engine_shape_rec(w->engine, q->pending.shape);
        old = bh_memdup(q->pending.pod, q->pending.pod->h.size);
        old_shape = bh_memdup(rec, rec->h.size);
    }
    w->arrived_ns = BH_MAX(w->now_ns, w->arrived_ns + 1);
    bh_queue_update(w->queue, s, pod, bh_engine_shape(w->engine, shape), "", w->arrived_ns);
    if (old)
        bh_offline_tell_room(w, old, old_shape, false);
}

static void waits_no_more(struct bh_offline *w, struct bh_str uid)
{
    if (w->queue)
        bh_queue_delete(w->queue, bh_queue_pod(w->queue, uid)); /* its nomination, too */
    else
        bh_engine_unnominate(w->engine, uid);
}

/* object NULL: it is gone. action 0: not known. */
static int put_other(struct bh_offline *w, enum bh_kind kind, uint32_t action, const char *ns,
                     const char *name, const ProtobufCMessage *object, struct bh_err *err)
{
    struct bh_cluster_event ev = {.resource = BH_EV_OBJECT, .kind = kind, .action = action};
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};

    if (!action)
        ev.action = bh_engine_get_object(w->engine, kind, ns, name) ? BH_EV_UPDATE : BH_EV_ADD;
    if (object)
        bh_pb_pack(&b, object);
    int rc = bh_engine_put_object_event(w->engine, &ev, ns, name, object ? bh_buf_str(&b) : NULL,
                                        b.n, err);
    if (rc >= 0)
        bh_offline_event(w, &ev);
    return rc;
}

int bh_offline_put(struct bh_offline *w, const struct bh_offline_object *x, struct bh_err *err)
{
    if (x->node) {
        bh_intake_put_node(&w->intake, x->node);
        bh_engine_put_raw_message(w->engine, BH_KIND_NODE, x->message);
    } else if (x->pod) {
        const char *profile = bh_sym_text(bh_engine_symtab(w->engine), x->shape->scheduler_name);
        struct bh_str uid = bh_rec_text(x->pod, x->pod->uid);
        bh_engine_put_raw_message(w->engine, BH_KIND_POD, x->message);
        if (x->finished) {
            bh_offline_del(w, BH_KIND_POD, x->ns, uid.p);
        } else if (x->pod->node != BH_SYM_NONE) {
            bh_offline_wait_over(w, uid);
            bh_intake_put_pod(&w->intake, x->pod, x->shape);
            waits_no_more(w, uid);
        } else if (w->queue && bh_engine_responsible(w->engine, profile)) {
            bh_offline_pend(w, x->pod, x->shape);
        }
    } else {
        return put_other(w, x->kind->kind, x->action, x->ns, x->name, x->message, err);
    }
    return 0;
}

int bh_offline_put_tree(struct bh_offline *w, struct bh_arena *a, const struct bh_kind_info *k,
                        const struct bh_json *tree, struct bh_err *err)
{
    struct bh_offline_object x = {.kind = k};
    int rc = bh_offline_read(w->engine, a, k, tree, &x, err);

    return rc < 0 ? rc : bh_offline_put(w, &x, err);
}

void bh_offline_write(struct bh_offline *w, const struct bh_write *x)
{
    bool gone = x->what == BH_WRITE_DELETE_CLAIM;

    if (x->what == BH_WRITE_PATCH) /* of a plugin, for others than the scheduler to read */
        return;
    (void)put_other(w, x->kind, gone ? BH_EV_DELETE : BH_EV_UPDATE, x->namespace_, x->name,
                    gone ? NULL : x->object, NULL);
}

/* ---- gone ------------------------------------------------------------------------------------ */

void bh_offline_promise_over(struct bh_offline *w, const struct bh_pending *p, bh_sym node)
{
    const struct bh_shape_rec *rec = bh_engine_shape_rec(w->engine, p->shape);
    BH_CLEANUP(bh_freep) struct bh_pod_rec *pod = bh_memdup(p->pod, p->pod->h.size);
    BH_CLEANUP(bh_freep) struct bh_shape_rec *shape = bh_memdup(rec, rec->h.size);

    pod->nominated_node = node;
    bh_engine_unnominate(w->engine, bh_rec_text(pod, pod->uid));
    bh_offline_tell_room(w, pod, shape, false);
}

static void del_pod(struct bh_offline *w, struct bh_str uid)
{
    const struct bh_pod_state *s = w->queue ? bh_queue_pod(w->queue, uid) : NULL;
    bh_shape_id id = 0;
    const struct bh_pod_rec *known = bh_engine_find_pod(w->engine, uid, &id);

    bh_offline_wait_over(w, uid);
    if (s && s->queued && bh_engine_nominated_node(w->engine, uid) != BH_SYM_NONE)
        bh_offline_promise_over(w, &s->queued->pending, bh_engine_nominated_node(w->engine, uid));
    waits_no_more(w, uid);
    if (!known)
        return;
    const struct bh_shape_rec *rec = bh_engine_shape_rec(w->engine, id);
    BH_CLEANUP(bh_freep) struct bh_pod_rec *old = bh_memdup(known, known->h.size);
    BH_CLEANUP(bh_freep) struct bh_shape_rec *shape = bh_memdup(rec, rec->h.size);
    if (bh_engine_is_assumed(w->engine, uid)) {
        const struct bh_pending p = {.pod = old, .shape = id};
        bh_offline_give_back(w, &p, old->node);
        bh_offline_tell_room(w, old, shape, true);
    } else {
        bh_intake_del_pod(&w->intake, old, shape);
    }
}

void bh_offline_del(struct bh_offline *w, enum bh_kind kind, const char *ns, const char *key)
{
    if (kind == BH_KIND_NODE) {
        bh_sym sym = bh_sym_find(bh_engine_symtab(w->engine), key, strlen(key));
        const struct bh_node_rec *known = bh_engine_find_node(w->engine, sym);
        BH_CLEANUP(bh_freep)
        struct bh_node_rec *old = known ? bh_memdup(known, known->h.size) : NULL;
        if (old)
            bh_intake_del_node(&w->intake, old);
    } else if (kind == BH_KIND_POD) {
        del_pod(w, bh_str_c(key));
    } else {
        (void)put_other(w, kind, BH_EV_DELETE, may_have_namespace(bh_kind_of(kind)) ? ns : "", key,
                        NULL, NULL);
    }
    if (kind <= BH_KIND_POD)
        bh_engine_put_raw(w->engine, kind, key, NULL, 0);
}

/* ---- life ------------------------------------------------------------------------------------ */

int bh_offline_init(struct bh_offline *w, const struct bh_offline_options *o, struct bh_err *err)
{
    const struct bh_engine_options eo = {.config = o->config,
                                         .tie_break = o->tie_break,
                                         .seed = o->seed,
                                         .verify = o->verify,
                                         .rebuilt_snapshot = o->rebuilt_snapshot,
                                         .observer = o->observer};

    *w = (struct bh_offline){.o = *o, .now_ns = o->now_ns};
    if (!o->timer)
        w->o.timer = bh_mono_ns;
    int rc = bh_engine_new(&eo, &w->engine, err);
    if (rc < 0)
        return rc;
    w->intake = (struct bh_intake){.engine = w->engine,
                                   .symtab = bh_engine_symtab(w->engine),
                                   .cb = {.event = o->no_queue ? NULL : on_event, .arg = w}};
    if (o->no_queue)
        return 0;
    const struct bh_queue_options qo = {.verify = o->verify,
                                        .initial_backoff_ns = o->config->pod_initial_backoff_ns,
                                        .max_backoff_ns = o->config->pod_max_backoff_ns,
                                        .max_in_unschedulable_ns =
                                            o->events_only ? INT64_MAX / 4 : FLUSH_AFTER_NS};
    w->queue = bh_queue_new(w->engine, &qo);
    return 0;
}

void bh_offline_fini(struct bh_offline *w)
{
    if (w->engine)
        bh_offline_waiting_fini(w);
    bh_queue_free(w->queue);
    bh_engine_free(w->engine);
}
