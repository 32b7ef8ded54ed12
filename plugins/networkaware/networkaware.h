/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/networkaware/networkaware.h - what the files of this folder share
 *
 * Names of workloads, regions and zones are symbols: pods and nodes that they are compared with have them
 * as labels. An absent label is the empty text (0), as upstream has it.
 */
#ifndef NETWORKAWARE_H
#define NETWORKAWARE_H

#include "berth/plugin.h"

#define NW_GROUPS     0u /* index in kinds: AppGroups */
#define NW_TOPOLOGIES 1u /* NetworkTopologies */

struct nw_dependency {
    berth_sym workload, on; /* pods of this workload talk to pods of that one */
    int64_t max_cost;
    uint64_t at; /* in the list of all */
};
struct nw_rank {
    berth_sym workload;
    int32_t index;
};
struct nw_group { /* what an AppGroup says */
    berth_sym name;
    int read, exists;
    uint64_t version; /* of all AppGroups, when it was read */
    uint64_t n_dependencies, n_ranks;
    struct nw_dependency *dependencies; /* by workload */
    /* By workload: those of status that upstream's search finds; where there are none, our own. */
    struct nw_rank *ranks;
    int looked;       /* sort.c: and there is nothing more to tell of it */
    const char *told; /* what the log was told of it last */
};

struct nw_cost { /* from a region or zone to another one */
    uint64_t pair, at;
    int64_t cost;
};
enum nw_level { NW_REGIONS, NW_ZONES, NW_LEVELS };
struct nw_topology { /* what the NetworkTopology says, of the weights that are used */
    int read, exists, has_weights;
    uint64_t version;
    struct {
        uint64_t n, cap;
        struct nw_cost *cost; /* by pair, each once */
    } level[NW_LEVELS];
    const char *told;
};

struct nw_instance {
    struct berth_home *home;
    berth_sym group_label, workload_label, region_label, zone_label;
    /* ---- arguments ---- */
    uint64_t n_namespaces;
    struct berth_str *namespaces;
    struct berth_str weights, topology_name;
    /* ---- group.c: AppGroups that were asked for, by the symbol of their name ---- */
    struct nw_group **groups;
    uint64_t n_groups, cap_groups;
    /* ---- topology.c ---- */
    struct nw_topology topology;
    char reason[512];
};

extern const struct berth_host *nw_host;

/* ---- objects.c: what both kinds need ---- */
const struct berth_value *nw_get(const struct berth_value *v, const char *name);
/* The object of the name in the first namespace that has one; NULL. */
const struct berth_value *nw_find(const struct nw_instance *in, struct berth_call *c, uint32_t kind,
                                  struct berth_str name);
/* A list's elements by a text in each of them. */
struct nw_named {
    struct berth_str name;
    uint64_t at; /* in the list */
    const struct berth_value *value;
};
/* *ret: free() it; NULL: none, or no memory. sorted: elements of one name stay in the list's order. */
uint64_t nw_list(const struct berth_value *list, const char *path, int sorted,
                 struct nw_named **ret);
/* Upstream's binary search, in a list that may be in no order. NULL: it finds none. */
const struct nw_named *nw_search(const struct nw_named *a, uint64_t n, struct berth_str name);
/* One line in the log, unless it was the last one about the object. name: with kind and quotes around. */
void nw_tell(const struct nw_instance *in, const char **told, const char *kind,
             struct berth_str name, const char *what);

/* ---- group.c ---- */
/* NULL: no memory. Valid until the next call. */
struct nw_group *nw_group(struct nw_instance *in, struct berth_call *c, berth_sym name);
void nw_groups_fini(struct nw_instance *in);
/* A workload that depends on itself, in some steps; 0: none does, or no memory. */
berth_sym nw_circle(const struct nw_group *g);
/* The selector of a list's element. */
berth_sym nw_selector(const struct nw_instance *in, const struct berth_value *v);
/* Its place in the order; -1: it has none. */
int32_t nw_rank(const struct nw_group *g, berth_sym workload);

/* ---- order.c ---- */
/* Sets the ranks of a group whose dependencies are read, not by workload yet; none without dependencies,
 * or memory. */
void nw_make_order(struct nw_instance *in, struct nw_group *g, const struct berth_value *spec);

/* ---- topology.c ---- */
struct nw_topology *nw_topology(struct nw_instance *in, struct berth_call *c);
void nw_topology_fini(struct nw_instance *in);
/* 1 and *ret: what it costs from a node's own region or zone to another one of the kind. 0: unknown. */
int nw_between(const struct nw_topology *t, berth_sym region, berth_sym zone, berth_sym origin,
               berth_sym destination, int64_t *ret);

/* ---- overhead.c: NetworkOverhead ---- */
int32_t nw_idle(void *self, struct berth_call *c);
int32_t nw_hint(void *self, struct berth_call *c, const struct berth_change *change);
int32_t nw_pre_filter(void *self, struct berth_call *c, const berth_sym **names, uint64_t *n,
                      struct berth_why *why);
int32_t nw_filter(void *self, struct berth_call *c, const struct berth_node *node,
                  struct berth_why *why);
int32_t nw_filter_rows(void *self, struct berth_call *c, const uint32_t *rows, uint64_t n,
                       uint64_t *keep, struct berth_why *why);
int32_t nw_score(void *self, struct berth_call *c, const struct berth_node *node, int64_t *ret,
                 struct berth_why *why);
int32_t nw_score_rows(void *self, struct berth_call *c, const uint32_t *rows, uint64_t n,
                      int64_t *ret, struct berth_why *why);
int32_t nw_normalize(void *self, struct berth_call *c, int64_t *scores, uint64_t n,
                     struct berth_why *why);

/* ---- sort.c: TopologicalSort ---- */
int32_t nw_less(void *self, struct berth_call *c, const struct berth_queued *a,
                const struct berth_queued *b);
#endif
