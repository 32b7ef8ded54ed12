/* SPDX-License-Identifier: Apache-2.0
 *
 * front/authn.h - who is calling
 *
 * The first that knows the caller wins: request headers of a front proxy, a client certificate, a
 * bearer token (TokenReview), anonymous. What a caller brings and none of these accepts is an error
 * ("Unauthorized"), never anonymous; what cannot be checked here is ignored, as upstream does: a
 * token without --authentication-kubeconfig, a certificate without a client CA. Client CA and front
 * proxy come from flags, or from the configmap kube-system/extension-apiserver-authentication,
 * which is read again once a minute.
 * Threads:    the loop's.
 * Upstream:   apiserver/pkg/authentication/authenticatorfactory/delegating.go.
 */
#ifndef BH_FRONT_AUTHN_H
#define BH_FRONT_AUTHN_H

#include "common/flags/kube_flags.h"
#include "common/http/server.h"
#include "front/review.h"
#include "front/x509.h"

struct bh_front_header {
    const char *key, *value;
};
/* What the request brings; a test can fill it without a connection. */
struct bh_credentials {
    const struct bh_str *certs; /* DER, leaf first */
    size_t n_certs;
    const struct bh_front_header *headers; /* all of them */
    size_t n_headers;
    const char *from; /* the address */
};
/* Which proxies may speak for others, and in which headers. */
enum bh_proxy_list {
    BH_PROXY_ALLOWED, /* names of its certificate; none = any */
    BH_PROXY_USER,
    BH_PROXY_GROUP,
    BH_PROXY_UID,
    BH_PROXY_EXTRA, /* prefixes */
    BH_PROXY_LISTS
};
struct bh_front_proxy {
    struct bh_ca *ca; /* NULL = no proxy */
    struct bh_proxy_names {
        char **v;
        size_t n;
    } list[BH_PROXY_LISTS];
};

struct bh_authn;
struct bh_authn_options {
    const struct bh_authn_flags *flags; /* borrowed */
    struct bh_api_client *client;       /* NULL = no TokenReview, no configmap */
    struct bh_metrics *metrics;         /* may be NULL */
};
/* Reads the files of the flags: 0, or -errno with a text that names the flag. */
int bh_authn_new(uv_loop_t *loop, const struct bh_authn_options *o, struct bh_authn **ret,
                 struct bh_err *err);
void bh_authn_free(struct bh_authn *a); /* NULL allowed; drain the loop */
/* Files and configmap again, now. What cannot be read stays as it was. */
void bh_authn_reload(struct bh_authn *a);
/* False while the first look at the configmap is under way. */
bool bh_authn_settled(const struct bh_authn *a);
/* Fatal trouble with the first look (authentication-tolerate-lookup-failure=false), or NULL. */
const char *bh_authn_failure(const struct bh_authn *a);

/* done is called once: YES with a user, BUSY, or unauthorized, with the reason for the log. As
 * bh_reviews_ask(): NULL = it was called, else what bh_reviews_cancel() takes. */
struct bh_review_wait *bh_authn_ask(struct bh_authn *a, const struct bh_credentials *c,
                                    bh_verdict_done *done, void *arg);

/* The token of an Authorization header, NULL when there is none. */
/* What the API server answers about tokens. */
extern const struct bh_review_form bh_token_review;
const char *bh_bearer_token(const char *header);
/* The user that the proxy's headers name, a new one; NULL = none of them is there. */
struct bh_user *bh_front_proxy_user(const struct bh_front_proxy *p, const struct bh_credentials *c);
/* extension.c: the configmap's data into what it stands for. Members that are not there or make no
 * sense leave *client_ca, *proxy alone; -EINVAL then. */
int bh_extension_read(const struct bh_json *configmap, struct bh_ca **client_ca,
                      struct bh_front_proxy *proxy, struct bh_err *err);
void bh_proxy_names_add(struct bh_proxy_names *l, const char *name);
void bh_front_proxy_fini(struct bh_front_proxy *p);
#endif
