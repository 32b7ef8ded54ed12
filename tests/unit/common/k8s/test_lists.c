/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/k8s/test_lists.c - LIST replies while they arrive, whole, cut and hostile
 */
#include "tests/unit/common/k8s/streams.h"

static int on_item(void *arg, const void *p, size_t n, bool is_pb)
{
    struct seen *s = arg;
    if (s->stop_after && s->n == s->stop_after)
        return 7;
    s->n++;
    note(s, p, n, is_pb);
    return 0;
}

static void pb_list(struct bh_buf *out, const char *kind)
{
    struct bh_buf raw = {0}, meta = {0};
    bh_wire_add_bytes(&meta, 2, "4711", 4);
    bh_wire_add_bytes(&meta, 3, "token", 5);
    bh_wire_add_varint(&meta, 4 << 3);
    bh_wire_add_varint(&meta, 12);
    bh_wire_add_bytes(&raw, 1, meta.p, meta.n);
    for (int i = 0; i < 3; i++) {
        struct bh_buf pod = {0};
        char name[] = {(char)('a' + i), 0};
        pod_message(&pod, name);
        bh_wire_add_bytes(&raw, 2, pod.p, pod.n);
        bh_buf_fini(&pod);
    }
    bh_wire_add_bytes(&raw, 99, "new", 3);
    bh_envelope_write(out, "v1", kind, raw.p, raw.n);
    bh_buf_fini(&raw);
    bh_buf_fini(&meta);
}

static const char json_list[] = "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{"
                                "\"resourceVersion\":\"4711\",\"continue\":"
                                "\"token\",\"remainingItemCount\":12},\"items\":[{\"metadata\":{"
                                "\"name\":\"a\"}},{\"metadata\":{\"name\":"
                                "\"b\"}},{\"metadata\":{\"name\":\"c\"}}]}";

static int read_list(const char *type, const void *p, size_t n, size_t step, struct seen *s,
                     struct bh_list_meta *meta, struct bh_err *err)
{
    struct bh_list_reader *r = bh_list_reader_new(type, 1 << 20, on_item, s);
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < n; at += step)
        rc = bh_list_reader_feed(r, (const char *)p + at, BH_MIN(step, n - at));
    int end = bh_list_reader_finish(r, meta, err);
    CU_ASSERT(rc == 0 || rc == end); /* told again, in words */
    bh_list_reader_free(r);
    return end;
}

static void test_lists(void)
{
    struct bh_buf pb = {0};
    pb_list(&pb, "PodList");
    for (int json = 0; json < 2; json++) {
        const char *p = json ? json_list : pb.p;
        size_t n = json ? strlen(json_list) : pb.n;
        static const size_t steps[] = {1, 2, 3, 7, 64, 100000};
        for (size_t i = 0; i < BH_ARRAY_LEN(steps); i++) {
            struct seen s = {0};
            struct bh_list_meta meta = {0};
            struct bh_err err = {""};
            CU_ASSERT_EQUAL(
                read_list(json ? JSON : PB ";charset=x", p, n, steps[i], &s, &meta, &err), 0);
            CU_ASSERT_STRING_EQUAL(bh_buf_str(&s.text), "a b c ");
            CU_ASSERT_STRING_EQUAL(meta.resource_version, "4711");
            CU_ASSERT_STRING_EQUAL(meta.cont, "token");
            CU_ASSERT_EQUAL(meta.remaining, 12);
            free(meta.cont);
            bh_buf_fini(&s.text);
        }
    }
    bh_buf_fini(&pb);
}

