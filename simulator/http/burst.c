/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/http/burst.c - many small requests over few plain HTTP/1.1 connections, pipelined
 *
 * Owns:       the queue of requests, the connections and what is on their wires.
 * Invariants: a request is in exactly one list: waiting, or one connection's (in the order sent,
 *             the first n_out - n_unsent of them wholly sent, of the next one sent_n bytes).
 *             A connection's lists are empty unless it is open.
 * Runs in:    the loop thread. Requests leave in the prepare phase, right before the loop polls, so
 *             that all of one turn share a system call; answers are read when the socket is ready.
 */
#include "simulator/http/burst.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "simulator/http/answer.h"

#define DEPTH_DEFAULT   64u
#define SILENCE_DEFAULT UINT64_C(30000000000)
#define REPLY_DEFAULT   ((size_t)64 << 20)
#define READ_BYTES      ((size_t)128 << 10)
#define READS_PER_TURN  16
#define IOV_AT_ONCE     64

struct request {
    struct request *next;
    void (*on_done)(void *arg, const struct bh_burst_reply *r);
    void *arg;
    size_t n;
    char text[];
};
struct queue {
    struct request *first, **last;
    size_t n;
};
enum state { CLOSED, CONNECTING, OPEN };
struct conn {
    struct bh_burst *b;
    enum state state;
    int fd;
    uv_poll_t *poll; /* freed by its close callback */
    int events;      /* what poll waits for */
    const struct addrinfo *addr;
    struct queue out;       /* on the wire or about to be */
    struct request *unsent; /* the first of out that is not wholly sent, NULL = none */
    size_t sent_n;          /* bytes of it that are */
    struct bh_buf in;       /* the answer under way, from its first byte on */
    struct bh_http_answer answer;
    uint64_t last_ns; /* when bytes came, or the wire was last empty */
};
struct bh_burst {
    uv_loop_t *loop;
    uv_prepare_t prepare;
    uv_timer_t timer;
    unsigned open_handles;
    char *head; /* " HTTP/1.1\r\nHost: ...\r\n" and the caller's lines */
    size_t head_n;
    struct addrinfo *addrs;
    struct sockaddr_un un;
    struct addrinfo un_addr;
    unsigned depth, n_conns;
    uint64_t silence_ns;
    size_t max_reply_bytes;
    struct queue waiting;
    size_t total;
    bool in_callback;
    struct conn *conns;
};

static void on_ready(uv_poll_t *h, int status, int events);

/* ---- queues ---------------------------------------------------------------------------------- */

static void queue_add(struct queue *q, struct request *r)
{
    if (!q->first)
        q->last = &q->first;
    r->next = NULL;
    *q->last = r;
    q->last = &r->next;
    q->n++;
}

static struct request *queue_take(struct queue *q)
{
    struct request *r = q->first;

    q->first = r->next;
    q->n--;
    return r;
}

/* All of `more` before what q has. */
static void queue_put_back(struct queue *q, struct queue *more)
{
    if (!more->first)
        return;
    *more->last = q->n ? q->first : NULL;
    if (q->n)
        more->last = q->last;
    more->n += q->n;
    *q = *more;
    *more = (struct queue){0};
}

static void finish(struct bh_burst *b, struct request *r, const struct bh_burst_reply *reply)
{
    b->total--;
    b->in_callback = true;
    r->on_done(r->arg, reply);
    b->in_callback = false;
    free(r);
}

static void fail_all(struct bh_burst *b, struct queue *q, int error, bool sent)
{
    const struct bh_burst_reply reply = {.error = error, .sent = sent, .retry_after_s = -1};
    struct queue mine = *q;

    *q = (struct queue){0}; /* callbacks may add new ones */
    while (mine.n)
        finish(b, queue_take(&mine), &reply);
}

/* ---- connections ----------------------------------------------------------------------------- */

static void free_poll(uv_handle_t *h)
{
    free(h);
}

static void wait_for(struct conn *c, int events)
{
    if (c->events != events)
        uv_poll_start(c->poll, events, on_ready);
    c->events = events;
}

static void close_fd(struct conn *c)
{
    if (c->state == CLOSED)
        return;
    uv_poll_stop(c->poll);
    uv_close((uv_handle_t *)c->poll, free_poll);
    close(c->fd);
    c->state = CLOSED;
    c->events = 0;
    bh_buf_reset(&c->in);
    bh_http_answer_reset(&c->answer);
}

/* The connection is over. What was not sent goes back; the rest, too, when the server has said that
 * it will not look at it, else it fails. */
