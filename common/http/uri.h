/* SPDX-License-Identifier: Apache-2.0
 *
 * common/http/uri.h - a request target, decoded
 *
 * Path and query are decoded here and not by libmicrohttpd, because its C strings lose what follows
 * an escaped NUL.
 */
#ifndef BH_HTTP_URI_H
#define BH_HTTP_URI_H

#include "common/base/base.h"

struct bh_http_param {
    const char *name, *value; /* value is "" for ?x and ?x= */
};
struct bh_http_uri {
    char *text; /* one block for all strings below */
    const char *path;
    struct bh_http_param *params; /* in order of appearance */
    size_t n_params;
};
/* -EINVAL: a malformed or NUL escape in the path (u is then empty). A malformed pair in the query
 * is left out, as Go's url.Values does. */
int bh_http_uri_parse(const char *target, struct bh_http_uri *u);
void bh_http_uri_fini(struct bh_http_uri *u);
/* %-escapes, in place; '+' is a blank in queries only. False when malformed: s is then half done. */
bool bh_http_unescape(char *s, bool plus);
#endif
