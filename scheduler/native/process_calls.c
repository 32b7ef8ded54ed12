/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/process_calls.c - a plugin whose callbacks run in another process
 *
 * To adapter.c it is a plugin like any other: callbacks of the same shapes, which say to its process what
 * they are about, and return what it answered. A plugin without batch forms has them here: the loop over
 * the nodes is on the other side, because crossing costs more than asking.
 *
 * A call that fails is an Error with its reason; the process is started again for the next pod's, and
 * makes its instances anew. One that ends its process three times within ten minutes is quarantined; ends by the signals
 * of other processes and of the kernel, out of memory, do not count.
 *
 * Runs in: the engine's thread.
 */
#include <errno.h>

#include "common/base/log.h"
#include "scheduler/native/process_int.h"

#define PRE_ENQUEUE_TRIES 3u
#define RETRY_NS          INT64_C(1000000000)

struct call {
    struct bh_px_instance *i;
    struct bh_native *in;
    struct bh_px_request q;
    struct bh_px_out o;
    struct bh_px_fed was; /* before what of the feed is in o */
    struct bh_px_in m;    /* what fn returned */
    struct bh_px_reply r;
    bool ok;   /* it can be said, or was answered */
    bool said; /* it was, before */
};

static uint64_t deadline(void)
{
    return bh_mono_ns() + (uint64_t)bh_native_limit_ns();
}

/* ---- when it fails --------------------------------------------------------------------------- */

/* What stands for an answer: the plugin has no say, or its callbacks fail. */
static int32_t no_answer(const struct bh_px_instance *i, struct berth_why *why)
{
    const struct bh_native_plugin *p = i->in->of;

    why->reason = p->aside ? (struct berth_str){p->aside, strlen(p->aside)}
                           : (struct berth_str){i->failure, strlen(i->failure)};
    return p->aside && p->skips ? BERTH_SUCCESS : BERTH_ERROR;
}

static uint64_t attempt_of(const struct bh_native *in)
{
    const struct bh_call *c = in->call;
    const struct bh_str uid =
        c && c->pod && c->pod->rec ? bh_rec_uid(c->pod->rec) : (struct bh_str){"", 0};

    return bh_hash(uid.p, uid.n, c ? (uint64_t)c->now_ns : 0);
}

static void ended(struct bh_px_instance *i, int rc)
{
    struct bh_native_plugin *p = i->x->plugin[i->plugin];
    char how[128];

    const bool crashed = bh_px_end(i->x, rc, how, sizeof how);
    snprintf(i->failure, sizeof i->failure, "its process %s, at %s", how,
             bh_native_hook_name(i->in->hook));
    i->failed = true;
    i->failed_at = attempt_of(i->in);
    bh_log_error("A plugin's process is ended, and starts again", bh_kv_s("plugin", p->d.name),
                 bh_kv_s("at", bh_native_hook_name(i->in->hook)), bh_kv_s("why", how));
    if (crashed)
        bh_native_crashed(p, i->x->f, i->in->hook);
}

/* Not in a callback: one of its threads crashed, or somebody killed it. false: that was once too often. */
static bool ended_between(struct bh_px_instance *i)
{
    struct bh_native_plugin *p = i->x->plugin[i->plugin];
    char how[128];

    const bool crashed = bh_px_end(i->x, -EPIPE, how, sizeof how);
    bh_log_error("A plugin's process ended, and starts again", bh_kv_s("plugin", p->d.name),
                 bh_kv_s("why", how));
    if (crashed)
        bh_native_crashed(p, i->x->f, BH_HOOK_NONE);
    return !p->aside;
}

void bh_px_check(struct bh_px *x)
{
    if (bh_likely(!atomic_load(&x->closed)))
        return;
    pthread_mutex_lock(&x->lock);
    if (x->pid && x->first && bh_px_is_gone(x))
        (void)ended_between(x->first);
    pthread_mutex_unlock(&x->lock);
}

/* Nobody came for the answer that the process was asked for early: the attempt ended before. Whatever it says is
 * dropped; a question there is nobody to answer, so the process is begun anew. */
static void forget_asked(struct bh_px *x)
{
    struct bh_native_plugin *p = x->asked ? x->plugin[x->asked->plugin] : NULL;
    struct bh_px_reply r;
    struct bh_px_in m;
    char how[128];

    if (!p)
        return;
    x->asked = NULL;
    int rc = bh_px_await(x, NULL, deadline(), &r, &m);
    if (rc == 0 || rc == -EPIPE) /* who calls next sees that it is gone */
        return;
    (void)bh_px_end(x, rc, how, sizeof how);
    bh_log_error("A plugin's process is ended, and starts again", bh_kv_s("plugin", p->d.name),
                 bh_kv_s("at", bh_native_hook_name(BH_HOOK_SCORE)), bh_kv_s("why", how));
    if (rc == -ETIMEDOUT)
        bh_native_crashed(p, x->f, BH_HOOK_SCORE);
}

/* The process's turn to be asked: whatever is said to it goes where the former request lies. */
static void take_turn(struct bh_px *x)
{
    pthread_mutex_lock(&x->lock);
    forget_asked(x);
}

static bool fails(struct bh_px_instance *i, const char *why)
{
    snprintf(i->failure, sizeof i->failure, "%s", why);
    return false;
}

