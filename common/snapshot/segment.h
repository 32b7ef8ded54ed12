/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/segment.h - shared memory objects: create, reserve, map, check
 *
 * Owns the mappings and the names' spelling; knows nothing of records' meaning.
 */
#ifndef BH_SNAPSHOT_SEGMENT_H
#define BH_SNAPSHOT_SEGMENT_H

#include <sys/types.h>
#include "common/snapshot/layout.h"

#define BH_SNAP_FOLDER   "/dev/shm"
#define BH_SNAP_NAME_MAX 48u           /* with NUL */
#define BH_SNAP_LOCK_AT  BH_SNAP_SLOTS /* byte of every object that its writer holds locked */

struct bh_snap_map {
    void *base;
    size_t bytes;
};
/* A data segment as this process sees it. Readers have it mapped read-only. The bounds are this
 * process's own copies, checked once; the segment's header is not asked for them again. */
struct bh_snap_seg {
    struct bh_snap_map *map;
    struct bh_snap_header *h;
    struct bh_snap_entry *log;
    uint64_t log_entries;
    struct bh_snap_sym *syms;
    uint64_t sym_cap;
    char *text;
    uint64_t text_bytes;
    uint64_t *dir;
    uint64_t dir_cap;
    uint64_t rec_begin, rec_end; /* offsets */
};
struct bh_snap_sizes {
    uint64_t log_entries, syms, text_bytes, dir_slots, record_bytes;
};

/* A shared memory object of the writer's. Its name has a random key that no process knows before it
 * exists; it stays locked as long as fd is open. */
struct bh_snap_object {
    int fd; /* -1 = none */
    uint64_t key;
};
void bh_snap_object_name(uint64_t instance, uint64_t key, char out[static BH_SNAP_NAME_MAX]);
bool bh_snap_object_parse(const char *name, uint64_t *ret_instance, uint64_t *ret_key);
/* A new one: O_EXCL, mode, group (-1 = leave), bytes reserved, locked. What has a drawn name
 * already is logged and left alone. 0, or -errno and nothing is left behind; no room is always
 * -ENOSPC. */
int bh_snap_object_create(uint64_t instance, unsigned mode, gid_t group, uint64_t bytes,
                          struct bh_snap_object *ret);
/* Is it still what its name leads to? */
bool bh_snap_object_there(uint64_t instance, const struct bh_snap_object *o);
/* Unlinks the name, if it is still this object's, and closes. Of none: nothing. */
void bh_snap_object_remove(uint64_t instance, struct bh_snap_object *o);
/* Reader: an object announced by uid; an fd and its size, or -EPERM, -errno. */
int bh_snap_object_open(const char *name, uid_t uid, bool slots, uint64_t *ret_bytes);
/* Whole-file lock on byte `at` of an open file description; 0 or -EAGAIN. Gone with the last copy
 * of the descriptor, however the process ends and whatever pid namespace it is in. */
int bh_snap_object_lock(int fd, uint64_t at);
void bh_snap_object_unlock(int fd, uint64_t at);

/* fd -1: anonymous memory. NULL when the kernel has no room for the mapping. */
struct bh_snap_map *bh_snap_map_new(int fd, size_t bytes, bool writable);
void bh_snap_map_free(struct bh_snap_map *m);

uint64_t bh_snap_sizes_total(const struct bh_snap_sizes *z);
/* Fills the header of fresh (zero) memory, except version, and the view. Takes the reference. */
void bh_snap_seg_format(struct bh_snap_seg *s, struct bh_snap_map *m,
                        const struct bh_snap_sizes *z);
/* The view of a segment as another wrote it; every bound is checked. NULL, or what is wrong with it
 * (static text); takes the reference only on success. */
const char *bh_snap_seg_open(struct bh_snap_seg *s, struct bh_snap_map *m);
void bh_snap_seg_close(struct bh_snap_seg *s);
#endif
