/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/offline/world.c - a store before an offline world
 */
#include "simulator/offline/world.h"

#include <errno.h>

#include "common/base/loop.h"
#include "common/k8s/codec.h"
#include "common/k8s/compile.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "simulator/server/tree.h"

#define DECODED_MAX(n) (((size_t)4 << 20) + 64 * (size_t)(n))

/* ---- commits into the engine ----------------------------------------------------------------- */

/* Not inlined: bench/count.sh counts what happens here. Finished pods were told as gone then. */
__attribute__((noinline)) static int bh_world_take(struct bh_world *w, enum bh_sim_change change,
                                                   const struct bh_kind_info *k,
                                                   const ProtobufCMessage *m,
                                                   struct bh_offline_object *x, struct bh_err *err)
{
    int rc = bh_offline_compile(w->offline.engine, &w->decoded, k, m, x, err);

    if (rc < 0)
        return rc;
    x->action = change == BH_SIM_ADDED ? BH_EV_ADD : BH_EV_UPDATE;
    if (change != BH_SIM_DELETED)
        return bh_offline_put(&w->offline, x, err);
    bh_offline_del(&w->offline, k->kind, x->ns,
                   x->pod ? bh_rec_text(x->pod, x->pod->uid).p : x->name);
    return 0;
}

static int take(struct bh_world *w, enum bh_sim_change change, const struct bh_sim_obj *obj,
                const struct bh_kind_info *k, struct bh_offline_object *x, struct bh_err *err)
{
    struct bh_offline *o = &w->offline;
    struct bh_json *tree;
    ProtobufCMessage *m;
    int rc = bh_json_parse(&w->decoded, obj->json, obj->json_n, BH_JSON_NUL, &tree, err);

    rc = rc < 0 ? rc : bh_offline_message(&w->decoded, k, tree, &m, err);
    if (rc < 0)
        return rc;
    uint64_t began = o->o.timer(), allocated = bh_allocations;
    rc = bh_world_take(w, change, k, m, x, err);
    o->intake_ns += o->o.timer() - began;
    o->changes++;
    o->change_allocations += bh_allocations - allocated;
    return rc;
}

static void on_commit(void *arg, enum bh_sim_change change, struct bh_sim_obj *old,
                      struct bh_sim_obj *obj)
{
    struct bh_world *w = arg;
    struct bh_offline_object x;
    char version[80];
    struct bh_err err = {0};

    bh_sim_type_api_version(obj->type, version);
    const struct bh_kind_info *k = bh_kind_find(version, obj->type->kind);
    if (!k)
        k = bh_kind_declared(version, obj->type->plural);
    if (!k)
        return;
    w->decoded.limit_bytes = DECODED_MAX(obj->json_n);
    int rc = take(w, change, obj, k, &x, &err);
    const struct bh_world_commit c = {change, old, obj, rc < 0 ? NULL : &x};
    if (w->o.commit)
        w->o.commit(w->o.arg, &c);
    bh_arena_reset(&w->decoded);
    /* A plugin may read objects of a kind that the scheduler itself knows. */
    const struct bh_kind_info *asked = bh_kind_declared(version, obj->type->plural);
    if (rc >= 0 && asked && asked != k) {
        rc = take(w, change, obj, asked, &x, &err);
        bh_arena_reset(&w->decoded);
    }
    if (rc < 0 && w->trouble_rc >= 0) {
        w->trouble_rc = bh_err_prefix(&err, rc, "%s %s%s%s", obj->type->kind, obj->ns,
                                      *obj->ns ? "/" : "", obj->name);
        w->trouble = err;
    }
}

int bh_world_settle(struct bh_world *w, struct bh_err *err)
{
    int rc = bh_sim_advance(w->sim, w->offline.now_ns);

    if (rc < 0)
        return bh_err_set(err, rc, "the controllers do not come to rest");
    if (w->trouble_rc < 0)
        return bh_err_set(err, w->trouble_rc, "%s", w->trouble.msg);
    return 0;
}

/* ---- what a binder would write --------------------------------------------------------------- */

