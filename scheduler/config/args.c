/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/args.c - defaults of the plugins' args
 *
 * The plugins' own parsers know these defaults, too; here they become visible (config show, the
 * written configuration) and reach the checks, which upstream runs on defaulted args.
 *
 * Upstream: pkg/scheduler/apis/config/v1/defaults.go.
 */
#include "common/base/opt.h"
#include "scheduler/config/config_int.h"
#include "scheduler/framework/plugin.h"

static void default_i64(struct bh_arena *a, struct bh_json *o, const char *key, int64_t v)
{
    if (!bh_json_get(o, key))
        bh_json_set_i64(a, o, key, v);
}

static void default_duration(struct bh_arena *a, struct bh_json *o, const char *key, int64_t ns)
{
    struct bh_json *v = bh_json_get(o, key);
    char text[32];

    if (v)
        (void)bh_parse_duration_ns(v->s.p, &ns); /* checked while decoding */
    bh_format_duration_ns(ns, text);
    uint32_t line = v ? v->line : 0;
    bh_json_set_str(a, o, key, text)->line = line;
}

static void drop_empty(struct bh_json *o, const char *key)
{
    const struct bh_json *v = bh_json_get(o, key);

    if (v && v->type == BH_JSON_ARRAY && !v->c.n)
        bh_json_unset(o, key);
}

/* cpu and memory unless some are named; a weight of 0 is 1. */
static void default_resources(struct bh_arena *a, struct bh_json *o)
{
    struct bh_json *list = bh_json_get(o, "resources");

    if (!list || !list->c.n) {
        list = bh_json_set(a, o, "resources", bh_json_new(a, BH_JSON_ARRAY));
        for (unsigned i = 0; i < 2; i++) {
            struct bh_json *r = bh_json_new(a, BH_JSON_OBJECT);
            bh_json_set_str(a, r, "name", i ? "memory" : "cpu");
            bh_json_push(list, r);
        }
    }
    bh_json_each(r, list)
        if (!bh_json_get_i64(r, "weight", 0))
            bh_json_set_i64(a, r, "weight", 1);
}

static void default_fit(struct bh_arena *a, struct bh_json *o)
{
    struct bh_json *s = bh_json_get(o, "scoringStrategy");

    drop_empty(o, "ignoredResources");
    drop_empty(o, "ignoredResourceGroups");
    if (!s) {
        s = bh_json_obj_at(a, o, "scoringStrategy");
        bh_json_set_str(a, s, "type", "LeastAllocated");
    }
    default_resources(a, s);
}

static void set_defaults(struct bh_arena *a, const char *plugin, struct bh_json *o)
{
    if (bh_streq(plugin, "DefaultPreemption")) {
        default_i64(a, o, "minCandidateNodesPercentage", 10);
        default_i64(a, o, "minCandidateNodesAbsolute", 100);
    } else if (bh_streq(plugin, "DynamicResources")) {
        default_duration(a, o, "filterTimeout", 10 * BH_CONFIG_NS_PER_S);
        default_duration(a, o, "bindingTimeout", 600 * BH_CONFIG_NS_PER_S);
    } else if (bh_streq(plugin, "InterPodAffinity")) {
        default_i64(a, o, "hardPodAffinityWeight", 1);
        if (!bh_json_get(o, "ignorePreferredTermsOfExistingPods"))
            bh_json_set_bool(a, o, "ignorePreferredTermsOfExistingPods", false);
    } else if (bh_streq(plugin, "NodeResourcesBalancedAllocation")) {
        default_resources(a, o);
    } else if (bh_streq(plugin, "NodeResourcesFit")) {
        default_fit(a, o);
    } else if (bh_streq(plugin, "PodTopologySpread")) {
        drop_empty(o, "defaultConstraints");
        if (!*bh_json_get_text(o, "defaultingType"))
            bh_json_set_str(a, o, "defaultingType", "System");
    } else if (bh_streq(plugin, "VolumeBinding")) {
        default_i64(a, o, "bindTimeoutSeconds", 600);
    }
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

struct bh_json *bh_config_args(struct bh_arena *a, const char *plugin, const struct bh_json *args)
{
    const struct bh_plugin *p = bh_plugin_find(plugin);

    if (!p || !p->args_schema)
        return NULL;
    struct bh_json *out = args ? without_nulls(a, args) : bh_json_new(a, BH_JSON_OBJECT);
    bh_json_set_str(a, out, "apiVersion", BH_CONFIG_GROUP "/v1");
    bh_json_set_str(a, out, "kind", bh_arena_printf(a, "%sArgs", plugin));
    set_defaults(a, plugin, out);
    return out;
}
