/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/bus/test_curve.c - tcp under CURVE: who gets in, who does not, and from when on
 */
#include "common/bus/curve.h"
#include "common/bus/curve_int.h"
#include "tests/unit/harness.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#define DEADLINE_NS (UINT64_C(120) * 1000 * 1000 * 1000)

struct host {
    char *dir, *allow, *endpoint;
    struct bh_bus *router;
    struct bh_arena arena;
};

static char *path_of(const struct host *h, const char *name)
{
    return bh_asprintf("%s/%s", h->dir, name);
}

static void make_key(const struct host *h, const char *name)
{
    BH_CLEANUP(bh_freep) char *path = path_of(h, name);
    struct bh_err err = {{0}};
    int rc = bh_bus_keygen(path, &err);
    if (rc < 0)
        printf("# %s\n", err.msg);
    CU_ASSERT_EQUAL_FATAL(rc, 0);
}

static void allow(const struct host *h, const char *name, bool yes)
{
    BH_CLEANUP(bh_freep) char *from = bh_asprintf("%s/%s.pub", h->dir, name);
    BH_CLEANUP(bh_freep) char *to = bh_asprintf("%s/%s.pub", h->allow, name);
    CU_ASSERT_EQUAL_FATAL(yes ? link(from, to) : unlink(to), 0);
}

static void host_open(struct host *h)
{
    static unsigned n;
    struct bh_err err = {{0}};
    char where[128];

    h->dir = bh_asprintf("%s/h%u", bh_test_tmpdir(), n);
    h->allow = bh_asprintf("%s/h%u/allow", bh_test_tmpdir(), n);
    h->endpoint = bh_asprintf("ipc://%s/h%u.sock", bh_test_tmpdir(), n++);
    CU_ASSERT_EQUAL_FATAL(mkdir(h->dir, 0700) | mkdir(h->allow, 0700), 0);
    make_key(h, "server");
    make_key(h, "binder");
    make_key(h, "stranger");
    allow(h, "binder", true);
    bh_arena_init(&h->arena, 0);
    CU_ASSERT_EQUAL_FATAL(bh_bus_open(BH_BUS_ROUTER_BIND, h->endpoint, NULL, &h->router, &err), 0);
    BH_CLEANUP(bh_freep) char *key = path_of(h, "server.key");
    const struct bh_bus_listen l = {"tcp://127.0.0.1:*", key, h->allow};
    int rc = bh_bus_listen(h->router, &l, where, &err);
    if (rc < 0)
        printf("# %s\n", err.msg);
    CU_ASSERT_EQUAL_FATAL(rc, 0);
    free(h->endpoint);
    h->endpoint = bh_strdup(where);
}

static void host_close(struct host *h)
{
    bh_bus_close(h->router);
    bh_arena_fini(&h->arena);
    free(h->dir);
    free(h->allow);
    free(h->endpoint);
}

static struct bh_bus *dial(const struct host *h, const char *name, const char *server)
{
    BH_CLEANUP(bh_freep) char *key = bh_asprintf("%s/%s.key", h->dir, name);
    BH_CLEANUP(bh_freep) char *pub = bh_asprintf("%s/%s.pub", h->dir, server);
    const struct bh_bus_dial d = {h->endpoint, key, pub};
    struct bh_bus *b = NULL;
    struct bh_err err = {{0}};
    int rc = bh_bus_dial(&d, name, &b, &err);
    if (rc < 0)
        printf("# %s\n", err.msg);
    CU_ASSERT_EQUAL_FATAL(rc, 0);
    return b;
}

static enum bh_bus_outcome send_progress(struct bh_bus *b, const struct bh_peer *to, uint64_t n)
{
    Berth__Heartbeat beat = BERTH__HEARTBEAT__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;

    beat.has_progress = 1;
    beat.progress = n;
    e.heartbeat = &beat;
    return bh_bus_send(b, to, &e);
}

/* The next message, within the deadline; 0 = none came. */
static uint64_t receive(struct bh_bus *b, struct bh_arena *a, struct bh_peer *from, uint64_t for_ns)
{
    uint64_t until = bh_mono_ns() + for_ns;

    while (bh_mono_ns() < until) {
        Berth__Envelope *e = NULL;
        if (bh_bus_recv(b, a, from, &e) == BH_BUS_OK)
            return e->heartbeat ? e->heartbeat->progress : 0;
        bh_bus_wait(b, 50);
    }
    return 0;
}

