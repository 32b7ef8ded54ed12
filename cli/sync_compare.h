/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/sync_compare.h - where the source put a pod, and where the destination's scheduler did
 *
 * The destination's pods are followed beside the source's; a pod is compared once, when both
 * choices are known. Pods that were bound when first seen are not counted as choices.
 * Threads: the command's loop.
 */
#ifndef BH_CLI_SYNC_COMPARE_H
#define BH_CLI_SYNC_COMPARE_H

#include "cli/cluster.h"

struct bh_compare;
/* Once for each pod whose two nodes differ. */
typedef void bh_compare_fn(void *arg, const char *pod, const char *source, const char *here);
struct bh_compare *bh_compare_new(struct bh_cluster *to, bh_compare_fn *on_different, void *arg);
void bh_compare_free(struct bh_compare *c); /* NULL allowed */
/* A pod of the source, as it is told; given: it keeps the source's node. */
void bh_compare_source(struct bh_compare *c, const struct bh_json *pod, bool added, bool given);
void bh_compare_gone(struct bh_compare *c, const char *ns, const char *name);
struct bh_compare_counts {
    uint64_t same, different;
    size_t waiting; /* the source has chosen, the destination not yet */
};
struct bh_compare_counts bh_compare_counts(const struct bh_compare *c);
#endif
