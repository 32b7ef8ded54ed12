/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/symbols.h - the writer's side of the segment's symbol table
 *
 * Ids are given out at once and never change; the texts get into shared memory with the next record
 * that is published (bh_snap_symbols_flush). So interning cannot fail and needs no room: an object
 * that is compiled but never published leaves only private memory behind, and a full segment is met
 * in one place, the publication, which can move.
 * The hash table is private: only the writer looks texts up. Readers go from id to text.
 * Symbol 0 is "". Nothing is ever removed within an incarnation.
 */
#ifndef BH_SNAPSHOT_SYMBOLS_H
#define BH_SNAPSHOT_SYMBOLS_H

#include "common/snapshot/segment.h"

struct bh_snap_symbols {
    uint32_t *slot, *tag; /* open addressing: id (0 = empty) and 32 more bits of its hash */
    size_t cap;
    uint64_t seed;
    uint32_t count;                /* ids given out, symbol 0 included */
    uint32_t published;            /* ids whose text is in the segment */
    uint64_t text_used;            /* bytes of the text section */
    const struct bh_snap_seg *seg; /* where the published texts are */
    char *pending_text;            /* texts of published .. count-1 */
    size_t pending_used, pending_cap;
    struct bh_snap_sym *pending; /* off8 into pending_text */
    size_t pending_n, pending_syms_cap;
};

void bh_snap_symbols_init(struct bh_snap_symbols *t, const struct bh_snap_seg *seg);
void bh_snap_symbols_fini(struct bh_snap_symbols *t);
bh_sym bh_snap_symbols_intern(struct bh_snap_symbols *t, const char *s, size_t n);
bh_sym bh_snap_symbols_find(const struct bh_snap_symbols *t, const char *s, size_t n);
/* Copies the pending texts into the segment and publishes their number (release). False when there
 * is no room; nothing has changed then. */
bool bh_snap_symbols_flush(struct bh_snap_symbols *t);
/* The published part into another segment, which is the table's from now on. */
void bh_snap_symbols_move(struct bh_snap_symbols *t, const struct bh_snap_seg *to);
#endif
