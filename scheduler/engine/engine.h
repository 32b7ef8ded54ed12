/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine/engine.h - one engine, every door: the daemon, `berth simulate`, the conformance
 * runner, the simulator and the benchmarks decide through these calls and no others
 *
 * The engine owns the symbol table, the cache (nodes, pods on nodes, assumed pods, columns), the
 * interned shapes, the nominator and one framework per profile. It takes decisions; it does not
 * queue pods, send messages or look at a clock (times come in through arguments), so a run is
 * reproducible from its inputs and its seed.
 *
 * Threads: one owner thread for everything here.
 * Memory: a decision lives in the engine's cycle arena until the next bh_engine_schedule or
 * bh_engine_preempt call. A steady cycle (known shape, no reasons wanted) allocates nothing.
 * Upstream: pkg/scheduler/schedule_one.go, backend/cache; differences: see README.md.
 */
#ifndef BH_ENGINE_H
#define BH_ENGINE_H

#include "common/k8s/record.h"
#include "scheduler/cache/groups.h"
#include "scheduler/cache/write.h"
#include "scheduler/config/config.h"
#include "scheduler/extender/extender.h"
#include "scheduler/framework/asks.h"
#include "scheduler/framework/event.h"
#include "scheduler/framework/observe.h"
#include "scheduler/framework/pod.h"
#include "scheduler/framework/status.h"
#include "scheduler/framework/waiting.h"

struct bh_engine;
enum bh_tie_break { BH_TIE_RANDOM /* seeded */, BH_TIE_FIRST /* smallest node name */ };
struct bh_engine_options {
    const struct bh_sched_config *config; /* NULL = defaults; borrowed for the engine's life */
    enum bh_tie_break tie_break;
    uint64_t seed;
    bool verify;    /* run reference path and fast path for every pod, abort on a difference */
    bool reference; /* reference path only (the slow one); for tests */
    /* Node state as a snapshot made of the objects for each decision gives it, not as upstream's
     * long-lived cache keeps it (stale image counts, ports freed by the first of two users): what
     * recordings of single decisions were made with. */
    bool rebuilt_snapshot;
    /* As 1.37: who is to go for a group is found with the members where they fitted first, and not by
     * placing them anew for every candidate. */
    bool group_stays;
    /* Called every few milliseconds while a decision waits for an extender, or takes long (a group);
     * must not call the engine. false: give up, nothing is decided. May be NULL. */
    bool (*waiting)(void *arg);
    void *waiting_arg;
    const struct bh_engine_observer
        *observer; /* framework/observe.h; borrowed; NULL: nothing is timed */
};
int bh_engine_new(const struct bh_engine_options *o, struct bh_engine **ret_e, struct bh_err *err);
void bh_engine_free(struct bh_engine *e);
struct bh_symtab *bh_engine_symtab(struct bh_engine *e);
bool bh_engine_responsible(const struct bh_engine *e,
                           const char *scheduler_name); /* a profile exists */

/* ---- cluster state (records with symbols of bh_engine_symtab) -------------------------------- */
bh_shape_id bh_engine_shape(struct bh_engine *e,
                            const struct bh_shape_rec *s); /* takes one reference */
void bh_engine_shape_unref(struct bh_engine *e, bh_shape_id id);
const struct bh_shape_rec *bh_engine_shape_rec(const struct bh_engine *e, bh_shape_id id);

void bh_engine_put_node(struct bh_engine *e, const struct bh_node_rec *n);
void bh_engine_del_node(struct bh_engine *e, bh_sym name);
/* What the cache holds, NULL when absent; valid until the next change of that object. */
const struct bh_node_rec *bh_engine_find_node(const struct bh_engine *e, bh_sym name);
const struct bh_node_info *bh_engine_node_info(const struct bh_engine *e, bh_sym name);
const struct bh_pod_rec *bh_engine_find_pod(const struct bh_engine *e, struct bh_str uid,
                                            bh_shape_id *ret_shape);
