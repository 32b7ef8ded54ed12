/* SPDX-License-Identifier: Apache-2.0
 *
 * nodemetrics/main.c - the program berth-metrics
 *
 * Owns:    the file that it writes anew at each turn, and renames into place.
 * Runs in: one thread, on one loop.
 */
#include <errno.h>
#include <limits.h>

#include "common/api/from_flags.h"
#include "common/base/log.h"
#include "common/base/loop.h"
#include "common/base/notify.h"
#include "common/base/opt.h"
#include "common/base/trusted_file.h"
#include "nodemetrics/nodemetrics.h"

static const struct bh_opt_usage usage = {
    .program = "berth-metrics",
    .synopsis = "[flags]",
    .about =
        "Fetches the nodes' load for the plugins TargetLoadPacking, LoadVariationRiskBalancing, "
        "LowRiskOverCommitment and Peaks, and writes it to a file that they read: so the scheduler "
        "needs neither a network nor credentials.\n"
        "Sources: the Kubernetes metrics API (metrics-server), Prometheus, or a load watcher's "
        "/watcher. When one does not answer, the file stays as it is and grows old; the plugins "
        "take what is too old as unknown.",
    .examples = "  berth-metrics --kubeconfig /etc/berth/metrics.kubeconfig\n"
                "  berth-metrics --source prometheus --address http://prometheus-k8s:9090\n"
                "  berth-metrics --source load-watcher --address http://load-watcher:2020 --once "
                "--output -\n",
    .exits = "  0  stopped, or --once and the metrics were written\n"
             "  1  it could not start, or --once and there are none\n  2  wrong usage\n",
};

struct program {
    uv_loop_t loop;
    uv_timer_t wait;
    struct bh_api_client *client;
    struct bh_signals *signals;
    struct bh_keepalive *keepalive;
    struct bh_nm_options o;
    char output[PATH_MAX];
    bool stop, due, failing;
};

static void on_stop(void *arg)
{
    struct program *p = arg;

    bh_log_info("Stopping");
    bh_notify("STOPPING=1");
    p->stop = true;
    uv_stop(&p->loop);
}

static void on_reload(void *arg)
{
    bh_api_client_reload(((struct program *)arg)->client);
}

static bool healthy(void *arg BH_UNUSED)
{
    return true; /* asked from the loop: it turns */
}

static void on_time(uv_timer_t *t)
{
    ((struct program *)t->data)->due = true;
}

static int write_text(const struct program *p, const struct bh_nm *m, struct bh_err *err)
{
    struct bh_buf text BH_CLEANUP(bh_buf_fini) = {0};
    int rc = 0;

    bh_nm_text(m, &text);
    if (bh_streq(p->output, "-"))
        fwrite(text.p, 1, text.n, stdout);
    else
        rc = bh_write_file(p->output, text.p, text.n, 0640);
    return rc < 0 ? bh_err_set(err, rc, "%s: %s", p->output, strerror(-rc)) : 0;
}

/* One turn. What fails is told when it begins to fail, and when that is over. */
static int turn(struct program *p)
{
    struct bh_nm m BH_CLEANUP(bh_nm_fini) = {0};
    struct bh_err err = {0};
    int rc = bh_nm_fetch(&p->loop, p->client, &p->o, &m, &err);

    if (rc == 0 && m.nodes.len == 0)
        rc = bh_err_set(&err, -ENODATA, "the source knows nothing of any node");
    if (rc == 0)
        rc = write_text(p, &m, &err);
    if (rc < 0 && !p->failing)
        bh_log_error("No metrics of nodes", bh_kv_s("err", err.msg));
    if (rc == 0 && (p->failing || m.n_left_out))
        bh_log_info("Metrics of nodes", bh_kv_u("nodes", m.nodes.len),
                    bh_kv_u("left_out", m.n_left_out));
    p->failing = rc < 0;
    return rc;
}

static int run(struct program *p, int64_t interval_ns, bool once)
{
    int rc = 0;

    p->failing = !once; /* the first success is told */
    uv_timer_init(&p->loop, &p->wait);
    p->wait.data = p;
    uv_timer_start(&p->wait, on_time, 0, (uint64_t)interval_ns / 1000000);
    while (!p->stop) {
        if (p->due || once) {
            p->due = false;
            rc = turn(p);
        }
        if (once)
            break;
        if (!p->stop)
            uv_run(&p->loop, UV_RUN_ONCE);
    }
    return once && rc < 0 ? BH_EXIT_FAIL : BH_EXIT_OK;
}

/* As whom, and where to. */
struct target {
    const char *source, *address, *kubeconfig, *token_file, *ca_file, *output, *runtime;
    bool insecure;
};

static int connect_to(struct program *p, const struct target *t, struct bh_err *err)
{
    const struct bh_api_options options = {.user_agent = "berth-metrics/" BH_VERSION};
    struct bh_api_config *api = NULL;
    char unit_kubeconfig[256];
    int rc;

    if (p->o.source == BH_NM_KUBERNETES)
        rc = bh_kubeconfig_load_master(bh_api_unit_kubeconfig(unit_kubeconfig) ? unit_kubeconfig
                                                                               : t->kubeconfig,
                                       NULL, t->address, &api, err);
    else if (!t->address)
        return bh_err_set(err, -EINVAL, "--address: the URL of %s is needed", t->source);
    else
        rc = bh_kubeconfig_bare(t->address, &api, err);
    if (rc < 0)
        return rc;
    if (t->token_file) {
        free(api->token_file);
        api->token_file = bh_strdup(t->token_file);
    }
    if (t->ca_file) {
        free(api->ca_file);
        api->ca_file = bh_strdup(t->ca_file);
    }
    api->insecure_skip_tls_verify |= t->insecure;
    rc = bh_api_client_new(&p->loop, api, &options, &p->client, err);
    bh_api_config_free(api);
    return rc;
}

