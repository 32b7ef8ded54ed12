/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/slots.h - where readers say how far they are
 *
 * The one object that readers write. It is never mapped: a peer that truncates it could raise
 * SIGBUS in all others. A position is published with pwrite and collected with one pread of the
 * page, so the worst a hostile peer can do is to lie, and a lie costs a rebuild or some memory,
 * never a wrong record: what protects a copied record is the horizon (layout.h), not the slot.
 * Liveness is a lock on byte i of the object for slot i, released by the kernel when the reader
 * dies. An anonymous writer has the slots in memory (struct bh_snap_slot with atomics) and no dead
 * readers.
 */
#ifndef BH_SNAPSHOT_SLOTS_H
#define BH_SNAPSHOT_SLOTS_H

#include "common/snapshot/layout.h"

struct bh_snap_slots {
    int fd;                   /* named: the object; else -1 */
    struct bh_snap_slot *mem; /* anonymous: borrowed from the hub */
};
struct bh_snap_slot_view {
    bool active;
    uint64_t segment, pos;
};

/* A free slot, or -1. */
int bh_snap_slots_claim(const struct bh_snap_slots *s);
void bh_snap_slots_release(const struct bh_snap_slots *s, int slot);
/* Ordered before every later load of the horizon. */
void bh_snap_slots_publish(const struct bh_snap_slots *s, int slot, uint64_t segment, uint64_t pos);

/* Writer. Ordered after every earlier store of the horizon. */
void bh_snap_slots_scan(const struct bh_snap_slots *s,
                        struct bh_snap_slot_view ret[static BH_SNAP_SLOTS]);
/* Clears the slots whose reader is gone. */
void bh_snap_slots_drop_dead(const struct bh_snap_slots *s);
#endif
