/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/http/burst.h - many small requests over few plain HTTP/1.1 connections, pipelined
 *
 * For load generators and benchmarks, whose own cost must not be what they measure: a request here
 * costs a few microseconds, a tenth of what common/api's client (libcurl) takes. All requests that
 * were queued in one turn of the loop leave in one system call per connection, and all answers that
 * have arrived are read in one. No TLS, no redirects, no cookies, no repeats after an answer:
 * for those see common/api/client.h. Answers may come with a Content-Length or chunked.
 *
 *     struct bh_burst *b;
 *     rc = bh_burst_new(loop, &(struct bh_burst_options){.server = cfg->server, .depth = 64}, &b,
 *                       err);
 *     bh_burst_send(b, &(struct bh_burst_call){.method = "POST", .path = "/api/v1/nodes",
 *                                              .content_type = "application/json",
 *                                              .body = {json, json_n}, .on_done = fn, .arg = x});
 *     ... run the loop; fn(x, reply) is called once per request ...
 *     bh_burst_free(b);
 *
 * Order: a request goes to the connection with the fewest on the wire, at most `depth`. A server
 * answers those of one connection one after the other: one connection costs least and keeps the
 * order of the calls; several keep one slow request from holding up all others. What finds no room
 * waits here without bound: callers bound what they queue. Broken connections: what was sent
 * and not answered fails with sent = true (for a write the outcome is unknown); what was not sent
 * goes out on the next connection. A server that says "Connection: close" has not looked at what
 * follows: that is sent again.
 * Threads: the loop's. Callbacks come from the loop, never from inside bh_burst_send().
 */
#ifndef BH_HTTP_BURST_H
#define BH_HTTP_BURST_H

#include "common/base/buf.h"
#include <uv.h>

struct bh_burst;
struct bh_burst_options {
    const char *server;      /* "http://HOST:PORT", HOST looked up once, at start (blocking) */
    const char *unix_socket; /* connect there instead; server still names the host. May be NULL */
    const char *headers;     /* further lines for each request, each ended by CR LF; may be NULL */
    unsigned connections;    /* 0 = 1 */
    unsigned depth;          /* requests on the wire per connection at most; 0 = 64 */
    uint64_t silence_ns;     /* with requests on the wire no byte for this long: the connection is
                                given up with -ETIMEDOUT; 0 = 30 s */
    size_t max_reply_bytes; /* of one body; more is -EMSGSIZE and ends the connection; 0 = 64 MiB */
};
struct bh_burst_reply {
    int code;           /* HTTP; 0 with an error */
    int error;          /* 0, or why there is no answer: -ECONNREFUSED, -ECONNRESET, -ETIMEDOUT,
                           -EBADMSG (not HTTP), -EMSGSIZE, -ECANCELED (bh_burst_free) ... */
    bool sent;          /* with an error: bytes of the request may have reached the server */
    int retry_after_s;  /* -1 = no such header */
    struct bh_str body; /* borrowed for the call, not NUL-terminated */
};
struct bh_burst_call {
    const char *method, *path; /* path with its query, encoded */
    const char *content_type;  /* of the body; NULL without body */
    const char *headers;       /* lines of this request alone, each ended by CR LF; may be NULL */
    struct bh_str body;
    void (*on_done)(void *arg, const struct bh_burst_reply *r); /* may call bh_burst_send() */
    void *arg;
};
/* -EPROTONOSUPPORT: server is not plain HTTP; -EINVAL; -EHOSTUNREACH: HOST has no address. Does not
 * connect yet. */
int bh_burst_new(uv_loop_t *loop, const struct bh_burst_options *o, struct bh_burst **ret,
                 struct bh_err *err);
/* Everything in call is copied. */
void bh_burst_send(struct bh_burst *b, const struct bh_burst_call *call);
/* What has no answer gets -ECANCELED, now (those callbacks send nothing); handles close as the loop
 * runs on. Not from a callback. NULL allowed. */
void bh_burst_free(struct bh_burst *b);
#endif
