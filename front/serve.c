/* SPDX-License-Identifier: Apache-2.0
 *
 * front/serve.c - a request's way: authentication, authorization, answer
 *
 * Invariants: every call is ended once, by bh_call_reply; a client that left is noticed there.
 */
#include <errno.h>
#include <strings.h>

#include "common/base/log.h"
#include "front/front.h"

#define CERTS_MAX  10u
#define TEXT_PLAIN "text/plain; charset=utf-8"

/* ---- ending ---------------------------------------------------------------------------------- */

void bh_call_reply(struct bh_call *c, int code, const char *type, const void *body, size_t n)
{
    struct bh_http_req *r = c->http;

    if (r) {
        static const char known[] = "/metrics /metrics/slis /metrics/resources /configz /flagz "
                                    "/statusz /healthz /livez /readyz";
        char text[16];
        bh_log_v(2, "HTTP", bh_kv_s("verb", c->verb), bh_kv_s("URI", c->path),
                 bh_kv_s("srcIP", bh_http_peer(r)), bh_kv_i("resp", code),
                 bh_kv_s("user", c->user ? c->user->name : ""));
        snprintf(text, sizeof(text), "%d", code);
        bh_cell_add(bh_metric_cell(c->f->m_requests,
                                   bh_word_at(known, c->path) >= 0 ? c->path : "other", text),
                    1);
        bh_http_on_abort(r, NULL, NULL);
        bh_http_reply(r, code, type ? type : TEXT_PLAIN, body, n);
    }
    c->f->under_way--;
    bh_user_unref(c->user);
    free(c->path);
    free(c->verb);
    free(c);
}

void bh_call_text(struct bh_call *c, int code, const char *text)
{
    bh_call_reply(c, code, NULL, text, strlen(text));
}

void bh_call_error(struct bh_call *c, int code, const char *text)
{
    BH_CLEANUP(bh_freep) char *line = bh_asprintf("%s\n", text);

    if (c->http)
        bh_http_set_header(c->http, "X-Content-Type-Options", "nosniff");
    bh_call_text(c, code, line);
}

/* Nothing that looks like HTML: & < > as entities. */
static void add_sanitized(struct bh_buf *b, const char *s)
{
    for (; *s; s++)
        if (*s == '&' || *s == '<' || *s == '>')
            bh_buf_addf(b, "&%s;", *s == '&' ? "amp" : *s == '<' ? "lt" : "gt");
        else
            bh_buf_addc(b, *s);
}

/* One line per field for people, as upstream knows them: ?pretty= says so, else the user agent. */
static bool wants_lines(const struct bh_call *c)
{
    static const char *const agents[] = {"curl", "Wget", "Mozilla/5.0"};
    const char *pretty = c->http ? bh_http_query(c->http, "pretty") : NULL;
    const char *agent = c->http ? bh_http_header(c->http, "User-Agent") : NULL;

    if (pretty && *pretty)
        return bh_parse_bool(pretty) == 1;
    for (size_t i = 0; agent && i < BH_ARRAY_LEN(agents); i++)
        if (strncmp(agent, agents[i], strlen(agents[i])) == 0)
            return true;
    return false;
}

static void reply_status(struct bh_call *c, int code, const char *reason, const char *message)
{
    bool lines = wants_lines(c);
    const char *nl = lines ? "\n  " : "", *sp = lines ? " " : "";
    struct bh_buf out BH_CLEANUP(bh_buf_fini) = {0};

    bh_buf_addf(&out, "{%s\"kind\":%s\"Status\",%s\"apiVersion\":%s\"v1\",", nl, sp, nl, sp);
    bh_buf_addf(&out, "%s\"metadata\":%s{},%s\"status\":%s\"Failure\",", nl, sp, nl, sp);
    bh_buf_addf(&out, "%s\"message\":%s", nl, sp);
    bh_buf_add_json_str(&out, message, strlen(message));
    bh_buf_addf(&out, ",%s\"reason\":%s\"%s\",", nl, sp, reason);
    if (code == 403)
        bh_buf_addf(&out, "%s\"details\":%s{},", nl, sp);
    bh_buf_addf(&out, "%s\"code\":%s%d%s", nl, sp, code, lines ? "\n}" : "}\n");
    if (c->http)
        bh_http_set_header(c->http, "X-Content-Type-Options", "nosniff");
    bh_call_reply(c, code, "application/json", out.p, out.n);
}

static void forbid(struct bh_call *c, const char *why)
{
    struct bh_buf plain BH_CLEANUP(bh_buf_fini) = {0}, text BH_CLEANUP(bh_buf_fini) = {0};

    bh_buf_add_json(&plain, "User %s cannot ", c->user->name);
    bh_buf_addf(&plain, "%s path ", c->verb);
    bh_buf_add_json(&plain, "%s", c->path);
    bh_buf_adds(&text, "forbidden: ");
    add_sanitized(&text, bh_buf_str(&plain));
    if (*why)
        bh_buf_addf(&text, ": %s", why);
    reply_status(c, 403, "Forbidden", bh_buf_str(&text));
}

/* ---- what ------------------------------------------------------------------------------------ */

static bool health(struct bh_call *c)
{
    static const char *const probes[] = {"healthz", "livez", "readyz"};

    for (size_t i = 0; i < BH_ARRAY_LEN(probes); i++) {
        size_t n = strlen(probes[i]);
        if (strncmp(c->path + 1, probes[i], n) != 0 || (c->path[n + 1] && c->path[n + 1] != '/'))
            continue;
        bh_front_health(c, probes[i], c->path[n + 1] ? c->path + n + 2 : NULL);
        return true;
    }
    return false;
}

