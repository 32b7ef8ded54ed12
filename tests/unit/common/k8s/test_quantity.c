/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/k8s/test_quantity.c - quantities and times
 */
#include "common/k8s/quantity.h"
#include "tests/unit/harness.h"

#define GI ((int64_t)1 << 30)

struct row {
    const char *text;
    int64_t value, milli;
};

static bh_nano parse(const char *s)
{
    bh_nano q = 0;
    CU_ASSERT_EQUAL(bh_quantity_parse(s, strlen(s), &q), 0);
    return q;
}

static void check_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bh_nano q = parse(rows[i].text);
        if (bh_quantity_value(q) != rows[i].value || bh_quantity_milli_value(q) != rows[i].milli)
            printf("  %s: value %lld, milli %lld\n", rows[i].text, (long long)bh_quantity_value(q),
                   (long long)bh_quantity_milli_value(q));
        CU_ASSERT_EQUAL(bh_quantity_value(q), rows[i].value);
        CU_ASSERT_EQUAL(bh_quantity_milli_value(q), rows[i].milli);
    }
}

static void test_table(void)
{
    static const struct row rows[] = {
        {"100m", 1, 100},
        {"0.1", 1, 100},
        {"0.0001", 1, 1},
        {"1.0001m", 1, 2},
        {"1u", 1, 1},
        {"1n", 1, 1},
        {"1.5", 2, 1500},
        {"1k", 1000, 1000000},
        {"1.5Gi", 1610612736, 1610612736000},
        {"0.3Gi", 322122548, 322122547200},
        {"0.1Ki", 103, 102400},
        {"0.5Ki", 512, 512000},
        {"1e-2", 1, 10},
        {"1E+2", 100, 100000},
        {"-5", -5, -5000},
        /* on either side of what 64 bits hold: digits, and nano-units shifted */
        {"123456789012.345678", 123456789013, 123456789012346},
        {"123456789012.3456789", 123456789013, 123456789012346},
        {"70000000000.000000001", 70000000001, 70000000000001},
        {"70000000000.000000512", 70000000001, 70000000000001},
        {"5000000000000.000000001", 5000000000001, 5000000000000001},
        {"999999999999999999", 999999999999999999, INT64_MAX},
        {"4722366482869.645213696", 4722366482870, 4722366482869646}, /* 2^72 nano-units */
        {"9000000000000.000000001", 9000000000001, 9000000000000001},
        {"9444732965739.290427392", 9444732965740, 9444732965739291}, /* 2^73 */
        {"8191Pi", 8191LL << 50, INT64_MAX},
    };
    check_rows(rows, BH_ARRAY_LEN(rows));
}

static void test_suffixes(void)
{
    static const struct row rows[] = {
        {"1M", 1000000, 1000000000},
        {"1G", 1000000000, 1000000000000},
        {"1T", 1000000000000, 1000000000000000},
        {"1P", 1000000000000000, 1000000000000000000},
        {"1Mi", 1 << 20, (int64_t)(1 << 20) * 1000},
        {"64Gi", 64 * GI, 64 * GI * 1000},
        {"1Ti", 1024 * GI, 1024 * GI * 1000},
        {"1Pi", 1024 * 1024 * GI, 1024 * 1024 * GI * 1000},
        {"1E3", 1000, 1000000},
        {"1e3", 1000, 1000000},
        {"12e-4", 1, 2},
        {"000500m", 1, 500},
        {"+3", 3, 3000},
        {"5.", 5, 5000},
        {".5", 1, 500},
        {"1.G", 1000000000, 1000000000000},
        {"3e-10", 1, 1}, /* below a nano-unit: rounded up to one */
        {"-0.5", -1, -500},
        {"-1.0001m", -1, -2},
    };
    check_rows(rows, BH_ARRAY_LEN(rows));
    CU_ASSERT(parse("3e-10") == 1);
    CU_ASSERT(parse("1n") == 1);
}

