/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/trial.h - running code of a file in a child process before it runs in this one
 *
 * A file that crashes, exits or hangs while it is loaded is an error message, not the end of the
 * process. What the trial loaded is gone with the child.
 * Threads:    any; other threads do not exist in the child.
 */
#ifndef BH_TRIAL_H
#define BH_TRIAL_H

#include "common/base/base.h"

/* Calls try(arg) in a child, for at most ten seconds. 0: it returned 0. Else -EINVAL with the text
 * of its error, -EFAULT (it crashed), -ETIMEDOUT, -errno (no child); file is what messages name. */
int bh_try_in_child(const char *file, int (*try)(void *arg, struct bh_err *err), void *arg,
                    struct bh_err *err);
#endif
