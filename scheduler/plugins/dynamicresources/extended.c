/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/extended.c - requests for devices that stand for a pod's
 * extended resources
 *
 * Containers that run for the pod's whole life get a request each. Init containers that end use
 * again what containers after them will have; the largest shortfall becomes one request they share.
 *
 * Upstream: pkg/scheduler/framework/plugins/dynamicresources (extendeddynamicresources.go).
 */
#include "common/k8s/codec.h"
#include "common/k8s/compile.h"
#include "scheduler/plugins/dynamicresources/claims.h"
#include "scheduler/plugins/dynamicresources/device_class.h"

static const struct bh_res *requests_of(const struct bh_dra_lookup *l)
{
    return bh_rec_at(l->shape, l->shape->fit.scalars, struct bh_res);
}

static bool is_device_resource(const char *name)
{
    return bh_resource_is_extended(name) ||
           strncmp(name, BH_IMPLICIT_RESOURCE_PREFIX, sizeof BH_IMPLICIT_RESOURCE_PREFIX - 1) == 0;
}

/* Of the shape's scalar request i. */
static const K8s__DeviceClass *class_of(const struct bh_dra_lookup *l, uint32_t i)
{
    const char *name = bh_sym_text(l->tab, requests_of(l)[i].name);

    if (l->classes)
        return l->classes[i];
    return is_device_resource(name) ? bh_device_class_of(l->objects, name) : NULL;
}

const K8s__DeviceClass *const *bh_dra_classes_for(const struct bh_dra_lookup *l, struct bh_arena *a)
{
    uint32_t n = l->shape->fit.scalars.n;
    const K8s__DeviceClass **v = bh_arena_new_array(a, const K8s__DeviceClass *, n + 1);

    for (uint32_t i = 0; i < n; i++)
        v[i] = class_of(l, i);
    return v;
}

bool bh_dra_wants_extended(const struct bh_dra_lookup *l)
{
    const struct bh_res *r = requests_of(l);

    for (uint32_t i = 0; i < l->shape->fit.scalars.n; i++) {
        const char *name = bh_sym_text(l->tab, r[i].name);
        if (r[i].value && is_device_resource(name) && bh_device_class_maps(l->objects, name))
            return true;
    }
    return false;
}

static bool long_lived(const struct bh_extended_request *e)
{
    return !(e->flags & BH_CONTAINER_INIT) || e->flags & BH_CONTAINER_SIDECAR;
}

static char *request_name(struct bh_arena *a, const struct bh_extended_request *e)
{
    return bh_arena_printf(a, "container-%u-request-%u", e->container, e->position);
}

static void add_request(struct bh_arena *a, const struct bh_extended_request *e, int64_t count,
                        const char *class, K8s__DeviceClaim *ret)
{
    K8s__DeviceRequest *r = bh_pb_new(a, &k8s__device_request__descriptor);

    r->exactly = bh_pb_new(a, &k8s__exact_device_request__descriptor);
    r->name = request_name(a, e);
    r->exactly->deviceclassname = (char *)(uintptr_t) class; /* only read */
    r->exactly->allocationmode = (char *)(uintptr_t) "ExactCount";
    r->exactly->has_count = true;
    r->exactly->count = count;
    ret->requests[ret->n_requests++] = r;
}

/* The init container that lacks most when it uses again what later containers have; of equals the
 * first. All that end share its request. Requests are in order of containers. */
static const struct bh_extended_request *largest(const struct bh_shape_rec *s, bh_sym resource,
                                                 int64_t *ret_shortfall)
{
    const struct bh_extended_request *e = bh_rec_at(s, s->extended, struct bh_extended_request);
    const struct bh_extended_request *shared = NULL;
    int64_t later = 0;

    *ret_shortfall = 0;
    for (uint32_t i = s->extended.n; i > 0; i--) {
        const struct bh_extended_request *x = &e[i - 1];
        if (x->resource != resource)
            continue;
        if (long_lived(x)) {
            later = bh_add_sat(later, x->value);
        } else if (x->value > later && x->value - later >= *ret_shortfall) {
            *ret_shortfall = x->value - later;
            shared = x;
        }
    }
    return shared;
}

/* Scalar request `at`, which a class provides. */
static void add_resource(const struct bh_dra_lookup *l, struct bh_arena *a, uint32_t at,
                         K8s__DeviceClaim *ret)
{
    const struct bh_extended_request *e =
        bh_rec_at(l->shape, l->shape->extended, struct bh_extended_request);
    const K8s__DeviceClass *class = class_of(l, at);
    bh_sym resource = requests_of(l)[at].name;
    int64_t most;
    const struct bh_extended_request *shared = largest(l->shape, resource, &most);

    for (uint32_t i = 0; i < l->shape->extended.n; i++)
        if (e[i].resource == resource && long_lived(&e[i]))
            add_request(a, &e[i], e[i].value, class->metadata->name, ret);
    if (shared)
        add_request(a, shared, most, class->metadata->name, ret);
}

static int by_name(const void *pa, const void *pb)
{
    const K8s__DeviceRequest *const *a = pa, *const *b = pb;
    return strcmp((*a)->name, (*b)->name);
}

