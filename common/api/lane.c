/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/lane.c - one connection that small requests share: made, read, written, lost
 *
 * Owns:       the easy handle that made the connection and stays its owner, what is to be written.
 * Invariants: the descriptor is the loop's from the moment libcurl has connected it to the lane's
 *             end; a lane that broke is closed in the same turn, by bh_lanes_settle.
 * Runs in:    the loop.
 */
#include "common/api/lane.h"

#include <openssl/ssl.h>
#include <strings.h>

#define OUT_KEEP_BYTES ((size_t)256 << 10)
#define REPLY_MAX      ((size_t)64 << 20)

/* ---- made ------------------------------------------------------------------------------------ */

/* libcurl would speak HTTP/2 itself on a connection that it knows to be one: it is told nothing of
 * ALPN, and the offer is made here. */
static CURLcode offer_alpn(CURL *easy, void *ssl_ctx, void *arg)
{
    static const unsigned char offer[] = "\x02h2\x08http/1.1";

    (void)easy, (void)arg;
    return SSL_CTX_set_alpn_protos(ssl_ctx, offer, sizeof(offer) - 1) ? CURLE_OUT_OF_MEMORY
                                                                      : CURLE_OK;
}

void bh_lane_new(struct bh_lanes *s)
{
    struct bh_lane *l = bh_calloc(1, sizeof(*l));
    CURL *e = l->easy = curl_easy_init();

    if (!e)
        abort(); /* out of memory, as in base.h */
    l->set = s;
    l->pool = s->c->lane_pool;
    l->creds = bh_api_creds_ref(s->c->creds);
    TAILQ_INIT(&l->flight);
    bh_api_set_connection(e, s->c, l->creds, &l->lack);
    curl_easy_setopt(e, CURLOPT_PIPEWAIT, 0L); /* no transfer shares this connection */
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(e, CURLOPT_SSL_ENABLE_ALPN, 0L);
    curl_easy_setopt(e, CURLOPT_SSL_CTX_FUNCTION, offer_alpn);
    curl_easy_setopt(e, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(e, CURLOPT_HTTPPROXYTUNNEL, 1L); /* where there is a proxy */
    curl_easy_setopt(e, CURLOPT_BUFFERSIZE, (long)sizeof(s->in));
    curl_easy_setopt(e, CURLOPT_URL, s->c->base);
    curl_easy_setopt(e, CURLOPT_PRIVATE, l);
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, l->error);
    TAILQ_INSERT_TAIL(&s->lanes, l, link);
    s->n_lanes++;
    bh_api_pool_add_easy(l->pool, e);
}

/* libcurl's TLS object: what ALPN chose; and it shall take a whole batch with one read. */
static const struct bh_lane_talk *look_at_tls(struct bh_lane *l)
{
    struct curl_tlssessioninfo *info = NULL;
    const unsigned char *alpn = NULL;
    unsigned n = 0;

    if (curl_easy_getinfo(l->easy, CURLINFO_TLS_SSL_PTR, &info) != CURLE_OK || !info ||
        info->backend != CURLSSLBACKEND_OPENSSL || !info->internals)
        return &bh_lane_h1;
    SSL *ssl = l->ssl = info->internals;
    SSL_clear_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
    SSL_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_set_default_read_buffer_len(ssl, sizeof(l->set->in));
    SSL_set_read_ahead(ssl, 1);
    SSL_get0_alpn_selected(ssl, &alpn, &n);
    return n == 2 && memcmp(alpn, "h2", 2) == 0 ? &bh_lane_h2 : &bh_lane_h1;
}

void bh_lane_connected(struct bh_lane *l, CURLcode rc)
{
    struct bh_lanes *s = l->set;
    curl_socket_t fd = CURL_SOCKET_BAD;
    size_t n = 0;

    if (rc == CURLE_OK)
        rc = curl_easy_getinfo(l->easy, CURLINFO_ACTIVESOCKET, &fd);
    if (rc == CURLE_OK && fd == CURL_SOCKET_BAD)
        rc = CURLE_COULDNT_CONNECT;
    if (rc == CURLE_OK) /* the first read gives the handle its connection back */
        rc = curl_easy_recv(l->easy, s->in, sizeof(s->in), &n);
    if (rc != CURLE_OK && rc != CURLE_AGAIN) {
        bh_api_tell_lack(rc, &l->lack, l->error);
        bh_lane_break(l, l->error[0] ? NULL : curl_easy_strerror(rc));
        return;
    }
    bool closed = rc == CURLE_OK && n == 0;
    l->talk = look_at_tls(l);
    l->state = l->creds == s->c->creds ? LANE_OPEN : LANE_LEAVING;
    l->heard_ns = bh_mono_ns();
    l->socket = bh_api_socket_for(s->c, fd);
    l->socket->lane = l;
    l->talk->open(l);
    if ((n || closed) && l->talk->feed(l, s->in, n) < 0)
        bh_lane_break(l, "the connection ended at its start");
    bh_lane_watch(l);
}

/* ---- lost ------------------------------------------------------------------------------------ */

void bh_lane_break(struct bh_lane *l, const char *why)
{
    if (l->state == LANE_BROKEN)
        return;
    if (why)
        snprintf(l->error, sizeof(l->error), "%s", why);
    l->state = LANE_BROKEN;
    bh_lanes_turn_soon(l->set);
}

