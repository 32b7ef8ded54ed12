/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/view.c - nodes and pods of a running instance as rows
 */
#include "cli/view.h"

#include <errno.h>
#include <time.h>

#include "common/control/ask.h"
#include "common/k8s/codec.h"
#include "common/k8s/compile.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

#define PATIENCE_NS   UINT64_C(10000000000)
#define IDLE_MS       5
#define MESSAGES      64u
#define FOLLOW_EVENTS (1u << 20)

static void free_row(struct bh_view_row *r)
{
    if (!r)
        return;
    free(r->node);
    free(r->pod);
    free(r->own_shape);
    free(r->reason);
    free(r->message);
    free(r->owner_kind);
    free(r->owner);
    free(r);
}

static void clear_rows(struct bh_map *m)
{
    struct bh_map_entry *e;

    for (size_t it = 0; (e = bh_map_next(m, &it));)
        free_row(e->value);
    bh_map_clear(m);
}

/* The new row of a key; what was printed of the old one is remembered. */
static struct bh_view_row *put_row(struct bh_map *m, const char *key, size_t n)
{
    struct bh_view_row *r = bh_calloc(1, sizeof(*r)), *old = bh_map_put(m, key, n, r);

    r->printed = old ? old->printed : 0;
    free_row(old);
    return r;
}

static void delete_row(struct bh_view *v, struct bh_map *m, const char *key, size_t n)
{
    struct bh_view_row *r = bh_map_del(m, key, n);

    if (!r)
        return;
    if (r->shape && !r->own_shape) /* the snapshot's may go with its last pod */
        r->shape = r->own_shape = bh_memdup(r->shape, r->shape->h.size);
    r->deleted = true;
    free_row(bh_map_put(&v->gone, key, n, r));
}

/* ---- the snapshot ---------------------------------------------------------------------------- */

static void on_event(void *arg, const struct bh_snap_event *ev)
{
    struct bh_view *v = arg;

    v->added = false;
    if (ev->op == BH_SNAP_BEGIN) {
        clear_rows(&v->nodes);
        clear_rows(&v->pods);
        v->complete = false;
    } else if (ev->op == BH_SNAP_END) {
        v->complete = true;
    } else if (ev->op == BH_SNAP_NODE_PUT || ev->op == BH_SNAP_NODE_DEL) {
        struct bh_str name = bh_sym_str(v->symtab, ev->node->name);
        if (ev->op == BH_SNAP_NODE_DEL)
            delete_row(v, &v->nodes, name.p, name.n);
        else
            put_row(&v->nodes, name.p, name.n)->node = bh_memdup(ev->node, ev->node->h.size);
    } else if (ev->op == BH_SNAP_POD_PUT || ev->op == BH_SNAP_POD_DEL) {
        struct bh_str uid = bh_rec_text(ev->pod, ev->pod->uid);
        if (ev->op == BH_SNAP_POD_DEL) {
            delete_row(v, &v->pods, uid.p, uid.n);
            return;
        }
        struct bh_view_row *r = put_row(&v->pods, uid.p, uid.n);
        r->pod = bh_memdup(ev->pod, ev->pod->h.size);
        r->shape = ev->shape;
    }
}

/* A watcher that has just been started lists the API server's objects first. */
static int follow_snapshot(struct bh_view *v, const char *runtime_dir, struct bh_err *err)
{
    static const struct timespec pause = {.tv_nsec = 50000000};
    uint64_t until = bh_mono_ns() + PATIENCE_NS;
    enum bh_snap_outcome o = BH_SNAP_NOT_READY;

    for (unsigned i = 0; i < 10000 && !(v->complete && o == BH_SNAP_OK); i++) {
        o = bh_snap_follow(v->reader, FOLLOW_EVENTS, on_event, v);
        if (o == BH_SNAP_NOT_READY && bh_mono_ns() < until && !bh_snap_reader_absent(v->reader) &&
            bh_ask_probe(runtime_dir, "watcher", "berth-watcher", NULL) == 0) {
            nanosleep(&pause, NULL);
            continue;
        }
        if (o == BH_SNAP_NOT_READY || o == BH_SNAP_VERSION || o == BH_SNAP_CORRUPT)
            break;
    }
    return v->complete ? 0
                       : bh_err_set(err, -ENOENT, "no snapshot in \"%s\": %s", runtime_dir,
                                    bh_snap_reader_error(v->reader));
}

/* ---- pending pods ---------------------------------------------------------------------------- */

