/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/download.h - one file from an http:// or https:// URL, into memory
 *
 * One attempt, no credentials but what the URL has, redirects followed (never from https to http),
 * the certificate checked against the system's. Blocks for as long as the server sends at least a
 * little, at most five minutes.
 *
 * Errors:  negative errno and a text without the URL: "received 404 status code", curl's own.
 *          -EFBIG: it is longer than max; -ECANCELED: *stop became true.
 * Threads: any.
 */
#ifndef BH_DOWNLOAD_H
#define BH_DOWNLOAD_H

#include <stdatomic.h>

#include "common/base/buf.h"

/* stop: NULL allowed. ret: empty; on failure too. */
int bh_download(const char *url, size_t max, const atomic_bool *stop, struct bh_buf *ret,
                struct bh_err *err);
#endif
