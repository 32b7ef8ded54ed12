/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/complete.c - the tree with every default in it
 *
 * Stage A of upstream's two (B is expand.c): each extension point's set is merged with the defaults
 * of the file's version, for each point separately.
 *
 * Upstream: pkg/scheduler/apis/config/v1/{defaults,default_plugins}.go, component-base/config.
 */
#include "common/base/map.h"
#include "common/base/opt.h"
#include "scheduler/config/config_int.h"
#include "scheduler/framework/plugin.h"

/* ---- plugin sets -----------------------------------------------------------------------------
 */

/* Betas had these among their plugins; v1 has not, but this build may. */
static bool is_gone(const struct bh_config_ctx *x, const char *plugin)
{
    return x->version != BH_CONFIG_V1 &&
           (bh_config_is_legacy(plugin) || bh_streq(plugin, "SelectorSpread")) &&
           !bh_plugin_find(plugin);
}

void bh_config_push_plugin(struct bh_arena *a, struct bh_json *set, const char *list,
                           const char *name, int64_t weight, uint32_t line)
{
    struct bh_json *to = bh_json_get(set, list), *p = bh_json_new(a, BH_JSON_OBJECT);

    if (!to)
        to = bh_json_set(a, set, list, bh_json_new(a, BH_JSON_ARRAY));
    p->line = line;
    bh_json_set_str(a, p, "name", name)->line = line;
    bh_json_set_i64(a, p, "weight", weight)->line = line;
    bh_json_push(to, p);
}

static void push_custom(struct bh_config_ctx *x, struct bh_json *set, const struct bh_json *p)
{
    const char *name = bh_json_get_text(p, "name");

    if (is_gone(x, name))
        bh_config_warn(x, p,
                       "plugin \"%s\" is no longer there and left out; volumes of its kind are "
                       "counted by NodeVolumeLimits, spreading is PodTopologySpread's",
                       name);
    else
        bh_config_push_plugin(x->a, set, "enabled", name, bh_json_get_i64(p, "weight", 0), p->line);
}

static bool is_listed(const struct bh_json *list, const char *name)
{
    bh_json_each(p, list)
        if (bh_streq(bh_json_get_text(p, "name"), name))
            return true;
    return false;
}

/* The custom entry that takes the place of the default: the last of that name. */
static const struct bh_json *replacement(const struct bh_json *enabled, const char *name)
{
    const struct bh_json *hit = NULL;

    bh_json_each(p, enabled)
        if (bh_streq(bh_json_get_text(p, "name"), name))
            hit = p;
    return hit;
}

/* Defaults that are not disabled, replaced in place by the profile's entry of the same name, then
 * the profile's other entries. */
