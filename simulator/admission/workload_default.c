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

    bh_tree_dflt(a, strategy, "type: RollingUpdate");
    return bh_tree_is(strategy, "type", "RollingUpdate")
               ? bh_tree_dflt_obj(a, strategy, "rollingUpdate")
               : NULL;
}

/* ---- apps ------------------------------------------------------------------------------------ */

int bh_adm_default_deployment(struct bh_sim_write *w)
{
    struct bh_arena *a = w->arena;
    struct bh_json *spec = spec_of(w);

    bh_tree_dflt(a, spec, "replicas: 1");
    bh_tree_dflt(a, rolling_update(a, spec, "strategy"), "maxUnavailable: %s, maxSurge: %s", "25%",
                 "25%");
    bh_tree_dflt(a, spec, "revisionHistoryLimit: 10, progressDeadlineSeconds: 600");
    return bh_adm_default_template(w, spec);
}

int bh_adm_default_replicaset(struct bh_sim_write *w)
{
    struct bh_json *spec = spec_of(w);

    bh_tree_dflt(w->arena, spec, "replicas: 1");
    return bh_adm_default_template(w, spec);
}

/* obj's map is the template's labels, unless it has one of its own. */
static void labels_of_template(struct bh_sim_write *w, struct bh_json *obj, const char *map)
{
    const struct bh_json *labels = bh_tree_obj(w->obj, "spec.template.metadata.labels");

    if (obj && bh_tree_len(labels) && !bh_tree_len(bh_tree_obj(obj, map)))
        bh_json_set(w->arena, obj, map, bh_json_clone(w->arena, labels));
}

int bh_adm_default_replicationcontroller(struct bh_sim_write *w)
{
    struct bh_json *spec = spec_of(w);

    bh_tree_dflt(w->arena, spec, "replicas: 1");
    labels_of_template(w, spec, "selector");
    labels_of_template(w, bh_tree_obj(w->obj, "metadata"), "labels");
    return bh_adm_default_template(w, spec);
}

int bh_adm_default_statefulset(struct bh_sim_write *w)
{
    struct bh_arena *a = w->arena;
    struct bh_json *spec = spec_of(w);

    bh_tree_dflt(a, spec, "podManagementPolicy: OrderedReady");
    bh_tree_dflt(a, rolling_update(a, spec, "updateStrategy"), "partition: 0");
    bh_tree_dflt(a, spec,
                 "persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain, whenScaled: Retain}, "
                 "replicas: 1, revisionHistoryLimit: 10");
    return bh_adm_default_template(w, spec);
}

int bh_adm_default_daemonset(struct bh_sim_write *w)
{
    struct bh_arena *a = w->arena;
    struct bh_json *spec = spec_of(w);

    bh_tree_dflt(a, rolling_update(a, spec, "updateStrategy"), "maxUnavailable: 1, maxSurge: 0");
    bh_tree_dflt(a, spec, "revisionHistoryLimit: 10");
    return bh_adm_default_template(w, spec);
}

/* ---- batch ----------------------------------------------------------------------------------- */

int bh_adm_default_job(struct bh_sim_write *w)
{
    struct bh_arena *a = w->arena;
    struct bh_json *spec = spec_of(w);

    if (!bh_tree_has(spec, "completions") && !bh_tree_has(spec, "parallelism"))
        bh_json_set_i64(a, spec, "completions", 1);
    bh_tree_dflt_i64(a, spec, "backoffLimit",
                     bh_tree_has(spec, "backoffLimitPerIndex") ? INT32_MAX : 6);
    bh_tree_dflt(a, spec,
                 "parallelism: 1, completionMode: NonIndexed, suspend: false, "
                 "podReplacementPolicy: %s, manualSelector: false",
                 bh_tree_has(spec, "podFailurePolicy") ? "Failed" : "TerminatingOrFailed");
    if (w->op != BH_SIM_OP_CREATE)
        return bh_adm_job_gang(w) ? w->error->code : bh_adm_default_template(w, spec);
    /* The labels that tie a job's pods to it, and the selector over them. */
    const char *uid = bh_tree_str(w->obj, "metadata.uid");
    const char *name = bh_tree_str(w->obj, "metadata.name");
    struct bh_json *template = bh_tree_obj(spec, "template");
    if (!bh_tree_bool(spec, "manualSelector", false) && template && uid && name) {
        bh_json_add(a, template,
                    "metadata: {labels: {batch.kubernetes.io/controller-uid: %s, "
                    "batch.kubernetes.io/job-name: %s, controller-uid: %s, job-name: %s}}",
                    uid, name, uid, name);
        if (!bh_tree_has(spec, "selector"))
            bh_json_add(a, spec,
                        "selector: {matchLabels: {batch.kubernetes.io/controller-uid: %s}}", uid);
    }
    labels_of_template(w, bh_tree_obj(w->obj, "metadata"), "labels");
    return bh_adm_default_template(w, spec);
}

int bh_adm_default_cronjob(struct bh_sim_write *w)
{
    struct bh_json *spec = spec_of(w);

    bh_tree_dflt(w->arena, spec,
                 "concurrencyPolicy: Allow, suspend: false, successfulJobsHistoryLimit: 3, "
                 "failedJobsHistoryLimit: 1");
    return bh_adm_default_template(w, bh_tree_obj(spec, "jobTemplate.spec"));
}
