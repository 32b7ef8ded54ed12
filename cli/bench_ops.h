/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/bench_ops.h - who carries out which operation; private to cli/bench*.c
 *
 * The table is in bench_config.c. Each returns when upstream's operation would, or a negative errno
 * with what went wrong.
 */
#ifndef BH_BENCH_OPS_H
#define BH_BENCH_OPS_H

#include "cli/bench.h"

typedef int bh_bench_op_fn(struct bh_bench_world *w, const struct bh_bench_step *s,
                           struct bh_err *err);

/* bench_ops.c: pods, time, measuring */
bh_bench_op_fn bh_bench_create_pods, bh_bench_delete_pods, bh_bench_churn, bh_bench_barrier,
    bh_bench_sleep, bh_bench_start_collecting, bh_bench_stop_collecting;
/* bench_objects.c: all else */
bh_bench_op_fn bh_bench_create_nodes, bh_bench_create_namespaces, bh_bench_create_any,
    bh_bench_update_any, bh_bench_create_claims, bh_bench_allocate_claims, bh_bench_create_driver;

/* ---- templates (bench_objects.c) ---------------------------------------------------------------
 */
/* The text of a template, read once per step. path: relative to the file's folder. */
int bh_bench_template_read(struct bh_bench_world *w, const char *path, char **ret,
                           struct bh_err *err);
/* One object of it, spelled as the schema, in w->arena (which is reset first). plain: upstream does
 * not take this file as a Go template. */
int bh_bench_object(struct bh_bench_world *w, const char *text, bool plain, int64_t index,
                    int64_t count, struct bh_json **ret, const struct bh_sim_type **ret_type,
                    struct bh_err *err);
/* Creates the namespace unless it is in the table already; adds it there. */
int bh_bench_know_namespace(struct bh_bench_world *w, const char *ns, bool may_exist,
                            struct bh_err *err);
/* Priority admission is off at upstream: a priority that is given as a number gets a class. */
int bh_bench_give_class(struct bh_bench_world *w, struct bh_json *pod, struct bh_err *err);
/* A tree of literal JSON in w->arena. */
struct bh_json *bh_bench_literal(struct bh_bench_world *w, const char *json);
#endif
