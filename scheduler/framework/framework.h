/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/framework/framework.h - one profile's plugins, and running them with upstream's rules
 *
 * The rules in one place: what may be returned, which codes stop a run, what an error is called.
 *
 *   point      | passes            | stops                                  | anything else
 *   PreEnqueue | Success           | every other code gates the pod         | -
 *   PreFilter  | Success, Skip     | U&U at once; Unschedulable is kept     | "running PreFilter
 * plugin "X": ..." Filter     | Success           | Unschedulable, U&U, Pending            |
 * "running "X" filter plugin: ..." PreScore   | Success, Skip     | - | "running PreScore plugin
 * "X": ..." Score      | Success           | -                                      | "plugin "X"
 * failed with: ..." Reserve    | Success           | Unschedulable, U&U, Pending            |
 * "running Reserve plugin "X": ..." Permit     | Success, Wait     | Unschedulable, U&U, Pending |
 * "running Permit plugin "X": ..."
 *
 * A PreFilter Skip removes the plugin's Filter, AddPod and RemovePod from the cycle; a PreScore
 * Skip its Score and Normalize. PreBind is as Permit, Bind as Reserve, but for its Skip: the next
 * plugin's turn.
 *
 * Runs in:  the engine's thread.
 * Upstream: pkg/scheduler/framework/runtime/framework.go.
 */
#ifndef BH_FRAMEWORK_H
#define BH_FRAMEWORK_H

#include "scheduler/framework/observe.h"
#include "scheduler/framework/plugin.h"
#include "scheduler/framework/status_set.h"

#define BH_FRAMEWORK_PLUGINS_MAX 64u

