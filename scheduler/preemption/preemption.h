/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/preemption/preemption.h - making room: which pods to evict where, so that a pod fits
 *
 * Runs in:  the engine's thread.
 * Upstream: pkg/scheduler/framework/preemption, plugins/defaultpreemption; differences: none.
 */
#ifndef BH_PREEMPTION_H
#define BH_PREEMPTION_H

#include "scheduler/framework/framework.h"

struct bh_preemption_args {
    int64_t min_candidates_percentage, min_candidates_absolute;
    bool by_group;   /* a pod of a group has no preemption of its own */
    bool placements; /* gate TopologyAwareWorkloadScheduling */
};
/* The whole of DefaultPreemption's PostFilter but its message prefix: eligibility, dry runs,
 * selection. Evicting the victims and clearing lower nominations is the caller's work. */
const struct bh_status *bh_preempt(struct bh_call *c, const struct bh_preemption_args *args,
                                   const struct bh_diagnosis *d, struct bh_post_filter_result *ret);

/* ---- by rules of one's own (a plugin's): who may be evicted, and when that is enough ------------ */

enum bh_victims_when {
    BH_VICTIMS_NONE,     /* nobody may be evicted from the node */
    BH_VICTIMS_OFF,      /* all of them are off it, and the pod fits */
    BH_VICTIMS_FIT,      /* the last one that was put back: the pod fits still */
    BH_VICTIMS_NO_LONGER /* it does not: that one is off the node again */
};
struct bh_victim_rules {
    void *arg;
    bool
        ascending; /* may_evict() is asked about the least important pods first, else as they stand */
    /* Of terminating pods on the node that the pod is nominated to: is their room what it waits for? */
    bool (*waits_for)(void *arg, const struct bh_pod_info *pod);
    void (*begin)(void *arg,
                  const struct bh_node_info *node); /* a dry run: everything is on the nodes */
    /* Asked of each pod when those before it, for which it was true, are off the node. */
    bool (*may_evict)(void *arg, const struct bh_pod_info *pod);
    void (*moved)(void *arg, const struct bh_pod_info *pod,
                  int by); /* back on the node, or off (-1) */
    /* NONE, OFF: why the node is no candidate; NULL: it may be (NONE: what DefaultPreemption says).
     * FIT: not NULL, the pod that was put back has to go all the same. Error: so much for this node. */
    const struct bh_status *(*check)(void *arg, const struct bh_node_info *node,
                                     enum bh_victims_when when, struct bh_arena *a);
};
const struct bh_status *bh_preempt_by(struct bh_call *c, const struct bh_preemption_args *args,
                                      const struct bh_victim_rules *rules,
                                      const struct bh_diagnosis *d,
                                      struct bh_post_filter_result *ret);

/* ---- room for a group (group.c) -----------------------------------------------------------------
 * Candidates are all pods of lower priority on all nodes, those of a group that is disrupted as a whole
 * together. All are taken off their nodes, and put back as long as the group still fits.
 */
struct bh_group_preemption {
    struct bh_cache *cache;
    const struct bh_objects *objects;
    const struct bh_symtab *tab;
    struct bh_arena *arena; /* of the result */
    int64_t now_ns;
    int32_t priority; /* of the group that wants room */
    /* Has the group room, with the nodes as they are? pods: those that were put back since it had, and
     * are taken off again if it has not; n 0: at the first time, with all of them off. */
    bool (*fits)(void *arg, struct bh_pod_info *const *pods, uint32_t n);
    void (*done)(
        void *arg); /* after a success, with the victims off: what it left on the nodes goes */
    void *arg;
};
/* true: the victims, maybe none, most important first; pods that terminate anyway are none. false: nobody could be evicted (*ret_any
 * false), or all of them would not do. The nodes are as before. */
bool bh_preempt_for_group(const struct bh_group_preemption *g, struct bh_victim **ret_victims,
                          uint32_t *ret_n, bool *ret_any);

/* ---- what was found out before (kept.c) --------------------------------------------------------
 * For one shape, by row: what a dry run finds depends on the node, its pods and the budgets only.
 * The owner says which rows changed. Choices are the same as without.
 */
