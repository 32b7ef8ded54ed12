/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/base/test_buf.c - growable byte buffer
 */
#include "common/base/buf.h"
#include "tests/unit/harness.h"

#include <math.h>

static void test_empty_is_a_string(void)
{
    struct bh_buf b = {0};
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&b), "");
    bh_buf_reset(&b);
    bh_buf_consume(&b, 0);
    char *taken = bh_buf_take(&b);
    CU_ASSERT_STRING_EQUAL(taken, "");
    free(taken);
    bh_buf_add(&b, NULL, 0);
    CU_ASSERT(b.p && b.p[0] == '\0');
    bh_buf_fini(&b);
}

static void test_every_step_is_terminated(void)
{
    struct bh_buf b = {0};
    for (int i = 0; i < 3000; i++) {
        bh_buf_addc(&b, (char)('a' + i % 26));
        CU_ASSERT_FATAL(b.n < b.cap && b.p[b.n] == '\0');
    }
    CU_ASSERT_EQUAL(strlen(b.p), 3000);
    CU_ASSERT_EQUAL(b.p[2999], 'a' + 2999 % 26);
    bh_buf_fini(&b);
}

static void test_format_longer_than_the_room(void)
{
    struct bh_buf b = {0};
    bh_buf_adds(&b, "x");
    for (int n = 0; n < 300; n++) {
        bh_buf_reset(&b);
        bh_buf_addf(&b, "%*d", n, 7);
        CU_ASSERT_EQUAL(b.n, (size_t)BH_MAX(n, 1));
    }
    bh_buf_fini(&b);
}

static void test_numbers(void)
{
    struct bh_buf b = {0};
    bh_buf_addi64(&b, 0), bh_buf_addc(&b, ' ');
    bh_buf_addi64(&b, INT64_MIN), bh_buf_addc(&b, ' ');
    bh_buf_addi64(&b, INT64_MAX), bh_buf_addc(&b, ' ');
    bh_buf_addi64(&b, -10);
    CU_ASSERT_STRING_EQUAL(b.p, "0 -9223372036854775808 9223372036854775807 -10");
    bh_buf_fini(&b);
}

static void test_doubles_are_shortest_and_read_back(void)
{
    static const struct {
        double v;
        const char *text;
    } cases[] = {{0, "0"},
                 {0.1, "0.1"},
                 {1, "1"},
                 {-2.5, "-2.5"},
                 {1e21, "1e+21"},
                 {0.001, "0.001"},
                 {1e-9, "1e-09"},
                 {123456789, "123456789"},
                 {INFINITY, "+Inf"},
                 {-INFINITY, "-Inf"},
                 {NAN, "NaN"},
                 {-0.0, "-0"},
                 {1.0 / 3, "0.3333333333333333"}};
    struct bh_buf b = {0};
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        bh_buf_reset(&b);
        bh_buf_addf64(&b, cases[i].v);
        CU_ASSERT_STRING_EQUAL(b.p, cases[i].text);
    }
    struct bh_rand r;
    bh_rand_seed(&r, 3);
    for (int i = 0; i < 2000; i++) {
        double v = (bh_rand_unit(&r) - 0.5) * pow(10, (double)bh_rand_below(&r, 40) - 20);
        bh_buf_reset(&b);
        bh_buf_addf64(&b, v);
        CU_ASSERT_EQUAL(strtod(b.p, NULL), v);
    }
    bh_buf_fini(&b);
}

static const char *json(const char *s, size_t n)
{
    static struct bh_buf b;
    bh_buf_reset(&b);
    bh_buf_add_json_str(&b, s, n);
    if (b.n > 1 << 16)
        bh_buf_fini(&b);
    return bh_buf_str(&b);
}
#define JSON(lit) json(lit, sizeof(lit) - 1)

static void test_json_escapes(void)
{
    CU_ASSERT_STRING_EQUAL(JSON(""), "\"\"");
    CU_ASSERT_STRING_EQUAL(JSON("plain text/<&>"), "\"plain text/<&>\"");
    CU_ASSERT_STRING_EQUAL(JSON("\"\\\b\f\n\r\t"), "\"\\\"\\\\\\b\\f\\n\\r\\t\"");
    CU_ASSERT_STRING_EQUAL(JSON("a\0b\x01\x1f\x7f"), "\"a\\u0000b\\u0001\\u001f\x7f\"");
}

