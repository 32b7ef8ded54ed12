/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/gangscheduling/topology_placement.c - TopologyPlacementGenerator: a group with a
 * topology constraint is tried domain by domain, by name
 *
 * Upstream: pkg/scheduler/framework/plugins/topologyaware; differences: upstream's order of domains is
 *           that of a Go map, so any order is a legal outcome.
 */
#include "scheduler/framework/framework.h"
#include "scheduler/plugins/registry.h"

#define NAME "TopologyPlacementGenerator"
#define FAIL(c, ...)                                                                               \
    bh_status_new((c)->arena, BH_ERROR, NAME,                                                      \
                  "cannot determine domain for already scheduled pods: " __VA_ARGS__)

struct domain {
    bh_sym value; /* of the label */
    const char *name;
    uint32_t n, at; /* its nodes; where the next of them goes */
};
struct located { /* the nodes that have the label */
    uint32_t *row, *domain, n;
    struct domain *v; /* in the order in which they were met */
    uint32_t n_domains;
};

/* A value may be empty, and is a domain then, too. */
static bool has_label(const struct bh_node_info *ni, bh_sym key, bh_sym *ret)
{
    return bh_labels_get(bh_rec_at(ni->rec, ni->rec->labels, struct bh_kv), ni->rec->labels.n, key,
                         ret);
}

static const char *domain_of(const struct bh_call *c, const struct bh_node_info *ni, bh_sym key)
{
    bh_sym value;

    return has_label(ni, key, &value) ? bh_sym_text(c->tab, value) : NULL;
}

/* Members that are on nodes already say where the others have to be. */
static const struct bh_status *fixed_domain(struct bh_call *c, bh_sym key, const char **ret)
{
    static const enum bh_member_place on_nodes[] = {BH_MEMBER_ASSUMED, BH_MEMBER_ASSIGNED};
    const struct bh_group *g =
        bh_groups_find(&c->cache->groups, c->pod->shape->namespace_, c->pod->rec->group);
    const struct bh_member *m;

    *ret = NULL;
    for (unsigned i = 0; g && i < BH_ARRAY_LEN(on_nodes); i++)
        TAILQ_FOREACH(m, &g->at[on_nodes[i]], link) {
            const struct bh_pod_rec *p = bh_cache_pod(c->cache, bh_member_uid(m))->info.rec;
            const struct bh_node_info *ni = bh_cache_node(c->cache, p->node);
            const char *name = bh_rec_text(p, p->name).p;
            const char *domain = ni ? domain_of(c, ni, key) : NULL;
            if (!ni)
                return FAIL(c,
                            "getting node for pod %s/%s: nodeinfo not found for node name \"%s\"",
                            bh_rec_namespace(p), name, bh_sym_text(c->tab, p->node));
            if (!domain)
                return FAIL(c, "no topology domain found for pod %s/%s", bh_rec_namespace(p), name);
            if (*ret && !bh_streq(*ret, domain)) {
                const bool turned = strcmp(*ret, domain) > 0;
                return FAIL(c, "more than 1 domain found for pod group: %s, %s",
                            turned ? domain : *ret, turned ? *ret : domain);
            }
            *ret = domain;
        }
    return NULL;
}

/* slot: by value, open addressing; 0 = free, else the domain and 1. */
static uint32_t domain_at(const struct bh_call *c, struct located *l, uint32_t *slot, uint32_t mask,
                          bh_sym value)
{
    uint32_t i = (uint32_t)value * UINT32_C(2654435769) & mask;

    while (slot[i] && l->v[slot[i] - 1].value != value)
        i = (i + 1) & mask;
    if (!slot[i]) {
        l->v[l->n_domains] = (struct domain){.value = value, .name = bh_sym_text(c->tab, value)};
        slot[i] = ++l->n_domains;
    }
    return slot[i] - 1;
}

