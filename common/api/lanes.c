/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/lanes.c - the small requests of a client: queue, turns, deadlines, pace
 *
 * Owns:       the connections of a client's lanes; requests from bh_lanes_add to bh_api_ended.
 * Invariants: a request is on exactly one of queue, a lane's flight, done. Callbacks are made from
 *             bh_lanes_settle and the deadline timer, with no talk on the stack.
 * Runs in:    the loop.
 */
#include "common/api/lane.h"

#define NS_PER_MS        UINT64_C(1000000)
#define AT_ONCE_NS       (UINT64_C(5) * NS_PER_MS)
#define WAITING_NS       (UINT64_C(250) * NS_PER_MS) /* far less than a lease's term */
#define PACE_FROM        3u /* requests out: then as many replies a look, or thereabouts */
#define PACE_MANY        16u
#define PACE_FEW_MAX_MS  16u
#define PACE_MAX_MS      20u
#define CONNECT_PAUSE_NS (UINT64_C(1000) * NS_PER_MS) /* after a failure, while others live */

/* ---- turns ----------------------------------------------------------------------------------- */

/* Over HTTP/1.1 replies come one after another: what is behind a slow one waits in the server,
 * where no fence reaches it. So no more is on such a connection than is answered in ns. */
static unsigned depth(const struct bh_lanes *s, const struct bh_lane *l, uint64_t ns)
{
    if (!l->serial || !s->service_ns)
        return l->room;
    return (unsigned)BH_MAX(BH_MIN(ns / s->service_ns, (uint64_t)l->room), 1u);
}

/* The first that answers at once, else the one with the least to do; NULL: all are full. */
static struct bh_lane *with_room(struct bh_lanes *s)
{
    struct bh_lane *l, *best = NULL;

    TAILQ_FOREACH(l, &s->lanes, link) {
        if (l->state != LANE_OPEN || l->blocked || l->n_flight >= depth(s, l, WAITING_NS))
            continue;
        if (l->n_flight < depth(s, l, AT_ONCE_NS))
            return l;
        if (!best || l->n_flight < best->n_flight)
            best = l;
    }
    return best;
}

/* A request has to wait that need not, if there were one more. */
static bool crowded(struct bh_lanes *s)
{
    struct bh_lane *l;
    bool waits = !TAILQ_EMPTY(&s->queue);

    TAILQ_FOREACH(l, &s->lanes, link) {
        unsigned at_once = depth(s, l, AT_ONCE_NS);
        if (l->state == LANE_OPEN && l->n_flight < at_once)
            return false;
        waits |= l->n_flight > at_once;
    }
    return waits;
}

static bool may_connect(const struct bh_lanes *s)
{
    const struct bh_lane *l;

    if (s->c->closing || s->n_lanes >= s->c->max_connections || bh_mono_ns() < s->retry_ns)
        return false;
    TAILQ_FOREACH(l, &s->lanes, link)
        if (l->state == LANE_CONNECTING ||
            (l->state == LANE_OPEN && !l->room)) /* about to have some */
            return false;
    return true;
}

/* True: it is not sent any more. */
static bool too_late(struct bh_lanes *s, struct bh_api_req *r)
{
    r->fenced = bh_api_past_fence(r);
    if (!r->fenced && r->state != BH_REQ_CANCELED)
        return false;
    bh_lanes_move(s, r, &s->done);
    r->on.why = "it was not sent before its time was over";
    return true;
}

static void give(struct bh_lanes *s, struct bh_lane *l, struct bh_api_req *r)
{
    bh_lanes_move(s, r, &l->flight);
    r->on.lane = l;
    r->on.given_ns = l->used_ns = bh_mono_ns();
    r->sent = true;
    r->on.ahead = ++l->n_flight;
    s->n_flight++;
    l->talk->submit(l, r);
}

static void turn(struct bh_lanes *s)
{
    struct bh_api_req *r;
    struct bh_lane *l;

    while ((r = TAILQ_FIRST(&s->queue))) {
        if (too_late(s, r))
            continue;
        if (!(l = with_room(s)))
            break;
        give(s, l, r);
    }
    TAILQ_FOREACH(l, &s->lanes, link) {
        if (l->state != LANE_OPEN && l->state != LANE_LEAVING)
            continue;
        l->talk->pump(l);
        if (l->out.n)
            bh_lane_write(l);
    }
    if (crowded(s) && may_connect(s))
        bh_lane_new(s);
}

static void look(struct bh_lanes *s)
{
    struct bh_lane *l;

    TAILQ_FOREACH(l, &s->lanes, link)
        bh_lane_read(l);
}