static void test_an_allowed_peer_talks_both_ways(void)
{
    struct bh_peer from;
    struct host h;

    host_open(&h);
    struct bh_bus *b = dial(&h, "binder", "server");
    CU_ASSERT_EQUAL(send_progress(b, NULL, 7), BH_BUS_OK);
    CU_ASSERT_EQUAL(receive(h.router, &h.arena, &from, DEADLINE_NS), 7);
    CU_ASSERT_EQUAL(send_progress(h.router, &from, 8), BH_BUS_OK);
    CU_ASSERT_EQUAL(receive(b, &h.arena, NULL, DEADLINE_NS), 8);
    bh_bus_close(b);
    host_close(&h);
}

/* A stranger's message, and one sent to a false server, wait in their own sockets while an allowed
 * peer that came later gets through. */
static void test_strangers_and_false_servers_get_nothing(void)
{
    struct bh_peer from;
    struct host h;

    host_open(&h);
    struct bh_bus *stranger = dial(&h, "stranger", "server");
    struct bh_bus *misled = dial(&h, "binder", "stranger");
    CU_ASSERT_EQUAL(send_progress(stranger, NULL, 1), BH_BUS_OK);
    CU_ASSERT_EQUAL(send_progress(misled, NULL, 2), BH_BUS_OK);
    CU_ASSERT_EQUAL(receive(h.router, &h.arena, &from, UINT64_C(500000000)), 0);
    struct bh_bus *b = dial(&h, "binder", "server");
    CU_ASSERT_EQUAL(send_progress(b, NULL, 3), BH_BUS_OK);
    CU_ASSERT_EQUAL(receive(h.router, &h.arena, &from, DEADLINE_NS), 3);
    CU_ASSERT_EQUAL(receive(h.router, &h.arena, &from, UINT64_C(200000000)), 0);
    bh_bus_close(b);
    bh_bus_close(misled);
    bh_bus_close(stranger);
    host_close(&h);
}

static void test_a_plain_peer_gets_nothing(void)
{
    struct bh_peer from;
    struct host h;

    host_open(&h);
    void *ctx = zmq_ctx_new(), *s = zmq_socket(ctx, ZMQ_DEALER);
    int none = 0;
    CU_ASSERT_EQUAL(zmq_setsockopt(s, ZMQ_LINGER, &none, sizeof(none)), 0);
    CU_ASSERT_EQUAL(zmq_connect(s, h.endpoint), 0);
    (void)zmq_send(s, "x", 1, ZMQ_DONTWAIT);
    CU_ASSERT_EQUAL(receive(h.router, &h.arena, &from, UINT64_C(500000000)), 0);
    struct bh_bus_stats st;
    bh_bus_stats(h.router, &st);
    CU_ASSERT_EQUAL(st.bad, 0); /* it never came that far */
    zmq_close(s);
    zmq_ctx_term(ctx);
    host_close(&h);
}

/* Without a restart: a key that is removed silences who is connected, one that is added lets in who
 * is knocking already. */
static void test_keys_come_and_go(void)
{
    struct bh_peer from;
    uint64_t n = 0, got = 0;
    struct host h;

    host_open(&h);
    struct bh_bus *b = dial(&h, "binder", "server");
    CU_ASSERT_EQUAL(send_progress(b, NULL, 1), BH_BUS_OK);
    CU_ASSERT_EQUAL(receive(h.router, &h.arena, &from, DEADLINE_NS), 1);
    allow(&h, "binder", false);
    struct bh_bus_stats st = {0};
    for (uint64_t until = bh_mono_ns() + DEADLINE_NS; !st.bad && bh_mono_ns() < until;) {
        (void)send_progress(b, NULL, ++n + 10);
        (void)receive(h.router, &h.arena, &from, UINT64_C(100000000));
        bh_bus_stats(h.router, &st);
    }
    CU_ASSERT_TRUE(st.bad > 0);
    struct bh_bus *other = dial(&h, "stranger", "server");
    CU_ASSERT_EQUAL(send_progress(other, NULL, 4), BH_BUS_OK);
    while (receive(h.router, &h.arena, &from, UINT64_C(300000000)))
        ; /* what b had sent before */
    allow(&h, "stranger", true);
    for (uint64_t until = bh_mono_ns() + DEADLINE_NS; got != 5 && bh_mono_ns() < until;) {
        (void)send_progress(other, NULL, 5);
        got = receive(h.router, &h.arena, &from, UINT64_C(100000000));
    }
    CU_ASSERT_EQUAL(got, 5);
    bh_bus_close(other);
    bh_bus_close(b);
    host_close(&h);
}

