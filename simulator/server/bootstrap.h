/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/bootstrap.h - the objects a fresh cluster has
 */
#ifndef BH_SIM_BOOTSTRAP_H
#define BH_SIM_BOOTSTRAP_H

#include "simulator/server/sim.h"

/* Namespaces with their default service accounts, the two system priority classes, the service
 * `kubernetes`, roles. Not fresh: those of the roles that are not there, as an API server does at
 * each start. 0 or negative with err. */
int bh_sim_bootstrap(struct bh_sim *s, bool fresh, struct bh_err *err);

#endif
