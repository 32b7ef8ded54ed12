/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/coscheduling/coscheduling.c - pods of a PodGroup of scheduling.x-k8s.io go when
 * minMember of them have room
 *
 * Upstream: scheduler-plugins, pkg/coscheduling; differences: README.md.
 */
#include <stdlib.h>

#include "scheduler/plugins/coscheduling/coscheduling.h"
#include "scheduler/plugins/registry.h"

#define NAME            "Coscheduling"
#define KIND_BIT        (UINT64_C(1) << BH_KIND_COSCHEDULING_PODGROUP)
#define NS_PER_S        INT64_C(1000000000)
#define WAIT_DEFAULT_NS (60 * NS_PER_S)
/* Upstream's map of groups whose resources were looked at has this in place of no time at all. */
#define PERMITTED_DEFAULT_NS (3 * NS_PER_S)
#define MEMORIES_MIN         64u

BH_STATUS_CONST(no_group, BH_UNSCHEDULABLE, NAME, "PodGroup not found");
BH_STATUS_CONST(none_to_reject, BH_UNSCHEDULABLE, NAME, "can not find pod group");
static const struct bh_status waits = {.code = BH_WAIT, .plugin = NAME};
static const struct bh_status unschedulable = {.code = BH_UNSCHEDULABLE, .plugin = NAME};

/* What is remembered of a group from pod to pod. Unix times, 0 = no. */
struct memory {
    int64_t permitted_until_ns; /* its minResources were there */
    int64_t backs_off_until_ns;
    int64_t failed_ns; /* when it was last given up */
};
struct instance {
    struct bh_waiting_pods *waiting;
    int64_t wait_ns, backoff_ns; /* backoff_ns 0: none */
    double reject;               /* of minMember, without a node: up to this part is waited for */
    struct bh_umap memories;     /* (namespace, name) -> struct memory * */
    size_t memories_max;         /* then those are dropped whose group is gone */
};
/* The group that a pod names. */
struct named {
    bh_sym namespace_, name;
    const char *ns, *text;
    const K8s__CoschedulingPodGroup *object; /* NULL: there is none */
    struct bh_coscheduling_group spec;       /* of the object */
    struct bh_group *members;                /* NULL: nobody is known */
};

static bool name_of(const struct bh_call *c, const struct bh_pod_rec *pod,
                    const struct bh_shape_rec *shape, struct named *ret)
{
    *ret = (struct named){.namespace_ = shape->namespace_,
                          .name = bh_groups_name(&c->cache->labelled, pod, shape)};
    if (ret->name == BH_SYM_NONE)
        return false;
    ret->ns = bh_sym_text(c->tab, ret->namespace_);
    ret->text = bh_sym_text(c->tab, ret->name);
    ret->object =
        (const void *)bh_objects_get(c->objects, BH_KIND_COSCHEDULING_PODGROUP, ret->ns, ret->text);
    if (ret->object)
        bh_coscheduling_read(ret->object, &ret->spec);
    return true;
}

/* false: the pod names none. */
static bool find_group(const struct bh_call *c, struct named *ret)
{
    if (!name_of(c, c->pod->rec, c->pod->shape, ret))
        return false;
    ret->members = bh_groups_find(&c->cache->labelled, ret->namespace_, ret->name);
    return true;
}

static int64_t n_all(const struct named *g)
{
    return g->members ? bh_group_all(g->members) : 0;
}

