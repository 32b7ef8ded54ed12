/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/framework/plugin.h - what a scheduling plugin is: one const descriptor
 *
 * A plugin fills a struct bh_plugin with designated initialisers at the end of its file and appears
 * in scheduler/plugins/registry.c; nothing else is needed. Upstream's extension points, status
 * codes and rules apply (what may be returned: framework.h). A callback that a plugin does not need
 * is NULL; the bits in `points` say which extension points it implements.
 *
 * State: a plugin has no globals. Per configuration it has `args` (built by args_new, freed by
 * args_free), per cycle the pointer it left in pre_filter_state / pre_score_state (cycle arena).
 * Batch forms answer for many nodes at once from the columns; they must equal the per-node forms
 * bit for bit, which `verify` checks. A plugin without them is correct, only slower.
 *
 * Threads: all callbacks run in the engine's thread.
 * Upstream: k8s.io/kube-scheduler/framework/interface.go; differences: Bind describes the binding,
 * a binder process writes it.
 */
#ifndef BH_PLUGIN_H
#define BH_PLUGIN_H

#include "common/data/json.h"
#include "scheduler/cache/cache.h"
#include "scheduler/cache/objects.h"
#include "scheduler/cache/reservations.h"
#include "scheduler/config/config.h"
#include "scheduler/config/field.h"
#include "scheduler/framework/event.h"
#include "scheduler/framework/pod.h"
#include "scheduler/framework/waiting.h"

#define BH_PLUGIN_ABI 1u
/* What every descriptor begins with. */
#define BH_PLUGIN_HEAD(name_)                                                                      \
    .abi = BH_PLUGIN_ABI, .size = sizeof(struct bh_plugin), .name = (name_)

#define BH_POINT_BIT(p) (1u << (p))

enum bh_plugin_flags {
    /* What pre_filter, pre_score, filter and score say depends on the pod's shape, on the node at
     * hand (of pods there: on shape and flags) and on epoch() only. Then the fast path may keep the
     * results per shape and node. A plugin without this flag closes the fast path, except to pods
     * for which it is idle(), unless it keeps track. */
    BH_PLUGIN_NODE_LOCAL = 1,
    /* Its hints look at neither labels, images, priority nor owner of the waiting pod: pods that
     * differ in nothing else (bh_shape_essence) have one answer. */
    BH_PLUGIN_HINTS_BY_ESSENCE = 2,
    /* reserve does nothing for a pod without BH_SHAPE_USES_VOLUMES for which the plugin, if it has
     * idle(), is idle: it need not be called; nor need pre_bind for a pod without claims for which
     * reserve listed nothing. */
    BH_PLUGIN_RESERVES_CLAIMS = 4,
    /* It looks at the pod's own volumes or claims, which make most pods unlike all others. Results
     * kept for a shape are made without it, of the shape without volumes and claims
     * (bh_shapes_kept); its verdict is laid over them for each pod, see struct bh_overlay_ops. Has
     * idle(). A node-local plugin without this flag never gets to see a volume or a claim on the
     * fast path. */
    BH_PLUGIN_OVERLAY = 8,
    /* Filter looks at the node's record, at the sums over its pods' requests and at the number of
     * its pods, and at nothing else of a node: not at single pods, not at ports. */
    BH_PLUGIN_READS_SUMS = 16,
    /* Node local, and Filter and Score look at nothing but the node's record and its image states:
     * not asked again when only pods on the node have changed. */
    BH_PLUGIN_READS_NODE = 32,
    /* Its args have no schema: they stand in the configuration as the file has them. */
    BH_PLUGIN_OWN_ARGS = 64,
    /* Its PostFilter may evict pods that have no lower priority than the pod at hand. */
    BH_PLUGIN_EVICTS_ANY = 128,
    /* Where a profile leaves its pre_filter or pre_score out, filter and score say the same. */
    BH_PLUGIN_STANDS_ALONE = 256
};

