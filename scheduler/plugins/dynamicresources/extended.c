/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/extended.c - requests for devices that stand for a pod's
 * extended resources
 *
 * Containers that run for the pod's whole life get a request each. Init containers that end use
 * again what containers after them will have; the largest shortfall becomes one request they share.
 *
 * Runs in:  the engine's thread.
 * Upstream: pkg/scheduler/framework/plugins/dynamicresources (extendeddynamicresources.go).
 */
#include "common/k8s/compile.h"
#include "scheduler/plugins/dynamicresources/claims.h"
#include "scheduler/plugins/dynamicresources/device_class.h"

static const struct bh_res *requests_of(const struct bh_dra_lookup *l)
{
    return bh_rec_at(l->shape, l->shape->fit.scalars, struct bh_res);
}

bool bh_dra_wants_extended(const struct bh_dra_lookup *l)
{
    const struct bh_res *r = requests_of(l);

    for (uint32_t i = 0; i < l->shape->fit.scalars.n; i++)
        if (r[i].value && bh_device_class_maps(l->objects, bh_sym_text(l->tab, r[i].name)))
            return true;
    return false;
}

static bool long_lived(const struct bh_extended_request *e)
{
    return !(e->flags & BH_CONTAINER_INIT) || e->flags & BH_CONTAINER_SIDECAR;
}

static void add_request(struct bh_arena *a, const struct bh_extended_request *e, int64_t count,
                        const char *class, K8s__DeviceClaim *ret)
{
    K8s__DeviceRequest *r = bh_arena_new(a, K8s__DeviceRequest);

    k8s__device_request__init(r);
    r->exactly = bh_arena_new(a, K8s__ExactDeviceRequest);
    k8s__exact_device_request__init(r->exactly);
    r->name = bh_arena_printf(a, "container-%u-request-%u", e->container, e->position);
    r->exactly->deviceclassname = (char *)(uintptr_t) class; /* only read */
    r->exactly->allocationmode = (char *)(uintptr_t) "ExactCount";
    r->exactly->count = count;
    ret->requests[ret->n_requests++] = r;
}

/* What the init container lacks when it uses again what later containers have. */
static int64_t shortfall(const struct bh_extended_request *e, uint32_t n,
                         const struct bh_extended_request *init)
{
    int64_t v = init->value;

    for (uint32_t i = 0; i < n; i++)
        if (e[i].resource == init->resource && long_lived(&e[i]) &&
            e[i].container > init->container)
            v = bh_sub_sat(v, e[i].value);
    return BH_MAX(v, 0);
}

static void add_resource(const struct bh_dra_lookup *l, struct bh_arena *a, bh_sym resource,
                         K8s__DeviceClaim *ret)
{
    const struct bh_extended_request *e =
        bh_rec_at(l->shape, l->shape->extended, struct bh_extended_request);
    const K8s__DeviceClass *class = bh_device_class_of(l->objects, bh_sym_text(l->tab, resource));
    const struct bh_extended_request *shared = NULL;
    uint32_t n = l->shape->extended.n;
    int64_t most = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (e[i].resource != resource)
            continue;
        if (long_lived(&e[i])) {
            add_request(a, &e[i], e[i].value, class->metadata->name, ret);
        } else if (shortfall(e, n, &e[i]) > most) {
            most = shortfall(e, n, &e[i]);
            shared = &e[i];
        }
    }
    if (shared)
        add_request(a, shared, most, class->metadata->name, ret);
}

static int by_name(const void *pa, const void *pb)
{
    const K8s__DeviceRequest *const *a = pa, *const *b = pb;
    return strcmp((*a)->name, (*b)->name);
}

static bool is_device_resource(const char *name)
{
    return bh_resource_is_extended(name) ||
           strncmp(name, BH_IMPLICIT_RESOURCE_PREFIX, sizeof BH_IMPLICIT_RESOURCE_PREFIX - 1) == 0;
}

enum bh_dra_extended bh_dra_extended_requests(const struct bh_dra_lookup *l, struct bh_arena *a,
                                              const struct bh_node_rec *node, K8s__DeviceClaim *ret)
{
    const struct bh_res *r = requests_of(l);
    bool any = false;

    k8s__device_claim__init(ret);
    ret->requests = bh_arena_new_array(a, K8s__DeviceRequest *, l->shape->extended.n + 1);
    for (uint32_t i = 0; i < l->shape->fit.scalars.n; i++) {
        const char *name = bh_sym_text(l->tab, r[i].name);
        bool present;
        int64_t alloc = bh_node_rec_scalar(node, r[i].name, &present);
        if (!r[i].value || !is_device_resource(name))
            continue;
        bool mapped = bh_device_class_maps(l->objects, name);
        if (!mapped && !present)
            return BH_DRA_BY_NOBODY;
        if (!mapped || alloc > 0)
            continue;
        any = true;
        add_resource(l, a, r[i].name, ret);
    }
    if (ret->n_requests)
        qsort(ret->requests, ret->n_requests, sizeof *ret->requests, by_name);
    return any ? BH_DRA_BY_DEVICES : BH_DRA_BY_PLUGIN;
}
