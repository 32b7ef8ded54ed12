/* SPDX-License-Identifier: Apache-2.0
 *
 * front/review.c - questions to the API server whose answers are remembered
 *
 * Owns:       entries and the callers that wait for them.
 * Invariants: an entry is in one list. KEPT: it has a verdict, and no caller waits. ASKING: a
 *             call or a timer is under way. WAITING: it has had no turn yet. Callers wait for the
 *             latter two: when the last one leaves, the entry goes.
 */
#include "front/review.h"

#include <errno.h>
#include <openssl/sha.h>
#include <sys/queue.h>

#include "common/base/map.h"

#define CALL_NS     UINT64_C(10000000000)
#define RETRY_NS    UINT64_C(500000000)
#define REPLY_BYTES ((size_t)1 << 20)

struct bh_review_wait {
    TAILQ_ENTRY(bh_review_wait) link;
    struct entry *e; /* NULL: it is being told */
    bh_verdict_done *done;
    void *arg;
};
TAILQ_HEAD(waits, bh_review_wait);
enum place { KEPT_YES, KEPT_NO, ASKING, WAITING, PLACES };
struct entry {
    TAILQ_ENTRY(entry) link;
    struct bh_reviews *r;
    unsigned char key[SHA256_DIGEST_LENGTH];
    enum place place;
    struct bh_verdict *verdict; /* KEPT */
    uint64_t until_ns;
    struct waits waits;
    struct bh_buf body;
    char *from;
    uint64_t due_ms; /* on the loop's clock. WAITING: it gives up, ASKING without a call: it asks */
    struct bh_api_req *call;
    bool orphan; /* no caller wants its answer, r may be gone */
    unsigned tries;
};
TAILQ_HEAD(entries, entry);
struct bh_reviews {
    struct bh_reviews_options o;
    uv_loop_t *loop;
    struct bh_map map;
    struct entries places[PLACES]; /* each the oldest first */
    unsigned n[PLACES];
    uv_timer_t timer; /* the first due_ms */
    bool closing;
    struct bh_rand rand;
};

/* ---- verdicts -------------------------------------------------------------------------------- */

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

/* ---- entries --------------------------------------------------------------------------------- */

static void entry_free(struct entry *e)
{
    bh_verdict_unref(e->verdict);
    if (e->body.p)
        explicit_bzero(e->body.p, e->body.n);
    bh_buf_fini(&e->body);
    free(e->from);
    free(e);
}

static void put(struct entry *e, enum place place)
{
    e->place = place;
    e->r->n[place]++;
    TAILQ_INSERT_TAIL(&e->r->places[place], e, link);
}

static void leave_place(struct entry *e)
{
    e->r->n[e->place]--;
    TAILQ_REMOVE(&e->r->places[e->place], e, link);
}

/* Its call, if there is one, is told later and finds an orphan. */
static void drop(struct entry *e)
{
    leave_place(e);
    (void)bh_map_del(&e->r->map, (const char *)e->key, sizeof(e->key));
    if (!e->call) {
        entry_free(e);
        return;
    }
    e->orphan = true;
    bh_api_cancel(e->call);
}

static void count(struct bh_cell *c)
{
    if (c)
        bh_cell_add(c, 1);
}

static void give_turns(struct bh_reviews *r);

