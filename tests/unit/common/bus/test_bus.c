/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/bus/test_bus.c - sockets between processes: delivery, strangers, garbage,
 * limits
 */
#include "common/bus/bus_int.h"
#include "tests/unit/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define DEADLINE_NS (UINT64_C(120) * 1000 * 1000 * 1000)

static char *fresh_endpoint(void)
{
    static unsigned n;
    return bh_asprintf("ipc://%s/s%u.sock", bh_test_tmpdir(), n++);
}

struct pair {
    char *endpoint;
    struct bh_bus *router, *dealer;
    struct bh_arena arena;
};

/* What waits in a bus leaves when its owner looks for messages; nothing comes to this one. */
static void look(struct bh_bus *b)
{
    struct bh_arena a;
    struct bh_peer peer;
    Berth__Envelope *e;

    bh_arena_init(&a, 0);
    CU_ASSERT_EQUAL(bh_bus_recv(b, &a, &peer, &e), BH_BUS_EMPTY);
    bh_arena_fini(&a);
}

static struct bh_bus *open_ok(enum bh_bus_role role, const char *endpoint, const char *id)
{
    struct bh_bus *b = NULL;
    struct bh_err err = {{0}};
    int rc = bh_bus_open(role, endpoint, id, &b, &err);
    if (rc < 0)
        printf("# %s\n", err.msg);
    CU_ASSERT_EQUAL_FATAL(rc, 0);
    return b;
}

static void pair_open(struct pair *p)
{
    p->endpoint = fresh_endpoint();
    p->router = open_ok(BH_BUS_ROUTER_BIND, p->endpoint, NULL);
    p->dealer = open_ok(BH_BUS_DEALER_CONNECT, p->endpoint, "dealer-1");
    bh_arena_init(&p->arena, 0);
}

static void pair_close(struct pair *p)
{
    bh_bus_close(p->dealer);
    bh_bus_close(p->router);
    bh_arena_fini(&p->arena);
    free(p->endpoint);
}

/* Waits until a message (or a bad one) arrives or the deadline passes. */
static enum bh_bus_outcome recv_wait(struct bh_bus *b, struct bh_arena *a, struct bh_peer *peer,
                                     Berth__Envelope **e)
{
    uint64_t until = bh_mono_ns() + DEADLINE_NS;
    for (;;) {
        enum bh_bus_outcome o = bh_bus_recv(b, a, peer, e);
        if (o != BH_BUS_EMPTY || bh_mono_ns() > until)
            return o;
        bh_bus_wait(b, 1000);
    }
}

static enum bh_bus_outcome send_heartbeat(struct bh_bus *b, const struct bh_peer *peer, uint64_t n)
{
    Berth__Heartbeat h = BERTH__HEARTBEAT__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    h.has_progress = 1;
    h.progress = n;
    e.heartbeat = &h;
    return bh_bus_send(b, peer, &e);
}

static void send_raw(struct bh_bus *b, const void *p, size_t n)
{
    CU_ASSERT_EQUAL(bh_bus_send_bytes(b, NULL, p, n), BH_BUS_OK);
}

static void test_round_trip(void)
{
    struct pair p;
    struct bh_peer peer;
    Berth__Envelope *e = NULL;
    pair_open(&p);

    CU_ASSERT_EQUAL(send_heartbeat(p.dealer, NULL, 41), BH_BUS_OK);
    CU_ASSERT_EQUAL_FATAL(recv_wait(p.router, &p.arena, &peer, &e), BH_BUS_OK);
    CU_ASSERT_EQUAL(peer.n, 8);
    CU_ASSERT_EQUAL(memcmp(peer.id, "dealer-1", 8), 0);
    CU_ASSERT_EQUAL(e->version, BH_BUS_VERSION);
    CU_ASSERT_EQUAL(e->heartbeat->progress, 41);

    CU_ASSERT_EQUAL(send_heartbeat(p.router, &peer, 42), BH_BUS_OK);
    CU_ASSERT_EQUAL_FATAL(recv_wait(p.dealer, &p.arena, &peer, &e), BH_BUS_OK);
    CU_ASSERT_EQUAL(e->heartbeat->progress, 42);
    CU_ASSERT_EQUAL(bh_bus_recv(p.dealer, &p.arena, &peer, &e), BH_BUS_EMPTY);

    struct bh_bus_stats st;
    bh_bus_stats(p.dealer, &st);
    CU_ASSERT_EQUAL(st.sent, 1);
    CU_ASSERT_EQUAL(st.received, 1);
    CU_ASSERT_EQUAL(st.bad, 0);
    CU_ASSERT(st.bytes_sent > 0 && st.bytes_received > 0);
    pair_close(&p);
}

