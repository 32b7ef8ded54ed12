/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_lanes.c - anything that an API server may say to a binder's requests (lane.h)
 *
 * Input: flags, then pieces {u8 length, bytes}, each what one read finds; a piece of no length is
 * the end of the connection, and the next one goes on with the rest. Flags: bit 0 HTTP/2, else
 * HTTP/1.1; bit 1 the socket takes few bytes at a time; bit 2 one request is given up in between;
 * the rest the number of requests. The bytes come from here instead of from libcurl, which makes no
 * connection. Every request ends once, and a reply is one: a code of three digits, a body no larger
 * than allowed, which is then read as the binder does.
 */
#include "common/api/lane.h"
#include "common/base/loop.h"
#include "common/k8s/codec.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

#include <openssl/ssl.h>
#include <sys/eventfd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define REPLY_BYTES 512u

static struct {
    const uint8_t *p;
    size_t n;
    bool h2, narrow;
    int fd;
    SSL *ssl;
} server = {.fd = -1};
static unsigned ended[16];

/* ---- libcurl and TLS, as far as lanes need them ------------------------------------------------
 */

#undef curl_easy_getinfo

CURLMcode curl_multi_add_handle(CURLM *m, CURL *e)
{
    (void)m, (void)e;
    return CURLM_OK;
}

CURLMcode curl_multi_remove_handle(CURLM *m, CURL *e)
{
    (void)m, (void)e;
    return CURLM_OK;
}

CURLcode curl_easy_getinfo(CURL *e, CURLINFO what, ...)
{
    static struct curl_tlssessioninfo tls = {.backend = CURLSSLBACKEND_OPENSSL};
    va_list ap;

    (void)e;
    va_start(ap, what);
    void *ret = va_arg(ap, void *);
    va_end(ap);
    tls.internals = server.ssl;
    if (what == CURLINFO_ACTIVESOCKET)
        *(curl_socket_t *)ret = server.fd;
    else if (what == CURLINFO_TLS_SSL_PTR)
        *(struct curl_tlssessioninfo **)ret = &tls;
    else
        *(long *)ret = 0;
    return CURLE_OK;
}

void SSL_get0_alpn_selected(const SSL *ssl, const unsigned char **ret, unsigned *n)
{
    (void)ssl;
    *ret = (const unsigned char *)"h2";
    *n = server.h2 ? 2 : 0;
}

CURLcode curl_easy_recv(CURL *e, void *to, size_t max, size_t *ret_n)
{
    (void)e;
    *ret_n = 0;
    if (!server.n)
        return CURLE_AGAIN;
    size_t n = BH_MIN((size_t)server.p[0], server.n - 1);
    bh_assert(n <= max);
    memcpy(to, server.p + 1, n);
    *ret_n = n;
    server.p += 1 + n;
    server.n -= 1 + n;
    return CURLE_OK;
}

CURLcode curl_easy_send(CURL *e, const void *p, size_t n, size_t *ret_n)
{
    static unsigned turn;

    (void)e, (void)p;
    if (server.narrow && turn++ % 2)
        return CURLE_AGAIN;
    *ret_n = server.narrow ? BH_MIN(n, (size_t)7) : n;
    return CURLE_OK;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void read_as_pod(const struct bh_api_reply *r)
{
    struct bh_arena a;
    ProtobufCMessage *m = NULL;
    struct bh_err err = {""};

    bh_arena_init(&a, 64u << 20);
    (void)bh_decode_object(&a, &k8s__pod__descriptor, r->body.p, r->body.n, &m, &err);
    bh_arena_fini(&a);
}

static void on_done(void *arg, const struct bh_api_reply *r)
{
    struct bh_api_status s;

    bh_assert(!(*(unsigned *)arg)++);
    if (r->outcome != BH_API_OK) {
        bh_assert(r->outcome == BH_API_CANCELED || (r->error && *r->error));
        return;
    }
    bh_assert(r->sent && r->code >= 200 && r->code <= 999 && r->body.n <= REPLY_BYTES);
    bh_assert(r->retry_after_s >= -1 && strlen(r->content_type) < 128);
    bh_decode_status(r->body.p, r->body.n, r->code, &s);
    read_as_pod(r);
}

static struct bh_api_req *start(struct bh_api_client *c, unsigned i)
{
    static const char pod[] = "/api/v1/namespaces/default/pods/a";
    static const char body[] = "{\"kind\":\"Binding\",\"target\":{\"name\":\"a\"}}";
    const struct bh_api_call look = {.method = "GET", .path = pod};
    const struct bh_api_call bind = {.method = "POST",
                                     .path = pod,
                                     .content_type = "application/json",
                                     .body = body,
                                     .body_n = sizeof(body) - 1};
    struct bh_api_call call = i % 3 == 1 ? look : bind;

    call.max_reply_bytes = REPLY_BYTES;
    call.on_done = on_done;
    call.arg = &ended[i];
    ended[i] = 0;
    struct bh_api_req *r = bh_api_start(c, &call);
    bh_assert(r);
    return r;
}

/* One look at the connection; false when there is none, or nothing left to hear. */
static bool look(struct bh_api_client *c)
{
    struct bh_lane *l = TAILQ_FIRST(&c->lanes->lanes);

    if (!l || !server.n)
        return false;
    if (l->state == LANE_CONNECTING) {
        c->busy++;
        bh_lane_connected(l, CURLE_OK);
        bh_lanes_settle(c->lanes);
        bh_api_leave(c);
    } else {
        bh_lane_on_socket(l, UV_READABLE | UV_WRITABLE);
    }
    return true;
}

static struct bh_api_client *new_client(uv_loop_t *loop)
{
    const struct bh_api_options o = {.user_agent = "fuzz", .max_connections = 1, .lean = true};
    struct bh_api_config *cfg = NULL;
    struct bh_api_client *c = NULL;

    bh_assert(bh_kubeconfig_bare("http://127.0.0.1:1", &cfg, NULL) == 0);
    bh_assert(bh_api_client_new(loop, cfg, &o, &c, NULL) == 0);
    bh_api_config_free(cfg);
    return c;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct bh_api_req *given_up = NULL;
    uv_loop_t loop;

    if (n < 2)
        return 0;
    if (server.fd < 0) {
        SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
        server.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        server.ssl = SSL_new(ctx);
        SSL_CTX_free(ctx);
    }
    server.p = data + 1;
    server.n = n - 1;
    server.h2 = data[0] & 1;
    server.narrow = data[0] & 2;
    unsigned requests = 1 + (data[0] >> 3) % BH_ARRAY_LEN(ended);
    uv_loop_init(&loop);
    struct bh_api_client *c = new_client(&loop);
    for (unsigned i = 0; i < requests; i++) {
        struct bh_api_req *r = start(c, i);
        given_up = i == requests / 2 ? r : given_up;
    }
    uv_run(&loop, UV_RUN_NOWAIT);
    for (bool cancel = data[0] & 4; look(c); uv_run(&loop, UV_RUN_NOWAIT)) {
        if (cancel && server.n < n / 2) {
            if (!ended[requests / 2])
                bh_api_cancel(given_up);
            cancel = false;
        }
    }
    bh_api_client_free(c);
    uv_run(&loop, UV_RUN_DEFAULT);
    bh_loop_drain_close(&loop);
    for (unsigned i = 0; i < requests; i++)
        bh_assert(ended[i] == 1);
    return 0;
}
