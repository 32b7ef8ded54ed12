/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/buf.c - growable byte buffer
 *
 * Invariants: p is NULL (then n == cap == 0) or n < cap and p[n] == 0.
 */
#include "common/base/buf.h"

#include <math.h>

#include "common/base/utf8.h"

void bh_buf_fini(struct bh_buf *b)
{
    free(b->p);
    *b = (struct bh_buf){0};
}

void bh_buf_reset(struct bh_buf *b)
{
    b->n = 0;
    if (b->p)
        b->p[0] = '\0';
}

/* Apart, so that what is called for each piece of a text is a comparison. */
__attribute__((noinline)) static void grow(struct bh_buf *b, size_t more)
{
    bh_assert(more < SIZE_MAX / 4 && b->n < SIZE_MAX / 4);
    size_t need = b->n + more + 1;
    size_t cap = BH_MAX(b->cap * 2, (size_t)64);
    b->cap = BH_MAX(cap, need);
    b->p = bh_realloc(b->p, b->cap);
    b->p[b->n] = '\0';
}

void bh_buf_reserve(struct bh_buf *b, size_t more)
{
    if (bh_unlikely(more >= b->cap - b->n))
        grow(b, more);
}

void bh_buf_add(struct bh_buf *b, const void *p, size_t n)
{
    bh_buf_reserve(b, n);
    if (n)
        memcpy(b->p + b->n, p, n);
    b->n += n;
    b->p[b->n] = '\0';
}

void bh_buf_adds(struct bh_buf *b, const char *s)
{
    bh_buf_add(b, s, strlen(s));
}

void bh_buf_addc(struct bh_buf *b, char c)
{
    bh_buf_reserve(b, 1);
    b->p[b->n++] = c;
    b->p[b->n] = '\0';
}

void bh_buf_addf(struct bh_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    bh_buf_vaddf(b, fmt, ap);
    va_end(ap);
}

void bh_buf_vaddf(struct bh_buf *b, const char *fmt, va_list ap)
{
    va_list again;

    va_copy(again, ap);
    bh_buf_reserve(b, 1);
    int n = vsnprintf(b->p + b->n, b->cap - b->n, fmt, ap);
    bh_assert(n >= 0);
    if ((size_t)n >= b->cap - b->n) {
        bh_buf_reserve(b, (size_t)n);
        vsnprintf(b->p + b->n, b->cap - b->n, fmt, again);
    }
    va_end(again);
    b->n += (size_t)n;
}

size_t bh_dec_u64(char out[static 21], uint64_t v)
{
    char digits[20], *p = digits + sizeof(digits);

    do {
        *--p = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    size_t n = (size_t)(digits + sizeof(digits) - p);
    memcpy(out, p, n);
    out[n] = '\0';
    return n;
}

void bh_buf_addi64(struct bh_buf *b, int64_t v)
{
    char text[22] = "-";
    size_t minus = v < 0, n = bh_dec_u64(text + minus, v < 0 ? -(uint64_t)v : (uint64_t)v);

    bh_buf_add(b, text, n + minus);
}

void bh_buf_addf64(struct bh_buf *b, double v)
{
    if (isnan(v)) {
        bh_buf_adds(b, "NaN");
    } else if (isinf(v)) {
        bh_buf_adds(b, v > 0 ? "+Inf" : "-Inf");
    } else if (v == (double)(int64_t)(fabs(v) < 1e15 ? v : 0) && !(v == 0 && signbit(v))) {
        bh_buf_addi64(b, (int64_t)v);
    } else {
        char text[40];
        for (int digits = 1; digits <= 17; digits++) {
            snprintf(text, sizeof(text), "%.*g", digits, v);
            if (strtod(text, NULL) == v)
                break;
        }
        bh_buf_adds(b, text);
    }
}

/* Are eight bytes such as a JSON string has as they are? */
static bool plain_word(const unsigned char *p)
{
    const uint64_t each = UINT64_MAX / 255;
    uint64_t w;

    memcpy(&w, p, sizeof(w));
    /* The top bit of a byte below 0x20, of a quote, of a backslash, or its own. */
    return !(((w - each * 0x20) | ((w ^ each * '"') - each) | ((w ^ each * '\\') - each) | w) &
             each * 0x80);
}

/* How many bytes at p are. Most texts have no others: the last word is looked at once more, in part. */
static size_t plain_run(const unsigned char *p, size_t n)
{
    size_t i = 0;

    while (n - i >= 8 && plain_word(p + i))
        i += 8;
    if (i && n - i < 8 && plain_word(p + n - 8))
        return n;
    while (i < n && p[i] >= 0x20 && p[i] < 0x80 && p[i] != '"' && p[i] != '\\')
        i++;
    return i;
}

void bh_buf_add_json_str(struct bh_buf *b, const char *s, size_t n)
{
    const unsigned char *p = (const unsigned char *)s;
    size_t i = 0;

    bh_buf_reserve(b, n + 2);
    bh_buf_addc(b, '"');
    while (i < n) {
        size_t run = plain_run(p + i, n - i);
        if (run) {
            bh_buf_add(b, p + i, run);
            i += run;
            continue;
        }
        if (p[i] < 0x80) {
            unsigned char c = p[i++];
            static const char hex[] = "0123456789abcdef";
            char e[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
            const char *from = "\"\\\b\f\n\r\t", *to = "\"\\bfnrt";
            const char *hit = c ? strchr(from, c) : NULL;
            if (hit) {
                e[1] = to[hit - from];
                bh_buf_add(b, e, 2);
            } else {
                bh_buf_add(b, e, sizeof(e));
            }
            continue;
        }
        size_t len = bh_utf8_len(s + i, s + n);
        if (len)
            bh_buf_add(b, p + i, len);
        else
            bh_buf_add(b, "\xef\xbf\xbd", 3);
        i += len ? len : 1;
    }
    bh_buf_addc(b, '"');
}

void bh_buf_add_quoted(struct bh_buf *b, void (*quote)(struct bh_buf *b, const char *s, size_t n),
                       const char *fmt, va_list ap)
{
    for (const char *p = fmt;; p++) {
        size_t plain = (size_t)(strchrnul(p, '%') - p), n = SIZE_MAX;
        const char *s;
        char digits[21];
        bh_buf_add(b, p, plain);
        p += plain;
        if (!*p++)
            return;
        bool wide = strncmp(p, "ll", 2) == 0;
        if (wide)
            p += 2;
        if (strncmp(p, ".*", 2) == 0) {
            n = (size_t)va_arg(ap, int);
            p += 2;
        }
        switch (*p) {
        case 's':
            s = va_arg(ap, const char *);
            quote(b, s ? s : "", s ? strnlen(s, n) : 0);
            break;
        case 'd':
            bh_buf_addi64(b, wide ? va_arg(ap, long long) : va_arg(ap, int));
            break;
        case 'u':
            n = bh_dec_u64(digits, wide ? va_arg(ap, unsigned long long) : va_arg(ap, unsigned));
            bh_buf_add(b, digits, n);
            break;
        default:
            bh_assert(!"a conversion that there is");
        }
    }
}

void bh_buf_add_json(struct bh_buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    bh_buf_add_quoted(b, bh_buf_add_json_str, fmt, ap);
    va_end(ap);
}

void bh_buf_consume(struct bh_buf *b, size_t n)
{
    bh_assert(n <= b->n);
    if (n == 0)
        return;
    b->n -= n;
    memmove(b->p, b->p + n, b->n + 1);
}

char *bh_buf_take(struct bh_buf *b)
{
    char *p = b->p ? b->p : bh_strdup("");
    *b = (struct bh_buf){0};
    return p;
}