static void test_order_of_many(void)
{
    struct pair p;
    struct bh_peer peer;
    Berth__Envelope *e = NULL;
    uint64_t sent = 0, got = 0;
    pair_open(&p);
    uint64_t until = bh_mono_ns() + DEADLINE_NS;
    while (got < 20000 && bh_mono_ns() < until) {
        while (sent < 20000 && send_heartbeat(p.dealer, NULL, sent) == BH_BUS_OK)
            sent++;
        while (bh_bus_recv(p.router, &p.arena, &peer, &e) == BH_BUS_OK) {
            CU_ASSERT_EQUAL_FATAL(e->heartbeat->progress, got);
            got++;
            bh_arena_reset(&p.arena);
        }
        look(p.dealer);
    }
    CU_ASSERT_EQUAL(got, 20000);
    CU_ASSERT_EQUAL(sent, got);
    pair_close(&p);
}

static void test_unknown_peer(void)
{
    struct pair p;
    struct bh_peer stranger = {.id = "nobody", .n = 6};
    struct bh_bus_stats st;
    pair_open(&p);
    CU_ASSERT_EQUAL(send_heartbeat(p.router, &stranger, 1), BH_BUS_NO_PEER);
    bh_bus_stats(p.router, &st);
    CU_ASSERT_EQUAL(st.no_peer, 1);
    CU_ASSERT_EQUAL(st.sent, 0);
    pair_close(&p);
}

static void test_peer_that_went_away(void)
{
    struct pair p;
    struct bh_peer peer;
    Berth__Envelope *e = NULL;
    pair_open(&p);
    CU_ASSERT_EQUAL(send_heartbeat(p.dealer, NULL, 1), BH_BUS_OK);
    CU_ASSERT_EQUAL_FATAL(recv_wait(p.router, &p.arena, &peer, &e), BH_BUS_OK);
    bh_bus_close(p.dealer);
    p.dealer = NULL;

    enum bh_bus_outcome o = BH_BUS_OK;
    for (uint64_t until = bh_mono_ns() + DEADLINE_NS; bh_mono_ns() < until;) {
        o = send_heartbeat(p.router, &peer, 2);
        if (o == BH_BUS_NO_PEER)
            break;
        poll(NULL, 0, 1);
    }
    CU_ASSERT_EQUAL(o, BH_BUS_NO_PEER);
    pair_close(&p);
}

/* Closes it when what it sent has left. */
static void close_lingering(struct bh_bus *b)
{
    bh_bus_linger(b, (int)(DEADLINE_NS / 1000000));
    bh_bus_close(b);
}

/* Until the router knows that the peer is gone: what it is sent meanwhile goes nowhere. */
static enum bh_bus_outcome send_until_gone(struct bh_bus *router, const struct bh_peer *peer)
{
    enum bh_bus_outcome o = BH_BUS_OK;

    for (uint64_t until = bh_mono_ns() + DEADLINE_NS; bh_mono_ns() < until; poll(NULL, 0, 1)) {
        o = send_heartbeat(router, peer, 9);
        if (o != BH_BUS_OK)
            break;
    }
    return o;
}

