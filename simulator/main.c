/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/main.c - berth-simulator: the built-in API server as a program
 */
#include "common/base/log.h"
#include "common/base/loop.h"
#include "common/base/notify.h"
#include "common/base/opt.h"
#include "common/flags/feature_gates.h"
#include "scheduler/decisions/recorder.h"
#include "scheduler/native/native.h"
#include "scheduler/wasm/guest.h"
#include "common/wasm/store.h"
#include "simulator/console/observe.h"
#include "simulator/server/kubeconfig_out.h"
#include "simulator/server/server.h"
#include "simulator/server/tls.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

#define SMALL_FILE_MAX ((size_t)1 << 20)

struct args {
    struct bh_sim_options sim; /* what goes to the server as it is */
    const char *kubeconfig_out, *cert_file, *key_file, *client_ca_file, *token_file;
    const char *faults, *data_sync, *log_format, *annotate, *observe_config;
    struct bh_opt_list feature_gates, runtime_config;
    struct bh_feature_gates features;
    int64_t port, verbosity;
    bool tls;
};
struct daemon {
    struct args args;
    uv_loop_t loop;
    struct bh_sim *sim;
    struct bh_selfsigned tls;
    char *client_ca, *tokens;
    char *faults; /* contents of --faults @FILE */
    char *decisions;
    struct bh_signals *signals;
    struct bh_keepalive *keepalive;
};

static int check_args(struct args *a, struct bh_err *err)
{
    const struct bh_opt_list none = {0};

    bh_feature_gates_init(&a->features);
    if (bh_feature_gates_set(&a->features, &a->feature_gates, &none, &none, err) < 0)
        return -EINVAL;
    a->sim.features = &a->features;
    a->sim.runtime_config = &a->runtime_config;
    if (a->port < 0 || a->port > 65535)
        return bh_err_set(err, -EINVAL, "port %lld: want 0 to 65535", (long long)a->port);
    if (!a->cert_file != !a->key_file)
        return bh_err_set(err, -EINVAL, "--tls-cert-file and --tls-private-key-file go together");
    if (!bh_streq(a->data_sync, "batch") && !bh_streq(a->data_sync, "full"))
        return bh_err_set(err, -EINVAL, "data-sync \"%s\": want batch or full", a->data_sync);
    if (!bh_streq(a->annotate, "off") && !bh_streq(a->annotate, "full"))
        return bh_err_set(err, -EINVAL, "annotate-decisions \"%s\": want off or full", a->annotate);
    if (bh_streq(a->annotate, "full") && !a->sim.decisions_file && !a->sim.runtime_dir)
        return bh_err_set(err, -EINVAL,
                          "--annotate-decisions needs --decisions FILE or --runtime-dir");
    if (a->sim.annotate_nodes < 0 || a->sim.annotate_nodes > 1000000)
        return bh_err_set(err, -EINVAL, "annotate-nodes %lld: want 0 to 1000000",
                          (long long)a->sim.annotate_nodes);
    if (a->sim.observe && (a->sim.data_file || a->sim.history_file))
        return bh_err_set(err, -EINVAL, "--observe keeps nothing: not with --data, --history-file");
    if (a->sim.data_file && a->sim.history_file)
        return bh_err_set(err, -EINVAL, "--data and --history-file exclude each other");
    if (!bh_streq(a->log_format, "text") && !bh_streq(a->log_format, "json"))
        return bh_err_set(err, -EINVAL, "logging-format \"%s\": want text or json", a->log_format);
    return 0;
}

