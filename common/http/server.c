/* SPDX-License-Identifier: Apache-2.0
 *
 * common/http/server.c - libmicrohttpd on a libuv loop: requests of the daemons, and their answers
 *
 * Owns:       libmicrohttpd's daemon, its handles in the loop, the requests it has begun to read.
 * Invariants: libmicrohttpd never sees a socket of a client: gate.c hands it ends of pairs, and
 *             says when a client has left. A connection is suspended exactly while its request is
 *             DEFERRED: suspending or resuming twice is undefined, and the state is the only guard.
 * Runs in:    the loop thread; libmicrohttpd has no thread of its own.
 *
 * libmicrohttpd's epoll descriptor is one poll handle of the loop. When it is readable, drive()
 * runs libmicrohttpd until it has nothing more to do at once, at most RUNS_MAX times; the rest
 * waits for the next turn of the loop, so that timers and other sockets get theirs. A resumed
 * connection makes no descriptor readable in this mode and is not in MHD_get_timeout() either, so
 * resuming keeps the loop awake.
 *
 * What libmicrohttpd 0.9.75 takes and another reader would read differently is refused here, as far
 * as its callbacks show it (the rest: gate.c): fields twice that may be there once, lengths that
 * are none, names with blanks. What it takes for the end of a chunked body does not matter: the
 * connection ends with the answer to a request with a body.
 */
#include "common/http/impl.h"

#include <errno.h>
#include <strings.h>
#include <unistd.h>

#define RUNS_MAX 16
/* Of a connection, libmicrohttpd's buffer: a head fits one half, its answer's the other. */
#define CONNECTION_BYTES (2 * BH_HTTP_HEAD_MAX)

/* ---- in the loop ------------------------------------------------------------------------------- */

static void on_again(uv_idle_t *h);
static void on_timer(uv_timer_t *h);

/* Sleeps at most until libmicrohttpd's next time-out; true when there is work now. */
static bool plan_next(struct bh_http_daemon *d)
{
    MHD_UNSIGNED_LONG_LONG ms;

    if (MHD_get_timeout(d->mhd, &ms) != MHD_YES)
        return false;
    if (ms == 0)
        return true;
    /* A timer that fires too early only asks again: so it is not moved at each request. */
    if (!uv_is_active((uv_handle_t *)&d->timer))
        uv_timer_start(&d->timer, on_timer, ms, 0);
    return false;
}

static void resume_all(struct bh_http_daemon *d)
{
    while (d->to_resume) {
        struct bh_http_call *c = d->to_resume;
        d->to_resume = c->next_to_resume;
        MHD_resume_connection(c->conn);
    }
}

static void drive(struct bh_http_daemon *d)
{
    bool more = true;

    for (int i = 0; more && i < RUNS_MAX; i++) {
        resume_all(d);
        MHD_run(d->mhd);
        more = plan_next(d) || d->to_resume;
    }
    if (more)
        uv_idle_start(&d->again, on_again);
    else
        uv_idle_stop(&d->again);
}

static void on_again(uv_idle_t *h)
{
    drive(h->data);
}

static void on_timer(uv_timer_t *h)
{
    drive(h->data);
}

static void on_mhd_readable(uv_poll_t *h, int status, int events)
{
    (void)status, (void)events;
    drive(h->data);
}

static void resume(struct bh_http_call *c)
{
    struct bh_http_daemon *d = (struct bh_http_daemon *)c->r.server;

    c->next_to_resume = d->to_resume;
    d->to_resume = c;
    if (!d->s.closing)
        uv_idle_start(&d->again, on_again);
}

/* libmicrohttpd ends the connection as soon as it looks at it again. */
void bh_http_call_gone(struct bh_http_call *c)
{
    bool suspended = c->r.state == BH_HTTP_DEFERRED && !c->gone;

    c->gone = true;
    if (suspended)
        resume(c);
}

/* ---- answers ----------------------------------------------------------------------------------- */

