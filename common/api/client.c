/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/client.c - life of the client and of its requests
 *
 * Owns:       the client, its requests (pooled), timers for everything that is not libcurl's.
 * Invariants: a live request is on exactly one list, the one of its state; on_done is called once,
 *             with no libcurl call on the stack; nothing is freed while callbacks are (busy).
 * Runs in:    the loop.
 * Upstream:   client-go/rest/request.go (withRetry); differences: a lost connection is never
 *             retried here, the callers know what may be repeated.
 */
#include "common/api/api_int.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#define NS_PER_S                UINT64_C(1000000000)
#define NS_PER_MS               UINT64_C(1000000)
#define ATTEMPTS_MAX            10
#define SPARE_MAX               1024u
#define SPARE_BODY_MAX          ((size_t)64 << 10)
#define MAX_CONNECTIONS_DEFAULT 8

static void launch(struct bh_api_req *r);
static void unhold(struct bh_api_client *c);
static void on_alarm(uv_timer_t *h);
static void on_pump(uv_timer_t *h);

static void set_state(struct bh_api_req *r, enum bh_api_req_state state)
{
    TAILQ_REMOVE(&r->c->reqs[r->state], r, link);
    r->state = state;
    TAILQ_INSERT_TAIL(&r->c->reqs[state], r, link);
}

void bh_api_kick(struct bh_api_client *c)
{
    if (!uv_is_active((uv_handle_t *)&c->pump) && !uv_is_closing((uv_handle_t *)&c->pump))
        uv_timer_start(&c->pump, on_pump, 0, 0);
}

/* ---- one alarm for all waiting --------------------------------------------------------------- */

static void set_alarm(struct bh_api_client *c)
{
    struct bh_api_req *r;
    const uint64_t now = bh_mono_ns();
    uint64_t next =
        TAILQ_EMPTY(&c->reqs[BH_REQ_WAITING]) ? UINT64_MAX : bh_api_limit_next(&c->limit, now);

    TAILQ_FOREACH(r, &c->reqs[BH_REQ_DELAYED], link)
        next = BH_MIN(next, r->due_ns);
    TAILQ_FOREACH(r, &c->reqs[BH_REQ_HELD], link)
        next = BH_MIN(next, r->deadline_ns ? r->deadline_ns : UINT64_MAX);
    TAILQ_FOREACH(r, &c->reqs[BH_REQ_TIMED], link)
        next = BH_MIN(next, r->last_byte_ns + r->call.idle_timeout_ns);
    if (next == UINT64_MAX) {
        uv_timer_stop(&c->alarm);
        return;
    }
    uv_update_time(c->loop);
    uv_timer_start(&c->alarm, on_alarm, next > now ? (next - now) / NS_PER_MS + 1 : 0, 0);
}

/* ---- finishing ------------------------------------------------------------------------------- */

static void free_spare(struct bh_api_req *r)
{
    TAILQ_REMOVE(&r->c->reqs[BH_REQ_FREE], r, link);
    r->c->n_spare--;
    bh_api_transfer_fini(r);
    bh_buf_fini(&r->url);
    bh_buf_fini(&r->body);
    bh_buf_fini(&r->request_body);
    free(r);
}

static void recycle(struct bh_api_req *r)
{
    struct bh_api_client *c = r->c;
    bh_api_headers_unref(r->headers);
    r->headers = NULL;
    if (r->body.cap > SPARE_BODY_MAX)
        bh_buf_fini(&r->body);
    if (r->request_body.cap > SPARE_BODY_MAX)
        bh_buf_fini(&r->request_body);
    set_state(r, BH_REQ_FREE);
    c->n_live--;
    c->n_spare++;
    if (c->n_spare > SPARE_MAX && !c->in_curl)
        free_spare(r);
}

