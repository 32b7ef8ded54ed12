/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/adapter.c - a plugin's callbacks as the framework's
 *
 * One set of functions for all native plugins: the instance is the call's args. Nothing of what a
 * plugin says is believed: codes, texts and scores are looked at before they go on, and an answer
 * that may not be is an Error with what was wrong, which the framework gives the plugin's name.
 *
 * Invariants: bh_native_inside is set exactly while a plugin's code runs.
 * Runs in:    the engine's thread.
 */
#include <errno.h>
#include <inttypes.h>

#include "common/base/log.h"
#include "common/base/utf8.h"
#include "scheduler/framework/framework.h"
#include "scheduler/native/process.h"

#define REASON_MAX  1024u /* bytes of a reason */
#define NAMES_MAX   (1u << 20)
#define READS_ALL   127u
#define READS_NODES (BERTH_READS_NODE | BERTH_READS_SUMS | BERTH_READS_PODS)
#define READS_KEPT  (READS_NODES | BERTH_READS_OBJECTS | BERTH_READS_ANNOTATIONS)
#define KNOWN_FLAGS 0u
#define BIT(code)   (1u << (code))
#define AHEAD       8   /* nodes, whose records are fetched while the plugin works */
#define SOON        64u /* nodes, of which another process is worth waking before its turn */

/* What may be returned; Error always may. */
#define REJECTIONS (BIT(BERTH_UNSCHEDULABLE) | BIT(BERTH_UNRESOLVABLE) | BIT(BERTH_PENDING))
#define OR_SKIP    BIT(BERTH_SKIP)
#define OR_WAIT    BIT(BERTH_WAIT)
#define NOTHING    0u

_Thread_local struct bh_native *bh_native_inside;

bool bh_native_is_text(struct berth_str s)
{
    const char *end = s.p + s.n;

    for (const char *p = s.p; p < end;) {
        unsigned n = bh_utf8_len(p, end);
        if (!n || (unsigned char)*p < 0x20 || *p == 0x7f)
            return false;
        p += n;
    }
    return true;
}

static const struct berth_plugin *enter(struct bh_native *in, struct bh_call *c,
                                        enum bh_native_hook hook, uint32_t may)
{
    if (bh_native_mark && !in->of->process) {
        bh_native_mark->plugin = in->of->index;
        bh_native_mark->calls++;
        bh_native_mark->hook = hook; /* last: from now on an end of the process is the plugin's */
    }
    in->call = c;
    in->hook = hook;
    in->may = may;
    in->broke = NULL;
    bh_native_inside = in;
    return &in->of->p;
}

static void leave(void)
{
    if (bh_native_mark)
        bh_native_mark->hook = BH_HOOK_NONE;
    bh_native_inside = NULL;
}

static struct bh_native *instance(const struct bh_call *c)
{
    return (struct bh_native *)(uintptr_t)c->args;
}

/* Of callbacks whose answers may be kept. */
static uint32_t declared(const struct bh_native *in)
{
    return in->of->p.reads ? in->of->p.reads : READS_ALL;
}

/* Of the others: annotations are there only where somebody asked for them. */
static uint32_t anything(const struct bh_native *in)
{
    return READS_ALL | (in->of->p.reads & BERTH_READS_ANNOTATIONS);
}

static struct berth_why why_new(void)
{
    return (struct berth_why){.size = sizeof(struct berth_why)};
}

static const struct bh_status *error(const struct bh_native *in, const char *text)
{
    return bh_status_new(in->call->arena, BH_ERROR, in->of->d.name, "%s", text);
}

/* Rejections are few, and given for node after node. */
static const struct bh_status *reason(struct bh_native *in, enum bh_code code, struct berth_str s)
{
    bh_assert(s.p);
    for (uint32_t i = 0; i < in->n_reasons; i++)
        if (in->reason[i]->code == code && s.n <= REASON_MAX &&
            bh_str_eq(bh_str_c(in->reason[i]->reasons[0]), (struct bh_str){s.p, (uint32_t)s.n}))
            return in->reason[i];
    if (!bh_native_is_text(s) || s.n > REASON_MAX)
        return error(in, s.n > REASON_MAX ? "it gave a reason of more than 1024 bytes"
                                          : "it gave a reason that is not printable UTF-8");
    bool keep = in->n_reasons < BH_NATIVE_REASONS && code != BH_ERROR;
    const struct bh_status *st = bh_status_new(keep ? in->arena : in->call->arena, code,
                                               in->of->d.name, "%.*s", (int)s.n, s.p);
    if (keep)
        in->reason[in->n_reasons++] = st;
    return st;
}

/* What an answer other than SUCCESS means, or one after the plugin did what it may not. */
static const struct bh_status *objection(struct bh_native *in, int32_t code, uint32_t may,
                                         const struct berth_why *why)
{
    static const struct bh_status wait = {.code = BH_WAIT};

    if (in->broke)
        return error(in, in->broke);
    if (code < 0 || code > BERTH_PENDING)
        return error(in, bh_arena_printf(
                             in->call->arena,
                             "it returned the status code %" PRId32 ", which there is not", code));
    if (code != BERTH_ERROR && !(may >> code & 1))
        return error(in, bh_arena_printf(in->call->arena, "it may not return %s here",
                                         bh_code_name((enum bh_code)code)));
    if (code == BERTH_SKIP)
        return &bh_status_skip;
    if (code == BERTH_WAIT)
        return &wait;
    if (why->reason.p && why->reason.n)
        return reason(in, (enum bh_code)code, why->reason);
    struct bh_str none =
        bh_str_c(bh_arena_printf(in->call->arena, "plugin \"%s\" gave no reason", in->of->d.name));
    return reason(in, (enum bh_code)code, (struct berth_str){none.p, none.n});
}