static struct bh_json *merge_set(struct bh_config_ctx *x, const struct bh_plugin_ref *defaults,
                                 const struct bh_json *custom)
{
    const struct bh_json *on = bh_json_get(custom, "enabled"),
                         *off = bh_json_get(custom, "disabled");
    struct bh_json *out = bh_json_new(x->a, BH_JSON_OBJECT);
    const struct bh_json *used[32]; /* as many as defaults at most */
    unsigned n_used = 0;

    out->line = custom ? custom->line : 0;
    bh_json_each(p, off)
        bh_config_push_plugin(x->a, out, "disabled", bh_json_get_text(p, "name"), 0, p->line);
    for (; defaults->name && !is_listed(off, "*"); defaults++) {
        const struct bh_json *p = replacement(on, defaults->name);
        if (is_listed(off, defaults->name) || (!bh_plugin_find(defaults->name) && !p))
            continue;
        if (p && n_used < BH_ARRAY_LEN(used)) {
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

/* Names that are disabled without being plugins have no effect: most likely a slip. */
static void warn_unknown(struct bh_config_ctx *x, const struct bh_json *set)
{
    bh_json_each(p, bh_json_get(set, "disabled")) {
        const char *name = bh_json_get_text(p, "name");
        if (!bh_streq(name, "*") && !bh_plugin_find(name) && !bh_config_is_legacy(name))
            bh_config_warn(x, p, "there is no plugin \"%s\": disabling it has no effect", name);
    }
}

static struct bh_json *complete_plugins(struct bh_config_ctx *x, const struct bh_json *plugins)
{
    struct bh_json *out = bh_json_new(x->a, BH_JSON_OBJECT);

    out->line = plugins ? plugins->line : 0;
    for (unsigned pt = 0; pt < BH_POINT_KEYS; pt++) {
        const struct bh_json *custom = bh_config_present(plugins, bh_point_names[pt].key);
        struct bh_json *set = merge_set(x, bh_config_defaults(x->version, pt), custom);
        bh_json_set(x->a, out, bh_point_names[pt].key, set);
        warn_unknown(x, set);
    }
    if (x->version == BH_CONFIG_V1BETA3 || x->version == BH_CONFIG_V1BETA2) {
        /* For a reader of v1: its own defaults must not come on top. */
        struct bh_json *multi = bh_json_get(out, "multiPoint");
        if (!is_listed(bh_json_get(multi, "disabled"), "*"))
            bh_config_push_plugin(x->a, multi, "disabled", "*", 0, 0);
    }
    return out;
}

/* ---- pluginConfig ----------------------------------------------------------------------------
 */

static struct bh_json *args_entry(struct bh_arena *a, const char *name, struct bh_json *args)
{
    struct bh_json *e = bh_json_new(a, BH_JSON_OBJECT);

    bh_json_set_str(a, e, "name", name);
    if (args)
        bh_json_set(a, e, "args", args);
    return e;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_among(const char *const *names, unsigned n, const char *name)
{
    for (unsigned i = 0; i < n; i++)
        if (bh_streq(names[i], name))
            return true;
    return false;
}

/* The file's entries in its order, then those of other enabled plugins by name. */
static struct bh_json *complete_args(struct bh_config_ctx *x, const struct bh_json *list,
                                     const struct bh_json *plugins)
{
    struct bh_json *out = bh_json_new(x->a, BH_JSON_ARRAY);
    const char *needed[64], *rest[64];
    unsigned n_needed = 0, n = 0;

    out->line = list ? list->line : 0;
    for (unsigned i = 0; bh_plugins[i] && n_needed < BH_ARRAY_LEN(needed); i++)
        if (bh_config_needed(plugins, bh_plugins[i]->name))
            needed[n_needed++] = bh_plugins[i]->name;
    bh_json_each(e, list) {
        const char *name = bh_json_get_text(e, "name");
        const struct bh_json *args = bh_config_present(e, "args");
        const struct bh_plugin *p = bh_plugin_find(name);
        struct bh_json *done = bh_config_args(x->a, name, args);
        struct bh_json *entry =
            args_entry(x->a, name, done || !args ? done : bh_json_clone(x->a, args));
        entry->line = e->line;
        bh_json_push(out, entry);
        if (p && !p->args_schema && args)
            bh_config_warn(x, e, "plugin \"%s\" takes no args: they have no effect", name);
        if (!p && !bh_config_is_legacy(name))
            bh_config_warn(x, e, "there is no plugin \"%s\": its args have no effect", name);
        else if (p && !is_among(needed, n_needed, name))
            bh_config_warn(x, e, "plugin \"%s\" is not enabled: its args have no effect", name);
    }
    for (unsigned i = 0; i < n_needed; i++)
        if (bh_plugin_find(needed[i])->args_schema && !is_listed(list, needed[i]))
            rest[n++] = needed[i];
    qsort(rest, n, sizeof *rest, by_text);
    for (unsigned i = 0; i < n; i++)
        bh_json_push(out, args_entry(x->a, rest[i], bh_config_args(x->a, rest[i], NULL)));
    return out;
}

/* ---- the rest --------------------------------------------------------------------------------
 */

/* Copies the member; false when it is absent, null, or what Go takes for absent. */
static bool keep(struct bh_arena *a, struct bh_json *out, const struct bh_json *in, const char *key)
{
    const struct bh_json *v = bh_config_present(in, key);

    if (v)
        bh_json_set(a, out, key, bh_json_clone(a, v));
    return v != NULL;
}

static void keep_i64(struct bh_arena *a, struct bh_json *out, const struct bh_json *in,
                     const char *key, int64_t dflt)
{
    if (!keep(a, out, in, key))
        bh_json_set_i64(a, out, key, dflt);
}

static void keep_bool(struct bh_arena *a, struct bh_json *out, const struct bh_json *in,
                      const char *key, bool dflt)
{
    if (!keep(a, out, in, key))
        bh_json_set_bool(a, out, key, dflt);
}

static void keep_text(struct bh_arena *a, struct bh_json *out, const struct bh_json *in,
                      const char *key, const char *dflt)
{
    if (!*bh_json_get_text(in, key) || !keep(a, out, in, key))
        bh_json_set_str(a, out, key, dflt);
}

/* In canonical form; 0 counts as absent. */
static void keep_duration(struct bh_arena *a, struct bh_json *out, const struct bh_json *in,
                          const char *key, int64_t dflt_ns)
{
    const struct bh_json *v = bh_config_present(in, key);
    char text[32];
    int64_t ns = 0;

    if (v)
        (void)bh_parse_duration_ns(v->s.p, &ns);
    bh_format_duration_ns(ns ? ns : dflt_ns, text);
    bh_json_set_str(a, out, key, text)->line = v ? v->line : 0;
}

static struct bh_json *child(struct bh_arena *a, struct bh_json *out, const struct bh_json *in,
                             const char *key)
{
    const struct bh_json *v = bh_config_present(in, key);
    struct bh_json *c = bh_json_set(a, out, key, bh_json_new(a, BH_JSON_OBJECT));

    c->line = v ? v->line : 0;
    return c;
}

static void complete_components(struct bh_arena *a, struct bh_json *out, const struct bh_json *in)
{
    const struct bh_json *le = bh_config_present(in, "leaderElection");
    const struct bh_json *cc = bh_config_present(in, "clientConnection");
    const struct bh_json *qps = bh_config_present(cc, "qps");
    struct bh_json *o = child(a, out, in, "clientConnection");

    keep_text(a, o, cc, "kubeconfig", "");
    keep_text(a, o, cc, "acceptContentTypes", "");
    keep_text(a, o, cc, "contentType", "application/vnd.kubernetes.protobuf");
    if (!qps || strtod(qps->s.p, NULL) == 0 || !keep(a, o, cc, "qps"))
        bh_json_set_i64(a, o, "qps", 50);
    if (!bh_json_get_i64(cc, "burst", 0) || !keep(a, o, cc, "burst"))
        bh_json_set_i64(a, o, "burst", 100);
    o = child(a, out, in, "leaderElection");
    keep_bool(a, o, le, "leaderElect", true);
    keep_duration(a, o, le, "leaseDuration", 15 * BH_CONFIG_NS_PER_S);
    keep_duration(a, o, le, "renewDeadline", 10 * BH_CONFIG_NS_PER_S);
    keep_duration(a, o, le, "retryPeriod", 2 * BH_CONFIG_NS_PER_S);
    keep_text(a, o, le, "resourceLock", "leases");
    keep_text(a, o, le, "resourceName", "kube-scheduler");
    keep_text(a, o, le, "resourceNamespace", "kube-system");
}

/* Fields that Go leaves out when they are empty. */
static void keep_set(struct bh_arena *a, struct bh_json *out, const struct bh_json *in,
                     const char *key)
{
    const struct bh_json *v = bh_config_present(in, key);
    int64_t i;
    bool empty = !v || (v->type == BH_JSON_STRING && !v->s.n) ||
                 (v->type == BH_JSON_BOOL && !v->b) ||
                 (v->type == BH_JSON_NUMBER && bh_json_i64(v, &i) && i == 0) ||
                 ((v->type == BH_JSON_ARRAY || v->type == BH_JSON_OBJECT) && !v->c.n);

    if (!empty)
        keep(a, out, in, key);
}

static struct bh_json *complete_extender(struct bh_arena *a, const struct bh_json *in)
{
    static const char *const fields[] = {"filterVerb",       "preemptVerb", "prioritizeVerb",
                                         "weight",           "bindVerb",    "enableHTTPS",
                                         "nodeCacheCapable", "ignorable"};
    static const char *const tls_fields[] = {"insecure", "serverName", "certFile", "keyFile",
                                             "caFile",   "certData",   "keyData",  "caData"};
    const struct bh_json *tls = bh_config_present(in, "tlsConfig");
    const struct bh_json *managed = bh_config_present(in, "managedResources");
    struct bh_json *out = bh_json_new(a, BH_JSON_OBJECT);

    out->line = in->line;
    if (in->type != BH_JSON_OBJECT)
        in = NULL;
    keep_text(a, out, in, "urlPrefix", "");
    for (unsigned i = 0; i < BH_ARRAY_LEN(fields); i++)
        keep_set(a, out, in, fields[i]);
    keep_duration(a, out, in, "httpTimeout", 5 * BH_CONFIG_NS_PER_S);
    if (tls) {
        struct bh_json *o = child(a, out, in, "tlsConfig");
        for (unsigned i = 0; i < BH_ARRAY_LEN(tls_fields); i++)
            keep_set(a, o, tls, tls_fields[i]);
    }
    if (bh_config_len(managed)) {
        struct bh_json *list =
            bh_json_set(a, out, "managedResources", bh_json_new(a, BH_JSON_ARRAY));
        list->line = managed->line;
        bh_json_each(m, managed) {
            struct bh_json *o = bh_json_new(a, BH_JSON_OBJECT);
            o->line = m->line;
            keep_text(a, o, m->type == BH_JSON_OBJECT ? m : NULL, "name", "");
            keep_set(a, o, m->type == BH_JSON_OBJECT ? m : NULL, "ignoredByScheduler");
            bh_json_push(list, o);
        }
    }
    return out;
}

static struct bh_json *complete_profile(struct bh_config_ctx *x, const struct bh_json *in,
                                        bool only)
{
    struct bh_json *out = bh_json_new(x->a, BH_JSON_OBJECT);

    out->line = in ? in->line : 0;
    if (in && in->type != BH_JSON_OBJECT)
        in = NULL; /* null in the list */
    if (!keep(x->a, out, in, "schedulerName") && only)
        bh_json_set_str(x->a, out, "schedulerName", "default-scheduler");
    keep(x->a, out, in, "percentageOfNodesToScore");
    struct bh_json *plugins = complete_plugins(x, bh_config_present(in, "plugins"));
    bh_json_set(x->a, out, "plugins", plugins);
    bh_json_set(x->a, out, "pluginConfig",
                complete_args(x, bh_config_present(in, "pluginConfig"), plugins));
    return out;
}

struct bh_json *bh_config_complete(struct bh_config_ctx *x, const struct bh_json *tree)
{
    struct bh_arena *a = x->a;
    struct bh_json *out = bh_json_new(a, BH_JSON_OBJECT);
    const struct bh_json *profiles = bh_config_present(tree, "profiles");
    const struct bh_json *extenders = bh_config_present(tree, "extenders");
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);

    out->line = tree ? tree->line : 0;
    bh_json_set_str(a, out, "apiVersion", BH_CONFIG_GROUP "/v1");
    bh_json_set_str(a, out, "kind", "KubeSchedulerConfiguration");
    complete_components(a, out, tree);
    keep_bool(a, out, tree, "enableProfiling", true);
    keep_bool(a, out, tree, "enableContentionProfiling",
              bh_json_get_bool(out, "enableProfiling", true));
    keep_i64(a, out, tree, "parallelism", 16);
    keep_i64(a, out, tree, "percentageOfNodesToScore", 0);
    keep_i64(a, out, tree, "podInitialBackoffSeconds", 1);
    keep_i64(a, out, tree, "podMaxBackoffSeconds", 10);
    keep_set(a, out, tree, "delayCacheUntilActive");
    bh_json_set(a, out, "profiles", list);
    list->line = profiles ? profiles->line : 0;
    bh_json_each(p, profiles)
        bh_json_push(list, complete_profile(x, p, bh_config_len(profiles) == 1));
    if (!list->c.n)
        bh_json_push(list, complete_profile(x, NULL, true));
    if (bh_config_len(extenders)) {
        list = bh_json_set(a, out, "extenders", bh_json_new(a, BH_JSON_ARRAY));
        list->line = extenders->line;
        bh_json_each(e, extenders)
            bh_json_push(list, complete_extender(a, e));
    }
    return out;
}
