/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/cache_int.h - what the files of this folder call from each other
 */
#ifndef BH_CACHE_INT_H
#define BH_CACHE_INT_H

#include "scheduler/cache/cache.h"

struct bh_node_info *bh_cache_get_info(struct bh_cache *c, bh_sym name); /* a ghost when new */
void bh_cache_drop_ghost(struct bh_cache *c, struct bh_node_info *ni);   /* if it is an empty one */
/* Nothing for a ghost. */
void bh_cache_touch(struct bh_cache *c, struct bh_node_info *ni, enum bh_row_change what);
void bh_cache_touch_row(struct bh_cache *c, uint32_t row, enum bh_row_change what);

/* Copies rec (with node and shape set) and takes a reference to the shape. */
void bh_cache_hold(struct bh_cache *c, struct bh_pod_info *info, const struct bh_pod_rec *rec,
                   uint32_t shape, bh_sym node);
void bh_cache_let_go(struct bh_cache *c, struct bh_pod_info *info);
void bh_cache_free_pods(struct bh_cache *c);
void bh_cache_drop_unseen_pods(struct bh_cache *c);

void bh_nominator_fini(struct bh_cache *c);
/* Of a node that has a row. */
void bh_cache_count_nominations(struct bh_cache *c, struct bh_node_info *ni);

/* The node's names leave the cluster-wide table, then the new ones enter (either may be NULL). */
void bh_images_swap(struct bh_cache *c, const struct bh_node_rec *old,
                    const struct bh_node_rec *neu);
bool bh_images_freeze(struct bh_cache *c, struct bh_node_info *ni); /* true: something is new */
/* Every node that reports images counts as changed. */
void bh_images_touch(struct bh_cache *c);

/* old NULL: the row is new; neu NULL: it goes; else it may have changed its zone. */
void bh_order_update(struct bh_cache *c, uint32_t row, const struct bh_node_rec *old,
                     const struct bh_node_rec *neu);
void bh_order_fini(struct bh_cache *c);
/* The pod's claims are in use, or no longer. */
void bh_claims_count(struct bh_cache *c, const struct bh_shape_rec *s, bool add);
void bh_claims_count_node(struct bh_cache *c, const struct bh_node_info *ni, bool add);
#endif
