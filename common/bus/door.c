/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/door.c - the listening Unix socket of a bus: its file, and which connections it takes
 *
 * Owns:       the list of doors, and accept4(2) of the process: libzmq calls the function below,
 *             which looks whether the descriptor is a door's and otherwise does what libc's does.
 * Invariants: a door outlives the descriptor that libzmq has of it: one that is closed stays in the
 *             list, taking nothing, until the descriptor is seen to be gone.
 * Runs in:    libzmq's I/O thread; opening and closing in any.
 */
#include "common/bus/door.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/sockpath.h"

#define BACKLOG  64
#define PAUSE_MS 20

struct socket_id { /* the number alone comes again */
    int fd;
    ino_t inode;
};
struct bh_bus_door {
    LIST_ENTRY(bh_bus_door) link;
    struct socket_id listener;
    char *path;
    ino_t file;
    struct bh_bus_peers *peers; /* NULL: closed */
    int spare;                  /* a descriptor to refuse with when there is no other */
    bool lacking;               /* told that there is nothing to accept with */
    unsigned n;
    struct socket_id conn[BH_BUS_CONNECTIONS]; /* taken; may be gone since */
};

static struct {
    pthread_mutex_t lock;
    LIST_HEAD(, bh_bus_door) list;
} doors = {.lock = PTHREAD_MUTEX_INITIALIZER};

int accept4(int fd, struct sockaddr *sa, socklen_t *n, int flags);

static struct socket_id identify(int fd)
{
    struct stat st = {.st_ino = 0};

    return (struct socket_id){fd, fstat(fd, &st) == 0 ? st.st_ino : 0};
}

static bool is_open(const struct socket_id *s)
{
    return s->inode && identify(s->fd).inode == s->inode;
}

static int real_accept(int fd, int flags)
{
    return (int)syscall(SYS_accept4, fd, NULL, NULL, flags);
}

/* ---- taking connections ---------------------------------------------------------------------- */

static bool has_room(struct bh_bus_door *d)
{
    const unsigned n = d->n;

    if (n == BH_BUS_CONNECTIONS) {
        d->n = 0;
        for (unsigned i = 0; i < n; i++)
            if (is_open(&d->conn[i]))
                d->conn[d->n++] = d->conn[i];
    }
    return d->n < BH_BUS_CONNECTIONS;
}

/* The kernel remembers the user that called connect(2), even if the process changed it since. */
static bool belongs_here(struct bh_bus_door *d, int conn)
{
    struct ucred who = {.uid = (uid_t)-1};
    socklen_t n = sizeof(who);

    return getsockopt(conn, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 &&
           bh_bus_peers_admit(d->peers, who.uid, who.pid, d->path);
}

/* There is no descriptor for the connection that waits. Left there it would keep the I/O thread
 * awake, so it is ended, with the one that was kept for it. */
static void refuse(struct bh_bus_door *d, const struct bh_err *why)
{
    int conn = -1;

    if (!d->lacking)
        bh_log_warn("Cannot take a connection", bh_kv_s("socket", d->path),
                    bh_kv_s("err", why->msg));
    d->lacking = true;
    if (d->spare >= 0) {
        close(d->spare);
        conn = real_accept(d->listener.fd, SOCK_CLOEXEC);
    }
    if (conn >= 0)
        close(conn);
    else
        (void)poll(NULL, 0, PAUSE_MS);
    d->spare = d->peers ? open("/", O_PATH | O_CLOEXEC) : -1;
}

/* A descriptor, or -1 with one of the errors that libzmq goes on after. */
static int take(struct bh_bus_door *d, int flags)
{
    struct bh_err err;
    int conn = real_accept(d->listener.fd, flags);

    if (conn < 0) {
        if (bh_err_lack(&err, errno))
            refuse(d, &err);
    } else if (!d->peers || !has_room(d) || !belongs_here(d, conn)) {
        close(conn);
    } else {
        d->lacking = false;
        d->conn[d->n++] = identify(conn);
        return conn;
    }
    errno = EAGAIN;
    return -1;
}

/* In place of libc's, for libzmq too. */
int accept4(int fd, struct sockaddr *sa, socklen_t *n, int flags)
{
    struct bh_bus_door *d;
    int rc = -1;

    pthread_mutex_lock(&doors.lock);
    LIST_FOREACH(d, &doors.list, link)
        if (d->listener.fd == fd && is_open(&d->listener))
            break;
    if (d)
        rc = take(d, flags);
    pthread_mutex_unlock(&doors.lock);
    return d ? rc : (int)syscall(SYS_accept4, fd, sa, n, flags);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void forget_closed(void)
{
    struct bh_bus_door *d, *next;

    for (d = LIST_FIRST(&doors.list); d; d = next) {
        next = LIST_NEXT(d, link);
        if (d->peers || is_open(&d->listener))
            continue;
        LIST_REMOVE(d, link);
        free(d->path);
        free(d);
    }
}

int bh_bus_door_open(const char *path, struct bh_bus_peers *peers, struct bh_bus_door **ret,
                     int *ret_fd, struct bh_err *err)
{
    struct stat st;
    int fd = bh_sockpath_listen(path, BACKLOG);

    if (fd >= 0 && stat(path, &st) < 0) {
        int rc = -errno;
        close(fd);
        fd = rc;
    }
    if (fd < 0)
        return bh_err_set(err, fd, "socket \"%s\": %s", path, strerror(-fd));
    struct bh_bus_door *d = bh_calloc(1, sizeof(*d));
    d->listener = identify(fd);
    d->path = bh_strdup(path);
    d->file = st.st_ino;
    d->peers = peers;
    d->spare = open("/", O_PATH | O_CLOEXEC);
    pthread_mutex_lock(&doors.lock);
    forget_closed();
    LIST_INSERT_HEAD(&doors.list, d, link);
    pthread_mutex_unlock(&doors.lock);
    *ret = d;
    *ret_fd = fd;
    return 0;
}

void bh_bus_door_close(struct bh_bus_door *d)
{
    struct stat st;

    if (!d)
        return;
    if (stat(d->path, &st) == 0 && st.st_ino == d->file)
        unlink(d->path);
    pthread_mutex_lock(&doors.lock);
    d->peers = NULL;
    if (d->spare >= 0)
        close(d->spare);
    d->spare = -1;
    forget_closed();
    pthread_mutex_unlock(&doors.lock);
}
