/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/bus.c - messages between Berth's processes: ZeroMQ sockets, protobuf-c above
 *
 * Owns:       what a struct bh_bus holds.
 * Invariants: no call blocks, but closing after bh_bus_linger and bh_bus_wait. A message is two
 *             frames at a ROUTER (the peer's name, the bytes), one at a DEALER.
 * Runs in:    the thread that owns the bus; opening and closing from any thread.
 * Fails with: negative errno at open, enum bh_bus_outcome afterwards.
 */
#include "common/bus/bus_int.h"
#include "common/bus/curve_int.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>
#include <zmq.h>

#define RECONNECT_MS     20
#define RECONNECT_MAX_MS 500
#define HANDSHAKE_MS     1000 /* of this host; a peer that says nothing is cut off after it */

/* ---- life ------------------------------------------------------------------------------------ */

int bh_bus_set_int(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof(value));
}

int bh_bus_set_ints(void *socket, const struct bh_bus_option *o, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bh_bus_set_int(socket, o[i].option, o[i].value) < 0)
            return -errno;
    return 0;
}

static int set_options(void *s, enum bh_bus_role role, const char *identity)
{
    const bool service = role == BH_BUS_SERVICE_BIND;
    const int64_t max_bytes = service ? BH_BUS_SERVICE_BYTES : BH_BUS_MAX_BYTES;
    const int queue = service ? BH_BUS_SERVICE_QUEUE : BH_BUS_QUEUE_FRAMES;
    const struct bh_bus_option all[] = {{ZMQ_LINGER, 0},
                                        {ZMQ_SNDHWM, queue},
                                        {ZMQ_RCVHWM, queue},
                                        {ZMQ_RECONNECT_IVL, RECONNECT_MS},
                                        {ZMQ_RECONNECT_IVL_MAX, RECONNECT_MAX_MS},
                                        {ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS}};
    static const struct bh_bus_option router[] = {{ZMQ_ROUTER_MANDATORY, 1},
                                                  {ZMQ_ROUTER_HANDOVER, 1}};
    int rc = bh_bus_set_ints(s, all, BH_ARRAY_LEN(all));

    if (rc == 0 && zmq_setsockopt(s, ZMQ_MAXMSGSIZE, &max_bytes, sizeof(max_bytes)) < 0)
        rc = -errno;
    if (rc < 0 || role != BH_BUS_DEALER_CONNECT)
        return rc < 0 ? rc : bh_bus_set_ints(s, router, BH_ARRAY_LEN(router));
    return zmq_setsockopt(s, ZMQ_ROUTING_ID, identity, strlen(identity)) < 0 ? -errno : 0;
}

int bh_bus_new(enum bh_bus_role role, const char *identity, struct bh_bus **ret, struct bh_err *err)
{
    const bool router = role != BH_BUS_DEALER_CONNECT;
    struct bh_bus *b;
    void *context;
    int rc = bh_bus_context_get(&context, err);

    if (rc < 0)
        return rc;
    bh_assert(router ? !identity : identity && *identity);
    b = bh_calloc(1, sizeof(*b));
    b->context = context;
    b->router = router;
    b->socket = zmq_socket(context, router ? ZMQ_ROUTER : ZMQ_DEALER);
    rc = b->socket ? set_options(b->socket, role, identity) : -errno;
    if (rc < 0) {
        if (!bh_err_lack(err, -rc))
            bh_err_set(err, rc, "message socket: %s", zmq_strerror(-rc));
        bh_bus_close(b);
        return rc;
    }
    *ret = b;
    return 0;
}

/* Where there is a domain libzmq refuses its old protocols, which any bytes could be. It asks whether
 * the peer may connect where there is a thread to answer (zap.c); then every domain has an answer. */
static int set_domain(struct bh_bus *b, const char *domain)
{
    return zmq_setsockopt(b->socket, ZMQ_ZAP_DOMAIN, domain, strlen(domain)) < 0 ? -errno : 0;
}

/* The address of a Unix socket's other end: HOST:UID:GID:PID, HOST being "localhost" or empty. */
static bool may_listen(void *arg, const struct bh_bus_zap_request *r, char ret_user[static 64])
{
    const char *ids = strchr(r->address, ':');
    struct bh_bus *b = arg;
    unsigned uid;
    int gid, pid;

    ret_user[0] = 0;
    return ids && sscanf(ids, ":%u:%d:%d", &uid, &gid, &pid) == 3 &&
           bh_bus_peers_admit(&b->peers, uid, pid, b->path);
}

static int connect_path(struct bh_bus *b, const char *endpoint, struct bh_err *err)
{
    static _Atomic unsigned
        n_domains; /* unique, so that a bus that closes does not ask another's */
    char domain[32];
    int rc = 0;

    snprintf(domain, sizeof(domain), "listener-%u", n_domains++);
    if (b->peers.parties)
        rc = bh_bus_zap_open(b->context, domain, may_listen, b, &b->zap, err);
    if (rc == 0 && b->zap && (rc = set_domain(b, domain)) < 0)
        return bh_err_set(err, rc, "socket \"%s\": %s", b->path, zmq_strerror(-rc));
    if (rc == 0 && zmq_connect(b->socket, endpoint) < 0)
        rc = bh_err_set(err, -errno, "socket \"%s\": %s", b->path, zmq_strerror(errno));
    return rc;
}

