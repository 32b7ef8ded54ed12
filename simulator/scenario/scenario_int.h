/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/scenario/scenario_int.h - what the files of this folder share
 */
#ifndef BH_SIM_SCENARIO_INT_H
#define BH_SIM_SCENARIO_INT_H

#include "common/base/heap.h"
#include "common/base/map.h"
#include "common/k8s/selector.h"
#include "simulator/scenario/scenario.h"
#include "simulator/offline/world.h"

#define BH_SCENARIO_API "sim.berth.dev/v1alpha1"

/* ---- the language (schema.data, schema.c) ---------------------------------------------------- */
struct bh_run;
/* Carries a step out now; what takes longer goes on by itself (bh_run_later). */
typedef int bh_action_fn(struct bh_run *r, const struct bh_json *what, struct bh_err *err);
struct bh_action {
    const char *name;
    bh_action_fn *fn;
    bool selects; /* one of name, selector, count has to be there */
};
extern const struct bh_action bh_scenario_actions[]; /* steps.c; ends with name NULL */
/* The action that a step names, and what it says about it; NULL: none (or more than one). */
const struct bh_action *bh_action_of(const struct bh_json *step, const struct bh_json **ret_what);

struct bh_check { /* a place in the document, and what is wrong there */
    const struct bh_scenario *s;
    struct bh_buf path;
    struct bh_scenario_error *e;
    unsigned text_line; /* where the manifests' text begins, whose lines count from 1 */
    /* Kinds that only plugins may know: judged when the schedulers are, who are read last. */
    struct bh_unserved {
        char *api_version, *kind;
        struct bh_scenario_error e;
    } * unserved;
    size_t n_unserved, cap_unserved;
};
/* Fills c->e with path.key, line of at, and the text; returns -EINVAL. key may be NULL. */
int bh_check_fail(struct bh_check *c, const struct bh_json *at, const char *key, const char *fmt,
                  ...) BH_PRINTF(4, 5);
int bh_check_fields(struct bh_check *c, const char *object, const struct bh_json *v);
/* Is there such a kind? at, key: where it stands, if nobody reads it either. */
int bh_check_kind(struct bh_check *c, const struct bh_json *at, const char *key,
                  const char *api_version, const char *kind);
/* The kinds that were put off; frees them, also with rc < 0, which it returns then. */
int bh_check_unserved(struct bh_check *c, int rc);
/* An object that could be created. */
int bh_check_manifest(struct bh_check *c, const struct bh_json *v);
size_t bh_check_push(struct bh_check *c, const char *fmt, ...) BH_PRINTF(2, 3);
void bh_check_pop(struct bh_check *c, size_t mark);
/* "30s" or 0; absent: dflt. Checked before. */
int64_t bh_field_duration(const struct bh_json *obj, const char *key, int64_t dflt);
/* N or "N%" of total, rounded up. */
int64_t bh_field_amount(const struct bh_json *v, int64_t total);
/* Objects of text in YAML or JSON, lists taken apart. */
int bh_manifests_parse(struct bh_arena *a, const char *text, size_t n, struct bh_json **ret_list,
                       struct bh_err *err);
/* A file named in the scenario, in a. */
int bh_scenario_file(const struct bh_scenario *s, struct bh_arena *a, const char *path,
                     const char **ret, size_t *ret_n, struct bh_err *err);
char *bh_scenario_path(const struct bh_scenario *s, const char *path); /* caller frees */

/* ---- a run ----------------------------------------------------------------------------------- */
#define BH_RUN_RESOURCES 16

