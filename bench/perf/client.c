/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/perf/client.c - the API client of `berth bench perf --mode pipeline`
 *
 * The client shares the machine with what it measures, so it costs little: requests are pipelined
 * on one connection (common/api/lane.h), and of a watch event only the metadata is looked at.
 * Upstream's has 30 workers that wait for each answer; here at most WINDOW requests do.
 */
#include <errno.h>
#include <unistd.h>

#include "bench/perf/pipeline.h"
#include "cli/cluster.h"
#include "common/k8s/wire.h"

#define WINDOW     256u /* requests without an answer */
#define TURN_MS    5u
#define NAME_TRIES 7u
#define ASK_NS     UINT64_C(120000000000)
#define REPLY_MAX  ((size_t)1 << 30)
#define WATCH      "/api/v1/pods?watch=true&fieldSelector=spec.nodeName%21%3D"

struct bh_bench_call {
    struct bh_bench_call *next;
    struct bh_bench_world *w;
    struct bh_bench_request q; /* path and body point into text */
    struct bh_buf text;        /* path, NUL, body */
    unsigned tries;
    /* bh_bench_ask waits; else NULL */
    bool *done;
    int *code;
    struct bh_buf *answer;
};

/* ---- trouble --------------------------------------------------------------------------------- */

/* The first one stays. */
static void trouble(struct bh_bench_pipeline *p, int rc, const char *fmt, ...) BH_PRINTF(3, 4);
static void trouble(struct bh_bench_pipeline *p, int rc, const char *fmt, ...)
{
    va_list ap;

    if (p->trouble_rc < 0)
        return;
    p->trouble_rc = rc;
    va_start(ap, fmt);
    vsnprintf(p->trouble.msg, sizeof p->trouble.msg, fmt, ap);
    va_end(ap);
}

static int check(struct bh_bench_world *w, struct bh_err *err)
{
    struct bh_bench_pipeline *p = w->d;
    struct bh_err why = {0};

    if (p->up->stopping && !p->closing) {
        w->stopped = true;
        trouble(p, -EINTR, "stopped");
    }
    for (unsigned i = 0; i < p->up->n && p->trouble_rc >= 0; i++)
        if (p->up->child[i].ended) {
            bh_up_last_words(&p->up->child[i]);
            trouble(p, -ECHILD, "the %s ended", p->up->child[i].name);
        }
    int rc = p->trouble_rc < 0 ? 0 : bh_bench_alive(w, &why);
    if (rc < 0)
        trouble(p, rc, "%s", why.msg);
    if (p->trouble_rc < 0 && err)
        *err = p->trouble;
    return p->trouble_rc;
}

int bh_bench_pump(struct bh_bench_world *w, struct bh_err *err)
{
    struct bh_bench_pipeline *p = w->d;

    uv_run(&p->up->loop, UV_RUN_ONCE);
    bh_bench_look_at_memory(w);
    (void)bh_bench_tick(w, (int64_t)bh_mono_ns());
    return check(w, err);
}

/* ---- requests -------------------------------------------------------------------------------- */

static int refused(const struct bh_bench_request *q, int code, struct bh_str body,
                   struct bh_err *err)
{
    struct bh_api_status s = {0};

    bh_decode_status(body.p, body.n, code, &s);
    return bh_err_set(err, code == 409 ? -EEXIST : -EINVAL, "%s (%s %s: %d)", s.message, q->method,
                      q->path, code);
}

static struct bh_bench_call *call_new(struct bh_bench_world *w, const struct bh_bench_request *q)
{
    struct bh_bench_pipeline *p = w->d;
    struct bh_bench_call *c = p->idle;
    struct bh_buf text = {0};

    if (c) {
        p->idle = c->next;
        text = c->text;
    } else {
        c = bh_malloc(sizeof *c);
    }
    *c = (struct bh_bench_call){.w = w, .q = *q, .text = text};
    bh_buf_reset(&c->text);
    bh_buf_add(&c->text, q->path, strlen(q->path) + 1);
    bh_buf_add(&c->text, q->body.p, q->body.n);
    c->q.path = c->text.p;
    c->q.body.p = c->text.p + c->text.n - q->body.n;
    return c;
}

static void on_done(void *arg, const struct bh_api_reply *r);

static void start(struct bh_bench_call *c)
{
    struct bh_bench_pipeline *p = c->w->d;
    const struct bh_api_call call = {.method = c->q.method,
                                     .path = c->q.path,
                                     .content_type = c->q.content_type,
                                     .body = c->q.body.p,
                                     .body_n = c->q.body.n,
                                     .timeout_ns = ASK_NS,
                                     .max_reply_bytes = REPLY_MAX,
                                     .on_done = on_done,
                                     .arg = c};

    (void)bh_api_start(p->writes, &call);
}

