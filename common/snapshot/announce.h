/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/announce.h - what the runtime directory says about its snapshot
 *
 * Any user may create names in /dev/shm, so a name there says nothing about its owner. What is
 * trusted is the runtime directory: "snapshot" in it is a symbolic link to the current control
 * segment, replaced as a whole (rename). The directory's mode says which users may put it there;
 * a world-writable one is refused. The object must belong to the owner of the link.
 * A lock on the directory, held for as long as the writer lives, keeps a second writer out.
 */
#ifndef BH_SNAPSHOT_ANNOUNCE_H
#define BH_SNAPSHOT_ANNOUNCE_H

#include "common/snapshot/segment.h"

/* What the names of a runtime directory's objects begin with: a hash of its resolved path. */
uint64_t bh_snap_instance(const char *runtime_dir);

struct bh_snap_announced {
    char name[BH_SNAP_NAME_MAX]; /* of the control segment */
    uint64_t instance;
    uid_t uid; /* whose it must be */
};
/* 0, -ENOENT, -EPERM (the directory is world-writable), -EBADMSG (no link of ours), -errno. */
int bh_snap_announced(const char *runtime_dir, struct bh_snap_announced *ret);

/* Writer. The locked directory: an fd, or -EBUSY (a writer is alive), -EPERM, -errno. */
int bh_snap_directory_take(const char *runtime_dir, struct bh_err *err);
/* Does the link say so? */
bool bh_snap_announced_is(int dir, const char *name);
int bh_snap_announced_set(int dir, const char *name);   /* 0 or -errno: as before */
void bh_snap_announced_drop(int dir, const char *name); /* unless it says something else */
#endif
