/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/api/reflector_env.h - a reflector, and a server that does what a script says
 *
 * Each request takes the next step. What the consumer is told is written down as text.
 */
#ifndef BH_TEST_REFLECTOR_ENV_H
#define BH_TEST_REFLECTOR_ENV_H

#include "common/api/reflector.h"
#include "common/base/loop.h"
#include "tests/unit/common/api/raw_server.h"

#include "proto/kubernetes/kubernetes.pb-c.h"

struct env;
typedef void step_fn(struct env *e, struct raw_conn *c, const char *target);
struct env {
    uv_loop_t loop;
    struct raw_server server;
    struct bh_api_client *client;
    struct bh_reflector *reflector;
    char url[64];
    step_fn *const *steps;
    size_t n_steps, at;
    struct bh_buf log;     /* deliveries: "+a " "~a " "-a " "!bad " "|" list complete */
    struct bh_buf targets; /* requests, one a line */
    unsigned synced, relists, bad, troubles, healthy;
    unsigned gzip; /* requests that would take a compressed answer */
    char trouble[256];
    const char *want; /* log to wait for */
    uint64_t idle_ns;
    unsigned hurry; /* 0 = 100 */
    enum bh_kind kind;
    const struct bh_kind_info *info; /* instead of kind */
};

static void on_event(void *arg, const struct bh_kind_info *k, const struct bh_reflector_event *ev)
{
    static const char sign[] = {'+', '~', '-'};
    struct env *e = arg;
    (void)k;
    bh_buf_addf(&e->log, "%c%s/%s@%s%s ", sign[ev->type], ev->name, ev->uid, ev->resource_version,
                ev->object ? "" : "?");
    if (ev->object && ev->type != BH_WATCH_DELETED)
        CU_ASSERT_STRING_EQUAL(bh_object_meta(ev->object)->name, ev->name);
}

static void on_synced(void *arg, const struct bh_kind_info *k, bool relist)
{
    struct env *e = arg;
    (void)k;
    e->synced++;
    e->relists += relist;
    bh_buf_adds(&e->log, "| ");
}

static void on_bad(void *arg, const struct bh_kind_info *k, const char *name, const char *why)
{
    struct env *e = arg;
    (void)k;
    e->bad++;
    bh_buf_addf(&e->log, "!%s ", name);
    CU_ASSERT(*why);
}

static void on_trouble(void *arg, const struct bh_kind_info *k, const char *text)
{
    struct env *e = arg;
    (void)k;
    if (text) {
        e->troubles++;
        snprintf(e->trouble, sizeof(e->trouble), "%s", text);
    } else {
        e->healthy++;
    }
}

static void handle(struct raw_server *s, const struct raw_request *r)
{
    struct env *e = s->arg;
    bh_buf_addf(&e->targets, "%s\n", r->target);
    e->gzip += strcasestr(r->head, "accept-encoding: gzip") != NULL;
    if (e->at < e->n_steps)
        e->steps[e->at++](e, r->conn, r->target);
    /* beyond the script: silence */
}

static bool log_is(void *arg)
{
    struct env *e = arg;
    return bh_streq(bh_buf_str(&e->log), e->want) && e->at == e->n_steps;
}

/* Runs the script and expects exactly these deliveries. */
BH_UNUSED static void play(struct env *e, step_fn *const *steps, size_t n, const char *want)
{
    struct bh_err err = {""};
    struct bh_api_config cfg = {.server = e->url};
    const struct bh_api_options o = {.qps = 0};
    const struct bh_reflector_callbacks cb = {
        on_event,
        on_synced,
        on_bad,
        on_trouble,
        e,
        .idle_ns = e->idle_ns ? e->idle_ns : UINT64_C(10) * 1000000000,
        .hurry = e->hurry ? e->hurry : 100,
    };
    e->steps = steps;
    e->n_steps = n;
    e->want = want;
    uv_loop_init(&e->loop);
    raw_start(&e->server, &e->loop, handle, e);
    snprintf(e->url, sizeof(e->url), "http://127.0.0.1:%u", e->server.port);
    CU_ASSERT_EQUAL_FATAL(bh_api_client_new(&e->loop, &cfg, &o, &e->client, &err), 0);
    e->reflector =
        bh_reflector_new(&e->loop, e->client, e->info ? e->info : &bh_kinds[e->kind], &cb);
    if (!run_until(&e->loop, log_is, e))
        printf("# got:  %s\n# want: %s\n# steps %zu of %zu, trouble: %s\n# %s\n",
               bh_buf_str(&e->log), want, e->at, e->n_steps, e->trouble, bh_buf_str(&e->targets));
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&e->log), want);
    CU_ASSERT_EQUAL(e->at, e->n_steps);
}

BH_UNUSED static void finish(struct env *e)
{
    bh_reflector_free(e->reflector);
    bh_api_client_free(e->client);
    raw_stop(&e->server);
    bh_loop_drain_close(&e->loop);
    bh_buf_fini(&e->log);
    bh_buf_fini(&e->targets);
}

/* ---- what the server says -------------------------------------------------------------------- */

#define ITEM(name, uid, rv)                                                                        \
    "{\"metadata\":{\"name\":\"" name "\",\"uid\":\"" uid "\",\"resourceVersion\":\"" rv "\"}}"
#define LIST(rv, items)                                                                            \
    "{\"kind\":\"NodeList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"" rv         \
    "\"},\"items\":[" items "]}"
#define PAGE(rv, cont, items)                                                                      \
    "{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"" rv "\",\"continue\":\"" cont     \
    "\"},\"items\":[" items "]}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define BOOKMARK(rv)                                                                               \
    EVENT("BOOKMARK", "{\"kind\":\"Node\",\"metadata\":{\"resourceVersion\":\"" rv "\"}}")
#define EXPIRED                                                                                    \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","           \
    "\"message\":\"too old resource version\",\"reason\":\"Expired\",\"code\":410}"

BH_UNUSED static void list_ab(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_json(c, 200, LIST("10", ITEM("a", "ua", "5") "," ITEM("b", "ub", "6")));
}

BH_UNUSED static void watch_silent(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_stream(c, "application/json");
}
#endif
