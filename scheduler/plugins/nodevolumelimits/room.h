/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/nodevolumelimits/room.h - how many volumes of each driver every node can still
 * attach, kept from cycle to cycle
 *
 * Filter works this out from a node's pods, claims, volumes, attachments and its CSINode. Here the
 * outcome stands in a column a driver, by row, and follows the change logs of cache and objects: a
 * row is worked out again when its node or its pods changed, or an object that its outcome came
 * from (struct bh_room_source).
 *
 * Owns:       the columns, what each row holds, the sources.
 * Invariants: after bh_room_sync() all of it is as if it were worked out now.
 * Memory:     the heap, by rows, by claims that pods on nodes with limits use, by attachments.
 * Runs in:    the engine's thread. No malloc unless something grew.
 * Upstream:   pkg/scheduler/framework/plugins/nodevolumelimits/csi.go (Filter).
 */
#ifndef BH_ROOM_H
#define BH_ROOM_H

#include "scheduler/plugins/nodevolumelimits/attachments.h"

#define BH_ROOM_BINS 64u
#define BH_ROOM_MUCH INT32_MAX /* no limit, or no node */

struct bh_room_column {
    bh_sym driver;
    int32_t *room;                    /* by row */
    uint32_t rows_with[BH_ROOM_BINS]; /* rows by their room; those with less than 0 are in [0] */
};
struct bh_room_limit {
    uint32_t column;
    int64_t limit;
};
struct bh_room_row { /* empty unless the node limits some driver */
    bh_sym node;
    bool limits_known, dirty;
    bool error; /* what a pod on it has attached cannot be told: Filter fails */
    struct bh_room_limit *limit;
    struct bh_attachables used; /* by its pods; sorted, each once */
    uint32_t *claim;            /* the sources of used; a claim of several pods is there as often */
    uint32_t n_limits, n_claims, cap_used;
};
/* A claim that pods on nodes use, or a VolumeAttachment. */
struct bh_room_source {
    enum bh_kind kind;
    uint64_t key, volume_key; /* in the objects' change log: its own, and its volume's */
    uint64_t name;            /* claim: (namespace, name), as symbols */
    bh_sym node;              /* attachment */
    char *volume_name;        /* attachment; owned: names come and go for ever */
    struct bh_attachable what;
    uint32_t uses, row;           /* claim: of rows; row BH_ROW_NONE: of several rows */
    bool owned;                   /* claim: of an ephemeral volume, so it matters whose it is */
    uint32_t next_key, next_node; /* others of the same key; attachments of the node */
    uint32_t next_volume, prev_volume; /* others of the same volume_key */
};
struct bh_room {
    bool started;
    uint64_t log_pos, objects_pos, class_version;
    struct bh_room_row *row;
    uint32_t cap_rows;
    uint32_t *dirty, n_dirty;
    struct bh_room_column *column;
    uint32_t n_columns, n_errors;
    struct bh_room_source *source;
    uint32_t n_sources, cap_sources, free_source, n_idle;
    struct bh_umap by_name;   /* claim -> source */
    struct bh_umap by_key[2]; /* claims and attachments -> first source */
    struct bh_umap by_volume; /* volume_key -> first source */
    struct bh_umap attached;  /* node -> first attachment */
    struct bh_umap by_node;   /* key of a CSINode -> row */
};
void bh_room_init(struct bh_room *r);
void bh_room_fini(struct bh_room *r);
void bh_room_sync(struct bh_call *c, struct bh_room *r);
/* NULL: no node limits the driver. */
const struct bh_room_column *bh_room_column(const struct bh_room *r, bh_sym driver);
/* Some pod on the row's node uses the volume. Only for rows with limits. */
bool bh_room_holds(const struct bh_room *r, uint32_t row, bh_sym volume);
#endif
