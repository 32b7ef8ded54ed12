/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/up.c - `berth up`: all processes on one machine; `berth demo`: the same, with the page's tour
 *
 * Owns:       the runtime directory when it made it, the built-in server's kubeconfig, up.sock.
 * Invariants: nothing is started before what can be known to be wrong was checked; stopping goes in
 *             reverse order of starting; what we made in the file system goes with us.
 * Runs in:    one libuv loop.
 */
#include "cli/up.h"
#include "cli/cluster.h"
#include "cli/config.h"
#include "scheduler/native/native.h"
#include "common/flags/feature_gates.h"
#include "simulator/server/sim.h"
#include "simulator/trial/trial.h"
#include <errno.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_BINDERS 32
#define REQUEST_NS  UINT64_C(30000000000)
#define GREETING_NS UINT64_C(5000000000) /* one try to reach the API server */
#define RETRY_NS    UINT64_C(1000000000)

struct arguments {
    struct bh_up_options up;
    const char *who; /* the command */
    bool demo;       /* `berth demo`: an empty cluster, and the page's tour is opened */
    bool no_example;
    struct bh_native_options plugins;
    struct bh_opt_list gates, apis; /* --feature-gates, --runtime-config */
    char *gates_text, *apis_text;   /* as the processes are given them */
};

/* What is there already is left alone: it came with --data. */
static int create_object(void *arg, const struct bh_trial_source *at, struct bh_arena *a,
                         struct bh_json *obj, struct bh_err *err)
{
    struct bh_cluster *c = arg;
    const char *kind = bh_json_get_text(obj, "kind");
    const struct bh_sim_type *t = bh_sim_type_of_kind(bh_json_get_text(obj, "apiVersion"), kind);
    struct bh_buf path BH_CLEANUP(bh_buf_fini) = {0}, text BH_CLEANUP(bh_buf_fini) = {0},
                       reply BH_CLEANUP(bh_buf_fini) = {0};
    int code = 0;

    (void)a;
    if (!t)
        return bh_err_set(err, -ENOENT, "line %u: the server has no kind %s", at->line, kind);
    bh_cluster_path(&path, t, t->flags & BH_SIM_NAMESPACED ? "default" : NULL, NULL, NULL);
    bh_json_write(&text, obj);
    const struct bh_api_call call = {.method = "POST",
                                     .path = bh_buf_str(&path),
                                     .content_type = "application/json",
                                     .body = text.p,
                                     .body_n = text.n,
                                     .timeout_ns = REQUEST_NS,
                                     .retry_429_5xx = true};
    int rc = bh_api_do(c->loop, c->client, &call, &code, &reply, err);
    if (rc == 0 && code >= 300 && code != 409) {
        struct bh_api_status s;
        bh_decode_status(reply.p, reply.n, code, &s);
        rc = bh_err_set(err, -EINVAL, "%s \"%s\" was refused: %s", kind,
                        bh_json_get_text(bh_json_get(obj, "metadata"), "name"), s.message);
    }
    return rc;
}

/* And the page's reset goes back to a cluster with the example. */
static int load_example(struct bh_up *u, struct bh_err *err)
{
    const struct bh_api_call mark = {
        .method = "PUT", .path = "/api/v1/reset?mark=true", .timeout_ns = GREETING_NS};
    BH_CLEANUP(bh_freep)
    char *path = bh_asprintf("%s/../share/berth/example-cluster.yaml", u->bindir);
    struct bh_cluster c = {0};
    struct bh_arena names BH_CLEANUP(bh_arena_fini) = {0};
    struct bh_buf body BH_CLEANUP(bh_buf_fini) = {0};
    int code, rc;

    if (access(path, R_OK) != 0)
        return bh_err_set(err, -ENOENT, "example-cluster.yaml was not found near %s", u->bindir);
    rc = bh_cluster_open(&c, &u->loop, u->kubeconfig, NULL, "berth-up", err);
    if (rc == 0)
        rc = bh_trial_read(path, &names, create_object, &c, err);
    if (rc == 0)
        rc = bh_api_do(c.loop, c.client, &mark, &code, &body, err);
    bh_cluster_close(&c);
    return rc;
}