struct bh_plugin;
struct bh_framework;
struct bh_cycle;
struct bh_ext;
struct bh_plugin_asks;

/* What a constructor may use; valid as long as the instance. */
struct bh_plugin_env {
    const struct bh_plugin *plugin; /* whose instance it is */
    struct bh_arena *arena;         /* of the framework: lives as long as the instance */
    struct bh_symtab *tab;
    struct bh_cache *cache;
    struct bh_objects *objects;       /* only Reserve and Unreserve change them (assume) */
    struct bh_reservations *reserved; /* NULL: Reserve takes nothing */
    struct bh_waiting_pods *waiting;  /* those at Permit; NULL: no plugin lets them wait */
    struct bh_ext *const *ext; /* keeps whole objects, as config->whole_objects says; may be NULL */
    const struct bh_sched_config *config; /* for bh_sched_config_gate; NULL = defaults */
    bool verify; /* what is kept is compared with what is worked out anew; a difference aborts */
    struct bh_plugin_asks *asks; /* asks.h; NULL: nobody listens */
};

/* What every callback of a cycle gets. */
struct bh_call {
    struct bh_cycle *cycle; /* for PostFilter, which runs the filters again */
    struct bh_cache *cache;
    struct bh_symtab *tab;
    const struct bh_objects *objects;
    const void *args;              /* args_new's result, NULL without one */
    const struct bh_pod_info *pod; /* the pod being scheduled */
    struct bh_arena *arena;        /* the cycle's */
    void *pre_filter_state;        /* read and written by the plugin's own callbacks only */
    void *pre_score_state;
    int64_t now_ns;
};

/* PreFilter's narrowing: all == true means every node. Otherwise the names, sorted by symbol, each
 * once. */
struct bh_node_set {
    bool all;
    uint32_t n;
    const bh_sym *names;
};
/* Why nodes were rejected, for PostFilter. */
struct bh_kept_diagnosis;
struct bh_diagnosis {
    const struct bh_status *const *by_row; /* explicit statuses; NULL = passed or not looked at */
    const struct bh_status *absent;        /* status of nodes without an explicit one */
    const struct bh_status *pre_filter;    /* PreFilter rejected the pod: its status */
    uint32_t n_rows;
    const struct bh_kept_diagnosis *kept; /* NULL, or what else is known from earlier cycles */
};
struct bh_dry_runs;
/* Of a shape whose pods were rejected before. Every live row has an explicit status. */
struct bh_kept_diagnosis {
    const uint64_t *unschedulable; /* bit by row: the status is exactly Unschedulable */
    uint32_t n_unschedulable;
    const uint32_t *by_name;      /* all live rows by node name; NULL: choices are random */
    struct bh_dry_runs *dry_runs; /* what removing pods would do, see preemption/preemption.h */
    uint32_t own_row; /* row to which the pod itself is nominated: not as for the shape's others */
    bool elsewhere;   /* pods on other nodes have a say: a dry run holds for this pod alone */
    bool verify;      /* do it both ways */
};
struct bh_post_filter_result {
    bool override_nomination; /* false: leave NNN as it is */
    bh_sym node;              /* BH_SYM_NONE clears */
    const struct bh_victim *victims;
    uint32_t n_victims;
    uint32_t violating;
    const struct bh_preemption *ties; /* the chosen one first */
    uint32_t n_ties;
    const struct bh_write *writes; /* see struct bh_decision */
    uint32_t n_writes;
};

