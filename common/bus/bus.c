/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/bus.c - messages between Berth's processes: local sockets (local.c) or ZeroMQ over tcp
 *                    (tcp.c), protobuf-c above
 *
 * Owns:       what a struct bh_bus holds.
 * Invariants: no call blocks, but closing after bh_bus_linger and bh_bus_wait.
 * Runs in:    the thread that owns the bus; opening and closing from any thread.
 * Fails with: negative errno at open, enum bh_bus_outcome afterwards.
 */
#include "common/bus/bus_int.h"
#include "common/bus/curve_int.h"

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#define QUEUE_BYTES ((size_t)64 << 20) /* for one peer; the protocols' credit stays far below */
#define FRAME_KEPT  ((size_t)1 << 20)

/* The file's mode: connecting takes write permission. */
static int own_path(struct bh_bus *b, const char *path, struct bh_err *err)
{
    struct stat st;

    if (chmod(path, 0660) < 0 || stat(path, &st) < 0)
        return bh_err_set(err, -errno, "socket \"%s\": %s", path, strerror(errno));
    b->path = bh_strdup(path);
    b->inode = st.st_ino;
    return 0;
}

int bh_bus_open(enum bh_bus_role role, const char *endpoint, const char *identity,
                struct bh_bus **ret, struct bh_err *err)
{
    const bool service = role == BH_BUS_SERVICE_BIND, router = role != BH_BUS_DEALER_CONNECT;
    const struct bh_local_limits limits = {
        .frame_bytes = service ? BH_BUS_SERVICE_BYTES : BH_BUS_MAX_BYTES,
        .frames = service ? BH_BUS_SERVICE_QUEUE : BH_BUS_QUEUE_FRAMES,
        .queued_bytes = QUEUE_BYTES};
    const char *path = NULL;
    struct bh_bus *b;
    int rc = bh_bus_check_path(endpoint, router, &path, err);

    bh_assert(router ? !identity : identity && *identity);
    if (rc < 0)
        return rc;
    b = bh_calloc(1, sizeof(*b));
    b->router = router;
    rc = router ? bh_local_listen(path, &limits, &b->local, err)
                : bh_local_connect(path, identity, &limits, &b->local, err);
    if (rc == 0 && router)
        rc = own_path(b, path, err);
    if (rc < 0) {
        bh_bus_close(b);
        return rc;
    }
    *ret = b;
    return 0;
}

void bh_bus_close(struct bh_bus *b)
{
    struct stat st;

    if (!b)
        return;
    if (b->path && stat(b->path, &st) == 0 && st.st_ino == b->inode)
        unlink(b->path);
    bh_local_close(b->local, b->linger_ms);
    bh_bus_tcp_close(b);
    bh_buf_fini(&b->frame);
    free(b->path);
    free(b);
}

void bh_bus_linger(struct bh_bus *b, int ms)
{
    b->linger_ms = ms;
}

/* Something is there that no descriptor tells of. */
static bool pending(struct bh_bus *b)
{
    int events = 0;
    size_t n = sizeof(events);

    if (b->local && bh_local_pending(b->local))
        return true;
    while (b->socket && zmq_getsockopt(b->socket, ZMQ_EVENTS, &events, &n) < 0)
        if (zmq_errno() != EINTR)
            return false;
    return events & ZMQ_POLLIN;
}

void bh_bus_wait(struct bh_bus *b, int ms)
{
    struct pollfd p[2] = {{.fd = -1, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
    size_t n = sizeof(p[1].fd);

    if (b->local)
        p[0].fd = bh_local_fd(b->local);
    if (b->socket && zmq_getsockopt(b->socket, ZMQ_FD, &p[1].fd, &n) < 0)
        p[1].fd = -1;
    if (!pending(b))
        (void)poll(p, 2, ms);
}

void bh_bus_stats(const struct bh_bus *b, struct bh_bus_stats *ret)
{
    *ret = b->stats;
    ret->turned_away = b->gate ? bh_bus_gate_turned_away(b->gate) : 0;
}

/* ---- send -------------------------------------------------------------------------------------
 */

/* Room for a frame of n bytes. */
static uint8_t *new_frame(struct bh_bus *b, size_t n)
{
    if (b->frame.cap > FRAME_KEPT)
        bh_buf_fini(&b->frame);
    bh_buf_reset(&b->frame);
    bh_buf_reserve(&b->frame, BH_LOCAL_HEADER + n);
    return (uint8_t *)b->frame.p;
}

enum bh_bus_outcome bh_bus_send_bytes(struct bh_bus *b, const struct bh_peer *peer, const void *p,
                                      size_t n)
{
    uint8_t *frame = new_frame(b, n);

    memcpy(frame + BH_LOCAL_HEADER, p, n);
    return bh_local_send(b->local, peer, frame, BH_LOCAL_HEADER + n);
}

static enum bh_bus_outcome deliver(struct bh_bus *b, const struct bh_peer *peer,
                                   const Berth__Envelope *e, size_t n)
{
    enum bh_bus_outcome o = BH_BUS_NO_PEER;

    if (b->local) {
        uint8_t *frame = new_frame(b, n);
        berth__envelope__pack(e, frame + BH_LOCAL_HEADER);
        o = bh_local_send(b->local, peer, frame, BH_LOCAL_HEADER + n);
    }
    return o == BH_BUS_NO_PEER && b->socket ? bh_bus_tcp_send(b, peer, e, n) : o;
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
    if (n <= BH_BUS_MAX_BYTES)
        o = deliver(b, peer, &out, n);
    b->stats.bad += o == BH_BUS_BAD;
    b->stats.full += o == BH_BUS_FULL;
    b->stats.no_peer += o == BH_BUS_NO_PEER;
    if (o != BH_BUS_OK)
        return o;
    b->stats.sent++;
    b->stats.bytes_sent += n;
    return BH_BUS_OK;
}

/* ---- receive ----------------------------------------------------------------------------------
 */

static enum bh_bus_outcome local_recv(struct bh_bus *b, struct bh_arena *a,
                                      struct bh_peer *ret_peer, Berth__Envelope **ret_e)
{
    const uint8_t *p;
    size_t n;

    if (!bh_local_next(b->local, ret_peer, &p, &n))
        return BH_BUS_EMPTY;
    b->stats.bytes_received += n;
    *ret_e = bh_bus_decode(a, p, n);
    return *ret_e ? BH_BUS_OK : BH_BUS_BAD;
}

enum bh_bus_outcome bh_bus_recv(struct bh_bus *b, struct bh_arena *a, struct bh_peer *ret_peer,
                                Berth__Envelope **ret_e)
{
    enum bh_bus_outcome o = BH_BUS_EMPTY;
    struct bh_peer peer = {.n = 0};
    Berth__Envelope *e = NULL;

    b->turn = !b->turn;
    for (unsigned i = 0; i < 2 && o == BH_BUS_EMPTY; i++) {
        if (b->local && b->turn == (i == 0))
            o = local_recv(b, a, &peer, &e);
        else if (b->socket && b->turn != (i == 0))
            o = bh_bus_tcp_recv(b, a, &peer, &e);
    }
    if (o == BH_BUS_EMPTY)
        return o;
    if (b->router)
        *ret_peer = peer;
    b->stats.bad += o == BH_BUS_BAD;
    b->stats.received += o == BH_BUS_OK;
    if (o == BH_BUS_OK)
        *ret_e = e;
    return o;
}
