/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/expand.c - which plugins run at which point, in which order
 *
 * Two stages, as upstream. A: the profile's set of each point is merged with the defaults (which
 * stand in multiPoint only). B: multiPoint is spread over the points its plugins implement.
 *
 * Upstream: pkg/scheduler/apis/config/v1/default_plugins.go (mergePlugins),
 *           pkg/scheduler/framework/runtime/framework.go (expandMultiPointPlugins).
 */
#include <errno.h>

#include "scheduler/config/config_int.h"
#include "scheduler/plugins/registry.h"

const struct bh_point_name bh_point_names[BH_POINT_COUNT] = {
    [BH_POINT_PRE_ENQUEUE] = {"preEnqueue", "PreEnqueuePlugin"},
    [BH_POINT_QUEUE_SORT] = {"queueSort", "QueueSortPlugin"},
    [BH_POINT_PRE_FILTER] = {"preFilter", "PreFilterPlugin"},
    [BH_POINT_FILTER] = {"filter", "FilterPlugin"},
    [BH_POINT_POST_FILTER] = {"postFilter", "PostFilterPlugin"},
    [BH_POINT_PRE_SCORE] = {"preScore", "PreScorePlugin"},
    [BH_POINT_SCORE] = {"score", "ScorePlugin"},
    [BH_POINT_RESERVE] = {"reserve", "ReservePlugin"},
    [BH_POINT_PERMIT] = {"permit", "PermitPlugin"},
    [BH_POINT_PRE_BIND] = {"preBind", "PreBindPlugin"},
    [BH_POINT_BIND] = {"bind", "BindPlugin"},
    [BH_POINT_POST_BIND] = {"postBind", "PostBindPlugin"},
};
const enum bh_point bh_point_order[BH_POINT_COUNT] = {
    BH_POINT_PRE_FILTER, BH_POINT_FILTER, BH_POINT_POST_FILTER, BH_POINT_RESERVE,
    BH_POINT_PRE_SCORE,  BH_POINT_SCORE,  BH_POINT_PRE_BIND,    BH_POINT_BIND,
    BH_POINT_POST_BIND,  BH_POINT_PERMIT, BH_POINT_PRE_ENQUEUE, BH_POINT_QUEUE_SORT,
};

/* The default multiPoint list, in order. */
static const struct bh_plugin_ref defaults[] = {
    {"SchedulingGates", 0},
    {"PrioritySort", 0},
    {"NodeUnschedulable", 0},
    {"NodeName", 0},
    {"TaintToleration", 3},
    {"NodeAffinity", 2},
    {"NodePorts", 0},
    {"NodeResourcesFit", 1},
    {"VolumeRestrictions", 0},
    {"NodeVolumeLimits", 0},
    {"VolumeBinding", 0},
    {"VolumeZone", 0},
    {"PodTopologySpread", 2},
    {"InterPodAffinity", 2},
    {"DynamicResources", 2},
    {"DefaultPreemption", 0},
    {"NodeResourcesBalancedAllocation", 1},
    {"ImageLocality", 1},
    {"DefaultBinder", 0},
    {"NodeDeclaredFeatures", 0},
};

struct set { /* one PluginSet */
    struct bh_plugin_ref *enabled;
    uint32_t n;
    const char **disabled;
    uint32_t n_disabled;
};

static int find_ref(const struct bh_plugin_ref *v, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (bh_streq(v[i].name, name))
            return (int)i;
    return -1;
}

static bool is_disabled(const struct set *s, const char *name)
{
    for (uint32_t i = 0; i < s->n_disabled; i++)
        if (bh_streq(s->disabled[i], name))
            return true;
    return false;
}

static uint32_t length(const struct bh_json *v)
{
    return v && v->type == BH_JSON_ARRAY ? (uint32_t)v->c.n : 0;
}

static const char *name_of(const struct bh_json *plugin)
{
    const char *s = bh_json_get_str(plugin, "name");
    return s ? s : "";
}

