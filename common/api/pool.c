/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/pool.c - libcurl multi handles on libuv: sockets, timers, connection limits
 *
 * Owns:       the multi handle, its timer, and one poll handle per descriptor number.
 * Invariants: a poll handle is stopped before libcurl closes its descriptor; libcurl is never
 *             entered from inside one of its callbacks.
 * Runs in:    the loop.
 * Fails with: nothing; libcurl's refusals here are bugs of ours.
 */
#include "common/api/lane.h"

/* kube-apiserver and libcurl both stop at 100 streams a connection. */
#define STREAMS_PER_CONNECTION 100
#define IDLE_CONNECTIONS_MAX   64L
#define COMPANY_BYTES          (16u << 10)
#define COMPANY_LOOKS          2u /* quiet for as many is quiet */

static void on_poll(uv_poll_t *h, int status, int events);
static void on_company(uv_timer_t *h);

/* ---- sockets --------------------------------------------------------------------------------- */

static void act(struct bh_api_pool *p, curl_socket_t fd, int flags)
{
    struct bh_api_client *c = p->c;
    int running;
    c->busy++;
    c->in_curl++;
    curl_multi_socket_action(p->multi, fd, flags, &running);
    c->in_curl--;
    CURLMsg *msg;
    int left;
    while ((msg = curl_multi_info_read(p->multi, &left))) {
        struct bh_api_req *r = NULL;
        if (msg->msg != CURLMSG_DONE)
            continue;
        CURLcode rc = msg->data.result; /* msg goes away with the handle */
        if (p->for_lanes) {
            struct bh_lane *l = NULL;
            curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &l);
            bh_lane_connected(l, rc);
            bh_lanes_settle(l->set);
            continue;
        }
        curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &r);
        bh_api_finished(r, rc);
    }
    bh_api_leave(c);
}

/* Small pieces that come one after another are read together: each look costs more than what it
 * finds. The first after a quiet time does not wait, and neither do many bytes. */
static void look(struct bh_api_socket *s, int flags)
{
    struct bh_api_client *c = s->c;
    const uint64_t before = c->body_bytes, now = bh_mono_ns(), since = now - s->looked_ns;

    c->busy++;
    s->looked_ns = now;
    act(s->pool, s->fd, flags);
    const uint64_t came = c->body_bytes - before;
    const bool hold = s->events == UV_READABLE && s->company_ms && came && came < COMPANY_BYTES &&
                      since < COMPANY_LOOKS * s->company_ms * UINT64_C(1000000);
    if (s->held && !hold && s->events)
        uv_poll_start(&s->poll, s->events, on_poll);
    else if (hold && !s->held)
        uv_poll_stop(&s->poll);
    s->held = hold;
    if (hold && !uv_is_active((uv_handle_t *)&c->company)) {
        uv_update_time(c->loop);
        uv_timer_start(&c->company, on_company, s->company_ms, 0);
    }
    bh_api_leave(c);
}

static void on_company(uv_timer_t *h)
{
    struct bh_api_client *c = bh_container_of(h, struct bh_api_client, company);

    c->busy++;
    for (size_t i = 0; i < c->n_sockets; i++)
        if (c->sockets[i] && c->sockets[i]->held)
            look(c->sockets[i], CURL_CSELECT_IN);
    bh_api_leave(c);
}

static void on_poll(uv_poll_t *h, int status, int events)
{
    struct bh_api_socket *s = bh_container_of(h, struct bh_api_socket, poll);
    int flags = 0;
    if (status < 0)
        s->events = 0; /* libuv has stopped the handle */
    if (s->lane) {
        bh_lane_on_socket(s->lane, status < 0 ? UV_READABLE : events);
        return;
    }
    if (!s->pool)
        return;
    if (status < 0)
        flags = CURL_CSELECT_ERR;
    if (events & UV_READABLE)
        flags |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE)
        flags |= CURL_CSELECT_OUT;
    look(s, flags);
}

struct bh_api_socket *bh_api_socket_for(struct bh_api_client *c, curl_socket_t fd)
{
    size_t i = (size_t)fd;
    if (i >= c->n_sockets) {
        size_t n = BH_MAX(i + 1, c->n_sockets * 2);
        c->sockets = bh_regrown(c->sockets, c->n_sockets, n, sizeof(*c->sockets));
        c->n_sockets = n;
    }
    if (!c->sockets[i]) {
        struct bh_api_socket *s = c->sockets[i] = bh_calloc(1, sizeof(*s));
        s->c = c;
        s->fd = fd;
        int rc = uv_poll_init(c->loop, &s->poll, fd);
        bh_assert(rc == 0);
        c->open_handles++;
    }
    return c->sockets[i];
}

void bh_api_socket_watch(struct bh_api_socket *s, int uv_events)
{
    if (s->events == uv_events)
        return;
    s->events = uv_events;
    s->held = false;
    if (uv_events)
        uv_poll_start(&s->poll, uv_events, on_poll);
    else
        uv_poll_stop(&s->poll);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
    struct bh_api_pool *p = arg;
    (void)socket_arg;
    if (what == CURL_POLL_REMOVE) {
        struct bh_api_socket *s = (size_t)fd < p->c->n_sockets ? p->c->sockets[fd] : NULL;
        if (s && !s->lane) {
            bh_api_socket_watch(s, 0);
            s->pool = NULL;
        }
        return 0;
    }
    struct bh_api_socket *s = bh_api_socket_for(p->c, fd);
    struct bh_api_req *r = NULL;
    s->pool = p;
    if (!p->for_lanes)
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, &r);
    s->company_ms = r ? r->call.company_ms : 0;
    bh_api_socket_watch(s, (what & CURL_POLL_IN ? UV_READABLE : 0) |
                               (what & CURL_POLL_OUT ? UV_WRITABLE : 0));
    return 0;
}

