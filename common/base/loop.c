/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/loop.c - signals, the service manager's watchdog, closing a loop
 *
 * Runs in: the loop thread.
 */
#include "common/base/loop.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "common/base/notify.h"

struct bh_signals {
    uv_signal_t term, intr, hup;
    void (*on_stop)(void *);
    void (*on_hup)(void *);
    void *arg;
    bool stopping;
    unsigned open; /* handles that are not closed yet */
};

static void on_stop_signal(uv_signal_t *h, int signum)
{
    struct bh_signals *s = h->data;
    if (s->stopping)
        _exit(128 + signum); /* the operator insists; an orderly stop hangs somewhere */
    s->stopping = true;
    s->on_stop(s->arg);
}

static void on_hup_signal(uv_signal_t *h, int signum)
{
    struct bh_signals *s = h->data;
    (void)signum;
    s->on_hup(s->arg);
}

static void watch_signal(struct bh_signals *s, uv_loop_t *loop, uv_signal_t *h, uv_signal_cb cb,
                         int signum)
{
    int rc = uv_signal_init(loop, h);
    bh_assert(rc == 0);
    h->data = s;
    rc = uv_signal_start(h, cb, signum);
    bh_assert(rc == 0);
    uv_unref((uv_handle_t *)h);
    s->open++;
}

#define LOOP_FDS 8 /* two pipes for signals, epoll, eventfd; and two to spare */

int bh_loop_check(struct bh_err *err)
{
    return bh_err_spare_fds(LOOP_FDS, err);
}

void bh_signals_early(void)
{
    (void)signal(SIGHUP, SIG_IGN);
}

struct bh_signals *bh_signals_new(uv_loop_t *loop, void (*on_stop)(void *), void (*on_hup)(void *),
                                  void *arg)
{
    struct bh_signals *s = bh_calloc(1, sizeof(*s));
    s->on_stop = on_stop;
    s->on_hup = on_hup;
    s->arg = arg;
    signal(SIGPIPE, SIG_IGN);
    watch_signal(s, loop, &s->term, on_stop_signal, SIGTERM);
    watch_signal(s, loop, &s->intr, on_stop_signal, SIGINT);
    if (on_hup)
        watch_signal(s, loop, &s->hup, on_hup_signal, SIGHUP);
    return s;
}

static void on_signal_closed(uv_handle_t *h)
{
    struct bh_signals *s = h->data;
    if (--s->open == 0)
        free(s);
}

void bh_signals_close(struct bh_signals *s)
{
    if (!s)
        return;
    uv_close((uv_handle_t *)&s->term, on_signal_closed);
    uv_close((uv_handle_t *)&s->intr, on_signal_closed);
    if (s->on_hup)
        uv_close((uv_handle_t *)&s->hup, on_signal_closed);
}

struct bh_keepalive {
    uv_timer_t timer;
    bool (*healthy)(void *);
    void *arg;
};

static void on_keepalive(uv_timer_t *h)
{
    struct bh_keepalive *k = h->data;
    if (!k->healthy || k->healthy(k->arg))
        bh_notify("WATCHDOG=1");
}

struct bh_keepalive *bh_keepalive_new(uv_loop_t *loop, bool (*healthy)(void *), void *arg)
{
    struct bh_keepalive *k = bh_calloc(1, sizeof(*k));
    uint64_t interval_ns = bh_watchdog_interval_ns();

    k->healthy = healthy;
    k->arg = arg;
    uv_timer_init(loop, &k->timer);
    k->timer.data = k;
    uv_unref((uv_handle_t *)&k->timer);
    if (interval_ns) {
        uint64_t ms = BH_MAX(interval_ns / 1000000, (uint64_t)1);
        uv_timer_start(&k->timer, on_keepalive, ms, ms);
    }
    bh_notify("READY=1");
    return k;
}

static void on_keepalive_closed(uv_handle_t *h)
{
    free(h->data);
}

void bh_keepalive_close(struct bh_keepalive *k, bool stopping)
{
    if (!k)
        return;
    if (stopping)
        bh_notify("STOPPING=1");
    uv_close((uv_handle_t *)&k->timer, on_keepalive_closed);
}

static void close_handle(uv_handle_t *h, void *arg)
{
    (void)arg;
    if (!uv_is_closing(h))
        uv_close(h, NULL);
}

static void free_handle(uv_handle_t *h)
{
    free(h);
}

void bh_loop_close_free(void *handle)
{
    uv_close(handle, free_handle);
}

void bh_loop_drain_close(uv_loop_t *loop)
{
    uv_walk(loop, close_handle, NULL);
    while (uv_run(loop, UV_RUN_DEFAULT) != 0)
        uv_walk(loop, close_handle, NULL); /* a close callback may have opened another */
    int rc = uv_loop_close(loop);
    bh_assert(rc == 0);
}
