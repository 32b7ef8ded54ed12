/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/tables/storage.c - rows of volumes and of the storage.k8s.io kinds
 *
 * Upstream: pkg/printers/internalversion/printers.go (v1.36); differences: none known.
 */
#include "simulator/tables/table.h"

static const char beta_class[] = "volume.beta.kubernetes.io/storage-class";

/* The annotation is older than the field and wins when present. */
static const char *storage_class(const struct bh_json *o)
{
    const struct bh_json *a = bh_json_get(bh_tree_obj(o, "metadata.annotations"), beta_class);

    return a ? bh_json_cstr(a) : bh_tree_str(o, "spec.storageClassName");
}

/* A fixed order whatever the object says, each mode once. */
static void access_modes_cell(struct bh_table_row *r, const struct bh_json *modes)
{
    static const char *const names[][2] = {{"ReadWriteOnce", "RWO"},
                                           {"ReadOnlyMany", "ROX"},
                                           {"ReadWriteMany", "RWX"},
                                           {"ReadWriteOncePod", "RWOP"}};
    struct bh_buf b = {0};

    for (size_t i = 0; i < BH_ARRAY_LEN(names); i++) {
        bh_json_each(m, modes) {
            const char *s = bh_json_cstr(m);
            if (s && bh_streq(s, names[i][0])) {
                bh_cell_join(&b, ",", names[i][1]);
                break;
            }
        }
    }
    bh_cell_buf(r, &b, "");
}

static void scalar_cell(struct bh_table_row *r, const struct bh_json *v, const char *if_empty)
{
    struct bh_buf b = {0};

    bh_tree_scalar(&b, v);
    bh_cell_buf(r, &b, if_empty);
}

static void phase_cell(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_str(r, bh_tree_deleting(o) ? "Terminating" : bh_tree_str(o, "status.phase"));
}

/* ---- PersistentVolume, PersistentVolumeClaim --------------------------------------------------
 */

static const struct bh_table_col pv_cols[] = {
    BH_COL_NAME,
    BH_COL_S("Capacity", "size"),
    BH_COL_S("Access Modes", "ways to mount"),
    BH_COL_S("Reclaim Policy", "what happens after release"),
    BH_COL_S("Status", "phase"),
    BH_COL_S("Claim", "claim it is bound to"),
    BH_COL_S("StorageClass", "storage class"),
    BH_COL_S("VolumeAttributesClass", "volume attributes class"),
    BH_COL_S("Reason", "why it is in this phase"),
    BH_COL_AGE,
    BH_COL_WIDE("VolumeMode", "file system or block"),
};
static void pv_cells(struct bh_table_row *r, const struct bh_json *o)
{
    const char *ns = bh_tree_str(o, "spec.claimRef.namespace");
    const char *name = bh_tree_str(o, "spec.claimRef.name");

    bh_cell_name(r, o);
    scalar_cell(r, bh_json_path(o, "spec.capacity.storage"), "0");
    access_modes_cell(r, bh_tree_arr(o, "spec.accessModes"));
    bh_cell_str(r, bh_tree_str(o, "spec.persistentVolumeReclaimPolicy"));
    phase_cell(r, o);
    if (bh_tree_obj(o, "spec.claimRef"))
        bh_cell_fmt(r, "%s/%s", ns ? ns : "", name ? name : "");
    else
        bh_cell_str(r, "");
    bh_cell_str(r, storage_class(o));
    bh_cell_or(r, bh_tree_str(o, "spec.volumeAttributesClassName"), "<unset>");
    bh_cell_str(r, bh_tree_str(o, "status.reason"));
    bh_cell_age(r, o);
    bh_cell_or(r, bh_tree_str(o, "spec.volumeMode"), "<unset>");
}

static const struct bh_table_col pvc_cols[] = {
    BH_COL_NAME,
    BH_COL_S("Status", "phase"),
    BH_COL_S("Volume", "volume it is bound to"),
    BH_COL_S("Capacity", "size of that volume"),
    BH_COL_S("Access Modes", "ways to mount"),
    BH_COL_S("StorageClass", "storage class"),
    BH_COL_S("VolumeAttributesClass", "volume attributes class"),
    BH_COL_AGE,
    BH_COL_WIDE("VolumeMode", "file system or block"),
};
static void pvc_cells(struct bh_table_row *r, const struct bh_json *o)
{
    const char *volume = bh_tree_str(o, "spec.volumeName");
    bool bound = volume && *volume;

    bh_cell_name(r, o);
    phase_cell(r, o);
    bh_cell_str(r, volume);
    scalar_cell(r, bound ? bh_json_path(o, "status.capacity.storage") : NULL, bound ? "0" : "");
    access_modes_cell(r, bound ? bh_tree_arr(o, "status.accessModes") : NULL);
    bh_cell_str(r, storage_class(o));
    bh_cell_or(r, bh_tree_str(o, "spec.volumeAttributesClassName"), "<unset>");
    bh_cell_age(r, o);
    bh_cell_or(r, bh_tree_str(o, "spec.volumeMode"), "<unset>");
}

/* ---- StorageClass, VolumeAttributesClass ------------------------------------------------------
 */

static bool is_default_class(const struct bh_json *o)
{
    static const char *const keys[] = {"storageclass.kubernetes.io/is-default-class",
                                       "storageclass.beta.kubernetes.io/is-default-class"};
    const struct bh_json *a = bh_tree_obj(o, "metadata.annotations");

    for (size_t i = 0; i < BH_ARRAY_LEN(keys); i++) {
        const char *v = bh_json_get_str(a, keys[i]);
        if (v && bh_streq(v, "true"))
            return true;
    }
    return false;
}

