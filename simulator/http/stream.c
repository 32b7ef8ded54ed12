/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/http/stream.c - an endless reply, fed with shared chunks
 *
 * Owns:       the queue of chunk references.
 * Runs in:    the loop thread.
 */
#include "simulator/http/stream.h"

#define QUEUE_MIN 8

struct bh_http_chunk *bh_http_chunk_new(const void *p, size_t n)
{
    bh_assert(n <= UINT32_MAX);
    struct bh_http_chunk *c = bh_malloc(sizeof(*c) + n);
    c->refs = 1;
    c->n = (uint32_t)n;
    if (n)
        memcpy(c->p, p, n);
    return c;
}

void bh_http_chunk_unref(struct bh_http_chunk *c)
{
    if (c && --c->refs == 0)
        free(c);
}

static void pop_chunk(struct bh_http_stream *s)
{
    bh_http_chunk_unref(s->queue[s->head]);
    s->head = (s->head + 1) & (s->cap - 1);
    s->len--;
    s->offset = 0;
}

static void clear_queue(struct bh_http_stream *s)
{
    while (s->len)
        pop_chunk(s);
    free(s->queue);
    s->queue = NULL;
    s->cap = s->head = s->pending = 0;
}

size_t bh_http_stream_take(struct bh_http_stream *s, char *buf, size_t max)
{
    size_t n = 0;

    while (n < max && s->len) {
        const struct bh_http_chunk *c = s->queue[s->head];
        size_t part = BH_MIN(c->n - s->offset, max - n);
        memcpy(buf + n, c->p + s->offset, part);
        n += part;
        s->offset += part;
        if (s->offset == c->n)
            pop_chunk(s);
    }
    s->pending -= n;
    if (!s->len && s->cap > QUEUE_MIN)
        clear_queue(s); /* thousands of idle streams must not keep the memory of one burst each */
    return n;
}

void bh_http_stream_over(struct bh_http_stream *s)
{
    clear_queue(s);
    if (s->on_close)
        s->on_close(s->arg);
    free(s);
}

struct bh_http_stream *bh_http_stream_start(struct bh_http_req *r, const char *content_type,
                                            void (*on_close)(void *arg), void *arg)
{
    struct bh_http_stream *s = bh_calloc(1, sizeof(*s));

    s->on_close = on_close;
    s->arg = arg;
    s->conn = bh_http_conn_stream(r, content_type, s);
    return s;
}

void bh_http_stream_add(struct bh_http_stream *s, struct bh_http_chunk *c)
{
    if (s->cut || s->ending || c->n == 0)
        return;
    if (s->len == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : QUEUE_MIN;
        struct bh_http_chunk **next = bh_reallocarray(NULL, cap, sizeof(struct bh_http_chunk *));
        for (size_t i = 0; i < s->len; i++)
            next[i] = s->queue[(s->head + i) & (s->cap - 1)];
        free(s->queue);
        s->queue = next;
        s->head = 0;
        s->cap = cap;
    }
    c->refs++;
    s->queue[(s->head + s->len++) & (s->cap - 1)] = c;
    s->pending += c->n;
    bh_http_conn_wake(s->conn);
}

void bh_http_stream_copy(struct bh_http_stream *s, const void *p, size_t n)
{
    struct bh_http_chunk *c = bh_http_chunk_new(p, n);

    bh_http_stream_add(s, c);
    bh_http_chunk_unref(c);
}

size_t bh_http_stream_pending(const struct bh_http_stream *s)
{
    return s->pending + bh_http_conn_unsent(s->conn);
}

void bh_http_stream_end(struct bh_http_stream *s)
{
    s->ending = true;
    bh_http_conn_wake(s->conn);
}

void bh_http_stream_abort(struct bh_http_stream *s)
{
    s->cut = true;
    clear_queue(s);
    bh_http_conn_wake(s->conn);
}
