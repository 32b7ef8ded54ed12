/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/simulation/bus.c - bus.h over a made-up network
 *
 * As ZeroMQ behaves (common/bus/README.md): order is kept within a connection; what a connector
 * sends before there is a connection waits for it; what a connection had in hand when it broke is
 * gone, a part of it may still arrive; a listener's queue towards a peer goes with its connection.
 */
#include "common/bus/bus_int.h"
#include "common/bus/curve.h"
#include "tests/simulation/simulation.h"

#include <errno.h>

#define LATENCY_MIN  20000
#define LATENCY_MAX  600000
#define SLOW_MAX     (400 * MS)
#define RECONNECT_NS (20 * MS)

struct frame {
    TAILQ_ENTRY(frame) link;
    struct bh_peer from; /* at a listener */
    bool has_work;       /* items for a binder, or its answers */
    size_t n;
    uint8_t p[];
};
TAILQ_HEAD(frames, frame);
struct line {                       /* one connection */
    struct bh_bus *dealer, *router; /* NULL: closed */
    bool up;
    bool doomed;      /* breaks with what comes to the dealer next, which is lost */
    uint64_t last[2]; /* arrival of the newest: at the router, at the dealer */
    unsigned on_the_way;
    uint64_t end_ns; /* what arrives later does not; 0 = it is not broken */
};
struct sim_bus {
    struct bh_bus bus; /* only its address and stats are used */
    LIST_ENTRY(sim_bus) link;
    struct process *of;
    enum bh_bus_role role;
    char endpoint[128], tcp[128]; /* tcp: a router's second one */
    struct bh_peer name;          /* dealer's */
    struct frames in, out;
    unsigned n_in, n_out;
    struct line *line; /* dealer's */
    struct bh_bus_poll *poll;
};
struct bh_bus_poll {
    struct sim_bus *bus;
    bool (*on_readable)(void *arg);
    void *arg;
    struct source *source;
};
static LIST_HEAD(, sim_bus) buses;

static struct sim_bus *of(struct bh_bus *b)
{
    return bh_container_of(b, struct sim_bus, bus);
}

static bool is_open(const struct sim_bus *b)
{
    const struct sim_bus *x;

    LIST_FOREACH(x, &buses, link)
        if (x == b)
            return true;
    return false;
}

/* ---- connections ----------------------------------------------------------------------------- */

struct arrival {
    struct line *line;
    bool at_router;
    struct frame *f;
};

static void readable(struct sim_bus *b)
{
    if (b->poll)
        source_set(b->poll->source);
}

static void on_arrival(void *arg)
{
    struct arrival a = *(struct arrival *)arg;
    struct bh_bus *to = a.at_router ? a.line->router : a.line->dealer;

    free(arg);
    a.line->on_the_way--;
    if (!to || !is_open(of(to)) || (a.line->end_ns && world.now_ns > a.line->end_ns) ||
        of(to)->n_in >= BH_BUS_QUEUE_FRAMES) {
        if (a.f->has_work) /* asked for again when no answer has come for so long */
            world.doubt_until_ns = BH_MAX(world.doubt_until_ns, world.now_ns + DOUBT_NS);
        free(a.f);
        return;
    }
    TAILQ_INSERT_TAIL(&of(to)->in, a.f, link);
    of(to)->n_in++;
    readable(of(to));
}

static void carry(struct line *l, bool to_router, struct frame *f)
{
    struct arrival *a = bh_malloc(sizeof(*a));
    uint64_t when =
        world.now_ns + draw_between(DRAW_NET, LATENCY_MIN,
                                    chance(DRAW_NET, 3) && !world.peace ? SLOW_MAX : LATENCY_MAX);

    *a = (struct arrival){l, to_router, f};
    when = BH_MAX(when, l->last[!to_router] + 1);
    l->last[!to_router] = when;
    l->on_the_way++;
    at(when, on_arrival, a);
}

static void connect_soon(struct sim_bus *b, uint64_t delay);

static void send_waiting(struct sim_bus *b)
{
    struct frame *f;

    while ((f = TAILQ_FIRST(&b->out))) {
        TAILQ_REMOVE(&b->out, f, link);
        b->n_out--;
        carry(b->line, true, f);
    }
}

static struct sim_bus *listener(const char *endpoint)
{
    struct sim_bus *b;

    LIST_FOREACH(b, &buses, link)
        if (b->role != BH_BUS_DEALER_CONNECT &&
            (bh_streq(b->endpoint, endpoint) || bh_streq(b->tcp, endpoint)))
            return b;
    return NULL;
}

static struct line *line_of(const struct sim_bus *router, const struct bh_peer *peer)
{
    struct sim_bus *b;

    LIST_FOREACH(b, &buses, link)
        if (b->line && b->line->router == &router->bus && b->line->up && b->name.n == peer->n &&
            memcmp(b->name.id, peer->id, peer->n) == 0)
            return b->line;
    return NULL;
}

