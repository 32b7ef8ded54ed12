/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/extender/call.c - one exchange with one extender
 *
 * A call ends exactly once: with the body of a reply of status 200, or with an error in the words
 * of Go's client, because users read them in conditions and events and they have to be the same for
 * the same failure (no times, no counters: a text that changes is a new condition each time).
 *
 * Waiting: a cycle that waits runs the extenders' own loop, nothing else; every BH_EXT_WAITING_MS
 * it leaves it to call the owner's `waiting`. So nothing that changes the engine can happen in
 * between, and yet the process answers probes and keeps its peers informed.
 *
 * The breaker: BH_EXT_TRIES timeouts in a row, of any verb, and the extender rests for 1 s, then
 * for twice as long after each further timeout, 30 s at most; any reply ends that. Upstream asks
 * each time; the answer is the same, sooner.
 *
 * Upstream: pkg/scheduler/extender.go (send), net/http/client.go; differences: redirects lead
 *           nowhere but to the same origin, a reply has a bound.
 */
#include <ctype.h>
#include <curl/curl.h>
#include <inttypes.h>

#include "common/base/log.h"
#include "common/base/metrics.h"
#include "scheduler/extender/ext_int.h"

#define HOPS_MAX     10u
#define NS_PER_S     UINT64_C(1000000000)
#define REST_MAX_NS  (30 * NS_PER_S)
#define LOG_EVERY_NS (10 * NS_PER_S)

static void send_request(struct bh_ext_call *c, const char *path);

/* ---- errors ---------------------------------------------------------------------------------- */

void bh_ext_trouble(struct bh_ext_one *e, enum bh_ext_verb v, enum bh_ext_trouble t,
                    const char *error)
{
    const uint64_t now = bh_mono_ns();

    if (e->x->closing)
        return;
    if (e->errors[v][t])
        bh_cell_add(e->errors[v][t], 1);
    if (e->logged_ns && now - e->logged_ns < LOG_EVERY_NS) {
        e->unlogged++;
        return;
    }
    bh_log_warn(e->c->ignorable
                    ? "Skipping extender as it returned error and has ignorable flag set"
                    : "Extender failed",
                bh_kv_s("extender", e->name), bh_kv_s("verb", bh_ext_verb_names[v]),
                bh_kv_s("err", error), bh_kv_u("more", e->unlogged));
    e->logged_ns = now;
    e->unlogged = 0;
}

static const char *method_text(const struct bh_ext_call *c)
{
    return c->get ? "Get" : "Post";
}

static const char *host_of(const struct bh_ext_one *e)
{
    const char *host = strstr(e->origin, "://") + 3, *at = strrchr(host, '@');

    return at ? at + 1 : host;
}

/* libcurl counts milliseconds in one of its texts. */
static void add_curl_text(struct bh_buf *b, const char *text)
{
    const char *after = strstr(text, " after "), *ms = after ? strstr(after, " ms") : NULL;

    if (ms)
        bh_buf_addf(b, "%.*s%s", (int)(after - text), text, ms + 3);
    else
        bh_buf_adds(b, text);
}

