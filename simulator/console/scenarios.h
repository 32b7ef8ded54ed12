/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/scenarios.h - /berth/v1/scenarios (docs/simulator-api.md, section 7), and the
 * objects of kind Scenario
 */
#ifndef BH_CONSOLE_SCENARIOS_H
#define BH_CONSOLE_SCENARIOS_H

#include "simulator/console/console.h"

void bh_console_scenarios_start(struct bh_console *c);
void bh_console_scenarios_stop(struct bh_console *c);
bh_console_fn bh_console_scenarios_post, bh_console_scenarios_get, bh_console_scenarios_delete;
#endif
