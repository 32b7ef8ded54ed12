/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/faults.c - misbehaving on purpose, for tests of clients
 */
#include "simulator/server/faults.h"

#include "common/base/log.h"
#include "simulator/server/pod.h"

#include <errno.h>

enum fault {
    F_429,
    F_500,
    F_503,
    F_410,
    F_CUT,
    F_DROP,
    F_TRUNCATE,
    F_LOSE,
    F_DELAY,
    F_BIND_201,
    F_BIND_404,
    F_BIND_409,
    F_BIND_410,
    F_BIND_422,
    F_BIND_LATE,
    F_BIND_ANSWER,
    N_FAULTS
};
static const char *const names[N_FAULTS] = {
    "429-every",      "500-every",        "503-every",      "410-every",
    "drop-every",     "drop-watch-every", "truncate-every", "lose-every",
    "delay-ms",       "bind-201-every",   "bind-404-every", "bind-409-every",
    "bind-410-every", "bind-422-every",   "bind-late-ms",   "bind-answer-ms"};
struct bh_sim_faults {
    uint64_t every[N_FAULTS], count[N_FAULTS];
};

static int parse_one(struct bh_sim_faults *f, const char *p, size_t n, struct bh_err *err)
{
    const char *eq = memchr(p, '=', n);
    size_t key = eq ? (size_t)(eq - p) : n;
    uint64_t v = 0;
    for (const char *d = eq ? eq + 1 : p + n; d < p + n; d++) {
        if (*d < '0' || *d > '9' || v > 1000000000)
            return bh_err_set(err, -EINVAL, "faults: \"%.*s\": not a number", (int)n, p);
        v = v * 10 + (uint64_t)(*d - '0');
    }
    for (int i = 0; i < N_FAULTS; i++) {
        if (strlen(names[i]) == key && memcmp(names[i], p, key) == 0 && v > 0) {
            f->every[i] = v;
            return 0;
        }
    }
    return bh_err_set(err, -EINVAL,
                      "faults: \"%.*s\": want 429-every, 500-every, 503-every, 410-every, "
                      "drop-every, drop-watch-every, truncate-every, lose-every, delay-ms, "
                      "bind-201-every, bind-404-every, bind-409-every, bind-410-every, "
                      "bind-422-every, bind-late-ms or bind-answer-ms, =N",
                      (int)n, p);
}

int bh_sim_faults_parse(const char *spec, struct bh_sim_faults **ret_f, struct bh_err *err)
{
    struct bh_sim_faults f = {0};
    for (const char *p = spec; p && *p;) {
        size_t n = strcspn(p, ",");
        int rc = parse_one(&f, p, n, err);
        if (rc < 0)
            return rc;
        p += n + (p[n] == ',');
    }
    *ret_f = spec && *spec ? bh_memdup(&f, sizeof(f)) : NULL;
    return 0;
}

void bh_sim_faults_free(struct bh_sim_faults *f)
{
    free(f);
}

static bool hit(struct bh_sim *s, enum fault i)
{
    struct bh_sim_faults *f = s->faults;
    return f->every[i] && ++f->count[i] % f->every[i] == 0;
}

static void nothing(void *arg)
{
    (void)arg;
}

static void cut_off(struct bh_sim_req *r)
{
    bh_http_stream_abort(bh_http_stream_start(r->http, "application/json", nothing, NULL));
    r->done = true;
}

/* ---- bindings -----------------------------------------------------------------------------------
 * What a test waits for is said in the log: which binding came, and that it is held.
 */

/* A binding between its request and its effect, or between its effect and its answer. */
struct bh_sim_hold {
    struct bh_sim *sim;
    struct bh_http_req *http; /* NULL: its client left */
    struct bh_sim_timer *timer;
    LIST_ENTRY(bh_sim_hold) other;
    uint64_t start_ns;
    int code; /* of the answer */
    char content_type[64];
    char *ns, *pod;
    size_t n;
    char *body; /* n bytes: the Binding, or the answer */
};