/* What a callback's answer means. may: bits of the codes that are allowed besides SUCCESS. */
static inline const struct bh_status *verdict(struct bh_native *in, int32_t code, uint32_t may,
                                              const struct berth_why *why)
{
    leave();
    return bh_likely(code == BERTH_SUCCESS && !in->broke) ? NULL : objection(in, code, may, why);
}

static struct berth_call *handle(struct bh_call *c)
{
    return (struct berth_call *)(void *)c;
}

/* ---- queue ----------------------------------------------------------------------------------- */

static const struct bh_status *pre_enqueue(struct bh_call *c)
{
    struct bh_native *in = instance(c);
    struct berth_why why = why_new();
    int32_t code =
        enter(in, c, BH_HOOK_PRE_ENQUEUE, anything(in))->pre_enqueue(in->self, handle(c), &why);

    return verdict(in, code, REJECTIONS, &why);
}

/* What a change of an object is about. */
static void changed_object(const struct bh_native *in, const struct bh_hint_call *h,
                           struct berth_change *ret)
{
    const struct bh_cluster_event *ev = h->ev;
    struct bh_str ns = bh_sym_str(h->tab, ev->object_namespace);
    struct bh_str name = bh_sym_str(h->tab, ev->object_name);

    for (uint32_t i = 0; i < in->of->p.n_kinds; i++)
        if (in->of->kind[i] == ev->kind)
            ret->on = BERTH_ON_KIND(i);
    ret->object_namespace = (struct berth_str){ns.p, ns.n};
    ret->object_name = (struct berth_str){name.p, name.n};
    ret->object = (const struct berth_object *)(const void *)bh_objects_find(h->objects, ev->kind,
                                                                             ns.p, name.p);
}

static enum bh_hint hint(const struct bh_hint_call *h)
{
    struct bh_native *in = (struct bh_native *)(uintptr_t)h->args;
    const struct bh_cluster_event *ev = h->ev;
    if (!in)
        return BH_QUEUE;
    const struct bh_pod_info pod = {.rec = h->waiting->pod,
                                    .shape = h->shape,
                                    .shape_id = h->waiting->shape},
                             old_pod = {.rec = ev->old_pod, .shape = ev->old_shape},
                             new_pod = {.rec = ev->new_pod, .shape = ev->new_shape};
    const struct bh_node_info old_node = {.rec = ev->old_node,
                                          .name = ev->old_node ? ev->old_node->name : 0,
                                          .row = BH_ROW_NONE},
                              new_node = {.rec = ev->new_node,
                                          .name = ev->new_node ? ev->new_node->name : 0,
                                          .row = BH_ROW_NONE};
    struct bh_call c = {.cache = (struct bh_cache *)(uintptr_t)h->cache,
                        .tab = h->tab,
                        .objects = h->objects,
                        .args = h->args,
                        .pod = &pod};
    struct berth_change change = {
        .size = sizeof change,
        .on = ev->resource == BH_EV_NODE ? BERTH_ON_NODE : BERTH_ON_POD,
        .action = ev->action,
        .old_node = ev->old_node ? bh_node_handle(&old_node) : NULL,
        .new_node = ev->new_node ? bh_node_handle(&new_node) : NULL,
        .old_pod = ev->old_pod && ev->old_shape ? bh_pod_handle(&old_pod) : NULL,
        .new_pod = ev->new_pod && ev->new_shape ? bh_pod_handle(&new_pod) : NULL};

    if (ev->resource == BH_EV_OBJECT)
        changed_object(in, h, &change);
    in->by_pod = h->by_pod;
    int32_t answer =
        enter(in, &c, BH_HOOK_HINT, BERTH_READS_NODE | BERTH_READS_IDENTITY | BERTH_READS_OBJECTS)
            ->hint(in->self, handle(&c), &change);
    leave();
    in->by_pod = NULL;
    /* What went wrong here would be tried in vain for ever otherwise. */
    return answer || in->broke ? BH_QUEUE : BH_QUEUE_SKIP;
}

/* The order where the plugin has none: PrioritySort's. */
static bool less_by_default(const struct bh_queue_key *a, const struct bh_queue_key *b)
{
    if (a->shape->priority != b->shape->priority)
        return a->shape->priority > b->shape->priority;
    return a->timestamp_ns < b->timestamp_ns;
}

