/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/wire.c - protobuf wire format, read field by field
 */
#include "common/k8s/wire.h"

#include <errno.h>

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* 0; -EAGAIN when the bytes end inside; -EINVAL. */
static int varint(struct bh_wire *w, uint64_t *ret)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (w->p == w->end)
            return -EAGAIN;
        uint8_t c = *w->p++;
        /* The tenth byte holds the 64th bit only. */
        if (shift == 63 && c > 1)
            return -EINVAL;
        v |= (uint64_t)(c & 0x7f) << shift;
        if (!(c & 0x80)) {
            *ret = v;
            return 0;
        }
    }
    return -EINVAL;
}

static int fixed(struct bh_wire *w, size_t n, uint64_t *ret)
{
    if ((size_t)(w->end - w->p) < n)
        return -EAGAIN;
    *ret = 0;
    memcpy(ret, w->p, n); /* little endian, as every host Berth runs on */
    w->p += n;
    return 0;
}

int bh_wire_head(struct bh_wire *w, struct bh_wire_field *f)
{
    uint64_t tag;
    int rc;

    if (w->p == w->end)
        return 0;
    rc = varint(w, &tag);
    if (rc)
        return rc;
    if (tag >> 3 == 0 || tag > UINT32_MAX)
        return -EINVAL;
    *f = (struct bh_wire_field){.number = (uint32_t)(tag >> 3)};
    switch (tag & 7) {
    case WIRE_VARINT:
        rc = varint(w, &f->value);
        break;
    case WIRE_FIXED64:
        rc = fixed(w, 8, &f->value);
        break;
    case WIRE_FIXED32:
        rc = fixed(w, 4, &f->value);
        break;
    case WIRE_BYTES:
        rc = varint(w, &f->value);
        f->is_bytes = true;
        break;
    default:
        return -EINVAL;
    }
    return rc ? rc : 1;
}

int bh_wire_next(struct bh_wire *w, struct bh_wire_field *f)
{
    int rc = bh_wire_head(w, f);

    if (rc <= 0)
        return rc ? -EINVAL : 0;
    if (!f->is_bytes)
        return 1;
    if (f->value > (uint64_t)(w->end - w->p))
        return -EINVAL;
    f->bytes = (struct bh_str){(const char *)w->p, (size_t)f->value};
    w->p += f->value;
    return 1;
}

int bh_wire_find(struct bh_str in, uint32_t number, struct bh_str *ret)
{
    struct bh_wire w = bh_wire_of(in.p, in.n);
    struct bh_wire_field f;
    int rc;

    while ((rc = bh_wire_next(&w, &f)) > 0)
        if (f.number == number && f.is_bytes)
            *ret = f.bytes;
    return rc;
}

int bh_wire_text(const struct bh_wire_field *f, char *out, size_t cap)
{
    if (!f->is_bytes || f->bytes.n >= cap || memchr(f->bytes.p, 0, f->bytes.n))
        return -EINVAL;
    memcpy(out, f->bytes.p, f->bytes.n);
    out[f->bytes.n] = '\0';
    return 0;
}

size_t bh_wire_varint_size(uint64_t v)
{
    size_t n = 1;
    for (; v >= 0x80; v >>= 7)
        n++;
    return n;
}

void bh_wire_add_varint(struct bh_buf *b, uint64_t v)
{
    char tmp[10];
    size_t n = 0;

    for (; v >= 0x80; v >>= 7)
        tmp[n++] = (char)(v | 0x80);
    tmp[n++] = (char)v;
    bh_buf_add(b, tmp, n);
}

void bh_wire_add_bytes(struct bh_buf *b, uint32_t number, const void *p, size_t n)
{
    bh_wire_add_varint(b, (uint64_t)number << 3 | WIRE_BYTES);
    bh_wire_add_varint(b, n);
    bh_buf_add(b, p, n);
}
