/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/k8s/test_codec.c - protobuf and JSON give the same object, field by field
 */
#include <errno.h>

#include "common/k8s/codec.h"
#include "proto/kubernetes/apiextensions.pb-c.h"
#include "tests/unit/common/k8s/fill.h"
#include "tests/unit/harness.h"

static struct bh_arena arena;

static struct bh_arena *fresh(void)
{
    bh_arena_fini(&arena);
    bh_arena_init(&arena, (size_t)64 << 20);
    return &arena;
}

static void *from_json(const ProtobufCMessageDescriptor *d, const char *text)
{
    ProtobufCMessage *m = NULL;
    struct bh_err err = {""};
    int rc = bh_decode_object(&arena, d, text, strlen(text), &m, &err);
    if (rc)
        printf("  %s\n", err.msg);
    CU_ASSERT_EQUAL_FATAL(rc, 0);
    return m;
}

static void rejects(const ProtobufCMessageDescriptor *d, const char *text, const char *msg)
{
    ProtobufCMessage *m = NULL;
    struct bh_err err = {""};
    CU_ASSERT_EQUAL(bh_decode_object(fresh(), d, text, strlen(text), &m, &err), -EINVAL);
    CU_ASSERT_PTR_NULL(m);
    if (strcmp(err.msg, msg) != 0)
        printf("  got:  %s\n  want: %s\n", err.msg, msg);
    CU_ASSERT_STRING_EQUAL(err.msg, msg);
}

static void json_is(const ProtobufCMessage *m, const char *want)
{
    struct bh_buf b = {0};
    struct bh_json *v = bh_pb_to_json(&arena, m);
    CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    bh_json_write(&b, v);
    if (strcmp(bh_buf_str(&b), want) != 0)
        printf("  got:  %s\n  want: %s\n", bh_buf_str(&b), want);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&b), want);
    bh_buf_fini(&b);
}

/* ---- every field of every kind --------------------------------------------------------------- */
static void test_both_encodings_agree(void)
{
    for (size_t i = 0; i < BH_ARRAY_LEN(all_objects); i++) {
        const ProtobufCMessageDescriptor *d = all_objects[i];
        struct fill f = {fresh(), 0};
        ProtobufCMessage *m = fill_message(&f, d), *from_pb = NULL, *back = NULL;
        struct bh_buf pb = {0}, text = {0};
        struct bh_err err = {""};
        unsigned dropped = 99;

        bh_pb_pack(&pb, m);
        CU_ASSERT_EQUAL_FATAL(bh_pb_unpack(&arena, d, pb.p, pb.n, &from_pb, &err), 0);
        CU_ASSERT_EQUAL(from_pb->n_unknown_fields, 0);
        CU_ASSERT(same_message(m, from_pb));

        struct bh_json *v = bh_pb_to_json(&arena, from_pb), *again = NULL;
        CU_ASSERT_PTR_NOT_NULL_FATAL(v);
        bh_json_write(&text, v);
        CU_ASSERT_EQUAL_FATAL(bh_json_parse(&arena, text.p, text.n, BH_JSON_STRICT, &again, &err),
                              0);
        int rc = bh_json_to_pb(&arena, d, again, &back, &dropped, &err);
        if (rc)
            printf("  %s: %s\n", d->short_name, err.msg);
        CU_ASSERT_EQUAL_FATAL(rc, 0);
        CU_ASSERT_EQUAL(dropped, 0);
        if (!same_message(m, back))
            CU_FAIL("JSON lost something");
        bh_buf_fini(&pb);
        bh_buf_fini(&text);
    }
}

/* Walks all types below d; depth beyond the number of types means recursion. */
static unsigned deepest(const ProtobufCMessageDescriptor *d, unsigned depth)
{
    unsigned max = depth;
    if (depth > 40)
        return depth;
    for (unsigned i = 0; i < d->n_fields; i++) {
        if (d->fields[i].type == PROTOBUF_C_TYPE_MESSAGE)
            max = BH_MAX(max, deepest(d->fields[i].descriptor, depth + 1));
    }
    return max;
}

static void test_schema_is_not_recursive(void)
{
    for (size_t i = 0; i < BH_ARRAY_LEN(all_objects); i++)
        CU_ASSERT(deepest(all_objects[i], 1) < 20);
}

