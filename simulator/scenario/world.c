/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/scenario/world.c - store, engine and queue joined
 *
 * Commits become records for the engine the way a scheduler's intake makes them. What a binder
 * would write goes into the store at once, so that the engine hears of it as a commit.
 */
#include "simulator/scenario/world.h"

#include <errno.h>

#include "common/base/loop.h"
#include "common/k8s/codec.h"
#include "common/k8s/compile.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

#define FLUSH_AFTER_NS INT64_C(300000000000)
#define DECODED_MAX(n) (((size_t)4 << 20) + 64 * (size_t)(n))

/* ---- commits into the engine -------------------------------------------------------------------
 */

static void on_event(void *arg, const struct bh_cluster_event *ev)
{
    struct bh_world *w = arg;

    bh_queue_event(w->queue, ev, w->now_ns);
}

static int take_node(struct bh_world *w, struct bh_world_commit *c, const ProtobufCMessage *m,
                     struct bh_err *err)
{
    struct bh_interner in = bh_symtab_interner(bh_engine_symtab(w->engine));
    struct bh_node_rec *rec;
    int rc =
        bh_compile_node(&w->decoded, (const struct K8s__Node *)(const void *)m, &in, &rec, err);

    if (rc < 0)
        return rc;
    c->node = rec;
    if (c->change == BH_SIM_DELETED)
        bh_intake_del_node(&w->intake, rec);
    else
        bh_intake_put_node(&w->intake, rec);
    bh_engine_put_raw_message(w->engine, BH_KIND_NODE, m);
    return 0;
}

static void pending_gone(struct bh_world *w, struct bh_str uid)
{
    bh_queue_delete(w->queue, uid);
    bh_engine_unnominate(w->engine, uid);
}

/* Pods of one moment stay in the order in which they came. */
static int64_t arrival(struct bh_world *w)
{
    return w->arrived_ns = BH_MAX(w->now_ns, w->arrived_ns + 1);
}

static void place_pod(struct bh_world *w, const struct bh_world_commit *c)
{
    struct bh_str uid = bh_rec_text(c->pod, c->pod->uid);
    const char *profile = bh_sym_text(bh_engine_symtab(w->engine), c->shape->scheduler_name);
    bool gone = c->change == BH_SIM_DELETED || bh_world_finished(c->obj);

    if (gone && c->pod->node != BH_SYM_NONE)
        bh_intake_del_pod(&w->intake, c->pod, c->shape);
    else if (gone)
        pending_gone(w, uid);
    else if (c->pod->node != BH_SYM_NONE) {
        bh_intake_put_pod(&w->intake, c->pod, c->shape);
        if (c->old && !*c->old->node_name)
            pending_gone(w, uid);
    } else if (bh_engine_responsible(w->engine, profile)) {
        bh_queue_update(w->queue, c->pod, bh_engine_shape(w->engine, c->shape), "", arrival(w));
    }
}

static int take_pod(struct bh_world *w, struct bh_world_commit *c, const ProtobufCMessage *m,
                    struct bh_err *err)
{
    struct bh_interner in = bh_symtab_interner(bh_engine_symtab(w->engine));
    const struct K8s__Pod *msg = (const struct K8s__Pod *)(const void *)m;
    struct bh_shape_rec *shape;
    struct bh_pod_rec *rec;
    int rc = bh_compile_shape(&w->decoded, msg, &in, &shape, err);

    if (rc >= 0)
        rc = bh_compile_pod(&w->decoded, msg, &in, &rec, err);
    if (rc < 0)
        return rc;
    c->shape = shape;
    c->pod = rec;
    bh_engine_put_raw_message(w->engine, BH_KIND_POD, m);
    /* A finished pod was told as gone when it finished. */
    if (!(c->old && bh_world_finished(c->old)) &&
        !(c->change != BH_SIM_MODIFIED && bh_world_finished(c->obj)))
        place_pod(w, c);
    return 0;
}

