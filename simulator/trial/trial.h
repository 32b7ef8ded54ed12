/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/trial/trial.h - a trial: scheduling on paper
 *
 * For `berth simulate` and for the console's questions. Nothing here reads a running system, prints
 * or waits; several trials may run at a time, each in a thread of its own.
 *
 * Objects come from files (files.c, items.c) or from the caller. Those without metadata.uid are
 * manifests: they pass a bare API server of the simulator's, which defaults, admits and validates
 * them, and its controllers make pods of workloads (admit.c, workloads.c, claims.c). Those with a
 * uid came out of an API server and are taken as they are. Then everything goes into an offline
 * world (world.c; simulator/offline/), and decisions are taken one after the other (run.c), while
 * budgets follow (controllers.c).
 *
 * Memory:     a trial owns everything until bh_trial_free.
 * Threads:    one.
 */
#ifndef BH_TRIAL_H
#define BH_TRIAL_H

#include "common/base/map.h"
#include "common/k8s/codec.h"
#include "scheduler/explain/explain.h"
#include "simulator/offline/offline.h"

/* ---- files ----------------------------------------------------------------------------------- */

struct bh_trial_source {     /* where an object stands */
    const char *file;        /* "-" = standard input */
    uint32_t document, item; /* both from 1; item 0 = the document is the object */
    uint32_t line;           /* 0 = not known */
    uint32_t rank;           /* among all objects of all files; set when the object is kept */
};
/* "a.yaml: document 2, item 5 (line 130)" */
void bh_trial_where(struct bh_buf *out, const struct bh_trial_source *at);
/* obj lives in a until the call returns, with apiVersion, kind and an object as metadata. */
typedef int bh_trial_object_fn(void *arg, const struct bh_trial_source *at, struct bh_arena *a,
                               struct bh_json *obj, struct bh_err *err);
/* For such a function: refuses members that obj's kind does not have. obj may lose them then. */
int bh_trial_known(const struct bh_trial_source *at, struct bh_json *obj, struct bh_err *err);
/* A file, a folder (its *.yaml, *.yml and *.json, by name), or "-". YAML with any number of
 * documents, JSON; lists of any kind are taken apart. 0, or fn's or a reader's error. What fn keeps
 * of at lives as long as path and the arena. */
int bh_trial_read(const char *path, struct bh_arena *names, bh_trial_object_fn *fn, void *arg,
                  struct bh_err *err);

/* The same for a text in memory; label: what errors call it. */
int bh_trial_read_text(const char *label, const char *p, size_t n, struct bh_arena *names,
                       bh_trial_object_fn *fn, void *arg, struct bh_err *err);
/* ---- a trial --------------------------------------------------------------------------------- */

enum bh_trial_result {
    BH_TRIAL_WAITING, /* not tried yet */
    BH_TRIAL_SCHEDULED,
    BH_TRIAL_UNSCHEDULABLE,
    BH_TRIAL_GATED,
    BH_TRIAL_ERROR,
    BH_TRIAL_PREEMPTED, /* was placed, by the files or in this trial, and had to go */
    BH_TRIAL_AT_PERMIT  /* has room, and a Permit plugin makes it wait */
};
struct bh_trial_pod {       /* a pod that was pending, or had to go */
    struct bh_pod_rec *rec; /* our copy */
    bh_shape_id shape;      /* one reference */
    uint32_t rank, order;   /* of its source; of appearance */
    bool placed_before;     /* by the files */
    enum bh_trial_result result;
    bh_sym node, nominated;
    uint32_t attempts;
    char *reason, *message; /* of the last failed attempt, or NULL */
    /* Of each attempt, when asked for: rendered, or for JSON and YAML one document a line. */
    struct bh_buf explanations;
    const struct bh_trial_pod *preemptor;
};
struct bh_trial_item { /* an object of the files */
    struct bh_trial_source at;
    const struct bh_kind_info *kind; /* NULL: the engine does not keep it */
    const char *api_version, *kind_name, *ns, *name;
    char *json; /* compact, without managedFields */
    size_t n;
    bool admitted; /* it came with a uid */
    bool replaced; /* by one of the same name after it, or removed */
    bool borrowed; /* json is the caller's */
};
/* Callbacks; each may be NULL. Called in the trial's thread. */
struct bh_trial_watcher {
    void (*progress)(void *arg, const char *what, size_t done, size_t total); /* what NULL: over */
    void (*warning)(void *arg, size_t n, const char *text);                   /* the n-th, from 1 */
    bool (*stop)(void *arg); /* true: leave off, -ECANCELED */
    void *arg;
};
struct bh_trial_options {
    const char *config;                  /* file, NULL = defaults */
    const struct bh_json *config_object; /* instead of a file */
    struct bh_trial_watcher watcher;
    enum bh_tie_break tie_break;
    uint64_t seed;
    bool verify, explain, no_preemption, strict;
    enum bh_form form; /* of the report */
    bool colour;
    const char *only;   /* "ns/name": no other pending pod takes part */
    const char *unbind; /* "ns/name": this pod is pending, whatever node it is on */
    bool no_extenders;  /* they are not asked, and hold nothing up */
    int64_t now_ns;
    const struct bh_feature_gates *gates;      /* NULL = defaults; copied */
    const struct bh_engine_observer *observer; /* borrowed; NULL: nobody */
};
struct bh_trial_group {                     /* a PodGroup that was tried */
    uint32_t attempts, placements, fitting; /* of the last: where it was tried, and fits */
    bool fits, failed;                      /* failed: with an error */
    const char *message;
};
struct bh_trial_budget;
struct bh_trial {
    struct bh_trial_options o;
    struct bh_sched_config *config;
    struct bh_offline w;

