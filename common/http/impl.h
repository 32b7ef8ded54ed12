/* SPDX-License-Identifier: Apache-2.0
 *
 * common/http/impl.h - what the files of this folder share; nobody else includes it
 *
 * Two carriers: plain HTTP is ours from the socket on (plain.c: pipelined requests, one write per
 * connection and turn of the loop); TLS is libmicrohttpd's (drive.c). Handlers do not see which.
 * Life of a request (struct bh_http_req), all in the loop thread:
 *   RECEIVING  made when its head has been read (TLS: the request line); the body is collected
 *   HANDLING   the handler runs; plain: an answer given here is in the connection's output at once,
 *              TLS: it is queued when the handler returns
 *   DEFERRED   the handler returned without an answer; plain: nothing more is read, the socket is
 *              watched for a client that leaves; TLS: the connection is suspended and in the
 *              hang-up set, because libmicrohttpd does not look then
 *   ANSWERED   the caller's part is over; plain: the struct goes when the handler has returned, a
 *              deferred one with the next flush; TLS: when libmicrohttpd has sent the reply
 * Streams: plain, one belongs to its connection. TLS: it belongs to the response object, which
 * libmicrohttpd frees after the request: so a request that ends cuts its tie to the stream, never
 * the other way round.
 */
#ifndef BH_HTTP_IMPL_H
#define BH_HTTP_IMPL_H

#include <microhttpd.h>

#include "common/http/head.h"
#include "common/http/server.h"
#include "common/http/uri.h"

struct bh_http_plain;
struct bh_http_conn;
struct bh_http_server {
    uv_loop_t *loop;
    struct MHD_Daemon *daemon;   /* with TLS; NULL: */
    struct bh_http_plain *plain; /* our own connections (plain.c) */
    bh_http_handler *handler;
    void *arg;
    uint16_t port;
    char *unix_path; /* removed when the server is freed */
    size_t max_body_bytes;
    size_t (*body_limit)(const char *path);
    bool closing;
    struct bh_http_req *reqs; /* all that exist */
    struct bh_http_req *to_resume;
    unsigned suspended_count; /* includes those to resume */
    uint64_t walk_after_ns;   /* when the next walk over suspended connections may happen */
    int hangup_fd;            /* epoll set of connections whose clients we watch */
    uv_poll_t mhd_poll, hangup_poll;
    uv_timer_t timer; /* libmicrohttpd's next time-out */
    uv_timer_t walk_timer;
    uv_idle_t again; /* active while libmicrohttpd has work that no descriptor announces */
    unsigned open_handles;
    struct bh_err start_err; /* what libmicrohttpd said while it started */
    bool started;
};

enum bh_http_state {
    BH_HTTP_RECEIVING,
    BH_HTTP_HANDLING,
    BH_HTTP_DEFERRED,
    BH_HTTP_ANSWERED,
};
struct bh_http_req {
    struct bh_http_req *next, **prev_next;
    struct bh_http_req *next_to_resume;
    struct bh_http_server *server;
    struct MHD_Connection *conn; /* libmicrohttpd's, or NULL: */
    struct bh_http_conn *plain;  /* ours, and what it read */
    struct bh_http_head head;
    struct bh_buf lines; /* plain: further headers of the answer */
    enum bh_http_state state;
    const char *method;
    struct bh_http_uri uri;
    struct bh_buf body;
    size_t max_body_bytes;
    bool seen;      /* the access handler was called */
    bool bad_uri;   /* answered with 400 */
    bool too_large; /* answered with 413; the body is thrown away */
    size_t thrown_bytes;
    bool watched;                  /* in the hang-up set */
    bool gone;                     /* the client left, or the server ends */
    struct MHD_Response *response; /* decided, not yet queued */
    unsigned code;
    struct {
        char *name, *value;
    } * headers;
    size_t n_headers;
    void (*on_abort)(void *arg);
    void *abort_arg;
    struct bh_http_stream *stream;
    char peer[46];
};

/* request.c */
struct bh_http_req *bh_http_req_new(struct bh_http_server *s, struct MHD_Connection *conn,
                                    const char *uri);
/* The same from a plain connection; takes head's memory. */
struct bh_http_req *bh_http_req_of(struct bh_http_server *s, struct bh_http_conn *c,
                                   struct bh_http_head *head, const char *peer);
void bh_http_req_free(struct bh_http_req *r); /* tells on_abort when there was no answer */
/* Hands a decided response to libmicrohttpd. MHD_NO: end the connection. */
enum MHD_Result bh_http_req_queue(struct bh_http_req *r);
/* The answer of r is resp (takes the reference); resumes a deferred request. */
void bh_http_req_answer(struct bh_http_req *r, unsigned code, struct MHD_Response *resp,
                        const char *content_type);

/* drive.c */
int bh_http_enter_loop(struct bh_http_server *s); /* 0 or -errno */
/* Out of the loop; every connection is resumed and marked gone, so the daemon can stop. */
void bh_http_leave_loop(struct bh_http_server *s);
/* The only ways to suspend and to resume; each suspend has one resume. */
void bh_http_suspend(struct bh_http_req *r);
void bh_http_resume(struct bh_http_req *r);
void bh_http_watch_hangup(struct bh_http_req *r);
void bh_http_unwatch_hangup(struct bh_http_req *r);

/* server.c */
/* What part of a body does: 0, or -E2BIG: so much was thrown away that the connection must end. */
int bh_http_take_body(struct bh_http_req *r, const char *p, size_t n);
void bh_http_set_body_limit(struct bh_http_req *r);
void bh_http_dispatch(struct bh_http_req *r);
void bh_http_reply_text(struct bh_http_req *r, int code, const char *text);

/* plain.c */
/* listen_fd is taken, also on failure. 0 or -errno. */
int bh_http_plain_start(struct bh_http_server *s, int listen_fd, unsigned max_connections,
                        unsigned idle_timeout_s);
void bh_http_plain_stop(struct bh_http_server *s); /* ends all connections; frees s in the loop */
void bh_http_plain_reply(struct bh_http_req *r, int code, const char *content_type,
                         const void *body, size_t n);
/* The answer of r is s from here on. */
void bh_http_plain_stream(struct bh_http_req *r, const char *content_type,
                          struct bh_http_stream *s);
void bh_http_plain_wake(struct bh_http_conn *c); /* its stream has something to say */
size_t bh_http_plain_unsent(const struct bh_http_conn *c);

/* stream.c */
/* Copies what is queued, at most max bytes. */
size_t bh_http_stream_take(struct bh_http_stream *s, char *buf, size_t max);
bool bh_http_stream_ending(const struct bh_http_stream *s);
bool bh_http_stream_is_cut(const struct bh_http_stream *s);
void bh_http_stream_over(struct bh_http_stream *s);   /* tells on_close, frees */
void bh_http_stream_cut(struct bh_http_stream *s);    /* the next read ends the connection */
void bh_http_stream_detach(struct bh_http_stream *s); /* its request is gone */
#endif
