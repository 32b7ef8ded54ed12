/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/features.h - what --feature-gates and --runtime-config switch on in this server
 *
 * Threads: the loop.
 */
#ifndef BH_SIM_FEATURES_H
#define BH_SIM_FEATURES_H

#include "simulator/server/sim_int.h"

/* From s->opt, which is not looked at afterwards. -EINVAL with the value that cannot be. */
int bh_sim_features_init(struct bh_sim *s, struct bh_err *err);
#endif
