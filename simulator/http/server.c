/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/http/server.c - HTTP/1.1 connections on a libuv loop, from the socket to the handler
 *
 * Owns:       the connections, their TLS sessions, what they have read and not yet used, what they
 *             have to send and not yet sent, and the request each is at.
 * Invariants: a connection is at one request at a time, in the order they came: while one is
 *             deferred, streams, or its answers are not read (OUT_MAX), nothing more is read and
 *             what has come already waits in `in`. A dead connection is unlinked at once and freed
 *             when nothing on the stack can still hold it (flush).
 * Runs in:    the loop thread. Answers and stream events gather in `out` and leave in one write per
 *             connection: in the check phase, behind all sockets of a turn, and in the prepare
 *             phase, behind timers and idle work. That, and reading all requests a client has
 *             pipelined with one call, is why this exists beside libmicrohttpd.
 * TLS:        records are read and written where plain text would be. `read` holds a whole record,
 *             so GnuTLS keeps nothing that was read; it may keep a record that did not go out whole.
 */
#include <errno.h>
#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/loop.h"
#include "common/http/tls.h"
#include "simulator/http/chunks.h"
#include "simulator/http/stream.h"

#define READ_BYTES     ((size_t)64 << 10)
#define READS_PER_TURN 4
#define OUT_MAX        ((size_t)1 << 20)   /* unsent answers; above it no request is looked at */
#define STREAM_FILL    ((size_t)128 << 10) /* of a stream's events copied ahead of the socket */
#define OUT_KEEP       ((size_t)512 << 10) /* of its buffer, while a connection has work */
#define OUT_KEEP_IDLE  ((size_t)4 << 10)
#define BODY_AT_FIRST  ((size_t)1 << 20)
#define ACCEPTS        64

enum phase { HANDSHAKE, HEAD, BODY, CHUNKS, LINGER };
struct web;
struct call {
    struct bh_http_req r;
    struct bh_http_conn *conn;
    struct bh_http_head head;
};
struct bh_http_conn {
    struct bh_http_conn *next, **prev_next;
    struct bh_http_conn *next_dirty;
    struct web *p;
    gnutls_session_t tls; /* NULL: plain */
    uv_poll_t *poll;      /* freed by its close callback; NULL once dead */
    int fd, events;
    enum phase phase;
    bool dirty, eof, last; /* last: nothing is read any more; ends when all is sent */
    bool refused;          /* ended early: the client may still be sending */
    bool flush;            /* GnuTLS holds a record that did not go out whole */
    bool keep_alive, no_body, chunked_out;
    struct bh_buf in, out;
    struct bh_http_chunks chunks;
    size_t out_at, head_seen, body_left, lingered;
    struct call *req; /* received, handled or deferred */
    struct bh_http_stream *stream;
    uint64_t active_ms; /* when bytes last moved */
    uint64_t since_ms;  /* HANDSHAKE: of its begin */
    char peer[sizeof(((struct bh_http_req *)0)->peer)];
};
struct web {
    struct bh_http_server s;
    uv_poll_t listen;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_timer_t timer;
    struct bh_http_conn *conns, *dirty, *dead;
    unsigned n_conns;
    bool full; /* not accepting */
    int64_t date_s;
    char date[40];
    char read[READ_BYTES];
};

static void on_io(uv_poll_t *h, int status, int events);
static void feed(struct bh_http_conn *c, const char *p, size_t n);

/* ---- connections ----------------------------------------------------------------------------- */

void bh_http_conn_wake(struct bh_http_conn *c)
{
    struct web *p = c->p;

    if (c->dirty || !c->poll)
        return;
    c->dirty = true;
    c->next_dirty = p->dirty;
    p->dirty = c;
}

static void accept_again(struct web *p);

static void call_free(struct call *r)
{
    bh_http_req_fini(&r->r);
    bh_http_head_fini(&r->head);
    free(r);
}

