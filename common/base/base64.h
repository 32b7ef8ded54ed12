/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/base64.h - base64 as Go's encoding/base64 StdEncoding reads it
 *
 * Padding is required, CR and LF are skipped wherever they stand, bits behind the last byte are not
 * looked at; nothing else is let through.
 */
#ifndef BH_BASE64_H
#define BH_BASE64_H

#include "common/base/base.h"

/* Room that bh_base64_decode() needs for n characters. */
#define BH_BASE64_ROOM(n) ((n) / 4 * 3)

/* 0: *ret_n bytes are in out. -EINVAL: *ret_n is the place that Go's error names. */
int bh_base64_decode(const char *s, size_t n, void *out, size_t *ret_n);
#endif