static const struct bh_table_col storageclass_cols[] = {
    BH_COL_NAME,
    BH_COL_S("Provisioner", "who makes the volumes"),
    BH_COL_S("ReclaimPolicy", "what happens after release"),
    BH_COL_S("VolumeBindingMode", "when claims are bound"),
    BH_COL_S("AllowVolumeExpansion", "volumes may grow"),
    BH_COL_AGE,
};
static void storageclass_cells(struct bh_table_row *r, const struct bh_json *o)
{
    const char *name = bh_tree_str(o, "metadata.name");

    bh_cell_fmt(r, "%s%s", name ? name : "", is_default_class(o) ? " (default)" : "");
    bh_cell_str(r, bh_tree_str(o, "provisioner"));
    bh_cell_or(r, bh_tree_str(o, "reclaimPolicy"), "Delete");
    bh_cell_or(r, bh_tree_str(o, "volumeBindingMode"), "Immediate");
    bh_cell_bool(r, bh_tree_bool(o, "allowVolumeExpansion", false));
    bh_cell_age(r, o);
}

static const struct bh_table_col attributesclass_cols[] = {
    BH_COL_NAME, BH_COL_S("DriverName", "driver that applies the attributes"), BH_COL_AGE};
static void attributesclass_cells(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_name(r, o);
    bh_cell_str(r, bh_tree_str(o, "driverName"));
    bh_cell_age(r, o);
}

/* ---- CSI --------------------------------------------------------------------------------------
 */

static const struct bh_table_col csinode_cols[] = {
    BH_COL_NAME, BH_COL_I("Drivers", "number of drivers on the node"), BH_COL_AGE};
static void csinode_cells(struct bh_table_row *r, const struct bh_json *o)
{
    const struct bh_json *drivers = bh_tree_arr(o, "spec.drivers");

    bh_cell_name(r, o);
    bh_cell_i64(r, drivers ? (int64_t)drivers->c.n : 0);
    bh_cell_age(r, o);
}

static const struct bh_table_col csidriver_cols[] = {
    BH_COL_NAME,
    BH_COL_B("AttachRequired", "volumes are attached to nodes first"),
    BH_COL_B("PodInfoOnMount", "the driver is told about the pod"),
    BH_COL_B("StorageCapacity", "the scheduler looks at capacity"),
    BH_COL_S("TokenRequests", "audiences of service account tokens"),
    BH_COL_B("RequiresRepublish", "volumes are published again and again"),
    BH_COL_S("Modes", "life cycles of volumes"),
    BH_COL_AGE,
};
static void csidriver_cells(struct bh_table_row *r, const struct bh_json *o)
{
    struct bh_buf modes = {0}, tokens = {0};

    bh_json_each(m, bh_tree_arr(o, "spec.volumeLifecycleModes"))
        bh_cell_join(&modes, ",", bh_json_cstr(m));
    bh_json_each(t, bh_tree_arr(o, "spec.tokenRequests"))
        bh_cell_join(&tokens, ",", bh_tree_str(t, "audience"));
    bh_cell_name(r, o);
    bh_cell_bool(r, bh_tree_bool(o, "spec.attachRequired", true));
    bh_cell_bool(r, bh_tree_bool(o, "spec.podInfoOnMount", false));
    bh_cell_bool(r, bh_tree_bool(o, "spec.storageCapacity", false));
    bh_cell_buf(r, &tokens, "<unset>");
    bh_cell_bool(r, bh_tree_bool(o, "spec.requiresRepublish", false));
    bh_cell_buf(r, &modes, "<none>");
    bh_cell_age(r, o);
}

static const struct bh_table_col capacity_cols[] = {BH_COL_NAME,
                                                    BH_COL_S("StorageClassName", "storage class"),
                                                    BH_COL_S("Capacity", "space that is left")};
static void capacity_cells(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_name(r, o);
    bh_cell_str(r, bh_tree_str(o, "storageClassName"));
    scalar_cell(r, bh_json_get(o, "capacity"), "<unset>");
}

static const struct bh_table_col attachment_cols[] = {
    BH_COL_NAME,
    BH_COL_S("Attacher", "driver that attaches"),
    BH_COL_S("PV", "volume"),
    BH_COL_S("Node", "node"),
    BH_COL_B("Attached", "the volume is attached"),
    BH_COL_AGE,
};
static void attachment_cells(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_name(r, o);
    bh_cell_str(r, bh_tree_str(o, "spec.attacher"));
    bh_cell_str(r, bh_tree_str(o, "spec.source.persistentVolumeName"));
    bh_cell_str(r, bh_tree_str(o, "spec.nodeName"));
    bh_cell_bool(r, bh_tree_bool(o, "status.attached", false));
    bh_cell_age(r, o);
}

#define KIND(kind, cols, cells)                                                                    \
    {                                                                                              \
        "storage.k8s.io", kind, cols, BH_ARRAY_LEN(cols), cells                                    \
    }
static const struct bh_table_kind storage_kinds[] = {
    {"", "PersistentVolume", pv_cols, BH_ARRAY_LEN(pv_cols), pv_cells},
    {"", "PersistentVolumeClaim", pvc_cols, BH_ARRAY_LEN(pvc_cols), pvc_cells},
    KIND("StorageClass", storageclass_cols, storageclass_cells),
    KIND("VolumeAttributesClass", attributesclass_cols, attributesclass_cells),
    KIND("CSINode", csinode_cols, csinode_cells),
    KIND("CSIDriver", csidriver_cols, csidriver_cells),
    KIND("CSIStorageCapacity", capacity_cols, capacity_cells),
    KIND("VolumeAttachment", attachment_cols, attachment_cells),
};
const struct bh_table_set bh_table_set_storage = {storage_kinds, BH_ARRAY_LEN(storage_kinds)};
