/* SPDX-License-Identifier: Apache-2.0
 *
 * common/http/drive.c - libmicrohttpd on a libuv loop
 *
 * Owns:     the handles of the loop, the hang-up set, the list of connections to resume.
 * Runs in:  the loop thread; libmicrohttpd has no thread of its own.
 *
 * libmicrohttpd's epoll descriptor is one poll handle of the loop. When it is readable, drive()
 * runs libmicrohttpd until it has nothing more to do at once, at most RUNS_MAX times; the rest
 * waits for the next turn of the loop, so that timers and other sockets get theirs.
 *
 * Resuming: a resumed connection makes no descriptor readable in this mode and is not in
 * MHD_get_timeout() either, so bh_http_resume() keeps the loop awake. libmicrohttpd then walks its
 * list of all suspended connections, 40 ns each: with thousands of silent streams one busy stream
 * would make that the main cost. So walks are paced to a fifth of the time at most; streams that
 * become ready meanwhile share one walk.
 *
 * Hang-up set: a suspended connection is not in libmicrohttpd's epoll set, so nobody would notice
 * that the client is gone. Our own epoll set watches it for that alone, one event per request.
 */
#include "common/http/impl.h"

#include <errno.h>
#include <sys/epoll.h>

#define RUNS_MAX          16
#define HANGUPS_AT_ONCE   64
#define WALK_NS_EACH      40u
#define WALK_PAUSE_FACTOR 4u
/* Below this the pause would be shorter than a timer can measure. */
#define WALK_PACED_FROM 1024u

static void on_again(uv_idle_t *h);
static void on_timer(uv_timer_t *h);

/* ---- libmicrohttpd's turn ------------------------------------------------------------------- */

/* Sleeps at most until libmicrohttpd's next time-out; true when there is work now. */
static bool plan_next(struct bh_http_server *s)
{
    MHD_UNSIGNED_LONG_LONG ms;

    if (MHD_get_timeout(s->daemon, &ms) != MHD_YES)
        return false;
    if (ms == 0)
        return true;
    /* A timer that fires too early only asks again: so it is not moved at each request. */
    if (!uv_is_active((uv_handle_t *)&s->timer))
        uv_timer_start(&s->timer, on_timer, ms, 0);
    return false;
}

static uint64_t pause_left_ns(const struct bh_http_server *s)
{
    uint64_t now_ns;

    if (s->suspended_count < WALK_PACED_FROM)
        return 0;
    now_ns = bh_mono_ns();
    return now_ns < s->walk_after_ns ? s->walk_after_ns - now_ns : 0;
}

static void resume_all(struct bh_http_server *s)
{
    if (!s->to_resume)
        return;
    if (s->suspended_count >= WALK_PACED_FROM)
        s->walk_after_ns =
            bh_mono_ns() + (uint64_t)s->suspended_count * WALK_NS_EACH * WALK_PAUSE_FACTOR;
    while (s->to_resume) {
        struct bh_http_req *r = s->to_resume;
        s->to_resume = r->next_to_resume;
        s->suspended_count--;
        MHD_resume_connection(r->conn);
    }
}

/* True when connections wait for a walk that may happen now. */
static bool plan_walk(struct bh_http_server *s)
{
    uint64_t pause_ns;

    if (!s->to_resume)
        return false;
    pause_ns = pause_left_ns(s);
    if (!pause_ns)
        return true;
    if (!uv_is_active((uv_handle_t *)&s->walk_timer))
        uv_timer_start(&s->walk_timer, on_timer, pause_ns / 1000000 + 1, 0);
    return false;
}

