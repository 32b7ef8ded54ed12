/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/interpodaffinity/terms.h - does an affinity term mean a pod?
 *
 * Upstream matches the incoming pod's own terms and those of existing pods differently: own terms
 * get the namespaces that their selector finds added to the list and are then asked without
 * namespace labels; terms of existing pods are asked with the labels of the incoming pod's
 * namespace. The selector of an own term stays in force after its namespaces were added, so one
 * made of negative requirements only means every namespace. Mirrored, because it decides placement.
 *
 * Memory:   the arena; namespaces are looked up once.
 * Runs in:  the engine's thread.
 * Upstream: pkg/scheduler/framework/types.go (AffinityTerm.Matches),
 *           plugins/interpodaffinity/plugin.go (mergeAffinityTermNamespacesIfNotEmpty).
 */
#ifndef BH_IPA_TERMS_H
#define BH_IPA_TERMS_H

#include "common/k8s/record.h"
#include "scheduler/cache/objects.h"
#include "scheduler/plugins/pair_counts.h"

struct bh_ns_labels {
    bool known; /* the Namespace object is there */
    uint32_t n;
    const struct bh_kv *labels;
};
struct bh_terms {
    const struct bh_symtab *tab;
    const struct bh_objects *objects;
    struct bh_arena *a;
    struct bh_pair_counts seen; /* namespace -> index into ns */
    struct bh_ns_labels *ns;
    uint32_t n_ns, cap_ns;
};
void bh_terms_init(struct bh_terms *m, const struct bh_symtab *tab,
                   const struct bh_objects *objects, struct bh_arena *a);
/* A term of the incoming pod (own) against an existing pod. */
bool bh_own_term_matches(struct bh_terms *m, const struct bh_shape_rec *own,
                         const struct bh_pod_term *t, const struct bh_shape_rec *pod);
/* All terms of a list; false for an empty one. */
bool bh_own_terms_match(struct bh_terms *m, const struct bh_shape_rec *own, struct bh_slice list,
                        const struct bh_shape_rec *pod);
/* A term of an existing pod (other) against the incoming one. */
bool bh_other_term_matches(struct bh_terms *m, const struct bh_shape_rec *other,
                           const struct bh_pod_term *t, const struct bh_shape_rec *incoming);
/* Some term of the list does. */
bool bh_any_other_term_matches(struct bh_terms *m, const struct bh_shape_rec *other,
                               struct bh_slice list, const struct bh_shape_rec *incoming);
#endif
