/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/slots.c - reader slots in their object
 */
#include "common/snapshot/slots.h"
#include "common/snapshot/segment.h"

#include <sys/types.h>
#include <unistd.h>

enum { ACTIVE = 1 };
#define HEAD_BYTES offsetof(struct bh_snap_slot, reserved)

/* Failing: the slot looks stalled, or its reader is unregistered and still safe. */
static void write_slot(int fd, int slot, struct bh_snap_slot v)
{
    (void)!pwrite(fd, &v, HEAD_BYTES, (off_t)slot * (off_t)sizeof(v));
}

int bh_snap_slots_claim(int fd)
{
    for (int i = 0; i < (int)BH_SNAP_SLOTS; i++)
        if (bh_snap_object_lock(fd, (uint64_t)i) == 0) {
            /* a dead reader's old position would look like a stall */
            write_slot(fd, i, (struct bh_snap_slot){0});
            return i;
        }
    return -1;
}

void bh_snap_slots_release(int fd, int slot)
{
    if (slot < 0)
        return;
    write_slot(fd, slot, (struct bh_snap_slot){0});
    bh_snap_object_unlock(fd, (uint64_t)slot);
}

void bh_snap_slots_publish(int fd, int slot, uint64_t segment, uint64_t pos)
{
    if (slot < 0)
        return;
    bh_snap_fence_full(); /* copies made so far are over before the position says so */
    write_slot(fd, slot,
               (struct bh_snap_slot){
                   .active = ACTIVE, .pid = (uint32_t)getpid(), .segment = segment, .pos = pos});
    bh_snap_fence_full(); /* pairs with the one in bh_snap_slots_scan */
}

void bh_snap_slots_scan(int fd, struct bh_snap_slot_view ret[static BH_SNAP_SLOTS])
{
    struct bh_snap_slot page[BH_SNAP_SLOTS];
    memset(ret, 0, BH_SNAP_SLOTS * sizeof(ret[0]));
    bh_snap_fence_full(); /* pairs with the one in bh_snap_slots_publish */
    ssize_t n = pread(fd, page, sizeof(page), 0);
    bh_snap_fence_full();
    for (unsigned i = 0; n > 0 && i < (size_t)n / sizeof(page[0]); i++)
        ret[i] = (struct bh_snap_slot_view){
            .active = page[i].active == ACTIVE, .segment = page[i].segment, .pos = page[i].pos};
}

void bh_snap_slots_drop_dead(int fd)
{
    struct bh_snap_slot_view v[BH_SNAP_SLOTS];
    bh_snap_slots_scan(fd, v);
    for (int i = 0; i < (int)BH_SNAP_SLOTS; i++) {
        /* Having the lock ourselves while clearing keeps a new reader out meanwhile. */
        if (v[i].active && bh_snap_object_lock(fd, (uint64_t)i) == 0)
            bh_snap_slots_release(fd, i);
    }
}
