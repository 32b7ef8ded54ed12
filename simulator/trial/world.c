/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/trial/world.c - objects of the files into the engine and the queue
 */
#include <errno.h>
#include <stdio.h>

#include "simulator/trial/trial.h"
#include "common/k8s/compile.h"
#include "common/k8s/quantity.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

/* An object costs more decoded than as text; beyond this it is hostile. */
#define DECODED_MAX(n) (((size_t)4 << 20) + 64 * (n))

struct bh_trial_pod *bh_trial_pod_of(const struct bh_trial *t, struct bh_str uid)
{
    return bh_map_get(&t->pods, uid.p, uid.n);
}

struct bh_trial_pod *bh_trial_add_pod(struct bh_trial *t, const struct bh_pod_rec *rec,
                                      const struct bh_shape_rec *shape)
{
    struct bh_trial_pod *p = bh_calloc(1, sizeof *p);

    p->shape = bh_engine_shape(t->engine, shape);
    p->rec = bh_memdup(rec, rec->h.size);
    p->rec->shape = p->shape;
    p->order = (uint32_t)t->n_list;
    if (t->n_list == t->cap_list) {
        t->cap_list = t->cap_list ? 2 * t->cap_list : 64;
        t->list = bh_reallocarray(t->list, t->cap_list, sizeof *t->list);
    }
    t->list[t->n_list++] = p;
    bh_map_put(&t->pods, bh_trial_uid(p).p, bh_trial_uid(p).n, p);
    return p;
}

/* ---- one object -------------------------------------------------------------------------------
 */

static int put_node(struct bh_trial *t, struct bh_arena *a, const ProtobufCMessage *m,
                    struct bh_err *err)
{
    struct bh_interner in = bh_symtab_interner(bh_engine_symtab(t->engine));
    struct bh_node_rec *rec;
    int rc = bh_compile_node(a, (const struct K8s__Node *)(const void *)m, &in, &rec, err);

    if (rc < 0)
        return rc;
    bh_engine_put_node(t->engine, rec);
    bh_engine_put_raw_message(t->engine, BH_KIND_NODE, m);
    return 0;
}

/* name: "ns/name" */
static bool is_named(const struct bh_trial_item *it, const char *name)
{
    size_t n = strlen(it->ns);

    return name && strncmp(name, it->ns, n) == 0 && name[n] == '/' &&
           bh_streq(name + n + 1, it->name);
}

/* Pending: may it take part? */
static bool takes_part(struct bh_trial *t, const struct bh_trial_item *it,
                       const struct bh_pod_rec *rec, const struct bh_shape_rec *shape)
{
    const char *scheduler = bh_sym_text(bh_engine_symtab(t->engine), shape->scheduler_name);

    if (t->o.only && !is_named(it, t->o.only))
        return false;
    if (rec->flags & BH_POD_TERMINATING) {
        t->n_terminating++;
        return false;
    }
    if (!bh_engine_responsible(t->engine, scheduler)) {
        t->n_foreign++;
        return false;
    }
    return true;
}

static int put_pod(struct bh_trial *t, struct bh_arena *a, const struct bh_trial_item *it,
                   const ProtobufCMessage *m, struct bh_err *err)
{
    struct bh_interner in = bh_symtab_interner(bh_engine_symtab(t->engine));
    const struct K8s__Pod *msg = (const struct K8s__Pod *)(const void *)m;
    const char *phase = msg->status && msg->status->phase ? msg->status->phase : "";
    struct bh_shape_rec *shape;
    struct bh_pod_rec *rec;

    if (bh_streq(phase, "Succeeded") || bh_streq(phase, "Failed")) {
        t->n_finished++;
        return 0;
    }
    int rc = bh_compile_shape(a, msg, &in, &shape, err);
    if (rc >= 0)
        rc = bh_compile_pod(a, msg, &in, &rec, err);
    if (rc < 0)
        return rc;
    bh_engine_put_raw_message(t->engine, BH_KIND_POD, m);
    if (bh_trial_pod_of(t, bh_rec_text(rec, rec->uid)) ||
        bh_engine_find_pod(t->engine, bh_rec_text(rec, rec->uid), NULL))
        return bh_err_set(err, -EINVAL, "metadata.uid: Duplicate value: another pod has it");
    if (is_named(it, t->o.unbind))
        rec->node = BH_SYM_NONE;
    if (rec->node != BH_SYM_NONE) {
        bh_shape_id id = bh_engine_shape(t->engine, shape);
        rec->shape = id;
        bh_engine_put_pod(t->engine, rec, id);
        bh_engine_shape_unref(t->engine, id);
        t->n_placed_before++;
    } else if (takes_part(t, it, rec, shape)) {
        bh_trial_add_pod(t, rec, shape)->rank = it->at.rank;
    }
    bh_trial_budgets_see(t, shape, rec->node != BH_SYM_NONE);
    return 0;
}

static int put_message(struct bh_trial *t, const struct bh_kind_info *k, const ProtobufCMessage *m,
                       struct bh_err *err)
{
    const K8s__ObjectMeta *meta = bh_object_meta(m);
    struct bh_buf b = {0};