/* ---- saying ---------------------------------------------------------------------------------- */

static void put_request(struct call *k, enum bh_px_op op)
{
    k->o = bh_px_main(k->i->x->down);
    k->q.op = op;
    bh_px_put(&k->o, &k->q, sizeof k->q);
}

/* What changed goes ahead where it is much. */
static bool put_feed(struct call *k)
{
    for (;;) {
        put_request(k, BH_PX_SYNC);
        k->was = k->i->fed;
        const bool all = bh_px_feed(&k->i->fed, k->in, &k->o);
        if (k->o.full)
            return fails(k->i, "the objects that it reads have more than 24 MiB");
        if (all)
            return true;
        int rc = bh_px_transact(k->i->x, k->i, &k->o, deadline(), &k->r, &k->m);
        if (rc < 0) {
            ended(k->i, rc);
            return false;
        }
    }
}

static void as(struct call *k, enum bh_px_op op)
{
    k->q.op = op;
    if (!k->o.full)
        memcpy(k->o.p, &k->q, sizeof k->q);
}

/* The process knows the instance. */
static bool make_instance(struct bh_px_instance *i)
{
    struct call k = {.i = i, .in = i->in};
    struct bh_call *const now = i->in->call;
    const uint32_t hook = i->in->hook, may = i->in->may;

    k.q = (struct bh_px_request){.plugin = i->plugin,
                                 .instance = i->id,
                                 .hook = BH_HOOK_CREATE,
                                 .filter_state = i->x->generation << 32};
    i->fed = (struct bh_px_fed){0};
    i->generation = i->x->generation;
    i->in->call = NULL; /* create() is about no pod */
    i->in->hook = BH_HOOK_CREATE;
    i->in->may = 0;
    put_request(&k, BH_PX_CREATE);
    (void)bh_px_feed(&i->fed, i->in, &k.o);
    bh_px_put_str(&k.o, i->args, i->args ? strlen(i->args) : 0);
    int rc = bh_px_transact(i->x, i, &k.o, deadline(), &k.r, &k.m);
    if (rc < 0)
        ended(i, rc);
    i->in->call = now;
    i->in->hook = hook;
    i->in->may = may;
    if (rc < 0)
        return false;
    if (k.r.code != BERTH_SUCCESS) {
        const struct berth_str reason = {k.m.p + k.r.payload, k.r.n_reason};
        const bool good = reason.n && reason.n < sizeof i->failure && bh_native_is_text(reason);
        i->generation = 0;
        snprintf(i->failure, sizeof i->failure, "%.*s", good ? (int)reason.n : 17,
                 good ? reason.p : "it gave no reason");
        return false;
    }
    return true;
}

static bool make_process(struct bh_px_instance *i)
{
    struct bh_err err = {0};
    struct bh_px_in m;

    if (i->x->pid && !bh_px_is_gone(i->x))
        return true;
    if (i->x->pid && !ended_between(i))
        return false;
    if (i->failed && i->failed_at == attempt_of(i->in))
        return false;
    return bh_px_start(i->x, &m, &err) == 0 || fails(i, err.msg);
}

static bool is_ready(struct bh_px_instance *i)
{
    if (i->in->of->aside || !make_process(i) ||
        (i->generation != i->x->generation && !make_instance(i)))
        return false;
    i->failed = false;
    return true;
}

/* After it comes what fn takes. */
static struct call begin(struct bh_native *in, void *self, enum bh_px_fn fn)
{
    struct bh_px_instance *i = self;
    struct call k = {.i = i, .in = in};

    take_turn(i->x);
    atomic_fetch_add_explicit(&i->x->plugin[i->plugin]->calls, 1, memory_order_relaxed);
    k.ok = is_ready(i);
    k.q = (struct bh_px_request){.fn = fn,
                                 .plugin = i->plugin,
                                 .instance = i->id,
                                 .hook = in->hook,
                                 .may = in->may,
                                 .now_ns = in->call->now_ns,
                                 .filter_state = (uintptr_t)in->call->pre_filter_state,
                                 .score_state = (uintptr_t)in->call->pre_score_state};
    i->given = NULL;
    if (fn != BH_PX_FILTER && fn != BH_PX_SCORE && fn != BH_PX_CLONE_STATE &&
        !(fn == BH_PX_CHANGE_POD && in->call->pre_filter_state != i->filters.state))
        i->filters.key = i->scores.key =
            0; /* whatever it does now, answers may be others after it */
    k.ok = k.ok && put_feed(&k);
    if (k.ok) {
        as(&k, BH_PX_CALL);
        bh_px_put_pod(&k.o, in->call->pod);
    }
    return k;
}

static struct call begin_here(void *self, enum bh_px_fn fn)
{
    return begin(bh_native_inside, self, fn);
}

static void put_node(struct call *k, const struct bh_node_info *ni)
{
    if (!k->ok)
        return;
    bh_px_put_node(&k->o, k->in->call->cache, ni);
    k->i->given = ni;
}

static void put_u64(struct call *k, uint64_t v)
{
    if (k->ok)
        bh_px_put_u64(&k->o, v);
}

static void put_rows(struct call *k, const uint32_t *rows, uint64_t n)
{
    if (!k->ok)
        return;
    bh_px_put_rows(&k->o, rows, n);
}

