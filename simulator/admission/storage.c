/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/storage.c - volumes, claims, storage classes, drivers
 *
 * Upstream: pkg/apis/{core,storage}/v1/defaults.go, plugin/pkg/admission/storage/{storageclass}
 * (v1.36); differences: no protection finalizers, because no controller here would take them away;
 * validation looks at what decides scheduling, not at volume sources.
 */
#include "simulator/admission/admission.h"

#include "common/k8s/quantity.h"

/* ---- defaults -------------------------------------------------------------------------------- */

int bh_adm_default_pv(struct bh_sim_write *w)
{
    struct bh_json *spec = bh_json_obj_at(w->arena, w->obj, "spec");

    if (w->op == BH_SIM_OP_UPDATE_STATUS)
        return 0;
    if (w->op == BH_SIM_OP_CREATE)
        bh_json_set(
            w->arena, w->obj, "status",
            bh_json_make(w->arena, "phase: Pending, lastPhaseTransitionTime: %s", bh_adm_now(w)));
    return bh_adm_quantities_at(w, spec, "capacity");
}

/* The newest default class, then the lowest name (the list is in name order). */
static const char *default_class(struct bh_sim_write *w)
{
    struct bh_sim_objs l = {0};
    const char *best = NULL, *best_time = "";

    bh_sim_list(w->sim, BH_SIM_TYPE("storage.k8s.io", "v1", "storageclasses"), NULL, &l);
    for (size_t i = 0; i < l.n; i++) {
        const struct bh_json *c = bh_sim_obj_tree(w->arena, l.v[i]);
        const char *created = bh_tree_str(c, "metadata.creationTimestamp");
        if (!bh_tree_is_default_class(c) ||
            (best && strcmp(created ? created : "", best_time) <= 0))
            continue;
        best = bh_tree_str(c, "metadata.name");
        best_time = created ? created : "";
    }
    bh_sim_objs_fini(&l);
    return best;
}

int bh_adm_default_pvc(struct bh_sim_write *w)
{
    struct bh_json *spec = bh_json_obj_at(w->arena, w->obj, "spec");

    if (w->op == BH_SIM_OP_UPDATE_STATUS)
        return bh_adm_quantities_at(w, w->obj, "status.capacity");
    bh_json_obj_at(w->arena, spec, "resources");
    if (w->op == BH_SIM_OP_CREATE) {
        bh_json_set(w->arena, w->obj, "status", bh_json_make(w->arena, "phase: Pending"));
        if (!bh_tree_has(spec, "storageClassName") &&
            !bh_tree_annotation(w->obj, "volume.beta.kubernetes.io/storage-class"))
            bh_json_set_text(w->arena, spec, "storageClassName", default_class(w));
    }
    return bh_adm_quantities_at(w, spec, "resources.requests");
}
