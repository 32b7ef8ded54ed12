/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/wait.c - requests that are handled again a little later
 *
 * Owns: the waiters. The HTTP request stays with its server; when the client leaves first, the
 * waiter goes too.
 */
#include "simulator/server/req.h"

struct bh_sim_waiter {
    struct bh_sim *sim;
    struct bh_http_req *http;
    struct bh_sim_timer *timer;
    struct bh_sim_waiter *prev, *next;
    uint64_t start_ns;
};

static void waiter_free(struct bh_sim_waiter *w)
{
    if (w->prev)
        w->prev->next = w->next;
    else
        w->sim->waiters = w->next;
    if (w->next)
        w->next->prev = w->prev;
    free(w);
}

static void on_abort(void *arg)
{
    struct bh_sim_waiter *w = arg;
    bh_sim_cancel(w->timer);
    waiter_free(w);
}

static void on_time(void *arg)
{
    struct bh_sim_waiter *w = arg;
    struct bh_sim *s = w->sim;
    struct bh_http_req *http = w->http;
    uint64_t start_ns = w->start_ns;
    waiter_free(w);
    bh_http_on_abort(http, NULL, NULL);
    bh_sim_handle(s, http, true, start_ns);
}

void bh_sim_wait(struct bh_sim_req *r, int64_t delay_ns)
{
    struct bh_sim_waiter *w = bh_calloc(1, sizeof(*w));
    w->sim = r->sim;
    w->http = r->http;
    w->start_ns = r->start_ns;
    w->next = r->sim->waiters;
    if (w->next)
        w->next->prev = w;
    r->sim->waiters = w;
    w->timer = bh_sim_after_real(r->sim, delay_ns, on_time, w);
    bh_http_on_abort(r->http, on_abort, w);
    r->done = true;
}