static struct berth_str copied(const struct call *k, const char *p, uint32_t n)
{
    struct bh_arena *a = k->in->call->arena;

    return n && a ? (struct berth_str){bh_arena_memdup(a, p, n), n} : (struct berth_str){NULL, 0};
}

/* What the process said beside what fn returned. Of a long reason as many bytes as show that it is too long. */
static void take(struct call *k, struct berth_why *why)
{
    const char *texts = k->m.p + k->r.payload;
    struct bh_call *c = k->in->call;

    if (k->r.n_broke) {
        snprintf(k->i->broke, sizeof k->i->broke, "%.*s", (int)k->r.n_broke,
                 texts + ((k->r.n_reason + 7) & ~7u));
        k->in->broke = bh_native_is_text((struct berth_str){k->i->broke, strlen(k->i->broke)})
                           ? k->i->broke
                           : "it did what it may not";
    }
    if (why)
        why->reason = copied(k, texts, BH_MIN(k->r.n_reason, BH_PX_TEXT_MAX + 1));
    if (k->r.by_pod && k->in->by_pod)
        *k->in->by_pod = true;
    c->pre_filter_state = (void *)(uintptr_t)k->r.filter_state;
    c->pre_score_state = (void *)(uintptr_t)k->r.score_state;
    k->m.end = texts;
}

/* Its code; where there is none, k->ok is false, and that of no_answer(). */
static int32_t finish(struct call *k, struct berth_why *why)
{
    struct berth_why nobody;

    if (k->ok && k->o.full) {
        k->i->fed = k->was; /* nobody was told */
        k->ok = fails(k->i, "its call would have more than 24 MiB");
    }
    if (k->ok) {
        int rc = k->said ? bh_px_await(k->i->x, k->i, deadline(), &k->r, &k->m)
                         : bh_px_transact(k->i->x, k->i, &k->o, deadline(), &k->r, &k->m);
        k->ok = rc == 0;
        if (rc < 0)
            ended(k->i, rc);
    }
    if (k->ok)
        take(k, why);
    return k->ok ? k->r.code : no_answer(k->i, why ? why : &nobody);
}

static void done(const struct call *k)
{
    pthread_mutex_unlock(&k->i->x->lock);
}

/* ---- callbacks ------------------------------------------------------------------------------- */

/* One that takes nothing but the pod. */
static int32_t simple(void *self, enum bh_px_fn fn, struct berth_why *why)
{
    struct call k = begin_here(self, fn);
    int32_t code = finish(&k, why);

    done(&k);
    return code;
}

static int32_t on_node(void *self, enum bh_px_fn fn, berth_sym node, struct berth_why *why)
{
    struct call k = begin_here(self, fn);

    put_u64(&k, node);
    int32_t code = finish(&k, why);
    done(&k);
    return code;
}

/* Pods that the plugin holds back are tried again in a while. */
static void wake_later(struct bh_native *in)
{
    const int64_t at_ns = in->call->now_ns + RETRY_NS;

    if (in->asks && (!in->waker.at_ns || in->waker.at_ns > at_ns))
        bh_asks_wake_at(&in->waker, at_ns);
}

/* A pod that is held back here waits for an event: so the plugin is called again until it answers or is quarantined.
 * Ends that are not its doing do not quarantine it: after some of them the pod waits, and is tried again. */
static int32_t pre_enqueue(void *self, struct berth_call *c BH_UNUSED, struct berth_why *why)
{
    struct bh_px_instance *i = self;

    for (unsigned tries = 1;; tries++) {
        struct call k = begin_here(self, BH_PX_PRE_ENQUEUE);
        int32_t code = finish(&k, why);
        done(&k);
        if (k.ok || i->in->of->aside)
            return code;
        if (tries == PRE_ENQUEUE_TRIES) {
            wake_later(i->in);
            return code;
        }
        i->failed = false;
    }
}

static int32_t hint(void *self, struct berth_call *c BH_UNUSED, const struct berth_change *ch)
{
    struct call k = begin_here(self, BH_PX_HINT);

    put_u64(&k, ch->on);
    put_u64(&k, ch->action);
    put_node(&k, bh_node_behind(ch->old_node));
    put_node(&k, bh_node_behind(ch->new_node));
    if (k.ok) {
        bh_px_put_pod(&k.o, bh_pod_behind(ch->old_pod));
        bh_px_put_pod(&k.o, bh_pod_behind(ch->new_pod));
        bh_px_put_str(&k.o, ch->object_namespace.p, ch->object_namespace.n);
        bh_px_put_str(&k.o, ch->object_name.p, ch->object_name.n);
    }
    int32_t answer = finish(&k, NULL);
    answer = k.ok ? answer : 1; /* an attempt too many costs less than one too few */
    done(&k);
    return answer;
}

static uint64_t epoch(void *self, struct berth_call *c BH_UNUSED)
{
    struct call k = begin_here(self, BH_PX_EPOCH);
    uint64_t e = 0;

    (void)finish(&k, NULL);
    if (k.ok)
        e = bh_px_get_u64(&k.m);
    done(&k);
    return e;
}

static int32_t idle(void *self, struct berth_call *c BH_UNUSED)
{
    struct call k = begin_here(self, BH_PX_IDLE);
    int32_t answer = finish(&k, NULL);

    answer = k.ok && answer;
    done(&k);
    return answer;
}

