/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/backoff.c - waiting times between attempts
 *
 * Runs in:  anywhere; no state but the caller's.
 * Upstream: apimachinery/pkg/util/wait/backoff.go (exponentialBackoffManagerImpl) with the values
 *           of client-go/tools/cache/reflector.go; differences: none.
 */
#include "common/api/client.h"

#define FIRST_NS (UINT64_C(800) * 1000000)
#define CAP_NS   (UINT64_C(30) * 1000000000)
#define QUIET_NS (UINT64_C(120) * 1000000000)

void bh_backoff_init(struct bh_backoff *b)
{
    *b = (struct bh_backoff){.cur_ns = 0};
    bh_rand_seed(&b->rand, bh_rand_entropy());
}

uint64_t bh_backoff_next_ns(struct bh_backoff *b)
{
    const uint64_t now = bh_mono_ns();
    if (b->cur_ns == 0 || now - b->last_ns > QUIET_NS)
        b->cur_ns = FIRST_NS;
    b->last_ns = now;
    uint64_t wait = b->cur_ns + (uint64_t)(bh_rand_unit(&b->rand) * (double)b->cur_ns);
    b->cur_ns = BH_MIN(b->cur_ns * 2, CAP_NS);
    return wait;
}