static void conn_end(struct conn *c, int error, bool untouched)
{
    struct bh_burst *b = c->b;
    struct queue lost = {0}, back = {0};

    while (c->out.n) {
        bool cut = c->out.first == c->unsent && c->sent_n;
        untouched |= c->out.first == c->unsent && !cut;
        queue_add(untouched ? &back : &lost, queue_take(&c->out));
        untouched |= cut; /* what comes behind it has not begun */
    }
    c->unsent = NULL;
    c->sent_n = 0;
    close_fd(c);
    queue_put_back(&b->waiting, &back);
    fail_all(b, &lost, error, true);
}

static int open_socket(struct conn *c)
{
    int one = 1;

    c->fd = socket(c->addr->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->fd < 0)
        return -errno;
    if (c->addr->ai_family != AF_UNIX)
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (connect(c->fd, c->addr->ai_addr, c->addr->ai_addrlen) < 0 && errno != EINPROGRESS) {
        int rc = -errno;
        close(c->fd);
        return rc;
    }
    return 0;
}

/* Tries addresses from c->addr on. When none is left and no other connection is open, what
 * waits fails. */
static void conn_start(struct conn *c, int error)
{
    struct bh_burst *b = c->b;

    for (; c->addr; c->addr = c->addr->ai_next) {
        int rc = open_socket(c);
        if (rc == 0) {
            c->poll = bh_calloc(1, sizeof(*c->poll));
            uv_poll_init(b->loop, c->poll, c->fd);
            c->poll->data = c;
            c->state = CONNECTING;
            c->last_ns = bh_mono_ns();
            wait_for(c, UV_WRITABLE);
            return;
        }
        error = rc;
    }
    for (unsigned i = 0; i < b->n_conns; i++)
        if (b->conns[i].state != CLOSED)
            return;
    fail_all(b, &b->waiting, error, false);
}

static void on_connected(struct conn *c)
{
    int error = 0;
    socklen_t n = sizeof(error);

    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
        error = errno;
    if (error) {
        close_fd(c);
        c->addr = c->addr->ai_next;
        conn_start(c, -error);
        return;
    }
    c->state = OPEN;
    wait_for(c, UV_READABLE); /* requests leave in the prepare phase of this turn */
}

/* ---- out ------------------------------------------------------------------------------------- */

/* The open connection with the fewest requests and room for one more; NULL = none. */
static struct conn *least_busy(struct bh_burst *b)
{
    struct conn *best = NULL;

    for (unsigned i = 0; i < b->n_conns; i++) {
        struct conn *c = &b->conns[i];
        if (c->state == OPEN && c->out.n < b->depth && (!best || c->out.n < best->out.n))
            best = c;
    }
    return best;
}

static void hand_out(struct bh_burst *b)
{
    struct conn *c;

    while (b->waiting.n && (c = least_busy(b))) {
        struct request *r = queue_take(&b->waiting);
        if (!c->out.n)
            c->last_ns = bh_mono_ns();
        queue_add(&c->out, r);
        if (!c->unsent)
            c->unsent = r;
    }
}

static void account(struct conn *c, size_t n)
{
    while (c->unsent && n >= c->unsent->n - c->sent_n) {
        n -= c->unsent->n - c->sent_n;
        c->unsent = c->unsent->next;
        c->sent_n = 0;
    }
    c->sent_n += c->unsent ? n : 0;
}

static void push(struct conn *c)
{
    while (c->unsent) {
        struct iovec iov[IOV_AT_ONCE];
        struct msghdr msg = {.msg_iov = iov};
        size_t skip = c->sent_n;
        for (struct request *r = c->unsent; r && msg.msg_iovlen < IOV_AT_ONCE; r = r->next) {
            iov[msg.msg_iovlen++] = (struct iovec){r->text + skip, r->n - skip};
            skip = 0;
        }
        ssize_t n = sendmsg(c->fd, &msg, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN) {
            /* What was answered before the end can still be read: the reader finds the end. */
            wait_for(c, UV_READABLE);
            return;
        }
        if (n < 0)
            break;
        account(c, (size_t)n);
    }
    wait_for(c, c->unsent ? UV_READABLE | UV_WRITABLE : UV_READABLE);
}

static void on_prepare(uv_prepare_t *h)
{
    struct bh_burst *b = h->data;
    struct conn *closed = NULL;
    size_t open = 0, connecting = 0;

    for (unsigned i = 0; i < b->n_conns; i++) {
        struct conn *c = &b->conns[i];
        open += c->state == OPEN;
        connecting += c->state == CONNECTING;
        if (c->state == CLOSED && !closed)
            closed = c;
    }
    /* As many as there are requests, one after the other: a refusal is then heard once. */
    if (closed && !connecting && b->waiting.n && b->total > open) {
        closed->addr = b->addrs;
        conn_start(closed, -EHOSTUNREACH);
    }
    hand_out(b);
    for (unsigned i = 0; i < b->n_conns; i++)
        if (b->conns[i].state == OPEN)
            push(&b->conns[i]);
}

