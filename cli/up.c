/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/up.c - `berth up`: all processes on one machine
 *
 * Owns:       the runtime directory when it made it, and the built-in server's kubeconfig.
 * Invariants: nothing is started before what can be known to be wrong was checked; stopping goes in
 * reverse order of starting; what we made in the file system goes with us. Runs in:    one libuv
 * loop.
 */
#include "cli/up.h"
#include "cli/config.h"
#include "scheduler/decisions/recorder.h"
#include <dirent.h>
#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_BINDERS   32
#define START_WAIT_NS UINT64_C(20000000000)
#define FRONT_PORT    10259                /* kube-scheduler's */
#define GREETING_NS   UINT64_C(5000000000) /* first try to reach somebody else's API server */

struct arguments {
    const char *kubeconfig, *config, *runtime, *data, *record;
    bool annotate;
    int64_t binders, port, front_port; /* front_port -1: the usual one, or a free one */
    bool no_example, leader_elect;
};

/* ---- runtime directory -------------------------------------------------------------------------
 */

static int make_dir(struct bh_up *u, const char *wanted, struct bh_err *err)
{
    const char *base = getenv("XDG_RUNTIME_DIR");
    int n;

    if (wanted)
        return bh_runtime_dir(wanted, u->dir, err);
    if (!base || !*base || access(base, W_OK) != 0)
        base = getenv("TMPDIR");
    if (!base || !*base)
        base = "/tmp";
    n = snprintf(u->dir, sizeof(u->dir), "%s/berth-up-XXXXXX", base);
    if (n < 0 || (size_t)n >= sizeof(u->dir) - 24)
        return bh_err_set(err, -ENAMETOOLONG, "runtime directory below \"%s\": path too long",
                          base);
    if (!mkdtemp(u->dir))
        return bh_err_set(err, -errno, "could not make a runtime directory below \"%s\": %s", base,
                          strerror(errno));
    u->made_dir = true;
    return 0;
}

/* The scheduler's file, which the page may change: a copy, never the one that was given. */
static void own_config_path(const struct bh_up *u, char out[static 160])
{
    snprintf(out, 160, "%s/scheduler.yaml", u->dir);
}

static int copy_config(struct bh_up *u, const char *from, struct bh_err *err)
{
    static const char nothing[] = "apiVersion: kubescheduler.config.k8s.io/v1\n"
                                  "kind: KubeSchedulerConfiguration\n";
    BH_CLEANUP(bh_freep) char *text = NULL;
    size_t n = sizeof(nothing) - 1;
    char path[160];
    int rc = from ? bh_read_file(from, (size_t)4 << 20, &text, &n) : 0;

    own_config_path(u, path);
    if (rc == 0)
        rc = bh_write_file(path, text ? text : nothing, n, 0600);
    return rc < 0 ? bh_err_set(err, rc, "could not copy %s to %s: %s", from ? from : "the defaults",
                               path, strerror(-rc))
                  : 0;
}

static void remove_files(struct bh_up *u)
{
    char config[160];

    DIR *d = u->made_dir ? opendir(u->dir) : NULL;
    struct dirent *e;

    own_config_path(u, config);
    if (u->own_server && *u->kubeconfig) { /* of a server that is gone */
        (void)unlink(u->kubeconfig);
        (void)unlink(config);
    }
    if (!d)
        return;
    while ((e = readdir(d)))
        if (e->d_name[0] != '.')
            (void)unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    (void)rmdir(u->dir);
}

/* ---- start -------------------------------------------------------------------------------------
 */

/* What watcher and front read of the configuration, behind the first n. */
static void add_config(const char **args, unsigned n, const struct arguments *a)
{
    if (!a->leader_elect)
        args[n++] = "--leader-elect=false";
    if (a->config) {
        args[n++] = "--config";
        args[n++] = a->config;
    }
}

static void describe_watcher(struct bh_up *u, const struct arguments *a)
{
    const char *args[16] = {"--api-kubeconfig",  u->kubeconfig, "--runtime-dir", u->dir,
                            "--metrics-address", "127.0.0.1:0"};

    add_config(args, 6, a);
    (void)bh_up_add_child(u, "berth-watcher", "watcher", args);
}

