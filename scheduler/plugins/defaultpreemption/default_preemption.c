/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/defaultpreemption/default_preemption.c - evict pods of lower priority when
 * nothing fits
 *
 * Upstream: pkg/scheduler/framework/plugins/defaultpreemption; differences: none.
 */
#include <inttypes.h>

#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/preemption/preemption.h"
#include "scheduler/plugins/registry.h"

BH_STATUS_CONST(no_group, BH_UNSCHEDULABLE, "DefaultPreemption",
                "preemption: pod group for pod not found");
BH_STATUS_CONST(placed_as_group, BH_UNSCHEDULABLE, "DefaultPreemption",
                "preemption: not eligible due to placement-based pod group scheduling limitation");

/* Victims of one pod say nothing about a group that has to be in one domain. As upstream: constraints
 * that name no key count here. */
static const struct bh_status *as_member(const struct bh_call *c)
{
    const bh_sym group = c->pod->rec->group;

    if (!c->cache->groups.on || group == BH_SYM_NONE)
        return NULL;
    const K8s__PodGroup *g = (const void *)bh_objects_get(
        c->objects, BH_KIND_PODGROUP, bh_sym_text(c->tab, c->pod->shape->namespace_),
        bh_sym_text(c->tab, group));
    if (!g)
        return &no_group;
    return g->spec && g->spec->schedulingconstraints ? &placed_as_group : NULL;
}

static const struct bh_status *post_filter(struct bh_call *c, const struct bh_diagnosis *d,
                                           struct bh_post_filter_result *ret)
{
    const struct bh_preemption_args *a = c->args;
    const struct bh_status *s = a->placements ? as_member(c) : NULL;

    if (s)
        return s;
    s = bh_preempt(c, a, d, ret);
    if (!s)
        return NULL;
    return bh_status_new(c->arena, s->code, "DefaultPreemption", "preemption: %s",
                         bh_status_message(c->arena, s));
}

/* The daemon holds a preemptor back while its victims are being evicted; see
 * scheduler/engine/README.md. */
static const struct bh_status *pre_enqueue(struct bh_call *c BH_UNUSED)
{
    return NULL;
}

static void args_check(const struct bh_plugin *self BH_UNUSED, const struct bh_json *args,
                       const char *path, struct bh_field_errors *errs)
{
    int64_t pct = bh_json_get_i64(args, "minCandidateNodesPercentage", 10);
    int64_t abs = bh_json_get_i64(args, "minCandidateNodesAbsolute", 100);

    if (pct < 0 || pct > 100)
        bh_field_error(errs,
                       "%s.minCandidateNodesPercentage: Invalid value: %" PRId64
                       ": not in valid range [0, 100]",
                       path, pct);
    if (abs < 0)
        bh_field_error(errs,
                       "%s.minCandidateNodesAbsolute: Invalid value: %" PRId64
                       ": not in valid range [0, inf)",
                       path, abs);
    if (pct == 0 && abs == 0) {
        bh_field_error(
            errs,
            "%s.minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same "
            "time as minCandidateNodesAbsolute",
            path);
        bh_field_error(errs,
                       "%s.minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same "
                       "time as minCandidateNodesPercentage",
                       path);
    }
}

static int args_new(const struct bh_plugin_env *env, const struct bh_json *args, void **ret,
                    struct bh_err *err BH_UNUSED)
{
    struct bh_preemption_args *a = bh_arena_new(env->arena, struct bh_preemption_args);

    a->min_candidates_percentage = bh_json_get_i64(args, "minCandidateNodesPercentage", 10);
    a->min_candidates_absolute = bh_json_get_i64(args, "minCandidateNodesAbsolute", 100);
    a->by_group = bh_sched_config_gate(env->config, "WorkloadAwarePreemption");
    a->placements = bh_sched_config_gate(env->config, "TopologyAwareWorkloadScheduling");
    *ret = a;
    return 0;
}

/* Registered as upstream does, so that the gate hears of deletions; never a reason by itself. In
 * the daemon a preemptor whose victims leave is let go by bh_queue_release(). */
static enum bh_hint on_pod_deleted(const struct bh_hint_call *c BH_UNUSED)
{
    return BH_QUEUE_SKIP;
}

static const struct bh_event_reg events[] = {
    {.on = BH_ON_POD, .actions = BH_EV_DELETE, .hint = on_pod_deleted},
    {.actions = 0},
};

static const struct bh_field schema[] = {
    {"minCandidateNodesPercentage", BH_FIELD_INT32, NULL, NULL},
    {"minCandidateNodesAbsolute", BH_FIELD_INT32, NULL, NULL},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};

const struct bh_plugin bh_plugin_default_preemption = {
    BH_PLUGIN_HEAD("DefaultPreemption"),
    .flags = BH_PLUGIN_NODE_LOCAL,
    .args_schema = schema,
    .args_check = args_check,
    .args_new = args_new,
    .events = events,
    .pre_enqueue = pre_enqueue,
    .post_filter = post_filter,
};
