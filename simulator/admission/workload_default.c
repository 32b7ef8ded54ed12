/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/workload_default.c - defaults of the kinds that make pods
 *
 * Upstream: pkg/apis/apps/v1/defaults.go, pkg/apis/batch/v1/defaults.go,
 * pkg/registry/batch/job/strategy.go (selector and labels) (v1.36); differences: none known.
 */
#include "simulator/admission/admission.h"

static struct bh_json *spec_of(struct bh_sim_write *w)
{
    return bh_json_obj_at(w->arena, w->obj, "spec");
}

/* The update strategy, by default rolling; its "rollingUpdate", NULL when it is of another type. */
static struct bh_json *rolling_update(struct bh_arena *a, struct bh_json *spec, const char *member)
{
    struct bh_json *strategy = bh_tree_dflt_obj(a, spec, member);

    bh_tree_dflt_str(a, strategy, "type", "RollingUpdate");
    return bh_tree_is(strategy, "type", "RollingUpdate")
               ? bh_tree_dflt_obj(a, strategy, "rollingUpdate")
               : NULL;
}

/* ---- apps ------------------------------------------------------------------------------------ */

int bh_adm_default_deployment(struct bh_sim_write *w)
{
    struct bh_arena *a = w->arena;
    struct bh_json *spec = spec_of(w), *rolling;

    bh_tree_dflt_i64(a, spec, "replicas", 1);
    rolling = rolling_update(a, spec, "strategy");
    bh_tree_dflt_str(a, rolling, "maxUnavailable", "25%");
    bh_tree_dflt_str(a, rolling, "maxSurge", "25%");
    bh_tree_dflt_i64(a, spec, "revisionHistoryLimit", 10);
    bh_tree_dflt_i64(a, spec, "progressDeadlineSeconds", 600);
    return bh_adm_default_template(w, spec);
}

int bh_adm_default_replicaset(struct bh_sim_write *w)
{
    struct bh_json *spec = spec_of(w);

    bh_tree_dflt_i64(w->arena, spec, "replicas", 1);
    return bh_adm_default_template(w, spec);
}

int bh_adm_default_replicationcontroller(struct bh_sim_write *w)
{
    struct bh_json *spec = spec_of(w), *labels, *meta;

    bh_tree_dflt_i64(w->arena, spec, "replicas", 1);
    labels = bh_tree_obj(spec, "template.metadata.labels");
    meta = bh_tree_obj(w->obj, "metadata");
    if (bh_tree_len(labels)) {
        if (!bh_tree_len(bh_tree_obj(spec, "selector")))
            bh_json_set(w->arena, spec, "selector", bh_json_clone(w->arena, labels));
        if (meta && !bh_tree_len(bh_tree_obj(meta, "labels")))
            bh_json_set(w->arena, meta, "labels", bh_json_clone(w->arena, labels));
    }
    return bh_adm_default_template(w, spec);
}

int bh_adm_default_statefulset(struct bh_sim_write *w)
{
    struct bh_arena *a = w->arena;
    struct bh_json *spec = spec_of(w), *retention;

    bh_tree_dflt_str(a, spec, "podManagementPolicy", "OrderedReady");
    bh_tree_dflt_i64(a, rolling_update(a, spec, "updateStrategy"), "partition", 0);
    retention = bh_tree_dflt_obj(a, spec, "persistentVolumeClaimRetentionPolicy");
    bh_tree_dflt_str(a, retention, "whenDeleted", "Retain");
    bh_tree_dflt_str(a, retention, "whenScaled", "Retain");
    bh_tree_dflt_i64(a, spec, "replicas", 1);
    bh_tree_dflt_i64(a, spec, "revisionHistoryLimit", 10);
    return bh_adm_default_template(w, spec);
}

int bh_adm_default_daemonset(struct bh_sim_write *w)
{
    struct bh_arena *a = w->arena;
    struct bh_json *spec = spec_of(w), *rolling;

    rolling = rolling_update(a, spec, "updateStrategy");
    bh_tree_dflt_i64(a, rolling, "maxUnavailable", 1);
    bh_tree_dflt_i64(a, rolling, "maxSurge", 0);
    bh_tree_dflt_i64(a, spec, "revisionHistoryLimit", 10);
    return bh_adm_default_template(w, spec);
}

/* ---- batch ----------------------------------------------------------------------------------- */

/* The labels that tie a job's pods to it, and the selector over them; once, at creation. */
static void job_selector(struct bh_sim_write *w, struct bh_json *spec)
{
    struct bh_arena *a = w->arena;
    const char *uid = bh_tree_str(w->obj, "metadata.uid");
    const char *name = bh_tree_str(w->obj, "metadata.name");
    struct bh_json *template = bh_tree_obj(spec, "template"), *labels;

    if (bh_tree_bool(spec, "manualSelector", false) || !template || !uid || !name)
        return;
    labels = bh_json_obj_at(a, bh_json_obj_at(a, template, "metadata"), "labels");
    bh_json_set_str(a, labels, "batch.kubernetes.io/controller-uid", uid);
    bh_json_set_str(a, labels, "batch.kubernetes.io/job-name", name);
    bh_json_set_str(a, labels, "controller-uid", uid);
    bh_json_set_str(a, labels, "job-name", name);
    if (!bh_tree_has(spec, "selector"))
        bh_json_set_str(a, bh_json_obj_at(a, bh_json_obj_at(a, spec, "selector"), "matchLabels"),
                        "batch.kubernetes.io/controller-uid", uid);
}

static void job_spec(struct bh_arena *a, struct bh_json *spec)
{
    if (!bh_tree_has(spec, "completions") && !bh_tree_has(spec, "parallelism"))
        bh_json_set_i64(a, spec, "completions", 1);
    bh_tree_dflt_i64(a, spec, "parallelism", 1);
    bh_tree_dflt_i64(a, spec, "backoffLimit", 6);
    bh_tree_dflt_str(a, spec, "completionMode", "NonIndexed");
    bh_tree_dflt_bool(a, spec, "suspend", false);
    bh_tree_dflt_str(a, spec, "podReplacementPolicy",
                     bh_tree_has(spec, "podFailurePolicy") ? "Failed" : "TerminatingOrFailed");
}

int bh_adm_default_job(struct bh_sim_write *w)
{
    struct bh_arena *a = w->arena;
    struct bh_json *spec = spec_of(w), *meta = bh_tree_obj(w->obj, "metadata"), *labels;

    job_spec(a, spec);
    bh_tree_dflt_bool(a, spec, "manualSelector", false);
    if (w->op == BH_SIM_OP_CREATE) {
        job_selector(w, spec);
        labels = bh_tree_obj(spec, "template.metadata.labels");
        if (meta && !bh_tree_len(bh_tree_obj(meta, "labels")) && bh_tree_len(labels))
            bh_json_set(a, meta, "labels", bh_json_clone(a, labels));
    }
    return bh_adm_default_template(w, spec);
}

int bh_adm_default_cronjob(struct bh_sim_write *w)
{
    struct bh_arena *a = w->arena;
    struct bh_json *spec = spec_of(w);

    bh_tree_dflt_str(a, spec, "concurrencyPolicy", "Allow");
    bh_tree_dflt_bool(a, spec, "suspend", false);
    bh_tree_dflt_i64(a, spec, "successfulJobsHistoryLimit", 3);
    bh_tree_dflt_i64(a, spec, "failedJobsHistoryLimit", 1);
    return bh_adm_default_template(w, bh_tree_obj(spec, "jobTemplate.spec"));
}
