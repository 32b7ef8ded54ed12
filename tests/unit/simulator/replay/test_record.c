/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/replay/test_record.c - record files, whole, broken and packed
 */
#include "simulator/replay/record.h"

#include <errno.h>
#include <zlib.h>

#include "tests/unit/harness.h"

#define LINE(t, e, n)                                                                              \
    "{\"time\":\"" t "\",\"event\":\"" e "\",\"resource\":{\"apiVersion\":\"v1\",\"kind\":"        \
    "\"Node\",\"metadata\":{\"name\":\"" n "\"}}}"
#define T1 "2026-01-02T03:04:05.5Z"
#define T2 "2026-01-02T04:04:06+01:00"

/* Names of the records in order, "!LINE" for bad lines, "$" at a fatal end, "~" when torn. */
static void summary(const void *p, size_t n, char out[static 512])
{
    struct bh_record_reader *r = bh_record_reader_new(p, n);
    struct bh_arena a;
    struct bh_record rec;
    struct bh_err err;
    int rc = 1;
    size_t at = 0;

    bh_arena_init(&a, 0);
    out[0] = '\0';
    while (rc != 0 && at < 400) {
        rc = bh_record_next(r, &a, &rec, &err);
        if (rc == 1)
            at += (size_t)snprintf(out + at, 512 - at, "%s ", rec.name);
        else if (rc == -EINVAL)
            at += (size_t)snprintf(out + at, 512 - at, "!%u ", rec.line);
        else if (rc < 0) {
            at += (size_t)snprintf(out + at, 512 - at, "$ ");
            break;
        }
    }
    if (bh_record_torn(r))
        snprintf(out + at, 512 - at, "~");
    bh_arena_fini(&a);
    bh_record_reader_free(r);
}

static void expect(const char *text, const char *want)
{
    char got[512];

    summary(text, strlen(text), got);
    CU_ASSERT_STRING_EQUAL(got, want);
}

static void test_lines(void)
{
    expect("", "");
    expect(LINE(T1, "Add", "a") "\n" LINE(T2, "Delete", "b") "\n", "a b ");
    expect(LINE(T1, "Add", "a") "\n" LINE(T2, "Delete", "b"), "a b "); /* whole, without newline */
    expect("{\"berthRecord\":1}\n\n  \r\n" LINE(T1, "Update", "a") "\n", "a ");
    expect(LINE(T1, "Add", "a") "\n{\"time\":\"2026-01-0", "a ~");
}

static void test_bad_lines(void)
{
    expect("nonsense\n" LINE(T1, "Add", "a") "\n", "!1 a ");
    expect(LINE(T1, "Add", "a") "\n" LINE(T1, "Explode", "b") "\n" LINE(T1, "Add", "c") "\n",
           "a !2 c ");
    expect(LINE("yesterday", "Add", "a") "\n", "!1 ");
    expect(LINE("0001-01-01T00:00:00Z", "Add", "a") "\n", "!1 ");
    expect(LINE("9999-12-31T23:59:59Z", "Add", "a") "\n", "!1 ");
    expect("[]\n7\n\"x\"\n{}\n{\"event\":\"Add\"}\n", "!1 !2 !3 !4 !5 ");
    expect("{\"time\":\"" T1 "\",\"event\":\"Add\",\"resource\":7}\n", "!1 ");
    expect("{\"time\":\"" T1 "\",\"event\":\"Add\",\"resource\":{\"kind\":\"Node\"}}\n", "!1 ");
    expect(LINE(T1, "Add", "") "\n", "!1 ");
}

static void test_times(void)
{
    static const char text[] = LINE(T1, "Add", "a") "\n" LINE(T2, "Update", "b") "\n";
    struct bh_record_reader *r = bh_record_reader_new(text, strlen(text));
    struct bh_record one, two;
    struct bh_arena a;
    struct bh_err err;

    bh_arena_init(&a, 0);
    CU_ASSERT_EQUAL(bh_record_next(r, &a, &one, &err), 1);
    CU_ASSERT_EQUAL(bh_record_next(r, &a, &two, &err), 1);
    CU_ASSERT_EQUAL(two.time_ns - one.time_ns, 500000000); /* another zone, half a second later */
    CU_ASSERT_EQUAL(two.event, BH_RECORD_UPDATE);
    bh_arena_fini(&a);
    bh_record_reader_free(r);
}

