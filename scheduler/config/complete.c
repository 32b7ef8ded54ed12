/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/complete.c - the tree with every default in it
 *
 * Stage A of upstream's two (B is expand.c): each extension point's set is merged with the defaults
 * of the file's version, for each point separately.
 *
 * Upstream: pkg/scheduler/apis/config/v1/{defaults,default_plugins}.go, component-base/config.
 */
#include "common/base/opt.h"
#include "scheduler/config/config_int.h"
#include "scheduler/framework/plugin.h"

/* ---- plugin sets ----------------------------------------------------------------------------- */

void bh_config_push_plugin(struct bh_arena *a, struct bh_json *set, const char *list,
                           const char *name, int64_t weight, uint32_t line)
{
    struct bh_json *p =
        bh_json_append(a, bh_json_list_at(a, set, list), "name: %s, weight: %ld", name, weight);

    p->line = line;
    bh_json_each(m, p)
        m->line = line;
}

static void push_custom(struct bh_config_ctx *x, struct bh_json *set, const struct bh_json *p)
{
    const char *name = bh_json_get_text(p, "name");

    /* Betas had these among their plugins; v1 has not, but this build may. */
    if (x->version != BH_CONFIG_V1 && !bh_plugin_find(name) &&
        (bh_config_is_legacy(name) || bh_streq(name, "SelectorSpread")))
        bh_config_warn(x, p,
                       "plugin \"%s\" is no longer there and left out; volumes of its kind are "
                       "counted by NodeVolumeLimits, spreading is PodTopologySpread's",
                       name);
    else
        bh_config_push_plugin(x->a, set, "enabled", name, bh_json_get_i64(p, "weight", 0), p->line);
}

/* Defaults that are not disabled, replaced in place by the profile's entry of the same name, then
 * the profile's other entries. */
static struct bh_json *merge_set(struct bh_config_ctx *x, const struct bh_plugin_ref *defaults,
                                 const struct bh_json *custom)
{
    const struct bh_json *on = bh_json_get(custom, "enabled"),
                         *off = bh_json_get(custom, "disabled");
    struct bh_json *out = bh_json_new(x->a, BH_JSON_OBJECT);
    const struct bh_json *used[BH_DEFAULTS_MAX];
    unsigned n_used = 0;

    out->line = custom ? custom->line : 0;
    bh_json_each(p, off)
        bh_config_push_plugin(x->a, out, "disabled", bh_json_get_text(p, "name"), 0, p->line);
    for (; defaults->name && !bh_config_named(off, "*"); defaults++) {
        const struct bh_json *p = NULL; /* the profile's entry: the last of that name */
        bh_json_each(entry, on)
            if (bh_streq(bh_json_get_text(entry, "name"), defaults->name))
                p = entry;
        if (bh_config_named(off, defaults->name) || (!bh_plugin_find(defaults->name) && !p))
            continue;
        if (p) {
            if (x->version == BH_CONFIG_V1 && defaults->weight > 1 &&
                !bh_json_get_i64(p, "weight", 0))
                bh_config_warn(x, p,
                               "\"%s\" is listed again without a weight: its weight becomes 1, "
                               "the default is %d",
                               defaults->name, defaults->weight);
            push_custom(x, out, p);
            used[n_used++] = p;
        } else {
            bh_config_push_plugin(x->a, out, "enabled", defaults->name, defaults->weight, 0);
        }
    }
    bh_json_each(p, on) {
        bool replaced = false;
        for (unsigned i = 0; i < n_used; i++)
            replaced |= used[i] == p;
        if (!replaced)
            push_custom(x, out, p);
    }
    return out;
}

static struct bh_json *complete_plugins(struct bh_config_ctx *x, const struct bh_json *plugins)
{
    struct bh_json *out = bh_json_new(x->a, BH_JSON_OBJECT);