static int listen_with(struct host *h, const char *endpoint, const char *key, const char *dir,
                       struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *ipc = bh_asprintf("ipc://%s/other.sock", h->dir);
    const struct bh_bus_listen l = {endpoint, key, dir};
    struct bh_bus *b = NULL;
    char where[128];
    int rc;

    CU_ASSERT_EQUAL_FATAL(bh_bus_open(BH_BUS_ROUTER_BIND, ipc, NULL, &b, err), 0);
    rc = bh_bus_listen(b, &l, where, err);
    bh_bus_close(b);
    return rc;
}

static void write_file(const char *path, const char *text)
{
    CU_ASSERT_EQUAL_FATAL(bh_write_file(path, text, strlen(text), 0600), 0);
}

static void test_what_is_refused_is_named(void)
{
    struct host h = {0};
    struct bh_err err = {{0}};

    h.dir = bh_asprintf("%s/refused", bh_test_tmpdir());
    CU_ASSERT_EQUAL_FATAL(mkdir(h.dir, 0700), 0);
    make_key(&h, "k");
    BH_CLEANUP(bh_freep) char *key = path_of(&h, "k.key");
    BH_CLEANUP(bh_freep) char *junk = path_of(&h, "junk.key");
    CU_ASSERT_EQUAL(listen_with(&h, "tcp://127.0.0.1:*", NULL, h.dir, &err), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "tcp needs a key and a folder"));
    CU_ASSERT_EQUAL(listen_with(&h, "tcp://127.0.0.1", key, h.dir, &err), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "is not tcp://HOST:PORT"));
    CU_ASSERT_EQUAL(listen_with(&h, "tcp://127.0.0.1:*", key, "/nonexistent", &err), -ENOENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "folder of keys \"/nonexistent\""));
    write_file(junk, "no key\n");
    CU_ASSERT_EQUAL(listen_with(&h, "tcp://127.0.0.1:*", junk, h.dir, &err), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "not one key of 40 Z85 characters"));
    CU_ASSERT_EQUAL(chmod(key, 0644), 0);
    CU_ASSERT_EQUAL(listen_with(&h, "tcp://127.0.0.1:*", key, h.dir, &err), -EPERM);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "others may read or change it (mode 0644)"));
    CU_ASSERT_EQUAL(listen_with(&h, "tcp://192.0.2.1:5", key, h.dir, &err), -EPERM);
    CU_ASSERT_EQUAL(chmod(key, 0640), 0);
    CU_ASSERT_TRUE(listen_with(&h, "tcp://192.0.2.1:5", key, h.dir, &err) < 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "endpoint \"tcp://192.0.2.1:5\": "));
    BH_CLEANUP(bh_freep) char *base = path_of(&h, "k");
    CU_ASSERT_EQUAL(bh_bus_keygen(base, &err), -EEXIST);
    free(h.dir);
}

/* The folder itself may go, and with it every key; nobody connected stays. */
static void test_without_a_folder_no_key_is_allowed(void)
{
    struct bh_peer from;
    struct bh_bus_stats st = {0};
    struct host h;

    host_open(&h);
    struct bh_bus *b = dial(&h, "binder", "server");
    CU_ASSERT_EQUAL(send_progress(b, NULL, 1), BH_BUS_OK);
    CU_ASSERT_EQUAL(receive(h.router, &h.arena, &from, DEADLINE_NS), 1);
    allow(&h, "binder", false);
    CU_ASSERT_EQUAL_FATAL(rmdir(h.allow), 0);
    for (uint64_t until = bh_mono_ns() + DEADLINE_NS; !st.bad && bh_mono_ns() < until;) {
        (void)send_progress(b, NULL, 2);
        (void)receive(h.router, &h.arena, &from, UINT64_C(100000000));
        bh_bus_stats(h.router, &st);
    }
    CU_ASSERT_TRUE(st.bad > 0);
    bh_bus_close(b);
    host_close(&h);
}

static int dial_with(const char *endpoint, const char *key, const char *pub, struct bh_err *err)
{
    const struct bh_bus_dial d = {endpoint, key, pub};
    struct bh_bus *b = NULL;
    int rc = bh_bus_dial(&d, "me", &b, err);

    bh_bus_close(b);
    return rc;
}