static void test_inlined_members_exist(void)
{
    static const ProtobufCMessageDescriptor *const with_inline[] = {
        &k8s__volume__descriptor,
        &k8s__probe__descriptor,
        &k8s__persistent_volume_spec__descriptor,
        &k8s__ephemeral_container__descriptor,
        &k8s__device_claim_configuration__descriptor,
        &k8s__device_class_configuration__descriptor,
        &k8s__device_allocation_configuration__descriptor,
        &k8s__secret_key_selector__descriptor,
        &k8s__secret_env_source__descriptor,
        &k8s__secret_projection__descriptor,
        &k8s__config_map_key_selector__descriptor,
        &k8s__config_map_env_source__descriptor,
        &k8s__config_map_projection__descriptor,
        &k8s__config_map_volume_source__descriptor,
        &k8s__ingress_rule__descriptor,
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(with_inline); i++)
        CU_ASSERT_PTR_NOT_NULL(bh_schema_inlined(with_inline[i]));
    CU_ASSERT_PTR_NULL(bh_schema_inlined(&k8s__pod__descriptor));
}

/* ---- JSON forms ------------------------------------------------------------------------------ */
static void test_json_forms(void)
{
    fresh();
    K8s__Pod *p = from_json(
        &k8s__pod__descriptor,
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":"
        "\"y\"},"
        "\"creationTimestamp\":\"2026-01-01T00:00:18.9Z\",\"deletionTimestamp\":null},"
        "\"spec\":{\"priority\":0,\"hostUsers\":false,\"nodeName\":\"\",\"volumes\":[{\"name\":"
        "\"v\","
        "\"emptyDir\":{}},{\"name\":\"w\",\"configMap\":{\"name\":\"cm\",\"optional\":false}}],"
        "\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":0.5,\"memory\":\" "
        "1Gi \","
        "\"x/y\":2}},\"livenessProbe\":{\"httpGet\":{\"port\":\"http\",\"path\":\"/\"},"
        "\"periodSeconds\":3},\"readinessProbe\":{\"tcpSocket\":{\"port\":80}}}]}}");
    CU_ASSERT_STRING_EQUAL(p->metadata->name, "a");
    CU_ASSERT_STRING_EQUAL(p->metadata->uid, "");
    CU_ASSERT_EQUAL(p->metadata->creationtimestamp->seconds, 1767225618);
    CU_ASSERT_EQUAL(p->metadata->creationtimestamp->nanos, 0);
    CU_ASSERT_PTR_NULL(p->metadata->deletiontimestamp);
    CU_ASSERT_STRING_EQUAL(p->metadata->labels[0]->value, "y");
    CU_ASSERT(p->spec->has_priority && p->spec->priority == 0);
    CU_ASSERT(p->spec->has_hostusers && !p->spec->hostusers);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p->spec->volumes[0]->volumesource);
    CU_ASSERT_PTR_NOT_NULL(p->spec->volumes[0]->volumesource->emptydir);
    const K8s__ConfigMapVolumeSource *cm = p->spec->volumes[1]->volumesource->configmap;
    CU_ASSERT_STRING_EQUAL(cm->localobjectreference->name, "cm");
    CU_ASSERT(cm->has_optional && !cm->optional);
    const K8s__Container *c = p->spec->containers[0];
    CU_ASSERT_STRING_EQUAL(c->resources->requests[0]->value->string, "0.5");
    CU_ASSERT_STRING_EQUAL(c->resources->requests[1]->value->string, "1Gi");
    CU_ASSERT_EQUAL(c->livenessprobe->handler->httpget->port->type, 1);
    CU_ASSERT_EQUAL(c->readinessprobe->handler->tcpsocket->port->intval, 80);
    CU_ASSERT_EQUAL(c->livenessprobe->periodseconds, 3);
    json_is(
        &p->base,
        "{\"metadata\":{\"name\":\"a\",\"creationTimestamp\":\"2026-01-01T00:00:18Z\",\"labels\":"
        "{\"x\":\"y\"}},\"spec\":{\"volumes\":[{\"name\":\"v\",\"emptyDir\":{}},{\"name\":\"w\","
        "\"configMap\":{\"name\":\"cm\",\"optional\":false}}],\"containers\":[{\"name\":\"c\","
        "\"resources\":{\"requests\":{\"cpu\":\"0.5\",\"memory\":\"1Gi\",\"x/y\":\"2\"}},"
        "\"livenessProbe\":{\"httpGet\":{\"path\":\"/\",\"port\":\"http\"},\"periodSeconds\":3},"
        "\"readinessProbe\":{\"tcpSocket\":{\"port\":80}}}],\"priority\":0,\"hostUsers\":false}}");
}

