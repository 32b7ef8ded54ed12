/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/api/test_lanes_h2.c - lanes and HTTP/2's windows: a body that the server lets
 * in late; and more headers than usual
 *
 * The server (tls_server.h, nghttp2) takes WINDOW bytes of a body, the rest when the test says so.
 */
#include "common/api/client.h"
#include "common/base/loop.h"
#include "tests/unit/common/api/raw_server.h"
#include "tests/unit/common/api/tls_server.h"

#include <fcntl.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdatomic.h>

#define MS     UINT64_C(1000000)
#define S      (UINT64_C(1000) * MS)
#define WINDOW 16
#define BODY   10000u
#define GROUPS 40u

/* ---- server ---------------------------------------------------------------------------------- */

static struct { /* what it saw */
    _Atomic unsigned heads, bodies, resets, groups;
    _Atomic size_t bytes; /* of bodies */
    _Atomic bool open;    /* bodies may come now */
} seen;

static int on_frame(nghttp2_session *h2, const nghttp2_frame *f, void *arg)
{
    static const nghttp2_nv ok = {(uint8_t *)":status", (uint8_t *)"200", 7, 3,
                                  NGHTTP2_NV_FLAG_NONE};

    (void)arg;
    seen.heads += f->hd.type == NGHTTP2_HEADERS;
    seen.resets += f->hd.type == NGHTTP2_RST_STREAM;
    if ((f->hd.type == NGHTTP2_HEADERS || f->hd.type == NGHTTP2_DATA) &&
        f->hd.flags & NGHTTP2_FLAG_END_STREAM) {
        seen.bodies += f->hd.type == NGHTTP2_DATA;
        nghttp2_submit_response(h2, f->hd.stream_id, &ok, 1, NULL);
    }
    return 0;
}

static int on_chunk(nghttp2_session *h2, uint8_t flags, int32_t stream, const uint8_t *p, size_t n,
                    void *arg)
{
    (void)h2, (void)flags, (void)stream, (void)p, (void)arg;
    seen.bytes += n;
    return 0;
}

static int on_field(nghttp2_session *h2, const nghttp2_frame *f, const uint8_t *name, size_t name_n,
                    const uint8_t *value, size_t n, uint8_t flags, void *arg)
{
    (void)h2, (void)f, (void)value, (void)n, (void)flags, (void)arg;
    seen.groups += name_n == 17 && memcmp(name, "impersonate-group", 17) == 0;
    return 0;
}

static nghttp2_session *session_new(void)
{
    static const nghttp2_settings_entry small[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW},
                                                   {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 100}};
    nghttp2_session_callbacks *cb;
    nghttp2_option *o;
    nghttp2_session *h2;

    nghttp2_session_callbacks_new(&cb);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_chunk);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_field);
    nghttp2_option_new(&o);
    nghttp2_option_set_no_auto_window_update(o, 1);
    nghttp2_session_server_new2(&h2, cb, NULL, o);
    nghttp2_option_del(o);
    nghttp2_session_callbacks_del(cb);
    nghttp2_submit_settings(h2, NGHTTP2_FLAG_NONE, small, BH_ARRAY_LEN(small));
    return h2;
}

/* Every stream may send on, those that come as well. */
static void open_windows(nghttp2_session *h2)
{
    static const nghttp2_settings_entry large = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20};

    nghttp2_submit_settings(h2, NGHTTP2_FLAG_NONE, &large, 1);
    nghttp2_session_set_local_window_size(h2, NGHTTP2_FLAG_NONE, 0, 1 << 20);
}

static void talk_h2(SSL *ssl)
{
    nghttp2_session *h2 = session_new();
    struct pollfd p = {.fd = SSL_get_fd(ssl), .events = POLLIN};
    const uint8_t *out;
    uint8_t in[4096];
    bool open = false, ok = true;
    ssize_t n;

    fcntl(p.fd, F_SETFL, O_NONBLOCK);
    while (ok) {
        if (seen.open && !open)
            open_windows(h2);
        open = seen.open;
        while (ok && (n = nghttp2_session_mem_send(h2, &out)) > 0)
            ok = SSL_write(ssl, out, (int)n) == (int)n;
        if (!SSL_pending(ssl))
            (void)poll(&p, 1, 2);
        int k = SSL_read(ssl, in, sizeof(in));
        if (k > 0)
            ok = nghttp2_session_mem_recv(h2, in, (size_t)k) == k;
        else
            ok = ok && SSL_get_error(ssl, k) == SSL_ERROR_WANT_READ;
    }
    nghttp2_session_del(h2);
}

