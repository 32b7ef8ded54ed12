/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/admit.c - which kind is defaulted and validated by what
 *
 * Runs in: the simulator's loop, inside a write. No state.
 * Upstream: pkg/apis/<group>/v1/defaults.go, pkg/apis/<group>/validation/validation.go,
 * pkg/registry/<group>/<kind>/strategy.go, plugin/pkg/admission (v1.36); differences: the field
 * checks that people meet are made, not all of them; each file names what it leaves out.
 */
#include "simulator/admission/rules.h"

struct kind {
    const char *group, *kind;
    bh_adm_default_fn *dflt;
    bh_adm_validate_fn *validate;
    bool makes_pods; /* only a new spec is looked at */
};

#define KIND(group, kind, dflt, validate)                                                          \
    {                                                                                              \
        group, kind, dflt, validate, false                                                         \
    }
#define MAKER(group, kind, name)                                                                   \
    {                                                                                              \
        group, kind, bh_adm_default_##name, NULL, true                                             \
    }
/* The busiest first: the look-up is a walk. */
static const struct kind kinds[] = {
    KIND("", "Pod", bh_adm_default_pod, bh_adm_validate_pod),
    KIND("", "Node", bh_adm_default_node, NULL),
    MAKER("apps", "ReplicaSet", maker),
    MAKER("apps", "Deployment", maker),
    MAKER("batch", "Job", job),
    MAKER("apps", "StatefulSet", maker),
    MAKER("apps", "DaemonSet", maker),
    MAKER("", "ReplicationController", replicationcontroller),
    MAKER("batch", "CronJob", cronjob),
    KIND("", "Service", bh_adm_default_service, bh_adm_validate_service),
    KIND("", "Namespace", bh_adm_default_namespace, NULL),
    KIND("", "Secret", bh_adm_default_secret, NULL),
    KIND("", "ResourceQuota", bh_adm_default_quota, NULL),
    KIND("", "LimitRange", bh_adm_default_limitrange, NULL),
    KIND("policy", "PodDisruptionBudget", bh_adm_default_pdb, NULL),
    KIND("scheduling.k8s.io", "PodGroup", bh_adm_default_podgroup, bh_adm_validate_podgroup),
    KIND("scheduling.k8s.io", "Workload", bh_adm_default_workload, bh_adm_validate_workload),
    KIND("", "PersistentVolume", bh_adm_default_pv, NULL),
    KIND("", "PersistentVolumeClaim", bh_adm_default_pvc, bh_adm_validate_pvc),
    KIND("resource.k8s.io", "ResourceClaim", bh_adm_default_claim, NULL),
    KIND("", "Event", bh_adm_default_event, NULL),
    KIND("rbac.authorization.k8s.io", "ClusterRole", bh_adm_default_clusterrole, NULL),
    KIND(BH_SIM_CRD_GROUP, "CustomResourceDefinition", bh_adm_default_crd, bh_adm_validate_crd),
};

static const struct kind *find_kind(const struct bh_sim_type *t)
{
    if (t->custom)
        return NULL;
    for (size_t i = 0; i < BH_ARRAY_LEN(kinds); i++) {
        if (bh_streq(kinds[i].kind, t->kind) && bh_streq(kinds[i].group, t->group))
            return &kinds[i];
    }
    return NULL;
}

int bh_sim_default(struct bh_sim_write *w)
{
    const struct kind *k = find_kind(w->type);

    if (w->warnings && !w->type->custom) /* from a client: as its Go type has it */
        bh_oas_normalise(w->arena, bh_oas_root(w->type), w->obj);
    if (w->type->custom)
        bh_adm_default_custom(w);
    if (w->op != BH_SIM_OP_UPDATE_STATUS && !w->type->custom)
        bh_rules_default(w, w->type->kind, w->obj);
    if (!k || !k->dflt || (k->makes_pods && w->op == BH_SIM_OP_UPDATE_STATUS))
        return 0;
    return k->dflt(w);
}

/* The set of rules for what is done to a kind: "PodStatusUpdate", "ConfigMapUpdate", "Pod". */
static const char *find_rules(const struct bh_sim_write *w)
{
    static const char *const endings[] = {[BH_SIM_OP_CREATE] = "",
                                          [BH_SIM_OP_UPDATE] = "Update",
                                          [BH_SIM_OP_UPDATE_STATUS] = "StatusUpdate",
                                          [BH_SIM_OP_RESIZE] = "",
                                          [BH_SIM_OP_EPHEMERAL] = ""};
    const char *name = bh_arena_printf(w->arena, "%s%s", w->type->kind, endings[w->op]);

    if (bh_rules_find(name))
        return name;
    return w->op != BH_SIM_OP_UPDATE_STATUS && bh_rules_find(w->type->kind) ? w->type->kind : NULL;
}

void bh_sim_validate(struct bh_sim_write *w)
{
    const struct kind *k = find_kind(w->type);
    const char *rules = w->type->custom ? NULL : find_rules(w);

    bh_rules_apply_meta(w);
    if (w->type->custom)
        bh_adm_validate_custom(w);
    if (rules)
        bh_rules_apply(w, rules);
    if (k && k->validate)
        k->validate(w);
}

/* PodTopologyLabels: what the pod may read about its node through the downward API. */
void bh_sim_default_binding(struct bh_sim *s, struct bh_arena *a, struct bh_json *pod,
                            const char *node)
{
    static const char *const keys[] = {"topology.kubernetes.io/zone",
                                       "topology.kubernetes.io/region"};
    const struct bh_sim_obj *n = bh_sim_get(s, BH_SIM_TYPE("", "v1", "nodes"), "", node);

    for (size_t i = 0; n && i < BH_ARRAY_LEN(keys); i++) {
        const char *v = bh_sim_obj_label(n, keys[i]);
        struct bh_json *meta = bh_json_get(pod, "metadata");
        if (v && meta)
            bh_json_set_str(a, bh_json_obj_at(a, meta, "labels"), keys[i], v);
    }
}
