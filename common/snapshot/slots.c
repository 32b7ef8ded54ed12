/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/slots.c - reader slots, in an object or in memory
 */
#include "common/snapshot/slots.h"
#include "common/snapshot/segment.h"

#include <sys/types.h>
#include <unistd.h>

enum { ACTIVE = 1, CLAIMED = 2 /* taken, no position yet */ };
#define HEAD_BYTES offsetof(struct bh_snap_slot, reserved)

static off_t slot_at(int slot)
{
    return (off_t)slot * (off_t)sizeof(struct bh_snap_slot);
}

static void clear(const struct bh_snap_slots *s, int slot)
{
    struct bh_snap_slot none = {0};
    (void)!pwrite(s->fd, &none, HEAD_BYTES, slot_at(slot)); /* failing: the slot looks stalled */
}

int bh_snap_slots_claim(const struct bh_snap_slots *s)
{
    for (int i = 0; i < (int)BH_SNAP_SLOTS; i++) {
        if (s->mem) {
            uint32_t free_slot = 0;
            if (__atomic_compare_exchange_n(&s->mem[i].active, &free_slot, CLAIMED, false,
                                            __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
                return i;
        } else if (s->fd >= 0 && bh_snap_object_lock(s->fd, (uint64_t)i) == 0) {
            clear(s, i); /* a dead reader's old position would look like a stall */
            return i;
        }
    }
    return -1;
}

void bh_snap_slots_release(const struct bh_snap_slots *s, int slot)
{
    if (slot < 0)
        return;
    if (s->mem) {
        __atomic_store_n(&s->mem[slot].active, 0, __ATOMIC_RELEASE);
        return;
    }
    clear(s, slot);
    bh_snap_object_unlock(s->fd, (uint64_t)slot);
}

void bh_snap_slots_publish(const struct bh_snap_slots *s, int slot, uint64_t segment, uint64_t pos)
{
    if (slot < 0)
        return;
    if (s->mem) {
        bh_snap_store(&s->mem[slot].segment, segment);
        /* Release for the copies made so far; seq_cst for the horizon loaded next. */
        __atomic_store_n(&s->mem[slot].pos, pos, __ATOMIC_SEQ_CST);
        __atomic_store_n(&s->mem[slot].active, ACTIVE, __ATOMIC_SEQ_CST);
        return;
    }
    struct bh_snap_slot v = {
        .active = ACTIVE, .pid = (uint32_t)getpid(), .segment = segment, .pos = pos};
    bh_snap_fence_full(); /* copies made so far are over before the position says so */
    (void)!pwrite(s->fd, &v, HEAD_BYTES, slot_at(slot)); /* failing: unregistered, still safe */
    bh_snap_fence_full(); /* pairs with the one in bh_snap_slots_scan */
}

void bh_snap_slots_scan(const struct bh_snap_slots *s,
                        struct bh_snap_slot_view ret[static BH_SNAP_SLOTS])
{
    struct bh_snap_slot page[BH_SNAP_SLOTS];
    memset(ret, 0, BH_SNAP_SLOTS * sizeof(ret[0]));
    if (s->mem) {
        for (unsigned i = 0; i < BH_SNAP_SLOTS; i++) {
            ret[i].active = __atomic_load_n(&s->mem[i].active, __ATOMIC_SEQ_CST) == ACTIVE;
            ret[i].pos = __atomic_load_n(&s->mem[i].pos, __ATOMIC_SEQ_CST);
            ret[i].segment = bh_snap_load(&s->mem[i].segment);
        }
        return;
    }
    bh_snap_fence_full(); /* pairs with the one in bh_snap_slots_publish */
    ssize_t n = pread(s->fd, page, sizeof(page), 0);
    bh_snap_fence_full();
    for (unsigned i = 0; n > 0 && i < (size_t)n / sizeof(page[0]); i++)
        ret[i] = (struct bh_snap_slot_view){
            .active = page[i].active == ACTIVE, .segment = page[i].segment, .pos = page[i].pos};
}

void bh_snap_slots_drop_dead(const struct bh_snap_slots *s)
{
    struct bh_snap_slot_view v[BH_SNAP_SLOTS];
    if (s->mem)
        return;
    bh_snap_slots_scan(s, v);
    for (int i = 0; i < (int)BH_SNAP_SLOTS; i++) {
        /* Having the lock ourselves while clearing keeps a new reader out meanwhile. */
        if (v[i].active && bh_snap_object_lock(s->fd, (uint64_t)i) == 0)
            bh_snap_slots_release(s, i);
    }
}
