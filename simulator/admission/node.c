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

/* podCIDR is the first of podCIDRs, and wins over it. */
static void pod_cidrs(struct bh_arena *a, struct bh_json *spec)
{
    const char *one = bh_json_get_text(spec, "podCIDR");
    const char *first = bh_json_cstr(bh_json_at(bh_tree_arr(spec, "podCIDRs"), 0));

    if (*one && (!first || !bh_streq(one, first)))
        bh_json_add(a, spec, "podCIDRs: [%s]", one);
    else if (!*one && first)
        bh_json_set_str(a, spec, "podCIDR", first);
}

int bh_adm_default_node(struct bh_sim_write *w)
{
    struct bh_json *spec = bh_json_obj_at(w->arena, w->obj, "spec");
    struct bh_json *status = bh_tree_obj(w->obj, "status");

    if (bh_adm_quantities_at(w, status, "capacity") ||
        bh_adm_quantities_at(w, status, "allocatable"))
        return w->error->code;
    pod_cidrs(w->arena, spec);
    bh_adm_default_allocatable(w->arena, w->obj);
    sync_taints(w, spec);
    return 0;
}
