/* SPDX-License-Identifier: Apache-2.0
 *
 * common/http/plain.c - plain HTTP/1.1 connections on a libuv loop
 *
 * Owns:       the listening socket, the connections, what they have read and not yet used, what
 * they have to send and not yet sent, and the request each is at. Invariants: a connection is at
 * one request at a time, in the order they came: while one is deferred, streams, or its answers are
 * not read (OUT_MAX), nothing more is read and what has come already waits in `in`. A dead
 * connection is unlinked at once and freed when nobody on the stack can still hold it (flush). Runs
 * in:    the loop thread. Answers and stream events gather in `out` and leave in one write per
 *             connection: in the check phase, behind all sockets of a turn, and in the prepare
 * phase, behind timers and idle work. That, and reading all requests a client has pipelined with
 *             one call, is why this exists beside libmicrohttpd.
 */
#include "common/http/impl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES     ((size_t)64 << 10)
#define READS_PER_TURN 4
#define OUT_MAX        ((size_t)1 << 20)   /* unsent answers; above it no request is looked at */
#define STREAM_FILL    ((size_t)128 << 10) /* of a stream's events copied ahead of the socket */
#define OUT_KEEP       ((size_t)512 << 10) /* of its buffer, while a connection has work */
#define OUT_KEEP_IDLE  ((size_t)4 << 10)
#define BODY_AT_FIRST  ((size_t)1 << 20)
#define ACCEPTS        64
#define SIZE_LINE_MAX  ((size_t)256)
#define LINGER_MS      2000u
#define LINGER_BYTES   ((size_t)4 << 20)

enum phase { HEAD, BODY, CHUNK_SIZE, CHUNK_DATA, CHUNK_END, TRAILER, LINGER };
struct bh_http_conn {
    struct bh_http_conn *next, **prev_next;
    struct bh_http_conn *next_dirty;
    struct bh_http_server *s;
    uv_poll_t *poll; /* freed by its close callback; NULL once dead */
    int fd, events;
    enum phase phase;
    bool dirty, eof, last; /* last: nothing is read any more; ends when all is sent */
    bool refused;          /* ended early: the client may still be sending */
    bool keep_alive, no_body, chunked_out;
    struct bh_buf in, out;
    size_t out_at, head_seen, body_left, trailer_n, lingered;
    struct bh_http_req *req; /* received, handled or deferred */
    struct bh_http_stream *stream;
    uint64_t active_ms; /* when bytes last moved */
    char peer[sizeof(((struct bh_http_req *)0)->peer)];
};
struct bh_http_plain {
    int listen_fd;
    uv_poll_t listen;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_timer_t timer;
    struct bh_http_conn *conns, *dirty, *dead;
    unsigned n_conns, max_conns;
    bool full; /* not accepting */
    uint64_t idle_ms;
    int64_t date_s;
    char date[40];
    char read[READ_BYTES];
};

static void on_io(uv_poll_t *h, int status, int events);
static void feed(struct bh_http_conn *c, const char *p, size_t n);

/* ---- connections ---------------------------------------------------------------------------- */

static void make_dirty(struct bh_http_conn *c)
{
    struct bh_http_plain *p = c->s->plain;

    if (c->dirty || !c->poll)
        return;
    c->dirty = true;
    c->next_dirty = p->dirty;
    p->dirty = c;
}

static void on_poll_closed(uv_handle_t *h)
{
    free(h);
}

static void accept_again(struct bh_http_server *s);

/* Unlinks it and tells whoever waits for it; the memory goes with the next flush. */
static void conn_end(struct bh_http_conn *c)
{
    struct bh_http_plain *p = c->s->plain;

    if (!c->poll)
        return;
    uv_poll_stop(c->poll);
    uv_close((uv_handle_t *)bh_take_ptr(c->poll), on_poll_closed);
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
        bh_http_req_free(bh_take_ptr(c->req));
    if (p->full && !c->s->closing)
        accept_again(c->s);
}

static void free_dead(struct bh_http_plain *p)
{
    while (p->dead) {
        struct bh_http_conn *c = p->dead;
        p->dead = c->next;
        bh_buf_fini(&c->in);
        bh_buf_fini(&c->out);
        free(c);
    }
}

static size_t unsent(const struct bh_http_conn *c)
{
    return c->out.n - c->out_at;
}

size_t bh_http_plain_unsent(const struct bh_http_conn *c)
{
    return unsent(c);
}

