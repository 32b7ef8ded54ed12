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
/* cache: in the order of the texts in args.c; the first is the default. */
enum nrt_detect { NRT_DETECT_ALL, NRT_DETECT_NONE, NRT_DETECT_EXCLUSIVE };
enum nrt_method { NRT_METHOD_AUTODETECT, NRT_METHOD_ALL, NRT_METHOD_EXCLUSIVE };
enum nrt_scope { NRT_SCOPE_ALL, NRT_SCOPE_RESOURCES };

struct nrt_amount {
    berth_sym name;
    int64_t value;
};
struct nrt_zone {
    uint32_t id, n;
    struct nrt_amount *amount; /* of each resource that the zone lists: what is available */
    int64_t *allocatable;      /* and what may be at most */
    uint8_t known[NRT_ZONES];  /* is there a distance to the NUMA node of this id? */
    int64_t cost[NRT_ZONES];
};
struct nrt_topology { /* what one object says */
    int single, pod_scope;
    int64_t max_zones;
    uint32_t n;
    struct nrt_zone zone[]; /* of NUMA nodes, in the object's order */
};

#define NRT_VERSION 64u /* of a resourceVersion with its NUL; longer ones are not kept */

struct nrt_held { /* what is subtracted from every zone for one pod */
    uint64_t pod; /* nrt_pod_hash() */
    uint32_t n;
    struct nrt_amount amount[];
};
#define NRT_PLACED 16384 /* containers of one node, at most */
struct nrt_placed {
    uint64_t container; /* nrt_container_hash() */
    int zone;
};
struct nrt_seen { /* a node */
    berth_sym node;
    char version[NRT_VERSION];     /* of the object; "": it is read each time */
    struct nrt_topology *topology; /* what it said; NULL: there is none */
    /* ---- cache.c ---- */
    int stale; /* who is there is not known: no pod that it is about may come */
    int dirty; /* a pod was rejected, or it is stale: worth another look at the object */
    int again; /* since the last look something else has changed */
    int ahead; /* the object, which is another one, knows of pods that are not seen to run yet */
    char tried[NRT_VERSION]; /* whose object was looked at in vain */
    int awaits;              /* pods of others that the kubelet has not taken up yet */
    uint64_t foreign;        /* who of others' pods is there */
    uint32_t n_held, cap_held, n_sum, cap_sum;
    struct nrt_held **held;
    struct nrt_amount *sum; /* of what is held */
    /* ---- placement.c: in which zone each container is, by hash; none: it is not known ---- */
    uint32_t n_placed;
    struct nrt_placed *placed;
};

struct nrt_pod; /* the pod at hand, see pod.c */
struct nrt_reserved;
struct nrt_waker;
struct nrt_instance {
    struct berth_home *home;
    berth_sym cpu, memory, storage;
    /* ---- arguments ---- */
    enum nrt_strategy strategy;
    int discard_reserved, cached;
    int preempts;   /* preemptionMode is Enabled, and there is a cache */
    int64_t period; /* ns, of looking for changes that have nothing to do with pods */
    enum nrt_detect detect;
    enum nrt_method method;
    enum nrt_scope scope;
    uint32_t n_weights;
    struct nrt_amount weight[NRT_WEIGHTS];
    /* ---- topology.c: what was read last of each node's object ---- */
    struct nrt_seen *seen;
    uint64_t n_seen, cap_seen;
    /* ---- reserved.c: pods on their way to a node ---- */
    struct nrt_reserved *reserved;
    uint64_t n_reserved, cap_reserved, epoch;
    int turned_away; /* a pod was rejected because of a reservation, since the last wake() */
    /* ---- cache.c ---- */
    berth_sym own;                     /* schedulerName of the profile */
    uint64_t followed, objects, tried; /* nodes, objects, and those that were compared last */
    int64_t now, next_scan;
    int again, ahead; /* of some node */
    struct nrt_waker *waker;
    berth_sym *dirty; /* nodes */
    uint32_t n_dirty, cap_dirty;
    uint64_t *hash; /* room for the pods of one node */
    uint32_t cap_hash;
    /* Room for one callback's copies of amounts. */
    struct nrt_amount *scratch;
    uint64_t cap_scratch;
};

