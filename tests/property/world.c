/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/property/world.c - objects as the API server has them, and the offline worlds that hear of
 * every change
 */
#include <errno.h>

#include "common/k8s/codec.h"
#include "tests/property/property.h"

bool failed(const struct world *w)
{
    return w->found->kind[0] != 0;
}

void fail(struct world *w, const char *kind, const char *fmt, ...)
{
    va_list ap;
    int n;

    if (failed(w))
        return;
    snprintf(w->found->kind, sizeof w->found->kind, "%s", kind);
    n = snprintf(w->found->text, sizeof w->found->text, "op %zu (%s): ", w->op, w->why);
    va_start(ap, fmt);
    vsnprintf(w->found->text + n, sizeof w->found->text - (size_t)n, fmt, ap);
    va_end(ap);
}

/* ---- things ---------------------------------------------------------------------------------- */

static const char *id_of(struct bh_arena *a, enum bh_kind kind, const char *ns, const char *name)
{
    return bh_kinds[kind].namespaced
               ? bh_arena_printf(a, "%s %s/%s", bh_kinds[kind].kind_name, ns, name)
               : bh_arena_printf(a, "%s %s", bh_kinds[kind].kind_name, name);
}

static struct thing *find_id(const struct world *w, const char *id)
{
    return bh_map_get(&w->things, id, strlen(id));
}

struct thing *find_thing(const struct world *w, enum bh_kind kind, const char *ns, const char *name)
{
    struct bh_arena a;

    bh_arena_init(&a, 0);
    struct thing *t = find_id(w, id_of(&a, kind, ns ? ns : "", name ? name : ""));
    bh_arena_fini(&a);
    return t;
}

struct thing *find_pod(const struct world *w, const char *key)
{
    BH_CLEANUP(bh_freep) char *id = bh_asprintf("Pod %s", key ? key : "");

    return find_id(w, id);
}

const char *thing_name(const struct thing *t)
{
    const char *s = bh_json_get_str(bh_json_get(t->object, "metadata"), "name");
    return s ? s : "";
}

const char *thing_namespace(const struct thing *t)
{
    const char *s = bh_json_get_str(bh_json_get(t->object, "metadata"), "namespace");
    return s ? s : "";
}

static int by_order(const void *a, const void *b)
{
    const struct thing *x = *(struct thing *const *)a, *y = *(struct thing *const *)b;
    return x->order < y->order ? -1 : x->order > y->order;
}

struct thing **all_things(const struct world *w, struct bh_arena *a, enum bh_kind kind)
{
    struct thing **v = bh_arena_new_array(a, struct thing *, w->things.len + 1);
    struct bh_map_entry *m;
    size_t n = 0;

    for (size_t it = 0; (m = bh_map_next(&w->things, &it));) {
        struct thing *t = m->value;
        if (kind == BH_KIND_COUNT || t->kind == kind)
            v[n++] = t;
    }
    qsort(v, n, sizeof *v, by_order);
    return v;
}

bool has_assumed(const struct world *w)
{
    struct bh_map_entry *m;

    for (size_t it = 0; (m = bh_map_next(&w->things, &it));)
        if (((struct thing *)m->value)->place == POD_ASSUMED)
            return true;
    return false;
}

struct bh_pending pending_of(const struct world *w, const struct thing *pod, unsigned engine)
{
    const struct bh_queue *q = w->w[engine].queue;
    struct bh_pending p = {.pod = pod->side[engine].rec, .shape = pod->side[engine].shape};
    struct bh_pod_state *s = q ? bh_queue_pod(q, bh_rec_text(p.pod, p.pod->uid)) : NULL;

    if (s) /* the nomination hangs on the pod's handle: without it a later update would not find it */
        p.nomination = &s->nomination;
    return p;
}

struct bh_str uid_of(const struct thing *pod)
{
    return bh_rec_text(pod->side[MAIN].rec, pod->side[MAIN].rec->uid);
}

bh_sym sym_in(struct bh_engine *e, const char *text)
{
    return bh_sym_internc(bh_engine_symtab(e), text);
}

