/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/workload_validate.c - field errors of the kinds that make pods
 *
 * Upstream: pkg/apis/apps/validation/validation.go, pkg/apis/batch/validation/validation.go
 * (v1.36); differences: volume claim templates, pod failure and success policies are not checked.
 */
#include "simulator/admission/admission.h"

#include "common/k8s/selector.h"

static const char *const only_always[] = {"Always", NULL};

/* ---- shared ---------------------------------------------------------------------------------- */

void bh_adm_int_or_percent(struct bh_sim_write *w, const char *field, const struct bh_json *v)
{
    const char *s = bh_json_cstr(v);
    size_t n = s ? strspn(s, "0123456789") : 0;

    if (!v)
        return;
    if (v->type == BH_JSON_NUMBER)
        bh_adm_not_negative(w, field, v);
    else if (!s || !n || s[n] != '%' || s[n + 1])
        bh_adm_invalid(w, field, v,
                       "a valid percent string must be a numeric string followed by an ending '%' "
                       "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')");
}

static bool selects(const struct bh_json *selector, const struct bh_json *labels)
{
    struct bh_selector *s;
    struct bh_err err;
    bool yes;

    if (bh_selector_from_json(selector, &s, &err) < 0)
        return true; /* reported as a selector already */
    yes = bh_selector_match_json(s, labels);
    bh_selector_free(s);
    return yes;
}

/* holder: an object with "template" (labels, spec); selector NULL = not compared. */
static void validate_template(struct bh_sim_write *w, const char *field,
                              const struct bh_json *template, const struct bh_json *selector)
{
    const struct bh_json *labels = bh_tree_obj(template, "metadata.labels");
    struct bh_json none = {.type = BH_JSON_OBJECT};

    if (!template) {
        bh_adm_required(w, field, "");
        return;
    }
    if (selector && !selects(selector, labels))
        bh_adm_invalid(w, bh_adm_path(w, "%s.metadata.labels", field), labels ? labels : &none,
                       "`selector` does not match template `labels`");
    bh_adm_label_map(w, bh_adm_path(w, "%s.labels", field), labels);
    bh_adm_pod_spec(w, bh_adm_path(w, "%s.spec", field), bh_tree_obj(template, "spec"));
}

static bool empty_selector(const struct bh_json *sel)
{
    return !bh_tree_len(bh_tree_obj(sel, "matchLabels")) &&
           !bh_tree_len(bh_tree_arr(sel, "matchExpressions"));
}

/* selector present, not empty, well formed; the same as before on update. */
static const struct bh_json *selector_of(struct bh_sim_write *w, const char *kind)
{
    const struct bh_json *sel = bh_tree_obj(w->obj, "spec.selector");

    if (!sel)
        bh_adm_required(w, "spec.selector", "");
    else if (empty_selector(sel))
        bh_adm_invalid(w, "spec.selector", sel,
                       bh_adm_path(w, "empty selector is invalid for %s", kind));
    bh_adm_label_selector(w, "spec.selector", sel);
    bh_adm_immutable(w, "spec.selector");
    return sel && !empty_selector(sel) ? sel : NULL;
}

static void always(struct bh_sim_write *w)
{
    bh_adm_one_of(w, "spec.template.spec.restartPolicy",
                  bh_json_path(w->obj, "spec.template.spec.restartPolicy"), only_always, false);
    if (bh_tree_has(w->obj, "spec.template.spec.activeDeadlineSeconds"))
        bh_adm_forbidden(
            w, "spec.template.spec.activeDeadlineSeconds",
            bh_adm_path(w, "activeDeadlineSeconds in %s is not Supported", w->type->kind));
}

static void counts(struct bh_sim_write *w)
{
    bh_adm_not_negative(w, "spec.replicas", bh_json_path(w->obj, "spec.replicas"));
    bh_adm_not_negative(w, "spec.minReadySeconds", bh_json_path(w->obj, "spec.minReadySeconds"));
    bh_adm_not_negative(w, "spec.revisionHistoryLimit",
                        bh_json_path(w->obj, "spec.revisionHistoryLimit"));
}

