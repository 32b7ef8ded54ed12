/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine/fast/fast.h - the fast path: decisions from columns and kept results
 *
 * fast.c       a cycle without visiting every node
 * kept.c       a shape's numbers, by row
 * index.c      the best node of one shape, kept current row by row
 * track.c      ... with what the other nodes' pods mean for the shape
 * cells.c      ... asked for one row of each kind
 * overlay.c    ... with what the pod's own volumes and claims ask for
 * fail.c       pods that fit nowhere, and pods that were promised a node
 * packed.c     arrays of numbers
 *
 * Owns:       the results kept for shapes (struct bh_shape_cache), in a budget of bytes.
 * Invariants: what is kept equals what the reference path says for a pod of the shape once the
 *             cache's changes from log_pos on are in; verify.c compares.
 * Runs in:    the engine's thread.
 */
#ifndef BH_FAST_H
#define BH_FAST_H

#include "scheduler/engine/fast/packed.h"
#include "scheduler/engine/state.h"

/* The best of one shape: a tournament tree over blocks of rows. Its leaves and inner nodes hold the
 * best total below them, -1 = infeasible; and in aux how many rows have it (seeded choice), or the
 * row of the smallest name among these (first choice). */
struct bh_best { /* side by side with its sibling in one cache line */
    int64_t best;
    uint32_t aux;
};
struct bh_index {
    struct bh_packed total; /* by row; one more than it is, 0 = infeasible */
    struct bh_best *node;   /* 2 * cap entries, root at 1 */
    uint32_t rows;          /* there is room for these */
    uint32_t cap;           /* blocks, power of two */
    uint8_t shift;          /* block = row >> shift */
    bool first;             /* aux holds rows */
};
size_t bh_index_bytes(const struct bh_index *x);
void bh_index_init(struct bh_index *x, uint32_t rows, bool first);
void bh_index_fini(struct bh_index *x);
static inline int64_t bh_index_total(const struct bh_index *x, uint32_t row)
{
    return bh_packed_get(&x->total, row) - 1;
}
/* Only the total; bh_index_rebuild makes the tree right again, or bh_index_move of the same row
 * after the former total was put back. */
static inline void bh_index_set_leaf(struct bh_index *x, uint32_t row, int64_t total)
{
    bh_packed_set(&x->total, row, total + 1);
}
/* The row's total and whatever follows from it. Before, the tree is right for the totals that
 * stand in the row's block. */
void bh_index_move(struct bh_index *x, const struct bh_cache *c, uint32_t row, int64_t total);
/* The row is about to move. */
static inline void bh_index_prefetch(const struct bh_index *x, uint32_t row)
{
    __builtin_prefetch(&x->node[x->cap + (row >> x->shift)], 1);
}
void bh_index_rebuild(struct bh_index *x, const struct bh_cache *c);
uint32_t bh_index_count(const struct bh_index *x);            /* of the best; first choice: 1 */
uint32_t bh_index_pick(const struct bh_index *x, uint32_t k); /* row of the k-th best */

/* A Score plugin whose score depends on the extremes over all feasible nodes. */
struct bh_normalized_score {
    uint8_t plugin;
    enum bh_normal how;
    int64_t weight;
    int64_t max;          /* at least 0 */
    int64_t made_with;    /* the max that the totals are made with */
    uint32_t n_max;       /* feasible rows at max; only kept while max > 0 */
    struct bh_packed raw; /* by row; means something where feasible; read by bh_kept_raw */
};
#define BH_NORMALIZED_MAX 8u
/* What a plugin that is not node local keeps for one shape, see struct bh_track_ops. */
struct bh_tracker {
    uint8_t plugin;
    void *t; /* counts everything before the cache's log_pos */
};
#define BH_TRACKERS_MAX 4u
#define BH_EPOCHS_MAX   16u

/* The rows of a shape that pass the node-local plugins, by kind: rows of one cell are alike to
 * every tracker and have the same raw scores of the plugins that normalise. What is left are the
 * weighted scores that need no extremes, bh_kept_base(): of these each cell knows the best, and how
 * many rows have it, block of rows by block of rows. */
