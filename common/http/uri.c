/* SPDX-License-Identifier: Apache-2.0
 *
 * common/http/uri.c - a request target, decoded
 *
 * Invariants: decoding never makes text longer, so it happens in place in one copy.
 * Upstream:   Go net/url (unescape, parseQuery); differences: an escaped NUL is malformed.
 */
#include "common/http/uri.h"

#include <errno.h>

bool bh_http_unescape(char *s, bool plus)
{
    char *out = s;

    for (; *s; s++) {
        if (*s == '+' && plus) {
            *out++ = ' ';
        } else if (*s != '%') {
            *out++ = *s;
        } else {
            int hi = bh_hex_value(s[1]), lo = hi < 0 ? -1 : bh_hex_value(s[2]);
            if (lo < 0 || (hi == 0 && lo == 0))
                return false;
            *out++ = (char)(hi << 4 | lo);
            s += 2;
        }
    }
    *out = '\0';
    return true;
}

int bh_http_uri_parse(const char *target, struct bh_http_uri *u)
{
    *u = (struct bh_http_uri){.text = bh_strdup(target)};
    char *query = strchr(u->text, '?');
    if (query)
        *query++ = '\0';
    if (!bh_http_unescape(u->text, false)) {
        bh_http_uri_fini(u);
        return -EINVAL;
    }
    u->path = u->text;
    if (query) {
        size_t most = 1;
        for (const char *c = query; *c; c++)
            most += *c == '&';
        u->params = bh_reallocarray(NULL, most, sizeof(*u->params));
        char *rest = query;
        while (rest) {
            char *pair = rest;
            rest = strchr(pair, '&');
            if (rest)
                *rest++ = '\0';
            if (!*pair)
                continue;
            char *value = strchr(pair, '=');
            if (value)
                *value++ = '\0';
            if (bh_http_unescape(pair, true) && (!value || bh_http_unescape(value, true)))
                u->params[u->n_params++] = (struct bh_http_param){pair, value ? value : ""};
        }
    }
    return 0;
}

void bh_http_uri_fini(struct bh_http_uri *u)
{
    free(u->params);
    free(u->text);
    *u = (struct bh_http_uri){0};
}