static bool less(struct bh_call *c, const struct bh_queue_key *a, const struct bh_queue_key *b)
{
    struct bh_native *in = instance(c);
    const struct bh_queue_key *const keys[] = {a, b};
    struct bh_pod_info pod[2];
    struct berth_queued q[2];

    if (in->of->aside)
        return less_by_default(a, b);
    for (unsigned i = 0; i < 2; i++) {
        pod[i] = (struct bh_pod_info){.rec = keys[i]->waiting->pod,
                                      .shape = keys[i]->shape,
                                      .shape_id = keys[i]->waiting->shape};
        q[i] = (struct berth_queued){.size = sizeof q[i],
                                     .attempts = keys[i]->attempts,
                                     .pod = bh_pod_handle(&pod[i]),
                                     .timestamp = keys[i]->timestamp_ns,
                                     .initial_attempt = keys[i]->initial_attempt_ns};
    }
    int32_t answer =
        enter(in, c, BH_HOOK_LESS, BERTH_READS_IDENTITY | (declared(in) & BERTH_READS_OBJECTS))
            ->less(in->self, handle(c), &q[0], &q[1]);
    leave();
    if (bh_likely(!in->broke))
        return answer;
    if (!in->told_less) /* it cannot fail */
        bh_log_error("A QueueSort plugin looked at what it may not: pods go by priority and time",
                     bh_kv_s("plugin", in->of->d.name), bh_kv_s("err", in->broke));
    in->told_less = true;
    return less_by_default(a, b);
}

static uint64_t ask_epoch(struct bh_native *in, struct bh_call *c)
{
    uint64_t e = enter(in, c, BH_HOOK_EPOCH, anything(in))->epoch(in->self, handle(c));

    leave();
    return e;
}

/* ---- filtering ------------------------------------------------------------------------------- */

/* The plugin has no say about the pod, as it says. */
static bool is_idle(struct bh_call *c)
{
    struct bh_native *in = instance(c);

    if (!in->of->p.idle)
        return false;
    int32_t answer = enter(in, c, BH_HOOK_IDLE, declared(in))->idle(in->self, handle(c));
    leave();
    return answer && !in->broke;
}

static const struct bh_status *no_say(struct bh_call *c)
{
    const struct bh_native *in = instance(c);

    if (is_idle(c))
        return &bh_status_skip;
    return in->of->p.idle && in->broke ? error(in, in->broke) : NULL;
}

static const struct bh_status *pre_filter(struct bh_call *c, struct bh_node_set *ret)
{
    struct bh_native *in = instance(c);
    const struct bh_status *none = no_say(c);

    if (none || !in->of->p.pre_filter)
        return none;
    struct berth_why why = why_new();
    const berth_sym *names = NULL;
    uint64_t n = 0;

    if (in->of->p.epoch) /* the moment that pre_filter's answers hold from */
        (void)ask_epoch(in, c);
    int32_t code = enter(in, c, BH_HOOK_PRE_FILTER, declared(in))
                       ->pre_filter(in->self, handle(c), &names, &n, &why);
    const struct bh_status *s = verdict(in, code, REJECTIONS | OR_SKIP, &why);

    if (s || !names)
        return s;
    if (n > NAMES_MAX)
        return error(in, "it named more than 1048576 nodes");
    bh_sym *mine = bh_arena_memdup(c->arena, names, n * sizeof *mine);
    for (uint64_t i = 0; i < n; i++)
        if (mine[i] >= bh_symtab_count(c->tab))
            return error(in, "it named a node by a symbol that there is not");
    *ret = (struct bh_node_set){.n = (uint32_t)bh_sort_unique(mine, n, sizeof *mine, bh_by_sym),
                                .names = mine};
    return NULL;
}

static const struct bh_status *change_pod(struct bh_call *c, const struct bh_pod_info *pod,
                                          const struct bh_node_info *node, int by)
{
    struct bh_native *in = instance(c);
    struct berth_why why = why_new();
    int32_t code =
        enter(in, c, BH_HOOK_CHANGE_POD, declared(in))
            ->change_pod(in->self, handle(c), bh_pod_handle(pod), bh_node_handle(node), by, &why);

    return verdict(in, code, NOTHING, &why);
}

static void *clone_state(struct bh_call *c)
{
    struct bh_native *in = instance(c);
    void *state = enter(in, c, BH_HOOK_CHANGE_POD, declared(in))
                      ->clone_state(in->self, handle(c), c->pre_filter_state);

    leave();
    return state;
}

static const struct bh_status *filter(struct bh_call *c, const struct bh_node_info *node)
{
    struct bh_native *in = instance(c);
    struct berth_why why = why_new();
    int32_t code = enter(in, c, BH_HOOK_FILTER, declared(in))
                       ->filter(in->self, handle(c), bh_node_handle(node), &why);

    return verdict(in, code, REJECTIONS, &why);
}

/* What a batch form may not touch is handed over as a copy, and compared. */
static const struct bh_status *rows_verdict(struct bh_native *in, int32_t code,
                                            const struct berth_why *why, const uint32_t *copy,
                                            const uint32_t *rows, uint32_t n)
{
    const struct bh_status *s = verdict(in, code, NOTHING, why);

    if (!s && n && memcmp(copy, rows, n * sizeof *rows) != 0)
        return error(in, "it changed the rows that it was given");
    return s;
}