extern const struct berth_host *nrt_host;

/* As Go's, which wrap around. */
static inline int64_t nrt_plus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
static inline int64_t nrt_times(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}
/* 0 where Go ends with a panic. */
static inline int64_t nrt_over(int64_t a, int64_t b)
{
    return b == 0 ? 0 : b == -1 ? nrt_times(a, -1) : a / b;
}

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
/* The node, if something is known of its topology. With the cache: what was taken last; else what its
 * object says now. NULL: there is none, or no memory. Valid until the next call. */
const struct nrt_seen *nrt_topology(struct nrt_instance *in, struct berth_call *c, berth_sym node);
void nrt_topology_fini(struct nrt_instance *in);
/* What is known of a node, or an empty one; NULL: no memory, or not there. Valid until the next nrt_entry(). */
struct nrt_seen *nrt_entry(struct nrt_instance *in, berth_sym node);
struct nrt_seen *nrt_known(const struct nrt_instance *in, berth_sym node);
/* Forgets nodes that are not there any more, once they are as many as those that are. In epoch(). */
void nrt_forget_gone(struct nrt_instance *in, struct berth_call *c);
/* The node's object, or NULL. */
const struct berth_value *nrt_object(struct nrt_instance *in, struct berth_call *c, berth_sym node);
struct berth_str nrt_version(const struct berth_value *object);
void nrt_keep_version(char to[NRT_VERSION], struct berth_str version);
/* 0: no memory; what was known stays. */
int nrt_take(struct nrt_instance *in, struct nrt_seen *s, const struct berth_value *object);
/* Does it configure the kubelet otherwise than it did? */
int nrt_is_reconfigured(const struct nrt_topology *t, const struct berth_value *object);
/* The number of "node-7"; NRT_ZONES: it has none, or one too large. */
uint32_t nrt_zone_id(struct berth_str name);
/* Of the i-th zone, which lists the resource. */
int64_t nrt_allocatable(const struct nrt_topology *t, uint32_t i, berth_sym resource);
/* Of a list of {name, value}: the first of this name; p NULL: there is none. */
struct berth_str nrt_attribute(const struct berth_value *list, const char *name);

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
/* What the pod as a whole wants of the i-th resource, and its name; i from 0 on; NRT_ABSENT: nothing. The
 * name is 0 behind the last. */
int64_t nrt_effective(const struct nrt_instance *in, struct berth_call *c,
                      const struct berth_pod *pod, uint32_t i, berth_sym *name);
/* The i-th of the resources that a pod may name; 0 behind the last. */
berth_sym nrt_resource_at(const struct nrt_instance *in, struct berth_call *c,
                          const struct berth_pod *pod, uint32_t i);
int nrt_is_guaranteed(const struct nrt_instance *in, struct berth_call *c,
                      const struct berth_pod *pod);
/* Is so much of a resource for nobody else? Whole cores, memory and huge pages of guaranteed pods, devices
 * that the object names. */
int nrt_amount_is_exclusive(const struct nrt_instance *in, int guaranteed, berth_sym resource,
                            int64_t amount, const struct nrt_topology *t);
/* Does the container stay, and hold something like that? */
int nrt_container_is_exclusive(const struct nrt_instance *in, struct berth_call *c,
                               const struct berth_pod *pod, uint32_t i, int guaranteed,
                               const struct nrt_topology *t);
/* Some container of the pod? */
int nrt_is_exclusive(const struct nrt_instance *in, struct berth_call *c,
                     const struct berth_pod *pod, const struct nrt_topology *t);
/* NULL: no memory. In memory of the callback. */
const struct nrt_pod *nrt_pod(struct nrt_instance *in, struct berth_call *c);
/* What PreFilter found; where a profile leaves that out, found anew. NULL: no memory. */
const struct nrt_pod *nrt_pod_at_hand(struct nrt_instance *in, struct berth_call *c);
/* Resources that must belong to a NUMA node: cpu, memory, huge pages. */
int nrt_is_affine(const struct nrt_instance *in, berth_sym resource);
/* Those that may belong to the node as a whole: storage, devices. */
int nrt_is_host_level(const struct nrt_instance *in, berth_sym resource);

