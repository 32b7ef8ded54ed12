/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/space.h - the record area's space, kept privately by the writer
 *
 * Space is taken fresh from the end, or from free lists by size class (16-byte steps to 1 KiB, then
 * four classes a doubling). Free lists and the retirement queue are in the writer's own memory: the
 * segment holds nothing but records, so readers depend on no bookkeeping and a crash cannot tear
 * it.
 * Invariants: a block is in exactly one of {live, retired, free list, fresh}; the retirement queue
 * is ordered by position. Blocks are not joined: the compaction is the move to a new segment.
 */
#ifndef BH_SNAPSHOT_SPACE_H
#define BH_SNAPSHOT_SPACE_H

#include "common/base/base.h"

#define BH_SNAP_CLASSES 128u

struct bh_snap_offsets {
    uint64_t *p;
    size_t n, cap;
};
struct bh_snap_retired {
    uint64_t pos, off;
    uint32_t bytes;
    uint32_t pad;
};
struct bh_snap_space {
    uint64_t fresh, end; /* offsets in the segment */
    struct bh_snap_offsets free_list[BH_SNAP_CLASSES];
    struct bh_snap_retired *retired; /* ring */
    size_t retired_first, retired_n, retired_cap;
    uint64_t live_bytes, retired_bytes; /* rounded to classes */
};

/* Forgets everything and starts over with [begin, end). */
void bh_snap_space_reset(struct bh_snap_space *s, uint64_t begin, uint64_t end);
void bh_snap_space_fini(struct bh_snap_space *s);
/* What n bytes really take. */
uint64_t bh_snap_space_round(uint64_t n);
/* Offset, multiple of 16; 0 when there is no room. */
uint64_t bh_snap_space_take(struct bh_snap_space *s, uint64_t n);
/* Back at once: for a block no reader could have seen. */
void bh_snap_space_give_back(struct bh_snap_space *s, uint64_t off, uint64_t n);
/* The block is unreachable for readers that have reached pos. */
void bh_snap_space_retire(struct bh_snap_space *s, uint64_t off, uint64_t n, uint64_t pos);
/* Position of the newest retirement, 0 when none waits. */
uint64_t bh_snap_space_last_retired(const struct bh_snap_space *s);
/* Frees what was retired at a position <= pos. */
void bh_snap_space_recycle(struct bh_snap_space *s, uint64_t pos);
#endif
