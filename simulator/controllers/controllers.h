/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/controllers.h - what the controllers share: queue, counts, kubelet state
 *
 * The folder's doors are bh_sim_controllers_start() and _stop() in simulator/server/sim.h.
 * One listener sees every commit and turns it into keys on one work queue; a key names a controller
 * and an object, is queued at most once, and is worked off in order, a few milliseconds after the
 * first change, so that a burst of changes costs one look. A sync compares the store as it is now
 * with what the object wants and makes at most BH_CTL_BATCH writes before it queues itself again.
 * Pods bypass the queue: the kubelet has a line of its own (kubelet.c), and counts per owner are
 * kept by adding and subtracting at each commit (counts.c).
 * Threads: one, the simulator's loop. Nothing here polls.
 */
#ifndef BH_SIM_CONTROLLERS_H
#define BH_SIM_CONTROLLERS_H

#include "common/base/map.h"
#include "simulator/server/tree.h"
#include "simulator/server/sim.h"

#define BH_CTL_BATCH    256        /* writes of one sync */
#define BH_CTL_DELAY_NS 5000000    /* first change -> sync */
#define BH_CTL_RETRY_NS 1000000000 /* after a refused write */

enum bh_ctl {
    BH_CTL_DEPLOYMENT,
    BH_CTL_REPLICASET,
    BH_CTL_REPLICATIONCONTROLLER,
    BH_CTL_STATEFULSET,
    BH_CTL_DAEMONSET,
    BH_CTL_JOB,
    BH_CTL_PDB, /* name = "": all budgets of the namespace */
    BH_CTL_NAMESPACE,
    BH_CTL_GC_ORPHANED,   /* name = uid of an owner that is gone */
    BH_CTL_GC_DEPENDENTS, /* object waits for its dependents (foreground, orphan); name = uid */
    BH_CTL_CLAIM,         /* persistent volume claim */
    BH_CTL_VOLUME,
    BH_CTL_VOLUME_SWEEP, /* ns and name "": all claims that have no volume yet */
    BH_CTL_POD_CLAIMS,   /* pod: claims to be made for it */
    BH_CTL_RESOURCE_CLAIM,
    BH_CTL_NODE,           /* is its kubelet heard of? */
    BH_CTL_TAINT_EVICTION, /* pod that has to leave its node */
    BH_CTL_PODGC,          /* name of a node that was deleted */
    BH_CTL_POD_LIFE,       /* pod for which the kubelet has something to do now */
    BH_CTL_CRONJOB,
    BH_CTL_HPA,
    BH_CTL_RESIZE,       /* running pod whose containers ask for something else */
    BH_CTL_QUOTA,        /* name "": all quotas of the namespace */
    BH_CTL_SERVICE,      /* name "": all services of the namespace */
    BH_CTL_PODGROUP,     /* one that is being deleted: has it pods? */
    BH_CTL_ADOPT,        /* name = uid of a workload, "": all of the namespace */
    BH_CTL_COSCHEDULING, /* name of a PodGroup of scheduling.x-k8s.io */
    BH_CTL_JOB_ORPHAN    /* pod with a job's finalizer: has it a job? */
};
#define BH_CTL_N (BH_CTL_JOB_ORPHAN + 1)

struct bh_ctl_types {
    const struct bh_sim_type *pods, *nodes, *namespaces, *configmaps, *serviceaccounts,
        *deployments, *replicasets, *replicationcontrollers, *statefulsets, *daemonsets, *jobs,
        *revisions, *cronjobs, *hpas, *claims, *pdbs, *volumes, *classes, *resource_claims,
        *claim_templates, *quotas, *services, *endpoints, *slices, *podgroups, *workloads;
};

/* ---- work queue (queue.c) -------------------------------------------------------------------- */

struct bh_ctl_item;
struct bh_ctl_queue {
    struct bh_map known; /* key -> item, the items that wait */
    struct bh_ctl_item *first, *last;
    size_t n;
    struct bh_sim_timer *timer; /* NULL = nothing waits */
    struct bh_map delayed;      /* key -> its entry until its time has come */
};

/* ---- pods of one owner (counts.c) ------------------------------------------------------------ */

struct bh_ctl_count {
    int64_t active, ready; /* as of the last commit the listener saw */
};

/* ---- kubelet (kubelet.c) --------------------------------------------------------------------- */

