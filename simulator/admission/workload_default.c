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

/* ---- apps ------------------------------------------------------------------------------------ */

/* Deployments, replica sets, daemon sets, stateful sets. */
int bh_adm_default_maker(struct bh_sim_write *w)
{
    return bh_adm_default_template(w, spec_of(w));
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

    labels_of_template(w, spec, "selector");
    labels_of_template(w, bh_tree_obj(w->obj, "metadata"), "labels");
    return bh_adm_default_template(w, spec);
}

/* ---- batch ----------------------------------------------------------------------------------- */

int bh_adm_default_job(struct bh_sim_write *w)
{
    struct bh_arena *a = w->arena;
    struct bh_json *spec = spec_of(w);

    if (w->op != BH_SIM_OP_CREATE)
        return bh_adm_job_gang(w) ? w->error->code : bh_adm_default_template(w, spec);
    /* The labels that tie a job's pods to it, and the selector over them. */
    const char *uid = bh_tree_str(w->obj, "metadata.uid");
    const char *name = bh_json_get_text(bh_json_get(w->obj, "metadata"), "name");
    struct bh_json *template = bh_tree_obj(spec, "template");
    if (!bh_tree_bool(spec, "manualSelector", false) && template && uid) {
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
    return bh_adm_default_template(w, bh_tree_obj(spec_of(w), "jobTemplate.spec"));
}
