/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/poll.c - a bus on a libuv loop
 *
 * The local sockets' descriptor is readable as long as there is something to do; what is in memory
 * already keeps the loop from sleeping (prepare). The ZeroMQ socket of a bus that goes over tcp has
 * its own adapter (zpoll.c).
 *
 * Runs in:    the loop thread, which owns the bus.
 */
#include "common/base/loop.h"
#include "common/bus/bus_int.h"

struct bh_bus_poll {
    struct bh_bus *bus;
    bool (*on_readable)(void *);
    void *arg;
    bool closing;
    unsigned open; /* handles */
    uv_poll_t poll;
    uv_prepare_t prepare;
    uv_idle_t idle;
    struct bh_zpoll *tcp;
};

/* Memory holds more: the loop does not wait. */
static void on_idle(uv_idle_t *h)
{
    struct bh_bus_poll *p = h->data;

    uv_idle_stop(h);
    (void)p->on_readable(p->arg);
}

static void on_prepare(uv_prepare_t *h)
{
    struct bh_bus_poll *p = h->data;

    if (bh_local_pending(p->bus->local))
        uv_idle_start(&p->idle, on_idle);
}

static void on_fd(uv_poll_t *h, int status, int events)
{
    struct bh_bus_poll *p = h->data;

    (void)status, (void)events;
    (void)p->on_readable(p->arg);
}

static void watch_local(struct bh_bus_poll *p, uv_loop_t *loop)
{
    int rc = uv_poll_init(loop, &p->poll, bh_local_fd(p->bus->local));

    bh_assert(rc == 0);
    uv_prepare_init(loop, &p->prepare);
    uv_idle_init(loop, &p->idle);
    p->poll.data = p->prepare.data = p->idle.data = p;
    p->open = 3;
    uv_poll_start(&p->poll, UV_READABLE, on_fd);
    uv_prepare_start(&p->prepare, on_prepare);
}

struct bh_bus_poll *bh_bus_poll_new(uv_loop_t *loop, struct bh_bus *b, bool (*on_readable)(void *),
                                    void *arg)
{
    struct bh_bus_poll *p = bh_calloc(1, sizeof(*p));

    p->bus = b;
    p->on_readable = on_readable;
    p->arg = arg;
    if (b->local)
        watch_local(p, loop);
    if (b->socket)
        p->tcp = bh_zpoll_new(loop, b->socket, on_readable, arg);
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
    bh_zpoll_close(p->tcp);
    if (!p->open) {
        free(p);
        return;
    }
    uv_close((uv_handle_t *)&p->poll, on_closed);
    uv_close((uv_handle_t *)&p->prepare, on_closed);
    uv_close((uv_handle_t *)&p->idle, on_closed);
}
