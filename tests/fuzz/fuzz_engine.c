/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_engine.c - a JSON array of Nodes and Pods: both paths of the engine must agree
 *
 * Nodes and assigned pods are put, the other pods are decided in verify mode (a difference aborts) and
 * stay where they were put. What does not decode or compile is left out, as the daemon does.
 */
#include "common/k8s/codec.h"
#include "common/k8s/compile.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/engine/engine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OBJECTS_MAX 64

static void put_node(struct bh_engine *e, struct bh_arena *a, const struct bh_json *v)
{
    struct bh_interner in = bh_symtab_interner(bh_engine_symtab(e));
    struct bh_node_rec *rec;
    ProtobufCMessage *m;

    if (bh_json_to_pb(a, &k8s__node__descriptor, v, &m, NULL, NULL) == 0 &&
        bh_compile_node(a, (const struct K8s__Node *)(const void *)m, &in, &rec, NULL) == 0)
        bh_engine_put_node(e, rec);
}

static void put_pod(struct bh_engine *e, struct bh_arena *a, const struct bh_json *v)
{
    struct bh_interner in = bh_symtab_interner(bh_engine_symtab(e));
    struct bh_shape_rec *shape;
    struct bh_pod_rec *rec;
    ProtobufCMessage *m;

    if (bh_json_to_pb(a, &k8s__pod__descriptor, v, &m, NULL, NULL) < 0)
        return;
    const struct K8s__Pod *pod = (const struct K8s__Pod *)(const void *)m;
    if (bh_compile_shape(a, pod, &in, &shape, NULL) < 0 ||
        bh_compile_pod(a, pod, &in, &rec, NULL) < 0)
        return;
    shape->scheduler_name = bh_sym_internc(bh_engine_symtab(e), "default-scheduler");
    bh_shape_id id = bh_engine_shape(e, shape);
    const struct bh_pending p = {.pod = rec, .shape = id};
    if (rec->node != BH_SYM_NONE) {
        bh_engine_put_pod(e, rec, id);
    } else if (!bh_engine_pre_enqueue(e, &p)) {
        const struct bh_decision *d = bh_engine_schedule(e, &p, BH_EXPLAIN, 0);
        if (d->kind == BH_DECIDED)
            bh_engine_assume(e, &p, d->node);
        else if (d->nominated_node != BH_SYM_NONE)
            bh_engine_nominate(e, &p, d->nominated_node);
    }
    bh_engine_shape_unref(e, id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct bh_engine_options o = {.verify = true, .seed = 1};
    struct bh_engine *e;
    struct bh_json *v;
    struct bh_arena a;
    unsigned n = 0;

    if (bh_engine_new(&o, &e, NULL) < 0)
        abort();
    bh_arena_init(&a, (size_t)64 << 20);
    if (bh_json_parse(&a, (const char *)data, size, BH_JSON_NUL, &v, NULL) == 0 &&
        v->type == BH_JSON_ARRAY) {
        for (const struct bh_json *obj = v->c.first; obj && n < OBJECTS_MAX; obj = obj->next, n++) {
            const char *kind = bh_json_get_str(obj, "kind");
            if (kind && bh_streq(kind, "Node"))
                put_node(e, &a, obj);
            else if (kind && bh_streq(kind, "Pod"))
                put_pod(e, &a, obj);
        }
    }
    bh_engine_free(e);
    bh_arena_fini(&a);
    return 0;
}