static void on_begin(void *arg)
{
    struct bh_view *v = arg;

    clear_rows(&v->pending);
}

static void on_complete(void *arg)
{
    (void)arg;
}

static void copy_condition(struct bh_view_row *r, const K8s__PodStatus *s)
{
    for (size_t i = 0; s && i < s->n_conditions && !r->reason; i++) {
        const K8s__PodCondition *c = s->conditions[i];
        if (!c->type || !bh_streq(c->type, "PodScheduled"))
            continue;
        r->reason = bh_strdup(c->reason ? c->reason : "");
        r->message = bh_strdup(c->message ? c->message : "");
    }
}

static void copy_owner(struct bh_view_row *r, const K8s__ObjectMeta *meta)
{
    const K8s__OwnerReference *owner = NULL;

    for (size_t i = 0; meta && i < meta->n_ownerreferences && !owner; i++)
        if (meta->ownerreferences[i]->controller)
            owner = meta->ownerreferences[i];
    r->owner_kind = bh_strdup(owner && owner->kind ? owner->kind : "");
    r->owner = bh_strdup(owner && owner->name ? owner->name : "");
}

static void put_pending(struct bh_view *v, const Berth__ObjectChange *c)
{
    struct bh_interner interner = bh_symtab_interner(v->symtab);
    struct bh_shape_rec *shape = NULL;
    struct bh_pod_rec *pod = NULL;
    ProtobufCMessage *m = NULL;

    if (bh_pb_unpack(&v->arena, &k8s__pod__descriptor, c->object.data, c->object.len, &m, NULL) ||
        bh_compile_shape(&v->arena, (K8s__Pod *)m, &interner, &shape, NULL) ||
        bh_compile_pod(&v->arena, (K8s__Pod *)m, &interner, &pod, NULL))
        return; /* the scheduler reports it */
    struct bh_view_row *r = put_row(&v->pending, c->uid, strlen(c->uid));
    r->pod = bh_memdup(pod, pod->h.size);
    r->shape = r->own_shape = bh_memdup(shape, shape->h.size);
    copy_condition(r, ((K8s__Pod *)m)->status);
    copy_owner(r, ((K8s__Pod *)m)->metadata);
}

static void on_change(void *arg, const Berth__ObjectChange *c)
{
    struct bh_view *v = arg;

    if (c->raw || c->kind != BH_KIND_POD || !c->uid || !*c->uid)
        return;
    if (c->op == BERTH__CHANGE_OP__CHANGE_BOUND || c->op == BERTH__CHANGE_OP__CHANGE_DELETED)
        delete_row(v, &v->pending, c->uid, strlen(c->uid));
    else
        put_pending(v, c);
    bh_arena_reset(&v->arena);
}

/* Waits for the initial state. */
static int read_feed(struct bh_view *v, const char *runtime_dir, struct bh_err *err)
{
    const struct bh_feed_options o = {.runtime_dir = runtime_dir,
                                      .epoch = bh_boot_ns(),
                                      .observer = true,
                                      .name = 'o',
                                      .begin = on_begin,
                                      .change = on_change,
                                      .complete = on_complete,
                                      .arg = v};
    int rc = bh_ask_probe(runtime_dir, "watcher", "berth-watcher", err);

    if (rc < 0)
        return rc;
    v->has_feed = true;
    rc = bh_feed_open(&v->feed, &o, err);
    for (uint64_t news = bh_mono_ns(); rc == 0 && !v->feed.synced;) {
        bh_feed_tick(&v->feed);
        if (bh_feed_drain(&v->feed, MESSAGES))
            news = bh_mono_ns();
        else if (bh_mono_ns() - news > PATIENCE_NS)
            rc = bh_err_set(err, -ETIMEDOUT, "berth-watcher in \"%s\" does not answer%s%s",
                            runtime_dir, *v->feed.refused ? ": " : "", v->feed.refused);
        else
            bh_bus_wait(v->feed.bus, IDLE_MS);
    }
    return rc;
}

/* ---- the view -------------------------------------------------------------------------------- */

int bh_view_open(struct bh_view *v, const char *runtime_dir, bool pending, char **ret_trouble,
                 struct bh_err *err)
{
    struct bh_err why = {0};

    *v = (struct bh_view){.symtab = bh_symtab_new()};
    v->reader = bh_snap_reader_new(runtime_dir, v->symtab);
    int rc = follow_snapshot(v, runtime_dir, err);
    if (rc == 0 && pending && read_feed(v, runtime_dir, &why) < 0)
        *ret_trouble = bh_strdup(why.msg);
    /* What was bound in the meantime is pending no more. */
    rc = rc == 0 && pending ? follow_snapshot(v, runtime_dir, err) : rc;
    clear_rows(&v->gone);
    return rc;
}

