/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/load.h - what `berth load` creates, whatever it is read from
 *
 * A source (load_sources.c) yields JSON texts of nodes first, then of pods, in order.
 */
#ifndef BH_LOAD_H
#define BH_LOAD_H

#include "cli/cli.h"

struct bh_load_item {
    char *name;       /* owned */
    char *namespace_; /* owned; NULL for nodes */
    char *json;       /* owned */
    size_t json_n;
};
struct bh_load_set {
    struct bh_load_item *nodes, *pods;
    size_t n_nodes, n_pods;
};
void bh_load_set_fini(struct bh_load_set *s);

/* Columns of nodes: sn,cpu_milli,memory_mib,gpu,model; of pods: name,cpu_milli,memory_mib,num_gpu,
 * gpu_milli,gpu_spec,qos,... (any order, by header). Errors name file, line and column. */
int bh_load_openb(struct bh_load_set *s, const char *nodes_file, const char *pods_file,
                  struct bh_err *err);
/* n_nodes nodes of 32 cpu, 256 Gi in 3 zones; n_pods pods of 100m, 200Mi named PREFIX-<i>. */
void bh_load_synth(struct bh_load_set *s, int64_t n_nodes, int64_t n_pods, const char *ns,
                   const char *prefix);
#endif
