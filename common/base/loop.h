/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/loop.h - what Berth adds to libuv
 *
 * Watcher, binder, simulator and the probe servers run on a libuv loop. ZMQ_FD is edge-triggered on
 * the socket's command mailbox, so a plain uv_poll loses messages; bh_zpoll is the adapter
 * (prepare: look at ZMQ_EVENTS, keep the loop awake if there is work; check: receive).
 */
#ifndef BH_LOOP_H
#define BH_LOOP_H

#include "common/base/base.h"
#include <uv.h>

/* on_readable is called with readiness known; it should receive with ZMQ_DONTWAIT until EAGAIN, at
 * most BH_ZPOLL_BURST messages, and returns true when it stopped at the burst limit. */
#define BH_ZPOLL_BURST 256
struct bh_zpoll;
struct bh_zpoll *bh_zpoll_new(uv_loop_t *loop, void *zmq_socket, bool (*on_readable)(void *),
                              void *arg);
void bh_zpoll_close(struct bh_zpoll *z); /* asynchronous, frees itself; NULL allowed */

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
void bh_keepalive_close(struct bh_keepalive *k);
/* Closes every handle that is still open and runs the loop until it is empty, then closes it. */
void bh_loop_drain_close(uv_loop_t *loop);
#endif