/* Unlinks it and tells its stream; the memory goes with the next flush. */
static void conn_end(struct bh_http_conn *c)
{
    struct web *p = c->p;

    if (!c->poll)
        return;
    uv_poll_stop(c->poll);
    bh_loop_close_free(bh_take_ptr(c->poll));
    if (c->tls)
        bh_tls_session_free(bh_take_ptr(c->tls));
    close(c->fd);
    *c->prev_next = c->next;
    if (c->next)
        c->next->prev_next = c->prev_next;
    p->n_conns--;
    c->next = p->dead;
    p->dead = c;
    if (c->stream)
        bh_http_stream_over(bh_take_ptr(c->stream));
    if (c->req)
        call_free(bh_take_ptr(c->req));
    if (p->full && !c->p->s.closing)
        accept_again(p);
}

static void free_dead(struct web *p)
{
    while (p->dead) {
        struct bh_http_conn *c = p->dead;
        p->dead = c->next;
        bh_buf_fini(&c->in);
        bh_buf_fini(&c->out);
        free(c);
    }
}

size_t bh_http_conn_unsent(const struct bh_http_conn *c)
{
    return c->out.n - c->out_at;
}

/* At a request that is not over. */
static bool held(const struct bh_http_conn *c)
{
    return c->stream || (c->req && c->req->r.state != BH_HTTP_RECEIVING);
}

/* The same, or its client does not read the answers. */
static bool busy(const struct bh_http_conn *c)
{
    return held(c) || bh_http_conn_unsent(c) > OUT_MAX;
}

static void wait_for(struct bh_http_conn *c)
{
    int events = bh_http_conn_unsent(c) || c->flush ? UV_WRITABLE : 0;

    if (!c->poll)
        return;
    if (c->phase == HANDSHAKE)
        events = gnutls_record_get_direction(c->tls) ? UV_WRITABLE : UV_READABLE;
    else if (held(c))
        events |= c->eof ? 0 : UV_DISCONNECT;
    else if (!c->eof && !busy(c) && (!c->last || c->phase == LINGER))
        events |= UV_READABLE;
    if (events == c->events)
        return;
    c->events = events;
    if (events)
        uv_poll_start(c->poll, events, on_io);
    else
        uv_poll_stop(c->poll);
}

/* ---- answers --------------------------------------------------------------------------------- */

