/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/extender/extender.c - life of the extenders: from the configuration to connections
 *
 * Owns:       one client (pool of connections) an extender, on a loop of our own: a cycle that
 *             waits runs this loop and nothing else, see call.c. Fails with: -EINVAL at start, as
 *             upstream; an extender whose URL cannot be used is an error of its calls, as upstream.
 * Upstream:   pkg/scheduler/extender.go (NewHTTPExtender, makeTransport, IsInterested), net/http
 *             (ProxyFromEnvironment).
 */
#include <ctype.h>
#include <errno.h>
#include <strings.h>

#include "common/base/loop.h"
#include "common/base/metrics.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/extender/ext_int.h"

#define CONNECTIONS_MAX 64                  /* of HTTP/1.1, for one extender */
#define REPLIES_MAX     ((size_t)512 << 20) /* memory for the decoded replies of one cycle */

const char *const bh_ext_verb_names[BH_EXT_VERBS] = {"filter", "prioritize", "preempt", "bind"};

const char *bh_ext_verb_path(const struct bh_extender_config *c, enum bh_ext_verb v)
{
    const char *const verbs[BH_EXT_VERBS] = {c->filter_verb, c->prioritize_verb, c->preempt_verb,
                                             c->bind_verb};
    return verbs[v];
}

/* ---- URLs ------------------------------------------------------------------------------------ */

/* Without the password of "https://user:password@host", as Go prints URLs in errors. */
static char *mask(const char *url)
{
    const char *host = strstr(url, "://"), *at, *colon;

    if (!host)
        return bh_strdup(url);
    host += 3;
    size_t n = strcspn(host, "/?#");
    at = memrchr(host, '@', n);
    colon = at ? memchr(host, ':', (size_t)(at - host)) : NULL;
    if (!colon)
        return bh_strdup(url);
    return bh_asprintf("%.*s:xxxxx%s", (int)(colon - url), url, at);
}

/* "https://host:1/a/" -> origin "https://host:1", and "/a/<verb>" each verb. */
static void split_urls(struct bh_ext_one *e)
{
    size_t n = strlen(e->c->url_prefix);
    BH_CLEANUP(bh_freep) char *prefix = NULL;

    while (n && e->c->url_prefix[n - 1] == '/')
        n--;
    prefix = bh_strndup(e->c->url_prefix, n);
    e->name = mask(e->c->url_prefix);
    const char *host = strstr(prefix, "://");
    size_t origin = host ? (size_t)(host + 3 - prefix) + strcspn(host + 3, "/?#") : 0;
    e->origin = bh_strndup(prefix, origin);
    for (char *p = e->origin; *p && *p != ':'; p++)
        *p = (char)tolower((unsigned char)*p);
    for (unsigned v = 0; v < BH_EXT_VERBS; v++) {
        BH_CLEANUP(bh_freep) char *url = bh_asprintf("%s/%s", prefix, bh_ext_verb_path(e->c, v));
        e->url[v] = mask(url);
        /* Bytes that no URL may hold are written as %XX; a fragment is never sent. */
        const char *text = url + origin;
        struct bh_buf b = {0};
        if (*text != '/')
            bh_buf_addc(&b, '/');
        for (; *text && *text != '#'; text++) {
            unsigned char c = (unsigned char)*text;
            if (c > ' ' && c < 0x7f)
                bh_buf_addc(&b, (char)c);
            else
                bh_buf_addf(&b, "%%%02X", c);
        }
        e->path[v] = bh_buf_take(&b);
    }
    for (const char *p = e->c->url_prefix; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f) {
            e->unusable = bh_strdup("net/url: invalid control character in URL");
            return;
        }
    bool http = strncasecmp(prefix, "http://", 7) == 0;
    if (!http && strncasecmp(prefix, "https://", 8) != 0)
        e->unusable = bh_asprintf("unsupported protocol scheme \"%.*s\"",
                                  (int)(host ? host - prefix : 0), prefix);
    else if (prefix[http ? 7 : 8] == '\0' || prefix[http ? 7 : 8] == '/')
        e->unusable = bh_strdup("http: no Host in request URL");
}

