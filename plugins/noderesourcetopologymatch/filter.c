/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/noderesourcetopologymatch/filter.c - does the pod, or each container, fit one NUMA node?
 *
 * Upstream: pkg/noderesourcetopology/filter.go, numaresources.go.
 */
#include <stdlib.h>
#include <string.h>

#include "nrt.h"

/* ---- zones ----------------------------------------------------------------------------------- */

/* What pods hold may be in any zone, so it is taken from all of them. */
static void subtract_held(const struct nrt_seen *s, struct nrt_amount *amount, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < s->n_sum; k++)
            if (s->sum[k].name == amount[i].name && s->sum[k].value)
                amount[i].value =
                    amount[i].value > s->sum[k].value ? amount[i].value - s->sum[k].value : 0;
}

int nrt_zones(struct nrt_instance *in, const struct nrt_seen *s, struct nrt_zones *ret)
{
    const struct nrt_topology *t = s->topology;
    uint64_t n = 0;

    for (uint32_t i = 0; i < t->n; i++)
        n += t->zone[i].n;
    if (n > in->cap_scratch) {
        struct nrt_amount *more = realloc(in->scratch, n * sizeof *more);
        if (!more)
            return 0;
        in->scratch = more;
        in->cap_scratch = n;
    }
    ret->t = t;
    n = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        ret->amount[i] = in->scratch + n;
        memcpy(ret->amount[i], t->zone[i].amount, t->zone[i].n * sizeof(struct nrt_amount));
        subtract_held(s, ret->amount[i], t->zone[i].n);
        n += t->zone[i].n;
    }
    return 1;
}

int64_t *nrt_available(const struct nrt_zones *z, uint32_t i, berth_sym resource)
{
    for (uint32_t k = 0; k < z->t->zone[i].n; k++)
        if (z->amount[i][k].name == resource)
            return &z->amount[i][k].value;
    return NULL;
}

int nrt_suits(const struct nrt_instance *in, enum nrt_qos qos, berth_sym resource, int64_t wanted,
              int64_t available)
{
    return available >= wanted || (qos != NRT_GUARANTEED && nrt_is_affine(in, resource));
}

/* ---- one request ----------------------------------------------------------------------------- */

/* Of cpu, memory and ephemeral-storage every node says something. */
static int node_names(const struct nrt_instance *in, struct berth_call *c,
                      const struct berth_node *node, berth_sym resource)
{
    const struct berth_host_nodes *h = nrt_host->nodes;

    if (resource == in->cpu || resource == in->memory || resource == in->storage)
        return 1;
    for (uint32_t i = 0; i < h->n_extended(c, node); i++)
        if (h->extended_at(c, node, i) == resource)
            return 1;
    return 0;
}

/* The lowest NUMA id that has room for all of it, which the kubelet takes; -1: none. */
static int lowest_fit(const struct nrt_instance *in, struct berth_call *c,
                      const struct berth_node *node, const struct nrt_zones *z, enum nrt_qos qos,
                      const struct nrt_request *r)
{
    uint64_t may = UINT64_MAX;

    for (uint32_t k = 0; k < r->n; k++) {
        const struct nrt_amount *a = &r->amount[k];
        uint64_t here = 0;
        int listed = 0;
        if (!a->value)
            continue;
        if (!node_names(in, c, node, a->name))
            return -1;
        for (uint32_t i = 0; i < z->t->n; i++) {
            const int64_t *available = nrt_available(z, i, a->name);
            listed |= available != NULL;
            if (available && nrt_suits(in, qos, a->name, a->value, *available))
                here |= UINT64_C(1) << z->t->zone[i].id;
        }
        if (!listed && nrt_is_host_level(in, a->name))
            continue;
        may &= here;
        if (!may)
            return -1;
    }
    return __builtin_ctzll(may);
}

