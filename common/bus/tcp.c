/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/tcp.c - the ZeroMQ socket of a bus that goes over tcp (curve.h)
 *
 * Owns:       the socket; the process's one ZeroMQ context, which lives from the first such bus to
 *             the last.
 * Runs in:    the thread that owns the bus; opening and closing from any thread.
 */
#include "common/bus/bus_int.h"
#include "common/bus/curve_int.h"

#include <errno.h>
#include <pthread.h>
#include <zmq.h>

#define RECONNECT_MS     20
#define RECONNECT_MAX_MS 500

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

static int set_options(void *s, bool router, const char *identity)
{
    const int64_t max_bytes = BH_BUS_MAX_BYTES;
    if (set_int(s, ZMQ_LINGER, 0) < 0 || set_int(s, ZMQ_SNDHWM, BH_BUS_QUEUE_FRAMES) < 0 ||
        set_int(s, ZMQ_RCVHWM, BH_BUS_QUEUE_FRAMES) < 0 ||
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

int bh_bus_tcp_new(struct bh_bus *b, const char *identity, struct bh_err *err)
{
    void *ctx = context_get();
    int rc;

    if (!ctx)
        return bh_err_set(err, -errno, "message context: %s", zmq_strerror(errno));
    b->socket = zmq_socket(ctx, b->router ? ZMQ_ROUTER : ZMQ_DEALER);
    if (!b->socket) {
        rc = bh_err_set(err, -errno, "message socket: %s", zmq_strerror(errno));
        context_put();
        return rc;
    }
    rc = set_options(b->socket, b->router, identity);
    return rc < 0 ? bh_err_set(err, rc, "message socket: %s", zmq_strerror(-rc)) : 0;
}

void bh_bus_tcp_close(struct bh_bus *b)
{
    if (!b->socket)
        return;
    (void)set_int(b->socket, ZMQ_LINGER, b->linger_ms);
    zmq_close(b->socket);
    bh_bus_gate_free(b->gate);
    context_put();
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

/* EHOSTUNREACH; anything else would be a bug of ours or a dying context, where the peer is just as
 * unreachable. */
static enum bh_bus_outcome send_failed(int rc)
{
    return rc == -EAGAIN ? BH_BUS_FULL : BH_BUS_NO_PEER;
}

enum bh_bus_outcome bh_bus_tcp_send(struct bh_bus *b, const struct bh_peer *peer,
                                    const Berth__Envelope *e, size_t n)
{
    int rc = peer ? send_address(b->socket, peer) : 0;
    if (rc < 0)
        return send_failed(rc);
    zmq_msg_t msg;
    if (zmq_msg_init_size(&msg, n) < 0)
        abort(); /* out of memory, as in base.h: half a message cannot be taken back */
    berth__envelope__pack(e, zmq_msg_data(&msg));
    rc = send_msg(b->socket, &msg, 0);
    if (rc < 0) {
        zmq_msg_close(&msg);
        return send_failed(rc);
    }
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

enum bh_bus_outcome bh_bus_tcp_recv(struct bh_bus *b, struct bh_arena *a, struct bh_peer *ret_peer,
                                    Berth__Envelope **ret_e)
{
    zmq_msg_t msg;

    zmq_msg_init(&msg);
    if (recv_msg(b->socket, &msg) < 0) {
        zmq_msg_close(&msg);
        return BH_BUS_EMPTY;
    }
    Berth__Envelope *e = NULL;
    if ((!b->router || take_address(b, &msg, ret_peer)) && !zmq_msg_more(&msg) &&
        may_talk(b, &msg)) {
        b->stats.bytes_received += zmq_msg_size(&msg);
        e = bh_bus_decode(a, zmq_msg_data(&msg), zmq_msg_size(&msg));
    }
    drop_rest(b->socket, &msg);
    zmq_msg_close(&msg);
    *ret_e = e;
    return e ? BH_BUS_OK : BH_BUS_BAD;
}
