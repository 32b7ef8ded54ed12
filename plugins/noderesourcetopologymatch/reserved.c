/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/noderesourcetopologymatch/reserved.c - discardReservedNodes: nodes with pods on their way
 *
 * Upstream: pkg/noderesourcetopology/cache/discardreserved.go. From Reserve until the pod is bound, or is not
 * to be, what the node's object says is not taken for true. Difference: pods that were rejected for that are
 * tried again when it is over; upstream leaves them until some object changes.
 */
#include <stdlib.h>
#include <string.h>

#include "nrt.h"

#define UID_MAX 64u

struct nrt_reserved {
    berth_sym node;
    uint32_t n_uid;
    char uid[UID_MAX];
};

int nrt_is_reserved(const struct nrt_instance *in, berth_sym node)
{
    for (uint64_t i = 0; i < in->n_reserved; i++)
        if (in->reserved[i].node == node)
            return 1;
    return 0;
}

/* Answers that are kept do not know of such reservations; of those of the cache they do: the pod is on the
 * node, which is looked at anew. */
uint64_t nrt_epoch(void *self, struct berth_call *c)
{
    struct nrt_instance *in = self;

    if (in->cached)
        nrt_follow(in, c);
    return in->epoch;
}

static struct nrt_reserved describe(struct berth_call *c, berth_sym node)
{
    struct nrt_reserved r = {.node = node};
    struct berth_str uid = nrt_host->pods->uid(c, nrt_host->pods->current(c));

    r.n_uid = (uint32_t)(uid.n < UID_MAX ? uid.n : UID_MAX);
    memcpy(r.uid, uid.p, r.n_uid);
    return r;
}

static uint64_t find(const struct nrt_instance *in, const struct nrt_reserved *r)
{
    uint64_t i = 0;

    while (i < in->n_reserved && memcmp(&in->reserved[i], r, sizeof *r) != 0)
        i++;
    return i;
}

static int32_t no_memory(struct berth_why *why)
{
    why->reason = BERTH_STR("out of memory");
    return BERTH_ERROR;
}

int32_t nrt_reserve(void *self, struct berth_call *c, berth_sym node, struct berth_why *why)
{
    struct nrt_instance *in = self;
    const struct nrt_reserved r = describe(c, node);
    struct nrt_seen *s = in->cached ? nrt_known(in, node) : NULL;

    if (s && s->topology && !nrt_hold(in, c, s, nrt_host->pods->current(c)))
        return no_memory(why);
    if (!in->discard_reserved || find(in, &r) < in->n_reserved)
        return BERTH_SUCCESS;
    if (in->n_reserved == in->cap_reserved) {
        uint64_t cap = in->cap_reserved ? 2 * in->cap_reserved : 64;
        struct nrt_reserved *more = realloc(in->reserved, cap * sizeof *more);
        if (!more)
            return no_memory(why);
        in->reserved = more;
        in->cap_reserved = cap;
    }
    in->reserved[in->n_reserved++] = r;
    in->epoch++;
    return BERTH_SUCCESS;
}

/* What is held by the cache stays: the object does not know of the pod yet. */
void nrt_post_bind(void *self, struct berth_call *c, berth_sym node)
{
    struct nrt_instance *in = self;
    const struct nrt_reserved r = describe(c, node);
    uint64_t i = find(in, &r);

    if (i == in->n_reserved)
        return;
    in->reserved[i] = in->reserved[--in->n_reserved];
    in->epoch++;
    if (in->turned_away && !nrt_is_reserved(in, node)) {
        in->turned_away = 0;
        nrt_host->base->wake(in->home);
    }
}

void nrt_unreserve(void *self, struct berth_call *c, berth_sym node)
{
    struct nrt_instance *in = self;
    struct nrt_seen *s = in->cached ? nrt_known(in, node) : NULL;

    if (s)
        nrt_let_go(s, nrt_pod_hash(c, nrt_host->pods->current(c)));
    nrt_post_bind(self, c, node);
}
