/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/api/raw_server.h - an HTTP/1.1 server whose every byte the test decides
 *
 * Runs on the test's loop. The handler gets complete requests and answers with raw_* functions, at
 * once or later; it may also say nothing, send half an answer, or cut the connection.
 */
#ifndef BH_TEST_RAW_SERVER_H
#define BH_TEST_RAW_SERVER_H

#include "common/base/buf.h"
#include "tests/unit/harness.h"

#include <arpa/inet.h>
#include <uv.h>

struct raw_conn;
struct raw_request {
    struct raw_conn *conn;
    char method[16];
    char target[2048]; /* path and query */
    const char *head;  /* all header lines */
    const char *body;
    size_t body_n;
};
struct raw_server {
    uv_loop_t *loop;
    uv_tcp_t listener;
    uint16_t port;
    unsigned connections, requests; /* ever */
    struct raw_conn *conns;
    void (*handler)(struct raw_server *s, const struct raw_request *r);
    void *arg;
};
struct raw_conn {
    struct raw_server *s;
    struct raw_conn *next;
    uv_tcp_t tcp;
    struct bh_buf in;
    bool closed, hung;
};

BH_UNUSED static void raw_on_closed(uv_handle_t *h)
{
    struct raw_conn *c = h->data;
    for (struct raw_conn **p = &c->s->conns; *p; p = &(*p)->next) {
        if (*p == c) {
            *p = c->next;
            break;
        }
    }
    bh_buf_fini(&c->in);
    free(c);
}

BH_UNUSED static void raw_close(struct raw_conn *c)
{
    if (!c->closed)
        uv_close((uv_handle_t *)&c->tcp, raw_on_closed);
    c->closed = true;
}

struct raw_write {
    uv_write_t req;
    char bytes[];
};

BH_UNUSED static void raw_on_written(uv_write_t *req, int status)
{
    (void)status;
    free(req);
}

BH_UNUSED static void raw_send(struct raw_conn *c, const void *p, size_t n)
{
    if (c->closed)
        return;
    struct raw_write *w = bh_malloc(sizeof(*w) + n);
    memcpy(w->bytes, p, n);
    uv_buf_t b = uv_buf_init(w->bytes, (unsigned)n);
    uv_write(&w->req, (uv_stream_t *)&c->tcp, &b, 1, raw_on_written);
}

BH_UNUSED static void raw_sends(struct raw_conn *c, const char *s)
{
    raw_send(c, s, strlen(s));
}

