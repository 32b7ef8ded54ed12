/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/types.c - the kinds this API server serves
 *
 * Order matters: it is the order of discovery, and of two types that show the same stored objects
 * the stored one stands where kubectl prefers it (core events first, autoscaling/v2 before v1).
 * Upstream: pkg/registry and the storage_*.go files of pkg/registry/<group>/rest (v1.36);
 * differences: only stable versions; kinds without any meaning to a scheduler are left out.
 */
#include "simulator/server/sim.h"

#include "proto/kubernetes/kubernetes.pb-c.h"
#include <stdio.h>

#define NS  BH_SIM_NAMESPACED
#define ST  BH_SIM_HAS_STATUS
#define GEN BH_SIM_GENERATION
#define RET BH_SIM_RETURN_DELETED
#define ALL BH_SIM_ALL_VERBS
#define EVENT_FIELDS                                                                               \
    "involvedObject.kind,involvedObject.namespace,involvedObject.name,involvedObject.uid,"         \
    "involvedObject.apiVersion,involvedObject.resourceVersion,involvedObject.fieldPath,reason,"    \
    "reportingComponent,source,type"
#define POD_FIELDS                                                                                 \
    "spec.nodeName,spec.restartPolicy,spec.schedulerName,spec.serviceAccountName,"                 \
    "spec.hostNetwork,status.phase,status.podIP,status.nominatedNodeName"
#define T_AS(stored, g, v, k, p, s, sh, cat, fld, fl, pbd)                                         \
    {                                                                                              \
        .group = g, .version = v, .kind = k, .plural = p, .singular = s, .short_names = sh,        \
        .categories = cat, .fields = fld, .flags = (fl), .verbs = ALL, .pb = pbd,                  \
        .stored_as = stored                                                                        \
    }
#define T(...) T_AS(NULL, __VA_ARGS__)
/* Workload and PodGroup: v1alpha2 is stored, and shown in the versions that came after it. Their
 * metadata has no generation in v1.36. */
#define GROUPS(stored, v, of_group, of_workload)                                                   \
    T_AS(stored, "scheduling.k8s.io", v, "PodGroup", "podgroups", "podgroup", "", "", "",          \
         NS | ST | BH_SIM_ON_DEMAND, of_group),                                                    \
        T_AS(stored, "scheduling.k8s.io", v, "Workload", "workloads", "workload", "", "", "",      \
             NS | BH_SIM_ON_DEMAND, of_workload)
#define REVIEW(g, v, k, p, s, fl, pbd)                                                             \
    {                                                                                              \
        .group = g, .version = v, .kind = k, .plural = p, .singular = s, .short_names = "",        \
        .categories = "", .fields = "", .flags = BH_SIM_REVIEW | (fl), .verbs = BH_SIM_CREATE,     \
        .pb = pbd                                                                                  \
    }
#define METRICS(k, p, s, fl)                                                                       \
    {                                                                                              \
        .group = "metrics.k8s.io", .version = "v1beta1", .kind = k, .plural = p, .singular = s,    \
        .short_names = "", .categories = "", .fields = "", .flags = BH_SIM_COMPUTED | (fl),        \
        .verbs = BH_SIM_GET | BH_SIM_LIST                                                          \
    }
#define PB(x) &k8s__##x##__descriptor

