/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/clock.c - the simulator's clock, its timers, and the turns of the loop
 *
 * Two lines of timers, each a heap ordered by (time, order of arming): those of the simulation, and
 * those of the server itself (bookmarks, waiting requests), which follow the machine's clock even
 * when the simulation has one of its own. The loop has one timer handle, for whatever is due first,
 * and one idle handle, which runs exactly while there is something to do now; so a turn of the loop
 * always looks at the clients in between.
 * Under a clock of its own (bh_sim_options.manual_clock) the simulation's timers and the listeners
 * run nowhere but in bh_sim_advance().
 */
#include "common/base/loop.h"
#include "simulator/server/sim_int.h"

#include <errno.h>

#define LISTEN_BURST   256
#define TIMERS_TURN_NS 5000000            /* due timers of one turn: clients want the loop too */
#define DELAY_MAX_NS   ((int64_t)1 << 61) /* 73 years: later is never, and sums do not overflow */
#define INSTANT_MAX    4000000 /* timers at one instant of a manual clock: more is a circle */

struct bh_sim_timer {
    struct bh_sim *sim;
    struct bh_heap *line;
    uint32_t pos; /* in line */
    uint64_t at_ns, seq;
    void (*fn)(void *arg);
    void *arg;
};

static bool before(const void *x, const void *y)
{
    const struct bh_sim_timer *a = x, *b = y;
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->seq < b->seq;
}

static struct bh_sim_timer *first_of(const struct bh_heap *l)
{
    return bh_heap_peek(l);
}

/* ---- turns of the loop ----------------------------------------------------------------------- */

static void on_timer(uv_timer_t *h);
static void on_idle(uv_idle_t *h);

void bh_sim_clock_wake(struct bh_sim *s)
{
    if (!s->idle || s->stopping)
        return;
    uint64_t now = bh_mono_ns(), first = UINT64_MAX;
    if (s->real_timers.n)
        first = first_of(&s->real_timers)->at_ns;
    if (!s->opt.manual_clock && s->timers.n)
        first = BH_MIN(first, first_of(&s->timers)->at_ns);
    if (first <= now || (s->pending.n && !s->opt.manual_clock)) {
        uv_idle_start(s->idle, on_idle);
        uv_timer_stop(s->alarm);
        return;
    }
    uv_idle_stop(s->idle);
    if (first == UINT64_MAX) {
        uv_timer_stop(s->alarm);
        return;
    }
    uv_update_time(s->loop);
    uv_timer_start(s->alarm, on_timer, (first - now + 999999) / 1000000, 0);
}

static void fire(struct bh_sim_timer *t)
{
    void (*fn)(void *) = t->fn;
    void *arg = t->arg;
    bh_heap_remove(t->line, t);
    free(t);
    fn(arg);
}

/* Those that were armed before and are due; what they arm waits for the next turn. */
static void fire_due(struct bh_sim *s, struct bh_heap *l)
{
    uint64_t seq = s->timer_seq, start = bh_mono_ns();
    while (l->n && first_of(l)->at_ns <= start && first_of(l)->seq < seq) {
        fire(first_of(l));
        if (bh_mono_ns() - start > TIMERS_TURN_NS)
            break;
    }
}

static void turn(struct bh_sim *s)
{
    fire_due(s, &s->real_timers);
    if (!s->opt.manual_clock) {
        bh_sim_listen_burst(s, LISTEN_BURST);
        fire_due(s, &s->timers);
    }
    bh_sim_clock_wake(s);
}

static void on_timer(uv_timer_t *h)
{
    turn(h->data);
}

/* How long a turn kept clients waiting: what was not spent waiting for something to do. */
static void on_turn_end(uv_prepare_t *h)
{
    struct bh_sim *s = h->data;
    uint64_t now = bh_mono_ns(), idle = uv_metrics_idle_time(s->loop);
    if (s->turn_ns) {
        uint64_t all = now - s->turn_ns, waited = idle - s->idle_ns;
        double busy = (double)(all - BH_MIN(waited, all)) / 1e9;
        bh_cell_observe(s->metrics.turn, busy);
        s->turn_max = BH_MAX(s->turn_max, busy);
    }
    s->turn_ns = now;
    s->idle_ns = idle;
}

static void on_idle(uv_idle_t *h)
{
    turn(h->data);
}

/* ---- timers ---------------------------------------------------------------------------------- */

