/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/k8s/test_streams.c - watch streams, Status and bookmarks
 */
#include "tests/unit/common/k8s/streams.h"

static int on_event(void *arg, enum bh_watch_type t, const void *p, size_t n)
{
    struct seen *s = arg;
    if (s->stop_after && s->n == s->stop_after)
        return 7;
    s->types[s->n++ % 16] = t;
    note(s, p, n, false);
    return 0;
}

/* ---- watch ----------------------------------------------------------------------------------- */
static const char *const type_names[] = {"ADDED",    "MODIFIED", "DELETED",
                                         "BOOKMARK", "ERROR",    "NOVEL"};

static void watch_stream(struct bh_buf *out, bool json)
{
    for (int i = 0; i < 6; i++) {
        char name[] = {(char)('a' + i), 0};
        struct bh_buf obj = {0};
        if (json) {
            bh_buf_addf(&obj, "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"object\":\"}{\\\"\"}}}",
                        name);
            bh_buf_addf(out, "{\"type\":\"%s\",\"object\":%s}\n", type_names[i], bh_buf_str(&obj));
        } else {
            struct bh_buf raw = {0};
            pod_message(&raw, name);
            bh_envelope_write(&obj, "v1", "Pod", raw.p, raw.n);
            bh_watch_frame_pb(out, type_names[i], obj.p, obj.n);
            bh_buf_fini(&raw);
        }
        bh_buf_fini(&obj);
    }
}

static void test_watch_streams(void)
{
    for (int json = 0; json < 2; json++) {
        struct bh_buf stream = {0};
        watch_stream(&stream, json);
        for (size_t step = 1; step <= stream.n; step = step < 40 ? step + 1 : step * 3) {
            struct seen s = {0};
            struct bh_watch_reader *r =
                bh_watch_reader_new(json ? JSON : PB ";stream=watch", 4096, on_event, &s);
            for (size_t at = 0; at < stream.n; at += step)
                CU_ASSERT_EQUAL(bh_watch_reader_feed(r, stream.p + at, BH_MIN(step, stream.n - at)),
                                0);
            CU_ASSERT_STRING_EQUAL(bh_buf_str(&s.text), "a b c d e f ");
            for (int i = 0; i < 6; i++)
                CU_ASSERT_EQUAL(s.types[i], (enum bh_watch_type)i);
            bh_watch_reader_free(r);
            bh_buf_fini(&s.text);
        }
        bh_buf_fini(&stream);
    }
}

static void test_watch_json_layouts(void)
{
    static const char stream[] =
        " {\"object\" : {\"metadata\":{\"name\":\"x\"}} , \"type\" : \"ADDED\" }"
        "{\"type\":\"DELETED\",\"extra\":[1,{\"object\":2}],\"object\":{\"metadata\":{\"name\":"
        "\"y\"}}}";
    struct seen s = {0};
    struct bh_watch_reader *r = bh_watch_reader_new(JSON, 4096, on_event, &s);
    CU_ASSERT_EQUAL(bh_watch_reader_feed(r, stream, strlen(stream)), 0);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&s.text), "x y ");
    CU_ASSERT(s.types[0] == BH_WATCH_ADDED && s.types[1] == BH_WATCH_DELETED);
    bh_watch_reader_free(r);
    bh_buf_fini(&s.text);
}

static int feed_once(const char *type, const void *p, size_t n, struct seen *s)
{
    struct bh_watch_reader *r = bh_watch_reader_new(type, 4096, on_event, s);
    int rc = bh_watch_reader_feed(r, p, n);
    CU_ASSERT_EQUAL(bh_watch_reader_feed(r, "", 0), rc); /* an error sticks */
    bh_watch_reader_free(r);
    return rc;
}

static void test_watch_errors(void)
{
    struct seen s = {0};
    CU_ASSERT_EQUAL(feed_once(PB, "\x00\x00\x10\x01", 4, &s), -EFBIG);
    CU_ASSERT_EQUAL(feed_once(PB, "\xff\xff\xff\xff", 4, &s), -EFBIG);
    CU_ASSERT_EQUAL(feed_once(PB, "\x00\x00\x00\x02\x0a\x05", 6, &s), -EINVAL);
    CU_ASSERT_EQUAL(feed_once(PB, "\x00\x00\x00\x00", 4, &s), -EINVAL); /* no object */
    CU_ASSERT_EQUAL(feed_once(JSON, "{\"type\":\"ADDED\"}\n", 17, &s), -EINVAL);
    CU_ASSERT_EQUAL(feed_once(JSON, "[1]\n{}", 6, &s), -EINVAL);
    CU_ASSERT_EQUAL(feed_once(JSON, "}", 1, &s), -EINVAL);
    struct bh_buf big = {0};
    bh_buf_adds(&big, "{\"type\":\"");
    for (int i = 0; i < 5000; i++)
        bh_buf_addc(&big, 'x');
    CU_ASSERT_EQUAL(feed_once(JSON, big.p, big.n, &s), -EFBIG);
    bh_buf_reset(&big);
    watch_stream(&big, false);
    s.stop_after = 2;
    CU_ASSERT_EQUAL(feed_once(PB, big.p, big.n, &s), 7);
    CU_ASSERT_EQUAL(s.n, 2);
    bh_buf_fini(&big);
    bh_buf_fini(&s.text);
}

