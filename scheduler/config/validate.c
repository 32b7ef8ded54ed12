/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/validate.c - what a decoded configuration may say
 *
 * Upstream: pkg/scheduler/apis/config/validation/validation.go, component-base/config/validation.
 */
#include <inttypes.h>

#include "common/base/opt.h"
#include "scheduler/config/config_int.h"
#include "scheduler/plugins/registry.h"

#define NS_PER_S ((int64_t)1000000000)

/* Go's canonical form: 10m0s, 1h0m0s, 1.5s, 0s. */
const char *bh_go_duration(struct bh_arena *a, int64_t ns)
{
    const char *sign = ns < 0 ? "-" : "";
    uint64_t u = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    uint64_t s = u / NS_PER_S, frac = u % NS_PER_S;
    char f[16] = "";

    if (u && u < NS_PER_S) {
        uint64_t unit = u < 1000 ? 1 : u < 1000000 ? 1000 : 1000000;
        const char *name = u < 1000 ? "ns" : u < 1000000 ? "\xc2\xb5s" : "ms";
        return bh_arena_printf(a, "%s%g%s", sign, (double)u / (double)unit, name);
    }
    if (frac) {
        snprintf(f, sizeof f, ".%09" PRIu64, frac);
        for (size_t n = strlen(f); f[n - 1] == '0';)
            f[--n] = 0;
    }
    if (s < 60)
        return bh_arena_printf(a, "%s%" PRIu64 "%ss", sign, s, f);
    if (s < 3600)
        return bh_arena_printf(a, "%s%" PRIu64 "m%" PRIu64 "%ss", sign, s / 60, s % 60, f);
    return bh_arena_printf(a, "%s%" PRIu64 "h%" PRIu64 "m%" PRIu64 "%ss", sign, s / 3600,
                           s % 3600 / 60, s % 60, f);
}

static int64_t duration(const struct bh_json *obj, const char *key, int64_t dflt_ns)
{
    const char *s = bh_json_get_str(obj, key);
    int64_t ns;

    return s && bh_parse_duration_ns(s, &ns) == 0 ? ns : dflt_ns;
}