static void drop_side(struct world *w, struct thing *t)
{
    for (unsigned e = 0; e < ENGINES; e++) {
        if (!t->side[e].rec)
            continue;
        bh_engine_shape_unref(w->w[e].engine, t->side[e].shape);
        free(t->side[e].rec);
        t->side[e].rec = NULL;
    }
}

static void free_thing(struct world *w, struct thing *t)
{
    drop_side(w, t);
    free(t->id);
    free(t);
}

static void remove_thing(struct world *w, struct thing *t)
{
    (void)bh_map_del(&w->things, t->id, strlen(t->id));
    free_thing(w, t);
}

static struct thing *keep(struct world *w, enum bh_kind kind, struct bh_json *object)
{
    const struct bh_json *meta = bh_json_get(object, "metadata");
    const char *ns = bh_json_get_str(meta, "namespace"), *name = bh_json_get_str(meta, "name");
    const char *id = id_of(&w->arena, kind, ns ? ns : "", name ? name : "");
    struct thing *t = find_id(w, id);

    if (!t) {
        t = bh_calloc(1, sizeof *t);
        t->kind = kind;
        t->id = bh_strdup(id);
        bh_map_put(&w->things, id, strlen(id), t);
    }
    t->object = object;
    t->order = ++w->order;
    return t;
}

/* ---- into a world ---------------------------------------------------------------------------- */

int compile_pod(struct bh_engine *e, struct bh_arena *a, const struct bh_json *object,
                struct bh_pod_rec **ret, bh_shape_id *ret_shape, struct bh_err *err)
{
    struct bh_offline_object x;
    int rc = bh_offline_read(e, a, &bh_kinds[BH_KIND_POD], object, &x, err);

    if (rc < 0)
        return rc;
    *ret = x.pod;
    *ret_shape = x.pod->shape = bh_engine_shape(e, x.shape);
    return 0;
}

int put_thing(struct bh_offline *o, const struct thing *t, struct bh_err *err)
{
    struct bh_arena a;

    if (t->kind == BH_KIND_POD && t->place != POD_BOUND)
        return 0;
    bh_arena_init(&a, 0);
    int rc = bh_offline_put_tree(o, &a, &bh_kinds[t->kind], t->object, err);
    bh_arena_fini(&a);
    return rc;
}

/* A namespace comes before its pods and goes after them, really: hints need not know. */
static void namespace_changed(struct world *w, enum bh_kind kind)
{
    if (kind == BH_KIND_NAMESPACE)
        bh_queue_wake_all(w->w[MAIN].queue, w->w[MAIN].now_ns);
}

static void apply_other(struct world *w, enum bh_kind kind, struct bh_json *object)
{
    const struct bh_json *meta = bh_json_get(object, "metadata");
    bool known =
        find_thing(w, kind, bh_json_get_str(meta, "namespace"), bh_json_get_str(meta, "name"));
    const struct thing *t = keep(w, kind, object);
    struct bh_err err = {{0}};

    for (unsigned e = 0; e < ENGINES; e++)
        if (put_thing(&w->w[e], t, &err) < 0)
            fail(w, "input", "%s", err.msg);
    if (!known)
        namespace_changed(w, kind);
}

static void delete_other(struct world *w, struct thing *t)
{
    for (unsigned e = 0; e < ENGINES; e++)
        bh_offline_del(&w->w[e], t->kind, thing_namespace(t), thing_name(t));
    namespace_changed(w, t->kind);
    remove_thing(w, t);
}

/* ---- pods ------------------------------------------------------------------------------------ */

/* As the queue does for its engine: whose group has it as a member. */
static void fast_waits(struct world *w, const struct thing *t, bool waits)
{
    const struct bh_pending p = pending_of(w, t, FAST);

    bh_engine_waits(w->w[FAST].engine, &p, waits);
}