static void deliver(struct bh_api_req *r, enum bh_api_outcome outcome, const char *error)
{
    struct bh_api_client *c = r->c;
    const bool ok = outcome == BH_API_OK;
    struct bh_api_reply reply = {
        .outcome = outcome,
        .sent = r->sent,
        .code = ok ? r->code : 0,
        .retry_after_s = ok ? r->retry_after_s : -1,
        .content_type = r->content_type,
        .body = {bh_buf_str(&r->body), r->body.n},
        .error = ok ? NULL : error,
        .head = !ok && r->head_done,
        .curl_code = ok ? 0 : r->curl_code,
    };
    if (reply.code >= 300 && reply.code < 400 && !r->on.lean)
        curl_easy_getinfo(r->easy, CURLINFO_REDIRECT_URL, &reply.redirect);
    if (!ok) {
        long os_errno = r->os_errno;
        if (!r->on.lean && r->easy)
            curl_easy_getinfo(r->easy, CURLINFO_OS_ERRNO, &os_errno);
        reply.os_errno = r->lack ? r->lack : (int)os_errno;
    }
    c->busy++;
    r->call.on_done(r->call.arg, &reply);
    c->busy--;
    recycle(r);
}

static void replied(struct bh_api_req *r)
{
    struct bh_api_client *c = r->c;
    bh_api_metrics_done(c, r);
    if (r->code == 401) {
        bh_api_token_refresh(c, true);
        bh_api_exec_expire(c);
    }

    uint64_t due = bh_mono_ns() + (uint64_t)BH_MAX(r->retry_after_s, 0) * NS_PER_S;
    if (r->call.retry_429_5xx && (r->code == 429 || r->code >= 500) && r->retry_after_s >= 0 &&
        r->attempts < ATTEMPTS_MAX && (r->deadline_ns == 0 || due < r->deadline_ns)) {
        bh_api_metrics_retry(c, r);
        r->due_ns = bh_mono_ns() + (uint64_t)r->retry_after_s * NS_PER_S;
        set_state(r, BH_REQ_DELAYED);
        set_alarm(c);
        return;
    }
    deliver(r, BH_API_OK, NULL);
}

static const char *failure_text(const struct bh_api_req *r, CURLcode rc)
{
    if (r->too_large)
        return "reply is larger than allowed";
    if (r->stopped)
        return "stopped by its reader";
    if (r->fenced)
        return "it was not sent before its time was over";
    return r->error[0] ? r->error : curl_easy_strerror(rc);
}

void bh_api_finished(struct bh_api_req *r, CURLcode rc)
{
    struct bh_api_pool *p = r->pool;
    long request_bytes = 0;

    curl_easy_getinfo(r->easy, CURLINFO_REQUEST_SIZE, &request_bytes);
    r->sent = r->sent || (request_bytes > 0 && !r->fenced);
    if (r->code)
        bh_api_pool_learn(p, r->easy);
    bh_api_pool_remove(p, r);
    r->curl_code = (int)rc;
    if (rc != CURLE_OK && !r->sent)
        bh_api_tell_lack(rc, &r->lack, r->error);
    bool late = r->fenced || (rc == CURLE_OPERATION_TIMEDOUT && r->deadline_ns &&
                              bh_mono_ns() >= r->deadline_ns);
    bh_api_ended(r, late, rc == CURLE_OK ? NULL : failure_text(r, rc));
}

void bh_api_ended(struct bh_api_req *r, bool late, const char *why)
{
    if (r->state == BH_REQ_CANCELED) {
        deliver(r, BH_API_CANCELED, "canceled");
    } else if (!why) {
        replied(r);
    } else {
        r->code = 0;
        bh_api_metrics_done(r->c, r);
        deliver(r, late ? BH_API_TIMEOUT : BH_API_TRANSPORT, why);
    }
}

/* On the wire no more. */
static void stop_request(struct bh_api_req *r)
{
    if (r->pool)
        bh_api_pool_remove(r->pool, r);
    else if (r->on.list)
        bh_lanes_remove(r->c->lanes, r);
}

/* Ends a request that libcurl is not done with. */
static void give_up(struct bh_api_req *r, enum bh_api_outcome outcome, const char *why)
{
    const bool lane = !r->pool && r->on.list;

    if (r->pool) {
        long request_bytes = 0;
        curl_easy_getinfo(r->easy, CURLINFO_REQUEST_SIZE, &request_bytes);
        r->sent = r->sent || request_bytes > 0;
    }
    if (r->pool || lane) {
        stop_request(r);
        r->code = 0;
        bh_api_metrics_done(r->c, r);
    }
    deliver(r, outcome, why);
}