static uint32_t filter_rows(struct bh_call *c, uint32_t *rows, uint32_t n)
{
    struct bh_native *in = instance(c);
    struct berth_why why = why_new();
    uint64_t *keep = bh_arena_new_array(c->arena, uint64_t, n / 64 + 1);
    uint32_t *copy = bh_arena_memdup(c->arena, rows, n * sizeof *rows), m = 0;
    int32_t code = enter(in, c, BH_HOOK_FILTER, declared(in))
                       ->filter_rows(in->self, handle(c), copy, n, keep, &why);

    if (rows_verdict(in, code, &why, copy, rows, n)) { /* filter() is asked, and says it */
        c->cycle->filter_failed = true;
        return 0;
    }
    for (uint32_t i = 0; i < n; i++)
        if (keep[i / 64] >> i % 64 & 1)
            rows[m++] = rows[i];
    return m;
}

/* What run() said is longer than a plugin's own reason may be: it has a part for each node. */
static const struct bh_status *run_said(struct bh_native *in, int32_t code,
                                        const struct berth_why *why)
{
    const struct bh_status *s = in->no_room;

    if (in->broke || !s || code != (int32_t)s->code || why->reason.p != in->no_room_text)
        return NULL;
    leave();
    return bh_status_new(in->call->arena, s->code, in->of->d.name, "%s", in->no_room_text);
}

static const struct bh_status *post_filter(struct bh_call *c, const struct bh_diagnosis *d,
                                           struct bh_post_filter_result *ret)
{
    struct bh_native *in = instance(c);
    struct berth_why why = why_new();
    struct berth_post_filter r = {.size = sizeof r};
    in->diagnosis = d;
    in->preempted = ret;
    in->ran = in->found = false;
    in->no_room = NULL;
    int32_t code =
        enter(in, c, BH_HOOK_POST_FILTER, anything(in))->post_filter(in->self, handle(c), &r, &why);
    const struct bh_status *s = run_said(in, code, &why);
    if (!s)
        s = verdict(in, code, REJECTIONS, &why);

    in->diagnosis = NULL;
    in->preempted = NULL;
    if (s && in->found) /* it does without */
        *ret = (struct bh_post_filter_result){0};
    if (s || !r.nominate || in->found)
        return s;
    if (r.nominate >= bh_symtab_count(c->tab) || !bh_cache_node(c->cache, r.nominate))
        return error(in, "it nominated a node that there is not");
    ret->override_nomination = true;
    ret->node = r.nominate;
    return NULL;
}

/* ---- scoring --------------------------------------------------------------------------------- */

static const struct bh_status *pre_score(struct bh_call *c, const uint32_t *rows, uint32_t n)
{
    struct bh_native *in = instance(c);
    const struct bh_status *none = no_say(c);

    if (none || !in->of->p.pre_score)
        return none;
    struct berth_why why = why_new();
    bool all = declared(in) & BERTH_READS_OTHERS;
    int32_t code = enter(in, c, BH_HOOK_PRE_SCORE, declared(in))
                       ->pre_score(in->self, handle(c), all ? rows : NULL, all ? n : 0, &why);

    return verdict(in, code, OR_SKIP, &why);
}

/* Scores that the framework is going to normalise by their largest. */
static const struct bh_status *check_raw(struct bh_native *in, const int64_t *scores, uint32_t n)
{
    if (in->of->p.normal == BERTH_NORMAL_NONE)
        return NULL; /* 0 to 100 is checked by the framework, maybe after normalize() */
    for (uint32_t i = 0; i < n; i++)
        if (scores[i] < 0)
            return error(in, bh_arena_printf(in->call->arena,
                                             "it returned the score %" PRId64
                                             ": from 0 on is needed before normalizing",
                                             scores[i]));
    return NULL;
}

static const struct bh_status *score_by_rows(struct bh_native *in, struct bh_call *c,
                                             const uint32_t *rows, uint32_t n, int64_t *ret)
{
    struct berth_why why = why_new();
    uint32_t *copy = bh_arena_memdup(c->arena, rows, n * sizeof *rows);
    int32_t code = enter(in, c, BH_HOOK_SCORE, declared(in))
                       ->score_rows(in->self, handle(c), copy, n, ret, &why);
    const struct bh_status *s = rows_verdict(in, code, &why, copy, rows, n);

    return s ? s : check_raw(in, ret, n);
}

static const struct bh_status *score(struct bh_call *c, const struct bh_node_info *node,
                                     int64_t *ret)
{
    struct bh_native *in = instance(c);
    struct berth_why why = why_new();

    *ret = 0;
    if (!in->of->p.score) /* it reads nodes' objects only: the row says it all */
        return score_by_rows(in, c, &node->row, 1, ret);
    int32_t code = enter(in, c, BH_HOOK_SCORE, declared(in))
                       ->score(in->self, handle(c), bh_node_handle(node), ret, &why);
    const struct bh_status *s = verdict(in, code, NOTHING, &why);
    return s ? s : check_raw(in, ret, 1);
}

static void score_rows(struct bh_call *c, const uint32_t *rows, uint32_t n, int64_t *ret)
{
    if (score_by_rows(instance(c), c, rows, n, ret))
        c->cycle->score_failed = true; /* score() is asked, and says it */
}