/* Of the fixed domain only if there is one. Equal values are one symbol, so no text is compared. */
static void locate(struct bh_call *c, bh_sym key, const char *fixed, struct located *l)
{
    const uint32_t room = c->cache->n_nodes + 1;
    uint32_t mask = 1;

    while (mask < 2 * room)
        mask *= 2;
    uint32_t *slot = bh_arena_new_array(c->arena, uint32_t, mask);
    *l = (struct located){.row = bh_arena_new_array(c->arena, uint32_t, room),
                          .domain = bh_arena_new_array(c->arena, uint32_t, room),
                          .v = bh_arena_new_array(c->arena, struct domain, room)};
    for (uint32_t row = 0; row < c->cache->cols.n_rows; row++) {
        bh_sym value;
        if (!bh_row_bit(&c->cache->cols, BH_ROW_LIVE, row) ||
            !has_label(c->cache->rows[row], key, &value) ||
            (fixed && !bh_streq(bh_sym_text(c->tab, value), fixed)))
            continue;
        l->domain[l->n] = domain_at(c, l, slot, mask - 1, value);
        l->row[l->n] = row;
        l->v[l->domain[l->n++]].n++;
    }
}

static int by_name(const void *pa, const void *pb)
{
    const struct domain *const *a = pa, *const *b = pb;

    return strcmp((*a)->name, (*b)->name);
}

/* A placement each, by name, of its rows in their order. */
static struct bh_placement *placements_of(struct bh_call *c, struct located *l)
{
    struct bh_placement *v = bh_arena_new_array(c->arena, struct bh_placement, l->n_domains + 1);
    struct domain **sorted = bh_arena_new_array(c->arena, struct domain *, l->n_domains + 1);
    uint32_t *rows = bh_arena_new_array(c->arena, uint32_t, l->n + 1), at = 0;

    for (uint32_t i = 0; i < l->n_domains; i++)
        sorted[i] = &l->v[i];
    if (l->n_domains > 1)
        qsort(sorted, l->n_domains, sizeof(*sorted), by_name);
    for (uint32_t i = 0; i < l->n_domains; i++) {
        v[i] = (struct bh_placement){.name = sorted[i]->name, .rows = rows + at, .n = sorted[i]->n};
        sorted[i]->at = at;
        at += sorted[i]->n;
    }
    for (uint32_t i = 0; i < l->n; i++)
        rows[l->v[l->domain[i]].at++] = l->row[i];
    return v;
}

static void all_nodes(struct bh_call *c, struct bh_placement *ret)
{
    uint32_t *rows = bh_arena_new_array(c->arena, uint32_t, c->cache->n_nodes + 1), n = 0;

    for (uint32_t row = 0; row < c->cache->cols.n_rows; row++)
        if (bh_row_bit(&c->cache->cols, BH_ROW_LIVE, row))
            rows[n++] = row;
    *ret = (struct bh_placement){.name = "", .rows = rows, .n = n};
}

static const struct bh_status *generate(struct bh_call *c, struct bh_placement **ret,
                                        uint32_t *ret_n)
{
    const char *group = bh_sym_text(c->tab, c->pod->rec->group), *fixed;
    struct bh_group_policy p;

    if (!bh_group_policy(c->objects, bh_sym_text(c->tab, c->pod->shape->namespace_), group, &p))
        return bh_status_new(c->arena, BH_ERROR, NAME,
                             "podgroup.scheduling.k8s.io \"%s\" not found", group);
    if (!p.topology_key) {
        *ret = bh_arena_new(c->arena, struct bh_placement);
        all_nodes(c, *ret);
        *ret_n = 1;
        return NULL;
    }
    const bh_sym key = bh_sym_internc(c->tab, p.topology_key);
    const struct bh_status *s = fixed_domain(c, key, &fixed);
    if (s)
        return s;
    struct located l;
    locate(c, key, fixed, &l);
    *ret = placements_of(c, &l);
    *ret_n = l.n_domains;
    return NULL;
}

const struct bh_plugin bh_plugin_topology_placement_generator = {
    BH_PLUGIN_HEAD(NAME),
    .flags = BH_PLUGIN_NODE_LOCAL | BH_PLUGIN_HINTS_BY_ESSENCE,
    .events = bh_no_events,
    .placement_generate = generate,
};
