/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/scheduler.c - the scheduler: how it is, and its queue
 */
#include "simulator/console/parts.h"

#include <errno.h>
#include <stdio.h>

#include "common/control/ask.h"

#define FRESH_NS UINT64_C(1000000000)

struct bh_console_scheduler {
    struct bh_console_scheduler_view view;
    struct bh_arena a; /* of the view's profiles */
    uint64_t asked_ns;
    bool asking;
};
struct question {
    const char *runtime_dir;
    struct bh_console_scheduler_view view;
    struct bh_arena a;
};

static struct bh_json *list_profiles(struct bh_arena *a, const Berth__ControlStatus *s)
{
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);

    for (size_t i = 0; i < s->n_profile; i++)
        bh_json_push(list, bh_json_new_cstr(a, s->profile[i]));
    return list;
}

static void run(struct bh_console_job *j BH_UNUSED, void *arg)
{
    struct question *q = arg;
    const Berth__ControlReply *r = NULL;
    struct bh_err err = {0};
    struct bh_ask ask = {0};
    int rc = bh_ask_open(&ask, q->runtime_dir, &err);

    rc = rc < 0 ? rc : bh_ask_for(&ask, BERTH__CONTROL_WHAT__CONTROL_STATUS, &r, &err);
    q->view.known = true;
    q->view.running = rc == 0;
    q->view.deciding = rc == 0 && r->status && r->status->deciding;
    snprintf(q->view.trouble, sizeof(q->view.trouble), "%s",
             rc < 0                            ? err.msg
             : r->status && r->status->trouble ? r->status->trouble
                                               : "");
    if (q->view.running && r->status)
        q->view.profiles = list_profiles(&q->a, r->status);
    bh_ask_close(&ask);
}

static void done(struct bh_sim_req *r BH_UNUSED, struct bh_sim *s, void *arg)
{
    struct bh_console_scheduler *k = s->console->scheduler;
    struct question *q = arg;
    struct bh_arena old = k->a;

    k->view = q->view;
    k->a = q->a;
    q->a = old; /* released with the question */
    k->asking = false;
}

static void release(void *arg)
{
    struct question *q = arg;

    bh_arena_fini(&q->a);
    free(q);
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
        bh_console_background(c->sim, run, done, release, q);
    }
    return &k->view;
}

void bh_console_scheduler_start(struct bh_console *c)
{
    c->scheduler = bh_calloc(1, sizeof(*c->scheduler));
}

void bh_console_scheduler_stop(struct bh_console *c)
{
    bh_arena_fini(&c->scheduler->a);
    free(c->scheduler);
    c->scheduler = NULL;
}

/* ---- queue ----------------------------------------------------------------------------------- */

struct listing {
    const char *runtime_dir;
    char *ns;
    struct bh_arena a;
    struct bh_json *items;
    int64_t count[16]; /* by place */
};

static void on_pod(void *arg, const Berth__QueuePod *p)
{
    struct listing *l = arg;

    bh_json_push(l->items, bh_queue_pod_json(&l->a, p));
    if ((size_t)p->place < BH_ARRAY_LEN(l->count))
        l->count[p->place]++;
}

static void run_queue(struct bh_console_job *j, void *arg)
{
    static const Berth__QueuePlace places[] = {
        BERTH__QUEUE_PLACE__QUEUE_ACTIVE,        BERTH__QUEUE_PLACE__QUEUE_BACKOFF,
        BERTH__QUEUE_PLACE__QUEUE_ERROR_BACKOFF, BERTH__QUEUE_PLACE__QUEUE_UNSCHEDULABLE,
        BERTH__QUEUE_PLACE__QUEUE_GATED,         BERTH__QUEUE_PLACE__QUEUE_IN_FLIGHT,
        BERTH__QUEUE_PLACE__QUEUE_BINDING,       BERTH__QUEUE_PLACE__QUEUE_WAITING};
    struct listing *l = arg;
    struct bh_err err = {0};
    struct bh_ask ask = {0};
    int rc = l->runtime_dir ? bh_ask_open(&ask, l->runtime_dir, &err)
                            : bh_err_set(&err, -ENOENT, "no scheduler belongs to this server");

    l->items = bh_json_new(&l->a, BH_JSON_ARRAY);
    rc = rc < 0 ? rc : bh_ask_queue(&ask, l->ns, 0, on_pod, l, &err);
    bh_ask_close(&ask);
    if (rc < 0) {
        bh_console_job_fail(j, 503, NULL, 0, "%s", err.msg);
        return;
    }
    struct bh_json *v = bh_json_make(&l->a, "running: true, counts: {}, items: %p", l->items);
    for (size_t i = 0; i < BH_ARRAY_LEN(places); i++)
        bh_json_set_i64(&l->a, bh_json_get(v, "counts"), bh_queue_place_name(places[i]),
                        l->count[places[i]]);
    bh_console_job_reply(j, 200, v);
}

static void release_queue(void *arg)
{
    struct listing *l = arg;

    bh_arena_fini(&l->a);
    free(l->ns);
    free(l);
}

void bh_console_queue(struct bh_console_req *c)
{
    const char *ns = bh_http_query(c->r->http, "namespace");
    struct listing *l = bh_calloc(1, sizeof(*l));

    l->runtime_dir = c->r->sim->opt.runtime_dir;
    l->ns = ns && *ns ? bh_strdup(ns) : NULL;
    bh_console_work(c, run_queue, release_queue, l);
}
