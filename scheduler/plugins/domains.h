/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/domains.h - the nodes' values of one topology key as small integers, by row
 *
 * For counts that are kept from cycle to cycle (struct bh_track_ops). Domain 0 is that of nodes
 * without the label, which upstream's maps do not tell from an empty value.
 *
 * Invariants: of_row and has are right for every row as of its last bh_domains_set(). Ids are never
 *             given back: a keeper of domains starts anew when bh_domains_crowded(). linked: every
 *             row below cap_rows is in the list of its domain.
 * Memory:     the heap.
 * Runs in:    the engine's thread.
 */
#ifndef BH_PLUGIN_DOMAINS_H
#define BH_PLUGIN_DOMAINS_H

#include "common/base/map.h"
#include "scheduler/framework/plugin.h"

struct bh_domains {
    bh_sym key;
    uint32_t *of_row;
    bool *has; /* by row: the node has the label */
    uint32_t cap_rows;
    struct bh_umap ids; /* value -> id */
    uint32_t n;         /* ids are below n */
    /* ---- the rows of a domain, once bh_domains_link() was called ---- */
    bool linked;
    uint32_t *next, *prev; /* by row; BH_DOMAIN_END ends */
    uint32_t *head;        /* by domain */
    uint32_t cap_heads;
};
#define BH_DOMAIN_END UINT32_MAX
void bh_domains_init(struct bh_domains *d, bh_sym key);
void bh_domains_fini(struct bh_domains *d);
/* Room for rows below n, which have no node yet. */
void bh_domains_reserve(struct bh_domains *d, uint32_t n);
/* rec NULL: the row is empty. */
void bh_domains_set(struct bh_domains *d, uint32_t row, const struct bh_node_rec *rec);
void bh_domains_link(struct bh_domains *d);
static inline bool bh_domains_crowded(const struct bh_domains *d)
{
    return d->n > 4 * d->cap_rows + 1024;
}
static inline size_t bh_domains_bytes(const struct bh_domains *d)
{
    return d->cap_rows * (sizeof *d->of_row + sizeof *d->has + (d->linked ? 8 : 0)) +
           d->n * 2 * sizeof(uint64_t) + d->cap_heads * sizeof *d->head;
}

/* What counts remember about shapes of pods: several shapes share a slot, so a count that finds
 * another `born` (shapes.h; no two are equal) there looks at its shape anew. */
#define BH_MEANINGS_MAX 4096u
static inline uint32_t bh_meanings_for(uint32_t shapes)
{
    uint32_t n = 64;
    while (n < shapes && n < BH_MEANINGS_MAX)
        n *= 2;
    return n;
}

/* Rows that the last update of counts made another kind of, see struct bh_track_ops. */
struct bh_note {     /* a domain's count before the update */
    uint32_t of, id; /* of: whose domain, as the keeper numbers them */
    int64_t was;
};
struct bh_moved {
    uint32_t *rows, n, cap;
    bool anew; /* any row: the list is not kept */
    struct bh_note *note;
    uint32_t n_notes, cap_notes, updates;
};
/* An update of n rows of all begins. */
void bh_moved_begin(struct bh_moved *m, uint32_t n, uint32_t n_rows);
/* Notes the count before it changes, once an update; *noted: the domain's update of the last note. */
void bh_moved_note(struct bh_moved *m, uint32_t *noted, uint32_t of, uint32_t id, int64_t was);
/* For bh_track_ops.moved. */
uint32_t bh_moved_told(const struct bh_moved *m, const uint32_t **ret);
void bh_moved_fini(struct bh_moved *m);
/* All rows of the domain. d is linked. */
void bh_moved_add(struct bh_moved *m, const struct bh_domains *d, uint32_t id);
#endif
