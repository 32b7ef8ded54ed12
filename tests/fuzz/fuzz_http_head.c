/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_http_head.c - the head of a request, and a chunked body, of any bytes
 *
 * Beyond not crashing: what comes in two pieces is read as what comes at once.
 */
#include "simulator/http/chunks.h"

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

static void check_chunks(const char *p, size_t n)
{
    struct bh_http_chunks c = {.at = BH_CHUNK_SIZE};
    ssize_t used = 1;
    bool data;

    for (size_t at = 0; used > 0 && c.at != BH_CHUNK_OVER; at += (size_t)used) {
        used = bh_http_chunks_read(&c, p + at, n - at, &data);
        bh_assert(used <= (ssize_t)(n - at));
        used = BH_MAX(used, 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *p = size ? bh_memdup(data, size) : NULL; /* exact, so that a byte too far is seen */

    if (p) {
        check_head(p, size);
        check_chunks(p, size);
    }
    free(p);
    return 0;
}
