/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/noderesourcetopologymatch/nrt.h - what the files of this folder share
 *
 * Amounts are as the host gives them: cpu in milli, everything else in whole units.
 */
#ifndef NRT_H
#define NRT_H

#include "berth/plugin.h"

#define NRT_ZONES   64u /* NUMA ids are 0 to 63 */
#define NRT_ABSENT  INT64_C(-1)
#define NRT_WEIGHTS 32u
#define NRT_FAR     255 /* ACPI's SLIT: an unknown distance */

enum nrt_strategy { NRT_LEAST_ALLOCATED, NRT_MOST_ALLOCATED, NRT_BALANCED, NRT_LEAST_NODES };
enum nrt_qos { NRT_BEST_EFFORT, NRT_BURSTABLE, NRT_GUARANTEED };

struct nrt_amount {
    berth_sym name;
    int64_t value;
};
struct nrt_zone {
    uint32_t id, n;
    struct nrt_amount *amount; /* of each resource that the zone lists: what is available */
    uint8_t known[NRT_ZONES];  /* is there a distance to the NUMA node of this id? */
    int64_t cost[NRT_ZONES];
};
struct nrt_topology { /* what one object says */
    int single, pod_scope;
    int64_t max_zones;
    uint32_t n;
    struct nrt_zone zone[]; /* of NUMA nodes, in the object's order */
};

struct nrt_pod; /* the pod at hand, see pod.c */
struct nrt_seen;
struct nrt_reserved;
struct nrt_instance {
    struct berth_home *home;
    berth_sym cpu, memory, storage;
    /* ---- arguments ---- */
    enum nrt_strategy strategy;
    int discard_reserved;
    uint32_t n_weights;
    struct nrt_amount weight[NRT_WEIGHTS];
    /* ---- topology.c: what was read last of each node's object ---- */
    struct nrt_seen *seen;
    uint64_t n_seen, cap_seen;
    /* ---- reserved.c: pods on their way to a node ---- */
    struct nrt_reserved *reserved;
    uint64_t n_reserved, cap_reserved, epoch;
    int turned_away; /* a pod was rejected because of a reservation, since the last wake() */
    /* Room for one callback's copies of amounts. */
    struct nrt_amount *scratch;
    uint64_t cap_scratch;
};

extern const struct berth_host *nrt_host;

static inline int nrt_is(struct berth_str s, const char *text)
{
    uint64_t n = 0;

    while (text[n])
        n++;
    for (uint64_t i = 0; i < n && i < s.n; i++)
        if (s.p[i] != text[i])
            return 0;
    return s.n == n;
}

/* ---- topology.c ---- */
/* What the node's object says; NULL: there is none, or no memory. Valid until the next call. */
const struct nrt_topology *nrt_topology(struct nrt_instance *in, struct berth_call *c,
                                        berth_sym node);
void nrt_topology_fini(struct nrt_instance *in);

/* ---- pod.c ---- */
struct nrt_request { /* of one container, or of the pod as a whole */
    uint32_t kind;   /* BERTH_CONTAINER... */
    uint32_t n;
    struct nrt_amount amount[]; /* what it names */
};
struct nrt_pod {
    enum nrt_qos qos;
    int non_native; /* some container names a resource that is not Kubernetes' own */
    uint32_t n;     /* init containers first */
    const struct nrt_request **one; /* of each container */
    const struct nrt_request *all;  /* the higher of init containers and the sum of the others */
};
/* NULL: no memory. In memory of the callback. */
const struct nrt_pod *nrt_pod(struct nrt_instance *in, struct berth_call *c);
/* Resources that must belong to a NUMA node: cpu, memory, huge pages. */
int nrt_is_affine(const struct nrt_instance *in, berth_sym resource);
/* Those that may belong to the node as a whole: storage, devices. */
int nrt_is_host_level(const struct nrt_instance *in, berth_sym resource);

/* ---- zones: what the callbacks work on ---- */
struct nrt_zones { /* a copy of a topology, from which may be subtracted */
    const struct nrt_topology *t;
    struct nrt_amount *amount[NRT_ZONES];
};
/* 0: no memory. In the instance's scratch. */
int nrt_zones(struct nrt_instance *in, const struct nrt_topology *t, struct nrt_zones *ret);
/* NULL: the zone does not list it. */
int64_t *nrt_available(const struct nrt_zones *z, uint32_t i, berth_sym resource);
/* Is it enough? Those of affine resources that are not exclusive always are. */
int nrt_suits(const struct nrt_instance *in, enum nrt_qos qos, berth_sym resource, int64_t wanted,
              int64_t available);

/* ---- filter.c, scores.c, least.c ---- */
int32_t nrt_filter(void *self, struct berth_call *c, const struct berth_node *node,
                   struct berth_why *why);
int32_t nrt_score(void *self, struct berth_call *c, const struct berth_node *node, int64_t *ret,
                  struct berth_why *why);
int64_t nrt_least_nodes(const struct nrt_instance *in, const struct nrt_pod *pod,
                        struct nrt_zones *z);

/* ---- reserved.c ---- */
int nrt_is_reserved(const struct nrt_instance *in, berth_sym node);
uint64_t nrt_epoch(void *self, struct berth_call *c);
int32_t nrt_reserve(void *self, struct berth_call *c, berth_sym node, struct berth_why *why);
void nrt_unreserve(void *self, struct berth_call *c, berth_sym node);
#endif