    struct bh_trial_item *items;
    size_t n_items, cap_items;
    uint32_t n_read;            /* objects of the files */
    struct bh_map by_name;      /* "kind/ns/name" -> index into items + 1 */
    struct bh_map left_out;     /* kind -> how many objects that say nothing about placement */
    struct bh_map pods;         /* uid -> struct bh_trial_pod * */
    struct bh_trial_pod **list; /* in order of creation; those that had to go behind them */
    size_t n_list, cap_list;
    struct bh_trial_budget *budgets;

    struct bh_arena names; /* of files and objects; warnings */
    struct bh_map foreign; /* schedulerName without a profile -> how many pending pods, a number */
    const char **warnings;
    size_t n_warnings;
    uint32_t n_nodes, n_placed_before, n_placed;
    uint32_t n_finished, n_foreign, n_terminating; /* pods that take no part */
    size_t explained_bytes;
    struct bh_feature_gates gates;
    struct bh_map groups; /* "ns/name" -> struct bh_trial_group *, in names */
};

int bh_trial_new(const struct bh_trial_options *o, struct bh_trial **ret, struct bh_err *err);
void bh_trial_free(struct bh_trial *t);
/* Reads all files and fills the engine and the queue. Errors name file, document, object, field. */
int bh_trial_load(struct bh_trial *t, const char *const *paths, size_t n, struct bh_err *err);
/* The same in steps, for objects of the caller's: bh_trial_add_item(), then this. */
int bh_trial_prepare(struct bh_trial *t, struct bh_err *err);
/* Decides until nothing more can change, or the watcher stops it. */
void bh_trial_run(struct bh_trial *t);

/* For the watcher, and kept for the report. */
void bh_trial_warn(struct bh_trial *t, const char *fmt, ...) BH_PRINTF(2, 3);
/* Puts where and what before err's message. Returns rc. */
int bh_trial_blame(struct bh_err *err, int rc, const struct bh_trial_item *it);
void bh_trial_progress(struct bh_trial *t, const char *what, size_t done, size_t total);
bool bh_trial_stopped(const struct bh_trial *t); /* the watcher wants no more of it */

/* ---- items ----------------------------------------------------------------------------------- */

/* Adds an object, or puts it in place of the one of its name (with a warning). 0 also for objects
 * that say nothing about placement; -EINVAL with --strict for unknown kinds. */
int bh_trial_add_item(struct bh_trial *t, const struct bh_trial_source *at,
                      const struct bh_json *obj, struct bh_err *err);
/* Does it take objects of this kind? */
bool bh_trial_wants(const char *api_version, const char *kind);
/* One as an API server stored it. json is borrowed for the life of the trial. */
void bh_trial_add_stored(struct bh_trial *t, const struct bh_trial_source *at,
                         const char *api_version, const char *kind, const char *ns,
                         const char *name, const char *json, size_t n);
