/* SPDX-License-Identifier: Apache-2.0
 *
 * common/http/gate.c - connections from the socket to libmicrohttpd
 *
 * Owns:       the listening socket, the connections, their TLS sessions, and the near end of a pair
 *             of sockets for each; libmicrohttpd has the far end and speaks plain HTTP on it.
 * Why:        libmicrohttpd takes lines that end with a bare LF, folded lines and control
 *             characters, and does not show them; it has one time-out, which every byte starts
 *             anew, and keeps 16 KiB for a connection that says nothing. Here a head goes in when it
 *             is whole and its lines are lines, one request at a time; what the lines say is
 *             libmicrohttpd's to read (server.c). And how many connections there may be for how
 *             long is decided here, before anything is spent on them.
 * Invariants: nothing of a request goes in before the one before is answered, and nothing is read
 *             as a request behind one with a body: where a body ends is never guessed. A connection
 *             that ended is freed by on_check, never where it ended, and not before libmicrohttpd
 *             has let go of its end.
 * Runs in:    the loop thread.
 *
 * Life of a connection: HANDSHAKE (TLS), HEAD (nothing, or a part of a request's head), ANSWER
 * (libmicrohttpd has it), maybe BODY (it wants more) and ANSWER again, HEAD again or LINGER
 * (refused: the client may still be sending and would not read the answer if the connection were
 * reset).
 */
#include "common/http/impl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/loop.h"
#include "common/http/tls.h"

#define HEAD_MS      10000u
#define RESERVE_MS   2000u /* both together, of a connection out of the reserve */
#define TICK_MS      250u
#define RECORD_BYTES ((size_t)16 << 10)
#define ACCEPTS      64
#define KEY_BYTES    8u

enum phase { HANDSHAKE, HEAD, BODY, ANSWER, LINGER };
struct bh_http_gated {
    struct bh_http_gated *next, **prev_next;
    struct bh_http_gated *next_queued;
    struct bh_http_gate *gate;
    uv_poll_t *poll, *inner_poll; /* freed by their close callbacks; poll NULL: dead */
    int fd, inner;                /* inner -1: libmicrohttpd does not know it yet, or any more */
    int events, inner_events;
    gnutls_session_t tls;      /* NULL: plain */
    struct bh_http_call *call; /* that libmicrohttpd is at */
    enum phase phase;
    bool reserve;          /* out of the reserve: for one probe */
    bool known;            /* to libmicrohttpd, which tells when that is over */
    bool answered, queued; /* queued: in `queue` of the gate */
    bool last;             /* ends when all is sent */
    bool body;             /* or what may be one: no request is read behind it */
    bool faulty;           /* libmicrohttpd refused the request; 0.9.75 says so twice */
    bool refused, flush;   /* flush: GnuTLS holds a record that did not go out whole */
    struct bh_buf in, out;
    size_t pass_n; /* bytes of `in` that may go in */
    size_t out_at, head_seen, lingered;
    uint64_t since_ms; /* of this phase; HEAD: of its first byte, if there is one */
    uint64_t moved_ms; /* when bytes last went out */
    struct sockaddr_storage addr;
    socklen_t addr_n;
    unsigned char key[KEY_BYTES]; /* its address, for the limit per address */
};
struct bh_http_gate {
    struct bh_http_daemon *d;
    struct bh_http_server *s; /* d's */
    uv_poll_t listen;
    uv_timer_t timer;
    uv_check_t check;
    uv_idle_t awake; /* while `queue` or `dead` has some */
    struct bh_http_gated *conns, *dead, *queue;
    struct bh_http_gated *adding; /* libmicrohttpd is being told of it */
    unsigned n, n_reserve;
    unsigned per_address, reserve_max;
    const char *const *reserve_paths;
    bool full; /* not accepting: no descriptors, or (plain) as many as there may be */
    struct bh_metric *refused;
    struct bh_cell *open;
    char buf[RECORD_BYTES];
};

static void on_io(uv_poll_t *h, int status, int events);
static void on_inner(uv_poll_t *h, int status, int events);
static void on_awake(uv_idle_t *h);
static void on_listen(uv_poll_t *h, int status, int events);

/* ---- connections ----------------------------------------------------------------------------- */

static void count_refused(const struct bh_http_gate *g, const char *why)
{
    if (g->refused)
        bh_cell_add(bh_metric_cell(g->refused, why), 1);
}

static void show_open(const struct bh_http_gate *g)
{
    if (g->open)
        bh_cell_set(g->open, g->n + g->n_reserve);
}

