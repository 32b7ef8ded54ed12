/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/scheduler.h - the scheduler of this runtime directory, asked from here
 *
 * Its control socket (common/control/ask.h) is asked in worker threads; the loop sees what the
 * last answer said. Without --runtime-dir there is no scheduler.
 */
#ifndef BH_CONSOLE_SCHEDULER_H
#define BH_CONSOLE_SCHEDULER_H

#include "simulator/console/console.h"

/* The newest answer; when it is older than a second, the next one is asked for in the background.
 * running: it answered. trouble: what it says, or why nobody answered. */
struct bh_console_scheduler_view {
    bool known; /* somebody was asked at all */
    bool running, deciding;
    char trouble[512];
};
const struct bh_console_scheduler_view *bh_console_scheduler(struct bh_console *c);

void bh_console_scheduler_start(struct bh_console *c);
void bh_console_scheduler_stop(struct bh_console *c);
#endif
