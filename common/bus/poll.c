/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/poll.c - a bus on a libuv loop
 *
 * ZMQ_FD only says "the socket's state may have changed", once per change, and any send, receive or
 * look at ZMQ_EVENTS consumes that edge. So readiness of the descriptor is used for waking up and
 * nothing else:
 *   before the loop sleeps (prepare): look at ZMQ_EVENTS; work -> do not sleep (idle handle)
 *   after it polled (check):          work -> receive
 * A look at ZMQ_EVENTS costs a poll(2); it happens before a sleep when the socket was used since it
 * was last seen to be quiet, and after it when the descriptor ended it or there was work before.
 *
 * Runs in:    the loop thread, which owns the bus.
 */
#include "common/base/loop.h"
#include "common/bus/bus_int.h"

#include <zmq.h>

struct bh_bus_poll {
    struct bh_bus *bus;
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

static void on_idle(uv_idle_t *h)
{
    (void)h; /* exists so that the loop polls without waiting */
}

static void on_fd(uv_poll_t *h, int status, int events)
{
    struct bh_bus_poll *p = h->data;

    (void)status, (void)events;
    p->bus->quiet = false;
    p->woken = true; /* the loop is awake; check does the work */
}

static void on_prepare(uv_prepare_t *h)
{
    struct bh_bus_poll *p = h->data;
    if (p->more || (!p->bus->quiet && bh_bus_readable(p->bus))) {
        uv_idle_start(&p->idle, on_idle);
        p->woken = true;
    }
}

static void on_check(uv_check_t *h)
{
    struct bh_bus_poll *p = h->data;

    uv_idle_stop(&p->idle);
    if (!p->woken)
        return;
    p->woken = false;
    p->more = bh_bus_readable(p->bus) && p->on_readable(p->arg);
}

static void init_handle(struct bh_bus_poll *p, void *h, int rc)
{
    bh_assert(rc == 0);
    ((uv_handle_t *)h)->data = p;
    p->open++;
}

struct bh_bus_poll *bh_bus_poll_new(uv_loop_t *loop, struct bh_bus *b, bool (*on_readable)(void *),
                                    void *arg)
{
    int fd;
    size_t n = sizeof(fd);
    int rc = zmq_getsockopt(b->socket, ZMQ_FD, &fd, &n);
    bh_assert(rc == 0);

    struct bh_bus_poll *p = bh_calloc(1, sizeof(*p));
    p->bus = b;
    p->on_readable = on_readable;
    p->arg = arg;
    init_handle(p, &p->poll, uv_poll_init(loop, &p->poll, fd));
    init_handle(p, &p->prepare, uv_prepare_init(loop, &p->prepare));
    init_handle(p, &p->check, uv_check_init(loop, &p->check));
    init_handle(p, &p->idle, uv_idle_init(loop, &p->idle));
    uv_poll_start(&p->poll, UV_READABLE, on_fd);
    uv_prepare_start(&p->prepare, on_prepare);
    uv_check_start(&p->check, on_check);
    return p;
}

static void on_closed(uv_handle_t *h)
{
    struct bh_bus_poll *p = h->data;
    if (--p->open == 0)
        free(p);
}

void bh_bus_poll_close(struct bh_bus_poll *p)
{
    if (!p || p->closing)
        return;
    p->closing = true;
    uv_close((uv_handle_t *)&p->poll, on_closed);
    uv_close((uv_handle_t *)&p->prepare, on_closed);
    uv_close((uv_handle_t *)&p->check, on_closed);
    uv_close((uv_handle_t *)&p->idle, on_closed);
}
