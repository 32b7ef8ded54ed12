/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/noderesourcetopologymatch/scores.c - LeastAllocated, MostAllocated, BalancedAllocation
 *
 * Upstream: pkg/noderesourcetopology/score.go, least_allocated.go, most_allocated.go,
 * balanced_allocation.go. Differences, where upstream divides by zero: a container that requests nothing
 * scores 0, and one resource alone is balanced.
 */
#include "nrt.h"

#define MAX_SCORE 100

static int64_t weight_of(const struct nrt_instance *in, berth_sym resource)
{
    for (uint32_t i = 0; i < in->n_weights; i++)
        if (in->weight[i].name == resource)
            return in->weight[i].value;
    return 1;
}

/* As Quantity.Value(): whole cores, rounded up. */
static int64_t whole(const struct nrt_instance *in, berth_sym resource, int64_t value)
{
    return resource == in->cpu ? value / 1000 + (value % 1000 > 0) : value;
}

static int64_t allocated(const struct nrt_instance *in, const struct nrt_zones *z, uint32_t i,
                         const struct nrt_request *r)
{
    int64_t sum = 0, weights = 0;

    for (uint32_t k = 0; k < r->n; k++) {
        const struct nrt_amount *a = &r->amount[k];
        const int64_t *available = nrt_available(z, i, a->name);
        int64_t weight = weight_of(in, a->name), score = 0;
        if (available && *available && a->value <= *available) {
            int64_t wanted = whole(in, a->name, a->value), room = whole(in, a->name, *available);
            if (in->strategy == NRT_LEAST_ALLOCATED)
                wanted = room - wanted;
            score = nrt_over(nrt_times(wanted, MAX_SCORE), room);
        }
        sum = nrt_plus(sum, nrt_times(score, weight));
        weights = nrt_plus(weights, weight);
    }
    return nrt_over(sum, weights);
}

/* The sample variance, as gonum computes it: two passes, the second corrected. */
static double variance(const double *v, uint32_t n)
{
    double sum = 0, squares = 0, rest = 0;

    if (n < 2)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        sum += v[i];
    const double mean = sum / n;
    for (uint32_t i = 0; i < n; i++) {
        const double d = v[i] - mean;
        squares += d * d;
        rest += d;
    }
    return (squares - rest * rest / n) / (n - 1);
}

#define FRACTIONS_MAX 64u

static int64_t balanced(const struct nrt_instance *in, const struct nrt_zones *z, uint32_t i,
                        const struct nrt_request *r)
{
    double fraction[FRACTIONS_MAX];
    uint32_t n = 0;

    for (uint32_t k = 0; k < r->n && n < FRACTIONS_MAX; k++) {
        const struct nrt_amount *a = &r->amount[k];
        const int64_t *available = nrt_available(z, i, a->name);
        int64_t room = available ? whole(in, a->name, *available) : 0;
        fraction[n] = room ? (double)whole(in, a->name, a->value) / (double)room : 1;
        if (fraction[n++] > 1)
            return 0;
    }
    return (int64_t)((1 - variance(fraction, n)) * MAX_SCORE);
}

/* The worst zone that has room at all: the kubelet may take any. */
static int64_t worst_zone(const struct nrt_instance *in, const struct nrt_zones *z,
                          const struct nrt_request *r)
{
    int64_t least = 0;

    for (uint32_t i = 0; i < z->t->n; i++) {
        int64_t s = in->strategy == NRT_BALANCED ? balanced(in, z, i, r) : allocated(in, z, i, r);
        if (least == 0 || (s != 0 && s < least))
            least = s;
    }
    return least;
}

int32_t nrt_score(void *self, struct berth_call *c, const struct berth_node *node, int64_t *ret,
                  struct berth_why *why)
{
    struct nrt_instance *in = self;
    const struct nrt_pod *pod = nrt_pod_at_hand(in, c);
    berth_sym name = nrt_host->nodes->name(c, node);
    struct nrt_zones z;
    double sum = 0;

    if (!pod) {
        why->reason = BERTH_STR("out of memory");
        return BERTH_ERROR;
    }
    *ret = pod->qos == NRT_GUARANTEED ? 0 : MAX_SCORE;
    if (pod->qos != NRT_GUARANTEED || (in->discard_reserved && nrt_is_reserved(in, name)))
        return BERTH_SUCCESS;
    const struct nrt_seen *s = nrt_topology(in, c, name);
    const struct nrt_topology *t = s && !s->stale ? s->topology : NULL;
    if (!t || (in->strategy != NRT_LEAST_NODES && !t->single))
        return BERTH_SUCCESS;
    if (!nrt_zones(in, s, &z)) {
        why->reason = BERTH_STR("out of memory");
        return BERTH_ERROR;
    }
    if (in->strategy == NRT_LEAST_NODES) {
        *ret = nrt_least_nodes(in, pod, &z);
    } else if (t->pod_scope) {
        *ret = worst_zone(in, &z, pod->all);
    } else {
        for (uint32_t i = 0; i < pod->n; i++)
            sum += (double)worst_zone(in, &z, pod->one[i]);
        *ret = pod->n ? (int64_t)(sum / pod->n) : 0;
    }
    return BERTH_SUCCESS;
}