static void on_soon(uv_idle_t *h)
{
    struct bh_lanes *s = bh_container_of(h, struct bh_lanes, soon);
    struct bh_api_client *c = s->c;

    uv_idle_stop(h);
    c->busy++;
    if (s->paced && !s->linger_ms)
        look(s); /* awake anyway */
    turn(s);
    bh_lanes_settle(s);
    bh_api_leave(c);
}

void bh_lanes_turn_soon(struct bh_lanes *s)
{
    if (!uv_is_closing((uv_handle_t *)&s->soon))
        uv_idle_start(&s->soon, on_soon); /* does nothing when it is started */
}

/* ---- pace ------------------------------------------------------------------------------------ */

/* Replies that come one after another tell how deep a connection may be (depth()): what a pause
 * adds to the time of a few would make it shallow. */
static bool serial(const struct bh_lanes *s)
{
    const struct bh_lane *l;

    TAILQ_FOREACH(l, &s->lanes, link)
        if (l->serial)
            return true;
    return false;
}

static uint64_t wanted_pause_ms(const struct bh_lanes *s)
{
    if (s->linger_ms)
        return s->n_flight ? s->linger_ms : 0;
    if (s->n_flight < (serial(s) ? PACE_MANY : PACE_FROM))
        return 0;
    return BH_MIN(PACE_FROM * s->latency_ns / s->n_flight / NS_PER_MS,
                  s->n_flight < PACE_MANY ? PACE_FEW_MAX_MS : PACE_MAX_MS);
}

static void on_pace(uv_timer_t *h)
{
    struct bh_lanes *s = bh_container_of(h, struct bh_lanes, pace);
    struct bh_api_client *c = s->c;

    c->busy++;
    look(s);
    if (s->linger_ms)
        turn(s); /* what came meanwhile leaves in the same wake-up */
    bh_lanes_settle(s);
    bh_api_leave(c);
}

static void pace(struct bh_lanes *s)
{
    if (uv_is_active((uv_handle_t *)&s->pace))
        return;
    uint64_t ms = wanted_pause_ms(s);
    if (ms)
        uv_timer_start(&s->pace, on_pace, ms, 0);
    bool paced = ms > 0;
    struct bh_lane *l;
    if (s->paced == paced)
        return;
    s->paced = paced;
    TAILQ_FOREACH(l, &s->lanes, link)
        bh_lane_watch(l);
}

/* ---- what a turn leaves ---------------------------------------------------------------------- */

static bool others(const struct bh_lanes *s, const struct bh_lane *me)
{
    const struct bh_lane *l;

    TAILQ_FOREACH(l, &s->lanes, link)
        if (l != me && (l->state == LANE_OPEN || l->state == LANE_CONNECTING))
            return true;
    return false;
}

static void sweep(struct bh_lanes *s)
{
    struct bh_lane *l, *next;

    for (l = TAILQ_FIRST(&s->lanes); l; l = next) {
        next = TAILQ_NEXT(l, link);
        bool over = l->state == LANE_LEAVING && !l->n_flight && l->out_off == l->out.n;
        if (l->state != LANE_BROKEN && !over)
            continue;
        if (!l->talk && l->creds == s->c->creds) {
            s->retry_ns = others(s, l) ? bh_mono_ns() + CONNECT_PAUSE_NS : 0;
            if (!s->retry_ns) {
                /* No connection is left that could take what waits: it fails with what the attempt
                 * said. */
                struct bh_api_req *r;
                long os_errno = 0;
                curl_easy_getinfo(l->easy, CURLINFO_OS_ERRNO, &os_errno);
                while ((r = TAILQ_FIRST(&s->queue))) {
                    bh_lanes_move(s, r, &s->done);
                    snprintf(r->error, sizeof(r->error), "%s",
                             l->error[0] ? l->error : "the server could not be reached");
                    r->on.why = r->error;
                    r->os_errno = l->lack ? l->lack : (int)os_errno;
                }
            }
        }
        struct bh_api_req *r;
        while ((r = TAILQ_FIRST(&l->flight)))
            bh_lane_done(l, r, l->error[0] ? l->error : "the connection broke");
        bh_lane_free(l);
    }
}

void bh_lanes_settle(struct bh_lanes *s)
{
    struct bh_api_req *r;

    sweep(s);
    while ((r = TAILQ_FIRST(&s->done))) {
        bh_lanes_move(s, r, NULL);
        bh_api_ended(r, r->fenced, r->on.why);
    }
    if (!TAILQ_EMPTY(&s->queue) && !s->c->closing &&
        (with_room(s) ? !(s->paced && s->linger_ms) : may_connect(s)))
        bh_lanes_turn_soon(s);
    pace(s);
}

