/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/nodemetadata/go_number.c - numbers as Go's strconv.ParseFloat reads them
 *
 * strtod() does the arithmetic; which texts are numbers differs: Go knows _ between digits, wants an
 * exponent behind hexadecimal digits, and no white space.
 */
#include <stdlib.h>
#include <string.h>

#include "node_metadata.h"

#define NUMBER_MAX 512u /* bytes; a longer text is taken for none */

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int is_hex(char c)
{
    const char l = (char)(c | 0x20);

    return is_digit(c) || (l >= 'a' && l <= 'f');
}

/* Digits, a point among them where it may be; _ only between digits (begun: or behind the base). Appends
 * them to *out without _, and returns how many digits; -1: a _ is where it may not be. */
static int digits(const char **s, int (*is)(char), int point, int begun, char **out)
{
    int n = 0;

    for (char last = begun ? '0' : 0;; last = *(*s)++) {
        if (is(**s)) {
            n++;
        } else if (**s == '_') {
            if (!is(last) || !is((*s)[1]))
                return -1;
            continue;
        } else if (**s != '.' || !point--) {
            return n;
        }
        *(*out)++ = **s;
    }
}

/* The text without _, if it is a number. */
static int plain(const char *s, char *out)
{
    int (*is)(char) = is_digit;
    int hex;

    if (*s == '+' || *s == '-')
        *out++ = *s++;
    hex = s[0] == '0' && (s[1] | 0x20) == 'x' && s[2];
    if (hex) {
        *out++ = *s++;
        *out++ = *s++;
        is = is_hex;
    }
    if (digits(&s, is, 1, hex, &out) <= 0)
        return 0;
    if ((*s | 0x20) == (hex ? 'p' : 'e')) {
        *out++ = *s++;
        if (*s == '+' || *s == '-')
            *out++ = *s++;
        if (!is_digit(*s) || digits(&s, is_digit, 0, 0, &out) <= 0)
            return 0;
    } else if (hex) {
        return 0;
    }
    *out = 0;
    return !*s;
}

/* Infinities and NaN, which Go knows, have no 64 bits. */
int64_t nm_number(struct berth_str text)
{
    char in[NUMBER_MAX], out[NUMBER_MAX];

    if (!text.n || text.n >= sizeof in || memchr(text.p, 0, text.n))
        return NM_NO_VALUE;
    memcpy(in, text.p, text.n);
    in[text.n] = 0;
    if (!plain(in, out))
        return NM_NO_VALUE;
    const double d = strtod(out, NULL);
    return d > -9223372036854775808.0 && d < 9223372036854775808.0 ? (int64_t)d : NM_NO_VALUE;
}
