/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/copy.c - a record out of foreign memory: copy, check that it was still there,
 * check the copy, use the copy
 *
 * The order matters. A record whose space was reused while it was copied looks damaged but is not:
 * the horizon is looked at before it is called corrupt. Plain memcpy of memory that might be
 * written at the same time is sound here because (1) a registered reader's records are not reused,
 * so in the normal case nothing writes, and (2) in the other case the copy is thrown away unread.
 */
#include "common/snapshot/reader_int.h"

static void *reserve(struct bh_snap_buffer *b, size_t n)
{
    if (b->cap < n) {
        free(b->p);
        b->cap = BH_MAX(n, b->cap * 2);
        b->p = bh_malloc(b->cap);
    }
    return b->p;
}

/* Copies made so far are of what was published at or after pos. */
static bool intact(const struct bh_snap_reader *r)
{
    bh_snap_fence_load(); /* pairs with the writer's store of the horizon before it reuses */
    return bh_snap_load(&r->seg.h->horizon) <= r->pos;
}

/* The segment's symbol as a private one. */
static bh_sym map_sym(void *arg, bh_sym s)
{
    struct bh_snap_reader *r = arg;
    if (s < r->sym_cap && (r->sym_map[s] || s == BH_SYM_NONE))
        return r->sym_map[s];
    if (s == BH_SYM_NONE)
        return BH_SYM_NONE;
    uint64_t known = bh_snap_load_acquire(&r->seg.h->symbols);
    if (s >= known || known > r->seg.sym_cap) {
        r->bad = "symbol number";
        return BH_SYM_NONE;
    }
    struct bh_snap_sym e;
    memcpy(&e, &r->seg.syms[s], sizeof(e));
    uint64_t off = (uint64_t)e.off8 * 8;
    if (e.len == 0 || off >= r->seg.text_bytes || e.len >= r->seg.text_bytes - off) {
        r->bad = "text of a symbol";
        return BH_SYM_NONE;
    }
    if (s >= r->sym_cap) {
        uint64_t cap = BH_MAX(BH_MAX(r->sym_cap * 2, 1024), (uint64_t)s + 1);
        r->sym_map = bh_reallocarray(r->sym_map, cap, sizeof(*r->sym_map));
        memset(r->sym_map + r->sym_cap, 0, (cap - r->sym_cap) * sizeof(*r->sym_map));
        r->sym_cap = cap;
    }
    return r->sym_map[s] = bh_sym_intern(r->symtab, r->seg.text + off, e.len);
}

/* NULL, or what is wrong with it. */
static const char *copy_raw(struct bh_snap_reader *r, uint64_t off, struct bh_snap_buffer *to,
                            uint32_t *ret_size)
{
    const char *base = r->seg.map->base;
    struct bh_rec_head h;
    if (off % BH_SNAP_RECORD_ALIGN || off < r->seg.rec_begin || off > r->seg.rec_end ||
        r->seg.rec_end - off < sizeof(h))
        return "offset of a record";
    memcpy(&h, base + off, sizeof(h));
    if (h.size < sizeof(h) || h.size > BH_REC_MAX_BYTES || h.size > r->seg.rec_end - off)
        return "length of a record";
    memcpy(reserve(to, h.size), base + off, h.size);
    *ret_size = h.size;
    return NULL;
}

static const char *validate(struct bh_snap_reader *r, void *rec, uint32_t size, uint16_t type)
{
    const struct bh_rec_head *h = rec;
    if (h->size != size || (type ? h->type != type : h->type == BH_REC_SHAPE))
        return "head of a record";
    r->bad = NULL;
    if (bh_rec_remap(rec, size, map_sym, r) < 0)
        return "content of a record";
    return r->bad;
}

enum bh_snap_outcome bh_snap_copy(struct bh_snap_reader *r, uint64_t off, uint16_t type,
                                  struct bh_rec_head **ret)
{
    uint32_t size = 0;
    const char *wrong = copy_raw(r, off, &r->rec, &size);
    if (!intact(r))
        return BH_SNAP_OVERRUN;
    if (!wrong)
        wrong = validate(r, r->rec.p, size, type);
    if (wrong)
        return bh_snap_corrupt(r, wrong, off);
    *ret = r->rec.p;
    return BH_SNAP_OK;
}

enum bh_snap_outcome bh_snap_copy_shape(struct bh_snap_reader *r, uint64_t off, uint64_t *ret_key,
                                        const struct bh_shape_rec **ret, bool *ret_new)
{
    struct bh_snap_buffer copy = {0};
    const char *wrong = NULL;
    uint64_t key = 0, cached;
    uint32_t size = 0;
    if (off % 8 || off < r->seg.rec_begin + BH_SNAP_KEY_BYTES || off > r->seg.rec_end)
        wrong = "offset of a shape";
    else
        memcpy(&key, (const char *)r->seg.map->base + off - BH_SNAP_KEY_BYTES, sizeof(key));
    if (!wrong && intact(r) && bh_umap_get(&r->shapes, key, &cached)) {
        *ret = (const void *)(uintptr_t)cached;
        *ret_key = key;
        *ret_new = false;
        return BH_SNAP_OK;
    }
    if (!wrong)
        wrong = copy_raw(r, off, &copy, &size);
    if (!intact(r)) {
        free(copy.p);
        return BH_SNAP_OVERRUN;
    }
    if (!wrong)
        wrong = validate(r, copy.p, size, BH_REC_SHAPE);
    if (wrong) {
        free(copy.p);
        return bh_snap_corrupt(r, wrong, off);
    }
    bh_umap_put(&r->shapes, key, (uint64_t)(uintptr_t)copy.p);
    *ret = copy.p;
    *ret_key = key;
    *ret_new = true;
    return BH_SNAP_OK;
}
