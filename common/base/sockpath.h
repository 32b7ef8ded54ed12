/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/sockpath.h - which users may stand behind the path of a Unix socket
 *
 * Used where a socket is made, and where one is opened: by the bus (common/bus) and by the HTTP
 * servers of the daemons (common/http).
 */
#ifndef BH_SOCKPATH_H
#define BH_SOCKPATH_H

#include "common/base/base.h"

#define BH_SOCKPATH_MAX 107u /* bytes, without the NUL */

/* Is there a listener? 0, -ENOENT, -ECONNREFUSED (left over from a process that was killed),
 * -EACCES, -EINVAL. Connects for an instant. */
int bh_sockpath_probe(const char *path);
/* path is at most BH_SOCKPATH_MAX bytes long and in a directory that is not world-writable. With
 * for_bind also: nothing but a dead socket of ours is in the way. 0, -ENAMETOOLONG, -ENOENT,
 * -ENOTDIR, -EPERM, -EEXIST, -EADDRINUSE. */
int bh_sockpath_check(const char *path, bool for_bind, struct bh_err *err);
/* A listening socket, mode 0660, in place of what lies at path, which was checked: fd or -errno. */
int bh_sockpath_listen(const char *path, int backlog);
#endif