static void read_set(struct bh_arena *a, const struct bh_json *v, struct set *ret)
{
    const struct bh_json *on = bh_json_get(v, "enabled"), *off = bh_json_get(v, "disabled");

    *ret = (struct set){
        .enabled = bh_arena_new_array(a, struct bh_plugin_ref, length(on) + 1),
        .disabled = bh_arena_new_array(a, const char *, length(off) + 1),
    };
    bh_json_each(p, on)
    {
        ret->enabled[ret->n++] = (struct bh_plugin_ref){
            .name = name_of(p), .weight = (int32_t)bh_json_get_i64(p, "weight", 0)};
    }

    bh_json_each(p, off)
    {
        ret->disabled[ret->n_disabled++] = name_of(p);
    }
}

/* Stage A for multiPoint: defaults that are not disabled, replaced in place by the profile's entry
 * of the same name, then the profile's other entries. */
static struct set merge_defaults(struct bh_arena *a, const struct set *custom)
{
    uint32_t n_default = BH_ARRAY_LEN(defaults);
    struct set out = *custom;
    bool *used = bh_arena_new_array(a, bool, custom->n + 1);

    out.enabled = bh_arena_new_array(a, struct bh_plugin_ref, n_default + custom->n);
    out.n = 0;
    for (uint32_t i = 0; i < n_default && !is_disabled(custom, "*"); i++) {
        int at = -1;
        if (is_disabled(custom, defaults[i].name))
            continue;
        for (uint32_t k = 0; k < custom->n; k++)
            if (bh_streq(custom->enabled[k].name, defaults[i].name))
                at = (int)k;
        if (at >= 0)
            used[at] = true;
        out.enabled[out.n++] = at >= 0 ? custom->enabled[at] : defaults[i];
    }
    for (uint32_t k = 0; k < custom->n; k++)
        if (!used[k])
            out.enabled[out.n++] = custom->enabled[k];
    return out;
}

static int check_explicit(const struct set *s, enum bh_point pt, struct bh_err *err)
{
    const char *iface = bh_point_names[pt].interface;

    for (uint32_t i = 0; i < s->n; i++) {
        const char *name = s->enabled[i].name;
        const struct bh_plugin *p = bh_plugin_find(name);
        if (!p)
            return bh_err_set(err, -EINVAL, "%s \"%s\" does not exist", iface, name);
        if (!(p->points & BH_POINT_BIT(pt)))
            return bh_err_set(err, -EINVAL, "plugin \"%s\" does not extend %s plugin", name, iface);
        if (find_ref(s->enabled, i, name) >= 0)
            return bh_err_set(err, -EINVAL, "plugin \"%s\" already registered as \"%s\"", name,
                              iface);
    }
    return 0;
}

/* Stage B for one point. */
static int spread(struct bh_arena *a, const struct set *multi, const struct set *s,
                  enum bh_point pt, struct bh_plugin_ref **ret, uint32_t *ret_n, struct bh_err *err)
{
    const char *iface = bh_point_names[pt].interface;
    struct bh_plugin_ref *rest = bh_arena_new_array(a, struct bh_plugin_ref, multi->n + 1);
    struct bh_plugin_ref *out = bh_arena_new_array(a, struct bh_plugin_ref, multi->n + s->n + 1);
    bool *override = bh_arena_new_array(a, bool, s->n + 1);
    uint32_t n_rest = 0, n = 0;