/* At a request that is not over. */
static bool held(const struct bh_http_conn *c)
{
    return c->stream || (c->req && c->req->state != BH_HTTP_RECEIVING);
}

/* The same, or its client does not read the answers. */
static bool busy(const struct bh_http_conn *c)
{
    return held(c) || unsent(c) > OUT_MAX;
}

static void wait_for(struct bh_http_conn *c)
{
    int events = unsent(c) ? UV_WRITABLE : 0;

    if (!c->poll)
        return;
    if (held(c))
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

/* ---- answers -------------------------------------------------------------------------------- */

static const char *date_now(struct bh_http_plain *p)
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

static void begin_answer(struct bh_http_req *r, int code, const char *content_type)
{
    struct bh_buf *b = &r->plain->out;
    char digits[21];

    bh_buf_adds(b, "HTTP/1.1 ");
    bh_buf_add(b, digits, bh_dec_u64(digits, (uint64_t)code));
    bh_buf_addc(b, ' ');
    bh_buf_adds(b, MHD_get_reason_phrase_for((unsigned)code));
    bh_buf_adds(b, "\r\nDate: ");
    bh_buf_adds(b, date_now(r->server->plain));
    bh_buf_add(b, "\r\n", 2);
    if (content_type) {
        bh_buf_adds(b, "Content-Type: ");
        bh_buf_adds(b, content_type);
        bh_buf_add(b, "\r\n", 2);
    }
    bh_buf_add(b, r->lines.p ? r->lines.p : "", r->lines.n);
    if (!r->plain->keep_alive)
        bh_buf_adds(b, "Connection: close\r\n");
    make_dirty(r->plain);
    r->plain->active_ms = uv_now(r->server->loop); /* the client gets as long as ever to read it */
    r->state = BH_HTTP_ANSWERED;
}

void bh_http_plain_reply(struct bh_http_req *r, int code, const char *content_type,
                         const void *body, size_t n)
{
    struct bh_buf *b = &r->plain->out;
    char digits[21];

    bh_assert(r->state != BH_HTTP_ANSWERED);
    begin_answer(r, code, content_type);
    if (code >= 200 && code != 204 && code != 304) {
        bh_buf_adds(b, "Content-Length: ");
        bh_buf_add(b, digits, bh_dec_u64(digits, n));
        bh_buf_add(b, "\r\n", 2);
    } else {
        n = 0;
    }
    bh_buf_add(b, "\r\n", 2);
    if (n && !r->plain->no_body)
        bh_buf_add(b, body, n);
}

void bh_http_plain_stream(struct bh_http_req *r, const char *content_type, struct bh_http_stream *s)
{
    struct bh_http_conn *c = r->plain;

    bh_assert(r->state != BH_HTTP_ANSWERED);
    if (!c->chunked_out)
        c->keep_alive = false;
    begin_answer(r, 200, content_type);
    bh_buf_adds(&c->out, c->chunked_out ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n");
    c->stream = s;
}

void bh_http_plain_wake(struct bh_http_conn *c)
{
    make_dirty(c);
}

/* Copies events into out, as one HTTP chunk for all that fit. */
static void pump_stream(struct bh_http_conn *c)
{
    struct bh_http_stream *s = c->stream;
    struct bh_buf *b = &c->out;
    char size[8];

    while (!bh_http_stream_ending(s) && unsent(c) < STREAM_FILL) {
        size_t head = c->chunked_out ? 8 : 0, from = b->n;
        size_t max = BH_MIN(bh_http_stream_pending(s) - unsent(c), STREAM_FILL);
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
    if (bh_http_stream_ending(s)) {
        if (c->chunked_out && !c->no_body)
            bh_buf_adds(b, "0\r\n\r\n");
        c->stream = NULL;
        bh_http_stream_over(s);
    }
}

/* ---- requests ------------------------------------------------------------------------------- */

/* The request is answered and over; the next one may begin. */
static void request_over(struct bh_http_conn *c)
{
    bh_http_req_free(bh_take_ptr(c->req));
    c->phase = HEAD;
    c->head_seen = 0;
    c->last |= !c->keep_alive;
}

/* Answers what cannot be read any further, and reads no more. */
static void refuse(struct bh_http_conn *c, int code, const char *text)
{
    static const char *const headers = "\r\nContent-Type: text/plain; charset=utf-8\r\n"
                                       "Connection: close\r\n";
    if (c->req)
        bh_http_req_free(bh_take_ptr(c->req));
    bh_buf_addf(&c->out, "HTTP/1.1 %d %s\r\nDate: %s%sContent-Length: %zu\r\n\r\n%s", code,
                MHD_get_reason_phrase_for((unsigned)code), date_now(c->s->plain), headers,
                strlen(text), text);
    c->last = c->refused = true;
    make_dirty(c);
}

static void dispatch(struct bh_http_conn *c)
{
    struct bh_http_req *r = c->req;

    bh_http_dispatch(r);
    if (!c->poll)
        return;
    if (r->state == BH_HTTP_ANSWERED)
        request_over(c);
    else
        r->state = BH_HTTP_DEFERRED;
}

static void begin_request(struct bh_http_conn *c, struct bh_http_head *h)
{
    const bool expects = h->expects_continue;

    c->keep_alive = h->keep_alive;
    c->chunked_out = h->http11;
    c->no_body = bh_streq(h->method, "HEAD");
    c->phase = h->chunked ? CHUNK_SIZE : BODY;
    c->body_left = h->body_n;
    struct bh_http_req *r = c->req = bh_http_req_of(c->s, c, h, c->peer);
    if (c->phase == BODY && c->body_left > r->max_body_bytes) {
        refuse(c, MHD_HTTP_CONTENT_TOO_LARGE, "request body too large\n");
        return;
    }
    if (expects && (c->phase == CHUNK_SIZE || c->body_left)) {
        bh_buf_adds(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
        make_dirty(c);
    }
    if (c->phase == BODY && c->body_left)
        bh_buf_reserve(&r->body, BH_MIN(c->body_left, BODY_AT_FIRST));
    else if (c->phase == BODY)
        dispatch(c);
}

static size_t read_head(struct bh_http_conn *c, const char *p, size_t n)
{
    struct bh_http_head h;
    ssize_t used = bh_http_head_read(&h, p, n, &c->head_seen);

    if (used == 0)
        return 0;
    if (used > 0) {
        begin_request(c, &h);
        return (size_t)used;
    }
    refuse(c, (int)-used,
           used == -414   ? "request line too long\n"
           : used == -431 ? "request headers too large\n"
                          : "malformed request\n");
    return n;
}

/* The line at p without its end; *ret_used: with it, 0 = not all there. False: too long, or there
 * is something in it that another reader might take for its end. */
static bool read_line(const char *p, size_t n, size_t max, struct bh_str *ret, size_t *ret_used)
{
    const char *end = memmem(p, BH_MIN(n, max), "\r\n", 2);
    size_t len = end ? (size_t)(end - p) : 0;

    for (size_t i = 0; i < len; i++)
        if (((unsigned char)p[i] < ' ' && p[i] != '\t') || p[i] == 0x7f)
            return false;
    *ret_used = end ? len + 2 : 0;
    *ret = (struct bh_str){p, len};
    return end || n < max;
}

static bool chunk_size(struct bh_str s, size_t *ret)
{
    size_t n = 0, digits = 0;

    for (; digits < s.n; digits++) {
        int c = s.p[digits] | 0x20;
        int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (d < 0)
            break;
        if (n > SIZE_MAX / 32)
            return false;
        n = n * 16 + (size_t)d;
    }
    size_t rest = digits;
    while (rest < s.n && (s.p[rest] == ' ' || s.p[rest] == '\t'))
        rest++;
    *ret = n;
    return digits && (rest == s.n || s.p[rest] == ';');
}

static size_t read_chunk_line(struct bh_http_conn *c, const char *p, size_t n)
{
    struct bh_str line;
    size_t used;
    size_t max = c->phase == TRAILER ? BH_HTTP_HEAD_MAX - c->trailer_n : SIZE_LINE_MAX;
    bool ok = read_line(p, n, max, &line, &used);

    if (!ok || (used && c->phase == CHUNK_END && line.n) ||
        (used && c->phase == CHUNK_SIZE && !chunk_size(line, &c->body_left))) {
        refuse(c, MHD_HTTP_BAD_REQUEST, "malformed request body\n");
        return n;
    }
    if (!used)
        return 0;
    if (c->phase == CHUNK_SIZE) {
        c->phase = c->body_left ? CHUNK_DATA : TRAILER;
        c->trailer_n = 0;
    } else if (c->phase == CHUNK_END) {
        c->phase = CHUNK_SIZE;
    } else if (line.n == 0) {
        dispatch(c); /* trailers are read over */
    } else {
        c->trailer_n += used;
    }
    return used;
}

static size_t read_body(struct bh_http_conn *c, const char *p, size_t n)
{
    n = BH_MIN(n, c->body_left);
    c->body_left -= n;
    if (bh_http_take_body(c->req, p, n) < 0) {
        conn_end(c);
        return n;
    }
    if (!c->body_left && c->phase == BODY)
        dispatch(c);
    else if (!c->body_left)
        c->phase = CHUNK_END;
    return n;
}

static size_t read_some(struct bh_http_conn *c, const char *p, size_t n)
{
    switch (c->phase) {
    case HEAD:
        return read_head(c, p, n);
    case BODY:
    case CHUNK_DATA:
        return read_body(c, p, n);
    case CHUNK_SIZE:
    case CHUNK_END:
    case TRAILER:
        return read_chunk_line(c, p, n);
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

/* ---- sockets -------------------------------------------------------------------------------- */

static void linger(struct bh_http_conn *c, size_t n)
{
    c->lingered += n;
    if (!n || c->lingered > LINGER_BYTES)
        conn_end(c);
}

static void on_readable(struct bh_http_conn *c)
{
    char *buf = c->s->plain->read;

    for (int i = 0; i < READS_PER_TURN && c->poll && !busy(c); i++) {
        ssize_t n = recv(c->fd, buf, READ_BYTES, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0) {
            conn_end(c);
            return;
        }
        if (c->phase == LINGER) {
            linger(c, (size_t)n);
            continue;
        }
        if (n == 0) {
            c->eof = c->last = true; /* what is answered still leaves */
            make_dirty(c);
            return;
        }
        c->active_ms = uv_now(c->s->loop);
        feed(c, buf, (size_t)n);
        if ((size_t)n < READ_BYTES)
            return;
    }
}

/* All that the socket takes. */
static void send_out(struct bh_http_conn *c)
{
    while (unsent(c)) {
        ssize_t n = send(c->fd, c->out.p + c->out_at, unsent(c), MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0) {
            conn_end(c);
            return;
        }
        c->out_at += (size_t)n;
        c->active_ms = uv_now(c->s->loop);
    }
    c->out_at = 0;
    if (c->out.cap > OUT_KEEP)
        bh_buf_fini(&c->out);
    else
        bh_buf_reset(&c->out);
}

/* Everything is sent and nothing more is read. A client that still sends would have its answer
 * thrown away by the reset that a plain close causes. */
static void finish(struct bh_http_conn *c)
{
    if (!c->refused || c->eof) {
        conn_end(c);
    } else if (c->phase != LINGER) {
        shutdown(c->fd, SHUT_WR);
        c->phase = LINGER;
        c->active_ms = uv_now(c->s->loop);
    }
}

static void flush_one(struct bh_http_conn *c)
{
    if (c->stream && bh_http_stream_is_cut(c->stream)) {
        conn_end(c);
        return;
    }
    do {
        if (c->stream)
            pump_stream(c);
        send_out(c);
    } while (c->poll && c->stream && !unsent(c) &&
             (bh_http_stream_pending(c->stream) || bh_http_stream_ending(c->stream)));
    if (!c->poll)
        return;
    if (c->req && c->req->state == BH_HTTP_ANSWERED) /* it had been deferred */
        request_over(c);
    if (c->in.n && !busy(c) && !c->last)
        feed(c, "", 0);
    if (c->poll && c->last && !unsent(c) && !c->stream)
        finish(c);
    wait_for(c);
}

static void flush(struct bh_http_server *s)
{
    struct bh_http_plain *p = s->plain;

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

    make_dirty(c);
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

/* ---- accepting ------------------------------------------------------------------------------ */

static void set_peer(struct bh_http_conn *c, const struct sockaddr_storage *a)
{
    const struct sockaddr_in *four = (const void *)a;
    const struct sockaddr_in6 *six = (const void *)a;

    if (a->ss_family == AF_INET)
        inet_ntop(AF_INET, &four->sin_addr, c->peer, sizeof(c->peer));
    else if (a->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
        inet_ntop(AF_INET, &six->sin6_addr.s6_addr[12], c->peer, sizeof(c->peer));
    else if (a->ss_family == AF_INET6)
        inet_ntop(AF_INET6, &six->sin6_addr, c->peer, sizeof(c->peer));
}

static void conn_new(struct bh_http_server *s, int fd, const struct sockaddr_storage *a)
{
    struct bh_http_plain *p = s->plain;
    struct bh_http_conn *c = bh_calloc(1, sizeof(*c));
    int one = 1;

    c->s = s;
    c->fd = fd;
    set_peer(c, a);
    if (a->ss_family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    c->poll = bh_calloc(1, sizeof(*c->poll));
    if (uv_poll_init(s->loop, c->poll, fd) < 0) { /* the loop has no room for it */
        free(c->poll);
        close(fd);
        free(c);
        return;
    }
    c->poll->data = c;
    c->active_ms = uv_now(s->loop);
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
    struct bh_http_server *s = h->data;
    struct bh_http_plain *p = s->plain;

    (void)status, (void)events;
    for (int i = 0; i < ACCEPTS && p->n_conns < p->max_conns; i++) {
        struct sockaddr_storage a = {0};
        socklen_t n = sizeof(a);
        int fd =
            accept4(p->listen_fd, (struct sockaddr *)(void *)&a, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
            p->full = true; /* the timer tries again */
            uv_poll_stop(&p->listen);
            return;
        }
        if (fd < 0)
            return;
        conn_new(s, fd, &a);
    }
    if (p->n_conns >= p->max_conns) {
        p->full = true;
        uv_poll_stop(&p->listen);
    }
}

static void accept_again(struct bh_http_server *s)
{
    struct bh_http_plain *p = s->plain;

    if (p->n_conns >= p->max_conns)
        return;
    p->full = false;
    uv_poll_start(&p->listen, UV_READABLE, on_listen);
}

/* Connections without a request and clients that do not read or send, for too long. The memory of
 * what ends here goes with the next flush: another timer of this turn may have made it dirty. */
static void on_timer(uv_timer_t *t)
{
    struct bh_http_server *s = t->data;
    struct bh_http_plain *p = s->plain;
    uint64_t now = uv_now(s->loop);

    for (struct bh_http_conn *c = p->conns, *next; c; c = next) {
        bool waits = held(c) && !unsent(c);
        next = c->next;
        if (!unsent(c) && c->out.cap > OUT_KEEP_IDLE && now - c->active_ms > 1000)
            bh_buf_fini(&c->out);
        if (!waits && now - c->active_ms > (c->phase == LINGER ? LINGER_MS : p->idle_ms))
            conn_end(c);
    }
    if (p->full)
        accept_again(s);
}

/* ---- life ----------------------------------------------------------------------------------- */

static void own_handle(struct bh_http_server *s, void *handle)
{
    ((uv_handle_t *)handle)->data = s;
    s->open_handles++;
}

int bh_http_plain_start(struct bh_http_server *s, int listen_fd, unsigned max_connections,
                        unsigned idle_timeout_s)
{
    struct bh_http_plain *p = s->plain = bh_calloc(1, sizeof(*p));
    int rc = uv_poll_init(s->loop, &p->listen, listen_fd);

    if (rc < 0) {
        close(listen_fd);
        free(bh_take_ptr(s->plain));
        return rc;
    }
    p->listen_fd = listen_fd;
    p->max_conns = max_connections;
    p->idle_ms = (uint64_t)idle_timeout_s * 1000;
    uv_prepare_init(s->loop, &p->prepare);
    uv_check_init(s->loop, &p->check);
    uv_timer_init(s->loop, &p->timer);
    own_handle(s, &p->listen);
    own_handle(s, &p->prepare);
    own_handle(s, &p->check);
    own_handle(s, &p->timer);
    uv_poll_start(&p->listen, UV_READABLE, on_listen);
    uv_prepare_start(&p->prepare, on_prepare);
    uv_check_start(&p->check, on_check);
    uint64_t ms = BH_MIN(p->idle_ms / 4, UINT64_C(1000));
    uv_timer_start(&p->timer, on_timer, ms, ms);
    return 0;
}

static void on_handle_closed(uv_handle_t *h)
{
    struct bh_http_server *s = h->data;

    if (--s->open_handles)
        return;
    free(s->plain);
    free(s);
}

void bh_http_plain_stop(struct bh_http_server *s)
{
    struct bh_http_plain *p = s->plain;

    while (p->conns)
        conn_end(p->conns);
    free_dead(p);
    uv_poll_stop(&p->listen);
    close(p->listen_fd);
    uv_close((uv_handle_t *)&p->listen, on_handle_closed);
    uv_close((uv_handle_t *)&p->prepare, on_handle_closed);
    uv_close((uv_handle_t *)&p->check, on_handle_closed);
    uv_close((uv_handle_t *)&p->timer, on_handle_closed);
}
