/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/noderesourcetopologymatch/pod.c - what the pod at hand wants
 *
 * Upstream: pkg/util/resource.go (GetPodEffectiveRequest), resourcerequests/exclusive.go,
 * k8s.io/kubernetes/pkg/apis/core/v1/helper/qos. Sidecars count as init containers do, as there.
 */
#include <string.h>

#include "nrt.h"

/* Kubernetes' own: without a / or of kubernetes.io. */
static int is_native(const struct nrt_instance *in, berth_sym resource)
{
    const char *name = nrt_host->base->text(in->home, resource).p;

    return !strchr(name, '/') || strstr(name, "kubernetes.io/");
}

int nrt_is_affine(const struct nrt_instance *in, berth_sym resource)
{
    return resource == in->cpu || resource == in->memory ||
           strncmp(nrt_host->base->text(in->home, resource).p, "hugepages-", 10) == 0;
}

int nrt_is_host_level(const struct nrt_instance *in, berth_sym resource)
{
    return resource == in->storage || !is_native(in, resource) ||
           nrt_is(nrt_host->base->text(in->home, resource), "storage");
}

/* ---- quality of service ---------------------------------------------------------------------- */

static enum nrt_qos qos_of(const struct nrt_instance *in, struct berth_call *c,
                           const struct berth_pod *pod)
{
    const struct berth_host_pods *h = nrt_host->pods;
    const berth_sym both[2] = {in->cpu, in->memory};
    uint64_t requests[2] = {0, 0}, limits[2] = {0, 0};
    int guaranteed = 1;

    for (uint32_t i = 0; i < h->n_containers(c, pod); i++)
        for (int r = 0; r < 2; r++) {
            int64_t request = h->container_request(c, pod, i, both[r]);
            int64_t limit = h->container_limit(c, pod, i, both[r]);
            requests[r] += request > 0 ? (uint64_t)request : 0;
            limits[r] += limit > 0 ? (uint64_t)limit : 0;
            guaranteed &= limit > 0;
        }
    if (!requests[0] && !requests[1] && !limits[0] && !limits[1])
        return NRT_BEST_EFFORT;
    return guaranteed && requests[0] == limits[0] && requests[1] == limits[1] ? NRT_GUARANTEED
                                                                              : NRT_BURSTABLE;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* The higher of the largest init container and the sum of the others, and overhead. */
static int64_t effective(struct berth_call *c, const struct berth_pod *pod, berth_sym name)
{
    const struct berth_host_pods *h = nrt_host->pods;
    int64_t init = NRT_ABSENT, sum = NRT_ABSENT;

    for (uint32_t i = 0; i < h->n_containers(c, pod); i++) {
        int64_t v = h->container_request(c, pod, i, name);
        if (v >= 0 && h->container_kind(c, pod, i) != BERTH_CONTAINER)
            init = v > init ? v : init;
        else if (v >= 0 && __builtin_add_overflow(sum < 0 ? 0 : sum, v, &sum))
            sum = INT64_MAX;
    }
    int64_t more = h->overhead(c, pod, name), value = init > sum ? init : sum;
    if (more > 0 && __builtin_add_overflow(value < 0 ? 0 : value, more, &value))
        value = INT64_MAX;
    return value;
}

berth_sym nrt_resource_at(const struct nrt_instance *in, struct berth_call *c,
                          const struct berth_pod *pod, uint32_t i)
{
    const berth_sym usual[] = {in->cpu, in->memory, in->storage};

    if (i < 3)
        return usual[i];
    return i - 3 < nrt_host->pods->n_extended(c, pod) ? nrt_host->pods->extended_at(c, pod, i - 3)
                                                      : 0;
}

/* Of the i-th container, or of the pod as a whole (AS_A_WHOLE). NULL: no memory. */
#define AS_A_WHOLE UINT32_MAX
static const struct nrt_request *request_of(const struct nrt_instance *in, struct berth_call *c,
                                            const struct berth_pod *pod, uint32_t i)
{
    const struct berth_host_pods *h = nrt_host->pods;
    struct nrt_request *r =
        nrt_host->base->alloc(c, sizeof *r + (3 + h->n_extended(c, pod)) * sizeof r->amount[0]);
    berth_sym name;

    if (!r)
        return NULL;
    r->kind = i == AS_A_WHOLE ? BERTH_CONTAINER : h->container_kind(c, pod, i);
    for (uint32_t k = 0; (name = nrt_resource_at(in, c, pod, k)); k++) {
        int64_t value =
            i == AS_A_WHOLE ? effective(c, pod, name) : h->container_request(c, pod, i, name);
        if (value >= 0)
            r->amount[r->n++] = (struct nrt_amount){name, value};
    }
    return r;
}

int64_t nrt_effective(const struct nrt_instance *in, struct berth_call *c,
                      const struct berth_pod *pod, uint32_t i, berth_sym *name)
{
    *name = nrt_resource_at(in, c, pod, i);
    return *name ? effective(c, pod, *name) : NRT_ABSENT;
}

static int lists(const struct nrt_topology *t, berth_sym resource)
{
    for (uint32_t i = 0; i < t->n; i++)
        for (uint32_t k = 0; k < t->zone[i].n; k++)
            if (t->zone[i].amount[k].name == resource)
                return 1;
    return 0;
}

int nrt_is_guaranteed(const struct nrt_instance *in, struct berth_call *c,
                      const struct berth_pod *pod)
{
    return qos_of(in, c, pod) == NRT_GUARANTEED;
}

int nrt_amount_is_exclusive(const struct nrt_instance *in, int guaranteed, berth_sym resource,
                            int64_t amount, const struct nrt_topology *t)
{
    if (!is_native(in, resource))
        return lists(t, resource);
    return guaranteed && amount > 0 && nrt_is_affine(in, resource) &&
           (resource != in->cpu || amount % 1000 == 0);
}

int nrt_container_is_exclusive(const struct nrt_instance *in, struct berth_call *c,
                               const struct berth_pod *pod, uint32_t i, int guaranteed,
                               const struct nrt_topology *t)
{
    berth_sym name;

    if (nrt_host->pods->container_kind(c, pod, i) == BERTH_CONTAINER_INIT)
        return 0;
    for (uint32_t k = 0; (name = nrt_resource_at(in, c, pod, k)); k++) {
        int64_t v = nrt_host->pods->container_request(c, pod, i, name);
        if (v >= 0 && nrt_amount_is_exclusive(in, guaranteed, name, v, t))
            return 1;
    }
    return 0;
}

int nrt_is_exclusive(const struct nrt_instance *in, struct berth_call *c,
                     const struct berth_pod *pod, const struct nrt_topology *t)
{
    const int guaranteed = nrt_is_guaranteed(in, c, pod);

    for (uint32_t i = 0; i < nrt_host->pods->n_containers(c, pod); i++)
        if (nrt_container_is_exclusive(in, c, pod, i, guaranteed, t))
            return 1;
    return 0;
}

const struct nrt_pod *nrt_pod(struct nrt_instance *in, struct berth_call *c)
{
    const struct berth_pod *pod = nrt_host->pods->current(c);
    const uint32_t n = nrt_host->pods->n_containers(c, pod);
    struct nrt_pod *p = nrt_host->base->alloc(c, sizeof *p);

    if (!p)
        return NULL;
    p->qos = qos_of(in, c, pod);
    p->one = nrt_host->base->alloc(c, (n + 1) * sizeof(void *));
    for (; p->one && p->n < n; p->n++) {
        const struct nrt_request *r = p->one[p->n] = request_of(in, c, pod, p->n);
        if (!r)
            return NULL;
        for (uint32_t i = 0; i < r->n; i++)
            p->non_native |= !is_native(in, r->amount[i].name);
    }
    p->all = request_of(in, c, pod, AS_A_WHOLE);
    return p->one && p->all ? p : NULL;
}

const struct nrt_pod *nrt_pod_at_hand(struct nrt_instance *in, struct berth_call *c)
{
    const struct nrt_state *st = *nrt_host->base->filter_state(c);

    return st ? st->pod : nrt_pod(in, c);
}
