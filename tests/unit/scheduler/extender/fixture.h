/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/extender/fixture.h - an extender in a thread of its own that says what the
 * test tells it to
 *
 * What is said stands in a table by request target; what came is kept. Single quotes stand for
 * double ones in all JSON here.
 */
#ifndef BH_TEST_EXTENDER_FIXTURE_H
#define BH_TEST_EXTENDER_FIXTURE_H

#include "tests/unit/common/api/raw_server.h"
#include "tests/unit/common/http/fixture.h"
#include "tests/unit/scheduler/engine/fixture.h"

enum how { REPLY, HANG, CLOSE, CUT, DRIP, HUGE_BODY };
struct say {
    const char *target; /* "/filter" */
    int code;           /* 0 = 200 */
    const char *body;
    enum how how;
    const char *headers; /* "Location: /x\r\n", may be NULL */
};
struct heard {
    char method[16], target[2048];
    char *head, *body;
};
static struct {
    pthread_mutex_t lock;
    struct raw_server server;
    struct say say[32];
    struct heard heard[256];
    unsigned n_heard, connections;
    uv_timer_t drip;
    struct raw_conn *dripping;
} ext = {.lock = PTHREAD_MUTEX_INITIALIZER};

BH_UNUSED static char *quoted(const char *text)
{
    char *t = bh_strdup(text);

    for (char *p = t; *p; p++)
        if (*p == '\'')
            *p = '"';
    return t;
}

static void on_drip(uv_timer_t *t)
{
    (void)t;
    for (struct raw_conn *c = ext.server.conns; c; c = c->next)
        if (c == ext.dripping)
            raw_sends(c, " ");
}

static void on_shut(uv_shutdown_t *s, int status)
{
    (void)status;
    free(s);
}

static void say_it(struct raw_conn *c, const struct say *s)
{
    BH_CLEANUP(bh_freep) char *body = quoted(s->body ? s->body : "");

    switch (s->how) {
    case HANG:
        break;
    case CLOSE:
        raw_close(c);
        break;
    case CUT:
        raw_sends(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"Nodes");
        uv_shutdown(bh_calloc(1, sizeof(uv_shutdown_t)), (uv_stream_t *)&c->tcp, on_shut);
        break;
    case DRIP:
        raw_sends(c, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
        ext.dripping = c;
        uv_timer_start(&ext.drip, on_drip, 10, 10);
        break;
    case HUGE_BODY: {
        size_t n = (size_t)65 << 20;
        char *p = bh_malloc(n);
        memset(p, ' ', n);
        raw_reply(c, 200, "", p, n);
        free(p);
        break;
    }
    case REPLY:
        raw_reply(c, s->code ? s->code : 200, s->headers ? s->headers : "", body, strlen(body));
        break;
    }
}

static void on_request(struct raw_server *s, const struct raw_request *r)
{
    const struct say *found = NULL;

    pthread_mutex_lock(&ext.lock);
    struct heard *h = &ext.heard[ext.n_heard++ % BH_ARRAY_LEN(ext.heard)];
    free(h->head);
    free(h->body);
    *h = (struct heard){.head = bh_strdup(r->head), .body = bh_strndup(r->body, r->body_n)};
    snprintf(h->method, sizeof(h->method), "%s", r->method);
    snprintf(h->target, sizeof(h->target), "%s", r->target);
    ext.connections = s->connections;
    for (size_t i = 0; i < BH_ARRAY_LEN(ext.say) && !found; i++)
        if (ext.say[i].target && bh_streq(ext.say[i].target, r->target))
            found = &ext.say[i];
    pthread_mutex_unlock(&ext.lock);
    if (found)
        say_it(r->conn, found);
    else
        raw_reply(r->conn, 404, "", "", 0);
}

static void ext_listen(void *arg)
{
    (void)arg;
    uv_timer_init(&fx.loop, &ext.drip);
    raw_start(&ext.server, &fx.loop, on_request, NULL);
}

static void ext_hush(void *arg)
{
    (void)arg;
    uv_close((uv_handle_t *)&ext.drip, NULL);
    raw_stop(&ext.server);
}

BH_UNUSED static void ext_begin(void)
{
    fixture_begin();
    on_loop(ext_listen, NULL);
}

BH_UNUSED static void ext_end(void)
{
    on_loop(ext_hush, NULL);
    fixture_end();
    for (size_t i = 0; i < BH_ARRAY_LEN(ext.heard); i++) {
        free(ext.heard[i].head);
        free(ext.heard[i].body);
    }
    memset(ext.heard, 0, sizeof(ext.heard));
    ext.n_heard = 0;
    ext.dripping = NULL;
}

/* From now on the extender says this; what was heard is forgotten. Between calls only. */
#define ext_say(...)                                                                               \
    do {                                                                                           \
        const struct say say_[] = {__VA_ARGS__};                                                   \
        pthread_mutex_lock(&ext.lock);                                                             \
        memset(ext.say, 0, sizeof(ext.say));                                                       \
        memcpy(ext.say, say_, sizeof(say_));                                                       \
        ext.n_heard = 0;                                                                           \
        pthread_mutex_unlock(&ext.lock);                                                           \
    } while (0)

BH_UNUSED static const struct heard *heard(unsigned i)
{
    static const struct heard nothing = {.head = (char *)(uintptr_t) "",
                                         .body = (char *)(uintptr_t) ""};
    return i < ext.n_heard ? &ext.heard[i] : &nothing;
}

/* A configuration with these extenders; %u in the text is the extender's port, everywhere. */
BH_UNUSED static struct bh_sched_config *ext_config(struct bh_arena *a, const char *extenders)
{
    struct bh_buf b = {0};
    struct bh_sched_config *c = NULL;
    struct bh_json *v = NULL;
    struct bh_err err = {{0}};

    bh_buf_adds(&b, "{'apiVersion':'kubescheduler.config.k8s.io/v1',"
                    "'kind':'KubeSchedulerConfiguration','extenders':[");
    for (const char *p = extenders; *p; p++)
        if (p[0] == '%' && p[1] == 'u')
            bh_buf_addf(&b, "%u", ext.server.port), p++;
        else
            bh_buf_addc(&b, *p);
    bh_buf_adds(&b, "]}");
    BH_CLEANUP(bh_freep) char *text = quoted(bh_buf_str(&b));
    bh_buf_fini(&b);
    int rc = bh_json_parse(a, text, strlen(text), 0, &v, &err);
    if (rc == 0)
        rc = bh_sched_config_new(v, &c, &err);
    if (rc < 0)
        fprintf(stderr, "fixture: %s in %s\n", err.msg, text);
    CU_ASSERT_FATAL(rc == 0);
    return c;
}

/* The object as message bytes; freed with the arena. */
BH_UNUSED static struct bh_str ext_bytes(struct bh_arena *a, const ProtobufCMessageDescriptor *d,
                                         const char *json)
{
    BH_CLEANUP(bh_freep) char *text = quoted(json);
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_json *v = NULL;
    ProtobufCMessage *m = NULL;
    struct bh_err err = {{0}};
    int rc = bh_json_parse(a, text, strlen(text), 0, &v, &err);

    if (rc == 0)
        rc = bh_json_to_pb(a, d, v, &m, NULL, &err);
    if (rc < 0)
        fprintf(stderr, "fixture: %s in %s\n", err.msg, text);
    CU_ASSERT_FATAL(rc == 0);
    bh_pb_pack(&b, m);
    return (struct bh_str){bh_arena_memdup(a, bh_buf_str(&b), b.n), b.n};
}
#endif
