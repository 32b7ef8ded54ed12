/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/view.h - nodes and pods of a running instance as rows: the snapshot, and the watcher's pending
 * pods
 *
 * No engine, no configuration, no API server. Assumed pods are pending here.
 * Threads: one owner. Fails with: negative errno and a text that names the runtime directory.
 */
#ifndef BH_CLI_VIEW_H
#define BH_CLI_VIEW_H

#include "common/base/map.h"
#include "common/data/json.h"
#include "common/feed/feed.h"
#include "common/snapshot/snapshot.h"

struct bh_view_row {
    struct bh_node_rec *node;         /* or */
    struct bh_pod_rec *pod;           /* with */
    const struct bh_shape_rec *shape; /* ... the snapshot's, */
    struct bh_shape_rec *own_shape;   /* or of a pending pod */
    char *reason, *message;           /* its PodScheduled condition, NULL = none */
    char *owner_kind, *owner;         /* of a pending pod: its controller, "" = none */
    __int128 cpu_milli, memory_bytes; /* requested; of a node by its pods */
    bool deleted;                     /* in the list of the next follow only */
    uint64_t pods;                    /* on a node */
    uint64_t printed;                 /* the caller's */
};
struct bh_view {
    struct bh_symtab *symtab;
    struct bh_snap_reader *reader;
    struct bh_feed feed;
    struct bh_arena arena;              /* of one object */
    struct bh_map nodes, pods, pending; /* name, uid, uid -> struct bh_view_row */
    struct bh_map gone;                 /* deleted since the last follow, by name or uid */
    bool has_feed, complete, added;     /* a rebuild of the snapshot is complete; sums are made */
};
/* Reads until everything is there. pending: also pods without a node; *ret_trouble is set (caller
 * frees) when the watcher does not answer and they are not known. */
int bh_view_open(struct bh_view *v, const char *runtime_dir, bool pending, char **ret_trouble,
                 struct bh_err *err);
void bh_view_close(struct bh_view *v); /* a zeroed one, too */
/* Takes in what has changed since; rows that were taken before are invalid. What was deleted is in
 * the next list of rows, marked. */
int bh_view_follow(struct bh_view *v, struct bh_err *err);
/* All nodes, or all pods, sorted by name; the caller frees the list. */
struct bh_view_row **bh_view_rows(struct bh_view *v, bool pods, size_t *ret_n);

/* ---- view_document.c ------------------------------------------------------------------------- */
const char *bh_view_name(const struct bh_view *w, const struct bh_view_row *r);
/* "a=b,c=d" sorted by key, "k=v:NoSchedule"; the caller frees. */
char *bh_view_labels_text(const struct bh_view *w, const void *rec, struct bh_slice labels);
char *bh_view_taints_text(const struct bh_view *w, const struct bh_node_rec *n);
/* v1 Node or Pod, with what is known here, and `requested`; in a. */
struct bh_json *bh_view_node_json(const struct bh_view *w, struct bh_arena *a,
                                  const struct bh_view_row *r);
struct bh_json *bh_view_pod_json(const struct bh_view *w, struct bh_arena *a,
                                 const struct bh_view_row *r);
#endif
