/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/hints.c - which claim and pod events wake a pod
 *
 * Upstream: pkg/scheduler/framework/plugins/dynamicresources (isSchedulableAfterClaimChange,
 *           isSchedulableAfterPodChange).
 */
#include "scheduler/plugins/dynamicresources/claims.h"
#include "scheduler/plugins/dynamicresources/hints.h"

static bool resolves(const struct bh_hint_call *c, const struct bh_pod_rec *pod)
{
    const struct bh_dra_lookup l = {
        .objects = c->objects, .tab = c->tab, .pod = pod, .shape = c->shape};
    struct bh_err err;

    return bh_dra_claims(&l, NULL, NULL, &err) == 0;
}

static bool uses(const struct bh_hint_call *c)
{
    const struct bh_pod_claim *v = bh_rec_at(c->shape, c->shape->claims, struct bh_pod_claim);
    const struct bh_pod_rec *pod = bh_hint_pod(c);
    const struct bh_claim_status *st = bh_rec_at(pod, pod->claim_statuses, struct bh_claim_status);

    if (c->ev->object_namespace != c->shape->namespace_)
        return false;
    for (uint32_t i = 0; i < c->shape->claims.n; i++)
        if (v[i].claim == c->ev->object_name)
            return true;
    for (uint32_t i = 0; i < pod->claim_statuses.n; i++)
        if (st[i].claim == c->ev->object_name)
            return true;
    return false;
}

enum bh_hint bh_dra_hint_claim(const struct bh_hint_call *c)
{
    if (c->ev->object_name == BH_SYM_NONE) /* of a message that told nothing */
        return BH_QUEUE;
    if (!resolves(c, bh_hint_pod(c)))
        return BH_QUEUE_SKIP;
    if (c->ev->object_changes & BH_CLAIM_DEALLOCATED)
        return BH_QUEUE;
    if (!uses(c))
        return BH_QUEUE_SKIP;
    return bh_hint_if(c->ev->action == BH_EV_ADD || c->ev->object_changes & BH_CLAIM_STATUS);
}

enum bh_hint bh_dra_hint_forgotten(const struct bh_hint_call *c)
{
    const struct bh_shape_rec *gone = c->ev->old_shape;

    return bh_hint_if(c->ev->was_assumed && gone && (gone->claims.n || gone->extended.n));
}

enum bh_hint bh_dra_hint_pod(const struct bh_hint_call *c)
{
    return bh_hint_if(bh_hint_is_self(c, c->ev->new_pod) && resolves(c, c->ev->new_pod));
}