/* Its last words were there before it went: what is sent to it in the meantime must not lose them,
 * and as long as they are unread it is not unknown. */
static void test_last_words(void)
{
    struct bh_peer peer;
    Berth__Envelope *e = NULL;

    for (unsigned round = 0; round < 200; round++) {
        struct pair p;
        pair_open(&p);
        CU_ASSERT_EQUAL(send_heartbeat(p.dealer, NULL, 1), BH_BUS_OK);
        CU_ASSERT_EQUAL_FATAL(recv_wait(p.router, &p.arena, &peer, &e), BH_BUS_OK);
        for (uint64_t k = 2; k <= 3; k++)
            CU_ASSERT_EQUAL(send_heartbeat(p.dealer, NULL, k), BH_BUS_OK);
        close_lingering(bh_take_ptr(p.dealer));
        for (uint64_t k = 2; k <= 3; k++) {
            CU_ASSERT_EQUAL_FATAL(send_until_gone(p.router, &peer), BH_BUS_FULL);
            CU_ASSERT_EQUAL_FATAL(bh_bus_recv(p.router, &p.arena, &peer, &e), BH_BUS_OK);
            CU_ASSERT_EQUAL_FATAL(e->heartbeat->progress, k);
        }
        look(p.router);
        CU_ASSERT_EQUAL(send_heartbeat(p.router, &peer, 4), BH_BUS_NO_PEER);
        pair_close(&p);
    }
}

/* The same where frames wait for it to read. */
static void test_last_words_of_one_that_does_not_read(void)
{
    struct pair p;
    struct bh_peer peer;
    Berth__Envelope *e = NULL;

    pair_open(&p);
    CU_ASSERT_EQUAL(send_heartbeat(p.dealer, NULL, 1), BH_BUS_OK);
    CU_ASSERT_EQUAL_FATAL(recv_wait(p.router, &p.arena, &peer, &e), BH_BUS_OK);
    while (send_heartbeat(p.router, &peer, 1) == BH_BUS_OK)
        ;
    look(p.router);
    CU_ASSERT_EQUAL(send_heartbeat(p.dealer, NULL, 2), BH_BUS_OK);
    close_lingering(bh_take_ptr(p.dealer));
    CU_ASSERT_EQUAL_FATAL(recv_wait(p.router, &p.arena, &peer, &e), BH_BUS_OK);
    CU_ASSERT_EQUAL(e->heartbeat->progress, 2);
    enum bh_bus_outcome o = BH_BUS_FULL;
    for (uint64_t until = bh_mono_ns() + DEADLINE_NS; bh_mono_ns() < until; poll(NULL, 0, 1)) {
        look(p.router);
        o = send_heartbeat(p.router, &peer, 4);
        if (o == BH_BUS_NO_PEER)
            break;
    }
    CU_ASSERT_EQUAL(o, BH_BUS_NO_PEER);
    pair_close(&p);
}

/* Nobody reads: the sender learns it, and later everything that was accepted still arrives. */
static void test_full(void)
{
    struct pair p;
    struct bh_peer peer;
    Berth__Envelope *e = NULL;
    uint64_t accepted = 0, got = 0;
    struct bh_bus_stats st;
    pair_open(&p);
    CU_ASSERT_EQUAL(send_heartbeat(p.dealer, NULL, 0), BH_BUS_OK);
    CU_ASSERT_EQUAL_FATAL(recv_wait(p.router, &p.arena, &peer, &e), BH_BUS_OK);

    enum bh_bus_outcome o = BH_BUS_OK;
    while (accepted < 1000000 && (o = send_heartbeat(p.router, &peer, accepted)) == BH_BUS_OK)
        accepted++;
    CU_ASSERT_EQUAL(o, BH_BUS_FULL);
    bh_bus_stats(p.router, &st);
    CU_ASSERT_EQUAL(st.full, 1);

    uint64_t until = bh_mono_ns() + DEADLINE_NS;
    while (got < accepted) {
        if (bh_bus_recv(p.dealer, &p.arena, NULL, &e) == BH_BUS_EMPTY) {
            look(p.router);
            CU_ASSERT_FATAL(bh_mono_ns() < until);
            continue;
        }
        CU_ASSERT_EQUAL_FATAL(e->heartbeat->progress, got);
        got++;
        bh_arena_reset(&p.arena);
    }
    struct bh_peer first = {.id = "dealer-1", .n = 8};
    o = BH_BUS_FULL;
    for (until = bh_mono_ns() + DEADLINE_NS; o == BH_BUS_FULL && bh_mono_ns() < until;)
        o = send_heartbeat(p.router, &first, 7);
    CU_ASSERT_EQUAL(o, BH_BUS_OK);
    pair_close(&p);
}

