/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/noderesources/fit.c - does the node have what the pod requests; and how full
 * will it be
 *
 * Upstream: pkg/scheduler/framework/plugins/noderesources/fit.go; differences: none.
 */
#include "common/k8s/compile.h"
#include "scheduler/plugins/dynamicresources/device_class.h"
#include "scheduler/plugins/noderesources/fit.h"
#include "scheduler/plugins/registry.h"

#define NAME "NodeResourcesFit"

BH_STATUS_CONST(no_state, BH_ERROR, NAME,
                "error reading \"PreFilterNodeResourcesFit\" from cycleState: not found");
static const char *const too_many_pods = "Too many pods";
static const char *const no_cpu = "Insufficient cpu";
static const char *const no_memory = "Insufficient memory";
static const char *const no_ephemeral = "Insufficient ephemeral-storage";

/* ---- Filter ---- */

bool bh_fit_ignores(struct bh_fit_args *a, bh_sym name)
{
    if (!a->n_ignored && !a->n_ignored_groups)
        return false;

    uint64_t v;
    if (!bh_umap_get(&a->extended, name, &v)) {
        v = bh_resource_is_extended(bh_sym_text(a->tab, name));
        bh_umap_put(&a->extended, name, v);
    }
    if (!v)
        return false;
    for (uint32_t i = 0; i < a->n_ignored; i++)
        if (a->ignored[i] == name)
            return true;
    const char *text = bh_sym_text(a->tab, name);
    size_t group = strcspn(text, "/");
    for (uint32_t i = 0; i < a->n_ignored_groups; i++)
        if (strlen(a->ignored_groups[i]) == group && memcmp(a->ignored_groups[i], text, group) == 0)
            return true;
    return false;
}

/* What one node lacks, collected in upstream's order. */
struct shortage {
    const char **reasons; /* NULL: only whether */
    uint32_t n;
    bool hopeless; /* more than the empty node has */
};

static void lack(struct shortage *s, const char *reason, bool hopeless)
{
    if (s->reasons)
        s->reasons[s->n] = reason;
    s->n++;
    s->hopeless |= hopeless;
}

static void check_node(struct bh_fit_args *a, const struct bh_objects *objects,
                       const struct bh_shape_rec *s, const struct bh_node_info *ni,
                       struct shortage *out)
{
    const struct bh_node_rec *n = ni->rec;

    if ((bh_sum)ni->n_pods + 1 > n->alloc_pods)
        lack(out, too_many_pods, false);
    if (s->fit.cpu_milli > 0 && s->fit.cpu_milli > n->alloc_cpu_milli - ni->used_cpu_milli)
        lack(out, no_cpu, s->fit.cpu_milli > n->alloc_cpu_milli);
    if (s->fit.memory_bytes > 0 &&
        s->fit.memory_bytes > n->alloc_memory_bytes - ni->used_memory_bytes)
        lack(out, no_memory, s->fit.memory_bytes > n->alloc_memory_bytes);
    if (s->fit.ephemeral_bytes > 0 &&
        s->fit.ephemeral_bytes > n->alloc_ephemeral_bytes - ni->used_ephemeral_bytes)
        lack(out, no_ephemeral, s->fit.ephemeral_bytes > n->alloc_ephemeral_bytes);
    const struct bh_res *r = bh_rec_at(s, s->fit.scalars, struct bh_res);
    for (uint32_t i = 0; i < s->fit.scalars.n; i++) {
        if (r[i].value == 0 || bh_fit_ignores(a, r[i].name))
            continue;
        int64_t alloc = bh_node_rec_scalar(ni->rec, r[i].name, NULL);
        if (alloc == 0 && bh_device_class_maps(objects, bh_sym_text(a->tab, r[i].name)))
            continue; /* DynamicResources decides */
        if ((bh_sum)r[i].value <= (bh_sum)alloc - bh_node_info_used_scalar(ni, r[i].name))
            continue;
        uint64_t reason = 0;
        /* Made once per resource: counting them later compares addresses. */
        if (out->reasons && !bh_umap_get(&a->reasons, r[i].name, &reason)) {
            reason = (uint64_t)(uintptr_t)bh_arena_printf(a->arena, "Insufficient %s",
                                                          bh_sym_text(a->tab, r[i].name));
            bh_umap_put(&a->reasons, r[i].name, reason);
        }
        lack(out, (const char *)(uintptr_t)reason, r[i].value > alloc);
    }
}

