/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/allocator.h - devices for all claims of a pod on one node
 *
 * An exhaustive depth-first search in upstream's order; the first complete solution is taken.
 *
 * Limits: 32 devices a claim (upstream's); 256 claims and requests a pod, which bounds the
 * recursion; filterTimeout is counted in steps of the search (10 million are taken for a second),
 * so that a decision depends on its inputs alone.
 *
 * Runs in: the engine's thread.
 *
 * Upstream: k8s.io/dynamic-resource-allocation/structured/internal/incubating
 * (allocator_incubating.go).
 */
#ifndef BH_DRA_ALLOCATOR_H
#define BH_DRA_ALLOCATOR_H

#include "scheduler/plugins/dynamicresources/devices.h"

#define BH_DRA_REQUESTS_MAX 256u

/* A claim without allocation. */
struct bh_dra_claim {
    const char *ns, *name;
    const K8s__DeviceClaim *devices; /* NULL: asks for nothing */
};
/* Counters that allocated devices leave over, by pool NAME: upstream computes them once per name
 * and pod, whatever the driver, and so does Berth. */
struct bh_dra_counter {
    const char *set, *name;
    bh_nano available, consumed;
};
struct bh_dra_counters {
    struct bh_dra_counter *v;
    uint32_t n;
    uint64_t attempt; /* that `consumed` is of */
};
/* One pod's allocations: the same for all nodes. */
struct bh_dra_pod {
    struct bh_dra *d;
    const struct bh_objects *objects;
    struct bh_arena *arena;            /* lives as long as the pod's cycle */
    struct bh_dra_counters **counters; /* by namesake of the pool; NULL = not looked at yet */
    bool same_claims;                  /* every node is asked for the same claims */
    uint32_t group;                    /* of the node's sight (sights.c); 0: it has none */
    struct bh_dra_prepared *prepared;  /* these; NULL: not yet */
    uint32_t n_wishes;
    /* Of the last search: a node whose first so many devices are the same has a solution too.
     * UINT32_MAX: nothing can be said about other nodes. */
    uint32_t reach;
};
struct bh_dra_result { /* one device taken */
    uint32_t device;   /* of the index */
    uint32_t request;
    int32_t sub; /* alternative, -1 = the request has none */
    bool admin;
};
struct bh_dra_allocation { /* of one claim */
    struct bh_dra_result v[BH_DRA_RESULTS_MAX];
    uint32_t n;
};
enum bh_dra_outcome {
    BH_DRA_NONE,      /* no solution */
    BH_DRA_DONE,      /* ret holds one allocation a claim, in the plugin's scratch arena */
    BH_DRA_BAD_POOLS, /* no solution, and some pool of the node is invalid */
    BH_DRA_TIMED_OUT,
    BH_DRA_ERROR /* err: fails the pod on all nodes */
};
/* Works in the scratch arena, which the caller resets before the next node. sight: the node's;
 * NULL: not known. claims: with same_claims they live as long as p. */
enum bh_dra_outcome bh_dra_allocate(struct bh_dra_pod *p, const struct bh_node_rec *node,
                                    const struct bh_dra_sight *sight,
                                    const struct bh_dra_claim *claims, uint32_t n,
                                    const struct bh_dra_allocation **ret, struct bh_err *err);

/* ---- between the allocator's files ---- */
struct bh_dra_request { /* a request or one of its alternatives */
    const char *name;   /* own name, also of an alternative */
    const char *class_name, *mode;
    const K8s__DeviceClass *class;
    K8s__DeviceSelector *const *selectors;
    size_t n_selectors;
    K8s__DeviceToleration *const *tolerations;
    size_t n_tolerations;
    const K8s__CapacityRequirements *capacity;
    bool admin, all;
    int64_t count;
    uint32_t *list;           /* mode All: which devices */
    struct bh_dra_wish *wish; /* NULL: nothing is remembered of such requests */
};
struct bh_dra_slot { /* a request with its alternatives */
    const char *name;
    struct bh_dra_request *alt;
    uint32_t n_alt;
    bool has_alternatives;
};
struct bh_dra_constraint {
    const K8s__DeviceConstraint *spec;
    const char *attribute;
    bool distinct;
    int64_t n;                           /* devices counted in */
    const K8s__DeviceAttribute *value;   /* match: of the first device */
    const K8s__DeviceAttribute **values; /* distinct: by request, NULL = none */
    uint32_t n_values;
    /* The same by numbers (values.c). NULL: the attribute has none. */
    const struct bh_dra_column *column;
    uint32_t number, *numbers;
    bool *concerned; /* by request and alternative, stride for each request */
    uint32_t stride;
};
/* Would the constraint hold with the device? Counts it in if so. */
bool bh_dra_constraint_add(struct bh_dra_constraint *c, const struct bh_dra_slot *slots,
                           uint32_t request, int32_t sub, const K8s__Device *dev,
                           const char *driver);
void bh_dra_constraint_remove(struct bh_dra_constraint *c, const struct bh_dra_slot *slots,
                              uint32_t request, int32_t sub);
/* sub: -1 = none. */
bool bh_dra_concerns(const struct bh_dra_constraint *c, const struct bh_dra_slot *slot,
                     int32_t sub);
/* NULL: the device has none. */
const K8s__DeviceAttribute *bh_dra_attribute(const K8s__Device *dev, const char *driver,
                                             const char *name);

/* What devices of a pool leave over of its shared counters, kept from claim to claim: unless
 * odd_counters, the same as the next two say for every view of the pool. */
bool bh_dra_tallies_take(struct bh_dra *d, uint32_t device);
void bh_dra_tallies_return(struct bh_dra *d, uint32_t device);
/* Would they do for the device, had this attempt taken nothing? */
bool bh_dra_tallies_suffice(const struct bh_dra *d, uint32_t device);
/* Counts what the device consumes in, and says whether the pool has it. When not, nothing stays
 * counted. v: the node's view of the device's pool. */
bool bh_dra_counters_take(struct bh_dra_pod *p, const struct bh_dra_view *v, uint32_t device);
void bh_dra_counters_return(struct bh_dra_pod *p, const struct bh_dra_view *v, uint32_t device);
#endif
