/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/devices.h - what the plugin knows between cycles: the devices
 * of all ResourceSlices, which of them are allocated, and which selector matches which
 *
 * Owns: the index (rebuilt when a slice changes), what claims take (kept from the objects' change
 * log), verdicts on nodes for what pods ask for (kept likewise), compiled selectors with their
 * results per device.
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

#include "common/base/buf.h"
#include "common/k8s/quantity.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "common/cel/cel.h"
#include "scheduler/framework/plugin.h"

#define BH_DRA_RESULTS_MAX  32u
#define BH_DRA_NO_DEVICE    UINT32_MAX
#define BH_DRA_ASKED        64u                /* different things that pods ask for */
#define BH_DRA_WISHES       128u               /* different requests in these */
#define BH_DRA_COLUMNS      16u                /* attributes that constraints ask for */
#define BH_DRA_PROGRAMS_MAX 1024u              /* compiled selectors kept */
#define BH_DRA_KNOWN_MAX    ((size_t)64 << 20) /* bytes of their results */

/* Which nodes something is for. */
struct bh_dra_where {
    enum { BH_DRA_NOWHERE, BH_DRA_ON_NODE, BH_DRA_ON_ALL, BH_DRA_ON_SELECTED } kind;
    bh_sym node;
    const struct bh_shape_rec *selector; /* its required_terms */
    uint32_t number;                     /* slices only: of selectors */
    const char *error;                   /* the selector does not parse */
};
enum bh_dra_device_flags {
    BH_DRA_SHARED = 1,         /* allowMultipleAllocations */
    BH_DRA_BINDING = 2,        /* has binding conditions */
    BH_DRA_PLAIN_CAPACITY = 4, /* without request policies: its full capacity always suffices */
    BH_DRA_COUNTED = 8,        /* consumes shared counters */
    BH_DRA_TAINTED = 16
};
struct bh_dra_device {
    const K8s__Device *msg;
    uint32_t slice;
    uint32_t id; /* same driver, pool and name: same id */
    uint32_t flags;
    uint32_t same_id;          /* next + 1 */
    uint32_t use, n_uses;      /* of shared counters: uses[use .. use + n_uses) */
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
    uint32_t namesake; /* the first pool of the name, of whatever driver */
    bool everywhere;   /* some slice with devices is not of one node */
    bool has_counters;
    bool judged, usable, incomplete, invalid; /* as a node sees it that sees every slice */
    uint32_t tally, n_tallies;                /* its shared counters */
    uint64_t attempt;                         /* that their `consumed` is of */
};
struct bh_dra_tally { /* one shared counter of a pool */
    const char *set, *name;
    bh_nano total, available; /* available: what allocated devices leave */
    bh_nano consumed;         /* in one attempt */
};
struct bh_dra_use {
    uint32_t tally;
    bh_nano v;
};
/* What one claim takes; entries are numbered from 1. */
struct bh_dra_take {
    enum { BH_DRA_FREE, BH_DRA_HEAD, BH_DRA_WHOLE, BH_DRA_SHARE, BH_DRA_AMOUNT } what;
    uint32_t id;   /* of the device */
    uint32_t next; /* of the same claim; free ones: the next free one */
    union {
        struct { /* BH_DRA_AMOUNT: consumed capacity of a shared device */
            uint32_t prev_amount, next_amount; /* of the same device */
            const char *name;
        };
        struct { /* BH_DRA_HEAD of a claim in flight */
            uint32_t next_flight;
            uint64_t serial, seen;
        };
    };
    bh_nano v;
};
#define BH_DRA_MOVED 4096u /* changes of devices that a ring holds */
/* What a node sees, in the order of trying: runs of neighbouring devices of usable pools. */
struct bh_dra_run {
    uint32_t first, n, at; /* at: position of the first */
};
struct bh_dra_sight {
    const struct bh_dra_run *runs;
    uint32_t n_runs, n_devices;
    bool invalid, incomplete; /* some pool is; its devices are left out */
    bool per_device;          /* some slice says for each device which nodes it is for */
};
struct bh_dra;
/* What is kept under a text, the first member of something. */
struct bh_dra_named {
    char *text;
    size_t n;
    uint64_t used;
};
/* Of v, which fills from the front: the one with the text. When it is not there the one that was
 * used least lately makes room for it. size: of what it is the first member of; the rest is 0. */
struct bh_dra_named *bh_dra_named_for(struct bh_dra *d, struct bh_dra_named **v, uint32_t max,
                                      const struct bh_buf *text, size_t size,
                                      void (*drop_one)(struct bh_dra_named *));
