/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/interpodaffinity/score.c - nodes near liked pods and far from disliked ones
 *
 * Upstream: pkg/scheduler/framework/plugins/interpodaffinity/scoring.go.
 */
#include "scheduler/plugins/interpodaffinity/affinity.h"

/* Score is configured without PreScore. */
BH_STATUS_CONST(no_state, BH_ERROR, "InterPodAffinity",
                "failed to read \"PreScoreInterPodAffinity\" from cycleState: not found");

/* The incoming pod's preferences about an existing one. */
static void push_own(struct bh_ipa_scan *s, struct bh_slice list, int64_t sign,
                     const struct bh_shape_rec *pod)
{
    const struct bh_pod_term *t = bh_rec_at(s->incoming, list, struct bh_pod_term);

    for (uint32_t i = 0; i < list.n; i++)
        if (bh_own_term_matches(s->terms, s->incoming, &t[i], pod))
            bh_ipa_push(s, BH_IPA_LIKES, t[i].topology_key, sign * t[i].weight);
}

/* An existing pod's feelings about the incoming one; weight 0: each term's own. */
static void push_other(struct bh_ipa_scan *s, const struct bh_shape_rec *pod, struct bh_slice list,
                       int64_t sign, int64_t weight)
{
    const struct bh_pod_term *t = bh_rec_at(pod, list, struct bh_pod_term);

    for (uint32_t i = 0; i < list.n; i++)
        if (bh_other_term_matches(s->terms, pod, &t[i], s->incoming))
            bh_ipa_push(s, BH_IPA_LIKES, t[i].topology_key, sign * (weight ? weight : t[i].weight));
}

void bh_ipa_fill_score(struct bh_ipa_scan *s, const struct bh_shape_rec *pod)
{
    push_own(s, s->incoming->preferred_affinity, 1, pod);
    push_own(s, s->incoming->preferred_anti_affinity, -1, pod);
    if (s->args->hard_weight > 0)
        push_other(s, pod, pod->affinity, 1, s->args->hard_weight);
    push_other(s, pod, pod->preferred_affinity, 1, 0);
    push_other(s, pod, pod->preferred_anti_affinity, -1, 0);
}

const struct bh_status *bh_ipa_pre_score(struct bh_call *c, const uint32_t *rows BH_UNUSED,
                                         uint32_t n)
{
    const struct bh_ipa_args *args = c->args;
    const struct bh_shape_rec *shape = c->pod->shape;
    bool own = shape->preferred_affinity.n || shape->preferred_anti_affinity.n;

    if (!n || (!own && (args->ignore_preferred || !c->cache->n_affinity_pods)))
        return &bh_status_skip;
    struct bh_pair_counts *tally =
        bh_arena_new_array(c->arena, struct bh_pair_counts, BH_IPA_LIKES + 1);
    struct bh_pair_counts *score = &tally[BH_IPA_LIKES];
    *score = bh_pair_counts(c->arena);
    struct bh_terms terms;
    bh_terms_init(&terms, c->tab, c->objects, c->arena);
    struct bh_ipa_scan s = {
        .a = c->arena, .incoming = shape, .terms = &terms, .args = args, .fill = bh_ipa_fill_score};
    bh_ipa_scan_nodes(&s, c->cache, own, tally);
    c->pre_score_state = score;
    return score->used ? NULL : &bh_status_skip;
}

const struct bh_status *bh_ipa_score(struct bh_call *c, const struct bh_node_info *node,
                                     int64_t *ret)
{
    const struct bh_pair_counts *score = c->pre_score_state;
    const struct bh_kv *labels = bh_rec_at(node->rec, node->rec->labels, struct bh_kv);

    if (!score)
        return &no_state;
    *ret = 0;
    for (uint32_t i = 0; i < node->rec->labels.n; i++) {
        const int64_t *n = bh_pair_counts_find(score, labels[i].key, labels[i].value);
        *ret += n ? *n : 0;
    }
    return NULL;
}

/* Divide first, then multiply, in doubles: 29 of 100 gives 28. */
void bh_ipa_normalize(struct bh_call *c BH_UNUSED, int64_t *scores, uint32_t n)
{
    int64_t min = INT64_MAX, max = INT64_MIN;

    for (uint32_t i = 0; i < n; i++) {
        min = BH_MIN(min, scores[i]);
        max = BH_MAX(max, scores[i]);
    }
    for (uint32_t i = 0; i < n; i++)
        scores[i] =
            max > min ? (int64_t)(100.0 * ((double)(scores[i] - min) / (double)(max - min))) : 0;
}
