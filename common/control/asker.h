/* SPDX-License-Identifier: Apache-2.0
 *
 * common/control/asker.h - questions to the running scheduler, without waiting for the answers
 *
 * Threads: the loop's.
 */
#ifndef BH_CONTROL_ASKER_H
#define BH_CONTROL_ASKER_H

#include "common/base/loop.h"
#include "common/control/ask.h"

struct bh_asker;
struct bh_asker *bh_asker_new(uv_loop_t *loop, const char *runtime_dir);
/* Questions under way are answered with NULL. NULL allowed; drain the loop. */
void bh_asker_free(struct bh_asker *c);
/* done is called once, from the loop; r is borrowed during the call, NULL = no answer, and why:
 * BH_ASK_TIMEOUT_NS passed, no scheduler runs, or what the scheduler said. */
void bh_asker_ask(struct bh_asker *c, Berth__ControlWhat what,
                  void (*done)(void *arg, const Berth__ControlReply *r, const char *why),
                  void *arg);
#endif
