/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/conformance_replay.c - a recorded case against the engine
 *
 * An offline world without a queue: the case says whose turn it is. Pods by name; a decided one is
 * bound at once; a preemptor's victims are deleted at once and the pod is nominated.
 */
#include <errno.h>

#include "cli/conformance.h"
#include "common/base/map.h"
#include "simulator/admission/admission.h"
#include "simulator/offline/offline.h"

/* A fixed clock: pods without a start time started now, whenever that was. */
#define NOW_NS ((int64_t)1893456000 * 1000000000)

struct pod { /* one pod the case has mentioned */
    struct bh_pod_rec *rec;
    bh_shape_id shape;
    bool pending;
    bool preempting; /* nominated by a preemption of this case */
};
struct bh_replay {
    struct bh_offline w;
    struct bh_sched_config *config;
    struct bh_map pods;         /* "ns/name" -> struct pod * */
    struct bh_through *through; /* NULL: decisions are compared as they are */
};

int bh_replay_new(const struct bh_json *config, bool verify, bool through_record,
                  struct bh_replay **ret, struct bh_err *err)
{
    struct bh_replay *r = bh_calloc(1, sizeof *r);
    int rc = bh_sched_config_new(config, &r->config, err);

    if (rc >= 0) {
        const struct bh_offline_options oo = {.config = r->config,
                                              .tie_break = BH_TIE_FIRST,
                                              .verify = verify,
                                              .rebuilt_snapshot = true,
                                              .no_queue = true,
                                              .now_ns = NOW_NS};
        rc = bh_offline_init(&r->w, &oo, err);
        if (rc >= 0 && through_record)
            r->through = bh_through_new(r->w.engine);
    }
    if (rc < 0) {
        bh_replay_free(r);
        return rc;
    }
    *ret = r;
    return 0;
}

void bh_replay_free(struct bh_replay *r)
{
    struct bh_map_entry *m;

    if (!r)
        return;
    for (size_t it = 0; (m = bh_map_next(&r->pods, &it));) {
        free(((struct pod *)m->value)->rec);
        free(m->value);
    }
    bh_map_fini(&r->pods);
    bh_through_free(r->through);
    bh_offline_fini(&r->w);
    bh_sched_config_free(r->config);
    free(r);
}

/* ---- objects --------------------------------------------------------------------------------- */

static struct bh_str pod_uid(const struct pod *p)
{
    return bh_rec_text(p->rec, p->rec->uid);
}

static const char *pod_key(struct bh_arena *a, const char *ns, const char *name)
{
    return bh_arena_printf(a, "%s/%s", ns && *ns ? ns : "default", name ? name : "");
}

static void forget_pod(struct bh_replay *r, const char *key)
{
    struct pod *p = bh_map_del(&r->pods, key, strlen(key));

    if (!p)
        return;
    bh_offline_del(&r->w, BH_KIND_POD, "", pod_uid(p).p);
    bh_engine_shape_unref(r->w.engine, p->shape);
    free(p->rec);
    free(p);
}

static int read_and_put(struct bh_replay *r, const struct bh_kind_info *k,
                        const struct bh_json *obj, struct pod **ret_pod, struct bh_err *err)
{
    struct bh_arena a BH_CLEANUP(bh_arena_fini);
    struct bh_offline_object x;

    bh_arena_init(&a, (size_t)64 << 20);
    struct bh_json *copy = bh_json_clone(&a, obj);
    bh_api_defaults(&a, copy);
    if (bh_json_path(copy, "metadata.namespace") == NULL && k->namespaced)
        bh_json_set_str(&a, bh_json_obj_at(&a, copy, "metadata"), "namespace", "default");
    int rc = bh_offline_read(r->w.engine, &a, k, copy, &x, err);
    if (rc < 0)
        return rc;
    if (x.pod) {
        const char *key = pod_key(&a, x.ns, x.name);
        struct pod *p = *ret_pod = bh_calloc(1, sizeof *p);
        forget_pod(r, key);
        p->shape = bh_engine_shape(r->w.engine, x.shape);
        p->rec = bh_memdup(x.pod, x.pod->h.size);
        p->rec->shape = p->shape;
        p->pending = x.pod->node == BH_SYM_NONE;
        bh_map_put(&r->pods, key, strlen(key), p);
    }
    return bh_offline_put(&r->w, &x, err);
}

static int put(struct bh_replay *r, const struct bh_json *obj, struct pod **ret_pod,
               struct bh_err *err)
{
    const char *version = bh_json_get_str(obj, "apiVersion"), *kind = bh_json_get_str(obj, "kind");
    const struct bh_kind_info *k = version && kind ? bh_kind_find(version, kind) : NULL;

    if (!k)
        return bh_err_set(err, -EINVAL, "unknown object %s %s",
                          version ? version : "(no apiVersion)", kind ? kind : "(no kind)");
    int rc = read_and_put(r, k, obj, ret_pod, err);
    return rc < 0 ? bh_err_prefix(err, rc, "%s %s", kind,
                                  bh_json_get_text(bh_json_get(obj, "metadata"), "name"))
                  : 0;
}

int bh_replay_put(struct bh_replay *r, const struct bh_json *obj, struct bh_err *err)
{
    struct pod *ignored;

    return put(r, obj, &ignored, err);
}

static int delete_object(struct bh_replay *r, struct bh_arena *a, const struct bh_json *step,
                         struct bh_err *err)
{
    const char *kind = bh_json_get_str(step, "kind"), *name = bh_json_get_str(step, "name");
    const char *ns = bh_json_get_str(step, "namespace");

