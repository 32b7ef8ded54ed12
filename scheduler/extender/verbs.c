/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/extender/verbs.c - filter, prioritize, preempt, bind
 *
 * Upstream: pkg/scheduler/extender.go (Filter, Prioritize, ProcessPreemption, Bind),
 *           schedule_one.go (extendersBinding).
 */
#include "scheduler/extender/ext_int.h"

/* ---- asking in a cycle ----------------------------------------------------------------------- */

struct ask { /* one extender, asked by a cycle */
    struct bh_ext_call call;
    unsigned *pending;
    void (*decode)(struct ask *a, struct bh_str body); /* sets error when it cannot */
    void *ret;
    const char *error; /* in x's arena */
};

static void answered(struct bh_ext_call *call, const char *error, struct bh_str body)
{
    struct ask *a = bh_container_of(call, struct ask, call);

    if (error) /* our own words, as long as the URL */
        a->error = bh_arena_strdup(&call->e->x->arena, error);
    else
        a->decode(a, body);
    --*a->pending;
}

static struct bh_arena *arena_of(struct ask *a)
{
    return &a->call.e->x->arena;
}

static void complain(struct ask *a, enum bh_ext_trouble t, const char *error)
{
    a->error = bh_ext_tame(arena_of(a), bh_str_c(error));
    bh_ext_trouble(a->call.e, a->call.verb, t, a->error);
}

static void start(struct ask *a, struct bh_ext_one *e, enum bh_ext_verb v, struct bh_buf *body,
                  unsigned *pending)
{
    a->call.e = e;
    a->call.verb = v;
    a->call.body = (struct bh_str){bh_buf_str(body), body->n};
    a->call.done = answered;
    a->pending = pending;
    ++*pending;
    bh_ext_call_start(&a->call);
}

/* A request that cannot be written: the error is ours. */
static const char *not_asked(struct bh_ext_one *e, enum bh_ext_verb v, const char *error)
{
    const char *text = bh_arena_printf(&e->x->arena, "extender %s: %s", e->name, error);

    bh_ext_trouble(e, v, BH_EXT_OURS, text);
    return text;
}

/* error: of writing the body, or NULL. */
static const char *ask_one(struct ask *a, struct bh_ext_one *e, enum bh_ext_verb v,
                           const char *error)
{
    unsigned pending = 0;

    if (error)
        return not_asked(e, v, error);
    start(a, e, v, &e->x->body[0], &pending);
    bh_ext_wait(e->x, &pending);
    return a->error;
}

void bh_ext_begin(struct bh_ext *x)
{
    bh_arena_reset(&x->arena);
    x->abandon = false;
}

void bh_ext_complain(struct bh_ext *x, uint32_t i, enum bh_ext_verb v, const char *error)
{
    bh_ext_trouble(&x->v[i], v, BH_EXT_RUBBISH, error);
}

/* ---- filter ---------------------------------------------------------------------------------- */

static void decode_filter(struct ask *a, struct bh_str body)
{
    struct bh_err err = {{0}};
    const char *says = NULL;

    if (bh_ext_decode_filter(arena_of(a), body, a->call.e->c->node_cache_capable, a->ret, &says,
                             &err) < 0)
        complain(a, BH_EXT_RUBBISH, err.msg);
    else if (says)
        complain(a, BH_EXT_SAYS_NO, says);
}

const char *bh_ext_filter(struct bh_ext *x, uint32_t i, const struct bh_ext_pod *pod,
                          const struct bh_ext_node *nodes, uint32_t n, struct bh_ext_filtered *ret)
{
    struct bh_ext_one *e = &x->v[i];
    struct bh_ext_filtered got;
    struct ask a = {.decode = decode_filter, .ret = &got};

    bh_buf_reset(&x->body[0]);
    const char *error = bh_ext_encode_args(x, &x->body[0], e->c->node_cache_capable, pod, nodes, n);
    error = ask_one(&a, e, BH_EXT_FILTER, error);
    if (!error)
        *ret = got;
    return error;
}