/* false: neither the node itself nor devices of a class serve what the pod asks for. */
static bool served_by(const struct bh_dra_lookup *l, const struct bh_node_rec *node, uint32_t i,
                      bool *ret_devices)
{
    const struct bh_res *r = &requests_of(l)[i];
    const char *name = bh_sym_text(l->tab, r->name);
    bool present;
    int64_t alloc = bh_node_rec_scalar(node, r->name, &present);

    *ret_devices = false;
    if (!r->value || !is_device_resource(name))
        return true;
    *ret_devices = alloc == 0 && class_of(l, i) != NULL;
    return *ret_devices || present;
}

enum bh_dra_extended bh_dra_extended_requests(const struct bh_dra_lookup *l, struct bh_arena *a,
                                              const struct bh_node_rec *node, K8s__DeviceClaim *ret)
{
    bool any = false, by_devices;

    k8s__device_claim__init(ret);
    ret->requests = bh_arena_new_array(a, K8s__DeviceRequest *, l->shape->extended.n + 1);
    for (uint32_t i = 0; i < l->shape->fit.scalars.n; i++) {
        if (!served_by(l, node, i, &by_devices))
            return BH_DRA_BY_NOBODY;
        if (by_devices)
            add_resource(l, a, i, ret);
        any |= by_devices;
    }
    if (ret->n_requests)
        qsort(ret->requests, ret->n_requests, sizeof *ret->requests, by_name);
    return any ? BH_DRA_BY_DEVICES : BH_DRA_BY_PLUGIN;
}

/* ---- which request serves which container ---- */

struct mappings {
    const struct bh_dra_lookup *l;
    struct bh_arena *a;
    K8s__PodExtendedResourceClaimStatus *ret;
    size_t cap;
};

static void map_to(struct mappings *m, const struct bh_extended_request *e,
                   const struct bh_extended_request *request)
{
    K8s__ContainerExtendedResourceRequest *r =
        bh_pb_new(m->a, &k8s__container_extended_resource_request__descriptor);

    r->containername = bh_arena_strdup(m->a, bh_sym_text(m->l->tab, e->container_name));
    r->resourcename = bh_arena_strdup(m->a, bh_sym_text(m->l->tab, e->resource));
    r->requestname = request_name(m->a, request);
    BH_ARENA_GROW(m->a, m->ret->requestmappings, m->ret->n_requestmappings, m->cap);
    m->ret->requestmappings[m->ret->n_requestmappings++] = r;
}

/* An init container that ends: later containers' requests until they suffice, then the shared. */
static void map_short_lived(struct mappings *m, const struct bh_extended_request *init,
                            const struct bh_extended_request *shared)
{
    const struct bh_shape_rec *s = m->l->shape;
    const struct bh_extended_request *e = bh_rec_at(s, s->extended, struct bh_extended_request);
    int64_t sum = 0;

    for (uint32_t i = 0; i < s->extended.n && sum < init->value; i++) {
        if (e[i].resource != init->resource || !long_lived(&e[i]) ||
            e[i].container <= init->container)
            continue;
        map_to(m, init, &e[i]);
        sum = bh_add_sat(sum, e[i].value);
    }
    if (sum < init->value)
        map_to(m, init, shared);
}

struct named {
    const char *name;
    bh_sym sym;
};

static int by_resource(const void *pa, const void *pb)
{
    const struct named *a = pa, *b = pb;

    return strcmp(a->name, b->name);
}

K8s__PodExtendedResourceClaimStatus *bh_dra_extended_mappings(const struct bh_dra_lookup *l,
                                                              struct bh_arena *a,
                                                              const struct bh_node_rec *node)
{
    struct mappings m = {
        .l = l, .a = a, .ret = bh_pb_new(a, &k8s__pod_extended_resource_claim_status__descriptor)};
    const struct bh_shape_rec *s = l->shape;
    const struct bh_extended_request *e = bh_rec_at(s, s->extended, struct bh_extended_request);
    const struct bh_res *q = requests_of(l);
    struct named *v = bh_arena_new_array(a, struct named, s->fit.scalars.n + 1);
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->fit.scalars.n; i++) {
        bool by_devices;
        if (served_by(l, node, i, &by_devices) && by_devices)
            v[n++] = (struct named){bh_sym_text(l->tab, q[i].name), q[i].name};
    }
    if (n > 1) /* by name, as upstream */
        qsort(v, n, sizeof *v, by_resource);
    for (uint32_t r = 0; r < n; r++) {
        int64_t most;
        const struct bh_extended_request *shared = largest(s, v[r].sym, &most);
        for (uint32_t i = 0; i < s->extended.n; i++)
            if (e[i].resource == v[r].sym && long_lived(&e[i]))
                map_to(&m, &e[i], &e[i]);
        for (uint32_t i = 0; i < s->extended.n; i++)
            if (e[i].resource == v[r].sym && !long_lived(&e[i]))
                map_short_lived(&m, &e[i], shared);
    }
    return m.ret;
}
