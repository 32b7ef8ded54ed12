/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/limit.c - requests a second, of one client or of all clients that name the same file
 *
 * A token bucket kept as one number, the time at which it would be full again (GCRA): a request
 * moves it on by 1/qps and may go while it is at most burst/qps ahead of now. One word in a file is
 * all that several processes need to share it; a process that dies leaves nothing behind.
 *
 * The processes may have users of their own, and each of them may write the file. So it is read and
 * written, never mapped: another user could truncate it (SIGBUS). The number that this process saw
 * last is a lower bound for the one in the file, and takes its place where the file cannot be right
 * (short, or further ahead than a full bucket): nothing in the file lets more requests through than
 * the limit, and rubbish does not hold any back.
 * Two processes exclude each other by a lock on the file. Any user may hold it for ever: after a
 * few tries a request goes on without it, at worst one request above the limit.
 * Upstream:   k8s.io/client-go/util/flowcontrol (same rate and burst).
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/api/api_int.h"
#include "common/base/log.h"

#define LOCK_TRIES 16

/* A descriptor, negative errno. */
static int open_shared(const char *file)
{
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    struct stat st;
    /* The group may write, as far as the umask lets it. O_CREAT comes second, since the kernel
     * refuses it for another user's file in a folder where only owners may remove files
     * (fs.protected_regular). */
    int fd = open(file, flags);
    if (fd < 0 && errno == ENOENT)
        fd = open(file, flags | O_CREAT, 0660);
    if (fd < 0)
        return -errno;
    int rc = fstat(fd, &st) < 0     ? -errno
             : !S_ISREG(st.st_mode) ? -EINVAL
                                    : bh_reserve_file(fd, sizeof(uint64_t));
    if (rc == 0)
        return fd;
    close(fd);
    return rc;
}

int bh_api_limit_init(struct bh_api_limit *l, double qps, int burst, const char *file,
                      struct bh_err *err)
{
    *l = (struct bh_api_limit){.fd = -1};
    if (!(qps > 0))
        return 0;
    l->gap_ns = (uint64_t)(1e9 / BH_MAX(qps, 1e-6));
    l->burst_ns = l->gap_ns * (uint64_t)BH_MAX(burst, 1);
    if (!file)
        return 0;
    int fd = open_shared(file);
    if (fd == -ENOSPC) /* a full disk must not keep a process down: the limit is then its own */
        bh_log_warn("No room to share the request limit: this process has one of its own",
                    bh_kv_s("file", file), bh_kv_s("err", strerror(ENOSPC)));
    else if (fd < 0)
        return bh_err_set(err, fd, "could not share the request limit in \"%s\": %s", file,
                          fd == -EINVAL ? "not a regular file" : strerror(-fd));
    else
        l->fd = fd;
    return 0;
}

void bh_api_limit_fini(struct bh_api_limit *l)
{
    if (l->gap_ns && l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}

static bool lock_file(const struct bh_api_limit *l, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_len = 1};

    return l->fd >= 0 && fcntl(l->fd, F_OFD_SETLK, &lock) == 0;
}

/* When the bucket would be full, as far as it can be believed. */
static uint64_t full_at(const struct bh_api_limit *l, uint64_t now)
{
    uint64_t full = l->own_ns, shared;

    if (l->fd >= 0 && pread(l->fd, &shared, sizeof(shared), 0) == (ssize_t)sizeof(shared) &&
        shared <= now + l->burst_ns)
        full = BH_MAX(full, shared);
    return BH_MAX(full, now);
}

bool bh_api_limit_take(struct bh_api_limit *l, uint64_t now)
{
    if (!l->gap_ns)
        return true;
    for (int i = 0; l->fd >= 0 && !lock_file(l, F_WRLCK) && i < LOCK_TRIES; i++)
        sched_yield();
    const uint64_t next = full_at(l, now) + l->gap_ns;
    const bool may = next <= now + l->burst_ns;
    if (may) {
        l->own_ns = next;
        if (l->fd >= 0) /* failing: this process still keeps to it */
            (void)!pwrite(l->fd, &next, sizeof(next), 0);
    }
    (void)lock_file(l, F_UNLCK);
    return may;
}

uint64_t bh_api_limit_next(const struct bh_api_limit *l, uint64_t now)
{
    if (!l->gap_ns)
        return now;
    uint64_t next = full_at(l, now) + l->gap_ns - l->burst_ns;
    return BH_MAX(next, now);
}
