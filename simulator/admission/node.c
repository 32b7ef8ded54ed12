/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/node.c - nodes: allocatable, and the taints that follow from state
 *
 * A real cluster taints a node not-ready when it is created and lets the node lifecycle controller
 * change taints later, so that a scheduler sees intermediate states whose length is chance. Here
 * the taints are worked out inside every write: what is stored is always consistent, and runs
 * repeat.
 * Upstream: pkg/apis/core/v1/defaults.go SetDefaults_NodeStatus, plugin/pkg/admission/nodetaint,
 * pkg/controller/nodelifecycle (v1.36); differences: the above; a node that is born ready never
 * carries the not-ready taint; no NoExecute taints, because nothing here evicts pods.
 */
#include "simulator/admission/admission.h"

/* The taints this file owns. A condition other than Ready taints when it is True. */
struct state_taint {
    const char *key, *condition, *status; /* status NULL = derived from spec.unschedulable */
};
static const struct state_taint state_taints[] = {
    {"node.kubernetes.io/unschedulable", NULL, NULL},
    {"node.kubernetes.io/not-ready", "Ready", "False"},
    {"node.kubernetes.io/unreachable", "Ready", "Unknown"},
    {"node.kubernetes.io/memory-pressure", "MemoryPressure", "True"},
    {"node.kubernetes.io/disk-pressure", "DiskPressure", "True"},
    {"node.kubernetes.io/pid-pressure", "PIDPressure", "True"},
    {"node.kubernetes.io/network-unavailable", "NetworkUnavailable", "True"},
};

/* Without a Ready condition no kubelet has vouched for the node yet: it counts as not ready. */
static bool wanted(const struct bh_json *node, const struct state_taint *t)
{
    if (!t->condition)
        return bh_tree_bool(node, "spec.unschedulable", false);
    const struct bh_json *c = bh_tree_condition(node, t->condition);
    if (!c)
        return bh_streq(t->key, "node.kubernetes.io/not-ready");
    return bh_tree_is(c, "status", t->status);
}

static struct bh_json *find_taint(const struct bh_json *taints, const char *key)
{
    bh_json_each(t, taints) {
        if (bh_tree_is(t, "key", key) && bh_tree_is(t, "effect", "NoSchedule"))
            return t;
    }
    return NULL;
}

static void sync_taints(struct bh_sim_write *w, struct bh_json *spec)
{
    struct bh_arena *a = w->arena;
    struct bh_json *taints = bh_tree_arr(spec, "taints");

    for (size_t i = 0; i < BH_ARRAY_LEN(state_taints); i++) {
        struct bh_json *have = find_taint(taints, state_taints[i].key);
        bool want = wanted(w->obj, &state_taints[i]);
        if (want && !have) {
            taints = bh_tree_dflt_arr(a, spec, "taints");
            if (!taints)
                return;
            bh_json_append(a, taints, "key: %s, effect: NoSchedule", state_taints[i].key);
        } else if (!want && have) {
            bh_json_remove(taints, have);
        }
    }
    if (taints && !taints->c.n)
        bh_json_unset(spec, "taints");
}

int bh_adm_default_node(struct bh_sim_write *w)
{
    struct bh_json *spec = bh_json_obj_at(w->arena, w->obj, "spec");
    struct bh_json *status = bh_tree_obj(w->obj, "status");

    if (bh_adm_quantities_at(w, status, "capacity") ||
        bh_adm_quantities_at(w, status, "allocatable"))
        return w->error->code;
    bh_adm_default_allocatable(w->arena, w->obj);
    sync_taints(w, spec);
    return 0;
}

/* ---- validation ------------------------------------------------------------------------------ */

static void validate_taint(struct bh_sim_write *w, const char *at, const struct bh_json *t)
{
    const struct bh_json *value = bh_json_get(t, "value");

    bh_adm_label_key(w, bh_adm_member(w, at, "key"), bh_tree_str(t, "key"));
    if (value && value->type != BH_JSON_NULL)
        bh_adm_label_value(w, bh_adm_member(w, at, "value"), value);
    bh_adm_one_of(w, at, t, "effect", BH_ADM_EFFECTS, true);
}

static bool same_str(const struct bh_json *a, const struct bh_json *b, const char *key)
{
    return bh_streq(bh_json_get_text(a, key), bh_json_get_text(b, key));
}

void bh_adm_validate_node(struct bh_sim_write *w)
{
    bh_adm_each(w, "", w->obj, "spec.taints", validate_taint);
    /* key and effect together are a taint's identity. */
    const struct bh_json *taints = bh_tree_arr(w->obj, "spec.taints");
    size_t i = 0;
    bh_json_each(t, taints) {
        for (const struct bh_json *p = taints->c.first; p != t; p = p->next) {
            if (!same_str(p, t, "key") || !same_str(p, t, "effect"))
                continue;
            struct bh_buf b = {0};
            bh_json_write(&b, t);
            bh_sim_field_error(w->error, bh_adm_path(w, "spec.taints[%zu]", i), "Duplicate value",
                               bh_buf_str(&b), "taints must be unique by key and effect pair");
            bh_buf_fini(&b);
            break;
        }
        i++;
    }
    bh_adm_resource_map(w, "status.capacity", bh_tree_obj(w->obj, "status.capacity"));
    bh_adm_resource_map(w, "status.allocatable", bh_tree_obj(w->obj, "status.allocatable"));
    if (w->old && bh_tree_has(w->old, "spec.providerID"))
        bh_adm_immutable(w, "spec.providerID");
}
