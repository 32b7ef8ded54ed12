/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/codec_pb.c - protobuf: arena allocator, bare messages, the "k8s\0" envelope
 *
 * Upstream: apimachinery/pkg/runtime/serializer/protobuf.
 */
#include "common/k8s/codec.h"

#include <errno.h>
#include <strings.h>

#include "common/k8s/wire.h"

static const char magic[BH_PB_MAGIC_BYTES] = {'k', '8', 's', '\0'};

static void *arena_alloc(void *arena, size_t n)
{
    return bh_arena_alloc(arena, n);
}

static void arena_free(void *arena BH_UNUSED, void *p BH_UNUSED)
{
}

void *bh_pb_new(struct bh_arena *a, const ProtobufCMessageDescriptor *d)
{
    ProtobufCMessage *m = bh_arena_alloc(a, d->sizeof_message);

    if (m)
        protobuf_c_message_init(d, m);
    return m;
}

ProtobufCAllocator bh_arena_pb_allocator(struct bh_arena *a)
{
    return (ProtobufCAllocator){arena_alloc, arena_free, a};
}

#define TEXTS_DEPTH 64u /* as deep as unpack.c reads */

static bool walk_texts(const ProtobufCMessageDescriptor *d, char *p, size_t n, bool replace,
                       unsigned depth)
{
    struct bh_wire w = bh_wire_of(p, n);
    struct bh_wire_field f;
    int rc = depth > TEXTS_DEPTH ? -EINVAL : 0;

    while (rc == 0 && (rc = bh_wire_next(&w, &f)) > 0) {
        const ProtobufCFieldDescriptor *field =
            f.is_bytes ? protobuf_c_message_descriptor_get_field(d, f.number) : NULL;
        char *at = p + (f.is_bytes ? f.bytes.p - p : 0);
        rc = 0;
        if (!field)
            continue;
        if (field->type == PROTOBUF_C_TYPE_MESSAGE &&
            !walk_texts(field->descriptor, at, f.bytes.n, replace, depth + 1))
            return false;
        if (field->type != PROTOBUF_C_TYPE_STRING)
            continue;
        for (char *nul = at; (nul = memchr(nul, 0, f.bytes.n - (size_t)(nul - at)));)
            if (replace)
                *nul = *BH_NUL_TEXT;
            else
                return false;
    }
    return rc == 0;
}

bool bh_pb_texts_are_whole(const ProtobufCMessageDescriptor *d, const void *p, size_t n)
{
    return walk_texts(d, (char *)(uintptr_t)p, n, false, 0);
}

/* What unpack.c leaves to protobuf-c. A NUL in a text becomes U+001A: the object is not lost for an
 * annotation, and no name is equal to what stands before the NUL. */
static ProtobufCMessage *unpack_rare(struct bh_arena *a, const ProtobufCMessageDescriptor *d,
                                     const void *p, size_t n)
{
    ProtobufCAllocator alloc = bh_arena_pb_allocator(a);
    char *copy = bh_arena_memdup(a, n ? p : "", n);

    if (!copy || !walk_texts(d, copy, n, true, 0))
        return NULL;
    ProtobufCMessage *m = bh_pb_unpack_fast(a, d, copy, n);
    return m ? m : protobuf_c_message_unpack(d, &alloc, n, (const uint8_t *)copy);
}

int bh_pb_unpack(struct bh_arena *a, const ProtobufCMessageDescriptor *d, const void *p, size_t n,
                 ProtobufCMessage **ret_m, struct bh_err *err)
{
    ProtobufCMessage *m = bh_pb_unpack_fast(a, d, p, n);

    if (!m)
        m = unpack_rare(a, d, p, n);
    if (!m && a->failed)
        return bh_err_set(err, -E2BIG, "%s: needs more memory than allowed (%zu bytes)",
                          d->short_name, n);
    if (!m)
        return bh_err_set(err, -EINVAL, "%s: %zu bytes are no valid protobuf", d->short_name, n);
    *ret_m = m;
    return 0;
}

enum { OBJECT_METADATA = 1, META_MANAGED_FIELDS = 17 }; /* of every object of the API */

static bool without_managed(struct bh_buf *out, struct bh_str meta)
{
    struct bh_wire w = bh_wire_of(meta.p, meta.n);
    struct bh_wire_field f;
    struct bh_buf rest BH_CLEANUP(bh_buf_fini) = {0};
    int rc;

    for (const uint8_t *from = w.p; (rc = bh_wire_next(&w, &f)) > 0; from = w.p)
        if (f.number != META_MANAGED_FIELDS)
            bh_buf_add(&rest, from, (size_t)(w.p - from));
    if (rc == 0)
        bh_wire_add_bytes(out, OBJECT_METADATA, bh_buf_str(&rest), rest.n);
    return rc == 0;
}

static bool has_managed(struct bh_str meta)
{
    struct bh_wire w = bh_wire_of(meta.p, meta.n);
    struct bh_wire_field f;

    while (bh_wire_next(&w, &f) > 0)
        if (f.number == META_MANAGED_FIELDS)
            return true;
    return false;
}

