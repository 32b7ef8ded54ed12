/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/claims.h - which ResourceClaims a pod means, and the requests
 * that stand for its extended resources
 *
 * Runs in:  the engine's thread.
 * Upstream: k8s.io/dynamic-resource-allocation/resourceclaim,
 *           pkg/scheduler/framework/plugins/dynamicresources (foreachPodResourceClaim,
 *           extendeddynamicresources.go).
 */
#ifndef BH_DRA_CLAIMS_H
#define BH_DRA_CLAIMS_H

#include "scheduler/plugins/dynamicresources/allocator.h"

#define BH_DRA_SPECIAL_NAME       "<extended-resources>"
#define BH_DRA_SPECIAL_ANNOTATION "resource.kubernetes.io/extended-resource-claim"

/* What resolving needs; the hints have no cycle. */
struct bh_dra_lookup {
    const struct bh_objects *objects;
    const struct bh_symtab *tab;
    const struct bh_pod_rec *pod;
    const struct bh_shape_rec *shape;
    /* Of the classes in objects: bh_dra_classes_for(); NULL: looked up each time. */
    const struct K8s__DeviceClass *const *classes;
};
struct bh_dra_found {
    const K8s__ResourceClaim **v; /* spec order; duplicates stay */
    uint32_t n;
};
/* 0, or -ENOENT with the reason. a NULL: only check. */
int bh_dra_claims(const struct bh_dra_lookup *l, struct bh_arena *a, struct bh_dra_found *ret,
                  struct bh_err *err);
static inline const K8s__AllocationResult *bh_dra_allocation_of(const K8s__ResourceClaim *c)
{
    return c->status ? c->status->allocation : NULL;
}
bool bh_dra_reserved_for(const K8s__ResourceClaim *c, struct bh_str uid);

/* ---- extended resources ---- */
/* Some resource the pod requests is mapped by a class. */
bool bh_dra_wants_extended(const struct bh_dra_lookup *l);
/* The claim an earlier attempt made for the pod, NULL without one. A walk over all claims: ask
 * may_own, which tells of most pods that they have none. */
const K8s__ResourceClaim *bh_dra_special_claim(const struct bh_dra_lookup *l);
bool bh_dra_may_own(struct bh_dra_owners *w, const struct bh_objects *o, struct bh_str uid);
/* What the claim is named by while it is in flight: it has no uid yet. In a. */
const char *bh_dra_special_key(struct bh_arena *a, struct bh_str uid);
/* Which class provides what the pod requests, NULL = none; by index of the shape's scalars. In
 * a. */
const struct K8s__DeviceClass *const *bh_dra_classes_for(const struct bh_dra_lookup *l,
                                                         struct bh_arena *a);
enum bh_dra_extended {
    BH_DRA_BY_PLUGIN,  /* the node's device plugins serve everything */
    BH_DRA_BY_DEVICES, /* ret holds the requests */
    BH_DRA_BY_NOBODY
};
/* What the node leaves to devices; the requests live in a, sorted by name. */
enum bh_dra_extended bh_dra_extended_requests(const struct bh_dra_lookup *l, struct bh_arena *a,
                                              const struct bh_node_rec *node,
                                              K8s__DeviceClaim *ret);
/* Which of these requests serves which container's resource. In a. */
K8s__PodExtendedResourceClaimStatus *bh_dra_extended_mappings(const struct bh_dra_lookup *l,
                                                              struct bh_arena *a,
                                                              const struct bh_node_rec *node);
#endif
