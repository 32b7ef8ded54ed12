/* SPDX-License-Identifier: Apache-2.0
 *
 * common/http/server.c - start, requests from libmicrohttpd, end
 *
 * Owns:     the daemon, if there is one, and all requests. Its place in the loop is drive.c's; what
 * is not TLS never gets there (plain.c). Runs in:  the loop thread; libmicrohttpd has no thread of
 * its own.
 */
#include "common/http/impl.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/http/listen.h"
#include "common/http/tls.h"

#define DEFAULT_BODY_BYTES  ((size_t)3 << 20)
#define DEFAULT_CONNECTIONS 256
/* Request line and headers must fit one half, a stream's piece the other. */
#define CONNECTION_BYTES ((size_t)16 << 10)
/* For a keep-alive connection without a request and for a reader that does not read; suspended
 * connections (deferred replies, idle streams) have no such limit. */
#define IDLE_TIMEOUT_S          180u
#define FDS_BESIDES_CONNECTIONS 128

/* ---- requests ------------------------------------------------------------------------------- */

static void *on_request_line(void *cls, const char *uri, struct MHD_Connection *conn)
{
    return bh_http_req_new(cls, conn, uri);
}

static void on_request_done(void *cls, struct MHD_Connection *conn, void **con_cls,
                            enum MHD_RequestTerminationCode why)
{
    struct bh_http_req *r = *con_cls;

    (void)cls, (void)conn, (void)why;
    if (!r)
        return;
    *con_cls = NULL;
    bh_http_unwatch_hangup(r);
    bh_http_req_free(r);
}

static bool announces_too_much(const struct bh_http_req *r)
{
    const char *length = bh_http_header(r, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return length && strtoull(length, NULL, 10) > r->max_body_bytes;
}

void bh_http_reply_text(struct bh_http_req *r, int code, const char *text)
{
    bh_http_reply(r, code, "text/plain; charset=utf-8", text, strlen(text));
}

void bh_http_set_body_limit(struct bh_http_req *r)
{
    if (r->server->body_limit && !r->bad_uri)
        r->max_body_bytes = r->server->body_limit(r->uri.path);
    if (!r->max_body_bytes)
        r->max_body_bytes = r->server->max_body_bytes;
}

static enum MHD_Result begin_request(struct bh_http_req *r, const char *method)
{
    r->seen = true;
    r->method = method;
    bh_http_set_body_limit(r);
    if (announces_too_much(r)) {
        /* Answered before the body: libmicrohttpd then closes instead of reading it. */
        bh_http_reply_text(r, MHD_HTTP_CONTENT_TOO_LARGE, "request body too large\n");
        return bh_http_req_queue(r);
    }
    return MHD_YES;
}

int bh_http_take_body(struct bh_http_req *r, const char *p, size_t n)
{
    if (r->too_large || n > r->max_body_bytes - r->body.n) {
        r->too_large = true;
        bh_buf_fini(&r->body);
        r->thrown_bytes += n;
        return r->thrown_bytes > r->max_body_bytes ? -E2BIG : 0;
    }
    bh_buf_add(&r->body, p, n);
    return 0;
}

void bh_http_dispatch(struct bh_http_req *r)
{
    r->state = BH_HTTP_HANDLING;
    if (r->too_large)
        bh_http_reply_text(r, MHD_HTTP_CONTENT_TOO_LARGE, "request body too large\n");
    else if (r->bad_uri)
        bh_http_reply_text(r, MHD_HTTP_BAD_REQUEST, "invalid escape in the path\n");
    else
        r->server->handler(r, r->server->arg);
}

/* libmicrohttpd calls this without a body first, then for each part of the body, then without, and
 * after a resume once more. */
static enum MHD_Result on_access(void *cls, struct MHD_Connection *conn, const char *url,
                                 const char *method, const char *version, const char *upload,
                                 size_t *upload_size, void **con_cls)
{
    struct bh_http_req *r = *con_cls;

    (void)cls, (void)conn, (void)url, (void)version;
    if (!r || r->gone)
        return MHD_NO;
    if (!r->seen)
        return begin_request(r, method);
    if (*upload_size) {
        size_t n = *upload_size;
        *upload_size = 0;
        return bh_http_take_body(r, upload, n) == 0 ? MHD_YES : MHD_NO;
    }
    if (r->state == BH_HTTP_RECEIVING)
        bh_http_dispatch(r);
    if (r->state == BH_HTTP_ANSWERED)
        return bh_http_req_queue(r);
    r->state = BH_HTTP_DEFERRED;
    bh_http_watch_hangup(r);
    bh_http_suspend(r);
    return MHD_YES;
}

/* ---- life ----------------------------------------------------------------------------------- */

static void on_mhd_message(void *cls, const char *fmt, va_list ap)
{
    struct bh_http_server *s = cls;
    if (s->started)
        return; /* about single clients; they see it themselves */
    vsnprintf(s->start_err.msg, sizeof(s->start_err.msg), fmt, ap);
    s->start_err.msg[strcspn(s->start_err.msg, "\n")] = '\0';
}

static void raise_fd_limit(unsigned connections)
{
    struct rlimit lim;
    rlim_t want = (rlim_t)connections + FDS_BESIDES_CONNECTIONS;

    if (getrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_cur >= want)
        return;
    lim.rlim_cur = BH_MIN(want, lim.rlim_max);
    setrlimit(RLIMIT_NOFILE, &lim); /* else libmicrohttpd stops accepting earlier, nothing worse */
}

static int start_daemon(struct bh_http_server *s, const struct bh_http_options *o, int listen_fd,
                        unsigned connections, struct bh_err *err)
{
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    struct MHD_OptionItem tls[6];
    size_t n = 0;

    if (o->tls) {
        flags |= MHD_USE_TLS;
        n = bh_tls_options(o->tls, tls);
    } else if (o->tls_cert_pem) {
        flags |= MHD_USE_TLS;
        tls[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0,
                                           (void *)(uintptr_t)o->tls_cert_pem};
        tls[n++] =
            (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)o->tls_key_pem};
        if (o->client_ca_pem)
            tls[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_TRUST, 0,
                                               (void *)(uintptr_t)o->client_ca_pem};
    }
    tls[n] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
    s->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_access, s, MHD_OPTION_EXTERNAL_LOGGER, on_mhd_message, s,
        MHD_OPTION_LISTEN_SOCKET, listen_fd, MHD_OPTION_CONNECTION_LIMIT, connections,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
        o->idle_timeout_s ? o->idle_timeout_s : IDLE_TIMEOUT_S, MHD_OPTION_URI_LOG_CALLBACK,
        on_request_line, s, MHD_OPTION_NOTIFY_COMPLETED, on_request_done, s, MHD_OPTION_ARRAY, tls,
        MHD_OPTION_END);
    if (!s->daemon) /* it has closed listen_fd */
        return bh_err_set(err, -EINVAL, "could not start the HTTP server on port %u: %s", s->port,
                          *s->start_err.msg ? s->start_err.msg : "no reason given");
    s->started = true;
    return 0;
}

