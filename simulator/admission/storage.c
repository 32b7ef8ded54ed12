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
    bh_tree_dflt(w->arena, spec, "persistentVolumeReclaimPolicy: Retain, volumeMode: Filesystem");
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
    bh_tree_dflt(w->arena, spec, "volumeMode: Filesystem");
    bh_json_obj_at(w->arena, spec, "resources");
    if (w->op == BH_SIM_OP_CREATE) {
        bh_json_set(w->arena, w->obj, "status", bh_json_make(w->arena, "phase: Pending"));
        if (!bh_tree_has(spec, "storageClassName") &&
            !bh_tree_annotation(w->obj, "volume.beta.kubernetes.io/storage-class"))
            bh_json_set_text(w->arena, spec, "storageClassName", default_class(w));
    }
    return bh_adm_quantities_at(w, spec, "resources.requests");
}

int bh_adm_default_storageclass(struct bh_sim_write *w)
{
    bh_tree_dflt(w->arena, w->obj, "reclaimPolicy: Delete, volumeBindingMode: Immediate");
    return 0;
}

int bh_adm_default_csidriver(struct bh_sim_write *w)
{
    struct bh_json *spec = bh_json_obj_at(w->arena, w->obj, "spec");

    bh_tree_dflt(w->arena, spec,
                 "attachRequired: true, podInfoOnMount: false, storageCapacity: false, "
                 "requiresRepublish: false, fsGroupPolicy: ReadWriteOnceWithFSType");
    struct bh_json *modes = bh_tree_dflt_arr(w->arena, spec, "volumeLifecycleModes");
    if (modes && !modes->c.n)
        bh_json_push(modes, bh_json_new_cstr(w->arena, "Persistent"));
    return 0;
}

/* ---- validation ------------------------------------------------------------------------------ */

static void access_mode(struct bh_sim_write *w, const char *at, const struct bh_json *mode)
{
    bh_adm_one_of_value(w, at, mode, "ReadOnlyMany ReadWriteMany ReadWriteOnce ReadWriteOncePod",
                        true);
}

static void access_modes(struct bh_sim_write *w)
{
    if (!bh_tree_len(bh_tree_arr(w->obj, "spec.accessModes")))
        bh_adm_required(w, "spec", "accessModes",
                        bh_streq(w->type->kind, "PersistentVolumeClaim")
                            ? "at least 1 access mode is required"
                            : "");
    bh_adm_each(w, "", w->obj, "spec.accessModes", access_mode);
}

static void positive_storage(struct bh_sim_write *w, const char *field, const struct bh_json *v)
{
    bh_nano q;

    if (!v)
        bh_adm_required(w, "", field, "");
    else if (bh_adm_parse_quantity(v, &q) && q <= 0)
        bh_adm_invalid_value(w, field, v, "must be greater than zero");
}

void bh_adm_validate_pv(struct bh_sim_write *w)
{
    const struct bh_json *capacity = bh_tree_obj(w->obj, "spec.capacity");

    access_modes(w);
    if (!bh_tree_len(capacity))
        bh_adm_required(w, "spec", "capacity", "");
    else
        positive_storage(w, "spec.capacity[storage]", bh_json_get(capacity, "storage"));
    bh_adm_one_of(w, "", w->obj, "spec.persistentVolumeReclaimPolicy", "Delete Recycle Retain",
                  true);
    bh_adm_one_of(w, "", w->obj, "spec.volumeMode", "Block Filesystem", true);
    bh_adm_node_selector(w, "", w->obj, "spec.nodeAffinity.required");
}

void bh_adm_validate_pvc(struct bh_sim_write *w)
{
    access_modes(w);
    positive_storage(w, "spec.resources[storage]",
                     bh_json_path(w->obj, "spec.resources.requests.storage"));
    bh_adm_label_selector(w, "", w->obj, "spec.selector");
    bh_adm_one_of(w, "", w->obj, "spec.volumeMode", "Block Filesystem", true);
    if (w->old) {
        /* What is bound stays where it is; else the volume may still be chosen. */
        const char *volume = bh_tree_str(w->old, "spec.volumeName");
        bh_adm_frozen_spec(w,
                           volume && *volume
                               ? "resources volumeAttributesClassName storageClassName"
                               : "resources volumeAttributesClassName storageClassName volumeName",
                           "spec is immutable after creation except resources.requests and "
                           "volumeAttributesClassName for bound claims");
    }
}

void bh_adm_validate_storageclass(struct bh_sim_write *w)
{
    static const char *const frozen[] = {"parameters", "provisioner", "reclaimPolicy"};

    if (!bh_tree_has(w->obj, "provisioner"))
        bh_adm_required(w, "", "provisioner", "");
    bh_adm_one_of(w, "", w->obj, "reclaimPolicy", "Delete Retain", true);
    bh_adm_one_of(w, "", w->obj, "volumeBindingMode", "Immediate WaitForFirstConsumer", true);
    for (size_t i = 0; w->old && i < BH_ARRAY_LEN(frozen); i++) {
        if (!bh_adm_same(w->obj, w->old, frozen[i]))
            bh_adm_forbidden(w, "", frozen[i],
                             bh_adm_path(w, "updates to %s are forbidden.", frozen[i]));
    }
    bh_adm_immutable(w, "volumeBindingMode");
}