/* In a process of its own it begins before its turn. */
static void score_soon(struct bh_call *c, const uint32_t *rows, uint32_t n)
{
    struct bh_native *in = instance(c);

    if (n < SOON)
        return;
    (void)enter(in, c, BH_HOOK_SCORE, declared(in));
    bh_px_score_soon(in->self, rows, n);
    leave();
}

/* Node after node, for a plugin without a batch form: it is entered once for all of them. Each has a
 * call of its own in the mark, because the watchdog counts them. */
static void score_each(struct bh_call *c, const uint32_t *rows, uint32_t n, int64_t *ret)
{
    struct bh_native *in = instance(c);
    struct berth_why why = why_new();
    volatile uint64_t nobody = 0;
    volatile uint64_t *const calls = bh_native_mark ? &bh_native_mark->calls : &nobody;
    struct bh_node_info *const *const nodes = c->cache->rows;
    const __typeof__(in->of->p.score) ask = enter(in, c, BH_HOOK_SCORE, declared(in))->score;
    void *const self = in->self;
    int32_t code = BERTH_SUCCESS;

    memset(ret, 0, n * sizeof *ret);
    int64_t *to = ret;
    *calls -= n != 0; /* the first one's was counted on entering */
    for (const uint32_t *row = rows, *end = rows + n; row < end && code == BERTH_SUCCESS; row++) {
        if (end - row > AHEAD)
            __builtin_prefetch(nodes[row[AHEAD]]);
        *calls += 1;
        code = ask(self, handle(c), bh_node_handle(nodes[*row]), to++, &why);
    }
    leave();
    if (code != BERTH_SUCCESS || in->broke || check_raw(in, ret, n))
        c->cycle->score_failed = true; /* score() is asked, and says it */
}

/* The framework's Normalize does not fail; it looks at the scores. */
static void normalize(struct bh_call *c, int64_t *scores, uint32_t n)
{
    struct bh_native *in = instance(c);
    struct berth_why why = why_new();
    int32_t code = enter(in, c, BH_HOOK_NORMALIZE, declared(in) & ~READS_NODES)
                       ->normalize(in->self, handle(c), scores, n, &why);
    const struct bh_status *s = verdict(in, code, NOTHING, &why);

    if (!s)
        return;
    bh_log_error("Normalizing scores failed", bh_kv_s("plugin", in->of->d.name),
                 bh_kv_s("err", bh_status_message(c->arena, s)));
    for (uint32_t i = 0; i < n; i++)
        scores[i] = -1;
}

static uint64_t epoch(struct bh_call *c)
{
    struct bh_native *in = instance(c);
    uint64_t e[2 + BH_CUSTOM_KINDS] = {0, in->user ? bh_native_user_epoch(in->user, c) : 0};
    uint32_t n = 2;

    if (in->of->p.epoch)
        e[0] = ask_epoch(in, c);
    for (uint32_t i = 0; i < in->of->p.n_kinds; i++)
        e[n++] = c->objects->version[in->of->kind[i]];
    return bh_hash(e, n * sizeof *e, 0);
}

/* ---- after a node was chosen ----------------------------------------------------------------- */

static const struct bh_status *reserve(struct bh_call *c, bh_sym node)
{
    struct bh_native *in = instance(c);
    struct berth_why why = why_new();
    int32_t code =
        enter(in, c, BH_HOOK_RESERVE, anything(in))->reserve(in->self, handle(c), node, &why);

    return verdict(in, code, REJECTIONS, &why);
}

static void unreserve(struct bh_call *c, bh_sym node)
{
    struct bh_native *in = instance(c);

    enter(in, c, BH_HOOK_UNRESERVE, anything(in))->unreserve(in->self, handle(c), node);
    leave();
}

static const struct bh_status *permit(struct bh_call *c, bh_sym node, int64_t *ret)
{
    struct bh_native *in = instance(c);
    struct berth_why why = why_new();
    int64_t wait_ns = 0;
    int32_t code = enter(in, c, BH_HOOK_PERMIT, anything(in))
                       ->permit(in->self, handle(c), node, &wait_ns, &why);
    const struct bh_status *s = verdict(in, code, REJECTIONS | OR_WAIT, &why);

    if (bh_status_code(s) == BH_WAIT && wait_ns < 0)
        return error(in, "it wants the pod to wait for less than no time");
    *ret = wait_ns;
    return s;
}

static const struct bh_status *reserve_nothing(struct bh_call *c BH_UNUSED, bh_sym node BH_UNUSED)
{
    return NULL;
}
static void unreserve_nothing(struct bh_call *c BH_UNUSED, bh_sym node BH_UNUSED)
{
}

/* Asked until it wants nothing more that is not written: what it asked for before it hears is done. */
static const struct bh_status *pre_bind(struct bh_call *c, bh_sym node, int64_t since_ns BH_UNUSED)
{
    struct bh_native *in = instance(c);
    struct berth_why why = why_new();

    in->node = node;
    in->n_new = 0;
    int32_t code =
        enter(in, c, BH_HOOK_PRE_BIND, anything(in))->pre_bind(in->self, handle(c), node, &why);
    const struct bh_status *s = verdict(in, code, REJECTIONS | OR_WAIT, &why);
    if (bh_status_code(s) == BH_WAIT || (!s && in->n_new))
        return bh_status_new(c->arena, BH_WAIT, in->of->d.name, "%s", "");
    return s;
}

