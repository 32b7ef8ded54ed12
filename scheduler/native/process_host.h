/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/process_host.h - what the files of a plugin's process share
 */
#ifndef BH_NATIVE_PROCESS_HOST_H
#define BH_NATIVE_PROCESS_HOST_H

#include "scheduler/native/process.h"

struct bh_px_here { /* the two areas, from the host's side */
    struct bh_px_area *down, *up;
    uint32_t seen;                   /* down->seq that was heard last */
    const char *run_said;            /* preemption->run() in this call, NULL: nothing */
    const struct bh_px_facts *facts; /* of the pod that was asked about last in this call */
};
extern struct bh_px_here bh_px_here;

/* A handle that came with a question within a call, for the rest of the call. NULL: none. */
const struct berth_node *bh_px_here_node(struct bh_px_in *m, struct bh_arena *a);
/* Every host function of the public header, as it is in this process. */
const struct berth_host *bh_px_host_tables(void);
uint32_t bh_px_here_instance(const struct berth_home *home); /* its number */
/* The node came with the call: it is not one of the cluster's rows, or not as it is. */
bool bh_px_here_node_is_given(const struct bh_node_info *ni);
void bh_px_here_put_pods(const struct bh_node_info *ni, struct bh_px_in *m);
/* check_args() found something. */
void bh_px_argument_error(struct berth_str path, struct berth_str text);
#endif
