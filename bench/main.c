/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/main.c - berth-bench: what `berth bench` executes
 *
 * A program of its own, because a user's tool does not carry a load generator.
 */
#include "bench/perf/perf.h"
#include "bench/scale/scale.h"

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "--help";

    if (bh_streq(what, "scale"))
        return bh_bench_scale(argc - 1, argv + 1);
    if (bh_streq(what, "perf"))
        return bh_bench_perf(argc - 1, argv + 1);
    if (bh_streq(what, "--help") || bh_streq(what, "-h")) {
        puts("berth bench - measures the scheduler\n\nUsage: berth bench perf FILE... [flags]\n"
             "       berth bench scale [flags]\n\n"
             "  perf    kube-scheduler's scheduler_perf workloads\n"
             "  scale   how decisions, memory and starts grow with the cluster\n\n"
             "'berth bench COMMAND --help' tells more, with examples.");
        return BH_EXIT_OK;
    }
    fprintf(stderr, "berth bench: unknown command \"%s\"\nSee 'berth bench --help'.\n", what);
    return BH_EXIT_USAGE;
}
