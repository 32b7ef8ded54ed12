/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/scale/plugins.h - what the files of `berth bench plugins` share
 *
 * plugins.c           the command; the engine in this process
 * plugins_extender.c  the same score as an HTTP extender
 * plugins_pipeline.c  the same forms in the real processes, by `berth bench perf`
 */
#ifndef BH_BENCH_PLUGINS_H
#define BH_BENCH_PLUGINS_H

#include <sys/types.h>

#include "bench/scale/scale.h"

struct bh_bench_form { /* a row of the table */
    const char *form;
    const char *plugin; /* NULL: the extender; "": none of them */
    bool here;          /* berth-scheduler does not have it */
    /* A WebAssembly guest; with nodeLocal: what it says is kept; such a one, compiled. */
    enum bh_bench_guest {
        BH_BENCH_NO_GUEST,
        BH_BENCH_GUEST,
        BH_BENCH_GUEST_LOCAL,
        BH_BENCH_GUEST_COMPILED
    } guest;
};

/* ---- plugins_extender.c ---------------------------------------------------------------------- */
struct bh_bench_extender {
    pid_t pid; /* 0: none */
    uint16_t port;
};
/* 0; -errno. */
int bh_bench_extender_start(struct bh_bench_extender *x, struct bh_err *err);
void bh_bench_extender_stop(struct bh_bench_extender *x);

/* A configuration with the form in its default profile. Lives in a. */
struct bh_json *bh_bench_form_config(struct bh_arena *a, const struct bh_bench_form *f,
                                     const struct bh_bench_extender *x);

/* ---- plugins_pipeline.c ---------------------------------------------------------------------- */
/* Pods a second from their creation to their node, of the real processes. 0; negative errno. */
int bh_bench_form_pipeline(const struct bh_bench_form *f, const struct bh_bench_extender *x,
                           uint32_t nodes, double *ret_per_s, struct bh_err *err);
#endif
