/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/api/test_client.c - requests over plain HTTP: replies, limits, retries, ends
 */
#include "common/api/client.h"
#include "common/base/loop.h"
#include "tests/unit/common/api/raw_server.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <zmq.h>

#ifndef TEST_LEAN /* test_client_lean.c: the same over lanes */
#define TEST_LEAN false
#endif
#define MS UINT64_C(1000000)
#define S  (UINT64_C(1000) * MS)

struct got { /* one finished request */
    bool done;
    unsigned n_done, n_head, n_data;
    enum bh_api_outcome outcome;
    bool sent;
    int code, retry_after_s, os_errno;
    char type[64], error[256];
    struct bh_buf body, stream;
    int data_rc;
    struct bh_api_req *req;
    struct env *env;
    bool cancel_in_data;
};
struct env {
    uv_loop_t loop;
    struct raw_server server;
    struct bh_api_client *client;
    struct bh_api_config cfg;
    struct bh_api_options opts;
    char url[64];
};

static void on_done(void *arg, const struct bh_api_reply *r)
{
    struct got *g = arg;
    g->done = true;
    g->n_done++;
    g->outcome = r->outcome;
    g->sent = r->sent;
    g->os_errno = r->os_errno;
    g->code = r->code;
    g->retry_after_s = r->retry_after_s;
    snprintf(g->type, sizeof(g->type), "%s", r->content_type);
    snprintf(g->error, sizeof(g->error), "%s", r->error ? r->error : "");
    bh_buf_add(&g->body, r->body.p, r->body.n);
}

static int on_head(void *arg, int code, const char *type)
{
    struct got *g = arg;
    (void)code, (void)type;
    g->n_head++;
    return 0;
}

static int on_data(void *arg, const void *p, size_t n)
{
    struct got *g = arg;
    g->n_data++;
    bh_buf_add(&g->stream, p, n);
    if (g->cancel_in_data)
        bh_api_cancel(g->req);
    return g->data_rc;
}

static bool is_done(void *arg)
{
    return ((struct got *)arg)->done;
}

static void got_fini(struct got *g)
{
    bh_buf_fini(&g->body);
    bh_buf_fini(&g->stream);
    *g = (struct got){.done = false};
}

static void env_start(struct env *e,
                      void (*handler)(struct raw_server *, const struct raw_request *), void *arg)
{
    struct bh_err err = {""};
    uv_loop_init(&e->loop);
    raw_start(&e->server, &e->loop, handler, arg);
    snprintf(e->url, sizeof(e->url), "http://127.0.0.1:%u", e->server.port);
    e->cfg.server = e->url;
    e->opts.lean = TEST_LEAN;
    CU_ASSERT_EQUAL_FATAL(bh_api_client_new(&e->loop, &e->cfg, &e->opts, &e->client, &err), 0);
}

static void env_stop(struct env *e)
{
    bh_api_client_free(e->client);
    raw_stop(&e->server);
    bh_loop_drain_close(&e->loop);
}

static struct bh_api_call call_of(struct got *g, const char *method, const char *path)
{
    return (struct bh_api_call){
        .method = method, .path = path, .timeout_ns = 120 * S, .on_done = on_done, .arg = g};
}

static void run(struct env *e, const struct bh_api_call *call, struct got *g)
{
    g->req = bh_api_start(e->client, call);
    CU_ASSERT(!g->done); /* never from inside the call */
    CU_ASSERT(run_until(&e->loop, is_done, g));
}

/* ---- what is sent, what comes back ----------------------------------------------------------- */

static void echo(struct raw_server *s, const struct raw_request *r)
{
    struct bh_buf b = {0};
    (void)s;
    bh_buf_addf(&b, "%s %s\n%s\n\n%s", r->method, r->target, r->head, r->body);
    raw_reply(r->conn, 201, "Content-Type: text/plain\r\nRetry-After: 7\r\n", b.p, b.n);
    bh_buf_fini(&b);
}

static void test_request(void)
{
    struct env e = {.opts.user_agent = "berth-test/1", .cfg.token = (char *)"t0ken"};
    struct got g = {0};
    env_start(&e, echo, NULL);
    struct bh_api_call call = call_of(&g, "PATCH", "/api/v1/pods/a%20b?x=1");
    call.content_type = "application/merge-patch+json";
    call.accept = "application/vnd.kubernetes.protobuf";
    call.extra_header = "X-Extra: yes";
    call.body = "{\"a\":1}";
    call.body_n = 7;
    run(&e, &call, &g);
    CU_ASSERT_EQUAL(g.outcome, BH_API_OK);
    CU_ASSERT_EQUAL(g.code, 201);
    CU_ASSERT(g.sent);
    CU_ASSERT_EQUAL(g.retry_after_s, 7);
    CU_ASSERT_STRING_EQUAL(g.type, "text/plain");
    static const char *const wanted[] = {"PATCH /api/v1/pods/a%20b?x=1\n",
                                         "Authorization: Bearer t0ken\r\n",
                                         "User-Agent: berth-test/1\r\n",
                                         "Content-Type: application/merge-patch+json\r\n",
                                         "X-Extra: yes",
                                         "Accept: application/vnd.kubernetes.protobuf\r\n",
                                         "\n\n{\"a\":1}"};
    for (size_t i = 0; i < BH_ARRAY_LEN(wanted); i++) {
        if (!strstr(bh_buf_str(&g.body), wanted[i]))
            printf("# missing: %s in %s\n", wanted[i], bh_buf_str(&g.body));
        CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&g.body), wanted[i]));
    }
    CU_ASSERT_PTR_NULL(strstr(bh_buf_str(&g.body), "Accept-Encoding"));
    CU_ASSERT_PTR_NULL(strstr(bh_buf_str(&g.body), "Expect"));
    got_fini(&g);
    env_stop(&e);
}