/* Lines are never freed: what is on the way names them. */
static void cut(struct line *l, bool part_arrives)
{
    struct sim_bus *d = l->dealer ? of(l->dealer) : NULL;

    if (l->on_the_way)
        reach(connection_lost_with_messages);
    l->up = false;
    l->end_ns = part_arrives ? world.now_ns + draw(DRAW_NET, LATENCY_MAX) : world.now_ns;
    if (d) {
        d->line = NULL;
        connect_soon(d, RECONNECT_NS + draw(DRAW_NET, 480 * MS));
    }
}

struct knock {
    struct process *p;
    unsigned life;
    struct sim_bus *b;
};

static void on_knock(void *arg)
{
    struct knock k = *(struct knock *)arg;
    struct sim_bus *r;

    free(arg);
    if (!k.p->alive || k.life != k.p->life || !is_open(k.b) || k.b->line)
        return;
    r = listener(k.b->endpoint);
    if (!r) {
        connect_soon(k.b, RECONNECT_NS);
        return;
    }
    k.b->line = bh_calloc(1, sizeof(*k.b->line));
    *k.b->line = (struct line){.dealer = &k.b->bus, .router = &r->bus, .up = true};
    send_waiting(k.b);
}

static void connect_soon(struct sim_bus *b, uint64_t delay)
{
    struct knock *k = bh_malloc(sizeof(*k));

    *k = (struct knock){b->of, b->of->life, b};
    at(world.now_ns + delay + draw(DRAW_NET, LATENCY_MAX), on_knock, k);
}

static void gone(struct sim_bus *b, bool part_arrives)
{
    struct sim_bus *x;

    LIST_REMOVE(b, link);
    if (b->line) {
        b->line->dealer = NULL;
        cut(b->line, part_arrives);
    }
    LIST_FOREACH(x, &buses, link) {
        struct line *l = x->line;
        if (!l || l->router != &b->bus)
            continue;
        cut(l, part_arrives);
        l->router = NULL;
    }
}

void bus_process_gone(struct process *p)
{
    struct sim_bus *b, *next;

    for (b = LIST_FIRST(&buses); b; b = next) {
        next = LIST_NEXT(b, link);
        if (b->of == p)
            gone(b, chance(DRAW_NET, 50));
    }
}

void bus_cut_one(const struct process *p)
{
    struct sim_bus *b;
    unsigned n = 0, which;

    LIST_FOREACH(b, &buses, link)
        n += b->line && (!p || b->of == p);
    if (!n)
        return;
    which = (unsigned)draw(DRAW_NET, n);
    LIST_FOREACH(b, &buses, link)
        if (b->line && (!p || b->of == p) && which-- == 0) {
            say("cut %s of %s", strstr(b->endpoint, "://") + strlen("://"), b->of->name);
            cut(b->line, chance(DRAW_NET, 50));
            return;
        }
}

void bus_lose_next(const struct process *p)
{
    struct sim_bus *b;

    LIST_FOREACH(b, &buses, link)
        if (b->line && b->of == p)
            b->line->doomed = true;
}

void bus_hold(const struct process *p, uint64_t ns)
{
    struct sim_bus *b;

    LIST_FOREACH(b, &buses, link)
        if (b->line && b->of == p)
            b->line->last[1] = BH_MAX(b->line->last[1], world.now_ns + ns);
}

/* ---- bus.h ----------------------------------------------------------------------------------- */

int bh_bus_open_among(enum bh_bus_role role, const char *endpoint, const char *identity,
                      const struct bh_bus_users *users, unsigned parties, struct bh_bus **ret,
                      struct bh_err *err)
{
    struct sim_bus *b;

    (void)users, (void)parties;
    if (role != BH_BUS_DEALER_CONNECT && listener(endpoint))
        return bh_err_set(err, -EADDRINUSE, "socket \"%s\": in use", endpoint);
    b = bh_calloc(1, sizeof(*b));
    b->of = world.running;
    b->role = role;
    snprintf(b->endpoint, sizeof(b->endpoint), "%s", endpoint);
    TAILQ_INIT(&b->in);
    TAILQ_INIT(&b->out);
    if (identity) {
        b->name.n = (uint8_t)strlen(identity);
        memcpy(b->name.id, identity, b->name.n);
    }
    LIST_INSERT_HEAD(&buses, b, link);
    if (role == BH_BUS_DEALER_CONNECT)
        connect_soon(b, 0);
    *ret = &b->bus;
    return 0;
}

int bh_bus_open(enum bh_bus_role role, const char *endpoint, const char *identity,
                struct bh_bus **ret, struct bh_err *err)
{
    return bh_bus_open_among(role, endpoint, identity, NULL, 0, ret, err);
}

void bh_bus_close(struct bh_bus *bus)
{
    struct frame *f;

    if (!bus)
        return;
    gone(of(bus), of(bus)->bus.linger_ms > 0);
    while ((f = TAILQ_FIRST(&of(bus)->in))) {
        TAILQ_REMOVE(&of(bus)->in, f, link);
        free(f);
    }
    while ((f = TAILQ_FIRST(&of(bus)->out))) {
        TAILQ_REMOVE(&of(bus)->out, f, link);
        free(f);
    } /* the struct stays: what is on the way names it */
}