/* The engine copies the record and takes a shape reference of its own.
 * Assigned pod (pod->node set) by uid: add, update or move. An assumed pod of this uid is
 * confirmed. Pods on a node not (yet) known are kept aside until the node appears. */
void bh_engine_put_pod(struct bh_engine *e, const struct bh_pod_rec *pod, bh_shape_id shape);
void bh_engine_del_pod(struct bh_engine *e, struct bh_str uid);
/* Rebuild from a snapshot: everything not put again between begin and end is dropped at end, except
 * assumed pods. */
void bh_engine_rebuild_begin(struct bh_engine *e);
void bh_engine_rebuild_end(struct bh_engine *e);
uint32_t bh_engine_node_count(const struct bh_engine *e);
/* Visits every node of the cluster, in the order of their coming. */
void bh_engine_each_node(const struct bh_engine *e, void (*fn)(void *arg, bh_sym name), void *arg);
uint32_t bh_engine_pod_count(const struct bh_engine *e); /* on nodes, assumed ones included */
uint32_t bh_engine_assumed_count(const struct bh_engine *e);

/* Other kinds (services, volumes, claims ...): the newest object of each, message in engine memory.
 * object: bare protobuf message (codec.h); NULL deletes. */
int bh_engine_put_object(struct bh_engine *e, enum bh_kind kind, const char *ns, const char *name,
                         const void *object, size_t n, struct bh_err *err);

/* The same, and tells in ev (resource OBJECT, kind and action set) what the change is about. */
int bh_engine_put_object_event(struct bh_engine *e, struct bh_cluster_event *ev, const char *ns,
                               const char *name, const void *object, size_t n, struct bh_err *err);

/* A new feed of objects: what is not put again between begin and end is dropped at end. */
void bh_engine_objects_begin(struct bh_engine *e);
void bh_engine_objects_end(struct bh_engine *e);

/* Kinds that plugins of some profile read (bh_kind_declare); returns how many. */
size_t bh_engine_kinds(const struct bh_engine *e, const struct bh_kind_info *ret[BH_CUSTOM_KINDS]);
/* Whether all objects of such a kind are known; they are taken to be until somebody says otherwise.
 * Profiles whose plugins read a kind that is not known decide nothing. why: NULL = not yet. */
void bh_engine_kind_state(struct bh_engine *e, enum bh_kind kind, bool known, const char *why);

/* ---- extenders ----------------------------------------------------------------------------------
 * The configuration's HTTP extenders are asked inside of bh_engine_schedule(), which waits for them
 * (extender/extender.h). They want to see API objects as a whole, which records are not: */
unsigned bh_engine_raw_needs(const struct bh_engine *e); /* enum bh_ext_need; 0 = none at all */
/* The whole object, a bare protobuf message (codec.h), copied; NULL: it is gone. kind NODE: key is
 * its name; POD, pending or on a node: its uid. Cheap when it is not needed. Objects put between
 * bh_engine_objects_begin and _end stay, the others go. Plugins that read annotations get them from here:
 * true when these have changed. */
bool bh_engine_put_raw(struct bh_engine *e, enum bh_kind kind, const char *key, const void *object,
                       size_t n);
/* The same for a K8s__Node or a K8s__Pod with its uid; m NULL: what is known of it stays. */
bool bh_engine_put_raw_message(struct bh_engine *e, enum bh_kind kind, const ProtobufCMessage *m);
/* Every node's object is there, as far as one is needed: without it a decision fails. */
bool bh_engine_raw_complete(struct bh_engine *e);
/* An extender binds this pod, not the Bind plugins. done: see bh_ext_bind. */
bool bh_engine_extender_binds(const struct bh_engine *e, const struct bh_pending *p);
void bh_engine_extender_bind(struct bh_engine *e, const struct bh_pending *p, bh_sym node,
                             bh_ext_done_fn *done, void *arg, uint64_t id);
void bh_engine_extenders_serve(struct bh_engine *e);   /* every turn, and when fd is readable */
int bh_engine_extenders_fd(const struct bh_engine *e); /* -1: there are no extenders */
void bh_engine_extenders_metrics(struct bh_engine *e, struct bh_metrics *m);

