/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/api/test_lanes.c - what only lanes do: pipelining and its end, turns, lingering
 *
 * What a client promises in any case is in test_client_lean.c and test_tls_lean.c.
 */
#include "common/api/client.h"
#include "common/base/loop.h"
#include "tests/unit/common/api/raw_server.h"

#define S    UINT64_C(1000000000)
#define MANY 200u

struct env {
    uv_loop_t loop;
    struct raw_server server;
    struct bh_api_client *client;
    unsigned ok, failed, unsent, wanted;
    struct raw_conn *held[MANY];
    unsigned n_held;
};

static void env_start(struct env *e,
                      void (*handler)(struct raw_server *, const struct raw_request *),
                      unsigned connections, unsigned linger_ms)
{
    const struct bh_api_options o = {
        .lean = true, .max_connections = connections, .linger_ms = linger_ms};
    struct bh_api_config cfg = {0};
    struct bh_err err = {""};
    char url[64];

    *e = (struct env){.ok = 0};
    uv_loop_init(&e->loop);
    raw_start(&e->server, &e->loop, handler, e);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", e->server.port);
    cfg.server = url;
    CU_ASSERT_EQUAL_FATAL(bh_api_client_new(&e->loop, &cfg, &o, &e->client, &err), 0);
}

static void env_stop(struct env *e)
{
    bh_api_client_free(e->client);
    raw_stop(&e->server);
    bh_loop_drain_close(&e->loop);
}

static void on_done(void *arg, const struct bh_api_reply *r)
{
    struct env *e = arg;

    e->ok += r->outcome == BH_API_OK && r->code == 200;
    e->failed += r->outcome != BH_API_OK;
    e->unsent += r->outcome != BH_API_OK && !r->sent;
}

static bool all_ended(void *arg)
{
    struct env *e = arg;
    return e->ok + e->failed >= e->wanted;
}

static void start(struct env *e, unsigned n, uint64_t timeout_ns)
{
    for (unsigned i = 0; i < n; i++)
        bh_api_start(e->client, &(struct bh_api_call){.method = "POST",
                                                      .path = "/api/v1/x?y=z",
                                                      .content_type = "application/json",
                                                      .body = "{}",
                                                      .body_n = 2,
                                                      .timeout_ns = timeout_ns,
                                                      .on_done = on_done,
                                                      .arg = e});
    e->wanted += n;
}

/* Answers nothing before all of the batch have come. */
static void hold(struct raw_server *s, const struct raw_request *r)
{
    struct env *e = s->arg;

    if (e->wanted == 1) { /* the first request shows that connections are kept */
        raw_json(r->conn, 200, "{}");
        return;
    }
    e->held[e->n_held++] = r->conn;
    if (e->n_held == e->wanted - 1)
        for (unsigned i = 0; i < e->n_held; i++)
            raw_json(e->held[i], 200, "{}");
}

static void test_pipelining(void)
{
    struct env e;

    env_start(&e, hold, 1, 0);
    start(&e, 1, 120 * S);
    CU_ASSERT(run_until(&e.loop, all_ended, &e));
    start(&e, 2, 120 * S); /* none of them is answered unless both are on the wire */
    CU_ASSERT(run_until(&e.loop, all_ended, &e));
    CU_ASSERT_EQUAL(e.ok, 3);
    CU_ASSERT_EQUAL(e.server.connections, 1);
    env_stop(&e);
}

/* Every third reply is the connection's last, whatever else was asked on it. */
static void close_often(struct raw_server *s, const struct raw_request *r)
{
    bool last = s->requests % 3 == 0;

    raw_reply(r->conn, 200, last ? "Connection: close\r\n" : "", "{}", 2);
    if (last)
        raw_close(r->conn);
}

