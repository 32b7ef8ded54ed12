/* SPDX-License-Identifier: Apache-2.0
 *
 * common/http/carrier.h - what a server of server.h is made of
 *
 * Two carriers bring requests: libmicrohttpd those of the daemons (server.c behind gate.c), and the
 * simulator its own (simulator/http/), because of what a request costs there. Each puts its own
 * state behind these structs; handlers do not see which it is.
 * Life of a request, all in the loop thread:
 *   RECEIVING  made when its head (libmicrohttpd: its request line) has been read
 *   HANDLING   the handler runs
 *   DEFERRED   the handler returned without an answer; on_abort is told when the client leaves
 *   ANSWERED   the caller's part is over; the carrier frees the request when it can
 */
#ifndef BH_HTTP_CARRIER_H
#define BH_HTTP_CARRIER_H

#include "common/http/server.h"
#include "common/http/uri.h"

#define BH_HTTP_HEAD_MAX     ((size_t)8 << 10) /* bytes of a request line, and of a whole head */
#define BH_HTTP_LINGER_MS    2000u             /* for a client that sends what is not read */
#define BH_HTTP_LINGER_BYTES ((size_t)4 << 20)
#define BH_HTTP_HANDSHAKE_MS 10000u
#define BH_HTTP_IDLE_DEFAULT 180u /* seconds */

struct gnutls_session_int;
struct sockaddr_storage;
struct bh_http_carrier {
    void (*reply)(struct bh_http_req *r, int code, const char *content_type, const void *body,
                  size_t n);
    void (*end)(struct bh_http_server *s); /* ends all connections; frees s in the loop */
};
struct bh_http_server {
    const struct bh_http_carrier *carrier;
    uv_loop_t *loop;
    bh_http_handler *handler;
    void *arg;
    int listen_fd;
    uint16_t port;
    char *unix_path; /* removed when the server is freed */
    unsigned max_connections;
    uint64_t idle_ms;
    size_t max_body_bytes;
    size_t (*body_limit)(const char *path);
    struct bh_tls *tls; /* NULL: plain HTTP */
    bool own_tls, closing;
    unsigned open_handles; /* of the loop: with the last one the carrier frees itself */
    uint64_t lack_told_ns; /* monotonic: when it was last logged that nothing can be accepted */
};
enum bh_http_state {
    BH_HTTP_RECEIVING,
    BH_HTTP_HANDLING,
    BH_HTTP_DEFERRED,
    BH_HTTP_ANSWERED,
};
struct bh_http_field {
    const char *name, *value; /* as sent; blanks around the value are gone */
};
struct bh_http_req {
    struct bh_http_server *server;
    enum bh_http_state state;
    const char *method;
    const struct bh_http_field *fields; /* borrowed from the carrier */
    size_t n_fields;
    struct bh_http_uri uri;
    struct bh_buf body;
    struct bh_buf lines; /* further headers of the answer */
    size_t max_body_bytes, thrown_bytes;
    bool bad_uri;                   /* answered with 400 */
    bool too_large;                 /* answered with 413; the body is thrown away */
    struct gnutls_session_int *tls; /* of its connection; NULL: plain */
    void (*on_abort)(void *arg);
    void *abort_arg;
    char peer[46];
};

/* What every carrier begins with: limits, certificate, the listening socket. s is zeroed. */
int bh_http_server_init(struct bh_http_server *s, uv_loop_t *loop, const struct bh_http_options *o,
                        bh_http_handler *handler, void *arg, struct bh_err *err);
void bh_http_server_fini(struct bh_http_server *s); /* its memory, not the loop's handles */
/* A handle that was made with rc; its data is s. on_closed of it counts down open_handles. */
void bh_http_own_handle(struct bh_http_server *s, void *handle, int rc);
/* accept() failed for lack of descriptors or memory: logged, once a minute. */
void bh_http_tell_lack(struct bh_http_server *s, int e);
void bh_http_peer_text(const struct sockaddr_storage *a, char out[static 46]);

/* r is zeroed; its target as the client wrote it. */
void bh_http_req_init(struct bh_http_req *r, struct bh_http_server *s, const char *target);
void bh_http_req_fini(struct bh_http_req *r); /* tells on_abort when there was no answer */
/* What part of a body does: 0, or -E2BIG: so much was thrown away that the connection must end. */
int bh_http_take_body(struct bh_http_req *r, const char *p, size_t n);
void bh_http_dispatch(struct bh_http_req *r); /* to the handler, or answered here */
/* What begins with a brace goes as JSON; bh_http_write_refusal() does the same. */
void bh_http_reply_text(struct bh_http_req *r, int code, const char *text);
/* The Status object that a client-go understands; returns out. */
const char *bh_http_too_large(const struct bh_http_req *r, char out[static 256]);
/* The whole answer to what is no request; it ends the connection. */
void bh_http_write_refusal(struct bh_buf *out, int code, const char *text);
const char *bh_http_head_fault(ssize_t rc); /* -400, -414, -431: a text for the client */
#endif