void bh_lane_free(struct bh_lane *l)
{
    struct bh_lanes *s = l->set;

    bh_assert(l->n_flight == 0);
    if (l->socket) {
        bh_api_socket_watch(l->socket, 0);
        l->socket->lane = NULL;
    }
    if (l->talk)
        l->talk->close(l);
    bh_api_pool_remove_easy(l->pool, l->easy); /* closes the connection */
    curl_easy_cleanup(l->easy);
    bh_api_creds_unref(l->creds);
    TAILQ_REMOVE(&s->lanes, l, link);
    s->n_lanes--;
    bh_buf_fini(&l->out);
    free(l);
}

/* ---- read and written ------------------------------------------------------------------------ */

void bh_lane_read(struct bh_lane *l)
{
    struct bh_lanes *s = l->set;
    size_t n;

    if (l->state != LANE_OPEN && l->state != LANE_LEAVING)
        return;
    for (;;) { /* no bound: the loop does not know of what TLS has read ahead */
        CURLcode rc = curl_easy_recv(l->easy, s->in, sizeof(s->in), &n);
        if (rc == CURLE_AGAIN)
            return;
        if (rc != CURLE_OK)
            n = 0;
        l->heard_ns = bh_mono_ns();
        if (l->talk->feed(l, s->in, n) < 0 || !n) {
            bh_lane_break(l, rc == CURLE_OK ? "the server closed the connection"
                                            : curl_easy_strerror(rc));
            return;
        }
        /* a short read has emptied the socket; if not, the loop tells */
        if (n < sizeof(s->in) && !(l->ssl && SSL_has_pending(l->ssl)))
            return;
    }
}

void bh_lane_write(struct bh_lane *l)
{
    while (l->out_off < l->out.n && l->state != LANE_BROKEN) {
        size_t n = 0;
        CURLcode rc = curl_easy_send(l->easy, l->out.p + l->out_off, l->out.n - l->out_off, &n);
        if (rc == CURLE_AGAIN)
            break;
        if (rc != CURLE_OK) {
            /* what the server said before it closed tells which requests it took */
            bh_lane_read(l);
            bh_lane_break(l, curl_easy_strerror(rc));
            return;
        }
        l->out_off += n;
    }
    if (l->out_off == l->out.n && l->out.n) {
        l->out_off = 0;
        if (l->out.cap > OUT_KEEP_BYTES)
            bh_buf_fini(&l->out);
        else
            bh_buf_reset(&l->out);
    }
    l->blocked = l->out.n > 0;
    bh_lane_watch(l);
}

void bh_lane_watch(struct bh_lane *l)
{
    if (l->state == LANE_OPEN || l->state == LANE_LEAVING)
        bh_api_socket_watch(l->socket, (l->set->paced ? 0 : UV_READABLE) |
                                           (l->out_off < l->out.n ? UV_WRITABLE : 0));
}

void bh_lane_on_socket(struct bh_lane *l, int events)
{
    struct bh_lanes *s = l->set;
    struct bh_api_client *c = s->c;

    c->busy++;
    if (events & UV_READABLE)
        bh_lane_read(l);
    if (events & UV_WRITABLE)
        bh_lane_write(l);
    bh_lane_watch(l);
    bh_lanes_settle(s);
    bh_api_leave(c);
}

/* ---- replies --------------------------------------------------------------------------------- */

static bool header_is(const char *name, size_t n, const char *wanted)
{
    return n == strlen(wanted) && strncasecmp(name, wanted, n) == 0;
}

void bh_lane_header(struct bh_api_req *r, const char *name, size_t name_n, const char *value,
                    size_t value_n)
{
    if (header_is(name, name_n, "content-type"))
        snprintf(r->content_type, sizeof(r->content_type), "%.*s", (int)BH_MIN(value_n, 127u),
                 value);
    else if (header_is(name, name_n, "retry-after"))
        r->retry_after_s = bh_api_retry_after((struct bh_str){value, value_n});
}

bool bh_lane_body(struct bh_api_req *r, const char *p, size_t n)
{
    size_t max = r->call.max_reply_bytes ? r->call.max_reply_bytes : REPLY_MAX;

    if (n > max - BH_MIN(r->body.n, max)) {
        r->too_large = true;
        return false;
    }
    bh_buf_add(&r->body, p, n);
    return true;
}

void bh_lane_done(struct bh_lane *l, struct bh_api_req *r, const char *why)
{
    struct bh_lanes *s = l->set;

    bh_lanes_move(s, r, &s->done);
    r->on.why = NULL;
    if (why) {
        snprintf(r->error, sizeof(r->error), "%s", why);
        r->on.why = r->error;
    } else {
        uint64_t took = bh_mono_ns() - r->on.given_ns;
        s->latency_ns = (7 * s->latency_ns + took) / 8;
        s->service_ns = (7 * s->service_ns + took / r->on.ahead) / 8;
    }
}

void bh_lane_refused(struct bh_lane *l, struct bh_api_req *r)
{
    struct bh_lanes *s = l->set;

    r->sent = false;
    if (++r->on.refused > 3) {
        bh_lane_done(l, r, "the server takes no requests on any connection");
        return;
    }
    bh_lanes_move(s, r, NULL);
    r->on.list = &s->queue;
    TAILQ_INSERT_HEAD(&s->queue, r, on.link);
    bh_lanes_turn_soon(s);
}
