/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/compile.h - API objects into records
 *
 * The only place where a Pod's or Node's meaning for scheduling is worked out: requests, selector
 * parsing, image names, ports. Used by the watcher (interning into the snapshot), the scheduler
 * (pending pods) and every in-process door (simulate, conformance, tests).
 * Hostile input is bounded: a record above BH_REC_MAX_BYTES gives -E2BIG.
 * Upstream: component-helpers/resource, pkg/scheduler/framework/types.go,
 * component-helpers/scheduling/corev1/nodeaffinity; differences: exact sums (quantity.h).
 */
#ifndef BH_COMPILE_H
#define BH_COMPILE_H

#include "common/base/arena.h"
#include "common/k8s/record.h"

struct K8s__Node;
struct K8s__Pod;

/* Where symbols come from: the private table, or the snapshot writer's. */
struct bh_interner {
    bh_sym (*intern)(void *arg, const char *s, size_t n); /* BH_SYM_NONE only for "" */
    void *arg;
};
struct bh_interner bh_symtab_interner(struct bh_symtab *t);

/* Records are built in the arena. 0, -EINVAL (no name, no uid ...; err names the field), -E2BIG. */
int bh_compile_node(struct bh_arena *a, const struct K8s__Node *n, const struct bh_interner *in,
                    struct bh_node_rec **ret, struct bh_err *err);
int bh_compile_shape(struct bh_arena *a, const struct K8s__Pod *p, const struct bh_interner *in,
                     struct bh_shape_rec **ret, struct bh_err *err);
/* Identity part; ->shape is 0, the caller sets it. A missing uid is -EINVAL. */
int bh_compile_pod(struct bh_arena *a, const struct K8s__Pod *p, const struct bh_interner *in,
                   struct bh_pod_rec **ret, struct bh_err *err);
/* Terms of a NodeAffinity given as configuration (NodeAffinityArgs.addedAffinity): a shape record
 * whose required_terms / preferred_terms / flags are set and the rest empty. */
struct K8s__NodeAffinity;
int bh_compile_node_affinity(struct bh_arena *a, const struct K8s__NodeAffinity *na,
                             const struct bh_interner *in, struct bh_shape_rec **ret,
                             struct bh_err *err);
/* What does not parse in it, one call an error with upstream's text ("PATH.required...: Invalid
 * value: ..."); path: where the affinity stands. error is gone after the call. */
void bh_node_affinity_errors(const struct K8s__NodeAffinity *na, const char *path,
                             void (*fn)(void *arg, struct bh_str error), void *arg);

/* What a pod asks for in the end (or may use at most), in base units: containers, side cars, init
 * containers, overhead, pod-level resources; by spec alone. names: whose symbols fn gets.
 * 0, -EINVAL, -E2BIG. Upstream: component-helpers/resource (PodRequests, PodLimits). */
int bh_pod_amounts(struct bh_arena *a, const struct K8s__Pod *p, bool limits,
                   struct bh_symtab *names, void (*fn)(void *arg, bh_sym name, double v), void *arg,
                   struct bh_err *err);

/* Operators, keys and values are what they may be. */
struct K8s__LabelSelector;
bool bh_label_selector_parses(const struct K8s__LabelSelector *s);

/* Resource names (reference plugins.md 2.1). */
bool bh_resource_is_extended(const char *name);
bool bh_resource_is_scalar(const char *name);
#endif
