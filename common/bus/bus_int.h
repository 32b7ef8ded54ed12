/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/bus_int.h - between the files of common/bus
 */
#ifndef BH_BUS_INT_H
#define BH_BUS_INT_H

#include <sys/types.h>

#include "common/base/buf.h"
#include "common/bus/bus.h"
#include "common/bus/local.h"

/* On this host: local. Over tcp: a ZeroMQ socket. A ROUTER that listens on both has both. */
struct bh_bus {
    struct bh_local *local;
    void *socket;
    bool router;
    int linger_ms;
    char *path; /* ROUTER: the file we made, and which one it is */
    ino_t inode;
    struct bh_buf frame;      /* the last one sent */
    bool turn;                /* who is asked first next time: local or tcp */
    struct bh_bus_gate *gate; /* who may talk over tcp; NULL: it does not listen there */
    struct bh_bus_stats stats;
};

/* tcp.c: ZeroMQ's part */
int bh_bus_tcp_new(struct bh_bus *b, const char *identity, struct bh_err *err);
void bh_bus_tcp_close(struct bh_bus *b);
enum bh_bus_outcome bh_bus_tcp_send(struct bh_bus *b, const struct bh_peer *peer,
                                    const Berth__Envelope *e, size_t n);
enum bh_bus_outcome bh_bus_tcp_recv(struct bh_bus *b, struct bh_arena *a, struct bh_peer *ret_peer,
                                    Berth__Envelope **ret_e);
/* Any bytes as one frame, for tests of what a receiver makes of them. Over local sockets only. */
enum bh_bus_outcome bh_bus_send_bytes(struct bh_bus *b, const struct bh_peer *peer, const void *p,
                                      size_t n);

/* Checks that endpoint is "ipc://" + absolute path of at most 107 bytes in a directory that not
 * everybody may write. With for_bind also: nothing but a dead socket of ours is in the way.
 * 0, -EINVAL, -ENAMETOOLONG, -ENOENT, -EPERM, -EEXIST, -EADDRINUSE. *ret_path points into endpoint.
 */
int bh_bus_check_path(const char *endpoint, bool for_bind, const char **ret_path,
                      struct bh_err *err);
/* The message, living in a; NULL when the bytes are no valid message of our version. A frame whose
 * messages repeat fields more often than any valid one does is refused before it is unpacked, so
 * that a few bytes cannot become gigabytes of structs. */
Berth__Envelope *bh_bus_decode(struct bh_arena *a, const void *p, size_t n);
#endif
