/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/frame.c - bytes of a frame into a message
 *
 * Invariants: a hostile frame costs at most DECODE_BASE_BYTES + DECODE_FACTOR times its size; what
 *             is returned obeys bh_bus_validate().
 * Runs in:    the thread that owns the socket; no state.
 */
#include "common/bus/bus_int.h"
#include "common/k8s/codec.h"
#include "common/k8s/wire.h"

/* Fields of one message outside its repeated one; far above what berth.proto has. */
#define SCALARS_MAX 64u
/* A decoded message takes at most this much of the arena: a valid one stays below ten times its
 * bytes; unknown fields can make more of it. */
#define DECODE_BASE_BYTES ((size_t)1 << 20)
#define DECODE_FACTOR     16

/* Two levels: envelope and payload. What an item can blow up to is bounded by the arena's limit. */
static bool fields_sane(struct bh_str bytes, size_t max, bool is_envelope)
{
    struct bh_wire w = bh_wire_of(bytes.p, bytes.n);
    struct bh_wire_field f;
    int rc;

    for (size_t n = 0; (rc = bh_wire_next(&w, &f)) > 0; n++)
        if (n >= max || (is_envelope && f.is_bytes &&
                         !fields_sane(f.bytes, BH_BUS_BATCH_ITEMS + SCALARS_MAX, false)))
            return false;
    return rc == 0;
}

Berth__Envelope *bh_bus_decode(struct bh_arena *a, const void *p, size_t n)
{
    if (!fields_sane((struct bh_str){p, n}, SCALARS_MAX, true))
        return NULL;
    const size_t limit = a->limit_bytes;
    size_t ours = a->used_bytes + DECODE_BASE_BYTES + n * DECODE_FACTOR;
    a->limit_bytes = limit ? BH_MIN(limit, ours) : ours;
    ProtobufCAllocator alloc = bh_arena_pb_allocator(a);
    Berth__Envelope *e =
        (Berth__Envelope *)bh_pb_unpack_fast(a, &berth__envelope__descriptor, p, n);
    /* protobuf-c would cut a text at a NUL, and takes a field number 0 that is written in two bytes or
     * more, which it refuses in one byte, as it writes it itself. */
    if (!e && bh_pb_texts_are_whole(&berth__envelope__descriptor, p, n))
        e = berth__envelope__unpack(&alloc, n, p);
    a->limit_bytes = limit;
    if (e && (!e->has_version || e->version != BH_BUS_VERSION || bh_bus_validate(e)))
        e = NULL;
    return e;
}
