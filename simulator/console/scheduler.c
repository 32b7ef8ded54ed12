/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/scheduler.c - how the scheduler is, from answers that worker threads fetch
 */
#include "simulator/console/parts.h"

#include <stdio.h>

#include "common/control/ask.h"

#define FRESH_NS UINT64_C(1000000000)

struct bh_console_scheduler {
    struct bh_console_scheduler_view view;
    uint64_t asked_ns;
    bool asking;
};
struct question {
    const char *runtime_dir;
    struct bh_console_scheduler_view view;
};

static void run(struct bh_console_job *j, void *arg)
{
    struct question *q = arg;
    const Berth__ControlReply *r = NULL;
    struct bh_err err = {0};
    struct bh_ask ask = {0};
    int rc = bh_ask_open(&ask, q->runtime_dir, &err);

    (void)j;
    if (rc == 0)
        rc = bh_ask_for(&ask, BERTH__CONTROL_WHAT__CONTROL_STATUS, &r, &err);
    q->view.known = true;
    q->view.running = rc == 0;
    q->view.deciding = rc == 0 && r->status && r->status->deciding;
    snprintf(q->view.trouble, sizeof(q->view.trouble), "%s",
             rc < 0                            ? err.msg
             : r->status && r->status->trouble ? r->status->trouble
                                               : "");
    bh_ask_close(&ask);
}

static void done(struct bh_sim_req *r, struct bh_sim *s, void *arg)
{
    const struct question *q = arg;

    (void)r;
    s->console->scheduler->view = q->view;
    s->console->scheduler->asking = false;
}

const struct bh_console_scheduler_view *bh_console_scheduler(struct bh_console *c)
{
    struct bh_console_scheduler *k = c->scheduler;
    uint64_t now = bh_mono_ns();

    if (!c->sim->opt.runtime_dir) {
        k->view.known = true;
        snprintf(k->view.trouble, sizeof(k->view.trouble), "no scheduler belongs to this server");
    } else if (!k->asking && (!k->asked_ns || now - k->asked_ns > FRESH_NS)) {
        struct question *q = bh_calloc(1, sizeof(*q));
        q->runtime_dir = c->sim->opt.runtime_dir;
        k->asking = true;
        k->asked_ns = now;
        bh_console_background(c->sim, run, done, free, q);
    }
    return &k->view;
}

void bh_console_scheduler_start(struct bh_console *c)
{
    c->scheduler = bh_calloc(1, sizeof(*c->scheduler));
}

void bh_console_scheduler_stop(struct bh_console *c)
{
    free(c->scheduler);
    c->scheduler = NULL;
}
