/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/process_host.c - the process that runs plugins which are not trusted
 *
 * Loads one file, then answers: a request comes with what changed in the cluster, the plugin's callback
 * runs as it would in the scheduler, and what it returned goes back. Its accessors are host.c's, over
 * the cluster as it was told (process_world.c); what is not here is asked for (process_up.c).
 *
 * Owns:    instances, and what callbacks left in filter_state and score_state, by numbers. A state that
 *          nobody used for long is forgotten, and those of an earlier process are not here: PreFilter or
 *          PreScore is asked again where one comes back.
 * Runs in: the host's main thread; one more waits for the end of the scheduler.
 */
#include "scheduler/native/process_host.h"

#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define ENTRY     "berth_plugin_entry_v1"
#define STATES    4096u
#define NOBODY    65534u
#define FILES_MAX 64

struct bh_px_here bh_px_here;

struct state {
    uint64_t id;
    void *p;
    struct bh_arena arena;
};
struct instance {
    struct bh_native in; /* first: the plugin's home */
    uint32_t id;
    struct bh_arena arena; /* of the instance */
    struct bh_px_world *world;
    struct state *states;
    uint64_t last_state;
    struct instance *next;
};
static struct {
    struct bh_native_plugin *plugin[BH_PX_PLUGINS];
    uint32_t n;
    struct instance *first;
    struct bh_arena call; /* until the callback returned */
} host;

static struct instance *mine(const struct bh_native *in)
{
    return (struct instance *)(uintptr_t)in; /* its first member */
}

uint32_t bh_px_here_instance(const struct berth_home *home)
{
    return mine((const struct bh_native *)(const void *)home)->id;
}

bool bh_px_here_node_is_given(const struct bh_node_info *ni)
{
    const struct bh_cache *c = bh_native_inside->call->cache;

    return ni->row >= c->cols.n_rows || c->rows[ni->row] != ni;
}

void bh_px_here_put_pods(const struct bh_node_info *ni, struct bh_px_in *m)
{
    bh_px_world_put_pods(mine(bh_native_inside)->world, ni, m, bh_native_inside->call->arena);
}

const struct berth_node *bh_px_here_node(struct bh_px_in *m, struct bh_arena *a)
{
    const struct bh_node_info *ni = bh_px_world_node(mine(bh_native_inside)->world, m, a);

    if (ni && bh_px_here_node_is_given(ni))
        ((struct bh_node_info *)(uintptr_t)ni)->rec = bh_arena_memdup(a, ni->rec, ni->rec->h.size);
    return bh_node_handle(ni);
}

/* ---- replies --------------------------------------------------------------------------------- */

struct reply {
    struct bh_px_out o;
    struct bh_px_reply r;
    size_t begins; /* of the payload */
};

static struct reply reply_new(void)
{
    struct reply a = {.o = bh_px_main(bh_px_here.up)};

    (void)bh_px_room(&a.o, sizeof a.r);
    a.begins = a.o.n;
    return a;
}

static void reply_send(struct reply *a, struct berth_str reason, const char *broke)
{
    const struct berth_str b = {broke, broke ? strlen(broke) : 0};

    if (!a->o.full)
        a->r.payload = a->o.n - a->begins;
    reason.n = reason.p ? BH_MIN(reason.n, (uint64_t)BH_PX_TEXT_MAX + 1) : 0;
    a->r.n_reason = (uint32_t)reason.n;
    a->r.n_broke = (uint32_t)b.n;
    bh_px_put(&a->o, reason.p, reason.n);
    bh_px_put(&a->o, b.p, b.n);
    if (a->o.full) { /* it is more than there is room for */
        *a = reply_new();
        a->r.code = BERTH_ERROR;
        reply_send(a, BERTH_STR("its answer has more than 24 MiB"), NULL);
        return;
    }
    memcpy(a->o.p, &a->r, sizeof a->r);
    bh_px_say(bh_px_here.up, bh_px_here.down, a->o.n, false);
}

/* ---- states ---------------------------------------------------------------------------------- */

static struct state *state_of(struct instance *i, uint64_t id)
{
    struct state *s = id && i->states ? &i->states[id % STATES] : NULL;

    return s && s->id == id ? s : NULL;
}

