/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/unpack.c - protobuf into the structures of protobuf-c, in one pass
 *
 * protobuf-c reads a message twice, looks every field up, and allocates every text on its own. This
 * reads what objects look like in practice: scalars, texts, bytes and messages, elements of a list
 * side by side. Whatever else comes (groups, packed lists, 32-bit numbers of fixed width, a message that
 * comes in two parts, errors of any kind) is left to protobuf-c, from the start: this file never
 * decides that something is wrong, and what it accepts is what protobuf-c would have made of it. A text
 * that holds NUL is left as well: protobuf-c cuts it there, its caller decides (bh_pb_texts()).
 *
 * Invariants: texts and bytes of a message, terminators included, fit into as many bytes as the
 *             message has on the wire (tag and length take two bytes at least), so they share one
 *             block.
 */
#include "common/k8s/codec.h"

#include <endian.h>

#define DEPTH_MAX 64u

struct in {
    const uint8_t *p, *end;
};
struct reader {
    struct bh_arena *a;
    char *text; /* the block's free part */
};

/* Up to max bytes; false: not terminated. */
static bool varint(struct in *in, unsigned max, uint64_t *ret)
{
    uint64_t v = 0;

    if (bh_likely(in->p < in->end && *in->p < 0x80)) { /* what most are */
        *ret = *in->p++;
        return true;
    }
    for (unsigned i = 0; i < max && in->p < in->end; i++) {
        const uint8_t b = *in->p++;
        v |= (uint64_t)(b & 0x7f) << (7 * i);
        if (b < 0x80) {
            *ret = v;
            return true;
        }
    }
    return false;
}

/* A length and as many bytes. */
static bool span(struct in *in, struct in *ret)
{
    uint64_t n;

    if (!varint(in, 4, &n) || n > (uint64_t)(in->end - in->p))
        return false;
    *ret = (struct in){in->p, in->p + n};
    in->p += n;
    return true;
}

/* Fields mostly come in order: *at is where the last one was. */
static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *d, uint64_t tag,
                                                  unsigned *at)
{
    for (unsigned i = *at; i < d->n_fields && i < *at + 2; i++)
        if (d->fields[i].id == tag) {
            *at = i;
            return &d->fields[i];
        }
    for (unsigned r = 0; r < d->n_field_ranges; r++) {
        const ProtobufCIntRange *range = &d->field_ranges[r];
        const uint64_t first = (uint64_t)range->start_value;
        const unsigned n = range[1].orig_index - range->orig_index;
        if (tag >= first && tag - first < n) {
            *at = range->orig_index + (unsigned)(tag - first);
            return &d->fields[*at];
        }
    }
    return NULL;
}

static ProtobufCMessage *message(struct reader *r, const ProtobufCMessageDescriptor *d,
                                 struct in in, unsigned depth);

static char *text_of(struct reader *r, struct in bytes)
{
    const size_t n = (size_t)(bytes.end - bytes.p);
    char *s = r->text;

    memcpy(s, bytes.p, n);
    s[n] = '\0';
    r->text += n + 1;
    return s;
}

static bool number(struct in *in, ProtobufCType type, void *out)
{
    uint64_t v;
    const uint8_t *p = in->p;

    if (!varint(in, 10, &v))
        return false;
    switch (type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_ENUM:
        *(uint32_t *)out = (uint32_t)v;
        return true;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        *(uint64_t *)out = v;
        return true;
    case PROTOBUF_C_TYPE_BOOL: /* protobuf-c looks at the bytes, not at 64 bits of them */
        if (in->p - p > 1)
            return false;
        *(protobuf_c_boolean *)out = v != 0;
        return true;
    default:
        return false;
    }
}

static bool real(struct in *in, ProtobufCType type, void *out)
{
    uint64_t bits;

    if (type != PROTOBUF_C_TYPE_DOUBLE || (size_t)(in->end - in->p) < sizeof(bits))
        return false;
    memcpy(&bits, in->p, sizeof(bits));
    bits = le64toh(bits);
    memcpy(out, &bits, sizeof(bits));
    in->p += sizeof(bits);
    return true;
}

/* One value with a length, into the member or the list's element at out. */
static bool sized(struct reader *r, const ProtobufCFieldDescriptor *f, struct in *in, void *out,
                  unsigned depth)
{
    struct in bytes;

    if (!span(in, &bytes))
        return false;
    switch (f->type) {
    case PROTOBUF_C_TYPE_STRING:
        if (memchr(bytes.p, 0, (size_t)(bytes.end - bytes.p)))
            return false;
        *(char **)out = text_of(r, bytes);
        return true;
    case PROTOBUF_C_TYPE_BYTES:
        ((ProtobufCBinaryData *)out)->len = (size_t)(bytes.end - bytes.p);
        ((ProtobufCBinaryData *)out)->data =
            bytes.end > bytes.p ? (uint8_t *)text_of(r, bytes) : NULL;
        return true;
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)out = message(r, f->descriptor, bytes, depth + 1);
        return *(ProtobufCMessage **)out != NULL;
    default:
        return false;
    }
}

