/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/cache.h - the engine's picture of the cluster: nodes, their pods, assumed pods
 *
 * Changes come in one by one and are only recorded; bh_cache_sync() at the start of a cycle makes
 * the columns current, freezes image states of the nodes that changed, and appends their rows to
 * the change log. That is upstream's "update the snapshot": a node that did not change keeps the
 * image node counts of its last refresh, however stale they are.
 *
 * Owns:       node infos, pod entries (with copies of the records), shapes, nominations, columns.
 * Invariants: a row is given to a node for as long as its Node object is known; a freed row is
 *             reused. Every pod of a live or ghost node holds one reference to its shape. A ghost
 *             (pods without Node object) has no row and is invisible to scheduling. log: a reader
 *             at position p has seen every change before p. Positions grow for ever; the ring keeps
 *             the last log_cap of them.
 * Runs in:    the engine's thread.
 * Upstream:   pkg/scheduler/backend/cache, backend/queue/nominator.go; differences: exact sums; a
 *             pod that moves between nodes is moved (upstream exits).
 */
#ifndef BH_CACHE_H
#define BH_CACHE_H

#include "common/base/map.h"
#include "scheduler/cache/annotations.h"
#include "scheduler/cache/columns.h"
#include "scheduler/cache/groups.h"
#include "scheduler/cache/pool.h"
#include "scheduler/cache/shapes.h"

/* Symbols that plugins compare with. */
struct bh_known_syms {
    bh_sym any_ip;        /* 0.0.0.0 */
    bh_sym metadata_name; /* metadata.name */
    bh_sym unschedulable; /* node.kubernetes.io/unschedulable */
    bh_sym region, region_beta, zone, zone_beta;
};
struct bh_cache_pod {
    struct bh_pod_info info;
    struct bh_node_info *node;
    struct bh_cache_pod *next; /* same bucket */
    uint64_t hash;
    uint32_t mark; /* rebuild generation that saw it last */
    bool assumed;
};
struct bh_nomination {
    struct bh_pod_info info; /* record copied, shape referenced */
    bh_sym node;
    struct bh_nomination *next_on_node; /* in order of nomination */
    struct bh_nomination **at;          /* where the pod's handle has it, or NULL */
    bool kept; /* for a member whose group's victims leave: until the group is tried again */
};
struct bh_image_total { /* one image name over the whole cluster */
    int64_t size_bytes; /* of the first node that reported it */
    uint32_t node_count;
};
struct bh_zone { /* node order: nodes of one zone in order of appearance */
    bh_sym region, zone;
    uint32_t *rows;
    uint32_t n, cap;
};
/* What a change of a row can be about; the larger ones cover the smaller ones. */
enum bh_row_change {
    /* A pod's record was replaced by one of the same shape and flags: an assumed pod was confirmed,
     * its times became known. Sums, shapes and ports on the node are what they were. */
    BH_ROW_SAME_PODS = 1,
    BH_ROW_PODS = 2, /* pods came or went */
    BH_ROW_NODE = 3  /* and all else: the node's object or its image states, nominations */
};
struct bh_cache {
    struct bh_symtab *tab; /* borrowed */
    struct bh_known_syms sym;
    struct bh_shape_table shapes;
    struct bh_pool pool;

    struct bh_umap by_name; /* node name -> struct bh_node_info *, ghosts too */
    struct bh_node_info **rows;
    uint8_t *row_changed; /* since the last sync: enum bh_row_change, 0 = no */
    uint32_t cap_rows, n_nodes;
    uint32_t *free_rows, n_free, cap_free;
    uint32_t *changed, n_changed, cap_changed; /* rows since the last sync */
    uint64_t membership;                       /* changes whenever a node appears or goes */
    struct bh_columns cols;

    uint32_t *log;               /* ring of rows */
    uint8_t *log_what;           /* beside it: enum bh_row_change */
    uint64_t log_begin, log_end; /* positions the ring still holds */
    uint32_t log_cap;

    struct bh_cache_pod **pod_bucket;
    uint32_t n_pod_buckets, n_pods, n_assumed;
    uint32_t n_affinity_pods;                                          /* on nodes with a row */
    uint32_t *affinity_shapes, n_affinity_shapes, cap_affinity_shapes; /* theirs, on any node */
    uint32_t rebuild_mark;

    /* Somebody looked at when pods were started: from now on that is a change of the node's pods.
     * Answers that were kept before did not depend on it. */
    bool starts_count;
    struct bh_umap claim_users; /* (namespace, claim name) -> pod volumes on nodes with a row */
    /* Node state as a snapshot gives it that is built from the objects for each cycle (upstream's
     * NewSnapshot), not as the long-lived cache keeps it: every node's own image sizes, current
     * image counts, ports of all pods. */
    bool rebuilt;
    uint64_t images_version,
        images_synced;         /* rebuilt: changes of images, and those seen by a sync */
    struct bh_umap images;     /* name -> struct bh_image_total * */
    struct bh_map nominations; /* uid -> struct bh_nomination * */
    struct bh_umap nominated;  /* node name -> first struct bh_nomination * */
    struct bh_groups groups;   /* of pods: those of the queue and those on nodes */
    struct bh_groups labelled; /* the same by Coscheduling's label */

