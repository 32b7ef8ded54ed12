/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/bus_int.h - between the files of common/bus
 */
#ifndef BH_BUS_INT_H
#define BH_BUS_INT_H

#include "common/bus/bus.h"

/* Checks that endpoint is "ipc://" + absolute path of at most 107 bytes in a directory that not
 * everybody may write. With for_bind also: nothing but a dead socket of ours is in the way.
 * 0, -EINVAL, -ENAMETOOLONG, -ENOENT, -EPERM, -EEXIST, -EADDRINUSE. *ret_path points into endpoint.
 */
int bh_bus_check_path(const char *endpoint, bool for_bind, const char **ret_path,
                      struct bh_err *err);
/* The message, living in a; NULL when the bytes are no valid message of our version. A frame whose
 * messages repeat fields more often than any valid one does is refused before it is unpacked, so
 * that a few bytes cannot become gigabytes of structs. */
Berth__Envelope *bh_bus_decode(struct bh_arena *a, const void *p, size_t n);
#endif