/* 0: it answers; -EAGAIN: not yet, with the reason in err. */
static int check_server(struct bh_up *u, struct bh_err *err)
{
    const struct bh_api_call call = {
        .method = "GET", .path = "/version", .timeout_ns = GREETING_NS};
    struct bh_cluster c = {0};
    struct bh_buf body BH_CLEANUP(bh_buf_fini) = {0};
    int code = 0, rc = bh_cluster_open(&c, &u->loop, u->kubeconfig, NULL, "berth-up", err);

    if (rc == 0 && bh_api_do(&u->loop, c.client, &call, &code, &body, err) < 0)
        rc = -EAGAIN;
    else if (rc == 0 && code >= 500)
        rc = bh_err_set(err, -EAGAIN, "it answers GET /version with %d", code);
    else if (rc == 0 && code != 200)
        fprintf(stderr, "%s: the API server answers GET /version with %d\n", u->who, code);
    bh_cluster_close(&c);
    return rc;
}

/* Berth waits for the API server of its kubeconfig as long as it takes. */
static int wait_for_server(struct bh_up *u, struct bh_err *err)
{
    uint64_t next = 0;
    bool reported = false;
    int rc = -EAGAIN;

    while (rc == -EAGAIN && bh_up_pump(u)) {
        if (bh_mono_ns() < next)
            continue;
        rc = check_server(u, err);
        next = bh_mono_ns() + RETRY_NS;
        if (rc == -EAGAIN && !reported)
            fprintf(stderr, "%s: the API server of %s does not answer yet, waiting for it: %s\n",
                    u->who, u->kubeconfig, err->msg);
        reported = true;
    }
    return u->stopping ? 0 : rc;
}

/* What may not be read of the cluster to observe is told before anything runs; without nodes and
 * pods there is nothing to see. */
static int look_at_source(struct bh_up *u, const char *kubeconfig, struct bh_err *err)
{
    const struct bh_take all = {.mirror = true};
    struct bh_buf body BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_cluster c = {0};
    struct bh_err why = {0};
    int rc = bh_cluster_open(&c, &u->loop, kubeconfig, NULL, "berth-up", err);

    rc = rc < 0 ? rc : bh_cluster_reach(&c, "cluster to observe", err);
    for (size_t i = 0; i < bh_clean_n_kinds && rc == 0; i++) {
        const struct bh_clean_kind *k = &bh_clean_kinds[i];
        bool needed = bh_streq(k->plural, "nodes") || bh_streq(k->plural, "pods");
        if (!bh_take_kind(&all, k, false))
            continue;
        rc = bh_cluster_list(&c, k, "?limit=1", &body, &why);
        if (rc == -EACCES && !needed)
            fprintf(stderr, "%s: left out, these credentials may not list %s: %s\n", u->who,
                    k->plural, why.msg);
        if (rc == -ENOENT || (rc == -EACCES && !needed))
            rc = 0; /* not every cluster serves all of them */
        if (rc < 0)
            bh_err_set(err, rc,
                       "cannot list %s of the cluster to observe at %s: %s (docs/observe.md has "
                       "the rights that are needed: get, list and watch)",
                       k->plural, c.cfg->server, why.msg);
    }
    bh_cluster_close(&c);
    return rc;
}

/* Where there is a desktop: in its browser. The shell does not wait for it, and nobody misses it. */
static void open_in_browser(char *url)
{
    char sh[] = "sh", option[] = "-c", text[] = "xdg-open \"$0\" >/dev/null 2>&1 &";
    char *const argv[] = {sh, option, text, url, NULL};
    pid_t pid;

    if ((getenv("DISPLAY") || getenv("WAYLAND_DISPLAY")) &&
        posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ) == 0)
        waitpid(pid, NULL, 0);
}

/* What is next for a person: the page, then commands to type as this one was. */
static void greet(struct bh_up *u, const struct arguments *a, bool example)
{
    const char *berth = program_invocation_name;
    char *page BH_CLEANUP(bh_freep) = NULL;
    struct bh_api_config *cfg = NULL;
    struct bh_err err = {0};

    puts("Berth is up.");
    if (bh_kubeconfig_load(u->kubeconfig, NULL, &cfg, &err) == 0 && u->own_server)
        page = bh_asprintf("%s/ui/%s", cfg->server, a->demo ? "#/tour" : "");
    if (page)
        printf("  web page     %s%s\n", page, a->demo ? " (the guided tour)" : "");
    if (cfg)
        printf("  API server   %s%s\n", cfg->server,
               a->up.observe   ? " (a copy, read-only)"
               : u->own_server ? " (built-in)"
                               : "");
    if (a->up.observe)
        printf("  observes     the cluster of %s: nothing is written there\n", a->up.kubeconfig);
    bh_api_config_free(cfg);
    if (u->elects && !u->own_server)
        puts("  lease        if another scheduler holds kube-system/kube-scheduler, Berth stands "
             "by");
    printf("  HTTPS        https://127.0.0.1:%u (health, metrics, configuration)\n", u->front_port);
    printf("  kubeconfig   %s\n  logs         %s/*.log\n", u->kubeconfig, u->dir);
    printf("\n%s in another terminal; berth's commands find this one by themselves:\n"
           "  %s get nodes\n",
           page ? "Open the page, or try" : "Try", berth);
    if (example)
        printf("  %s load synthetic --node-count 0 --pod-count 20\n"
               "  %s explain pod/load-000000\n",
               berth, berth);
    else
        printf("  %s %s\n", berth, a->up.observe ? "compare" : "queue");
    printf("  export KUBECONFIG=%s\n  kubectl get pods -A -o wide\n\nCtrl-C stops everything.\n",
           u->kubeconfig);
    fflush(stdout);
    if (page && a->demo)
        open_in_browser(page);
}

