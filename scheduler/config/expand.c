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
#include <errno.h>

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

struct ref { /* one enabled plugin */
    const char *name;
    int32_t weight;
    const struct bh_json *at;
};
struct set { /* one PluginSet */
    struct ref *enabled;
    uint32_t n;
    const char **disabled; /* only names that mean something: plugins, and "*" */
    uint32_t n_disabled;
};

static int find_ref(const struct ref *v, uint32_t n, const char *name)
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

static bool implements(const struct bh_plugin *p, unsigned point)
{
    if (point < BH_POINT_COUNT)
        return bh_plugin_points(p) & BH_POINT_BIT(point);
    /* Berth does not place pod groups; upstream's Fit scores placements. */
    return point == BH_POINT_PLACEMENT_SCORE && bh_streq(p->name, "NodeResourcesFit");
}

static struct set read_set(struct bh_arena *a, const struct bh_json *plugins, unsigned point)
{
    const struct bh_json *v = bh_json_get(plugins, bh_point_names[point].key);
    const struct bh_json *on = bh_json_get(v, "enabled"), *off = bh_json_get(v, "disabled");
    struct set s = {
        .enabled = bh_arena_new_array(a, struct ref, bh_config_len(on) + 1),
        .disabled = bh_arena_new_array(a, const char *, bh_config_len(off) + 1),
    };

    bh_json_each(p, on) {
        s.enabled[s.n++] = (struct ref){.name = bh_json_get_text(p, "name"),
                                        .weight = (int32_t)bh_json_get_i64(p, "weight", 0),
                                        .at = p};
    }
    bh_json_each(p, off) {
        const char *name = bh_json_get_text(p, "name");
        if ((bh_streq(name, "*") || bh_plugin_find(name)) && !is_disabled(&s, name))
            s.disabled[s.n_disabled++] = name;
    }
    return s;
}

bool bh_config_needed(const struct bh_json *plugins, const char *plugin)
{
    for (unsigned pt = 0; pt < BH_POINT_KEYS; pt++)
        bh_json_each(p, bh_json_get(bh_json_get(plugins, bh_point_names[pt].key), "enabled"))
            if (bh_streq(bh_json_get_text(p, "name"), plugin))
                return true;
    return false;
}

/* Whatever goes wrong here goes wrong while upstream makes the profile. */
static int fail(struct bh_config_ctx *x, const struct bh_profile_config *p,
                const struct bh_json *at, const char *text)
{
    return bh_config_fail(x, at,
                          "initializing profiles: creating profile for scheduler name %s: %s",
                          p->scheduler_name, text);
}

static int check_explicit(struct bh_config_ctx *x, const struct bh_profile_config *p,
                          const struct set *s, unsigned point)
{
    const char *iface = bh_point_names[point].interface;

    for (uint32_t i = 0; i < s->n; i++) {
        const char *name = s->enabled[i].name, *text = NULL;
        const struct bh_plugin *pl = bh_plugin_find(name);
        if (!pl)
            text = bh_arena_printf(x->a, "%s \"%s\" does not exist", iface, name);
        else if (!implements(pl, point))
            text = bh_arena_printf(x->a, "plugin \"%s\" does not extend %s plugin", name, iface);
        else if (find_ref(s->enabled, i, name) >= 0)
            text = bh_arena_printf(x->a, "plugin \"%s\" already registered as \"%s\"", name, iface);
        if (text)
            return fail(x, p, s->enabled[i].at, text);
    }
    return 0;
}

struct spread { /* the plugins of one point, in order */
    struct ref *v;
    uint32_t n;
};

static int spread(struct bh_config_ctx *x, const struct bh_profile_config *p,
                  const struct set *multi, const struct set *s, unsigned point, struct spread *ret)
{
    const char *iface = bh_point_names[point].interface;
    struct ref *rest = bh_arena_new_array(x->a, struct ref, multi->n + 1);
    bool *override = bh_arena_new_array(x->a, bool, s->n + 1);
    uint32_t n_rest = 0;

    ret->v = bh_arena_new_array(x->a, struct ref, multi->n + s->n + 1);
    for (uint32_t i = 0; i < multi->n && !is_disabled(s, "*"); i++) {
        const char *name = multi->enabled[i].name;
        const struct bh_plugin *pl = bh_plugin_find(name);
        if (!pl)
            return fail(x, p, multi->enabled[i].at,
                        bh_arena_printf(x->a, "%s \"%s\" does not exist", iface, name));
        if (!implements(pl, point) || is_disabled(s, name))
            continue;
        int at = find_ref(s->enabled, s->n, name);
        if (at >= 0) {
            override[at] = true;
            continue;
        }
        if (find_ref(rest, n_rest, name) >= 0)
            return fail(
                x, p, multi->enabled[i].at,
                bh_arena_printf(x->a, "plugin \"%s\" already registered as \"%s\"", name, iface));
        rest[n_rest++] = multi->enabled[i];
    }
    for (uint32_t i = 0; i < s->n; i++)
        if (override[i])
            ret->v[ret->n++] = s->enabled[i];
    for (uint32_t i = 0; i < n_rest; i++)
        ret->v[ret->n++] = rest[i];
    for (uint32_t i = 0; i < s->n; i++)
        if (!override[i])
            ret->v[ret->n++] = s->enabled[i];
    return 0;
}