/* ---- deadlines ------------------------------------------------------------------------------- */

static void on_deadline(uv_timer_t *h);

static void arm(struct bh_lanes *s, uint64_t deadline_ns)
{
    uint64_t now = bh_mono_ns();

    if (!deadline_ns || deadline_ns >= s->deadline_ns)
        return;
    s->deadline_ns = deadline_ns;
    uv_update_time(s->c->loop);
    uv_timer_start(&s->deadline, on_deadline,
                   deadline_ns > now ? (deadline_ns - now) / NS_PER_MS + 1 : 0, 0);
}

static struct bh_api_req *overdue(struct bh_lanes *s, uint64_t now)
{
    struct bh_api_req *r;

    TAILQ_FOREACH(r, &s->c->reqs[BH_REQ_RUNNING], link)
        if (r->on.list && r->deadline_ns && r->deadline_ns <= now)
            return r;
    return NULL;
}

static void on_deadline(uv_timer_t *h)
{
    struct bh_lanes *s = bh_container_of(h, struct bh_lanes, deadline);
    struct bh_api_client *c = s->c;
    struct bh_api_req *r;
    uint64_t now = bh_mono_ns();

    c->busy++;
    s->deadline_ns = UINT64_MAX;
    while ((r = overdue(s, now))) { /* the callback may have changed any list */
        if (!r->on.lane) {
            /* Connections that were made and never heard of again: the next request gets another
             * one. */
            struct bh_lane *l;
            TAILQ_FOREACH(l, &s->lanes, link)
                if (l->state == LANE_OPEN && !l->room)
                    bh_lane_break(l, "the server said nothing");
        }
        bh_lanes_remove(s, r);
        bh_api_ended(r, true, "the server did not answer in time");
    }
    TAILQ_FOREACH(r, &c->reqs[BH_REQ_RUNNING], link)
        if (r->on.list)
            arm(s, r->deadline_ns);
    bh_lanes_settle(s);
    bh_api_leave(c);
}

/* ---- life ------------------------------------------------------------------------------------ */

void bh_lanes_add(struct bh_lanes *s, struct bh_api_req *r)
{
    r->on.list = &s->queue;
    r->on.lane = NULL;
    r->on.refused = 0;
    r->os_errno = 0;
    TAILQ_INSERT_TAIL(&s->queue, r, on.link);
    arm(s, r->deadline_ns);
    if (!(s->paced && s->linger_ms))
        bh_lanes_turn_soon(s);
}

void bh_lanes_remove(struct bh_lanes *s, struct bh_api_req *r)
{
    struct bh_lane *l = r->on.lane;

    bh_lanes_move(s, r, NULL);
    if (l)
        l->talk->drop(l, r);
}

void bh_lanes_renew(struct bh_lanes *s)
{
    struct bh_lane *l;

    TAILQ_FOREACH(l, &s->lanes, link)
        if (l->state == LANE_OPEN) /* one that is being made looks itself */
            l->state = LANE_LEAVING;
    bh_lanes_turn_soon(s);
}

struct bh_lanes *bh_lanes_new(struct bh_api_client *c, const struct bh_api_options *o)
{
    struct bh_lanes *s = bh_calloc(1, sizeof(*s));

    s->c = c;
    s->linger_ms = o->linger_ms;
    s->depth = o->depth ? o->depth : BH_LANE_DEPTH;
    s->deadline_ns = UINT64_MAX;
    TAILQ_INIT(&s->lanes);
    TAILQ_INIT(&s->queue);
    TAILQ_INIT(&s->done);
    uv_idle_init(c->loop, &s->soon);
    uv_timer_init(c->loop, &s->pace);
    uv_timer_init(c->loop, &s->deadline);
    s->soon.data = s->pace.data = s->deadline.data = s;
    s->n_handles = 3;
    c->open_handles++;
    return s;
}

static void on_closed(uv_handle_t *h)
{
    struct bh_lanes *s = h->data;
    struct bh_api_client *c = s->c;

    if (--s->n_handles)
        return;
    free(s);
    bh_api_handle_closed(c);
}

void bh_lanes_close(struct bh_lanes *s)
{
    struct bh_lane *l;

    if (!s)
        return;
    while ((l = TAILQ_FIRST(&s->lanes)))
        bh_lane_free(l);
    uv_close((uv_handle_t *)&s->soon, on_closed);
    uv_close((uv_handle_t *)&s->pace, on_closed);
    uv_close((uv_handle_t *)&s->deadline, on_closed);
}