static void test_methods(void)
{
    static const char *const methods[] = {"GET", "POST", "PUT", "DELETE", "PATCH", "GET", "DELETE"};
    struct env e = {.cfg.username = (char *)"u", .cfg.password = (char *)"pw"};
    env_start(&e, echo, NULL);
    for (size_t i = 0; i < BH_ARRAY_LEN(methods); i++) {
        for (int body = 0; body < 2; body++) {
            struct got g = {0};
            char want[32];
            struct bh_api_call call = call_of(&g, methods[i], "/x");
            call.body = body ? "hello" : NULL;
            call.body_n = body ? 5 : 0;
            call.content_type = body ? "text/plain" : NULL;
            run(&e, &call, &g);
            snprintf(want, sizeof(want), "%s /x\n", methods[i]);
            CU_ASSERT_EQUAL(strncmp(bh_buf_str(&g.body), want, strlen(want)), 0);
            CU_ASSERT_EQUAL(strstr(bh_buf_str(&g.body), "\n\nhello") != NULL, body);
            CU_ASSERT_PTR_NOT_NULL(
                strstr(bh_buf_str(&g.body), "Authorization: Basic dTpwdw==")); /* u:pw */
            CU_ASSERT_PTR_NULL(strstr(bh_buf_str(&g.body), "x-www-form-urlencoded"));
            got_fini(&g);
        }
    }
    CU_ASSERT_EQUAL(e.server.connections, 1); /* all over one kept connection */
    env_stop(&e);
}

/* Only writes of fields name their owner. */
static void test_field_manager(void)
{
    static const char *const cases[][3] = {
        {"GET", "/x", "GET /x\n"},
        {"DELETE", "/x", "DELETE /x\n"},
        {"POST", "/x", "POST /x?fieldManager=kube-scheduler\n"},
        {"PUT", "/x", "PUT /x?fieldManager=kube-scheduler\n"},
        {"PATCH", "/x?force=true", "PATCH /x?force=true&fieldManager=kube-scheduler\n"}};
    struct env e = {.opts.field_manager = BH_API_FIELD_MANAGER};

    env_start(&e, echo, NULL);
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        struct got g = {0};
        struct bh_api_call call = call_of(&g, cases[i][0], cases[i][1]);
        run(&e, &call, &g);
        CU_ASSERT_EQUAL(strncmp(bh_buf_str(&g.body), cases[i][2], strlen(cases[i][2])), 0);
        got_fini(&g);
    }
    env_stop(&e);
}

static void test_do(void)
{
    struct env e = {0};
    struct bh_buf body = {0};
    struct bh_err err;
    int code = 0;
    env_start(&e, echo, NULL);
    struct bh_api_call call = {.method = "GET", .path = "/version", .timeout_ns = 120 * S};
    CU_ASSERT_EQUAL(bh_api_do(&e.loop, e.client, &call, &code, &body, &err), 0);
    CU_ASSERT_EQUAL(code, 201);
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&body), "GET /version"));
    raw_stop(&e.server);
    CU_ASSERT_EQUAL(bh_api_do(&e.loop, e.client, &call, &code, &body, &err), -EIO);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "GET /version: "));
    bh_buf_fini(&body);
    env_stop(&e);
}

/* ---- connections ----------------------------------------------------------------------------- */

struct many {
    unsigned running, running_max, done, failed;
};

static void many_handler(struct raw_server *s, const struct raw_request *r)
{
    (void)s;
    raw_json(r->conn, 200, "{}");
}

static void many_done(void *arg, const struct bh_api_reply *r)
{
    struct many *m = arg;
    m->done++;
    m->failed += r->outcome != BH_API_OK || r->code != 200;
}

static bool many_all(void *arg)
{
    return ((struct many *)arg)->done >= 1000;
}

static void test_few_connections(void)
{
    struct env e = {.opts.max_connections = 5};
    struct many m = {0};
    env_start(&e, many_handler, &m);
    for (int i = 0; i < 1000; i++) {
        struct bh_api_call call = {.method = "POST",
                                   .path = "/b",
                                   .body = "x",
                                   .body_n = 1,
                                   .timeout_ns = 120 * S,
                                   .on_done = many_done,
                                   .arg = &m};
        bh_api_start(e.client, &call);
    }
    CU_ASSERT_EQUAL(bh_api_in_flight(e.client), 1000);
    CU_ASSERT(run_until(&e.loop, many_all, &m));
    CU_ASSERT_EQUAL(m.done, 1000);
    CU_ASSERT_EQUAL(m.failed, 0);
    CU_ASSERT(e.server.connections <= 5);
    CU_ASSERT_EQUAL(bh_api_in_flight(e.client), 0);
    env_stop(&e);
}

static void hang_on_watch(struct raw_server *s, const struct raw_request *r)
{
    (void)s;
    if (strstr(r->target, "watch"))
        raw_stream(r->conn, "application/json");
    else
        raw_json(r->conn, 200, "{}");
}

static bool heads_of_all(void *arg)
{
    struct got *g = arg;
    unsigned n = 0;
    for (int i = 0; i < 30; i++)
        n += g[i].n_head;
    return n == 30;
}

static void test_watches_do_not_delay_writes(void)
{
    struct env e = {.opts.max_connections = 2};
    struct got watches[30] = {0}, g = {0};
    env_start(&e, hang_on_watch, NULL);
    for (int i = 0; i < 30; i++) {
        struct bh_api_call call = call_of(&watches[i], "GET", "/watch");
        call.timeout_ns = 0;
        call.long_lived = true;
        call.on_head = on_head;
        call.on_data = on_data;
        watches[i].req = bh_api_start(e.client, &call);
    }
    CU_ASSERT(run_until(&e.loop, heads_of_all, watches));
    struct bh_api_call call = call_of(&g, "POST", "/w");
    run(&e, &call, &g);
    CU_ASSERT_EQUAL(g.code, 200);
    got_fini(&g);
    env_stop(&e); /* the watches end with the client */
    for (int i = 0; i < 30; i++) {
        CU_ASSERT_EQUAL(watches[i].n_done, 1);
        CU_ASSERT_EQUAL(watches[i].outcome, BH_API_CANCELED);
        got_fini(&watches[i]);
    }
}

/* ---- ends of all kinds ----------------------------------------------------------------------- */

static void silent(struct raw_server *s, const struct raw_request *r)
{
    (void)s, (void)r;
}