/* No reply, or only a part of one. */
static void describe(struct bh_buf *b, const struct bh_ext_call *c, const struct bh_api_reply *r)
{
    const struct bh_ext_one *e = c->e;
    bool late = r->outcome == BH_API_TIMEOUT;

    if (r->outcome == BH_API_CANCELED) {
        bh_buf_addf(b, "%s \"%s\": context canceled", method_text(c), e->url[c->verb]);
    } else if (late && r->head) {
        bh_buf_adds(b, "context deadline exceeded (Client.Timeout or context cancellation while "
                       "reading body)");
    } else if (late) {
        bh_buf_addf(b,
                    "%s \"%s\": context deadline exceeded (Client.Timeout exceeded while awaiting "
                    "headers)",
                    method_text(c), e->url[c->verb]);
    } else if (r->curl_code == CURLE_WRITE_ERROR) { /* our own bound */
        bh_buf_addf(b, "failed %s with extender at URL %s, the reply is larger than %zu bytes",
                    bh_ext_verb_path(c->e->c, c->verb), e->url[c->verb], BH_EXT_REPLY_MAX);
    } else if (r->head) {
        bh_buf_adds(b, "unexpected EOF");
    } else {
        bh_buf_addf(b, "%s \"%s\": ", method_text(c), e->url[c->verb]);
        char text[96];
        if (r->curl_code == CURLE_COULDNT_RESOLVE_HOST) {
            bh_buf_addf(b, "dial tcp: lookup %.*s: no such host", (int)strcspn(host_of(e), ":"),
                        host_of(e));
        } else if (r->curl_code == CURLE_COULDNT_CONNECT && r->os_errno) {
            snprintf(text, sizeof(text), "%s", strerror(r->os_errno));
            text[0] = (char)tolower((unsigned char)text[0]);
            bh_buf_adds(b, "dial tcp ");
            /* "host:port" of the extender, as Go names what it dials. */
            const char *host = host_of(e), *colon = strrchr(host, ':');
            bh_buf_adds(b, host);
            if (!colon || strchr(colon, ']'))
                bh_buf_adds(b, strncmp(e->origin, "https", 5) == 0 ? ":443" : ":80");
            bh_buf_addf(b, ": connect: %s", text);
        } else if (r->curl_code == CURLE_GOT_NOTHING) {
            bh_buf_adds(b, "EOF");
        } else {
            add_curl_text(b, r->error);
        }
    }
}

/* ---- the end of a call ----------------------------------------------------------------------- */

static const struct bh_str no_body = {"", 0};

static void fail(struct bh_ext_call *c, enum bh_ext_trouble t, const char *error)
{
    bh_ext_trouble(c->e, c->verb, t, error);
    c->done(c, error, no_body);
}

static void count_timeout(struct bh_ext_one *e, bool late)
{
    uint64_t rest_ns = NS_PER_S;

    e->timeouts = late ? e->timeouts + 1 : 0;
    if (e->timeouts < BH_EXT_TRIES)
        return;
    for (unsigned i = BH_EXT_TRIES; i < e->timeouts && rest_ns < REST_MAX_NS; i++)
        rest_ns *= 2;
    e->rest_until_ns = bh_mono_ns() + BH_MIN(rest_ns, REST_MAX_NS);
}

/* 301, 302 and 303 turn a POST into a GET without body, 307 and 308 do not. True: it goes on. */
static bool redirected(struct bh_ext_call *c, const struct bh_api_reply *r)
{
    size_t n = strlen(c->e->origin);
    bool keeps = r->code == 307 || r->code == 308;

    if (!keeps && r->code != 301 && r->code != 302 && r->code != 303)
        return false;
    if (!r->redirect || strncmp(r->redirect, c->e->origin, n) != 0 ||
        (r->redirect[n] != '/' && r->redirect[n] != '\0'))
        return false;
    if (++c->hops >= HOPS_MAX) {
        struct bh_buf text BH_CLEANUP(bh_buf_fini) = {0};
        bh_buf_addf(&text, "%s \"%s\": stopped after %u redirects", method_text(c),
                    c->e->url[c->verb], HOPS_MAX);
        fail(c, BH_EXT_STATUS, bh_buf_str(&text));
        return true;
    }
    c->get = c->get || !keeps;
    send_request(c, r->redirect[n] ? r->redirect + n : "/");
    return true;
}

