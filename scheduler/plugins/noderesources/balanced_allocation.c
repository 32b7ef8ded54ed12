/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/noderesources/balanced_allocation.c - nodes whose resources fill up evenly are
 * better
 *
 * Upstream:   pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go; differences:
 *             none.
 */
#include <math.h>

#include "common/base/map.h"
#include "scheduler/plugins/noderesources/class_devices.h"
#include "scheduler/plugins/registry.h"

/* How even the fractions in use are, 0..100. The order of the floating point operations is
 * upstream's: another order changes the last bit and with it the score. */
static int64_t evenness(const struct bh_res_view *v, bool with_pod)
{
    double f[BH_RES_MAX], sum = 0, std = 0;

    for (uint32_t i = 0; i < v->n; i++) {
        f[i] = (double)(with_pod ? v->v[i].requested : v->v[i].used) / (double)v->v[i].alloc;
        if (f[i] > 1)
            f[i] = 1;
        sum += f[i];
    }
    if (v->n == 2) {
        std = fabs((f[0] - f[1]) / 2);
    } else if (v->n > 2) {
        double mean = sum / (double)v->n, squares = 0;
        for (uint32_t i = 0; i < v->n; i++)
            squares = squares + (f[i] - mean) * (f[i] - mean);
        std = sqrt(squares / (double)v->n);
    }
    return (int64_t)((1 - std) * 100.0);
}

/* 75 = the pod leaves the balance as it is; more = it improves it. */
static int64_t balance(const struct bh_res_view *v)
{
    return 50 + (50 + evenness(v, true) - evenness(v, false)) / 2;
}

struct args {
    struct bh_res_list resources;
    struct bh_class_devices *devices;
};

static const struct bh_res_list *resources_of(const struct bh_call *c)
{
    return &((const struct args *)c->args)->resources;
}

static struct bh_res_wanted wanted(struct bh_call *c)
{
    return (struct bh_res_wanted){
        .requests = bh_res_requests(c, resources_of(c), &c->pod->shape->used),
        .devices = bh_class_devices_get(((const struct args *)c->args)->devices, resources_of(c),
                                        c->objects)};
}

static bool wants_any(struct bh_call *c, const struct bh_res_wanted *w)
{
    for (uint32_t i = 0; i < resources_of(c)->n; i++)
        if (w->requests[i] != 0)
            return true;
    return false;
}

static const struct bh_status *pre_score(struct bh_call *c, const uint32_t *rows BH_UNUSED,
                                         uint32_t n BH_UNUSED)
{
    const struct bh_res_wanted w = wanted(c);

    c->pre_score_state = bh_arena_memdup(c->arena, &w, sizeof w);
    return wants_any(c, &w) ? NULL : &bh_status_skip;
}

static const struct bh_status *score(struct bh_call *c, const struct bh_node_info *ni, int64_t *ret)
{
    /* PreScore may be disabled while Score is not. */
    const struct bh_res_wanted *st = c->pre_score_state, w = st ? *st : wanted(c);
    struct bh_res_view v;

    *ret = 0;
    if (!st && !wants_any(c, &w))
        return NULL;
    bh_res_view_node(&v, resources_of(c), w.requests, ni, false, w.devices);
    *ret = balance(&v);
    return NULL;
}

static void score_rows(struct bh_call *c, const uint32_t *rows, uint32_t n, int64_t *ret)
{
    const struct bh_res_wanted *w = c->pre_score_state;
    struct bh_res_columns cols;
    struct bh_res_view v;

    bh_res_columns_resolve(&cols, resources_of(c), w->requests, &c->cache->cols, false, w->devices);
    for (uint32_t i = 0; i < n; i++) {
        if (bh_likely(cols.complete))
            bh_res_view_row(&v, &cols, rows[i]);
        else
            bh_res_view_node(&v, resources_of(c), w->requests, c->cache->rows[rows[i]], false,
                             w->devices);
        ret[i] = balance(&v);
    }
}

/* ---- args ---- */

static void args_check(const struct bh_plugin *self BH_UNUSED, const struct bh_json *args,
                       const char *path, struct bh_field_errors *errs)
{
    const struct bh_json *list = bh_json_get(args, "resources");
    struct bh_map seen BH_CLEANUP(bh_map_fini) = {0};
    unsigned i = 0;

    bh_json_each(r, list) {
        const char *name = bh_json_get_text(r, "name");
        int64_t weight = bh_json_get_i64(r, "weight", 0);
        if (bh_map_put(&seen, name, strlen(name), &seen))
            bh_field_error(errs, "%s.resources[%u].name: Duplicate value: \"%s\"", path, i, name);
        if (weight != 0 && weight != 1)
            bh_field_error(errs, "%s.resources[%u].weight: Invalid value: %lld: must be 1", path, i,
                           (long long)weight);
        i++;
    }
    if (i > BH_RES_MAX)
        bh_field_error(errs, "%s.resources: Too many: %u: must have at most %u items", path, i,
                       BH_RES_MAX);
}

static int args_new(const struct bh_plugin_env *env, const struct bh_json *args, void **ret,
                    struct bh_err *err BH_UNUSED)
{
    struct args *a = bh_arena_new(env->arena, struct args);

    bh_res_list_new(&a->resources, bh_json_get(args, "resources"), env->tab);
    a->devices = bh_class_devices_new(env);
    *ret = a;
    return 0;
}

static void args_free(void *args)
{
    if (args)
        bh_class_devices_free(((struct args *)args)->devices);
}

static uint64_t epoch(struct bh_call *c)
{
    return bh_class_devices_epoch(((const struct args *)c->args)->devices, resources_of(c),
                                  c->objects);
}

static const struct bh_field schema[] = {
    {"resources", BH_FIELD_OBJECTS, bh_res_schema, "ResourceSpec"},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};

const struct bh_plugin bh_plugin_balanced_allocation = {
    BH_PLUGIN_HEAD("NodeResourcesBalancedAllocation"),
    .flags = BH_PLUGIN_NODE_LOCAL,
    .args_schema = schema,
    .args_check = args_check,
    .args_new = args_new,
    .args_free = args_free,
    .events = bh_no_events,
    .pre_score = pre_score,
    .score = score,
    .score_rows = score_rows,
    .epoch = epoch,
};
