/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/imagelocality/image_locality.c - nodes that already have the images are better
 *
 * Upstream: pkg/scheduler/framework/plugins/imagelocality/image_locality.go; differences: none.
 */
#include "scheduler/framework/plugin.h"
#include "scheduler/plugins/registry.h"

#define MIB                     ((int64_t)1 << 20)
#define MIN_THRESHOLD           (23 * MIB)
#define MAX_CONTAINER_THRESHOLD (1000 * MIB)

static int64_t locality(const struct bh_shape_rec *s, const struct bh_node_info *node,
                        uint32_t n_nodes)
{
    int64_t max = MAX_CONTAINER_THRESHOLD * s->image_containers;
    /* Sizes weigh less the fewer nodes have the image: a node must not attract all pods of an
     * image that only it holds. The number of nodes is as old as the node's last refresh
     * (cache/images.c). */
    const bh_sym *name = bh_rec_at(s, s->images, bh_sym);
    int64_t sum = 0;
    for (uint32_t i = 0; i < s->images.n; i++) {
        const struct bh_image_state *im = bh_node_info_image(node, name[i]);
        if (!im)
            continue;
        double spread = (double)im->node_count / (double)n_nodes;
        sum = bh_add_sat(sum, (int64_t)((double)im->size_bytes * spread));
    }

    if (max <= MIN_THRESHOLD) /* no containers: nothing to be local to */
        return 0;
    if (sum < MIN_THRESHOLD)
        sum = MIN_THRESHOLD;
    else if (sum > max)
        sum = max;
    return 100 * (sum - MIN_THRESHOLD) / (max - MIN_THRESHOLD);
}

static const struct bh_status *score(struct bh_call *c, const struct bh_node_info *ni, int64_t *ret)
{
    *ret = locality(c->pod->shape, ni, c->cache->n_nodes);
    return NULL;
}

static bool any_reported(const struct bh_call *c)
{
    const struct bh_shape_rec *s = c->pod->shape;
    const bh_sym *name = bh_rec_at(s, s->images, bh_sym);

    for (uint32_t i = 0; i < s->images.n; i++)
        if (bh_umap_get(&c->cache->images, name[i], NULL))
            return true;
    return false;
}

/* With very many rows neither the infos nor their images are in a processor's cache. */
static void score_rows(struct bh_call *c, const uint32_t *rows, uint32_t n, int64_t *ret)
{
    enum { AHEAD = 8 };
    const struct bh_columns *cols = &c->cache->cols;
    struct bh_node_info *const *info = c->cache->rows;
    bool any = any_reported(c);

    for (uint32_t i = 0; i < n; i++) {
        if (any && i + 2 * AHEAD < n)
            __builtin_prefetch(&info[rows[i + 2 * AHEAD]]->images);
        if (any && i + AHEAD < n)
            __builtin_prefetch(info[rows[i + AHEAD]]->images);
        ret[i] = any && bh_row_bit(cols, BH_ROW_IMAGES, rows[i])
                     ? locality(c->pod->shape, info[rows[i]], c->cache->n_nodes)
                     : 0;
    }
}

/* The number of nodes matters only where some node reports one of the pod's images. */
static uint64_t epoch(struct bh_call *c)
{
    return any_reported(c) ? c->cache->n_nodes : 0;
}

const struct bh_plugin bh_plugin_image_locality = {
    BH_PLUGIN_HEAD("ImageLocality"), .flags = BH_PLUGIN_NODE_LOCAL | BH_PLUGIN_READS_NODE,
    .events = bh_no_events,          .score = score,
    .score_rows = score_rows,        .epoch = epoch,
};