/* ---- starting -------------------------------------------------------------------------------- */

static const char *intern_method(const char *m)
{
    static const char *const known[] = {"GET", "POST", "PATCH", "PUT", "DELETE"};
    for (size_t i = 0; i < BH_ARRAY_LEN(known); i++)
        if (bh_streq(m, known[i]))
            return known[i];
    bh_assert(!"HTTP method");
    return NULL;
}

static void retire(struct bh_api_client *c, struct bh_api_pool *p)
{
    p->retired = true;
    TAILQ_INSERT_TAIL(&c->retired, p, link);
    bh_api_kick(c);
}

static struct bh_api_pool *lane_pool(struct bh_api_client *c)
{
    struct bh_api_pool *p = bh_api_pool_new(c, true);

    p->for_lanes = true;
    return p;
}

static void new_connections(struct bh_api_client *c)
{
    for (int i = 0; i < BH_API_POOLS; i++) {
        retire(c, c->pool[i]);
        c->pool[i] = bh_api_pool_new(c, i != BH_API_POOL_SHORT);
    }
    if (!c->lanes)
        return;
    retire(c, c->lane_pool);
    c->lane_pool = lane_pool(c);
    bh_lanes_renew(c->lanes);
}

void bh_api_use(struct bh_api_client *c, struct bh_api_creds *k)
{
    bh_api_creds_unref(c->creds);
    c->creds = k;
    new_connections(c);
}

static void launch(struct bh_api_req *r)
{
    struct bh_api_client *c = r->c;
    if (c->in_curl) {
        set_state(r, BH_REQ_QUEUED);
        bh_api_kick(c);
        return;
    }
    if (!bh_api_exec_ready(c)) {
        set_state(r, BH_REQ_HELD);
        if (c->exec->running)
            set_alarm(c);
        else
            bh_api_kick(c); /* fails, but not inside the caller's call */
        return;
    }
    bh_api_token_refresh(c, false);
    if (bh_api_certs_refresh(c, false))
        new_connections(c);
    if (!r->attempts && !r->call.long_lived)
        bh_api_metrics_limited(c, r);
    if (r->attempts++ || c->exec) { /* the token may have changed since */
        bh_api_headers_unref(r->headers);
        r->headers = NULL;
    }
    if (!r->headers)
        r->headers = bh_api_headers_get(c, &r->call);
    set_state(r, r->call.idle_timeout_ns ? BH_REQ_TIMED : BH_REQ_RUNNING);
    r->on.lean = c->lanes && !r->call.long_lived && !r->call.on_data && !r->call.idle_timeout_ns;
    if (r->on.lean) {
        bh_api_transfer_reset(r);
        bh_lanes_add(c->lanes, r);
        return;
    }
    bh_api_transfer_prepare(r);
    bh_api_pool_add(c->pool[r->call.company_ms   ? BH_API_POOL_ALONE
                            : r->call.long_lived ? BH_API_POOL_LONG
                                                 : BH_API_POOL_SHORT],
                    r);
    if (r->call.idle_timeout_ns)
        set_alarm(c);
}

