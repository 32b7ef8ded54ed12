/* SPDX-License-Identifier: Apache-2.0
 *
 * watcher/main.c - the program berth-watcher
 */
#include "watcher/watcher.h"

#include <errno.h>
#include <sys/utsname.h>

#include "common/base/log.h"
#include "common/base/loop.h"
#include "common/base/notify.h"
#include "common/base/opt.h"

#define CONFIG_ARENA_BYTES ((size_t)256 << 20) /* a file of 4 MiB as a tree */

static const struct bh_opt_usage usage = {
    .program = "berth-watcher",
    .synopsis = "[flags]",
    .about =
        "Lists and watches the API server, keeps nodes and assigned pods in a snapshot in\n"
        "shared memory, and feeds everything else to the schedulers of this machine. Holds the "
        "leader lease while they advance.",
    .examples = "  berth-watcher --config /etc/berth/scheduler.yaml --kubeconfig "
                "/etc/kubernetes/scheduler.conf\n"
                "  berth-watcher --leader-elect=false --runtime-dir /tmp/berth\n",
    .exits = "  0  stopped by SIGTERM or SIGINT\n  1  could not start, or cannot go on\n  2  "
             "wrong usage\n",
};

struct options {
    const char *config, *kubeconfig, *context, *runtime_dir, *metrics_address, *logging_format;
    int64_t verbosity;
    struct bh_component_config file; /* flags given on the command line win over it */
    struct bh_arena arena;           /* its strings */
};
struct program {
    uv_loop_t loop;
    struct bh_watcher *watcher;
    struct bh_signals *signals;
    struct bh_keepalive *keepalive;
    int exit_code;
};

static void on_stopped(void *arg)
{
    struct program *p = arg;
    uv_stop(&p->loop);
}

static void on_stop(void *arg)
{
    struct program *p = arg;
    bh_log_info("Stopping");
    bh_notify("STOPPING=1");
    bh_watcher_stop(p->watcher, on_stopped, p);
}

static void on_reload(void *arg)
{
    struct program *p = arg;
    bh_log_info("Reading credentials again");
    bh_watcher_reload(p->watcher);
}

static void on_synced(void *arg)
{
    struct program *p = arg;
    p->keepalive = bh_keepalive_new(&p->loop, bh_watcher_healthy, p->watcher);
}

static void on_failed(void *arg)
{
    struct program *p = arg;
    p->exit_code = BH_EXIT_FAIL;
    uv_stop(&p->loop);
}

static const char *kubeconfig_of(const struct options *o)
{
    return o->kubeconfig || !*o->file.client.kubeconfig ? o->kubeconfig : o->file.client.kubeconfig;
}

static int run(struct program *p, const struct options *o, struct bh_err *err)
{
    struct bh_api_config *api = NULL;
    struct utsname host;
    char runtime_dir[108], agent[128];
    const struct bh_watcher_callbacks cb = {on_synced, on_failed, p};

    int rc = bh_leader_config_check(&o->file.leader, err);
    if (rc < 0)
        return rc;
    uname(&host);
    snprintf(agent, sizeof(agent), "berth-watcher/%s (linux/%.32s)", BH_VERSION, host.machine);
    rc = bh_runtime_dir(o->runtime_dir, runtime_dir, err);
    if (rc == 0)
        rc = bh_kubeconfig_load(kubeconfig_of(o), o->context, &api, err);
    if (rc == 0) {
        const struct bh_watcher_options wo = {.api = api,
                                              .runtime_dir = runtime_dir,
                                              .metrics_address = o->metrics_address,
                                              .user_agent = agent,
                                              .leader = &o->file.leader,
                                              .event_source = o->file.first_profile};
        rc = bh_watcher_new(&p->loop, &wo, &cb, &p->watcher, err);
    }
    if (rc == 0) {
        bh_log_info("Started", bh_kv_s("server", api->server), bh_kv_s("kubeconfig", api->source),
                    bh_kv_s("runtime_dir", runtime_dir),
                    bh_kv_u("metrics_port", bh_watcher_metrics_port(p->watcher)));
        p->signals = bh_signals_new(&p->loop, on_stop, on_reload, p);
        uv_run(&p->loop, UV_RUN_DEFAULT);
    }
    bh_api_config_free(api);
    return rc;
}

