/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/control.h - which data segment is current, and who may write
 *
 * The writer holds a lock on byte 0 of the control segment for as long as it lives; that lock, not
 * a pid, is what "a live second writer" means. A control segment is never reused: the successor
 * marks the old one gone, unlinks it with all segments of its name, and creates a new one with
 * O_EXCL.
 */
#ifndef BH_SNAPSHOT_CONTROL_H
#define BH_SNAPSHOT_CONTROL_H

#include <pthread.h>
#include "common/snapshot/segment.h"
#include "common/snapshot/slots.h"

/* The writer's hold on a name. */
struct bh_snap_hold {
    int fd; /* control segment, locked; -1 when anonymous */
    struct bh_snap_map *map;
    struct bh_snap_control *control;
    struct bh_snap_slots slots;
};
/* Takes the name over. 0, -EBUSY (live writer), -EPERM (foreign object in the way), -ENOSPC, -errno
 */
int bh_snap_hold_take(struct bh_snap_hold *h, const char *name, gid_t group, struct bh_err *err);
/* Unlinks control and slots (not the data segments) when unlink_names. NULL-safe parts. */
void bh_snap_hold_release(struct bh_snap_hold *h, const char *name);

/* What the writer and the readers of one process share instead of names. Lives until its last
 * reference. current changes under the lock; the rest are the same atomics as in shared memory. */
struct bh_snap_hub {
    pthread_mutex_t lock;
    int refs;
    struct bh_snap_control control;
    struct bh_snap_slot slots[BH_SNAP_SLOTS];
    struct bh_snap_map *current;
};
struct bh_snap_hub *bh_snap_hub_new(void);
struct bh_snap_hub *bh_snap_hub_ref(struct bh_snap_hub *hub);
void bh_snap_hub_unref(struct bh_snap_hub *hub);
/* The current data segment with a reference, or NULL. */
struct bh_snap_map *bh_snap_hub_current(struct bh_snap_hub *hub);
struct bh_snap_writer;
struct bh_snap_hub *bh_snap_writer_hub(struct bh_snap_writer *w); /* of an anonymous one */
/* Takes its own reference of m; NULL = none any more. */
void bh_snap_hub_set_current(struct bh_snap_hub *hub, struct bh_snap_map *m, uint64_t segment);
#endif
