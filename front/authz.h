/* SPDX-License-Identifier: Apache-2.0
 *
 * front/authz.h - may this caller do that
 *
 * The first that says yes wins: group system:masters, --authorization-always-allow-paths (exact, or
 * with a * at the end), SubjectAccessReview (remembered). Without --authorization-kubeconfig
 * everything else is forbidden. When the API server cannot be asked, the answer is no.
 * Threads:    the loop's.
 * Upstream:   apiserver/pkg/authorization/{authorizerfactory/delegating.go, path/path.go},
 *             apis/apiserver plugin webhook authorizer.
 */
#ifndef BH_FRONT_AUTHZ_H
#define BH_FRONT_AUTHZ_H

#include "common/flags/kube_flags.h"
#include "front/review.h"

/* What the API server answers about what a user may do. */
extern const struct bh_review_form bh_access_review;
struct bh_authz;
struct bh_authz_options {
    const struct bh_authz_flags *flags; /* borrowed */
    struct bh_api_client *client;       /* NULL = no API server to ask */
    struct bh_metrics *metrics;         /* may be NULL */
};
/* 0; -EINVAL: a path with a * elsewhere than at its end. */
int bh_authz_new(uv_loop_t *loop, const struct bh_authz_options *o, struct bh_authz **ret,
                 struct bh_err *err);
void bh_authz_free(struct bh_authz *a); /* NULL allowed */
void bh_authz_forget(struct bh_authz *a);
/* verb: the method in lower case; from: the caller's address. done and what is returned: as
 * bh_reviews_ask(). */
struct bh_review_wait *bh_authz_ask(struct bh_authz *a, const struct bh_user *u, const char *verb,
                                    const char *path, const char *from, bh_verdict_done *done,
                                    void *arg);
/* Does a pattern of the list cover path? */
bool bh_authz_path_allowed(const struct bh_opt_list *patterns, const char *path);
#endif
