/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/config.c - from file to profiles
 *
 * Upstream: pkg/scheduler/apis/config/scheme, cmd/kube-scheduler/app/options; differences: only v1
 * is read; extenders are refused in this release.
 */
#include <errno.h>

#include "common/data/yaml.h"
#include "scheduler/config/config_int.h"
#include "scheduler/plugins/registry.h"

#define CONFIG_FILE_MAX ((size_t)4 << 20)
#define GROUP           "kubescheduler.config.k8s.io"
#define NS_PER_S        ((int64_t)1000000000)

static const struct bh_field leader_schema[] = {
    {"leaderElect", BH_FIELD_BOOL, NULL, NULL},
    {"leaseDuration", BH_FIELD_DURATION, NULL, NULL},
    {"renewDeadline", BH_FIELD_DURATION, NULL, NULL},
    {"retryPeriod", BH_FIELD_DURATION, NULL, NULL},
    {"resourceLock", BH_FIELD_STRING, NULL, NULL},
    {"resourceName", BH_FIELD_STRING, NULL, NULL},
    {"resourceNamespace", BH_FIELD_STRING, NULL, NULL},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field client_schema[] = {
    {"kubeconfig", BH_FIELD_STRING, NULL, NULL},
    {"acceptContentTypes", BH_FIELD_STRING, NULL, NULL},
    {"contentType", BH_FIELD_STRING, NULL, NULL},
    {"qps", BH_FIELD_FLOAT, NULL, NULL},
    {"burst", BH_FIELD_INT32, NULL, NULL},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field plugin_schema[] = {
    {"name", BH_FIELD_STRING, NULL, NULL},
    {"weight", BH_FIELD_INT32, NULL, NULL},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field set_schema[] = {
    {"enabled", BH_FIELD_OBJECTS, plugin_schema, "Plugin"},
    {"disabled", BH_FIELD_OBJECTS, plugin_schema, "Plugin"},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field plugins_schema[] = {
    {"preEnqueue", BH_FIELD_OBJECT, set_schema, "PluginSet"},
    {"queueSort", BH_FIELD_OBJECT, set_schema, "PluginSet"},
    {"preFilter", BH_FIELD_OBJECT, set_schema, "PluginSet"},
    {"filter", BH_FIELD_OBJECT, set_schema, "PluginSet"},
    {"postFilter", BH_FIELD_OBJECT, set_schema, "PluginSet"},
    {"preScore", BH_FIELD_OBJECT, set_schema, "PluginSet"},
    {"score", BH_FIELD_OBJECT, set_schema, "PluginSet"},
    {"reserve", BH_FIELD_OBJECT, set_schema, "PluginSet"},
    {"permit", BH_FIELD_OBJECT, set_schema, "PluginSet"},
    {"preBind", BH_FIELD_OBJECT, set_schema, "PluginSet"},
    {"bind", BH_FIELD_OBJECT, set_schema, "PluginSet"},
    {"postBind", BH_FIELD_OBJECT, set_schema, "PluginSet"},
    {"multiPoint", BH_FIELD_OBJECT, set_schema, "PluginSet"},
    {"placementGenerate", BH_FIELD_OBJECT, set_schema, "PluginSet"},
    {"placementScore", BH_FIELD_OBJECT, set_schema, "PluginSet"},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field args_schema[] = {
    {"name", BH_FIELD_STRING, NULL, NULL},
    {"args", BH_FIELD_RAW, NULL, NULL},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field profile_schema[] = {
    {"schedulerName", BH_FIELD_STRING, NULL, NULL},
    {"percentageOfNodesToScore", BH_FIELD_INT32, NULL, NULL},
    {"plugins", BH_FIELD_OBJECT, plugins_schema, "Plugins"},
    {"pluginConfig", BH_FIELD_OBJECTS, args_schema, "PluginConfig"},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
const struct bh_field bh_config_schema[] = {
    {"apiVersion", BH_FIELD_STRING, NULL, NULL},
    {"kind", BH_FIELD_STRING, NULL, NULL},
    {"parallelism", BH_FIELD_INT32, NULL, NULL},
    {"leaderElection", BH_FIELD_OBJECT, leader_schema, "LeaderElectionConfiguration"},
    {"clientConnection", BH_FIELD_OBJECT, client_schema, "ClientConnectionConfiguration"},
    {"enableProfiling", BH_FIELD_BOOL, NULL, NULL},
    {"enableContentionProfiling", BH_FIELD_BOOL, NULL, NULL},
    {"percentageOfNodesToScore", BH_FIELD_INT32, NULL, NULL},
    {"podInitialBackoffSeconds", BH_FIELD_INT64, NULL, NULL},
    {"podMaxBackoffSeconds", BH_FIELD_INT64, NULL, NULL},
    {"profiles", BH_FIELD_OBJECTS, profile_schema, "KubeSchedulerProfile"},
    {"extenders", BH_FIELD_RAW, NULL, NULL},
    {"delayCacheUntilActive", BH_FIELD_BOOL, NULL, NULL},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};

/* ---- decoding ---------------------------------------------------------------------------------
 */

static int check_identity(struct bh_arena *a, const struct bh_json *tree, struct bh_err *err)
{
    const char *kind = bh_json_get_str(tree, "kind");
    const char *version = bh_json_get_str(tree, "apiVersion");

    if (!kind || !*kind)
        return bh_err_set(err, -EINVAL, "Object 'Kind' is missing in '%s'",
                          tree->type == BH_JSON_NULL ? "" : bh_field_value(a, tree));
    if (!version || !*version)
        return bh_err_set(err, -EINVAL, "Object 'apiVersion' is missing in '%s'",
                          bh_field_value(a, tree));
    if (!bh_streq(version, GROUP "/v1"))
        return bh_err_set(err, -EINVAL,
                          "no kind \"%s\" is registered for version \"%s\" in scheme "
                          "\"pkg/scheduler/apis/config/scheme/scheme.go:29\"",
                          kind, version);
    if (bh_streq(kind, "KubeSchedulerConfiguration"))
        return 0;
    for (unsigned i = 0; bh_plugins[i]; i++) {
        const char *name = bh_plugins[i]->name;
        size_t n = strlen(name);
        if (strncmp(kind, name, n) == 0 && bh_streq(kind + n, "Args") && bh_plugins[i]->args_schema)
            return bh_err_set(
                err, -EINVAL,
                "couldn't decode as KubeSchedulerConfiguration, got %s, Kind=%s: ", version, kind);
    }
    return bh_err_set(err, -EINVAL,
                      "no kind \"%s\" is registered for version \"%s\" in scheme "
                      "\"pkg/scheduler/apis/config/scheme/scheme.go:29\"",
                      kind, version);
}

static void join_unknown(const struct bh_field_errors *e, struct bh_err *err)
{
    struct bh_buf b = {0};

    for (uint32_t i = 0; i < e->n; i++) {
        if (i)
            bh_buf_adds(&b, ", ");
        bh_buf_adds(&b, e->v[i]);
    }
    bh_err_set(err, 0, "%s", bh_buf_str(&b));
    bh_buf_fini(&b);
}

/* Args may name their own kind; apart from that they hold the plugin's fields and nothing else. */
static int decode_args(struct bh_arena *a, const struct bh_json *entry, const char *at,
                       struct bh_err *err)
{
    const char *name = bh_json_get_str(entry, "name");
    const struct bh_plugin *p = name ? bh_plugin_find(name) : NULL;
    const struct bh_json *args = bh_json_get(entry, "args");
    struct bh_field_errors unknown = {.a = a};
    char go_type[128];

    if (!p || !p->args_schema || !args || args->type == BH_JSON_NULL)
        return 0;
    snprintf(go_type, sizeof go_type, "%sArgs", name);
    const char *kind = bh_json_get_str(args, "kind");
    if (kind && !bh_streq(kind, go_type))
        return bh_err_set(err, -EINVAL,
                          "decoding %s: args for plugin %s were not of type %s." GROUP
                          ", got %s." GROUP,
                          at, name, go_type, kind);
    struct bh_json *own = bh_json_clone(a, args);
    bh_json_unset(own, "kind");
    bh_json_unset(own, "apiVersion");
    int rc = bh_fields_check(own, p->args_schema, go_type, &unknown, err);
    if (rc < 0)
        return bh_err_prefix(err, rc, "decoding %s: decoding args for plugin %s", at, name);
    if (!unknown.n)
        return 0;
    join_unknown(&unknown, err);
    return bh_err_prefix(err, -EINVAL,
                         "strict decoding error: decoding %s: strict decoding error: decoding args "
                         "for plugin %s: strict decoding error",
                         at, name);
}

static int decode(struct bh_arena *a, const struct bh_json *tree, struct bh_err *err)
{
    struct bh_field_errors unknown = {.a = a};
    unsigned i = 0;

    int rc = check_identity(a, tree, err);
    if (rc >= 0)
        rc = bh_fields_check(tree, bh_config_schema, "KubeSchedulerConfiguration", &unknown, err);
    if (rc < 0)
        return rc;
    if (unknown.n) {
        join_unknown(&unknown, err);
        return bh_err_prefix(err, -EINVAL, "strict decoding error");
    }
    bh_json_each(p, bh_json_get(tree, "profiles"))
    {
        unsigned k = 0;
        bh_json_each(entry, bh_json_get(p, "pluginConfig"))
        {
            char at[64];
            snprintf(at, sizeof at, ".profiles[%u].pluginConfig[%u]", i, k++);
            rc = decode_args(a, entry, at, err);
            if (rc < 0)
                return rc;
        }
        i++;
    }
    return 0;
}

/* ---- building ---------------------------------------------------------------------------------
 */

static const struct bh_json *present(const struct bh_json *obj, const char *key)
{
    const struct bh_json *v = bh_json_get(obj, key);
    return v && v->type != BH_JSON_NULL ? v : NULL;
}

static int build_profile(struct bh_sched_config *c, struct bh_profile_config *p,
                         const struct bh_json *profile, struct bh_err *err)
{
    const struct bh_json *list = bh_json_get(profile, "pluginConfig");
    const struct bh_json *pct = present(profile, "percentageOfNodesToScore");
    const char *name = bh_json_get_str(profile, "schedulerName");

    p->scheduler_name = name ? name : "default-scheduler";
    p->has_percentage = pct != NULL;
    p->percentage_of_nodes_to_score =
        (int32_t)bh_json_get_i64(profile, "percentageOfNodesToScore", 0);
    p->args = bh_arena_new_array(&c->arena, struct bh_plugin_args, list ? list->c.n + 1 : 1);
    bh_json_each(entry, list)
    {
        const char *plugin = bh_json_get_str(entry, "name");
        p->args[p->n_args++] =
            (struct bh_plugin_args){.name = plugin ? plugin : "", .args = present(entry, "args")};
    }
    return bh_config_expand(c, p, profile, err);
}

/* Upstream checks these args when it makes the plugin, so its errors carry the constructor's
 * prefix. */
static int check_constructors(struct bh_sched_config *c, const struct bh_profile_config *p,
                              struct bh_err *err)
{
    for (uint32_t i = 0; i < p->n_args; i++) {
        const struct bh_plugin *pl = bh_plugin_find(p->args[i].name);
        struct bh_field_errors errs = {.a = &c->arena};
        if (!pl || !pl->check_at_construction)
            continue;
        pl->args_check(p->args[i].args, "", &errs);
        if (!errs.n)
            continue;
        bh_field_errors_join(&errs, err);
        return bh_err_prefix(err, -EINVAL,
                             "initializing profiles: creating profile for scheduler name %s: "
                             "initializing plugin \"%s\"",
                             p->scheduler_name, pl->name);
    }
    return 0;
}

static int build(struct bh_sched_config *c, const struct bh_json *tree, struct bh_err *err)
{
    const struct bh_json *list = bh_json_get(tree, "profiles");
    uint32_t n = list && list->type == BH_JSON_ARRAY ? (uint32_t)list->c.n : 0;
    int rc = 0;

    c->parallelism = (int32_t)bh_json_get_i64(tree, "parallelism", 16);
    c->percentage_of_nodes_to_score = (int32_t)bh_json_get_i64(tree, "percentageOfNodesToScore", 0);
    c->pod_initial_backoff_ns = NS_PER_S * bh_json_get_i64(tree, "podInitialBackoffSeconds", 1);
    c->pod_max_backoff_ns = NS_PER_S * bh_json_get_i64(tree, "podMaxBackoffSeconds", 10);
    c->client_connection = present(tree, "clientConnection");
    c->leader_election = present(tree, "leaderElection");
    c->n_profiles = n ? n : 1;
    c->profiles = bh_arena_new_array(&c->arena, struct bh_profile_config, c->n_profiles);
    for (uint32_t i = 0; i < c->n_profiles && rc >= 0; i++) {
        rc = build_profile(c, &c->profiles[i], n ? bh_json_at(list, i) : NULL, err);
        if (rc >= 0)
            rc = check_constructors(c, &c->profiles[i], err);
    }
    return rc;
}

int bh_sched_config_new(const struct bh_json *tree, struct bh_sched_config **ret,
                        struct bh_err *err)
{
    struct bh_sched_config *c = bh_calloc(1, sizeof *c);
    struct bh_field_errors errs = {.a = &c->arena};
    int rc = 0;

    bh_arena_init(&c->arena, 0);
    if (tree) {
        tree = bh_json_clone(&c->arena, tree);
        rc = decode(&c->arena, tree, err);
        if (rc >= 0)
            bh_config_validate(tree, &errs);
        if (rc >= 0 && errs.n) {
            bh_field_errors_join(&errs, err);
            rc = -EINVAL;
        }
    }
    if (rc >= 0)
        rc = build(c, tree, err);
    if (rc < 0) {
        bh_sched_config_free(c);
        return rc;
    }
    *ret = c;
    return 0;
}

int bh_sched_config_load(const char *path, struct bh_sched_config **ret, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *text = NULL;
    struct bh_arena a;
    struct bh_json *tree;
    size_t n;

    if (!path)
        return bh_sched_config_new(NULL, ret, err);
    int rc = bh_read_file(path, CONFIG_FILE_MAX, &text, &n);
    if (rc < 0)
        return bh_err_set(err, rc, "open %s: %s", path, strerror(-rc));
    bh_arena_init(&a, 64 * CONFIG_FILE_MAX);
    rc = bh_yaml_parse(&a, text, n, BH_JSON_STRICT, &tree, err);
    if (rc >= 0)
        rc = bh_sched_config_new(tree, ret, err);
    bh_arena_fini(&a);
    return rc;
}

void bh_sched_config_free(struct bh_sched_config *c)
{
    if (!c)
        return;
    bh_arena_fini(&c->arena);
    free(c);
}
