/* SPDX-License-Identifier: Apache-2.0
 *
 * front/review.c - questions to the API server whose answers are remembered
 *
 * Owns:       entries and who waits for them.
 * Invariants: an entry with a verdict has no waiters; one without has a call or a timer under way
 *             and is not forgotten before it has told them. `by_age` holds entries with a verdict.
 */
#include "front/review.h"

#include <errno.h>
#include <openssl/sha.h>
#include <sys/queue.h>

#include "common/base/map.h"

#define CALL_NS     UINT64_C(10000000000)
#define RETRY_NS    UINT64_C(500000000)
#define REPLY_BYTES ((size_t)1 << 20)

struct waiter {
    struct waiter *next;
    void (*done)(void *arg, const struct bh_verdict *v);
    void *arg;
};
struct entry {
    TAILQ_ENTRY(entry) link; /* by_age or asking */
    struct bh_reviews *r;
    unsigned char key[SHA256_DIGEST_LENGTH];
    struct bh_verdict *verdict; /* NULL while it is asked for */
    uint64_t until_ns;
    struct waiter *waiters, **last;
    struct bh_buf body;
    struct bh_api_req *call;
    uv_timer_t again;
    bool timer_made, orphan; /* orphan: r is gone */
    unsigned tries;
};
TAILQ_HEAD(entries, entry);
struct bh_reviews {
    struct bh_reviews_options o;
    char *path;
    uv_loop_t *loop;
    struct bh_map map;
    struct entries by_age, asking;
    struct bh_rand rand;
};

/* ---- verdicts ----------------------------------------------------------------------------------
 */

struct bh_verdict *bh_verdict_new(enum bh_verdict_is is, const char *why)
{
    struct bh_verdict *v = bh_calloc(1, sizeof(*v));

    v->refs = 1;
    v->is = is;
    v->why = bh_strdup(why ? why : "");
    return v;
}

void bh_verdict_unref(struct bh_verdict *v)
{
    if (!v || --v->refs)
        return;
    bh_user_unref(v->user);
    free(v->why);
    free(v);
}

/* ---- entries -----------------------------------------------------------------------------------
 */

static void on_timer_closed(uv_handle_t *h)
{
    free(bh_container_of((uv_timer_t *)h, struct entry, again));
}

static void entry_free(struct entry *e)
{
    bh_verdict_unref(e->verdict);
    if (e->body.p)
        explicit_bzero(e->body.p, e->body.n);
    bh_buf_fini(&e->body);
    if (e->timer_made)
        uv_close((uv_handle_t *)&e->again, on_timer_closed);
    else
        free(e);
}

static void drop(struct bh_reviews *r, struct entry *e)
{
    TAILQ_REMOVE(e->verdict ? &r->by_age : &r->asking, e, link);
    (void)bh_map_del(&r->map, (const char *)e->key, sizeof(e->key));
    entry_free(e);
}

static void count(struct bh_cell *c)
{
    if (c)
        bh_cell_add(c, 1);
}

/* Takes v. */
static void settle(struct entry *e, struct bh_verdict *v)
{
    struct bh_reviews *r = e->r;
    struct waiter *w = e->waiters, *next;
    uint64_t ttl = v->is == BH_VERDICT_YES ? r->o.yes_ttl_ns : r->o.no_ttl_ns;

    e->waiters = NULL;
    if (v->is == BH_VERDICT_ERROR) {
        count(r->o.failed);
        drop(r, e);
    } else {
        TAILQ_REMOVE(&r->asking, e, link);
        e->verdict = v;
        v->refs++;
        e->until_ns = r->o.mono_ns() + ttl;
        TAILQ_INSERT_TAIL(&r->by_age, e, link);
        explicit_bzero(e->body.p, e->body.n);
        bh_buf_fini(&e->body);
    }
    for (; w; w = next) { /* they may ask again: the entry is not touched any more */
        next = w->next;
        w->done(w->arg, v);
        free(w);
    }
    bh_verdict_unref(v);
}

/* ---- asking ------------------------------------------------------------------------------------
 */

static void ask(struct entry *e);

static void on_again(uv_timer_t *t)
{
    ask(bh_container_of(t, struct entry, again));
}

static void try_later(struct entry *e)
{
    double ms = (double)e->r->o.retry_ns / 1e6;

    for (unsigned i = 1; i < e->tries; i++)
        ms *= 1.5;
    ms *= 1 + 0.2 * bh_rand_unit(&e->r->rand);
    if (!e->timer_made) {
        uv_timer_init(e->r->loop, &e->again);
        e->timer_made = true;
    }
    uv_timer_start(&e->again, on_again, (uint64_t)ms, 0);
}

static struct bh_verdict *judge(const struct bh_reviews *r, const struct bh_api_reply *p)
{
    struct bh_arena a;
    struct bh_json *v = NULL;
    struct bh_verdict *verdict = NULL;
    struct bh_err err = {0};

    bh_arena_init(&a, 16 * REPLY_BYTES);
    if (bh_json_parse(&a, p->body.p, p->body.n, 0, &v, &err) == 0 && bh_json_get(v, "status"))
        verdict = r->o.judge(bh_json_get(v, "status"));
    bh_arena_fini(&a);
    return verdict ? verdict
                   : bh_verdict_new(BH_VERDICT_ERROR, "the API server's answer is no review");
}