#define BH_CELLS_MAX 1024u
#define BH_CELL_NONE UINT16_MAX
struct bh_cell {
    uint32_t n;      /* rows; 0 = none is of the kind just now */
    uint32_t row;    /* one of them, BH_ROW_NONE = to be looked for */
    int32_t best;    /* base of the best rows ... */
    uint32_t n_best; /* ... and their number, unless stale */
    bool stale, feasible, wins;
    int64_t score; /* of the last bh_cells_run: what is on top of the base where feasible */
};
struct bh_cells {
    bool built;                         /* false: to be made anew */
    uint64_t builds;                    /* how often they were: ids and rows are others then */
    uint32_t rest;                      /* too many kinds: decisions until it is tried again */
    uint64_t plugins;                   /* whose kinds */
    uint32_t n_words;                   /* of a kind */
    uint32_t cap_rows, shift, n_blocks; /* a block has 1 << shift rows */
    uint16_t *of_row;                   /* cell, BH_CELL_NONE = does not pass */
    int32_t *base;                      /* by row */
    struct bh_cell *cell;
    uint32_t n, cap; /* cells in use, some of them empty; room */
    uint32_t max;    /* more would not pay */
    uint32_t *words; /* by cell: its kind */
    size_t cap_words;
    uint16_t *winner; /* cells with the best rows of the last run */
    uint32_t n_winners;
    uint16_t *slot;   /* kinds to cells, open addressing; BH_CELL_NONE = free */
    int32_t *best;    /* by cell and block, INT32_MIN = no row */
    uint16_t *n_best; /* by cell and block */
};

/* Cached results of one shape in one profile. */
struct bh_shape_cache {
    struct bh_shape_cache *older, *newer; /* by last use */
    uint32_t profile, shape;
    uint64_t born;    /* of the shape id, see shapes.h */
    uint64_t log_pos; /* changes before this are in */
    uint64_t epoch[BH_EPOCHS_MAX];
    struct bh_arena arena;  /* plugin states */
    struct bh_pod_info pod; /* stands for every pod of the shape; rec is the current one */
    struct bh_cycle cy;
    struct bh_index index;
    uint64_t fixed;         /* plugins of the cycle with BH_PLUGIN_READS_NODE */
    struct bh_packed floor; /* by row: 0 = these reject it, else 1 + their weighted scores */
    struct bh_normalized_score norm[BH_NORMALIZED_MAX];
    uint32_t n_norm;
    /* Overlays that pass every node for the pod at hand, whatever is on it: as if they skipped. */
    uint64_t always;
    uint64_t tracked; /* plugins that keep track and have a part in the cycle of the pod at hand */
    uint64_t idle;    /* plugins that have none: they would skip, maybe after a look at every pod */
    struct bh_tracker tracker[BH_TRACKERS_MAX];
    uint32_t n_trackers;
    struct bh_cells cells; /* of tracked shapes */
    uint32_t n_feasible;
    struct bh_fail *fail; /* why no row is feasible, see fast/fail.c; NULL: not asked for */
    bool fail_never;      /* that cannot be kept */
    size_t bytes;
};
struct bh_shape_slot {
    struct bh_shape_cache *cache;
    uint64_t seen; /* born of the shape last seen here */
};

/* What a fast cycle found. */
struct bh_fast {
    uint32_t n_feasible, evaluated;
    uint32_t n_best;
    const struct bh_index *index; /* cached; else: */
    const struct bh_cells *cells; /* kept; else: */
    const uint32_t *rows;         /* the feasible ones, in row order */
    const int64_t *totals;        /* by index into rows; NULL when one is feasible */
    uint64_t overlaid; /* overlays that had a say; one may have asked for the reference path */
    bool refused;      /* false, and that is why: with them nothing fits */
    struct bh_shape_cache *kept; /* bh_fast_run false: these say that nothing fits; NULL: unknown */
};

/* ---- fast/fast.c ---- */
uint32_t bh_live_rows(const struct bh_cache *c, uint32_t *rows); /* ascending; returns how many */
enum bh_fast_mode {
    BH_FAST_AUTO, /* keep results from the second time on */
    BH_FAST_ONCE, /* evaluate and forget */
    BH_FAST_KEEP, /* keep at once */
    BH_FAST_SCAN  /* the same without cells, for comparison */
};
/* false: this pod needs the reference path. */
bool bh_fast_run(struct bh_engine *e, struct bh_profile *p, const struct bh_pod_info *pod,
                 enum bh_fast_mode mode, int64_t now_ns, struct bh_fast *ret);
