/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/symtab.c - strings interned to 32-bit symbols
 *
 * Owns:       text blocks (append-only, never moved), one array symbol -> text, one open-addressing
 *             table {hash, symbol} that compares text only when 32 bits of hash agree.
 * Invariants: table size is a power of two, at most two thirds used; symbol 0 is not in the table.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/base/symtab.h"

#include "common/base/hash_seed.h"
#include "common/base/pages.h"
#include "common/base/symtab_texts.h"

#define BLOCK_BYTES ((size_t)256 << 10)
#define TABLE_MIN   1024
#define TEXTS_MIN   512

struct block {
    struct block *next;
    char text[];
};
struct slot {
    uint32_t hash;
    bh_sym sym; /* 0 = empty */
};
struct bh_symtab {
    struct slot *slots;
    uint32_t mask;
    struct bh_sym_texts all;
    uint64_t seed;
    uint32_t texts_cap;
    struct block *blocks;
    char *cur, *end; /* free part of the newest ordinary block */
};

struct bh_symtab *bh_symtab_new(void)
{
    struct bh_symtab *t = bh_calloc(1, sizeof(*t));
    t->slots = bh_pages_new(TABLE_MIN * sizeof(*t->slots));
    t->mask = TABLE_MIN - 1;
    t->seed = bh_hash_seed();
    t->texts_cap = TEXTS_MIN;
    t->all.of = bh_pages_new(t->texts_cap * sizeof(*t->all.of));
    t->all.of[0] = BH_STR("");
    t->all.n = 1;
    return t;
}

static size_t slots_bytes(const struct bh_symtab *t)
{
    return ((size_t)t->mask + 1) * sizeof(*t->slots);
}

void bh_symtab_free(struct bh_symtab *t)
{
    if (!t)
        return;
    while (t->blocks) {
        struct block *b = t->blocks;
        t->blocks = b->next;
        free(b);
    }
    bh_pages_free(t->slots, slots_bytes(t));
    bh_pages_free(t->all.of, t->texts_cap * sizeof(*t->all.of));
    free(t);
}

static uint32_t hash_text(const struct bh_symtab *t, const char *s, size_t n)
{
    return (uint32_t)XXH3_64bits_withSeed(s, n, t->seed);
}

/* The slot that holds the text, or the empty one where it belongs. */
static struct slot *slot_find(const struct bh_symtab *t, uint32_t hash, const char *s, size_t n)
{
    for (uint32_t i = hash & t->mask;; i = (i + 1) & t->mask) {
        struct slot *slot = &t->slots[i];
        if (!slot->sym)
            return slot;
        if (slot->hash != hash)
            continue;
        const struct bh_str *text = &t->all.of[slot->sym];
        if (text->n == n && memcmp(text->p, s, n) == 0)
            return slot;
    }
}

static void grow_table(struct bh_symtab *t)
{
    uint32_t mask = t->mask * 2 + 1;
    struct slot *next = bh_pages_new(((size_t)mask + 1) * sizeof(*next));

    for (size_t i = 0; i <= t->mask; i++) {
        if (!t->slots[i].sym)
            continue;
        uint32_t at = t->slots[i].hash & mask;
        while (next[at].sym)
            at = (at + 1) & mask;
        next[at] = t->slots[i];
    }
    bh_pages_free(t->slots, slots_bytes(t));
    t->slots = next;
    t->mask = mask;
}

static struct block *block_new(struct bh_symtab *t, size_t bytes)
{
    struct block *b = bh_malloc(sizeof(*b) + bytes);
    b->next = t->blocks;
    t->blocks = b;
    return b;
}

static char *store_text(struct bh_symtab *t, const char *s, size_t n)
{
    char *p;

    if (n + 1 > BLOCK_BYTES / 8) {
        p = block_new(t, n + 1)->text; /* the current block stays current */
    } else {
        if (n + 1 > (size_t)(t->end - t->cur)) {
            t->cur = block_new(t, BLOCK_BYTES)->text;
            t->end = t->cur + BLOCK_BYTES;
        }
        p = t->cur;
        t->cur += n + 1;
    }
    memcpy(p, s, n);
    p[n] = '\0';
    return p;
}

bh_sym bh_sym_intern(struct bh_symtab *t, const char *s, size_t n)
{
    if (n == 0)
        return BH_SYM_NONE;
    uint32_t hash = hash_text(t, s, n);
    struct slot *slot = slot_find(t, hash, s, n);
    if (slot->sym)
        return slot->sym;
    if ((uint64_t)t->all.n * 3 >= ((uint64_t)t->mask + 1) * 2) {
        bh_assert(t->mask < UINT32_MAX / 2); /* two thousand million symbols */
        grow_table(t);
        slot = slot_find(t, hash, s, n);
    }
    if (t->all.n == t->texts_cap) {
        size_t bytes = t->texts_cap * sizeof(*t->all.of);
        t->all.of = bh_pages_resize(t->all.of, bytes, 2 * bytes);
        t->texts_cap *= 2;
    }
    bh_sym sym = t->all.n++;
    t->all.of[sym] = (struct bh_str){store_text(t, s, n), n};
    *slot = (struct slot){.hash = hash, .sym = sym};
    return sym;
}

bh_sym bh_sym_internc(struct bh_symtab *t, const char *s)
{
    return s ? bh_sym_intern(t, s, strlen(s)) : BH_SYM_NONE;
}

bh_sym bh_sym_find(const struct bh_symtab *t, const char *s, size_t n)
{
    return n ? slot_find(t, hash_text(t, s, n), s, n)->sym : BH_SYM_NONE;
}

const char *bh_sym_text(const struct bh_symtab *t, bh_sym s)
{
    return bh_sym_str(t, s).p;
}

struct bh_str bh_sym_str(const struct bh_symtab *t, bh_sym s)
{
    bh_assert(s < t->all.n);
    return t->all.of[s];
}

uint32_t bh_symtab_count(const struct bh_symtab *t)
{
    return t->all.n;
}

const struct bh_sym_texts *bh_symtab_texts(const struct bh_symtab *t)
{
    return &t->all;
}
