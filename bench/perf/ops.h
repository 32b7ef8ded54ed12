/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/perf/ops.h - who carries out which operation; private to bench/perf
 *
 * The table is in config.c. Each returns when upstream's operation would, or a negative errno
 * with what went wrong.
 */
#ifndef BH_BENCH_OPS_H
#define BH_BENCH_OPS_H

#include "bench/perf/perf.h"

typedef int bh_bench_op_fn(struct bh_bench_world *w, const struct bh_bench_step *s,
                           struct bh_err *err);

/* pods.c */
bh_bench_op_fn bh_bench_create_pods, bh_bench_barrier;
/* ops.c: deletion, time, measuring */
bh_bench_op_fn bh_bench_delete_pods, bh_bench_churn, bh_bench_sleep, bh_bench_start_collecting,
    bh_bench_stop_collecting;
/* objects.c: all else */
bh_bench_op_fn bh_bench_create_nodes, bh_bench_create_namespaces, bh_bench_create_any,
    bh_bench_update_any, bh_bench_create_claims, bh_bench_allocate_claims, bh_bench_create_driver;

/* ---- objects (objects.c) --------------------------------------------------------------------- */
/* A template of a file, path relative to the workloads' file. Pods with a priority get a class
 * (Priority admission is off at upstream), nodes that say nothing are ready. -EINVAL: no such
 * kind here. fini also after an error. */
int bh_bench_open_template(struct bh_bench_world *w, const char *path, bool plain,
                           bh_bench_edit *edit, void *arg, struct bh_bench_template *ret,
                           struct bh_err *err);
/* Object number i of a template, as text in w->text. */
int bh_bench_object(struct bh_bench_world *w, const struct bh_bench_template *t, int64_t index,
                    int64_t count, struct bh_err *err);
/* Creates it. */
int bh_bench_create(struct bh_bench_world *w, const struct bh_bench_template *t, const char *ns,
                    bool may_exist, struct bh_err *err);
/* Creates the namespace unless it is in the table already; adds it there. */
int bh_bench_know_namespace(struct bh_bench_world *w, const char *ns, bool may_exist,
                            struct bh_err *err);
/* A tree of literal JSON. */
struct bh_json *bh_bench_literal(struct bh_arena *a, const char *json);
#endif
