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
    static const struct bh_cli_command commands[] = {
        {"perf", bh_bench_perf, "kube-scheduler's scheduler_perf workloads"},
        {"scale", bh_bench_scale, "how decisions, memory and starts grow with the cluster"},
        {"plugins", bh_bench_plugins, "one score in each form that a plugin can have"}};

    return bh_cli_dispatch("berth bench", "measures the scheduler", commands,
                           BH_ARRAY_LEN(commands), argc, argv);
}
