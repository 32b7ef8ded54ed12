/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine/state.h - the engine's state, and what its two paths do with it
 *
 * reference.c  one cycle, node by node, as upstream: the meaning
 * decision.c   from a reference cycle to a decision, with all texts and lists
 * fast/        the same answer from columns and per-shape results (fast/fast.h)
 * verify.c     both, compared
 * extender.c   what HTTP extenders change in a cycle
 * observe.c    how long it took, for an observer
 * group_victims.c  whom to evict for a group
 * engine.c, group.c, placement.c, objects.c, prebind.c, lookup.c   the calls of engine.h
 *
 * Private to scheduler/engine and scheduler/engine/fast. This header knows nothing of how the fast
 * path keeps its results: of them it holds the pointers only.
 */
#ifndef BH_ENGINE_STATE_H
#define BH_ENGINE_STATE_H

#include "common/base/map.h"
#include "scheduler/engine/engine.h"
#include "scheduler/framework/asks.h"
#include "scheduler/framework/framework.h"

/* ---- reference path -------------------------------------------------------------------------- */

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
    /* ---- fast path, when nothing fits ---- */
    const char *fit_message;              /* made already; NULL: from the statuses */
    const struct bh_kept_diagnosis *kept; /* for PostFilter; NULL = the statuses only */
};
struct bh_extender_score {
    const char *name;
    int64_t weight;
    int64_t *weighted; /* by index into feasible */
};

/* ---- state ----------------------------------------------------------------------------------- */
struct bh_shape_cache; /* fast/fast.h */
struct bh_shape_slot;
struct bh_profile {
    struct bh_framework *fw;
    bh_sym name;
    bool fast;                  /* every plugin is node local, idle at times, or keeps track */
    uint64_t tracked;           /* plugins that keep track */
    uint64_t overlay;           /* plugins that look at the pod's own volumes and claims */
    struct bh_shape_slot *slot; /* by shape id */
    uint32_t n_slots;
    uint64_t cycles, hinted; /* decisions; those that came from kept results */
    uint64_t quiet_reserve, quiet_permit, quiet_fast, quiet_fast_ns[3];
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
    struct bh_plugin_asks asks;
    /* As a caller told it last: of callbacks that are part of no decision, and of the fast path, whose
     * kept results ask epoch() at that moment. */
    int64_t now_ns;
    struct bh_profile *profile;
    uint32_t n_profiles;
    struct bh_arena arena;       /* cycle */
    struct bh_arena scratch;     /* dry runs */
    struct bh_arena aside;       /* PreEnqueue, Reserve ...: the last status handed out */
    struct bh_arena group_arena; /* results of a group's members */
    bool in_group;               /* the cycle's arena is the group's to reset */
    uint32_t group_tried;        /* members, or what else takes as long, of this group */
    bool group_given_up;         /* options.waiting said so */
    bool placements;             /* gate TopologyAwareWorkloadScheduling */
    const uint64_t *within;      /* bit by row: the only candidates; NULL = every node */
    uint32_t n_within;
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
    int64_t *values, *values2, *values3;
    bool no_cells;     /* BH_FAST_SCAN is under way */
    uint32_t *by_name; /* live rows, for first choices */
    uint64_t by_name_membership;
};

#define BH_WITHOUT_EXTENDERS (1u << 16) /* a flag more: they are not asked */
/* Runs one cycle up to the best nodes. flags: enum bh_schedule_flags. */
void bh_reference_run(struct bh_engine *e, struct bh_profile *p, const struct bh_pod_info *pod,
                      unsigned flags, int64_t now_ns, struct bh_reference *ret);
/* PostFilter, texts, lists. chosen: row, or BH_ROW_NONE. */
const struct bh_decision *bh_decide(struct bh_engine *e, struct bh_reference *r, uint32_t chosen,
                                    unsigned flags);

/* Runs the fast path in both of its forms and aborts with a dump when one differs from r. Also
 * brings the kept results of another shape up to date and compares them with a fresh evaluation. */
