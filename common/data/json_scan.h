/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/json_scan.h - find the next interesting byte inside a JSON string
 *
 * Private to common/data. Reader, writer and splitter spend most of their time here; sixteen bytes
 * are looked at in one step where SSE2 exists (every amd64). Nothing at or behind end is read.
 */
#ifndef BH_JSON_SCAN_H
#define BH_JSON_SCAN_H

#include "common/base/base.h"
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#ifdef __SSE2__
/* One bit for each of sixteen bytes that a string cannot hold as it is. The compare is signed:
 * bytes above 0x7f are negative, so less than a space as well. */
static inline unsigned bh_json_special16(__m128i v)
{
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'),
                  space = _mm_set1_epi8(0x20);
    return (unsigned)_mm_movemask_epi8(
        _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)),
                     _mm_cmplt_epi8(v, space)));
}
#endif

/* Whether p[0..n) can be written into a JSON string as it is. Most texts are names and keys: those
 * of eight bytes and more take one or two steps, their last one looking at some bytes again. */
static inline bool bh_json_is_plain(const char *p, size_t n)
{
#ifdef __SSE2__
    if (n >= 16) {
        for (size_t i = 0; i + 16 < n; i += 16)
            if (bh_json_special16(_mm_loadu_si128((const __m128i *)(const void *)(p + i))))
                return false;
        return !bh_json_special16(_mm_loadu_si128((const __m128i *)(const void *)(p + n - 16)));
    }
    if (n >= 8) {
        __m128i head = _mm_loadl_epi64((const __m128i *)(const void *)p);
        __m128i tail = _mm_loadl_epi64((const __m128i *)(const void *)(p + n - 8));
        return !bh_json_special16(_mm_unpacklo_epi64(head, tail));
    }
    if (n >= 4) {
        uint32_t head, tail;
        memcpy(&head, p, 4);
        memcpy(&tail, p + n - 4, 4);
        __m128i v = _mm_set1_epi32((int)head);
        return !bh_json_special16(_mm_unpacklo_epi32(v, _mm_set1_epi32((int)tail)));
    }
#endif
    for (; n; n--, p++)
        if ((signed char)*p < 0x20 || *p == '"' || *p == '\\')
            return false;
    return true;
}

/* First `"`, `\`, control character or byte above 0x7f; end when there is none. */
static inline const char *bh_json_scan_plain(const char *p, const char *end)
{
#ifdef __SSE2__
    for (; end - p >= 16; p += 16) {
        unsigned mask = bh_json_special16(_mm_loadu_si128((const __m128i *)(const void *)p));
        if (mask)
            return p + __builtin_ctz(mask);
    }
#endif
    while (p < end && (signed char)*p >= 0x20 && *p != '"' && *p != '\\')
        p++;
    return p;
}

/* First `"` or `\`; end when there is none. */
static inline const char *bh_json_scan_quote(const char *p, const char *end)
{
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\');
    for (; end - p >= 16; p += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        int mask =
            _mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)));
        if (mask)
            return p + __builtin_ctz((unsigned)mask);
    }
#endif
    while (p < end && *p != '"' && *p != '\\')
        p++;
    return p;
}

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
#endif
