/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/curve.c - tcp:// endpoints and who may use them
 *
 * Owns:       a handshake thread for each listening bus. libzmq asks it (ZAP, RFC 27) about each
 *             peer before the peer is connected; its answer carries the peer's key as User-Id,
 * which then comes with every message of that peer. Invariants: the options of a socket are copied
 * when it binds: the ipc endpoint that was bound first stays without CURVE. There is one ZAP
 * address a context, so one listening bus a process.
 */
#include "common/bus/bus_int.h"
#include "common/bus/curve_int.h"

#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <zmq.h>

#define ZAP_ENDPOINT  "inproc://zeromq.zap.01"
#define STOP_ENDPOINT "inproc://berth-zap-stop"
#define ZAP_DOMAIN    "berth"
#define HANDSHAKE_MS  3000 /* who is not let in knocks again after it */
#define HEARTBEAT_MS  5000
#define PEER_DEAD_MS  15000
#define RECHECK_NS    UINT64_C(1000000000)

struct bh_bus_gate {
    char *dir;
    pthread_t thread;
    void *zap, *stop_in, *stop_out;
    struct bh_bus_allow seen;  /* the owner's */
    struct bh_bus_allow asked; /* the handshake thread's */
    uint64_t seen_ns;
    _Atomic uint64_t turned_away;
};

/* ---- the handshake thread ----------------------------------------------------------------------
 */

struct zap_request { /* frames in the order of RFC 27 */
    char version[8], id[64], domain[64], address[256], identity[256], mechanism[16];
    uint8_t key[32];
    size_t key_n;
};

/* Reads one request; too long or too few frames make it one that is refused. */
static bool zap_recv(void *s, struct zap_request *r)
{
    char *const text[] = {r->version, r->id, r->domain, r->address, r->identity, r->mechanism};
    const size_t size[] = {sizeof(r->version), sizeof(r->id),       sizeof(r->domain),
                           sizeof(r->address), sizeof(r->identity), sizeof(r->mechanism)};
    bool good = true;
    unsigned n = 0;
    int more = 1;

    memset(r, 0, sizeof(*r));
    for (; more; n++) {
        zmq_msg_t m;
        zmq_msg_init(&m);
        if (zmq_msg_recv(&m, s, 0) < 0) {
            zmq_msg_close(&m);
            return false;
        }
        size_t len = zmq_msg_size(&m);
        if (n < BH_ARRAY_LEN(text) && len < size[n])
            memcpy(text[n], zmq_msg_data(&m), len);
        else if (n == BH_ARRAY_LEN(text) && len == sizeof(r->key))
            memcpy(r->key, zmq_msg_data(&m), r->key_n = len);
        else
            good = false;
        more = zmq_msg_more(&m);
        zmq_msg_close(&m);
    }
    return good && n == BH_ARRAY_LEN(text) + 1;
}

/* 300 is "temporary": libzmq lets the handshake time out and the peer knocks again. After 400 its
 * socket would be dead for good, and a key that is added later would need a restart over there. */
static void zap_reply(void *s, const char *id, bool yes, const char *key)
{
    const char *const frames[] = {"1.0", id, yes ? "200" : "300", yes ? "OK" : "not allowed",
                                  yes ? key : ""};

    for (size_t i = 0; i < BH_ARRAY_LEN(frames); i++)
        (void)zmq_send(s, frames[i], strlen(frames[i]), ZMQ_SNDMORE);
    (void)zmq_send(s, "", 0, 0);
}

static void answer(struct bh_bus_gate *g)
{
    char key[BH_BUS_KEY_TEXT + 1] = "";
    struct zap_request r;
    bool yes = zap_recv(g->zap, &r);

    yes = yes && bh_streq(r.version, "1.0") && bh_streq(r.mechanism, "CURVE") &&
          bh_streq(r.domain, ZAP_DOMAIN) && zmq_z85_encode(key, r.key, r.key_n) != NULL &&
          bh_bus_allow_load(&g->asked, g->dir, NULL) == 0 && bh_bus_allow_has(&g->asked, key);
    g->turned_away += !yes;
    zap_reply(g->zap, r.id, yes, key);
}

uint64_t bh_bus_gate_turned_away(const struct bh_bus_gate *g)
{
    return g->turned_away;
}

