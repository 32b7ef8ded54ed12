/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/http/server.h - the API server's HTTP/1.1: requests as common/http/server.h has them,
 * and endless replies
 *
 * A stream's bytes are queued without bound by this layer: the caller looks at
 * bh_http_stream_pending() and closes a stream whose reader is too slow.
 */
#ifndef BH_SIM_HTTP_SERVER_H
#define BH_SIM_HTTP_SERVER_H

#include "common/http/server.h"

/* As bh_http_server_new(); options about addresses, the reserve and metrics are not for this one. */
int bh_sim_http_server_new(uv_loop_t *loop, const struct bh_http_options *o,
                           bh_http_handler *handler, void *arg, struct bh_http_server **ret_s,
                           struct bh_err *err);

/* A shared immutable chunk: one watch event's bytes are encoded once and queued on many streams. */
struct bh_http_chunk {
    uint32_t refs;
    uint32_t n;
    char p[];
};
struct bh_http_chunk *bh_http_chunk_new(const void *p, size_t n); /* refs = 1 */
void bh_http_chunk_unref(struct bh_http_chunk *c);

struct bh_http_stream;
/* Starts a chunked 200 reply and ends r. on_close is called exactly once, when the stream is over
 * for any reason (client gone, bh_http_stream_end flushed, server freed); s is dead afterwards. */
struct bh_http_stream *bh_http_stream_start(struct bh_http_req *r, const char *content_type,
                                            void (*on_close)(void *arg), void *arg);
void bh_http_stream_add(struct bh_http_stream *s, struct bh_http_chunk *c); /* takes its own ref */
void bh_http_stream_copy(struct bh_http_stream *s, const void *p, size_t n);
size_t bh_http_stream_pending(const struct bh_http_stream *s); /* bytes queued, not yet sent */
void bh_http_stream_end(struct bh_http_stream *s);             /* orderly end after the queue */
void bh_http_stream_abort(struct bh_http_stream *s);           /* cut the connection now */
#endif