static void leave(struct world *w, const struct thing *t)
{
    if (t->place != POD_PENDING && !bh_engine_find_pod(w->w[MAIN].engine, uid_of(t), NULL))
        fail(w, "lost pod", "%s is not in the cache", t->id);
    if (t->place == POD_PENDING)
        fast_waits(w, t, false);
    for (unsigned e = 0; e < ENGINES; e++)
        bh_offline_del(&w->w[e], BH_KIND_POD, "",
                       bh_rec_text(t->side[e].rec, t->side[e].rec->uid).p);
    if (bh_engine_find_pod(w->w[MAIN].engine, uid_of(t), NULL))
        fail(w, "forget", "%s cannot be forgotten", t->id);
}

static void tell(struct world *w, const struct thing *t, enum bh_event_action action)
{
    const struct bh_pod_rec *pod = t->side[MAIN].rec;
    const struct bh_shape_rec *shape = bh_engine_shape_rec(w->w[MAIN].engine, t->side[MAIN].shape);
    struct bh_cluster_event ev = {.resource = BH_EV_POD_ASSIGNED, .action = action};

    *(action == BH_EV_DELETE ? &ev.old_pod : &ev.new_pod) = pod;
    *(action == BH_EV_DELETE ? &ev.old_shape : &ev.new_shape) = shape;
    bh_offline_event(&w->w[MAIN], &ev);
}

static bool compile_sides(struct world *w, struct thing *t, struct pod_side out[ENGINES])
{
    struct bh_err err = {{0}};
    struct bh_pod_rec *rec;
    struct bh_arena a;

    bh_arena_init(&a, 0);
    for (unsigned e = 0; e < ENGINES; e++) {
        if (compile_pod(w->w[e].engine, &a, t->object, &rec, &out[e].shape, &err) < 0) {
            fail(w, "input", "%s: %s", t->id, err.msg);
            bh_arena_fini(&a);
            return false;
        }
        out[e].rec = bh_memdup(rec, rec->h.size);
    }
    bh_arena_fini(&a);
    return true;
}

static void queue_pod(struct world *w, const struct thing *t)
{
    bh_offline_pend(&w->w[MAIN], t->side[MAIN].rec,
                    bh_engine_shape_rec(w->w[MAIN].engine, t->side[MAIN].shape));
}

/* As the queue does for its engine. */
static void renominate(struct world *w, struct thing *t, const char *node)
{
    struct bh_pending p = pending_of(w, t, FAST);

    if (t->nominated || node)
        bh_engine_unnominate(w->w[FAST].engine, bh_rec_text(p.pod, p.pod->uid));
    if (node)
        bh_engine_nominate(w->w[FAST].engine, &p, sym_in(w->w[FAST].engine, node));
    t->nominated = node;
}

static const char *nominated_in(const struct bh_json *pod)
{
    const char *s = bh_json_get_str(bh_json_get(pod, "status"), "nominatedNodeName");
    return s && *s ? s : NULL;
}

/* New or changed, not on a node. */
static void put_pending(struct world *w, struct thing *t, struct pod_side side[ENGINES])
{
    struct thing old = *t;

    memcpy(t->side, side, sizeof t->side);
    t->place = POD_PENDING;
    t->node = NULL;
    if (old.side[FAST].rec && old.place == POD_PENDING)
        fast_waits(w, &old, false);
    fast_waits(w, t, true);
    queue_pod(w, t);
    renominate(w, t, nominated_in(t->object));
    drop_side(w, &old);
}

/* No API server moves a pod; if one did, it would be gone here and new there. */
static void move(struct world *w, const struct thing *old, const struct thing *t)
{
    for (unsigned e = 0; e < ENGINES; e++)
        bh_engine_put_pod(w->w[e].engine, t->side[e].rec, t->side[e].shape);
    tell(w, old, BH_EV_DELETE);
    tell(w, t, BH_EV_ADD);
}

static void put_bound(struct world *w, struct thing *t, struct pod_side side[ENGINES])
{
    struct thing old = *t;
    struct bh_err err = {{0}};

    memcpy(t->side, side, sizeof t->side);
    t->place = POD_BOUND;
    t->node = bh_json_get_str(bh_json_get(t->object, "spec"), "nodeName");
    t->nominated = NULL;
    if (old.side[MAIN].rec && old.place == POD_BOUND &&
        old.side[MAIN].rec->node != side[MAIN].rec->node)
        move(w, &old, t);
    else
        for (unsigned e = 0; e < ENGINES; e++)
            (void)put_thing(&w->w[e], t, &err);
    drop_side(w, &old);
}

