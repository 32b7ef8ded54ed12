/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine_int.h - what the engine's files share
 *
 * engine.c            the API
 * engine_reference.c  one cycle, node by node, as upstream: the meaning
 * engine_decision.c   from a reference cycle to a decision, with all texts and lists
 * engine_fast.c       the same answer from columns and per-shape results
 * engine_track.c      ... with what the other nodes' pods mean for the shape
 * engine_index.c      the best node of one shape, kept current row by row
 * engine_verify.c     both, compared
 * engine_prebind.c    what Reserve took: writes, their outcome, undoing
 * engine_extender.c   what HTTP extenders change in a cycle
 * engine_observe.c    how long it took, for an observer
 */
#ifndef BH_ENGINE_INT_H
#define BH_ENGINE_INT_H

#include "common/base/map.h"
#include "scheduler/engine.h"
#include "scheduler/framework/framework.h"

/* ---- reference path
 * ------------------------------------------------------------------------------ */

struct bh_reference { /* one cycle; everything in the cycle arena */
    struct bh_cycle cy;
    struct bh_pre_filter_result pf;
    const struct bh_status *error;   /* the cycle failed */
    const struct bh_status **by_row; /* explicit statuses */
    const struct bh_status *absent;
    uint64_t rejectors, pending; /* plugins by bit */
    uint32_t n_rows;
    uint32_t *feasible, n_feasible; /* rows, in order of visit */
    uint32_t evaluated;
    bool scored;
    int64_t *total, *raw, *weighted; /* see bh_run_score; by index into feasible */
    uint32_t *best, n_best;          /* rows with the highest total, in order of visit */
    /* ---- extenders ---- */
    bool extended;                     /* some filter or prioritise for this pod */
    bool ext_removed;                  /* they left nodes out */
    const struct bh_json **ext_object; /* by row: an extender's copy of a node; NULL = no copies */
    const bool *ext_listed;            /* by row: scored by one; NULL = all nodes are alike */
    struct bh_extender_score *ext_scores; /* with BH_EXPLAIN */
    uint32_t n_ext_scores;
};
struct bh_extender_score {
    const char *name;
    int64_t weight;
    int64_t *weighted; /* by index into feasible */
};

/* ---- fast path
 * ----------------------------------------------------------------------------------- */

/* The best of one shape: a tournament tree over rows. Leaves hold totals, -1 = infeasible. aux of
 * an inner node: how many leaves have its best total (seeded choice), or the row of the smallest
 * name among them (first choice). */
struct bh_index {
    int64_t *best; /* 2 * cap entries, root at 1 */
    uint32_t *aux;
    uint32_t cap; /* leaves, power of two */
    bool first;   /* aux holds rows */
};
struct bh_engine;
size_t bh_index_bytes(uint32_t rows);
void bh_index_init(struct bh_index *x, uint32_t rows, bool first);
void bh_index_fini(struct bh_index *x);
static inline int64_t bh_index_total(const struct bh_index *x, uint32_t row)
{
    return x->best[x->cap + row];
}
/* Only the leaf; bh_index_rebuild or bh_index_raise makes the tree right again. */
void bh_index_set_leaf(struct bh_index *x, uint32_t row, int64_t total);
void bh_index_raise(struct bh_index *x, const struct bh_cache *c, uint32_t row);
void bh_index_rebuild(struct bh_index *x, const struct bh_cache *c);
uint32_t bh_index_count(const struct bh_index *x);            /* of the best; first choice: 1 */
uint32_t bh_index_pick(const struct bh_index *x, uint32_t k); /* row of the k-th best */

/* A Score plugin whose score depends on the extremes over all feasible nodes. */
struct bh_normalized_score {
    uint8_t plugin;
    enum bh_normal how;
    int64_t weight;
    int64_t max;    /* at least 0 */
    uint32_t n_max; /* feasible rows at max; only kept while max > 0 */
    int64_t *raw;   /* by row */
};
#define BH_NORMALIZED_MAX 8u
/* What a plugin that is not node local keeps for one shape, see struct bh_track_ops. */
struct bh_tracker {
    uint8_t plugin;
    void *t; /* counts everything before the cache's log_pos */
};
#define BH_TRACKERS_MAX   4u
#define BH_EPOCHS_MAX     16u

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
    int64_t *base; /* by row: weighted scores that need no extremes */
    struct bh_normalized_score norm[BH_NORMALIZED_MAX];
    uint32_t n_norm;
    struct bh_tracker tracker[BH_TRACKERS_MAX];
    uint32_t n_trackers;
    uint32_t n_feasible;
    size_t bytes;
};
struct bh_shape_slot {
    struct bh_shape_cache *cache;
    uint64_t seen; /* born of the shape last seen here */
};
struct bh_profile {
    struct bh_framework *fw;
    bh_sym name;
    bool fast;                  /* every plugin is node local, idle at times, or keeps track */
    uint64_t tracked;           /* plugins that keep track */
    struct bh_shape_slot *slot; /* by shape id */
    uint32_t n_slots;
    uint64_t cycles, hinted; /* decisions; those that came from kept results */
    uint64_t quiet_reserve, quiet_permit, quiet_fast, quiet_fast_ns[3];
};