static void *run(void *arg)
{
    struct bh_bus_gate *g = arg;
    zmq_pollitem_t items[2] = {{.socket = g->zap, .events = ZMQ_POLLIN},
                               {.socket = g->stop_out, .events = ZMQ_POLLIN}};

    for (;;) {
        if (zmq_poll(items, 2, -1) < 0 && errno != EINTR)
            return NULL;
        if (items[1].revents)
            return NULL;
        if (items[0].revents)
            answer(g);
    }
}

int bh_bus_gate_new(void *context, const char *allow_dir, struct bh_bus_gate **ret,
                    struct bh_err *err)
{
    struct bh_bus_gate *g = bh_calloc(1, sizeof(*g));
    int rc = bh_bus_allow_load(&g->seen, allow_dir, err);

    g->dir = bh_strdup(allow_dir);
    g->seen_ns = bh_mono_ns();
    if (rc == 0) {
        g->zap = zmq_socket(context, ZMQ_REP);
        g->stop_in = zmq_socket(context, ZMQ_PAIR);
        g->stop_out = zmq_socket(context, ZMQ_PAIR);
        if (!g->zap || !g->stop_in || !g->stop_out || zmq_bind(g->zap, ZAP_ENDPOINT) < 0 ||
            zmq_bind(g->stop_out, STOP_ENDPOINT) < 0 || zmq_connect(g->stop_in, STOP_ENDPOINT) < 0)
            rc = bh_err_set(err, -errno, "handshakes: %s", zmq_strerror(errno));
    }
    if (rc == 0 && (rc = -pthread_create(&g->thread, NULL, run, g)) < 0)
        bh_err_set(err, rc, "thread for handshakes: %s", strerror(-rc));
    if (rc < 0) {
        if (g->stop_in)
            zmq_close(g->stop_in);
        g->stop_in = NULL; /* there is no thread to stop */
        bh_bus_gate_free(g);
        return rc;
    }
    *ret = g;
    return 0;
}

void bh_bus_gate_free(struct bh_bus_gate *g)
{
    if (!g)
        return;
    if (g->stop_in) {
        (void)zmq_send(g->stop_in, "", 0, 0);
        pthread_join(g->thread, NULL);
        zmq_close(g->stop_in);
    }
    if (g->stop_out)
        zmq_close(g->stop_out);
    if (g->zap)
        zmq_close(g->zap);
    free(g->dir);
    free(g);
}

bool bh_bus_gate_open(struct bh_bus_gate *g, const char *key)
{
    uint64_t now = bh_mono_ns();
    struct stat st;

    /* Who was let in a moment ago is missing in an older list. */
    if (now - g->seen_ns >= RECHECK_NS ||
        (!bh_bus_allow_has(&g->seen, key) && stat(g->dir, &st) == 0 &&
         (st.st_mtim.tv_sec != g->seen.mtime.tv_sec ||
          st.st_mtim.tv_nsec != g->seen.mtime.tv_nsec))) {
        g->seen_ns = now;
        if (bh_bus_allow_load(&g->seen, g->dir, NULL) < 0)
            g->seen.n = 0; /* no folder: nobody */
    }
    return bh_bus_allow_has(&g->seen, key);
}

/* ---- endpoints ---------------------------------------------------------------------------------
 */

bool bh_bus_is_tcp(const char *endpoint)
{
    return strncmp(endpoint, "tcp://", 6) == 0;
}

static int check_endpoint(const char *endpoint, struct bh_err *err)
{
    const char *colon = strrchr(endpoint, ':');

    if (!bh_bus_is_tcp(endpoint) || colon < endpoint + 7 || !colon[1])
        return bh_err_set(err, -EINVAL, "endpoint \"%s\" is not tcp://HOST:PORT", endpoint);
    return 0;
}

static int set_int(void *s, int option, int value)
{
    return zmq_setsockopt(s, option, &value, sizeof(value));
}

/* A host that is gone is noticed by its silence: TCP alone takes minutes. */
static int set_tcp(void *s, bool ipv6)
{
    if (set_int(s, ZMQ_IPV6, ipv6) < 0 || set_int(s, ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS) < 0 ||
        set_int(s, ZMQ_HEARTBEAT_IVL, HEARTBEAT_MS) < 0 ||
        set_int(s, ZMQ_HEARTBEAT_TIMEOUT, PEER_DEAD_MS) < 0 ||
        set_int(s, ZMQ_HEARTBEAT_TTL, PEER_DEAD_MS) < 0)
        return -errno;
    return 0;
}