enum bh_run_state {
    BH_RUN_WAITING, /* never tried */
    BH_RUN_UNSCHEDULABLE,
    BH_RUN_ERROR,
    BH_RUN_BOUND,
    BH_RUN_COMPLETED, /* Succeeded or Failed on its node */
    BH_RUN_PREEMPTED,
    BH_RUN_DELETED,
    BH_RUN_STATES
};
extern const char *const bh_run_state_names[BH_RUN_STATES];
struct bh_run_node {
    const char *name;
    bool alive, unschedulable;
    uint32_t pods;
    int64_t alloc[BH_RUN_RESOURCES], used[BH_RUN_RESOURCES], alloc_pods;
};
struct bh_run_pod {
    const char *ns, *name, *uid, *key;     /* key: the same pod of another run */
    int64_t created_ns, bound_ns, gone_ns; /* after begin; -1 = not (yet) */
    struct bh_run_node *node;              /* the last one it was on */
    bool on_node;                          /* it counts there */
    enum bh_run_state state;
    uint32_t attempts;
    const char *reason, *message; /* of the last failed attempt */
    const char *preemptor;        /* the pod it went for; NULL */
    int64_t req[BH_RUN_RESOURCES];
};
struct bh_run_event {
    int64_t at_ns;
    const char *what;
    const char *kind, *ns, *name, *node, *detail; /* NULL = none */
};
struct bh_run_sample {
    int64_t at_ns;
    uint32_t nodes, pods, pending;
    uint64_t bound, attempts; /* since the start */
    float share[BH_RUN_RESOURCES], stranded[BH_RUN_RESOURCES], skew[BH_RUN_RESOURCES];
};
struct bh_run_verdict {
    const char *text, *actual;
    bool passed;
    int64_t at_ns;
    uint32_t line;
};
typedef void bh_later_fn(struct bh_run *r, void *arg);
struct bh_run {
    const struct bh_scenario *s;
    const struct bh_scenario_options *o;
    const struct bh_scenario_scheduler *scheduler;
    struct bh_world w;
    bool has_world;
    struct bh_player *player; /* of a record file; NULL: none was loaded */
    struct bh_arena a;        /* of the step at hand */
    struct bh_arena keep;     /* of the whole run */
    struct bh_symtab *texts;  /* the same for texts, each of them once */
    struct bh_rand rand;      /* draws of steps */
    struct bh_heap later;     /* of struct later, the next first */
    uint64_t later_seq;
    struct bh_map pods, nodes, keys; /* uid; name; base of key -> how many so far */
    struct bh_run_pod **pod;         /* in order of creation */
    size_t n_pods, cap_pods;
    struct bh_run_node **node;
    size_t n_nodes, cap_nodes;
    bh_sym resource[BH_RUN_RESOURCES]; /* cpu and memory first */
    const char *resource_name[BH_RUN_RESOURCES];
    uint32_t n_resources;
    double asked[BH_RUN_RESOURCES]; /* by all pods so far */
    uint64_t n_asked[BH_RUN_RESOURCES];
    struct bh_run_event *event;
    size_t n_events, cap_events, events_left_out;
    struct bh_run_sample *sample;
    size_t n_samples, cap_samples;
    int64_t sample_every_ns, sample_next_ns;
    struct bh_run_verdict *verdict;
    size_t n_verdicts;
    uint64_t attempts, failed_attempts, bound, preemptions;
    uint64_t *took_ns; /* with times */
    size_t cap_took;
    uint32_t pending;
    int64_t changed_ns, end_ns; /* after begin */
    uint64_t ticks;
    bool done; /* a doneOperation was met */
    struct bh_err trouble;
    int trouble_rc;
    struct bh_map groups; /* "ns/name" -> what was said of it last, in texts */
};
static inline int64_t bh_run_at(const struct bh_run *r)
{
    return r->w.offline.now_ns - r->s->begin_ns;
}
/* s for as long as the run's accounts live; NULL for NULL. */
const char *bh_run_text(struct bh_run *r, const char *s);
/* fn runs at that time (after begin), behind earlier ones of that time. arg lives in keep. */
void bh_run_later(struct bh_run *r, int64_t at_ns, bh_later_fn *fn, void *arg);
void bh_run_settle(struct bh_run *r); /* the world settles; progress, cancelling */
/* First trouble wins. */
void bh_run_trouble(struct bh_run *r, int rc, const struct bh_err *err);
void bh_run_note(struct bh_run *r, const char *what, const char *kind, const char *ns,
                 const char *name, const char *node, const char *detail);
struct bh_run_pod *bh_run_pod_of(struct bh_run *r, const char *uid);

/* watch.c: what the world tells */
void bh_run_on_commit(void *arg, const struct bh_world_commit *c);
void bh_run_on_tried(void *arg, const struct bh_offline_try *t);
void bh_run_on_grouped(void *arg, const struct bh_offline_group *g);
void bh_run_sample(struct bh_run *r, int64_t at_ns); /* what is now, as of then */
/* An object of a manifest goes into the store (a clone of it). -EEXIST, -EINVAL. */
int bh_run_create(struct bh_run *r, const struct bh_json *obj, struct bh_err *err);
/* expect.c: one entry of the list, now. */
bh_later_fn bh_run_expect; /* of this expectation (struct bh_json) */
/* Keeps what the label selector matches, in order; text NULL: everything. */
void bh_run_select(struct bh_sim_objs *l, const char *text);
/* trace.c: the action `load` */
bh_action_fn bh_action_load;
/* result.c */
void bh_result(const struct bh_scenario *s, const struct bh_run *runs, uint32_t n,
               struct bh_buf *ret_json, bool *ret_passed);
/* A number of the summary by its name there; false: there is none of that name. */
bool bh_run_metric(const struct bh_run *r, const char *name, double *ret);
#endif