static const struct bh_status *pre_filter(struct bh_call *c, struct bh_node_set *ret BH_UNUSED)
{
    (void)c; /* the request vector is part of the shape */
    return NULL;
}

static const struct bh_status *filter(struct bh_call *c, const struct bh_node_info *node)
{
    struct bh_fit_args *a = (struct bh_fit_args *)(uintptr_t)c->args;
    const struct bh_shape_rec *s = c->pod->shape;
    const char *reasons[64], **r = reasons;

    if (4 + s->fit.scalars.n > BH_ARRAY_LEN(reasons))
        r = bh_arena_new_array(c->arena, const char *, 4 + s->fit.scalars.n);
    struct shortage lacks = {.reasons = r};
    check_node(a, c->objects, s, node, &lacks);
    if (!lacks.n)
        return NULL;
    struct bh_status *st = bh_arena_new(c->arena, struct bh_status);
    *st = (struct bh_status){.code = lacks.hopeless ? BH_UNSCHEDULABLE_AND_UNRESOLVABLE
                                                    : BH_UNSCHEDULABLE,
                             .n_reasons = lacks.n,
                             .reasons = bh_arena_memdup(c->arena, r, lacks.n * sizeof *r),
                             .plugin = NAME};
    return st;
}

static uint32_t filter_basic(const struct bh_shape_rec *s, const struct bh_columns *c,
                             uint32_t *rows, uint32_t n)
{
    int64_t cpu = s->fit.cpu_milli, mem = s->fit.memory_bytes, eph = s->fit.ephemeral_bytes;
    uint32_t m = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t row = rows[i];
        bool ok = c->pods_free[row] >= 1;
        ok &= cpu <= 0 || cpu <= bh_sub_sat(c->alloc_cpu_milli[row], c->used_cpu_milli[row]);
        ok &= mem <= 0 || mem <= bh_sub_sat(c->alloc_memory_bytes[row], c->used_memory_bytes[row]);
        ok &= eph <= 0 ||
              eph <= bh_sub_sat(c->alloc_ephemeral_bytes[row], c->used_ephemeral_bytes[row]);
        rows[m] = row;
        m += ok;
    }
    return m;
}

static uint32_t filter_rows(struct bh_call *c, uint32_t *rows, uint32_t n)
{
    struct bh_fit_args *a = (struct bh_fit_args *)(uintptr_t)c->args;
    const struct bh_shape_rec *s = c->pod->shape;
    const struct bh_res *r = bh_rec_at(s, s->fit.scalars, struct bh_res);

    n = filter_basic(s, &c->cache->cols, rows, n);
    for (uint32_t i = 0; i < s->fit.scalars.n && n; i++) {
        if (r[i].value == 0 || bh_fit_ignores(a, r[i].name))
            continue;
        bool delegated = bh_device_class_maps(c->objects, bh_sym_text(a->tab, r[i].name));
        const struct bh_scalar_column *col = bh_columns_scalar(&c->cache->cols, r[i].name);
        uint32_t m = 0;
        for (uint32_t k = 0; k < n; k++) {
            const struct bh_node_info *ni = c->cache->rows[rows[k]];
            int64_t alloc =
                col ? col->alloc[rows[k]] : bh_node_rec_scalar(ni->rec, r[i].name, NULL);
            int64_t used =
                col ? col->used[rows[k]] : bh_sum_i64(bh_node_info_used_scalar(ni, r[i].name));
            if ((alloc == 0 && delegated) || r[i].value <= bh_sub_sat(alloc, used))
                rows[m++] = rows[k];
        }
        n = m;
    }
    return n;
}

/* ---- Score ---- */

static struct bh_res_wanted wanted(struct bh_call *c)
{
    const struct bh_fit_args *a = c->args;

    return (struct bh_res_wanted){
        .requests = bh_res_requests(c, &a->resources, &c->pod->shape->score),
        .devices = bh_class_devices_get(a->devices, &a->resources, c->objects)};
}

static const struct bh_status *pre_score(struct bh_call *c, const uint32_t *rows BH_UNUSED,
                                         uint32_t n BH_UNUSED)
{
    const struct bh_res_wanted w = wanted(c);

    c->pre_score_state = bh_arena_memdup(c->arena, &w, sizeof w);
    return NULL;
}