static void reply(struct bh_http_req *r, int code, const char *content_type, const void *body,
                  size_t n)
{
    struct bh_http_call *c = (struct bh_http_call *)r;
    bool suspended = r->state == BH_HTTP_DEFERRED && !c->gone;

    c->response = MHD_create_response_from_buffer(
        n, (void *)(uintptr_t)body, n ? MHD_RESPMEM_MUST_COPY : MHD_RESPMEM_PERSISTENT);
    bh_assert(c->response);
    c->code = (unsigned)code;
    if (content_type)
        MHD_add_response_header(c->response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
    /* "Name: value\r\n", again and again. */
    struct MHD_Response *resp = c->response;
    char *p = r->lines.p;
    for (char *value, *end; p && (value = strstr(p, ": ")); p = end + 2) {
        end = strstr(value, "\r\n");
        *value = *end = '\0';
        MHD_add_response_header(resp, p, value + 2);
    }
    if (c->last)
        MHD_add_response_header(c->response, MHD_HTTP_HEADER_CONNECTION, "close");
    r->state = BH_HTTP_ANSWERED;
    if (suspended)
        resume(c);
}

static enum MHD_Result queue(struct bh_http_call *c)
{
    enum MHD_Result rc = MHD_queue_response(c->conn, c->code, c->response);

    MHD_destroy_response(bh_take_ptr(c->response)); /* libmicrohttpd holds its own reference */
    return rc;
}

/* ---- requests ---------------------------------------------------------------------------------- */

static void *on_request_line(void *cls, const char *target, struct MHD_Connection *conn)
{
    struct bh_http_call *c = bh_calloc(1, sizeof(*c));

    bh_http_req_init(&c->r, cls, target);
    c->conn = conn;
    bh_http_gate_began(c);
    return c;
}

static void on_request_done(void *cls, struct MHD_Connection *conn, void **con_cls,
                            enum MHD_RequestTerminationCode why)
{
    struct bh_http_call *c = *con_cls;

    (void)cls, (void)conn, (void)why;
    if (!c)
        return;
    *con_cls = NULL;
    bh_http_gate_answered(c);
    bh_http_req_fini(&c->r);
    if (c->response)
        MHD_destroy_response(c->response);
    free(c->fields);
    free(c);
}

static enum MHD_Result on_field(void *cls, enum MHD_ValueKind kind, const char *name,
                                const char *value)
{
    struct bh_http_call *c = cls;

    (void)kind;
    c->fields[c->r.n_fields++] = (struct bh_http_field){name, value ? value : ""};
    return MHD_YES;
}

/* The value of a field that a request has once; false: it has it more often. */
static bool single(const struct bh_http_req *r, const char *name, const char **ret)
{
    unsigned n = 0;

    *ret = NULL;
    for (size_t i = 0; i < r->n_fields; i++) {
        if (strcasecmp(r->fields[i].name, name) == 0) {
            *ret = r->fields[i].value;
            n++;
        }
    }
    return n <= 1;
}

/* A head that every reader reads alike. *ret_length, *ret_coding: NULL when it has none. */
static bool makes_sense(const struct bh_http_req *r, const char *version, const char **ret_length,
                        const char **ret_coding)
{
    bool http11 = bh_streq(version, "HTTP/1.1");
    const char *host;

    for (size_t i = 0; i < r->n_fields; i++)
        if (!*r->fields[i].name || strpbrk(r->fields[i].name, " \t"))
            return false;
    if ((!http11 && !bh_streq(version, "HTTP/1.0")) || !single(r, MHD_HTTP_HEADER_HOST, &host) ||
        !single(r, MHD_HTTP_HEADER_CONTENT_LENGTH, ret_length) ||
        !single(r, MHD_HTTP_HEADER_TRANSFER_ENCODING, ret_coding))
        return false;
    const char *length = *ret_length;
    if (*ret_coding && (length || !http11 || strcasecmp(*ret_coding, "chunked") != 0))
        return false;
    return (host || !http11) && (!length || (*length && !length[strspn(length, "0123456789")]));
}

/* Answered before a body: libmicrohttpd then closes instead of reading it. */
static enum MHD_Result turn_away(struct bh_http_call *c, int code, const char *text,
                                 const char *why)
{
    c->last = true;
    bh_http_gate_turned_away(c, why);
    bh_http_reply_text(&c->r, code, text);
    return queue(c);
}

/* libmicrohttpd calls this without a body first, then for each part of the body, then without, and
 * after a resume once more. */
static enum MHD_Result on_access(void *cls, struct MHD_Connection *conn, const char *url,
                                 const char *method, const char *version, const char *upload,
                                 size_t *upload_size, void **con_cls)
{
    struct bh_http_call *c = *con_cls;
    char text[256];

    (void)cls, (void)url;
    if (!c || c->gone)
        return MHD_NO;
    if (!c->seen) {
        const char *length = NULL, *coding = NULL;
        int n = MHD_get_connection_values(c->conn, MHD_HEADER_KIND, NULL, NULL);
        c->seen = true;
        c->r.method = method;
        c->fields = bh_calloc((size_t)n + 1, sizeof(*c->fields));
        c->r.fields = c->fields;
        MHD_get_connection_values(c->conn, MHD_HEADER_KIND, on_field, c);
        if (!makes_sense(&c->r, version, &length, &coding))
            return turn_away(c, MHD_HTTP_BAD_REQUEST, "malformed request\n", "malformed");
        if (bh_http_gate_bars(c, c->r.uri.path))
            return turn_away(c, MHD_HTTP_SERVICE_UNAVAILABLE,
                             "too many connections of this address\n", "reserve");
        if (length && strtoull(length, NULL, 10) > c->r.max_body_bytes)
            return turn_away(c, MHD_HTTP_CONTENT_TOO_LARGE, bh_http_too_large(&c->r, text),
                             "malformed");
        c->last = coding || (length && length[strspn(length, "0")]);
        if (c->last)
            bh_http_gate_body(c, true);
        return MHD_YES;
    }
    if (*upload_size) {
        size_t n = *upload_size;
        *upload_size = 0;
        return bh_http_take_body(&c->r, upload, n) == 0 ? MHD_YES : MHD_NO;
    }
    if (c->r.state == BH_HTTP_RECEIVING) {
        if (c->last)
            bh_http_gate_body(c, false);
        bh_http_dispatch(&c->r);
    }
    if (c->r.state == BH_HTTP_ANSWERED)
        return queue(c);
    c->r.state = BH_HTTP_DEFERRED;
    bh_http_gate_deferred(c);
    MHD_suspend_connection(conn);
    return MHD_YES;
}

/* ---- life -------------------------------------------------------------------------------------- */

static void on_mhd_message(void *cls, const char *fmt, va_list ap)
{
    struct bh_http_daemon *d = cls;

    if (d->started) /* about one client, which sees it itself */
        return;
    vsnprintf(d->start_error, sizeof(d->start_error), fmt, ap);
    d->start_error[strcspn(d->start_error, "\n")] = '\0';
}

/* Time-outs are gate.c's. */
static int start_mhd(struct bh_http_daemon *d, unsigned connections, struct bh_err *err)
{
    d->mhd = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0,
        NULL, NULL, on_access, d, MHD_OPTION_EXTERNAL_LOGGER, on_mhd_message, d,
        MHD_OPTION_CONNECTION_LIMIT, connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        CONNECTION_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, 0u, MHD_OPTION_URI_LOG_CALLBACK,
        on_request_line, d, MHD_OPTION_NOTIFY_COMPLETED, on_request_done, d,
        MHD_OPTION_NOTIFY_CONNECTION, bh_http_gate_notify, d, MHD_OPTION_END);
    if (!d->mhd)
        return bh_err_set(err, -EINVAL, "could not start the HTTP server on port %u: %s", d->s.port,
                          *d->start_error ? d->start_error : strerror(EINVAL));
    d->started = true;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(d->mhd, MHD_DAEMON_INFO_EPOLL_FD);
    bh_assert(info && info->epoll_fd >= 0);
    bh_http_own_handle(&d->s, &d->poll, uv_poll_init(d->s.loop, &d->poll, info->epoll_fd));
    bh_http_own_handle(&d->s, &d->timer, uv_timer_init(d->s.loop, &d->timer));
    bh_http_own_handle(&d->s, &d->again, uv_idle_init(d->s.loop, &d->again));
    uv_poll_start(&d->poll, UV_READABLE, on_mhd_readable);
    return 0;
}