struct bh_ctl_due {
    struct bh_sim_obj *pod; /* referenced: names the pod, its state is looked up when due */
    uint64_t at_ns;         /* monotonic */
};
struct bh_ctl_kubelet {
    struct bh_ctl_due *ring; /* in order of time, because the delay is the same for all */
    size_t cap, first, n;    /* cap is a power of two */
    struct bh_sim_timer *timer;
    struct bh_map node_ip; /* node -> address text */
    struct bh_map files;   /* in volumes: key -> run that made it (podscript.h) */
    uint32_t next_pod_ip, next_node_ip;
    struct bh_arena arena;
};

/* What bh_ctl_live() has to know of a pod, and what it tells (podlife.c). */
struct bh_ctl_life {
    int64_t now_ns;                     /* wall clock */
    const char *now, *host_ip, *pod_ip; /* pod_ip "": it has one */
    int64_t job_ns;       /* run time of a program that nobody understands; -1 = for ever */
    struct bh_map *files; /* that containers have made (podscript.h) */
    bool kill;            /* the pod's containers are ended, because it is being deleted */
    int64_t next_ns;      /* out: wall clock, when to look again; INT64_MAX = never by itself */
};

/* An object that is found again by its uid. */
struct bh_ctl_known {
    const struct bh_sim_type *type;
    enum bh_ctl ctl; /* of a workload: whose key it is */
    const char *ns;  /* into name, behind its end */
    char name[];
};

struct bh_sim_controllers {
    struct bh_sim *sim;
    struct bh_sim_controller_options opt;
    struct bh_ctl_types t;
    struct bh_ctl_queue queue;
    struct bh_ctl_kubelet kubelet;
    struct bh_map nodes;    /* name -> bh_ctl_node (nodelife.c), those that are not well */
    struct bh_map tainted;  /* name -> NoExecute taints as text (tainteviction.c) */
    struct bh_map counts;   /* owner uid -> bh_ctl_count */
    struct bh_map owners;   /* uid of a workload, as its pods and sets carry it -> bh_ctl_known */
    struct bh_map pdb_due;  /* namespaces whose budgets will be counted soon */
    struct bh_map served;   /* namespaces whose services will be looked at soon */
    struct bh_map adopting; /* namespaces whose owners and owned will be looked at soon */
    int64_t orphans;        /* pods and replica sets that nobody owns */
    struct bh_map terminating; /* namespaces being deleted */
    struct bh_map pv_of_claim; /* "ns/name" of a claim -> name of the volume whose claimRef it is */
    struct bh_map waiting;     /* owner uid -> bh_ctl_known: it waits for its dependents */
    struct bh_arena arena;     /* of the sync under way */
    struct bh_arena pod_arena; /* of the object being created in it */
};

/* Puts a key on the queue; no effect when it waits already. */
void bh_ctl_enqueue(struct bh_sim_controllers *c, enum bh_ctl ctl, const char *ns,
                    const char *name);
/* The same after delay_ns, unless the key already waits for an earlier time. */
void bh_ctl_enqueue_after(struct bh_sim_controllers *c, enum bh_ctl ctl, const char *ns,
                          const char *name, int64_t delay_ns);
/* Whether the key waits, in line or for its time. */
bool bh_ctl_waits(struct bh_sim_controllers *c, enum bh_ctl ctl, const char *ns, const char *name);
/* A key that waits for its time does so no longer; true when there was one. */
bool bh_ctl_dequeue(struct bh_sim_controllers *c, enum bh_ctl ctl, const char *ns,
                    const char *name);
void bh_ctl_queue_fini(struct bh_sim_controllers *c);
/* ns, a pause that only gathers changes; 0 under a manual clock, where gathering takes no time. */
int64_t bh_ctl_delay(const struct bh_sim_controllers *c, int64_t ns);

/* One sync each: bring the world closer to what the object, or the key, wants. */
typedef void bh_ctl_sync_fn(struct bh_sim_controllers *c, struct bh_sim_obj *obj);
bh_ctl_sync_fn bh_ctl_sync_deployment, bh_ctl_sync_replicaset, bh_ctl_sync_statefulset,
    bh_ctl_sync_daemonset, bh_ctl_sync_job, bh_ctl_sync_namespace, bh_ctl_sync_claim,
    bh_ctl_sync_volume, bh_ctl_sync_pod_claims, bh_ctl_sync_resource_claim, bh_ctl_sync_podgroup,
    bh_ctl_sync_taint_eviction, bh_ctl_sync_pod_life, bh_ctl_sync_cronjob, bh_ctl_sync_hpa,
    bh_ctl_sync_resize;