static void test_deadline(void)
{
    struct env e = {0};
    struct got g = {0};
    env_start(&e, silent, NULL);
    struct bh_api_call call = call_of(&g, "POST", "/slow");
    call.timeout_ns = 60 * MS;
    run(&e, &call, &g);
    CU_ASSERT_EQUAL(g.outcome, BH_API_TIMEOUT);
    CU_ASSERT(g.sent); /* so the outcome is unknown */
    CU_ASSERT_EQUAL(g.code, 0);
    CU_ASSERT(*g.error);
    got_fini(&g);
    env_stop(&e);
}

#define STREAMS 40u

/* Bytes on every connection each millisecond, so that libcurl looks at its clock all the time. */
static void drip_all(uv_timer_t *t)
{
    const struct raw_server *s = t->data;

    for (struct raw_conn *c = s->requests == STREAMS ? s->conns : NULL; c; c = c->next)
        raw_chunks(c, " ");
}

static void begin_stream(struct raw_server *s, const struct raw_request *r)
{
    (void)s;
    raw_stream(r->conn, "application/json");
}

static void test_deadline_beside_bytes(void)
{
    struct env e = {0};
    struct got g[STREAMS] = {{0}};
    uv_timer_t timer;

    env_start(&e, begin_stream, NULL);
    uv_timer_init(&e.loop, &timer);
    timer.data = &e.server;
    uv_timer_start(&timer, drip_all, 1, 1);
    for (unsigned i = 0; i < STREAMS; i++) {
        struct bh_api_call call = call_of(&g[i], "GET", "/slow");
        call.timeout_ns = 990 * MS + i * MS / 32; /* over the end of a second of the clock */
        call.long_lived = true;                   /* a connection each */
        g[i].req = bh_api_start(e.client, &call);
    }
    for (unsigned i = 0; i < STREAMS; i++) {
        CU_ASSERT(run_until(&e.loop, is_done, &g[i]));
        CU_ASSERT_EQUAL(g[i].outcome, BH_API_TIMEOUT); /* and not a broken connection */
        got_fini(&g[i]);
    }
    uv_close((uv_handle_t *)&timer, NULL);
    env_stop(&e);
}

static void half_stream(struct raw_server *s, const struct raw_request *r)
{
    (void)s;
    raw_stream(r->conn, "application/json");
    raw_chunks(r->conn, "{}");
}

static void test_idle_timeout(void)
{
    struct env e = {0};
    struct got g = {0};
    env_start(&e, half_stream, NULL);
    struct bh_api_call call = call_of(&g, "GET", "/watch");
    call.timeout_ns = 0;
    call.idle_timeout_ns = 50 * MS;
    call.long_lived = true;
    call.on_head = on_head;
    call.on_data = on_data;
    run(&e, &call, &g);
    CU_ASSERT_EQUAL(g.outcome, BH_API_TIMEOUT);
    CU_ASSERT_EQUAL(g.n_head, 1);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&g.stream), "{}");
    CU_ASSERT_EQUAL(g.body.n, 0);
    got_fini(&g);
    env_stop(&e);
}

/* ---- a stream that is hardly ever quiet ---- */

#define PIECES 100u

struct drip {
    uv_timer_t timer;
    struct raw_conn *conn; /* the stream's; NULL = none yet */
    unsigned sent;
    bool end;
};

static void drip_piece(uv_timer_t *t)
{
    struct drip *d = t->data;
    char text[8];

    if (d->conn && d->sent < PIECES) {
        snprintf(text, sizeof(text), "%u,", d->sent++);
        raw_chunks(d->conn, text);
    } else if (d->conn && d->end) {
        raw_stream_end(d->conn);
        d->conn = NULL;
    }
}

static void drip(struct raw_server *s, const struct raw_request *r)
{
    struct drip *d = s->arg;

    if (!bh_streq(r->target, "/watch")) {
        raw_json(r->conn, 200, "{}");
        return;
    }
    raw_stream(r->conn, "application/json");
    d->conn = r->conn;
}

static void drip_start(struct env *e, struct drip *d, struct got *g, unsigned company_ms)
{
    *d = (struct drip){.end = d->end};
    env_start(e, drip, d);
    uv_timer_init(&e->loop, &d->timer);
    d->timer.data = d;
    uv_timer_start(&d->timer, drip_piece, 1, 1);
    struct bh_api_call call = call_of(g, "GET", "/watch");
    call.timeout_ns = 0;
    call.long_lived = true;
    call.company_ms = company_ms;
    call.on_data = on_data;
    g->req = bh_api_start(e->client, &call);
}

static void drip_stop(struct env *e, struct drip *d, struct got *g)
{
    uv_close((uv_handle_t *)&d->timer, NULL);
    env_stop(e);
    CU_ASSERT_EQUAL(g->n_done, 1);
    got_fini(g);
}

static bool half_of_it(void *arg)
{
    return ((struct got *)arg)->n_data >= PIECES / 2;
}

static void test_pieces_in_company(void)
{
    struct env e = {0};
    struct got g = {0}, other = {0};
    struct drip d = {.end = true};
    struct bh_buf want = {0};
    unsigned looks = 0;
    uint64_t until = bh_mono_ns() + 120 * S;

    drip_start(&e, &d, &g, 50);
    while (!g.done && bh_mono_ns() < until) {
        unsigned before = g.n_data;
        uv_run(&e.loop, UV_RUN_ONCE);
        looks += g.n_data > before;
    }
    for (unsigned i = 0; i < PIECES; i++)
        bh_buf_addf(&want, "%u,", i);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&g.stream), bh_buf_str(&want));
    CU_ASSERT_EQUAL(g.outcome, BH_API_OK);
    CU_ASSERT(looks >= 2);
    CU_ASSERT(looks <= PIECES / 2);
    struct bh_api_call call = call_of(&other, "GET", "/x");
    run(&e, &call, &other);
    CU_ASSERT_EQUAL(other.code, 200);
    CU_ASSERT_EQUAL(e.server.connections, 2); /* the stream's was its own */
    got_fini(&other);
    bh_buf_fini(&want);
    drip_stop(&e, &d, &g);
}