    bool keep_order; /* only few need upstream's node order: see order.c */
    struct bh_zone *zones;
    uint32_t n_zones, cap_zones;
    uint32_t *order, n_order;
    uint64_t order_membership;
    struct bh_annotations annotations; /* see bh_cache_put_annotations() */
};

void bh_cache_init(struct bh_cache *c, struct bh_symtab *tab, bool keep_order);
void bh_cache_fini(struct bh_cache *c);

void bh_cache_put_node(struct bh_cache *c, const struct bh_node_rec *n);
void bh_cache_del_node(struct bh_cache *c, bh_sym name);
/* Of a node (key: its name) or a pod (its uid); meta NULL: it is gone. True: they are others than before.
 * Cheap when nobody wants them. */
bool bh_cache_put_annotations(struct bh_cache *c, enum bh_annotations_of of, struct bh_str key,
                              const struct K8s__ObjectMeta *meta);
/* NULL for unknown names and ghosts. */
const struct bh_node_info *bh_cache_node(const struct bh_cache *c, bh_sym name);

/* rec->node decides where; a copy of rec is kept and one reference to shape taken. */
void bh_cache_put_pod(struct bh_cache *c, const struct bh_pod_rec *rec, uint32_t shape);
int bh_cache_assume(struct bh_cache *c, const struct bh_pod_rec *rec, uint32_t shape, bh_sym node);
int bh_cache_forget(struct bh_cache *c, struct bh_str uid);
/* The same for a pod that was assumed only to see whether others would fit beside it, and may not have
 * fitted itself: the node is what it was before. */
void bh_cache_take_back(struct bh_cache *c, struct bh_str uid);
void bh_cache_del_pod(struct bh_cache *c, struct bh_str uid);
/* A pod on a node is off it until it is laid there again, which is before the end of the decision: for
 * a trial without it. It stays known otherwise, and a member of its group. */
void bh_cache_lift(struct bh_cache *c, struct bh_pod_info *pod);
void bh_cache_lay(struct bh_cache *c, struct bh_pod_info *pod);
struct bh_cache_pod *bh_cache_pod(const struct bh_cache *c, struct bh_str uid);
void bh_cache_rebuild_begin(struct bh_cache *c);
void bh_cache_rebuild_end(struct bh_cache *c);

/* *at points to the nomination as long as it lasts; at may be NULL. */
void bh_cache_nominate(struct bh_cache *c, const struct bh_pod_rec *rec, uint32_t shape,
                       bh_sym node, struct bh_nomination **at);
void bh_cache_unnominate(struct bh_cache *c, struct bh_str uid);
/* The pod's nomination becomes one that only keeps the node's resources. */
void bh_cache_keep_nomination(struct bh_cache *c, struct bh_str uid);
/* Ends it if it is such a one: its node, or BH_SYM_NONE. */
bh_sym bh_cache_end_kept(struct bh_cache *c, struct bh_str uid);
const struct bh_nomination *bh_cache_nominations(const struct bh_cache *c, bh_sym node);
/* Node the uid is nominated to, BH_SYM_NONE = none. */
bh_sym bh_cache_nominated_node(const struct bh_cache *c, struct bh_str uid);

/* Some pod on a node with a row has a persistentVolumeClaim volume of this name. */
bool bh_cache_claim_in_use(const struct bh_cache *c, bh_sym namespace_, bh_sym claim);

/* Makes columns, image states and log current. Calls malloc only when something grew. */
void bh_cache_sync(struct bh_cache *c);
/* Rows of the live nodes in upstream's order (zones in turn); needs keep_order. */
const uint32_t *bh_cache_order(struct bh_cache *c, uint32_t *ret_n);
/* The order of the names of live nodes, byte by byte. */
static inline int bh_row_name_cmp(const struct bh_cache *c, uint32_t a, uint32_t b)
{
    return strcmp(bh_sym_text(c->tab, c->rows[a]->name), bh_sym_text(c->tab, c->rows[b]->name));
}
void bh_cache_sort_by_name(const struct bh_cache *c, uint32_t *rows, uint32_t n);
/* A node's zone as upstream's GetZoneKey takes it: the beta labels before the stable ones.
 * BH_SYM_NONE = none; a node without either has no zone. */
void bh_cache_zone(const struct bh_cache *c, const struct bh_node_rec *n, bh_sym *region,
                   bh_sym *zone);

/* Something of the node that is not in its record has changed: what is kept of it is worked out anew. */
void bh_cache_node_differs(struct bh_cache *c, bh_sym node);
#endif
