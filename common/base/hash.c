/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/hash.c - XXH3 with a seed
 *
 * Not for content addressing: an adversary that chooses inputs and knows the seed finds collisions.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdatomic.h>

#include "common/base/base.h"
#include "common/base/hash_seed.h"

uint64_t bh_hash(const void *p, size_t n, uint64_t seed)
{
    return XXH3_64bits_withSeed(p, n, seed);
}

uint64_t bh_hash_seed(void)
{
    static _Atomic uint64_t secret, count;
    uint64_t s = atomic_load_explicit(&secret, memory_order_relaxed);

    if (!s) {
        /* Two threads at once: the first one's secret stays. */
        uint64_t mine = bh_rand_entropy() | 1;
        if (atomic_compare_exchange_strong(&secret, &s, mine))
            s = mine;
    }
    uint64_t n = atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
    return XXH3_64bits_withSeed(&n, sizeof(n), s);
}
