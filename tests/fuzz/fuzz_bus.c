/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_bus.c - any bytes as a frame of the bus
 *
 * What is accepted obeys the rules, is packed again and accepted again; a frame never costs more
 * memory than the decoder's bound.
 */
#include "common/bus/bus_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bh_arena a;
    bh_arena_init(&a, 0);
    Berth__Envelope *e = bh_bus_decode(&a, data, size);
    bh_assert(a.used_bytes <= ((size_t)1 << 20) + 16 * size);
    if (e) {
        bh_assert(!bh_bus_validate(e));
        size_t n = berth__envelope__get_packed_size(e);
        uint8_t *p = bh_malloc(n + 1);
        bh_assert(berth__envelope__pack(e, p) == n);
        bh_assert(bh_bus_decode(&a, p, n));
        free(p);
    }
    bh_arena_fini(&a);
    return 0;
}