const struct bh_sim_type bh_sim_types[] = {
    REVIEW("", "v1", "Binding", "bindings", "binding", NS, PB(binding)),
    T("", "v1", "ConfigMap", "configmaps", "configmap", "cm", "", "", NS, PB(config_map)),
    T("", "v1", "Endpoints", "endpoints", "endpoints", "ep", "", "", NS | BH_SIM_UPSERT,
      PB(endpoints)),
    T("", "v1", "Event", "events", "event", "ev", "", EVENT_FIELDS, NS | BH_SIM_UPSERT, PB(event)),
    T("", "v1", "LimitRange", "limitranges", "limitrange", "limits", "", "", NS | BH_SIM_UPSERT,
      PB(limit_range)),
    T("", "v1", "Namespace", "namespaces", "namespace", "ns", "", "status.phase",
      ST | BH_SIM_NAME_LABEL | RET, PB(namespace)),
    T("", "v1", "Node", "nodes", "node", "no", "", "spec.unschedulable", ST | BH_SIM_KEEP_STATUS,
      PB(node)),
    T("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "persistentvolumeclaim", "pvc",
      "", "", NS | ST | RET, PB(persistent_volume_claim)),
    T("", "v1", "PersistentVolume", "persistentvolumes", "persistentvolume", "pv", "", "", ST | RET,
      PB(persistent_volume)),
    T("", "v1", "Pod", "pods", "pod", "po", "all", POD_FIELDS,
      NS | ST | GEN | BH_SIM_GRACEFUL | RET, PB(pod)),
    T("", "v1", "PodTemplate", "podtemplates", "podtemplate", "", "", "", NS | GEN | RET,
      PB(pod_template)),
    T("", "v1", "ReplicationController", "replicationcontrollers", "replicationcontroller", "rc",
      "all", "status.replicas", NS | ST | GEN | BH_SIM_HAS_SCALE, PB(replication_controller)),
    T("", "v1", "ResourceQuota", "resourcequotas", "resourcequota", "quota", "", "", NS | ST | RET,
      PB(resource_quota)),
    T("", "v1", "Secret", "secrets", "secret", "", "", "type", NS, PB(secret)),
    T("", "v1", "ServiceAccount", "serviceaccounts", "serviceaccount", "sa", "", "", NS | RET,
      PB(service_account)),
    T("", "v1", "Service", "services", "service", "svc", "all", "spec.clusterIP,spec.type",
      NS | ST | BH_SIM_NAME_LABEL | RET, PB(service)),

    T("apps", "v1", "ControllerRevision", "controllerrevisions", "controllerrevision", "", "", "",
      NS, PB(controller_revision)),
    T("apps", "v1", "DaemonSet", "daemonsets", "daemonset", "ds", "all", "", NS | ST | GEN,
      PB(daemon_set)),
    T("apps", "v1", "Deployment", "deployments", "deployment", "deploy", "all", "",
      NS | ST | GEN | BH_SIM_HAS_SCALE, PB(deployment)),
    T("apps", "v1", "ReplicaSet", "replicasets", "replicaset", "rs", "all", "status.replicas",
      NS | ST | GEN | BH_SIM_HAS_SCALE, PB(replica_set)),
    T("apps", "v1", "StatefulSet", "statefulsets", "statefulset", "sts", "all", "",
      NS | ST | GEN | BH_SIM_HAS_SCALE, PB(stateful_set)),

    T_AS("v1", "events.k8s.io", "v1", "Event", "events", "event", "ev", "", EVENT_FIELDS,
         NS | BH_SIM_UPSERT, PB(events_event)),

    REVIEW("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews",
           "selfsubjectreview", 0, PB(self_subject_review)),
    REVIEW("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", "tokenreview", 0,
           PB(token_review)),
    REVIEW("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews",
           "selfsubjectaccessreview", 0, PB(self_subject_access_review)),
    REVIEW("authorization.k8s.io", "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews",
           "localsubjectaccessreview", NS, PB(subject_access_review)),
    REVIEW("authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews",
           "selfsubjectrulesreview", 0, PB(self_subject_rules_review)),
    REVIEW("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews",
           "subjectaccessreview", 0, PB(subject_access_review)),

    T("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers",
      "horizontalpodautoscaler", "hpa", "all", "", NS | ST, PB(horizontal_pod_autoscaler)),
    T_AS("autoscaling/v2", "autoscaling", "v1", "HorizontalPodAutoscaler",
         "horizontalpodautoscalers", "horizontalpodautoscaler", "hpa", "all", "", NS | ST,
         PB(horizontal_pod_autoscaler_v1)),

    T("batch", "v1", "CronJob", "cronjobs", "cronjob", "cj", "all", "", NS | ST | GEN,
      PB(cron_job)),
    T("batch", "v1", "Job", "jobs", "job", "", "all", "status.successful", NS | ST | GEN, PB(job)),

    T("networking.k8s.io", "v1", "Ingress", "ingresses", "ingress", "ing", "", "", NS | ST | GEN,
      PB(ingress)),
    T("networking.k8s.io", "v1", "IngressClass", "ingressclasses", "ingressclass", "", "", "", GEN,
      PB(ingress_class)),
    T("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", "networkpolicy", "netpol", "",
      "", NS | GEN, PB(network_policy)),

    T("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", "runtimeclass", "", "", "", 0,
      PB(runtime_class)),

    T("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", "poddisruptionbudget", "pdb",
      "", "", NS | ST | GEN, PB(pod_disruption_budget)),

    T("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", "clusterrole", "", "", "",
      BH_SIM_NAME_FREE, PB(cluster_role)),
    T("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings",
      "clusterrolebinding", "", "", "", BH_SIM_NAME_FREE, PB(cluster_role_binding)),
    T("rbac.authorization.k8s.io", "v1", "Role", "roles", "role", "", "", "", NS | BH_SIM_NAME_FREE,
      PB(role)),
    T("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", "rolebinding", "", "", "",
      NS | BH_SIM_NAME_FREE, PB(role_binding)),

    T("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", "deviceclass", "", "", "", GEN,
      PB(device_class)),
    T("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", "resourceclaim", "", "", "",
      NS | ST, PB(resource_claim)),
    T("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates",
      "resourceclaimtemplate", "", "", "", NS, PB(resource_claim_template)),
    T("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", "resourceslice", "", "",
      "spec.nodeName,spec.driver", GEN, PB(resource_slice)),

    T("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", "priorityclass", "pc", "", "",
      GEN, PB(priority_class)),
    GROUPS(NULL, "v1alpha2", PB(pod_group), PB(workload)),
    GROUPS("scheduling.k8s.io/v1alpha2", "v1beta1", PB(pod_group_v1beta1), NULL),
    GROUPS("scheduling.k8s.io/v1alpha2", "v1alpha3", PB(pod_group_v1beta1), NULL),

    T("sim.berth.dev", "v1alpha1", "Scenario", "scenarios", "scenario", "", "", "", ST | GEN, NULL),

    T("coordination.k8s.io", "v1", "Lease", "leases", "lease", "", "", "", NS | BH_SIM_UPSERT,
      PB(lease)),

    T("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", "endpointslice", "", "", "",
      NS | GEN, PB(endpoint_slice)),

    T("storage.k8s.io", "v1", "CSIDriver", "csidrivers", "csidriver", "", "", "", RET,
      PB(csidriver)),
    T("storage.k8s.io", "v1", "CSINode", "csinodes", "csinode", "", "", "", RET, PB(csinode)),
    T("storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities", "csistoragecapacity",
      "", "", "", NS, PB(csistorage_capacity)),
    T("storage.k8s.io", "v1", "StorageClass", "storageclasses", "storageclass", "sc", "", "", RET,
      PB(storage_class)),
    T("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", "volumeattachment", "", "",
      "", ST | RET, PB(volume_attachment)),
    T("storage.k8s.io", "v1", "VolumeAttributesClass", "volumeattributesclasses",
      "volumeattributesclass", "vac", "", "", 0, PB(volume_attributes_class)),

    T("admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicy", "mutatingadmissionpolicies",
      "mutatingadmissionpolicy", "", "api-extensions", "", GEN, PB(mutating_admission_policy)),
    T("admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicyBinding",
      "mutatingadmissionpolicybindings", "mutatingadmissionpolicybinding", "", "api-extensions", "",
      GEN, PB(mutating_admission_policy_binding)),
    T("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration",
      "mutatingwebhookconfigurations", "mutatingwebhookconfiguration", "", "api-extensions", "",
      GEN, PB(mutating_webhook_configuration)),
    T("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy",
      "validatingadmissionpolicies", "validatingadmissionpolicy", "", "api-extensions", "",
      ST | GEN, PB(validating_admission_policy)),
    T("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding",
      "validatingadmissionpolicybindings", "validatingadmissionpolicybinding", "", "api-extensions",
      "", GEN, PB(validating_admission_policy_binding)),
    T("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration",
      "validatingwebhookconfigurations", "validatingwebhookconfiguration", "", "api-extensions", "",
      GEN, PB(validating_webhook_configuration)),

    T("apiregistration.k8s.io", "v1", "APIService", "apiservices", "apiservice", "",
      "api-extensions", "", ST | BH_SIM_KEEP_STATUS | BH_SIM_NAME_FREE, PB(apiservice)),

    T(BH_SIM_CRD_GROUP, "v1", "CustomResourceDefinition", BH_SIM_CRD_PLURAL,
      "customresourcedefinition", "crd,crds", "api-extensions", "", ST | GEN | RET | BH_SIM_DEFINES,
      NULL),

    METRICS("NodeMetrics", "nodes", "", 0),
    METRICS("PodMetrics", "pods", "", NS),
};
const size_t bh_sim_n_types = BH_ARRAY_LEN(bh_sim_types);