#define BH_DRA_FOUND_CLAIMS 4u
/* The last solution that was found, and what it depends on: Reserve mostly asks for it again. */
struct bh_dra_found_last {
    uint64_t index, classes, claims, moved, sights;
    uint32_t group, n; /* group 0: nothing is remembered */
    const K8s__DeviceClaim *devices[BH_DRA_FOUND_CLAIMS];
    struct bh_dra_allocation *out;
};
struct bh_dra_column;
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
    bool no_taints, no_alternatives;  /* gates DRADeviceTaints, DRAPrioritizedList are off */
    bool verify;                      /* search both ways, abort on a difference */
    struct bh_reservations *reserved; /* claims in flight, and where Reserve puts them */
    uint64_t shares;                  /* handed out: makes their ids different */

    struct bh_arena index_arena; /* everything from here ... */
    uint64_t index_version, index_generation;
    struct bh_dra_slice *slices;
    struct bh_dra_pool *pools;
    struct bh_dra_device *devices;
    uint32_t n_slices, n_pools, n_devices, n_ids, n_tallies, n_uses;
    struct bh_dra_tally *tallies;
    struct bh_dra_use *uses;
    struct bh_dra_where *selectors; /* different ones of slices */
    uint32_t n_selectors;
    /* What nodes see of the pools in everywhere depends on nothing but which selectors they
     * match. */
    bool by_selector;
    struct bh_map ids;      /* "driver/pool/device" -> id + 1 */
    struct bh_umap by_node; /* node -> first of a list of pools + 1 */
    struct bh_dra_node_pool {
        uint32_t pool, next; /* next + 1 */
    } * node_pools;
    /* Some pool's shared counters are not the same for all nodes, or mistaken for another's: its
     * slices disagree about generation or number, or two drivers have pools of one name. */
    bool odd_counters;
    uint32_t *everywhere, n_everywhere; /* pools that nodes without a slice see too, rising */
    uint32_t *stamp;                    /* by id */
    uint32_t stamp_now;
    uint64_t *sharing; /* by id: attempt in which a share of the device is being taken */
    uint64_t attempt;  /* searches so far */

    uint32_t *first_of_id; /* device + 1 */

    /* ---- taken.c ---- */
    struct bh_arena state_arena; /* of a moment */
    struct bh_dra_take *take;
    uint32_t n_takes, cap_takes, free_take, flight;
    struct bh_umap by_claim, by_serial; /* bh_object_key, serial in flight -> head */
    bool same_key;                      /* two claims have one */
    uint64_t taken_generation, claims_pos, reserved_version;
    /* By id, how many: claims that it is given to; shares; amounts; and the list of these. */
    uint32_t *allocated, *shared, *consumed_any, *amounts;
    bh_sym *moved; /* nodes with devices that changed hands; BH_SYM_NONE: all */
    uint64_t moved_end;
    uint32_t *freed; /* ids of devices of which less is taken than before */
    uint64_t freed_end;

    struct bh_dra_named *asked[BH_DRA_ASKED]; /* asked.c */
    uint32_t *todo, n_todo, cap_todo;         /* rows to be searched, of the question at hand */
    uint64_t named_clock;
    struct bh_buf asking;
    struct bh_dra_sights *sights;                 /* sights.c */
    struct bh_dra_named *wish[BH_DRA_WISHES];     /* wishes.c */
    struct bh_dra_column *column[BH_DRA_COLUMNS]; /* values.c */
    uint64_t sights_generation;                   /* numbers of sights are of it */
    struct bh_dra_found_last last;
    struct bh_buf wishing;
    struct bh_dra_owners {   /* claims.c: of claims that stand for extended resources */
        struct bh_umap uids; /* by hash; some whose claim is gone are there too */
        uint64_t pos;        /* in the objects' change log */
    } owners;

    struct bh_map programs;  /* expression -> struct bh_dra_program * */
    struct bh_arena scratch; /* of one Filter */
    struct bh_arena cel;     /* of one evaluation */
};
void bh_dra_init(struct bh_dra *d, struct bh_symtab *tab);
void bh_dra_fini(struct bh_dra *d);
/* Brings everything up to date with the objects. */
void bh_dra_sync(struct bh_dra *d, const struct bh_objects *o);
static inline const K8s__DeviceAllocationResult *bh_dra_results_of(const ProtobufCMessage *claim)
{
    const K8s__ResourceClaim *c = (const void *)claim;

    return c->status && c->status->allocation ? c->status->allocation->devices : NULL;
}
/* Of the results; BH_DRA_NO_DEVICE where no slice lists it. ids_of keeps them with the object. */
void bh_dra_find_ids(struct bh_dra *d, const K8s__DeviceAllocationResult *al, uint32_t *ids);
const uint32_t *bh_dra_ids_of(struct bh_dra *d, const struct bh_object *o,
                              const K8s__DeviceAllocationResult *al);