static void check_leader(const struct bh_json *le, struct bh_field_errors *errs)
{
    int64_t lease = duration(le, "leaseDuration", 15 * NS_PER_S);
    int64_t renew = duration(le, "renewDeadline", 10 * NS_PER_S);
    int64_t retry = duration(le, "retryPeriod", 2 * NS_PER_S);
    const char *lock = bh_json_get_str(le, "resourceLock");
    const char *name = bh_json_get_str(le, "resourceName");
    const char *ns = bh_json_get_str(le, "resourceNamespace");

    if (!bh_json_get_bool(le, "leaderElect", true))
        return;
    if (lease <= 0)
        bh_field_error(
            errs, "leaderElection.leaseDuration: Invalid value: \"%s\": must be greater than zero",
            bh_go_duration(errs->a, lease));
    if (renew <= 0)
        bh_field_error(
            errs, "leaderElection.renewDeadline: Invalid value: \"%s\": must be greater than zero",
            bh_go_duration(errs->a, renew));
    if (retry <= 0)
        bh_field_error(
            errs, "leaderElection.retryPeriod: Invalid value: \"%s\": must be greater than zero",
            bh_go_duration(errs->a, retry));
    if (lease <= renew) /* upstream prints the other value */
        bh_field_error(errs,
                       "leaderElection.leaseDuration: Invalid value: \"%s\": must be greater than "
                       "`RenewDeadline`",
                       bh_go_duration(errs->a, renew));
    if (lock && !bh_streq(lock, "leases"))
        bh_field_error(
            errs,
            "leaderElection.resourceLock: Invalid value: \"%s\": resourceLock value must "
            "be \"leases\"",
            lock);
    if (name && !*name)
        bh_field_error(errs,
                       "leaderElection.resourceName: Required value: resourceName is required");
    if (ns && !*ns)
        bh_field_error(
            errs,
            "leaderElection.resourceNamespace: Required value: resourceNamespace is required");
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

static bool is_removed(const char *name)
{
    static const char *const removed[] = {"AzureDiskLimits", "CinderLimits", "EBSLimits",
                                          "GCEPDLimits"};

    for (unsigned i = 0; i < BH_ARRAY_LEN(removed); i++)
        if (bh_streq(name, removed[i]))
            return true;
    return false;
}

#define WAS_INVALID                                                                                \
    "was invalid in version \"v1\" (KubeSchedulerConfiguration is version "                        \
    "\"kubescheduler.config.k8s.io/v1\")"

static void check_plugins(const struct bh_json *plugins, unsigned i, struct bh_field_errors *errs)
{
    for (unsigned pt = 0; pt < BH_POINT_COUNT; pt++) {
        const struct bh_json *set = bh_json_get(plugins, bh_point_names[pt].key);
        unsigned k = 0;
        bh_json_each(e, bh_json_get(set, "enabled"))
        {
            const char *name = bh_json_get_str(e, "name");
            if (name && is_removed(name))
                bh_field_error(
                    errs,
                    "profiles[%u].plugins.%s.enabled[%u]: Invalid value: \"%s\": " WAS_INVALID, i,
                    bh_point_names[pt].key, k, name);
            k++;
        }
    }
}

static void check_args(const struct bh_json *list, unsigned i, struct bh_field_errors *errs)
{
    unsigned k = 0;

    bh_json_each(e, list)
    {
        const char *name = bh_json_get_str(e, "name");
        const struct bh_plugin *p = name ? bh_plugin_find(name) : NULL;
        char at[96];
        snprintf(at, sizeof at, "profiles[%u].pluginConfig[%u]", i, k++);
        bool twice = false;
        for (const struct bh_json *q = list->c.first; q != e && name; q = q->next)
            twice |= bh_json_get_str(q, "name") && bh_streq(bh_json_get_str(q, "name"), name);
        if (twice) {
            bh_field_error(errs, "%s: Duplicate value: \"%s\"", at, name);
            continue;
        }
        if (name && is_removed(name))
            bh_field_error(errs, "%s: Invalid value: \"%s\": " WAS_INVALID, at, name);
        if (p && p->args_check && !p->check_at_construction) {
            char args_at[112];
            snprintf(args_at, sizeof args_at, "%s.args", at);
            p->args_check(bh_json_get(e, "args"), args_at, errs);
        }
    }
}

static const struct bh_json *queue_sort(const struct bh_json *profile)
{
    return bh_json_path(profile, "plugins.queueSort");
}

static const char *plugin_list(struct bh_arena *a, const struct bh_json *list)
{
    const char *text = "";

    if (!list || list->type != BH_JSON_ARRAY || !list->c.n)
        return "null";
    bh_json_each(p, list)
    {
        const char *name = bh_json_get_str(p, "name");
        text = bh_arena_printf(a, "%s%s{\"Name\":\"%s\",\"Weight\":%" PRId64 "}", text,
                               *text ? "," : "", name ? name : "", bh_json_get_i64(p, "weight", 0));
    }
    return bh_arena_printf(a, "[%s]", text);
}

static const char *set_text(struct bh_arena *a, const struct bh_json *set)
{
    return bh_arena_printf(a, "{\"Enabled\":%s,\"Disabled\":%s}",
                           plugin_list(a, bh_json_get(set, "enabled")),
                           plugin_list(a, bh_json_get(set, "disabled")));
}

/* One queue serves all profiles. */
static void check_queue_sort(const struct bh_json *profiles, struct bh_field_errors *errs)
{
    const struct bh_json *first = profiles ? profiles->c.first : NULL;
    const struct bh_json *enabled = bh_json_get(queue_sort(first), "enabled");
    unsigned i = 0;

    if (enabled && enabled->type == BH_JSON_ARRAY && enabled->c.n > 1)
        bh_field_error(errs,
                       "profiles[0].plugins.queueSort.Enabled: Invalid value: %zu: only one queue "
                       "sort plugin can be enabled",
                       enabled->c.n);
    bh_json_each(p, profiles)
    {
        const char *mine = set_text(errs->a, queue_sort(p));
        if (!bh_streq(mine, set_text(errs->a, queue_sort(first))))
            bh_field_error(
                errs,
                "profiles[%u].plugins.queueSort: Invalid value: %s: must be the same for "
                "all profiles",
                i, mine);
        i++;
    }
}

static void check_profiles(const struct bh_json *profiles, struct bh_field_errors *errs)
{
    unsigned i = 0;

    bh_json_each(p, profiles)
    {
        char at[32];
        const char *name = bh_json_get_str(p, "schedulerName");
        snprintf(at, sizeof at, "profiles[%u].", i);
        if (!name && profiles->c.n == 1)
            name = "default-scheduler";
        if (!name || !*name)
            bh_field_error(errs, "%sschedulerName: Required value", at);
        check_percentage(p, at, errs);
        for (const struct bh_json *q = profiles->c.first; q != p && name; q = q->next)
            if (bh_json_get_str(q, "schedulerName") &&
                bh_streq(bh_json_get_str(q, "schedulerName"), name))
                bh_field_error(errs, "%sschedulerName: Duplicate value: {}", at);
        check_plugins(bh_json_get(p, "plugins"), i, errs);
        check_args(bh_json_get(p, "pluginConfig"), i, errs);
        i++;
    }
    check_queue_sort(profiles, errs);
}

void bh_config_validate(const struct bh_json *tree, struct bh_field_errors *errs)
{
    int64_t burst = bh_json_get_i64(bh_json_get(tree, "clientConnection"), "burst", 100);
    int64_t parallelism = bh_json_get_i64(tree, "parallelism", 16);
    int64_t initial = bh_json_get_i64(tree, "podInitialBackoffSeconds", 1);
    int64_t max = bh_json_get_i64(tree, "podMaxBackoffSeconds", 10);
    const struct bh_json *extenders = bh_json_get(tree, "extenders");

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
    check_profiles(bh_json_get(tree, "profiles"), errs);
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
    if (extenders && extenders->type == BH_JSON_ARRAY && extenders->c.n)
        bh_field_error(errs, "extenders: Forbidden: extenders are not supported in this release");
}
