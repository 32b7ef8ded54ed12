/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/claims.c - which persistent volume claims the pods on nodes use
 *
 * Only claims that a pod names itself, as upstream: those of ephemeral volumes belong to one pod
 * anyway.
 *
 * Upstream: pkg/scheduler/backend/cache/snapshot.go (usedPVCSet).
 */
#include "scheduler/cache/cache_int.h"

static uint64_t key_of(bh_sym namespace_, bh_sym claim)
{
    return (uint64_t)namespace_ << 32 | claim;
}

void bh_claims_count(struct bh_cache *c, const struct bh_shape_rec *s, bool add)
{
    const struct bh_volume *v = bh_rec_at(s, s->volumes, struct bh_volume);

    for (uint32_t i = 0; i < s->volumes.n; i++) {
        uint64_t key = key_of(s->namespace_, v[i].source), n = 0;
        if (v[i].type != BH_VOL_CLAIM)
            continue;
        (void)bh_umap_get(&c->claim_users, key, &n);
        n += add ? 1 : UINT64_MAX;
        if (n)
            bh_umap_put(&c->claim_users, key, n);
        else
            (void)bh_umap_del(&c->claim_users, key);
    }
}

void bh_claims_count_node(struct bh_cache *c, const struct bh_node_info *ni, bool add)
{
    for (uint32_t i = 0; i < ni->n_pods; i++)
        bh_claims_count(c, ni->pods[i]->shape, add);
}

bool bh_cache_claim_in_use(const struct bh_cache *c, bh_sym namespace_, bh_sym claim)
{
    return bh_umap_get(&c->claim_users, key_of(namespace_, claim), NULL);
}
