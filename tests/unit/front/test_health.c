/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/front/test_health.c - the text of health probes, and their numbers
 */
#include "front/health.h"

#include "tests/unit/harness.h"

static void expect(const struct bh_health_check *c, size_t n, const char *const *ex, size_t n_ex,
                   bool verbose, int code, const char *text)
{
    struct bh_buf out = {0};

    CU_ASSERT_EQUAL(bh_health_write("readyz", c, n, ex, n_ex, verbose, &out), code);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&out), text);
    bh_buf_fini(&out);
}

static void test_passes(void)
{
    const struct bh_health_check c[] = {{.name = "a"}, {.name = "b"}};

    expect(c, 2, NULL, 0, false, 200, "ok");
    expect(c, 2, NULL, 0, true, 200, "[+]a ok\n[+]b ok\nreadyz check passed\n");
}

static void test_fails(void)
{
    const struct bh_health_check c[] = {{.name = "a"}, {.name = "b", .why = "a secret"}};

    expect(c, 2, NULL, 0, false, 500,
           "[+]a ok\n[-]b failed: reason withheld\nreadyz check failed\n");
}

static void test_excludes(void)
{
    const struct bh_health_check c[] = {{.name = "a"}, {.name = "b", .why = "no"}};
    const char *const ex[] = {"b", "z", "y\"", "z"};

    expect(c, 2, ex, 1, true, 200, "[+]a ok\n[+]b excluded: ok\nreadyz check passed\n");
    expect(c, 2, ex, 1, false, 200, "ok");
    expect(c, 2, ex, 4, true, 200,
           "[+]a ok\n[+]b excluded: ok\n"
           "warn: some health checks cannot be excluded: no matches for \"y\\\"\",\"z\"\n"
           "readyz check passed\n");
}

static void test_numbers(void)
{
    struct bh_metrics *m = bh_metrics_new();
    struct bh_health *h = bh_health_new(m);
    struct bh_buf out = {0};

    bh_health_observe(h, "ping", "livez", true);
    bh_health_observe(h, "ping", "livez", false);
    bh_health_render(h, &out);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(bh_buf_str(&out), "kubernetes_healthcheck{name=\"ping\",type=\"livez\"} 0\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&out), "kubernetes_healthchecks_total{name=\"ping\","
                                                    "status=\"error\",type=\"livez\"} 1\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&out), "status=\"success\",type=\"livez\"} 1\n"));
    bh_buf_fini(&out);
    bh_health_free(h);
    bh_metrics_free(m);
}

BH_TESTS("front/health", {"all pass", test_passes}, {"one fails", test_fails},
         {"exclusions", test_excludes}, {"numbers", test_numbers})
