/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/limit.c - requests a second, of one client or of all clients that name the same file
 *
 * A token bucket kept as one number, the time at which it would be full again (GCRA): a request
 * moves it on by 1/qps and may go while it is at most burst/qps ahead of now. One word in a mapped
 * file is all that several processes need to share it; a process that dies leaves nothing behind.
 * Invariants: what the file says is never trusted for more than a full burst of waiting (another
 *             boot's clock, garbage); the file has its memory before it is mapped.
 * Upstream:   k8s.io/client-go/util/flowcontrol (same rate and burst).
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/api/api_int.h"
#include "common/base/log.h"

/* The word in the file, or NULL and *ret_rc. The file's room is taken before it is mapped: a store
 * into a hole of a full file system would raise SIGBUS. */
static void *map_word(const char *file, int *ret_rc)
{
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
    void *p = MAP_FAILED;
    struct stat st;
    /* The processes that share it may have users of their own: the group may write, as far as the
     * umask lets it. O_CREAT comes second, since the kernel refuses it for another user's file in a
     * folder where only owners may remove files (fs.protected_regular). */
    int fd = open(file, flags);
    if (fd < 0 && errno == ENOENT)
        fd = open(file, flags | O_CREAT, 0660);
    if (fd < 0 || fstat(fd, &st) < 0)
        *ret_rc = -errno;
    else if (!S_ISREG(st.st_mode))
        *ret_rc = -EINVAL;
    else
        *ret_rc = bh_reserve_file(fd, sizeof(uint64_t));
    if (*ret_rc == 0) {
        p = mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        *ret_rc = p == MAP_FAILED ? -errno : 0;
    }
    if (fd >= 0)
        close(fd);
    return *ret_rc == 0 ? p : NULL;
}

int bh_api_limit_init(struct bh_api_limit *l, double qps, int burst, const char *file,
                      struct bh_err *err)
{
    int rc;
    *l = (struct bh_api_limit){.full_ns = &l->own};
    if (!(qps > 0))
        return 0;
    l->gap_ns = (uint64_t)(1e9 / BH_MAX(qps, 1e-6));
    l->burst_ns = l->gap_ns * (uint64_t)BH_MAX(burst, 1);
    if (!file)
        return 0;
    void *p = map_word(file, &rc);
    if (rc == -ENOSPC) /* a full disk must not keep a process down: the limit is then its own */
        bh_log_warn("No room to share the request limit: this process has one of its own",
                    bh_kv_s("file", file), bh_kv_s("err", strerror(ENOSPC)));
    else if (rc < 0)
        return bh_err_set(err, rc, "could not share the request limit in \"%s\": %s", file,
                          rc == -EINVAL ? "not a regular file" : strerror(-rc));
    else
        l->full_ns = p;
    return 0;
}

void bh_api_limit_fini(struct bh_api_limit *l)
{
    if (l->full_ns && l->full_ns != &l->own)
        munmap((void *)l->full_ns, sizeof(uint64_t));
    l->full_ns = &l->own;
}

/* When the bucket would be full, as far as it can be believed. */
static uint64_t full_at(const struct bh_api_limit *l, uint64_t said, uint64_t now)
{
    return BH_MIN(BH_MAX(said, now), now + l->burst_ns);
}

bool bh_api_limit_take(struct bh_api_limit *l, uint64_t now)
{
    if (!l->gap_ns)
        return true;
    uint64_t said = atomic_load_explicit(l->full_ns, memory_order_relaxed), next;
    do {
        next = full_at(l, said, now) + l->gap_ns;
        if (next > now + l->burst_ns)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(l->full_ns, &said, next, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

uint64_t bh_api_limit_next(const struct bh_api_limit *l, uint64_t now)
{
    if (!l->gap_ns)
        return now;
    uint64_t said = atomic_load_explicit(l->full_ns, memory_order_relaxed);
    uint64_t next = full_at(l, said, now) + l->gap_ns - l->burst_ns;
    return BH_MAX(next, now);
}
