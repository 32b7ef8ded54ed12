/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/k8s/test_json_wire.c - JSON as protobuf bytes
 *
 * Every object with all of its fields comes back as the message it was printed from; with one thing
 * wrong somewhere it is taken or refused, and what is refused leaves no bytes behind.
 */
#include "common/k8s/codec.h"

#include <errno.h>

#include "proto/kubernetes/kubernetes.pb-c.h"
#include "tests/unit/common/k8s/fill.h"
#include "tests/unit/harness.h"

static struct bh_arena arena;

/* v as bytes and then as a message; NULL when it was refused. */
static ProtobufCMessage *through_bytes(const ProtobufCMessageDescriptor *d, const struct bh_json *v)
{
    ProtobufCMessage *m = NULL;
    struct bh_buf b = {0};

    bh_buf_adds(&b, "before");
    int rc = bh_json_to_wire(d, v, &b, NULL);
    CU_ASSERT_EQUAL_FATAL(memcmp(b.p, "before", 6), 0);
    if (rc) {
        CU_ASSERT_EQUAL(rc, -EINVAL);
        CU_ASSERT_EQUAL(b.n, 6);
    } else {
        CU_ASSERT_EQUAL_FATAL(bh_pb_unpack(&arena, d, b.p + 6, b.n - 6, &m, NULL), 0);
        CU_ASSERT_EQUAL(m->n_unknown_fields, 0);
    }
    bh_buf_fini(&b);
    return m;
}

static ProtobufCMessage *filled(const ProtobufCMessageDescriptor *d)
{
    struct fill f = {&arena, 0};
    return fill_message(&f, d);
}

static struct bh_json *whole(const ProtobufCMessageDescriptor *d)
{
    return bh_pb_to_json(&arena, filled(d));
}

static void begin(void)
{
    bh_arena_init(&arena, 0);
}

static void end(void)
{
    bh_arena_fini(&arena);
}

static void test_every_field_of_every_kind(void)
{
    begin();
    for (size_t i = 0; i < BH_ARRAY_LEN(all_objects); i++) {
        const ProtobufCMessage *m = filled(all_objects[i]);
        const ProtobufCMessage *again = through_bytes(all_objects[i], bh_pb_to_json(&arena, m));
        CU_ASSERT_PTR_NOT_NULL_FATAL(again);
        CU_ASSERT(same_message(m, again));
        bh_arena_reset(&arena);
    }
    end();
}

static size_t count(const struct bh_json *v)
{
    size_t n = 1;
    bh_json_each(m, v)
        n += count(m);
    return n;
}

/* Another value in the same place: key and next stay. */
static void spoil(struct bh_json *v, uint64_t how)
{
    static const char *const texts[] = {
        "", "x", "100m", "=", "QQ==", "Q Q=", " 1 ", "a\0b", "2026-01-01T00:00:00Z"};
    static const char *const numbers[] = {"0", "-1", "4294967296", "1.5", "9223372036854775807"};
    switch (how % 6) {
    case 0:
        v->type = BH_JSON_NULL;
        break;
    case 1:
        v->type = BH_JSON_BOOL;
        v->b = how & 64;
        break;
    case 2: {
        const char *t = numbers[how / 6 % BH_ARRAY_LEN(numbers)];
        v->type = BH_JSON_NUMBER;
        v->s = bh_str_c(t);
        break;
    }
    case 3: {
        size_t k = how / 6 % BH_ARRAY_LEN(texts);
        v->type = BH_JSON_STRING;
        v->s = (struct bh_str){texts[k], k == 7 ? 3 : strlen(texts[k])};
        break;
    }
    default:
        v->type = how % 6 == 4 ? BH_JSON_ARRAY : BH_JSON_OBJECT;
        memset(&v->c, 0, sizeof(v->c));
    }
}

static void test_what_is_refused_leaves_nothing(void)
{
    struct bh_rand rnd;
    size_t taken = 0, refused = 0;

    bh_rand_seed(&rnd, 7);
    begin();
    for (size_t i = 0; i < BH_ARRAY_LEN(all_objects); i++) {
        size_t n = count(whole(all_objects[i]));
        for (int round = 0; round < 200; round++) {
            struct bh_json *v = whole(all_objects[i]);
            size_t at = bh_rand_below(&rnd, n);
            spoil(nth_value(v, &at), bh_rand_u64(&rnd));
            if (through_bytes(all_objects[i], v))
                taken++;
            else
                refused++;
            bh_arena_reset(&arena);
        }
    }
    CU_ASSERT(taken > 500);
    CU_ASSERT(refused > 500);
    end();
}

static void test_long_messages(void)
{
    static char text[70000];
    begin();
    memset(text, 'x', sizeof(text));
    static const size_t lengths[] = {0, 1, 126, 127, 128, 129, 16381, 16384, 65535, 70000};
    for (size_t i = 0; i < BH_ARRAY_LEN(lengths); i++) {
        struct bh_json *v = bh_json_new(&arena, BH_JSON_OBJECT);
        bh_json_set(&arena, bh_json_obj_at(&arena, bh_json_obj_at(&arena, v, "metadata"), "labels"),
                    "k", bh_json_new_str(&arena, text, lengths[i]));
        const K8s__Pod *p = (const K8s__Pod *)through_bytes(&k8s__pod__descriptor, v);
        CU_ASSERT_PTR_NOT_NULL_FATAL(p);
        CU_ASSERT_EQUAL(p->metadata->n_labels, 1);
        CU_ASSERT_EQUAL(strlen(p->metadata->labels[0]->value), lengths[i]);
    }
    end();
}

/* What a field takes whatever it is stays as it is. */
static void test_any_json(void)
{
    static const char text[] =
        "{\"driver\":\"d\",\"parameters\":{\"a\":[1,\"x\"],\"b\":{\"c\":true}}}";
    struct bh_json *v = NULL;
    struct bh_buf b = {0};

    begin();
    CU_ASSERT_EQUAL_FATAL(bh_json_parse(&arena, text, sizeof(text) - 1, BH_JSON_STRICT, &v, NULL),
                          0);
    const ProtobufCMessage *m = through_bytes(&k8s__opaque_device_configuration__descriptor, v);
    CU_ASSERT_PTR_NOT_NULL_FATAL(m);
    const K8s__RawExtension *raw = ((const K8s__OpaqueDeviceConfiguration *)m)->parameters;
    CU_ASSERT_EQUAL(raw->raw.len, strlen("{\"a\":[1,\"x\"],\"b\":{\"c\":true}}"));
    bh_json_write(&b, bh_pb_to_json(&arena, m));
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&b), text);
    bh_buf_fini(&b);
    end();
}

BH_TESTS("common/k8s/json_wire", {"every field of every kind", test_every_field_of_every_kind},
         {"what is taken and what is refused", test_what_is_refused_leaves_nothing},
         {"lengths at their borders", test_long_messages}, {"any JSON", test_any_json}, )
