/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/perf/pipeline.h - the pipeline mode's cluster and its client; private to bench/perf
 *
 * One connection carries all writes, pipelined, so the server sees them in the order of the calls;
 * another one is a watch of the pods that have a node (field selector spec.nodeName!=), from which
 * every count of bound pods and every rate comes.
 */
#ifndef BH_BENCH_PIPELINE_H
#define BH_BENCH_PIPELINE_H

#include "bench/perf/perf.h"
#include "cli/cluster.h"
#include "cli/up.h"
#include "common/k8s/codec.h"

struct bh_bench_call; /* a request on its way */
struct bh_bench_pipeline {
    struct bh_up *up;
    struct bh_bench_setup setup;
    uv_timer_t timer; /* the loop wakes up */
    /* writes */
    struct bh_api_client *writes;
    struct bh_bench_call *idle; /* for the next requests */
    size_t in_flight;
    struct bh_err trouble; /* first refusal, or what happened to the cluster */
    int trouble_rc;
    struct bh_err refusal; /* the first one that may be, of so many */
    uint32_t n_refusals;
    int64_t list_ns; /* what the last LIST took */
    /* the watch */
    struct bh_cluster api;
    bool has_api, watching, closing;
    struct bh_watch_reader *reader;
    /* allocResourceClaims: the cluster's devices and claims, copied at its first call */
    struct bh_offline *copy;
    /* of the window */
    uint64_t cpu_ns[BH_UP_CHILDREN + 1]; /* of each child; the last: our own */
    struct bh_bench_memory memory[BH_UP_CHILDREN + 1];
    uint64_t memory_ns;   /* when it was seen last */
    struct bh_buf before; /* the scheduler's metrics */
};

/* ---- client.c -------------------------------------------------------------------------------- */
void bh_bench_client_init(struct bh_bench_pipeline *p); /* first: the loop wakes up */
/* Connects; from then on pods are watched. */
int bh_bench_client_open(struct bh_bench_world *w, struct bh_err *err);
void bh_bench_client_close(struct bh_bench_world *w);
/* Runs the loop once, for 5 ms at most, and what is due. What is wrong with the cluster, or with an
 * earlier request. */
int bh_bench_pump(struct bh_bench_world *w, struct bh_err *err);
/* Until every request has its answer. */
int bh_bench_client_flush(struct bh_bench_world *w, struct bh_err *err);
struct bh_bench_request {
    const char *method, *path, *content_type;
    struct bh_str body;
    bool may_exist;  /* 409 is no error */
    bool may_miss;   /* 404 is no error */
    bool may_fail;   /* a failure is no error */
    bool may_refuse; /* a refusal is told in a note only */
    bool redraw;     /* 409: sent again when the server draws the name */
};
/* Goes out with the loop's next turn; waits while there are too many on the wire. */
int bh_bench_send(struct bh_bench_world *w, const struct bh_bench_request *q, struct bh_err *err);
/* Waits for the answer. *ret (may be NULL): its tree in a, or NULL when it may miss and does. */
int bh_bench_ask(struct bh_bench_world *w, const struct bh_bench_request *q, struct bh_arena *a,
                 struct bh_json **ret, struct bh_err *err);
/* GET from the scheduler's own socket. */
int bh_bench_ask_scheduler(struct bh_bench_pipeline *p, const char *path, int *ret_code,
                           struct bh_buf *body, struct bh_err *err);
/* ---- claims.c ----------------------------------------------------------------------- */
int bh_bench_pipeline_allocate(struct bh_bench_world *w, const char *ns, const char *claim,
                               struct bh_err *err);
/* ---- measure_pipeline.c ---------------------------------------------------------------------- */
void bh_bench_begin_pipeline(struct bh_bench_world *w);
void bh_bench_look_at_memory(struct bh_bench_world *w); /* twice a second */
void bh_bench_collect_pipeline(struct bh_bench_world *w, const char *name,
                               struct bh_bench_row *row);
size_t bh_bench_ticks(const struct bh_bench_window *x); /* how many samples there are at most */
/* Upstream's samples, pods a second, at ticks from the window's begin on: the first tick that saw a
 * pod only starts the clock, a tick without a new pod adds its time to the next one's and repeats
 * that one's rate. Returns how many; out: room for bh_bench_ticks(). */
size_t bh_bench_sample(const struct bh_bench_window *x, double *out);
/* histograms.c: items of metricsCollectorConfig (NULL = upstream's default list) from what
 * the scheduler's metrics grew by. */
void bh_bench_put_histograms(struct bh_bench_report *r, const struct bh_json *collectors,
                             const char *before, const char *after, const char *name);
/* A counter's sum over all series with this text in their labels, "" = all. */
double bh_bench_sum(const char *text, const char *counter, const char *label);
#endif