/* A restarted process takes its predecessor's place even before the old connection is gone. */
static void test_handover(void)
{
    struct pair p;
    struct bh_peer peer;
    Berth__Envelope *e = NULL;
    pair_open(&p);
    CU_ASSERT_EQUAL(send_heartbeat(p.dealer, NULL, 1), BH_BUS_OK);
    CU_ASSERT_EQUAL_FATAL(recv_wait(p.router, &p.arena, &peer, &e), BH_BUS_OK);

    struct bh_bus *second = open_ok(BH_BUS_DEALER_CONNECT, p.endpoint, "dealer-1");
    CU_ASSERT_EQUAL(send_heartbeat(second, NULL, 2), BH_BUS_OK);
    CU_ASSERT_EQUAL_FATAL(recv_wait(p.router, &p.arena, &peer, &e), BH_BUS_OK);
    CU_ASSERT_EQUAL(e->heartbeat->progress, 2);
    CU_ASSERT_EQUAL(send_heartbeat(p.router, &peer, 3), BH_BUS_OK);
    CU_ASSERT_EQUAL_FATAL(recv_wait(second, &p.arena, &peer, &e), BH_BUS_OK);
    CU_ASSERT_EQUAL(e->heartbeat->progress, 3);
    bh_bus_close(second);
    pair_close(&p);
}

struct garbage {
    const char *what;
    const char *bytes;
    size_t n;
};

static void test_garbage(void)
{
    static const struct garbage cases[] = {
        {"empty frame", "", 0},
        {"not protobuf", "hello world", 11},
        {"cut varint", "\x08\xff", 2},
        {"length beyond the frame", "\x52\x7f\x08\x01", 4},
        {"no version", "\x52\x02\x08\x01", 4},
        {"another version", "\x08\x01\x52\x02\x08\x01", 6},
        {"no payload", "\x08\x02", 2},
        {"two payloads", "\x08\x02\x52\x02\x08\x01\x3a\x02\x08\x01", 10},
        {"heartbeat without progress", "\x08\x02\x52\x00", 4},
        {"group wire type", "\x08\x02\x53\x54", 4},
    };
    struct pair p;
    struct bh_peer peer;
    Berth__Envelope *e = NULL;
    struct bh_bus_stats st;
    pair_open(&p);
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        send_raw(p.dealer, cases[i].bytes, cases[i].n);
        enum bh_bus_outcome o = recv_wait(p.router, &p.arena, &peer, &e);
        if (o != BH_BUS_BAD)
            printf("# accepted: %s\n", cases[i].what);
        CU_ASSERT_EQUAL(o, BH_BUS_BAD);
    }
    bh_bus_stats(p.router, &st);
    CU_ASSERT_EQUAL(st.bad, BH_ARRAY_LEN(cases));
    CU_ASSERT_EQUAL(st.received, 0);

    CU_ASSERT_EQUAL(send_heartbeat(p.dealer, NULL, 5), BH_BUS_OK);
    CU_ASSERT_EQUAL_FATAL(recv_wait(p.router, &p.arena, &peer, &e), BH_BUS_OK);
    CU_ASSERT_EQUAL(e->heartbeat->progress, 5);
    pair_close(&p);
}