static void test_json_keeps_valid_utf8(void)
{
    CU_ASSERT_STRING_EQUAL(JSON("gr\xc3\xbc\xc3\x9f"), "\"gr\xc3\xbc\xc3\x9f\"");
    CU_ASSERT_STRING_EQUAL(JSON("\xe2\x82\xac\xf0\x9f\x98\x80"),
                           "\"\xe2\x82\xac\xf0\x9f\x98\x80\"");
    CU_ASSERT_STRING_EQUAL(JSON("\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf"),
                           "\"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\"");
}

static void test_json_replaces_invalid_utf8(void)
{
#define BAD "\xef\xbf\xbd"
    CU_ASSERT_STRING_EQUAL(JSON("\x80"), "\"" BAD "\"");
    CU_ASSERT_STRING_EQUAL(JSON("\xc3"), "\"" BAD "\"");                 /* cut at the end */
    CU_ASSERT_STRING_EQUAL(JSON("\xc0\xaf"), "\"" BAD BAD "\"");         /* overlong '/' */
    CU_ASSERT_STRING_EQUAL(JSON("\xe0\x80\xaf"), "\"" BAD BAD BAD "\""); /* overlong */
    CU_ASSERT_STRING_EQUAL(JSON("\xed\xa0\x80"), "\"" BAD BAD BAD "\""); /* surrogate */
    CU_ASSERT_STRING_EQUAL(JSON("\xf4\x90\x80\x80"), "\"" BAD BAD BAD BAD "\"");
    CU_ASSERT_STRING_EQUAL(JSON("\xff"
                                "a"),
                           "\"" BAD "a\"");
    CU_ASSERT_STRING_EQUAL(JSON("\xc3\"x"), "\"" BAD "\\\"x\"");
}

/* Texts are looked at in words: what a byte becomes does not depend on where it stands. */
static void test_json_bytes_in_any_place(void)
{
    static const char others[] = "xxxxxxxxxxxxxxxxxxxx";
    struct bh_buf want = {0};
    char text[20];

    for (int c = 0; c < 256; c++)
        for (size_t at = 0; at < sizeof(text); at++) {
            memcpy(text, others, sizeof(text));
            text[at] = (char)c;
            bh_buf_reset(&want);
            bh_buf_adds(&want, json(&text[at], 1));
            want.n--; /* the quote at the end */
            bh_buf_add(&want, others, sizeof(text) - 1 - at);
            bh_buf_addc(&want, '"');
            const char *got = json(text, sizeof(text));
            CU_ASSERT_EQUAL(strncmp(got + 1, others, at), 0);
            CU_ASSERT_STRING_EQUAL(got + 1 + at, want.p + 1);
        }
    bh_buf_fini(&want);
}

static void test_json_from_a_pattern(void)
{
    const char *none = getenv("BERTH_NOT_SET");
    struct bh_buf b = {0};

    bh_buf_add_json(&b, "{\"a\":%s,\"b\":%.*s,\"c\":[%d,%u,%lld,%llu],%s:%s}", "x\"y", 2, "abc", -1,
                    UINT32_MAX, (long long)INT64_MIN, (unsigned long long)UINT64_MAX, "d", none);
    CU_ASSERT_STRING_EQUAL(b.p, "{\"a\":\"x\\\"y\",\"b\":\"ab\",\"c\":[-1,4294967295,"
                                "-9223372036854775808,18446744073709551615],\"d\":\"\"}");
    bh_buf_fini(&b);
}

static void test_consume_and_take(void)
{
    struct bh_buf b = {0};
    bh_buf_adds(&b, "hello world");
    bh_buf_consume(&b, 6);
    CU_ASSERT_STRING_EQUAL(b.p, "world");
    bh_buf_consume(&b, 5);
    CU_ASSERT_EQUAL(b.n, 0);
    bh_buf_adds(&b, "again");
    char *p = bh_buf_take(&b);
    CU_ASSERT_STRING_EQUAL(p, "again");
    CU_ASSERT(!b.p && !b.n && !b.cap);
    free(p);
}

BH_TESTS("common/base/buf", {"the empty buffer is a string", test_empty_is_a_string},
         {"every step is terminated", test_every_step_is_terminated},
         {"a format may be longer than the room", test_format_longer_than_the_room},
         {"integers at their limits", test_numbers},
         {"doubles are shortest and read back", test_doubles_are_shortest_and_read_back},
         {"JSON strings are escaped", test_json_escapes},
         {"JSON strings keep valid UTF-8", test_json_keeps_valid_utf8},
         {"JSON strings replace invalid UTF-8", test_json_replaces_invalid_utf8},
         {"JSON strings, each byte in each place", test_json_bytes_in_any_place},
         {"JSON from a pattern", test_json_from_a_pattern},
         {"consume and take", test_consume_and_take})