static void delete_pod(struct world *w, struct thing *t)
{
    leave(w, t);
    remove_thing(w, t);
}

static void apply_pod(struct world *w, struct bh_json *object)
{
    const struct bh_json *meta = bh_json_get(object, "metadata");
    const char *uid = bh_json_get_str(meta, "uid");
    const char *node = bh_json_get_str(bh_json_get(object, "spec"), "nodeName");
    struct thing *t = find_thing(w, BH_KIND_POD, bh_json_get_str(meta, "namespace"),
                                 bh_json_get_str(meta, "name"));
    struct pod_side side[ENGINES] = {{0}};

    if (t && !bh_streq(bh_json_get_str(bh_json_get(t->object, "metadata"), "uid"), uid)) {
        delete_pod(w, t);
        t = NULL;
    }
    if (t && t->place == POD_ASSUMED && !node)
        return; /* its queue entry would change, nothing that is decided */
    if (t && t->place == POD_BOUND && !node) {
        node = t->node; /* no pod leaves its node, or starts a second time */
        bh_json_set_str(&w->arena, bh_json_obj_at(&w->arena, object, "spec"), "nodeName", node);
        const char *start = bh_json_get_str(bh_json_get(t->object, "status"), "startTime");
        if (start)
            bh_json_set_str(&w->arena, bh_json_obj_at(&w->arena, object, "status"), "startTime",
                            start);
    }
    struct bh_json *before = t ? t->object : NULL;
    t = keep(w, BH_KIND_POD, object);
    if (!compile_sides(w, t, side)) {
        t->object = before;
        return;
    }
    if (node)
        put_bound(w, t, side);
    else
        put_pending(w, t, side);
}

static void apply(struct world *w, const struct bh_json *object)
{
    const char *version = bh_json_get_str(object, "apiVersion");
    const char *kind = bh_json_get_str(object, "kind");
    const struct bh_kind_info *k = version && kind ? bh_kind_find(version, kind) : NULL;
    struct bh_json *copy = bh_json_clone(&w->arena, object);

    if (!k)
        fail(w, "input", "unknown kind %s", kind ? kind : "(none)");
    else if (k->kind == BH_KIND_POD)
        apply_pod(w, copy);
    else
        apply_other(w, k->kind, copy);
}

static void delete_thing(struct world *w, struct thing *t)
{
    if (t->kind == BH_KIND_POD)
        delete_pod(w, t);
    else
        delete_other(w, t);
}

static void delete_op(struct world *w, const struct bh_json *op)
{
    const char *kind = bh_json_get_str(op, "kind"), *ns = bh_json_get_str(op, "namespace");
    struct thing *t = NULL;

    for (unsigned i = 0; i < BH_KIND_COUNT && !t; i++)
        if (kind && bh_streq(bh_kinds[i].kind_name, kind))
            t = find_thing(w, (enum bh_kind)i, ns, bh_json_get_str(op, "name"));
    if (t)
        delete_thing(w, t);
}

/* ---- decisions ------------------------------------------------------------------------------- */

static void new_version(struct world *w, struct bh_json *object)
{
    bh_json_set_str(&w->arena, bh_json_obj_at(&w->arena, object, "metadata"), "resourceVersion",
                    bh_arena_printf(&w->arena, "%llu", (unsigned long long)w->order + 1000000));
}

/* One write of an engine's as the API server shows it afterwards. */
static void write_one(struct world *w, struct thing *pod, const struct bh_write *wr,
                      struct bh_json *object, struct bh_json *pod_status)
{
    const struct bh_kind_info *k = &bh_kinds[wr->kind];
    struct bh_json *meta = bh_json_obj_at(&w->arena, object, "metadata");