/* Two bytes an item on the wire would be hundreds in memory. */
static void test_small_frame_of_many_items(void)
{
    struct pair p;
    struct bh_peer peer;
    Berth__Envelope *e = NULL;
    struct bh_buf items = {0}, frame = {0};
    const size_t n = 1u << 20;
    pair_open(&p);
    for (size_t i = 0; i < n; i++)
        bh_buf_add(&items, "\x12\x00", 2); /* FeedBatch.change, empty */
    bh_buf_add(&frame, "\x08\x01\x2a", 3); /* version 1, feed_batch */
    for (size_t v = items.n; v; v >>= 7)
        bh_buf_addc(&frame, (char)((v & 0x7f) | (v > 0x7f ? 0x80 : 0)));
    bh_buf_add(&frame, items.p, items.n);
    send_raw(p.dealer, frame.p, frame.n);
    enum bh_bus_outcome o = BH_BUS_EMPTY;
    for (uint64_t until = bh_mono_ns() + DEADLINE_NS; o == BH_BUS_EMPTY && bh_mono_ns() < until;) {
        look(p.dealer);
        o = bh_bus_recv(p.router, &p.arena, &peer, &e);
    }
    CU_ASSERT_EQUAL(o, BH_BUS_BAD);
    CU_ASSERT(p.arena.used_bytes < 4096);
    bh_buf_fini(&items);
    bh_buf_fini(&frame);
    pair_close(&p);
}

static void test_oversize(void)
{
    struct pair p;
    struct bh_peer peer;
    Berth__Envelope *e = NULL;
    const size_t n = (size_t)BH_BUS_MAX_BYTES + 1;
    char *big = bh_calloc(1, n);
    pair_open(&p);
    send_raw(p.dealer, big, n); /* the receiver cuts this connection */

    struct bh_bus *other = open_ok(BH_BUS_DEALER_CONNECT, p.endpoint, "dealer-2");
    CU_ASSERT_EQUAL(send_heartbeat(other, NULL, 9), BH_BUS_OK);
    CU_ASSERT_EQUAL_FATAL(recv_wait(p.router, &p.arena, &peer, &e), BH_BUS_OK);
    CU_ASSERT_EQUAL(e->heartbeat->progress, 9);

    /* and a sender of ours refuses to make one */
    Berth__FeedBatch batch = BERTH__FEED_BATCH__INIT;
    Berth__ObjectChange change = BERTH__OBJECT_CHANGE__INIT, *changes[] = {&change};
    Berth__Envelope out = BERTH__ENVELOPE__INIT;
    char name[] = "x";
    change.has_op = change.has_kind = change.has_object = 1;
    change.name = name;
    change.object = (ProtobufCBinaryData){n, (uint8_t *)big};
    batch.has_seq = 1;
    batch.n_change = 1;
    batch.change = changes;
    out.feed_batch = &batch;
    CU_ASSERT_EQUAL(bh_bus_send(other, NULL, &out), BH_BUS_BAD);
    bh_bus_close(other);
    free(big);
    pair_close(&p);
}

static void test_paths(void)
{
    struct bh_err err;
    struct bh_bus *b = NULL;
    char out[128];
    CU_ASSERT_EQUAL(bh_bus_endpoint("/run/berth", "watcher", out, &err), 0);
    CU_ASSERT_STRING_EQUAL(out, "ipc:///run/berth/watcher.sock");
    char longdir[101];
    memset(longdir, 'a', sizeof(longdir) - 1);
    longdir[0] = '/', longdir[100] = 0;
    CU_ASSERT_EQUAL(bh_bus_endpoint(longdir, "watcher", out, &err), -ENAMETOOLONG);
    CU_ASSERT_EQUAL(bh_bus_endpoint(longdir, "s", out, &err), 0); /* 100 + 1 + 6 = 107 */
    CU_ASSERT_EQUAL(strlen(out), 6 + 107);

    CU_ASSERT_EQUAL(bh_bus_open(BH_BUS_ROUTER_BIND, "ipc://@abstract", NULL, &b, &err), -EINVAL);
    CU_ASSERT_EQUAL(bh_bus_open(BH_BUS_ROUTER_BIND, "tcp://127.0.0.1:1", NULL, &b, &err), -EINVAL);
    CU_ASSERT_EQUAL(bh_bus_open(BH_BUS_DEALER_CONNECT, "ipc:///no/such/dir/x.sock", "d", &b, &err),
                    -ENOENT);
    CU_ASSERT_PTR_NULL(b);
}

