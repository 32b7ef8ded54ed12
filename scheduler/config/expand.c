/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/expand.c - which plugins run at which point, in which order
 *
 * Stage B of upstream's two (A is complete.c): multiPoint is spread over the points its plugins
 * implement.
 *
 * Upstream: pkg/scheduler/framework/runtime/framework.go (NewFramework, expandMultiPointPlugins,
 *           getValidScoreWeights).
 */
#include <ctype.h>

#include "scheduler/config/config_int.h"
#include "scheduler/framework/plugin.h"

/* Order in which upstream fills the points, so the first error is the same. */
static const unsigned point_order[] = {
    BH_POINT_PRE_FILTER,         BH_POINT_FILTER,
    BH_POINT_POST_FILTER,        BH_POINT_RESERVE,
    BH_POINT_PRE_SCORE,          BH_POINT_SCORE,
    BH_POINT_PRE_BIND,           BH_POINT_BIND,
    BH_POINT_POST_BIND,          BH_POINT_PERMIT,
    BH_POINT_PRE_ENQUEUE,        BH_POINT_QUEUE_SORT,
    BH_POINT_PLACEMENT_GENERATE, BH_POINT_PLACEMENT_SCORE,
};

static bool implements(const struct bh_plugin *p, unsigned point)
{
    return bh_plugin_points(p) & BH_POINT_BIT(point);
}

bool bh_config_needed(const struct bh_json *plugins, const char *plugin)
{
    for (unsigned pt = 0; pt < BH_POINT_KEYS; pt++)
        if (bh_config_named(bh_config_enabled(plugins, pt), plugin))
            return true;
    return false;
}

/* Whatever goes wrong here goes wrong while upstream makes the profile. */
static int fail(struct bh_config_ctx *x, const struct bh_profile_config *p,
                const struct bh_json *at, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    const char *text = bh_arena_vprintf(x->a, fmt, ap);
    va_end(ap);
    return bh_config_fail(x, at,
                          "initializing profiles: creating profile for scheduler name %s: %s",
                          p->scheduler_name, text);
}

/* "PreFilterPlugin" */
static const char *interface_of(struct bh_arena *a, unsigned point)
{
    char *text = bh_arena_printf(a, "%sPlugin", bh_point_names[point]);
    text[0] = (char)toupper((unsigned char)text[0]);
    return text;
}

static const char *places(void)
{
    return bh_plugin_places ? bh_plugin_places() : "";
}

static int check_explicit(struct bh_config_ctx *x, const struct bh_profile_config *p,
                          const struct bh_json *enabled, unsigned point)
{
    const char *iface = interface_of(x->a, point);

    bh_json_each(e, enabled) {
        const char *name = bh_json_get_text(e, "name");
        const struct bh_plugin *pl = bh_plugin_find(name);
        if (!pl)
            return fail(x, p, e, "%s \"%s\" does not exist%s", iface, name, places());
        if (!implements(pl, point))
            return fail(x, p, e, "plugin \"%s\" does not extend %s plugin", name, iface);
        if (bh_config_named(enabled, name) != e)
            return fail(x, p, e, "plugin \"%s\" already registered as \"%s\"", name, iface);
    }
    return 0;
}

static void put(struct bh_profile_config *p, unsigned point, const struct bh_json *e)
{
    const bool weighed = point == BH_POINT_SCORE || point == BH_POINT_PLACEMENT_SCORE;
    int32_t weight = (int32_t)bh_json_get_i64(e, "weight", 0);

    if (weighed && !weight)
        weight = 1;
    p->points[point][p->n_points[point]++] =
        (struct bh_plugin_ref){.name = bh_json_get_text(e, "name"), .weight = weighed ? weight : 0};
}