/* The built-in server is back without its objects: what `berth up` began with comes back. */
static void begin_again(struct bh_up *u, bool example)
{
    uint64_t end = bh_mono_ns() + REQUEST_NS;
    struct bh_err err = {0};
    int rc = -EAGAIN;

    u->lost = false;
    /* It does not listen at once, and may end again: then it is lost again. */
    while (example && rc < 0 && u->child->pid && bh_mono_ns() < end && bh_up_pump(u))
        rc = load_example(u, &err);
    if (rc == 0)
        fprintf(stderr, "%s: the example cluster is there again\n", u->who);
    else if (example && bh_mono_ns() >= end)
        fprintf(stderr, "%s: the example cluster did not come back: %s\n", u->who, err.msg);
}

static int run(struct bh_up *u, const struct arguments *a, struct bh_err *err)
{
    bool example = u->own_server && !a->no_example;
    struct bh_err why = {0};
    int rc = 0;

    for (unsigned i = 0; i < u->n && rc == 0 && !u->stopping; i++)
        rc = bh_up_start_child(u, &u->child[i], err);
    if (rc == 0 && example && !u->stopping)
        rc = load_example(u, err);
    if (rc == 0)
        rc = bh_up_settle(u, err);
    if (u->stopping || rc < 0)
        return u->stopping ? 0 : rc;
    u->started = true;
    if (bh_instance_announce(u->dir, u->own_server ? NULL : u->kubeconfig, &why) < 0)
        fprintf(stderr, "%s: other commands will not find this one without --runtime-dir: %s\n",
                a->who, why.msg);
    rc = u->own_server ? 0 : wait_for_server(u, err);
    if (u->stopping || rc < 0)
        return rc;
    greet(u, a, example);
    while (!u->stopping) {
        uv_run(&u->loop, UV_RUN_DEFAULT);
        if (u->lost)
            begin_again(u, example);
    }
    return 0;
}

static int check_config(const char *path, struct bh_err *err)
{
    struct bh_sched_config *c = NULL;
    struct bh_config_report r;

    bh_config_report_init(&r);
    int rc = bh_sched_config_load_report(path, &c, &r);
    if (path)
        bh_config_print(stderr, path, &r.warnings, false);
    if (rc < 0 && r.errors.n > 1) {
        bh_config_print(stderr, path, &r.errors, true);
        bh_err_set(err, rc, "%u errors in %s", r.errors.n, path);
    } else if (rc < 0) {
        bh_err_set(err, rc, "%s", bh_config_report_line(&r, path));
    }
    bh_sched_config_free(c);
    bh_native_end_processes();
    bh_config_report_fini(&r);
    return rc;
}

/* "--feature-gates=A=true,B=true"; NULL without any. */
static char *as_flag(const char *name, const struct bh_opt_list *l)
{
    struct bh_buf b = {0};

    for (size_t i = 0; i < l->n; i++)
        bh_buf_addf(&b, "%s%s%s", i ? "," : name, i ? "" : "=", l->v[i]);
    return b.p;
}

/* They are checked here, where a mistake is told before anything runs. */
static int read_gates(struct arguments *a, struct bh_err *err)
{
    const struct bh_opt_list none = {0};
    struct bh_feature_gates gates;

    bh_feature_gates_init(&gates);
    a->up.gates = a->gates_text = as_flag("--feature-gates", &a->gates);
    a->up.runtime_config = a->apis_text = as_flag("--runtime-config", &a->apis);
    return bh_feature_gates_set(&gates, &a->gates, &none, &none, err);
}