/* As Go's client: the lower-case name first; HTTP_PROXY is not read in a CGI program. NULL: none.
 * Hosts of NO_PROXY are left to libcurl. */
static const char *proxy_from_environment(bool https)
{
    const char *lower = getenv(https ? "https_proxy" : "http_proxy");
    const char *upper = getenv(https ? "HTTPS_PROXY" : "HTTP_PROXY");

    if (lower && *lower)
        return lower;
    return upper && *upper && (https || !getenv("REQUEST_METHOD")) ? upper : NULL;
}

/* ---- connections ----------------------------------------------------------------------------- */

static char *text_or_null(const char *s)
{
    return *s ? bh_strdup(s) : NULL;
}

/* Data beats the file; a certificate without its key, or the other way round, is not used. */
static void set_tls(struct bh_api_config *to, const struct bh_extender_config *c)
{
    const struct bh_extender_tls *t = &c->tls;
    bool cert = (t->cert_data.n || *t->cert_file) && (t->key_data.n || *t->key_file);

    to->tls_server_name = text_or_null(t->server_name);
    to->insecure_skip_tls_verify =
        t->insecure || (c->enable_https && !t->ca_data.n && !*t->ca_file);
    if (t->ca_data.n)
        to->ca_pem = bh_strndup(t->ca_data.p, t->ca_data.n);
    else
        to->ca_file = text_or_null(t->ca_file);
    if (!cert)
        return;
    if (t->cert_data.n)
        to->cert_pem = bh_strndup(t->cert_data.p, t->cert_data.n);
    else
        to->cert_file = bh_strdup(t->cert_file);
    if (t->key_data.n)
        to->key_pem = bh_strndup(t->key_data.p, t->key_data.n);
    else
        to->key_file = bh_strdup(t->key_file);
}

static int add(struct bh_ext *x, const struct bh_extender_config *c, struct bh_err *err)
{
    const struct bh_api_options o = {.user_agent = "berth-scheduler/" BH_VERSION,
                                     .max_connections = CONNECTIONS_MAX};
    struct bh_ext_one *e = &x->v[x->n++];

    *e = (struct bh_ext_one){.x = x, .c = c};
    TAILQ_INIT(&e->binds);
    unsigned needs = BH_EXT_NEED_PENDING;
    if (!c->node_cache_capable && (*c->filter_verb || *c->prioritize_verb))
        needs |= BH_EXT_NEED_NODES;
    if (!c->node_cache_capable && *c->preempt_verb)
        needs |= BH_EXT_NEED_ASSIGNED;
    x->needs |= needs;
    x->any_managed |= c->n_managed > 0;
    split_urls(e);
    if (e->unusable)
        return 0;
    struct bh_api_config *cfg = bh_calloc(1, sizeof *cfg);
    const char *proxy = proxy_from_environment(strncasecmp(e->origin, "https", 5) == 0);
    cfg->server = bh_strdup(e->origin);
    cfg->proxy_url = proxy ? bh_strdup(proxy) : NULL;
    set_tls(cfg, c);
    int rc = bh_api_client_new(&x->loop, cfg, &o, &e->client, err);
    bh_api_config_free(cfg);
    return rc;
}

