/* SPDX-License-Identifier: Apache-2.0
 *
 * binder/main.c - berth-binder: parse, run, report
 */
#include "binder/binder.h"
#include "binder/patches.h"
#include "common/api/from_flags.h"
#include "common/base/log.h"

static const struct bh_opt_usage usage = {
    .program = "berth-binder",
    .synopsis = "[flags]",
    .about = "Writes the scheduler's decisions to the API server: bindings, pod conditions, "
             "evictions and events. Run as many as you like; each may be killed at any time.\n"
             "Takes kube-scheduler's flags as they are; --config (clientConnection), --kubeconfig, "
             "--master and --kube-api-* are what it uses.",
    .examples = "  berth-binder --kubeconfig /etc/kubernetes/scheduler.conf --instance 1\n",
    .exits = BH_KUBE_FLAGS_EXITS,
};

int main(int argc, char **argv)
{
    struct bh_api_own_flags api = {NULL, NULL};
    const char *runtime = NULL, *metrics = "127.0.0.1:0", *instance = "0", *endpoint = NULL;
    const char *key_file = NULL, *scheduler_key = NULL, *users_text = NULL, *plugin_writes = NULL;
    const struct bh_opt own[] = {
        BH_API_OWN_OPTS(&api),
        {"runtime-dir", 0, BH_OPT_STR, &runtime, "DIR",
         "sockets of this instance (default $BERTH_RUNTIME_DIR or /run/berth)"},
        {"instance", 0, BH_OPT_STR, &instance, "NAME", "name among the binders of this host"},
        {"scheduler", 0, BH_OPT_STR, &endpoint, "ENDPOINT",
         "the scheduler's socket (default: in the runtime directory), or tcp://HOST:PORT on "
         "another host, which needs --key-file and --scheduler-key"},
        {"key-file", 0, BH_OPT_STR, &key_file, "FILE", "tcp: our key, of 'berth keygen'"},
        {"scheduler-key", 0, BH_OPT_STR, &scheduler_key, "FILE",
         "tcp: public key of the scheduler; no other one is talked to"},
        {"plugin-writes", 0, BH_OPT_STR, &plugin_writes, "LIST",
         "what scheduler plugins may have patched: RESOURCE[.GROUP][/SUBRESOURCE], separated by "
         "commas (default: nothing); the API server has to allow it, too"},
        {"metrics-address", 0, BH_OPT_STR, &metrics, "ADDR",
         "address of /metrics and the health paths; port 0 takes a free one, 0 turns them off"},
        BH_BUS_USERS_OPT(&users_text),
        {0},
    };
    struct bh_kube_flags flags;
    struct bh_api_setup setup = {0};
    struct bh_bus_users users;
    struct bh_err err = {0};
    char dir[108];
    int rc = bh_kube_flags_start(&flags, own, &usage, argc, argv);

    if (rc >= 0)
        return rc;
    rc = bh_runtime_dir(runtime, dir, &err);
    if (rc == 0)
        rc = bh_bus_users_load(users_text, &users, &err);
    if (rc == 0 && plugin_writes)
        rc = bh_plugin_writes_check(plugin_writes, &err);
    if (rc == 0)
        rc = bh_api_setup_load(&setup, &flags, &api, dir, &err);
    if (rc == 0) {
        const struct bh_binder_options o = {.runtime_dir = dir,
                                            .scheduler_endpoint = endpoint,
                                            .key_file = key_file,
                                            .scheduler_key = scheduler_key,
                                            .instance = instance,
                                            .metrics_address = metrics,
                                            .users = &users,
                                            .plugin_writes = plugin_writes,
                                            .api = setup.api,
                                            .limits = bh_api_setup_options(&setup, false),
                                            .event_limits = bh_api_setup_options(&setup, true)};
        rc = bh_binder_run(&o, &err);
    }
    if (rc < 0)
        bh_log_error("command failed", bh_kv_s("err", err.msg));
    bh_api_setup_fini(&setup);
    bh_kube_flags_free(&flags);
    return rc < 0 ? BH_EXIT_FAIL : BH_EXIT_OK;
}
