/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/buf.h - growable byte buffer
 *
 * Invariant: p is NULL or p[n] == 0, so p is always usable as a C string (bh_buf_str()).
 * Zero-initialised ({0}) is a valid empty buffer. Out of memory aborts (base.h).
 */
#ifndef BH_BUF_H
#define BH_BUF_H

#include "common/base/base.h"

struct bh_buf {
    char *p;
    size_t n, cap;
};
void bh_buf_fini(struct bh_buf *b);  /* frees; the buffer is empty and usable again */
void bh_buf_reset(struct bh_buf *b); /* n = 0, keeps the memory */
void bh_buf_reserve(struct bh_buf *b, size_t more);
void bh_buf_add(struct bh_buf *b, const void *p, size_t n);
void bh_buf_adds(struct bh_buf *b, const char *s);
void bh_buf_addc(struct bh_buf *b, char c);
void bh_buf_addf(struct bh_buf *b, const char *fmt, ...) BH_PRINTF(2, 3);
void bh_buf_vaddf(struct bh_buf *b, const char *fmt, va_list ap) BH_PRINTF(2, 0);
void bh_buf_addi64(struct bh_buf *b, int64_t v); /* decimal, no printf */
/* v in decimal, NUL-terminated; returns its length. For places that printf would dominate. */
size_t bh_dec_u64(char out[static 21], uint64_t v);
/* Shortest decimal that reads back as v; "NaN", "+Inf", "-Inf". */
void bh_buf_addf64(struct bh_buf *b, double v);
/* A JSON string literal with its quotes; invalid UTF-8 becomes U+FFFD. */
void bh_buf_add_json_str(struct bh_buf *b, const char *s, size_t n);
/* JSON from a pattern: %s and %.*s become such literals (NULL: ""), %d, %u, %lld and %llu numbers. */
void bh_buf_add_json(struct bh_buf *b, const char *fmt, ...) BH_PRINTF(2, 3);
/* The same with what a text becomes as the caller's choice. */
void bh_buf_add_quoted(struct bh_buf *b, void (*quote)(struct bh_buf *b, const char *s, size_t n),
                       const char *fmt, va_list ap) BH_PRINTF(3, 0);
/* Age as kubectl prints it: 90 -> "90s", 150 -> "2m30s", ... Negative up to one second is "0s",
 * beyond "<invalid>". */
void bh_human_duration(struct bh_buf *b, int64_t seconds);
void bh_buf_consume(struct bh_buf *b, size_t n); /* drop the first n bytes */
static inline const char *bh_buf_str(const struct bh_buf *b)
{
    return b->p ? b->p : "";
}
char *bh_buf_take(struct bh_buf *b); /* caller frees; never NULL */
#endif
