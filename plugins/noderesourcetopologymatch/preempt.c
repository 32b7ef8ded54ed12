/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/noderesourcetopologymatch/preempt.c - preemptionMode: what candidates for eviction would give back
 *
 * While preemption tries a node without some of its pods, what these hold that no other may use is added to
 * the zones that they are in; then Filter looks as ever.
 *
 * Upstream: pkg/noderesourcetopology/prefilter.go, preemption/preemption.go.
 */
#include <string.h>

#include "nrt.h"

struct nrt_victim { /* a pod that is off the node */
    uint64_t pod;   /* nrt_pod_hash() */
    uint32_t n;
    struct nrt_freed {
        int zone;
        struct nrt_amount amount;
    } freed[];
};

/* ---- state of a decision --------------------------------------------------------------------- */

/* NULL: no memory. */
static struct nrt_state *new_state(struct berth_call *c, const struct nrt_pod *pod, uint32_t cap)
{
    struct nrt_state *st = nrt_host->base->alloc(c, sizeof *st + cap * sizeof st->victim[0]);

    if (st) {
        st->pod = pod;
        st->cap = cap;
    }
    return st;
}

struct nrt_state *nrt_new_state(struct berth_call *c, const struct nrt_pod *pod)
{
    return new_state(c, pod, 0);
}

static struct nrt_state *copy_state(struct berth_call *c, const struct nrt_state *from,
                                    uint32_t cap)
{
    struct nrt_state *st = new_state(c, from->pod, cap);

    if (st && from->n)
        memcpy(st->victim, from->victim, from->n * sizeof st->victim[0]);
    if (st)
        st->n = from->n;
    return st;
}

void *nrt_clone_state(void *self, struct berth_call *c, const void *state)
{
    const struct nrt_state *from = state;

    (void)self;
    return copy_state(c, from, from->n);
}

/* ---- pods that come and go ------------------------------------------------------------------- */

static uint32_t free_container(const struct nrt_instance *in, struct berth_call *c,
                               const struct berth_pod *pod, uint32_t i, int guaranteed,
                               const struct nrt_seen *s, struct nrt_freed *ret)
{
    const int zone = nrt_zone_of(s, nrt_container_hash(in, c, pod, i));
    uint32_t n = 0;
    berth_sym name;

    for (uint32_t k = 0; zone >= 0 && (name = nrt_resource_at(in, c, pod, k)); k++) {
        int64_t v = nrt_host->pods->container_request(c, pod, i, name);
        if (v >= 0 && nrt_amount_is_exclusive(in, guaranteed, name, v, s->topology))
            ret[n++] = (struct nrt_freed){zone, {name, v}};
    }
    return n;
}

/* What the pod would give back where it is. NULL: no memory. Sidecars give back nothing, as upstream. */
static struct nrt_victim *new_victim(const struct nrt_instance *in, struct berth_call *c,
                                     const struct berth_pod *pod, const struct nrt_seen *s)
{
    const struct berth_host_pods *h = nrt_host->pods;
    const uint32_t n = h->n_containers(c, pod), each = 3 + h->n_extended(c, pod);
    const int guaranteed = nrt_is_guaranteed(in, c, pod);
    struct nrt_victim *v =
        nrt_host->base->alloc(c, sizeof *v + (uint64_t)n * each * sizeof v->freed[0]);

    if (!v)
        return NULL;
    v->pod = nrt_pod_hash(c, pod);
    for (uint32_t i = 0; s && s->topology && i < n; i++)
        if (h->container_kind(c, pod, i) == BERTH_CONTAINER)
            v->n += free_container(in, c, pod, i, guaranteed, s, &v->freed[v->n]);
    return v;
}

static void put_back(struct nrt_state *st, uint64_t pod)
{
    for (uint32_t i = 0; i < st->n; i++)
        if (st->victim[i]->pod == pod) {
            st->victim[i] = st->victim[--st->n];
            return;
        }
}

int32_t nrt_change_pod(void *self, struct berth_call *c, const struct berth_pod *pod,
                       const struct berth_node *node, int32_t by, struct berth_why *why)
{
    struct nrt_instance *in = self;
    void **state = nrt_host->base->filter_state(c);
    struct nrt_state *st = *state;

    if (!in->preempts)
        return BERTH_SUCCESS;
    put_back(st, nrt_pod_hash(c, pod));
    if (by > 0)
        return BERTH_SUCCESS;
    struct nrt_victim *v = new_victim(in, c, pod, nrt_known(in, nrt_host->nodes->name(c, node)));
    if (v && st->n == st->cap)
        *state = st = copy_state(c, st, st->cap ? 2 * st->cap : 8);
    if (!v || !st) {
        why->reason = BERTH_STR("out of memory");
        return BERTH_ERROR;
    }
    st->victim[st->n++] = v;
    return BERTH_SUCCESS;
}

/* ---- the zones without them ------------------------------------------------------------------ */

static int64_t sum(int64_t a, int64_t b)
{
    int64_t r;

    return __builtin_add_overflow(a, b, &r) ? INT64_MAX : r;
}

/* All of one pod. 0: more than a zone may have. */
static int give_back(const struct nrt_victim *v, const struct nrt_zones *z)
{
    for (uint32_t k = 0; k < v->n; k++)
        for (uint32_t i = 0; i < z->t->n; i++) {
            const struct nrt_freed *f = &v->freed[k];
            int64_t *available =
                (int)z->t->zone[i].id == f->zone ? nrt_available(z, i, f->amount.name) : NULL;
            if (!available)
                continue;
            *available = sum(*available, f->amount.value);
            if (*available > nrt_allocatable(z->t, i, f->amount.name))
                return 0;
        }
    return 1;
}

#define NOT_POSSIBLE "eviction simulation in NRT is not possible:"

int32_t nrt_zones_without(struct nrt_instance *in, const struct nrt_seen *s,
                          const struct nrt_state *st, struct nrt_zones *ret, struct berth_why *why)
{
    uint32_t n = 0;

    if (!nrt_zones(in, s, ret)) {
        why->reason = BERTH_STR("out of memory");
        return BERTH_ERROR;
    }
    if (!st->n || !s->n_placed)
        return BERTH_SUCCESS;
    for (uint32_t i = 0; i < st->n; i++) {
        n += st->victim[i]->n;
        if (!give_back(st->victim[i], ret)) {
            why->reason =
                BERTH_STR(NOT_POSSIBLE "resource release request exceeds NUMA allocatable");
            return BERTH_UNSCHEDULABLE;
        }
    }
    why->reason = BERTH_STR(NOT_POSSIBLE "no resources to add, cannot process eviction simulation");
    return n ? BERTH_SUCCESS : BERTH_UNSCHEDULABLE;
}
