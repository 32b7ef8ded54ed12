/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/http/test_answer.c - answers that arrive in pieces of any size
 */
#include "simulator/http/answer.h"
#include "tests/unit/harness.h"

#include <errno.h>

#define BODY_MAX 1000

/* In pieces of step bytes, with another answer behind it that is none of its business. */
static void arrives(const char *text, size_t step, int code, const char *body)
{
    struct bh_http_answer a = {.code = 0};
    const size_t whole = strlen(text);
    BH_CLEANUP(bh_freep) char *all = bh_asprintf("%sHTTP/1.1 500 Other\r\n", text);
    ssize_t took = 0;
    size_t n = 0;

    bh_http_answer_reset(&a);
    while (took == 0 && n < strlen(all)) {
        n = BH_MIN(n + step, strlen(all));
        took = bh_http_answer_take(&a, all, n, BODY_MAX);
        CU_ASSERT_EQUAL(took != 0, n >= whole); /* at the first byte that it is whole with */
    }
    CU_ASSERT_EQUAL(took, (ssize_t)whole);
    CU_ASSERT_EQUAL(a.code, code);
    CU_ASSERT(a.body.n == strlen(body) && memcmp(a.body.p, body, a.body.n) == 0);
    bh_http_answer_fini(&a);
}

static void in_all_pieces(const char *text, int code, const char *body)
{
    for (size_t step = 1; step <= strlen(text) + 1; step++)
        arrives(text, step, code, body);
}

static void test_length(void)
{
    in_all_pieces("HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello", 201, "hello");
    in_all_pieces("HTTP/1.1 200 OK\r\nX: \r\r\r\nContent-Length: 0\r\n\r\n", 200, "");
}

static void test_chunks(void)
{
    in_all_pieces("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
                  200, "hello");
}

static void test_no_body(void)
{
    in_all_pieces("HTTP/1.1 204 No Content\r\n\r\n", 204, "");
}

static ssize_t take(const char *text)
{
    struct bh_http_answer a = {.code = 0};
    bh_http_answer_reset(&a);
    ssize_t rc = bh_http_answer_take(&a, text, strlen(text), BODY_MAX);
    bh_http_answer_fini(&a);
    return rc;
}

/* The bytes before it, which the caller has used up, are none of it. */
static void test_behind_another(void)
{
    static const char text[] = "\r\n\r\n";
    struct bh_http_answer a = {.code = 0};
    bh_http_answer_reset(&a);
    CU_ASSERT_EQUAL(bh_http_answer_take(&a, text + 3, 1, BODY_MAX), 0);
    bh_http_answer_fini(&a);
}

static void test_what_is_none(void)
{
    CU_ASSERT_EQUAL(take("HTTP/1.1 200 OK\r\n\r\n"), -EBADMSG); /* where does it end? */
    CU_ASSERT_EQUAL(
        take("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
        -EBADMSG);
    CU_ASSERT_EQUAL(take("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"), -EBADMSG);
    CU_ASSERT_EQUAL(take("HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n"), -EMSGSIZE);
}

BH_TESTS("simulator/http/answer", {"a body of a length, in pieces", test_length},
         {"a body of chunks, in pieces", test_chunks}, {"no body, in pieces", test_no_body},
         {"behind another one", test_behind_another}, {"what is no answer", test_what_is_none})