static void on_done(void *arg, const struct bh_api_reply *p)
{
    struct entry *e = arg;
    char text[256];

    e->call = NULL;
    if (e->orphan) {
        entry_free(e);
        return;
    }
    if (p->outcome == BH_API_OK && p->code >= 200 && p->code < 300) {
        settle(e, judge(e->r, p));
        return;
    }
    bool may_pass = p->outcome != BH_API_OK || p->code == 429 || p->code >= 500;
    if (may_pass && p->outcome != BH_API_CANCELED && e->tries < BH_REVIEW_TRIES) {
        try_later(e);
        return;
    }
    if (p->outcome == BH_API_OK)
        snprintf(text, sizeof(text), "the API server answered %s with %d", e->r->path, p->code);
    else
        snprintf(text, sizeof(text), "the API server could not be asked: %s",
                 p->error ? p->error : "no connection");
    settle(e, bh_verdict_new(BH_VERDICT_ERROR, text));
}

static void ask(struct entry *e)
{
    struct bh_reviews *r = e->r;
    const struct bh_api_call call = {.method = "POST",
                                     .path = r->path,
                                     .content_type = "application/json",
                                     .body = bh_buf_str(&e->body),
                                     .body_n = e->body.n,
                                     .timeout_ns = CALL_NS,
                                     .max_reply_bytes = REPLY_BYTES,
                                     .on_done = on_done,
                                     .arg = e};
    e->tries++;
    count(r->o.asked);
    e->call = bh_api_start(r->o.client, &call);
    if (!e->call)
        settle(e, bh_verdict_new(BH_VERDICT_ERROR, "the client is being closed"));
}

static void make_room(struct bh_reviews *r)
{
    struct entry *e = TAILQ_FIRST(&r->by_age);

    if (r->map.len >= BH_REVIEW_ENTRIES && e)
        drop(r, e);
}

void bh_reviews_ask(struct bh_reviews *r, const void *key, size_t key_n, const struct bh_buf *body,
                    void (*done)(void *arg, const struct bh_verdict *v), void *arg)
{
    unsigned char hash[SHA256_DIGEST_LENGTH];

    SHA256(key, key_n, hash);
    struct entry *e = bh_map_get(&r->map, (const char *)hash, sizeof(hash));
    if (e && e->verdict && e->until_ns <= r->o.mono_ns()) {
        drop(r, e);
        e = NULL;
    }
    if (e && e->verdict) {
        struct bh_verdict *v = e->verdict;
        count(r->o.hits);
        v->refs++;
        done(arg, v);
        bh_verdict_unref(v);
        return;
    }
    struct waiter *w = bh_calloc(1, sizeof(*w));
    *w = (struct waiter){NULL, done, arg};
    if (e) {
        *e->last = w;
        e->last = &w->next;
        return;
    }
    make_room(r);
    e = bh_calloc(1, sizeof(*e));
    e->r = r;
    memcpy(e->key, hash, sizeof(hash));
    e->waiters = w;
    e->last = &w->next;
    bh_buf_add(&e->body, body->p, body->n);
    (void)bh_map_put(&r->map, (const char *)hash, sizeof(hash), e);
    TAILQ_INSERT_TAIL(&r->asking, e, link);
    ask(e);
}

/* ---- life --------------------------------------------------------------------------------------
 */

void bh_reviews_metrics(struct bh_reviews_options *o, struct bh_metrics *m, const char *name,
                        const char *help)
{
    struct bh_metric *f = m ? bh_metric_new(m, BH_COUNTER, name, help, "what", NULL, 0) : NULL;

    o->asked = f ? bh_metric_cell(f, "asked") : NULL;
    o->hits = f ? bh_metric_cell(f, "remembered") : NULL;
    o->failed = f ? bh_metric_cell(f, "failed") : NULL;
}

struct bh_reviews *bh_reviews_new(uv_loop_t *loop, const struct bh_reviews_options *o)
{
    struct bh_reviews *r = bh_calloc(1, sizeof(*r));

    r->o = *o;
    r->o.mono_ns = o->mono_ns ? o->mono_ns : bh_mono_ns;
    r->o.retry_ns = o->retry_ns ? o->retry_ns : RETRY_NS;
    r->path = bh_strdup(o->path);
    r->loop = loop;
    TAILQ_INIT(&r->by_age);
    TAILQ_INIT(&r->asking);
    bh_rand_seed(&r->rand, bh_rand_entropy());
    return r;
}

void bh_reviews_forget(struct bh_reviews *r)
{
    struct entry *e;

    while ((e = TAILQ_FIRST(&r->by_age)))
        drop(r, e);
}

size_t bh_reviews_count(const struct bh_reviews *r)
{
    return r->map.len;
}

static void give_up(struct bh_reviews *r, struct entry *e)
{
    struct bh_verdict *v = bh_verdict_new(BH_VERDICT_ERROR, "the process ends");
    struct waiter *w, *next;

    for (w = e->waiters; w; w = next) {
        next = w->next;
        w->done(w->arg, v);
        free(w);
    }
    bh_verdict_unref(v);
    TAILQ_REMOVE(&r->asking, e, link);
    if (e->call) {
        e->orphan = true;
        bh_api_cancel(e->call);
    } else {
        entry_free(e);
    }
}

void bh_reviews_free(struct bh_reviews *r)
{
    struct entry *e;

    if (!r)
        return;
    bh_reviews_forget(r);
    while ((e = TAILQ_FIRST(&r->asking)))
        give_up(r, e);
    bh_map_fini(&r->map);
    free(r->path);
    free(r);
}