void bh_bus_linger(struct bh_bus *b, int ms)
{
    b->linger_ms = ms;
}

static void on_bus_source(void *arg)
{
    struct bh_bus_poll *p = arg;

    if (p->on_readable(p->arg) || p->bus->n_in)
        source_set(p->source);
}

struct bh_bus_poll *bh_bus_poll_new(struct uv_loop_s *loop, struct bh_bus *b,
                                    bool (*on_readable)(void *), void *arg)
{
    struct bh_bus_poll *p = bh_calloc(1, sizeof(*p));

    *p = (struct bh_bus_poll){of(b), on_readable, arg, NULL};
    p->source = source_new(loop, on_bus_source, p);
    of(b)->poll = p;
    if (of(b)->n_in)
        source_set(p->source);
    return p;
}

void bh_bus_poll_close(struct bh_bus_poll *p)
{
    if (!p)
        return;
    p->bus->poll = NULL;
    source_close(p->source);
    free(p);
}

static struct frame *frame_of(const Berth__Envelope *e, struct bh_bus *b)
{
    Berth__Envelope copy = *e;
    struct frame *f;

    copy.has_version = true;
    copy.version = BH_BUS_VERSION;
    if (bh_bus_validate(&copy)) {
        fail("%s sends a message that breaks a rule: %s", of(b)->of->name, bh_bus_validate(&copy));
        return NULL;
    }
    for (size_t i = 0; e->results && i < e->results->n_result; i++)
        if (e->results->result[i]->outcome == BERTH__OUTCOME__OUTCOME_STALE)
            reach(stale_work_not_written);
    size_t n = protobuf_c_message_get_packed_size(&copy.base);
    if (n > BH_BUS_MAX_BYTES)
        return NULL;
    f = bh_malloc(sizeof(*f) + n);
    f->n = n;
    f->from.n = 0;
    f->has_work = e->work || e->results;
    protobuf_c_message_pack(&copy.base, f->p);
    note(f->p, n);
    return f;
}

enum bh_bus_outcome bh_bus_send(struct bh_bus *bus, const struct bh_peer *peer,
                                const Berth__Envelope *e)
{
    struct sim_bus *b = of(bus);
    struct line *l = peer ? line_of(b, peer) : b->line;
    struct frame *f = frame_of(e, bus);

    if (!f)
        return BH_BUS_BAD;
    if (peer && !l) {
        reach(bus_peer_unknown);
        free(f);
        return b->n_in ? BH_BUS_FULL : BH_BUS_NO_PEER;
    }
    if (l ? l->on_the_way >= 2 * BH_BUS_QUEUE_FRAMES : b->n_out >= BH_BUS_QUEUE_FRAMES) {
        free(f);
        return BH_BUS_FULL;
    }
    bus->stats.sent++;
    if (l) {
        if (!peer)
            f->from = b->name;
        carry(l, !peer, f);
        if (peer && l->doomed)
            cut(l, false);
    } else {
        f->from = b->name;
        TAILQ_INSERT_TAIL(&b->out, f, link);
        b->n_out++;
    }
    step();
    return BH_BUS_OK;
}

enum bh_bus_outcome bh_bus_recv(struct bh_bus *bus, struct bh_arena *a, struct bh_peer *ret_peer,
                                Berth__Envelope **ret_e)
{
    struct sim_bus *b = of(bus);
    struct frame *f = TAILQ_FIRST(&b->in);

    if (!f)
        return BH_BUS_EMPTY;
    TAILQ_REMOVE(&b->in, f, link);
    b->n_in--;
    bus->stats.received++;
    if (ret_peer)
        *ret_peer = f->from;
    *ret_e = bh_bus_decode(a, f->p, f->n);
    free(f);
    if (!*ret_e) {
        fail("%s cannot read a message", b->of->name);
        return BH_BUS_BAD;
    }
    step();
    return BH_BUS_OK;
}

void bh_bus_stats(const struct bh_bus *b, struct bh_bus_stats *ret)
{
    *ret = b->stats;
}

void bh_bus_wait(struct bh_bus *b, int ms)
{
    (void)b, (void)ms;
    abort(); /* of tools without a loop */
}

/* Who has which key is libzmq's business. */
int bh_bus_listen(struct bh_bus *b, const struct bh_bus_listen *l, char ret_endpoint[static 128],
                  struct bh_err *err)
{
    if (listener(l->endpoint))
        return bh_err_set(err, -EADDRINUSE, "\"%s\": in use", l->endpoint);
    snprintf(of(b)->tcp, sizeof(of(b)->tcp), "%s", l->endpoint);
    snprintf(ret_endpoint, 128, "%s", l->endpoint);
    return 0;
}

int bh_bus_dial(const struct bh_bus_dial *d, const char *identity, struct bh_bus **ret,
                struct bh_err *err)
{
    return bh_bus_open(BH_BUS_DEALER_CONNECT, d->endpoint, identity, ret, err);
}

bool bh_bus_is_tcp(const char *endpoint)
{
    return strncmp(endpoint, "tcp://", 6) == 0;
}