/* Long, for it is a table. */
static int read_args(struct args *a, int argc, char **argv, struct bh_err *err)
{
    *a = (struct args){.sim = {.address = "127.0.0.1", .bookmark_interval_ns = 60000000000},
                       .log_format = "text",
                       .data_sync = "batch",
                       .annotate = "off"};
    const struct bh_opt table[] = {
        {"address", 0, BH_OPT_STR, &a->sim.address, "IP",
         "address to listen on; other than the loopback it needs --token-file and TLS"},
        {"port", 0, BH_OPT_INT, &a->port, "N", "port to listen on, 0 for any free one"},
        {"kubeconfig-out", 0, BH_OPT_STR, &a->kubeconfig_out, "FILE",
         "write a kubeconfig for this server to FILE"},
        {"tls", 0, BH_OPT_BOOL, &a->tls, NULL,
         "serve HTTPS with a certificate made at start (its CA goes into --kubeconfig-out)"},
        {"tls-cert-file", 0, BH_OPT_STR, &a->cert_file, "FILE",
         "serve HTTPS with this certificate"},
        {"tls-private-key-file", 0, BH_OPT_STR, &a->key_file, "FILE", "and this key"},
        {"client-ca-file", 0, BH_OPT_STR, &a->client_ca_file, "FILE",
         "ask clients for certificates signed by this CA"},
        {"token-file", 0, BH_OPT_STR, &a->token_file, "FILE",
         "require a bearer token; lines of TOKEN, the administrator's, or "
         "TOKEN,user,uid,\"group,group\" of a user with the rights of his roles"},
        {"history-events", 0, BH_OPT_INT, &a->sim.history_events, "N",
         "changes kept per kind for watches to resume from (20000)"},
        {"bookmark-interval", 0, BH_OPT_DURATION_NS, &a->sim.bookmark_interval_ns, "DURATION",
         "time between bookmarks (1m)"},
        {"kubelet-delay", 0, BH_OPT_DURATION_NS, &a->sim.kubelet_delay_ns, "DURATION",
         "time a bound pod takes until it runs, and a deleted one until it is gone (0s)"},
        {"node-monitor-grace-period", 0, BH_OPT_DURATION_NS, &a->sim.node_grace_ns, "DURATION",
         "time after which a node whose kubelet is stopped (annotation sim.berth.dev/kubelet: "
         "stopped) "
         "is NotReady (40s)"},
        {"no-controllers", 0, BH_OPT_BOOL, &a->sim.no_controllers, NULL,
         "run no controllers and no kubelet"},
        {"no-kubelet", 0, BH_OPT_BOOL, &a->sim.no_kubelet, NULL, "bound pods stay Pending"},
        {"feature-gates", 0, BH_OPT_STRLIST, &a->feature_gates, "NAME=BOOL,...",
         "features as kube-apiserver and kube-controller-manager have them; GenericWorkload, "
         "TopologyAwareWorkloadScheduling, WorkloadAwarePreemption, DRAWorkloadResourceClaims and "
         "WorkloadWithJob do something here"},
        {"runtime-config", 0, BH_OPT_STRLIST, &a->runtime_config, "GROUP/VERSION=BOOL,...",
         "APIs that are not stable: scheduling.k8s.io/v1alpha2, v1alpha3 and v1beta1 (with gate "
         "GenericWorkload); api/alpha, api/beta and api/all stand for several"},
        {"faults", 0, BH_OPT_STR, &a->faults, "SPEC",
         "misbehave for tests: 429-every=N, 500-every=N, 503-every=N, 410-every=N, drop-every=N, "
         "drop-watch-every=N, truncate-every=N, lose-every=N, delay-ms=N, bind-201-every=N, "
         "bind-404-every=N, bind-409-every=N, bind-410-every=N, bind-422-every=N, bind-late-ms=N, "
         "bind-answer-ms=N, comma separated; @FILE has them in a file, read again at SIGHUP"},
        {"data", 0, BH_OPT_STR, &a->sim.data_file, "FILE",
         "keep all objects in FILE (SQLite, made when missing) and start with what it holds; a "
         "crash can take back the last 20 ms"},
        {"data-sync", 0, BH_OPT_STR, &a->data_sync, "batch|full",
         "full: answer a write when it is on the disk, so that a crash takes back nothing that was "
         "answered (batch)"},
        {"history-file", 0, BH_OPT_STR, &a->sim.history_file, "FILE",
         "append each change to FILE; start with what FILE holds"},
        {"audit-log-path", 0, BH_OPT_STR, &a->sim.audit_log, "FILE",
         "append a line to FILE for each answered request, as kube-apiserver does"},
        {"runtime-dir", 0, BH_OPT_STR, &a->sim.runtime_dir, "DIR",
         "runtime directory of the scheduler that works here, for the page's questions to it"},
        {"decisions", 0, BH_OPT_STR, &a->sim.decisions_file, "FILE",
         "the file that berth-scheduler --record-decisions writes (its --decisions-file; "
         "default scheduler/decisions.db in --runtime-dir)"},
        {"annotate-decisions", 0, BH_OPT_STR, &a->annotate, "off|full",
         "full: write each attempt's results onto its pod with kube-scheduler-simulator's keys; "
         "needs --decisions, and --record-decisions=full at the scheduler (off)"},
        {"annotate-nodes", 0, BH_OPT_INT, &a->sim.annotate_nodes, "N",
         "nodes in an annotation at most; 0: as many as fit into 192 KiB (0)"},
        {"lost", 0, BH_OPT_STR, &a->sim.lost, "TEXT",
         "what the page says, and the timeline has, of a server before this one whose objects are "
         "gone"},
        {"read-only", 0, BH_OPT_BOOL, &a->sim.read_only, NULL,
         "the page may change nothing: refuse writes of browsers, import, reset, configuration"},
        {"observe", 0, BH_OPT_STR, &a->sim.observe, "KUBECONFIG",
         "be a read-only copy of this cluster, which is only read: lists and watches"},
        {"observe-config", 0, BH_OPT_STR, &a->observe_config, "FILE",
         "KubeSchedulerConfiguration whose decisions are compared with the observed cluster's"},
        {"v", 'v', BH_OPT_INT, &a->verbosity, "N", "log verbosity"},
        {"logging-format", 0, BH_OPT_STR, &a->log_format, "text|json", "log format"},
        {0},
    };
    static const struct bh_opt_usage usage = {
        .program = "berth-simulator",
        .synopsis = "[flags]",
        .about = "A Kubernetes API server in memory, with the controllers and the kubelet that a "
                 "scheduler's world needs.",
        .examples = "  berth-simulator --port 8001 --kubeconfig-out sim.yaml\n"
                    "  KUBECONFIG=sim.yaml kubectl get nodes\n",
        .exits = "  0  stopped by SIGTERM or SIGINT\n  1  could not start\n  2  wrong usage\n"};
    struct bh_opt_list rest = {0};
    int rc = bh_opt_parse(table, &usage, argc, argv, &rest, err);
    if (rc == 0 && rest.n)
        rc = bh_err_set(err, -EINVAL, "unexpected argument \"%s\"", rest.v[0]);
    free(rest.v);
    return rc ? rc : check_args(a, err);
}

