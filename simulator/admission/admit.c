/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/admit.c - which kind is defaulted and validated by what
 *
 * Runs in: the simulator's loop, inside a write. No state.
 * Upstream: pkg/apis/<group>/v1/defaults.go, pkg/apis/<group>/validation/validation.go,
 * pkg/registry/<group>/<kind>/strategy.go, plugin/pkg/admission (v1.36); differences: the field
 * checks that people meet are made, not all of them; each file names what it leaves out.
 */
#include "simulator/admission/admission.h"

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
        group, kind, bh_adm_default_##name, bh_adm_validate_##name, true                           \
    }
/* The busiest first: the look-up is a walk. */
static const struct kind kinds[] = {
    KIND("", "Pod", bh_adm_default_pod, bh_adm_validate_pod),
    KIND("", "Node", bh_adm_default_node, bh_adm_validate_node),
    MAKER("apps", "ReplicaSet", replicaset),
    MAKER("apps", "Deployment", deployment),
    MAKER("batch", "Job", job),
    MAKER("apps", "StatefulSet", statefulset),
    MAKER("apps", "DaemonSet", daemonset),
    MAKER("", "ReplicationController", replicationcontroller),
    MAKER("batch", "CronJob", cronjob),
    KIND("", "Service", bh_adm_default_service, bh_adm_validate_service),
    KIND("", "Namespace", bh_adm_default_namespace, NULL),
    KIND("", "ConfigMap", NULL, bh_adm_validate_data),
    KIND("", "Secret", bh_adm_default_secret, bh_adm_validate_data),
    KIND("", "ResourceQuota", bh_adm_default_quota, NULL),
    KIND("", "LimitRange", bh_adm_default_limitrange, NULL),
    KIND("policy", "PodDisruptionBudget", bh_adm_default_pdb, bh_adm_validate_pdb),
    KIND("scheduling.k8s.io", "PriorityClass", bh_adm_default_priorityclass,
         bh_adm_validate_priorityclass),
    KIND("scheduling.k8s.io", "PodGroup", bh_adm_default_podgroup, bh_adm_validate_podgroup),
    KIND("scheduling.k8s.io", "Workload", bh_adm_default_workload, bh_adm_validate_workload),
    KIND("", "PersistentVolume", bh_adm_default_pv, bh_adm_validate_pv),
    KIND("", "PersistentVolumeClaim", bh_adm_default_pvc, bh_adm_validate_pvc),
    KIND("storage.k8s.io", "StorageClass", bh_adm_default_storageclass,
         bh_adm_validate_storageclass),
    KIND("storage.k8s.io", "CSIDriver", bh_adm_default_csidriver, NULL),
    KIND("resource.k8s.io", "ResourceClaim", bh_adm_default_claim, NULL),
    KIND("resource.k8s.io", "ResourceClaimTemplate", bh_adm_default_claimtemplate, NULL),
    KIND("", "Event", bh_adm_default_event, NULL),
    KIND("autoscaling", "HorizontalPodAutoscaler", bh_adm_default_hpa, NULL),
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

    if (w->type->custom)
        bh_adm_default_custom(w);
    if (!k || !k->dflt || (k->makes_pods && w->op == BH_SIM_OP_UPDATE_STATUS))
        return 0;
    return k->dflt(w);
}

void bh_sim_validate(struct bh_sim_write *w)
{
    const struct kind *k = find_kind(w->type);

    if (w->type->custom)
        bh_adm_validate_custom(w);
    if (!k || !k->validate)
        return;
    if (!k->makes_pods ||
        (w->op != BH_SIM_OP_UPDATE_STATUS && !(w->old && bh_adm_same(w->obj, w->old, "spec"))))
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
