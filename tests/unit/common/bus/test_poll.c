/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/bus/test_poll.c - a bus on a libuv loop
 */
#include "common/base/loop.h"
#include "common/bus/bus.h"
#include "tests/unit/harness.h"

#include <pthread.h>

#define MESSAGES   50000u
#define PING_PONGS 5000u

struct side {
    struct bh_bus *bus;
    struct bh_bus_poll *poll;
    bool router;
};
static struct scene {
    uv_loop_t loop;
    uv_timer_t deadline;
    struct bh_arena arena;
    char *endpoint;
    struct side router, dealer;
    unsigned got, burst, burst_max, until;
} s;

static void on_deadline(uv_timer_t *t)
{
    (void)t;
    CU_FAIL("deadline");
    uv_stop(&s.loop);
}

static void begin(void)
{
    static unsigned n;
    struct bh_err err;

    s = (struct scene){.router.router = true};
    uv_loop_init(&s.loop);
    uv_timer_init(&s.loop, &s.deadline);
    uv_timer_start(&s.deadline, on_deadline, 60000, 0);
    bh_arena_init(&s.arena, 0);
    s.endpoint = bh_asprintf("ipc://%s/p%u.sock", bh_test_tmpdir(), n++);
    CU_ASSERT_EQUAL_FATAL(bh_bus_open(BH_BUS_ROUTER_BIND, s.endpoint, NULL, &s.router.bus, &err),
                          0);
    CU_ASSERT_EQUAL_FATAL(bh_bus_open(BH_BUS_DEALER_CONNECT, s.endpoint, "d", &s.dealer.bus, &err),
                          0);
}

static void end(void)
{
    bh_bus_poll_close(s.router.poll);
    bh_bus_poll_close(s.dealer.poll);
    bh_loop_drain_close(&s.loop);
    bh_bus_close(s.dealer.bus);
    bh_bus_close(s.router.bus);
    bh_arena_fini(&s.arena);
    free(s.endpoint);
}

static enum bh_bus_outcome say(struct bh_bus *b, const struct bh_peer *to, uint64_t n)
{
    Berth__Heartbeat h = BERTH__HEARTBEAT__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;

    h.has_progress = 1;
    h.progress = n;
    e.heartbeat = &h;
    return bh_bus_send(b, to, &e);
}

static bool hear(struct side *side, struct bh_peer *from, uint64_t *ret)
{
    Berth__Envelope *e;

    bh_arena_reset(&s.arena);
    if (bh_bus_recv(side->bus, &s.arena, from, &e) != BH_BUS_OK)
        return false;
    *ret = e->heartbeat->progress;
    return true;
}

/* At most so many a call as it has in `burst`. */
static bool receive(void *side)
{
    struct bh_peer from;
    uint64_t n;
    unsigned k;

    for (k = 0; k < s.burst && hear(side, &from, &n); k++) {
        CU_ASSERT_EQUAL(n, s.got);
        s.got++;
    }
    if (s.got == s.until)
        uv_stop(&s.loop);
    s.burst_max = BH_MAX(s.burst_max, k);
    return s.burst > 1 && k == s.burst;
}

static void *send_all(void *bus)
{
    for (unsigned i = 0; i < MESSAGES; i++)
        while (say(bus, NULL, i) == BH_BUS_FULL)
            bh_bus_wait(bus, 1);
    return NULL;
}

static void test_no_message_is_left_behind(void)
{
    pthread_t sender;

    begin();
    s.burst = BH_BUS_BURST;
    s.until = MESSAGES;
    s.router.poll = bh_bus_poll_new(&s.loop, s.router.bus, receive, &s.router);
    pthread_create(&sender, NULL, send_all, s.dealer.bus);
    uv_run(&s.loop, UV_RUN_DEFAULT);
    CU_ASSERT_EQUAL(s.got, MESSAGES);
    CU_ASSERT(s.burst_max <= BH_BUS_BURST);
    pthread_join(sender, NULL);
    end();
}

/* A reader that takes one message a turn although more are there: the adapter must come back. */
static void test_a_reader_that_takes_one_at_a_time_gets_all(void)
{
    begin();
    s.burst = 1;
    s.until = 1000;
    for (unsigned i = 0; i < s.until; i++)
        CU_ASSERT_EQUAL(say(s.dealer.bus, NULL, i), BH_BUS_OK);
    s.router.poll = bh_bus_poll_new(&s.loop, s.router.bus, receive, &s.router);
    uv_run(&s.loop, UV_RUN_DEFAULT);
    CU_ASSERT_EQUAL(s.got, s.until);
    end();
}

/* Two sides that answer each other from callbacks of the loop. */
static bool answer(void *arg)
{
    struct side *side = arg;
    struct bh_peer from;
    uint64_t n;

    while (hear(side, &from, &n)) {
        s.got++;
        if (n >= PING_PONGS)
            uv_stop(&s.loop);
        else
            CU_ASSERT_EQUAL(say(side->bus, side->router ? &from : NULL, n + 1), BH_BUS_OK);
    }
    return false;
}

static void test_ping_pong_in_one_loop(void)
{
    begin();
    s.router.poll = bh_bus_poll_new(&s.loop, s.router.bus, answer, &s.router);
    s.dealer.poll = bh_bus_poll_new(&s.loop, s.dealer.bus, answer, &s.dealer);
    CU_ASSERT_EQUAL(say(s.dealer.bus, NULL, 1), BH_BUS_OK);
    uv_run(&s.loop, UV_RUN_DEFAULT);
    CU_ASSERT_EQUAL(s.got, PING_PONGS);
    end();
}

static bool close_inside(void *side)
{
    (void)side;
    bh_bus_poll_close(s.router.poll);
    bh_bus_poll_close(bh_take_ptr(s.router.poll)); /* twice does no harm */
    bh_bus_poll_close(NULL);
    uv_stop(&s.loop);
    return true;
}

static void test_closing_from_its_own_callback(void)
{
    begin();
    s.router.poll = bh_bus_poll_new(&s.loop, s.router.bus, close_inside, &s.router);
    CU_ASSERT_EQUAL(say(s.dealer.bus, NULL, 1), BH_BUS_OK);
    uv_run(&s.loop, UV_RUN_DEFAULT);
    CU_ASSERT_PTR_NULL(s.router.poll);
    end();
}

BH_TESTS("common/bus/poll", {"no message is left behind", test_no_message_is_left_behind},
         {"a reader that takes one at a time gets all",
          test_a_reader_that_takes_one_at_a_time_gets_all},
         {"ping-pong in one loop", test_ping_pong_in_one_loop},
         {"closing from its own callback", test_closing_from_its_own_callback})