static void test_secret_bytes(void)
{
    fresh();
    K8s__Secret *s =
        from_json(&k8s__secret__descriptor,
                  "{\"data\":{\"a\":\"aGk=\",\"b\":\"\",\"c\":\"AAECAw==\",\"d\":null}}");
    CU_ASSERT_EQUAL(s->data[0]->value.len, 2);
    CU_ASSERT_EQUAL(memcmp(s->data[0]->value.data, "hi", 2), 0);
    CU_ASSERT_EQUAL(s->data[1]->value.len, 0);
    CU_ASSERT_EQUAL(s->data[2]->value.len, 4);
    CU_ASSERT_EQUAL(memcmp(s->data[2]->value.data, "\0\1\2\3", 4), 0);
    json_is(&s->base, "{\"data\":{\"a\":\"aGk=\",\"b\":\"\",\"c\":\"AAECAw==\",\"d\":\"\"}}");
    rejects(&k8s__secret__descriptor, "{\"data\":{\"a\":\"aGk\"}}",
            "Secret: data.a: must be a base64 string");
    rejects(&k8s__secret__descriptor, "{\"data\":{\"a\":\"a?k=\"}}",
            "Secret: data.a: must be a base64 string");
    rejects(&k8s__secret__descriptor, "{\"data\":{\"a\":\" Gk=\"}}",
            "Secret: data.a: must be a base64 string");
    rejects(&k8s__secret__descriptor, "{\"data\":{\"a\":\"AA==AAAA\"}}",
            "Secret: data.a: must be a base64 string");
    rejects(&k8s__secret__descriptor, "{\"data\":{\"a\":\"====\"}}",
            "Secret: data.a: must be a base64 string");
}

static void test_wrong_types_name_their_path(void)
{
    rejects(&k8s__pod__descriptor, "[]", "Pod: must be an object");
    rejects(&k8s__pod__descriptor, "{\"spec\":{\"containers\":[{},{\"name\":3}]}}",
            "Pod: spec.containers[1].name: must be a string");
    rejects(&k8s__pod__descriptor, "{\"spec\":{\"containers\":{}}}",
            "Pod: spec.containers: must be a list");
    rejects(&k8s__pod__descriptor, "{\"metadata\":{\"labels\":[]}}",
            "Pod: metadata.labels: must be an object");
    rejects(&k8s__pod__descriptor, "{\"metadata\":{\"labels\":{\"a\":1}}}",
            "Pod: metadata.labels.a: must be a string");
    rejects(&k8s__pod__descriptor, "{\"spec\":{\"priority\":\"3\"}}",
            "Pod: spec.priority: must be an integer");
    rejects(&k8s__pod__descriptor, "{\"spec\":{\"priority\":3000000000}}",
            "Pod: spec.priority: must be a 32-bit integer");
    rejects(&k8s__pod__descriptor, "{\"spec\":{\"priority\":1.5}}",
            "Pod: spec.priority: must be an integer");
    rejects(&k8s__pod__descriptor, "{\"spec\":{\"hostNetwork\":1}}",
            "Pod: spec.hostNetwork: must be true or false");
    rejects(&k8s__pod__descriptor,
            "{\"spec\":{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"1x\"}}}]}}",
            "Pod: spec.containers[0].resources.requests.cpu: quantity does not parse");
    rejects(&k8s__pod__descriptor, "{\"metadata\":{\"creationTimestamp\":\"yesterday\"}}",
            "Pod: metadata.creationTimestamp: time is not RFC 3339");
    rejects(&k8s__pod_disruption_budget__descriptor, "{\"spec\":{\"minAvailable\":1.5}}",
            "PodDisruptionBudget: spec.minAvailable: must be a string or a 32-bit integer");
    rejects(&k8s__pod__descriptor, "{\"spec\":", "line 1, column 9: unexpected end of input");
}

