/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/volumebinding/binder.h - which volumes a pod's claims would get on a node
 *
 * Everything that does not depend on the node is worked out once, when the pod is looked at first:
 * for every unbound claim the volumes that would do, smallest first, and where it could be
 * provisioned. Per node only label conditions are left. Nothing here is changed afterwards.
 *
 * Runs in:    the engine's thread.
 * Upstream:   pkg/scheduler/framework/plugins/volumebinding/binder.go,
 *             component-helpers/storage/volume (FindMatchingVolume); differences: of volumes of one
 *             size the smallest name is taken (upstream: whichever comes first).
 */
#ifndef BH_BINDER_H
#define BH_BINDER_H

#include "scheduler/cache/label_columns.h"
#include "scheduler/plugins/volumebinding/translate.h"
#include "scheduler/plugins/volumebinding/volumes.h"

struct bh_bound_claim {
    bool missing; /* its volume does not exist; the members below are unset then */
    struct bh_terms affinity;
    enum bh_in_tree in_tree; /* may be migrated on the node: then these hold */
    struct bh_terms csi_affinity;
    const char *csi_error;
};
struct bh_offer { /* a volume that fits a claim everywhere its affinity allows */
    const K8s__PersistentVolume *volume;
    bh_nano size;
    struct bh_terms affinity;
};
/* Where to look for a node's offers: most volumes name a few values of one label (a host, a
 * zone). */
struct bh_offer_place {
    bh_sym key, value;
    uint32_t at; /* index of offers[] */
};
struct bh_offer_index {
    const struct bh_offer_place *places; /* sorted by key, value, at */
    const bh_sym *keys;                  /* each once */
    const uint32_t *anywhere;            /* offers without a place, ascending */
    uint32_t n_places, n_keys, n_anywhere;
};
struct bh_waiting_claim {
    const K8s__PersistentVolumeClaim *claim;
    bh_nano size;
    const char *selected_node;                /* NULL: not yet */
    const char *match_error;                  /* its selector cannot be read */
    const struct bh_offer *reserved, *offers; /* made for it; any other, smallest first */
    uint32_t n_reserved, n_offers;
    struct bh_offer_index index; /* of offers */
    bool can_provision;          /* its class has a provisioner */
    struct bh_terms topologies;
    bool needs_capacity; /* one of these has to match */
    const struct bh_terms *capacities;
    uint32_t n_capacities;
};
struct bh_pod_claims {
    const struct bh_bound_claim *bound;
    const struct bh_waiting_claim *waiting; /* with a selected node first, then by size */
    uint32_t n_bound, n_waiting, n_selected;
};

struct bh_offer_index bh_offers_index(struct bh_arena *a, const struct bh_offer *offers,
                                      uint32_t n);

/* NULL, or why the pod cannot be placed. *ret: NULL when the pod uses no claims. Everything is in
 * c->arena. */
const struct bh_status *bh_claims_read(struct bh_call *c, const struct bh_pod_claims **ret);
const struct bh_status *bh_claims_filter(struct bh_call *c, const struct bh_pod_claims *p,
                                         const struct bh_node_rec *node);
/* What the filter would say of all nodes. */
enum bh_overlay_answer bh_claims_ask(struct bh_call *c, uint32_t *rows, uint32_t *n);
/* The filter for many rows at once, where no volume is chosen by node and nothing can fail. */
bool bh_claims_can_rows(const struct bh_pod_claims *p);
uint32_t bh_claims_rows(struct bh_call *c, const struct bh_pod_claims *p, uint32_t *rows,
                        uint32_t n);
/* The same as the filter, and tells by waiting claim the volume it gets on the node; NULL: it is
 * provisioned. */
const struct bh_status *bh_claims_choose(struct bh_call *c, const struct bh_pod_claims *p,
                                         const struct bh_node_rec *node,
                                         const struct bh_offer *const **ret);
/* Nothing is left to bind or to provision for the pod. */
bool bh_claims_all_bound(struct bh_call *c);

/* What a volume (NULL: missing) means to the nodes that are to use it. */
void bh_claims_read_bound(struct bh_call *c, const K8s__PersistentVolume *v,
                          struct bh_bound_claim *out);
/* Its affinity, translated where the plugin was migrated. *ret_error: it cannot be translated. */
bool bh_bound_reaches(struct bh_call *c, const struct bh_bound_claim *b,
                      const struct bh_node_rec *node, const char **ret_error);

/* ---- assume.c ---- */
struct bh_binder { /* the plugin's instance */
    int64_t timeout_ns;
    struct bh_objects *objects;
    struct bh_reservations *reserved;
    struct bh_label_columns *labels; /* what is remembered from cycle to cycle */
    struct bh_volumes *volumes;
};
const struct bh_status *bh_claims_reserve(struct bh_call *c, bh_sym node);
void bh_claims_unreserve(struct bh_call *c, bh_sym node);
const struct bh_status *bh_claims_check(struct bh_call *c, bh_sym node, int64_t since_ns);
#endif