/* ---- prioritize ------------------------------------------------------------------------------ */

static void decode_scores(struct ask *a, struct bh_str body)
{
    struct bh_err err = {{0}};

    if (bh_ext_decode_scores(arena_of(a), body, a->ret, &err) < 0)
        complain(a, BH_EXT_RUBBISH, err.msg);
}

void bh_ext_prioritize(struct bh_ext *x, uint64_t set, const struct bh_ext_pod *pod,
                       const struct bh_ext_node *nodes, uint32_t n,
                       struct bh_ext_scores ret[BH_EXT_MAX])
{
    struct ask *asks = bh_arena_new_array(&x->arena, struct ask, x->n);
    const char *error[2] = {NULL, NULL};
    bool written[2] = {false, false};
    unsigned pending = 0;

    for (uint32_t i = 0; i < x->n && asks; i++) {
        if (!(set >> i & 1))
            continue;
        struct bh_ext_one *e = &x->v[i];
        unsigned form = !e->c->node_cache_capable; /* two forms of the same request at most */
        if (!written[form]) {
            bh_buf_reset(&x->body[form]);
            error[form] = bh_ext_encode_args(x, &x->body[form], form == 0, pod, nodes, n);
            written[form] = true;
        }
        ret[i] = (struct bh_ext_scores){.n = 0};
        asks[i] = (struct ask){.decode = decode_scores, .ret = &ret[i]};
        if (error[form])
            asks[i].error = not_asked(e, BH_EXT_PRIORITIZE, error[form]);
        else
            start(&asks[i], e, BH_EXT_PRIORITIZE, &x->body[form], &pending);
    }
    bh_ext_wait(x, &pending);
    for (uint32_t i = 0; i < x->n; i++)
        if (set >> i & 1)
            ret[i].error = asks ? asks[i].error : "too many replies";
}

/* ---- preempt --------------------------------------------------------------------------------- */

struct victims {
    struct bh_ext_victims *v;
    uint32_t n;
};

static void decode_victims(struct ask *a, struct bh_str body)
{
    struct victims *got = a->ret;
    struct bh_err err = {{0}};

    if (bh_ext_decode_victims(arena_of(a), body, &got->v, &got->n, &err) < 0)
        complain(a, BH_EXT_RUBBISH, err.msg);
}

const char *bh_ext_preempt(struct bh_ext *x, uint32_t i, const struct bh_ext_pod *pod,
                           const struct bh_ext_victims *v, uint32_t n,
                           struct bh_ext_victims **ret_v, uint32_t *ret_n)
{
    struct bh_ext_one *e = &x->v[i];
    struct victims got = {0};
    struct ask a = {.decode = decode_victims, .ret = &got};

    bh_buf_reset(&x->body[0]);
    const char *error = bh_ext_encode_victims(x, &x->body[0], e->c->node_cache_capable, pod, v, n);
    error = ask_one(&a, e, BH_EXT_PREEMPT, error);
    if (!error) {
        *ret_v = got.v;
        *ret_n = got.n;
    }
    return error;
}

const char *bh_ext_no_victim(struct bh_ext *x, uint32_t i, struct bh_str uid, const char *node)
{
    /* &{...} is how Go prints the struct that holds the uid */
    return bh_arena_printf(&x->arena,
                           "extender: %s claims to preempt pod (UID: &{%.*s}) on node: %s, but the "
                           "pod is not found on that node",
                           x->v[i].name, (int)BH_MIN(uid.n, BH_EXT_TEXT_MAX), uid.p, node);
}

/* ---- bind ------------------------------------------------------------------------------------ */

struct bh_ext_bind_job {
    TAILQ_ENTRY(bh_ext_bind_job) link; /* while it waits for the wire */
    struct bh_ext_call call;
    uint64_t left; /* binders that may still be asked */
    struct bh_buf body;
    bh_ext_done_fn *done;
    void *arg;
    uint64_t id;
    enum bh_ext_bound how; /* it is over */
    char *error;
};

