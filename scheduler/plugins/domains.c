/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/domains.c - values of one topology key as small integers
 */
#include "scheduler/plugins/domains.h"

void bh_domains_init(struct bh_domains *d, bh_sym key)
{
    *d = (struct bh_domains){.key = key, .n = 1};
    bh_umap_put(&d->ids, BH_SYM_NONE, 0);
}

void bh_domains_fini(struct bh_domains *d)
{
    bh_umap_fini(&d->ids);
    free(d->of_row);
    free(d->has);
}

void bh_domains_reserve(struct bh_domains *d, uint32_t n)
{
    if (n <= d->cap_rows)
        return;
    d->of_row = bh_reallocarray(d->of_row, n, sizeof *d->of_row);
    d->has = bh_reallocarray(d->has, n, sizeof *d->has);
    memset(d->of_row + d->cap_rows, 0, (n - d->cap_rows) * sizeof *d->of_row);
    memset(d->has + d->cap_rows, 0, (n - d->cap_rows) * sizeof *d->has);
    d->cap_rows = n;
}

void bh_domains_set(struct bh_domains *d, uint32_t row, const struct bh_node_rec *rec)
{
    bh_sym value = BH_SYM_NONE;
    uint64_t id;

    d->has[row] = rec && bh_labels_get(bh_rec_at(rec, rec->labels, struct bh_kv), rec->labels.n,
                                       d->key, &value);
    if (!bh_umap_get(&d->ids, value, &id)) {
        id = d->n++;
        bh_umap_put(&d->ids, value, id);
    }
    d->of_row[row] = (uint32_t)id;
}