struct bh_api_req *bh_api_start(struct bh_api_client *c, const struct bh_api_call *call)
{
    if (c->closing)
        return NULL;
    bh_assert(call->on_done && call->path[0] == '/');
    struct bh_api_req *r = TAILQ_LAST(&c->reqs[BH_REQ_FREE], bh_api_req_list); /* the warmest */
    if (!r) {
        r = bh_calloc(1, sizeof(*r));
        r->c = c;
        TAILQ_INSERT_TAIL(&c->reqs[BH_REQ_FREE], r, link);
        c->n_spare++;
    }
    c->n_spare--;
    c->n_live++;
    r->call = *call;
    r->method = intern_method(call->method);
    r->attempts = 0;
    r->sent = false;
    r->os_errno = 0;
    r->start_ns = bh_mono_ns();
    r->deadline_ns = call->timeout_ns ? r->start_ns + call->timeout_ns : 0;
    bh_buf_reset(&r->body);
    bh_buf_reset(&r->url);
    bh_buf_adds(&r->url, c->base);
    bh_buf_adds(&r->url, call->path);
    if (c->field_manager && bh_word_at("POST PUT PATCH", r->method) >= 0) {
        bh_buf_adds(&r->url, strchr(call->path, '?') ? "&fieldManager=" : "?fieldManager=");
        bh_buf_adds(&r->url, c->field_manager);
    }
    bh_buf_reset(&r->request_body);
    if (call->body_n)
        bh_buf_add(&r->request_body, call->body, call->body_n);
    r->headers = bh_api_headers_get(c, call);
    /* from here on the caller's strings are not needed */
    r->call.method = r->method;
    r->call.path = NULL;
    r->call.body = NULL;
    r->call.content_type = r->headers->content_type;
    r->call.accept = r->headers->accept;
    r->call.extra_header = r->headers->extra;
    if (!call->long_lived &&
        (!TAILQ_EMPTY(&c->reqs[BH_REQ_WAITING]) || !bh_api_limit_take(&c->limit, bh_mono_ns()))) {
        set_state(r, BH_REQ_WAITING);
        set_alarm(c);
    } else {
        launch(r);
    }
    return r;
}

void bh_api_cancel(struct bh_api_req *r)
{
    if (r->state == BH_REQ_CANCELED)
        return;
    set_state(r, BH_REQ_CANCELED);
    bh_api_kick(r->c);
}

unsigned bh_api_in_flight(const struct bh_api_client *c)
{
    return c->n_live;
}

/* ---- requests that wait for a command's credentials ------------------------------------------ */

/* Each once: one that is held again waits for the next run of the command. */
static void unhold(struct bh_api_client *c)
{
    struct bh_api_req_list held;
    struct bh_api_req *r;

    TAILQ_INIT(&held);
    TAILQ_CONCAT(&held, &c->reqs[BH_REQ_HELD], link);
    while ((r = TAILQ_FIRST(&held))) {
        TAILQ_REMOVE(&held, r, link);
        TAILQ_INSERT_TAIL(&c->reqs[BH_REQ_HELD], r, link);
        if (c->exec->failure.msg[0])
            give_up(r, BH_API_TRANSPORT, c->exec->failure.msg);
        else
            launch(r);
    }
    set_alarm(c);
}

void bh_api_unhold(struct bh_api_client *c)
{
    c->busy++;
    unhold(c);
    bh_api_leave(c);
}

/* ---- deferred work --------------------------------------------------------------------------- */

static void on_pump(uv_timer_t *h)
{
    struct bh_api_client *c = bh_container_of(h, struct bh_api_client, pump);
    struct bh_api_req *r;
    struct bh_api_pool *p, *next;

    c->busy++;
    while ((r = TAILQ_FIRST(&c->reqs[BH_REQ_CANCELED])))
        give_up(r, BH_API_CANCELED, "canceled");
    while ((r = TAILQ_FIRST(&c->reqs[BH_REQ_QUEUED])))
        launch(r);
    if (!TAILQ_EMPTY(&c->reqs[BH_REQ_HELD]) && !c->exec->running)
        unhold(c);
    for (p = TAILQ_FIRST(&c->retired); p; p = next) {
        next = TAILQ_NEXT(p, link);
        if (p->in_flight)
            continue;
        TAILQ_REMOVE(&c->retired, p, link);
        bh_api_pool_free(p);
    }
    bh_api_leave(c);
}

static void expire(struct bh_api_req_list *list, uint64_t now)
{
    struct bh_api_req *r, *next;
    for (r = TAILQ_FIRST(list); r; r = next) {
        next = TAILQ_NEXT(r, link);
        bool idle = r->state == BH_REQ_TIMED && now >= r->last_byte_ns + r->call.idle_timeout_ns;
        bool late = (r->state == BH_REQ_WAITING || r->state == BH_REQ_HELD) && r->deadline_ns &&
                    now >= r->deadline_ns;
        if (idle || late) {
            give_up(r, BH_API_TIMEOUT,
                    idle ? "no byte arrived in time"
                         : "deadline passed while waiting for its turn");
            next = TAILQ_FIRST(list); /* the callback may have changed the list */
        }
    }
}