static void close_poll(uv_poll_t **p)
{
    if (!*p)
        return;
    uv_poll_stop(*p);
    bh_loop_close_free(bh_take_ptr(*p));
}

/* libmicrohttpd sees that its client is gone. */
static void close_inner(struct bh_http_gated *c)
{
    close_poll(&c->inner_poll);
    c->inner_events = 0;
    if (c->inner >= 0)
        close(c->inner);
    c->inner = -1;
}

static void accept_again(struct bh_http_gate *g)
{
    g->full = false;
    uv_poll_start(&g->listen, UV_READABLE, on_listen);
}

static void conn_end(struct bh_http_gated *c)
{
    struct bh_http_gate *g = c->gate;

    if (!c->poll)
        return;
    close_poll(&c->poll);
    if (c->call)
        bh_http_call_gone(c->call);
    close_inner(c);
    if (c->tls)
        bh_tls_session_free(bh_take_ptr(c->tls));
    close(c->fd);
    *c->prev_next = c->next;
    if (c->next)
        c->next->prev_next = c->prev_next;
    if (c->reserve)
        g->n_reserve--;
    else
        g->n--;
    show_open(g);
    c->next = g->dead;
    g->dead = c;
    if (!g->s->closing)
        uv_idle_start(&g->awake, on_awake); /* on_check frees it */
    if (g->full && !g->s->closing)
        accept_again(g);
}

static void free_dead(struct bh_http_gate *g)
{
    for (struct bh_http_gated **at = &g->dead, *c; (c = *at);) {
        if (c->known || c->queued || c->call) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        bh_buf_fini(&c->in);
        bh_buf_fini(&c->out);
        free(c);
    }
}

static void enter(struct bh_http_gated *c, enum phase phase)
{
    c->phase = phase;
    c->since_ms = uv_now(c->gate->s->loop);
}

static size_t unsent(const struct bh_http_gated *c)
{
    return c->out.n - c->out_at;
}

static void watch(uv_poll_t *h, int *now, int events, uv_poll_cb cb)
{
    if (!h || *now == events)
        return;
    *now = events;
    if (events)
        uv_poll_start(h, events, cb);
    else
        uv_poll_stop(h);
}

static int client_events(const struct bh_http_gated *c)
{
    int out = unsent(c) || c->flush ? UV_WRITABLE : 0;

    switch (c->phase) {
    case HANDSHAKE:
        return gnutls_record_get_direction(c->tls) ? UV_WRITABLE : UV_READABLE;
    case HEAD:
    case LINGER:
        return out | UV_READABLE;
    case BODY:
        return out | (c->pass_n ? 0 : UV_READABLE);
    case ANSWER:
        break;
    }
    /* Plain: a client may have said all and listen. An answer that takes its time is not waited for. */
    bool leaves = c->tls || (c->call && c->call->r.state == BH_HTTP_DEFERRED);
    return out | (leaves ? UV_DISCONNECT : 0);
}

static void set_events(struct bh_http_gated *c)
{
    if (!c->poll)
        return;
    watch(c->poll, &c->events, client_events(c), on_io);
    watch(c->inner_poll, &c->inner_events,
          (c->pass_n ? UV_WRITABLE : 0) | (unsent(c) ? 0 : UV_READABLE), on_inner);
}

/* ---- to the client --------------------------------------------------------------------------- */

/* All that the socket takes. */
static void send_out(struct bh_http_gated *c)
{
    while (c->poll && (unsent(c) || c->flush)) {
        ssize_t n = bh_tls_write(c->tls, c->fd, c->out.p + c->out_at, unsent(c), &c->flush);
        if (n == -EAGAIN)
            return;
        if (n < 0) {
            conn_end(c);
            return;
        }
        c->out_at += (size_t)n;
        c->moved_ms = uv_now(c->gate->s->loop);
    }
    c->out_at = 0;
    bh_buf_fini(&c->out); /* most connections are silent most of the time */
}

/* Everything is sent, and nothing more is read. */
static void finish(struct bh_http_gated *c)
{
    if (c->phase == LINGER)
        return;
    if (c->tls)
        (void)gnutls_bye(c->tls, GNUTLS_SHUT_WR);
    if (!c->refused) {
        conn_end(c);
        return;
    }
    shutdown(c->fd, SHUT_WR);
    enter(c, LINGER);
}

