/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/volumebinding/terms.h - conditions on labels, compiled once and asked per node
 *
 * All three sorts (a volume's node affinity, a class's allowed topologies, a label selector) become
 * node selector terms over symbols. They live in the arena they were compiled into.
 *
 * Upstream: component-helpers/scheduling/corev1 (nodeaffinity, helpers),
 * component-helpers/storage/volume (CheckNodeAffinity), apimachinery/pkg/apis/meta/v1
 * (LabelSelectorAsSelector).
 */
#ifndef BH_TERMS_H
#define BH_TERMS_H

#include "scheduler/plugins/volumebinding/storage.h"

enum bh_terms_kind { BH_TERMS_ALL, BH_TERMS_NONE, BH_TERMS_SOME };
struct bh_terms {
    enum bh_terms_kind kind;
    const struct bh_shape_rec *rec; /* SOME: its required_terms, of which one has to match */
};
struct bh_terms bh_terms_of_affinity(struct bh_arena *a, struct bh_symtab *tab,
                                     const K8s__VolumeNodeAffinity *na);
struct bh_terms bh_terms_of_topologies(struct bh_arena *a, struct bh_symtab *tab,
                                       K8s__TopologySelectorTerm *const *terms, size_t n);
/* NULL selects nothing. An invalid selector selects nothing; its error goes to *ret_error, which is
 * NULL otherwise. */
struct bh_terms bh_terms_of_selector(struct bh_arena *a, struct bh_symtab *tab,
                                     const K8s__LabelSelector *s, const char **ret_error);

bool bh_terms_match(const struct bh_terms *t, const struct bh_symtab *tab,
                    const struct bh_kv *labels, uint32_t n);
static inline bool bh_terms_match_node(const struct bh_terms *t, const struct bh_symtab *tab,
                                       const struct bh_node_rec *node)
{
    return bh_terms_match(t, tab, bh_rec_at(node, node->labels, struct bh_kv), node->labels.n);
}
#endif
