/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/bench.h - `berth bench perf`: upstream's scheduler_perf files; private to cli/bench*.c
 *
 * A file is a list of test cases; a test case has operations (opcodes) and workloads, which give
 * the operations their numbers. bench_config.c reads and checks files and makes a plan (struct
 * bh_bench_step) of one workload; bench_template.c renders objects; bench_ops.c carries the steps
 * out; bench_world.c is the cluster they act on, a world of simulator/scenario/world.h;
 * bench_measure.c collects, judges and prints.
 *
 * Engine mode, the only one: one process, one thread, no server and no bus. The simulator's store
 * admits every object as an API server does and tells about commits; these go straight into the
 * engine and the scheduler's queue. Binding is immediate. Only what the scheduler's library does is
 * timed (two sums, see struct bh_bench_world); making, storing and decoding objects is not.
 * Time is made up: an attempt lasts 1/pace seconds, and when nobody can be tried the clock jumps to
 * whatever is due next (a step's tick, a backoff's end). So a churn of five objects a second meets
 * as many pods as it does at a scheduler of that pace, and runs do not depend on the machine.
 *
 * Upstream: test/integration/scheduler_perf (v1.36); differences: the above, and what bh_bench_note
 * is told while a workload runs.
 * Memory: a file and its strings live in its arena; a plan in the caller's. Threads: one.
 */
#ifndef BH_BENCH_H
#define BH_BENCH_H

#include "cli/cli.h"
#include "common/base/map.h"
#include "common/k8s/selector.h"
#include "simulator/scenario/world.h"

/* ---- files (bench_config.c) --------------------------------------------------------------------
 */

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
extern const struct bh_bench_opcode bh_bench_opcodes[]; /* ends with name NULL */

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

/* ---- templates (bench_template.c) --------------------------------------------------------------
 */

/* {{ .Index }}, {{ .Count }}, numbers, quoted strings, and upstream's functions of them (AddInt,
 * DivideInt, Mod ...). -EINVAL with line for all else that Go's templates have. */
int bh_bench_render(struct bh_buf *out, const char *text, int64_t index, int64_t count,
                    struct bh_err *err);
/* Members that are spelled in another case than the schema's get its spelling, as the reader of
 * upstream's typed templates takes both. */
void bh_bench_spell(const struct bh_json *obj, const ProtobufCMessageDescriptor *d);

/* ---- measuring (bench_measure.c) ---------------------------------------------------------------
 */

enum bh_bench_result {
    BH_BENCH_SCHEDULED,
    BH_BENCH_UNSCHEDULABLE,
    BH_BENCH_ERROR,
    BH_BENCH_RESULTS
};
struct bh_bench_sample {
    uint64_t ns;
    enum bh_bench_result result;
};
struct bh_bench_window { /* between start and stop of the collectors */
    bool on;
    const char *name; /* last part of the items' Name */
    const struct bh_json *namespaces;
    struct bh_selector *selector; /* NULL = all pods */
    /* Of the pods that count: the engine's time when each was bound. */
    uint64_t *bound_ns;
    size_t n_bound, cap_bound;
    struct bh_bench_sample *attempts; /* all of the window */
    size_t n_attempts, cap_attempts;
    uint64_t began_wall_ns, began_engine_ns, began_cpu_ns;
    struct bh_engine_stats began;
    double rss_mb[3]; /* first, last, most */
    double rss_sum;
    uint32_t rss_n;
};
struct bh_bench_item {
    const char *metric, *unit;
    const char *name;         /* label Name */
    const char *labels[2][2]; /* further ones; NULL = not given */
    const char *bucket[8];    /* NULL ends */
    double value[8];
};
struct bh_bench_row {   /* of the table */
    const char *name;   /* CASE/WORKLOAD */
    const char *failed; /* why, NULL = it ran */
    uint64_t pods, attempts, failures, fast, reference;
    double pods_per_s, p50_us, p99_us, max_us, engine_s, cpu_s, threshold;
    bool measured, missed;
};
struct bh_bench_report {
    struct bh_arena arena; /* everything below */
    struct bh_bench_item *items;
    size_t n_items, cap_items;
    struct bh_bench_row *rows;
    size_t n_rows, cap_rows;
    struct bh_bench_note {
        const char *text, *first;
        uint32_t n;
    } * notes;
    size_t n_notes;
    uint32_t n_missed, n_failed;
};
void bh_bench_report_init(struct bh_bench_report *r);
void bh_bench_report_fini(struct bh_bench_report *r);
/* What could not be honoured as it is written; the same text of several workloads is told once. */
void bh_bench_note(struct bh_bench_report *r, const char *workload, const char *fmt, ...)
    BH_PRINTF(3, 4);
