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

/* Fields of one message outside its repeated one; far above what berth.proto has. */
#define SCALARS_MAX 64u
/* A decoded message takes at most this much of the arena: a valid one stays below ten times its
 * bytes; unknown fields can make more of it. */
#define DECODE_BASE_BYTES ((size_t)1 << 20)
#define DECODE_FACTOR     16

struct wire {
    const uint8_t *p, *end;
};
struct field {
    uint32_t type; /* wire type */
    struct wire body;
};

static bool read_varint(struct wire *w, uint64_t *ret)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64 && w->p < w->end; shift += 7) {
        uint8_t b = *w->p++;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80) {
            *ret = v;
            return true;
        }
    }
    return false;
}

static bool read_field(struct wire *w, struct field *ret)
{
    uint64_t tag, n = 0;
    if (!read_varint(w, &tag))
        return false;
    ret->type = tag & 7;
    if (ret->type == 0)
        return read_varint(w, &n);
    if (ret->type == 2) {
        if (!read_varint(w, &n))
            return false;
    } else if (ret->type == 1 || ret->type == 5) {
        n = ret->type == 1 ? 8 : 4;
    } else {
        return false;
    }
    if (n > (uint64_t)(w->end - w->p))
        return false;
    ret->body = (struct wire){w->p, w->p + n};
    w->p += n;
    return true;
}

/* Two levels: envelope and payload. What an item can blow up to is bounded by the arena's limit. */
static bool fields_sane(struct wire w, size_t max, bool is_envelope)
{
    struct field f;
    for (size_t n = 0; w.p < w.end; n++) {
        if (n >= max || !read_field(&w, &f))
            return false;
        if (is_envelope && f.type == 2 &&
            !fields_sane(f.body, BH_BUS_BATCH_ITEMS + SCALARS_MAX, false))
            return false;
    }
    return true;
}

/* protobuf-c takes a field number 0 that is written in two bytes or more, and keeps it: in one byte,
 * as it would write it itself, it refuses it. No message has such a field. */
static bool numbers_sane(const ProtobufCMessage *m)
{
    for (unsigned i = 0; i < m->n_unknown_fields; i++)
        if (m->unknown_fields[i].tag == 0)
            return false;
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        const char *at = (const char *)m + f->offset;
        if (f->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        const bool many = f->label == PROTOBUF_C_LABEL_REPEATED;
        ProtobufCMessage *const *list =
            many ? *(ProtobufCMessage *const *const *)at : (ProtobufCMessage *const *)at;
        const size_t n = many ? *(const size_t *)((const char *)m + f->quantifier_offset) : !!*list;
        for (size_t k = 0; k < n; k++)
            if (!numbers_sane(list[k]))
                return false;
    }
    return true;
}

Berth__Envelope *bh_bus_decode(struct bh_arena *a, const void *p, size_t n)
{
    if (!fields_sane((struct wire){p, (const uint8_t *)p + n}, SCALARS_MAX, true))
        return NULL;
    const size_t limit = a->limit_bytes;
    size_t ours = a->used_bytes + DECODE_BASE_BYTES + n * DECODE_FACTOR;
    a->limit_bytes = limit ? BH_MIN(limit, ours) : ours;
    ProtobufCAllocator alloc = bh_arena_pb_allocator(a);
    Berth__Envelope *e =
        (Berth__Envelope *)bh_pb_unpack_fast(a, &berth__envelope__descriptor, p, n);
    if (!e) {
        e = berth__envelope__unpack(&alloc, n, p);
        if (e && !numbers_sane(&e->base))
            e = NULL;
    }
    a->limit_bytes = limit;
    if (e && (!e->has_version || e->version != BH_BUS_VERSION || bh_bus_validate(e)))
        e = NULL;
    return e;
}
