/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine/fast/packed.c - an array of numbers that is as narrow as its largest number allows
 *
 * Runs in: its owner's thread.
 */
#include "scheduler/engine/fast/packed.h"

#include "common/base/pages.h"

void bh_packed_init(struct bh_packed *a, uint32_t n, uint8_t width)
{
    *a = (struct bh_packed){.n = n, .width = width};
    if (width)
        a->v = bh_pages_new(bh_packed_bytes(a));
}

void bh_packed_fini(struct bh_packed *a)
{
    bh_pages_free(a->v, bh_packed_bytes(a));
    memset(a, 0, sizeof *a);
}

size_t bh_packed_bytes(const struct bh_packed *a)
{
    return (size_t)((a->n + BH_PACKED_PAD - 1) / BH_PACKED_PAD * BH_PACKED_PAD) * a->width;
}

void bh_packed_widen(struct bh_packed *a, int64_t x)
{
    struct bh_packed b = {.n = a->n, .width = a->width};

    while (!bh_packed_fits(&b, x))
        b.width = b.width ? b.width * 2 : 1;
    if (b.width == a->width)
        return;
    b.v = bh_pages_new(bh_packed_bytes(&b));
    for (uint32_t i = 0; i < a->n && a->width; i++)
        bh_packed_set(&b, i, bh_packed_get(a, i));
    bh_pages_free(a->v, bh_packed_bytes(a));
    *a = b;
}

bool bh_packed_any(const struct bh_packed *a, uint32_t i)
{
    uint64_t any = 0;

    if (!a->width) /* nothing was ever stored */
        return false;
    const uint64_t *v = (const void *)((const char *)a->v + (size_t)i * a->width);
    for (uint32_t k = 0; k < BH_PACKED_PAD / 8 * a->width; k++)
        any |= v[k];
    return any != 0;
}
