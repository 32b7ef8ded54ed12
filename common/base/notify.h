/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/notify.h - the service manager's protocol (sd_notify, watchdog) without libsystemd
 */
#ifndef BH_NOTIFY_H
#define BH_NOTIFY_H

#include "common/base/base.h"

/* Sends one datagram, e.g. "READY=1\nSTATUS=watching". No-op (0) without $NOTIFY_SOCKET. */
int bh_notify(const char *state);
/* Interval at which to send WATCHDOG=1 (half of WATCHDOG_USEC), 0 when no watchdog is wanted or
 * WATCHDOG_PID is not ours. */
uint64_t bh_watchdog_interval_ns(void);
#endif
