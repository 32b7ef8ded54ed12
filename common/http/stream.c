/* SPDX-License-Identifier: Apache-2.0
 *
 * common/http/stream.c - an endless reply, fed with shared chunks
 *
 * Owns:       the queue of chunk references.
 * Invariants: the connection is suspended exactly while the queue is empty and the stream neither
 *             ends nor is cut; suspending or resuming twice is undefined in libmicrohttpd, so
 *             `suspended` is the only guard. pending = bytes of the queue behind `offset`.
 * Runs in:    the loop thread.
 *
 * libmicrohttpd asks for bytes (read_stream) and frees the stream with the response (free_stream).
 * One answer carries as many queued chunks as fit, so a burst costs one system call.
 */
#include "common/http/impl.h"

#include <sys/socket.h>

struct bh_http_stream {
    struct bh_http_req *req;     /* NULL once the request is over; never while suspended */
    struct MHD_Connection *conn; /* libmicrohttpd's, or NULL: */
    struct bh_http_conn *plain;
    struct bh_http_chunk **queue; /* ring */
    size_t head, len, cap;        /* cap: power of two or 0 */
    size_t offset;                /* sent bytes of the first chunk */
    size_t pending;
    bool suspended, ending, cut;
    void (*on_close)(void *arg);
    void *arg;
};
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

struct bh_http_chunk *bh_http_chunk_ref(struct bh_http_chunk *c)
{
    c->refs++;
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

static void resume(struct bh_http_stream *s)
{
    if (s->plain)
        bh_http_plain_wake(s->plain);
    if (!s->suspended)
        return;
    s->suspended = false;
    bh_http_resume(s->req);
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

static ssize_t read_stream(void *cls, uint64_t pos, char *buf, size_t max)
{
    struct bh_http_stream *s = cls;

    (void)pos;
    if (s->cut)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    size_t n = bh_http_stream_take(s, buf, max);
    if (n)
        return (ssize_t)n;
    if (s->ending)
        return MHD_CONTENT_READER_END_OF_STREAM;
    s->suspended = true;
    bh_http_suspend(s->req);
    return 0;
}

static void free_stream(void *cls)
{
    struct bh_http_stream *s = cls;

    if (s->req && !s->plain)
        s->req->stream = NULL;
    clear_queue(s);
    if (s->on_close)
        s->on_close(s->arg);
    free(s);
}

struct bh_http_stream *bh_http_stream_start(struct bh_http_req *r, const char *content_type,
                                            void (*on_close)(void *arg), void *arg)
{
    struct bh_http_stream *s = bh_calloc(1, sizeof(*s));

    s->req = r;
    s->conn = r->conn;
    s->on_close = on_close;
    s->arg = arg;
    s->cut = r->gone;
    r->stream = s;
    s->plain = r->plain;
    if (r->plain) {
        bh_http_plain_stream(r, content_type, s);
        return s;
    }
    bh_http_watch_hangup(r);
    struct MHD_Response *resp =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 1024, read_stream, s, free_stream);
    bh_http_req_answer(r, MHD_HTTP_OK, resp, content_type);
    return s;
}

static void grow_queue(struct bh_http_stream *s)
{
    size_t cap = s->cap ? s->cap * 2 : QUEUE_MIN;
    struct bh_http_chunk **next = bh_reallocarray(NULL, cap, sizeof(struct bh_http_chunk *));

    for (size_t i = 0; i < s->len; i++)
        next[i] = s->queue[(s->head + i) & (s->cap - 1)];
    free(s->queue);
    s->queue = next;
    s->head = 0;
    s->cap = cap;
}

void bh_http_stream_add(struct bh_http_stream *s, struct bh_http_chunk *c)
{
    if (s->cut || s->ending || c->n == 0)
        return;
    if (s->len == s->cap)
        grow_queue(s);
    s->queue[(s->head + s->len++) & (s->cap - 1)] = bh_http_chunk_ref(c);
    s->pending += c->n;
    resume(s);
}

size_t bh_http_stream_pending(const struct bh_http_stream *s)
{
    return s->pending + (s->plain ? bh_http_plain_unsent(s->plain) : 0);
}

bool bh_http_stream_ending(const struct bh_http_stream *s)
{
    return s->ending && !s->len;
}

bool bh_http_stream_is_cut(const struct bh_http_stream *s)
{
    return s->cut;
}

void bh_http_stream_over(struct bh_http_stream *s)
{
    free_stream(s);
}

void bh_http_stream_end(struct bh_http_stream *s)
{
    s->ending = true;
    resume(s);
}

void bh_http_stream_cut(struct bh_http_stream *s)
{
    s->cut = true;
    clear_queue(s);
    resume(s);
}

void bh_http_stream_abort(struct bh_http_stream *s)
{
    /* A reader that does not read keeps libmicrohttpd waiting in the middle of a write, where it
     * does not ask us; a shut-down socket wakes it. */
    const union MHD_ConnectionInfo *info =
        s->conn ? MHD_get_connection_info(s->conn, MHD_CONNECTION_INFO_CONNECTION_FD) : NULL;
    if (info && !s->cut)
        shutdown(info->connect_fd, SHUT_RDWR);
    bh_http_stream_cut(s);
}

void bh_http_stream_detach(struct bh_http_stream *s)
{
    s->req = NULL;
}