static void drive(struct bh_http_server *s)
{
    bool more = true;

    for (int i = 0; more && i < RUNS_MAX; i++) {
        if (plan_walk(s))
            resume_all(s);
        MHD_run(s->daemon);
        more = plan_next(s);
        more = plan_walk(s) || more;
    }
    if (more)
        uv_idle_start(&s->again, on_again);
    else
        uv_idle_stop(&s->again);
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

void bh_http_suspend(struct bh_http_req *r)
{
    r->server->suspended_count++;
    MHD_suspend_connection(r->conn);
}

void bh_http_resume(struct bh_http_req *r)
{
    struct bh_http_server *s = r->server;

    r->next_to_resume = s->to_resume;
    s->to_resume = r;
    if (!s->closing && plan_walk(s))
        uv_idle_start(&s->again, on_again);
}

/* ---- clients that leave --------------------------------------------------------------------- */

static int socket_of(const struct bh_http_req *r)
{
    return MHD_get_connection_info(r->conn, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

void bh_http_watch_hangup(struct bh_http_req *r)
{
    struct epoll_event ev = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = r};

    if (r->watched || r->server->closing)
        return;
    int rc = epoll_ctl(r->server->hangup_fd, EPOLL_CTL_ADD, socket_of(r), &ev);
    bh_assert(rc == 0 || errno == ENOSPC || errno == ENOMEM);
    r->watched = rc == 0;
}

void bh_http_unwatch_hangup(struct bh_http_req *r)
{
    if (r->watched)
        epoll_ctl(r->server->hangup_fd, EPOLL_CTL_DEL, socket_of(r), NULL);
    r->watched = false;
}

/* libmicrohttpd ends the connection as soon as it looks at it again. */
static void mark_gone(struct bh_http_req *r)
{
    bool resume = r->state == BH_HTTP_DEFERRED && !r->gone;

    r->gone = true;
    if (r->stream)
        bh_http_stream_cut(r->stream);
    else if (resume)
        bh_http_resume(r);
}

static void on_hangup(uv_poll_t *h, int status, int events)
{
    struct bh_http_server *s = h->data;
    struct epoll_event ev[HANGUPS_AT_ONCE];

    (void)status, (void)events;
    /* The set is level-triggered: what does not fit comes back on the loop's next turn. */
    int n = epoll_wait(s->hangup_fd, ev, HANGUPS_AT_ONCE, 0);
    for (int i = 0; i < n; i++)
        mark_gone(ev[i].data.ptr);
}

/* ---- in and out of the loop ----------------------------------------------------------------- */

static void own_handle(struct bh_http_server *s, void *handle, int rc)
{
    bh_assert(rc == 0);
    ((uv_handle_t *)handle)->data = s;
    s->open_handles++;
}

int bh_http_enter_loop(struct bh_http_server *s)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);

    bh_assert(info && info->epoll_fd >= 0);
    s->hangup_fd = epoll_create1(EPOLL_CLOEXEC);
    if (s->hangup_fd < 0)
        return -errno;

    own_handle(s, &s->mhd_poll, uv_poll_init(s->loop, &s->mhd_poll, info->epoll_fd));
    own_handle(s, &s->hangup_poll, uv_poll_init(s->loop, &s->hangup_poll, s->hangup_fd));
    own_handle(s, &s->timer, uv_timer_init(s->loop, &s->timer));
    own_handle(s, &s->walk_timer, uv_timer_init(s->loop, &s->walk_timer));
    own_handle(s, &s->again, uv_idle_init(s->loop, &s->again));
    uv_poll_start(&s->mhd_poll, UV_READABLE, on_mhd_readable);
    uv_poll_start(&s->hangup_poll, UV_READABLE, on_hangup);
    return 0;
}

static void on_handle_closed(uv_handle_t *h)
{
    struct bh_http_server *s = h->data;
    if (--s->open_handles == 0)
        free(s);
}

void bh_http_leave_loop(struct bh_http_server *s)
{
    /* The loop must forget the descriptors before they are closed. */
    uv_close((uv_handle_t *)&s->mhd_poll, on_handle_closed);
    uv_close((uv_handle_t *)&s->hangup_poll, on_handle_closed);
    uv_close((uv_handle_t *)&s->timer, on_handle_closed);
    uv_close((uv_handle_t *)&s->walk_timer, on_handle_closed);
    uv_close((uv_handle_t *)&s->again, on_handle_closed);
    /* A daemon that stops with a suspended connection aborts the process. */
    for (struct bh_http_req *r = s->reqs; r; r = r->next)
        mark_gone(r);
    resume_all(s);
}