static int32_t pre_filter(void *self, struct berth_call *c BH_UNUSED, const berth_sym **names,
                          uint64_t *n_names, struct berth_why *why)
{
    struct call k = begin_here(self, BH_PX_PRE_FILTER);
    int32_t code = finish(&k, why);

    if (k.ok && bh_px_get_u64(&k.m)) {
        *n_names = bh_px_get_u64(&k.m);
        const void *p =
            *n_names <= BH_PX_ROWS_MAX ? bh_px_get(&k.m, *n_names * sizeof **names) : NULL;
        *names = p ? bh_arena_memdup(k.in->call->arena, p, *n_names * sizeof **names + 1) : NULL;
        if (!p && *n_names <= BH_PX_ROWS_MAX)
            code = BERTH_ERROR;
        else if (!p)
            *names =
                (const berth_sym *)""; /* too many, which adapter.c says without looking at them */
    }
    done(&k);
    return code;
}

static int32_t change_pod(void *self, struct berth_call *c BH_UNUSED, const struct berth_pod *pod,
                          const struct berth_node *node, int32_t by, struct berth_why *why)
{
    struct call k = begin_here(self, BH_PX_CHANGE_POD);

    if (k.ok)
        bh_px_put_pod(&k.o, bh_pod_behind(pod));
    put_node(&k, bh_node_behind(node));
    put_u64(&k, (uint64_t)(int64_t)by);
    int32_t code = finish(&k, why);
    done(&k);
    return code;
}

/* The copy's number; the call keeps its own. */
static void *clone_state(void *self, struct berth_call *c BH_UNUSED, const void *state)
{
    struct call k = begin_here(self, BH_PX_CLONE_STATE);

    (void)finish(&k, NULL);
    struct bh_call *call = k.in->call;
    void *copy = k.ok ? call->pre_filter_state : NULL;
    call->pre_filter_state = (void *)(uintptr_t)state;
    done(&k);
    return copy;
}

/* ---- asked ahead ----------------------------------------------------------------------------- */

static uint64_t key_of(const struct bh_native *in)
{
    const struct bh_call *c = in->call;
    uint64_t k[8 + BH_CUSTOM_KINDS] = {attempt_of(in),
                                       (uintptr_t)c->cache,
                                       c->cache->log_end,
                                       c->cache->n_changed,
                                       c->cache->membership,
                                       (uintptr_t)c->pre_filter_state,
                                       (uintptr_t)c->pre_score_state,
                                       c->pod ? c->pod->shape_id : 0};

    for (uint32_t i = 0; i < in->of->p.n_kinds; i++)
        k[8 + i] = c->objects->version[in->of->kind[i]];
    return bh_hash(k, sizeof k, 0) | 1;
}

/* Is it worth asking about all, and about this node as it is? */
static bool is_ahead(struct bh_px_ahead *a, const struct bh_native *in,
                     const struct bh_node_info *ni)
{
    const struct bh_cache *c = in->call->cache;

    if (!c || ni->row >= c->cols.n_rows || c->rows[ni->row] != ni || in->of->aside)
        return false;
    const uint64_t key = key_of(in);
    if (a->key == key)
        return !a->failed;
    a->key = key;
    a->state = in->call->pre_filter_state;
    a->there = a->failed = false;
    return false;
}

/* All live rows; n of them. */
static uint32_t *live_rows(const struct bh_cache *c, uint32_t *n)
{
    uint32_t *rows = bh_reallocarray(NULL, c->cols.n_rows + 1, sizeof *rows);

    *n = 0;
    for (uint32_t r = 0; r < c->cols.n_rows; r++)
        if (c->rows[r])
            rows[(*n)++] = r;
    return rows;
}

static void make_room(struct bh_px_ahead *a, uint32_t rows)
{
    if (a->cap >= rows)
        return;
    a->each = bh_reallocarray(a->each, rows, sizeof *a->each);
    a->scores = bh_reallocarray(a->scores, rows, sizeof *a->scores);
    a->cap = rows;
}

static void take_reasons(struct bh_px_ahead *a, struct bh_px_in *m)
{
    const uint64_t n = bh_px_get_u64(m);

    bh_arena_reset(&a->texts);
    for (a->n_reasons = 0; a->n_reasons < n && a->n_reasons < BH_PX_REASONS && !m->bad;) {
        struct berth_str t = bh_px_get_str(m);
        a->reason[a->n_reasons++] =
            bh_arena_strndup(&a->texts, t.p, BH_MIN(t.n, (uint64_t)BH_PX_TEXT_MAX + 1));
    }
}

static bool take_filters(struct bh_px_ahead *a, struct bh_px_in *m, const uint32_t *rows,
                         uint32_t n)
{
    const struct bh_px_each *each = bh_px_get(m, n * sizeof *each);

    for (uint32_t x = 0; each && x < n; x++)
        a->each[rows[x]] = each[x];
    take_reasons(a, m);
    return each != NULL;
}

static bool take_scores(struct bh_px_ahead *a, struct bh_px_in *m, const uint32_t *rows, uint32_t n)
{
    BH_CLEANUP(bh_freep) int64_t *got = bh_reallocarray(NULL, n + 1, sizeof *got);
    const bool good = bh_px_get_scores(m, got, n);

    for (uint32_t x = 0; good && x < n; x++)
        a->scores[rows[x]] = got[x];
    return good;
}

