/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/kinds.c - the API kinds Berth reads
 *
 * Upstream: pkg/scheduler/eventhandlers.go (which kinds), k8s.io/kube-scheduler/framework/events.go
 * (resource names of cluster events).
 */
#include "common/k8s/kinds.h"

#include <stdio.h>

#include "proto/kubernetes/kubernetes.pb-c.h"

#define KIND(id, grp, name, plur, ns, watch, selector, event, d)                                   \
    [BH_KIND_##id] = {BH_KIND_##id, grp,   "v1",     name,  plur,                                  \
                      ns,           watch, selector, event, &k8s__##d##__descriptor,               \
                      NULL}

/* Of PodGroups a server has v1alpha2 (1.36), or the others (1.37). Read only if that is asked for. */
#define PODGROUP(v, d, next)                                                                       \
    {                                                                                              \
        BH_KIND_PODGROUP, "scheduling.k8s.io", v, "PodGroup", "podgroups", true, false, NULL,      \
            "scheduling.k8s.io/PodGroup", &k8s__##d##__descriptor, next                            \
    }
static const struct bh_kind_info pod_group_v1alpha3 = PODGROUP("v1alpha3", pod_group_v1beta1, NULL);
static const struct bh_kind_info pod_group_v1beta1 =
    PODGROUP("v1beta1", pod_group_v1beta1, &pod_group_v1alpha3);

const struct bh_kind_info bh_kinds[BH_KIND_COUNT] = {
    KIND(NODE, "", "Node", "nodes", false, true, NULL, "Node", node),
    KIND(POD, "", "Pod", "pods", true, true, "status.phase!=Succeeded,status.phase!=Failed", "Pod",
         pod),
    KIND(NAMESPACE, "", "Namespace", "namespaces", false, true, NULL, "Namespace", namespace),
    KIND(SERVICE, "", "Service", "services", true, true, NULL, "Service", service),
    KIND(REPLICATIONCONTROLLER, "", "ReplicationController", "replicationcontrollers", true, true,
         NULL, "ReplicationController", replication_controller),
    KIND(REPLICASET, "apps", "ReplicaSet", "replicasets", true, true, NULL, "apps/ReplicaSet",
         replica_set),
    KIND(STATEFULSET, "apps", "StatefulSet", "statefulsets", true, true, NULL, "apps/StatefulSet",
         stateful_set),
    KIND(PERSISTENTVOLUME, "", "PersistentVolume", "persistentvolumes", false, true, NULL,
         "PersistentVolume", persistent_volume),
    KIND(PERSISTENTVOLUMECLAIM, "", "PersistentVolumeClaim", "persistentvolumeclaims", true, true,
         NULL, "PersistentVolumeClaim", persistent_volume_claim),
    KIND(STORAGECLASS, "storage.k8s.io", "StorageClass", "storageclasses", false, true, NULL,
         "storage.k8s.io/StorageClass", storage_class),
    KIND(CSINODE, "storage.k8s.io", "CSINode", "csinodes", false, true, NULL,
         "storage.k8s.io/CSINode", csinode),
    KIND(CSIDRIVER, "storage.k8s.io", "CSIDriver", "csidrivers", false, true, NULL,
         "storage.k8s.io/CSIDriver", csidriver),
    KIND(CSISTORAGECAPACITY, "storage.k8s.io", "CSIStorageCapacity", "csistoragecapacities", true,
         true, NULL, "storage.k8s.io/CSIStorageCapacity", csistorage_capacity),
    KIND(VOLUMEATTACHMENT, "storage.k8s.io", "VolumeAttachment", "volumeattachments", false, true,
         NULL, "storage.k8s.io/VolumeAttachment", volume_attachment),
    KIND(PODDISRUPTIONBUDGET, "policy", "PodDisruptionBudget", "poddisruptionbudgets", true, true,
         NULL, "policy/PodDisruptionBudget", pod_disruption_budget),
    KIND(PRIORITYCLASS, "scheduling.k8s.io", "PriorityClass", "priorityclasses", false, false, NULL,
         "scheduling.k8s.io/PriorityClass", priority_class),
    KIND(RESOURCECLAIM, "resource.k8s.io", "ResourceClaim", "resourceclaims", true, true, NULL,
         "resource.k8s.io/ResourceClaim", resource_claim),
    KIND(RESOURCECLAIMTEMPLATE, "resource.k8s.io", "ResourceClaimTemplate",
         "resourceclaimtemplates", true, false, NULL, "resource.k8s.io/ResourceClaimTemplate",
         resource_claim_template),
    KIND(RESOURCESLICE, "resource.k8s.io", "ResourceSlice", "resourceslices", false, true, NULL,
         "resource.k8s.io/ResourceSlice", resource_slice),
    KIND(DEVICECLASS, "resource.k8s.io", "DeviceClass", "deviceclasses", false, true, NULL,
         "resource.k8s.io/DeviceClass", device_class),
    [BH_KIND_PODGROUP] = PODGROUP("v1alpha2", pod_group, &pod_group_v1beta1),
    /* Of plugin Coscheduling, and read only for it. */
    [BH_KIND_COSCHEDULING_PODGROUP] = {BH_KIND_COSCHEDULING_PODGROUP, "scheduling.x-k8s.io",
                                       "v1alpha1", "PodGroup", "podgroups", true, false, NULL,
                                       "podgroups.v1alpha1.scheduling.x-k8s.io",
                                       &k8s__coscheduling_pod_group__descriptor, NULL},
};

const struct bh_kind_info *bh_kind_find(const char *api_version, const char *kind_name)
{
    const char *slash = strchr(api_version, '/');
    size_t n_group = slash ? (size_t)(slash - api_version) : 0;
    const char *version = slash ? slash + 1 : api_version;

    for (size_t i = 0; i < BH_KIND_COUNT; i++)
        for (const struct bh_kind_info *k = &bh_kinds[i]; k; k = k->other)
            if (bh_streq(k->kind_name, kind_name) && bh_streq(k->version, version) &&
                strlen(k->group) == n_group && memcmp(k->group, api_version, n_group) == 0)
                return k;
    return NULL;
}

void bh_kind_path(const struct bh_kind_info *k, const char *ns, char *out, size_t n)
{
    snprintf(out, n, "/%s%s/%s%s%s/%s", *k->group ? "apis/" : "api", k->group, k->version,
             ns ? "/namespaces/" : "", ns ? ns : "", k->plural);
}

const K8s__ObjectMeta *bh_object_meta(const ProtobufCMessage *m)
{
    const ProtobufCFieldDescriptor *f = &m->descriptor->fields[0];

    if (m->descriptor->n_fields == 0 || f->id != 1 ||
        f->descriptor != &k8s__object_meta__descriptor)
        return NULL;
    return *(const K8s__ObjectMeta *const *)((const char *)m + f->offset);
}