/* One registration for cluster events. */
struct bh_hint_call {
    const void *args;
    struct bh_symtab *tab;
    const struct bh_known_syms *sym;
    const struct bh_objects *objects;
    const struct bh_cache *cache;
    const struct bh_pending *waiting; /* for bh_hint_pod() and bh_hint_is_self() only */
    bool *by_pod;                     /* set by bh_hint_pod() */
    const struct bh_shape_rec *shape; /* of the waiting pod */
    const struct bh_cluster_event *ev;
};
typedef enum bh_hint bh_hint_fn(const struct bh_hint_call *c);
int bh_by_sym(const void *a, const void *b); /* for qsort and bsearch */
static inline enum bh_hint bh_hint_if(bool worth)
{
    return worth ? BH_QUEUE : BH_QUEUE_SKIP;
}
enum bh_event_on { BH_ON_POD, BH_ON_NODE, BH_ON_OBJECT };
struct bh_event_reg {
    enum bh_event_on on;
    enum bh_kind kind; /* BH_ON_OBJECT */
    uint32_t actions;  /* bits of enum bh_event_action; 0 ends the list */
    bh_hint_fn *hint;  /* NULL: always worth another try */
};
static inline struct bh_str bh_rec_uid(const struct bh_pod_rec *p)
{
    return bh_rec_text(p, p->uid);
}
static inline const char *bh_rec_namespace(const struct bh_pod_rec *p)
{
    return bh_rec_text(p, p->namespace_).p;
}
static inline bool bh_same_pod(const struct bh_pod_rec *a, const struct bh_pod_rec *b)
{
    return a && b && bh_str_eq(bh_rec_text(a, a->uid), bh_rec_text(b, b->uid));
}
/* The waiting pod itself. A hint that never asks has the same answer for every pod of the shape, so
 * that the queue asks once for all of them. */
static inline const struct bh_pod_rec *bh_hint_pod(const struct bh_hint_call *c)
{
    *c->by_pod = true;
    return c->waiting->pod;
}
/* Is p, of the event, the waiting pod? The queue asks for the event's own pod apart from the others
 * of its shape, so this does not make the answer that pod's alone. */
static inline bool bh_hint_is_self(const struct bh_hint_call *c, const struct bh_pod_rec *p)
{
    return bh_same_pod(c->waiting->pod, p);
}
/* Assigned or nominated: only then can its going or shrinking make room. */
static inline bool bh_had_node(const struct bh_pod_rec *p)
{
    return p && (p->node != BH_SYM_NONE || p->nominated_node != BH_SYM_NONE);
}

/* For plugins that are not node local: what the other nodes' pods mean for pods of one shape,
 * counted once and from then on kept from cycle to cycle. With it the fast path need not ask
 * PreFilter, Filter, PreScore, Score and Normalize, whose answers these must equal bit for bit. */
struct bh_track_ops {
    /* For c->pod's shape; counts no row yet. NULL: PreFilter or PreScore would fail. */
    void *(*make)(struct bh_call *c);
    void (*drop)(void *t);
    size_t (*bytes)(const void *t);
    /* false: something else than nodes and pods on them has changed, t is to be made anew. */
    bool (*current)(struct bh_call *c, void *t);
    /* These rows (each once; live or empty now) are not what they were at the last update; of those
     * from n_nodes on pods alone came or went. */
    void (*update)(struct bh_call *c, void *t, const uint32_t *rows, uint32_t n_nodes, uint32_t n);
    /* Keeps the rows that pass, in order; returns how many. */
    uint32_t (*filter)(struct bh_call *c, void *t, uint32_t *rows, uint32_t n);
    /* Filter's answer for a row, NULL where it passes, had these pods been added to its node (those
     * nominated to it, or none). A constant, or in c->arena. */
    const struct bh_status *(*why)(struct bh_call *c, void *t, uint32_t row,
                                   const struct bh_pod_info *const *pods, uint32_t n);
    /* Normalised scores. rows: all that are feasible, at least two; or, with `stands_for`, one of
     * each kind and how many there are of it. false: all of them 0. */
    bool (*score)(struct bh_call *c, void *t, const uint32_t *rows, const uint32_t *stands_for,
                  uint32_t n, int64_t *ret);
    /* The kind of a row in at most BH_KIND_WORDS words: rows with equal words are alike to filter
     * and score, now and until moved() or an update() names one of them. Returns how many words,
     * the same for all rows, 0 = there are no kinds. */
    uint32_t (*kind)(struct bh_call *c, void *t, uint32_t row, uint32_t *ret);
    /* The rows beside its own whose kind the last update changed; BH_KINDS_ANEW: any. */
    uint32_t (*moved)(const void *t, const uint32_t **ret);
};
#define BH_KIND_WORDS 16u
#define BH_KINDS_ANEW UINT32_MAX