/* What a fast cycle found. */
struct bh_fast {
    uint32_t n_feasible, evaluated;
    uint32_t n_best;
    const struct bh_index *index; /* cached; else: */
    const uint32_t *rows;         /* the feasible ones, in row order */
    const int64_t *totals;        /* by index into rows; NULL when one is feasible */
};

/* When the phases of the cycle under way began, see framework/observe.h. */
enum bh_watch_phase {
    BH_WATCH_START,
    BH_WATCH_FILTER,
    BH_WATCH_SCORE,
    BH_WATCH_END,
    BH_WATCH_PHASES
};
struct bh_watch {
    bool on;
    bool split;                  /* the cycle's phases are timed one by one */
    uint32_t pre_filter, filter; /* their 1024ths of the last cycle that was split */
    uint32_t samples;            /* for the cycle's plugin calls */
    uint64_t at[BH_WATCH_PHASES];
};

struct bh_engine {
    struct bh_engine_options opt;
    struct bh_sched_config *own_config;
    struct bh_symtab *tab;
    struct bh_cache cache;
    struct bh_objects objects;
    struct bh_reservations reserved;
    struct bh_waiting_pods waiting; /* at Permit */
    struct bh_profile *profile;
    uint32_t n_profiles;
    struct bh_arena arena;   /* cycle */
    struct bh_arena scratch; /* dry runs */
    struct bh_arena aside;   /* PreEnqueue, Reserve ...: the last status handed out */
    struct bh_rand rand;
    struct bh_decision decision;
    struct bh_engine_stats stats;
    struct bh_watch watch;
    uint32_t next_start; /* sampling */

    struct bh_ext *ext;          /* NULL: no extenders */
    uint64_t ext_deciding;       /* those that filter or prioritise */
    struct bh_map ext_strangers; /* name -> struct bh_status *: failed "nodes" that are none */
    uint32_t ext_symbols;        /* texts that came from extenders */
    bool raw_changed, raw_complete;
    uint64_t raw_membership;

    struct bh_shape_cache *newest, *oldest;
    size_t cache_bytes, cache_bytes_max;
    uint32_t n_scratch_rows; /* room in the arrays below */
    uint32_t *rows, *rows2, *rows3, *stamp;
    uint32_t stamp_now;
    int64_t *values, *values2;
};

#define BH_WITHOUT_EXTENDERS (1u << 16) /* a flag more: they are not asked */
/* Runs one cycle up to the best nodes. flags: enum bh_schedule_flags. */
void bh_reference_run(struct bh_engine *e, struct bh_profile *p, const struct bh_pod_info *pod,
                      unsigned flags, int64_t now_ns, struct bh_reference *ret);
/* PostFilter, texts, lists. chosen: row, or BH_ROW_NONE. */
const struct bh_decision *bh_decide(struct bh_engine *e, struct bh_reference *r, uint32_t chosen,
                                    unsigned flags);

enum bh_fast_mode {
    BH_FAST_AUTO, /* keep results from the second time on */
    BH_FAST_ONCE, /* evaluate and forget */
    BH_FAST_KEEP  /* keep at once */
};
/* false: this pod needs the reference path. */
bool bh_fast_run(struct bh_engine *e, struct bh_profile *p, const struct bh_pod_info *pod,
                 enum bh_fast_mode mode, int64_t now_ns, struct bh_fast *ret);
uint32_t bh_fast_best(const int64_t *totals, uint32_t n); /* how many have the highest; n > 0 */
uint32_t bh_fast_pick(const struct bh_engine *e, const struct bh_fast *f, uint32_t k);
bool bh_fast_eligible(const struct bh_framework *fw);
void bh_fast_drop_all(struct bh_engine *e);

