/* SPDX-License-Identifier: Apache-2.0
 *
 * common/wasm/reader.c - bytes, LEB128 numbers and types of a module's file
 */
#include "common/wasm/wasm_int.h"
#include <errno.h>

void bh_wasm_bad(struct reader *r, int rc, const uint8_t *at, const char *fmt, ...)
{
    char text[400];
    va_list ap;

    if (r->rc)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (r->func == NONE)
        r->rc = bh_err_set(r->err, rc, "at 0x%zx: %s", (size_t)(at - r->file), text);
    else
        r->rc = bh_err_set(r->err, rc, "function %u at 0x%zx: %s", r->func, (size_t)(at - r->file),
                           text);
    r->p = r->end;
}

uint8_t bh_wasm_u8(struct reader *r)
{
    if (r->p == r->end) {
        bh_wasm_bad(r, -EINVAL, r->p, "unexpected end");
        return 0;
    }
    return *r->p++;
}

/* Bytes beyond the width have to say nothing but the sign. */
static uint64_t leb(struct reader *r, unsigned bits, bool is_signed)
{
    const uint8_t *from = r->p;
    uint64_t v = 0;

    for (unsigned shift = 0; !r->rc; shift += 7) {
        uint8_t b = bh_wasm_u8(r);
        v |= (uint64_t)(b & 0x7f) << shift;
        if (shift + 7 >= bits) { /* the last one there may be */
            unsigned used = bits - shift;
            uint8_t rest = (b & 0x7f) >> (is_signed ? used - 1 : used);
            if (b & 0x80)
                bh_wasm_bad(r, -EINVAL, from, "integer representation too long");
            else if (rest != 0 && !(is_signed && rest == 0x7f >> (used - 1)))
                bh_wasm_bad(r, -EINVAL, from, "integer too large");
        }
        if (!(b & 0x80)) {
            if (is_signed && b & 0x40 && shift + 7 < 64)
                v |= ~(uint64_t)0 << (shift + 7);
            return r->rc ? 0 : v;
        }
    }
    return 0;
}

uint32_t bh_wasm_u32(struct reader *r)
{
    return r->p < r->end && *r->p < 0x80 ? *r->p++ : (uint32_t)leb(r, 32, false);
}

int64_t bh_wasm_leb(struct reader *r, unsigned bits)
{
    return (int64_t)leb(r, bits, true);
}

uint64_t bh_wasm_fixed(struct reader *r, unsigned bytes)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)bh_wasm_u8(r) << (8 * i);
    return v;
}

uint32_t bh_wasm_count(struct reader *r, uint32_t max, const char *what)
{
    const uint8_t *at = r->p;
    uint32_t n = bh_wasm_u32(r);

    if (n > max)
        bh_wasm_bad(r, -EFBIG, at, "%u %s: at most %u are supported", n, what, max);
    else if (n > (size_t)(r->end - r->p))
        bh_wasm_bad(r, -EINVAL, at, "unexpected end: %u %s do not fit into what is left", n, what);
    return r->rc ? 0 : n;
}

const char *bh_wasm_type_name(uint8_t type)
{
    switch (type) {
    case I32:
        return "i32";
    case I64:
        return "i64";
    case F32:
        return "f32";
    case F64:
        return "f64";
    case FUNCREF:
        return "funcref";
    case EXTERNREF:
        return "externref";
    default:
        return "any type"; /* of an operand after a jump */
    }
}

uint8_t bh_wasm_type(struct reader *r)
{
    const uint8_t *at = r->p;
    uint8_t t = bh_wasm_u8(r);

    switch (t) {
    case I32:
    case I64:
    case F32:
    case F64:
    case FUNCREF:
    case EXTERNREF:
        return t;
    case 0x7b:
        bh_wasm_bad(r, -EINVAL, at, "SIMD (v128) is not supported");
        break;
    case 0x63:
    case 0x64:
        bh_wasm_bad(r, -EINVAL, at, "typed function references are not supported");
        break;
    case 0x69:
    case 0x74:
        bh_wasm_bad(r, -EINVAL, at, "exception handling is not supported");
        break;
    default:
        if (t >= 0x65 && t < 0x7b)
            bh_wasm_bad(r, -EINVAL, at, "garbage collection (type 0x%02x) is not supported", t);
        else
            bh_wasm_bad(r, -EINVAL, at, "0x%02x is no value type", t);
    }
    return I32;
}