/* Is the port free on the loopback? 0 = take any. Returns the port, 0 = taken. */
static uint16_t try_port(uint16_t port)
{
    struct sockaddr_in sa = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(sa);
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
              bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 &&
              getsockname(fd, (struct sockaddr *)&sa, &len) == 0;

    if (fd >= 0)
        close(fd);
    return ok ? ntohs(sa.sin_port) : 0;
}

static void choose_front_port(struct bh_up *u, const struct arguments *a)
{
    u->front_port = a->front_port > 0 ? (uint16_t)a->front_port : 0;
    if (a->front_port < 0)
        u->front_port = try_port(FRONT_PORT);
    if (!u->front_port)
        u->front_port = try_port(0);
}

/* Started last: it tells about the others. */
static void describe_front(struct bh_up *u, const struct arguments *a)
{
    char port[16];
    const char *args[16] = {"--runtime-dir",
                            u->dir,
                            "--secure-port",
                            port,
                            "--authentication-kubeconfig",
                            u->kubeconfig,
                            "--authorization-kubeconfig",
                            u->kubeconfig};

    snprintf(port, sizeof(port), "%u", u->front_port);
    add_config(args, 8, a);
    (void)bh_up_add_child(u, "berth-front", "front", args);
}

static void describe_scheduler(struct bh_up *u, const struct arguments *a)
{
    const char *args[16] = {"--runtime-dir", u->dir, "--metrics-address", "127.0.0.1:0"};
    char copy[160], file[sizeof(u->dir) + sizeof(BH_DECISIONS_FILE) + 1];
    unsigned n = 4;

    snprintf(file, sizeof(file), "%s/" BH_DECISIONS_FILE, u->dir);
    own_config_path(u, copy);
    if (!bh_streq(a->record, "off")) {
        args[n++] = "--record-decisions";
        args[n++] = a->record;
        args[n++] = "--decisions-file"; /* where the simulator looks */
        args[n++] = file;
    }
    if (u->own_server || a->config) {
        args[n++] = "--config";
        args[n++] = u->own_server ? copy : a->config;
    }
    (void)bh_up_add_child(u, "berth-scheduler", "scheduler", args);
}

static void describe_children(struct bh_up *u, const struct arguments *a, const char *port)
{
    char name[32], instance[16];

    if (u->own_server)
        (void)bh_up_add_child(
            u, "berth-simulator", "simulator",
            (const char *const[]){"--port", port, "--kubeconfig-out", u->kubeconfig,
                                  "--runtime-dir", u->dir, "--annotate-decisions",
                                  a->annotate ? "full" : "off", a->data ? "--data" : NULL, a->data,
                                  NULL});
    describe_watcher(u, a);
    describe_scheduler(u, a);
    for (int64_t i = 1; i <= a->binders; i++) {
        snprintf(name, sizeof(name), "binder-%d", (int)i);
        snprintf(instance, sizeof(instance), "%d", (int)i);
        (void)bh_up_add_child(u, "berth-binder", name,
                              (const char *const[]){"--api-kubeconfig", u->kubeconfig,
                                                    "--runtime-dir", u->dir, "--instance", instance,
                                                    NULL});
    }
    describe_front(u, a);
}

static int start_child(struct bh_up *u, struct bh_up_child *c, struct bh_err *err)
{
    int rc = bh_up_spawn(c);

    if (rc < 0)
        return bh_err_set(err, rc, "could not start %s with log %s: %s", c->name, c->log,
                          strerror(-rc));
    if (c != u->child || !u->own_server)
        return 0;
    /* The built-in server tells where it listens by writing the kubeconfig. */
    for (uint64_t end = bh_mono_ns() + START_WAIT_NS;
         rc == 0 && bh_mono_ns() < end && bh_up_pump(u);) {
        if (access(u->kubeconfig, R_OK) == 0)
            return 0;
        rc = bh_up_all_alive(u, err);
    }
    if (rc == 0 && !u->stopping) {
        rc = bh_err_set(err, -ETIMEDOUT, "the built-in API server did not come up");
        bh_up_last_words(c);
    }
    return rc;
}

static int find_example(struct bh_up *u, char out[static PATH_MAX])
{
    int n = snprintf(out, PATH_MAX, "%s/../share/berth/example-cluster.yaml", u->bindir);

    return n > 0 && n < PATH_MAX && access(out, R_OK) == 0 ? 0 : -ENOENT;
}

