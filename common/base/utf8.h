/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/utf8.h - code points in UTF-8
 *
 * Lengths in bytes; a text's end is given, never looked for. Any thread.
 */
#ifndef BH_UTF8_H
#define BH_UTF8_H

#include "common/base/base.h"

#define BH_UTF8_BAD 0xfffdu /* what stands for bytes that are no code point */

/* Length of the well-formed UTF-8 sequence at p (1..4), 0 when it is none (overlong forms and
 * surrogates included). p < end. */
static inline unsigned bh_utf8_len(const char *p, const char *end)
{
    const unsigned char *u = (const unsigned char *)p;
    size_t n = (size_t)(end - p);
    if (u[0] < 0x80)
        return 1;
    if (u[0] < 0xc2 || u[0] > 0xf4 || n < 2 || (u[1] & 0xc0) != 0x80)
        return 0;
    if (u[0] < 0xe0)
        return 2;
    if (n < 3 || (u[2] & 0xc0) != 0x80)
        return 0;
    if (u[0] < 0xf0) {
        if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f))
            return 0;
        return 3;
    }
    if (n < 4 || (u[3] & 0xc0) != 0x80 || (u[0] == 0xf0 && u[1] < 0x90) ||
        (u[0] == 0xf4 && u[1] > 0x8f))
        return 0;
    return 4;
}

/* Writes code point c (not a surrogate, at most 0x10ffff) to o; returns the length. */
static inline unsigned bh_utf8_put(char *o, uint32_t c)
{
    if (c < 0x80) {
        o[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        o[0] = (char)(0xc0 | c >> 6);
        o[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        o[0] = (char)(0xe0 | c >> 12);
        o[1] = (char)(0x80 | (c >> 6 & 0x3f));
        o[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    o[0] = (char)(0xf0 | c >> 18);
    o[1] = (char)(0x80 | (c >> 12 & 0x3f));
    o[2] = (char)(0x80 | (c >> 6 & 0x3f));
    o[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* The code point at s[0..n), n > 0; a malformed byte counts as BH_UTF8_BAD of width 1. */
static inline uint32_t bh_utf8_get(const char *s, size_t n, size_t *ret_width)
{
    unsigned w = bh_utf8_len(s, s + n);
    uint32_t c = (unsigned char)s[0];

    *ret_width = BH_MAX(w, 1u);
    if (w <= 1)
        return w ? c : BH_UTF8_BAD;
    c &= 0x7fu >> w;
    for (unsigned i = 1; i < w; i++)
        c = c << 6 | ((unsigned char)s[i] & 0x3f);
    return c;
}

/* How many there are. */
static inline size_t bh_utf8_count(const char *s, size_t n)
{
    size_t count = 0, w;

    for (size_t i = 0; i < n; i += w, count++)
        (void)bh_utf8_get(s + i, n - i, &w);
    return count;
}
#endif
