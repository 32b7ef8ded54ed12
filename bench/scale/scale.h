/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/scale/scale.h - `berth bench scale`: how the cost of a decision, of memory and of a start
 * grows with the cluster; private to bench/scale
 *
 * For each size two processes, as in production:
 *   the watcher's part   objects as the API server sends them (protobuf, made up) are unpacked,
 *                        compiled and published in a snapshot in shared memory; from then on it
 *                        publishes the bindings it is told of, and as many deletions
 *   the scheduler's part follows the snapshot as the daemon does (daemon/intake.h) into an engine,
 *                        and decides: pods of many templates in random order, each assumed at once,
 *                        confirmed and in the end deleted through the change log
 * There is no API server and no queue; a pending pod's object is unpacked and compiled outside of
 * what is timed. The decisions depend on nothing but the options.
 *
 * scale.c         the command; starts the two, collects
 * objects.c what nodes, templates and pods look like
 * watch.c   the watcher's part
 * decide.c  the scheduler's part
 * report.c  table, JSON, plots
 * plugins.h `berth bench plugins`: one score in each form that a plugin can have
 */
#ifndef BH_BENCH_SCALE_H
#define BH_BENCH_SCALE_H

#include <signal.h>

#include "cli/cli.h"
#include "common/k8s/compile.h"
#include "common/snapshot/snapshot.h"
#include "scheduler/engine/engine.h"

#define BH_SCALE_SIZES_MAX 16u

struct bh_scale_options {
    uint32_t nodes[BH_SCALE_SIZES_MAX]; /* rising */
    uint32_t n_sizes;
    uint32_t templates, decisions, pods_per_node, zones;
    uint64_t seed;
    enum bh_tie_break tie_break;
    bool verify;      /* the engine decides on both paths and stops at a difference */
    bool cpu;         /* latencies in CPU time of the thread, not wall time */
    const char *only; /* templates of this kind alone, NULL = the mix */
};

/* ---- objects (objects.c) --------------------------------------------------------------------- */
/* Kinds of templates, and how many of 100 are such. */
enum bh_scale_kind {
    BH_SCALE_PLAIN,     /* requests alone */
    BH_SCALE_SELECTOR,  /* nodeSelector on a zone */
    BH_SCALE_TOLERATES, /* tolerates the dedicated nodes' taint */
    BH_SCALE_PREFERS,   /* preferred node affinity */
    BH_SCALE_SPREAD,    /* topologySpreadConstraints over zones */
    BH_SCALE_APART,     /* required anti-affinity on hostname against its own kind */
    BH_SCALE_KINDS
};
extern const char *const bh_scale_kind_names[BH_SCALE_KINDS];
struct bh_scale_objects; /* packed objects with places for their numbers */
/* NULL with err: a template does not compile (a bug). */
struct bh_scale_objects *bh_scale_objects_new(const struct bh_scale_options *o, uint32_t nodes,
                                              struct bh_err *err);
void bh_scale_objects_free(struct bh_scale_objects *s);
uint32_t bh_scale_templates(const struct bh_scale_objects *s); /* with --only: fewer */
enum bh_scale_kind bh_scale_kind_of(const struct bh_scale_objects *s, uint32_t tmpl);
#define BH_SCALE_NO_NODE UINT32_MAX
/* Records in the arena, from the object's bytes on. */
int bh_scale_node(struct bh_scale_objects *s, uint32_t node, struct bh_arena *a,
                  const struct bh_interner *in, struct bh_node_rec **ret, struct bh_err *err);
int bh_scale_pod(struct bh_scale_objects *s, uint32_t tmpl, uint32_t pod, uint32_t node,
                 struct bh_arena *a, const struct bh_interner *in, struct bh_shape_rec **ret_shape,
                 struct bh_pod_rec **ret_pod, struct bh_err *err);
/* The object of the template's pod that was made last without a node. Until the next one. */
struct bh_str bh_scale_pod_bytes(const struct bh_scale_objects *s, uint32_t tmpl);
#define BH_SCALE_NAME_BYTES 48u
void bh_scale_uid(uint32_t pod, char out[static BH_SCALE_NAME_BYTES]);
uint32_t bh_scale_node_number(const char *name); /* of a node's name */

/* ---- results --------------------------------------------------------------------------------- */
struct bh_scale_latency {
    uint32_t n;
    double p50, p90, p99, p999, max; /* microseconds */
};
struct bh_scale_watcher { /* fixed size: goes through a pipe */
    uint64_t nodes, pods, shapes, symbols;
    double build_s, build_cpu_s, longest_ms; /* longest: one publication, a move of the snapshot */
    double node_bytes, pod_bytes;            /* of this process and of the snapshot, together */
    double snapshot_mb, rss_mb;              /* shared; private */
};
struct bh_scale_scheduler {
    double attach_s, attach_cpu_s; /* from nothing to everything in the engine */
    double first_ms;               /* the first decision */
    double node_bytes, pod_bytes;  /* private memory */
    double rss_mb, rss_end_mb;     /* after the attaching, at the end */
    double template_ms;            /* the first sight of one, on the average */
    uint64_t nowhere, fast, rescored, misses;
    double decide_s, follow_s; /* decisions; changes of the log into the engine */
    double per_s;              /* decisions, following included */
    struct bh_scale_latency all, kind[BH_SCALE_KINDS];
};
struct bh_scale_result {
    uint32_t nodes;
    struct bh_scale_watcher w;
    struct bh_scale_scheduler s;
};

/* ---- the two parts --------------------------------------------------------------------------- */
/* What the scheduler's part asks of the watcher's, through a socket: numbers, then so many items.
 * The answer is the log position after them. */
struct bh_scale_order {
    uint32_t n;
    uint32_t pad;
};
struct bh_scale_item {
    uint32_t pod, tmpl, node; /* node BH_SCALE_NO_NODE: the pod is deleted */
};
/* Both run in a process of their own and return its exit status; result goes to out, and errors to
 * stderr. peer: the socket; the watcher's part ends when it is closed. */
int bh_scale_watch(const struct bh_scale_options *o, uint32_t nodes, const char *runtime_dir,
                   int out, int peer);
int bh_scale_decide(const struct bh_scale_options *o, uint32_t nodes, const char *runtime_dir,
                    int out, int peer);
/* All n bytes. false: the other side is gone, or we are stopped. */
bool bh_scale_read(int fd, void *p, size_t n);
bool bh_scale_write(int fd, const void *p, size_t n);
extern volatile sig_atomic_t bh_scale_stopped; /* by a signal: end, and leave nothing behind */
double bh_scale_anon_bytes(void);              /* private memory of this process in use */
double bh_scale_cpu_s(void);                   /* of this thread */
static inline uint32_t bh_scale_initial_pods(const struct bh_scale_options *o, uint32_t nodes)
{
    return nodes * o->pods_per_node;
}

/* ---- report (report.c) ----------------------------------------------------------------------- */
void bh_scale_table(const struct bh_scale_options *o, const struct bh_scale_result *r, uint32_t n,
                    struct bh_buf *out);
void bh_scale_json(const struct bh_scale_options *o, const struct bh_scale_result *r, uint32_t n,
                   struct bh_buf *out);
/* html: a page with table and plots; else the plots as one SVG. */
void bh_scale_plots(const struct bh_scale_options *o, const struct bh_scale_result *r, uint32_t n,
                    bool html, struct bh_buf *out);

int bh_bench_scale(int argc, char **argv); /* the commands */
int bh_bench_plugins(int argc, char **argv);
#endif
