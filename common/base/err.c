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

static size_t append(struct bh_err *err, size_t used, const char *s)
{
    size_t n = strnlen(s, sizeof(err->msg) - 1 - used);
    memcpy(err->msg + used, s, n);
    err->msg[used + n] = '\0';
    return used + n;
}

int bh_err_prefix(struct bh_err *err, int rc, const char *fmt, ...)
{
    if (!err)
        return rc;
    struct bh_err next;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(next.msg, sizeof(next.msg), fmt, ap);
    va_end(ap);
    size_t used = n < 0 ? 0 : BH_MIN((size_t)n, sizeof(next.msg) - 1);
    used = append(&next, used, ": ");
    append(&next, used, err->msg);
    *err = next;
    return rc;
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
