/* SPDX-License-Identifier: Apache-2.0
 *
 * front/authn.c - who is calling
 *
 * Invariants: what came from flags is never replaced by the configmap's.
 */
#include "front/authn.h"

#include <errno.h>
#include <strings.h>

#include "common/base/log.h"
#include "common/http/uri.h"

#define LOOKUP_PATH     "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
#define LOOKUP_EVERY_MS 60000u
#define LOOKUP_NS       UINT64_C(10000000000)
#define CONFIGMAP_BYTES ((size_t)2 << 20)
#define CA_FILE_BYTES   ((size_t)4 << 20)
#define TOKEN_PATH      "/apis/authentication.k8s.io/v1/tokenreviews"

struct bh_authn {
    uv_loop_t *loop;
    struct bh_authn_options o;
    struct bh_reviews *tokens; /* NULL = no token is looked at */
    struct bh_ca *client_ca;
    struct bh_front_proxy proxy;
    bool client_ca_given, proxy_given;
    struct bh_api_req *lookup;
    uv_timer_t again;
    bool looks, settled, troubled, closing, closed; /* closed: its timer is */
    char failure[512];
};

/* ---- tokens ---------------------------------------------------------------------------------- */

static struct bh_verdict *judge_token(const struct bh_json *status)
{
    const char *error = bh_json_get_text(status, "error");

    if (!bh_json_get_bool(status, "authenticated", false))
        return *error ? bh_verdict_new(BH_VERDICT_ERROR, error)
                      : bh_verdict_new(BH_VERDICT_NO, "invalid bearer token");
    struct bh_user *u = bh_user_of_review(bh_json_get(status, "user"));
    if (!u)
        return bh_verdict_new(BH_VERDICT_ERROR,
                              "the review's status.user is not a user with a name");
    struct bh_verdict *v = bh_verdict_new(BH_VERDICT_YES, NULL);
    bh_user_authenticated(u);
    v->user = u;
    return v;
}

const struct bh_review_form bh_token_review = {.kind = "TokenReview",
                                               .api_version = "authentication.k8s.io/v1",
                                               .path = TOKEN_PATH,
                                               .judge = judge_token};

const char *bh_bearer_token(const char *header)
{
    if (!header)
        return NULL;
    header += strspn(header, " \t");
    if (strncasecmp(header, "Bearer ", 7) != 0 || header[7] == ' ' || header[7] == '\0')
        return NULL;
    return header + 7;
}

/* ---- front proxy ----------------------------------------------------------------------------- */

static const char *header_of(const struct bh_credentials *c, const char *name)
{
    for (size_t i = 0; i < c->n_headers; i++)
        if (strcasecmp(c->headers[i].key, name) == 0)
            return c->headers[i].value;
    return NULL;
}

/* The first of the names that says something. */
static const char *first_header(const struct bh_credentials *c, const struct bh_proxy_names *names)
{
    for (size_t i = 0; i < names->n; i++) {
        const char *value = header_of(c, names->v[i]);
        if (value && *value)
            return value;
    }
    return NULL;
}

/* Lower case, %-escapes resolved; one that is malformed leaves the key as it is. */
static char *extra_key(const char *s)
{
    char *lower = bh_strdup(s);

    bh_lower(lower);
    char *out = bh_strdup(lower);
    bool plain = bh_http_unescape(out, false);
    free(plain ? lower : out);
    return plain ? out : lower;
}

struct bh_user *bh_front_proxy_user(const struct bh_front_proxy *p, const struct bh_credentials *c)
{
    const char *name = first_header(c, &p->list[BH_PROXY_USER]);
    const struct bh_proxy_names *groups = &p->list[BH_PROXY_GROUP];

    if (!name)
        return NULL;
    struct bh_user *u = bh_user_new(name, first_header(c, &p->list[BH_PROXY_UID]));
    for (size_t i = 0; i < groups->n; i++)
        for (size_t k = 0; k < c->n_headers; k++)
            if (strcasecmp(c->headers[k].key, groups->v[i]) == 0 && *c->headers[k].value)
                bh_user_add_group(u, c->headers[k].value);
    const struct bh_proxy_names *prefixes = &p->list[BH_PROXY_EXTRA];
    for (size_t i = 0; i < prefixes->n; i++) {
        size_t n = strlen(prefixes->v[i]);
        for (size_t k = 0; k < c->n_headers; k++) {
            if (strncasecmp(c->headers[k].key, prefixes->v[i], n) != 0)
                continue;
            BH_CLEANUP(bh_freep) char *key = extra_key(c->headers[k].key + n);
            bh_user_add_extra(u, key, c->headers[k].value);
        }
    }
    return u;
}