static int take_object(struct bh_world *w, const struct bh_world_commit *c,
                       const struct bh_kind_info *k, const ProtobufCMessage *m, struct bh_err *err)
{
    const K8s__ObjectMeta *meta = bh_object_meta(m);
    struct bh_cluster_event ev = {.resource = BH_EV_OBJECT,
                                  .kind = k->kind,
                                  .action = c->change == BH_SIM_ADDED     ? BH_EV_ADD
                                            : c->change == BH_SIM_DELETED ? BH_EV_DELETE
                                                                          : BH_EV_UPDATE};
    struct bh_buf b = {0};

    bh_pb_pack(&b, m);
    int rc = bh_engine_put_object_event(
        w->engine, &ev, k->namespaced ? meta->namespace_ : "", meta->name,
        c->change == BH_SIM_DELETED ? NULL : bh_buf_str(&b), b.n, err);
    bh_buf_fini(&b);
    if (rc >= 0)
        bh_queue_event(w->queue, &ev, w->now_ns);
    return rc;
}

/* Not inlined: see bh_world_decide. */
__attribute__((noinline)) static int bh_world_take(struct bh_world *w, struct bh_world_commit *c,
                                                   const struct bh_kind_info *k,
                                                   ProtobufCMessage *m, struct bh_err *err)
{
    if (k->kind == BH_KIND_NODE)
        return take_node(w, c, m, err);
    if (k->kind == BH_KIND_POD)
        return take_pod(w, c, m, err);
    return take_object(w, c, k, m, err);
}

static int take(struct bh_world *w, struct bh_world_commit *c, const struct bh_kind_info *k,
                struct bh_err *err)
{
    struct bh_json *tree;
    ProtobufCMessage *m;
    int rc = bh_json_parse(&w->decoded, c->obj->json, c->obj->json_n, 0, &tree, err);

    if (rc >= 0)
        rc = bh_json_to_pb(&w->decoded, k->desc, tree, &m, NULL, err);
    if (rc < 0)
        return rc;
    uint64_t began = w->o.timer(), allocated = bh_allocations;
    rc = bh_world_take(w, c, k, m, err);
    w->intake_ns += w->o.timer() - began;
    w->changes++;
    w->change_allocations += bh_allocations - allocated;
    return rc;
}

static void on_commit(void *arg, enum bh_sim_change change, struct bh_sim_obj *old,
                      struct bh_sim_obj *obj)
{
    struct bh_world *w = arg;
    struct bh_world_commit c = {.change = change, .old = old, .obj = obj};
    char version[80];
    struct bh_err err = {0};

    bh_sim_type_api_version(obj->type, version);
    const struct bh_kind_info *k = bh_kind_find(version, obj->type->kind);
    if (!k)
        return;
    w->decoded.limit_bytes = DECODED_MAX(obj->json_n);
    int rc = take(w, &c, k, &err);
    if (w->o.commit)
        w->o.commit(w->o.arg, &c);
    bh_arena_reset(&w->decoded);
    if (rc < 0 && w->trouble_rc >= 0) {
        w->trouble_rc = bh_err_prefix(&err, rc, "%s %s%s%s", obj->type->kind, obj->ns,
                                      *obj->ns ? "/" : "", obj->name);
        w->trouble = err;
    }
}

int bh_world_settle(struct bh_world *w, struct bh_err *err)
{
    int rc = bh_sim_advance(w->sim, w->now_ns);

    if (rc < 0)
        return bh_err_set(err, rc, "the controllers do not come to rest");
    if (w->trouble_rc < 0)
        return bh_err_set(err, w->trouble_rc, "%s", w->trouble.msg);
    return 0;
}

/* ---- what a binder would write -----------------------------------------------------------------
 */

static void copy_member(struct bh_arena *a, struct bh_json *obj, const struct bh_json *want,
                        const char *section, const char *key)
{
    const struct bh_json *v = bh_json_get(bh_json_get(want, section), key);

    if (v)
        bh_json_set(a, bh_json_obj_at(a, obj, section), key, bh_json_clone(a, v));
    else
        bh_json_unset(bh_json_get(obj, section), key);
}