/* No request: it is answered here, nothing goes in any more. */
static void refuse(struct bh_http_gated *c, int code, const char *text)
{
    count_refused(c->gate, "malformed");
    close_inner(c);
    c->pass_n = 0;
    bh_http_write_refusal(&c->out, code, text);
    c->moved_ms = uv_now(c->gate->s->loop);
    c->last = c->refused = true;
    enter(c, ANSWER);
    send_out(c);
}

/* What libmicrohttpd says. False: it has closed its end. */
static bool read_inner(struct bh_http_gated *c)
{
    while (c->poll && c->inner >= 0 && !unsent(c)) {
        ssize_t n = recv(c->inner, c->gate->buf, RECORD_BYTES, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return true;
        if (n <= 0)
            return false;
        if (c->faulty || (c->call && !c->call->seen)) {
            refuse(c, MHD_HTTP_BAD_REQUEST, bh_http_head_fault(-MHD_HTTP_BAD_REQUEST));
            break;
        }
        bh_buf_add(&c->out, c->gate->buf, (size_t)n);
        c->moved_ms = uv_now(c->gate->s->loop);
        send_out(c);
    }
    return true;
}

/* ---- to libmicrohttpd ------------------------------------------------------------------------ */

static bool make_inner(struct bh_http_gated *c)
{
    struct bh_http_gate *g = c->gate;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
        bh_http_tell_lack(g->s, errno);
        return false;
    }
    c->inner = pair[0];
    c->inner_poll = bh_calloc(1, sizeof(*c->inner_poll));
    if (uv_poll_init(g->s->loop, c->inner_poll, c->inner) < 0) {
        free(bh_take_ptr(c->inner_poll));
        close(pair[1]);
        return false;
    }
    c->inner_poll->data = c;
    g->adding = c;
    enum MHD_Result ok =
        MHD_add_connection(g->d->mhd, pair[1], (const struct sockaddr *)(const void *)&c->addr,
                           c->addr_n); /* takes it, also on failure */
    g->adding = NULL;
    return ok == MHD_YES && c->known;
}

void bh_http_gate_notify(void *cls, struct MHD_Connection *conn, void **context,
                         enum MHD_ConnectionNotificationCode what)
{
    struct bh_http_gate *g = ((struct bh_http_daemon *)cls)->gate;
    struct bh_http_gated *c = what == MHD_CONNECTION_NOTIFY_STARTED ? g->adding : *context;

    (void)conn;
    if (!c)
        return;
    c->known = what == MHD_CONNECTION_NOTIFY_STARTED;
    *context = c->known ? c : NULL;
}

/* Looked at in on_check, when libmicrohttpd is not on the stack. */
static void queue_up(struct bh_http_gated *c)
{
    struct bh_http_gate *g = c->gate;

    if (c->queued)
        return;
    c->queued = true;
    c->next_queued = g->queue;
    g->queue = c;
    if (!g->s->closing)
        uv_idle_start(&g->awake, on_awake);
}

