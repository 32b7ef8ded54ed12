/* SPDX-License-Identifier: Apache-2.0
 *
 * common/http/server.h - an HTTP/1.1 server on a libuv loop (libmicrohttpd behind gate.c)
 *
 * Used by the probe endpoint of every daemon (probes.h) and by berth-front; the simulator has a
 * carrier of its own for the same handlers (simulator/http/server.h).
 * One thread: handlers run in the loop. A handler gets the whole request (body bounded) and either
 * answers at once (bh_http_reply) or later (keeps the request and replies from another callback).
 */
#ifndef BH_HTTP_SERVER_H
#define BH_HTTP_SERVER_H

#include "common/base/buf.h"
#include "common/base/metrics.h"
#include <uv.h>

struct bh_http_server;
struct bh_http_req;
struct bh_tls;

struct bh_http_options {
    const char *address;                    /* "127.0.0.1" */
    uint16_t port;                          /* 0 = any free one, see bh_http_server_port() */
    const char *tls_cert_pem, *tls_key_pem; /* both NULL = plain; contents, not paths */
    const char *client_ca_pem; /* not NULL: clients are asked for a certificate; see tls.h */
    struct bh_tls *tls;        /* instead of the three above; borrowed, see tls.h */
    const char *unix_path;     /* instead of address and port; see listen.h */
    bool reuse_port;           /* SO_REUSEPORT */
    unsigned idle_timeout_s;   /* of a connection; 0 = 180 */
    size_t max_body_bytes;     /* 0 = 3 MiB; above it the server answers 413 */
    /* Paths whose bodies may be larger: their limit, 0 = max_body_bytes. NULL = none. */
    size_t (*body_limit)(const char *path);
    unsigned max_connections; /* 0 = 256 */
    /* With TLS. Connections of one address (IPv6: of one /64), 0 = no limit. Beyond either limit a
     * connection is closed at once, unless it comes from this host and the reserve has room: there
     * a connection has 2 s for one GET of a path of reserve_paths (or below one), and makes room
     * for a newer one while it has not asked. */
    unsigned per_address, reserve;
    const char *const *reserve_paths; /* borrowed for the server's life; ends with NULL */
    struct bh_metric *refused;        /* label why: see docs/https.md; may be NULL */
    struct bh_cell *open;             /* gauge: connections; may be NULL */
};
typedef void bh_http_handler(struct bh_http_req *r, void *arg);

int bh_http_server_new(uv_loop_t *loop, const struct bh_http_options *o, bh_http_handler *handler,
                       void *arg, struct bh_http_server **ret_s, struct bh_err *err);
uint16_t bh_http_server_port(const struct bh_http_server *s);
/* Ends all streams and connections, frees. Must be called from the loop, not from a handler. */
void bh_http_server_free(struct bh_http_server *s);

/* The request; everything borrowed until the reply is given. */
const char *bh_http_method(const struct bh_http_req *r); /* "GET" */
const char *bh_http_path(const struct bh_http_req *r);   /* decoded path, without query */
/* Decoded value of a query parameter, NULL when absent; "" for ?x and ?x= */
const char *bh_http_query(const struct bh_http_req *r, const char *name);
/* Calls fn for each query parameter in order of appearance. */
void bh_http_query_each(const struct bh_http_req *r,
                        void (*fn)(void *arg, const char *name, const char *value), void *arg);
const char *bh_http_header(const struct bh_http_req *r, const char *name); /* NULL when absent */
/* Every header in the order it came in; names as the client wrote them. */
void bh_http_header_each(const struct bh_http_req *r,
                         void (*fn)(void *arg, const char *name, const char *value), void *arg);
/* The client's certificate and the chain it sent, DER, leaf first, at most max of them; not
 * verified. 0 = none. Borrowed until the reply. */
size_t bh_http_client_certs(const struct bh_http_req *r, struct bh_str *out, size_t max);
struct bh_str bh_http_body(const struct bh_http_req *r);
const char *bh_http_peer(const struct bh_http_req *r); /* "127.0.0.1" */

/* Extra response header; before the reply, name and value are copied. */
void bh_http_set_header(struct bh_http_req *r, const char *name, const char *value);
/* Sends the reply and ends r. body is copied. */
void bh_http_reply(struct bh_http_req *r, int code, const char *content_type, const void *body,
                   size_t n);
/* Called when the client goes away before a deferred reply: r is dead afterwards. */
void bh_http_on_abort(struct bh_http_req *r, void (*fn)(void *arg), void *arg);
#endif