static void test_list_errors(void)
{
    struct bh_buf pb = {0};
    struct bh_list_meta meta = {.remaining = -1};
    struct bh_err err;
    struct seen s = {0};
    pb_list(&pb, "PodList");
    for (size_t cut = 0; cut < pb.n - 4; cut++) { /* the last 4 bytes are empty fields */
        bh_buf_reset(&s.text);
        CU_ASSERT_EQUAL(read_list(PB, pb.p, cut, 50, &s, &meta, &err), -EINVAL);
    }
    for (size_t cut = 0; cut < strlen(json_list); cut++)
        CU_ASSERT_EQUAL(read_list(JSON, json_list, cut, 50, &s, &meta, &err), -EINVAL);
    bh_buf_reset(&pb);
    pb_list(&pb, "Status");
    CU_ASSERT_EQUAL(read_list(PB, pb.p, pb.n, 50, &s, &meta, &err), -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg, "list: reply is a Status");
    static const char table[] = "{\"kind\":\"Table\",\"rows\":[],\"items\":[]}";
    CU_ASSERT_EQUAL(read_list(JSON, table, strlen(table), 50, &s, &meta, &err), -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg, "list: reply is a Table");
    CU_ASSERT_EQUAL(meta.remaining, -1); /* untouched on failure */
    bh_buf_fini(&pb);
    bh_buf_fini(&s.text);
}

static void test_list_stops_with_the_callback(void)
{
    struct bh_buf pb = {0};
    struct bh_list_meta meta;
    pb_list(&pb, "PodList");
    struct seen s = {.stop_after = 2};
    CU_ASSERT_EQUAL(read_list(PB, pb.p, pb.n, 9, &s, &meta, NULL), 7);
    CU_ASSERT_EQUAL(s.n, 2);
    s.n = 0;
    CU_ASSERT_EQUAL(read_list(JSON, json_list, strlen(json_list), 9, &s, &meta, NULL), 7);
    bh_list_reader_free(NULL);
    bh_buf_fini(&pb);
    bh_buf_fini(&s.text);
}

/* ---- protobuf lists, as they may come -------------------------------------------------------- */
#define LONG_NAME 300

static void wrap(struct bh_buf *out, const char *kind, const struct bh_buf *raw)
{
    bh_envelope_begin(out, "v1", kind, raw->n);
    bh_buf_add(out, raw->p, raw->n);
}

static void add_pod(struct bh_buf *raw, const char *name)
{
    struct bh_buf pod = {0};
    pod_message(&pod, name);
    bh_wire_add_bytes(raw, 2, bh_buf_str(&pod), pod.n);
    bh_buf_fini(&pod);
}

/* Fields of every wire type that no schema has, in every place; lengths of one and two bytes. */
static void add_unknown(struct bh_buf *b)
{
    char noise[200];
    memset(noise, '\n', sizeof(noise));
    bh_wire_add_bytes(b, 99, noise, sizeof(noise));
    bh_wire_add_varint(b, 98 << 3);
    bh_wire_add_varint(b, 1u << 30);
    bh_wire_add_varint(b, 97 << 3 | 1);
    bh_buf_add(b, noise, 8);
    bh_wire_add_varint(b, 96 << 3 | 5);
    bh_buf_add(b, noise, 4);
    bh_wire_add_bytes(b, 95, "", 0);
}

static void odd_list(struct bh_buf *out)
{
    char name[LONG_NAME + 1];
    struct bh_buf raw = {0}, meta = {0};
    memset(name, 'x', LONG_NAME);
    name[LONG_NAME] = 0;
    bh_wire_add_bytes(&meta, 3, "old", 3);
    bh_wire_add_bytes(&raw, 1, meta.p, meta.n); /* twice: the later one's fields win */
    add_unknown(&raw);
    add_pod(&raw, "a");
    bh_wire_add_bytes(&raw, 2, "", 0); /* a pod of nothing */
    add_pod(&raw, name);
    add_unknown(&raw);
    bh_buf_reset(&meta);
    bh_wire_add_bytes(&meta, 2, "4711", 4);
    bh_wire_add_bytes(&meta, 3, "token", 5);
    bh_wire_add_bytes(&raw, 1, meta.p, meta.n);
    wrap(out, "PodList", &raw);
    add_unknown(out);
    bh_envelope_end(out);
    bh_buf_fini(&raw);
    bh_buf_fini(&meta);
}

/* Fed in two parts, cut at `at`; *ret_early: items handed out with the first one. */
static int read_cut(const struct bh_buf *b, size_t at, struct seen *s, struct bh_list_meta *meta,
                    int *ret_early)
{
    struct bh_list_reader *r = bh_list_reader_new(PB, LONG_NAME + 20, on_item, s);
    int rc = bh_list_reader_feed(r, b->p, at);
    *ret_early = s->n;
    if (rc == 0)
        rc = bh_list_reader_feed(r, b->p + at, b->n - at);
    if (rc == 0)
        rc = bh_list_reader_finish(r, meta, NULL);
    bh_list_reader_free(r);
    return rc;
}

