/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/coscheduling.h - the PodGroup of plugin Coscheduling (scheduling.x-k8s.io/v1alpha1)
 *
 * A pod belongs to the PodGroup of its own namespace that its label names. The kind is a custom
 * resource; nothing here is about the PodGroups of scheduling.k8s.io (pod_group.h).
 * Threads: any; no state.
 * Upstream: scheduler-plugins, apis/scheduling/v1alpha1.
 */
#ifndef BH_COSCHEDULING_H
#define BH_COSCHEDULING_H

#include "common/k8s/kinds.h"

struct K8s__CoschedulingPodGroup;

#define BH_COSCHEDULING_LABEL   "scheduling.x-k8s.io/pod-group"
#define BH_COSCHEDULING_NO_TIME INT64_MIN

struct bh_coscheduling_group {
    int64_t min_member;  /* 0 = not given: each pod alone is enough */
    int64_t timeout_s;   /* spec.scheduleTimeoutSeconds; BH_COSCHEDULING_NO_TIME = not given */
    int64_t creation_ns; /* of the object, unix time; 0 = not told */
    bool has_resources;  /* spec.minResources is there */
};
void bh_coscheduling_read(const struct K8s__CoschedulingPodGroup *m,
                          struct bh_coscheduling_group *ret);
/* For whoever takes an object in, what a decoder does not see. -EINVAL: without name or namespace, or a
 * negative minMember; err names the field. */
int bh_coscheduling_check(const struct K8s__CoschedulingPodGroup *m, struct bh_err *err);
#endif