void bh_dra_forget_asked(struct bh_dra *d);   /* asked.c */
void bh_dra_forget_wishes(struct bh_dra *d);  /* wishes.c */
void bh_dra_forget_columns(struct bh_dra *d); /* values.c */
/* ---- counters.c ---- */
void bh_dra_read_tallies(struct bh_dra *d);
void bh_dra_reset_tallies(struct bh_dra *d); /* as if nothing were allocated */
/* The device is allocated (-1) or free again (1). */
void bh_dra_tally_device(struct bh_dra *d, uint32_t id, int sign);
/* ---- taken.c: a part of bh_dra_sync, when the index is right ---- */
void bh_dra_sync_taken(struct bh_dra *d, const struct bh_objects *o);
void bh_dra_taken_fini(struct bh_dra *d);
/* The sum of what claims consume of the device's capacity. */
bh_nano bh_dra_amount_taken(const struct bh_dra *d, uint32_t id, const char *name);

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
    bool incomplete, invalid; /* incomplete: not checked for invalid */
    bool others; /* it has slices for other nodes as well, whose devices consume counters */
};
static inline bool bh_dra_has_devices(const struct bh_dra_slice *s)
{
    return !s->spec->n_sharedcounters;
}
struct bh_dra_views {
    struct bh_dra_view *v;
    uint32_t n, n_early; /* n_early: those behind have devices with binding conditions */
};
/* In order of preference. 0, or -EINVAL with the error of the whole cycle. */
int bh_dra_views(struct bh_dra *d, struct bh_arena *a, const struct bh_node_rec *node,
                 struct bh_dra_views *ret, struct bh_err *err);

/* The node's own pools as a rising list, in a. */
uint32_t *bh_dra_own_pools(const struct bh_dra *d, struct bh_arena *a, bh_sym node,
                           uint32_t *ret_n);
/* Of these pools alone, which are sorted. */
int bh_dra_views_among(struct bh_dra *d, struct bh_arena *a, const struct bh_node_rec *node,
                       const uint32_t *pools, uint32_t n, struct bh_dra_views *ret,
                       struct bh_err *err);

/* ---- sights.c ---- */
struct bh_dra_sight bh_dra_sight_from(const struct bh_dra *d, struct bh_arena *a,
                                      const struct bh_dra_views *views);
/* The node's, valid until the next call. NULL: not kept, or there is none. *ret_group (may be
 * NULL): nodes of one number see the same. */
const struct bh_dra_sight *bh_dra_sight_of(struct bh_dra *d, const struct bh_cache *c,
                                           const struct bh_node_info *node, uint32_t *ret_group);
/* The first n devices are the same, and the nodes have no say in which of them they see. */
bool bh_dra_begin_alike(const struct bh_dra_sight *a, const struct bh_dra_sight *b, uint32_t n);
void bh_dra_sights_fini(struct bh_dra *d);

/* Every node sees the shared counters of a pool. Does that make a difference to nodes that see no
 * device of it? Only when the pool is broken or being updated. */
bool bh_dra_seen_by_others(struct bh_dra *d, uint32_t pool);

/* Does the expression hold for the device? -EINVAL with the error text ("CEL runtime error:
 * ..."). */
int bh_dra_selector_match(struct bh_dra *d, const char *expression, uint32_t device, bool *ret,
                          struct bh_err *err);

/* ---- capacity ---- */
/* What a request takes of a capacity; false: the policy forbids it. *ret_text: the quantity the
 * amount was taken from as it stands, NULL when it was worked out. */
bool bh_dra_capacity_taken(const K8s__DeviceCapacity *cap, const K8s__Quantity *request,
                           bh_nano *ret, const K8s__Quantity **ret_text);
bh_nano bh_dra_quantity(const K8s__Quantity *q);
const K8s__Quantity *bh_dra_requested(const K8s__CapacityRequirements *r, const char *name);
/* Does every requested name exist? */
bool bh_dra_capacity_known(const K8s__CapacityRequirements *r, const K8s__Device *dev);
#endif