/* ---- in -------------------------------------------------------------------------------------- */

/* False when the connection is over. */
static bool take_answers(struct conn *c)
{
    size_t at = 0;

    while (at < c->in.n) {
        ssize_t used =
            bh_http_answer_take(&c->answer, c->in.p + at, c->in.n - at, c->b->max_reply_bytes);
        if (used == 0)
            break;
        if (used < 0 || !c->out.n || (c->out.first == c->unsent && !c->sent_n)) {
            conn_end(c, used < 0 ? (int)used : -EBADMSG, false);
            return false;
        }
        at += (size_t)used;
        struct bh_http_answer *a = &c->answer;
        bool over = a->close;
        if (a->code >= 200 && c->out.first == c->unsent) { /* it did not wait for all of the body */
            c->unsent = c->unsent->next;
            c->sent_n = 0;
            over = true;
        }
        if (a->code >= 200)
            finish(c->b, queue_take(&c->out),
                   &(struct bh_burst_reply){
                       .code = a->code, .retry_after_s = a->retry_after_s, .body = a->body});
        bh_http_answer_reset(a);
        if (over) {
            conn_end(c, -ECONNRESET, true);
            return false;
        }
    }
    bh_buf_consume(&c->in, at);
    return true;
}

static void on_readable(struct conn *c)
{
    for (int i = 0; i < READS_PER_TURN; i++) {
        bh_buf_reserve(&c->in, READ_BYTES);
        size_t room = c->in.cap - c->in.n - 1;
        ssize_t n = recv(c->fd, c->in.p + c->in.n, room, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            conn_end(c, n < 0 ? -errno : -ECONNRESET, false);
            return;
        }
        c->in.n += (size_t)n;
        c->in.p[c->in.n] = '\0';
        c->last_ns = uv_now(c->b->loop) * 1000000;
        if (!take_answers(c) || (size_t)n < room)
            return;
    }
}

static void on_ready(uv_poll_t *h, int status, int events)
{
    struct conn *c = h->data;

    if (c->state == CONNECTING) {
        on_connected(c);
        return;
    }
    if (status < 0 || (events & UV_READABLE))
        on_readable(c);
    if (c->state == OPEN && (events & UV_WRITABLE))
        push(c);
}