struct bh_plugin_instance {
    const struct bh_plugin *plugin;
    uint32_t points; /* bh_plugin_points() */
    void *args;
    int32_t weight;                   /* score weight, never 0 when enabled at Score */
    bool no_pre_filter, no_pre_score; /* left out, but not what comes after them */
};
struct bh_framework {
    struct bh_arena arena;
    const struct bh_profile_config *config;
    struct bh_waiting_pods *waiting;    /* borrowed; NULL: no plugin lets pods wait */
    struct bh_plugin_instance *plugins; /* every plugin enabled anywhere, in order of appearance */
    uint32_t n_plugins;
    uint8_t *point[BH_POINT_COUNT]; /* indices into plugins, in order of execution */
    uint32_t n_point[BH_POINT_COUNT];
    bool sampling;      /* an explicit percentage of nodes is configured */
    bool extended;      /* some extender filters or prioritises */
    int32_t percentage; /* with sampling: 1..100 */
    uint32_t profile;   /* index in the configuration */
    uint64_t extending; /* plugins at PreFilter that have change_pod; bit i: plugin i */
    uint64_t looking;   /* plugins at Filter without BH_PLUGIN_READS_SUMS */
    uint64_t epochs; /* plugins at Filter or Score whose epoch is asked: PreFilter is not theirs */
    bool pre_binds;  /* some plugin at PreBind is there for pods without claims, too */
    const struct bh_engine_observer *observer; /* NULL: nothing is timed */
    uint64_t kinds;                            /* that its plugins read, see struct bh_plugin */
    struct bh_evaluations *evaluations; /* by plugin; not part of what a cycle may not change */
    uint64_t *soon_ns;                  /* by plugin: what score_soon took; NULL: soon is 0 */
    uint64_t soon;                      /* plugins at Score with score_soon; bit i: plugin i */
    uint64_t idlers, dated;             /* plugins with idle, with epoch; bit i: plugin i */
};
/* Each plugin that the profile runs at a point, in order: i is its index. */
#define bh_each_plugin(i, fw, pt)                                                                  \
    for (uint32_t i##_at = 0, i; i##_at < (fw)->n_point[pt] && (i = (fw)->point[pt][i##_at], 1);   \
         i##_at++)
/* config is borrowed. 0 or -EINVAL with upstream's text (without the "initializing profiles:"
 * part). */
int bh_framework_new(const struct bh_profile_config *config, int32_t default_percentage,
                     const struct bh_plugin_env *env, struct bh_framework **ret,
                     struct bh_err *err);
/* Lists of two records, of elements of a size. */
bool bh_slice_differs(const void *a, struct bh_slice sa, const void *b, struct bh_slice sb,
                      size_t size);
/* Does the profile run the plugin at the point? */
bool bh_framework_runs(const struct bh_framework *fw, enum bh_point pt, uint32_t plugin);
void bh_framework_free(struct bh_framework *fw);

/* One pod's way through the points. calls[i] belongs to fw->plugins[i]. */
struct bh_cycle {
    const struct bh_framework *fw;
    struct bh_arena *arena;
    struct bh_call *calls;
    uint64_t skip_filter, skip_score; /* bit i: plugin i skipped */
    uint64_t left_out; /* fast path: plugins that are not asked in this cycle, as if they skipped */
    bool filter_failed; /* fast path: a Filter gave an Error, so the cycle ends as the reference
                           path says */
    bool score_failed;  /* fast path: a Score gave an Error, and so on */
    /* Results are for every pod of the shape: no nomination is the pod's own. */
    bool for_shape;
    /* Where pods that come to a node or leave it change nothing but sums for the plugins that take
     * part, a sketch of the node (node_info.h) does instead of a copy. Not in the cycles that the
     * fast path is verified against. */
    bool sketch;
    struct bh_arena *scratch; /* PostFilter's dry runs reset it after each node */
    struct bh_rand *rand;     /* NULL: choices among equals fall on the smallest node name */
    struct bh_ext *ext;       /* extenders; NULL = none */
    uint64_t ext_interested;  /* in the pod; bit i: extender i */
    /* By row: an extender's copy of a node stands for the cluster's when feasible nodes are scored.
     * NULL = no copies. */
    const struct bh_node_info **replaced;
    uint32_t
        samples; /* plugin calls that are still to be timed, see observe.h; 0 without observer */
    struct bh_cycle_notes *notes; /* NULL: what single plugins said is not kept */
};
static inline bool bh_cycle_sketches(const struct bh_cycle *cy)
{
    return cy->sketch && !((cy->fw->extending | cy->fw->looking) & ~cy->skip_filter);
}
struct bh_cycle_notes { /* room for every plugin of the framework */
    struct bh_plugin_note *pre_filter, *pre_score, *post_filter;
    uint32_t n_pre_filter, n_pre_score, n_post_filter;
};
/* Around one call of a plugin's code: 0 when it is not timed. */
static inline uint64_t bh_sample_begin(const struct bh_cycle *cy)
{
    return bh_likely(!cy->samples) ? 0 : cy->fw->observer->now_ns();
}
void bh_sample_report(struct bh_cycle *cy, unsigned plugin, enum bh_seen_point at,
                      enum bh_code code, uint64_t began_ns);
static inline void bh_sample_end(struct bh_cycle *cy, unsigned plugin, enum bh_seen_point at,
                                 enum bh_code code, uint64_t began_ns)
{
    if (began_ns)
        bh_sample_report(cy, plugin, at, code, began_ns);
}
static inline const struct bh_node_info *bh_scored_node(const struct bh_cycle *cy,
                                                        const struct bh_cache *c, uint32_t row)
{
    return cy->replaced && cy->replaced[row] ? cy->replaced[row] : c->rows[row];
}
/* scratch, rand: see above; may be NULL when PostFilter is not going to run. */
void bh_cycle_init(struct bh_cycle *cy, const struct bh_framework *fw, struct bh_cache *cache,
                   const struct bh_objects *objects, const struct bh_pod_info *pod,
                   struct bh_arena *arena, int64_t now_ns);
/* A copy, living in `arena`, whose AddPod/RemovePod states may be changed without touching src. */
void bh_cycle_clone(struct bh_cycle *dst, const struct bh_cycle *src, struct bh_arena *arena);

struct bh_pre_filter_result {
    const struct bh_status *status; /* NULL: go on */
    struct bh_node_set nodes;       /* after narrowing */
    uint64_t narrowed_by;           /* plugins that narrowed */
    int rejected_by;                /* plugin, -1 = none */
};

/* Without a cycle, as Bind: each plugin gets a copy of c with its args. */
const struct bh_status *bh_run_pre_enqueue(const struct bh_framework *fw, const struct bh_call *c);
void bh_run_pre_filter(struct bh_cycle *cy, struct bh_pre_filter_result *ret);
/* "A B", in the order of the names. */
const char *bh_plugin_names(const struct bh_framework *fw, struct bh_arena *a, uint64_t set);
/* ret_plugin: index of the rejecting plugin. */
const struct bh_status *bh_run_filter(struct bh_cycle *cy, const struct bh_node_info *ni,
                                      int *ret_plugin);
/* With the pods nominated to the node counted in (priority at least the pod's, another uid). */
const struct bh_status *bh_run_filter_nominated(struct bh_cycle *cy, const struct bh_node_info *ni,
                                                int *ret_plugin);
/* The first half of it: the filters with these pods; *ret_any: there are some. */
const struct bh_status *bh_run_filter_with(struct bh_cycle *cy, const struct bh_node_info *ni,
                                           int *ret_plugin, bool *ret_any);
/* Is the pod nominated to a node one of these? */
bool bh_nominated_counts(const struct bh_cycle *cy, const struct bh_pod_info *pod,
                         const struct bh_pod_info *nominated);
/* by: 1 = AddPod, -1 = RemovePod. */
const struct bh_status *bh_run_change_pod(struct bh_cycle *cy, const struct bh_pod_info *pod,
                                          const struct bh_node_info *ni, int by);
/* status: what PostFilter as a whole said; its message is upstream's PostFilterMsg. */
const struct bh_status *bh_run_post_filter(struct bh_cycle *cy, const struct bh_diagnosis *d,
                                           struct bh_post_filter_result *ret);
const struct bh_status *bh_run_pre_score(struct bh_cycle *cy, const uint32_t *rows, uint32_t n);
/* Fills ret_total[n]; ret_raw and ret_weighted (may be NULL) hold n scores per Score plugin of the
 * profile, plugin by plugin; skipped plugins are left alone. */
const struct bh_status *bh_run_score(struct bh_cycle *cy, const uint32_t *rows, uint32_t n,
                                     int64_t *ret_total, int64_t *ret_raw, int64_t *ret_weighted);
/* The error when a plugin says what it may not say at the point. */
const struct bh_status *bh_run_failed(struct bh_cycle *cy, const char *point,
                                      const struct bh_plugin *p, const struct bh_status *s);
const struct bh_status *bh_run_reserve(struct bh_cycle *cy, bh_sym node);
void bh_run_unreserve(struct bh_cycle *cy, bh_sym node);
const struct bh_status *bh_run_permit(struct bh_cycle *cy, bh_sym node, int64_t *ret_timeout_ns);
/* Wait as long as some plugin waits; the first failure ends it. */
const struct bh_status *bh_run_pre_bind(struct bh_cycle *cy, bh_sym node, int64_t since_ns);
/* Without a cycle: every pod gets here, and its making costs more than the point. c is filled in for
 * one plugin after the other. Skip: all of them skipped. */
const struct bh_status *bh_run_bind(const struct bh_framework *fw, struct bh_call *c, bh_sym node,
                                    struct bh_bind_order *ret);
void bh_run_post_bind(const struct bh_framework *fw, struct bh_call *c, bh_sym node);

/* ---- helpers --------------------------------------------------------------------------------- */
/* How many feasible nodes end the search; has_score: something scores. */
uint32_t bh_num_to_find(const struct bh_framework *fw, uint32_t n_nodes);
/* DefaultNormalizeScore. */
void bh_default_normalize(int64_t *scores, uint32_t n, bool reverse);
static inline int64_t bh_normalized(enum bh_normal how, int64_t raw, int64_t max)
{
    if (how == BH_NORMAL_NONE)
        return raw;
    if (max <= 0)
        return how == BH_NORMAL_MAX_REVERSE ? 100 : raw;
    int64_t s = 100 * raw / max;
    return how == BH_NORMAL_MAX_REVERSE ? 100 - s : s;
}
/* FitError: n_nodes nodes, explicit statuses by row, the status of all others. */
const char *bh_fit_error(struct bh_arena *a, uint32_t n_nodes,
                         const struct bh_status *const *by_row, uint32_t n_rows,
                         const struct bh_status *absent, const char *pre_filter_message);
/* The same, with statuses counted already: n[i] nodes have set's status i. */
const char *bh_fit_error_counted(struct bh_arena *a, uint32_t n_nodes,
                                 const struct bh_status_set *set, const uint32_t *n,
                                 const struct bh_status *absent);

/* ---- events ---------------------------------------------------------------------------------- */
bool bh_event_matches(const struct bh_event_reg *reg, const struct bh_cluster_event *ev);
/* Registrations of a plugin for ev, the implied ones included; hint is asked when wanted. */
enum bh_hint bh_plugin_hint(const struct bh_plugin *p, const struct bh_hint_call *call);
bool bh_plugin_interested(const struct bh_plugin *p, const struct bh_cluster_event *ev);
#endif