/* How many elements follow each other; the first one's tag was read. */
static size_t run(struct in in, uint64_t key)
{
    struct in skipped;
    uint64_t next = key;

    for (size_t n = 0;; n++) {
        if (next != key || !span(&in, &skipped))
            return n;
        if (!varint(&in, 5, &next))
            return n + 1;
    }
}

static bool list(struct reader *r, const ProtobufCFieldDescriptor *f, uint64_t key, struct in *in,
                 ProtobufCMessage *m, unsigned depth)
{
    size_t *count = (size_t *)((char *)m + f->quantifier_offset);
    const size_t size =
        f->type == PROTOBUF_C_TYPE_BYTES ? sizeof(ProtobufCBinaryData) : sizeof(void *);
    const size_t n = run(*in, key);
    uint64_t again;

    if (*count || !n)
        return false; /* the rest of it stands elsewhere */
    char *array = bh_arena_alloc(r->a, n * size);
    if (!array)
        return false;
    for (size_t i = 0; i < n; i++)
        if ((i && !varint(in, 5, &again)) || !sized(r, f, in, array + i * size, depth))
            return false;
    *(void **)((char *)m + f->offset) = array;
    *count = n;
    return true;
}

/* Kept as protobuf-c keeps it: with the length in front. */
static bool unknown(struct reader *r, ProtobufCMessage *m, uint64_t key, struct in *in)
{
    const uint8_t *p = in->p;
    const unsigned n = m->n_unknown_fields;
    struct in skipped;
    uint64_t v;

    if ((key & 7) == 2 ? !span(in, &skipped) : (key & 7) != 0 || !varint(in, 10, &v))
        return false;
    if ((n & (n - 1)) == 0) {
        ProtobufCMessageUnknownField *more = bh_arena_alloc(r->a, (n ? 2 * n : 1) * sizeof(*more));
        if (!more)
            return false;
        if (n)
            memcpy(more, m->unknown_fields, n * sizeof(*more));
        m->unknown_fields = more;
    }
    ProtobufCMessageUnknownField *u = &m->unknown_fields[n];
    u->tag = (uint32_t)(key >> 3);
    u->wire_type = (ProtobufCWireType)(key & 7);
    u->len = (size_t)(in->p - p);
    u->data = bh_arena_memdup(r->a, p, u->len);
    m->n_unknown_fields++;
    return u->data != NULL;
}

static bool field(struct reader *r, const ProtobufCFieldDescriptor *f, uint64_t key, struct in *in,
                  ProtobufCMessage *m, unsigned depth)
{
    void *out = (char *)m + f->offset;
    bool read;

    if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF || f->label == PROTOBUF_C_LABEL_REQUIRED)
        return false;
    if (f->label == PROTOBUF_C_LABEL_REPEATED)
        return (key & 7) == 2 && list(r, f, key, in, m, depth);
    if ((key & 7) == 0)
        read = number(in, f->type, out);
    else if ((key & 7) == 1)
        read = real(in, f->type, out);
    else if ((key & 7) != 2 || (f->type == PROTOBUF_C_TYPE_MESSAGE && *(void **)out))
        return false;
    else
        read = sized(r, f, in, out, depth);
    if (read && f->quantifier_offset)
        *(protobuf_c_boolean *)((char *)m + f->quantifier_offset) = 1;
    return read;
}

static ProtobufCMessage *message(struct reader *r, const ProtobufCMessageDescriptor *d,
                                 struct in in, unsigned depth)
{
    unsigned at = 0;
    uint64_t key;

    if (depth > DEPTH_MAX || !d->message_init)
        return NULL;
    ProtobufCMessage *m = bh_arena_alloc(r->a, d->sizeof_message);
    if (!m)
        return NULL;
    d->message_init(m);
    while (in.p < in.end) {
        if (!varint(&in, 5, &key) || key >> 3 == 0 || key >> 32)
            return NULL;
        const ProtobufCFieldDescriptor *f = find_field(d, key >> 3, &at);
        if (f ? !field(r, f, key, &in, m, depth) : !unknown(r, m, key, &in))
            return NULL;
    }
    return m;
}

ProtobufCMessage *bh_pb_unpack_fast(struct bh_arena *a, const ProtobufCMessageDescriptor *d,
                                    const void *p, size_t n)
{
    const struct bh_arena_mark mark = bh_arena_mark(a);
    const bool failed = a->failed;
    struct reader r = {.a = a, .text = bh_arena_alloc(a, n + 1)};
    const uint8_t *bytes = n ? p : (const uint8_t *)""; /* p may be NULL then */
    ProtobufCMessage *m = NULL;

    if (r.text)
        m = message(&r, d, (struct in){bytes, bytes + n}, 0);
    if (!m) { /* protobuf-c has the word; it may need less */
        bh_arena_rewind(a, mark);
        a->failed = failed;
    }
    return m;
}