static void ask_ahead(struct bh_px_instance *i, struct bh_px_ahead *a, enum bh_px_fn fn,
                      bool (*take_all)(struct bh_px_ahead *a, struct bh_px_in *m,
                                       const uint32_t *rows, uint32_t n))
{
    const struct bh_cache *c = i->in->call->cache;
    uint32_t n;
    BH_CLEANUP(bh_freep) uint32_t *rows = live_rows(c, &n);
    struct call k = begin(i->in, i, fn);
    struct berth_why why;

    put_rows(&k, rows, n);
    int32_t code = finish(&k, &why);
    make_room(a, c->cols.n_rows);
    a->there = k.ok && code == BERTH_SUCCESS && take_all(a, &k.m, rows, n);
    a->failed = !a->there;
    i->in->broke = NULL; /* said when the node that it was about is asked about alone */
    a->key = key_of(i->in);
    done(&k);
}

/* false: the node is to be asked about alone. */
static bool filtered(struct bh_px_instance *i, const struct bh_node_info *ni, int32_t *ret,
                     struct berth_why *why)
{
    struct bh_px_ahead *a = &i->filters;

    if (!is_ahead(a, i->in, ni))
        return false;
    if (!a->there)
        ask_ahead(i, a, BH_PX_FILTER_EACH, take_filters);
    if (!a->there)
        return false;
    const struct bh_px_each *e = &a->each[ni->row];
    if (e->code != BERTH_SUCCESS && e->reason >= a->n_reasons)
        return false;
    *ret = e->code;
    if (e->code != BERTH_SUCCESS)
        why->reason = (struct berth_str){a->reason[e->reason], strlen(a->reason[e->reason])};
    return true;
}

static bool scored(struct bh_px_instance *i, const struct bh_node_info *ni, int64_t *ret)
{
    struct bh_px_ahead *a = &i->scores;

    if (!is_ahead(a, i->in, ni))
        return false;
    if (!a->there)
        ask_ahead(i, a, BH_PX_SCORE_EACH, take_scores);
    if (a->there)
        *ret = a->scores[ni->row];
    return a->there;
}

static int32_t filter(void *self, struct berth_call *c BH_UNUSED, const struct berth_node *node,
                      struct berth_why *why)
{
    int32_t code;

    if (filtered(self, bh_node_behind(node), &code, why))
        return code;
    struct call k = begin_here(self, BH_PX_FILTER);
    put_node(&k, bh_node_behind(node));
    code = finish(&k, why);
    done(&k);
    return code;
}

static int32_t filter_rows(void *self, struct berth_call *c BH_UNUSED, const uint32_t *rows,
                           uint64_t n, uint64_t *keep, struct berth_why *why)
{
    struct call k = begin_here(self, BH_PX_FILTER_ROWS);
    const size_t bytes = (n / 64 + 1) * sizeof *keep;

    put_rows(&k, rows, n);
    int32_t code = finish(&k, why);
    if (!k.ok) {
        memset(keep, 0xff, (n + 63) / 64 * sizeof *keep);
    } else if (code == BERTH_SUCCESS) {
        const void *p = bh_px_get(&k.m, bytes);
        if (p)
            memcpy(keep, p, (n + 63) / 64 * sizeof *keep);
        else
            code = BERTH_ERROR;
    }
    done(&k);
    return code;
}

static int32_t post_filter(void *self, struct berth_call *c BH_UNUSED,
                           struct berth_post_filter *ret, struct berth_why *why)
{
    struct call k = begin_here(self, BH_PX_POST_FILTER);
    int32_t code = finish(&k, why);

    if (k.ok)
        ret->nominate = (berth_sym)bh_px_get_u64(&k.m);
    if (k.ok && bh_px_get_u64(&k.m) && k.in->no_room) /* it says what run() said */
        why->reason = (struct berth_str){k.in->no_room_text, strlen(k.in->no_room_text)};
    if (k.ok)
        ;
    else if (code == BERTH_SUCCESS)
        code = BERTH_UNSCHEDULABLE; /* the next one is asked */
    done(&k);
    return code;
}

static int32_t pre_score(void *self, struct berth_call *c BH_UNUSED, const uint32_t *rows,
                         uint64_t n, struct berth_why *why)
{
    struct call k = begin_here(self, BH_PX_PRE_SCORE);

    put_u64(&k, rows != NULL);
    put_rows(&k, rows, rows ? n : 0);
    int32_t code = finish(&k, why);
    done(&k);
    return code;
}

static int32_t score(void *self, struct berth_call *c BH_UNUSED, const struct berth_node *node,
                     int64_t *ret, struct berth_why *why)
{
    if (scored(self, bh_node_behind(node), ret))
        return BERTH_SUCCESS;
    struct call k = begin_here(self, BH_PX_SCORE);
    put_node(&k, bh_node_behind(node));
    int32_t code = finish(&k, why);
    *ret = k.ok ? (int64_t)bh_px_get_u64(&k.m) : 0;
    done(&k);
    return code;
}

