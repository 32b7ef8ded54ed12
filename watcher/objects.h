/* SPDX-License-Identifier: Apache-2.0
 *
 * watcher/objects.h - the objects that are not in the snapshot, and which reader has been told what
 *
 * One list in the order of the last change. A reader that went from head to tail has the whole
 * state, each object in its newest version; a change moves its object to the tail, where every
 * reader will come by once more. A deletion leaves a tombstone until those readers that knew the
 * object have passed. So there is no queue a reader could overflow: a slow one sees fewer versions,
 * never fewer objects, and memory is bounded by the live objects plus what was deleted since the
 * slowest reader.
 *
 * Readers are numbered 0 .. BH_OBJECTS_READERS-1; each object has a bit a reader: "has been given
 * it". Kinds that plugins read (BH_KIND_CUSTOM) are passed by those readers that do not want them.
 * Threads: one owner.
 */
#ifndef BH_WATCHER_OBJECTS_H
#define BH_WATCHER_OBJECTS_H

#include "common/base/map.h"
#include "common/k8s/kinds.h"

#include <sys/queue.h>

#define BH_OBJECTS_READERS 16u

enum bh_object_state { BH_OBJ_LIVE, BH_OBJ_DELETED, BH_OBJ_BOUND };
struct bh_object {
    TAILQ_ENTRY(bh_object) link;
    enum bh_kind kind;
    enum bh_object_state state;
    uint32_t told; /* bit a reader: live: has some version; gone: has to be told */
    uint32_t bytes_n;
    uint64_t log_pos;
    const char *ns, *name, *uid, *rv; /* into text */
    const uint8_t *bytes;
    char text[];
};
TAILQ_HEAD(bh_object_list, bh_object);
struct bh_objects {
    struct bh_object_list list;
    struct bh_map by_name[BH_KIND_ALL];         /* "ns/name" -> live object */
    struct bh_object *next[BH_OBJECTS_READERS]; /* NULL = at the end */
    uint32_t readers;                           /* bit = in use */
    uint64_t wants[BH_OBJECTS_READERS];         /* bits 1 << kind, of BH_KIND_CUSTOM and above */
    size_t live[BH_KIND_ALL], tombs, bytes;
    /* Changes so far: those that readers wait for, and pods that got their node, which readers see
     * in the snapshot as well. */
    uint64_t changes, bound;
};
struct bh_object_key {
    enum bh_kind kind;
    const char *ns, *name, *uid, *rv;
};
void bh_objects_init(struct bh_objects *o);
void bh_objects_fini(struct bh_objects *o);
/* Adds or replaces. bytes are copied. */
void bh_objects_put(struct bh_objects *o, const struct bh_object_key *k, const void *bytes,
                    size_t n, uint64_t log_pos);
/* Ends a live object; state says how. False: not known (by that uid). */
bool bh_objects_end(struct bh_objects *o, const struct bh_object_key *k, enum bh_object_state state,
                    uint64_t log_pos);
const struct bh_object *bh_objects_find(const struct bh_objects *o, enum bh_kind kind,
                                        const char *ns, const char *name);

/* A reader that starts (again) from nothing. -1: all numbers are taken. */
int bh_objects_reader_open(struct bh_objects *o);
void bh_objects_reader_restart(struct bh_objects *o, unsigned reader);
void bh_objects_reader_close(struct bh_objects *o, unsigned reader);
/* From its (re)start on the reader gets objects of these kinds, too; none of them at first. */
void bh_objects_reader_wants(struct bh_objects *o, unsigned reader, uint64_t kinds);
/* Ends all objects of a kind that nobody reads. */
void bh_objects_drop(struct bh_objects *o, unsigned kind);
/* The reader has no use for the object: of a kind that it does not want, or a tombstone of what it
 * never heard of. */
bool bh_objects_passes(const struct bh_objects *o, unsigned reader, const struct bh_object *ob);
/* The next object the reader needs, NULL at the end. Borrowed until the next call of anything; with
 * *ret_known the reader had an earlier version. Peek does not move. */
const struct bh_object *bh_objects_peek(struct bh_objects *o, unsigned reader, bool *ret_known);
void bh_objects_advance(struct bh_objects *o, unsigned reader);
#endif
