/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/arena.h - memory that is freed all at once
 *
 * Lifetimes in Berth: process, configuration, cycle (one scheduling cycle), request (one HTTP
 * request or one decoded object). Whatever outlives the arena's reset is copied out of it.
 *
 * Invariants: allocations are 16-byte aligned; a reset keeps one chunk as large as the last use
 * (up to BH_ARENA_KEEP_MAX), so a steady cycle calls malloc zero times. Under ASan the free part is
 * poisoned.
 * Limit: with limit_bytes > 0 an allocation that would exceed it returns NULL and sets `failed`;
 * decoders of foreign input always use a limit. Without a limit, out of memory aborts (base.h).
 * The limit counts bytes handed out, rounded up to 16 each.
 * Threads: none; one owner.
 */
#ifndef BH_ARENA_H
#define BH_ARENA_H

#include <stdarg.h>

#include "common/base/base.h"

#define BH_ARENA_KEEP_MAX ((size_t)16 << 20)

struct bh_arena_chunk;
struct bh_arena {
    struct bh_arena_chunk *head;  /* current chunk; older ones behind it */
    struct bh_arena_chunk *large; /* blocks of their own, newest first */
    char *cur, *end;
    size_t used_bytes;  /* handed out since the last reset */
    size_t limit_bytes; /* 0 = none */
    size_t next_bytes;  /* size of the next chunk */
    bool failed;        /* an allocation hit the limit since the last reset */
};
struct bh_arena_mark {
    struct bh_arena_chunk *chunk, *large;
    char *cur;
    size_t used_bytes;
};

/* Allocates nothing; a zeroed one is an arena without a limit. */
void bh_arena_init(struct bh_arena *a, size_t limit_bytes);
void bh_arena_fini(struct bh_arena *a); /* the arena is empty and usable again */
void bh_arena_reset(struct bh_arena *a);
/* Marks nest: rewinding to one forgets all later ones. A reset forgets every mark. */
struct bh_arena_mark bh_arena_mark(const struct bh_arena *a);
void bh_arena_rewind(struct bh_arena *a, struct bh_arena_mark m);

void *bh_arena_alloc(struct bh_arena *a, size_t n);  /* uninitialised */
void *bh_arena_zalloc(struct bh_arena *a, size_t n); /* zeroed */
void *bh_arena_memdup(struct bh_arena *a, const void *p, size_t n);
char *bh_arena_strdup(struct bh_arena *a, const char *s);
char *bh_arena_strndup(struct bh_arena *a, const char *s, size_t n);
char *bh_arena_printf(struct bh_arena *a, const char *fmt, ...) BH_PRINTF(2, 3);
char *bh_arena_vprintf(struct bh_arena *a, const char *fmt, va_list ap) BH_PRINTF(2, 0);
/* n * size, zeroed, with overflow check (fails like the limit). */
void *bh_arena_array(struct bh_arena *a, size_t n, size_t size);
/* The n bytes at p (NULL when n is 0) with room for cap, zeroed behind; fails like the limit. */
void *bh_arena_more(struct bh_arena *a, const void *p, size_t n, size_t cap);
/* BH_GROW for an array in an arena without a limit. */
#define BH_ARENA_GROW(a, v, n, cap)                                                                \
    do {                                                                                           \
        if ((n) == (cap)) {                                                                        \
            (cap) = (cap) ? (cap)*2 : 8;                                                           \
            (v) = bh_arena_more((a), (v), (n) * sizeof *(v), (cap) * sizeof *(v));                 \
        }                                                                                          \
    } while (0)
#define bh_arena_new(a, type)          ((type *)bh_arena_zalloc((a), sizeof(type)))
#define bh_arena_new_array(a, type, n) ((type *)bh_arena_array((a), (n), sizeof(type)))
#endif
