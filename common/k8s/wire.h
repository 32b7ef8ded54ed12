/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/wire.h - protobuf wire format, read field by field; private to the folder
 *
 * For the parts that must not be unpacked whole: envelopes, lists, watch frames. Nothing is copied:
 * byte fields point into the input.
 */
#ifndef BH_WIRE_H
#define BH_WIRE_H

#include "common/base/buf.h"

struct bh_wire {
    const uint8_t *p, *end;
};
struct bh_wire_field {
    uint32_t number;
    bool is_bytes;       /* length-delimited: bytes is set, otherwise value */
    uint64_t value;      /* varint or fixed; of bytes their length */
    struct bh_str bytes; /* borrowed */
};
static inline struct bh_wire bh_wire_of(const void *p, size_t n)
{
    return (struct bh_wire){p, p ? (const uint8_t *)p + n : NULL};
}
/* 1 and *f, 0 at the end, -EINVAL when the bytes are no protobuf (groups count as such). */
int bh_wire_next(struct bh_wire *w, struct bh_wire_field *f);
/* The same for bytes that are still arriving: of a byte field only tag and length are read, value
 * is the length, and w goes on right behind it. -EAGAIN: the bytes end inside what is read. */
int bh_wire_head(struct bh_wire *w, struct bh_wire_field *f);
/* The last byte field of that number; *ret stays when there is none. 0 or -EINVAL. */
int bh_wire_find(struct bh_str in, uint32_t number, struct bh_str *ret);
/* Copies a byte field into out, NUL-terminated; -EINVAL when it does not fit or holds a NUL. */
int bh_wire_text(const struct bh_wire_field *f, char *out, size_t cap);

void bh_wire_add_varint(struct bh_buf *b, uint64_t v);
void bh_wire_add_bytes(struct bh_buf *b, uint32_t number, const void *p, size_t n);
size_t bh_wire_varint_size(uint64_t v);
#endif