static bool is_source(const char *s)
{
    return bh_streq(s, "kubernetes") || strncmp(s, "prometheus=http", 15) == 0 ||
           strncmp(s, "load-watcher=http", 17) == 0;
}

static const char of_deciding[] =
    "binders data record-decisions annotate-decisions no-example leader-elect plugin-writes";

/* Long, for it is a table. */
static int parse(struct arguments *a, int argc, char **argv, struct bh_err *err)
{
    const struct bh_opt table[] = {
        {"kubeconfig", 0, BH_OPT_STR, &a->up.kubeconfig, "FILE",
         "use this API server, not the built-in one"},
        {"no-example", 0, BH_OPT_BOOL, &a->no_example, NULL, "start with an empty cluster"},
        {"observe", 0, BH_OPT_BOOL, &a->up.observe, NULL,
         "only look: a read-only copy of --kubeconfig's cluster, beside its own scheduler"},
        {"binders", 0, BH_OPT_INT, &a->up.binders, "N", "number of binders (1 to 32)"},
        {"config", 0, BH_OPT_STR, &a->up.config, "FILE", "KubeSchedulerConfiguration"},
        {"plugin-writes", 0, BH_OPT_STR, &a->up.plugin_writes, "LIST",
         "what scheduler plugins may have patched, see berth-binder"},
        {"port", 0, BH_OPT_INT, &a->up.port, "N",
         "port of the built-in API server; 0 takes a free one"},
        {"front-port", 0, BH_OPT_INT, &a->up.front_port, "N",
         "port of HTTPS on the loopback (default: 10259 when it is free, else a free one); 0 takes "
         "a free one"},
        {"runtime-dir", 0, BH_OPT_STR, &a->up.runtime, "DIR",
         "sockets and logs (default: a temporary one)"},
        {"data", 0, BH_OPT_STR, &a->up.data, "FILE",
         "keep the built-in API server's objects in FILE; one that is there is gone on with, "
         "without the example"},
        {"record-decisions", 0, BH_OPT_CHOICE, &a->up.record, "auto|full|summary|off",
         "what is kept of every decision, for the page and 'berth decisions' (default auto: full, "
         "and "
         "summaries under load; with --kubeconfig off, with --annotate-decisions full)"},
        {"annotate-decisions", 0, BH_OPT_BOOL, &a->up.annotate, NULL,
         "write them onto the built-in server's pods as well, with kube-scheduler-simulator's "
         "annotations"},
        {"feature-gates", 0, BH_OPT_STRLIST, &a->gates, "NAME=BOOL,...",
         "kube-scheduler's, for all processes and the built-in API server"},
        {"runtime-config", 0, BH_OPT_STRLIST, &a->apis, "GROUP/VERSION=BOOL,...",
         "APIs of the built-in API server that are not stable, as kube-apiserver's: "
         "scheduling.k8s.io/v1alpha2=true with gate GenericWorkload"},
        {"leader-elect", 0, BH_OPT_BOOL, &a->up.leader_elect, NULL,
         "schedule only while this machine holds the lease kube-system/kube-scheduler"},
        BH_NATIVE_OPTIONS(a->plugins),
        {"node-metrics", 0, BH_OPT_STR, &a->up.node_metrics, "SOURCE",
         "fetch the nodes' load for plugins (berth-metrics): kubernetes, prometheus=URL or "
         "load-watcher=URL"},
        {0},
    };
    struct bh_opt_list rest BH_CLEANUP(bh_opt_list_fini) = {0};
    bool given[BH_ARRAY_LEN(table)] = {false};
    const unsigned skip = a->demo ? 3 : 0; /* the demo's cluster is its own, and empty */
    int rc =
        bh_opt_parse_given(table + skip, bh_cli_help(a->who), argc, argv, &rest, given + skip, err);

    if (rc == 0 && rest.n)
        rc = bh_err_set(err, -EINVAL, "unexpected argument \"%s\"", rest.v[0]);
    for (size_t i = 0; rc == 0 && a->up.observe && table[i].name; i++)
        if (given[i] && bh_word_at(of_deciding, table[i].name) >= 0)
            rc = bh_err_set(err, -EINVAL,
                            "--observe decides and keeps nothing: --%s does not go with it",
                            table[i].name);
    if (rc == 0 && a->up.observe && !a->up.kubeconfig)
        rc = bh_err_set(err, -EINVAL, "--observe needs --kubeconfig FILE: the cluster to observe");
    rc = rc == 0 ? read_gates(a, err) : rc;
    if (rc == 0 && a->up.node_metrics && !is_source(a->up.node_metrics))
        rc = bh_err_set(err, -EINVAL,
                        "invalid value \"%s\" for --node-metrics: kubernetes, prometheus=URL or "
                        "load-watcher=URL",
                        a->up.node_metrics);
    if (rc == 0 && a->up.kubeconfig && a->apis.n)
        rc = bh_err_set(
            err, -EINVAL,
            "--runtime-config is of the built-in API server, --kubeconfig names another");
    if (rc == 0 && (a->up.binders < 1 || a->up.binders > MAX_BINDERS))
        rc = bh_err_set(err, -EINVAL, "invalid value %lld for --binders: 1 to %d",
                        (long long)a->up.binders, MAX_BINDERS);
    if (!a->up.record) /* it costs something, which is no business of other people's clusters */
        a->up.record = a->up.kubeconfig ? "off" : a->up.annotate ? "full" : "auto";
    if (rc == 0 && (a->up.port < 0 || a->up.port > 65535))
        rc = bh_err_set(err, -EINVAL, "invalid value %lld for --port: 0 to 65535",
                        (long long)a->up.port);
    if (rc == 0 && (a->up.front_port < -1 || a->up.front_port > 65535))
        rc = bh_err_set(err, -EINVAL, "invalid value %lld for --front-port: 0 to 65535",
                        (long long)a->up.front_port);
    if (rc == 0 && a->up.kubeconfig && !a->up.observe && a->up.port)
        rc = bh_err_set(err, -EINVAL,
                        "--port is of the built-in API server, --kubeconfig names another");
    if (rc == 0 && a->up.kubeconfig && a->up.data)
        rc = bh_err_set(err, -EINVAL,
                        "--data is of the built-in API server, --kubeconfig names another");
    if (a->up.observe) {
        a->up.leader_elect = false;
        a->no_example = true;
    }
    if (a->demo || (a->up.data && access(a->up.data, F_OK) == 0))
        a->no_example = true; /* it was made when FILE was, or not wanted */
    return rc;
}

