/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/err.c - the human-readable cause of a failure
 *
 * Invariants: msg is always NUL-terminated; what does not fit is cut at the end.
 * Runs in:    any thread; the caller owns the struct.
 */
#include "common/base/base.h"

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