    bh_json_set_str(&w->arena, object, "apiVersion",
                    *k->group ? bh_arena_printf(&w->arena, "%s/%s", k->group, k->version)
                              : k->version);
    bh_json_set_str(&w->arena, object, "kind", k->kind_name);
    new_version(w, object);
    if (wr->what == BH_WRITE_NEW_CLAIM) {
        const char *name = bh_arena_printf(&w->arena, "made-%llu", (unsigned long long)w->order);
        bh_json_set_str(&w->arena, meta, "name", name);
        bh_json_set_str(&w->arena, meta, "uid", name);
        if (pod_status) {
            bh_json_set_str(&w->arena, pod_status, "resourceClaimName", name);
            bh_json_set(&w->arena, bh_json_obj_at(&w->arena, pod->object, "status"),
                        "extendedResourceClaimStatus", pod_status);
        }
    }
    apply_other(w, wr->kind, object);
}

/* Its answer: a pod that is bound while one is missing keeps what it reserved. The watch was before it,
 * so the object in it is older than what is known. */
static void answer_write(struct world *w, const struct thing *pod, uint32_t i, enum bh_kind kind,
                         const struct bh_json *object)
{
    struct bh_json *copy = bh_json_clone(&w->arena, object);
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_err err = {{0}};

    bh_json_set_str(&w->arena, bh_json_obj_at(&w->arena, copy, "metadata"), "resourceVersion", "1");
    if (bh_json_to_wire(bh_kinds[kind].desc, copy, &b, &err) < 0)
        fail(w, "input", "%s", err.msg);
    for (unsigned e = 0; e < ENGINES; e++)
        (void)bh_engine_prebind_written(w->w[e].engine, uid_of(pod), i, bh_buf_str(&b), b.n, &err);
}

/* What binders write before the binding (reserved); or PostFilter's wishes. */
static void write_all(struct world *w, struct thing *pod, const struct bh_write *v, uint32_t n,
                      bool reserved)
{
    struct bh_write *copy = bh_arena_new_array(&w->arena, struct bh_write, n + 1);
    struct bh_json **object = bh_arena_new_array(&w->arena, struct bh_json *, n + 1);
    struct bh_json **status = bh_arena_new_array(&w->arena, struct bh_json *, n + 1);

    for (uint32_t i = 0; i < n; i++) { /* whatever is written may end the list */
        copy[i] = v[i];
        if (v[i].object)
            object[i] = bh_pb_to_json(&w->arena, v[i].object);
        if (v[i].pod_status)
            status[i] = bh_pb_to_json(&w->arena, (const void *)v[i].pod_status);
        copy[i].namespace_ = bh_arena_strdup(&w->arena, v[i].namespace_);
        copy[i].name = bh_arena_strdup(&w->arena, v[i].name);
    }
    for (uint32_t i = 0; i < n; i++) {
        struct thing *t = find_thing(w, copy[i].kind, copy[i].namespace_, copy[i].name);
        if (copy[i].what == BH_WRITE_DELETE_CLAIM) {
            if (t)
                delete_other(w, t);
        } else if (object[i] && (t || copy[i].what == BH_WRITE_NEW_CLAIM)) {
            write_one(w, pod, &copy[i], object[i], status[i]);
        }
        if (reserved && object[i])
            answer_write(w, pod, i, copy[i].kind, object[i]);
        w->n->writes++;
    }
}

static void write_prebind(struct world *w, struct thing *t)
{
    uint32_t n = 0;
    const struct bh_write *v = bh_engine_prebind_work(w->w[MAIN].engine, uid_of(t), &n);

    write_all(w, t, v, n, true);
}

/* What a cluster does after a binding: the pod shows up with its node. */
void bind_pod(struct world *w, struct thing *t, const char *node)
{
    write_prebind(w, t);
    struct bh_json *copy = bh_json_clone(&w->arena, t->object);

    bh_json_set_str(&w->arena, bh_json_obj_at(&w->arena, copy, "spec"), "nodeName", node);
    bh_json_set_str(&w->arena, bh_json_obj_at(&w->arena, copy, "status"), "startTime",
                    bh_arena_printf(&w->arena, "2029-10-01T%02u:%02u:%02uZ",
                                    (unsigned)(w->order / 3600) % 24,
                                    (unsigned)(w->order / 60) % 60, (unsigned)w->order % 60));
    bh_json_unset(bh_json_get(copy, "status"), "nominatedNodeName");
    apply_pod(w, copy);
}