    if (!kind || !name)
        return bh_err_set(err, -EINVAL, "delete: kind or name is missing");
    for (unsigned i = 0; i < BH_KIND_COUNT; i++) {
        if (!bh_streq(bh_kinds[i].kind_name, kind))
            continue;
        if (i == BH_KIND_POD)
            forget_pod(r, pod_key(a, ns, name));
        else
            bh_offline_del(&r->w, i, ns, name);
        return 0;
    }
    return bh_err_set(err, -EINVAL, "delete: unknown kind %s", kind);
}

/* ---- decisions ------------------------------------------------------------------------------- */

/* Upstream's nominator finds a pod's priority and requests in the scheduling queue, and the
 * recording was made without one: there a nominated pod counts as an empty pod of its namespace, with priority 0. */
static void nominate(struct bh_replay *r, struct pod *p, bh_sym node)
{
    const struct bh_shape_rec *own = bh_engine_shape_rec(r->w.engine, p->shape);
    struct bh_shape_rec empty = {
        .h = {.size = sizeof empty, .type = BH_REC_SHAPE, .layout = BH_REC_LAYOUT},
        .namespace_ = own->namespace_};
    const int32_t priority = own->priority;
    bh_shape_id stub = bh_engine_shape(r->w.engine, &empty);
    const struct bh_pending pending = {.pod = p->rec, .shape = stub};
    struct bh_map_entry *m;

    /* A higher preemptor takes the node away from lower pods that were promised it. */
    for (size_t it = 0; (m = bh_map_next(&r->pods, &it));) {
        struct pod *q = m->value;
        if (q == p || q->rec->nominated_node != node ||
            bh_engine_shape_rec(r->w.engine, q->shape)->priority >= priority)
            continue;
        q->rec->nominated_node = BH_SYM_NONE;
        bh_engine_unnominate(r->w.engine, pod_uid(q));
    }
    p->rec->nominated_node = node;
    bh_engine_nominate(r->w.engine, &pending, node);
    bh_engine_shape_unref(r->w.engine, stub);
}

/* Applies the first outcome of the record; without a record, the engine's own. */
static void apply_preemption(struct bh_replay *r, struct pod *p, const struct bh_json *outcome)
{
    const char *node = bh_json_get_str(outcome, "node");

    if (!node)
        return;
    bh_json_each(v, bh_json_get(outcome, "victims")) {
        if (v->type == BH_JSON_STRING)
            forget_pod(r, v->s.p);
    }
    nominate(r, p, bh_sym_internc(bh_engine_symtab(r->w.engine), node));
}

static int decide(struct bh_replay *r, struct bh_arena *a, struct pod *p,
                  const struct bh_json *expect, bool compact, const struct bh_json **ret_got,
                  struct bh_err *err)
{
    const struct bh_pending pending = {.pod = p->rec, .shape = p->shape};
    const struct bh_shape_rec *s = bh_engine_shape_rec(r->w.engine, p->shape);
    struct bh_symtab *tab = bh_engine_symtab(r->w.engine);

    if (!bh_engine_responsible(r->w.engine, bh_sym_text(tab, s->scheduler_name))) {
        *ret_got = bh_error_json(a, "no profile", compact);
        return 0;
    }
    const struct bh_status *gate = bh_engine_pre_enqueue(r->w.engine, &pending);
    if (gate) {
        *ret_got = bh_gated_json(a, gate, compact);
        return 0;
    }
    const struct bh_decision *d = bh_engine_schedule(r->w.engine, &pending, BH_EXPLAIN, NOW_NS);
    const struct bh_decision *shown = r->through ? bh_through_record(r->through, a, d, err) : d;
    if (!shown)
        return -EIO;
    *ret_got = bh_decision_json(a, tab, shown, compact);
    if (d->kind == BH_DECIDED) {
        bh_sym node = d->node;
        bh_engine_assume(r->w.engine, &pending, node);
        p->rec->node = node; /* and no start time: recordings have none */
        p->pending = false;
        bh_engine_put_pod(r->w.engine, p->rec, p->shape);
        return 0;
    }
    if (d->clear_nomination) {
        p->rec->nominated_node = BH_SYM_NONE;
        bh_engine_unnominate(r->w.engine, pod_uid(p));
    }
    const struct bh_json *outcomes = bh_json_get(expect, "preempt");
    apply_preemption(r, p, bh_json_at(outcomes ? outcomes : bh_json_get(*ret_got, "preempt"), 0));
    return 0;
}

int bh_replay_step(struct bh_replay *r, struct bh_arena *a, const struct bh_json *step,
                   const struct bh_json *expect, bool compact, const struct bh_json **ret_got,
                   struct bh_err *err)
{
    const char *op = bh_json_get_str(step, "op");
    struct pod *p = NULL;

    *ret_got = NULL;
    if (!op)
        return bh_err_set(err, -EINVAL, "step without op");
    if (bh_streq(op, "apply"))
        return bh_replay_put(r, bh_json_get(step, "object"), err);
    if (bh_streq(op, "delete"))
        return delete_object(r, a, step, err);
    if (bh_streq(op, "schedule")) {
        int rc = put(r, bh_json_get(step, "object"), &p, err);
        if (rc < 0)
            return rc;
        if (!p)
            return bh_err_set(err, -EINVAL, "schedule: the object is not a pod");
    } else if (bh_streq(op, "reschedule")) {
        const char *key =
            pod_key(a, bh_json_get_str(step, "namespace"), bh_json_get_str(step, "name"));
        p = bh_map_get(&r->pods, key, strlen(key));
    } else {
        return bh_err_set(err, -EINVAL, "unknown op %s", op);
    }
    if (!p || !p->pending) {
        *ret_got = bh_error_json(a, "not pending", compact);
        return 0;
    }
    return decide(r, a, p, expect, compact, ret_got, err);
}
