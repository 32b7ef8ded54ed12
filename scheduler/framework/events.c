/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/framework/events.c - which cluster events concern which plugin, and what changed in an
 * object
 *
 * Upstream: pkg/scheduler/framework/events.go, framework/types.go (ClusterEvent.Match).
 */
#include "scheduler/framework/framework.h"

const struct bh_event_reg bh_no_events[] = {{.actions = 0}};

bool bh_event_matches(const struct bh_event_reg *reg, const struct bh_cluster_event *ev)
{
    bool same = false;

    switch (ev->resource) {
    case BH_EV_POD_ASSIGNED:
    case BH_EV_POD_UNSCHEDULED:
        same = reg->on == BH_ON_POD;
        break;
    case BH_EV_NODE:
        same = reg->on == BH_ON_NODE;
        break;
    case BH_EV_OBJECT:
        same = reg->on == BH_ON_OBJECT && reg->kind == ev->kind;
        break;
    case BH_EV_PLUGIN: /* asked by name */
        break;
    }
    /* The numeric comparison keeps a general update away from registrations of one specific kind of
     * update. */
    return same && (reg->actions & ev->action) && ev->action <= reg->actions;
}

/* A plugin that waits for new nodes but not for taints: upstream registers taint updates for it,
 * because a node may have been added with a taint that its first update removes. */
static bool wakes_implied(const struct bh_plugin *p, const struct bh_cluster_event *ev)
{
    bool add = false, taint = false;

    if (ev->resource != BH_EV_NODE || ev->action != BH_EV_NODE_TAINT)
        return false;
    for (const struct bh_event_reg *r = p->events; r && r->actions; r++) {
        if (r->on != BH_ON_NODE)
            continue;
        add |= (r->actions & BH_EV_ADD) != 0;
        taint |= (r->actions & BH_EV_NODE_TAINT) != 0;
    }
    return add && !taint;
}

enum bh_hint bh_plugin_hint(const struct bh_plugin *p, const struct bh_hint_call *call)
{
    if (!p->events || wakes_implied(p, call->ev))
        return BH_QUEUE;
    for (const struct bh_event_reg *r = p->events; r->actions; r++)
        if (bh_event_matches(r, call->ev) && (!r->hint || r->hint(call) == BH_QUEUE))
            return BH_QUEUE;
    return BH_QUEUE_SKIP;
}

bool bh_plugin_interested(const struct bh_plugin *p, const struct bh_cluster_event *ev)
{
    if (!p->events || wakes_implied(p, ev))
        return true;
    for (const struct bh_event_reg *r = p->events; r->actions; r++)
        if (bh_event_matches(r, ev))
            return true;
    return false;
}

/* ---- diffs ----------------------------------------------------------------------------------- */

bool bh_slice_differs(const void *a, struct bh_slice sa, const void *b, struct bh_slice sb,
                      size_t size)
{
    return sa.n != sb.n ||
           (sa.n && memcmp((const char *)a + sa.off, (const char *)b + sb.off, sa.n * size) != 0);
}

unsigned bh_node_diff(const struct bh_node_rec *old, const struct bh_node_rec *neu, uint32_t out[8])
{
    unsigned n = 0;

    if (old->flags & BH_NODE_UNSCHEDULABLE && !(neu->flags & BH_NODE_UNSCHEDULABLE))
        out[n++] = BH_EV_NODE_TAINT;
    if (old->alloc_cpu_milli != neu->alloc_cpu_milli ||
        old->alloc_memory_bytes != neu->alloc_memory_bytes ||
        old->alloc_ephemeral_bytes != neu->alloc_ephemeral_bytes ||
        old->alloc_pods != neu->alloc_pods ||
        bh_slice_differs(old, old->scalars, neu, neu->scalars, sizeof(struct bh_res)))
        out[n++] = BH_EV_NODE_ALLOCATABLE;
    if (bh_slice_differs(old, old->labels, neu, neu->labels, sizeof(struct bh_kv)))
        out[n++] = BH_EV_NODE_LABEL;
    if (bh_slice_differs(old, old->taints, neu, neu->taints, sizeof(struct bh_taint)))
        out[n++] = BH_EV_NODE_TAINT;
    if (old->conditions_hash != neu->conditions_hash)
        out[n++] = BH_EV_NODE_CONDITION;
    if (old->annotations_hash != neu->annotations_hash)
        out[n++] = BH_EV_NODE_ANNOTATION;
    if (bh_slice_differs(old, old->features, neu, neu->features, sizeof(bh_sym)))
        out[n++] = BH_EV_NODE_FEATURE;
    return n;
}

static bool scaled_down(const struct bh_shape_rec *old, const struct bh_shape_rec *neu)
{
    const struct bh_requests *a = &old->used, *b = &neu->used;
    const struct bh_res *r = bh_rec_at(old, a->scalars, struct bh_res);

    if (a->cpu_milli > b->cpu_milli || a->memory_bytes > b->memory_bytes ||
        a->ephemeral_bytes > b->ephemeral_bytes)
        return true;
    for (uint32_t i = 0; i < a->scalars.n; i++) {
        bool present;
        int64_t v = bh_requests_scalar(neu, b, r[i].name, &present);
        if (!present || r[i].value > v)
            return true;
    }
    return false;
}

unsigned bh_pod_diff(const struct bh_pod_rec *old, const struct bh_shape_rec *old_shape,
                     const struct bh_pod_rec *neu, const struct bh_shape_rec *new_shape,
                     uint32_t out[8])
{
    unsigned n = 0;

    if (bh_slice_differs(old_shape, old_shape->labels, new_shape, new_shape->labels,
                         sizeof(struct bh_kv)))
        out[n++] = BH_EV_POD_LABEL;
    if (scaled_down(old_shape, new_shape))
        out[n++] = BH_EV_POD_SCALE_DOWN;
    if (old_shape->gates.n && !new_shape->gates.n)
        out[n++] = BH_EV_POD_GATES_ELIMINATED;
    if (old_shape->tolerations.n != new_shape->tolerations.n)
        out[n++] = BH_EV_POD_TOLERATION;
    if (old->extended_claim_hash != neu->extended_claim_hash ||
        bh_slice_differs(old, old->claim_statuses, neu, neu->claim_statuses,
                         sizeof(struct bh_claim_status)))
        out[n++] = BH_EV_POD_CLAIM;
    if (!n)
        out[n++] = BH_EV_UPDATE;
    return n;
}