static const struct bh_status *bind(struct bh_call *c, bh_sym node, struct bh_bind_order *ret)
{
    struct bh_native *in = instance(c);
    struct berth_why why = why_new();

    in->node = node;
    in->order = ret;
    int32_t code = enter(in, c, BH_HOOK_BIND, anything(in))->bind(in->self, handle(c), node, &why);
    in->order = NULL;
    return verdict(in, code, REJECTIONS | OR_SKIP, &why);
}

static void post_bind(struct bh_call *c, bh_sym node)
{
    struct bh_native *in = instance(c);

    enter(in, c, BH_HOOK_POST_BIND, anything(in))->post_bind(in->self, handle(c), node);
    leave();
}

static void tend(struct bh_call *c)
{
    struct bh_native *in = instance(c);

    if (in->of->aside)
        return;
    enter(in, c, BH_HOOK_TEND, anything(in))->tend(in->self, handle(c));
    leave();
    if (in->broke && !in->told_tend)
        bh_log_error("A plugin did what it may not", bh_kv_s("plugin", in->of->d.name),
                     bh_kv_s("at", bh_native_hook_name(BH_HOOK_TEND)), bh_kv_s("err", in->broke));
    in->told_tend = in->broke;
}

/* ---- configuration --------------------------------------------------------------------------- */

/* As the plugin sees them. */
static const struct bh_json *own_args(struct bh_arena *a, const struct bh_json *args)
{
    struct bh_json *own = args ? bh_json_clone(a, args) : NULL;

    if (own && own->type == BH_JSON_OBJECT)
        bh_json_drop(own, "apiVersion kind");
    return own;
}

static const struct bh_native_plugin *of(const struct bh_plugin *d)
{
    return bh_container_of(d, const struct bh_native_plugin, d);
}

static void args_check(const struct bh_plugin *self, const struct bh_json *args, const char *path,
                       struct bh_field_errors *errs)
{
    struct bh_native_errors e = {errs, path};
    struct bh_native nobody = {.of = of(self)};

    if (!of(self)->p.check_args)
        return;
    enter(&nobody, NULL, BH_HOOK_CREATE, 0)
        ->check_args((const struct berth_value *)(const void *)own_args(errs->a, args),
                     (struct berth_errors *)(void *)&e);
    leave();
}

static int args_new(const struct bh_plugin_env *env, const struct bh_json *args, void **ret,
                    struct bh_err *err)
{
    struct bh_native *in = bh_arena_new(env->arena, struct bh_native);
    struct berth_why why = why_new();
    int32_t code = BERTH_SUCCESS;

    *in = (struct bh_native){.of = of(env->plugin),
                             .arena = env->arena,
                             .tab = env->tab,
                             .texts = bh_symtab_texts(env->tab),
                             .waiting = env->waiting,
                             .asks = env->asks,
                             .reserved = env->reserved,
                             .waker = {.plugin = env->plugin->name},
                             .cpu = bh_sym_internc(env->tab, "cpu"),
                             .memory = bh_sym_internc(env->tab, "memory"),
                             .ephemeral = bh_sym_internc(env->tab, "ephemeral-storage"),
                             .pods = bh_sym_internc(env->tab, "pods")};
    struct bh_field_errors errs = {.a = env->arena};
    args_check(env->plugin, args, "args", &errs); /* without any in the file it was not yet */
    if (errs.n)
        return bh_err_set(err, -EINVAL, "%s", bh_field_errors_text(&errs));
    in->user = in->of->p.flags & BERTH_USER_COLUMNS ? bh_native_user_new(env->verify) : NULL;
    if (in->of->p.create) {
        code = enter(in, NULL, BH_HOOK_CREATE, 0)
                   ->create((struct berth_home *)(void *)in,
                            (const struct berth_value *)(const void *)own_args(env->arena, args),
                            &in->self, &why);
        leave();
    }
    if (code == BERTH_SUCCESS) {
        if (in->asks)
            bh_asks_add_waker(in->asks, &in->waker);
        *ret = in;
        return 0;
    }
    bh_native_user_free(in->user);
    bool good = why.reason.p && why.reason.n && why.reason.n < sizeof err->msg &&
                bh_native_is_text(why.reason);
    return bh_err_set(err, -EINVAL, "%.*s", good ? (int)why.reason.n : 17,
                      good ? why.reason.p : "it gave no reason");
}

static void args_free(void *args)
{
    struct bh_native *in = args;

    if (!in)
        return;
    if (in->of->p.destroy) {
        enter(in, NULL, BH_HOOK_CREATE, 0)->destroy(in->self);
        leave();
    }
    if (in->labels)
        bh_label_columns_fini(in->labels);
    free(in->labels);
    bh_native_user_free(in->user); /* last: until destroy() returned, its threads publish */
}

/* ---- the descriptor -------------------------------------------------------------------------- */