/* ---- a pending pod --------------------------------------------------------------------------- */
/* PreEnqueue of the pod's profile: NULL = may enter the active queue; else the gating status (in
 * the cycle arena). */
const struct bh_status *bh_engine_pre_enqueue(struct bh_engine *e, const struct bh_pending *p);
/* Names of the plugins that the pod's profile runs at a point, in order; as many as fit. */
uint32_t bh_engine_plugins_at(const struct bh_engine *e, const struct bh_pending *p,
                              enum bh_point at, const char *names[], uint32_t max);

enum bh_decision_kind {
    BH_DECIDED,       /* node chosen */
    BH_NO_FIT,        /* FitError: see message; PostFilter was run */
    BH_DECISION_ERROR /* internal error or no nodes: message */
};
struct bh_node_verdict { /* one node that was considered and rejected */
    bh_sym node;
    const struct bh_status *status;
};
struct bh_plugin_score {
    const char *plugin;
    int64_t raw, normalized, weighted; /* weighted = normalized x weight */
    int32_t weight;
};
struct bh_node_score {
    bh_sym node;
    int64_t total;
    const struct bh_plugin_score
        *plugins; /* n_score_plugins of the decision; NULL unless explain */
};
struct bh_decision {
    enum bh_decision_kind kind;
    bh_sym node;                  /* DECIDED */
    uint32_t feasible, evaluated; /* counts, as upstream reports them */
    const char *reason;           /* condition reason: "Unschedulable" or "SchedulerError" */
    const char *message;     /* NO_FIT, ERROR: full text as upstream writes it into the condition */
    const char *fit_message; /* NO_FIT: without PostFilter's part */
    const char *post_filter_message;
    /* plugins that rejected (for queueing hints), names, in profile order */
    const char *const *unschedulable_plugins;
    uint32_t n_unschedulable_plugins;
    const char *const *pending_plugins;
    uint32_t n_pending_plugins;
    bool clear_nomination; /* Override "" */
    bh_sym nominated_node; /* preemption chose this node */
    const struct bh_victim *victims;
    uint32_t n_victims;
    uint32_t victims_violating;
    /* The chosen candidate; with BH_EXPLAIN also those that tie with it by upstream's rules. */
    const struct bh_preemption *preemptions;
    uint32_t n_preemptions;
    /* PostFilter wants these written: claims to deallocate or to delete, so that a later try may
     * succeed. In the cycle arena. */
    const struct bh_write *writes;
    uint32_t n_writes;
    /* ---- only with BH_EXPLAIN ---- */
    uint32_t n_nodes;                   /* in the cluster */
    const struct bh_status *absent;     /* nodes that PreFilter's NodeSubset left out, or NULL */
    const struct bh_status *pre_filter; /* PreFilter rejection, NULL otherwise */
    const bh_sym *pre_filter_nodes;     /* NodeSubset */
    uint32_t n_pre_filter_nodes;
    const char *const *pre_filter_plugins; /* that narrowed */
    uint32_t n_pre_filter_plugins;
    const struct bh_node_verdict *rejected; /* sorted by node name */
    uint32_t n_rejected;
    const struct bh_node_score
        *scores; /* feasible nodes sorted by name; totals 0 when not scored */
    uint32_t n_scores;
    bool scored; /* false when at most one node is feasible */
    uint32_t n_score_plugins;
    const bh_sym *best; /* highest total, sorted by name */
    uint32_t n_best;
    /* What PreFilter, PreScore and PostFilter plugins said, in the order of their calls, and the
     * Filter plugins that were not skipped. The PreFilter ones that were not called are missing. */
    const struct bh_plugin_note *pre_filters, *pre_scores, *post_filters;
    uint32_t n_pre_filters, n_pre_scores, n_post_filters;
    const char *const *filter_plugins;
    uint32_t n_filter_plugins;
};
enum bh_schedule_flags {
    BH_EXPLAIN = 1,       /* fill the lists above (slower: reference path) */
    BH_NO_PREEMPTION = 2, /* skip PostFilter */
    /* With BH_EXPLAIN: a real decision that is kept for people. Observed and counted as one, and
     * the lists come in no particular order (sorting them by name costs as much as deciding). */
    BH_RECORD = 4
};
/* One scheduling cycle up to the host: PreFilter, Filter, PostFilter or PreScore, Score. Changes
 * nothing. Returns the decision (never NULL). now_ns: unix time, for start times that are missing.
 */