int bh_ext_new(const struct bh_sched_config *c, bool (*waiting)(void *arg), void *arg,
               struct bh_ext **ret, struct bh_err *err)
{
    *ret = NULL;
    if (c->n_extenders == 0 && !c->whole_objects)
        return 0;
    if (c->n_extenders > BH_EXT_MAX)
        return bh_err_set(err, -EINVAL, "couldn't build extenders: there are %u, more than %u",
                          c->n_extenders, BH_EXT_MAX);
    struct bh_ext *x = bh_calloc(1, sizeof *x);
    x->v = bh_calloc(c->n_extenders + 1, sizeof *x->v);
    x->needs = c->whole_objects;
    x->whole = x->needs != 0;
    x->waiting = waiting;
    x->waiting_arg = arg;
    LIST_INIT(&x->calls);
    TAILQ_INIT(&x->bound);
    bh_arena_init(&x->arena, REPLIES_MAX);
    bh_arena_init(&x->decode, 0);
    int rc = uv_loop_init(&x->loop);
    bh_assert(rc == 0);
    uv_timer_init(&x->loop, &x->tick);
    for (uint32_t i = 0; i < c->n_extenders && rc == 0; i++)
        rc = add(x, &c->extenders[i], err);
    if (rc < 0) {
        bh_ext_free(x);
        return bh_err_prefix(err, rc, "couldn't build extenders");
    }
    *ret = x;
    return 0;
}

void bh_ext_free(struct bh_ext *x)
{
    if (!x)
        return;
    bh_assert(!x->in_wait);
    x->closing = true; /* no outcome is told any more, and the metrics may be gone */
    for (uint32_t i = 0; i < x->n; i++) {
        memset(x->v[i].requests, 0, sizeof x->v[i].requests);
        memset(x->v[i].duration, 0, sizeof x->v[i].duration);
        memset(x->v[i].errors, 0, sizeof x->v[i].errors);
        bh_api_client_free(x->v[i].client); /* ends the calls, see finished() in call.c */
    }
    bh_loop_drain_close(&x->loop);
    bh_ext_tell_bound(x); /* only frees */
    for (uint32_t i = 0; i < x->n; i++) {
        struct bh_ext_one *e = &x->v[i];
        for (unsigned v = 0; v < BH_EXT_VERBS; v++) {
            free(e->path[v]);
            free(e->url[v]);
        }
        free(e->name);
        free(e->origin);
        free(e->unusable);
    }
    bh_ext_objects_fini(x);
    bh_arena_fini(&x->arena);
    bh_arena_fini(&x->decode);
    bh_buf_fini(&x->body[0]);
    bh_buf_fini(&x->body[1]);
    free(x->v);
    free(x);
}

void bh_ext_serve(struct bh_ext *x)
{
    if (x->in_wait)
        return;
    uv_run(&x->loop, UV_RUN_NOWAIT);
    bh_ext_tell_bound(x);
}

int bh_ext_fd(const struct bh_ext *x)
{
    return uv_backend_fd(&x->loop);
}

bool bh_ext_busy(const struct bh_ext *x)
{
    return x && x->in_wait;
}

/* ---- what the configuration says ------------------------------------------------------------- */

uint32_t bh_ext_count(const struct bh_ext *x)
{
    return x ? x->n : 0;
}

const char *bh_ext_name(const struct bh_ext *x, uint32_t i)
{
    return x->v[i].name;
}

bool bh_ext_has(const struct bh_ext *x, uint32_t i, enum bh_ext_verb v)
{
    return *bh_ext_verb_path(x->v[i].c, v) != '\0';
}

bool bh_ext_ignorable(const struct bh_ext *x, uint32_t i)
{
    return x->v[i].c->ignorable;
}

int64_t bh_ext_weight(const struct bh_ext *x, uint32_t i)
{
    return x->v[i].c->weight;
}

uint64_t bh_ext_with(const struct bh_ext *x, unsigned verbs)
{
    uint64_t set = 0;

    for (uint32_t i = 0; x && i < x->n; i++)
        for (unsigned v = 0; v < BH_EXT_VERBS; v++)
            if (verbs >> v & 1 && bh_ext_has(x, i, v))
                set |= UINT64_C(1) << i;
    return set;
}

unsigned bh_ext_needs(const struct bh_ext *x)
{
    return x ? x->needs : 0;
}

/* ---- interest -------------------------------------------------------------------------------- */

static bool manages(const struct bh_extender_config *c, const char *resource)
{
    for (uint32_t i = 0; i < c->n_managed; i++)
        if (bh_streq(c->managed[i].name, resource))
            return true;
    return false;
}