/* While the stream's socket is left alone: canceled, cut off by the server, its client freed. */
static void test_ends_in_company(void)
{
    for (int how = 0; how < 3; how++) {
        struct env e = {0};
        struct got g = {0};
        struct drip d = {.end = false};
        drip_start(&e, &d, &g, 20);
        CU_ASSERT(run_until(&e.loop, half_of_it, &g));
        if (how == 0)
            bh_api_cancel(g.req);
        else if (how == 1)
            raw_cut_all(&e.server);
        d.conn = NULL;
        if (how < 2)
            CU_ASSERT(run_until(&e.loop, is_done, &g));
        drip_stop(&e, &d, &g);
    }
}

static void cut(struct raw_server *s, const struct raw_request *r)
{
    (void)s;
    raw_close(r->conn);
}

static void test_connection_lost(void)
{
    struct env e = {0};
    struct got g = {0};
    env_start(&e, cut, NULL);
    struct bh_api_call call = call_of(&g, "POST", "/lost");
    run(&e, &call, &g);
    CU_ASSERT_EQUAL(g.outcome, BH_API_TRANSPORT);
    CU_ASSERT(g.sent);
    got_fini(&g);
    env_stop(&e);
}

static void test_nobody_listens(void)
{
    struct env e = {0};
    struct got g = {0};
    env_start(&e, cut, NULL);
    raw_stop(&e.server);
    uv_run(&e.loop, UV_RUN_NOWAIT);
    struct bh_api_call call = call_of(&g, "POST", "/x");
    run(&e, &call, &g);
    CU_ASSERT_EQUAL(g.outcome, BH_API_TRANSPORT);
    CU_ASSERT(!g.sent);
    CU_ASSERT_PTR_NOT_NULL(strstr(g.error, "onnect"));
    got_fini(&g);
    env_stop(&e);
}

/* Descriptors are used up: the connection is not what is wrong. */
static void without_descriptors(const char *server)
{
    struct env e = {0};
    struct got g = {0};
    struct rlimit was, none;

    env_start(&e, echo, NULL);
    if (server) {
        struct bh_err err;
        bh_api_client_free(e.client);
        e.cfg.server = (char *)(uintptr_t)server;
        CU_ASSERT_EQUAL_FATAL(bh_api_client_new(&e.loop, &e.cfg, &e.opts, &e.client, &err), 0);
    }
    struct bh_api_call call = call_of(&g, "GET", "/x");
    uv_run(&e.loop, UV_RUN_NOWAIT); /* the loop has what it needs */
    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = (struct rlimit){.rlim_cur = 3, .rlim_max = was.rlim_max};
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &none), 0);
    run(&e, &call, &g);
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &was), 0);
    CU_ASSERT_EQUAL(g.outcome, BH_API_TRANSPORT);
    CU_ASSERT(!g.sent);
    CU_ASSERT_EQUAL(g.os_errno, EMFILE);
    CU_ASSERT_PTR_NOT_NULL(strstr(g.error, "EMFILE"));
    CU_ASSERT_PTR_NOT_NULL(strstr(g.error, "may have 3;"));
    CU_ASSERT_PTR_NOT_NULL(strstr(g.error, "LimitNOFILE="));
    got_fini(&g);
    if (!server) { /* and when there are some again, it works */
        run(&e, &call, &g);
        CU_ASSERT_EQUAL(g.outcome, BH_API_OK);
        got_fini(&g);
    }
    env_stop(&e);
}

static void test_no_descriptor_is_left(void)
{
    without_descriptors(NULL);
}

static void test_no_descriptor_is_left_for_a_name(void)
{
    without_descriptors("http://server.invalid:8080");
}

