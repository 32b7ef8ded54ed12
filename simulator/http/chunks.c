/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/http/chunks.c - where a chunked body ends
 */
#include "simulator/http/chunks.h"

#include <sys/types.h>

#define SIZE_LINE_MAX ((size_t)256)

/* The line at p without its end; *ret_used: with it, 0 = not all there. False: too long, or there
 * is something in it that another reader might take for its end. */
static bool read_line(const char *p, size_t n, size_t max, struct bh_str *ret, size_t *ret_used)
{
    const char *end = memmem(p, BH_MIN(n, max), "\r\n", 2);
    size_t len = end ? (size_t)(end - p) : 0;

    for (size_t i = 0; i < len; i++)
        if (((unsigned char)p[i] < ' ' && p[i] != '\t') || p[i] == 0x7f)
            return false;
    *ret_used = end ? len + 2 : 0;
    *ret = (struct bh_str){p, len};
    return end || n < max;
}

static bool chunk_size(struct bh_str s, size_t *ret)
{
    size_t n = 0, digits = 0;

    for (; digits < s.n; digits++) {
        int c = s.p[digits] | 0x20;
        int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (d < 0)
            break;
        if (n > SIZE_MAX / 32)
            return false;
        n = n * 16 + (size_t)d;
    }
    size_t rest = digits;
    while (rest < s.n && (s.p[rest] == ' ' || s.p[rest] == '\t'))
        rest++;
    *ret = n;
    return digits && (rest == s.n || s.p[rest] == ';');
}

ssize_t bh_http_chunks_read(struct bh_http_chunks *c, const char *p, size_t n, bool *ret_data)
{
    struct bh_str line;
    size_t used, max = c->at == BH_CHUNK_TRAILER ? BH_HTTP_HEAD_MAX - c->trailer_n : SIZE_LINE_MAX;

    *ret_data = c->at == BH_CHUNK_DATA;
    if (*ret_data) {
        n = BH_MIN(n, c->data_left);
        c->data_left -= n;
        if (!c->data_left)
            c->at = BH_CHUNK_END;
        return (ssize_t)n;
    }
    if (!read_line(p, n, max, &line, &used))
        return -1;
    if (!used)
        return 0;
    if (c->at == BH_CHUNK_SIZE) {
        if (!chunk_size(line, &c->data_left))
            return -1;
        c->at = c->data_left ? BH_CHUNK_DATA : BH_CHUNK_TRAILER;
    } else if (c->at == BH_CHUNK_END) {
        if (line.n)
            return -1;
        c->at = BH_CHUNK_SIZE;
    } else if (line.n == 0) {
        c->at = BH_CHUNK_OVER;
    } else {
        c->trailer_n += used;
    }
    return (ssize_t)used;
}