static void copy_member(struct bh_arena *a, struct bh_json *obj, const struct bh_json *want,
                        const char *section, const char *key)
{
    const struct bh_json *v = bh_json_get(bh_json_get(want, section), key);

    if (v)
        bh_json_set(a, bh_json_obj_at(a, obj, section), key, bh_json_clone(a, v));
    else
        bh_json_unset(bh_json_get(obj, section), key);
}

/* Others may have reserved the claim since the pod's Reserve; its own reference is the list's last. */
static void add_consumer(struct bh_arena *a, struct bh_json *obj, const struct bh_json *want)
{
    const struct bh_json *list = bh_json_get(bh_json_get(want, "status"), "reservedFor");
    const struct bh_json *own = list ? list->c.last : NULL;
    struct bh_json *now = bh_json_list_at(a, bh_json_obj_at(a, obj, "status"), "reservedFor");

    bh_json_each(e, now)
        if (own && bh_streq(bh_json_get_text(e, "uid"), bh_json_get_text(own, "uid")))
            return;
    if (own)
        bh_json_push(now, bh_json_clone(a, own));
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
    case BH_WRITE_ALLOCATION: /* unless another member of the group wrote it */
        copy_member(a, obj, want, "metadata", "finalizers");
        if (!bh_json_get(bh_json_get(obj, "status"), "allocation"))
            copy_member(a, obj, want, "status", "allocation");
        add_consumer(a, obj, want);
        return true;
    case BH_WRITE_DEALLOCATION:
        copy_member(a, obj, want, "metadata", "finalizers");
        copy_member(a, obj, want, "status", "allocation");
        copy_member(a, obj, want, "status", "reservedFor");
        return true;
    case BH_WRITE_RESERVATION:
        add_consumer(a, obj, want);
        return true;
    case BH_WRITE_UNRESERVATION:
        copy_member(a, obj, want, "status", "reservedFor");
        return true;
    case BH_WRITE_NEW_CLAIM: /* gates that make such claims cannot be switched on */
    case BH_WRITE_DELETE_CLAIM:
    case BH_WRITE_PATCH:
        break;
    }
    return false;
}

static void on_write(void *arg, const struct bh_write *x)
{
    struct bh_world *w = arg;
    const struct bh_kind_info *k = &bh_kinds[x->kind];
    const struct bh_sim_type *t = bh_sim_type_of_kind(NULL, k->kind_name);

    if (!t || x->what == BH_WRITE_PATCH) /* of a plugin, for others than the scheduler to read */
        return;
    if (x->what == BH_WRITE_DELETE_CLAIM)
        (void)bh_sim_delete(w->sim, t, x->namespace_, x->name, NULL, NULL);
    else
        (void)bh_sim_edit(w->sim, t, x->namespace_, x->name, NULL, BH_SIM_WHOLE, apply_write,
                          (void *)(uintptr_t)x, NULL, NULL);
}

static void on_bind(void *arg, const struct bh_pending *p, bh_sym node)
{
    struct bh_world *w = arg;
    const char *ns = bh_rec_text(p->pod, p->pod->namespace_).p;
    const char *name = bh_rec_text(p->pod, p->pod->name).p;
    const char *uid = bh_rec_text(p->pod, p->pod->uid).p;
    struct bh_sim_error e = {0};

    if (bh_sim_bind(w->sim, ns, name, uid, bh_sym_text(bh_engine_symtab(w->offline.engine), node),
                    NULL, NULL, &e) &&
        w->trouble_rc >= 0)
        w->trouble_rc =
            bh_err_set(&w->trouble, -EIO, "binding of pod %s/%s: %s", ns, name, e.message);
}

static void on_evict(void *arg, const char *ns, const char *name)
{
    const struct bh_sim_delete_options own_grace = {.grace_s = -1};
    const struct bh_world *w = arg;

    (void)bh_sim_delete(w->sim, bh_sim_type_find("", "v1", "pods"), ns, name, &own_grace, NULL);
}

static void on_tried(void *arg, const struct bh_offline_try *t)
{
    const struct bh_world *w = arg;

    if (w->o.tried)
        w->o.tried(w->o.arg, t);
}

/* ---- groups ---------------------------------------------------------------------------------- */

struct condition {
    const struct bh_offline_group *g;
    int64_t now_ns;
};

