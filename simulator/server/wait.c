/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/wait.c - requests that are handled again a little later
 *
 * The HTTP request stays with its server; when the client leaves first, the waiter goes too.
 */
#include "simulator/server/req.h"

struct waiter {
    struct bh_sim *sim;
    struct bh_http_req *http;
    struct bh_sim_timer *timer;
    uint64_t start_ns;
};

static void on_abort(void *arg)
{
    struct waiter *w = arg;
    bh_sim_cancel(w->timer);
    free(w);
}

static void on_time(void *arg)
{
    struct waiter w = *(struct waiter *)arg;
    free(arg);
    bh_http_on_abort(w.http, NULL, NULL);
    bh_sim_handle(w.sim, w.http, true, w.start_ns);
}

void bh_sim_wait(struct bh_sim_req *r, int64_t delay_ns)
{
    struct waiter *w = bh_malloc(sizeof(*w));
    *w = (struct waiter){.sim = r->sim, .http = r->http, .start_ns = r->start_ns};
    w->timer = bh_sim_after_real(r->sim, delay_ns, on_time, w);
    bh_http_on_abort(r->http, on_abort, w);
    r->done = true;
}
