/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/owned.h - files of code that may be loaded: nobody but their owner could have changed
 * them
 */
#ifndef BH_OWNED_H
#define BH_OWNED_H

#include "common/base/base.h"

/* Opens the file for reading if only its owner, we or root, could have put it there and can change
 * it: a regular file, no symbolic links on the way. The descriptor, or -errno. */
int bh_owned_open(const char *path, struct bh_err *err);
#endif