void bh_view_close(struct bh_view *v)
{
    if (v->has_feed)
        bh_feed_close(&v->feed);
    clear_rows(&v->nodes);
    clear_rows(&v->pods);
    clear_rows(&v->pending);
    clear_rows(&v->gone);
    bh_map_fini(&v->gone);
    bh_map_fini(&v->nodes);
    bh_map_fini(&v->pods);
    bh_map_fini(&v->pending);
    bh_snap_reader_free(v->reader);
    bh_symtab_free(v->symtab);
    bh_arena_fini(&v->arena);
}

int bh_view_follow(struct bh_view *v, struct bh_err *err)
{
    clear_rows(&v->gone);
    if (v->has_feed) {
        bh_feed_tick(&v->feed);
        while (bh_feed_drain(&v->feed, MESSAGES) == MESSAGES)
            ;
    }
    enum bh_snap_outcome o = BH_SNAP_MORE;
    while (o == BH_SNAP_MORE)
        o = bh_snap_follow(v->reader, FOLLOW_EVENTS, on_event, v);
    return o == BH_SNAP_VERSION
               ? bh_err_set(err, -EINVAL, "snapshot: %s", bh_snap_reader_error(v->reader))
               : 0;
}

/* Every pod's requests, and the sums of the nodes. */
static void add_requests(struct bh_view *v)
{
    struct bh_map_entry *e;

    if (v->added)
        return;
    v->added = true;
    for (size_t it = 0; (e = bh_map_next(&v->nodes, &it));) {
        struct bh_view_row *n = e->value;
        n->cpu_milli = n->memory_bytes = 0;
        n->pods = 0;
    }
    for (size_t it = 0; (e = bh_map_next(&v->pods, &it));) {
        struct bh_view_row *p = e->value, *n;
        struct bh_str name = bh_sym_str(v->symtab, p->pod->node);
        p->cpu_milli = p->shape->used.cpu_milli;
        p->memory_bytes = p->shape->used.memory_bytes;
        if (!(n = bh_map_get(&v->nodes, name.p, name.n)))
            continue;
        n->pods++;
        n->cpu_milli += p->cpu_milli;
        n->memory_bytes += p->memory_bytes;
    }
}

static int by_name(const void *a, const void *b, void *symtab)
{
    const struct bh_view_row *x = *(struct bh_view_row *const *)a,
                             *y = *(struct bh_view_row *const *)b;

    if (x->node)
        return strcmp(bh_sym_text(symtab, x->node->name), bh_sym_text(symtab, y->node->name));
    int c = strcmp(bh_rec_text(x->pod, x->pod->namespace_).p,
                   bh_rec_text(y->pod, y->pod->namespace_).p);
    return c ? c : strcmp(bh_rec_text(x->pod, x->pod->name).p, bh_rec_text(y->pod, y->pod->name).p);
}

struct bh_view_row **bh_view_rows(struct bh_view *v, bool pods, size_t *ret_n)
{
    const struct bh_map *const first = pods ? &v->pods : &v->nodes;
    struct bh_view_row **list =
        bh_calloc(first->len + v->pending.len + v->gone.len + 1, sizeof(*list));
    struct bh_map_entry *e;
    size_t n = 0;

    add_requests(v);
    for (size_t it = 0; (e = bh_map_next(first, &it));)
        list[n++] = e->value;
    for (size_t it = 0; pods && (e = bh_map_next(&v->pending, &it));) {
        struct bh_view_row *p = e->value;
        if (bh_map_get(&v->pods, e->key, e->key_len))
            continue; /* bound a moment ago */
        p->cpu_milli = p->shape->used.cpu_milli;
        p->memory_bytes = p->shape->used.memory_bytes;
        list[n++] = p;
    }
    for (size_t it = 0; (e = bh_map_next(&v->gone, &it));) {
        const struct bh_view_row *r = e->value;
        if (pods == !r->node && !bh_map_get(first, e->key, e->key_len) &&
            !(pods && bh_map_get(&v->pending, e->key, e->key_len)))
            list[n++] = e->value;
    }
    if (n > 1)
        qsort_r(list, n, sizeof(*list), by_name, v->symtab);
    *ret_n = n;
    return list;
}