static bool apply_write(void *arg, struct bh_arena *a, struct bh_json *obj)
{
    const struct bh_write *x = arg;
    const struct bh_json *want = bh_pb_to_json(a, x->object);

    switch (x->what) {
    case BH_WRITE_VOLUME_CLAIM:
        copy_member(a, obj, want, "spec", "claimRef");
        copy_member(a, obj, want, "metadata", "annotations");
        return true;
    case BH_WRITE_SELECTED_NODE:
        copy_member(a, obj, want, "metadata", "annotations");
        return true;
    case BH_WRITE_ALLOCATION:
    case BH_WRITE_DEALLOCATION:
        copy_member(a, obj, want, "metadata", "finalizers");
        copy_member(a, obj, want, "status", "allocation");
        copy_member(a, obj, want, "status", "reservedFor");
        return true;
    case BH_WRITE_RESERVATION:
    case BH_WRITE_UNRESERVATION:
        copy_member(a, obj, want, "status", "reservedFor");
        return true;
    case BH_WRITE_NEW_CLAIM: /* gates that make such claims cannot be switched on */
    case BH_WRITE_DELETE_CLAIM:
        break;
    }
    return false;
}

static void store_write(struct bh_world *w, const struct bh_write *x)
{
    const struct bh_kind_info *k = &bh_kinds[x->kind];
    const struct bh_sim_type *t = bh_sim_type_of_kind(NULL, k->kind_name);

    if (!t)
        return;
    if (x->what == BH_WRITE_DELETE_CLAIM)
        (void)bh_sim_delete(w->sim, t, x->namespace_, x->name, NULL, NULL);
    else
        (void)bh_sim_edit(w->sim, t, x->namespace_, x->name, NULL, BH_SIM_WHOLE, apply_write,
                          (void *)(uintptr_t)x, NULL, NULL);
}

/* Nobody else has the claims: the engine's own copy is enough. */
static void engine_write(struct bh_world *w, const struct bh_write *x)
{
    bool gone = x->what == BH_WRITE_DELETE_CLAIM;
    struct bh_cluster_event ev = {
        .resource = BH_EV_OBJECT, .kind = x->kind, .action = gone ? BH_EV_DELETE : BH_EV_UPDATE};
    struct bh_buf b = {0};

    if (!gone)
        bh_pb_pack(&b, x->object);
    if (bh_engine_put_object_event(w->engine, &ev, x->namespace_, x->name,
                                   gone ? NULL : bh_buf_str(&b), b.n, NULL) >= 0)
        bh_queue_event(w->queue, &ev, w->now_ns);
    bh_buf_fini(&b);
}

static void post_filter_writes(struct bh_world *w, const struct bh_decision *d)
{
    for (uint32_t i = 0; i < d->n_writes; i++) {
        if (w->o.controllers)
            store_write(w, &d->writes[i]);
        else
            engine_write(w, &d->writes[i]);
    }
}

static void prebind(struct bh_world *w, struct bh_str uid)
{
    uint32_t n = 0;
    const struct bh_write *x = bh_engine_prebind_work(w->engine, uid, &n);

    for (uint32_t i = 0; w->o.controllers && i < n; i++)
        store_write(w, &x[i]);
    bh_engine_prebind_commit(w->engine, uid);
}

static void bind_pod(struct bh_world *w, const struct bh_pending *p, bh_sym node)
{
    const char *ns = bh_rec_text(p->pod, p->pod->namespace_).p;
    const char *name = bh_rec_text(p->pod, p->pod->name).p;
    const char *uid = bh_rec_text(p->pod, p->pod->uid).p;
    struct bh_sim_error e = {0};

    if (bh_sim_bind(w->sim, ns, name, uid, bh_sym_text(bh_engine_symtab(w->engine), node), NULL,
                    NULL, &e) &&
        w->trouble_rc >= 0)
        w->trouble_rc =
            bh_err_set(&w->trouble, -EIO, "binding of pod %s/%s: %s", ns, name, e.message);
}

/* ---- attempts ----------------------------------------------------------------------------------
 */

struct evicted { /* copies: what the engine gave lives until its next call */
    char *ns, *name;
};

static struct evicted *victims_of(const struct bh_decision *d, uint32_t *ret_n)
{
    struct evicted *v = bh_calloc(d->n_victims + 1, sizeof *v);

    *ret_n = 0;
    for (uint32_t i = 0; i < d->n_victims; i++)
        if (!d->victims[i].terminating)
            v[(*ret_n)++] =
                (struct evicted){bh_strndup(d->victims[i].namespace_.p, d->victims[i].namespace_.n),
                                 bh_strndup(d->victims[i].name.p, d->victims[i].name.n)};
    return v;
}

