/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/symbols.c - symbol table of the writer
 */
#include "common/snapshot/symbols.h"

static size_t padded(size_t n)
{
    return (n + 1 + 7) & ~(size_t)7; /* with its NUL */
}

static struct bh_str text_of(const struct bh_snap_symbols *t, uint32_t id)
{
    if (id < t->published) {
        const struct bh_snap_sym *s = &t->seg->syms[id];
        return (struct bh_str){t->seg->text + (uint64_t)s->off8 * 8, s->len};
    }
    const struct bh_snap_sym *s = &t->pending[id - t->published];
    return (struct bh_str){t->pending_text + (uint64_t)s->off8 * 8, s->len};
}

static void add_pending(struct bh_snap_symbols *t, const char *s, size_t n)
{
    size_t need = padded(n);
    if (t->pending_cap - t->pending_used < need) {
        t->pending_cap = BH_MAX(t->pending_cap * 2, t->pending_used + need + 4096);
        t->pending_text = bh_realloc(t->pending_text, t->pending_cap);
    }
    BH_GROW(t->pending, t->pending_n, t->pending_syms_cap);
    char *to = t->pending_text + t->pending_used;
    memset(to + need - 8, 0, 8); /* NUL and padding */
    if (n)
        memcpy(to, s, n);
    t->pending[t->pending_n++] =
        (struct bh_snap_sym){.off8 = (uint32_t)(t->pending_used / 8), .len = (uint32_t)n};
    t->pending_used += need;
    t->count++;
}

void bh_snap_symbols_init(struct bh_snap_symbols *t, const struct bh_snap_seg *seg)
{
    *t = (struct bh_snap_symbols){.seg = seg, .seed = bh_rand_entropy(), .cap = 4096};
    t->slot = bh_calloc(t->cap, sizeof(*t->slot));
    t->tag = bh_calloc(t->cap, sizeof(*t->tag));
    add_pending(t, "", 0);
}

void bh_snap_symbols_fini(struct bh_snap_symbols *t)
{
    free(t->slot);
    free(t->tag);
    free(t->pending_text);
    free(t->pending);
    *t = (struct bh_snap_symbols){0};
}

/* The slot of the text, or the empty one where it belongs. */
static size_t locate(const struct bh_snap_symbols *t, uint64_t hash, const char *s, size_t n)
{
    size_t i = hash & (t->cap - 1);
    for (; t->slot[i]; i = (i + 1) & (t->cap - 1))
        if (t->tag[i] == (uint32_t)(hash >> 32) &&
            bh_str_eq(text_of(t, t->slot[i]), (struct bh_str){s, n}))
            break;
    return i;
}

static void grow(struct bh_snap_symbols *t)
{
    free(t->slot);
    free(t->tag);
    t->cap *= 2;
    t->slot = bh_calloc(t->cap, sizeof(*t->slot));
    t->tag = bh_calloc(t->cap, sizeof(*t->tag));
    for (uint32_t id = 1; id < t->count; id++) {
        struct bh_str s = text_of(t, id);
        uint64_t hash = bh_hash(s.p, s.n, t->seed);
        size_t i = hash & (t->cap - 1);
        while (t->slot[i])
            i = (i + 1) & (t->cap - 1);
        t->slot[i] = id;
        t->tag[i] = (uint32_t)(hash >> 32);
    }
}

bh_sym bh_snap_symbols_find(const struct bh_snap_symbols *t, const char *s, size_t n)
{
    return n ? t->slot[locate(t, bh_hash(s, n, t->seed), s, n)] : BH_SYM_NONE;
}

bh_sym bh_snap_symbols_intern(struct bh_snap_symbols *t, const char *s, size_t n)
{
    if (n == 0)
        return BH_SYM_NONE;
    uint64_t hash = bh_hash(s, n, t->seed);
    size_t i = locate(t, hash, s, n);
    if (t->slot[i])
        return t->slot[i];
    bh_assert(n < UINT32_MAX && t->count < UINT32_MAX);
    t->slot[i] = t->count;
    t->tag[i] = (uint32_t)(hash >> 32);
    add_pending(t, s, n);
    bh_sym id = t->count - 1;
    if ((size_t)t->count * 4 > t->cap * 3)
        grow(t);
    return id;
}

bool bh_snap_symbols_flush(struct bh_snap_symbols *t)
{
    const struct bh_snap_seg *seg = t->seg;
    if (!t->pending_n)
        return true;
    if (t->count > seg->sym_cap || t->pending_used > seg->text_bytes - t->text_used)
        return false;
    memcpy(seg->text + t->text_used, t->pending_text, t->pending_used);
    for (size_t i = 0; i < t->pending_n; i++)
        seg->syms[t->published + i] = (struct bh_snap_sym){
            .off8 = (uint32_t)(t->text_used / 8) + t->pending[i].off8, .len = t->pending[i].len};
    t->text_used += t->pending_used;
    t->published = t->count;
    t->pending_n = t->pending_used = 0;
    bh_snap_store_release(&seg->h->symbols, t->published);
    return true;
}

void bh_snap_symbols_move(struct bh_snap_symbols *t, const struct bh_snap_seg *to)
{
    bh_assert(to->sym_cap >= t->published && to->text_bytes >= t->text_used);
    memcpy(to->syms, t->seg->syms, (size_t)t->published * sizeof(struct bh_snap_sym));
    memcpy(to->text, t->seg->text, t->text_used);
    bh_snap_store_release(&to->h->symbols, t->published);
    t->seg = to;
}