static void test_obstacles(void)
{
    struct bh_err err;
    struct bh_bus *b = NULL, *second = NULL;
    char *endpoint = fresh_endpoint();
    const char *path = endpoint + 6;

    CU_ASSERT_EQUAL(bh_write_file(path, "precious", 8, 0600), 0);
    CU_ASSERT_EQUAL(bh_bus_open(BH_BUS_ROUTER_BIND, endpoint, NULL, &b, &err), -EEXIST);
    unlink(path);

    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
    CU_ASSERT_EQUAL(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    close(fd); /* as a killed process leaves it */
    CU_ASSERT_EQUAL_FATAL(bh_bus_open(BH_BUS_ROUTER_BIND, endpoint, NULL, &b, &err), 0);

    struct stat st;
    CU_ASSERT_EQUAL(stat(path, &st), 0);
    CU_ASSERT_EQUAL(st.st_mode & 0777, 0660);
    CU_ASSERT_EQUAL(bh_bus_open(BH_BUS_ROUTER_BIND, endpoint, NULL, &second, &err), -EADDRINUSE);
    CU_ASSERT_PTR_NULL(second);
    bh_bus_close(b);
    CU_ASSERT_EQUAL(access(path, F_OK), -1); /* and nothing is left behind */

    char *open_dir = bh_asprintf("%s/open", bh_test_tmpdir());
    CU_ASSERT_EQUAL(mkdir(open_dir, 0777), 0);
    chmod(open_dir, 0777);
    char *open_endpoint = bh_asprintf("ipc://%s/x.sock", open_dir);
    CU_ASSERT_EQUAL(bh_bus_open(BH_BUS_ROUTER_BIND, open_endpoint, NULL, &b, &err), -EPERM);
    free(open_endpoint);
    free(open_dir);
    free(endpoint);
}

/* Whichever side comes first, and however often the bound side restarts. */
static void test_reconnect(void)
{
    struct bh_arena a;
    struct bh_peer peer;
    Berth__Envelope *e = NULL;
    char *endpoint = fresh_endpoint();
    bh_arena_init(&a, 0);
    struct bh_bus *dealer = open_ok(BH_BUS_DEALER_CONNECT, endpoint, "d");
    CU_ASSERT_EQUAL(send_heartbeat(dealer, NULL, 1), BH_BUS_OK);
    for (int i = 0; i < 3; i++) {
        struct bh_bus *router = NULL;
        uint64_t until = bh_mono_ns() + DEADLINE_NS;
        /* the former one may still be taken for a live one for a moment */
        while (bh_bus_open(BH_BUS_ROUTER_BIND, endpoint, NULL, &router, NULL) == -EADDRINUSE &&
               bh_mono_ns() < until)
            poll(NULL, 0, 1);
        CU_ASSERT_PTR_NOT_NULL_FATAL(router);
        enum bh_bus_outcome o = BH_BUS_EMPTY;
        while (o == BH_BUS_EMPTY && bh_mono_ns() < until) { /* what was lost is said again */
            send_heartbeat(dealer, NULL, 2);
            bh_bus_wait(router, 50);
            o = bh_bus_recv(router, &a, &peer, &e);
        }
        CU_ASSERT_EQUAL(o, BH_BUS_OK);
        bh_bus_close(router);
    }
    bh_bus_close(dealer);
    bh_arena_fini(&a);
    free(endpoint);
}

/* ---- strangers ------------------------------------------------------------------------------- */

static int knock(const struct pair *p)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", p->endpoint + 6);
    CU_ASSERT_EQUAL_FATAL(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    return fd;
}

/* The other side ended the connection, whatever it said before (its greeting). */
static bool hung_up(int fd)
{
    struct timeval limit = {.tv_sec = (time_t)(DEADLINE_NS / UINT64_C(1000000000))};
    char text[256];
    ssize_t n;

    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    do
        n = recv(fd, text, sizeof(text), 0);
    while (n > 0);
    return n == 0 || errno == ECONNRESET;
}

static void still_talks(struct pair *p, struct bh_bus *dealer, uint64_t n)
{
    struct bh_peer peer;
    Berth__Envelope *e = NULL;

    CU_ASSERT_EQUAL(send_heartbeat(dealer, NULL, n), BH_BUS_OK);
    CU_ASSERT_EQUAL_FATAL(recv_wait(p->router, &p->arena, &peer, &e), BH_BUS_OK);
    CU_ASSERT_EQUAL(e->heartbeat->progress, n);
}

#define GREETING "\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL"
#define ZEROS_48                                                                                   \
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"                                             \
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"

/* Other protocols, ZeroMQ's old ones among them, and pieces of ours: all are cut off. */
static void test_strangers(void)
{
    static const struct {
        const char *bytes;
        size_t n;
    } cases[] = {{"GET / HTTP/1.1\r\n\r\n", 18},
                 {"\0\0\0\0", 4},
                 {"", 0},                                  /* says nothing */
                 {"\1\0", 2},                              /* ZMTP 1.0 without a name */
                 {"\xff\0\0\0\0\0\0\0\1\x7f\1\5\0\0", 14}, /* ZMTP 2.0 */
                 {GREETING ZEROS_48, 64},                  /* a greeting, and no more */
                 {GREETING ZEROS_48 "\4\4\3XYZ", 70},      /* a command that there is none of */
                 {GREETING ZEROS_48 "\4\x0f\5READY\xff\xff\xff\xff\xff\xff\xff\xff\xff", 81}};
    struct pair p;

    pair_open(&p);
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        int fd = knock(&p);
        CU_ASSERT_EQUAL(send(fd, cases[i].bytes, cases[i].n, 0), (ssize_t)cases[i].n);
        if (!hung_up(fd)) {
            printf("# not cut off: case %zu\n", i);
            CU_ASSERT_TRUE(false);
        }
        close(fd);
    }
    still_talks(&p, p.dealer, 1);
    pair_close(&p);
}

