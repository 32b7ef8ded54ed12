/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/decode.c - is the tree one of our configurations, with fields of the right
 * types?
 *
 * Errors come in upstream's order: identity; a wrong type outside the plugins' args; args that do
 * not belong to their plugin; then all strict errors as one list.
 *
 * Upstream: apimachinery/pkg/runtime/serializer/{json,versioning},
 * kube-scheduler/config/v1/types.go (DecodeNestedObjects), pkg/scheduler/apis/config/scheme,
 * cmd/kube-scheduler/app/options (loadConfig). differences: v1beta3, v1beta2 and Policy are read,
 * too.
 */
#include <errno.h>

#include "scheduler/config/config_int.h"
#include "scheduler/framework/plugin.h"

#define ROOT     "KubeSchedulerConfiguration"
#define TEXT_MAX 4096 /* of the file, in a message */
#define NOT_REGISTERED                                                                             \
    "no kind \"%s\" is registered for version \"%s\" in scheme "                                   \
    "\"pkg/scheduler/apis/config/scheme/scheme.go:29\""
#define PARSE_ERROR "couldn't get version/kind; json parse error: json: cannot unmarshal "
#define TYPE_META                                                                                  \
    "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string "               \
    "\"json:\\\"kind,omitempty\\\"\" }"

/* ---- identity -------------------------------------------------------------------------------- */

/* apiVersion and kind of v; an error text in the arena when they cannot even be read. */
static const char *type_meta(struct bh_arena *a, const struct bh_json *v, const char **ret_version,
                             const char **ret_kind)
{
    static const char *const keys[] = {"apiVersion", "kind"};

    if (v->type != BH_JSON_OBJECT && v->type != BH_JSON_NULL)
        return bh_arena_printf(a, PARSE_ERROR "%s into Go value of type " TYPE_META,
                               bh_field_json_type(v));
    for (unsigned i = 0; i < BH_ARRAY_LEN(keys) && v->type == BH_JSON_OBJECT; i++) {
        const struct bh_json *m = bh_config_present(v, keys[i]);
        if (m && m->type != BH_JSON_STRING)
            return bh_arena_printf(a, PARSE_ERROR "%s into Go struct field .%s of type string",
                                   bh_field_json_type(m), keys[i]);
    }
    *ret_version = v->type == BH_JSON_OBJECT ? bh_json_get_text(v, "apiVersion") : "";
    *ret_kind = v->type == BH_JSON_OBJECT ? bh_json_get_text(v, "kind") : "";
    const char *slash = strchr(*ret_version, '/');
    if (slash && strchr(slash + 1, '/'))
        return bh_arena_printf(a, "unexpected GroupVersion string: %s", *ret_version);
    return NULL;
}

static int missing(struct bh_config_ctx *x, const struct bh_json *tree, const char *what)
{
    const char *text = x->text                      ? x->text
                       : tree->type == BH_JSON_NULL ? ""
                                                    : bh_field_value(x->a, tree);

    return bh_config_fail(x, tree, "Object '%s' is missing in '%.*s%s'", what, TEXT_MAX, text,
                          strlen(text) > TEXT_MAX ? "..." : "");
}

/* Does the kind name the args of a plugin that takes some? */
static bool is_args_kind(const char *kind)
{
    for (unsigned i = 0; bh_plugins[i]; i++) {
        size_t n = strlen(bh_plugins[i]->name);
        if (strncmp(kind, bh_plugins[i]->name, n) == 0 && bh_streq(kind + n, "Args"))
            return bh_plugins[i]->args_schema != NULL;
    }
    return false;
}

static bool known_version(const char *api_version, enum bh_config_version *ret, const char **text)
{
    static const char *const names[] = {"v1", "v1beta3", "v1beta2"}; /* as enum bh_config_version */
    const size_t n = sizeof BH_CONFIG_GROUP;

    if (strncmp(api_version, BH_CONFIG_GROUP "/", n) != 0)
        return false;
    for (unsigned i = 0; i < BH_ARRAY_LEN(names); i++) {
        if (bh_streq(api_version + n, names[i])) {
            *ret = (enum bh_config_version)i;
            *text = names[i];
            return true;
        }
    }
    return false;
}

static int identify(struct bh_config_ctx *x, const struct bh_json *tree)
{
    const char *version = "", *kind = "";
    const char *error = type_meta(x->a, tree, &version, &kind);

    if (error)
        return bh_config_fail(x, tree, "%s", error);
    if (!*kind)
        return missing(x, tree, "Kind");
    if (!*version)
        return missing(x, tree, "apiVersion");
    if (bh_streq(kind, "Policy") &&
        (bh_streq(version, "v1") || bh_streq(version, BH_CONFIG_GROUP "/v1"))) {
        x->version = BH_CONFIG_POLICY;
        return 0;
    }
    if (!known_version(version, &x->version, &x->version_text) ||
        (!bh_streq(kind, ROOT) && !is_args_kind(kind)))
        return bh_config_fail(x, tree, NOT_REGISTERED, kind, version);
    if (is_args_kind(kind))
        return bh_config_fail(x, tree, "couldn't decode as " ROOT ", got %s, Kind=%s: ", version,
                              kind);
    return 0;
}

/* ---- args of plugins ------------------------------------------------------------------------- */

