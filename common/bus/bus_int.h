/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/bus_int.h - between the files of common/bus
 */
#ifndef BH_BUS_INT_H
#define BH_BUS_INT_H

#include "common/base/buf.h"
#include "common/bus/bus.h"
#include "common/bus/door.h"
#include "common/bus/zap.h"

struct bh_bus {
    void *context, *socket;
    bool router;
    bool
        quiet; /* nothing is there to be received; what changes that makes the descriptor readable */
    int linger_ms;
    char *path;               /* of this host's socket; NULL: a DEALER over tcp */
    struct bh_bus_door *door; /* ROUTER: the socket that listens there */
    struct bh_bus_zap *zap;   /* DEALER: asks peers whether the listener is allowed */
    struct bh_bus_peers peers;
    struct bh_bus_gate *gate; /* keys that may talk over tcp; NULL: it does not listen there */
    struct bh_bus_stats stats;
};

/* context.c */
int bh_bus_context_get(void **ret, struct bh_err *err);
void bh_bus_context_put(void);

/* bus.c: a socket that is neither bound nor connected. identity: DEALER's. */
int bh_bus_new(enum bh_bus_role role, const char *identity, struct bh_bus **ret,
               struct bh_err *err);
int bh_bus_set_int(void *socket, int option, int value); /* as zmq_setsockopt */
struct bh_bus_option {
    int option, value;
};
int bh_bus_set_ints(void *socket, const struct bh_bus_option *o, size_t n); /* -errno */
bool bh_bus_readable(struct bh_bus *b);
/* Any bytes as one frame, for tests of what a receiver makes of them. */
enum bh_bus_outcome bh_bus_send_bytes(struct bh_bus *b, const struct bh_peer *peer, const void *p,
                                      size_t n);

/* Checks that endpoint is "ipc://" + absolute path of at most 107 bytes in a directory that is
 * not world-writable. With for_bind also: nothing but a dead socket of ours is in the way.
 * 0, -EINVAL, -ENAMETOOLONG, -ENOENT, -EPERM, -EEXIST, -EADDRINUSE. *ret_path points into endpoint.
 */
int bh_bus_check_path(const char *endpoint, bool for_bind, const char **ret_path,
                      struct bh_err *err);
/* The message, living in a; NULL when the bytes are no valid message of our version. A frame whose
 * messages repeat fields more often than any valid one does is refused before it is unpacked, so
 * that a few bytes cannot become gigabytes of structs. */
Berth__Envelope *bh_bus_decode(struct bh_arena *a, const void *p, size_t n);
#endif