/* It never goes back from True. Upstream: updatePodGroupCondition in
 * pkg/scheduler/schedule_one_podgroup.go */
static bool set_condition(void *arg, struct bh_arena *a, struct bh_json *obj)
{
    const struct condition *c = arg;
    const struct bh_group_result *r = c->g->result;
    const bool success = r->code == BH_SUCCESS;
    char now[32];

    if (bh_tree_condition_true(obj, "PodGroupScheduled"))
        return false;
    bh_time_format_ns(now, c->now_ns);
    if (!bh_tree_set_condition(a, obj, "PodGroupScheduled", success ? "True" : "False",
                               success               ? "Scheduled"
                               : r->code == BH_ERROR ? "SchedulerError"
                                                     : "Unschedulable",
                               r->message, now))
        return false;
    const int64_t generation = bh_tree_i64(obj, "metadata.generation", 0);
    if (generation)
        bh_json_set_i64(a, bh_tree_condition(obj, "PodGroupScheduled"), "observedGeneration",
                        generation);
    return true;
}

static void on_grouped(void *arg, const struct bh_offline_group *g)
{
    struct bh_world *w = arg;
    struct condition c = {.g = g, .now_ns = w->offline.now_ns};

    (void)bh_sim_edit(w->sim, bh_sim_type_of_kind(NULL, "PodGroup"), g->ns, g->name, NULL,
                      BH_SIM_STATUS, set_condition, &c, NULL, NULL);
    if (w->o.grouped)
        w->o.grouped(w->o.arg, g);
}

/* ---- life ------------------------------------------------------------------------------------ */

int bh_world_init(struct bh_world *w, const struct bh_world_options *o, struct bh_err *err)
{
    *w = (struct bh_world){.o = *o};
    uv_loop_init(&w->loop);
    if (o->config->n_extenders)
        return bh_err_set(err, -ENOTSUP, "extenders are not asked here");
    const char *every[] = {"api/all=true"}; /* whose gate is on */
    const struct bh_opt_list apis = {.v = every, .n = 1};
    const struct bh_sim_options so = {.features = o->config->gates,
                                      .runtime_config = &apis,
                                      .no_controllers = !o->controllers,
                                      .kubelet_delay_ns = o->kubelet_delay_ns,
                                      .manual_clock = true,
                                      .clock_ns = o->start_ns,
                                      .seed = o->seed + 1, /* 0 would be drawn */
                                      .history_events = 1,
                                      .first_revision = 1};
    int rc = bh_sim_new_bare(&w->loop, &so, &w->sim, err);
    if (rc < 0)
        return rc;
    const struct bh_offline_options oo = {
        .config = o->config,
        .tie_break = o->tie_break,
        .seed = o->seed,
        .verify = o->verify,
        .now_ns = o->start_ns,
        .timer = o->timer,
        /* without controllers only the engine uses the claims: its own copy is enough */
        .hooks = {.tried = on_tried,
                  .bind = on_bind,
                  .evict = on_evict,
                  .write = o->controllers ? on_write : NULL,
                  .arg = w,
                  .grouped = o->controllers ? on_grouped : NULL}};
    rc = bh_offline_init(&w->offline, &oo, err);
    if (rc < 0)
        return rc;
    bh_sim_drain(w->sim);
    /* What a fresh cluster has: namespaces, priority classes. */
    for (size_t i = 0; i < bh_sim_n_types; i++) {
        if ((bh_sim_types[i].flags & BH_SIM_REVIEW) || bh_sim_types[i].stored_as)
            continue;
        BH_CLEANUP(bh_sim_objs_fini)
        struct bh_sim_objs l = bh_sim_listed(w->sim, &bh_sim_types[i], NULL);
        for (size_t k = 0; k < l.n; k++)
            on_commit(w, BH_SIM_ADDED, NULL, l.v[k]);
    }
    bh_sim_listen(w->sim, NULL, on_commit, w);
    return bh_world_settle(w, err);
}

void bh_world_fini(struct bh_world *w)
{
    bh_sim_free(w->sim);
    bh_loop_drain_close(&w->loop);
    bh_offline_fini(&w->offline);
    bh_arena_fini(&w->decoded);
}