/* What the callback left, which lies in the call's memory. */
static struct state *keep(struct instance *i, uint64_t id, void *p)
{
    if (!i->states)
        i->states = bh_calloc(STATES, sizeof *i->states);
    struct state *s = &i->states[id % STATES];
    bh_arena_fini(&s->arena);
    *s = (struct state){.id = id, .p = p, .arena = host.call};
    host.call = (struct bh_arena){0};
    i->last_state = BH_MAX(i->last_state, id);
    return s;
}

/* ---- a callback ------------------------------------------------------------------------------ */

struct call {
    struct instance *i;
    const struct berth_plugin *p;
    struct bh_px_request r;
    struct bh_call c;
    struct bh_px_in m;
    struct reply a;
    struct berth_why why;
};

static struct berth_call *handle(struct call *k)
{
    return (struct berth_call *)(void *)&k->c;
}
static const struct berth_node *get_node(struct call *k)
{
    return bh_node_handle(bh_px_world_node(k->i->world, &k->m, k->c.arena));
}
static const struct berth_pod *get_pod(struct call *k)
{
    return bh_pod_handle(bh_px_world_pod(&k->m, k->c.arena));
}
/* Made of the message's, which are *told, for rows_same(); told may be NULL. */
static uint32_t *get_rows(struct call *k, uint64_t *n, struct bh_px_in *told)
{
    if (told)
        *told = k->m;
    return bh_px_get_rows(&k->m, k->c.arena, n);
}
/* As in the scheduler's process, which sees its own rows only. */
static int32_t rows_same(struct call *k, struct bh_px_in told, const uint32_t *rows, uint64_t n,
                         int32_t code)
{
    if (!k->i->in.broke && !bh_px_same_rows(told, rows, n))
        k->i->in.broke = "it changed the rows that it was given";
    return code;
}

static void enter(struct instance *i, struct bh_call *c, const struct bh_px_request *r)
{
    i->in.call = c;
    i->in.hook = r->hook;
    i->in.may = r->may;
    i->in.broke = NULL;
    bh_native_inside = &i->in;
}

static const struct bh_node_info *at_row(struct call *k, uint32_t row)
{
    return row < k->c.cache->cols.n_rows ? k->c.cache->rows[row] : NULL;
}

/* The first reasons by number; the others are asked for again. */
static uint32_t reason_number(const struct berth_why *why, struct berth_str *told, uint32_t *n)
{
    uint32_t i = 0;

    if (!why->reason.p || why->reason.n > BH_PX_TEXT_MAX)
        return UINT32_MAX;
    while (i < *n &&
           !(told[i].n == why->reason.n && memcmp(told[i].p, why->reason.p, why->reason.n) == 0))
        i++;
    if (i == BH_PX_REASONS)
        return UINT32_MAX;
    if (i == *n) {
        told[i] = (struct berth_str){bh_arena_memdup(&host.call, why->reason.p, why->reason.n + 1),
                                     why->reason.n};
        (*n)++;
    }
    return i;
}

static int32_t filter_each(struct call *k)
{
    struct berth_str told[BH_PX_REASONS];
    uint32_t n_told = 0;
    uint64_t n;
    const uint32_t *rows = get_rows(k, &n, NULL);
    struct bh_px_each *each = rows ? bh_px_room(&k->a.o, n * sizeof *each) : NULL;

    for (uint64_t i = 0; each && i < n; i++) {
        const struct bh_node_info *ni = at_row(k, rows[i]);
        struct berth_why why = {.size = sizeof why};
        each[i] = (struct bh_px_each){0};
        if (!ni)
            continue;
        each[i].code = k->p->filter(k->i->in.self, handle(k), bh_node_handle(ni), &why);
        if (each[i].code != BERTH_SUCCESS)
            each[i].reason = reason_number(&why, told, &n_told);
        if (k->i->in.broke) /* the node is asked about alone, and says it */
            return BERTH_ERROR;
    }
    bh_px_put_u64(&k->a.o, n_told);
    for (uint32_t i = 0; i < n_told; i++)
        bh_px_put_str(&k->a.o, told[i].p, told[i].n);
    return BERTH_SUCCESS;
}

