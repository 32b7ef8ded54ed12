/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/framework/fit_error.c - the text that says why no node fits
 *
 * Upstream: pkg/scheduler/framework/types.go (FitError.Error).
 */
#include "scheduler/framework/framework.h"

struct reason_count {
    const char *reason;
    uint32_t n;
    const char *line; /* "3 Insufficient cpu" */
};
struct histogram {
    struct bh_arena *a;
    struct reason_count *v;
    uint32_t n, cap;
};

static void count(struct histogram *h, const char *reason, uint32_t times)
{
    uint32_t i = 0;

    /* Most reasons are the same constant: compare addresses before texts. */
    while (i < h->n && h->v[i].reason != reason)
        i++;
    if (i == h->n)
        for (i = 0; i < h->n && !bh_streq(h->v[i].reason, reason);)
            i++;
    if (i == h->n) {
        BH_ARENA_GROW(h->a, h->v, h->n, h->cap);
        h->v[h->n++] = (struct reason_count){.reason = reason};
    }
    h->v[i].n += times;
}

/* Bytewise on the whole line, count included: "10 x" comes before "2 y". */
static int by_line(const void *a, const void *b)
{
    return strcmp(((const struct reason_count *)a)->line, ((const struct reason_count *)b)->line);
}

static void count_status(struct histogram *h, const struct bh_status *s, uint32_t times)
{
    for (uint32_t i = 0; s && i < s->n_reasons && times; i++)
        count(h, s->reasons[i], times);
}

/* "0/3 nodes are available: 1 a, 2 b." */
static const char *histogram_text(struct histogram *h, uint32_t n_nodes)
{
    const char *head = bh_arena_printf(h->a, "0/%u nodes are available:", n_nodes);
    size_t bytes = strlen(head) + 2;

    for (uint32_t i = 0; i < h->n; i++) {
        h->v[i].line = bh_arena_printf(h->a, "%u %s", h->v[i].n, h->v[i].reason);
        bytes += strlen(h->v[i].line) + 2;
    }
    if (h->n > 1)
        qsort(h->v, h->n, sizeof *h->v, by_line);
    char *text = bh_arena_alloc(h->a, bytes), *at = stpcpy(text, head);
    for (uint32_t i = 0; i < h->n; i++)
        at = stpcpy(stpcpy(at, i ? ", " : " "), h->v[i].line);
    if (h->n)
        stpcpy(at, ".");
    return text;
}

const char *bh_fit_error(struct bh_arena *a, uint32_t n_nodes,
                         const struct bh_status *const *by_row, uint32_t n_rows,
                         const struct bh_status *absent, const char *pre_filter_message)
{
    struct histogram h = {.a = a};
    uint32_t seen = 0;

    if (pre_filter_message && *pre_filter_message)
        return bh_arena_printf(a, "0/%u nodes are available: %s.", n_nodes, pre_filter_message);
    for (uint32_t r = 0; r < n_rows; r++) {
        seen += by_row[r] != NULL;
        count_status(&h, by_row[r], 1);
    }
    count_status(&h, absent, n_nodes > seen ? n_nodes - seen : 0);
    return histogram_text(&h, n_nodes);
}

const char *bh_fit_error_counted(struct bh_arena *a, uint32_t n_nodes,
                                 const struct bh_status_set *set, const uint32_t *n,
                                 const struct bh_status *absent)
{
    struct histogram h = {.a = a};
    uint32_t seen = 0;

    for (uint32_t i = 0; i < set->n; i++) {
        seen += n[i];
        count_status(&h, &set->v[i].status, n[i]);
    }
    count_status(&h, absent, n_nodes > seen ? n_nodes - seen : 0);
    return histogram_text(&h, n_nodes);
}
