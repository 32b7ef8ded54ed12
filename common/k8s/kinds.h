/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/kinds.h - the API kinds Berth reads, in one table
 *
 * Objects in memory are the protobuf-c structs generated from proto/kubernetes/kubernetes.proto
 * (package k8s: K8s__Pod, K8s__Node, ...): upstream's field numbers and JSON names, trimmed to what
 * Berth reads and writes. One type per kind whatever the wire format was (codec.h).
 *
 * Besides, plugins read objects of kinds that are told at run time, custom resources mostly: numbers
 * from BH_KIND_CUSTOM on. All of those have one type, K8s__CustomObject: metadata, and the whole as JSON.
 */
#ifndef BH_KINDS_H
#define BH_KINDS_H

#include "common/base/base.h"
#include <protobuf-c/protobuf-c.h>

enum bh_kind {
    BH_KIND_NODE,
    BH_KIND_POD,
    BH_KIND_NAMESPACE,
    BH_KIND_SERVICE,
    BH_KIND_REPLICATIONCONTROLLER,
    BH_KIND_REPLICASET,
    BH_KIND_STATEFULSET,
    BH_KIND_PERSISTENTVOLUME,
    BH_KIND_PERSISTENTVOLUMECLAIM,
    BH_KIND_STORAGECLASS,
    BH_KIND_CSINODE,
    BH_KIND_CSIDRIVER,
    BH_KIND_CSISTORAGECAPACITY,
    BH_KIND_VOLUMEATTACHMENT,
    BH_KIND_PODDISRUPTIONBUDGET,
    BH_KIND_PRIORITYCLASS,
    BH_KIND_RESOURCECLAIM,
    BH_KIND_RESOURCECLAIMTEMPLATE,
    BH_KIND_RESOURCESLICE,
    BH_KIND_DEVICECLASS,
    BH_KIND_PODGROUP,
    BH_KIND_COSCHEDULING_PODGROUP, /* scheduling.x-k8s.io: a custom resource, in JSON only */
    BH_KIND_COUNT,
    BH_KIND_CUSTOM = BH_KIND_COUNT /* and the numbers behind it */
};
#define BH_CUSTOM_KINDS 16u
#define BH_KIND_ALL     (BH_KIND_COUNT + BH_CUSTOM_KINDS)
/* Kinds that only plugins read: the custom ones and, behind them, Coscheduling's PodGroup. Without one of
 * them pods that do not need it are scheduled. */
#define BH_PLUGIN_KINDS (BH_CUSTOM_KINDS + 1)
static inline bool bh_kind_is_plugins(enum bh_kind k)
{
    return k >= BH_KIND_CUSTOM || k == BH_KIND_COSCHEDULING_PODGROUP;
}
static inline unsigned bh_plugin_kind_index(enum bh_kind k) /* of such a kind */
{
    return k >= BH_KIND_CUSTOM ? (unsigned)k - BH_KIND_CUSTOM : BH_CUSTOM_KINDS;
}

struct bh_kind_info {
    enum bh_kind kind;
    const char *group;     /* "" for core */
    const char *version;   /* "v1" */
    const char *kind_name; /* "Pod" */
    const char *plural;    /* "pods" */
    bool namespaced;
    bool watched;                    /* the watcher lists and watches it */
    const char *list_field_selector; /* pods: "status.phase!=Succeeded,status.phase!=Failed" */
    const char
        *event_resource; /* upstream's cluster event resource, e.g. "storage.k8s.io/CSINode" */
    const ProtobufCMessageDescriptor *desc;
    const struct bh_kind_info *other; /* a version that a server may have instead; NULL = none */
};
extern const struct bh_kind_info bh_kinds[BH_KIND_COUNT];
/* group of "apps/v1", or one of its other versions; NULL when Berth does not know the kind. */
const struct bh_kind_info *bh_kind_find(const char *api_version, const char *kind_name);
/* Writes "/api/v1/pods" or "/apis/apps/v1/replicasets"; ns NULL = all namespaces. */
void bh_kind_path(const struct bh_kind_info *k, const char *ns, char *out, size_t n);

/* Of a group, a version and a resource ("berth.dev", "v1alpha1", "maintenancewindows") as they stand
 * in a request's path. What is wrong with them, NULL = nothing. */
const char *bh_kind_custom_why(const char *group, const char *version, const char *resource);
/* Describes such a kind; texts are on the heap and belong to ret. */
void bh_kind_custom(struct bh_kind_info *ret, unsigned number, const char *group,
                    const char *version, const char *resource);
void bh_kind_custom_fini(struct bh_kind_info *k); /* also of one that was never filled */
/* The number that this process knows it by, from now on: the same each time. Any thread. -EINVAL: no
 * such names; -ENOSPC: more than BH_CUSTOM_KINDS. */
int bh_kind_declare(const char *group, const char *version, const char *resource, enum bh_kind *ret,
                    struct bh_err *err);
/* Of every kind, declared ones included; NULL: not declared. */
const struct bh_kind_info *bh_kind_of(unsigned kind);
/* A declared one ("berth.dev/v1alpha1", "maintenancewindows"); NULL: not declared. */
const struct bh_kind_info *bh_kind_declared(const char *api_version, const char *resource);
/* bh_kind_find(), or a declared one, for those who have manifests and no discovery: its plural is guessed
 * as upstream does (meta.UnsafeGuessKindToResource). */
const struct bh_kind_info *bh_kind_find_any(const char *api_version, const char *kind_name);

/* metadata of any kind's message (all have it as field 1); NULL when absent. */
struct K8s__ObjectMeta;
const struct K8s__ObjectMeta *bh_object_meta(const ProtobufCMessage *m);
#endif
