/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_http_head.c - the head of a request, and of an answer, with any bytes
 *
 * Beyond not crashing: what comes in two pieces is read as what comes at once.
 */
#include "simulator/http/answer.h"
#include "simulator/http/head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_head(const char *p, size_t n)
{
    for (size_t cut = 0; cut <= n; cut += n / 3 + 1) {
        struct bh_http_head h;
        size_t seen = 0, once = 0;
        ssize_t whole = bh_http_head_read(&h, p, n, &once);
        if (whole > 0) {
            bh_assert((size_t)whole <= n && *h.method && *h.target);
            bh_http_head_fini(&h);
        }
        ssize_t rc = bh_http_head_read(&h, p, cut, &seen);
        if (rc == 0)
            rc = bh_http_head_read(&h, p, n, &seen);
        if (rc > 0)
            bh_http_head_fini(&h);
        bh_assert(rc == whole || rc < 0); /* a piece can be refused for what is in it */
    }
}

static void check_answer(const char *p, size_t n)
{
    for (size_t cut = 0; cut <= n; cut += n / 3 + 1) {
        struct bh_http_answer a = {0}, b = {0};
        bh_http_answer_reset(&a);
        bh_http_answer_reset(&b);
        ssize_t whole = bh_http_answer_take(&a, p, n, 1 << 16);
        ssize_t rc = bh_http_answer_take(&b, p, cut, 1 << 16);
        if (rc == 0)
            rc = bh_http_answer_take(&b, p, n, 1 << 16);
        bh_assert(rc == whole || rc < 0);
        if (rc > 0 && whole > 0)
            bh_assert(a.code == b.code && bh_str_eq(a.body, b.body));
        bh_http_answer_fini(&a);
        bh_http_answer_fini(&b);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *p = size ? bh_memdup(data, size) : NULL; /* exact, so that a byte too far is seen */

    if (p) {
        check_head(p, size);
        check_answer(p, size);
    }
    free(p);
    return 0;
}