static void evict(struct bh_world *w, struct evicted *v, uint32_t n)
{
    const struct bh_sim_delete_options own_grace = {.grace_s = -1};
    const struct bh_sim_type *t = bh_sim_type_find("", "v1", "pods");

    for (uint32_t i = 0; i < n; i++) {
        (void)bh_sim_delete(w->sim, t, v[i].ns, v[i].name, &own_grace, NULL);
        free(v[i].ns);
        free(v[i].name);
    }
    free(v);
}

static void ended(struct bh_world *w, const struct bh_pod_rec *pod, const struct bh_decision *d,
                  bh_sym node, uint64_t began)
{
    const struct bh_world_try t = {pod, d, node, w->o.timer() - began};

    w->decide_ns += t.took_ns;
    if (w->o.tried)
        w->o.tried(w->o.arg, &t);
}

/* Back to the queue. began: of the attempt; what the store does is not counted. */
static void rejected(struct bh_world *w, const struct bh_pending *p, const struct bh_decision *d,
                     uint64_t began)
{
    BH_CLEANUP(bh_freep) struct bh_pod_rec *pod = bh_memdup(p->pod, p->pod->h.size);
    struct bh_str uid = bh_rec_text(pod, pod->uid);
    uint32_t n_victims;
    struct evicted *v = victims_of(d, &n_victims);

    post_filter_writes(w, d);
    bh_queue_return(w->queue, uid, d->unschedulable_plugins, d->n_unschedulable_plugins,
                    d->pending_plugins, d->n_pending_plugins, w->now_ns);
    if (d->nominated_node != BH_SYM_NONE)
        bh_engine_nominate(w->engine, p, d->nominated_node);
    else if (d->clear_nomination)
        bh_engine_unnominate(w->engine, uid);
    ended(w, pod, d, BH_SYM_NONE, began);
    evict(w, v, n_victims);
}

/* Reserve or Permit said no: undone, and rejected by that plugin. */
static void refused(struct bh_world *w, const struct bh_pending *p, bh_sym node,
                    const struct bh_status *s, uint64_t began)
{
    BH_CLEANUP(bh_freep) char *plugin = s->plugin ? bh_strdup(s->plugin) : NULL;
    const char *by = plugin;
    const struct bh_decision d = {
        .kind = bh_status_rejected(s) ? BH_NO_FIT : BH_DECISION_ERROR,
        .clear_nomination = true,
        .unschedulable_plugins = &by,
        .n_unschedulable_plugins = bh_status_rejected(s) && by,
    };

    bh_engine_unreserve(w->engine, p, node);
    (void)bh_engine_forget(w->engine, bh_rec_text(p->pod, p->pod->uid));
    rejected(w, p, &d, began);
}

/* From the pod to its node, taken. Not inlined: bench/count.sh counts what happens in here. */
__attribute__((noinline)) static const struct bh_decision *
bh_world_decide(struct bh_world *w, const struct bh_pending *p, bh_sym *ret_node,
                const struct bh_status **ret_refused)
{
    const struct bh_decision *d = bh_engine_schedule(w->engine, p, 0, w->now_ns);
    int64_t timeout_ns;

    if (d->kind != BH_DECIDED)
        return d;
    *ret_node = d->node;
    int rc = bh_engine_assume(w->engine, p, *ret_node);
    bh_assert(rc == 0); /* a pending pod is on no node */
    *ret_refused = bh_engine_reserve(w->engine, p, *ret_node);
    if (!*ret_refused)
        *ret_refused = bh_engine_permit(w->engine, p, *ret_node, &timeout_ns);
    return d;
}

static void attempt(struct bh_world *w, struct bh_queued_pod *q, uint64_t began)
{
    const struct bh_pending *p = &q->pending;
    struct bh_str uid = bh_rec_text(p->pod, p->pod->uid);
    const struct bh_decision *d;
    const struct bh_status *s;
    bh_sym node;

    if (p->pod->flags & BH_POD_TERMINATING) { /* as upstream: skipped */
        bh_queue_done(w->queue, uid);
        w->decide_ns += w->o.timer() - began;
        return;
    }
    uint64_t allocated = bh_allocations;
    d = bh_world_decide(w, p, &node, &s);
    w->decisions++;
    w->decide_allocations += bh_allocations - allocated;
    if (d->kind != BH_DECIDED) {
        rejected(w, p, d, began);
        return;
    }
    if (s && s->code != BH_WAIT) {
        refused(w, p, node, s, began);
        return;
    }
    bh_engine_unnominate(w->engine, uid);
    prebind(w, uid);
    bh_queue_binding(w->queue, uid);
    ended(w, p->pod, NULL, node, began);
    bind_pod(w, p, node);
}

