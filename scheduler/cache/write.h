/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/write.h - what has to be written at the API server for a pod
 *
 * Reserve chooses it (reservations.h), PreBind may add to it, PostFilter and Bind may ask for it, a
 * binder writes it; the daemon gets it from bh_engine_prebind_work(), bh_engine_undo_work(),
 * bh_engine_bind() and struct bh_decision.
 *
 * A plugin's own write is a patch. The scheduler holds no credentials, so it is a request: the binder
 * has the last word on which resources (its --plugin-writes), on the form (binder/patches.h), and on
 * whether the object still is the one that was meant. Whoever asks may be asked again, after a
 * restart or when an answer is lost, and a write may be repeated: what is there already is done.
 * Upstream: PreBind of VolumeBinding and DynamicResources; Binding.
 */
#ifndef BH_WRITE_H
#define BH_WRITE_H

#include "common/k8s/kinds.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

enum bh_write_what {
    /* PersistentVolume: spec.claimRef and, if object has it, the annotation
     * pv.kubernetes.io/bound-by-controller. */
    BH_WRITE_VOLUME_CLAIM,
    /* PersistentVolumeClaim: the annotation volume.kubernetes.io/selected-node. */
    BH_WRITE_SELECTED_NODE,
    /* ResourceClaim: metadata.finalizers in a write of its own, if it is not there yet; then
     * status.allocation and status.reservedFor. */
    BH_WRITE_ALLOCATION,
    /* ResourceClaim that is allocated already: status.reservedFor. */
    BH_WRITE_RESERVATION,
    /* ResourceClaim for extended resources: to be created, the server makes the name of
     * metadata.generateName; then as ALLOCATION; then pod_status with that name into the pod. */
    BH_WRITE_NEW_CLAIM,
    /* Of PostFilter. ResourceClaim: status without allocation, reservedFor and devices. */
    BH_WRITE_DEALLOCATION,
    /* Of PostFilter, or undone. ResourceClaim for extended resources: without our finalizer, then
     * deleted. */
    BH_WRITE_DELETE_CLAIM,
    /* Undone. ResourceClaim: the pod out of status.reservedFor; the allocation stays. */
    BH_WRITE_UNRESERVATION,
    /* A plugin's own: `patch`. Its kind and object are not looked at. */
    BH_WRITE_PATCH
};
struct bh_patch {
    const char *api_version, *resource; /* "apps/v1", "deployments" */
    const char *subresource;            /* "status", or NULL */
    bool json;                          /* a list of operations (RFC 6902); else a merge patch */
    const char *body;                   /* JSON */
};
struct bh_write {
    enum bh_write_what what;
    enum bh_kind kind;
    /* Of the object as it was when the decision was taken: another version means conflict. A PATCH
     * needs uid or version, unless it is JSON with a test of its own. */
    const char *namespace_, *name, *uid, *resource_version;
    /* The whole object as it shall be (K8s__PersistentVolume ...). A new allocation comes without
     * allocationTimestamp: the time of writing goes there. */
    const ProtobufCMessage *object;
    const K8s__PodExtendedResourceClaimStatus *pod_status; /* NEW_CLAIM; without the name */
    const struct bh_patch *patch;                          /* PATCH */
    const char *plugin;                                    /* PATCH: who asks for it; static */
};
struct bh_bind_order {
    const char *plugin; /* whose order it is; the framework says */
    /* NULL: a Binding. Else this PATCH, whose effect is that the pod gets its node: the watch has to
     * show it there, or the pod is looked at and decided anew (BH_BOUND_UNSEEN_NS). */
    const struct bh_write *write;
};
#endif