bool bh_pb_without_managed(struct bh_buf *out, const void *p, size_t n)
{
    struct bh_wire w = bh_wire_of(p, n);
    struct bh_wire_field f;
    int rc;

    for (const uint8_t *from = w.p; (rc = bh_wire_next(&w, &f)) > 0; from = w.p)
        if (f.number != OBJECT_METADATA || !f.is_bytes || !has_managed(f.bytes))
            bh_buf_add(out, from, (size_t)(w.p - from));
        else if (!without_managed(out, f.bytes))
            return false;
    return rc == 0;
}

bool bh_is_pb_type(const char *content_type)
{
    static const char pb[] = "application/vnd.kubernetes.protobuf";
    return content_type && strncasecmp(content_type, pb, sizeof(pb) - 1) == 0;
}

bool bh_is_pb_envelope(const void *p, size_t n)
{
    return n >= sizeof(magic) && memcmp(p, magic, sizeof(magic)) == 0;
}

int bh_type_meta_read(struct bh_str bytes, struct bh_envelope *e)
{
    struct bh_wire w = bh_wire_of(bytes.p, bytes.n);
    struct bh_wire_field f;
    int rc;

    while ((rc = bh_wire_next(&w, &f)) > 0) {
        if (f.number > 2)
            continue;
        if (!f.is_bytes || memchr(f.bytes.p, 0, f.bytes.n))
            return -EINVAL;
        *(f.number == 1 ? &e->api_version : &e->kind) = f.bytes;
    }
    return rc;
}

int bh_envelope_open(const void *p, size_t n, struct bh_envelope *ret_e, struct bh_err *err)
{
    /* raw.p stays NULL when absent */
    struct bh_envelope e = {.api_version = bh_str_c(""), .kind = bh_str_c("")};
    struct bh_wire_field f;
    int rc;

    if (!bh_is_pb_envelope(p, n))
        return bh_err_set(err, -EINVAL, "protobuf envelope: does not start with \"k8s\\0\"");
    struct bh_wire w = bh_wire_of((const char *)p + sizeof(magic), n - sizeof(magic));
    while ((rc = bh_wire_next(&w, &f)) > 0) {
        if (f.number > 4)
            continue;
        if (!f.is_bytes)
            return bh_err_set(err, -EINVAL, "protobuf envelope: field %u is no byte string",
                              f.number);
        if (f.number == 1)
            rc = bh_type_meta_read(f.bytes, &e);
        else if (f.number == 2)
            e.raw = f.bytes;
        else if (f.number == 3 && f.bytes.n)
            return bh_err_set(err, -EINVAL, "protobuf envelope: content encoding is not supported");
        if (rc < 0)
            break;
    }
    if (rc < 0)
        return bh_err_set(err, -EINVAL, "protobuf envelope: cut short or garbled");
    *ret_e = e;
    return 0;
}

void bh_envelope_begin(struct bh_buf *out, const char *api_version, const char *kind, size_t n)
{
    size_t n_version = strlen(api_version), n_kind = strlen(kind);

    bh_buf_add(out, magic, sizeof(magic));
    bh_wire_add_varint(out, 1 << 3 | 2);
    bh_wire_add_varint(out, 2 + bh_wire_varint_size(n_version) + n_version +
                                bh_wire_varint_size(n_kind) + n_kind);
    bh_wire_add_bytes(out, 1, api_version, n_version);
    bh_wire_add_bytes(out, 2, kind, n_kind);
    bh_wire_add_varint(out, 2 << 3 | 2);
    bh_wire_add_varint(out, n);
}

void bh_envelope_end(struct bh_buf *out)
{
    bh_wire_add_bytes(out, 3, "", 0);
    bh_wire_add_bytes(out, 4, "", 0);
}

void bh_envelope_write(struct bh_buf *out, const char *api_version, const char *kind,
                       const void *raw, size_t n)
{
    bh_envelope_begin(out, api_version, kind, n);
    bh_buf_add(out, raw, n);
    bh_envelope_end(out);
}

void bh_pb_pack(struct bh_buf *out, const ProtobufCMessage *m)
{
    size_t n = protobuf_c_message_get_packed_size(m);

    bh_buf_reserve(out, n);
    if (n) {
        n = protobuf_c_message_pack(m, (uint8_t *)out->p + out->n);
        out->n += n;
        out->p[out->n] = '\0';
    }
}

ProtobufCMessage *bh_pb_copy(struct bh_arena *a, const ProtobufCMessage *m)
{
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
    ProtobufCMessage *copy = NULL;

    bh_pb_pack(&b, m);
    return bh_pb_unpack(a, m->descriptor, bh_buf_str(&b), b.n, &copy, NULL) < 0 ? NULL : copy;
}

int bh_decode_object(struct bh_arena *a, const ProtobufCMessageDescriptor *d, const void *p,
                     size_t n, ProtobufCMessage **ret_m, struct bh_err *err)
{
    struct bh_envelope e = {.raw.p = NULL};
    struct bh_json *v;
    int rc;

    if (bh_is_pb_envelope(p, n)) {
        rc = bh_envelope_open(p, n, &e, err);
        return rc ? rc : bh_pb_unpack(a, d, e.raw.p, e.raw.n, ret_m, err);
    }
    rc = bh_json_parse(a, p, n, BH_JSON_NUL, &v, err);
    return rc ? rc : bh_json_to_pb(a, d, v, ret_m, NULL, err);
}