static void on_done(void *arg, const struct bh_api_reply *r)
{
    struct bh_bench_call *c = arg;
    struct bh_bench_pipeline *p = c->w->d;
    struct bh_err why = {0};

    if (r->error && !p->closing) {
        trouble(p, -EIO, "%s %s: no answer: %s", c->q.method, c->q.path, r->error);
    } else if (c->done && !r->error) {
        *c->done = true;
        *c->code = r->code;
        bh_buf_add(c->answer, r->body.p, r->body.n);
    } else if (r->code >= 300 && !c->q.may_fail) {
        if (r->code == 409 && c->q.redraw && ++c->tries < NAME_TRIES &&
            memmem(c->q.body.p, c->q.body.n, "\"generateName\"", 14)) {
            start(c); /* the server drew a name that is there already */
            return;
        }
        if (c->q.may_refuse && !p->n_refusals++)
            (void)refused(&c->q, r->code, r->body, &p->refusal);
        if (!c->q.may_refuse && (r->code != 409 || !c->q.may_exist)) {
            int rc = refused(&c->q, r->code, r->body, &why);
            trouble(p, rc, "%s", why.msg);
        }
    }
    p->in_flight--;
    c->next = p->idle;
    p->idle = c;
}

int bh_bench_send(struct bh_bench_world *w, const struct bh_bench_request *q, struct bh_err *err)
{
    struct bh_bench_pipeline *p = w->d;
    int rc = p->trouble_rc < 0 ? check(w, err) : 0;

    /* Half of the window at a time: few and larger writes. */
    if (p->in_flight >= WINDOW)
        while (rc >= 0 && p->in_flight > WINDOW / 2)
            rc = bh_bench_pump(w, err);
    if (rc < 0)
        return rc;
    p->in_flight++;
    start(call_new(w, q));
    return 0;
}

int bh_bench_ask(struct bh_bench_world *w, const struct bh_bench_request *q, struct bh_arena *a,
                 struct bh_json **ret, struct bh_err *err)
{
    struct bh_bench_pipeline *p = w->d;
    struct bh_buf body BH_CLEANUP(bh_buf_fini) = {0};
    bool done = false;
    int code = 0, rc = p->trouble_rc < 0 ? check(w, err) : 0;

    if (rc < 0)
        return rc;
    p->in_flight++;
    struct bh_bench_call *c = call_new(w, q);
    c->done = &done;
    c->code = &code;
    c->answer = &body;
    start(c);
    while (rc >= 0 && !done)
        rc = bh_bench_pump(w, err);
    if (!done) { /* its answer, if one comes, is dropped */
        c->done = NULL;
        c->q.may_fail = true;
    }
    if (ret)
        *ret = NULL;
    if (rc < 0 || (code == 404 && q->may_miss))
        return rc;
    if (code >= 300)
        return refused(q, code, (struct bh_str){body.p, body.n}, err);
    return ret ? bh_json_parse(a, body.p, body.n, 0, ret, err) : 0;
}

int bh_bench_client_flush(struct bh_bench_world *w, struct bh_err *err)
{
    struct bh_bench_pipeline *p = w->d;
    int rc = check(w, err);

    while (rc >= 0 && p->in_flight)
        rc = bh_bench_pump(w, err);
    return rc;
}

/* ---- the scheduler's metrics ----------------------------------------------------------------- */

int bh_bench_ask_scheduler(struct bh_bench_pipeline *p, const char *path, int *ret_code,
                           struct bh_buf *body, struct bh_err *err)
{
    return bh_scheduler_get(&p->up->loop, p->up->dir, path, ret_code, body, err);
}

/* ---- the watch ------------------------------------------------------------------------------- */

struct meta { /* of a pod, bytes of the event */
    struct bh_str raw;
    char ns[256], value[256];
};

static int next_field(struct bh_wire *in, uint32_t number, struct bh_wire_field *f)
{
    int rc;

    while ((rc = bh_wire_next(in, f)) > 0)
        if (f->number == number && f->is_bytes)
            return 1;
    return rc;
}

/* ObjectMeta.labels: entries {1 key, 2 value} */
static const char *label_of(void *arg, const char *key)
{
    struct meta *m = arg;
    struct bh_wire in = bh_wire_of(m->raw.p, m->raw.n);
    struct bh_wire_field f, k, v;

    while (next_field(&in, 11, &f) > 0) {
        struct bh_wire entry = bh_wire_of(f.bytes.p, f.bytes.n);
        if (next_field(&entry, 1, &k) <= 0 || !bh_str_eqc(k.bytes, key))
            continue;
        if (next_field(&entry, 2, &v) <= 0)
            return "";
        return bh_wire_text(&v, m->value, sizeof m->value) < 0 ? NULL : m->value;
    }
    return NULL;
}

