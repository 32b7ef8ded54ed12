/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/workload_validate.c - field errors of the kinds that make pods
 *
 * Upstream: pkg/apis/apps/validation/validation.go, pkg/apis/batch/validation/validation.go
 * (v1.36); differences: not checked are volume claim templates, and of policies texts of indexes,
 * names of containers, numbers of rules and values, and values that stand twice.
 */
#include "simulator/admission/admission.h"
#include "simulator/admission/cron.h"

#include <errno.h>
#include <inttypes.h>
#include <strings.h>

#include "common/k8s/selector.h"

/* ---- shared ---------------------------------------------------------------------------------- */

void bh_adm_int_or_percent(struct bh_sim_write *w, const char *at, const struct bh_json *holder,
                           const char *member)
{
    const struct bh_json *v = bh_json_get(holder, member);
    const char *s = bh_json_cstr(v);
    size_t n = s ? strspn(s, "0123456789") : 0;

    if (!v)
        return;
    if (v->type == BH_JSON_NUMBER)
        bh_adm_not_negative(w, at, holder, member);
    else if (!s || !n || s[n] != '%' || s[n + 1])
        bh_adm_invalid(w, at, holder, member,
                       "a valid percent string must be a numeric string followed by an ending '%' "
                       "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')");
}

static bool selects(const struct bh_json *selector, const struct bh_json *labels)
{
    struct bh_selector *s;
    struct bh_err err;

    if (bh_selector_from_json(selector, &s, &err) < 0)
        return true; /* reported as a selector already */
    bool yes = bh_selector_match_json(s, labels);
    bh_selector_free(s);
    return yes;
}

/* The "template" of what stands at `at`. */
static void validate_template(struct bh_sim_write *w, const char *at,
                              const struct bh_json *selector)
{
    const struct bh_json *template = bh_tree_obj(bh_tree_obj(w->obj, at), "template");
    const struct bh_json *labels = bh_tree_obj(template, "metadata.labels");

    if (!template) {
        bh_adm_required(w, at, "template", "");
        return;
    }
    at = bh_adm_member(w, at, "template");
    if (selector && !selects(selector, labels)) {
        const struct bh_json none = {.type = BH_JSON_OBJECT};
        bh_adm_invalid_value(w, bh_adm_member(w, at, "metadata.labels"), labels ? labels : &none,
                             "`selector` does not match template `labels`");
    }
    bh_adm_label_map(w, bh_adm_member(w, at, "labels"), labels);
    bh_adm_pod_spec(w, bh_adm_member(w, at, "spec"), bh_tree_obj(template, "spec"));
}

static bool empty_selector(const struct bh_json *sel)
{
    return !bh_tree_len(bh_tree_obj(sel, "matchLabels")) &&
           !bh_tree_len(bh_tree_arr(sel, "matchExpressions"));
}

static const struct bh_json *selector_of(struct bh_sim_write *w, const char *kind)
{
    const struct bh_json *sel = bh_tree_obj(w->obj, "spec.selector");

    if (!sel)
        bh_adm_required(w, "spec", "selector", "");
    else if (empty_selector(sel))
        bh_adm_invalid(w, "", w->obj, "spec.selector",
                       bh_adm_path(w, "empty selector is invalid for %s", kind));
    bh_adm_label_selector(w, "", w->obj, "spec.selector");
    bh_adm_immutable(w, "spec.selector");
    return sel && !empty_selector(sel) ? sel : NULL;
}

static void always(struct bh_sim_write *w)
{
    bh_adm_one_of(w, "", w->obj, "spec.template.spec.restartPolicy", "Always", false);
    if (bh_tree_has(w->obj, "spec.template.spec.activeDeadlineSeconds"))
        bh_adm_forbidden(
            w, "spec.template.spec", "activeDeadlineSeconds",
            bh_adm_path(w, "activeDeadlineSeconds in %s is not Supported", w->type->kind));
}

static void counts(struct bh_sim_write *w)
{
    bh_adm_not_negative(w, "", w->obj, "spec.replicas");
    bh_adm_not_negative(w, "", w->obj, "spec.minReadySeconds");
    bh_adm_not_negative(w, "", w->obj, "spec.revisionHistoryLimit");
}

/* ---- apps ------------------------------------------------------------------------------------ */

static bool is_zero(const struct bh_json *v)
{
    int64_t n;
    const char *s = bh_json_cstr(v);

    return v && ((bh_json_i64(v, &n) && n == 0) || (s && bh_streq(s, "0%")));
}

