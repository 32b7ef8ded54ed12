/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/record.h - compiled forms of nodes and pods: what the engine reads
 *
 * A record is one contiguous, immutable, position-independent blob: a fixed head, then arrays that
 * slices {offset from the blob's start, count} point at. Text that plugins compare is interned
 * (bh_sym). The same bytes live in the snapshot's shared memory (symbols of the segment's table) and
 * in a process's private memory (symbols of its own table); bh_rec_remap turns one into the other
 * and validates on the way, because shared memory is foreign input: copy first, check the copy, use.
 *
 * Pods are split: a SHAPE holds everything that two pods of one template share (namespace, labels,
 * requests, selectors, tolerations, ports, images, priority ...), interned by content, and the POD
 * adds identity (name, uid, node, times). So 10,000 replicas share one shape, and the shape's id is
 * the signature under which the fast path caches results (design section 4).
 *
 * Units: cpu in milli, everything else in whole units (bytes, counts). Sums over pods of a node are
 * __int128 in the cache (M9).
 * Layout: fixed width, 8-byte aligned, padding zero (content hashing relies on it). Any change bumps
 * BH_REC_LAYOUT, which is part of the snapshot's layout version.
 */
#ifndef BH_RECORD_H
#define BH_RECORD_H

#include "common/base/buf.h"
#include "common/base/symtab.h"

#define BH_REC_LAYOUT    9u
#define BH_REC_MAX_BYTES (8u << 20)

enum bh_rec_type { BH_REC_NODE = 1, BH_REC_SHAPE = 2, BH_REC_POD = 3 };

struct bh_slice {
    uint32_t off; /* bytes from the start of the blob, multiple of 8 */
    uint32_t n;   /* elements */
};
struct bh_rec_head {
    uint32_t size; /* of the whole blob, bytes, multiple of 8 */
    uint16_t type; /* enum bh_rec_type */
    uint16_t layout;
};
struct bh_kv {
    bh_sym key, value;
};
struct bh_res { /* one resource; amounts in the unit above */
    bh_sym name;
    uint32_t pad;
    int64_t value;
};
enum bh_effect {
    BH_EFFECT_NONE,
    BH_NO_SCHEDULE,
    BH_PREFER_NO_SCHEDULE,
    BH_NO_EXECUTE,
    BH_EFFECT_OTHER
};
struct bh_taint {
    bh_sym key, value;
    uint32_t effect; /* enum bh_effect */
    uint32_t pad;
};
struct bh_image {
    bh_sym name;
    uint32_t pad;
    int64_t size_bytes;
};

/* ---- node ---- */
enum bh_node_flags { BH_NODE_UNSCHEDULABLE = 1 };
struct bh_node_rec {
    struct bh_rec_head h;
    bh_sym name, uid;
    uint32_t flags;
    uint32_t pad;
    uint64_t resource_version; /* decimal value of metadata.resourceVersion, 0 if not a number */
    int64_t alloc_cpu_milli, alloc_memory_bytes, alloc_ephemeral_bytes, alloc_pods;
    uint64_t conditions_hash;  /* of type -> status: tells UpdateNodeCondition */
    uint64_t annotations_hash; /* tells UpdateNodeAnnotation */
    struct bh_slice labels;    /* struct bh_kv, sorted by key symbol */
    struct bh_slice taints;    /* struct bh_taint, spec order */
    struct bh_slice scalars;   /* struct bh_res, sorted by name symbol: status.allocatable */
    struct bh_slice images;    /* struct bh_image, one per name in status.images[].names */
    struct bh_slice features;  /* bh_sym: status.declaredFeatures */
    /* struct bh_res sorted by name symbol: of status.capacity what differs from what the node may
     * give (also "cpu" in milli, "memory", "ephemeral-storage", "pods"); 0: not named there.
     * None where there is no capacity at all. */
    struct bh_slice capacity;
};