static void short_body(struct raw_server *s, const struct raw_request *r)
{
    (void)s;
    raw_sends(r->conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
    raw_close(r->conn);
}

static void test_truncated_reply(void)
{
    struct env e = {0};
    struct got g = {0};
    env_start(&e, short_body, NULL);
    struct bh_api_call call = call_of(&g, "GET", "/x");
    run(&e, &call, &g);
    CU_ASSERT_EQUAL(g.outcome, BH_API_TRANSPORT);
    got_fini(&g);
    env_stop(&e);
}

static void test_reply_too_large(void)
{
    struct env e = {0};
    struct got g = {0};
    env_start(&e, echo, NULL);
    struct bh_api_call call = call_of(&g, "GET", "/x");
    call.max_reply_bytes = 10;
    run(&e, &call, &g);
    CU_ASSERT_EQUAL(g.outcome, BH_API_TRANSPORT);
    CU_ASSERT_PTR_NOT_NULL(strstr(g.error, "larger than allowed"));
    got_fini(&g);
    env_stop(&e);
}

static void test_reader_stops(void)
{
    struct env e = {0};
    struct got g = {.data_rc = -1};
    env_start(&e, half_stream, NULL);
    struct bh_api_call call = call_of(&g, "GET", "/watch");
    call.on_data = on_data;
    run(&e, &call, &g);
    CU_ASSERT_EQUAL(g.outcome, BH_API_TRANSPORT);
    CU_ASSERT_EQUAL(g.n_data, 1);
    got_fini(&g);
    env_stop(&e);
}

static void test_cancel(void)
{
    struct env e = {0};
    struct got g = {0}, h = {.cancel_in_data = true};
    env_start(&e, half_stream, NULL);
    struct bh_api_call call = call_of(&g, "GET", "/a");
    g.req = bh_api_start(e.client, &call);
    bh_api_cancel(g.req);
    bh_api_cancel(g.req);
    CU_ASSERT(!g.done);
    CU_ASSERT(run_until(&e.loop, is_done, &g));
    CU_ASSERT_EQUAL(g.n_done, 1);
    CU_ASSERT_EQUAL(g.outcome, BH_API_CANCELED);

    call = call_of(&h, "GET", "/b"); /* from inside a callback that libcurl called */
    call.on_data = on_data;
    run(&e, &call, &h);
    CU_ASSERT_EQUAL(h.outcome, BH_API_CANCELED);
    CU_ASSERT_EQUAL(h.n_data, 1);
    got_fini(&g);
    got_fini(&h);
    env_stop(&e);
}

static void free_client(void *arg, const struct bh_api_reply *r)
{
    struct got *g = arg;
    on_done(g, r);
    bh_api_client_free(g->env->client);
    CU_ASSERT_PTR_NULL(bh_api_start(g->env->client, &(struct bh_api_call){0}));
}

static void test_free_from_callback(void)
{
    struct env e = {0};
    struct got g = {.env = &e}, other = {0};
    env_start(&e, hang_on_watch, NULL);
    struct bh_api_call watch = call_of(&other, "GET", "/watch");
    bh_api_start(e.client, &watch);
    struct bh_api_call call = call_of(&g, "GET", "/x");
    call.on_done = free_client;
    run(&e, &call, &g);
    CU_ASSERT(run_until(&e.loop, is_done, &other));
    CU_ASSERT_EQUAL(other.outcome, BH_API_CANCELED);
    raw_stop(&e.server);
    bh_loop_drain_close(&e.loop);
    got_fini(&g);
    got_fini(&other);
}

struct chain {
    struct env *e;
    struct got inner;
    bool started;
};

static int start_inside(void *arg, const void *p, size_t n)
{
    struct chain *c = arg;
    (void)p, (void)n;
    if (!c->started) {
        struct bh_api_call call = call_of(&c->inner, "GET", "/inner");
        bh_api_start(c->e->client, &call);
    }
    c->started = true;
    return 0;
}

static void nothing_done(void *arg, const struct bh_api_reply *r)
{
    (void)arg, (void)r;
}

static void test_start_from_stream(void)
{
    struct env e = {0};
    struct chain c = {.e = &e};
    env_start(&e, hang_on_watch, NULL);
    e.server.handler = half_stream;
    struct bh_api_call call = {.method = "GET",
                               .path = "/outer",
                               .on_data = start_inside,
                               .on_done = nothing_done,
                               .arg = &c};
    bh_api_start(e.client, &call);
    e.server.handler = half_stream;
    while (!c.started)
        uv_run(&e.loop, UV_RUN_ONCE);
    e.server.handler = echo;
    CU_ASSERT(run_until(&e.loop, is_done, &c.inner));
    CU_ASSERT_EQUAL(c.inner.code, 201);
    env_stop(&e);
    got_fini(&c.inner);
}

/* ---- retries and limits ---------------------------------------------------------------------- */

struct flaky {
    int code, times;
    const char *header;
    uint64_t at_ns[32];
};

static void flaky(struct raw_server *s, const struct raw_request *r)
{
    struct flaky *f = s->arg;
    if (s->requests <= BH_ARRAY_LEN(f->at_ns))
        f->at_ns[s->requests - 1] = bh_mono_ns();
    if ((int)s->requests <= f->times)
        raw_reply(r->conn, f->code, f->header, "no", 2);
    else
        raw_json(r->conn, 200, "{}");
}

static void test_retry_after(void)
{
    struct flaky f = {.code = 429, .times = 1, .header = "Retry-After: 1\r\n"};
    struct env e = {0};
    struct got g = {0};
    env_start(&e, flaky, &f);
    struct bh_api_call call = call_of(&g, "POST", "/x");
    call.retry_429_5xx = true;
    run(&e, &call, &g);
    CU_ASSERT_EQUAL(g.code, 200);
    CU_ASSERT_EQUAL(e.server.requests, 2);
    CU_ASSERT(f.at_ns[1] - f.at_ns[0] >= 990 * MS);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&g.body), "{}"); /* nothing of the refusal is left */
    got_fini(&g);
    env_stop(&e);
}

static void test_retry_limits(void)
{
    static const struct {
        const char *header;
        int code;
        bool flag;
        uint64_t timeout_ns;
        unsigned requests;
    } cases[] = {
        {"Retry-After: 0\r\n", 503, true, 10 * S, 10}, /* ten attempts, then the answer as it is */
        {"", 503, true, 10 * S, 1},                    /* without the header: the caller's affair */
        {"Retry-After: 0\r\n", 503, false, 10 * S, 1},
        {"Retry-After: 0\r\n", 409, true, 10 * S, 1},
        {"Retry-After: 60\r\n", 429, true, 2 * S, 1}, /* beyond the deadline: no use waiting */
        {"Retry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n", 429, true, 10 * S, 1},
        {"Retry-After: -1\r\n", 429, true, 10 * S, 1},
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        struct flaky f = {.code = cases[i].code, .times = 100, .header = cases[i].header};
        struct env e = {0};
        struct got g = {0};
        env_start(&e, flaky, &f);
        struct bh_api_call call = call_of(&g, "GET", "/x");
        call.retry_429_5xx = cases[i].flag;
        call.timeout_ns = cases[i].timeout_ns;
        run(&e, &call, &g);
        CU_ASSERT_EQUAL(g.outcome, BH_API_OK);
        CU_ASSERT_EQUAL(g.code, cases[i].code);
        CU_ASSERT_EQUAL(e.server.requests, cases[i].requests);
        got_fini(&g);
        env_stop(&e);
    }
}

static void count_done(void *arg, const struct bh_api_reply *r)
{
    (void)r;
    ++*(unsigned *)arg;
}

static bool all_thirty(void *arg)
{
    return *(unsigned *)arg == 30;
}

