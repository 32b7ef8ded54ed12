/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/http/stream.h - what server.c and stream.c share; no other file includes it
 */
#ifndef BH_SIM_HTTP_STREAM_H
#define BH_SIM_HTTP_STREAM_H

#include "simulator/http/server.h"

struct bh_http_conn;
struct bh_http_stream {
    struct bh_http_conn *conn;
    struct bh_http_chunk **queue; /* ring */
    size_t head, len, cap;        /* cap: power of two or 0 */
    size_t offset;                /* sent bytes of the first chunk */
    size_t pending;               /* bytes of the queue behind offset */
    bool ending, cut;
    void (*on_close)(void *arg);
    void *arg;
};

/* stream.c. Copies what is queued, at most max bytes. */
size_t bh_http_stream_take(struct bh_http_stream *s, char *buf, size_t max);
void bh_http_stream_over(struct bh_http_stream *s); /* tells on_close, frees */

/* server.c. The answer of r is s from here on; returns its connection. */
struct bh_http_conn *bh_http_conn_stream(struct bh_http_req *r, const char *content_type,
                                         struct bh_http_stream *s);
void bh_http_conn_wake(struct bh_http_conn *c); /* its stream has something to say */
size_t bh_http_conn_unsent(const struct bh_http_conn *c);
#endif
