/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/kinds.c - the API kinds Berth reads
 *
 * Upstream: pkg/scheduler/eventhandlers.go (which kinds), k8s.io/kube-scheduler/framework/events.go
 * (resource names of cluster events).
 */
#include "common/k8s/kinds.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
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

/* ---- kinds that plugins read ----------------------------------------------------------------- */

#define NAME_MAX_BYTES 253u

static struct {
    pthread_mutex_t lock;
    atomic_uint n; /* grows only, behind what it counts */
    struct bh_kind_info kind[BH_CUSTOM_KINDS];
} declared = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Small letters, digits and -; with dots: words of that, one dot between. */
static bool is_dns(const char *s, bool dots)
{
    size_t n = strlen(s);

    for (size_t i = 0; i < n; i++) {
        bool word = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= '0' && s[i] <= '9');
        bool inside = i && i + 1 < n && s[i - 1] != '.' && s[i + 1] != '.';
        if (!word && !(inside && (s[i] == '-' || (dots && s[i] == '.'))))
            return false;
    }
    return n && n <= NAME_MAX_BYTES;
}

const char *bh_kind_custom_why(const char *group, const char *version, const char *resource)
{
    if (*group && !is_dns(group, true))
        return "group: a DNS name in small letters is needed, or nothing for the core group";
    if (!is_dns(version, false))
        return "version: a name like v1 is needed";
    if (!is_dns(resource, false))
        return "resource: the plural of the kind in small letters is needed";
    return NULL;
}

void bh_kind_custom(struct bh_kind_info *ret, unsigned number, const char *group,
                    const char *version, const char *resource)
{
    *ret = (struct bh_kind_info){
        .kind = (enum bh_kind)(BH_KIND_CUSTOM + number),
        .group = bh_strdup(group),
        .version = bh_strdup(version),
        .kind_name = bh_asprintf("%s%s%s", resource, *group ? "." : "", group),
        .plural = bh_strdup(resource),
        /* As upstream names events of such kinds. */
        .event_resource = bh_asprintf("%s.%s%s%s", resource, version, *group ? "." : "", group),
        .desc = &k8s__custom_object__descriptor};
}

void bh_kind_custom_fini(struct bh_kind_info *k)
{
    free((void *)(uintptr_t)k->group);
    free((void *)(uintptr_t)k->version);
    free((void *)(uintptr_t)k->kind_name);
    free((void *)(uintptr_t)k->plural);
    free((void *)(uintptr_t)k->event_resource);
}

int bh_kind_declare(const char *group, const char *version, const char *resource, enum bh_kind *ret,
                    struct bh_err *err)
{
    const char *why = bh_kind_custom_why(group, version, resource);
    unsigned i = 0;
    int rc = 0;

    if (why)
        return bh_err_set(err, -EINVAL, "%s", why);
    pthread_mutex_lock(&declared.lock);
    for (; i < declared.n; i++)
        if (bh_streq(declared.kind[i].group, group) &&
            bh_streq(declared.kind[i].version, version) &&
            bh_streq(declared.kind[i].plural, resource))
            break;
    if (i == BH_CUSTOM_KINDS) {
        rc = bh_err_set(err, -ENOSPC, "plugins of one process read at most %u kinds of objects",
                        BH_CUSTOM_KINDS);
    } else if (i == declared.n) {
        bh_kind_custom(&declared.kind[i], i, group, version, resource);
        declared.n++;
    }
    pthread_mutex_unlock(&declared.lock);
    *ret = (enum bh_kind)(BH_KIND_CUSTOM + i);
    return rc;
}

const struct bh_kind_info *bh_kind_of(unsigned kind)
{
    if (kind < BH_KIND_COUNT)
        return &bh_kinds[kind];
    return kind - BH_KIND_CUSTOM < declared.n ? &declared.kind[kind - BH_KIND_CUSTOM] : NULL;
}

const struct bh_kind_info *bh_kind_declared(const char *api_version, const char *resource)
{
    const unsigned n = declared.n;
    char version[2 * NAME_MAX_BYTES + 2];

    for (unsigned i = 0; i < n; i++) {
        const struct bh_kind_info *k = &declared.kind[i];
        snprintf(version, sizeof version, "%s%s%s", k->group, *k->group ? "/" : "", k->version);
        if (bh_streq(k->plural, resource) && bh_streq(version, api_version))
            return k;
    }
    return NULL;
}

const struct bh_kind_info *bh_kind_find_any(const char *api_version, const char *kind_name)
{
    const struct bh_kind_info *k = bh_kind_find(api_version, kind_name);
    char plural[NAME_MAX_BYTES + 4];
    size_t n = strlen(kind_name);

    if (k || !n || n > NAME_MAX_BYTES)
        return k;
    for (size_t i = 0; i < n; i++)
        plural[i] = (char)tolower((unsigned char)kind_name[i]);
    bool y = plural[n - 1] == 'y';
    snprintf(plural + n - y, sizeof plural - n + y, "%s",
             y                      ? "ies"
             : plural[n - 1] == 's' ? "es"
                                    : "s");
    return bh_kind_declared(api_version, plural);
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