static size_t pack(const char *text, size_t n, unsigned char *out, size_t cap)
{
    z_stream z = {0};

    CU_ASSERT_EQUAL(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)text;
    z.avail_in = (uInt)n;
    z.next_out = out;
    z.avail_out = (uInt)cap;
    CU_ASSERT_EQUAL(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return cap - z.avail_out;
}

static void test_gzip(void)
{
    static const char one[] = LINE(T1, "Add", "a") "\n", two[] = LINE(T2, "Add", "b") "\n";
    unsigned char out[4096];
    size_t n = pack(one, strlen(one), out, sizeof(out)), m;
    char got[512];

    summary(out, n, got);
    CU_ASSERT_STRING_EQUAL(got, "a ");
    m = pack(two, strlen(two), out + n, sizeof(out) - n);
    summary(out, n + m, got); /* two files, one behind the other */
    CU_ASSERT_STRING_EQUAL(got, "a b ");
    summary(out, n + m - 9, got); /* its end is missing */
    CU_ASSERT_EQUAL(strncmp(got, "a ", 2), 0);
    CU_ASSERT_EQUAL(got[strlen(got) - 1], '~');
    out[n + 15] ^= 0x55; /* damaged in the middle */
    summary(out, n + m, got);
    CU_ASSERT_EQUAL(strncmp(got, "a ", 2), 0);
    memset(out + 2, 0xff, 20);
    summary(out, 22, got);
    CU_ASSERT_STRING_EQUAL(got, "$ ");
}

/* A line of more than BH_RECORD_LINE_MAX, packed small, is thrown away without being kept. */
static void test_long_line(void)
{
    size_t n = BH_RECORD_LINE_MAX * 4, len = strlen(LINE(T1, "Add", "a")), packed;
    char *text = bh_malloc(n + len + 1), got[512];
    unsigned char *out = bh_malloc(n);

    memset(text, 'x', n);
    text[n - 1] = '\n';
    memcpy(text + n, LINE(T1, "Add", "a"), len + 1);
    packed = pack(text, n + len, out, n);
    CU_ASSERT_TRUE(packed < n / 100);
    summary(out, packed, got);
    CU_ASSERT_STRING_EQUAL(got, "!1 a ");
    free(text);
    free(out);
}

static void test_write(void)
{
    struct bh_buf b = {0};
    struct bh_arena a;
    struct bh_json *o;
    char got[512];

    bh_arena_init(&a, 0);
    o = bh_json_new(&a, BH_JSON_OBJECT);
    bh_json_set_str(&a, o, "apiVersion", "v1");
    bh_json_set_str(&a, o, "kind", "Pod");
    bh_json_set_str(&a, bh_json_obj_at(&a, o, "metadata"), "name", "p");
    bh_record_write(&b, INT64_C(1767323045500000000), BH_RECORD_UPDATE, o);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&b),
                           "{\"time\":\"2026-01-02T03:04:05.500000Z\",\"event\":\"Update\","
                           "\"resource\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{"
                           "\"name\":\"p\"}}}\n");
    summary(b.p, b.n, got);
    CU_ASSERT_STRING_EQUAL(got, "p ");
    bh_buf_fini(&b);
    bh_arena_fini(&a);
}

BH_TESTS("simulator/replay/record", {"lines, headers, a torn end", test_lines},
         {"a bad line names itself, the next is read", test_bad_lines},
         {"times with fractions and zones", test_times},
         {"gzip, whole, put together, cut, damaged", test_gzip},
         {"a line without end", test_long_line}, {"what is written can be read", test_write})