static void test_no_digits_is_zero(void)
{
    static const char *const texts[] = {".", "+", "-", "m", "Ki", "e3", "0", "0000", "-0"};
    for (size_t i = 0; i < BH_ARRAY_LEN(texts); i++)
        CU_ASSERT(parse(texts[i]) == 0);
}

static void test_rejects(void)
{
    static const char *const texts[] = {
        "",    "K",  "1K",    "ki",  "1ki",   "1e",  "1e+",  "1mm", "Eii", " 1",   "1 ",  "1 m",
        "--1", "1i", "1.2.3", "0x1", "1e1.5", "NaN", "1Ki5", "1m-", "1,5", "\x80", "1n5", "1e3m"};
    for (size_t i = 0; i < BH_ARRAY_LEN(texts); i++) {
        bh_nano q = 77;
        int rc = bh_quantity_parse(texts[i], strlen(texts[i]), &q);
        if (!rc)
            printf("  accepted \"%s\"\n", texts[i]);
        CU_ASSERT_NOT_EQUAL(rc, 0);
        CU_ASSERT(q == 77);
    }
    bh_nano q;
    CU_ASSERT_NOT_EQUAL(bh_quantity_parse("1\0", 2, &q), 0);
}

static void test_saturates(void)
{
    CU_ASSERT_EQUAL(bh_quantity_value(parse("8Ei")), INT64_MAX);
    CU_ASSERT_EQUAL(bh_quantity_value(parse("16Ei")), INT64_MAX);
    CU_ASSERT(parse("8Ei") == parse("999999Ei"));
    CU_ASSERT_EQUAL(bh_quantity_value(parse("7Ei")), 7LL << 60);
    CU_ASSERT_EQUAL(bh_quantity_milli_value(parse("1E")), INT64_MAX);
    CU_ASSERT_EQUAL(bh_quantity_value(parse("10E")), INT64_MAX);
    CU_ASSERT_EQUAL(bh_quantity_value(parse("9223372036854775808")), INT64_MAX);
    CU_ASSERT_EQUAL(bh_quantity_milli_value(parse("9223372036854775807")), INT64_MAX);
    CU_ASSERT_EQUAL(bh_quantity_value(parse("-1e999999999999")), INT64_MIN);
    CU_ASSERT(parse("1e99999999999999999999") == BH_NANO_MAX);
    CU_ASSERT(parse("1e-99999999999999999999") == 1);
    CU_ASSERT(parse("0e99999999999999999999") == 0);
}

static void test_long_numbers_stay_exact(void)
{
    /* 40 digits before the point, 60 behind: kept digits and the rest agree on rounding. */
    CU_ASSERT(parse("1.0000000000000000000000000000000000000000000000000000000001") ==
              (bh_nano)1000000001);
    CU_ASSERT(parse("1.0000000000000000000000000000000000000000000000000000000000") ==
              (bh_nano)1000000000);
    CU_ASSERT(parse("0.000000000000000000000000000000000000000000000000000000000000000000001") ==
              1);
    CU_ASSERT(parse("10000000000000000000000000000000000000000e-40") == (bh_nano)1000000000);
    CU_ASSERT(parse("0.00000000000000000000000001Ki") == 1);
    CU_ASSERT(parse("1.00000000000000000000000000000Ki") == (bh_nano)1024 * 1000000000);
    CU_ASSERT(parse("0.1234567891234Ei") == (bh_nano)142335987070080548 * 1000000000 + 739804981);
    char digits[100001];
    memset(digits, '9', sizeof(digits));
    bh_nano q;
    CU_ASSERT_EQUAL(bh_quantity_parse(digits, sizeof(digits), &q), 0);
    CU_ASSERT(q == BH_NANO_MAX);
}

static void format_is(const char *in, bool binary, const char *out)
{
    struct bh_buf b = {0};
    bh_quantity_format(&b, parse(in), binary);
    if (strcmp(bh_buf_str(&b), out) != 0)
        printf("  %s -> %s, wanted %s\n", in, bh_buf_str(&b), out);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&b), out);
    bh_buf_fini(&b);
}

