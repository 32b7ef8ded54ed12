/* SPDX-License-Identifier: Apache-2.0
 *
 * front/review.h - questions to the API server whose answers are remembered: TokenReview and
 * SubjectAccessReview
 *
 * One question is asked once, however many callers wait for it; its answer is kept for a while, at
 * most BH_REVIEW_ENTRIES of them. The oldest NO goes first, so that made-up tokens do not push out
 * those that are good. Failures are not kept. A failure that may pass (no connection, 429, 5xx) is
 * repeated as upstream does: five tries, 500 ms x1.5 between. Any client can make up questions. So
 * at most BH_REVIEW_ASKED are with the API server, of which BH_REVIEW_ASKED_EACH for one address;
 * BH_REVIEW_WAITING more wait for a turn, first come, first served among those whose address may
 * have another, BH_REVIEW_WAIT_NS at most. What is beyond is BH_VERDICT_BUSY. A question that no
 * caller waits for any more is taken back. Keys are hashed (SHA-256): no token is held longer than
 * its question.
 * Threads:    the loop's.
 * Upstream:   apiserver/pkg/authentication/token/cache,
 *             plugin/pkg/{authenticator/token,authorizer}/webhook.
 */
#ifndef BH_FRONT_REVIEW_H
#define BH_FRONT_REVIEW_H

#include "common/api/client.h"
#include "front/user.h"

#define BH_REVIEW_ENTRIES    4096u /* remembered */
#define BH_REVIEW_TRIES      5u
#define BH_REVIEW_ASKED      16u
#define BH_REVIEW_ASKED_EACH 8u
#define BH_REVIEW_WAITING    128u
#define BH_REVIEW_WAIT_NS    UINT64_C(2000000000)

/* BUSY: there are too many questions; it is worth coming back. */
enum bh_verdict_is { BH_VERDICT_YES, BH_VERDICT_NO, BH_VERDICT_ERROR, BH_VERDICT_BUSY };
struct bh_verdict {
    unsigned refs;
    enum bh_verdict_is is;
    char *why;            /* NO: the API server's reason, ERROR, BUSY: what failed; never NULL */
    struct bh_user *user; /* of a TokenReview that said YES */
};
struct bh_verdict *bh_verdict_new(enum bh_verdict_is is, const char *why);
void bh_verdict_unref(struct bh_verdict *v);
/* v is borrowed during the call. */
typedef void bh_verdict_done(void *arg, const struct bh_verdict *v);

/* One of the API's reviews: what its answers are. */
struct bh_review_form {
    const char *kind, *api_version, *path;
    /* The status of an answer of that kind and version; a new verdict. */
    struct bh_verdict *(*judge)(const struct bh_json *status);
};
/* Of the body of a 2xx answer; ERROR where it is not such a review. A text that holds NUL makes it none. */
struct bh_verdict *bh_review_read(const struct bh_review_form *form, struct bh_str body);

struct bh_reviews;
struct bh_review_wait; /* a caller that waits for an answer */
struct bh_reviews_options {
    struct bh_api_client *client;      /* borrowed */
    const struct bh_review_form *form; /* borrowed */
    uint64_t yes_ttl_ns, no_ttl_ns;
    uint64_t (*mono_ns)(void); /* NULL = bh_mono_ns; tests */
    uint64_t retry_ns;         /* 0 = 500 ms; tests */
    uint64_t wait_ns;          /* 0 = BH_REVIEW_WAIT_NS; tests */
    /* may be NULL */
    struct bh_cell *asked, *hits, *failed, *busy, *canceled;
};
/* Sets the cells; m NULL = no numbers. name, help: literals. */
void bh_reviews_metrics(struct bh_reviews_options *o, struct bh_metrics *m, const char *name,
                        const char *help);
struct bh_reviews *bh_reviews_new(uv_loop_t *loop, const struct bh_reviews_options *o);
/* Callers that wait hear BH_VERDICT_ERROR. Before the client is freed. NULL allowed. */
void bh_reviews_free(struct bh_reviews *r);
/* body is the whole review; from: the address of the client that makes us ask. done is called once:
 * at once when the answer is known or no server can be asked (NULL is returned), or later, unless
 * the wait that is returned has been canceled. */
struct bh_review_wait *bh_reviews_ask(struct bh_reviews *r, const void *key, size_t key_n,
                                      const struct bh_buf *body, const char *from,
                                      bh_verdict_done *done, void *arg);
/* Before done was called, which it will not be any more. */
void bh_reviews_cancel(struct bh_review_wait *w);
void bh_reviews_forget(struct bh_reviews *r);        /* what is remembered */
size_t bh_reviews_count(const struct bh_reviews *r); /* remembered, asked and waiting */
#endif