static const char *wrong_with(const struct berth_plugin *p)
{
    if (!p->name.n || !p->name.p)
        return "has no name";
    if (p->flags >> 16 & ~(KNOWN_FLAGS >> 16))
        return "demands what this Berth does not know (flags)";
    if (p->reads & ~(READS_ALL | BERTH_READS_ANNOTATIONS))
        return "reads what this Berth does not know (bits of reads)";
    if (p->reads & BERTH_READS_ANNOTATIONS &&
        !(p->reads & (BERTH_READS_NODE | BERTH_READS_IDENTITY)))
        return "has BERTH_READS_ANNOTATIONS in its reads, but neither NODE nor IDENTITY: whose?";
    if (p->normal > BERTH_NORMAL_MAX_REVERSE)
        return "has another way of normalizing than BERTH_NORMAL_NONE, MAX and MAX_REVERSE";
    if (p->normal && p->normalize)
        return "has both normal and normalize()";
    if (!p->change_pod != !p->clone_state)
        return "has one of change_pod() and clone_state(): both are needed, or none";
    if (p->filter_rows && !p->filter)
        return "has filter_rows() but not filter(), which says why";
    if (p->score_rows && !p->score &&
        (!p->reads ||
         p->reads & ~(BERTH_READS_NODE | BERTH_READS_OBJECTS | BERTH_READS_ANNOTATIONS)))
        return "has score_rows() but not score(), and reads more than BERTH_READS_NODE and OBJECTS";
    if ((p->normalize || p->normal || p->pre_score) && !p->score && !p->score_rows)
        return "has pre_score() or normalizes, but does not score";
    if (p->n_events > 64 || (p->n_events && !p->events))
        return "has more than 64 events, or none at their address";
    if (p->n_kinds > BH_CUSTOM_KINDS || (p->n_kinds && !p->kinds))
        return "has more than 16 kinds, or none at their address";
    for (uint64_t i = 0; i < p->n_events; i++)
        if (p->events[i].on != BERTH_ON_POD && p->events[i].on != BERTH_ON_NODE &&
            (p->events[i].on < BERTH_ON_KIND(0) || p->events[i].on >= BERTH_ON_KIND(p->n_kinds)))
            return "has an event on something that is neither BERTH_ON_POD, BERTH_ON_NODE nor one "
                   "of "
                   "its kinds";
    if (p->reads & BERTH_READS_OBJECTS && !p->n_kinds)
        return "has BERTH_READS_OBJECTS in its reads, but names no kinds";
    return NULL;
}

/* Does what the plugin says hold as long as the nodes it is about do not change? */
static uint32_t kept_flags(const struct berth_plugin *p)
{
    if (!p->reads || p->reads & ~READS_KEPT)
        return 0;
    return BH_PLUGIN_NODE_LOCAL | (p->reads & BERTH_READS_PODS ? 0 : BH_PLUGIN_READS_SUMS) |
           (p->reads & (BERTH_READS_PODS | BERTH_READS_SUMS) ? 0 : BH_PLUGIN_READS_NODE);
}

static bool never_idle(struct bh_call *c BH_UNUSED)
{
    return false;
}
static enum bh_overlay_answer passes_all(struct bh_call *c BH_UNUSED, uint32_t *rows BH_UNUSED,
                                         uint32_t *n BH_UNUSED)
{
    return BH_OVERLAY_ALWAYS;
}

static const struct bh_event_reg *events_of(const struct bh_native_plugin *np)
{
    const struct berth_plugin *p = &np->p;

    if (!p->events)
        return NULL;
    struct bh_event_reg *r = bh_calloc(p->n_events + 1, sizeof *r);
    for (uint64_t i = 0, n = 0; i < p->n_events; i++)
        if (p->events[i].actions & BERTH_ALL)
            r[n++] =
                (struct bh_event_reg){.on = p->events[i].on == BERTH_ON_NODE  ? BH_ON_NODE
                                            : p->events[i].on == BERTH_ON_POD ? BH_ON_POD
                                                                              : BH_ON_OBJECT,
                                      .kind = p->events[i].on < BERTH_ON_KIND(0)
                                                  ? BH_KIND_NODE
                                                  : np->kind[p->events[i].on - BERTH_ON_KIND(0)],
                                      .actions = p->events[i].actions & BERTH_ALL,
                                      .hint = p->hint ? hint : NULL};
    return r;
}

static uint64_t kinds_of(const struct bh_native_plugin *np)
{
    uint64_t kinds = 0;

    for (uint32_t i = 0; i < np->p.n_kinds; i++)
        kinds |= UINT64_C(1) << np->kind[i];
    return kinds;
}

/* Each of its kinds gets a number. */
static int declare_kinds(struct bh_native_plugin *np, struct bh_err *err)
{
    for (uint32_t i = 0; i < np->p.n_kinds; i++) {
        const struct berth_kind *k = &np->p.kinds[i];
        const struct berth_str *texts[] = {&k->group, &k->version, &k->resource};
        char name[3][256];
        for (unsigned t = 0; t < BH_ARRAY_LEN(texts); t++) {
            if (texts[t]->n >= sizeof name[t] || (texts[t]->n && !texts[t]->p))
                return bh_err_set(err, -EINVAL, "kinds[%u] has a text of more than 255 bytes", i);
            snprintf(name[t], sizeof name[t], "%.*s", (int)texts[t]->n,
                     texts[t]->n ? texts[t]->p : "");
        }
        int rc = bh_kind_declare(name[0], name[1], name[2], &np->kind[i], err);
        if (rc < 0) {
            struct bh_err why = *err;
            return bh_err_set(err, rc, "kinds[%u]: %s", i, why.msg);
        }
    }
    return 0;
}