/* 0: more than there is, which lowest_fit() would have seen (but for an id that two zones have). */
static int subtract(const struct nrt_instance *in, const struct nrt_zones *z, int id,
                    enum nrt_qos qos, const struct nrt_request *r)
{
    for (uint32_t i = 0; i < z->t->n; i++)
        for (uint32_t k = 0; (int)z->t->zone[i].id == id && k < r->n; k++) {
            const struct nrt_amount *a = &r->amount[k];
            int64_t *available = nrt_available(z, i, a->name);
            if (!available || (qos != NRT_GUARANTEED && nrt_is_affine(in, a->name)))
                continue;
            if (*available < a->value)
                return 0;
            *available -= a->value;
        }
    return 1;
}

/* ---- the callback ---------------------------------------------------------------------------- */

static int32_t reject(struct berth_why *why, struct berth_str reason)
{
    why->reason = reason;
    return BERTH_UNSCHEDULABLE;
}

/* Init containers run one after the other, so nothing of theirs adds up. */
static int32_t by_container(const struct nrt_instance *in, struct berth_call *c,
                            const struct berth_node *node, const struct nrt_zones *z,
                            const struct nrt_pod *pod, struct berth_why *why)
{
    for (uint32_t i = 0; i < pod->n; i++) {
        const struct nrt_request *r = pod->one[i];
        int id = lowest_fit(in, c, node, z, pod->qos, r);
        if (id < 0)
            return reject(why, r->kind == BERTH_CONTAINER_INIT
                                   ? BERTH_STR("cannot align init container")
                               : r->kind == BERTH_CONTAINER_SIDECAR
                                   ? BERTH_STR("cannot align sidecar container")
                                   : BERTH_STR("cannot align container"));
        if (r->kind == BERTH_CONTAINER && !subtract(in, z, id, pod->qos, r)) {
            why->reason = BERTH_STR("inconsistent resource accounting");
            return BERTH_ERROR;
        }
    }
    return BERTH_SUCCESS;
}

static int32_t fits(struct nrt_instance *in, struct berth_call *c, const struct berth_node *node,
                    const struct nrt_seen *s, const struct nrt_state *st, struct berth_why *why)
{
    const struct nrt_pod *pod = st->pod;
    struct nrt_zones z;

    int32_t code = nrt_zones_without(in, s, st, &z, why);

    if (code != BERTH_SUCCESS)
        return code;
    if (!s->topology->pod_scope)
        return by_container(in, c, node, &z, pod, why);
    return lowest_fit(in, c, node, &z, pod->qos, pod->all) < 0
               ? reject(why, BERTH_STR("cannot align pod"))
               : BERTH_SUCCESS;
}

int32_t nrt_filter(void *self, struct berth_call *c, const struct berth_node *node,
                   struct berth_why *why)
{
    struct nrt_instance *in = self;
    const struct nrt_pod *pod = nrt_pod_at_hand(in, c);
    const struct nrt_state alone = {.pod = pod}, *found = *nrt_host->base->filter_state(c),
                           *st = found ? found : &alone;
    berth_sym name = nrt_host->nodes->name(c, node);

    if (!pod) {
        why->reason = BERTH_STR("out of memory");
        return BERTH_ERROR;
    }
    if (pod->qos == NRT_BEST_EFFORT && !pod->non_native)
        return BERTH_SUCCESS;
    if (in->discard_reserved && nrt_is_reserved(in, name)) {
        in->turned_away = 1;
        return reject(why, BERTH_STR("invalid node topology data"));
    }
    const struct nrt_seen *s = nrt_topology(in, c, name);
    if (s && s->stale) {
        in->turned_away = 1;
        return reject(why, BERTH_STR("invalid node topology data"));
    }
    if (!s || !s->topology->single)
        return BERTH_SUCCESS;
    int32_t verdict = fits(in, c, node, s, st, why);
    if (verdict != BERTH_SUCCESS && in->cached && !st->n)
        nrt_mark(in, s);
    return verdict;
}
