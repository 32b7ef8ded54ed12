/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/perf/engine.h - the engine mode's cluster; private to bench/perf
 */
#ifndef BH_BENCH_ENGINE_H
#define BH_BENCH_ENGINE_H

#include "bench/perf/perf.h"
#include "simulator/offline/world.h"

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
struct bh_bench_engine {
    struct bh_world cluster; /* engine, store, queue, clock */
    bool has_cluster;
    struct bh_sim_controllers *controllers; /* NULL: no workload needs them */
    struct bh_bench_setup setup;
    struct bh_arena arena;
    struct bh_map attempted; /* uid of pods that were rejected once */
    unsigned since_look;
    /* of the window */
    struct bh_bench_sample *tries;
    size_t n_attempts, cap_attempts;
    uint64_t began_engine_ns, began_cpu_ns;
    struct bh_engine_stats began;
    struct bh_bench_memory memory;
};
/* claims.c: what the engine would allocate, in a. -ENOSPC: there are no devices that fit. */
int bh_bench_allocate(struct bh_offline *w, struct bh_arena *a, const char *ns, const char *claim,
                      struct bh_json **ret_allocation, struct bh_err *err);
/* measure_engine.c */
void bh_bench_collect_engine(struct bh_bench_world *w, const char *name, struct bh_bench_row *row);
#endif
