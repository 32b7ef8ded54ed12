/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/security.c - who may talk to this server
 *
 * The server listens on the loopback, where every web page of the machine's browser can reach it:
 * a Host name other than the loopback's stops DNS rebinding, an Origin that is not our own stops
 * writes from other pages. With a token file every API request needs a token.
 */
#include "simulator/req.h"

#include <stdio.h>
#include <strings.h>

/* The host part of "host[:port]" or "[v6][:port]". */
static struct bh_str host_part(const char *host)
{
    if (*host == '[') {
        const char *end = strchr(host, ']');
        return (struct bh_str){host, end ? (size_t)(end - host) + 1 : strlen(host)};
    }
    return (struct bh_str){host, strcspn(host, ":")};
}

static bool host_allowed(const struct bh_sim_req *r, const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    struct bh_str h = host_part(host);
    for (size_t i = 0; i < BH_ARRAY_LEN(names); i++) {
        if (h.n == strlen(names[i]) && strncasecmp(h.p, names[i], h.n) == 0)
            return true;
    }
    return r->sim->any_host;
}

static bool same_origin(const char *origin, const char *host)
{
    const char *rest = strstr(origin, "://");
    return rest && strcasecmp(rest + 3, host) == 0;
}

/* No early exit: the time must not tell how much of a guess was right. */
static bool equal_secret(const char *a, size_t an, const char *b, size_t bn)
{
    unsigned diff = an != bn;
    for (size_t i = 0; i < bn; i++)
        diff |= (unsigned char)(an ? a[i % an] : 0) ^ (unsigned char)b[i];
    return diff == 0;
}

/* Token files have lines "token" or "token,user,uid". */
static bool token_known(const char *file, const char *given)
{
    bool known = false;
    for (const char *p = file; *p;) {
        size_t line = strcspn(p, "\n"), n = strcspn(p, ",\r\n");
        if (n && *p != '#')
            known |= equal_secret(given, strlen(given), p, n);
        p += line + (p[line] == '\n');
    }
    return known;
}

static bool is_public(const char *path)
{
    return bh_streq(path, "/healthz") || bh_streq(path, "/livez") || bh_streq(path, "/readyz") ||
           bh_streq(path, "/version");
}

int bh_sim_check_client(struct bh_sim_req *r)
{
    const char *host = bh_http_header(r->http, "Host");
    const char *origin = bh_http_header(r->http, "Origin");
    const char *auth = bh_http_header(r->http, "Authorization");
    bool reads = bh_streq(r->method, "GET") || bh_streq(r->method, "HEAD");
    if (!host || !host_allowed(r, host))
        return bh_sim_fail(&r->e, 403, "Forbidden",
                           "forbidden: this server answers only to localhost, 127.0.0.1 and [::1]");
    if (origin && !reads && !same_origin(origin, host))
        return bh_sim_fail(&r->e, 403, "Forbidden",
                           "forbidden: requests of other web origins may not change anything");
    if (!r->sim->opt.tokens || is_public(r->path))
        return 0;
    if (!auth || strncasecmp(auth, "Bearer ", 7) != 0 || !token_known(r->sim->opt.tokens, auth + 7))
        return bh_sim_fail(&r->e, 401, "Unauthorized", "Unauthorized");
    return 0;
}