static int64_t n_assigned(const struct named *g)
{
    return g->members ? bh_group_scheduled(g->members) : 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* The instance is the engine's thread's alone; callbacks get it as const like all args. */
static struct instance *instance_of(const struct bh_call *c)
{
    return (struct instance *)(uintptr_t)c->args;
}

static uint64_t key_of(const struct named *g)
{
    return (uint64_t)g->namespace_ << 32 | g->name;
}

static const struct memory *recall(const struct instance *in, const struct named *g)
{
    static const struct memory nothing;
    uint64_t v;

    return bh_umap_get(&in->memories, key_of(g), &v) ? (const struct memory *)(uintptr_t)v
                                                     : &nothing;
}

static void forget_gone(const struct bh_call *c, struct instance *in)
{
    struct bh_umap kept = {0};
    uint64_t k, v;

    for (size_t it = 0; bh_umap_next(&in->memories, &it, &k, &v);)
        if (bh_objects_get(c->objects, BH_KIND_COSCHEDULING_PODGROUP,
                           bh_sym_text(c->tab, (bh_sym)(k >> 32)), bh_sym_text(c->tab, (bh_sym)k)))
            bh_umap_put(&kept, k, v);
        else
            free((void *)(uintptr_t)v);
    bh_umap_fini(&in->memories);
    in->memories = kept;
}

static struct memory *memory_of(const struct bh_call *c, const struct named *g)
{
    struct instance *in = instance_of(c);
    uint64_t v;

    if (bh_umap_get(&in->memories, key_of(g), &v))
        return (struct memory *)(uintptr_t)v;
    if (in->memories.len >= in->memories_max) {
        forget_gone(c, in);
        in->memories_max = BH_MAX(MEMORIES_MIN, 2 * in->memories.len);
    }
    struct memory *m = bh_calloc(1, sizeof *m);
    bh_umap_put(&in->memories, key_of(g), (uint64_t)(uintptr_t)m);
    return m;
}

static bool lasts(int64_t until_ns, int64_t now_ns)
{
    return until_ns && now_ns <= until_ns;
}

/* An entry that lasts is not made to last longer. */
static void remember_until(int64_t *until_ns, int64_t now_ns, int64_t for_ns)
{
    if (!lasts(*until_ns, now_ns))
        *until_ns = now_ns + for_ns;
}

static void gave_up(const struct bh_call *c, const struct named *g)
{
    struct memory *m = memory_of(c, g);

    m->permitted_until_ns = 0;
    m->failed_ns = c->now_ns;
}

static void reject_waiting(const struct instance *in, const struct named *g, const char *message)
{
    const struct bh_member *m;

    if (!g->members || !in->waiting->by_uid.len)
        return;
    TAILQ_FOREACH(m, &g->members->at[BH_MEMBER_ASSUMED], link)
        (void)bh_waiting_reject(in->waiting, bh_member_uid(m), NAME, message);
}

/* ---- PreFilter ------------------------------------------------------------------------------- */

static const char *quorum_gap(const struct bh_call *c, const struct named *g)
{
    const char *pod = bh_rec_text(c->pod->rec, c->pod->rec->name).p;
    const int64_t gap = g->spec.min_member - n_all(g);

    if (gap > 0)
        return bh_arena_printf(
            c->arena,
            "pre-filter pod %s cannot find enough sibling pods, current pods number: %lld, "
            "minMember of group: %lld",
            pod, (long long)n_all(g), (long long)g->spec.min_member);
    if (g->members && gap + g->members->n_gated > 0)
        return bh_arena_printf(
            c->arena, "pre-filter pod %s cannot proceed due to gated pods in the same PodGroup",
            pod);
    return NULL;
}

/* Why the pod need not look for a node yet; NULL: it may. */
static const char *check(struct bh_call *c)
{
    const struct instance *in = c->args;
    struct named g;

    if (!find_group(c, &g))
        return NULL;
    if (!g.object) /* alone, as upstream; but its object may only be out of sight */
        return c->objects->unknown & KIND_BIT
                   ? c->objects->why_unknown[bh_plugin_kind_index(BH_KIND_COSCHEDULING_PODGROUP)]
                   : NULL;
    const struct memory *m = recall(in, &g);
    if (lasts(m->backs_off_until_ns, c->now_ns))
        return bh_arena_printf(c->arena, "podGroup %s/%s failed recently", g.ns, g.text);
    const char *why = quorum_gap(c, &g);
    if (why || !g.spec.has_resources || lasts(m->permitted_until_ns, c->now_ns))
        return why;
    why = bh_cosched_resource_gap(c, g.object->spec, g.members);
    if (!why)
        remember_until(&memory_of(c, &g)->permitted_until_ns, c->now_ns,
                       in->wait_ns ? in->wait_ns : PERMITTED_DEFAULT_NS);
    return why;
}

static const struct bh_status *pre_filter(struct bh_call *c, struct bh_node_set *ret BH_UNUSED)
{
    const char *why = check(c);

    return why ? bh_status_new(c->arena, BH_UNSCHEDULABLE_AND_UNRESOLVABLE, NAME, "%s", why) : NULL;
}

/* Where PreFilter lets the pod pass it has no say about single nodes. */
static bool idle(struct bh_call *c)
{
    return !check(c);
}

/* ---- PostFilter ------------------------------------------------------------------------------ */

static const struct bh_status *post_filter(struct bh_call *c,
                                           const struct bh_diagnosis *d BH_UNUSED,
                                           struct bh_post_filter_result *ret BH_UNUSED)
{
    const struct instance *in = c->args;
    struct named g;

    if (!find_group(c, &g) || !g.object)
        return &none_to_reject;
    const int64_t min = g.spec.min_member, assigned = n_assigned(&g);
    if (assigned >= min || (double)(min - assigned) / (double)min <= in->reject)
        return &unschedulable;
    reject_waiting(in, &g, "optimistic rejection in PostFilter");
    if (in->backoff_ns && n_all(&g) >= min)
        remember_until(&memory_of(c, &g)->backs_off_until_ns, c->now_ns, in->backoff_ns);
    gave_up(c, &g);
    return bh_status_new(
        c->arena, BH_UNSCHEDULABLE, NAME,
        "PodGroup %s/%s gets rejected due to Pod %s is unschedulable even after PostFilter", g.ns,
        g.text, bh_rec_text(c->pod->rec, c->pod->rec->name).p);
}

/* ---- Permit, Unreserve ----------------------------------------------------------------------- */

static int64_t timeout_of(const struct instance *in, const struct named *g)
{
    if (g->spec.timeout_s == BH_COSCHEDULING_NO_TIME)
        return in->wait_ns ? in->wait_ns : WAIT_DEFAULT_NS;
    return g->spec.timeout_s ? g->spec.timeout_s * NS_PER_S : in->wait_ns;
}

/* The pod counts itself: it is assumed. */
static const struct bh_status *permit(struct bh_call *c, bh_sym node BH_UNUSED,
                                      int64_t *ret_timeout_ns)
{
    const struct instance *in = c->args;
    const struct bh_member *m;
    struct named g;

    if (!find_group(c, &g))
        return NULL;
    if (!g.object)
        return &no_group;
    const int64_t assigned = n_assigned(&g);
    if (assigned < g.spec.min_member) {
        /* The first one fetches the others, however long they have to wait still. */
        if (g.members && assigned == 1)
            TAILQ_FOREACH(m, &g.members->at[BH_MEMBER_UNSCHEDULED], link)
                bh_waiting_activate(in->waiting, bh_member_uid(m));
        *ret_timeout_ns = timeout_of(in, &g);
        return &waits;
    }
    if (recall(in, &g)->failed_ns)
        memory_of(c, &g)->failed_ns = 0;
    if (!g.members || !in->waiting->by_uid.len)
        return NULL;
    TAILQ_FOREACH(m, &g.members->at[BH_MEMBER_ASSUMED], link)
        (void)bh_waiting_allow(in->waiting, bh_member_uid(m), NAME);
    return NULL;
}

static const struct bh_status *reserve(struct bh_call *c BH_UNUSED, bh_sym node BH_UNUSED)
{
    return NULL;
}

static void unreserve(struct bh_call *c, bh_sym node BH_UNUSED)
{
    struct named g;

    if (!find_group(c, &g) || !g.object)
        return;
    reject_waiting(c->args, &g, "rejection in Unreserve");
    gave_up(c, &g);
}

/* ---- QueueSort ------------------------------------------------------------------------------- */

static int64_t turn_of(const struct bh_call *c, const struct bh_queue_key *k)
{
    struct named g;

    if (!name_of(c, k->waiting->pod, k->shape, &g))
        return k->initial_attempt_ns;
    const int64_t failed_ns = recall(c->args, &g)->failed_ns;
    if (failed_ns)
        return failed_ns;
    return g.object ? g.spec.creation_ns : k->initial_attempt_ns;
}

static int by_full_name(const struct bh_pod_rec *a, const struct bh_pod_rec *b)
{
    /* "a/b" is compared as one text, as upstream does: '/' has its place among the bytes. */
    char x[600], y[600];

    snprintf(x, sizeof x, "%s/%s", bh_rec_namespace(a), bh_rec_text(a, a->name).p);
    snprintf(y, sizeof y, "%s/%s", bh_rec_namespace(b), bh_rec_text(b, b->name).p);
    return strcmp(x, y);
}

static bool less(struct bh_call *c, const struct bh_queue_key *a, const struct bh_queue_key *b)
{
    if (a->shape->priority != b->shape->priority)
        return a->shape->priority > b->shape->priority;
    const int64_t x = turn_of(c, a), y = turn_of(c, b);
    return x != y ? x < y : by_full_name(a->waiting->pod, b->waiting->pod) < 0;
}

/* ---- configuration --------------------------------------------------------------------------- */

static void args_check(const struct bh_plugin *self BH_UNUSED, const struct bh_json *args,
                       const char *path BH_UNUSED, struct bh_field_errors *errs)
{
    static const char *const seconds[] = {"permitWaitingTimeSeconds", "podGroupBackoffSeconds"};
    const int64_t reject = bh_json_get_i64(args, "podGroupRejectPercentage", 0);

    for (unsigned i = 0; i < BH_ARRAY_LEN(seconds); i++) {
        const int64_t v = bh_json_get_i64(args, seconds[i], 0);
        if (v < 0)
            bh_field_error(errs, "%s: Invalid value: %lld: must be greater than 0", seconds[i],
                           (long long)v);
    }
    if (reject < 0 || reject > 100)
        bh_field_error(errs,
                       "podGroupRejectPercentage: Invalid value: %lld: must be between 0 and 100",
                       (long long)reject);
}

/* Go's Duration wraps where this does not; nobody waits so long. */
static int64_t seconds_of(const struct bh_json *args, const char *name, int64_t by_default)
{
    const int64_t s = bh_json_get_i64(args, name, by_default);

    return BH_MIN(s, INT64_MAX / NS_PER_S / 2) * NS_PER_S;
}

static int args_new(const struct bh_plugin_env *env, const struct bh_json *args, void **ret,
                    struct bh_err *err BH_UNUSED)
{
    struct instance *in = bh_arena_new(env->arena, struct instance);

    *in = (struct instance){
        .waiting = env->waiting,
        .wait_ns = seconds_of(args, "permitWaitingTimeSeconds", 60),
        .backoff_ns = seconds_of(args, "podGroupBackoffSeconds", 0),
        .reject = (double)bh_json_get_i64(args, "podGroupRejectPercentage", 10) / 100.0,
        .memories_max = MEMORIES_MIN};
    env->cache->labelled.label = bh_sym_internc(env->tab, BH_COSCHEDULING_LABEL);
    env->cache->labelled.on = true;
    *ret = in;
    return 0;
}

static void args_free(void *args)
{
    struct instance *in = args;
    uint64_t k, v;

    for (size_t it = 0; bh_umap_next(&in->memories, &it, &k, &v);)
        free((void *)(uintptr_t)v);
    bh_umap_fini(&in->memories);
}

static const struct bh_field schema[] = {
    {"permitWaitingTimeSeconds", BH_FIELD_INT64, NULL, NULL},
    {"podGroupBackoffSeconds", BH_FIELD_INT64, NULL, NULL},
    {"podGroupRejectPercentage", BH_FIELD_INT32, NULL, NULL},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};

/* No hints, as upstream: with some that looked at the pod's own group, groups of another priority were
 * not tried again, and a group took again and again the room that it had given up itself. */
static const struct bh_event_reg events[] = {
    {.on = BH_ON_POD, .actions = BH_EV_ADD},
    {.on = BH_ON_OBJECT,
     .kind = BH_KIND_COSCHEDULING_PODGROUP,
     .actions = BH_EV_ADD | BH_EV_UPDATE},
    {.actions = 0},
};

const struct bh_plugin bh_plugin_coscheduling = {
    BH_PLUGIN_HEAD(NAME),
    .flags = BH_PLUGIN_HINTS_BY_ESSENCE,
    .args_schema = schema,
    .args_check = args_check,
    .check_at_construction = true,
    .args_new = args_new,
    .args_free = args_free,
    .events = events,
    .less = less,
    .pre_filter = pre_filter,
    .post_filter = post_filter,
    .reserve = reserve,
    .unreserve = unreserve,
    .permit = permit,
    .idle = idle,
};
