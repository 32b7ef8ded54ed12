/* SPDX-License-Identifier: Apache-2.0
 *
 * front/user.h - who a caller is
 *
 * Shared by reference between requests and caches.
 * Threads:    the loop's.
 * Upstream:   apiserver/pkg/authentication/user.
 */
#ifndef BH_FRONT_USER_H
#define BH_FRONT_USER_H

#include "common/base/buf.h"
#include "common/data/json.h"

#define BH_USER_ANONYMOUS        "system:anonymous"
#define BH_GROUP_MASTERS         "system:masters"
#define BH_GROUP_AUTHENTICATED   "system:authenticated"
#define BH_GROUP_UNAUTHENTICATED "system:unauthenticated"

struct bh_user_extra {
    char *key, *value; /* a key may come several times */
};
struct bh_user {
    unsigned refs;
    char *name, *uid;
    char **groups;
    size_t n_groups;
    struct bh_user_extra *extra;
    size_t n_extra;
};
struct bh_user *bh_user_new(const char *name, const char *uid); /* refs = 1; uid may be NULL */
struct bh_user *bh_user_ref(struct bh_user *u);
void bh_user_unref(struct bh_user *u); /* NULL allowed */
void bh_user_add_group(struct bh_user *u, const char *group);
void bh_user_add_extra(struct bh_user *u, const char *key, const char *value);
bool bh_user_in(const struct bh_user *u, const char *group);
/* Adds system:authenticated, but not to the anonymous user. */
void bh_user_authenticated(struct bh_user *u);
/* status.user of a TokenReview; NULL: it has no name, a member of another type than upstream's, or a text
 * that holds NUL. */
struct bh_user *bh_user_of_review(const struct bh_json *user);
/* Members "user", "groups", "uid", "extra" of a SubjectAccessReview's spec, without braces. */
void bh_user_write(const struct bh_user *u, struct bh_buf *out);
#endif
