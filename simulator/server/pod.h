/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/pod.h - what clients do to pods besides CRUD: binding and eviction
 */
#ifndef BH_SIM_POD_H
#define BH_SIM_POD_H

#include "simulator/server/sim.h"

/* POST pods/NAME/binding and POST bindings: binding is the Binding object. name: pod. 0 or code. */
int bh_sim_pod_bind(struct bh_sim *s, const char *ns, const char *name,
                    const struct bh_json *binding, bool dry_run, struct bh_sim_error *e);
/* POST pods/NAME/eviction. 0 or code (429 with the disruption budget's cause). */
int bh_sim_pod_evict(struct bh_sim *s, const char *ns, const char *name,
                     const struct bh_json *eviction, bool dry_run, struct bh_sim_error *e);

#endif
