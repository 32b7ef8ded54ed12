/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/cycle.h - one pod's claims in one cycle
 *
 * Filter uses it node by node, Reserve for the chosen node alone.
 *
 * Runs in:  the engine's thread.
 * Upstream: pkg/scheduler/framework/plugins/dynamicresources (stateData, claimStore).
 */
#ifndef BH_DRA_CYCLE_H
#define BH_DRA_CYCLE_H

#include "scheduler/plugins/dynamicresources/claims.h"

#define BH_DRA_FINALIZER "resource.kubernetes.io/delete-protection"

struct bh_dra_claim_state {
    const K8s__ResourceClaim *msg; /* NULL: the claim for extended resources, not made yet */
    const K8s__AllocationResult *allocation;
    struct bh_dra_where where; /* allocated: NOWHERE = everywhere */
    bool special;              /* it stands for extended resources */
    bool pending;              /* the allocation is this group cycle's, and not written yet */
    bool unavailable;          /* allocated, but not for some node that is good otherwise */
    int64_t score;             /* allocated: alternatives that were taken */
};
struct bh_dra_cycle {
    struct bh_dra_claim_state *claims; /* spec order, the special one last */
    uint32_t n_claims, n_to_allocate;
    struct bh_dra_claim_state *special;            /* NULL: none is needed */
    const struct K8s__DeviceClass *const *classes; /* with special */
    struct bh_dra_pod pod;
    const struct bh_dra_claim *in;       /* the claims to allocate; NULL: not listed yet */
    bool alternatives;                   /* some request has them: nodes differ by score */
    const struct bh_dra_question *asked; /* verdicts on all rows; NULL = not asked for */
    int64_t *score;                      /* by row: alternatives taken there */
    uint32_t n_rows;
};
static inline struct bh_dra *bh_dra_of(const struct bh_call *c)
{
    return (struct bh_dra *)(uintptr_t)c->args; /* the caches in it are the plugin's own */
}
static inline struct bh_dra_lookup bh_dra_lookup_of(const struct bh_call *c)
{
    return (struct bh_dra_lookup){
        .objects = c->objects, .tab = c->tab, .pod = c->pod->rec, .shape = c->pod->shape};
}
static inline const K8s__DeviceClaim *bh_dra_devices_of(const K8s__ResourceClaim *c)
{
    return c && c->spec ? c->spec->devices : NULL;
}
/* NULL, Skip, a rejection or an error: PreFilter's result. */
const struct bh_status *bh_dra_read(struct bh_call *c, struct bh_dra_cycle *st);
/* Devices on the node for every claim without allocation, in the plugin's scratch memory, which was
 * reset before. extended:
 * what the special claim asks for on this node. *ret_in, *ret_out: st->n_to_allocate of them. */
const struct bh_status *bh_dra_search(struct bh_call *c, struct bh_dra_cycle *st,
                                      const struct bh_node_info *node,
                                      const K8s__DeviceClaim *extended,
                                      const struct bh_dra_claim **ret_in,
                                      const struct bh_dra_allocation **ret_out);
/* The special claim's part of Filter. true: *ret_status is the verdict on the node. */
bool bh_dra_extended_on(struct bh_call *c, const struct bh_dra_cycle *st,
                        const struct bh_node_rec *node, K8s__DeviceClaim *ret,
                        const struct bh_status **ret_status);

/* ---- results.c: allocations as the API has them ---- */
/* salt: makes share ids different. In a; parts are borrowed from the claim, classes and slices.
 * NULL: err says why there is none. */
K8s__AllocationResult *bh_dra_result(const struct bh_dra_pod *p, struct bh_arena *a,
                                     const struct bh_dra_claim *claim,
                                     const struct bh_dra_allocation *al, const char *node,
                                     uint64_t salt, struct bh_err *err);
/* Could bh_dra_result say where the devices can be reached? -EINVAL. */
int bh_dra_check_reach(const struct bh_dra_pod *p, const struct bh_dra_claim *claim,
                       const struct bh_dra_allocation *al, struct bh_err *err);

/* ---- binding conditions ---- */
enum bh_dra_binding { BH_DRA_READY, BH_DRA_NOT_READY, BH_DRA_BINDING_FAILED };
/* Of an allocated claim. *ret_failure (may be NULL): the condition that failed. */
enum bh_dra_binding bh_dra_binding_of(const K8s__ResourceClaim *claim,
                                      const K8s__Condition **ret_failure);
/* Its drivers had their time (bindingTimeout). */
bool bh_dra_binding_late(const struct bh_dra *d, const K8s__ResourceClaim *claim, int64_t now_ns);

/* ---- assume.c ---- */
const struct bh_status *bh_dra_reserve(struct bh_call *c, bh_sym node);
void bh_dra_unreserve(struct bh_call *c, bh_sym node);
const struct bh_status *bh_dra_pre_bind(struct bh_call *c, bh_sym node, int64_t since_ns);
uint32_t bh_dra_undo_work(struct bh_call *c, const struct bh_write **ret);
/* The claim as it is once its devices are free again. In a. */
struct bh_write bh_dra_deallocation(struct bh_arena *a, const K8s__ResourceClaim *claim);
struct bh_write bh_dra_deletion(struct bh_arena *a, const K8s__ResourceClaim *claim);
#endif