static int load(const char *path, char **ret, struct bh_err *err)
{
    size_t n;
    int rc = path ? bh_read_file(path, SMALL_FILE_MAX, ret, &n) : 0;
    return rc < 0 ? bh_err_set(err, rc, "cannot read %s: %s", path, strerror(-rc)) : 0;
}

static int load_faults(struct daemon *d, struct bh_err *err)
{
    const char *spec = d->args.faults;
    char *text = NULL;
    int rc = load(spec && *spec == '@' ? spec + 1 : NULL, &text, err);
    if (rc < 0)
        return rc;
    if (text)
        text[strcspn(text, "\r\n")] = '\0';
    free(d->faults);
    d->faults = text;
    return 0;
}

static int load_files(struct daemon *d, struct bh_err *err)
{
    const struct args *a = &d->args;
    int rc = load(a->client_ca_file, &d->client_ca, err);
    rc = rc < 0 ? rc : load_faults(d, err);
    rc = rc < 0 ? rc : load(a->token_file, &d->tokens, err);
    rc = rc < 0 ? rc : load(a->cert_file, &d->tls.cert_pem, err);
    rc = rc < 0 ? rc : load(a->key_file, &d->tls.key_pem, err);
    if (rc == 0 && a->tls && !a->cert_file)
        rc = bh_sim_tls_make(a->sim.address, &d->tls, err);
    return rc;
}

/* One descriptor per watch: take what the system allows. */
static void raise_descriptors(void)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
        l.rlim_cur = l.rlim_max;
        setrlimit(RLIMIT_NOFILE, &l);
    }
}

static int write_kubeconfig(struct daemon *d, struct bh_err *err)
{
    const struct args *a = &d->args;
    if (!a->kubeconfig_out)
        return 0;
    const char *ca = d->tls.ca_pem ? d->tls.ca_pem : d->tls.cert_pem;
    char *token = d->tokens ? bh_strndup(d->tokens, strcspn(d->tokens, ",\r\n")) : NULL;
    int rc = bh_sim_kubeconfig_write(a->kubeconfig_out, a->sim.address, bh_sim_port(d->sim), ca,
                                     token, err);
    free(token);
    return rc;
}

static void on_stop(void *arg)
{
    struct daemon *d = arg;
    bh_notify("STOPPING=1");
    uv_stop(&d->loop);
}

static void on_hup(void *arg)
{
    struct daemon *d = arg;
    struct bh_err err = {{0}};
    int rc = load_faults(d, &err);
    if (rc == 0 && d->faults)
        rc = bh_sim_set_faults(d->sim, d->faults, &err);
    if (rc < 0)
        bh_log_error("The faults stay as they are", bh_kv_s("err", err.msg));
    else
        bh_log_info("The faults are read again", bh_kv_s("faults", d->faults ? d->faults : ""));
}

