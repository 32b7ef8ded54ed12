/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/framework/pod.h - a pod as it waits, as it makes room, and what a plugin said of it
 */
#ifndef BH_FRAMEWORK_POD_H
#define BH_FRAMEWORK_POD_H

#include "common/k8s/record.h"
#include "scheduler/framework/status.h"

/* Interned shape: equal content, equal id. Ids are small, dense, never reused while referenced. */
typedef uint32_t bh_shape_id;
struct bh_pending { /* what the queue keeps per pod; engine borrows */
    const struct bh_pod_rec *pod;
    bh_shape_id shape;
    /* Where its handle keeps the engine's nomination of it: *nomination is NULL while it has none.
     * NULL: it has no handle, or is not nominated by this. */
    struct bh_nomination **nomination;
};
struct bh_queue_key { /* QueueSort compares these */
    const struct bh_pending *waiting;
    const struct bh_shape_rec *shape; /* of it: priority, labels */
    uint32_t attempts;                /* made before */
    int64_t timestamp_ns;             /* when it came, or was last rejected */
    int64_t initial_attempt_ns;       /* when it was first ready to be tried; 0 = not yet */
};
struct bh_plugin_note { /* one plugin's answer about the pod as a whole */
    const char *plugin;
    const struct bh_status *status; /* NULL: Success */
    bool narrowed;                  /* PreFilter: to these nodes */
    const bh_sym *nodes;
    uint32_t n_nodes;
};
struct bh_victim {
    struct bh_str namespace_, name, uid;
    int32_t priority;
    bool terminating; /* it is being deleted already */
    uint64_t resource_version;
    int64_t generation;
};
struct bh_preemption { /* one way to make room */
    bh_sym node;
    const struct bh_victim *victims;
    uint32_t n_victims;
};
#endif
