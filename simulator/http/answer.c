/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/http/answer.c - HTTP/1.1 answers out of a stream of bytes
 *
 * Not http_parser, which common/api reads replies with: it looks at each byte, and here the whole
 * answer lies in one piece (README.md, "Rejected ideas").
 * Invariants: head_n is 0 until the empty line behind the headers was found; chunk_at is how far
 *             framing has read, counted from the answer's first byte.
 */
#include "simulator/http/answer.h"

#include <errno.h>
#include <strings.h>

#define HEAD_BYTES_MAX ((size_t)64 << 10)

void bh_http_answer_reset(struct bh_http_answer *a)
{
    struct bh_buf chunks = a->chunks;

    bh_buf_reset(&chunks);
    *a = (struct bh_http_answer){.retry_after_s = -1, .chunks = chunks};
}

void bh_http_answer_fini(struct bh_http_answer *a)
{
    bh_buf_fini(&a->chunks);
}

/* Decimal digits up to the end; false: none, something else, or too large. */
static bool number(struct bh_str s, size_t *ret)
{
    size_t v = 0;

    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9' || v > SIZE_MAX / 32)
            return false;
        v = v * 10 + (size_t)(s.p[i] - '0');
    }
    *ret = v;
    return s.n > 0;
}

static bool is_word(struct bh_str s, const char *word)
{
    return s.n == strlen(word) && strncasecmp(s.p, word, s.n) == 0;
}

static int take_header(struct bh_http_answer *a, struct bh_str name, struct bh_str value)
{
    size_t v;

    if (is_word(name, "content-length")) {
        if (!number(value, &v) || (a->has_length && v != a->length))
            return -EBADMSG;
        a->length = v;
        a->has_length = true;
    } else if (is_word(name, "transfer-encoding")) {
        if (!is_word(value, "chunked"))
            return -EBADMSG;
        a->chunked = true;
    } else if (is_word(name, "connection")) {
        a->close |= is_word(value, "close");
    } else if (is_word(name, "retry-after") && number(value, &v)) {
        a->retry_after_s = (int)BH_MIN(v, (size_t)86400);
    }
    return 0;
}

static int take_line(struct bh_http_answer *a, const char *line, size_t n)
{
    const char *colon = memchr(line, ':', n), *end = line + n;

    if (!colon || colon == line)
        return -EBADMSG;
    const char *v = colon + 1;
    while (v < end && (*v == ' ' || *v == '\t'))
        v++;
    while (end > v && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    return take_header(a, (struct bh_str){line, (size_t)(colon - line)},
                       (struct bh_str){v, (size_t)(end - v)});
}

/* The head up to and without the empty line: "HTTP/1.1 201 Created" and headers. */
static int take_head(struct bh_http_answer *a, const char *p, size_t n)
{
    size_t code;

    if (n < 12 || memcmp(p, "HTTP/1.1 ", 9) != 0 || !number((struct bh_str){p + 9, 3}, &code) ||
        code < 100 || (n > 12 && p[12] != ' ' && p[12] != '\r'))
        return -EBADMSG;
    a->code = (int)code;
    for (const char *at = memmem(p, n, "\r\n", 2), *end = p + n; at && at + 2 < end;) {
        const char *line = at + 2, *next = memmem(line, (size_t)(end - line), "\r\n", 2);
        int rc = take_line(a, line, (size_t)((next ? next : end) - line));
        if (rc < 0)
            return rc;
        at = next;
    }
    if (code < 200 || code == 204 || code == 304) {
        a->chunked = false;
        a->has_length = true;
        a->length = 0;
    }
    return a->has_length != a->chunked ? 0 : -EBADMSG; /* exactly one says where it ends */
}

static int find_head(struct bh_http_answer *a, const char *p, size_t n)
{
    size_t from = a->seen > 3 ? a->seen - 3 : 0;
    const char *end = memmem(p + from, n - from, "\r\n\r\n", 4);

    a->seen = n;
    if (!end)
        return n > HEAD_BYTES_MAX ? -EBADMSG : 0;
    a->head_n = (size_t)(end - p) + 4;
    a->chunk_at = a->head_n;
    return take_head(a, p, a->head_n - 4);
}

/* Moves the data of chunks into a->chunks. 1 = all of them are there, 0 = more bytes are needed. */
static int take_chunks(struct bh_http_answer *a, const char *p, size_t n, size_t max)
{
    while (a->framing.at != BH_CHUNK_OVER) {
        bool data;
        ssize_t used = bh_http_chunks_read(&a->framing, p + a->chunk_at, n - a->chunk_at, &data);
        if (used <= 0)
            return used < 0 ? -EBADMSG : 0;
        if (data)
            bh_buf_add(&a->chunks, p + a->chunk_at, (size_t)used);
        a->chunk_at += (size_t)used;
        if (a->framing.data_left > max - BH_MIN(max, a->chunks.n))
            return -EMSGSIZE;
    }
    return 1;
}

ssize_t bh_http_answer_take(struct bh_http_answer *a, const char *p, size_t n, size_t max)
{
    int rc = a->head_n ? 0 : find_head(a, p, n);

    if (rc < 0 || !a->head_n)
        return rc;
    if (!a->chunked) {
        if (a->length > max)
            return -EMSGSIZE;
        if (n - a->head_n < a->length)
            return 0;
        a->body = (struct bh_str){p + a->head_n, a->length};
        return (ssize_t)(a->head_n + a->length);
    }
    rc = take_chunks(a, p, n, max);
    a->body = (struct bh_str){bh_buf_str(&a->chunks), a->chunks.n};
    return rc > 0 ? (ssize_t)a->chunk_at : rc;
}