static struct bh_sim_timer *arm(struct bh_sim *s, struct bh_heap *l, uint64_t now, int64_t delay_ns,
                                void (*fn)(void *arg), void *arg)
{
    struct bh_sim_timer *t = bh_malloc(sizeof(*t));
    *t = (struct bh_sim_timer){.sim = s,
                               .line = l,
                               .pos = BH_HEAP_NONE,
                               .at_ns = now + (uint64_t)BH_MIN(BH_MAX(delay_ns, 0), DELAY_MAX_NS),
                               .seq = s->timer_seq++,
                               .fn = fn,
                               .arg = arg};
    bh_heap_push(l, t);
    if (t->pos == 0)
        bh_sim_clock_wake(s);
    return t;
}

struct bh_sim_timer *bh_sim_after(struct bh_sim *s, int64_t delay_ns, void (*fn)(void *arg),
                                  void *arg)
{
    return arm(s, &s->timers, bh_sim_mono_ns(s), delay_ns, fn, arg);
}

struct bh_sim_timer *bh_sim_after_real(struct bh_sim *s, int64_t delay_ns, void (*fn)(void *arg),
                                       void *arg)
{
    return arm(s, &s->real_timers, bh_mono_ns(), delay_ns, fn, arg);
}

void bh_sim_cancel(struct bh_sim_timer *t)
{
    if (!t)
        return;
    bh_heap_remove(t->line, t);
    free(t);
}

/* ---- the clock ------------------------------------------------------------------------------- */

uv_loop_t *bh_sim_loop(struct bh_sim *s)
{
    return s->loop;
}

int64_t bh_sim_now_ns(const struct bh_sim *s)
{
    return s->opt.manual_clock ? s->clock_ns : bh_wall_ns();
}

uint64_t bh_sim_mono_ns(const struct bh_sim *s)
{
    return s->opt.manual_clock ? (uint64_t)s->clock_ns : bh_mono_ns();
}

bool bh_sim_manual_clock(const struct bh_sim *s)
{
    return s->opt.manual_clock;
}

int64_t bh_sim_next_ns(const struct bh_sim *s)
{
    if (s->pending.n)
        return s->clock_ns;
    return s->timers.n ? BH_MAX((int64_t)first_of(&s->timers)->at_ns, s->clock_ns) : INT64_MAX;
}

int bh_sim_advance(struct bh_sim *s, int64_t to_ns)
{
    size_t at_once = 0;
    bh_assert(s->opt.manual_clock && !s->draining);
    for (;;) {
        bh_sim_drain(s);
        if (!s->timers.n || (int64_t)first_of(&s->timers)->at_ns > BH_MAX(to_ns, s->clock_ns))
            break;
        int64_t at = (int64_t)first_of(&s->timers)->at_ns;
        if (at <= s->clock_ns && ++at_once > INSTANT_MAX)
            return -ELOOP;
        if (at > s->clock_ns) {
            at_once = 0;
            s->clock_ns = at;
            bh_sim_events_tick(s);
        }
        fire(first_of(&s->timers));
    }
    if (to_ns > s->clock_ns) {
        s->clock_ns = to_ns;
        bh_sim_events_tick(s);
    }
    return 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

void bh_sim_clock_init(struct bh_sim *s)
{
    bh_heap_init(&s->timers, offsetof(struct bh_sim_timer, pos), before);
    bh_heap_init(&s->real_timers, offsetof(struct bh_sim_timer, pos), before);
    s->idle = bh_calloc(1, sizeof(*s->idle));
    s->alarm = bh_calloc(1, sizeof(*s->alarm));
    uv_idle_init(s->loop, s->idle);
    uv_timer_init(s->loop, s->alarm);
    s->turn_end = bh_calloc(1, sizeof(*s->turn_end));
    uv_prepare_init(s->loop, s->turn_end);
    s->idle->data = s->alarm->data = s->turn_end->data = s;
    if (uv_loop_configure(s->loop, UV_METRICS_IDLE_TIME) == 0) {
        uv_prepare_start(s->turn_end, on_turn_end);
        uv_unref((uv_handle_t *)s->turn_end); /* it keeps no loop alive */
    }
}

static void line_fini(struct bh_heap *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i]);
    bh_heap_fini(l);
}

void bh_sim_clock_fini(struct bh_sim *s)
{
    bh_loop_close_free(bh_take_ptr(s->idle));
    bh_loop_close_free(s->alarm);
    bh_loop_close_free(s->turn_end);
    line_fini(&s->timers);
    line_fini(&s->real_timers);
}
