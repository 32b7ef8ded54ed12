/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/bus.c - messages between Berth's processes (ZeroMQ + protobuf-c)
 *
 * Owns:       one socket a struct bh_bus; the process's one ZeroMQ context, which lives from the
 *             first open to the last close.
 * Invariants: no call blocks, but closing after bh_bus_linger; else it loses what it still holds.
 * Runs in:    the thread that owns the socket; opening and closing from any thread.
 * Fails with: negative errno at open, enum bh_bus_outcome afterwards.
 */
#include "common/bus/bus_int.h"
#include "common/bus/curve_int.h"

#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

/* Frames, not bytes: credit in the protocol keeps queues far shorter; this only bounds the damage.
 */
#define HWM_FRAMES       1024
#define RECONNECT_MS     20
#define RECONNECT_MAX_MS 500
struct bh_bus {
    void *socket;
    bool router;
    char *path; /* ROUTER: the file we made, and which one it is; libzmq leaves it behind */
    ino_t inode;
    struct bh_bus_gate *gate; /* who may talk over tcp; NULL: it does not listen there */
    struct bh_bus_stats stats;
};

/* The one process-wide object: ZeroMQ wants one context a process (its I/O thread and limits). */
static struct {
    pthread_mutex_t lock;
    void *context;
    unsigned users;
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *context_get(void)
{
    pthread_mutex_lock(&shared.lock);
    if (!shared.context)
        shared.context = zmq_ctx_new();
    void *ctx = shared.context;
    if (ctx)
        shared.users++;
    pthread_mutex_unlock(&shared.lock);
    return ctx;
}

static void context_put(void)
{
    pthread_mutex_lock(&shared.lock);
    bh_assert(shared.users > 0);
    if (--shared.users == 0) {
        /* Waits for unsent messages only where somebody asked for it (bh_bus_linger). */
        while (zmq_ctx_term(shared.context) < 0 && errno == EINTR)
            ;
        shared.context = NULL;
    }
    pthread_mutex_unlock(&shared.lock);
}

static int set_int(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof(value));
}

static int set_options(void *s, enum bh_bus_role role, const char *identity)
{
    const bool service = role == BH_BUS_SERVICE_BIND, router = role != BH_BUS_DEALER_CONNECT;
    const int64_t max_bytes = service ? BH_BUS_SERVICE_BYTES : BH_BUS_MAX_BYTES;
    const int hwm = service ? BH_BUS_SERVICE_QUEUE : HWM_FRAMES;
    if (set_int(s, ZMQ_LINGER, 0) < 0 || set_int(s, ZMQ_SNDHWM, hwm) < 0 ||
        set_int(s, ZMQ_RCVHWM, hwm) < 0 ||
        zmq_setsockopt(s, ZMQ_MAXMSGSIZE, &max_bytes, sizeof(max_bytes)) < 0 ||
        set_int(s, ZMQ_RECONNECT_IVL, RECONNECT_MS) < 0 ||
        set_int(s, ZMQ_RECONNECT_IVL_MAX, RECONNECT_MAX_MS) < 0)
        return -errno;
    if (router &&
        (set_int(s, ZMQ_ROUTER_MANDATORY, 1) < 0 || set_int(s, ZMQ_ROUTER_HANDOVER, 1) < 0))
        return -errno;
    if (!router && zmq_setsockopt(s, ZMQ_ROUTING_ID, identity, strlen(identity)) < 0)
        return -errno;
    return 0;
}

static int attach(struct bh_bus *b, const char *endpoint, const char *path, struct bh_err *err)
{
    int rc = b->router ? zmq_bind(b->socket, endpoint) : zmq_connect(b->socket, endpoint);
    if (rc < 0)
        return bh_err_set(err, -errno, "socket \"%s\": %s", path, zmq_strerror(errno));
    if (!b->router)
        return 0;
    /* libzmq creates it with what the umask leaves; connecting takes write permission. */
    struct stat st;
    if (chmod(path, 0660) < 0 || stat(path, &st) < 0)
        return bh_err_set(err, -errno, "socket \"%s\": %s", path, strerror(errno));
    b->path = bh_strdup(path);
    b->inode = st.st_ino;
    return 0;
}

int bh_bus_bare(enum bh_bus_role role, const char *identity, struct bh_bus **ret,
                struct bh_err *err)
{
    const bool router = role != BH_BUS_DEALER_CONNECT;
    size_t id_n = identity ? strlen(identity) : 0;
    int rc = 0;

    bh_assert(router ? !identity : (id_n > 0 && id_n <= sizeof(((struct bh_peer *)0)->id)));
    void *ctx = context_get();
    if (!ctx)
        return bh_err_set(err, -errno, "message context: %s", zmq_strerror(errno));
    struct bh_bus *b = bh_calloc(1, sizeof(*b));
    b->router = router;
    b->socket = zmq_socket(ctx, router ? ZMQ_ROUTER : ZMQ_DEALER);
    if (!b->socket)
        rc = bh_err_set(err, -errno, "message socket: %s", zmq_strerror(errno));
    if (rc == 0 && (rc = set_options(b->socket, role, identity)) < 0)
        bh_err_set(err, rc, "message socket: %s", zmq_strerror(-rc));
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
    struct bh_bus *b = NULL;
    const char *path = NULL;
    int rc = bh_bus_check_path(endpoint, role != BH_BUS_DEALER_CONNECT, &path, err);

