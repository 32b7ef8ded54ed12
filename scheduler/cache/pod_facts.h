/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/pod_facts.h - of pods what records leave out besides annotations, kept with these
 *
 * Priority class, when it was scheduled, seccomp profiles: no built-in plugin looks at them.
 *
 * Owns:    nothing: they lie in the pod's block of annotations.
 * Runs in: the engine's thread.
 */
#ifndef BH_CACHE_POD_FACTS_H
#define BH_CACHE_POD_FACTS_H

#include "scheduler/cache/annotations.h"

struct K8s__Pod;
/* Of a pod whose annotations were put (bh_annotations_put). */
void bh_pod_facts_put(struct bh_annotations *a, struct bh_str uid, const struct K8s__Pod *pod);

struct bh_pod_facts {
    struct bh_str priority_class; /* p NULL: none is named */
    int64_t scheduled_ns;         /* its condition PodScheduled is True since then; 0: it is not */
    const char *profiles;         /* private: see bh_pod_facts_profile() */
    uint32_t n_profiles;
};
/* Lives until the next change. All 0 of a pod that is not known. */
struct bh_pod_facts bh_pod_facts(const struct bh_annotations *a, struct bh_str uid);
/* Files of seccomp profiles on the node (type Localhost): of the pod as a whole, then of its containers
 * but for init containers. i < n_profiles. */
struct bh_str bh_pod_facts_profile(const struct bh_pod_facts *f, uint32_t i);
/* The i-th annotation; p NULL: there are no more. */
struct bh_str bh_annotations_at(const struct bh_annotations *a, enum bh_annotations_of of,
                                struct bh_str key, uint32_t i, struct bh_str *ret_name);
#endif