static void route(struct bh_call *c)
{
    static const struct {
        const char *path;
        void (*serve)(struct bh_call *c);
    } pages[] = {{"/metrics", bh_front_metrics},
                 {"/metrics/slis", bh_front_slis},
                 {"/metrics/resources", bh_front_pod_resources},
                 {"/configz", bh_front_configz},
                 {"/flagz", bh_front_flagz},
                 {"/statusz", bh_front_statusz}};

    if (c->path[0] == '/' && health(c))
        return;
    for (size_t i = 0; i < BH_ARRAY_LEN(pages); i++) {
        if (!bh_streq(c->path, pages[i].path))
            continue;
        if (bh_streq(c->verb, "get") || bh_streq(c->verb, "head"))
            pages[i].serve(c);
        else {
            if (c->http)
                bh_http_set_header(c->http, "Allow", "GET, HEAD");
            bh_call_error(c, 405, "405 method not allowed");
        }
        return;
    }
    if (c->f->o.flags->profiling && bh_streq(c->path, "/debug/flags/v"))
        bh_front_verbosity(c);
    else if (strncmp(c->path, "/debug/pprof", 12) == 0)
        bh_call_error(
            c, 404,
            "404 page not found: profiles are Go's; of a C program take perf, gdb or /metrics");
    else
        bh_call_error(c, 404, "404 page not found");
}

/* ---- authorization, authentication ----------------------------------------------------------- */

static void too_many(struct bh_call *c, const char *why)
{
    bh_log_v(2, "Too many requests", bh_kv_s("srcIP", bh_http_peer(c->http)), bh_kv_s("err", why));
    bh_http_set_header(c->http, "Retry-After", "1");
    reply_status(c, 429, "TooManyRequests", "too many requests, please try again later");
}

static void on_authorized(void *arg, const struct bh_verdict *v)
{
    struct bh_call *c = arg;
    struct bh_buf text BH_CLEANUP(bh_buf_fini) = {0};

    c->wait = NULL;
    switch (v->is) {
    case BH_VERDICT_YES:
        route(c);
        return;
    case BH_VERDICT_NO:
        forbid(c, v->why);
        return;
    case BH_VERDICT_BUSY:
        too_many(c, v->why);
        return;
    case BH_VERDICT_ERROR:
        break;
    }
    bh_log_warn("Could not find out what a caller may do", bh_kv_s("user", c->user->name),
                bh_kv_s("err", v->why));
    bh_buf_add_json(&text, "Internal Server Error: %s: ", c->path);
    add_sanitized(&text, v->why);
    bh_call_error(c, 500, bh_buf_str(&text));
}

static void on_authenticated(void *arg, const struct bh_verdict *v)
{
    struct bh_call *c = arg;

    c->wait = NULL;
    if (v->is == BH_VERDICT_BUSY) {
        too_many(c, v->why);
        return;
    }
    if (v->is != BH_VERDICT_YES) {
        bh_log_v(2, "Unable to authenticate the request", bh_kv_s("err", v->why));
        reply_status(c, 401, "Unauthorized", "Unauthorized");
        return;
    }
    c->user = bh_user_ref(v->user);
    struct bh_review_wait *w = bh_authz_ask(c->f->authz, c->user, c->verb, c->path,
                                            bh_http_peer(c->http), on_authorized, c);
    if (w) /* else the call went on at once and may be over */
        c->wait = w;
}

/* All of them, however many: one left out could be the one that says who calls. */
struct headers {
    struct bh_front_header *v;
    size_t n, cap;
};

static void on_header(void *arg, const char *name, const char *value)
{
    struct headers *h = arg;

    BH_GROW(h->v, h->n, h->cap);
    h->v[h->n++] = (struct bh_front_header){name, value};
}

/* The client left. A review under way is canceled; other work ends when it ends. */
static void on_abort(void *arg)
{
    struct bh_call *c = arg;

    c->http = NULL;
    if (!c->wait)
        return;
    bh_reviews_cancel(bh_take_ptr(c->wait));
    bh_call_reply(c, 0, NULL, NULL, 0);
}

void bh_front_serve(struct bh_http_req *r, void *front)
{
    struct bh_front *f = front;
    struct bh_str certs[CERTS_MAX];
    struct headers h = {0};
    struct bh_credentials cred = {.certs = certs};

    if (f->closed) {
        bh_http_reply(r, 503, TEXT_PLAIN, "", 0);
        return;
    }
    struct bh_call *c = bh_calloc(1, sizeof(*c));
    *c = (struct bh_call){.f = f,
                          .http = r,
                          .path = bh_strdup(bh_http_path(r)),
                          .verb = bh_strdup(bh_http_method(r))};
    bh_lower(c->verb);
    f->under_way++;
    bh_http_set_header(r, "Cache-Control", "no-cache, private");
    if (f->stopping)
        bh_http_set_header(r, "Connection", "close");
    bh_http_on_abort(r, on_abort, c);
    bh_http_header_each(r, on_header, &h);
    cred.headers = h.v;
    cred.n_headers = h.n;
    cred.n_certs = bh_http_client_certs(r, certs, CERTS_MAX);
    cred.from = bh_http_peer(r);
    struct bh_review_wait *w = bh_authn_ask(f->authn, &cred, on_authenticated, c);
    if (w)
        c->wait = w;
    free(h.v);
}
