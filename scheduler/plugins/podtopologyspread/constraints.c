/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/podtopologyspread/constraints.c - which constraints hold, and what they count
 *
 * Upstream: pkg/scheduler/framework/plugins/podtopologyspread/common.go.
 */
#include "scheduler/plugins/podtopologyspread/spread.h"

struct bh_constraints bh_spread_constraints_with(const struct bh_spread_args *args,
                                                 const struct bh_shape_rec *shape, uint32_t action,
                                                 const struct bh_label_selector *selector,
                                                 const struct bh_symtab *tab, struct bh_arena *a)
{
    bool own = shape->spread.n > 0; /* each has its own selector */
    const struct bh_spread *v = own ? bh_rec_at(shape, shape->spread, struct bh_spread) : args->v;
    uint32_t n = own ? shape->spread.n : args->n;

    if (!own && (!selector || bh_selector_is_everything(selector)))
        return (struct bh_constraints){0};
    struct bh_constraints out = {.v = bh_arena_new_array(a, struct bh_constraint, n ? n : 1)};
    for (uint32_t i = 0; i < n; i++) {
        const struct bh_label_selector *sel = own ? &v[i].selector : selector;
        if (!(v[i].flags & action))
            continue;
        if (sel->flags & BH_SELECTOR_INVALID)
            return (struct bh_constraints){
                .error = bh_arena_printf(a, "obtaining pod's %s topology spread constraints: %s",
                                         action == BH_SPREAD_HARD ? "hard" : "soft",
                                         bh_sym_text(tab, sel->error))};
        out.v[out.n++] = (struct bh_constraint){.max_skew = v[i].max_skew,
                                                .min_domains = v[i].min_domains,
                                                .key = v[i].topology_key,
                                                .flags = v[i].flags,
                                                .rec = own ? (const void *)shape : selector,
                                                .sel = sel};
    }
    return out;
}

struct bh_constraints bh_spread_constraints(struct bh_call *c, uint32_t action)
{
    const struct bh_spread_args *args = c->args;
    const struct bh_shape_rec *shape = c->pod->shape;
    const struct bh_label_selector *selector = NULL;
    bool any_default = false;
    size_t size;

    for (uint32_t i = 0; i < args->n; i++)
        any_default |= (args->v[i].flags & action) != 0;
    if (!shape->spread.n && any_default) {
        selector = bh_selector_memo_get(args->memo, c, &size);
        selector = bh_arena_memdup(c->arena, selector, size);
    }
    return bh_spread_constraints_with(args, shape, action, selector, c->tab, c->arena);
}

bool bh_constraint_matches(const struct bh_constraint *k, const struct bh_shape_rec *pod,
                           const struct bh_symtab *tab)
{
    return bh_selector_matches(k->rec, k->sel, bh_rec_at(pod, pod->labels, struct bh_kv),
                               pod->labels.n, tab);
}

/* ---- nodes ---- */

bool bh_has_all_keys(const struct bh_node_rec *n, const struct bh_constraints *k)
{
    bh_sym value;

    for (uint32_t i = 0; i < k->n; i++)
        if (!bh_topology_value(n, k->v[i].key, &value))
            return false;
    return true;
}

uint32_t bh_node_inclusion(const struct bh_call *c, const struct bh_node_rec *n)
{
    const struct bh_shape_rec *s = c->pod->shape;
    bool affinity = bh_required_node_match(s, n, c->tab, c->cache->sym.metadata_name);

    return (affinity ? BH_SPREAD_HONOR_AFFINITY : 0) |
           (bh_taints_tolerated(s, n) ? BH_SPREAD_HONOR_TAINTS : 0);
}

/* ---- pods ---- */

void bh_pod_counter_init(struct bh_pod_counter *p, struct bh_call *c)
{
    uint32_t n = BH_MAX(c->cache->shapes.n, 1u);

    *p = (struct bh_pod_counter){.c = c, .memo = bh_arena_new_array(c->arena, uint8_t, n)};
}

void bh_pod_counter_begin(struct bh_pod_counter *p, const struct bh_constraint *k)
{
    if (p->k)
        memset(p->memo, 0, p->c->cache->shapes.n);
    p->k = k;
}

static bool counted(struct bh_pod_counter *p, const struct bh_pod_info *pod)
{
    uint8_t *m = &p->memo[pod->shape_id];

    if (pod->rec->flags & BH_POD_TERMINATING)
        return false;
    if (!*m)
        *m = 1 + (pod->shape->namespace_ == p->c->pod->shape->namespace_ &&
                  bh_constraint_matches(p->k, pod->shape, p->c->tab));
    return *m == 2;
}

/* A selector that means every pod counts none: upstream's shortcut for constraints without one. */
int64_t bh_count_pods(struct bh_pod_counter *p, const struct bh_node_info *ni)
{
    int64_t n = 0;

    if (bh_selector_is_everything(p->k->sel))
        return 0;
    for (uint32_t i = 0; i < ni->n_pods; i++)
        n += counted(p, ni->pods[i]);
    return n;
}