    if (rc == 0)
        rc = bh_bus_bare(role, identity, &b, err);
    if (rc == 0)
        rc = attach(b, endpoint, path, err);
    if (rc < 0) {
        bh_bus_close(b);
        return rc;
    }
    *ret = b;
    return 0;
}

void *bh_bus_context(const struct bh_bus *b)
{
    (void)b; /* it holds the context as long as it lives */
    return shared.context;
}

void bh_bus_set_gate(struct bh_bus *b, struct bh_bus_gate *g)
{
    bh_assert(!b->gate);
    b->gate = g;
}

void bh_bus_close(struct bh_bus *b)
{
    if (!b)
        return;
    struct stat st;
    if (b->path && stat(b->path, &st) == 0 && st.st_ino == b->inode)
        unlink(b->path);
    if (b->socket)
        zmq_close(b->socket);
    bh_bus_gate_free(b->gate);
    context_put();
    free(b->path);
    free(b);
}

void bh_bus_linger(struct bh_bus *b, int ms)
{
    (void)set_int(b->socket, ZMQ_LINGER, ms);
}

void *bh_bus_socket(struct bh_bus *b)
{
    return b->socket;
}

int bh_bus_fd(struct bh_bus *b)
{
    int fd = -1;
    size_t n = sizeof(fd);
    int rc = zmq_getsockopt(b->socket, ZMQ_FD, &fd, &n);
    bh_assert(rc == 0);
    return fd;
}

void bh_bus_stats(const struct bh_bus *b, struct bh_bus_stats *ret)
{
    *ret = b->stats;
    ret->turned_away = b->gate ? bh_bus_gate_turned_away(b->gate) : 0;
}

/* ---- send -------------------------------------------------------------------------------------
 */

static int send_msg(void *socket, zmq_msg_t *msg, int flags)
{
    int rc;
    do
        rc = zmq_msg_send(msg, socket, flags | ZMQ_DONTWAIT);
    while (rc < 0 && errno == EINTR);
    return rc < 0 ? -errno : 0;
}

static int send_address(void *socket, const struct bh_peer *peer)
{
    zmq_msg_t id;
    if (zmq_msg_init_size(&id, peer->n) < 0)
        return -errno;
    memcpy(zmq_msg_data(&id), peer->id, peer->n);
    int rc = send_msg(socket, &id, ZMQ_SNDMORE);
    if (rc < 0)
        zmq_msg_close(&id);
    return rc;
}

static enum bh_bus_outcome send_failed(struct bh_bus *b, int rc)
{
    if (rc == -EAGAIN) {
        b->stats.full++;
        return BH_BUS_FULL;
    }
    /* EHOSTUNREACH; anything else would be a bug of ours or a dying context, where the peer is
     * just as unreachable. */
    b->stats.no_peer++;
    return BH_BUS_NO_PEER;
}

enum bh_bus_outcome bh_bus_send(struct bh_bus *b, const struct bh_peer *peer,
                                const Berth__Envelope *e)
{
    bh_assert(b->router == (peer != NULL));
    Berth__Envelope out = *e;
    out.has_version = 1;
    out.version = BH_BUS_VERSION;
    size_t n = bh_bus_validate(&out) ? SIZE_MAX : berth__envelope__get_packed_size(&out);
    if (n > BH_BUS_MAX_BYTES) {
        b->stats.bad++;
        return BH_BUS_BAD;
    }

    int rc = peer ? send_address(b->socket, peer) : 0;
    if (rc < 0)
        return send_failed(b, rc);
    zmq_msg_t msg;
    if (zmq_msg_init_size(&msg, n) < 0)
        abort(); /* out of memory, as in base.h: half a message cannot be taken back */
    berth__envelope__pack(&out, zmq_msg_data(&msg));
    rc = send_msg(b->socket, &msg, 0);
    if (rc < 0) {
        zmq_msg_close(&msg);
        return send_failed(b, rc);
    }
    b->stats.sent++;
    b->stats.bytes_sent += n;
    return BH_BUS_OK;
}

/* ---- receive ----------------------------------------------------------------------------------
 */

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
    zmq_msg_t msg;
    struct bh_peer peer = {.n = 0};

    zmq_msg_init(&msg);
    if (recv_msg(b->socket, &msg) < 0) {
        zmq_msg_close(&msg);
        return BH_BUS_EMPTY;
    }
    Berth__Envelope *e = NULL;
    if ((!b->router || take_address(b, &msg, &peer)) && !zmq_msg_more(&msg) && may_talk(b, &msg)) {
        b->stats.bytes_received += zmq_msg_size(&msg);
        e = bh_bus_decode(a, zmq_msg_data(&msg), zmq_msg_size(&msg));
    }
    drop_rest(b->socket, &msg);
    zmq_msg_close(&msg);
    if (b->router)
        *ret_peer = peer;
    if (!e) {
        b->stats.bad++;
        return BH_BUS_BAD;
    }
    b->stats.received++;
    *ret_e = e;
    return BH_BUS_OK;
}
