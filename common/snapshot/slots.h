/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/slots.h - where readers say how far they are
 *
 * The one object that readers write. It is never mapped: a peer that truncates it could raise
 * SIGBUS in all others. A position is published with pwrite and collected with one pread of the
 * page, so the worst a hostile peer can do is to lie, and a lie costs a rebuild or some memory,
 * never a wrong record: what protects a copied record is the horizon (layout.h), not the slot.
 * Liveness is a lock on byte i of the object for slot i, released by the kernel when the reader
 * dies.
 */
#ifndef BH_SNAPSHOT_SLOTS_H
#define BH_SNAPSHOT_SLOTS_H

#include "common/snapshot/layout.h"

struct bh_snap_slot_view {
    bool active;
    uint64_t segment, pos;
};

/* A free slot of the object fd, or -1. */
int bh_snap_slots_claim(int fd);
void bh_snap_slots_release(int fd, int slot);
/* Ordered before every later load of the horizon. */
void bh_snap_slots_publish(int fd, int slot, uint64_t segment, uint64_t pos);

/* Writer. Ordered after every earlier store of the horizon. */
void bh_snap_slots_scan(int fd, struct bh_snap_slot_view ret[static BH_SNAP_SLOTS]);
/* Clears the slots whose reader is gone. */
void bh_snap_slots_drop_dead(int fd);
#endif