static int bind_path(struct bh_bus *b, const char *endpoint, struct bh_err *err)
{
    int fd, rc = bh_bus_door_open(b->path, &b->peers, &b->door, &fd, err);

    if (rc < 0)
        return rc;
    if ((rc = set_domain(b, BH_BUS_ZAP_DOOR)) < 0 ||
        bh_bus_set_int(b->socket, ZMQ_USE_FD, fd) < 0 || zmq_bind(b->socket, endpoint) < 0 ||
        bh_bus_set_int(b->socket, ZMQ_USE_FD, -1) < 0)
        rc = rc < 0 ? rc : -errno;
    if (rc < 0) {
        close(fd);
        return bh_err_set(err, rc, "socket \"%s\": %s", b->path, zmq_strerror(-rc));
    }
    return 0;
}

int bh_bus_open_among(enum bh_bus_role role, const char *endpoint, const char *identity,
                      const struct bh_bus_users *users, unsigned parties, struct bh_bus **ret,
                      struct bh_err *err)
{
    const bool router = role != BH_BUS_DEALER_CONNECT;
    const char *path = NULL;
    struct bh_bus *b = NULL;
    int rc = bh_bus_check_path(endpoint, router, &path, err);

    if (rc == 0)
        rc = bh_bus_new(role, identity, &b, err);
    if (rc < 0)
        return rc;
    b->path = bh_strdup(path);
    b->peers.users = users;
    b->peers.parties = parties;
    rc = router ? bind_path(b, endpoint, err) : connect_path(b, endpoint, err);
    if (rc < 0) {
        bh_bus_close(b);
        return rc;
    }
    *ret = b;
    return 0;
}

int bh_bus_open(enum bh_bus_role role, const char *endpoint, const char *identity,
                struct bh_bus **ret, struct bh_err *err)
{
    return bh_bus_open_among(role, endpoint, identity, NULL, 0, ret, err);
}

void bh_bus_close(struct bh_bus *b)
{
    if (!b)
        return;
    bh_bus_door_close(b->door);
    if (b->socket) {
        (void)bh_bus_set_int(b->socket, ZMQ_LINGER, b->linger_ms);
        zmq_close(b->socket);
    }
    bh_bus_zap_close(b->zap);
    bh_bus_gate_free(b->gate);
    bh_bus_context_put();
    free(b->path);
    free(b);
}

void bh_bus_linger(struct bh_bus *b, int ms)
{
    b->linger_ms = ms;
}

bool bh_bus_readable(struct bh_bus *b)
{
    int events = 0;
    size_t n = sizeof(events);

    while (zmq_getsockopt(b->socket, ZMQ_EVENTS, &events, &n) < 0)
        if (zmq_errno() != EINTR)
            return false; /* ETERM: the owner is about to close it */
    b->quiet = !(events & ZMQ_POLLIN);
    return !b->quiet;
}

void bh_bus_wait(struct bh_bus *b, int ms)
{
    struct pollfd p = {.fd = -1, .events = POLLIN};
    size_t n = sizeof(p.fd);

    if (zmq_getsockopt(b->socket, ZMQ_FD, &p.fd, &n) == 0 && !bh_bus_readable(b))
        (void)poll(&p, 1, ms);
}

void bh_bus_stats(const struct bh_bus *b, struct bh_bus_stats *ret)
{
    *ret = b->stats;
    ret->turned_away = b->gate ? bh_bus_gate_turned_away(b->gate) : 0;
    ret->strangers = b->peers.turned_away;
}

/* ---- send ------------------------------------------------------------------------------------ */

static int send_msg(void *socket, zmq_msg_t *msg, int flags)
{
    int rc;

    do
        rc = zmq_msg_send(msg, socket, flags | ZMQ_DONTWAIT);
    while (rc < 0 && errno == EINTR);
    if (rc < 0) {
        rc = -errno;
        zmq_msg_close(msg);
    }
    return BH_MIN(rc, 0);
}

static void new_msg(zmq_msg_t *msg, size_t n)
{
    if (zmq_msg_init_size(msg, n) < 0)
        abort(); /* out of memory, as in base.h: half a message cannot be taken back */
}

/* EHOSTUNREACH says that the peer is unknown, or that it left and was not read to its end: what it
 * said last, most of all why it left, comes first. Another failure would be a bug of ours or a dying
 * context, where the peer is just as unreachable. */
static enum bh_bus_outcome send_failed(struct bh_bus *b, int rc)
{
    return rc == -EAGAIN || (rc == -EHOSTUNREACH && bh_bus_readable(b)) ? BH_BUS_FULL
                                                                        : BH_BUS_NO_PEER;
}

