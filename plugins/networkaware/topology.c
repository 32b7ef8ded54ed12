/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/networkaware/topology.c - what it costs from region to region and from zone to zone
 *
 * Upstream builds a map for each node of each pod, of the node's region's list and then its zone's, for each
 * set of weights of the name. Here all lists become one table a level when the object has changed; what
 * comes later in that order wins, as in the map.
 */
#include <stdlib.h>

#include "networkaware.h"

/* ---- reading --------------------------------------------------------------------------------- */

static void add(struct nw_topology *t, enum nw_level level, struct nw_cost cost)
{
    if (t->level[level].n == t->level[level].cap) {
        uint64_t cap = t->level[level].cap ? 2 * t->level[level].cap : 64;
        struct nw_cost *more = realloc(t->level[level].cost, cap * sizeof *more);
        if (!more)
            return;
        t->level[level].cost = more;
        t->level[level].cap = cap;
    }
    t->level[level].cost[t->level[level].n++] = cost;
}

/* One of the weights: upstream's searches decide which of several lists of a name counts. */
static void read_level(struct nw_instance *in, const struct nw_named *keys, uint64_t n_keys,
                       enum nw_level level, int sorted, uint64_t *at)
{
    static const struct berth_str names[NW_LEVELS] = {{"topology.kubernetes.io/region", 29},
                                                      {"topology.kubernetes.io/zone", 27}};
    const struct berth_host_values *h = nw_host->values;
    const struct nw_named *key = nw_search(keys, n_keys, names[level]);
    struct nw_named *origins;
    uint64_t n = nw_list(key ? nw_get(key->value, "originList") : NULL, "origin", sorted, &origins);

    for (uint64_t i = 0; i < n; i++) {
        const struct berth_value *list = nw_get(origins[i].value, "costList");
        if (nw_search(origins, n, origins[i].name) != &origins[i])
            continue;
        uint64_t from = (uint64_t)nw_host->base->intern(in->home, origins[i].name) << 32;
        for (const struct berth_value *x = list ? h->first(list) : NULL; x; x = h->next(x)) {
            const struct berth_value *to = nw_get(x, "destination"), *v = nw_get(x, "networkCost");
            struct nw_cost cost = {.at = (*at)++};
            if (!v || !h->integer(v, &cost.cost))
                continue;
            cost.pair = from | nw_host->base->intern(in->home,
                                                     to ? h->text(to) : (struct berth_str){"", 0});
            add(&in->topology, level, cost);
        }
    }
    free(origins);
}

static int by_pair(const void *x, const void *y)
{
    const struct nw_cost *a = x, *b = y;

    if (a->pair != b->pair)
        return a->pair > b->pair ? 1 : -1;
    return (a->at > b->at) - (a->at < b->at);
}

/* In order; of those of one pair the last stays. */
static void settle(struct nw_topology *t, enum nw_level level)
{
    struct nw_cost *a = t->level[level].cost;
    uint64_t n = t->level[level].n, m = 0;

    if (n)
        qsort(a, n, sizeof *a, by_pair);
    for (uint64_t i = 0; i < n; i++) {
        if (i + 1 < n && a[i + 1].pair == a[i].pair)
            continue;
        a[m++] = a[i];
    }
    t->level[level].n = m;
}

static void read_weights(struct nw_instance *in, const struct berth_value *weights)
{
    /* A program that measures writes its lists in order; what people write is sorted. */
    int sorted = !berth_str_equal(in->weights, BERTH_STR("NetperfCosts"));
    const struct berth_host_values *h = nw_host->values;
    struct nw_topology *t = &in->topology;
    uint64_t at = 0;

    t->level[NW_REGIONS].n = t->level[NW_ZONES].n = 0;
    t->has_weights = 0;
    for (const struct berth_value *w = weights ? h->first(weights) : NULL; w; w = h->next(w)) {
        const struct berth_value *name = nw_get(w, "name");
        struct nw_named *keys;
        if (!berth_str_equal(name ? h->text(name) : (struct berth_str){"", 0}, in->weights))
            continue;
        uint64_t n = nw_list(nw_get(w, "topologyList"), "topologyKey", sorted, &keys);
        t->has_weights = 1;
        read_level(in, keys, n, NW_REGIONS, sorted, &at);
        read_level(in, keys, n, NW_ZONES, sorted, &at);
        free(keys);
    }
    settle(t, NW_REGIONS);
    settle(t, NW_ZONES);
}

struct nw_topology *nw_topology(struct nw_instance *in, struct berth_call *c)
{
    struct nw_topology *t = &in->topology;
    uint64_t version = nw_host->objects->version(c, NW_TOPOLOGIES);

    if (t->read && t->version == version)
        return t;
    const struct berth_value *v = nw_find(in, c, NW_TOPOLOGIES, in->topology_name);
    t->read = 1;
    t->version = version;
    t->exists = v != NULL;
    read_weights(in, nw_get(nw_get(v, "spec"), "weights"));
    return t;
}

void nw_topology_fini(struct nw_instance *in)
{
    free(in->topology.level[NW_REGIONS].cost);
    free(in->topology.level[NW_ZONES].cost);
}

/* ---- looking up ------------------------------------------------------------------------------ */

static const struct nw_cost *find(const struct nw_topology *t, enum nw_level level, uint64_t pair)
{
    const struct nw_cost *a = t->level[level].cost;
    uint64_t low = 0, high = t->level[level].n;

    while (low < high) {
        uint64_t mid = low + (high - low) / 2;
        if (a[mid].pair < pair)
            low = mid + 1;
        else
            high = mid;
    }
    return low < t->level[level].n && a[low].pair == pair ? &a[low] : NULL;
}

/* A region and a zone of the same name share their costs in upstream's map: the later one wins. */
int nw_between(const struct nw_topology *t, berth_sym region, berth_sym zone, berth_sym origin,
               berth_sym destination, int64_t *ret)
{
    uint64_t pair = (uint64_t)origin << 32 | destination;
    const struct nw_cost *r = region && region == origin ? find(t, NW_REGIONS, pair) : NULL,
                         *z = zone && zone == origin ? find(t, NW_ZONES, pair) : NULL,
                         *found = r && z ? (z->at > r->at ? z : r)
                                  : r    ? r
                                         : z;

    if (found)
        *ret = found->cost;
    return found != NULL;
}
