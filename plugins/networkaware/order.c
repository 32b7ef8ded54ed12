/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/networkaware/order.c - the order of an AppGroup's workloads, where nobody has written it down
 *
 * What spec.topologySortingAlgorithm names, over the dependencies: who depends on another one comes before it, with
 * Reverse... after it. Workloads without dependencies that nobody depends on have no place.
 *
 * Upstream:   diktyo-io/appgroup-controller (pkg/controller/appgroup.go, util of scheduler-plugins), which writes
 *             status.topologyOrder and goes through Go's maps: of the orders that it may write this is the one where
 *             those that are alike come as in spec.workloads.
 * Difference: workloads are known by their selectors, there by names that have to be the selectors as well.
 */
#include <stdlib.h>
#include <string.h>

#include "networkaware.h"

struct workload {
    berth_sym selector;
    uint64_t at;           /* in spec.workloads */
    uint64_t first, last;  /* its dependencies: first to last - 1 */
    uint64_t next;         /* of them, to be looked at */
    uint64_t n_dependents; /* that have no place yet */
    int placed;            /* it has dependencies, or is one: it gets a place */
    enum { NEW, OPEN, DONE } state;
};
struct sorting {
    const struct nw_group *g;
    uint64_t n;
    struct workload *w;  /* by selector, each once */
    uint64_t *listed;    /* index in w, as in spec.workloads */
    uint64_t *to;        /* by dependency: index in w */
    uint64_t *out, *tmp; /* indices in w: what is sorted, and in between */
    uint64_t n_placed;
};

static int by_selector(const void *x, const void *y)
{
    const struct workload *a = x, *b = y;
    int d = (a->selector > b->selector) - (a->selector < b->selector);

    return d ? d : (a->at > b->at) - (a->at < b->at);
}

static int is_selector(const void *key, const void *x)
{
    const berth_sym a = *(const berth_sym *)key, b = ((const struct workload *)x)->selector;

    return (a > b) - (a < b);
}

/* NULL: it is not in the list. */
static struct workload *find(const struct sorting *s, berth_sym selector)
{
    return bsearch(&selector, s->w, s->n, sizeof *s->w, is_selector);
}

/* ---- the two algorithms ---------------------------------------------------------------------- */

/* Both return how many have a place: fewer than n_placed, dependencies go round in a circle. */
static uint64_t kahn(struct sorting *s)
{
    uint64_t n = 0, open = 0;

    for (uint64_t i = 0; i < s->n; i++)
        if (s->w[s->listed[i]].placed && !s->w[s->listed[i]].n_dependents)
            s->tmp[open++] = s->listed[i];
    while (open) {
        struct workload *w = &s->w[s->out[n++] = s->tmp[--open]];
        for (uint64_t i = w->first; i < w->last; i++)
            if (!--s->w[s->to[i]].n_dependents)
                s->tmp[open++] = s->to[i];
    }
    return n;
}

/* Depth first from one of them; each has its place when all that it depends on have theirs. 0: a circle. */
static int visit(struct sorting *s, uint64_t root, uint64_t *left)
{
    uint64_t depth = 0;

    s->tmp[depth++] = root;
    s->w[root].state = OPEN;
    while (depth) {
        struct workload *w = &s->w[s->tmp[depth - 1]];
        if (w->next == w->last) {
            w->state = DONE;
            s->out[--*left] = s->tmp[--depth];
            continue;
        }
        uint64_t to = s->to[w->next++];
        if (s->w[to].state == OPEN)
            return 0;
        if (s->w[to].state == NEW) {
            s->w[to].state = OPEN;
            s->tmp[depth++] = to;
        }
    }
    return 1;
}

static uint64_t tarjan(struct sorting *s)
{
    uint64_t left = s->n_placed;

    for (uint64_t i = 0; i < s->n; i++) {
        struct workload *w = &s->w[s->listed[i]];
        if (w->placed && w->state == NEW && !visit(s, s->listed[i], &left))
            return 0;
    }
    return s->n_placed;
}

static void reverse(uint64_t *v, uint64_t n)
{
    for (uint64_t i = 0; i < n / 2; i++) {
        uint64_t t = v[i];
        v[i] = v[n - 1 - i];
        v[n - 1 - i] = t;
    }
}

