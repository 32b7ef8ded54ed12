/* SPDX-License-Identifier: Apache-2.0
 *
 * common/http/listen.h - a listening socket (used inside common/http)
 */
#ifndef BH_HTTP_LISTEN_H
#define BH_HTTP_LISTEN_H

#include "common/base/base.h"

/* address: IPv4 or IPv6 literal, with or without brackets; NULL or "" = every address of both
 * families. port 0 = any free one, see *ret_port. 0 or -errno with err. */
int bh_http_listen(const char *address, uint16_t port, bool reuse_port, int *ret_fd,
                   uint16_t *ret_port, struct bh_err *err);
/* A Unix socket of mode 0660. A dead one of ours at the path is replaced; what else lies there
 * fails, see common/base/sockpath.h. 0 or -errno with err. */
int bh_http_listen_unix(const char *path, int *ret_fd, struct bh_err *err);
#endif