const struct bh_decision *bh_engine_schedule(struct bh_engine *e, const struct bh_pending *p,
                                             unsigned flags, int64_t now_ns);

/* ---- pods that go together (group.c) -----------------------------------------------------------
 * Gate GenericWorkload. Who is a member is known from what is put, assumed, and said to wait. */
/* The queue has the pod, or has it no longer. */
void bh_engine_waits(struct bh_engine *e, const struct bh_pending *p, bool waits);
/* The pod's group and how far it is; NULL without a group, and with the gate off. Valid until a pod
 * comes or goes. */
struct bh_group *bh_engine_group_of(const struct bh_engine *e, const struct bh_pending *p);
/* The same of the group that plugin Coscheduling sees, which is scheduled pod by pod. */
struct bh_group *bh_engine_labelled_group_of(const struct bh_engine *e, const struct bh_pending *p);
struct bh_group_try { /* one member, in the order in which they are tried */
    struct bh_pending pod;
    /* Told the decision as it was taken, before the next; NULL: nobody. */
    void (*tried)(void *arg, struct bh_group_try *m, const struct bh_decision *d);
    void *arg;
    /* ---- the result ---- */
    bool decided;                /* false: one before it failed with an error */
    bh_sym node;                 /* where it would go; NONE: nowhere, decision says why */
    bool preempts;               /* there, once the decision's victims are gone */
    bool permitted;              /* with node: Permit said Success; false: Wait */
    const char *permit_message;  /* with node */
    bool assumed;                /* it is assumed and reserved there */
    struct bh_decision decision; /* without the lists of BH_EXPLAIN */
    bh_sym was_nominated;
    bh_sym kept;     /* where it fits once the group's victims are gone: bh_engine_keep_node() */
    bh_sym was_kept; /* the node that was kept for it until now */
};
struct bh_group_result {
    enum bh_code code;   /* SUCCESS, UNSCHEDULABLE, ERROR */
    const char *message; /* "" with Success */
    bool waiting;        /* with Unschedulable: for victims to leave */
    /* Gate WorkloadAwarePreemption: those that are to go for the group, from wherever they are. */
    const struct bh_victim *victims;
    uint32_t n_victims;
    /* Gate TopologyAwareWorkloadScheduling: where the group was tried, in this order. */
    const struct bh_placement_try {
        const char *name; /* of the topology domain; "" = all nodes */
        uint32_t nodes, placed;
        bool fits, waiting, chosen;
        int64_t score;    /* where more than one fits */
        const char *lack; /* what the first member without a node says; "" = all have one */
    } * placements;
    uint32_t n_placements;
};
/* Tries all of them on top of each other. With SUCCESS those that have a node and do not preempt are
 * left assumed and reserved; else all is as before. Results live until the next decision. */
void bh_engine_schedule_group(struct bh_engine *e, struct bh_group_try *v, uint32_t n,
                              unsigned flags, int64_t now_ns, struct bh_group_result *ret);
/* The decision that stands for a refusal by Reserve or Permit, or a failed assume. Texts are in a. */
void bh_decide_refused(struct bh_arena *a, const struct bh_status *s, struct bh_decision *ret);

/* Assume: the pod counts on the node from now on, before the API server knows. -EEXIST when the uid
 * is already in the cache. forget undoes it; -ENOENT when not assumed. A confirmed pod cannot be
 * forgotten. */
