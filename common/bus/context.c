/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/context.c - the process's one ZeroMQ context, with one I/O thread
 *
 * Owns:       the context; it lives from the first bus to the last.
 * Runs in:    any thread.
 * Fails with: -EMFILE and its like where the context's own descriptors are not to be had: libzmq
 *             aborts on some of them, so they are asked for before.
 */
#include "common/bus/bus_int.h"

#include <errno.h>
#include <pthread.h>
#include <zmq.h>

#define CONTEXT_FDS                                                                                \
    8 /* mailboxes and epoll sets of two threads, the first socket's; two to spare */

static struct {
    pthread_mutex_t lock;
    void *context;
    unsigned users;
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int context_new(struct bh_err *err)
{
    int rc = bh_err_spare_fds(CONTEXT_FDS, err);

    if (rc < 0)
        return bh_err_prefix(err, rc, "message context");
    shared.context = zmq_ctx_new();
    if (!shared.context)
        return bh_err_set(err, -errno, "message context: %s", zmq_strerror(errno));
    (void)zmq_ctx_set(shared.context, ZMQ_IO_THREADS, 1);
    (void)zmq_ctx_set(shared.context, ZMQ_BLOCKY,
                      0); /* a socket lingers only where it is told to */
    return 0;
}

int bh_bus_context_get(void **ret, struct bh_err *err)
{
    int rc = 0;

    pthread_mutex_lock(&shared.lock);
    if (!shared.context)
        rc = context_new(err);
    if (rc == 0)
        shared.users++;
    *ret = shared.context;
    pthread_mutex_unlock(&shared.lock);
    return rc;
}

void bh_bus_context_put(void)
{
    pthread_mutex_lock(&shared.lock);
    bh_assert(shared.users > 0);
    if (--shared.users == 0) {
        /* Waits for unsent messages only where a bus lingers (bh_bus_linger). */
        while (zmq_ctx_term(shared.context) < 0 && errno == EINTR)
            ;
        shared.context = NULL;
    }
    pthread_mutex_unlock(&shared.lock);
}
