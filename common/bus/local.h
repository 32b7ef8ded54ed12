/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/local.h - frames between processes of one host, over Unix sockets
 *
 * What ZeroMQ does over ipc://, without its I/O thread: whoever owns the socket reads and writes
 * it, so a message costs one system call a side instead of three wake-ups. One side listens and
 * knows its peers by name, the other connects, again and again, under its own. On the wire: frames
 * of a 4-byte length (host order) and as many bytes; the first one of a connection is "BRTH" and
 * the name of who connects.
 *
 * Rules: frames of one connection arrive in order, whole or not at all. What is queued for a peer
 * that listens survives the connection, but for a frame that had begun to leave; what is queued for
 * one that connected does not. What that one sent before it closed is received all the same, and
 * until it is, the peer takes nothing (BH_BUS_FULL) but is not gone. A second peer of the same name
 * takes over from the first, and what that one said last is lost if it was not received yet. Who
 * sends a frame above the limit, or no greeting, loses the connection. At most
 * BH_LOCAL_CONNECTIONS; then those that have not said their names go, oldest first. Threads: one
 * owner.
 */
#ifndef BH_BUS_LOCAL_H
#define BH_BUS_LOCAL_H

#include "common/bus/bus.h"

#define BH_LOCAL_CONNECTIONS 256u
#define BH_LOCAL_HEADER      4u

struct bh_local;
struct bh_local_limits {
    size_t frame_bytes;  /* of a frame that comes in */
    unsigned frames;     /* that wait for one peer, beyond what the kernel holds */
    size_t queued_bytes; /* the same; one frame always may */
};
/* Binds; the file is the caller's to check before and to unlink. */
int bh_local_listen(const char *path, const struct bh_local_limits *limits, struct bh_local **ret,
                    struct bh_err *err);
/* Succeeds whether somebody listens or not. */
int bh_local_connect(const char *path, const char *name, const struct bh_local_limits *limits,
                     struct bh_local **ret, struct bh_err *err);
/* What waits to leave gets linger_ms to do so, where somebody is there to take it. NULL allowed. */
void bh_local_close(struct bh_local *l, int linger_ms);
/* Readable as long as bh_local_next() has something to do that is not in memory already. */
int bh_local_fd(const struct bh_local *l);
/* In memory: the descriptor does not tell of these. */
bool bh_local_pending(const struct bh_local *l);
/* frame: BH_LOCAL_HEADER bytes of room, which are filled in, and n - BH_LOCAL_HEADER bytes. to: for
 * who listens. BH_BUS_OK, _FULL or _NO_PEER. */
enum bh_bus_outcome bh_local_send(struct bh_local *l, const struct bh_peer *to, uint8_t *frame,
                                  size_t n);
/* The next frame of anybody, fair among them; valid until the next call. It also accepts, connects
 * again, and sends what was waiting. False: nothing there; after frames of before it may not have
 * looked again, then the descriptor tells. */
bool bh_local_next(struct bh_local *l, struct bh_peer *ret_from, const uint8_t **ret_p,
                   size_t *ret_n);
#endif