static void client_left(void *arg)
{
    struct bh_sim_hold *h = arg;
    h->http = NULL;
}

/* then() comes after what the fault asks for; what: it waits for. */
static struct bh_sim_hold *hold(struct bh_sim_req *r, const void *p, size_t n, enum fault f,
                                void (*then)(void *), const char *what)
{
    uint64_t ms = r->sim->faults->every[f];
    struct bh_sim_hold *h = bh_calloc(1, sizeof(*h));

    *h = (struct bh_sim_hold){.sim = r->sim,
                              .http = r->http,
                              .start_ns = r->start_ns,
                              .ns = bh_strdup(r->ns),
                              .pod = bh_strdup(r->name),
                              .n = n,
                              .body = bh_memdup(p, n ? n : 1)};
    LIST_INSERT_HEAD(&r->sim->holds, h, other);
    h->timer = bh_sim_after_real(r->sim, (int64_t)ms * 1000000, then, h);
    bh_http_on_abort(r->http, client_left, h);
    bh_log_info(what, bh_kv_s("namespace", r->ns), bh_kv_s("pod", r->name), bh_kv_u("ms", ms));
    return h;
}

static void hold_free(struct bh_sim_hold *h)
{
    LIST_REMOVE(h, other);
    free(h->ns);
    free(h->pod);
    free(h->body);
    free(h);
}

void bh_sim_faults_drop_holds(struct bh_sim *s)
{
    for (struct bh_sim_hold *h; (h = LIST_FIRST(&s->holds));) {
        bh_sim_cancel(h->timer);
        hold_free(h);
    }
}

static void effect_now(void *arg)
{
    struct bh_sim_hold *h = arg;
    struct bh_sim *s = h->sim;
    struct bh_http_req *http = h->http;
    uint64_t start_ns = h->start_ns;

    if (!http) {
        /* As the commit of an API server whose client went while etcd was slow. */
        struct bh_arena a;
        struct bh_json *binding = NULL;
        struct bh_sim_error e;
        bh_arena_init(&a, 0);
        bh_sim_error_init(&e);
        if (bh_json_parse(&a, h->body, h->n, 0, &binding, NULL) < 0)
            e.code = 400;
        else
            bh_sim_pod_bind(h->sim, h->ns, h->pod, binding, false, &e);
        bh_log_info("Fault: a binding took effect without its client", bh_kv_s("namespace", h->ns),
                    bh_kv_s("pod", h->pod), bh_kv_i("code", e.code ? e.code : 201));
        bh_arena_fini(&a);
    } else
        bh_http_on_abort(http, NULL, NULL);
    hold_free(h);
    if (http)
        bh_sim_handle(s, http, true, start_ns);
}

static void answer_now(void *arg)
{
    struct bh_sim_hold *h = arg;

    if (h->http) {
        bh_http_on_abort(h->http, NULL, NULL);
        bh_http_reply(h->http, h->code, h->content_type, h->body, h->n);
    }
    hold_free(h);
}

/* True: the binding was answered or waits. */
static bool before_bind(struct bh_sim_req *r)
{
    static const char done[] = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                               "\"status\":\"Success\",\"code\":201}\n";
    /* Answers as if something had happened, or could not; nothing did. */
    static const struct {
        enum fault f;
        int code;
        const char *reason, *text;
    } lies[] = {{F_BIND_201, 201, "", ""},
                {F_BIND_404, 404, "NotFound", "not found"},
                {F_BIND_409, 409, "Conflict", "the object has been modified"},
                {F_BIND_410, 410, "Gone", "gone"},
                {F_BIND_422, 422, "Invalid", "is invalid"}};

    for (size_t i = 0; i < BH_ARRAY_LEN(lies); i++) {
        if (!hit(r->sim, lies[i].f))
            continue;
        bh_log_info("Fault: a binding is answered falsely", bh_kv_s("namespace", r->ns),
                    bh_kv_s("pod", r->name), bh_kv_i("code", lies[i].code));
        if (lies[i].code == 201)
            bh_sim_reply_raw(r, 201, "application/json", done, sizeof(done) - 1);
        else
            bh_sim_fail(&r->e, lies[i].code, lies[i].reason, "pods \"%s\": %s", r->name,
                        lies[i].text);
        return true;
    }
    if (!r->sim->faults->every[F_BIND_LATE])
        return false;
    struct bh_str body = bh_http_body(r->http);
    (void)hold(r, body.p, body.n, F_BIND_LATE, effect_now, "Fault: a binding waits for its effect");
    r->done = true;
    return true;
}

