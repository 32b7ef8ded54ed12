/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/pod_group.h - a PodGroup as scheduling sees it, whichever version the API server has
 *
 * In Berth a PodGroup is the message of v1alpha2 (K8s__PodGroup), and its member `served` says in which
 * version the API server has it: writes go there, and the name of the condition depends on it. The
 * watcher brings every group into this form, so the feed carries nothing else.
 * Threads: any; no state.
 */
#ifndef BH_POD_GROUP_H
#define BH_POD_GROUP_H

#include "common/k8s/kinds.h"

struct bh_arena;
struct K8s__PodGroup;

#define BH_GROUP_NOT_A_GANG 0 /* min_count of policy basic */
struct bh_pod_group {
    const char *ns, *name, *uid;
    const char *version;   /* of the API that the server has: "v1alpha2", "v1beta1", "v1alpha3" */
    const char *condition; /* the type of its scheduling condition in that version */
    const char *topology_key; /* NULL = members may be anywhere */
    int64_t generation;
    int32_t min_count; /* gang: at least 1; else BH_GROUP_NOT_A_GANG */
    int32_t priority;  /* 0 = none is set */
    bool whole;        /* disruption mode: all pods of the group or none */
    bool scheduled;    /* its scheduling condition is True */
};
/* Strings are borrowed from m. -EINVAL: without name, namespace or uid, or with a policy that is none;
 * err names the field. */
int bh_pod_group_read(const struct K8s__PodGroup *m, struct bh_pod_group *ret, struct bh_err *err);
/* m as v1alpha2 has it, with `served` set: in the arena, parts shared with m. k: the version of m (a
 * row for BH_KIND_PODGROUP, or one of its others). NULL at the arena's limit. */
struct K8s__PodGroup *bh_pod_group_of(struct bh_arena *a, const struct bh_kind_info *k,
                                      const ProtobufCMessage *m);
#endif