static void deployment_strategy(struct bh_sim_write *w)
{
    const struct bh_json *rolling = bh_tree_obj(w->obj, "spec.strategy.rollingUpdate");
    const char *at = "spec.strategy.rollingUpdate";

    bh_adm_one_of(w, "", w->obj, "spec.strategy.type", "Recreate RollingUpdate", true);
    if (bh_tree_is(w->obj, "spec.strategy.type", "Recreate")) {
        if (rolling)
            bh_adm_forbidden(w, "", at, "may not be specified when strategy `type` is 'Recreate'");
        return;
    }
    bh_adm_int_or_percent(w, at, rolling, "maxUnavailable");
    bh_adm_int_or_percent(w, at, rolling, "maxSurge");
    if (is_zero(bh_json_get(rolling, "maxUnavailable")) &&
        is_zero(bh_json_get(rolling, "maxSurge")))
        bh_adm_invalid(w, at, rolling, "maxUnavailable", "may not be 0 when `maxSurge` is 0");
}

/* What Deployment, ReplicaSet and DaemonSet have in common. */
static void validate_set(struct bh_sim_write *w, const char *kind)
{
    counts(w);
    validate_template(w, "spec", selector_of(w, kind));
    always(w);
}

void bh_adm_validate_deployment(struct bh_sim_write *w)
{
    int64_t deadline = bh_tree_i64(w->obj, "spec.progressDeadlineSeconds", 600);

    validate_set(w, "deployment");
    deployment_strategy(w);
    if (deadline <= bh_tree_i64(w->obj, "spec.minReadySeconds", 0))
        bh_adm_invalid(w, "", w->obj, "spec.progressDeadlineSeconds",
                       "must be greater than minReadySeconds");
}

void bh_adm_validate_replicaset(struct bh_sim_write *w)
{
    validate_set(w, "replicaset");
}

void bh_adm_validate_replicationcontroller(struct bh_sim_write *w)
{
    const struct bh_json *map = bh_tree_obj(w->obj, "spec.selector");
    const struct bh_json *labels = bh_tree_obj(w->obj, "spec.template.metadata.labels");

    counts(w);
    if (!bh_tree_len(map))
        bh_adm_required(w, "spec", "selector", "");
    bh_json_each(m, map) {
        const struct bh_json *l = bh_json_get(labels, m->key.p);
        if (l && bh_json_equal(l, m))
            continue;
        bh_adm_invalid(w, "", w->obj, "spec.template.metadata.labels",
                       "`selector` does not match template `labels`");
        break;
    }
    validate_template(w, "spec", NULL);
    always(w);
}

void bh_adm_frozen_spec(struct bh_sim_write *w, const char *may_change, const char *text)
{
    struct bh_json *now = bh_json_clone(w->arena, bh_tree_obj(w->obj, "spec"));
    struct bh_json *old = bh_json_clone(w->arena, bh_tree_obj(w->old, "spec"));

    bh_json_drop(now, may_change);
    bh_json_drop(old, may_change);
    if (now && old && !bh_json_equal(now, old))
        bh_adm_forbidden(w, "", "spec", text);
}

void bh_adm_validate_statefulset(struct bh_sim_write *w)
{
    const struct bh_json *sel = bh_tree_obj(w->obj, "spec.selector");

    counts(w);
    bh_adm_one_of(w, "", w->obj, "spec.podManagementPolicy", "OrderedReady Parallel", true);
    bh_adm_one_of(w, "", w->obj, "spec.updateStrategy.type", "OnDelete RollingUpdate", true);
    if (!w->old)
        sel = selector_of(w, "statefulset");
    validate_template(w, "spec", sel);
    always(w);
    if (w->old)
        bh_adm_frozen_spec(w,
                           "replicas ordinals template updateStrategy revisionHistoryLimit "
                           "persistentVolumeClaimRetentionPolicy minReadySeconds",
                           "updates to statefulset spec for fields other than 'replicas', "
                           "'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
                           "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are "
                           "forbidden");
}

void bh_adm_validate_daemonset(struct bh_sim_write *w)
{
    validate_set(w, "daemonset");
    bh_adm_one_of(w, "", w->obj, "spec.updateStrategy.type", "OnDelete RollingUpdate", true);
}

/* ---- batch ----------------------------------------------------------------------------------- */

