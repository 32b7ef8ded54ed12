/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/node_info.h - one node as the plugins see it: its record and the sums over its
 * pods
 *
 * Owns:       the arrays below; not the records, not the pods.
 * Invariants: scalars sorted by name symbol; images sorted by name symbol, one entry a name. used_*
 *             are exact sums (__int128): upstream's int64 wraps, Berth's never does. ports is a
 *             set, not a count: removing one of two users of a port frees it, as upstream.
 * Memory:     the cache's own infos use its pool; a fork (preemption dry run, nominated pods) lives
 *             in the cycle's arena and is changed freely without touching the original.
 * Upstream:   pkg/scheduler/framework/types.go (NodeInfo); differences: exact sums.
 */
#ifndef BH_NODE_INFO_H
#define BH_NODE_INFO_H

#include "common/base/arena.h"
#include "common/k8s/record.h"
#include "scheduler/cache/pool.h"

#define BH_ROW_NONE UINT32_MAX

typedef __int128 bh_sum;

/* A pod as plugins see it. Lifetime: that of its keeper (cache entry, nomination, queue). */
struct bh_pod_info {
    const struct bh_pod_rec *rec;
    const struct bh_shape_rec *shape;
    uint32_t shape_id;
    uint32_t slot; /* index in its node's pods[]; kept by the cache's own infos only */
};
struct bh_scalar_sum {
    bh_sym name;
    bh_sum used;
};
/* What ImageLocality reads: frozen when the node was last copied into the snapshot (cache.h). */
struct bh_image_state {
    bh_sym name;
    uint32_t node_count;
    int64_t size_bytes;
};
struct bh_node_info {
    const struct bh_node_rec *rec; /* NULL: pods are here, but the node itself is unknown */
    bh_sym name;
    uint32_t row; /* BH_ROW_NONE while rec is NULL */
    uint32_t n_pods, cap_pods;
    struct bh_pod_info **pods; /* append on add, replace by the last one on remove */
    bh_sum used_cpu_milli, used_memory_bytes, used_ephemeral_bytes;
    bh_sum nonzero_cpu_milli, nonzero_memory_bytes;
    struct bh_scalar_sum *scalars;
    uint32_t n_scalars, cap_scalars;
    struct bh_host_port *ports;
    uint32_t n_ports, cap_ports;
    struct bh_image_state *images;
    uint32_t n_images, cap_images;
    uint64_t images_seen;     /* cache's images_version + 1 when they were frozen; 0: read rec */
    uint32_t n_affinity_pods; /* pods that use inter-pod (anti-)affinity */
    uint32_t n_terminating;   /* pods that are being deleted; not in sketches */
    uint32_t n_nominated;     /* pods that preemption promised it */
    uint32_t mark;            /* rebuild generation that saw the node last */
    struct bh_arena *arena;   /* forks only */
    struct bh_pool *pool;     /* the cache's own: of the arrays above */
};

void bh_node_info_fini(struct bh_node_info *ni);
void bh_node_info_forget_images(struct bh_node_info *ni); /* they are read from rec once more */
void bh_node_info_add_pod(struct bh_node_info *ni, struct bh_pod_info *pod);
/* The pod must be on the node. */
void bh_node_info_remove_pod(struct bh_node_info *ni, struct bh_pod_info *pod);
/* As if the info had been made without the pod: the others keep their order, and a port that
 * another pod uses as well stays used. Not for forks. */
void bh_node_info_leave_out_pod(struct bh_node_info *ni, struct bh_pod_info *pod);
/* The order in which its pods stood before some were taken off and put back. Not for forks. */
void bh_node_info_reorder(struct bh_node_info *ni, struct bh_pod_info *const *pods);
struct bh_node_info *bh_node_info_fork(const struct bh_node_info *ni, struct bh_arena *a);
/* A fork without pods and ports, for plugins that look at sums and at n_pods only; cheap. */
struct bh_node_info *bh_node_info_sketch(const struct bh_node_info *ni, struct bh_arena *a);
/* One pod of the shape more or less in a sketch. */
void bh_node_info_sketch_pod(struct bh_node_info *sketch, const struct bh_shape_rec *s, bool add);

bh_sum bh_node_info_used_scalar(const struct bh_node_info *ni, bh_sym name); /* 0 when absent */
int64_t bh_node_rec_scalar(const struct bh_node_rec *n, bh_sym name, bool *ret_present);
const struct bh_image_state *bh_node_info_image(const struct bh_node_info *ni, bh_sym name);
/* Does any wanted port clash with the used ones? Only the literal 0.0.0.0 is a wildcard. */
bool bh_ports_conflict(const struct bh_host_port *used, uint32_t n_used,
                       const struct bh_host_port *want, uint32_t n_want, bh_sym any_ip);
int64_t bh_requests_scalar(const void *rec, const struct bh_requests *r, bh_sym name,
                           bool *ret_present);

/* Clamp an exact sum into int64: for columns and for arithmetic upstream does in int64. */
static inline int64_t bh_sum_i64(bh_sum v)
{
    return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v;
}
static inline int64_t bh_add_sat(int64_t a, int64_t b)
{
    int64_t r;
    if (__builtin_add_overflow(a, b, &r))
        return a < 0 ? INT64_MIN : INT64_MAX;
    return r;
}
static inline int64_t bh_sub_sat(int64_t a, int64_t b)
{
    int64_t r;
    if (__builtin_sub_overflow(a, b, &r))
        return a < 0 ? INT64_MIN : INT64_MAX;
    return r;
}
#endif