static int start_tls(struct bh_http_server *s, const struct bh_http_options *o, int listen_fd,
                     unsigned connections, struct bh_err *err)
{
    int rc = start_daemon(s, o, listen_fd, connections, err);

    if (rc < 0)
        return rc;
    rc = bh_http_enter_loop(s);
    if (rc == 0)
        return 0;
    MHD_stop_daemon(s->daemon);
    return bh_err_set(err, rc, "could not create an epoll set: %s", strerror(-rc));
}

static int start_plain(struct bh_http_server *s, const struct bh_http_options *o, int listen_fd,
                       unsigned connections, struct bh_err *err)
{
    int rc = bh_http_plain_start(s, listen_fd, connections,
                                 o->idle_timeout_s ? o->idle_timeout_s : IDLE_TIMEOUT_S);

    return rc < 0 ? bh_err_set(err, rc, "could not start the HTTP server on port %u: %s", s->port,
                               strerror(-rc))
                  : 0;
}

int bh_http_server_new(uv_loop_t *loop, const struct bh_http_options *o, bh_http_handler *handler,
                       void *arg, struct bh_http_server **ret_s, struct bh_err *err)
{
    unsigned connections = o->max_connections ? o->max_connections : DEFAULT_CONNECTIONS;
    int listen_fd, rc;

    if (!o->tls_cert_pem != !o->tls_key_pem)
        return bh_err_set(err, -EINVAL, "TLS needs both a certificate and a key");
    struct bh_http_server *s = bh_calloc(1, sizeof(*s));
    s->loop = loop;
    s->handler = handler;
    s->arg = arg;
    s->max_body_bytes = o->max_body_bytes ? o->max_body_bytes : DEFAULT_BODY_BYTES;
    s->body_limit = o->body_limit;
    raise_fd_limit(connections);
    rc = o->unix_path
             ? bh_http_listen_unix(o->unix_path, &listen_fd, err)
             : bh_http_listen(o->address, o->port, o->reuse_port, &listen_fd, &s->port, err);
    if (rc == 0)
        rc = o->tls || o->tls_cert_pem ? start_tls(s, o, listen_fd, connections, err)
                                       : start_plain(s, o, listen_fd, connections, err);
    if (rc < 0) {
        free(s);
        return rc;
    }
    s->unix_path = o->unix_path ? bh_strdup(o->unix_path) : NULL;
    *ret_s = s;
    return 0;
}

uint16_t bh_http_server_port(const struct bh_http_server *s)
{
    return s->port;
}

void bh_http_server_free(struct bh_http_server *s)
{
    if (!s)
        return;
    bh_assert(!s->closing);
    s->closing = true;
    if (s->unix_path)
        (void)unlink(s->unix_path);
    free(bh_take_ptr(s->unix_path));
    if (s->plain) {
        bh_http_plain_stop(s);
        return;
    }
    bh_http_leave_loop(s);
    MHD_stop_daemon(bh_take_ptr(s->daemon));
    bh_assert(!s->reqs);
    close(s->hangup_fd); /* requests left it one by one until here */
}