/* ---- pod shape ---- */
enum bh_toleration_op { BH_TOL_EQUAL, BH_TOL_EXISTS, BH_TOL_LT, BH_TOL_GT, BH_TOL_OTHER };
struct bh_toleration {
    bh_sym key, value; /* BH_SYM_NONE = empty */
    uint32_t op;       /* enum bh_toleration_op */
    uint32_t effect;   /* enum bh_effect, BH_EFFECT_NONE = all effects */
};
enum bh_req_op { BH_REQ_IN, BH_REQ_NOT_IN, BH_REQ_EXISTS, BH_REQ_NOT_EXISTS, BH_REQ_GT, BH_REQ_LT };
struct bh_requirement { /* of a node selector term, or of a label selector */
    bh_sym key;
    uint32_t op;            /* enum bh_req_op */
    int64_t number;         /* Gt, Lt: the operand */
    struct bh_slice values; /* bh_sym */
};
enum bh_term_flags {
    BH_TERM_EMPTY = 1,  /* neither expressions nor fields: matches nothing */
    BH_TERM_INVALID = 2 /* does not parse: matches nothing; an error in preferred terms */
};
struct bh_node_term {
    uint32_t flags;
    int32_t weight; /* preferred terms; 0 otherwise */
    bh_sym error;   /* INVALID: upstream's error text */
    uint32_t pad;
    struct bh_slice expressions; /* struct bh_requirement over labels */
    struct bh_slice fields;      /* struct bh_requirement; key = field path text */
};
/* metav1.LabelSelector. nil matches nothing, an empty one everything; both have no requirements. */
enum bh_selector_flags {
    BH_SELECTOR_NIL = 1,    /* absent: matches nothing */
    BH_SELECTOR_INVALID = 2 /* does not parse: matches nothing; error has the text */
};
struct bh_label_selector {
    uint32_t flags; /* enum bh_selector_flags; NIL and INVALID come without requirements */
    bh_sym error;   /* INVALID: upstream's error text */
    struct bh_slice requirements; /* struct bh_requirement, In ... DoesNotExist; ANDed */
};
/* One term of podAffinity or podAntiAffinity. */
struct bh_pod_term {
    int32_t weight; /* preferred terms; 0 otherwise */
    bh_sym topology_key;
    struct bh_label_selector selector, namespace_selector;
    struct bh_slice
        namespaces; /* bh_sym; the pod's own where the spec names none and selects none */
};
enum bh_spread_flags {
    BH_SPREAD_HARD = 1, /* DoNotSchedule */
    BH_SPREAD_SOFT = 2, /* ScheduleAnyway */
    BH_SPREAD_HONOR_AFFINITY = 4,
    BH_SPREAD_HONOR_TAINTS = 8
};
struct bh_spread { /* one of topologySpreadConstraints, its defaults filled in */
    int32_t max_skew, min_domains;
    bh_sym topology_key;
    uint32_t flags;                    /* enum bh_spread_flags */
    struct bh_label_selector selector; /* matchLabelKeys folded in */
};
struct bh_host_port {
    bh_sym ip;       /* "0.0.0.0" when empty in the spec */
    bh_sym protocol; /* "TCP" when empty */
    int32_t port;
    uint32_t pad;
};
enum bh_shape_flags {
    BH_SHAPE_HAS_NODE_SELECTOR = 1,     /* spec.nodeSelector non-empty */
    BH_SHAPE_HAS_REQUIRED_AFFINITY = 2, /* nodeAffinity.required… object present */
    BH_SHAPE_HAS_PREFERRED_LIST = 4,    /* nodeAffinity.preferred… list non-nil */
    BH_SHAPE_NEVER_PREEMPT = 8,         /* preemptionPolicy Never */
    BH_SHAPE_HOST_NETWORK = 16,
    BH_SHAPE_HOST_USERS_FALSE = 32,
    BH_SHAPE_RESTART_ALL_CONTAINERS = 64, /* some restartPolicyRules action RestartAllContainers */
    BH_SHAPE_USES_POD_AFFINITY = 128,     /* any term of podAffinity or podAntiAffinity */
    BH_SHAPE_USES_SPREAD = 256,           /* any topologySpreadConstraints */
    BH_SHAPE_USES_VOLUMES =
        512, /* any volume but configMap, secret, emptyDir, downwardAPI, projected, hostPath, image */
    BH_SHAPE_USES_CLAIMS = 1024,
    BH_SHAPE_HAS_POD_AFFINITY_OBJECT = 2048 /* podAffinity or podAntiAffinity object present */
};
/* A volume that some plugin looks at; volumes of other types are left out. */
enum bh_volume_type {
    BH_VOL_CLAIM,      /* source: claim name, BH_SYM_NONE = empty */
    BH_VOL_EPHEMERAL,  /* claim "<pod>-<name>" */
    BH_VOL_CSI,        /* source: driver */
    BH_VOL_GCE_PD,     /* source: pdName */
    BH_VOL_EBS,        /* source: volumeID */
    BH_VOL_ISCSI,      /* source: iqn */
    BH_VOL_RBD,        /* source: image; extra: pool, "rbd" when empty; monitors */
    BH_VOL_AZURE_DISK, /* source: diskURI; extra: kind, BH_SYM_NONE = absent; disk_name */
    BH_VOL_AZURE_FILE, /* source: shareName */
    BH_VOL_CINDER,     /* source: volumeID */
    BH_VOL_VSPHERE,    /* source: volumePath */
    BH_VOL_PORTWORX,   /* source: volumeID */
    BH_VOL_TYPES
};
enum bh_volume_flags { BH_VOL_READ_ONLY = 1 };
struct bh_volume {
    uint32_t type;  /* enum bh_volume_type */
    uint32_t flags; /* enum bh_volume_flags; GCE_PD, ISCSI, RBD */
    bh_sym name;    /* in the pod */
    bh_sym source, extra, disk_name;
    struct bh_slice monitors; /* bh_sym */
};
/* One of spec.resourceClaims: either a claim's name or a template's. */
struct bh_pod_claim {
    bh_sym name; /* in the pod */
    bh_sym claim, template_;
    uint32_t pad;
};
enum bh_container_flags { BH_CONTAINER_INIT = 1, BH_CONTAINER_SIDECAR = 2 /* restarts always */ };
/* What one container asks of one resource that devices may provide; not 0. */
struct bh_extended_request {
    bh_sym resource;
    uint32_t container; /* init containers first */
    uint32_t position;  /* of the resource among the container's requests, by name */
    uint32_t flags;     /* enum bh_container_flags */
    bh_sym container_name;
    uint32_t pad;
    int64_t value;
};
/* Owners whose selectors make default spread constraints; all others are alike. */
enum bh_owner_kind {
    BH_OWNER_OTHER, /* a Job, an operator's kind ... */
    BH_OWNER_REPLICATIONCONTROLLER,
    BH_OWNER_REPLICASET,
    BH_OWNER_STATEFULSET,
    BH_OWNER_DAEMONSET,
    BH_OWNER_NODE, /* a mirror pod */
    BH_OWNER_NONE
};
/* What the spec says of one container, amount by amount: struct bh_res sorted by name symbol, also
 * "cpu" in milli, "memory" and "ephemeral-storage"; present even when 0. */
