/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/base/test_duration.c - Go's duration text
 */
#include "common/base/opt.h"
#include "tests/unit/harness.h"

#include <errno.h>

static void test_accepted(void)
{
    static const struct {
        const char *text;
        int64_t ns;
    } cases[] = {{"0", 0},
                 {"+0", 0},
                 {"-0", 0},
                 {"5s", 5000000000},
                 {"1h2m3.5s", 3723500000000},
                 {"100ms", 100000000},
                 {"1.5us", 1500},
                 {"1\xc2\xb5s", 1000},
                 {"1\xce\xbcs", 1000},
                 {"-1m", -60000000000},
                 {".5s", 500000000},
                 {"5.s", 5000000000},
                 {"3ns2h", 7200000000003},
                 {"0.000000001s", 1},
                 {"0.3333333333333333333h", 1200000000000},
                 {"9223372036854775807ns", INT64_MAX},
                 {"-9223372036854775808ns", INT64_MIN}};
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        int64_t ns = 42;
        CU_ASSERT_EQUAL(bh_parse_duration_ns(cases[i].text, &ns), 0);
        CU_ASSERT_EQUAL(ns, cases[i].ns);
    }
}

static void test_refused(void)
{
    static const char *const cases[] = {"",         "3",
                                        "-",        "s",
                                        ".",        ".s",
                                        "+.s",      "1x",
                                        "1h ",      " 1h",
                                        "1hm",      "1e3s",
                                        "1S",       "--1s",
                                        "1.5",      "1h-2m",
                                        "1..5s",    "9223372036854775808ns",
                                        "3000000h", "99999999999999999999s",
                                        "\xb5s"};
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        int64_t ns = 42;
        CU_ASSERT_EQUAL(bh_parse_duration_ns(cases[i], &ns), -EINVAL);
        CU_ASSERT_EQUAL(ns, 42);
    }
}

static void test_printed_as_go_does(void)
{
    static const struct {
        int64_t ns;
        const char *text;
    } cases[] = {{0, "0s"},
                 {1, "1ns"},
                 {1100, "1.1\xc2\xb5s"},
                 {2200000, "2.2ms"},
                 {3300000000, "3.3s"},
                 {60000000000, "1m0s"},
                 {245000000000, "4m5s"},
                 {245001000000, "4m5.001s"},
                 {18367001000000, "5h6m7.001s"},
                 {3600000000000, "1h0m0s"},
                 {-90000000000, "-1m30s"},
                 {INT64_MAX, "2562047h47m16.854775807s"},
                 {INT64_MIN, "-2562047h47m16.854775808s"}};
    char out[32];
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        int64_t back = 0;
        bh_format_duration_ns(cases[i].ns, out);
        CU_ASSERT_STRING_EQUAL(out, cases[i].text);
        CU_ASSERT_EQUAL(bh_parse_duration_ns(out, &back), 0);
        CU_ASSERT_EQUAL(back, cases[i].ns);
    }
}

static void test_every_printed_duration_reads_back(void)
{
    struct bh_rand r;
    char out[32];
    bh_rand_seed(&r, 5);
    for (int i = 0; i < 20000; i++) {
        int64_t ns = (int64_t)(bh_rand_u64(&r) >> bh_rand_below(&r, 64)), back = 0;
        bh_format_duration_ns(ns, out);
        CU_ASSERT_EQUAL_FATAL(bh_parse_duration_ns(out, &back), 0);
        CU_ASSERT_EQUAL_FATAL(back, ns);
    }
}

BH_TESTS("common/base/duration", {"what Go accepts", test_accepted},
         {"what Go refuses", test_refused}, {"printed as Go does", test_printed_as_go_does},
         {"every printed duration reads back", test_every_printed_duration_reads_back})
