/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/interpodaffinity/affinity.h - what the plugin's files share
 *
 * inter_pod_affinity.c  PreFilter, Filter, AddPod, RemovePod, args, the descriptor
 * score.c               PreScore, Score, Normalize
 * hints.c               which events may help a rejected pod
 * scan.c                existing pods into tallies, each shape looked at once
 * track.c               the same tallies, kept from cycle to cycle
 * terms.c               does a term mean a pod?
 */
#ifndef BH_IPA_AFFINITY_H
#define BH_IPA_AFFINITY_H

#include "scheduler/framework/framework.h"
#include "scheduler/plugins/interpodaffinity/terms.h"

struct bh_ipa_args {
    int64_t hard_weight;   /* hardPodAffinityWeight */
    bool ignore_preferred; /* ignorePreferredTermsOfExistingPods */
};

/* Tallies: what existing pods refuse, what the pod seeks, what it avoids; and PreScore's one. */
enum bh_ipa_map {
    BH_IPA_EXISTING,
    BH_IPA_AFFINITY,
    BH_IPA_ANTI_AFFINITY,
    BH_IPA_FILTER_MAPS,
    BH_IPA_LIKES = BH_IPA_FILTER_MAPS
};
/* What one existing pod adds to the tallies, at its node's value of the key. */
struct bh_ipa_share {
    bh_sym key;
    uint32_t map; /* which tally; in front of a list: how many shares follow */
    int64_t n;
};
struct bh_ipa_scan {
    struct bh_arena *a;
    const struct bh_shape_rec *incoming;
    struct bh_terms *terms;
    const struct bh_ipa_args *args;
    /* Pushes the shares of a pod of this shape. */
    void (*fill)(struct bh_ipa_scan *s, const struct bh_shape_rec *pod);
    uint32_t *memo; /* by shape id: 0 = not looked at, else 1 + index of its list in v; or NULL */
    struct bh_ipa_share *v;
    uint32_t n, cap;
    uint32_t first; /* of the list being filled */
};
void bh_ipa_push(struct bh_ipa_scan *s, uint32_t map, bh_sym key, int64_t n);
/* The shares of a pod; the first entry's map says how many follow. Valid until the next call. */
const struct bh_ipa_share *bh_ipa_shares(struct bh_ipa_scan *s, const struct bh_pod_info *p);
void bh_ipa_fill_filter(struct bh_ipa_scan *s, const struct bh_shape_rec *pod);
void bh_ipa_fill_score(struct bh_ipa_scan *s, const struct bh_shape_rec *pod);
/* Of the first term in a list of the shape that does not parse; NULL: all do. */
const char *bh_ipa_list_error(const struct bh_symtab *tab, const struct bh_shape_rec *s,
                              struct bh_slice list);
/* Terms of the pod that do not parse; NULL: all do. */
const struct bh_status *bh_ipa_parse_error(struct bh_call *c);
/* Adds every pod's shares to the tallies (by map). all: every pod, otherwise those with terms
 * only. */
void bh_ipa_scan_nodes(struct bh_ipa_scan *s, const struct bh_cache *c, bool all,
                       struct bh_pair_counts *tallies);

const struct bh_status *bh_ipa_pre_score(struct bh_call *c, const uint32_t *rows, uint32_t n);
const struct bh_status *bh_ipa_score(struct bh_call *c, const struct bh_node_info *node,
                                     int64_t *ret);
void bh_ipa_normalize(struct bh_call *c, int64_t *scores, uint32_t n);
extern const struct bh_event_reg bh_ipa_events[];
extern const struct bh_track_ops bh_ipa_track;
/* Why a node is not feasible. */
extern const struct bh_status bh_ipa_affinity_rules, bh_ipa_anti_affinity_rules,
    bh_ipa_existing_rules;
#endif
