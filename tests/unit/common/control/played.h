/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/control/played.h - a scheduler's control socket, of a thread that answers as the test
 * says
 */
#ifndef BH_TESTS_PLAYED_H
#define BH_TESTS_PLAYED_H

#include "common/bus/bus.h"
#include "tests/unit/harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

struct played;
/* In the thread: fills in the answer; false: there is none. */
typedef bool played_answers_fn(struct played *p, const Berth__ControlRequest *q,
                               Berth__ControlReply *r);
struct played {
    struct bh_bus *bus;
    pthread_t thread;
    _Atomic bool stop;
    played_answers_fn *answers;
    _Atomic unsigned asked;
    struct bh_peer last; /* who asked last, and what */
    uint64_t last_id;
};

static void *played_serve(void *arg)
{
    struct played *p = arg;
    struct bh_arena a;

    bh_arena_init(&a, 0);
    while (!p->stop) {
        Berth__Envelope *e = NULL, out = BERTH__ENVELOPE__INIT;
        Berth__ControlReply r = BERTH__CONTROL_REPLY__INIT;
        struct bh_peer peer;
        (void)bh_bus_wait(p->bus, 10);
        bh_arena_reset(&a);
        if (bh_bus_recv(p->bus, &a, &peer, &e) != BH_BUS_OK || !e->control)
            continue;
        r.has_id = true;
        r.id = e->control->id;
        out.control_reply = &r;
        if (p->answers(p, e->control, &r))
            (void)bh_bus_send(p->bus, &peer, &out);
        p->last = peer;
        p->last_id = e->control->id;
        p->asked++;
    }
    bh_arena_fini(&a);
    return NULL;
}

static inline void played_dir(char dir[static 108])
{
    static unsigned n;

    snprintf(dir, 108, "%s/c%u", bh_test_tmpdir(), n++);
    CU_ASSERT_FATAL(mkdir(dir, 0750) == 0);
}

static inline void played_start(struct played *p, const char *dir, played_answers_fn *answers)
{
    struct bh_err err = {""};
    char endpoint[128];

    *p = (struct played){.answers = answers};
    CU_ASSERT_FATAL(bh_bus_endpoint(dir, "control", endpoint, &err) == 0);
    CU_ASSERT_FATAL(bh_bus_open(BH_BUS_ROUTER_BIND, endpoint, NULL, &p->bus, &err) == 0);
    CU_ASSERT_FATAL(pthread_create(&p->thread, NULL, played_serve, p) == 0);
}

static inline void played_stop(struct played *p)
{
    p->stop = true;
    CU_ASSERT(pthread_join(p->thread, NULL) == 0);
    bh_bus_close(p->bus);
}
#endif
