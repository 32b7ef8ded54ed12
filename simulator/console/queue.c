/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/queue.c - the scheduler's queue, and YAML read as the server reads it
 */
#include "simulator/console/parts.h"

#include <errno.h>
#include <stdlib.h>

#include "common/data/yaml.h"
#include "common/control/ask.h"

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
    struct bh_json *v;
    int rc = l->runtime_dir ? bh_ask_open(&ask, l->runtime_dir, &err)
                            : bh_err_set(&err, -ENOENT, "no scheduler belongs to this server");

    l->items = bh_json_new(&l->a, BH_JSON_ARRAY);
    if (rc == 0)
        rc = bh_ask_queue(&ask, l->ns, 0, on_pod, l, &err);
    bh_ask_close(&ask);
    if (rc < 0) {
        bh_console_job_fail(j, 503, NULL, 0, "%s", err.msg);
        return;
    }
    v = bh_json_make(&l->a, "running: true, counts: {}, items: %p", l->items);
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

/* ---- manifest -------------------------------------------------------------------------------- */

void bh_console_manifest(struct bh_console_req *c)
{
    struct bh_sim_req *r = c->r;
    struct bh_str body = bh_http_body(r->http);
    struct bh_json *docs = NULL, *v = bh_json_make(r->a, "documents: []"), *next;
    struct bh_err err = {0};
    int rc = bh_yaml_parse_all(r->a, body.p ? body.p : "", body.n, BH_JSON_STRICT, &docs, &err);

    if (rc < 0) {
        bh_console_fail(r, 400, NULL, bh_console_line_of(&err), "%s", err.msg);
        return;
    }
    for (struct bh_json *d = docs->c.first; d; d = next) {
        next = d->next;
        d->next = NULL;
        bh_json_append(r->a, bh_json_get(v, "documents"), "line: %u, object: %p", d->line, d);
    }
    bh_console_reply(r, 200, v);
}