static void test_server_that_closes(void)
{
    struct env e;

    env_start(&e, close_often, 2, 0);
    start(&e, 30, 120 * S);
    CU_ASSERT(run_until(&e.loop, all_ended, &e));
    CU_ASSERT(e.failed > 0); /* they were behind the last reply, on the wire */
    CU_ASSERT_EQUAL(e.unsent, 0);
    e.wanted = e.ok = e.failed = 0;
    start(&e, 30, 120 * S); /* one at a time from now on: none is lost */
    CU_ASSERT(run_until(&e.loop, all_ended, &e));
    CU_ASSERT_EQUAL(e.ok, 30);
    env_stop(&e);
}

static void answer_one(struct raw_server *s, const struct raw_request *r)
{
    if (s->requests == 1)
        raw_json(r->conn, 200, "{}");
}

static void test_behind_a_lost_one(void)
{
    struct env e;

    env_start(&e, answer_one, 1, 0);
    start(&e, 1, 120 * S);
    CU_ASSERT(run_until(&e.loop, all_ended, &e));
    start(&e, 1, S / 10); /* its reply never comes, so none behind it can be told from it */
    start(&e, 5, 120 * S);
    CU_ASSERT(run_until(&e.loop, all_ended, &e));
    CU_ASSERT_EQUAL(e.ok, 1);
    CU_ASSERT_EQUAL(e.failed, 6);
    CU_ASSERT_EQUAL(e.unsent, 0);
    env_stop(&e);
}

static void answer(struct raw_server *s, const struct raw_request *r)
{
    (void)s;
    raw_json(r->conn, 200, "{}");
}

static void test_linger(void)
{
    struct env e;

    env_start(&e, answer, 2, 10);
    for (unsigned i = 0; i < MANY; i++) {
        start(&e, 1, 120 * S);
        uv_run(&e.loop, UV_RUN_NOWAIT);
    }
    CU_ASSERT(run_until(&e.loop, all_ended, &e));
    CU_ASSERT_EQUAL(e.ok, MANY);
    env_stop(&e);
}

static void speak_nonsense(struct raw_server *s, const struct raw_request *r)
{
    static const char *const answers[] = {
        "hello\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
    };

    raw_sends(r->conn, answers[(s->requests - 1) % BH_ARRAY_LEN(answers)]);
    raw_close(r->conn);
}

static void test_nonsense(void)
{
    struct env e;

    env_start(&e, speak_nonsense, 1, 0);
    for (unsigned i = 0; i < 5; i++) {
        start(&e, 1, 120 * S);
        CU_ASSERT(run_until(&e.loop, all_ended, &e));
    }
    CU_ASSERT_EQUAL(e.failed, 5);
    CU_ASSERT_EQUAL(e.unsent, 0);
    env_stop(&e);
}

static void answer_twice(struct raw_server *s, const struct raw_request *r)
{
    answer(s, r);
    if (s->requests == 1)
        answer(s, r); /* to nobody's question */
}

static void test_reply_to_nobody(void)
{
    struct env e;

    env_start(&e, answer_twice, 1, 0);
    start(&e, 1, 120 * S);
    CU_ASSERT(run_until(&e.loop, all_ended, &e));
    for (unsigned i = 0; i < 20; i++) /* the second one comes, and ends the connection */
        uv_run(&e.loop, UV_RUN_NOWAIT);
    start(&e, 1, 120 * S);
    CU_ASSERT(run_until(&e.loop, all_ended, &e));
    CU_ASSERT_EQUAL(e.ok, 2);
    CU_ASSERT_EQUAL(e.server.connections, 2);
    env_stop(&e);
}

BH_TESTS("common/api/lanes",
         {"requests wait for each other's replies in the server, not here", test_pipelining},
         {"a server that ends connections gets one request at a time", test_server_that_closes},
         {"what is behind a request that was given up is unknown, too", test_behind_a_lost_one},
         {"requests that are not urgent all end", test_linger},
         {"a reply that is none ends its request, not the client", test_nonsense},
         {"a reply that nobody asked for is nobody's", test_reply_to_nobody})
