/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/tables/small_kinds.c - rows of policy, scheduling, coordination, autoscaling and device kinds
 *
 * Upstream: pkg/printers/internalversion/printers.go (v1.36); differences: targets of a
 * HorizontalPodAutoscaler show the wanted values only, the simulator measures none.
 */
#include "simulator/tables/table.h"

#include <inttypes.h>

static void int_or_string_cell(struct bh_table_row *r, const struct bh_json *v)
{
    struct bh_buf b = {0};

    bh_tree_scalar(&b, v);
    bh_cell_buf(r, &b, "N/A");
}

static const struct bh_table_col pdb_cols[] = {
    BH_COL_NAME,
    BH_COL_S("Min Available", "pods that must stay available"),
    BH_COL_S("Max Unavailable", "pods that may be unavailable"),
    BH_COL_I("Allowed Disruptions", "pods that may be evicted now"),
    BH_COL_AGE,
};
static void pdb_cells(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_name(r, o);
    int_or_string_cell(r, bh_json_path(o, "spec.minAvailable"));
    int_or_string_cell(r, bh_json_path(o, "spec.maxUnavailable"));
    bh_cell_i64(r, bh_tree_i64(o, "status.disruptionsAllowed", 0));
    bh_cell_age(r, o);
}

static const struct bh_table_col priorityclass_cols[] = {
    BH_COL_NAME,
    BH_COL_I("Value", "priority of the pods"),
    BH_COL_B("Global-Default", "used by pods without a class"),
    BH_COL_AGE,
    BH_COL_S("PreemptionPolicy", "whether pods of the class preempt others"),
};
static void priorityclass_cells(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_name(r, o);
    bh_cell_i64(r, bh_tree_i64(o, "value", 0));
    bh_cell_bool(r, bh_tree_bool(o, "globalDefault", false));
    bh_cell_age(r, o);
    bh_cell_str(r, bh_tree_str(o, "preemptionPolicy"));
}

static const struct bh_table_col lease_cols[] = {BH_COL_NAME, BH_COL_S("Holder", "who holds it"),
                                                 BH_COL_AGE};
static void lease_cells(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_name(r, o);
    bh_cell_str(r, bh_tree_str(o, "spec.holderIdentity"));
    bh_cell_age(r, o);
}

/* ---- HorizontalPodAutoscaler ------------------------------------------------------------------
 */

static void hpa_targets_cell(struct bh_table_row *r, const struct bh_json *o)
{
    struct bh_buf b = {0};
    const struct bh_json *v1 = bh_json_path(o, "spec.targetCPUUtilizationPercentage");

    if (v1) {
        bh_buf_adds(&b, "cpu: <unknown>/");
        bh_tree_scalar(&b, v1);
        bh_buf_addc(&b, '%');
    }
    bh_json_each(m, bh_tree_arr(o, "spec.metrics")) {
        const char *name = bh_tree_str(m, "resource.name");
        int64_t pct = bh_tree_i64(m, "resource.target.averageUtilization", -1);
        if (b.n)
            bh_buf_adds(&b, ", ");
        bh_buf_addf(&b, "%s: <unknown>/", name ? name : "custom");
        if (pct >= 0)
            bh_buf_addf(&b, "%" PRId64 "%%", pct);
        else
            bh_tree_scalar(&b, bh_json_path(m, "resource.target.averageValue"));
    }
    bh_cell_buf(r, &b, "<none>");
}

static const struct bh_table_col hpa_cols[] = {
    BH_COL_NAME,
    BH_COL_S("Reference", "object that is scaled"),
    BH_COL_S("Targets", "wanted values"),
    BH_COL_S("MinPods", "lower bound"),
    BH_COL_S("MaxPods", "upper bound"),
    BH_COL_S("Replicas", "pods now"),
    BH_COL_AGE,
};
static void hpa_cells(struct bh_table_row *r, const struct bh_json *o)
{
    const char *kind = bh_tree_str(o, "spec.scaleTargetRef.kind");
    const char *name = bh_tree_str(o, "spec.scaleTargetRef.name");
    int64_t min = bh_tree_i64(o, "spec.minReplicas", -1);

    bh_cell_name(r, o);
    bh_cell_fmt(r, "%s/%s", kind ? kind : "", name ? name : "");
    hpa_targets_cell(r, o);
    if (min >= 0)
        bh_cell_fmt(r, "%" PRId64, min);
    else
        bh_cell_str(r, "<unset>");
    bh_cell_i64(r, bh_tree_i64(o, "spec.maxReplicas", 0));
    bh_cell_i64(r, bh_tree_i64(o, "status.currentReplicas", 0));
    bh_cell_age(r, o);
}

/* ---- resource.k8s.io --------------------------------------------------------------------------
 */

static const struct bh_table_col claim_cols[] = {
    BH_COL_NAME, BH_COL_S("State", "pending, allocated, reserved"), BH_COL_AGE};
static void claim_cells(struct bh_table_row *r, const struct bh_json *o)
{
    const struct bh_json *reserved = bh_tree_arr(o, "status.reservedFor");
    struct bh_buf b = {0};

    if (bh_tree_deleting(o))
        bh_cell_join(&b, ",", "deleted");
    if (bh_tree_obj(o, "status.allocation")) {
        bh_cell_join(&b, ",", "allocated");
        if (reserved && reserved->c.n)
            bh_cell_join(&b, ",", "reserved");
    } else if (!bh_tree_deleting(o)) {
        bh_cell_join(&b, ",", "pending");
    }
    bh_cell_name(r, o);
    bh_cell_buf(r, &b, "");
    bh_cell_age(r, o);
}

