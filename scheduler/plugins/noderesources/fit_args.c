/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/noderesources/fit_args.c - NodeResourcesFitArgs
 *
 * Upstream: pkg/scheduler/apis/config/validation/validation_pluginargs.go; differences: none.
 */
#include <inttypes.h>
#include <stdio.h>

#include "scheduler/plugins/noderesources/fit.h"

static const struct bh_field ratio_schema[] = {
    {"shape", BH_FIELD_OBJECTS, bh_field_shape_point, "UtilizationShapePoint"},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field strategy_schema[] = {
    {"type", BH_FIELD_STRING, NULL, "ScoringStrategyType"},
    {"resources", BH_FIELD_OBJECTS, bh_res_schema, "ResourceSpec"},
    {"requestedToCapacityRatio", BH_FIELD_OBJECT, ratio_schema, "RequestedToCapacityRatioParam"},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
const struct bh_field bh_fit_schema[] = {
    {"ignoredResources", BH_FIELD_STRINGS, NULL, NULL},
    {"ignoredResourceGroups", BH_FIELD_STRINGS, NULL, NULL},
    {"scoringStrategy", BH_FIELD_OBJECT, strategy_schema, "ScoringStrategy"},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};

static void check_ignored(const struct bh_json *args, struct bh_field_errors *errs)
{
    unsigned i = 0;
    char at[64];

    bh_json_each(r, bh_json_get(args, "ignoredResources")) {
        snprintf(at, sizeof at, "ignoredResources[%u]", i++);
        bh_field_qualified_name(errs, at, r->s.p);
    }
    i = 0;
    bh_json_each(g, bh_json_get(args, "ignoredResourceGroups")) {
        snprintf(at, sizeof at, "ignoredResourceGroups[%u]", i++);
        if (memchr(g->s.p, '/', g->s.n))
            bh_field_error(errs, "%s: Invalid value: \"%s\": resource group name can't contain '/'",
                           at, g->s.p);
        bh_field_qualified_name(errs, at, g->s.p);
    }
}

static void check_shape(const struct bh_json *shape, struct bh_field_errors *errs)
{
    const char *at = "scoringStrategy.requestedToCapacityRatio.shape";
    int64_t last = -1;
    unsigned i = 0;
    bool sorted = true;

    if (!shape || !shape->c.n)
        bh_field_error(errs, "%s: Required value: at least one point must be specified", at);
    bh_json_each(p, shape) {
        int64_t u = bh_json_get_i64(p, "utilization", 0);
        if (i && u <= last && sorted) {
            bh_field_error(errs,
                           "%s[%u].utilization: Invalid value: %" PRId64
                           ": values must be sorted in increasing order",
                           at, i, u);
            sorted = false;
        }
        last = u;
        i++;
    }
    i = 0;
    bh_json_each(p, shape) {
        int64_t u = bh_json_get_i64(p, "utilization", 0), s = bh_json_get_i64(p, "score", 0);
        if (u < 0 || u > 100)
            bh_field_error(
                errs, "%s[%u].utilization: Invalid value: %" PRId64 ": not in valid range [0, 100]",
                at, i, u);
        if (s < 0 || s > 10)
            bh_field_error(errs,
                           "%s[%u].score: Invalid value: %" PRId64 ": not in valid range [0, 10]",
                           at, i, s);
        i++;
    }
}

static bool set(const struct bh_json *v)
{
    return v && v->type != BH_JSON_NULL;
}

void bh_fit_args_check(const struct bh_plugin *self BH_UNUSED, const struct bh_json *args,
                       const char *path, struct bh_field_errors *errs)
{
    const struct bh_json *st = bh_json_get(args, "scoringStrategy");
    const struct bh_json *ratio = bh_json_get(st, "requestedToCapacityRatio");

    (void)path; /* the constructor knows no path */
    check_ignored(args, errs);
    if (!set(st))
        return;
    const char *type = bh_json_get_str(st, "type");
    bool by_ratio = type && bh_streq(type, "RequestedToCapacityRatio");
    if (!by_ratio &&
        !(type && (bh_streq(type, "LeastAllocated") || bh_streq(type, "MostAllocated"))))
        bh_field_error(errs,
                       "scoringStrategy.type: Unsupported value: \"%s\": supported values: "
                       "\"LeastAllocated\", \"MostAllocated\", \"RequestedToCapacityRatio\"",
                       type ? type : "");
    unsigned i = 0;
    bh_json_each(r, bh_json_get(st, "resources")) {
        int64_t w = bh_json_get_i64(r, "weight", 0);
        const char *name = bh_json_get_str(r, "name");
        if (w < 0 || w > 100)
            bh_field_error(errs,
                           "scoringStrategy.resources[%u].weight: Invalid value: %" PRId64
                           ": resource weight of %s not in valid range (0, 100]",
                           i, w, name ? name : "");
        i++;
    }
    if (i > BH_RES_MAX)
        bh_field_error(errs, "scoringStrategy.resources: Too many: %u: must have at most %u items",
                       i, BH_RES_MAX);
    if (by_ratio && !set(ratio))
        bh_field_error(errs, "scoringStrategy.requestedToCapacityRatio: Required value: must be "
                             "specified when type is RequestedToCapacityRatio");
    else if (by_ratio)
        check_shape(bh_json_get(ratio, "shape"), errs);
    else if (set(ratio))
        bh_field_error(errs,
                       "scoringStrategy.requestedToCapacityRatio: Forbidden: must be nil when "
                       "type is not RequestedToCapacityRatio");
}

static uint32_t length(const struct bh_json *list)
{
    return list && list->type == BH_JSON_ARRAY ? (uint32_t)list->c.n : 0;
}

int bh_fit_args_new(const struct bh_plugin_env *env, const struct bh_json *args, void **ret,
                    struct bh_err *err BH_UNUSED)
{
    struct bh_fit_args *a = bh_arena_new(env->arena, struct bh_fit_args);
    const struct bh_json *st = bh_json_get(args, "scoringStrategy");
    const struct bh_json *names = bh_json_get(args, "ignoredResources");
    const struct bh_json *groups = bh_json_get(args, "ignoredResourceGroups");
    const char *type = bh_json_get_str(st, "type");

    a->tab = env->tab;
    a->arena = env->arena;
    if (type && bh_streq(type, "MostAllocated"))
        a->strategy = BH_FIT_MOST;
    else if (type && bh_streq(type, "RequestedToCapacityRatio"))
        a->strategy = BH_FIT_RATIO;
    bh_res_list_new(&a->resources, bh_json_get(st, "resources"), env->tab);
    a->devices = bh_class_devices_new(env);
    if (a->strategy == BH_FIT_RATIO) {
        const struct bh_json *shape = bh_json_path(st, "requestedToCapacityRatio.shape");
        a->shape = bh_arena_new_array(a->arena, struct bh_fit_point, shape ? shape->c.n : 1);
        bh_json_each(p, shape) {
            a->shape[a->n_shape++] =
                (struct bh_fit_point){.utilization = bh_json_get_i64(p, "utilization", 0),
                                      .score = 10 * bh_json_get_i64(p, "score", 0)};
        }
    }
    a->ignored = bh_arena_new_array(a->arena, bh_sym, length(names) + 1);
    bh_json_each(r, names) {
        a->ignored[a->n_ignored++] = bh_sym_intern(env->tab, r->s.p, r->s.n);
    }

    a->ignored_groups = bh_arena_new_array(a->arena, const char *, length(groups) + 1);
    bh_json_each(g, groups) {
        a->ignored_groups[a->n_ignored_groups++] = bh_arena_strdup(a->arena, g->s.p);
    }

    *ret = a;
    return 0;
}

void bh_fit_args_free(void *args)
{
    struct bh_fit_args *a = args;

    if (!a)
        return;
    bh_umap_fini(&a->reasons);
    bh_umap_fini(&a->extended);
    bh_class_devices_free(a->devices);
}