/* The flags are read twice: for --config, and then over what the file says. */
static int read_options(struct options *o, int argc, char **argv, struct bh_err *err)
{
    struct bh_leader_config *l = &o->file.leader;
    const struct bh_opt table[] = {
        {"config", 0, BH_OPT_STR, &o->config, "FILE",
         "KubeSchedulerConfiguration: clientConnection and leaderElection are read"},
        {"kubeconfig", 0, BH_OPT_STR, &o->kubeconfig, "FILE",
         "how to reach the API server (default: clientConnection.kubeconfig of --config, "
         "$KUBECONFIG, in-cluster, ~/.kube/config)"},
        {"context", 0, BH_OPT_STR, &o->context, "NAME", "context of the kubeconfig to use"},
        {"runtime-dir", 0, BH_OPT_STR, &o->runtime_dir, "DIR",
         "sockets of this instance (default: $BERTH_RUNTIME_DIR, /run/berth)"},
        {"metrics-address", 0, BH_OPT_STR, &o->metrics_address, "HOST:PORT",
         "/metrics, /healthz, /livez, /readyz; 0 disables"},
        {"leader-elect", 0, BH_OPT_BOOL, &l->leader_elect, NULL,
         "take decisions on this host only while it holds the lease"},
        {"leader-elect-lease-duration", 0, BH_OPT_DURATION_NS, &l->lease_duration_ns, NULL,
         "how long others wait after a renewal before they take the lease"},
        {"leader-elect-renew-deadline", 0, BH_OPT_DURATION_NS, &l->renew_deadline_ns, NULL,
         "how long after its last renewal this host decides and writes"},
        {"leader-elect-retry-period", 0, BH_OPT_DURATION_NS, &l->retry_period_ns, NULL,
         "pause between two tries to acquire or renew the lease"},
        {"leader-elect-resource-lock", 0, BH_OPT_STR, &l->resource_lock, "KIND", "only leases"},
        {"leader-elect-resource-name", 0, BH_OPT_STR, &l->resource_name, "NAME", "of the lease"},
        {"leader-elect-resource-namespace", 0, BH_OPT_STR, &l->resource_namespace, "NAME",
         "of the lease"},
        {"v", 'v', BH_OPT_INT, &o->verbosity, "N", "verbosity; 2 and more adds debug lines"},
        {"logging-format", 0, BH_OPT_STR, &o->logging_format, "FORMAT", "text or json"},
        {NULL, 0, BH_OPT_BOOL, NULL, NULL, NULL},
    };
    int rc = bh_component_config_of(NULL, &o->file, err);
    if (rc == 0)
        rc = bh_opt_parse(table, &usage, argc, argv, NULL, err);
    if (rc == 0 && !bh_streq(o->logging_format, "text") && !bh_streq(o->logging_format, "json"))
        rc = bh_err_set(err, -EINVAL, "--logging-format: \"%s\" is not text or json",
                        o->logging_format);
    if (rc)
        return rc;
    bh_log_init("berth-watcher", (int)o->verbosity,
                bh_streq(o->logging_format, "json") ? BH_LOG_JSON : BH_LOG_TEXT);
    rc = bh_component_config_load(o->config, &o->arena, &o->file, err);
    if (rc < 0) {
        bh_log_error("command failed", bh_kv_s("err", err->msg));
        return -ECANCELED; /* said already: no wrong usage */
    }
    return bh_opt_parse(table, &usage, argc, argv, NULL, err);
}

int main(int argc, char **argv)
{
    struct options o = {.metrics_address = "127.0.0.1:10260", .logging_format = "text"};
    struct program p = {.exit_code = BH_EXIT_OK};
    struct bh_err err = {""};

    bh_arena_init(&o.arena, CONFIG_ARENA_BYTES);
    int rc = read_options(&o, argc, argv, &err);
    if (rc) {
        if (rc < 0 && rc != -ECANCELED)
            fprintf(stderr, "%s: %s\n", usage.program, err.msg);
        bh_arena_fini(&o.arena);
        return rc == -ECANCELED ? BH_EXIT_FAIL : rc < 0 ? BH_EXIT_USAGE : BH_EXIT_OK;
    }
    uv_loop_init(&p.loop);
    rc = run(&p, &o, &err);
    if (rc < 0) {
        bh_log_error("Could not start", bh_kv_s("err", err.msg));
        p.exit_code = BH_EXIT_FAIL;
    }
    bh_keepalive_close(p.keepalive);
    bh_watcher_free(p.watcher);
    bh_signals_close(p.signals);
    bh_loop_drain_close(&p.loop);
    bh_arena_fini(&o.arena);
    return p.exit_code;
}