static void test_dropped_members_are_counted(void)
{
    static const char text[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"managedFields\":[{}],\"novel\":1},"
        "\"spec\":{\"volumes\":[{\"volumeSource\":{}}],\"kind\":\"x\",\"future\":null},\"extra\":{}"
        "}";
    struct bh_json *v;
    ProtobufCMessage *m;
    unsigned dropped = 0;
    CU_ASSERT_EQUAL_FATAL(bh_json_parse(fresh(), text, strlen(text), 0, &v, NULL), 0);
    CU_ASSERT_EQUAL(bh_json_to_pb(&arena, &k8s__pod__descriptor, v, &m, &dropped, NULL), 0);
    CU_ASSERT_EQUAL(dropped, 4); /* novel, volumeSource (not a JSON name), spec.kind, extra */
}

static void test_nulls_and_empty_lists(void)
{
    fresh();
    K8s__Pod *p = from_json(&k8s__pod__descriptor,
                            "{\"metadata\":null,\"spec\":{\"containers\":null,\"volumes\":[],"
                            "\"tolerations\":[null],\"affinity\":{\"nodeAffinity\":{"
                            "\"preferredDuringSchedulingIgnoredDuringExecution\":[]}}}}");
    CU_ASSERT_PTR_NULL(p->metadata);
    CU_ASSERT_PTR_NULL(p->spec->containers);
    CU_ASSERT_EQUAL(p->spec->n_volumes, 0);
    CU_ASSERT_PTR_NOT_NULL(
        p->spec->affinity->nodeaffinity->preferredduringschedulingignoredduringexecution);
    CU_ASSERT_EQUAL(p->spec->n_tolerations, 1);
    CU_ASSERT_STRING_EQUAL(p->spec->tolerations[0]->key, "");
}

static void test_values_and_pointers_print_like_go(void)
{
    fresh();
    K8s__Deployment *d =
        from_json(&k8s__deployment__descriptor,
                  "{\"spec\":{\"replicas\":0,\"minReadySeconds\":0,\"paused\":false}}");
    json_is(&d->base, "{\"spec\":{\"replicas\":0}}");
    K8s__ContainerStatus *cs = from_json(&k8s__container_status__descriptor, "{\"name\":\"c\"}");
    json_is(&cs->base,
            "{\"name\":\"c\",\"ready\":false,\"restartCount\":0,\"image\":\"\",\"imageID\":\"\"}");
    K8s__PriorityClass *pc = from_json(&k8s__priority_class__descriptor, "{}");
    json_is(&pc->base, "{\"value\":0}");
    K8s__PersistentVolumeClaimSpec *pvc =
        from_json(&k8s__persistent_volume_claim_spec__descriptor,
                  "{\"storageClassName\":\"\",\"volumeName\":\"\"}");
    json_is(&pvc->base, "{\"storageClassName\":\"\"}");
}

static void test_map_duplicates(void)
{
    /* labels a=1, b=2, a=3 on the wire */
    static const uint8_t wire[] = "\x5a\x06\x0a\x01"
                                  "a\x12\x01"
                                  "1"
                                  "\x5a\x06\x0a\x01"
                                  "b\x12\x01"
                                  "2"
                                  "\x5a\x06\x0a\x01"
                                  "a\x12\x01"
                                  "3"
                                  "\x5a\x00";
    ProtobufCMessage *m;
    CU_ASSERT_EQUAL_FATAL(
        bh_pb_unpack(fresh(), &k8s__object_meta__descriptor, wire, sizeof(wire) - 1, &m, NULL), 0);
    json_is(m, "{\"labels\":{\"\":\"\",\"a\":\"3\",\"b\":\"2\"}}");
}

/* ---- envelope -------------------------------------------------------------------------------- */
static size_t unhex(const char *s, uint8_t *out)
{
    size_t n = 0;
    for (; *s; s++) {
        unsigned v;
        if (*s == ' ')
            continue;
        sscanf(s++, "%2x", &v);
        out[n++] = (uint8_t)v;
    }
    return n;
}

/* Bytes captured from the upstream scheduler. */
static const char binding_hex[] =
    "6b387300 0a0d 0a027631 120742696e64696e67 1237 0a1f 0a057765622d30 1200 1a0764656661756c74 "
    "2200 "
    "2a03752d31 3200 3800 4200 1214 0a044e6f6465 1200 1a026e31 2200 2a00 3200 3a00 1a00 2200";
static const char delete_hex[] =
    "6b387300 0a13 0a027631 120d44656c6574654f7074696f6e73 1200 1a00 2200";

static void test_captured_bodies(void)
{
    uint8_t raw[128];
    size_t n = unhex(binding_hex, raw);
    ProtobufCMessage *m;
    CU_ASSERT_EQUAL(n, 80);
    CU_ASSERT_EQUAL_FATAL(bh_decode_object(fresh(), &k8s__binding__descriptor, raw, n, &m, NULL),
                          0);
    K8s__Binding *b = (K8s__Binding *)m;
    CU_ASSERT_STRING_EQUAL(b->metadata->name, "web-0");
    CU_ASSERT_STRING_EQUAL(b->metadata->uid, "u-1");
    CU_ASSERT_STRING_EQUAL(b->target->kind, "Node");
    CU_ASSERT_STRING_EQUAL(b->target->name, "n1");
    json_is(m, "{\"metadata\":{\"name\":\"web-0\",\"namespace\":\"default\",\"uid\":\"u-1\"},"
               "\"target\":{\"kind\":\"Node\",\"name\":\"n1\"}}");

    n = unhex(delete_hex, raw);
    struct bh_buf out = {0};
    bh_envelope_write(&out, "v1", "DeleteOptions", NULL, 0);
    CU_ASSERT_EQUAL(out.n, n);
    CU_ASSERT_EQUAL(memcmp(out.p, raw, n), 0);
    struct bh_envelope e;
    CU_ASSERT_EQUAL(bh_envelope_open(raw, n, &e, NULL), 0);
    CU_ASSERT(bh_str_eqc(e.api_version, "v1") && bh_str_eqc(e.kind, "DeleteOptions"));
    CU_ASSERT_EQUAL(e.raw.n, 0);
    bh_buf_fini(&out);
}

static void test_bad_envelopes(void)
{
    uint8_t raw[128];
    size_t n = unhex(binding_hex, raw);
    ProtobufCMessage *m = NULL;
    struct bh_envelope e;
    for (size_t cut = 0; cut < n; cut++) {
        /* A prefix may end between two fields; then it is a smaller envelope. Never a crash. */
        uint8_t *p = bh_memdup(raw, cut ? cut : 1);
        (void)bh_decode_object(fresh(), &k8s__binding__descriptor, p, cut, &m, NULL);
        free(p);
    }
    CU_ASSERT_EQUAL(bh_envelope_open("k8s", 3, &e, NULL), -EINVAL);
    CU_ASSERT_EQUAL(bh_envelope_open("k8s\0\x12\x05hi", 8, &e, NULL), -EINVAL);
    CU_ASSERT_EQUAL(bh_envelope_open("k8s\0\x10\x05", 6, &e, NULL), -EINVAL);
    CU_ASSERT_EQUAL(bh_envelope_open("k8s\0\x1a\x04gzip", 10, &e, NULL), -EINVAL);
    CU_ASSERT_EQUAL(
        bh_envelope_open("k8s\0\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 15, &e, NULL),
        -EINVAL);
    CU_ASSERT_EQUAL(bh_envelope_open("k8s\0\x13\x14", 6, &e, NULL), -EINVAL); /* group */
    CU_ASSERT_EQUAL(bh_envelope_open("k8s\0", 4, &e, NULL), 0);
}

/* ---- hostile input --------------------------------------------------------------------------- */
static void test_truncated_and_flipped(void)
{
    static const ProtobufCMessageDescriptor *const kinds[] = {
        &k8s__node__descriptor, &k8s__lease__descriptor, &k8s__pod_disruption_budget__descriptor};
    struct bh_arena a;
    bh_arena_init(&a, (size_t)1 << 20);
    for (size_t k = 0; k < BH_ARRAY_LEN(kinds); k++) {
        struct fill f = {fresh(), 0};
        struct bh_buf pb = {0};
        ProtobufCMessage *m;
        bh_pb_pack(&pb, fill_message(&f, kinds[k]));
        for (size_t cut = 0; cut < pb.n; cut++) {
            uint8_t *p = bh_memdup(pb.p, cut + 1); /* exact size, so that ASan sees an overrun */
            bh_arena_reset(&a);
            p = bh_realloc(p, cut ? cut : 1);
            if (bh_pb_unpack(&a, kinds[k], p, cut, &m, NULL) == 0)
                (void)bh_pb_to_json(&a, m);
            free(p);
        }
        struct bh_rand r;
        bh_rand_seed(&r, k);
        for (int i = 0; i < 4000; i++) {
            uint8_t *p = bh_memdup(pb.p, pb.n);
            for (unsigned j = 0; j < 1 + bh_rand_below(&r, 4); j++)
                p[bh_rand_below(&r, pb.n)] ^= (uint8_t)(1u << bh_rand_below(&r, 8));
            bh_arena_reset(&a);
            if (bh_pb_unpack(&a, kinds[k], p, pb.n, &m, NULL) == 0)
                (void)bh_pb_to_json(&a, m);
            free(p);
        }
        bh_buf_fini(&pb);
    }
    bh_arena_fini(&a);
}

/* An API server lets annotations and commands hold NUL, which no text of a message can. The pod is not
 * lost, and no text is equal to what stands before the NUL; in protobuf, also where protobuf-c reads. */
static void test_text_with_nul_keeps_its_length(void)
{
    static const char json[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"annotations\":"
        "{\"k\":\"v\\u0000w\"}},\"spec\":{\"schedulerName\":\"default-scheduler\\u0000x\","
        "\"containers\":[{\"name\":\"c\",\"args\":[\"\\u0000\"]}]}}";
    struct bh_buf wire = {0};
    struct bh_json *v = NULL;
    struct bh_arena a;

    bh_arena_init(&a, 0);
    CU_ASSERT_EQUAL_FATAL(bh_json_parse(&a, json, sizeof json - 1, BH_JSON_NUL, &v, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(bh_json_to_wire(&k8s__pod__descriptor, v, &wire, NULL), 0);
    CU_ASSERT_PTR_NOT_NULL(memmem(wire.p, wire.n, "default-scheduler\0x", 19));
    for (unsigned rare = 0; rare < 3; rare++) {
        ProtobufCMessage *m = NULL;
        if (rare == 1) /* metadata in two parts: nothing for the fast reader */
            bh_buf_add(&wire, "\x0a\x02\x1a\x00", 4);
        if (rare == 2)
            CU_ASSERT_EQUAL_FATAL(
                bh_decode_object(&a, &k8s__pod__descriptor, json, sizeof json - 1, &m, NULL), 0)
        else
            CU_ASSERT_EQUAL_FATAL(bh_pb_unpack(&a, &k8s__pod__descriptor, wire.p, wire.n, &m, NULL),
                                  0);
        const K8s__Pod *p = (const K8s__Pod *)m;
        CU_ASSERT_PTR_NULL(bh_pb_unpack_fast(&a, &k8s__pod__descriptor, wire.p, wire.n));
        CU_ASSERT_STRING_EQUAL(p->metadata->name, "a");
        CU_ASSERT_STRING_EQUAL(p->spec->schedulername, "default-scheduler\x1ax");
        CU_ASSERT_STRING_EQUAL(p->metadata->annotations[0]->value, "v\x1aw");
        CU_ASSERT_STRING_EQUAL(p->spec->containers[0]->args[0], BH_NUL_TEXT);
    }
    CU_ASSERT_FALSE(bh_pb_texts_are_whole(&k8s__pod__descriptor, wire.p, wire.n));
    CU_ASSERT_TRUE(bh_pb_texts_are_whole(&k8s__pod__descriptor, "\x0a\x03\x0a\x01z", 5));
    CU_ASSERT_FALSE(bh_pb_texts_are_whole(&k8s__pod__descriptor, "\x0a\x7f", 2));
    bh_buf_fini(&wire);
    bh_arena_fini(&a);
}

/* What unpack.c makes of the bytes, if anything: the same as protobuf-c. True: it took them. */
static bool fast_as_slow(struct bh_arena *a, const ProtobufCMessageDescriptor *d, const uint8_t *p,
                         size_t n)
{
    struct bh_buf x = {0}, y = {0};
    bh_arena_reset(a);
    ProtobufCAllocator alloc = bh_arena_pb_allocator(a);
    const ProtobufCMessage *fast = bh_pb_unpack_fast(a, d, p, n);
    const ProtobufCMessage *slow =
        fast ? protobuf_c_message_unpack(d, &alloc, n, n ? p : (const uint8_t *)"") : NULL;

    if (!fast)
        return false;
    CU_ASSERT_PTR_NOT_NULL_FATAL(slow);
    bh_pb_pack(&x, fast);
    bh_pb_pack(&y, slow);
    CU_ASSERT(x.n == y.n && (!x.n || memcmp(x.p, y.p, x.n) == 0));
    bh_buf_fini(&x);
    bh_buf_fini(&y);
    return true;
}

static void test_fast_reader(void)
{
    struct bh_arena a;
    struct bh_rand r;
    size_t taken = 0, of_pods = 0;

    bh_arena_init(&a, (size_t)16 << 20);
    bh_rand_seed(&r, 7);
    for (size_t k = 0; k < BH_ARRAY_LEN(all_objects); k++) {
        struct fill f = {fresh(), 0};
        struct bh_buf pb = {0};
        bh_pb_pack(&pb, fill_message(&f, all_objects[k]));
        of_pods += fast_as_slow(&a, all_objects[k], (const uint8_t *)pb.p, pb.n) &&
                   all_objects[k] == &k8s__pod__descriptor;
        for (int i = 0; i < 200; i++) { /* flipped bits, and another end */
            size_t n = i % 2 ? pb.n : bh_rand_below(&r, pb.n);
            uint8_t *p = bh_memdup(pb.p, n + 1);
            for (unsigned j = 0; n && j < bh_rand_below(&r, 4); j++)
                p[bh_rand_below(&r, n)] ^= (uint8_t)(1u << bh_rand_below(&r, 8));
            p = bh_realloc(p, n ? n : 1);
            taken += fast_as_slow(&a, all_objects[k], p, n);
            free(p);
        }
        bh_buf_fini(&pb);
    }
    CU_ASSERT(taken > 1000);     /* the comparison says something */
    CU_ASSERT_EQUAL(of_pods, 0); /* with everything in it a pod has numbers side by side */
    bh_arena_fini(&a);
}

/* Unknown fields, large tags, lists in two parts, a message in two parts, an empty one. */
static void test_fast_reader_by_hand(void)
{
    static const struct {
        const char *bytes;
        size_t n;
        bool taken;
    } cases[] = {
        {"", 0, true},
        {"\x0a\x03\x0a\x01x", 5, true},                    /* metadata.name */
        {"\x0a\x03\x0a\x01x\x0a\x03\x1a\x01y", 10, false}, /* metadata in two parts */
        {"\x0a\x06\x0a\x01x\x0a\x01y", 8, true},           /* the last name counts */
        {"\x0a\x05\x8a\x01\x02hi", 7, true},               /* managedFields: unknown */
        {"\xf8\x01\x07\xf8\x01\x08\xf8\x01\x09", 9, true}, /* three unknown numbers */
        {"\xfd\x01\x01\x02\x03\x04", 6, false},            /* an unknown one of fixed width */
        {"\x12\x05\x12\x00\x50\x01\x12", 7, false},        /* cut short */
        {"\x12\x06\x12\x00\x52\x00\x12\x00", 8, false},    /* containers in two parts */
        {"\x12\x06\x12\x00\x12\x00\x52\x00", 8, true},     /* containers side by side */
        {"\x00\x00", 2, false},                            /* tag 0 */
        {"\x0b\x0c", 2, false},                            /* a group */
    };
    struct bh_arena a;

    bh_arena_init(&a, (size_t)1 << 20);
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        bool taken =
            fast_as_slow(&a, &k8s__pod__descriptor, (const uint8_t *)cases[i].bytes, cases[i].n);
        if (taken != cases[i].taken)
            printf("# case %zu\n", i);
        CU_ASSERT_EQUAL(taken, cases[i].taken);
    }
    bh_arena_fini(&a);
}

static void test_managed_fields_are_left_out(void)
{
    /* metadata {name x, managedFields ?, uid u}, status-like field 3 */
    static const char with[] = "\x0a\x0c\x0a\x01x\x8a\x01\x03\x0a\x01m\x2a\x01u\x1a\x00";
    static const char without[] = "\x0a\x06\x0a\x01x\x2a\x01u\x1a\x00";
    struct bh_buf out = {0};

    CU_ASSERT_TRUE(bh_pb_without_managed(&out, with, sizeof(with) - 1));
    CU_ASSERT(out.n == sizeof(without) - 1 && memcmp(out.p, without, out.n) == 0);
    bh_buf_reset(&out);
    CU_ASSERT_TRUE(bh_pb_without_managed(&out, without, sizeof(without) - 1));
    CU_ASSERT(out.n == sizeof(without) - 1 && memcmp(out.p, without, out.n) == 0);
    bh_buf_reset(&out);
    CU_ASSERT_TRUE(bh_pb_without_managed(&out, "", 0));
    CU_ASSERT_EQUAL(out.n, 0);
    for (size_t cut = 1; cut < sizeof(with) - 3; cut++) {
        bh_buf_reset(&out);
        (void)bh_pb_without_managed(&out, with, cut);
        CU_ASSERT(out.n <= cut);
    }
    CU_ASSERT_FALSE(bh_pb_without_managed(&out, with, 5));
    bh_buf_fini(&out);
}

static void test_memory_limit(void)
{
    /* A million empty containers: 2 bytes each on the wire, hundreds in memory. */
    struct bh_buf spec = {0}, pod = {0};
    ProtobufCMessage *m = NULL;
    struct bh_err err;
    for (int i = 0; i < 1000000; i++)
        bh_buf_add(&spec, "\x12", 2);
    bh_buf_add(&pod, "\x12\x80\x89\x7a", 4); /* field 2, 2,000,000 bytes */
    bh_buf_add(&pod, spec.p, spec.n);
    struct bh_arena a;
    bh_arena_init(&a, (size_t)64 << 20);
    CU_ASSERT_EQUAL(bh_pb_unpack(&a, &k8s__pod__descriptor, pod.p, pod.n, &m, &err), -E2BIG);
    CU_ASSERT_PTR_NULL(m);
    bh_arena_fini(&a);
    bh_buf_reset(&pod);
    bh_buf_adds(&pod, "{\"spec\":{\"containers\":[{}");
    for (int i = 0; i < 200000; i++)
        bh_buf_adds(&pod, ",{}");
    bh_buf_adds(&pod, "]}}");
    bh_arena_init(&a, (size_t)32 << 20);
    CU_ASSERT_EQUAL(bh_decode_object(&a, &k8s__pod__descriptor, pod.p, pod.n, &m, &err), -E2BIG);
    CU_ASSERT_PTR_NULL(m);
    bh_arena_fini(&a);
    bh_buf_fini(&spec);
    bh_buf_fini(&pod);
}

static void test_every_limit_is_survived(void)
{
    struct fill f = {fresh(), 0};
    ProtobufCMessage *full = fill_message(&f, &k8s__lease__descriptor), *m = NULL;
    struct bh_buf pb = {0}, text = {0};
    bh_pb_pack(&pb, full);
    bh_json_write(&text, bh_pb_to_json(&arena, full));
    bool ok = false;
    for (size_t limit = 16; limit < 65536 && !ok; limit += 48) {
        struct bh_arena a;
        bh_arena_init(&a, limit);
        int rc = bh_pb_unpack(&a, &k8s__lease__descriptor, pb.p, pb.n, &m, NULL);
        CU_ASSERT(rc == 0 || rc == -E2BIG);
        bh_arena_reset(&a);
        rc = bh_decode_object(&a, &k8s__lease__descriptor, text.p, text.n, &m, NULL);
        CU_ASSERT(rc == 0 || rc == -E2BIG);
        bh_arena_reset(&a);
        ok = bh_pb_to_json(&a, full) != NULL && rc == 0;
        bh_arena_fini(&a);
    }
    CU_ASSERT(ok);
    bh_buf_fini(&pb);
    bh_buf_fini(&text);
}

/* Of any kind, also with members that the message has, and without a schema. */
static void test_custom_objects(void)
{
    static const char good[] =
        "{\"metadata\":{\"name\":\"a\",\"labels\":{\"k\":\"v\"},\"managedFields\":[{\"x\":1}]},"
        "\"json\":{\"metadata\":[1.50]}}";
    static const char *const bad[] = {"", "[]", "{}", "{\"metadata\":1}",
                                      "{\"metadata\":{\"name\":1}}"};
    struct bh_arena a BH_CLEANUP(bh_arena_fini);
    ProtobufCMessage *m = NULL;
    struct bh_err err = {{0}};

    bh_arena_init(&a, 0);
    CU_ASSERT_EQUAL_FATAL(bh_decode_custom(&a, good, sizeof good - 1, &m, &err), 0);
    const K8s__CustomObject *o = (const void *)m;
    CU_ASSERT_STRING_EQUAL(o->metadata->name, "a");
    CU_ASSERT_STRING_EQUAL(o->metadata->labels[0]->value, "v");
    const char *want = "{\"metadata\":{\"name\":\"a\",\"labels\":{\"k\":\"v\"}},"
                       "\"json\":{\"metadata\":[1.50]}}";
    CU_ASSERT(o->json.len == strlen(want) && memcmp(o->json.data, want, o->json.len) == 0);
    for (size_t i = 0; i < BH_ARRAY_LEN(bad); i++) {
        CU_ASSERT(bh_decode_custom(&a, bad[i], strlen(bad[i]), &m, &err) < 0);
        CU_ASSERT(*err.msg);
    }
}

/* A schema in a schema (field 28, `not`), as deep as that. */
static const ProtobufCMessage *nested(struct bh_arena *a, unsigned depth)
{
    uint8_t bytes[512];
    size_t n = 0;

    for (unsigned i = 0; i < depth; i++) {
        uint8_t head[4] = {0xe2, 0x01, (uint8_t)n, 0};
        size_t n_head = 3;
        if (n > 127) {
            head[2] = (uint8_t)(n | 128);
            head[3] = (uint8_t)(n >> 7);
            n_head = 4;
        }
        CU_ASSERT_FATAL(n + n_head <= sizeof(bytes));
        memmove(bytes + n_head, bytes, n);
        memcpy(bytes, head, n_head);
        n += n_head;
    }
    return bh_pb_unpack_fast(a, &k8s__jsonschema_props__descriptor, bytes, n);
}

static void test_as_deep_as_it_goes(void)
{
    struct bh_arena a;

    bh_arena_init(&a, 0);
    CU_ASSERT_PTR_NOT_NULL(nested(&a, 1));
    CU_ASSERT_PTR_NOT_NULL(nested(&a, 64));
    CU_ASSERT_PTR_NULL(nested(&a, 65));
    bh_arena_fini(&a);
}

BH_TESTS("common/k8s/codec", {"as deep as it goes", test_as_deep_as_it_goes},
         {"objects of any kind", test_custom_objects},
         {"protobuf and JSON give the same object", test_both_encodings_agree},
         {"the schema is not recursive", test_schema_is_not_recursive},
         {"every inlined member of the table exists", test_inlined_members_exist},
         {"quantities, times, unions and pointers in JSON", test_json_forms},
         {"bytes are base64", test_secret_bytes},
         {"a wrong type names its path", test_wrong_types_name_their_path},
         {"members outside the schema are counted", test_dropped_members_are_counted},
         {"null is absent, an empty list is not", test_nulls_and_empty_lists},
         {"zero values print as Go prints them", test_values_and_pointers_print_like_go},
         {"of duplicate map keys the last wins", test_map_duplicates},
         {"bodies captured from upstream", test_captured_bodies},
         {"garbled envelopes are errors", test_bad_envelopes},
         {"truncated and flipped bytes never crash", test_truncated_and_flipped},
         {"small input cannot take unbounded memory", test_memory_limit},
         {"the fast reader is protobuf-c, on every kind and broken bytes", test_fast_reader},
         {"a text with NUL keeps its length", test_text_with_nul_keeps_its_length},
         {"managedFields are left out", test_managed_fields_are_left_out},
         {"the fast reader leaves what is unusual to protobuf-c", test_fast_reader_by_hand},
         {"running out of memory anywhere is an error", test_every_limit_is_survived}, )