/* ---- zones: what the callbacks work on ---- */
struct nrt_zones { /* a copy of a topology, from which may be subtracted */
    const struct nrt_topology *t;
    struct nrt_amount *amount[NRT_ZONES];
};
/* Without what is held. 0: no memory. In the instance's scratch. */
int nrt_zones(struct nrt_instance *in, const struct nrt_seen *s, struct nrt_zones *ret);
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

/* ---- preempt.c ---- */
struct nrt_victim;
struct nrt_state { /* of a decision, from PreFilter on */
    const struct nrt_pod *pod;
    uint32_t n, cap;
    const struct nrt_victim *victim[]; /* pods that are off the node */
};
/* NULL: no memory. */
struct nrt_state *nrt_new_state(struct berth_call *c, const struct nrt_pod *pod);
void *nrt_clone_state(void *self, struct berth_call *c, const void *state);
int32_t nrt_change_pod(void *self, struct berth_call *c, const struct berth_pod *pod,
                       const struct berth_node *node, int32_t by, struct berth_why *why);
/* nrt_zones(), with what those that are off the node gave back if it is known where they are. SUCCESS; else
 * what Filter is to say, and why. */
int32_t nrt_zones_without(struct nrt_instance *in, const struct nrt_seen *s,
                          const struct nrt_state *st, struct nrt_zones *ret, struct berth_why *why);

/* ---- placement.c ---- */
/* Reads where the node's containers are, after nrt_take() and with preemptionMode Enabled; what the object
 * says of other containers than those that run there is nothing. */
void nrt_place(struct nrt_instance *in, struct berth_call *c, struct nrt_seen *s,
               const struct berth_node *node, const struct berth_value *object);
void nrt_forget_placement(struct nrt_seen *s);
/* A container's zone; -1: it is not known. */
int nrt_zone_of(const struct nrt_seen *s, uint64_t container);

/* ---- fingerprint.c ---- */
uint64_t nrt_pod_hash(struct berth_call *c, const struct berth_pod *pod);
uint64_t nrt_container_hash(const struct nrt_instance *in, struct berth_call *c,
                            const struct berth_pod *pod, uint32_t i);
/* Does the object know of the pods that run on the node, and of no others? 1; 0; -1: it does not say. */
int nrt_knows_pods(struct nrt_instance *in, struct berth_call *c, const struct berth_node *node,
                   const struct nrt_topology *t, const struct berth_value *object);

/* ---- cache.c ---- */
/* At most so much of one resource is held for one pod, so that sums of thousands stay in 64 bits. */
#define NRT_HELD_MAX (INT64_MAX >> 14)
/* Catches up with nodes, pods and objects. */
void nrt_follow(struct nrt_instance *in, struct berth_call *c);
/* A pod was rejected by the node. */
void nrt_mark(struct nrt_instance *in, const struct nrt_seen *s);
/* 0: no memory. */
int nrt_hold(struct nrt_instance *in, struct berth_call *c, struct nrt_seen *s,
             const struct berth_pod *pod);
void nrt_let_go(struct nrt_seen *s, uint64_t pod);
void nrt_free_held(struct nrt_seen *s);

/* ---- wake.c ---- */
/* NULL: no thread. */
struct nrt_waker *nrt_waker_new(struct berth_home *home, int64_t period);
void nrt_waker_free(struct nrt_waker *w);
/* Rejected pods are worth another attempt within a period. */
void nrt_waker_ahead(struct nrt_waker *w);

/* ---- reserved.c ---- */
int nrt_is_reserved(const struct nrt_instance *in, berth_sym node);
uint64_t nrt_epoch(void *self, struct berth_call *c);
int32_t nrt_reserve(void *self, struct berth_call *c, berth_sym node, struct berth_why *why);
void nrt_unreserve(void *self, struct berth_call *c, berth_sym node);
void nrt_post_bind(void *self, struct berth_call *c, berth_sym node);
#endif
