/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/reader_int.h - the reader's object, shared by attach.c, copy.c and reader.c
 */
#ifndef BH_SNAPSHOT_READER_INT_H
#define BH_SNAPSHOT_READER_INT_H

#include "common/base/map.h"
#include "common/snapshot/control.h"
#include "common/snapshot/snapshot.h"

enum bh_snap_phase {
    BH_SNAP_PHASE_NEW,      /* a data segment is mapped (or none), nothing delivered from it */
    BH_SNAP_PHASE_WALK,     /* delivering the directory */
    BH_SNAP_PHASE_CATCH_UP, /* following the log: when synced to catch_up_to, then END */
    BH_SNAP_PHASE_FOLLOW
};
struct bh_snap_buffer {
    void *p;
    size_t cap;
};
struct bh_snap_reader {
    char *runtime_dir;
    char name[128];              /* of the control segment or its directory, for errors */
    struct bh_snap_announced at; /* whose control segment it is */
    struct bh_symtab *symtab;

    struct bh_snap_map *control_map;
    const struct bh_snap_control *control; /* NULL = not attached */
    uint64_t incarnation;                  /* own copy of the control segment's */
    int slots_fd;
    int slot; /* -1 = unregistered */
    uint64_t name_checked_ns;

    struct bh_snap_seg seg; /* stays mapped while a successor of the writer gets ready */
    uint64_t seg_incarnation, segment;
    enum bh_snap_phase phase;
    bool delivered; /* the owner has data of seg_incarnation */
    bool moved;     /* MOVED is drained */
    uint64_t pos, published_pos;
    uint64_t walk_at, walk_end, catch_up_to; /* the last: UINT64_MAX = not synced yet */

    bh_sym *sym_map; /* segment's symbol -> private one, 0 = not met yet; per incarnation */
    uint64_t sym_cap;
    struct bh_umap shapes; /* key -> private copy */
    struct bh_snap_buffer rec;
    const char *bad; /* what map_sym found wrong during a remap */
    char error[320];
    bool (*may_announce)(const void *arg, uid_t uid); /* NULL: any user may */
    const void *may_announce_arg;
};

/* attach.c ---- */
/* Maps the control segment and the current data segment as far as they are there. On OK seg is one
 * of the control's incarnation, and phase says whether anything came from it yet. */
enum bh_snap_outcome bh_snap_attach(struct bh_snap_reader *r);
/* The control points to another segment than seg: go there, at the same position. */
enum bh_snap_outcome bh_snap_switch(struct bh_snap_reader *r);
/* Nothing new: is there another writer by now? May drop the control segment, so that the next
 * attach finds the new one. */
void bh_snap_look_around(struct bh_snap_reader *r);
/* Publishes pos. False when something retired after pos may have been reused already. */
bool bh_snap_register(struct bh_snap_reader *r, uint64_t pos);
void bh_snap_lose_control(struct bh_snap_reader *r);
enum bh_snap_outcome bh_snap_not_synced(struct bh_snap_reader *r); /* NOT_READY, with its text */
/* Forgets everything that belongs to the data: mapping, symbols, shapes. */
void bh_snap_drop_data(struct bh_snap_reader *r);
void bh_snap_drop_shapes(struct bh_snap_reader *r);
/* Notes the text and detaches. */
enum bh_snap_outcome bh_snap_corrupt(struct bh_snap_reader *r, const char *what, uint64_t where);

/* copy.c ---- */
/* A private, validated copy of the record at off, in r->rec until the next call. type 0 = node or
 * pod. Returns OK, OVERRUN, or CORRUPT (detached then). */
enum bh_snap_outcome bh_snap_copy(struct bh_snap_reader *r, uint64_t off, uint16_t type,
                                  struct bh_rec_head **ret);
/* The cached shape at off, copied when it is met for the first time (*ret_new). */
enum bh_snap_outcome bh_snap_copy_shape(struct bh_snap_reader *r, uint64_t off, uint64_t *ret_key,
                                        const struct bh_shape_rec **ret, bool *ret_new);
#endif