static int check_args_kind(struct bh_config_ctx *x, const struct bh_json *args, const char *at,
                           const char *name, const char *go_type)
{
    const char *version = "", *kind = "";
    const char *error = type_meta(x->a, args, &version, &kind);

    if (error)
        return bh_config_fail(x, args, "decoding %s: decoding args for plugin %s: %s", at, name,
                              error);
    kind = *kind ? kind : go_type;
    /* The version of args: that of the file, or none. */
    enum bh_config_version v;
    const char *text;
    if (!(!*version || (known_version(version, &v, &text) &&
                        (x->version != BH_CONFIG_V1 || v == BH_CONFIG_V1))) ||
        !(bh_streq(kind, go_type) || is_args_kind(kind)))
        return bh_config_fail(x, args, "decoding %s: decoding args for plugin %s: " NOT_REGISTERED,
                              at, name, kind, *version ? version : BH_CONFIG_GROUP "/v1");
    if (!bh_streq(kind, go_type))
        return bh_config_fail(x, args,
                              "decoding %s: args for plugin %s were not of type %s." BH_CONFIG_GROUP
                              ", got %s." BH_CONFIG_GROUP,
                              at, name, go_type, kind);
    return 0;
}

/* Of a plugin out of tree that checks its args itself: as one that upstream's scheme knows, unless the
 * args name an API group of its own. */
static int decode_own_args(struct bh_config_ctx *x, const struct bh_json *args, const char *at,
                           const char *name)
{
    const char *version = "", *kind = "";
    const char *error = type_meta(x->a, args, &version, &kind);

    if (!error && *version &&
        strncmp(version, BH_CONFIG_GROUP "/", sizeof BH_CONFIG_GROUP "/" - 1) != 0)
        return 0;
    return check_args_kind(x, args, at, name, bh_arena_printf(x->a, "%sArgs", name));
}

/* Args may name their own kind; apart from that they hold the plugin's fields and nothing else. */
static int decode_args(struct bh_config_ctx *x, const struct bh_json *entry, const char *at)
{
    const char *name = bh_json_get_text(entry, "name");
    const struct bh_plugin *p = bh_plugin_find(name);
    const struct bh_json *args = bh_config_present(entry, "args");
    struct bh_field_errors strict = {.a = x->a};
    struct bh_field_reader r = {.strict = &strict, .package = x->version_text, .repeats = x->json};

    if (p && args && p->flags & BH_PLUGIN_OWN_ARGS && p->args_check)
        return decode_own_args(x, args, at, name);
    if (!p || !p->args_schema || !args)
        return 0;
    const char *go_type = bh_arena_printf(x->a, "%sArgs", name);
    int rc = check_args_kind(x, args, at, name, go_type);
    if (rc < 0)
        return rc;
    struct bh_json *own = bh_json_clone(x->a, args);
    bh_json_unset(own, "kind");
    bh_json_unset(own, "apiVersion");
    if (bh_fields_check(&r, own, p->args_schema, go_type) < 0) {
        struct bh_json bad = {.line = r.error_line};
        return bh_config_fail(x, &bad, "decoding %s: decoding args for plugin %s: %s", at, name,
                              r.error);
    }
    for (uint32_t i = 0; i < strict.n; i++) {
        x->strict.line = strict.lines[i];
        bh_field_error(&x->strict,
                       "decoding %s: strict decoding error: decoding args for plugin %s: strict "
                       "decoding error: %s",
                       at, name, strict.v[i]);
    }
    return 0;
}

/* What YAML repeats is one error of upstream's, with all its lines in it. */
int bh_config_check_strict(struct bh_config_ctx *x)
{
    static const char prefix[] = "strict decoding error: ", yaml[] = "yaml: unmarshal errors:";
    const char *all = x->repeats.n ? yaml : "";
    struct bh_field_errors own = {.a = x->a};

    if (!x->repeats.n && !x->strict.n)
        return 0;
    for (uint32_t i = 0; i < x->repeats.n; i++) {
        all = bh_arena_printf(x->a, "%s\n  %s", all, x->repeats.v[i]);
        own.line = x->repeats.lines[i];
        bh_field_error(&own, "%s\n  %s", yaml, x->repeats.v[i]);
    }
    if (own.n)
        bh_config_fail_all(x, NULL, prefix, &own, true);
    if (x->strict.n)
        bh_config_fail_all(x, NULL, prefix, &x->strict, true);
    x->report->summary = bh_arena_printf(&x->report->arena, "%s%s%s%s", prefix, all,
                                         x->repeats.n && x->strict.n ? ", " : "",
                                         x->strict.n ? bh_field_errors_list(&x->strict) : "");
    return -EINVAL;
}

int bh_config_decode(struct bh_config_ctx *x, struct bh_json *tree)
{
    int rc = identify(x, tree);

    if (rc < 0 || x->version == BH_CONFIG_POLICY)
        return rc;
    struct bh_field_reader r = {
        .strict = &x->strict, .package = x->version_text, .repeats = x->json};
    if (bh_fields_check(&r, tree, bh_config_schema(x->a, x->version, ROOT), ROOT) < 0) {
        struct bh_json bad = {.line = r.error_line};
        return bh_config_fail(x, &bad, "%s", r.error);
    }
    unsigned i = 0;
    bh_json_each(profile, bh_json_get(tree, "profiles")) {
        unsigned k = 0;
        bh_json_each(entry, bh_json_get(profile, "pluginConfig")) {
            char at[64];
            snprintf(at, sizeof at, ".profiles[%u].pluginConfig[%u]", i, k++);
            rc = decode_args(x, entry, at);
            if (rc < 0)
                return rc;
        }
        i++;
    }
    return bh_config_check_strict(x);
}