/* For plugins with BH_PLUGIN_OVERLAY. For a pod for which such a plugin is not idle() the fast path
 * runs its pre_filter with the pod as it is. Skip: the plugin is done. A rejection or an error: the
 * reference path decides. Success: ask() says what filter would say of the nodes; where it cannot
 * for all of them, rows that passed everything else are asked one by one (filter_rows or filter).
 *
 * What the plugin must guarantee:
 * - filter's verdict on a row depends neither on which other rows were asked, nor on their order:
 *   rows that another plugin rejects are not asked, and with ALL no row is.
 * - ask() is about nodes as they are. Rows with nominated pods are asked through filter, with
 *   change_pod, by the engine, unless it said ALWAYS. With that the plugin has no part in preemption's
 *   dry runs either.
 * - Where filter could answer an Error for some live node, which ends the cycle, ask() says FAILS:
 *   an Error of a row that another plugin rejects would go unseen otherwise.
 * - What is remembered from cycle to cycle (in args, on the heap; no malloc when nothing grew) is
 *   checked against objects->version[], objects' change log (bh_objects_change), cache->log_end and
 *   cache->membership, reservations' version before it is used; assumed versions count.
 * - Its score (pre_score with the feasible rows, score_rows or score, normalize) may depend on all
 *   feasible rows. scores() false: it adds nothing for this pod and is not asked.
 * Verify compares every such pod with the reference path. */
enum bh_overlay_answer {
    BH_OVERLAY_ALWAYS, /* every node passes, whatever pods were put on it or taken from it */
    BH_OVERLAY_ALL,    /* every live row passes */
    BH_OVERLAY_SOME,   /* filter has to be asked */
    BH_OVERLAY_ONLY,   /* rows[0..*n), ascending, each once, are those that may pass: ask filter */
    BH_OVERLAY_FAILS   /* leave the pod to the reference path */
};
struct bh_overlay_ops {
    /* After pre_filter, in profile order. rows: room for every row, for ONLY. NULL: SOME. */
    enum bh_overlay_answer (*ask)(struct bh_call *c, uint32_t *rows, uint32_t *n);
    /* NULL: true unless pre_score(c, NULL, 0) skips (it may be called so at any time). */
    bool (*scores)(struct bh_call *c);
};

/* Nodes on which a whole group may be placed. */
struct bh_placement {
    const char *name;     /* of its topology domain; "" = all nodes */
    const uint32_t *rows; /* ascending */
    uint32_t n;
    /* For PlacementScore: the members that would go there, those that have to preempt as well. */
    const struct bh_pod_info *proposed;
    uint32_t n_proposed;
};

extern const struct bh_event_reg bh_no_events[];
struct bh_plugin {
    uint32_t abi, size;
    const char *name; /* upstream's registered name */
    uint32_t flags;   /* enum bh_plugin_flags */

    /* ---- configuration ---- */
    const struct bh_field *args_schema; /* NULL: takes no args */
    /* Checks the args of pluginConfig (NULL = absent). path: where they stand in the file. self: the
     * descriptor, for callbacks that several share. */
    void (*args_check)(const struct bh_plugin *self, const struct bh_json *args, const char *path,
                       struct bh_field_errors *errs);
    bool check_at_construction; /* upstream checks in the constructor: another prefix and order */
    /* Builds the instance from checked args (NULL = defaults). 0 or -EINVAL. */
    int (*args_new)(const struct bh_plugin_env *env, const struct bh_json *args, void **ret,
                    struct bh_err *err);
    void (*args_free)(void *args);     /* for what is not in env->arena */
    const struct bh_event_reg *events; /* NULL: woken by everything; bh_no_events: by nothing */