int bh_engine_assume(struct bh_engine *e, const struct bh_pending *p, bh_sym node);
int bh_engine_forget(struct bh_engine *e, struct bh_str uid);
bool bh_engine_is_assumed(const struct bh_engine *e, struct bh_str uid);
/* Both at once: bh_engine_find_pod() and whether it is assumed. */
struct bh_known_pod {
    const struct bh_pod_rec *rec; /* NULL: on no node, and the rest says nothing */
    bh_shape_id shape;
    bool assumed;
};
struct bh_known_pod bh_engine_known_pod(const struct bh_engine *e, struct bh_str uid);
/* Visits every assumed pod, in no particular order; fn may not change the engine. Walks all
 * pods. */
void bh_engine_each_assumed(const struct bh_engine *e, void (*fn)(void *arg, struct bh_str uid),
                            void *arg);
/* Reserve .. Permit of the profile after assume; Unreserve undoes (all plugins, reverse order). */
const struct bh_status *bh_engine_reserve(struct bh_engine *e, const struct bh_pending *p,
                                          bh_sym node);
void bh_engine_unreserve(struct bh_engine *e, const struct bh_pending *p, bh_sym node);
/* permit: Wait carries the timeout. It is asked for until the verdict is another one than
 * WAITS (framework/waiting.h), and is over then. */
const struct bh_status *bh_engine_permit(struct bh_engine *e, const struct bh_pending *p,
                                         bh_sym node, int64_t *ret_timeout_ns);
struct bh_waiting_pod *bh_engine_waiting(const struct bh_engine *e,
                                         struct bh_str uid); /* or NULL */
enum bh_permit_verdict bh_engine_permit_verdict(struct bh_engine *e, struct bh_waiting_pod *p,
                                                int64_t now_ns, const char **ret_plugin,
                                                const char **ret_message);
void bh_engine_permit_over(struct bh_engine *e,
                           struct bh_waiting_pod *p); /* frees it; NULL: does nothing */
/* Pods that plugins want tried next; each is told once. Returns how many. */
unsigned bh_engine_activations(struct bh_engine *e, void (*fn)(void *arg, struct bh_str uid),
                               void *arg);
/* Events about pods, another attempt for pods that a plugin rejected, and what bh_engine_tend() brought; each is
 * told once, and fn may not take decisions. Returns how many. */
unsigned bh_engine_asked(struct bh_engine *e, const struct bh_asked *fn, void *arg);
/* Asks the plugins that write about the cluster (struct bh_plugin, tend), each once, but for those whose objects are
 * not all known; not without nodes, nor while a decision waits for an extender. bh_engine_asked() has what they want written. */
void bh_engine_tend(struct bh_engine *e, int64_t now_ns);
/* Of the attempts those that a plugin wanted at a time, which has come; and when the next one will be
 * (INT64_MAX: none). */
unsigned bh_engine_wakes(struct bh_engine *e, int64_t now_ns,
                         void (*wake)(void *arg, const char *plugin), void *arg);
int64_t bh_engine_wakes_next(const struct bh_engine *e);
/* The time, for callbacks that are part of no decision (PreEnqueue, from Reserve on); without it that of
 * the last decision. */
void bh_engine_moment(struct bh_engine *e, int64_t now_ns);
/* Bind. NULL: a binder shall bind the pod as *ret says (valid until the next call for a pod); Skip:
 * no plugin does; anything else is the failure. ret->plugin: who was asked last. */
const struct bh_status *bh_engine_bind(struct bh_engine *e, const struct bh_pending *p, bh_sym node,
                                       struct bh_bind_order *ret);
/* false: no plugin wanted to know. */
bool bh_engine_post_bind(struct bh_engine *e, const struct bh_pending *p, const char *node);

/* ---- what has to be written before a pod may be bound -------------------------------------------
 * Reserve chooses volumes and devices for the pod's claims on the node and takes them: every later
 * cycle, of any profile, sees them taken, until unreserve gives them back or the API server shows a
 * newer version of the object. Nothing is written: what a binder has to write before it binds the
 * pod is the list below, empty for most pods. Doors without an API server commit it instead.
 * Upstream: PreBind of VolumeBinding and DynamicResources.
 */