static void test_canonical_text(void)
{
    format_is("1.5", false, "1500m");
    format_is("2000m", false, "2");
    format_is("0.0001", false, "100u");
    format_is("1000", false, "1k");
    format_is("1500000", false, "1500k");
    format_is("0", true, "0");
    format_is("-0.5", false, "-500m");
    format_is("65536Mi", true, "64Gi");
    format_is("1025", true, "1025");
    format_is("1000", true, "1k"); /* below 1024 the decimal form is used */
    format_is("1023", true, "1023");
    format_is("1536", true, "1536");
    format_is("1.5Ki", true, "1536");
    format_is("1e18", false, "1E");
    format_is("1e21", false, "1000E");
    format_is("7Ei", true, "7Ei");
    format_is("2048.5", true, "2048500m");
    format_is("8E63", false, "85070591730234615865843651857942052863n"); /* saturated */
    format_is("85070591730234615865843651857942052863n", false,
              "85070591730234615865843651857942052863n");
}

static void test_format_and_parse_agree(void)
{
    struct bh_rand r;
    bh_rand_seed(&r, 42);
    for (int i = 0; i < 20000; i++) {
        bh_nano q = (bh_nano)(bh_rand_u64(&r) >> bh_rand_below(&r, 64)) *
                    (bh_nano)(1 + bh_rand_below(&r, 1000000000));
        if (i % 3 == 0)
            q = (bh_nano)(int64_t)(bh_rand_u64(&r) >> (2 + bh_rand_below(&r, 60))) * 1000000000;
        if (i % 2)
            q = -q;
        struct bh_buf b = {0};
        bh_quantity_format(&b, q, i % 5 == 0);
        bh_nano again = 0;
        CU_ASSERT_EQUAL(bh_quantity_parse(b.p, b.n, &again), 0);
        CU_ASSERT(again == q);
        bh_buf_fini(&b);
    }
}

static void time_is(const char *s, int64_t want_s, int32_t want_ns)
{
    int64_t t = -1;
    int32_t ns = -1;
    CU_ASSERT_EQUAL(bh_time_parse(s, strlen(s), &t, &ns), 0);
    CU_ASSERT_EQUAL(t, want_s);
    CU_ASSERT_EQUAL(ns, want_ns);
}

static void test_times(void)
{
    time_is("1970-01-01T00:00:00Z", 0, 0);
    time_is("2026-01-01T00:00:18Z", 1767225618, 0);
    time_is("2000-02-29T12:30:15Z", 951827415, 0);
    time_is("1969-12-31T23:59:59Z", -1, 0);
    time_is("0001-01-01T00:00:00Z", -62135596800, 0);
    time_is("2026-01-01T02:00:18+02:00", 1767225618, 0);
    time_is("2025-12-31T18:30:18-05:30", 1767225618, 0);
    time_is("2026-01-01T00:00:18.5Z", 1767225618, 500000000);
    time_is("2026-01-01T00:00:18.123456789123Z", 1767225618, 123456789);
    time_is("9999-12-31T23:59:59Z", 253402300799, 0);
}

static void test_bad_times(void)
{
    static const char *const texts[] = {
        "",
        "2026-01-01",
        "2026-01-01T00:00:18",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z",
        "2026-01-01T00:00:60Z",
        "2026-01-01T00:00:00.Z",
        "2026-01-01t00:00:00Z",
        "2026-01-01T00:00:00Zx",
        "2026-01-01T00:00:00+2:00",
        "2026-01-01T00:00:00+02:60",
        "-026-01-01T00:00:00Z",
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(texts); i++) {
        int64_t s;
        int32_t ns;
        if (bh_time_parse(texts[i], strlen(texts[i]), &s, &ns) == 0)
            printf("  accepted \"%s\"\n", texts[i]);
        CU_ASSERT_NOT_EQUAL(bh_time_parse(texts[i], strlen(texts[i]), &s, &ns), 0);
    }
}