    /* ---- queue ---- */
    const struct bh_status *(*pre_enqueue)(struct bh_call *c);
    /* Does a go before b? Of the first profile's instance, for all profiles. The call has no pod, no
     * cycle, no arena and no time. What it says of two pods may change while they wait: the queue asks
     * again about those at its head. */
    bool (*less)(struct bh_call *c, const struct bh_queue_key *a, const struct bh_queue_key *b);

    /* ---- filtering ---- */
    /* NULL, Skip, Unschedulable, U&U, or Error. */
    const struct bh_status *(*pre_filter)(struct bh_call *c, struct bh_node_set *ret_nodes);
    /* AddPod (by 1) and RemovePod (-1). Changes the state in place; it is a clone when the change is
     * for one node's evaluation. */
    const struct bh_status *(*change_pod)(struct bh_call *c, const struct bh_pod_info *pod,
                                          const struct bh_node_info *node, int by);
    void *(*clone_state)(struct bh_call *c); /* of pre_filter_state; NULL: nothing changes it */
    const struct bh_status *(*filter)(struct bh_call *c, const struct bh_node_info *node);
    /* What stands for Filter's answer where the profile leaves the plugin's PreFilter out, and for
     * Score's without PreScore; NULL: they do without, as upstream's. */
    const struct bh_status *without_pre_filter, *without_pre_score;
    const struct bh_status *(*post_filter)(struct bh_call *c, const struct bh_diagnosis *d,
                                           struct bh_post_filter_result *ret);

    /* ---- scoring ---- */
    const struct bh_status *(*pre_score)(struct bh_call *c, const uint32_t *rows, uint32_t n);
    const struct bh_status *(*score)(struct bh_call *c, const struct bh_node_info *node,
                                     int64_t *ret);
    /* In place over the scores of all feasible nodes. NULL: as `normal` below says. */
    void (*normalize)(struct bh_call *c, int64_t *scores, uint32_t n);

    /* ---- after a node was chosen ---- */
    const struct bh_status *(*reserve)(struct bh_call *c, bh_sym node);
    void (*unreserve)(struct bh_call *c, bh_sym node); /* idempotent */
    const struct bh_status *(*permit)(struct bh_call *c, bh_sym node, int64_t *ret_timeout_ns);
    /* After everything that reserve listed is written, as often as it takes. NULL: bind; Wait: ask
     * again; else the text of the failure. since_ns: when the last write was done. It may list more
     * (bh_reservation_add to what bh_reservation_for gives) and say Wait: it is asked again when that
     * is written, and has to know then that it listed it. */
    const struct bh_status *(*pre_bind)(struct bh_call *c, bh_sym node, int64_t since_ns);
    /* What of the pod's reservation has to be undone at the API server; before unreserve. In
     * c->arena. */
    uint32_t (*undo_work)(struct bh_call *c, const struct bh_write **ret);
    /* NULL: a binder shall bind the pod to the node as *ret says (write.h), left alone a Binding.
     * Skip: the next Bind plugin's turn. Not asked when an extender binds. Asked once more, for the
     * same node, by the scheduler after this one when the outcome is not known. Here and in
     * post_bind the call has no `cycle`. */
    const struct bh_status *(*bind)(struct bh_call *c, bh_sym node, struct bh_bind_order *ret);
    /* The API server has bound the pod there. Once a pod; unreserve may follow, if the pod goes before
     * the watch has shown it on its node. A pod that was reserved sees at least one of the two, unless
     * the scheduler is killed. */
    void (*post_bind)(struct bh_call *c, bh_sym node);

    /* ---- a group as a whole: c->pod is one of its members ---- */
    /* The placements to try, in their order, in c->arena. None: the group goes nowhere. */
    const struct bh_status *(*placement_generate)(struct bh_call *c, struct bh_placement **ret,
                                                  uint32_t *ret_n);
    const struct bh_status *(*placement_score)(struct bh_call *c, const struct bh_placement *p,
                                               int64_t *ret);
    /* In place over the scores of all placements that fit; NULL: they are final. */
    const struct bh_status *(*placement_normalize)(struct bh_call *c, int64_t *scores, uint32_t n);

