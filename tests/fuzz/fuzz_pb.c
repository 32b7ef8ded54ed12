/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_pb.c - objects, lists and watch streams from an API server
 *
 * Byte 0 picks the reader and the kind, the rest is the body. An object that decodes has to survive
 * the way to JSON and back, and compiles into a record that the validator accepts.
 */
#include <stdlib.h>

#include "common/k8s/codec.h"
#include "common/k8s/compile.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

#define LIMIT ((size_t)16 << 20)

static void check_record(void *rec)
{
    if (bh_rec_remap(rec, ((struct bh_rec_head *)rec)->size, NULL, NULL) != 0)
        abort();
}

static void compile(struct bh_arena *a, const struct bh_kind_info *k, const ProtobufCMessage *m)
{
    static struct bh_symtab *tab; /* grows over the run; names are few */
    if (!tab || bh_symtab_count(tab) > 100000) {
        bh_symtab_free(tab);
        tab = bh_symtab_new();
    }
    struct bh_interner in = bh_symtab_interner(tab);
    struct bh_node_rec *node;
    struct bh_shape_rec *shape;
    struct bh_pod_rec *pod;
    if (k->kind == BH_KIND_NODE && bh_compile_node(a, (const K8s__Node *)m, &in, &node, NULL) == 0)
        check_record(node);
    if (k->kind != BH_KIND_POD)
        return;
    if (bh_compile_shape(a, (const K8s__Pod *)m, &in, &shape, NULL) == 0)
        check_record(shape);
    if (bh_compile_pod(a, (const K8s__Pod *)m, &in, &pod, NULL) == 0)
        check_record(pod);
}

static void object(const struct bh_kind_info *k, const uint8_t *p, size_t n)
{
    struct bh_arena a;
    ProtobufCMessage *m, *again;
    bh_arena_init(&a, LIMIT);
    if (bh_decode_object(&a, k->desc, p, n, &m, NULL) == 0) {
        compile(&a, k, m);
        struct bh_json *v = bh_pb_to_json(&a, m);
        if (v)
            (void)bh_json_to_pb(&a, k->desc, v, &again, NULL, NULL); /* bad quantities may fail */
        struct bh_buf out = {0};
        bh_pb_pack(&out, m);
        bh_buf_fini(&out);
    }
    bh_arena_fini(&a);
}

static int item(void *arg, const void *p, size_t n, bool is_pb)
{
    if (!is_pb)
        object(arg, p, n);
    return 0;
}

static int event(void *arg, enum bh_watch_type t BH_UNUSED, const void *p, size_t n)
{
    char rv[32];
    bool end;
    object(arg, p, n);
    (void)bh_decode_bookmark(p, n, rv, &end);
    return 0;
}

/* What unpack.c accepts is what protobuf-c makes of it. */
static void same_as_protobuf_c(const struct bh_kind_info *k, const uint8_t *p, size_t n)
{
    struct bh_buf x = {0}, y = {0};
    struct bh_arena a;
    bh_arena_init(&a, LIMIT);
    ProtobufCAllocator alloc = bh_arena_pb_allocator(&a);
    ProtobufCMessage *fast = bh_pb_unpack_fast(&a, k->desc, p, n);
    if (fast) {
        ProtobufCMessage *slow = protobuf_c_message_unpack(k->desc, &alloc, n, n ? p : (void *)"");
        if (!slow)
            abort();
        bh_pb_pack(&x, fast);
        bh_pb_pack(&y, slow);
        if (x.n != y.n || (x.n && memcmp(x.p, y.p, x.n) != 0))
            abort();
    }
    bh_buf_fini(&x);
    bh_buf_fini(&y);
    bh_arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static const char *const types[] = {"application/vnd.kubernetes.protobuf", "application/json"};
    if (n < 2)
        return 0;
    const struct bh_kind_info *k = &bh_kinds[(p[0] >> 3) % BH_KIND_COUNT];
    const char *type = types[p[0] & 1];
    unsigned how = (p[0] >> 1) & 3;
    p++;
    n--;
    if (how == 0) {
        struct bh_list_reader *r = bh_list_reader_new(type, 1 << 20, item, (void *)k);
        struct bh_list_meta meta;
        if (bh_list_reader_feed(r, p, n / 2) == 0 &&
            bh_list_reader_feed(r, p + n / 2, n - n / 2) == 0 &&
            bh_list_reader_finish(r, &meta, NULL) == 0)
            free(meta.cont);
        bh_list_reader_free(r);
    } else if (how == 1) {
        struct bh_watch_reader *r = bh_watch_reader_new(type, 1 << 20, event, (void *)k);
        if (bh_watch_reader_feed(r, p, n / 2) == 0)
            (void)bh_watch_reader_feed(r, p + n / 2, n - n / 2);
        bh_watch_reader_free(r);
    } else {
        struct bh_api_status st;
        object(k, p, n);
        same_as_protobuf_c(k, p, n);
        bh_decode_status(p, n, 500, &st);
    }
    return 0;
}
