/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/http/answer.c - HTTP/1.1 answers out of a stream of bytes
 *
 * Not http_parser, which common/api reads replies with: it looks at each byte, and here the whole
 * answer lies in one piece (README.md, "Rejected ideas").
 * Invariants: head_n is 0 until the empty line behind the headers was found; chunk_at is where the
 *             next chunk's size line starts, counted from the answer's first byte.
 */
#include "simulator/http/answer.h"

#include <errno.h>
#include <strings.h>

#define HEAD_BYTES_MAX ((size_t)64 << 10)
#define SIZE_LINE_MAX  256u

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

/* Digits of a base up to the end; false: none, something else, or too large. */
static bool number(struct bh_str s, unsigned base, size_t *ret)
{
    size_t v = 0;

    if (!s.n)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        unsigned c = (unsigned char)s.p[i] | 0x20u, d = 99;
        if (c >= '0' && c <= '9')
            d = c - '0';
        else if (c >= 'a' && c <= 'f')
            d = c - 'a' + 10;
        if (d >= base || v > SIZE_MAX / 32)
            return false;
        v = v * base + d;
    }
    *ret = v;
    return true;
}

static bool is_word(struct bh_str s, const char *word)
{
    return s.n == strlen(word) && strncasecmp(s.p, word, s.n) == 0;
}

static int take_header(struct bh_http_answer *a, struct bh_str name, struct bh_str value)
{
    size_t v;

    if (is_word(name, "content-length")) {
        if (!number(value, 10, &v) || (a->has_length && v != a->length))
            return -EBADMSG;
        a->length = v;
        a->has_length = true;
    } else if (is_word(name, "transfer-encoding")) {
        if (!is_word(value, "chunked"))
            return -EBADMSG;
        a->chunked = true;
    } else if (is_word(name, "connection")) {
        a->close |= is_word(value, "close");
    } else if (is_word(name, "retry-after") && number(value, 10, &v)) {
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

    if (n < 12 || memcmp(p, "HTTP/1.1 ", 9) != 0 || !number((struct bh_str){p + 9, 3}, 10, &code) ||
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

/* One chunk, or the end with its trailers. 1 = go on, 0 = more bytes are needed or all are there
 * (then *ret_end is set), or an error. */
static int take_chunk(struct bh_http_answer *a, const char *p, size_t n, size_t max,
                      size_t *ret_end)
{
    const char *line = p + a->chunk_at, *eol = memmem(line, n - a->chunk_at, "\r\n", 2);
    size_t size;

    if (!eol)
        return n - a->chunk_at > SIZE_LINE_MAX ? -EBADMSG : 0;
    const char *ext = memchr(line, ';', (size_t)(eol - line));
    if (!number((struct bh_str){line, (size_t)((ext ? ext : eol) - line)}, 16, &size))
        return -EBADMSG;
    size_t data = (size_t)(eol - p) + 2;
    if (size == 0) { /* trailers are read over; "\r\n" right behind the size: there are none */
        const char *stop = memmem(p + data - 2, n - data + 2, "\r\n\r\n", 4);
        if (!stop)
            return n - data > HEAD_BYTES_MAX ? -EBADMSG : 0;
        *ret_end = (size_t)(stop - p) + 4;
        return 0;
    }
    if (size > max - BH_MIN(max, a->chunks.n))
        return -EMSGSIZE;
    if (n - data < size + 2)
        return 0;
    if (memcmp(p + data + size, "\r\n", 2) != 0)
        return -EBADMSG;
    bh_buf_add(&a->chunks, p + data, size);
    a->chunk_at = data + size + 2;
    return 1;
}

ssize_t bh_http_answer_take(struct bh_http_answer *a, const char *p, size_t n, size_t max)
{
    size_t end = 0;
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
    do {
        rc = take_chunk(a, p, n, max, &end);
    } while (rc > 0);
    a->body = (struct bh_str){bh_buf_str(&a->chunks), a->chunks.n};
    return rc < 0 ? rc : (ssize_t)end;
}
