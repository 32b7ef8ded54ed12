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

struct located { /* a node that has the label */
    const char *domain;
    uint32_t row;
};

static const char *domain_of(const struct bh_call *c, const struct bh_node_info *ni, bh_sym key)
{
    bh_sym value;

    return bh_labels_get(bh_rec_at(ni->rec, ni->rec->labels, struct bh_kv), ni->rec->labels.n, key,
                         &value)
               ? bh_sym_text(c->tab, value)
               : NULL;
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

static int by_domain(const void *pa, const void *pb)
{
    const struct located *a = pa, *b = pb;
    const int c = strcmp(a->domain, b->domain);

    return c ? c : (a->row > b->row) - (a->row < b->row);
}

/* The nodes with the label, of the fixed domain only if there is one, by domain. */
static struct located *locate(struct bh_call *c, bh_sym key, const char *fixed, uint32_t *ret_n)
{
    struct located *v = bh_arena_new_array(c->arena, struct located, c->cache->n_nodes + 1);
    uint32_t n = 0;

    for (uint32_t row = 0; row < c->cache->cols.n_rows; row++) {
        const bool live = bh_row_bit(&c->cache->cols, BH_ROW_LIVE, row);
        const char *domain = live ? domain_of(c, c->cache->rows[row], key) : NULL;
        if (domain && (!fixed || bh_streq(domain, fixed)))
            v[n++] = (struct located){domain, row};
    }
    if (n > 1)
        qsort(v, n, sizeof *v, by_domain);
    *ret_n = n;
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
    const char *ns = bh_sym_text(c->tab, c->pod->shape->namespace_), *fixed;
    const char *group = bh_sym_text(c->tab, c->pod->rec->group);
    struct bh_group_policy p;
    uint32_t n, n_placements = 0;

    if (!bh_group_policy(c->objects, ns, group, &p))
        return bh_status_new(c->arena, BH_ERROR, NAME,
                             "failed to get pod group %s/%s: podgroup.scheduling.k8s.io \"%s\" not "
                             "found",
                             ns, group, group);
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
    const struct located *at = locate(c, key, fixed, &n);
    uint32_t *rows = bh_arena_new_array(c->arena, uint32_t, n + 1);
    struct bh_placement *v = bh_arena_new_array(c->arena, struct bh_placement, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        rows[i] = at[i].row;
        if (!i || !bh_streq(at[i].domain, at[i - 1].domain))
            v[n_placements++] = (struct bh_placement){.name = at[i].domain, .rows = rows + i};
        v[n_placements - 1].n++;
    }
    *ret = v;
    *ret_n = n_placements;
    return NULL;
}

const struct bh_plugin bh_plugin_topology_placement_generator = {
    BH_PLUGIN_HEAD(NAME),
    .flags = BH_PLUGIN_NODE_LOCAL | BH_PLUGIN_HINTS_BY_ESSENCE,
    .events = bh_no_events,
    .placement_generate = generate,
};