static int32_t filter_rows(struct call *k)
{
    uint64_t n;
    struct bh_px_in told;
    const uint32_t *rows = get_rows(k, &n, &told);
    uint64_t *keep = rows ? bh_px_room(&k->a.o, (n / 64 + 1) * sizeof *keep) : NULL;

    if (!keep)
        return BERTH_ERROR;
    memset(keep, 0, (n / 64 + 1) * sizeof *keep);
    if (k->p->filter_rows)
        return rows_same(k, told, rows, n,
                         k->p->filter_rows(k->i->in.self, handle(k), rows, n, keep, &k->why));
    for (uint64_t i = 0; i < n; i++) {
        const struct bh_node_info *ni = at_row(k, rows[i]);
        int32_t code =
            ni ? k->p->filter(k->i->in.self, handle(k), bh_node_handle(ni), &k->why) : BERTH_ERROR;
        if (k->i->in.broke || (code != BERTH_SUCCESS && code != BERTH_UNSCHEDULABLE &&
                               code != BERTH_UNRESOLVABLE && code != BERTH_PENDING))
            return BERTH_ERROR;
        keep[i / 64] |= (uint64_t)(code == BERTH_SUCCESS) << i % 64;
    }
    return BERTH_SUCCESS;
}

static int32_t scores_of(struct call *k, const uint32_t *rows, uint64_t n, int64_t *ret)
{
    if (k->p->score_rows)
        return k->p->score_rows(k->i->in.self, handle(k), rows, n, ret, &k->why);
    for (uint64_t i = 0; i < n; i++) {
        const struct bh_node_info *ni = at_row(k, rows[i]);
        int32_t code =
            ni ? k->p->score(k->i->in.self, handle(k), bh_node_handle(ni), &ret[i], &k->why)
               : BERTH_ERROR;
        if (code != BERTH_SUCCESS || k->i->in.broke)
            return BERTH_ERROR;
    }
    return BERTH_SUCCESS;
}

static int32_t score_rows(struct call *k)
{
    uint64_t n;
    struct bh_px_in told;
    const uint32_t *rows = get_rows(k, &n, &told);
    int64_t *scores = rows ? bh_arena_new_array(k->c.arena, int64_t, n + 1) : NULL;

    if (!scores)
        return BERTH_ERROR;
    int32_t code = rows_same(k, told, rows, n, scores_of(k, rows, n, scores));
    if (code == BERTH_SUCCESS)
        bh_px_put_scores(&k->a.o, scores, n);
    return code;
}

static int32_t pre_filter(struct call *k)
{
    const berth_sym *names = NULL;
    uint64_t n = 0;
    int32_t code = k->p->pre_filter
                       ? k->p->pre_filter(k->i->in.self, handle(k), &names, &n, &k->why)
                       : BERTH_SUCCESS;

    bh_px_put_u64(&k->a.o, names != NULL);
    bh_px_put_u64(&k->a.o, names ? n : 0);
    if (names)
        bh_px_put(&k->a.o, names, BH_MIN(n, (uint64_t)BH_PX_ROWS_MAX) * sizeof *names);
    return code;
}

static uint64_t epoch(struct call *k)
{
    const uint64_t e[2] = {k->p->epoch ? k->p->epoch(k->i->in.self, handle(k)) : 0,
                           k->i->in.user ? bh_native_user_epoch(k->i->in.user, &k->c) : 0};

    return bh_hash(e, sizeof e, 0);
}

static int32_t hint(struct call *k)
{
    struct berth_change change = {.size = sizeof change};
    bool by_pod = false;

    change.on = (uint32_t)bh_px_get_u64(&k->m);
    change.action = (uint32_t)bh_px_get_u64(&k->m);
    change.old_node = get_node(k);
    change.new_node = get_node(k);
    change.old_pod = get_pod(k);
    change.new_pod = get_pod(k);
    change.object_namespace = bh_px_get_str(&k->m);
    change.object_name = bh_px_get_str(&k->m);
    if (change.on >= BERTH_ON_KIND(0) && change.on - BERTH_ON_KIND(0) < k->p->n_kinds) {
        const char *ns =
            bh_arena_strndup(k->c.arena, change.object_namespace.p, change.object_namespace.n);
        const char *name = bh_arena_strndup(k->c.arena, change.object_name.p, change.object_name.n);
        change.object = (const struct berth_object *)(const void *)bh_objects_find(
            k->c.objects, k->i->in.of->kind[change.on - BERTH_ON_KIND(0)], ns, name);
    }
    k->i->in.by_pod = &by_pod;
    int32_t answer = k->m.bad ? 1 : k->p->hint(k->i->in.self, handle(k), &change);
    k->i->in.by_pod = NULL;
    k->a.r.by_pod = by_pod;
    return answer;
}

