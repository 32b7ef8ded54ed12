/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/questions.h - handlers of section 4 of docs/simulator-api.md
 */
#ifndef BH_CONSOLE_QUESTIONS_H
#define BH_CONSOLE_QUESTIONS_H

#include "scheduler/config/config.h"
#include "simulator/console/console.h"

bh_console_fn bh_console_whatif;
bh_console_fn bh_console_capacity, bh_console_drain; /* capacity.c */
bh_console_fn bh_console_configs;                    /* configs.c */
bh_console_fn bh_console_queue, bh_console_manifest; /* queue.c */
#endif
