/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/nodevolumelimits/attachments.h - which volumes a pod or a node has attached
 *
 * A volume counts once on a node however many pods use it, so it is known by one symbol for
 * "<driver>/<handle>". What a claim stands for is remembered until a claim, volume or class
 * changes, what a node has attached until a VolumeAttachment or volume changes.
 *
 * Owns:     the memory of what was looked up; grows with the claims on nodes.
 * Runs in:  the engine's thread.
 * Upstream: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go.
 */
#ifndef BH_ATTACHMENTS_H
#define BH_ATTACHMENTS_H

#include "common/base/map.h"
#include "scheduler/plugins/volumebinding/translate.h"

struct bh_attachable {
    bh_sym volume, driver; /* BH_SYM_NONE: nothing that is counted */
    bool migrated;         /* only on nodes with a CSINode */
};
struct bh_attachables {
    struct bh_attachable *list; /* room for all */
    uint32_t n;
};
struct bh_attachment { /* of a node, by its symbol */
    bh_sym node, volume, driver;
};
struct bh_claim_memory {
    struct bh_umap claims; /* (namespace, name) -> index of known[] */
    struct bh_attachable *known;
    uint32_t n_known, cap_known;
    uint64_t claims_version;

    struct bh_attachment *attached; /* sorted by node, volume; each once */
    uint32_t n_attached;
    uint64_t attached_version;
    bool attached_read;
};
void bh_claim_memory_fini(struct bh_claim_memory *m);

/* What a claim, or a volume of an in-tree plugin that migrates, stands for. */
struct bh_attachable bh_attachable_of(struct bh_call *c, const K8s__PersistentVolumeClaim *claim);
const struct bh_status *bh_attachable_inline(struct bh_call *c, const struct bh_volume *v,
                                             struct bh_attachable *ret);
/* Sorted, each volume once. */
void bh_attachables_make_set(struct bh_attachables *s);
int64_t bh_attachables_by(const struct bh_attachables *s, bh_sym driver); /* how many */
bool bh_attachables_contain(const struct bh_attachables *set, bh_sym volume);
/* What an attachment of v (NULL: missing) by the driver stands for; BH_SYM_NONE: nothing. */
bh_sym bh_attached_volume(struct bh_call *c, bh_sym driver, const K8s__PersistentVolume *v);
/* Adds the pod's volumes to out. is_new: the pod is being scheduled, its claims have to exist.
 * has_csi: the node has a CSINode. NULL or the error that ends the pod's cycle (or rejects it). */
const struct bh_status *bh_attachables_of(struct bh_call *c, struct bh_claim_memory *m,
                                          const struct bh_pod_info *pod, bool has_csi, bool is_new,
                                          struct bh_attachables *out);
/* VolumeAttachments of the node. */
const struct bh_attachment *bh_attached_to(struct bh_call *c, struct bh_claim_memory *m,
                                           bh_sym node, uint32_t *ret_n);
#endif