/* The first mention of a name, at the point and then at multiPoint, fixes its weight; 0 becomes 1.
 * Plugins that multiPoint names and the point disables count, too. */
static int check_weights(struct bh_config_ctx *x, const struct bh_profile_config *p,
                         const struct set *explicit, const struct set *multi, unsigned point,
                         const char *what)
{
    const struct bh_json *at = NULL; /* the last entry of the file: it is that one's fault */
    uint64_t total = 0;

    for (uint32_t i = 0; i < explicit->n + multi->n; i++) {
        const struct ref *r =
            i < explicit->n ? &explicit->enabled[i] : &multi->enabled[i - explicit->n];
        const struct bh_plugin *pl = bh_plugin_find(r->name);
        bool counted = i >= explicit->n && find_ref(explicit->enabled, explicit->n, r->name) >= 0;
        int64_t w = (int64_t)(r->weight ? r->weight : 1) * 100;
        if (!pl || !implements(pl, point) || counted)
            continue;
        at = r->at->line ? r->at : at;
        /* Wraps like upstream's int64: a negative weight usually trips it. */
        if (w > (int64_t)((uint64_t)INT64_MAX - total))
            return fail(
                x, p, at,
                bh_arena_printf(x->a, "%s: total score of Score plugins could overflow", what));
        total += (uint64_t)w;
    }
    return 0;
}

static void publish(struct bh_config_ctx *x, struct bh_profile_config *p, unsigned point,
                    const struct spread *s, const struct set *explicit, const struct set *multi)
{
    if (point >= BH_POINT_COUNT)
        return;
    p->points[point] = bh_arena_new_array(x->a, struct bh_plugin_ref, s->n + 1);
    p->n_points[point] = s->n;
    for (uint32_t i = 0; i < s->n; i++) {
        int at = find_ref(explicit->enabled, explicit->n, s->v[i].name);
        int32_t w = at >= 0 ? explicit->enabled[at].weight : 0;
        if (at < 0 && (at = find_ref(multi->enabled, multi->n, s->v[i].name)) >= 0)
            w = multi->enabled[at].weight;
        p->points[point][i] = (struct bh_plugin_ref){.name = s->v[i].name,
                                                     .weight = point != BH_POINT_SCORE ? 0
                                                               : w                     ? w
                                                                                       : 1};
    }
}

static int check_result(struct bh_config_ctx *x, const struct bh_profile_config *p,
                        const struct bh_json *profile, uint32_t n_generate)
{
    const struct bh_json *plugins = bh_json_get(profile, "plugins");

    if (p->n_points[BH_POINT_QUEUE_SORT] != 1)
        return fail(x, p, bh_json_get(plugins, "queueSort"),
                    bh_arena_printf(x->a,
                                    "only one queue sort plugin required for profile with "
                                    "scheduler name \"%s\", but got %u",
                                    p->scheduler_name, p->n_points[BH_POINT_QUEUE_SORT]));
    if (!p->n_points[BH_POINT_BIND])
        return fail(x, p, bh_json_get(plugins, "bind"),
                    bh_arena_printf(x->a,
                                    "at least one bind plugin is needed for profile with scheduler "
                                    "name \"%s\"",
                                    p->scheduler_name));
    if (n_generate > 1)
        return fail(x, p, bh_json_get(plugins, "placementGenerate"),
                    bh_arena_printf(x->a,
                                    "at most one placement generate plugin is allowed for profile "
                                    "with scheduler name \"%s\"",
                                    p->scheduler_name));
    return 0;
}

int bh_config_expand(struct bh_config_ctx *x, struct bh_profile_config *p,
                     const struct bh_json *profile)
{
    const struct bh_json *plugins = bh_json_get(profile, "plugins");
    struct set sets[BH_POINT_KEYS], multi = read_set(x->a, plugins, BH_POINT_MULTI);
    uint32_t n_generate = 0;
    int rc = 0;

    for (unsigned i = 0; i < BH_ARRAY_LEN(point_order) && rc >= 0; i++) {
        unsigned pt = point_order[i];
        sets[pt] = read_set(x->a, plugins, pt);
        rc = check_explicit(x, p, &sets[pt], pt);
    }
    for (unsigned i = 0; i < BH_ARRAY_LEN(point_order) && rc >= 0; i++) {
        unsigned pt = point_order[i];
        struct spread s = {0};
        rc = spread(x, p, &multi, &sets[pt], pt, &s);
        if (rc >= 0)
            publish(x, p, pt, &s, &sets[pt], &multi);
        if (pt == BH_POINT_PLACEMENT_GENERATE)
            n_generate = s.n;
    }
    if (rc >= 0)
        rc = check_result(x, p, profile, n_generate);
    if (rc >= 0)
        rc = check_weights(x, p, &sets[BH_POINT_SCORE], &multi, BH_POINT_SCORE, "score plugins");
    if (rc >= 0)
        rc = check_weights(x, p, &sets[BH_POINT_PLACEMENT_SCORE], &multi, BH_POINT_PLACEMENT_SCORE,
                           "placement score plugins");
    return rc;
}