    bh_pb_pack(&b, m);
    int rc = bh_engine_put_object(t->engine, k->kind, k->namespaced ? meta->namespace_ : "",
                                  meta->name, bh_buf_str(&b), b.n, err);
    bh_buf_fini(&b);
    return rc;
}

int bh_trial_put_json(struct bh_trial *t, struct bh_arena *a, const struct bh_kind_info *k,
                      const struct bh_json *obj, struct bh_err *err)
{
    ProtobufCMessage *m;
    int rc = bh_json_to_pb(a, k->desc, obj, &m, NULL, err);

    return rc < 0 ? rc : put_message(t, k, m, err);
}

/* ---- quantities -------------------------------------------------------------------------------
 */

/* Members that hold quantities by resource name. */
static bool holds_quantities(const char *key)
{
    static const char *const keys[] = {"requests", "limits", "overhead", "capacity", "allocatable"};

    for (size_t i = 0; i < BH_ARRAY_LEN(keys); i++)
        if (bh_streq(key, keys[i]))
            return true;
    return false;
}

/* No amount of anything is below zero; an API server would have refused it, so nobody expects it.
 * path: where obj stands. */
static int check_amounts(const struct bh_json *obj, const char *path, int depth, struct bh_err *err)
{
    int rc = 0;

    bh_json_each (m, obj) {
        bool map = obj->type == BH_JSON_OBJECT && m->type == BH_JSON_OBJECT;
        BH_CLEANUP(bh_freep)
        char *here = bh_asprintf("%.200s%s%.100s", path, *path && m->key.p ? "." : "",
                                 m->key.p ? m->key.p : "[]");
        bh_json_each (q, map && holds_quantities(m->key.p) ? m : NULL) {
            bh_nano v;
            if (rc == 0 && (q->type == BH_JSON_STRING || q->type == BH_JSON_NUMBER) &&
                bh_quantity_parse(q->s.p, q->s.n, &v) == 0 && v < 0)
                rc = bh_err_set(err, -EINVAL,
                                "%s.%.100s: Invalid value: %.40s: must be greater "
                                "than or equal to 0",
                                here, q->key.p, q->s.p);
        }
        if (rc == 0 && depth < 8 && (m->type == BH_JSON_OBJECT || m->type == BH_JSON_ARRAY))
            rc = check_amounts(m, here, depth + 1, err);
    }
    return rc;
}

/* ---- an item ----------------------------------------------------------------------------------
 */

static int put_item(struct bh_trial *t, struct bh_arena *a, const struct bh_trial_item *it,
                    struct bh_err *err)
{
    struct bh_json *obj;
    ProtobufCMessage *m;
    int rc = bh_json_parse(a, it->json, it->n, 0, &obj, err);

    if (rc < 0)
        return rc;
    bh_api_defaults(a, obj);
    if (it->kind->namespaced)
        bh_json_set_str(a, bh_json_get(obj, "metadata"), "namespace", it->ns);
    rc = bh_json_to_pb(a, it->kind->desc, obj, &m, NULL, err);
    if (rc >= 0 && it->kind->kind <= BH_KIND_POD)
        rc = check_amounts(obj, "", 0, err);
    if (rc < 0)
        return rc;
    switch (it->kind->kind) {
    case BH_KIND_NODE:
        t->n_nodes++;
        return put_node(t, a, m, err);
    case BH_KIND_POD:
        return put_pod(t, a, it, m, err);
    case BH_KIND_PODDISRUPTIONBUDGET:
        return bh_trial_budgets_add(t, a, it, obj, err);
    default:
        return put_message(t, it->kind, m, err);
    }
}

/* ---- all of them ------------------------------------------------------------------------------
 */

/* Pods come last: their budgets and nodes are there then. */
static unsigned turn_of(const struct bh_trial_item *it)
{
    return it->kind->kind == BH_KIND_POD ? 2 : it->kind->kind == BH_KIND_NODE ? 1 : 0;
}

static int put_all(struct bh_trial *t, struct bh_err *err)
{
    struct bh_arena a;
    size_t done = 0;
    int rc = 0;

    bh_arena_init(&a, 0);
    for (unsigned turn = 0; turn < 3 && rc >= 0; turn++) {
        for (size_t i = 0; i < t->n_items && rc >= 0; i++) {
            const struct bh_trial_item *it = &t->items[i];
            if (it->replaced || !it->kind || turn_of(it) != turn)
                continue;
            a.limit_bytes = DECODED_MAX(it->n);
            rc = put_item(t, &a, it, err);
            if (rc < 0)
                bh_trial_blame(err, rc, it);
            bh_arena_reset(&a);
            bh_trial_progress(t, "reading", done++, t->n_items);
            if (rc >= 0 && bh_trial_stopped(t))
                rc = bh_err_set(err, -ECANCELED, "cancelled");
        }
    }
    bh_arena_fini(&a);
    return rc;
}

