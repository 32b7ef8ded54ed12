/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/devices.h - what the plugin knows between cycles: the devices
 * of all ResourceSlices, which of them are allocated, and which selector matches which
 *
 * Owns: the index (rebuilt when a slice changes), the state (rebuilt when a claim or the index
 * changes), compiled selectors with their results per device.
 *
 * Invariants: slices are sorted by driver, pool, object name; so are pools and, with a slice's
 * devices in its own order, devices: the order in which they are tried. Messages are borrowed from
 * the object store and valid as long as its version of the kind stands.
 *
 * Runs in: the engine's thread.
 *
 * Upstream: k8s.io/dynamic-resource-allocation/structured/internal/incubating
 * (pools_incubating.go), pkg/scheduler/framework/plugins/dynamicresources (allocateddevices.go).
 */
#ifndef BH_DRA_DEVICES_H
#define BH_DRA_DEVICES_H

#include "common/k8s/quantity.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/cel/cel.h"
#include "scheduler/framework/plugin.h"

#define BH_DRA_RESULTS_MAX  32u
#define BH_DRA_NO_DEVICE    UINT32_MAX
#define BH_DRA_PROGRAMS_MAX 1024u              /* compiled selectors kept */
#define BH_DRA_KNOWN_MAX    ((size_t)64 << 20) /* bytes of their results */

/* Which nodes something is for. */
struct bh_dra_where {
    enum { BH_DRA_NOWHERE, BH_DRA_ON_NODE, BH_DRA_ON_ALL, BH_DRA_ON_SELECTED } kind;
    bh_sym node;
    const struct bh_shape_rec *selector; /* its required_terms */
    const char *error;                   /* the selector does not parse */
};
enum bh_dra_device_flags {
    BH_DRA_SHARED = 1,        /* allowMultipleAllocations */
    BH_DRA_BINDING = 2,       /* has binding conditions */
    BH_DRA_PLAIN_CAPACITY = 4 /* without request policies: its full capacity always suffices */
};
struct bh_dra_device {
    const K8s__Device *msg;
    uint32_t slice;
    uint32_t id; /* same driver, pool and name: same id */
    uint32_t flags;
    struct bh_dra_where where; /* slices with perDeviceNodeSelection only */
};
struct bh_dra_slice {
    const K8s__ResourceSliceSpec *spec;
    const char *name, *driver, *pool_name;
    int64_t generation, count;
    uint32_t pool, first, n; /* devices[first .. first + n) */
    bool per_device;
    struct bh_dra_where where;
};
struct bh_dra_pool {
    const char *driver, *name;
    uint32_t first, n; /* slices */
};
struct bh_dra_amount { /* consumed capacity of a shared device */
    uint32_t id;
    const char *name;
    bh_nano v;
};
struct bh_dra_program {
    struct bh_cel_program *cel;
    char *error;    /* does not compile */
    uint8_t *known; /* by device: enum below; NULL: none since the index was built */
    uint64_t index; /* generation of the index that known is of */
};
struct bh_dra {
    struct bh_symtab *tab;
    bh_sym metadata_name;
    int64_t filter_timeout_ns, binding_timeout_ns;
    bool no_taints, no_alternatives; /* gates DRADeviceTaints, DRAPrioritizedList are off */
    struct bh_reservations *reserved; /* claims in flight, and where Reserve puts them */
    uint64_t shares;                  /* handed out: makes their ids different */

    struct bh_arena index_arena; /* everything from here ... */
    uint64_t index_version, index_generation;
    struct bh_dra_slice *slices;
    struct bh_dra_pool *pools;
    struct bh_dra_device *devices;
    uint32_t n_slices, n_pools, n_devices, n_ids;
    struct bh_map ids;      /* "driver/pool/device" -> id + 1 */
    struct bh_umap by_node; /* node -> first of a list of pools + 1 */
    struct bh_dra_node_pool {
        uint32_t pool, next; /* next + 1 */
    } * node_pools;
    uint32_t *everywhere, n_everywhere; /* pools with a slice that is not of one node, rising */
    uint32_t *stamp;                    /* by id */
    uint32_t stamp_now;
    uint64_t *sharing; /* by id: attempt in which a share of the device is being taken */
    uint64_t attempt;  /* searches so far */

    struct bh_arena state_arena;
    uint64_t claims_version, flight_version, state_generation;
    /* By id: given to one claim; shared by some; of which some say how much they consume. */
    uint8_t *allocated, *shared, *consumed_any;
    struct bh_dra_amount *consumed;
    uint32_t n_consumed;

    struct bh_map programs;  /* expression -> struct bh_dra_program * */
    struct bh_arena scratch; /* of one Filter */
    struct bh_arena cel;     /* of one evaluation */
};
void bh_dra_init(struct bh_dra *d, struct bh_symtab *tab);
void bh_dra_fini(struct bh_dra *d);
/* Brings index and state up to date with the objects. */
void bh_dra_sync(struct bh_dra *d, const struct bh_objects *o);

struct bh_dra_where bh_dra_where_of(struct bh_arena *a, struct bh_symtab *tab, const char *node,
                                    bool all, const K8s__NodeSelector *selector);
/* w->error as upstream says it. */
const char *bh_dra_where_error(struct bh_arena *a, const struct bh_dra_where *w,
                               const K8s__NodeSelector *selector);
bool bh_dra_matches_node(const struct bh_dra *d, const struct bh_dra_where *w,
                         const struct bh_node_rec *node);

/* A pool as one node sees it: the slices of its newest generation that are for the node, and those
 * with shared counters, which have no devices. */
struct bh_dra_view {
    const struct bh_dra_pool *pool;
    int64_t generation;
    const uint32_t *slices;
    uint32_t n;
    bool incomplete, invalid; /* incomplete: nobody looked whether it is invalid */
    bool others; /* it has slices for other nodes as well, whose devices consume counters */
};
static inline bool bh_dra_has_devices(const struct bh_dra_slice *s)
{
    return !s->spec->n_sharedcounters;
}
struct bh_dra_views {
    struct bh_dra_view *v;
    uint32_t n;
};
/* In order of preference. 0, or -EINVAL with the error of the whole cycle. */
int bh_dra_views(struct bh_dra *d, struct bh_arena *a, const struct bh_node_rec *node,
                 struct bh_dra_views *ret, struct bh_err *err);

/* Does the expression hold for the device? -EINVAL with the error text ("CEL runtime error: ...").
 */
int bh_dra_selector_match(struct bh_dra *d, const char *expression, uint32_t device, bool *ret,
                          struct bh_err *err);

/* ---- capacity ----------------------------------------------------------------------------------
 */
/* What a request takes of a capacity; false: the policy forbids it. *ret_text: the quantity the
 * amount was taken from as it stands, NULL when it was worked out. */
bool bh_dra_capacity_taken(const K8s__DeviceCapacity *cap, const K8s__Quantity *request,
                           bh_nano *ret, const K8s__Quantity **ret_text);
bh_nano bh_dra_quantity(const K8s__Quantity *q);
const K8s__Quantity *bh_dra_requested(const K8s__CapacityRequirements *r, const char *name);
/* Does every requested name exist? */
bool bh_dra_capacity_known(const K8s__CapacityRequirements *r, const K8s__Device *dev);
#endif