static const char *date_now(struct web *p)
{
    int64_t now = bh_wall_ns() / 1000000000;
    time_t t = (time_t)now;
    struct tm tm;

    if (now != p->date_s) {
        gmtime_r(&t, &tm);
        strftime(p->date, sizeof(p->date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
        p->date_s = now;
    }
    return p->date;
}

static void begin_answer(struct bh_http_conn *c, int code, const char *content_type)
{
    struct bh_http_req *r = &c->req->r;
    struct bh_buf *b = &c->out;
    char digits[21];

    bh_buf_adds(b, "HTTP/1.1 ");
    bh_buf_add(b, digits, bh_dec_u64(digits, (uint64_t)code));
    bh_buf_addc(b, ' ');
    bh_buf_adds(b, MHD_get_reason_phrase_for((unsigned)code));
    bh_buf_adds(b, "\r\nDate: ");
    bh_buf_adds(b, date_now(c->p));
    bh_buf_add(b, "\r\n", 2);
    if (content_type) {
        bh_buf_adds(b, "Content-Type: ");
        bh_buf_adds(b, content_type);
        bh_buf_add(b, "\r\n", 2);
    }
    bh_buf_add(b, r->lines.p ? r->lines.p : "", r->lines.n);
    if (!c->keep_alive)
        bh_buf_adds(b, "Connection: close\r\n");
    bh_http_conn_wake(c);
    c->active_ms = uv_now(c->p->s.loop); /* the client gets as long as ever to read it */
    r->state = BH_HTTP_ANSWERED;
}

static void reply(struct bh_http_req *r, int code, const char *content_type, const void *body,
                  size_t n)
{
    struct bh_http_conn *c = ((struct call *)r)->conn;
    struct bh_buf *b = &c->out;
    char digits[21];

    begin_answer(c, code, content_type);
    if (code >= 200 && code != 204 && code != 304) {
        bh_buf_adds(b, "Content-Length: ");
        bh_buf_add(b, digits, bh_dec_u64(digits, n));
        bh_buf_add(b, "\r\n", 2);
    } else {
        n = 0;
    }
    bh_buf_add(b, "\r\n", 2);
    if (n && !c->no_body)
        bh_buf_add(b, body, n);
}

struct bh_http_conn *bh_http_conn_stream(struct bh_http_req *r, const char *content_type,
                                         struct bh_http_stream *s)
{
    struct bh_http_conn *c = ((struct call *)r)->conn;

    bh_assert(r->state != BH_HTTP_ANSWERED);
    if (!c->chunked_out)
        c->keep_alive = false;
    begin_answer(c, 200, content_type);
    bh_buf_adds(&c->out, c->chunked_out ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n");
    c->stream = s;
    return c;
}

static bool ending(const struct bh_http_stream *s)
{
    return s->ending && !s->len;
}

/* Copies events into out, as one HTTP chunk for all that fit. */
static void pump_stream(struct bh_http_conn *c)
{
    struct bh_http_stream *s = c->stream;
    struct bh_buf *b = &c->out;
    char size[8];

    while (!ending(s) && bh_http_conn_unsent(c) < STREAM_FILL) {
        size_t head = c->chunked_out ? 8 : 0, from = b->n;
        size_t max = BH_MIN(bh_http_stream_pending(s) - bh_http_conn_unsent(c), STREAM_FILL);
        if (!max)
            return;
        bh_buf_reserve(b, head + max + 2);
        size_t n = bh_http_stream_take(s, b->p + from + head, max);
        if (c->no_body)
            continue;
        if (c->chunked_out) {
            /* Eight bytes: leading zeros are as good as none. */
            snprintf(size, sizeof(size), "%06zx\r", n);
            memcpy(b->p + from, size, 7);
            b->p[from + 7] = '\n';
            memcpy(b->p + from + head + n, "\r\n", 2);
            n += head + 2;
        }
        b->n += n;
        b->p[b->n] = '\0';
    }
    if (ending(s)) {
        if (c->chunked_out && !c->no_body)
            bh_buf_adds(b, "0\r\n\r\n");
        c->stream = NULL;
        bh_http_stream_over(s);
    }
}

/* ---- requests -------------------------------------------------------------------------------- */

/* The request is answered and over; the next one may begin. */
static void request_over(struct bh_http_conn *c)
{
    call_free(bh_take_ptr(c->req));
    c->phase = HEAD;
    c->head_seen = 0;
    c->last |= !c->keep_alive;
}

/* Answers what cannot be read any further, and reads no more. */
static void refuse(struct bh_http_conn *c, int code, const char *text)
{
    if (c->req)
        call_free(bh_take_ptr(c->req));
    bh_http_write_refusal(&c->out, code, text);
    c->last = c->refused = true;
    bh_http_conn_wake(c);
}

static void dispatch(struct bh_http_conn *c)
{
    struct bh_http_req *r = &c->req->r;

    bh_http_dispatch(r);
    if (!c->poll)
        return;
    if (r->state == BH_HTTP_ANSWERED)
        request_over(c);
    else
        r->state = BH_HTTP_DEFERRED;
}

/* Takes h's memory. */
static void begin_request(struct bh_http_conn *c, const struct bh_http_head *h)
{
    struct call *call = c->req = bh_calloc(1, sizeof(*call));
    struct bh_http_req *r = &call->r;

    call->conn = c;
    call->head = *h;
    r->method = h->method;
    r->fields = h->fields;
    r->n_fields = h->n_fields;
    r->tls = c->tls;
    memcpy(r->peer, c->peer, sizeof(r->peer));
    bh_http_req_init(r, &c->p->s, h->target);
    c->keep_alive = h->keep_alive;
    c->chunked_out = h->http11;
    c->no_body = bh_streq(h->method, "HEAD");
    c->phase = h->chunked ? CHUNKS : BODY;
    c->chunks = (struct bh_http_chunks){0};
    c->body_left = h->body_n;
    if (c->phase == BODY && c->body_left > r->max_body_bytes) {
        char text[256];
        refuse(c, MHD_HTTP_CONTENT_TOO_LARGE, bh_http_too_large(r, text));
        return;
    }
    if (h->expects_continue && (c->phase == CHUNKS || c->body_left)) {
        bh_buf_adds(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
        bh_http_conn_wake(c);
    }
    if (c->phase == BODY && c->body_left)
        bh_buf_reserve(&r->body, BH_MIN(c->body_left, BODY_AT_FIRST));
    else if (c->phase == BODY)
        dispatch(c);
}

static size_t read_body(struct bh_http_conn *c, const char *p, size_t n)
{
    n = BH_MIN(n, c->body_left);
    c->body_left -= n;
    if (bh_http_take_body(&c->req->r, p, n) < 0)
        conn_end(c);
    else if (!c->body_left)
        dispatch(c);
    return n;
}

static size_t read_some(struct bh_http_conn *c, const char *p, size_t n)
{
    switch (c->phase) {
    case HEAD: {
        struct bh_http_head h;
        ssize_t used = bh_http_head_read(&h, p, n, &c->head_seen);
        if (used == 0)
            return 0;
        if (used > 0) {
            begin_request(c, &h);
            return (size_t)used;
        }
        refuse(c, (int)-used, bh_http_head_fault(used));
        return n;
    }
    case BODY:
        return read_body(c, p, n);
    case CHUNKS: {
        bool data;
        ssize_t used = bh_http_chunks_read(&c->chunks, p, n, &data);
        if (used < 0) {
            refuse(c, MHD_HTTP_BAD_REQUEST, "malformed request body\n");
            return n;
        }
        if (data && bh_http_take_body(&c->req->r, p, (size_t)used) < 0)
            conn_end(c);
        else if (c->chunks.at == BH_CHUNK_OVER)
            dispatch(c); /* trailers are read over */
        return (size_t)used;
    }
    case HANDSHAKE:
    case LINGER:
        break;
    }
    return n;
}

/* Requests out of p[0..n), and behind what is left over from before. */
static void feed(struct bh_http_conn *c, const char *p, size_t n)
{
    struct bh_buf mine = {0};
    size_t at = 0;

    if (c->in.n) {
        bh_buf_add(&c->in, p, n);
        mine = c->in; /* handlers must not move it */
        c->in = (struct bh_buf){0};
        p = mine.p;
        n = mine.n;
    }
    while (at < n && c->poll && !c->last && !busy(c)) {
        size_t used = read_some(c, p + at, n - at);
        if (!used)
            break;
        at += used;
    }
    if (c->poll && !c->last && at < n) {
        if (mine.p) {
            bh_buf_consume(&mine, at);
            c->in = mine;
            return;
        } else {
            bh_buf_add(&c->in, p + at, n - at);
        }
    }
    bh_buf_fini(&mine);
}

/* ---- sockets --------------------------------------------------------------------------------- */

static void on_readable(struct bh_http_conn *c)
{
    char *buf = c->p->read;

    for (int i = 0; i < READS_PER_TURN && c->poll && !busy(c); i++) {
        ssize_t n = bh_tls_read(c->phase == LINGER ? NULL : c->tls, c->fd, buf, READ_BYTES);
        if (n == -EAGAIN)
            return;
        if (n < 0) {
            conn_end(c);
            return;
        }
        if (c->phase == LINGER) {
            c->lingered += (size_t)n;
            if (!n || c->lingered > BH_HTTP_LINGER_BYTES)
                conn_end(c);
            continue;
        }
        if (n == 0) {
            c->eof = c->last = true; /* what is answered still leaves */
            bh_http_conn_wake(c);
            return;
        }
        c->active_ms = uv_now(c->p->s.loop);
        feed(c, buf, (size_t)n);
        if ((size_t)n < READ_BYTES && !c->tls)
            return;
    }
}

/* All that the socket takes. */
static void send_out(struct bh_http_conn *c)
{
    while (bh_http_conn_unsent(c) || c->flush) {
        ssize_t n =
            bh_tls_write(c->tls, c->fd, c->out.p + c->out_at, bh_http_conn_unsent(c), &c->flush);
        if (n == -EAGAIN)
            return;
        if (n < 0) {
            conn_end(c);
            return;
        }
        c->out_at += (size_t)n;
        c->active_ms = uv_now(c->p->s.loop);
    }
    c->out_at = 0;
    if (c->out.cap > OUT_KEEP)
        bh_buf_fini(&c->out);
    else
        bh_buf_reset(&c->out);
}

static void flush_one(struct bh_http_conn *c)
{
    if (c->stream && c->stream->cut) {
        conn_end(c);
        return;
    }
    do {
        if (c->stream)
            pump_stream(c);
        send_out(c);
    } while (c->poll && c->stream && !bh_http_conn_unsent(c) &&
             (bh_http_stream_pending(c->stream) || ending(c->stream)));
    if (!c->poll)
        return;
    if (c->req && c->req->r.state == BH_HTTP_ANSWERED) /* it had been deferred */
        request_over(c);
    if (c->in.n && !busy(c) && !c->last)
        feed(c, "", 0);
    if (c->poll && c->last && !bh_http_conn_unsent(c) && !c->flush && !c->stream) {
        /* Everything is sent and nothing more is read. A client that still sends would have
             * its answer thrown away by the reset that a plain close causes. */
        if (c->tls && c->phase != LINGER)
            (void)gnutls_bye(c->tls, GNUTLS_SHUT_WR);
        if (!c->refused || c->eof) {
            conn_end(c);
        } else if (c->phase != LINGER) {
            shutdown(c->fd, SHUT_WR);
            c->phase = LINGER;
            c->active_ms = uv_now(c->p->s.loop);
        }
    }
    wait_for(c);
}

static void flush(struct web *p)
{
    while (p->dirty) {
        struct bh_http_conn *c = p->dirty;
        p->dirty = c->next_dirty;
        c->dirty = false;
        if (c->poll)
            flush_one(c);
    }
    free_dead(p);
}

static void on_io(uv_poll_t *h, int status, int events)
{
    struct bh_http_conn *c = h->data;

    bh_http_conn_wake(c);
    if (c->phase == HANDSHAKE && status == 0) {
        int rc = bh_tls_handshake(c->tls);
        if (rc > 0) {
            c->phase = HEAD;
            c->active_ms = uv_now(c->p->s.loop);
            on_readable(c);
        } else if (rc < 0) {
            conn_end(c);
        }
        return;
    }
    if (status < 0 || ((events & UV_DISCONNECT) && held(c))) {
        conn_end(c);
        return;
    }
    if (events & UV_READABLE)
        on_readable(c);
}

static void on_prepare(uv_prepare_t *h)
{
    flush(h->data);
}

static void on_check(uv_check_t *h)
{
    flush(h->data);
}

/* ---- accepting ------------------------------------------------------------------------------- */

static void conn_new(struct web *p, int fd, const struct sockaddr_storage *a)
{
    struct bh_http_conn *c = bh_calloc(1, sizeof(*c));
    int one = 1;

    c->p = p;
    c->fd = fd;
    c->phase = p->s.tls ? HANDSHAKE : HEAD;
    c->tls = p->s.tls ? bh_tls_session_new(p->s.tls, fd) : NULL;
    bh_http_peer_text(a, c->peer);
    if (a->ss_family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    c->poll = bh_calloc(1, sizeof(*c->poll));
    if ((p->s.tls && !c->tls) || uv_poll_init(p->s.loop, c->poll, fd) < 0) { /* no room for it */
        if (c->tls)
            bh_tls_session_free(c->tls);
        free(c->poll);
        close(fd);
        free(c);
        return;
    }
    c->poll->data = c;
    c->active_ms = c->since_ms = uv_now(p->s.loop);
    c->next = p->conns;
    c->prev_next = &p->conns;
    if (c->next)
        c->next->prev_next = &c->next;
    p->conns = c;
    p->n_conns++;
    wait_for(c);
}

static void on_listen(uv_poll_t *h, int status, int events)
{
    struct web *p = h->data;

    (void)status, (void)events;
    for (int i = 0; i < ACCEPTS && p->n_conns < p->s.max_connections; i++) {
        struct sockaddr_storage a = {0};
        socklen_t n = sizeof(a);
        int fd = accept4(p->s.listen_fd, (struct sockaddr *)(void *)&a, &n,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && bh_err_lack(NULL, errno)) {
            bh_http_tell_lack(&p->s, errno);
            p->full = true; /* the timer tries again */
            uv_poll_stop(&p->listen);
            return;
        }
        if (fd < 0)
            return;
        conn_new(p, fd, &a);
    }
    if (p->n_conns >= p->s.max_connections) {
        p->full = true;
        uv_poll_stop(&p->listen);
    }
}

static void accept_again(struct web *p)
{
    if (p->n_conns >= p->s.max_connections)
        return;
    p->full = false;
    uv_poll_start(&p->listen, UV_READABLE, on_listen);
}

/* Connections without a request and clients that do not read or send, for too long. The memory of
 * what ends here goes with the next flush: another timer of this turn may have made it dirty. */
static void on_timer(uv_timer_t *t)
{
    struct web *p = t->data;
    uint64_t now = uv_now(p->s.loop);

    for (struct bh_http_conn *c = p->conns, *next; c; c = next) {
        bool waits = held(c) && !bh_http_conn_unsent(c);
        next = c->next;
        if (!bh_http_conn_unsent(c) && c->out.cap > OUT_KEEP_IDLE && now - c->active_ms > 1000)
            bh_buf_fini(&c->out);
        if (c->phase == HANDSHAKE
                ? now - c->since_ms > BH_HTTP_HANDSHAKE_MS
                : !waits &&
                      now - c->active_ms > (c->phase == LINGER ? BH_HTTP_LINGER_MS : p->s.idle_ms))
            conn_end(c);
    }
    if (p->full)
        accept_again(p);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void on_handle_closed(uv_handle_t *h)
{
    struct web *p = h->data;

    if (--p->s.open_handles)
        return;
    bh_http_server_fini(&p->s);
    free(p);
}

static void end(struct bh_http_server *s)
{
    struct web *p = (struct web *)s;

    while (p->conns)
        conn_end(p->conns);
    free_dead(p);
    uv_poll_stop(&p->listen);
    close(s->listen_fd);
    uv_close((uv_handle_t *)&p->listen, on_handle_closed);
    uv_close((uv_handle_t *)&p->prepare, on_handle_closed);
    uv_close((uv_handle_t *)&p->check, on_handle_closed);
    uv_close((uv_handle_t *)&p->timer, on_handle_closed);
}

int bh_sim_http_server_new(uv_loop_t *loop, const struct bh_http_options *o,
                           bh_http_handler *handler, void *arg, struct bh_http_server **ret_s,
                           struct bh_err *err)
{
    static const struct bh_http_carrier carrier = {reply, end};
    struct web *p = bh_calloc(1, sizeof(*p));
    int rc = bh_http_server_init(&p->s, loop, o, handler, arg, err);

    if (rc < 0) {
        free(p);
        return rc;
    }
    p->s.carrier = &carrier;
    bh_http_own_handle(&p->s, &p->listen, uv_poll_init(loop, &p->listen, p->s.listen_fd));
    bh_http_own_handle(&p->s, &p->prepare, uv_prepare_init(loop, &p->prepare));
    bh_http_own_handle(&p->s, &p->check, uv_check_init(loop, &p->check));
    bh_http_own_handle(&p->s, &p->timer, uv_timer_init(loop, &p->timer));
    uv_poll_start(&p->listen, UV_READABLE, on_listen);
    uv_prepare_start(&p->prepare, on_prepare);
    uv_check_start(&p->check, on_check);
    uint64_t ms = BH_MIN(p->s.idle_ms / 4, UINT64_C(1000));
    uv_timer_start(&p->timer, on_timer, ms, ms);
    *ret_s = &p->s;
    return 0;
}