bool bh_sim_fault_before(struct bh_sim_req *r)
{
    static const struct {
        enum fault f;
        int code;
        const char *reason, *text;
    } refusals[] = {
        {F_429, 429, "TooManyRequests",
         "the server has received too many requests and has asked us to try again later"},
        {F_500, 500, "InternalError", "Internal error occurred: injected fault"},
        {F_503, 503, "ServiceUnavailable", "the server is currently unable to handle the request"}};
    struct bh_sim *s = r->sim;
    /* The way schedulers take; the other one (POST bindings) is left alone. */
    bool binds = bh_streq(r->sub, "binding") && bh_streq(r->method, "POST");
    if (!r->waited && binds && before_bind(r))
        return true;
    if (s->faults->every[F_DELAY] && !r->waited) {
        bh_sim_wait(r, (int64_t)s->faults->every[F_DELAY] * 1000000);
        return true;
    }
    for (size_t i = 0; i < BH_ARRAY_LEN(refusals); i++) {
        if (!hit(s, refusals[i].f))
            continue;
        r->e.retry_after_s = refusals[i].code == 429;
        bh_sim_fail(&r->e, refusals[i].code, refusals[i].reason, "%s", refusals[i].text);
        return true;
    }
    if (!hit(s, F_CUT))
        return false;
    cut_off(r);
    return true;
}

/* ---- cut replies ----------------------------------------------------------------------------- */

struct cut {
    struct bh_http_stream *stream;
    struct bh_sim_timer *timer;
};
#define CUT_AFTER_NS ((int64_t)30 * 1000000) /* lets the first half reach the client */

static void cut_closed(void *arg)
{
    struct cut *c = arg;
    bh_sim_cancel(c->timer);
    free(c);
}

static void cut_now(void *arg)
{
    struct cut *c = arg;
    c->timer = NULL;
    bh_http_stream_abort(c->stream);
}

bool bh_sim_fault_reply(struct bh_sim_req *r, int code, const char *content_type, const void *p,
                        size_t n)
{
    if (code == 201 && r->sim->faults->every[F_BIND_ANSWER] && bh_streq(r->verb, "bind")) {
        struct bh_sim_hold *h =
            hold(r, p, n, F_BIND_ANSWER, answer_now, "Fault: a binding waits for its answer");
        h->code = code;
        snprintf(h->content_type, sizeof(h->content_type), "%s", content_type);
        return true;
    }
    bool writes = !bh_streq(r->method, "GET") && !bh_streq(r->method, "HEAD");
    bool lose = writes && r->type && hit(r->sim, F_LOSE);
    bool half = !lose && r->type && n > 1 && hit(r->sim, F_TRUNCATE);
    if (lose)
        cut_off(r);
    if (!half)
        return lose;
    struct cut *c = bh_calloc(1, sizeof(*c));
    c->stream = bh_http_stream_start(r->http, content_type, cut_closed, c);
    bh_http_stream_copy(c->stream, p, n / 2);
    c->timer = bh_sim_after_real(r->sim, CUT_AFTER_NS, cut_now, c);
    return true;
}

bool bh_sim_fault_drop_watch(struct bh_sim *s)
{
    return hit(s, F_DROP);
}

bool bh_sim_fault_expire(struct bh_sim *s)
{
    return hit(s, F_410);
}
