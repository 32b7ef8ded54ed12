/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/http/test_head.c - heads of requests, whole, in pieces, and wrong
 */
#include "simulator/http/head.h"
#include "common/base/buf.h"
#include "tests/unit/harness.h"

static const char *field(const struct bh_http_head *h, const char *name)
{
    const struct bh_http_req r = {.fields = h->fields, .n_fields = h->n_fields};

    return bh_http_header(&r, name);
}

static ssize_t read_at_once(const char *text, struct bh_http_head *h)
{
    size_t seen = 0;
    return bh_http_head_read(h, text, strlen(text), &seen);
}

static void test_a_head(void)
{
    static const char text[] =
        "\r\nPOST /a?b=c HTTP/1.1\r\nHost: x\r\nX-Empty:\r\n"
        "X-Blank: \t a b \t\r\nContent-Length: 12\r\nEXPECT: 100-Continue\r\n\r\n"
        "body";
    struct bh_http_head h;
    ssize_t n = read_at_once(text, &h);
    CU_ASSERT_EQUAL_FATAL(n, (ssize_t)(sizeof(text) - 5));
    CU_ASSERT_STRING_EQUAL(h.method, "POST");
    CU_ASSERT_STRING_EQUAL(h.target, "/a?b=c");
    CU_ASSERT_STRING_EQUAL(field(&h, "x-blank"), "a b");
    CU_ASSERT_STRING_EQUAL(field(&h, "X-EMPTY"), "");
    CU_ASSERT_PTR_NULL(field(&h, "X-None"));
    CU_ASSERT_EQUAL(h.body_n, 12);
    CU_ASSERT(h.http11 && h.keep_alive && h.expects_continue && !h.chunked);
    bh_http_head_fini(&h);
}

static void test_in_pieces(void)
{
    static const char text[] = "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n\r\n";
    struct bh_http_head h;
    for (size_t step = 1; step < sizeof(text); step++) {
        size_t seen = 0;
        ssize_t rc = 0;
        for (size_t n = step; rc == 0 && n <= sizeof(text) + step; n += step)
            rc = bh_http_head_read(&h, text, BH_MIN(n, sizeof(text) - 1), &seen);
        CU_ASSERT_EQUAL_FATAL(rc, (ssize_t)sizeof(text) - 1);
        CU_ASSERT_STRING_EQUAL(field(&h, "a"), "b");
        bh_http_head_fini(&h);
    }
}

static void test_connections(void)
{
    static const struct {
        const char *text;
        bool keep_alive, chunked;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", false, false},
        {"GET / HTTP/1.1\r\nHost: x\r\nConnection: x, Close ,y\r\n\r\n", false, false},
        {"GET / HTTP/1.1\r\nHost: x\r\nConnection: closed\r\n\r\n", true, false},
        {"GET / HTTP/1.0\r\n\r\n", false, false},
        {"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n", true, true},
    };
    struct bh_http_head h;
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        CU_ASSERT_FATAL(read_at_once(cases[i].text, &h) > 0);
        CU_ASSERT_EQUAL(h.keep_alive, cases[i].keep_alive);
        CU_ASSERT_EQUAL(h.chunked, cases[i].chunked);
        bh_http_head_fini(&h);
    }
}

static void test_what_is_refused(void)
{
    static const char *const texts[] = {
        "GET / HTTP/1.1\nHost: x\n\n",
        "GET / HTTP/1.1\r\nHost: x\n\r\n",
        "GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
        " GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1 \r\nHost: x\r\n\r\n",
        "GET / HTTP/2.0\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.12\r\nHost: x\r\n\r\n",
        "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /\r\nHost: x\r\n\r\n",
        "GET\r\n\r\n",
        "G(T / HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\n: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nA: b\001\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1, 1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n",
    };
    struct bh_http_head h;
    for (size_t i = 0; i < BH_ARRAY_LEN(texts); i++) {
        ssize_t rc = read_at_once(texts[i], &h);
        if (rc != -400)
            printf("  %zu: %zd\n", i, rc);
        CU_ASSERT_EQUAL(rc, -400);
    }
    static const char nul[] = "GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n";
    size_t seen = 0;
    CU_ASSERT_EQUAL(bh_http_head_read(&h, nul, sizeof(nul) - 1, &seen), -400);
}

static void test_lengths(void)
{
    struct bh_buf b = {0};
    struct bh_http_head h;
    bh_buf_adds(&b, "GET /");
    while (b.n < BH_HTTP_HEAD_MAX + 10)
        bh_buf_addc(&b, 'x');
    CU_ASSERT_EQUAL(read_at_once(b.p, &h), -414);
    bh_buf_reset(&b);
    bh_buf_adds(&b, "GET / HTTP/1.1\r\nHost: x\r\n");
    while (b.n < BH_HTTP_HEAD_MAX + 10)
        bh_buf_adds(&b, "A: b\r\n");
    CU_ASSERT_EQUAL(read_at_once(b.p, &h), -431);
    bh_buf_reset(&b);
    bh_buf_adds(&b, "GET / HTTP/1.1\r\nHost: x\r\n");
    while (b.n < BH_HTTP_HEAD_MAX - 20)
        bh_buf_adds(&b, "A: b\r\n");
    bh_buf_adds(&b, "\r\n");
    CU_ASSERT_FATAL(read_at_once(b.p, &h) == (ssize_t)b.n);
    bh_http_head_fini(&h);
    bh_buf_fini(&b);
    CU_ASSERT_FATAL(read_at_once("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: "
                                 "99999999999999999999999999\r\n\r\n",
                                 &h) > 0);
    CU_ASSERT_EQUAL(h.body_n, SIZE_MAX);
    bh_http_head_fini(&h);
}

BH_TESTS("simulator/http/head", {"a head", test_a_head}, {"in pieces", test_in_pieces},
         {"connections that go on and that end", test_connections},
         {"what is refused", test_what_is_refused}, {"lengths", test_lengths})