/* Raw scores of one plugin, normalised as it does, on top of the totals. */
void bh_fast_add_scores(enum bh_normal how, int64_t weight, const int64_t *raw, uint32_t n,
                        int64_t *total);
uint32_t bh_fast_best(const int64_t *totals, uint32_t n); /* how many have the highest; n > 0 */
uint32_t bh_fast_pick(const struct bh_engine *e, const struct bh_fast *f, uint32_t k);
bool bh_fast_eligible(const struct bh_framework *fw);
void bh_fast_drop_all(struct bh_engine *e);
/* Drops results until the others fit; never those that were used last. */
void bh_fast_keep_within_budget(struct bh_engine *e);

/* Filters of the cycle that are not skipped, nominated pods included; keeps the order of the rows.
 * other: room for n rows. cy->filter_failed: an Error. */
uint32_t bh_fast_filter(struct bh_cycle *cy, uint32_t *rows, uint32_t n, uint32_t *other);
/* Scores by plugin i; raw ones if they are normalised by an extreme. false: the reference path. */
bool bh_fast_scores(struct bh_cycle *cy, unsigned i, const uint32_t *rows, uint32_t n,
                    int64_t *ret);
/* Rows of the named nodes that are known, in the order of the names. */
uint32_t bh_fast_narrowed(const struct bh_cache *c, const struct bh_node_set *set, uint32_t *rows);

/* ---- fast/fail.c ---- */
void bh_fail_free(struct bh_shape_cache *sc);
size_t bh_fail_bytes(const struct bh_shape_cache *sc);
/* The rows are not what they were. */
void bh_fail_touch(struct bh_shape_cache *sc, const uint32_t *rows, uint32_t n);
/* For a pod of these kept results, which are current and, with their cells where some plugin keeps
 * track, know no feasible row; no other plugin has a part in its cycle that is left out of them.
 * NULL: the reference path decides. */
const struct bh_decision *bh_fail_decide(struct bh_engine *e, struct bh_profile *p,
                                         const struct bh_pod_info *pod, struct bh_shape_cache *sc,
                                         unsigned flags, int64_t now_ns);
/* Aborts when what is kept of these current results is not what r, or without one the filters, say
 * of a row. */
void bh_fail_verify(struct bh_engine *e, struct bh_shape_cache *sc, const struct bh_pod_info *pod,
                    const struct bh_reference *r);
/* The node that preemption, or a client, promised to the pod; BH_ROW_NONE: none that is there. */
uint32_t bh_promised_row(const struct bh_engine *e, const struct bh_pod_info *pod);
/* That node is taken if it fits: the others are not asked. idle: plugins that would skip. */
bool bh_promised_run(struct bh_engine *e, struct bh_profile *p, const struct bh_pod_info *pod,
                     uint32_t row, uint64_t idle, int64_t now_ns, struct bh_fast *ret);

/* ---- fast/overlay.c ---- */
/* The pod's answer: sc is current, of the pod's shape without volumes and claims; plugins: those
 * with BH_PLUGIN_OVERLAY that are not idle; tracked: those that keep track and are not idle (with
 * trackers that are current). false: the pod needs the reference path. */
bool bh_overlay_run(struct bh_engine *e, struct bh_shape_cache *sc, const struct bh_pod_info *pod,
                    uint64_t plugins, uint64_t tracked, int64_t now_ns, struct bh_fast *ret);
/* The kept results alone. false: nothing is feasible. */
bool bh_fast_indexed(const struct bh_engine *e, struct bh_shape_cache *sc, struct bh_fast *ret);

/* ---- fast/kept.c ---- */
void bh_kept_init(struct bh_engine *e, struct bh_shape_cache *sc); /* index and norm, of no rows */
void bh_kept_fini(struct bh_shape_cache *sc);
size_t bh_kept_bytes(const struct bh_shape_cache *sc);
/* Something of sc has become larger or smaller. */
static inline void bh_kept_count(struct bh_engine *e, struct bh_shape_cache *sc, size_t now,
                                 size_t before)
{
    sc->bytes += now - before;
    e->cache_bytes += now - before;
}
/* Of a feasible row: the scores that need no extremes, weighted and added up. */
int64_t bh_kept_base(const struct bh_shape_cache *sc, uint32_t row);
static inline int64_t bh_kept_raw(const struct bh_normalized_score *nm, uint32_t row)
{
    return bh_packed_get(&nm->raw, row);
}
/* Rows change in three steps: whatever a row was is forgotten; raw scores are put in their places,
 * and floor; then those that are feasible get their totals, and n_feasible is right. The caller
 * makes the index right: true: of any row, else of those that left and those that entered. */
