/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/observer.h - a running system in an engine of one's own: reads along, decides nothing
 *
 * Attaches to the snapshot read-only and to the watcher's feed as an observer
 * (scheduler/daemon/intake.h), until both are complete. What follows happens in the observer's own
 * engine: pods may be taken off their nodes, objects replaced, decisions computed, all in private.
 *
 * Pods that are wanted by name (bh_observer_want) are kept with their records; the others are only
 * counted.
 * Threads: one owner. Fails with: negative errno and a text that says what to start.
 */
#ifndef BH_CLI_OBSERVER_H
#define BH_CLI_OBSERVER_H

#include "common/base/map.h"
#include "scheduler/daemon/intake.h"
#include "simulator/offline/offline.h"

#define BH_OBSERVER_HINTS 5u

struct bh_observed_pod {
    struct bh_pod_rec *pod;
    bh_shape_id shape; /* one reference */
    char *reason,
        *message; /* of its PodScheduled condition, NULL when it has none (pending only) */
    char *object; /* JSON, of pending pods that are wanted by name */
};
struct bh_observer {
    struct bh_offline w; /* without a queue */
    struct bh_intake in;
    struct bh_map pending; /* uid -> struct bh_observed_pod */
    struct bh_map wanted;  /* "ns/name" -> struct bh_observed_pod: on a node; pod NULL = not seen */
    /* For a mistyped name: pods whose names come near the first one wanted. */
    const char *near_ns, *near_name;
    char *hints[BH_OBSERVER_HINTS];
    unsigned n_hints;
    uint64_t pods_in_namespace;
    const char *group_ns, *group; /* its pending members are wanted; NULL: none */
};
/* What the scheduler says that it decides with; its extenders' files, which only it may read, are left
 * out. gates: room for its feature gates, as long as the configuration is used. *ret_from: the file, in
 * the arena, or "defaults"; *ret_draws: by lot among the best. */
struct bh_ask;
int bh_observer_config(struct bh_ask *ask, struct bh_arena *a, struct bh_feature_gates *gates,
                       struct bh_sched_config **ret, const char **ret_from, bool *ret_draws,
                       struct bh_err *err);
int bh_observer_open(struct bh_observer *o, const char *runtime_dir,
                     const struct bh_sched_config *config, struct bh_err *err);
void bh_observer_close(struct bh_observer *o); /* a zeroed one too */
/* Before bh_observer_read. The strings of the first are borrowed. */
void bh_observer_want(struct bh_observer *o, const char *ns, const char *name);
/* Reads until everything is there, with a progress line on terminals when that takes long. */
int bh_observer_read(struct bh_observer *o, const char *runtime_dir, struct bh_err *err);
/* NULL: no such pod is pending, or is on a node. */
const struct bh_observed_pod *bh_observer_pending(const struct bh_observer *o, const char *ns,
                                                  const char *name);
const struct bh_observed_pod *bh_observer_bound(const struct bh_observer *o, const char *ns,
                                                const char *name);
/* "did you mean ...", "there are 12 pods in namespace \"x\"": what is there instead of the first
 * pod wanted. */
void bh_observer_hint(const struct bh_observer *o, struct bh_buf *out);
#endif