/* What reserve left to write for the pod; NULL and 0 when nothing, or nothing is reserved. Valid
 * until the pod's unreserve, commit, or its confirmation by bh_engine_put_pod. */
const struct bh_write *bh_engine_prebind_work(const struct bh_engine *e, struct bh_str uid,
                                              uint32_t *ret_n);
/* Write i of the pod's work was done and this is the object the API server answered with. Needed
 * for each write before bh_engine_prebind_check. -ENOENT: nothing is reserved; -EINVAL. */
int bh_engine_prebind_written(struct bh_engine *e, struct bh_str uid, uint32_t i,
                              const void *object, size_t n, struct bh_err *err);
/* The API server has this version of an object that a former scheduler's write, or an undoing,
 * was about: ResourceClaims count as such from now on, unless a newer one is known, or none is and it
 * was not created by that write. ev (NULL allowed) becomes the event of it where it counts from now on and is
 * another than what counted before, as upstream's assume cache tells it: the watch, when it is behind, may show
 * the same before and after. -EINVAL. */
int bh_engine_learn(struct bh_engine *e, enum bh_kind kind, const void *object, size_t n,
                    bool created, struct bh_cluster_event *ev, struct bh_err *err);
/* Changes when a volume or a claim does: then bh_engine_prebind_check may say something else. */
uint64_t bh_engine_claims_version(const struct bh_engine *e);
enum bh_prebind_state {
    BH_PREBIND_READY, /* bind the pod */
    BH_PREBIND_WAITS, /* controllers or drivers have not answered yet: ask again after their objects
                         changed, or in a second; *ret_text: the plugin that waits. Or a plugin has
                         added to bh_engine_prebind_work: ask again when that is written */
    BH_PREBIND_FAILED, /* *ret_text as upstream writes it; unreserve */
    BH_PREBIND_REFUSED /* the same, by a plugin that did not fail */
};
/* Does the pod go through PreBind although nothing has to be written for it? */
bool bh_engine_prebind_due(struct bh_engine *e, const struct bh_pending *p);
/* After all writes: are the volumes bound, are the devices ready? since_ns: when the last write was
 * done; the plugins' timeouts count from there. *ret_text lives until the next call for a pod. */
enum bh_prebind_state bh_engine_prebind_check(struct bh_engine *e, const struct bh_pending *p,
                                              bh_sym node, int64_t since_ns, int64_t now_ns,
                                              const char **ret_text);
/* What has to be undone at the API server when the pod does not get bound after all: ask before
 * bh_engine_unreserve. Valid until the next call for a pod. */
const struct bh_write *bh_engine_undo_work(struct bh_engine *e, const struct bh_pending *p,
                                           uint32_t *ret_n);
/* Without an API server (simulations): the engine's objects become what they would be after the
 * writes and after the controllers' part, so that pods that share a claim may follow. A dynamically
 * provisioned claim keeps its selected node and gets no volume. */
void bh_engine_prebind_commit(struct bh_engine *e, struct bh_str uid);

/* The newest object, an assumed one before the API server's; NULL when absent. Valid until the next
 * change of the kind. */
const ProtobufCMessage *bh_engine_get_object(const struct bh_engine *e, enum bh_kind kind,
                                             const char *ns, const char *name);

/* The newest of each object of a kind; fn may not change the engine. */
void bh_engine_each_object(const struct bh_engine *e, enum bh_kind kind,
                           void (*fn)(void *arg, const ProtobufCMessage *m), void *arg);

/* Nominated pods count in filters against their node (reference scheduler-core.md 4.7). In an engine with
 * a queue always by the pending of the pod's entry, whose handle then knows of it; in others always by one
 * without: what the handle does not know of the queue would not end. */
void bh_engine_nominate(struct bh_engine *e, const struct bh_pending *p,
                        bh_sym node); /* NONE: no longer */
/* The same for a member whose group waits for its victims: until the group is tried again no pod of
 * lower priority takes the resources. It is not written to the API server. */