    for (uint32_t i = 0; i < multi->n && !is_disabled(s, "*"); i++) {
        const char *name = multi->enabled[i].name;
        const struct bh_plugin *p = bh_plugin_find(name);
        if (!p)
            return bh_err_set(err, -EINVAL, "%s \"%s\" does not exist", iface, name);
        if (!(p->points & BH_POINT_BIT(pt)) || is_disabled(s, name))
            continue;
        int at = find_ref(s->enabled, s->n, name);
        if (at >= 0) {
            override[at] = true;
            continue;
        }
        if (find_ref(rest, n_rest, name) >= 0)
            return bh_err_set(err, -EINVAL, "plugin \"%s\" already registered as \"%s\"", name,
                              iface);
        rest[n_rest++] = multi->enabled[i];
    }
    for (uint32_t i = 0; i < s->n; i++)
        if (override[i])
            out[n++] = s->enabled[i];
    for (uint32_t i = 0; i < n_rest; i++)
        out[n++] = rest[i];
    for (uint32_t i = 0; i < s->n; i++)
        if (!override[i])
            out[n++] = s->enabled[i];
    *ret = out;
    *ret_n = n;
    return 0;
}

/* The first mention of a name, at score and then at multiPoint, fixes its weight; 0 becomes 1. */
static int set_weights(const struct set *score, const struct set *multi,
                       struct bh_profile_config *p, struct bh_err *err)
{
    struct bh_plugin_ref *v = p->points[BH_POINT_SCORE];
    uint64_t total = 0;

    for (uint32_t i = 0; i < p->n_points[BH_POINT_SCORE]; i++) {
        int at = find_ref(score->enabled, score->n, v[i].name);
        int32_t w = at >= 0 ? score->enabled[at].weight : 0;
        if (at < 0 && (at = find_ref(multi->enabled, multi->n, v[i].name)) >= 0)
            w = multi->enabled[at].weight;
        v[i].weight = w ? w : 1;
        /* Wraps like upstream's int64: a negative weight usually trips it. */
        if ((int64_t)v[i].weight * 100 > (int64_t)((uint64_t)INT64_MAX - total))
            return bh_err_set(err, -EINVAL,
                              "score plugins: total score of Score plugins could overflow");
        total += (uint64_t)((int64_t)v[i].weight * 100);
    }
    return 0;
}

static int expand(struct bh_sched_config *c, struct bh_profile_config *p,
                  const struct bh_json *profile, struct bh_err *err)
{
    const struct bh_json *plugins = bh_json_get(profile, "plugins");
    struct set points[BH_POINT_COUNT], custom, multi;
    int rc;

    read_set(&c->arena, bh_json_get(plugins, "multiPoint"), &custom);
    multi = merge_defaults(&c->arena, &custom);
    for (unsigned i = 0; i < BH_POINT_COUNT; i++) {
        enum bh_point pt = bh_point_order[i];
        read_set(&c->arena, bh_json_get(plugins, bh_point_names[pt].key), &points[pt]);
        rc = check_explicit(&points[pt], pt, err);
        if (rc < 0)
            return rc;
    }
    for (unsigned i = 0; i < BH_POINT_COUNT; i++) {
        enum bh_point pt = bh_point_order[i];
        rc = spread(&c->arena, &multi, &points[pt], pt, &p->points[pt], &p->n_points[pt], err);
        if (rc < 0)
            return rc;
    }
    rc = set_weights(&points[BH_POINT_SCORE], &multi, p, err);
    if (rc < 0)
        return rc;
    if (p->n_points[BH_POINT_QUEUE_SORT] != 1)
        return bh_err_set(err, -EINVAL,
                          "only one queue sort plugin required for profile with scheduler name "
                          "\"%s\", but got %u",
                          p->scheduler_name, p->n_points[BH_POINT_QUEUE_SORT]);
    if (!p->n_points[BH_POINT_BIND])
        return bh_err_set(
            err, -EINVAL,
            "at least one bind plugin is needed for profile with scheduler name \"%s\"",
            p->scheduler_name);
    return 0;
}

int bh_config_expand(struct bh_sched_config *c, struct bh_profile_config *p,
                     const struct bh_json *profile, struct bh_err *err)
{
    int rc = expand(c, p, profile, err);

    if (rc < 0)
        bh_err_prefix(err, rc, "initializing profiles: creating profile for scheduler name %s",
                      p->scheduler_name);
    return rc;
}