static int32_t normalize(struct call *k)
{
    const uint64_t n = bh_px_get_u64(&k->m);
    const int64_t *given = n <= BH_PX_ROWS_MAX ? bh_px_get(&k->m, n * sizeof *given) : NULL;
    int64_t *scores = given ? bh_arena_new_array(k->c.arena, int64_t, n + 1) : NULL;

    if (!scores)
        return BERTH_ERROR;
    memcpy(scores, given, n * sizeof *scores);
    int32_t code = k->p->normalize(k->i->in.self, handle(k), scores, n, &k->why);
    if (code == BERTH_SUCCESS)
        bh_px_put_scores(&k->a.o, scores, n);
    return code;
}

static int32_t post_filter(struct call *k)
{
    struct berth_post_filter r = {.size = sizeof r};
    bh_px_here.run_said = NULL;
    int32_t code = k->p->post_filter(k->i->in.self, handle(k), &r, &k->why);

    bh_px_put_u64(&k->a.o, r.nominate);
    bh_px_put_u64(&k->a.o, bh_px_here.run_said && k->why.reason.p == bh_px_here.run_said);
    return code;
}

static int32_t score(struct call *k)
{
    const struct berth_node *node = get_node(k);
    int64_t ret = 0;
    int32_t code = node ? k->p->score(k->i->in.self, handle(k), node, &ret, &k->why) : BERTH_ERROR;

    bh_px_put_u64(&k->a.o, (uint64_t)ret);
    return code;
}

static int32_t change_pod(struct call *k)
{
    const struct berth_pod *pod = get_pod(k);
    const struct berth_node *node = get_node(k);
    const int by = (int)(int64_t)bh_px_get_u64(&k->m);

    return pod && node ? k->p->change_pod(k->i->in.self, handle(k), pod, node, by, &k->why)
                       : BERTH_ERROR;
}

static int32_t permit(struct call *k, berth_sym node)
{
    int64_t wait_ns = 0;
    int32_t code = k->p->permit(k->i->in.self, handle(k), node, &wait_ns, &k->why);

    bh_px_put_u64(&k->a.o, (uint64_t)wait_ns);
    return code;
}

/* Callbacks that are about the pod and the node that it goes to. */
static int32_t on_node(struct call *k)
{
    const berth_sym node = (berth_sym)bh_px_get_u64(&k->m);
    void *self = k->i->in.self;

    switch (k->r.fn) {
    case BH_PX_RESERVE:
        return k->p->reserve(self, handle(k), node, &k->why);
    case BH_PX_PERMIT:
        return permit(k, node);
    case BH_PX_PRE_BIND:
        return k->p->pre_bind(self, handle(k), node, &k->why);
    case BH_PX_BIND:
        return k->p->bind(self, handle(k), node, &k->why);
    case BH_PX_UNRESERVE:
        k->p->unreserve(self, handle(k), node);
        return BERTH_SUCCESS;
    default:
        k->p->post_bind(self, handle(k), node);
        return BERTH_SUCCESS;
    }
}

static int32_t run(struct call *k)
{
    void *self = k->i->in.self;
    uint64_t n = 0;

    switch (k->r.fn) {
    case BH_PX_PRE_ENQUEUE:
        return k->p->pre_enqueue(self, handle(k), &k->why);
    case BH_PX_HINT:
        return hint(k);
    case BH_PX_EPOCH:
        bh_px_put_u64(&k->a.o, epoch(k));
        return BERTH_SUCCESS;
    case BH_PX_IDLE:
        return k->p->idle(self, handle(k));
    case BH_PX_PRE_FILTER:
        return pre_filter(k);
    case BH_PX_CHANGE_POD:
        return change_pod(k);
    case BH_PX_CLONE_STATE:
        k->c.pre_filter_state = k->p->clone_state(self, handle(k), k->c.pre_filter_state);
        return BERTH_SUCCESS;
    case BH_PX_FILTER: {
        const struct berth_node *node = get_node(k);
        return node ? k->p->filter(self, handle(k), node, &k->why) : BERTH_ERROR;
    }
    case BH_PX_FILTER_ROWS:
        return filter_rows(k);
    case BH_PX_FILTER_EACH:
        return filter_each(k);
    case BH_PX_POST_FILTER:
        return post_filter(k);
    case BH_PX_PRE_SCORE: {
        const bool all = bh_px_get_u64(&k->m);
        const uint32_t *rows = get_rows(k, &n, NULL);
        return k->p->pre_score(self, handle(k), all ? rows : NULL, all ? n : 0, &k->why);
    }
    case BH_PX_SCORE:
        return score(k);
    case BH_PX_SCORE_ROWS:
    case BH_PX_SCORE_EACH:
        return score_rows(k);
    case BH_PX_NORMALIZE:
        return normalize(k);
    case BH_PX_TEND:
        k->p->tend(self, handle(k));
        return BERTH_SUCCESS;
    default:
        return on_node(k);
    }
}