/* A name of more than 32 bytes, or none: its messages are bad ones without an address. */
static void test_names(void)
{
    static const char too_long[] = "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn";
    struct pair p;
    struct bh_peer peer;
    Berth__Envelope *e = NULL;

    pair_open(&p);
    struct bh_bus *b = open_ok(BH_BUS_DEALER_CONNECT, p.endpoint, too_long);
    CU_ASSERT_EQUAL(send_heartbeat(b, NULL, 1), BH_BUS_OK);
    CU_ASSERT_EQUAL(recv_wait(p.router, &p.arena, &peer, &e), BH_BUS_BAD);
    CU_ASSERT_EQUAL(peer.n, 0);
    bh_bus_close(b);
    b = open_ok(BH_BUS_DEALER_CONNECT, p.endpoint, too_long + 1);
    still_talks(&p, b, 7);
    bh_bus_close(b);
    pair_close(&p);
}

/* Who says nothing is let in as long as there is room, and makes room for who speaks. */
static void test_silent_crowd(void)
{
    struct rlimit before, now;
    struct pair p;
    static int fd[1000];

    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &before), 0);
    now = before;
    now.rlim_cur = BH_MAX(now.rlim_cur, BH_MIN(now.rlim_max, 4096));
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &now), 0);
    pair_open(&p);
    still_talks(&p, p.dealer, 1);
    for (size_t i = 0; i < BH_ARRAY_LEN(fd); i++)
        fd[i] = knock(&p);
    CU_ASSERT_TRUE(hung_up(fd[BH_ARRAY_LEN(fd) - 1])); /* one too many */
    struct bh_bus *late = open_ok(BH_BUS_DEALER_CONNECT, p.endpoint, "late");
    still_talks(&p, late, 3);
    still_talks(&p, p.dealer, 4);
    CU_ASSERT_TRUE(hung_up(fd[0]));
    for (size_t i = 0; i < BH_ARRAY_LEN(fd); i++)
        close(fd[i]);
    bh_bus_close(late);
    pair_close(&p);
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* Connections that come when no descriptor is left are ended; libzmq's own listener would end the
 * process. */