static int by_age(const void *pa, const void *pb)
{
    const struct bh_trial_pod *a = *(struct bh_trial_pod *const *)pa,
                              *b = *(struct bh_trial_pod *const *)pb;

    if (a->rec->creation_ns != b->rec->creation_ns)
        return a->rec->creation_ns < b->rec->creation_ns ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

/* Upstream's queue sees pods in the order of their creation, as its list and watch tell them. */
static void enqueue(struct bh_trial *t)
{
    if (t->n_list > 1)
        qsort(t->list, t->n_list, sizeof *t->list, by_age);
    for (size_t i = 0; i < t->n_list; i++) {
        struct bh_trial_pod *p = t->list[i];
        /* the queue takes a reference over, and the trial keeps its own */
        bh_shape_id id = bh_engine_shape(t->engine, bh_engine_shape_rec(t->engine, p->shape));
        bh_queue_add(t->queue, p->rec, id, "", t->o.now_ns + (int64_t)i);
        if (p->rec->nominated_node != BH_SYM_NONE) {
            const struct bh_pending pending = {.pod = p->rec, .shape = p->shape};
            bh_engine_nominate(t->engine, &pending, p->rec->nominated_node);
        }
    }
}

int bh_trial_populate(struct bh_trial *t, struct bh_err *err)
{
    int rc = put_all(t, err);

    if (rc < 0)
        return rc;
    bh_trial_budgets_settle(t);
    enqueue(t);
    if (!t->n_nodes)
        bh_trial_warn(t, "the files hold no node");
    return 0;
}

static int on_object(void *arg, const struct bh_trial_source *at, struct bh_arena *a,
                     struct bh_json *obj, struct bh_err *err)
{
    struct bh_trial_source place = *at;
    struct bh_trial *t = arg;

    (void)a;
    place.rank = ++t->n_read;
    bh_json_unset(bh_json_get(obj, "metadata"), "managedFields");
    return bh_trial_add_item(t, &place, obj, err);
}

int bh_trial_add_text(struct bh_trial *t, const char *label, const char *p, size_t n,
                      struct bh_err *err)
{
    return bh_trial_read_text(label, p, n, &t->names, on_object, t, err);
}

int bh_trial_load(struct bh_trial *t, const char *const *paths, size_t n, struct bh_err *err)
{
    int rc = 0;

    for (size_t i = 0; i < n && rc >= 0; i++)
        rc = bh_trial_read(paths[i], &t->names, on_object, t, err);
    if (rc >= 0 && !t->n_items)
        rc = bh_err_set(err, -EINVAL, "no object in the files says anything about scheduling");
    return rc < 0 ? rc : bh_trial_prepare(t, err);
}

int bh_trial_prepare(struct bh_trial *t, struct bh_err *err)
{
    int rc = bh_trial_admit(t, err);

    return rc < 0 ? rc : bh_trial_populate(t, err);
}

/* ---- life -------------------------------------------------------------------------------------
 */

int bh_trial_new(const struct bh_trial_options *o, struct bh_trial **ret, struct bh_err *err)
{
    struct bh_trial *t = bh_calloc(1, sizeof *t);

    t->o = *o;
    bh_arena_init(&t->names, 0);
    int rc = o->config_object ? bh_sched_config_new(o->config_object, &t->config, err)
                              : bh_sched_config_load(o->config, &t->config, err);
    if (rc >= 0 && o->no_extenders)
        t->config->n_extenders = 0;
    if (rc >= 0) {
        const struct bh_engine_options eo = {.config = t->config,
                                             .tie_break = o->tie_break,
                                             .seed = o->seed,
                                             .verify = o->verify,
                                             /* files have no history that a cache could hold */
                                             .rebuilt_snapshot = true};
        rc = bh_engine_new(&eo, &t->engine, err);
    }
    if (rc < 0) {
        bh_trial_free(t);
        return rc;
    }
    /* Nothing is tried again for the mere passing of time. */
    const struct bh_queue_options qo = {.verify = o->verify,
                                        .initial_backoff_ns = t->config->pod_initial_backoff_ns,
                                        .max_backoff_ns = t->config->pod_max_backoff_ns,
                                        .max_in_unschedulable_ns = INT64_MAX / 4};
    t->queue = bh_queue_new(t->engine, &qo);
    *ret = t;
    return 0;
}

void bh_trial_free(struct bh_trial *t)
{
    if (!t)
        return;
    bh_queue_free(t->queue);
    for (size_t i = 0; i < t->n_list; i++) {
        struct bh_trial_pod *p = t->list[i];
        bh_engine_shape_unref(t->engine, p->shape);
        free(p->rec);
        free(p->reason);
        free(p->message);
        bh_buf_fini(&p->explanations);
        free(p);
    }
    free(t->list);
    bh_map_fini(&t->pods);
    bh_trial_budgets_fini(t);
    bh_trial_items_fini(t);
    bh_engine_free(t->engine);
    bh_sched_config_free(t->config);
    bh_arena_fini(&t->names);
    free(t->warnings);
    free(t);
}
