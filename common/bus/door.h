/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/door.h - the listening Unix socket of a bus: its file, and which connections it takes
 *
 * libzmq is given the descriptor (ZMQ_USE_FD) and accepts from it in its I/O thread; a connection
 * passes the door before libzmq sees it. A door takes at most BH_BUS_CONNECTIONS at a time, only of
 * users that belong there (peers.h), and none when descriptors run out: a peer that is not taken
 * finds its connection closed and tries again. (libzmq 4.3.4 would end the process: its ipc
 * listener asserts that accept(2) does not fail with EMFILE.)
 * Threads: opening and closing from any, the rest is the I/O thread's.
 */
#ifndef BH_BUS_DOOR_H
#define BH_BUS_DOOR_H

#include "common/bus/bus.h"

struct bh_bus_door;
/* Binds and listens, mode 0660; the path was looked at before (bh_bus_check_path). peers: borrowed
 * until the door is closed. ret_fd: becomes libzmq's. */
int bh_bus_door_open(const char *path, struct bh_bus_peers *peers, struct bh_bus_door **ret,
                     int *ret_fd, struct bh_err *err);
/* Removes the file and takes no connection any more; libzmq closes the descriptor when it likes.
 * NULL allowed. */
void bh_bus_door_close(struct bh_bus_door *d);
#endif