/* A client of the server, on our loop: signals and ends of children are noticed meanwhile. */
static int with_client(struct bh_up *u,
                       int (*fn)(struct bh_up *u, struct bh_api_client *c, struct bh_err *err),
                       struct bh_err *err)
{
    const struct bh_api_options o = {.user_agent = "berth-up"};
    struct bh_api_config *cfg = NULL;
    struct bh_api_client *client = NULL;
    int rc = bh_kubeconfig_load(u->kubeconfig, NULL, &cfg, err);

    if (rc == 0)
        rc = bh_api_client_new(&u->loop, cfg, &o, &client, err);
    if (rc == 0)
        rc = fn(u, client, err);
    bh_api_client_free(client);
    bh_api_config_free(cfg);
    return rc;
}

/* What the page's reset goes back to: with the example. */
static int mark_start(struct bh_up *u, struct bh_api_client *client, struct bh_err *err)
{
    const struct bh_api_call call = {
        .method = "PUT", .path = "/api/v1/reset?mark=true", .timeout_ns = GREETING_NS};
    struct bh_buf body = {0};
    int code = 0, rc = bh_api_do(&u->loop, client, &call, &code, &body, err);

    bh_buf_fini(&body);
    return rc;
}

static int load_example(struct bh_up *u, struct bh_api_client *client, struct bh_err *err)
{
    char path[PATH_MAX];
    struct bh_creator *cr;
    int rc = find_example(u, path);

    if (rc < 0)
        return bh_err_set(err, rc, "example-cluster.yaml was not found near %s", u->bindir);
    cr = bh_creator_new(&u->loop, client);
    rc = bh_creator_file(cr, path, err);
    bh_creator_free(cr);
    return rc < 0 ? rc : mark_start(u, client, err);
}

/* Not an error: Berth waits for its API server as long as it takes. */
static int look_at_server(struct bh_up *u, struct bh_api_client *client, struct bh_err *err)
{
    const struct bh_api_call call = {
        .method = "GET", .path = "/version", .timeout_ns = GREETING_NS};
    struct bh_buf body = {0};
    int code = 0;

    if (bh_api_do(&u->loop, client, &call, &code, &body, err) < 0)
        fprintf(stderr, "berth up: the API server does not answer yet: %s\n", err->msg);
    else if (code != 200)
        fprintf(stderr, "berth up: the API server answers GET /version with %d\n", code);
    bh_buf_fini(&body);
    return 0;
}

static void greet(struct bh_up *u, bool example)
{
    struct bh_api_config *cfg = NULL;
    struct bh_err err = {0};

    if (bh_kubeconfig_load(u->kubeconfig, NULL, &cfg, &err) == 0)
        printf("Berth is up.\n  API server   %s%s\n", cfg->server,
               u->own_server ? " (built-in)" : "");
    if (cfg && u->own_server)
        printf("  web page     %s/ui/\n", cfg->server);
    bh_api_config_free(cfg);
    if (u->elects && !u->own_server)
        puts("  lease        if another scheduler holds kube-system/kube-scheduler, Berth stands "
             "by");
    printf("  HTTPS        https://127.0.0.1:%u (health, metrics, configuration)\n", u->front_port);
    printf("  kubeconfig   %s\n  logs         %s/*.log\n\nTry, in another terminal:\n"
           "  export KUBECONFIG=%s\n",
           u->kubeconfig, u->dir, u->kubeconfig);
    if (example)
        puts("  kubectl get nodes,pods -o wide\n"
             "  kubectl create deployment web --image=nginx --replicas=3\n"
             "  kubectl get events --field-selector reason=Scheduled");
    else
        puts("  kubectl get pods -A -o wide\n  kubectl get events -A --field-selector "
             "reason=Scheduled\n"
             "  kubectl get --raw /readyz");
    puts("\nCtrl-C stops everything.");
    fflush(stdout);
}

static int start_all(struct bh_up *u, bool example, struct bh_err *err)
{
    int rc = 0;

    if (!u->own_server)
        rc = with_client(u, look_at_server, err);
    for (unsigned i = 0; i < u->n && rc == 0 && !u->stopping; i++)
        rc = start_child(u, &u->child[i], err);
    if (rc == 0 && example && !u->stopping)
        rc = with_client(u, load_example, err);
    if (rc == 0)
        rc = bh_up_settle(u, err);
    return rc;
}