static void bind_next(struct bh_ext *x, struct bh_ext_bind_job *j);

/* Told by bh_ext_tell_bound(): perhaps a decision waits just now, and the owner may change
 * nothing. */
static void bind_end(struct bh_ext *x, struct bh_ext_bind_job *j, enum bh_ext_bound how,
                     const char *error)
{
    j->how = how;
    j->error = error ? bh_strdup(error) : NULL;
    TAILQ_INSERT_TAIL(&x->bound, j, link);
}

void bh_ext_tell_bound(struct bh_ext *x)
{
    struct bh_ext_bind_job *j;

    while ((j = TAILQ_FIRST(&x->bound))) {
        TAILQ_REMOVE(&x->bound, j, link);
        if (!x->closing)
            j->done(j->arg, j->id, j->how, j->error);
        bh_buf_fini(&j->body);
        free(j->error);
        free(j);
    }
}

static void bind_send(struct bh_ext_one *e, struct bh_ext_bind_job *j)
{
    e->binding++;
    bh_ext_call_start(&j->call);
}

static void bind_answered(struct bh_ext_call *call, const char *error, struct bh_str body)
{
    struct bh_ext_bind_job *j = bh_container_of(call, struct bh_ext_bind_job, call), *waiting;
    struct bh_ext_one *e = call->e;
    struct bh_arena a BH_CLEANUP(bh_arena_fini);
    const char *says = NULL;
    struct bh_err err = {{0}};

    bh_arena_init(&a, BH_EXT_REPLY_MAX);
    e->binding--;
    if (!error && bh_ext_decode_bound(&a, body, &says, &err) < 0) {
        error = bh_ext_tame(&a, bh_str_c(err.msg));
        bh_ext_trouble(e, BH_EXT_BIND, BH_EXT_RUBBISH, error);
    } else if (!error && says) {
        error = says;
        bh_ext_trouble(e, BH_EXT_BIND, BH_EXT_SAYS_NO, error);
    }
    if (error && e->c->ignorable)
        bind_next(e->x, j);
    else
        bind_end(e->x, j, error ? BH_EXT_BIND_FAILED : BH_EXT_BOUND, error);
    if (e->draining) /* further up this stack: a call that fails at once ends up here */
        return;
    e->draining = true;
    while (e->binding < BH_EXT_BINDS && (waiting = TAILQ_FIRST(&e->binds))) {
        TAILQ_REMOVE(&e->binds, waiting, link);
        bind_send(e, waiting);
    }
    e->draining = false;
}

/* The httpTimeout of a request counts from when it leaves, so one that would have to wait for a
 * connection waits here. */
static void bind_next(struct bh_ext *x, struct bh_ext_bind_job *j)
{
    if (!j->left) {
        bind_end(x, j, BH_EXT_NOT_BOUND, NULL);
        return;
    }
    struct bh_ext_one *e = &x->v[__builtin_ctzll(j->left)];
    j->left &= j->left - 1;
    j->call = (struct bh_ext_call){.e = e,
                                   .verb = BH_EXT_BIND,
                                   .body = {bh_buf_str(&j->body), j->body.n},
                                   .done = bind_answered};
    if (e->binding >= BH_EXT_BINDS)
        TAILQ_INSERT_TAIL(&e->binds, j, link);
    else
        bind_send(e, j);
}

bool bh_ext_binds(const struct bh_ext *x, uint64_t interested)
{
    return (bh_ext_with(x, 1u << BH_EXT_BIND) & interested) != 0;
}

void bh_ext_bind(struct bh_ext *x, uint64_t interested, const struct bh_ext_pod *pod,
                 const char *node, bh_ext_done_fn *done, void *arg, uint64_t id)
{
    struct bh_ext_bind_job *j = bh_calloc(1, sizeof *j);

    j->left = interested & bh_ext_with(x, 1u << BH_EXT_BIND);
    j->done = done;
    j->arg = arg;
    j->id = id;
    bh_ext_encode_bind(&j->body, pod, node);
    bind_next(x, j);
}