static void test_no_descriptor_left(void)
{
    struct rlimit before, now;
    struct pair p;
    int fd[64], n = 0;

    pair_open(&p);
    still_talks(&p, p.dealer, 1);
    for (n = 0; n < 3; n++)
        fd[n] = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", p.endpoint + 6);
    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &before), 0);
    now = before;
    now.rlim_cur = (rlim_t)fd[2] + 1;
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &now), 0);
    while (n < (int)BH_ARRAY_LEN(fd) && (fd[n] = open("/", O_PATH)) >= 0)
        n++; /* holes */
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(connect(fd[i], (struct sockaddr *)&sa, sizeof(sa)), 0);
        CU_ASSERT_TRUE(hung_up(fd[i]));
    }
    still_talks(&p, p.dealer, 2);
    while (n > 0)
        close(fd[--n]);
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &before), 0);
    struct bh_bus *late = open_ok(BH_BUS_DEALER_CONNECT, p.endpoint, "late");
    still_talks(&p, late, 3);
    bh_bus_close(late);
    pair_close(&p);
}

static void test_arena_limit(void)
{
    struct pair p;
    struct bh_peer peer;
    Berth__Envelope *e = NULL;
    pair_open(&p);
    p.arena.limit_bytes = 64;
    CU_ASSERT_EQUAL(send_heartbeat(p.dealer, NULL, 1), BH_BUS_OK);
    CU_ASSERT_EQUAL(recv_wait(p.router, &p.arena, &peer, &e), BH_BUS_BAD);
    CU_ASSERT_EQUAL(p.arena.limit_bytes, 64);
    pair_close(&p);
}

BH_TESTS("common/bus/bus", {"a message goes there and an answer comes back", test_round_trip},
         {"20000 messages arrive in order", test_order_of_many},
         {"a router does not accept messages for a stranger", test_unknown_peer},
         {"a router notices that a peer went away", test_peer_that_went_away},
         {"what a peer said last arrives, whatever it is sent", test_last_words},
         {"what a peer that did not read said last arrives",
          test_last_words_of_one_that_does_not_read},
         {"a full peer is reported, and nothing that was accepted is lost", test_full},
         {"a second peer with the same identity takes over", test_handover},
         {"garbage, wrong versions and broken messages are counted and dropped", test_garbage},
         {"a small frame of a million items costs no memory", test_small_frame_of_many_items},
         {"an oversized frame cuts its sender off and nobody else", test_oversize},
         {"endpoints outside a private directory or too long are refused", test_paths},
         {"a socket in use, a file or an open directory stops a bind; a stale socket does not",
          test_obstacles},
         {"either side may come first or restart", test_reconnect},
         {"other protocols and who says nothing are cut off", test_strangers},
         {"a name that is too long is none", test_names},
         {"a thousand silent connections make room for others", test_silent_crowd},
         {"without descriptors connections are ended, and nothing else", test_no_descriptor_left},
         {"the caller's arena limit holds and is left as it was", test_arena_limit})
