/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/http/answer.h - HTTP/1.1 answers out of a stream of bytes
 *
 * For burst.c. The caller keeps the bytes of the answer that is under way together, from its first
 * one on, and shows all of them again when more have arrived; what was found out is not looked for
 * twice. Only answers that say where they end are understood: Content-Length, chunked, 204, 304.
 */
#ifndef BH_HTTP_ANSWER_H
#define BH_HTTP_ANSWER_H

#include "common/base/buf.h"
#include "simulator/http/chunks.h"

struct bh_http_answer {
    int code;
    int retry_after_s;  /* -1 = no such header */
    bool close;         /* the server ends the connection behind it */
    struct bh_str body; /* of a whole answer; borrowed from the bytes shown, or from chunks */
    /* inside */
    bool has_length, chunked;
    size_t seen, head_n, length, chunk_at;
    struct bh_http_chunks framing;
    struct bh_buf chunks;
};
void bh_http_answer_reset(struct bh_http_answer *a); /* for the next one; zeroed is not enough */
void bh_http_answer_fini(struct bh_http_answer *a);
/* p[0..n): all bytes from the start of the answer on. Bytes it takes up once it is whole, 0 = more
 * are needed, -EBADMSG = not such an answer, -EMSGSIZE = body above max. */
ssize_t bh_http_answer_take(struct bh_http_answer *a, const char *p, size_t n, size_t max);
#endif
