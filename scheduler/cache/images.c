/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/images.c - which images are on how many nodes, as stale as upstream's
 *
 * Two facts that placement depends on: the size of a name is the one its first reporter gave, kept
 * until no node has the name any more; the number of nodes a node sees is the number at the moment
 * its info was last refreshed, because upstream copies it when it clones the node into its
 * snapshot. With cache.rebuilt both are current: the node's own size, the count of now.
 *
 * Upstream: pkg/scheduler/backend/cache/cache.go (addNodeImageStates, removeNodeImageStates).
 */
#include "scheduler/cache/cache_int.h"

static struct bh_image_total *total_of(const struct bh_cache *c, bh_sym name)
{
    uint64_t v;
    return bh_umap_get(&c->images, name, &v) ? (struct bh_image_total *)(uintptr_t)v : NULL;
}

/* Image i stands among those from `from` to `end` as well. */
static bool listed(const struct bh_image *im, uint32_t from, uint32_t end, uint32_t i)
{
    for (uint32_t k = from; k < end; k++)
        if (im[k].name == im[i].name)
            return true;
    return false;
}

void bh_images_swap(struct bh_cache *c, const struct bh_node_rec *old,
                    const struct bh_node_rec *neu)
{
    const struct bh_image *im = old ? bh_rec_at(old, old->images, struct bh_image) : NULL;

    c->images_version += (old && old->images.n) || (neu && neu->images.n);
    for (uint32_t i = 0; old && i < old->images.n; i++) {
        if (listed(im, 0, i, i))
            continue;
        struct bh_image_total *t = total_of(c, im[i].name);
        if (--t->node_count == 0) {
            bh_umap_del(&c->images, im[i].name);
            free(t);
        }
    }
    im = neu ? bh_rec_at(neu, neu->images, struct bh_image) : NULL;
    for (uint32_t i = 0; neu && i < neu->images.n; i++) {
        if (listed(im, 0, i, i))
            continue;
        struct bh_image_total *t = total_of(c, im[i].name);
        if (!t) {
            t = bh_calloc(1, sizeof *t);
            t->size_bytes = im[i].size_bytes;
            bh_umap_put(&c->images, im[i].name, (uint64_t)(uintptr_t)t);
        }
        t->node_count++;
    }
}

static int by_name(const void *a, const void *b)
{
    bh_sym x = ((const struct bh_image_state *)a)->name,
           y = ((const struct bh_image_state *)b)->name;
    return x < y ? -1 : x > y;
}

bool bh_images_freeze(struct bh_cache *c, struct bh_node_info *ni)
{
    bool changed = !ni->images_seen;

    if (ni->images_seen == c->images_version + 1)
        return false; /* as they were */
    const struct bh_image *im = bh_rec_at(ni->rec, ni->rec->images, struct bh_image);
    uint32_t n = ni->rec->images.n;

    if (!ni->images_seen) {
        bh_node_info_forget_images(ni);
        ni->images = n ? bh_pool_alloc(ni->pool, n * sizeof *ni->images) : NULL;
        ni->cap_images = n;
        for (uint32_t i = n; i-- > 0;) /* of several sizes the last one listed is the node's */
            if (!listed(im, i + 1, n, i))
                ni->images[ni->n_images++] =
                    (struct bh_image_state){.name = im[i].name, .size_bytes = im[i].size_bytes};
        if (ni->n_images)
            qsort(ni->images, ni->n_images, sizeof *ni->images, by_name);
    }
    ni->images_seen = c->images_version + 1;
    for (uint32_t i = 0; i < ni->n_images; i++) {
        struct bh_image_state *st = &ni->images[i];
        const struct bh_image_total *t = total_of(c, st->name);
        int64_t size = c->rebuilt ? st->size_bytes : t->size_bytes;
        changed |= st->size_bytes != size || st->node_count != t->node_count;
        st->size_bytes = size;
        st->node_count = t->node_count;
    }
    return changed;
}

void bh_images_touch(struct bh_cache *c)
{
    for (uint32_t row = 0; row < c->n_nodes + c->n_free; row++)
        if (c->rows[row] && c->rows[row]->rec->images.n)
            bh_cache_touch_row(c, row, BH_ROW_NODE);
    c->images_synced = c->images_version;
}
