/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/wasm/plugin.c - a guest's hooks as the framework's callbacks
 *
 * One set of functions for all guests: the guest is the call's args. A hook that the guest does not
 * export, or that has nothing in it, is not called; PreFilter is there always, as in the original,
 * because a pod's first hook decides which instance runs the others.
 *
 * Runs in:  the engine's thread.
 * Upstream: kube-scheduler-wasm-extension, scheduler/plugin/plugin.go, guest.go; differences:
 *           README.md.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>

#include "common/base/log.h"
#include "scheduler/wasm/guest_int.h"

#define MS        1000000ll
#define NAMES_MAX 1000000u /* of nodes, in an answer */

static struct bh_guest *guest(const struct bh_call *c)
{
    return (struct bh_guest *)(uintptr_t)c->args;
}

static bool has(const struct bh_call *c, enum bh_guest_hook hook)
{
    return guest(c)->of->runs & BH_GUEST_BIT(hook);
}

static const struct bh_status *fails(const struct bh_call *c, const char *text)
{
    return bh_status_new(c->arena, BH_ERROR, guest(c)->of->name, "%s", text);
}

static const struct bh_status *verdict(const struct bh_call *c, const struct bh_guest_run *r,
                                       int32_t code)
{
    const char *name = guest(c)->of->name;

    if (code == 0)
        return NULL;
    if (code > 0 && code <= BH_PENDING)
        return bh_status_new(c->arena, (enum bh_code)code, name, "%s", bh_buf_str(&r->reason));
    return bh_status_new(c->arena, BH_ERROR, name,
                         "%s%sstatus code %" PRId32 ", which there is not", bh_buf_str(&r->reason),
                         r->reason.n ? ": " : "", code);
}

/* The instance that runs the hook, ready for it. */
static struct bh_guest_run *ready(struct bh_call *c, bool first, bh_sym node,
                                  const struct bh_status **ret_why)
{
    struct bh_guest_run *r = bh_guest_of(c, first, ret_why);

    if (r) {
        r->c = c;
        r->node = node;
    }
    return r;
}

/* Runs a hook for a pod and a node. NULL: *ret is how it ended. */
static struct bh_guest_run *run(struct bh_call *c, enum bh_guest_hook hook, bh_sym node,
                                const struct bh_status **ret)
{
    struct bh_guest_run *r = bh_guest_of(c, false, ret);
    const bool asks = hook == BH_GUEST_FILTER || hook == BH_GUEST_SCORE;
    const char *why = r && asks ? bh_guest_renew(r, c, hook, 1) : NULL;

    if (r && !why) {
        r->c = c;
        r->node = node;
        why = bh_guest_call(r, hook, c->arena);
    }
    if (why)
        *ret = fails(c, why);
    return why ? NULL : r;
}

/* ... whose result is a code. */
static const struct bh_status *run_code(struct bh_call *c, enum bh_guest_hook hook, bh_sym node)
{
    const struct bh_status *s = NULL;
    const struct bh_guest_run *r = has(c, hook) ? run(c, hook, node, &s) : NULL;

    return r ? verdict(c, r, (int32_t)r->value) : s;
}

/* ---- filtering ------------------------------------------------------------------------------- */

/* Names with a NUL behind each; those that the cluster does not have are no nodes to look at. false: there are
 * more than any cluster has. */
static bool take_names(struct bh_call *c, const struct bh_buf *b, struct bh_node_set *ret)
{
    const size_t most = BH_MIN(b->n, (size_t)NAMES_MAX);
    bh_sym *names = bh_arena_new_array(c->arena, bh_sym, most + 1);
    const char *p = bh_buf_str(b), *end = p + b->n;
    uint32_t n = 0, n_said = 0;
    bool any = false;

    for (const char *nul; (nul = memchr(p, '\0', (size_t)(end - p))); p = nul + 1) {
        bh_sym s = bh_sym_find(c->tab, p, (size_t)(nul - p));
        if (n_said++ == NAMES_MAX)
            return false;
        any |= nul > p;
        if (s)
            names[n++] = s;
    }
    if (any)
        *ret = (struct bh_node_set){
            .n = (uint32_t)bh_sort_unique(names, n, sizeof *names, bh_by_sym), .names = names};
    return true;
}

