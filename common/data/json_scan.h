/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/json_scan.h - find the next interesting byte inside a JSON string
 *
 * Private to common/data. Reader, writer and splitter spend most of their time here; sixteen bytes
 * are looked at in one step where SSE2 exists (every amd64). Nothing at or behind end is read.
 */
#ifndef BH_JSON_SCAN_H
#define BH_JSON_SCAN_H

#include "common/base/utf8.h"
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
#endif
