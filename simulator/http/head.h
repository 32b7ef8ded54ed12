/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/http/head.h - the head of an HTTP/1.x request: request line and headers, as bytes came in
 *
 * Strict where leniency lets two readers of one connection disagree (RFC 9112, request smuggling):
 * no bare LF, no folded lines, no blank before a colon, one Content-Length, never together with
 * Transfer-Encoding, which is chunked or nothing.
 */
#ifndef BH_HTTP_HEAD_H
#define BH_HTTP_HEAD_H

#include "common/http/carrier.h"

struct bh_http_head {
    char *text; /* owned: all strings below live there */
    const char *method, *target;
    struct bh_http_field *fields; /* owned */
    size_t n_fields;
    size_t body_n; /* Content-Length, 0 without; SIZE_MAX: more than fits */
    bool http11, chunked, keep_alive, expects_continue;
};
/* Bytes that the head takes up, 0 = it has not all come yet, or minus an HTTP code: -400, -414 (the
 * request line is too long), -431 (the head is). *seen: bytes looked at before, kept by the caller,
 * 0 at first. h is filled, and to be given to _fini, only with a positive result. */
ssize_t bh_http_head_read(struct bh_http_head *h, const char *p, size_t n, size_t *seen);
void bh_http_head_fini(struct bh_http_head *h);
#endif
