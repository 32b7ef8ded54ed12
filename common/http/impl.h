/* SPDX-License-Identifier: Apache-2.0
 *
 * common/http/impl.h - what server.c and gate.c share; no other file includes it
 */
#ifndef BH_HTTP_IMPL_H
#define BH_HTTP_IMPL_H

#include <microhttpd.h>

#include "common/http/carrier.h"

struct bh_http_gate;
struct bh_http_gated;
/* A request that libmicrohttpd has begun to read; freed when libmicrohttpd is done with it. */
struct bh_http_call {
    struct bh_http_req r;
    struct MHD_Connection *conn;
    struct bh_http_gated *gated;
    struct bh_http_call *next_to_resume;
    struct bh_http_field *fields;  /* the texts are libmicrohttpd's */
    struct MHD_Response *response; /* decided, not yet queued */
    unsigned code;
    bool seen; /* the access handler was called */
    bool last; /* the connection ends with the answer */
    bool gone; /* the client left, or the server ends */
};
struct bh_http_daemon {
    struct bh_http_server s;
    struct MHD_Daemon *mhd;
    struct bh_http_gate *gate;
    struct bh_http_call *to_resume;
    uv_poll_t poll;        /* libmicrohttpd's epoll descriptor */
    uv_timer_t timer;      /* libmicrohttpd's next time-out */
    uv_idle_t again;       /* active while it has work that no descriptor announces */
    char start_error[160]; /* what libmicrohttpd said while it started */
    bool started;
};

/* server.c */
void bh_http_handle_closed(uv_handle_t *h); /* one of server.c's or gate.c's; the last frees */
void bh_http_call_gone(struct bh_http_call *c);

/* gate.c */
void bh_http_gate_start(struct bh_http_daemon *d, const struct bh_http_options *o);
void bh_http_gate_close(struct bh_http_gate *g); /* ends all connections; libmicrohttpd is there */
void bh_http_gate_free(struct bh_http_gate *g);  /* from the loop, without libmicrohttpd */
void bh_http_gate_notify(void *cls, struct MHD_Connection *conn, void **context,
                         enum MHD_ConnectionNotificationCode what);
/* libmicrohttpd has read a request line: whose connection it is. */
void bh_http_gate_began(struct bh_http_call *c);
/* Its head makes sense and a body follows (what comes goes in, and the connection ends with it), or
 * the body is there. */
void bh_http_gate_body(const struct bh_http_call *c, bool begins);
void bh_http_gate_deferred(
    const struct bh_http_call *c); /* a client that leaves is to be noticed */
/* It was answered for its head alone. why: label of the refused. */
void bh_http_gate_turned_away(const struct bh_http_call *c, const char *why);
void bh_http_gate_answered(const struct bh_http_call *c); /* libmicrohttpd has said it all */
/* The connection is one of the reserve, and the path is none that it is kept for. */
bool bh_http_gate_bars(const struct bh_http_call *c, const char *path);
#endif