void bh_http_gate_began(struct bh_http_call *call)
{
    const union MHD_ConnectionInfo *i =
        MHD_get_connection_info(call->conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct bh_http_gated *c = call->gated = i->socket_context;

    c->call = call;
    call->gone = !c->poll;
    call->r.tls = c->tls;
    bh_http_peer_text(&c->addr, call->r.peer);
}

void bh_http_gate_body(const struct bh_http_call *call, bool begins)
{
    struct bh_http_gated *c = call->gated;

    c->body = true;
    if (!c->poll)
        return;
    enter(c, begins ? BODY : ANSWER);
    queue_up(c);
}

void bh_http_gate_deferred(const struct bh_http_call *call)
{
    queue_up(call->gated);
}

bool bh_http_gate_bars(const struct bh_http_call *call, const char *path)
{
    const struct bh_http_gate *g = call->gated->gate;

    for (const char *const *p = g->reserve_paths; p && *p && path; p++) {
        size_t n = strlen(*p);
        if (strncmp(path, *p, n) == 0 && (!path[n] || path[n] == '/'))
            return false;
    }
    return call->gated->reserve;
}

void bh_http_gate_turned_away(const struct bh_http_call *call, const char *why)
{
    call->gated->body = true;
    count_refused(call->gated->gate, why);
}

/* libmicrohttpd is on the stack: the next request begins in on_check. */
void bh_http_gate_answered(const struct bh_http_call *call)
{
    call->gated->call = NULL;
    call->gated->faulty = !call->seen;
    call->gated->answered = true;
    queue_up(call->gated);
}

/* The part of `in` that may go in. */
static void pass_on(struct bh_http_gated *c)
{
    while (c->pass_n && c->inner >= 0) {
        ssize_t n = send(c->inner, c->in.p, c->pass_n, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0) { /* it has answered and closed: what it said is read next */
            c->pass_n = 0;
            return;
        }
        bh_buf_consume(&c->in, (size_t)n);
        c->pass_n -= (size_t)n;
    }
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Bytes of the head that p begins with, its last empty line included; 0: it has not all come yet;
 * -400: a line does not end with CR LF, holds a control character, or goes on in the next one, or
 * more than one blank stands between the words of the first.
 * *seen: bytes looked at before. */
static ssize_t head_size(const char *p, size_t n, size_t *seen)
{
    size_t skip = 0;

    /* Some clients end a body with an empty line of their own. */
    while (n - skip >= 2 && p[skip] == '\r' && p[skip + 1] == '\n')
        skip += 2;
    for (size_t i = BH_MAX(*seen, skip); i < n; i++) {
        unsigned char ch = (unsigned char)p[i], before = i > skip ? (unsigned char)p[i - 1] : 0;
        if (i >= BH_HTTP_HEAD_MAX)
            return memchr(p, '\n', BH_HTTP_HEAD_MAX) ? -431 : -414;
        if ((ch == '\n') != (before == '\r') || (before == '\n' && (ch == ' ' || ch == '\t')) ||
            (ch < ' ' && ch != '\r' && ch != '\n' && ch != '\t') || ch == 0x7f ||
            ((ch == '\t' || (ch == ' ' && before == ' ')) && !memchr(p + skip, '\n', i - skip)))
            return -400;
        if (ch == '\n' && i >= skip + 3 && p[i - 2] == '\n')
            return (ssize_t)i + 1;
    }
    *seen = n;
    return 0;
}

static void take_head(struct bh_http_gated *c)
{
    ssize_t used = head_size(c->in.p, c->in.n, &c->head_seen);

    if (used == 0)
        return;
    if (used < 0) {
        refuse(c, (int)-used, bh_http_head_fault(used));
        return;
    }
    enter(c, ANSWER);
    c->head_seen = 0;
    if (c->inner < 0 && !make_inner(c))
        conn_end(c);
    else
        c->pass_n = (size_t)used;
}

/* One record; false: there is none, or nothing is wanted now. */
static bool read_client(struct bh_http_gated *c)
{
    if (!c->poll || c->pass_n || (c->phase != HEAD && c->phase != BODY))
        return false;
    ssize_t n = bh_tls_read(c->tls, c->fd, c->gate->buf, RECORD_BYTES);
    if (n == -EAGAIN)
        return false;
    if (n <= 0) {
        conn_end(c);
        return false;
    }
    if (c->phase == HEAD && c->known && !c->in.n)
        c->since_ms = uv_now(c->gate->s->loop);
    bh_buf_add(&c->in, c->gate->buf, (size_t)n);
    return true;
}

/* As far as it goes without waiting. */
static void go_on(struct bh_http_gated *c)
{
    bool more = true;

    while (more && c->poll) {
        do {
            /* Out of what has come: what may go in. */
            if (c->phase == HEAD && c->in.n)
                take_head(c);
            else if (c->phase == BODY)
                c->pass_n = c->in.n;
            if (c->poll)
                pass_on(c);
        } while (read_client(c));
        if (c->poll && !read_inner(c)) {
            /* libmicrohttpd ends the connection, maybe before it has the whole request (413). */
            close_inner(c);
            c->refused = c->body;
            c->last = true;
            c->pass_n = 0;
            enter(c, ANSWER);
        }
        more = c->poll && c->answered && !unsent(c) && !c->flush && !c->last;
        if (more) {
            /* The answer is on its way. What came before the whole request had no reader: the
             * end. */
            c->answered = false;
            if (c->reserve || c->body || c->phase != ANSWER || c->pass_n)
                c->last = true;
            else
                enter(c, HEAD);
            if (!c->in.n)
                bh_buf_fini(&c->in);
        }
    }
    if (c->poll && c->last && !unsent(c) && !c->flush)
        finish(c);
    set_events(c);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void on_io(uv_poll_t *h, int status, int events)
{
    struct bh_http_gated *c = h->data;

    if (status < 0 || (events & UV_DISCONNECT)) {
        conn_end(c);
    } else if (c->phase == HANDSHAKE) {
        int rc = bh_tls_handshake(c->tls);
        if (rc > 0) {
            c->phase = HEAD;
            if (!c->reserve)
                enter(c, HEAD);
            go_on(c);
        } else if (rc < 0) {
            count_refused(c->gate, "handshake");
            conn_end(c);
        }
        set_events(c);
    } else if (c->phase == LINGER) {
        ssize_t n;
        while ((n = recv(c->fd, c->gate->buf, RECORD_BYTES, 0)) > 0) {
            c->lingered += (size_t)n;
            if (c->lingered > BH_HTTP_LINGER_BYTES)
                break;
        }
        if (n >= 0 || (errno != EAGAIN && errno != EINTR))
            conn_end(c);
    } else {
        if (events & UV_WRITABLE)
            send_out(c);
        if (c->poll)
            go_on(c);
    }
}

static void on_inner(uv_poll_t *h, int status, int events)
{
    (void)status, (void)events; /* what is wrong with it shows when it is read */
    go_on(h->data);
}

static void on_awake(uv_idle_t *h)
{
    (void)h; /* on_check does the work */
}

static void on_check(uv_check_t *h)
{
    struct bh_http_gate *g = ((struct bh_http_daemon *)h->data)->gate;

    uv_idle_stop(&g->awake);
    while (g->queue) {
        struct bh_http_gated *c = g->queue;
        g->queue = c->next_queued;
        c->queued = false;
        if (c->poll)
            go_on(c);
    }
    free_dead(g);
}

/* ---- which connections are taken ------------------------------------------------------------- */

/* An IPv6 host has at least 2^64 addresses: its network counts. */
static void set_key(struct bh_http_gated *c, bool *ret_loopback)
{
    const struct sockaddr_in *four = (const void *)&c->addr;
    const struct sockaddr_in6 *six = (const void *)&c->addr;
    const unsigned char *v4 = (const void *)&four->sin_addr;

    *ret_loopback = false;
    if (c->addr.ss_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
        memcpy(c->key, &six->sin6_addr, KEY_BYTES);
        *ret_loopback = IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
        return;
    }
    if (c->addr.ss_family == AF_INET6)
        v4 = &six->sin6_addr.s6_addr[12];
    memcpy(c->key, "\xff\xff\xff\xff", 4); /* of no network */
    memcpy(c->key + 4, v4, 4);
    *ret_loopback = v4[0] == 127;
}

/* The one that has come least far, the oldest of those, makes room. */
static bool make_room(struct bh_http_gate *g)
{
    struct bh_http_gated *victim = NULL;

    for (struct bh_http_gated *c = g->conns; c; c = c->next) /* the newest first */
        if (c->reserve && c->phase <= HEAD && (!victim || c->phase <= victim->phase))
            victim = c;
    if (!victim)
        return false;
    count_refused(g, "reserve");
    conn_end(victim);
    return true;
}

static bool let_in(struct bh_http_gate *g, struct bh_http_gated *c)
{
    bool loopback;
    unsigned held = 0;

    set_key(c, &loopback);
    for (const struct bh_http_gated *o = g->per_address ? g->conns : NULL; o; o = o->next)
        held += !o->reserve && memcmp(o->key, c->key, KEY_BYTES) == 0;
    bool crowd = g->per_address && held >= g->per_address;
    if (g->n < g->s->max_connections && !crowd)
        return true;
    c->reserve = true;
    if (loopback && g->reserve_max && (g->n_reserve < g->reserve_max || make_room(g)))
        return true;
    count_refused(g, crowd ? "address" : "full");
    return false;
}

static bool conn_new(struct bh_http_gate *g, struct bh_http_gated *c)
{
    if (g->s->tls && !(c->tls = bh_tls_session_new(g->s->tls, c->fd)))
        return false;
    c->poll = bh_calloc(1, sizeof(*c->poll));
    if (uv_poll_init(g->s->loop, c->poll, c->fd) < 0) { /* the loop has no room for it */
        free(c->poll);
        if (c->tls)
            bh_tls_session_free(c->tls);
        return false;
    }
    c->poll->data = c;
    c->gate = g;
    c->inner = -1;
    enter(c, c->tls ? HANDSHAKE : HEAD);
    c->next = g->conns;
    c->prev_next = &g->conns;
    if (c->next)
        c->next->prev_next = &c->next;
    g->conns = c;
    if (c->reserve)
        g->n_reserve++;
    else
        g->n++;
    show_open(g);
    set_events(c);
    return true;
}

static void on_listen(uv_poll_t *h, int status, int events)
{
    struct bh_http_gate *g = ((struct bh_http_daemon *)h->data)->gate;

    (void)status, (void)events;
    for (int i = 0; i < ACCEPTS; i++) {
        struct bh_http_gated new = {.addr_n = sizeof(new.addr)};
        if (!g->s->tls && g->n >= g->s->max_connections) { /* further clients wait */
            g->full = true;
            uv_poll_stop(&g->listen);
            return;
        }
        new.fd = accept4(g->s->listen_fd, (struct sockaddr *)(void *)&new.addr, &new.addr_n,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (new.fd < 0 && bh_err_lack(NULL, errno)) {
            bh_http_tell_lack(g->s, errno);
            g->full = true; /* the timer tries again */
            uv_poll_stop(&g->listen);
        }
        if (new.fd < 0)
            return;
        struct bh_http_gated *c = let_in(g, &new) ? bh_calloc(1, sizeof(*c)) : NULL;
        if (c)
            *c = new;
        if (!c || !conn_new(g, c)) {
            close(new.fd);
            free(c);
        }
    }
}

/* When it has gone on for too long; UINT64_MAX: it may go on. */
static uint64_t due_ms(const struct bh_http_gated *c)
{
    bool begun = c->in.n || (c->tls && !c->known);
    uint64_t idle_ms = c->gate->s->idle_ms;

    switch (c->phase) {
    case HANDSHAKE:
        return c->since_ms + (c->reserve ? RESERVE_MS : BH_HTTP_HANDSHAKE_MS);
    case HEAD:
        return c->since_ms + (c->reserve ? RESERVE_MS : begun ? HEAD_MS : idle_ms);
    case BODY:
        return c->since_ms + idle_ms;
    case ANSWER:
        return unsent(c) || c->flush ? c->moved_ms + idle_ms : UINT64_MAX;
    case LINGER:
        return c->since_ms + BH_HTTP_LINGER_MS;
    }
    return 0;
}

static void on_timer(uv_timer_t *t)
{
    struct bh_http_gate *g = ((struct bh_http_daemon *)t->data)->gate;
    uint64_t now = uv_now(g->s->loop);

    for (struct bh_http_gated *c = g->conns, *next; c; c = next) {
        next = c->next;
        if (now < due_ms(c))
            continue;
        if (c->phase < ANSWER && (c->phase != HEAD || c->in.n || (c->tls && !c->known)))
            count_refused(g, "slow");
        conn_end(c);
    }
    if (g->full)
        accept_again(g);
}

/* ---- life ------------------------------------------------------------------------------------ */

void bh_http_gate_start(struct bh_http_daemon *d, const struct bh_http_options *o)
{
    struct bh_http_gate *g = d->gate = bh_calloc(1, sizeof(*g));
    struct bh_http_server *s = g->s = &d->s;

    g->d = d;
    g->per_address = o->per_address;
    g->reserve_max = o->reserve;
    g->reserve_paths = o->reserve_paths;
    g->refused = o->refused;
    g->open = o->open;
    bh_http_own_handle(s, &g->listen, uv_poll_init(s->loop, &g->listen, s->listen_fd));
    bh_http_own_handle(s, &g->timer, uv_timer_init(s->loop, &g->timer));
    bh_http_own_handle(s, &g->check, uv_check_init(s->loop, &g->check));
    bh_http_own_handle(s, &g->awake, uv_idle_init(s->loop, &g->awake));
    uv_poll_start(&g->listen, UV_READABLE, on_listen);
    uv_timer_start(&g->timer, on_timer, TICK_MS, TICK_MS);
    uv_check_start(&g->check, on_check);
}

void bh_http_gate_close(struct bh_http_gate *g)
{
    while (g->conns)
        conn_end(g->conns);
    uv_poll_stop(&g->listen);
    close(g->s->listen_fd);
    uv_close((uv_handle_t *)&g->listen, bh_http_handle_closed);
    uv_close((uv_handle_t *)&g->timer, bh_http_handle_closed);
    uv_close((uv_handle_t *)&g->check, bh_http_handle_closed);
    uv_close((uv_handle_t *)&g->awake, bh_http_handle_closed);
}

void bh_http_gate_free(struct bh_http_gate *g)
{
    for (struct bh_http_gated *c = g->dead; c; c = c->next)
        c->known = c->queued = false;
    free_dead(g);
    free(g);
}