BH_UNUSED static void raw_reply(struct raw_conn *c, int code, const char *headers, const void *body,
                                size_t n)
{
    struct bh_buf b = {0};
    bh_buf_addf(&b, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n%s\r\n", code, n, headers);
    bh_buf_add(&b, body, n);
    raw_send(c, b.p, b.n);
    bh_buf_fini(&b);
}

BH_UNUSED static void raw_json(struct raw_conn *c, int code, const char *json)
{
    raw_reply(c, code, "Content-Type: application/json\r\n", json, strlen(json));
}

/* A chunked 200 that goes on. */
BH_UNUSED static void raw_stream(struct raw_conn *c, const char *content_type)
{
    struct bh_buf b = {0};
    bh_buf_addf(&b, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n",
                content_type);
    raw_send(c, b.p, b.n);
    bh_buf_fini(&b);
}

BH_UNUSED static void raw_chunk(struct raw_conn *c, const void *p, size_t n)
{
    struct bh_buf b = {0};
    bh_buf_addf(&b, "%zx\r\n", n);
    bh_buf_add(&b, p, n);
    bh_buf_adds(&b, "\r\n");
    raw_send(c, b.p, b.n);
    bh_buf_fini(&b);
}

BH_UNUSED static void raw_chunks(struct raw_conn *c, const char *s)
{
    raw_chunk(c, s, strlen(s));
}

BH_UNUSED static void raw_stream_end(struct raw_conn *c)
{
    raw_sends(c, "0\r\n\r\n");
}

BH_UNUSED static void raw_take_requests(struct raw_conn *c)
{
    char *end;
    while (!c->closed && c->in.n && (end = strstr(c->in.p, "\r\n\r\n"))) {
        size_t head_n = (size_t)(end + 4 - c->in.p), body_n = 0;
        struct raw_request r = {.conn = c};
        *end = 0;
        char *length = strcasestr(c->in.p, "\r\ncontent-length:");
        if (length)
            body_n = strtoul(length + 17, NULL, 10);
        if (c->in.n < head_n + body_n) {
            *end = '\r';
            return;
        }
        if (sscanf(c->in.p, "%15s %2047s", r.method, r.target) == 2) {
            char *body = bh_strndup(c->in.p + head_n, body_n);
            char *head = bh_strdup(c->in.p);
            r.head = head;
            r.body = body;
            r.body_n = body_n;
            bh_buf_consume(&c->in, head_n + body_n);
            c->s->requests++;
            c->s->handler(c->s, &r);
            free(body);
            free(head);
        } else {
            raw_close(c);
        }
    }
}

BH_UNUSED static void raw_alloc(uv_handle_t *h, size_t n, uv_buf_t *b)
{
    (void)h;
    *b = uv_buf_init(bh_malloc(n), (unsigned)n);
}

BH_UNUSED static void raw_on_read(uv_stream_t *st, ssize_t n, const uv_buf_t *b)
{
    struct raw_conn *c = st->data;
    if (n > 0) {
        bh_buf_add(&c->in, b->base, (size_t)n);
        raw_take_requests(c);
    } else if (n < 0) {
        raw_close(c);
    }
    free(b->base);
}

BH_UNUSED static void raw_on_connection(uv_stream_t *listener, int status)
{
    struct raw_server *s = listener->data;
    struct raw_conn *c = bh_calloc(1, sizeof(*c));
    (void)status;
    c->s = s;
    c->next = s->conns;
    s->conns = c;
    s->connections++;
    uv_tcp_init(s->loop, &c->tcp);
    c->tcp.data = c;
    uv_accept(listener, (uv_stream_t *)&c->tcp);
    uv_tcp_nodelay(&c->tcp, 1);
    uv_read_start((uv_stream_t *)&c->tcp, raw_alloc, raw_on_read);
}

BH_UNUSED static void raw_start(struct raw_server *s, uv_loop_t *loop,
                                void (*handler)(struct raw_server *, const struct raw_request *),
                                void *arg)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int n = sizeof(sa);
    *s = (struct raw_server){.loop = loop, .handler = handler, .arg = arg};
    uv_tcp_init(loop, &s->listener);
    s->listener.data = s;
    uv_tcp_bind(&s->listener, (struct sockaddr *)&sa, 0);
    CU_ASSERT_EQUAL_FATAL(uv_listen((uv_stream_t *)&s->listener, 128, raw_on_connection), 0);
    uv_tcp_getsockname(&s->listener, (struct sockaddr *)&sa, &n);
    s->port = ntohs(sa.sin_port);
}

BH_UNUSED static void raw_cut_all(struct raw_server *s)
{
    for (struct raw_conn *c = s->conns; c; c = c->next)
        raw_close(c);
}

BH_UNUSED static void raw_stop(struct raw_server *s)
{
    raw_cut_all(s);
    if (!uv_is_closing((uv_handle_t *)&s->listener))
        uv_close((uv_handle_t *)&s->listener, NULL);
}

/* Runs the loop until *what is true or two minutes have passed. */
BH_UNUSED static void raw_no_timer(uv_timer_t *t)
{
    (void)t;
}

BH_UNUSED static bool run_until(uv_loop_t *loop, bool (*done)(void *), void *arg)
{
    uv_timer_t tick;
    uint64_t until = bh_mono_ns() + UINT64_C(120) * 1000000000;
    bool ok;
    uv_timer_init(loop, &tick);
    uv_timer_start(&tick, raw_no_timer, 5, 5);
    while (!(ok = done(arg)) && bh_mono_ns() < until)
        uv_run(loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(loop, UV_RUN_NOWAIT);
    return ok;
}
#endif
