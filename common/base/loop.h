/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/loop.h - what Berth adds to libuv
 *
 * Watcher, binder, simulator and the probe servers run on a libuv loop.
 */
#ifndef BH_LOOP_H
#define BH_LOOP_H

#include "common/base/base.h"
#include <uv.h>

/* Before the first loop: libuv aborts without a word when it finds no descriptor for what all loops
 * share. Fails with: -EMFILE, -ENFILE, -ENOMEM. */
int bh_loop_check(struct bh_err *err);
/* First thing in main: a SIGHUP before bh_signals_new() would end the process; what it asks for is
 * about to be read anyway. */
void bh_signals_early(void);
/* SIGTERM and SIGINT call on_stop once (a second signal exits at once with 128+n); SIGHUP calls
 * on_hup when not NULL; SIGPIPE is ignored. */
struct bh_signals;
struct bh_signals *bh_signals_new(uv_loop_t *loop, void (*on_stop)(void *), void (*on_hup)(void *),
                                  void *arg);
void bh_signals_close(struct bh_signals *s);
/* Sends READY/WATCHDOG/STOPPING for a daemon; healthy() is asked before each WATCHDOG=1. */
struct bh_keepalive;
struct bh_keepalive *bh_keepalive_new(uv_loop_t *loop, bool (*healthy)(void *), void *arg);
void bh_keepalive_close(struct bh_keepalive *k, bool stopping); /* false: the process goes on */
/* Closes a handle that lives on the heap, and frees it when it is closed. */
void bh_loop_close_free(void *handle);
/* Closes every handle that is still open and runs the loop until it is empty, then closes it. */
void bh_loop_drain_close(uv_loop_t *loop);
#endif