/* A state that is not here: what PreFilter says now, of a pod that it said it of before. */
static void *filter_state_anew(struct call *k)
{
    const struct bh_px_out before = k->a.o;

    if (!k->p->pre_filter)
        return NULL;
    (void)pre_filter(k);
    k->a.o = before;
    return k->c.pre_filter_state;
}

/* ... and PreScore: what outlives an attempt is kept for a template, whose PreScore is about no rows. */
static void *score_state_anew(struct call *k)
{
    if (k->p->pre_score)
        (void)k->p->pre_score(k->i->in.self, handle(k), NULL, 0, &k->why);
    return k->c.pre_score_state;
}

/* other: a state of the same call, which must not make room for it. */
static void *remade(struct call *k, void *(*anew)(struct call *k), uint64_t id, uint64_t other)
{
    enter(k->i, &k->c, &k->r);
    void *p = anew(k);
    bh_native_inside = NULL;
    k->why = (struct berth_why){.size = sizeof k->why};
    return p && id % STATES != other % STATES ? keep(k->i, id, p)->p : p;
}

static void answer(struct call *k)
{
    struct state *f = state_of(k->i, k->r.filter_state), *s = state_of(k->i, k->r.score_state);

    k->c.arena = &host.call;
    k->c.pre_filter_state = f ? f->p : NULL;
    k->c.pre_score_state = s ? s->p : NULL;
    if (k->r.filter_state && !f && k->r.fn != BH_PX_PRE_FILTER)
        k->c.pre_filter_state = remade(k, filter_state_anew, k->r.filter_state, k->r.score_state);
    if (k->r.score_state && !s && k->r.fn != BH_PX_PRE_SCORE)
        k->c.pre_score_state = remade(k, score_state_anew, k->r.score_state, k->r.filter_state);
    void *const was_f = k->c.pre_filter_state, *const was_s = k->c.pre_score_state;
    f = state_of(k->i, k->r.filter_state); /* as it may be here now */
    if (k->r.fn == BH_PX_CHANGE_POD && f)
        k->c.arena = &f->arena; /* it becomes part of the state */
    enter(k->i, &k->c, &k->r);
    k->a.r.code = run(k);
    bh_native_inside = NULL;
    k->a.r.filter_state = k->r.filter_state;
    k->a.r.score_state = k->r.score_state;
    const char *broke = k->i->in.broke;
    struct berth_str reason =
        k->why.reason; /* may lie in the call's memory: it moves, its address stays */
    if (k->c.pre_filter_state != was_f)
        k->a.r.filter_state =
            k->c.pre_filter_state ? keep(k->i, k->i->last_state + 1, k->c.pre_filter_state)->id : 0;
    if (k->c.pre_score_state != was_s)
        k->a.r.score_state =
            k->c.pre_score_state ? keep(k->i, k->i->last_state + 1, k->c.pre_score_state)->id : 0;
    reply_send(&k->a, reason, broke);
}

/* ---- instances ------------------------------------------------------------------------------- */

static struct instance *instance_of(uint32_t id)
{
    for (struct instance *i = host.first; i; i = i->next)
        if (i->id == id)
            return i;
    return NULL;
}

static void free_instance(struct instance *i)
{
    struct instance **at = &host.first;

    while (*at != i)
        at = &(*at)->next;
    *at = i->next;
    for (uint32_t k = 0; i->states && k < STATES; k++)
        bh_arena_fini(&i->states[k].arena);
    free(i->states);
    if (i->in.labels)
        bh_label_columns_fini(i->in.labels);
    free(i->in.labels);
    bh_native_user_free(i->in.user);
    bh_px_world_free(i->world);
    bh_arena_fini(&i->arena);
    free(i);
}

