/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/http_client.h - requests from a second thread while the test runs the loop
 *
 * The client thread uses libcurl and blocks; the test's thread runs the server's loop until the
 * client is done (or has read so much of a stream), woken by a uv_async. After DEADLINE_S the test
 * fails instead of hanging.
 */
#ifndef BH_SIM_HTTP_CLIENT_H
#define BH_SIM_HTTP_CLIENT_H

#include "common/base/buf.h"
#include "tests/unit/simulator/sim_test.h"
#include <curl/curl.h>
#include <pthread.h>
#include <strings.h>

#define DEADLINE_S 120

struct call {
    /* request */
    const char *method, *path, *body, *content_type, *accept;
    size_t body_n;          /* 0 = strlen(body) */
    const char *headers[4]; /* further "Name: value" lines */
    const char *ca_pem;     /* https */
    /* reply; guarded by lock while the thread runs */
    long code;
    CURLcode result;
    struct bh_buf data, head;
    /* private */
    pthread_mutex_t lock;
    pthread_t thread;
    bool done, stop, running;
    uv_async_t wake;
    struct fixture *f;
    unsigned port; /* the server may go while the thread runs */
};

static inline size_t call_on_data(char *p, size_t size, size_t n, void *arg)
{
    struct call *c = arg;
    pthread_mutex_lock(&c->lock);
    bh_buf_add(&c->data, p, size * n);
    bool stop = c->stop;
    pthread_mutex_unlock(&c->lock);
    uv_async_send(&c->wake);
    return stop ? 0 : size * n;
}

static inline size_t call_on_header(char *p, size_t size, size_t n, void *arg)
{
    struct call *c = arg;
    pthread_mutex_lock(&c->lock);
    bh_buf_add(&c->head, p, size * n);
    pthread_mutex_unlock(&c->lock);
    return size * n;
}

static inline int call_on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t u,
                                   curl_off_t v)
{
    struct call *c = arg;
    (void)a, (void)b, (void)u, (void)v;
    pthread_mutex_lock(&c->lock);
    bool stop = c->stop;
    pthread_mutex_unlock(&c->lock);
    return stop;
}

static inline struct curl_slist *call_headers(const struct call *c)
{
    char line[256];
    struct curl_slist *l = curl_slist_append(NULL, "Expect:");
    snprintf(line, sizeof(line), "Content-Type: %s",
             c->content_type ? c->content_type : "application/json");
    if (c->body)
        l = curl_slist_append(l, line);
    snprintf(line, sizeof(line), "Accept: %s", c->accept ? c->accept : "application/json");
    l = curl_slist_append(l, line);
    for (size_t i = 0; i < 4 && c->headers[i]; i++)
        l = curl_slist_append(l, c->headers[i]);
    return l;
}

static inline void *call_run(void *arg)
{
    struct call *c = arg;
    char url[1024];
    CURL *h = curl_easy_init();
    struct curl_slist *headers = call_headers(c);
    snprintf(url, sizeof(url), "http%s://127.0.0.1:%u%s", c->ca_pem ? "s" : "", c->port, c->path);
    curl_easy_setopt(h, CURLOPT_URL, url);
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, c->method);
    curl_easy_setopt(h, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, call_on_data);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, c);
    curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, call_on_header);
    curl_easy_setopt(h, CURLOPT_HEADERDATA, c);
    curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, call_on_progress);
    curl_easy_setopt(h, CURLOPT_XFERINFODATA, c);
    curl_easy_setopt(h, CURLOPT_TIMEOUT, (long)DEADLINE_S);
    if (c->body) {
        curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE, (long)c->body_n);
        curl_easy_setopt(h, CURLOPT_POSTFIELDS, c->body);
    }
    if (c->ca_pem) {
        struct curl_blob blob = {(void *)c->ca_pem, strlen(c->ca_pem), CURL_BLOB_COPY};
        curl_easy_setopt(h, CURLOPT_CAINFO_BLOB, &blob);
    }
    CURLcode rc = curl_easy_perform(h);
    long code = 0;
    curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &code);
    curl_easy_cleanup(h);
    curl_slist_free_all(headers);
    pthread_mutex_lock(&c->lock);
    c->code = code;
    c->result = rc;
    c->done = true;
    pthread_mutex_unlock(&c->lock);
    uv_async_send(&c->wake);
    return NULL;
}

static inline void call_on_wake(uv_async_t *h)
{
    (void)h; /* only ends uv_run(ONCE) */
}