struct bh_dry_runs;
struct bh_dry_runs *bh_dry_runs_new(uint32_t n_rows);
void bh_dry_runs_free(struct bh_dry_runs *d); /* NULL is allowed */
size_t bh_dry_runs_bytes(const struct bh_dry_runs *d);
void bh_dry_runs_forget(struct bh_dry_runs *d, uint32_t row);

/* ---- private to the folder ---- */
/* One disruption budget, prepared for one attempt. */
struct bh_budget {
    const char *ns;
    const struct K8s__PodDisruptionBudget *pdb;
    int32_t allowed;
};
struct bh_budgets {
    struct bh_budget *v;
    uint32_t n;
};
void bh_budgets_list(struct bh_budgets *out, const struct bh_objects *o, struct bh_arena *a);
/* The disruptions that each allows, to be counted down, in the arena. */
int64_t *bh_budgets_left(const struct bh_budgets *b, struct bh_arena *a);
/* One pod more is disrupted: does that break one? */
bool bh_budgets_pay(const struct bh_budgets *b, int64_t *left, const struct bh_symtab *tab,
                    const struct bh_pod_info *pod);
/* Which of the pods (most important first) break a budget; every budget that covers a pod pays for
 * it, in order. */
void bh_budgets_split(const struct bh_budgets *b, struct bh_arena *a, const struct bh_symtab *tab,
                      struct bh_pod_info *const *pods, uint32_t n, bool *ret_violating);

struct bh_candidate {
    uint32_t row;
    bool mixed; /* of its lower pods some have started, others not: the time has a say */
    struct bh_pod_info **victims; /* most important first */
    uint32_t n_victims;
    int64_t violating; /* a number of pods; an extender may say what it likes */
};
/* One pod's preemption. */
struct bh_attempt {
    struct bh_call *c;
    struct bh_cycle *cy;
    struct bh_cycle *sketcher; /* a copy for sketches of nodes; NULL: whole copies are needed */
    const struct bh_victim_rules *rules; /* NULL: all pods of lower priority */
    struct bh_budgets budgets;
    const struct bh_status **status; /* by row: why the dry run failed */
    struct bh_field_errors errors;   /* internal ones, each text once */
};
extern const struct bh_status bh_no_victims, bh_preemption_not_helpful;
/* NULL: out has the victims, in the scratch arena, and how many violate a budget. Else why the node
 * is none, in the scratch arena. */
const struct bh_status *bh_dry_run(struct bh_attempt *at, const struct bh_node_info *node,
                                   struct bh_candidate *out);
/* The result for the best of these candidates; the others that are as good are described when
 * it is asked for. */
void bh_preemption_fill(struct bh_call *c, const struct bh_candidate *cand, uint32_t n,
                        struct bh_post_filter_result *ret);
/* Candidates and choice from what is kept; potential nodes are visited from the one number offset
 * on until `want` are found. false: something went wrong, do it without. */
bool bh_preempt_kept(struct bh_attempt *at, const struct bh_diagnosis *d, uint32_t want,
                     uint32_t offset, const struct bh_status **ret_status,
                     struct bh_post_filter_result *ret);
/* Asks the extenders that have a say in preemption; what is left of the candidates, by node name.
 * NULL, or the failure of one that is not ignorable. */
const struct bh_status *bh_extend_candidates(struct bh_call *c, struct bh_candidate **cand,
                                             uint32_t *n);
/* Is a better (< 0), equal or worse than b for the cluster? */
int bh_compare_candidates(const struct bh_candidate *a, const struct bh_candidate *b,
                          int64_t now_ns);
/* 0 <= index < n, n > 0. */
uint32_t bh_pick_candidate(const struct bh_candidate *v, uint32_t n, int64_t now_ns);
struct bh_victim bh_describe_victim(struct bh_arena *a, const struct bh_pod_info *pod);
int64_t bh_pod_start_ns(const struct bh_pod_info *p, int64_t now_ns);
#endif