static const struct bh_status *pre_filter(struct bh_call *c, struct bh_node_set *ret)
{
    const struct bh_status *s = NULL;
    struct bh_guest_run *r = ready(c, true, BH_SYM_NONE, &s);

    guest(c)->failed = NULL;
    if (!r || !has(c, BH_GUEST_PREFILTER))
        return s;
    const char *trap = bh_guest_call(r, BH_GUEST_PREFILTER, c->arena);
    if (trap)
        return fails(c, trap);
    s = verdict(c, r, (int32_t)r->value);
    if (!s && !take_names(c, &r->node_names, ret))
        return fails(c, "wasm: prefilter names more than a million nodes");
    return s;
}

static const struct bh_status *change_pod(struct bh_call *c, const struct bh_pod_info *pod,
                                          const struct bh_node_info *node, int by)
{
    enum bh_guest_hook hook = by > 0 ? BH_GUEST_ADDPOD : BH_GUEST_REMOVEPOD;
    const struct bh_status *s = NULL;
    struct bh_guest_run *r = has(c, hook) ? ready(c, false, node->name, &s) : NULL;

    if (!r)
        return s;
    r->target = pod;
    const char *trap = bh_guest_call(r, hook, c->arena);
    return trap ? fails(c, trap) : verdict(c, r, (int32_t)r->value);
}

static const struct bh_status *filter(struct bh_call *c, const struct bh_node_info *node)
{
    return run_code(c, BH_GUEST_FILTER, node->name);
}

static const struct bh_status *post_filter(struct bh_call *c, const struct bh_diagnosis *d,
                                           struct bh_post_filter_result *ret)
{
    const struct bh_status *s = NULL;
    struct bh_guest_run *r = ready(c, false, BH_SYM_NONE, &s);

    if (!r)
        return s;
    r->why = d;
    const char *trap = bh_guest_call(r, BH_GUEST_POSTFILTER, c->arena);
    if (trap)
        return fails(c, trap);
    if ((int32_t)(r->value >> 32) == 1) {
        bh_sym node = bh_sym_find(c->tab, bh_buf_str(&r->nominated), r->nominated.n);
        if (r->nominated.n && !(node && bh_cache_node(c->cache, node)))
            return fails(c, "wasm: postfilter nominated a node that there is not");
        ret->override_nomination = true;
        ret->node = node;
    }
    return verdict(c, r, (int32_t)r->value);
}

/* ---- scoring --------------------------------------------------------------------------------- */

static const struct bh_status *pre_score(struct bh_call *c, const uint32_t *rows, uint32_t n)
{
    const struct bh_status *s = NULL;
    struct bh_guest_run *r;

    guest(c)->n_scored = 0;
    if (!has(c, BH_GUEST_PRESCORE) || !(r = ready(c, false, BH_SYM_NONE, &s)))
        return s;
    r->rows = rows;
    r->n_rows = n;
    const char *trap = bh_guest_call(r, BH_GUEST_PRESCORE, c->arena);
    return trap ? fails(c, trap) : verdict(c, r, (int32_t)r->value);
}

/* For normalizescore, which is given names. */
static void note_scored(struct bh_guest *g, bh_sym node)
{
    if (g->n_scored == g->cap_scored) {
        g->cap_scored = g->cap_scored ? 2 * g->cap_scored : 64;
        g->scored = bh_realloc(g->scored, g->cap_scored * sizeof *g->scored);
    }
    g->scored[g->n_scored++] = node;
}

static const struct bh_status *take_failed(struct bh_guest *g)
{
    const struct bh_status *s = g->failed;

    g->failed = NULL;
    return s;
}

static const struct bh_status *score(struct bh_call *c, const struct bh_node_info *node,
                                     int64_t *ret)
{
    struct bh_guest *g = guest(c);
    const struct bh_status *s = NULL;

    *ret = 0;
    if (bh_unlikely(g->failed != NULL)) /* it was asked about all; what it said counts */
        return node->row == g->failed_row ? take_failed(g) : NULL;
    if (has(c, BH_GUEST_NORMALIZESCORE))
        note_scored(g, node->name);
    if (!has(c, BH_GUEST_SCORE))
        return NULL;
    const struct bh_guest_run *r = run(c, BH_GUEST_SCORE, node->name, &s);
    if (!r)
        return s;
    *ret = (int32_t)(r->value >> 32);
    return verdict(c, r, (int32_t)r->value);
}