/* PreScore may be disabled while Score is not. */
static struct bh_res_wanted state_of(struct bh_call *c)
{
    return c->pre_score_state ? *(const struct bh_res_wanted *)c->pre_score_state : wanted(c);
}

static const struct bh_status *score(struct bh_call *c, const struct bh_node_info *ni, int64_t *ret)
{
    const struct bh_fit_args *a = c->args;
    const struct bh_res_wanted w = state_of(c);
    struct bh_res_view v;

    bh_res_view_node(&v, &a->resources, w.requests, ni, true, w.devices);
    *ret = bh_fit_score(a, &v);
    return NULL;
}

static void score_rows(struct bh_call *c, const uint32_t *rows, uint32_t n, int64_t *ret)
{
    const struct bh_fit_args *a = c->args;
    const struct bh_res_wanted w = state_of(c);
    struct bh_res_columns cols;
    struct bh_res_view v;

    bh_res_columns_resolve(&cols, &a->resources, w.requests, &c->cache->cols, true, w.devices);
    for (uint32_t i = 0; i < n; i++) {
        if (bh_likely(cols.complete))
            bh_res_view_row(&v, &cols, rows[i]);
        else
            bh_res_view_node(&v, &a->resources, w.requests, c->cache->rows[rows[i]], true,
                             w.devices);
        ret[i] = bh_fit_score(a, &v);
    }
}

/* ---- PlacementScore ---- */

/* How full its nodes are together, with the group: the fuller, the less is broken up. */
static const struct bh_status *placement_score(struct bh_call *c, const struct bh_placement *p,
                                               int64_t *ret)
{
    struct bh_fit_args most = *(const struct bh_fit_args *)c->args;
    struct bh_res_view all = {0}, one;

    most.strategy = BH_FIT_MOST;
    for (uint32_t i = 0; i < most.resources.n; i++) {
        const struct bh_res_list only = {.v = {most.resources.v[i]}, .n = 1};
        struct bh_res_figures sum = {.weight = only.v[0].weight};
        for (uint32_t k = 0; k < p->n_proposed; k++) {
            struct bh_call member = {.arena = c->arena, .pod = &p->proposed[k]};
            sum.requested = bh_add_sat(
                sum.requested, *bh_res_requests(&member, &only, &p->proposed[k].shape->score));
        }
        struct bh_res_columns cols;
        bh_res_columns_resolve(&cols, &only, &sum.requested, &c->cache->cols, true, NULL);
        for (uint32_t k = 0; k < p->n; k++) {
            if (bh_likely(cols.complete))
                bh_res_view_row(&one, &cols, p->rows[k]);
            else
                bh_res_view_node(&one, &only, &sum.requested, c->cache->rows[p->rows[k]], true,
                                 NULL);
            if (one.n) {
                sum.alloc = bh_add_sat(sum.alloc, one.v[0].alloc);
                sum.used = bh_add_sat(sum.used, one.v[0].used);
            }
        }
        sum.requested = bh_add_sat(sum.requested, sum.used);
        if (sum.alloc)
            all.v[all.n++] = sum;
    }
    *ret = bh_fit_score(&most, &all);
    return NULL;
}

static uint64_t epoch(struct bh_call *c)
{
    const struct bh_fit_args *a = c->args;

    return bh_class_devices_epoch(a->devices, &a->resources, c->objects);
}

const struct bh_plugin bh_plugin_fit = {
    BH_PLUGIN_HEAD(NAME),
    .flags = BH_PLUGIN_NODE_LOCAL | BH_PLUGIN_HINTS_BY_ESSENCE | BH_PLUGIN_READS_SUMS,
    .args_schema = bh_fit_schema,
    .args_check = bh_fit_args_check,
    .check_at_construction = true,
    .args_new = bh_fit_args_new,
    .args_free = bh_fit_args_free,
    .events = bh_fit_events,
    .pre_filter = pre_filter,
    .filter = filter,
    .without_pre_filter = &no_state,
    .filter_rows = filter_rows,
    .pre_score = pre_score,
    .score = score,
    .score_rows = score_rows,
    .placement_score = placement_score,
    .epoch = epoch,
};
