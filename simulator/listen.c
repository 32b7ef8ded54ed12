/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/listen.c - telling controllers about commits, and their timers
 *
 * Commits queue here and are told from the loop's idle phase, LISTEN_BURST at a time, so that a
 * listener's own writes never recurse and a flood of commits cannot starve the clients.
 * Invariants: the idle handle runs exactly while the queue is not empty.
 */
#include "simulator/sim_int.h"

#include <stdio.h>
#include <time.h>

#define LISTEN_BURST 256

static void tell(struct bh_sim *s, const struct bh_sim_event *e)
{
    for (size_t i = 0; i < s->n_listen; i++) {
        if (!s->listen[i].type || s->listen[i].type == e->obj->type)
            s->listen[i].fn(s->listen[i].arg, e->change, e->old, e->obj);
    }
}

static void drain(struct bh_sim *s, size_t burst)
{
    if (s->draining)
        return;
    s->draining = true;
    while (s->pending_n && burst--) {
        struct bh_sim_event e = s->pending[s->pending_first];
        s->pending_first = (s->pending_first + 1) & (s->pending_cap - 1);
        s->pending_n--;
        tell(s, &e);
        bh_sim_obj_unref(e.old);
        bh_sim_obj_unref(e.obj);
    }
    s->draining = false;
    if (!s->pending_n)
        uv_idle_stop(s->idle);
}

static void on_idle(uv_idle_t *h)
{
    drain(h->data, LISTEN_BURST);
}

void bh_sim_drain(struct bh_sim *s)
{
    drain(s, SIZE_MAX);
}

void bh_sim_listen(struct bh_sim *s, const struct bh_sim_type *t, bh_sim_listener *fn, void *arg)
{
    s->listen = bh_reallocarray(s->listen, s->n_listen + 1, sizeof(*s->listen));
    s->listen[s->n_listen++] = (struct bh_sim_listen_entry){t, fn, arg};
}

void bh_sim_listen_queue(struct bh_sim *s, enum bh_sim_change c, struct bh_sim_obj *old,
                         struct bh_sim_obj *obj)
{
    if (!s->n_listen || s->stopping)
        return;
    if (s->pending_n == s->pending_cap) {
        size_t cap = s->pending_cap ? s->pending_cap * 2 : 256;
        struct bh_sim_event *v = bh_reallocarray(NULL, cap, sizeof(*v));
        for (size_t i = 0; i < s->pending_n; i++)
            v[i] = s->pending[(s->pending_first + i) & (s->pending_cap - 1)];
        free(s->pending);
        s->pending = v;
        s->pending_cap = cap;
        s->pending_first = 0;
    }
    if (!s->pending_n)
        uv_idle_start(s->idle, on_idle);
    s->pending[(s->pending_first + s->pending_n++) & (s->pending_cap - 1)] =
        (struct bh_sim_event){.change = c,
                              .rv = obj->rv,
                              .old = old ? bh_sim_obj_ref(old) : NULL,
                              .obj = bh_sim_obj_ref(obj)};
}

void bh_sim_listen_init(struct bh_sim *s)
{
    s->idle = bh_calloc(1, sizeof(*s->idle));
    uv_idle_init(s->loop, s->idle);
    s->idle->data = s;
}

static void idle_closed(uv_handle_t *h)
{
    free(h);
}

void bh_sim_listen_fini(struct bh_sim *s)
{
    uv_close((uv_handle_t *)s->idle, idle_closed);
    while (s->pending_n) {
        struct bh_sim_event *e = &s->pending[s->pending_first];
        bh_sim_obj_unref(e->old);
        bh_sim_obj_unref(e->obj);
        s->pending_first = (s->pending_first + 1) & (s->pending_cap - 1);
        s->pending_n--;
    }
    free(s->pending);
    free(s->listen);
    while (s->timers)
        bh_sim_cancel(s->timers);
}

/* ---- timers -------------------------------------------------------------------------------------
 */

struct bh_sim_timer {
    uv_timer_t uv;
    struct bh_sim *sim;
    struct bh_sim_timer *prev, *next;
    void (*fn)(void *arg);
    void *arg;
};

static void timer_closed(uv_handle_t *h)
{
    free(bh_container_of((uv_timer_t *)h, struct bh_sim_timer, uv));
}

void bh_sim_cancel(struct bh_sim_timer *t)
{
    if (!t)
        return;
    if (t->prev)
        t->prev->next = t->next;
    else
        t->sim->timers = t->next;
    if (t->next)
        t->next->prev = t->prev;
    uv_close((uv_handle_t *)&t->uv, timer_closed);
}

static void timer_fired(uv_timer_t *h)
{
    struct bh_sim_timer *t = h->data;
    void (*fn)(void *) = t->fn;
    void *arg = t->arg;
    bh_sim_cancel(t);
    fn(arg);
}

struct bh_sim_timer *bh_sim_after(struct bh_sim *s, int64_t delay_ns, void (*fn)(void *arg),
                                  void *arg)
{
    struct bh_sim_timer *t = bh_malloc(sizeof(*t));
    *t = (struct bh_sim_timer){.sim = s, .fn = fn, .arg = arg, .next = s->timers};
    if (s->timers)
        s->timers->prev = t;
    s->timers = t;
    uv_timer_init(s->loop, &t->uv);
    t->uv.data = t;
    uv_timer_start(&t->uv, timer_fired, (uint64_t)((delay_ns + 999999) / 1000000), 0);
    return t;
}

/* ---- clock --------------------------------------------------------------------------------------
 */

uv_loop_t *bh_sim_loop(struct bh_sim *s)
{
    return s->loop;
}

int64_t bh_sim_now_ns(const struct bh_sim *s)
{
    (void)s; /* the clock belongs to the server, so that a simulation can have its own */
    return bh_wall_ns();
}

static void split_time(int64_t wall_ns, struct tm *tm, int *us)
{
    time_t sec = (time_t)(wall_ns / 1000000000);
    *us = (int)(wall_ns % 1000000000 / 1000);
    gmtime_r(&sec, tm);
}

void bh_sim_time(char out[static 32], int64_t wall_ns)
{
    struct tm tm;
    int us;
    split_time(wall_ns, &tm, &us);
    strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

void bh_sim_time_micro(char out[static 40], int64_t wall_ns)
{
    struct tm tm;
    int us;
    split_time(wall_ns, &tm, &us);
    size_t n = strftime(out, 40, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out + n, 40 - n, ".%06dZ", us);
}

int64_t bh_sim_parse_time(const char *rfc3339)
{
    struct tm tm = {0};
    const char *p = rfc3339 ? strptime(rfc3339, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    if (!p)
        return 0;
    int64_t frac = 0, unit = 100000000;
    if (*p == '.') {
        for (p++; *p >= '0' && *p <= '9'; p++, unit /= 10)
            frac += (*p - '0') * unit;
    }
    int off_h = 0, off_m = 0;
    if ((*p == '+' || *p == '-') && sscanf(p + 1, "%2d:%2d", &off_h, &off_m) != 2)
        return 0;
    int64_t off = (int64_t)off_h * 3600 + off_m * 60;
    return ((int64_t)timegm(&tm) - (*p == '-' ? -off : off)) * 1000000000 + frac;
}

void bh_sim_suffix(struct bh_sim *s, char out[static 6])
{
    static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
    for (int i = 0; i < 5; i++)
        out[i] = alphabet[bh_rand_below(&s->rand, sizeof(alphabet) - 1)];
    out[5] = 0;
}
