/* SPDX-License-Identifier: Apache-2.0
 *
 * common/control/asker.c - questions to the running scheduler
 *
 * Invariants: a question is in the list until it is answered, timed out or given up.
 */
#include "common/control/asker.h"

#include <sys/queue.h>

#define ANSWER_BYTES ((size_t)64 << 20)

struct question {
    TAILQ_ENTRY(question) link;
    struct bh_asker *c;
    uint64_t id;
    void (*done)(void *arg, const Berth__ControlReply *r, const char *why);
    void *arg;
    const char *why; /* it could not be asked */
    uv_timer_t timer;
};
TAILQ_HEAD(questions, question);
struct bh_asker {
    uv_loop_t *loop;
    char *runtime_dir;
    struct bh_bus *bus; /* NULL until the first question, and after the scheduler was gone */
    struct bh_bus_poll *poll;
    struct bh_arena arena;
    uint64_t id;
    struct questions asked;
};

static void on_timer_closed(uv_handle_t *h)
{
    free(bh_container_of((uv_timer_t *)h, struct question, timer));
}

static void end(struct question *q, const Berth__ControlReply *r, const char *why)
{
    TAILQ_REMOVE(&q->c->asked, q, link);
    q->done(q->arg, r, why);
    uv_close((uv_handle_t *)&q->timer, on_timer_closed);
}

static void on_timer(uv_timer_t *t)
{
    struct question *q = bh_container_of(t, struct question, timer);

    end(q, NULL, q->why ? q->why : "berth-scheduler did not answer in time");
}

static bool on_readable(void *arg)
{
    struct bh_asker *c = arg;
    Berth__Envelope *e = NULL;

    for (unsigned i = 0; i < BH_BUS_BURST; i++) {
        struct question *q;
        bh_arena_reset(&c->arena);
        enum bh_bus_outcome o = bh_bus_recv(c->bus, &c->arena, NULL, &e);
        if (o == BH_BUS_EMPTY)
            return false;
        if (o != BH_BUS_OK || !e->control_reply)
            continue;
        TAILQ_FOREACH(q, &c->asked, link)
            if (q->id == e->control_reply->id)
                break;
        if (q)
            end(q, e->control_reply->error ? NULL : e->control_reply, e->control_reply->error);
    }
    return true;
}

static void hang_up(struct bh_asker *c)
{
    bh_bus_poll_close(bh_take_ptr(c->poll));
    bh_bus_close(bh_take_ptr(c->bus));
}

/* NULL, or why it cannot be asked. */
static const char *connect_to(struct bh_asker *c)
{
    char endpoint[128], identity[32];
    struct bh_err err;

    if (bh_bus_endpoint(c->runtime_dir, "control", endpoint, &err) < 0)
        return "the runtime directory's path is too long";
    if (bh_bus_probe(endpoint) < 0) {
        if (c->bus)
            hang_up(c);
        return "berth-scheduler does not run";
    }
    if (c->bus)
        return NULL;
    snprintf(identity, sizeof(identity), "f-%016llx", (unsigned long long)bh_rand_entropy());
    if (bh_bus_open(BH_BUS_DEALER_CONNECT, endpoint, identity, &c->bus, &err) < 0)
        return "berth-scheduler's control socket cannot be used";
    c->poll = bh_bus_poll_new(c->loop, c->bus, on_readable, c);
    return NULL;
}

static const char *send_question(struct bh_asker *c, Berth__ControlWhat what)
{
    Berth__ControlRequest r = BERTH__CONTROL_REQUEST__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    const char *why = connect_to(c);

    if (why)
        return why;
    r.has_id = r.has_what = true;
    r.id = c->id;
    r.what = what;
    e.control = &r;
    return bh_bus_send(c->bus, NULL, &e) == BH_BUS_OK
               ? NULL
               : "berth-scheduler's control socket takes no question";
}

void bh_asker_ask(struct bh_asker *c, Berth__ControlWhat what,
                  void (*done)(void *arg, const Berth__ControlReply *r, const char *why), void *arg)
{
    struct question *q = bh_calloc(1, sizeof(*q));

    q->c = c;
    q->id = ++c->id;
    q->done = done;
    q->arg = arg;
    TAILQ_INSERT_TAIL(&c->asked, q, link);
    q->why = send_question(c, what);
    uv_timer_init(c->loop, &q->timer);
    uv_timer_start(&q->timer, on_timer, q->why ? 0 : BH_ASK_TIMEOUT_NS / 1000000, 0);
}

struct bh_asker *bh_asker_new(uv_loop_t *loop, const char *runtime_dir)
{
    struct bh_asker *c = bh_calloc(1, sizeof(*c));

    c->loop = loop;
    c->runtime_dir = bh_strdup(runtime_dir);
    bh_arena_init(&c->arena, ANSWER_BYTES);
    TAILQ_INIT(&c->asked);
    return c;
}

void bh_asker_free(struct bh_asker *c)
{
    struct question *q;

    if (!c)
        return;
    while ((q = TAILQ_FIRST(&c->asked)))
        end(q, NULL, "the process ends");
    hang_up(c);
    bh_arena_fini(&c->arena);
    free(c->runtime_dir);
    free(c);
}