static void score_rows(struct bh_call *c, const uint32_t *rows, uint32_t n, int64_t *ret)
{
    struct bh_guest *g = guest(c);
    const struct bh_status *s = NULL;
    const char *trap = NULL;

    g->failed = NULL;
    if (!has(c, BH_GUEST_SCORE)) {
        memset(ret, 0, n * sizeof *ret);
        return;
    }
    struct bh_guest_run *r = ready(c, false, BH_SYM_NONE, &s);
    const uint32_t scored = r ? bh_guest_score_rows(r, rows, n, ret, &trap) : 0;
    if (scored == n)
        return;
    c->cycle->score_failed = true; /* score() is asked, and says it */
    g->failed = trap ? fails(c, trap) : r ? verdict(c, r, (int32_t)r->value) : s;
    g->failed_row = rows[scored];
}

/* NULL: they are in place. */
static const char *normalized(struct bh_call *c, int64_t *scores, uint32_t n)
{
    struct bh_guest *g = guest(c);
    const struct bh_status *s = NULL;
    struct bh_guest_run *r = ready(c, false, BH_SYM_NONE, &s);

    if (!r)
        return bh_status_message(c->arena, s);
    if (g->n_scored != n)
        return "wasm: normalizescore error: the nodes are not those that were scored";
    r->scores = scores;
    const char *trap = bh_guest_call(r, BH_GUEST_NORMALIZESCORE, c->arena);
    if (trap)
        return trap;
    if ((s = verdict(c, r, (int32_t)r->value)))
        return bh_status_message(c->arena, s);
    const struct bh_json *v = r->normalized;
    size_t has_n = v && v->type == BH_JSON_OBJECT ? v->c.n : 0;
    if (!has_n)
        return NULL; /* as they are */
    if (has_n != n)
        return bh_arena_printf(c->arena,
                               "size mismatch: scores has %u elements, but updatedScores has %zu "
                               "elements",
                               n, has_n);
    struct bh_map by_node = {0};
    bh_json_each(e, v)
        (void)bh_map_put(&by_node, e->key.p, e->key.n, e);
    const char *wrong = NULL;
    for (uint32_t i = 0; i < n && !wrong; i++) {
        struct bh_str name = bh_sym_str(c->tab, g->scored[i]);
        if (!bh_json_i64(bh_map_get(&by_node, name.p, name.n), &scores[i]))
            wrong = bh_arena_printf(c->arena, "normalized scores: none for node %s", name.p);
    }
    bh_map_fini(&by_node);
    return wrong;
}

/* The framework's Normalize does not fail; it looks at the scores. */
static void normalize(struct bh_call *c, int64_t *scores, uint32_t n)
{
    const char *wrong = normalized(c, scores, n);

    guest(c)->n_scored = 0;
    if (!wrong)
        return;
    bh_log_error("Normalizing scores failed", bh_kv_s("plugin", guest(c)->of->name),
                 bh_kv_s("err", wrong));
    for (uint32_t i = 0; i < n; i++)
        scores[i] = -1;
}

/* ---- after a node was chosen ----------------------------------------------------------------- */

static const struct bh_status *reserve(struct bh_call *c, bh_sym node)
{
    const struct bh_status *s = run_code(c, BH_GUEST_RESERVE, node);
    struct bh_guest_run *r;

    if (!s && (r = bh_guest_of(c, false, &s)))
        bh_guest_keep(r, c);
    return s;
}

/* The last hook of a pod: it is told in the log when it fails. */
static void end(struct bh_call *c, enum bh_guest_hook hook, bh_sym node)
{
    const struct bh_status *s = run_code(c, hook, node);

    if (s)
        bh_log_error(hook == BH_GUEST_UNRESERVE ? "failed unreserve" : "failed postbind",
                     bh_kv_s("plugin", guest(c)->of->name),
                     bh_kv_s("err", bh_status_message(c->arena, s)));
    bh_guest_release(guest(c), bh_rec_uid(c->pod->rec));
}