static int32_t get_scores(struct call *k, int32_t code, int64_t *ret, uint64_t n)
{
    const bool told = k->ok && code == BERTH_SUCCESS;
    const bool good = told && bh_px_get_scores(&k->m, ret, n);

    if (!good)
        memset(ret, 0, n * sizeof *ret);
    return told && !good ? BERTH_ERROR : code;
}

/* No other plugin of the file scores: there is one conversation with its process, and each would have the other's
 * answer dropped. */
static bool scores_alone(struct bh_px_instance *i)
{
    bool alone = true;

    pthread_mutex_lock(&i->x->list);
    for (const struct bh_px_instance *o = i->x->first; o; o = o->next)
        alone &= o->plugin == i->plugin || !o->in->of->p.score_rows;
    pthread_mutex_unlock(&i->x->list);
    return alone;
}

/* What its answer depends on besides the rows is key_of(). Where it may ask for pods or annotations meanwhile,
 * and the attempt ends, it would have to be ended, too. */
void bh_px_score_soon(void *self, const uint32_t *rows, uint32_t n)
{
    struct bh_px_instance *i = self;
    const uint32_t reads = i->in->of->p.reads;

    if (!reads || reads & (BERTH_READS_PODS | BERTH_READS_OTHERS | BERTH_READS_ANNOTATIONS) ||
        !scores_alone(i))
        return;
    struct call k = begin_here(i, BH_PX_SCORE_ROWS);
    const char *at = k.o.p + k.o.n;
    put_rows(&k, rows, n);
    if (k.ok && k.o.full) {
        i->fed = k.was; /* nobody was told; at its turn it says so */
    } else if (k.ok) {
        i->x->asked = i;
        i->x->asked_key = key_of(i->in);
        i->x->asked_rows = (struct bh_px_in){.p = at, .end = k.o.p + k.o.n};
        bh_px_say(i->x->down, i->x->up, k.o.n, false);
    }
    done(&k);
}

/* As begin_here(), or what was begun early. */
static struct call begin_scores(struct bh_px_instance *i, const uint32_t *rows, uint64_t n)
{
    struct bh_px *x = i->x;

    pthread_mutex_lock(&x->lock);
    if (x->asked == i && x->asked_key == key_of(i->in) && bh_px_same_rows(x->asked_rows, rows, n)) {
        x->asked = NULL;
        return (struct call){.i = i, .in = i->in, .ok = true, .said = true};
    }
    pthread_mutex_unlock(&x->lock);
    struct call k = begin_here(i, BH_PX_SCORE_ROWS);
    put_rows(&k, rows, n);
    return k;
}

static int32_t score_rows(void *self, struct berth_call *c BH_UNUSED, const uint32_t *rows,
                          uint64_t n, int64_t *ret, struct berth_why *why)
{
    struct call k = begin_scores(self, rows, n);
    int32_t code = get_scores(&k, finish(&k, why), ret, n);

    done(&k);
    return code;
}

static int32_t normalize(void *self, struct berth_call *c BH_UNUSED, int64_t *scores, uint64_t n,
                         struct berth_why *why)
{
    struct call k = begin_here(self, BH_PX_NORMALIZE);

    put_u64(&k, n);
    if (k.ok)
        bh_px_put(&k.o, scores, n * sizeof *scores);
    int32_t code = get_scores(&k, finish(&k, why), scores, n);
    done(&k);
    return code;
}

static int32_t reserve(void *self, struct berth_call *c BH_UNUSED, berth_sym node,
                       struct berth_why *why)
{
    return on_node(self, BH_PX_RESERVE, node, why);
}
static void unreserve(void *self, struct berth_call *c BH_UNUSED, berth_sym node)
{
    (void)on_node(self, BH_PX_UNRESERVE, node, NULL);
}
static void post_bind(void *self, struct berth_call *c BH_UNUSED, berth_sym node)
{
    (void)on_node(self, BH_PX_POST_BIND, node, NULL);
}
static void tend(void *self, struct berth_call *c BH_UNUSED)
{
    struct berth_why nobody;

    (void)simple(self, BH_PX_TEND, &nobody);
}
static int32_t pre_bind(void *self, struct berth_call *c BH_UNUSED, berth_sym node,
                        struct berth_why *why)
{
    return on_node(self, BH_PX_PRE_BIND, node, why);
}

static int32_t bind(void *self, struct berth_call *c BH_UNUSED, berth_sym node,
                    struct berth_why *why)
{
    struct call k = begin_here(self, BH_PX_BIND);

    put_u64(&k, node);
    int32_t code = finish(&k, why);
    if (!k.ok && code == BERTH_SUCCESS)
        code = BERTH_SKIP; /* the next one's turn */
    done(&k);
    return code;
}

static int32_t permit(void *self, struct berth_call *c BH_UNUSED, berth_sym node, int64_t *wait_ns,
                      struct berth_why *why)
{
    struct call k = begin_here(self, BH_PX_PERMIT);

    put_u64(&k, node);
    int32_t code = finish(&k, why);
    if (k.ok)
        *wait_ns = (int64_t)bh_px_get_u64(&k.m);
    done(&k);
    return code;
}

/* ---- configuration --------------------------------------------------------------------------- */

static struct bh_px *file_of(const struct bh_native_plugin *p, uint32_t *ret_index)
{
    struct bh_px *x = p->process;

    *ret_index = p->in_file;
    return x;
}

