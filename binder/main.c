/* SPDX-License-Identifier: Apache-2.0
 *
 * binder/main.c - berth-binder: parse, run, report
 */
#include "binder/binder.h"
#include "common/base/log.h"
#include "common/base/opt.h"
#include <errno.h>

static const struct bh_opt_usage usage = {
    .program = "berth-binder",
    .synopsis = "[flags]",
    .about = "Writes the scheduler's decisions to the API server: bindings, pod conditions, "
             "evictions and "
             "events. Run as many as you like; each may be killed at any time.",
    .examples = "  berth-binder --kubeconfig /etc/kubernetes/scheduler.conf --instance 1\n",
    .exits = "  0  stopped by a signal\n  1  could not start, see the message\n  2  wrong usage\n",
};

int main(int argc, char **argv)
{
    const char *kubeconfig = NULL, *context = NULL, *runtime = NULL, *format = "text";
    const char *metrics = "127.0.0.1:0", *instance = "0", *endpoint = NULL;
    int64_t verbosity = 1, qps = 0, burst = 100;
    const struct bh_opt table[] = {
        {"kubeconfig", 0, BH_OPT_STR, &kubeconfig, "FILE",
         "how to reach the API server (default $KUBECONFIG, then in-cluster)"},
        {"context", 0, BH_OPT_STR, &context, "NAME", "context of the kubeconfig"},
        {"runtime-dir", 0, BH_OPT_STR, &runtime, "DIR",
         "sockets of this instance (default $BERTH_RUNTIME_DIR or /run/berth)"},
        {"instance", 0, BH_OPT_STR, &instance, "NAME", "name among the binders of this host"},
        {"scheduler", 0, BH_OPT_STR, &endpoint, "ENDPOINT",
         "the scheduler's socket (default: in the runtime directory)"},
        {"kube-api-qps", 0, BH_OPT_INT, &qps, "N", "requests a second at most; 0 = no limit"},
        {"kube-api-burst", 0, BH_OPT_INT, &burst, "N", "burst above the limit"},
        {"metrics-address", 0, BH_OPT_STR, &metrics, "ADDR",
         "address of /metrics and the health paths; port 0 takes a free one, 0 turns them off"},
        {"logging-format", 0, BH_OPT_STR, &format, "text|json", "format of log lines"},
        {"v", 'v', BH_OPT_INT, &verbosity, "N", "verbosity of the log"},
        {0},
    };
    struct bh_opt_list rest = {0};
    struct bh_api_config *api = NULL;
    struct bh_binder_options o;
    struct bh_err err = {0};
    char dir[108];
    int rc = bh_opt_parse(table, &usage, argc, argv, &rest, &err);

    if (rc > 0)
        return BH_EXIT_OK;
    if (rc == 0 && rest.n)
        rc = bh_err_set(&err, -EINVAL, "unexpected argument \"%s\"", rest.v[0]);
    free(rest.v);
    if (rc < 0) {
        fprintf(stderr, "berth-binder: %s\nSee 'berth-binder --help'.\n", err.msg);
        return BH_EXIT_USAGE;
    }
    bh_log_init("berth-binder", (int)verbosity,
                bh_streq(format, "json") ? BH_LOG_JSON : BH_LOG_TEXT);
    rc = bh_runtime_dir(runtime, dir, &err);
    if (rc == 0)
        rc = bh_kubeconfig_load(kubeconfig, context, &api, &err);
    if (rc == 0) {
        o = (struct bh_binder_options){.runtime_dir = dir,
                                       .scheduler_endpoint = endpoint,
                                       .instance = instance,
                                       .metrics_address = metrics,
                                       .api = api,
                                       .qps = (double)qps,
                                       .burst = burst};
        rc = bh_binder_run(&o, &err);
    }
    if (rc < 0)
        bh_log_error("command failed", bh_kv_s("err", err.msg));
    bh_api_config_free(api);
    return rc < 0 ? BH_EXIT_FAIL : BH_EXIT_OK;
}
