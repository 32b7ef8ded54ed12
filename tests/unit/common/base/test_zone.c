/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/base/test_zone.c - what clocks show at a place; the expected figures are those
 * of date(1) with TZ set
 */
#include "common/base/zone.h"
#include "tests/unit/harness.h"

#include <errno.h>
#include <time.h>

static int64_t at(int year, int month, int day, int hour)
{
    struct tm t = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day, .tm_hour = hour};

    return (int64_t)timegm(&t);
}

static void check_offset(const char *place, int64_t when, int32_t want)
{
    struct bh_zone z;
    struct bh_err err = {{0}};

    CU_ASSERT_EQUAL_FATAL(bh_zone_load(&z, place, &err), 0);
    int32_t got = bh_zone_offset(&z, when);
    if (got != want)
        fprintf(stderr, "%s at %lld: %d, want %d\n", place, (long long)when, got, want);
    CU_ASSERT_EQUAL(got, want);
    bh_zone_fini(&z);
}

static void test_places(void)
{
    check_offset("", at(2026, 7, 1, 0), 0);
    check_offset("UTC", at(2026, 7, 1, 0), 0);
    check_offset("Europe/Berlin", at(2026, 1, 1, 0), 3600);
    check_offset("Europe/Berlin", at(2026, 7, 1, 0), 7200);
    check_offset("Europe/Berlin", at(2026, 3, 29, 1) - 1, 3600);
    check_offset("Europe/Berlin", at(2026, 3, 29, 1), 7200);
    check_offset("Europe/Berlin", at(2026, 10, 25, 1) - 1, 7200);
    check_offset("Europe/Berlin", at(2026, 10, 25, 1), 3600);
    check_offset("Europe/Berlin", at(1800, 1, 1, 0), 3208); /* before there was such a thing */
    check_offset("Asia/Kolkata", at(2026, 1, 1, 0), 19800);
    check_offset("America/St_Johns", at(1980, 1, 1, 0), -12600);
}

/* What no file lists: the rule at its end counts. */
static void test_far_future(void)
{
    check_offset("Europe/Berlin", at(2100, 7, 1, 0), 7200);
    check_offset("Europe/Berlin", at(2100, 12, 1, 0), 3600);
    check_offset("Europe/Berlin", at(2100, 3, 28, 1) - 1, 3600);
    check_offset("Europe/Berlin", at(2100, 3, 28, 1), 7200);
    check_offset("Australia/Sydney", at(2100, 1, 1, 0), 39600); /* summer begins in October */
    check_offset("Australia/Sydney", at(2100, 7, 1, 0), 36000);
    check_offset("America/New_York", at(2100, 3, 14, 7) - 1, -18000);
    check_offset("America/New_York", at(2100, 3, 14, 7), -14400);
    check_offset("Europe/Dublin", at(2100, 7, 1, 0), 3600); /* "IST-1GMT0,M10.5.0,M3.5.0/1" */
    check_offset("Europe/Dublin", at(2100, 1, 1, 0), 0);
    check_offset("Asia/Kolkata", at(2100, 1, 1, 0), 19800);
    check_offset("America/Sao_Paulo", at(2100, 1, 1, 0), -10800); /* "<-03>3" */
    check_offset("Asia/Gaza", at(2100, 1, 1, 0), 7200);           /* "EET-2EEST,M3.4.4/50,..." */
}

static void test_unknown(void)
{
    static const char *const bad[] = {"Europe/Berlim", "Europe", "zone.tab", "CEST",
                                      "europe/berlin "};
    static const char *const outside[] = {"/etc/passwd", "../zoneinfo/UTC", "a/../UTC", "\\x"};
    struct bh_zone z;

    for (size_t i = 0; i < BH_ARRAY_LEN(bad); i++) {
        struct bh_err err = {{0}};
        char want[64];
        snprintf(want, sizeof(want), "unknown time zone %s", bad[i]);
        CU_ASSERT_EQUAL(bh_zone_load(&z, bad[i], &err), -ENOENT);
        CU_ASSERT_STRING_EQUAL(err.msg, want);
        CU_ASSERT_PTR_NULL(z.file);
    }
    for (size_t i = 0; i < BH_ARRAY_LEN(outside); i++) {
        struct bh_err err = {{0}};
        CU_ASSERT_EQUAL(bh_zone_load(&z, outside[i], &err), -EINVAL);
        CU_ASSERT_STRING_EQUAL(err.msg, "time: invalid location name");
    }
}

BH_TESTS("common/base/zone", {"clocks at places", test_places},
         {"far in the future", test_far_future}, {"names that are none", test_unknown})
