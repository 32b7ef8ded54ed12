/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/bus.h - messages between Berth's processes (ZeroMQ and protobuf-c)
 *
 * Endpoints: the watcher binds ROUTER <runtime>/watcher.sock, schedulers connect DEALER; the
 * scheduler binds ROUTER <runtime>/scheduler.sock, binders connect DEALER, and the service ROUTER
 * <runtime>/control.sock for callers (scheduler/daemon/control.h). One frame = one
 * berth.Envelope (proto/berth.proto), at most BH_BUS_MAX_BYTES, with a version. Across hosts it is
 * tcp under CURVE (curve.h). Delivery is the protocol's business (sequence numbers, credit, ids,
 * repeat), never the sockets': closing loses what has not left (but see bh_bus_linger), a stranger
 * is an error, a second peer of the same name takes over, queues and frames are bounded. A message
 * that does not decode, has another version, or breaks a rule of bh_bus_validate is counted and
 * dropped. Sockets are 0660 in a directory that the group may enter; each peer's user is checked
 * (peers.h, door.h); paths above 107 bytes are refused. Nothing may fork while a bus is open.
 * Threads: one owner per socket.
 */
#ifndef BH_BUS_H
#define BH_BUS_H

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/bus/peers.h"
#include "proto/berth.pb-c.h"

#define BH_BUS_VERSION     3u /* 3: patches; a binder that ignored one would post a Binding */
#define BH_BUS_MAX_BYTES   (16u << 20)
#define BH_BUS_BATCH_ITEMS 512u
/* Frames for one peer; credit in the protocols keeps queues far shorter, this bounds the damage. */
#define BH_BUS_QUEUE_FRAMES 1024
/* A service takes no larger requests, and keeps no more of them, or of answers, for one peer. */
#define BH_BUS_SERVICE_BYTES ((size_t)64 << 10)
#define BH_BUS_SERVICE_QUEUE 8
#define BH_BUS_CONTROL_PODS  256u /* in one control_reply */
#define BH_BUS_CONNECTIONS   256u /* at one socket of this host */

/* A write that a binder began just before its grant ended is over by then, one way or the other. */
#define BH_BUS_GRANT_TAIL_NS UINT64_C(2000000000)
/* A binder that was not heard for so long has lost its items: others get them. */
#define BH_BUS_SILENCE_NS UINT64_C(3000000000)

struct uv_loop_s;
struct bh_bus;   /* one socket */
struct bh_peer { /* routing id of a ROUTER's peer */
    uint8_t id[32];
    uint8_t n;
};
enum bh_bus_role {
    BH_BUS_ROUTER_BIND,
    BH_BUS_DEALER_CONNECT,
    BH_BUS_SERVICE_BIND /* a ROUTER that answers strangers: small requests, short queues */
};
/* endpoint: "ipc:///run/berth/watcher.sock". identity: DEALER's routing id (unique per process and
 * start), NULL for ROUTER. */
int bh_bus_open(enum bh_bus_role role, const char *endpoint, const char *identity,
                struct bh_bus **ret, struct bh_err *err);
/* The same, among users that are these parties (bits of enum bh_bus_party): a peer of another user
 * that connects is turned away, one that listens is not spoken to but tried again. Without this a
 * listener admits its own user and root, a connector speaks to any listener. users: outlives the
 * bus. */
int bh_bus_open_among(enum bh_bus_role role, const char *endpoint, const char *identity,
                      const struct bh_bus_users *users, unsigned parties, struct bh_bus **ret,
                      struct bh_err *err);
void bh_bus_close(struct bh_bus *b);
/* For a last message: closing gives what was sent this long to leave. */
void bh_bus_linger(struct bh_bus *b, int ms);
/* On a loop: on_readable is called when bh_bus_recv may find something. It receives, at most
 * BH_BUS_BURST messages, or only wakes the thread that will; what is left is announced again. True:
 * it stopped at the bound. Closing is asynchronous; NULL allowed. */
#define BH_BUS_BURST 256
struct bh_bus_poll;
struct bh_bus_poll *bh_bus_poll_new(struct uv_loop_s *loop, struct bh_bus *b,
                                    bool (*on_readable)(void *), void *arg);
void bh_bus_poll_close(struct bh_bus_poll *p);
/* Without a loop: until bh_bus_recv may find something, at most ms. */
void bh_bus_wait(struct bh_bus *b, int ms);

enum bh_bus_outcome {
    BH_BUS_OK,
    BH_BUS_EMPTY,   /* recv: nothing there */
    BH_BUS_FULL,    /* send: the peer's queue is full, or it left and was not read to the end:
                       receive, try later */
    BH_BUS_NO_PEER, /* send: ROUTER does not know the peer (any more) */
    BH_BUS_BAD      /* recv: a message was dropped as invalid (counted); call again.
                       send: e breaks a rule or is larger than BH_BUS_MAX_BYTES, nothing was sent */
};
/* Never blocks. peer: ROUTER only. The version is filled in. */
enum bh_bus_outcome bh_bus_send(struct bh_bus *b, const struct bh_peer *peer,
                                const Berth__Envelope *e);
/* The message lives in a until reset. ret_peer is set with BH_BUS_BAD too; n = 0 when the message
 * had no address. */
enum bh_bus_outcome bh_bus_recv(struct bh_bus *b, struct bh_arena *a, struct bh_peer *ret_peer,
                                Berth__Envelope **ret_e);
struct bh_bus_stats {
    uint64_t sent, received, bytes_sent, bytes_received, bad, full, no_peer;
    uint64_t turned_away; /* handshakes over tcp with a key that is not allowed */
    uint64_t strangers;   /* connections of this host whose user has no business here */
};
void bh_bus_stats(const struct bh_bus *b, struct bh_bus_stats *ret);
/* The rules: exactly one payload, required fields present, counts within BH_BUS_BATCH_ITEMS,
 * strings bounded. NULL when fine, else what is wrong. */
const char *bh_bus_validate(const Berth__Envelope *e);
/* Does a process listen there? 0, -ENOENT, -ECONNREFUSED (left over from one that was killed),
 * -EACCES, -EINVAL. Connects for an instant. */
int bh_bus_probe(const char *endpoint);
/* "ipc://<runtime_dir>/<name>.sock" */
int bh_bus_endpoint(const char *runtime_dir, const char *name, char out[static 128],
                    struct bh_err *err);
#endif