static void test_rate_limit(void)
{
    struct env e = {.opts.qps = 100, .opts.burst = 10};
    struct flaky f = {.code = 500, .times = 0};
    unsigned done = 0;
    struct got w = {0};
    env_start(&e, flaky, &f);
    const uint64_t began_ns = bh_mono_ns();
    for (int i = 0; i < 30; i++) {
        struct bh_api_call call = {
            .method = "GET", .path = "/x", .on_done = count_done, .arg = &done};
        bh_api_start(e.client, &call);
    }
    struct bh_api_call watch = call_of(&w, "GET", "/watch"); /* exempt: overtakes the queue */
    watch.long_lived = true;
    run(&e, &watch, &w);
    CU_ASSERT(done < 30);
    CU_ASSERT(run_until(&e.loop, all_thirty, &done));
    /* 31 requests, 10 at once and 1 exempt: the last of the 20 others waited for 20 tokens */
    CU_ASSERT(f.at_ns[30] - began_ns >= 190 * MS);
    got_fini(&w);

    /* one that cannot be sent before its deadline is told so */
    struct got late = {0};
    done = 0;
    for (int i = 0; i < 30; i++) {
        struct bh_api_call call = {
            .method = "GET", .path = "/x", .on_done = count_done, .arg = &done};
        bh_api_start(e.client, &call);
    }
    struct bh_api_call call = call_of(&late, "GET", "/late");
    call.timeout_ns = 20 * MS;
    run(&e, &call, &late);
    CU_ASSERT_EQUAL(late.outcome, BH_API_TIMEOUT);
    CU_ASSERT(!late.sent);
    got_fini(&late);
    env_stop(&e);
}

/* ---- not after ------------------------------------------------------------------------------- */

struct hold { /* answers only when told to */
    struct raw_conn *conn;
    struct got *g;
};

static void keep_waiting(struct raw_server *s, const struct raw_request *r)
{
    ((struct hold *)s->arg)->conn = r->conn;
}

static bool arrived_or_done(void *arg)
{
    const struct hold *h = arg;
    return h->conn || h->g->done;
}

/* As long as the process could have been stopped. */
static void wait_past(uint64_t boot_ns)
{
    const struct timespec ms = {.tv_nsec = 1000000};
    while (bh_boot_ns() < boot_ns)
        nanosleep(&ms, NULL);
}

static void test_not_after(void)
{
    struct env e = {.opts.user_agent = "x"};
    struct got g = {0};
    struct hold h = {.g = &g};
    env_start(&e, echo, NULL);
    struct bh_api_call call = call_of(&g, "POST", "/first");
    for (int i = 0; i < 2; i++) { /* on a new connection, then on one that is open */
        call.not_after_boot_ns = bh_boot_ns() + 20 * MS;
        g.req = bh_api_start(e.client, &call);
        wait_past(call.not_after_boot_ns);
        CU_ASSERT(run_until(&e.loop, is_done, &g));
        CU_ASSERT_EQUAL(g.outcome, BH_API_TIMEOUT);
        CU_ASSERT(!g.sent && g.n_done == 1);
        CU_ASSERT_EQUAL(e.server.requests, (unsigned)i);
        got_fini(&g);
        call.not_after_boot_ns = bh_boot_ns() + 10 * S;
        run(&e, &call, &g);
        CU_ASSERT_EQUAL(g.code, 201);
        got_fini(&g);
    }

    /* What is out goes on; a slow machine gets more time to send it. */
    e.server.handler = keep_waiting;
    e.server.arg = &h;
    for (uint64_t ms = 100; !h.conn && ms < 10000; ms *= 2) {
        got_fini(&g);
        call.not_after_boot_ns = bh_boot_ns() + ms * MS;
        g.req = bh_api_start(e.client, &call);
        CU_ASSERT(run_until(&e.loop, arrived_or_done, &h));
    }
    wait_past(call.not_after_boot_ns);
    CU_ASSERT_FATAL(h.conn && !g.done);
    raw_json(h.conn, 200, "{}");
    CU_ASSERT(run_until(&e.loop, is_done, &g));
    CU_ASSERT(g.outcome == BH_API_OK && g.code == 200 && g.sent);
    got_fini(&g);
    env_stop(&e);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static void want_new_token(struct raw_server *s, const struct raw_request *r)
{
    (void)s;
    if (strstr(r->head, "Bearer new"))
        raw_json(r->conn, 200, "{}");
    else
        raw_json(r->conn, 401, "{\"kind\":\"Status\"}");
}

static void test_token_file(void)
{
    char *path = bh_asprintf("%s/token", bh_test_tmpdir());
    struct env e = {.cfg.token_file = path};
    struct got g = {0};
    CU_ASSERT_EQUAL(bh_write_file(path, "old\n", 4, 0600), 0);
    env_start(&e, want_new_token, NULL);
    struct bh_api_call call = call_of(&g, "GET", "/x");
    run(&e, &call, &g);
    CU_ASSERT_EQUAL(g.code, 401);
    got_fini(&g);

    CU_ASSERT_EQUAL(bh_write_file(path, "new\n", 4, 0600), 0);
    run(&e, &call, &g); /* not looked at yet: a minute has not passed; but a 401 makes it */
    CU_ASSERT_EQUAL(g.code, 401);
    got_fini(&g);
    run(&e, &call, &g);
    CU_ASSERT_EQUAL(g.code, 200);
    got_fini(&g);

    remove(path); /* an unreadable file keeps the token */
    bh_api_client_reload(e.client);
    run(&e, &call, &g);
    CU_ASSERT_EQUAL(g.code, 200);
    got_fini(&g);
    env_stop(&e);

    struct bh_api_client *c = NULL;
    struct bh_err err = {""};
    uv_loop_t loop;
    uv_loop_init(&loop);
    CU_ASSERT_EQUAL(bh_api_client_new(&loop, &e.cfg, &e.opts, &c, &err), -ENOENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, path));
    uv_loop_close(&loop);
    free(path);
}

/* ---- credentials that a command prints ------------------------------------------------------- */

static char *no_texts[] = {NULL};

/* A command of its own for each test: /bin/sh -c SCRIPT. */
static void exec_start(struct env *e, struct bh_exec_config *x, char *script)
{
    static char sh[] = "/bin/sh", version[] = "client.authentication.k8s.io/v1", flag[] = "-c";
    static char *args[3];

    args[0] = flag;
    args[1] = script;
    *x = (struct bh_exec_config){
        .command = sh, .args = args, .env = no_texts, .api_version = version};
    x->provide_cluster_info = true;
    e->cfg.exec = x;
    env_start(e, want_new_token, NULL);
}

#define PRINT(status)                                                                              \
    "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","       \
    "\"status\":" status "}'"