const struct bh_sim_type *bh_sim_type_find(const char *group, const char *version,
                                           const char *plural)
{
    if (bh_streq(group, "core"))
        group = "";
    for (size_t i = 0; i < bh_sim_n_types; i++) {
        const struct bh_sim_type *t = &bh_sim_types[i];
        if (bh_streq(t->plural, plural) && bh_streq(t->group, group) &&
            bh_streq(t->version, version))
            return t;
    }
    return NULL;
}

/* "apps/v1" or "v1" */
static bool is_version(const struct bh_sim_type *t, const char *api_version)
{
    size_t n = strlen(t->group);
    if (!n)
        return bh_streq(t->version, api_version);
    return strncmp(api_version, t->group, n) == 0 && api_version[n] == '/' &&
           bh_streq(api_version + n + 1, t->version);
}

const struct bh_sim_type *bh_sim_type_of_kind(const char *api_version, const char *kind)
{
    for (size_t i = 0; i < bh_sim_n_types; i++) {
        const struct bh_sim_type *t = &bh_sim_types[i];
        if (bh_streq(t->kind, kind) && (!api_version || is_version(t, api_version)))
            return t;
    }
    return NULL;
}

const struct bh_sim_type *bh_sim_type_stored(const struct bh_sim_type *t)
{
    if (t->custom)
        return t->custom->stored;
    return t->stored_as ? bh_sim_type_of_kind(t->stored_as, t->kind) : t;
}

bool bh_sim_type_stores(const struct bh_sim_type *t)
{
    return !t->stored_as && !(t->flags & (BH_SIM_REVIEW | BH_SIM_COMPUTED));
}

void bh_sim_type_api_version(const struct bh_sim_type *t, char out[static 80])
{
    size_t group_n = strlen(t->group), version_n = strlen(t->version);
    if (group_n + 1 + version_n >= 80) { /* of a definition: names can be long */
        snprintf(out, 80, "%s/%s", t->group, t->version);
        return;
    }
    char *p = (char *)mempcpy(out, t->group, group_n);
    if (group_n)
        *p++ = '/';
    memcpy(p, t->version, version_n + 1);
}
