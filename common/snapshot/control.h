/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/control.h - which data segment is current, and which term may write
 *
 * A writer holds the runtime directory for as long as it lives (announce.h), and every object it
 * has made; those locks, not a pid, are what "a live writer" means. Objects are never reused: the
 * successor marks a dead one's control segment gone and unlinks what belongs to the same user.
 */
#ifndef BH_SNAPSHOT_CONTROL_H
#define BH_SNAPSHOT_CONTROL_H

#include "common/snapshot/announce.h"
#include "common/snapshot/slots.h"

/* The writer's hold on a runtime directory. Its words are in the stand-in until there is a control
 * segment, which may be much later: /dev/shm can be full. */
struct bh_snap_hold {
    int dir; /* locked */
    uint64_t instance;
    gid_t group;
    struct bh_snap_object control, slots;
    struct bh_snap_map *map; /* of the control segment */
    struct bh_snap_control stand_in;
};
/* Takes the directory over and clears away what dead writers left: 0, -EBUSY (live writer), -errno.
 * No object is made. */
int bh_snap_hold_take(struct bh_snap_hold *h, const char *runtime_dir, gid_t group,
                      struct bh_err *err);
/* Where the words are now. */
struct bh_snap_control *bh_snap_hold_words(struct bh_snap_hold *h);
/* Are the names that readers start from there, and the right ones? With *ret_gone the first of them
 * that is not, for a log; only the link missing is repaired by bh_snap_announced_set. */
bool bh_snap_hold_there(const struct bh_snap_hold *h, bool *ret_only_link,
                        char ret_gone[static BH_SNAP_NAME_MAX]);
/* A new control segment with new slots in place of the ones before, with the same words, announced.
 * 0, -ENOSPC, -errno (then everything is as it was). */
int bh_snap_hold_renew(struct bh_snap_hold *h);
int bh_snap_hold_announce(struct bh_snap_hold *h); /* only the link */
/* Unlinks link, control and slots (not the data segment). NULL-safe parts. */
void bh_snap_hold_release(struct bh_snap_hold *h);
#endif