static const struct bh_table_col slice_cols[] = {
    BH_COL_NAME, BH_COL_S("Node", "node that has the devices"), BH_COL_S("Driver", "driver"),
    BH_COL_S("Pool", "pool the slice belongs to"), BH_COL_AGE};
static void slice_cells(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_name(r, o);
    bh_cell_or(r, bh_tree_str(o, "spec.nodeName"), "<unset>");
    bh_cell_str(r, bh_tree_str(o, "spec.driver"));
    bh_cell_str(r, bh_tree_str(o, "spec.pool.name"));
    bh_cell_age(r, o);
}

/* ---- rbac.authorization.k8s.io: roles are served so that charts can be installed ---------------
 */

static const struct bh_table_col role_cols[] = {BH_COL_NAME,
                                                BH_COL_S("Created At", "creation time")};
static void role_cells(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_name(r, o);
    bh_cell_time(r, bh_tree_str(o, "metadata.creationTimestamp"));
}

static void subjects_cell(struct bh_table_row *r, const struct bh_json *o, const char *kind)
{
    struct bh_buf b = {0};

    bh_json_each(s, bh_tree_arr(o, "subjects")) {
        const char *k = bh_tree_str(s, "kind"), *ns = bh_tree_str(s, "namespace");
        const char *name = bh_tree_str(s, "name");
        if (!k || !name || !bh_streq(k, kind))
            continue;
        bh_buf_addf(&b, "%s%s%s%s", b.n ? ", " : "", ns ? ns : "", ns ? "/" : "", name);
    }
    bh_cell_buf(r, &b, "");
}

static const struct bh_table_col binding_cols[] = {
    BH_COL_NAME,
    BH_COL_S("Role", "role that is granted"),
    BH_COL_AGE,
    BH_COL_WIDE("Users", "users"),
    BH_COL_WIDE("Groups", "groups"),
    BH_COL_WIDE("ServiceAccounts", "service accounts"),
};
static void binding_cells(struct bh_table_row *r, const struct bh_json *o)
{
    const char *kind = bh_tree_str(o, "roleRef.kind"), *name = bh_tree_str(o, "roleRef.name");

    bh_cell_name(r, o);
    bh_cell_fmt(r, "%s/%s", kind ? kind : "", name ? name : "");
    bh_cell_age(r, o);
    subjects_cell(r, o, "User");
    subjects_cell(r, o, "Group");
    subjects_cell(r, o, "ServiceAccount");
}

static const struct bh_table_col crd_cols[] = {
    BH_COL_NAME,
    BH_COL_S("Created At", "when it was created"),
};
static void crd_cells(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_name(r, o);
    bh_cell_time(r, bh_tree_str(o, "metadata.creationTimestamp"));
}

static const struct bh_table_col runtime_cols[] = {
    BH_COL_NAME,
    BH_COL_S("Handler", "configuration of the container runtime"),
    BH_COL_AGE,
};
static void runtime_cells(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_name(r, o);
    bh_cell_str(r, bh_tree_str(o, "handler"));
    bh_cell_age(r, o);
}

static const struct bh_table_col scenario_cols[] = {
    BH_COL_NAME,
    BH_COL_S("Phase", "Pending, Running, Succeeded or Failed"),
    BH_COL_S("Message", "why it failed"),
    BH_COL_AGE,
};
static void scenario_cells(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_name(r, o);
    bh_cell_str(r, bh_tree_str(o, "status.phase"));
    bh_cell_str(r, bh_tree_str(o, "status.message"));
    bh_cell_age(r, o);
}

#define RBAC "rbac.authorization.k8s.io"
#define KIND(group, kind, cols, cells)                                                             \
    {                                                                                              \
        group, kind, cols, BH_ARRAY_LEN(cols), cells                                               \
    }
static const struct bh_table_kind misc_kinds[] = {
    KIND("policy", "PodDisruptionBudget", pdb_cols, pdb_cells),
    KIND("scheduling.k8s.io", "PriorityClass", priorityclass_cols, priorityclass_cells),
    KIND("coordination.k8s.io", "Lease", lease_cols, lease_cells),
    KIND("autoscaling", "HorizontalPodAutoscaler", hpa_cols, hpa_cells),
    KIND(RBAC, "Role", role_cols, role_cells),
    KIND(RBAC, "ClusterRole", role_cols, role_cells),
    KIND(RBAC, "RoleBinding", binding_cols, binding_cells),
    KIND(RBAC, "ClusterRoleBinding", binding_cols, binding_cells),
    KIND("resource.k8s.io", "ResourceClaim", claim_cols, claim_cells),
    KIND("resource.k8s.io", "ResourceSlice", slice_cols, slice_cells),
    KIND("apiextensions.k8s.io", "CustomResourceDefinition", crd_cols, crd_cells),
    KIND("node.k8s.io", "RuntimeClass", runtime_cols, runtime_cells),
    KIND("sim.berth.dev", "Scenario", scenario_cols, scenario_cells),
};
const struct bh_table_set bh_table_set_misc = {misc_kinds, BH_ARRAY_LEN(misc_kinds)};