static int find_output(struct program *p, const struct target *t, struct bh_err *err)
{
    const char *name = t->output ? t->output : getenv("BERTH_NODE_METRICS");
    char dir[108];

    if (!name || !*name) {
        int rc = bh_runtime_dir(t->runtime, dir, err);
        if (rc < 0)
            return rc;
        struct bh_trusted_dir d;
        rc = bh_trusted_dir_open(&d, dir, BH_METRICS_DIR, err);
        if (rc < 0)
            return rc;
        snprintf(p->output, sizeof p->output, "%s/node-metrics", d.path);
        bh_trusted_dir_close(&d);
    } else if (strlen(name) >= sizeof p->output)
        return bh_err_set(err, -ENAMETOOLONG, "--output: %s", strerror(ENAMETOOLONG));
    else
        snprintf(p->output, sizeof p->output, "%s", name);
    return 0;
}

int main(int argc, char **argv)
{
    static struct program p = {.o = {.cpu = "instance:node_cpu:ratio",
                                     .memory = "instance:node_memory_utilisation:ratio",
                                     .node_label = "instance",
                                     .window = "15m",
                                     .watcher_path = "/watcher"}};
    struct target t = {.source = "kubernetes"};
    int64_t interval_ns = INT64_C(30) * 1000000000, verbosity = 0, window_ns;
    bool once = false;
    struct bh_err err = {0};
    const struct bh_opt table[] = {
        {"source", 0, BH_OPT_CHOICE, &t.source, "kubernetes|prometheus|load-watcher",
         "who knows the load: the Kubernetes metrics API, Prometheus, a load watcher"},
        {"address", 0, BH_OPT_STR, &t.address, "URL",
         "of the source (kubernetes: of the API server, instead of the kubeconfig's)"},
        {"kubeconfig", 0, BH_OPT_STR, &t.kubeconfig, "FILE",
         "kubernetes: how to reach the API server (default $KUBECONFIG, in-cluster)"},
        {"token-file", 0, BH_OPT_STR, &t.token_file, "FILE",
         "bearer token, read again when it changes"},
        {"ca-file", 0, BH_OPT_STR, &t.ca_file, "FILE",
         "authorities to trust (default the system's)"},
        {"insecure-skip-tls-verify", 0, BH_OPT_BOOL, &t.insecure, NULL,
         "do not look at the source's certificate"},
        {"interval", 0, BH_OPT_DURATION_NS, &interval_ns, "DURATION", "between two questions"},
        {"output", 0, BH_OPT_STR, &t.output, "FILE",
         "where to write, - for standard output (default $BERTH_NODE_METRICS, or "
         "metrics/node-metrics "
         "in the runtime directory)"},
        {"runtime-dir", 0, BH_OPT_STR, &t.runtime, "DIR",
         "of this instance (default $BERTH_RUNTIME_DIR or /run/berth)"},
        {"once", 0, BH_OPT_BOOL, &once, NULL, "ask once, and end"},
        {"prometheus-cpu", 0, BH_OPT_STR, &p.o.cpu, "SERIES", "CPU in use, 0 to 1"},
        {"prometheus-memory", 0, BH_OPT_STR, &p.o.memory, "SERIES", "memory in use, 0 to 1"},
        {"prometheus-node-label", 0, BH_OPT_STR, &p.o.node_label, "LABEL",
         "whose value is the node's name; a port behind it is cut off"},
        {"window", 0, BH_OPT_STR, &p.o.window, "DURATION",
         "prometheus: over which averages and deviations are taken"},
        {"v", 'v', BH_OPT_LEVEL, &verbosity, "N", "how much to log"},
        {0},
    };
    bh_signals_early();
    int rc = bh_opt_parse(table, &usage, argc, argv, NULL, &err);

    if (rc > 0)
        return BH_EXIT_OK;
    if (rc == 0 && interval_ns < INT64_C(1000000000))
        rc = bh_err_set(&err, -EINVAL, "--interval: at least 1s is needed");
    if (rc == 0 && (bh_parse_duration_ns(p.o.window, &window_ns) < 0 || window_ns <= 0))
        rc = bh_err_set(&err, -EINVAL, "--window: a duration such as 15m is needed");
    if (rc < 0) {
        fprintf(stderr, "berth-metrics: %s\nSee 'berth-metrics --help'.\n", err.msg);
        return BH_EXIT_USAGE;
    }
    bh_log_init("berth-metrics", (int)verbosity, BH_LOG_TEXT);
    p.o.source = *t.source == 'k'   ? BH_NM_KUBERNETES
                 : *t.source == 'p' ? BH_NM_PROMETHEUS
                                    : BH_NM_LOAD_WATCHER;
    uv_loop_init(&p.loop);
    rc = find_output(&p, &t, &err);
    if (rc == 0)
        rc = connect_to(&p, &t, &err);
    int code = BH_EXIT_FAIL;
    if (rc < 0)
        bh_log_error("Cannot start", bh_kv_s("err", err.msg));
    else {
        p.signals = bh_signals_new(&p.loop, on_stop, on_reload, &p);
        p.keepalive = bh_keepalive_new(&p.loop, healthy, &p);
        code = run(&p, interval_ns, once);
        bh_keepalive_close(p.keepalive, true);
        bh_signals_close(p.signals);
        bh_api_client_free(p.client);
    }
    bh_loop_drain_close(&p.loop);
    return code;
}
