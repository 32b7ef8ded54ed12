/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/writer_int.h - the writer's object, shared by writer.c and move.c
 */
#ifndef BH_SNAPSHOT_WRITER_INT_H
#define BH_SNAPSHOT_WRITER_INT_H

#include "common/snapshot/control.h"
#include "common/snapshot/index.h"
#include "common/snapshot/snapshot.h"
#include "common/snapshot/space.h"
#include "common/snapshot/symbols.h"

/* A pod shape. Live while refs > 0; its record has the key in front (layout.h). */
struct bh_snap_shape {
    uint64_t off, key, hash;
    uint32_t bytes;
    uint32_t refs; /* 0 = free entry; bytes is then the next free entry */
};
struct bh_snap_writer {
    char *runtime_dir; /* for people */
    struct bh_snap_hold hold;
    struct bh_snap_object data; /* the segment's; none when it is hidden */
    struct bh_snap_control *control;
    int slots_fd;
    uint64_t segment, moves;
    struct bh_snap_sizes sizes;
    bool fixed_log; /* the log has the size the caller asked for and does not grow */
    bool synced;
    bool current;     /* readers may follow */
    bool hidden;      /* the segment is in private memory: /dev/shm has refused it */
    bool move_failed; /* not tried again before the next tick */
    uint64_t settled_ns, trouble_logged_ns;
    uint64_t refused, lost; /* see struct bh_snap_stats */
    int trouble;            /* why something has no name; 0 = all is well */

    struct bh_snap_seg seg;
    struct bh_snap_space space;
    struct bh_snap_symbols symbols;
    uint64_t head;
    uint64_t recycle_at; /* retired bytes worth a look at the readers */
    uint64_t safe_until; /* head up to which no reader can be half a ring behind */
    uint64_t seed;

    struct bh_snap_index node_index, pod_index; /* -> directory slot */
    struct bh_snap_index shape_index;           /* -> shapes[] */
    uint32_t *pod_shape;                        /* by directory slot: shapes[] of a pod */
    uint64_t pod_shape_cap;
    uint32_t *free_dir; /* free directory slots below dir_used */
    uint64_t free_dir_n, free_dir_cap;
    uint64_t dir_used;
    struct bh_snap_shape *shapes;
    uint32_t shapes_n, shapes_cap, shapes_free, shapes_live;
    uint64_t next_shape_key;
    uint64_t nodes, pods;
    uint64_t readers;
};

/* Appends to the log and publishes. Returns the new head. */
uint64_t bh_snap_log_append(struct bh_snap_writer *w, enum bh_snap_log_op op, uint64_t off,
                            uint64_t key);
/* The first data segment. 0 or -errno. */
int bh_snap_first_segment(struct bh_snap_writer *w);
/* Makes the data segment the current one for readers. */
void bh_snap_announce(struct bh_snap_writer *w);
/* Everything live into a new segment with room for need_bytes more. When /dev/shm refuses it and
 * may_hide, the new segment is private and readers have none. 0, -ENOSPC, -errno (then the old
 * segment is as it was). */
int bh_snap_move(struct bh_snap_writer *w, uint64_t need_bytes, bool may_hide);
/* /dev/shm or the runtime directory has refused something: counted, and logged now and then. */
void bh_snap_refused(struct bh_snap_writer *w, int rc, const char *what, uint64_t bytes);

/* How far a reader may lag before it counts as stalled. */
static inline uint64_t bh_snap_half_ring(const struct bh_snap_seg *s)
{
    return s->log_entries / 2;
}

static inline const void *bh_snap_rec(const struct bh_snap_writer *w, uint64_t off)
{
    return (const char *)w->seg.map->base + off;
}
#endif
