/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/stream.h - life of the page's streams; what subjects publish: console.h
 */
#ifndef BH_CONSOLE_STREAM_H
#define BH_CONSOLE_STREAM_H

#include "simulator/console/console.h"

void bh_console_streams_start(struct bh_console *c);
void bh_console_streams_stop(struct bh_console *c); /* the streams themselves ended with HTTP */
bh_console_fn bh_console_watch, bh_console_overview;
#endif