static inline void call_start(struct fixture *f, struct call *c)
{
    c->f = f;
    c->port = bh_sim_port(f->s);
    c->method = c->method ? c->method : "GET";
    if (c->body && !c->body_n)
        c->body_n = strlen(c->body);
    pthread_mutex_init(&c->lock, NULL);
    uv_async_init(&f->loop, &c->wake, call_on_wake);
    c->running = true;
    if (pthread_create(&c->thread, NULL, call_run, c) != 0)
        abort();
}

/* Runs the loop until cond is true; false after the deadline. */
static inline bool run_until(struct fixture *f, bool (*cond)(void *arg), void *arg)
{
    uint64_t end = bh_mono_ns() + (uint64_t)DEADLINE_S * 1000000000;
    uv_timer_t tick;
    uv_timer_init(&f->loop, &tick);
    uv_timer_start(&tick, (uv_timer_cb)(void (*)(void))call_on_wake, 10, 10);
    bool ok;
    while (!(ok = cond(arg)) && bh_mono_ns() < end)
        uv_run(&f->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(&f->loop, UV_RUN_NOWAIT);
    CU_ASSERT(ok);
    return ok;
}

static inline bool call_is_done(void *arg)
{
    struct call *c = arg;
    pthread_mutex_lock(&c->lock);
    bool done = c->done;
    pthread_mutex_unlock(&c->lock);
    return done;
}

static inline void call_finish(struct call *c)
{
    if (!c->running)
        return;
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_mutex_unlock(&c->lock);
    run_until(c->f, call_is_done, c);
    pthread_join(c->thread, NULL);
    uv_close((uv_handle_t *)&c->wake, NULL);
    uv_run(&c->f->loop, UV_RUN_NOWAIT);
    c->running = false;
}

static inline void call_fini(struct call *c)
{
    call_finish(c);
    if (c->f)
        pthread_mutex_destroy(&c->lock);
    c->f = NULL;
    bh_buf_fini(&c->data);
    bh_buf_fini(&c->head);
}

/* The whole exchange. The reply stays in c until call_fini(). */
static inline long call(struct fixture *f, struct call *c)
{
    call_start(f, c);
    run_until(f, call_is_done, c);
    call_finish(c);
    return c->code;
}

static inline struct bh_json *reply_json(struct call *c)
{
    struct bh_json *v = NULL;
    bh_json_parse(&c->f->a, c->data.p, c->data.n, 0, &v, NULL);
    return v;
}

/* A string of the reply's JSON; "" when absent. */
static inline const char *reply_str(struct call *c, const char *path)
{
    const char *s = bh_json_cstr(bh_json_path(reply_json(c), path));
    return s ? s : "";
}

static inline bool reply_header(struct call *c, const char *line)
{
    size_t n = strlen(line);
    for (const char *p = bh_buf_str(&c->head); p && *p;) {
        if (strncasecmp(p, line, n) == 0)
            return true;
        p = strchr(p, '\n');
        p = p ? p + 1 : NULL;
    }
    return false;
}

/* ---- streams --------------------------------------------------------------------------------- */

struct lines {
    struct call *c;
    size_t n;
};
static inline size_t count_lines(struct call *c)
{
    size_t n = 0;
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < c->data.n; i++)
        n += c->data.p[i] == '\n';
    pthread_mutex_unlock(&c->lock);
    return n;
}
static inline bool has_lines(void *arg)
{
    struct lines *l = arg;
    return count_lines(l->c) >= l->n;
}
static inline bool wait_lines(struct call *c, size_t n)
{
    struct lines l = {c, n};
    return run_until(c->f, has_lines, &l);
}
/* Line i of a stream as JSON. */
static inline struct bh_json *line_json(struct call *c, size_t i)
{
    struct bh_json *v = NULL;
    pthread_mutex_lock(&c->lock);
    const char *p = c->data.p, *end = c->data.p + c->data.n;
    while (p && i--) {
        p = memchr(p, '\n', (size_t)(end - p));
        p = p ? p + 1 : NULL;
    }
    if (p)
        bh_json_parse(&c->f->a, p, strcspn(p, "\n"), 0, &v, NULL);
    pthread_mutex_unlock(&c->lock);
    return v;
}
/* "ADDED name" of line i */
static inline const char *line_text(struct call *c, size_t i)
{
    const struct bh_json *v = line_json(c, i);
    const char *type = bh_json_get_str(v, "type");
    const char *name = bh_json_cstr(bh_json_path(v, "object.metadata.name"));
    return bh_arena_printf(&c->f->a, "%s %s", type ? type : "?", name ? name : "-");
}

#endif
