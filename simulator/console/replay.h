/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/replay.h - /berth/v1/replay (docs/simulator-api.md, section 6)
 */
#ifndef BH_CONSOLE_REPLAY_H
#define BH_CONSOLE_REPLAY_H

#include "simulator/console/console.h"

void bh_console_replay_start(struct bh_console *c);
void bh_console_replay_stop(struct bh_console *c);
bh_console_fn bh_console_replay_get, bh_console_replay_post, bh_console_replay_patch,
    bh_console_replay_delete;
#endif