static bh_sym symbol(const struct instance *i, const char *name)
{
    return bh_sym_find(i->in.tab, name, strlen(name));
}

static const struct berth_value *get_args(struct bh_px_in *m, struct bh_arena *a)
{
    struct berth_str text = bh_px_get_str(m);
    struct bh_json *v = NULL;
    struct bh_err err;

    if (!m->bad && text.n)
        (void)bh_json_parse(a, text.p, text.n, 0, &v, &err);
    return (const struct berth_value *)(const void *)v;
}

static void create(const struct bh_px_request *r, struct bh_px_in *m)
{
    struct instance *i = bh_calloc(1, sizeof *i);
    struct reply a = reply_new();
    struct berth_why why = {.size = sizeof why};

    i->id = r->instance;
    i->last_state = r->filter_state;
    i->in.of = host.plugin[r->plugin];
    i->in.arena = &i->arena;
    i->world = bh_px_world_new(&i->in);
    i->in.tab = bh_px_world_symbols(i->world);
    i->in.texts = bh_symtab_texts(i->in.tab);
    i->next = host.first;
    host.first = i;
    bh_px_world_take(i->world, m);
    i->in.cpu = symbol(i, "cpu");
    i->in.memory = symbol(i, "memory");
    i->in.ephemeral = symbol(i, "ephemeral-storage");
    i->in.pods = symbol(i, "pods");
    if (i->in.of->p.flags & BERTH_USER_COLUMNS)
        i->in.user = bh_native_user_new(false);
    const struct berth_value *args = get_args(m, &host.call);
    if (i->in.of->p.create) {
        enter(i, NULL, r);
        a.r.code = i->in.of->p.create((struct berth_home *)(void *)i, args, &i->in.self, &why);
        bh_native_inside = NULL;
    }
    reply_send(&a, why.reason, i->in.broke);
}

static void destroy(struct instance *i, const struct bh_px_request *r)
{
    struct reply a = reply_new();

    if (i->in.of->p.destroy) {
        enter(i, NULL, r);
        i->in.of->p.destroy(i->in.self);
        bh_native_inside = NULL;
    }
    free_instance(i);
    reply_send(&a, (struct berth_str){NULL, 0}, NULL);
}

static struct reply *checking; /* whose errors they are */
void bh_px_argument_error(struct berth_str path, struct berth_str text)
{
    if (!checking)
        return;
    bh_px_put_str(&checking->o, path.p, BH_MIN(path.n, (uint64_t)BH_PX_TEXT_MAX));
    bh_px_put_str(&checking->o, text.p, BH_MIN(text.n, (uint64_t)BH_PX_TEXT_MAX));
}

static void check_args(const struct bh_px_request *r, struct bh_px_in *m)
{
    struct bh_native nobody = {.of = host.plugin[r->plugin]};
    struct reply a = reply_new();

    (void)bh_px_get_u64(m); /* no feed */
    const struct berth_value *args = get_args(m, &host.call);
    checking = &a;
    nobody.hook = r->hook;
    bh_native_inside = &nobody;
    nobody.of->p.check_args(args, (struct berth_errors *)(void *)&a);
    bh_native_inside = NULL;
    checking = NULL;
    reply_send(&a, (struct berth_str){NULL, 0}, NULL);
}

/* ---- what the file has ----------------------------------------------------------------------- */