/* Takes v. */
static void settle(struct entry *e, struct bh_verdict *v)
{
    struct bh_reviews *r = e->r;
    struct waits waits = TAILQ_HEAD_INITIALIZER(waits);
    struct bh_review_wait *w;

    TAILQ_CONCAT(&waits, &e->waits, link);
    TAILQ_FOREACH(w, &waits, link)
        w->e = NULL;
    if (v->is == BH_VERDICT_YES || v->is == BH_VERDICT_NO) {
        bool yes = v->is == BH_VERDICT_YES;
        leave_place(e);
        v->refs++;
        e->verdict = v;
        e->until_ns = r->o.mono_ns() + (yes ? r->o.yes_ttl_ns : r->o.no_ttl_ns);
        explicit_bzero(e->body.p, e->body.n);
        bh_buf_fini(&e->body);
        put(e, yes ? KEPT_YES : KEPT_NO);
    } else {
        count(v->is == BH_VERDICT_BUSY ? r->o.busy : r->o.failed);
        drop(e);
    }
    give_turns(r);
    while ((w = TAILQ_FIRST(&waits))) { /* they may ask again: the entry is not touched any more */
        TAILQ_REMOVE(&waits, w, link);
        if (w->done)
            w->done(w->arg, v);
        free(w);
    }
    bh_verdict_unref(v);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void set_timer(struct bh_reviews *r);

static void try_later(struct entry *e)
{
    double ms = (double)e->r->o.retry_ns / 1e6;

    for (unsigned i = 1; i < e->tries; i++)
        ms *= 1.5;
    ms *= 1 + 0.2 * bh_rand_unit(&e->r->rand);
    e->due_ms = uv_now(e->r->loop) + (uint64_t)ms;
    set_timer(e->r);
}

static struct bh_verdict *not_a_review(const struct bh_review_form *form, const char *why)
{
    BH_CLEANUP(bh_freep)
    char *text = bh_asprintf("the API server's answer is not a %s of %s: %s", form->kind,
                             form->api_version, why);

    return bh_verdict_new(BH_VERDICT_ERROR, text);
}

struct bh_verdict *bh_review_read(const struct bh_review_form *form, struct bh_str body)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {.limit_bytes = 16 * REPLY_BYTES};
    struct bh_json *v = NULL;
    struct bh_err err = {0};

    if (bh_json_parse(&a, body.p, body.n, 0, &v, &err) < 0)
        return not_a_review(form, err.msg);
    if (!bh_streq(bh_json_get_text(v, "kind"), form->kind))
        return not_a_review(form, "it has another kind");
    if (!bh_streq(bh_json_get_text(v, "apiVersion"), form->api_version))
        return not_a_review(form, "it has another apiVersion");
    const struct bh_json *status = bh_json_get(v, "status");
    if (!status || status->type != BH_JSON_OBJECT)
        return not_a_review(form, "it has no status");
    return form->judge(status);
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
        settle(e, bh_review_read(e->r->o.form, p->body));
        return;
    }
    bool may_pass = p->outcome != BH_API_OK || p->code == 429 || p->code >= 500;
    if (may_pass && p->outcome != BH_API_CANCELED && e->tries < BH_REVIEW_TRIES) {
        try_later(e);
        return;
    }
    if (p->outcome == BH_API_OK)
        snprintf(text, sizeof(text), "the API server answered %s with %d", e->r->o.form->path,
                 p->code);
    else
        snprintf(text, sizeof(text), "the API server could not be asked: %s",
                 p->error ? p->error : "no connection");
    settle(e, bh_verdict_new(BH_VERDICT_ERROR, text));
}

