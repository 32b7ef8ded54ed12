/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/noderesourcetopologymatch/least.c - LeastNUMANodes: few NUMA nodes, and near ones
 *
 * Upstream: pkg/noderesourcetopology/least_numa.go. Differences: it looks at COMBINATIONS_MAX sets of
 * zones of one size at most, a larger object scores 0; where upstream takes a NUMA id for an index in the
 * list of zones, this takes the zone; a score below 0 is 0.
 */
#include "nrt.h"

#define COMBINATIONS_MAX 20000u
#define MAX_SCORE        100

struct set { /* of zones, ascending indices */
    uint32_t n;
    uint32_t at[NRT_ZONES];
};

static void first_set(struct set *s, uint32_t n)
{
    s->n = n;
    for (uint32_t i = 0; i < n; i++)
        s->at[i] = i;
}

/* In lexicographic order; 0: that was the last. */
static int next_set(struct set *s, uint32_t of)
{
    uint32_t i = s->n;

    while (i && s->at[i - 1] == of - s->n + i - 1)
        i--;
    if (!i)
        return 0;
    s->at[i - 1]++;
    for (; i < s->n; i++)
        s->at[i] = s->at[i - 1] + 1;
    return 1;
}

static float distance(const struct nrt_topology *t, const struct set *s)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = 0; k < s->n; k++) {
            const struct nrt_zone *from = &t->zone[s->at[i]];
            uint32_t to = t->zone[s->at[k]].id;
            sum = nrt_plus(sum, from->known[to] ? from->cost[to] : NRT_FAR);
        }
    return (float)sum / (float)(s->n * s->n);
}

/* Every zone of the set lists everything, and together they have it. */
static int fits(const struct nrt_instance *in, const struct nrt_zones *z, const struct set *s,
                enum nrt_qos qos, const struct nrt_request *r)
{
    for (uint32_t k = 0; k < r->n; k++) {
        const struct nrt_amount *a = &r->amount[k];
        int64_t sum = 0;
        for (uint32_t i = 0; i < s->n; i++) {
            const int64_t *available = nrt_available(z, s->at[i], a->name);
            if (!available)
                return 0;
            sum = sum > INT64_MAX - *available ? INT64_MAX : sum + *available;
        }
        if (a->value && !nrt_suits(in, qos, a->name, a->value, sum))
            return 0;
    }
    return 1;
}

/* Of one size: the nearest that fits, and whether none is nearer. ret->n 0: none fits. */
static int nearest(const struct nrt_instance *in, const struct nrt_zones *z, uint32_t n,
                   enum nrt_qos qos, const struct nrt_request *r, struct set *ret)
{
    struct set s;
    float least = NRT_FAR, found = NRT_FAR + 1;
    uint32_t tried = 0;

    ret->n = 0;
    first_set(&s, n);
    do {
        float d = distance(z->t, &s);
        least = d < least ? d : least;
        if (++tried > COMBINATIONS_MAX)
            return 0;
    } while (next_set(&s, z->t->n));
    first_set(&s, n);
    do {
        float d = distance(z->t, &s);
        if (!(d == least || d < found) || !fits(in, z, &s, qos, r))
            continue;
        found = d;
        *ret = s;
        if (d == least)
            return 1;
    } while (next_set(&s, z->t->n));
    return 0;
}

static int only_others(const struct nrt_zones *z, const struct nrt_request *r)
{
    for (uint32_t k = 0; k < r->n; k++)
        for (uint32_t i = 0; i < z->t->n; i++)
            if (nrt_available(z, i, r->amount[k].name))
                return 0;
    return 1;
}

/* What the container takes is not there for the next one. */
static void subtract(const struct nrt_zones *z, const struct set *s, const struct nrt_request *r)
{
    for (uint32_t k = 0; k < r->n; k++) {
        int64_t left = r->amount[k].value;
        for (uint32_t i = 0; i < s->n && left; i++) {
            int64_t *available = nrt_available(z, s->at[i], r->amount[k].name);
            int64_t taken = !available ? 0 : left < *available ? left : *available;
            if (available)
                *available -= taken;
            left -= taken;
        }
    }
}

/* The number of zones for the request; 0: they do not suffice. */
static uint32_t needed(const struct nrt_instance *in, const struct nrt_zones *z, enum nrt_qos qos,
                       const struct nrt_request *r, int *all_near)
{
    struct set s = {0};
    int near = 0;

    for (uint32_t n = 1; n <= z->t->n && !s.n; n++)
        near = nearest(in, z, n, qos, r, &s);
    *all_near &= near;
    subtract(z, &s, r);
    return s.n;
}

int64_t nrt_least_nodes(const struct nrt_instance *in, const struct nrt_pod *pod,
                        struct nrt_zones *z)
{
    uint32_t most = 0;
    int near = 1;

    for (uint32_t i = 0; i < (z->t->pod_scope ? 1 : pod->n); i++) {
        const struct nrt_request *r = z->t->pod_scope ? pod->all : pod->one[i];
        if (only_others(z, r))
            continue;
        uint32_t n = needed(in, z, pod->qos, r, &near);
        if (!n)
            return 0;
        most = n > most ? n : most;
    }
    if (!most)
        return MAX_SCORE;
    const int64_t each = MAX_SCORE / z->t->max_zones;
    const int64_t score = MAX_SCORE - most * each + (near ? each / 2 : 0);
    return score > 0 ? score : 0;
}
