/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/noderesources/fit_events.c - what can make a pod fit that did not
 *
 * Upstream:   pkg/scheduler/framework/plugins/noderesources/fit.go (EventsToRegister); differences:
 *             a node helps a pod although it lacks a resource that the args ignore.
 */
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/plugins/dynamicresources/device_class.h"
#include "scheduler/plugins/noderesources/fit.h"

static enum bh_hint on_pod(const struct bh_hint_call *c)
{
    const struct bh_cluster_event *ev = c->ev;

    if (!ev->new_pod) /* deleted */
        return bh_hint_if(bh_had_node(ev->old_pod));
    if (bh_hint_is_self(c, ev->new_pod))
        return BH_QUEUE; /* scaled down itself */
    if (ev->new_pod->node == BH_SYM_NONE || !ev->old_shape)
        return BH_QUEUE_SKIP;

    const struct bh_requests *want = &c->shape->used, *old = &ev->old_shape->used,
                             *neu = &ev->new_shape->used;
    const struct bh_res *r = bh_rec_at(c->shape, want->scalars, struct bh_res);
    if ((want->cpu_milli && old->cpu_milli > neu->cpu_milli) ||
        (want->memory_bytes && old->memory_bytes > neu->memory_bytes) ||
        (want->ephemeral_bytes && old->ephemeral_bytes > neu->ephemeral_bytes))
        return BH_QUEUE;
    for (uint32_t i = 0; i < want->scalars.n; i++)
        if (r[i].value && bh_requests_scalar(ev->old_shape, old, r[i].name, NULL) >
                              bh_requests_scalar(ev->new_shape, neu, r[i].name, NULL))
            return BH_QUEUE;
    return BH_QUEUE_SKIP;
}

static bool grew(const struct bh_hint_call *c)
{
    const struct bh_node_rec *old = c->ev->old_node, *neu = c->ev->new_node;
    const struct bh_requests *q = &c->shape->fit;
    const struct bh_res *r = bh_rec_at(c->shape, q->scalars, struct bh_res);

    if (neu->alloc_pods > old->alloc_pods ||
        (q->cpu_milli > 0 && neu->alloc_cpu_milli > old->alloc_cpu_milli) ||
        (q->memory_bytes > 0 && neu->alloc_memory_bytes > old->alloc_memory_bytes) ||
        (q->ephemeral_bytes > 0 && neu->alloc_ephemeral_bytes > old->alloc_ephemeral_bytes))
        return true;
    for (uint32_t i = 0; i < q->scalars.n; i++) {
        int64_t now = bh_node_rec_scalar(neu, r[i].name, NULL);
        if (r[i].value == 0)
            continue;
        if (now > bh_node_rec_scalar(old, r[i].name, NULL) ||
            (now == 0 && bh_device_class_maps(c->objects, bh_sym_text(c->tab, r[i].name))))
            return true;
    }
    return false;
}

static enum bh_hint on_node(const struct bh_hint_call *c)
{
    const struct bh_node_rec *n = c->ev->new_node;
    const struct bh_requests *q = &c->shape->fit;
    const struct bh_res *r = bh_rec_at(c->shape, q->scalars, struct bh_res);
    struct bh_fit_args *a = (struct bh_fit_args *)(uintptr_t)c->args;

    if (n->alloc_pods < 1 || q->cpu_milli > BH_MAX(n->alloc_cpu_milli, 0) ||
        q->memory_bytes > BH_MAX(n->alloc_memory_bytes, 0) ||
        q->ephemeral_bytes > BH_MAX(n->alloc_ephemeral_bytes, 0))
        return BH_QUEUE_SKIP;
    for (uint32_t i = 0; i < q->scalars.n; i++) {
        int64_t alloc = bh_node_rec_scalar(n, r[i].name, NULL);
        if (r[i].value > alloc && !(a && bh_fit_ignores(a, r[i].name)) &&
            !(alloc == 0 && bh_device_class_maps(c->objects, bh_sym_text(c->tab, r[i].name))))
            return BH_QUEUE_SKIP;
    }
    return bh_hint_if(!c->ev->old_node || grew(c));
}

/* By the implicit name of a class. */
static bool names_class(const struct bh_hint_call *c, bh_sym class)
{
    const struct bh_res *r = bh_rec_at(c->shape, c->shape->fit.scalars, struct bh_res);
    size_t prefix = strlen(BH_IMPLICIT_RESOURCE_PREFIX);

    for (uint32_t i = 0; i < c->shape->fit.scalars.n; i++) {
        const char *name = bh_sym_text(c->tab, r[i].name);
        if (strncmp(name, BH_IMPLICIT_RESOURCE_PREFIX, prefix) == 0 &&
            bh_streq(name + prefix, bh_sym_text(c->tab, class)))
            return true;
    }
    return false;
}

/* A class that provides what the pod asks for under either of its names. */
static enum bh_hint on_device_class(const struct bh_hint_call *c)
{
    const struct bh_cluster_event *ev = c->ev;
    bool added = ev->action == BH_EV_ADD;

    if (ev->object_name == BH_SYM_NONE) /* not known which */
        return BH_QUEUE;
    if (added && names_class(c, ev->object_name))
        return BH_QUEUE;
    if (!added && !(ev->object_changes & BH_CLASS_RESOURCE))
        return BH_QUEUE_SKIP;
    /* The pod names the resource, be it with 0. */
    bool present = false;
    if (ev->object_resource != BH_SYM_NONE)
        (void)bh_requests_scalar(c->shape, &c->shape->fit, ev->object_resource, &present);
    return bh_hint_if(present);
}

const struct bh_event_reg bh_fit_events[] = {
    {.on = BH_ON_POD, .actions = BH_EV_DELETE | BH_EV_POD_SCALE_DOWN, .hint = on_pod},
    {.on = BH_ON_NODE, .actions = BH_EV_ADD | BH_EV_NODE_ALLOCATABLE, .hint = on_node},
    {.on = BH_ON_OBJECT,
     .kind = BH_KIND_DEVICECLASS,
     .actions = BH_EV_ADD | BH_EV_UPDATE,
     .hint = on_device_class},
    {.actions = 0},
};
