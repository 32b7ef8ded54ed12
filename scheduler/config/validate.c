/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/validate.c - what a completed configuration may say
 *
 * Errors are added in upstream's order; duplicates by text are dropped, as its aggregate does.
 *
 * Upstream: pkg/scheduler/apis/config/validation/validation.go, component-base/config/validation.
 */
#include <inttypes.h>

#include "common/base/map.h"
#include "common/base/opt.h"
#include "scheduler/config/config_int.h"
#include "scheduler/framework/plugin.h"

static int64_t duration(const struct bh_json *obj, const char *key)
{
    int64_t ns = 0;

    (void)bh_parse_duration_ns(bh_json_get_text(obj, key), &ns);
    return ns;
}

static void check_leader(const struct bh_json *le, struct bh_field_errors *errs)
{
    static const char *const positive[] = {"leaseDuration", "renewDeadline", "retryPeriod"};
    static const char *const required[] = {"resourceLock", "resourceNamespace", "resourceName"};

    if (!bh_json_get_bool(le, "leaderElect", true))
        return;
    for (unsigned i = 0; i < BH_ARRAY_LEN(positive); i++)
        if (duration(le, positive[i]) <= 0)
            bh_field_error(errs,
                           "leaderElection.%s: Invalid value: \"%s\": must be greater than zero",
                           positive[i], bh_json_get_text(le, positive[i]));
    if (duration(le, "leaseDuration") <= duration(le, "renewDeadline")) /* prints the other one */
        bh_field_error(errs,
                       "leaderElection.leaseDuration: Invalid value: \"%s\": must be greater than "
                       "`RenewDeadline`",
                       bh_json_get_text(le, "renewDeadline"));
    for (unsigned i = 0; i < BH_ARRAY_LEN(required); i++)
        if (!*bh_json_get_text(le, required[i]))
            bh_field_error(errs, "leaderElection.%s: Required value", required[i]);
    if (!bh_streq(bh_json_get_text(le, "resourceLock"), "leases"))
        bh_field_error(
            errs,
            "leaderElection.resourceLock: Invalid value: \"%s\": resourceLock value must be "
            "\"leases\"",
            bh_json_get_text(le, "resourceLock"));
}

static void check_percentage(const struct bh_json *obj, const char *path,
                             struct bh_field_errors *errs)
{
    int64_t v = bh_json_get_i64(obj, "percentageOfNodesToScore", 0);

    if (v < 0 || v > 100)
        bh_field_error(errs,
                       "%spercentageOfNodesToScore: Invalid value: %" PRId64
                       ": not in valid range [0-100]",
                       path, v);
}

#define WAS_INVALID                                                                                \
    "was invalid in version \"v1\" (KubeSchedulerConfiguration is version "                        \
    "\"" BH_CONFIG_GROUP "/v1\")"

static void check_args(const struct bh_config_ctx *x, const struct bh_json *list, unsigned i,
                       struct bh_field_errors *errs)
{
    struct bh_map seen = {0};
    unsigned k = 0;

    bh_json_each(e, list) {
        const char *name = bh_json_get_text(e, "name");
        const struct bh_plugin *p = bh_plugin_find(name);
        char at[96];
        snprintf(at, sizeof at, "profiles[%u].pluginConfig[%u]", i, k++);
        if (bh_map_put(&seen, name, strlen(name), e))
            bh_field_error(errs, "%s: Duplicate value: \"%s\"", at, name);
        if (x->version == BH_CONFIG_V1 && bh_config_is_legacy(name)) {
            bh_field_error(errs, "%s: Invalid value: \"%s\": " WAS_INVALID, at, name);
        } else if (p && p->args_check && !p->check_at_construction) {
            char args_at[112];
            snprintf(args_at, sizeof args_at, "%s.args", at);
            p->args_check(p, bh_json_get(e, "args"), args_at, errs);
        }
    }
    bh_map_fini(&seen);
}

/* ---- one queue serves all profiles ----------------------------------------------------------- */

static struct bh_json *go_list(struct bh_arena *a, const struct bh_json *list)
{
    struct bh_json *out = bh_config_len(list) ? bh_json_new(a, BH_JSON_ARRAY) : NULL;

    bh_json_each(p, list)
        bh_json_append(a, out, "Name: %s, Weight: %ld", bh_json_get_text(p, "name"),
                       bh_json_get_i64(p, "weight", 0));
    return out;
}

/* JSON of the Go struct. */
static const char *set_text(struct bh_arena *a, const struct bh_json *set)
{
    return bh_field_value(a, bh_json_make(a, "Enabled: %p, Disabled: %p",
                                          go_list(a, bh_json_get(set, "enabled")),
                                          go_list(a, bh_json_get(set, "disabled"))));
}

static const struct bh_json *args_of(const struct bh_json *profile, const char *plugin)
{
    return bh_json_get(bh_config_named(bh_json_get(profile, "pluginConfig"), plugin), "args");
}