static bool any_of(const struct bh_extender_config *c, K8s__QuantityEntry *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (manages(c, list[i]->key))
            return true;
    return false;
}

static bool in_containers(const struct bh_extender_config *c, K8s__Container *const *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const K8s__ResourceRequirements *r = v[i]->resources;
        if (r && (any_of(c, r->requests, r->n_requests) || any_of(c, r->limits, r->n_limits)))
            return true;
    }
    return false;
}

uint64_t bh_ext_interest_of(const struct bh_ext *x, const K8s__Pod *p)
{
    const K8s__PodSpec *s = p->spec;
    uint64_t set = 0;

    for (uint32_t i = 0; i < x->n; i++) {
        const struct bh_extender_config *c = x->v[i].c;
        if (c->n_managed == 0 || (s && (in_containers(c, s->containers, s->n_containers) ||
                                        in_containers(c, s->initcontainers, s->n_initcontainers))))
            set |= UINT64_C(1) << i;
    }
    return set;
}

uint64_t bh_ext_interest(const struct bh_ext *x, struct bh_str uid,
                         const struct bh_shape_rec *shape, const struct bh_symtab *tab)
{
    /* None where objects are kept for guests alone. */
    const uint64_t all = x->n ? UINT64_MAX >> (64 - x->n) : 0;
    uint64_t set = 0;

    if (!x->any_managed)
        return all;
    const struct bh_ext_object *o = bh_map_get(&x->pods, uid.p, uid.n);
    if (o)
        return o->interest & all;
    const struct bh_res *r = bh_rec_at(shape, shape->fit.scalars, struct bh_res);
    for (uint32_t i = 0; i < x->n; i++) {
        bool interested = x->v[i].c->n_managed == 0;
        for (uint32_t k = 0; k < shape->fit.scalars.n && !interested; k++)
            interested = manages(x->v[i].c, bh_sym_text(tab, r[k].name));
        set |= (uint64_t)interested << i;
    }
    return set;
}

/* ---- metrics --------------------------------------------------------------------------------- */

void bh_ext_set_metrics(struct bh_ext *x, struct bh_metrics *m)
{
    static const char *const reasons[BH_EXT_TROUBLES] = {
        "timeout", "unreachable", "status", "reply", "refused", "resting", "not_asked"};
    double bounds[15];

    bh_buckets_exponential(0.001, 2, BH_ARRAY_LEN(bounds), bounds);
    x->m_requests = bh_metric_new(m, BH_COUNTER, "berth_extender_requests_total",
                                  "Requests to HTTP extenders.", "extender,verb", NULL, 0);
    x->m_errors = bh_metric_new(
        m, BH_COUNTER, "berth_extender_errors_total",
        "Calls of HTTP extenders that ended with an error. resting: not asked, because it timed "
        "out again and again; refused: the reply carries an error.",
        "extender,verb,reason", NULL, 0);
    x->m_duration = bh_metric_new(m, BH_HISTOGRAM, "berth_extender_duration_seconds",
                                  "From the request to the end of the reply, or to its timeout.",
                                  "extender,verb", bounds, BH_ARRAY_LEN(bounds));
    for (uint32_t i = 0; i < x->n; i++) {
        struct bh_ext_one *e = &x->v[i];
        for (unsigned v = 0; v < BH_EXT_VERBS; v++) {
            if (!bh_ext_has(x, i, v))
                continue;
            e->requests[v] = bh_metric_cell(x->m_requests, e->name, bh_ext_verb_names[v]);
            e->duration[v] = bh_metric_cell(x->m_duration, e->name, bh_ext_verb_names[v]);
            for (unsigned t = 0; t < BH_EXT_TROUBLES; t++)
                e->errors[v][t] =
                    bh_metric_cell(x->m_errors, e->name, bh_ext_verb_names[v], reasons[t]);
        }
    }
}