    out->line = plugins ? plugins->line : 0;
    for (unsigned pt = 0; pt < BH_POINT_KEYS; pt++) {
        const struct bh_json *custom = bh_config_present(plugins, bh_point_names[pt]);
        struct bh_json *set = merge_set(x, bh_config_defaults(x, pt), custom);
        bh_json_set(x->a, out, bh_point_names[pt], set);
        /* Names that are disabled without being plugins have no effect: most likely a slip. */
        bh_json_each(p, bh_json_get(set, "disabled")) {
            const char *name = bh_json_get_text(p, "name");
            if (!bh_streq(name, "*") && !bh_plugin_find(name) && !bh_config_is_legacy(name))
                bh_config_warn(x, p, "there is no plugin \"%s\": disabling it has no effect", name);
        }
    }
    if (x->version != BH_CONFIG_V1) /* a reader of v1 would add its own defaults */
        bh_config_disable_defaults(x, bh_json_get(out, "multiPoint"));
    return out;
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* What the file says, with the defaults for what it leaves out; d: the defaults, as of this field.
 * Which empty values count as left out is a matter of Go's types: texts and durations, and numbers
 * where they are no pointers; without a default everything empty. NULL: nothing is to be said. */
static struct bh_json *complete_value(struct bh_arena *a, const struct bh_json *v,
                                      const struct bh_field *f, const struct bh_json *d,
                                      bool pointers);

static struct bh_json *complete_object(struct bh_arena *a, const struct bh_json *in,
                                       const struct bh_field *table, const struct bh_json *defaults,
                                       bool pointers)
{
    struct bh_json *out = bh_json_new(a, BH_JSON_OBJECT);

    out->line = in ? in->line : 0;
    for (const struct bh_field *f = table; f->name; f++) {
        const struct bh_json *v = bh_config_present(in, f->name);
        struct bh_json *c = complete_value(a, v, f, bh_json_get(defaults, f->name), pointers);
        if (c)
            bh_json_set(a, out, f->name, c);
    }
    return out;
}

static bool is_empty(const struct bh_json *v)
{
    switch (v->type) {
    case BH_JSON_STRING:
        return !v->s.n;
    case BH_JSON_BOOL:
        return !v->b;
    case BH_JSON_NUMBER:
        return strtod(v->s.p, NULL) == 0;
    default:
        return !v->c.n;
    }
}

/* In canonical form. */
static struct bh_json *duration(struct bh_arena *a, const struct bh_json *v)
{
    int64_t ns = 0;
    char text[32];

    (void)bh_parse_duration_ns(v->s.p, &ns); /* checked while decoding */
    bh_format_duration_ns(ns, text);
    struct bh_json *out = bh_json_new_cstr(a, text);
    out->line = v->line;
    return out;
}

static struct bh_json *default_value(struct bh_arena *a, const struct bh_json *d)
{
    struct bh_json *v = d ? bh_json_clone(a, d) : NULL;

