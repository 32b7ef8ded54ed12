/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/security.c - which users may talk to this server
 *
 * The server listens on the loopback, where every web page of the machine's browser can reach it:
 * a Host name other than the loopback's stops DNS rebinding, an Origin that is not our own stops
 * writes from other pages, and what browsers say about a request (Sec-Fetch-Site) everything of
 * other pages but following a link to us. With a token file every API request needs a token.
 */
#include "simulator/server/req.h"

#include <stdio.h>
#include <strings.h>

/* host: "host[:port]" or "[v6][:port]". */
static bool host_allowed(const struct bh_sim_req *r, const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    size_t n = strcspn(host, *host == '[' ? "]" : ":");
    n += host[n] == ']';
    for (size_t i = 0; i < BH_ARRAY_LEN(names); i++) {
        if (n == strlen(names[i]) && strncasecmp(host, names[i], n) == 0)
            return true;
    }
    return r->sim->any_host;
}

/* No early exit: the time must not tell how much of a guess was right. */
bool bh_sim_equal_secret(const char *a, size_t an, const char *b, size_t bn)
{
    unsigned diff = an != bn || !bn;
    for (size_t i = 0; i < bn; i++)
        diff |= (unsigned char)(an ? a[i % an] : 0) ^ (unsigned char)b[i];
    return diff == 0;
}

bool bh_sim_token_find(const char *file, const char *given, struct bh_str *ret_user)
{
    bool known = false;
    *ret_user = BH_STR("");
    for (const char *p = file; *p;) {
        size_t line = strcspn(p, "\n"), n = strcspn(p, ",\r\n"), end = strcspn(p, "\r\n");
        bool equal = n && *p != '#' && bh_sim_equal_secret(given, strlen(given), p, n);
        if (equal && !known && p[n] == ',')
            *ret_user = (struct bh_str){p + n + 1, end - n - 1};
        known |= equal;
        p += line + (p[line] == '\n');
    }
    return known;
}

/* The page's files hold no secrets, and it is the page that asks for the token. */
static bool is_public(const char *path)
{
    return bh_word_at("/healthz /livez /readyz /version /ui", path) >= 0 ||
           strncmp(path, "/ui/", 4) == 0;
}

static bool header_is(const struct bh_sim_req *r, const char *name, const char *value)
{
    const char *v = bh_http_header(r->http, name);

    return v && strcasecmp(v, value) == 0;
}

/* Another page, in a browser that says so, asks for more than to show us. */
static bool is_cross_site(const struct bh_sim_req *r, bool reads)
{
    if (!bh_http_header(r->http, "Sec-Fetch-Site") ||
        header_is(r, "Sec-Fetch-Site", "same-origin") || header_is(r, "Sec-Fetch-Site", "none"))
        return false;
    return !reads || !header_is(r, "Sec-Fetch-Mode", "navigate");
}

static bool is_browser(const struct bh_sim_req *r)
{
    const char *agent = bh_http_header(r->http, "User-Agent");

    return bh_http_header(r->http, "Origin") || bh_http_header(r->http, "Sec-Fetch-Mode") ||
           (agent && strncmp(agent, "Mozilla/", 8) == 0);
}

/* Forms need no leave of ours to be sent here by any page, and old browsers name no Origin. */
static bool is_nameless_form(const struct bh_sim_req *r)
{
    static const char *const types[] = {"application/x-www-form-urlencoded", "multipart/form-data",
                                        "text/plain"};
    char type[96];

    bh_sim_content_type(r, type);
    for (size_t i = 0; i < BH_ARRAY_LEN(types); i++) {
        if (strcasecmp(type, types[i]) == 0)
            return is_browser(r) && !bh_http_header(r->http, "Origin");
    }
    return false;
}

/* Nothing is changed by these, though they are no GET. */
static bool only_asks(struct bh_sim_req *r)
{
    static const char *const paths[] = {"whatif",   "capacity", "drain",
                                        "configs/", "manifest", "scenarios"};
    const char *rest = r->path + strlen("/berth/v1/"), *dry = bh_http_query(r->http, "dryRun");

    if (strncmp(r->path, "/berth/v1/", strlen("/berth/v1/")) != 0)
        return dry && bh_streq(dry, "All");
    for (size_t i = 0; i < BH_ARRAY_LEN(paths); i++) {
        if (strncmp(rest, paths[i], strlen(paths[i])) == 0)
            return true;
    }
    return false;
}

/* Who somebody is and what they may do: asked with POST, and nothing is stored. */
static bool is_review(const struct bh_sim_req *r)
{
    return strncmp(r->path, "/apis/authentication.k8s.io/", 28) == 0 ||
           strncmp(r->path, "/apis/authorization.k8s.io/", 27) == 0;
}

/* Paths of the console that change something: --read-only refuses them to every client. */
static bool is_console_write(const struct bh_sim_req *r)
{
    return strncmp(r->path, "/berth/", 7) == 0 ||
           bh_word_at("/api/v1/reset /api/v1/import /api/v1/schedulerconfiguration", r->path) >= 0;
}

/* Without a token file, who brings nothing is the administrator. */
static int authenticate(struct bh_sim_req *r)
{
    const char *auth = bh_http_header(r->http, "Authorization");
    bool bearer = auth && strncasecmp(auth, "Bearer ", 7) == 0;
    struct bh_sim_caller who = {0};

    if (is_public(r->path))
        return 0;
    if ((bearer || r->sim->opt.tokens) &&
        (!bearer || bh_sim_token_user(r->sim, r->a, auth + 7, &who, NULL) < 0))
        return bh_sim_fail(&r->e, 401, "Unauthorized", "Unauthorized");
    r->user = who.user;
    return bh_sim_impersonate(r);
}

int bh_sim_check_client(struct bh_sim_req *r)
{
    const char *host = bh_http_header(r->http, "Host");
    const char *origin = bh_http_header(r->http, "Origin");
    bool reads = bh_streq(r->method, "GET") || bh_streq(r->method, "HEAD");
    if (!host || !host_allowed(r, host))
        return bh_sim_fail(&r->e, 403, "Forbidden",
                           "forbidden: this server answers only to localhost, 127.0.0.1 and [::1]");
    const char *from = origin ? strstr(origin, "://") : NULL;
    if (origin && !reads && (!from || strcasecmp(from + 3, host) != 0))
        return bh_sim_fail(&r->e, 403, "Forbidden",
                           "forbidden: requests of other web origins may not change anything");
    if (is_cross_site(r, reads) || (!reads && is_nameless_form(r)))
        return bh_sim_fail(&r->e, 403, "Forbidden",
                           "forbidden: other web pages may not ask this server for anything");
    if (r->sim->opt.observe && !reads && !only_asks(r) && !is_review(r))
        return bh_sim_fail(&r->e, 403, "Forbidden",
                           "forbidden: this is a read-only copy of another cluster (--observe): "
                           "what is to change is changed there");
    if (r->sim->opt.read_only && !reads && (is_browser(r) || is_console_write(r)) && !only_asks(r))
        return bh_sim_fail(&r->e, 403, "Forbidden", "forbidden: the server runs with --read-only");
    return authenticate(r);
}