/* Index rule of upstream's percentiles; v is sorted, n > 0. */
double bh_bench_percentile(const double *v, size_t n, unsigned q);
/* Adds the items of a window and its row; compares with the threshold. failed lines go to stderr.
 */
struct bh_bench_target {
    const struct bh_bench_file *file;
    const struct bh_bench_case *test_case;
    const struct bh_bench_workload *workload;
    const char *name; /* CASE/WORKLOAD */
};
void bh_bench_collect(struct bh_bench_report *r, const struct bh_bench_target *t,
                      struct bh_bench_world *w);
/* w: where it failed, for what its open window holds so far; NULL = it did not begin. */
void bh_bench_failed(struct bh_bench_report *r, const struct bh_bench_target *t, const char *why,
                     struct bh_bench_world *w);
void bh_bench_write_json(const struct bh_bench_report *r, struct bh_buf *out);
void bh_bench_write_table(const struct bh_bench_report *r, struct bh_buf *out);

/* ---- the cluster (bench_world.c) ---------------------------------------------------------------
 */

struct bh_bench_namespace {
    char *name;
    bool known;        /* in upstream's table of namespaces to wait for */
    int64_t expected;  /* pods that a barrier waits for */
    int64_t scheduled; /* pods there that have a node now */
    int64_t bound;     /* pods there that got one since the start */
};
struct bh_bench_background { /* goes on until the workload ends */
    struct bh_bench_background *next;
    int64_t due_ns, interval_ns;
    /* false: it is over */
    bool (*tick)(struct bh_bench_world *w, struct bh_bench_background *b);
    const struct bh_bench_step *step;
    int64_t n;    /* ticks so far */
    char **texts; /* churn: its templates */
    size_t n_texts;
    /* churn: what the slots hold (name NULL = nothing); deletePods: who has to go */
    struct bh_bench_victim {
        const struct bh_sim_type *type;
        char *ns, *name;
    } * slots;
    size_t n_slots;
};
struct bh_bench_options {
    const char *config; /* where the workload names none; NULL = defaults */
    enum bh_tie_break tie_break;
    uint64_t seed;
    bool verify;
    double pace;      /* attempts a second */
    int64_t limit_ns; /* of real time, for a workload; looked at between two attempts */
};
struct bh_bench_world {
    const struct bh_bench_options *o;
    const struct bh_bench_target *target;
    struct bh_bench_report *report;
    struct bh_progress *progress;
    struct bh_world cluster; /* engine, store, queue, clock */
    bool has_cluster;
    struct bh_sim_controllers *controllers; /* NULL: nobody needs them */
    struct bh_kube_flags flags;
    bool has_flags;
    struct bh_sched_config *config;
    struct bh_arena arena; /* of the object at hand */
    uint64_t began_ns;     /* real */
    uint64_t attempts, bound;
    struct bh_map attempted;  /* uid of pods that were rejected once */
    struct bh_map namespaces; /* struct bh_bench_namespace by name */
    struct bh_bench_background *background;
    struct bh_bench_window window;
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
/* Creates obj (a tree in w->arena). -EEXIST, or -EINVAL with the server's text. */
int bh_bench_create(struct bh_bench_world *w, const struct bh_sim_type *t, const char *ns,
                    struct bh_json *obj, struct bh_sim_obj **ret, struct bh_err *err);
/* What the store committed goes into engine and queue. -EINVAL: an object cannot be read. */
int bh_bench_settle(struct bh_bench_world *w, struct bh_err *err);
/* One attempt at most, and what is due in the background. false: nobody can be tried now. */
bool bh_bench_attempt(struct bh_bench_world *w);
/* The clock jumps to what is due next, at most to until. false: nothing is due before. */
bool bh_bench_jump(struct bh_bench_world *w, int64_t until_ns);
/* Attempts and jumps until the clock is there. */
void bh_bench_pass(struct bh_bench_world *w, int64_t until_ns);
/* Controllers of the store act on what was created. false: there are none, or nothing changed. */
bool bh_bench_controllers(struct bh_bench_world *w);
/* A claim gets devices without a pod. -ENOSPC with err: there are none that fit. */
int bh_bench_allocate(struct bh_bench_world *w, const struct bh_sim_obj *claim, struct bh_err *err);
static inline uint64_t bh_bench_engine_ns(const struct bh_bench_world *w)
{
    return w->cluster.decide_ns + w->cluster.intake_ns;
}
/* Takes the selector over. -EBUSY: the last window is still open. */
int bh_bench_window_begin(struct bh_bench_world *w, const char *name,
                          const struct bh_json *namespaces, struct bh_selector *selector,
                          struct bh_err *err);
void bh_bench_window_end(struct bh_bench_world *w); /* adds its items and row to the report */
#endif
