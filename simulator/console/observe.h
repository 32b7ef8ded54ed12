/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/observe.h - begin to follow the cluster of bh_sim_options.observe
 */
#ifndef BH_CONSOLE_OBSERVE_H
#define BH_CONSOLE_OBSERVE_H

#include "simulator/server/sim.h"

/* Before the loop runs; it runs inside. config: the scheduler's file, NULL = defaults. err says
 * which end is wrong: the file, the kubeconfig, the cluster; bh_sim_free() ends it in any case. */
int bh_console_observe(struct bh_sim *s, const char *config, struct bh_err *err);
#endif
