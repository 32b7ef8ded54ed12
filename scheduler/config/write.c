/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/write.c - the configuration in force, as text that loads to the same again
 *
 * Upstream: cmd/kube-scheduler/app/options/configfile.go (LogOrWriteConfig, encodeConfig),
 *           framework/runtime/framework.go (outputProfile).
 */
#include "common/data/yaml.h"
#include "scheduler/config/config_int.h"
#include "scheduler/framework/plugin.h"

/* ---- plugin sets of the older versions ----------------------------------------------------------
 * v1 refuses EBSLimits and its like at single points, but takes them in multiPoint; so does a feature
 * gate add its plugins, behind the others. So everything goes there, in the order of the filters, and
 * points that differ list their plugins. The limits then run last at PreFilter, where they reject no
 * pod.
 */

struct multi { /* every plugin of the profile once */
    const struct bh_plugin *v[64];
    int32_t weight[64];
    unsigned n;
};

static void add_point(struct multi *m, const struct bh_profile_config *p, unsigned point)
{
    for (uint32_t i = 0; i < p->n_points[point]; i++) {
        const struct bh_plugin *pl = bh_plugin_find(p->points[point][i].name);
        unsigned k = 0;
        while (k < m->n && m->v[k] != pl)
            k++;
        bh_assert(k < BH_ARRAY_LEN(m->v)); /* each plugin of the registry once */
        if (k == m->n)
            m->v[m->n++] = pl;
        if (point == BH_POINT_SCORE)
            m->weight[k] = p->points[point][i].weight;
    }
}

static bool runs_at(const struct bh_profile_config *p, unsigned point, const char *name)
{
    for (uint32_t i = 0; i < p->n_points[point]; i++)
        if (bh_streq(p->points[point][i].name, name))
            return true;
    return false;
}

/* Do multiPoint's plugins, those disabled at the point left out, give the point's order and weights? */
static bool is_covered(const struct multi *m, const struct bh_profile_config *p, unsigned point)
{
    uint32_t at = 0;

    for (unsigned i = 0; i < m->n; i++) {
        if (!runs_at(p, point, m->v[i]->name))
            continue;
        const struct bh_plugin_ref *r = &p->points[point][at++];
        if (!bh_streq(r->name, m->v[i]->name) || (r->weight && r->weight != m->weight[i]))
            return false;
    }
    return true;
}

static bool runs_legacy(const struct bh_profile_config *p, unsigned point)
{
    for (uint32_t i = 0; i < p->n_points[point]; i++)
        if (bh_config_is_legacy(p->points[point][i].name))
            return true;
    return false;
}

/* One point of by_multi_point(). What the file keeps out of the point by name stays out: a feature gate
 * may add it to multiPoint. */
static void write_point(struct bh_arena *a, const struct multi *m,
                        const struct bh_profile_config *p, unsigned point,
                        const struct bh_json *plugins, struct bh_json *set)
{
    const struct bh_json *off =
        bh_json_get(bh_json_get(plugins, bh_point_names[point]), "disabled");
    /* queueSort has one text for all profiles, whatever else they run. */
    const bool alone =
        point == BH_POINT_QUEUE_SORT || (bh_config_named(off, "*") && !runs_legacy(p, point));
    const bool listed = alone || !is_covered(m, p, point);

    if (alone)
        bh_config_push_plugin(a, set, "disabled", "*", 0, 0);
    bh_json_each(e, off) {
        const char *name = bh_json_get_text(e, "name");
        if (!alone && !bh_streq(name, "*") && !runs_at(p, point, name))
            bh_config_push_plugin(a, set, "disabled", name, 0, 0);
    }
    for (unsigned i = 0; i < m->n && !alone; i++) {
        const char *name = m->v[i]->name;
        if (bh_plugin_points(m->v[i]) & BH_POINT_BIT(point) && !runs_at(p, point, name) &&
            !bh_config_named(bh_json_get(set, "disabled"), name))
            bh_config_push_plugin(a, set, "disabled", name, 0, 0);
    }
    for (uint32_t i = 0; i < p->n_points[point] && listed; i++)
        if (!bh_config_is_legacy(p->points[point][i].name))
            bh_config_push_plugin(a, set, "enabled", p->points[point][i].name,
                                  p->points[point][i].weight, 0);
}