static void test_random_stream_bytes(void)
{
    struct bh_buf stream = {0};
    struct bh_rand rand;
    bh_rand_seed(&rand, 3);
    watch_stream(&stream, false);
    for (int i = 0; i < 5000; i++) {
        uint8_t *p = bh_memdup(stream.p, stream.n);
        struct bh_buf sink = {0};
        for (unsigned j = 0; j < 1 + bh_rand_below(&rand, 4); j++)
            p[bh_rand_below(&rand, stream.n)] ^= (uint8_t)(1 + bh_rand_below(&rand, 255));
        struct bh_envelope e;
        struct bh_api_status st;
        char rv[32];
        bool end;
        (void)bh_envelope_open(p + 4, stream.n - 4, &e, NULL);
        bh_decode_status(p, stream.n, 500, &st);
        (void)bh_decode_bookmark(p + 15, stream.n - 15, rv, &end);
        free(p);
        bh_buf_fini(&sink);
    }
    bh_buf_fini(&stream);
}

/* ---- Status and bookmarks -------------------------------------------------------------------- */
static const char status_json[] =
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":"
    "\"pods "
    "\\\"x\\\" not found\",\"reason\":\"NotFound\",\"details\":{\"name\":\"x\",\"kind\":\"pods\","
    "\"retryAfterSeconds\":3},\"code\":404}";

static void check_status(const void *p, size_t n)
{
    struct bh_api_status s;
    bh_decode_status(p, n, 500, &s);
    CU_ASSERT_EQUAL(s.code, 404);
    CU_ASSERT_STRING_EQUAL(s.reason, "NotFound");
    CU_ASSERT_STRING_EQUAL(s.message, "pods \"x\" not found");
    CU_ASSERT_EQUAL(s.retry_after_s, 3);
    CU_ASSERT_STRING_EQUAL(s.details_kind, "pods");
    CU_ASSERT_STRING_EQUAL(s.details_name, "x");
}

static void test_status(void)
{
    struct bh_arena a;
    ProtobufCMessage *m;
    struct bh_buf raw = {0}, body = {0};
    bh_arena_init(&a, 0);
    check_status(status_json, strlen(status_json));
    CU_ASSERT_EQUAL_FATAL(
        bh_decode_object(&a, &k8s__status__descriptor, status_json, strlen(status_json), &m, NULL),
        0);
    bh_pb_pack(&raw, m);
    bh_envelope_write(&body, "v1", "Status", raw.p, raw.n);
    check_status(body.p, body.n);
    bh_buf_fini(&raw);
    bh_buf_fini(&body);
    bh_arena_fini(&a);
}

static void test_no_status(void)
{
    struct bh_api_status s;
    static const char html[] = "<html>\r\n  <b>Bad   Gateway\x01</b>\n";
    bh_decode_status(html, strlen(html), 502, &s);
    CU_ASSERT_EQUAL(s.code, 502);
    CU_ASSERT_STRING_EQUAL(s.message, "<html> <b>Bad Gateway </b>");
    CU_ASSERT_STRING_EQUAL(s.reason, "");
    bh_decode_status("", 0, 503, &s);
    CU_ASSERT_STRING_EQUAL(s.message, "HTTP 503 without a message");
    bh_decode_status("{\"kind\":\"Pod\"}", strlen("{\"kind\":\"Pod\"}"), 200, &s);
    CU_ASSERT_EQUAL(s.code, 200);
    struct bh_buf b = {0};
    bh_buf_adds(&b, "{\"kind\":\"Status\",\"message\":\"");
    for (int i = 0; i < 1000; i++)
        bh_buf_adds(&b, "\xc3\xa4");
    bh_buf_adds(&b, "\"}");
    bh_decode_status(b.p, b.n, 400, &s);
    CU_ASSERT_EQUAL(s.code, 400);
    CU_ASSERT_EQUAL(strlen(s.message), 510); /* cut between two characters of two bytes */
    bh_buf_fini(&b);
}