/* Pods enter the watch when they get a node, and leave it when they go. */
static int on_event(void *arg, enum bh_watch_type type, const void *p, size_t n)
{
    struct bh_bench_world *w = arg;
    struct bh_bench_pipeline *b = w->d;
    struct bh_envelope e;
    struct bh_err why = {0};
    struct meta m;

    if (type == BH_WATCH_BOOKMARK || type == BH_WATCH_MODIFIED)
        return 0;
    if (type == BH_WATCH_ADDED || type == BH_WATCH_DELETED) {
        struct bh_wire_field f = {0};
        if (bh_envelope_open(p, n, &e, &why) >= 0) {
            struct bh_wire in = bh_wire_of(e.raw.p, e.raw.n), meta;
            if (next_field(&in, 1, &f) > 0) {
                m.raw = f.bytes;
                meta = bh_wire_of(f.bytes.p, f.bytes.n);
                if (next_field(&meta, 3, &f) > 0 && bh_wire_text(&f, m.ns, sizeof m.ns) >= 0) {
                    if (type == BH_WATCH_ADDED)
                        bh_bench_saw_bound(w, m.ns, label_of, &m);
                    else
                        bh_bench_saw_gone(w, m.ns);
                    return 0;
                }
            }
        }
    }
    trouble(b, -EBADMSG, "watching pods: an event cannot be read");
    return -EBADMSG;
}

static int on_head(void *arg, int code, const char *content_type)
{
    struct bh_bench_world *w = arg;
    struct bh_bench_pipeline *p = w->d;

    (void)code;
    p->reader = bh_watch_reader_new(content_type, (size_t)64 << 20, on_event, w);
    p->watching = true;
    return 0;
}

static int on_data(void *arg, const void *data, size_t n)
{
    struct bh_bench_world *w = arg;
    struct bh_bench_pipeline *p = w->d;

    return bh_watch_reader_feed(p->reader, data, n);
}

/* A second one would not know what it missed. */
static void on_end(void *arg, const struct bh_api_reply *r)
{
    struct bh_bench_world *w = arg;
    struct bh_bench_pipeline *p = w->d;

    if (!p->closing)
        trouble(p, -EPIPE, "watching pods ended: %s%s%.*s", r->error ? r->error : "",
                r->error ? " " : "", (int)BH_MIN(r->body.n, (size_t)200),
                r->body.p ? r->body.p : "");
}

static int watch_pods(struct bh_bench_world *w, struct bh_err *err)
{
    struct bh_bench_pipeline *p = w->d;
    const struct bh_api_call call = {.method = "GET",
                                     .path = WATCH,
                                     .accept = "application/vnd.kubernetes.protobuf;stream=watch",
                                     .long_lived = true,
                                     .on_head = on_head,
                                     .on_data = on_data,
                                     .on_done = on_end,
                                     .arg = w};
    int rc = 0;

    (void)bh_api_start(p->api.client, &call);
    for (uint64_t end = bh_mono_ns() + ASK_NS; rc >= 0 && !p->watching;) {
        rc = bh_bench_pump(w, err);
        if (rc >= 0 && !p->watching && bh_mono_ns() > end)
            rc = bh_err_set(err, -ETIMEDOUT, "watching pods: no answer");
    }
    return rc;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void on_timer(uv_timer_t *t)
{
    (void)t;
}

void bh_bench_client_init(struct bh_bench_pipeline *p)
{
    uv_timer_init(&p->up->loop, &p->timer);
    uv_timer_start(&p->timer, on_timer, TURN_MS, TURN_MS);
}

int bh_bench_client_open(struct bh_bench_world *w, struct bh_err *err)
{
    struct bh_bench_pipeline *p = w->d;

    p->has_api = true;
    int rc = bh_cluster_open(&p->api, &p->up->loop, p->up->kubeconfig, NULL, "berth-bench", err);
    if (rc < 0)
        return rc;
    const struct bh_api_options o = {
        .user_agent = "berth-bench", .max_connections = 1, .lean = true, .depth = WINDOW};
    rc = bh_api_client_new(&p->up->loop, p->api.cfg, &o, &p->writes, err);
    return rc < 0 ? rc : watch_pods(w, err);
}

void bh_bench_client_close(struct bh_bench_world *w)
{
    struct bh_bench_pipeline *p = w->d;
    struct bh_bench_call *next;

    p->closing = true;
    bh_api_client_free(p->writes);
    while (p->in_flight) /* their callbacks come from the loop */
        uv_run(&p->up->loop, UV_RUN_ONCE);
    if (p->has_api)
        bh_cluster_close(&p->api);
    if (p->reader)
        bh_watch_reader_free(p->reader);
    p->reader = NULL;
    for (struct bh_bench_call *c = p->idle; c; c = next) {
        next = c->next;
        bh_buf_fini(&c->text);
        free(c);
    }
}