bool assume_pod(struct world *w, struct thing *t, const char *node)
{
    bool all = true;

    for (unsigned e = 0; e < ENGINES; e++) {
        struct bh_pending p = pending_of(w, t, e);
        if (bh_engine_assume(w->w[e].engine, &p, sym_in(w->w[e].engine, node)) < 0) {
            fail(w, "assume", "engine %u: %s cannot be assumed", e, t->id);
            return false;
        }
        all &= !bh_engine_reserve(w->w[e].engine, &p, sym_in(w->w[e].engine, node));
    }
    for (unsigned e = 0; e < ENGINES && !all; e++) {
        struct bh_pending p = pending_of(w, t, e);
        bh_offline_give_back(&w->w[e], &p, sym_in(w->w[e].engine, node));
        if (t->nominated) /* assuming ended it, the object still has it */
            bh_engine_nominate(w->w[e].engine, &p, sym_in(w->w[e].engine, t->nominated));
    }
    if (!all)
        return false;
    bh_queue_delete(w->w[MAIN].queue, bh_queue_pod(w->w[MAIN].queue, uid_of(t)));
    if (t->nominated && !bh_streq(t->nominated, node)) /* the other node is free of it */
        tell(w, t, BH_EV_DELETE);
    t->place = POD_ASSUMED;
    t->node = bh_arena_strdup(&w->arena, node);
    t->nominated = NULL;
    return true;
}

static void set_nominated(struct world *w, const struct thing *t, const char *node)
{
    struct bh_json *copy = bh_json_clone(&w->arena, t->object);

    bh_json_set_str(&w->arena, bh_json_obj_at(&w->arena, copy, "status"), "nominatedNodeName",
                    node);
    new_version(w, copy);
    apply_pod(w, copy);
}