static int choose_h2(SSL *ssl, const unsigned char **out, unsigned char *out_n,
                     const unsigned char *in, unsigned n, void *arg)
{
    (void)ssl, (void)arg;
    return SSL_select_next_proto((unsigned char **)(uintptr_t)out, out_n,
                                 (const unsigned char *)"\x02h2", 3, in,
                                 n) == OPENSSL_NPN_NEGOTIATED
               ? SSL_TLSEXT_ERR_OK
               : SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* ---- client ---------------------------------------------------------------------------------- */

struct env {
    uv_loop_t loop;
    struct tls_server server;
    struct cert ca, leaf;
    struct bh_api_client *client;
    bool done;
    enum bh_api_outcome outcome;
    int code;
    bool sent;
};

static void env_start(struct env *e, char **impersonate)
{
    const struct bh_api_options o = {.lean = true, .max_connections = 1};
    struct bh_api_config cfg = {.impersonate = impersonate};
    struct bh_err err = {""};
    char url[64];

    *e = (struct env){.ca = cert_make("ca", NULL, NULL)};
    e->leaf = cert_make("server", &e->ca, "IP:127.0.0.1");
    seen.heads = seen.bodies = seen.resets = seen.groups = 0;
    seen.bytes = 0;
    seen.open = false;
    server_talks = talk_h2;
    server_start(&e->server, &e->leaf, NULL);
    SSL_CTX_set_alpn_select_cb(e->server.ctx, choose_h2, NULL);
    uv_loop_init(&e->loop);
    snprintf(url, sizeof(url), "https://127.0.0.1:%u", e->server.port);
    cfg.server = url;
    cfg.ca_pem = e->ca.pem;
    CU_ASSERT_EQUAL_FATAL(bh_api_client_new(&e->loop, &cfg, &o, &e->client, &err), 0);
}

static void env_stop(struct env *e)
{
    bh_api_client_free(e->client);
    bh_loop_drain_close(&e->loop);
    server_stop(&e->server);
    cert_free(&e->ca);
    cert_free(&e->leaf);
}

static void on_done(void *arg, const struct bh_api_reply *r)
{
    struct env *e = arg;

    e->done = true;
    e->outcome = r->outcome;
    e->code = r->code;
    e->sent = r->sent;
}

static bool is_done(void *arg)
{
    return ((struct env *)arg)->done;
}

static bool stuck_or_done(void *arg)
{
    return seen.bytes == WINDOW || is_done(arg);
}

/* not_after_ns 0 = no fence. */
static void start(struct env *e, size_t body_n, uint64_t not_after_ns)
{
    static char body[BODY];
    const struct bh_api_call call = {.method = "POST",
                                     .path = "/x",
                                     .content_type = "text/plain",
                                     .body = body,
                                     .body_n = body_n,
                                     .timeout_ns = 120 * S,
                                     .not_after_boot_ns = not_after_ns,
                                     .on_done = on_done,
                                     .arg = e};
    e->done = false;
    bh_api_start(e->client, &call);
}

static void wait_past(uint64_t boot_ns)
{
    while (bh_boot_ns() < boot_ns)
        (void)poll(NULL, 0, 1);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_a_body_that_is_let_in_in_time(void)
{
    struct env e;

    env_start(&e, NULL);
    start(&e, BODY, bh_boot_ns() + 100 * S);
    CU_ASSERT(run_until(&e.loop, stuck_or_done, &e));
    CU_ASSERT(!e.done && seen.bodies == 0);
    seen.open = true;
    CU_ASSERT(run_until(&e.loop, is_done, &e));
    CU_ASSERT(e.outcome == BH_API_OK && e.code == 200 && e.sent);
    CU_ASSERT(seen.bodies == 1 && seen.bytes == BODY && seen.resets == 0);
    env_stop(&e);
}

/* What has left is out, but not one byte more of it leaves, and the server never hears its end. */
static void test_a_body_that_is_let_in_too_late(void)
{
    struct env e;
    uint64_t fence = 0;

    env_start(&e, NULL);
    for (uint64_t ms = 100; seen.bytes != WINDOW && ms < 10000; ms *= 2) { /* a slow machine */
        fence = bh_boot_ns() + ms * MS;
        start(&e, BODY, fence);
        CU_ASSERT(run_until(&e.loop, stuck_or_done, &e));
    }
    CU_ASSERT_FATAL(!e.done);
    wait_past(fence);
    seen.open = true;
    CU_ASSERT(run_until(&e.loop, is_done, &e));
    CU_ASSERT(e.outcome == BH_API_TIMEOUT && e.sent && e.code == 0);
    start(&e, BODY, 0); /* the connection lives, and its reply comes behind the reset */
    CU_ASSERT(run_until(&e.loop, is_done, &e));
    CU_ASSERT(e.outcome == BH_API_OK && e.code == 200);
    CU_ASSERT(seen.resets == 1 && seen.bodies == 1 && seen.bytes == WINDOW + BODY);
    env_stop(&e);
}

static void test_many_headers(void)
{
    char *as[GROUPS + 2] = {NULL};
    struct env e;

    as[0] = bh_strdup("Impersonate-User: jane");
    for (unsigned i = 1; i <= GROUPS; i++)
        as[i] = bh_asprintf("Impersonate-Group: g%u", i);
    env_start(&e, as);
    seen.open = true;
    start(&e, 5, 0);
    CU_ASSERT(run_until(&e.loop, is_done, &e));
    CU_ASSERT(e.outcome == BH_API_OK && e.code == 200);
    CU_ASSERT(seen.groups == GROUPS && seen.bytes == 5);
    env_stop(&e);
    for (unsigned i = 0; i <= GROUPS; i++)
        free(as[i]);
}

BH_TESTS("common/api/lanes, HTTP/2",
         {"a body that is let in in time", test_a_body_that_is_let_in_in_time},
         {"a body that is let in too late", test_a_body_that_is_let_in_too_late},
         {"more headers than usual", test_many_headers})
