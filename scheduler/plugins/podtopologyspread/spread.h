/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/podtopologyspread/spread.h - what the plugin's files share
 *
 * pod_topology_spread.c  PreFilter, Filter, AddPod, RemovePod, the descriptor
 * score.c                PreScore, Score, Normalize
 * track.c                the same counts, kept from cycle to cycle
 * constraints.c          which constraints hold for a pod; which nodes and pods they count
 * default_selector.c     the selector of default constraints: services and controllers of a pod
 * args.c                 PodTopologySpreadArgs
 * hints.c                which events may help a rejected pod
 * go_log.c               the logarithm that weighs the topologies
 */
#ifndef BH_SPREAD_H
#define BH_SPREAD_H

#include "scheduler/framework/framework.h"

struct bh_selector_memo;
struct bh_spread_args {
    bool system; /* the built-in defaults; not every topology key is required of a node then */
    uint32_t n;
    const struct bh_spread *v; /* default constraints; their selector is the pod's, see below */
    bh_sym hostname;           /* kubernetes.io/hostname */
    struct bh_selector_memo *memo;
};
/* A constraint in force. */
struct bh_constraint {
    int32_t max_skew, min_domains;
    bh_sym key;
    uint32_t flags;  /* enum bh_spread_flags */
    const void *rec; /* what sel's slices count from */
    const struct bh_label_selector *sel;
};
struct bh_constraints {
    struct bh_constraint *v;
    uint32_t n;
    const char *error; /* some selector does not parse */
};

/* ---- args.c ---- */
extern const struct bh_field bh_spread_schema[];
void bh_spread_args_check(const struct bh_plugin *self, const struct bh_json *args,
                          const char *path, struct bh_field_errors *errs);
int bh_spread_args_new(const struct bh_plugin_env *env, const struct bh_json *args, void **ret,
                       struct bh_err *err);
void bh_spread_args_free(void *args);

/* ---- default_selector.c ---- */
/* A selector and, behind it, everything its slices point at; they count from its own address. */
const struct bh_label_selector *bh_default_selector(struct bh_symtab *tab,
                                                    const struct bh_objects *objects,
                                                    const struct bh_shape_rec *shape,
                                                    struct bh_arena *a, size_t *ret_size);
struct bh_selector_memo *bh_selector_memo_new(void);
void bh_selector_memo_free(struct bh_selector_memo *m);
/* The same for the pod of the call, remembered by shape until a service or controller changes.
 * Valid until the next call, also one for another pod. */
const struct bh_label_selector *bh_selector_memo_get(struct bh_selector_memo *m, struct bh_call *c,
                                                     size_t *ret_size);

/* ---- constraints.c ---- */
/* Those of the pod's own (or, if it has none at all, of the defaults) with the action,
 * BH_SPREAD_HARD or BH_SPREAD_SOFT. Errors begin with "<verb> ...": "obtaining pod's hard topology
 * ...". */
struct bh_constraints bh_spread_constraints(struct bh_call *c, uint32_t action);
/* Outside a cycle; selector: of the defaults, NULL = there are none. */
struct bh_constraints bh_spread_constraints_with(const struct bh_spread_args *args,
                                                 const struct bh_shape_rec *shape, uint32_t action,
                                                 const struct bh_label_selector *selector,
                                                 const struct bh_symtab *tab, struct bh_arena *a);
bool bh_constraint_matches(const struct bh_constraint *k, const struct bh_shape_rec *pod,
                           const struct bh_symtab *tab);
/* The node has every topology key. */
bool bh_has_all_keys(const struct bh_node_rec *n, const struct bh_constraints *k);
static inline bool bh_topology_value(const struct bh_node_rec *n, bh_sym key, bh_sym *ret)
{
    *ret = BH_SYM_NONE;
    return bh_labels_get(bh_rec_at(n, n->labels, struct bh_kv), n->labels.n, key, ret);
}
/* What nodeAffinityPolicy and nodeTaintsPolicy ask of a node: bits of BH_SPREAD_HONOR_*. A
 * constraint counts the node if all bits that it honors are set. */
uint32_t bh_node_inclusion(const struct bh_call *c, const struct bh_node_rec *n);
static inline bool bh_counts_node(const struct bh_constraint *k, uint32_t inclusion)
{
    const uint32_t honored = k->flags & (BH_SPREAD_HONOR_AFFINITY | BH_SPREAD_HONOR_TAINTS);
    return (inclusion & honored) == honored;
}
/* Counting pods on nodes for one constraint; every shape is matched once. */
struct bh_pod_counter {
    struct bh_call *c;
    const struct bh_constraint *k;
    uint8_t *memo; /* by shape id: 0 not looked at, 1 no, 2 yes */
};
void bh_pod_counter_init(struct bh_pod_counter *p, struct bh_call *c);
void bh_pod_counter_begin(struct bh_pod_counter *p, const struct bh_constraint *k);
int64_t bh_count_pods(struct bh_pod_counter *p, const struct bh_node_info *ni);

/* ---- score.c, track.c, hints.c, go_log.c ---- */
const struct bh_status *bh_spread_pre_score(struct bh_call *c, const uint32_t *rows, uint32_t n);
const struct bh_status *bh_spread_score(struct bh_call *c, const struct bh_node_info *node,
                                        int64_t *ret);
void bh_spread_normalize(struct bh_call *c, int64_t *scores, uint32_t n);
extern const struct bh_event_reg bh_spread_events[];
extern const struct bh_track_ops bh_spread_track;
/* Why a node is not feasible. */
extern const struct bh_status bh_spread_no_label, bh_spread_too_skewed;
/* ln(x) for x > 0, normal, as Go computes it on amd64: in some cases one unit in the last place
 * away from the C library's, which can move a score. */
double bh_go_log(double x);
#endif