static unsigned annotations_of(const struct berth_plugin *p)
{
    if (!(p->reads & BERTH_READS_ANNOTATIONS))
        return 0;
    return (p->reads & BERTH_READS_NODE ? BH_ANNOTATIONS_NODES : 0) |
           (p->reads & BERTH_READS_IDENTITY ? BH_ANNOTATIONS_PODS : 0);
}

void bh_native_describe(struct bh_native_plugin *np)
{
    /* One that normalises in a way of its own needs all feasible nodes' scores, which are laid over
     * the kept results for each pod. */
    static const struct bh_overlay_ops scores_only = {.ask = passes_all}, filters = {.ask = NULL};
    const struct berth_plugin *p = &np->p;
    uint32_t flags = kept_flags(p);
    bool overlay = flags && p->normalize;
    bool scores = p->score || p->score_rows;
    const char *name = np->d.name ? np->d.name : bh_strndup(p->name.p, p->name.n);

    free((void *)(uintptr_t)np->d.events);
    if (overlay)
        flags = BH_PLUGIN_OVERLAY | (flags & BH_PLUGIN_READS_SUMS);
    np->d = (struct bh_plugin){
        BH_PLUGIN_HEAD(name),
        .flags = flags | BH_PLUGIN_OWN_ARGS | (p->post_filter ? BH_PLUGIN_EVICTS_ANY : 0) |
                 (p->flags & BERTH_STANDS_ALONE ? BH_PLUGIN_STANDS_ALONE : 0),
        .args_check = args_check,
        .args_new = args_new,
        .args_free = args_free,
        .events = events_of(np),
        .pre_enqueue = p->pre_enqueue ? pre_enqueue : NULL,
        .less = p->less ? less : NULL,
        .pre_filter = p->pre_filter || (p->idle && p->filter) ? pre_filter : NULL,
        .change_pod = p->change_pod ? change_pod : NULL,
        .clone_state = p->clone_state ? clone_state : NULL,
        .filter = p->filter ? filter : NULL,
        .filter_rows = p->filter_rows ? filter_rows : NULL,
        .post_filter = p->post_filter ? post_filter : NULL,
        .pre_score = p->pre_score || (p->idle && scores) ? pre_score : NULL,
        .score = scores ? score : NULL,
        .score_rows = p->score_rows ? score_rows
                      : p->score    ? score_each
                                    : NULL,
        .scores_alone = !p->score_rows,
        .normalize = p->normalize ? normalize : NULL,
        .normal = (enum bh_normal)p->normal,
        .reserve = p->reserve     ? reserve
                   : p->unreserve ? reserve_nothing
                                  : NULL,
        .unreserve = p->unreserve ? unreserve
                     : p->reserve ? unreserve_nothing
                                  : NULL,
        .permit = p->permit ? permit : NULL,
        .pre_bind = p->pre_bind ? pre_bind : NULL,
        .bind = p->bind ? bind : NULL,
        .post_bind = p->post_bind ? post_bind : NULL,
        .tend = p->tend ? tend : NULL,
        .epoch = p->epoch || p->n_kinds || p->flags & BERTH_USER_COLUMNS ? epoch : NULL,
        .kinds = kinds_of(np),
        .annotations = annotations_of(p),
        .score_soon = np->process && scores ? score_soon : NULL,
        /* One whose answers are kept is asked in PreFilter and PreScore, and what it says is kept. */
        .idle = p->idle && (overlay || !flags) ? is_idle
                : overlay                      ? never_idle
                                               : NULL,
        .overlay = !overlay    ? NULL
                   : p->filter ? &filters
                               : &scores_only,
    };
}

int bh_native_adopt(const struct berth_plugin *p, struct bh_native_plugin **ret, struct bh_err *err)
{
    const size_t first = offsetof(struct berth_plugin, less); /* of ABI 1.0 */
    struct berth_plugin own = {0};

    if (p->size < first || p->size % sizeof(void *))
        return bh_err_set(err, -EINVAL,
                          "its struct berth_plugin has %u bytes, at least %zu are needed, in whole "
                          "members: build it against this Berth's berth/plugin.h",
                          p->size, first);
    memcpy(&own, p, BH_MIN((size_t)p->size, sizeof own)); /* of later ones what is known here */
    const char *wrong = wrong_with(&own);
    if (wrong)
        return bh_err_set(err, -EINVAL, "plugin \"%.*s\" %s", (int)BH_MIN(own.name.n, (uint64_t)64),
                          own.name.p, wrong);
    *ret = bh_calloc(1, sizeof **ret);
    (*ret)->p = own;
    int rc = declare_kinds(*ret, err);
    if (rc < 0) {
        free(bh_take_ptr(*ret));
        return bh_err_prefix(err, rc, "plugin \"%.*s\"", (int)BH_MIN(own.name.n, (uint64_t)64),
                             own.name.p);
    }
    (*ret)->metrics = bh_native_metrics_new();
    bh_native_describe(*ret);
    return 0;
}