int64_t bh_kept_leave(struct bh_shape_cache *sc, uint32_t row); /* its total until now */
/* What is known of the row is wanted soon; with many shapes and rows it is in no cache. */
static inline void bh_kept_prefetch(const struct bh_shape_cache *sc, uint32_t row)
{
    __builtin_prefetch((const char *)sc->index.total.v + (size_t)row * sc->index.total.width, 1);
    __builtin_prefetch((const char *)sc->floor.v + (size_t)row * sc->floor.width);
}
bool bh_kept_settle(struct bh_shape_cache *sc, const uint32_t *rows, const int64_t *base,
                    uint32_t n);

/* ---- fast/track.c ---- */
/* Trackers for these plugins (bits), each made anew when it is not current. false: some plugin has
 * none for this shape. */
bool bh_track_ensure(struct bh_engine *e, struct bh_shape_cache *sc, uint64_t plugins);
/* The rows are not what they were; those from n_nodes on but for their pods. */
void bh_track_update(struct bh_shape_cache *sc, const uint32_t *rows, uint32_t n_nodes, uint32_t n);
void bh_track_drop_all(struct bh_shape_cache *sc);
size_t bh_track_bytes(const struct bh_shape_cache *sc);
/* The answer of the kept results and of these plugins together; plugins may be 0. In a placement, of
 * its rows alone. */
bool bh_track_run(struct bh_engine *e, struct bh_shape_cache *sc, uint64_t plugins,
                  struct bh_fast *ret);
/* Rows that the kept results call feasible, ascending. rows: room for one more than there are. */
uint32_t bh_kept_rows(const struct bh_shape_cache *sc, uint32_t n_rows, uint32_t *rows);
/* Its parts, for rows that something else has a say in: those that pass these plugins (the order
 * stays), and the totals of exactly these rows, which are all that are feasible (at least two):
 * extremes are taken over them only. plugins may be 0. */
uint32_t bh_track_filter(struct bh_shape_cache *sc, uint64_t plugins, uint32_t *rows, uint32_t n);
/* What these plugins say of a row that passes all others, in the order of the profile: with the
 * pods nominated to it, then without them. NULL: it passes. */
const struct bh_status *bh_track_why(struct bh_shape_cache *sc, uint64_t plugins, uint32_t row,
                                     int *ret_by);
void bh_track_totals(struct bh_engine *e, struct bh_shape_cache *sc, uint64_t plugins,
                     const uint32_t *rows, uint32_t n, int64_t *total);
/* The same without the scores that need no extremes, added to total; stands_for: see struct
 * bh_track_ops. */
void bh_track_score(struct bh_engine *e, struct bh_shape_cache *sc, uint64_t plugins,
                    const uint32_t *rows, const uint32_t *stands_for, uint32_t n, int64_t *total);

/* ---- fast/cells.c ---- */
void bh_cells_fini(struct bh_cells *x);
size_t bh_cells_bytes(const struct bh_cells *x);
/* The kept results of these rows are not what they were; after the trackers' update. */
void bh_cells_update(struct bh_shape_cache *sc, const struct bh_cache *c, const uint32_t *rows,
                     uint32_t n);
/* Cells for these plugins, made anew when they are not current. false: the rows have to be asked
 * one by one. */
bool bh_cells_ensure(struct bh_shape_cache *sc, const struct bh_cache *c, uint64_t plugins);
bool bh_cells_run(struct bh_engine *e, struct bh_shape_cache *sc, uint64_t plugins,
                  struct bh_fast *ret);
/* As the last run said: -1 = infeasible. */
static inline int64_t bh_cells_total(const struct bh_cells *x, uint32_t row)
{
    const struct bh_cell *c = x->of_row[row] != BH_CELL_NONE ? &x->cell[x->of_row[row]] : NULL;
    return c && c->feasible ? c->score + x->base[row] : -1;
}
/* Row of the k-th best in row order; first: the one of the smallest name. */
uint32_t bh_cells_pick(const struct bh_cells *x, const struct bh_cache *c, bool first, uint32_t k);
#endif
