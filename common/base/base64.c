/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/base64.c - base64 as Go's encoding/base64 StdEncoding reads it
 *
 * Not OpenSSL's EVP_DecodeBlock: it trims blanks, takes padding anywhere and counts it as bytes.
 */
#include "common/base/base64.h"

#include <errno.h>

static int digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static int bad(size_t at, size_t *ret_n)
{
    *ret_n = at;
    return -EINVAL;
}

int bh_base64_decode(const char *s, size_t n, void *out, size_t *ret_n)
{
    uint8_t *to = out;
    uint32_t bits = 0;
    size_t group = 0, pads = 0; /* characters of the group of four under way, padding so far */

    for (size_t i = 0; i < n; i++) {
        int v = digit(s[i]);
        if (s[i] == '\n' || s[i] == '\r')
            continue;
        if (pads && group == 0)
            return bad(i, ret_n);
        if (pads && s[i] != '=')
            return bad(i - 1, ret_n);
        if (v < 0 && (s[i] != '=' || group < 2))
            return bad(i, ret_n);
        pads += v < 0;
        bits = bits << 6 | (v < 0 ? 0 : (uint32_t)v);
        group = (group + 1) % 4;
        for (size_t k = 0; group == 0 && k < 3 - pads; k++)
            *to++ = (uint8_t)(bits >> (16 - 8 * k));
    }
    if (group)
        return bad(pads ? n : n - group, ret_n);
    *ret_n = (size_t)(to - (uint8_t *)out);
    return 0;
}