void bh_engine_keep_node(struct bh_engine *e, const struct bh_pending *p, bh_sym node);
/* The nomination there stays, but is found by its pod's uid alone from now on. */
void bh_engine_nomination_stays(struct bh_nomination **at);
void bh_engine_unnominate(struct bh_engine *e, struct bh_str uid);
/* BH_SYM_NONE: nowhere. */
bh_sym bh_engine_nominated_node(const struct bh_engine *e, struct bh_str uid);
/* Is it on a node, and not being deleted, as far as is known? */
bool bh_engine_pod_stays(const struct bh_engine *e, struct bh_str uid);
struct bh_nominated {
    struct bh_str uid;
    int32_t priority;
    struct bh_nomination **at; /* bh_pending.nomination, or NULL */
};
/* Visits the pods that are nominated to the node; fn may not change nominations. */
void bh_engine_each_nominated(const struct bh_engine *e, bh_sym node,
                              void (*fn)(void *arg, const struct bh_nominated *n), void *arg);

/* ---- the queue's order ----------------------------------------------------------------------- */
/* Is it another plugin's than PrioritySort's: must bh_engine_less() be asked? */
bool bh_engine_sorts(const struct bh_engine *e);
/* Does a go before b? */
bool bh_engine_less(struct bh_engine *e, const struct bh_queue_key *a,
                    const struct bh_queue_key *b);

/* ---- queueing hints -------------------------------------------------------------------------- */
/* Would this event make the plugin's rejection of p worth another try? plugin: a name from
 * unschedulable_plugins. Unknown plugins answer BH_QUEUE. *ret_by_pod becomes true when the answer
 * is p's alone; else it holds for every pod of p's shape, but for one that is the event's old_pod
 * or new_pod. */
enum bh_hint bh_engine_hint(struct bh_engine *e, const char *plugin, const struct bh_pending *p,
                            const struct bh_cluster_event *ev, bool *ret_by_pod);
/* Does any plugin of any profile register for the event? */
bool bh_engine_interested(struct bh_engine *e, const struct bh_cluster_event *ev);
/* Did this plugin (of any profile) register for the event? Cheap: no pod is looked at. Plugins
 * without a registration of their own and unknown names are always interested. */
bool bh_engine_plugin_interested(struct bh_engine *e, const char *plugin,
                                 const struct bh_cluster_event *ev);
/* The plugin's answers hold for every pod of the same essence (bh_shape_essence), not only of the
 * same shape. */
bool bh_engine_hints_by_essence(const char *plugin);
/* What the engine did, for metrics. */
struct bh_engine_stats {
    uint64_t cycles, fast_cycles, reference_cycles, verified, shape_hits, shape_misses,
        nodes_rescored;
};
void bh_engine_stats(const struct bh_engine *e, struct bh_engine_stats *ret);
/* How long the last bh_engine_schedule took, by the observer's clock; 0 without one. */
uint64_t bh_engine_took_ns(const struct bh_engine *e);
struct bh_profile_stats {
    const char *name;
    uint64_t cycles; /* decisions, those for people not counted */
    uint64_t hinted; /* of them: taken from the results kept of an earlier pod of the same shape */
    /* Reserve and Permit that had nothing to do: Success, 0 s, no call of the observer. */
    uint64_t quiet_reserve, quiet_permit;
    /* Decisions of the fast path that took less than BH_QUIET_NS, and their PreFilter, Filter,
     * Score in all. */
    uint64_t quiet_fast, quiet_fast_ns[3];
};
/* Profiles from 0 on; false: there are no more. */
bool bh_engine_profile_stats(const struct bh_engine *e, uint32_t i, struct bh_profile_stats *ret);
struct bh_plugin_stats {
    const char *plugin, *profile;
    struct bh_evaluations n;
    bool at_pre_filter, at_filter, at_pre_score, at_score; /* enabled there */
    bool filters_alone, scores_alone; /* ... and has no batch form: asked node by node */
};
void bh_engine_each_plugin(const struct bh_engine *e,
                           void (*fn)(void *arg, const struct bh_plugin_stats *s), void *arg);
#endif
