/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/compile_claims.c - what a pod asks of devices: claims, and resources that a class of
 * devices may provide
 *
 * Upstream: pkg/scheduler/framework/plugins/dynamicresources (extendeddynamicresources.go).
 */
#include "common/k8s/compile_priv.h"

#define CLASS_PREFIX "deviceclass.resource.kubernetes.io/"

static bool may_be_devices(const char *resource)
{
    return bh_resource_is_extended(resource) ||
           strncmp(resource, CLASS_PREFIX, sizeof CLASS_PREFIX - 1) == 0;
}

static struct bh_slice put_claims(struct bh_compiler *c, const K8s__PodSpec *spec)
{
    struct bh_slice s;
    struct bh_pod_claim *out = bh_rec_room(&c->b, spec->n_resourceclaims, sizeof(*out), &s);

    for (size_t i = 0; out && i < spec->n_resourceclaims; i++) {
        const K8s__PodResourceClaim *p = spec->resourceclaims[i];
        out[i] =
            (struct bh_pod_claim){.name = bh_compile_sym(c, p->name),
                                  .claim = bh_compile_sym(c, p->resourceclaimname),
                                  .template_ = bh_compile_sym(c, p->resourceclaimtemplatename)};
    }
    return s;
}

/* How many other requests of the container have a smaller name. */
static uint32_t position_of(const K8s__ResourceRequirements *r, const char *name)
{
    uint32_t n = 0;

    for (size_t i = 0; i < r->n_requests; i++)
        n += strcmp(r->requests[i]->key, name) < 0;
    return n;
}

struct requests {
    struct bh_extended_request *v; /* NULL: only count */
    size_t n;
};

static int by_position(const void *pa, const void *pb)
{
    const struct bh_extended_request *a = pa, *b = pb;

    return a->position < b->position ? -1 : a->position > b->position;
}

static void add_container(struct bh_compiler *c, const K8s__Container *k, uint32_t index,
                          uint32_t flags, struct requests *out)
{
    const K8s__ResourceRequirements *r = k->resources;
    size_t first = out->n;

    for (size_t i = 0; r && i < r->n_requests; i++) {
        const K8s__QuantityEntry *e = r->requests[i];
        bh_nano v;
        if (!may_be_devices(e->key) || !e->value || !e->value->string ||
            bh_quantity_parse(e->value->string, strlen(e->value->string), &v) < 0 || v <= 0 ||
            v % 1000000000 != 0) /* upstream's AsInt64 */
            continue;
        if (out->v)
            out->v[out->n] =
                (struct bh_extended_request){.resource = bh_compile_sym(c, e->key),
                                             .container = index,
                                             .position = position_of(r, e->key),
                                             .flags = flags,
                                             .container_name = bh_compile_sym(c, k->name),
                                             .value = bh_quantity_value(v)};
        out->n++;
    }
    if (out->v && out->n > first)
        qsort(out->v + first, out->n - first, sizeof(*out->v), by_position);
}

static void add_all(struct bh_compiler *c, const K8s__PodSpec *spec, struct requests *out)
{
    uint32_t index = 0;

    for (size_t i = 0; i < spec->n_initcontainers; i++) {
        const K8s__Container *k = spec->initcontainers[i];
        uint32_t flags = BH_CONTAINER_INIT | (bh_is_sidecar(k) ? BH_CONTAINER_SIDECAR : 0);
        add_container(c, k, index++, flags, out);
    }
    for (size_t i = 0; i < spec->n_containers; i++)
        add_container(c, spec->containers[i], index++, 0, out);
}

int bh_compile_claims(struct bh_compiler *c, const K8s__PodSpec *spec, struct bh_slice *ret_claims,
                      struct bh_slice *ret_extended)
{
    struct requests r = {0};

    *ret_claims = put_claims(c, spec);
    add_all(c, spec, &r);
    if (r.n) {
        r.v = bh_arena_new_array(c->a, struct bh_extended_request, r.n);
        if (!r.v)
            return bh_compile_no_memory(c, "requests");
        r.n = 0;
        add_all(c, spec, &r);
    }
    *ret_extended = bh_rec_put(&c->b, r.v, r.n, sizeof(*r.v));
    return 0;
}