/* Upstream: validatePodFailurePolicyRule. */
static void failure_rule(struct bh_sim_write *w, const char *at, const struct bh_json *rule,
                         const struct bh_json *spec)
{
    const struct bh_json *codes = bh_tree_obj(rule, "onExitCodes");
    bool conditions = bh_tree_len(bh_tree_arr(rule, "onPodConditions"));

    bh_adm_one_of(w, at, rule, "action", "Count FailIndex FailJob Ignore", true);
    if (bh_tree_is(rule, "action", "FailIndex") && !bh_tree_has(spec, "backoffLimitPerIndex"))
        bh_adm_invalid(w, at, rule, "action", "requires the backoffLimitPerIndex to be set");
    if (codes) {
        bh_adm_one_of(w, at, rule, "onExitCodes.operator", "In NotIn", true);
        if (!bh_tree_len(bh_tree_arr(codes, "values")))
            bh_adm_invalid(w, at, rule, "onExitCodes.values", "at least one value is required");
    }
    bh_json_each(c, bh_tree_arr(rule, "onPodConditions"))
        if (!bh_tree_has(c, "type"))
            bh_adm_required(w, at, "onPodConditions.type", "");
    if ((codes != NULL) == conditions)
        bh_adm_invalid_text(w, at, "",
                            codes
                                ? "specifying both OnExitCodes and OnPodConditions is not "
                                  "supported"
                                : "specifying one of OnExitCodes and OnPodConditions is required");
}

static void success_policy(struct bh_sim_write *w, const char *at, const struct bh_json *spec)
{
    const struct bh_json *rules = bh_tree_arr(spec, "successPolicy.rules");
    int64_t i = 0;

    if (!bh_tree_len(rules))
        bh_adm_required(w, at, "successPolicy.rules",
                        "at least one rules must be specified when the successPolicy is specified");
    bh_json_each(r, rules) {
        const char *rule = bh_adm_path(w, "%s.successPolicy.rules[%" PRId64 "]", at, i++);
        if (!bh_tree_has(r, "succeededCount") && !bh_tree_has(r, "succeededIndexes"))
            bh_adm_required(w, rule, "",
                            "at least one of succeededCount or succeededIndexes must be specified");
        bh_adm_not_negative(w, rule, r, "succeededCount");
        if (bh_tree_i64(r, "succeededCount", 0) > bh_tree_i64(spec, "completions", INT32_MAX))
            bh_adm_invalid(w, rule, r, "succeededCount",
                           "must be less than or equal to the number of specified completions");
    }
}

static void job_policies(struct bh_sim_write *w, const char *at, const struct bh_json *spec)
{
    static const char *const indexed_only[] = {"backoffLimitPerIndex", "maxFailedIndexes",
                                               "successPolicy"};
    bool indexed = bh_tree_is(spec, "completionMode", "Indexed");
    int64_t i = 0;

    for (size_t k = 0; k < BH_ARRAY_LEN(indexed_only) && !indexed; k++)
        if (bh_tree_has(spec, indexed_only[k]))
            bh_adm_invalid(w, at, spec, indexed_only[k], "requires indexed completion mode");
    if (bh_tree_has(spec, "maxFailedIndexes") && !bh_tree_has(spec, "backoffLimitPerIndex"))
        bh_adm_required(w, at, "backoffLimitPerIndex", "when maxFailedIndexes is specified");
    if (indexed &&
        bh_tree_i64(spec, "maxFailedIndexes", 0) > bh_tree_i64(spec, "completions", INT32_MAX))
        bh_adm_invalid(w, at, spec, "maxFailedIndexes",
                       "must be less than or equal to completions");
    bh_json_each(r, bh_tree_arr(spec, "podFailurePolicy.rules"))
        failure_rule(w, bh_adm_path(w, "%s.podFailurePolicy.rules[%" PRId64 "]", at, i++), r, spec);
    if (indexed && bh_tree_has(spec, "successPolicy"))
        success_policy(w, at, spec);
    bh_adm_one_of(w, at, spec, "podReplacementPolicy", "Failed TerminatingOrFailed", false);
    if (!bh_tree_has(spec, "podFailurePolicy"))
        return;
    if (bh_tree_is(spec, "podReplacementPolicy", "TerminatingOrFailed"))
        bh_adm_one_of(w, at, spec, "podReplacementPolicy", "Failed", false);
    if (bh_tree_is(spec, "template.spec.restartPolicy", "OnFailure"))
        bh_adm_invalid(w, at, spec, "template.spec.restartPolicy",
                       "only \"Never\" is supported when podFailurePolicy is specified");
}

/* The controller keeps a byte for each; upstream, which has no bound, keeps ranges. */
#define COMPLETIONS_MAX 10000000

