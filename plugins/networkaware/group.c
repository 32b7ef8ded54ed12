/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/networkaware/group.c - what AppGroups say: dependencies, and the order of workloads
 *
 * Upstream asks a cache of the API server's objects each time and reads them anew. Here what one says is
 * kept until some AppGroup changes.
 */
#include <stdlib.h>

#include "networkaware.h"

#define GROUPS_MAX 4096u /* then those that were asked for are forgotten */

static berth_sym symbol(const struct nw_instance *in, const struct berth_value *v, const char *name)
{
    const struct berth_value *m = nw_get(v, name);

    return m ? nw_host->base->intern(in->home, nw_host->values->text(m)) : 0;
}

/* ---- dependencies ---------------------------------------------------------------------------- */

berth_sym nw_selector(const struct nw_instance *in, const struct berth_value *v)
{
    return symbol(in, nw_get(v, "workload"), "selector");
}

/* Those of one workload stay as they are listed. */
static int by_workload(const void *x, const void *y)
{
    const struct nw_dependency *a = x, *b = y;
    int d = (a->workload > b->workload) - (a->workload < b->workload);

    return d ? d : (a->at > b->at) - (a->at < b->at);
}

static void read_dependencies(struct nw_instance *in, struct nw_group *g,
                              const struct berth_value *workloads)
{
    const struct berth_host_values *h = nw_host->values;
    uint64_t n = 0;

    for (const struct berth_value *w = workloads ? h->first(workloads) : NULL; w; w = h->next(w))
        n += nw_get(w, "dependencies") ? h->count(nw_get(w, "dependencies")) : 0;
    g->dependencies = n ? calloc(n, sizeof *g->dependencies) : NULL;
    if (!g->dependencies)
        return;
    for (const struct berth_value *w = h->first(workloads); w; w = h->next(w)) {
        const struct berth_value *list = nw_get(w, "dependencies");
        for (const struct berth_value *d = list ? h->first(list) : NULL; d; d = h->next(d)) {
            struct nw_dependency *to = &g->dependencies[g->n_dependencies];
            to->at = g->n_dependencies++;
            to->workload = nw_selector(in, w);
            to->on = nw_selector(in, d);
            if (nw_get(d, "maxNetworkCost"))
                (void)h->integer(nw_get(d, "maxNetworkCost"), &to->max_cost);
        }
    }
    qsort(g->dependencies, g->n_dependencies, sizeof *g->dependencies, by_workload);
}

/* The first dependency of the workload; the group's number of them: it has none. */
static uint64_t first_of(const struct nw_group *g, berth_sym workload)
{
    uint64_t low = 0, high = g->n_dependencies;

    while (low < high) {
        uint64_t mid = low + (high - low) / 2;
        if (g->dependencies[mid].workload < workload)
            low = mid + 1;
        else
            high = mid;
    }
    return low < g->n_dependencies && g->dependencies[low].workload == workload ? low
                                                                                : g->n_dependencies;
}

/* Depth first; a workload is known by the first of its dependencies. */
struct visit {
    uint64_t next; /* of its dependencies */
    enum { NEW, OPEN, DONE } state;
};

static berth_sym circle_from(const struct nw_group *g, uint64_t root, struct visit *v,
                             uint64_t *stack)
{
    uint64_t depth = 0, n = g->n_dependencies;

    v[root] = (struct visit){root, OPEN};
    stack[depth++] = root;
    while (depth) {
        uint64_t top = stack[depth - 1], i = v[top].next++;
        if (i == n || g->dependencies[i].workload != g->dependencies[top].workload) {
            v[top].state = DONE;
            depth--;
            continue;
        }
        uint64_t to = first_of(g, g->dependencies[i].on);
        if (to < n && v[to].state == OPEN)
            return g->dependencies[i].on;
        if (to < n && v[to].state == NEW) {
            v[to] = (struct visit){to, OPEN};
            stack[depth++] = to;
        }
    }
    return 0;
}

berth_sym nw_circle(const struct nw_group *g)
{
    uint64_t n = g->n_dependencies;
    struct visit *v = n ? calloc(n, sizeof *v) : NULL;
    uint64_t *stack = n ? calloc(n, sizeof *stack) : NULL;
    berth_sym found = 0;

    for (uint64_t i = 0; v && stack && i < n && !found; i++)
        if (v[i].state == NEW && first_of(g, g->dependencies[i].workload) == i)
            found = circle_from(g, i, v, stack);
    free(v);
    free(stack);
    return found;
}

