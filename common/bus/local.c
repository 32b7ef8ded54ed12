/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/local.c - frames between processes of one host, over Unix sockets
 *
 * Owns:       an epoll set with the listener, the connections and a timer; it is what the owner
 *             waits for.
 * Invariants: a connection is in `ready` when memory may hold a frame of it, or its socket more
 * than was read; its socket is read only when memory holds no whole frame, so a peer is stopped by
 * the kernel's buffer. A connection that is `over` has nothing in `out`, and something unread.
 */
#include "common/bus/local.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#define MAGIC        "BRTH"
#define GREETING_MAX (sizeof(MAGIC) - 1 + sizeof(((struct bh_peer *)0)->id))
#define IN_BYTES     ((size_t)64 << 10) /* kept for a connection; larger frames borrow more */
#define RETRY_MS     20u
#define RETRY_MAX_MS 500u
#define BACKLOG      64
#define EVENTS       16
#define LOOK_EVERY   64u /* frames, however many more are in memory */

struct frame {
    TAILQ_ENTRY(frame) link;
    size_t n, sent;
    uint8_t bytes[];
};
TAILQ_HEAD(frames, frame);

struct conn {
    TAILQ_ENTRY(conn) link, next_ready;
    int fd;              /* -1: not connected */
    struct bh_peer peer; /* who connected; n = 0: has not said its name */
    bool ready, readable, wants_write;
    bool over; /* it has closed; what it sent before is still read */
    uint8_t *in;
    size_t in_cap, in_from, in_to;
    struct frames out;
    unsigned n_out;
    size_t out_bytes;
};

struct bh_local {
    struct bh_local_limits limits;
    char *path;
    struct conn *server; /* who connects: its only connection */
    struct bh_peer self;
    int epoll, listener, timer;
    unsigned retry_ms, n_conns, since_look;
    bool looked;
    TAILQ_HEAD(, conn) conns, ready; /* oldest first */
};

/* ---- connections -------------------------------------------------------------------------------
 */

static struct conn *conn_new(struct bh_local *l, int fd)
{
    struct conn *c = bh_calloc(1, sizeof(*c));

    c->fd = fd;
    TAILQ_INIT(&c->out);
    TAILQ_INSERT_TAIL(&l->conns, c, link);
    l->n_conns++;
    return c;
}

static void push_ready(struct bh_local *l, struct conn *c)
{
    if (c->ready)
        return;
    c->ready = true;
    TAILQ_INSERT_TAIL(&l->ready, c, next_ready);
}

static void drop_ready(struct bh_local *l, struct conn *c)
{
    if (c->ready)
        TAILQ_REMOVE(&l->ready, c, next_ready);
    c->ready = false;
}

static void drop_frame(struct conn *c, struct frame *f)
{
    TAILQ_REMOVE(&c->out, f, link);
    c->n_out--;
    c->out_bytes -= f->n;
    free(f);
}

static void conn_free(struct bh_local *l, struct conn *c)
{
    struct frame *f;

    drop_ready(l, c);
    while ((f = TAILQ_FIRST(&c->out)))
        drop_frame(c, f);
    if (c->fd >= 0)
        close(c->fd);
    TAILQ_REMOVE(&l->conns, c, link);
    l->n_conns--;
    free(c->in);
    free(c);
}

static void retry_later(struct bh_local *l)
{
    struct itimerspec at = {.it_value = {l->retry_ms / 1000, l->retry_ms % 1000 * 1000000L}};

    l->retry_ms = BH_MIN(2 * l->retry_ms, RETRY_MAX_MS);
    (void)timerfd_settime(l->timer, 0, &at, NULL);
}

/* The connection is over. Who listens forgets the peer; who connects keeps what has not begun to
 * leave. True: c is still there. */