static void unreserve(struct bh_call *c, bh_sym node)
{
    end(c, BH_GUEST_UNRESERVE, node);
}

static void post_bind(struct bh_call *c, bh_sym node)
{
    end(c, BH_GUEST_POSTBIND, node);
}

static const struct bh_status *permit(struct bh_call *c, bh_sym node, int64_t *ret)
{
    const struct bh_status *s = NULL;
    const struct bh_guest_run *r = run(c, BH_GUEST_PERMIT, node, &s);

    if (!r)
        return s;
    *ret = (int64_t)(uint32_t)r->value * MS;
    return verdict(c, r, (int32_t)(r->value >> 32));
}

static const struct bh_status *pre_bind(struct bh_call *c, bh_sym node, int64_t since_ns BH_UNUSED)
{
    return run_code(c, BH_GUEST_PREBIND, node);
}

/* Success: the pod is to be bound there. A guest has no way to do it itself. */
static const struct bh_status *bind_pod(struct bh_call *c, bh_sym node,
                                        struct bh_bind_order *ret BH_UNUSED)
{
    return run_code(c, BH_GUEST_BIND, node);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int args_new(const struct bh_plugin_env *env, const struct bh_json *args, void **ret,
                    struct bh_err *err)
{
    struct bh_guest *g = bh_arena_new(env->arena, struct bh_guest);