static void on_alarm(uv_timer_t *h)
{
    struct bh_api_client *c = bh_container_of(h, struct bh_api_client, alarm);
    struct bh_api_req *r, *next;
    const uint64_t now = bh_mono_ns();

    c->busy++;
    expire(&c->reqs[BH_REQ_TIMED], now);
    expire(&c->reqs[BH_REQ_WAITING], now);
    expire(&c->reqs[BH_REQ_HELD], now);
    for (r = TAILQ_FIRST(&c->reqs[BH_REQ_DELAYED]); r; r = next) {
        next = TAILQ_NEXT(r, link);
        if (r->due_ns <= now)
            launch(r);
    }
    while ((r = TAILQ_FIRST(&c->reqs[BH_REQ_WAITING])) &&
           bh_api_limit_take(&c->limit, bh_mono_ns()))
        launch(r);
    set_alarm(c);
    bh_api_leave(c);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void split_server(struct bh_api_client *c)
{
    const char *server = c->cfg->server, *host = strstr(server, "://") + 3;
    const char *path = strchr(host, '/');
    size_t n = path ? (size_t)(path - host) : strlen(host);
    c->tls = strncmp(server, "https:", 6) == 0;
    c->host = bh_strndup(host, n);
    c->loopback = strncmp(host, "127.", 4) == 0 || strncmp(host, "[::1]", 5) == 0 ||
                  (strncmp(host, "localhost", 9) == 0 && (n == 9 || host[9] == ':'));
    const char *colon = strrchr(c->host, ':');
    if (colon && strchr(colon, ']'))
        colon = NULL; /* of a bare [v6] address */
    const char *name = c->cfg->tls_server_name;
    if (!c->tls || !name) {
        c->base = bh_strdup(server);
        c->origin_n = (size_t)(host - server) + n;
        return;
    }
    /* SNI and verification follow the URL's host; the address comes from CONNECT_TO. */
    const char *port = colon ? colon + 1 : "443";
    int host_n = (int)(colon ? (size_t)(colon - c->host) : n);
    char *to = bh_asprintf("%s:%s:%.*s:%s", name, port, host_n, c->host, port);
    c->base = bh_asprintf("https://%s:%s%s", name, port, path ? path : "");
    c->origin_n = strlen(c->base) - (path ? strlen(path) : 0);
    c->connect_to = curl_slist_append(NULL, to);
    free(to);
}

static void curl_once(void)
{
    CURLcode rc = curl_global_init(CURL_GLOBAL_DEFAULT);
    bh_assert(rc == CURLE_OK);
    /* A peer that closes while TLS writes is an error of that request, not the end of the process;
     * libcurl leaves the signal to us (CURLOPT_NOSIGNAL). */
    signal(SIGPIPE, SIG_IGN);
}

static void free_memory(struct bh_api_client *c)
{
    struct bh_api_req *r, *next;
    for (r = TAILQ_FIRST(&c->reqs[BH_REQ_FREE]); r; r = next) {
        next = TAILQ_NEXT(r, link);
        free_spare(r);
    }
    bh_api_headers_flush(c);
    bh_api_limit_fini(&c->limit);
    bh_api_creds_unref(c->creds);
    bh_api_config_free(c->cfg);
    curl_slist_free_all(c->connect_to);
    bh_wipe(c->token);
    free(c->base);
    free(c->host);
    free(c->user_agent);
    free(c->field_manager);
    if (c->exec)
        bh_buf_fini(&c->exec->text);
    free(c->exec);
    free(c);
}

int bh_api_client_new(uv_loop_t *loop, const struct bh_api_config *cfg,
                      const struct bh_api_options *o, struct bh_api_client **ret,
                      struct bh_err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, curl_once);

    struct bh_api_client *c = bh_calloc(1, sizeof(*c));
    for (int i = 0; i < BH_REQ_STATES; i++)
        TAILQ_INIT(&c->reqs[i]);
    TAILQ_INIT(&c->retired);
    LIST_INIT(&c->headers);
    c->loop = loop;
    c->cfg = bh_api_config_copy(cfg);
    c->user_agent = bh_strdup(o->user_agent ? o->user_agent : "berth/" BH_VERSION);
    c->field_manager = o->field_manager ? bh_strdup(o->field_manager) : NULL;
    c->max_connections = o->max_connections ? o->max_connections : MAX_CONNECTIONS_DEFAULT;
    c->json = o->json;
    c->certs_checked_ns = bh_mono_ns();
    split_server(c);
    int rc = bh_api_limit_init(&c->limit, o->qps, o->burst, o->limit_file, err);
    if (rc == 0)
        rc = bh_api_creds_load(c->cfg, &c->creds, err);
    if (rc == 0) {
        c->token = c->cfg->token ? bh_strdup(c->cfg->token) : NULL;
        bh_api_token_refresh(c, true);
        if (c->cfg->token_file && !c->token)
            rc = bh_err_set(err, -ENOENT, "token file \"%s\": holds no readable token",
                            c->cfg->token_file);
    }
    if (rc < 0) {
        free_memory(c);
        return rc;
    }
    if (c->cfg->exec) {
        c->exec = bh_calloc(1, sizeof(*c->exec));
        c->exec->c = c;
    }
    bh_api_metrics_init(c, o->metrics);
    uv_timer_init(loop, &c->alarm);
    uv_timer_init(loop, &c->pump);
    uv_timer_init(loop, &c->company);
    c->alarm.data = c->pump.data = c->company.data = c;
    c->open_handles = 3;
    for (int i = 0; i < BH_API_POOLS; i++)
        c->pool[i] = bh_api_pool_new(c, i != BH_API_POOL_SHORT);
    if (o->lean) {
        c->lane_pool = lane_pool(c);
        c->lanes = bh_lanes_new(c, o);
    }
    *ret = c;
    return 0;
}