static bool healthy(void *arg)
{
    (void)arg; /* one loop does everything: that it asks is the proof */
    return true;
}

static int start(struct daemon *d, struct bh_err *err)
{
    struct args *a = &d->args;
    int rc = load_files(d, err);

    /* Where the scheduler of that runtime directory keeps them, if it does. */
    if (!a->sim.decisions_file && a->sim.runtime_dir)
        a->sim.decisions_file = d->decisions =
            bh_asprintf("%s/" BH_DECISIONS_RUNTIME, a->sim.runtime_dir);
    a->sim.no_controllers |= a->sim.observe != NULL; /* the observed cluster has its own */
    a->sim.port = (uint16_t)a->port;
    a->sim.tls_cert_pem = d->tls.cert_pem;
    a->sim.tls_key_pem = d->tls.key_pem;
    a->sim.client_ca_pem = d->client_ca;
    a->sim.ca_pem = d->tls.ca_pem ? d->tls.ca_pem : d->tls.cert_pem;
    a->sim.tokens = d->tokens;
    a->sim.faults = d->faults ? d->faults : a->faults;
    a->sim.data_full = bh_streq(a->data_sync, "full");
    a->sim.annotate = bh_streq(a->annotate, "full");
    raise_descriptors();
    rc = rc < 0 ? rc : bh_sim_new(&d->loop, &a->sim, &d->sim, err);
    if (rc == 0 && a->sim.observe)
        rc = bh_console_observe(d->sim, a->observe_config, err);
    rc = rc < 0 ? rc : write_kubeconfig(d, err);
    if (rc < 0)
        return rc;
    d->signals = bh_signals_new(&d->loop, on_stop, on_hup, d);
    d->keepalive = bh_keepalive_new(&d->loop, healthy, d);
    printf("http%s://%s%s%s:%u\n", d->tls.cert_pem ? "s" : "",
           strchr(a->sim.address, ':') ? "[" : "", a->sim.address,
           strchr(a->sim.address, ':') ? "]" : "", bh_sim_port(d->sim));
    fflush(stdout);
    bh_log_info("Serving the Kubernetes API", bh_kv_s("address", a->sim.address),
                bh_kv_u("port", bh_sim_port(d->sim)), bh_kv_s("version", BH_VERSION));
    return 0;
}

/* Configurations that the page tries may name them. */
static void tell_plugin(const char *line)
{
    bh_log_warn("A plugin's file is not used", bh_kv_s("err", line));
}

int main(int argc, char **argv)
{
    static struct daemon d;
    struct bh_err err = {{0}};
    bh_signals_early();
    signal(SIGXFSZ, SIG_IGN); /* a limit of file sizes is an error like a full disk */
    int rc = read_args(&d.args, argc, argv, &err);
    if (rc > 0)
        return BH_EXIT_OK;
    if (rc < 0) {
        fprintf(stderr, "berth-simulator: %s\nSee 'berth-simulator --help'.\n", err.msg);
        return BH_EXIT_USAGE;
    }
    bh_log_init("berth-simulator", (int)d.args.verbosity,
                bh_streq(d.args.log_format, "json") ? BH_LOG_JSON : BH_LOG_TEXT);
    bh_native_start(&(struct bh_native_options){0}, tell_plugin);
    bh_guest_start();
    BH_CLEANUP(bh_freep) char *store = NULL;
    if (d.args.sim.runtime_dir) { /* what the watcher of this berth up has downloaded */
        store = bh_asprintf("%s/" BH_WASM_STORE, d.args.sim.runtime_dir);
        bh_guest_set_sources(&(struct bh_guest_sources){.store = store});
    }
    uv_loop_init(&d.loop);
    rc = start(&d, &err);
    if (rc < 0)
        bh_log_error("Cannot start", bh_kv_s("err", err.msg));
    else
        uv_run(&d.loop, UV_RUN_DEFAULT);
    bh_sim_free(d.sim);
    if (d.signals)
        bh_signals_close(d.signals);
    if (d.keepalive)
        bh_keepalive_close(d.keepalive, true);
    bh_loop_drain_close(&d.loop);
    bh_selfsigned_fini(&d.tls);
    bh_opt_list_fini(&d.args.feature_gates);
    bh_opt_list_fini(&d.args.runtime_config);
    free(d.client_ca);
    free(d.tokens);
    free(d.decisions);
    free(d.faults);
    return rc < 0 ? BH_EXIT_FAIL : BH_EXIT_OK;
}
