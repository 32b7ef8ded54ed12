/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/rand.c - reproducible streams (xoshiro256**), entropy, version 4 UUIDs
 *
 * Runs in: any thread; a stream belongs to one owner.
 */
#include "common/base/base.h"

#include <errno.h>
#include <sys/random.h>

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

/* splitmix64: spreads one seed word so that no stream starts in the all-zero state. */
static uint64_t splitmix(uint64_t *x)
{
    uint64_t z = (*x += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void bh_rand_seed(struct bh_rand *r, uint64_t seed)
{
    for (size_t i = 0; i < BH_ARRAY_LEN(r->s); i++)
        r->s[i] = splitmix(&seed);
}

uint64_t bh_rand_u64(struct bh_rand *r)
{
    uint64_t *s = r->s;
    uint64_t result = rotl(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

uint64_t bh_rand_below(struct bh_rand *r, uint64_t bound)
{
    bh_assert(bound > 0);
    /* High half of x * bound; draws from the short last interval would favour some values. */
    uint64_t floor = -bound % bound;
    for (;;) {
        unsigned __int128 m = (unsigned __int128)bh_rand_u64(r) * bound;
        if ((uint64_t)m >= floor)
            return (uint64_t)(m >> 64);
    }
}

double bh_rand_unit(struct bh_rand *r)
{
    return (double)(bh_rand_u64(r) >> 11) * 0x1.0p-53;
}

static void entropy(void *p, size_t n)
{
    ssize_t got;
    /* Up to 256 bytes getrandom() neither fails nor returns less once the pool is ready. */
    do {
        got = getrandom(p, n, 0);
    } while (got < 0 && errno == EINTR);
    bh_assert(got == (ssize_t)n);
}

uint64_t bh_rand_entropy(void)
{
    uint64_t v;
    entropy(&v, sizeof(v));
    return v;
}

void bh_uuid_text(const uint8_t b[static 16], char out[static 37])
{
    static const char hex[] = "0123456789abcdef";
    char *o = out;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *o++ = '-';
        *o++ = hex[b[i] >> 4];
        *o++ = hex[b[i] & 15];
    }
    *o = '\0';
}

static void uuid4_text(uint8_t b[static 16], char out[static 37])
{
    b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    bh_uuid_text(b, out);
}

void bh_uuid4(char out[static 37])
{
    uint8_t b[16];

    entropy(b, sizeof(b));
    uuid4_text(b, out);
}

void bh_uuid4_rand(struct bh_rand *r, char out[static 37])
{
    uint64_t v[2] = {bh_rand_u64(r), bh_rand_u64(r)};
    uint8_t b[16];

    memcpy(b, v, sizeof(b));
    uuid4_text(b, out);
}
