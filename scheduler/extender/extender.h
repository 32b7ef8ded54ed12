/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/extender/extender.h - HTTP extenders: programs of the operator that take part in a
 * decision over HTTP (filter, prioritize, preempt) or write the binding themselves (bind)
 *
 * Requests are JSON in upstream's schema over kept connections, one pool an extender. The first
 * three verbs are asked in the middle of a scheduling cycle: the call returns when the reply, an
 * error or the extender's httpTimeout is there, and while it waits `waiting` is called every
 * BH_EXT_WAITING_MS, so that the process goes on living (heartbeats, probes, signals). Bind is
 * asynchronous: the owner calls bh_ext_serve() every turn and `done` comes from there.
 *
 * An extender that hangs costs its timeout and nothing else: after BH_EXT_TRIES timeouts in a row
 * it is not asked for 1 s, 2 s, 4 s ... 30 s and its last error stands. A reply is at most
 * BH_EXT_REPLY_MAX bytes; redirects are followed as Go's client follows those of a POST, ten at
 * most, but only to the same scheme, host and port.
 *
 * Errors of extenders are texts (NULL = it went well), as users read them in conditions and events:
 * at most BH_EXT_TEXT_MAX bytes of what an extender says, control characters replaced.
 *
 * Threads: one owner. bh_ext_busy() tells that a call waits: nothing else may be asked then.
 * Memory: replies live in x's arena until the next bh_ext_begin().
 * Upstream: pkg/scheduler/extender.go, kube-scheduler/extender/v1/types.go; differences: README.md.
 */
#ifndef BH_EXTENDER_H
#define BH_EXTENDER_H

#include "common/base/arena.h"
#include "common/data/json.h"
#include "common/k8s/record.h"
#include "scheduler/config/config.h"

#define BH_EXT_MAX        64u /* extenders: one bit each */
#define BH_EXT_REPLY_MAX  ((size_t)64 << 20)
#define BH_EXT_TEXT_MAX   256u
#define BH_EXT_WAITING_MS 20u
#define BH_EXT_TRIES      3u
#define BH_EXT_BINDS      32u /* requests to bind on the wire of one extender; more wait */

struct bh_ext;
struct bh_metrics;
struct K8s__Pod;
enum bh_ext_verb { BH_EXT_FILTER, BH_EXT_PRIORITIZE, BH_EXT_PREEMPT, BH_EXT_BIND, BH_EXT_VERBS };

/* *ret NULL: none are configured. -EINVAL with upstream's text ("couldn't build extenders: ...").
 * waiting returns false to give up: what is asked for ends with an error at once. May be NULL. */
int bh_ext_new(const struct bh_sched_config *c, bool (*waiting)(void *arg), void *arg,
               struct bh_ext **ret, struct bh_err *err);
/* Cancels what is under way; no callback comes after it. NULL allowed. */
void bh_ext_free(struct bh_ext *x);
/* berth_extender_* */
void bh_ext_set_metrics(struct bh_ext *x, struct bh_metrics *m);
void bh_ext_serve(struct bh_ext *x);   /* connections and binds go on; never blocks */
int bh_ext_fd(const struct bh_ext *x); /* readable when bh_ext_serve() has something to do */
bool bh_ext_busy(const struct bh_ext *x);

/* Extenders by index, in the order in which they are asked. */
uint32_t bh_ext_count(const struct bh_ext *x);
const char *bh_ext_name(const struct bh_ext *x, uint32_t i); /* its urlPrefix, no password in it */
bool bh_ext_has(const struct bh_ext *x, uint32_t i, enum bh_ext_verb v);
bool bh_ext_ignorable(const struct bh_ext *x, uint32_t i);
int64_t bh_ext_weight(const struct bh_ext *x, uint32_t i);
uint64_t bh_ext_with(const struct bh_ext *x, unsigned verbs); /* extenders with any of 1 << verb */

/* ---- whole objects --------------------------------------------------------------------------- */
enum bh_ext_need {
    BH_EXT_NEED_PENDING = 1,  /* pods that wait */
    BH_EXT_NEED_NODES = 2,    /* an extender without nodeCacheCapable filters or prioritises */
    BH_EXT_NEED_ASSIGNED = 4, /* ... or has a say in preemption: pods on nodes */
};
unsigned bh_ext_needs(const struct bh_ext *x);
/* The newest object, bare protobuf message; copied. NULL: it is gone. */
void bh_ext_put_node(struct bh_ext *x, const char *name, const void *object, size_t n);
void bh_ext_put_pod(struct bh_ext *x, struct bh_str uid, const void *object, size_t n);
/* The object as an API server packs it (bh_pb_fill), made once a version. NULL: it is not known.
 * Until the next change of it. Only with config->whole_objects. */