/* ---- engine_track.c ---- */
/* Trackers for these plugins (bits), each made anew when it is not current. false: some plugin has
 * none for this shape. */
bool bh_track_ensure(struct bh_engine *e, struct bh_shape_cache *sc, uint64_t plugins);
/* The rows are not what they were. */
void bh_track_update(struct bh_shape_cache *sc, const uint32_t *rows, uint32_t n);
void bh_track_drop_all(struct bh_shape_cache *sc);
/* The answer of the kept results and of these plugins together. */
bool bh_track_run(struct bh_engine *e, struct bh_shape_cache *sc, uint64_t plugins,
                  struct bh_fast *ret);

/* Runs the fast path in both of its forms and aborts with a dump when one differs from r. Also
 * brings the kept results of another shape up to date and compares them with a fresh evaluation. */
void bh_verify(struct bh_engine *e, struct bh_profile *p, const struct bh_pod_info *pod,
               const struct bh_reference *r, int64_t now_ns);
/* A cycle for what comes after the decision. false: no profile is responsible. */
bool bh_aside_cycle(struct bh_engine *e, const struct bh_pending *p, struct bh_pod_info *pod,
                    struct bh_cycle *cy);
#define BH_EXTENDER_PLUGIN "Extender" /* upstream's pseudo plugin */
int bh_extenders_start(struct bh_engine *e, struct bh_err *err);
bool bh_extenders_wake(const struct bh_cluster_event *ev); /* pods that an extender rejected */
bool bh_extended(const struct bh_engine *e, const struct bh_pod_info *pod); /* reference path */
void bh_extend_begin(struct bh_engine *e, const struct bh_pod_info *pod, struct bh_reference *r);
void bh_extend_filter(struct bh_engine *e, struct bh_reference *r); /* changes r->feasible */
/* The promised node is feasible so far. false: not for the extenders; nothing is feasible now. */
bool bh_extend_nominated(struct bh_engine *e, struct bh_reference *r);
void bh_extend_scores(struct bh_engine *e, struct bh_reference *r, unsigned flags);
void bh_extend_best(struct bh_reference *r);
uint32_t bh_extend_explain(const struct bh_reference *r, uint32_t at, struct bh_plugin_score *ret);
const char *bh_extend_rejector(const struct bh_reference *r); /* pseudo plugin, or NULL */
/* r->by_row, and behind it the statuses of names that are no nodes. */
const struct bh_status *const *bh_extend_statuses(struct bh_engine *e, const struct bh_reference *r,
                                                  uint32_t *ret_n);
/* ---- observer (engine_observe.c) ---------------------------------------------------------------
 */
/* Of a fast cycle: n nodes have changed and are looked at. See observe.h. */
static inline void bh_watch_rows(struct bh_engine *e, uint32_t n)
{
    e->watch.split |= e->watch.on && n > BH_SPLIT_ROWS;
}
static inline void bh_watch_phase(struct bh_engine *e, enum bh_watch_phase p)
{
    if (e->watch.split)
        e->watch.at[p] = e->opt.observer->now_ns();
}
static inline void bh_watch_mark(struct bh_engine *e, enum bh_watch_phase p)
{
    if (e->watch.on)
        e->watch.at[p] = e->opt.observer->now_ns();
}
/* A person's question is no scheduling. */
static inline bool bh_counts(unsigned flags)
{
    return !(flags & BH_EXPLAIN) || flags & BH_RECORD;
}
void bh_watch_begin(struct bh_engine *e, unsigned flags);
void bh_watch_end(struct bh_engine *e);
/* A decision of the fast path: all three phases. */
void bh_watch_fast(struct bh_engine *e, const struct bh_framework *fw);
/* Now, 0 when nobody watches the cycle. */
uint64_t bh_watch_now(const struct bh_engine *e);
/* A point that began at *since and ends now; the next one begins. */
void bh_watch_point(struct bh_engine *e, const struct bh_framework *fw, enum bh_seen_point at,
                    enum bh_code code, uint64_t *since);
/* The same after the decision: without plugins at the point nobody looks at the clock. */
uint64_t bh_aside_watch(const struct bh_engine *e, const struct bh_framework *fw, enum bh_point pt);
void bh_aside_point(struct bh_engine *e, const struct bh_framework *fw, enum bh_seen_point at,
                    enum bh_code code, uint64_t since);
/* Draws once per cycle with more than one best. */
uint32_t bh_draw(struct bh_engine *e, uint32_t n_best);
#endif