static int run(struct bh_up *u, bool example, struct bh_err *err)
{
    int rc = start_all(u, example, err);

    if (u->stopping)
        return 0;
    if (rc < 0)
        return rc;
    u->started = true;
    greet(u, example);
    while (!u->stopping)
        uv_run(&u->loop, UV_RUN_DEFAULT);
    return 0;
}

static void stop(struct bh_up *u)
{
    u->stopping = true;
    for (unsigned i = 0; i < u->n; i++)
        if (strncmp(u->child[i].name, "binder-", 7) == 0)
            bh_up_tell_to_stop(&u->child[i]); /* all at once: each may take a second */
    for (unsigned i = u->n; i-- > 0;)
        bh_up_stop_child(u, &u->child[i]);
    remove_files(u);
}

static int check_config(const char *path, struct bh_err *err)
{
    struct bh_sched_config *c = NULL;
    struct bh_config_report r;

    bh_config_report_init(&r);
    int rc = bh_sched_config_load_report(path, &c, &r);
    if (path)
        bh_config_print_warnings(stderr, path, &r.warnings);
    if (rc < 0 && r.errors.n > 1) {
        bh_config_print_errors(stderr, path, &r.errors);
        bh_err_set(err, rc, "%u errors in %s", r.errors.n, path);
    } else if (rc < 0) {
        bh_err_set(err, rc, "%s", bh_config_report_line(&r, path));
    }
    bh_sched_config_free(c);
    bh_config_report_fini(&r);
    return rc;
}

/* What can be known to be wrong before anything runs. */
static int check_inputs(struct bh_up *u, const char *config, struct bh_err *err)
{
    const char *const programs[] = {"berth-watcher",
                                    "berth-scheduler",
                                    "berth-binder",
                                    "berth-front",
                                    u->own_server ? "berth-simulator" : NULL,
                                    NULL};
    struct bh_api_config *api = NULL;
    int rc = bh_up_find_programs(u, programs, err);

    if (rc == 0)
        rc = check_config(config, err);
    if (rc == 0 && !u->own_server)
        rc = bh_kubeconfig_load(u->kubeconfig, NULL, &api, err);
    bh_api_config_free(api);
    return rc;
}

static const struct bh_opt_usage usage = {
    .program = "berth up",
    .synopsis = "[flags]",
    .about = "Runs watcher, scheduler and binders on this machine, restarts what dies, and stops "
             "everything "
             "on Ctrl-C. Without --kubeconfig it also runs the built-in API server with an example "
             "cluster.",
    .examples = "  berth up\n  berth up --kubeconfig ~/.kube/config --binders 4\n"
                "  berth up --data cluster.db\n",
    .exits = "  0  stopped by a signal\n  1  something could not be started\n  2  wrong usage\n",
};

