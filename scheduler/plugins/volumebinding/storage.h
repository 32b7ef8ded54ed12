/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/volumebinding/storage.h - claims, volumes and classes: which belongs to which
 *
 * Shared by the four volume plugins. Messages are borrowed from the object store until its next
 * change; an absent metadata or spec reads as an empty one.
 *
 * Upstream: component-helpers/storage/{volume,ephemeral},
 * pkg/scheduler/framework/plugins/volumebinding.
 */
#ifndef BH_STORAGE_H
#define BH_STORAGE_H

#include "common/k8s/quantity.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/framework/plugin.h"

#define BH_NO_PROVISIONER  "kubernetes.io/no-provisioner"
#define BH_SELECTED_NODE   "volume.kubernetes.io/selected-node"
#define BH_BOUND_BY_BINDER "pv.kubernetes.io/bound-by-controller"

const K8s__PersistentVolumeClaim *bh_find_claim(const struct bh_objects *o, const char *ns,
                                                const char *name);
const K8s__PersistentVolume *bh_find_volume(const struct bh_objects *o, const char *name);
const K8s__StorageClass *bh_find_class(const struct bh_objects *o, const char *name);
const K8s__CSINode *bh_find_csi_node(const struct bh_objects *o, const char *node);

/* NULL when the key is absent. */
const char *bh_meta_label(const K8s__ObjectMeta *m, const char *key);
const char *bh_meta_annotation(const K8s__ObjectMeta *m, const char *key);
/* Sets the annotation of m, whose list is not written to: the new one is in a. */
void bh_annotate(struct bh_arena *a, K8s__ObjectMeta *m, const char *key, const char *value);

/* "" when there is none; the beta annotation wins even when it is empty. */
const char *bh_claim_class(const K8s__PersistentVolumeClaim *c);
const char *bh_volume_class(const K8s__PersistentVolume *v);
const char *bh_claim_volume_name(const K8s__PersistentVolumeClaim *c); /* "" = none */
bool bh_claim_is_bound(const K8s__PersistentVolumeClaim *c);
/* The volume is reserved for the claim, by name and, if it says so, uid. */
bool bh_volume_is_for(const K8s__PersistentVolume *v, const K8s__PersistentVolumeClaim *c);
/* spec.resources.requests.storage; false = absent, 0. */
bool bh_claim_size(const K8s__PersistentVolumeClaim *c, bh_nano *ret);
bh_nano bh_volume_size(const K8s__PersistentVolume *v);
/* What the driver still has for a volume; false: it does not say. */
bool bh_capacity_limit(const K8s__CSIStorageCapacity *s, bh_nano *ret);
/* The driver tells how much it has, and the scheduler looks at it. */
static inline bool bh_driver_tells_capacity(const K8s__CSIDriver *d)
{
    return d->spec && d->spec->has_storagecapacity && d->spec->storagecapacity;
}
/* The most volumes of the driver that the node can attach; of duplicates the last counts. false: no
 * limit, *ret = 0. */
bool bh_attach_limit(const K8s__CSINode *n, const char *driver, int32_t *ret);
/* A waiting claim; *ret_no_mode: the class has no binding mode, which is an error. */
bool bh_claim_waits(const struct bh_objects *o, const K8s__PersistentVolumeClaim *c,
                    bool *ret_no_mode);

/* ---- a pod's claims ---- */
static inline bool bh_uses_claim(const struct bh_volume *v)
{
    return v->type == BH_VOL_CLAIM || v->type == BH_VOL_EPHEMERAL;
}
static inline const struct bh_volume *bh_shape_volumes(const struct bh_shape_rec *s)
{
    return bh_rec_at(s, s->volumes, struct bh_volume);
}
bool bh_shape_uses_claims(const struct bh_shape_rec *s, bool ephemeral_too);
/* Name of the claim behind v, which uses one; "" when the pod does not name it. */
const char *bh_claim_name(struct bh_arena *a, const struct bh_symtab *tab,
                          const struct bh_pod_rec *pod, const struct bh_volume *v);
/* The claim of v, which uses one; another pod's is an error. NULL: there is none, which is an error
 * when the pod is new. */
const struct bh_status *bh_claim_of(struct bh_call *c, const char *plugin,
                                    const struct bh_pod_rec *pod, const struct bh_volume *v,
                                    bool is_new, const K8s__PersistentVolumeClaim **ret);
/* The pod controls the object, as it does the claim of an ephemeral volume. */
bool bh_is_controlled_by(const K8s__ObjectMeta *m, const struct bh_pod_rec *pod);

/* ---- texts ---- */
const char *bh_quoted(struct bh_arena *a, const char *s); /* Go's %q */
const char *bh_not_found(struct bh_arena *a, const char *resource,
                         const char *name); /* x "y" not found */
const char *bh_not_owned(struct bh_arena *a, const K8s__PersistentVolumeClaim *c,
                         const struct bh_pod_rec *pod);

/* ---- fast path ---- */
/* Volume plugins have nothing to say about pods without volumes that matter. */
static inline bool bh_volumes_idle(struct bh_call *c)
{
    return !c->pod->shape->volumes.n;
}
#endif
