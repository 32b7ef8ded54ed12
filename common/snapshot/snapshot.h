/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/snapshot.h - nodes and assigned pods in POSIX shared memory: one writer, any
 * number of readers, no process waits for another
 *
 * WHAT. A control segment says which data segment is current. A data segment holds: an append-only
 * symbol table (32-bit id -> text), a record area, a directory of live nodes and pods, and a change
 * log (ring). Records (record.h) are immutable once published: an update publishes a new record and
 * retires the old one. A third object beside the control segment has 64 slots in which readers say
 * how far they are.
 *
 * WHO. The watcher writes. Schedulers, `berth top`, `berth get` read; they map everything
 * read-only. The slots are the only thing that readers write (mode 0660), and no process maps them:
 * they are read and written by system call, so a hostile peer that truncates them does no harm.
 * Offsets, never pointers.
 *
 * WRITER'S STEPS for one change (each is a crash point, enum bh_snap_step):
 *   1. take space, publish new symbols, copy the record into it   (no reader reaches it yet)
 *   2. directory slot := offset of the new record, or 0           (release store)
 *   3. log[head % size] := {seq = 0, then offset, op ..., then seq = head+1}   (each release)
 *   4. head := head+1                              (release; pairs with the reader's acquire)
 *   5. retire the old record at this head
 *   6. the last pod of a shape gone: 3 and 4 again for the shape, retire the shape
 * READER'S STEPS: load head (acquire) -> for each entry between own position and head: load seq
 * (acquire), copy the entry (acquire), load seq again; not the expected one = overrun. Copy the
 * record out (bounds checked against the mapping), load the horizon; beyond the own position =
 * overrun. Validate the copy (bh_rec_remap), deliver, publish the own position in the slot.
 * REBUILD: register position P = head, load the horizon; beyond P = again with a newer head. Walk
 * the directory and deliver what is there, then follow the log from P to the head seen after the
 * walk. Deliveries repeat, last wins. At END the state is that of the position, or has the one
 * change in flight (step 2 done, step 4 not) on top, which the log then delivers again; after the
 * next change it is exactly that of the position. RECYCLING: space retired at position R is reused
 * only when (a) the horizon, in the segment, is at least R and (b) after that was stored (seq_cst)
 * no slot has a position below R. A reader stores its slot before it loads the horizon (seq_cst
 * both), so it is either waited for or knows. Hence the slots make overruns rare and the horizon
 * makes them harmless: a reader without slot (all 64 taken), one whose slot was forged, one in a
 * foreign pid namespace only risks BH_SNAP_OVERRUN. A dead reader's slot is freed (its lock is
 * gone). A live one that lags by more than half the ring is not waited for: the writer MOVES. MOVE
 * (growth, stalled reader, symbol table full): the writer builds a new data segment with the live
 * records and the SAME symbol ids, shape keys and log sequence, appends MOVED to the old log,
 * publishes the new segment in the control segment (release) and unlinks the old name. The old
 * mapping stays intact for its readers: a reader drains the old log to MOVED, then maps the new
 * segment and goes on at the same sequence. So a move costs a reader nothing but a mmap; one that
 * missed a whole further move, or half a ring in the new segment, rebuilds (BH_SNAP_OVERRUN).
 * RESTART of the writer: a new incarnation and control segment, built from fresh lists, current
 * only when the writer says synced, or that it may be read before (bh_snap_open): then readers
 * follow while it fills, and a rebuild that began meanwhile ends (END) when it is synced; until
 * then each follow says BH_SNAP_NOT_READY. Readers keep the old data until the new is current, get
 * BH_SNAP_NEW_INCARNATION and rebuild; symbols and shape keys are new. CRASH of the writer at any
 * instant: readers keep everything published up to head; a log entry without its head increment is
 * never looked at. LIVENESS: heartbeat word (CLOCK_BOOTTIME ns) written by the watcher's loop at
 * least every second, also while idle. bh_snap_reader_info tells it; the scheduler judges its age.
 *
 * NAMES. Any user may create names in /dev/shm, so none is known before it exists and none is
 * trusted by itself. Every object is "/berth-<instance>-<key>": instance = hash of the runtime
 * directory (for people and for sweeping), key = drawn from getrandom() when the object is made
 * (O_EXCL, 0640; slots 0660). What has that name already is logged and left alone, and another key
 * is drawn. The runtime directory is what is trusted; a world-writable one is refused.
 * Writer: (1) locks the directory for life; a second writer is refused (-EBUSY). (2) Unlinks what
 * dead writers of the instance left: objects of its own user whose lock is free; a dead control
 * segment is marked gone first. (3) Makes data segment, slots, control segment, each locked for
 * life. (4) Points the symbolic link "watcher/snapshot" in the directory to the control segment
 * (rename).
 * (5) Once a second looks whether link, control, slots and data are still what they were. Data
 * gone: MOVE. Control or slots gone: both anew with the same words and incarnation, link, the old
 * ones marked gone. Link gone: link.
 * Reader: reads the link and its owner, who must own the directory "watcher" and be expected; opens
 * the control segment (regular, that owner's, no other user may write it); that has the keys of
 * slots and data, which are checked the same way. Marked gone: begins again with the link; at the
 * same incarnation it goes on where it was. A heartbeat older than 2 s: looks whether the link
 * leads elsewhere.
 *
 * SPACE is reserved with posix_fallocate, so that a full /dev/shm is an error code and never
 * SIGBUS. No room for a data segment (the first one, growth, one that was removed) ends nothing and
 * refuses no change: the writer goes on in private memory (HIDDEN). It logs MOVED in the old
 * segment, says 0 = none and why in the control segment, and unlinks the old name. Readers follow
 * to MOVED, let go of the old segment, which gives its room back, and are told BH_SNAP_NOT_READY:
 * half a snapshot would look like a smaller cluster. Once a second the writer tries to move to
 * shared memory; when it has, readers rebuild. No room for control segment, slots or link: tried
 * again the same way. A move away from a stalled reader that has no room is just not made. Puts
 * fail with -ENOSPC only when private memory is refused as well.
 *
 * TRUST: readers treat every byte as foreign: offsets and counts are checked against the mapping on
 * each use; a violation is BH_SNAP_CORRUPT, never a crash.
 *
 * Threads: a writer or reader object has one owner thread.
 * Docs: docs/snapshot-layout.md has the byte layout, checked by _Static_assert.
 */
#ifndef BH_SNAPSHOT_H
#define BH_SNAPSHOT_H

#include <sys/types.h>

#include "common/k8s/compile.h"
#include "common/k8s/record.h"

/* ---- writer ---------------------------------------------------------------------------------- */
struct bh_snap_writer;
struct bh_snap_options {
    size_t initial_bytes; /* 0 = 16 MiB record area */
    uint32_t log_entries; /* power of two; 0 = 1 << 17 */
    const char *group;    /* group of the segments, NULL = leave */
};
struct bh_snap_stats {
    uint64_t incarnation, segment, head, heartbeat_boot_ns;
    uint64_t nodes, pods, shapes, symbols;
    uint64_t bytes_used, bytes_size, moves, retired_waiting, readers;
    uint64_t lease_term, lease_until_boot_ns; /* see bh_snap_set_lease */
    uint64_t refused; /* times that /dev/shm or the runtime directory had no room */
    uint64_t lost;    /* names that were removed, and that were made again */
    bool hidden; /* readers have no segment: /dev/shm has refused it; tried again every second */
    bool synced;
};
/* runtime_dir: not world-writable. 0; -EBUSY (a writer is alive there), -EPERM, -EINVAL, -ENOENT
 * (group), -errno. No room is no error: see SPACE. */
int bh_snap_writer_new(const char *runtime_dir, const struct bh_snap_options *o,
                       struct bh_snap_writer **ret_w, struct bh_err *err);
/* Unlinks the names (clean stop) and unmaps. */
void bh_snap_writer_free(struct bh_snap_writer *w);
/* Interns into the segment's table; for bh_compile_*. */
struct bh_interner bh_snap_interner(struct bh_snap_writer *w);
/* Publish. The record is copied; its symbols are the segment's. An identical record (same bytes but
 * resource_version) publishes nothing and returns 1. 0, 1, -ENOSPC, -E2BIG. */
int bh_snap_put_node(struct bh_snap_writer *w, const struct bh_node_rec *rec);
/* pod->shape is ignored: the shape is interned by content, reference counted, and shared. */
int bh_snap_put_pod(struct bh_snap_writer *w, const struct bh_pod_rec *pod,
                    const struct bh_shape_rec *shape);
int bh_snap_del_node(struct bh_snap_writer *w, const char *name, size_t n); /* 0 or -ENOENT */
int bh_snap_del_pod(struct bh_snap_writer *w, const char *uid, size_t n);   /* 0 or -ENOENT */
uint64_t bh_snap_head(const struct bh_snap_writer *w); /* log position after the last change */
void bh_snap_set_synced(struct bh_snap_writer *w, bool synced);
/* Readers may follow from now on, synced or not: their work overlaps with the writer's lists. */
void bh_snap_open(struct bh_snap_writer *w);
/* What this host may do under the leader lease, in the control segment: (0, 0) not said yet;
 * (0, BH_SNAP_NO_ELECTION) always; (term, t) decide and write until CLOCK_BOOTTIME t; (term, 0)
 * given up. Seen by readers at once, whatever they have followed. */
#define BH_SNAP_NO_ELECTION UINT64_MAX
void bh_snap_set_lease(struct bh_snap_writer *w, uint64_t term, uint64_t until_boot_ns);
/* Heartbeat + housekeeping (recycle, drop dead readers, move away from stalled ones). Call at least
 * once a second and after each burst. */
void bh_snap_writer_tick(struct bh_snap_writer *w);
void bh_snap_writer_stats(const struct bh_snap_writer *w, struct bh_snap_stats *ret);

/* ---- reader ---------------------------------------------------------------------------------- */
enum bh_snap_outcome {
    BH_SNAP_OK,              /* up to date */
    BH_SNAP_MORE,            /* stopped at max_events, call again */
    BH_SNAP_NOT_READY,       /* no control segment, or nothing current, or not synced yet; in the
                              * last case changes may have been delivered, but no END, and more
                              * than max_events may wait: call again while events come */
    BH_SNAP_VERSION,         /* other layout version: refuse, say which (bh_snap_reader_error) */
    BH_SNAP_NEW_INCARNATION, /* the writer restarted: drop everything, call follow again */
    BH_SNAP_OVERRUN,         /* fell a whole ring behind: drop everything, call follow again */
    BH_SNAP_CORRUPT /* an offset or length left the mapping; bh_snap_reader_error says which;
                     * the next follow attaches anew */
};
enum bh_snap_op {
    BH_SNAP_NODE_PUT,
    BH_SNAP_NODE_DEL,
    BH_SNAP_SHAPE_PUT, /* just before the first pod that uses the shape */
    BH_SNAP_POD_PUT,
    BH_SNAP_POD_DEL,
    BH_SNAP_BEGIN,
    BH_SNAP_END,
    BH_SNAP_SHAPE_DEL /* no pod uses the shape any more; its key never comes back */
};
struct bh_snap_event {
    enum bh_snap_op op;
    uint64_t pos; /* log position after this change */
    /* Private, validated copies valid during the callback, symbols mapped by the reader's table:
     * NODE_PUT/NODE_DEL: node (DEL: the last record). POD_PUT/POD_DEL: pod (its ->shape is the
     * key) and its shape. SHAPE_PUT/SHAPE_DEL: shape, which stays valid and at its address from
     * the one to the other (or to the next BEGIN).
     * BEGIN: a rebuild starts (forget what was delivered before); END: the rebuild is complete.
     * Between the two objects may be put twice, and deletions may name objects never put. */
    const struct bh_node_rec *node;
    const struct bh_pod_rec *pod;
    const struct bh_shape_rec *shape;
    uint64_t shape_key; /* identity of the shape within the incarnation: same key = same shape */
};
struct bh_snap_reader;
/* symtab: the private table that delivered symbols refer to; filled as the segment's grows. */
struct bh_snap_reader *bh_snap_reader_new(const char *runtime_dir, struct bh_symtab *symtab);
void bh_snap_reader_free(struct bh_snap_reader *r);
/* Only snapshots of users for which may_announce() returns true are attached; without it those of
 * any user who made <runtime_dir>/watcher, for commands that show what is there. Borrows arg. */
void bh_snap_reader_believe(struct bh_snap_reader *r, bool (*may_announce)(const void *arg, uid_t),
                            const void *arg);
/* Attaches when needed, then delivers what is new, at most max_events (a shape delivered on the way
 * to its pod, BEGIN and END are not counted; 0 = all there is). Cost depends on the number of
 * changes, never on the size of the cluster (except for BEGIN..END rebuilds). */
enum bh_snap_outcome bh_snap_follow(struct bh_snap_reader *r, unsigned max_events,
                                    void (*fn)(void *arg, const struct bh_snap_event *ev),
                                    void *arg);
uint64_t bh_snap_reader_pos(const struct bh_snap_reader *r);
bool bh_snap_reader_info(const struct bh_snap_reader *r, struct bh_snap_stats *ret);
/* False: not attached. */
bool bh_snap_reader_lease(const struct bh_snap_reader *r, uint64_t *ret_term,
                          uint64_t *ret_until_boot_ns);
/* After NOT_READY: there is no snapshot at all (never made, stopped, removed, no room for it), not
 * one that is being filled. A daemon waits for it; a command has nothing to read. */
bool bh_snap_reader_absent(const struct bh_snap_reader *r);
const char *bh_snap_reader_error(const struct bh_snap_reader *r);

/* ---- crash points ---------------------------------------------------------------------------- */
/* Always compiled in: one relaxed load of a pointer that is NULL outside tests, so that what is
 * tested is what is shipped. Numbers name the instant just after the store they stand for. */
enum bh_snap_step {
    BH_SNAP_STEP_RECORD = 1, /* record and symbols complete, unreachable */
    BH_SNAP_STEP_DIRECTORY,  /* directory slot stored */
    BH_SNAP_STEP_ENTRY,      /* log entry half written */
    BH_SNAP_STEP_LOGGED,     /* log entry complete, head not */
    BH_SNAP_STEP_HEAD,       /* published */
    BH_SNAP_STEP_RETIRED,    /* old record in the retirement queue */
    BH_SNAP_STEP_HORIZON,    /* recycling announced */
    BH_SNAP_STEP_RECYCLED,
    BH_SNAP_STEP_MOVE_RESERVED, /* new segment exists, empty */
    BH_SNAP_STEP_MOVE_FILLED,   /* ... complete; then MOVED is logged (ENTRY .. HEAD) */
    BH_SNAP_STEP_ANNOUNCED,     /* control segment points to it */
    BH_SNAP_STEP_MOVE_UNLINKED, /* old name gone */
    BH_SNAP_STEPS
};
extern void (*bh_snap_crash_hook)(int step);
#define BH_SNAP_CRASH_POINT(n)                                                                     \
    do {                                                                                           \
        void (*hook_)(int) = __atomic_load_n(&bh_snap_crash_hook, __ATOMIC_RELAXED);               \
        if (bh_unlikely(hook_ != NULL))                                                            \
            hook_(n);                                                                              \
    } while (0)
#endif