static void preempt(struct world *w, struct thing *t, const struct bh_decision *d)
{
    const char *node = bh_arena_strdup(
        &w->arena, bh_sym_text(bh_engine_symtab(w->w[MAIN].engine), d->nominated_node));
    struct bh_arena a;
    const char **victims;
    uint32_t n = d->n_victims;

    w->n->preemptions++;
    bh_arena_init(&a, 0);
    victims = bh_arena_new_array(&a, const char *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        victims[i] = bh_arena_printf(&a, "%.*s/%.*s", (int)d->victims[i].namespace_.n,
                                     d->victims[i].namespace_.p, (int)d->victims[i].name.n,
                                     d->victims[i].name.p);
    for (uint32_t i = 0; i < n; i++) {
        struct thing *v = find_pod(w, victims[i]);
        if (v)
            delete_pod(w, v);
        else
            fail(w, "victim", "%s shall preempt %s, which is not there", t->id, victims[i]);
    }
    set_nominated(w, t, node);
    bh_arena_fini(&a);
}

static void forget_pod(struct world *w, struct thing *t)
{
    leave(w, t);
    t->place = POD_PENDING;
    t->node = NULL;
    bh_json_unset(bh_json_get(t->object, "status"), "nominatedNodeName");
    apply_pod(w, bh_json_clone(&w->arena, t->object));
}

static void schedule(struct world *w, struct thing *t, const char *then)
{
    const struct bh_pending p = pending_of(w, t, MAIN);

    if (bh_engine_pre_enqueue(w->w[MAIN].engine, &p)) {
        w->n->gated++;
        return;
    }
    const struct bh_decision *d = decide(w, t, 0);
    if (failed(w))
        return;
    if (d->kind == BH_NO_FIT && d->n_writes) {
        write_all(w, t, d->writes, d->n_writes, false);
        return;
    }
    if (d->kind == BH_NO_FIT && d->n_victims) {
        preempt(w, t, d);
        return;
    }
    if (d->kind != BH_DECIDED) {
        if (d->clear_nomination && t->nominated)
            set_nominated(w, t, "");
        return;
    }
    const char *node =
        bh_arena_strdup(&w->arena, bh_sym_text(bh_engine_symtab(w->w[MAIN].engine), d->node));
    if (bh_streq(then, "forget"))
        check_forget(w, t, node);
    else if (!bh_streq(then, "look") && assume_pod(w, t, node) && bh_streq(then, "bind"))
        bind_pod(w, t, node);
}

/* ---- all at once ----------------------------------------------------------------------------- */

static bool dropped(const struct bh_json *op, const struct thing *t)
{
    bh_json_each(d, bh_json_get(op, "drop")) {
        if (bh_json_cstr(d) && bh_streq(bh_json_cstr(d), t->id))
            return true;
    }
    return false;
}

/* Nodes and bound pods (rebuild), or everything else (feed), said again; what is left out is
 * gone. */
static void say_again(struct world *w, const struct bh_json *op, bool snapshot)
{
    struct bh_err err = {{0}};
    struct bh_arena a;

    bh_arena_init(&a, 0);
    struct thing **v = all_things(w, &a, BH_KIND_COUNT);
    for (unsigned e = 0; e < ENGINES; e++) {
        w->w[e].intake.rebuilding = snapshot;
        if (snapshot)
            bh_engine_rebuild_begin(w->w[e].engine);
        else
            bh_engine_objects_begin(w->w[e].engine);
        for (size_t i = 0; v[i]; i++) {
            bool ours = v[i]->kind == BH_KIND_NODE || v[i]->kind == BH_KIND_POD;
            if (ours == snapshot && !dropped(op, v[i]) && put_thing(&w->w[e], v[i], &err) < 0)
                fail(w, "input", "%s: %s", v[i]->id, err.msg);
        }
        if (snapshot)
            bh_engine_rebuild_end(w->w[e].engine);
        else
            bh_engine_objects_end(w->w[e].engine);
        w->w[e].intake.rebuilding = false;
    }
    for (size_t i = 0; v[i]; i++) {
        bool ours =
            v[i]->kind == BH_KIND_NODE || (v[i]->kind == BH_KIND_POD && v[i]->place == POD_BOUND);
        bool other = v[i]->kind != BH_KIND_NODE && v[i]->kind != BH_KIND_POD;
        if (dropped(op, v[i]) && (snapshot ? ours : other))
            remove_thing(w, v[i]);
    }
    bh_queue_wake_all(w->w[MAIN].queue, w->w[MAIN].now_ns);
    bh_arena_fini(&a);
}

static void resync_queue(struct world *w)
{
    struct bh_arena a;

    bh_arena_init(&a, 0);
    bh_queue_sync_begin(w->w[MAIN].queue);
    for (struct thing **v = all_things(w, &a, BH_KIND_POD); *v; v++)
        if ((*v)->place == POD_PENDING)
            queue_pod(w, *v);
    bh_queue_sync_end(w->w[MAIN].queue);
    bh_arena_fini(&a);
}

/* ---- ops ------------------------------------------------------------------------------------- */

static void pod_op(struct world *w, const char *what, const struct bh_json *op)
{
    struct thing *t = find_pod(w, bh_json_get_str(op, "pod"));

    if (!t)
        return;
    if (bh_streq(what, "schedule")) {
        const char *then = bh_json_get_str(op, "then");
        if (t->place != POD_PENDING)
            return;
        if (group_name(t))
            schedule_group(w, t, !then || bh_streq(then, "bind") || bh_streq(then, "assume"));
        else
            schedule(w, t, then ? then : "bind");
    } else if (bh_streq(what, "confirm")) {
        if (t->place == POD_ASSUMED)
            bind_pod(w, t, t->node);
    } else if (bh_streq(what, "forget")) {
        if (t->place == POD_ASSUMED)
            forget_pod(w, t);
    } else if (bh_streq(what, "nominate")) {
        if (t->place == POD_PENDING)
            set_nominated(w, t, bh_json_get_str(op, "node") ? bh_json_get_str(op, "node") : "");
    } else {
        fail(w, "input", "unknown op %s", what);
    }
}

static void describe(struct world *w, const struct bh_json *op)
{
    const char *what = bh_json_get_str(op, "op"), *pod = bh_json_get_str(op, "pod");
    const struct bh_json *object = bh_json_get(op, "object");
    const char *kind = bh_json_get_str(object ? object : op, "kind");
    const char *name = object ? bh_json_get_str(bh_json_get(object, "metadata"), "name")
                              : bh_json_get_str(op, "name");

    snprintf(w->why, sizeof w->why, "%s %s%s%s", what ? what : "?",
             pod    ? pod
             : kind ? kind
                    : "",
             name ? " " : "", name ? name : "");
}

void step(struct world *w, const struct bh_json *op)
{
    const char *what = bh_json_get_str(op, "op");

    describe(w, op);
    w->n->ops++;
    if (!what) {
        fail(w, "input", "no op");
    } else if (bh_streq(what, "apply")) {
        apply(w, bh_json_get(op, "object"));
    } else if (bh_streq(what, "delete")) {
        delete_op(w, op);
    } else if (bh_streq(what, "rebuild")) {
        say_again(w, op, true);
    } else if (bh_streq(what, "feed")) {
        say_again(w, op, false);
        resync_queue(w);
    } else if (bh_streq(what, "check")) {
        check_fresh(w, w->op);
    } else {
        pod_op(w, what, op);
    }
    if (!failed(w))
        wake_check(w);
}

/* ---- a round --------------------------------------------------------------------------------- */

static bool open_world(struct world *w)
{
    const struct bh_json *config = bh_json_get(w->scenario, "config");
    struct bh_err err = {{0}};

    if (bh_sched_config_new(config, &w->config, &err) < 0) {
        fail(w, "input", "configuration: %s", err.msg);
        return false;
    }
    const char *gates = bh_json_get_str(w->scenario, "gates");
    if (gates && bh_feature_gates_parse(&w->gates, gates, &err) < 0) {
        fail(w, "input", "gates: %s", err.msg);
        return false;
    }
    if (gates)
        bh_sched_config_apply_gates(w->config, &w->gates);
    for (unsigned e = 0; e < ENGINES; e++) {
        const struct bh_offline_options o = {.config = w->config,
                                             .tie_break = w->first ? BH_TIE_FIRST : BH_TIE_RANDOM,
                                             .seed = 1,
                                             .verify = e == MAIN,
                                             .rebuilt_snapshot = w->rebuilt,
                                             .no_queue = e != MAIN,
                                             .events_only = true,
                                             .now_ns = INT64_C(1893456000000000000)};
        if (bh_offline_init(&w->w[e], &o, &err) < 0) {
            fail(w, "input", "engine: %s", err.msg);
            return false;
        }
    }
    return true;
}

static void close_world(struct world *w)
{
    struct bh_map_entry *m;

    for (size_t it = 0; (m = bh_map_next(&w->things, &it));)
        free_thing(w, m->value);
    bh_map_fini(&w->things);
    for (size_t it = 0; (m = bh_map_next(&w->rejectors, &it));)
        free(m->value);
    bh_map_fini(&w->rejectors);
    for (unsigned e = 0; e < ENGINES; e++)
        bh_offline_fini(&w->w[e]);
    bh_sched_config_free(w->config);
    bh_arena_fini(&w->arena);
}

bool play(const struct bh_json *scenario, struct counts *n, struct finding *f)
{
    struct world w = {.scenario = scenario,
                      .rebuilt = bh_json_get_bool(scenario, "rebuilt", false),
                      .first = bh_json_get_bool(scenario, "first", true),
                      .n = n,
                      .found = f};

    f->kind[0] = f->text[0] = 0;
    bh_arena_init(&w.arena, 0);
    if (open_world(&w)) {
        bh_json_each(op, bh_json_get(scenario, "ops")) {
            if (failed(&w))
                break;
            step(&w, op);
            w.op++;
        }
    }
    n->events += w.w[MAIN].events;
    close_world(&w);
    return f->kind[0] == 0;
}
