/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/targets.h - what TYPE/NAME names, and the pods of a workload
 *
 * Threads: one owner.
 */
#ifndef BH_CLI_TARGETS_H
#define BH_CLI_TARGETS_H

#include "cli/view.h"
#include "scheduler/explain/explain.h"

enum bh_target {
    BH_TARGET_POD,
    BH_TARGET_GROUP,
    BH_TARGET_NODE,
    BH_TARGET_DEPLOYMENT,
    BH_TARGET_REPLICASET,
    BH_TARGET_CONTROLLER, /* ReplicationController */
    BH_TARGET_STATEFULSET,
    BH_TARGET_DAEMONSET,
    BH_TARGET_JOB,
    BH_TARGET_CRONJOB,
    BH_TARGET_NONE
};
#define BH_TARGET_WORDS "pod podgroup node deployment replicaset statefulset daemonset job cronjob"
#define BH_TARGETS                                                                                 \
    "pod, podgroup, node, deployment, replicaset, statefulset, daemonset, job, cronjob"

/* n bytes as kubectl takes a type: any case, plural, short, "deployments.apps". BH_TARGET_NONE: it is
 * none of them. */
enum bh_target bh_target_parse(const char *word, size_t n);

/* The workload's pod that is worth an explanation: the first pending one by name, else the first.
 * The name in a, and in *ret_note how many there are. -ENOENT: it has none. */
int bh_target_find_pod(const char *runtime_dir, enum bh_target t, const char *ns, const char *name,
                       struct bh_arena *a, const char **ret_pod, const char **ret_note,
                       struct bh_err *err);
/* A node: status, labels, taints, what is requested of what it has, its pods. */
int bh_target_print_node(const char *runtime_dir, const char *name, enum bh_form form,
                         struct bh_buf *out, struct bh_err *err);
#endif
