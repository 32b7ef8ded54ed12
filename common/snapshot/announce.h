/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/announce.h - what the runtime directory says about its snapshot
 *
 * Any user may create names in /dev/shm, so a name there says nothing about its owner. What is
 * trusted is the writer's own directory, <runtime_dir>/watcher (common/base/trusted_file.h):
 * "snapshot" in it is a symbolic link to the current control segment, replaced as a whole (rename).
 * A world-writable runtime directory is refused, and so is a link that does not belong to the owner
 * of the writer's directory. The object must belong to that user, too; the reader judges who it is.
 * A lock on the writer's directory, held for as long as the writer lives, keeps another writer out.
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
/* 0, -ENOENT, -EPERM (a directory is writable for others, or the link is another user's), -EBADMSG
 * (no link of ours), -errno; with a text that names what was found. */
int bh_snap_announced(const char *runtime_dir, struct bh_snap_announced *ret, struct bh_err *err);

/* Writer. Its own directory, made and locked: an fd; -EBUSY (a writer is alive), -EPERM, -errno. */
int bh_snap_directory_take(const char *runtime_dir, struct bh_err *err);
/* Does the link say so? */
bool bh_snap_announced_is(int dir, const char *name);
int bh_snap_announced_set(int dir, const char *name);   /* 0 or -errno: as before */
void bh_snap_announced_drop(int dir, const char *name); /* unless it says something else */
#endif
