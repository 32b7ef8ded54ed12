/* SPDX-License-Identifier: Apache-2.0
 *
 * watcher/main.c - the program berth-watcher
 */
#include "watcher/watcher.h"

#include <errno.h>

#include "common/api/from_flags.h"
#include "common/base/log.h"
#include "common/base/loop.h"
#include "common/base/notify.h"
#include "watcher/guests.h"

static const struct bh_opt_usage usage = {
    .program = "berth-watcher",
    .synopsis = "[flags]",
    .about =
        "Lists and watches the API server, keeps nodes and assigned pods in a snapshot in\n"
        "shared memory, and feeds everything else to the schedulers of this machine. Holds the "
        "leader lease while they advance.\n"
        "Takes kube-scheduler's flags as they are; --config, --kubeconfig, --master, --kube-api-* "
        "and --leader-elect* are what it uses.",
    .examples = "  berth-watcher --config /etc/berth/scheduler.yaml --kubeconfig "
                "/etc/kubernetes/scheduler.conf\n"
                "  berth-watcher --leader-elect=false --runtime-dir /tmp/berth\n",
    .exits = BH_KUBE_FLAGS_EXITS,
};

struct program {
    uv_loop_t loop;
    struct bh_watcher *watcher;
    struct bh_signals *signals;
    struct bh_keepalive *keepalive;
    struct bh_guests *guests;
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

struct options {
    struct bh_kube_flags flags;
    struct bh_api_setup setup;
    struct bh_api_own_flags api;
    const char *runtime_dir, *metrics_address, *users_text;
    struct bh_bus_users users;
};

static int run(struct program *p, struct options *o, struct bh_err *err)
{
    char runtime_dir[108];
    const struct bh_watcher_callbacks cb = {on_synced, on_failed, p};

    int rc = bh_runtime_dir(o->runtime_dir, runtime_dir, err);
    if (rc == 0)
        rc = bh_api_setup_load(&o->setup, &o->flags, &o->api, runtime_dir, err);
    if (rc == 0)
        rc = bh_leader_config_check(&o->setup.file.leader, err);
    if (rc == 0)
        rc = bh_bus_users_load(o->users_text, &o->users, err);
    if (rc < 0)
        return rc;
    const struct bh_watcher_options wo = {
        .api = o->setup.api,
        .runtime_dir = runtime_dir,
        .metrics_address = o->metrics_address,
        .user_agent = "berth-watcher/" BH_VERSION " (linux/" BH_ARCH ")",
        .limits = bh_api_setup_options(&o->setup, false),
        .leader = &o->setup.file.leader,
        .users = &o->users,
        .pod_groups = bh_feature_enabled(&o->flags.gates, "GenericWorkload"),
        .coscheduling = o->setup.file.coscheduling,
        .event_source = o->setup.file.first_profile};
    rc = bh_watcher_new(&p->loop, &wo, &cb, &p->watcher, err);
    if (rc < 0)
        return rc;
    bh_log_info("Started", bh_kv_s("server", o->setup.api->server),
                bh_kv_s("kubeconfig", o->setup.api->source), bh_kv_s("runtime_dir", runtime_dir),
                bh_kv_u("metrics_port", bh_watcher_metrics_port(p->watcher)));
    p->guests = bh_guests_new(&p->loop, o->flags.config, runtime_dir);
    p->signals = bh_signals_new(&p->loop, on_stop, on_reload, p);
    uv_run(&p->loop, UV_RUN_DEFAULT);
    return 0;
}

int main(int argc, char **argv)
{
    struct options o = {.metrics_address = "127.0.0.1:10260"};
    struct program p = {.exit_code = BH_EXIT_OK};
    struct bh_err err = {""};
    const struct bh_opt own[] = {
        BH_API_OWN_OPTS(&o.api),
        {"runtime-dir", 0, BH_OPT_STR, &o.runtime_dir, "DIR",
         "sockets of this instance (default: $BERTH_RUNTIME_DIR, /run/berth)"},
        {"metrics-address", 0, BH_OPT_STR, &o.metrics_address, "HOST:PORT",
         "/metrics, /healthz, /livez, /readyz; 0 disables"},
        BH_BUS_USERS_OPT(&o.users_text),
        {0},
    };
    int rc = bh_kube_flags_start(&o.flags, own, &usage, argc, argv);

    if (rc >= 0)
        return rc;
    uv_loop_init(&p.loop);
    rc = run(&p, &o, &err);
    if (rc < 0) {
        bh_log_error("command failed", bh_kv_s("err", err.msg));
        p.exit_code = BH_EXIT_FAIL;
    }
    bh_keepalive_close(p.keepalive, true);
    bh_guests_free(p.guests);
    bh_watcher_free(p.watcher);
    bh_signals_close(p.signals);
    bh_loop_drain_close(&p.loop);
    bh_api_setup_fini(&o.setup);
    bh_kube_flags_free(&o.flags);
    return p.exit_code;
}
