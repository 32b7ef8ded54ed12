/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/base/test_zpoll.c - a ZeroMQ socket on a libuv loop
 */
#include "common/base/loop.h"
#include "tests/unit/harness.h"

#include <pthread.h>
#include <zmq.h>

enum { MESSAGES = 200000 };
static uv_loop_t loop;
static void *ctx;
static uv_timer_t deadline;
static int got, burst_max;
static struct bh_zpoll *zpoll;

static void on_deadline(uv_timer_t *t)
{
    (void)t;
    CU_FAIL("deadline");
    uv_stop(&loop);
}

static void begin_loop(void)
{
    uv_loop_init(&loop);
    uv_timer_init(&loop, &deadline);
    uv_timer_start(&deadline, on_deadline, 60000, 0);
    ctx = zmq_ctx_new();
}

static void *socket_at(int type, const char *endpoint, bool bind_it)
{
    int linger = 0;
    void *s = zmq_socket(ctx, type);
    zmq_setsockopt(s, ZMQ_LINGER, &linger, sizeof(linger));
    int rc = bind_it ? zmq_bind(s, endpoint) : zmq_connect(s, endpoint);
    CU_ASSERT_EQUAL_FATAL(rc, 0);
    return s;
}

static bool receive_all(void *socket)
{
    char text[64];
    int n = 0;
    while (n < BH_ZPOLL_BURST && zmq_recv(socket, text, sizeof(text), ZMQ_DONTWAIT) >= 0)
        n++;
    got += n;
    burst_max = BH_MAX(burst_max, n);
    if (got == MESSAGES)
        uv_stop(&loop);
    return n == BH_ZPOLL_BURST;
}

static void *send_all(void *endpoint)
{
    void *s = zmq_socket(ctx, ZMQ_PUSH);
    zmq_connect(s, endpoint);
    for (int i = 0; i < MESSAGES; i++)
        while (zmq_send(s, &i, sizeof(i), 0) < 0)
            ;
    return s;
}

static const char *ipc_endpoint(void)
{
    static char text[4200];
    snprintf(text, sizeof(text), "ipc://%s/z", bh_test_tmpdir());
    return text;
}

static void test_no_message_is_left_behind(void)
{
    char endpoint[4200];
    pthread_t sender;
    void *sent_by;
    snprintf(endpoint, sizeof(endpoint), "%s", ipc_endpoint());
    begin_loop();
    got = burst_max = 0;
    void *pull = socket_at(ZMQ_PULL, endpoint, true);
    zpoll = bh_zpoll_new(&loop, pull, receive_all, pull);
    pthread_create(&sender, NULL, send_all, endpoint);
    uv_run(&loop, UV_RUN_DEFAULT);
    CU_ASSERT_EQUAL(got, MESSAGES);
    CU_ASSERT(burst_max <= BH_ZPOLL_BURST);
    pthread_join(sender, &sent_by);
    zmq_close(sent_by);
    bh_zpoll_close(zpoll);
    bh_loop_drain_close(&loop);
    zmq_close(pull);
    zmq_ctx_term(ctx);
}

/* A reader that takes one message a turn although more are there: the adapter must come back. */
static bool receive_one(void *socket)
{
    char text[64];
    if (zmq_recv(socket, text, sizeof(text), ZMQ_DONTWAIT) >= 0 && ++got == 1000)
        uv_stop(&loop);
    return false;
}

static void test_a_reader_that_takes_one_at_a_time_gets_all(void)
{
    begin_loop();
    got = 0;
    void *pull = socket_at(ZMQ_PULL, "inproc://one", true);
    void *push = socket_at(ZMQ_PUSH, "inproc://one", false);
    for (int i = 0; i < 1000; i++)
        zmq_send(push, "x", 1, 0);
    zpoll = bh_zpoll_new(&loop, pull, receive_one, pull);
    uv_run(&loop, UV_RUN_DEFAULT);
    CU_ASSERT_EQUAL(got, 1000);
    bh_zpoll_close(zpoll);
    bh_loop_drain_close(&loop);
    zmq_close(pull), zmq_close(push);
    zmq_ctx_term(ctx);
}

/* Two sockets that answer each other from callbacks of the loop. */
static void *pair_b;
static bool answer(void *socket)
{
    int n;
    while (zmq_recv(socket, &n, sizeof(n), ZMQ_DONTWAIT) >= 0) {
        if (++n >= 5000)
            uv_stop(&loop);
        else
            zmq_send(socket, &n, sizeof(n), ZMQ_DONTWAIT);
    }
    got = n;
    return false;
}

static void test_ping_pong_in_one_loop(void)
{
    begin_loop();
    void *a = socket_at(ZMQ_PAIR, ipc_endpoint(), true);
    pair_b = socket_at(ZMQ_PAIR, ipc_endpoint(), false);
    struct bh_zpoll *za = bh_zpoll_new(&loop, a, answer, a);
    struct bh_zpoll *zb = bh_zpoll_new(&loop, pair_b, answer, pair_b);
    int zero = 0;
    zmq_send(a, &zero, sizeof(zero), 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    CU_ASSERT_EQUAL(got, 5000);
    bh_zpoll_close(za), bh_zpoll_close(zb);
    bh_loop_drain_close(&loop);
    zmq_close(a), zmq_close(pair_b);
    zmq_ctx_term(ctx);
}

static bool close_inside(void *socket)
{
    (void)socket;
    bh_zpoll_close(zpoll);
    bh_zpoll_close(zpoll); /* twice does no harm */
    bh_zpoll_close(NULL);
    uv_stop(&loop);
    return true;
}

static void test_closing_from_its_own_callback(void)
{
    begin_loop();
    void *pull = socket_at(ZMQ_PULL, "inproc://close", true);
    void *push = socket_at(ZMQ_PUSH, "inproc://close", false);
    zmq_send(push, "x", 1, 0);
    zpoll = bh_zpoll_new(&loop, pull, close_inside, pull);
    uv_run(&loop, UV_RUN_DEFAULT);
    bh_loop_drain_close(&loop);
    zmq_close(pull), zmq_close(push);
    zmq_ctx_term(ctx);
    CU_PASS("no crash, no leak");
}

BH_TESTS("common/base/zpoll", {"no message is left behind", test_no_message_is_left_behind},
         {"a reader that takes one at a time gets all",
          test_a_reader_that_takes_one_at_a_time_gets_all},
         {"ping-pong in one loop", test_ping_pong_in_one_loop},
         {"closing from its own callback", test_closing_from_its_own_callback})