bool bh_world_attempt(struct bh_world *w)
{
    uint64_t began = w->o.timer();
    struct bh_queued_pod *q = bh_queue_pop(w->queue, w->now_ns);

    if (q)
        attempt(w, q, began);
    else
        w->decide_ns += w->o.timer() - began;
    return q;
}

int64_t bh_world_queue_due(struct bh_world *w)
{
    uint64_t began = w->o.timer();
    int64_t wait = bh_queue_tick(w->queue, w->now_ns);
    struct bh_queue_stats q;

    w->intake_ns += w->o.timer() - began;
    bh_queue_stats(w->queue, &q);
    if (q.active) /* their back-off was over */
        return w->now_ns;
    return wait < INT64_MAX - w->now_ns ? w->now_ns + BH_MAX(wait, 1) : INT64_MAX;
}

int64_t bh_world_store_due(const struct bh_world *w)
{
    return bh_sim_next_ns(w->sim);
}

/* ---- life --------------------------------------------------------------------------------------
 */

/* What a fresh cluster has: namespaces, priority classes. */
static void take_present(struct bh_world *w)
{
    for (size_t i = 0; i < bh_sim_n_types; i++) {
        struct bh_sim_objs l = {0};
        if ((bh_sim_types[i].flags & BH_SIM_REVIEW) || bh_sim_types[i].stored_as)
            continue;
        bh_sim_list(w->sim, &bh_sim_types[i], NULL, &l);
        for (size_t k = 0; k < l.n; k++)
            on_commit(w, BH_SIM_ADDED, NULL, l.v[k]);
        bh_sim_objs_fini(&l);
    }
}

int bh_world_init(struct bh_world *w, const struct bh_world_options *o, struct bh_err *err)
{
    *w = (struct bh_world){.o = *o, .now_ns = o->start_ns};
    if (!o->timer)
        w->o.timer = bh_mono_ns;
    uv_loop_init(&w->loop);
    bh_arena_init(&w->decoded, 0);
    if (o->config->n_extenders)
        return bh_err_set(err, -ENOTSUP, "extenders are not asked here");
    const struct bh_sim_options so = {.no_controllers = !o->controllers,
                                      .kubelet_delay_ns = o->kubelet_delay_ns,
                                      .manual_clock = true,
                                      .clock_ns = o->start_ns,
                                      .seed = o->seed + 1, /* 0 would be drawn */
                                      .history_events = 1,
                                      .first_revision = 1};
    int rc = bh_sim_new_bare(&w->loop, &so, &w->sim, err);
    if (rc < 0)
        return rc;
    const struct bh_engine_options eo = {
        .config = o->config, .tie_break = o->tie_break, .seed = o->seed, .verify = o->verify};
    rc = bh_engine_new(&eo, &w->engine, err);
    if (rc < 0)
        return rc;
    const struct bh_queue_options qo = {.verify = o->verify,
                                        .initial_backoff_ns = o->config->pod_initial_backoff_ns,
                                        .max_backoff_ns = o->config->pod_max_backoff_ns,
                                        .max_in_unschedulable_ns = FLUSH_AFTER_NS};
    w->queue = bh_queue_new(w->engine, &qo);
    w->intake = (struct bh_intake){.engine = w->engine,
                                   .symtab = bh_engine_symtab(w->engine),
                                   .cb = {.event = on_event, .arg = w}};
    bh_sim_drain(w->sim);
    take_present(w);
    bh_sim_listen(w->sim, NULL, on_commit, w);
    return bh_world_settle(w, err);
}

void bh_world_fini(struct bh_world *w)
{
    bh_sim_free(w->sim);
    bh_loop_drain_close(&w->loop);
    bh_queue_free(w->queue);
    bh_engine_free(w->engine);
    bh_arena_fini(&w->decoded);
}