    g->of = (struct bh_guest_plugin *)(uintptr_t)bh_container_of(env->plugin,
                                                                 const struct bh_guest_plugin, d);
    g->env = *env;
    int rc = bh_guest_args_read(env->arena, g->of->name, args, &g->args, err);
    if (rc == 0)
        *ret = g;
    return rc;
}

static void args_free(void *args)
{
    if (args)
        bh_guest_fini(args);
}

void bh_guest_describe(struct bh_guest_plugin *p, bool node_local,
                       const struct bh_event_reg *events)
{
    /* Of the node it sees the object, which the engine says has changed. */
    const uint32_t kept = BH_PLUGIN_NODE_LOCAL | BH_PLUGIN_READS_SUMS | BH_PLUGIN_READS_NODE;
    /* Filter, Score and Bind are there even where the guest's is a stub: who is told which plugins passed a
     * node, scored or bound sees them. They answer without the guest. */
#define HAS(hook)     (p->runs & BH_GUEST_BIT(BH_GUEST_##hook))
#define EXPORTS(hook) (p->hooks & BH_GUEST_BIT(BH_GUEST_##hook))
    /* A pod's instance is kept from Reserve on for what comes after the cycle. */
    bool late = HAS(RESERVE) || HAS(UNRESERVE) || HAS(PREBIND) || HAS(BIND) || HAS(POSTBIND);
    bool filters = EXPORTS(FILTER) && (HAS(FILTER) || HAS(ADDPOD) || HAS(REMOVEPOD));
    bool scores = EXPORTS(SCORE) && (HAS(SCORE) || HAS(PRESCORE) || HAS(NORMALIZESCORE));
    bool decides = HAS(PREFILTER) || filters || scores;

    p->d = (struct bh_plugin){
        BH_PLUGIN_HEAD(p->name),
        /* What it reads is not known: nothing of it is kept, unless args say that it may. */
        .flags = BH_PLUGIN_OWN_ARGS | (node_local ? kept
                                       : decides  ? 0
                                                  : BH_PLUGIN_NODE_LOCAL),
        .args_new = args_new,
        .args_free = args_free,
        .events = events,
        .pre_filter = pre_filter,
        .change_pod = HAS(ADDPOD) || HAS(REMOVEPOD) ? change_pod : NULL,
        .filter = EXPORTS(FILTER) ? filter : NULL,
        .post_filter = EXPORTS(POSTFILTER) ? post_filter : NULL,
        .pre_score = EXPORTS(SCORE) && (HAS(PRESCORE) || HAS(NORMALIZESCORE)) ? pre_score : NULL,
        .score = EXPORTS(SCORE) ? score : NULL,
        .score_rows = EXPORTS(SCORE) && !HAS(NORMALIZESCORE) ? score_rows : NULL,
        .scores_alone = true,
        .normalize = EXPORTS(SCORE) && HAS(NORMALIZESCORE) ? normalize : NULL,
        .reserve = late ? reserve : NULL,
        .unreserve = late ? unreserve : NULL,
        .permit = HAS(PERMIT) ? permit : NULL,
        .pre_bind = HAS(PREBIND) ? pre_bind : NULL,
        .bind = EXPORTS(BIND) ? bind_pod : NULL,
        .post_bind = late ? post_bind : NULL,
    };
#undef HAS
#undef EXPORTS
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Resources by their number in the ABI; 4 is no more. */
static const struct bh_event_reg resources[] = {
    [0] = {.on = BH_ON_POD, .actions = BH_EV_ALL},
    [1] = {.on = BH_ON_NODE, .actions = BH_EV_ALL},
    [2] = {.on = BH_ON_OBJECT, .kind = BH_KIND_PERSISTENTVOLUME, .actions = BH_EV_ALL},
    [3] = {.on = BH_ON_OBJECT, .kind = BH_KIND_PERSISTENTVOLUMECLAIM, .actions = BH_EV_ALL},
    [5] = {.on = BH_ON_OBJECT, .kind = BH_KIND_RESOURCECLAIM, .actions = BH_EV_ALL},
    [6] = {.on = BH_ON_OBJECT, .kind = BH_KIND_STORAGECLASS, .actions = BH_EV_ALL},
    [7] = {.on = BH_ON_OBJECT, .kind = BH_KIND_CSINODE, .actions = BH_EV_ALL},
    [8] = {.on = BH_ON_OBJECT, .kind = BH_KIND_CSIDRIVER, .actions = BH_EV_ALL},
    [9] = {.on = BH_ON_OBJECT, .kind = BH_KIND_CSISTORAGECAPACITY, .actions = BH_EV_ALL},
};
#define ANY_RESOURCE 10u

/* Its Update and All are those of its time. */
static uint32_t actions_of(uint32_t guests)
{
    const uint32_t update = 60, every = 63;

    return guests == every    ? (uint32_t)BH_EV_ALL
           : guests == update ? (uint32_t)BH_EV_UPDATE
                              : guests & BH_EV_ALL;
}

/* One for each resource, however often it is named. *all: woken by everything. */
static struct bh_event_reg *read_events(const struct bh_buf *b, bool *all)
{
    static const uint8_t defaults[] = {0, 1, 7, 2, 3, 6};
    struct bh_event_reg *r = bh_calloc(BH_ARRAY_LEN(resources) + 1, sizeof *r);
    uint32_t wanted[BH_ARRAY_LEN(resources)] = {0};
    const size_t n = b->n / 8;
    size_t m = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t at[2];
        memcpy(at, b->p + 8 * i, sizeof at);
        const uint32_t resource = le32toh(at[0]);
        *all |= resource == ANY_RESOURCE;
        if (resource < BH_ARRAY_LEN(resources) && resources[resource].actions)
            wanted[resource] |= actions_of(le32toh(at[1]));
    }
    for (size_t i = 0; !n && i < sizeof defaults; i++)
        wanted[defaults[i]] = resources[defaults[i]].actions;
    for (size_t i = 0; i < BH_ARRAY_LEN(resources); i++)
        if (wanted[i]) {
            r[m] = resources[i];
            r[m++].actions = wanted[i];
        }
    return r;
}

int bh_guest_events(struct bh_guest_plugin *p, const struct bh_guest_args *args,
                    struct bh_event_reg **ret, struct bh_err *err)
{
    struct bh_guest g = {.of = p, .args = *args};
    struct bh_arena a = {0};
    bool all = false;
    int rc = bh_guest_run_new(&g, &g.cycle, err);

    if (rc < 0)
        return rc;
    bh_arena_init(&a, 0);
    const char *trap = p->hooks & BH_GUEST_BIT(BH_GUEST_ENQUEUE)
                           ? bh_guest_call(g.cycle, BH_GUEST_ENQUEUE, &a)
                           : NULL;
    if (trap)
        rc = bh_err_set(err, -EFAULT, "%s", trap);
    else
        *ret = read_events(&g.cycle->events, &all);
    if (all)
        free(bh_take_ptr(*ret));
    bh_guest_fini(&g);
    bh_arena_fini(&a);
    return rc;
}
