/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/zap.c - which peers may be at the other end: libzmq's questions (ZAP, RFC 27)
 *
 * Owns:       the process's thread for them, from the first domain to the last.
 * Invariants: a domain that no bh_bus_zap answers for is refused, except BH_BUS_ZAP_DOOR.
 * Runs in:    its thread; opening and closing in any.
 */
#include "common/bus/zap.h"

#include <errno.h>
#include <pthread.h>
#include <sys/queue.h>
#include <zmq.h>

#define ZAP_ENDPOINT  "inproc://zeromq.zap.01"
#define STOP_ENDPOINT "inproc://berth-zap-stop"

struct bh_bus_zap {
    LIST_ENTRY(bh_bus_zap) link;
    char *domain;
    bh_bus_zap_answer *fn;
    void *arg;
};

static struct {
    pthread_mutex_t life; /* opening and closing */
    pthread_mutex_t lock; /* the list */
    LIST_HEAD(, bh_bus_zap) list;
    pthread_t thread;
    void *questions, *stop_in, *stop_out;
} zap = {.life = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the thread ------------------------------------------------------------------------------ */

struct question {
    uint8_t from[32]; /* of libzmq's own making; an empty frame follows */
    size_t from_n;
    struct bh_bus_zap_request r;
};

/* Reads one question; too long or too few frames make it one that is refused. */
static bool zap_recv(struct question *q)
{
    struct bh_bus_zap_request *r = &q->r;
    char none[1];
    void *const to[] = {q->from,    none,        r->version,   r->id, r->domain,
                        r->address, r->identity, r->mechanism, r->key};
    const size_t size[] = {sizeof(q->from),     1,
                           sizeof(r->version),  sizeof(r->id),
                           sizeof(r->domain),   sizeof(r->address),
                           sizeof(r->identity), sizeof(r->mechanism),
                           sizeof(r->key) + 1};
    bool good = true;
    unsigned n = 0;
    int more = 1;

    memset(q, 0, sizeof(*q));
    for (; more; n++) {
        zmq_msg_t m;
        zmq_msg_init(&m);
        if (zmq_msg_recv(&m, zap.questions, 0) < 0) {
            zmq_msg_close(&m);
            return false;
        }
        const size_t len = zmq_msg_size(&m);
        if (n < BH_ARRAY_LEN(to) && len < size[n])
            memcpy(to[n], zmq_msg_data(&m), len);
        else
            good = false;
        if (n == 0)
            q->from_n = len;
        if (n == BH_ARRAY_LEN(to) - 1)
            r->key_n = len;
        more = zmq_msg_more(&m);
        zmq_msg_close(&m);
    }
    return good && n >= BH_ARRAY_LEN(to) - 1 && n <= BH_ARRAY_LEN(to) &&
           bh_streq(r->version, "1.0");
}

/* "No" is silence: libzmq lets the handshake time out, and the connection is tried again. After an
 * answer of 400, or of 300 that comes before the other side's part of the handshake, a socket that
 * connects is dead for good, and a key or user that is allowed later would need a restart. */
static void answer(void)
{
    struct bh_bus_zap *z = NULL;
    struct question q;
    char user[64] = "";
    bool yes = zap_recv(&q);

    pthread_mutex_lock(&zap.lock);
    if (yes)
        LIST_FOREACH(z, &zap.list, link)
            if (bh_streq(z->domain, q.r.domain))
                break;
    yes = yes && (z ? z->fn(z->arg, &q.r, user) : bh_streq(q.r.domain, BH_BUS_ZAP_DOOR));
    pthread_mutex_unlock(&zap.lock);
    if (yes) {
        const char *const frames[] = {"", "1.0", q.r.id, "200", "OK", user};
        (void)zmq_send(zap.questions, q.from, q.from_n, ZMQ_SNDMORE);
        for (size_t i = 0; i < BH_ARRAY_LEN(frames); i++)
            (void)zmq_send(zap.questions, frames[i], strlen(frames[i]), ZMQ_SNDMORE);
        (void)zmq_send(zap.questions, "", 0, 0);
    }
}

static void *run(void *arg)
{
    zmq_pollitem_t items[2] = {{.socket = zap.questions, .events = ZMQ_POLLIN},
                               {.socket = zap.stop_out, .events = ZMQ_POLLIN}};

    (void)arg;
    for (;;) {
        if (zmq_poll(items, 2, -1) < 0) {
            if (errno != EINTR)
                return NULL;
            continue;
        }
        if (items[1].revents)
            return NULL;
        if (items[0].revents)
            answer();
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

static void close_sockets(void)
{
    void **const all[] = {&zap.stop_in, &zap.stop_out, &zap.questions};

    for (size_t i = 0; i < BH_ARRAY_LEN(all); i++) {
        if (*all[i])
            zmq_close(*all[i]);
        *all[i] = NULL;
    }
}

static int start(void *context, struct bh_err *err)
{
    int rc = 0;

    zap.questions = zmq_socket(context, ZMQ_ROUTER);
    zap.stop_in = zmq_socket(context, ZMQ_PAIR);
    zap.stop_out = zmq_socket(context, ZMQ_PAIR);
    if (!zap.questions || !zap.stop_in || !zap.stop_out ||
        zmq_bind(zap.questions, ZAP_ENDPOINT) < 0 || zmq_bind(zap.stop_out, STOP_ENDPOINT) < 0 ||
        zmq_connect(zap.stop_in, STOP_ENDPOINT) < 0)
        rc = bh_err_set(err, -errno, "handshakes: %s", zmq_strerror(errno));
    if (rc == 0 && (rc = -pthread_create(&zap.thread, NULL, run, NULL)) < 0)
        bh_err_set(err, rc, "thread for handshakes: %s", strerror(-rc));
    if (rc < 0)
        close_sockets();
    return rc;
}

static void change_list(struct bh_bus_zap *add, struct bh_bus_zap *remove)
{
    pthread_mutex_lock(&zap.lock);
    if (add)
        LIST_INSERT_HEAD(&zap.list, add, link);
    if (remove)
        LIST_REMOVE(remove, link);
    pthread_mutex_unlock(&zap.lock);
}

int bh_bus_zap_open(void *context, const char *domain, bh_bus_zap_answer *fn, void *arg,
                    struct bh_bus_zap **ret, struct bh_err *err)
{
    int rc = 0;

    pthread_mutex_lock(&zap.life);
    if (!zap.questions)
        rc = start(context, err);
    if (rc == 0) {
        *ret = bh_calloc(1, sizeof(**ret));
        (*ret)->domain = bh_strdup(domain);
        (*ret)->fn = fn;
        (*ret)->arg = arg;
        change_list(*ret, NULL);
    }
    pthread_mutex_unlock(&zap.life);
    return rc;
}

void bh_bus_zap_close(struct bh_bus_zap *z)
{
    if (!z)
        return;
    pthread_mutex_lock(&zap.life);
    change_list(NULL, z);
    if (LIST_EMPTY(&zap.list)) {
        (void)zmq_send(zap.stop_in, "", 0, 0);
        pthread_join(zap.thread, NULL);
        close_sockets();
    }
    pthread_mutex_unlock(&zap.life);
    free(z->domain);
    free(z);
}