typedef void bh_ctl_key_fn(struct bh_sim_controllers *c, const char *ns, const char *name);
bh_ctl_key_fn bh_ctl_sync_pdb, bh_ctl_sync_orphaned, bh_ctl_sync_waiting, bh_ctl_sync_volume_sweep,
    bh_ctl_sync_node, bh_ctl_sync_podgc, bh_ctl_sync_quota, bh_ctl_sync_service, bh_ctl_sync_adopt,
    bh_ctl_sync_coscheduling, bh_ctl_sync_job_orphan;
/* The workload whose objects are of type t; BH_CTL_N: none. */
enum bh_ctl bh_ctl_workload_of(const struct bh_sim_controllers *c, const struct bh_sim_type *t);
/* The type whose objects are the controller's. */
const struct bh_sim_type *bh_ctl_type(const struct bh_sim_controllers *c, enum bh_ctl ctl);
/* obj is looked at again: now, or after delay_ns. */
void bh_ctl_again(struct bh_sim_controllers *c, enum bh_ctl ctl, const struct bh_sim_obj *obj,
                  int64_t delay_ns);

/* Called at every commit, in this order, by the one listener in commit.c. */
typedef void bh_ctl_commit_fn(struct bh_sim_controllers *c, enum bh_sim_change change,
                              struct bh_sim_obj *old, struct bh_sim_obj *obj);
bh_ctl_commit_fn bh_ctl_nodelife_commit, bh_ctl_taint_commit, bh_ctl_count_commit,
    bh_ctl_kubelet_commit, bh_ctl_namespace_commit, bh_ctl_gc_commit, bh_ctl_volume_commit,
    bh_ctl_podclaim_commit;

void bh_ctl_kubelet_fini(struct bh_sim_controllers *c);
/* An edit (bh_sim_edit_fn) of a bound pod's status; life: a struct bh_ctl_life. */
bool bh_ctl_live(void *life, struct bh_arena *a, struct bh_json *pod);
/* How long the hooks run that come before the end of the pod's containers, and the containers when
 * they are told to end. */
int64_t bh_ctl_pre_stop_ns(struct bh_arena *a, const struct bh_json *pod);
/* Status, conditions and capacity of a node that came without (node_init.c). */
void bh_ctl_node_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                        struct bh_sim_obj *old, struct bh_sim_obj *node);
/* What a kubelet says about its node, as far as it is not said yet. */
void bh_ctl_node_healthy(struct bh_sim_controllers *c, struct bh_arena *a, struct bh_json *node);
/* Pods that waited for their node, or for its kubelet. */
void bh_ctl_wake_pods(struct bh_sim_controllers *c, const char *node);

/* ---- nodes that are not well (nodelife.c, tainteviction.c) -------------------------- */

/* Nothing happens on the node: its kubelet is stopped, or has not been heard of for long. */
bool bh_ctl_node_deaf(const struct bh_sim_controllers *c, const char *node);
bool bh_ctl_kubelet_stopped(const struct bh_json *node); /* by its annotation */
/* The node's taints, as they are now; NULL = none, or no node. */
void bh_ctl_taints_of(struct bh_sim_controllers *c, const char *node, const struct bh_json *taints);
void bh_ctl_quota_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                         const struct bh_sim_obj *old, const struct bh_sim_obj *obj);
void bh_ctl_podgroup_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                            const struct bh_sim_obj *old, const struct bh_sim_obj *obj);
void bh_ctl_coscheduling_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                                const struct bh_sim_obj *old, const struct bh_sim_obj *obj);
/* The PodGroup of a job's pods (gate WorkloadWithJob), made with its Workload if the job has not begun
 * yet; *ret_name, in c->arena, NULL: they need none. -EAGAIN: it could not be made, which is told. */
int bh_ctl_job_group(struct bh_sim_controllers *c, struct bh_sim_obj *job,
                     const struct bh_json *tree, const char **ret_name);
void bh_ctl_service_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                           const struct bh_sim_obj *obj);
void bh_ctl_resize_commit(struct bh_sim_controllers *c, const struct bh_sim_obj *old,
                          const struct bh_sim_obj *obj);
void bh_ctl_adopt_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                         const struct bh_sim_obj *old, const struct bh_sim_obj *obj);
void bh_ctl_job_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                       const struct bh_sim_obj *obj);
bool bh_ctl_same_labels(const struct bh_sim_obj *a, const struct bh_sim_obj *b);
bool bh_ctl_same_spec(const struct bh_sim_obj *a, const struct bh_sim_obj *b);
/* One toleration against one taint. */
bool bh_ctl_tolerates(const struct bh_json *toleration, const struct bh_json *taint);

