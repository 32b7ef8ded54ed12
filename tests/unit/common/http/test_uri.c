/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/http/test_uri.c - a request target, decoded
 */
#include "common/http/uri.h"
#include "tests/unit/harness.h"

#include <errno.h>

static struct bh_http_uri u;

static const char *param(size_t i)
{
    static char text[256];
    if (i >= u.n_params)
        return "none";
    snprintf(text, sizeof(text), "%s=%s", u.params[i].name, u.params[i].value);
    return text;
}

static void test_path_and_query(void)
{
    CU_ASSERT_EQUAL(bh_http_uri_parse("/api/v1/pods?watch=1&limit=500", &u), 0);
    CU_ASSERT_STRING_EQUAL(u.path, "/api/v1/pods");
    CU_ASSERT_EQUAL(u.n_params, 2);
    CU_ASSERT_STRING_EQUAL(param(0), "watch=1");
    CU_ASSERT_STRING_EQUAL(param(1), "limit=500");
    bh_http_uri_fini(&u);
}

static void test_escapes(void)
{
    CU_ASSERT_EQUAL(
        bh_http_uri_parse("/a%2Fb+c%20d?l=a%3Db%2Cc+in+%28x%29&p=1%2b1&%6Eame=%C3%BC", &u), 0);
    CU_ASSERT_STRING_EQUAL(u.path, "/a/b+c d"); /* '+' is itself in a path */
    CU_ASSERT_STRING_EQUAL(param(0), "l=a=b,c in (x)");
    CU_ASSERT_STRING_EQUAL(param(1), "p=1+1");
    CU_ASSERT_STRING_EQUAL(param(2), "name=\xc3\xbc");
    bh_http_uri_fini(&u);
}

static void test_odd_queries(void)
{
    CU_ASSERT_EQUAL(bh_http_uri_parse("/x?verbose&a=&&=v&b=c=d&q=?", &u), 0);
    CU_ASSERT_EQUAL(u.n_params, 5);
    CU_ASSERT_STRING_EQUAL(param(0), "verbose=");
    CU_ASSERT_STRING_EQUAL(param(1), "a=");
    CU_ASSERT_STRING_EQUAL(param(2), "=v");
    CU_ASSERT_STRING_EQUAL(param(3), "b=c=d");
    CU_ASSERT_STRING_EQUAL(param(4), "q=?");
    bh_http_uri_fini(&u);
    CU_ASSERT_EQUAL(bh_http_uri_parse("/x?", &u), 0);
    CU_ASSERT_EQUAL(u.n_params, 0);
    bh_http_uri_fini(&u);
    CU_ASSERT_EQUAL(bh_http_uri_parse("", &u), 0);
    CU_ASSERT_STRING_EQUAL(u.path, "");
    bh_http_uri_fini(&u);
}

static void test_malformed_escapes(void)
{
    static const char *const paths[] = {"/%", "/%4", "/%zz", "/%4g", "/a%00b", "/%%20"};
    for (size_t i = 0; i < BH_ARRAY_LEN(paths); i++) {
        CU_ASSERT_EQUAL(bh_http_uri_parse(paths[i], &u), -EINVAL);
        CU_ASSERT_PTR_NULL(u.text);
    }
    CU_ASSERT_EQUAL(bh_http_uri_parse("/x?a=%zz&b=%00&%=c&d=1%", &u), 0); /* each pair is dropped */
    CU_ASSERT_EQUAL(u.n_params, 0);
    bh_http_uri_fini(&u);
    CU_ASSERT_EQUAL(bh_http_uri_parse("/x?a=%4&good=1", &u), 0);
    CU_ASSERT_EQUAL(u.n_params, 1);
    CU_ASSERT_STRING_EQUAL(param(0), "good=1");
    bh_http_uri_fini(&u);
    bh_http_uri_fini(&u);
}

BH_TESTS("common/http/uri", {"path and query", test_path_and_query},
         {"escapes and plus signs", test_escapes}, {"odd queries", test_odd_queries},
         {"malformed escapes", test_malformed_escapes})
