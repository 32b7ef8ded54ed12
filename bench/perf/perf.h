/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/perf/perf.h - `berth bench perf`: upstream's scheduler_perf files; private to bench/perf
 *
 * A file is a list of test cases; a test case has operations (opcodes) and workloads, which give
 * the operations their numbers. config.c reads and checks files and makes a plan (struct
 * bh_bench_step) of one workload; template.c renders objects; pods.c, ops.c and
 * objects.c carry the steps out; world.c keeps what they share; measure.c makes
 * results of it and prints them. What the steps act on is a driver (struct bh_bench_driver):
 *
 * Engine (engine.c): one process, one thread, no server and no bus. The simulator's store
 * admits every object as an API server does and tells about commits; these go straight into the
 * engine and the scheduler's queue. Binding is immediate. Only what the scheduler's library does is
 * timed; making, storing and decoding objects is not. Time is made up: an attempt lasts 1/pace
 * seconds, and when no pod can be tried the clock jumps to whatever is due next (a step's tick, a
 * backoff's end). So a churn of five objects a second meets as many pods as it does at a scheduler
 * of that pace, and runs do not depend on the machine.
 *
 * Pipeline (pipeline.c): a fresh cluster of real processes for every workload, as `berth up`
 * starts them, without a kubelet; this process is a client of its API server and nothing else.
 * Time is real.
 *
 * Upstream:   test/integration/scheduler_perf (v1.36); differences: the above, what the .c files
 *             name, and what bh_bench_note is told while a workload runs.
 * Memory:     a file and its strings live in its arena; a plan in the caller's.
 * Threads:    one.
 */
#ifndef BH_BENCH_PERF_H
#define BH_BENCH_PERF_H

#include "cli/cli.h"
#include "common/base/map.h"
#include "common/k8s/selector.h"
#include "common/flags/kube_flags.h"
#include "scheduler/engine/engine.h"
#include "simulator/server/sim.h"

/* ---- files (config.c) ------------------------------------------------------------------------ */

struct bh_bench_selector { /* which number a threshold is about */
    const char *name;      /* metric; NULL = SchedulingThroughput, Average */
    const struct bh_json *labels;
    const char *bucket;
    bool expect_lower;
};
struct bh_bench_workload {
    const char *name;
    const struct bh_json *params, *gates, *labels; /* NULL = none */
    const struct bh_json *threshold;               /* number, or numbers by topic */
    struct bh_bench_selector selector;             /* its own, or the test case's */
};
struct bh_bench_case {
    const char *name, *scheduler_config, *default_pod; /* paths, NULL = none */
    const struct bh_json *gates, *labels, *collectors;
    const struct bh_json *ops; /* array; members are known and spelled as in the table */
    struct bh_bench_workload *workloads;
    uint32_t n_workloads;
};
struct bh_bench_file {
    struct bh_arena arena;
    const char *path, *dir, *topic; /* topic: upstream's name of the folder, "dra_devicetaints" */
    struct bh_bench_case *cases;
    uint32_t n_cases;
};
/* 0; -EINVAL with "FILE: test case NAME: op 2 (createPods): FIELD: ...", or a reader's error. */
int bh_bench_load(const char *path, struct bh_bench_file **ret, struct bh_err *err);
void bh_bench_file_free(struct bh_bench_file *f);

/* Label filter: comma separated; "x" and "+x" need the label, "-x" forbids it. */
bool bh_bench_labels_match(const char *filter, const struct bh_bench_case *c,
                           const struct bh_bench_workload *w);
/* The threshold of a topic; 0 = nothing is checked. */
double bh_bench_threshold(const struct bh_bench_workload *w, const char *topic);

struct bh_bench_world;
struct bh_bench_step;
struct bh_bench_opcode {
    const char *name;
    const struct bh_bench_field *fields; /* ends with name NULL */
    int (*run)(struct bh_bench_world *w, const struct bh_bench_step *s, struct bh_err *err);
};

struct bh_bench_step { /* one operation of one workload, numbers filled in */
    const struct bh_bench_opcode *op;
    uint32_t index; /* after createPodSets were taken apart */
    int64_t count;  /* 0 unless given; createAny and updateAny: 1 */
    const char *namespace_, *prefix, *name, *mode, *stage, *driver, *nodes;
    const char *node_template, *namespace_template, *pod_template, *template_, *pv_template,
        *pvc_template; /* as in the file; NULL = not given */
    bool collect, skip_wait, steady;
    int64_t duration_ns, interval_ms, number, max_claims;
    double per_second;
    /* NULL = not given */
    const struct bh_json *namespaces, *selector, *template_paths, *subresources, *pods_op,
        *allocatable_strategy, *label_strategy, *unique_label_strategy;
};
/* The steps of a workload. -EINVAL: a parameter is missing, of a wrong type, or used nowhere. */
int bh_bench_plan(struct bh_arena *a, const struct bh_bench_file *f, const struct bh_bench_case *c,
                  const struct bh_bench_workload *w, struct bh_bench_step **ret, uint32_t *ret_n,
                  struct bh_err *err);
/* A whole number among the workload's parameters that no operation names; dflt when absent. */
int64_t bh_bench_param(const struct bh_bench_workload *w, const char *name, int64_t dflt);

/* ---- templates (template.c) ------------------------------------------------------------------ */

/* {{ .Index }}, {{ .Count }}, numbers, quoted strings, and upstream's functions of them (AddInt,
 * DivideInt, Mod ...). -EINVAL with line for all else that Go's templates have. */
int bh_bench_render(struct bh_buf *out, const char *text, int64_t index, int64_t count,
                    struct bh_err *err);
/* Members that are spelled in another case than the schema's get its spelling, as the reader of
 * upstream's typed templates takes both. */
void bh_bench_spell(const struct bh_json *obj, const ProtobufCMessageDescriptor *d);

/* An object's YAML, read once: JSON in the schema's spelling that still holds its actions, so that
 * object number i costs one bh_bench_render(). */
struct bh_bench_template {
    char *path;                     /* as in the file, for error texts */
    char *json;                     /* with actions */
    const struct bh_sim_type *type; /* NULL: nothing here serves the kind */
};
/* In the tree of a template's object, before it becomes text. Strings that are added may hold
 * actions. */
typedef int bh_bench_edit(void *arg, struct bh_arena *a, struct bh_json *obj, struct bh_err *err);
/* text: of the file called path; plain: upstream does not take this file as a Go template. edit may
 * be NULL. fini also after an error. */
int bh_bench_template_init(struct bh_bench_template *t, const char *path, const char *text,
                           bool plain, bh_bench_edit *edit, void *arg, struct bh_err *err);
void bh_bench_template_fini(struct bh_bench_template *t);

/* ---- measuring (measure.c) ------------------------------------------------------------------- */

struct bh_bench_window { /* between start and stop of the collectors */
    bool on;
    const char *name; /* last part of the items' Name */
    const struct bh_json *namespaces;
    struct bh_selector *selector; /* NULL = all pods */
    /* When each of the pods that count was bound, by the driver's clock since the window's begin:
     * the engine's own time, or real time. */
    uint64_t *bound_ns;
    size_t n_bound, cap_bound;
    uint64_t began_wall_ns;
};
struct bh_bench_item {
    const char *metric, *unit;
    const char *name;         /* label Name */
    const char *labels[2][2]; /* further ones; NULL = not given */
    const char *bucket[8];    /* NULL ends */
    double value[8];
};
enum bh_bench_process { /* whose CPU time is told apart */
                        BH_BENCH_SCHEDULER,
                        BH_BENCH_WATCHER,
                        BH_BENCH_BINDERS,
                        BH_BENCH_SERVER,
                        BH_BENCH_CLIENT,
                        BH_BENCH_PROCESSES
};
struct bh_bench_row {   /* of the table */
    const char *name;   /* CASE/WORKLOAD */
    const char *failed; /* why, NULL = it ran */
    uint64_t pods, attempts;
    double pods_per_s, threshold;
    bool measured, compared, missed; /* compared: a number was there for the threshold */
    /* engine */
    uint64_t fast, reference;
    double p50_us, p99_us, max_us, engine_s, cpu_s;
    /* pipeline */
    double seconds; /* from the window's begin to the last pod that got a node */
    double sampled; /* SchedulingThroughput, Average */
    double cpu_us[BH_BENCH_PROCESSES], rss_mb[BH_BENCH_PROCESSES]; /* a pod; most in the window */
};
struct bh_bench_report {
    struct bh_arena arena; /* everything below */
    struct bh_bench_item *items;
    size_t n_items;
    struct bh_bench_row *rows;
    size_t n_rows;
    struct bh_bench_note {
        const char *text, *first;
        uint32_t n;
    } * notes;
    size_t n_notes;
    uint32_t n_missed, n_failed;
};
void bh_bench_report_fini(struct bh_bench_report *r); /* of one that began zeroed */
/* What could not be honoured as it is written; the same text of several workloads is told once. */
void bh_bench_note(struct bh_bench_report *r, const char *workload, const char *fmt, ...)
    BH_PRINTF(3, 4);
/* Index rule of upstream's percentiles; v is sorted, n > 0. */
double bh_bench_percentile(const double *v, size_t n, unsigned q);
struct bh_bench_target {
    const struct bh_bench_file *file;
    const struct bh_bench_case *test_case;
    const struct bh_bench_workload *workload;
    const char *name; /* CASE/WORKLOAD */
};
/* Adds the items of the open window and its row; compares with the threshold. Failed lines go to
 * stderr. */
void bh_bench_collect(struct bh_bench_world *w);
/* w: where it failed, for what its open window holds so far; NULL = it did not begin. */
void bh_bench_failed(struct bh_bench_report *r, const struct bh_bench_target *t, const char *why,
                     struct bh_bench_world *w);
void bh_bench_write_json(const struct bh_bench_report *r, struct bh_buf *out);
/* Engine's columns, or the pipeline's; wide: with each process's memory. */
void bh_bench_write_table(const struct bh_bench_report *r, bool pipeline, bool wide,
                          struct bh_buf *out);

/* ---- what carries a workload out ------------------------------------------------------------- */

struct bh_bench_new { /* an object to create */
    const struct bh_sim_type *type;
    const char *ns; /* "" = none */
    struct bh_str json;
    bool may_exist;  /* it being there already is no error */
    bool may_refuse; /* a refusal that comes after the call's end is told in a note only */
    char **ret_name; /* gets the name, to be freed, before create returns; may be NULL */
};
struct bh_bench_seen { /* an object that is listed; valid during the call */
    const char *ns, *name;
    bool bound, attempted; /* pods: has a node; was tried, or is gated */
    bool allocated;        /* claims */
};
typedef void bh_bench_list_fn(void *arg, const struct bh_bench_seen *o);
struct bh_bench_wait {
    int64_t progress_ns, until_ns; /* until_ns: an end without error; INT64_MAX = none */
    uint64_t bound;
    bool looked;     /* the driver's */
    int64_t look_ns; /* the driver's */
};

/* What a workload acts on. Objects may be on their way when a call returns; later calls find what
 * earlier ones did. Except where told, a refusal is the call's result or that of a later settle. */
struct bh_bench_driver {
    const char *name;
    int (*open)(struct bh_bench_world *w, struct bh_err *err);
    void (*close)(struct bh_bench_world *w); /* also after a failed open */

    int (*create)(struct bh_bench_world *w, const struct bh_bench_new *o, struct bh_err *err);
    /* sub "": all but the status; "status", "resize" */
    int (*update)(struct bh_bench_world *w, const struct bh_sim_type *t, const char *ns,
                  const char *name, const char *sub, struct bh_str json, struct bh_err *err);
    /* With its own grace; what is gone is as good. */
    void (*remove)(struct bh_bench_world *w, const struct bh_sim_type *t, const char *ns,
                   const char *name);
    /* Pods of a namespace with these labels (NULL = all), at once or with their own grace. */
    int (*remove_pods)(struct bh_bench_world *w, const char *ns, const struct bh_json *labels,
                       bool at_once, struct bh_err *err);
    /* In w->arena; *ret NULL: it is not there. */
    int (*get)(struct bh_bench_world *w, const struct bh_sim_type *t, const char *ns,
               const char *name, struct bh_json **ret, struct bh_err *err);
    /* By name. ns NULL = all; labels: a map that all have, may be NULL. */
    int (*list)(struct bh_bench_world *w, const struct bh_sim_type *t, const char *ns,
                const struct bh_json *labels, bh_bench_list_fn *fn, void *arg, struct bh_err *err);
    /* A claim gets devices without a pod. -ENOSPC with err: there are none that fit. */
    int (*allocate)(struct bh_bench_world *w, const char *ns, const char *claim,
                    struct bh_err *err);
    /* After each object of an operation: what came of the ones before. */
    int (*settle)(struct bh_bench_world *w, struct bh_err *err);
    /* At an operation's end: all that was sent has its answer. */
    int (*flush)(struct bh_bench_world *w, struct bh_err *err);

    int64_t (*now)(struct bh_bench_world *w);
    /* Until this time, ticks of the background included. */
    int (*pass)(struct bh_bench_world *w, int64_t until_ns, struct bh_err *err);
    /* A bit of waiting, not beyond until_ns. *ret_idle: a good moment to look at objects. */
    int (*advance)(struct bh_bench_world *w, struct bh_bench_wait *x, int64_t until_ns,
                   bool *ret_idle, struct bh_err *err);
    /* Since some point in time, for the window's samples. */
    uint64_t (*clock_ns)(const struct bh_bench_world *w);
    void (*begin)(struct bh_bench_world *w); /* a window opens */
    /* Its items and numbers, under this Name. */
    void (*collect)(struct bh_bench_world *w, const char *name, struct bh_bench_row *row);
};
extern const struct bh_bench_driver bh_bench_engine_driver, bh_bench_pipeline_driver;

/* ---- a workload at work (world.c) ------------------------------------------------------------ */

struct bh_bench_namespace {
    char *name;
    bool known;        /* in upstream's table of namespaces to wait for */
    int64_t expected;  /* pods that a barrier waits for */
    int64_t scheduled; /* pods there that have a node now */
    int64_t bound;     /* pods there that got one since the start */
};
struct bh_bench_victims { /* objects by name */
    struct bh_bench_victim {
        const struct bh_sim_type *type;
        char *ns, *name;
    } * v;
    size_t n, cap;
    /* of those that a list shows: NULL = all names; not those that are allocated */
    const char *glob;
    bool unallocated;
};
/* bh_bench_list_fn: arg is struct bh_bench_victims. */
void bh_bench_add_victim(void *arg, const struct bh_bench_seen *o);
void bh_bench_victims_fini(struct bh_bench_victims *l);
struct bh_bench_custom { /* a kind that a CustomResourceDefinition of the workload made */
    struct bh_bench_custom *next;
    struct bh_sim_type type;
    char *texts[4]; /* of type: group, version, kind, plural */
};
struct bh_bench_background { /* goes on until the workload ends */
    struct bh_bench_background *next;
    int64_t due_ns, interval_ns;
    /* false: it is over */
    bool (*tick)(struct bh_bench_world *w, struct bh_bench_background *b);
    const struct bh_bench_step *step;
    int64_t n;                           /* ticks so far */
    struct bh_bench_template *templates; /* churn */
    size_t n_templates;
    struct bh_bench_victims slots; /* churn: what they hold (name NULL = nothing) */
};
struct bh_bench_options {
    const struct bh_bench_driver *driver;
    const char *config; /* where the workload names none; NULL = defaults */
    int64_t limit_ns;   /* of real time, for a workload's operations */
    /* engine */
    enum bh_tie_break tie_break;
    uint64_t seed;
    bool verify;
    bool cpu;    /* the scheduler's work is timed by CPU time, not by the wall clock */
    double pace; /* attempts a second */
    /* pipeline */
    int64_t binders;
    const char *record; /* --record-decisions of the scheduler */
};
struct bh_bench_world {
    const struct bh_bench_options *o;
    const struct bh_bench_driver *driver;
    void *d; /* the driver's own */
    const struct bh_bench_target *target;
    struct bh_bench_report *report;
    struct bh_progress *progress;
    struct bh_arena arena; /* of the object at hand; reset where one begins */
    struct bh_buf text;    /* the same */
    struct bh_rand rand;   /* of names and nodes that this side draws */
    uint64_t began_ns;     /* real, of the first operation; 0 = not yet */
    uint64_t attempts, bound;
    struct bh_map namespaces; /* struct bh_bench_namespace by name */
    struct bh_map drawn;      /* names of nodes that this side drew */
    struct bh_bench_background *background;
    struct bh_bench_custom *customs;
    bool ticking;
    struct bh_bench_window window;
    bool failed;                      /* what a window holds is not all of it */
    bool stopped;                     /* by a signal: no further workload */
    const struct bh_bench_step *step; /* under way; with done of total for the progress line */
    size_t done, total;
};
int bh_bench_world_init(struct bh_bench_world *w, const struct bh_bench_options *o,
                        const struct bh_bench_target *t, struct bh_bench_report *r,
                        struct bh_progress *p, struct bh_err *err);
void bh_bench_world_fini(struct bh_bench_world *w);
/* Carries a plan out, to the end of its last step. */
int bh_bench_run(struct bh_bench_world *w, const struct bh_bench_step *steps, uint32_t n,
                 struct bh_err *err);

struct bh_bench_namespace *bh_bench_namespace(struct bh_bench_world *w, const char *name);
/* A driver saw that a pod has a node now (label: of the pod, for the window's selector), or that
 * one that had is gone. */
typedef const char *bh_bench_label(void *arg, const char *key);
void bh_bench_saw_bound(struct bh_bench_world *w, const char *ns, bh_bench_label *label, void *arg);
void bh_bench_saw_gone(struct bh_bench_world *w, const char *ns);
/* One object of an operation after the other: true with the next number (i begins at -1), after the
 * driver said what came of those before. */
bool bh_bench_next(struct bh_bench_world *w, int64_t count, int64_t *i, int *rc,
                   struct bh_err *err);
/* The line on stderr; -ETIMEDOUT once the workload took longer than it may. */
int bh_bench_alive(struct bh_bench_world *w, struct bh_err *err);
/* Steps whose time has come. false: there were none. */
bool bh_bench_tick(struct bh_bench_world *w, int64_t now_ns);
int64_t bh_bench_next_tick(const struct bh_bench_world *w); /* INT64_MAX = none */
/* Configuration and gates of the workload, as a scheduler's command line has them; what has no
 * effect is noted. fini also after an error. */
struct bh_bench_setup {
    char *path;  /* configuration, NULL = defaults */
    char *gates; /* "--feature-gates=...", NULL = defaults */
    struct bh_sched_config *config;
    struct bh_kube_flags flags;
    bool has_flags;
};
int bh_bench_setup_init(struct bh_bench_setup *s, struct bh_bench_world *w, struct bh_err *err);
void bh_bench_setup_fini(struct bh_bench_setup *s);
/* Takes the selector over. -EBUSY: the last window is still open. */
int bh_bench_window_begin(struct bh_bench_world *w, const char *name,
                          const struct bh_json *namespaces, struct bh_selector *selector,
                          struct bh_err *err);
void bh_bench_window_end(struct bh_bench_world *w); /* adds its items and row to the report */

/* ---- operations -------------------------------------------------------------------------------- */

/* Each returns when upstream's would, or a negative errno with what went wrong. */
typedef int bh_bench_op_fn(struct bh_bench_world *w, const struct bh_bench_step *s,
                           struct bh_err *err);

/* pods.c */
bh_bench_op_fn bh_bench_create_pods, bh_bench_barrier;
/* ops.c: deletion, time, measuring */
bh_bench_op_fn bh_bench_delete_pods, bh_bench_churn, bh_bench_sleep, bh_bench_start_collecting,
    bh_bench_stop_collecting;
/* objects.c: all else */
bh_bench_op_fn bh_bench_create_nodes, bh_bench_create_namespaces, bh_bench_create_any,
    bh_bench_update_any, bh_bench_allocate_claims, bh_bench_create_driver;

/* ---- objects (objects.c) --------------------------------------------------------------------- */
/* A template of a file, path relative to the workloads' file; without one the base, JSON of ours. Pods with a priority get a class
 * (Priority admission is off at upstream), nodes that say nothing are ready. -EINVAL: no such
 * kind here. fini also after an error. */
int bh_bench_open_template(struct bh_bench_world *w, const char *path, const char *base, bool plain,
                           bh_bench_edit *edit, void *arg, struct bh_bench_template *ret,
                           struct bh_err *err);
/* Creates object number index of a template; its text stays in w->text. */
int bh_bench_create(struct bh_bench_world *w, const struct bh_bench_template *t, int64_t index,
                    int64_t count, const char *ns, bool may_exist, struct bh_err *err);
/* Creates the namespace unless it is in the table already; adds it there. */
int bh_bench_know_namespace(struct bh_bench_world *w, const char *ns, bool may_exist,
                            struct bh_err *err);
/* ---- items of a window (measure.c) ------------------------------------------------------------- */

/* name: the label Name. Valid until the next one is added. */
struct bh_bench_item *bh_bench_item(struct bh_bench_report *r, const char *metric, const char *unit,
                                    const char *name);
void bh_bench_item_label(struct bh_bench_report *r, struct bh_bench_item *it, const char *key,
                         const char *value);
void bh_bench_put(struct bh_bench_item *it, const char *bucket, double v);
/* NULL: there is no such bucket. */
const double *bh_bench_value(const struct bh_bench_item *it, const char *bucket);
/* Average and upstream's percentiles; v gets sorted, n > 0. */
void bh_bench_put_quantiles(struct bh_bench_item *it, double average, double *v, size_t n);
/* Upstream's estimates from a histogram, in ms: bins[i] holds what is above bounds[i - 1] and at
 * most bounds[i]; bins[n] the rest. */
void bh_bench_put_histogram(struct bh_bench_item *it, const double *bounds, const double *bins,
                            size_t n, double sum_s);

struct bh_bench_memory { /* resident, MiB */
    double first, last, most, sum;
    uint32_t n;
};
void bh_bench_see_memory(struct bh_bench_memory *m, double mb);
/* of a process, 0 = this one; 0 when it is gone */
double bh_bench_rss_mb(pid_t pid);
/* User and system time of a process and of its threads that ended, 0 = this one. */
uint64_t bh_bench_cpu_ns_of(pid_t pid);
static inline uint64_t bh_bench_cpu_ns(void)
{
    return bh_bench_cpu_ns_of(0);
}
/* heap_memory_usage, memory_growth_rate, SchedulingDuration. */
void bh_bench_put_memory(struct bh_bench_report *r, const char *name,
                         const struct bh_bench_memory *m, double seconds);

int bh_bench_perf(int argc, char **argv); /* the command */
#endif
