/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/sync_compare.h - where the source put a pod, and where the destination's scheduler did
 *
 * The destination's pods are followed beside the source's; a pod is compared once, when both
 * choices are known. Pods that were bound when they were first seen are nobody's choice here.
 * Threads: the command's loop.
 */
#ifndef BH_CLI_SYNC_COMPARE_H
#define BH_CLI_SYNC_COMPARE_H

#include "cli/cluster.h"

struct bh_compare;
struct bh_compare_options {
    struct bh_cluster *to;
    /* Once for each pod whose two nodes differ. */
    void (*on_different)(void *arg, const char *pod, const char *source, const char *here);
    void *arg;
};
struct bh_compare *bh_compare_new(const struct bh_compare_options *o);
void bh_compare_free(struct bh_compare *c); /* NULL allowed */
/* A pod of the source, as it is told; given: it keeps the source's node. */
void bh_compare_source(struct bh_compare *c, const struct bh_json *pod, bool added, bool given);
void bh_compare_gone(struct bh_compare *c, const char *ns, const char *name);
struct bh_compare_counts {
    uint64_t same, different;
    size_t waiting; /* the source has chosen, the destination not yet */
};
void bh_compare_counts(const struct bh_compare *c, struct bh_compare_counts *ret);
#endif