static int start(struct arguments a, int argc, char **argv)
{
    struct bh_err err = {0};

    a.up.binders = 2;
    a.up.front_port = -1;
    a.up.leader_elect = true;
    int rc = parse(&a, argc, argv, &err);
    if (rc != 0)
        return bh_cli_usage(a.who, rc, &err);
    bh_native_start(&a.plugins, NULL);         /* the processes find them by our environment */
    struct bh_up *u = bh_up_open(a.who, NULL); /* a closed terminal stops us, too */
    u->own_server = !a.up.kubeconfig || a.up.observe;
    if (!u->own_server && !realpath(a.up.kubeconfig, u->kubeconfig)) /* from every folder */
        snprintf(u->kubeconfig, sizeof(u->kubeconfig), "%s", a.up.kubeconfig);
    /* What can be known to be wrong before anything runs. */
    const char *programs[7] = {"berth-watcher", "berth-scheduler", "berth-binder", "berth-front"};
    size_t n = 4;
    if (u->own_server)
        programs[n++] = "berth-simulator";
    if (a.up.node_metrics)
        programs[n++] = "berth-metrics";
    struct bh_api_config *api = NULL;
    rc = bh_up_find_programs(u, programs, &err);
    if (rc == 0)
        rc = check_config(a.up.config, &err);
    if (rc == 0 && !u->own_server)
        rc = bh_kubeconfig_load(u->kubeconfig, NULL, &api, &err);
    bh_api_config_free(api);
    if (rc == 0 && a.up.observe)
        rc = look_at_source(u, a.up.kubeconfig, &err);
    if (rc == 0)
        rc = bh_up_prepare(u, &a.up, &err);
    if (rc == 0)
        rc = run(u, &a, &err);
    if (rc < 0)
        (void)bh_cli_fail(a.who, &err); /* while the rest is still there to look at */
    if (u->started)
        bh_instance_end(u->dir);
    bh_up_stop(u);
    bh_up_close(u);
    free(a.gates_text);
    free(a.apis_text);
    bh_opt_list_fini(&a.gates);
    bh_opt_list_fini(&a.apis);
    return rc < 0 ? BH_EXIT_FAIL : BH_EXIT_OK;
}

int bh_cmd_up(int argc, char **argv)
{
    return start((struct arguments){.who = "berth up"}, argc, argv);
}

int bh_cmd_demo(int argc, char **argv)
{
    return start((struct arguments){.who = "berth demo", .demo = true}, argc, argv);
}