static char *text_of(const struct berth_value *args)
{
    struct bh_buf b = {0};

    if (!args)
        return NULL;
    bh_json_write(&b, (const struct bh_json *)(const void *)args);
    return bh_buf_take(&b);
}

static void check_args(const struct berth_value *args, struct berth_errors *errors)
{
    struct bh_px_request q = {.op = BH_PX_CHECK_ARGS, .hook = BH_HOOK_CREATE};
    struct bh_px *x = file_of(bh_native_inside->of, &q.plugin);
    BH_CLEANUP(bh_freep) char *text = text_of(args);
    struct bh_px_reply r;
    struct bh_px_in m = {0};
    struct bh_err err = {0};
    char how[128];
    int rc = 0;

    take_turn(x);
    if (!x->pid)
        rc = bh_px_start(x, &m, &err);
    if (rc == 0) {
        struct bh_px_out o = bh_px_main(x->down);
        bh_px_put(&o, &q, sizeof q);
        bh_px_put_u64(&o, UINT64_MAX); /* no feed */
        bh_px_put_str(&o, text, text ? strlen(text) : 0);
        rc = o.full ? -E2BIG : bh_px_transact(x, NULL, &o, deadline(), &r, &m);
        if (rc < 0 && rc != -E2BIG) {
            (void)bh_px_end(x, rc, how, sizeof how);
            bh_err_set(&err, rc, "its process %s while it looked at its arguments", how);
        }
        if (rc == 0 && r.code != BERTH_SUCCESS) /* it found more wrong than a reply can hold */
            rc = bh_err_set(&err, -E2BIG, "%.*s", (int)r.n_reason, m.p + r.payload);
    }
    if (rc < 0)
        bh_native_host.values->error(errors, BERTH_STR(""),
                                     (struct berth_str){err.msg, strlen(err.msg)});
    for (m.end = rc == 0 ? m.p + r.payload : m.p; m.p < m.end && !m.bad;) {
        struct berth_str path = bh_px_get_str(&m), what = bh_px_get_str(&m);
        if (!m.bad)
            bh_native_host.values->error(errors, path, what);
    }
    pthread_mutex_unlock(&x->lock);
}

static void unlink_instance(struct bh_px_instance *i)
{
    struct bh_px_instance **at = &i->x->first;

    pthread_mutex_lock(&i->x->list);
    while (*at != i)
        at = &(*at)->next;
    *at = i->next;
    pthread_mutex_unlock(&i->x->list);
    struct bh_px_ahead *const ahead[] = {&i->filters, &i->scores};
    for (unsigned k = 0; k < BH_ARRAY_LEN(ahead); k++) {
        free(ahead[k]->each);
        free(ahead[k]->scores);
        bh_arena_fini(&ahead[k]->texts);
    }
    free(i->args);
    free(i);
}

static int32_t create(struct berth_home *home, const struct berth_value *args, void **ret,
                      struct berth_why *why)
{
    struct bh_native *in = (struct bh_native *)(void *)home;
    struct bh_px_instance *i = bh_calloc(1, sizeof *i);

    i->x = file_of(in->of, &i->plugin);
    i->in = in;
    i->args = text_of(args);
    take_turn(i->x);
    pthread_mutex_lock(&i->x->list);
    i->id = ++i->x->last_id;
    i->next = i->x->first;
    i->x->first = i;
    pthread_mutex_unlock(&i->x->list);
    const bool ok = make_process(i) && make_instance(i);
    pthread_mutex_unlock(&i->x->lock);
    if (ok) {
        *ret = i;
        return BERTH_SUCCESS;
    }
    const char *text = bh_arena_strdup(in->arena, i->failure);
    why->reason = (struct berth_str){text, strlen(text)};
    unlink_instance(i);
    return BERTH_ERROR;
}

static void destroy(void *self)
{
    struct bh_px_instance *i = self;
    struct bh_px *x = i->x;
    struct bh_px_reply r;
    struct bh_px_in m;

    take_turn(x);
    if (x->pid && i->generation == x->generation) {
        struct bh_px_out o = bh_px_main(x->down);
        const struct bh_px_request q = {
            .op = BH_PX_DESTROY, .plugin = i->plugin, .instance = i->id, .hook = BH_HOOK_CREATE};
        bh_px_put(&o, &q, sizeof q);
        int rc = bh_px_transact(x, i, &o, deadline(), &r, &m);
        if (rc < 0)
            ended(i, rc);
    }
    unlink_instance(i);
    pthread_mutex_unlock(&x->lock);
}

/* ---- the plugin ------------------------------------------------------------------------------ */

/* All of it: a text of its length, which may have NULs, and one behind it. */
static struct berth_str kept_str(struct berth_str s)
{
    char *p = bh_calloc(s.n + 1, 1);

    if (s.n)
        memcpy(p, s.p, s.n);
    return (struct berth_str){p, s.n};
}

static void take_kinds(struct bh_px_in *m, struct berth_plugin *p)
{
    const uint64_t n = bh_px_get_u64(m);
    struct berth_kind *k = n && n <= BH_CUSTOM_KINDS ? bh_calloc(n, sizeof *k) : NULL;

    for (uint64_t i = 0; k && i < n && !m->bad; i++) {
        k[i].group = kept_str(bh_px_get_str(m));
        k[i].version = kept_str(bh_px_get_str(m));
        k[i].resource = kept_str(bh_px_get_str(m));
        k[i].namespaced = (uint32_t)bh_px_get_u64(m);
    }
    p->kinds = k;
    p->n_kinds = n;
}

