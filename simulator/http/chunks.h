/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/http/chunks.h - where a chunked body ends (RFC 9112, 7.1)
 *
 * As strict as head.h: lines end with CR LF and hold no control character, behind a chunk's size
 * stands nothing but an extension. A size line has 256 bytes at most, all trailers BH_HTTP_HEAD_MAX.
 */
#ifndef BH_HTTP_CHUNKS_H
#define BH_HTTP_CHUNKS_H

#include "simulator/http/head.h"

struct bh_http_chunks { /* {0} at first */
    enum { BH_CHUNK_SIZE, BH_CHUNK_DATA, BH_CHUNK_END, BH_CHUNK_TRAILER, BH_CHUNK_OVER } at;
    size_t data_left, trailer_n;
};
/* Takes one step into p[0..n): bytes that are used, all of the body when *ret_data, none of it
 * otherwise; 0 = more must come; -1: malformed. Not called any more when `at` is OVER. */
ssize_t bh_http_chunks_read(struct bh_http_chunks *c, const char *p, size_t n, bool *ret_data);
#endif