struct bh_container {
    uint32_t flags; /* enum bh_container_flags */
    bh_sym name;
    struct bh_slice requests, limits;
};
/* Three request vectors, because upstream computes three (reference plugins.md 2.3). */
struct bh_requests {
    int64_t cpu_milli, memory_bytes, ephemeral_bytes;
    struct bh_slice scalars; /* struct bh_res sorted by name symbol; present even when 0 */
};
struct bh_shape_rec {
    struct bh_rec_head h;
    bh_sym namespace_;
    bh_sym scheduler_name;
    int32_t priority;       /* spec.priority, 0 when nil */
    uint32_t flags;         /* enum bh_shape_flags */
    struct bh_requests fit; /* spec only, pod-level honoured: NodeResourcesFit's Filter */
    struct bh_requests
        used; /* status-aware: what a node's Requested grows by; Balanced's request */
    struct bh_requests score; /* no pod-level, 100m / 200Mi per container lacking it: Fit's Score */
    int64_t nonzero_cpu_milli, nonzero_memory_bytes; /* NonZeroRequested */
    struct bh_slice labels;                          /* struct bh_kv sorted by key symbol */
    struct bh_slice tolerations;                     /* struct bh_toleration */
    struct bh_slice node_selector;                   /* struct bh_kv: spec.nodeSelector */
    struct bh_slice required_terms;                  /* struct bh_node_term */
    struct bh_slice
        preferred_terms; /* struct bh_node_term, weight set; weight 0 / empty are kept with flags */
    struct bh_slice host_ports; /* struct bh_host_port: sidecar init containers, then containers */
    struct bh_slice
        images; /* bh_sym: normalised names of init containers, containers, image volumes */
    int32_t image_containers; /* number of init containers + containers */
    uint32_t owner_kind;      /* enum bh_owner_kind: of the controlling owner */
    bh_sym owner;             /* its name, up to STATEFULSET; else BH_SYM_NONE */
    uint32_t pad;
    struct bh_slice gates; /* bh_sym: schedulingGates, spec order */
    /* struct bh_pod_term, spec order */
    struct bh_slice affinity, anti_affinity; /* requiredDuringSchedulingIgnoredDuringExecution */
    struct bh_slice preferred_affinity, preferred_anti_affinity;
    struct bh_slice spread;     /* struct bh_spread, spec order */
    struct bh_slice volumes;    /* struct bh_volume, spec order */
    struct bh_slice claims;     /* struct bh_pod_claim, spec order */
    struct bh_slice extended;   /* struct bh_extended_request by container, then position */
    struct bh_slice containers; /* struct bh_container, init containers first, spec order */
    struct bh_slice overhead;   /* struct bh_res as a container's: spec.overhead */
};