static bool conn_end(struct bh_local *l, struct conn *c)
{
    struct frame *f = TAILQ_FIRST(&c->out);

    if (c != l->server) {
        conn_free(l, c);
        return false;
    }
    close(c->fd);
    c->fd = -1;
    c->readable = c->wants_write = false;
    c->in_from = c->in_to = 0;
    drop_ready(l, c);
    if (f && f->sent)
        drop_frame(c, f);
    retry_later(l);
    return true;
}

static bool frame_there(const struct conn *c);

static bool has_unread(const struct conn *c)
{
    char one;

    return frame_there(c) || recv(c->fd, &one, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Nothing can be sent any more. Who connected to us and left may have said something before, most
 * of all why: that is read first, and until then the peer is there but takes nothing. True: c is
 * still there. */
static bool conn_deaf(struct bh_local *l, struct conn *c)
{
    struct frame *f;

    if (c == l->server || !has_unread(c))
        return conn_end(l, c);
    while ((f = TAILQ_FIRST(&c->out)))
        drop_frame(c, f);
    c->over = c->readable = true;
    push_ready(l, c);
    return true;
}

static int watch(struct bh_local *l, int fd, uint32_t events, void *what, int op)
{
    struct epoll_event ev = {.events = events, .data.ptr = what};

    return epoll_ctl(l->epoll, op, fd, &ev) < 0 ? -errno : 0;
}

/* ---- out ---------------------------------------------------------------------------------------
 */

/* How many of the bytes left, 0 when the kernel takes none now; negative: the peer is gone. */
static ssize_t push(const struct conn *c, const uint8_t *p, size_t n)
{
    ssize_t k;

    do
        k = send(c->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (k < 0 && errno == EINTR);
    if (k < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS))
        return 0;
    return k;
}

static void want_write(struct bh_local *l, struct conn *c, bool want)
{
    if (c->fd < 0 || want == c->wants_write)
        return;
    c->wants_write = want;
    (void)watch(l, c->fd, EPOLLIN | (want ? EPOLLOUT : 0), c, EPOLL_CTL_MOD);
}

/* Sends what waits. False: it cannot be sent; c may be gone where it had connected to us. */
static bool flush(struct bh_local *l, struct conn *c)
{
    struct frame *f;

    while ((f = TAILQ_FIRST(&c->out))) {
        ssize_t k = push(c, f->bytes + f->sent, f->n - f->sent);
        if (k < 0) {
            (void)conn_deaf(l, c);
            return false;
        }
        f->sent += (size_t)k;
        if (f->sent < f->n)
            break;
        drop_frame(c, f);
    }
    want_write(l, c, !TAILQ_EMPTY(&c->out));
    return true;
}

static void enqueue(struct conn *c, const uint8_t *p, size_t n, size_t sent)
{
    struct frame *f = bh_malloc(sizeof(*f) + n);

    f->n = n;
    f->sent = sent;
    memcpy(f->bytes, p, n);
    TAILQ_INSERT_TAIL(&c->out, f, link);
    c->n_out++;
    c->out_bytes += n;
}

static struct conn *find(const struct bh_local *l, const struct bh_peer *peer)
{
    struct conn *c;

    TAILQ_FOREACH(c, &l->conns, link)
    if (c->peer.n == peer->n && memcmp(c->peer.id, peer->id, peer->n) == 0)
        return c;
    return NULL;
}

static struct conn *receiver(const struct bh_local *l, const struct bh_peer *to)
{
    return !to ? l->server : to->n ? find(l, to) : NULL;
}

/* ---- connecting and accepting ------------------------------------------------------------------
 */

static int unix_socket(const char *path, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(ret->sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(ret->sun_path, path, strlen(path) + 1);
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static bool greet(const struct bh_local *l, int fd)
{
    uint8_t hello[BH_LOCAL_HEADER + GREETING_MAX];
    const uint32_t n = (uint32_t)(sizeof(MAGIC) - 1 + l->self.n);

    memcpy(hello, &n, BH_LOCAL_HEADER);
    memcpy(hello + BH_LOCAL_HEADER, MAGIC, sizeof(MAGIC) - 1);
    memcpy(hello + BH_LOCAL_HEADER + sizeof(MAGIC) - 1, l->self.id, l->self.n);
    return send(fd, hello, BH_LOCAL_HEADER + n, MSG_NOSIGNAL) == (ssize_t)(BH_LOCAL_HEADER + n);
}

static void reach_out(struct bh_local *l)
{
    struct sockaddr_un sa;
    struct conn *c = l->server;
    int fd = unix_socket(l->path, &sa);

    if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || !greet(l, fd) ||
        watch(l, fd, EPOLLIN, c, EPOLL_CTL_ADD) < 0) {
        if (fd >= 0)
            close(fd);
        retry_later(l);
        return;
    }
    c->fd = fd;
    l->retry_ms = RETRY_MS;
    (void)flush(l, c);
}

/* Room for one more: somebody who has not said its name goes. */
static void make_room(struct bh_local *l)
{
    struct conn *c;

    if (l->n_conns < BH_LOCAL_CONNECTIONS)
        return;
    TAILQ_FOREACH(c, &l->conns, link)
    if (!c->peer.n)
        break;
    if (c)
        conn_free(l, c);
}

static void accept_all(struct bh_local *l)
{
    int fd;

    while ((fd = accept4(l->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        make_room(l);
        if (l->n_conns >= BH_LOCAL_CONNECTIONS) {
            close(fd);
            continue;
        }
        struct conn *c = conn_new(l, fd);
        if (watch(l, fd, EPOLLIN, c, EPOLL_CTL_ADD) < 0)
            conn_free(l, c);
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
        (void)watch(l, l->listener, 0, NULL, EPOLL_CTL_MOD); /* it would keep us awake */
        retry_later(l);
    }
}

static void on_timer(struct bh_local *l)
{
    uint64_t times;

    (void)!read(l->timer, &times, sizeof(times));
    if (l->server && l->server->fd < 0)
        reach_out(l);
    else if (l->listener >= 0)
        (void)watch(l, l->listener, EPOLLIN, NULL, EPOLL_CTL_MOD);
}

/* The first frame of who connected to us. */
static bool take_name(struct bh_local *l, struct conn *c, const uint8_t *p, size_t n)
{
    const size_t magic = sizeof(MAGIC) - 1;
    struct bh_peer peer = {.n = 0};
    struct conn *former;

    if (n <= magic || n - magic > sizeof(peer.id) || memcmp(p, MAGIC, magic) != 0)
        return false;
    peer.n = (uint8_t)(n - magic);
    memcpy(peer.id, p + magic, peer.n);
    former = find(l, &peer);
    if (former)
        conn_free(l, former);
    c->peer = peer;
    return true;
}

/* ---- in ----------------------------------------------------------------------------------------
 */

/* Bytes of the frame that in_from is at, header included; 0: not even the header is there. */
static size_t frame_size(const struct conn *c)
{
    uint32_t n;

    if (c->in_to - c->in_from < BH_LOCAL_HEADER)
        return 0;
    memcpy(&n, c->in + c->in_from, sizeof(n));
    return BH_LOCAL_HEADER + (size_t)n;
}

static bool frame_there(const struct conn *c)
{
    size_t n = frame_size(c);

    return n && c->in_to - c->in_from >= n;
}

static void make_space(struct conn *c)
{
    size_t want = BH_MAX(IN_BYTES, frame_size(c));

    if (c->in_from) {
        memmove(c->in, c->in + c->in_from, c->in_to - c->in_from);
        c->in_to -= c->in_from;
        c->in_from = 0;
    }
    if (c->in_cap < want || (c->in_cap > IN_BYTES && want == IN_BYTES && c->in_to <= IN_BYTES)) {
        c->in = bh_realloc(c->in, want);
        c->in_cap = want;
    }
}

/* Reads until memory holds a whole frame. False: it does not, or the connection ended. The limit is
 * looked at first: a frame that is too large may have come whole, with one read. */
static bool fill(struct bh_local *l, struct conn *c)
{
    const size_t max = c == l->server || c->peer.n ? l->limits.frame_bytes : GREETING_MAX;

    for (;;) {
        ssize_t n;
        if (frame_size(c) > BH_LOCAL_HEADER + max) {
            (void)conn_end(l, c);
            return false;
        }
        if (frame_there(c))
            return true;
        if (!c->readable)
            return false;
        make_space(c);
        n = recv(c->fd, c->in + c->in_to, c->in_cap - c->in_to, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) {
            (void)conn_end(l, c);
            return false;
        }
        n = BH_MAX(n, 0);
        c->in_to += (size_t)n;
        c->readable = c->in_to == c->in_cap; /* else the kernel had no more */
    }
}

/* Asks the kernel once, without waiting. */
static void look(struct bh_local *l)
{
    struct epoll_event ev[EVENTS];
    int n = epoll_wait(l->epoll, ev, EVENTS, 0);
    bool knocked = false;

    l->looked = n < EVENTS;
    l->since_look = 0;
    for (int i = 0; i < n; i++) {
        struct conn *c = ev[i].data.ptr;
        if (!c) {
            knocked = true; /* last: it may end a connection that is in ev */
        } else if ((void *)c == (void *)l) {
            on_timer(l);
        } else if (!(ev[i].events & EPOLLOUT) || flush(l, c)) {
            if (!(ev[i].events & ~(uint32_t)EPOLLOUT))
                continue;
            c->readable = true;
            push_ready(l, c);
        }
    }
    if (knocked)
        accept_all(l);
}

enum bh_bus_outcome bh_local_send(struct bh_local *l, const struct bh_peer *to, uint8_t *frame,
                                  size_t n)
{
    const uint32_t bytes = (uint32_t)(n - BH_LOCAL_HEADER);
    struct conn *c = receiver(l, to);
    ssize_t sent = 0;

    if (c && (c->fd < 0 || c->n_out)) { /* what is in the way may have gone */
        look(l);
        c = receiver(l, to);
    }
    if (!c)
        return BH_BUS_NO_PEER;
    memcpy(frame, &bytes, sizeof(bytes));
    if (c->n_out && (c->n_out >= l->limits.frames || c->out_bytes + n > l->limits.queued_bytes))
        return BH_BUS_FULL;
    if (c->fd >= 0 && !c->n_out)
        sent = c->over ? -1 : push(c, frame, n);
    if (sent < 0 && !conn_deaf(l, c))
        return BH_BUS_NO_PEER;
    if (c->over)
        return BH_BUS_FULL;
    sent = BH_MAX(sent, 0);
    if ((size_t)sent == n)
        return BH_BUS_OK;
    enqueue(c, frame, n, (size_t)sent);
    want_write(l, c, true);
    return BH_BUS_OK;
}

bool bh_local_next(struct bh_local *l, struct bh_peer *ret_from, const uint8_t **ret_p,
                   size_t *ret_n)
{
    for (;;) {
        struct conn *c = TAILQ_FIRST(&l->ready);
        if (!c && l->looked) {
            l->looked = false;
            return false;
        }
        if (!c || ++l->since_look > LOOK_EVERY) {
            look(l);
            continue;
        }
        drop_ready(l, c);
        if (!fill(l, c))
            continue;
        const uint8_t *p = c->in + c->in_from + BH_LOCAL_HEADER;
        size_t n = frame_size(c) - BH_LOCAL_HEADER;
        bool named = c == l->server || c->peer.n;
        c->in_from += BH_LOCAL_HEADER + n;
        if (!named && !take_name(l, c, p, n)) {
            (void)conn_end(l, c);
            continue;
        }
        if (c->readable || frame_there(c))
            push_ready(l, c);
        if (!named)
            continue;
        *ret_from = c->peer;
        *ret_p = p;
        *ret_n = n;
        return true;
    }
}

/* ---- life --------------------------------------------------------------------------------------
 */

static int local_new(const char *path, const struct bh_local_limits *limits, struct bh_local **ret,
                     struct bh_err *err)
{
    struct bh_local *l = bh_calloc(1, sizeof(*l));

    l->limits = *limits;
    l->path = bh_strdup(path);
    l->retry_ms = RETRY_MS;
    l->listener = -1;
    TAILQ_INIT(&l->conns);
    TAILQ_INIT(&l->ready);
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    l->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (l->epoll < 0 || l->timer < 0 || watch(l, l->timer, EPOLLIN, l, EPOLL_CTL_ADD) < 0) {
        int rc = bh_err_set(err, -errno, "message socket: %s", strerror(errno));
        bh_local_close(l, 0);
        return rc;
    }
    *ret = l;
    return 0;
}

static int listen_at(struct bh_local *l, const char *path)
{
    struct sockaddr_un sa;

    l->listener = unix_socket(path, &sa);
    if (l->listener < 0)
        return -errno;
    (void)unlink(path); /* a dead one, if any: the caller looked */
    if (bind(l->listener, (struct sockaddr *)&sa, sizeof(sa)) < 0 ||
        listen(l->listener, BACKLOG) < 0)
        return -errno;
    return watch(l, l->listener, EPOLLIN, NULL, EPOLL_CTL_ADD);
}

int bh_local_listen(const char *path, const struct bh_local_limits *limits, struct bh_local **ret,
                    struct bh_err *err)
{
    struct bh_local *l = NULL;
    int rc = local_new(path, limits, &l, err);

    if (rc < 0)
        return rc;
    rc = listen_at(l, path);
    if (rc < 0) {
        bh_local_close(l, 0);
        return bh_err_set(err, rc, "socket \"%s\": %s", path, strerror(-rc));
    }
    *ret = l;
    return 0;
}

int bh_local_connect(const char *path, const char *name, const struct bh_local_limits *limits,
                     struct bh_local **ret, struct bh_err *err)
{
    struct bh_local *l = NULL;
    int rc = local_new(path, limits, &l, err);

    if (rc < 0)
        return rc;
    bh_assert(strlen(name) <= sizeof(l->self.id));
    l->self.n = (uint8_t)strlen(name);
    memcpy(l->self.id, name, l->self.n);
    l->server = conn_new(l, -1);
    reach_out(l);
    *ret = l;
    return 0;
}

static bool waiting_to_leave(const struct bh_local *l)
{
    const struct conn *c;

    TAILQ_FOREACH(c, &l->conns, link)
    if (c->fd >= 0 && c->n_out)
        return true;
    return false;
}

void bh_local_close(struct bh_local *l, int linger_ms)
{
    uint64_t until = bh_mono_ns() + (uint64_t)linger_ms * 1000000;
    struct conn *c, *next;

    if (!l)
        return;
    while (linger_ms > 0 && waiting_to_leave(l) && bh_mono_ns() < until) {
        (void)poll(NULL, 0, 1);
        for (c = TAILQ_FIRST(&l->conns); c; c = next) {
            next = TAILQ_NEXT(c, link);
            if (c->fd >= 0)
                (void)flush(l, c);
        }
    }
    while ((c = TAILQ_FIRST(&l->conns)))
        conn_free(l, c);
    if (l->listener >= 0)
        close(l->listener);
    if (l->timer >= 0)
        close(l->timer);
    if (l->epoll >= 0)
        close(l->epoll);
    free(l->path);
    free(l);
}

int bh_local_fd(const struct bh_local *l)
{
    return l->epoll;
}

bool bh_local_pending(const struct bh_local *l)
{
    return !TAILQ_EMPTY(&l->ready);
}