/* msg: given away. */
static enum bh_bus_outcome deliver(struct bh_bus *b, const struct bh_peer *peer, zmq_msg_t *msg)
{
    int rc = 0;

    if (peer) {
        zmq_msg_t id;
        new_msg(&id, peer->n);
        memcpy(zmq_msg_data(&id), peer->id, peer->n);
        rc = send_msg(b->socket, &id, ZMQ_SNDMORE);
    }
    b->quiet = false; /* sending looks into the mailbox, too */
    if (rc < 0)
        zmq_msg_close(msg);
    else
        rc = send_msg(b->socket, msg, 0);
    return rc < 0 ? send_failed(b, rc) : BH_BUS_OK;
}

enum bh_bus_outcome bh_bus_send_bytes(struct bh_bus *b, const struct bh_peer *peer, const void *p,
                                      size_t n)
{
    zmq_msg_t msg;

    new_msg(&msg, n);
    memcpy(zmq_msg_data(&msg), p, n);
    return deliver(b, peer, &msg);
}

enum bh_bus_outcome bh_bus_send(struct bh_bus *b, const struct bh_peer *peer,
                                const Berth__Envelope *e)
{
    enum bh_bus_outcome o = BH_BUS_BAD;
    Berth__Envelope out = *e;

    bh_assert(b->router == (peer != NULL));
    out.has_version = 1;
    out.version = BH_BUS_VERSION;
    size_t n = bh_bus_validate(&out) ? SIZE_MAX : berth__envelope__get_packed_size(&out);
    if (n <= BH_BUS_MAX_BYTES) {
        zmq_msg_t msg;
        new_msg(&msg, n);
        berth__envelope__pack(&out, zmq_msg_data(&msg));
        o = deliver(b, peer, &msg);
    }
    b->stats.bad += o == BH_BUS_BAD;
    b->stats.full += o == BH_BUS_FULL;
    b->stats.no_peer += o == BH_BUS_NO_PEER;
    if (o != BH_BUS_OK)
        return o;
    b->stats.sent++;
    b->stats.bytes_sent += n;
    return BH_BUS_OK;
}

/* ---- receive --------------------------------------------------------------------------------- */

static int recv_msg(void *socket, zmq_msg_t *msg)
{
    int rc;

    do
        rc = zmq_msg_recv(msg, socket, ZMQ_DONTWAIT);
    while (rc < 0 && errno == EINTR);
    return rc < 0 ? -errno : 0;
}

/* Rest of a message that has more frames than the protocol. */
static void drop_rest(void *socket, zmq_msg_t *msg)
{
    while (zmq_msg_more(msg)) {
        zmq_msg_close(msg);
        zmq_msg_init(msg);
        if (recv_msg(socket, msg) < 0)
            return;
    }
}

static bool take_address(struct bh_bus *b, zmq_msg_t *msg, struct bh_peer *ret_peer)
{
    size_t n = zmq_msg_size(msg);

    if (n == 0 || n > sizeof(ret_peer->id) || !zmq_msg_more(msg))
        return false;
    memcpy(ret_peer->id, zmq_msg_data(msg), n);
    ret_peer->n = (uint8_t)n;
    zmq_msg_close(msg);
    zmq_msg_init(msg);
    return recv_msg(b->socket, msg) == 0;
}

/* Peers over tcp come with the key that let them in; those of the host's sockets with none. */
static bool may_talk(struct bh_bus *b, zmq_msg_t *msg)
{
    const char *key = b->gate ? zmq_msg_gets(msg, "User-Id") : NULL;

    return !key || !*key || bh_bus_gate_open(b->gate, key);
}

enum bh_bus_outcome bh_bus_recv(struct bh_bus *b, struct bh_arena *a, struct bh_peer *ret_peer,
                                Berth__Envelope **ret_e)
{
    struct bh_peer peer = {.n = 0};
    Berth__Envelope *e = NULL;
    zmq_msg_t msg;

    zmq_msg_init(&msg);
    int rc = recv_msg(b->socket, &msg);
    b->quiet = rc == -EAGAIN;
    if (rc < 0) {
        zmq_msg_close(&msg);
        return BH_BUS_EMPTY;
    }
    if ((!b->router || take_address(b, &msg, &peer)) && !zmq_msg_more(&msg) && may_talk(b, &msg)) {
        b->stats.bytes_received += zmq_msg_size(&msg);
        e = bh_bus_decode(a, zmq_msg_data(&msg), zmq_msg_size(&msg));
    }
    drop_rest(b->socket, &msg);
    zmq_msg_close(&msg);
    if (b->router)
        *ret_peer = peer;
    b->stats.bad += !e;
    b->stats.received += e != NULL;
    if (e)
        *ret_e = e;
    return e ? BH_BUS_OK : BH_BUS_BAD;
}