static void job_spec(struct bh_sim_write *w, const char *at)
{
    static const char *const numbers[] = {
        "parallelism",          "completions",      "activeDeadlineSeconds",  "backoffLimit",
        "backoffLimitPerIndex", "maxFailedIndexes", "ttlSecondsAfterFinished"};
    const struct bh_json *spec = bh_tree_obj(w->obj, at);

    for (size_t i = 0; i < BH_ARRAY_LEN(numbers); i++)
        bh_adm_not_negative(w, at, spec, numbers[i]);
    bh_adm_one_of(w, at, spec, "completionMode", "Indexed NonIndexed", false);
    if (bh_tree_is(spec, "completionMode", "Indexed") && !bh_tree_has(spec, "completions"))
        bh_adm_required(w, at, "completions", "when completion mode is Indexed");
    if (bh_tree_is(spec, "completionMode", "Indexed") &&
        bh_tree_i64(spec, "completions", 0) > COMPLETIONS_MAX)
        bh_adm_invalid(w, at, spec, "completions",
                       "must be less than or equal to 10000000 when completion mode is Indexed");
    if (bh_tree_is(spec, "template.spec.restartPolicy", "Always"))
        bh_adm_required(w, at, "template.spec.restartPolicy",
                        "valid values: \"OnFailure\", \"Never\"");
    job_policies(w, at, spec);
}

void bh_adm_validate_job(struct bh_sim_write *w)
{
    const struct bh_json *sel = bh_tree_obj(w->obj, "spec.selector");

    if (!sel)
        bh_adm_required(w, "spec", "selector", "");
    bh_adm_label_selector(w, "", w->obj, "spec.selector");
    job_spec(w, "spec");
    validate_template(w, "spec", sel);
    if (!w->old)
        return;
    bh_adm_immutable(w, "spec.selector");
    bh_adm_immutable(w, "spec.completionMode");
    bh_adm_immutable(w, "spec.podFailurePolicy");
    bh_adm_immutable(w, "spec.backoffLimitPerIndex");
    bh_adm_immutable(w, "spec.successPolicy");
    bh_adm_immutable(w, "spec.managedBy");
    if (!bh_tree_bool(w->old, "spec.suspend", false) || bh_tree_has(w->old, "status.startTime"))
        bh_adm_immutable(w, "spec.template");
    if (!bh_tree_is(w->obj, "spec.completionMode", "Indexed"))
        bh_adm_immutable(w, "spec.completions");
}

static bool is_zone_name(const char *name)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_+";

    for (const char *part = name;; part += strcspn(part, "/") + 1) {
        size_t n = strcspn(part, "/");
        if (n == 0 || n > 14 || *part == '-' || strspn(part, letters) < n ||
            (*part == '.' && (n == 1 || (n == 2 && part[1] == '.'))))
            return false;
        if (!part[n])
            return true;
    }
}

/* Upstream: validateScheduleFormat, validateTimeZone. */
static void cron_times(struct bh_sim_write *w)
{
    const char *schedule = bh_tree_str(w->obj, "spec.schedule");
    const char *name = bh_tree_str(w->obj, "spec.timeZone");
    struct bh_err err = {{0}};
    struct bh_cron cron;
    struct bh_zone zone;

    if (!schedule || !*schedule)
        bh_adm_required(w, "spec", "schedule", "");
    else if (strstr(schedule, "TZ"))
        bh_adm_invalid_text(
            w, "spec.schedule", schedule,
            name ? "cannot use both timeZone field and TZ or CRON_TZ in schedule"
                 : "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
    else if (bh_cron_parse(schedule, &cron, &err) < 0)
        bh_adm_invalid_text(w, "spec.schedule", schedule, err.msg);
    if (!name)
        return;
    if (!*name) {
        bh_adm_invalid_text(w, "spec.timeZone", name, "timeZone must be nil or non-empty string");
    } else if (!is_zone_name(name)) {
        (void)bh_err_set(&err, -EINVAL, "unknown time zone %s", name);
        bh_adm_invalid_text(w, "spec.timeZone", name, err.msg);
    } else if (strcasecmp(name, "Local") == 0) {
        bh_adm_invalid_text(w, "spec.timeZone", name,
                            "timeZone must be an explicit time zone as defined in "
                            "https://www.iana.org/time-zones");
    } else if (bh_zone_load(&zone, name, &err) < 0) {
        bh_adm_invalid_text(w, "spec.timeZone", name, err.msg);
    } else {
        bh_zone_fini(&zone);
    }
}

void bh_adm_validate_cronjob(struct bh_sim_write *w)
{
    cron_times(w);
    bh_adm_one_of(w, "", w->obj, "spec.concurrencyPolicy", "Allow Forbid Replace", true);
    job_spec(w, "spec.jobTemplate.spec");
    validate_template(w, "spec.jobTemplate.spec", NULL);
}