/* An object came with an address of ours, key and two numbers from least to most - 1 before the
 * last three: that is not given away again. */
void bh_ctl_keep_ip(const struct bh_sim_obj *obj, const char *key, unsigned least, unsigned most,
                    uint32_t *next);
/* Address of a node in text, "" when the node is unknown; valid until the next call. */
const char *bh_ctl_node_ip(struct bh_sim_controllers *c, const char *node);

struct bh_ctl_count bh_ctl_counted(struct bh_sim_controllers *c, const char *owner_uid);

/* ---- pods ------------------------------------------------------------------------------------ */

bool bh_ctl_pod_finished(const struct bh_sim_obj *pod); /* Succeeded or Failed */
bool bh_ctl_pod_active(const struct bh_sim_obj *pod);   /* not deleting, not finished */
bool bh_ctl_pod_ready(const struct bh_sim_obj *pod);    /* active or not: condition Ready is True */
/* A pod of the template in a: labels, annotations, spec, controller reference to owner, and a
 * generateName of prefix; NULL: the caller sets the name. */
struct bh_json *bh_ctl_pod_of(struct bh_arena *a, const struct bh_sim_obj *owner,
                              const struct bh_json *template, const char *prefix);
/* Creates it and records SuccessfulCreate or FailedCreate at owner. NULL, or the text of the
 * refusal, in c->arena: owner is looked at again after a while. */
const char *bh_ctl_pod_create(struct bh_sim_controllers *c, enum bh_ctl ctl,
                              struct bh_sim_obj *owner, struct bh_json *pod);
void bh_ctl_pod_delete(struct bh_sim_controllers *c, enum bh_ctl ctl, struct bh_sim_obj *owner,
                       const struct bh_sim_obj *pod);
/* Ordinal of a stateful set's pod, "<set>-<n>", or -1. */
int64_t bh_ctl_ordinal_of(const struct bh_sim_obj *set, const struct bh_sim_obj *pod);
/* Sorts pods so that those to delete first come first. */
void bh_ctl_pods_rank(struct bh_sim_objs *pods);

/* ---- objects --------------------------------------------------------------------------------- */

struct bh_ctl_known *bh_ctl_known_new(const struct bh_sim_obj *obj, enum bh_ctl ctl);
/* This very object, not another of its name. 0 or the code of the refusal. */
int bh_ctl_edit(struct bh_sim_controllers *c, const struct bh_sim_obj *obj, enum bh_sim_sub sub,
                bh_sim_edit_fn *edit, const void *arg);
int bh_ctl_delete(struct bh_sim_controllers *c, const struct bh_sim_obj *obj);
/* An object after a template {metadata: {labels, annotations}, spec}, owned by owner, in a. */
struct bh_json *bh_ctl_made_of(struct bh_arena *a, const struct bh_sim_obj *owner,
                               const struct bh_json *template, const char *api_version,
                               const char *kind);
/* {apiVersion, kind, name, uid, controller, blockOwnerDeletion} appended to meta. */
void bh_ctl_own(struct bh_arena *a, struct bh_json *meta, const struct bh_sim_obj *owner);
/* An edit (bh_sim_edit_fn): takes the reference to this owner out. */
bool bh_ctl_drop_reference(void *uid, struct bh_arena *a, struct bh_json *o);
/* An edit (bh_sim_edit_fn): takes this finalizer off. */
bool bh_ctl_drop_finalizer(void *which, struct bh_arena *a, struct bh_json *o);
const char *bh_ctl_now(struct bh_sim_controllers *c, struct bh_arena *a);
/* The instant ns >= 0 after a time that an object holds, saturating; 1970 stands for what is missing,
 * unreadable or earlier. */
int64_t bh_ctl_time_after(const char *time, int64_t ns);
/* Ten characters from the contents of v, different for each salt. */
const char *bh_ctl_hash(struct bh_arena *a, const struct bh_json *v, int64_t salt);
/* Finds or makes the ControllerRevision of owner's template, the highest one. Its hash, in a. */
const char *bh_ctl_revision(struct bh_sim_controllers *c, struct bh_arena *a,
                            struct bh_sim_obj *owner, const struct bh_json *template);
/* A copy of the template whose labels carry key=value too. */
struct bh_json *bh_ctl_template_with(struct bh_arena *a, const struct bh_json *template,
                                     const char *key, const char *value);
#endif
