/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/curve.c - tcp:// endpoints and the keys that may use them
 *
 * Owns:       the folder of keys of a bus that listens. libzmq asks (zap.h) about each peer before
 *             it is connected; the answer carries the peer's key as User-Id, which then comes with
 *             every message of that peer.
 * Invariants: the options of a socket are copied when it binds: the ipc endpoint that was bound
 *             first stays without CURVE. One bus of a process listens on tcp.
 */
#include "common/bus/bus_int.h"
#include "common/bus/curve_int.h"

#include <errno.h>
#include <sys/stat.h>
#include <zmq.h>

#define ZAP_DOMAIN   "curve"
#define HANDSHAKE_MS 3000 /* a peer that is not let in tries again after it */
#define HEARTBEAT_MS 5000
#define PEER_DEAD_MS 15000
#define RECHECK_NS   UINT64_C(1000000000)

struct bh_bus_gate {
    char *dir;
    struct bh_bus_zap *zap;
    struct bh_bus_allow seen;  /* the owner's */
    struct bh_bus_allow asked; /* the handshake thread's */
    uint64_t seen_ns;
    _Atomic uint64_t turned_away;
};

/* ---- handshakes ------------------------------------------------------------------------------ */

/* In the thread of zap.c. */
static bool may_connect(void *arg, const struct bh_bus_zap_request *r, char ret_user[static 64])
{
    struct bh_bus_gate *g = arg;
    bool yes = bh_streq(r->mechanism, "CURVE") && r->key_n == sizeof(r->key) &&
               zmq_z85_encode(ret_user, r->key, r->key_n) != NULL &&
               bh_bus_allow_load(&g->asked, g->dir, NULL) == 0 &&
               bh_bus_allow_has(&g->asked, ret_user);

    g->turned_away += !yes;
    return yes;
}

uint64_t bh_bus_gate_turned_away(const struct bh_bus_gate *g)
{
    return g->turned_away;
}

static int gate_new(void *context, const char *allow_dir, struct bh_bus_gate **ret,
                    struct bh_err *err)
{
    struct bh_bus_gate *g = bh_calloc(1, sizeof(*g));
    int rc = bh_bus_allow_load(&g->seen, allow_dir, err);

    g->dir = bh_strdup(allow_dir);
    g->seen_ns = bh_mono_ns();
    if (rc == 0)
        rc = bh_bus_zap_open(context, ZAP_DOMAIN, may_connect, g, &g->zap, err);
    if (rc < 0) {
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
    bh_bus_zap_close(g->zap);
    free(g->dir);
    free(g);
}

bool bh_bus_gate_open(struct bh_bus_gate *g, const char *key)
{
    uint64_t now = bh_mono_ns();
    struct stat st;

    /* A key that was let in a moment ago may be missing in the list we have. */
    if (now - g->seen_ns >= RECHECK_NS ||
        (!bh_bus_allow_has(&g->seen, key) && stat(g->dir, &st) == 0 &&
         (st.st_mtim.tv_sec != g->seen.mtime.tv_sec ||
          st.st_mtim.tv_nsec != g->seen.mtime.tv_nsec))) {
        g->seen_ns = now;
        if (bh_bus_allow_load(&g->seen, g->dir, NULL) < 0)
            g->seen.n = 0; /* no folder: no key is allowed */
    }
    return bh_bus_allow_has(&g->seen, key);
}

/* ---- endpoints ------------------------------------------------------------------------------- */

bool bh_bus_is_tcp(const char *endpoint)
{
    return strncmp(endpoint, "tcp://", 6) == 0;
}

/* libzmq looks at a port when it connects, in its own thread: nobody would hear of it. */
static int check_endpoint(const char *endpoint, bool listens, struct bh_err *err)
{
    const char *colon = strrchr(endpoint, ':');

    if (!bh_bus_is_tcp(endpoint) || colon < endpoint + 7 || !colon[1])
        return bh_err_set(err, -EINVAL, "endpoint \"%s\" is not tcp://HOST:PORT", endpoint);
    if (listens && bh_streq(colon + 1, "*"))
        return 0;
    const size_t n = strspn(colon + 1, "0123456789");
    const unsigned long port = strtoul(colon + 1, NULL, 10);
    if (colon[1 + n] || port < (listens ? 0 : 1) || port > 65535) /* 0: as * */
        return bh_err_set(err, -EINVAL, "endpoint \"%s\": port must be a number from 1 to 65535",
                          endpoint);
    return 0;
}

/* A host that is gone is noticed by its silence: TCP alone takes minutes. */
static int set_tcp(void *s, bool ipv6)
{
    const struct bh_bus_option o[] = {{ZMQ_IPV6, ipv6},
                                      {ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS},
                                      {ZMQ_HEARTBEAT_IVL, HEARTBEAT_MS},
                                      {ZMQ_HEARTBEAT_TIMEOUT, PEER_DEAD_MS},
                                      {ZMQ_HEARTBEAT_TTL, PEER_DEAD_MS}};

    return bh_bus_set_ints(s, o, BH_ARRAY_LEN(o));
}

int bh_bus_listen(struct bh_bus *b, const struct bh_bus_listen *l, char ret_endpoint[static 128],
                  struct bh_err *err)
{
    char key[BH_BUS_KEY_TEXT + 1];
    struct bh_bus_gate *gate = NULL;
    size_t n = 128;
    int rc = check_endpoint(l->endpoint, true, err);

    if (rc == 0 && (!l->key_file || !l->allow_dir))
        rc = bh_err_set(err, -EINVAL,
                        "endpoint \"%s\": tcp needs a key and a folder of keys that may connect",
                        l->endpoint);
    if (rc == 0)
        rc = bh_bus_key_read(l->key_file, true, key, err);
    if (rc == 0)
        rc = gate_new(b->context, l->allow_dir, &gate, err);
    if (rc < 0)
        return rc;
    void *s = b->socket;
    rc = set_tcp(s, strchr(l->endpoint, '[') != NULL);
    if (rc == 0 && (bh_bus_set_int(s, ZMQ_CURVE_SERVER, 1) < 0 ||
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
    bh_assert(!b->gate);
    b->gate = gate;
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
    int rc = check_endpoint(d->endpoint, false, err);

    if (rc == 0 && (!d->key_file || !d->peer_pub))
        rc = bh_err_set(err, -EINVAL,
                        "endpoint \"%s\": tcp needs a key of ours and the public key of the other "
                        "side",
                        d->endpoint);
    if (rc < 0)
        return rc;
    rc = bh_bus_new(BH_BUS_DEALER_CONNECT, identity, &b, err);
    if (rc < 0)
        return rc;
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