static void on_socket_closed(uv_handle_t *h)
{
    struct bh_api_socket *s = bh_container_of(h, struct bh_api_socket, poll);
    struct bh_api_client *c = s->c;
    free(s);
    bh_api_handle_closed(c);
}

void bh_api_sockets_close(struct bh_api_client *c)
{
    uv_close((uv_handle_t *)&c->company, bh_api_on_closed);
    for (size_t i = 0; i < c->n_sockets; i++)
        if (c->sockets[i])
            uv_close((uv_handle_t *)&c->sockets[i]->poll, on_socket_closed);
    free(c->sockets);
    c->sockets = NULL;
    c->n_sockets = 0;
}

/* ---- timer ----------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *h)
{
    struct bh_api_pool *p = bh_container_of(h, struct bh_api_pool, timer);
    act(p, CURL_SOCKET_TIMEOUT, 0);
}

static int on_set_timer(CURLM *multi, long timeout_ms, void *arg)
{
    struct bh_api_pool *p = arg;
    (void)multi;
    if (timeout_ms < 0) {
        uv_timer_stop(&p->timer);
        return 0;
    }
    /* Called a moment too early libcurl finds nothing due and does not ask again. The loop's clock
     * is cached and cut to milliseconds: bring it up to date and wait one more. */
    uv_update_time(p->c->loop);
    uv_timer_start(&p->timer, on_timer, timeout_ms ? (uint64_t)timeout_ms + 1 : 0, 0);
    return 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct bh_api_pool *bh_api_pool_new(struct bh_api_client *c, bool long_lived)
{
    struct bh_api_pool *p = bh_calloc(1, sizeof(*p));
    p->c = c;
    p->long_lived = long_lived;
    p->creds = bh_api_creds_ref(c->creds);
    p->http1 = p->known = !c->tls;
    p->multi = curl_multi_init();
    if (!p->multi)
        abort(); /* out of memory, as in base.h */
    bh_api_metrics_pools(c, 1);
    uv_timer_init(c->loop, &p->timer);
    c->open_handles++;
    curl_multi_setopt(p->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(p->multi, CURLMOPT_SOCKETDATA, p);
    curl_multi_setopt(p->multi, CURLMOPT_TIMERFUNCTION, on_set_timer);
    curl_multi_setopt(p->multi, CURLMOPT_TIMERDATA, p);
    curl_multi_setopt(p->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    curl_multi_setopt(p->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, (long)STREAMS_PER_CONNECTION);
    curl_multi_setopt(p->multi, CURLMOPT_MAXCONNECTS, IDLE_CONNECTIONS_MAX);
    return p;
}

static void on_pool_closed(uv_handle_t *h)
{
    struct bh_api_pool *p = bh_container_of(h, struct bh_api_pool, timer);
    struct bh_api_client *c = p->c;
    free(p);
    bh_api_handle_closed(c);
}

void bh_api_pool_free(struct bh_api_pool *p)
{
    bh_assert(p->in_flight == 0);
    curl_multi_cleanup(p->multi);
    if (!p->c->closing) /* then the metrics may be gone */
        bh_api_metrics_pools(p->c, -1);
    bh_api_creds_unref(p->creds);
    uv_close((uv_handle_t *)&p->timer, on_pool_closed);
}

/* Long-lived requests are few and must not wait for each other: no limit. HTTP/2 connections grow
 * with the load; they are not closed again when it falls, so the limit does not fall either. */
static void adjust_limit(struct bh_api_pool *p)
{
    long want;
    if (p->long_lived)
        return;
    if (p->known && p->http1)
        want = (long)p->c->max_connections;
    else
        want = BH_MAX((p->in_flight + STREAMS_PER_CONNECTION - 1L) / STREAMS_PER_CONNECTION,
                      p->max_host);
    if (want != p->max_host) {
        p->max_host = want;
        curl_multi_setopt(p->multi, CURLMOPT_MAX_HOST_CONNECTIONS, want);
    }
}

void bh_api_pool_learn(struct bh_api_pool *p, CURL *easy)
{
    long version = 0;
    if (p->known)
        return;
    curl_easy_getinfo(easy, CURLINFO_HTTP_VERSION, &version);
    p->http1 = version != CURL_HTTP_VERSION_2_0;
    p->known = true;
    adjust_limit(p);
}

void bh_api_pool_add(struct bh_api_pool *p, struct bh_api_req *r)
{
    r->pool = p;
    bh_api_pool_add_easy(p, r->easy);
}

void bh_api_pool_add_easy(struct bh_api_pool *p, CURL *easy)
{
    p->in_flight++;
    adjust_limit(p);
    p->c->in_curl++;
    CURLMcode rc = curl_multi_add_handle(p->multi, easy);
    p->c->in_curl--;
    bh_assert(rc == CURLM_OK);
}

void bh_api_pool_remove(struct bh_api_pool *p, struct bh_api_req *r)
{
    r->pool = NULL;
    bh_api_pool_remove_easy(p, r->easy);
}

void bh_api_pool_remove_easy(struct bh_api_pool *p, CURL *easy)
{
    struct bh_api_client *c = p->c;
    c->in_curl++;
    curl_multi_remove_handle(p->multi, easy);
    c->in_curl--;
    p->in_flight--;
    if (p->retired && p->in_flight == 0)
        bh_api_kick(c); /* freed there: this may be one of its own callbacks */
}
