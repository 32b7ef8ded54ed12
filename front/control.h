/* SPDX-License-Identifier: Apache-2.0
 *
 * front/control.h - questions to the running scheduler (scheduler/daemon/control.h says which)
 *
 * Threads: the loop's.
 */
#ifndef BH_FRONT_CONTROL_H
#define BH_FRONT_CONTROL_H

#include "common/base/loop.h"
#include "common/bus/bus.h"

#define BH_FRONT_CONTROL_NS UINT64_C(5000000000)

struct bh_front_control;
struct bh_front_control *bh_front_control_new(uv_loop_t *loop, const char *runtime_dir);
/* Questions under way are answered with NULL. NULL allowed; drain the loop. */
void bh_front_control_free(struct bh_front_control *c);
/* done is called once, from the loop; r is borrowed during the call, NULL = no answer, and why. */
void bh_front_control_ask(struct bh_front_control *c, Berth__ControlWhat what,
                          void (*done)(void *arg, const Berth__ControlReply *r, const char *why),
                          void *arg);
#endif
