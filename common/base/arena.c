/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/arena.c - memory that is freed all at once
 *
 * Owns:       a list of chunks that are filled one after the other, and a list of large blocks that
 *             got malloc'd memory of their own, so that one big array does not waste the rest of
 *             the current chunk.
 * Invariants: [cur, end) is the free part of head; chunk sizes double up to CHUNK_MAX.
 * Fails with: NULL at the limit; aborts without one (base.h).
 */
#include "common/base/arena.h"

#include "common/base/poison.h"

#define REDZONE (BH_POISONS ? 16 : 0)

#define ALIGN     16
#define CHUNK_MIN ((size_t)4096)
#define CHUNK_MAX ((size_t)1 << 20)

struct bh_arena_chunk {
    struct bh_arena_chunk *next;
    size_t size; /* of data */
    _Alignas(ALIGN) char data[];
};

static struct bh_arena_chunk *chunk_new(size_t size, struct bh_arena_chunk *next)
{
    struct bh_arena_chunk *c = bh_malloc(sizeof(*c) + size);
    c->next = next;
    c->size = size;
    return c;
}

/* Frees the first of the list. */
static void chunk_pop(struct bh_arena_chunk **list)
{
    struct bh_arena_chunk *c = *list;
    *list = c->next;
    ASAN_UNPOISON_MEMORY_REGION(c->data, c->size);
    free(c);
}

/* Makes everything from p on free. */
static void set_cur(struct bh_arena *a, char *p)
{
    a->cur = p;
    a->end = a->head->data + a->head->size;
    ASAN_POISON_MEMORY_REGION(a->cur, (size_t)(a->end - a->cur));
}

void bh_arena_init(struct bh_arena *a, size_t limit_bytes)
{
    *a = (struct bh_arena){.limit_bytes = limit_bytes};
}

void bh_arena_fini(struct bh_arena *a)
{
    while (a->head)
        chunk_pop(&a->head);
    while (a->large)
        chunk_pop(&a->large);
    bh_arena_init(a, a->limit_bytes);
}

void bh_arena_reset(struct bh_arena *a)
{
    size_t used = a->used_bytes;

    if (a->head && !a->head->next && !a->large) {
        set_cur(a, a->head->data);
        a->used_bytes = 0;
        a->failed = false;
        return;
    }
    /* The next use of this size then fits one chunk, and from there on nothing is malloc'd. */
    bh_arena_fini(a);
    a->next_bytes = BH_MIN(used + used / 4, BH_ARENA_KEEP_MAX);
}

struct bh_arena_mark bh_arena_mark(const struct bh_arena *a)
{
    return (struct bh_arena_mark){
        .chunk = a->head, .large = a->large, .cur = a->cur, .used_bytes = a->used_bytes};
}

void bh_arena_rewind(struct bh_arena *a, struct bh_arena_mark m)
{
    bh_assert(a->used_bytes >= m.used_bytes);
    while (a->large != m.large) {
        bh_assert(a->large); /* the mark is of this arena and not older than a reset */
        chunk_pop(&a->large);
    }
    /* A mark of the empty arena has no chunk: keep the first one. */
    while (a->head && a->head != m.chunk && (m.chunk || a->head->next))
        chunk_pop(&a->head);
    bh_assert(!m.chunk || a->head == m.chunk);
    if (a->head)
        set_cur(a, m.chunk ? m.cur : a->head->data);
    a->used_bytes = m.used_bytes;
}

/* Apart, so that what is called a hundred times an object has no registers to save. */
__attribute__((noinline)) static void *alloc_slow(struct bh_arena *a, size_t n, size_t need)
{
    size_t size = BH_MAX(a->next_bytes, CHUNK_MIN);

    /* The current chunk stays current when the block would fill much of a new one anyway. */
    if (need > size / 4 && need > CHUNK_MIN / 4 && (a->head || need > size)) {
        a->large = chunk_new(n, a->large);
        return a->large->data;
    }
    a->head = chunk_new(BH_MAX(size, need), a->head);
    a->next_bytes = BH_MIN(size * 2, BH_MAX(size, CHUNK_MAX));
    set_cur(a, a->head->data + need);
    ASAN_UNPOISON_MEMORY_REGION(a->head->data, n);
    ASAN_POISON_MEMORY_REGION(a->head->data + n, need - n);
    return a->head->data;
}

void *bh_arena_alloc(struct bh_arena *a, size_t n)
{
    size_t rounded = n ? (n + (ALIGN - 1)) & ~(size_t)(ALIGN - 1) : ALIGN;

    if (bh_unlikely(rounded < n || rounded > SIZE_MAX / 4))
        rounded = SIZE_MAX / 4; /* fails below, at the limit or in malloc */
    if (bh_unlikely(a->limit_bytes && rounded > a->limit_bytes - a->used_bytes)) {
        a->failed = true;
        return NULL;
    }
    a->used_bytes += rounded;
    size_t need = rounded + REDZONE;
    if (bh_unlikely(need > (size_t)(a->end - a->cur)))
        return alloc_slow(a, rounded == SIZE_MAX / 4 ? rounded : n, need);
    char *p = a->cur;
    a->cur += need;
    ASAN_UNPOISON_MEMORY_REGION(p, n);
    return p;
}

void *bh_arena_zalloc(struct bh_arena *a, size_t n)
{
    void *p = bh_arena_alloc(a, n);
    return p ? memset(p, 0, n) : NULL;
}

void *bh_arena_memdup(struct bh_arena *a, const void *p, size_t n)
{
    void *q = bh_arena_alloc(a, n);
    if (q && n)
        memcpy(q, p, n);
    return q;
}

char *bh_arena_strdup(struct bh_arena *a, const char *s)
{
    return bh_arena_memdup(a, s, strlen(s) + 1);
}

char *bh_arena_strndup(struct bh_arena *a, const char *s, size_t n)
{
    size_t len = s ? strnlen(s, n) : 0;
    char *p = bh_arena_alloc(a, len + 1);
    if (!p)
        return NULL;
    if (len)
        memcpy(p, s, len);
    p[len] = '\0';
    return p;
}

char *bh_arena_vprintf(struct bh_arena *a, const char *fmt, va_list ap)
{
    va_list again;

    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    bh_assert(n >= 0);
    char *p = bh_arena_alloc(a, (size_t)n + 1);
    if (p)
        vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return p;
}

char *bh_arena_printf(struct bh_arena *a, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    char *p = bh_arena_vprintf(a, fmt, ap);
    va_end(ap);
    return p;
}

void *bh_arena_array(struct bh_arena *a, size_t n, size_t size)
{
    size_t bytes;
    if (bh_unlikely(__builtin_mul_overflow(n, size, &bytes)))
        bytes = SIZE_MAX / 4;
    return bh_arena_zalloc(a, bytes);
}

void *bh_arena_more(struct bh_arena *a, const void *p, size_t n, size_t cap)
{
    char *more = bh_arena_zalloc(a, cap);

    if (more && n)
        memcpy(more, p, n);
    return more;
}
