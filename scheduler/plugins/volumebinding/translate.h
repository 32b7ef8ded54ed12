/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/volumebinding/translate.h - volumes of in-tree plugins as their CSI drivers see
 * them
 *
 * Upstream: csi-translation-lib; only what decides about placement: driver, handle, topology.
 */
#ifndef BH_TRANSLATE_H
#define BH_TRANSLATE_H

#include "scheduler/plugins/volumebinding/terms.h"

enum bh_in_tree {
    BH_IN_TREE_NONE,
    BH_IN_TREE_EBS,
    BH_IN_TREE_GCE_PD,
    BH_IN_TREE_AZURE_DISK,
    BH_IN_TREE_CINDER,
    BH_IN_TREE_PORTWORX,
    BH_IN_TREE_AZURE_FILE,
    BH_IN_TREE_VSPHERE,
    BH_IN_TREE_COUNT
};
struct bh_in_tree_info {
    const char *name, *driver;
    const char *zone_key; /* NULL: topology is not translated */
    bool migrates;        /* the scheduler ever takes it for migrated */
};
extern const struct bh_in_tree_info bh_in_tree_info[BH_IN_TREE_COUNT];

enum bh_in_tree bh_in_tree_of(const K8s__PersistentVolume *v);
enum bh_in_tree bh_in_tree_inline(const struct bh_volume *v);
enum bh_in_tree bh_in_tree_named(const char *plugin); /* "kubernetes.io/gce-pd" */
/* The node's CSINode (may be NULL) lists the plugin as migrated. */
bool bh_migrated_on(const K8s__CSINode *n, enum bh_in_tree p);

/* Volume handles; NULL with *ret_error set when there is no translation. Only plugins that
 * migrate. */
const char *bh_csi_handle(struct bh_arena *a, const K8s__PersistentVolume *v, enum bh_in_tree p,
                          const char **ret_error);
const char *bh_csi_inline_handle(struct bh_arena *a, const struct bh_symtab *tab,
                                 const struct bh_volume *v, const char **ret_error);
/* Node affinity after the translation. */
struct bh_terms bh_csi_affinity(struct bh_arena *a, struct bh_symtab *tab,
                                const K8s__PersistentVolume *v, enum bh_in_tree p);

/* Pieces of a label value between "__", empty ones too. trim: without blanks around them. */
char **bh_split_zones(struct bh_arena *a, const char *label, bool trim, size_t *ret_n);
#endif