int bh_bus_listen(struct bh_bus *b, const struct bh_bus_listen *l, char ret_endpoint[static 128],
                  struct bh_err *err)
{
    char key[BH_BUS_KEY_TEXT + 1];
    struct bh_bus_gate *gate = NULL;
    size_t n = 128;
    int rc = check_endpoint(l->endpoint, err);
    void *s;

    if (rc == 0 && (!l->key_file || !l->allow_dir))
        rc = bh_err_set(err, -EINVAL,
                        "endpoint \"%s\": tcp needs a key and a folder of keys that may connect",
                        l->endpoint);
    if (rc == 0)
        rc = bh_bus_key_read(l->key_file, true, key, err);
    if (rc == 0 && !b->socket)
        rc = bh_bus_tcp_new(b, NULL, err);
    if (rc == 0)
        rc = bh_bus_gate_new(bh_bus_context(b), l->allow_dir, &gate, err);
    if (rc < 0)
        return rc;
    s = b->socket;
    rc = set_tcp(s, strchr(l->endpoint, '[') != NULL);
    if (rc == 0 && (set_int(s, ZMQ_CURVE_SERVER, 1) < 0 ||
                    zmq_setsockopt(s, ZMQ_CURVE_SECRETKEY, key, sizeof(key)) < 0 ||
                    zmq_setsockopt(s, ZMQ_ZAP_DOMAIN, ZAP_DOMAIN, strlen(ZAP_DOMAIN)) < 0 ||
                    zmq_bind(s, l->endpoint) < 0 ||
                    zmq_getsockopt(s, ZMQ_LAST_ENDPOINT, ret_endpoint, &n) < 0))
        rc = -errno;
    explicit_bzero(key, sizeof(key));
    if (rc < 0) {
        bh_bus_gate_free(gate);
        return bh_err_set(err, rc, "endpoint \"%s\": %s", l->endpoint, zmq_strerror(-rc));
    }
    bh_bus_set_gate(b, gate);
    return 0;
}

static int set_client_keys(void *s, const struct bh_bus_dial *d, struct bh_err *err)
{
    char key[BH_BUS_KEY_TEXT + 1], pub[BH_BUS_KEY_TEXT + 1], peer[BH_BUS_KEY_TEXT + 1];
    int rc = bh_bus_key_read(d->peer_pub, false, peer, err);

    if (rc == 0)
        rc = bh_bus_key_read(d->key_file, true, key, err);
    if (rc < 0)
        return rc;
    if (zmq_curve_public(pub, key) < 0 ||
        zmq_setsockopt(s, ZMQ_CURVE_SERVERKEY, peer, sizeof(peer)) < 0 ||
        zmq_setsockopt(s, ZMQ_CURVE_PUBLICKEY, pub, sizeof(pub)) < 0 ||
        zmq_setsockopt(s, ZMQ_CURVE_SECRETKEY, key, sizeof(key)) < 0)
        rc = bh_err_set(err, -errno, "keys of \"%s\": %s", d->endpoint, zmq_strerror(errno));
    explicit_bzero(key, sizeof(key));
    return rc;
}

int bh_bus_dial(const struct bh_bus_dial *d, const char *identity, struct bh_bus **ret,
                struct bh_err *err)
{
    struct bh_bus *b = NULL;
    int rc = check_endpoint(d->endpoint, err);

    if (rc == 0 && (!d->key_file || !d->peer_pub))
        rc = bh_err_set(err, -EINVAL,
                        "endpoint \"%s\": tcp needs a key of ours and the public key of the other "
                        "side",
                        d->endpoint);
    if (rc < 0)
        return rc;
    b = bh_calloc(1, sizeof(*b));
    rc = bh_bus_tcp_new(b, identity, err);
    if (rc == 0)
        rc = set_client_keys(b->socket, d, err);
    if (rc == 0 && (rc = set_tcp(b->socket, true)) < 0)
        bh_err_set(err, rc, "endpoint \"%s\": %s", d->endpoint, zmq_strerror(-rc));
    if (rc == 0 && zmq_connect(b->socket, d->endpoint) < 0)
        rc = bh_err_set(err, -errno, "endpoint \"%s\": %s", d->endpoint, zmq_strerror(errno));
    if (rc < 0) {
        bh_bus_close(b);
        return rc;
    }
    *ret = b;
    return 0;
}