static bool unchanged_spec(const struct bh_sim_write *w)
{
    return w->op == BH_SIM_OP_UPDATE_STATUS || (w->old && bh_adm_same(w->obj, w->old, "spec"));
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
    static const char *const types[] = {"Recreate", "RollingUpdate", NULL};
    const struct bh_json *st = bh_tree_obj(w->obj, "spec.strategy");
    const struct bh_json *rolling = bh_tree_obj(st, "rollingUpdate");
    const char *field = "spec.strategy.rollingUpdate";

    bh_adm_one_of(w, "spec.strategy.type", bh_json_get(st, "type"), types, true);
    if (bh_tree_is(st, "type", "Recreate")) {
        if (rolling)
            bh_adm_forbidden(w, field, "may not be specified when strategy `type` is 'Recreate'");
        return;
    }
    bh_adm_int_or_percent(w, bh_adm_path(w, "%s.maxUnavailable", field),
                          bh_json_get(rolling, "maxUnavailable"));
    bh_adm_int_or_percent(w, bh_adm_path(w, "%s.maxSurge", field),
                          bh_json_get(rolling, "maxSurge"));
    if (is_zero(bh_json_get(rolling, "maxUnavailable")) &&
        is_zero(bh_json_get(rolling, "maxSurge")))
        bh_adm_invalid(w, bh_adm_path(w, "%s.maxUnavailable", field),
                       bh_json_get(rolling, "maxUnavailable"), "may not be 0 when `maxSurge` is 0");
}

void bh_adm_validate_deployment(struct bh_sim_write *w)
{
    const struct bh_json *sel;
    int64_t deadline = bh_tree_i64(w->obj, "spec.progressDeadlineSeconds", 600);

    if (unchanged_spec(w))
        return;
    counts(w);
    sel = selector_of(w, "deployment");
    validate_template(w, "spec.template", bh_tree_obj(w->obj, "spec.template"), sel);
    always(w);
    deployment_strategy(w);
    if (deadline <= bh_tree_i64(w->obj, "spec.minReadySeconds", 0))
        bh_adm_invalid(w, "spec.progressDeadlineSeconds",
                       bh_json_path(w->obj, "spec.progressDeadlineSeconds"),
                       "must be greater than minReadySeconds");
}

void bh_adm_validate_replicaset(struct bh_sim_write *w)
{
    const struct bh_json *sel;

    if (unchanged_spec(w))
        return;
    counts(w);
    sel = selector_of(w, "replicaset");
    validate_template(w, "spec.template", bh_tree_obj(w->obj, "spec.template"), sel);
    always(w);
}

void bh_adm_validate_replicationcontroller(struct bh_sim_write *w)
{
    const struct bh_json *map = bh_tree_obj(w->obj, "spec.selector");
    const struct bh_json *labels = bh_tree_obj(w->obj, "spec.template.metadata.labels");

    if (unchanged_spec(w))
        return;
    counts(w);
    if (!bh_tree_len(map))
        bh_adm_required(w, "spec.selector", "");
    bh_json_each(m, map) {
        const struct bh_json *l = bh_json_get(labels, m->key.p);
        if (l && bh_json_equal(l, m))
            continue;
        bh_adm_invalid(w, "spec.template.metadata.labels", labels,
                       "`selector` does not match template `labels`");
        break;
    }
    validate_template(w, "spec.template", bh_tree_obj(w->obj, "spec.template"), NULL);
    always(w);
}

static void statefulset_frozen(struct bh_sim_write *w)
{
    static const char *const may_change[] = {"replicas",
                                             "ordinals",
                                             "template",
                                             "updateStrategy",
                                             "revisionHistoryLimit",
                                             "persistentVolumeClaimRetentionPolicy",
                                             "minReadySeconds"};
    struct bh_json *now = bh_json_clone(w->arena, bh_tree_obj(w->obj, "spec"));
    struct bh_json *old = bh_json_clone(w->arena, bh_tree_obj(w->old, "spec"));

    for (size_t i = 0; now && old && i < BH_ARRAY_LEN(may_change); i++) {
        bh_json_unset(now, may_change[i]);
        bh_json_unset(old, may_change[i]);
    }
    if (now && old && !bh_json_equal(now, old))
        bh_adm_forbidden(w, "spec",
                         "updates to statefulset spec for fields other than 'replicas', "
                         "'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
                         "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are "
                         "forbidden");
}

