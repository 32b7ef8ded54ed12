/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/interpodaffinity/scan.c - existing pods into tallies
 *
 * Pods of one shape are alike to every term, so selectors are matched once a shape; a pod costs a
 * look at its shape's list.
 */
#include "scheduler/plugins/interpodaffinity/affinity.h"

/* Beyond this many shares of one shape equal keys are no longer looked for. */
#define MERGE_MAX 32u

static struct bh_ipa_share *append(struct bh_ipa_scan *s)
{
    BH_ARENA_GROW(s->a, s->v, s->n, s->cap);
    return &s->v[s->n++];
}

void bh_ipa_push(struct bh_ipa_scan *s, uint32_t map, bh_sym key, int64_t n)
{
    for (uint32_t i = s->first; i < s->n && i < s->first + MERGE_MAX; i++) {
        if (s->v[i].key == key && s->v[i].map == map) {
            s->v[i].n += n; /* may become 0: the entry still counts as one */
            return;
        }
    }
    *append(s) = (struct bh_ipa_share){.key = key, .map = map, .n = n};
}

const struct bh_ipa_share *bh_ipa_shares(struct bh_ipa_scan *s, const struct bh_pod_info *p)
{
    uint32_t once = 0, *at = s->memo ? &s->memo[p->shape_id] : &once;

    if (!s->memo)
        s->n = 0;
    if (!*at) {
        uint32_t head = s->n;
        append(s)->map = 0;
        s->first = s->n;
        s->fill(s, p->shape);
        s->v[head].map = s->n - s->first;
        *at = head + 1;
    }
    return &s->v[*at - 1];
}

void bh_ipa_scan_nodes(struct bh_ipa_scan *s, const struct bh_cache *c, bool all,
                       struct bh_pair_counts *tallies)
{
    s->memo = bh_arena_new_array(s->a, uint32_t, c->shapes.n ? c->shapes.n : 1);
    for (uint32_t row = 0; row < c->cols.n_rows; row++) {
        const struct bh_node_info *ni =
            bh_row_bit(&c->cols, BH_ROW_LIVE, row) ? c->rows[row] : NULL;
        if (ni && (all ? ni->n_pods : ni->n_affinity_pods)) {
            const struct bh_kv *labels = bh_rec_at(ni->rec, ni->rec->labels, struct bh_kv);
            bh_sym value;
            for (uint32_t i = 0; i < ni->n_pods; i++) {
                if (!all && !(ni->pods[i]->shape->flags & BH_SHAPE_USES_POD_AFFINITY))
                    continue;
                const struct bh_ipa_share *list = bh_ipa_shares(s, ni->pods[i]);
                for (uint32_t k = 1; k <= list->map; k++)
                    if (bh_labels_get(labels, ni->rec->labels.n, list[k].key, &value))
                        bh_pair_counts_add(&tallies[list[k].map], list[k].key, value, list[k].n);
            }
        }
    }
}