static void test_exec_credentials(void)
{
    struct env e = {0};
    struct bh_exec_config x;
    char *script =
        bh_asprintf("cd '%s' && echo run >>runs && echo \"$KUBERNETES_EXEC_INFO\" >info;"
                    "if test -e fresh; then " PRINT("{\"token\":\"new\"}") "; else " PRINT(
                        "{\"token\":\"old\"}") "; fi",
                    bh_test_tmpdir());
    char *info = bh_asprintf("%s/info", bh_test_tmpdir()), *fresh, *runs, *text = NULL;
    struct got g[20] = {0};
    size_t n = 0;

    fresh = bh_asprintf("%s/fresh", bh_test_tmpdir());
    runs = bh_asprintf("%s/runs", bh_test_tmpdir());
    exec_start(&e, &x, script);
    for (size_t i = 0; i < BH_ARRAY_LEN(g); i++) { /* all wait for the one command */
        struct bh_api_call call = call_of(&g[i], "GET", "/x");
        CU_ASSERT_PTR_NOT_NULL(bh_api_start(e.client, &call));
    }
    for (size_t i = 0; i < BH_ARRAY_LEN(g); i++) {
        CU_ASSERT(run_until(&e.loop, is_done, &g[i]));
        CU_ASSERT_EQUAL(g[i].code, 401);
        got_fini(&g[i]);
    }
    CU_ASSERT_EQUAL(bh_read_file(runs, 100, &text, &n), 0);
    CU_ASSERT_STRING_EQUAL(text, "run\n");
    free(text);
    CU_ASSERT_EQUAL_FATAL(bh_read_file(info, 4096, &text, &n), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"cluster\":{\"server\":\"http://127.0.0.1:"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"interactive\":false}}"));
    free(text);
    CU_ASSERT_EQUAL(bh_write_file(fresh, "", 0, 0600),
                    0); /* refused: the next run prints another */
    do {
        struct bh_api_call call = call_of(&g[0], "GET", "/x");
        got_fini(&g[0]);
        run(&e, &call, &g[0]);
    } while (g[0].code == 401);
    CU_ASSERT_EQUAL(g[0].code, 200);
    got_fini(&g[0]);
    env_stop(&e);
    free(script);
    free(info);
    free(fresh);
    free(runs);
}

/* Descriptors that a forked command would have. */
static unsigned n_inheritable(void)
{
    unsigned n = 0;

    for (int fd = 3; fd < 256; fd++) {
        int flags = fcntl(fd, F_GETFD);
        n += flags >= 0 && !(flags & FD_CLOEXEC);
    }
    return n;
}

/* Nothing that is open here reaches a command: neither ZeroMQ's sockets, which are close-on-exec,
 * nor a descriptor that is not. */
static void test_exec_descriptors(void)
{
    struct env e = {0};
    struct bh_exec_config x;
    const unsigned before = n_inheritable();
    void *ctx = zmq_ctx_new(), *bound = zmq_socket(ctx, ZMQ_PAIR),
         *peer = zmq_socket(ctx, ZMQ_PAIR);
    struct got g = {0};
    char hello[5], *text = NULL, *endpoint = bh_asprintf("ipc://%s/bus.sock", bh_test_tmpdir());
    char *fds = bh_asprintf("%s/fds", bh_test_tmpdir());
    char *script =
        bh_asprintf("i=3; while test $i -lt 256; do test -e /proc/$$/fd/$i && l=\"$l $i\";"
                    "i=$((i+1)); done; echo \"open:$l\" >'%s'; " PRINT("{\"token\":\"new\"}"),
                    fds);
    size_t n = 0;

    CU_ASSERT_EQUAL_FATAL(zmq_bind(bound, endpoint) | zmq_connect(peer, endpoint), 0);
    CU_ASSERT_EQUAL(zmq_send(peer, "hello", 5, 0), 5);
    CU_ASSERT_EQUAL(zmq_recv(bound, hello, 5, 0), 5); /* the connection is there */
    CU_ASSERT_EQUAL(n_inheritable(), before);
    int inherited = open("/", O_PATH);
    CU_ASSERT_EQUAL(n_inheritable(), before + 1);
    exec_start(&e, &x, script);
    struct bh_api_call call = call_of(&g, "GET", "/x");
    run(&e, &call, &g);
    CU_ASSERT_EQUAL(g.code, 200);
    CU_ASSERT_EQUAL_FATAL(bh_read_file(fds, 4096, &text, &n), 0);
    CU_ASSERT_STRING_EQUAL(text, "open:\n");
    got_fini(&g);
    env_stop(&e);
    zmq_close(bound);
    zmq_close(peer);
    zmq_ctx_term(ctx);
    close(inherited);
    free(text);
    free(fds);
    free(endpoint);
    free(script);
}

static void exec_fails(const char *script, const char *why)
{
    struct env e = {0};
    struct bh_exec_config x;
    struct got g = {0};
    char *copy = bh_strdup(script);

    exec_start(&e, &x, copy);
    for (int i = 0; i < 2; i++) { /* the second does not wait for another run */
        struct bh_api_call call = call_of(&g, "GET", "/x");
        run(&e, &call, &g);
        CU_ASSERT_EQUAL(g.outcome, BH_API_TRANSPORT);
        CU_ASSERT(!g.sent);
        if (!strstr(g.error, why))
            printf("# \"%s\" does not say \"%s\"\n", g.error, why);
        CU_ASSERT_PTR_NOT_NULL(strstr(g.error, why));
        got_fini(&g);
    }
    env_stop(&e);
    free(copy);
}

