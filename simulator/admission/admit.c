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
};

/* The busiest first: the look-up is a walk. */
static const struct kind kinds[] = {
    {"", "Pod", bh_adm_default_pod, bh_adm_validate_pod},
    {"", "Node", bh_adm_default_node, bh_adm_validate_node},
    {"apps", "ReplicaSet", bh_adm_default_replicaset, bh_adm_validate_replicaset},
    {"apps", "Deployment", bh_adm_default_deployment, bh_adm_validate_deployment},
    {"batch", "Job", bh_adm_default_job, bh_adm_validate_job},
    {"apps", "StatefulSet", bh_adm_default_statefulset, bh_adm_validate_statefulset},
    {"apps", "DaemonSet", bh_adm_default_daemonset, bh_adm_validate_daemonset},
    {"", "ReplicationController", bh_adm_default_replicationcontroller,
     bh_adm_validate_replicationcontroller},
    {"batch", "CronJob", bh_adm_default_cronjob, bh_adm_validate_cronjob},
    {"", "Service", bh_adm_default_service, bh_adm_validate_service},
    {"", "Namespace", bh_adm_default_namespace, NULL},
    {"", "ConfigMap", NULL, bh_adm_validate_data},
    {"", "Secret", bh_adm_default_secret, bh_adm_validate_data},
    {"", "ResourceQuota", bh_adm_default_quota, NULL},
    {"", "LimitRange", bh_adm_default_limitrange, NULL},
    {"policy", "PodDisruptionBudget", bh_adm_default_pdb, bh_adm_validate_pdb},
    {"scheduling.k8s.io", "PriorityClass", bh_adm_default_priorityclass,
     bh_adm_validate_priorityclass},
    {"", "PersistentVolume", bh_adm_default_pv, bh_adm_validate_pv},
    {"", "PersistentVolumeClaim", bh_adm_default_pvc, bh_adm_validate_pvc},
    {"storage.k8s.io", "StorageClass", bh_adm_default_storageclass, bh_adm_validate_storageclass},
    {"storage.k8s.io", "CSIDriver", bh_adm_default_csidriver, NULL},
    {"resource.k8s.io", "ResourceClaim", bh_adm_default_claim, NULL},
    {"resource.k8s.io", "ResourceClaimTemplate", bh_adm_default_claimtemplate, NULL},
    {"autoscaling", "HorizontalPodAutoscaler", bh_adm_default_hpa, NULL},
    {BH_SIM_CRD_GROUP, "CustomResourceDefinition", bh_adm_default_crd, bh_adm_validate_crd},
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
    return k && k->dflt ? k->dflt(w) : 0;
}

void bh_sim_validate(struct bh_sim_write *w)
{
    const struct kind *k = find_kind(w->type);

    if (w->type->custom)
        bh_adm_validate_custom(w);
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
