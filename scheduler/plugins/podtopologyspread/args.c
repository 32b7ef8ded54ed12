/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/podtopologyspread/args.c - PodTopologySpreadArgs
 *
 * Upstream: pkg/scheduler/apis/config/validation/validation_pluginargs.go, v1/defaults.go.
 */
#include <stdio.h>

#include "common/base/map.h"
#include "scheduler/plugins/podtopologyspread/spread.h"

static const char *text_of(const struct bh_json *v, const char *name)
{
    const char *s = bh_json_get_str(v, name);
    return s ? s : "";
}

static bool is_system(const struct bh_json *args)
{
    const char *type = text_of(args, "defaultingType");
    return !*type || bh_streq(type, "System");
}

/* ---- validation ---- */

static void check_constraint(const struct bh_json *k, const char *at, struct bh_map *seen,
                             struct bh_field_errors *errs)
{
    int64_t skew = bh_json_get_i64(k, "maxSkew", 0);
    const char *key = text_of(k, "topologyKey"), *when = text_of(k, "whenUnsatisfiable");
    const struct bh_json *sel = bh_json_get(k, "labelSelector");

    if (skew <= 0)
        bh_field_error(errs, "%s.maxSkew: Invalid value: %lld: not in valid range (0, inf)", at,
                       (long long)skew);
    char path[544];
    snprintf(path, sizeof path, "%s.topologyKey", at);
    if (!*key)
        bh_field_error(errs, "%s: Required value: can not be empty", path);
    else
        bh_field_qualified_name(errs, path, key);
    if (!*when)
        bh_field_error(errs, "%s.whenUnsatisfiable: Required value: can not be empty", at);
    else if (!bh_streq(when, "DoNotSchedule") && !bh_streq(when, "ScheduleAnyway"))
        bh_field_error(errs,
                       "%s.whenUnsatisfiable: Unsupported value: \"%s\": supported values: "
                       "\"DoNotSchedule\", \"ScheduleAnyway\"",
                       at, when);
    if (sel && sel->type != BH_JSON_NULL)
        bh_field_error(
            errs,
            "%s.labelSelector: Forbidden: constraint must not define a selector, as they "
            "deduced for each pod",
            at);
    const char *pair = bh_arena_printf(errs->a, "{%s, %s}", key, when);
    if (bh_map_put(seen, pair, strlen(pair), seen))
        bh_field_error(errs, "%s: Duplicate value: \"%s\"", at, pair);
}

void bh_spread_args_check(const struct bh_plugin *self BH_UNUSED, const struct bh_json *args,
                          const char *path, struct bh_field_errors *errs)
{
    const struct bh_json *list = bh_json_get(args, "defaultConstraints");
    const char *type = text_of(args, "defaultingType");
    struct bh_map seen BH_CLEANUP(bh_map_fini) = {0};
    unsigned i = 0;

    if (!is_system(args) && !bh_streq(type, "List"))
        bh_field_error(
            errs,
            "%s.defaultingType: Unsupported value: \"%s\": supported values: \"System\", "
            "\"List\"",
            path, type);
    if (is_system(args) && list && list->type == BH_JSON_ARRAY && list->c.n)
        bh_field_error(
            errs,
            "%s.defaultingType: Invalid value: \"System\": when .defaultConstraints are not "
            "empty",
            path);
    bh_json_each(k, list) {
        char at[512];
        snprintf(at, sizeof at, "%s.defaultConstraints[%u]", path, i++);
        check_constraint(k, at, &seen, errs);
    }
}

/* ---- instance ---- */

static struct bh_spread read_constraint(struct bh_symtab *tab, const struct bh_json *k)
{
    const char *affinity = bh_json_get_str(k, "nodeAffinityPolicy");
    struct bh_spread s = {.max_skew = (int32_t)bh_json_get_i64(k, "maxSkew", 0),
                          .min_domains = (int32_t)bh_json_get_i64(k, "minDomains", 1),
                          .topology_key = bh_sym_internc(tab, bh_json_get_str(k, "topologyKey"))};

    s.flags = bh_streq(text_of(k, "whenUnsatisfiable"), "DoNotSchedule") ? BH_SPREAD_HARD
                                                                         : BH_SPREAD_SOFT;
    s.flags |= !affinity || bh_streq(affinity, "Honor") ? BH_SPREAD_HONOR_AFFINITY : 0;
    s.flags |= bh_streq(text_of(k, "nodeTaintsPolicy"), "Honor") ? BH_SPREAD_HONOR_TAINTS : 0;
    return s; /* matchLabelKeys has no effect: the selector comes from elsewhere */
}

static struct bh_spread system_default(struct bh_symtab *tab, const char *key, int32_t max_skew)
{
    return (struct bh_spread){.max_skew = max_skew,
                              .min_domains = 1,
                              .topology_key = bh_sym_internc(tab, key),
                              .flags = BH_SPREAD_SOFT | BH_SPREAD_HONOR_AFFINITY};
}

int bh_spread_args_new(const struct bh_plugin_env *env, const struct bh_json *args, void **ret,
                       struct bh_err *err BH_UNUSED)
{
    const struct bh_json *list = bh_json_get(args, "defaultConstraints");
    struct bh_spread_args *a = bh_arena_new(env->arena, struct bh_spread_args);
    size_t room = list && list->type == BH_JSON_ARRAY ? list->c.n : 0;
    struct bh_spread *v = bh_arena_new_array(env->arena, struct bh_spread, room + 2);

    a->hostname = bh_sym_internc(env->tab, "kubernetes.io/hostname");
    a->memo = bh_selector_memo_new();
    a->system = is_system(args);
    a->v = v;
    if (a->system) {
        v[a->n++] = system_default(env->tab, "kubernetes.io/hostname", 3);
        v[a->n++] = system_default(env->tab, "topology.kubernetes.io/zone", 5);
    } else {
        bh_json_each(k, list)
            v[a->n++] = read_constraint(env->tab, k);
    }
    *ret = a;
    return 0;
}

void bh_spread_args_free(void *args)
{
    if (args)
        bh_selector_memo_free(((struct bh_spread_args *)args)->memo);
}

static const struct bh_field selector_schema[] = {
    /* must not be given at all */
    {"matchLabels", BH_FIELD_RAW, NULL, NULL},
    {"matchExpressions", BH_FIELD_RAW, NULL, NULL},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field constraint_schema[] = {
    {"maxSkew", BH_FIELD_INT32, NULL, NULL},
    {"topologyKey", BH_FIELD_STRING, NULL, NULL},
    {"whenUnsatisfiable", BH_FIELD_STRING, NULL, "v1.UnsatisfiableConstraintAction"},
    {"labelSelector", BH_FIELD_OBJECT, selector_schema, "LabelSelector"},
    {"minDomains", BH_FIELD_INT32, NULL, NULL},
    {"nodeAffinityPolicy", BH_FIELD_STRING, NULL, "v1.NodeInclusionPolicy"},
    {"nodeTaintsPolicy", BH_FIELD_STRING, NULL, "v1.NodeInclusionPolicy"},
    {"matchLabelKeys", BH_FIELD_STRINGS, NULL, NULL},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
const struct bh_field bh_spread_schema[] = {
    {"defaultConstraints", BH_FIELD_OBJECTS, constraint_schema, "TopologySpreadConstraint"},
    {"defaultingType", BH_FIELD_STRING, NULL, "PodTopologySpreadConstraintsDefaulting"},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
