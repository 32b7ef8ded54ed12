/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/main.c - `berth`: the one command a person types
 */
#include "cli/cli.h"
#include "common/api/download.h"
#include "scheduler/native/native.h"
#include "scheduler/wasm/guest.h"

static int print_version(int argc, char **argv)
{
    const struct bh_opt none[] = {{0}};
    struct bh_err err = {0};
    int rc = bh_opt_parse(none, bh_cli_help("berth version"), argc, argv, NULL, &err);

    if (rc == 0)
        puts("berth " BH_VERSION);
    return rc == 0 ? BH_EXIT_OK : bh_cli_usage("berth version", rc, &err);
}

static const struct bh_cli_command commands[] = {
    {"up", bh_cmd_up, "run Berth on this machine, with the built-in API server or any other"},
    {"demo", bh_cmd_demo, "the same on an empty cluster, with a guided tour in the browser"},
    {"run", bh_cmd_run, "run Berth in the place of kube-scheduler, with its flags"},
    {"load", bh_cmd_load, "create nodes and pods and watch them being scheduled"},
    {"get", bh_cmd_get, "nodes and pods as the scheduler sees them, from the snapshot"},
    {"explain", bh_cmd_explain, "why a pod is where it is, or nowhere, node by node"},
    {"queue", bh_cmd_queue, "the pods that wait for a node, and why"},
    {"decisions", bh_cmd_decisions, "the scheduling attempts that were recorded, one by one"},
    {"compare", bh_cmd_compare, "where an observed cluster's scheduler and Berth differ, and why"},
    {"simulate", bh_cmd_simulate, "decide for nodes and pods in files, without any server"},
    {"rebalance", bh_cmd_rebalance, "which pods to move so that nodes become free, or a pod fits"},
    {"scenario", bh_cmd_scenario, "run steps at virtual times, compare scheduler configurations"},
    {"config", bh_cmd_config, "check configuration files, show the configuration in force"},
    {"plugin", bh_cmd_plugin, "scheduling plugins of your own: begin one, check one"},
    {"plugins", bh_cmd_plugins, "the plugins out of files that the running scheduler has"},
    {"import", bh_cmd_import, "copy a real cluster's scheduling state, without its secrets"},
    {"sync", bh_cmd_sync, "keep such a copy up to date"},
    {"record", bh_cmd_record, "record a real cluster's changes to a file"},
    {"replay", bh_cmd_replay, "play a record file in the simulator, at any speed"},
    {"bench", bh_cmd_bench, "run kube-scheduler's benchmark workloads"},
    {"conformance", bh_cmd_conformance, "replay recorded decisions and compare"},
    {"wasm", bh_cmd_wasm, "WebAssembly guests: what is in one, and a call of it by hand"},
    {"wasmc", bh_cmd_wasmc, "compile a WebAssembly guest ahead of time"},
    {"keygen", bh_cmd_keygen, "make keys for binders on other hosts"},
    {"completion", bh_cmd_completion, "print the completion script of a shell"},
    {"version", print_version, "print the version"},
};

static void tell_plugin(const char *line)
{
    fprintf(stderr, "berth: a plugin's file is not used: %s\n", line);
}

int main(int argc, char **argv)
{
    bh_native_start(&(struct bh_native_options){0}, tell_plugin);
    bh_guest_start();
    bh_guest_set_sources(&(struct bh_guest_sources){.download = bh_download});
    if (argc > 1 && bh_streq(argv[1], "--version"))
        return print_version(argc - 1, argv + 1);
    return bh_cli_dispatch(
        "berth",
        "a Kubernetes scheduler that takes kube-scheduler's decisions, faster, and explains them",
        commands, BH_ARRAY_LEN(commands), argc, argv);
}