/* ---- the order ------------------------------------------------------------------------------- */

static int by_rank_workload(const void *x, const void *y)
{
    const struct nw_rank *a = x, *b = y;

    return (a->workload > b->workload) - (a->workload < b->workload);
}

/* Of a list that is in no order, those that upstream's search finds nevertheless. */
static void read_order(struct nw_instance *in, struct nw_group *g, const struct berth_value *order)
{
    struct nw_named *a;
    uint64_t n = nw_list(order, "workload.selector", 0, &a);

    g->ranks = n ? calloc(n, sizeof *g->ranks) : NULL;
    for (uint64_t i = 0; g->ranks && i < n; i++) {
        int64_t index = 0;
        if (nw_search(a, n, a[i].name) != &a[i])
            continue;
        if (nw_get(a[i].value, "index"))
            (void)nw_host->values->integer(nw_get(a[i].value, "index"), &index);
        g->ranks[g->n_ranks++] =
            (struct nw_rank){nw_host->base->intern(in->home, a[i].name), (int32_t)index};
    }
    free(a);
}

int32_t nw_rank(const struct nw_group *g, berth_sym workload)
{
    const struct nw_rank key = {workload, 0};
    const struct nw_rank *r =
        g->n_ranks ? bsearch(&key, g->ranks, g->n_ranks, sizeof key, by_rank_workload) : NULL;

    return r ? r->index : -1;
}

/* ---- kept ------------------------------------------------------------------------------------ */

static void forget(struct nw_group *g)
{
    free(g->dependencies);
    free(g->ranks);
    g->dependencies = NULL;
    g->ranks = NULL;
    g->n_dependencies = g->n_ranks = 0;
}

static struct nw_group **place(const struct nw_instance *in, berth_sym name)
{
    uint64_t mask = in->cap_groups - 1, i = (name * UINT64_C(0x9e3779b97f4a7c15)) >> 32;

    for (; in->groups[i & mask] && in->groups[i & mask]->name != name; i++)
        ;
    return &in->groups[i & mask];
}

void nw_groups_fini(struct nw_instance *in)
{
    for (uint64_t i = 0; i < in->cap_groups; i++)
        if (in->groups[i]) {
            forget(in->groups[i]);
            free(in->groups[i]);
        }
    free(in->groups);
    in->groups = NULL;
    in->n_groups = in->cap_groups = 0;
}

/* 0: no memory. */
static int grow(struct nw_instance *in)
{
    if (in->n_groups >= GROUPS_MAX)
        nw_groups_fini(in);
    struct nw_instance was = *in;
    in->cap_groups = was.cap_groups ? 2 * was.cap_groups : 64;
    in->groups = calloc(in->cap_groups, sizeof(struct nw_group *));
    if (!in->groups) {
        in->groups = was.groups;
        in->cap_groups = was.cap_groups;
        return 0;
    }
    for (uint64_t i = 0; i < was.cap_groups; i++)
        if (was.groups[i])
            *place(in, was.groups[i]->name) = was.groups[i];
    free(was.groups);
    return 1;
}

struct nw_group *nw_group(struct nw_instance *in, struct berth_call *c, berth_sym name)
{
    uint64_t version = nw_host->objects->version(c, NW_GROUPS);

    if (2 * in->n_groups >= in->cap_groups && !grow(in))
        return NULL;
    struct nw_group **at = place(in, name);
    if (!*at) {
        *at = calloc(1, sizeof **at);
        if (!*at)
            return NULL;
        (*at)->name = name;
        in->n_groups++;
    }
    struct nw_group *g = *at;
    if (g->read && g->version == version)
        return g;
    const struct berth_value *v = nw_find(in, c, NW_GROUPS, nw_host->base->text(in->home, name));
    forget(g);
    g->read = 1;
    g->looked = 0;
    g->version = version;
    g->exists = v != NULL;
    read_dependencies(in, g, nw_get(nw_get(v, "spec"), "workloads"));
    read_order(in, g, nw_get(nw_get(v, "status"), "topologyOrder"));
    if (!g->n_ranks)
        nw_make_order(in, g, nw_get(v, "spec"));
    if (g->ranks)
        qsort(g->ranks, g->n_ranks, sizeof *g->ranks, by_rank_workload);
    return g;
}
