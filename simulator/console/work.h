/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/work.h - life of the worker jobs; what handlers use stands in console.h
 */
#ifndef BH_CONSOLE_WORK_H
#define BH_CONSOLE_WORK_H

#include "simulator/console/console.h"

void bh_console_jobs_start(struct bh_console *c);
/* After HTTP ended, before the store goes. Waits for what runs. */
void bh_console_jobs_stop(struct bh_console *c);
#endif