static void test_exec_failures(void)
{
    struct env e = {0};
    struct bh_exec_config x;
    struct got g = {0};
    char hang[] = "sleep 1000 & wait", sh[] = "/no/such/command";

    exec_fails("exit 3", "getting credentials: exec: executable /bin/sh failed with exit code 3");
    exec_fails("kill -9 $$", "was killed by signal 9");
    exec_fails("echo nonsense", "decoding stdout");
    exec_fails("echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"x/v2\"}'",
               "is configured to use API version client.authentication.k8s.io/v1, plugin returned "
               "version x/v2");
    exec_fails(PRINT("null"), "didn't return a status field");
    exec_fails(PRINT("{}"), "didn't return a token or cert/key pair");
    exec_fails(PRINT("{\"clientKeyData\":\"k\"}"), "only certificate or key");
    exec_fails(PRINT("{\"token\":\"t\",\"expirationTimestamp\":\"soon\"}"), "not an RFC 3339 time");
    exec_fails(PRINT("{\"token\":\"a\\\\nb\",\"expirationTimestamp\":\"2026-01-01T00:00:00Z\"}"),
               "a line end in it");
    exec_fails("yes | head -c 5000000", "printed more than");

    exec_start(&e, &x, hang); /* a deadline holds while the command runs */
    struct bh_api_call call = call_of(&g, "GET", "/x");
    call.timeout_ns = 50 * MS;
    run(&e, &call, &g);
    CU_ASSERT_EQUAL(g.outcome, BH_API_TIMEOUT);
    got_fini(&g);
    env_stop(&e); /* and the client's end does not wait for it */

    x.command = sh;
    e = (struct env){.cfg.exec = &x};
    env_start(&e, want_new_token, NULL);
    call.timeout_ns = 120 * S;
    run(&e, &call, &g);
    CU_ASSERT_PTR_NOT_NULL(strstr(g.error, "/no/such/command failed with exit code 127"));
    got_fini(&g);
    env_stop(&e);
}

static void test_impersonation_headers(void)
{
    char user[] = "Impersonate-User: jane", group[] = "Impersonate-Group: dev";
    char *as[] = {user, group, NULL};
    struct env e = {.cfg.impersonate = as};
    struct got g = {0};

    env_start(&e, echo, NULL);
    struct bh_api_call call = call_of(&g, "GET", "/x");
    run(&e, &call, &g);
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&g.body), user));
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&g.body), group));
    got_fini(&g);
    env_stop(&e);
}

/* ---- small parts ----------------------------------------------------------------------------- */

static void test_metrics(void)
{
    struct bh_metrics *m = bh_metrics_new();
    struct env e = {.opts.metrics = m};
    struct got g = {0};
    struct bh_buf out = {0};
    env_start(&e, echo, NULL);
    struct bh_api_call call = call_of(&g, "POST", "/x");
    run(&e, &call, &g);
    got_fini(&g);
    raw_stop(&e.server);
    uv_run(&e.loop, UV_RUN_NOWAIT);
    run(&e, &call, &g);
    got_fini(&g);
    bh_metrics_render(m, &out);
    char *ok = bh_asprintf("rest_client_requests_total{code=\"201\",host=\"%s\",method=\"POST\"} 1",
                           e.url + 7);
    char *bad = bh_asprintf(
        "rest_client_requests_total{code=\"<error>\",host=\"%s\",method=\"POST\"} 1", e.url + 7);
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&out), ok));
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&out), bad));
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&out), "rest_client_request_duration_seconds_bucket"));
    free(ok);
    free(bad);
    bh_buf_fini(&out);
    env_stop(&e);
    bh_metrics_free(m);
}

static void test_escape(void)
{
    struct bh_buf b = {0};
    bh_url_escape(&b, "status.phase!=Succeeded,a b/ü~_-");
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&b), "status.phase%21%3DSucceeded%2Ca%20b%2F%C3%BC~_-");
    bh_buf_fini(&b);
}

static void test_backoff(void)
{
    struct bh_backoff b;
    double base = 0.8;
    bh_backoff_init(&b);
    for (int i = 0; i < 12; i++) {
        double s = (double)bh_backoff_next_ns(&b) / 1e9;
        CU_ASSERT(s >= base && s <= 2 * base);
        base = BH_MIN(base * 2, 30.0);
    }
    b.last_ns -= 121 * S; /* two quiet minutes */
    CU_ASSERT((double)bh_backoff_next_ns(&b) / 1e9 <= 1.6);
}

BH_TESTS(TEST_LEAN ? "common/api/client, lean" : "common/api/client",
         {"a request carries what was asked, the reply everything", test_request},
         {"every method works with and without a body over one connection", test_methods},
         {"bh_api_do runs the loop for one request", test_do},
         {"a thousand requests share a few connections", test_few_connections},
         {"thirty hanging watches do not delay a write, and end with the client",
          test_watches_do_not_delay_writes},
         {"a deadline ends a request whose outcome is then unknown", test_deadline},
         {"a deadline beside bytes that come and come", test_deadline_beside_bytes},
         {"a stream without bytes ends after its idle timeout", test_idle_timeout},
         {"small pieces of a busy stream are looked at in company", test_pieces_in_company},
         {"a busy stream may end at any time", test_ends_in_company},
         {"a cut connection is a transport error of a request that was sent", test_connection_lost},
         {"a refused connection is one of a request that was not sent", test_nobody_listens},
         {"without descriptors it says EMFILE and the limit", test_no_descriptor_is_left},
         {"... also where a name is looked up", test_no_descriptor_is_left_for_a_name},
         {"a truncated reply is no reply", test_truncated_reply},
         {"a reply above the limit is dropped", test_reply_too_large},
         {"a reader that returns non-zero ends the stream", test_reader_stops},
         {"cancel ends a request once, also from inside its own data", test_cancel},
         {"the client may be freed from a callback", test_free_from_callback},
         {"a request may be started from inside a stream's data", test_start_from_stream},
         {"Retry-After is honoured to the second", test_retry_after},
         {"retries have an end", test_retry_limits},
         {"qps and burst hold for everything but watches", test_rate_limit},
         {"nothing leaves after its time, what is out goes on", test_not_after},
         {"token files are read again after a 401 and kept when unreadable", test_token_file},
         {"a command's credentials serve all who waited, and are renewed after a 401",
          test_exec_credentials},
         {"a credential command gets three descriptors", test_exec_descriptors},
         {"a command that fails, hangs or talks rubbish says so in each request",
          test_exec_failures},
         {"impersonation is said in every request", test_impersonation_headers},
         {"requests are counted by code, host and method", test_metrics},
         {"writes name the owner of their fields", test_field_manager},
         {"percent-encoding", test_escape},
         {"back-off doubles with jitter up to 30 s", test_backoff})
