/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/extender/objects.c - whole API objects, kept for extenders that want to see them
 *
 * Owns:       a copy of each object: a node's as JSON text once it was asked for (a request to an
 *             extender without nodeCacheCapable then costs a copy of its candidates' texts), a
 *             pod's as the message it came as.
 * Invariants: nodes by name, pods by uid; an object that no extender needs is not kept.
 * Bounds:     the live objects, as the watcher keeps them.
 * Upstream:   the informers' stores; differences: objects hold the fields of proto/kubernetes.
 */
#include "common/k8s/codec.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/extender/ext_int.h"

#define DECODE_MAX_BYTES ((size_t)64 << 20)

static void drop(struct bh_ext_object *o)
{
    if (!o)
        return;
    free(o->bytes);
    free(o->text);
    bh_buf_fini(&o->whole);
    free(o);
}

static struct bh_ext_object *put(struct bh_ext *x, struct bh_map *m, const char *key, size_t key_n,
                                 const void *object, size_t n)
{
    struct bh_ext_object *o;

    if (!object || key_n == 0) {
        drop(key_n ? bh_map_del(m, key, key_n) : NULL);
        return NULL;
    }
    o = bh_calloc(1, sizeof *o);
    o->bytes = bh_memdup(object, n);
    o->n = n;
    o->feed = x->feed;
    drop(bh_map_put(m, key, key_n, o));
    return o;
}

static const ProtobufCMessage *unpack(struct bh_ext *x, const struct bh_ext_object *o,
                                      const ProtobufCMessageDescriptor *d)
{
    ProtobufCMessage *m = NULL;

    bh_arena_reset(&x->decode);
    x->decode.limit_bytes = DECODE_MAX_BYTES;
    return o && bh_pb_unpack(&x->decode, d, o->bytes, o->n, &m, NULL) == 0 ? m : NULL;
}

void bh_ext_put_node(struct bh_ext *x, const char *name, const void *object, size_t n)
{
    if (x->needs & BH_EXT_NEED_NODES)
        (void)put(x, &x->nodes, name, strlen(name), object, n);
}

void bh_ext_put_pod(struct bh_ext *x, struct bh_str uid, const void *object, size_t n)
{
    struct bh_ext_object *o = put(x, &x->pods, uid.p, uid.n, object, n);

    if (!o)
        return;
    o->interest = UINT64_MAX;
    if (x->any_managed) {
        const ProtobufCMessage *m = unpack(x, o, &k8s__pod__descriptor);
        o->interest = m ? bh_ext_interest_of(x, (const K8s__Pod *)m) : 0;
    }
}

bool bh_ext_knows_node(const struct bh_ext *x, const char *name)
{
    return bh_map_get(&x->nodes, name, strlen(name)) != NULL;
}

void bh_ext_objects_begin(struct bh_ext *x)
{
    x->feed++;
}

static void sweep(struct bh_ext *x, struct bh_map *m)
{
    struct bh_map_entry *e;

    for (size_t it = 0; (e = bh_map_next(m, &it));) {
        struct bh_ext_object *o = e->value;
        if (o->feed != x->feed)
            drop(bh_map_del(m, e->key, e->key_len));
    }
}

void bh_ext_objects_end(struct bh_ext *x)
{
    sweep(x, &x->nodes);
    sweep(x, &x->pods);
}

void bh_ext_objects_fini(struct bh_ext *x)
{
    x->feed++; /* nothing is of this feed */
    bh_ext_objects_end(x);
    bh_map_fini(&x->nodes);
    bh_map_fini(&x->pods);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static bool write_json(struct bh_ext *x, struct bh_buf *out, const ProtobufCMessage *m)
{
    const struct bh_json *v = bh_pb_to_json(&x->decode, m);

    if (v)
        bh_json_write(out, v);
    return v != NULL;
}

bool bh_ext_add_node(struct bh_ext *x, struct bh_buf *out, const char *name)
{
    struct bh_ext_object *o = bh_map_get(&x->nodes, name, strlen(name));

    if (!o)
        return false;
    if (!o->text) {
        struct bh_buf text = {0};
        const ProtobufCMessage *m = unpack(x, o, &k8s__node__descriptor);
        if (!m || !write_json(x, &text, m)) {
            bh_buf_fini(&text);
            return false;
        }
        o->text_n = text.n;
        o->text = bh_buf_take(&text);
        if (!x->whole)
            free(bh_take_ptr(o->bytes));
    }
    bh_buf_add(out, o->text, o->text_n);
    return true;
}

bool bh_ext_add_pod(struct bh_ext *x, struct bh_buf *out, struct bh_str uid, const char *node)
{
    const struct bh_ext_object *o = bh_map_get(&x->pods, uid.p, uid.n);
    K8s__Pod *p = (K8s__Pod *)(uintptr_t)unpack(x, o, &k8s__pod__descriptor);

    if (!p)
        return false;
    if (*node && p->spec && !*p->spec->nodename) {
        p->spec->nodename = bh_arena_strdup(&x->decode, node);
        if (!p->spec->nodename)
            return false;
    }
    return write_json(x, out, &p->base);
}

/* ---- messages -------------------------------------------------------------------------------- */

static const void *whole(struct bh_ext *x, struct bh_ext_object *o,
                         const ProtobufCMessageDescriptor *d, size_t *ret_n)
{
    ProtobufCMessage *m;

    if (!o || !x->whole)
        return NULL;
    if (!o->whole.n) {
        m = (ProtobufCMessage *)(uintptr_t)unpack(x, o, d);
        if (!m || !bh_pb_fill(&x->decode, m))
            return NULL;
        bh_pb_pack(&o->whole, m);
    }
    *ret_n = o->whole.n;
    return o->whole.p;
}

const void *bh_ext_whole_node(struct bh_ext *x, const char *name, size_t *ret_n)
{
    return whole(x, bh_map_get(&x->nodes, name, strlen(name)), &k8s__node__descriptor, ret_n);
}

const void *bh_ext_whole_pod(struct bh_ext *x, struct bh_str uid, size_t *ret_n)
{
    return whole(x, bh_map_get(&x->pods, uid.p, uid.n), &k8s__pod__descriptor, ret_n);
}