/* ---- pod ---- */
enum bh_pod_flags {
    BH_POD_TERMINATING = 1,
    BH_POD_PREEMPTED_BY_SCHEDULER =
        2 /* first DisruptionTarget condition True, reason PreemptionByScheduler */
};
struct bh_claim_status { /* which claim was made for an entry of spec.resourceClaims */
    bh_sym name;
    bh_sym claim; /* BH_SYM_NONE: none is needed */
};
struct bh_pod_rec {
    struct bh_rec_head h;
    uint32_t flags;
    bh_sym node;           /* assigned node, BH_SYM_NONE = pending */
    bh_sym nominated_node; /* status.nominatedNodeName */
    bh_sym group;          /* spec.schedulingGroup.podGroupName; not the shape's: gangs share it */
    uint64_t resource_version;
    int64_t generation;
    int64_t creation_ns, start_ns; /* unix, 0 = absent */
    uint64_t shape;                /* snapshot: offset of the shape record; private: shape id */
    uint64_t extended_claim_hash;  /* of status.extendedResourceClaimStatus, 0 = absent */
    struct bh_slice name, namespace_, uid; /* bytes (char), NUL-terminated, n without the NUL */
    struct bh_slice claim_statuses;        /* struct bh_claim_status, status order */
};

#define bh_rec_at(rec, slice, type) ((const type *)((const char *)(rec) + (slice).off))
static inline struct bh_str bh_rec_text(const void *rec, struct bh_slice s)
{
    return (struct bh_str){(const char *)rec + s.off, s.n};
}

/* Checks sizes, types, every slice (bounds, alignment, nested ones) and enum ranges of a private copy
 * of n bytes, and replaces each symbol s by map(arg, s). map may be NULL (validate only). Sorted
 * slices are sorted again by the new symbols. 0 or -EBADMSG. Linear in n. */
int bh_rec_remap(void *rec, size_t n, bh_sym (*map)(void *arg, bh_sym s), void *arg);
/* Content hash of a record (all bytes but, for pods, none excluded). */
uint64_t bh_rec_hash(const void *rec);

/* ---- matching: the shared meaning of selectors (reference plugins.md 2.5 - 2.7) ---- */
/* One amount of a list of struct bh_res; absent where it is not named. */
int64_t bh_res_get(const void *rec, struct bh_slice list, bh_sym name, int64_t absent);
/* value of key among sorted or unsorted labels; false when absent. */
bool bh_labels_get(const struct bh_kv *labels, uint32_t n, bh_sym key, bh_sym *ret_value);
/* One requirement against labels. tab is needed for Gt/Lt (numbers are parsed from the text). */
bool bh_requirement_match(const void *rec, const struct bh_requirement *r,
                          const struct bh_kv *labels, uint32_t n, const struct bh_symtab *tab);
/* A node selector term; fields see metadata.name = node_name. */
bool bh_node_term_match(const void *rec, const struct bh_node_term *t,
                        const struct bh_node_rec *node, const struct bh_symtab *tab,
                        bh_sym sym_metadata_name);
/* Some term of the list in rec does. */
bool bh_any_node_term_match(const void *rec, struct bh_slice terms, const struct bh_node_rec *node,
                            const struct bh_symtab *tab, bh_sym sym_metadata_name);
/* A label selector against labels; nothing for nil and invalid ones. */
bool bh_selector_matches(const void *rec, const struct bh_label_selector *s,
                         const struct bh_kv *labels, uint32_t n, const struct bh_symtab *tab);
/* Neither nil nor invalid, and no requirements: upstream's Empty(). */
static inline bool bh_selector_is_everything(const struct bh_label_selector *s)
{
    return !s->flags && s->requirements.n == 0;
}
/* spec.nodeSelector and the required node affinity terms of a shape together. */
bool bh_required_node_match(const struct bh_shape_rec *s, const struct bh_node_rec *node,
                            const struct bh_symtab *tab, bh_sym sym_metadata_name);
bool bh_toleration_tolerates(const struct bh_toleration *t, const struct bh_taint *taint);
/* What a compiled shape (bh_compile_shape) is but for labels, images, priority, owner and the names
 * of its containers, as bytes that are appended to out:
 * equal bytes, equal rest. */
void bh_shape_essence(const struct bh_shape_rec *s, struct bh_buf *out);
/* Some toleration of the shape tolerates the taint. */
bool bh_tolerated(const struct bh_shape_rec *s, const struct bh_taint *taint);
/* Every NoSchedule and NoExecute taint of the node is tolerated. */
bool bh_taints_tolerated(const struct bh_shape_rec *s, const struct bh_node_rec *n);
#endif
