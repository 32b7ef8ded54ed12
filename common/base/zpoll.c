/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/zpoll.c - a ZeroMQ socket on a libuv loop
 *
 * ZMQ_FD only says "the socket's state may have changed", once per change, and any send, receive or
 * look at ZMQ_EVENTS consumes that edge. So readiness of the descriptor is used for waking up and
 * nothing else:
 *   before the loop sleeps (prepare): look at ZMQ_EVENTS; work -> do not sleep (idle handle)
 *   after it polled (check):          work -> receive
 * A look at ZMQ_EVENTS costs a poll(2); it happens once before each sleep, and once after it when
 * the descriptor ended it or there was work before.
 *
 * Runs in:    the loop thread, which owns the socket.
 */
#include "common/base/loop.h"

#include <errno.h>
#include <zmq.h>

struct bh_zpoll {
    void *socket;
    bool (*on_readable)(void *);
    void *arg;
    bool more;    /* the last burst hit its bound: there is work without asking */
    bool closing; /* a callback closed us */
    bool woken;   /* the descriptor was readable, or there was work before the loop polled */
    unsigned open;
    uv_poll_t poll;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_idle_t idle;
};

static bool readable(const struct bh_zpoll *z)
{
    int events = 0;
    size_t n = sizeof(events);

    while (zmq_getsockopt(z->socket, ZMQ_EVENTS, &events, &n) < 0) {
        if (zmq_errno() != EINTR)
            return false; /* ETERM: the owner is about to close us */
    }
    return events & ZMQ_POLLIN;
}

static void on_idle(uv_idle_t *h)
{
    (void)h; /* exists so that the loop polls without waiting */
}

static void on_fd(uv_poll_t *h, int status, int events)
{
    struct bh_zpoll *z = h->data;

    (void)status, (void)events;
    z->woken = true; /* the loop is awake; check does the work */
}

static void on_prepare(uv_prepare_t *h)
{
    struct bh_zpoll *z = h->data;
    if (z->more || readable(z)) {
        uv_idle_start(&z->idle, on_idle);
        z->woken = true;
    }
}

static void on_check(uv_check_t *h)
{
    struct bh_zpoll *z = h->data;

    uv_idle_stop(&z->idle);
    if (!z->woken)
        return;
    z->woken = false;
    z->more = readable(z) && z->on_readable(z->arg);
}

static void init_handle(struct bh_zpoll *z, void *h, int rc)
{
    bh_assert(rc == 0);
    ((uv_handle_t *)h)->data = z;
    z->open++;
}

struct bh_zpoll *bh_zpoll_new(uv_loop_t *loop, void *zmq_socket, bool (*on_readable)(void *),
                              void *arg)
{
    int fd;
    size_t n = sizeof(fd);
    int rc = zmq_getsockopt(zmq_socket, ZMQ_FD, &fd, &n);
    bh_assert(rc == 0);

    struct bh_zpoll *z = bh_calloc(1, sizeof(*z));
    z->socket = zmq_socket;
    z->on_readable = on_readable;
    z->arg = arg;
    init_handle(z, &z->poll, uv_poll_init(loop, &z->poll, fd));
    init_handle(z, &z->prepare, uv_prepare_init(loop, &z->prepare));
    init_handle(z, &z->check, uv_check_init(loop, &z->check));
    init_handle(z, &z->idle, uv_idle_init(loop, &z->idle));
    uv_poll_start(&z->poll, UV_READABLE, on_fd);
    uv_prepare_start(&z->prepare, on_prepare);
    uv_check_start(&z->check, on_check);
    return z;
}

static void on_closed(uv_handle_t *h)
{
    struct bh_zpoll *z = h->data;
    if (--z->open == 0)
        free(z);
}

void bh_zpoll_close(struct bh_zpoll *z)
{
    if (!z || z->closing)
        return;
    z->closing = true;
    uv_close((uv_handle_t *)&z->poll, on_closed);
    uv_close((uv_handle_t *)&z->prepare, on_closed);
    uv_close((uv_handle_t *)&z->check, on_closed);
    uv_close((uv_handle_t *)&z->idle, on_closed);
}