/* A new user, or NULL; err is set when the certificate is not good enough. */
static struct bh_user *by_proxy(const struct bh_authn *a, const struct bh_credentials *c,
                                struct bh_err *err)
{
    struct bh_user *proxy = NULL, *u = NULL;
    const struct bh_proxy_names *names = &a->proxy.list[BH_PROXY_ALLOWED];
    bool allowed = names->n == 0;

    if (!a->proxy.ca || !c->n_certs ||
        bh_ca_verify(a->proxy.ca, c->certs, c->n_certs, &proxy, err) < 0)
        return NULL;
    for (size_t i = 0; i < names->n; i++)
        allowed = allowed || bh_streq(names->v[i], proxy->name);
    if (allowed)
        u = bh_front_proxy_user(&a->proxy, c);
    else
        bh_err_set(err, -EPERM, "x509: subject with cn=%s is not in the allowed list", proxy->name);
    bh_user_unref(proxy);
    return u;
}

/* ---- the union ------------------------------------------------------------------------------- */

struct bh_review_wait *bh_authn_ask(struct bh_authn *a, const struct bh_credentials *c,
                                    bh_verdict_done *done, void *arg)
{
    struct bh_err err = {""};
    struct bh_user *u = by_proxy(a, c, &err);
    const char *token = a->tokens ? bh_bearer_token(header_of(c, "Authorization")) : NULL;

    if (!u && a->client_ca && c->n_certs)
        (void)bh_ca_verify(a->client_ca, c->certs, c->n_certs, &u, &err);
    if (!u && token) {
        size_t n = strcspn(token, " \t");
        struct bh_buf body BH_CLEANUP(bh_buf_fini) = {0};
        bh_buf_add_json(&body,
                        "{\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1\","
                        "\"metadata\":{},\"spec\":{\"token\":%.*s}}",
                        (int)n, token);
        struct bh_review_wait *w = bh_reviews_ask(a->tokens, token, n, &body, c->from, done, arg);
        explicit_bzero(body.p, body.n);
        return w;
    }
    if (!u && !*err.msg) {
        u = bh_user_new(BH_USER_ANONYMOUS, NULL);
        bh_user_add_group(u, BH_GROUP_UNAUTHENTICATED);
    }
    struct bh_verdict *v = bh_verdict_new(u ? BH_VERDICT_YES : BH_VERDICT_NO, err.msg);
    if (u)
        bh_user_authenticated(u);
    v->user = u;
    done(arg, v);
    bh_verdict_unref(v);
    return NULL;
}

/* ---- files and configmap --------------------------------------------------------------------- */

static int read_ca(const char *flag, const char *path, struct bh_ca **ca, struct bh_err *err)
{
    char *pem = NULL;
    size_t n = 0;
    struct bh_ca *next = NULL;

    if (!path || !*path)
        return 0;
    int rc = bh_read_file(path, CA_FILE_BYTES, &pem, &n);
    if (rc < 0)
        return bh_err_set(err, rc, "--%s: %s: %s", flag, path, strerror(-rc));
    rc = bh_ca_new(pem, n, &next, err);
    free(pem);
    if (rc < 0)
        return bh_err_prefix(err, rc, "--%s: %s", flag, path);
    bh_ca_free(*ca);
    *ca = next;
    return 0;
}

static int read_files(struct bh_authn *a, struct bh_err *err)
{
    const struct bh_authn_flags *f = a->o.flags;
    int rc = read_ca("client-ca-file", f->client_ca_file, &a->client_ca, err);

    return rc < 0 ? rc
                  : read_ca("requestheader-client-ca-file", f->requestheader_client_ca_file,
                            &a->proxy.ca, err);
}

static int take_configmap(struct bh_authn *a, struct bh_str body, struct bh_err *err)
{
    struct bh_ca *ca = NULL;
    struct bh_front_proxy proxy = {0};
    struct bh_arena arena;
    struct bh_json *v;

    bh_arena_init(&arena, 16 * CONFIGMAP_BYTES);
    int rc = bh_json_parse(&arena, body.p, body.n, 0, &v, err);
    if (rc == 0)
        rc = bh_extension_read(v, &ca, &proxy, err);
    bh_arena_fini(&arena);
    if (ca && !a->client_ca_given) {
        bh_ca_free(a->client_ca);
        a->client_ca = bh_take_ptr(ca);
    }
    if (proxy.ca && !a->proxy_given) {
        bh_front_proxy_fini(&a->proxy);
        a->proxy = proxy;
        proxy = (struct bh_front_proxy){0};
    }
    bh_ca_free(ca);
    bh_front_proxy_fini(&proxy);
    return rc;
}