static int parse(struct arguments *a, int argc, char **argv, struct bh_err *err)
{
    const struct bh_opt table[] = {
        {"kubeconfig", 0, BH_OPT_STR, &a->kubeconfig, "FILE",
         "use this API server, not the built-in one"},
        {"binders", 0, BH_OPT_INT, &a->binders, "N", "number of binders (1 to 32)"},
        {"config", 0, BH_OPT_STR, &a->config, "FILE", "KubeSchedulerConfiguration"},
        {"port", 0, BH_OPT_INT, &a->port, "N",
         "port of the built-in API server; 0 takes a free one"},
        {"front-port", 0, BH_OPT_INT, &a->front_port, "N",
         "port of HTTPS on the loopback (default: 10259 when it is free, else a free one); 0 takes "
         "a "
         "free one"},
        {"runtime-dir", 0, BH_OPT_STR, &a->runtime, "DIR",
         "sockets and logs (default: a temporary one)"},
        {"data", 0, BH_OPT_STR, &a->data, "FILE",
         "keep the built-in API server's objects in FILE; one that is there is gone on with, "
         "without the example"},
        {"record-decisions", 0, BH_OPT_STR, &a->record, "full|summary|off",
         "what is kept of every decision, for the page and 'berth decisions' (default full, with "
         "--kubeconfig off)"},
        {"annotate-decisions", 0, BH_OPT_BOOL, &a->annotate, NULL,
         "write them onto the built-in server's pods as well, with kube-scheduler-simulator's "
         "annotations"},
        {"no-example", 0, BH_OPT_BOOL, &a->no_example, NULL, "start with an empty cluster"},
        {"leader-elect", 0, BH_OPT_BOOL, &a->leader_elect, NULL,
         "schedule only while this machine holds the lease kube-system/kube-scheduler"},
        {0},
    };
    struct bh_opt_list rest = {0};
    int rc = bh_opt_parse(table, &usage, argc, argv, &rest, err);

    if (rc == 0 && rest.n)
        rc = bh_err_set(err, -EINVAL, "unexpected argument \"%s\"", rest.v[0]);
    if (rc == 0 && (a->binders < 1 || a->binders > MAX_BINDERS))
        rc = bh_err_set(err, -EINVAL, "invalid value %lld for --binders: 1 to %d",
                        (long long)a->binders, MAX_BINDERS);
    if (!a->record) /* it costs something, which is no business of other people's clusters */
        a->record = a->kubeconfig ? "off" : "full";
    if (rc == 0 && !bh_streq(a->record, "full") && !bh_streq(a->record, "summary") &&
        !bh_streq(a->record, "off"))
        rc = bh_err_set(err, -EINVAL,
                        "invalid value \"%s\" for --record-decisions: full, summary or off",
                        a->record);
    if (rc == 0 && (a->port < 0 || a->port > 65535))
        rc = bh_err_set(err, -EINVAL, "invalid value %lld for --port: 0 to 65535",
                        (long long)a->port);
    if (rc == 0 && (a->front_port < -1 || a->front_port > 65535))
        rc = bh_err_set(err, -EINVAL, "invalid value %lld for --front-port: 0 to 65535",
                        (long long)a->front_port);
    if (rc == 0 && a->kubeconfig && a->port)
        rc = bh_err_set(err, -EINVAL,
                        "--port is of the built-in API server, --kubeconfig names another");
    if (rc == 0 && a->kubeconfig && a->data)
        rc = bh_err_set(err, -EINVAL,
                        "--data is of the built-in API server, --kubeconfig names another");
    if (rc == 0 && a->data && access(a->data, F_OK) == 0)
        a->no_example = true; /* it was made when FILE was, or not wanted */
    free(rest.v);
    return rc;
}

static int prepare(struct bh_up *u, const struct arguments *a, struct bh_err *err)
{
    char port[16];
    int n, rc;

    if (a->kubeconfig)
        snprintf(u->kubeconfig, sizeof(u->kubeconfig), "%s", a->kubeconfig);
    rc = check_inputs(u, a->config, err);
    if (rc == 0)
        rc = make_dir(u, a->runtime, err);
    if (rc < 0)
        return rc;
    if (u->own_server) {
        n = snprintf(u->kubeconfig, sizeof(u->kubeconfig), "%s/kubeconfig", u->dir);
        bh_assert(n > 0 && (size_t)n < sizeof(u->kubeconfig));
        (void)unlink(u->kubeconfig);
        rc = copy_config(u, a->config, err);
    }
    u->elects = a->leader_elect;
    /* The same one for each of its lives: the others go on where it was. */
    snprintf(port, sizeof(port), "%d", a->port ? (int)a->port : try_port(0));
    choose_front_port(u, a);
    describe_children(u, a, port);
    return rc;
}

int bh_cmd_up(int argc, char **argv)
{
    struct arguments a = {
        .binders = 2, .front_port = -1, .leader_elect = true};
    struct bh_err err = {0};
    int rc = parse(&a, argc, argv, &err);
    struct bh_up *u;

    if (rc != 0)
        return rc > 0 ? BH_EXIT_OK : bh_cli_usage_error("berth up", &err);
    u = bh_up_open("berth up", NULL); /* a closed terminal stops us, too */
    u->own_server = !a.kubeconfig;
    rc = prepare(u, &a, &err);
    if (rc == 0)
        rc = run(u, u->own_server && !a.no_example, &err);
    if (rc < 0)
        fprintf(stderr, "berth up: %s\n", err.msg);
    stop(u);
    bh_up_close(u);
    return rc < 0 ? BH_EXIT_FAIL : BH_EXIT_OK;
}