static void finished(void *arg, const struct bh_api_reply *r)
{
    bool late = r->outcome == BH_API_TIMEOUT, ours = r->outcome == BH_API_CANCELED;
    struct bh_buf text BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_ext_call *c = arg;

    c->req = NULL;
    LIST_REMOVE(c, link);
    if (r->outcome == BH_API_OK && redirected(c, r))
        return;
    if (c->e->duration[c->verb])
        bh_cell_observe(c->e->duration[c->verb], (double)(bh_mono_ns() - c->start_ns) / 1e9);
    if (!ours)
        count_timeout(c->e, late);
    if (r->outcome == BH_API_OK && r->code == 200) {
        c->done(c, NULL, r->body);
    } else if (r->outcome == BH_API_OK) {
        bh_buf_addf(&text, "failed %s with extender at URL %s, code %d",
                    bh_ext_verb_path(c->e->c, c->verb), c->e->url[c->verb], r->code);
        fail(c, BH_EXT_STATUS, bh_buf_str(&text));
    } else {
        describe(&text, c, r);
        fail(c,
             late   ? BH_EXT_TIMED_OUT
             : ours ? BH_EXT_OURS
                    : BH_EXT_UNREACHABLE,
             bh_buf_str(&text));
    }
}

/* ---- the start ------------------------------------------------------------------------------- */

static void send_request(struct bh_ext_call *c, const char *path)
{
    const uint64_t now = bh_mono_ns();
    struct bh_api_call call = {.method = c->get ? "GET" : "POST",
                               .path = path,
                               .content_type = c->get ? NULL : "application/json",
                               .accept = "*/*",
                               .body = c->get ? NULL : c->body.p,
                               .body_n = c->get ? 0 : c->body.n,
                               .max_reply_bytes = BH_EXT_REPLY_MAX,
                               .on_done = finished,
                               .arg = c};

    call.timeout_ns = c->deadline_ns > now ? c->deadline_ns - now : 1;
    if (c->e->requests[c->verb])
        bh_cell_add(c->e->requests[c->verb], 1);
    LIST_INSERT_HEAD(&c->e->x->calls, c, link);
    c->req = bh_api_start(c->e->client, &call);
    if (!c->req) /* the client is going away */
        finished(c, &(struct bh_api_reply){.outcome = BH_API_CANCELED, .error = "canceled"});
}

void bh_ext_call_start(struct bh_ext_call *c)
{
    const struct bh_ext_one *e = c->e;
    struct bh_buf text BH_CLEANUP(bh_buf_fini) = {0};

    c->start_ns = bh_mono_ns();
    c->deadline_ns = c->start_ns + (uint64_t)e->c->http_timeout_ns;
    c->hops = 0;
    c->get = false;
    if (e->unusable) {
        bh_buf_addf(&text, "Post \"%s\": %s", e->url[c->verb], e->unusable);
        fail(c, BH_EXT_UNREACHABLE, bh_buf_str(&text));
    } else if (c->start_ns < e->rest_until_ns) {
        describe(&text, c, &(struct bh_api_reply){.outcome = BH_API_TIMEOUT});
        fail(c, BH_EXT_REST, bh_buf_str(&text));
    } else if (e->x->abandon || e->x->closing) {
        describe(&text, c, &(struct bh_api_reply){.outcome = BH_API_CANCELED});
        fail(c, BH_EXT_OURS, bh_buf_str(&text));
    } else {
        send_request(c, e->path[c->verb]);
    }
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void on_tick(uv_timer_t *t)
{
    struct bh_ext *x = bh_container_of(t, struct bh_ext, tick);
    struct bh_ext_call *c;

    if (x->abandon || x->waiting(x->waiting_arg))
        return;
    x->abandon = true;
    LIST_FOREACH(c, &x->calls, link) {
        if (c->verb != BH_EXT_BIND)
            bh_api_cancel(c->req);
    }
}

void bh_ext_wait(struct bh_ext *x, const unsigned *pending)
{
    if (*pending == 0)
        return;
    bh_assert(!x->in_wait);
    x->in_wait = true;
    uv_update_time(&x->loop);
    if (x->waiting)
        uv_timer_start(&x->tick, on_tick, BH_EXT_WAITING_MS, BH_EXT_WAITING_MS);
    while (*pending)
        uv_run(&x->loop, UV_RUN_ONCE);
    uv_timer_stop(&x->tick);
    x->in_wait = false;
}