static void test_list_cut_anywhere(void)
{
    struct bh_buf pb = {0};
    int early, before = 0;
    odd_list(&pb);
    for (size_t at = 0; at <= pb.n; at++) {
        struct seen s = {0};
        struct bh_list_meta meta = {0};
        CU_ASSERT_EQUAL(read_cut(&pb, at, &s, &meta, &early), 0);
        CU_ASSERT_EQUAL(s.n, 3);
        CU_ASSERT_EQUAL(s.text.n, 5 + LONG_NAME);
        CU_ASSERT(memcmp(bh_buf_str(&s.text), "a ? x", 5) == 0);
        CU_ASSERT_STRING_EQUAL(meta.resource_version, "4711");
        CU_ASSERT_STRING_EQUAL(meta.cont, "token");
        CU_ASSERT(early == before || early == before + 1); /* as they arrive, never later */
        before = early;
        free(meta.cont);
        bh_buf_fini(&s.text);
    }
    CU_ASSERT_EQUAL(before, 3);
    for (size_t step = 1; step < 40; step++) {
        struct seen s = {0};
        struct bh_list_meta meta = {0};
        CU_ASSERT_EQUAL(read_list(PB, pb.p, pb.n, step, &s, &meta, NULL), 0);
        CU_ASSERT_EQUAL(s.n, 3);
        free(meta.cont);
        bh_buf_fini(&s.text);
    }
    bh_buf_fini(&pb);
}

static int on_place(void *arg, const void *p, size_t n, bool is_pb)
{
    const struct bh_buf *b = arg;
    CU_ASSERT(is_pb && n && (const char *)p > b->p && (const char *)p + n < b->p + b->n);
    return 0;
}

/* What arrived whole is not copied, and a list may be longer than the limit, which is an item's. */
static void test_list_in_place(void)
{
    struct bh_buf pb = {0};
    struct bh_list_meta meta = {0};
    pb_list(&pb, "PodList");
    struct bh_list_reader *r = bh_list_reader_new(PB, 20, on_place, &pb);
    CU_ASSERT(pb.n > 60);
    CU_ASSERT_EQUAL(bh_list_reader_feed(r, pb.p, pb.n), 0);
    CU_ASSERT_EQUAL(bh_list_reader_finish(r, &meta, NULL), 0);
    free(meta.cont);
    bh_list_reader_free(r);
    bh_buf_fini(&pb);
}

enum hostile {
    TWO_CONTENTS,
    KIND_AFTER_CONTENT,
    NO_KIND,
    ENCODED,
    ITEM_BEYOND_CONTENT,
    HEAD_BEYOND_CONTENT,
    ITEM_IS_NUMBER,
    META_IS_NUMBER,
    META_IS_GARBLED,
    RAW_IS_NUMBER,
    GROUP_IN_LIST,
    FIELD_ZERO_AFTER_CONTENT,
    ENDLESS_LENGTH,
    ENDLESS_UNKNOWN,
    HOSTILE_COUNT
};