/* One that is refused. */
static void forget(struct berth_plugin *p)
{
    for (uint64_t i = 0; p->kinds && i < p->n_kinds; i++) {
        const struct berth_str *const texts[] = {&p->kinds[i].group, &p->kinds[i].version,
                                                 &p->kinds[i].resource};
        for (unsigned t = 0; t < BH_ARRAY_LEN(texts); t++)
            free((void *)(uintptr_t)texts[t]->p);
    }
    free((void *)(uintptr_t)p->kinds);
    free((void *)(uintptr_t)p->events);
    free((void *)(uintptr_t)p->name.p);
}

/* One that sorts the queue: its file may have others, so it is refused when a profile names it. */
static int32_t cannot_sort(struct berth_home *home, const struct berth_value *args BH_UNUSED,
                           void **ret BH_UNUSED, struct berth_why *why)
{
    const struct bh_native *in = (const struct bh_native *)(const void *)home;
    const char *text =
        bh_arena_printf(in->arena,
                        "plugin \"%s\" sorts the queue (less), which `mode: process` "
                        "cannot: two pods are compared too often to ask another process",
                        in->of->d.name);

    why->reason = (struct berth_str){text, strlen(text)};
    return BERTH_ERROR;
}
static int32_t never_less(void *self BH_UNUSED, struct berth_call *c BH_UNUSED,
                          const struct berth_queued *a BH_UNUSED,
                          const struct berth_queued *b BH_UNUSED)
{
    return 0;
}

#define IF(fn, callback) (has >> (fn)&1 ? (callback) : NULL)
static void set_callbacks(struct berth_plugin *p, uint64_t has)
{
    const bool filters = has >> BH_PX_FILTER & 1;
    const bool scores = has >> BH_PX_SCORE & 1 || has >> BH_PX_SCORE_ROWS & 1;

    p->check_args = IF(BH_PX_CHECKS, check_args);
    p->create = create;
    p->destroy = destroy;
    p->epoch = IF(BH_PX_EPOCH, epoch);
    p->pre_enqueue = IF(BH_PX_PRE_ENQUEUE, pre_enqueue);
    p->hint = IF(BH_PX_HINT, hint);
    p->pre_filter = IF(BH_PX_PRE_FILTER, pre_filter);
    p->change_pod = IF(BH_PX_CHANGE_POD, change_pod);
    p->clone_state = IF(BH_PX_CLONE_STATE, clone_state);
    p->filter = IF(BH_PX_FILTER, filter);
    p->filter_rows = filters ? filter_rows : NULL;
    p->post_filter = IF(BH_PX_POST_FILTER, post_filter);
    p->pre_score = IF(BH_PX_PRE_SCORE, pre_score);
    p->score = IF(BH_PX_SCORE, score);
    p->score_rows = scores ? score_rows : NULL;
    p->normalize = IF(BH_PX_NORMALIZE, normalize);
    p->reserve = IF(BH_PX_RESERVE, reserve);
    p->unreserve = IF(BH_PX_UNRESERVE, unreserve);
    p->permit = IF(BH_PX_PERMIT, permit);
    p->idle = IF(BH_PX_IDLE, idle);
    p->pre_bind = IF(BH_PX_PRE_BIND, pre_bind);
    p->bind = IF(BH_PX_BIND, bind);
    p->post_bind = IF(BH_PX_POST_BIND, post_bind);
    p->tend = IF(BH_PX_TEND, tend);
    if (has >> BH_PX_LESS & 1) {
        p->create = cannot_sort;
        p->destroy = NULL;
        p->less = never_less;
    }
}

int bh_px_adopt(struct bh_px *x, struct bh_px_in *m, struct bh_native_plugin **ret,
                struct bh_err *err)
{
    struct berth_plugin p = {.size = sizeof p};
    struct berth_event *events = NULL;

    p.name = kept_str(bh_px_get_str(m));
    p.flags = (uint32_t)bh_px_get_u64(m) & ~BERTH_USER_COLUMNS; /* they are on the other side */
    p.reads = (uint32_t)bh_px_get_u64(m);
    p.normal = (uint32_t)bh_px_get_u64(m);
    const uint64_t has = bh_px_get_u64(m), any = bh_px_get_u64(m);
    p.n_events = bh_px_get_u64(m);
    const void *told = p.n_events <= 64 ? bh_px_get(m, p.n_events * sizeof *events) : NULL;
    if (any && told) {
        events = bh_calloc(p.n_events + 1, sizeof *events);
        memcpy(events, told, p.n_events * sizeof *events);
    }
    p.events = events;
    take_kinds(m, &p);
    set_callbacks(&p, has);
    int rc = m->bad || (p.n_events && !told)
                 ? bh_err_set(err, -EINVAL, "its process describes it in a way that makes no sense")
                 : bh_native_adopt(&p, ret, err);
    if (rc < 0) {
        forget(&p);
        return rc;
    }
    (*ret)->process = x;
    (*ret)->in_file = x->n_plugins;
    bh_native_describe(*ret); /* it knows now where its code runs */
    return 0;
}