static void check_queue_sort(const struct bh_json *profiles, struct bh_field_errors *errs)
{
    const struct bh_json *first = profiles->c.first;
    const struct bh_json *set = bh_json_path(first, "plugins.queueSort");
    const struct bh_json *enabled = bh_json_get(set, "enabled");
    const char *name = bh_config_len(enabled) ? bh_json_get_text(enabled->c.first, "name") : "";
    const char *canon = set_text(errs->a, set);
    unsigned i = 0;

    if (bh_config_len(enabled) > 1)
        bh_field_error(errs,
                       "profiles[0].plugins.queueSort.Enabled: Invalid value: %u: only one queue "
                       "sort plugin can be enabled",
                       bh_config_len(enabled));
    for (const struct bh_json *p = first->next; p; p = p->next) {
        const char *mine = set_text(errs->a, bh_json_path(p, "plugins.queueSort"));
        const struct bh_json *args = args_of(p, name);
        i++;
        if (!bh_streq(mine, canon))
            bh_field_error(errs,
                           "profiles[%u].plugins.queueSort: Invalid value: %s: must be the same "
                           "for all profiles",
                           i, mine);
        const struct bh_json *others = args_of(first, name);
        if (args && (!others || !bh_json_equal(args, others)))
            bh_field_error(errs,
                           "profiles[%u].pluginConfig.args: Invalid value: %s: queueSort must be "
                           "the same for all profiles",
                           i, bh_field_value(errs->a, args));
    }
}

/* ---- everything ------------------------------------------------------------------------------ */

static void check_profiles(const struct bh_config_ctx *x, const struct bh_json *profiles,
                           struct bh_field_errors *errs)
{
    struct bh_map names = {0};
    unsigned i = 0;

    if (bh_config_len(profiles) > BH_CONFIG_PROFILES_MAX) {
        bh_field_error(errs, "profiles: Too many: %u: must have at most %u items",
                       bh_config_len(profiles), BH_CONFIG_PROFILES_MAX);
        return;
    }
    bh_json_each(p, profiles) {
        char at[32];
        const char *name = bh_json_get_text(p, "schedulerName");
        snprintf(at, sizeof at, "profiles[%u].", i);
        if (!*name)
            bh_field_error(errs, "%sschedulerName: Required value", at);
        check_percentage(p, at, errs);
        for (unsigned pt = 0; pt < BH_POINT_COUNT && x->version == BH_CONFIG_V1; pt++) {
            unsigned k = 0;
            bh_json_each(e, bh_config_enabled(bh_json_get(p, "plugins"), pt)) {
                const char *plugin = bh_json_get_text(e, "name");
                if (bh_config_is_legacy(plugin))
                    bh_field_error(errs,
                                   "%splugins.%s.enabled[%u]: Invalid value: \"%s\": " WAS_INVALID,
                                   at, bh_point_names[pt], k, plugin);
                k++;
            }
        }
        check_args(x, bh_json_get(p, "pluginConfig"), i, errs);
        if (bh_map_put(&names, name, strlen(name), p)) /* the value prints as {} upstream */
            bh_field_error(errs, "%sschedulerName: Duplicate value: {}", at);
        i++;
    }
    bh_map_fini(&names);
    check_queue_sort(profiles, errs);
}

void bh_config_validate(struct bh_config_ctx *x, const struct bh_json *tree,
                        const struct bh_json *source, struct bh_field_errors *errs)
{
    int64_t burst = bh_json_get_i64(bh_json_get(tree, "clientConnection"), "burst", 0);
    int64_t parallelism = bh_json_get_i64(tree, "parallelism", 0);
    int64_t initial = bh_json_get_i64(tree, "podInitialBackoffSeconds", 0);
    int64_t max = bh_json_get_i64(tree, "podMaxBackoffSeconds", 0);

    if (burst < 0)
        bh_field_error(errs,
                       "clientConnection.burst: Invalid value: %" PRId64 ": must be non-negative",
                       burst);
    check_leader(bh_json_get(tree, "leaderElection"), errs);
    if (parallelism <= 0)
        bh_field_error(errs,
                       "parallelism: Invalid value: %" PRId64
                       ": should be an integer value greater than zero",
                       parallelism);
    check_profiles(x, bh_json_get(tree, "profiles"), errs);
    if (x->version == BH_CONFIG_V1BETA2) {
        /* v1beta2 still had the fields of the insecure ports that were gone: "" or port 0. */
        static const char *const fields[] = {"healthzBindAddress", "metricsBindAddress"};
        for (unsigned i = 0; i < BH_ARRAY_LEN(fields); i++) {
            const char *s = bh_json_get_text(source, fields[i]), *colon = strrchr(s, ':');
            if (*s && !(colon && bh_streq(colon, ":0")))
                bh_field_error(
                    errs, "%s: Invalid value: \"%s\": must be empty or with an explicit 0 port",
                    fields[i], s);
        }
    }
    check_percentage(tree, "", errs);
    if (initial <= 0)
        bh_field_error(
            errs, "podInitialBackoffSeconds: Invalid value: %" PRId64 ": must be greater than 0",
            initial);
    if (max < initial)
        bh_field_error(errs,
                       "podMaxBackoffSeconds: Invalid value: %" PRId64
                       ": must be greater than or equal to PodInitialBackoffSeconds",
                       max);
    bh_extenders_check(bh_json_get(tree, "extenders"), errs);
}