/* false: there is none of that name. ns "" for kinds without. */
bool bh_trial_remove_item(struct bh_trial *t, const char *kind, const char *ns, const char *name);
void bh_trial_set_item(struct bh_trial *t, size_t at, const struct bh_json *obj);
struct bh_trial_item *bh_trial_find_item(const struct bh_trial *t, const char *kind, const char *ns,
                                         const char *name);
void bh_trial_items_fini(struct bh_trial *t);
/* Manifests become what the API server would store, workloads their pods. */
int bh_trial_admit(struct bh_trial *t, struct bh_err *err);

/* ---- engine and pods ------------------------------------------------------------------------- */

/* Takes copies; at the end of the list. */
struct bh_trial_pod *bh_trial_add_pod(struct bh_trial *t, const struct bh_pod_rec *rec,
                                      const struct bh_shape_rec *shape);
struct bh_trial_pod *bh_trial_pod_of(const struct bh_trial *t, struct bh_str uid);
static inline struct bh_str bh_trial_uid(const struct bh_trial_pod *p)
{
    return bh_rec_text(p->rec, p->rec->uid);
}
static inline const char *bh_trial_pod_name(const struct bh_trial_pod *p)
{
    return bh_rec_text(p->rec, p->rec->name).p;
}
static inline const char *bh_trial_pod_ns(const struct bh_trial_pod *p)
{
    return bh_rec_text(p->rec, p->rec->namespace_).p;
}

/* A pending pod by name, or NULL. */
struct bh_trial_pod *bh_trial_find_pod(const struct bh_trial *t, const char *ns, const char *name);
/* How a decision about the pod comes out now; nothing changes. */
static inline struct bh_json *bh_trial_explain(struct bh_trial *t, const struct bh_trial_pod *p,
                                               struct bh_arena *a)
{
    const struct bh_pending pending = {.pod = p->rec, .shape = p->shape};

    return bh_offline_explain(&t->w, &pending, a);
}

/* ---- budgets --------------------------------------------------------------------------------- */

/* Budgets are added, see every pod, settle; then they follow: healthy +1 placed, -1 evicted. */
int bh_trial_budgets_add(struct bh_trial *t, struct bh_arena *a, const struct bh_trial_item *it,
                         const struct bh_json *obj, struct bh_err *err);
void bh_trial_budgets_see(struct bh_trial *t, const struct bh_shape_rec *shape, bool placed);
void bh_trial_budgets_settle(struct bh_trial *t);
void bh_trial_budgets_follow(struct bh_trial *t, const struct bh_shape_rec *shape, int healthy);
void bh_trial_budgets_fini(struct bh_trial *t);
/* ---- groups (groups.c) ----------------------------------------------------------------------- */
void bh_trial_on_grouped(void *arg, const struct bh_offline_group *g); /* arg: the trial */
void bh_trial_groups_warn(struct bh_trial *t); /* there are some, and the gate is off */
/* Those with pods that were pending, by name; empty with the gate off (report.c has the members). */
struct bh_json *bh_trial_groups(const struct bh_trial *t, struct bh_arena *a);
struct bh_grid;
void bh_trial_groups_table(const struct bh_trial *t, struct bh_grid *g, bool colour,
                           struct bh_buf *out);
/* ---- reports (report.c, count.c) ------------------------------------------------------------- */

struct bh_trial_summary {
    uint32_t scheduled, unschedulable, gated, failed, preempted, waiting;
};
struct bh_trial_summary bh_trial_summarize(const struct bh_trial *t);
void bh_trial_report(const struct bh_trial *t, struct bh_buf *out);
/* Members that both reports have: kind, apiVersion, warnings. */
struct bh_json *bh_trial_document(const struct bh_trial *t, struct bh_arena *a, const char *kind);
/* How many more of the pending pod fit, at most max (0 = no limit). -EINVAL: it is not just one. */
int bh_trial_count(struct bh_trial *t, int64_t max, struct bh_buf *out, struct bh_err *err);
/* The same for several pods, one of each in turn until one of them does not fit: {replicas: of all
 * together, failReason: {type, message}, pods[]: {name, namespace, replicas, nodes[]: {node,
 * replicas}}}. */
int bh_trial_count_all(struct bh_trial *t, struct bh_trial_pod *const *pods, size_t n, int64_t max,
                       struct bh_arena *a, struct bh_json **ret, struct bh_err *err);
#endif