static uint64_t has(const struct berth_plugin *p)
{
    const struct {
        enum bh_px_fn fn;
        bool is;
    } all[] = {{BH_PX_PRE_ENQUEUE, p->pre_enqueue},
               {BH_PX_HINT, p->hint},
               {BH_PX_EPOCH, p->epoch || p->flags & BERTH_USER_COLUMNS},
               {BH_PX_IDLE, p->idle},
               {BH_PX_PRE_FILTER, p->pre_filter},
               {BH_PX_CHANGE_POD, p->change_pod},
               {BH_PX_CLONE_STATE, p->clone_state},
               {BH_PX_FILTER, p->filter},
               {BH_PX_FILTER_ROWS, p->filter_rows},
               {BH_PX_POST_FILTER, p->post_filter},
               {BH_PX_PRE_SCORE, p->pre_score},
               {BH_PX_SCORE, p->score},
               {BH_PX_SCORE_ROWS, p->score_rows},
               {BH_PX_NORMALIZE, p->normalize},
               {BH_PX_RESERVE, p->reserve},
               {BH_PX_UNRESERVE, p->unreserve},
               {BH_PX_PERMIT, p->permit},
               {BH_PX_PRE_BIND, p->pre_bind},
               {BH_PX_BIND, p->bind},
               {BH_PX_POST_BIND, p->post_bind},
               {BH_PX_LESS, p->less},
               {BH_PX_CHECKS, p->check_args},
               {BH_PX_MAKES, p->create},
               {BH_PX_FREES, p->destroy},
               {BH_PX_TEND, p->tend}};
    uint64_t bits = 0;

    for (unsigned i = 0; i < BH_ARRAY_LEN(all); i++)
        bits |= (uint64_t)all[i].is << all[i].fn;
    return bits;
}

static void describe(struct bh_px_out *o, const struct berth_plugin *p)
{
    bh_px_put_str(o, p->name.p, p->name.n);
    bh_px_put_u64(o, p->flags);
    bh_px_put_u64(o, p->reads);
    bh_px_put_u64(o, p->normal);
    bh_px_put_u64(o, has(p));
    bh_px_put_u64(o, p->events != NULL);
    bh_px_put_u64(o, p->n_events);
    bh_px_put(o, p->events, p->n_events * sizeof *p->events);
    bh_px_put_u64(o, p->n_kinds);
    for (uint64_t i = 0; i < p->n_kinds; i++) {
        bh_px_put_str(o, p->kinds[i].group.p, p->kinds[i].group.n);
        bh_px_put_str(o, p->kinds[i].version.p, p->kinds[i].version.n);
        bh_px_put_str(o, p->kinds[i].resource.p, p->kinds[i].resource.n);
        bh_px_put_u64(o, p->kinds[i].namespaced);
    }
}

/* The second half of the sandbox: the file is loaded, nothing else is to be. What its constructors opened is
 * closed after it, so that none of their threads opens more. */
static int shut(void)
{
    int rc = bh_px_sandbox(false);

    for (int fd = BH_PX_FD_END; rc == 0 && fd < FILES_MAX; fd++)
        (void)close(fd);
    return rc;
}

static int load(struct bh_err *err)
{
    char path[32];
    struct berth_entry e = {.size = sizeof e};
    __typeof__(&berth_plugin_entry_v1) entry;
    int rc;

    snprintf(path, sizeof path, "/proc/self/fd/%d", BH_PX_FD_PLUGIN);
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return bh_err_set(err, -EINVAL, "could not be loaded: %s", dlerror());
    *(void **)&entry = dlsym(lib, ENTRY);
    if (!entry)
        return bh_err_set(err, -EINVAL, "does not export the function " ENTRY);
    rc = shut();
    if (rc < 0)
        return bh_err_set(err, rc, "the sandbox could not be made: %s", strerror(-rc));
    rc = entry(bh_px_host_tables(), &e);
    if (rc != 0)
        return bh_err_set(err, -EINVAL, "refuses to work here: its " ENTRY " returned %d", rc);
    if (!e.n || e.n > BH_PX_PLUGINS || !e.plugins)
        return bh_err_set(err, -EINVAL, "its " ENTRY " tells %llu plugins, 1 to %u are needed",
                          (unsigned long long)e.n, BH_PX_PLUGINS);
    for (; host.n < e.n; host.n++)
        if (!e.plugins[host.n])
            return bh_err_set(err, -EINVAL, "its plugin %u is NULL", host.n);
        else if ((rc = bh_native_adopt(e.plugins[host.n], &host.plugin[host.n], err)) < 0)
            return rc;
    return 0;
}

