/* SPDX-License-Identifier: Apache-2.0
 *
 * front/authz.c - may this caller do that
 */
#include "front/authz.h"

#include <errno.h>

#define PATH "/apis/authorization.k8s.io/v1/subjectaccessreviews"
/* What is longer is asked and not remembered: upstream's limit for a key. */
#define KEY_MAX_BYTES 10000u

struct bh_authz {
    struct bh_authz_options o;
    struct bh_reviews *reviews; /* NULL = no API server to ask */
    uint64_t unique;            /* makes keys of their own */
};

static bool covers(const char *pattern, const char *path)
{
    while (*pattern == '/')
        pattern++;
    while (*path == '/')
        path++;
    size_t n = strlen(pattern);
    return n && pattern[n - 1] == '*' ? strncmp(pattern, path, n - 1) == 0
                                      : bh_streq(pattern, path);
}

bool bh_authz_path_allowed(const struct bh_opt_list *patterns, const char *path)
{
    for (size_t i = 0; i < patterns->n; i++)
        if (*patterns->v[i] && covers(patterns->v[i], path))
            return true;
    return false;
}

static struct bh_verdict *judge(const struct bh_json *status)
{
    return bh_verdict_new(bh_json_get_bool(status, "allowed", false) ? BH_VERDICT_YES
                                                                     : BH_VERDICT_NO,
                          bh_json_get_text(status, "reason"));
}

const struct bh_review_form bh_access_review = {.kind = "SubjectAccessReview",
                                                .api_version = "authorization.k8s.io/v1",
                                                .path = PATH,
                                                .judge = judge};

static struct bh_review_wait *tell(enum bh_verdict_is is, bh_verdict_done *done, void *arg)
{
    struct bh_verdict *v = bh_verdict_new(is, NULL);

    done(arg, v);
    bh_verdict_unref(v);
    return NULL;
}

struct bh_review_wait *bh_authz_ask(struct bh_authz *a, const struct bh_user *u, const char *verb,
                                    const char *path, const char *from, bh_verdict_done *done,
                                    void *arg)
{
    struct bh_buf body BH_CLEANUP(bh_buf_fini) = {0};

    if (bh_user_in(u, BH_GROUP_MASTERS) ||
        bh_authz_path_allowed(&a->o.flags->always_allow_paths, path))
        return tell(BH_VERDICT_YES, done, arg);
    if (!a->reviews)
        return tell(BH_VERDICT_NO, done, arg);
    bh_buf_add_json(
        &body,
        "{\"kind\":\"SubjectAccessReview\",\"apiVersion\":\"authorization.k8s.io/v1\","
        "\"metadata\":{},\"spec\":{\"nonResourceAttributes\":{\"path\":%s,\"verb\":%s},",
        path, verb);
    bh_user_write(u, &body);
    bh_buf_adds(&body, "}}");
    a->unique++;
    bool remember = body.n <= KEY_MAX_BYTES;
    const void *key = remember ? (const void *)body.p : &a->unique;
    struct bh_review_wait *w = bh_reviews_ask(
        a->reviews, key, remember ? body.n : sizeof(a->unique), &body, from, done, arg);
    return w;
}

int bh_authz_new(uv_loop_t *loop, const struct bh_authz_options *o, struct bh_authz **ret,
                 struct bh_err *err)
{
    struct bh_reviews_options ro = {.client = o->client,
                                    .form = &bh_access_review,
                                    .yes_ttl_ns = (uint64_t)o->flags->authorized_ttl_ns,
                                    .no_ttl_ns = (uint64_t)o->flags->unauthorized_ttl_ns};
    const struct bh_opt_list *paths = &o->flags->always_allow_paths;

    for (size_t i = 0; i < paths->n; i++) {
        const char *star = strchr(paths->v[i], '*');
        if (star && star[1])
            return bh_err_set(err, -EINVAL, "only trailing * allowed in \"%s\"", paths->v[i]);
    }
    struct bh_authz *a = bh_calloc(1, sizeof(*a));
    a->o = *o;
    bh_reviews_metrics(&ro, o->metrics, "berth_front_access_reviews_total",
                       "Access reviews: asked about, answered from memory, failed.");
    if (o->client)
        a->reviews = bh_reviews_new(loop, &ro);
    *ret = a;
    return 0;
}

void bh_authz_forget(struct bh_authz *a)
{
    if (a->reviews)
        bh_reviews_forget(a->reviews);
}

void bh_authz_free(struct bh_authz *a)
{
    if (!a)
        return;
    bh_reviews_free(a->reviews);
    free(a);
}
