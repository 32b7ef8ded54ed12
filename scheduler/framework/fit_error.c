/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/framework/fit_error.c - the text that says why no node fits
 *
 * Runs in:  the engine's thread.
 * Upstream: pkg/scheduler/framework/types.go (FitError.Error).
 */
#include "common/base/buf.h"
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
        if (h->n == h->cap) {
            uint32_t cap = h->cap ? 2 * h->cap : 16;
            struct reason_count *v = bh_arena_new_array(h->a, struct reason_count, cap);
            if (h->n)
                memcpy(v, h->v, h->n * sizeof *v);
            h->v = v;
            h->cap = cap;
        }
        h->v[h->n++] = (struct reason_count){.reason = reason};
    }
    h->v[i].n += times;
}

/* Bytewise on the whole line, count included: "10 x" comes before "2 y". */
static int by_line(const void *a, const void *b)
{
    return strcmp(((const struct reason_count *)a)->line, ((const struct reason_count *)b)->line);
}

static void add_histogram(struct bh_buf *b, struct histogram *h)
{
    for (uint32_t i = 0; i < h->n; i++)
        h->v[i].line = bh_arena_printf(h->a, "%u %s", h->v[i].n, h->v[i].reason);
    if (h->n > 1)
        qsort(h->v, h->n, sizeof *h->v, by_line);
    for (uint32_t i = 0; i < h->n; i++) {
        bh_buf_adds(b, i ? ", " : " ");
        bh_buf_adds(b, h->v[i].line);
    }
    if (h->n)
        bh_buf_addc(b, '.');
}

const char *bh_fit_error(struct bh_arena *a, uint32_t n_nodes,
                         const struct bh_status *const *by_row, uint32_t n_rows,
                         const struct bh_status *absent, const char *pre_filter_message)
{
    struct histogram h = {.a = a};
    struct bh_buf b = {0};
    uint32_t seen = 0;

    bh_buf_addf(&b, "0/%u nodes are available:", n_nodes);
    if (pre_filter_message && *pre_filter_message) {
        bh_buf_addf(&b, " %s.", pre_filter_message);
    } else {
        for (uint32_t r = 0; r < n_rows; r++) {
            if (!by_row[r])
                continue;
            seen++;
            for (uint32_t i = 0; i < by_row[r]->n_reasons; i++)
                count(&h, by_row[r]->reasons[i], 1);
        }
        if (seen < n_nodes)
            for (uint32_t i = 0; absent && i < absent->n_reasons; i++)
                count(&h, absent->reasons[i], n_nodes - seen);
        add_histogram(&b, &h);
    }
    char *text = bh_arena_strndup(a, b.p, b.n);
    bh_buf_fini(&b);
    return text;
}