void bh_adm_validate_statefulset(struct bh_sim_write *w)
{
    static const char *const management[] = {"OrderedReady", "Parallel", NULL};
    static const char *const types[] = {"OnDelete", "RollingUpdate", NULL};
    const struct bh_json *sel = bh_tree_obj(w->obj, "spec.selector");

    if (unchanged_spec(w))
        return;
    counts(w);
    bh_adm_one_of(w, "spec.podManagementPolicy", bh_json_path(w->obj, "spec.podManagementPolicy"),
                  management, true);
    bh_adm_one_of(w, "spec.updateStrategy.type", bh_json_path(w->obj, "spec.updateStrategy.type"),
                  types, true);
    if (!w->old)
        sel = selector_of(w, "statefulset");
    validate_template(w, "spec.template", bh_tree_obj(w->obj, "spec.template"), sel);
    always(w);
    if (w->old)
        statefulset_frozen(w);
}

void bh_adm_validate_daemonset(struct bh_sim_write *w)
{
    static const char *const types[] = {"OnDelete", "RollingUpdate", NULL};
    const struct bh_json *sel;

    if (unchanged_spec(w))
        return;
    counts(w);
    sel = selector_of(w, "daemonset");
    validate_template(w, "spec.template", bh_tree_obj(w->obj, "spec.template"), sel);
    always(w);
    bh_adm_one_of(w, "spec.updateStrategy.type", bh_json_path(w->obj, "spec.updateStrategy.type"),
                  types, true);
}

/* ---- batch ----------------------------------------------------------------------------------- */

static void job_spec(struct bh_sim_write *w, const char *field, const struct bh_json *spec)
{
    static const char *const modes[] = {"Indexed", "NonIndexed", NULL};
    static const char *const numbers[] = {"parallelism", "completions", "activeDeadlineSeconds",
                                          "backoffLimit", "ttlSecondsAfterFinished"};
    const struct bh_json *pod = bh_tree_obj(spec, "template.spec");

    for (size_t i = 0; i < BH_ARRAY_LEN(numbers); i++)
        bh_adm_not_negative(w, bh_adm_path(w, "%s.%s", field, numbers[i]),
                            bh_json_get(spec, numbers[i]));
    bh_adm_one_of(w, bh_adm_path(w, "%s.completionMode", field),
                  bh_json_get(spec, "completionMode"), modes, false);
    if (bh_tree_is(spec, "completionMode", "Indexed") && !bh_tree_has(spec, "completions"))
        bh_adm_required(w, bh_adm_path(w, "%s.completions", field),
                        "when completion mode is Indexed");
    if (bh_tree_is(pod, "restartPolicy", "Always"))
        bh_adm_required(w, bh_adm_path(w, "%s.template.spec.restartPolicy", field),
                        "valid values: \"OnFailure\", \"Never\"");
}

void bh_adm_validate_job(struct bh_sim_write *w)
{
    const struct bh_json *sel = bh_tree_obj(w->obj, "spec.selector");
    bool startable;

    if (unchanged_spec(w))
        return;
    if (!sel)
        bh_adm_required(w, "spec.selector", "");
    bh_adm_label_selector(w, "spec.selector", sel);
    job_spec(w, "spec", bh_tree_obj(w->obj, "spec"));
    validate_template(w, "spec.template", bh_tree_obj(w->obj, "spec.template"), sel);
    if (!w->old)
        return;
    startable =
        bh_tree_bool(w->old, "spec.suspend", false) && !bh_tree_has(w->old, "status.startTime");
    bh_adm_immutable(w, "spec.selector");
    bh_adm_immutable(w, "spec.completionMode");
    if (!startable)
        bh_adm_immutable(w, "spec.template");
    if (!bh_tree_is(w->obj, "spec.completionMode", "Indexed"))
        bh_adm_immutable(w, "spec.completions");
}

void bh_adm_validate_cronjob(struct bh_sim_write *w)
{
    static const char *const policies[] = {"Allow", "Forbid", "Replace", NULL};
    const struct bh_json *job = bh_tree_obj(w->obj, "spec.jobTemplate.spec");

    if (unchanged_spec(w))
        return;
    if (!bh_tree_has(w->obj, "spec.schedule"))
        bh_adm_required(w, "spec.schedule", "");
    bh_adm_one_of(w, "spec.concurrencyPolicy", bh_json_path(w->obj, "spec.concurrencyPolicy"),
                  policies, true);
    job_spec(w, "spec.jobTemplate.spec", job);
    validate_template(w, "spec.jobTemplate.spec.template", bh_tree_obj(job, "template"), NULL);
}
