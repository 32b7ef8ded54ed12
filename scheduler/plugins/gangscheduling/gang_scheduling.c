/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/gangscheduling/gang_scheduling.c - a gang goes when enough of it are there, and
 * when enough of it have room
 *
 * Upstream: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go; differences: Permit
 *           activates nobody (README.md).
 */
#include "scheduler/framework/framework.h"
#include "scheduler/plugins/registry.h"

#define NAME              "GangScheduling"
#define PERMIT_TIMEOUT_NS (INT64_C(5) * 60 * 1000000000)

BH_STATUS_CONST(too_few, BH_UNSCHEDULABLE_AND_UNRESOLVABLE, NAME,
                "waiting for minCount pods from a gang to appear in scheduling queue");
BH_STATUS_CONST(waits, BH_WAIT, NAME, "waiting for minCount pods from a gang to be scheduled");

struct gang_args {
    struct bh_waiting_pods *waiting;
};

static int args_new(const struct bh_plugin_env *env, const struct bh_json *args BH_UNUSED,
                    void **ret, struct bh_err *err BH_UNUSED)
{
    struct gang_args *a = bh_arena_new(env->arena, struct gang_args);

    a->waiting = env->waiting;
    *ret = a;
    return 0;
}

/* Where nobody keeps track of groups (`berth explain` beside the scheduler that does) a pod is one as
 * any other. */
static bool is_member(const struct bh_call *c)
{
    return c->cache->groups.on && c->pod->rec->group != BH_SYM_NONE;
}

static bool policy_of(const struct bh_call *c, struct bh_group_policy *ret)
{
    return bh_group_policy(c->objects, bh_sym_text(c->tab, c->pod->shape->namespace_),
                           bh_sym_text(c->tab, c->pod->rec->group), ret);
}

static struct bh_group *group_of(const struct bh_call *c)
{
    return bh_groups_find(&c->cache->groups, c->pod->shape->namespace_, c->pod->rec->group);
}

/* Members with scheduling gates count: the gang may go without them. */
static const struct bh_status *pre_enqueue(struct bh_call *c)
{
    const bh_sym name = c->pod->rec->group;
    struct bh_group_policy p;

    if (!is_member(c))
        return NULL;
    if (!policy_of(c, &p))
        return bh_status_new(c->arena, BH_UNSCHEDULABLE_AND_UNRESOLVABLE, NAME,
                             "waiting for pods's pod group \"%s\" to appear in scheduling queue",
                             bh_sym_text(c->tab, name));
    const struct bh_group *g = group_of(c);
    return p.gang && (g ? bh_group_all(g) : 0) < p.min_count ? &too_few : NULL;
}

static const struct bh_status *permit(struct bh_call *c, bh_sym node BH_UNUSED,
                                      int64_t *ret_timeout_ns)
{
    const struct gang_args *a = c->args;
    const bh_sym name = c->pod->rec->group;
    const struct bh_member *m;
    struct bh_group_policy p;

    if (!is_member(c))
        return NULL;
    const char *ns = bh_sym_text(c->tab, c->pod->shape->namespace_);
    const char *text = bh_sym_text(c->tab, name);
    if (!policy_of(c, &p))
        return bh_status_new(c->arena, BH_ERROR, NAME,
                             "failed to get podGroup %s/%s: podgroup.scheduling.k8s.io \"%s\" not "
                             "found",
                             ns, text, text);
    if (!p.gang)
        return NULL;
    const struct bh_group *g = group_of(c);
    if ((g ? bh_group_scheduled(g) : 0) < p.min_count) {
        *ret_timeout_ns = PERMIT_TIMEOUT_NS;
        return &waits;
    }
    if (!a->waiting->by_uid.len) /* of a large gang each member would look for all the others */
        return NULL;
    TAILQ_FOREACH(m, &g->at[BH_MEMBER_ASSUMED], link)
        (void)bh_waiting_allow(a->waiting, bh_member_uid(m), NAME);
    return NULL;
}

/* ---- hints ----------------------------------------------------------------------------------- */

static enum bh_hint on_pod_added(const struct bh_hint_call *c)
{
    const struct bh_cluster_event *ev = c->ev;

    if (ev->new_pod->group == BH_SYM_NONE || ev->new_shape->namespace_ != c->shape->namespace_)
        return BH_QUEUE_SKIP;
    /* Nobody waits for it: known without a look at the pod, and so said once for all that are gated. */
    const struct bh_group *g =
        bh_groups_find(&c->cache->groups, ev->new_shape->namespace_, ev->new_pod->group);
    if (g && !g->n[BH_MEMBER_UNSCHEDULED])
        return BH_QUEUE_SKIP;
    return bh_hint_if(bh_hint_pod(c)->group == ev->new_pod->group);
}

/* Or changed: later versions than v1alpha2 let minCount fall. */
static enum bh_hint on_group(const struct bh_hint_call *c)
{
    const struct bh_cluster_event *ev = c->ev;

    if (ev->object_name == BH_SYM_NONE)
        return BH_QUEUE;
    if (ev->object_namespace != c->shape->namespace_)
        return BH_QUEUE_SKIP;
    return bh_hint_if(bh_hint_pod(c)->group == ev->object_name);
}

static const struct bh_event_reg events[] = {
    {.on = BH_ON_POD, .actions = BH_EV_ADD, .hint = on_pod_added},
    {.on = BH_ON_OBJECT,
     .kind = BH_KIND_PODGROUP,
     .actions = BH_EV_ADD | BH_EV_UPDATE,
     .hint = on_group},
    {.actions = 0},
};

const struct bh_plugin bh_plugin_gang_scheduling = {
    BH_PLUGIN_HEAD(NAME),       .flags = BH_PLUGIN_NODE_LOCAL | BH_PLUGIN_HINTS_BY_ESSENCE,
    .args_new = args_new,       .events = events,
    .pre_enqueue = pre_enqueue, .permit = permit,
};
