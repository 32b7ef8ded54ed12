/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/compile_containers.c - what the spec says of each container, for plugins that look at
 * more than the pod's sums
 */
#include "common/k8s/compile_priv.h"

static struct bh_container put_container(struct bh_compiler *c, const K8s__Container *k,
                                         const struct bh_container_amounts *amounts)
{
    const K8s__ResourceRequirements *r = k->resources;
    struct bh_amounts limits = {0};
    struct bh_container out = {.flags = !amounts->init
                                            ? 0
                                            : BH_CONTAINER_INIT |
                                                  (amounts->restartable ? BH_CONTAINER_SIDECAR : 0),
                               .name = bh_compile_sym(c, k->name)};

    out.requests = bh_amounts_put_all(c, &amounts->spec);
    if (r)
        bh_amounts_read(c, &limits, r->limits, r->n_limits, "resources.limits");
    if (c->rc)
        bh_err_prefix(c->err, c->rc, "container %.64s", k->name);
    else
        out.limits = bh_amounts_put_all(c, &limits);
    return out;
}

int bh_compile_containers(struct bh_compiler *c, const K8s__Pod *p, const struct bh_pod_amounts *pa,
                          struct bh_slice *ret_containers, struct bh_slice *ret_overhead)
{
    const K8s__PodSpec *spec = p->spec;
    const size_t n_init = spec->n_initcontainers;

    (void)bh_rec_room(&c->b, pa->n, sizeof(struct bh_container), ret_containers);
    for (size_t i = 0; i < pa->n && !c->b.failed && !c->rc; i++) {
        const bool init = i < n_init; /* they come first here */
        const size_t at = init ? spec->n_containers + i : i - n_init;
        struct bh_container k = put_container(
            c, init ? spec->initcontainers[i] : spec->containers[at], &pa->containers[at]);
        if (!c->b.failed)
            ((struct bh_container *)(c->b.p + ret_containers->off))[i] = k;
    }
    if (c->rc)
        return bh_err_prefix(c->err, c->rc, "pod %s", p->metadata->name);
    *ret_overhead = bh_amounts_put_all(c, &pa->overhead);
    return 0;
}