/* The first, the last, the second, the last but one ... */
static void alternate(struct sorting *s)
{
    memcpy(s->tmp, s->out, s->n_placed * sizeof *s->tmp);
    for (uint64_t i = 0; i < s->n_placed; i++)
        s->out[i] = s->tmp[i % 2 ? s->n_placed - (i + 1) / 2 : i / 2];
}

/* 0: there is no such order. Another name means KahnSort. */
static int sort_by(struct sorting *s, struct berth_str name)
{
    int by_tarjan = berth_str_is(name, "TarjanSort") || berth_str_is(name, "ReverseTarjan") ||
                    berth_str_is(name, "AlternateTarjan");

    if ((by_tarjan ? tarjan(s) : kahn(s)) != s->n_placed)
        return 0;
    if (berth_str_is(name, "ReverseKahn") || berth_str_is(name, "ReverseTarjan"))
        reverse(s->out, s->n_placed);
    else if (berth_str_is(name, "AlternateKahn") || berth_str_is(name, "AlternateTarjan"))
        alternate(s);
    return 1;
}

/* ---- what is sorted -------------------------------------------------------------------------- */

static void list_workloads(struct sorting *s, struct nw_instance *in,
                           const struct berth_value *workloads)
{
    const struct berth_host_values *h = nw_host->values;
    uint64_t n = 0, kept = 0;

    for (const struct berth_value *v = h->first(workloads); v && n < s->n; v = h->next(v), n++)
        s->w[n] = (struct workload){.selector = nw_selector(in, v), .at = n};
    qsort(s->w, n, sizeof *s->w, by_selector);
    for (uint64_t i = 0; i < n; i++)
        if (!i || s->w[i].selector != s->w[i - 1].selector)
            s->tmp[kept++] = i;
    for (uint64_t i = 0; i < kept; i++)
        s->w[i] = s->w[s->tmp[i]];
    s->n = kept;
    for (uint64_t i = 0; i < n; i++)
        s->tmp[i] = UINT64_MAX;
    for (uint64_t i = 0; i < kept; i++)
        s->tmp[s->w[i].at] = i;
    for (uint64_t i = 0, k = 0; i < n; i++)
        if (s->tmp[i] != UINT64_MAX)
            s->listed[k++] = s->tmp[i];
}

/* 0: one depends on what is not in the list. */
static int link_dependencies(struct sorting *s)
{
    const struct nw_group *g = s->g;

    for (uint64_t i = 0; i < g->n_dependencies; i++) {
        struct workload *w = find(s, g->dependencies[i].workload);
        struct workload *to = find(s, g->dependencies[i].on);
        if (!to)
            return 0;
        if (w->last != i)
            w->first = w->next = w->last = i;
        w->last++;
        w->placed = to->placed = 1;
        to->n_dependents++;
        s->to[i] = (uint64_t)(to - s->w);
    }
    for (uint64_t i = 0; i < s->n; i++)
        s->n_placed += (uint64_t)s->w[i].placed;
    return 1;
}

/* n: of out, or of listed where there is no order but the list's. */
static void rank(const struct sorting *s, struct nw_group *g, const uint64_t *order, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        g->ranks[i] = (struct nw_rank){s->w[order[i]].selector, (int32_t)(i + 1)};
    g->n_ranks = n;
}

void nw_make_order(struct nw_instance *in, struct nw_group *g, const struct berth_value *spec)
{
    const struct berth_value *workloads = nw_get(spec, "workloads");
    const struct berth_value *algorithm = nw_get(spec, "topologySortingAlgorithm");
    const uint64_t n = workloads ? nw_host->values->count(workloads) : 0;
    struct sorting s = {.g = g, .n = n};

    if (!g->n_dependencies || !n) /* nobody has a place */
        return;
    free(g->ranks);
    uint64_t *all = calloc(3 * n + g->n_dependencies, sizeof *all);
    s.w = calloc(n, sizeof *s.w);
    g->ranks = calloc(n, sizeof *g->ranks);
    if (all && s.w && g->ranks) {
        s.listed = all;
        s.out = all + n;
        s.tmp = all + 2 * n;
        s.to = all + 3 * n;
        list_workloads(&s, in, workloads);
        if (link_dependencies(&s) &&
            sort_by(&s, algorithm ? nw_host->values->text(algorithm) : (struct berth_str){"", 0}))
            rank(&s, g, s.out, s.n_placed);
        else
            rank(&s, g, s.listed, s.n);
    }
    free(s.w);
    free(all);
}