void bh_verify(struct bh_engine *e, struct bh_profile *p, const struct bh_pod_info *pod,
               const struct bh_reference *r, int64_t now_ns);
/* bh_decide, and the same from kept results if they know why nothing fits, compared. */
const struct bh_decision *bh_verify_decide(struct bh_engine *e, struct bh_profile *p,
                                           const struct bh_pod_info *pod, struct bh_reference *r,
                                           uint32_t chosen, unsigned flags, int64_t now_ns);
/* Of a group: all members on top of each other; those that stay are assumed. */
void bh_group_try_all(struct bh_engine *e, struct bh_group_try *v, uint32_t n, unsigned flags,
                      int64_t now_ns, struct bh_group_result *ret);
/* A group may have any number of members, placements and candidates: now and then the owner is asked, who
 * has to live meanwhile. false: it gives up, and what is found from then on is not true. */
bool bh_group_goes_on(struct bh_engine *e);
/* It does not fit: whom to evict, as far as that helps. */
void bh_group_preempt(struct bh_engine *e, struct bh_group_try *v, uint32_t n, int64_t now_ns,
                      struct bh_group_result *ret);
/* Is the pod, which is on no node, welcome in this row? */
bool bh_reference_fits(struct bh_engine *e, const struct bh_pending *p, uint32_t row,
                       int64_t now_ns);
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
/* ---- placements (placement.c) ---------------------------------------------------------------- */
/* A group's members may be on some of the nodes only: the others are no candidates. What plugins see
 * of the cluster (spread, affinity) is all of it. */
static inline uint32_t bh_candidates(const struct bh_engine *e)
{
    return e->within ? e->n_within : e->cache.n_nodes;
}
static inline bool bh_is_within(const struct bh_engine *e, uint32_t row)
{
    return !e->within || (e->within[row >> 6] >> (row & 63) & 1);
}
static inline uint32_t bh_keep_within(const struct bh_engine *e, uint32_t *rows, uint32_t n)
{
    uint32_t m = 0;

    if (!e->within)
        return n;
    for (uint32_t i = 0; i < n; i++)
        if (bh_is_within(e, rows[i]))
            rows[m++] = rows[i];
    return m;
}
/* The placement algorithm around bh_group_run. false: no profile is responsible. */
bool bh_group_place(struct bh_engine *e, struct bh_group_try *v, uint32_t n, unsigned flags,
                    int64_t now_ns, struct bh_group_result *ret);
/* The default algorithm; whoever has room is left assumed (group.c). */
void bh_group_run(struct bh_engine *e, struct bh_group_try *v, uint32_t n, unsigned flags,
                  int64_t now_ns, struct bh_group_result *ret);
/* All of them, or only those that have to preempt. */
void bh_group_take_back(struct bh_engine *e, struct bh_group_try *v, uint32_t n, bool all);
/* Assume, Reserve and Permit on m->node. */
void bh_group_lay(struct bh_engine *e, struct bh_group_try *m);
/* objects.c: bits of what another status of the claim means; old NULL: 0. */
uint32_t bh_claim_changes(const K8s__ResourceClaim *old, const K8s__ResourceClaim *neu);
/* ---- observer (observe.c) -------------------------------------------------------------------- */
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
/* Now, 0 when the cycle is not observed. */
uint64_t bh_watch_now(const struct bh_engine *e);
/* A point that began at *since and ends now; the next one begins. */
void bh_watch_point(struct bh_engine *e, const struct bh_framework *fw, enum bh_seen_point at,
                    enum bh_code code, uint64_t *since);
/* The same after the decision: without plugins at the point the clock is not read. */
uint64_t bh_aside_watch(const struct bh_engine *e, const struct bh_framework *fw, enum bh_point pt);
void bh_aside_point(struct bh_engine *e, const struct bh_framework *fw, enum bh_seen_point at,
                    enum bh_code code, uint64_t since);
#endif