static void on_timer(uv_timer_t *t)
{
    struct bh_burst *b = t->data;
    uint64_t now = bh_mono_ns();

    for (unsigned i = 0; i < b->n_conns; i++) {
        struct conn *c = &b->conns[i];
        if (c->state == CLOSED || now < c->last_ns + b->silence_ns)
            continue;
        if (c->state == CONNECTING) {
            close_fd(c);
            c->addr = NULL;
            conn_start(c, -ETIMEDOUT);
        } else if (c->out.n) {
            conn_end(c, -ETIMEDOUT, false);
        }
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

/* "http://HOST:PORT" or "http://[V6]:PORT"; a path behind it is left out. */
static int split_server(const char *url, char host[static 256], char port[static 8],
                        struct bh_err *err)
{
    const char *at = url + 7;

    if (strncmp(url, "http://", 7) != 0)
        return bh_err_set(err, -EPROTONOSUPPORT, "%s: want http://HOST:PORT", url);
    size_t all = strcspn(at, "/");
    const char *end = *at == '[' ? memchr(at, ']', all) : NULL;
    if (*at == '[' && !end)
        return bh_err_set(err, -EINVAL, "%s: no end of the address", url);
    const char *colon = memchr(end ? end : at, ':', (size_t)(at + all - (end ? end : at)));
    const char *from = end ? at + 1 : at, *stop = end ? end : colon ? colon : at + all;
    size_t port_n = colon ? (size_t)(at + all - colon) - 1 : 2;
    if (stop == from || stop - from > 255 || !port_n || port_n > 5)
        return bh_err_set(err, -EINVAL, "%s: want http://HOST:PORT", url);
    snprintf(host, 256, "%.*s", (int)(stop - from), from);
    snprintf(port, 8, "%.*s", (int)port_n, colon ? colon + 1 : "80");
    return 0;
}

static int look_up(struct bh_burst *b, const struct bh_burst_options *o, struct bh_err *err)
{
    char host[256], port[8];
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    int rc = split_server(o->server, host, port, err);

    if (rc < 0)
        return rc;
    b->head = bh_asprintf(" HTTP/1.1\r\nHost: %s%s%s:%s\r\n%s", strchr(host, ':') ? "[" : "", host,
                          strchr(host, ':') ? "]" : "", port, o->headers ? o->headers : "");
    b->head_n = strlen(b->head);
    if (!o->unix_socket) {
        rc = getaddrinfo(host, port, &hints, &b->addrs);
        return rc ? bh_err_set(err, -EHOSTUNREACH, "%s: %s", o->server, gai_strerror(rc)) : 0;
    }
    if (strlen(o->unix_socket) >= sizeof(b->un.sun_path))
        return bh_err_set(err, -EINVAL, "%s: the path of a socket is too long", o->unix_socket);
    b->un.sun_family = AF_UNIX;
    memcpy(b->un.sun_path, o->unix_socket, strlen(o->unix_socket) + 1);
    b->un_addr = (struct addrinfo){.ai_family = AF_UNIX,
                                   .ai_addr = (struct sockaddr *)(void *)&b->un,
                                   .ai_addrlen = sizeof(b->un)};
    b->addrs = &b->un_addr;
    return 0;
}

static void free_burst(struct bh_burst *b)
{
    if (b->addrs && b->addrs != &b->un_addr)
        freeaddrinfo(b->addrs);
    for (unsigned i = 0; i < b->n_conns; i++) {
        bh_buf_fini(&b->conns[i].in);
        bh_http_answer_fini(&b->conns[i].answer);
    }
    free(b->conns);
    free(b->head);
    free(b);
}

int bh_burst_new(uv_loop_t *loop, const struct bh_burst_options *o, struct bh_burst **ret,
                 struct bh_err *err)
{
    struct bh_burst *b = bh_calloc(1, sizeof(*b));
    int rc = look_up(b, o, err);

    if (rc < 0) {
        free_burst(b);
        return rc;
    }
    b->loop = loop;
    b->n_conns = o->connections ? o->connections : 1;
    b->depth = o->depth ? o->depth : DEPTH_DEFAULT;
    b->silence_ns = o->silence_ns ? o->silence_ns : SILENCE_DEFAULT;
    b->max_reply_bytes = o->max_reply_bytes ? o->max_reply_bytes : REPLY_DEFAULT;
    b->conns = bh_calloc(b->n_conns, sizeof(*b->conns));
    for (unsigned i = 0; i < b->n_conns; i++) {
        b->conns[i].b = b;
        bh_http_answer_reset(&b->conns[i].answer);
    }
    uv_prepare_init(loop, &b->prepare);
    uv_timer_init(loop, &b->timer);
    b->open_handles = 2;
    b->prepare.data = b->timer.data = b;
    uv_prepare_start(&b->prepare, on_prepare);
    uint64_t ms = BH_MAX(b->silence_ns / 4000000, UINT64_C(1));
    uv_timer_start(&b->timer, on_timer, ms, ms);
    *ret = b;
    return 0;
}

void bh_burst_send(struct bh_burst *b, const struct bh_burst_call *call)
{
    char length[64];
    size_t method_n = strlen(call->method), path_n = strlen(call->path), length_n = 0;
    size_t type_n = call->content_type ? strlen(call->content_type) : 0;
    size_t more_n = call->headers ? strlen(call->headers) : 0;

    if (call->body.n || type_n)
        length_n =
            (size_t)snprintf(length, sizeof(length), "\r\nContent-Length: %zu\r\n", call->body.n);
    size_t n = method_n + 1 + path_n + b->head_n + more_n + length_n + call->body.n + 2;
    if (length_n)
        n += sizeof("Content-Type: ") - 1 + type_n;
    struct request *r = bh_malloc(sizeof(*r) + n);
    char *at = r->text;
#define PUT(p, len) (at = (char *)mempcpy(at, (p), (len)))
    PUT(call->method, method_n);
    *at++ = ' ';
    PUT(call->path, path_n);
    PUT(b->head, b->head_n);
    PUT(more_n ? call->headers : "", more_n);
    if (length_n) {
        PUT("Content-Type: ", sizeof("Content-Type: ") - 1);
        PUT(type_n ? call->content_type : "", type_n);
        PUT(length, length_n);
    }
    PUT("\r\n", 2);
    if (call->body.n)
        PUT(call->body.p, call->body.n);
#undef PUT
    r->n = (size_t)(at - r->text);
    bh_assert(r->n <= n);
    r->on_done = call->on_done;
    r->arg = call->arg;
    queue_add(&b->waiting, r);
    b->total++;
}

static void on_handle_closed(uv_handle_t *h)
{
    struct bh_burst *b = h->data;

    if (--b->open_handles == 0)
        free_burst(b);
}

void bh_burst_free(struct bh_burst *b)
{
    if (!b)
        return;
    bh_assert(!b->in_callback);
    for (unsigned i = 0; i < b->n_conns; i++)
        conn_end(&b->conns[i], -ECANCELED, false);
    fail_all(b, &b->waiting, -ECANCELED, false);
    uv_close((uv_handle_t *)&b->prepare, on_handle_closed);
    uv_close((uv_handle_t *)&b->timer, on_handle_closed);
}