static void ask(struct entry *e)
{
    struct bh_reviews *r = e->r;
    const struct bh_api_call call = {.method = "POST",
                                     .path = r->o.form->path,
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
    if (!e->call) /* later, as no caller has its wait yet */
        try_later(e);
}

/* ---- turns ----------------------------------------------------------------------------------- */

static bool has_turn(const struct bh_reviews *r, const char *from)
{
    const struct entry *e;
    unsigned n = 0;

    if (r->closing || r->n[ASKING] >= BH_REVIEW_ASKED)
        return false;
    TAILQ_FOREACH(e, &r->places[ASKING], link)
        n += bh_streq(e->from, from);
    return n < BH_REVIEW_ASKED_EACH;
}

static void give_turns(struct bh_reviews *r)
{
    struct entry *e, *next;

    for (e = TAILQ_FIRST(&r->places[WAITING]); e; e = next) {
        next = TAILQ_NEXT(e, link);
        if (!has_turn(r, e->from))
            continue;
        leave_place(e);
        put(e, ASKING);
        ask(e);
    }
}

/* The entry whose time comes first. */
static struct entry *first_due(const struct bh_reviews *r)
{
    struct entry *first = TAILQ_FIRST(&r->places[WAITING]), *e;

    TAILQ_FOREACH(e, &r->places[ASKING], link)
        if (!e->call && (!first || e->due_ms < first->due_ms))
            first = e;
    return first;
}

static void on_timer(uv_timer_t *t)
{
    struct bh_reviews *r = bh_container_of(t, struct bh_reviews, timer);
    struct entry *e;

    while ((e = first_due(r)) && e->due_ms <= uv_now(r->loop))
        if (e->place == WAITING)
            settle(e, bh_verdict_new(BH_VERDICT_BUSY, "too many questions wait for an answer"));
        else if (e->tries < BH_REVIEW_TRIES)
            ask(e);
        else
            settle(e, bh_verdict_new(BH_VERDICT_ERROR, "the client is being closed"));
    set_timer(r);
}

static void set_timer(struct bh_reviews *r)
{
    const struct entry *e = first_due(r);
    uint64_t now = uv_now(r->loop);

    if (e)
        uv_timer_start(&r->timer, on_timer, e->due_ms > now ? e->due_ms - now : 0, 0);
    else
        uv_timer_stop(&r->timer);
}

/* What is over first, then the oldest NO. */
static void make_room(struct bh_reviews *r)
{
    struct entry *yes = TAILQ_FIRST(&r->places[KEPT_YES]), *no = TAILQ_FIRST(&r->places[KEPT_NO]);

    if (r->map.len < BH_REVIEW_ENTRIES)
        return;
    if (yes && (!no || yes->until_ns <= r->o.mono_ns()))
        drop(yes);
    else if (no)
        drop(no);
}

static struct bh_review_wait *join(struct entry *e, bh_verdict_done *done, void *arg)
{
    struct bh_review_wait *w = bh_calloc(1, sizeof(*w));

    *w = (struct bh_review_wait){.e = e, .done = done, .arg = arg};
    TAILQ_INSERT_TAIL(&e->waits, w, link);
    return w;
}

static void tell_now(struct bh_verdict *v, bh_verdict_done *done, void *arg)
{
    done(arg, v);
    bh_verdict_unref(v);
}

struct bh_review_wait *bh_reviews_ask(struct bh_reviews *r, const void *key, size_t key_n,
                                      const struct bh_buf *body, const char *from,
                                      bh_verdict_done *done, void *arg)
{
    unsigned char hash[SHA256_DIGEST_LENGTH];

    SHA256(key, key_n, hash);
    struct entry *e = bh_map_get(&r->map, (const char *)hash, sizeof(hash));
    if (e && e->verdict && e->until_ns <= r->o.mono_ns()) {
        drop(e);
        e = NULL;
    }
    if (e && e->verdict) {
        count(r->o.hits);
        e->verdict->refs++;
        tell_now(e->verdict, done, arg);
        return NULL;
    }
    if (e)
        return join(e, done, arg);
    bool now = has_turn(r, from);
    if (!now && r->n[WAITING] >= BH_REVIEW_WAITING) {
        count(r->o.busy);
        tell_now(bh_verdict_new(BH_VERDICT_BUSY, "too many questions are under way"), done, arg);
        return NULL;
    }
    make_room(r);
    e = bh_calloc(1, sizeof(*e));
    e->r = r;
    memcpy(e->key, hash, sizeof(e->key));
    e->from = bh_strdup(from);
    TAILQ_INIT(&e->waits);
    bh_buf_add(&e->body, body->p, body->n);
    (void)bh_map_put(&r->map, (const char *)hash, sizeof(e->key), e);
    struct bh_review_wait *w = join(e, done, arg);
    if (now) {
        put(e, ASKING);
        ask(e);
    } else {
        e->due_ms = uv_now(e->r->loop) + e->r->o.wait_ns / 1000000;
        put(e, WAITING);
        set_timer(e->r);
    }
    return w;
}

void bh_reviews_cancel(struct bh_review_wait *w)
{
    struct entry *e = w->e;

    if (!e) { /* being told: freed after that */
        w->done = NULL;
        return;
    }
    TAILQ_REMOVE(&e->waits, w, link);
    free(w);
    if (!TAILQ_EMPTY(&e->waits))
        return;
    count(e->r->o.canceled);
    struct bh_reviews *r = e->r;
    drop(e);
    give_turns(r);
}

/* ---- life ------------------------------------------------------------------------------------ */

void bh_reviews_metrics(struct bh_reviews_options *o, struct bh_metrics *m, const char *name,
                        const char *help)
{
    struct bh_metric *f = m ? bh_metric_new(m, BH_COUNTER, name, help, "what", NULL, 0) : NULL;

    o->asked = f ? bh_metric_cell(f, "asked") : NULL;
    o->hits = f ? bh_metric_cell(f, "remembered") : NULL;
    o->failed = f ? bh_metric_cell(f, "failed") : NULL;
    o->busy = f ? bh_metric_cell(f, "refused") : NULL;
    o->canceled = f ? bh_metric_cell(f, "canceled") : NULL;
}

struct bh_reviews *bh_reviews_new(uv_loop_t *loop, const struct bh_reviews_options *o)
{
    struct bh_reviews *r = bh_calloc(1, sizeof(*r));

    r->o = *o;
    r->o.mono_ns = o->mono_ns ? o->mono_ns : bh_mono_ns;
    r->o.retry_ns = o->retry_ns ? o->retry_ns : RETRY_NS;
    r->loop = loop;
    r->o.wait_ns = o->wait_ns ? o->wait_ns : BH_REVIEW_WAIT_NS;
    uv_timer_init(loop, &r->timer);
    for (size_t i = 0; i < PLACES; i++)
        TAILQ_INIT(&r->places[i]);
    bh_rand_seed(&r->rand, bh_rand_entropy());
    return r;
}

void bh_reviews_forget(struct bh_reviews *r)
{
    struct entry *e;

    while ((e = TAILQ_FIRST(&r->places[KEPT_YES])) || (e = TAILQ_FIRST(&r->places[KEPT_NO])))
        drop(e);
}

size_t bh_reviews_count(const struct bh_reviews *r)
{
    return r->map.len;
}

static void on_timer_closed(uv_handle_t *h)
{
    free(bh_container_of((uv_timer_t *)h, struct bh_reviews, timer));
}

void bh_reviews_free(struct bh_reviews *r)
{
    struct entry *e;

    if (!r)
        return;
    r->closing = true;
    bh_reviews_forget(r);
    while ((e = TAILQ_FIRST(&r->places[ASKING])) || (e = TAILQ_FIRST(&r->places[WAITING])))
        settle(e, bh_verdict_new(BH_VERDICT_ERROR, "the process ends"));
    bh_map_fini(&r->map);
    uv_close((uv_handle_t *)&r->timer, on_timer_closed);
}