/* The point's own entries that take the place of multiPoint's, multiPoint's others, the rest. */
static int spread(struct bh_config_ctx *x, struct bh_profile_config *p, const struct bh_json *multi,
                  const struct bh_json *set, unsigned point)
{
    const struct bh_json *on = bh_json_get(set, "enabled"), *off = bh_json_get(set, "disabled");
    const struct bh_json *from = bh_config_named(off, "*") ? NULL : multi;
    const char *iface = interface_of(x->a, point);

    p->points[point] =
        bh_arena_new_array(x->a, struct bh_plugin_ref, bh_config_len(from) + bh_config_len(on) + 1);
    bh_json_each(e, on) {
        const char *name = bh_json_get_text(e, "name");
        if (bh_config_named(from, name) && !bh_config_named(off, name))
            put(p, point, e);
    }
    bh_json_each(e, from) {
        const char *name = bh_json_get_text(e, "name");
        const struct bh_plugin *pl = bh_plugin_find(name);
        if (!pl)
            return fail(x, p, e, "%s \"%s\" does not exist%s", iface, name, places());
        if (!implements(pl, point) || bh_config_named(off, name) || bh_config_named(on, name))
            continue;
        if (bh_config_named(from, name) != e)
            return fail(x, p, e, "plugin \"%s\" already registered as \"%s\"", name, iface);
        put(p, point, e);
    }
    bh_json_each(e, on) {
        const char *name = bh_json_get_text(e, "name");
        if (!bh_config_named(from, name) || bh_config_named(off, name))
            put(p, point, e);
    }
    return 0;
}

/* The first mention of a name, at the point and then at multiPoint, fixes its weight; 0 becomes 1.
 * Plugins that multiPoint names and the point disables count, too. */
static int check_weights(struct bh_config_ctx *x, const struct bh_profile_config *p,
                         const struct bh_json *plugins, unsigned point, const char *what)
{
    const struct bh_json *lists[] = {bh_config_enabled(plugins, point),
                                     bh_config_enabled(plugins, BH_POINT_MULTI)};
    const struct bh_json *at = NULL; /* the last entry of the file: it is that one's fault */
    uint64_t total = 0;

    for (unsigned i = 0; i < BH_ARRAY_LEN(lists); i++) {
        bh_json_each(e, lists[i]) {
            const char *name = bh_json_get_text(e, "name");
            const struct bh_plugin *pl = bh_plugin_find(name);
            int64_t weight = bh_json_get_i64(e, "weight", 0), w = (weight ? weight : 1) * 100;
            if (!pl || !implements(pl, point) || (i && bh_config_named(lists[0], name)))
                continue;
            at = e->line ? e : at;
            /* Wraps like upstream's int64: a negative weight usually trips it. */
            if (w > (int64_t)((uint64_t)INT64_MAX - total))
                return fail(x, p, at, "%s: total score of Score plugins could overflow", what);
            total += (uint64_t)w;
        }
    }
    return 0;
}

int bh_config_expand(struct bh_config_ctx *x, struct bh_profile_config *p,
                     const struct bh_json *profile)
{
    const struct bh_json *plugins = bh_json_get(profile, "plugins");
    int rc = 0;

    for (unsigned i = 0; i < BH_ARRAY_LEN(point_order) && rc >= 0; i++)
        rc = check_explicit(x, p, bh_config_enabled(plugins, point_order[i]), point_order[i]);
    for (unsigned i = 0; i < BH_ARRAY_LEN(point_order) && rc >= 0; i++)
        rc = spread(x, p, bh_config_enabled(plugins, BH_POINT_MULTI),
                    bh_json_get(plugins, bh_point_names[point_order[i]]), point_order[i]);
    if (rc < 0)
        return rc;
    if (p->n_points[BH_POINT_QUEUE_SORT] != 1)
        return fail(
            x, p, bh_json_get(plugins, "queueSort"),
            "only one queue sort plugin required for profile with scheduler name \"%s\", but "
            "got %u",
            p->scheduler_name, p->n_points[BH_POINT_QUEUE_SORT]);
    if (!p->n_points[BH_POINT_BIND])
        return fail(x, p, bh_json_get(plugins, "bind"),
                    "at least one bind plugin is needed for profile with scheduler name \"%s\"",
                    p->scheduler_name);
    if (p->n_points[BH_POINT_PLACEMENT_GENERATE] > 1)
        return fail(x, p, bh_json_get(plugins, "placementGenerate"),
                    "at most one placement generate plugin is allowed for profile with scheduler "
                    "name \"%s\"",
                    p->scheduler_name);
    rc = check_weights(x, p, plugins, BH_POINT_SCORE, "score plugins");
    if (rc >= 0)
        rc = check_weights(x, p, plugins, BH_POINT_PLACEMENT_SCORE, "placement score plugins");
    return rc;
}
