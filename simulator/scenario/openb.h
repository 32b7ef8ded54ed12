/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/scenario/openb.h - the production trace "openb": nodes and pods as objects, with times
 *
 * Columns of nodes: sn,cpu_milli,memory_mib,gpu,model; of pods: name,cpu_milli,memory_mib,num_gpu,
 * gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,... (any order, by header; times may
 * be absent). Errors name file, line and column.
 * Threads: none of its own, no state.
 */
#ifndef BH_SIM_OPENB_H
#define BH_SIM_OPENB_H

#include "common/base/buf.h"

struct bh_openb_row {
    bool pod;
    const char *name;             /* as in json */
    struct bh_buf json;           /* a Node, or a Pod of namespace default; fn may take it over */
    int64_t created_s, deleted_s; /* since the trace began; -1 = not told */
};
typedef int bh_openb_fn(void *arg, struct bh_openb_row *row, struct bh_err *err);
/* 0, or fn's or a reader's error. */
int bh_openb_read(const char *path, bool pods, bh_openb_fn *fn, void *arg, struct bh_err *err);
#endif