void bh_http_handle_closed(uv_handle_t *h)
{
    struct bh_http_daemon *d = h->data;

    if (--d->s.open_handles)
        return;
    bh_http_gate_free(d->gate);
    bh_http_server_fini(&d->s);
    free(d);
}

/* libmicrohttpd aborts the process when it stops with a suspended connection. */
static void end(struct bh_http_server *s)
{
    struct bh_http_daemon *d = (struct bh_http_daemon *)s;

    /* The loop must forget the descriptors before they are closed. */
    uv_close((uv_handle_t *)&d->poll, bh_http_handle_closed);
    uv_close((uv_handle_t *)&d->timer, bh_http_handle_closed);
    uv_close((uv_handle_t *)&d->again, bh_http_handle_closed);
    bh_http_gate_close(d->gate);
    resume_all(d);
    MHD_stop_daemon(bh_take_ptr(d->mhd));
}

int bh_http_server_new(uv_loop_t *loop, const struct bh_http_options *o, bh_http_handler *handler,
                       void *arg, struct bh_http_server **ret_s, struct bh_err *err)
{
    static const struct bh_http_carrier carrier = {reply, end};
    struct bh_http_daemon *d = bh_calloc(1, sizeof(*d));
    int rc = bh_http_server_init(&d->s, loop, o, handler, arg, err);

    d->s.carrier = &carrier;
    if (rc == 0) {
        rc = start_mhd(d, d->s.max_connections + o->reserve, err);
        if (rc < 0) {
            close(d->s.listen_fd);
            if (d->s.unix_path)
                (void)unlink(d->s.unix_path);
            bh_http_server_fini(&d->s);
        }
    }
    if (rc < 0) {
        free(d);
        return rc;
    }
    bh_http_gate_start(d, o);
    *ret_s = &d->s;
    return 0;
}
