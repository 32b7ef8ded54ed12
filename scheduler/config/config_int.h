/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/config_int.h - what the files of this folder share
 *
 * The way of a configuration: text -> tree (source.c) -> identity and types (decode.c); a Policy
 * becomes a v1 tree (policy.c) -> the completed tree, which has every default in it (complete.c,
 * defaults.c) -> its values are checked (validate.c, extenders.c) -> structs, and which
 * plugin runs where (config.c, expand.c). The completed tree is also what is written (write.c).
 * Nodes of every tree keep the line of the file they come from; what defaults add has line 0.
 */
#ifndef BH_CONFIG_INT_H
#define BH_CONFIG_INT_H

#include "scheduler/config/config.h"
#include "scheduler/config/field.h"

#define BH_CONFIG_GROUP        "kubescheduler.config.k8s.io"
#define BH_CONFIG_NS_PER_S     ((int64_t)1000000000)
#define BH_CONFIG_PROFILES_MAX 1000 /* ours: each costs some ten kilobytes */

enum bh_config_version { BH_CONFIG_V1, BH_CONFIG_V1BETA3, BH_CONFIG_V1BETA2, BH_CONFIG_POLICY };
struct bh_config_ctx {
    struct bh_arena *a;              /* the configuration's */
    struct bh_config_report *report; /* never NULL */
    enum bh_config_version version;
    const char *version_text;               /* "v1beta3" */
    const char *text;                       /* the whole file for error texts, may be NULL */
    bool json;                              /* the file is JSON, not YAML */
    struct bh_field_errors strict, repeats; /* unknown fields; keys that YAML repeats */
    const struct bh_json *defaults;         /* defaults.data */
};

/* ---- report.c ---- */
/* Records the one error that ends the reading, at the line of node `at` (NULL: none). -EINVAL. */
int bh_config_fail(struct bh_config_ctx *x, const struct bh_json *at, const char *fmt, ...)
    BH_PRINTF(3, 4);
/* Records each error with the prefix ("" or ending with ": "); in the summary it stands once.
 * Errors without a line get that of the node their path names in root. -EINVAL. */
int bh_config_fail_all(struct bh_config_ctx *x, const struct bh_json *root, const char *prefix,
                       const struct bh_field_errors *e, bool bare);
void bh_config_remark(struct bh_config_ctx *x, const struct bh_json *at, bool note, const char *fmt,
                      ...) BH_PRINTF(4, 5);
#define bh_config_warn(x, at, ...) bh_config_remark((x), (at), false, __VA_ARGS__)
#define bh_config_note(x, at, ...) bh_config_remark((x), (at), true, __VA_ARGS__)

/* ---- source.c ---- */
/* Text to tree; repeated keys go to x->repeats. 0 or -EINVAL, reported. */
int bh_config_source(struct bh_config_ctx *x, const char *text, size_t n, struct bh_json **ret);
void bh_config_sort(struct bh_json *v); /* members by name, in all objects */

/* ---- decode.c ---- */
/* Identity, types, unknown fields; sets x->version. The tree is changed only by sorting. */
int bh_config_decode(struct bh_config_ctx *x, struct bh_json *tree);
/* Reports x->strict and x->repeats, if there is anything in them. */
int bh_config_check_strict(struct bh_config_ctx *x);

/* ---- policy.c ---- */
/* Checks a Policy and says the same in v1. */
int bh_config_policy(struct bh_config_ctx *x, const struct bh_json *policy, struct bh_json **ret);

/* ---- complete.c ---- */
/* A new tree with all defaults. Plugin sets are merged with the defaults of the file's version. */
struct bh_json *bh_config_complete(struct bh_config_ctx *x, const struct bh_json *tree);

/* Adds {name, weight} to the set's list "enabled" or "disabled", which is made when absent. */
void bh_config_push_plugin(struct bh_arena *a, struct bh_json *set, const char *list,
                           const char *name, int64_t weight, uint32_t line);

/* ---- write.c ---- */
/* Turns the completed tree into what is written: args of plugins that are used, by name, and
 * plugin sets that v1 reads the same way. profiles: built already. */
void bh_config_in_force(struct bh_config_ctx *x, const struct bh_sched_config *c,
                        struct bh_json *tree);

/* ---- defaults.c ---- */
/* The extension points of the file. The last one is no point of the engine. */
enum { BH_POINT_MULTI = BH_POINT_COUNT, BH_POINT_KEYS };
extern const char *const bh_point_names[BH_POINT_KEYS]; /* "preFilter" */
#define BH_DEFAULTS_MAX 32u
/* The default plugins of the file's version at one point, in order; ends with a NULL name. */
const struct bh_plugin_ref *bh_config_defaults(const struct bh_config_ctx *x, unsigned point);
/* Disables in multiPoint what v1 enables there, each by name: "*" would also keep out the plugins that
 * feature gates add. Nothing when the file itself disables all. */
void bh_config_disable_defaults(const struct bh_config_ctx *x, struct bh_json *multi);
struct bh_json *bh_config_default_values(struct bh_arena *a);
/* EBSLimits and its like, which v1 refuses at single points. */
bool bh_config_is_legacy(const char *plugin);

/* ---- validate.c, extenders.c ---- */
/* tree: completed from source. */
void bh_config_validate(struct bh_config_ctx *x, const struct bh_json *tree,
                        const struct bh_json *source, struct bh_field_errors *errs);
void bh_extenders_check(const struct bh_json *extenders, struct bh_field_errors *errs);
int bh_extenders_build(struct bh_config_ctx *x, struct bh_sched_config *c,
                       const struct bh_json *list);
/* Resources that extenders look after: NodeResourcesFit ignores them in every profile. Changes the
 * args in the completed tree. */
int bh_extenders_ignore(struct bh_config_ctx *x, const struct bh_sched_config *c,
                        struct bh_json *profiles);

/* ---- expand.c ---- */
/* Spreads the profile's plugin sets over p->points. profile: of the completed tree. */
int bh_config_expand(struct bh_config_ctx *x, struct bh_profile_config *p,
                     const struct bh_json *profile);
/* Is the plugin enabled anywhere in the sets? Then it is made, and its args count. */
bool bh_config_needed(const struct bh_json *plugins, const char *plugin);

/* ---- config.c ---- */
/* "open FILE: no such file or directory", as Go says it. rc is a negative errno and returned. */
int bh_config_open_error(struct bh_err *err, const char *file, int rc);

/* ---- schema.c ---- */
/* The fields of a Go struct, as the version has them. */
const struct bh_field *bh_config_schema(struct bh_arena *a, enum bh_config_version v,
                                        const char *go_type);

static inline uint32_t bh_config_len(const struct bh_json *list)
{
    return list && list->type == BH_JSON_ARRAY ? (uint32_t)list->c.n : 0;
}
/* The member unless it is absent or null. */
static inline const struct bh_json *bh_config_present(const struct bh_json *obj, const char *key)
{
    const struct bh_json *v = bh_json_get(obj, key);
    return v && v->type != BH_JSON_NULL ? v : NULL;
}
/* The list's first element of that name. */
static inline struct bh_json *bh_config_named(const struct bh_json *list, const char *name)
{
    bh_json_each(e, list)
        if (bh_streq(bh_json_get_text(e, "name"), name))
            return e;
    return NULL;
}
/* The plugins that a profile's sets enable at a point. */
static inline struct bh_json *bh_config_enabled(const struct bh_json *plugins, unsigned point)
{
    return bh_json_get(bh_json_get(plugins, bh_point_names[point]), "enabled");
}
#endif
