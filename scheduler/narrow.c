/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/narrow.c - an array of numbers that is as narrow as its largest number allows
 *
 * Runs in: its owner's thread.
 */
#include "scheduler/narrow.h"

#include "common/base/pages.h"

static uint32_t padded(uint32_t n)
{
    return (n + BH_NARROW_PAD - 1) / BH_NARROW_PAD * BH_NARROW_PAD;
}

void bh_narrow_init(struct bh_narrow *a, uint32_t n, uint8_t width)
{
    *a = (struct bh_narrow){.n = n, .width = width};
    if (width)
        a->v = bh_pages_new(bh_narrow_bytes(a));
}

void bh_narrow_fini(struct bh_narrow *a)
{
    bh_pages_free(a->v, bh_narrow_bytes(a));
    memset(a, 0, sizeof *a);
}

size_t bh_narrow_bytes(const struct bh_narrow *a)
{
    return (size_t)padded(a->n) * a->width;
}

void bh_narrow_widen(struct bh_narrow *a, int64_t x)
{
    struct bh_narrow b = {.n = a->n, .width = a->width};

    while (!bh_narrow_fits(&b, x))
        b.width = b.width ? b.width * 2 : 1;
    if (b.width == a->width)
        return;
    b.v = bh_pages_new(bh_narrow_bytes(&b));
    for (uint32_t i = 0; i < a->n && a->width; i++)
        bh_narrow_set(&b, i, bh_narrow_get(a, i));
    bh_pages_free(a->v, bh_narrow_bytes(a));
    *a = b;
}

bool bh_narrow_any(const struct bh_narrow *a, uint32_t i)
{
    const uint64_t *v = (const void *)((const char *)a->v + (size_t)i * a->width);
    uint64_t any = 0;

    for (uint32_t k = 0; k < BH_NARROW_PAD / 8 * a->width; k++)
        any |= v[k];
    return any != 0;
}