bool bh_api_client_json(const struct bh_api_client *c)
{
    return c->json;
}

void bh_api_client_reload(struct bh_api_client *c)
{
    bh_api_token_refresh(c, true);
    bh_api_exec_expire(c);
    if (bh_api_certs_refresh(c, true))
        new_connections(c);
}

void bh_api_handle_closed(struct bh_api_client *c)
{
    struct bh_api_req *r;
    if (--c->open_handles)
        return;
    /* The analyzer does not see that r has left the list, for it knows the list by tqe_prev. */
    while ((r = TAILQ_FIRST(&c->reqs[BH_REQ_CANCELED])))
        deliver(r, BH_API_CANCELED, "canceled"); /* NOLINT(clang-analyzer-unix.Malloc) */
    free_memory(c);
}

void bh_api_on_closed(uv_handle_t *h)
{
    bh_api_handle_closed(h->data);
}

void bh_api_leave(struct bh_api_client *c)
{
    if (--c->busy == 0 && c->closing && c->in_curl == 0) {
        /* Everything but the callbacks at once, so that a loop that is drained next finds no loose
         * ends. */
        struct bh_api_req *r;
        struct bh_api_pool *p;
        for (int i = BH_REQ_FREE + 1; i < BH_REQ_CANCELED; i++)
            while ((r = TAILQ_FIRST(&c->reqs[i])))
                set_state(r, BH_REQ_CANCELED);
        TAILQ_FOREACH(r, &c->reqs[BH_REQ_CANCELED], link)
            stop_request(r);
        bh_lanes_close(c->lanes);
        while ((p = TAILQ_FIRST(&c->retired))) {
            TAILQ_REMOVE(&c->retired, p, link);
            bh_api_pool_free(p);
        }
        for (int i = 0; i < BH_API_POOLS; i++)
            bh_api_pool_free(c->pool[i]);
        if (c->lane_pool)
            bh_api_pool_free(c->lane_pool);
        bh_api_sockets_close(c);
        bh_api_exec_close(c);
        uv_close((uv_handle_t *)&c->alarm, bh_api_on_closed);
        uv_close((uv_handle_t *)&c->pump, bh_api_on_closed);
    }
}

void bh_api_client_free(struct bh_api_client *c)
{
    if (!c || c->closing)
        return;
    c->closing = true;
    c->busy++;
    bh_api_leave(c);
}
