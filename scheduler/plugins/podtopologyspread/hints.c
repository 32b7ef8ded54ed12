/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/podtopologyspread/hints.c - which events may help a pod that this plugin
 * rejected
 *
 * Upstream:   pkg/scheduler/framework/plugins/podtopologyspread/plugin.go; differences: Berth also
 *             wakes the pod when a counted pod begins to terminate, when a node joins or leaves the
 *             set that nodeAffinityPolicy admits, and when a service or controller comes, goes or
 *             changes by which default constraints count.
 */
#include "scheduler/framework/framework.h"
#include "scheduler/plugins/podtopologyspread/spread.h"

/* The pod's hard constraints; false when they do not parse. Memory: the arena. */
static bool hard_constraints(const struct bh_hint_call *c, struct bh_arena *a,
                             struct bh_constraints *ret)
{
    const struct bh_spread_args *args = c->args;
    const struct bh_label_selector *selector = NULL;
    size_t size;

    bh_arena_init(a, 0);
    *ret = (struct bh_constraints){0};
    if (args && !c->shape->spread.n && args->n)
        selector = bh_default_selector(c->tab, c->objects, c->shape, a, &size);
    if (args)
        *ret = bh_spread_constraints_with(args, c->shape, BH_SPREAD_HARD, selector, c->tab, a);
    return args && !ret->error;
}

/* ---- pods ---- */

/* The waiting pod itself, or a pod that counts: of the same namespace, with a place. */
static bool involved(const struct bh_hint_call *c, const struct bh_pod_rec *p,
                     const struct bh_shape_rec *s)
{
    return bh_hint_is_self(c, p) || (bh_had_node(p) && s->namespace_ == c->shape->namespace_);
}

static bool honors_taints(const struct bh_constraints *k)
{
    for (uint32_t i = 0; i < k->n; i++)
        if (k->v[i].flags & BH_SPREAD_HONOR_TAINTS)
            return true;
    return false;
}

/* Some constraint counts exactly one of the two; NULL: a pod that is not there. */
static bool count_changes(const struct bh_hint_call *c, const struct bh_constraints *k,
                          const struct bh_shape_rec *before, const struct bh_shape_rec *after)
{
    for (uint32_t i = 0; i < k->n; i++)
        if ((before && bh_constraint_matches(&k->v[i], before, c->tab)) !=
            (after && bh_constraint_matches(&k->v[i], after, c->tab)))
            return true;
    return false;
}

static bool pod_helps(const struct bh_hint_call *c, const struct bh_constraints *k)
{
    const struct bh_cluster_event *ev = c->ev;
    const struct bh_shape_rec *before = ev->old_pod ? ev->old_shape : NULL;
    const struct bh_shape_rec *after = ev->new_pod ? ev->new_shape : NULL;

    if (!before || !after)
        return count_changes(c, k, before, after);
    if (ev->action == BH_EV_POD_TOLERATION && bh_hint_is_self(c, ev->new_pod) && honors_taints(k))
        return true;
    if (!(ev->old_pod->flags & BH_POD_TERMINATING) && ev->new_pod->flags & BH_POD_TERMINATING)
        return count_changes(c, k, before, NULL);
    return count_changes(c, k, before, after);
}

static enum bh_hint on_pod(const struct bh_hint_call *c)
{
    const struct bh_cluster_event *ev = c->ev;
    struct bh_constraints k;
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};

    if ((ev->new_pod && !involved(c, ev->new_pod, ev->new_shape)) ||
        (ev->old_pod && !involved(c, ev->old_pod, ev->old_shape)))
        return BH_QUEUE_SKIP;
    return bh_hint_if(!hard_constraints(c, &a, &k) || pod_helps(c, &k));
}

/* ---- nodes ---- */

static bool values_differ(const struct bh_constraints *k, const struct bh_node_rec *x,
                          const struct bh_node_rec *y)
{
    for (uint32_t i = 0; i < k->n; i++) {
        bh_sym before, after;
        bh_topology_value(x, k->v[i].key, &before);
        bh_topology_value(y, k->v[i].key, &after);
        if (before != after)
            return true;
    }
    return false;
}

static bool node_helps(const struct bh_hint_call *c, const struct bh_constraints *k)
{
    const struct bh_node_rec *old = c->ev->old_node, *neu = c->ev->new_node;
    bool matched = old && bh_has_all_keys(old, k), matches = neu && bh_has_all_keys(neu, k);
    bh_sym name = c->sym->metadata_name;

    if (!old || !neu)
        return matched || matches;
    return matched != matches ||
           (matches &&
            (values_differ(k, old, neu) ||
             bh_slice_differs(old, old->taints, neu, neu->taints, sizeof(struct bh_taint)) ||
             bh_required_node_match(c->shape, old, c->tab, name) !=
                 bh_required_node_match(c->shape, neu, c->tab, name)));
}

static enum bh_hint on_node(const struct bh_hint_call *c)
{
    struct bh_constraints k;
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};

    return bh_hint_if(!hard_constraints(c, &a, &k) || node_helps(c, &k));
}

/* ---- what default constraints count by ---- */

static enum bh_hint on_owner(const struct bh_hint_call *c)
{
    const struct bh_spread_args *args = c->args;

    for (uint32_t i = 0; args && !c->shape->spread.n && i < args->n; i++)
        if (args->v[i].flags & BH_SPREAD_HARD)
            return BH_QUEUE;
    return args ? BH_QUEUE_SKIP : BH_QUEUE;
}

const struct bh_event_reg bh_spread_events[] = {
    /* All updates: a pod that begins to terminate gives none of the specific ones. */
    {.on = BH_ON_POD, .actions = BH_EV_ALL, .hint = on_pod},
    {.on = BH_ON_NODE,
     .actions = BH_EV_ADD | BH_EV_DELETE | BH_EV_NODE_LABEL | BH_EV_NODE_TAINT,
     .hint = on_node},
    /* Selectors of controllers do not change. */
    {BH_ON_OBJECT, BH_KIND_SERVICE, BH_EV_ADD | BH_EV_DELETE | BH_EV_UPDATE, on_owner},
    {BH_ON_OBJECT, BH_KIND_REPLICATIONCONTROLLER, BH_EV_ADD | BH_EV_DELETE, on_owner},
    {BH_ON_OBJECT, BH_KIND_REPLICASET, BH_EV_ADD | BH_EV_DELETE, on_owner},
    {BH_ON_OBJECT, BH_KIND_STATEFULSET, BH_EV_ADD | BH_EV_DELETE, on_owner},
    {.actions = 0},
};
