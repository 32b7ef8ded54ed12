/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/key.h - keys of maps
 */
#ifndef BH_KEY_H
#define BH_KEY_H

#include "common/base/base.h"

/* "a/b" and a NUL into out; its length, 0 when cap is too small. */
static inline size_t bh_key_pair(char *out, size_t cap, const char *a, const char *b)
{
    const size_t n_a = strlen(a), n_b = strlen(b);

    if (n_a + n_b + 2 > cap)
        return 0;
    memcpy(out, a, n_a);
    out[n_a] = '/';
    memcpy(out + n_a + 1, b, n_b + 1);
    return n_a + 1 + n_b;
}
#endif