static void hello(void)
{
    struct reply a = reply_new();
    struct bh_err err = {0};

    a.r.code = load(&err);
    bh_px_put_u64(&a.o, host.n);
    for (uint32_t i = 0; i < host.n; i++)
        describe(&a.o, &host.plugin[i]->p);
    reply_send(&a, (struct berth_str){err.msg, strlen(err.msg)}, NULL);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void call(const struct bh_px_request *r, struct bh_px_in *m)
{
    struct instance *i = instance_of(r->instance);
    struct call k = {.i = i, .r = *r, .m = *m, .why.size = sizeof k.why};

    bh_assert(i); /* the scheduler made it */
    bh_px_world_take(i->world, &k.m);
    k.a = reply_new();
    if (r->op == BH_PX_SYNC) {
        reply_send(&k.a, (struct berth_str){NULL, 0}, NULL);
        return;
    }
    k.p = &i->in.of->p;
    k.c = (struct bh_call){.cache = bh_px_world_cache(i->world),
                           .tab = i->in.tab,
                           .objects = bh_px_world_objects(i->world),
                           .args = &i->in,
                           .arena = &host.call,
                           .now_ns = r->now_ns};
    k.c.pod = bh_px_world_pod(&k.m, &host.call);
    answer(&k);
}

static void serve(void)
{
    struct bh_px_in m = bh_px_heard(bh_px_here.down, false);
    struct bh_px_request r = {0};
    const void *p = bh_px_get(&m, sizeof r);

    bh_assert(p);
    memcpy(&r, p, sizeof r);
    bh_assert(r.plugin < BH_MAX(host.n, 1u));
    if (r.op == BH_PX_HELLO)
        hello();
    else if (r.op == BH_PX_CHECK_ARGS)
        check_args(&r, &m);
    else if (r.op == BH_PX_CREATE)
        create(&r, &m);
    else if (r.op == BH_PX_DESTROY)
        destroy(instance_of(r.instance), &r);
    else
        call(&r, &m);
    bh_px_here.facts = NULL;
    bh_arena_reset(&host.call);
}

/* ---- the process ----------------------------------------------------------------------------- */

static void *await_end(void *arg BH_UNUSED)
{
    char c;

    while (recv(BH_PX_FD_SOCK, &c, 1, 0) > 0) /* it says nothing */
        ;
    _exit(0);
}

/* Nobody's rights, where we have others. */
static int drop_rights(void)
{
    const struct passwd *pw = geteuid() == 0 ? getpwnam("berth-plugin") : NULL;
    const uid_t uid = pw ? pw->pw_uid : NOBODY;
    const gid_t gid = pw ? pw->pw_gid : NOBODY;

    if (geteuid() != 0)
        return 0;
    return setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0
               ? -errno
               : 0;
}

static int prepare(void)
{
    const struct rlimit none = {0, 0}, few = {FILES_MAX, FILES_MAX},
                        memory = {(rlim_t)4 << 30, (rlim_t)4 << 30};
    pthread_t t;

    bh_px_here.down = mmap(NULL, BH_PX_AREA_BYTES, PROT_READ, MAP_SHARED, BH_PX_FD_DOWN, 0);
    bh_px_here.up =
        mmap(NULL, BH_PX_AREA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, BH_PX_FD_UP, 0);
    if (bh_px_here.down == MAP_FAILED || bh_px_here.up == MAP_FAILED)
        return -errno;
    if (close_range(BH_PX_FD_END, ~0u, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0 ||
        setrlimit(RLIMIT_NOFILE, &few) < 0 || setrlimit(RLIMIT_DATA, &memory) < 0)
        return -errno;
    int rc = drop_rights();
    if (rc == 0)
        rc = -pthread_create(&t, NULL, await_end, NULL);
    return rc == 0 ? bh_px_sandbox(true) : rc;
}

int bh_px_host_main(int argc BH_UNUSED, char **argv BH_UNUSED)
{
    struct bh_err err = {0};
    int rc = prepare();

    if (bh_px_here.down == MAP_FAILED || bh_px_here.up == MAP_FAILED) {
        fprintf(stderr, "berth-plugin-host: what it was given is no memory: %s\n", strerror(-rc));
        return 1;
    }
    if (rc < 0) {
        struct reply a = reply_new();
        a.r.code = bh_err_set(&err, rc, "its process could not be prepared: %s", strerror(-rc));
        (void)bh_px_listen(bh_px_here.up, bh_px_here.down, 0, 0, NULL, NULL);
        reply_send(&a, (struct berth_str){err.msg, strlen(err.msg)}, NULL);
        return 1;
    }
    for (;;) {
        (void)bh_px_listen(bh_px_here.up, bh_px_here.down, bh_px_here.seen, 0, NULL, NULL);
        bh_px_here.seen = atomic_load(&bh_px_here.down->seq);
        serve();
    }
}
