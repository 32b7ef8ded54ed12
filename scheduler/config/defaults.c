/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/defaults.c - what holds when the file does not say, from defaults.data
 */
#include "common/data/yaml.h"
#include "scheduler/config/config_int.h"

static const char text[] =
#include "scheduler/config/defaults.data.h"
    ;

const char *const bh_point_names[BH_POINT_KEYS] = {
    "preEnqueue", "queueSort", "preFilter",         "filter",         "postFilter",
    "preScore",   "score",     "reserve",           "permit",         "preBind",
    "bind",       "postBind",  "placementGenerate", "placementScore", "multiPoint",
};

const char *bh_sched_point_name(enum bh_point p)
{
    return bh_point_names[p];
}

struct bh_json *bh_config_default_values(struct bh_arena *a)
{
    struct bh_json *tree = NULL;
    int rc = bh_yaml_parse(a, text, sizeof text - 1, 0, &tree, NULL);

    bh_assert(rc == 0);
    return tree;
}

static const struct bh_plugin_ref *read_set(const struct bh_config_ctx *x, const char *version,
                                            unsigned point)
{
    const struct bh_json *sets = bh_json_get(bh_json_get(x->defaults, "plugins"), version);
    const char *set = bh_json_get_text(sets, bh_point_names[point]);
    struct bh_plugin_ref *list =
        bh_arena_new_array(x->a, struct bh_plugin_ref, BH_DEFAULTS_MAX + 1);
    char *names = bh_arena_strdup(x->a, set), *save;
    unsigned n = 0;

    for (char *s = strtok_r(names, " ", &save); s; s = strtok_r(NULL, " ", &save)) {
        char *weight = strchr(s, '=');
        bh_assert(n < BH_DEFAULTS_MAX);
        list[n++] = (struct bh_plugin_ref){s, weight ? weight[1] - '0' : 0};
        s[strcspn(s, "=")] = '\0';
    }
    return list;
}

const struct bh_plugin_ref *bh_config_defaults(const struct bh_config_ctx *x, unsigned point)
{
    return read_set(x, x->version == BH_CONFIG_POLICY ? "" : x->version_text, point);
}

void bh_config_disable_defaults(const struct bh_config_ctx *x, struct bh_json *multi)
{
    const struct bh_plugin_ref *d = read_set(x, "v1", BH_POINT_MULTI);

    for (; d->name && !bh_config_named(bh_json_get(multi, "disabled"), "*"); d++)
        if (!bh_config_named(bh_json_get(multi, "disabled"), d->name))
            bh_config_push_plugin(x->a, multi, "disabled", d->name, 0, 0);
}

bool bh_config_is_legacy(const char *plugin)
{
    return bh_word_at("AzureDiskLimits CinderLimits EBSLimits GCEPDLimits", plugin) >= 0;
}