static void bookmark(const void *p, size_t n, const char *want, bool want_end)
{
    char rv[32] = "";
    bool end = !want_end;
    CU_ASSERT_EQUAL(bh_decode_bookmark(p, n, rv, &end), 0);
    CU_ASSERT_STRING_EQUAL(rv, want);
    CU_ASSERT_EQUAL(end, want_end);
}

static void test_bookmarks(void)
{
    static const char end_json[] =
        "{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"99\",\"annotations\":{"
        "\"k8s.io/initial-events-end\":\"true\"}},\"spec\":{}}";
    static const char plain_json[] = "{\"metadata\":{\"resourceVersion\":\"7\"}}";
    const char *const texts[] = {end_json, plain_json};
    for (int i = 0; i < 2; i++) {
        struct bh_arena a;
        ProtobufCMessage *m;
        struct bh_buf raw = {0}, body = {0};
        bookmark(texts[i], strlen(texts[i]), i ? "7" : "99", i == 0);
        bh_arena_init(&a, 0);
        CU_ASSERT_EQUAL_FATAL(
            bh_decode_object(&a, &k8s__pod__descriptor, texts[i], strlen(texts[i]), &m, NULL), 0);
        bh_pb_pack(&raw, m);
        bh_envelope_write(&body, "v1", "Pod", raw.p, raw.n);
        bookmark(body.p, body.n, i ? "7" : "99", i == 0);
        bh_buf_fini(&raw);
        bh_buf_fini(&body);
        bh_arena_fini(&a);
    }
    char rv[32] = "kept";
    bool end = true;
    CU_ASSERT_EQUAL(bh_decode_bookmark("{}", 2, rv, &end), -EINVAL);
    CU_ASSERT_EQUAL(bh_decode_bookmark("", 0, rv, &end), -EINVAL);
    CU_ASSERT_EQUAL(bh_decode_bookmark("k8s\0\x12\x00", 6, rv, &end), -EINVAL);
    CU_ASSERT_STRING_EQUAL(rv, "kept");
}

/* ---- the walker ------------------------------------------------------------------------------ */
static void test_wire_walker(void)
{
    struct bh_wire_field f;
    struct bh_wire w =
        bh_wire_of("\x08\x96\x01\x11\x01\x02\x03\x04\x05\x06\x07\x08\x1d\x01\x00\x00\x00", 17);
    CU_ASSERT_EQUAL(bh_wire_next(&w, &f), 1);
    CU_ASSERT(f.number == 1 && f.value == 150 && !f.is_bytes);
    CU_ASSERT_EQUAL(bh_wire_next(&w, &f), 1);
    CU_ASSERT(f.number == 2 && f.value == 0x0807060504030201);
    CU_ASSERT_EQUAL(bh_wire_next(&w, &f), 1);
    CU_ASSERT(f.number == 3 && f.value == 1);
    CU_ASSERT_EQUAL(bh_wire_next(&w, &f), 0);
    static const struct {
        const char *p;
        size_t n;
    } bad[] = {
        {"\x08", 1},      {"\x08\x80", 2}, {"\x00\x01", 2},
        {"\x0a\x02x", 3}, {"\x09\x01", 2}, {"\x0d\x01", 2},
        {"\x0b", 1},      {"\x0e\x01", 2}, {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11}};
    for (size_t i = 0; i < BH_ARRAY_LEN(bad); i++) {
        w = bh_wire_of(bad[i].p, bad[i].n);
        CU_ASSERT_EQUAL(bh_wire_next(&w, &f), -EINVAL);
    }
    for (unsigned shift = 0; shift < 64; shift++) {
        struct bh_buf b = {0};
        bh_wire_add_varint(&b, 8);
        bh_wire_add_varint(&b, UINT64_MAX >> shift);
        CU_ASSERT_EQUAL(b.n, 1 + bh_wire_varint_size(UINT64_MAX >> shift));
        w = bh_wire_of(b.p, b.n);
        CU_ASSERT_EQUAL(bh_wire_next(&w, &f), 1);
        CU_ASSERT_EQUAL(f.value, UINT64_MAX >> shift);
        bh_buf_fini(&b);
    }
}

BH_TESTS("common/k8s/streams",
         {"watch streams in both encodings, in any chunks", test_watch_streams},
         {"JSON events in any layout", test_watch_json_layouts},
         {"bad watch frames are errors", test_watch_errors},
         {"random bytes in streams never crash", test_random_stream_bytes},
         {"Status in both encodings", test_status},
         {"a body that is no Status gives an excerpt", test_no_status},
         {"bookmarks in both encodings", test_bookmarks}, {"the wire walker", test_wire_walker}, )