static void test_who_dials_is_told_what_is_missing(void)
{
    struct host h = {0};
    struct bh_err err = {{0}};

    h.dir = bh_asprintf("%s/dials", bh_test_tmpdir());
    CU_ASSERT_EQUAL_FATAL(mkdir(h.dir, 0700), 0);
    make_key(&h, "k");
    BH_CLEANUP(bh_freep) char *key = path_of(&h, "k.key");
    BH_CLEANUP(bh_freep) char *pub = path_of(&h, "k.pub");
    CU_ASSERT_EQUAL(dial_with("tcp://127.0.0.1:", key, pub, &err), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "is not tcp://HOST:PORT"));
    CU_ASSERT_EQUAL(dial_with("udp://127.0.0.1:5", key, pub, &err), -EINVAL);
    CU_ASSERT_EQUAL(dial_with("tcp://:5", key, pub, &err), -EINVAL);
    CU_ASSERT_EQUAL(dial_with("tcp://127.0.0.1:5", NULL, pub, &err), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "tcp needs a key of ours and the public key"));
    CU_ASSERT_EQUAL(dial_with("tcp://127.0.0.1:5", key, NULL, &err), -EINVAL);
    CU_ASSERT_EQUAL(dial_with("tcp://127.0.0.1:5", key, "/nonexistent.pub", &err), -ENOENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "key \"/nonexistent.pub\""));
    CU_ASSERT_EQUAL(dial_with("tcp://127.0.0.1:5", "/nonexistent.key", pub, &err), -ENOENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "key \"/nonexistent.key\""));
    static const char *const ports[] = {"0", "65536", "123456", "5x", "*", "-5"};
    for (size_t i = 0; i < BH_ARRAY_LEN(ports); i++) {
        BH_CLEANUP(bh_freep) char *to = bh_asprintf("tcp://127.0.0.1:%s", ports[i]);
        CU_ASSERT_EQUAL(dial_with(to, key, pub, &err), -EINVAL);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "port must be a number from 1 to 65535"));
    }
    CU_ASSERT_EQUAL(dial_with("tcp://127.0.0.1:65535", key, pub, &err),
                    0); /* nobody need be there */
    free(h.dir);
}

/* What is no key in the folder lets nobody in, and is counted. */
static void test_a_folder_of_keys_and_other_things(void)
{
    static struct bh_bus_allow a; /* holds every key that may be there */
    char key[BH_BUS_KEY_TEXT + 1];
    struct host h = {0};
    struct bh_err err = {{0}};

    h.dir = bh_asprintf("%s/folder", bh_test_tmpdir());
    CU_ASSERT_EQUAL_FATAL(mkdir(h.dir, 0700), 0);
    make_key(&h, "good");
    static const struct {
        const char *name, *text;
    } others[] = {
        {"README", "not a key"},
        {".pub", "not a name"},
        {".hidden.pub", "an editor's"},
        {"short.pub", "abc"},
        {"strange.pub",
         "\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\""},
        {"blank.pub", " \r\n"}};
    for (size_t i = 0; i < BH_ARRAY_LEN(others); i++) {
        BH_CLEANUP(bh_freep) char *path = path_of(&h, others[i].name);
        write_file(path, others[i].text);
    }
    CU_ASSERT_EQUAL_FATAL(bh_bus_allow_load(&a, h.dir, &err), 0);
    CU_ASSERT_EQUAL(a.n, 1);
    CU_ASSERT_EQUAL(a.unreadable, 3);
    BH_CLEANUP(bh_freep) char *pub = path_of(&h, "good.pub");
    CU_ASSERT_EQUAL(bh_bus_key_read(pub, false, key, &err), 0);
    CU_ASSERT_TRUE(bh_bus_allow_has(&a, key));
    BH_CLEANUP(bh_freep) char *nowhere = path_of(&h, "no/such/key");
    CU_ASSERT_EQUAL(bh_bus_keygen(nowhere, &err), -ENOENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "no/such/key.key\": "));
    free(h.dir);
}

BH_TESTS("common/bus curve",
         {"an allowed peer talks both ways", test_an_allowed_peer_talks_both_ways},
         {"strangers and false servers get nothing", test_strangers_and_false_servers_get_nothing},
         {"a plain peer gets nothing", test_a_plain_peer_gets_nothing},
         {"keys come and go", test_keys_come_and_go},
         {"what is refused is named", test_what_is_refused_is_named},
         {"without a folder no key is allowed", test_without_a_folder_no_key_is_allowed},
         {"who dials is told what is missing", test_who_dials_is_told_what_is_missing},
         {"a folder of keys and other things", test_a_folder_of_keys_and_other_things})
