/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine/fast/packed.h - an array of numbers that is as narrow as its largest number allows
 *
 * What the fast path keeps for each shape is one number or two a node, for a hundred shapes and up
 * to a million nodes; most of these numbers are small, and many arrays hold nothing but zeros.
 *
 * Owns:       its memory. All zero at first, without any memory; bh_packed_set widens it when a
 *             number does not fit, so a set may call malloc, at most four times in an array's life.
 * Invariants: width is 0 (all are 0), 1, 2, 4 or 8 bytes; never becomes less. Negative numbers need
 *             8. The memory is a multiple of BH_PACKED_PAD numbers, those behind n are 0.
 * Threads:    the owner's.
 */
#ifndef BH_PACKED_H
#define BH_PACKED_H

#include "common/base/base.h"

#define BH_PACKED_PAD 64u

struct bh_packed {
    void *v;
    uint32_t n;
    uint8_t width;
};
/* A width to begin with: 0, 1, 2, 4 or 8. */
void bh_packed_init(struct bh_packed *a, uint32_t n, uint8_t width);
void bh_packed_fini(struct bh_packed *a);
size_t bh_packed_bytes(const struct bh_packed *a);
void bh_packed_widen(struct bh_packed *a, int64_t x); /* until x fits */
/* Is any of the BH_PACKED_PAD numbers from i (a multiple of that) on not 0? */
bool bh_packed_any(const struct bh_packed *a, uint32_t i);

static inline int64_t bh_packed_get(const struct bh_packed *a, uint32_t i)
{
    switch (a->width) {
    case 0:
        return 0;
    case 1:
        return ((const uint8_t *)a->v)[i];
    case 2:
        return ((const uint16_t *)a->v)[i];
    case 4:
        return ((const uint32_t *)a->v)[i];
    default:
        return ((const int64_t *)a->v)[i];
    }
}
static inline bool bh_packed_fits(const struct bh_packed *a, int64_t x)
{
    return a->width == 8 || (uint64_t)x >> (8 * a->width) == 0;
}
static inline void bh_packed_set(struct bh_packed *a, uint32_t i, int64_t x)
{
    if (bh_unlikely(!bh_packed_fits(a, x)))
        bh_packed_widen(a, x);
    switch (a->width) {
    case 0:
        return;
    case 1:
        ((uint8_t *)a->v)[i] = (uint8_t)x;
        return;
    case 2:
        ((uint16_t *)a->v)[i] = (uint16_t)x;
        return;
    case 4:
        ((uint32_t *)a->v)[i] = (uint32_t)x;
        return;
    default:
        ((int64_t *)a->v)[i] = x;
    }
}
#endif