    if (v)
        v->line = 0;
    return v;
}

static struct bh_json *complete_value(struct bh_arena *a, const struct bh_json *v,
                                      const struct bh_field *f, const struct bh_json *d,
                                      bool pointers)
{
    struct bh_json *list, *given = NULL;

    switch (f->type) {
    case BH_FIELD_OBJECT:
        return v || d ? complete_object(a, v, f->sub, d, false) : NULL;
    case BH_FIELD_OBJECTS:
        if (!bh_config_len(v))
            return NULL;
        list = bh_json_new(a, BH_JSON_ARRAY);
        list->line = v->line;
        bh_json_each(e, v)
            bh_json_push(list, complete_object(a, e, f->sub, bh_json_at(d, 0), false));
        return list;
    case BH_FIELD_DURATION:
        given = v ? duration(a, v) : NULL;
        if (given && bh_streq(given->s.p, "0s"))
            given = NULL;
        break;
    default:
        if (v && (!is_empty(v) ||
                  (d && (v->type == BH_JSON_BOOL || (v->type == BH_JSON_NUMBER && pointers)))))
            given = bh_json_clone(a, v);
        break;
    }
    return given ? given : default_value(a, d);
}

/* ---- args ------------------------------------------------------------------------------------
 * The plugins' own parsers know their defaults, too; here they become visible (config show, the
 * written configuration) and reach the checks, which upstream runs on defaulted args.
 */

/* cpu and memory unless some are named; a weight of 0 is 1. */
static void default_resources(struct bh_arena *a, struct bh_json *o)
{
    const struct bh_json *list = bh_json_get(o, "resources");

    if (!list || !list->c.n)
        bh_json_add(a, o, "resources: [{name: cpu}, {name: memory}]");
    bh_json_each(r, bh_json_get(o, "resources"))
        if (!bh_json_get_i64(r, "weight", 0))
            bh_json_set_i64(a, r, "weight", 1);
}

static void default_args(struct bh_config_ctx *x, const struct bh_plugin *p, struct bh_json *o)
{
    static const char *const unsaid[] = {"ignoredResources", "ignoredResourceGroups",
                                         "defaultConstraints"};

    for (unsigned i = 0; i < BH_ARRAY_LEN(unsaid); i++)
        if (bh_json_get_list(o, unsaid[i]) && is_empty(bh_json_get(o, unsaid[i])))
            bh_json_unset(o, unsaid[i]);
    bh_json_each(d, bh_json_get(bh_json_get(x->defaults, "args"), p->name)) {
        const struct bh_json *v = bh_json_get(o, d->key.p);
        if (!v || (v->type == BH_JSON_STRING && is_empty(v)))
            bh_json_set(x->a, o, d->key.p, default_value(x->a, d));
    }
    for (const struct bh_field *f = p->args_schema; f->name; f++)
        if (f->type == BH_FIELD_DURATION && bh_json_get(o, f->name))
            bh_json_set(x->a, o, f->name, duration(x->a, bh_json_get(o, f->name)));
    if (bh_streq(p->name, "NodeResourcesFit"))
        default_resources(x->a, bh_json_get(o, "scoringStrategy"));
    else if (bh_streq(p->name, "NodeResourcesBalancedAllocation"))
        default_resources(x->a, o);
}

/* A copy in which null means absent, as in Go structs; in lists it is an empty object. Shares the
 * names of v. */
static struct bh_json *without_nulls(struct bh_arena *a, const struct bh_json *v)
{
    if (v->type != BH_JSON_OBJECT && v->type != BH_JSON_ARRAY)
        return bh_json_clone(a, v);
    struct bh_json *out = bh_json_new(a, v->type);
    out->line = v->line;
    bh_json_each(m, v) {
        bool null = m->type == BH_JSON_NULL;
        if (null && v->type == BH_JSON_OBJECT)
            continue;
        struct bh_json *c = null ? bh_json_new(a, BH_JSON_OBJECT) : without_nulls(a, m);
        c->key = m->key;
        bh_json_push(out, c);
    }
    return out;
}

/* Args of the plugin with defaults and kind, from those in the file (NULL: none). NULL: the plugin
 * takes none. */
static struct bh_json *complete_plugin_args(struct bh_config_ctx *x, const char *plugin,
                                            const struct bh_json *args)
{
    const struct bh_plugin *p = bh_plugin_find(plugin);

    if (!p || !p->args_schema)
        return NULL;
    struct bh_json *out = args ? without_nulls(x->a, args) : bh_json_new(x->a, BH_JSON_OBJECT);
    bh_json_add(x->a, out, "apiVersion: " BH_CONFIG_GROUP "/v1, kind: %s",
                bh_arena_printf(x->a, "%sArgs", plugin));
    default_args(x, p, out);
    return out;
}

/* ---- pluginConfig ---------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The file's entries in its order, then those of other enabled plugins by name. */
static struct bh_json *complete_args(struct bh_config_ctx *x, const struct bh_json *list,
                                     const struct bh_json *plugins)
{
    struct bh_json *out = bh_json_new(x->a, BH_JSON_ARRAY);
    const char *rest[64];
    unsigned n = 0;

    out->line = list ? list->line : 0;
    bh_json_each(e, list) {
        const char *name = bh_json_get_text(e, "name");
        const struct bh_json *args = bh_config_present(e, "args");
        const struct bh_plugin *p = bh_plugin_find(name);
        struct bh_json *done = complete_plugin_args(x, name, args);
        if (!done && args)
            done = bh_json_clone(x->a, args);
        bh_json_append(x->a, out, "name: %s, args?: %p", name, done)->line = e->line;
        if (p && !p->args_schema && !(p->flags & BH_PLUGIN_OWN_ARGS) && args)
            bh_config_warn(x, e, "plugin \"%s\" takes no args: they have no effect", name);
        if (!p && !bh_config_is_legacy(name))
            bh_config_warn(x, e, "there is no plugin \"%s\": its args have no effect", name);
        else if (p && !bh_config_needed(plugins, name))
            bh_config_warn(x, e, "plugin \"%s\" is not enabled: its args have no effect", name);
    }
    for (unsigned i = 0; bh_plugins[i] && n < BH_ARRAY_LEN(rest); i++) {
        const char *name = bh_plugins[i]->name;
        if (bh_plugins[i]->args_schema && bh_config_needed(plugins, name) &&
            !bh_config_named(list, name))
            rest[n++] = name;
    }
    qsort(rest, n, sizeof *rest, by_text);
    for (unsigned i = 0; i < n; i++)
        bh_json_append(x->a, out, "name: %s, args: %p", rest[i],
                       complete_plugin_args(x, rest[i], NULL));
    return out;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static struct bh_json *complete_profile(struct bh_config_ctx *x, const struct bh_json *in,
                                        bool only)
{
    static const char *const kept[] = {"schedulerName", "percentageOfNodesToScore"};
    struct bh_json *out = bh_json_new(x->a, BH_JSON_OBJECT);

    out->line = in ? in->line : 0;
    if (in && in->type != BH_JSON_OBJECT)
        in = NULL; /* null in the list */
    for (unsigned i = 0; i < BH_ARRAY_LEN(kept); i++) {
        const struct bh_json *v = bh_config_present(in, kept[i]);
        if (v)
            bh_json_set(x->a, out, kept[i], bh_json_clone(x->a, v));
    }
    if (only && !bh_json_get(out, "schedulerName"))
        bh_json_set_str(x->a, out, "schedulerName", "default-scheduler");
    struct bh_json *plugins = complete_plugins(x, bh_config_present(in, "plugins"));
    bh_json_set(x->a, out, "plugins", plugins);
    bh_json_set(x->a, out, "pluginConfig",
                complete_args(x, bh_config_present(in, "pluginConfig"), plugins));
    return out;
}

struct bh_json *bh_config_complete(struct bh_config_ctx *x, const struct bh_json *tree)
{
    struct bh_arena *a = x->a;
    const struct bh_json *profiles = bh_config_present(tree, "profiles");
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);
    struct bh_json *out =
        complete_object(a, tree, bh_config_schema(a, BH_CONFIG_V1, "KubeSchedulerConfiguration"),
                        bh_json_get(x->defaults, "values"), true);

    bh_json_add(a, out, "apiVersion: " BH_CONFIG_GROUP "/v1, kind: KubeSchedulerConfiguration");
    if (!bh_config_present(tree, "enableContentionProfiling"))
        bh_json_set_bool(a, out, "enableContentionProfiling",
                         bh_json_get_bool(out, "enableProfiling", true));
    bh_json_set(a, out, "profiles", list);
    list->line = profiles ? profiles->line : 0;
    bh_json_each(p, profiles)
        bh_json_push(list, complete_profile(x, p, bh_config_len(profiles) == 1));
    if (!list->c.n)
        bh_json_push(list, complete_profile(x, NULL, true));
    return out;
}