    /* ---- batch forms: rows are live nodes ---- */
    /* Keeps the rows that pass, in order; returns how many. */
    uint32_t (*filter_rows)(struct bh_call *c, uint32_t *rows, uint32_t n);
    /* Raw scores of the rows. */
    void (*score_rows)(struct bh_call *c, const uint32_t *rows, uint32_t n, int64_t *ret);
    /* How the normalised score follows from the raw one and the extremes (fast path keeps
     * totals). */
    enum bh_normal {
        BH_NORMAL_NONE,       /* raw is final */
        BH_NORMAL_MAX,        /* DefaultNormalize, forward */
        BH_NORMAL_MAX_REVERSE /* DefaultNormalize, reverse */
    } normal;
    /* For plugins that are not node local. true: as things stand, PreFilter and PreScore skip for
     * every pod of this shape, so the fast path need not know the plugin. May say false although
     * they would. Asked for each pod: cheap. */
    bool (*idle)(struct bh_call *c);
    const struct bh_track_ops *track;     /* where it is not idle; NULL: the reference path */
    const struct bh_overlay_ops *overlay; /* with BH_PLUGIN_OVERLAY; NULL: as if all were NULL */
    /* Everything but shape and node that the results depend on; a change invalidates all of
     * them. */
    uint64_t (*epoch)(struct bh_call *c);
    bool scores_alone; /* score_rows asks score for each row: it is no batch form */
    /* Kinds from BH_KIND_CUSTOM on that it reads, bits 1 << kind: without all of their objects
     * nothing is decided. */
    uint64_t kinds;
    unsigned annotations; /* that it reads: bits of enum bh_annotations_of */
    /* The raw scores of these rows are wanted in this cycle: score_rows follows, with the same rows, after other
     * plugins' Score, unless the cycle ends before. For who lets another process work meanwhile. */
    void (*score_soon)(struct bh_call *c, const uint32_t *rows, uint32_t n);
    /* Not about a pod (c->pod and c->cycle are NULL), of one instance: says with bh_asks_write() what is to be
     * written about the cluster. bh_engine_tend() calls it. */
    void (*tend)(struct bh_call *c);
};
/* Every plugin there is: plugins/registry.c lists them, the framework only looks them up.
 * bh_plugins: in the order of the default profile, then the others; NULL ends. */
extern const struct bh_plugin *const bh_plugins[];
/* A program may define more; NULL ends. (Tests do.) */
extern const struct bh_plugin *const bh_plugins_extra[] __attribute__((weak));
const struct bh_plugin *bh_plugin_find(const char *name); /* NULL: not registered */
/* Asked for names that are in neither list; NULL: nobody is. What it answers stays. Set before there
 * are threads. */
extern const struct bh_plugin *(*bh_plugin_find_more)(const char *name);
/* " (looked in ...)", where files of plugins were looked for, for messages about unknown names. NULL:
 * nowhere. Lives as long as the process. Set before there are threads. */
extern const char *(*bh_plugin_places)(void);
/* Told of each entry of pluginConfig with args.guestURL whose plugin is enabled, before names are
 * looked up: makes it known to bh_plugin_find(). What it needs of whole objects, enum bh_ext_need;
 * negative errno. NULL: there are no guests. Set before there are threads. */
extern int (*bh_plugin_declare_guest)(const char *name, const struct bh_json *args,
                                      struct bh_err *err);
uint32_t bh_plugin_points(const struct bh_plugin *p); /* BH_POINT_BIT()s of its callbacks */
/* For a filter_rows that cannot tell for all rows at once: asks p's filter for each (engine). */
uint32_t bh_filter_one_by_one(struct bh_call *c, const struct bh_plugin *p, uint32_t *rows,
                              uint32_t n);
#endif
