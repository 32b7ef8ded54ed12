/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/err.c - the human-readable cause of a failure
 *
 * Invariants: msg is always NUL-terminated; what does not fit is cut at the end.
 * Runs in:    any thread; the caller owns the struct.
 */
#include "common/base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

int bh_err_set(struct bh_err *err, int rc, const char *fmt, ...)
{
    if (!err)
        return rc;
    /* Through a copy: an argument may be the present message. */
    struct bh_err next;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(next.msg, sizeof(next.msg), fmt, ap);
    va_end(ap);
    *err = next;
    return rc;
}

int bh_err_prefix(struct bh_err *err, int rc, const char *fmt, ...)
{
    struct bh_err prefix;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(prefix.msg, sizeof(prefix.msg), fmt, ap);
    va_end(ap);
    return err ? bh_err_set(err, rc, "%s: %s", prefix.msg, err->msg) : rc;
}

int bh_err_lack(struct bh_err *err, int e)
{
    struct rlimit limit = {.rlim_cur = 0};

    switch (e) {
    case EMFILE:
        getrlimit(RLIMIT_NOFILE, &limit);
        return bh_err_set(err, -e,
                          "no file descriptor is left (EMFILE): this process may have %llu; raise "
                          "its limit (LimitNOFILE= of the unit, ulimit -n)",
                          (unsigned long long)limit.rlim_cur);
    case ENFILE:
        return bh_err_set(err, -e,
                          "no file descriptor is left on this machine (ENFILE): raise fs.file-max");
    case ENOMEM:
    case ENOBUFS:
        return bh_err_set(err, -e, "no memory is left (%s)", e == ENOMEM ? "ENOMEM" : "ENOBUFS");
    default:
        return 0;
    }
}

int bh_err_spare_fds(unsigned n, struct bh_err *err)
{
    int fd[16], rc = 0;
    unsigned k;

    bh_assert(n <= BH_ARRAY_LEN(fd));
    for (k = 0; k < n; k++) {
        fd[k] = open("/", O_PATH | O_CLOEXEC);
        if (fd[k] < 0) {
            rc = bh_err_lack(err, errno);
            break;
        }
    }
    while (k > 0)
        close(fd[--k]);
    return rc;
}
