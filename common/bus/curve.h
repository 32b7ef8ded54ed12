/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/curve.h - the bus across hosts: tcp:// under CURVE (ZeroMQ's CurveZMQ)
 *
 * A binder on another host connects to the scheduler over TCP. Both sides have a key pair; the
 * binder pins the scheduler's public key, the scheduler lets in peers whose public key lies in a
 * folder as NAME.pub. There is no TCP without keys: an endpoint without them is refused here, and a
 * peer without them by libzmq before a byte of a message is read. The folder is read again for each
 * handshake and once a second while messages come: a file that is added lets a binder in, one that
 * is removed shuts it out, connected or not, without a restart.
 * Files: NAME.key (secret, Z85, 40 characters, readable by its owner and group only), NAME.pub.
 * Threads: the owner's.
 */
#ifndef BH_BUS_CURVE_H
#define BH_BUS_CURVE_H

#include "common/bus/bus.h"

#define BH_BUS_KEY_TEXT  40u /* characters of a key in Z85 */
#define BH_BUS_MAX_ALLOW 1024u

/* Makes PATH.key (0600) and PATH.pub (0644). -EEXIST when one is there, -ENOTSUP when libzmq has no
 * CURVE. */
int bh_bus_keygen(const char *path, struct bh_err *err);

struct bh_bus_listen {
    const char *endpoint;  /* "tcp://10.0.0.1:10270", "tcp://[::1]:10270", "tcp://127.0.0.1:*" */
    const char *key_file;  /* our secret key */
    const char *allow_dir; /* *.pub of the peers that may connect */
};
/* A ROUTER takes peers there too; once a bus, after bh_bus_open. -EINVAL (endpoint, keys),
 * -EPERM (a key that others may read), -EADDRINUSE ... ret_endpoint: where it listens. */
int bh_bus_listen(struct bh_bus *b, const struct bh_bus_listen *l, char ret_endpoint[static 128],
                  struct bh_err *err);

struct bh_bus_dial {
    const char *endpoint; /* "tcp://scheduler-host:10270" */
    const char *key_file; /* our secret key */
    const char *peer_pub; /* file with the listener's public key */
};
/* A DEALER over TCP, as bh_bus_open. It connects in the background, again and again. */
int bh_bus_dial(const struct bh_bus_dial *d, const char *identity, struct bh_bus **ret,
                struct bh_err *err);
bool bh_bus_is_tcp(const char *endpoint);
#endif