static void test_times_in_ns(void)
{
    static const struct {
        const char *text;
        int rc;
        int64_t ns;
    } cases[] = {
        {"1970-01-01T00:00:00Z", 0, 0},
        {"1969-12-31T23:59:59.5Z", 0, -500000000},
        {"2026-01-01T01:30:00.001234+01:30", 0, 1767225600001234000},
        {"2262-04-11T23:47:16.854775807Z", 0, INT64_MAX},
        {"2262-04-11T23:47:16.854775808Z", -ERANGE, INT64_MAX},
        {"9999-12-31T23:59:59Z", -ERANGE, INT64_MAX},
        {"0001-01-01T00:00:00Z", -ERANGE, INT64_MIN},
        {"2026-02-31T00:00:00Z", -EINVAL, 7},
        {"2026-01-01T00:00:00", -EINVAL, 7},
        {"2026-01-01T00:00:00Z and more", -EINVAL, 7},
        {"yesterday", -EINVAL, 7},
        {NULL, -EINVAL, 7},
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        int64_t ns = 7;
        CU_ASSERT_EQUAL(bh_time_parse_ns(cases[i].text, &ns), cases[i].rc);
        CU_ASSERT_EQUAL(ns, cases[i].ns);
    }
}

static void test_time_text(void)
{
    char out[40];
    bh_time_format(out, 1767225618);
    CU_ASSERT_STRING_EQUAL(out, "2026-01-01T00:00:18Z");
    bh_time_format(out, -1);
    CU_ASSERT_STRING_EQUAL(out, "1969-12-31T23:59:59Z");
    bh_time_format(out, INT64_MAX);
    CU_ASSERT_STRING_EQUAL(out, "9999-12-31T23:59:59Z");
    bh_time_format(out, INT64_MIN);
    CU_ASSERT_STRING_EQUAL(out, "0001-01-01T00:00:00Z");
    bh_time_format_micro(out, 1767225618, 123456789);
    CU_ASSERT_STRING_EQUAL(out, "2026-01-01T00:00:18.123456Z");
    bh_time_format_micro_ns(out, 1767225600001234567);
    CU_ASSERT_STRING_EQUAL(out, "2026-01-01T00:00:00.001234Z");
    bh_time_format_micro_ns(out, -1);
    CU_ASSERT_STRING_EQUAL(out, "1969-12-31T23:59:59.999999Z");
    bh_time_format_ns(out, -1);
    CU_ASSERT_STRING_EQUAL(out, "1969-12-31T23:59:59Z");
    bh_time_format_micro(out, 0, -5);
    CU_ASSERT_STRING_EQUAL(out, "1970-01-01T00:00:00.000000Z");
    for (int64_t day = -720000; day < 2900000; day += 97) {
        int64_t s, want = day * 86400 + 3661;
        int32_t ns;
        if (want < -62135596800)
            continue;
        bh_time_format(out, want);
        CU_ASSERT_EQUAL(bh_time_parse(out, strlen(out), &s, &ns), 0);
        CU_ASSERT_EQUAL(s, want);
    }
}

BH_TESTS("common/k8s/quantity", {"the documented table of texts and values", test_table},
         {"every suffix and odd spelling", test_suffixes},
         {"a number without digits is zero", test_no_digits_is_zero},
         {"garbage is rejected and leaves the result alone", test_rejects},
         {"values beyond int64 saturate", test_saturates},
         {"very long numbers stay exact to the nano-unit", test_long_numbers_stay_exact},
         {"canonical text", test_canonical_text},
         {"formatting and parsing agree on random values", test_format_and_parse_agree},
         {"RFC 3339 times", test_times}, {"malformed times are rejected", test_bad_times},
         {"RFC 3339 times", test_times}, {"times as nanoseconds", test_times_in_ns},
         {"time text, clamped to the years 1 to 9999", test_time_text}, )