/* Timer and lookup end in any order: the owner of a loop closes its timers first. */
static void on_closed(uv_handle_t *h)
{
    struct bh_authn *a = bh_container_of((uv_timer_t *)h, struct bh_authn, again);

    a->closed = true;
    if (!a->lookup)
        free(a);
}

static void on_lookup(void *arg, const struct bh_api_reply *r)
{
    struct bh_authn *a = arg;
    struct bh_err err = {""};
    int rc = 0;

    a->lookup = NULL;
    if (a->closing) {
        if (a->closed)
            free(a);
        return;
    }
    if (r->outcome != BH_API_OK)
        rc = bh_err_set(&err, -EIO, "%s", r->error ? r->error : "no connection");
    else if (r->code == 404)
        rc = 0; /* a cluster without one: nothing to know */
    else if (r->code != 200)
        rc = bh_err_set(&err, -EIO, "the API server answered with %d", r->code);
    else
        rc = take_configmap(a, r->body, &err);
    if (rc < 0) {
        if (!a->settled && !a->o.flags->tolerate_lookup_failure)
            snprintf(a->failure, sizeof(a->failure),
                     "unable to load configmap based request-header-client-ca-file: %s", err.msg);
        if (!a->troubled)
            bh_log_warn(
                "Unable to get configmap/extension-apiserver-authentication in kube-system. "
                "Requests of some clients may be refused",
                bh_kv_s("err", err.msg));
    }
    a->troubled = rc < 0;
    a->settled = true;
}

static void look(struct bh_authn *a)
{
    const struct bh_api_call call = {.method = "GET",
                                     .path = LOOKUP_PATH,
                                     .timeout_ns = LOOKUP_NS,
                                     .max_reply_bytes = CONFIGMAP_BYTES,
                                     .on_done = on_lookup,
                                     .arg = a};
    if (a->looks && !a->lookup)
        a->lookup = bh_api_start(a->o.client, &call);
}

static void on_again(uv_timer_t *t)
{
    look(bh_container_of(t, struct bh_authn, again));
}

void bh_authn_reload(struct bh_authn *a)
{
    struct bh_err err = {""};

    if (read_files(a, &err) < 0)
        bh_log_warn("Could not read an authority again", bh_kv_s("err", err.msg));
    if (a->tokens)
        bh_reviews_forget(a->tokens);
    look(a);
}

bool bh_authn_settled(const struct bh_authn *a)
{
    return a->settled || !a->looks;
}

const char *bh_authn_failure(const struct bh_authn *a)
{
    return *a->failure ? a->failure : NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

int bh_authn_new(uv_loop_t *loop, const struct bh_authn_options *o, struct bh_authn **ret,
                 struct bh_err *err)
{
    struct bh_authn *a = bh_calloc(1, sizeof(*a));

    a->loop = loop;
    a->o = *o;
    uv_timer_init(loop, &a->again);
    struct bh_front_proxy *p = &a->proxy;
    const struct bh_authn_flags *f = o->flags;
    const struct bh_opt_list *const given[BH_PROXY_LISTS] = {
        &f->requestheader_allowed_names, &f->requestheader_username_headers,
        &f->requestheader_group_headers, &f->requestheader_uid_headers,
        &f->requestheader_extra_prefixes};
    for (size_t k = 0; k < BH_PROXY_LISTS; k++)
        for (size_t i = 0; i < given[k]->n; i++)
            bh_proxy_names_add(&p->list[k], given[k]->v[i]);
    int rc = read_files(a, err);
    if (rc < 0) {
        bh_authn_free(a);
        return rc;
    }
    a->client_ca_given = a->client_ca != NULL;
    a->proxy_given = a->proxy.ca != NULL;
    if (o->client) {
        struct bh_reviews_options tokens = {.client = o->client,
                                            .form = &bh_token_review,
                                            .yes_ttl_ns = (uint64_t)f->token_cache_ttl_ns,
                                            .no_ttl_ns = (uint64_t)f->token_cache_ttl_ns};
        bh_reviews_metrics(&tokens, o->metrics, "berth_front_token_reviews_total",
                           "Bearer tokens: asked about, answered from memory, failed.");
        a->tokens = bh_reviews_new(loop, &tokens);
    }
    a->looks = o->client && !o->flags->skip_lookup;
    look(a);
    if (a->looks)
        uv_timer_start(&a->again, on_again, LOOKUP_EVERY_MS, LOOKUP_EVERY_MS);
    *ret = a;
    return 0;
}

void bh_authn_free(struct bh_authn *a)
{
    if (!a)
        return;
    a->closing = true;
    bh_reviews_free(a->tokens);
    bh_ca_free(a->client_ca);
    bh_front_proxy_fini(&a->proxy);
    if (a->lookup)
        bh_api_cancel(a->lookup);
    uv_close((uv_handle_t *)&a->again, on_closed);
}