static void hostile_list(struct bh_buf *out, enum hostile how)
{
    struct bh_buf raw = {0};
    add_pod(&raw, "a");
    const size_t whole = raw.n;
    if (how == ITEM_IS_NUMBER || how == META_IS_NUMBER)
        bh_wire_add_varint(&raw, how == ITEM_IS_NUMBER ? 2 << 3 : 1 << 3), bh_buf_addc(&raw, 1);
    if (how == META_IS_GARBLED)
        bh_wire_add_bytes(&raw, 1, "\x12\x7f", 2);
    if (how == GROUP_IN_LIST)
        bh_wire_add_varint(&raw, 50 << 3 | 3);
    if (how == ENDLESS_LENGTH || how == ENDLESS_UNKNOWN) {
        bh_wire_add_varint(&raw, (how == ENDLESS_LENGTH ? 2 : 50) << 3 | 2);
        bh_wire_add_varint(&raw, UINT64_MAX);
    }
    if (how == RAW_IS_NUMBER) {
        bh_envelope_begin(out, "v1", "PodList", 0);
        out->p[out->n - 2] = 2 << 3; /* tag and length become tag and value */
        bh_buf_fini(&raw);
        return;
    }
    bh_envelope_begin(out, "v1", how == NO_KIND ? "" : "PodList",
                      how == ITEM_BEYOND_CONTENT   ? whole - 1
                      : how == HEAD_BEYOND_CONTENT ? whole + 1
                                                   : raw.n);
    bh_buf_add(out, raw.p, raw.n);
    if (how == HEAD_BEYOND_CONTENT)
        bh_wire_add_varint(out, 50 << 3); /* two bytes, one of them outside */
    if (how == TWO_CONTENTS)
        bh_wire_add_bytes(out, 2, raw.p, raw.n);
    if (how == KIND_AFTER_CONTENT)
        bh_wire_add_bytes(out, 1, "\x12\x06Status", 8);
    if (how == ENCODED)
        bh_wire_add_bytes(out, 3, "gzip", 4);
    if (how == FIELD_ZERO_AFTER_CONTENT)
        bh_buf_add(out, "\0\0", 2);
    bh_buf_fini(&raw);
}

static void test_hostile_lists(void)
{
    for (int how = 0; how < HOSTILE_COUNT; how++) {
        struct bh_buf pb = {0};
        hostile_list(&pb, (enum hostile)how);
        for (size_t step = 1; step <= pb.n; step++) {
            struct seen s = {0};
            struct bh_list_meta meta = {.remaining = -1};
            struct bh_err err = {""};
            CU_ASSERT_EQUAL(read_list(PB, pb.p, pb.n, step, &s, &meta, &err), -EINVAL);
            CU_ASSERT(strncmp(err.msg, "list: ", 6) == 0);
            CU_ASSERT_EQUAL(meta.remaining, -1);
            CU_ASSERT_EQUAL(s.n, how != NO_KIND && how != ITEM_BEYOND_CONTENT &&
                                     how != RAW_IS_NUMBER); /* one was there before the damage */
            bh_buf_fini(&s.text);
        }
        bh_buf_fini(&pb);
    }
}

/* Refused by its length, before its bytes come: nobody makes this process hold them. */
static void test_list_item_too_large(void)
{
    struct bh_buf pb = {0}, raw = {0};
    struct seen s = {0};
    struct bh_list_meta meta;
    struct bh_err err = {""};
    add_pod(&raw, "a");
    const size_t first = raw.n;
    bh_wire_add_varint(&raw, 2 << 3 | 2);
    bh_wire_add_varint(&raw, 101);
    bh_envelope_begin(&pb, "v1", "PodList", raw.n + 101);
    const size_t head = pb.n;
    bh_buf_add(&pb, raw.p, raw.n);
    struct bh_list_reader *r = bh_list_reader_new(PB, 100, on_item, &s);
    CU_ASSERT_EQUAL(bh_list_reader_feed(r, pb.p, head + first + 1), 0);
    CU_ASSERT_EQUAL(bh_list_reader_feed(r, pb.p + head + first + 1, 1), -EFBIG);
    CU_ASSERT_EQUAL(bh_list_reader_feed(r, pb.p, 1), -EFBIG);
    CU_ASSERT_EQUAL(bh_list_reader_finish(r, &meta, &err), -EFBIG);
    CU_ASSERT_STRING_EQUAL(err.msg, "list: an element of the reply is too large");
    CU_ASSERT_EQUAL(s.n, 1);
    bh_list_reader_free(r);
    bh_buf_fini(&pb);
    bh_buf_fini(&raw);
    bh_buf_fini(&s.text);
}

BH_TESTS("common/k8s/lists", {"lists in both encodings, in any chunks", test_lists},
         {"cut or foreign lists are errors", test_list_errors},
         {"the callback stops a list", test_list_stops_with_the_callback},
         {"a protobuf list may be cut anywhere", test_list_cut_anywhere},
         {"what arrives whole is not copied", test_list_in_place},
         {"hostile protobuf lists are errors", test_hostile_lists},
         {"too large an element is refused by its length", test_list_item_too_large});
