/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/past.h - what happened: a bounded log, and a ring of numbers
 */
#ifndef BH_CONSOLE_PAST_H
#define BH_CONSOLE_PAST_H

#include "simulator/console/console.h"

bh_console_fn bh_console_timeline, bh_console_utilisation; /* past.c */
bh_console_fn bh_console_asof;                             /* asof.c */

/* Something that is no commit: what "config", "reset", "import". Loop only. */
void bh_console_past_note(struct bh_console *c, const char *what, const char *detail);

void bh_console_past_start(struct bh_console *c);
void bh_console_past_stop(struct bh_console *c);
#endif
