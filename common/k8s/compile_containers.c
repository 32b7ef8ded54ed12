/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/compile_containers.c - what the spec says of each container, for plugins that look at
 * more than the pod's sums
 */
#include "common/k8s/compile_priv.h"

static struct bh_slice put_list(struct bh_compiler *c, const char *name, const char *what,
                                K8s__QuantityEntry *const *list, size_t n)
{
    struct bh_amounts x = {0};

    bh_amounts_read(c, &x, list, n, what);
    if (c->rc)
        bh_err_prefix(c->err, c->rc, "container %.64s", name);
    return c->rc ? (struct bh_slice){0, 0} : bh_amounts_put_all(c, &x);
}

static struct bh_container put_container(struct bh_compiler *c, const K8s__Container *k, bool init)
{
    const K8s__ResourceRequirements *r = k->resources;
    struct bh_container out = {
        .flags = !init ? 0 : BH_CONTAINER_INIT | (bh_is_sidecar(k) ? BH_CONTAINER_SIDECAR : 0)};

    if (r)
        out.requests = put_list(c, k->name, "resources.requests", r->requests, r->n_requests);
    if (r && !c->rc)
        out.limits = put_list(c, k->name, "resources.limits", r->limits, r->n_limits);
    return out;
}

int bh_compile_containers(struct bh_compiler *c, const K8s__Pod *p, struct bh_slice *ret_containers,
                          struct bh_slice *ret_overhead)
{
    const K8s__PodSpec *spec = p->spec;
    size_t n = spec->n_initcontainers + spec->n_containers;
    struct bh_amounts overhead = {0};

    (void)bh_rec_room(&c->b, n, sizeof(struct bh_container), ret_containers);
    for (size_t i = 0; i < n && !c->b.failed && !c->rc; i++) {
        bool init = i < spec->n_initcontainers;
        struct bh_container k = put_container(
            c, init ? spec->initcontainers[i] : spec->containers[i - spec->n_initcontainers], init);
        if (!c->b.failed)
            ((struct bh_container *)(c->b.p + ret_containers->off))[i] = k;
    }
    if (!c->rc)
        bh_amounts_read(c, &overhead, spec->overhead, spec->n_overhead, "spec.overhead");
    if (c->rc)
        return bh_err_prefix(c->err, c->rc, "pod %s", p->metadata->name);
    *ret_overhead = bh_amounts_put_all(c, &overhead);
    return 0;
}
