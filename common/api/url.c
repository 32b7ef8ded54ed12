/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/url.c - percent-encoding
 */
#include "common/api/client.h"

static void escape(struct bh_buf *out, const char *s, size_t n)
{
    static const char hex[] = "0123456789ABCDEF";
    for (; n--; s++) {
        const unsigned char c = (unsigned char)*s;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '_' || c == '.' || c == '~';
        if (plain) {
            bh_buf_addc(out, (char)c);
        } else {
            bh_buf_addc(out, '%');
            bh_buf_addc(out, hex[c >> 4]);
            bh_buf_addc(out, hex[c & 15]);
        }
    }
}

void bh_url_escape(struct bh_buf *out, const char *s)
{
    escape(out, s, strlen(s));
}

void bh_url_addf(struct bh_buf *out, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    bh_buf_add_quoted(out, escape, fmt, ap);
    va_end(ap);
}
