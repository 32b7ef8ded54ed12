/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/pod.h - what clients do to pods besides CRUD: binding and eviction
 */
#ifndef BH_SIM_POD_H
#define BH_SIM_POD_H

#include "simulator/server/sim.h"

/* name: of the pod. body: the Binding or Eviction. 0 or code. */
typedef int bh_sim_pod_fn(struct bh_sim *s, const char *ns, const char *name,
                          const struct bh_json *body, bool dry_run, struct bh_sim_error *e);
bh_sim_pod_fn bh_sim_pod_bind; /* POST pods/NAME/binding and POST bindings */
bh_sim_pod_fn
    bh_sim_pod_evict; /* POST pods/NAME/eviction; 429 with the disruption budget's cause */

#endif
