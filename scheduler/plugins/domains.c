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
    free(d->next);
    free(d->prev);
    free(d->head);
}

static void link_row(struct bh_domains *d, uint32_t row)
{
    uint32_t id = d->of_row[row];

    if (id >= d->cap_heads) {
        uint32_t cap = BH_MAX(BH_MAX(16u, d->cap_heads * 2), d->n);
        d->head = bh_reallocarray(d->head, cap, sizeof *d->head);
        memset(d->head + d->cap_heads, 0xff, (cap - d->cap_heads) * sizeof *d->head);
        d->cap_heads = cap;
    }
    d->prev[row] = BH_DOMAIN_END;
    d->next[row] = d->head[id];
    if (d->head[id] != BH_DOMAIN_END)
        d->prev[d->head[id]] = row;
    d->head[id] = row;
}

static void link_from(struct bh_domains *d, uint32_t row)
{
    d->next = bh_reallocarray(d->next, d->cap_rows, sizeof *d->next);
    d->prev = bh_reallocarray(d->prev, d->cap_rows, sizeof *d->prev);
    for (; row < d->cap_rows; row++)
        link_row(d, row);
}

void bh_domains_link(struct bh_domains *d)
{
    if (d->linked)
        return;
    d->linked = true;
    link_from(d, 0);
}

void bh_domains_reserve(struct bh_domains *d, uint32_t n)
{
    if (n <= d->cap_rows)
        return;
    d->of_row = bh_regrown(d->of_row, d->cap_rows, n, sizeof *d->of_row);
    d->has = bh_regrown(d->has, d->cap_rows, n, sizeof *d->has);
    uint32_t before = d->cap_rows;
    d->cap_rows = n;
    if (d->linked)
        link_from(d, before);
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
    if (d->of_row[row] == id)
        return;
    if (d->linked) {
        uint32_t next = d->next[row], prev = d->prev[row];
        if (next != BH_DOMAIN_END)
            d->prev[next] = prev;
        *(prev != BH_DOMAIN_END ? &d->next[prev] : &d->head[d->of_row[row]]) = next;
    }
    d->of_row[row] = (uint32_t)id;
    if (d->linked)
        link_row(d, row);
}

/* ---- moved rows ---- */

void bh_moved_fini(struct bh_moved *m)
{
    free(m->rows);
    free(m->note);
    *m = (struct bh_moved){0};
}

void bh_moved_begin(struct bh_moved *m, uint32_t n, uint32_t n_rows)
{
    m->n = m->n_notes = 0;
    m->anew = n > n_rows / 2 || ++m->updates == 0;
}

void bh_moved_note(struct bh_moved *m, uint32_t *noted, uint32_t of, uint32_t id, int64_t was)
{
    if (m->anew || *noted == m->updates)
        return;
    *noted = m->updates;
    BH_GROW(m->note, m->n_notes, m->cap_notes);
    m->note[m->n_notes++] = (struct bh_note){of, id, was};
}

uint32_t bh_moved_told(const struct bh_moved *m, const uint32_t **ret)
{
    *ret = m->rows;
    return m->anew ? BH_KINDS_ANEW : m->n;
}

void bh_moved_add(struct bh_moved *m, const struct bh_domains *d, uint32_t id)
{
    uint32_t row = id < d->cap_heads ? d->head[id] : BH_DOMAIN_END;

    for (; row != BH_DOMAIN_END && !m->anew; row = d->next[row]) {
        BH_GROW(m->rows, m->n, m->cap);
        m->rows[m->n++] = row;
        m->anew = m->n > d->cap_rows / 4 + 16; /* looking at all of them costs no more */
    }
}