static struct bh_json *by_multi_point(struct bh_arena *a, const struct bh_profile_config *p,
                                      const struct bh_json *plugins)
{
    struct bh_json *out = bh_json_new(a, BH_JSON_OBJECT);
    struct multi m = {0};

    add_point(&m, p, BH_POINT_FILTER);
    for (unsigned pt = 0; pt < BH_POINT_COUNT; pt++)
        if (pt != BH_POINT_QUEUE_SORT)
            add_point(&m, p, pt);
    for (unsigned pt = 0; pt < BH_POINT_KEYS; pt++)
        bh_json_set(a, out, bh_point_names[pt], bh_json_new(a, BH_JSON_OBJECT));
    struct bh_json *multi = bh_json_get(out, bh_point_names[BH_POINT_MULTI]);
    bh_json_each(e, bh_json_get(bh_json_get(plugins, bh_point_names[BH_POINT_MULTI]), "disabled"))
        bh_config_push_plugin(a, multi, "disabled", bh_json_get_text(e, "name"), 0, 0);
    for (unsigned i = 0; i < m.n; i++)
        bh_config_push_plugin(a, multi, "enabled", m.v[i]->name, m.weight[i], 0);
    for (unsigned pt = 0; pt < BH_POINT_COUNT; pt++)
        write_point(a, &m, p, pt, plugins, bh_json_get(out, bh_point_names[pt]));
    return out;
}

/* ---- args ------------------------------------------------------------------------------------ */

static int by_plugin(const void *a, const void *b)
{
    return strcmp(bh_json_get_text(*(struct bh_json *const *)a, "name"),
                  bh_json_get_text(*(struct bh_json *const *)b, "name"));
}

static struct bh_json *used_args(struct bh_arena *a, const struct bh_json *list,
                                 const struct bh_json *plugins)
{
    struct bh_json *out = bh_json_new(a, BH_JSON_ARRAY);
    struct bh_json **v = bh_arena_new_array(a, struct bh_json *, bh_config_len(list) + 1);
    size_t n = 0;

    bh_json_each(e, list) {
        const char *name = bh_json_get_text(e, "name");
        if (bh_json_get(e, "args") && bh_plugin_find(name) && !bh_config_is_legacy(name) &&
            bh_config_needed(plugins, name))
            v[n++] = e;
    }
    qsort(v, n, sizeof *v, by_plugin);
    for (size_t i = 0; i < n; i++)
        bh_json_push(out, bh_json_clone(a, v[i]));
    return out;
}

/* Outside multiPoint, where v1 refuses them. */
static bool names_legacy(const struct bh_json *profiles)
{
    bh_json_each(p, profiles)
        for (unsigned pt = 0; pt < BH_POINT_COUNT; pt++)
            bh_json_each(e, bh_config_enabled(bh_json_get(p, "plugins"), pt))
                if (bh_config_is_legacy(bh_json_get_text(e, "name")))
                    return true;
    return false;
}

void bh_config_in_force(struct bh_config_ctx *x, const struct bh_sched_config *c,
                        struct bh_json *tree)
{
    const struct bh_json *profiles = bh_json_get(tree, "profiles");
    const bool by_multi =
        x->version == BH_CONFIG_V1BETA2 || x->version == BH_CONFIG_POLICY || names_legacy(profiles);
    uint32_t i = 0;

    bh_json_each(p, profiles) {
        struct bh_json *plugins = bh_json_get(p, "plugins");
        struct bh_json *args = used_args(x->a, bh_json_get(p, "pluginConfig"), plugins);
        if (args->c.n)
            bh_json_set(x->a, p, "pluginConfig", args);
        else
            bh_json_unset(p, "pluginConfig");
        if (by_multi)
            bh_json_set(x->a, p, "plugins", by_multi_point(x->a, &c->profiles[i], plugins));
        i++;
    }
    bh_config_sort(tree);
}

/* ---- text ------------------------------------------------------------------------------------ */

void bh_sched_config_write(const struct bh_sched_config *c, enum bh_sched_config_form form,
                           bool secrets, struct bh_buf *b)
{
    struct bh_arena a;

    bh_arena_init(&a, 0);
    struct bh_json *tree = bh_json_clone(&a, c->tree);
    bh_json_each(e, secrets ? NULL : bh_json_get(tree, "extenders"))
        bh_json_drop(bh_json_get(e, "tlsConfig"), "certData keyData");
    if (form == BH_SCHED_CONFIG_YAML)
        bh_yaml_write(b, tree);
    else if (form == BH_SCHED_CONFIG_JSON)
        bh_json_write(b, tree);
    else
        bh_json_write_pretty(b, tree);
    bh_arena_fini(&a);
}