const void *bh_ext_whole_node(struct bh_ext *x, const char *name, size_t *ret_n);
const void *bh_ext_whole_pod(struct bh_ext *x, struct bh_str uid, size_t *ret_n);
bool bh_ext_knows_node(const struct bh_ext *x, const char *name);
/* Everything is told anew: what is not put between the two is dropped. */
void bh_ext_objects_begin(struct bh_ext *x);
void bh_ext_objects_end(struct bh_ext *x);

/* Bits of the interested extenders: managedResources is empty, or one of them is among the requests
 * or limits of a container. A pod whose object is not known is judged by its shape's requests. */
uint64_t bh_ext_interest(const struct bh_ext *x, struct bh_str uid,
                         const struct bh_shape_rec *shape, const struct bh_symtab *tab);

/* ---- a cycle --------------------------------------------------------------------------------- */
struct bh_ext_pod {
    struct bh_str namespace_, name, uid;
};
struct bh_ext_node {
    const char *name;
    const struct bh_json *object; /* an extender's own copy; NULL = the cluster's */
};
/* Forgets the replies of the cycle before. */
void bh_ext_begin(struct bh_ext *x);

struct bh_ext_failed {
    const char *node, *reason;
    bool unresolvable;
};
struct bh_ext_filtered {
    struct bh_ext_node *nodes; /* what passed, in the extender's order */
    uint32_t n;
    bool copies; /* they are the extender's objects (`object` set), not the cluster's nodes */
    struct bh_ext_failed *failed;
    uint32_t n_failed;
};
/* Asks extender i, which has the verb. NULL, or its error; ret is untouched then. */
const char *bh_ext_filter(struct bh_ext *x, uint32_t i, const struct bh_ext_pod *pod,
                          const struct bh_ext_node *nodes, uint32_t n, struct bh_ext_filtered *ret);

struct bh_ext_host {
    const char *host;
    int64_t score;
};
struct bh_ext_scores {
    const char *error; /* NULL: the list is what it said */
    struct bh_ext_host *hosts;
    uint32_t n;
};
/* Asks every extender of the set, which have the verb, at the same time. ret: by index, only those
 * of the set are written. */
void bh_ext_prioritize(struct bh_ext *x, uint64_t set, const struct bh_ext_pod *pod,
                       const struct bh_ext_node *nodes, uint32_t n,
                       struct bh_ext_scores ret[BH_EXT_MAX]);

struct bh_ext_victim {
    struct bh_str namespace_, name, uid;
};
struct bh_ext_victims { /* on one node */
    const char *node;
    struct bh_ext_victim *pods; /* replies: only uid */
    uint32_t n_pods;
    int64_t violations;
};
/* v: sorted by node name, each once; so is the reply. Whether node and pods exist is for the caller
 * to check (bh_ext_no_node, bh_ext_no_victim give the texts). */
const char *bh_ext_preempt(struct bh_ext *x, uint32_t i, const struct bh_ext_pod *pod,
                           const struct bh_ext_victims *v, uint32_t n,
                           struct bh_ext_victims **ret_v, uint32_t *ret_n);
const char *bh_ext_no_victim(struct bh_ext *x, uint32_t i, struct bh_str uid, const char *node);
/* A reply that makes no sense to the caller: counted, and logged now and then. */
void bh_ext_complain(struct bh_ext *x, uint32_t i, enum bh_ext_verb v, const char *error);

/* ---- bind ------------------------------------------------------------------------------------ */
enum bh_ext_bound {
    BH_EXT_BOUND,
    BH_EXT_BIND_FAILED, /* error says why */
    BH_EXT_NOT_BOUND    /* every binder that failed is ignorable: the Bind plugins bind */
};
/* Is there a binder among the interested? */
bool bh_ext_binds(const struct bh_ext *x, uint64_t interested);
/* Called once for each bind, with what its caller gave, and only from bh_ext_serve(): a bind that
 * ends while a decision waits is told after it. error lives during the call. */
typedef void bh_ext_done_fn(void *arg, uint64_t id, enum bh_ext_bound how, const char *error);
void bh_ext_bind(struct bh_ext *x, uint64_t interested, const struct bh_ext_pod *pod,
                 const char *node, bh_ext_done_fn *done, void *arg, uint64_t id);
#endif
