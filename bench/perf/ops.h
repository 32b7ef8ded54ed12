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

/* bench_pods.c */
bh_bench_op_fn bh_bench_create_pods, bh_bench_barrier;
/* bench_ops.c: deletion, time, measuring */
bh_bench_op_fn bh_bench_delete_pods, bh_bench_churn, bh_bench_sleep, bh_bench_start_collecting,
    bh_bench_stop_collecting;
/* bench_objects.c: all else */
bh_bench_op_fn bh_bench_create_nodes, bh_bench_create_namespaces, bh_bench_create_any,
    bh_bench_update_any, bh_bench_create_claims, bh_bench_allocate_claims, bh_bench_create_driver;

/* ---- objects (bench_objects.c) -----------------------------------------------------------------
 */
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
/* Priority admission is off at upstream: a priority that is given as a number gets a class. */
int bh_bench_give_class(struct bh_bench_world *w, struct bh_arena *a, struct bh_json *pod,
                        struct bh_err *err);
/* A tree of literal JSON. */
struct bh_json *bh_bench_literal(struct bh_arena *a, const char *json);
/* labelSelector's map; NULL with *ret_rc 0: all. */
struct bh_selector *bh_bench_selector_of(const struct bh_json *labels, struct bh_err *err,
                                         int *ret_rc);
/* One step of waiting. 1: go on; 0: until_ns is there; -ETIMEDOUT: nothing has moved for long. */
struct bh_bench_wait bh_bench_wait_begin(struct bh_bench_world *w, int64_t until_ns);
int bh_bench_wait_step(struct bh_bench_world *w, struct bh_bench_wait *x, bool *ret_idle,
                       struct bh_err *err);
#endif
